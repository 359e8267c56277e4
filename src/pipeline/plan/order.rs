//! What a selection does to the order of flows: who is not selected is not waited for, and that is said.

use super::history::History;
use super::update::{FlowAction, Notice};
use crate::graph::{FlowId, Graph};

/// The flows that run although one that they wait for is not selected (behaviours O-24). A once flow that is done
/// is what they wait for, selected or not.
pub(super) fn not_waited_for(graph: &Graph, flows: &[(FlowId, FlowAction)], history: &History) -> Vec<Notice> {
    let action = |id: FlowId| flows.iter().find(|(flow, _)| *flow == id).map(|(_, action)| *action);
    let is_done = |id: FlowId| {
        let flow = graph.flow(id);
        flow.kind.is_once() && history.flow(&flow.name).is_some_and(|known| known.is_done)
    };
    let mut notices = Vec::new();
    for (id, _) in flows.iter().filter(|(_, action)| matches!(action, FlowAction::Run | FlowAction::RunOnceAgain)) {
        let left_out: Vec<String> = graph
            .order_predecessors(*id)
            .into_iter()
            .filter(|before| action(*before) == Some(FlowAction::Excluded) && !is_done(*before))
            .map(|before| graph.flow(before).name.clone())
            .collect();
        if left_out.is_empty() {
            continue;
        }
        let flow = &graph.flow(*id).name;
        let (names, are) = (left_out.join("`, `"), if left_out.len() == 1 { "is" } else { "are" });
        notices.push(Notice {
            code: "predecessor-not-selected",
            message: format!("flow `{flow}` runs without waiting for `{names}`, which {are} not selected"),
            help: format!("to run in order: flowbench run --flow {},{flow}", left_out.join(",")),
        });
    }
    notices
}
