//! A commit up to its log entry: all files that it names are written, and what the entry will say is decided, as a
//! value that can be stored. Whoever keeps it can make the commit after a crash, once and exactly this one.
//!
//! Not here: writing the entry (`commit.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::action::Add;
use super::deletion_vector::{self, DeletionVector, RowSet};
use super::writer::{DataFile, InProgress, now_ms};
use super::{Commit, MetadataChange, RemoveSet, RowDeletes, Table, log, schema, stats};
use crate::error::{Error, Result};

/// A commit whose files are written. Nothing is in the table before `Table::commit_prepared`; until then the files are
/// nobody's but this value's: dropping it leaves them (it may have been stored), `discard` deletes them.
#[derive(Debug, Serialize, Deserialize)]
pub struct PreparedCommit {
    /// `Table::id` of the table that it was prepared for.
    pub(super) table_id: String,
    /// The version that it builds on.
    pub(super) read_version: i64,
    pub(super) adds: Vec<Add>,
    #[serde(default, skip_serializing_if = "RemoveSet::is_none")]
    pub(super) removes: RemoveSet,
    /// The files that lose rows.
    pub(super) changes: Vec<VectorChange>,
    /// The new schema as the log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) schema_string: Option<String>,
    #[serde(default)]
    pub(super) metadata: MetadataChange,
    pub(super) txns: Vec<(String, i64)>,
    pub(super) operation: String,
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) rearranges: bool,
    /// The files written for it, relative to the table's folder, as on disk.
    pub(super) created: Vec<String>,
    #[serde(skip)]
    #[expect(dead_code, reason = "it is held: a vacuum of this process leaves the files alone until it is dropped")]
    pub(super) in_progress: Vec<Arc<InProgress>>,
    /// The vectors of `changes`, as far as this process has written them.
    #[serde(skip)]
    pub(super) vectors: Vec<(usize, Arc<RowSet>)>,
}

/// By the index of a file to add: rows of it that don't enter the table.
type DeletedOfAdds<'c> = Vec<(usize, &'c RowSet)>;

/// A data file that loses rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct VectorChange {
    /// As in the log.
    pub path: String,
    /// The vector that the file has now; another one is a conflict.
    pub old: Option<DeletionVector>,
    /// `None`: no row is left, and the file leaves the table.
    pub new: Option<DeletionVector>,
    /// Rows in the file.
    pub rows: u64,
}

impl Table {
    /// Writes what a commit needs besides its log entry, durably: the deletion vectors, all in one file. The data
    /// files in `adds` are made as durable as their writer's options say, and stay until the commit is made or discarded.
    ///
    /// Builds on the version that this handle stands at.
    ///
    /// # Errors
    /// * `batch-already-committed` – the table's `txn` is at this batch id or beyond it
    /// * `table-conflict` – a file that is to lose rows, or to leave, is not in the table
    /// * `schema-change` – the new schema is none that a table can have
    /// * `Internal` – a row that is to be deleted is deleted already, or not in its file; nothing was written
    ///
    /// The files in `adds` are deleted then.
    pub fn prepare(&self, commit: Commit) -> Result<PreparedCommit> {
        self.check_txns(&commit.txns)?;
        let schema_string = commit.new_schema.as_deref().map(|schema| self.schema_string(schema)).transpose()?;
        let mut changes = match &commit.removes {
            RemoveSet::Read(files) => files.iter().map(|file| self.whole_file(file)).collect::<Result<_>>()?,
            RemoveSet::None | RemoveSet::All | RemoveSet::Given(_) => Vec::new(),
        };
        let vectors = self.add_deletes(&commit, &mut changes)?;
        let mut created: Vec<String> = commit.adds.iter().map(|file| file.path.clone()).collect();
        let mut in_progress: Vec<_> = commit.adds.iter().map(|file| file.in_progress()).collect();
        let (mut adds, of_adds) = self.adds_without(&commit)?;
        if !vectors.is_empty() || !of_adds.is_empty() {
            let rows: Vec<&RowSet> =
                vectors.iter().map(|(_, rows)| rows.as_ref()).chain(of_adds.iter().map(|(_, rows)| *rows)).collect();
            let (file, written) = deletion_vector::write(&self.dir, &rows)?;
            let mut written = written.into_iter();
            for ((change, _), vector) in vectors.iter().zip(written.by_ref()) {
                changes[*change].new = Some(vector);
            }
            for ((add, _), vector) in of_adds.iter().zip(written) {
                adds[*add].deletion_vector = Some(vector);
            }
            in_progress.push(Arc::new(InProgress::new(self.dir.join(&file))));
            created.push(file);
        }
        let to_sync = commit.adds.iter().filter(|file| file.is_to_sync).map(|file| &file.path);
        let to_sync = to_sync.chain(&created[commit.adds.len()..]).map(|name| self.dir.join(name)).collect::<Vec<_>>();
        log::sync_files(&self.dir, &to_sync)?;
        in_progress.iter().for_each(|file| file.set_keep(true));
        Ok(PreparedCommit {
            table_id: self.id().to_owned(),
            read_version: self.version(),
            adds,
            removes: match commit.removes {
                RemoveSet::Read(_) => RemoveSet::None,
                removes => removes,
            },
            changes,
            schema_string,
            metadata: commit.metadata,
            txns: commit.txns,
            operation: commit.operation,
            parameters: commit.parameters,
            rearranges: commit.rearranges,
            created,
            in_progress,
            vectors,
        })
    }

