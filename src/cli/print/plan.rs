//! What an update or a checkpoint reset would do.

use pipeline::change::Change;
use pipeline::report::{PlanReport, ResetReport};

use super::event::one_line;
use super::grid::Grid;
use super::number;
use super::style::Style;

/// Draws the plan of an update: flows, changed definitions, what is new in the sources, notices.
pub fn plan(plan: &PlanReport, style: Style, width: Option<usize>) -> String {
    let mut out = String::new();
    for line in &plan.lines {
        out.push_str(&format!("{}\n", one_line(line)));
    }
    if plan.changes.iter().any(|dataset| !dataset.changes.is_empty()) {
        out.push_str(&format!("\n{}\n", style.bold("changed definitions")));
        for dataset in &plan.changes {
            for change in &dataset.changes {
                out.push_str(&format!("  {}: {}\n", one_line(&dataset.dataset), change_words(change)));
            }
        }
    }
    if !plan.backlog.is_empty() {
        let mut grid = Grid::new(&["flow", ">files to read", ">size", ">versions to read"]);
        for backlog in &plan.backlog {
            grid.row([
                backlog.flow.as_str().into(),
                number::count(backlog.files).into(),
                number::bytes(backlog.bytes).into(),
                number::count(backlog.versions).into(),
            ]);
        }
        out.push('\n');
        out.push_str(&grid.render(style, width));
    }
    for notice in &plan.notices {
        out.push('\n');
        out.push_str(&super::summary::notice(notice, style));
    }
    out
}

fn change_words(change: &Change) -> String {
    match change {
        Change::Metadata { what } => one_line(what),
        Change::NewColumns { columns } => {
            let columns: Vec<String> = columns.iter().map(|(name, kind)| format!("+{name} {kind}")).collect();
            format!("new columns {}", one_line(&columns.join(", ")))
        }
        Change::NeedsFullRefresh { reason } => format!("needs a full refresh: {}", one_line(reason)),
        Change::Refused { reason, help } => format!("refused: {}; {}", one_line(reason), one_line(help)),
    }
}

/// Draws a checkpoint reset: what stays and what would be read a second time.
pub fn reset(report: &ResetReport, style: Style) -> String {
    let mut out = String::new();
    for flow in &report.flows {
        out.push_str(&format!("{} into {}\n", style.bold(one_line(&flow.flow)), one_line(&flow.dataset)));
        let kept = flow.rows_kept.map_or("all rows".to_string(), |rows| number::counted(rows, "row", "rows"));
        out.push_str(&format!("  keeps   {kept} of the table\n"));
        out.push_str("  drops   the checkpoint: what the flow has read\n");
        out.push_str(&format!(
            "  again   {}, {}",
            number::counted(flow.files_again, "file", "files"),
            number::bytes(flow.bytes_again)
        ));
        out.push_str(&match flow.rows_again {
            _ if flow.changes_nothing => "; events of AUTO CDC that are applied again change nothing\n".to_string(),
            0 => "\n".to_string(),
            rows => format!("; {} would be in the table twice\n", number::counted(rows, "row", "rows")),
        });
        out.extend(flow.start.as_ref().map(|start| format!("  starts  {}\n", one_line(start))));
    }
    out
}
