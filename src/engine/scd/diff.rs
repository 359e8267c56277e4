//! What is different between two sequences of a table, or between two versions of a key.
//!
//! Of two sequences only the rows count that hold at one of them: a row that holds at both is the same row. They are
//! sorted by key, so that the two of a key are neighbours; nothing is joined, and memory holds a batch.

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, make_comparator};
use arrow::compute::{SortOptions, concat_batches};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, Operator, binary_expr, not};
use futures::StreamExt;
use pipeline::auto_cdc::{END_AT, START_AT};
use pipeline::report::Column;
use pipeline::scd::{ColumnChanges, DiffRange, KeyPart, RowChange, RowDiff, ScdDiff};

use super::as_of::{begins_or_ends_between, column, failed, holds_at, rows_of};
use super::scd_table::ScdTable;
use super::value;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// How much of a difference is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffOptions {
    /// So many rows at most; all are counted.
    pub limit: usize,
}

const HOLDS_BEFORE: &str = "__flowbench_before";

impl Engine {
    /// What is different between a table of SCD type 2 at two sequences.
    ///
    /// # Errors
    /// As [`Engine::scd_as_of`].
    pub async fn scd_diff(&self, table: &str, from: &str, to: &str, options: DiffOptions) -> Result<ScdDiff> {
        let table = self.scd_table(table).await?;
        let from = value::parse_sequence(&table.sequence_codec, from)?;
        let to = value::parse_sequence(&table.sequence_codec, to)?;
        let (before, after) = (holds_at(&table, &from)?, holds_at(&table, &to)?);
        let (least, greatest) = if from <= to { (&from, &to) } else { (&to, &from) };
        // What both conditions imply as ranges, by which files are passed over.
        let is_near = begins_or_ends_between(&table, least, greatest)?;
        let differs = binary_expr(before.clone(), Operator::IsDistinctFrom, after);
        let rows = rows_of(&table, is_near.and(differs)).await?;
        let keys: Vec<Expr> = table.key_names.iter().map(|name| column(name)).collect();
        let values = table.value_fields.iter().map(|field| column(field.name()));
        let wanted = keys.iter().cloned().chain(values).chain([before.alias(HOLDS_BEFORE)]);
        let by_key = keys.iter().map(|key| key.clone().sort(true, true));
        let order = by_key.chain([not(column(HOLDS_BEFORE)).sort(true, true)]);
        let plan = LogicalPlanBuilder::from(rows).project(wanted).and_then(|plan| plan.sort(order));
        let plan = plan.and_then(LogicalPlanBuilder::build).map_err(failed)?;
        let mut pairs = Pairs::new(self.stream(plan, None).await?, table.key_names.len());
        let mut diff = ScdDiff {
            table: table.label.clone(),
            scd_type: table.spec.scd_type,
            range: DiffRange::Times {
                from: value::sequence(&table.sequence_codec, &from)?,
                to: value::sequence(&table.sequence_codec, &to)?,
            },
            columns: table.value_columns(),
            added: 0,
            removed: 0,
            changed: 0,
            by_column: Vec::new(),
            rows: Vec::new(),
            is_truncated: false,
        };
        let mut by_column = vec![0; table.value_fields.len()];
        while let Some(batch) = pairs.next().await? {
            add(&table, &mut diff, &mut by_column, &batch, options.limit)?;
        }
        let names = table.value_fields.iter().map(|field| field.name().clone()).zip(by_column);
        diff.by_column =
            names.filter(|(_, rows)| *rows > 0).map(|(column, rows)| ColumnChanges { column, rows }).collect();
        Ok(diff)
    }

    /// What is different between two versions of a key, by their numbers in its history.
    ///
    /// # Errors
    /// As [`Engine::scd_history`]; `unknown-version`.
    pub async fn scd_diff_versions(&self, table: &str, key: &[String], from: usize, to: usize) -> Result<ScdDiff> {
        let history = self.scd_history(table, key).await?;
        let version = |number: usize| {
            let version = number.checked_sub(1).and_then(|at| history.versions.get(at)).ok_or_else(|| {
                let help = match history.versions.len() {
                    0 => "the key isn't there now; flowbench scd history shows its events".to_string(),
                    1 => "it has version 1 only".to_string(),
                    n => format!("it has the versions 1 to {n}: flowbench scd history"),
                };
                Error::user("unknown-version", format!("the key has no version {number}"), help)
            })?;
            let ends = [Some(version.start.clone()), version.end.clone()];
            Ok::<_, Error>(version.values.iter().cloned().chain(ends).collect::<Vec<_>>())
        };
        let row = RowDiff::of(history.key.clone(), Some(version(from)?), Some(version(to)?));
        let interval = [START_AT, END_AT].map(|name| Column {
            name: name.to_string(),
            data_type: history.sequence_type.clone(),
            is_nullable: true,
            is_numeric: false,
            comment: None,
        });
        let columns: Vec<Column> = history.columns.into_iter().chain(interval).collect();
        let changed = row.iter().flat_map(|row| &row.changed);
        let by_column = changed.map(|at| ColumnChanges { column: columns[*at].name.clone(), rows: 1 }).collect();
        Ok(ScdDiff {
            table: history.table,
            scd_type: history.scd_type,
            range: DiffRange::Versions { key: history.key, from, to },
            added: 0,
            removed: 0,
            changed: row.iter().len() as u64,
            by_column,
            rows: row.into_iter().collect(),
            is_truncated: false,
            columns,
        })
    }
}

