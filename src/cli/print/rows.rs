//! Rows of a dataset or a query as an aligned table. CSV and JSON lines come from the engine.

use pipeline::report::Rows;
use serde_json::{Map, Value, json};

use super::grid::{Align, Cell, Grid};
use super::number;
use super::style::Style;

/// Draws rows: numbers to the right, NULL as a word, one line a row.
pub fn rows(rows: &Rows, style: Style, width: Option<usize>) -> String {
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
