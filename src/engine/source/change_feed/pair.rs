//! Rows that left a table and rows that came in the same version, joined by key: what was on one side only left or
//! came, what was on both changed, and what is equal on both did nothing.
//!
//! ```text
//! left ─┐ + key as bytes                          groups of one key
//! came ─┴ + side        ──▶ sort by key, side ──▶ equal rows cancel; a row of each side: pre- and postimage
//! ```
//! The sort spills to disk, so memory doesn't grow with the version. The order of what comes out is that of the keys.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{StreamExt, stream};
use pipeline::change_feed::{DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE};

use super::rows::Commit;
use crate::auto_cdc::position::in_sequence;

/// The columns behind the table's own while rows are sorted.
const KEY: &str = "__flowbench_key";
const CAME: &str = "__flowbench_came";

/// The changes of a version, from the rows that left and those that came, all columns of the table, in this order.
/// `schema` is the feed's; `keys` are columns of the table, none for all of them.
pub(super) fn paired(
    schema: SchemaRef,
    commit: Commit,
    sides: [Arc<dyn ExecutionPlan>; 2],
    keys: &[usize],
) -> Result<Arc<dyn PartitionStream>, DataFusionError> {
    let table = sides[0].schema();
    let width = table.fields().len();
    let fields = table.fields().iter().map(|field| field.as_ref().clone());
    let more = [Field::new(KEY, ArrowType::Binary, false), Field::new(CAME, ArrowType::Boolean, false)];
    let keyed: SchemaRef = Arc::new(Schema::new(fields.chain(more).collect::<Vec<_>>()));
    let has_keys = !keys.is_empty();
    let keys = if has_keys { keys.to_vec() } else { (0..width).collect() };
    let rows = Keyed { schema: keyed.clone(), sides, keys };
    let rows = StreamingTableExec::try_new(keyed, vec![Arc::new(rows)], None, [], false, None)?;
    let by = |name: &str, at: usize| PhysicalSortExpr::new_default(Arc::new(Column::new(name, at)));
    let order = LexOrdering::new([by(KEY, width), by(CAME, width + 1)]).expect("there are two columns to sort by");
    Ok(Arc::new(Pairs { schema, commit, has_keys, sorted: Arc::new(SortExec::new(order, Arc::new(rows))) }))
}

/// The rows of both sides with the bytes of their keys.
#[derive(Debug)]
struct Keyed {
    schema: SchemaRef,
    sides: [Arc<dyn ExecutionPlan>; 2],
    keys: Vec<usize>,
}

impl PartitionStream for Keyed {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let [left, came] = &self.sides;
        let side = |plan, is_came| in_sequence(plan, &context).map(move |batch| (batch, is_came));
        let (schema, keys) = (self.schema.clone(), self.keys.clone());
        let rows = side(left, false).chain(side(came, true)).map(move |(batch, is_came)| {
            let batch = batch?;
            let key: Vec<ArrayRef> = keys.iter().map(|column| batch.column(*column).clone()).collect();
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(as_bytes(&key)?));
            columns.push(Arc::new(BooleanArray::from(vec![is_came; batch.num_rows()])));
            Ok(RecordBatch::try_new(schema.clone(), columns)?)
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))
    }
}

/// Rows as bytes: the same for the same values, and ordered as they are.
fn as_bytes(columns: &[ArrayRef]) -> Result<BinaryArray, DataFusionError> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    Ok(RowConverter::new(fields)?.convert_columns(columns)?.try_into_binary()?)
}

/// Sorted rows as changes.
#[derive(Debug)]
struct Pairs {
    schema: SchemaRef,
    commit: Commit,
    /// False: the key is the whole row.
    has_keys: bool,
    sorted: Arc<dyn ExecutionPlan>,
}

