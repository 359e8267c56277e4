//! One update as its events tell it: the state of each flow, its numbers, how fast it goes.

use std::collections::{BTreeMap, VecDeque};

use pipeline::answer::Problem;
use pipeline::event::{Details, Event, Failure, FlowMetrics, State};
use pipeline::plan::UpdateRequest;

/// Samples of a flow's rows that its rate is drawn from.
const SAMPLES_KEPT: usize = 60;

/// Rates are taken over this time, so that they don't jump with every batch.
const RATE_WINDOW_US: i64 = 3_000_000;

/// An update that runs or ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// None until the engine has given it one.
    pub number: Option<i64>,
    /// Started from this screen.
    pub is_ours: bool,
    pub state: State,
    /// What was asked for, in words.
    pub request: String,
    pub started_us: i64,
    /// Time of its newest event.
    pub last_us: i64,
    pub ended_us: Option<i64>,
    /// A stop was asked for, from here.
    pub is_stopping: bool,
    pub flows: BTreeMap<String, FlowRun>,
    /// Why it was refused.
    pub problem: Option<Problem>,
}

/// A flow in an update.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRun {
    pub state: State,
    /// What its committed batches add up to.
    committed: FlowMetrics,
    /// With the batch in progress.
    pub metrics: FlowMetrics,
    pub started_us: Option<i64>,
    pub ended_us: Option<i64>,
    /// What its newest event says.
    pub message: String,
    pub error: Option<Failure>,
    /// Times and rows written until then.
    samples: VecDeque<(i64, u64)>,
}

impl FlowRun {
    fn new() -> FlowRun {
        FlowRun {
            state: State::Queued,
            committed: FlowMetrics::default(),
            metrics: FlowMetrics::default(),
            started_us: None,
            ended_us: None,
            message: String::new(),
            error: None,
            samples: VecDeque::new(),
        }
    }

    fn sample(&mut self, time_us: i64) {
        self.samples.push_back((time_us, self.metrics.rows_out));
        if self.samples.len() > SAMPLES_KEPT {
            self.samples.pop_front();
        }
    }

    /// Rows a second, over the last seconds while it runs, over all its time once it has ended.
    pub fn rows_per_second(&self, now_us: i64) -> Option<f64> {
        if let Some(ended) = self.ended_us {
            let ms = (ended - self.started_us?) / 1_000;
            return (ms > 0 && self.metrics.rows_out > 0).then(|| self.metrics.rows_out as f64 * 1_000.0 / ms as f64);
        }
        let first = self.samples.iter().find(|(time, _)| *time >= now_us - RATE_WINDOW_US)?;
        let last = self.samples.back()?;
        let us = last.0 - first.0;
        (us > 0).then(|| last.1.saturating_sub(first.1) as f64 * 1e6 / us as f64)
    }

    /// Rows written between samples, oldest first: a sparkline's values.
    pub fn steps(&self) -> Vec<u64> {
        let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        pairs.map(|(before, after)| after.1.saturating_sub(before.1)).collect()
    }

    /// How long it has run, in milliseconds.
    pub fn duration_ms(&self, now_us: i64) -> Option<u64> {
        let until = self.ended_us.unwrap_or(now_us);
        Some(((until - self.started_us?).max(0) / 1_000) as u64)
    }
}

impl Update {
    /// One that was just asked for.
    pub fn asked(request: &UpdateRequest, now_us: i64) -> Update {
        let mut update = Update::seen(0, now_us);
        update.number = None;
        update.is_ours = true;
        update.request = request.words();
        update
    }

    /// One whose first event was just seen.
    pub fn seen(number: i64, time_us: i64) -> Update {
        Update {
            number: Some(number),
            is_ours: false,
            state: State::Queued,
            request: String::new(),
            started_us: time_us,
            last_us: time_us,
            ended_us: None,
            is_stopping: false,
            flows: BTreeMap::new(),
            problem: None,
        }
    }

