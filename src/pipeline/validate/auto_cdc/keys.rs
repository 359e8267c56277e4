//! The flows of one target have the same keys in the same order: flows from feeds letter for letter, a flow from
//! snapshots without regard to case (behaviours C-5, D-10).

use super::flows_into;
use crate::auto_cdc::ChangeFlow;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;
use crate::text::Spanned;

pub(in crate::validate) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for dataset in &graph.datasets {
        let flows = flows_into(graph, dataset);
        let first = flows.iter().find(|(flow, _)| !flow.kind.is_snapshot()).or(flows.first());
        let Some((first, wanted)) = first else { continue };
        for (flow, change) in flows.iter().filter(|(flow, _)| flow.name_span != first.name_span) {
            let is_exact = !flow.kind.is_snapshot() && !first.kind.is_snapshot();
            let is_same = |a: &Spanned<String>, b: &Spanned<String>| match is_exact {
                true => a.value == b.value,
                false => a.value.eq_ignore_ascii_case(&b.value),
            };
            let is_equal = change.keys.len() == wanted.keys.len();
            let differing: Vec<_> = change.keys.iter().zip(&wanted.keys).filter(|(a, b)| !is_same(a, b)).collect();
            if is_equal && differing.is_empty() {
                continue;
            }
            let (Some(key), Some(other)) = (change.keys.first(), wanted.keys.first()) else { continue };
            let (key, other) = differing.first().copied().unwrap_or((key, other));
            let message = format!(
                "flows into `{}` have different keys: `{}` has ({}), `{}` has ({})",
                dataset.label,
                flow.name,
                names(change),
                first.name,
                names(wanted)
            );
            let mut diagnostic = Diagnostic::error("keys-differ", key.span, message)
                .reason(reason(change, wanted, is_exact))
                .label(other.span, format!("the keys of `{}`", first.name))
                .help(format!("write the keys as in `{}`: ({})", first.name, names(wanted)));
            if flow.kind.is_snapshot() {
                diagnostic = diagnostic.condition("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_KEYS_MISMATCH");
            }
            if is_equal && let [(key, wanted)] = differing.as_slice() {
                diagnostic = diagnostic.edit(key.span, wanted.value.clone());
            }
            diagnostics.push(diagnostic);
        }
    }
}

fn names(change: &ChangeFlow) -> String {
    change.keys.iter().map(|key| key.value.as_str()).collect::<Vec<_>>().join(", ")
}

fn reason(change: &ChangeFlow, wanted: &ChangeFlow, is_exact: bool) -> &'static str {
    let lower = |change: &ChangeFlow| change.keys.iter().map(|key| key.value.to_lowercase()).collect::<Vec<_>>();
    let (mut these, mut those) = (lower(change), lower(wanted));
    if is_exact && these == those {
        return "flows from change feeds spell their keys alike, upper and lower case included";
    }
    these.sort();
    those.sort();
    match these == those {
        true => "the keys of all flows into one table stand in one order",
        false => "all flows into one table find its rows by the same key",
    }
}
