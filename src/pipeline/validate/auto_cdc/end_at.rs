//! The row that holds now has no end: `__END_AT` of SCD type 2 is NULL there.

use super::flows_into;
use crate::auto_cdc::{END_AT, ScdType};
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let is_end = |name: &str| name.eq_ignore_ascii_case(END_AT);
        let mut columns = dataset.definition.columns.iter();
        let Some(end) = columns.find(|column| is_end(&column.name.value) && !column.is_nullable) else { continue };
        let flows = flows_into(graph, dataset);
        let Some((flow, _)) = flows.iter().find(|(_, change)| change.scd_type() == ScdType::Two) else { continue };
        let message = format!("`{}` declares `{}` NOT NULL", dataset.label, end.name.value);
        diagnostics.push(
            Diagnostic::error("end-not-null", end.name.span, message)
                .condition("NOT_NULL_CONSTRAINT_VIOLATION")
                .reason("a row of SCD type 2 that still holds has no end")
                .label(flow.name_span, format!("`{}` stores it as SCD type 2", flow.name))
                .help("remove NOT NULL"),
        );
    }
}
