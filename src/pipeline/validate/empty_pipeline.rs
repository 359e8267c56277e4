//! A pipeline that stores nothing is probably a wrong folder.

use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    if graph.datasets.iter().any(|dataset| dataset.kind().is_stored()) || !graph.flows.is_empty() {
        return;
    }
    let found = match graph.datasets.len() {
        0 => "no dataset is defined".to_string(),
        n => format!("only views are defined ({n})"),
    };
    diagnostics.push(
        Diagnostic::error("empty-pipeline", None, format!("nothing to run: {found}"))
            .condition("RUN_EMPTY_PIPELINE")
            .reason(format!("looked for .sql and .toml files in: {}", settings.sources.join(", ")))
            .help("is this the right folder? set `sources` in flowbench.toml, or start with `flowbench init`"),
    );
}
