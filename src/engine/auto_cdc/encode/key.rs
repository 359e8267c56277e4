//! Keys and sequences as bytes whose order is the order of their values, column by column.
//!
//! Prefix-free: no key's bytes begin another key's, so that keys, or a key and a sequence, can be put one behind the
//! other. A column:
//!
//! | type | bytes |
//! |---|---|
//! | boolean | 0 or 1 |
//! | integers, date, timestamps | big-endian, sign bit flipped; 1, 2, 4 or 8 bytes |
//! | decimal | the unscaled value as 16 bytes big-endian, sign bit flipped |
//! | float, double | big-endian; positive: sign bit flipped, negative: all bits. -0.0 is 0.0; every NaN is the same, above all |
//! | string, binary | the bytes, each 00 as 00 FF, then 00 00 |
//! | struct | its fields in order, each 00 for NULL (sorts first) or 01 and its value |
//!
//! A key or a sequence itself is never NULL ([`count_nulls`] is asked before); only fields of a struct may be.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, Decimal128Array, PrimitiveArray, StringArray,
    StructArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use pipeline::data_type::DataType;

use super::{ByteRows, malformed, varint};
use crate::data_type::{UTC, from_arrow, to_arrow};
use crate::error::{Error, Result};

/// Turns columns of fixed types into ordered bytes and back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCodec {
    types: Vec<DataType>,
}

impl KeyCodec {
    /// A codec for columns of these types; for a sequence there is one. Error: `non-orderable-key` for arrays and maps.
    pub fn new(types: Vec<DataType>) -> Result<KeyCodec> {
        match types.iter().find(|data_type| !data_type.has_order()) {
            Some(data_type) => Err(Error::user(
                "non-orderable-key",
                format!("values of type {data_type} have no order"),
                "take keys and sequences from columns without arrays and maps",
            )),
            None => Ok(KeyCodec { types }),
        }
    }

    /// The types of the columns.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The bytes of each row of `columns`, which have this codec's types in any of Arrow's forms of them and no NULL.
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<ByteRows> {
        if columns.len() != self.types.len() {
            return Err(Error::Internal(format!("{} key columns, not {}", columns.len(), self.types.len())));
        }
        let columns = columns.iter().zip(&self.types).map(|(column, data_type)| in_known_form(column, data_type));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let rows = columns.first().map_or(0, |column| column.len());
        let mut lengths = vec![0; rows];
        for column in &columns {
            if column.len() != rows || column.logical_null_count() > 0 {
                return Err(Error::Internal("a key or sequence to encode is NULL".into()));
            }
            measure(column, Place::Column, &mut lengths);
        }
        let (mut out, mut cursors) = ByteRows::with_lengths(&lengths);
        for column in &columns {
            write(column, Place::Column, out.bytes_mut(), &mut cursors);
        }
        Ok(out)
    }

    /// The columns back from the bytes of rows. Error: `side-table-corrupted`.
    pub fn decode<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let mut rows: Vec<&[u8]> = rows.into_iter().collect();
        let columns = self.types.iter().map(|data_type| read(data_type, None, &mut rows).ok_or(malformed("a key")));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        match rows.iter().all(|rest| rest.is_empty()) {
            true => Ok(columns),
            false => Err(malformed("a key that is too long")),
        }
    }
}

/// The NULLs of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NullCount {
    pub count: usize,
    /// The numbers of the first rows with NULL.
    pub rows: Vec<usize>,
}

/// Counts the NULLs of each column, with up to `examples` row numbers.
pub fn count_nulls(columns: &[ArrayRef], examples: usize) -> Vec<NullCount> {
    let nulls_of = |column: &ArrayRef| match column.logical_nulls() {
        Some(nulls) if nulls.null_count() > 0 => NullCount {
            count: nulls.null_count(),
            rows: (0..column.len()).filter(|&row| nulls.is_null(row)).take(examples).collect(),
        },
        _ => NullCount { count: 0, rows: Vec::new() },
    };
    columns.iter().map(nulls_of).collect()
}

