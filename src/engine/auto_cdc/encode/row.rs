//! Rows of columns as bytes: varint count of leaves without the NULLs at the end, then the leaves as items of
//! `leaf_reader`. The same values are the same bytes, whenever they were written: a layout grows only at its end, and
//! NULLs at the end aren't written.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType as ArrowType, Fields};
use pipeline::data_type::{DataType, Field};

use super::leaf_builder::LeafBuilder;
use super::leaf_reader::{LeafReader, Values};
use super::{ByteRows, Layout, LeafKind, malformed, varint};
use crate::error::{Error, Result};

/// Turns rows of a layout into bytes and back.
#[derive(Debug, Clone)]
pub struct RowCodec {
    layout: Layout,
    /// By leaf: whether equal values may have different bytes.
    has_floats: Vec<bool>,
}

impl RowCodec {
    /// A codec for rows of this layout, and of any shorter one that it has grown from.
    pub fn new(layout: &Layout) -> RowCodec {
        let has_floats = layout.leaves().iter().map(|leaf| match &leaf.kind {
            LeafKind::Struct => false,
            LeafKind::Value(data_type) => has_floats(data_type),
        });
        RowCodec { has_floats: has_floats.collect(), layout: layout.clone() }
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The bytes of each row of a batch. Leaves whose column isn't in the batch are NULL; a column that isn't in the
    /// layout is an internal error ([`Layout::extend`] comes first).
    pub fn encode(&self, batch: &RecordBatch) -> Result<ByteRows> {
        let mut leaves: Vec<Option<LeafReader>> = self.layout.leaves().iter().map(|_| None).collect();
        let mut path = Vec::new();
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            self.find_leaves(&mut leaves, &mut path, field.name(), column, None)?;
        }
        let counts = Counts::new(&leaves, batch.num_rows());
        let mut lengths: Vec<usize> = match &counts.by_row {
            None => vec![varint::len(counts.least as u64); batch.num_rows()],
            Some(counts) => counts.iter().map(|&count| varint::len(count as u64)).collect(),
        };
        for (number, leaf) in leaves.iter().enumerate() {
            measure(leaf.as_ref(), &counts, number, &mut lengths);
        }
        let (mut rows, mut cursors) = ByteRows::with_lengths(&lengths);
        let out = rows.bytes_mut();
        for (row, cursor) in cursors.iter_mut().enumerate() {
            *cursor = varint::write(out, *cursor, counts.of(row) as u64);
        }
        for (number, leaf) in leaves.iter().enumerate() {
            write(leaf.as_ref(), &counts, number, out, &mut cursors);
        }
        Ok(rows)
    }

    /// The columns `fields` of rows. Columns and fields that the layout doesn't have are NULL.
    ///
    /// Errors: `side-table-corrupted`.
    pub fn decode(&self, rows: &[&[u8]], fields: &Fields) -> Result<Vec<ArrayRef>> {
        let mut wanted = vec![false; self.layout.len()];
        for field in fields {
            self.mark(&mut wanted, &mut vec![field.name().clone()], field.data_type());
        }
        let build = |(leaf, wanted): (&super::Leaf, &bool)| wanted.then(|| LeafBuilder::new(&leaf.kind, rows.len()));
        let mut builders: Vec<Option<LeafBuilder>> = self.layout.leaves().iter().zip(&wanted).map(build).collect();
        split_columns(rows, &mut builders).ok_or_else(|| malformed("a row"))?;
        let columns = fields.iter().map(|field| {
            let path = &mut vec![field.name().clone()];
            self.finish(&mut builders, path, field.data_type(), rows.len()).ok_or_else(|| malformed("a row's value"))
        });
        columns.collect()
    }

