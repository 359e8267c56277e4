//! The flows as a table: state, batches, rows, rate, backlog, time, and what each waits for.

use pipeline::event::State;
use pipeline::graph::{Flow, FlowKind};
use pipeline::number::{bytes, duration};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::words::{per_second, short, sparkline};
use super::{cursor_row, overflow};
use crate::app::{App, Pane, Target};
use crate::theme::{Role, Theme};
use crate::widget::text::{fit, fit_middle, width};

/// From this width on the rate has a sparkline.
const SPARK_FROM: u16 = 100;

/// Draws the table.
pub fn draw(app: &mut App, pane: Pane, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    if inner.height < 2 {
        return;
    }
    let names = app.flow_names();
    if names.is_empty() {
        buffer.set_string(inner.x + 1, inner.y, "no flow is defined", theme.style(Role::Muted));
        return;
    }
    let height = usize::from(inner.height) - 1;
    let mut list = app.flows;
    list.settle(names.len(), height);
    app.flows = list;
    let wide = names.iter().map(|name| width(name)).max().unwrap_or(4).clamp(4, usize::from(inner.width) / 4);
    let of = |name: &String| app.known.graph().zip(app.known.find_flow(name)).map(|(graph, id)| graph.flow(id));
    let kinds = names.iter().filter_map(of).map(|flow| width(&kind_words(theme, flow))).max().unwrap_or(0).max(6);
    let spark = if inner.width >= SPARK_FROM { 6 } else { 0 };
    let rate = 8 + spark;
    let head = format!(
        " {:<wide$} {:<kinds$} {:<11} {:>5} {:>7} {:>8} {:>rate$} {:>8} {:>8}  ",
        "flow", "kind", "state", "batch", "rows in", "rows out", "rows/s", "backlog", "time"
    );
    buffer.set_string(inner.x, inner.y, fit(&head, usize::from(inner.width)), theme.style(Role::Title));
    let has_keys = app.pane == pane;
    for (at, name) in names.iter().enumerate().skip(list.offset).take(height) {
        let row = Rect { y: inner.y + 1 + (at - list.offset) as u16, height: 1, ..inner };
        let line = flow_line(app, name, wide, kinds, spark);
        buffer.set_line(row.x, row.y, &line, row.width);
        cursor_row(app, buffer, row, at == list.cursor, has_keys);
        app.targets.push((row, Target::Row(pane, at)));
    }
    overflow(app, buffer, Rect { y: inner.y + 1, height: inner.height - 1, ..inner }, list.offset, names.len());
}

/// What kind of flow it is, in few cells; those of AUTO CDC with their badge.
fn kind_words(theme: Theme, flow: &Flow) -> String {
    let word = match flow.kind {
        FlowKind::Append => "append",
        FlowKind::Once => "once",
        FlowKind::Complete => "full",
        FlowKind::Cdc => "cdc",
        FlowKind::CdcOnce => "seed",
        FlowKind::Snapshot => "snap",
        FlowKind::SnapshotOnce => "once",
    };
    match &flow.change {
        Some(change) => format!("{} {word}", theme.scd_badge(change.scd_type())),
        None => word.to_string(),
    }
}

fn flow_line(app: &App, name: &str, wide: usize, kinds: usize, spark_cells: usize) -> Line<'static> {
    let theme = app.options.theme;
    let Some(graph) = app.known.graph() else { return Line::default() };
    let Some(id) = app.known.find_flow(name) else { return Line::default() };
    let flow = graph.flow(id);
    let state = app.known.state_in_update(name);
    let run = app.known.update.as_ref().and_then(|update| update.flows.get(name));
    let stored = app.known.flow_status(name);
    let kind = kind_words(theme, flow);
    let metrics = run.map(|run| run.metrics).or(stored.map(|flow| flow.metrics)).unwrap_or_default();
    let rate = run.and_then(|run| run.rows_per_second(app.now_us)).map(per_second).unwrap_or_default();
    let spark = match (run, state) {
        (Some(run), State::Running) => sparkline(&run.steps(), spark_cells.saturating_sub(1), theme.is_ascii),
        _ => String::new(),
    };
    let time = match run {
        Some(run) => run.duration_ms(app.now_us),
        None => stored.map(|flow| flow.metrics.duration_ms).filter(|ms| *ms > 0),
    };
    let number = |n: u64| if n == 0 { String::new() } else { short(n) };
    let backlog = match (metrics.backlog, metrics.backlog_bytes) {
        (0, 0) => String::new(),
        (n, 0) => short(n),
        (_, n) => bytes(n),
    };
    let name = fit_middle(name, wide).into_owned();
    let pad = wide - width(&name);
    let waits = if state == State::Queued { app.known.waits_for(graph, id) } else { Vec::new() };
    let after = match (&waits[..], app.flow_error(&flow.name)) {
        ([first, ..], _) => format!("waits for {first}"),
        ([], Some(error)) if matches!(state, State::Failed | State::Skipped) => error,
        ([], _) if stored.is_some_and(|flow| flow.is_done) => "done; a full refresh runs it again".to_string(),
        _ => String::new(),
    };
    let is_ours_metrics = run.is_some() || stored.is_some();
    let batches = if is_ours_metrics { number(metrics.batches) } else { String::new() };
    Line::from(vec![
        Span::raw(format!(" {name}{:pad$} {kind:<kinds$} ", "")),
        Span::styled(
            format!("{} {:<9} ", theme.state_glyph(state), state.word()),
            theme.style(Theme::state_role(state)),
        ),
        Span::raw(format!("{batches:>5} {:>7} {:>8} ", number(metrics.rows_in), number(metrics.rows_out))),
        Span::styled(format!("{spark:>spark_cells$}"), theme.style(Role::Running)),
        Span::raw(format!("{rate:>8} {backlog:>8} {:>8}  ", time.map(duration).unwrap_or_default())),
        Span::styled(after, theme.style(Role::Muted)),
    ])
}
