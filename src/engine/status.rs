//! How a workspace stands: datasets, flows, updates, events. Reads state.db and the tables' logs; works while
//! another process runs an update.

use std::collections::HashMap;

use pipeline::diagnostic::Severity;
use pipeline::event::{Event, Failure, FlowMetrics, State as RunState};
use pipeline::graph::DatasetId;
use pipeline::report::{
    Column, DatasetStatus, Description, FlowOutcome, FlowStatus, Status, TableStatus, TableVersion, UpdateSummary,
};

use crate::data_type::schema_from_arrow;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock::WriterLock;
use crate::record::event_of_log;
use crate::state::{EventFilter, State, Update, UpdateFlow};
use crate::table::Table;

/// Versions of a table that its description shows.
const HISTORY_SHOWN: usize = 10;

impl Engine {
    /// The whole workspace at a glance.
    pub async fn status(&self) -> Result<Status> {
        let state = self.state_for_reading()?;
        let mut datasets = Vec::new();
        for id in self.graph().dataset_ids() {
            datasets.push(self.dataset_status(id)?);
        }
        if let Some(state) = &state {
            datasets.extend(self.inactive(state)?);
        }
        let count = |severity| self.diagnostics().iter().filter(|d| d.severity == severity).count();
        Ok(Status {
            name: self.settings().name.clone(),
            folder: self.root().display().to_string(),
            datasets,
            flows: self.flow_statuses(state.as_ref())?,
            update: self.updates(1)?.pop(),
            running_pid: WriterLock::holder(self.storage()),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
        })
    }

    /// The newest updates, newest first.
    pub fn updates(&self, limit: usize) -> Result<Vec<UpdateSummary>> {
        let Some(state) = self.state_for_reading()? else { return Ok(Vec::new()) };
        let is_running = WriterLock::is_held(self.storage());
        let updates = state.updates(limit as i64)?.into_iter();
        updates
            .map(|update| {
                let update = if is_running { update } else { update.interrupted_if_unfinished() };
                let flows = state.update_flows(update.update_id)?;
                summary(update, flows, is_running)
            })
            .collect()
    }

    /// Events of the log after `after` (0: from the first), oldest first, with their sequence numbers.
    pub fn events(&self, after: i64, limit: usize) -> Result<Vec<(i64, Event)>> {
        let Some(state) = self.state_for_reading()? else { return Ok(Vec::new()) };
        let logged = state.events_after(after, limit as i64, &EventFilter::default())?;
        logged.into_iter().map(|event| Ok((event.sequence, event_of_log(event)?))).collect()
    }

    /// The newest events, oldest first.
    pub fn last_events(&self, limit: usize) -> Result<Vec<(i64, Event)>> {
        let Some(state) = self.state_for_reading()? else { return Ok(Vec::new()) };
        let mut logged = state.events_before(i64::MAX, limit as i64, &EventFilter::default())?;
        logged.sort_by_key(|event| event.sequence);
        logged.into_iter().map(|event| Ok((event.sequence, event_of_log(event)?))).collect()
    }

    /// Everything about one dataset, by its name.
    pub async fn describe(&self, name: &str) -> Result<Description> {
        let state = self.state_for_reading()?;
        let Some(id) = self.graph().find_dataset(name) else { return self.describe_inactive(name, state.as_ref()) };
        let graph = self.graph();
        let dataset = graph.dataset(id);
        let label = |id: &DatasetId| graph.dataset(*id).label.clone();
        let mut history = Vec::new();
        let mut columns = Vec::new();
        match self.table(dataset)? {
            Some(table) => {
                let mut table = table.lock().await;
                table.refresh()?;
                columns = columns_of(&table)?;
                history = versions(&table)?;
            }
            None => {
                if let Some(known) = self.analyse().await?.columns[id.0].take() {
                    columns = known.fields.iter().map(column).collect();
                }
            }
        }
        let definition = &dataset.definition;
        let names = |columns: &[pipeline::text::Spanned<String>]| columns.iter().map(|c| c.value.clone()).collect();
        Ok(Description {
            status: self.dataset_status(id)?,
            columns,
            partition_by: names(&definition.partition_by),
            cluster_by: names(&definition.cluster_by),
            properties: definition.properties.clone().into_iter().collect(),
            flows: self
                .flow_statuses(state.as_ref())?
                .into_iter()
                .filter(|flow| flow.dataset == dataset.label)
                .collect(),
            upstream: graph.upstream(id).iter().map(label).collect(),
            downstream: graph.readers(id).iter().map(label).collect(),
            defined_at: Some(pipeline::diagnostic::place(&self.workspace().files, definition.name.span)),
            history,
        })
    }