/// The column in a form that the functions below read: as it is, or cast to the form that `to_arrow` gives.
pub(super) fn in_known_form(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let form = column.data_type();
    let is_known = match (data_type, form) {
        (DataType::String, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View) => true,
        (DataType::Binary, ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView) => true,
        // Zones are only for showing: the value counts from 1970 UTC.
        (DataType::Timestamp, ArrowType::Timestamp(TimeUnit::Microsecond, Some(_))) => true,
        (DataType::Struct(_) | DataType::Array(_) | DataType::Map(..), _) => false,
        (_, form) => *form == to_arrow(data_type),
    };
    if is_known {
        return Ok(Arc::clone(column));
    }
    let wanted = to_arrow(data_type);
    if *form == wanted {
        return Ok(Arc::clone(column));
    }
    if from_arrow(form).is_none_or(|found| !same_type(&found, data_type)) && *form != ArrowType::Null {
        return Err(Error::Internal(format!("a column of type {form} where {data_type} was expected")));
    }
    cast(column, &wanted).map_err(|error| Error::Internal(format!("cannot read {form} as {data_type}: {error}")))
}

/// Whether the types are the same but for names, nullability and comments within.
fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Array(a), DataType::Array(b)) => same_type(a, b),
        (DataType::Map(a, x), DataType::Map(b, y)) => same_type(a, b) && same_type(x, y),
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_type(&a.data_type, &b.data_type))
        }
        (a, b) => a == b,
    }
}

/// Where values stand: as a column, or as a field of a struct, which has a marker byte and is there only in the rows
/// where its struct is (`None`: in all).
#[derive(Clone, Copy)]
enum Place<'a> {
    Column,
    Field(Option<&'a NullBuffer>),
}

const NULL: u8 = 0;
const PRESENT: u8 = 1;

/// Calls `value` for each row that has one, and `null` for each that has the marker of NULL.
#[inline]
fn for_each_row(array: &dyn Array, place: Place, mut value: impl FnMut(usize), mut null: impl FnMut(usize)) {
    match (place, array.nulls()) {
        (Place::Column, _) | (Place::Field(None), None) => (0..array.len()).for_each(value),
        (Place::Field(visible), nulls) => {
            for row in 0..array.len() {
                if visible.is_some_and(|visible| visible.is_null(row)) {
                    continue;
                }
                match nulls.is_some_and(|nulls| nulls.is_null(row)) {
                    true => null(row),
                    false => value(row),
                }
            }
        }
    }
}

/// Adds the length of each row's value.
fn measure(array: &ArrayRef, place: Place, lengths: &mut [usize]) {
    let marker = usize::from(matches!(place, Place::Field(_)));
    let mut nulls = Vec::new();
    macro_rules! add {
        ($length:expr) => {{
            let length = $length;
            for_each_row(array, place, |row| lengths[row] += marker + length(row), |row| nulls.push(row))
        }};
    }
    match array.data_type() {
        ArrowType::Utf8 => {
            let array = array.as_string::<i32>();
            add!(escaped_len(array.value_data(), |row| array.value(row).as_bytes()))
        }
        ArrowType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            add!(escaped_len(array.value_data(), |row| array.value(row).as_bytes()))
        }
        ArrowType::Utf8View => add!(|row| escape_len(array.as_string_view().value(row).as_bytes())),
        ArrowType::Binary => {
            let array = array.as_binary::<i32>();
            add!(escaped_len(array.value_data(), |row| array.value(row)))
        }
        ArrowType::LargeBinary => {
            let array = array.as_binary::<i64>();
            add!(escaped_len(array.value_data(), |row| array.value(row)))
        }
        ArrowType::BinaryView => add!(|row| escape_len(array.as_binary_view().value(row))),
        ArrowType::Struct(_) => {
            add!(|_| 0);
            let array = array.as_struct();
            let visible = visible_fields(array, place);
            for field in array.columns() {
                measure(field, Place::Field(visible.as_ref()), lengths);
            }
        }
        fixed => {
            let width = fixed.primitive_width().unwrap_or(1);
            add!(|_| width)
        }
    }
    for row in nulls {
        lengths[row] += 1;
    }
}

/// In which rows the fields of a struct are written.
fn visible_fields(array: &StructArray, place: Place) -> Option<NullBuffer> {
    match place {
        Place::Column => None,
        Place::Field(visible) => NullBuffer::union(visible, array.nulls()),
    }
}

