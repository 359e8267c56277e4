//! What the engine has told so far: the files and what is wrong with them, what is stored, what runs.
//!
//! Only takes answers in and derives from them; cursors, panes and popups are elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use pipeline::answer::{Answer, Problem, Stage, Verdict};
use pipeline::auto_cdc::ChangeFlow;
use pipeline::diagnostic::{Diagnostic, Severity};
use pipeline::event::{Event, State};
use pipeline::graph::{DatasetId, FlowId, FlowKind, Graph, Source};
use pipeline::load::Pipeline;
use pipeline::report::{DatasetStatus, FlowStatus, Status};

use super::update::Update;

/// Events kept for the log; older ones are in state.db.
const EVENTS_KEPT: usize = 5_000;

/// Everything that is known of the workspace.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The definition files as found in the folder, before they are read.
    pub files: Vec<String>,
    /// What the files say now.
    pub verdict: Option<Verdict>,
    /// The newest files without errors, and their revision: what is drawn while the files are broken.
    last_good: Option<(Arc<Pipeline>, u64)>,
    pub unreadable: Option<Problem>,
    pub status: Option<Status>,
    /// The newest update, of whichever process.
    pub update: Option<Update>,
    /// Oldest first, with their numbers in the log.
    pub events: VecDeque<(i64, Event)>,
    /// Of the pipeline that is drawn.
    names: Names,
    /// Places in [`Status::datasets`] and [`Status::flows`] by name.
    stored: (HashMap<String, usize>, HashMap<String, usize>),
    /// Errors and warnings of the files.
    counts: (usize, usize),
    /// By dataset label: the errors and warnings that stand in its definition and its flows'.
    findings: BTreeMap<String, (usize, usize)>,
    /// Datasets that can't be resolved because something they read has errors.
    blocked: BTreeSet<String>,
}

/// Ids by name, so that a frame of a large pipeline stays cheap.
#[derive(Debug, Clone, Default)]
struct Names {
    datasets: HashMap<String, DatasetId>,
    flows: HashMap<String, FlowId>,
}

impl Names {
    fn of(graph: &Graph) -> Names {
        Names {
            datasets: graph.dataset_ids().map(|id| (graph.dataset(id).label.clone(), id)).collect(),
            flows: graph.flow_ids().map(|id| (graph.flow(id).name.clone(), id)).collect(),
        }
    }
}

impl Known {
    /// Takes an answer in.
    pub fn take(&mut self, answer: &Answer, now_us: i64) {
        match answer {
            Answer::Files { paths } => self.files.clone_from(paths),
            Answer::Verdict(verdict) => self.verdict(verdict),
            Answer::Unreadable(problem) => self.unreadable = Some(problem.clone()),
            Answer::Status(status) => self.status(status),
            Answer::Happened { sequence, event } => self.event(*sequence, event),
            Answer::Started { request } => self.update = Some(Update::asked(request, now_us)),
            Answer::Ended { outcome, .. } => {
                if let Some(update) = &mut self.update {
                    match outcome {
                        Ok(report) => update.ended(report.state, now_us),
                        // It never began: what was known of the one before is in the log.
                        Err(problem) => update.refused(problem, now_us),
                    }
                }
            }
            Answer::UpdatePlan { .. }
            | Answer::Reset { .. }
            | Answer::Rows { .. }
            | Answer::Inspected { .. }
            | Answer::Done { .. } => {}
        }
    }

