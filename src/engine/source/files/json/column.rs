//! Buffers of one column under construction: append a value, take rows back, become an Arrow array.
//!
//! Not here: reading JSON (`value.rs`).

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, ListArray, MapArray, NullBufferBuilder, PrimitiveArray,
    StringArray, StructArray,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Field, FieldRef, Fields, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use super::keys::Keys;
use crate::error::{Error, Result};

/// A column of any type; `nulls` also knows its length.
pub struct Column {
    pub nulls: NullBufferBuilder,
    pub values: Values,
}

/// The values of a column; a NULL has a value too (zero, empty).
pub enum Values {
    Boolean(BooleanBufferBuilder),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal {
        values: Vec<i128>,
        precision: u8,
        scale: i8,
    },
    Date(Vec<i32>),
    /// Microseconds; `zone` is None for TIMESTAMP_NTZ.
    Timestamp {
        values: Vec<i64>,
        zone: Option<Arc<str>>,
    },
    String(Bytes),
    Binary(Bytes),
    List(List),
    /// `entries` is a struct of keys and values.
    Map {
        keys: Bytes,
        values: List,
    },
    Struct(Struct),
}

/// Values of any length, one after another; `ends[i + 1]` is where value i ends.
pub struct Bytes {
    pub bytes: Vec<u8>,
    ends: Vec<i32>,
}

/// Elements of all lists, one after another.
pub struct List {
    pub field: FieldRef,
    pub child: Box<Column>,
    ends: Vec<i32>,
}

/// The members of an object.
pub struct Struct {
    pub fields: Fields,
    pub children: Vec<Column>,
    pub keys: Keys,
}

