//! Tells which of a workspace's files changed on disk: saves are gathered for a moment, and a save that
//! leaves the text as it was is not told.
//!
//! Looks at names, times and sizes again and again: a hundred files take well under a millisecond, it works
//! on every file system, and no save escapes it, whichever way the editor saves. (The `notify` crate would
//! change the features of `mio` and with it rebuild everything that uses tokio, for a dozen milliseconds.)
//! Not here: reading the files again (`open.rs`) and what they mean.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::{Receiver, Sender};

use crate::error::{Error, Result};

/// The pause between two looks, and how long the files must have been quiet before a change is told.
const PAUSE: Duration = Duration::from_millis(25);

/// The pause is at least this many times the duration of a look, so that a huge folder costs little.
const PAUSE_PER_LOOK: u32 = 20;

/// Changes that may wait to be received; past that the watching thread waits too.
const PENDING_MAX: usize = 16;

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    /// Only dropped: its other end then tells the thread to end.
    _alive: std::sync::mpsc::Sender<()>,
}

/// Starts to watch the definition files (`.sql`, `.toml`) below `root`, those in `storage` and in hidden
/// folders left out. Each value received is a list of changed, new or deleted files, sorted, never empty.
///
/// # Errors
/// `root` can't be read, or no thread can be started.
pub fn watch(root: &Path, storage: &Path) -> Result<(Watcher, Receiver<Vec<PathBuf>>)> {
    std::fs::read_dir(root).map_err(|e| Error::io("watch", root, e))?;
    let (alive, ended) = std::sync::mpsc::channel();
    let (changes, changed) = tokio::sync::mpsc::channel(PENDING_MAX);
    let mut watched = Watched { root: root.to_path_buf(), storage: root.join(storage), files: BTreeMap::new() };
    watched.look();
    std::thread::Builder::new()
        .name("watch".to_string())
        .spawn(move || watched.watch(&ended, &changes))
        .map_err(|e| Error::io("watch", root, e))?;
    Ok((Watcher { _alive: alive }, changed))
}

struct Watched {
    root: PathBuf,
    storage: PathBuf,
    files: BTreeMap<PathBuf, Seen>,
}

/// A file as it was seen last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    stamp: Stamp,
    content_hash: u64,
}

/// What changes with nearly every save; the content decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Watched {
    fn watch(&mut self, ended: &std::sync::mpsc::Receiver<()>, changes: &Sender<Vec<PathBuf>>) {
        let mut pending: Vec<PathBuf> = Vec::new();
        let mut pause = PAUSE;
        // The sender never sends: a timeout is the pause, anything else the end.
        while ended.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let start = Instant::now();
            let now = self.look();
            pause = PAUSE.max(start.elapsed() * PAUSE_PER_LOOK);
            if !now.is_empty() {
                pending.extend(now);
                continue;
            }
            if pending.is_empty() {
                continue;
            }
            pending.sort();
            pending.dedup();
            if changes.blocking_send(std::mem::take(&mut pending)).is_err() {
                return;
            }
        }
    }

    /// Returns the files whose content is not what it was at the last look.
    fn look(&mut self) -> Vec<PathBuf> {
        let mut found = BTreeMap::new();
        self.collect(&self.root, &mut found);
        let mut changed: Vec<PathBuf> = Vec::new();
        self.files.retain(|path, _| {
            let is_there = found.contains_key(path);
            if !is_there {
                changed.push(path.clone());
            }
            is_there
        });
        for (path, stamp) in found {
            let before = self.files.get(&path).copied();
            if before.is_some_and(|seen| seen.stamp == stamp) {
                continue;
            }
            // A file that vanished in between is found missing at the next look.
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let content_hash = hash(&bytes);
            self.files.insert(path.clone(), Seen { stamp, content_hash });
            if before.is_none_or(|seen| seen.content_hash != content_hash) {
                changed.push(path);
            }
        }
        changed
    }

    fn collect(&self, folder: &Path, found: &mut BTreeMap<PathBuf, Stamp>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") || path == self.storage {
                continue;
            }
            // A link to a folder is not followed: it may lead back up.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "sql" || extension == "toml")
                && let Ok(metadata) = std::fs::metadata(&path)
                && metadata.is_file()
            {
                found.insert(path, Stamp { modified: metadata.modified().ok(), bytes: metadata.len() });
            }
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives within ten seconds, far more than a busy machine needs.
    fn next(changed: &mut Receiver<Vec<PathBuf>>) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let files = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(10), changed.recv()).await });
        let files = files.expect("a change is told").expect("the watcher lives");
        files.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn saves_are_told_whichever_way_the_editor_saves() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
        let rename = |from: &str, to: &str| std::fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
        std::fs::create_dir_all(folder.path().join("storage")).unwrap();
        std::fs::create_dir_all(folder.path().join("transformations")).unwrap();
        write("flowbench.toml", "[pipeline]");
        write("transformations/a.sql", "SELECT 1");
        let (_watcher, mut changed) = watch(folder.path(), Path::new("storage")).unwrap();

        // Neither the same text nor other files nor the storage folder are told: the first told is b.sql.
        write("transformations/a.sql", "SELECT 1");
        write("transformations/notes.txt", "x");
        write("storage/c.sql", "SELECT 3");
        write("transformations/b.sql", "SELECT 2");
        assert_eq!(next(&mut changed), ["b.sql"]);

        write("transformations/.a.sql.tmp", "SELECT 10");
        rename("transformations/.a.sql.tmp", "transformations/a.sql");
        assert_eq!(next(&mut changed), ["a.sql"]);

        std::fs::remove_file(folder.path().join("transformations/b.sql")).unwrap();
        assert_eq!(next(&mut changed), ["b.sql"]);

        std::fs::create_dir_all(folder.path().join("more")).unwrap();
        write("more/d.sql", "SELECT 4");
        assert_eq!(next(&mut changed), ["d.sql"]);
    }

    #[test]
    fn dropping_the_watcher_ends_the_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (watcher, mut changed) = watch(folder.path(), Path::new("storage")).unwrap();
        drop(watcher);
        assert_eq!(changed.blocking_recv(), None);
    }
}
