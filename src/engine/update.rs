//! One update: facts are gathered, the update is planned, and its flows run in the order of what they read.
//!
//! ```text
//! files ─▶ plan ─▶ analyse ─▶ lock ─▶ tables are made or changed ─▶ flows, several at a time ─▶ maintenance
//! ```
//!
//! Nothing is written before the files are sound and the request is clear. Not here: what a flow does (`flow`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pipeline::change::Change;
use pipeline::command::UpdateRequest;
use pipeline::data_type::Field;
use pipeline::definition::DatasetKind;
use pipeline::event::{Details, FlowMetrics, Level, State as RunState};
use pipeline::graph::{Dataset, DatasetId, ExternalId, FlowId, FlowKind, Graph};
use pipeline::plan::{FlowAction, History, UpdatePlan, plan_update};
use pipeline::report::{FlowOutcome, UpdateReport};
use pipeline::resume::Refusal;
use tokio::task::JoinSet;

use crate::analysis::{Analysis, applied};
use crate::clock::{iso, now_us};
use crate::columns::{Columns, Misfit, grow};
use crate::data_type::schema_from_arrow;
use crate::engine::{Engine, table_path};
use crate::error::{Error, Result, Retry};
use crate::flow::live::LiveMetrics;
use crate::flow::{self, FlowRun};
use crate::full_refresh::{self, FullRefreshes};
use crate::generation::refuse_older_state;
use crate::history::{RecordedDefinition, definition_hash, history};
use crate::listings::Listings;
use crate::lock::WriterLock;
use crate::overlap::overlaps;
use crate::record::{About, EventSink, Recorder, failure};
use crate::source::external;
use crate::state::{Access, FlowProgress, NewDataset, NewFlow, NewUpdate, State, UpdateFlow};
use crate::stop::Stop;
use crate::table::{Commit, MetadataChange, SharedTable, Table, TableSpec};

/// How often the numbers of running flows are reported.
const METRICS_EVERY: Duration = Duration::from_millis(200);

/// Table properties `flowbench.flow.<flow id> = <name>`: they tie the `txn` actions in the log to flows, so that
/// a lost state.db can be rebuilt.
pub(crate) const FLOW_PROPERTY: &str = "flowbench.flow.";

/// The pause before the first retry; each further one is twice as long.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// An update that is running: what its flows share.
pub(crate) struct Update {
    pub engine: Engine,
    pub state: Arc<State>,
    pub recorder: Recorder,
    pub stop: Stop,
    pub number: i64,
    pub plan: UpdatePlan,
    pub listings: Listings,
    /// By [`DatasetId`].
    columns: Vec<Option<Columns>>,
    targets: HashMap<DatasetId, Target>,
    externals: HashMap<ExternalId, (SharedTable, i64)>,
    /// As state.db has them.
    flow_ids: HashMap<FlowId, String>,
    live: HashMap<FlowId, Arc<LiveMetrics>>,
    pub full_refreshes: FullRefreshes,
}

/// The table that flows write: a dataset's own, or the shadow of its next generation.
#[derive(Clone)]
pub(crate) struct Target {
    pub table: SharedTable,
    pub folder: PathBuf,
    pub partition_by: Vec<String>,
    /// None: the dataset's own table.
    pub shadow_generation: Option<i64>,
}

impl Target {
    /// The table's columns as they are now.
    pub async fn columns(&self, run: &FlowRun<'_>) -> Result<Columns> {
        let mut table = self.table.lock().await;
        table.refresh()?;
        self.columns_of(run, &table)
    }

    /// The columns of the locked table, with what the definition says of them.
    pub fn columns_of(&self, run: &FlowRun<'_>, table: &Table) -> Result<Columns> {
        let fields = schema_from_arrow(&table.schema()).map_err(Error::Internal)?;
        let Some(known) = &run.update.columns[run.flow.target.0] else { return Ok(Columns::grown(fields)) };
        let default = |field: &Field| {
            let at = crate::data_type::position(&known.fields, &field.name)?;
            known.defaults[at].clone()
        };
        let defaults = fields.iter().map(default).collect();
        Ok(Columns { fields, is_declared: known.is_declared, defaults })
    }

