//! The Log screen: the whole event log.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::events;
use crate::app::App;

/// Draws the screen.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    events::draw(app, area, buffer);
}
