//! Spark's types as Arrow's and back, and the lattice of up-casts by which two files, or two flows, agree on one.
//!
//! Not here: reading types from text (`pipeline::data_type`) and casting of values (`source::files::adapt`).

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, Schema, SchemaRef, TimeUnit};
use pipeline::data_type::{DataType, Field};

/// The time zone of every TIMESTAMP column.
pub const UTC: &str = "UTC";

/// Returns the one Arrow type that stands for `data_type` in this program.
///
/// Names of inner fields are those of Delta and Parquet (`element`, `key_value`), so that writing needs no cast.
pub fn to_arrow(data_type: &DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::Byte => ArrowType::Int8,
        DataType::Short => ArrowType::Int16,
        DataType::Integer => ArrowType::Int32,
        DataType::Long => ArrowType::Int64,
        DataType::Float => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Decimal { precision, scale } => ArrowType::Decimal128(*precision, *scale),
        DataType::String => ArrowType::Utf8,
        DataType::Binary => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::TimestampNtz => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Array(element) => ArrowType::List(Arc::new(ArrowField::new("element", to_arrow(element), true))),
        DataType::Map(key, value) => {
            let entries = ArrowType::Struct(Fields::from(vec![
                ArrowField::new("key", to_arrow(key), false),
                ArrowField::new("value", to_arrow(value), true),
            ]));
            ArrowType::Map(Arc::new(ArrowField::new("key_value", entries, false)), false)
        }
        DataType::Struct(fields) => ArrowType::Struct(fields.iter().map(field_to_arrow).collect()),
    }
}

/// Returns the Arrow field of a column; a comment becomes its metadata `comment`, as in Delta.
pub fn field_to_arrow(field: &Field) -> ArrowField {
    let arrow = ArrowField::new(&field.name, to_arrow(&field.data_type), field.is_nullable);
    match &field.comment {
        Some(comment) => arrow.with_metadata([("comment".to_string(), comment.clone())].into()),
        None => arrow,
    }
}

/// Returns the Arrow schema of these columns.
pub fn schema_to_arrow(fields: &[Field]) -> SchemaRef {
    Arc::new(Schema::new(fields.iter().map(field_to_arrow).collect::<Vec<_>>()))
}

/// Returns Spark's type for an Arrow type of any file or query; `None` if Spark has none (intervals, unions, …).
pub fn from_arrow(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::Byte,
        ArrowType::Int16 | ArrowType::UInt8 => DataType::Short,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Integer,
        ArrowType::Int64 | ArrowType::UInt32 => DataType::Long,
        ArrowType::UInt64 => DataType::Decimal { precision: 20, scale: 0 },
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale) => {
            if *precision > MAX_PRECISION {
                return None;
            }
            DataType::Decimal { precision: *precision, scale: *scale }
        }
        // A column of nothing but NULL: Spark writes it as STRING as well.
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Null => DataType::String,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Timestamp(_, Some(_)) => DataType::Timestamp,
        ArrowType::Timestamp(_, None) => DataType::TimestampNtz,
        ArrowType::List(element)
        | ArrowType::LargeList(element)
        | ArrowType::ListView(element)
        | ArrowType::LargeListView(element)
        | ArrowType::FixedSizeList(element, _) => DataType::Array(Box::new(from_arrow(element.data_type())?)),
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(pair) if pair.len() == 2 => {
                DataType::Map(Box::new(from_arrow(pair[0].data_type())?), Box::new(from_arrow(pair[1].data_type())?))
            }
            _ => return None,
        },
        ArrowType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| field_from_arrow(field)).collect::<Option<_>>()?)
        }
        ArrowType::Dictionary(_, value) => from_arrow(value)?,
        ArrowType::RunEndEncoded(_, value) => from_arrow(value.data_type())?,
        ArrowType::Time32(_)
        | ArrowType::Time64(_)
        | ArrowType::Duration(_)
        | ArrowType::Interval(_)
        | ArrowType::Union(..) => return None,
    })
}