/// The length of a row's escaped value; one look at all the bytes saves one at each row's.
fn escaped_len<'a>(all: &[u8], value: impl Fn(usize) -> &'a [u8]) -> impl Fn(usize) -> usize {
    let has_zero = memchr::memchr(0, all).is_some();
    move |row| if has_zero { escape_len(value(row)) } else { value(row).len() + 2 }
}

fn escape_len(value: &[u8]) -> usize {
    value.len() + memchr::memchr_iter(0, value).count() + 2
}

/// Writes each row's value at its cursor and moves the cursor behind it.
fn write(array: &ArrayRef, place: Place, out: &mut [u8], cursors: &mut [usize]) {
    match array.data_type() {
        ArrowType::Boolean => {
            let array = array.as_boolean();
            write_fixed(array, place, out, cursors, |row| [u8::from(array.value(row))]);
        }
        ArrowType::Int8 => write_primitive::<Int8Type, 1>(array, place, out, cursors, |v| flip(v.to_be_bytes())),
        ArrowType::Int16 => write_primitive::<Int16Type, 2>(array, place, out, cursors, |v| flip(v.to_be_bytes())),
        ArrowType::Int32 => write_primitive::<Int32Type, 4>(array, place, out, cursors, |v| flip(v.to_be_bytes())),
        ArrowType::Int64 => write_primitive::<Int64Type, 8>(array, place, out, cursors, |v| flip(v.to_be_bytes())),
        ArrowType::Date32 => write_primitive::<Date32Type, 4>(array, place, out, cursors, |v| flip(v.to_be_bytes())),
        ArrowType::Timestamp(..) => {
            write_primitive::<TimestampMicrosecondType, 8>(array, place, out, cursors, |v| flip(v.to_be_bytes()))
        }
        ArrowType::Decimal128(..) => {
            write_primitive::<Decimal128Type, 16>(array, place, out, cursors, |v| flip(v.to_be_bytes()))
        }
        ArrowType::Float32 => write_primitive::<Float32Type, 4>(array, place, out, cursors, |v| {
            let bits = if v.is_nan() { f32::NAN.to_bits() & !(1 << 31) } else { (v + 0.0).to_bits() };
            (if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }).to_be_bytes()
        }),
        ArrowType::Float64 => write_primitive::<Float64Type, 8>(array, place, out, cursors, |v| {
            let bits = if v.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { (v + 0.0).to_bits() };
            (if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes()
        }),
        ArrowType::Utf8 => {
            let array = array.as_string::<i32>();
            write_bytes(array, place, out, cursors, |row| array.value(row).as_bytes());
        }
        ArrowType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            write_bytes(array, place, out, cursors, |row| array.value(row).as_bytes());
        }
        ArrowType::Utf8View => {
            let array = array.as_string_view();
            write_bytes(array, place, out, cursors, |row| array.value(row).as_bytes());
        }
        ArrowType::Binary => {
            let array = array.as_binary::<i32>();
            write_bytes(array, place, out, cursors, |row| array.value(row));
        }
        ArrowType::LargeBinary => {
            let array = array.as_binary::<i64>();
            write_bytes(array, place, out, cursors, |row| array.value(row));
        }
        ArrowType::BinaryView => {
            let array = array.as_binary_view();
            write_bytes(array, place, out, cursors, |row| array.value(row));
        }
        ArrowType::Struct(_) => {
            let array = array.as_struct();
            write_fixed(array, place, out, cursors, |_| []);
            let visible = visible_fields(array, place);
            for field in array.columns() {
                write(field, Place::Field(visible.as_ref()), out, cursors);
            }
        }
        other => unreachable!("`in_known_form` lets no {other} through"),
    }
}

/// Big-endian two's complement with the sign bit flipped sorts as the integers do.
fn flip<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes[0] ^= 0x80;
    bytes
}

fn write_primitive<T: ArrowPrimitiveType, const N: usize>(
    array: &ArrayRef,
    place: Place,
    out: &mut [u8],
    cursors: &mut [usize],
    bytes: impl Fn(T::Native) -> [u8; N],
) {
    let values = array.as_primitive::<T>().values();
    write_fixed(array, place, out, cursors, |row| bytes(values[row]));
}