    /// The columns of a materialized view whose query gives `given`.
    pub fn recomputed_columns(&self, run: &FlowRun<'_>, given: Vec<Field>) -> Result<Columns> {
        let Some(declared) = run.update.columns[run.flow.target.0].as_ref().filter(|columns| columns.is_declared)
        else {
            return Ok(Columns::grown(given));
        };
        grow(declared, &given).map_err(|misfits| {
            let what: Vec<String> = misfits.iter().map(Misfit::to_string).collect();
            Error::user(
                "schema-mismatch",
                format!("materialized view `{}`: {}", run.dataset.label, what.join("; ")),
                "cast the column in the query, or change its declaration",
            )
        })
    }
}

impl Update {
    /// What the dataset's flows write in this update; None if none of them runs.
    pub fn target(&self, id: DatasetId) -> Option<&Target> {
        self.targets.get(&id)
    }

    /// The datasets that are being built anew.
    pub fn shadows(&self) -> impl Iterator<Item = DatasetId> {
        self.targets.iter().filter(|(_, target)| target.shadow_generation.is_some()).map(|(id, _)| *id)
    }

    /// The dataset's definition as this update applies it to its table, as state.db keeps it.
    pub fn definition(&self, id: DatasetId) -> Result<String> {
        let dataset = self.engine.graph().dataset(id);
        let columns = self.columns[id.0].as_ref();
        let columns =
            columns.ok_or_else(|| Error::Internal(format!("`{}` was built without columns", dataset.label)))?;
        Ok(serde_json::to_string(&applied(dataset, columns)).expect("a definition is plain data"))
    }

    /// Records the dataset's definition as applied to its table.
    fn record_dataset(&self, id: DatasetId) -> Result<()> {
        let dataset = self.engine.graph().dataset(id);
        self.state.put_dataset(
            &NewDataset {
                dataset: &dataset.name.key(),
                name: &dataset.label,
                kind: dataset.kind(),
                table_path: &table_path(&dataset.name),
                definition: &self.definition(id)?,
            },
            now_us(),
        )?;
        Ok(())
    }

    /// An external Delta table, and the version it had when the update started.
    pub fn external(&self, id: ExternalId) -> Result<(SharedTable, i64)> {
        self.externals.get(&id).cloned().ok_or_else(|| Error::Internal("an external table was not opened".to_string()))
    }
}

impl Engine {
    /// Runs an update to its end.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Refused`] before anything is written, `workspace-locked` if another
    /// process runs one. Failed flows are no error of this function: the report has them.
    pub async fn run(&self, request: UpdateRequest, sink: EventSink, stop: Stop) -> Result<UpdateReport> {
        let started = Instant::now();
        self.check_files()?;
        let listings = Listings::new(self.root().to_path_buf());
        if !State::exists(self.storage()) {
            // A first run of an invalid workspace leaves no trace.
            self.prepare(None, &request, &listings).await?;
        }
        let _lock = WriterLock::acquire(self.storage(), "run", &iso(now_us()))?;
        let state = Arc::new(State::open(self.storage(), Access::ReadWrite)?);
        state.fail_interrupted_updates(now_us())?;
        full_refresh::finish_interrupted(self, &state).await?;
        let (plan, analysis) = self.prepare(Some(&state), &request, &listings).await?;

        let number = self.create_update(&state, &request)?;
        let recorder = Recorder::new(state.clone(), sink, number);
        recorder.report(
            Level::Info,
            About::update(),
            format!("update {number}: {}", describe(&request)),
            Details::CreateUpdate { request: request.clone() },
        );
        let outcome = self.run_planned(plan, analysis, &state, &recorder, &stop, listings).await;
        let ended = match &outcome {
            Ok((_, flows)) => final_state(flows, &stop),
            Err(Error::Canceled) => RunState::Canceled,
            Err(_) => RunState::Failed,
        };
        let error = match &outcome {
            Err(error) => Some(error.to_string()),
            Ok((_, flows)) => summary(flows),
        };
        state.set_update_state(number, ended.into(), error.as_deref(), now_us())?;
        recorder.progress(ended, format!("update {number} is {ended}"));
        let (notices, flows) = outcome?;
        Ok(UpdateReport { number, state: ended, flows, notices, duration_ms: started.elapsed().as_millis() as u64 })
    }

