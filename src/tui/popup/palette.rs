//! Everything by its name: what to do, datasets, flows, files. `>` only actions, `@` only what is in the graph.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::help::keys;
use crate::action::{ACTIONS, Row};
use crate::app::field::Field;
use crate::app::list::List;
use crate::app::{App, Node, find};
use crate::screen::popup_frame;
use crate::theme::Role;
use crate::widget::text::{fit, fit_middle};

/// One entry of the palette.
#[derive(Debug, Clone)]
pub enum Entry {
    Action(&'static Row),
    Node(Node, String),
}

/// The entries that match, best first.
pub fn entries(app: &App, text: &str) -> Vec<Entry> {
    let (wants_actions, wants_names, text) = match text.chars().next() {
        Some('>') => (true, false, &text[1..]),
        Some('@') => (false, true, &text[1..]),
        _ => (true, true, text),
    };
    let text = text.trim();
    let mut found: Vec<Entry> = Vec::new();
    if wants_names {
        let names = app.names().into_iter().map(|(node, name)| (Entry::Node(node, name.clone()), name)).collect();
        let names = if text.is_empty() { names } else { find::matches(text, names) };
        found.extend(names.into_iter().map(|(entry, _)| entry));
    }
    if wants_actions {
        // Words of a sentence match as they are: letters from here and there would find everything.
        let text = text.to_lowercase();
        let holds = |row: &&Row| {
            row.hint.contains(&text)
                || row.doc.to_lowercase().contains(&text)
                || row.twin.is_some_and(|twin| twin.contains(&text))
        };
        let (named, told): (Vec<&Row>, Vec<&Row>) =
            ACTIONS.iter().filter(holds).partition(|row| row.hint.contains(&text));
        let actions = named.into_iter().chain(told).map(Entry::Action);
        // Without a word to look for, what can be done comes first.
        match text.is_empty() {
            true => found.splice(0..0, actions).for_each(drop),
            false => found.extend(actions),
        }
    }
    found
}

/// Draws the popup.
pub fn draw(app: &mut App, field: &Field, list: &List, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let entries = entries(app, field.text());
    let inner = popup_frame(app, area, 90, 18, "Palette", "> actions  @ datasets  Enter  Esc closes", buffer);
    let (before, after) = field.around_cursor();
    let line = Line::from(vec![
        Span::raw(": "),
        Span::raw(before),
        Span::styled("▏", theme.style(Role::Key)),
        Span::raw(after),
    ]);
    buffer.set_line(inner.x, inner.y, &line, inner.width);
    let height = usize::from(inner.height.saturating_sub(1));
    let mut list = *list;
    list.settle(entries.len(), height);
    let width = usize::from(inner.width);
    for (at, entry) in entries.iter().enumerate().skip(list.offset).take(height) {
        let y = inner.y + 1 + (at - list.offset) as u16;
        let line = match entry {
            Entry::Action(row) => {
                let twin = row.twin.map(|twin| format!("  = {twin}")).unwrap_or_default();
                let room = width.saturating_sub(14 + twin.len() + 1);
                Line::from(vec![
                    Span::styled(format!(" {:<12} ", fit(&keys(row), 12)), theme.style(Role::Key)),
                    Span::raw(fit(row.doc, room).into_owned()),
                    Span::styled(twin, theme.style(Role::Muted)),
                ])
            }
            Entry::Node(node, name) => {
                let kind = match node {
                    Node::Dataset(_) => "dataset",
                    Node::Flow(_) => "flow",
                    Node::Source(_) => "source",
                    Node::Schema(_) => "schema",
                    Node::File(_) => "file",
                };
                Line::from(vec![
                    Span::styled(format!(" {kind:<12} "), theme.style(Role::Muted)),
                    Span::raw(fit_middle(name, width.saturating_sub(15)).into_owned()),
                ])
            }
        };
        buffer.set_line(inner.x, y, &line, inner.width);
        crate::screen::cursor_row(app, buffer, Rect { y, height: 1, ..inner }, at == list.cursor, true);
        app.targets.push((Rect { y, height: 1, ..inner }, crate::app::Target::PopupRow(at)));
    }
    if entries.is_empty() {
        buffer.set_string(inner.x + 1, inner.y + 1, "nothing is named so", theme.style(Role::Muted));
    }
}
