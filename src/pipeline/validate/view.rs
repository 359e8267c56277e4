//! Temporary views live in the pipeline only: a name of one part, and no published view may need them.

use crate::definition::DatasetKind;
use crate::diagnostic::Diagnostic;
use crate::graph::{Graph, Source};
use crate::settings::Settings;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let name = &dataset.definition.name;
        if dataset.kind() == DatasetKind::TemporaryView && name.value.parts.len() > 1 {
            diagnostics.push(
                Diagnostic::error(
                    "qualified-temporary-view",
                    name.span,
                    format!("temporary view `{}` has a schema in its name", name.value),
                )
                .reason("a temporary view belongs to the pipeline, not to a schema")
                .help(format!("name it `{}`", name.value.last()))
                .edit(name.span, name.value.last().to_string()),
            );
        }
        let Some(view) = dataset.view.as_ref().filter(|_| dataset.kind() == DatasetKind::View) else { continue };
        for input in &view.inputs {
            let Source::Dataset { id, .. } = input.source else { continue };
            let read = graph.dataset(id);
            if read.kind() == DatasetKind::TemporaryView {
                diagnostics.push(
                    Diagnostic::error(
                        "view-reads-temporary-view",
                        input.span,
                        format!("view `{}` reads temporary view `{}`", dataset.label, read.label),
                    )
                    .condition("INVALID_TEMP_OBJ_REFERENCE")
                    .reason("a published view must be readable where the temporary view is not known")
                    .label(read.definition.name.span, "the temporary view")
                    .help("make both temporary, or both published"),
                );
            }
        }
    }
}
