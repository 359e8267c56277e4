//! The Graph screen: explorer, graph, and below it issues, preview, schema or flows.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{explorer, flows, issues, lineage, pane_frame, picture, rows, schema};
use crate::app::{App, Pane, Tab, Target};
use crate::theme::Role;
use crate::widget::text::width;

/// From this width on the explorer stands beside the graph.
const EXPLORER_FROM: u16 = 100;
const EXPLORER_WIDTH: u16 = 30;

/// Draws the screen.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    if app.is_maximised {
        return match app.pane {
            Pane::Explorer => explorer::draw(app, area, buffer),
            Pane::Tabs => tabs(app, area, buffer),
            _ => main(app, area, buffer),
        };
    }
    let (left, right) = match area.width >= EXPLORER_FROM {
        true => (
            Some(Rect { width: EXPLORER_WIDTH, ..area }),
            Rect { x: area.x + EXPLORER_WIDTH, width: area.width - EXPLORER_WIDTH, ..area },
        ),
        false => (None, area),
    };
    if let Some(left) = left {
        explorer::draw(app, left, buffer);
    }
    let below = match area.height {
        0..16 => 0,
        // The rows of a table want room; what is wrong does too.
        height if height >= 28 => height * 9 / 20,
        height => height * 2 / 5,
    };
    let above = Rect { height: right.height - below, ..right };
    match (app.pane, left) {
        // Without room for both, the explorer takes the graph's place when it has the keys.
        (Pane::Explorer, None) => explorer::draw(app, above, buffer),
        (Pane::Tabs, _) if below == 0 => return tabs(app, right, buffer),
        _ => main(app, above, buffer),
    }
    if below > 0 {
        tabs(app, Rect { y: above.bottom(), height: below, ..right }, buffer);
    }
}

fn main(app: &mut App, area: Rect, buffer: &mut Buffer) {
    match app.draws_list() {
        true => lineage::draw(app, area, buffer),
        false => picture::draw(app, area, buffer),
    }
}

fn tabs(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let foot = match app.tab {
        Tab::Issues => issues::foot(app),
        Tab::Preview => rows::foot(app),
        Tab::Schema => schema::foot(app),
        Tab::Flows => "Enter shows it on Runs".to_string(),
    };
    let inner = pane_frame(app, Pane::Tabs, area, "", &foot, buffer);
    let mut x = area.x + 2;
    for tab in Tab::ALL {
        let title = match tab {
            Tab::Issues => issues::title(app),
            Tab::Preview => rows::title(app),
            tab => tab.title().to_string(),
        };
        let title = format!(" {title} ");
        let cells = width(&title) as u16;
        if x + cells > area.right().saturating_sub(1) {
            break;
        }
        let role = match (app.tab == tab, app.pane == Pane::Tabs) {
            (true, true) => Role::Focus,
            (true, false) => Role::Title,
            (false, _) => Role::Muted,
        };
        buffer.set_string(x, area.y, &title, theme.style(role));
        app.targets.push((Rect { x, y: area.y, width: cells, height: 1 }, Target::Tab(tab)));
        x += cells;
    }
    match app.tab {
        Tab::Issues => issues::draw(app, inner, buffer),
        Tab::Preview => rows::draw(app, Pane::Tabs, inner, buffer),
        Tab::Schema => schema::draw(app, inner, buffer),
        Tab::Flows => flows::draw(app, Pane::Tabs, inner, buffer),
    }
}
