//! An update's plan in words, one line a flow, for `run --plan` and the screen.

use super::update::{FlowAction, UpdatePlan};
use crate::graph::{FlowId, FlowKind, Graph};

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
            (FlowAction::Run, FlowKind::Cdc) => format!("applies to {target} what is new"),
            (FlowAction::Run, FlowKind::CdcOnce) => format!("applies its source to {target}, one time"),
            (FlowAction::Run, FlowKind::Snapshot) => format!("brings {target} to its snapshots"),
            (FlowAction::Run, FlowKind::SnapshotOnce) => format!("brings {target} to its snapshots, one time"),
            (FlowAction::RunOnceAgain, kind) if kind.is_change() => format!("applies its source to {target} again"),
            (FlowAction::RunOnceAgain, _) => format!("appends to {target} AGAIN"),
            (FlowAction::Idle, _) => "done; not run again".to_string(),
            (FlowAction::Excluded, _) => "not selected".to_string(),
        };
        let word = match action {
            FlowAction::Run | FlowAction::RunOnceAgain => "run",
            FlowAction::Idle => "idle",
            FlowAction::Excluded => "excluded",
        };
        let after = match action {
            FlowAction::Run | FlowAction::RunOnceAgain => after(graph, plan, *id),
            FlowAction::Idle | FlowAction::Excluded => String::new(),
        };
        lines.push(format!("{word:<12}  {}: {does}{after}", flow.name));
    }
    lines
}

/// `, after a, b (done)`: the flows of `depends_on`, with those that nobody has to wait for.
fn after(graph: &Graph, plan: &UpdatePlan, id: FlowId) -> String {
    let named = graph.order_names(id).into_iter().map(|name| {
        let before = graph.find_flow(name);
        match plan.flows.iter().find(|(flow, _)| Some(*flow) == before) {
            Some((_, FlowAction::Idle)) => format!("{name} (done)"),
            Some((_, FlowAction::Excluded)) => format!("{name} (not selected)"),
            _ => name.to_string(),
        }
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { String::new() } else { format!(", after {}", named.join(", ")) }
}
