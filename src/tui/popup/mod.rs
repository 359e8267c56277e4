//! What lies over the screen and takes the keys until it is closed. Esc closes every one of them.
//!
//! - `help.rs`: the keys; `palette.rs`: everything by its name
//! - `menu.rs`: what to run or to reset, with what it would do beside it
//! - `confirm.rs`: what an action keeps, drops and repeats, and the yes that it needs
//! - `record.rs`: one row or one event, whole
//!
//! Nothing here writes: a popup ends in a command, and one that loses or repeats rows goes through `confirm.rs`.

pub mod confirm;
pub mod help;
pub mod menu;
pub mod palette;
pub mod record;

use pipeline::answer::{Answer, Problem};
use pipeline::plan::UpdateRequest;

use crate::action::Action;
use crate::app::field::Field;
use crate::app::list::{List, Move};
use crate::app::{App, Effect};
use crate::key::{Code, Key};

use confirm::Confirm;
use menu::Menu;

/// A popup and its state.
#[derive(Debug, Clone)]
pub enum Popup {
    Help {
        filter: Field,
        list: List,
    },
    Palette {
        field: Field,
        list: List,
    },
    Menu(Box<Menu>),
    Confirm(Box<Confirm>),
    /// The row of the preview under the cursor, all columns.
    Record {
        scroll: usize,
    },
    /// The event under the cursor, whole.
    Event {
        scroll: usize,
    },
    /// A sequence is typed.
    Time {
        /// Spark's spelling of its type.
        kind: String,
        field: Field,
    },
    /// An update runs: stop it and leave, or stay.
    Quit,
}

impl Popup {
    /// The keys.
    pub fn help() -> Popup {
        Popup::Help { filter: Field::default(), list: List::default() }
    }

    /// Everything by its name.
    pub fn palette() -> Popup {
        Popup::Palette { field: Field::default(), list: List::default() }
    }

    /// The row under the cursor.
    pub fn record() -> Popup {
        Popup::Record { scroll: 0 }
    }

    /// The event under the cursor.
    pub fn event() -> Popup {
        Popup::Event { scroll: 0 }
    }

    /// A sequence to look at; `text` is the one that is looked at.
    pub fn time(kind: &str, text: &str) -> Popup {
        Popup::Time { kind: kind.to_string(), field: Field::offering(text) }
    }

    /// An update that needs a yes before it may run.
    pub fn unconfirmed(request: UpdateRequest, problem: &Problem) -> Popup {
        Popup::Confirm(Box::new(Confirm::unconfirmed(request, problem)))
    }
}

/// How a list in a popup moves by a key; None: the key means something else.
fn list_move(key: Key) -> Option<Move> {
    Some(match (key.code, key.ctrl) {
        (Code::Up, _) | (Code::Char('p' | 'k'), true) => Move::Up,
        (Code::Down, _) | (Code::Char('n' | 'j'), true) => Move::Down,
        (Code::PageUp, _) => Move::PageUp,
        (Code::PageDown, _) => Move::PageDown,
        _ => return None,
    })
}

/// Rows of a popup's list that are seen at least, whatever the terminal's size.
const PAGE: usize = 10;

