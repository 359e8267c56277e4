//! Clauses of a table that exclude or need one another.

use std::collections::HashMap;

use crate::definition::DatasetDefinition;
use crate::diagnostic::{Diagnostic, nearest};
use crate::graph::Graph;
use crate::settings::Settings;
use crate::text::Spanned;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let definition = &dataset.definition;
        if let (Some(partition), Some(cluster)) = (definition.partition_by.first(), definition.cluster_by.first()) {
            diagnostics.push(
                Diagnostic::error(
                    "partition-and-cluster",
                    cluster.span,
                    format!("`{}` has both PARTITIONED BY and CLUSTER BY", dataset.label),
                )
                .reason("they lay the same rows out in two ways")
                .label(partition.span, "partitioned here")
                .help("keep one of them"),
            );
        }
        if definition.cluster_by.len() > 4 {
            diagnostics.push(
                Diagnostic::error(
                    "too-many-cluster-columns",
                    definition.cluster_by[4].span,
                    format!("`{}` is clustered by {} columns", dataset.label, definition.cluster_by.len()),
                )
                .reason("at most four are allowed")
                .help("keep the columns that queries filter by most"),
            );
        }
        check_columns(definition, &dataset.label, diagnostics);
        if let Some(value) = definition.properties.get("pipelines.reset.allowed")
            && !matches!(value.trim().to_ascii_lowercase().as_str(), "true" | "false")
        {
            diagnostics.push(
                Diagnostic::error(
                    "property-value",
                    definition.name.span,
                    format!("`pipelines.reset.allowed` of `{}` is neither true nor false: {value}", dataset.label),
                )
                .help("write 'pipelines.reset.allowed' = 'false' to protect the table from full refreshes"),
            );
        }
    }
}

fn check_columns(definition: &DatasetDefinition, label: &str, diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, &Spanned<String>> = HashMap::new();
    for column in &definition.columns {
        if let Some(first) = seen.insert(column.name.value.to_lowercase(), &column.name) {
            diagnostics.push(
                Diagnostic::error(
                    "duplicate-column",
                    column.name.span,
                    format!("`{label}` has two columns named `{}`", column.name.value),
                )
                .reason("column names are compared without regard to case")
                .label(first.span, "the first")
                .help("rename or remove one of them"),
            );
        }
    }
    if definition.columns.is_empty() {
        return; // The engine checks them against the schema of the flows.
    }
    for used in definition.partition_by.iter().chain(&definition.cluster_by) {
        if !seen.contains_key(&used.value.to_lowercase()) {
            let names = definition.columns.iter().map(|column| column.name.value.as_str());
            let mut diagnostic =
                Diagnostic::error("unknown-column", used.span, format!("`{label}` has no column `{}`", used.value));
            if let Some(near) = nearest(&used.value, names) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?")).edit(used.span, near.to_string());
            }
            diagnostics.push(diagnostic);
        }
    }
}
