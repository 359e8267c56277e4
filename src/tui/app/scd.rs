//! The SCD view: the keys of an AUTO CDC table, the versions of one of them, and what they are compared with.
//!
//! A sequence has the words that the engine gives it; where it lies among others is the timeline's matter.

use pipeline::auto_cdc::ScdType;
use pipeline::scd::{
    AsOf, DiffRange, KeyFilter, KeyHistory, KeyPart, KeyRequest, KeySummary, ScdCheck, ScdDiff, ScdQuestion, ScdReport,
    Version, key_words,
};

use super::asked::{Asked, Stamp};
use super::keys::Keys;
use super::known::change_of;
use super::list::{List, Move};
use super::{App, Effect, Node, Pane};
use crate::action::Screen;
use crate::popup::Popup;
use crate::theme::Role;
use crate::widget::timeline::{Axis, Interval};

/// Rows of a table at a sequence, and of a comparison, that are asked for: enough to look at.
const ROWS: usize = 200;

/// What the pane below the versions shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    /// The chosen version and the one it is compared with.
    #[default]
    Diff,
    /// The events of the key.
    Events,
    /// Whether the table says what its events say.
    Check,
    /// The table at two sequences.
    Times,
}

impl Detail {
    /// All, in their order.
    pub const ALL: [Detail; 4] = [Detail::Diff, Detail::Events, Detail::Check, Detail::Times];
}

/// A line of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckLine {
    /// By its place in [`ScdCheck::invariants`].
    Invariant(usize),
    /// One of its examples.
    Example(usize, usize),
}

/// The view.
#[derive(Debug, Clone)]
pub struct Scd {
    /// Label of the table.
    pub table: Option<String>,
    /// Where Esc leads to.
    pub came_from: Screen,
    /// A part of the keys that are listed.
    pub search: String,
    pub only: Option<KeyFilter>,
    pub keys: Keys<KeySummary>,
    /// What the listed keys are those of.
    keys_of: Option<(String, Option<KeyFilter>, Stamp)>,
    pub page: Asked,
    /// The key that is looked at; it need not be listed.
    pub key: Option<Vec<KeyPart>>,
    history: Asked,
    pub versions: List,
    /// Number of the version that the chosen one is compared with; None: the one before.
    pub picked: Option<usize>,
    /// The time that is looked at, if it is another than the chosen version's start.
    time: Option<String>,
    /// The other time of a comparison.
    pub pinned: Option<String>,
    pub detail: Detail,
    pub lines: List,
    pub rows: List,
    /// The first column of the rows that is drawn.
    pub column: usize,
    pub as_of: Asked,
    pub check: Asked,
    pub times: Asked,
}

impl Default for Scd {
    fn default() -> Scd {
        Scd {
            table: None,
            came_from: Screen::Graph,
            search: String::new(),
            only: None,
            keys: Keys::default(),
            keys_of: None,
            page: Asked::default(),
            key: None,
            history: Asked::default(),
            versions: List::default(),
            picked: None,
            time: None,
            pinned: None,
            detail: Detail::default(),
            lines: List::default(),
            rows: List::default(),
            column: 0,
            as_of: Asked::default(),
            check: Asked::default(),
            times: Asked::default(),
        }
    }
}

impl Scd {
    /// The history of the key that is looked at, as soon as it is known.
    pub fn history(&self) -> Option<&KeyHistory> {
        match self.history.answer()? {
            ScdReport::History(history) if Some(&history.table) == self.table.as_ref() => {
                (Some(&history.key) == self.key.as_ref()).then_some(history)
            }
            _ => None,
        }
    }

    /// Why there is no history.
    pub fn history_asked(&self) -> &Asked {
        &self.history
    }

    /// The version under the cursor.
    pub fn version(&self) -> Option<&Version> {
        self.history()?.versions.get(self.versions.cursor)
    }

    /// The version that it is compared with.
    pub fn base(&self) -> Option<&Version> {
        let versions = &self.history()?.versions;
        let number = match self.picked {
            Some(picked) => picked,
            None => self.version()?.number.checked_sub(1)?,
        };
        versions.iter().find(|version| version.number == number)
    }

    /// The time that is looked at.
    pub fn time(&self) -> Option<&str> {
        let newest = || self.history()?.events.last().map(|event| event.sequence.as_str());
        self.time.as_deref().or_else(|| self.version().map(|version| version.start.as_str())).or_else(newest)
    }

