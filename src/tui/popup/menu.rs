//! Menus of what to run (`r`) and what to reset (`x`). Beside the choices stands what the one under the cursor
//! would do: the plan, as the engine makes it from the files, the tables and the sources as they are now.

use pipeline::answer::{Answer, Problem};
use pipeline::change::Change;
use pipeline::command::Command;
use pipeline::number;
use pipeline::plan::UpdateRequest;
use pipeline::report::{FlowBacklog, PlanReport, ResetReport};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::confirm::Confirm;
use super::{Popup, list_move};
use crate::app::list::List;
use crate::app::{App, Effect, twin};
use crate::key::{Code, Key};
use crate::screen::popup_frame;
use crate::theme::Role;
use crate::widget::text::{fit, width};

/// The title of the menu of what to run.
const RUN: &str = "Run";

/// A menu.
#[derive(Debug, Clone)]
pub struct Menu {
    pub title: String,
    pub items: Vec<Item>,
    pub list: List,
    /// By item: what it would do, once asked and answered.
    plans: Vec<Plan>,
}

/// One choice.
#[derive(Debug, Clone)]
pub struct Item {
    pub key: char,
    pub title: String,
    /// What it does; Err: why it can't be done now.
    pub choice: Result<Choice, String>,
}

/// What an item does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Starts an update that drops and repeats nothing.
    Update(UpdateRequest),
    /// Starts an update that builds tables anew, once confirmed.
    FullRefresh(UpdateRequest),
    /// Forgets checkpoints, once confirmed.
    Reset(Vec<String>),
    /// Removes an inactive dataset, once confirmed.
    Drop(String),
    /// Opens the other menu.
    Resets,
}

/// What is known of what an item would do.
#[derive(Debug, Clone, PartialEq)]
enum Plan {
    NotAsked,
    Asked,
    /// Lines with their role.
    Known(Vec<(Role, String)>),
}

impl Choice {
    /// The question for what it would do.
    fn question(&self) -> Option<Command> {
        match self {
            Choice::Update(request) | Choice::FullRefresh(request) => {
                Some(Command::PlanUpdate { request: confirmed(request) })
            }
            Choice::Reset(flows) => Some(Command::PlanReset { flows: flows.clone() }),
            Choice::Drop(_) | Choice::Resets => None,
        }
    }

    fn twin(&self) -> Option<String> {
        match self {
            Choice::Update(request) | Choice::FullRefresh(request) => Some(twin::update(request)),
            Choice::Reset(flows) => twin::twin(&Command::ResetFlows { flows: flows.clone() }),
            Choice::Drop(dataset) => twin::twin(&Command::Drop { dataset: dataset.clone() }),
            Choice::Resets => None,
        }
    }
}

/// The request as its plan is asked for: nothing is written, so there is nothing to say yes to.
pub fn confirmed(request: &UpdateRequest) -> UpdateRequest {
    UpdateRequest { is_confirmed: true, ..request.clone() }
}

impl Menu {
    fn new(title: &str, items: Vec<Item>) -> Menu {
        let plans = vec![Plan::NotAsked; items.len()];
        Menu { title: title.to_string(), items, list: List::default(), plans }
    }

    /// The question that the item under the cursor needs, if it was not asked yet.
    fn question(&mut self) -> Option<Command> {
        let at = self.list.cursor;
        let choice = self.items.get(at)?.choice.as_ref().ok()?;
        if self.plans[at] != Plan::NotAsked {
            return None;
        }
        let question = choice.question()?;
        self.plans[at] = Plan::Asked;
        Some(question)
    }

    /// Takes the answers to its questions in.
    pub fn answer(&mut self, answer: &Answer) {
        for (item, plan) in self.items.iter().zip(&mut self.plans) {
            let known = match (answer, &item.choice) {
                (Answer::UpdatePlan { request, plan }, Ok(Choice::Update(own) | Choice::FullRefresh(own)))
                    if *request == confirmed(own) =>
                {
                    plan.as_ref().map_or_else(problem_lines, plan_lines)
                }
                (Answer::Reset { flows, report }, Ok(Choice::Reset(own))) if flows == own => {
                    report.as_ref().map_or_else(problem_lines, reset_lines)
                }
                _ => continue,
            };
            *plan = Plan::Known(known);
        }
    }
}

