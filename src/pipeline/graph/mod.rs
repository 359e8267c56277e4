//! Datasets and flows joined by name: who reads what, who writes where, and in which order.
//!
//! `Graph::build` resolves names and keeps going past what it can't resolve; the rules that only look at a
//! finished graph are in `validate`.
//!
//! - `mod.rs`: the graph, and walks over it
//! - `builder.rs`: how it comes from definitions

mod builder;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::auto_cdc::{ChangeFlow, START_AT, ScdType};
use crate::definition::{DatasetDefinition, DatasetKind, FlowLimits, FlowReference};
use crate::name::{DatasetName, Name};
use crate::query::Query;
use crate::read_files::{ReadFiles, TableStream};
use crate::settings::ExternalTable;
use crate::text::Span;

/// Index into [`Graph::datasets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatasetId(pub usize);

/// Index into [`Graph::flows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub usize);

/// Index into [`Graph::externals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternalId(pub usize);

/// Names an input among all of a [`Graph`]: flows and views of one `for_each` have theirs in the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputId(pub usize);

/// The pipeline: datasets in the order of the files, and the flows that write them.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub datasets: Vec<Dataset>,
    pub flows: Vec<Flow>,
    pub externals: Vec<ExternalTable>,
    /// Names of flows that could not be read or have no target; a diagnostic says why.
    pub broken_flows: Vec<String>,
    /// Per dataset, what it reads and what reads it, directly; kept so that walks stay linear.
    upstream: Vec<BTreeSet<DatasetId>>,
    readers: Vec<BTreeSet<DatasetId>>,
}

/// A dataset and what the files say of it.
#[derive(Debug, Clone)]
pub struct Dataset {
    pub name: DatasetName,
    /// For people: without the schema where that is the workspace's own.
    pub label: String,
    pub definition: DatasetDefinition,
    /// The flows that write it; empty for views.
    pub flows: Vec<FlowId>,
    /// A view's query with its inputs resolved; None for what is stored.
    pub view: Option<Reading>,
}

impl Dataset {
    /// What kind of dataset it is.
    pub fn kind(&self) -> DatasetKind {
        self.definition.kind
    }

    /// `pipelines.reset.allowed`: false protects the dataset from full refreshes.
    pub fn is_reset_allowed(&self) -> bool {
        self.definition
            .properties
            .get("pipelines.reset.allowed")
            .is_none_or(|value| !value.trim().eq_ignore_ascii_case("false"))
    }
}

/// How a flow writes its dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowKind {
    /// Appends what is new in its streams, micro-batch by micro-batch.
    Append,
    /// Appends its whole batch query one time: a backfill.
    Once,
    /// Replaces the dataset by the result of its query: a materialized view.
    Complete,
    /// `AUTO CDC`: applies what is new in its feed by key, micro-batch by micro-batch.
    Cdc,
    /// `AUTO CDC ONCE`: applies its whole source by key, one time: a seed.
    CdcOnce,
    /// `AUTO CDC FROM SNAPSHOT`: applies the difference between a whole state of its source and the target, at every
    /// update.
    Snapshot,
    /// `AUTO CDC ONCE FROM SNAPSHOT`: the same, one time.
    SnapshotOnce,
}

impl FlowKind {
    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            FlowKind::Append => "append",
            FlowKind::Once => "append once",
            FlowKind::Complete => "complete",
            FlowKind::Cdc => "auto cdc",
            FlowKind::CdcOnce => "auto cdc once",
            FlowKind::Snapshot => "auto cdc from snapshot",
            FlowKind::SnapshotOnce => "auto cdc from snapshot once",
        }
    }

    /// True if it runs one time until a full refresh: a backfill, a seed.
    pub fn is_once(self) -> bool {
        match self {
            FlowKind::Once | FlowKind::CdcOnce | FlowKind::SnapshotOnce => true,
            FlowKind::Append | FlowKind::Complete | FlowKind::Cdc | FlowKind::Snapshot => false,
        }
    }

    /// True if it applies changes by key: a flow of AUTO CDC.
    pub fn is_change(self) -> bool {
        match self {
            FlowKind::Cdc | FlowKind::CdcOnce | FlowKind::Snapshot | FlowKind::SnapshotOnce => true,
            FlowKind::Append | FlowKind::Once | FlowKind::Complete => false,
        }
    }

    /// True if it reads whole states of its source, not its events.
    pub fn is_snapshot(self) -> bool {
        matches!(self, FlowKind::Snapshot | FlowKind::SnapshotOnce)
    }

    /// True if it goes on from where it stopped in its streams, micro-batch by micro-batch.
    pub fn is_incremental(self) -> bool {
        matches!(self, FlowKind::Append | FlowKind::Cdc)
    }
}

