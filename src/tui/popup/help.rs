//! The keys, from the table of actions: those of this screen first, filtered as one types.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::action::{ACTIONS, Row, Screen};
use crate::app::App;
use crate::app::field::Field;
use crate::app::list::List;
use crate::screen::popup_frame;
use crate::theme::Role;
use crate::widget::text::fit;

/// The rows that hold `filter` in a key, a word or the sentence; what works here first.
pub fn rows(filter: &str, screen: Screen) -> Vec<&'static Row> {
    let filter = filter.to_lowercase();
    let holds = |row: &&Row| {
        filter.is_empty()
            || keys(row).to_lowercase().contains(&filter)
            || row.hint.contains(&filter)
            || row.doc.to_lowercase().contains(&filter)
    };
    let is_here = |row: &&Row| row.screens.contains(&screen);
    let (own, other): (Vec<&Row>, Vec<&Row>) = ACTIONS.iter().filter(holds).partition(is_here);
    let (everywhere, elsewhere): (Vec<&Row>, Vec<&Row>) = other.into_iter().partition(|row| row.screens.is_empty());
    own.into_iter().chain(everywhere).chain(elsewhere).collect()
}

/// The keys of an action as people read them: `]d`, `k Up`.
pub fn keys(row: &Row) -> String {
    row.keys.iter().map(|keys| keys.replace(' ', "")).collect::<Vec<_>>().join(" ")
}

/// Draws the popup.
pub fn draw(app: &mut App, filter: &Field, list: &List, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let rows = rows(filter.text(), app.screen);
    let title = format!("Keys · {}", app.screen.title());
    let inner =
        popup_frame(app, area, 100, rows.len() as u16 + 1, &title, "type to filter  Enter does it  Esc closes", buffer);
    let mut list = *list;
    let height = usize::from(inner.height.saturating_sub(1));
    list.settle(rows.len(), height);
    let (before, after) = filter.around_cursor();
    let line = Line::from(vec![
        Span::raw("/ "),
        Span::raw(before),
        Span::styled("▏", theme.style(Role::Key)),
        Span::raw(after),
    ]);
    buffer.set_line(inner.x, inner.y, &line, inner.width);
    for (at, row) in rows.iter().enumerate().skip(list.offset).take(height) {
        let y = inner.y + 1 + (at - list.offset) as u16;
        let place = match row.screens {
            [] => String::new(),
            screens => screens.iter().map(|screen| screen.title()).collect::<Vec<_>>().join(", "),
        };
        let doc_width = usize::from(inner.width).saturating_sub(28);
        let line = Line::from(vec![
            Span::styled(format!(" {:<16}", keys(row)), theme.style(Role::Key)),
            Span::styled(format!("{place:<7} "), theme.style(Role::Muted)),
            Span::raw(fit(row.doc, doc_width).into_owned()),
        ]);
        buffer.set_line(inner.x, y, &line, inner.width);
        crate::screen::cursor_row(app, buffer, Rect { y, height: 1, ..inner }, at == list.cursor, true);
        app.targets.push((Rect { y, height: 1, ..inner }, crate::app::Target::PopupRow(at)));
    }
}
