//! Bytes of one leaf as an Arrow array; the counterpart of `leaf_reader`. Everything returns None for bytes that
//! `leaf_reader` doesn't write.

use std::sync::Arc;

use arrow::array::{
    ArrayData, ArrayRef, BinaryArray, BooleanArray, ListArray, MapArray, NullBufferBuilder, StringArray, StructArray,
    make_array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType as ArrowType;
use pipeline::data_type::DataType;

use super::layout::same_name;
use super::row::take_item;
use super::{LeafKind, varint};

/// Collects the values of a leaf, a few rows at a time.
pub(super) struct LeafBuilder<'a> {
    values: Values<'a>,
    nulls: NullBufferBuilder,
}

enum Values<'a> {
    Struct,
    Boolean(Vec<bool>),
    Fixed { bytes: MutableBuffer, width: usize },
    Bytes { bytes: Vec<u8>, offsets: Vec<i32> },
    Nested(Vec<Option<&'a [u8]>>),
}

impl<'a> LeafBuilder<'a> {
    /// A builder of `rows` rows.
    pub fn new(kind: &LeafKind, rows: usize) -> LeafBuilder<'a> {
        let values = match kind {
            LeafKind::Struct => Values::Struct,
            LeafKind::Value(data_type) => match data_type {
                DataType::Boolean => Values::Boolean(Vec::with_capacity(rows)),
                DataType::String | DataType::Binary => {
                    let mut offsets = Vec::with_capacity(rows + 1);
                    offsets.push(0);
                    Values::Bytes { bytes: Vec::with_capacity(rows * 8), offsets }
                }
                DataType::Array(_) | DataType::Map(..) | DataType::Struct(_) => {
                    Values::Nested(Vec::with_capacity(rows))
                }
                fixed => {
                    let width = to_width(fixed);
                    Values::Fixed { bytes: MutableBuffer::with_capacity(rows * width), width }
                }
            },
        };
        LeafBuilder { values, nulls: NullBufferBuilder::new(rows) }
    }

    /// Appends the values of some rows.
    pub fn append(&mut self, items: &[Option<&'a [u8]>]) -> Option<()> {
        match &mut self.values {
            Values::Struct => {}
            Values::Boolean(values) => {
                for item in items {
                    values.push(match item {
                        None | Some([0]) => false,
                        Some([1]) => true,
                        _ => return None,
                    });
                }
            }
            Values::Fixed { bytes, width } => match width {
                1 => append_fixed::<1>(bytes, items)?,
                2 => append_fixed::<2>(bytes, items)?,
                4 => append_fixed::<4>(bytes, items)?,
                8 => append_fixed::<8>(bytes, items)?,
                _ => append_fixed::<16>(bytes, items)?,
            },
            Values::Bytes { bytes, offsets } => {
                for item in items {
                    bytes.extend_from_slice(item.unwrap_or_default());
                    offsets.push(i32::try_from(bytes.len()).ok()?);
                }
            }
            Values::Nested(values) => {
                values.extend_from_slice(items);
                return Some(());
            }
        }
        if items.iter().all(Option::is_some) {
            self.nulls.append_n_non_nulls(items.len());
        } else {
            items.iter().for_each(|item| self.nulls.append(item.is_some()));
        }
        Some(())
    }

    /// Where a struct is there.
    pub fn finish_presence(mut self) -> Option<NullBuffer> {
        self.nulls.finish()
    }

    /// The array, in the form `wanted` of the leaf's type.
    pub fn finish(mut self, data_type: &DataType, wanted: &ArrowType) -> Option<ArrayRef> {
        let nulls = self.nulls.finish();
        Some(match self.values {
            Values::Struct => return None,
            Values::Boolean(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)),
            Values::Fixed { bytes, width } => {
                let rows = bytes.len() / width;
                let data = ArrayData::builder(wanted.clone()).len(rows).add_buffer(Buffer::from(bytes)).nulls(nulls);
                make_array(data.build().ok()?)
            }
            Values::Bytes { bytes, offsets } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                match data_type {
                    DataType::String => Arc::new(StringArray::try_new(offsets, Buffer::from_vec(bytes), nulls).ok()?),
                    _ => Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls).ok()?),
                }
            }
            Values::Nested(values) => build(data_type, wanted, &values)?,
        })
    }
}

