//! A flow from snapshots beside flows from feeds needs SCD type 1 (behaviours C-3, C-22).

use super::snapshots_among_feeds;
use crate::auto_cdc::ScdType;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for (dataset, ((snapshot, change), feeds)) in snapshots_among_feeds(graph) {
        let all = std::iter::once((snapshot, change)).chain(feeds.iter().copied());
        // `scd_type` tells flows that differ.
        if all.into_iter().any(|(_, change)| change.scd_type() != ScdType::Two) {
            continue;
        }
        let message = format!(
            "`{}` is stored as SCD type 2 and has a flow from snapshots, `{}`, beside `{}` from a change feed",
            dataset.label, snapshot.name, feeds[0].0.name
        );
        let span = change.scd_type.as_ref().map_or(snapshot.name_span, |scd_type| scd_type.span);
        diagnostics.push(
            Diagnostic::error("snapshot-beside-feed", span, message)
                .reason("a snapshot tells nothing of the time before it; only the latest rows can be made of both")
                .label(feeds[0].0.name_span, "the flow from a change feed")
                .help(
                    "store it AS SCD TYPE 1 in all flows; or replay the history as events: AUTO CDC ONCE INTO … FROM \
                     source KEYS (…) SEQUENCE BY …",
                ),
        );
    }
}
