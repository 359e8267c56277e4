//! Nobody waits for a view: it is never run, so it never ends (behaviours O-16).

use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for flow in &graph.flows {
        for predecessor in &flow.depends_on {
            let reference = &predecessor.reference;
            let before = predecessor.flow.map(|id| graph.flow(id));
            let target = before.map(|before| before.target).or_else(|| graph.find_dataset(&reference.name.to_string()));
            let Some(view) = target.map(|id| graph.dataset(id)).filter(|dataset| !dataset.kind().is_stored()) else {
                continue;
            };
            let kind = view.kind().words();
            let what = match before {
                Some(before) => format!("`{}`, which writes to the {kind} `{}`", before.name, view.label),
                None => format!("`{}`, a {kind}", view.label),
            };
            diagnostics.push(
                Diagnostic::error("depends-on-view", reference.span, format!("flow `{}` waits for {what}", flow.name))
                    .reason("a view is part of the queries that read it: it is never run and never ends")
                    .label(view.definition.name.span, "the view")
                    .help("name a flow that writes a table, or remove it"),
            );
        }
    }
}
