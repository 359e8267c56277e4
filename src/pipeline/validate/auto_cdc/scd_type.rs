//! The flows of one target store it as the same SCD type (behaviours D-10, D-12).

use super::flows_into;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let flows = flows_into(graph, dataset);
        let Some((first, wanted)) = flows.first() else { continue };
        for (flow, change) in flows.iter().filter(|(_, change)| change.scd_type() != wanted.scd_type()) {
            let place = |written: bool| if written { "" } else { ", the default" };
            let message = format!(
                "flows into `{}` store it as different types: `{}` as {}{}, `{}` as {}{}",
                dataset.label,
                flow.name,
                change.scd_type().words(),
                place(change.scd_type.is_some()),
                first.name,
                wanted.scd_type().words(),
                place(wanted.scd_type.is_some()),
            );
            let span = change.scd_type.as_ref().map_or(flow.name_span, |scd_type| scd_type.span);
            let other = wanted.scd_type.as_ref().map_or(first.name_span, |scd_type| scd_type.span);
            diagnostics.push(
                Diagnostic::error("scd-types-differ", span, message)
                    .reason("the table keeps either the latest row of each key, or its history")
                    .label(other, format!("`{}`", first.name))
                    .help("write the same STORED AS SCD TYPE in all flows of the table"),
            );
        }
    }
}
