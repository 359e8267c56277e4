//! A table that AUTO CDC keeps takes flows of AUTO CDC only (behaviours D-2, B-4).

use super::flows_into;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let changes = flows_into(graph, dataset);
        let Some((change, _)) = changes.first() else { continue };
        if !dataset.kind().is_stored() || dataset.kind() == crate::definition::DatasetKind::MaterializedView {
            continue; // `flow_target` says that.
        }
        for flow in dataset.flows.iter().map(|id| graph.flow(*id)).filter(|flow| !flow.kind.is_change()) {
            let label = &dataset.label;
            let message = format!(
                "flow `{}` inserts into `{label}`, to which flow `{}` applies changes by key",
                flow.name, change.name
            );
            let help = match flow.kind.is_once() {
                true => format!(
                    "seed the table with a flow of the same kind: `AUTO CDC ONCE INTO {label} FROM source KEYS (…) SEQUENCE \
                     BY …`, or from an authoritative snapshot: `AUTO CDC ONCE INTO {label} FROM SNAPSHOT (query) …`"
                ),
                false => format!(
                    "make it `AUTO CDC INTO {label} FROM STREAM(source) KEYS (…) SEQUENCE BY …`, or insert into a table of \
                     its own"
                ),
            };
            diagnostics.push(
                Diagnostic::error("insert-into-change-target", flow.name_span, message)
                    .condition("AUTOCDC_MULTIPLE_FLOWS_TO_TARGET")
                    .reason("rows that are only appended have no place in the order of events of their key")
                    .label(change.name_span, format!("`{}` is a flow of AUTO CDC", change.name))
                    .help(help),
            );
        }
    }
}
