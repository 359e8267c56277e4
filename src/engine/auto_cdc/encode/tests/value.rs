//! The model: values of any type, random ones, and their way to Arrow and back.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, ListArray, MapArray, PrimitiveArray,
    StringArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use pipeline::data_type::{DataType, Field};
use proptest::prelude::*;

use crate::data_type::{UTC, to_arrow};

#[derive(Debug, Clone)]
pub enum Value {
    Null,
    Boolean(bool),
    Number(i64),
    Float(f64),
    Decimal(i128),
    Bytes(Vec<u8>),
    /// Of a struct, an array, or keys and values of a map by turns.
    Parts(Vec<Value>),
}

use Value::{Boolean, Bytes, Decimal, Float, Null, Number, Parts};

impl Value {
    /// Equal to the bit.
    pub fn is(&self, other: &Value) -> bool {
        match (self, other) {
            (Float(a), Float(b)) => a.to_bits() == b.to_bits(),
            (Parts(a), Parts(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is(b)),
            (a, b) => a.compare(b) == Ordering::Equal,
        }
    }

    /// NULL first, -0.0 as 0.0, NaN as one value above all others.
    pub fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Null, Null) => Ordering::Equal,
            (Null, _) => Ordering::Less,
            (_, Null) => Ordering::Greater,
            (Boolean(a), Boolean(b)) => a.cmp(b),
            (Number(a), Number(b)) => a.cmp(b),
            (Float(a), Float(b)) => a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
            (Decimal(a), Decimal(b)) => a.cmp(b),
            (Bytes(a), Bytes(b)) => a.cmp(b),
            (Parts(a), Parts(b)) => {
                let differing = a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
                differing.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            _ => panic!("values of different types"),
        }
    }
}

pub fn compare_rows(a: &[Value], b: &[Value]) -> Ordering {
    Parts(a.to_vec()).compare(&Parts(b.to_vec()))
}

pub fn field(name: &str, data_type: DataType) -> Field {
    Field { name: name.into(), data_type, is_nullable: true, comment: None }
}

/// Types without arrays and maps; structs of them down to `depth`.
pub fn orderable(depth: u32) -> BoxedStrategy<DataType> {
    let plain = prop::sample::select(vec![
        DataType::Boolean,
        DataType::Byte,
        DataType::Short,
        DataType::Integer,
        DataType::Long,
        DataType::Float,
        DataType::Double,
        DataType::Decimal { precision: 20, scale: 3 },
        DataType::String,
        DataType::Binary,
        DataType::Date,
        DataType::Timestamp,
        DataType::TimestampNtz,
    ]);
    plain.prop_recursive(depth, 8, 3, |inner| prop::collection::vec(inner, 1..3).prop_map(structure)).boxed()
}

/// All types.
pub fn any_type() -> BoxedStrategy<DataType> {
    let inner = |inner: BoxedStrategy<DataType>| {
        prop_oneof![
            inner.clone().prop_map(|element| DataType::Array(Box::new(element))),
            (orderable(0), inner.clone()).prop_map(|(key, value)| DataType::Map(Box::new(key), Box::new(value))),
            prop::collection::vec(inner, 1..3).prop_map(structure),
        ]
    };
    orderable(0).prop_recursive(3, 8, 3, inner).boxed()
}

pub fn structure(types: Vec<DataType>) -> DataType {
    DataType::Struct(types.into_iter().enumerate().map(|(i, data_type)| field(&format!("f{i}"), data_type)).collect())
}

