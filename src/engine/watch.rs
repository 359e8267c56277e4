//! Tells which of a workspace's files changed on disk: saves are gathered for a moment, and a save that
//! leaves the text as it was is not told.
//!
//! The system says that something happened in a folder (`notify`); what it was is found by looking, so that no save
//! escapes, whichever way the editor saves. While nothing happens, nothing is done. Where there are no notifications
//! (network file systems, the system's limit) the folders are looked at again and again instead; so too with
//! `FLOWBENCH_POLL=1`.
//!
//! ```text
//! folders ─▶ something happened ─▶ quiet for a moment ─▶ look: names, times, sizes; texts of those ─▶ changed files
//! ```
//!
//! Not here: reading the files again (`open.rs`) and what they mean.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime};

use notify::{EventKind, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::error::{Error, Result};

/// How long the folders must have been quiet before the files are looked at.
const QUIET: Duration = Duration::from_millis(15);

/// Whoever never is quiet is looked at after this long.
const QUIET_AT_MOST: Duration = Duration::from_millis(100);

/// Without notifications: the pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// The pause is at least this many times the duration of a look, so that a huge folder costs little.
const PAUSE_PER_LOOK: u32 = 20;

/// More folders than this are not watched one by one; the system's limit may be lower.
const FOLDERS_MAX: usize = 10_000;

/// Changes that may wait to be received; past that the watching thread waits too.
const PENDING_MAX: usize = 16;

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    signals: std::sync::mpsc::Sender<Signal>,
    looks: Arc<AtomicU64>,
}

impl Watcher {
    /// How often the folder was looked through so far: with notifications the number stays while nothing happens.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // A thread that has ended already needs no end.
        let _ = self.signals.send(Signal::End);
    }
}

/// What the watching thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Happened,
    End,
}

/// Starts to watch the definition files (`.sql`, `.toml`) below `root`, those in `storage` and in hidden
/// folders left out. Each value received is a list of changed, new or deleted files, sorted, never empty.
///
/// # Errors
/// `root` can't be read, or no thread can be started.
pub fn watch(root: &Path, storage: &Path) -> Result<(Watcher, Receiver<Vec<PathBuf>>)> {
    let is_asked = std::env::var_os("FLOWBENCH_POLL").is_some_and(|value| value == "1");
    watch_by(root, storage, is_asked || is_remote(root))
}

fn watch_by(root: &Path, storage: &Path, is_polling: bool) -> Result<(Watcher, Receiver<Vec<PathBuf>>)> {
    std::fs::read_dir(root).map_err(|e| Error::io("watch", root, e))?;
    let (signals, happened) = std::sync::mpsc::channel();
    let (changes, changed) = tokio::sync::mpsc::channel(PENDING_MAX);
    let looks = Arc::new(AtomicU64::new(0));
    let notifier = match is_polling {
        true => None,
        false => notifier(signals.clone()),
    };
    let mut watched = Watched {
        root: root.to_path_buf(),
        storage: root.join(storage),
        files: BTreeMap::new(),
        folders: BTreeSet::new(),
        notifier,
        looks: looks.clone(),
    };
    watched.look();
    std::thread::Builder::new()
        .name("watch".to_string())
        .spawn(move || watched.watch(&happened, &changes))
        .map_err(|e| Error::io("watch", root, e))?;
    Ok((Watcher { signals, looks }, changed))
}

/// Asks the system to signal; None if it can't.
fn notifier(signals: std::sync::mpsc::Sender<Signal>) -> Option<notify::RecommendedWatcher> {
    let tell = move |event: notify::Result<notify::Event>| {
        let is_meant = event.as_ref().map_or(true, is_about_definitions);
        if is_meant {
            // Nobody waits any more while the watcher is being dropped.
            let _ = signals.send(Signal::Happened);
        }
    };
    notify::recommended_watcher(tell).inspect_err(|error| tracing::info!(%error, "no notifications of saves")).ok()
}

/// False for what can't change a definition: reading, and data files beside the definitions.
fn is_about_definitions(event: &notify::Event) -> bool {
    match event.kind {
        _ if event.need_rescan() => true,
        EventKind::Access(_) => false,
        // A folder that came or went; what is gone can't be asked any more.
        _ => event.paths.iter().any(|path| is_definition(path) || !path.is_file()),
    }
}

fn is_definition(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sql" || extension == "toml")
}

/// True for file systems where others change files without this machine being told.
fn is_remote(root: &Path) -> bool {
    const REMOTE: [&str; 9] = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse"];
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mounts") else { return false };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?.replace("\\040", " "), words.next()?))
    });
    let nearest = mounts.filter(|(folder, _)| root.starts_with(folder)).max_by_key(|(folder, _)| folder.len());
    nearest.is_some_and(|(_, kind)| REMOTE.contains(&kind) || kind.starts_with("fuse."))
}