    /// The rows at the time that is looked at, or at the one before as long as they are fetched.
    pub fn as_of(&self) -> Option<&AsOf> {
        match self.as_of.answer()? {
            ScdReport::AsOf(as_of) => Some(as_of),
            _ => None,
        }
    }

    /// The newest check.
    pub fn check(&self) -> Option<&ScdCheck> {
        match self.check.answer()? {
            ScdReport::Check(check) => Some(check),
            _ => None,
        }
    }

    /// The newest comparison of two times.
    pub fn times(&self) -> Option<&ScdDiff> {
        match self.times.answer()? {
            ScdReport::Diff(diff) => Some(diff),
            _ => None,
        }
    }

    /// The lines of the check: what must hold, and the examples where it doesn't.
    pub fn check_lines(&self) -> Vec<CheckLine> {
        let Some(check) = self.check() else { return Vec::new() };
        let lines = check.invariants.iter().enumerate().flat_map(|(at, invariant)| {
            let examples = (0..invariant.examples.len()).map(move |example| CheckLine::Example(at, example));
            std::iter::once(CheckLine::Invariant(at)).chain(examples)
        });
        lines.collect()
    }

    /// How many lines below the versions the cursor can stand on.
    pub fn line_count(&self) -> usize {
        match self.detail {
            Detail::Diff => self.history().map_or(0, |history| history.columns.len() + 4),
            Detail::Events => self.history().map_or(0, |history| history.events.len()),
            Detail::Check => self.check_lines().len(),
            Detail::Times => self.times().map_or(0, |diff| diff.rows.len()),
        }
    }

    /// The key that a line below the versions is about.
    fn key_of_line(&self) -> Option<Vec<KeyPart>> {
        match self.detail {
            Detail::Check => match self.check_lines().get(self.lines.cursor)? {
                CheckLine::Example(at, example) => Some(self.check()?.invariants[*at].examples[*example].key.clone()),
                CheckLine::Invariant(_) => None,
            },
            Detail::Times => self.times()?.rows.get(self.lines.cursor).map(|row| row.key.clone()),
            Detail::Diff | Detail::Events => None,
        }
    }

    /// Looks at a key.
    pub fn look_at(&mut self, key: Vec<KeyPart>) {
        if self.key.as_ref() == Some(&key) {
            return;
        }
        if let Some(at) = self.keys.position(&key) {
            self.keys.list.cursor = at;
        }
        self.key = Some(key);
        self.picked = None;
        self.time = None;
        // The newest one is put under the cursor as soon as it is known.
        self.versions = List { cursor: usize::MAX / 2, offset: 0 };
        if matches!(self.detail, Detail::Diff | Detail::Events) {
            self.lines = List::default();
        }
    }

    /// The questions of the view.
    pub fn asked(&self) -> [&Asked; 5] {
        [&self.page, &self.history, &self.as_of, &self.check, &self.times]
    }

    /// The questions that are out get no answer.
    pub(super) fn forget_questions(&mut self) {
        [&mut self.page, &mut self.history, &mut self.as_of, &mut self.check, &mut self.times]
            .into_iter()
            .for_each(Asked::forget);
    }

    /// What the pane of keys asks for.
    fn want_keys(&mut self, table: &str, height: usize, stamp: Stamp, now_us: i64) -> Option<Effect> {
        let holds = self
            .keys_of
            .as_ref()
            .is_some_and(|(search, only, of)| *search == self.search && *only == self.only && *of == stamp);
        let Some((after, limit)) = self.keys.want(height, holds) else {
            self.page.rest();
            return None;
        };
        let search = Some(self.search.clone()).filter(|search| !search.is_empty());
        let request = KeyRequest { search, only: self.only, after, limit };
        self.page.want(ScdQuestion::Keys { table: table.to_string(), request }, stamp, now_us)
    }

    /// Takes a page of keys in.
    fn take_keys(&mut self) {
        let (Some(ScdQuestion::Keys { request, .. }), Some(stamp)) = (self.page.question(), self.page.stamp()) else {
            return;
        };
        let request = request.clone();
        let (rows, next) = match self.page.answer() {
            Some(ScdReport::Keys(page)) => (page.keys.clone(), page.next.clone()),
            _ => (Vec::new(), None),
        };
        self.keys.take(request.after.as_deref(), &rows, next.as_ref());
        if request.after.is_some() {
            return;
        }
        let search = request.search.unwrap_or_default();
        let is_other_list = self.keys_of.as_ref().is_some_and(|(of, only, _)| *of != search || *only != request.only);
        self.keys_of = Some((search, request.only, stamp));
        let is_listed = self.key.as_ref().is_some_and(|key| self.keys.position(key).is_some());
        // A search or a filter looks for a key; otherwise the one that is looked at need not be listed.
        if let Some(first) = self.keys.rows.first().filter(|_| self.key.is_none() || (is_other_list && !is_listed)) {
            self.look_at(first.key.clone());
        }
    }
}

