//! A dataset may not feed itself, directly or through others. The whole cycle is printed, not one edge.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::graph::{DatasetId, Graph};
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    let ordered: BTreeSet<DatasetId> = graph.topological_order().into_iter().collect();
    let mut told = BTreeSet::new();
    for start in graph.dataset_ids().filter(|id| !ordered.contains(id)) {
        let Some(cycle) = cycle_through(graph, start) else { continue };
        if cycle.iter().any(|id| told.contains(id)) {
            continue;
        }
        told.extend(cycle.iter().copied());
        diagnostics.push(describe(graph, &cycle));
    }
}

/// The shortest way from `start` back to itself, `start` first; None if it only lies behind a cycle.
fn cycle_through(graph: &Graph, start: DatasetId) -> Option<Vec<DatasetId>> {
    let mut ways = vec![vec![start]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = *way.last().expect("a way has a start");
            for reader in graph.readers(last).iter().copied() {
                if reader == start {
                    return Some(way);
                }
                if seen.insert(reader) {
                    longer.push(way.iter().copied().chain([reader]).collect());
                }
            }
        }
        ways = longer;
    }
    None
}

fn describe(graph: &Graph, cycle: &[DatasetId]) -> Diagnostic {
    let label = |id: DatasetId| graph.dataset(id).label.as_str();
    let first = graph.dataset(cycle[0]);
    if cycle.len() == 1 {
        return Diagnostic::error(
            "cycle",
            reading_span(graph, cycle[0], cycle[0]),
            format!("`{}` reads itself", first.label),
        )
        .condition("CircularDependencyException")
        .reason("its rows would have to exist before they are made")
        .help("read the dataset that feeds it instead");
    }
    let names: Vec<&str> = cycle.iter().chain(&cycle[..1]).map(|id| label(*id)).collect();
    let mut diagnostic = Diagnostic::error(
        "cycle",
        reading_span(graph, cycle[0], cycle[cycle.len() - 1]),
        format!("datasets feed one another in a circle: {}", names.join(" → ")),
    )
    .condition("CircularDependencyException")
    .reason("no order of updates could fill them")
    .help("take one of these reads out");
    for pair in cycle.windows(2) {
        if let Some(span) = reading_span(graph, pair[1], pair[0]) {
            diagnostic = diagnostic.label(span, format!("`{}` reads `{}`", label(pair[1]), label(pair[0])));
        }
    }
    diagnostic
}

/// Where `reader` reads `read`.
fn reading_span(graph: &Graph, reader: DatasetId, read: DatasetId) -> Option<crate::text::Span> {
    graph.readings(reader).flat_map(|reading| &reading.inputs).find_map(|input| match input.source {
        crate::graph::Source::Dataset { id, .. } if id == read => Some(input.span),
        _ => None,
    })
}
