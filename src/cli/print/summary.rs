//! How an update ended: a line per flow, one root cause per failed flow. Its notices were said while it ran.

use pipeline::event::{Failure, State};
use pipeline::plan::Notice;
use pipeline::report::{FlowOutcome, UpdateReport};

use super::event::{help_line, one_line};
use super::grid::{Cell, Grid, Look};
use super::number;
use super::style::Style;

/// Draws the report; excluded flows are counted only.
pub fn update(report: &UpdateReport, style: Style, width: usize) -> String {
    let shown: Vec<&FlowOutcome> = report.flows.iter().filter(|flow| flow.state != State::Excluded).collect();
    let has_rescued = shown.iter().any(|flow| flow.metrics.rescued_values > 0);
    let has_corrupt = shown.iter().any(|flow| flow.metrics.corrupt_records > 0);
    let has_errors = shown.iter().any(|flow| flow.error.is_some());
    let mut headings = vec!["flow", "state", ">batches", ">rows", ">files"];
    headings.extend(has_rescued.then_some(">rescued"));
    headings.extend(has_corrupt.then_some(">corrupt"));
    headings.push(">duration");
    headings.extend(has_errors.then_some("error"));
    let mut grid = Grid::new(&headings);
    for flow in &shown {
        let metrics = &flow.metrics;
        let warned = |n: u64| Cell::new(number::count(n), if n > 0 { Look::Warning } else { Look::Plain });
        let mut cells = vec![
            flow.flow.as_str().into(),
            Cell::state(flow.state),
            number::count(metrics.batches).into(),
            number::count(metrics.rows_out).into(),
            number::count(metrics.files_in).into(),
        ];
        cells.extend(has_rescued.then(|| warned(metrics.rescued_values)));
        cells.extend(has_corrupt.then(|| warned(metrics.corrupt_records)));
        cells.push(match metrics.duration_ms {
            0 => "".into(),
            ms => number::duration(ms).into(),
        });
        cells.extend(has_errors.then(|| flow.error.as_ref().map_or("", |error| error.code.as_str()).into()));
        grid.row(cells);
    }
    let mut out = match shown.is_empty() {
        true => String::new(),
        false => grid.render(style, Some(width)),
    };
    for (flow, error) in root_causes(&report.flows) {
        out.push('\n');
        out.push_str(&failure(flow, error, style));
    }
    let rows: u64 = report.flows.iter().map(|flow| flow.metrics.rows_out).sum();
    out.push_str(&format!(
        "\nupdate {} {} in {}, {}",
        report.number,
        style.state(report.state, 0),
        number::duration(report.duration_ms),
        number::counted(rows, "row", "rows"),
    ));
    let excluded = report.flows.len() - shown.len();
    if excluded > 0 {
        out.push_str(&format!("; {} not selected", number::counted(excluded as u64, "flow", "flows")));
    }
    out.push('\n');
    out
}

/// A failed flow and why; skipped flows failed for the same reason and aren't repeated.
fn root_causes(flows: &[FlowOutcome]) -> impl Iterator<Item = (&FlowOutcome, &Failure)> {
    flows.iter().filter(|flow| flow.state == State::Failed).filter_map(|flow| Some((flow, flow.error.as_ref()?)))
}

fn failure(flow: &FlowOutcome, error: &Failure, style: Style) -> String {
    // Most messages name their flow.
    let flow = format!("flow `{}`", one_line(&flow.flow));
    let message = one_line(&error.message);
    let what = if message.starts_with(&flow) { message } else { format!("{flow}: {message}") };
    let mut out = format!("{}: {what}", style.error(format!("error[{}]", error.code)));
    out.extend(error.help.as_ref().map(|help| help_line(help, style)));
    out.push('\n');
    out
}

/// A notice with what can be done.
pub fn notice(notice: &Notice, style: Style) -> String {
    let what = format!("{}: {}", style.warning(format!("notice[{}]", notice.code)), one_line(&notice.message));
    format!("{what}{}\n", help_line(&notice.help, style))
}

#[cfg(test)]
mod tests {
    use pipeline::event::FlowMetrics;

    use super::*;

    #[test]
    fn a_failed_update_names_one_root_cause_a_flow() {
        let outcome = |flow: &str, state, metrics, error| FlowOutcome {
            flow: flow.to_string(),
            dataset: "orders".to_string(),
            state,
            metrics,
            error,
        };
        let numbers = FlowMetrics {
            batches: 3,
            rows_out: 1_204_118,
            files_in: 1_096,
            rescued_values: 7,
            duration_ms: 3_100,
            ..FlowMetrics::default()
        };
        let failure = Failure {
            code: "source-rewritten".to_string(),
            message: "`orders` was rewritten at version 4 by MERGE".to_string(),
            help: Some("full refresh `silver`, or set skipChangeCommits".to_string()),
            is_fatal: true,
        };
        let skipped =
            Failure { code: "upstream-failed".to_string(), message: "…".to_string(), help: None, is_fatal: true };
        let report = UpdateReport {
            number: 7,
            state: State::Failed,
            flows: vec![
                outcome("bronze", State::Completed, numbers, None),
                outcome("silver", State::Failed, FlowMetrics::default(), Some(failure)),
                outcome("gold", State::Skipped, FlowMetrics::default(), Some(skipped)),
                outcome("other", State::Excluded, FlowMetrics::default(), None),
            ],
            notices: vec![Notice {
                code: "once-flow-edited",
                message: "the definition of once flow `b` changed".to_string(),
                help: "flowbench run --rerun-once b".to_string(),
            }],
            duration_ms: 4_200,
        };
        insta::assert_snapshot!(update(&report, Style::plain(), 100));
    }
}
