//! The SCD screen: the keys of a table, the versions of one, what changed between them, the table at a time.

use pipeline::number::{count, counted};
use pipeline::scd::{KeyFlags, key_words};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::explorer::put;
use super::rows::Table;
use super::words::{key_columns, key_values};
use super::{cursor_row, detail, overflow, pane_frame, versions};
use crate::app::{App, Pane, Target};
use crate::theme::Role;
use crate::widget::text::{fit, fit_middle, width};

/// From this width on the keys stand beside the versions.
const KEYS_FROM: u16 = 100;
const KEYS_WIDTH: u16 = 30;

/// From this height on the table at a time stands below what changed.
const ROWS_FROM: u16 = 28;

/// Draws the screen.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let is_wide = area.width >= KEYS_FROM;
    if app.is_maximised || (!is_wide && app.pane == Pane::Keys) {
        return draw_pane(app, app.pane, area, buffer);
    }
    let mut right = area;
    if is_wide {
        keys(app, Rect { width: KEYS_WIDTH, ..area }, buffer);
        right = Rect { x: area.x + KEYS_WIDTH, width: area.width - KEYS_WIDTH, ..area };
    }
    let versions = app.scd.history().map_or(1, |history| history.versions.len().max(1)) as u16;
    let top = (versions + versions::ROWS_BESIDE + 2).clamp(6, (right.height / 2).max(6)).min(right.height);
    draw_pane(app, Pane::Versions, Rect { height: top, ..right }, buffer);
    let below = Rect { y: right.y + top, height: right.height - top, ..right };
    match (right.height >= ROWS_FROM && app.keeps_history(), app.pane) {
        (true, _) => {
            let upper = below.height - below.height * 2 / 5;
            draw_pane(app, Pane::Detail, Rect { height: upper, ..below }, buffer);
            let lower = Rect { y: below.y + upper, height: below.height - upper, ..below };
            draw_pane(app, Pane::AsOf, lower, buffer);
        }
        (false, Pane::AsOf) => draw_pane(app, Pane::AsOf, below, buffer),
        (false, _) => draw_pane(app, Pane::Detail, below, buffer),
    }
}

fn draw_pane(app: &mut App, pane: Pane, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    match pane {
        Pane::Keys => keys(app, area, buffer),
        Pane::Versions => key_versions(app, area, buffer),
        Pane::AsOf => as_of(app, area, buffer),
        _ => {
            let (title, foot) = (detail::title(app), detail::foot(app));
            let inner = pane_frame(app, Pane::Detail, area, &title, &foot, buffer);
            detail::draw(app, inner, buffer);
        }
    }
}

fn keys(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let title = match (app.scd.only, app.scd.search.is_empty()) {
        (None, true) => "Keys".to_string(),
        (Some(only), true) => format!("Keys · {}", only.word()),
        (None, false) => format!("Keys · /{}", app.scd.search),
        (Some(only), false) => format!("Keys · {} · /{}", only.word(), app.scd.search),
    };
    let n = app.scd.keys.rows.len() as u64;
    let foot = match app.scd.keys.has_more() {
        true => format!("more than {} keys", count(n)),
        false => counted(n, "key", "keys"),
    };
    let inner = pane_frame(app, Pane::Keys, area, &title, &foot, buffer);
    if inner.height == 0 {
        return;
    }
    if app.scd.keys.rows.is_empty() {
        let asked = &app.scd.page;
        let is_filtered = app.scd.only.is_some() || !app.scd.search.is_empty();
        let (role, text) = match asked.problem().filter(|_| !asked.is_waiting()) {
            Some(problem) if problem.code == versions::NOTHING_STORED => {
                (Role::Muted, format!("{}; r starts an update", problem.message))
            }
            Some(problem) => (Role::Error, problem.message.clone()),
            None if asked.is_waiting() => (Role::Muted, "fetching keys…".to_string()),
            None if is_filtered => (Role::Muted, "no key is so; Esc lists all".to_string()),
            None => (Role::Muted, "no key yet; r starts an update".to_string()),
        };
        // The list is narrow, and what is wrong is long.
        let room = usize::from(inner.width).saturating_sub(2).max(1);
        let mut lines: Vec<String> = vec![String::new()];
        for word in text.split(' ') {
            let last = lines.last_mut().expect("there is always one");
            match width(last) + 1 + width(word) <= room || last.is_empty() {
                true if last.is_empty() => last.push_str(word),
                true => last.push_str(&format!(" {word}")),
                false => lines.push(word.to_string()),
            }
        }
        for (n, line) in lines.iter().enumerate().take(usize::from(inner.height)) {
            buffer.set_string(inner.x + 1, inner.y + n as u16, fit(line, room), theme.style(role));
        }
        return;
    }
    let columns = app.scd.keys.rows.first().map(|row| key_columns(&row.key)).unwrap_or_default();
    let columns = fit(&columns, usize::from(inner.width).saturating_sub(12)).into_owned();
    let head = vec![Span::styled(format!(" {columns}"), theme.style(Role::Title))];
    put(buffer, Rect { height: 1, ..inner }, head, vec![Span::styled("flags ver ", theme.style(Role::Title))]);
    let inner = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    let height = usize::from(inner.height);
    if let Some(known) = app.heights.iter_mut().rev().find(|(known, _)| *known == Pane::Keys) {
        known.1 = height;
    }
    let mut list = app.scd.keys.list;
    list.settle(app.scd.keys.rows.len(), height);
    app.scd.keys.list = list;
    let rows: Vec<_> = app.scd.keys.rows.iter().skip(list.offset).take(height).cloned().collect();
    let has_keys = app.pane == Pane::Keys;
    for (n, row) in rows.iter().enumerate() {
        let area = Rect { y: inner.y + n as u16, height: 1, ..inner };
        let flags = flag_words(row.flags);
        let right = vec![
            Span::styled(flags, theme.style(Role::Warning)),
            Span::styled(format!(" {:>3} ", row.versions), theme.style(Role::Muted)),
        ];
        let taken: usize = right.iter().map(|span| width(&span.content)).sum();
        let words = key_values(&row.key);
        let name = fit_middle(&words, usize::from(inner.width).saturating_sub(taken + 2)).into_owned();
        put(buffer, area, vec![Span::raw(format!(" {name}"))], right);
        let is_looked_at = app.scd.key.as_ref() == Some(&row.key);
        cursor_row(app, buffer, area, is_looked_at, has_keys);
        app.targets.push((area, Target::Row(Pane::Keys, list.offset + n)));
    }
    overflow(app, buffer, inner, list.offset, app.scd.keys.rows.len());
}

