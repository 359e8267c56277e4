//! The pipeline as a list: one dataset a row in the order of what it reads, its flows below it, and how each
//! stands. For terminals without room for boxes, for screen readers and for large pipelines.

use pipeline::event::State;
use pipeline::graph::{DatasetId, FlowId, FlowKind, Graph};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::explorer::{badge, dataset_state, group_states, put};
use super::words::{per_second, short, sparkline};
use super::{cursor_row, overflow, pane_frame};
use crate::app::known::source_name;
use crate::app::list::List;
use crate::app::rows::RowKind;
use crate::app::{App, Pane, Target};
use crate::theme::{Role, Theme};
use crate::widget::text::{fit, fit_middle, width};

/// Draws the list.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let title = super::picture::title(app, "list");
    let inner = pane_frame(app, Pane::Graph, area, &title, "", buffer);
    let rows = app.lineage_rows();
    if rows.is_empty() {
        super::picture::draw_nothing(app, inner, buffer);
        return;
    }
    let cursor = rows.iter().position(|row| row.node == app.chosen).unwrap_or(0);
    let mut list = List { cursor, offset: app.picture.scroll.1 as usize };
    list.settle(rows.len(), usize::from(inner.height));
    app.picture.scroll.1 = list.offset as u32;
    let has_keys = app.pane == Pane::Graph;
    let names = rows.iter().map(|row| name_width(app, &row.kind)).max().unwrap_or(0).min(usize::from(inner.width) / 2);
    for (at, row) in rows.iter().enumerate().skip(list.offset).take(usize::from(inner.height)) {
        let area = Rect { y: inner.y + (at - list.offset) as u16, height: 1, ..inner };
        let (left, right) = spans(app, &row.kind, names, usize::from(inner.width));
        put(buffer, area, left, right);
        cursor_row(app, buffer, area, row.node.is_some() && row.node == app.chosen, has_keys);
        app.targets.push((area, Target::Row(Pane::Graph, at)));
    }
    overflow(app, buffer, inner, list.offset, rows.len());
}

fn name_width(app: &App, kind: &RowKind) -> usize {
    let Some(graph) = app.known.graph() else { return 0 };
    match kind {
        RowKind::Dataset(id) => width(&graph.dataset(*id).name.table) + 6,
        RowKind::Flow(id) => width(&graph.flow(*id).name) + 11,
        _ => 0,
    }
}

fn spans(app: &App, kind: &RowKind, names: usize, room: usize) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
    let theme = app.options.theme;
    let Some(graph) = app.known.graph() else { return (Vec::new(), Vec::new()) };
    match kind {
        RowKind::Schema { name, is_folded, datasets } => {
            let glyph = if *is_folded { theme.pick("▸", "+") } else { theme.pick("▾", "-") };
            let name = fit_middle(name, room / 2).into_owned();
            (
                vec![Span::styled(format!("{glyph} {name}"), theme.style(Role::Title))],
                group_states(app, graph, datasets),
            )
        }
        RowKind::Dataset(id) => {
            let dataset = graph.dataset(*id);
            let name = fit_middle(&dataset.name.table, names.saturating_sub(6)).into_owned();
            let pad = names.saturating_sub(width(&name) + 4);
            let mut right = dataset_state(app, graph, *id);
            right.splice(0..0, badge(app, graph, *id));
            let taken: usize = right.iter().map(|span| width(&span.content)).sum();
            let about = about_dataset(app, graph, *id);
            let about = fit(&about, room.saturating_sub(names + 2 + taken)).into_owned();
            (
                vec![
                    Span::raw(format!("  {} {name}{:pad$}  ", theme.kind_glyph(dataset.kind()), "")),
                    Span::styled(about, theme.style(Role::Muted)),
                ],
                right,
            )
        }
        RowKind::Flow(id) => {
            let flow = graph.flow(*id);
            let mark = format!("{:<2}", super::picture::flow_mark(app, graph, &flow.name));
            let state = app.known.flow_state(&flow.name);
            let name = fit_middle(&flow.name, names.saturating_sub(11)).into_owned();
            let pad = names.saturating_sub(width(&name) + 9);
            let right = flow_state(app, &flow.name, state);
            let taken: usize = right.iter().map(|span| width(&span.content)).sum();
            let about = fit(&about_flow(app, graph, *id), room.saturating_sub(names + 2 + taken)).into_owned();
            (
                vec![
                    Span::raw(format!("    {} {mark} {name}{:pad$}  ", theme.pick("←", "<"), "")),
                    Span::styled(about, theme.style(Role::Muted)),
                ],
                right,
            )
        }
        RowKind::Source(_) | RowKind::Inactive(_) | RowKind::Heading(_) | RowKind::File(_) => (Vec::new(), Vec::new()),
    }
}

