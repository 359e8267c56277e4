//! The cutover view: for every key, whether the live feed takes over where the seed ends.

use pipeline::answer::Problem;
use pipeline::scd::{
    CutoverCheck, CutoverRequest, Evidence, KeyCutover, KeyHistory, KeyPart, ScdQuestion, ScdReport, Verdict,
};

use super::asked::{Asked, Stamp};
use super::keys::Keys;
use super::list::{List, Move};
use super::{App, Effect, Node, Pane};
use crate::action::Screen;
use crate::theme::Role;

/// The view.
#[derive(Debug, Clone)]
pub struct Cutover {
    /// Label of the target.
    pub table: Option<String>,
    /// Where Esc leads to.
    pub came_from: Screen,
    /// A part of the keys that are listed.
    pub search: String,
    /// All keys, then [`Verdict::ALL`].
    pub verdicts: List,
    pub keys: Keys<KeyCutover>,
    /// What the listed keys are those of.
    keys_of: Option<(String, Option<Verdict>, Stamp)>,
    pub page: Asked,
    history: Asked,
    pub events: List,
}

impl Default for Cutover {
    fn default() -> Cutover {
        Cutover {
            table: None,
            came_from: Screen::Graph,
            search: String::new(),
            verdicts: List::default(),
            keys: Keys::default(),
            keys_of: None,
            page: Asked::default(),
            history: Asked::default(),
            events: List::default(),
        }
    }
}

impl Cutover {
    /// The newest check; its keys are those of one page only.
    pub fn check(&self) -> Option<&CutoverCheck> {
        match self.page.answer()? {
            ScdReport::Cutover(check) => Some(check),
            _ => None,
        }
    }

    /// The verdict under the cursor; None: all keys.
    pub fn verdict(&self) -> Option<Verdict> {
        Verdict::ALL.get(self.verdicts.cursor.checked_sub(1)?).copied()
    }

    /// The key under the cursor.
    pub fn key(&self) -> Option<&[KeyPart]> {
        self.keys.chosen().map(|row| row.key.as_slice())
    }

    /// The history of the key under the cursor, as soon as it is known.
    pub fn history(&self) -> Option<&KeyHistory> {
        match self.history.answer()? {
            ScdReport::History(history) if Some(&history.table) == self.table.as_ref() => {
                (Some(history.key.as_slice()) == self.key()).then_some(history)
            }
            _ => None,
        }
    }

    /// Why there is no history.
    pub fn history_asked(&self) -> &Asked {
        &self.history
    }

    /// The questions of the view.
    pub fn asked(&self) -> [&Asked; 2] {
        [&self.page, &self.history]
    }

    /// The questions that are out get no answer.
    pub(super) fn forget_questions(&mut self) {
        [&mut self.page, &mut self.history].into_iter().for_each(Asked::forget);
    }

    /// Keys of another verdict are not those that are listed: Enter must not open one of these.
    fn other_verdict(&mut self, before: Option<Verdict>) {
        if self.verdict() != before {
            self.keys.clear();
        }
    }

    fn want_keys(&mut self, table: &str, height: usize, stamp: Stamp, now_us: i64) -> Option<Effect> {
        let verdict = self.verdict();
        let holds = self
            .keys_of
            .as_ref()
            .is_some_and(|(search, known, of)| *search == self.search && *known == verdict && *of == stamp);
        let Some((after, limit)) = self.keys.want(height, holds) else {
            self.page.rest();
            return None;
        };
        let search = Some(self.search.clone()).filter(|search| !search.is_empty());
        let request = CutoverRequest { key: Vec::new(), search, verdict, after, limit };
        self.page.want(ScdQuestion::Cutover { table: table.to_string(), request }, stamp, now_us)
    }

    fn take_keys(&mut self) {
        let (Some(ScdQuestion::Cutover { request, .. }), Some(stamp)) = (self.page.question(), self.page.stamp())
        else {
            return;
        };
        let request = request.clone();
        let (rows, next) = match self.check() {
            Some(check) => (check.keys.clone(), check.next.clone()),
            None => (Vec::new(), None),
        };
        self.keys.take(request.after.as_deref(), &rows, next.as_ref());
        if request.after.is_none() {
            self.keys_of = Some((request.search.unwrap_or_default(), request.verdict, stamp));
        }
    }
}

