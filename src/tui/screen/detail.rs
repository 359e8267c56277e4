//! Below the versions: what changed between two of them, the events, the check of the table, two times compared.

use pipeline::auto_cdc::ScdType;
use pipeline::number::{count, counted};
use pipeline::scd::{KeyHistory, RowChange, Version, key_words};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::rows::one_line;
use super::{cursor_row, key_events, overflow, versions};
use crate::app::asked::Asked;
use crate::app::scd::{CheckLine, Detail};
use crate::app::{App, Pane, Target};
use crate::theme::Role;
use crate::widget::text::{fit, fit_middle, width};

/// What the pane is called.
pub fn title(app: &App) -> String {
    let scd = &app.scd;
    match scd.detail {
        Detail::Diff => match (scd.base(), scd.version()) {
            (Some(base), Some(version)) => {
                let n = changed(base, version).len() as u64;
                format!("Diff v{} → v{} · {}", base.number, version.number, counted(n, "change", "changes"))
            }
            (None, Some(version)) => format!("v{} · the first", version.number),
            _ => "Diff".to_string(),
        },
        Detail::Events => "Events".to_string(),
        Detail::Check => "Check of the table".to_string(),
        Detail::Times => match scd.times() {
            Some(diff) => format!(
                "Times · {} added, {} removed, {} changed",
                count(diff.added),
                count(diff.removed),
                count(diff.changed)
            ),
            None => "Times".to_string(),
        },
    }
}

/// What is said below it.
pub fn foot(app: &App) -> String {
    match app.scd.detail {
        Detail::Diff => "D pick another  o source".to_string(),
        Detail::Events => match app.scd.history() {
            Some(history) if !history.keeps_all_events => key_events::foot(history).to_string(),
            Some(history) => match history.events.get(app.scd.lines.cursor) {
                Some(event) => format!("{}  o source", event.place.words()),
                None => String::new(),
            },
            None => String::new(),
        },
        Detail::Check | Detail::Times => "Enter opens the key".to_string(),
    }
}

/// Draws the pane's inside.
pub fn draw(app: &mut App, inner: Rect, buffer: &mut Buffer) {
    match app.scd.detail {
        Detail::Diff => match app.scd.history().cloned() {
            Some(history) => draw_diff(app, &history, inner, buffer),
            None => versions::draw_nothing(app, app.scd.history_asked(), inner, buffer),
        },
        Detail::Events => match app.scd.history().cloned() {
            Some(history) => key_events::draw(app, Pane::Detail, &history, app.scd.lines, inner, buffer),
            None => versions::draw_nothing(app, app.scd.history_asked(), inner, buffer),
        },
        Detail::Check => draw_check(app, inner, buffer),
        Detail::Times => draw_times(app, inner, buffer),
    }
}

/// The columns that differ, by index.
fn changed(base: &Version, version: &Version) -> Vec<usize> {
    (0..version.values.len()).filter(|at| base.values.get(*at) != version.values.get(*at)).collect()
}

/// What a version has in a column; None: there is no such version, Some(None): NULL.
type Cell = Option<Option<String>>;

