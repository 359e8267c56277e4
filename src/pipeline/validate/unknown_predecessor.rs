//! `depends_on` names flows of this pipeline, by their own names: not tables, and nobody else's flows (behaviours
//! O-15, O-18, O-26).

use crate::definition::FlowReference;
use crate::diagnostic::{Diagnostic, nearest};
use crate::graph::{Dataset, Flow, Graph};
use crate::name::Name;
use crate::settings::Settings;

/// Flows that are listed where none is near.
const LISTED_MAX: usize = 5;

pub(super) fn check(graph: &Graph, settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for flow in &graph.flows {
        for predecessor in flow.depends_on.iter().filter(|predecessor| predecessor.flow.is_none()) {
            let reference = &predecessor.reference;
            let written = reference.name.to_string();
            // Its own diagnostic is enough.
            if graph.broken_flows.iter().any(|broken| broken.eq_ignore_ascii_case(&written)) {
                continue;
            }
            match graph.find_dataset(&written).map(|id| graph.dataset(id)) {
                Some(dataset) if dataset.kind().is_stored() => {
                    diagnostics.push(table(graph, flow, reference, dataset));
                }
                // `predecessor_view` says that.
                Some(_) => {}
                None if is_external(settings, &written) => diagnostics.push(external(flow, reference)),
                None => diagnostics.push(unknown(graph, flow, reference)),
            }
        }
    }
}

fn table(graph: &Graph, flow: &Flow, reference: &FlowReference, dataset: &Dataset) -> Diagnostic {
    let message = format!("flow `{}` waits for `{}`, a {}", flow.name, dataset.label, dataset.kind().words());
    let diagnostic = Diagnostic::error("depends-on-table", reference.span, message)
        .reason("the order is one between flows; a table may have several")
        .label(dataset.definition.name.span, "the table");
    let writers: Vec<&str> =
        dataset.flows.iter().map(|id| graph.flow(*id).name.as_str()).filter(|name| *name != flow.name).collect();
    match writers.as_slice() {
        [] => diagnostic.help("remove it: no other flow writes the table"),
        [one] => with_edit(diagnostic.help(format!("did you mean flow `{one}`?")), reference, one),
        [others @ .., last] => diagnostic.help(format!("did you mean flow `{}` or `{last}`?", others.join("`, `"))),
    }
}

fn external(flow: &Flow, reference: &FlowReference) -> Diagnostic {
    let message = format!("flow `{}` waits for `{}`, a table outside the pipeline", flow.name, reference.name);
    Diagnostic::error("depends-on-table", reference.span, message)
        .reason("the order is one between flows of this pipeline; nothing here writes that table")
        .help("remove it")
}

fn unknown(graph: &Graph, flow: &Flow, reference: &FlowReference) -> Diagnostic {
    let message = format!("flow `{}` waits for `{}`, and no flow has that name", flow.name, reference.name);
    let diagnostic = Diagnostic::error("unknown-flow", reference.span, message);
    let mut known: Vec<&str> = graph.flows.iter().map(|f| f.name.as_str()).filter(|name| *name != flow.name).collect();
    if let Some(near) = nearest(&reference.name.to_string(), known.iter().copied()) {
        return with_edit(diagnostic.help(format!("did you mean `{near}`?")), reference, near);
    }
    let diagnostic = diagnostic.reason("the order holds between flows of one pipeline");
    let count = known.len();
    known.truncate(LISTED_MAX);
    let more = if count > LISTED_MAX { ", …" } else { "" };
    match known.is_empty() {
        true => diagnostic.help("remove it: there is no other flow"),
        false => diagnostic.help(format!("remove it, or name one of: {}{more}", known.join(", "))),
    }
}

fn with_edit(diagnostic: Diagnostic, reference: &FlowReference, flow: &str) -> Diagnostic {
    match reference.is_literal {
        true => diagnostic.edit(reference.span, Name::split(flow).to_string()),
        false => diagnostic,
    }
}

fn is_external(settings: &Settings, written: &str) -> bool {
    settings.external.iter().any(|table| table.name.value.to_string().eq_ignore_ascii_case(written))
}
