//! A flow from snapshots beside flows from feeds needs triggered updates (behaviours C-9).

use super::snapshots_among_feeds;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::{Mode, Settings};

pub(in crate::validate) fn check(graph: &Graph, settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    if settings.mode.value != Mode::Continuous {
        return;
    }
    for (dataset, ((snapshot, _), _)) in snapshots_among_feeds(graph) {
        let message = format!(
            "`{}` has a flow from snapshots, `{}`, beside change feeds, and the mode is continuous",
            dataset.label, snapshot.name
        );
        diagnostics.push(
            Diagnostic::error("snapshot-beside-feed", snapshot.name_span, message)
                .condition("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_CONTINUOUS_NOT_SUPPORTED")
                .reason("a snapshot is compared with the table as a whole, between the batches of the feeds")
                .label(settings.mode.span, "the mode")
                .help("set mode = \"triggered\""),
        );
    }
}
