//! The pipeline as a tree: schemas, datasets, and the files with what is wrong in them.

use pipeline::event::State;
use pipeline::graph::{DatasetId, Graph};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::words::short;
use super::{cursor_row, overflow, pane_frame};
use crate::app::known::change_of;
use crate::app::rows::RowKind;
use crate::app::{App, Pane, Target};
use crate::theme::{Role, Theme};
use crate::widget::text::{fit_middle, width};

/// Draws the explorer.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let title = "Explorer";
    let inner = pane_frame(app, Pane::Explorer, area, title, "", buffer);
    let rows = app.explorer_rows();
    let mut list = app.explorer;
    list.settle(rows.len(), usize::from(inner.height));
    app.explorer = list;
    let has_keys = app.pane == Pane::Explorer;
    for (at, row) in rows.iter().enumerate().skip(list.offset).take(usize::from(inner.height)) {
        let area = Rect { y: inner.y + (at - list.offset) as u16, height: 1, ..inner };
        let (left, right) = row_spans(app, &row.kind, usize::from(inner.width));
        put(buffer, area, left, right);
        let is_chosen = row.node.is_some() && row.node == app.chosen;
        cursor_row(app, buffer, area, is_chosen, has_keys);
        app.targets.push((area, Target::Row(Pane::Explorer, at)));
    }
    overflow(app, buffer, inner, list.offset, rows.len());
}

/// Draws spans from the left and from the right; the right ones win.
pub fn put(buffer: &mut Buffer, area: Rect, left: Vec<Span>, right: Vec<Span>) {
    let right_width: usize = right.iter().map(|span| width(&span.content)).sum();
    buffer.set_line(area.x, area.y, &Line::from(left), area.width);
    let x = area.right().saturating_sub(right_width as u16);
    if right_width > 0 && x >= area.x {
        buffer.set_line(x, area.y, &Line::from(right), area.right() - x);
    }
}

fn row_spans(app: &App, kind: &RowKind, room: usize) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
    let theme = app.options.theme;
    let plain = Style::new();
    match kind {
        RowKind::Schema { name, is_folded, datasets } => {
            let glyph = if *is_folded { theme.pick("▸", "+") } else { theme.pick("▾", "-") };
            let left = vec![Span::styled(
                format!("{glyph} {}", fit_middle(name, room.saturating_sub(14))),
                theme.style(Role::Title),
            )];
            let right = match app.known.graph() {
                Some(graph) if *is_folded => group_states(app, graph, datasets),
                _ => vec![Span::styled(format!("{} ", datasets.len()), theme.style(Role::Muted))],
            };
            (left, right)
        }
        RowKind::Dataset(id) => {
            let Some(graph) = app.known.graph() else { return (Vec::new(), Vec::new()) };
            let dataset = graph.dataset(*id);
            let mut right = dataset_state(app, graph, *id);
            right.splice(0..0, badge(app, graph, *id));
            let taken: usize = right.iter().map(|span| width(&span.content)).sum();
            let name = fit_middle(&dataset.name.table, room.saturating_sub(taken + 5)).into_owned();
            let left = vec![Span::raw(format!("  {} ", theme.kind_glyph(dataset.kind()))), Span::styled(name, plain)];
            (left, right)
        }
        RowKind::Inactive(name) => {
            let left = vec![Span::styled(
                format!("  {} {}", theme.pick("○", "o"), fit_middle(name, room.saturating_sub(6))),
                theme.style(Role::Muted),
            )];
            (left, Vec::new())
        }
        RowKind::Heading(text) => {
            (vec![Span::styled(format!("{0}{0} {text}", theme.pick("─", "-")), theme.style(Role::Muted))], Vec::new())
        }
        RowKind::File(path) => {
            let (errors, warnings) = app.known.findings_in(path);
            let right = match (errors, warnings) {
                (0, 0) if app.known.verdict.is_none() => vec![Span::styled("… ", theme.style(Role::Muted))],
                (0, 0) => vec![Span::styled(format!("{} ", theme.pick("✔", "+")), theme.style(Role::Good))],
                (0, n) => vec![Span::styled(format!("{}{n} ", theme.pick("⚠", "!")), theme.style(Role::Warning))],
                (n, _) => vec![Span::styled(format!("{}{n} ", theme.pick("✖", "X")), theme.style(Role::Error))],
            };
            let name = path.strip_prefix("transformations/").unwrap_or(path);
            let left = vec![Span::raw(format!("  {}", fit_middle(name, room.saturating_sub(7))))];
            (left, right)
        }
        RowKind::Flow(_) | RowKind::Source(_) => (Vec::new(), Vec::new()),
    }
}

