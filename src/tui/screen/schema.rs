//! The columns of the chosen dataset: names, types, comments.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{cursor_row, overflow};
use crate::app::{App, Pane, Target};
use crate::theme::Role;
use crate::widget::text::{fit, width};

/// Where the dataset is defined, and what it is.
pub fn foot(app: &App) -> String {
    let Some((pipeline, _)) = app.known.shown() else { return String::new() };
    let Some(id) = app.chosen_dataset() else { return String::new() };
    let dataset = pipeline.graph.dataset(id);
    let place = pipeline::diagnostic::place(&pipeline.workspace.files, dataset.definition.name.span);
    format!("{} · {place}", dataset.kind().words())
}

/// Draws the columns.
pub fn draw(app: &mut App, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let Some(id) = app.chosen_dataset() else {
        buffer.set_string(inner.x + 1, inner.y, "choose a dataset to see its columns", theme.style(Role::Muted));
        return;
    };
    let fields = app.known.verdict.as_ref().and_then(|verdict| verdict.columns.get(id.0)?.clone());
    let mut y = inner.y;
    let comment = app.known.graph().and_then(|graph| graph.dataset(id).definition.comment.clone());
    if let Some(comment) = comment.filter(|_| inner.height > 2) {
        buffer.set_string(inner.x + 1, y, fit(&comment, usize::from(inner.width)), theme.style(Role::Muted));
        y += 1;
    }
    let Some(fields) = fields else {
        let text = match app.known.is_checking() {
            true => "looking at the sources…",
            false => "not known: see Issues, or nothing was read yet",
        };
        buffer.set_string(inner.x + 1, y, text, theme.style(Role::Muted));
        return;
    };
    let room = Rect { y, height: inner.bottom() - y, ..inner };
    let names = fields.iter().map(|field| width(&field.name)).max().unwrap_or(0).min(32);
    let mut list = app.schema;
    list.settle(fields.len(), usize::from(room.height));
    app.schema = list;
    for (at, field) in fields.iter().enumerate().skip(list.offset).take(usize::from(room.height)) {
        let row = Rect { y: room.y + (at - list.offset) as u16, height: 1, ..room };
        let name = fit(&field.name, names).into_owned();
        let pad = names - width(&name);
        let null = if field.is_nullable { "" } else { " NOT NULL" };
        let comment = field.comment.as_ref().map(|comment| format!("  {comment}")).unwrap_or_default();
        let line = Line::from(vec![
            Span::raw(format!(" {name}{:pad$}  ", "")),
            Span::styled(format!("{}{null}", field.data_type), theme.style(Role::Key)),
            Span::styled(comment, theme.style(Role::Muted)),
        ]);
        buffer.set_line(row.x, row.y, &line, row.width);
        cursor_row(app, buffer, row, at == list.cursor && app.pane == Pane::Tabs, true);
        app.targets.push((row, Target::Row(Pane::Tabs, at)));
    }
    overflow(app, buffer, room, list.offset, fields.len());
}