/// The sequences where something begins or ends, in order: the stops of the cursor, and what the axis shows.
pub fn stops(history: &KeyHistory) -> Vec<&str> {
    let of_versions = history.versions.iter().flat_map(|version| [Some(&version.start), version.end.as_ref()]);
    let of_events = history.events.iter().map(|event| &event.sequence);
    let mut stops: Vec<&str> = match history.versions.len() {
        0 | 1 => of_events.map(String::as_str).collect(),
        _ => of_versions.flatten().map(String::as_str).collect(),
    };
    stops.dedup();
    stops
}

/// The axis of a history in so many cells.
pub fn axis(history: &KeyHistory, cells: usize) -> Axis {
    Axis::new(stops(history), history.versions.iter().any(|version| version.is_open), cells)
}

/// A version as an interval of the axis.
pub fn interval<'a>(history: &'a KeyHistory, version: &'a Version) -> Interval<'a> {
    let before = version.number.checked_sub(2).and_then(|at| history.versions.get(at));
    let gap_from = before.filter(|_| version.is_after_gap).and_then(|before| before.end.as_deref());
    let end = if version.is_open { None } else { version.end.as_deref() };
    Interval { start: &version.start, end, gap_from }
}

/// A history in a few words: `4 versions, 6 events, late`.
pub fn summary(history: &KeyHistory) -> String {
    let (versions, events) = (history.versions.len() as u64, history.events.len() as u64);
    let mut words = vec![
        pipeline::number::counted(versions, "version", "versions"),
        pipeline::number::counted(events, "event", "events"),
    ];
    words.extend(history.flags.words().into_iter().map(str::to_string));
    words.join(", ")
}

impl App {
    /// `i`: the history of the chosen AUTO CDC table.
    pub(super) fn inspect(&mut self) {
        let label = match (&self.chosen, self.screen) {
            (_, Screen::Cutover) => self.cutover.table.clone(),
            (_, Screen::Scd) => self.scd.table.clone(),
            (Some(Node::Flow(_)), _) => {
                self.chosen_dataset().and_then(|id| self.known.graph().map(|graph| graph.dataset(id).label.clone()))
            }
            (Some(Node::Dataset(label)), _) => Some(label.clone()),
            _ => None,
        };
        let targets = self.known.change_targets();
        match label {
            Some(label) if targets.contains(&label) => self.open_scd(&label, None),
            label => {
                let what = label.map_or("nothing is chosen".to_string(), |label| {
                    format!("`{label}` has no flow of AUTO CDC, so it keeps no history of keys")
                });
                let hint = match targets.first() {
                    Some(first) => format!("; choose one that has, as {first}"),
                    None => String::new(),
                };
                self.say(Role::Muted, format!("{what}{hint}"));
            }
        }
    }

    /// Shows the history of a table, and of one of its keys.
    pub(super) fn open_scd(&mut self, table: &str, key: Option<Vec<KeyPart>>) {
        let came_from = if self.screen == Screen::Scd { self.scd.came_from } else { self.screen };
        if self.scd.table.as_deref() != Some(table) {
            self.scd = Scd { table: Some(table.to_string()), ..Scd::default() };
        }
        self.scd.came_from = came_from;
        self.show(Screen::Scd);
        if let Some(key) = key {
            self.scd.look_at(key);
            self.scd.detail = Detail::Events;
            self.pane = Pane::Versions;
        }
    }

    /// Shows the key list's next filter.
    pub(super) fn next_filter(&mut self) {
        let at = self.scd.only.and_then(|only| KeyFilter::ALL.iter().position(|known| *known == only));
        self.scd.only = KeyFilter::ALL.get(at.map_or(0, |at| at + 1)).copied();
        self.scd.keys.list = List::default();
        let text = match self.scd.only {
            Some(only) => {
                format!("only keys with {}", if only == KeyFilter::Deleted { "a delete at last" } else { only.word() })
            }
            None => "all keys".to_string(),
        };
        self.say(Role::Muted, text);
    }

