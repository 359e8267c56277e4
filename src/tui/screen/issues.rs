//! What is wrong with the files: each finding with its place, the line it stands in, and how to fix it.

use pipeline::diagnostic::{Diagnostic, Severity};
use pipeline::text::line_column;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::cursor_row;
use crate::app::{App, Pane, Target};
use crate::theme::{Role, Theme};
use crate::widget::text::{fit, width};

/// The tab's title with the counts.
pub fn title(app: &App) -> String {
    match app.known.counts() {
        (0, 0) => "Issues".to_string(),
        (errors, 0) => format!("Issues ({errors})"),
        (errors, warnings) => format!("Issues ({errors}, {warnings})"),
    }
}

/// When it was checked.
pub fn foot(app: &App) -> String {
    match &app.known.verdict {
        Some(verdict) if app.known.is_checking() => format!("checking · rev {}", verdict.revision),
        Some(verdict) => format!("checked in {} ms · rev {}", verdict.took_ms, verdict.revision),
        None => String::new(),
    }
}

/// One line to draw, and the finding it belongs to.
struct Drawn {
    finding: usize,
    line: Line<'static>,
}

/// Draws the findings: the one under the cursor with its snippet, the others in one line.
pub fn draw(app: &mut App, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    if let Some(problem) = app.known.unreadable.clone() {
        buffer.set_string(
            inner.x + 1,
            inner.y,
            fit(&problem.message, usize::from(inner.width)),
            theme.style(Role::Error),
        );
        return;
    }
    let cursor = app.issues.cursor;
    let cells = usize::from(inner.width).saturating_sub(1);
    let mut drawn: Vec<Drawn> = Vec::new();
    let issues: Vec<Diagnostic> = app.issue_list().into_iter().cloned().collect();
    for (at, found) in issues.iter().enumerate() {
        let glyph = theme.severity_glyph(found.severity);
        let role = Theme::severity_role(found.severity);
        let place = app.place_of(found).unwrap_or_else(|| "workspace".to_string());
        let head = format!("{glyph} {place}  ");
        let room = cells.saturating_sub(width(&head));
        drawn.push(Drawn {
            finding: at,
            line: Line::from(vec![
                Span::styled(head, theme.style(role)),
                Span::raw(fit(&one_line(&found.message), room).into_owned()),
            ]),
        });
        if at == cursor {
            let details = details(app, found, cells).into_iter();
            drawn.extend(details.map(|line| Drawn { finding: at, line }));
        }
    }
    if drawn.is_empty() {
        let (role, text) = match app.known.is_checking() {
            true => (Role::Muted, "checking the files…"),
            false => (Role::Good, "nothing is wrong with the files"),
        };
        buffer.set_string(inner.x + 1, inner.y, text, theme.style(role));
        return;
    }
    // The finding under the cursor is seen whole, if there is room.
    let height = usize::from(inner.height);
    let first = drawn.iter().position(|drawn| drawn.finding == cursor).unwrap_or(0);
    let end = drawn.iter().rposition(|drawn| drawn.finding == cursor).map_or(first, |last| last + 1);
    let offset = end.saturating_sub(height).min(first);
    let has_keys = app.pane == Pane::Tabs;
    for (n, line) in drawn.iter().skip(offset).take(height).enumerate() {
        let area = Rect { y: inner.y + n as u16, height: 1, ..inner };
        buffer.set_line(area.x, area.y, &line.line, area.width);
        let is_head = offset + n == first;
        cursor_row(app, buffer, area, is_head && line.finding == cursor, has_keys);
        app.targets.push((area, Target::Row(Pane::Tabs, line.finding)));
    }
    super::overflow(app, buffer, inner, offset, drawn.len());
}

/// A text of several lines on one.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The line it stands in with the place marked, why, and how to fix it.
fn details(app: &App, found: &Diagnostic, cells: usize) -> Vec<Line<'static>> {
    let theme = app.options.theme;
    let mut lines = Vec::new();
    if let (Some(span), Some(verdict)) = (found.span, &app.known.verdict)
        && let Some(file) = verdict.pipeline.workspace.files.get(span.file.0)
    {
        let at = line_column(&file.text, span.start);
        let text = file.text.lines().nth(at.line - 1).unwrap_or_default().replace('\t', " ");
        let before: String = text.chars().take(at.column - 1).collect();
        let rest = &file.text
            [span.start.min(file.text.len())..span.end.min(file.text.len()).max(span.start.min(file.text.len()))];
        let marked = width(rest.lines().next().unwrap_or_default()).max(1);
        let number = format!("{:>5} ", at.line);
        let bar = theme.pick("│ ", "| ");
        // A long line is shown from where its place is in sight.
        let room = cells.saturating_sub(width(&number) + 2).max(1);
        let skip = (width(&before) + marked.min(room / 2)).saturating_sub(room);
        let shown: String = text.chars().skip(skip).collect();
        lines.push(Line::from(vec![
            Span::styled(format!("{number}{bar}"), theme.style(Role::Muted)),
            Span::raw(fit(&shown, room).into_owned()),
        ]));
        let indent = width(&before).saturating_sub(skip);
        let mark = "^".repeat(marked.min(room.saturating_sub(indent)));
        let reason = found.reason.as_deref().unwrap_or_default();
        let reason_room = room.saturating_sub(indent + mark.len() + 1);
        lines.push(Line::from(vec![
            Span::styled(format!("      {bar}"), theme.style(Role::Muted)),
            Span::styled(
                format!("{}{mark} {}", " ".repeat(indent), fit(&one_line(reason), reason_room)),
                theme.style(Theme::severity_role(found.severity)),
            ),
        ]));
    } else if let Some(reason) = &found.reason {
        lines.push(Line::from(format!("      {}", fit(&one_line(reason), cells.saturating_sub(6)))));
    }
    for label in &found.labels {
        let place = app
            .known
            .verdict
            .as_ref()
            .map(|verdict| pipeline::diagnostic::place(&verdict.pipeline.workspace.files, label.span));
        let text = format!("      {}  {}", place.unwrap_or_default(), one_line(&label.message));
        lines.push(Line::styled(fit(&text, cells).into_owned(), theme.style(Role::Muted)));
    }
    if let Some(blocks) = found.blocks_in_words() {
        let text = format!("      {blocks}");
        lines.push(Line::styled(fit(&text, cells).into_owned(), theme.style(Role::Warning)));
    }
    if let Some(help) = &found.help {
        let fix = if found.edit.is_some() { "  (a applies it)" } else { "" };
        // Its lines may be SQL to copy.
        for (n, line) in format!("{help}{fix}").lines().enumerate() {
            let arrow = if n == 0 { theme.pick("→", "->") } else { " " };
            let text = format!("      {arrow} {line}");
            lines.push(Line::styled(fit(&text, cells).into_owned(), theme.style(Role::Good)));
        }
    }
    if found.severity == Severity::Error
        && let Some(condition) = found.condition
    {
        let text = format!("      {} · {condition}", found.code);
        lines.push(Line::styled(fit(&text, cells).into_owned(), theme.style(Role::Muted)));
    }
    lines
}
