//! One micro-batch, exactly once: plan → write → commit → mark (architecture, "One micro-batch").
//!
//! ```text
//!  plan      state.db: batch id + exact input          after a crash: not in the table → run it again
//!  write     data files, not part of the table yet                    leftovers → vacuum
//!  commit    one Delta commit: rows + txn(flow id, batch id)          in the table → mark it
//!  mark      state.db: committed, offsets move on
//! ```

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use datafusion::logical_expr::LogicalPlan;
use pipeline::auto_cdc::SnapshotVersions;
use pipeline::event::{Details, FlowMetrics, Level};
use pipeline::graph::Reading;
use pipeline::number::counted;
use pipeline::resume::{Facts, FoundTable, Resume, resume};

use super::FlowRun;
use super::ahead::Ahead;
use super::evolve::{self, evolve};
use super::inputs::{BatchInputs, OpenSource, batch_inputs};
use super::live::scanned;
use crate::auto_cdc;
use crate::clock::now_us;
use crate::columns::{by_name, grow, output_fields};
use crate::error::{Error, Result};
use crate::fail_point;
use crate::history::definition_hash;
use crate::micro_batch::{self, Destination, query_error};
use crate::reading::plan_reading;
use crate::state::{Committed, Completion, PlanBatch, PlannedInput};
use crate::table::{Commit, WriterOptions};

/// How often a batch may widen the schema and start anew: each time adds at least one field.
const EVOLUTIONS_MAX: usize = 100;

/// Brings the checkpoint and the table to agree, replaying what has to be. Returns the id for the next
/// batch; None if the flow is done.
pub(crate) async fn bring_up(run: &FlowRun<'_>, sources: &mut [OpenSource]) -> Result<Option<i64>> {
    loop {
        match resume(&facts(run).await?) {
            Resume::StartFresh { next_batch } | Resume::Continue { next_batch } => return Ok(Some(next_batch)),
            Resume::Done => return Ok(None),
            Resume::MarkCommitted { batch } => {
                // How many rows it had is in the table's history, not here.
                let version = run.target()?.table.lock().await.version();
                mark(run, batch, &FlowMetrics::default(), Some(version))?;
            }
            // Nothing of it was applied, and a snapshot counts as it is now: it may have been refused as it was.
            Resume::ReplayBatch { batch } if run.flow.kind.is_snapshot() => {
                run.update.state.discard_planned(&run.record.flow_id, run.generation, batch)?;
            }
            Resume::ReplayBatch { batch } => match replay(run, sources, batch).await {
                Err(error) if input_is_gone(&error) => discard(run, batch, &error)?,
                outcome => outcome?,
            },
            Resume::ReplayAfter { after } => {
                let lost = run.update.state.batches_after(&run.record.flow_id, run.generation, after.unwrap_or(-1))?;
                run.update.recorder.notice(
                    run.about(),
                    "commits-lost",
                    format!(
                        "table `{}` lost {} of this flow; the input is read again",
                        run.dataset.label,
                        counted(lost.len() as u64, "commit", "commits")
                    ),
                    None,
                );
                for batch in lost {
                    replay(run, sources, batch.batch_id).await?;
                }
            }
            Resume::Refuse(refusal) => {
                return Err(Error::user(
                    refusal.code(),
                    format!("flow `{}` into `{}`: {}", run.flow.name, run.dataset.label, refusal.reason()),
                    refusal.help(),
                ));
            }
        }
    }
}

/// The files of a plan changed before they were read: it can never be carried out as it is written down.
pub(crate) fn input_is_gone(error: &Error) -> bool {
    matches!(error.code(), "file-changed" | "file-missing")
}

/// Takes a plan back; its files are new again.
fn discard(run: &FlowRun<'_>, batch: i64, error: &Error) -> Result<()> {
    run.update.state.discard_planned(&run.record.flow_id, run.generation, batch)?;
    run.update.recorder.notice(
        run.about().batch(batch),
        "plan-discarded",
        format!("the input of batch {batch} changed before it was read; it is planned anew: {error}"),
        error.help(),
    );
    Ok(())
}

