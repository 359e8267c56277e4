//! What a flow reads, one entry a source, under keys that stay the same while its query is edited.

use std::collections::HashMap;

use pipeline::graph::{Graph, Reading, ResolvedInput, Source};

/// One source of a flow, its own or through a view.
#[derive(Debug, Clone)]
pub struct FlowSource<'a> {
    /// `files`, `table main.bronze`, …; a second one of the same key gets ` #2`. Checkpoints belong to it.
    pub key: String,
    pub input: &'a ResolvedInput,
}

/// The sources of a query, views looked through.
pub fn flow_sources<'a>(graph: &'a Graph, reading: &'a Reading) -> Vec<FlowSource<'a>> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut sources = Vec::new();
    for input in graph.all_inputs(reading) {
        let key = match &input.source {
            Source::Files(_) => "files".to_string(),
            Source::Dataset { id, .. } if graph.dataset(*id).view.is_some() => continue,
            Source::Dataset { id, .. } => format!("table {}", graph.dataset(*id).name.key()),
            Source::External { id, .. } => {
                format!("table {}", graph.externals[id.0].name.value.to_string().to_lowercase())
            }
            Source::Unresolved => continue,
        };
        let count = counts.entry(key.clone()).or_default();
        *count += 1;
        let key = if *count == 1 { key } else { format!("{key} #{count}") };
        sources.push(FlowSource { key, input });
    }
    sources
}