impl App {
    /// Why nothing can be started while an update runs.
    fn running_words(&self) -> String {
        match self.known.update.as_ref().is_some_and(|update| update.is_ours) {
            true => "an update is running; Ctrl-C stops it".to_string(),
            false => "an update runs in another process".to_string(),
        }
    }

    /// `r`: what to bring up to date.
    pub(crate) fn open_run_menu(&mut self) -> Vec<Effect> {
        let running = self.known.is_running().then(|| self.running_words());
        let invalid = match self.known.counts().0 {
            0 => None,
            n => Some(format!("{} to mend first; ]d goes there", number::counted(n as u64, "error", "errors"))),
        };
        let why_not = running.or(invalid);
        let item = |key: char, title: &str, request: Result<UpdateRequest, String>| Item {
            key,
            title: title.to_string(),
            choice: match (&why_not, request) {
                (Some(why), _) => Err(why.clone()),
                (None, request) => request.map(Choice::Update),
            },
        };
        let request = UpdateRequest::default;
        let graph = self.known.graph();
        let dataset = graph.zip(self.chosen_dataset()).map(|(graph, id)| graph.dataset(id).label.clone());
        let chosen = dataset.ok_or_else(|| "no dataset is chosen".to_string());
        let named = chosen.as_deref().map_or_else(|_| "the chosen dataset".to_string(), |label| format!("`{label}`"));
        let flows: Vec<String> = graph.map_or_else(Vec::new, |graph| {
            self.chosen_flows().into_iter().map(|id| graph.flow(id).name.clone()).collect()
        });
        let flow = match &flows[..] {
            [] => Err("no flow is chosen".to_string()),
            [one] => Ok(one.clone()),
            _ => Err("several flows write it; choose one of them".to_string()),
        };
        let backfills: Vec<String> = graph.map_or_else(Vec::new, |graph| {
            let once = graph.flows.iter().filter(|flow| flow.kind.is_once());
            let open = once.filter(|flow| self.known.flow_status(&flow.name).is_none_or(|status| !status.is_done));
            open.map(|flow| flow.name.clone()).collect()
        });
        let has_once = graph.is_some_and(|graph| graph.flows.iter().any(|flow| flow.kind.is_once()));
        let backfill_title = match backfills.len() {
            0 => "backfills that have not run".to_string(),
            n => format!("backfills only ({n} to run)"),
        };
        let failed = self.known.status.iter().flat_map(|status| &status.flows);
        let has_failed = failed.into_iter().any(|flow| flow.state == pipeline::event::State::Failed);
        let items = vec![
            item('r', "everything that has new input", Ok(request())),
            item(
                's',
                &format!("{named} only"),
                chosen.clone().map(|label| UpdateRequest { refresh: vec![label], ..request() }),
            ),
            item(
                'l',
                &flow.as_deref().map_or_else(|_| "one flow".to_string(), |name| format!("flow `{name}` only")),
                flow.map(|name| UpdateRequest { flows: vec![name], ..request() }),
            ),
            item(
                'o',
                &backfill_title,
                match backfills.is_empty() {
                    true if has_once => Err("every backfill is done".to_string()),
                    true => Err("there is none in this pipeline".to_string()),
                    false => Ok(UpdateRequest { flows: backfills, ..request() }),
                },
            ),
            item(
                'f',
                "what failed, and what reads it",
                match has_failed {
                    true => Ok(UpdateRequest { refresh_failed: true, ..request() }),
                    false => Err("nothing failed in the last update".to_string()),
                },
            ),
            Item {
                key: 'F',
                title: "full refresh, reset…".to_string(),
                choice: match &why_not {
                    Some(why) => Err(why.clone()),
                    None => Ok(Choice::Resets),
                },
            },
        ];
        self.popups.push(Popup::Menu(Box::new(Menu::new(RUN, items))));
        self.menu_moved()
    }

