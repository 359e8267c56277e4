//! A Delta table's change feed as a stream: what its versions did to its rows, cut into slices of whole versions. A
//! first start reads the table as it is, its rows as inserts.
//!
//! - `mod.rs`: which versions come after an offset
//! - `rows.rs`: their rows, with the columns that tell of the change
//! - `pair.rs`: rows that left and rows that came joined by key
//!
//! Versions never change, so a planned slice gives the same rows whenever it is read, as long as no vacuum took them.

mod pair;
mod rows;
#[cfg(test)]
mod tests;

use pipeline::read_files::TableStream;

use super::table_stream::{SliceLimit, TableOffset, next_slice, planned_slice};
use crate::error::{Error, Result};
use crate::table::{AddedFile, FULL_REFRESH, FileRows, RowChanges, Table};

pub(crate) use rows::{FeedRows, feed_schema};

/// A part of a feed: one version.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedPart {
    /// All of the table at a version, or some of its files; `first` is the place of the first one of them.
    Snapshot {
        version: i64,
        timestamp_us: i64,
        first: usize,
        files: Vec<AddedFile>,
    },
    Changes(RowChanges),
}

impl FeedPart {
    /// Data files that are read, their bytes and rows; of a file whose rows changed in part only that part.
    pub fn size(&self) -> FeedSize {
        match self {
            FeedPart::Snapshot { files, .. } => FeedSize {
                files: files.len(),
                bytes: files.iter().map(|file| file.size).sum(),
                rows: files.iter().filter_map(|file| file.rows).sum(),
            },
            FeedPart::Changes(changes) => {
                let all = || changes.removed.iter().chain(&changes.added);
                FeedSize {
                    files: all().count(),
                    bytes: all().map(part_bytes).sum(),
                    rows: all().map(|part| part.rows.len()).sum(),
                }
            }
        }
    }
}

/// About how much of a file's bytes these rows are.
fn part_bytes(part: &FileRows) -> u64 {
    let all = part.file.rows.unwrap_or(0).max(part.rows.len()).max(1);
    u64::try_from(u128::from(part.file.size) * u128::from(part.rows.len()) / u128::from(all)).unwrap_or(u64::MAX)
}

/// How much there is to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeedSize {
    pub files: usize,
    pub bytes: u64,
    pub rows: u64,
}

impl FeedSize {
    /// Of several parts together.
    pub fn of(parts: &[FeedPart]) -> FeedSize {
        parts.iter().map(FeedPart::size).fold(FeedSize::default(), |sum, size| FeedSize {
            files: sum.files + size.files,
            bytes: sum.bytes + size.bytes,
            rows: sum.rows + size.rows,
        })
    }
}

/// A part of a feed's backlog.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedSlice {
    /// Without versions that changed no row.
    pub parts: Vec<FeedPart>,
    pub end: TableOffset,
}

/// The changes between `start` and the end of version `up_to`: whole versions, as many as `limit` allows and at least
/// one, of the initial snapshot some files. None if there is nothing new. `name` is the table's in the user's files.
///
/// # Errors
/// `source-rewritten` for a full refresh, which makes another table; `change-data-missing` and those of
/// [`Table::row_changes`] for what a vacuum or a clean-up of the log took.
pub fn next_feed_slice(
    table: &Table,
    name: &str,
    start: TableOffset,
    up_to: i64,
    limit: SliceLimit,
) -> Result<Option<FeedSlice>> {
    let mut slice = FeedSlice { parts: Vec::new(), end: start };
    if start.is_snapshot {
        let options = TableStream::default();
        if let Some(found) = next_slice(table, name, start, start.version, &options, Some(limit))? {
            slice.parts.extend(snapshot(table, start, found.files)?);
            slice.end = found.end;
        }
    }
    loop {
        let size = FeedSize::of(&slice.parts);
        let is_full = size.files >= limit.files || size.files > 0 && limit.bytes.is_some_and(|max| size.bytes >= max);
        let at = slice.end;
        if is_full || at.is_snapshot || at.version > up_to {
            break;
        }
        let changes = changes(table, at)?;
        if changes.operation == FULL_REFRESH && !changes.removed.is_empty() {
            // What came before it is read first.
            match at != start {
                true => break,
                false => return Err(refreshed(name, at.version)),
            }
        }
        slice.parts.extend(part(changes));
        slice.end = TableOffset::after(at.version);
    }
    Ok((slice.end != start).then_some(slice))
}

/// The changes from `start` to exactly `end`: the input of a planned batch.
///
/// # Errors
/// As [`next_feed_slice`], but for what was checked when it was planned.
pub fn planned_feed(table: &Table, start: TableOffset, end: TableOffset) -> Result<Vec<FeedPart>> {
    let mut parts = Vec::new();
    let mut at = start;
    if start.is_snapshot {
        at = if end.is_snapshot { end } else { TableOffset::after(start.version) };
        parts.extend(snapshot(table, start, planned_slice(table, start, at)?)?);
    }
    while at.version < end.version {
        parts.extend(part(changes(table, at)?));
        at = TableOffset::after(at.version);
    }
    match at == end {
        true => Ok(parts),
        false => Err(Error::Internal(format!("the planned change feed of table `{}` does not add up", table.name()))),
    }
}

/// All rows of the table at a version, as inserts.
pub fn whole_feed(table: &Table, version: i64) -> Result<Vec<FeedPart>> {
    let start = TableOffset { version, files: 0, is_snapshot: true };
    Ok(snapshot(table, start, table.files_at(version)?)?.into_iter().collect())
}

fn snapshot(table: &Table, start: TableOffset, files: Vec<AddedFile>) -> Result<Option<FeedPart>> {
    if files.is_empty() {
        return Ok(None);
    }
    let timestamp_us = table.timestamp_us(start.version)?;
    Ok(Some(FeedPart::Snapshot { version: start.version, timestamp_us, first: start.files, files }))
}

/// What the version at an offset did.
fn changes(table: &Table, at: TableOffset) -> Result<RowChanges> {
    let mut changes = table.row_changes(at.version)?;
    // Read as a stream of new rows before, the first files of a version may be done.
    changes.added.drain(..at.files.min(changes.added.len()));
    table.check_readable(&changes)?;
    Ok(changes)
}

fn part(changes: RowChanges) -> Option<FeedPart> {
    (!changes.added.is_empty() || !changes.removed.is_empty()).then_some(FeedPart::Changes(changes))
}

fn refreshed(name: &str, version: i64) -> Error {
    Error::user(
        "source-rewritten",
        format!("version {version} of `{name}` is a full refresh: another table, not changes of this one"),
        format!(
            "read it from the start again: `flowbench run --full-refresh` of the table that reads its changes; or go on \
             behind it: `flowbench reset` of the flow and STARTINGVERSION = {}",
            version + 1
        ),
    )
}