/// Rows sorted by key, in batches that part no two rows of a key.
struct Pairs {
    rows: SendableRecordBatchStream,
    /// How many of the first columns are the key.
    keys: usize,
    held: Option<RecordBatch>,
}

impl Pairs {
    fn new(rows: SendableRecordBatchStream, keys: usize) -> Pairs {
        Pairs { rows, keys, held: None }
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(batch) = self.rows.next().await {
            let batch = batch.map_err(failed)?;
            if batch.num_rows() == 0 {
                continue;
            }
            let batch = match self.held.take() {
                None => batch,
                Some(held) => concat_batches(&batch.schema(), [&held, &batch]).map_err(internal)?,
            };
            // The last row may be the first of two.
            let last = batch.num_rows() - 1;
            let is_alone = last == 0 || !is_same_key(&batch, self.keys)?(last - 1, last);
            let kept = if is_alone { last } else { last + 1 };
            self.held = is_alone.then(|| batch.slice(last, 1));
            if kept > 0 {
                return Ok(Some(batch.slice(0, kept)));
            }
        }
        Ok(self.held.take())
    }
}

/// Whether two rows have the same key.
fn is_same_key(batch: &RecordBatch, keys: usize) -> Result<impl Fn(usize, usize) -> bool> {
    let columns = batch.columns()[..keys].iter();
    let compare = columns.map(|key| make_comparator(key, key, SortOptions::default()).map_err(internal));
    let compare = compare.collect::<Result<Vec<_>>>()?;
    Ok(move |a, b| compare.iter().all(|compare| compare(a, b).is_eq()))
}

fn internal(error: arrow::error::ArrowError) -> Error {
    Error::Internal(error.to_string())
}

/// Adds the differences of a batch: keys, values, whether the row holds before.
fn add(table: &ScdTable, diff: &mut ScdDiff, by_column: &mut [u64], batch: &RecordBatch, limit: usize) -> Result<()> {
    let keys = table.key_names.len();
    let values: &[ArrayRef] = &batch.columns()[keys..batch.num_columns() - 1];
    let before = batch.column(batch.num_columns() - 1).as_any().downcast_ref::<BooleanArray>();
    let before = before.ok_or_else(|| Error::Internal("a condition is no boolean".to_string()))?;
    let is_same = is_same_key(batch, keys)?;
    let compare = values.iter().map(|column| make_comparator(column, column, SortOptions::default()).map_err(internal));
    let compare = compare.collect::<Result<Vec<_>>>()?;
    let mut shown: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    let mut row = 0;
    while row < batch.num_rows() {
        let holds_before = before.is_valid(row) && before.value(row);
        let pair = match holds_before && row + 1 < batch.num_rows() && is_same(row, row + 1) {
            true => (Some(row), Some(row + 1)),
            false if holds_before => (Some(row), None),
            false => (None, Some(row)),
        };
        row += if pair.0.is_some() && pair.1.is_some() { 2 } else { 1 };
        match pair {
            (Some(old), Some(new)) => {
                let differing: Vec<usize> =
                    (0..compare.len()).filter(|column| !compare[*column](old, new).is_eq()).collect();
                if differing.is_empty() {
                    continue;
                }
                diff.changed += 1;
                differing.into_iter().for_each(|column| by_column[column] += 1);
            }
            (Some(_), None) => diff.removed += 1,
            (None, _) => diff.added += 1,
        }
        match diff.rows.len() + shown.len() < limit {
            true => shown.push(pair),
            false => diff.is_truncated = true,
        }
    }
    for (old, new) in shown {
        let texts = |row: Option<usize>| {
            let row =
                row.map(|row| value::texts(&values.iter().map(|column| column.slice(row, 1)).collect::<Vec<_>>()));
            Ok::<_, Error>(row.transpose()?.map(|mut rows| if rows.is_empty() { Vec::new() } else { rows.remove(0) }))
        };
        let key = key_of(table, batch, old.or(new).unwrap_or_default())?;
        let (old, new) = (texts(old)?, texts(new)?);
        let change = match (&old, &new) {
            (Some(_), Some(_)) => RowChange::Changed,
            (Some(_), None) => RowChange::Removed,
            (None, _) => RowChange::Added,
        };
        diff.rows.push(RowDiff::of(key.clone(), old.clone(), new.clone()).unwrap_or(RowDiff {
            // They differ, and their texts don't: fractions that aren't shown.
            key,
            change,
            before: old,
            after: new,
            changed: Vec::new(),
        }));
    }
    Ok(())
}

fn key_of(table: &ScdTable, batch: &RecordBatch, row: usize) -> Result<Vec<KeyPart>> {
    let keys: Vec<ArrayRef> =
        batch.columns()[..table.key_names.len()].iter().map(|column| column.slice(row, 1)).collect();
    let texts = value::texts(&keys)?.remove(0);
    let parts = table.key_names.iter().zip(texts);
    Ok(parts.map(|(column, value)| KeyPart { column: column.clone(), value: value.unwrap_or_default() }).collect())
}
