//! Delta tables on local disk: what a pipeline's datasets are stored in.
//!
//! The log is read and written by our own small code, because a micro-batch has 25 ms and a commit must cost
//! what it changes, not what the table holds; delta-rs reads and checkpoints what only it knows (column mapping and
//! rarer features of other programs).
//!
//! ```text
//! batches ─▶ DataWriter ─▶ DataFile ─▶ Table::prepare ─▶ commit_prepared ─▶ log entry ─▶ State ─▶ provider | changes
//!             rows to delete ─────────────▲                └─────── Table::commit does both ───────┘
//! ```
//!
//! * `action` – the lines of the log; `log` – the log's folder; `state` – what the lines add up to
//! * `schema`, `partition`, `stats` – Arrow ↔ Delta: types, folders, statistics
//! * `writer` – Parquet files; `deletion_vector` – which rows of a file are deleted
//! * `prepare` – a commit up to its log entry; `commit` – putting files into the table and taking rows out,
//!   overwrites; `promote` – a whole new generation
//! * `provider` – reading with DataFusion; `changes` – what each version did to files and rows, for streams
//! * `checkpoint` – the log's short cuts; `maintenance` – when to write one, vacuum; `compaction` – fewer files, without
//!   deleted rows; `damage` – files that are not as the log has them; `queue` – one writer a table
//!
//! Reading and writing the log blocks for a few milliseconds, which the engine's threads can take; what runs
//! longer is `async`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use crate::error::{Error, Result};

mod action;
mod log;
mod state;
mod schema;
mod partition;
mod stats;
mod writer;
mod deletion_vector;
mod prepare;
mod commit;
mod damage;
mod promote;
mod provider;
mod changes;
mod checkpoint;
mod maintenance;
mod compaction;
mod queue;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod deletion_tests;

pub use action::{CommitInfo, PartitionValues};
pub use changes::{AddedFile, FileRows, HistoryEntry, RowChanges, VersionChange};
pub use commit::{ALREADY_COMMITTED, CONFLICT, Commit, Committed, MetadataChange, RemoveSet};
pub use compaction::{
    Compacted, CompactionLimits, FileMove, PreparedCompaction, Rewrite, Rewritten, compact, plan_rewrites,
    rewrite_files,
};
pub use deletion_vector::{DeletionVector, RowDeletes, RowSet};
pub use maintenance::Vacuumed;
pub use prepare::PreparedCommit;
pub use promote::FULL_REFRESH;
pub use queue::{SharedTable, Tables};
pub use schema::{canonical, check_growth};
pub use writer::{DataFile, DataWriter, Located, RowRun, SyncAt, WriterOptions};

use action::{Action, Add, Format, Metadata};
use deletion_vector::Vectors;
use state::State;

/// What a new table is.
#[derive(Debug, Clone, Default)]
pub struct TableSpec {
    /// The dataset's name, for messages and catalogs.
    pub name: String,
    /// Any Arrow types that Delta has a type for; the table will show `schema::canonical` of it. A column's
    /// comment is the field's metadata `comment`.
    pub schema: Option<SchemaRef>,
    pub partition_by: Vec<String>,
    pub comment: Option<String>,
    /// TBLPROPERTIES, our own (`flowbench.…`) and Delta's (`delta.…`).
    pub properties: BTreeMap<String, String>,
    /// Rows will be deleted in place: other programs are told from the start what they must understand. Otherwise the
    /// first commit that deletes rows tells them.
    pub deletion_vectors: bool,
}

/// A Delta table, held at one version. `refresh` moves it to the newest; its own commits do so by themselves.
#[derive(Debug)]
pub struct Table {
    dir: PathBuf,
    name: String,
    state: State,
    vectors: Vectors,
    /// Which file the current version's commit is, to notice a table that was dropped and created anew.
    commit_file: Option<log::FileIdentity>,
}

impl Table {
    /// Opens the table in a folder at its newest version; `None` if there is none.
    ///
    /// # Errors
    /// `not-a-table` if the folder holds something else; `table-log-corrupted`; `table-feature-unsupported`.
    pub fn open(dir: impl AsRef<Path>) -> Result<Option<Table>> {
        let dir = std::path::absolute(dir.as_ref()).map_err(|error| Error::io("find", dir.as_ref(), error))?;
        match State::read(&dir, None)? {
            Some(state) => Ok(Some(Table::at(dir, state))),
            None => match std::fs::symlink_metadata(&dir) {
                Ok(found) if !found.is_dir() => Err(Error::user(
                    "not-a-table",
                    format!("`{}` is a file, not the folder of a table", dir.display()),
                    "name the folder that holds `_delta_log`",
                )),
                Ok(_) | Err(_) => Ok(None),
            },
        }
    }

    /// Creates a table. Fails with `table-exists` if there is one.
    pub fn create(dir: impl AsRef<Path>, spec: TableSpec) -> Result<Table> {
        let dir = std::path::absolute(dir.as_ref()).map_err(|error| Error::io("find", dir.as_ref(), error))?;
        let schema = spec.schema.unwrap_or_else(|| Arc::new(arrow::datatypes::Schema::empty()));
        let (metadata, schema) = commit::new_metadata(&spec.name, &schema, spec.partition_by, &dir)?;
        let mut properties = spec.properties;
        if spec.deletion_vectors {
            properties.insert(commit::DELETION_VECTORS.into(), "true".into());
        }
        let metadata = Metadata {
            description: spec.comment,
            configuration: properties.into_iter().map(|(key, value)| (key, Some(value))).collect(),
            ..metadata
        };
        commit::create(dir, metadata, &schema, Vec::new(), "CREATE TABLE")
    }