/// The flags in few cells: the first whole, of the others that they are there.
fn flag_words(flags: KeyFlags) -> String {
    match &flags.words()[..] {
        [] => String::new(),
        [only] => (*only).to_string(),
        [first, rest @ ..] => format!("{first}+{}", rest.len()),
    }
}

fn key_versions(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let history = app.scd.history().cloned();
    let title = match (&history, &app.scd.key) {
        (Some(history), _) => versions::title(history),
        (None, Some(key)) => key_words(key),
        (None, None) => "Versions".to_string(),
    };
    let foot = if area.width >= 70 { ", . < > @ time  h l key" } else { "" };
    let inner = pane_frame(app, Pane::Versions, area, &title, foot, buffer);
    match history {
        Some(history) => {
            let (time, pinned) = (app.scd.time().map(str::to_string), app.scd.pinned.clone());
            let view = versions::View {
                history: &history,
                list: app.scd.versions,
                time: time.as_deref(),
                pinned: pinned.as_deref(),
                picked: app.scd.picked,
                pane: Some(Pane::Versions),
            };
            versions::draw(app, &view, inner, buffer);
        }
        None => versions::draw_nothing(app, app.scd.history_asked(), inner, buffer),
    }
}

fn as_of(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let as_of = app.scd.as_of().cloned();
    let title = match &as_of {
        Some(as_of) => format!("{} at {} · {}", as_of.table, as_of.sequence, counted(as_of.row_count, "row", "rows")),
        None => "The table at a time".to_string(),
    };
    let title = if app.scd.as_of.is_waiting() && as_of.is_some() { format!("{title} …") } else { title };
    let inner = pane_frame(app, Pane::AsOf, area, &title, "", buffer);
    let Some(as_of) = as_of else {
        return match app.scd.time().filter(|_| app.keeps_history()) {
            Some(_) => versions::draw_nothing(app, &app.scd.as_of, inner, buffer),
            None => {
                let text = match app.keeps_history() {
                    true => "choose a version or type a time with @",
                    false => "SCD type 1 has the latest row of each key and no past",
                };
                buffer.set_string(inner.x + 1, inner.y, fit(text, usize::from(inner.width)), theme.style(Role::Muted));
            }
        };
    };
    if inner.height < 2 {
        return;
    }
    let height = usize::from(inner.height) - 1;
    if let Some(known) = app.heights.iter_mut().rev().find(|(known, _)| *known == Pane::AsOf) {
        known.1 = height;
    }
    let mut list = app.scd.rows;
    list.settle(as_of.rows.rows.len(), height);
    app.scd.rows = list;
    let table = Table { columns: &as_of.rows.columns, rows: &as_of.rows.rows, list, first_column: app.scd.column };
    let has_keys = app.pane == Pane::AsOf;
    for (row, at) in table.draw(theme, inner, buffer) {
        cursor_row(app, buffer, row, at == list.cursor && has_keys, has_keys);
        app.targets.push((row, Target::Row(Pane::AsOf, at)));
    }
    overflow(
        app,
        buffer,
        Rect { y: inner.y + 1, height: inner.height - 1, ..inner },
        list.offset,
        as_of.rows.rows.len(),
    );
}
