//! Which flows of an update start, and which never will, decided from what has become of the others.
//!
//! ```text
//! QUEUED ─▶ all before it COMPLETED, IDLE or EXCLUDED ─▶ starts, if there is room
//!       └─▶ one before it FAILED, SKIPPED or CANCELED ─▶ SKIPPED
//! ```
//! Not here: what precedes what in the files (`order.rs`) and the running of flows (the engine).

use std::collections::{BTreeMap, BTreeSet};

use crate::event::State;
use crate::graph::{FlowId, Graph};
use crate::plan::{FlowAction, UpdatePlan};

/// Why a flow waits for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// The other one writes what it reads.
    Data,
    /// It names the other one in `depends_on`.
    Order,
}

/// What happens next to a flow that is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Start(FlowId),
    /// It is not run in this update. `because` of a flow that did not succeed; None: the update is stopped.
    Skip {
        flow: FlowId,
        because: Option<(FlowId, Edge)>,
    },
}

/// The flows that an update runs, each with those it waits for.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// In an order in which each flow comes after those it waits for.
    waiting: Vec<(FlowId, Vec<(FlowId, Edge)>)>,
}

impl Schedule {
    /// The schedule of a plan. A flow that doesn't run (done, not selected) holds nobody up, and passes its own
    /// order on: in a chain `a`, `b`, `c` whose `b` is done, `c` still comes after `a`.
    pub fn new(graph: &Graph, plan: &UpdatePlan) -> Schedule {
        let runs = |action: &FlowAction| matches!(action, FlowAction::Run | FlowAction::RunOnceAgain);
        let running: BTreeSet<FlowId> =
            plan.flows.iter().filter(|(_, action)| runs(action)).map(|(flow, _)| *flow).collect();
        let waits_for = |flow: FlowId| {
            let data = graph.data_predecessors(flow).into_iter().map(|before| (before, Edge::Data));
            let order = running_order_predecessors(graph, &running, flow).into_iter().map(|b| (b, Edge::Order));
            data.filter(|(before, _)| running.contains(before)).chain(order).collect()
        };
        let flows = plan.flows.iter().map(|(flow, _)| *flow).filter(|flow| running.contains(flow));
        Schedule { waiting: flows.map(|flow| (flow, waits_for(flow))).collect() }
    }

    /// What is to be done now, with room for `room` more flows. `states` has every flow of the schedule; those that
    /// are QUEUED are decided on.
    pub fn next_steps(&self, states: &BTreeMap<FlowId, State>, room: usize, is_stopping: bool) -> Vec<Step> {
        let mut skipped = BTreeSet::new();
        let mut steps = Vec::new();
        let mut started = 0;
        for (flow, before) in self.waiting.iter().filter(|(flow, _)| states.get(flow) == Some(&State::Queued)) {
            let state = |flow: &FlowId| if skipped.contains(flow) { State::Skipped } else { states[flow] };
            let failed =
                before.iter().find(|(flow, _)| state(flow).is_final() && !state(flow).lets_readers_start()).copied();
            if is_stopping || failed.is_some() {
                steps.push(Step::Skip { flow: *flow, because: failed.filter(|_| !is_stopping) });
                skipped.insert(*flow);
            } else if started < room && before.iter().all(|(flow, _)| state(flow).lets_readers_start()) {
                steps.push(Step::Start(*flow));
                started += 1;
            }
        }
        steps
    }
}

