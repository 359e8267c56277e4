//! A flow can't wait for its own end (behaviours O-18).

use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for id in graph.flow_ids() {
        let flow = graph.flow(id);
        for predecessor in flow.depends_on.iter().filter(|predecessor| predecessor.flow == Some(id)) {
            let message = format!("flow `{}` waits for itself", flow.name);
            diagnostics.push(
                Diagnostic::error("order-cycle", predecessor.reference.span, message)
                    .condition("CircularDependencyException")
                    .reason("it would have to end before it starts")
                    .help("remove it from its own `depends_on`"),
            );
        }
    }
}
