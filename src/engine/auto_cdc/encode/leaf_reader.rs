//! One leaf of a batch as bytes, row by row.
//!
//! | type | bytes |
//! |---|---|
//! | a struct's presence | none |
//! | boolean | 0 or 1 |
//! | numbers, date, timestamps | little-endian as in memory: 1, 2, 4, 8 bytes, decimals 16; floats keep their bits |
//! | string, binary | the bytes |
//! | array | varint count, then the elements as items |
//! | map | varint count, then key, value, key, value, … as items |
//! | struct within an array or map | a row of its own: varint count of fields without the NULLs at the end, then items |
//!
//! An item is varint 0 for NULL, or varint length + 1 and the bytes.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, LargeBinaryArray, LargeStringArray, StringArray,
};
use arrow::array::{BinaryViewArray, StringViewArray};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, ToByteSlice,
};
use pipeline::data_type::{DataType, Field};

use super::key::in_known_form;
use super::layout::same_name;
use super::{ByteRows, LeafKind, varint};
use crate::data_type::{from_arrow, to_arrow};
use crate::error::{Error, Result};

#[cfg(target_endian = "big")]
compile_error!("values are copied as they lie in memory, which has to be little-endian");

/// The values of one leaf.
pub(super) struct LeafReader {
    pub values: Values,
    pub nulls: Option<NullBuffer>,
}

/// How the bytes of a value are found.
pub(super) enum Values {
    Struct,
    Boolean(BooleanArray),
    Fixed {
        bytes: Buffer,
        width: usize,
    },
    String(StringArray),
    LargeString(LargeStringArray),
    StringView(StringViewArray),
    Binary(BinaryArray),
    LargeBinary(LargeBinaryArray),
    BinaryView(BinaryViewArray),
    /// Arrays and maps, encoded before.
    Nested(ByteRows),
}

impl LeafReader {
    /// A reader of `array`, which is NULL also where `parents` (the structs around it) are.
    pub fn new(array: &ArrayRef, kind: &LeafKind, parents: Option<&NullBuffer>) -> Result<LeafReader> {
        let (values, own) = match kind {
            LeafKind::Struct => (Values::Struct, array.nulls().cloned()),
            LeafKind::Value(data_type @ (DataType::Array(_) | DataType::Map(..))) => {
                let array = in_plain_form(array)?;
                let mut rows = ByteRows::default();
                for row in 0..array.len() {
                    rows.push_with(|out| match array.is_null(row) {
                        true => Ok(()),
                        false => put_value(out, data_type, &array, row),
                    })?;
                }
                (Values::Nested(rows), array.nulls().cloned())
            }
            LeafKind::Value(data_type) => {
                let array = in_known_form(array, data_type)?;
                (values_of(&array)?, array.logical_nulls())
            }
        };
        let nulls = NullBuffer::union(own.as_ref(), parents).filter(|nulls| nulls.null_count() > 0);
        Ok(LeafReader { values, nulls })
    }
}

fn values_of(array: &ArrayRef) -> Result<Values> {
    Ok(match array.data_type() {
        ArrowType::Boolean => Values::Boolean(array.as_boolean().clone()),
        ArrowType::Utf8 => Values::String(array.as_string().clone()),
        ArrowType::LargeUtf8 => Values::LargeString(array.as_string().clone()),
        ArrowType::Utf8View => Values::StringView(array.as_string_view().clone()),
        ArrowType::Binary => Values::Binary(array.as_binary().clone()),
        ArrowType::LargeBinary => Values::LargeBinary(array.as_binary().clone()),
        ArrowType::BinaryView => Values::BinaryView(array.as_binary_view().clone()),
        fixed => {
            let width = fixed.primitive_width().ok_or_else(|| no_bytes(fixed))?;
            let data = array.to_data();
            let bytes = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
            Values::Fixed { bytes, width }
        }
    })
}

fn no_bytes(form: &ArrowType) -> Error {
    Error::Internal(format!("values of {form} have no bytes"))
}

/// An array of nested type in the form that `put_value` reads.
fn in_plain_form(array: &ArrayRef) -> Result<ArrayRef> {
    let form = array.data_type();
    let plain = to_arrow(&from_arrow(form).ok_or_else(|| no_bytes(form))?);
    if *form == plain {
        return Ok(ArrayRef::clone(array));
    }
    cast(array, &plain).map_err(|error| Error::Internal(format!("cannot read {form} as {plain}: {error}")))
}