fn to_width(fixed: &DataType) -> usize {
    match fixed {
        DataType::Byte => 1,
        DataType::Short => 2,
        DataType::Integer | DataType::Float | DataType::Date => 4,
        DataType::Decimal { .. } => 16,
        _ => 8,
    }
}

fn append_fixed<const N: usize>(bytes: &mut MutableBuffer, items: &[Option<&[u8]>]) -> Option<()> {
    for item in items {
        let value: [u8; N] = match item {
            None => [0; N],
            Some(value) => (*value).try_into().ok()?,
        };
        bytes.extend_from_slice(&value);
    }
    Some(())
}

/// An array of any type.
fn build(data_type: &DataType, wanted: &ArrowType, values: &[Option<&[u8]>]) -> Option<ArrayRef> {
    let nulls = || {
        let present: BooleanBuffer = values.iter().map(Option::is_some).collect();
        Some(NullBuffer::new(present)).filter(|nulls| nulls.null_count() > 0)
    };
    match (data_type, wanted) {
        (DataType::Array(element), ArrowType::List(field)) => {
            let mut items = Vec::new();
            let offsets = split(values, |count, bytes| {
                for _ in 0..count {
                    items.push(take_item(bytes)?);
                }
                Some(items.len())
            })?;
            let items = build(element, field.data_type(), &items)?;
            Some(Arc::new(ListArray::try_new(Arc::clone(field), offsets, items, nulls()).ok()?))
        }
        (DataType::Map(key, value), ArrowType::Map(field, is_sorted)) => {
            let ArrowType::Struct(pair) = field.data_type() else { return None };
            let (mut keys, mut items) = (Vec::new(), Vec::new());
            let offsets = split(values, |count, bytes| {
                for _ in 0..count {
                    keys.push(take_item(bytes)?);
                    items.push(take_item(bytes)?);
                }
                Some(items.len())
            })?;
            let keys = build(key, pair[0].data_type(), &keys)?;
            let items = build(value, pair[1].data_type(), &items)?;
            let entries = StructArray::try_new(pair.clone(), vec![keys, items], None).ok()?;
            Some(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls(), *is_sorted).ok()?))
        }
        (DataType::Struct(known), ArrowType::Struct(fields)) => {
            let mut columns: Vec<Vec<Option<&[u8]>>> = vec![vec![None; values.len()]; known.len()];
            for (row, value) in values.iter().enumerate() {
                let Some(mut bytes) = *value else { continue };
                let count = usize::try_from(varint::take(&mut bytes)?).ok()?;
                for column in columns.get_mut(..count)? {
                    column[row] = take_item(&mut bytes)?;
                }
                if !bytes.is_empty() {
                    return None;
                }
            }
            let arrays =
                fields.iter().map(|field| match known.iter().position(|known| same_name(&known.name, field.name())) {
                    Some(position) => build(&known[position].data_type, field.data_type(), &columns[position]),
                    None => Some(new_null_array(field.data_type(), values.len())),
                });
            let arrays = arrays.collect::<Option<Vec<_>>>()?;
            let array = StructArray::try_new_with_length(fields.clone(), arrays, nulls(), values.len()).ok()?;
            Some(Arc::new(array))
        }
        (DataType::Array(_) | DataType::Map(..) | DataType::Struct(_), _) => None,
        (plain, wanted) => {
            let mut builder = LeafBuilder::new(&LeafKind::Value(plain.clone()), values.len());
            builder.append(values)?;
            builder.finish(plain, wanted)
        }
    }
}

/// Reads the count in front of each value, and has `take` read as many items, which returns how many there are by now.
fn split<'a>(
    values: &[Option<&'a [u8]>],
    mut take: impl FnMut(u64, &mut &'a [u8]) -> Option<usize>,
) -> Option<OffsetBuffer<i32>> {
    let mut offsets = Vec::with_capacity(values.len() + 1);
    let mut end = 0;
    offsets.push(0);
    for value in values {
        if let Some(mut bytes) = *value {
            let count = varint::take(&mut bytes)?;
            let total = take(count, &mut bytes)?;
            if !bytes.is_empty() {
                return None;
            }
            end = i32::try_from(total).ok()?;
        }
        offsets.push(end);
    }
    Some(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}
