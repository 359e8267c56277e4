//! One update: facts are gathered, the update is planned, and its flows run in the order of what they read.
//!
//! ```text
//! files ─▶ plan ─▶ analyse ─▶ lock ─▶ tables are made or changed ─▶ flows, several at a time ─▶ maintenance
//! ```
//!
//! - `mod.rs`: an update from request to report
//! - `set_up.rs`: sources pinned, tables made or changed, flows recorded
//! - `target.rs`: the table that flows write
//! - `schedule.rs`: which flow runs when, and what is reported of it
//!
//! Nothing is written before the files are sound and the request is clear. Not here: what a flow does (`flow`).

mod schedule;
mod set_up;
mod target;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use pipeline::change::Change;
use pipeline::event::{Details, Level, State as RunState};
use pipeline::graph::{DatasetId, ExternalId, FlowId};
use pipeline::plan::{History, UpdatePlan, UpdateRequest, plan_update};
use pipeline::report::{FlowOutcome, UpdateReport};

use crate::analysis::{Analysis, SOURCE_UNREADABLE, applied};
use crate::auto_cdc::target::ChangeTargets;
use crate::clock::{iso, now_us};
use crate::columns::Columns;
use crate::engine::{Engine, table_path};
use crate::error::{Error, Result};
use crate::flow::live::LiveMetrics;
use crate::full_refresh::{self, FullRefreshes};
use crate::generation::flow_app_id;
use crate::history::history;
use crate::listings::Listings;
use crate::lock::WriterLock;
use crate::record::{About, EventSink, Recorder};
use crate::recorded::Recorded;
use crate::source::remembered::Sources;
use crate::state::{Access, NewDataset, NewUpdate, State};
use crate::stop::Stop;
use crate::table::SharedTable;

pub(crate) use set_up::FLOW_PROPERTY;
pub(crate) use target::Target;

use schedule::run_flows;

/// An update that is running: what its flows share.
pub(crate) struct Update {
    pub engine: Engine,
    pub state: Arc<State>,
    pub recorder: Recorder,
    pub stop: Stop,
    pub number: i64,
    pub plan: UpdatePlan,
    pub listings: Arc<Listings>,
    /// By [`DatasetId`].
    columns: Vec<Option<Columns>>,
    targets: HashMap<DatasetId, Target>,
    externals: HashMap<ExternalId, (SharedTable, i64)>,
    /// As state.db has them.
    flow_ids: HashMap<FlowId, String>,
    live: HashMap<FlowId, Arc<LiveMetrics>>,
    pub full_refreshes: FullRefreshes,
    pub change_targets: ChangeTargets,
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
        let listings = Arc::new(Listings::new(self.root().to_path_buf()));
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
            format!("update {number}: {}", request.words()),
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
        listings: &Arc<Listings>,
    ) -> Result<(UpdatePlan, Analysis)> {
        let mut history = state.map_or_else(|| Ok(History::default()), history)?;
        if let Some(state) = state {
            self.find_lost(state, &mut history).await?;
        }
        let plan = plan_update(self.graph(), request, &history).map_err(|refusal| Error::Refused { refusal })?;
        let analysis = self
            .analyse_with(&Recorded::read(state)?, &Sources::over(listings.clone()), &plan.full_refresh, false)
            .await?;
        // A source that can't be read fails the flows that read it, not those that don't.
        match analysis.diagnostics.iter().any(|found| found.is_error() && found.code != SOURCE_UNREADABLE) {
            true => Err(Error::Invalid { diagnostics: analysis.diagnostics }),
            false => Ok((plan, analysis)),
        }
    }

    /// A once flow whose commit the table has lost is not done: a disk that failed may have taken it.
    async fn find_lost(&self, state: &State, history: &mut History) -> Result<()> {
        for known in history.flows.iter_mut().filter(|known| known.is_once && known.is_done && !known.is_retired) {
            let Some(record) = state.flow(&known.dataset, &known.name)? else { continue };
            let batches = state.known_batches(&record.flow_id, record.generation)?;
            let Some(id) = self.graph().find_flow(&known.name) else { continue };
            // A table that can't be opened is told by the flows that run.
            let Ok(Some(table)) = self.table(self.graph().dataset(self.graph().flow(id).target)) else { continue };
            let mut table = table.lock().await;
            if table.refresh().is_err() {
                continue;
            }
            let has_fewer_versions = batches.committed_version.is_some_and(|seen| table.version() < seen);
            known.is_done = !(has_fewer_versions
                && table.txn(&flow_app_id(&record.flow_id, record.generation)) < batches.committed);
        }
        Ok(())
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
        listings: Arc<Listings>,
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
            change_targets: ChangeTargets::default(),
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
