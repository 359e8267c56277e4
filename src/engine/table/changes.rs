//! What happened to a table, version by version, read from its log: for streams that read it, and for its
//! history.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::{Action, Add, CommitInfo, PartitionValues, by_age};
use super::deletion_vector::{DeletionVector, RowSet};
use super::state::State;
use super::{Table, log, state, stats};
use crate::error::Result;

/// A data file that entered a table. Serializable, so that a planned batch can name its input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddedFile {
    /// The version that added it; of an initial snapshot, the snapshot's.
    pub version: i64,
    /// As the log has it; the file's identity within the table.
    pub path: String,
    pub size: u64,
    /// Rows in the file, deleted ones counted; `None` if whoever wrote it didn't say.
    pub rows: Option<u64>,
    pub partition_values: PartitionValues,
    /// Rows that are deleted though the file holds them, as of the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
    #[serde(skip)]
    stats: Option<String>,
    #[serde(skip)]
    pub(super) modified_ms: i64,
}

impl AddedFile {
    pub(super) fn new(version: i64, add: &Add) -> AddedFile {
        AddedFile {
            version,
            path: add.path.clone(),
            size: u64::try_from(add.size).unwrap_or(0),
            rows: add.rows(),
            partition_values: add.partition_values.clone(),
            deletion_vector: add.deletion_vector.clone(),
            stats: add.stats.clone(),
            modified_ms: add.modification_time,
        }
    }

    /// See [`Add::by_age`].
    pub(super) fn by_age(&self, other: &AddedFile) -> Ordering {
        by_age((self.modified_ms, &self.path), (other.modified_ms, &other.path))
    }

    pub(super) fn into_add(self) -> Add {
        Add {
            path: self.path,
            partition_values: self.partition_values,
            size: i64::try_from(self.size).unwrap_or(i64::MAX),
            data_change: true,
            stats: self.stats,
            deletion_vector: self.deletion_vector,
            modification_time: self.modified_ms,
            ..Add::default()
        }
    }
}

/// What one version did to the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionChange {
    pub version: i64,
    pub timestamp_us: i64,
    pub operation: String,
    /// No row was removed or changed.
    pub is_append_only: bool,
    /// Files with new rows; a compaction has none.
    pub adds: Vec<AddedFile>,
    /// Files whose rows left, by `AddedFile::path`; a compaction has none.
    pub removes: Vec<String>,
    pub schema_changed: bool,
}

/// Some rows of a data file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRows {
    pub file: AddedFile,
    pub rows: RowSet,
}

/// What one version did, row by row. A compaction does nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChanges {
    pub version: i64,
    pub timestamp_us: i64,
    pub operation: String,
    /// Rows that came into the table, with new files or because a deletion was taken back.
    pub added: Vec<FileRows>,
    /// Rows that left the table, with their files or alone.
    pub removed: Vec<FileRows>,
}

/// One line of `DESCRIBE HISTORY`.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryEntry {
    pub version: i64,
    pub timestamp_us: i64,
    pub operation: String,
    pub parameters: BTreeMap<String, String>,
    pub metrics: BTreeMap<String, String>,
    /// The program that made the commit.
    pub engine: Option<String>,
}

impl Table {
    /// What the versions after `after_version` up to `up_to` did, oldest first.
    ///
    /// # Errors
    /// `table-version-missing` names the first version that the log doesn't have (any more).
    pub fn changes(&self, after_version: i64, up_to: i64) -> Result<Vec<VersionChange>> {
        (after_version + 1..=up_to).map(|version| self.change(version)).collect()
    }

    fn change(&self, version: i64) -> Result<VersionChange> {
        let actions = self.commit_at(version)?;
        let info = commit_info(&actions);
        let adds = actions.iter().filter_map(|action| action.add.as_ref()).filter(|add| add.data_change);
        let removes = actions.iter().filter_map(|action| action.remove.as_ref()).filter(|remove| remove.data_change);
        let removes: Vec<String> = removes.map(|remove| remove.path.clone()).collect();
        let metadata = actions.iter().find_map(|action| action.meta_data.as_ref());
        let schema_changed = match metadata {
            Some(metadata) if version > 0 => match State::read(&self.dir, Some(version - 1)) {
                Ok(Some(before)) => before.metadata.schema_string != metadata.schema_string,
                // What was before is cleaned up; to say "changed" costs a look, to say "not" could be wrong.
                Ok(None) | Err(_) => true,
            },
            Some(_) => true,
            None => false,
        };
        Ok(VersionChange {
            version,
            timestamp_us: timestamp_us(&self.dir, version, &info),
            operation: info.operation.unwrap_or_default(),
            is_append_only: removes.is_empty(),
            adds: adds.map(|add| AddedFile::new(version, add)).collect(),
            removes,
            schema_changed,
        })
    }

