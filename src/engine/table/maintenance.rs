//! Keeping a table small: checkpoints of the log and its clean-up, and vacuum of files that nobody needs any more.
//! Not here: rewriting files (`compaction.rs`).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use deltalake_core::protocol::checkpoints::create_checkpoint_from_table_url_and_cleanup;
use tracing::warn;

use super::action::decode_path;
use super::deletion_vector::is_vector_file;
use super::writer::{is_in_progress, now_ms};
use super::{Table, log};
use crate::error::{Error, Result};

/// How many commits a reader has to read one by one at most (Delta: `delta.checkpointInterval`).
const CHECKPOINT_INTERVAL: i64 = 50;
/// How long the log reaches back at least (Delta: `delta.logRetentionDuration`, whose default this is).
const LOG_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

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
    /// Deletes data files and deletion vectors that are in no version younger than `retention`, were not written within it, and
    /// don't wait for a commit of this process. Folders that are tables of their own, such as a generation
    /// that is being built, are left alone.
    pub fn vacuum(&mut self, retention: Duration) -> Result<Vacuumed> {
        self.refresh()?;
        self.sweep_log()?;
        let cutoff_ms = now_ms().saturating_sub(i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
        let tombstones = self.state.tombstones.iter().filter(|(_, removed_ms)| **removed_ms >= cutoff_ms);
        let needed = self.state.files.keys().chain(tombstones.map(|(path, _)| path));
        let mut needed: HashSet<PathBuf> = needed.filter_map(|path| decode_path(&self.dir, path)).collect();
        let current = self.state.files.values().filter_map(|add| add.deletion_vector.as_ref());
        let old = self.state.old_vectors.values().filter(|(_, replaced_ms)| *replaced_ms >= cutoff_ms);
        needed.extend(current.chain(old.map(|(vector, _)| vector)).filter_map(|vector| vector.file(&self.dir)));
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
                let is_data = path.extension().is_some_and(|extension| extension == "parquet") || is_vector_file(&name);
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

fn age(path: &Path) -> Option<Duration> {
    SystemTime::now().duration_since(fs::metadata(path).ok()?.modified().ok()?).ok()
}
