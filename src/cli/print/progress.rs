//! A running update on stderr: a line per flow that is drawn over on a terminal, plain lines elsewhere.

use std::collections::HashMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pipeline::event::{Details, Event, FlowMetrics, Level, State};
use pipeline::graph::Graph;

use super::event::{metrics_words, one_line};
use super::number;
use super::style::Style;
use crate::cli::terminal::Terminal;

/// Plain lines of one flow's batches are at least this far apart.
const LINE_PAUSE_US: i64 = 1_000_000;

const STATE_WIDTH: usize = 9;
const NAME_WIDTH_MAX: usize = 48;
const REDRAW: Duration = Duration::from_millis(120);

/// Shows an update while it runs; fed with its events.
pub struct Progress {
    style: Style,
    name_width: usize,
    flows: HashMap<String, Flow>,
    /// Flow → the flows it comes after by `depends_on`.
    order: HashMap<String, Vec<String>>,
    /// None: plain lines.
    screen: Option<MultiProgress>,
}

struct Flow {
    state: State,
    /// Why it was skipped.
    why: Option<String>,
    /// What its committed batches add up to.
    committed: FlowMetrics,
    /// What is shown: with the batch in progress.
    metrics: FlowMetrics,
    /// Event time of its first start and of its last line.
    started_us: i64,
    line_us: i64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// For the flows of this graph.
    pub fn new(terminal: &Terminal, graph: &Graph) -> Progress {
        let widths = graph.flows.iter().map(|flow| flow.name.chars().count());
        let name_width = widths.max().unwrap_or(0).min(NAME_WIDTH_MAX);
        let order = graph.flow_ids().map(|id| {
            let names = graph.order_names(id).into_iter().map(str::to_string).collect();
            (graph.flow(id).name.clone(), names)
        });
        let screen = terminal.is_live.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        Progress { style: terminal.err, name_width, flows: HashMap::new(), order: order.collect(), screen }
    }

    /// Takes an event in.
    pub fn event(&mut self, event: &Event) {
        match (&event.details, &event.flow) {
            (Details::FlowProgress { status, metrics }, Some(name)) => {
                let before = self.flows.get(name).map(|flow| flow.state);
                let flow = self.flow(name, event.time_us);
                flow.state = *status;
                flow.metrics = *metrics;
                if *status == State::Skipped {
                    flow.why = event.error.as_ref().map(|error| one_line(&error.message));
                }
                if *status == State::Running && before != Some(State::Running) {
                    flow.started_us = event.time_us;
                }
                let is_news = before != Some(*status) && !matches!(status, State::Queued | State::Excluded);
                self.show(name, event.time_us, is_news);
                if is_news && status.is_final() {
                    self.show_waiting(name, event.time_us);
                }
            }
            (Details::BatchProgress { metrics, .. }, Some(name)) => {
                let flow = self.flow(name, event.time_us);
                flow.committed.add_batch(metrics);
                flow.metrics = FlowMetrics {
                    backlog: flow.metrics.backlog,
                    backlog_bytes: flow.metrics.backlog_bytes,
                    ..flow.committed
                };
                let is_due = event.time_us - flow.line_us >= LINE_PAUSE_US;
                self.show(name, event.time_us, is_due);
            }
            _ if event.level >= Level::Warn || matches!(event.details, Details::SchemaEvolved { .. }) => {
                self.print(&super::event::line(event, self.style));
            }
            _ => {}
        }
    }

    /// Prints a line above the flows.
    pub fn print(&self, line: &str) {
        match &self.screen {
            // The only failure is a closed stderr; nobody is left to tell.
            Some(screen) => _ = screen.println(line),
            None => super::say_line(format_args!("{line}")),
        }
    }

    /// Takes the flows' lines away; the summary says the same, in full.
    pub fn finish(self) {
        // Each line first: one that still ticks would be drawn again behind the last clear.
        for bar in self.flows.values().filter_map(|flow| flow.bar.as_ref()) {
            bar.finish_and_clear();
        }
        if let Some(screen) = &self.screen {
            _ = screen.clear();
        }
    }

    fn flow(&mut self, name: &str, time_us: i64) -> &mut Flow {
        let screen = &self.screen;
        self.flows.entry(name.to_string()).or_insert_with(|| {
            let bar = screen.as_ref().map(|screen| {
                let style = ProgressStyle::with_template("{spinner} {msg}").expect("the template is well-formed");
                let bar = screen.add(ProgressBar::new_spinner().with_style(style));
                bar.enable_steady_tick(REDRAW);
                bar
            });
            Flow {
                state: State::Queued,
                why: None,
                committed: FlowMetrics::default(),
                metrics: FlowMetrics::default(),
                started_us: time_us,
                line_us: i64::MIN / 2,
                bar,
            }
        })
    }

    /// Draws those anew that waited for `ended`.
    fn show_waiting(&mut self, ended: &str, time_us: i64) {
        let is_queued = |name: &String| self.flows.get(name).is_some_and(|flow| flow.state == State::Queued);
        let waiting = self.order.iter().filter(|(name, before)| is_queued(name) && before.iter().any(|b| b == ended));
        let waiting: Vec<String> = waiting.map(|(name, _)| name.clone()).collect();
        for name in waiting {
            self.show(&name, time_us, false);
        }
    }

    /// `waits for a, b`: the flows before it that have not ended.
    fn waits_for(&self, name: &str) -> Option<String> {
        let is_open = |name: &&String| self.flows.get(*name).is_some_and(|flow| !flow.state.is_final());
        let open: Vec<String> = self.order.get(name)?.iter().filter(is_open).map(|name| one_line(name)).collect();
        (!open.is_empty()).then(|| format!("waits for {}", open.join(", ")))
    }

    fn show(&mut self, name: &str, time_us: i64, is_line_due: bool) {
        let (style, width) = (self.style, self.name_width);
        let waits_for = self.waits_for(name);
        let Some(flow) = self.flows.get_mut(name) else { return };
        let mut text = text(name, width, flow, time_us, style);
        let why = match flow.state {
            State::Queued => waits_for.as_ref(),
            State::Skipped => flow.why.as_ref(),
            _ => None,
        };
        if let Some(why) = why {
            text.push_str(&format!("  {}", style.dim(why)));
        }
        match &flow.bar {
            Some(bar) => {
                bar.set_message(text);
                if flow.state.is_final() {
                    // Keeps the line, without a spinner that still turns.
                    bar.disable_steady_tick();
                }
            }
            None if is_line_due => {
                flow.line_us = time_us;
                super::say_line(format_args!("{}  {text}", style.dim(number::time(time_us))));
            }
            None => {}
        }
    }
}

fn text(name: &str, width: usize, flow: &Flow, time_us: i64, style: Style) -> String {
    let mut text = format!("{:<width$}  {}", one_line(name), style.state(flow.state, STATE_WIDTH));
    let metrics = &flow.metrics;
    if metrics.batches + metrics.rows_out + metrics.backlog > 0 {
        let elapsed_ms = u64::try_from((time_us - flow.started_us) / 1_000).unwrap_or(0);
        let batches = match metrics.batches {
            0 => String::new(),
            batches => number::counted(batches, "batch", "batches"),
        };
        let rate =
            if flow.state == State::Running { number::rate(metrics.rows_out, elapsed_ms) } else { String::new() };
        for part in [batches, rate, metrics_words(metrics)].iter().filter(|part| !part.is_empty()) {
            text.push_str("  ");
            text.push_str(part);
        }
    }
    text.trim_end().to_string()
}
