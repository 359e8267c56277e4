//! Which flows an update runs and which tables it builds anew.

use std::collections::BTreeSet;

use super::again::{edited_since_done, edited_since_run, removed_flows, would_read_again};
use super::history::History;
use super::order::not_waited_for;
use super::request::UpdateRequest;
use crate::diagnostic::nearest;
use crate::graph::{DatasetId, FlowId, Graph};

/// What an update will do, flows in an order that respects what they read and wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatePlan {
    pub flows: Vec<(FlowId, FlowAction)>,
    /// Tables whose next generation is built from the start and promoted at the end.
    pub full_refresh: BTreeSet<DatasetId>,
    pub notices: Vec<Notice>,
}

/// What an update does with a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowAction {
    Run,
    /// A once flow that is done and shall append again.
    RunOnceAgain,
    /// A once flow that is done.
    Idle,
    /// Not selected.
    Excluded,
}

/// Something the person should know before or after the update.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Notice {
    pub code: &'static str,
    pub message: String,
    pub help: String,
}

/// Why an update does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The request contradicts itself or names what doesn't exist.
    Usage { condition: Option<&'static str>, message: String, help: String },
    /// It would drop or repeat rows, and nobody has said yes to that.
    Unconfirmed { notices: Vec<Notice> },
}

/// Plans an update. Errors: a [`Refusal`], with everything that has to be confirmed at once.
pub fn plan_update(graph: &Graph, request: &UpdateRequest, history: &History) -> Result<UpdatePlan, Refusal> {
    check_options(request)?;
    let refresh = datasets(graph, &request.refresh, "--refresh")?;
    let named_full = datasets(graph, &request.full_refresh, "--full-refresh")?;
    if let Some(both) = refresh.intersection(&named_full).next() {
        return Err(usage(
            None,
            format!("`{}` is in --refresh and in --full-refresh", graph.dataset(*both).label),
            "name it in one of them",
        ));
    }
    let rerun = once_flows(graph, &request.rerun_once)?;
    let mut notices = Vec::new();
    let full_refresh = full_refresh(graph, request, named_full, &mut notices)?;
    notices.extend(removed_flows(graph, history, &full_refresh));
    let selected = selected(graph, request, history, &refresh, &full_refresh, &rerun)?;

    let mut flows = Vec::new();
    let mut unconfirmed = Vec::new();
    for id in graph.flows_in_order() {
        let flow = graph.flow(id);
        let known = history.flow(&flow.name);
        let is_anew = full_refresh.contains(&flow.target);
        let is_done = flow.kind.is_once() && known.is_some_and(|known| known.is_done);
        let action = match () {
            () if !selected.contains(&id) => FlowAction::Excluded,
            () if rerun.contains(&id) && is_done && !is_anew => FlowAction::RunOnceAgain,
            () if is_done && !is_anew => FlowAction::Idle,
            () => FlowAction::Run,
        };
        match action {
            FlowAction::RunOnceAgain => notices.push(Notice {
                code: "once-flow-runs-again",
                message: match (&flow.name, &graph.dataset(flow.target).label) {
                    (name, target) if flow.kind.is_change() => {
                        format!("once flow `{name}` runs again: its source is applied to `{target}` as it is now")
                    }
                    (name, target) => format!("once flow `{name}` runs again: `{target}` will hold its rows twice"),
                },
                help: "a full refresh of the table instead reads everything once".to_string(),
            }),
            FlowAction::Idle => notices.extend(known.and_then(|known| edited_since_done(flow, known))),
            FlowAction::Run if !is_anew => {
                notices.extend(known.and_then(|known| edited_since_run(graph, flow, known)));
                unconfirmed.extend(would_read_again(graph, flow, history));
            }
            FlowAction::Run | FlowAction::Excluded => {}
        }
        flows.push((id, action));
    }
    if !unconfirmed.is_empty() && !request.is_confirmed {
        return Err(Refusal::Unconfirmed { notices: unconfirmed });
    }
    notices.extend(unconfirmed);
    notices.extend(not_waited_for(graph, &flows, history));
    Ok(UpdatePlan { flows, full_refresh, notices })
}

fn check_options(request: &UpdateRequest) -> Result<(), Refusal> {
    let clash = match () {
        () if request.full_refresh_all && !request.refresh.is_empty() => Some("--refresh"),
        () if request.full_refresh_all && !request.full_refresh.is_empty() => Some("--full-refresh"),
        () if request.full_refresh_all && !request.flows.is_empty() => Some("--flow"),
        () if request.full_refresh_all && request.refresh_failed => Some("--refresh-failed"),
        () => None,
    };
    match clash {
        Some(other) => Err(usage(
            Some("CONFLICTING_PIPELINE_REFRESH_OPTIONS"),
            format!("--full-refresh-all and {other} exclude each other"),
            "everything is refreshed already; name what you want, or leave the lists out",
        )),
        None => Ok(()),
    }
}