impl Column {
    /// Makes an empty column with room for `rows`. `path` is the dotted path of the column, for messages.
    ///
    /// # Errors
    /// The type is none that JSON is read into.
    pub fn new(field: &Field, path: &str, rows: usize) -> Result<Column> {
        let values = match field.data_type() {
            DataType::Boolean => Values::Boolean(BooleanBufferBuilder::new(rows)),
            DataType::Int8 => Values::Int8(Vec::with_capacity(rows)),
            DataType::Int16 => Values::Int16(Vec::with_capacity(rows)),
            DataType::Int32 => Values::Int32(Vec::with_capacity(rows)),
            DataType::Int64 => Values::Int64(Vec::with_capacity(rows)),
            DataType::Float32 => Values::Float32(Vec::with_capacity(rows)),
            DataType::Float64 => Values::Float64(Vec::with_capacity(rows)),
            DataType::Decimal128(precision, scale) => {
                Values::Decimal { values: Vec::with_capacity(rows), precision: *precision, scale: *scale }
            }
            DataType::Date32 => Values::Date(Vec::with_capacity(rows)),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Values::Timestamp { values: Vec::with_capacity(rows), zone: zone.clone() }
            }
            DataType::Utf8 => Values::String(Bytes::new(rows)),
            DataType::Binary => Values::Binary(Bytes::new(rows)),
            DataType::List(element) => Values::List(List::new(element, &format!("{path}.element"), rows)?),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 && *fields[0].data_type() == DataType::Utf8 => {
                    Values::Map {
                        keys: Bytes::new(rows),
                        values: List::new(&fields[1], &format!("{path}.value"), rows)?,
                    }
                }
                _ => return Err(unsupported(path, field.data_type())),
            },
            DataType::Struct(fields) => Values::Struct(Struct::new(fields, path, rows)?),
            other => return Err(unsupported(path, other)),
        };
        Ok(Column { nulls: NullBufferBuilder::new(rows), values })
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Appends NULL.
    pub fn append_null(&mut self) {
        self.nulls.append_null();
        match &mut self.values {
            Values::Boolean(values) => values.append(false),
            Values::Int8(values) => values.push(0),
            Values::Int16(values) => values.push(0),
            Values::Int32(values) | Values::Date(values) => values.push(0),
            Values::Int64(values) | Values::Timestamp { values, .. } => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::String(values) | Values::Binary(values) => values.end_value(),
            Values::List(values) => values.end_list(),
            Values::Map { values, .. } => values.end_list(),
            Values::Struct(values) => values.children.iter_mut().for_each(Column::append_null),
        }
    }

    /// Takes all rows from `rows` on back.
    pub fn truncate(&mut self, rows: usize) {
        self.nulls.truncate(rows);
        match &mut self.values {
            Values::Boolean(values) => values.truncate(rows),
            Values::Int8(values) => values.truncate(rows),
            Values::Int16(values) => values.truncate(rows),
            Values::Int32(values) | Values::Date(values) => values.truncate(rows),
            Values::Int64(values) | Values::Timestamp { values, .. } => values.truncate(rows),
            Values::Float32(values) => values.truncate(rows),
            Values::Float64(values) => values.truncate(rows),
            Values::Decimal { values, .. } => values.truncate(rows),
            Values::String(values) | Values::Binary(values) => values.truncate(rows),
            Values::List(values) => values.truncate(rows),
            Values::Map { keys, values } => {
                values.truncate(rows);
                keys.truncate(values.child.len());
            }
            Values::Struct(values) => values.children.iter_mut().for_each(|child| child.truncate(rows)),
        }
    }

    /// Hands out what was appended as an array and starts anew, with room for as much again.
    ///
    /// # Errors
    /// Arrow refuses the buffers, which would be our bug.
    pub fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        let rows = self.nulls.len();
        let nulls = self.nulls.finish();
        Ok(match &mut self.values {
            Values::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::Int8(values) => Arc::new(PrimitiveArray::<Int8Type>::try_new(buffer::<Int8Type>(values), nulls)?),
            Values::Int16(values) => {
                Arc::new(PrimitiveArray::<Int16Type>::try_new(buffer::<Int16Type>(values), nulls)?)
            }
            Values::Int32(values) => {
                Arc::new(PrimitiveArray::<Int32Type>::try_new(buffer::<Int32Type>(values), nulls)?)
            }
            Values::Int64(values) => {
                Arc::new(PrimitiveArray::<Int64Type>::try_new(buffer::<Int64Type>(values), nulls)?)
            }
            Values::Float32(values) => {
                Arc::new(PrimitiveArray::<Float32Type>::try_new(buffer::<Float32Type>(values), nulls)?)
            }
            Values::Float64(values) => {
                Arc::new(PrimitiveArray::<Float64Type>::try_new(buffer::<Float64Type>(values), nulls)?)
            }
            Values::Decimal { values, precision, scale } => Arc::new(
                PrimitiveArray::<Decimal128Type>::try_new(buffer::<Decimal128Type>(values), nulls)?
                    .with_precision_and_scale(*precision, *scale)?,
            ),
            Values::Date(values) => {
                Arc::new(PrimitiveArray::<Date32Type>::try_new(buffer::<Date32Type>(values), nulls)?)
            }
            Values::Timestamp { values, zone } => Arc::new(
                PrimitiveArray::<TimestampMicrosecondType>::try_new(buffer::<TimestampMicrosecondType>(values), nulls)?
                    .with_timezone_opt(zone.clone()),
            ),
            Values::String(values) => {
                let (ends, bytes) = values.take();
                Arc::new(StringArray::try_new(ends, bytes, nulls)?)
            }
            Values::Binary(values) => {
                let (ends, bytes) = values.take();
                Arc::new(BinaryArray::try_new(ends, bytes, nulls)?)
            }
            Values::List(values) => {
                let ends = take_ends(&mut values.ends);
                Arc::new(ListArray::try_new(values.field.clone(), ends, values.child.take()?, nulls)?)
            }
            Values::Map { keys, values } => {
                let ends = take_ends(&mut values.ends);
                let (key_ends, key_bytes) = keys.take();
                let keys = StringArray::try_new(key_ends, key_bytes, None)?;
                let fields = map_entry_fields(&values.field);
                let entries = StructArray::try_new(fields.clone(), vec![Arc::new(keys), values.child.take()?], None)?;
                Arc::new(MapArray::try_new(map_entries_field(fields), ends, entries, nulls, false)?)
            }
            Values::Struct(values) => {
                let children = values.children.iter_mut().map(Column::take).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new_with_length(values.fields.clone(), children, nulls, rows)?)
            }
        })
    }
}

