//! Names of columns that are not the user's to give: those of the internal columns, and of SCD type 2's own.

use super::change_flows;
use crate::auto_cdc::{ChangeFlow, END_AT, START_AT, ScdType, reserved_prefix};
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;
use crate::text::Spanned;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for (_, change) in change_flows(graph) {
        for (clause, name) in names(change) {
            let is_own = change.scd_type() == ScdType::Two
                && [START_AT, END_AT].iter().any(|own| own.eq_ignore_ascii_case(&name.value));
            let prefix = reserved_prefix(&name.value);
            if !is_own && prefix.is_none() {
                continue;
            }
            let message = format!("`{clause}` names `{}`, which is no column of the source", name.value);
            let diagnostic = Diagnostic::error("reserved-name", name.span, message).help("remove it from the list");
            diagnostics.push(match prefix {
                Some(prefix) => diagnostic
                    .condition("AUTOCDC_RESERVED_COLUMN_NAME_PREFIX_CONFLICT")
                    .reason(format!("names that begin with `{prefix}` are kept for AUTO CDC itself")),
                None => diagnostic
                    .condition("AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT")
                    .reason("SCD type 2 makes `__START_AT` and `__END_AT` itself"),
            });
        }
    }
}

/// The names in the clauses of a flow.
fn names(change: &ChangeFlow) -> Vec<(&'static str, &Spanned<String>)> {
    fn of<'a>(
        clause: &'static str,
        names: &'a [Spanned<String>],
    ) -> impl Iterator<Item = (&'static str, &'a Spanned<String>)> {
        names.iter().map(move |name| (clause, name))
    }
    let mut found: Vec<_> = of("KEYS", &change.keys).collect();
    found.extend(change.track_history.iter().flat_map(|tracked| of("TRACK HISTORY ON", tracked.value.names())));
    if let Some(feed) = change.feed() {
        found.extend(feed.columns.iter().flat_map(|columns| of("COLUMNS", columns.value.names())));
        found.extend(feed.columns_to_update.iter().map(|column| ("COLUMNS TO UPDATE", column)));
        let ignored = feed.ignore_null_updates.iter();
        found.extend(ignored.flat_map(|ignored| of("IGNORE NULL UPDATES ON", ignored.value.names())));
    }
    found
}
