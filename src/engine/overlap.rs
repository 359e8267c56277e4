//! Source overlap: two flows that append the same files to one table double their rows (behaviours B-6).

use std::collections::HashSet;
use std::path::Path;

use pipeline::graph::{Flow, FlowId, FlowKind, Graph, Source};
use pipeline::plan::{FlowAction, Notice, UpdatePlan};

use crate::error::Result;
use crate::listings::Listings;
use crate::source::ledger::place;
use crate::state::State;

/// Pairs that are named; in a table with hundreds of flows over one folder more would say nothing new.
const NOTICES_MAX: usize = 10;

/// A warning for each pair of flows into one table whose file sources share files. A filter is taken to keep out what
/// the other one reads, unless both have the same.
pub(crate) async fn overlaps(
    graph: &Graph,
    root: &Path,
    plan: &UpdatePlan,
    state: Option<&State>,
    listings: &Listings,
) -> Result<Vec<Notice>> {
    let mut read: Vec<(FlowId, HashSet<String>)> = Vec::new();
    for (id, action) in plan.flows.iter().copied() {
        let flow = graph.flow(id);
        // Events of AUTO CDC that are applied twice change nothing.
        if flow.kind == FlowKind::Complete || flow.kind.is_change() || action == FlowAction::Excluded {
            continue;
        }
        let mut paths = HashSet::new();
        if action == FlowAction::Idle {
            // Its source is not listed again; the ledger has what it read.
            if let Some(state) = state {
                paths = read_by(graph, root, flow, state)?;
            }
            read.push((id, paths));
            continue;
        }
        for input in graph.all_inputs(&flow.reading) {
            if let Source::Files(spec) = &input.source {
                paths.extend(listings.list(spec).await?.files.iter().map(|file| file.path.clone()));
            }
        }
        read.push((id, paths));
    }
    let mut notices = Vec::new();
    for (index, (a, paths)) in read.iter().enumerate() {
        for (b, others) in &read[index + 1..] {
            let actions = [action_of(plan, *a), action_of(plan, *b)];
            let (a, b) = (graph.flow(*a), graph.flow(*b));
            if !is_worth_saying(actions, [a, b]) {
                continue;
            }
            if a.target != b.target || filter(a) != filter(b) {
                continue;
            }
            let shared = paths.intersection(others).count();
            if shared > 0 && notices.len() < NOTICES_MAX {
                let target = &graph.dataset(a.target).label;
                notices.push(Notice {
                    code: "source-overlap",
                    message: format!(
                        "source overlap: {} read by flow `{}` and by flow `{}`; `{target}` will hold their rows twice",
                        pipeline::number::counted(shared as u64, "file is", "files are"),
                        a.name,
                        b.name
                    ),
                    help: "bound one of them (its path, modifiedAfter, a WHERE), or make rows distinct downstream"
                        .to_string(),
                });
            }
        }
    }
    Ok(notices)
}

/// Of a done flow only what a once flow is about to repeat: a live flow beside it was warned of when it was new.
fn is_worth_saying(actions: [FlowAction; 2], flows: [&Flow; 2]) -> bool {
    let is_idle = |at: usize| actions[at] == FlowAction::Idle;
    match (is_idle(0), is_idle(1)) {
        (false, false) => true,
        (true, true) => false,
        (true, false) => flows[1].kind == FlowKind::Once,
        (false, true) => flows[0].kind == FlowKind::Once,
    }
}

fn action_of(plan: &UpdatePlan, id: FlowId) -> FlowAction {
    plan.flows.iter().find(|(other, _)| *other == id).map_or(FlowAction::Excluded, |(_, action)| *action)
}

/// The files that a flow has read, by the ledger.
pub(crate) fn read_by(graph: &Graph, root: &Path, flow: &Flow, state: &State) -> Result<HashSet<String>> {
    let mut paths = HashSet::new();
    if let Some(record) = state.flow(&graph.dataset(flow.target).name.key(), &flow.name)? {
        for source in state.sources(&record.flow_id, record.generation)? {
            paths.extend(state.known_paths(source.source_id)?.iter().map(|path| place(root, path)));
        }
    }
    Ok(paths)
}

/// What stands behind the first WHERE of a flow's query.
pub(crate) fn filter(flow: &Flow) -> Option<&str> {
    let query = &flow.reading.query.fingerprint_text;
    query.match_indices(' ').find_map(|(at, _)| {
        let rest = &query[at + 1..];
        rest.get(..6).filter(|word| word.eq_ignore_ascii_case("where ")).map(|_| &rest[6..])
    })
}
