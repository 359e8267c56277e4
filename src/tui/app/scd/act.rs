//! What keys do in the view: choosing keys, versions and lines, and what is shown of them.

use pipeline::scd::{EventKind, KeyFilter, KeyPart};

use super::{Detail, Scd};
use crate::action::Screen;
use crate::app::list::{List, Move};
use crate::app::{App, Effect, Node, Pane};
use crate::theme::Role;

impl App {
    /// `i`: the history of the chosen AUTO CDC table.
    pub(in crate::app) fn inspect(&mut self) {
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
    pub(in crate::app) fn open_scd(&mut self, table: &str, key: Option<Vec<KeyPart>>) {
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
    pub(in crate::app) fn next_filter(&mut self) {
        let at = self.scd.only.and_then(|only| KeyFilter::ALL.iter().position(|known| *known == only));
        self.scd.only = KeyFilter::ALL.get(at.map_or(0, |at| at + 1)).copied();
        self.scd.keys.list = List::default();
        let text = match self.scd.only {
            Some(only) => {
                let what = match only {
                    KeyFilter::Gaps => "gaps",
                    KeyFilter::Deleted => "a delete at last",
                    KeyFilter::Late => "late events",
                    KeyFilter::Tie => "a tie at the cutover",
                };
                format!("only keys with {what}")
            }
            None => "all keys".to_string(),
        };
        self.say(Role::Muted, text);
    }

    /// `d`: the chosen version beside the one before.
    pub(in crate::app) fn show_detail(&mut self, detail: Detail) {
        if self.scd.detail != detail {
            self.scd.detail = detail;
            self.scd.lines = List::default();
        }
        self.pane = Pane::Detail;
    }

    /// `D`: what is chosen next is compared with the version under the cursor; again: with the one before it.
    pub(in crate::app) fn pick_version(&mut self) {
        let Some(number) = self.scd.version().map(|version| version.number) else { return };
        self.scd.picked = if self.scd.picked == Some(number) { None } else { Some(number) };
        let text = match self.scd.picked {
            Some(number) => format!("v{number} is compared with the version you choose next; D again or Esc ends it"),
            None => "each version is compared with the one before".to_string(),
        };
        self.scd.detail = Detail::Diff;
        self.say(Role::Muted, text);
    }

    /// `o`: the source of the event under the cursor, or of the one that made the chosen version.
    pub(in crate::app) fn open_source(&mut self) -> Vec<Effect> {
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
                let words = match event.kind {
                    EventKind::Absence => format!("the key is not in {words}"),
                    _ => format!("it came from {words}, which is no text file to open"),
                };
                self.say(Role::Muted, words);
                Vec::new()
            }
        }
    }

    /// Moves in a pane of the view.
    pub(in crate::app) fn go_scd(&mut self, way: Move) {
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
    pub(in crate::app) fn put_cursor_scd(&mut self, pane: Pane, row: usize) {
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
    pub(in crate::app) fn go_sideways_scd(&mut self, is_right: bool) {
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
    pub(in crate::app) fn enter_scd(&mut self) {
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
    pub(in crate::app) fn back_scd(&mut self) {
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
}

/// True for files that an editor shows line by line as they were read.
fn is_text(path: &str) -> bool {
    let end = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    !path.contains("://") && ["json", "jsonl", "ndjson", "csv", "tsv", "txt"].contains(&end.as_str())
}
