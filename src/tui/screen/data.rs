//! The Data screen: the datasets, and the rows of the chosen one in all the room there is.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{explorer, pane_frame, rows};
use crate::app::{App, Pane};

/// Draws the screen.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let left = match (app.is_maximised, area.width) {
        (true, _) => 0,
        (false, width) if width >= 100 => 30,
        // Without room for both, the one that has the keys is shown.
        _ => 0,
    };
    if left == 0 && app.pane == Pane::Explorer {
        return explorer::draw(app, area, buffer);
    }
    if left > 0 {
        explorer::draw(app, Rect { width: left, ..area }, buffer);
    }
    let right = Rect { x: area.x + left, width: area.width - left, ..area };
    let (title, foot) = (rows::title(app), rows::foot(app));
    let inner = pane_frame(app, Pane::Rows, right, &title, &foot, buffer);
    rows::draw(app, Pane::Rows, inner, buffer);
}
