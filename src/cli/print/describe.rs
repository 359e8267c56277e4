//! One dataset in full, the list of functions, what the doctor found.

use pipeline::graph::Graph;
use pipeline::report::{Description, DoctorReport, FunctionRow};

use super::event::{help_line, one_line};
use super::grid::{Cell, Grid, Look};
use super::number;
use super::style::Style;

/// Draws a dataset.
pub fn description(description: &Description, graph: &Graph, style: Style, width: Option<usize>) -> String {
    let status = &description.status;
    let mut out = format!("{}  {}", style.bold(one_line(&status.name)), one_line(&status.kind));
    out.push_str(if status.is_active { "\n" } else { ", inactive: no file defines it\n" });
    out.extend(status.comment.as_ref().map(|comment| format!("{}\n", one_line(comment))));
    let mut facts: Vec<(&str, String)> = Vec::new();
    let list = |names: &[String]| names.join(", ");
    facts.extend(description.defined_at.clone().map(|place| ("defined at", place)));
    if let Some(table) = &status.table {
        facts.push(("table", table.folder.clone()));
        let rows = table.rows.map_or("? rows".to_string(), |rows| number::counted(rows, "row", "rows"));
        let files = number::counted(table.files, "file", "files");
        facts.push(("version", format!("{}: {rows}, {}, {files}", table.version, number::bytes(table.bytes))));
    }
    for (label, names) in [
        ("partitioned by", &description.partition_by),
        ("clustered by", &description.cluster_by),
        ("reads", &description.upstream),
        ("read by", &description.downstream),
    ] {
        if !names.is_empty() {
            facts.push((label, list(names)));
        }
    }
    facts.extend(description.properties.iter().map(|(key, value)| ("property", format!("{key} = {value}"))));
    for (label, fact) in facts {
        out.push_str(&format!("{}{}\n", style.dim(format!("{label:<16}")), one_line(&fact)));
    }
    let mut section = |grid: Grid| {
        out.push('\n');
        out.push_str(&grid.render(style, width));
    };
    if !description.columns.is_empty() {
        let mut grid = Grid::new(&["column", "type", "constraint", "comment"]);
        for column in &description.columns {
            grid.row([
                column.name.as_str().into(),
                column.data_type.as_str().into(),
                Cell::new(if column.is_nullable { "" } else { "NOT NULL" }, Look::Plain),
                column.comment.as_deref().unwrap_or("").into(),
            ]);
        }
        section(grid);
    }
    if !description.flows.is_empty() {
        section(super::status::flows(&description.flows, graph));
    }
    if !description.history.is_empty() {
        let mut grid = Grid::new(&[">version", "time", "operation"]);
        for version in &description.history {
            grid.row([
                version.version.to_string().into(),
                number::date_time(version.time_us).into(),
                version.operation.as_str().into(),
            ]);
        }
        section(grid);
    }
    out
}

/// Draws the list of functions.
pub fn functions(functions: &[FunctionRow], style: Style, width: Option<usize>) -> String {
    let mut grid = Grid::new(&["function", "kind", "aliases", "description"]);
    for function in functions {
        grid.row([
            function.name.as_str().into(),
            Cell::new(&function.kind, Look::Dim),
            function.aliases.join(", ").into(),
            one_line(&function.description).into(),
        ]);
    }
    grid.render(style, width)
}

/// Draws what the doctor found.
pub fn doctor(report: &DoctorReport, style: Style) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let what = match finding.is_mended {
            true => style.good(format!("mended[{}]", finding.code)),
            false => style.warning(format!("found[{}]", finding.code)),
        };
        out.push_str(&format!("{what}: {}", one_line(&finding.message)));
        out.extend(finding.help.as_ref().map(|help| help_line(help, style)));
        out.push('\n');
    }
    if report.findings.is_empty() {
        out.push_str("state and tables agree\n");
    }
    out
}