    fn verdict(&mut self, verdict: &Verdict) {
        self.unreadable = None;
        if self.verdict.as_ref().is_some_and(|known| known.revision > verdict.revision) {
            return;
        }
        let has_errors = verdict.diagnostics.iter().any(Diagnostic::is_error);
        // Only the analysis knows that they are good.
        if !has_errors && verdict.stage == Stage::Analysis {
            self.last_good = Some((verdict.pipeline.clone(), verdict.revision));
        }
        self.files = verdict.pipeline.workspace.files.iter().map(|file| file.path.clone()).collect();
        let graph = &verdict.pipeline.graph;
        self.findings = findings(graph, &verdict.diagnostics);
        if let Some((good, _)) = self.last_good.as_ref().filter(|_| has_errors) {
            for label in missing(good, &verdict.pipeline, &verdict.diagnostics) {
                self.findings.entry(label).or_default().0 += 1;
            }
        }
        let broken: Vec<DatasetId> = graph
            .dataset_ids()
            .filter(|id| self.findings.get(&graph.dataset(*id).label).is_some_and(|(errors, _)| *errors > 0))
            .collect();
        self.blocked = graph.downstream(broken).into_iter().map(|id| graph.dataset(id).label.clone()).collect();
        let count = |severity| verdict.diagnostics.iter().filter(|found| found.severity == severity).count();
        self.counts = (count(Severity::Error), count(Severity::Warning));
        self.verdict = Some(verdict.clone());
        self.names = self.graph().map(Names::of).unwrap_or_default();
    }

    fn status(&mut self, status: &Status) {
        // An update whose process died is over, whatever its events say.
        if let Some(update) = &mut self.update
            && let Some(newest) = &status.update
            && !update.is_ours
            && update.number == Some(newest.number)
            && newest.state.is_final()
        {
            // Before the end: what is on record of a flow is better than what the end makes of it.
            for outcome in &newest.flows {
                update.settle(&outcome.flow, outcome.state, outcome.error.as_ref());
            }
            update.ended(newest.state, newest.ended_us.unwrap_or(update.last_us));
        }
        let place = |(at, name): (usize, &String)| (name.clone(), at);
        self.stored = (
            status.datasets.iter().map(|dataset| &dataset.name).enumerate().map(place).collect(),
            status.flows.iter().map(|flow| &flow.name).enumerate().map(place).collect(),
        );
        self.status = Some(status.clone());
    }

    fn event(&mut self, sequence: Option<i64>, event: &Event) {
        if let Some(number) = event.update {
            match &mut self.update {
                Some(update) if update.number == Some(number) || (update.number.is_none() && update.is_ours) => {}
                Some(update) if update.number.is_some_and(|known| known > number) => {}
                other => *other = Some(Update::seen(number, event.time_us)),
            }
        }
        if let Some(update) = self.update.as_mut() {
            update.event(event);
        }
        let Some(sequence) = sequence else { return };
        if self.events.back().is_some_and(|(known, _)| *known >= sequence) {
            return;
        }
        self.events.push_back((sequence, event.clone()));
        if self.events.len() > EVENTS_KEPT {
            self.events.pop_front();
        }
    }

    /// The pipeline to draw, and its revision if it is not that of the files now: the last good one.
    pub fn shown(&self) -> Option<(&Arc<Pipeline>, Option<u64>)> {
        let verdict = self.verdict.as_ref()?;
        match &self.last_good {
            Some((pipeline, revision)) if self.counts.0 > 0 => Some((pipeline, Some(*revision))),
            _ => Some((&verdict.pipeline, None)),
        }
    }

    /// The graph to draw.
    pub fn graph(&self) -> Option<&Graph> {
        self.shown().map(|(pipeline, _)| &pipeline.graph)
    }

