//! An update's plan in words, one line a flow, for `run --plan` and the screen.

use super::update::{FlowAction, UpdatePlan};
use crate::graph::{FlowKind, Graph};

/// Returns the plan as lines: what runs, what doesn't and why.
pub fn explain(graph: &Graph, plan: &UpdatePlan) -> Vec<String> {
    let mut lines: Vec<String> = plan
        .full_refresh
        .iter()
        .map(|id| {
            format!(
                "full refresh  {}: all rows are built anew, the old ones stay until that succeeds",
                graph.dataset(*id).label
            )
        })
        .collect();
    for (id, action) in &plan.flows {
        let flow = graph.flow(*id);
        let target = &graph.dataset(flow.target).label;
        let does = match (action, flow.kind) {
            (FlowAction::Run, FlowKind::Append) => format!("appends to {target} what is new"),
            (FlowAction::Run, FlowKind::Once) => format!("appends to {target}, one time"),
            (FlowAction::Run, FlowKind::Complete) => format!("recomputes {target} if an input changed"),
            (FlowAction::RunOnceAgain, _) => format!("appends to {target} AGAIN"),
            (FlowAction::Idle, _) => "done; not run again".to_string(),
            (FlowAction::Excluded, _) => "not selected".to_string(),
        };
        let word = match action {
            FlowAction::Run | FlowAction::RunOnceAgain => "run",
            FlowAction::Idle => "idle",
            FlowAction::Excluded => "excluded",
        };
        lines.push(format!("{word:<12}  {}: {does}", flow.name));
    }
    lines
}
