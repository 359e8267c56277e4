//! Source overlap: two flows that append the same files to one table double their rows (behaviours B-6).

use std::collections::HashSet;

use pipeline::graph::{Flow, FlowId, FlowKind, Graph, Source};
use pipeline::plan::Notice;

use crate::error::Result;
use crate::listings::Listings;

/// A warning for each pair of flows into one table whose file sources share files. A flow with a filter is
/// taken to keep out what the other one reads.
pub(crate) async fn overlaps(
    graph: &Graph,
    flows: impl Iterator<Item = FlowId>,
    listings: &Listings,
) -> Result<Vec<Notice>> {
    let mut read: Vec<(FlowId, HashSet<String>)> = Vec::new();
    for id in flows {
        let flow = graph.flow(id);
        if flow.kind == FlowKind::Complete || has_filter(flow) {
            continue;
        }
        let mut paths = HashSet::new();
        for input in graph.all_inputs(&flow.reading) {
            if let Source::Files(spec) = &input.source {
                paths.extend(listings.list(spec).await?.files.iter().map(|file| file.path.clone()));
            }
        }
        read.push((id, paths));
    }
    let mut notices = Vec::new();
    for (index, (a, paths)) in read.iter().enumerate() {
        for (b, others) in &read[index + 1..] {
            let (a, b) = (graph.flow(*a), graph.flow(*b));
            let shared = paths.intersection(others).count();
            if a.target == b.target && shared > 0 {
                let target = &graph.dataset(a.target).label;
                notices.push(Notice {
                    code: "source-overlap",
                    message: format!(
                        "source overlap: {shared} files are read by flow `{}` and by flow `{}`; `{target}` will hold their rows twice",
                        a.name, b.name
                    ),
                    help: "bound one of them (its path, modifiedAfter, a WHERE), or make rows distinct downstream".to_string(),
                });
            }
        }
    }
    Ok(notices)
}

fn has_filter(flow: &Flow) -> bool {
    flow.reading.query.fingerprint_text.to_lowercase().split_whitespace().any(|word| word == "where")
}
