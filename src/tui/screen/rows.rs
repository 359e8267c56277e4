//! A dataset's rows in columns: only those that are seen are formatted.

use pipeline::report::Column;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{cursor_row, overflow};
use crate::app::list::List;
use crate::app::preview::ROWS_KEPT;
use crate::app::{App, Node, Pane, Target};
use crate::theme::{Role, Theme};
use crate::widget::text::{fit, width};

/// No column is wider, as long as others want the room.
const COLUMN_MAX: usize = 40;

/// The tab's title.
pub fn title(app: &App) -> String {
    match &app.chosen {
        Some(Node::Dataset(label)) => format!("Preview {}", crate::widget::text::fit_middle(label, 28)),
        _ => "Preview".to_string(),
    }
}

/// How many rows there are, and where the cursor is.
pub fn foot(app: &App) -> String {
    let preview = &app.preview;
    let Some(Node::Dataset(label)) = &app.chosen else { return String::new() };
    if preview.is_waiting(label) || preview.rows.is_empty() {
        return String::new();
    }
    let known = app.known.dataset_status(label).and_then(|dataset| dataset.table.as_ref()?.rows);
    let total = match (preview.is_whole, known) {
        (true, _) => pipeline::number::count(preview.rows.len() as u64),
        (false, Some(rows)) => pipeline::number::count(rows.max(preview.rows.len() as u64)),
        (false, None) => format!("more than {}", pipeline::number::count(preview.rows.len() as u64)),
    };
    let cap = match preview.rows.len() >= ROWS_KEPT {
        true => format!(
            " · the first {} are shown: flowbench show {label} --where …",
            pipeline::number::count(ROWS_KEPT as u64)
        ),
        false => String::new(),
    };
    format!("row {} of {total}{cap} · Enter record", pipeline::number::count(preview.list.cursor as u64 + 1))
}

/// Draws the rows of the chosen dataset.
pub fn draw(app: &mut App, pane: Pane, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let say = |buffer: &mut Buffer, role: Role, text: &str| {
        let text = fit(text, usize::from(inner.width).saturating_sub(2)).into_owned();
        buffer.set_string(inner.x + 1, inner.y, text, theme.style(role));
    };
    let Some(Node::Dataset(label)) = app.chosen.clone() else {
        say(buffer, Role::Muted, "choose a dataset to see its rows");
        return;
    };
    if app.preview.is_waiting(&label) {
        say(buffer, Role::Muted, "fetching rows…");
        return;
    }
    if let Some(problem) = app.preview.problem.clone().filter(|_| app.preview.rows.is_empty()) {
        let is_empty = problem.code == "nothing-stored";
        say(buffer, if is_empty { Role::Muted } else { Role::Error }, &problem.message);
        if let Some(help) = problem.help.as_ref().filter(|_| inner.height > 1) {
            let help = if is_empty { "r starts an update" } else { help };
            buffer.set_string(inner.x + 1, inner.y + 1, fit(help, usize::from(inner.width)), theme.style(Role::Muted));
        }
        return;
    }
    if inner.height < 2 {
        return;
    }
    let height = usize::from(inner.height) - 1;
    // The heading takes one of the rows that the frame counted.
    if let Some(known) = app.heights.iter_mut().rev().find(|(known, _)| *known == pane) {
        known.1 = height;
    }
    app.preview.settle(height);
    let preview = &app.preview;
    let list = preview.list;
    let table = Table { columns: &preview.columns, rows: &preview.rows, list, first_column: preview.column };
    let targets = table.draw(theme, inner, buffer);
    let len = preview.rows.len();
    if len == 0 {
        buffer.set_string(inner.x + 1, inner.y + 1, "no rows", theme.style(Role::Muted));
    }
    let has_keys = app.pane == pane;
    for (area, row) in targets {
        cursor_row(app, buffer, area, row == list.cursor, has_keys);
        app.targets.push((area, Target::Row(pane, row)));
    }
    overflow(app, buffer, Rect { y: inner.y + 1, height: inner.height - 1, ..inner }, list.offset, len);
}

/// Rows in columns below a heading.
pub struct Table<'a> {
    pub columns: &'a [Column],
    pub rows: &'a [Vec<Option<String>>],
    pub list: List,
    pub first_column: usize,
}

impl Table<'_> {
    /// Draws what fits; returns where each row is.
    pub fn draw(&self, theme: Theme, inner: Rect, buffer: &mut Buffer) -> Vec<(Rect, usize)> {
        if inner.height < 2 {
            return Vec::new();
        }
        let height = usize::from(inner.height) - 1;
        let len = self.rows.len();
        let shown = &self.rows[self.list.offset.min(len)..(self.list.offset + height).min(len)];
        let mut columns: Vec<(usize, usize)> = Vec::new();
        let mut left = usize::from(inner.width).saturating_sub(1);
        for (index, column) in self.columns.iter().enumerate().skip(self.first_column) {
            let cells = shown.iter().map(|row| row.get(index).and_then(Option::as_deref).map_or(4, cell_width));
            let wanted = cells.chain([width(&column.name)]).max().unwrap_or(0).clamp(2, COLUMN_MAX);
            if left < 4 {
                break;
            }
            let cells = wanted.min(left);
            columns.push((index, cells));
            left = left.saturating_sub(cells + 2);
        }
        let hidden = self.columns.len().saturating_sub(self.first_column + columns.len());
        let mut x = inner.x + 1;
        for (index, cells) in &columns {
            let column = &self.columns[*index];
            let name = fit(&column.name, *cells).into_owned();
            let pad = if column.is_numeric { cells - width(&name) } else { 0 };
            buffer.set_string(x + pad as u16, inner.y, name, theme.style(Role::Title));
            x += *cells as u16 + 2;
        }
        if self.first_column > 0 {
            buffer.set_string(inner.x, inner.y, theme.pick("‹", "<"), theme.style(Role::Key));
        }
        if hidden > 0 {
            let more = format!("{}{hidden}", theme.pick("›", ">"));
            buffer.set_string(inner.right().saturating_sub(width(&more) as u16), inner.y, more, theme.style(Role::Key));
        }
        let mut targets = Vec::new();
        for (n, row) in shown.iter().enumerate() {
            let y = inner.y + 1 + n as u16;
            let mut spans = vec![Span::raw(" ")];
            for (index, cells) in &columns {
                let (text, role) = match row.get(*index).and_then(Option::as_deref) {
                    Some(text) => (one_line(text), Role::Text),
                    None => ("NULL".to_string(), Role::Muted),
                };
                let text = fit(&text, *cells).into_owned();
                let pad = " ".repeat(cells - width(&text));
                let is_numeric = self.columns[*index].is_numeric && role == Role::Text;
                let text = if is_numeric { format!("{pad}{text}  ") } else { format!("{text}{pad}  ") };
                spans.push(Span::styled(text, theme.style(role)));
            }
            let area = Rect { y, height: 1, ..inner };
            buffer.set_line(area.x, y, &Line::from(spans), area.width);
            targets.push((area, self.list.offset + n));
        }
        targets
    }
}

fn cell_width(text: &str) -> usize {
    // Nothing past the widest column can matter.
    width(&text.chars().take(COLUMN_MAX + 1).collect::<String>())
}

/// Control characters as signs, so that a row stays a row.
pub fn one_line(text: &str) -> String {
    text.chars()
        .take(COLUMN_MAX * 2)
        .map(|c| match c {
            '\n' => '⏎',
            '\t' => '→',
            c if c.is_control() => '·',
            c => c,
        })
        .collect()
}
