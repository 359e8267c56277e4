//! Flows against what AUTO CDC built their target with: what stored events depend on may not change.

use pipeline::auto_cdc::ChangeFlow;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{DatasetId, Flow};
use pipeline::text::Span;

use super::Work;
use crate::auto_cdc::known_specs::manifest_stamp;
use crate::auto_cdc::spec::{Drift, Promise, TargetSpec};
use crate::auto_cdc::target::side_folder;
use crate::columns::Columns;
use crate::error::Result;

impl Work<'_> {
    /// Compares the flows into a dataset, whose table has `columns`, with what the table was built with.
    pub(super) async fn check_drift(&mut self, id: DatasetId, columns: &Columns) -> Result<()> {
        let graph = self.engine.graph();
        let dataset = graph.dataset(id);
        if self.anew.contains(&id) {
            return Ok(());
        }
        let Some(generation) = self.recorded.generation(dataset) else { return Ok(()) };
        let folder = side_folder(&self.engine.table_folder(&dataset.name), generation);
        let Some(recorded) = self.engine.specs().get(&folder) else {
            let mut changes = dataset.flows.iter().map(|flow| graph.flow(*flow)).filter(|flow| flow.kind.is_change());
            // One that applied changes before has lost its side table: its update fails, and the others go on.
            let has_applied = |flow: &Flow| self.recorded.flow(dataset, flow).is_some_and(|flow| flow.kind.is_change());
            let is_first = !changes.clone().any(has_applied) && manifest_stamp(&folder).is_none();
            if let Some(flow) = changes.next().filter(|_| is_first)
                && self.has_rows(id).await?
            {
                self.report(applies(flow, &dataset.label));
            }
            return Ok(());
        };
        for flow_id in &dataset.flows {
            let flow = graph.flow(*flow_id);
            let Some(change) = &flow.change else {
                self.report(inserts(flow, &dataset.label));
                continue;
            };
            let Some(sequence) = self.analysis.sequences[flow_id.0].clone() else { continue };
            let now = TargetSpec::of(change, &columns.fields, sequence);
            // A key that isn't found is an error of its own.
            let lacks_key = now.keys.len() < change.keys.len();
            for drift in recorded.drifts(&now).iter().filter(|drift| !(lacks_key && drift.of == Promise::Keys)) {
                self.report(drifted(flow, change, &dataset.label, drift));
            }
        }
        Ok(())
    }

    async fn has_rows(&self, id: DatasetId) -> Result<bool> {
        let Some(table) = self.engine.table(self.engine.graph().dataset(id))? else { return Ok(false) };
        let mut table = table.lock().await;
        table.refresh()?;
        Ok(table.file_count() > 0)
    }
}

/// A flow of AUTO CDC into a table with rows that none has made.
fn applies(flow: &Flow, table: &str) -> Diagnostic {
    let message =
        format!("`{table}` has rows that no AUTO CDC flow has made; flow `{}` now applies changes to it", flow.name);
    Diagnostic::error("auto-cdc-drift", flow.name_span, message)
        .reason("which events its rows stand for is unknown, so that no event could be ordered among them")
        .help(format!(
            "put the flow back that inserted them; or build the table anew: flowbench run --full-refresh {table}"
        ))
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
