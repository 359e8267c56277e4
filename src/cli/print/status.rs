//! How the workspace stands, and the list of updates.

use pipeline::graph::{FlowKind, Graph};
use pipeline::report::{DatasetStatus, FlowStatus, Status, UpdateSummary};

use super::event::one_line;
use super::graph::order_words;
use super::grid::{Cell, Grid, Look};
use super::number;
use super::style::Style;

/// Draws a status: the pipeline, its datasets, its flows.
pub fn status(status: &Status, graph: &Graph, style: Style, width: Option<usize>) -> String {
    let mut out = format!("{}  {}\n", style.bold(one_line(&status.name)), style.dim(one_line(&status.folder)));
    match &status.update {
        None => out.push_str("no update yet; start one: flowbench run\n"),
        Some(update) => {
            out.push_str(&format!("update {} {}", update.number, style.state(update.state, 0)));
            out.push_str(&format!(", started {}", number::date_time(update.started_us)));
            if let Some(ended) = update.ended_us {
                out.push_str(&format!(", took {}", number::duration(elapsed_ms(update.started_us, ended))));
            }
            out.push_str(&format!(", {}\n", number::counted(update.rows_out, "row", "rows")));
            if let Some(error) = &update.error {
                out.push_str(&format!("{} {}\n", style.error("error:"), one_line(error)));
            }
        }
    }
    if let Some(pid) = status.running_pid {
        out.push_str(&format!("{} (process {pid})\n", style.bold("an update is running")));
    }
    if status.errors + status.warnings > 0 {
        let (errors, warnings) = (status.errors as u64, status.warnings as u64);
        out.push_str(&format!(
            "{}: {}, {}; see: flowbench validate\n",
            style.warning("the files have problems"),
            number::counted(errors, "error", "errors"),
            number::counted(warnings, "warning", "warnings")
        ));
    }
    if !status.datasets.is_empty() {
        out.push('\n');
        out.push_str(&datasets(&status.datasets).render(style, width));
    }
    if !status.flows.is_empty() {
        out.push('\n');
        out.push_str(&flows(&status.flows, graph).render(style, width));
    }
    out
}

fn datasets(datasets: &[DatasetStatus]) -> Grid {
    let mut grid = Grid::new(&["dataset", "kind", ">version", ">rows", ">size", ">files"]);
    for dataset in datasets {
        let kind = match dataset.is_active {
            true => dataset.kind.clone(),
            false => format!("{} (inactive)", dataset.kind),
        };
        let look = if dataset.is_active { Look::Plain } else { Look::Dim };
        let mut cells = vec![Cell::new(&dataset.name, look), Cell::new(kind, look)];
        cells.extend(match &dataset.table {
            None => [Cell::new("-", Look::Dim), "".into(), "".into(), "".into()],
            Some(table) => [
                table.version.to_string().into(),
                table.rows.map_or_else(|| Cell::new("?", Look::Dim), |rows| number::count(rows).into()),
                number::bytes(table.bytes).into(),
                number::count(table.files).into(),
            ],
        });
        grid.row(cells);
    }
    grid
}

/// Flows with what became of them in their last update, and which flows they come after by `depends_on`.
pub fn flows(flows: &[FlowStatus], graph: &Graph) -> Grid {
    let after = |flow: &FlowStatus| graph.find_flow(&flow.name).map_or(String::new(), |id| order_words(graph, id));
    let has_order = flows.iter().any(|flow| !after(flow).is_empty());
    let has_errors = flows.iter().any(|flow| flow.error.is_some());
    let mut headings = vec!["flow", "into", "kind", "state", "last run", ">rows"];
    headings.extend(has_order.then_some("after"));
    headings.extend(has_errors.then_some("error"));
    let mut grid = Grid::new(&headings);
    for flow in flows {
        let kind = match (flow.kind, flow.is_done) {
            (FlowKind::Once | FlowKind::SnapshotOnce, true) => "1× backfill, done".to_string(),
            (FlowKind::Once | FlowKind::SnapshotOnce, false) => "1× backfill".to_string(),
            (FlowKind::CdcOnce, true) => "1× seed, done".to_string(),
            (FlowKind::CdcOnce, false) => "1× seed".to_string(),
            (kind, _) => kind.words().to_string(),
        };
        let last_run =
            flow.last_run_us.map_or_else(|| Cell::new("never", Look::Dim), |us| number::date_time(us).into());
        let mut cells = vec![
            flow.name.as_str().into(),
            flow.dataset.as_str().into(),
            kind.into(),
            Cell::state(flow.state),
            last_run,
            if flow.last_run_us.is_some() { number::count(flow.metrics.rows_out).into() } else { "".into() },
        ];
        cells.extend(has_order.then(|| after(flow).into()));
        cells.extend(has_errors.then(|| Cell::new(flow.error.as_deref().unwrap_or(""), Look::Error)));
        grid.row(cells);
    }
    grid
}

/// The list of updates.
pub fn updates(updates: &[UpdateSummary], style: Style, width: Option<usize>) -> String {
    if updates.is_empty() {
        return "no update yet; start one: flowbench run\n".to_string();
    }
    let mut grid = Grid::new(&[">update", "state", "started", ">took", ">rows", "request", "cause", "error"]);
    for update in updates {
        grid.row([
            update.number.to_string().into(),
            Cell::state(update.state),
            number::date_time(update.started_us).into(),
            update.ended_us.map_or("".to_string(), |end| number::duration(elapsed_ms(update.started_us, end))).into(),
            number::count(update.rows_out).into(),
            update.request.as_str().into(),
            Cell::new(&update.cause, Look::Dim),
            Cell::new(update.error.as_deref().unwrap_or(""), Look::Error),
        ]);
    }
    grid.render(style, width)
}

fn elapsed_ms(start_us: i64, end_us: i64) -> u64 {
    u64::try_from((end_us - start_us) / 1_000).unwrap_or(0)
}
