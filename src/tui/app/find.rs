//! Search: `/`, a part of a name, `n` and `N`. Names match as subsequences do, best first.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

use super::field::Field;
use super::list::{List, Move};
use super::{App, Effect, Node, Pane};
use crate::action::Screen;
use crate::key::{Code, Key};
use crate::theme::Role;

/// The search in progress, and the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    pub is_typing: bool,
    pub field: Field,
    /// What was chosen before the search began.
    before: Option<Node>,
}

impl App {
    pub(super) fn begin_search(&mut self) {
        if self.screen == Screen::Scd {
            self.pane = Pane::Keys;
        }
        self.search = Search { is_typing: true, field: Field::default(), before: self.chosen.clone() };
    }

    pub(super) fn search_key(&mut self, key: Key) -> Vec<Effect> {
        match key.code {
            Code::Enter => self.search.is_typing = false,
            Code::Esc => {
                let before = self.search.before.take();
                self.search = Search::default();
                if let Some(before) = before {
                    self.choose(before);
                }
            }
            Code::Char('c') if key.ctrl => self.search = Search::default(),
            Code::Down => self.next_found(true),
            Code::Up => self.next_found(false),
            _ => {
                if self.search.field.key(key) {
                    self.search_changed();
                }
            }
        }
        Vec::new()
    }

    pub(super) fn search_changed(&mut self) {
        if self.screen == Screen::Log || self.screen == Screen::Runs {
            self.is_following = false;
            self.next_found(true);
            return;
        }
        if matches!(self.screen, Screen::Scd | Screen::Cutover) {
            // The engine looks for them: the list is what it finds.
            self.first_key();
            return;
        }
        if let Some((node, _)) = self.found().into_iter().next() {
            self.choose(node);
        }
    }

    /// The list of keys begins at its first one; Enter must not open a key of the list before.
    fn first_key(&mut self) {
        self.scd.keys.list = List::default();
        self.cutover.keys.clear();
    }

    /// What the search finds, best first, with its name.
    pub fn found(&self) -> Vec<(Node, String)> {
        let text = self.search.field.text();
        if text.is_empty() {
            return Vec::new();
        }
        matches(text, self.names())
    }

    /// Everything that has a name.
    pub fn names(&self) -> Vec<(Node, String)> {
        let mut names = Vec::new();
        if let Some(graph) = self.known.graph() {
            names.extend(graph.datasets.iter().map(|d| (Node::Dataset(d.label.clone()), d.label.clone())));
            let named = graph.flows.iter().filter(|flow| !flow.is_default);
            names.extend(named.map(|flow| (Node::Flow(flow.name.clone()), flow.name.clone())));
        }
        names.extend(self.known.files.iter().map(|path| (Node::File(path.clone()), path.clone())));
        names
    }

    pub(super) fn next_found(&mut self, is_forward: bool) {
        if matches!(self.screen, Screen::Scd | Screen::Cutover) {
            self.pane = if self.screen == Screen::Scd { Pane::Keys } else { Pane::VerdictKeys };
            self.go(if is_forward { Move::Down } else { Move::Up });
            return;
        }
        let text = self.search.field.text().to_string();
        if text.is_empty() {
            self.say(Role::Muted, "nothing was searched for; / begins a search");
            return;
        }
        if self.screen == Screen::Log || self.screen == Screen::Runs {
            self.next_event(&text.to_lowercase(), is_forward);
            return;
        }
        let found = self.found();
        let at = found.iter().position(|(node, _)| Some(node) == self.chosen.as_ref());
        let next = match (at, is_forward) {
            (None, _) => 0,
            (Some(at), true) => (at + 1) % found.len(),
            (Some(at), false) => (at + found.len() - 1) % found.len(),
        };
        match found.into_iter().nth(next) {
            Some((node, _)) => self.choose(node),
            None => self.say(Role::Warning, format!("nothing is named like `{text}`")),
        }
    }

    fn next_event(&mut self, text: &str, is_forward: bool) {
        let hits: Vec<usize> = self
            .log_events()
            .enumerate()
            .filter(|(_, (_, event))| event.message.to_lowercase().contains(text))
            .map(|(at, _)| at)
            .collect();
        let cursor = self.events.cursor;
        let next = match is_forward {
            true => hits.iter().find(|at| **at > cursor).or(hits.first()),
            false => hits.iter().rev().find(|at| **at < cursor).or(hits.last()),
        };
        match next {
            Some(at) => {
                self.events.cursor = *at;
                self.is_following = false;
            }
            None => self.say(Role::Warning, format!("no event says `{text}`")),
        }
    }
}

/// The candidates that match, best first; at the same score in their order.
pub fn matches<T>(text: &str, candidates: Vec<(T, String)>) -> Vec<(T, String)> {
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(text, CaseMatching::Smart, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, (T, String))> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let name = nucleo_matcher::Utf32Str::new(&candidate.1, &mut buffer);
            pattern.score(name, &mut matcher).map(|score| (score, candidate))
        })
        .collect();
    // Who types a whole name means it, and of two that match equally well the shorter is nearer.
    scored.sort_by_key(|(score, (_, name))| {
        (!name.eq_ignore_ascii_case(text), std::cmp::Reverse(*score), name.chars().count())
    });
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}