    /// What is wrong with the files, sorted.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.verdict.as_ref().map_or(&[], |verdict| verdict.diagnostics.as_slice())
    }

    /// Errors and warnings of the files.
    pub fn counts(&self) -> (usize, usize) {
        // Files that can't be read are an error of the workspace, whatever they said before.
        (self.counts.0 + usize::from(self.unreadable.is_some()), self.counts.1)
    }

    /// The dataset of this label in the graph that is drawn.
    pub fn find_dataset(&self, label: &str) -> Option<DatasetId> {
        self.names.datasets.get(label).copied()
    }

    /// The flow of this name in the graph that is drawn.
    pub fn find_flow(&self, name: &str) -> Option<FlowId> {
        self.names.flows.get(name).copied()
    }

    /// True as long as the files are being analysed.
    pub fn is_checking(&self) -> bool {
        self.unreadable.is_none() && self.verdict.as_ref().is_none_or(|verdict| verdict.stage < Stage::Analysis)
    }

    /// Errors and warnings of one dataset, by its label.
    pub fn findings_of(&self, dataset: &str) -> (usize, usize) {
        self.findings.get(dataset).copied().unwrap_or_default()
    }

    /// True if the dataset reads something that has errors.
    pub fn is_blocked(&self, dataset: &str) -> bool {
        self.blocked.contains(dataset)
    }

    /// Errors and warnings in one file, by its path.
    pub fn findings_in(&self, path: &str) -> (usize, usize) {
        let Some(verdict) = &self.verdict else { return (0, 0) };
        let is_there = |found: &&Diagnostic| {
            let file = found.span.and_then(|span| verdict.pipeline.workspace.files.get(span.file.0));
            file.is_some_and(|file| file.path == path)
        };
        let found: Vec<&Diagnostic> = verdict.diagnostics.iter().filter(is_there).collect();
        let count = |severity| found.iter().filter(|d| d.severity == severity).count();
        (count(Severity::Error), count(Severity::Warning))
    }

    /// What is stored of a dataset, by its label.
    pub fn dataset_status(&self, label: &str) -> Option<&DatasetStatus> {
        self.status.as_ref()?.datasets.get(*self.stored.0.get(label)?)
    }

    /// How a flow stood when the status was taken, by its name.
    pub fn flow_status(&self, name: &str) -> Option<&FlowStatus> {
        self.status.as_ref()?.flows.get(*self.stored.1.get(name)?)
    }

    /// Datasets that are on disk and no longer in the files; those that the last good files have are not meant.
    pub fn inactive(&self) -> impl Iterator<Item = &DatasetStatus> {
        let stored = self.status.iter().flat_map(|status| &status.datasets);
        stored.filter(|dataset| !dataset.is_active && !self.names.datasets.contains_key(&dataset.name))
    }

    /// A flow's state in the update that is shown; a flow that it doesn't know was not started by it.
    pub fn state_in_update(&self, name: &str) -> State {
        match &self.update {
            Some(update) => update.flows.get(name).map_or(State::Idle, |flow| flow.state),
            None => self.flow_state(name),
        }
    }

    /// A flow's state: in the update that runs, else in the last one that ran it.
    pub fn flow_state(&self, name: &str) -> State {
        let live = self.update.as_ref().and_then(|update| update.flows.get(name)).map(|flow| flow.state);
        let stored = self.flow_status(name).map(|flow| flow.state);
        match (live, stored) {
            // Not selected says nothing of how it stands.
            (Some(State::Excluded), Some(stored)) => stored,
            (Some(live), _) => live,
            (None, stored) => stored.unwrap_or(State::Idle),
        }
    }

    /// The state of a dataset: that of the flow that needs most attention.
    pub fn dataset_state(&self, graph: &Graph, id: DatasetId) -> State {
        let rank = |state: &State| match state {
            State::Failed => 8,
            State::Running => 7,
            State::Planning => 6,
            State::Skipped => 5,
            State::Queued => 4,
            State::Canceled => 3,
            State::Completed => 2,
            State::Excluded => 1,
            State::Idle => 0,
        };
        let states = graph.dataset(id).flows.iter().map(|flow| self.flow_state(&graph.flow(*flow).name));
        states.max_by_key(rank).unwrap_or(State::Idle)
    }

    /// The flows that have to end before this one may start and have not, by name.
    pub fn waits_for(&self, graph: &Graph, flow: FlowId) -> Vec<String> {
        let before = graph.predecessors(flow).into_iter().map(|id| graph.flow(id).name.clone());
        before.filter(|name| !self.flow_state(name).lets_readers_start()).collect()
    }

    /// Labels of the datasets that flows of AUTO CDC write, in the order of the files.
    pub fn change_targets(&self) -> Vec<String> {
        let Some(graph) = self.graph() else { return Vec::new() };
        let targets = graph.dataset_ids().filter(|id| change_of(graph, *id).is_some());
        targets.map(|id| graph.dataset(id).label.clone()).collect()
    }

    /// True if both a seed and a live feed write the dataset of this label.
    pub fn has_seed_and_feed(&self, label: &str) -> bool {
        let Some((graph, id)) = self.graph().zip(self.find_dataset(label)) else { return false };
        let mut flows = graph.dataset(id).flows.iter().map(|flow| graph.flow(*flow).kind);
        let is_seed = |kind: FlowKind| kind.is_change() && kind.is_once();
        let seeds = flows.clone().filter(|kind| is_seed(*kind)).count();
        seeds > 0 && flows.any(|kind| kind.is_change() && !kind.is_once())
    }

    /// Version of a dataset's table, by its label.
    pub fn table_version(&self, label: &str) -> Option<i64> {
        self.dataset_status(label)?.table.as_ref().map(|table| table.version)
    }

    /// True while an update runs, here or in another process.
    pub fn is_running(&self) -> bool {
        self.update.as_ref().is_some_and(|update| !update.state.is_final())
    }
}

