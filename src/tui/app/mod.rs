//! All state of the workbench, and the one function that changes it.
//!
//! `App::update` takes an input and returns what shall be done outside: it reads no file, no clock and no
//! terminal, so that any sequence of inputs can be replayed in a test.
//!
//! - `known.rs`, `update.rs`: what the engine told
//! - `act.rs`: what each action does; `choose.rs`: what is chosen, and moving to something else; `find.rs`: search
//! - `rows.rs`: the pipeline as a list; `picture.rs`: as a graph; `preview.rs`: a dataset's rows, page by page
//! - `scd/`, `cutover.rs`: the views of AUTO CDC tables; `keys.rs`: their keys, page by page; `asked.rs`: what they
//!   want to know of the engine
//! - `field.rs`, `list.rs`: a text being typed; cursor and scroll
//! - `twin.rs`: the command line that does the same

mod act;
pub mod asked;
mod choose;
pub mod cutover;
pub mod field;
pub mod find;
pub mod keys;
pub mod known;
pub mod list;
pub mod picture;
pub mod preview;
pub mod rows;
pub mod scd;
pub mod twin;
pub mod update;

use std::collections::BTreeSet;

use pipeline::answer::{Answer, Stage};
use pipeline::command::Command;
use pipeline::event::Level;
use ratatui::layout::Rect;

use crate::action::{self, Action, Meaning, Screen};
use crate::key::{Code, Key, Mouse, MouseKind};
use crate::popup::Popup;
use crate::theme::{Role, Theme};

use cutover::Cutover;
use known::Known;
use list::{List, Move};
use picture::Picture;
use preview::Preview;
use scd::Scd;

/// What comes in.
#[derive(Debug, Clone)]
pub enum Input {
    Key(Key),
    Mouse(Mouse),
    /// Text pasted into the terminal.
    Paste(String),
    /// The terminal's size in cells.
    Resize(u16, u16),
    Answer(Box<Answer>),
    /// Time went by; only sent while something on the screen depends on it.
    Tick,
}

/// What shall be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Asks the engine.
    Ask(Command),
    /// Opens the user's editor at a place of a file of the workspace; line and column from 1.
    Edit {
        path: String,
        line: usize,
        column: usize,
    },
    /// Draws every cell again.
    Repaint,
    Quit,
}

/// A part of the screen that can have the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pane {
    Explorer,
    Graph,
    /// Issues, preview, schema, flows below the graph.
    Tabs,
    Flows,
    Events,
    Rows,
    /// Keys of an AUTO CDC table.
    Keys,
    /// The versions of a key on a time line.
    Versions,
    /// What is known of a version, or of the table: below the versions.
    Detail,
    /// The table at a time.
    AsOf,
    /// The verdicts of a cutover.
    Verdicts,
    /// The keys of a verdict.
    VerdictKeys,
    /// The events of one of them.
    KeyEvents,
}

/// What the pane below the graph shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tab {
    Issues,
    Preview,
    Schema,
    Flows,
}

impl Tab {
    /// All, in their order.
    pub const ALL: [Tab; 4] = [Tab::Issues, Tab::Preview, Tab::Schema, Tab::Flows];

    /// The name.
    pub fn title(self) -> &'static str {
        match self {
            Tab::Issues => "Issues",
            Tab::Preview => "Preview",
            Tab::Schema => "Schema",
            Tab::Flows => "Flows",
        }
    }
}

/// Something in the graph, by its name, which outlives edits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// Files or an external table.
    Source(String),
    /// A flow that isn't its table's default flow.
    Flow(String),
    Dataset(String),
    /// The datasets of a folded schema.
    Schema(String),
    /// A file of the workspace; in the explorer only.
    File(String),
}

/// What the line at the bottom says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub text: String,
    /// The command line that does the same.
    pub twin: Option<String>,
}

/// Where something was drawn last, so that the mouse and page keys know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Pane(Pane),
    Screen(Screen),
    Tab(Tab),
    /// A row of a pane's list, by its index.
    Row(Pane, usize),
    Node(Node),
    Action(Action),
    /// A row of the popup on top.
    PopupRow(usize),
}

/// How the front end was started.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub theme: Theme,
    /// Seconds east of UTC, for times of day.
    pub utc_offset_s: i32,
}

