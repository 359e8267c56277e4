//! A table protected from full refreshes must not stream from one that isn't: resetting the one above
//! would break it.

use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for id in graph.dataset_ids() {
        let upstream = graph.dataset(id);
        if !upstream.kind().is_stored() || !upstream.is_reset_allowed() {
            continue;
        }
        for reader in graph.stream_readers(id) {
            let reader = graph.dataset(reader);
            if reader.is_reset_allowed() {
                continue;
            }
            diagnostics.push(
                Diagnostic::error(
                    "protected-table-reads-resettable",
                    reader.definition.name.span,
                    format!(
                        "protected table `{}` streams from `{}`, which may be fully refreshed",
                        reader.label, upstream.label
                    ),
                )
                .condition("INVALID_RESETTABLE_DEPENDENCY")
                .reason("after a full refresh of the upper table the lower one could not go on")
                .label(upstream.definition.name.span, "the upper table")
                .help(format!("set 'pipelines.reset.allowed' = 'false' on `{}` too", upstream.label)),
            );
        }
    }
}
