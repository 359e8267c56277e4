//! Which flow runs when: as soon as those that it comes after have ended, some at a time. A failure that may pass
//! is retried; what comes after a failed flow is skipped, the rest goes on. `pipeline::schedule` decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pipeline::event::{Details, FlowMetrics, Level, State as RunState};
use pipeline::graph::{FlowId, FlowKind, Graph};
use pipeline::plan::FlowAction;
use pipeline::report::FlowOutcome;
use pipeline::schedule::{Edge, Schedule, Step};
use tokio::task::JoinSet;

use crate::clock::now_us;
use crate::error::{Error, Result, Retry};
use crate::flow::{self, FlowRun};
use crate::full_refresh::{self};
use crate::history::{RecordedDefinition, definition_hash};
use crate::record::{About, failure};
use crate::state::{FlowProgress, UpdateFlow};

use super::Update;

/// How often the numbers of running flows are reported.
const METRICS_EVERY: Duration = Duration::from_millis(200);

/// The pause before the first retry; each further one is twice as long.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Runs the flows, each as soon as those that it comes after have ended, some at a time.
pub(super) async fn run_flows(update: &Arc<Update>) -> Result<Vec<FlowOutcome>> {
    let graph = update.engine.graph();
    let mut states: BTreeMap<FlowId, RunState> = BTreeMap::new();
    let mut outcomes: HashMap<FlowId, Ended> = HashMap::new();
    for (id, action) in &update.plan.flows {
        let state = match action {
            FlowAction::Run | FlowAction::RunOnceAgain => RunState::Queued,
            FlowAction::Idle => RunState::Idle,
            FlowAction::Excluded => RunState::Excluded,
        };
        states.insert(*id, state);
        report_state(update, *id, state, None)?;
    }
    full_refresh::promote_without_flows(update).await?;
    let schedule = Schedule::new(graph, &update.plan);
    let limit = update.engine.settings().limits.concurrent_flows.max(1);
    let mut running: JoinSet<(FlowId, Result<FlowMetrics>)> = JoinSet::new();
    let mut tasks = HashMap::new();
    let mut ticker = tokio::time::interval(METRICS_EVERY);
    loop {
        let room = limit.saturating_sub(running.len());
        for step in schedule.next_steps(&states, room, update.stop.is_requested()) {
            match step {
                Step::Start(id) => {
                    set(update, &mut states, id, RunState::Running, None)?;
                    let update = update.clone();
                    let handle = running.spawn(async move { (id, run_flow(&update, id).await) });
                    tasks.insert(handle.id(), id);
                }
                Step::Skip { flow, because } => {
                    let why = because.map_or(Error::Canceled, |(before, edge)| {
                        not_run(&graph.flow(before).name, edge, states[&before])
                    });
                    set(update, &mut states, flow, RunState::Skipped, Some(&why))?;
                    outcomes.insert(flow, Ended::failed(why));
                }
            }
        }
        if running.is_empty() {
            break;
        }
        let ended = tokio::select! {
            ended = running.join_next() => ended,
            _ = ticker.tick() => {
                report_metrics(update, &states);
                continue;
            }
        };
        let (id, outcome) = match ended.expect("a flow is running") {
            Ok(ended) => ended,
            Err(error) => {
                // A panic fails its flow, not the program.
                let id = tasks[&error.id()];
                (id, Err(Error::Internal(format!("flow `{}` panicked: {error}", graph.flow(id).name))))
            }
        };
        let state = match &outcome {
            Ok(_) => RunState::Completed,
            Err(Error::Canceled) => RunState::Canceled,
            Err(_) => RunState::Failed,
        };
        set(update, &mut states, id, state, outcome.as_ref().err())?;
        outcomes.insert(
            id,
            match outcome {
                Ok(metrics) => Ended { metrics, error: None },
                Err(error) => Ended { metrics: update.live[&id].metrics(), error: Some(error) },
            },
        );
    }
    full_refresh::abandon_unfinished(update).await?;
    let outcome = |(id, _): &(FlowId, FlowAction)| {
        let flow = graph.flow(*id);
        let ended = outcomes.remove(id);
        FlowOutcome {
            flow: flow.name.clone(),
            dataset: graph.dataset(flow.target).label.clone(),
            state: states[id],
            metrics: ended.as_ref().map(|ended| ended.metrics).unwrap_or_default(),
            error: ended
                .and_then(|ended| ended.error)
                .filter(|_| states[id] != RunState::Canceled)
                .map(|e| failure(&e)),
        }
    };
    Ok(update.plan.flows.iter().map(outcome).collect())
}

