//! A flow named twice in one `depends_on` is probably a slip for another one.

use crate::diagnostic::Diagnostic;
use crate::graph::{FlowId, Graph};
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for flow in &graph.flows {
        let mut seen: Vec<(FlowId, crate::text::Span)> = Vec::new();
        for predecessor in &flow.depends_on {
            let Some(id) = predecessor.flow else { continue };
            let span = predecessor.reference.span;
            match seen.iter().find(|(other, _)| *other == id) {
                Some((_, first)) => diagnostics.push(
                    Diagnostic::warning(
                        "repeated-predecessor",
                        span,
                        format!("flow `{}` waits for `{}` twice", flow.name, graph.flow(id).name),
                    )
                    .label(*first, "the first time")
                    .help("remove one, or name another flow"),
                ),
                None => seen.push((id, span)),
            }
        }
    }
}
