//! Views of views of views … are planned as one query; there is an end to how deep it may be.

use std::collections::HashMap;

use crate::diagnostic::Diagnostic;
use crate::graph::{DatasetId, Graph};
use crate::settings::Settings;

/// Views that may stand on one another.
const DEPTH_MAX: usize = 32;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    let mut depths: HashMap<DatasetId, usize> = HashMap::new();
    for id in graph.topological_order() {
        let dataset = graph.dataset(id);
        if dataset.view.is_none() {
            continue;
        }
        let below = graph.upstream(id).iter().filter_map(|read| depths.get(read)).max().copied().unwrap_or(0);
        depths.insert(id, below + 1);
        // Those on top of it would only say the same again.
        if below == DEPTH_MAX {
            diagnostics.push(
                Diagnostic::error(
                    "too-complex",
                    dataset.definition.name.span,
                    format!("view `{}` stands on {DEPTH_MAX} other views, one on top of the other", dataset.label),
                )
                .reason("views are not stored, so whoever reads the last one computes them all as one query")
                .help("make one of them a MATERIALIZED VIEW or a STREAMING TABLE"),
            );
        }
    }
}