/// Appends an item: NULL, or a value behind its length.
fn put_item(out: &mut Vec<u8>, data_type: &DataType, array: &ArrayRef, row: usize) -> Result<()> {
    if array.is_null(row) {
        out.push(0);
        return Ok(());
    }
    let start = out.len();
    put_value(out, data_type, array, row)?;
    let end = out.len();
    varint::put(out, (end - start + 1) as u64);
    let prefix = out.len() - end;
    out[start..].rotate_right(prefix);
    Ok(())
}

/// Appends a value of any type.
fn put_value(out: &mut Vec<u8>, data_type: &DataType, array: &ArrayRef, row: usize) -> Result<()> {
    match (data_type, array.data_type()) {
        (DataType::Array(element), ArrowType::List(_)) => {
            let elements = array.as_list::<i32>();
            let (start, end) = (elements.value_offsets()[row] as usize, elements.value_offsets()[row + 1] as usize);
            varint::put(out, (end - start) as u64);
            (start..end).try_for_each(|row| put_item(out, element, elements.values(), row))
        }
        (DataType::Map(key, value), ArrowType::Map(..)) => {
            let map = array.as_map();
            let (start, end) = (map.value_offsets()[row] as usize, map.value_offsets()[row + 1] as usize);
            varint::put(out, (end - start) as u64);
            (start..end).try_for_each(|row| {
                put_item(out, key, map.keys(), row)?;
                put_item(out, value, map.values(), row)
            })
        }
        (DataType::Struct(fields), ArrowType::Struct(_)) => put_struct(out, fields, array, row),
        (DataType::Array(_) | DataType::Map(..) | DataType::Struct(_), form) => Err(no_bytes(form)),
        (_, ArrowType::Boolean) => {
            out.push(u8::from(array.as_boolean().value(row)));
            Ok(())
        }
        (_, ArrowType::Utf8) => {
            out.extend_from_slice(array.as_string::<i32>().value(row).as_bytes());
            Ok(())
        }
        (_, ArrowType::Binary) => {
            out.extend_from_slice(array.as_binary::<i32>().value(row));
            Ok(())
        }
        (_, ArrowType::Int8) => put_native::<Int8Type>(out, array, row),
        (_, ArrowType::Int16) => put_native::<Int16Type>(out, array, row),
        (_, ArrowType::Int32) => put_native::<Int32Type>(out, array, row),
        (_, ArrowType::Int64) => put_native::<Int64Type>(out, array, row),
        (_, ArrowType::Float32) => put_native::<Float32Type>(out, array, row),
        (_, ArrowType::Float64) => put_native::<Float64Type>(out, array, row),
        (_, ArrowType::Date32) => put_native::<Date32Type>(out, array, row),
        (_, ArrowType::Timestamp(..)) => put_native::<TimestampMicrosecondType>(out, array, row),
        (_, ArrowType::Decimal128(..)) => put_native::<Decimal128Type>(out, array, row),
        (_, other) => Err(no_bytes(other)),
    }
}

fn put_native<T: ArrowPrimitiveType>(out: &mut Vec<u8>, array: &ArrayRef, row: usize) -> Result<()> {
    out.extend_from_slice(array.as_primitive::<T>().value(row).to_byte_slice());
    Ok(())
}

fn put_struct(out: &mut Vec<u8>, fields: &[Field], array: &ArrayRef, row: usize) -> Result<()> {
    let array = array.as_struct();
    let column_of = |field: &Field| {
        let position = array.fields().iter().position(|known| same_name(known.name(), &field.name))?;
        let column = array.column(position);
        (!column.is_null(row)).then_some(column)
    };
    let columns: Vec<Option<&ArrayRef>> = fields.iter().map(column_of).collect();
    let count = columns.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    varint::put(out, count as u64);
    for (column, field) in columns.into_iter().zip(fields).take(count) {
        match column {
            None => out.push(0),
            Some(column) => put_item(out, &field.data_type, column, row)?,
        }
    }
    Ok(())
}
