//! The rows of a target in order of their keys, as the bytes that the side table has: sorted by DataFusion, which spills
//! what doesn't fit into memory.

use arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use datafusion::common::Column;
use datafusion::datasource::provider_as_source;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use pipeline::auto_cdc::{END_AT, START_AT, ScdType};
use pipeline::scd::compare::Interval;

use super::as_of::failed;
use super::ordered::{key_bytes, row_bytes};
use super::scd_table::ScdTable;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// What of the rows is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Keys and intervals.
    Intervals,
    /// Values too.
    Rows,
}

/// A row with its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TargetRow {
    pub start: Option<Vec<u8>>,
    pub end: Option<Vec<u8>>,
    /// Empty unless values were wanted.
    pub values: Vec<u8>,
}

impl TargetRow {
    pub fn interval(&self) -> Interval<'_> {
        Interval { start: self.start.as_deref(), end: self.end.as_deref() }
    }
}

/// Rows sorted by the bytes of their keys.
pub(super) struct TargetRows {
    batches: SendableRecordBatchStream,
    batch: Option<RecordBatch>,
    row: usize,
}

impl TargetRows {
    /// Reads the target at a version.
    pub async fn open(engine: &Engine, table: &ScdTable, version: i64, wanted: Wanted) -> Result<TargetRows> {
        let provider = {
            let target = table.table.lock().await;
            target.provider(Some(version)).await?
        };
        let schema = provider.schema();
        let column = |name: &str| {
            let (_, field) = schema
                .column_with_name(name)
                .ok_or_else(|| Error::Internal(format!("table `{}` has no column `{name}`", table.label)))?;
            Ok::<_, Error>((Expr::Column(Column::new_unqualified(name)), field.data_type().clone()))
        };
        let null = || lit(ScalarValue::Binary(None));
        let keys = table.key_names.iter().map(|name| column(name)).collect::<Result<Vec<_>>>()?;
        let (start, end) = match table.spec.scd_type {
            ScdType::One => (null(), null()),
            ScdType::Two => {
                let bound = |name| Ok::<_, Error>(key_bytes(&table.sequence_codec, vec![column(name)?]));
                (bound(START_AT)?, bound(END_AT)?)
            }
        };
        let values = match wanted {
            Wanted::Intervals => null(),
            Wanted::Rows => {
                // Of a column that no event has fed yet there are no leaves; it is NULL in all rows.
                let is_known = |name: &str| !table.rows.codec.layout().leaves_of(name).is_empty();
                let fields = table.value_fields.iter().filter(|field| is_known(field.name()));
                let columns = fields.map(|field| {
                    let (expression, data_type) = column(field.name())?;
                    Ok((field.name().clone(), expression, data_type))
                });
                match columns.collect::<Result<Vec<_>>>()? {
                    // A row of no values.
                    columns if columns.is_empty() => lit(ScalarValue::Binary(Some(vec![0]))),
                    columns => row_bytes(&table.rows.codec, columns),
                }
            }
        };
        let plan = LogicalPlanBuilder::scan("target", provider_as_source(provider), None)
            .and_then(|scan| {
                scan.project([
                    key_bytes(&table.key_codec, keys).alias("key"),
                    start.alias("start"),
                    end.alias("end"),
                    values.alias("values"),
                ])
            })
            .and_then(|rows| {
                let by = |name| Expr::Column(Column::new_unqualified(name)).sort(true, true);
                rows.sort([by("key"), by("start")])
            })
            .and_then(LogicalPlanBuilder::build)
            .map_err(failed)?;
        Ok(TargetRows { batches: engine.stream(plan, None).await?, batch: None, row: 0 })
    }

    /// The next row's key, as long as it is below `key` (None: whatever it is): a key that nothing stored has.
    pub async fn next_below(&mut self, key: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let Some(found) = self.peek().await? else { return Ok(None) };
        let is_below = key.is_none_or(|key| found.is_none_or(|found| found < key));
        Ok(is_below.then(|| found.unwrap_or_default().to_vec()))
    }

    /// Takes the rows of a key, which is the next one's, or isn't there.
    pub async fn take(&mut self, key: &[u8]) -> Result<Vec<TargetRow>> {
        let mut rows = Vec::new();
        while self.peek().await?.is_some_and(|found| found.unwrap_or_default() == key) {
            rows.extend(self.row());
            self.row += 1;
        }
        Ok(rows)
    }

    /// The next row's key: None at the end, Some(None) for one that is NULL.
    async fn peek(&mut self) -> Result<Option<Option<&[u8]>>> {
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.num_rows()) {
            self.batch = self.batches.next().await.transpose().map_err(failed)?;
            self.row = 0;
            if self.batch.is_none() {
                return Ok(None);
            }
        }
        Ok(self.batch.as_ref().map(|batch| cell(batch, 0, self.row)))
    }

    fn row(&self) -> Option<TargetRow> {
        let batch = self.batch.as_ref()?;
        let own = |column| cell(batch, column, self.row).map(<[u8]>::to_vec);
        Some(TargetRow { start: own(1), end: own(2), values: own(3).unwrap_or_default() })
    }
}

fn cell(batch: &RecordBatch, column: usize, row: usize) -> Option<&[u8]> {
    let array: &BinaryArray = batch.column(column).as_binary();
    array.is_valid(row).then(|| array.value(row))
}