impl Bytes {
    pub fn new(rows: usize) -> Bytes {
        Bytes { bytes: Vec::with_capacity(rows * 16), ends: starting_ends(rows) }
    }

    /// Everything appended to `bytes` since the last end is a value.
    #[inline(always)]
    pub fn end_value(&mut self) {
        self.ends.push(self.bytes.len() as i32);
    }

    pub fn truncate(&mut self, rows: usize) {
        self.bytes.truncate(self.ends[rows] as usize);
        self.ends.truncate(rows + 1);
    }

    pub fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let room = self.bytes.len() + self.bytes.len() / 8;
        let bytes = std::mem::replace(&mut self.bytes, Vec::with_capacity(room));
        (take_ends(&mut self.ends), Buffer::from_vec(bytes))
    }
}

impl List {
    fn new(field: &FieldRef, path: &str, rows: usize) -> Result<List> {
        let field = nullable(field);
        Ok(List { child: Box::new(Column::new(&field, path, rows)?), field, ends: starting_ends(rows) })
    }

    /// Every element appended since the last end is of one list.
    #[inline(always)]
    pub fn end_list(&mut self) {
        self.ends.push(self.child.len() as i32);
    }

    fn truncate(&mut self, rows: usize) {
        self.child.truncate(self.ends[rows] as usize);
        self.ends.truncate(rows + 1);
    }
}

impl Struct {
    /// Makes the members of an object at `path`, which is empty for the record itself.
    pub fn new(fields: &Fields, path: &str, rows: usize) -> Result<Struct> {
        let fields: Fields = fields.iter().map(nullable).collect();
        let children = fields
            .iter()
            .map(|field| Column::new(field, &Keys::join(path, field.name()), rows))
            .collect::<Result<Vec<_>>>()?;
        let keys = Keys::new(fields.iter().map(|field| field.name().as_str()), path);
        Ok(Struct { fields, children, keys })
    }
}

impl Struct {
    /// Calls `visit` with the keys of this object type and of those in it.
    pub fn visit_keys(&mut self, visit: &mut dyn FnMut(&mut Keys)) {
        visit(&mut self.keys);
        self.children.iter_mut().for_each(|child| child.visit_keys(visit));
    }
}

impl Column {
    fn visit_keys(&mut self, visit: &mut dyn FnMut(&mut Keys)) {
        match &mut self.values {
            Values::Struct(object) => object.visit_keys(visit),
            Values::List(list) | Values::Map { values: list, .. } => list.child.visit_keys(visit),
            _ => {}
        }
    }
}

/// The field with everything in it nullable: no record is bound to hold a value.
pub fn nullable(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::List(element) => DataType::List(nullable(element)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nullable).collect()),
        DataType::Map(entries, is_sorted) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                DataType::Map(map_entries_field(map_entry_fields(&nullable(&fields[1]))), *is_sorted)
            }
            _ => field.data_type().clone(),
        },
        other => other.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(true))
}

fn map_entry_fields(value: &FieldRef) -> Fields {
    let value = value.as_ref().clone().with_name("value");
    Fields::from(vec![Field::new("key", DataType::Utf8, false), value])
}

fn map_entries_field(fields: Fields) -> FieldRef {
    Arc::new(Field::new("key_value", DataType::Struct(fields), false))
}

fn starting_ends(rows: usize) -> Vec<i32> {
    let mut ends = Vec::with_capacity(rows + 1);
    ends.push(0);
    ends
}

fn take_ends(ends: &mut Vec<i32>) -> OffsetBuffer<i32> {
    let next = starting_ends(ends.len());
    OffsetBuffer::new(std::mem::replace(ends, next).into())
}

fn buffer<T: ArrowPrimitiveType>(values: &mut Vec<T::Native>) -> ScalarBuffer<T::Native> {
    let next = Vec::with_capacity(values.len());
    std::mem::replace(values, next).into()
}

fn unsupported(path: &str, data_type: &DataType) -> Error {
    Error::user(
        "unsupported-json-type",
        format!("cannot read JSON into column `{path}` of type {data_type}"),
        "read it as STRING and convert it in the query",
    )
}