#[inline]
fn write_fixed<const N: usize>(
    array: &dyn Array,
    place: Place,
    out: &mut [u8],
    cursors: &mut [usize],
    value: impl Fn(usize) -> [u8; N],
) {
    write_values(array, place, out, cursors, |out, row| {
        out[..N].copy_from_slice(&value(row));
        N
    });
}

fn write_bytes<'a>(
    array: &dyn Array,
    place: Place,
    out: &mut [u8],
    cursors: &mut [usize],
    value: impl Fn(usize) -> &'a [u8],
) {
    write_values(array, place, out, cursors, |out, row| {
        let mut at = 0;
        let mut rest = value(row);
        // 00 becomes 00 FF, so that the end, 00 00, is below whatever may follow.
        while let Some(zero) = memchr::memchr(0, rest) {
            out[at..=at + zero].copy_from_slice(&rest[..=zero]);
            out[at + zero + 1] = 0xff;
            at += zero + 2;
            rest = &rest[zero + 1..];
        }
        out[at..at + rest.len()].copy_from_slice(rest);
        // The two zeros of the end are there already.
        at + rest.len() + 2
    });
}

/// `value` writes a row's value to the front of what it is given and returns its length.
#[inline]
fn write_values(
    array: &dyn Array,
    place: Place,
    out: &mut [u8],
    cursors: &mut [usize],
    value: impl Fn(&mut [u8], usize) -> usize,
) {
    let marker = usize::from(matches!(place, Place::Field(_)));
    let mut nulls = Vec::new();
    for_each_row(
        array,
        place,
        |row| {
            let at = cursors[row];
            if marker == 1 {
                out[at] = PRESENT;
            }
            cursors[row] = at + marker + value(&mut out[at + marker..], row);
        },
        |row| nulls.push(row),
    );
    for row in nulls {
        out[cursors[row]] = NULL;
        cursors[row] += 1;
    }
}

/// Which rows have a value, by the markers of a field; `visible`: in which rows its struct is.
fn read_markers(visible: &BooleanBuffer, rows: &mut [&[u8]]) -> Option<BooleanBuffer> {
    let mut present = Vec::with_capacity(rows.len());
    for (row, rest) in rows.iter_mut().enumerate() {
        present.push(match visible.value(row) {
            false => false,
            true => match varint::take_exactly(rest, 1)? {
                [NULL] => false,
                [PRESENT] => true,
                _ => return None,
            },
        });
    }
    Some(BooleanBuffer::from(present))
}