/// The flows among `running` that `flow` comes after by `depends_on`, directly or through flows that don't run.
fn running_order_predecessors(graph: &Graph, running: &BTreeSet<FlowId>, flow: FlowId) -> BTreeSet<FlowId> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<FlowId> = graph.order_predecessors(flow).into_iter().collect();
    while let Some(before) = open.pop() {
        if seen.insert(before) && !running.contains(&before) {
            open.extend(graph.order_predecessors(before));
        }
    }
    seen.retain(|before| running.contains(before));
    seen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load::load;
    use crate::plan::UpdateRequest;
    use crate::plan::{FlowHistory, History, plan_update};
    use crate::text::SourceFile;
    use crate::workspace::Workspace;

    /// A pipeline as its author means it, and what becomes of its flows: flow `f<i>` writes table `t<i>`. Edges go
    /// from lower numbers to higher ones.
    #[derive(Debug, Clone)]
    struct Case {
        flows: Vec<CaseFlow>,
        /// The order of the statements, so that it tells nothing.
        written: Vec<usize>,
        room: usize,
        /// Which of the running flows ends next.
        ends: Vec<prop::sample::Index>,
    }

    #[derive(Debug, Clone)]
    struct CaseFlow {
        reads: Vec<usize>,
        depends_on: Vec<usize>,
        is_selected: bool,
        is_done: bool,
        succeeds: bool,
    }

    fn case() -> impl Strategy<Value = Case> {
        let flow = (
            prop::collection::vec(any::<prop::sample::Index>(), 0..3),
            prop::collection::vec(any::<prop::sample::Index>(), 0..3),
            prop::bool::weighted(0.8),
            prop::bool::weighted(0.2),
            prop::bool::weighted(0.8),
        );
        let flows = prop::collection::vec(flow, 1..12).prop_map(|flows| {
            let lower = |i: usize, picked: &[prop::sample::Index]| -> Vec<usize> {
                if i == 0 { Vec::new() } else { picked.iter().map(|picked| picked.index(i)).collect() }
            };
            let flow =
                |(i, (reads, depends_on, is_selected, is_done, succeeds)): (usize, (Vec<_>, Vec<_>, _, _, _))| {
                    let (reads, depends_on) = (lower(i, &reads), lower(i, &depends_on));
                    CaseFlow { reads, depends_on, is_selected, is_done, succeeds }
                };
            flows.into_iter().enumerate().map(flow).collect::<Vec<_>>()
        });
        flows.prop_flat_map(|flows| {
            let written = Just((0..flows.len()).collect::<Vec<_>>()).prop_shuffle();
            let ends = prop::collection::vec(any::<prop::sample::Index>(), flows.len());
            (Just(flows), written, 1usize..4, ends).prop_map(|(flows, written, room, ends)| Case {
                flows,
                written,
                room,
                ends,
            })
        })
    }

    impl Case {
        fn sql(&self) -> String {
            let mut sql = String::new();
            for i in &self.written {
                let flow = &self.flows[*i];
                let list = |numbers: &[usize], prefix: &str| -> Vec<String> {
                    numbers.iter().collect::<BTreeSet<_>>().into_iter().map(|n| format!("{prefix}{n}")).collect()
                };
                let after = match flow.depends_on.is_empty() {
                    true => String::new(),
                    false => format!("DEPENDS ON ({}) ", list(&flow.depends_on, "f").join(", ")),
                };
                let (once, stream) = if flow.is_done { ("ONCE ", "") } else { ("", "STREAM ") };
                let joins: String = list(&flow.reads, "t").iter().map(|table| format!(" CROSS JOIN {table}")).collect();
                sql.push_str(&format!(
                    "CREATE STREAMING TABLE t{i};\nCREATE FLOW f{i} {after}AS INSERT INTO {once}t{i} BY NAME \
                     SELECT 1 AS x FROM {stream}read_files('x', format => 'json') AS files{joins};\n"
                ));
            }
            sql
        }

        fn runs(&self, i: usize) -> bool {
            self.flows[i].is_selected && !self.flows[i].is_done
        }

        /// The oracle: the flows that must have ended before, by walking the lists.
        fn before(&self, i: usize) -> BTreeSet<usize> {
            fn named(case: &Case, i: usize, found: &mut BTreeSet<usize>) {
                for before in &case.flows[i].depends_on {
                    match case.runs(*before) {
                        true => _ = found.insert(*before),
                        false => named(case, *before, found),
                    }
                }
            }
            let mut found = self.flows[i].reads.iter().copied().filter(|before| self.runs(*before)).collect();
            named(self, i, &mut found);
            found
        }

        /// The oracle: how a flow ends.
        fn end(&self, i: usize) -> State {
            match () {
                () if !self.flows[i].is_selected => State::Excluded,
                () if self.flows[i].is_done => State::Idle,
                () if self.before(i).iter().any(|before| self.end(*before) != State::Completed) => State::Skipped,
                () if self.flows[i].succeeds => State::Completed,
                () => State::Failed,
            }
        }
    }

    fn workspace(sql: String) -> Workspace {
        let file = |path: &str, text: String| SourceFile { path: path.to_string(), text };
        Workspace {
            folder_name: "case".to_string(),
            files: vec![file("flowbench.toml", String::new()), file("transformations/all.sql", sql)],
            unreadable: Vec::new(),
            overrides: Vec::new(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_flow_runs_if_and_only_if_those_before_it_succeeded_and_never_before_they_ended(case in case()) {
            let pipeline = load(workspace(case.sql()));
            prop_assert!(!pipeline.has_errors(), "{:?}\n{}", pipeline.diagnostics, case.sql());
            let graph = &pipeline.graph;
            let number = |id: FlowId| graph.flow(id).name[1..].parse::<usize>().unwrap();
            let done = (0..case.flows.len()).filter(|i| case.flows[*i].is_done).map(|i| FlowHistory {
                name: format!("f{i}"),
                dataset: format!("default.t{i}"),
                is_once: true,
                is_done: true,
                has_failed: false,
                definition: String::new(),
                sources: Vec::new(),
                known_files: 0,
                has_checkpoint: true,
                is_retired: false,
            });
            let history = History { flows: done.collect() };
            let selected: Vec<String> =
                (0..case.flows.len()).filter(|i| case.flows[*i].is_selected).map(|i| format!("f{i}")).collect();
            prop_assume!(!selected.is_empty());
            let request = UpdateRequest { flows: selected, is_confirmed: true, ..UpdateRequest::default() };
            let plan = plan_update(graph, &request, &history).unwrap();
            prop_assert_eq!(plan.flows.len(), case.flows.len());

            let mut states: BTreeMap<FlowId, State> = plan.flows.iter().map(|(id, action)| (*id, match action {
                FlowAction::Run | FlowAction::RunOnceAgain => State::Queued,
                FlowAction::Idle => State::Idle,
                FlowAction::Excluded => State::Excluded,
            })).collect();
            let schedule = Schedule::new(graph, &plan);
            let mut running: Vec<FlowId> = Vec::new();
            let mut ends = case.ends.iter();
            loop {
                for step in schedule.next_steps(&states, case.room - running.len(), false) {
                    match step {
                        Step::Start(id) => {
                            for before in case.before(number(id)) {
                                let before = graph.find_flow(&format!("f{before}")).unwrap();
                                prop_assert_eq!(states[&before], State::Completed);
                            }
                            prop_assert_eq!(states.insert(id, State::Running), Some(State::Queued));
                            running.push(id);
                        }
                        Step::Skip { flow, because } => {
                            let (because, edge) = because.unwrap();
                            prop_assert!(matches!(states[&because], State::Failed | State::Skipped));
                            let (i, before) = (number(flow), number(because));
                            prop_assert!(case.before(i).contains(&before));
                            prop_assert!(edge == Edge::Order || case.flows[i].reads.contains(&before));
                            prop_assert_eq!(states.insert(flow, State::Skipped), Some(State::Queued));
                        }
                    }
                }
                prop_assert!(running.len() <= case.room);
                if running.is_empty() {
                    break;
                }
                let id = running.swap_remove(ends.next().unwrap().index(running.len()));
                let end = if case.flows[number(id)].succeeds { State::Completed } else { State::Failed };
                states.insert(id, end);
            }
            for (id, state) in states {
                prop_assert_eq!(state, case.end(number(id)), "f{}", number(id));
            }
        }

        #[test]
        fn a_stopped_update_starts_nothing_more(case in case()) {
            let pipeline = load(workspace(case.sql()));
            let plan = plan_update(&pipeline.graph, &UpdateRequest::default(), &History::default()).unwrap();
            let states = plan.flows.iter().map(|(id, _)| (*id, State::Queued)).collect();
            let steps = Schedule::new(&pipeline.graph, &plan).next_steps(&states, case.room, true);
            prop_assert_eq!(steps.len(), case.flows.len());
            let is_skipped = |step: &Step| matches!(step, Step::Skip { because: None, .. });
            prop_assert!(steps.iter().all(is_skipped));
        }
    }
}