    /// Plans a request and analyses the workspace for it.
    pub(crate) async fn prepare(
        &self,
        state: Option<&State>,
        request: &UpdateRequest,
        listings: &Listings,
    ) -> Result<(UpdatePlan, Analysis)> {
        let history = state.map_or_else(|| Ok(History::default()), history)?;
        let plan = plan_update(self.graph(), request, &history).map_err(|refusal| Error::Refused { refusal })?;
        let analysis = self.analyse_with(state, listings, &plan.full_refresh, false).await?;
        match analysis.has_errors() {
            true => Err(Error::Invalid { diagnostics: analysis.diagnostics }),
            false => Ok((plan, analysis)),
        }
    }

    fn create_update(&self, state: &State, request: &UpdateRequest) -> Result<i64> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        state.create_update(
            &NewUpdate {
                update_uuid: &uuid::Uuid::new_v4().to_string(),
                cause: &serde_json::to_string(&request.cause).expect("a cause is plain data").replace('"', ""),
                request: &serde_json::to_string(request).expect("a request is plain data"),
                pid: std::process::id(),
                host: host.trim(),
            },
            now_us(),
        )
    }

    async fn run_planned(
        &self,
        plan: UpdatePlan,
        analysis: Analysis,
        state: &Arc<State>,
        recorder: &Recorder,
        stop: &Stop,
        listings: Listings,
    ) -> Result<(Vec<pipeline::plan::Notice>, Vec<FlowOutcome>)> {
        for notice in &plan.notices {
            recorder.notice(About::update(), notice.code, notice.message.clone(), Some(notice.help.clone()));
        }
        for changed in self.changes(state, &analysis)? {
            for change in &changed.changes {
                let details = Details::Notice { code: "definition-changed".to_string(), help: None };
                recorder.report(
                    Level::Info,
                    About::dataset(&changed.dataset),
                    change_text(&changed.dataset, change),
                    details,
                );
            }
        }
        recorder.progress(RunState::Planning, "reading sources as they are now");
        state.set_update_state(recorder.update(), RunState::Planning.into(), None, now_us())?;
        let mut update = Update {
            engine: self.clone(),
            state: state.clone(),
            recorder: recorder.clone(),
            stop: stop.clone(),
            number: recorder.update(),
            live: plan.flows.iter().map(|(id, _)| (*id, Arc::new(LiveMetrics::new()))).collect(),
            plan,
            listings,
            columns: analysis.columns,
            targets: HashMap::new(),
            externals: HashMap::new(),
            flow_ids: HashMap::new(),
            full_refreshes: FullRefreshes::default(),
        };
        update.open_externals()?;
        update.list_sources().await?;
        update.warn_of_overlaps().await?;
        update.set_up().await?;
        recorder.progress(RunState::Running, "running flows");
        state.set_update_state(update.number, RunState::Running.into(), None, now_us())?;
        let update = Arc::new(update);
        let flows = run_flows(&update).await?;
        if !stop.is_requested() {
            crate::maintenance::after_update(&update).await;
        }
        Ok((update.plan.notices.clone(), flows))
    }
}

impl Update {
    /// Pins external Delta tables at the version they have now.
    fn open_externals(&mut self) -> Result<()> {
        let graph = self.engine.graph();
        let settings = self.engine.settings();
        for (index, table) in graph.externals.iter().enumerate() {
            let is_read = self.running().any(|id| {
                graph
                    .all_inputs(&graph.flow(id).reading)
                    .iter()
                    .any(|input| matches!(input.source, pipeline::graph::Source::External { id, .. } if id.0 == index))
            });
            if is_read && external::files(table, settings).is_none() {
                let open = external::open_delta(table, settings, self.engine.root())?;
                let version = open.version();
                self.externals.insert(ExternalId(index), (Arc::new(tokio::sync::Mutex::new(open)), version));
            }
        }
        Ok(())
    }