/// The badge of a dataset that flows of AUTO CDC write.
pub fn badge(app: &App, graph: &Graph, id: DatasetId) -> Option<Span<'static>> {
    let theme = app.options.theme;
    let scd_type = change_of(graph, id)?.scd_type();
    Some(Span::styled(format!("{} ", theme.scd_badge(scd_type)), theme.style(Role::Key)))
}

/// State and rows of a dataset, for the right edge of a row: as wide as its neighbours'.
pub fn dataset_state(app: &App, graph: &Graph, id: DatasetId) -> Vec<Span<'static>> {
    let mut spans = short_state(app, graph, id);
    if let [_, glyph, number] = &spans[..] {
        let number = format!(" {:>7} ", number.content.trim());
        spans = vec![spans[0].clone(), glyph.clone(), Span::raw(number)];
    }
    spans
}

/// State and rows of a dataset in as few cells as they need.
pub fn short_state(app: &App, graph: &Graph, id: DatasetId) -> Vec<Span<'static>> {
    let theme = app.options.theme;
    let dataset = graph.dataset(id);
    let (errors, warnings) = app.known.findings_of(&dataset.label);
    if errors > 0 {
        return vec![Span::styled(format!("{} invalid ", theme.pick("✖", "X")), theme.style(Role::Error))];
    }
    if app.known.is_blocked(&dataset.label) {
        return vec![Span::styled(format!("{} blocked ", theme.pick("⚠", "!")), theme.style(Role::Warning))];
    }
    if !dataset.kind().is_stored() {
        return vec![Span::styled("view ", theme.style(Role::Muted))];
    }
    let state = app.known.dataset_state(graph, id);
    let live = app.known.update.as_ref().filter(|update| !update.state.is_final()).map(|update| {
        let flows = dataset.flows.iter().filter_map(|flow| update.flows.get(&graph.flow(*flow).name));
        let running = flows.filter(|flow| flow.state == State::Running);
        running.filter_map(|flow| flow.rows_per_second(app.now_us)).sum::<f64>()
    });
    let rows = app.known.dataset_status(&dataset.label).and_then(|status| status.table.as_ref()?.rows);
    let number = match (state, live, rows) {
        (State::Running, Some(rate), _) if rate > 0.0 => super::words::per_second(rate),
        (_, _, Some(rows)) => short(rows),
        _ => String::new(),
    };
    let warned = match warnings {
        0 => String::new(),
        _ => theme.pick("⚠ ", "! ").to_string(),
    };
    vec![
        Span::styled(warned, theme.style(Role::Warning)),
        Span::styled(theme.state_glyph(state).to_string(), theme.style(Theme::state_role(state))),
        Span::raw(format!(" {number}")),
    ]
}

/// How many datasets of a folded schema are in each state.
pub fn group_states(app: &App, graph: &Graph, datasets: &[DatasetId]) -> Vec<Span<'static>> {
    const ORDER: [State; 6] =
        [State::Failed, State::Running, State::Skipped, State::Queued, State::Completed, State::Canceled];
    let theme = app.options.theme;
    let mut spans = Vec::new();
    for state in ORDER {
        let n = datasets.iter().filter(|id| app.known.dataset_state(graph, **id) == state).count();
        if n > 0 {
            spans
                .push(Span::styled(format!("{}{n} ", theme.state_glyph(state)), theme.style(Theme::state_role(state))));
        }
    }
    let broken = datasets.iter().filter(|id| app.known.findings_of(&graph.dataset(**id).label).0 > 0).count();
    if broken > 0 {
        spans.insert(0, Span::styled(format!("{}{broken} ", theme.pick("⚠", "!")), theme.style(Role::Error)));
    }
    spans.push(Span::styled(format!("({}) ", datasets.len()), theme.style(Role::Muted)));
    spans
}
