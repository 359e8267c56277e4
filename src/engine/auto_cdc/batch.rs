//! One micro-batch of a change feed: its query's rows into the target.
//!
//! ```text
//! plan with positions ─▶ partitions decode ─▶ events, a portion at a time ─▶ Application ─▶ side table ─▶ target
//! ```
//! Reading and applying overlap, also from batch to batch: the next one's query begins before it is its turn, and its
//! rows wait. A portion is as much as may be in memory; the portions of a batch become visible together.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream_partitioned;
use futures::StreamExt;
use pipeline::auto_cdc::{ChangeFlow, NullKeys, SEQUENCE_COLUMN, ScdType};
use pipeline::data_type::DataType;
use pipeline::event::{ChangeMetrics, Details, FlowMetrics, Level};
use pipeline::number::counted;
use pipeline::timeline::{Class, Kind};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::apply::{Application, Applied, Batch, Place};
use super::columns::{FlowColumns, type_of};
use super::events::{Events, Refused};
use super::position::carry;
use super::side::{self, Retention};
use super::silence::Silence;
use super::spec::{TargetSpec, drifted};
use super::stored::class_number;
use super::table_feed;
use super::target::ChangeTarget;
use crate::error::{Error, Result};
use crate::fail_point;
use crate::flow::FlowRun;
use crate::flow::batch::{mark, misfit, partitions, plan, tell_added};
use crate::flow::inputs::{BatchInputs, OpenSource, batch_inputs};
use crate::flow::live::scanned;
use crate::micro_batch::query_error;
use crate::state::PlannedInput;
use crate::stop::Stop;
use crate::table::PreparedCommit;

/// Batches of rows that may wait between reading and applying.
const ROWS_AHEAD: usize = 16;
/// Events of about so many bytes are applied at once.
const PORTION_BYTES: usize = 128 << 20;

/// The query of a batch that runs: its rows come, or what it fails with.
pub(crate) struct Reading {
    inputs: BatchInputs,
    query: LogicalPlan,
    sequence: DataType,
    /// The flow's columns in its target, when the query was started.
    columns: FlowColumns,
    rows: mpsc::Receiver<Result<RecordBatch>>,
}

impl Reading {
    /// Starts the query of a batch over its inputs.
    pub async fn start(run: &FlowRun<'_>, change: &ChangeFlow, inputs: BatchInputs) -> Result<Reading> {
        let query = carry(plan(run, &inputs).await?)
            .and_then(|query| table_feed::events(query, change))
            .map_err(|error| query_error(&run.during(), error))?;
        let sequence = type_of(&query, SEQUENCE_COLUMN)
            .ok_or_else(|| Error::Internal(format!("{}: its sequence has no type", run.during())))?;
        let columns = columns(run, change, &query, sequence.clone()).await?;
        let rows = read_events(run, change, &query, &columns, inputs.work_bytes).await?;
        Ok(Reading { inputs, query, sequence, columns, rows })
    }
}

/// Applies a planned batch of a feed, whose query may have been started.
pub(crate) async fn run(
    run: &FlowRun<'_>,
    change: &ChangeFlow,
    sources: &[OpenSource],
    batch: i64,
    inputs: &[PlannedInput],
    started: Option<Result<Reading>>,
) -> Result<()> {
    let begun = Instant::now();
    run.live.batch_rows.store(0, Relaxed);
    let reading = match started {
        Some(reading) => reading?,
        None => Reading::start(run, change, batch_inputs(sources, inputs, Some(batch)).await?).await?,
    };
    let Reading { inputs: mut read, query, sequence, columns, mut rows } = reading;
    let class = if run.flow.kind.is_once() { Class::Once } else { Class::Live };
    let mut what = Batch {
        columns,
        flow: side_flow(run, class, Silence::of(change)),
        app_id: run.app_id(),
        batch,
        retention: retention(run),
        threads: partitions(run, u64::MAX),
    };

    let target = run.update.change_targets.of(run).await?;
    let (applied, refused, added, left_out) = {
        let mut target = ChangeTarget::lock(target).await?;
        // Another flow, or the batch before, may have added columns before it was this one's turn.
        let columns = self::columns(run, change, &query, sequence).await?;
        if columns.table.fields != what.columns.table.fields {
            read = batch_inputs(sources, inputs, Some(batch)).await?;
            Reading { inputs: read, columns: what.columns, rows, .. } = Reading::start(run, change, read).await?;
        }
        let (stop, drops) = (run.update.stop.clone(), change.options.null_keys == Some(NullKeys::Drop));
        let flow = run.during();
        let place = places(sources, inputs);
        let (added, left_out) = (what.columns.added.clone(), what.columns.left_out.clone());
        let task = tokio::task::spawn_blocking(move || {
            let outcome = apply(&mut target, &what, &mut rows, &stop, &|refused, keys| match drops {
                true => refused.without_keys().error(&flow, batch, keys, &place),
                false => refused.error(&flow, batch, keys, &place),
            });
            (outcome, target)
        });
        let (outcome, mut target) =
            task.await.map_err(|error| Error::Internal(format!("{}: {error}", run.during())))?;
        let (applied, refused, prepared) = outcome?;
        fail_point::hit("side-committed", Some(&run.flow.name))?;
        target.commit(prepared).await?;
        (applied, refused, added, left_out)
    };
    fail_point::hit("committed", Some(&run.flow.name))?;
    tell_added(run, batch, added);
    let version = run.target()?.table.lock().await.version();
    tell(run, batch, sources, inputs, &applied, &refused);
    tell_unknown(run, batch, &refused, &left_out);
    let counts = applied.counts;
    let metrics = FlowMetrics {
        batches: 1,
        rows_in: scanned(&read.counters).rows_in + read.table_rows,
        rows_out: counts.upserts + counts.deletes,
        files_in: read.files,
        bytes_in: read.bytes,
        duration_ms: begun.elapsed().as_millis() as u64,
        changes: ChangeMetrics {
            upserted: counts.upserts,
            deleted: counts.deletes,
            late: counts.late,
            duplicates: counts.duplicates,
            ties: counts.ties,
            dropped: refused.keyless(),
        },
        ..scanned(&read.counters)
    };
    mark(run, batch, &metrics, Some(version))
}