    fn schema_string(&self, wanted: &arrow::datatypes::Schema) -> Result<String> {
        let wanted = schema::canonical(wanted).and_then(|wanted| schema::to_delta(&wanted));
        wanted.map_err(|why| super::commit::schema_error(&self.name, why))
    }

    fn whole_file(&self, file: &super::AddedFile) -> Result<VectorChange> {
        let add = self.current_file(&file.path)?;
        if add.deletion_vector != file.deletion_vector {
            return Err(
                self.conflict(format!("rows of file `{}` of table `{}` were deleted since", file.path, self.name))
            );
        }
        let rows = stats::file_rows(&self.dir, add)?;
        Ok(VectorChange { path: file.path.clone(), old: file.deletion_vector.clone(), new: None, rows })
    }

    /// The files to add, and by their index the rows of them that the same commit deletes: a batch that was written in
    /// portions may take back what an earlier one wrote.
    fn adds_without<'c>(&self, commit: &'c Commit) -> Result<(Vec<Add>, DeletedOfAdds<'c>)> {
        let (mut adds, mut of_adds) = (Vec::new(), Vec::new());
        // Clocks go wrong; what comes later is younger all the same. Rows that only move stay as old as they are.
        let newest = self.state.files.values().map(|file| file.modification_time).max();
        let time = newest.map_or(now_ms(), |newest| now_ms().max(newest + 1));
        for file in &commit.adds {
            let mut add = file.to_add(!commit.rearranges);
            if !commit.rearranges {
                add.modification_time = time;
            }
            let deleted = commit.deletes.get(&add.path).filter(|deleted| !deleted.is_empty());
            if let Some(last) = deleted.and_then(RowSet::max).filter(|last| *last >= file.rows) {
                let why = format!("row {last} of the new file `{}` is to be deleted, of {} rows", file.path, file.rows);
                return Err(Error::Internal(why));
            }
            // A file without rows doesn't enter the table; a vacuum takes it.
            if deleted.is_some_and(|deleted| deleted.len() == file.rows) {
                continue;
            }
            if let Some(deleted) = deleted {
                add.stats = Some(stats::loosen(add.stats.as_deref(), file.rows));
                of_adds.push((adds.len(), deleted));
            }
            adds.push(add);
        }
        Ok((adds, of_adds))
    }

    /// Adds a change for each file that loses rows, and returns the new vectors of those that keep some.
    fn add_deletes(&self, commit: &Commit, changes: &mut Vec<VectorChange>) -> Result<Vec<(usize, Arc<RowSet>)>> {
        let mut vectors = Vec::new();
        let deletes: &RowDeletes = &commit.deletes;
        let new: BTreeSet<String> = commit.adds.iter().map(DataFile::log_path).collect();
        for (path, deleted) in deletes.iter().filter(|(path, deleted)| !deleted.is_empty() && !new.contains(*path)) {
            if !matches!(commit.removes, RemoveSet::None) {
                return Err(Error::Internal("a commit deletes rows of files that stay, and removes files".into()));
            }
            let add = self.current_file(path)?;
            let rows = stats::file_rows(&self.dir, add)?;
            let last = deleted.max().expect("it is not empty");
            if last >= rows {
                let why = format!("row {last} of `{path}` in table `{}` is to be deleted, of {rows} rows", self.name);
                return Err(Error::Internal(why));
            }
            let all = match self.deleted_rows(add)? {
                None => deleted.clone(),
                Some(present) => {
                    if let Some(row) = (present.as_ref() & deleted).min() {
                        let why = format!("row {row} of `{path}` in table `{}` is deleted already", self.name);
                        return Err(Error::Internal(why));
                    }
                    present.as_ref() | deleted
                }
            };
            if all.len() < rows {
                vectors.push((changes.len(), Arc::new(all)));
            }
            changes.push(VectorChange { path: path.clone(), old: add.deletion_vector.clone(), new: None, rows });
        }
        Ok(vectors)
    }

    pub(super) fn current_file(&self, path: &str) -> Result<&Arc<Add>> {
        let gone = || self.conflict(format!("file `{path}` is no longer in table `{}`", self.name));
        self.state.files.get(path).ok_or_else(gone)
    }

    pub(super) fn conflict(&self, what: String) -> Error {
        Error::External { code: super::CONFLICT, what, help: "the batch is planned again".into() }
    }
}

impl PreparedCommit {
    /// The batches that are in the table once this is made: (application id, batch id).
    pub fn txns(&self) -> &[(String, i64)] {
        &self.txns
    }

    /// Deletes the files that were written for a commit that is not made, and never will be.
    ///
    /// What is in the table stays. Not for a commit that failed while its entry was written: nobody knows whether the
    /// entry is there; call `commit_prepared` again, or leave the files to a vacuum.
    pub fn discard(self, table: &Table) -> Result<()> {
        let used: Vec<_> =
            table.state.files.values().filter_map(|add| add.deletion_vector.as_ref()?.file(&table.dir)).collect();
        for name in &self.created {
            let path = table.dir.join(name);
            if used.contains(&path) || table.state.files.contains_key(&super::action::encode_path(name)) {
                continue;
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("delete", path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
