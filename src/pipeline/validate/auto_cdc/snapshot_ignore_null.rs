//! Beside a flow from snapshots no feed ignores NULLs (behaviours C-8).

use super::snapshots_among_feeds;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for (dataset, ((snapshot, _), feeds)) in snapshots_among_feeds(graph) {
        for (flow, change) in feeds {
            let Some(ignored) = change.feed().and_then(|feed| feed.ignore_null_updates.as_ref()) else { continue };
            let message = format!(
                "flow `{}` ignores NULLs beside the flow from snapshots `{}` of `{}`",
                flow.name, snapshot.name, dataset.label
            );
            diagnostics.push(
                Diagnostic::error("snapshot-beside-feed", ignored.span, message)
                    .condition("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_IGNORE_NULL_UNSUPPORTED")
                    .reason(
                        "a snapshot's NULL is a value, an event's would be none: whose value holds could not be said",
                    )
                    .label(snapshot.name_span, "the flow from snapshots")
                    .help("remove it, and fill the values in a view before they are applied"),
            );
        }
    }
}
