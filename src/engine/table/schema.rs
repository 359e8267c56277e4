//! Schemas between Arrow and Delta: which columns a table can hold, how a schema may grow, which protocol it
//! needs, and bringing a batch into the shape of the table.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::CastOptions;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::common::nested_struct::cast_column;
use deltalake_core::kernel::StructType;
use deltalake_core::kernel::engine::arrow_conversion::{TryIntoArrow, TryIntoKernel};

use super::action::Protocol;

/// Characters that Parquet readers of other programs don't take in a name (Delta without column mapping).
const FORBIDDEN_IN_NAMES: [char; 11] = [' ', ',', ';', '{', '}', '(', ')', '\n', '\t', '=', '`'];

/// Reads a `metaData.schemaString`. Strings are `Utf8`, timestamps microseconds in `UTC` or without zone.
pub fn from_delta(schema_string: &str) -> Result<SchemaRef, String> {
    let delta: StructType = serde_json::from_str(schema_string).map_err(|error| error.to_string())?;
    let schema: Schema = (&delta).try_into_arrow().map_err(|error| error.to_string())?;
    Ok(Arc::new(schema))
}

/// Writes a `metaData.schemaString`.
pub fn to_delta(schema: &Schema) -> Result<String, String> {
    let delta: StructType = schema.try_into_kernel().map_err(|error| error.to_string())?;
    serde_json::to_string(&delta).map_err(|error| error.to_string())
}

/// The schema as a table will show it: one Arrow type for each Delta type.
///
/// # Errors
/// What a Delta table can't hold: a type, a name, two names that differ in case only.
pub fn canonical(schema: &Schema) -> Result<SchemaRef, String> {
    check_names(schema.fields(), "")?;
    from_delta(&to_delta(schema)?)
}

fn check_names(fields: &Fields, parent: &str) -> Result<(), String> {
    let mut seen = HashSet::new();
    for field in fields {
        let path = format!("{parent}{}", field.name());
        if let Some(character) = field.name().chars().find(|character| FORBIDDEN_IN_NAMES.contains(character)) {
            return Err(format!("column `{path}` has {character:?} in its name; give it another name with AS"));
        }
        if field.name().is_empty() {
            return Err(format!("a column{} has no name; give it one with AS", within(parent)));
        }
        if !seen.insert(field.name().to_lowercase()) {
            return Err(format!("column `{path}` is there twice; names differ by more than case"));
        }
        check_type(field.data_type(), &path)?;
    }
    Ok(())
}

fn within(parent: &str) -> String {
    if parent.is_empty() { String::new() } else { format!(" in `{}`", parent.trim_end_matches('.')) }
}

fn check_type(data_type: &DataType, path: &str) -> Result<(), String> {
    match data_type {
        DataType::Null => Err(format!("column `{path}` has no type, it is always NULL; give it one with CAST")),
        DataType::Struct(fields) if fields.is_empty() => Err(format!("column `{path}` is a struct without fields")),
        DataType::Struct(fields) => check_names(fields, &format!("{path}.")),
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => check_type(item.data_type(), path),
        _ => Ok(()),
    }
}

/// Whether a table of the schema `current` may become one of `wanted` while its data files stay: columns and
/// nested fields may be added if they are nullable; nothing may go or change its type.
///
/// # Errors
/// The first column that stands in the way, and why.
pub fn check_growth(current: &Schema, wanted: &Schema) -> Result<(), String> {
    check_fields_growth(current.fields(), wanted.fields(), "")
}

fn check_fields_growth(current: &Fields, wanted: &Fields, parent: &str) -> Result<(), String> {
    for field in current {
        let path = format!("{parent}{}", field.name());
        let (_, new) = wanted.find(field.name()).ok_or_else(|| format!("column `{path}` would be dropped"))?;
        if field.is_nullable() && !new.is_nullable() {
            return Err(format!("column `{path}` holds NULLs and would become NOT NULL"));
        }
        check_type_growth(field.data_type(), new.data_type(), &path)?;
    }
    match wanted.iter().find(|field| current.find(field.name()).is_none() && !field.is_nullable()) {
        Some(field) => Err(format!("new column `{parent}{}` is NOT NULL, but older rows have no value", field.name())),
        None => Ok(()),
    }
}

fn check_type_growth(current: &DataType, wanted: &DataType, path: &str) -> Result<(), String> {
    match (current, wanted) {
        (DataType::Struct(old), DataType::Struct(new)) => check_fields_growth(old, new, &format!("{path}.")),
        (DataType::List(old), DataType::List(new)) | (DataType::Map(old, _), DataType::Map(new, _)) => {
            check_type_growth(old.data_type(), new.data_type(), path)
        }
        _ if current == wanted => Ok(()),
        _ => Err(format!("column `{path}` would change from {current} to {wanted}")),
    }
}