fn draw_diff(app: &mut App, history: &KeyHistory, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    if inner.height < 2 {
        return;
    }
    let Some(version) = app.scd.version().cloned() else {
        let text = "the key has no version now; g e shows its events";
        buffer.set_string(inner.x + 1, inner.y, fit(text, usize::from(inner.width)), theme.style(Role::Muted));
        return;
    };
    let base = app.scd.base().cloned();
    let changes = base.as_ref().map(|base| changed(base, &version)).unwrap_or_default();
    let cell = |of: Option<&Version>, at: usize| -> Cell { of.map(|of| of.values.get(at).cloned().flatten()) };
    let mut lines: Vec<(bool, String, Cell, Cell)> = Vec::new();
    let unchanged = (0..history.columns.len()).filter(|at| !changes.contains(at));
    for at in changes.iter().copied().chain(unchanged) {
        let name = history.columns[at].name.clone();
        lines.push((changes.contains(&at), name, cell(base.as_ref(), at), cell(Some(&version), at)));
    }
    let mut push = |name: &str, value: &dyn Fn(&Version) -> Option<String>| {
        lines.push((false, name.to_string(), base.as_ref().map(value), Some(value(&version))));
    };
    match history.scd_type {
        // Such a table has no columns for them: the row is what its newest event made of it.
        ScdType::One => push("sequence", &|version| Some(version.start.clone())),
        ScdType::Two => {
            push("__START_AT", &|version| Some(version.start.clone()));
            push("__END_AT", &|version| version.end.clone());
        }
    }
    push("made by", &|version| {
        let event = history.events.get(version.first_event)?;
        let update = event.update.map_or(String::new(), |update| format!(", update {update}"));
        Some(format!("{}, batch {}{update}", event.flow, event.batch))
    });
    push("from", &|version| Some(history.events.get(version.first_event)?.place.words()));
    let names = lines.iter().map(|line| width(&line.1)).max().unwrap_or(0).min(usize::from(inner.width) / 4);
    let room = usize::from(inner.width).saturating_sub(names + 6) / 2;
    let head = |version: Option<&Version>| version.map_or(String::new(), |version| format!("v{}", version.number));
    let heading = Line::from(vec![
        Span::styled(format!("  {:<names$}  ", "column"), theme.style(Role::Title)),
        Span::styled(format!("{:<room$}  ", head(base.as_ref())), theme.style(Role::Title)),
        Span::styled(head(Some(&version)), theme.style(Role::Title)),
    ]);
    buffer.set_line(inner.x, inner.y, &heading, inner.width);
    let rows = begin_list(app, lines.len(), inner);
    for (row, at) in rows {
        let (is_changed, name, before, after) = &lines[at];
        let text = |value: &Cell| -> (String, Role) {
            match value {
                Some(Some(value)) => (one_line(value), if *is_changed { Role::Warning } else { Role::Text }),
                Some(None) => ("NULL".to_string(), Role::Muted),
                None => (String::new(), Role::Muted),
            }
        };
        let mut spans = vec![Span::raw(format!("{} {}  ", if *is_changed { "~" } else { " " }, padded(name, names)))];
        for value in [before, after] {
            let (text, role) = text(value);
            spans.push(Span::styled(format!("{}  ", padded(&text, room)), theme.style(role)));
        }
        buffer.set_line(row.x, row.y, &Line::from(spans), row.width);
        end_row(app, row, at, buffer);
    }
}

fn draw_check(app: &mut App, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    if inner.height < 2 {
        return;
    }
    let Some(check) = app.scd.check().cloned() else { return draw_nothing(app, &app.scd.check, inner, buffer) };
    let counts = check.counts;
    let mut head = format!(
        " {}, {}, {} open, {}",
        counted(counts.keys, "key", "keys"),
        counted(counts.rows, "row", "rows"),
        count(counts.open_rows),
        counted(counts.events, "event", "events")
    );
    for (n, what) in [
        (counts.deleted, "deleted"),
        (counts.with_gaps, "with gaps"),
        (counts.late, "late"),
        (counts.ties, "with a tie"),
    ] {
        if n > 0 {
            head.push_str(&format!(", {} {what}", count(n)));
        }
    }
    buffer.set_string(inner.x, inner.y, fit(&head, usize::from(inner.width)), theme.style(Role::Title));
    let lines = app.scd.check_lines();
    for (row, at) in begin_list(app, lines.len(), inner) {
        let line = match lines[at] {
            CheckLine::Invariant(of) => {
                let invariant = &check.invariants[of];
                let words = invariant.invariant.words(check.scd_type);
                match invariant.violations {
                    0 => Line::from(vec![
                        Span::styled(format!(" {} ", theme.pick("✔", "+")), theme.style(Role::Good)),
                        Span::raw(words),
                    ]),
                    n => Line::from(vec![
                        Span::styled(format!(" {} ", theme.pick("✖", "X")), theme.style(Role::Error)),
                        Span::raw(format!("{words}: violated {}", counted(n, "time", "times"))),
                    ]),
                }
            }
            CheckLine::Example(of, example) => {
                let example = &check.invariants[of].examples[example];
                Line::from(format!("     {}: {}", key_words(&example.key), example.what))
            }
        };
        buffer.set_line(row.x, row.y, &line, row.width);
        end_row(app, row, at, buffer);
    }
}

