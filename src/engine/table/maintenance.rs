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
use super::state::State;
use super::writer::{is_in_progress, now_ms};
use super::{Table, checkpoint, log};
use crate::error::{Error, Result};

/// How many commits a reader has to read one by one at most (Delta: `delta.checkpointInterval`).
const CHECKPOINT_INTERVAL: i64 = 50;
/// How long the log reaches back at least (Delta: `delta.logRetentionDuration`, whose default this is).
const LOG_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How long the log says what left the table, at least (Delta: `delta.deletedFileRetentionDuration`, whose default
/// this is): a vacuum leaves alone what it is told of.
const REMOVED_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What a vacuum deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vacuumed {
    pub files: usize,
    pub bytes: u64,
}

impl Table {
    /// Writes a checkpoint when it is time, beside the work: versions don't change. The commit has succeeded; that
    /// readers read a longer log is no reason to fail it.
    pub(super) fn checkpoint_if_due(&mut self) {
        let interval = self.property("delta.checkpointInterval").and_then(|interval| interval.parse().ok());
        let interval = interval.unwrap_or(CHECKPOINT_INTERVAL);
        let version = self.state.version;
        if version > 0 && interval > 0 && version % interval == 0 {
            self.forget_removed();
            let (dir, name, state) = (self.dir.clone(), self.name.clone(), self.state.clone());
            tokio::spawn(async move {
                if let Err(error) = checkpoint_log(&dir, &name, state).await {
                    warn!(table = name, version, %error, "no checkpoint of the log");
                }
            });
        }
    }

    /// Writes a checkpoint of the log at this version, and deletes log entries that are older than the log's
    /// retention and that no reader of a newer version needs.
    pub async fn checkpoint_log(&mut self) -> Result<()> {
        self.forget_removed();
        checkpoint_log(&self.dir, &self.name, self.state.clone()).await
    }

    /// Forgets what left the table longer ago than any vacuum looks back.
    fn forget_removed(&mut self) {
        let wanted = self.property("delta.deletedFileRetentionDuration").and_then(parse_interval);
        let kept = wanted.unwrap_or_default().max(REMOVED_KEPT);
        self.state.forget_removed(now_ms().saturating_sub(i64::try_from(kept.as_millis()).unwrap_or(i64::MAX)));
    }

    fn property(&self, name: &str) -> Option<&str> {
        self.state.metadata.configuration.get(name)?.as_deref()
    }
}

async fn checkpoint_log(dir: &Path, name: &str, state: State) -> Result<()> {
    let folder = dir.to_path_buf();
    if checkpoint::is_complete(&state) {
        let written = tokio::task::spawn_blocking(move || checkpoint::write(&folder, &state)).await;
        written.map_err(|error| Error::Internal(format!("checkpoint: {error}")))??;
    } else {
        let url = url::Url::from_directory_path(dir)
            .map_err(|()| Error::Internal(format!("`{}` is not absolute", dir.display())))?;
        let failed =
            |source| Error::Table { action: "checkpoint the log of", table: name.to_owned(), source: Box::new(source) };
        let version = state.version as u64;
        create_checkpoint_from_table_url_and_cleanup(url, version, Some(false), None).await.map_err(failed)?;
    }
    clean_log(dir, LOG_RETENTION)
}

/// Reads a duration as Delta's properties have it: `interval 7 days`.
fn parse_interval(text: &str) -> Option<Duration> {
    let mut words = text.split_whitespace().map(str::to_lowercase);
    let number = words.by_ref().find(|word| word != "interval")?.parse::<u64>().ok()?;
    let seconds = match words.next()?.trim_end_matches('s') {
        "week" => 7 * 24 * 3600,
        "day" => 24 * 3600,
        "hour" => 3600,
        "minute" => 60,
        "second" => 1,
        _ => return None,
    };
    Some(Duration::from_secs(number.checked_mul(seconds)?))
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
        let old = self.state.old_vectors.values().filter(|old| old.replaced_ms >= cutoff_ms).map(|old| &old.vector);
        needed.extend(current.chain(old).filter_map(|vector| vector.file(&self.dir)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_delta_writes_them() {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
        for (text, expected) in [
            ("interval 7 days", hours(168)),
            ("INTERVAL 1 week", hours(168)),
            ("2 Hours", hours(2)),
            ("interval 2 moons", None),
            ("interval", None),
        ] {
            assert_eq!(parse_interval(text), expected, "{text}");
        }
    }
}
