//! A table at a sequence, and the difference between two sequences of a table or two versions of a key.

use super::KeyPart;
use crate::auto_cdc::ScdType;
use crate::report::{Column, Rows};

/// A table as it is at a sequence, by what is known now.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AsOf {
    pub table: String,
    pub sequence: String,
    /// How many rows there are, before any condition and limit.
    pub row_count: u64,
    pub rows: Rows,
}

/// What is different.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ScdDiff {
    pub table: String,
    #[serde(serialize_with = "super::as_number")]
    pub scd_type: ScdType,
    pub range: DiffRange,
    /// The columns of [`RowDiff::before`] and [`RowDiff::after`]: the table's without keys; between versions with
    /// `__START_AT` and `__END_AT` at the end.
    pub columns: Vec<Column>,
    pub added: u64,
    pub removed: u64,
    pub changed: u64,
    /// How many of the changed rows differ in each column, as far as any does.
    pub by_column: Vec<ColumnChanges>,
    /// The first rows that differ, in order of keys.
    pub rows: Vec<RowDiff>,
    /// True: there are more of them.
    pub is_truncated: bool,
}

/// Between what.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum DiffRange {
    /// Two sequences of the whole table.
    Times { from: String, to: String },
    /// Two versions of a key, by number.
    Versions { key: Vec<KeyPart>, from: usize, to: usize },
}

/// How many changed rows differ in a column.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ColumnChanges {
    pub column: String,
    pub rows: u64,
}

/// A row that is not the same.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RowDiff {
    pub key: Vec<KeyPart>,
    pub change: RowChange,
    /// One value a column; None: the key wasn't there.
    pub before: Option<Vec<Option<String>>>,
    pub after: Option<Vec<Option<String>>>,
    /// The columns that differ, by index; empty unless both rows are there.
    pub changed: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowChange {
    Added,
    Removed,
    Changed,
}

impl RowDiff {
    /// Compares two rows of a key; None: they are the same.
    pub fn of(
        key: Vec<KeyPart>,
        before: Option<Vec<Option<String>>>,
        after: Option<Vec<Option<String>>>,
    ) -> Option<RowDiff> {
        let (change, changed) = match (&before, &after) {
            (None, None) => return None,
            (None, Some(_)) => (RowChange::Added, Vec::new()),
            (Some(_), None) => (RowChange::Removed, Vec::new()),
            (Some(old), Some(new)) => {
                (RowChange::Changed, (0..old.len().max(new.len())).filter(|at| old.get(*at) != new.get(*at)).collect())
            }
        };
        (change != RowChange::Changed || !changed.is_empty()).then_some(RowDiff { key, change, before, after, changed })
    }
}
