//! What state.db knows of a pipeline's flows, as facts for planning.

/// All flows that ever ran here, those gone from the files included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    pub flows: Vec<FlowHistory>,
}

/// One flow that ran here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowHistory {
    pub name: String,
    /// Key of the dataset it wrote ([`crate::name::DatasetName::key`]).
    pub dataset: String,
    pub is_once: bool,
    /// A once flow that has appended its rows.
    pub is_done: bool,
    /// Failed in the last update that ran it.
    pub has_failed: bool,
    /// Fingerprint of the query that ran last (a done once flow: the one that made its rows); empty where that
    /// was lost.
    pub definition: String,
    /// What it read, as [`source_names`] gives it.
    pub sources: Vec<String>,
    /// Files that it has read in the current generation.
    pub known_files: u64,
    /// True if it has committed anything in the current generation.
    pub has_checkpoint: bool,
    /// Gone from the files already when the last update ran, so that nobody has to be told again.
    pub is_retired: bool,
}

impl History {
    /// The history of the flow of this name; case does not matter.
    pub fn flow(&self, name: &str) -> Option<&FlowHistory> {
        self.flows.iter().find(|flow| flow.name.eq_ignore_ascii_case(name))
    }
}

/// Names what a query reads, comparably between definitions: paths as written and dataset names.
pub fn source_names(graph: &crate::graph::Graph, reading: &crate::graph::Reading) -> Vec<String> {
    use crate::graph::Source;
    let mut names: Vec<String> = graph
        .all_inputs(reading)
        .into_iter()
        .filter_map(|input| match &input.source {
            Source::Dataset { id, .. } if graph.dataset(*id).view.is_none() => Some(graph.dataset(*id).name.key()),
            Source::External { id, .. } => Some(graph.externals[id.0].name.value.to_string().to_lowercase()),
            Source::Files(spec) => Some(spec.path.clone()),
            Source::Dataset { .. } | Source::Unresolved => None,
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
