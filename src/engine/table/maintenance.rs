//! Keeping a table fast and small: checkpoints of the log and its clean-up, compaction of small files, and
//! vacuum of files that nobody needs any more.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use datafusion::prelude::{SessionConfig, SessionContext};
use deltalake_core::protocol::checkpoints::create_checkpoint_from_table_url_and_cleanup;
use futures::StreamExt;
use tokio::sync::Mutex;
use tracing::warn;

use super::action::decode_path;
use super::commit::CONFLICT;
use super::writer::{is_in_progress, now_ms};
use super::{AddedFile, Commit, PartitionValues, RemoveSet, Table, WriterOptions, log};
use crate::error::{Error, Result};

/// How many commits a reader has to read one by one at most (Delta: `delta.checkpointInterval`).
const CHECKPOINT_INTERVAL: i64 = 50;
/// How long the log reaches back at least (Delta: `delta.logRetentionDuration`, whose default this is).
const LOG_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    pub files_before: usize,
    pub files_after: usize,
}

/// What a vacuum deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vacuumed {
    pub files: usize,
    pub bytes: u64,
}

impl Table {
    /// Writes a checkpoint when it is time, beside the work: it takes long, and versions don't change. The commit
    /// has succeeded; that readers read a longer log is no reason to fail it.
    pub(super) fn checkpoint_if_due(&self) {
        let interval = self.state.metadata.configuration.get("delta.checkpointInterval");
        let interval = interval.and_then(|interval| interval.as_deref()?.parse().ok()).unwrap_or(CHECKPOINT_INTERVAL);
        let version = self.state.version;
        if version > 0 && interval > 0 && version % interval == 0 {
            let (dir, name) = (self.dir.clone(), self.name.clone());
            tokio::spawn(async move {
                if let Err(error) = checkpoint_log(&dir, &name, version).await {
                    warn!(table = name, version, %error, "no checkpoint of the log");
                }
            });
        }
    }

    /// Writes a checkpoint of the log at this version, and deletes log entries that are older than the log's
    /// retention and that no reader of a newer version needs.
    pub async fn checkpoint_log(&self) -> Result<()> {
        checkpoint_log(&self.dir, &self.name, self.state.version).await
    }
}

async fn checkpoint_log(dir: &Path, name: &str, version: i64) -> Result<()> {
    let url = url::Url::from_directory_path(dir)
        .map_err(|()| Error::Internal(format!("`{}` is not absolute", dir.display())))?;
    let failed =
        |source| Error::Table { action: "checkpoint the log of", table: name.to_owned(), source: Box::new(source) };
    create_checkpoint_from_table_url_and_cleanup(url, version as u64, Some(false), None).await.map_err(failed)?;
    clean_log(dir, LOG_RETENTION)
}

/// Deletes log entries before the newest checkpoint that is older than the retention.
pub(super) fn clean_log(dir: &Path, retention: Duration) -> Result<()> {
    let Some(listing) = log::list(dir)? else { return Ok(()) };
    let is_old = |path: &PathBuf| age(path).is_some_and(|age| age > retention);
    let Some((keep, _)) = listing.checkpoints.iter().rev().find(|(_, files)| files.iter().all(is_old)) else {
        return Ok(());
    };
    let commits = listing.commits.range(..keep).map(|(_, path)| path);
    for path in commits.chain(listing.checkpoints.range(..keep).flat_map(|(_, files)| files)) {
        fs::remove_file(path).map_err(|error| Error::io("delete", path, error))?;
    }
    Ok(())
}