/// The column that tells which columns an event is about.
fn to_update(change: &ChangeFlow) -> Option<&str> {
    Some(&change.feed()?.columns_to_update.as_ref()?.value)
}

/// Starts to read the events of a batch for these columns.
async fn read_events(
    run: &FlowRun<'_>,
    change: &ChangeFlow,
    query: &LogicalPlan,
    columns: &FlowColumns,
    work_bytes: u64,
) -> Result<mpsc::Receiver<Result<RecordBatch>>> {
    let more: Vec<&str> = to_update(change).into_iter().collect();
    let events = columns.project(query.clone(), &more).map_err(|error| query_error(&run.during(), error))?;
    read(run, &events, work_bytes).await
}

/// The flow's columns in its target, as that is now.
pub(super) async fn columns(
    run: &FlowRun<'_>,
    change: &ChangeFlow,
    query: &LogicalPlan,
    sequence: DataType,
) -> Result<FlowColumns> {
    let table = run.target()?.columns(run).await?;
    FlowColumns::of(change, query.schema().as_arrow(), sequence, &table).map_err(|misfits| misfit(run, &misfits))
}

/// The flow as the side table knows it.
pub(super) fn side_flow(run: &FlowRun<'_>, class: Class, silence: Silence) -> side::Flow {
    side::Flow {
        id: run.record.flow_id.clone(),
        generation: run.generation,
        name: run.flow.name.clone(),
        class: class_number(class),
        silence,
    }
}

/// What is kept of each key: all, where history shows or a flow's events may be silent about columns; then, whichever flow
/// runs first, a key's history can be told.
pub(super) fn retention(run: &FlowRun<'_>) -> Retention {
    let graph = run.update.engine.graph();
    let mut changes = run.dataset.flows.iter().filter_map(|id| graph.flow(*id).change.as_deref());
    let keeps_all = |change: &ChangeFlow| change.scd_type() == ScdType::Two || !Silence::of(change).is_none();
    if changes.any(keeps_all) { Retention::All } else { Retention::Newest }
}

/// Starts to run the query; its rows, or what it fails with, come through the channel.
pub(super) async fn read(
    run: &FlowRun<'_>,
    query: &LogicalPlan,
    work_bytes: u64,
) -> Result<mpsc::Receiver<Result<RecordBatch>>> {
    let failed = |error| query_error(&run.during(), error);
    let session = crate::session::with_partitions(&run.session, partitions(run, work_bytes));
    let physical = session.state().create_physical_plan(query).await.map_err(failed)?;
    let streams = execute_stream_partitioned(physical, session.task_ctx()).map_err(failed)?;
    let (sender, rows) = mpsc::channel(ROWS_AHEAD);
    let during = run.during();
    // The tasks end when the receiver is gone; the last of them closes the channel.
    tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        for mut stream in streams {
            let (sender, during) = (sender.clone(), during.clone());
            tasks.spawn(async move {
                while let Some(batch) = stream.next().await {
                    let batch = batch.map_err(|error| query_error(&during, error));
                    let has_failed = batch.is_err();
                    if sender.send(batch).await.is_err() || has_failed {
                        return;
                    }
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                let _ = sender.send(Err(Error::Internal(format!("{during}: {error}")))).await;
            }
        }
    });
    Ok(rows)
}