    fn describe_inactive(&self, name: &str, state: Option<&State>) -> Result<Description> {
        let found = match state {
            Some(state) => state
                .datasets()?
                .into_iter()
                .find(|known| known.name.eq_ignore_ascii_case(name) || known.dataset == name),
            None => None,
        };
        let Some(found) = found else { return Err(self.unknown_dataset(name)) };
        let table = Table::open(self.storage().join(&found.table_path))?;
        let status = DatasetStatus {
            name: found.name.clone(),
            kind: found.kind.words().to_string(),
            comment: None,
            is_active: false,
            table: table.as_ref().map(table_status),
        };
        Ok(Description {
            status,
            columns: table.as_ref().map(columns_of).transpose()?.unwrap_or_default(),
            partition_by: table.as_ref().map(|table| table.partition_by().to_vec()).unwrap_or_default(),
            cluster_by: Vec::new(),
            properties: table.as_ref().map(|table| table.properties().into_iter().collect()).unwrap_or_default(),
            flows: Vec::new(),
            upstream: Vec::new(),
            downstream: Vec::new(),
            defined_at: None,
            history: table.as_ref().map(versions).transpose()?.unwrap_or_default(),
        })
    }

    /// "No dataset of this name", with what may have been meant.
    pub(crate) fn unknown_dataset(&self, name: &str) -> Error {
        let labels = self.graph().datasets.iter().map(|dataset| dataset.label.as_str());
        let help = match pipeline::diagnostic::nearest(name, labels) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`flowbench status` lists what there is".to_string(),
        };
        Error::user("unknown-dataset", format!("no dataset is named `{name}`"), help)
    }

    fn dataset_status(&self, id: DatasetId) -> Result<DatasetStatus> {
        let dataset = self.graph().dataset(id);
        let table = match dataset.kind().is_stored() {
            true => Table::open(self.table_folder(&dataset.name))?,
            false => None,
        };
        Ok(DatasetStatus {
            name: dataset.label.clone(),
            kind: dataset.kind().words().to_string(),
            comment: dataset.definition.comment.clone(),
            is_active: true,
            table: table.as_ref().map(table_status),
        })
    }

    fn inactive(&self, state: &State) -> Result<Vec<DatasetStatus>> {
        let defined: Vec<String> =
            self.graph().datasets.iter().filter(|d| d.kind().is_stored()).map(|d| d.name.key()).collect();
        let mut found = Vec::new();
        for known in state.datasets()?.into_iter().filter(|known| !defined.contains(&known.dataset)) {
            found.push(DatasetStatus {
                table: Table::open(self.storage().join(&known.table_path))?.as_ref().map(table_status),
                name: known.name,
                kind: known.kind.words().to_string(),
                comment: None,
                is_active: false,
            });
        }
        Ok(found)
    }

    fn flow_statuses(&self, state: Option<&State>) -> Result<Vec<FlowStatus>> {
        let graph = self.graph();
        let is_running = WriterLock::is_held(self.storage());
        let mut last: HashMap<String, UpdateFlow> = HashMap::new();
        if let Some(state) = state {
            for ran in state.last_update_flows()? {
                last.insert(ran.flow.to_lowercase(), ran);
            }
        }
        let mut statuses = Vec::new();
        for id in graph.flow_ids() {
            let flow = graph.flow(id);
            let dataset = graph.dataset(flow.target);
            let record = match state {
                Some(state) => state.flow(&dataset.name.key(), &flow.name)?,
                None => None,
            };
            let is_done = flow.kind.is_once() && record.as_ref().is_some_and(|record| record.completion.is_some());
            let ran = last.get(&flow.name.to_lowercase());
            let state = match ran {
                _ if is_done => RunState::Idle,
                Some(ran) if !is_running && !ran.state.is_final() => RunState::Failed,
                Some(ran) => ran.state.into(),
                None => RunState::Idle,
            };
            statuses.push(FlowStatus {
                name: flow.name.clone(),
                dataset: dataset.label.clone(),
                kind: flow.kind,
                state,
                is_done,
                comment: flow.comment.clone(),
                depends_on: graph.order_names(id).into_iter().map(str::to_string).collect(),
                last_run_us: record.and_then(|record| record.last_run_us),
                metrics: ran.map(metrics).unwrap_or_default(),
                // Of an attempt that a later one made good nobody has to hear.
                error: ran
                    .filter(|_| matches!(state, RunState::Failed | RunState::Skipped))
                    .and_then(|ran| ran.error.clone()),
            });
        }
        Ok(statuses)
    }
}

