//! The flows of one target of SCD type 2 track the same columns. Lists of the same form are compared here; a list and
//! an exception once the columns are known (the engine's analysis).

use std::collections::BTreeSet;

use super::flows_into;
use crate::auto_cdc::{ChangeFlow, ColumnSelection, ScdType};
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let flows = flows_into(graph, dataset);
        let mut flows = flows.iter().filter(|(_, change)| change.scd_type() == ScdType::Two);
        let Some((first, wanted)) = flows.next() else { continue };
        for (flow, change) in flows {
            let ((is_list, names), (is_wanted_list, wanted_names)) = (selection(change), selection(wanted));
            if is_list != is_wanted_list || names == wanted_names {
                continue;
            }
            let message = format!(
                "flows into `{}` track different columns: `{}` tracks {}, `{}` tracks {}",
                dataset.label,
                flow.name,
                words(change),
                first.name,
                words(wanted)
            );
            let span = change.track_history.as_ref().map_or(flow.name_span, |tracked| tracked.span);
            let other = wanted.track_history.as_ref().map_or(first.name_span, |tracked| tracked.span);
            diagnostics.push(
                Diagnostic::error("tracked-columns-differ", span, message)
                    .reason("which change starts a new row would depend on the flow that brings it")
                    .label(other, format!("`{}`", first.name))
                    .help("write the same TRACK HISTORY ON in all flows of the table"),
            );
        }
    }
}

/// Whether the columns are listed, and their names; without the clause nothing is excepted.
fn selection(change: &ChangeFlow) -> (bool, BTreeSet<String>) {
    let Some(tracked) = &change.track_history else { return (false, BTreeSet::new()) };
    let names = tracked.value.names().iter().map(|name| name.value.to_lowercase()).collect();
    (matches!(tracked.value, ColumnSelection::On(_)), names)
}

/// `all columns but (a, b)`.
pub fn words(change: &ChangeFlow) -> String {
    let Some(tracked) = &change.track_history else { return "all columns".to_string() };
    let names: Vec<&str> = tracked.value.names().iter().map(|name| name.value.as_str()).collect();
    match tracked.value {
        ColumnSelection::On(_) => format!("({})", names.join(", ")),
        ColumnSelection::Except(_) => format!("all columns but ({})", names.join(", ")),
    }
}