async fn facts(run: &FlowRun<'_>) -> Result<Facts> {
    let mut known = run.update.state.known_batches(&run.record.flow_id, run.generation)?;
    // One that was done and isn't a once flow any more goes on from what it has read.
    known.is_done &= run.flow.kind.is_once();
    let table = match &run.target {
        Some(target) => {
            // What a crash left pending in a side table is committed by opening it.
            let applied = match run.flow.change {
                Some(_) => run.update.change_targets.of(run).await?.lock().await.txn(&run.app_id()),
                None => None,
            };
            let mut table = target.table.lock().await;
            table.refresh()?;
            FoundTable::Exists { version: table.version(), txn: applied.max(table.txn(&run.app_id())) }
        }
        None => FoundTable::Missing,
    };
    Ok(Facts { known, table })
}

async fn replay(run: &FlowRun<'_>, sources: &mut [OpenSource], batch: i64) -> Result<()> {
    let inputs = run.update.state.batch_inputs(&run.record.flow_id, run.generation, batch)?;
    run.update.recorder.report(
        Level::Info,
        run.about().batch(batch),
        format!("batch {batch} was planned and not committed: it runs again with the same input"),
        Details::Notice { code: "batch-replayed".to_string(), help: None },
    );
    run_batch(run, sources, batch, &inputs, None).await
}

/// Plans a new batch over `inputs` and runs it; `ahead`: its query may have been started.
pub(crate) async fn plan_and_run(
    run: &FlowRun<'_>,
    sources: &mut [OpenSource],
    batch: i64,
    inputs: &[PlannedInput],
    ahead: Option<Ahead>,
) -> Result<()> {
    fail_point::hit("plan", Some(&run.flow.name))?;
    let plan = PlanBatch {
        flow_id: &run.record.flow_id,
        generation: run.generation,
        batch_id: batch,
        update_id: Some(run.update.number),
        inputs,
    };
    run.update.state.plan_batch(&plan, now_us())?;
    fail_point::hit("planned", Some(&run.flow.name))?;
    run_batch(run, sources, batch, inputs, ahead).await.inspect_err(|error| {
        // The next update lists the source anew. If the plan can't be taken back now, that update does it.
        if input_is_gone(error) {
            let _ = discard(run, batch, error);
        }
    })
}

/// Runs a planned batch. Files with fields that the stored schema lacks widen it first; the batch keeps its
/// id and its input.
async fn run_batch(
    run: &FlowRun<'_>,
    sources: &mut [OpenSource],
    batch: i64,
    inputs: &[PlannedInput],
    ahead: Option<Ahead>,
) -> Result<()> {
    // A value that is too wide doesn't end a scan, so where types may widen the files are looked at first.
    if evolve::may_widen(sources) {
        evolve(run, sources, batch, inputs).await?;
    }
    let mut started = ahead.and_then(|ahead| ahead.reading(sources));
    for _ in 0..EVOLUTIONS_MAX {
        run.update.stop.check()?;
        let outcome = match &run.flow.change {
            Some(change) if run.flow.kind.is_snapshot() => {
                auto_cdc::snapshot::apply(run, change, sources, batch, inputs).await
            }
            Some(change) => auto_cdc::batch::run(run, change, sources, batch, inputs, started.take()).await,
            None => write_and_commit(run, sources, batch, inputs).await,
        };
        match outcome {
            Err(Error::UnknownFields { .. }) => {
                if !evolve(run, sources, batch, inputs).await? {
                    return Err(Error::Internal(format!(
                        "flow `{}`: new fields were met and not found again",
                        run.flow.name
                    )));
                }
            }
            outcome => return outcome,
        }
    }
    Err(Error::Internal(format!("flow `{}`: the schema of its source never settles", run.flow.name)))
}