fn table_status(table: &Table) -> TableStatus {
    TableStatus {
        folder: table.dir().display().to_string(),
        version: table.version(),
        rows: table.row_count(),
        bytes: table.size_bytes(),
        files: table.file_count() as u64,
    }
}

fn columns_of(table: &Table) -> Result<Vec<Column>> {
    Ok(schema_from_arrow(&table.schema()).map_err(Error::Internal)?.iter().map(column).collect())
}

/// A column as people see it.
pub(crate) fn column(field: &pipeline::data_type::Field) -> Column {
    use pipeline::data_type::DataType::{Byte, Decimal, Double, Float, Integer, Long, Short};
    Column {
        name: field.name.clone(),
        data_type: field.data_type.to_string(),
        is_nullable: field.is_nullable,
        is_numeric: matches!(field.data_type, Byte | Short | Integer | Long | Float | Double | Decimal { .. }),
        comment: field.comment.clone(),
    }
}

fn versions(table: &Table) -> Result<Vec<TableVersion>> {
    let history = table.history(HISTORY_SHOWN)?.into_iter();
    Ok(history
        .map(|entry| TableVersion { version: entry.version, time_us: entry.timestamp_us, operation: entry.operation })
        .collect())
}

fn summary(update: Update, flows: Vec<UpdateFlow>, is_running: bool) -> Result<UpdateSummary> {
    let request: pipeline::plan::UpdateRequest = serde_json::from_str(&update.request)
        .map_err(|e| Error::Internal(format!("the request of update {}: {e}", update.update_id)))?;
    let flows: Vec<FlowOutcome> = flows
        .into_iter()
        .map(|ran| FlowOutcome {
            state: match ran.state.into() {
                RunState::Running | RunState::Planning if !is_running || update.state.is_final() => RunState::Failed,
                RunState::Queued if !is_running || update.state.is_final() => RunState::Skipped,
                state => state,
            },
            metrics: metrics(&ran),
            error: ran.error.map(|message| Failure {
                code: ran.error_code.unwrap_or_default(),
                message,
                help: None,
                is_fatal: true,
            }),
            flow: ran.flow,
            dataset: ran.dataset,
        })
        .collect();
    Ok(UpdateSummary {
        number: update.update_id,
        state: update.state.into(),
        cause: update.cause,
        request: request.words(),
        started_us: update.started_us,
        ended_us: update.ended_us,
        rows_out: flows.iter().map(|flow| flow.metrics.rows_out).sum(),
        flows,
        error: update.error,
    })
}

fn metrics(ran: &UpdateFlow) -> FlowMetrics {
    let progress = &ran.progress;
    FlowMetrics {
        batches: progress.batches as u64,
        rows_in: progress.rows_read as u64,
        rows_out: progress.rows_written as u64,
        rescued_values: progress.rows_rescued as u64,
        bytes_in: progress.bytes_read as u64,
        backlog: progress.backlog_files.unwrap_or_default() as u64,
        backlog_bytes: progress.backlog_bytes.unwrap_or_default() as u64,
        duration_ms: match (ran.started_us, ran.ended_us) {
            (Some(started), Some(ended)) => ((ended - started) / 1000).max(0) as u64,
            _ => 0,
        },
        ..FlowMetrics::default()
    }
}
