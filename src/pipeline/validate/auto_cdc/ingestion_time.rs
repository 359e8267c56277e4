//! A sequence that says when an event came, not when it happened, can't put late events in their place.

use super::change_flows;
use crate::auto_cdc::ChangeFeed;
use crate::diagnostic::Diagnostic;
use crate::graph::{Flow, Graph};
use crate::settings::Settings;

/// Functions and fields of `_metadata` that have the time of reading, or of the file.
const INGESTION_TIMES: [&str; 6] =
    ["current_timestamp", "now", "current_date", "curdate", "localtimestamp", "file_modification_time"];

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for (flow, change) in change_flows(graph) {
        let Some(feed) = change.feed() else { continue };
        let word = feed.sequence_words.iter().find(|word| is_ingestion_time(word));
        diagnostics.extend(word.map(|word| by_ingestion_time(flow, feed, word)));
    }
}

/// True for the name of a function, or of a field of `_metadata`, that has the time of reading, or of the file.
pub fn is_ingestion_time(word: &str) -> bool {
    INGESTION_TIMES.iter().any(|time| time.eq_ignore_ascii_case(word))
}

/// The warning for a feed whose sequence is made of `time`; the engine finds those that a view makes.
pub fn by_ingestion_time(flow: &Flow, feed: &ChangeFeed, time: &str) -> Diagnostic {
    let message = format!("flow `{}` orders its events by when they came: `{time}`", flow.name);
    Diagnostic::warning("sequence-by-ingestion-time", feed.sequence_span, message)
        .reason("an older event that comes late would win, and reading the source again gives another table")
        .help("order by a column that the source set when the row changed: its version, log position or time")
}