/// Values of a type; `nulls`: NULL among them, and within them in any case.
pub fn values(data_type: &DataType, nulls: bool) -> BoxedStrategy<Value> {
    let number =
        |low: i64, high: i64| prop_oneof![Just(0), Just(low), Just(high), -2..3i64, low..=high].prop_map(Number);
    let plain = match data_type {
        DataType::Boolean => any::<bool>().prop_map(Boolean).boxed(),
        DataType::Byte => number(i8::MIN.into(), i8::MAX.into()).boxed(),
        DataType::Short => number(i16::MIN.into(), i16::MAX.into()).boxed(),
        DataType::Integer | DataType::Date => number(i32::MIN.into(), i32::MAX.into()).boxed(),
        DataType::Long | DataType::Timestamp | DataType::TimestampNtz => number(i64::MIN, i64::MAX).boxed(),
        DataType::Float => {
            let special = prop::sample::select(vec![0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::MIN, 1.0]);
            prop_oneof![special, any::<u32>().prop_map(f32::from_bits)].prop_map(|v| Float(v.into())).boxed()
        }
        DataType::Double => {
            let special = prop::sample::select(vec![0.0, -0.0, f64::NAN, -f64::NAN, f64::NEG_INFINITY, f64::MAX, -1.0]);
            prop_oneof![special, any::<u64>().prop_map(f64::from_bits)].prop_map(Float).boxed()
        }
        DataType::Decimal { precision, .. } => {
            let max = 10i128.pow((*precision).into()) - 1;
            prop_oneof![-3..3i128, -max..=max].prop_map(Decimal).boxed()
        }
        DataType::String => prop_oneof![
            prop::collection::vec(prop::sample::select(vec!['\0', 'a', 'b', '\u{1}', 'é']), 0..4)
                .prop_map(|chars| chars.into_iter().collect::<String>()),
            "[a-c]{0,200}".prop_map(String::from),
        ]
        .prop_map(|text| Bytes(text.into_bytes()))
        .boxed(),
        DataType::Binary => {
            prop::collection::vec(prop::sample::select(vec![0, 1, 0xfe, 0xff]), 0..5).prop_map(Bytes).boxed()
        }
        DataType::Array(element) => prop::collection::vec(values(element, true), 0..4).prop_map(Parts).boxed(),
        DataType::Map(key, value) => {
            let pairs = prop::collection::vec((values(key, false), values(value, true)), 0..3);
            pairs.prop_map(|pairs| Parts(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())).boxed()
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| values(&field.data_type, true)).collect::<Vec<_>>().prop_map(Parts).boxed()
        }
    };
    if nulls { prop_oneof![1 => Just(Null), 3 => plain].boxed() } else { plain }
}

/// Rows of columns of these types.
pub fn rows(types: &[DataType], nulls: bool) -> BoxedStrategy<Vec<Vec<Value>>> {
    let row = types.iter().map(|data_type| values(data_type, nulls)).collect::<Vec<_>>();
    prop::collection::vec(row, 1..20).boxed()
}

pub fn column(rows: &[Vec<Value>], column: usize) -> Vec<Value> {
    rows.iter().map(|row| row[column].clone()).collect()
}

fn primitive<T: ArrowPrimitiveType>(values: &[Value], native: impl Fn(&Value) -> T::Native) -> PrimitiveArray<T> {
    values.iter().map(|value| (!matches!(value, Null)).then(|| native(value))).collect()
}

fn number(value: &Value) -> i64 {
    let Number(number) = value else { panic!("{value:?}") };
    *number
}

fn float(value: &Value) -> f64 {
    let Float(float) = value else { panic!("{value:?}") };
    *float
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Null => None,
        Bytes(bytes) => Some(bytes),
        other => panic!("{other:?}"),
    }
}

fn parts(value: &Value) -> &[Value] {
    let Parts(parts) = value else { return &[] };
    parts
}