/// Takes a column off the front of the rows. `visible` is None for a column itself; for a field it says in which rows
/// its struct is. None: the bytes are malformed.
fn read(data_type: &DataType, visible: Option<&BooleanBuffer>, rows: &mut [&[u8]]) -> Option<ArrayRef> {
    let present = match visible {
        None => None,
        Some(visible) => Some(read_markers(visible, rows)?),
    };
    let present = present.as_ref();
    Some(match data_type {
        DataType::Boolean => {
            let mut values = Vec::with_capacity(rows.len());
            each_fixed::<1>(present, rows, |bytes| {
                values.push(bytes.is_some_and(|[byte]| byte == 1));
                bytes.is_none_or(|[byte]| byte <= 1)
            })?;
            Arc::new(BooleanArray::new(values.into(), nulls(present)))
        }
        DataType::Byte => read_primitive::<Int8Type, 1>(present, rows, |b| i8::from_be_bytes(flip(b)))?,
        DataType::Short => read_primitive::<Int16Type, 2>(present, rows, |b| i16::from_be_bytes(flip(b)))?,
        DataType::Integer => read_primitive::<Int32Type, 4>(present, rows, |b| i32::from_be_bytes(flip(b)))?,
        DataType::Long => read_primitive::<Int64Type, 8>(present, rows, |b| i64::from_be_bytes(flip(b)))?,
        DataType::Date => read_primitive::<Date32Type, 4>(present, rows, |b| i32::from_be_bytes(flip(b)))?,
        DataType::TimestampNtz | DataType::Timestamp => {
            let values = primitive::<TimestampMicrosecondType, 8>(present, rows, |b| i64::from_be_bytes(flip(b)))?;
            Arc::new(values.with_timezone_opt((*data_type == DataType::Timestamp).then_some(UTC)))
        }
        DataType::Decimal { precision, scale } => {
            let values: Decimal128Array =
                primitive::<Decimal128Type, 16>(present, rows, |b| i128::from_be_bytes(flip(b)))?;
            Arc::new(values.with_precision_and_scale(*precision, *scale).ok()?)
        }
        DataType::Float => read_primitive::<Float32Type, 4>(present, rows, |b| {
            let bits = u32::from_be_bytes(b);
            f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits })
        })?,
        DataType::Double => read_primitive::<Float64Type, 8>(present, rows, |b| {
            let bits = u64::from_be_bytes(b);
            f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
        })?,
        DataType::Binary => Arc::new(read_bytes(present, rows)?),
        DataType::String => {
            let (offsets, values, nulls) = read_bytes(present, rows)?.into_parts();
            Arc::new(StringArray::try_new(offsets, values, nulls).ok()?)
        }
        DataType::Struct(fields) => {
            let all = BooleanBuffer::new_set(rows.len());
            let visible = present.unwrap_or(&all);
            let columns = fields.iter().map(|field| read(&field.data_type, Some(visible), rows));
            let columns = columns.collect::<Option<Vec<_>>>()?;
            let ArrowType::Struct(fields) = to_arrow(data_type) else { return None };
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls(present), rows.len()).ok()?)
        }
        DataType::Array(_) | DataType::Map(..) => return None,
    })
}

fn nulls(present: Option<&BooleanBuffer>) -> Option<NullBuffer> {
    present.map(|present| NullBuffer::new(present.clone())).filter(|nulls| nulls.null_count() > 0)
}

/// Takes N bytes of each row that has a value; `value` says whether they are well-formed.
fn each_fixed<const N: usize>(
    present: Option<&BooleanBuffer>,
    rows: &mut [&[u8]],
    mut value: impl FnMut(Option<[u8; N]>) -> bool,
) -> Option<()> {
    for (row, rest) in rows.iter_mut().enumerate() {
        let is_good = if present.is_none_or(|present| present.value(row)) {
            let (bytes, after) = rest.split_first_chunk::<N>()?;
            *rest = after;
            value(Some(*bytes))
        } else {
            value(None)
        };
        if !is_good {
            return None;
        }
    }
    Some(())
}

fn primitive<T: ArrowPrimitiveType, const N: usize>(
    present: Option<&BooleanBuffer>,
    rows: &mut [&[u8]],
    value: impl Fn([u8; N]) -> T::Native,
) -> Option<PrimitiveArray<T>> {
    let mut values = Vec::with_capacity(rows.len());
    each_fixed::<N>(present, rows, |bytes| {
        values.push(bytes.map_or_else(T::Native::default, &value));
        true
    })?;
    Some(PrimitiveArray::new(values.into(), nulls(present)))
}

fn read_primitive<T: ArrowPrimitiveType, const N: usize>(
    present: Option<&BooleanBuffer>,
    rows: &mut [&[u8]],
    value: impl Fn([u8; N]) -> T::Native,
) -> Option<ArrayRef> {
    Some(Arc::new(primitive::<T, N>(present, rows, value)?))
}

fn read_bytes(present: Option<&BooleanBuffer>, rows: &mut [&[u8]]) -> Option<BinaryArray> {
    let mut values = BinaryBuilder::with_capacity(rows.len(), rows.len() * 8);
    let mut value = Vec::new();
    for (row, rest) in rows.iter_mut().enumerate() {
        if present.is_some_and(|present| !present.value(row)) {
            values.append_null();
            continue;
        }
        value.clear();
        loop {
            let zero = memchr::memchr(0, rest)?;
            let after = *rest.get(zero + 1)?;
            value.extend_from_slice(&rest[..zero]);
            *rest = &rest[zero + 2..];
            match after {
                0 => break,
                0xff => value.push(0),
                _ => return None,
            }
        }
        values.append_value(&value);
    }
    Some(values.finish())
}
