//! The traps of checkpoints that belong to names: what an edit or a new name would read a second time.

use std::collections::BTreeSet;

use super::history::{FlowHistory, History, source_names};
use super::update::Notice;
use crate::graph::{DatasetId, Flow, Graph};

/// What running a flow that never ran under this name would repeat; None if nothing.
///
/// A flow that is gone from the files and read the same into the same table was probably renamed, or was
/// the table's default flow (behaviours B-21, B-44).
pub fn would_read_again(graph: &Graph, flow: &Flow, history: &History) -> Option<Notice> {
    // Events of AUTO CDC that are applied again change nothing.
    if flow.kind.is_change() || history.flow(&flow.name).is_some_and(|known| known.has_checkpoint || known.is_done) {
        return None;
    }
    let target = graph.dataset(flow.target);
    let sources = source_names(graph, &flow.reading);
    let is_gone = |known: &&FlowHistory| graph.find_flow(&known.name).is_none();
    let same_target = |known: &&FlowHistory| known.dataset == target.name.key();
    let mut gone = history.flows.iter().filter(is_gone).filter(same_target);
    let is_once = flow.kind.is_once();
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
    // After a repair the definition that made the rows is unknown.
    if known.definition.is_empty() || known.definition == flow.reading.query.fingerprint_text {
        return None;
    }
    let again = match flow.kind.is_change() {
        true => "applies its source again, to the rows as they are then",
        false => "appends its rows again, beside those of the first run",
    };
    Some(Notice {
        code: "once-flow-edited",
        message: format!("the definition of once flow `{}` changed since it ran; it is not run again", flow.name),
        help: format!("flowbench run --rerun-once {} {again}", flow.name),
    })
}

/// Says that a streaming flow's query was edited: what it has appended stays as the old query made it.
pub fn edited_since_run(graph: &Graph, flow: &Flow, known: &FlowHistory) -> Option<Notice> {
    let is_known = known.has_checkpoint && !known.definition.is_empty();
    let is_edited = is_known && known.definition != flow.reading.query.fingerprint_text;
    let target = &graph.dataset(flow.target).label;
    (flow.kind.is_incremental() && is_edited).then(|| Notice {
        code: "flow-edited",
        message: format!(
            "the query of flow `{}` changed: it holds for new input, rows already in `{target}` stay",
            flow.name
        ),
        help: format!("to apply it to all rows: flowbench run --full-refresh {target}"),
    })
}

/// Names the flows that are gone from the files and whose rows stay in tables that are still there.
/// `anew` are tables whose rows go anyway.
pub fn removed_flows(graph: &Graph, history: &History, anew: &BTreeSet<DatasetId>) -> Vec<Notice> {
    let is_gone = |known: &&FlowHistory| {
        !known.is_retired && (known.has_checkpoint || known.is_done) && graph.find_flow(&known.name).is_none()
    };
    let label = |key: &str| {
        let id = graph.dataset_ids().find(|id| graph.dataset(*id).name.key() == key && !anew.contains(id))?;
        Some(graph.dataset(id).label.clone())
    };
    let gone = history.flows.iter().filter(is_gone).filter_map(|known| Some((known, label(&known.dataset)?)));
    gone.map(|(known, target)| Notice {
        code: "flow-removed",
        message: format!("flow `{}` is gone from the files; the rows it appended to `{target}` stay", known.name),
        help: format!("to be rid of them: flowbench run --full-refresh {target}"),
    })
    .collect()
}
