//! The events of a key in the order of their sequence, and what each did to the table.

use pipeline::scd::{Effect, EventKind, KeyEvent, KeyHistory};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::rows::one_line;
use super::versions::telling_columns;
use super::{cursor_row, overflow};
use crate::app::list::List;
use crate::app::{App, Pane, Target};
use crate::theme::Role;
use crate::widget::text::{fit, fit_middle, width};

/// What an event did, in words.
fn effect(event: &KeyEvent) -> String {
    let version = event.version.map_or(String::new(), |version| format!(" v{version}"));
    match event.effect {
        Effect::Opens => format!("opens{version}"),
        Effect::Repeats => format!("goes on with{version}"),
        Effect::FillsIn => format!("fills in{version}"),
        Effect::Deletes if event.version.is_none() => "deletes the row".to_string(),
        Effect::Deletes => format!("ends{version}"),
        Effect::DeletesNothing => "deletes nothing".to_string(),
        Effect::Superseded => "a later one holds".to_string(),
        Effect::Voided => "made void".to_string(),
    }
}

/// Draws the events; the boundary between seed and live feed is a line of its own.
pub fn draw(app: &mut App, pane: Pane, history: &KeyHistory, list: List, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    if inner.height < 2 {
        return;
    }
    let shown = telling_columns(history);
    let values = |event: &KeyEvent| {
        let values = shown.iter().map(|at| match event.values.get(*at) {
            Some(Some(value)) => one_line(value),
            Some(None) => "NULL".to_string(),
            None => String::new(),
        });
        values.collect::<Vec<_>>().join("  ")
    };
    let widest = |heading: &str, texts: &mut dyn Iterator<Item = usize>, max: usize| {
        texts.chain([width(heading)]).max().unwrap_or(0).min(max)
    };
    let sequence = widest("sequence", &mut history.events.iter().map(|event| width(&event.sequence)), 29);
    let flow = widest("flow", &mut history.events.iter().map(|event| width(&event.flow)), usize::from(inner.width) / 5);
    let batch = widest("b", &mut history.events.iter().map(|event| width(&event.batch.to_string())), 20);
    let heading = shown.iter().map(|at| history.columns[*at].name.as_str()).collect::<Vec<_>>().join("  ");
    let cells =
        widest(&heading, &mut history.events.iter().map(|event| width(&values(event))), usize::from(inner.width) / 4);
    let pad = |text: &str, cells: usize| {
        let text = fit_middle(text, cells).into_owned();
        format!("{text}{}", " ".repeat(cells - width(&text)))
    };
    let head = format!(
        " {}  {}  {:>batch$} op {}  effect",
        pad("sequence", sequence),
        pad("flow", flow),
        "b",
        pad(&heading, cells)
    );
    buffer.set_string(inner.x, inner.y, fit(&head, usize::from(inner.width)), theme.style(Role::Title));
    let height = usize::from(inner.height) - 1;
    if let Some(known) = app.heights.iter_mut().rev().find(|(known, _)| *known == pane) {
        known.1 = height;
    }
    let mut list = list;
    list.settle(history.events.len(), height);
    let has_keys = app.pane == pane;
    // Between the last seeded event and the first live one, if all seeded ones come before all live ones.
    let boundary = history
        .events
        .iter()
        .position(|event| !event.is_seed)
        .filter(|first| *first > 0 && history.events[*first..].iter().all(|event| !event.is_seed));
    let mut y = inner.y + 1;
    for (at, event) in history.events.iter().enumerate().skip(list.offset) {
        if boundary == Some(at) && at > list.offset && y + 1 < inner.bottom() {
            let line = theme.pick("══", "==").repeat(2);
            let text = format!(" {line} the live feed takes over {line}");
            buffer.set_string(inner.x, y, fit(&text, usize::from(inner.width)), theme.style(Role::Key));
            y += 1;
        }
        if y >= inner.bottom() {
            break;
        }
        let row = Rect { y, height: 1, ..inner };
        let (op, role) = match event.kind {
            EventKind::Upsert => ("U", Role::Text),
            EventKind::Delete => ("D", Role::Warning),
            EventKind::Absence => ("A", Role::Warning),
            EventKind::Truncate => ("T", Role::Warning),
        };
        let mut marks = String::new();
        // Where the boundary is a line, it says so.
        if event.is_seed && boundary.is_none() {
            marks.push_str(" seed");
        }
        if event.is_late {
            marks.push_str(&format!(" {}", theme.pick("↺ late", "late")));
        }
        let is_void = matches!(event.effect, Effect::Superseded | Effect::Voided | Effect::DeletesNothing);
        let line = Line::from(vec![
            Span::raw(format!(
                " {}  {}  {:>batch$} ",
                pad(&event.sequence, sequence),
                pad(&event.flow, flow),
                event.batch
            )),
            Span::styled(format!("{op}  "), theme.style(role)),
            Span::raw(format!("{}  ", pad(&values(event), cells))),
            Span::styled(effect(event), theme.style(if is_void { Role::Muted } else { Role::Text })),
            Span::styled(marks, theme.style(if event.is_late { Role::Warning } else { Role::Muted })),
        ]);
        buffer.set_line(row.x, row.y, &line, row.width);
        cursor_row(app, buffer, row, at == list.cursor, has_keys);
        app.targets.push((row, Target::Row(pane, at)));
        y += 1;
    }
    if history.events.is_empty() {
        buffer.set_string(inner.x + 1, y, "no event is stored", theme.style(Role::Muted));
    }
    overflow(
        app,
        buffer,
        Rect { y: inner.y + 1, height: inner.height - 1, ..inner },
        list.offset,
        history.events.len(),
    );
}

/// What is said below the events.
pub fn foot(history: &KeyHistory) -> &'static str {
    match history.keeps_all_events {
        true => "",
        false => "events before a whole row may be gone",
    }
}