    /// `x`: what to forget or to build anew.
    pub(crate) fn open_reset_menu(&mut self) -> Vec<Effect> {
        let Some(graph) = self.known.graph() else {
            self.say(Role::Muted, "the files are still being read");
            return Vec::new();
        };
        let why_not = match (self.known.is_running(), self.known.counts().0) {
            (true, _) => Some(self.running_words()),
            (false, 0) => None,
            (false, n) => {
                Some(format!("{} to mend first; ]d goes there", number::counted(n as u64, "error", "errors")))
            }
        };
        let item = |key: char, title: String, choice: Result<Choice, String>| Item {
            key,
            title,
            choice: match &why_not {
                Some(why) => Err(why.clone()),
                None => choice,
            },
        };
        let label = self.chosen_dataset().map(|id| graph.dataset(id));
        let named = label.map_or("the chosen dataset".to_string(), |dataset| format!("`{}`", dataset.label));
        let live: Vec<String> = self
            .chosen_flows()
            .into_iter()
            .filter(|id| graph.flow(*id).kind.is_incremental())
            .map(|id| graph.flow(id).name.clone())
            .collect();
        let full = match label {
            None => Err("no dataset is chosen".to_string()),
            Some(dataset) if !dataset.kind().is_stored() => Err(format!("{named} is a view: nothing is stored of it")),
            Some(dataset) if !dataset.is_reset_allowed() => {
                Err(format!("{named} is protected by pipelines.reset.allowed = false"))
            }
            Some(dataset) => Ok(Choice::FullRefresh(UpdateRequest {
                full_refresh: vec![dataset.label.clone()],
                ..UpdateRequest::default()
            })),
        };
        let mut items = Vec::new();
        for (n, name) in live.iter().enumerate().take(9) {
            let key = if live.len() == 1 { 'c' } else { char::from_digit(n as u32 + 1, 10).unwrap_or('c') };
            items.push(item(key, format!("reset the checkpoint of `{name}`"), Ok(Choice::Reset(vec![name.clone()]))));
        }
        if live.is_empty() {
            items.push(item(
                'c',
                "reset a checkpoint".to_string(),
                Err("no flow that reads a stream is chosen".to_string()),
            ));
        }
        let failed = self.known.status.iter().flat_map(|status| &status.flows);
        let has_failed = failed.into_iter().any(|flow| flow.state == pipeline::event::State::Failed);
        items.push(item('F', format!("full refresh of {named}"), full));
        items.push(item(
            'A',
            "full refresh of everything".to_string(),
            Ok(Choice::FullRefresh(UpdateRequest { full_refresh_all: true, ..UpdateRequest::default() })),
        ));
        items.push(item(
            'f',
            "refresh what failed".to_string(),
            match has_failed {
                true => Ok(Choice::Update(UpdateRequest { refresh_failed: true, ..UpdateRequest::default() })),
                false => Err("nothing failed in the last update".to_string()),
            },
        ));
        let inactive = match &self.chosen {
            Some(crate::app::Node::Dataset(label)) => self.known.inactive().find(|dataset| dataset.name == *label),
            _ => None,
        };
        items.push(match inactive {
            Some(dataset) => item('D', format!("drop `{}`", dataset.name), Ok(Choice::Drop(dataset.name.clone()))),
            None => {
                item('D', "drop an inactive dataset".to_string(), Err("what is chosen is in the files".to_string()))
            }
        });
        self.popups.push(Popup::Menu(Box::new(Menu::new("Reset", items))));
        self.menu_moved()
    }

    /// Makes an open menu anew, since what can be done is not what it was; the cursor stays on its item.
    pub(crate) fn renew_menu(&mut self) -> Vec<Effect> {
        let Some(Popup::Menu(menu)) = self.popups.last() else { return Vec::new() };
        let (is_run, cursor) = (menu.title == RUN, menu.list.cursor);
        self.popups.pop();
        let effects = if is_run { self.open_run_menu() } else { self.open_reset_menu() };
        match self.popups.last_mut() {
            Some(Popup::Menu(menu)) if cursor > 0 => {
                menu.list.cursor = cursor.min(menu.items.len() - 1);
                self.menu_moved()
            }
            _ => effects,
        }
    }