/// Returns the column that an Arrow field stands for; `None` as in [`from_arrow`].
pub fn field_from_arrow(arrow: &ArrowField) -> Option<Field> {
    Some(Field {
        name: arrow.name().clone(),
        data_type: from_arrow(arrow.data_type())?,
        is_nullable: arrow.is_nullable(),
        comment: arrow.metadata().get("comment").cloned(),
    })
}

/// Returns the columns of an Arrow schema, or the name of the first one whose type Spark doesn't have.
pub fn schema_from_arrow(schema: &Schema) -> Result<Vec<Field>, String> {
    schema.fields().iter().map(|field| field_from_arrow(field).ok_or_else(|| field.name().clone())).collect()
}

const MAX_PRECISION: u8 = 38;

/// Returns the smallest type to which both can be up-cast, or `None` if there is none.
///
/// Integers widen, integers and FLOAT become DOUBLE where they'd lose digits, decimals widen up to 38 digits, dates
/// become timestamps, structs merge field by field, arrays and maps inside. STRING is nobody's upper bound here:
/// two flows that disagree that much are an error (behaviours B-7).
pub fn merge_types(a: &DataType, b: &DataType) -> Option<DataType> {
    merge(a, b, &|_, _| None)
}

/// True if a column's type may become this wider one while there are rows: the steps of Delta's type widening, which
/// lose no digit.
pub fn can_widen(known: &DataType, wider: &DataType) -> bool {
    use DataType::*;
    matches!(
        (known, wider),
        (Byte | Short | Integer | Long, Short | Integer | Long | Decimal { .. })
            | (Byte | Short | Integer | Float, Double)
            | (Decimal { .. }, Decimal { .. })
            | (Date, TimestampNtz)
    )
}

/// As [`merge_types`], but what has no common type becomes STRING, at the deepest place possible:
/// the rule within one sample of files, where every value has to go somewhere.
pub fn widest_type(a: &DataType, b: &DataType) -> DataType {
    merge(a, b, &|_, _| Some(DataType::String)).unwrap_or(DataType::String)
}

fn merge(a: &DataType, b: &DataType, otherwise: &dyn Fn(&DataType, &DataType) -> Option<DataType>) -> Option<DataType> {
    use DataType::*;
    if a == b {
        return Some(a.clone());
    }
    match (a, b) {
        (Struct(left), Struct(right)) => merge_fields_by(left, right, otherwise).map(Struct),
        (Array(left), Array(right)) => Some(Array(Box::new(merge(left, right, otherwise)?))),
        (Map(left_key, left), Map(right_key, right)) => {
            Some(Map(Box::new(merge(left_key, right_key, otherwise)?), Box::new(merge(left, right, otherwise)?)))
        }
        _ => merge_atoms(a, b).or_else(|| merge_atoms(b, a)).or_else(|| otherwise(a, b)),
    }
}

/// One order of the two is enough; the caller tries both.
fn merge_atoms(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::*;
    match (a, b) {
        (Byte, Short | Integer | Long) | (Short, Integer | Long) | (Integer, Long) => Some(b.clone()),
        (Byte | Short, Float) => Some(Float),
        (Integer | Long, Float) => Some(Double),
        (Byte | Short | Integer | Long | Float | Decimal { .. }, Double) | (Decimal { .. }, Float) => Some(Double),
        (Byte | Short | Integer | Long, Decimal { precision, scale }) => {
            merge_decimals((integer_digits(a), 0), (*precision, *scale))
        }
        (Decimal { precision: p1, scale: s1 }, Decimal { precision: p2, scale: s2 }) => {
            merge_decimals((*p1, *s1), (*p2, *s2))
        }
        (Date, TimestampNtz) => Some(TimestampNtz),
        (Date | TimestampNtz, Timestamp) => Some(Timestamp),
        _ => None,
    }
}

fn integer_digits(integer: &DataType) -> u8 {
    match integer {
        DataType::Byte => 3,
        DataType::Short => 5,
        DataType::Integer => 10,
        _ => 20,
    }
}

fn merge_decimals((p1, s1): (u8, i8), (p2, s2): (u8, i8)) -> Option<DataType> {
    let scale = s1.max(s2);
    let before_point = (i16::from(p1) - i16::from(s1)).max(i16::from(p2) - i16::from(s2));
    let precision = u8::try_from(before_point + i16::from(scale)).ok()?;
    (precision <= MAX_PRECISION).then_some(DataType::Decimal { precision, scale })
}