    /// The leaves of a row, as many as the layout has; `None` is NULL.
    pub fn leaves<'a>(&self, row: &'a [u8]) -> Leaves<'a> {
        let mut rest = row;
        let written = varint::take(&mut rest).unwrap_or(0) as usize;
        Leaves { rest, written, left: self.layout.len() }
    }

    /// Whether two values of a leaf are equal as SQL compares them in groups: NULL equals NULL, -0.0 equals 0.0, NaN
    /// equals NaN.
    pub fn equal_leaf(&self, leaf: usize, a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
        match (a, b) {
            (a, b) if a == b => true,
            (Some(a), Some(b)) if self.has_floats[leaf] => match &self.layout.leaves()[leaf].kind {
                LeafKind::Value(data_type) => equal_value(data_type, a, b),
                LeafKind::Struct => false,
            },
            _ => false,
        }
    }

    /// Whether two rows are equal in all leaves, as [`RowCodec::equal_leaf`] says.
    pub fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        if a == b {
            return true;
        }
        self.has_floats.contains(&true)
            && self.leaves(a).zip(self.leaves(b)).enumerate().all(|(leaf, (a, b))| self.equal_leaf(leaf, a, b))
    }

    /// Finds the readers of a column's leaves.
    fn find_leaves(
        &self,
        leaves: &mut [Option<LeafReader>],
        path: &mut Vec<String>,
        name: &str,
        column: &ArrayRef,
        parents: Option<&NullBuffer>,
    ) -> Result<()> {
        path.push(name.to_string());
        let number = self.layout.position(path);
        let number = number.ok_or_else(|| Error::Internal(format!("no leaf for column `{}`", path.join("."))))?;
        let kind = &self.layout.leaves()[number].kind;
        if *column.data_type() == ArrowType::Null {
            path.pop();
            return Ok(());
        }
        leaves[number] = Some(LeafReader::new(column, kind, parents)?);
        if *kind == LeafKind::Struct {
            let Some(column) = column.as_struct_opt() else {
                return Err(Error::Internal(format!("column `{}` is not a struct", path.join("."))));
            };
            let parents = NullBuffer::union(parents, column.nulls());
            for (field, child) in column.fields().iter().zip(column.columns()) {
                self.find_leaves(leaves, path, field.name(), child, parents.as_ref())?;
            }
        }
        path.pop();
        Ok(())
    }

    fn mark(&self, wanted: &mut [bool], path: &mut Vec<String>, form: &ArrowType) {
        let Some(number) = self.layout.position(path) else { return };
        wanted[number] = true;
        if let (LeafKind::Struct, ArrowType::Struct(fields)) = (&self.layout.leaves()[number].kind, form) {
            for field in fields {
                path.push(field.name().clone());
                self.mark(wanted, path, field.data_type());
                path.pop();
            }
        }
    }

    fn finish(
        &self,
        builders: &mut [Option<LeafBuilder>],
        path: &mut Vec<String>,
        form: &ArrowType,
        rows: usize,
    ) -> Option<ArrayRef> {
        let Some(number) = self.layout.position(path) else { return Some(new_null_array(form, rows)) };
        let builder = builders[number].take()?;
        match (&self.layout.leaves()[number].kind, form) {
            (LeafKind::Value(data_type), form) => builder.finish(data_type, form),
            (LeafKind::Struct, ArrowType::Struct(fields)) => {
                let nulls = builder.finish_presence();
                let columns = fields.iter().map(|field| {
                    path.push(field.name().clone());
                    let column = self.finish(builders, path, field.data_type(), rows);
                    path.pop();
                    column
                });
                let columns = columns.collect::<Option<Vec<_>>>()?;
                Some(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows).ok()?))
            }
            (LeafKind::Struct, _) => None,
        }
    }
}

/// Appends the row of these leaves.
pub fn join<'a>(leaves: impl Iterator<Item = Option<&'a [u8]>> + Clone, out: &mut Vec<u8>) {
    let count = leaves.clone().enumerate().filter(|(_, leaf)| leaf.is_some()).last().map_or(0, |(last, _)| last + 1);
    varint::put(out, count as u64);
    for leaf in leaves.take(count) {
        match leaf {
            None => out.push(0),
            Some(value) => {
                varint::put(out, value.len() as u64 + 1);
                out.extend_from_slice(value);
            }
        }
    }
}

/// The leaves of a row in order.
#[derive(Debug, Clone)]
pub struct Leaves<'a> {
    rest: &'a [u8],
    written: usize,
    left: usize,
}