    /// Asks what the item under the cursor would do.
    pub(crate) fn menu_moved(&mut self) -> Vec<Effect> {
        match self.popups.last_mut() {
            Some(Popup::Menu(menu)) => menu.question().map(Effect::Ask).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// A key for a menu: whether it stays open, and what to do.
    pub(crate) fn menu_key(&mut self, menu: &mut Menu, key: Key) -> (bool, Vec<Effect>) {
        let way = match key.code {
            Code::Char('k') => Some(crate::app::list::Move::Up),
            Code::Char('j') => Some(crate::app::list::Move::Down),
            _ => list_move(key),
        };
        if let Some(way) = way {
            menu.list.go(way, menu.items.len(), menu.items.len());
            return (true, menu.question().map(Effect::Ask).into_iter().collect());
        }
        let chosen = match key.code {
            Code::Enter => Some(menu.list.cursor),
            Code::Char('q') => return (false, Vec::new()),
            Code::Char(c) => menu.items.iter().position(|item| item.key == c),
            _ => None,
        };
        let Some(at) = chosen else { return (true, Vec::new()) };
        menu.list.cursor = at;
        match menu.items[at].choice.clone() {
            Err(why) => {
                self.say(Role::Warning, why);
                (true, menu.question().map(Effect::Ask).into_iter().collect())
            }
            Ok(Choice::Update(request)) => (false, self.start(request)),
            Ok(Choice::Resets) => (false, self.open_reset_menu()),
            Ok(Choice::FullRefresh(request)) => (false, self.open_confirm(Confirm::full_refresh(self, request))),
            Ok(Choice::Reset(flows)) => (false, self.open_confirm(Confirm::reset(flows))),
            Ok(Choice::Drop(dataset)) => (false, self.open_confirm(Confirm::drop(self, dataset))),
        }
    }
}

/// The plan of an update in lines: what runs, what is new, what changed, what to know.
pub fn plan_lines(plan: &PlanReport) -> Vec<(Role, String)> {
    let mut lines: Vec<(Role, String)> = Vec::new();
    for line in &plan.lines {
        let named = line.split_once("  ").map_or("", |(_, rest)| rest.trim_start());
        let is_of =
            |backlog: &&FlowBacklog| named.strip_prefix(&backlog.flow).is_some_and(|rest| rest.starts_with(':'));
        let backlog = plan.backlog.iter().find(is_of);
        let new = backlog.map_or_else(String::new, |backlog| match (backlog.files, backlog.versions) {
            (0, 0) => "nothing new; ".to_string(),
            (0, versions) => format!("{} new; ", number::counted(versions, "version", "versions")),
            (files, 0) => {
                format!("{}, {} new; ", number::counted(files, "file", "files"), number::bytes(backlog.bytes))
            }
            (files, versions) => format!(
                "{}, {} new; ",
                number::counted(files, "file", "files"),
                number::counted(versions, "version", "versions")
            ),
        });
        let role = if line.starts_with("run") || line.starts_with("full") { Role::Text } else { Role::Muted };
        // What is new first: the end of a line is cut in a narrow terminal.
        let line = match line.split_once(": ") {
            Some((head, does)) => format!("{head}: {new}{does}"),
            None => line.clone(),
        };
        lines.push((role, line));
    }
    for changed in &plan.changes {
        for change in &changed.changes {
            let (role, text) = match change {
                Change::Metadata { what } => (Role::Text, what.clone()),
                Change::NewColumns { columns } => {
                    let names: Vec<String> = columns.iter().map(|(name, kind)| format!("+{name} {kind}")).collect();
                    (Role::Text, names.join(", "))
                }
                Change::NeedsFullRefresh { reason } => (Role::Warning, format!("needs a full refresh: {reason}")),
                Change::Refused { reason, help } => (Role::Error, format!("{reason}: {help}")),
            };
            lines.push((role, format!("changed       {}: {text}", changed.dataset)));
        }
    }
    for notice in &plan.notices {
        lines.push((Role::Warning, format!("note          {}", notice.message)));
        lines.push((Role::Muted, format!("              {}", notice.help)));
    }
    lines
}

fn reset_lines(report: &ResetReport) -> Vec<(Role, String)> {
    super::confirm::reset_facts(report)
        .into_iter()
        .map(|(role, label, text)| (role, format!("{label:<8} {text}")))
        .collect()
}

fn problem_lines(problem: &Problem) -> Vec<(Role, String)> {
    let mut lines = vec![(Role::Error, problem.message.clone())];
    lines.extend(problem.help.iter().map(|help| (Role::Muted, help.clone())));
    lines.extend(problem.unconfirmed.iter().map(|notice| (Role::Warning, notice.message.clone())));
    lines
}

/// Blanks before the second line of a plan's line.
const INDENT: usize = 14;

/// Draws the popup.
pub fn draw(app: &mut App, menu: &Menu, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let items = menu.items.len() as u16;
    let inner = popup_frame(app, area, 100, items + 14, &menu.title, "key or Enter does it  Esc closes", buffer);
    for (at, item) in menu.items.iter().enumerate().take(usize::from(inner.height)) {
        let row = Rect { y: inner.y + at as u16, height: 1, ..inner };
        let (role, why) = match &item.choice {
            Ok(_) => (Role::Text, String::new()),
            Err(why) => {
                let room = usize::from(inner.width).saturating_sub(width(&item.title) + 4);
                (Role::Muted, fit(&format!("  ({why})"), room).into_owned())
            }
        };
        let line = Line::from(vec![
            Span::styled(format!(" {} ", item.key), theme.style(if why.is_empty() { Role::Key } else { Role::Muted })),
            Span::styled(item.title.clone(), theme.style(role)),
            Span::styled(why, theme.style(Role::Muted)),
        ]);
        buffer.set_line(row.x, row.y, &line, row.width);
        crate::screen::cursor_row(app, buffer, row, at == menu.list.cursor, true);
        app.targets.push((row, crate::app::Target::PopupRow(at)));
    }
    let below = inner.y + items + 1;
    if below >= inner.bottom() {
        return;
    }
    let Some(item) = menu.items.get(menu.list.cursor) else { return };
    let title = match &item.choice {
        Ok(choice) => choice.twin().map(|twin| format!("= {twin}")).unwrap_or_default(),
        Err(_) => String::new(),
    };
    buffer.set_stringn(
        inner.x + 1,
        below - 1,
        title,
        usize::from(inner.width).saturating_sub(1),
        theme.style(Role::Muted),
    );
    let lines = match &menu.plans[menu.list.cursor] {
        Plan::NotAsked => return,
        Plan::Asked => vec![(Role::Muted, "looking at files, tables and sources…".to_string())],
        Plan::Known(lines) => {
            // What goes on in the next line stands under the name.
            let room = usize::from(inner.width).saturating_sub(2);
            let folded = lines.iter().flat_map(|(role, text)| {
                let pieces = super::confirm::wrapped(text, room.saturating_sub(INDENT)).into_iter().enumerate();
                pieces.map(|(n, piece)| (*role, if n == 0 { piece } else { format!("{:INDENT$}{piece}", "") }))
            });
            folded.collect()
        }
    };
    let room = usize::from(inner.bottom() - below);
    let shown = if lines.len() > room { room.saturating_sub(1) } else { lines.len() };
    for (n, (role, text)) in lines.iter().take(shown).enumerate() {
        let width = usize::from(inner.width).saturating_sub(2);
        buffer.set_string(inner.x + 1, below + n as u16, fit(text, width), theme.style(*role));
    }
    if shown < lines.len() {
        let more = format!("… {} more lines: flowbench run --plan", lines.len() - shown);
        buffer.set_stringn(inner.x + 1, below + shown as u16, more, usize::from(inner.width), theme.style(Role::Muted));
    }
}