async fn write_and_commit(
    run: &FlowRun<'_>,
    sources: &[OpenSource],
    batch: i64,
    inputs: &[PlannedInput],
) -> Result<()> {
    let started = Instant::now();
    run.live.batch_rows.store(0, Relaxed);
    let target = run.target()?;
    let batch_inputs = batch_inputs(sources, inputs, None).await?;
    let plan = plan(run, &batch_inputs).await?;
    let given = output_fields(plan.schema().as_arrow()).map_err(|misfits| misfit(run, &misfits))?;
    let columns = grow(&target.columns(run).await?, &given).map_err(|misfits| misfit(run, &misfits))?;
    let plan = by_name(plan, &columns).map_err(|e| query_error(&run.during(), e))?;
    let destination = Destination {
        folder: target.folder.clone(),
        schema: columns.schema(),
        partition_by: target.partition_by.clone(),
        options: WriterOptions::default(),
    };
    let session = crate::session::with_partitions(&run.session, partitions(run, batch_inputs.work_bytes));
    let files =
        micro_batch::write(&session, &plan, &destination, &run.update.stop, &run.live.batch_rows, &run.during())
            .await?;
    let rows_out = files.iter().map(|file| file.rows).sum();
    fail_point::hit("written", Some(&run.flow.name))?;

    // One commit queue a table: flows that grow the schema take turns, each on top of what is there by then.
    let mut table = target.table.lock().await;
    table.refresh()?;
    let current = target.columns_of(run, &table)?;
    let columns = grow(&current, &given).map_err(|misfits| misfit(run, &misfits))?;
    let added = columns.added_to(&current);
    let new_schema = (columns.fields != current.fields).then(|| columns.schema());
    let commit = Commit {
        adds: files,
        new_schema,
        txns: vec![(run.app_id(), batch)],
        operation: "STREAMING UPDATE".to_string(),
        parameters: [
            ("outputMode", "Append".to_string()),
            ("flow", run.flow.name.clone()),
            ("epochId", batch.to_string()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_string(), value))
        .collect(),
        ..Commit::default()
    };
    let version = table.commit(commit).await?;
    drop(table);
    fail_point::hit("committed", Some(&run.flow.name))?;
    tell_added(run, batch, added);
    let scanned = scanned(&batch_inputs.counters);
    let metrics = FlowMetrics {
        batches: 1,
        rows_in: scanned.rows_in + batch_inputs.table_rows,
        rows_out,
        files_in: batch_inputs.files,
        bytes_in: batch_inputs.bytes,
        duration_ms: started.elapsed().as_millis() as u64,
        ..scanned
    };
    mark(run, batch, &metrics, Some(version))
}

/// Reports the columns, with their types, that a batch added to its table.
pub(crate) fn tell_added(run: &FlowRun<'_>, batch: i64, columns: Vec<(String, String)>) {
    if columns.is_empty() {
        return;
    }
    let names: Vec<String> = columns.iter().map(|(name, data_type)| format!("{name} {data_type}")).collect();
    run.update.recorder.report(
        Level::Info,
        run.about().batch(batch),
        format!("schema evolved: +{}", names.join(", +")),
        Details::SchemaEvolved { columns },
    );
}

/// The flow's query over one batch.
pub(crate) async fn plan(run: &FlowRun<'_>, inputs: &BatchInputs) -> Result<LogicalPlan> {
    plan_of(run, &run.flow.reading, inputs).await
}

