//! What is done before the first flow runs: sources are pinned as they are now, tables are made or changed,
//! datasets and flows are recorded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use pipeline::definition::DatasetKind;
use pipeline::event::{Details, Level};
use pipeline::graph::{Dataset, DatasetId, ExternalId, FlowId, Graph};
use pipeline::number::counted;
use pipeline::plan::FlowAction;
use pipeline::resume::Refusal;

use crate::auto_cdc;
use crate::clock::now_us;
use crate::columns::{Columns, grow};
use crate::data_type::schema_from_arrow;
use crate::error::{Error, Result};
use crate::full_refresh::{self};
use crate::generation::refuse_older_state;
use crate::overlap::overlaps;
use crate::record::About;
use crate::source::external;
use crate::state::NewFlow;
use crate::table::{Commit, MetadataChange, SharedTable, Table, TableSpec};

use super::{Target, Update};

/// Table properties `flowbench.flow.<flow id> = <name>`: they tie the `txn` actions in the log to flows, so that
/// a lost state.db can be rebuilt.
pub(crate) const FLOW_PROPERTY: &str = "flowbench.flow.";

impl Update {
    /// Pins external Delta tables at the version they have now.
    pub(super) fn open_externals(&mut self) -> Result<()> {
        let graph = self.engine.graph();
        let settings = self.engine.settings();
        for (index, table) in graph.externals.iter().enumerate() {
            let is_read =
                self.running().any(|id| {
                    graph.flow(id).readings().flat_map(|reading| graph.all_inputs(reading)).any(
                        |input| matches!(input.source, pipeline::graph::Source::External { id, .. } if id.0 == index),
                    )
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
    pub(super) async fn list_sources(&self) -> Result<()> {
        let graph = self.engine.graph();
        for id in self.running() {
            let flow = graph.flow(id);
            for input in flow.readings().flat_map(|reading| graph.all_inputs(reading)) {
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
                    format!("listed {}: {}", spec.path, counted(listed.files.len() as u64, "file", "files")),
                    Details::OperationProgress {
                        operation: "AUTO_LOADER_LISTING".to_string(),
                        source: spec.path.clone(),
                        files: listed.files.len() as u64,
                        duration_ms: listed.duration_ms,
                    },
                );
                // A once flow says that itself.
                if listed.is_missing && !flow.kind.is_once() {
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
    pub(super) async fn warn_of_overlaps(&self) -> Result<()> {
        for notice in
            overlaps(self.engine.graph(), self.engine.root(), &self.plan, Some(&self.state), &self.listings).await?
        {
            self.recorder.notice(About::update(), notice.code, notice.message, Some(notice.help));
        }
        Ok(())
    }

    /// The flows that this update runs.
    pub(super) fn running(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.plan
            .flows
            .iter()
            .filter(|(_, action)| matches!(action, FlowAction::Run | FlowAction::RunOnceAgain))
            .map(|(id, _)| *id)
    }

    /// Makes or changes the tables that flows will write, and records datasets and flows.
    pub(super) async fn set_up(&mut self) -> Result<()> {
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
                format!(
                    "{} `{}` with {}",
                    dataset.kind().words(),
                    dataset.label,
                    counted(dataset.flows.len() as u64, "flow", "flows")
                ),
                Details::DatasetDefinition {
                    dataset_type: dataset.kind().words().to_string(),
                    num_flows: dataset.flows.len(),
                },
            );
        }
        Ok(())
    }

    pub(super) fn register_flow(&self, id: FlowId) -> Result<crate::state::Flow> {
        let graph = self.engine.graph();
        let flow = graph.flow(id);
        self.state.register_flow(
            &NewFlow {
                flow_id: &uuid::Uuid::new_v4().to_string(),
                name: &flow.name,
                dataset: &graph.dataset(flow.target).name.key(),
                kind: flow.kind.into(),
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
            deletion_vectors: dataset.flows.iter().any(|flow| self.engine.graph().flow(*flow).kind.is_change()),
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
                if let Some(recorded) = self.state.dataset(&dataset.name.key())? {
                    auto_cdc::target::finish_pending(&folder, recorded.generation, &dataset.label, &table).await?;
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