/// The workbench.
#[derive(Debug, Clone)]
pub struct App {
    pub options: Options,
    pub now_us: i64,
    pub size: (u16, u16),
    pub screen: Screen,
    pub pane: Pane,
    pub is_maximised: bool,
    pub known: Known,
    pub chosen: Option<Node>,
    /// Schemas that are folded; None until the first graph decides.
    pub folded: Option<BTreeSet<String>>,
    pub explorer: List,
    pub picture: Picture,
    pub tab: Tab,
    pub issues: List,
    pub schema: List,
    pub preview: Preview,
    pub scd: Scd,
    pub cutover: Cutover,
    pub flows: List,
    pub events: List,
    /// Events below this level are left out of the log.
    pub level: Level,
    pub is_following: bool,
    pub search: find::Search,
    pub popups: Vec<Popup>,
    /// The first key of a sequence.
    pub before: Option<Key>,
    pub message: Option<Message>,
    /// Errors, warnings and the first finding, as they were told last.
    told: Option<(usize, usize, String)>,
    /// Ctrl-C was pressed with nothing to stop: once more quits.
    is_about_to_quit: bool,
    /// From front to back as drawn last: the last that holds a cell is meant.
    pub targets: Vec<(Rect, Target)>,
    /// Rows that each pane showed when it was drawn last.
    pub heights: Vec<(Pane, usize)>,
}

impl App {
    /// An empty workbench.
    pub fn new(options: Options) -> App {
        App {
            options,
            now_us: 0,
            size: (80, 24),
            screen: Screen::Graph,
            pane: Pane::Graph,
            is_maximised: false,
            known: Known::default(),
            chosen: None,
            folded: None,
            explorer: List::default(),
            picture: Picture::default(),
            tab: Tab::Issues,
            issues: List::default(),
            schema: List::default(),
            preview: Preview::default(),
            scd: Scd::default(),
            cutover: Cutover::default(),
            flows: List::default(),
            events: List::default(),
            level: Level::Info,
            is_following: true,
            search: find::Search::default(),
            popups: Vec::new(),
            before: None,
            message: None,
            told: None,
            is_about_to_quit: false,
            targets: Vec::new(),
            heights: Vec::new(),
        }
    }

    /// Takes an input in, at a time in microseconds since 1970 UTC.
    pub fn update(&mut self, now_us: i64, input: Input) -> Vec<Effect> {
        self.now_us = self.now_us.max(now_us);
        let mut effects = match input {
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => self.mouse(mouse),
            Input::Paste(text) => self.paste(&text),
            Input::Resize(width, height) => {
                self.size = (width, height);
                self.redraw_picture();
                Vec::new()
            }
            Input::Answer(answer) => self.answer(*answer),
            Input::Tick => Vec::new(),
        };
        self.settle();
        effects.extend(self.want_rows());
        effects.extend(self.want_reports());
        effects
    }

    /// True while what is drawn changes with time alone.
    pub fn is_moving(&self) -> bool {
        self.known.is_running() || self.wants_later()
    }

    fn key(&mut self, key: Key) -> Vec<Effect> {
        if !(key.ctrl && key.code == Code::Char('c')) {
            self.is_about_to_quit = false;
        }
        if !self.popups.is_empty() {
            return self.popup_key(key);
        }
        if self.search.is_typing {
            return self.search_key(key);
        }
        let before = self.before.take();
        match action::meaning(before, key, self.screen) {
            Meaning::Action(action) => self.act(action),
            Meaning::Begun => {
                self.before = Some(key);
                Vec::new()
            }
            Meaning::Elsewhere(screens, action) => {
                let names: Vec<&str> = screens.iter().map(|screen| screen.title()).collect();
                let shows = screens.first().map_or(' ', |screen| screen.key());
                self.say(
                    Role::Muted,
                    format!("{key} ({}) works on {}: press {shows}", action::row_of(action).hint, names.join(", ")),
                );
                Vec::new()
            }
            Meaning::Nothing if key.code == Code::Esc => Vec::new(),
            Meaning::Nothing => {
                let keys = before.map_or_else(|| key.to_string(), |before| format!("{before}{key}"));
                self.say(Role::Muted, format!("{keys} does nothing here; ? lists the keys"));
                Vec::new()
            }
        }
    }

    fn mouse(&mut self, mouse: Mouse) -> Vec<Effect> {
        let at = ratatui::layout::Position { x: mouse.column, y: mouse.row };
        let target = self.targets.iter().rev().find(|(area, _)| area.contains(at)).map(|(_, target)| target.clone());
        let pane = self.targets.iter().rev().find_map(|(area, target)| match target {
            Target::Pane(pane) if area.contains(at) => Some(*pane),
            _ => None,
        });
        let way = match mouse.kind {
            MouseKind::WheelUp => Move::Up,
            MouseKind::WheelDown => Move::Down,
            MouseKind::Click => {
                return match target {
                    Some(Target::PopupRow(row)) => self.popup_click(row),
                    // A click beside a popup does what Esc does.
                    _ if !self.popups.is_empty() => {
                        self.popups.pop();
                        Vec::new()
                    }
                    Some(target) => self.click(target, pane),
                    None => Vec::new(),
                };
            }
        };
        if !self.popups.is_empty() {
            let code = if way == Move::Up { Code::Up } else { Code::Down };
            return self.popup_key(Key::plain(code));
        }
        let had = self.pane;
        if let Some(pane) = pane {
            self.pane = pane;
        }
        for _ in 0..3 {
            self.go(way);
        }
        // The wheel looks, it doesn't take the keys.
        self.pane = had;
        Vec::new()
    }

