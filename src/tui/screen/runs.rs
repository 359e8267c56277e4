//! The Runs screen: the flows of the update, what is known of the one under the cursor, the newest events.

use pipeline::event::State;
use pipeline::number::{bytes, count, counted};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::words::sparkline;
use super::{events, flows, pane_frame};
use crate::app::{App, Pane};
use crate::theme::{Role, Theme};
use crate::widget::text::fit;

/// Draws the screen.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let title = match &app.known.update {
        Some(update) => {
            format!("Flows · update {} · {}", update.number.map_or("…".to_string(), |n| n.to_string()), update.request)
        }
        None => "Flows · never run".to_string(),
    };
    if app.is_maximised {
        match app.pane {
            Pane::Events => events::draw(app, area, buffer),
            _ => {
                let inner = pane_frame(app, Pane::Flows, area, &title, "", buffer);
                flows::draw(app, Pane::Flows, inner, buffer);
            }
        }
        return;
    }
    let wanted = app.flow_names().len() as u16 + 3;
    let top = wanted.clamp(5, (area.height / 2).max(5)).min(area.height);
    let left = area.height - top;
    let detail = if left >= 10 { (left / 2).min(9) } else { 0 };
    let above = Rect { height: top, ..area };
    let inner = pane_frame(app, Pane::Flows, above, &title, "Enter shows it in the graph", buffer);
    flows::draw(app, Pane::Flows, inner, buffer);
    if detail > 0 {
        draw_detail(app, Rect { y: above.bottom(), height: detail, ..area }, buffer);
    }
    let rest = Rect { y: above.bottom() + detail, height: left - detail, ..area };
    if rest.height >= 3 {
        events::draw(app, rest, buffer);
    }
}

/// What is known of the flow under the cursor.
fn draw_detail(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let Some(name) = app.flow_names().get(app.flows.cursor).cloned() else { return };
    // It never has the keys: it follows the cursor above.
    let block = super::frame_block(app, Role::Border);
    let inner = block.inner(area);
    ratatui::widgets::Widget::render(block, area, buffer);
    let room = usize::from(area.width.saturating_sub(4));
    buffer.set_string(area.x + 2, area.y, fit(&format!(" {name} "), room), theme.style(Role::Title));
    let mut lines: Vec<(Role, String)> = Vec::new();
    let state = app.known.state_in_update(&name);
    let graph = app.known.graph();
    let flow = graph.and_then(|graph| app.known.find_flow(&name).map(|id| (graph, id)));
    if let Some((graph, id)) = flow {
        let flow = graph.flow(id);
        let target = &graph.dataset(flow.target).label;
        let comment = flow.comment.as_ref().map(|comment| format!(" · {comment}")).unwrap_or_default();
        lines.push((Role::Text, format!("{} into {target}{comment}", flow.kind.words())));
        let waits = app.known.waits_for(graph, id);
        if state == State::Queued && !waits.is_empty() {
            lines.push((Role::Muted, format!("waits for {}", waits.join(", "))));
        }
    }
    if let Some(run) = app.known.update.as_ref().and_then(|update| update.flows.get(&name)) {
        let m = run.metrics;
        let mut words = vec![
            counted(m.batches, "batch", "batches"),
            format!("{} in", counted(m.rows_in, "row", "rows")),
            format!("{} out", counted(m.rows_out, "row", "rows")),
        ];
        if m.files_in > 0 {
            words.push(format!("{}, {}", counted(m.files_in, "file", "files"), bytes(m.bytes_in)));
        }
        if m.rescued_values > 0 {
            words.push(format!("{} rescued", counted(m.rescued_values, "value", "values")));
        }
        if m.corrupt_records > 0 {
            words.push(counted(m.corrupt_records, "corrupt record", "corrupt records"));
        }
        lines.push((Role::Text, words.join(" · ")));
        let changes = m.changes;
        if !changes.is_zero() {
            let mut words = vec![
                format!("{} upserted", count(changes.upserted)),
                format!("{} deleted", count(changes.deleted)),
                format!("{} late", count(changes.late)),
                counted(changes.ties, "tie", "ties"),
            ];
            let rare = [(changes.duplicates, "applied before"), (changes.dropped, "without a key left out")];
            words.extend(rare.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(n))));
            lines.push((Role::Text, words.join(" · ")));
        }
        let steps = run.steps();
        if steps.len() > 1 {
            lines.push((Role::Running, sparkline(&steps, 60, theme.is_ascii)));
        }
        if run.error.is_none() && !run.message.is_empty() {
            lines.push((Role::Muted, run.message.clone()));
        }
    }
    if matches!(state, State::Failed | State::Skipped) {
        let live = app.known.update.as_ref().and_then(|update| update.flows.get(&name)?.error.clone());
        match (live, app.flow_error(&name)) {
            (Some(failure), _) => {
                lines.push((Role::Error, format!("{}: {}", failure.code, failure.message)));
                lines.extend(failure.help.map(|help| (Role::Good, format!("{} {help}", theme.pick("→", "->")))));
            }
            (None, Some(error)) => lines.push((Theme::state_role(state), error)),
            (None, None) => {}
        }
    }
    for (n, (role, text)) in lines.iter().enumerate().take(usize::from(inner.height)) {
        let text = fit(text, usize::from(inner.width).saturating_sub(2)).into_owned();
        buffer.set_string(inner.x + 1, inner.y + n as u16, text, theme.style(*role));
    }
}