/// A query that writes into one dataset.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Unique in the pipeline; a default flow has its table's name.
    pub name: String,
    pub target: DatasetId,
    pub kind: FlowKind,
    pub reading: Reading,
    /// What a flow of AUTO CDC says beside its query, its options completed by the target's properties.
    pub change: Option<Arc<ChangeFlow>>,
    /// The query of `WITH VERSION (…)`, its inputs resolved.
    pub version: Option<Reading>,
    /// The flows that must have ended before, beside those that write what it reads.
    pub depends_on: Vec<Predecessor>,
    /// Has no name of its own: comes with the table (`AS query`), or is its unnamed flow of AUTO CDC.
    pub is_default: bool,
    pub comment: Option<String>,
    pub limits: FlowLimits,
    /// The name, where the flow was defined.
    pub name_span: Span,
    /// The whole definition.
    pub span: Span,
}

impl Flow {
    /// What it reads: its query's inputs, and those of `WITH VERSION`.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        std::iter::once(&self.reading).chain(&self.version)
    }

    /// True if it reads new rows of this input only, one of its own or of a view that it reads. A once flow reads the
    /// whole, through a streaming view too.
    pub fn reads_as_stream(&self, input: &ResolvedInput) -> bool {
        input.is_stream && !self.kind.is_once()
    }
}

/// An order edge: a name in a flow's `depends_on`, and the flow behind it.
#[derive(Debug, Clone)]
pub struct Predecessor {
    pub reference: FlowReference,
    /// None: there is no such flow; a diagnostic says so.
    pub flow: Option<FlowId>,
}

/// A query with its inputs resolved; `inputs[i]` belongs to `query.inputs[i]`.
#[derive(Debug, Clone)]
pub struct Reading {
    pub query: Arc<Query>,
    pub inputs: Vec<ResolvedInput>,
}

/// An input and what stands behind its name.
#[derive(Debug, Clone)]
pub struct ResolvedInput {
    pub id: InputId,
    /// The relation's name in the query's SQL.
    pub name: String,
    pub source: Source,
    pub is_stream: bool,
    pub uses_metadata: bool,
    pub span: Span,
}

/// What an input reads.
#[derive(Debug, Clone)]
pub enum Source {
    Dataset {
        id: DatasetId,
        stream: TableStream,
    },
    External {
        id: ExternalId,
        stream: TableStream,
    },
    Files(Box<ReadFiles>),
    /// Could not be resolved; a diagnostic says why.
    Unresolved,
}

impl Graph {
    /// The dataset of this id.
    pub fn dataset(&self, id: DatasetId) -> &Dataset {
        &self.datasets[id.0]
    }

    /// The flow of this id.
    pub fn flow(&self, id: FlowId) -> &Flow {
        &self.flows[id.0]
    }

    /// All ids of datasets, in the order of the files.
    pub fn dataset_ids(&self) -> impl Iterator<Item = DatasetId> + use<> {
        (0..self.datasets.len()).map(DatasetId)
    }

    /// All ids of flows.
    pub fn flow_ids(&self) -> impl Iterator<Item = FlowId> + use<> {
        (0..self.flows.len()).map(FlowId)
    }

    /// Finds a dataset by a name as a person types it: its label, or the full name; case does not matter.
    pub fn find_dataset(&self, name: &str) -> Option<DatasetId> {
        let wanted = Name::split(name.trim());
        self.dataset_ids().find(|id| {
            let dataset = self.dataset(*id);
            let full = [dataset.name.catalog.as_deref(), Some(&dataset.name.schema), Some(&dataset.name.table)];
            let full: Vec<&str> = full.into_iter().flatten().collect();
            let label = Name::split(&dataset.label);
            let is = |parts: &[&str]| {
                parts.len() == wanted.parts.len()
                    && parts.iter().zip(&wanted.parts).all(|(a, b)| a.eq_ignore_ascii_case(b))
            };
            let label_parts: Vec<&str> = label.parts.iter().map(String::as_str).collect();
            is(&label_parts) || (0..full.len()).any(|skip| skip + 1 < full.len() && is(&full[skip..]))
        })
    }

    /// Finds a flow by name; case does not matter.
    pub fn find_flow(&self, name: &str) -> Option<FlowId> {
        self.flow_ids().find(|id| self.flow(*id).name.eq_ignore_ascii_case(name.trim()))
    }

    /// The inputs of a flow with those of the views it reads, each view once, depth first.
    pub fn all_inputs<'a>(&'a self, reading: &'a Reading) -> Vec<&'a ResolvedInput> {
        let mut inputs = Vec::new();
        let mut seen = BTreeSet::new();
        self.collect_inputs(reading, &mut seen, &mut inputs);
        inputs
    }

