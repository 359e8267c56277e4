//! A Delta table read as a stream: which data files come after an offset, cut into slices.
//!
//! A first start reads the table as it is (the initial snapshot), then the files each later version adds.
//! Not here: reading the files.

use pipeline::read_files::TableStream;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::table::{AddedFile, Table};

/// How far a stream has read a table: everything before `version`, and the first `files` files of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableOffset {
    pub version: i64,
    pub files: usize,
    /// `version` is the initial snapshot: its files are all files of the table then.
    pub is_snapshot: bool,
}

impl TableOffset {
    /// The text for state.db.
    pub fn to_json(self) -> String {
        serde_json::to_string(&self).expect("an offset is plain data")
    }

    /// Reads what [`TableOffset::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<TableOffset> {
        serde_json::from_str(text).map_err(|e| Error::Internal(format!("cannot read the offset `{text}`: {e}")))
    }

    /// Where a stream starts that has never read: as its options say, else with the table as it is.
    pub fn start(table: &Table, options: &TableStream) -> Result<TableOffset> {
        let from = |version| TableOffset { version, files: 0, is_snapshot: false };
        if options.starts_at_latest {
            return Ok(from(table.version() + 1));
        }
        if let Some(version) = options.starting_version {
            return Ok(from(version));
        }
        if let Some(time_us) = options.starting_timestamp_us {
            return Ok(from(table.version_since(time_us)?.unwrap_or(table.version() + 1)));
        }
        Ok(TableOffset { version: table.version(), files: 0, is_snapshot: true })
    }

    /// The offset behind all of `version`.
    pub(super) fn after(version: i64) -> TableOffset {
        TableOffset { version: version + 1, files: 0, is_snapshot: false }
    }
}

/// A part of a stream's backlog.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    pub files: Vec<AddedFile>,
    pub end: TableOffset,
}

/// How large a slice may be.
#[derive(Debug, Clone, Copy)]
pub struct SliceLimit {
    pub files: usize,
    pub bytes: Option<u64>,
}

/// The files between `start` and the end of version `up_to`, as many as `limit` allows and at least one
/// (None: all). None if there is nothing new. `name` is the table's in the user's files.
///
/// # Errors
/// `source-rewritten` if a version on the way removed or changed rows, unless `skip_change_commits`.
pub fn next_slice(
    table: &Table,
    name: &str,
    start: TableOffset,
    up_to: i64,
    options: &TableStream,
    limit: Option<SliceLimit>,
) -> Result<Option<Slice>> {
    let mut slice = Slice { files: Vec::new(), end: start };
    let mut bytes = 0;
    let is_full = |files: &[AddedFile], bytes: u64| {
        limit.is_some_and(|limit| {
            files.len() >= limit.files || !files.is_empty() && limit.bytes.is_some_and(|max| bytes >= max)
        })
    };
    if start.is_snapshot {
        let files = table.files_at(start.version)?;
        take(&mut slice, &mut bytes, files, start, &is_full);
    }
    while slice.end.version <= up_to && !slice.end.is_snapshot && !is_full(&slice.files, bytes) {
        let version = slice.end.version;
        let Some(change) = table.changes(version - 1, version)?.pop() else { break };
        if !change.is_append_only && !options.skip_change_commits {
            // What came before the rewrite is read first.
            match slice.end != start {
                true => break,
                false => return Err(rewritten(name, version, &change.operation)),
            }
        }
        let files = if change.is_append_only { change.adds } else { Vec::new() };
        let at = slice.end;
        take(&mut slice, &mut bytes, files, at, &is_full);
    }
    Ok((slice.end != start).then_some(slice))
}

/// The files from `start` to exactly `end`: the input of a planned batch.
pub fn planned_slice(table: &Table, start: TableOffset, end: TableOffset) -> Result<Vec<AddedFile>> {
    // What was planned was checked then.
    let options = TableStream { skip_change_commits: true, ..TableStream::default() };
    let mut files = Vec::new();
    let mut at = start;
    while at != end {
        let limit = (at.version == end.version).then(|| SliceLimit { files: end.files - at.files, bytes: None });
        let up_to = if end.files == 0 { end.version - 1 } else { end.version };
        let to = match limit {
            Some(_) => up_to,
            None => at.version,
        };
        match next_slice(table, table.name(), at, to, &options, limit)? {
            Some(slice) => {
                files.extend(slice.files);
                at = slice.end;
            }
            None => {
                return Err(Error::Internal(format!("the planned input of table `{}` does not add up", table.name())));
            }
        }
    }
    Ok(files)
}

fn take(
    slice: &mut Slice,
    bytes: &mut u64,
    files: Vec<AddedFile>,
    at: TableOffset,
    is_full: &dyn Fn(&[AddedFile], u64) -> bool,
) {
    let count = files.len();
    let mut taken = at.files;
    for file in files.into_iter().skip(at.files) {
        if is_full(&slice.files, *bytes) {
            break;
        }
        *bytes += file.size;
        taken += 1;
        slice.files.push(file);
    }
    slice.end = match taken >= count {
        true => TableOffset::after(at.version),
        false => TableOffset { files: taken, ..at },
    };
}

fn rewritten(name: &str, version: i64, operation: &str) -> Error {
    Error::user(
        "source-rewritten",
        format!("version {version} of `{name}` changed or removed rows ({operation}); a stream only follows appends"),
        format!(
            "read it from the start again: `flowbench run --full-refresh` of the table that streams from it; or pass over \
             such versions: STREAM {name} WITH (SKIPCHANGECOMMITS = TRUE); or start behind it: `flowbench reset` of \
             the flow and STARTINGVERSION = {}",
            version + 1
        ),
    )
}
