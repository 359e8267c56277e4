//! What an action keeps, drops and reads again, and the yes that it needs: the more it may lose, the more
//! there is to type.

use std::collections::BTreeSet;

use pipeline::answer::{Answer, Problem};
use pipeline::command::Command;
use pipeline::definition::DatasetKind;
use pipeline::graph::{DatasetId, Graph};
use pipeline::number::{bytes, counted};
use pipeline::plan::{Notice, UpdateRequest};
use pipeline::report::ResetReport;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Popup;
use super::menu::{confirmed, plan_lines};
use crate::app::field::Field;
use crate::app::known::Known;
use crate::app::{App, Effect, twin};
use crate::key::{Code, Key};
use crate::screen::popup_frame;
use crate::theme::Role;
use crate::widget::text::{fit, width};

/// The code of the refusal that only refreshing the readers too can lift.
const STREAMS_READ_IT: &str = "streams-read-the-table";

/// How a yes is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tier {
    /// A file is changed, rows are computed or read again: `y`.
    Yes,
    /// Rows may be lost or doubled: the name is typed.
    Type(String),
}

/// A question before an effect.
#[derive(Debug, Clone)]
pub struct Confirm {
    title: String,
    /// What a yes does.
    command: Command,
    tier: Tier,
    /// Role, label and text.
    facts: Vec<(Role, String, String)>,
    /// What the engine says of it; empty until it has answered.
    plan: Vec<(Role, String)>,
    is_answered: bool,
    /// It can't be done as it is.
    is_refused: bool,
    /// The tables that stream from what is built anew: `w` takes them in.
    can_widen: bool,
    pub typed: Field,
}

impl Confirm {
    fn new(title: &str, command: Command, tier: Tier) -> Confirm {
        Confirm {
            title: title.to_string(),
            command,
            tier,
            facts: Vec::new(),
            plan: Vec::new(),
            is_answered: false,
            is_refused: false,
            can_widen: false,
            typed: Field::default(),
        }
    }

    /// A full refresh of named tables or of all.
    pub fn full_refresh(app: &App, request: UpdateRequest) -> Confirm {
        let tier = match request.full_refresh_all {
            true => Tier::Type(app.known.status.as_ref().map_or("all".to_string(), |status| status.name.clone())),
            false => Tier::Yes,
        };
        let request = confirmed(&request);
        let mut confirm =
            Confirm::new("Confirm: full refresh", Command::StartUpdate { request: request.clone() }, tier);
        if let Some(graph) = app.known.graph() {
            confirm.facts = full_refresh_facts(graph, &app.known, &request);
        }
        confirm
    }

    /// A reset of flows' checkpoints.
    pub fn reset(flows: Vec<String>) -> Confirm {
        Confirm::new("Confirm: reset checkpoint", Command::ResetFlows { flows }, Tier::Yes)
    }

    /// The removal of an inactive dataset.
    pub fn drop(app: &App, dataset: String) -> Confirm {
        let mut confirm =
            Confirm::new("Confirm: drop", Command::Drop { dataset: dataset.clone() }, Tier::Type(dataset.clone()));
        let table = app.known.inactive().find(|known| known.name == dataset).and_then(|known| known.table.as_ref());
        let what =
            table.map_or("its table".to_string(), |table| format!("{} in {}", rows(table.rows), bytes(table.bytes)));
        confirm.fact(Role::Warning, "drops", format!("{what}, and its flows' checkpoints, for good"));
        confirm.fact(Role::Text, "keeps", "everything else".to_string());
        confirm.is_answered = true;
        confirm
    }

    /// An edit of a file; `at` is the byte where it begins.
    pub fn fix(path: &str, before: &str, after: String, at: usize) -> Confirm {
        let number = before[..at].matches('\n').count();
        let lines = |text: &str, count: usize| -> Vec<String> {
            text.lines().skip(number).take(count).map(|line| line.trim_end().to_string()).collect()
        };
        // As many lines differ as the edit adds or takes, and the one that it begins in.
        let (old, new) = (before.lines().count(), after.lines().count());
        let (old_lines, new_lines) = (1 + old.saturating_sub(new), 1 + new.saturating_sub(old));
        let mut facts = vec![(Role::Title, "file".to_string(), format!("{path}:{}", number + 1))];
        facts.extend(lines(before, old_lines).into_iter().map(|line| (Role::Error, "-".to_string(), line)));
        facts.extend(lines(&after, new_lines).into_iter().map(|line| (Role::Good, "+".to_string(), line)));
        let command = Command::Fix { path: path.to_string(), before: before.to_string(), after };
        let mut confirm = Confirm::new("Apply the edit", command, Tier::Yes);
        confirm.facts = facts;
        confirm.is_answered = true;
        confirm
    }

