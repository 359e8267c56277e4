//! Only SCD type 2 has a history to track.

use super::change_flows;
use crate::auto_cdc::ScdType;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for (flow, change) in change_flows(graph).filter(|(_, change)| change.scd_type() == ScdType::One) {
        let Some(tracked) = &change.track_history else { continue };
        let message = format!("flow `{}` tracks the history of a table of SCD type 1", flow.name);
        let diagnostic = Diagnostic::error("track-without-history", tracked.span, message)
            .reason("SCD type 1 keeps the latest row of each key and no history");
        diagnostics.push(match &change.scd_type {
            Some(scd_type) => diagnostic
                .label(scd_type.span, "stored so here")
                .help("store it AS SCD TYPE 2, or remove TRACK HISTORY"),
            None => diagnostic.help("add STORED AS SCD TYPE 2, or remove TRACK HISTORY; type 1 is the default"),
        });
    }
}