    /// What a version did to the rows, from its log entry and the deletion vectors that it names.
    ///
    /// # Errors
    /// As `changes`; `deletion-vector-unreadable` if a vacuum took an older vector.
    pub fn row_changes(&self, version: i64) -> Result<RowChanges> {
        let actions = self.commit_at(version)?;
        let info = commit_info(&actions);
        let adds = actions.iter().filter_map(|action| action.add.as_ref()).filter(|add| add.data_change);
        let removes = actions.iter().filter_map(|action| action.remove.as_ref()).filter(|remove| remove.data_change);
        let mut before: BTreeMap<&str, Add> = BTreeMap::new();
        let mut older = None;
        for remove in removes {
            let add = match remove.to_add() {
                Some(add) => add,
                None => {
                    if older.is_none() {
                        older = Some(self.state_at(version - 1)?);
                    }
                    let add = older.as_ref().and_then(|older| older.files.get(&remove.path));
                    add.ok_or_else(|| state::missing_version(&self.dir, version - 1))?.as_ref().clone()
                }
            };
            before.insert(&remove.path, add);
        }
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        let tell = |rows: RowSet, add: &Add, of: &mut Vec<FileRows>| {
            if !rows.is_empty() {
                of.push(FileRows { file: AddedFile::new(version, add), rows });
            }
        };
        for add in adds {
            match before.remove(add.path.as_str()) {
                None => tell(self.live(add)?, add, &mut added),
                Some(old) if old.deletion_vector == add.deletion_vector => {}
                Some(old) => {
                    let deleted = |add| Ok::<_, crate::error::Error>(self.deleted_rows(add)?.unwrap_or_default());
                    let (old, new) = (deleted(&old)?, deleted(add)?);
                    tell(new.as_ref() - old.as_ref(), add, &mut removed);
                    tell(old.as_ref() - new.as_ref(), add, &mut added);
                }
            }
        }
        for add in before.values() {
            tell(self.live(add)?, add, &mut removed);
        }
        let timestamp_us = timestamp_us(&self.dir, version, &info);
        Ok(RowChanges { version, timestamp_us, operation: info.operation.unwrap_or_default(), added, removed })
    }

    /// When a version was committed; if its log entry was cleaned up, when the newest of its files was written.
    ///
    /// # Errors
    /// `table-version-missing` if there is no such version any more.
    pub fn timestamp_us(&self, version: i64) -> Result<i64> {
        if let Some(actions) = log::read_commit(&self.dir, version)? {
            return Ok(timestamp_us(&self.dir, version, &commit_info(&actions)));
        }
        let files = self.files_at(version)?;
        Ok(files.iter().map(|file| file.modified_ms * 1000).max().unwrap_or(0))
    }

    /// The rows of a file that are not deleted.
    fn live(&self, add: &Add) -> Result<RowSet> {
        let mut rows = RowSet::new();
        rows.insert_range(0..stats::file_rows(&self.dir, add)?);
        if let Some(deleted) = self.deleted_rows(add)? {
            rows -= deleted.as_ref();
        }
        Ok(rows)
    }

    /// The files of the table at a version, the oldest first: the initial snapshot of a stream that starts there.
    pub fn files_at(&self, version: i64) -> Result<Vec<AddedFile>> {
        let list = |state: &State| {
            let mut files: Vec<AddedFile> = state.files.values().map(|add| AddedFile::new(version, add)).collect();
            files.sort_by(AddedFile::by_age);
            files
        };
        if version == self.state.version {
            return Ok(list(&self.state));
        }
        Ok(list(&self.state_at(version)?))
    }

    /// The first version that was committed at this time or later; `None` if the table has not been changed since.
    pub fn version_since(&self, timestamp_us: i64) -> Result<Option<i64>> {
        let Some(listing) = log::list(&self.dir)? else { return Ok(None) };
        // Clocks go wrong, versions don't: a version counts as made when or after the one before it was.
        let mut latest = i64::MIN;
        for version in listing.commits.keys() {
            let info = commit_info(&self.commit_at(*version)?);
            latest = latest.max(self::timestamp_us(&self.dir, *version, &info));
            if latest >= timestamp_us {
                return Ok(Some(*version));
            }
        }
        Ok(None)
    }

    /// The table's last commits, newest first, as far as the log reaches back.
    pub fn history(&self, limit: usize) -> Result<Vec<HistoryEntry>> {
        let mut entries = Vec::new();
        for version in (0..=self.state.version).rev().take(limit) {
            let Some(actions) = log::read_commit(&self.dir, version)? else { break };
            let info = commit_info(&actions);
            entries.push(HistoryEntry {
                version,
                timestamp_us: timestamp_us(&self.dir, version, &info),
                parameters: info.operation_parameters.into_iter().map(as_text).collect(),
                metrics: info.operation_metrics.into_iter().flatten().map(as_text).collect(),
                operation: info.operation.unwrap_or_default(),
                engine: info.engine_info,
            });
        }
        Ok(entries)
    }

    fn commit_at(&self, version: i64) -> Result<Vec<Action>> {
        log::read_commit(&self.dir, version)?.ok_or_else(|| state::missing_version(&self.dir, version))
    }
}

fn commit_info(actions: &[Action]) -> CommitInfo {
    actions.iter().find_map(|action| action.commit_info.clone()).unwrap_or_default()
}

/// When a version was committed: what the commit says, or else the time of its file.
fn timestamp_us(table_dir: &Path, version: i64, info: &CommitInfo) -> i64 {
    let told = info.in_commit_timestamp.or(info.timestamp).map(|millis| millis * 1000);
    told.unwrap_or_else(|| {
        let modified = std::fs::metadata(log::commit_path(table_dir, version)).and_then(|file| file.modified()).ok();
        let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

fn as_text((key, value): (String, Value)) -> (String, String) {
    match value {
        Value::String(text) => (key, text),
        value => (key, value.to_string()),
    }
}