    /// An update that was refused until somebody says yes.
    pub fn unconfirmed(request: UpdateRequest, problem: &Problem) -> Confirm {
        let mut confirm = Confirm::new("Confirm: update", Command::StartUpdate { request }, Tier::Yes);
        confirm.is_answered = true;
        confirm.refuse_or_warn(&problem.unconfirmed);
        confirm
    }

    fn fact(&mut self, role: Role, label: &str, text: String) {
        self.facts.push((role, label.to_string(), text));
    }

    fn refuse_or_warn(&mut self, notices: &[Notice]) {
        for notice in notices {
            self.plan.push((Role::Warning, notice.message.clone()));
            if notice.code == STREAMS_READ_IT {
                self.is_refused = true;
                self.can_widen = true;
            } else {
                self.plan.push((Role::Muted, notice.help.clone()));
            }
        }
    }

    /// The question whose answer says what a yes would do.
    fn question(&self) -> Option<Command> {
        match &self.command {
            Command::StartUpdate { request } => Some(Command::PlanUpdate { request: request.clone() }),
            Command::ResetFlows { flows } => Some(Command::PlanReset { flows: flows.clone() }),
            _ => None,
        }
    }

    /// Takes the answer to its question in.
    pub fn answer(&mut self, answer: &Answer) {
        match (answer, &self.command) {
            (Answer::UpdatePlan { request, plan }, Command::StartUpdate { request: own }) if request == own => {
                self.is_answered = true;
                self.plan.clear();
                match plan {
                    Ok(plan) => self.plan = plan_lines(plan),
                    Err(problem) if !problem.unconfirmed.is_empty() => self.refuse_or_warn(&problem.unconfirmed),
                    Err(problem) => self.refuse(problem),
                }
            }
            (Answer::Reset { flows, report }, Command::ResetFlows { flows: own }) if flows == own => {
                self.is_answered = true;
                match report {
                    Ok(report) => {
                        // A second reading doubles rows: that is said by name.
                        let is_doubled = report.flows.iter().any(|flow| flow.rows_again > 0);
                        if is_doubled && let [flow] = &report.flows[..] {
                            self.tier = Tier::Type(flow.flow.clone());
                        }
                        self.facts = reset_facts(report)
                            .into_iter()
                            .map(|(role, label, text)| (role, label.to_string(), text))
                            .collect();
                    }
                    Err(problem) => self.refuse(problem),
                }
            }
            _ => {}
        }
    }

    fn refuse(&mut self, problem: &Problem) {
        self.is_refused = true;
        self.plan = vec![(Role::Error, problem.message.clone())];
        self.plan.extend(problem.help.iter().map(|help| (Role::Muted, help.clone())));
    }

    /// True once all is said and the yes is given.
    fn is_yes(&self, key: Key) -> bool {
        if !self.is_answered || self.is_refused {
            return false;
        }
        match &self.tier {
            Tier::Yes => key.code == Code::Char('y'),
            Tier::Type(name) => key.code == Code::Enter && self.typed.text() == name,
        }
    }
}

impl App {
    /// Opens a question, and asks the engine what a yes would do.
    pub(crate) fn open_confirm(&mut self, confirm: Confirm) -> Vec<Effect> {
        let question = if confirm.is_answered { None } else { confirm.question() };
        self.popups.push(Popup::Confirm(Box::new(confirm)));
        question.map(Effect::Ask).into_iter().collect()
    }

