//! A plain stream of a table whose rows change and leave: it would fail at the first change.

use std::collections::BTreeSet;

use super::flows_into;
use crate::definition::DatasetKind;
use crate::diagnostic::Diagnostic;
use crate::graph::{Flow, FlowKind, Graph, Reading, ResolvedInput, Source};
use crate::query::Input;
use crate::settings::Settings;
use crate::text::Span;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    let mut told = BTreeSet::new();
    for flow in &graph.flows {
        // A table that reads itself is a cycle.
        let is_own = |input: &ResolvedInput| matches!(input.source, Source::Dataset { id, .. } if id == flow.target);
        let streams = graph.all_inputs(&flow.reading).into_iter().filter(|input| flow.reads_as_stream(input));
        for input in streams.filter(|input| !is_own(input)) {
            report(
                graph,
                input,
                own(&flow.reading, input).filter(|_| flow.kind == FlowKind::Cdc),
                &mut told,
                diagnostics,
            );
        }
    }
    // Of views that some flow reads the flow says whether it reads them as a stream.
    for view in graph.dataset_ids().filter(|id| graph.readers(*id).is_empty()) {
        for input in graph.dataset(view).view.iter().flat_map(|view| graph.all_inputs(view)) {
            report(graph, input, None, &mut told, diagnostics);
        }
    }
}

/// The input as the flow itself writes it; None for one of a view.
fn own<'a>(reading: &'a Reading, input: &ResolvedInput) -> Option<&'a Input> {
    let at = reading.inputs.iter().position(|own| own.id == input.id)?;
    reading.query.inputs.get(at)
}

/// Reports an input if it is a plain stream of a table that AUTO CDC keeps. `written`: where the change feed can be
/// read instead without a second thought.
fn report(
    graph: &Graph,
    input: &ResolvedInput,
    written: Option<&Input>,
    told: &mut BTreeSet<(usize, usize, usize)>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let Source::Dataset { id, stream } = &input.source else { return };
    let read = graph.dataset(*id);
    // Streams of materialized views are refused by `stream_or_batch`, whoever writes them.
    let is_plain = input.is_stream && !stream.reads_change_feed && !stream.skip_change_commits;
    if !is_plain || read.kind() != DatasetKind::StreamingTable {
        return;
    }
    let flows: Vec<&Flow> = flows_into(graph, read).into_iter().map(|(flow, _)| flow).collect();
    let Some(first) = flows.first() else { return };
    if !told.insert((input.span.file.0, input.span.start, input.span.end)) {
        return;
    }
    let names: Vec<String> = flows.iter().map(|flow| format!("`{}`", flow.name)).collect();
    let writers = match names.as_slice() {
        [name] => format!("flow {name} of AUTO CDC writes it"),
        names => format!("flows {} of AUTO CDC write it", names.join(", ")),
    };
    let label = &read.label;
    let message = format!("`{label}` is read as a stream of new rows, and its rows change and leave");
    let diagnostic = Diagnostic::error("stream-of-changed-table", input.span, message)
        .reason(format!("{writers} by key; a plain stream fails at the first row that is replaced or removed"))
        .label(first.name_span, format!("`{}` changes its rows", first.name))
        .help(format!(
            "read its changes: STREAM({label}) WITH (READCHANGEFEED = TRUE), which adds `_change_type`, `_commit_version` \
             and `_commit_timestamp`; or pass over the commits that change or remove rows, and the new rows in them: \
             STREAM({label}) WITH (SKIPCHANGECOMMITS = TRUE); or read the table as it is, without STREAM, in a \
             materialized view"
        ));
    diagnostics.push(match written.and_then(feed_edit) {
        Some((span, text)) => diagnostic.edit(span, text),
        None => diagnostic,
    });
}

/// Text that makes the input a change feed, and where to put it.
fn feed_edit(input: &Input) -> Option<(Span, &'static str)> {
    match input.options.last() {
        // Either form takes options written so.
        Some(last) => Some((Span { start: last.value.span.end, ..last.value.span }, ", READCHANGEFEED => TRUE")),
        None => {
            input.name_span?;
            Some((Span { start: input.span.end, ..input.span }, " WITH (READCHANGEFEED = TRUE)"))
        }
    }
}