impl App {
    /// `4`: the cutover of the chosen AUTO CDC table, else of the one looked at last, else of the first that has both
    /// a seed and a live feed.
    pub(super) fn open_cutover(&mut self) {
        let targets = self.known.change_targets();
        let chosen = match (&self.chosen, self.screen) {
            (_, Screen::Scd) => self.scd.table.clone(),
            (Some(Node::Dataset(label)), _) => Some(label.clone()),
            (Some(Node::Flow(_)), _) => {
                self.chosen_dataset().and_then(|id| self.known.graph().map(|graph| graph.dataset(id).label.clone()))
            }
            _ => None,
        };
        let is_target = |label: &String| targets.contains(label);
        let table = chosen
            .filter(is_target)
            .or_else(|| self.cutover.table.clone().filter(is_target))
            .or_else(|| targets.iter().find(|label| self.known.has_seed_and_feed(label)).cloned())
            .or_else(|| targets.first().cloned());
        match table {
            Some(table) => self.show_cutover(table),
            None => self.say(Role::Muted, "no flow is of AUTO CDC: there is no cutover to look at"),
        }
    }

    fn show_cutover(&mut self, table: String) {
        let came_from = match self.screen {
            Screen::Cutover => self.cutover.came_from,
            // From a key that was opened here: Esc would lead back and forth.
            Screen::Scd => Screen::Graph,
            screen => screen,
        };
        if self.cutover.table.as_ref() != Some(&table) {
            self.cutover = Cutover { table: Some(table), ..Cutover::default() };
        }
        self.cutover.came_from = came_from;
        self.show(Screen::Cutover);
    }

    /// Moves in a pane of the view.
    pub(super) fn go_cutover(&mut self, way: Move) {
        let height = self.height_of(self.pane);
        match self.pane {
            Pane::Verdicts => {
                let before = self.cutover.verdict();
                self.cutover.verdicts.go(way, Verdict::ALL.len() + 1, height);
                self.cutover.other_verdict(before);
            }
            Pane::VerdictKeys => {
                self.cutover.keys.go(way, height);
                self.cutover.events = List::default();
            }
            _ => {
                let len = self.cutover.history().map_or(0, |history| history.events.len());
                self.cutover.events.go(way, len, height);
            }
        }
    }

    /// Puts the cursor of a pane on a row.
    pub(super) fn put_cursor_cutover(&mut self, pane: Pane, row: usize) {
        match pane {
            Pane::Verdicts => {
                let before = self.cutover.verdict();
                self.cutover.verdicts.cursor = row;
                self.cutover.other_verdict(before);
            }
            Pane::VerdictKeys => {
                self.cutover.keys.list.cursor = row;
                self.cutover.events = List::default();
            }
            _ => self.cutover.events.cursor = row,
        }
    }

    /// To the target before or after.
    pub(super) fn go_sideways_cutover(&mut self, is_right: bool) {
        let targets = self.known.change_targets();
        let at = targets.iter().position(|label| Some(label) == self.cutover.table.as_ref());
        let next = match (at, is_right) {
            (None, _) => 0,
            (Some(at), true) => (at + 1) % targets.len(),
            (Some(at), false) => (at + targets.len() - 1) % targets.len(),
        };
        match targets.get(next).filter(|_| targets.len() > 1) {
            Some(label) => self.show_cutover(label.clone()),
            None => self.say(Role::Muted, "there is no other table of AUTO CDC"),
        }
    }

    /// Enter in the view: from a verdict to its keys, from a key to its history.
    pub(super) fn enter_cutover(&mut self) {
        match (self.pane, self.cutover.key().map(<[KeyPart]>::to_vec), self.cutover.table.clone()) {
            (Pane::Verdicts, ..) => self.pane = Pane::VerdictKeys,
            (_, Some(key), Some(table)) => self.open_scd(&table, Some(key)),
            _ => {}
        }
    }

