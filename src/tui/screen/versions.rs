//! The versions of a key on a time line.

use pipeline::auto_cdc::ScdType;
use pipeline::report::Column;
use pipeline::scd::{KeyHistory, key_words};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::rows::one_line;
use super::{cursor_row, overflow};
use crate::app::asked::Asked;
use crate::app::list::List;
use crate::app::scd::{axis, interval, summary};
use crate::app::{App, Pane, Target};
use crate::theme::Role;
use crate::widget::text::{fit, width};

/// Cells of a version's mark and number.
const NAMES: usize = 5;

/// Why there is nothing to see before the first update.
pub const NOTHING_STORED: &str = "nothing-stored";

/// Rows beside those of the versions: the ticks, the axis, and what is looked at.
pub const ROWS_BESIDE: u16 = 3;

/// Which time line is drawn, and what of it is looked at.
pub struct View<'a> {
    pub history: &'a KeyHistory,
    pub list: List,
    /// The sequence that is looked at.
    pub time: Option<&'a str>,
    /// The other one of a comparison.
    pub pinned: Option<&'a str>,
    /// The version that others are compared with.
    pub picked: Option<usize>,
    /// Where the rows of the list are for the mouse.
    pub pane: Option<Pane>,
}

/// What the pane is called.
pub fn title(history: &KeyHistory) -> String {
    let touches = match history.scd_type {
        ScdType::Two if history.versions.len() > 1 && !history.flags.has_gaps => ", no gaps",
        _ => "",
    };
    format!("{} · {}{touches}", key_words(&history.key), summary(history))
}

/// Says why there is nothing to draw.
pub fn draw_nothing(app: &App, asked: &Asked, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let room = usize::from(inner.width).saturating_sub(2);
    let (role, text, help) = match asked.problem().filter(|_| !asked.is_waiting()) {
        Some(problem) if problem.code == NOTHING_STORED => {
            (Role::Muted, problem.message.as_str(), Some("r starts an update"))
        }
        Some(problem) => (Role::Error, problem.message.as_str(), problem.help.as_deref()),
        None if asked.is_waiting() => (Role::Muted, "fetching…", None),
        None => (Role::Muted, "choose a key to see its versions", None),
    };
    if inner.height > 0 {
        buffer.set_string(inner.x + 1, inner.y, fit(text, room), theme.style(role));
    }
    if let Some(help) = help.filter(|_| inner.height > 1) {
        buffer.set_string(inner.x + 1, inner.y + 1, fit(help, room), theme.style(Role::Muted));
    }
}

/// Draws the time line; the versions' values stand beside it.
pub fn draw(app: &mut App, view: &View, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let history = view.history;
    let shown = telling_columns(history);
    let values: Vec<String> = history
        .versions
        .iter()
        .map(|version| {
            let values =
                shown.iter().map(|at| version.values.get(*at).cloned().flatten().unwrap_or("NULL".to_string()));
            values.map(|value| one_line(&value)).collect::<Vec<_>>().join("  ")
        })
        .collect();
    let total = usize::from(inner.width);
    let heading = shown.iter().map(|at| history.columns[*at].name.as_str()).collect::<Vec<_>>().join("  ");
    let widest = values.iter().map(|value| width(value)).chain([width(&heading)]).max().unwrap_or(0);
    let beside = widest.min(total * 2 / 5);
    let cells = total.saturating_sub(NAMES + beside + 3);
    if cells < 4 || inner.height == 0 {
        return;
    }
    let axis = axis(history, cells);
    let x = inner.x + NAMES as u16;
    let at_values = x + cells as u16 + 2;
    let values_room = total.saturating_sub(NAMES + cells + 2);
    let mut y = inner.y;
    buffer.set_string(x, y, axis.ticks(), theme.style(Role::Muted));
    buffer.set_string(at_values, y, fit(&heading, values_room), theme.style(Role::Title));
    y += 1;
    let below = if inner.height >= 4 { 2 } else { 0 };
    let height = usize::from(inner.height.saturating_sub(1 + below));
    if let Some(known) = app.heights.iter_mut().rev().find(|(known, _)| Some(*known) == view.pane) {
        known.1 = height;
    }
    let mut list = view.list;
    list.settle(history.versions.len(), height);
    let marks: Vec<&str> =
        history.first_live.as_deref().filter(|_| history.last_seeded.is_some()).into_iter().collect();
    let has_keys = view.pane == Some(app.pane);
    for (at, version) in history.versions.iter().enumerate().skip(list.offset).take(height) {
        let row = Rect { y, height: 1, ..inner };
        let mark = match () {
            () if view.picked == Some(version.number) => theme.pick("◆", "*"),
            () if at == list.cursor => theme.pick("▸", ">"),
            () => " ",
        };
        let line = Line::from(vec![
            Span::styled(format!("{mark}{:<4}", format!("v{}", version.number)), theme.style(Role::Title)),
            Span::raw(axis.bar(&interval(history, version), &marks, theme.is_ascii)),
            Span::raw("  "),
            Span::raw(fit(&values[at], values_room).into_owned()),
        ]);
        buffer.set_line(row.x, row.y, &line, row.width);
        if let Some(pane) = view.pane {
            cursor_row(app, buffer, row, at == list.cursor, has_keys);
            app.targets.push((row, Target::Row(pane, at)));
        }
        y += 1;
    }
    overflow(app, buffer, Rect { y: inner.y + 1, height: height as u16, ..inner }, list.offset, history.versions.len());
    if history.versions.is_empty() && height > 0 {
        let newest =
            history.events.last().map_or(String::new(), |event| format!("; its newest event is of {}", event.sequence));
        let text = format!("the key is not in the table now{newest}");
        buffer.set_string(inner.x + 1, y, fit(&text, total.saturating_sub(2)), theme.style(Role::Muted));
        y += 1;
    }
    if below > 0 && y + 1 < inner.bottom() {
        buffer.set_string(x, y, axis.pointer(view.time, theme.is_ascii), theme.style(Role::Key));
        let scale = if axis.is_to_scale() { "" } else { "   not to scale" };
        let boundary = match (&history.last_seeded, &history.first_live) {
            (Some(_), Some(live)) => format!("   {} first live {live}", theme.pick("┃", "|")),
            (Some(_), None) => "   no live event yet".to_string(),
            _ => String::new(),
        };
        let time = view.time.map_or(String::new(), |time| format!("at {time}"));
        let pinned = match view.pinned {
            Some(pinned) if view.time == Some(pinned) => ", to be compared".to_string(),
            Some(pinned) => format!(", compared with {pinned}"),
            None => String::new(),
        };
        let text = format!("{time}{pinned}{boundary}{scale}");
        buffer.set_string(x, y + 1, fit(&text, total.saturating_sub(NAMES)), theme.style(Role::Muted));
    }
}

/// The columns whose values tell versions apart, two of them at most; else the first two.
pub fn telling_columns(history: &KeyHistory) -> Vec<usize> {
    let differs = |at: &usize| {
        let mut values = history.versions.iter().map(|version| version.values.get(*at));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let is_narrow = |column: &Column| !column.data_type.starts_with("STRUCT");
    let mut telling: Vec<usize> = history.tracked.iter().copied().filter(|at| *at < history.columns.len()).collect();
    telling.sort_by_key(|at| (!differs(at), !is_narrow(&history.columns[*at]), *at));
    telling.truncate(2);
    telling.sort_unstable();
    telling
}