/// Why a flow is skipped: `before`, which it comes after, did not succeed.
fn not_run(before: &str, edge: Edge, state: RunState) -> Error {
    let (code, relation) = match edge {
        Edge::Data => ("upstream-failed", "which writes what it reads"),
        Edge::Order => ("predecessor-failed", "which it waits for (depends_on)"),
    };
    Error::user(code, format!("flow `{before}`, {relation}, is {state}"), "mend that flow and run again")
}

struct Ended {
    metrics: FlowMetrics,
    error: Option<Error>,
}

impl Ended {
    fn failed(error: Error) -> Ended {
        Ended { metrics: FlowMetrics::default(), error: Some(error) }
    }
}

/// Runs one flow, again after a pause while its failure may pass.
async fn run_flow(update: &Update, id: FlowId) -> Result<FlowMetrics> {
    let graph = update.engine.graph();
    let flow = graph.flow(id);
    let retries = flow.limits.retries.unwrap_or(update.engine.settings().limits.retries);
    let mut pause = RETRY_PAUSE;
    update.live[&id].start();
    let mut record = start(update, id)?;
    let mut metrics = None;
    for tries in 0.. {
        let is_shadow = update.targets.get(&flow.target).is_some_and(|target| target.shadow_generation.is_some());
        let generation = match is_shadow {
            true => record.shadow_generation.ok_or_else(|| {
                Error::Internal(format!("flow `{}` has no checkpoint in the generation being built", flow.name))
            })?,
            false => record.generation,
        };
        let run = FlowRun {
            update,
            flow,
            dataset: graph.dataset(flow.target),
            generation,
            target: update.targets.get(&flow.target).cloned(),
            session: crate::session::limited(&update.engine.session()?, flow.limits.memory_bytes)?,
            live: update.live[&id].clone(),
            record: record.clone(),
        };
        let outcome = match metrics {
            None => flow::run(&run).await,
            // Only the promotion failed.
            Some(metrics) => Ok(metrics),
        };
        let outcome = match outcome {
            Ok(done) => {
                metrics = Some(done);
                full_refresh::promote_if_complete(update, flow.target, id).await.map(|()| done)
            }
            Err(error) => Err(error),
        };
        let error = match outcome {
            Ok(metrics) => return Ok(metrics),
            Err(error) => error,
        };
        // A listing holds for the whole update, so files that changed since are for the next one.
        if error.retry() == Retry::Never
            || flow::batch::input_is_gone(&error)
            || tries >= retries
            || update.stop.is_requested()
        {
            return Err(error);
        }
        update.recorder.notice(
            run.about(),
            "flow-retried",
            format!("flow `{}` failed and is tried again ({} of {retries}): {error}", flow.name, tries + 1),
            error.help(),
        );
        update.stop.sleep(pause).await;
        pause *= 2;
        record = update.state.flow_by_id(&record.flow_id)?.unwrap_or(record);
    }
    Err(Error::Internal("retries never end".to_string()))
}

