//! What is not settled in the language yet needs the preview channel: `depends_on` (behaviours O-1).

use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::{Channel, Settings};

/// Places that are pointed at; the first few make it clear.
const PLACES_MAX: usize = 3;

pub(super) fn check(graph: &Graph, settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    if settings.channel.value != Channel::Current {
        return;
    }
    let uses = graph.flows.iter().flat_map(|flow| flow.depends_on.iter().map(move |predecessor| (flow, predecessor)));
    let mut uses = uses.peekable();
    if uses.peek().is_none() {
        return;
    }
    let message = "`depends_on` needs channel = \"preview\", and [pipeline] says \"current\"";
    let mut diagnostic = Diagnostic::error("needs-preview-channel", settings.channel.span, message)
        .reason("the order of flows is a preview of the language")
        .help("set channel = \"preview\" in flowbench.toml, or remove `depends_on`")
        .edit(settings.channel.span, "\"preview\"");
    for (flow, predecessor) in uses.take(PLACES_MAX) {
        let reference = &predecessor.reference;
        diagnostic = diagnostic.label(reference.span, format!("`{}` waits for `{}`", flow.name, reference.name));
    }
    diagnostics.push(diagnostic);
}