    /// A key for a question: whether it stays open, and what to do.
    pub(crate) fn confirm_key(&mut self, confirm: &mut Confirm, key: Key) -> (bool, Vec<Effect>) {
        if confirm.is_yes(key) {
            return (
                false,
                match confirm.command.clone() {
                    Command::StartUpdate { request } => self.start(request),
                    command => vec![self.ask(command)],
                },
            );
        }
        if confirm.can_widen
            && key.code == Code::Char('w')
            && let Command::StartUpdate { request } = &confirm.command
        {
            let request = UpdateRequest { with_downstream: true, ..request.clone() };
            return (false, self.open_confirm(Confirm::full_refresh(self, request)));
        }
        match (&confirm.tier, key.code) {
            (Tier::Type(name), Code::Enter) => {
                self.say(Role::Warning, format!("that is not `{name}`; nothing was done"));
                (true, Vec::new())
            }
            (Tier::Type(_), _) => {
                confirm.typed.key(key);
                (true, Vec::new())
            }
            (_, Code::Char('n' | 'q')) => (false, Vec::new()),
            _ => (true, Vec::new()),
        }
    }
}

/// What a full refresh keeps and drops, from the graph and what is stored.
fn full_refresh_facts(graph: &Graph, known: &Known, request: &UpdateRequest) -> Vec<(Role, String, String)> {
    let named: BTreeSet<DatasetId> = match request.full_refresh_all {
        true => graph.dataset_ids().filter(|id| graph.dataset(*id).kind().is_stored()).collect(),
        false => request.full_refresh.iter().filter_map(|name| known.find_dataset(name)).collect(),
    };
    let (protected, mut anew): (BTreeSet<DatasetId>, BTreeSet<DatasetId>) =
        named.into_iter().partition(|id| !graph.dataset(*id).is_reset_allowed());
    if request.with_downstream {
        let mut open: Vec<DatasetId> = anew.iter().copied().collect();
        while let Some(id) = open.pop() {
            open.extend(graph.stream_readers(id).into_iter().filter(|reader| anew.insert(*reader)));
        }
    }
    let labels = |ids: &BTreeSet<DatasetId>| names(ids.iter().map(|id| graph.dataset(*id).label.as_str()));
    let mut facts = Vec::new();
    let mut fact = |role: Role, label: &str, text: String| facts.push((role, label.to_string(), text));
    fact(
        Role::Text,
        "builds",
        format!("{} anew, from the start of {} sources", labels(&anew), if anew.len() == 1 { "its" } else { "their" }),
    );
    let stored: u64 =
        anew.iter().filter_map(|id| known.dataset_status(&graph.dataset(*id).label)?.table.as_ref()?.rows).sum();
    fact(
        Role::Warning,
        "drops",
        format!("{} and every checkpoint of the flows, once the new rows are complete", counted(stored, "row", "rows")),
    );
    fact(Role::Text, "keeps", "the old rows, as long as the new ones are not complete".to_string());
    let once: Vec<&str> = anew
        .iter()
        .flat_map(|id| &graph.dataset(*id).flows)
        .map(|flow| graph.flow(*flow))
        .filter(|flow| flow.kind.is_once())
        .map(|flow| flow.name.as_str())
        .collect();
    if !once.is_empty() {
        fact(Role::Text, "again", format!("backfills run again: {}", names(once.into_iter())));
    }
    let downstream: BTreeSet<DatasetId> = graph.downstream(anew.iter().copied()).difference(&anew).copied().collect();
    let views: BTreeSet<DatasetId> =
        downstream.iter().copied().filter(|id| graph.dataset(*id).kind() == DatasetKind::MaterializedView).collect();
    if !views.is_empty() {
        fact(Role::Text, "affects", format!("recomputed at their next update: {}", labels(&views)));
    }
    let streams: BTreeSet<DatasetId> =
        downstream.difference(&views).copied().filter(|id| graph.dataset(*id).kind().is_stored()).collect();
    if !streams.is_empty() {
        fact(Role::Warning, "affects", format!("stream from it: {}", labels(&streams)));
    }
    if !protected.is_empty() {
        fact(Role::Text, "spares", format!("{} (pipelines.reset.allowed = false)", labels(&protected)));
    }
    facts
}