/// Merges two lists of columns by name: the first list's order and spelling, then what only the second has.
/// `None` if a column that both have has no common type.
pub fn merge_fields(a: &[Field], b: &[Field]) -> Option<Vec<Field>> {
    merge_fields_by(a, b, &|_, _| None)
}

/// As [`merge_fields`] with the rule of [`widest_type`].
pub fn widest_fields(a: &[Field], b: &[Field]) -> Vec<Field> {
    merge_fields_by(a, b, &|_, _| Some(DataType::String)).expect("STRING takes everything")
}

fn merge_fields_by(
    a: &[Field],
    b: &[Field],
    otherwise: &dyn Fn(&DataType, &DataType) -> Option<DataType>,
) -> Option<Vec<Field>> {
    let mut merged = a.to_vec();
    for field in b {
        match position(&merged, &field.name) {
            Some(index) => {
                let known = &mut merged[index];
                known.data_type = merge(&known.data_type, &field.data_type, otherwise)?;
                known.is_nullable |= field.is_nullable;
            }
            None => merged.push(field.clone()),
        }
    }
    // A field that only one side has is missing, hence NULL, in the other.
    for field in &mut merged {
        field.is_nullable |= position(a, &field.name).is_none() || position(b, &field.name).is_none();
    }
    Some(merged)
}

/// Finds a column by name: as spelled if possible, else without regard to case.
pub fn position(fields: &[Field], name: &str) -> Option<usize> {
    let exact = fields.iter().position(|field| field.name == name);
    exact.or_else(|| fields.iter().position(|field| field.name.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, data_type: DataType) -> Field {
        Field { name: name.into(), data_type, is_nullable: true, comment: None }
    }

    fn decimal(precision: u8, scale: i8) -> DataType {
        DataType::Decimal { precision, scale }
    }

    #[test]
    fn every_type_survives_the_way_through_arrow() {
        let all = DataType::Struct(vec![
            field("a", DataType::Boolean),
            field("b", DataType::Array(Box::new(DataType::Struct(vec![field("c", decimal(10, 2))])))),
            field("d", DataType::Map(Box::new(DataType::String), Box::new(DataType::TimestampNtz))),
            field("e", DataType::Timestamp),
            Field { comment: Some("why".into()), is_nullable: false, ..field("f", DataType::Date) },
            field("g", DataType::Binary),
        ]);
        assert_eq!(from_arrow(&to_arrow(&all)), Some(all));
    }

    #[test]
    fn types_merge_up_the_lattice_in_either_order() {
        use DataType::*;
        let cases = [
            (Byte, Long, Some(Long)),
            (Integer, Double, Some(Double)),
            (Long, Float, Some(Double)),
            (Float, Double, Some(Double)),
            (Long, decimal(10, 2), Some(decimal(22, 2))),
            (decimal(5, 4), decimal(7, 1), Some(decimal(10, 4))),
            (decimal(38, 0), decimal(38, 38), None),
            (Date, TimestampNtz, Some(TimestampNtz)),
            (Long, String, None),
            (Boolean, Integer, None),
            (Array(Box::new(Integer)), Array(Box::new(Long)), Some(Array(Box::new(Long)))),
            (Array(Box::new(Integer)), Integer, None),
        ];
        for (a, b, merged) in cases {
            assert_eq!(merge_types(&a, &b), merged, "{a:?} {b:?}");
            assert_eq!(merge_types(&b, &a), merged, "{b:?} {a:?}");
        }
    }

    #[test]
    fn within_a_sample_only_the_part_that_conflicts_becomes_a_string() {
        let a = DataType::Struct(vec![field("x", DataType::Long), field("y", DataType::Long)]);
        let b = DataType::Struct(vec![field("x", DataType::String), field("z", DataType::Date)]);
        let merged = DataType::Struct(vec![
            field("x", DataType::String),
            field("y", DataType::Long),
            field("z", DataType::Date),
        ]);
        assert_eq!(widest_type(&a, &b), merged);
        assert_eq!(merge_types(&a, &b), None);
    }
}
