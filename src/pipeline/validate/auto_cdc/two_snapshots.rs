//! A target has one flow from snapshots at most (behaviours C-4).

use super::flows_into;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let flows = flows_into(graph, dataset);
        let mut snapshots = flows.iter().map(|(flow, _)| flow).filter(|flow| flow.kind.is_snapshot());
        let Some(first) = snapshots.next() else { continue };
        for flow in snapshots {
            let message =
                format!("`{}` has two flows from snapshots: `{}` and `{}`", dataset.label, first.name, flow.name);
            diagnostics.push(
                Diagnostic::error("two-snapshot-flows", flow.name_span, message)
                    .condition("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.MULTIPLE_QUERIES_FOR_TABLE")
                    .reason("each would delete the rows that only the other has: a snapshot is the complete state")
                    .label(first.name_span, "the first")
                    .help("read both sources in the query of one snapshot"),
            );
        }
    }
}