    /// Moves the time to a stop: the one before, the one after.
    pub(super) fn step_time(&mut self, is_forward: bool) {
        let Some(history) = self.scd.history() else { return };
        let stops = stops(history);
        let at = self.scd.time().and_then(|time| stops.iter().position(|stop| *stop == time));
        let next = match (at, is_forward) {
            (Some(at), true) => (at + 1).min(stops.len().saturating_sub(1)),
            (Some(at), false) => at.saturating_sub(1),
            // A time that was typed: the nearest cell says where it lies.
            (None, _) => {
                let axis = axis(history, 10_000);
                let own = self.scd.time().and_then(|time| axis.cell(time)).unwrap_or(0);
                let cells = stops.iter().map(|stop| axis.cell(stop).unwrap_or(0));
                match is_forward {
                    true => cells.clone().position(|cell| cell > own).unwrap_or(stops.len().saturating_sub(1)),
                    false => cells.clone().filter(|cell| *cell < own).count().saturating_sub(1),
                }
            }
        };
        if let Some(time) = stops.get(next).map(|stop| (*stop).to_string()) {
            self.set_time(time);
        }
    }

    /// Moves the time to the first live event, or the first event of all; or to the newest stop.
    pub(super) fn jump_time(&mut self, is_last: bool) {
        let Some(history) = self.scd.history() else { return };
        let stops = stops(history);
        let time = match is_last {
            true => stops.last().copied(),
            false => history.first_live.as_deref().or(stops.first().copied()),
        };
        if let Some(time) = time.map(str::to_string) {
            self.set_time(time);
        }
    }

    /// Looks at a time, and at the version that holds at it.
    pub(crate) fn set_time(&mut self, time: String) {
        if let Some(history) = self.scd.history() {
            let axis = axis(history, 10_000);
            let at = axis.cell(&time);
            let cell = |label: &String| axis.cell(label);
            let holds = |version: &Version| {
                cell(&version.start) <= at && (version.is_open || version.end.as_ref().and_then(cell) > at)
            };
            if let Some(version) = at.and_then(|_| history.versions.iter().position(holds)) {
                self.scd.versions.cursor = version;
            }
        }
        self.scd.time = Some(time);
    }

    /// True if the table's past can be looked at: it is of SCD type 2.
    pub fn keeps_history(&self) -> bool {
        let table = self.scd.table.as_deref().and_then(|table| self.known.find_dataset(table));
        let change = self.known.graph().zip(table).and_then(|(graph, id)| change_of(graph, id));
        change.is_some_and(|change| change.scd_type() == ScdType::Two)
    }

    /// Says why there is no time to go to.
    fn say_no_history(&mut self) {
        self.say(Role::Muted, "the table is of SCD type 1: it has the latest row of each key and no past");
    }

    /// `@`: a time is typed.
    pub(super) fn ask_for_time(&mut self) {
        if !self.keeps_history() {
            return self.say_no_history();
        }
        let kind = self.scd.history().map_or(String::new(), |history| history.sequence_type.clone());
        let text = self.scd.time().unwrap_or_default().to_string();
        self.popups.push(Popup::time(&kind, &text));
    }

