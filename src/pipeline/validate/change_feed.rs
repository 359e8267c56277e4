//! Of what a change feed can be read: of Delta tables. A view has the feed that its own query reads.

use crate::diagnostic::Diagnostic;
use crate::graph::{Graph, Reading, Source};
use crate::query::Input;
use crate::settings::{ExternalFormat, Settings};
use crate::text::Span;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for reading in graph.dataset_ids().flat_map(|id| graph.readings(id)) {
        check_reading(graph, reading, diagnostics);
    }
}

fn check_reading(graph: &Graph, reading: &Reading, diagnostics: &mut Vec<Diagnostic>) {
    for (input, written) in reading.inputs.iter().zip(&reading.query.inputs) {
        let error = |what: &str| Diagnostic::error("no-change-feed", option_span(written), what);
        match &input.source {
            Source::Dataset { id, stream } if stream.reads_change_feed => {
                let read = graph.dataset(*id);
                if let Some(view) = &read.view {
                    diagnostics.push(
                        error(&format!("{} `{}` has no change feed", read.kind().words(), read.label))
                            .reason("a view stores no rows whose versions could be told")
                            .label(view.query.span, "the view's query")
                            .help(format!(
                                "read a feed in it, `FROM STREAM(table) WITH (READCHANGEFEED = TRUE)`, and here STREAM({})",
                                read.label
                            )),
                    );
                }
            }
            Source::External { id, stream } if stream.reads_change_feed => {
                let table = &graph.externals[id.0];
                if table.format != ExternalFormat::Delta {
                    diagnostics.push(
                        error(&format!("source `{}` has no change feed", table.name.value))
                            .reason("it is files of rows; only a Delta table has versions")
                            .label(table.name.span, "the source")
                            .help("remove the option"),
                    );
                }
            }
            _ => {}
        }
    }
}

/// Where the change feed is asked for.
fn option_span(input: &Input) -> Span {
    let asks = |name: &str| ["readChangeFeed", "readChangeData"].iter().any(|option| option.eq_ignore_ascii_case(name));
    input.options.iter().find(|option| asks(&option.name.value)).map_or(input.span, |option| option.name.span)
}