/// The Arrow array of values.
pub fn array(data_type: &DataType, values: &[Value]) -> ArrayRef {
    let nulls = || Some(NullBuffer::from_iter(values.iter().map(|value| !matches!(value, Null))));
    let lengths = |each: usize| OffsetBuffer::from_lengths(values.iter().map(|value| parts(value).len() / each));
    match data_type {
        DataType::Boolean => Arc::new(
            values.iter().map(|v| if let Boolean(value) = v { Some(*value) } else { None }).collect::<BooleanArray>(),
        ),
        DataType::Byte => Arc::new(primitive::<Int8Type>(values, |v| number(v) as i8)),
        DataType::Short => Arc::new(primitive::<Int16Type>(values, |v| number(v) as i16)),
        DataType::Integer => Arc::new(primitive::<Int32Type>(values, |v| number(v) as i32)),
        DataType::Long => Arc::new(primitive::<Int64Type>(values, number)),
        DataType::Date => Arc::new(primitive::<Date32Type>(values, |v| number(v) as i32)),
        DataType::Timestamp => Arc::new(primitive::<TimestampMicrosecondType>(values, number).with_timezone(UTC)),
        DataType::TimestampNtz => Arc::new(primitive::<TimestampMicrosecondType>(values, number)),
        DataType::Float => Arc::new(primitive::<Float32Type>(values, |v| float(v) as f32)),
        DataType::Double => Arc::new(primitive::<Float64Type>(values, float)),
        DataType::Decimal { precision, scale } => {
            let unscaled: Decimal128Array = primitive::<Decimal128Type>(values, |v| match v {
                Decimal(decimal) => *decimal,
                other => panic!("{other:?}"),
            });
            Arc::new(unscaled.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::String => {
            let text = |value| bytes(value).map(|bytes| std::str::from_utf8(bytes).unwrap());
            Arc::new(values.iter().map(text).collect::<StringArray>())
        }
        DataType::Binary => Arc::new(values.iter().map(bytes).collect::<BinaryArray>()),
        DataType::Array(element) => {
            let ArrowType::List(field) = to_arrow(data_type) else { unreachable!() };
            let elements: Vec<Value> = values.iter().flat_map(parts).cloned().collect();
            Arc::new(ListArray::new(field, lengths(1), array(element, &elements), nulls()))
        }
        DataType::Map(key, value) => {
            let ArrowType::Map(field, _) = to_arrow(data_type) else { unreachable!() };
            let ArrowType::Struct(pair) = field.data_type() else { unreachable!() };
            let by_turns = |turn| values.iter().flat_map(move |v| parts(v).iter().skip(turn).step_by(2)).cloned();
            let keys = array(key, &by_turns(0).collect::<Vec<_>>());
            let items = array(value, &by_turns(1).collect::<Vec<_>>());
            let entries = StructArray::new(pair.clone(), vec![keys, items], None);
            Arc::new(MapArray::new(field, lengths(2), entries, nulls(), false))
        }
        DataType::Struct(fields) => {
            let ArrowType::Struct(arrow_fields) = to_arrow(data_type) else { unreachable!() };
            let columns = fields.iter().enumerate().map(|(i, field)| {
                let column: Vec<Value> = values.iter().map(|v| parts(v).get(i).cloned().unwrap_or(Null)).collect();
                array(&field.data_type, &column)
            });
            Arc::new(StructArray::new(arrow_fields, columns.collect(), nulls()))
        }
    }
}

/// The values of an Arrow array.
pub fn read(array: &dyn Array, data_type: &DataType) -> Vec<Value> {
    (0..array.len()).map(|row| read_value(array, data_type, row)).collect()
}

fn read_value(array: &dyn Array, data_type: &DataType, row: usize) -> Value {
    if array.is_null(row) {
        return Null;
    }
    match data_type {
        DataType::Boolean => Boolean(array.as_boolean().value(row)),
        DataType::Byte => Number(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Short => Number(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Integer => Number(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Long => Number(array.as_primitive::<Int64Type>().value(row)),
        DataType::Date => Number(array.as_primitive::<Date32Type>().value(row).into()),
        DataType::Timestamp | DataType::TimestampNtz => {
            Number(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Float => Float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Double => Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal { .. } => Decimal(array.as_primitive::<Decimal128Type>().value(row)),
        DataType::String => Bytes(array.as_string::<i32>().value(row).as_bytes().to_vec()),
        DataType::Binary => Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::Array(element) => Parts(read(&array.as_list::<i32>().value(row), element)),
        DataType::Map(key, value) => {
            let entries = array.as_map().value(row);
            let (keys, items) = (read(entries.column(0), key), read(entries.column(1), value));
            Parts(keys.into_iter().zip(items).flat_map(|(key, item)| [key, item]).collect())
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            Parts(fields.iter().zip(columns).map(|(field, column)| read_value(column, &field.data_type, row)).collect())
        }
    }
}