    /// It ended.
    pub fn ended(&mut self, state: State, time_us: i64) {
        self.state = state;
        let ended_us = *self.ended_us.get_or_insert(time_us);
        // A flow that was not heard of again ended with its update.
        for flow in self.flows.values_mut() {
            flow.state = match (state, flow.state) {
                (_, known) if known.is_final() => known,
                (State::Failed, State::Running | State::Planning) => State::Failed,
                (State::Failed, _) => State::Skipped,
                // Its last event is still on the way.
                (State::Completed, _) => State::Completed,
                _ => State::Canceled,
            };
            flow.ended_us = flow.ended_us.or(flow.started_us.map(|_| ended_us));
        }
    }

    /// Corrects a flow's state by what state.db says: the process may have died before it told.
    pub fn settle(&mut self, flow: &str, state: State, error: Option<&Failure>) {
        if let Some(flow) = self.flows.get_mut(flow).filter(|flow| !flow.state.is_final()) {
            flow.state = state;
            flow.error = error.cloned().or(flow.error.take());
        }
    }

    /// It was refused before it began.
    pub fn refused(&mut self, problem: &Problem, time_us: i64) {
        self.problem = Some(problem.clone());
        self.ended(State::Failed, time_us);
    }

    /// Takes one of its events in; those of other updates are passed over.
    pub fn event(&mut self, event: &Event) {
        match (self.number, event.update) {
            (Some(own), Some(of)) if own != of => return,
            (None, Some(of)) => self.number = Some(of),
            _ => {}
        }
        self.last_us = self.last_us.max(event.time_us);
        match (&event.details, &event.flow) {
            (Details::CreateUpdate { request }, _) => {
                self.started_us = event.time_us;
                self.request = request.words();
            }
            (Details::UpdateProgress { state }, _) => {
                self.state = *state;
                if state.is_final() {
                    self.ended_us = Some(event.time_us);
                }
            }
            (Details::FlowProgress { status, metrics }, Some(name)) => {
                let flow = self.flows.entry(name.clone()).or_insert_with(FlowRun::new);
                let was = std::mem::replace(&mut flow.state, *status);
                flow.metrics = *metrics;
                if *status == State::Running && was != State::Running {
                    flow.started_us.get_or_insert(event.time_us);
                    flow.ended_us = None;
                    // A retry counts what is committed again from where the checkpoint stands.
                    flow.error = None;
                }
                if status.is_final() {
                    flow.ended_us = Some(event.time_us);
                    if flow.metrics.batches == 0 {
                        flow.metrics.batches = flow.committed.batches;
                    }
                }
                if event.error.is_some() {
                    flow.error.clone_from(&event.error);
                }
                flow.message.clone_from(&event.message);
                flow.sample(event.time_us);
            }
            (Details::BatchProgress { metrics, .. }, Some(name)) => {
                let flow = self.flows.entry(name.clone()).or_insert_with(FlowRun::new);
                flow.committed.add_batch(metrics);
                let (backlog, backlog_bytes) = (flow.metrics.backlog, flow.metrics.backlog_bytes);
                flow.metrics = FlowMetrics { backlog, backlog_bytes, ..flow.committed };
                flow.message.clone_from(&event.message);
                flow.sample(event.time_us);
            }
            _ => {}
        }
    }

    /// How many flows are in each state, in a fixed order; states without flows are left out.
    pub fn counts(&self) -> Vec<(State, usize)> {
        // What needs attention first: the end is cut in a narrow terminal.
        const ORDER: [State; 9] = [
            State::Failed,
            State::Running,
            State::Planning,
            State::Skipped,
            State::Canceled,
            State::Completed,
            State::Queued,
            State::Idle,
            State::Excluded,
        ];
        let count = |state: State| self.flows.values().filter(|flow| flow.state == state).count();
        ORDER.into_iter().map(|state| (state, count(state))).filter(|(_, n)| *n > 0).collect()
    }

    /// Rows written, and what is still unread, over all flows.
    pub fn totals(&self) -> FlowMetrics {
        let mut total = FlowMetrics::default();
        for flow in self.flows.values() {
            total.rows_out += flow.metrics.rows_out;
            total.backlog += flow.metrics.backlog;
            total.backlog_bytes += flow.metrics.backlog_bytes;
        }
        total
    }

    /// How long it has run, in milliseconds.
    pub fn duration_ms(&self, now_us: i64) -> u64 {
        ((self.ended_us.unwrap_or(now_us) - self.started_us).max(0) / 1_000) as u64
    }
}