/// Reads all events, applies them, and puts them in force in the side table. `refuse` makes the error of events that
/// can't be applied.
fn apply(
    target: &mut ChangeTarget,
    batch: &Batch,
    rows: &mut mpsc::Receiver<Result<RecordBatch>>,
    stop: &Stop,
    refuse: &dyn Fn(&Refused, &[String]) -> Option<Error>,
) -> Result<(Applied, Refused, Option<PreparedCommit>)> {
    let spec = target.recorded()?;
    check_drift(target, spec.as_ref(), &batch.columns.spec)?;
    target.make_side(&batch.columns, batch.retention)?;
    let mut application = Application::begin(target, spec, batch)?;
    let (mut events, mut refused) = (Events::default(), Refused::default());
    while let Some(batch) = rows.blocking_recv() {
        stop.check()?;
        application.reader(None).read(&batch?, &mut events, &mut refused)?;
        if events.bytes() >= PORTION_BYTES {
            application.apply(&std::mem::take(&mut events))?;
        }
    }
    let keys: Vec<String> = batch.columns.keys.iter().map(|key| key.name.clone()).collect();
    if let Some(error) = refuse(&refused, &keys) {
        return Err(error);
    }
    application.apply(&events)?;
    stop.check()?;
    let (applied, prepared) = application.commit(None)?;
    Ok((applied, refused, prepared))
}

/// Refuses a flow that breaks what the target was built with.
pub(super) fn check_drift(target: &ChangeTarget, recorded: Option<&TargetSpec>, now: &TargetSpec) -> Result<()> {
    let drifts = recorded.map(|recorded| recorded.drifts(now)).unwrap_or_default();
    match drifts.is_empty() {
        true => Ok(()),
        false => Err(drifted(&target.label, &drifts)),
    }
}

/// Words for where an event stood, by its position.
pub(super) fn places(
    sources: &[OpenSource],
    inputs: &[PlannedInput],
) -> impl Fn([u64; 3]) -> String + Send + 'static + use<> {
    let files = crate::flow::inputs::files_in_order(sources, inputs);
    let table = sources.iter().find(|source| source.is_table()).map(|source| source.label.clone());
    move |[major, minor, row]| match (files.get(minor as usize), &table) {
        (Some(file), _) => format!("record {} of {file}", row + 1),
        (None, Some(table)) => format!("row {} of file {} in version {major} of {table}", row + 1, minor + 1),
        (None, None) => format!("event {}", row + 1),
    }
}

/// Says how many rows without a key were left out.
pub(super) fn tell_dropped(run: &FlowRun<'_>, batch: i64, dropped: u64) {
    if dropped > 0 {
        run.update.recorder.notice(
            run.about().batch(batch),
            "keyless-events",
            format!("{} dropped", counted(dropped, "event without a key was", "events without a key were")),
            Some("they are left out because of null_keys = \"drop\"".to_string()),
        );
    }
}

/// Says which columns events would write that there aren't.
fn tell_unknown(run: &FlowRun<'_>, batch: i64, refused: &Refused, left_out: &[String]) {
    if let Some(message) = refused.unknown_columns(left_out) {
        run.update.recorder.notice(
            run.about().batch(batch),
            "unknown-columns",
            message,
            Some("where the table has such a column or gets it, it is NULL after these events; correct the names, or add the \
                 columns to the source".to_string()),
        );
    }
}

/// Reports what the batch's numbers don't tell.
fn tell(
    run: &FlowRun<'_>,
    batch: i64,
    sources: &[OpenSource],
    inputs: &[PlannedInput],
    applied: &Applied,
    refused: &Refused,
) {
    let about = || run.about().batch(batch);
    let place = places(sources, inputs);
    let place = |of: &Place| {
        let kind = if of.kind == Kind::Delete { "delete" } else { "upsert" };
        match &of.earlier {
            None => format!("the {kind} at {}", place(of.position)),
            Some((flow, batch)) => format!("the {kind} of `{flow}`, batch {batch}"),
        }
    };
    if applied.counts.ties > 0 {
        let examples: Vec<String> = applied
            .ties
            .iter()
            .map(|tie| format!("{} at {}: {} beat {}", tie.key, tie.sequence, place(&tie.winner), place(&tie.loser)))
            .collect();
        run.update.recorder.notice(
            about(),
            "sequence-ties",
            format!(
                "{} the key and sequence of another, different one: {}",
                counted(applied.counts.ties, "event has", "events have"),
                examples.join("; ")
            ),
            Some(
                "a delete wins over an upsert, then the later one in the source, in the columns that it isn't silent \
                 about; make SEQUENCE BY unique for each key, with STRUCT(…) over several columns if need be"
                    .to_string(),
            ),
        );
    }
    tell_dropped(run, batch, refused.keyless());
    if applied.truncations > 0 {
        run.update.recorder.report(
            Level::Info,
            about(),
            format!(
                "{}: {} left the table",
                counted(applied.truncations, "TRUNCATE event", "TRUNCATE events"),
                counted(applied.rows_removed, "row", "rows")
            ),
            Details::Notice { code: "truncated".to_string(), help: None },
        );
    }
}