fn draw_times(app: &mut App, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    if inner.height < 2 {
        return;
    }
    if app.scd.pinned.is_none() {
        let text = "press = at a time, go to another with , . < > @, and press it again";
        buffer.set_string(inner.x + 1, inner.y, fit(text, usize::from(inner.width)), theme.style(Role::Muted));
        return;
    }
    let Some(diff) = app.scd.times().cloned() else { return draw_nothing(app, &app.scd.times, inner, buffer) };
    let by_column = diff.by_column.iter().map(|column| format!("{} {}", column.column, count(column.rows)));
    let by_column = by_column.collect::<Vec<_>>().join(", ");
    let more = if diff.is_truncated { ", the first of them" } else { "" };
    let head = match by_column.is_empty() {
        true => format!(" {}{more}", times_words(&diff.range)),
        false => format!(" {}: {by_column}{more}", times_words(&diff.range)),
    };
    buffer.set_string(inner.x, inner.y, fit(&head, usize::from(inner.width)), theme.style(Role::Title));
    for (row, at) in begin_list(app, diff.rows.len(), inner) {
        let change = &diff.rows[at];
        let value = |values: &Option<Vec<Option<String>>>, at: usize| {
            let value = values.as_ref().and_then(|values| values.get(at).cloned().flatten());
            one_line(value.as_deref().unwrap_or("NULL"))
        };
        let (mark, role, what) = match change.change {
            RowChange::Added => ("+", Role::Good, all(&change.after)),
            RowChange::Removed => ("-", Role::Warning, all(&change.before)),
            RowChange::Changed => {
                let columns = change.changed.iter().map(|at| {
                    let name = diff.columns.get(*at).map_or("", |column| column.name.as_str());
                    format!("{name} {} → {}", value(&change.before, *at), value(&change.after, *at))
                });
                ("~", Role::Text, columns.collect::<Vec<_>>().join("  "))
            }
        };
        let line = Line::from(vec![
            Span::styled(format!("{mark} {}  ", key_words(&change.key)), theme.style(Role::Title)),
            Span::styled(what, theme.style(role)),
        ]);
        buffer.set_line(row.x, row.y, &line, row.width);
        end_row(app, row, at, buffer);
    }
    if diff.rows.is_empty() {
        buffer.set_string(inner.x + 1, inner.y + 1, "the table is the same at both", theme.style(Role::Muted));
    }
}

fn times_words(range: &pipeline::scd::DiffRange) -> String {
    match range {
        pipeline::scd::DiffRange::Times { from, to } => format!("{from} → {to}"),
        pipeline::scd::DiffRange::Versions { key, from, to } => format!("{} v{from} → v{to}", key_words(key)),
    }
}

fn all(values: &Option<Vec<Option<String>>>) -> String {
    let values = values.iter().flatten().map(|value| one_line(value.as_deref().unwrap_or("NULL")));
    values.collect::<Vec<_>>().join("  ")
}

fn draw_nothing(app: &App, asked: &Asked, inner: Rect, buffer: &mut Buffer) {
    versions::draw_nothing(app, asked, inner, buffer);
}

/// The rows below a heading that are seen, with their places in the list.
fn begin_list(app: &mut App, len: usize, inner: Rect) -> Vec<(Rect, usize)> {
    let height = usize::from(inner.height) - 1;
    if let Some(known) = app.heights.iter_mut().rev().find(|(known, _)| *known == Pane::Detail) {
        known.1 = height;
    }
    let mut list = app.scd.lines;
    list.settle(len, height);
    app.scd.lines = list;
    let row = |at: usize| (Rect { y: inner.y + 1 + (at - list.offset) as u16, height: 1, ..inner }, at);
    (list.offset..len.min(list.offset + height)).map(row).collect()
}

fn end_row(app: &mut App, row: Rect, at: usize, buffer: &mut Buffer) {
    let has_keys = app.pane == Pane::Detail;
    cursor_row(app, buffer, row, has_keys && at == app.scd.lines.cursor, has_keys);
    app.targets.push((row, Target::Row(Pane::Detail, at)));
    if at == app.scd.lines.offset {
        overflow(app, buffer, row, at, at + 1);
    }
}

fn padded(text: &str, cells: usize) -> String {
    // Places and names differ at their ends.
    let text = fit_middle(text, cells).into_owned();
    format!("{text}{}", " ".repeat(cells - width(&text)))
}