impl<'a> Iterator for Leaves<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        self.left = self.left.checked_sub(1)?;
        if self.written == 0 {
            return Some(None);
        }
        self.written -= 1;
        Some(take_item(&mut self.rest).expect("a row is as `RowCodec` wrote it: blocks have checksums"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Leaves<'_> {}

/// Takes an item: `Some(None)` is NULL, `None` malformed.
#[inline]
pub(super) fn take_item<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match varint::take(bytes)? {
        0 => Some(None),
        len => Some(Some(varint::take_exactly(bytes, usize::try_from(len - 1).ok()?)?)),
    }
}

/// How many leaves each row has written: all before its last one that isn't NULL, and that.
struct Counts {
    /// What every row has at least.
    least: usize,
    /// None: every row has the least.
    by_row: Option<Vec<usize>>,
}

impl Counts {
    fn new(leaves: &[Option<LeafReader>], rows: usize) -> Counts {
        let is_full = |leaf: &Option<LeafReader>| leaf.as_ref().is_some_and(|leaf| leaf.nulls.is_none());
        let least = leaves.iter().rposition(is_full).map_or(0, |last| last + 1);
        let mut by_row = None;
        for (number, leaf) in leaves.iter().enumerate().skip(least) {
            let Some(nulls) = leaf.as_ref().and_then(|leaf| leaf.nulls.as_ref()) else { continue };
            let by_row = by_row.get_or_insert_with(|| vec![least; rows]);
            for row in nulls.valid_indices() {
                by_row[row] = number + 1;
            }
        }
        Counts { least, by_row }
    }

    fn of(&self, row: usize) -> usize {
        self.by_row.as_ref().map_or(self.least, |by_row| by_row[row])
    }

    /// Whether leaf `number` of a row is written.
    #[inline]
    fn has(&self, number: usize, row: usize) -> bool {
        number < self.least || self.by_row.as_ref().is_some_and(|by_row| number < by_row[row])
    }
}

/// Calls `value` for the rows that have a value in a leaf, and `null` for those that have NULL written.
#[inline]
fn for_each_row<T>(
    nulls: Option<&NullBuffer>,
    counts: &Counts,
    number: usize,
    by_row: &mut [T],
    mut value: impl FnMut(usize, &mut T),
    mut null: impl FnMut(&mut T),
) {
    match nulls {
        None => by_row.iter_mut().enumerate().for_each(|(row, of_row)| value(row, of_row)),
        Some(nulls) => {
            for (row, of_row) in by_row.iter_mut().enumerate() {
                if nulls.is_valid(row) {
                    value(row, of_row);
                } else if counts.has(number, row) {
                    null(of_row);
                }
            }
        }
    }
}

/// Writes NULL, or says how long it is, where a leaf has no column.
fn for_each_absent<T>(counts: &Counts, number: usize, by_row: &mut [T], mut null: impl FnMut(&mut T)) {
    for (row, of_row) in by_row.iter_mut().enumerate() {
        if counts.has(number, row) {
            null(of_row);
        }
    }
}

fn measure(leaf: Option<&LeafReader>, counts: &Counts, number: usize, lengths: &mut [usize]) {
    let null = |length: &mut usize| *length += 1;
    let Some(LeafReader { values, nulls }) = leaf else {
        return for_each_absent(counts, number, lengths, null);
    };
    let nulls = nulls.as_ref();
    macro_rules! add {
        ($length:expr) => {{
            let length = $length;
            for_each_row(nulls, counts, number, lengths, |row, sum| *sum += item_len(length(row)), null)
        }};
    }
    match values {
        Values::Struct => add!(|_| 0),
        Values::Boolean(_) => add!(|_| 1),
        Values::Fixed { width, .. } => add!(|_| *width),
        Values::String(array) => add!(|row| array.value_length(row) as usize),
        Values::LargeString(array) => add!(|row| array.value_length(row) as usize),
        Values::Binary(array) => add!(|row| array.value_length(row) as usize),
        Values::LargeBinary(array) => add!(|row| array.value_length(row) as usize),
        // The low half of a view is the length.
        Values::StringView(array) => add!(|row: usize| array.views()[row] as u32 as usize),
        Values::BinaryView(array) => add!(|row: usize| array.views()[row] as u32 as usize),
        Values::Nested(rows) => add!(|row| rows.get(row).len()),
    }
}

#[inline]
fn item_len(len: usize) -> usize {
    varint::len(len as u64 + 1) + len
}

fn write(leaf: Option<&LeafReader>, counts: &Counts, number: usize, out: &mut [u8], cursors: &mut [usize]) {
    // NULL is the byte 0, which is there already.
    let null = |cursor: &mut usize| *cursor += 1;
    let Some(LeafReader { values, nulls }) = leaf else {
        return for_each_absent(counts, number, cursors, null);
    };
    let nulls = nulls.as_ref();
    macro_rules! put {
        ($bytes:expr) => {{
            let bytes = $bytes;
            for_each_row(
                nulls,
                counts,
                number,
                cursors,
                |row, cursor| {
                    let bytes: &[u8] = bytes(row);
                    let at = varint::write(out, *cursor, bytes.len() as u64 + 1);
                    *cursor = at + bytes.len();
                    out[at..*cursor].copy_from_slice(bytes);
                },
                null,
            )
        }};
    }
    macro_rules! put_fixed {
        ($width:literal, $bytes:expr) => {{
            let (values, _) = $bytes.as_slice().as_chunks::<$width>();
            for_each_row(
                nulls,
                counts,
                number,
                cursors,
                |row, cursor| {
                    let item = &mut out[*cursor..*cursor + 1 + $width];
                    item[0] = $width + 1;
                    item[1..].copy_from_slice(&values[row]);
                    *cursor += 1 + $width;
                },
                null,
            )
        }};
    }
    match values {
        Values::Struct => put!(|_| &[]),
        Values::Boolean(array) => put!(|row| if array.value(row) { &[1] } else { &[0] }),
        Values::Fixed { bytes, width } => match width {
            1 => put_fixed!(1, bytes),
            2 => put_fixed!(2, bytes),
            4 => put_fixed!(4, bytes),
            8 => put_fixed!(8, bytes),
            _ => put_fixed!(16, bytes),
        },
        Values::String(array) => put!(|row| array.value(row).as_bytes()),
        Values::LargeString(array) => put!(|row| array.value(row).as_bytes()),
        Values::StringView(array) => put!(|row| array.value(row).as_bytes()),
        Values::Binary(array) => put!(|row| array.value(row)),
        Values::LargeBinary(array) => put!(|row| array.value(row)),
        Values::BinaryView(array) => put!(|row| array.value(row)),
        Values::Nested(rows) => put!(|row| rows.get(row)),
    }
}

/// So many rows are split at once: their bytes stay in the processor's cache from leaf to leaf.
const ROWS_AT_ONCE: usize = 256;

/// Hands each builder the items of its leaf.
fn split_columns<'a>(rows: &[&'a [u8]], builders: &mut [Option<LeafBuilder<'a>>]) -> Option<()> {
    let mut items: Vec<Option<&[u8]>> = Vec::with_capacity(ROWS_AT_ONCE);
    let mut rests: Vec<(usize, &[u8])> = Vec::with_capacity(ROWS_AT_ONCE);
    for rows in rows.chunks(ROWS_AT_ONCE) {
        rests.clear();
        for row in rows {
            let mut rest = *row;
            let count = usize::try_from(varint::take(&mut rest)?).ok()?;
            if count > builders.len() {
                return None;
            }
            rests.push((count, rest));
        }
        for (number, builder) in builders.iter_mut().enumerate() {
            items.clear();
            for (count, rest) in &mut rests {
                items.push(if number < *count { take_item(rest)? } else { None });
            }
            if let Some(builder) = builder {
                builder.append(&items)?;
            }
        }
        if rests.iter().any(|(_, rest)| !rest.is_empty()) {
            return None;
        }
    }
    Some(())
}

fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float | DataType::Double => true,
        DataType::Array(element) => has_floats(element),
        DataType::Map(key, value) => has_floats(key) || has_floats(value),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(&field.data_type)),
        _ => false,
    }
}

fn equal_value(data_type: &DataType, a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    match data_type {
        DataType::Float => match (a.try_into(), b.try_into()) {
            (Ok(a), Ok(b)) => {
                let (a, b) = (f32::from_le_bytes(a), f32::from_le_bytes(b));
                a == b || a.is_nan() && b.is_nan()
            }
            _ => false,
        },
        DataType::Double => match (a.try_into(), b.try_into()) {
            (Ok(a), Ok(b)) => {
                let (a, b) = (f64::from_le_bytes(a), f64::from_le_bytes(b));
                a == b || a.is_nan() && b.is_nan()
            }
            _ => false,
        },
        DataType::Array(element) => equal_items(a, b, |_| Some(element)),
        DataType::Map(key, value) => equal_pairs(a, b, key, value),
        DataType::Struct(fields) => {
            equal_items(a, b, |number| fields.get(number).map(|field: &Field| &field.data_type))
        }
        _ => false,
    }
}

/// Compares a count and as many items; `type_of` the n-th.
fn equal_items<'t>(mut a: &[u8], mut b: &[u8], type_of: impl Fn(usize) -> Option<&'t DataType>) -> bool {
    let (Some(count), Some(other)) = (varint::take(&mut a), varint::take(&mut b)) else { return false };
    count == other && (0..count as usize).all(|number| equal_item(&mut a, &mut b, type_of(number)))
}

fn equal_pairs(mut a: &[u8], mut b: &[u8], key: &DataType, value: &DataType) -> bool {
    let (Some(count), Some(other)) = (varint::take(&mut a), varint::take(&mut b)) else { return false };
    count == other
        && (0..count).all(|_| equal_item(&mut a, &mut b, Some(key)) && equal_item(&mut a, &mut b, Some(value)))
}

fn equal_item(a: &mut &[u8], b: &mut &[u8], data_type: Option<&DataType>) -> bool {
    match (take_item(a), take_item(b), data_type) {
        (Some(None), Some(None), _) => true,
        (Some(Some(a)), Some(Some(b)), Some(data_type)) => equal_value(data_type, a, b),
        _ => false,
    }
}
