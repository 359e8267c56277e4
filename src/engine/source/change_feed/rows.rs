//! The rows of a change feed as tables that are read one after another: one a file where rows only came, one a version
//! where rows left too.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatchOptions;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::StreamExt;
use pipeline::change_feed::{INSERT, change_feed_fields};

use super::FeedPart;
use super::pair::paired;
use crate::auto_cdc::position::{FileRows, in_sequence, in_turn};
use crate::data_type::{UTC, field_to_arrow};
use crate::error::Result;
use crate::table::Table;

/// The columns of a table's change feed: its own, then those that tell of the change.
pub(crate) fn feed_schema(table: &SchemaRef) -> SchemaRef {
    let own = table.fields().iter().map(|field| field.as_ref().clone());
    Arc::new(Schema::new(own.chain(change_feed_fields().iter().map(field_to_arrow)).collect::<Vec<_>>()))
}

/// A part of the feed of one version.
#[derive(Debug)]
pub(crate) struct FeedRows {
    schema: SchemaRef,
    commit: Commit,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Came(Arc<dyn TableProvider>),
    /// `keys` are columns of the table; rows of the same are two states of one row. Empty: all columns, rows don't
    /// change then, they leave and come.
    Changed {
        left: Arc<dyn TableProvider>,
        came: Arc<dyn TableProvider>,
        keys: Vec<usize>,
    },
}

impl FeedRows {
    /// The rows of these parts as one table.
    pub(crate) async fn provider(
        table: &Table,
        parts: Vec<FeedPart>,
        keys: &[String],
    ) -> Result<Arc<dyn TableProvider>> {
        Ok(in_turn(feed_schema(&table.schema()), FeedRows::of(table, parts, keys).await?))
    }

    /// The rows of these parts in order, with the places from which their positions are counted. `keys` are names of
    /// columns, empty if rows aren't known by any.
    pub(crate) async fn of(table: &Table, parts: Vec<FeedPart>, keys: &[String]) -> Result<Vec<FileRows>> {
        let schema = feed_schema(&table.schema());
        let mut files = Vec::new();
        for part in parts {
            let (version, timestamp_us) = match &part {
                FeedPart::Snapshot { version, timestamp_us, .. } => (*version, *timestamp_us),
                FeedPart::Changes(changes) => (changes.version, changes.timestamp_us),
            };
            let mut push = |minor: usize, rows: Rows| {
                let rows = FeedRows { schema: schema.clone(), commit: Commit { version, timestamp_us }, rows };
                files.push(FileRows { major: version as u64, minor: minor as u64, rows: Arc::new(rows) });
            };
            match part {
                FeedPart::Snapshot { first, files, .. } => {
                    for (at, file) in files.into_iter().enumerate() {
                        push(first + at, Rows::Came(table.files_provider(vec![file]).await?));
                    }
                }
                FeedPart::Changes(changes) if changes.removed.is_empty() => {
                    for (at, added) in changes.added.into_iter().enumerate() {
                        push(at, Rows::Came(table.rows_provider(vec![added])?));
                    }
                }
                FeedPart::Changes(changes) => {
                    let (left, came) = (table.rows_provider(changes.removed)?, table.rows_provider(changes.added)?);
                    let columns = table.schema();
                    let keys = keys.iter().filter_map(|key| {
                        columns.fields().iter().position(|field| field.name().eq_ignore_ascii_case(key))
                    });
                    push(0, Rows::Changed { left, came, keys: keys.collect() });
                }
            }
        }
        Ok(files)
    }
}

#[async_trait]
impl TableProvider for FeedRows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = projection.unwrap_or(&all);
        match &self.rows {
            Rows::Came(rows) => {
                let schema = Arc::new(self.schema.project(wanted)?);
                let own = rows.schema().fields().len();
                let data: Vec<usize> = wanted.iter().copied().filter(|column| *column < own).collect();
                let tells = wanted.iter().map(|column| column.checked_sub(own)).collect();
                let plan = rows.scan(state, Some(&data), &[], None).await?;
                let came = Came { schema: schema.clone(), tells, commit: self.commit, plan };
                Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(came)], None, [], false, None)?))
            }
            Rows::Changed { left, came, keys } => {
                let (left, came) = (left.scan(state, None, &[], None).await?, came.scan(state, None, &[], None).await?);
                let pairs = paired(self.schema.clone(), self.commit, [left, came], keys)?;
                let schema = self.schema.clone();
                Ok(Arc::new(StreamingTableExec::try_new(schema, vec![pairs], Some(wanted), [], false, None)?))
            }
        }
    }
}

/// The commit that changed rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commit {
    version: i64,
    timestamp_us: i64,
}

impl Commit {
    /// The columns that tell of the change, for as many rows as there are types.
    pub fn columns(self, types: StringArray) -> [ArrayRef; 3] {
        let rows = arrow::array::Array::len(&types);
        let timestamps = TimestampMicrosecondArray::from_value(self.timestamp_us, rows).with_timezone(UTC);
        [Arc::new(types), Arc::new(Int64Array::from_value(self.version, rows)), Arc::new(timestamps)]
    }
}

/// Rows that came, as inserts.
#[derive(Debug)]
struct Came {
    schema: SchemaRef,
    /// For each column: which of those that tell of the change it is; None for the table's own, which stand in the
    /// order of the plan.
    tells: Vec<Option<usize>>,
    commit: Commit,
    plan: Arc<dyn ExecutionPlan>,
}

impl PartitionStream for Came {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, tells, commit) = (self.schema.clone(), self.tells.clone(), self.commit);
        let rows = in_sequence(&self.plan, &context).map(move |batch| {
            let batch = batch?;
            let types = StringArray::from_iter_values(std::iter::repeat_n(INSERT, batch.num_rows()));
            let change = commit.columns(types);
            let mut own = batch.columns().iter();
            let columns = tells.iter().map(|tells| match tells {
                Some(at) => change[*at].clone(),
                None => own.next().expect("the plan gives the table's own columns").clone(),
            });
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(schema.clone(), columns.collect(), &options)?)
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))
    }
}
