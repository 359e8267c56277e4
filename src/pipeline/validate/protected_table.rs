//! A table protected from full refreshes must not stream from one that isn't: resetting the one above
//! would break it.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::graph::{Graph, Source};
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for (id, reader) in graph.dataset_ids().map(|id| (id, graph.dataset(id))) {
        if reader.is_reset_allowed() {
            continue;
        }
        let inputs = graph.readings(id).flat_map(|reading| graph.all_inputs(reading));
        let streams = inputs.filter(|input| input.is_stream).filter_map(|input| match input.source {
            Source::Dataset { id, .. } => Some(id),
            _ => None,
        });
        for upstream in streams.collect::<BTreeSet<_>>().into_iter().map(|id| graph.dataset(id)) {
            if !upstream.kind().is_stored() || !upstream.is_reset_allowed() {
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