/// What the first flow of AUTO CDC into a dataset says; the rules see to it that the others fit.
pub fn change_of(graph: &Graph, id: DatasetId) -> Option<&ChangeFlow> {
    graph.dataset(id).flows.iter().find_map(|flow| graph.flow(*flow).change.as_deref())
}

/// Where an input's rows come from, in the user's words; None for datasets of the pipeline.
pub fn source_name(graph: &Graph, source: &Source) -> Option<String> {
    match source {
        Source::Files(spec) => Some(spec.path.clone()),
        Source::External { id, .. } => Some(graph.externals[id.0].name.value.to_string()),
        Source::Dataset { .. } | Source::Unresolved => None,
    }
}

/// The datasets of the last good files that the broken ones don't define any more, or not all of whose flows they
/// do: what is wrong with a statement that can't be read is wrong with what it defined.
fn missing(good: &Pipeline, now: &Pipeline, diagnostics: &[Diagnostic]) -> BTreeSet<String> {
    let has_errors = |span: pipeline::text::Span| {
        let path = good.workspace.files.get(span.file.0).map(|file| file.path.as_str());
        diagnostics.iter().filter(|found| found.is_error()).any(|found| {
            let file = found.span.and_then(|span| now.workspace.files.get(span.file.0));
            file.is_some_and(|file| Some(file.path.as_str()) == path)
        })
    };
    let names = Names::of(&now.graph);
    let mut labels = BTreeSet::new();
    for dataset in &good.graph.datasets {
        let is_gone = !names.datasets.contains_key(&dataset.label) && has_errors(dataset.definition.span);
        let flows = dataset.flows.iter().map(|flow| good.graph.flow(*flow));
        let mut lost = flows.filter(|flow| !names.flows.contains_key(&flow.name) && has_errors(flow.span));
        if is_gone || lost.next().is_some() {
            labels.insert(dataset.label.clone());
        }
    }
    labels
}

/// Counts errors and warnings by the dataset in whose statements they stand.
fn findings(graph: &Graph, diagnostics: &[Diagnostic]) -> BTreeMap<String, (usize, usize)> {
    let mut statements = Vec::new();
    for dataset in &graph.datasets {
        statements.push((dataset.definition.span, dataset.label.as_str()));
        statements.extend(dataset.flows.iter().map(|flow| (graph.flow(*flow).span, dataset.label.as_str())));
    }
    statements.sort_by_key(|(span, _)| (span.file, span.start));
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for found in diagnostics {
        let Some(span) = found.span else { continue };
        let after = statements.partition_point(|(at, _)| (at.file, at.start) <= (span.file, span.start));
        let Some((at, label)) = after.checked_sub(1).map(|i| statements[i]) else { continue };
        if at.file != span.file || span.start >= at.end {
            continue;
        }
        let count = counts.entry(label.to_string()).or_default();
        match found.severity {
            Severity::Error => count.0 += 1,
            Severity::Warning => count.1 += 1,
            Severity::Note => {}
        }
    }
    counts
}
