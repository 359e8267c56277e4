//! Flows against what AUTO CDC built their target with: what stored events depend on may not change.

use pipeline::auto_cdc::ChangeFlow;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{DatasetId, Flow};
use pipeline::text::Span;

use super::Work;
use crate::auto_cdc::spec::{Drift, Promise, TargetSpec};
use crate::auto_cdc::target::side_folder;
use crate::columns::Columns;

impl Work<'_> {
    /// Compares the flows into a dataset, whose table has `columns`, with what the table was built with.
    pub(super) fn check_drift(&mut self, id: DatasetId, columns: &Columns) {
        let graph = self.engine.graph();
        let dataset = graph.dataset(id);
        if self.anew.contains(&id) {
            return;
        }
        let Some(generation) = self.recorded.generation(dataset) else { return };
        let folder = side_folder(&self.engine.table_folder(&dataset.name), generation);
        let Some(recorded) = self.engine.specs().get(&folder) else { return };
        for flow_id in &dataset.flows {
            let flow = graph.flow(*flow_id);
            let Some(change) = &flow.change else {
                self.report(inserts(flow, &dataset.label));
                continue;
            };
            let Some(sequence) = self.analysis.sequences[flow_id.0].clone() else { continue };
            for drift in recorded.drifts(&TargetSpec::of(change, &columns.fields, sequence)) {
                self.report(drifted(flow, change, &dataset.label, &drift));
            }
        }
    }
}

/// A flow that appends to a table whose rows stand for the events of keys.
fn inserts(flow: &Flow, table: &str) -> Diagnostic {
    let message = format!("`{table}` was built by AUTO CDC; flow `{}` now inserts into it", flow.name);
    Diagnostic::error("auto-cdc-drift", flow.name_span, message)
        .reason(
            "its rows show the events of keys; a row that is inserted beside them would never be updated or deleted",
        )
        .help(format!("put the AUTO CDC flow back; or build the table anew: flowbench run --full-refresh {table}"))
}

fn drifted(flow: &Flow, change: &ChangeFlow, table: &str, drift: &Drift) -> Diagnostic {
    let message = format!(
        "`{table}` was built with {}: {}; flow `{}` now has {}",
        drift.of.words().trim_start_matches("the "),
        drift.recorded,
        flow.name,
        drift.now
    );
    Diagnostic::error("auto-cdc-drift", span(flow, change, drift.of), message)
        .condition(drift.of.condition())
        .reason("what is stored of its events was made with that, and can't be made another")
        .help(format!("put the definition back; or build the table anew: flowbench run --full-refresh {table}"))
}

/// The clause that drifted.
fn span(flow: &Flow, change: &ChangeFlow, promise: Promise) -> Span {
    let clause = match promise {
        Promise::ScdType => change.scd_type.as_ref().map(|clause| clause.span),
        Promise::Keys => change.keys.first().map(|key| key.span),
        Promise::Sequence => change.feed().map(|feed| feed.sequence_span),
        Promise::Tracked => change.track_history.as_ref().map(|clause| clause.span),
    };
    clause.unwrap_or(flow.name_span)
}
