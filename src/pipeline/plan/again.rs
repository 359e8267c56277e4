//! The traps of checkpoints that belong to names: what an edit or a new name would read a second time.

use super::history::{FlowHistory, History, source_names};
use super::update::Notice;
use crate::graph::{Flow, FlowKind, Graph};

/// What running a flow that never ran under this name would repeat; None if nothing.
///
/// A flow that is gone from the files and read the same into the same table was probably renamed, or was
/// the table's default flow (behaviours B-21, B-44).
pub fn would_read_again(graph: &Graph, flow: &Flow, history: &History) -> Option<Notice> {
    if history.flow(&flow.name).is_some_and(|known| known.has_checkpoint || known.is_done) {
        return None;
    }
    let target = graph.dataset(flow.target);
    let sources = source_names(graph, &flow.reading);
    let is_gone = |known: &&FlowHistory| graph.find_flow(&known.name).is_none();
    let same_target = |known: &&FlowHistory| known.dataset == target.name.key();
    let mut gone = history.flows.iter().filter(is_gone).filter(same_target);
    let is_once = flow.kind == FlowKind::Once;
    let old = gone.find(|known| {
        let has_read = known.has_checkpoint || known.is_done;
        let reads_same = match is_once {
            true => known.definition == flow.reading.query.fingerprint_text,
            false => known.sources.iter().any(|source| sources.contains(source)),
        };
        known.is_once == is_once && has_read && reads_same
    })?;
    let again = match (is_once, old.known_files) {
        (true, _) => "would append the same rows again".to_string(),
        (false, 0) => "would read its source from the start again".to_string(),
        (false, 1) => "would read 1 already ingested file again".to_string(),
        (false, n) => format!("would read {n} already ingested files again"),
    };
    Some(Notice {
        code: "would-read-again",
        message: format!("flow `{}` removed; new flow `{}` {again} into `{}`", old.name, flow.name, target.label),
        help: format!(
            "keep the checkpoint: flowbench rename-flow {} {}; or drop the rows: flowbench run --full-refresh {}; \
             or append them twice: flowbench run --yes",
            old.name, flow.name, target.label
        ),
    })
}

/// Warns that a done once flow's query was edited: it is not run again by itself (behaviours B-43).
pub fn edited_since_done(flow: &Flow, known: &FlowHistory) -> Option<Notice> {
    if known.definition == flow.reading.query.fingerprint_text {
        return None;
    }
    Some(Notice {
        code: "once-flow-edited",
        message: format!("the definition of once flow `{}` changed since it ran; it is not run again", flow.name),
        help: format!("flowbench run --rerun-once {} appends its rows again, beside those of the first run", flow.name),
    })
}