/// What a checkpoint reset keeps and reads again.
pub fn reset_facts(report: &ResetReport) -> Vec<(Role, &'static str, String)> {
    let mut facts = Vec::new();
    for flow in &report.flows {
        facts.push((Role::Text, "resets", format!("the checkpoint of `{}`", flow.flow)));
        facts.push((Role::Text, "keeps", format!("`{}` as it is: {}", flow.dataset, rows(flow.rows_kept))));
        facts.push(match flow.files_again {
            0 => (Role::Text, "reads", "its source from the start position at the next update".to_string()),
            files => (
                Role::Text,
                "reads",
                format!("{} again at the next update ({})", counted(files, "file", "files"), bytes(flow.bytes_again)),
            ),
        });
        if let Some(start) = &flow.start {
            facts.push((Role::Text, "from", start.clone()));
        }
        facts.push(match flow.rows_again {
            _ if flow.changes_nothing => {
                (Role::Good, "result", "events of AUTO CDC that are applied again change nothing".to_string())
            }
            0 => (Role::Good, "result", "no row is known that would be appended twice".to_string()),
            again => (
                Role::Warning,
                "result",
                format!("{} would be in `{}` twice", counted(again, "row", "rows"), flow.dataset),
            ),
        });
    }
    facts
}

fn rows(rows: Option<u64>) -> String {
    rows.map_or("its rows".to_string(), |rows| counted(rows, "row", "rows"))
}

/// Names in backticks; many are counted.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 6;
    let all: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match all.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", all[..SHOWN].join(", ")),
        None => all.join(", "),
    }
}

/// Draws the popup.
pub fn draw(app: &mut App, confirm: &Confirm, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let room = usize::from(area.width.min(90)).saturating_sub(15).max(10);
    let mut lines: Vec<(Role, String, String)> = Vec::new();
    for (role, label, text) in &confirm.facts {
        for (n, piece) in wrapped(text, room).into_iter().enumerate() {
            lines.push((*role, if n == 0 { label.clone() } else { String::new() }, piece));
        }
    }
    let plan = match confirm.is_answered {
        true => confirm.plan.clone(),
        false => vec![(Role::Muted, "looking at files, tables and sources…".to_string())],
    };
    for (n, (role, text)) in plan.iter().enumerate() {
        for (m, piece) in wrapped(text, room).into_iter().enumerate() {
            lines.push((*role, if n == 0 && m == 0 { "plan".to_string() } else { String::new() }, piece));
        }
    }
    let inner = popup_frame(app, area, 90, lines.len() as u16 + 5, &confirm.title, "Esc cancels", buffer);
    let height = usize::from(inner.height.saturating_sub(4));
    for (n, (role, label, text)) in lines.iter().take(height).enumerate() {
        let line = Line::from(vec![
            Span::styled(format!(" {label:<8} "), theme.style(Role::Muted)),
            Span::styled(text.clone(), theme.style(*role)),
        ]);
        buffer.set_line(inner.x, inner.y + n as u16, &line, inner.width);
    }
    let bottom = inner.bottom();
    if inner.height < 3 {
        return;
    }
    let twin = twin::twin(&confirm.command).map(|twin| format!(" = {twin}")).unwrap_or_default();
    buffer.set_string(inner.x, bottom - 3, fit(&twin, usize::from(inner.width)), theme.style(Role::Muted));
    let ask = match (&confirm.tier, confirm.is_refused, confirm.can_widen) {
        (_, true, true) => vec![
            Span::styled(" w ", theme.style(Role::Key)),
            Span::raw("build the streams that read it anew too   "),
            Span::styled("Esc ", theme.style(Role::Key)),
            Span::raw("leave everything as it is"),
        ],
        (_, true, false) => vec![Span::styled(" Esc ", theme.style(Role::Key)), Span::raw("it can't be done as it is")],
        (Tier::Yes, ..) => vec![
            Span::styled(" y ", theme.style(Role::Key)),
            Span::raw("do it   "),
            Span::styled("n ", theme.style(Role::Key)),
            Span::raw("leave everything as it is"),
        ],
        (Tier::Type(name), ..) => {
            let (before, after) = confirm.typed.around_cursor();
            let is_same = confirm.typed.text() == name;
            vec![
                Span::raw(format!(" type {name} and Enter to confirm: ")),
                Span::styled(before.to_string(), theme.style(if is_same { Role::Good } else { Role::Text })),
                Span::styled("▏", theme.style(Role::Key)),
                Span::raw(after.to_string()),
            ]
        }
    };
    buffer.set_line(inner.x, bottom - 1, &Line::from(ask), inner.width);
}

/// Breaks a text at blanks into lines of at most `room` cells.
pub(super) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() && width(line) + 1 + width(word) > room {
            lines.push(fit(word, room).into_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
