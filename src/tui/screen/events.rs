//! The event log: time, level, flow, what happened. Only the rows that are seen are made.

use pipeline::event::Level;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{cursor_row, overflow, pane_frame, time_of_day};
use crate::action::Screen;
use crate::app::{App, Pane, Target};
use crate::theme::Role;
use crate::widget::text::{fit, fit_middle};

/// Draws the log.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let follow = if app.is_following { "follows" } else { "stands still" };
    let level = match (app.screen, app.level) {
        (Screen::Log, Level::Warn) => " · warnings and errors",
        (Screen::Log, Level::Error) => " · errors",
        _ => "",
    };
    let total = app.log_events().count();
    let foot = match total {
        0 => String::new(),
        total => format!("{} of {total} · Enter whole", app.events.cursor + 1),
    };
    let inner = pane_frame(app, Pane::Events, area, &format!("Event log · {follow}{level}"), &foot, buffer);
    if total == 0 {
        let text = match app.level {
            _ if app.known.events.is_empty() => "nothing has happened yet; r starts an update",
            Level::Error => "no event is an error; f shows all events",
            _ => "no event is a warning or an error; f twice shows all events",
        };
        buffer.set_string(inner.x + 1, inner.y, fit(text, usize::from(inner.width)), theme.style(Role::Muted));
        return;
    }
    let mut list = app.events;
    if app.is_following {
        list.cursor = total - 1;
    }
    list.settle(total, usize::from(inner.height));
    app.events = list;
    let rows: Vec<_> = app.log_events().skip(list.offset).take(usize::from(inner.height)).cloned().collect();
    let found = app.search.field.text().to_lowercase();
    for (n, (_, event)) in rows.iter().enumerate() {
        let row = Rect { y: inner.y + n as u16, height: 1, ..inner };
        let role = match event.level {
            Level::Error => Role::Error,
            Level::Warn => Role::Warning,
            Level::Info | Level::Metrics => Role::Muted,
        };
        let about = event.flow.as_deref().or(event.dataset.as_deref()).unwrap_or_default();
        let about_room = (usize::from(inner.width) / 5).clamp(8, 28);
        let about = fit_middle(about, about_room).into_owned();
        let pad = about_room.saturating_sub(crate::widget::text::width(&about));
        let is_found = !found.is_empty() && event.message.to_lowercase().contains(&found);
        let message = match &event.error {
            Some(error) => format!("{}: {}", event.message, error.message),
            None => event.message.clone(),
        };
        let line = Line::from(vec![
            Span::styled(format!(" {} ", time_of_day(app, event.time_us)), theme.style(Role::Muted)),
            Span::styled(format!("{:<5} ", event.level.word()), theme.style(role)),
            Span::raw(format!("{about}{:pad$} ", "")),
            Span::styled(
                fit(&message, usize::from(inner.width).saturating_sub(17 + about_room)).into_owned(),
                theme.style(if is_found { Role::Found } else { Role::Text }),
            ),
        ]);
        buffer.set_line(row.x, row.y, &line, row.width);
        let at = list.offset + n;
        cursor_row(app, buffer, row, at == list.cursor && app.pane == Pane::Events, true);
        app.targets.push((row, Target::Row(Pane::Events, at)));
    }
    overflow(app, buffer, inner, list.offset, total);
}