/// The tables to build anew: named ones must allow it, and nothing that streams from them may be left behind.
fn full_refresh(
    graph: &Graph,
    request: &UpdateRequest,
    named: BTreeSet<DatasetId>,
    notices: &mut Vec<Notice>,
) -> Result<BTreeSet<DatasetId>, Refusal> {
    if request.full_refresh_all {
        let stored = graph.dataset_ids().filter(|id| graph.dataset(*id).kind().is_stored());
        let (allowed, protected): (BTreeSet<_>, BTreeSet<_>) =
            stored.partition(|id| graph.dataset(*id).is_reset_allowed());
        notices.extend(protected.iter().map(|id| Notice {
            code: "protected-table",
            message: format!("`{}` is protected and only refreshed", graph.dataset(*id).label),
            help: "its property pipelines.reset.allowed is false".to_string(),
        }));
        return Ok(allowed);
    }
    let mut full = BTreeSet::new();
    for id in named {
        let dataset = graph.dataset(id);
        if !dataset.kind().is_stored() {
            return Err(usage(
                Some("INVALID_REFRESH_SELECTION.FLOW_WRITES_TO_VIEW_NOT_SUPPORTED"),
                format!("`{}` is a {}; nothing of it is stored", dataset.label, dataset.kind().words()),
                "name the tables that read it",
            ));
        }
        check_resettable(graph, id)?;
        full.insert(id);
    }
    let mut behind: BTreeSet<DatasetId> = stream_readers(graph, &full);
    if request.with_downstream {
        for id in &behind {
            check_resettable(graph, *id)?;
        }
        full.append(&mut behind);
    }
    if behind.is_empty() {
        return Ok(full);
    }
    let labels = |ids: &BTreeSet<DatasetId>| -> String {
        ids.iter().map(|id| format!("`{}`", graph.dataset(*id).label)).collect::<Vec<_>>().join(", ")
    };
    Err(Refusal::Unconfirmed {
        notices: vec![Notice {
            code: "streams-read-the-table",
            message: format!("{} would be built anew under streams that read it: {}", labels(&full), labels(&behind)),
            help: "add --with-downstream to build these anew too, or name them in --full-refresh".to_string(),
        }],
    })
}

fn check_resettable(graph: &Graph, id: DatasetId) -> Result<(), Refusal> {
    let dataset = graph.dataset(id);
    match dataset.is_reset_allowed() {
        true => Ok(()),
        false => Err(usage(
            Some("TABLE_NOT_RESETTABLE"),
            format!("`{}` is protected from full refreshes", dataset.label),
            "its property pipelines.reset.allowed is false; remove the property if the rows may be dropped",
        )),
    }
}

/// The tables that stream from `of`, and from those, without `of`.
fn stream_readers(graph: &Graph, of: &BTreeSet<DatasetId>) -> BTreeSet<DatasetId> {
    let mut found = BTreeSet::new();
    let mut open: Vec<DatasetId> = of.iter().copied().collect();
    while let Some(id) = open.pop() {
        for reader in graph.stream_readers(id) {
            if !of.contains(&reader) && found.insert(reader) {
                open.push(reader);
            }
        }
    }
    found
}

fn selected(
    graph: &Graph,
    request: &UpdateRequest,
    history: &History,
    refresh: &BTreeSet<DatasetId>,
    full_refresh: &BTreeSet<DatasetId>,
    rerun: &BTreeSet<FlowId>,
) -> Result<BTreeSet<FlowId>, Refusal> {
    let named = flows(graph, &request.flows, "--flow")?;
    let is_selective =
        !refresh.is_empty() || !request.full_refresh.is_empty() || !named.is_empty() || request.refresh_failed;
    if !is_selective {
        return Ok(graph.flow_ids().collect());
    }
    let mut datasets: BTreeSet<DatasetId> = refresh.union(full_refresh).copied().collect();
    if request.refresh_failed {
        let failed: BTreeSet<DatasetId> = graph
            .flows
            .iter()
            .filter(|flow| history.flow(&flow.name).is_some_and(|known| known.has_failed))
            .map(|flow| flow.target)
            .collect();
        datasets.extend(graph.downstream(failed.iter().copied()));
        datasets.extend(failed);
    }
    let mut selected: BTreeSet<FlowId> = named;
    selected.extend(rerun);
    selected.extend(datasets.into_iter().flat_map(|id| graph.dataset(id).flows.iter().copied()));
    Ok(selected)
}

fn datasets(graph: &Graph, names: &[String], option: &str) -> Result<BTreeSet<DatasetId>, Refusal> {
    names
        .iter()
        .map(|name| {
            graph.find_dataset(name).ok_or_else(|| {
                unknown("dataset", name, option, graph.datasets.iter().map(|dataset| dataset.label.as_str()))
            })
        })
        .collect()
}

fn flows(graph: &Graph, names: &[String], option: &str) -> Result<BTreeSet<FlowId>, Refusal> {
    names
        .iter()
        .map(|name| {
            graph
                .find_flow(name)
                .ok_or_else(|| unknown("flow", name, option, graph.flows.iter().map(|flow| flow.name.as_str())))
        })
        .collect()
}

fn once_flows(graph: &Graph, names: &[String]) -> Result<BTreeSet<FlowId>, Refusal> {
    let ids = flows(graph, names, "--rerun-once")?;
    match ids.iter().map(|id| graph.flow(*id)).find(|flow| !flow.kind.is_once()) {
        Some(flow) => Err(usage(
            None,
            format!("--rerun-once: `{}` is no once flow", flow.name),
            "other flows run at every update anyway",
        )),
        None => Ok(ids),
    }
}

fn unknown<'a>(what: &str, name: &str, option: &str, known: impl Iterator<Item = &'a str>) -> Refusal {
    let help = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`flowbench graph` lists what there is; backticks quote a part that holds a dot".to_string(),
    };
    let condition = match what {
        "flow" => "INVALID_REFRESH_SELECTION.FLOW_NOT_FOUND",
        _ => "INVALID_REFRESH_SELECTION",
    };
    usage(Some(condition), format!("{option}: no {what} is named `{name}`"), help)
}

fn usage(condition: Option<&'static str>, message: impl Into<String>, help: impl Into<String>) -> Refusal {
    Refusal::Usage { condition, message: message.into(), help: help.into() }
}