    /// Esc in the view: from the keys to the verdicts, and out.
    pub(super) fn back_cutover(&mut self) {
        match self.pane {
            Pane::Verdicts => self.show(self.cutover.came_from),
            _ => self.pane = Pane::Verdicts,
        }
    }

    /// Keeps the view's cursors inside what there is.
    pub(super) fn settle_cutover(&mut self) {
        let heights = [Pane::Verdicts, Pane::VerdictKeys, Pane::KeyEvents].map(|pane| self.height_of(pane));
        let cutover = &mut self.cutover;
        cutover.verdicts.settle(Verdict::ALL.len() + 1, heights[0].max(Verdict::ALL.len() + 1));
        cutover.keys.list.settle(cutover.keys.rows.len(), heights[1]);
        let events = cutover.history().map_or(0, |history| history.events.len());
        cutover.events.settle(events, heights[2]);
    }

    /// Asks for what the view shows and doesn't have.
    pub(super) fn want_cutover(&mut self) -> Vec<Effect> {
        let Some(table) = self.cutover.table.clone() else { return Vec::new() };
        let (stamp, now_us) = (self.stamp(&table), self.now_us);
        let height = self.height_of(Pane::VerdictKeys);
        let cutover = &mut self.cutover;
        let mut effects = Vec::new();
        effects.extend(cutover.want_keys(&table, height, stamp, now_us));
        match cutover.key().map(<[KeyPart]>::to_vec) {
            Some(key) => effects.extend(cutover.history.want(ScdQuestion::History { table, key }, stamp, now_us)),
            None => cutover.history.rest(),
        }
        effects
    }

    /// Takes an answer of the view in.
    pub(super) fn take_cutover(&mut self, question: &ScdQuestion, report: &Result<Box<ScdReport>, Problem>) {
        let now_us = self.now_us;
        if self.cutover.table.as_deref() != Some(question.table()) {
            return;
        }
        match question {
            ScdQuestion::Cutover { .. } => {
                let is_first = self.cutover.page.question().is_none();
                if self.cutover.page.take(question, report, now_us) {
                    self.cutover.take_keys();
                    if is_first && self.screen == Screen::Cutover {
                        self.say_cutover();
                    }
                }
            }
            ScdQuestion::History { .. } => drop(self.cutover.history.take(question, report, now_us)),
            _ => {}
        }
    }

    /// Says how the cutover stands, and the command line that shows the same.
    fn say_cutover(&mut self) {
        let Some(check) = self.cutover.check() else { return };
        let (role, text) = holds_words(check);
        let twin = super::twin::question(&ScdQuestion::Cutover {
            table: check.target.clone(),
            request: CutoverRequest::default(),
        });
        self.say(role, text);
        self.twin(twin);
    }
}

/// How a cutover stands in one sentence.
pub fn holds_words(check: &CutoverCheck) -> (Role, String) {
    use pipeline::number::counted;
    let keys = counted(check.key_count, "key", "keys");
    let mut faults: Vec<String> = [Verdict::Stale, Verdict::Tie]
        .into_iter()
        .filter(|verdict| check.count(*verdict) > 0)
        .map(|verdict| format!("{} {}", pipeline::number::count(check.count(verdict)), verdict.words()))
        .collect();
    if let Some(wrong) = check.first_changes.map(|changes| changes.wrong).filter(|wrong| *wrong > 0) {
        faults.push(counted(wrong, "first change is wrong", "first changes are wrong"));
    }
    match check.holds() {
        true if check.seed_flows.is_empty() => (Role::Muted, format!("there is no seed to compare: {keys} looked at")),
        true if check.live_flows.iter().all(|flow| flow.evidence == Evidence::Nothing) => {
            (Role::Muted, format!("there is no live event to compare yet: {keys} looked at"))
        }
        true => (Role::Good, format!("the live feed takes over where the seed ends: {keys} looked at")),
        false => (Role::Warning, format!("{keys} looked at: {}", faults.join(", "))),
    }
}