impl Table {
    /// Deletes data files that are in no version younger than `retention`, were not written within it, and
    /// don't wait for a commit of this process. Folders that are tables of their own, such as a generation
    /// that is being built, are left alone.
    pub fn vacuum(&mut self, retention: Duration) -> Result<Vacuumed> {
        self.refresh()?;
        self.sweep_log()?;
        let cutoff_ms = now_ms().saturating_sub(i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
        let tombstones = self.state.tombstones.iter().filter(|(_, removed_ms)| **removed_ms >= cutoff_ms);
        let needed = self.state.files.keys().chain(tombstones.map(|(path, _)| path));
        let needed: HashSet<PathBuf> = needed.filter_map(|path| decode_path(&self.dir, path)).collect();
        let mut vacuumed = Vacuumed::default();
        let mut folders = vec![self.dir.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(|error| Error::io("list", &folder, error))? {
                let entry = entry.map_err(|error| Error::io("list", &folder, error))?;
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_hidden = name.starts_with(['_', '.']) && !name.contains('=');
                if is_hidden {
                    continue;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if !path.join(log::LOG_FOLDER).exists() {
                        folders.push(path);
                    }
                    continue;
                }
                let is_data = path.extension().is_some_and(|extension| extension == "parquet");
                let is_old = age(&path).is_some_and(|age| age >= retention);
                if is_data && is_old && !needed.contains(&path) && !is_in_progress(&path) {
                    vacuumed.files += 1;
                    vacuumed.bytes += entry.metadata().map(|file| file.len()).unwrap_or(0);
                    fs::remove_file(&path).map_err(|error| Error::io("delete", &path, error))?;
                }
            }
        }
        Ok(vacuumed)
    }

    /// Removes what a crash left in the log's folder or in a promoted generation's.
    fn sweep_log(&self) -> Result<()> {
        let folder = self.dir.join(log::LOG_FOLDER);
        for entry in fs::read_dir(&folder).map_err(|error| Error::io("list", &folder, error))?.flatten() {
            let path = entry.path();
            let is_draft = path.extension().is_some_and(|extension| extension == "tmp");
            if is_draft && age(&path).is_some_and(|age| age > Duration::from_secs(60 * 60)) {
                fs::remove_file(&path).map_err(|error| Error::io("delete", &path, error))?;
            }
        }
        let generations = self.state.files.keys().filter_map(|path| path.split_once('/')).map(|(folder, _)| folder);
        for generation in generations.collect::<HashSet<_>>() {
            let log = decode_path(&self.dir, generation).map(|folder| folder.join(log::LOG_FOLDER));
            if let Some(log) = log.filter(|log| log.is_dir()) {
                fs::remove_dir_all(&log).map_err(|error| Error::io("delete", log, error))?;
            }
        }
        Ok(())
    }
}

/// Rewrites small files into bigger ones, one commit for all, if a partition has at least `small_files_min` of
/// them. Small is what is below half of `file_bytes`. Flows go on appending meanwhile: the table is held only
/// to look and to commit; if the files were replaced in between, nothing happens.
pub async fn compact(table: &Mutex<Table>, small_files_min: usize, file_bytes: usize) -> Result<Compacted> {
    let (small, provider, writer) = {
        let mut table = table.lock().await;
        table.refresh()?;
        let small = small_files(table.files_at(table.version())?, small_files_min, file_bytes as u64 / 2);
        if small.is_empty() {
            return Ok(Compacted::default());
        }
        let options = WriterOptions { file_bytes, ..WriterOptions::default() };
        (small.clone(), table.files_provider(small).await?, table.writer(options)?)
    };
    let mut writer = writer;
    let failed = |source| Error::Query { during: "compacting small files".into(), source: Box::new(source) };
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let rows = session.read_table(provider).map_err(failed)?;
    let mut rows = rows.execute_stream().await.map_err(failed)?;
    while let Some(batch) = rows.next().await {
        writer.write(&batch.map_err(failed)?)?;
    }
    let adds = writer.finish()?;
    let compacted = Compacted { files_before: small.len(), files_after: adds.len() };
    let commit = Commit {
        adds,
        removes: RemoveSet::Given(small.into_iter().map(|file| file.path).collect()),
        operation: "OPTIMIZE".into(),
        rearranges: true,
        ..Commit::default()
    };
    match table.lock().await.commit(commit).await {
        Ok(_) => Ok(compacted),
        Err(error) if error.code() == CONFLICT => Ok(Compacted::default()),
        Err(error) => Err(error),
    }
}

/// The small files of those partitions that have enough of them.
fn small_files(files: Vec<AddedFile>, small_files_min: usize, small_bytes: u64) -> Vec<AddedFile> {
    let mut partitions: BTreeMap<PartitionValues, Vec<AddedFile>> = BTreeMap::new();
    for file in files {
        if file.size < small_bytes && file.deletion_vector.is_none() {
            partitions.entry(file.partition_values.clone()).or_default().push(file);
        }
    }
    partitions.into_values().filter(|files| files.len() >= small_files_min.max(2)).flatten().collect()
}

fn age(path: &Path) -> Option<Duration> {
    SystemTime::now().duration_since(fs::metadata(path).ok()?.modified().ok()?).ok()
}