    /// A time was typed: the table at it.
    pub(crate) fn time_typed(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.set_time(text.trim().to_string());
            self.pane = Pane::AsOf;
        }
    }

    /// `d`: the chosen version beside the one before.
    pub(super) fn show_detail(&mut self, detail: Detail) {
        if self.scd.detail != detail {
            self.scd.detail = detail;
            self.scd.lines = List::default();
        }
        self.pane = Pane::Detail;
    }

    /// `D`: what is chosen next is compared with the version under the cursor; again: with the one before it.
    pub(super) fn pick_version(&mut self) {
        let Some(number) = self.scd.version().map(|version| version.number) else { return };
        self.scd.picked = if self.scd.picked == Some(number) { None } else { Some(number) };
        let text = match self.scd.picked {
            Some(number) => format!("v{number} is compared with the version you choose next; D again or Esc ends it"),
            None => "each version is compared with the one before".to_string(),
        };
        self.scd.detail = Detail::Diff;
        self.say(Role::Muted, text);
    }

    /// `=`: the first time of a comparison, then the second.
    pub(super) fn compare_times(&mut self) {
        if !self.keeps_history() {
            return self.say_no_history();
        }
        let Some(time) = self.scd.time().map(str::to_string) else { return };
        match self.scd.pinned.as_ref() {
            Some(pinned) if *pinned != time => self.show_detail(Detail::Times),
            Some(_) => self.say(Role::Muted, "go to another time with , . < > @, then press = again"),
            None => {
                self.say(Role::Muted, format!("from {time}: go to another time with , . < > @, then press = again"));
                self.scd.pinned = Some(time);
            }
        }
    }

    /// `o`: the source of the event under the cursor, or of the one that made the chosen version.
    pub(super) fn open_source(&mut self) -> Vec<Effect> {
        let history = self.scd.history();
        let event = history.and_then(|history| match self.scd.detail {
            Detail::Events if self.pane == Pane::Detail => history.events.get(self.scd.lines.cursor),
            _ => history.events.get(self.scd.version()?.first_event),
        });
        let Some(event) = event else { return Vec::new() };
        let text_file = event.place.source.as_ref().filter(|path| event.place.version.is_none() && is_text(path));
        match (text_file, event.place.record) {
            (Some(path), Some(line)) => {
                vec![Effect::Edit { path: path.clone(), line: line.max(1) as usize, column: 1 }]
            }
            _ => {
                let words = event.place.words();
                self.say(Role::Muted, format!("it came from {words}, which is no text file to open"));
                Vec::new()
            }
        }
    }

    /// Moves in a pane of the view.
    pub(super) fn go_scd(&mut self, way: Move) {
        let height = self.height_of(self.pane);
        match self.pane {
            Pane::Keys => {
                self.scd.keys.go(way, height);
                if let Some(key) = self.scd.keys.chosen().map(|row| row.key.clone()) {
                    self.scd.look_at(key);
                }
            }
            Pane::Versions => {
                let len = self.scd.history().map_or(0, |history| history.versions.len());
                self.scd.versions.go(way, len, height);
                self.scd.time = None;
            }
            Pane::Detail => {
                let len = self.scd.line_count();
                self.scd.lines.go(way, len, height);
            }
            _ => {
                let len = self.scd.as_of().map_or(0, |as_of| as_of.rows.rows.len());
                self.scd.rows.go(way, len, height);
            }
        }
    }

    /// Puts the cursor of a pane on a row.
    pub(super) fn put_cursor_scd(&mut self, pane: Pane, row: usize) {
        match pane {
            Pane::Keys => {
                self.scd.keys.list.cursor = row;
                if let Some(key) = self.scd.keys.chosen().map(|row| row.key.clone()) {
                    self.scd.look_at(key);
                }
            }
            Pane::Versions => {
                self.scd.versions.cursor = row;
                self.scd.time = None;
            }
            Pane::Detail => self.scd.lines.cursor = row,
            _ => self.scd.rows.cursor = row,
        }
    }

    /// To the key before or after; in the rows, to the column.
    pub(super) fn go_sideways_scd(&mut self, is_right: bool) {
        if self.pane == Pane::AsOf {
            let columns = self.scd.as_of().map_or(0, |as_of| as_of.rows.columns.len());
            self.scd.column = match is_right {
                true => (self.scd.column + 1).min(columns.saturating_sub(1)),
                false => self.scd.column.saturating_sub(1),
            };
            return;
        }
        let height = self.height_of(Pane::Keys);
        self.scd.keys.go(if is_right { Move::Down } else { Move::Up }, height);
        if let Some(key) = self.scd.keys.chosen().map(|row| row.key.clone()) {
            self.scd.look_at(key);
        }
    }

    /// Enter in the view.
    pub(super) fn enter_scd(&mut self) {
        match self.pane {
            Pane::Keys => self.pane = Pane::Versions,
            Pane::Versions => self.pane = Pane::Detail,
            _ => {
                if let Some(key) = self.scd.key_of_line().filter(|_| self.pane == Pane::Detail) {
                    self.scd.look_at(key);
                    self.pane = Pane::Versions;
                }
            }
        }
    }

    /// Esc in the view: ends a comparison, a filter, the view.
    pub(super) fn back_scd(&mut self) {
        if self.scd.picked.take().is_some() | self.scd.pinned.take().is_some() {
            if self.scd.detail == Detail::Times {
                self.scd.detail = Detail::Diff;
            }
        } else if self.scd.only.take().is_some() {
            self.scd.keys.list = List::default();
        } else if self.pane != Pane::Keys && self.scd.came_from != Screen::Cutover {
            self.pane = Pane::Keys;
        } else {
            self.show(self.scd.came_from);
        }
    }

    /// Keeps the view's cursors inside what there is.
    pub(super) fn settle_scd(&mut self) {
        let height = |pane| self.height_of(pane);
        let heights = [Pane::Keys, Pane::Versions, Pane::Detail, Pane::AsOf].map(height);
        let scd = &mut self.scd;
        scd.keys.list.settle(scd.keys.rows.len(), heights[0]);
        if let Some(len) = scd.history().map(|history| history.versions.len()) {
            scd.versions.settle(len, heights[1]);
        }
        let lines = scd.line_count();
        scd.lines.settle(lines, heights[2]);
        let (rows, columns) = scd.as_of().map_or((0, 0), |as_of| (as_of.rows.rows.len(), as_of.rows.columns.len()));
        scd.rows.settle(rows, heights[3]);
        scd.column = scd.column.min(columns.saturating_sub(1));
    }

    /// Asks for what the view shows and doesn't have.
    pub(super) fn want_scd(&mut self) -> Vec<Effect> {
        let Some(table) = self.scd.table.clone() else { return Vec::new() };
        let (stamp, now_us) = (self.stamp(&table), self.now_us);
        let height = self.height_of(Pane::Keys);
        let is_drawn = self.heights.iter().any(|(pane, _)| *pane == Pane::AsOf) || self.pane == Pane::AsOf;
        let shows_rows = is_drawn && self.keeps_history();
        let scd = &mut self.scd;
        let mut effects = Vec::new();
        effects.extend(scd.want_keys(&table, height, stamp, now_us));
        if let Some(key) = scd.key.clone() {
            effects.extend(scd.history.want(ScdQuestion::History { table: table.clone(), key }, stamp, now_us));
        }
        match scd.time().map(str::to_string).filter(|_| shows_rows) {
            Some(sequence) => {
                let question = ScdQuestion::AsOf { table: table.clone(), sequence, limit: ROWS };
                effects.extend(scd.as_of.want(question, stamp, now_us));
            }
            None => scd.as_of.rest(),
        }
        match scd.detail {
            Detail::Check => {
                effects.extend(scd.check.want(ScdQuestion::Check { table: table.clone() }, stamp, now_us));
            }
            _ => scd.check.rest(),
        }
        let range = (scd.pinned.clone(), scd.time().map(str::to_string));
        match range {
            (Some(from), Some(to)) if scd.detail == Detail::Times && from != to => {
                let range = DiffRange::Times { from, to };
                effects.extend(scd.times.want(ScdQuestion::Diff { table, range, limit: ROWS }, stamp, now_us));
            }
            _ => scd.times.rest(),
        }
        effects
    }

    /// Takes an answer of the view in.
    pub(super) fn take_scd(
        &mut self,
        question: &ScdQuestion,
        report: &Result<Box<ScdReport>, pipeline::answer::Problem>,
    ) {
        let now_us = self.now_us;
        if self.scd.table.as_deref() != Some(question.table()) {
            return;
        }
        match question {
            ScdQuestion::Keys { .. } => {
                if self.scd.page.take(question, report, now_us) {
                    self.scd.take_keys();
                }
            }
            ScdQuestion::History { .. } => {
                let before = self.scd.history.question().cloned();
                if self.scd.history.take(question, report, now_us)
                    && before.as_ref() != Some(question)
                    && self.screen == Screen::Scd
                {
                    self.say_history();
                }
            }
            ScdQuestion::AsOf { .. } => drop(self.scd.as_of.take(question, report, now_us)),
            ScdQuestion::Diff { .. } => drop(self.scd.times.take(question, report, now_us)),
            ScdQuestion::Check { .. } => drop(self.scd.check.take(question, report, now_us)),
            ScdQuestion::Cutover { .. } => {}
        }
    }

    /// Says which key it is, and the command line that shows the same.
    fn say_history(&mut self) {
        let Some(history) = self.scd.history() else { return };
        let text = format!("{}: {}", key_words(&history.key), summary(history));
        let question = ScdQuestion::History { table: history.table.clone(), key: history.key.clone() };
        self.say(Role::Muted, text);
        self.twin(super::twin::question(&question));
    }
}

/// True for files that an editor shows line by line as they were read.
fn is_text(path: &str) -> bool {
    let end = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    !path.contains("://") && ["json", "jsonl", "ndjson", "csv", "tsv", "txt"].contains(&end.as_str())
}
