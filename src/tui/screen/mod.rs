//! Drawing: the state of the workbench into the cells of a terminal. Nothing here changes what is known or chosen;
//! it only notes where things were drawn, for the mouse, and how many rows each pane had.
//!
//! - `frame.rs`: the first line, the hints, the message; `graph.rs`, `runs.rs`, `data.rs`: one screen each;
//!   the Log screen is `events.rs` alone
//! - `explorer.rs`, `lineage.rs`, `picture.rs`: the pipeline as a tree, as a list, as a graph
//! - `scd.rs`, `cutover.rs`: the views of AUTO CDC tables; `versions.rs`, `key_events.rs`, `detail.rs`: their panes
//! - `issues.rs`, `rows.rs`, `schema.rs`, `flows.rs`, `events.rs`: what stands in the panes

mod cutover;
mod data;
mod detail;
mod events;
mod explorer;
mod flows;
mod frame;
mod graph;
mod issues;
mod key_events;
mod lineage;
mod picture;
mod rows;
mod runs;
mod schema;
mod scd;
mod versions;
mod words;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Widget};

use crate::action::Screen;
use crate::app::{App, Pane, Target};
use crate::popup::{Popup, confirm, help, menu, palette, record};
use crate::theme::Role;
use crate::widget::text::fit;

pub use words::time_of_day;

/// Less than this is no workbench.
const WIDTH_MIN: u16 = 40;
const HEIGHT_MIN: u16 = 12;

/// Draws everything.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    draw_screen(app, area, buffer);
    if app.options.theme.is_ascii {
        buffer.content.iter_mut().filter(|cell| !cell.symbol().is_ascii()).for_each(|cell| {
            let ascii = ascii(cell.symbol());
            cell.set_symbol(ascii);
        });
    }
}

/// What stands for a character where only ASCII is drawn: signs of ours that have no role in the theme, and
/// whatever the user's texts and rows hold.
fn ascii(symbol: &str) -> &'static str {
    match symbol {
        "·" | "–" => "-",
        "…" => "~",
        "▏" | "│" => "|",
        "→" => ">",
        "←" => "<",
        "×" => "x",
        "±" => "~",
        _ => "?",
    }
}

fn draw_screen(app: &mut App, area: Rect, buffer: &mut Buffer) {
    app.targets.clear();
    app.heights.clear();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text = format!("too small: {WIDTH_MIN}×{HEIGHT_MIN} needed");
        for (n, line) in
            text.as_bytes().chunks(usize::from(area.width.max(1))).take(usize::from(area.height)).enumerate()
        {
            // The text has one character that is not ASCII; a cut through it is drawn as a blank.
            let line = String::from_utf8_lossy(line).replace('\u{fffd}', "x");
            buffer.set_stringn(area.x, area.y + n as u16, line, usize::from(area.width), Style::new());
        }
        return;
    }
    let body = frame::draw(app, area, buffer);
    match app.screen {
        Screen::Graph => graph::draw(app, body, buffer),
        Screen::Runs => runs::draw(app, body, buffer),
        Screen::Data => data::draw(app, body, buffer),
        Screen::Scd => scd::draw(app, body, buffer),
        Screen::Cutover => cutover::draw(app, body, buffer),
        Screen::Log => events::draw(app, body, buffer),
    }
    // Drawn from below upwards; each needs the others only for where the mouse is.
    let popups = std::mem::take(&mut app.popups);
    for popup in &popups {
        app.targets.push((area, Target::Screen(app.screen)));
        match popup {
            Popup::Help { filter, list } => help::draw(app, filter, list, body, buffer),
            Popup::Palette { field, list } => palette::draw(app, field, list, body, buffer),
            Popup::Menu(menu) => menu::draw(app, menu, body, buffer),
            Popup::Confirm(question) => confirm::draw(app, question, body, buffer),
            Popup::Record { scroll } => record::draw_row(app, *scroll, body, buffer),
            Popup::Event { scroll } => record::draw_event(app, *scroll, body, buffer),
            Popup::Time { kind, field } => {
                let title = format!("Time · {kind}");
                let inner = popup_frame(app, body, 60, 1, &title, "Enter shows the table at it  Esc closes", buffer);
                let (before, after) = field.around_cursor();
                let role = if field.is_selected() { Role::Cursor } else { Role::Text };
                let line = Line::from(vec![
                    Span::raw("@ "),
                    Span::styled(before, app.options.theme.style(role)),
                    Span::styled("▏", app.options.theme.style(Role::Key)),
                    Span::raw(after),
                ]);
                buffer.set_line(inner.x, inner.y, &line, inner.width);
            }
            Popup::Quit => {
                let inner = popup_frame(app, body, 70, 4, "An update runs", "Esc stays", buffer);
                for (n, text) in [
                    "s  stop it at its batch boundary, then leave",
                    "n  stay",
                    "",
                    "What is committed is kept; the next update goes on from there.",
                ]
                .into_iter()
                .enumerate()
                .take(usize::from(inner.height))
                {
                    let line = fit(text, usize::from(inner.width).saturating_sub(2)).into_owned();
                    buffer.set_string(inner.x + 1, inner.y + n as u16, line, Style::new());
                }
            }
        }
    }
    app.popups = popups;
}