struct Watched {
    root: PathBuf,
    storage: PathBuf,
    files: BTreeMap<PathBuf, Seen>,
    /// Those that the system watches.
    folders: BTreeSet<PathBuf>,
    /// None: look again and again.
    notifier: Option<notify::RecommendedWatcher>,
    looks: Arc<AtomicU64>,
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

/// What a look at the folders finds.
#[derive(Debug, Default)]
struct Found {
    files: BTreeMap<PathBuf, Stamp>,
    folders: BTreeSet<PathBuf>,
}

impl Watched {
    fn watch(&mut self, happened: &std::sync::mpsc::Receiver<Signal>, changes: &Sender<Vec<PathBuf>>) {
        let mut pending: Vec<PathBuf> = Vec::new();
        let mut pause = PAUSE;
        loop {
            let is_over = match self.notifier {
                Some(_) => wait_until_quiet(happened),
                None => happened.recv_timeout(pause) != Err(RecvTimeoutError::Timeout),
            };
            if is_over {
                return;
            }
            let start = Instant::now();
            let now = self.look();
            if self.notifier.is_none() {
                pause = PAUSE.max(start.elapsed() * PAUSE_PER_LOOK);
                // A file that is still being written is told when a look finds nothing more.
                if !now.is_empty() {
                    pending.extend(now);
                    continue;
                }
            } else {
                pending.extend(now);
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
        let mut changed: Vec<PathBuf> = Vec::new();
        loop {
            self.looks.fetch_add(1, Ordering::Relaxed);
            let mut found = Found::default();
            self.collect(&self.root, &mut found);
            let has_new_folders = self.watch_folders(found.folders);
            self.compare(found.files, &mut changed);
            // What came into a new folder before it was watched is found by looking once more.
            if !has_new_folders {
                return changed;
            }
        }
    }

    /// Has the system watch these folders, and no others; true if there are new ones.
    fn watch_folders(&mut self, folders: BTreeSet<PathBuf>) -> bool {
        let Some(notifier) = &mut self.notifier else { return false };
        for gone in self.folders.difference(&folders) {
            // The system has forgotten a deleted folder by itself.
            let _ = notifier.unwatch(gone);
        }
        let new: Vec<&PathBuf> = folders.difference(&self.folders).collect();
        let has_new = !new.is_empty();
        let mut watched = Ok(());
        for folder in new {
            match notifier.watch(folder, RecursiveMode::NonRecursive) {
                // Gone again: its parent tells.
                Err(_) if !folder.exists() => {}
                other => watched = watched.and(other),
            }
        }
        if let Err(error) = watched.and(match folders.len() {
            0..=FOLDERS_MAX => Ok(()),
            _ => Err(notify::Error::generic("too many folders")),
        }) {
            tracing::info!(%error, "saves are found by looking again and again");
            self.notifier = None;
        }
        self.folders = folders;
        has_new
    }

    fn compare(&mut self, found: BTreeMap<PathBuf, Stamp>, changed: &mut Vec<PathBuf>) {
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
    }

    fn collect(&self, folder: &Path, found: &mut Found) {
        found.folders.insert(folder.to_path_buf());
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") || path == self.storage {
                continue;
            }
            // A link to a folder is not followed: it may lead back up.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.collect(&path, found);
            } else if is_definition(&path)
                && let Ok(metadata) = std::fs::metadata(&path)
                && metadata.is_file()
            {
                found.files.insert(path, Stamp { modified: metadata.modified().ok(), bytes: metadata.len() });
            }
        }
    }
}

/// Waits for something to happen and then for a moment of quiet; true if the end has come.
fn wait_until_quiet(happened: &std::sync::mpsc::Receiver<Signal>) -> bool {
    if happened.recv() != Ok(Signal::Happened) {
        return true;
    }
    let start = Instant::now();
    while start.elapsed() < QUIET_AT_MOST {
        match happened.recv_timeout(QUIET) {
            Ok(Signal::Happened) => {}
            Ok(Signal::End) | Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
    false
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
        for is_polling in [false, true] {
            saves_are_told(is_polling);
        }
    }

    fn saves_are_told(is_polling: bool) {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
        let rename = |from: &str, to: &str| std::fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
        std::fs::create_dir_all(folder.path().join("storage")).unwrap();
        std::fs::create_dir_all(folder.path().join("transformations")).unwrap();
        write("flowbench.toml", "[pipeline]");
        write("transformations/a.sql", "SELECT 1");
        let (watcher, mut changed) = watch_by(folder.path(), Path::new("storage"), is_polling).unwrap();

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

        // Folders that come as a whole, and go.
        std::fs::create_dir_all(folder.path().join(".made/deep")).unwrap();
        write(".made/deep/e.sql", "SELECT 5");
        rename(".made", "made");
        assert_eq!(next(&mut changed), ["e.sql"]);
        std::fs::remove_dir_all(folder.path().join("made")).unwrap();
        assert_eq!(next(&mut changed), ["e.sql"]);
        drop(watcher);
    }

    #[test]
    fn a_watcher_does_nothing_while_nothing_happens_to_definitions() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("a.sql"), "SELECT 1").unwrap();
        let (watcher, mut changed) = watch_by(folder.path(), Path::new("storage"), false).unwrap();
        let looks = watcher.looks();
        // Reading and data files are no reason to look.
        std::fs::read(folder.path().join("a.sql")).unwrap();
        for n in 0..20 {
            std::fs::write(folder.path().join(format!("data/part-{n}.json")), "{}").unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let told = runtime.block_on(async { tokio::time::timeout(Duration::from_millis(300), changed.recv()).await });
        assert!(told.is_err(), "{told:?}");
        assert_eq!(watcher.looks(), looks);
    }

    #[test]
    fn dropping_the_watcher_ends_the_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (watcher, mut changed) = watch(folder.path(), Path::new("storage")).unwrap();
        drop(watcher);
        assert_eq!(changed.blocking_recv(), None);
    }
}
