//! Which reads may be streams: by the kind of the flow, and by the kind of what is read.

use crate::definition::DatasetKind;
use crate::diagnostic::Diagnostic;
use crate::graph::{FlowKind, Graph, Reading, ResolvedInput, Source};
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for flow in &graph.flows {
        let target = graph.dataset(flow.target);
        if !target.kind().is_stored() {
            continue; // `flow_target` says that.
        }
        let stream = first_stream(&flow.reading);
        match (flow.kind, stream) {
            (FlowKind::Once, Some(input)) => diagnostics.push(
                Diagnostic::error("once-reads-stream", input.span, format!("once flow `{}` reads a stream", flow.name))
                    .condition("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW")
                    .reason("a once flow reads its input one time; a stream has no end")
                    .help("remove STREAM, or remove ONCE to keep the flow running"),
            ),
            (FlowKind::Snapshot | FlowKind::SnapshotOnce, Some(input)) => diagnostics.push(
                Diagnostic::error(
                    "snapshot-reads-stream",
                    input.span,
                    format!("the snapshot of flow `{}` reads a stream", flow.name),
                )
                .condition("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW")
                .reason("a snapshot is the whole state of its source; what a stream gives is only what is new")
                .help("remove STREAM, or read the changes: AUTO CDC INTO … FROM STREAM(…)"),
            ),
            (FlowKind::Complete, Some(input)) => diagnostics.push(
                Diagnostic::error(
                    "materialized-view-reads-stream",
                    input.span,
                    format!("materialized view `{}` reads a stream", target.label),
                )
                .condition("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW")
                .reason("a materialized view is recomputed from all of its input")
                .help("remove STREAM, or make it a STREAMING TABLE"),
            ),
            (FlowKind::Append | FlowKind::Cdc, None) => {
                let mut diagnostic = Diagnostic::error(
                    "streaming-table-without-stream",
                    flow.reading.query.span,
                    format!("flow `{}` of streaming table `{}` reads nothing as a stream", flow.name, target.label),
                )
                .condition("INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE")
                .reason(match flow.kind.is_change() {
                    true => "it would apply all of its source again at every update",
                    false => "it would append all of its input again at every update",
                });
                diagnostic = match flow.reading.inputs.as_slice() {
                    [input] if flow.kind.is_change() => diagnostic
                        .help("put STREAM before the source, or write AUTO CDC ONCE to read it one time")
                        .edit(crate::text::Span { end: input.span.start, ..input.span }, "STREAM "),
                    [input] => diagnostic
                        .help("put STREAM before what it reads, make it a MATERIALIZED VIEW, or INSERT INTO ONCE")
                        .edit(crate::text::Span { end: input.span.start, ..input.span }, "STREAM "),
                    _ => diagnostic
                        .help("put STREAM before one of its inputs, make it a MATERIALIZED VIEW, or INSERT INTO ONCE"),
                };
                diagnostics.push(diagnostic);
            }
            _ => {}
        }
        if flow.kind != FlowKind::CdcOnce {
            check_inputs(graph, &flow.reading, !flow.kind.is_incremental(), diagnostics);
        }
        if let Some(version) = &flow.version {
            check_inputs(graph, version, true, diagnostics);
            if let Some(input) = first_stream(version) {
                diagnostics.push(
                    Diagnostic::error(
                        "snapshot-reads-stream",
                        input.span,
                        format!("the version of flow `{}` reads a stream", flow.name),
                    )
                    .reason("it is asked for anew at every update")
                    .help("remove STREAM"),
                );
            }
        }
    }
    for dataset in &graph.datasets {
        let Some(view) = &dataset.view else { continue };
        if dataset.kind() == DatasetKind::View
            && let Some(input) = first_stream(view)
        {
            diagnostics.push(
                Diagnostic::error("view-reads-stream", input.span, format!("view `{}` reads a stream", dataset.label))
                    .condition("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_PERSISTED_VIEW")
                    .reason("a published view is queried as a whole, at any time")
                    .help("remove STREAM, or make it a TEMPORARY VIEW"),
            );
        }
        check_inputs(graph, view, false, diagnostics);
    }
}

/// The first input that a query reads as a stream; of a streaming view, the read of the view.
fn first_stream(reading: &Reading) -> Option<&ResolvedInput> {
    reading.inputs.iter().find(|input| input.is_stream)
}

fn check_inputs(graph: &Graph, reading: &Reading, is_batch_flow: bool, diagnostics: &mut Vec<Diagnostic>) {
    for input in &reading.inputs {
        let Source::Dataset { id, .. } = input.source else { continue };
        let read = graph.dataset(id);
        let is_streaming_view =
            read.view.as_ref().is_some_and(|view| graph.all_inputs(view).iter().any(|input| input.is_stream));
        match (read.kind(), input.is_stream) {
            (DatasetKind::View | DatasetKind::TemporaryView, true) if !is_streaming_view => diagnostics.push(
                Diagnostic::error(
                    "stream-of-batch-view",
                    input.span,
                    format!("view `{}` is read as a stream", read.label),
                )
                .condition("INCOMPATIBLE_BATCH_VIEW_READ")
                .reason("the view's own query reads nothing as a stream")
                .label(read.definition.name.span, "the view")
                .help("remove STREAM here, or put STREAM into the view's query"),
            ),
            (DatasetKind::View | DatasetKind::TemporaryView, false) if is_streaming_view && !is_batch_flow => {
                diagnostics.push(
                    Diagnostic::error(
                        "batch-of-streaming-view",
                        input.span,
                        format!("view `{}` is read as a batch", read.label),
                    )
                    .condition("INCOMPATIBLE_STREAMING_VIEW_READ")
                    .reason("the view's query reads a stream")
                    .label(read.definition.name.span, "the view")
                    .help(format!("write STREAM({})", read.label)),
                )
            }
            (DatasetKind::View | DatasetKind::TemporaryView, false) if is_streaming_view => diagnostics.push(
                Diagnostic::error(
                    "batch-of-streaming-view",
                    input.span,
                    format!("view `{}` is read as a batch", read.label),
                )
                .condition("INCOMPATIBLE_STREAMING_VIEW_READ")
                .reason("the view's query reads a stream, which has no end")
                .label(read.definition.name.span, "the view")
                .help("read what the view reads, without STREAM"),
            ),
            (DatasetKind::MaterializedView, true) => diagnostics.push(
                Diagnostic::error(
                    "stream-of-materialized-view",
                    input.span,
                    format!("materialized view `{}` is read as a stream", read.label),
                )
                .reason("a materialized view is replaced at every update; a stream needs a source that only grows")
                .label(read.definition.name.span, "the materialized view")
                .help("remove STREAM, or stream from what the materialized view reads"),
            ),
            _ => {}
        }
    }
}