    /// Mends what a power failure may leave of the newest commit: see `log::remove_empty_tail`.
    pub fn remove_empty_tail(dir: &Path) -> Result<Option<i64>> {
        log::remove_empty_tail(dir)
    }

    fn at(dir: PathBuf, state: State) -> Table {
        let name = state
            .metadata
            .name
            .clone()
            .unwrap_or_else(|| dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        let commit_file = log::identity(&dir, state.version);
        Table { dir, name, state, vectors: Vectors::default(), commit_file }
    }

    /// Moves on to the newest version, which costs one look at the disk if there is nothing new.
    ///
    /// A table that was dropped and created anew meanwhile is opened anew; its `id` tells.
    pub fn refresh(&mut self) -> Result<()> {
        self.read_new_commits().map(drop)
    }

    /// Moves on to the newest version and returns the commits on the way, oldest first.
    fn read_new_commits(&mut self) -> Result<Vec<(i64, Vec<Action>)>> {
        if self.commit_file.is_some() && log::identity(&self.dir, self.state.version) != self.commit_file
            || self.commit_file.is_none()
        {
            // The commit we stand on is gone (cleaned up) or another one: only a listing knows what is newest.
            return self.reopen();
        }
        let mut commits = Vec::new();
        while let Some(actions) = log::read_commit(&self.dir, self.state.version + 1)? {
            self.advance(actions.clone())?;
            commits.push((self.state.version, actions));
        }
        Ok(commits)
    }

    fn reopen(&mut self) -> Result<Vec<(i64, Vec<Action>)>> {
        let found = State::read(&self.dir, None)?.ok_or_else(|| Error::External {
            code: "table-gone",
            what: format!("table `{}` is no longer at `{}`", self.name, self.dir.display()),
            help: "restore the folder, or drop the dataset and refresh it in full".into(),
        })?;
        let is_same = found.metadata.id == self.state.metadata.id;
        let known = self.state.version;
        self.commit_file = log::identity(&self.dir, found.version);
        self.state = found;
        self.vectors = Vectors::default();
        let mut commits = Vec::new();
        if is_same {
            for version in known + 1..=self.state.version {
                commits.extend(log::read_commit(&self.dir, version)?.map(|actions| (version, actions)));
            }
        }
        Ok(commits)
    }

    fn advance(&mut self, actions: Vec<Action>) -> Result<()> {
        let removed =
            actions.iter().filter_map(|action| Some(action.remove.as_ref()?.path.clone())).collect::<Vec<_>>();
        self.state.advance(&self.dir, actions)?;
        self.vectors.forget(removed.iter().filter(|path| !self.state.files.contains_key(*path)));
        self.commit_file = log::identity(&self.dir, self.state.version);
        Ok(())
    }

    /// The table's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The name it was created under, or its folder's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table's identity: another one means that it was dropped and created anew.
    pub fn id(&self) -> &str {
        &self.state.metadata.id
    }

    /// The version this handle stands at.
    pub fn version(&self) -> i64 {
        self.state.version
    }

    /// The columns, as `schema::canonical` has them.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.state.schema)
    }

    /// The partition columns.
    pub fn partition_by(&self) -> &[String] {
        &self.state.metadata.partition_columns
    }

    /// The table's comment.
    pub fn comment(&self) -> Option<&str> {
        self.state.metadata.description.as_deref()
    }

    /// TBLPROPERTIES.
    pub fn properties(&self) -> BTreeMap<String, String> {
        let given = |(key, value): (&String, &Option<String>)| Some((key.clone(), value.clone()?));
        self.state.metadata.configuration.iter().filter_map(given).collect()
    }

    /// The last batch id that an application has committed.
    pub fn txn(&self, app_id: &str) -> Option<i64> {
        self.state.txns.get(app_id).copied()
    }

    /// Application id → last batch id.
    pub fn all_txns(&self) -> &BTreeMap<String, i64> {
        &self.state.txns
    }

    /// Data files.
    pub fn file_count(&self) -> usize {
        self.state.files.len()
    }

    /// Bytes of the data files.
    pub fn size_bytes(&self) -> u64 {
        self.state.files.values().map(|file| u64::try_from(file.size).unwrap_or(0)).sum()
    }

    /// Rows, if every file's statistics tell.
    pub fn row_count(&self) -> Option<u64> {
        self.state.files.values().map(|file| file.live_rows()).sum()
    }

    /// How many of a version's data files are no longer on disk: a vacuum took them.
    ///
    /// # Errors
    /// `table-version-missing` if the log no longer reaches back to it.
    pub fn missing_files_at(&self, version: i64) -> Result<usize> {
        let files = self.files_at(version)?;
        let is_gone = |file: &&AddedFile| action::decode_path(&self.dir, &file.path).is_some_and(|file| !file.exists());
        Ok(files.iter().filter(is_gone).count())
    }

    /// The rows of a file that are deleted, as of the version that `add` is from. Those of the current version are
    /// read once.
    fn deleted_rows(&self, add: &Add) -> Result<Option<Arc<RowSet>>> {
        let Some(vector) = &add.deletion_vector else { return Ok(None) };
        if let Some(known) = self.vectors.get(&add.path, vector) {
            return Ok(Some(known));
        }
        let rows = Arc::new(vector.read(&self.dir)?);
        if self.state.files.get(&add.path).is_some_and(|current| current.deletion_vector.as_ref() == Some(vector)) {
            self.vectors.insert(&add.path, vector, &rows);
        }
        Ok(Some(rows))
    }

    /// A writer of data files for this table; see `DataWriter::new`.
    pub fn writer(&self, options: WriterOptions) -> Result<DataWriter> {
        DataWriter::new(&self.dir, None, self.schema(), self.partition_by(), options)
    }
}