/// The protocol that a table of this schema needs at least.
pub fn protocol_for(schema: &Schema) -> Protocol {
    if schema.fields().iter().any(|field| holds_ntz(field.data_type())) {
        let features = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        return Protocol {
            min_reader_version: 3,
            min_writer_version: 7,
            reader_features: features(&["timestampNtz"]),
            writer_features: features(&["timestampNtz", "appendOnly", "invariants"]),
        };
    }
    Protocol { min_reader_version: 1, min_writer_version: 2, reader_features: None, writer_features: None }
}

fn holds_ntz(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, None) => true,
        DataType::Struct(fields) => fields.iter().any(|field| holds_ntz(field.data_type())),
        DataType::List(item) | DataType::Map(item, _) => holds_ntz(item.data_type()),
        _ => false,
    }
}

/// Brings a batch into the shape of the table: columns by name, those that the batch lacks NULL, in the
/// table's Arrow types. Only the representation of a value may change, never the value.
///
/// # Errors
/// A column that the table lacks, a NULL in a NOT NULL column, a value that doesn't fit the table's type.
pub fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, String> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    if let Some(extra) = batch.schema_ref().fields().iter().find(|field| schema.index_of(field.name()).is_err()) {
        return Err(format!("column `{}` is not in the table", extra.name()));
    }
    let columns = schema.fields().iter().map(|field| {
        let column = match batch.column_by_name(field.name()) {
            None => new_null_array(field.data_type(), batch.num_rows()),
            Some(column) if column.data_type() == field.data_type() => Arc::clone(column),
            Some(column) if is_same_value(column.data_type(), field.data_type()) => {
                let exact = CastOptions { safe: false, ..CastOptions::default() };
                cast_column(column, field.data_type(), &exact)
                    .map_err(|error| format!("column `{}`: {error}", field.name()))?
            }
            Some(column) => {
                let (from, to) = (column.data_type(), field.data_type());
                return Err(format!("column `{}` is {to} in the table, but the rows have {from}", field.name()));
            }
        };
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(format!("column `{}` is NOT NULL, but a row has NULL", field.name()));
        }
        Ok(column)
    });
    let columns = columns.collect::<Result<Vec<_>, String>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows).map_err(|error| error.to_string())
}

/// Whether values of `from` are those of `to` in another representation, or a narrower integer.
fn is_same_value(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (Null, _) => true,
        (Dictionary(_, value), _) => is_same_value(value, to),
        (Utf8 | LargeUtf8 | Utf8View, Utf8) => true,
        (Binary | LargeBinary | BinaryView | FixedSizeBinary(_), Binary) => true,
        (Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64, Int8 | Int16 | Int32 | Int64) => true,
        (Float32, Float64) | (Date64, Date32) => true,
        (Decimal128(_, from), Decimal128(_, to)) => from <= to,
        (Timestamp(_, from), Timestamp(TimeUnit::Microsecond, to)) => from.is_some() == to.is_some(),
        (List(from) | LargeList(from) | ListView(from) | FixedSizeList(from, _), List(to)) => {
            is_same_value(from.data_type(), to.data_type())
        }
        (Map(from, _), Map(to, _)) => match (from.data_type(), to.data_type()) {
            (Struct(from), Struct(to)) => {
                from.iter().zip(to).all(|(from, to)| is_same_value(from.data_type(), to.data_type()))
            }
            _ => false,
        },
        (Struct(from), Struct(to)) => from
            .iter()
            .all(|field| to.find(field.name()).is_some_and(|(_, to)| is_same_value(field.data_type(), to.data_type()))),
        _ => from == to,
    }
}