    /// Lists the file sources of all flows that run, before the first of them does.
    async fn list_sources(&self) -> Result<()> {
        let graph = self.engine.graph();
        for id in self.running() {
            let flow = graph.flow(id);
            for input in graph.all_inputs(&flow.reading) {
                let spec = match &input.source {
                    pipeline::graph::Source::Files(spec) => Some(spec.as_ref().clone()),
                    pipeline::graph::Source::External { id, .. } => {
                        external::files(&graph.externals[id.0], self.engine.settings())
                    }
                    _ => None,
                };
                let Some(spec) = spec else { continue };
                let listed = self.listings.list(&spec).await?;
                let target = &graph.dataset(flow.target).label;
                self.recorder.report(
                    Level::Info,
                    About::flow(&flow.name, target),
                    format!("listed {}: {} files", spec.path, listed.files.len()),
                    Details::OperationProgress {
                        operation: "AUTO_LOADER_LISTING".to_string(),
                        source: spec.path.clone(),
                        files: listed.files.len() as u64,
                        duration_ms: listed.duration_ms,
                    },
                );
                // A once flow says that itself.
                if listed.is_missing && flow.kind != FlowKind::Once {
                    self.recorder.notice(
                        About::flow(&flow.name, target),
                        "source-missing",
                        format!("flow `{}` reads `{}`, which does not exist", flow.name, spec.path),
                        Some("correct the path, or bring the folder back; the flow goes on where it was".to_string()),
                    );
                }
                let is_rebuilt = self.plan.full_refresh.contains(&flow.target);
                if is_rebuilt && listed.is_missing {
                    return Err(Error::user(
                        "source-missing",
                        format!(
                            "full refresh of `{target}`: flow `{}` reads `{}`, which does not exist any more",
                            flow.name, spec.path
                        ),
                        "nothing was dropped; bring the source back, or take the flow out of the files first",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Warns of flows that would append the same files to one table.
    async fn warn_of_overlaps(&self) -> Result<()> {
        for notice in overlaps(self.engine.graph(), &self.plan, Some(&self.state), &self.listings).await? {
            self.recorder.notice(About::update(), notice.code, notice.message, Some(notice.help));
        }
        Ok(())
    }

    /// The flows that this update runs.
    fn running(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.plan
            .flows
            .iter()
            .filter(|(_, action)| matches!(action, FlowAction::Run | FlowAction::RunOnceAgain))
            .map(|(id, _)| *id)
    }

    /// Makes or changes the tables that flows will write, and records datasets and flows.
    async fn set_up(&mut self) -> Result<()> {
        let graph = self.engine.graph().clone();
        let keys: Vec<String> = graph
            .datasets
            .iter()
            .filter(|dataset| dataset.kind().is_stored())
            .map(|dataset| dataset.name.key())
            .collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        for inactive in self.state.deactivate_datasets_except(&keys)? {
            self.recorder.notice(
                About::update(),
                "dataset-inactive",
                format!("`{inactive}` is no longer in the files; its table stays on disk"),
                Some(format!("remove it with: flowbench drop {inactive} --yes")),
            );
        }
        for id in graph.flow_ids() {
            let record = self.register_flow(id)?;
            self.flow_ids.insert(id, record.flow_id);
        }
        self.state.retire_flows_except(&self.flow_ids.values().map(String::as_str).collect::<Vec<_>>())?;
        let mut datasets: BTreeSet<DatasetId> = self.running().map(|id| graph.flow(id).target).collect();
        // A declared table exists, even if no flow writes it (yet).
        datasets.extend(graph.dataset_ids().filter(|id| {
            let dataset = graph.dataset(*id);
            dataset.kind() == DatasetKind::StreamingTable && dataset.flows.is_empty()
        }));
        for id in datasets {
            let dataset = graph.dataset(id);
            let Some(columns) = self.columns[id.0].clone() else {
                self.refuse_refresh_from_nothing(id)?;
                continue;
            };
            let target = self.set_up_table(id, dataset, &columns).await.map_err(|error| match error {
                Error::User { code, what, help } => {
                    Error::User { code, what: format!("dataset `{}`: {what}", dataset.label), help }
                }
                error => error,
            })?;
            self.targets.insert(id, target);
            self.recorder.report(
                Level::Info,
                About::dataset(&dataset.label),
                format!("{} `{}` with {} flows", dataset.kind().words(), dataset.label, dataset.flows.len()),
                Details::DatasetDefinition {
                    dataset_type: dataset.kind().words().to_string(),
                    num_flows: dataset.flows.len(),
                },
            );
        }
        Ok(())
    }

    fn register_flow(&self, id: FlowId) -> Result<crate::state::Flow> {
        let graph = self.engine.graph();
        let flow = graph.flow(id);
        let kind = match flow.kind {
            FlowKind::Append => crate::state::FlowKind::Append,
            FlowKind::Once => crate::state::FlowKind::Once,
            FlowKind::Complete => crate::state::FlowKind::Complete,
        };
        self.state.register_flow(
            &NewFlow {
                flow_id: &uuid::Uuid::new_v4().to_string(),
                name: &flow.name,
                dataset: &graph.dataset(flow.target).name.key(),
                kind,
            },
            now_us(),
        )
    }

    async fn set_up_table(&self, id: DatasetId, dataset: &Dataset, columns: &Columns) -> Result<Target> {
        let folder = self.engine.table_folder(&dataset.name);
        let definition = &dataset.definition;
        let partition_by: Vec<String> = definition
            .partition_by
            .iter()
            .filter_map(|wanted| columns.fields.iter().find(|field| field.name.eq_ignore_ascii_case(&wanted.value)))
            .map(|field| field.name.clone())
            .collect();
        let spec = TableSpec {
            name: dataset.label.clone(),
            schema: Some(columns.schema()),
            partition_by: partition_by.clone(),
            comment: definition.comment.clone(),
            properties: properties(dataset, self.engine.graph(), &self.flow_ids),
        };
        let existing = self.engine.tables().get(&folder)?;
        // A materialized view is built anew at every refresh; a table that is not there yet has nothing to keep.
        let is_rebuilt = self.plan.full_refresh.contains(&id) && dataset.kind() == DatasetKind::StreamingTable;
        let is_gone = existing.is_none() && self.was_written(dataset)?;
        if is_rebuilt && (existing.is_some() || is_gone) {
            // A table made anew by an older state.db's record is one too, and one that is gone comes back whole.
            self.record_if_unknown(id)?;
            return full_refresh::start(self, dataset, &folder, spec, partition_by).await;
        }
        if is_gone {
            let gone = Refusal::TableGone;
            return Err(Error::user(gone.code(), gone.reason(), gone.help()));
        }
        let table = match existing {
            Some(table) => {
                {
                    let mut table = table.lock().await;
                    table.refresh()?;
                    refuse_older_state(&self.state, self.engine.graph(), dataset, &table)?;
                }
                self.apply_definition(dataset, columns, &table).await?;
                table
            }
            None => self.engine.tables().get_or_create(&folder, |folder| Table::create(folder, spec))?,
        };
        self.record_dataset(id)?;
        Ok(Target { table, folder, partition_by, shadow_generation: None })
    }

    /// Whether batches were committed to the dataset's table.
    fn was_written(&self, dataset: &Dataset) -> Result<bool> {
        for id in &dataset.flows {
            let flow = self.state.flow(&dataset.name.key(), &self.engine.graph().flow(*id).name)?;
            let Some(flow) = flow else { continue };
            if self.state.known_batches(&flow.flow_id, flow.generation)?.committed.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// state.db may be too old to know a table that is there.
    fn record_if_unknown(&self, id: DatasetId) -> Result<()> {
        let key = self.engine.graph().dataset(id).name.key();
        match self.state.dataset(&key)? {
            Some(_) => Ok(()),
            None => self.record_dataset(id),
        }
    }

    /// A full refresh without a column to read would say COMPLETED and leave the old rows in force.
    fn refuse_refresh_from_nothing(&self, id: DatasetId) -> Result<()> {
        let dataset = self.engine.graph().dataset(id);
        if !self.plan.full_refresh.contains(&id) || self.engine.table(dataset)?.is_none() {
            return Ok(());
        }
        Err(Error::user(
            "source-empty",
            format!("full refresh of `{}`: there is nothing to read, so its columns are unknown", dataset.label),
            "nothing was dropped; bring the source's files back, or declare the columns",
        ))
    }

    /// Writes what changed of comment, properties and declared columns into the table.
    async fn apply_definition(&self, dataset: &Dataset, columns: &Columns, table: &SharedTable) -> Result<()> {
        let mut table = table.lock().await;
        table.refresh()?;
        let mut metadata = MetadataChange::default();
        if table.comment() != dataset.definition.comment.as_deref() {
            metadata.comment = Some(dataset.definition.comment.clone());
        }
        let wanted = properties(dataset, self.engine.graph(), &self.flow_ids);
        let present = table.properties();
        // What other programs and the format itself keep there stays.
        let is_ours = |key: &str| !key.starts_with("delta.") || wanted.contains_key(key);
        let kept: BTreeMap<String, String> =
            present.iter().filter(|(key, _)| !is_ours(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
        let wanted: BTreeMap<String, String> = kept.into_iter().chain(wanted).collect();
        if wanted != present {
            metadata.properties = Some(wanted);
        }
        let new_schema = match dataset.kind() {
            // A materialized view's columns change with its rows.
            DatasetKind::MaterializedView => None,
            _ => {
                let stored = Columns::grown(schema_from_arrow(&table.schema()).map_err(Error::Internal)?);
                match grow(&stored, &columns.fields) {
                    Ok(grown) if grown.fields != stored.fields && columns.is_declared => Some(grown.schema()),
                    _ => None,
                }
            }
        };
        if metadata.comment.is_none() && metadata.properties.is_none() && new_schema.is_none() {
            return Ok(());
        }
        let commit = Commit { metadata, new_schema, operation: "SET TBLPROPERTIES".to_string(), ..Commit::default() };
        table.commit(commit).await?;
        Ok(())
    }
}

/// The table's properties: the user's, and what Delta has no place for (architecture, CLUSTER BY and DEFAULT).
fn properties(dataset: &Dataset, graph: &Graph, flow_ids: &HashMap<FlowId, String>) -> BTreeMap<String, String> {
    let mut properties = dataset.definition.properties.clone();
    for flow in &dataset.flows {
        if let Some(id) = flow_ids.get(flow) {
            properties.insert(format!("{FLOW_PROPERTY}{id}"), graph.flow(*flow).name.clone());
        }
    }
    let cluster_by: Vec<&str> = dataset.definition.cluster_by.iter().map(|column| column.value.as_str()).collect();
    if !cluster_by.is_empty() {
        properties.insert("flowbench.clusterBy".to_string(), cluster_by.join(","));
    }
    for column in &dataset.definition.columns {
        if let Some(default) = &column.default {
            properties.insert(format!("flowbench.default.{}", column.name.value), default.value.clone());
        }
    }
    properties
}

/// Runs the flows, each as soon as those that write what it reads have ended, some at a time.
async fn run_flows(update: &Arc<Update>) -> Result<Vec<FlowOutcome>> {
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
    let limit = update.engine.settings().limits.concurrent_flows.max(1);
    let mut running: JoinSet<(FlowId, Result<FlowMetrics>)> = JoinSet::new();
    let mut tasks = HashMap::new();
    let mut ticker = tokio::time::interval(METRICS_EVERY);
    loop {
        // Skips cascade, so a pass is repeated until nothing changes.
        let mut changed = true;
        while changed {
            changed = false;
            for (id, _) in &update.plan.flows {
                if states[id] != RunState::Queued {
                    continue;
                }
                let before: Vec<FlowId> = graph.predecessors(*id).into_iter().collect();
                if let Some(failed) = before
                    .iter()
                    .find(|id| states.get(id).is_some_and(|state| state.is_final() && !state.lets_readers_start()))
                {
                    let why = Error::user(
                        "upstream-failed",
                        format!(
                            "flow `{}`, which writes what it reads, is {}",
                            graph.flow(*failed).name,
                            states[failed]
                        ),
                        "mend that flow and run again",
                    );
                    set(update, &mut states, *id, RunState::Skipped, Some(&why))?;
                    outcomes.insert(*id, Ended::failed(why));
                    changed = true;
                } else if update.stop.is_requested() {
                    set(update, &mut states, *id, RunState::Skipped, Some(&Error::Canceled))?;
                    outcomes.insert(*id, Ended::failed(Error::Canceled));
                    changed = true;
                } else if running.len() < limit
                    && before.iter().all(|id| states.get(id).is_none_or(|state| state.lets_readers_start()))
                {
                    set(update, &mut states, *id, RunState::Running, None)?;
                    let (update, id) = (update.clone(), *id);
                    let handle = running.spawn(async move { (id, run_flow(&update, id).await) });
                    tasks.insert(handle.id(), id);
                    changed = true;
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
        if error.retry() == Retry::Never || tries >= retries || update.stop.is_requested() {
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
        update.state.reset_flow(&record.flow_id, "rerun once", now_us())?;
    }
    let definition = RecordedDefinition::of(graph, flow);
    update.state.record_run(&record.flow_id, &definition.to_json(), &definition_hash(&definition.query), now_us())?;
    let target = graph.dataset(flow.target);
    update.recorder.report(
        Level::Info,
        About::flow(&flow.name, &target.label),
        format!("flow `{}` into `{}`: {}", flow.name, target.label, flow.kind.words()),
        Details::FlowDefinition {
            input_datasets: definition.sources,
            output_dataset: target.label.clone(),
            flow_type: match flow.kind {
                FlowKind::Append | FlowKind::Once => "APPEND".to_string(),
                FlowKind::Complete => "COMPLETE".to_string(),
            },
            schema: update.columns[flow.target.0]
                .iter()
                .flat_map(|columns| &columns.fields)
                .map(|field| (field.name.clone(), field.data_type.to_string()))
                .collect(),
            comment: flow.comment.clone(),
            once: flow.kind == FlowKind::Once,
        },
    );
    update
        .state
        .flow_by_id(&record.flow_id)?
        .ok_or_else(|| Error::Internal(format!("flow `{}` was not recorded", flow.name)))
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
    let message = format!("flow `{}` is {state}", flow.name);
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
            format!("{} rows", metrics.rows_out),
            Details::FlowProgress { status: RunState::Running, metrics },
        );
    }
}

fn final_state(flows: &[FlowOutcome], stop: &Stop) -> RunState {
    match () {
        () if flows.iter().any(|flow| flow.state == RunState::Failed) => RunState::Failed,
        () if stop.is_requested() => RunState::Canceled,
        () if flows.iter().any(|flow| flow.state == RunState::Skipped) => RunState::Failed,
        () => RunState::Completed,
    }
}

fn summary(flows: &[FlowOutcome]) -> Option<String> {
    let failed: Vec<String> = flows
        .iter()
        .filter(|flow| flow.state == RunState::Failed)
        .map(|flow| format!("{}: {}", flow.flow, flow.error.as_ref().map_or("failed", |error| error.message.as_str())))
        .collect();
    (!failed.is_empty()).then(|| failed.join("; "))
}

fn change_text(dataset: &str, change: &Change) -> String {
    match change {
        Change::Metadata { what } => format!("`{dataset}`: {what} changed"),
        Change::NewColumns { columns } => {
            let names: Vec<String> = columns.iter().map(|(name, data_type)| format!("{name} {data_type}")).collect();
            format!("`{dataset}`: new columns {}", names.join(", "))
        }
        Change::NeedsFullRefresh { reason } | Change::Refused { reason, .. } => format!("`{dataset}`: {reason}"),
    }
}

/// The request in words.
pub(crate) fn describe(request: &UpdateRequest) -> String {
    let mut words = Vec::new();
    let mut list = |what: &str, names: &[String]| {
        if !names.is_empty() {
            words.push(format!("{what} {}", names.join(", ")));
        }
    };
    list("refresh", &request.refresh);
    list("full refresh", &request.full_refresh);
    list("flow", &request.flows);
    list("rerun", &request.rerun_once);
    if request.full_refresh_all {
        words.push("full refresh of all".to_string());
    }
    if request.refresh_failed {
        words.push("refresh failed".to_string());
    }
    match words.is_empty() {
        true => "refresh all".to_string(),
        false => words.join("; "),
    }
}