/// Records that the flow runs now, as it is defined now. A once flow that shall run again gets a new checkpoint.
fn start(update: &Update, id: FlowId) -> Result<crate::state::Flow> {
    let graph = update.engine.graph();
    let flow = graph.flow(id);
    let record = update.register_flow(id)?;
    let is_again = update.plan.flows.iter().any(|(other, action)| *other == id && *action == FlowAction::RunOnceAgain);
    if is_again {
        update.state.reset_flow(&record.flow_id, "rerun once", flow.kind.is_change(), now_us())?;
    }
    let definition = RecordedDefinition::of(graph, flow);
    update.state.record_run(&record.flow_id, &definition.to_json(), &definition_hash(&definition.query), now_us())?;
    let target = graph.dataset(flow.target);
    let after = after(graph, id);
    update.recorder.report(
        Level::Info,
        About::flow(&flow.name, &target.label),
        format!("flow `{}` into `{}`: {}{after}", flow.name, target.label, flow.kind.words()),
        Details::FlowDefinition {
            input_datasets: definition.sources,
            depends_on: graph.order_names(id).into_iter().map(str::to_string).collect(),
            output_dataset: target.label.clone(),
            flow_type: match flow.kind {
                FlowKind::Append | FlowKind::Once => "APPEND".to_string(),
                FlowKind::Complete => "COMPLETE".to_string(),
                FlowKind::Cdc | FlowKind::CdcOnce => "AUTO_CDC".to_string(),
                FlowKind::Snapshot | FlowKind::SnapshotOnce => "AUTO_CDC_FROM_SNAPSHOT".to_string(),
            },
            schema: update.columns[flow.target.0]
                .iter()
                .flat_map(|columns| &columns.fields)
                .map(|field| (field.name.clone(), field.data_type.to_string()))
                .collect(),
            comment: flow.comment.clone(),
            once: flow.kind.is_once(),
        },
    );
    update
        .state
        .flow_by_id(&record.flow_id)?
        .ok_or_else(|| Error::Internal(format!("flow `{}` was not recorded", flow.name)))
}

/// The flows that it waits for by `depends_on`, in words; empty if there is none.
fn after(graph: &Graph, id: FlowId) -> String {
    match graph.order_names(id).as_slice() {
        [] => String::new(),
        names => format!(", after `{}`", names.join("`, `")),
    }
}

fn set(
    update: &Update,
    states: &mut BTreeMap<FlowId, RunState>,
    id: FlowId,
    state: RunState,
    error: Option<&Error>,
) -> Result<()> {
    states.insert(id, state);
    report_state(update, id, state, error)
}

fn report_state(update: &Update, id: FlowId, state: RunState, error: Option<&Error>) -> Result<()> {
    let flow = update.engine.graph().flow(id);
    let target = &update.engine.graph().dataset(flow.target).label;
    let metrics = match state {
        RunState::Queued | RunState::Idle | RunState::Excluded => FlowMetrics::default(),
        _ => update.live[&id].metrics(),
    };
    let about = About::flow(&flow.name, target);
    let details = Details::FlowProgress { status: state, metrics };
    let after = if state == RunState::Queued { after(update.engine.graph(), id) } else { String::new() };
    let message = format!("flow `{}` is {state}{after}", flow.name);
    match error {
        Some(Error::Canceled) | None => update.recorder.report(Level::Info, about, message, details),
        Some(error) => update.recorder.report_failure(about, format!("{message}: {error}"), error, details),
    }
    let now = now_us();
    update.state.put_update_flows(&[UpdateFlow {
        update_id: update.number,
        flow: flow.name.clone(),
        dataset: target.clone(),
        state: state.into(),
        progress: FlowProgress {
            batches: metrics.batches as i64,
            rows_read: metrics.rows_in as i64,
            rows_written: metrics.rows_out as i64,
            rows_rescued: metrics.rescued_values as i64,
            bytes_read: metrics.bytes_in as i64,
            backlog_files: Some(metrics.backlog as i64),
            backlog_bytes: Some(metrics.backlog_bytes as i64),
        },
        started_us: (state == RunState::Running).then_some(now),
        ended_us: state.is_final().then_some(now),
        error_code: error.map(|error| error.code().to_string()),
        error: error.map(ToString::to_string),
    }])?;
    update.recorder.check()
}

fn report_metrics(update: &Update, states: &BTreeMap<FlowId, RunState>) {
    for (id, _) in states.iter().filter(|(_, state)| **state == RunState::Running) {
        let flow = update.engine.graph().flow(*id);
        let metrics = update.live[id].metrics();
        update.recorder.report(
            Level::Metrics,
            About::flow(&flow.name, &update.engine.graph().dataset(flow.target).label),
            pipeline::number::counted(metrics.rows_out, "row", "rows"),
            Details::FlowProgress { status: RunState::Running, metrics },
        );
    }
}
