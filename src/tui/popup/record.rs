//! One row of a dataset, or one event, whole: a line a value, long ones folded.

use pipeline::event::Event;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::App;
use crate::screen::{popup_frame, time_of_day};
use crate::theme::Role;
use crate::widget::text::width;

/// Draws the row of the preview under the cursor.
pub fn draw_row(app: &mut App, scroll: usize, area: Rect, buffer: &mut Buffer) {
    let at = app.preview.list.cursor;
    let dataset = app.preview.dataset.clone().unwrap_or_default();
    let Some(row) = app.preview.rows.get(at) else { return };
    let values: Vec<(String, Option<String>)> = app
        .preview
        .columns
        .iter()
        .zip(row)
        .map(|(column, value)| (format!("{} {}", column.name, column.data_type), value.clone()))
        .collect();
    draw(app, &format!("{dataset} · row {}", at + 1), &values, scroll, area, buffer);
}

/// Draws the event under the cursor.
pub fn draw_event(app: &mut App, scroll: usize, area: Rect, buffer: &mut Buffer) {
    let Some((sequence, event)) = app.log_events().nth(app.events.cursor).cloned() else { return };
    let values = values(app, sequence, &event);
    draw(app, &format!("Event {sequence}"), &values, scroll, area, buffer);
}

fn values(app: &App, sequence: i64, event: &Event) -> Vec<(String, Option<String>)> {
    let mut values = vec![
        ("sequence".to_string(), Some(sequence.to_string())),
        ("time".to_string(), Some(time_of_day(app, event.time_us))),
        ("level".to_string(), Some(event.level.word().to_string())),
    ];
    let mut push = |name: &str, value: Option<String>| {
        if value.is_some() {
            values.push((name.to_string(), value));
        }
    };
    push("update", event.update.map(|n| n.to_string()));
    push("dataset", event.dataset.clone());
    push("flow", event.flow.clone());
    push("batch", event.batch.map(|n| n.to_string()));
    push("message", Some(event.message.clone()));
    if let Some(error) = &event.error {
        push("error", Some(format!("{}: {}", error.code, error.message)));
        push("help", error.help.clone());
    }
    push("details", serde_json::to_string_pretty(&event.details).ok());
    values
}

fn draw(
    app: &mut App,
    title: &str,
    values: &[(String, Option<String>)],
    scroll: usize,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = app.options.theme;
    let names = values.iter().map(|(name, _)| width(name)).max().unwrap_or(0).min(28);
    let room = usize::from(area.width.min(100)).saturating_sub(names + 6).max(8);
    let mut lines: Vec<(String, String, Style)> = Vec::new();
    for (name, value) in values {
        let style = theme.style(if value.is_some() { Role::Text } else { Role::Muted });
        let text = value.as_deref().unwrap_or("NULL");
        for (n, line) in text.lines().flat_map(|line| folded(line, room)).enumerate() {
            lines.push((if n == 0 { name.clone() } else { String::new() }, line, style));
        }
    }
    let inner = popup_frame(app, area, 100, lines.len() as u16, title, "j k scroll  Esc closes", buffer);
    let height = usize::from(inner.height);
    let scroll = scroll.min(lines.len().saturating_sub(height));
    for (n, (name, text, style)) in lines.into_iter().skip(scroll).take(height).enumerate() {
        let y = inner.y + n as u16;
        buffer.set_stringn(inner.x + 1, y, crate::widget::text::fit(&name, names), names, theme.style(Role::Title));
        let x = inner.x + 3 + names as u16;
        buffer.set_stringn(x, y, text, usize::from(inner.right().saturating_sub(x)), style);
    }
}

/// Cuts a line into pieces of at most `room` cells.
fn folded(line: &str, room: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut taken = 0;
    for c in line.chars() {
        let cells = width(c.encode_utf8(&mut [0; 4]));
        if taken + cells > room {
            pieces.push(String::new());
            taken = 0;
        }
        taken += cells;
        pieces.last_mut().expect("there is always one").push(c);
    }
    pieces
}
