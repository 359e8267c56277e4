//! One micro-batch of a change feed: its query's rows into the target.
//!
//! ```text
//! plan with positions ─▶ partitions decode ─▶ events, a portion at a time ─▶ Application ─▶ commit
//! ```
//! Reading and applying overlap. A portion is as much as may be in memory; all portions of a batch become visible by
//! one commit, or none does.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use datafusion::common::{Column, DataFusionError};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::physical_plan::execute_stream_partitioned;
use futures::StreamExt;
use pipeline::auto_cdc::{
    ChangeFlow, DELETE_COLUMN, END_AT, NullKeys, SEQUENCE_COLUMN, START_AT, ScdType, TRUNCATE_COLUMN, is_internal,
};
use pipeline::data_type::{DataType, Field};
use pipeline::event::{ChangeMetrics, FlowMetrics, Level};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::apply::{Application, Applied, Begin};
use super::events::Refused;
use super::position::{POSITION, carry};
use super::target::{ChangeTarget, FlowColumns};
use crate::columns::{Columns, grow, output_fields};
use crate::data_type::{from_arrow, position, to_arrow};
use crate::error::{Error, Result};
use crate::flow::FlowRun;
use crate::flow::batch::{mark, misfit, partitions, plan};
use crate::flow::inputs::{BatchInputs, OpenSource, batch_inputs};
use crate::flow::live::scanned;
use crate::micro_batch::query_error;
use crate::state::PlannedInput;

/// Batches of rows that may wait between reading and applying.
const ROWS_AHEAD: usize = 16;

/// Applies a planned batch.
pub(crate) async fn run(
    run: &FlowRun<'_>,
    change: &ChangeFlow,
    sources: &[OpenSource],
    batch: i64,
    inputs: &[PlannedInput],
) -> Result<()> {
    let started = Instant::now();
    run.live.batch_rows.store(0, Relaxed);
    let batch_inputs = batch_inputs(sources, inputs, Some(batch)).await?;
    let query = carry(plan(run, &batch_inputs).await?).map_err(|error| query_error(&run.during(), error))?;
    let columns = FeedColumns::of(run, change, &query).await?;
    let query = columns.project(query).map_err(|error| query_error(&run.during(), error))?;
    let (rows, reading) = read(run, &query, &batch_inputs).await?;
    let target = ChangeTarget::shared(run, &columns.flow).await?;
    let begin = Begin::feed(run, change, batch, columns)?;
    let outcome = apply(target, begin, rows, run).await;
    // What stopped the reading explains why there were no more rows.
    reading.finish().await?;
    let (applied, refused) = outcome?;
    let metrics = FlowMetrics {
        batches: 1,
        rows_in: scanned(&batch_inputs.counters).rows_in + batch_inputs.table_rows,
        rows_out: applied.counts.upserts + applied.counts.deletes,
        files_in: batch_inputs.files,
        bytes_in: batch_inputs.bytes,
        duration_ms: started.elapsed().as_millis() as u64,
        changes: ChangeMetrics {
            upserted: applied.counts.upserts,
            deleted: applied.counts.deletes,
            late: applied.counts.late,
            duplicates: applied.counts.duplicates,
            ties: applied.counts.ties,
            dropped: refused.keyless(),
        },
        ..scanned(&batch_inputs.counters)
    };
    applied.report(run, batch);
    mark(run, batch, &metrics, Some(applied.version))
}
