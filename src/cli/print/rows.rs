//! Rows of a dataset or a query as an aligned table. CSV and JSON lines come from the engine.

use pipeline::report::Rows;
use serde_json::{Map, Value, json};
use unicode_width::UnicodeWidthStr;

use super::event::one_line;
use super::grid::{Align, Cell, GAP, Grid};
use super::number;
use super::style::Style;

/// Columns of a table are not cut below this; where the terminal has no room for that, each row is a record.
const READABLE: usize = 14;

/// Draws rows: numbers to the right, NULL as a word, one line a row; in a narrow terminal one line a value.
pub fn rows(rows: &Rows, style: Style, width: Option<usize>) -> String {
    if let Some(width) = width
        && !rows.rows.is_empty()
        && readable_width(rows) > width
    {
        return records(rows, style, width);
    }
    let mut grid = Grid::with_columns(
        rows.columns
            .iter()
            .map(|column| (column.name.clone(), if column.is_numeric { Align::Right } else { Align::Left })),
    );
    for row in &rows.rows {
        grid.row(row.iter().map(|value| value.as_deref().map_or_else(Cell::null, Cell::from)));
    }
    grid.render(style, width)
}

/// The width that a table needs if no column is cut below [`READABLE`].
fn readable_width(rows: &Rows) -> usize {
    let column = |index: usize| {
        let values = rows.rows.iter().map(|row| row[index].as_deref().map_or(4, |value| value.width()));
        let widest = values.chain([rows.columns[index].name.width()]).max().unwrap_or(0);
        widest.min(READABLE) + GAP
    };
    (0..rows.columns.len()).map(column).sum::<usize>().saturating_sub(GAP)
}

/// One value a line, under the number of its row.
fn records(rows: &Rows, style: Style, width: usize) -> String {
    let names = rows.columns.iter().map(|column| column.name.width()).max().unwrap_or(0);
    let room = width.saturating_sub(names + GAP).max(READABLE);
    let mut out = String::new();
    for (index, row) in rows.rows.iter().enumerate() {
        out.push_str(&style.dim(format!("── row {} ──", index + 1)));
        out.push('\n');
        for (column, value) in rows.columns.iter().zip(row) {
            let cell = value.as_deref().map_or_else(Cell::null, Cell::from);
            let space = " ".repeat(names - column.name.width() + GAP);
            out.push_str(&format!("{}{space}{}\n", style.bold(one_line(&column.name)), cell.render(style, room)));
        }
    }
    out
}

/// `20 rows, there are more` – for stderr, so that it never gets into a file of rows.
pub fn count(rows: &Rows) -> String {
    let count = number::counted(rows.rows.len() as u64, "row", "rows");
    match rows.is_truncated {
        true => format!("{count}; there are more (--limit 0 for all)"),
        false => count,
    }
}

/// The rows for `--json`: columns, and one object a row, all values as text or null.
pub fn value(rows: &Rows) -> Value {
    let objects: Vec<Value> = rows
        .rows
        .iter()
        .map(|row| {
            let pairs = rows.columns.iter().zip(row).map(|(column, value)| (column.name.clone(), json!(value)));
            Value::Object(pairs.collect::<Map<String, Value>>())
        })
        .collect();
    json!({ "columns": rows.columns, "rows": objects, "is_truncated": rows.is_truncated })
}

#[cfg(test)]
mod tests {
    use pipeline::report::Column;

    use super::*;

    #[test]
    fn a_narrow_terminal_gets_records() {
        let column = |name: &str| Column {
            name: name.to_string(),
            data_type: "STRING".to_string(),
            is_nullable: true,
            is_numeric: false,
            comment: None,
        };
        let table = Rows {
            columns: vec![column("id"), column("long_text"), column("other_text")],
            rows: vec![vec![Some("1".to_string()), Some("a text of many words".to_string()), None]],
            is_truncated: false,
        };
        assert_eq!(
            rows(&table, Style::plain(), Some(28)),
            "── row 1 ──\nid          1\nlong_text   a text of many …\nother_text  NULL\n"
        );
    }

    #[test]
    fn numbers_are_right_aligned_and_null_is_a_word() {
        let column = |name: &str, is_numeric| Column {
            name: name.to_string(),
            data_type: "STRING".to_string(),
            is_nullable: true,
            is_numeric,
            comment: None,
        };
        let some = |text: &str| Some(text.to_string());
        let table = Rows {
            columns: vec![column("name", false), column("amount", true)],
            rows: vec![vec![some("a\nb"), some("7")], vec![None, some("1200")]],
            is_truncated: true,
        };
        assert_eq!(rows(&table, Style::plain(), None), "name  amount\n────  ──────\na\\nb       7\nNULL    1200\n");
        assert_eq!(count(&table), "2 rows; there are more (--limit 0 for all)");
        assert_eq!(value(&table)["rows"][1], json!({ "name": null, "amount": "1200" }));
    }
}