fn flow_state(app: &App, name: &str, state: State) -> Vec<Span<'static>> {
    let theme = app.options.theme;
    let run = app.known.update.as_ref().and_then(|update| update.flows.get(name));
    let is_done = app.known.flow_status(name).is_some_and(|flow| flow.is_done);
    let number = match (run, state) {
        (Some(run), State::Running) => run.rows_per_second(app.now_us).map(per_second).unwrap_or_default(),
        (Some(run), _) if run.metrics.rows_out > 0 => format!("+{}", short(run.metrics.rows_out)),
        _ if is_done => "done".to_string(),
        _ => String::new(),
    };
    let spark = match (run, state) {
        (Some(run), State::Running) => sparkline(&run.steps(), 6, theme.is_ascii),
        _ => String::new(),
    };
    vec![
        Span::styled(format!("{spark} "), theme.style(Role::Running)),
        Span::styled(theme.state_glyph(state).to_string(), theme.style(Theme::state_role(state))),
        Span::raw(format!(" {number:>7} ")),
    ]
}

/// What a dataset reads, or waits for.
fn about_dataset(app: &App, graph: &Graph, id: DatasetId) -> String {
    let dataset = graph.dataset(id);
    if app.known.is_running() {
        let waits: Vec<String> = dataset
            .flows
            .iter()
            .filter(|flow| app.known.flow_state(&graph.flow(**flow).name) == State::Queued)
            .flat_map(|flow| app.known.waits_for(graph, *flow))
            .collect();
        if let [first, rest @ ..] = &waits[..] {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            return format!("waits for {first}{more}");
        }
    }
    let mut inputs: Vec<String> = Vec::new();
    for reading in graph.readings(id) {
        for input in &reading.inputs {
            let name = match &input.source {
                pipeline::graph::Source::Dataset { id, .. } => Some(graph.dataset(*id).label.clone()),
                source => source_name(graph, source),
            };
            inputs.extend(name.filter(|name| !inputs.contains(name)));
        }
    }
    match inputs.len() {
        0 => dataset.definition.comment.clone().unwrap_or_default(),
        _ => format!("{} {}", app.options.theme.pick("←", "<"), inputs.join(", ")),
    }
}

fn about_flow(app: &App, graph: &Graph, id: FlowId) -> String {
    let flow = graph.flow(id);
    let word = match flow.kind {
        FlowKind::CdcOnce => "seed",
        FlowKind::Once | FlowKind::SnapshotOnce => "backfill",
        FlowKind::Snapshot => "snapshots",
        FlowKind::Append | FlowKind::Complete | FlowKind::Cdc => "live",
    };
    let waits = match app.known.flow_state(&flow.name) {
        State::Queued => app.known.waits_for(graph, id),
        _ => Vec::new(),
    };
    match (waits.first(), flow.reading.inputs.iter().find_map(|input| source_name(graph, &input.source))) {
        (Some(first), _) => format!("{word}, waits for {first}"),
        (None, Some(source)) => format!("{word}  {source}"),
        (None, None) => word.to_string(),
    }
}