    fn click(&mut self, target: Target, pane: Option<Pane>) -> Vec<Effect> {
        if let Some(pane) = pane {
            self.pane = pane;
        }
        match target {
            Target::Pane(pane) => self.pane = pane,
            Target::Screen(Screen::Scd) => return self.act(Action::Inspect),
            Target::Screen(Screen::Cutover) => return self.act(Action::ShowCutover),
            Target::Screen(screen) => self.show(screen),
            Target::Tab(tab) => {
                self.tab = tab;
                self.pane = Pane::Tabs;
            }
            Target::Row(pane, row) => {
                self.pane = pane;
                let is_again = self.cursor_of(pane) == row;
                self.put_cursor(pane, row);
                // The second click on a row opens it.
                if is_again {
                    return self.act(Action::Enter);
                }
            }
            Target::Node(node) => {
                let is_again = self.chosen.as_ref() == Some(&node);
                self.choose(node);
                if is_again {
                    return self.act(Action::Enter);
                }
            }
            Target::Action(action) => return self.act(action),
            Target::PopupRow(_) => {}
        }
        Vec::new()
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.search.is_typing {
            self.search.field.insert(text);
            self.search_changed();
        } else {
            self.popup_paste(text);
        }
        Vec::new()
    }

    fn answer(&mut self, answer: Answer) -> Vec<Effect> {
        self.known.take(&answer, self.now_us);
        match &answer {
            Answer::Verdict(verdict) => {
                self.first_folds();
                self.redraw_picture();
                if self.chosen.is_none() {
                    self.choose_first();
                }
                // Errors are told as soon as they are known, the all-clear when all was looked at.
                let counts = self.known.counts();
                if !self.known.is_checking() || counts.0 > 0 {
                    let first = self.issue_list().first().map(|found| found.message.clone()).unwrap_or_default();
                    match self.told.replace((counts.0, counts.1, first.clone())) {
                        Some(before) if before != (counts.0, counts.1, first) => {
                            self.say_verdict((before.0, before.1), verdict.took_ms);
                        }
                        None if counts.0 > 0 => self.say_verdict((0, 0), verdict.took_ms),
                        _ => {}
                    }
                }
            }
            Answer::Rows { dataset, from, rows } => self.preview.take(dataset, *from, rows),
            Answer::Status(_) => self.preview.notice_versions(&self.known),
            Answer::Inspected { question, report } => {
                self.take_scd(question, report);
                self.take_cutover(question, report);
            }
            // Questions that were out may have ended in this.
            Answer::Unreadable(_) => self.forget_questions(),
            Answer::Ended { request, outcome } => self.say_end(request, outcome),
            Answer::Reset { flows, report } => match report {
                Ok(report) if report.is_done => {
                    self.say(Role::Good, format!("checkpoint of {} reset; the rows stay", flows.join(", ")));
                    self.twin(twin::twin(&Command::ResetFlows { flows: flows.clone() }).unwrap_or_default());
                }
                Ok(_) => {}
                Err(problem) => self.say_problem(problem),
            },
            Answer::Done { command, outcome } => match outcome {
                Ok(()) => {
                    self.say(Role::Good, "done");
                    self.twin(format!("flowbench {command}"));
                }
                Err(problem) => self.say_problem(problem),
            },
            _ => {}
        }
        self.popup_answer(&answer);
        match &answer {
            Answer::Verdict(verdict) if verdict.stage == Stage::Analysis => self.renew_menu(),
            Answer::Started { .. } | Answer::Ended { .. } => self.renew_menu(),
            _ => Vec::new(),
        }
    }

    /// Puts a sentence into the bottom line.
    pub fn say(&mut self, role: Role, text: impl Into<String>) {
        self.message = Some(Message { role, text: text.into(), twin: None });
    }

    /// Adds the command line that does the same.
    pub fn twin(&mut self, twin: impl Into<String>) {
        if let Some(message) = &mut self.message {
            message.twin = Some(twin.into());
        }
    }

