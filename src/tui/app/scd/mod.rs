//! The SCD view: the keys of an AUTO CDC table, the versions of one of them, and what they are compared with.
//!
//! - `act.rs`: what keys do in it
//! - `time.rs`: the sequence that is looked at, and the axis that it lies on
//!
//! Here: what is known and chosen, and what is asked. A sequence has the words that the engine gives it; where it lies
//! among others is the timeline's matter.

mod act;
mod time;

use pipeline::answer::Problem;
use pipeline::auto_cdc::ScdType;
use pipeline::scd::{
    AsOf, DiffRange, KeyFilter, KeyHistory, KeyPart, KeyRequest, KeySummary, ScdCheck, ScdDiff, ScdQuestion, ScdReport,
    Version, key_words,
};

use super::asked::{Asked, Stamp};
use super::keys::Keys;
use super::list::List;
use super::{App, Effect, Pane};
use crate::action::Screen;
use crate::theme::Role;

pub use time::{axis, interval};

/// Rows of a table at a sequence, and of a comparison, that are asked for: enough to look at.
const ROWS: usize = 200;

/// The code of a text that is no sequence.
const BAD_VALUE: &str = "bad-value";

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
    /// Lines of the diff beside those of the columns: when a version began and ended, its flow, its place.
    pub fn facts(scd_type: ScdType) -> usize {
        match scd_type {
            ScdType::One => 3,
            ScdType::Two => 4,
        }
    }
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

    /// Why the time that is looked at is none.
    fn time_problem(&self) -> Option<&Problem> {
        match self.as_of.question()? {
            ScdQuestion::AsOf { sequence, .. } if Some(sequence.as_str()) == self.time() => {
                self.as_of.problem().filter(|problem| problem.code == BAD_VALUE)
            }
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
            Detail::Diff => self.history().map_or(0, |history| history.columns.len() + Detail::facts(history.scd_type)),
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
    pub(in crate::app) fn forget_questions(&mut self) {
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
    /// Keeps the view's cursors inside what there is.
    pub(in crate::app) fn settle_scd(&mut self) {
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
    pub(in crate::app) fn want_scd(&mut self) -> Vec<Effect> {
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
    pub(in crate::app) fn take_scd(&mut self, question: &ScdQuestion, report: &Result<Box<ScdReport>, Problem>) {
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
