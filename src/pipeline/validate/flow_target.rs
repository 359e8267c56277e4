//! What a flow may write to: streaming tables; and a table without any flow is probably a mistake.

use crate::definition::DatasetKind;
use crate::diagnostic::Diagnostic;
use crate::graph::{FlowKind, Graph};
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        match dataset.kind() {
            DatasetKind::StreamingTable if dataset.flows.is_empty() => diagnostics.push(
                Diagnostic::warning(
                    "table-without-flow",
                    dataset.definition.name.span,
                    format!("streaming table `{}` has no flow", dataset.label),
                )
                .condition("PIPELINE_DATASET_WITHOUT_FLOW")
                .reason(match dataset.definition.columns.is_empty() {
                    true => "it has neither columns nor flows, so nothing is stored for it",
                    false => "nothing writes into it, so it stays empty",
                })
                .help(format!("add CREATE FLOW … AS INSERT INTO {} BY NAME SELECT …", dataset.label)),
            ),
            DatasetKind::MaterializedView if dataset.flows.len() > 1 => {
                let names: Vec<String> = dataset.flows.iter().map(|id| format!("`{}`", graph.flow(*id).name)).collect();
                diagnostics.push(
                    Diagnostic::error(
                        "materialized-view-with-flows",
                        graph.flow(dataset.flows[1]).name_span,
                        format!(
                            "materialized view `{}` has {} queries: {}",
                            dataset.label,
                            names.len(),
                            names.join(", ")
                        ),
                    )
                    .condition("MATERIALIZED_VIEW_WITH_MULTIPLE_QUERIES")
                    .reason("a materialized view is the result of one query")
                    .label(dataset.definition.name.span, "the materialized view")
                    .help("make it a STREAMING TABLE, which may have many flows"),
                );
            }
            _ => {}
        }
        for flow in dataset.flows.iter().map(|id| graph.flow(*id)) {
            let writes = flow.kind != FlowKind::Complete && (flow.kind.is_change() || !flow.is_default);
            if writes && dataset.kind() != DatasetKind::StreamingTable && dataset.flows.len() == 1
                || writes && !dataset.kind().is_stored()
            {
                let is_change_of_view = flow.kind.is_change() && dataset.kind() == DatasetKind::TemporaryView;
                diagnostics.push(
                    Diagnostic::error(
                        "flow-into-view",
                        flow.name_span,
                        format!("flow `{}` writes to `{}`, a {}", flow.name, dataset.label, dataset.kind().words()),
                    )
                    .condition(match is_change_of_view {
                        true => "INVALID_FLOW_QUERY_TYPE.AUTOCDC_RELATION_FOR_TEMPORARY_VIEW",
                        false => "FLOW_WRITES_TO_VIEW_NOT_SUPPORTED",
                    })
                    .reason("only a streaming table takes rows from flows")
                    .label(dataset.definition.name.span, "the target")
                    .help(format!("declare CREATE OR REFRESH STREAMING TABLE {}", dataset.label)),
                );
            }
        }
    }
}