/// Draws the border of a pane, bold if it has the keys; returns its inside.
fn pane_frame(app: &mut App, pane: Pane, area: Rect, title: &str, foot: &str, buffer: &mut Buffer) -> Rect {
    let theme = app.options.theme;
    let has_keys = app.pane == pane;
    app.targets.push((area, Target::Pane(pane)));
    let role = if has_keys { Role::Focus } else { Role::Border };
    let block = frame_block(app, role);
    let inner = block.inner(area);
    block.render(area, buffer);
    let room = usize::from(area.width.saturating_sub(4));
    let title_style = theme.style(if has_keys { Role::Focus } else { Role::Title });
    if area.height > 0 && room > 0 {
        if !title.is_empty() {
            buffer.set_string(area.x + 2, area.y, fit(&format!(" {title} "), room), title_style);
        }
        if !foot.is_empty() && area.height > 1 {
            let foot = fit(foot, room).into_owned();
            let foot = format!(" {foot} ");
            let cells = crate::widget::text::width(&foot) as u16;
            let x = area.right().saturating_sub(cells + 1).max(area.x + 1);
            buffer.set_stringn(x, area.bottom() - 1, foot, room + 2, theme.style(Role::Muted));
        }
    }
    app.heights.push((pane, usize::from(inner.height)));
    inner
}

fn frame_block(app: &App, role: Role) -> Block<'static> {
    let theme = app.options.theme;
    let block = Block::bordered().border_style(theme.style(role));
    match theme.is_ascii {
        true => block.border_set(ratatui::symbols::border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        }),
        false => block.border_type(BorderType::Rounded),
    }
}

/// Draws an empty popup in the middle of `area`; returns its inside.
pub fn popup_frame(
    app: &mut App,
    area: Rect,
    width: u16,
    height: u16,
    title: &str,
    foot: &str,
    buffer: &mut Buffer,
) -> Rect {
    let width = width.min(area.width);
    let height = height.saturating_add(2).clamp(3, area.height.max(3)).min(area.height);
    let popup = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(popup, buffer);
    let block = frame_block(app, Role::Focus);
    let inner = block.inner(popup);
    block.render(popup, buffer);
    let theme = app.options.theme;
    let room = usize::from(width.saturating_sub(4));
    if height > 1 {
        buffer.set_string(popup.x + 2, popup.y, fit(&format!(" {title} "), room), theme.style(Role::Focus));
        let foot = fit(&format!(" {foot} "), room).into_owned();
        let cells = crate::widget::text::width(&foot) as u16;
        buffer.set_string(popup.right().saturating_sub(cells + 2), popup.bottom() - 1, foot, theme.style(Role::Muted));
    }
    inner
}

/// Marks the row under a cursor.
pub fn cursor_row(app: &App, buffer: &mut Buffer, row: Rect, is_cursor: bool, has_keys: bool) {
    if is_cursor {
        let theme = app.options.theme;
        buffer.set_style(row, theme.style(if has_keys { Role::Cursor } else { Role::DimCursor }));
        if has_keys {
            // A dim text on a reversed ground can't be read.
            buffer.set_style(row, Style::new().remove_modifier(Modifier::DIM));
        }
    }
}

/// Rows below and above a list that don't fit are told by an arrow at its right edge.
fn overflow(app: &App, buffer: &mut Buffer, inner: Rect, offset: usize, len: usize) {
    let theme = app.options.theme;
    if inner.height == 0 || inner.width == 0 {
        return;
    }
    let x = inner.right() - 1;
    if offset > 0 {
        buffer.set_string(x, inner.y, theme.pick("↑", "^"), theme.style(Role::Muted));
    }
    if len > offset + usize::from(inner.height) {
        buffer.set_string(x, inner.bottom() - 1, theme.pick("↓", "v"), theme.style(Role::Muted));
    }
}
