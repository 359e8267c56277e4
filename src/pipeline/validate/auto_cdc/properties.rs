//! The properties of a target that are options of its flows: their values, and whether there is such a flow.

use std::collections::BTreeMap;

use super::flows_into;
use crate::auto_cdc::{CHANGE_PROPERTIES, ChangeOptions};
use crate::diagnostic::{Diagnostic, nearest};
use crate::graph::Graph;
use crate::settings::Settings;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let (span, label) = (dataset.definition.name.span, &dataset.label);
        let flows = flows_into(graph, dataset);
        let [null_keys, allow_empty_snapshot, max_delete_fraction] = CHANGE_PROPERTIES;
        for (name, value) in &dataset.definition.properties {
            let (wanted, is_used) = match name.as_str() {
                name if name == null_keys => {
                    ("'error' or 'drop'", flows.iter().any(|(flow, _)| !flow.kind.is_snapshot()))
                }
                name if name == allow_empty_snapshot => {
                    ("'true' or 'false'", flows.iter().any(|(flow, _)| flow.kind.is_snapshot()))
                }
                name if name == max_delete_fraction => {
                    ("a number from 0 to 1, such as '0.1'", flows.iter().any(|(flow, _)| flow.kind.is_snapshot()))
                }
                name => {
                    let near = nearest(name, CHANGE_PROPERTIES).filter(|_| name.starts_with("flowbench."));
                    diagnostics.extend(near.map(|near| {
                        let message = format!("`{label}` has an unknown property `{name}`");
                        Diagnostic::error("unknown-property", span, message)
                            .reason("a guard that is misspelt guards nothing")
                            .help(format!("did you mean `{near}`?"))
                    }));
                    continue;
                }
            };
            let only = BTreeMap::from([(name.clone(), value.clone())]);
            if ChangeOptions::of_properties(&only) == ChangeOptions::default() {
                let message = format!("`{name}` of `{label}` has an unknown value: {value}");
                diagnostics.push(Diagnostic::error("property-value", span, message).help(format!("write {wanted}")));
            } else if !is_used {
                let what = if name == null_keys { "a change feed" } else { "snapshots" };
                diagnostics.push(
                    Diagnostic::warning(
                        "property-without-effect",
                        span,
                        format!("`{name}` of `{label}` has no effect"),
                    )
                    .reason(format!("no flow of AUTO CDC from {what} writes it"))
                    .help("remove the property"),
                );
            }
        }
    }
}