    /// Asks the engine, and shows the command line that would do the same.
    pub fn ask(&mut self, command: Command) -> Effect {
        let twin = twin::twin(&command);
        match (&mut self.message, twin) {
            (Some(message), Some(twin)) => message.twin = Some(twin),
            (None, Some(twin)) => {
                self.message = Some(Message { role: Role::Muted, text: String::new(), twin: Some(twin) });
            }
            (_, None) => {}
        }
        Effect::Ask(command)
    }

    /// The panes of the screen, in the order of Tab.
    pub fn panes(&self) -> &'static [Pane] {
        match self.screen {
            Screen::Graph => &[Pane::Explorer, Pane::Graph, Pane::Tabs],
            Screen::Runs => &[Pane::Flows, Pane::Events],
            Screen::Data => &[Pane::Explorer, Pane::Rows],
            Screen::Log => &[Pane::Events],
            Screen::Scd => &[Pane::Keys, Pane::Versions, Pane::Detail, Pane::AsOf],
            Screen::Cutover => &[Pane::Verdicts, Pane::VerdictKeys, Pane::KeyEvents],
        }
    }

    /// Rows that a pane shows.
    pub fn height_of(&self, pane: Pane) -> usize {
        self.heights.iter().find(|(known, _)| *known == pane).map_or(10, |(_, height)| *height)
    }

    /// Keeps every cursor inside what there is.
    fn settle(&mut self) {
        if !self.panes().contains(&self.pane) {
            self.pane = self.panes()[self.panes().len() - 1];
        }
        let (issues, flows) = (self.issue_list().len(), self.flow_names().len());
        self.issues.cursor = self.issues.cursor.min(issues.saturating_sub(1));
        self.flows.settle(flows, self.height_of(Pane::Flows));
        let explorer = self.explorer_rows();
        if let Some(chosen) = &self.chosen
            && self.explorer.cursor < explorer.len()
            && explorer[self.explorer.cursor].node.as_ref() != Some(chosen)
            && let Some(at) = explorer.iter().position(|row| row.node.as_ref() == Some(chosen))
        {
            self.explorer.cursor = at;
        }
        self.explorer.settle(explorer.len(), self.height_of(Pane::Explorer));
        let events = self.log_events().count();
        if self.is_following {
            self.events.cursor = events.saturating_sub(1);
        }
        self.events.settle(events, self.height_of(Pane::Events));
        self.preview.settle(self.height_of(self.rows_pane()));
        match self.screen {
            // What is searched for is what is listed.
            Screen::Scd => {
                self.scd.search = self.search.field.text().to_string();
                self.settle_scd();
            }
            Screen::Cutover => {
                self.cutover.search = self.search.field.text().to_string();
                self.settle_cutover();
            }
            Screen::Graph | Screen::Runs | Screen::Data | Screen::Log => {}
        }
    }

    /// The pane that shows rows on this screen.
    fn rows_pane(&self) -> Pane {
        if self.screen == Screen::Data { Pane::Rows } else { Pane::Tabs }
    }

    /// Asks for rows that are looked at and not there.
    fn want_rows(&mut self) -> Option<Effect> {
        let is_shown = self.screen == Screen::Data || (self.screen == Screen::Graph && self.tab == Tab::Preview);
        let dataset = match &self.chosen {
            Some(Node::Dataset(label)) if is_shown => label.clone(),
            _ => return None,
        };
        let height = self.height_of(self.rows_pane());
        self.preview.want(&dataset, height).map(Effect::Ask)
    }

    /// Asks for what a view of an AUTO CDC table shows and doesn't have.
    fn want_reports(&mut self) -> Vec<Effect> {
        match self.screen {
            _ if self.known.unreadable.is_some() || self.known.verdict.is_none() => Vec::new(),
            Screen::Scd => self.want_scd(),
            Screen::Cutover => self.want_cutover(),
            Screen::Graph | Screen::Runs | Screen::Data | Screen::Log => Vec::new(),
        }
    }

    /// True if time alone makes the view ask again.
    fn wants_later(&self) -> bool {
        match self.screen {
            _ if self.known.unreadable.is_some() => false,
            Screen::Scd => self.scd.asked().iter().any(|asked| asked.is_resting()),
            Screen::Cutover => self.cutover.asked().iter().any(|asked| asked.is_resting()),
            Screen::Graph | Screen::Runs | Screen::Data | Screen::Log => false,
        }
    }

    fn forget_questions(&mut self) {
        self.scd.forget_questions();
        self.cutover.forget_questions();
    }

    /// What tells that a report of a table may no longer hold.
    fn stamp(&self, table: &str) -> asked::Stamp {
        (self.known.verdict.as_ref().map_or(0, |verdict| verdict.revision), self.known.table_version(table))
    }
}
