//! The pipeline as a list: schemas, their datasets in the order of what they read, and the files. The explorer
//! draws it narrow, the lineage list wide.

use std::collections::{BTreeSet, HashMap, HashSet};

use pipeline::graph::{DatasetId, FlowId, Graph};

use super::{App, Node};

/// A schema is folded from the start if the pipeline has more datasets than this.
const UNFOLDED_MAX: usize = 60;

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRow {
    pub kind: RowKind,
    /// What is chosen by choosing the row; None for headings.
    pub node: Option<Node>,
}

/// What a row shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKind {
    Schema {
        name: String,
        is_folded: bool,
        datasets: Vec<DatasetId>,
    },
    Dataset(DatasetId),
    /// A flow into the dataset above.
    Flow(FlowId),
    /// A source of the dataset above: files, an external table.
    Source(String),
    /// On disk, and no longer in the files.
    Inactive(String),
    Heading(&'static str),
    File(String),
}

impl App {
    /// The rows of the explorer.
    pub fn explorer_rows(&self) -> Vec<ListRow> {
        let mut rows = self.dataset_rows(false);
        let inactive: Vec<&str> = self.known.inactive().map(|dataset| dataset.name.as_str()).collect();
        if !inactive.is_empty() {
            rows.push(ListRow { kind: RowKind::Heading("inactive"), node: None });
            rows.extend(inactive.into_iter().map(|name| ListRow {
                kind: RowKind::Inactive(name.to_string()),
                node: Some(Node::Dataset(name.to_string())),
            }));
        }
        if !self.known.files.is_empty() {
            rows.push(ListRow { kind: RowKind::Heading("files"), node: None });
            rows.extend(
                self.known
                    .files
                    .iter()
                    .map(|path| ListRow { kind: RowKind::File(path.clone()), node: Some(Node::File(path.clone())) }),
            );
        }
        rows
    }

    /// The rows of the lineage list: as the explorer's, with flows and sources under their dataset.
    pub fn lineage_rows(&self) -> Vec<ListRow> {
        let mut rows = self.dataset_rows(true);
        if self.picture.focus.is_some() {
            let is_near = |row: &ListRow| row.node.as_ref().is_some_and(|node| self.picture.nodes.contains(node));
            rows.retain(|row| matches!(row.kind, RowKind::Schema { .. }) || is_near(row));
            // A schema of which nothing is near is no heading.
            let mut at = 0;
            while at < rows.len() {
                let is_heading = |row: &ListRow| matches!(row.kind, RowKind::Schema { .. });
                match is_heading(&rows[at]) && !is_near(&rows[at]) && rows.get(at + 1).is_none_or(is_heading) {
                    true => drop(rows.remove(at)),
                    false => at += 1,
                }
            }
        }
        rows
    }

    fn dataset_rows(&self, with_flows: bool) -> Vec<ListRow> {
        let Some(graph) = self.known.graph() else { return Vec::new() };
        let schemas = schemas(graph);
        let empty = BTreeSet::new();
        let is_near = with_flows && self.picture.focus.is_some();
        let folded = self.folded.as_ref().filter(|_| !is_near).unwrap_or(&empty);
        let mut rows = Vec::new();
        for (name, datasets) in &schemas {
            let is_folded = folded.contains(name);
            rows.push(ListRow {
                kind: RowKind::Schema { name: name.clone(), is_folded, datasets: datasets.clone() },
                node: Some(Node::Schema(name.clone())),
            });
            if is_folded {
                continue;
            }
            for id in datasets {
                let dataset = graph.dataset(*id);
                rows.push(ListRow { kind: RowKind::Dataset(*id), node: Some(Node::Dataset(dataset.label.clone())) });
                let is_shown = with_flows
                    && (dataset.flows.iter().any(|flow| !graph.flow(*flow).is_default) || dataset.flows.len() > 1);
                if is_shown {
                    rows.extend(dataset.flows.iter().map(|flow| ListRow {
                        kind: RowKind::Flow(*flow),
                        node: Some(Node::Flow(graph.flow(*flow).name.clone())),
                    }));
                }
            }
        }
        rows
    }

    /// Folds the schemas of a large pipeline when it is first seen.
    pub(super) fn first_folds(&mut self) {
        if self.folded.is_some() {
            return;
        }
        let Some(graph) = self.known.graph().filter(|graph| !graph.datasets.is_empty()) else { return };
        let names: BTreeSet<String> = schemas(graph).into_iter().map(|(name, _)| name).collect();
        self.folded = Some(match graph.datasets.len() > UNFOLDED_MAX && names.len() > 1 {
            true => names,
            false => BTreeSet::new(),
        });
    }
}

/// The schema of a dataset as lists show it.
pub fn schema_of(graph: &Graph, id: DatasetId) -> String {
    let name = &graph.dataset(id).name;
    match &name.catalog {
        Some(catalog) => format!("{catalog}.{}", name.schema),
        None => name.schema.clone(),
    }
}

/// Datasets by schema, each after what it reads; schemas in the order of their first dataset.
fn schemas(graph: &Graph) -> Vec<(String, Vec<DatasetId>)> {
    let mut schemas: Vec<(String, Vec<DatasetId>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let order = graph.topological_order();
    let is_ordered: HashSet<DatasetId> = order.iter().copied().collect();
    // Those on a cycle come last, as the files have them.
    let on_cycles = graph.dataset_ids().filter(|id| !is_ordered.contains(id));
    for id in order.iter().copied().chain(on_cycles) {
        let name = schema_of(graph, id);
        let at = *places.entry(name.clone()).or_insert_with(|| {
            schemas.push((name, Vec::new()));
            schemas.len() - 1
        });
        schemas[at].1.push(id);
    }
    schemas
}