    fn collect_inputs<'a>(
        &'a self,
        reading: &'a Reading,
        seen: &mut BTreeSet<DatasetId>,
        inputs: &mut Vec<&'a ResolvedInput>,
    ) {
        for input in &reading.inputs {
            inputs.push(input);
            if let Source::Dataset { id, .. } = input.source
                && let Some(view) = &self.dataset(id).view
                && seen.insert(id)
            {
                self.collect_inputs(view, seen, inputs);
            }
        }
    }

    /// The stored datasets that a query reads, through views, in no order and each once.
    pub fn stored_inputs(&self, reading: &Reading) -> BTreeSet<DatasetId> {
        self.all_inputs(reading)
            .into_iter()
            .filter_map(|input| match input.source {
                Source::Dataset { id, .. } if self.dataset(id).kind().is_stored() => Some(id),
                _ => None,
            })
            .collect()
    }

    /// The datasets that a dataset's flows or view read directly.
    pub fn upstream(&self, id: DatasetId) -> &BTreeSet<DatasetId> {
        &self.upstream[id.0]
    }

    /// The datasets that read `id` directly.
    pub fn readers(&self, id: DatasetId) -> &BTreeSet<DatasetId> {
        &self.readers[id.0]
    }

    fn connect(&mut self) {
        self.upstream = self
            .dataset_ids()
            .map(|id| {
                self.readings(id)
                    .flat_map(|reading| &reading.inputs)
                    .filter_map(|input| match input.source {
                        Source::Dataset { id, .. } => Some(id),
                        _ => None,
                    })
                    .collect()
            })
            .collect();
        self.readers = vec![BTreeSet::new(); self.datasets.len()];
        for (reader, upstream) in self.upstream.iter().enumerate() {
            for id in upstream {
                self.readers[id.0].insert(DatasetId(reader));
            }
        }
    }

    /// The columns by which two versions of a row of a table are known to be one row: the keys of the flows of AUTO CDC
    /// that write it, and the start of SCD type 2. Empty for other tables: there is nothing to know them by.
    pub fn row_keys(&self, id: DatasetId) -> Vec<String> {
        let mut changes = self.dataset(id).flows.iter().filter_map(|flow| self.flow(*flow).change.as_deref());
        let Some(change) = changes.next() else { return Vec::new() };
        let start = (change.scd_type() == ScdType::Two).then(|| START_AT.to_string());
        change.keys.iter().map(|key| key.value.clone()).chain(start).collect()
    }

    /// All datasets after `ids`, without `ids` themselves unless they lie on a cycle.
    pub fn downstream(&self, ids: impl IntoIterator<Item = DatasetId>) -> BTreeSet<DatasetId> {
        let mut found = BTreeSet::new();
        let mut open: Vec<DatasetId> = ids.into_iter().collect();
        while let Some(id) = open.pop() {
            for reader in self.readers(id).iter().copied() {
                if found.insert(reader) {
                    open.push(reader);
                }
            }
        }
        found
    }

    /// The datasets that stream from `id` (through views too): they break when it is rewritten.
    pub fn stream_readers(&self, id: DatasetId) -> BTreeSet<DatasetId> {
        self.flow_ids()
            .filter(|flow| {
                let flow = self.flow(*flow);
                self.all_inputs(&flow.reading).into_iter().any(|input| {
                    flow.reads_as_stream(input)
                        && matches!(input.source, Source::Dataset { id: read, .. } if read == id)
                })
            })
            .map(|flow| self.flow(flow).target)
            .collect()
    }

    /// Datasets such that each comes after all it reads; those on a cycle are left out.
    pub fn topological_order(&self) -> Vec<DatasetId> {
        let mut missing: BTreeMap<DatasetId, usize> =
            self.dataset_ids().map(|id| (id, self.upstream(id).len())).collect();
        let mut order: Vec<DatasetId> = Vec::new();
        let mut ready: Vec<DatasetId> = self.dataset_ids().filter(|id| missing[id] == 0).collect();
        ready.reverse();
        while let Some(id) = ready.pop() {
            order.push(id);
            for reader in self.readers(id).iter().rev().copied() {
                let count = missing.get_mut(&reader).expect("every dataset is counted");
                *count -= 1;
                if *count == 0 {
                    ready.push(reader);
                }
            }
        }
        order
    }

    /// The same in steps: what a step's datasets read was in the steps before it.
    pub fn waves(&self) -> Vec<Vec<DatasetId>> {
        let mut depths: HashMap<DatasetId, usize> = HashMap::new();
        let mut waves: Vec<Vec<DatasetId>> = Vec::new();
        for id in self.topological_order() {
            let depth = self.upstream(id).iter().filter_map(|upstream| depths.get(upstream)).max();
            let depth = depth.map_or(0, |deepest| deepest + 1);
            depths.insert(id, depth);
            if waves.len() <= depth {
                waves.push(Vec::new());
            }
            waves[depth].push(id);
        }
        waves
    }

    /// The queries that make a dataset: its flows', or its view's.
    pub fn readings(&self, id: DatasetId) -> impl Iterator<Item = &Reading> {
        let dataset = self.dataset(id);
        dataset.flows.iter().flat_map(|flow| self.flow(*flow).readings()).chain(dataset.view.as_ref())
    }
}
