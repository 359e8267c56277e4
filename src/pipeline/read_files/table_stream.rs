//! The options of reading a table as a stream, checked and completed with the defaults.

use super::TableStream;
use super::options::{OptionReader, TABLE_OPTIONS};
use crate::diagnostic::Diagnostic;
use crate::query::{Input, InputSource};
use crate::settings::Settings;

/// Gives the options of `STREAM t WITH (…)` and `read_stream("t", …)` their types and defaults. None if one is
/// wrong, or if the input is no table that is read as a stream.
pub fn table_stream(input: &Input, settings: &Settings) -> (Option<TableStream>, Vec<Diagnostic>) {
    if !input.stream || !matches!(input.source, InputSource::Table(_)) {
        let diagnostics = input.options.first().map(|option| {
            Diagnostic::error("unsupported-option", option.name.span, "only a table read with STREAM takes options")
                .help("remove them; read_files takes its options as arguments")
        });
        return (None, diagnostics.into_iter().collect());
    }
    let mut options = OptionReader::new(&input.options, TABLE_OPTIONS, "a table read with STREAM");
    let starts_at_latest =
        options.text("startingVersion").is_some_and(|text| text.value.trim().eq_ignore_ascii_case("latest"));
    let starting_version = match starts_at_latest || options.option("startingVersion").is_none() {
        true => None,
        false => i64::try_from(options.count("startingVersion", 0..=i64::MAX as usize, 0)).ok(),
    };
    let stream = TableStream {
        starting_version,
        starts_at_latest,
        starting_timestamp_us: options.timestamp_us("startingTimestamp", &settings.time_zone.value),
        skip_change_commits: options.boolean("skipChangeCommits", false),
        reads_change_feed: options.boolean("readChangeFeed", false),
        max_files_per_trigger: options.count("maxFilesPerTrigger", 1..=usize::MAX, 1000),
        max_bytes_per_trigger: options.bytes("maxBytesPerTrigger"),
    };
    if let (Some(version), Some(timestamp)) = (options.option("startingVersion"), options.option("startingTimestamp")) {
        options.diagnostics.push(
            Diagnostic::error(
                "conflicting-options",
                timestamp.name.span,
                "`startingTimestamp` and `startingVersion` exclude each other",
            )
            .condition("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET")
            .label(version.name.span, "the version")
            .help("remove one"),
        );
    }
    if let (Some(feed), Some(skips)) = (options.option("readChangeFeed"), options.option("skipChangeCommits"))
        && stream.reads_change_feed
        && stream.skip_change_commits
    {
        options.diagnostics.push(
            Diagnostic::error(
                "conflicting-options",
                skips.name.span,
                "`skipChangeCommits` and `readChangeFeed` exclude each other",
            )
            .reason("a change feed is read for the changes that the other option passes over")
            .label(feed.name.span, "the change feed")
            .help("remove one"),
        );
    }
    let is_valid = !options.diagnostics.iter().any(Diagnostic::is_error);
    (is_valid.then_some(stream), options.diagnostics)
}