/// The columns that are stored in the data files, in order: all but those that the folders tell.
pub fn file_fields(schema: &Schema, partition_by: &[String]) -> Vec<Arc<Field>> {
    schema.fields().iter().filter(|field| !partition_by.contains(field.name())).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, StringViewArray, StructArray};
    use arrow::datatypes::Int64Type;

    fn schema(fields: Vec<Field>) -> Schema {
        Schema::new(fields)
    }

    #[test]
    fn types_become_those_of_delta() {
        let given = schema(vec![
            Field::new("s", DataType::Utf8View, true),
            Field::new("t", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), true),
            Field::new("n", DataType::UInt8, false),
            Field::new("l", DataType::new_large_list(DataType::LargeUtf8, true), true),
        ]);
        let schema = canonical(&given).expect("fits");
        assert_eq!(schema.field(0).data_type(), &DataType::Utf8);
        assert_eq!(schema.field(1).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
        assert!(!schema.field(2).is_nullable());
        assert!(matches!(schema.field(3).data_type(), DataType::List(item) if item.name() == "element"));
        assert_eq!(canonical(&schema).expect("fits"), schema, "a second time changes nothing");
    }

    #[test]
    fn comments_of_columns_are_kept() {
        let field = Field::new("a", DataType::Int64, true).with_metadata([("comment".into(), "the a".into())].into());
        let schema = canonical(&schema(vec![field])).expect("fits");
        assert_eq!(schema.field(0).metadata().get("comment").map(String::as_str), Some("the a"));
    }

    #[test]
    fn columns_that_delta_cannot_hold_are_named() {
        let nested = Field::new("x y", DataType::Int64, true);
        for (field, expected) in [
            (Field::new("a b", DataType::Int64, true), "`a b`"),
            (Field::new("s", DataType::Struct(vec![nested].into()), true), "`s.x y`"),
            (Field::new("n", DataType::Null, true), "has no type"),
            (Field::new("ID", DataType::Int64, true), "twice"),
            (Field::new("i", DataType::Interval(arrow::datatypes::IntervalUnit::DayTime), true), "Interval"),
        ] {
            let error = canonical(&schema(vec![Field::new("id", DataType::Int64, true), field])).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_schema_grows_but_never_loses() {
        let s = |names: &[&str]| {
            DataType::Struct(names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect())
        };
        let now = schema(vec![Field::new("a", DataType::Int64, false), Field::new("s", s(&["x"]), true)]);
        let a = || Field::new("a", DataType::Int64, true);
        for (wanted, problem) in [
            (vec![a(), Field::new("s", s(&["x", "y"]), true), Field::new("b", DataType::Utf8, true)], None),
            (vec![a()], Some("`s` would be dropped")),
            (vec![a(), Field::new("s", s(&["y"]), true)], Some("`s.x` would be dropped")),
            (vec![a(), Field::new("s", DataType::Int64, true)], Some("`s` would change")),
            (vec![a(), Field::new("s", s(&["x"]), false)], Some("would become NOT NULL")),
            (vec![a(), Field::new("s", s(&["x"]), true), Field::new("b", DataType::Utf8, false)], Some("`b` is NOT")),
        ] {
            let result = check_growth(&now, &schema(wanted));
            match problem {
                None => result.expect("grows"),
                Some(problem) => assert!(result.expect_err(problem).contains(problem)),
            }
        }
    }

    #[test]
    fn batches_take_the_shape_of_the_table() {
        let inner = Field::new("x", DataType::Int32, true);
        let nested = StructArray::new(vec![inner].into(), vec![Arc::new(Int32Array::from(vec![7])) as ArrayRef], None);
        let batch = RecordBatch::try_from_iter([
            ("s", Arc::new(StringViewArray::from(vec!["v"])) as ArrayRef),
            ("n", Arc::new(nested)),
        ])
        .expect("batch");
        let fields = vec![Field::new("x", DataType::Int64, true), Field::new("y", DataType::Utf8, true)];
        let table = Arc::new(schema(vec![
            Field::new("n", DataType::Struct(fields.into()), true),
            Field::new("new", DataType::Utf8, true),
            Field::new("s", DataType::Utf8, true),
        ]));
        let conformed = conform(&batch, &table).expect("fits");
        assert_eq!(conformed.column(0).as_struct().column(0).as_primitive::<Int64Type>().value(0), 7);
        assert_eq!(conformed.column(0).as_struct().column(1).null_count(), 1);
        assert_eq!(conformed.column(1).null_count(), 1);

        let text = RecordBatch::try_from_iter([("i", Arc::new(StringViewArray::from(vec!["1"])) as ArrayRef)]);
        let number = Arc::new(schema(vec![Field::new("i", DataType::Int64, true)]));
        assert!(conform(&text.expect("batch"), &number).expect_err("other type").contains("is Int64 in the table"));

        let big = RecordBatch::try_from_iter([("i", Arc::new(Int64Array::from(vec![1 << 40])) as ArrayRef)]);
        let small = Arc::new(schema(vec![Field::new("i", DataType::Int32, true)]));
        conform(&big.expect("batch"), &small).expect_err("a value that doesn't fit is never cut");
    }

    #[test]
    fn timestamps_without_zone_need_their_feature() {
        let ntz = DataType::Timestamp(TimeUnit::Microsecond, None);
        let nested = DataType::Struct(vec![Field::new("t", ntz, true)].into());
        assert_eq!(protocol_for(&schema(vec![Field::new("s", nested, true)])).min_writer_version, 7);
        assert_eq!(protocol_for(&schema(vec![Field::new("i", DataType::Int64, true)])).min_writer_version, 2);
    }
}
