//! `COLUMNS TO UPDATE` and `IGNORE NULL UPDATES` both say which columns an event writes.

use super::change_flows;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for (flow, change) in change_flows(graph) {
        let Some(feed) = change.feed() else { continue };
        let (Some(column), Some(ignored)) = (&feed.columns_to_update, &feed.ignore_null_updates) else { continue };
        let message = format!("flow `{}` has both `COLUMNS TO UPDATE` and `IGNORE NULL UPDATES`", flow.name);
        diagnostics.push(
            Diagnostic::error("conflicting-clauses", column.span, message)
                .condition("AUTOCDC_CONFLICTING_IGNORE_NULL_UPDATES_OPTIONS")
                .reason("the one writes the NULLs of the named columns, the other writes none")
                .label(ignored.span, "NULLs are ignored here")
                .help("keep one"),
        );
    }
}
