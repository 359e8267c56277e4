//! The types of declared columns are types.

use crate::ddl::parse_type;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;
use crate::text::Span;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for column in graph.datasets.iter().flat_map(|dataset| &dataset.definition.columns) {
        let Some(data_type) = &column.data_type else { continue };
        let Err(error) = parse_type(&data_type.value) else { continue };
        let whole = data_type.span;
        // The part of the type, if the type stands in the file as it was parsed.
        let span = match whole.end - whole.start == data_type.value.len() {
            true => Span::new(whole.file, whole.start + error.range.start..whole.start + error.range.end),
            false => whole,
        };
        let message = format!("column `{}`: {}", column.name.value, error.message);
        let mut diagnostic = Diagnostic::error("invalid-type", span, message);
        diagnostic.help = error.help;
        diagnostics.push(diagnostic);
    }
}
