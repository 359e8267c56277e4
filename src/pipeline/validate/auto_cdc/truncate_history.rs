//! A TRUNCATE has no meaning in a history.

use super::change_flows;
use crate::auto_cdc::ScdType;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for (flow, change) in change_flows(graph).filter(|(_, change)| change.scd_type() == ScdType::Two) {
        let Some(span) = change.feed().and_then(|feed| feed.truncate_span) else { continue };
        let message = format!("flow `{}` truncates a table of SCD type 2", flow.name);
        let mut diagnostic = Diagnostic::error("truncate-with-history", span, message)
            .reason("a truncate forgets all rows; SCD type 2 keeps what was")
            .help("store it AS SCD TYPE 1, or turn the event into a delete of each key");
        if let Some(scd_type) = &change.scd_type {
            diagnostic = diagnostic.label(scd_type.span, "stored so here");
        }
        diagnostics.push(diagnostic);
    }
}