/// A query of the flow over inputs that were opened for it.
pub(crate) async fn plan_of(run: &FlowRun<'_>, reading: &Reading, inputs: &BatchInputs) -> Result<LogicalPlan> {
    let graph = run.update.engine.graph();
    let planned = plan_reading(&run.session, graph, reading, &|input| inputs.provide(input)).await;
    // The query was sound when the update was checked; now a source looks different.
    planned.map_err(|diagnostics| match diagnostics.into_iter().next() {
        Some(first) => {
            let place = first.span.map(|span| pipeline::diagnostic::place(&run.update.engine.workspace().files, span));
            Error::user(
                first.code,
                format!("{} at {}: {}", run.during(), place.unwrap_or_default(), first.message),
                first.help.unwrap_or_else(|| "run `flowbench validate` to see it in its place".to_string()),
            )
        }
        None => Error::Internal(format!("{}: the query doesn't plan, without a reason", run.during())),
    })
}

/// How many tasks a batch of this size is worth.
pub(crate) fn partitions(run: &FlowRun<'_>, work_bytes: u64) -> usize {
    /// A batch below this is one task and one file: two would cost more than they save.
    const BYTES_PER_TASK: u64 = 4 << 20;
    let most = run.flow.limits.threads.unwrap_or(usize::MAX).min(crate::session::partitions(&run.session)).max(1);
    usize::try_from(work_bytes / BYTES_PER_TASK).unwrap_or(usize::MAX).clamp(1, most)
}

pub(crate) fn mark(run: &FlowRun<'_>, batch: i64, metrics: &FlowMetrics, version: Option<i64>) -> Result<()> {
    let completion = is_done_by_one_batch(run).then(|| completion(run, metrics.rows_out));
    let count = |count: u64| Some(count as i64);
    let committed = Committed {
        table_version: version,
        rows_read: count(metrics.rows_in),
        rows_written: count(metrics.rows_out),
        rows_rescued: count(metrics.rescued_values),
        duration_ms: count(metrics.duration_ms),
        completion,
    };
    run.update.state.mark_committed(&run.record.flow_id, run.generation, batch, &committed, now_us())?;
    fail_point::hit("marked", Some(&run.flow.name))?;
    run.live.add(metrics);
    let mut message = format!("batch {batch} committed: {}", counted(metrics.rows_out, "row", "rows"));
    for (count, what) in [(metrics.rescued_values, "values rescued"), (metrics.corrupt_records, "corrupt records")] {
        if count > 0 {
            message.push_str(&format!(", {count} {what}"));
        }
    }
    run.update.recorder.report(
        Level::Info,
        run.about().batch(batch),
        message,
        Details::BatchProgress { metrics: *metrics, table_version: version },
    );
    run.update.recorder.check()
}

/// A once flow is one batch, but for snapshots of which each version is a file's.
fn is_done_by_one_batch(run: &FlowRun<'_>) -> bool {
    let snapshot = run.flow.change.as_ref().and_then(|change| change.snapshot());
    run.flow.kind.is_once() && !snapshot.is_some_and(|snapshot| matches!(snapshot.versions, SnapshotVersions::Files(_)))
}

/// What is written down of a once flow that is done.
pub(crate) fn completion(run: &FlowRun<'_>, rows: u64) -> Completion {
    Completion {
        done_us: now_us(),
        update_id: Some(run.update.number),
        rows: rows as i64,
        definition_hash: definition_hash(&run.flow.reading.query.fingerprint_text),
    }
}

pub(crate) fn misfit(run: &FlowRun<'_>, misfits: &[crate::columns::Misfit]) -> Error {
    let what: Vec<String> = misfits.iter().map(ToString::to_string).collect();
    if misfits.iter().any(|misfit| matches!(misfit, crate::columns::Misfit::Reserved { .. })) {
        return Error::user(
            "reserved-name",
            format!("flow `{}`: {}", run.flow.name, what.join("; ")),
            "rename the column in the source, or in a temporary view that the flow reads",
        );
    }
    Error::user(
        "schema-mismatch",
        format!("flow `{}` doesn't fit table `{}`: {}", run.flow.name, run.dataset.label, what.join("; ")),
        format!(
            "cast the column in the flow's query, or build the table anew: flowbench run --full-refresh {}",
            run.dataset.label
        ),
    )
}