impl PartitionStream for Pairs {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let groups = Groups { schema: self.schema.clone(), commit: self.commit, has_keys: self.has_keys };
        let sorted = in_sequence(&self.sorted, &context).boxed();
        let changes = stream::try_unfold((sorted, None, groups), |(mut sorted, mut begun, groups)| async move {
            loop {
                let (batch, is_last) = match (sorted.next().await.transpose()?, begun.take()) {
                    (Some(next), None) => (next, false),
                    (Some(next), Some(begun)) => (concat_batches(&next.schema(), [&begun, &next])?, false),
                    (None, Some(begun)) => (begun, true),
                    (None, None) => return Ok(None),
                };
                // The last group may go on in the next batch.
                let end = if is_last { batch.num_rows() } else { last_group(&batch) };
                begun = Some(batch.slice(end, batch.num_rows() - end)).filter(|rest| rest.num_rows() > 0);
                let changes = groups.changes(&batch.slice(0, end))?;
                if changes.num_rows() > 0 {
                    return Ok(Some((changes, (sorted, begun, groups))));
                }
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), changes))
    }
}

fn keys_of(batch: &RecordBatch) -> &BinaryArray {
    batch.column(batch.num_columns() - 2).as_binary()
}

/// Where the group of the last row begins.
fn last_group(batch: &RecordBatch) -> usize {
    let keys = keys_of(batch);
    let Some(last) = batch.num_rows().checked_sub(1) else { return 0 };
    (0..last).rev().find(|row| keys.value(*row) != keys.value(last)).map_or(0, |row| row + 1)
}

/// What makes changes of groups of rows with one key.
struct Groups {
    schema: SchemaRef,
    commit: Commit,
    has_keys: bool,
}

impl Groups {
    /// The changes of whole groups.
    fn changes(&self, batch: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
        let keys = keys_of(batch);
        let came = batch.column(batch.num_columns() - 1).as_boolean();
        let table: Vec<usize> = (0..batch.num_columns() - 2).collect();
        let own = batch.project(&table)?;
        // Of a key with one row nothing is compared.
        let mut whole = None;
        let mut found = Changes::default();
        let mut start = 0;
        while start < batch.num_rows() {
            let end = (start + 1..batch.num_rows()).find(|row| keys.value(*row) != keys.value(start));
            let end = end.unwrap_or(batch.num_rows());
            if end - start == 1 {
                found.push(start, if came.value(start) { INSERT } else { DELETE });
            } else {
                let whole = match &whole {
                    Some(whole) => whole,
                    None if self.has_keys => whole.insert(as_bytes(own.columns())?),
                    None => whole.insert(keys.clone()),
                };
                let middle = (start..end).find(|row| came.value(*row)).unwrap_or(end);
                found.push_group(start..middle, middle..end, whole);
            }
            start = end;
        }
        let rows = take_record_batch(&own, &UInt32Array::from(found.rows))?;
        let mut columns = rows.columns().to_vec();
        columns.extend(self.commit.columns(StringArray::from_iter_values(found.types)));
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

/// Rows of a batch and what happened to them.
#[derive(Default)]
struct Changes {
    rows: Vec<u32>,
    types: Vec<&'static str>,
}

impl Changes {
    fn push(&mut self, row: usize, change: &'static str) {
        self.rows.push(u32::try_from(row).expect("a batch has fewer rows"));
        self.types.push(change);
    }

    /// The changes of a key: rows that are on both sides cancel, the others are paired as far as there are two. A key
    /// has one row on a side, unless it is none: then the order of the rows' bytes decides.
    fn push_group(&mut self, left: Range<usize>, came: Range<usize>, whole: &BinaryArray) {
        let sorted = |rows: Range<usize>| {
            let mut rows: Vec<usize> = rows.collect();
            rows.sort_by(|a, b| whole.value(*a).cmp(whole.value(*b)));
            rows
        };
        let (left, came) = (sorted(left), sorted(came));
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let (mut a, mut b) = (0, 0);
        while a < left.len() && b < came.len() {
            match whole.value(left[a]).cmp(whole.value(came[b])) {
                Ordering::Equal => (a, b) = (a + 1, b + 1),
                Ordering::Less => {
                    gone.push(left[a]);
                    a += 1;
                }
                Ordering::Greater => {
                    new.push(came[b]);
                    b += 1;
                }
            }
        }
        gone.extend(&left[a..]);
        new.extend(&came[b..]);
        let pairs = gone.len().min(new.len());
        for (before, after) in gone.iter().zip(&new) {
            self.push(*before, UPDATE_PREIMAGE);
            self.push(*after, UPDATE_POSTIMAGE);
        }
        gone[pairs..].iter().for_each(|row| self.push(*row, DELETE));
        new[pairs..].iter().for_each(|row| self.push(*row, INSERT));
    }
}
