//! Consequences folded under their cause: what could not be checked because something it reads is wrong is no
//! error of its own; the cause says what it blocks.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::graph::{DatasetId, Graph, Source};
use crate::text::Span;

/// Tells each first error of a dataset, a cycle or an external table which of the `unresolved` datasets wait for it.
/// `diagnostics` are sorted.
pub fn fold(graph: &Graph, unresolved: &BTreeSet<DatasetId>, diagnostics: &mut [Diagnostic]) {
    if unresolved.is_empty() {
        return;
    }
    let mut told: BTreeSet<DatasetId> = BTreeSet::new();
    let mut externals_told: BTreeSet<usize> = BTreeSet::new();
    for diagnostic in diagnostics.iter_mut().filter(|found| found.is_error()) {
        let Some(place) = diagnostic.span else { continue };
        let mut blocked = BTreeSet::new();
        let dataset = graph.dataset_ids().find(|id| belongs(graph, *id, place));
        if let Some(id) = dataset.filter(|id| told.insert(*id)) {
            blocked.extend(graph.downstream([id]));
            // Those of one circle are its cause together.
            let is_in_circle = blocked.contains(&id);
            blocked.retain(|other| *other != id && !(is_in_circle && graph.downstream([*other]).contains(&id)));
        }
        let external = graph.externals.iter().position(|table| is_within(place, table.span));
        if let Some(index) = external.filter(|index| externals_told.insert(*index)) {
            let reads = |id: &DatasetId| {
                let mut inputs = graph.readings(*id).flat_map(|reading| graph.all_inputs(reading));
                inputs.any(|input| matches!(&input.source, Source::External { id, .. } if id.0 == index))
            };
            let readers: Vec<DatasetId> = graph.dataset_ids().filter(reads).collect();
            blocked.extend(graph.downstream(readers.iter().copied()));
            blocked.extend(readers);
        }
        diagnostic.blocks =
            blocked.intersection(unresolved).map(|id| graph.dataset(*id).label.clone()).collect::<Vec<_>>();
    }
}

/// True if the place lies in what defines the dataset: its statement, its flows, its query's file.
fn belongs(graph: &Graph, id: DatasetId, place: Span) -> bool {
    let dataset = graph.dataset(id);
    is_within(place, dataset.definition.span)
        || dataset.flows.iter().any(|flow| is_within(place, graph.flow(*flow).span))
        || graph.readings(id).any(|reading| is_within(place, reading.query.span))
}

fn is_within(place: Span, span: Span) -> bool {
    place.file == span.file && span.start <= place.start && place.start <= span.end
}