impl App {
    /// Gives a key to the popup on top.
    pub(crate) fn popup_key(&mut self, key: Key) -> Vec<Effect> {
        let is_escape = key.code == Code::Esc || (key.ctrl && key.code == Code::Char('c'));
        if is_escape {
            self.popups.pop();
            return Vec::new();
        }
        // It is put back unless the key closed it.
        let Some(mut popup) = self.popups.pop() else { return Vec::new() };
        let depth = self.popups.len();
        let mut effects = Vec::new();
        let stays = match &mut popup {
            Popup::Help { filter, list } => {
                let rows = help::rows(filter.text(), self.screen);
                match (list_move(key), key.code) {
                    (Some(way), _) => list.go(way, rows.len(), PAGE),
                    (None, Code::Enter) => {
                        if let Some(row) = rows.get(list.cursor) {
                            effects = self.act(row.action);
                        }
                        return effects;
                    }
                    _ => {
                        filter.key(key);
                        list.cursor = 0;
                    }
                }
                true
            }
            Popup::Palette { field, list } => {
                let entries = palette::entries(self, field.text());
                match (list_move(key), key.code) {
                    (Some(way), _) => list.go(way, entries.len(), PAGE),
                    (None, Code::Enter) => {
                        return match entries.into_iter().nth(list.cursor) {
                            Some(entry) => self.take_entry(entry),
                            None => Vec::new(),
                        };
                    }
                    _ => {
                        field.key(key);
                        list.cursor = 0;
                    }
                }
                true
            }
            Popup::Menu(menu) => {
                let (stays, done) = self.menu_key(menu, key);
                effects = done;
                stays
            }
            Popup::Confirm(confirm) => {
                let (stays, done) = self.confirm_key(confirm, key);
                effects = done;
                stays
            }
            Popup::Record { scroll } | Popup::Event { scroll } => {
                match key.code {
                    Code::Up | Code::Char('k') => *scroll = scroll.saturating_sub(1),
                    Code::Down | Code::Char('j') => *scroll += 1,
                    Code::PageUp => *scroll = scroll.saturating_sub(PAGE),
                    Code::PageDown => *scroll += PAGE,
                    Code::Char('q') | Code::Enter => return Vec::new(),
                    _ => {}
                }
                true
            }
            Popup::Time { field, .. } => match key.code {
                Code::Enter => {
                    let text = field.text().to_string();
                    self.time_typed(&text);
                    false
                }
                _ => {
                    field.key(key);
                    true
                }
            },
            Popup::Quit => match key.code {
                Code::Char('s' | 'y') => return vec![Effect::Quit],
                Code::Char('n' | 'q') | Code::Enter => false,
                _ => true,
            },
        };
        if stays {
            // Below what it may have opened.
            self.popups.insert(depth, popup);
        }
        effects
    }

    /// A click on a row of the popup on top.
    pub(crate) fn popup_click(&mut self, row: usize) -> Vec<Effect> {
        let is_again = match self.popups.last_mut() {
            Some(Popup::Help { list, .. } | Popup::Palette { list, .. }) => {
                std::mem::replace(&mut list.cursor, row) == row
            }
            Some(Popup::Menu(menu)) => std::mem::replace(&mut menu.list.cursor, row) == row,
            _ => false,
        };
        match is_again {
            true => self.popup_key(Key::plain(Code::Enter)),
            false => self.menu_moved(),
        }
    }

    /// Text pasted while a popup has the keys.
    pub(crate) fn popup_paste(&mut self, text: &str) {
        match self.popups.last_mut() {
            Some(Popup::Help { filter: field, list } | Popup::Palette { field, list }) => {
                field.insert(text);
                list.cursor = 0;
            }
            Some(Popup::Confirm(confirm)) => confirm.typed.insert(text),
            Some(Popup::Time { field, .. }) => field.insert(text),
            _ => {}
        }
    }

    /// Gives an answer to the popups that wait for it.
    pub(crate) fn popup_answer(&mut self, answer: &Answer) {
        for popup in &mut self.popups {
            match popup {
                Popup::Menu(menu) => menu.answer(answer),
                Popup::Confirm(confirm) => confirm.answer(answer),
                _ => {}
            }
        }
    }

    fn take_entry(&mut self, entry: palette::Entry) -> Vec<Effect> {
        match entry {
            palette::Entry::Action(row) => self.act(row.action),
            palette::Entry::Node(node, _) => {
                self.choose(node);
                let is_file = matches!(self.chosen, Some(crate::app::Node::File(_)));
                if is_file { self.act(Action::Edit) } else { Vec::new() }
            }
        }
    }
}
