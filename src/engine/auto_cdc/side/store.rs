//! The writer of a side table. What it writes counts when a manifest names it: [`SideTable::commit`] puts one in force.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use super::manifest::{MANIFEST, Manifest, NEW_MANIFEST, Retention, RunEntry, moves_name, run_name, sync_folder};
use super::member::MemberRef;
use super::moves::{FileMove, MovesEntry};
use super::run_writer::RunWriter;
use super::view::View;
use super::{merge, moves};
use crate::auto_cdc::encode::Layout;
use crate::error::{Error, Result};

/// The side table of a target, open for writing. The caller holds the lock of the workspace, so there is one in all
/// processes; threads share it.
#[derive(Debug)]
pub struct SideTable {
    dir: PathBuf,
    view: RwLock<Arc<View>>,
    /// Held while a manifest is replaced.
    committing: Mutex<()>,
    /// Held while runs are merged: two merges could take the same runs.
    merging: Mutex<()>,
    next_id: AtomicU64,
    next_file: AtomicU32,
}

/// What a new side table is for.
#[derive(Debug, Clone)]
pub struct NewSideTable {
    pub retention: Retention,
    /// See [`Manifest::spec`].
    pub spec: serde_json::Value,
    pub layout: Layout,
}

/// A file that is written and belongs to the table once it is committed. Dropped before, it is deleted.
#[derive(Debug)]
pub struct Staged {
    path: PathBuf,
    what: What,
    /// Has it on disk, while the batch goes on; None: it is.
    syncing: Option<JoinHandle<std::io::Result<()>>>,
    is_done: bool,
}

#[derive(Debug)]
enum What {
    Run(RunEntry),
    Moves(MovesEntry),
    /// A run in the place of these.
    Merged(RunEntry, Vec<u64>),
}

impl Staged {
    fn new(path: PathBuf, what: What) -> Staged {
        Staged { path, what, syncing: None, is_done: false }
    }

    /// Begins to have the file on disk.
    fn sync(mut self, file: File) -> Staged {
        self.syncing = Some(std::thread::spawn(move || file.sync_all()));
        self
    }

    /// Waits until it is on disk.
    fn wait(&mut self) -> Result<()> {
        let Some(syncing) = self.syncing.take() else { return Ok(()) };
        let synced = syncing.join().map_err(|_| Error::Internal("a thread that syncs a file panicked".into()))?;
        synced.map_err(|error| Error::io("sync", &self.path, error))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_done {
            // A leftover is swept when the table is opened.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl SideTable {
    /// Makes an empty side table in `dir`, which may be a new folder. Error: `side-table-exists`.
    pub fn create(dir: &Path, new: NewSideTable) -> Result<SideTable> {
        std::fs::create_dir_all(dir).map_err(|error| Error::io("create folder", dir, error))?;
        if dir.join(MANIFEST).exists() {
            let what = format!("there is a side table already: `{}`", dir.display());
            return Err(Error::External { code: "side-table-exists", what, help: "open it".into() });
        }
        Manifest::new(new.retention, new.spec, new.layout).write(dir)?;
        if let Some(parent) = dir.parent() {
            sync_folder(parent)?;
        }
        SideTable::open(dir)
    }

    /// Opens the side table in `dir` and deletes what a dead process left. Errors: those of [`View::open`].
    pub fn open(dir: &Path) -> Result<SideTable> {
        let view = View::open(dir)?;
        sweep(dir, view.manifest())?;
        Ok(SideTable {
            dir: dir.to_path_buf(),
            next_id: AtomicU64::new(view.manifest().next_id),
            next_file: AtomicU32::new(view.manifest().next_file),
            view: RwLock::new(Arc::new(view)),
            committing: Mutex::new(()),
            merging: Mutex::new(()),
        })
    }

    /// The table as the last commit left it.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Numbers for `count` new files of the target: the first of them. The next commit writes down that they are taken.
    pub fn allocate_files(&self, count: u32) -> u32 {
        self.next_file.fetch_add(count, Ordering::Relaxed)
    }

    /// Writes members, sorted by key and newest first, each key and sequence once, as a run; None if there are none.
    /// `count_max`: at least how many there are. `files` is asked when all are written: the target's files that are new,
    /// by number; members may lie in these and in any that the table knows.
    pub fn write_run<'m>(
        &self,
        members: impl IntoIterator<Item = MemberRef<'m>>,
        count_max: usize,
        files: impl FnOnce() -> Result<Vec<(u32, String)>>,
    ) -> Result<Option<Staged>> {
        let mut members = members.into_iter().peekable();
        if members.peek().is_none() {
            files()?;
            return Ok(None);
        }
        let view = self.view();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(run_name(id));
        let mut writer = RunWriter::create(&path, id, count_max as u64, &view.cache)?;
        members.try_for_each(|member| writer.push(&member))?;
        let files = files()?;
        let path_of = |file| match files.iter().find(|(number, _)| *number == file) {
            Some((_, path)) => Some(path.clone()),
            None => view.file_path(file).map(str::to_string),
        };
        let (entry, file) = writer.finish(path_of)?;
        Ok(Some(Staged::new(path, What::Run(entry)).sync(file)))
    }

    /// Writes down that rows of the target's files are elsewhere from the next commit on.
    pub fn stage_moves(&self, moves: &[FileMove]) -> Result<Option<Staged>> {
        if moves.is_empty() {
            return Ok(None);
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(moves_name(id));
        let entry = moves::write(&path, id, moves)?;
        Ok(Some(Staged::new(path, What::Moves(entry))))
    }

    /// The table as it would be with these runs, for look-ups before they are committed.
    pub fn view_with(&self, staged: &[Staged]) -> Result<View> {
        let before = self.view();
        let mut manifest = before.manifest().clone();
        for staged in staged {
            if let What::Run(entry) = &staged.what {
                manifest.runs.push(entry.clone());
            }
        }
        View::of(&self.dir, manifest, Some(&before))
    }

    /// Puts the next manifest in force: the one before, with what is staged, and as `edit` changes it. On disk when it
    /// returns. After an error of `edit` nothing has changed. After another error either manifest may be the one on disk,
    /// while this table goes on from the old one.
    ///
    /// Runs whose locations were looked up before a commit of moves must not be committed after it: a batch and a
    /// compaction of the target take turns.
    pub fn commit(
        &self,
        staged: impl IntoIterator<Item = Staged>,
        edit: impl FnOnce(&mut Manifest) -> Result<()>,
    ) -> Result<()> {
        let _committing = self.committing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut staged: Vec<Staged> = staged.into_iter().collect();
        let before = self.view();
        let mut manifest = before.manifest().clone();
        // Readers had one commit's time to leave these.
        let deleted = std::mem::take(&mut manifest.retired);
        for staged in &staged {
            match &staged.what {
                What::Run(entry) => manifest.runs.push(entry.clone()),
                What::Moves(entry) => manifest.moves.push(entry.clone()),
                What::Merged(entry, merged) => replace_runs(&mut manifest, entry, merged)?,
            }
        }
        edit(&mut manifest)?;
        manifest.next_version();
        manifest.next_id = self.next_id.load(Ordering::Relaxed);
        manifest.next_file = self.next_file.load(Ordering::Relaxed);
        let mut view = View::of(&self.dir, manifest, Some(&before))?;
        retire_moves(&mut view);
        staged.iter_mut().try_for_each(Staged::wait)?;
        if !staged.is_empty() {
            // Names of new files are on disk before a manifest has them.
            sync_folder(&self.dir)?;
        }
        // From here on a crash, or an error, may leave either manifest: what it names has to stay.
        staged.iter_mut().for_each(|staged| staged.is_done = true);
        view.manifest().write(&self.dir)?;

        let is_alive = |run: u64| view.manifest.runs.iter().any(|entry| entry.id == run);
        if !before.manifest.runs.iter().all(|entry| is_alive(entry.id)) {
            view.cache.retain_runs(is_alive);
        }
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
        for name in deleted {
            // What can't be deleted now is swept when the table is opened.
            let _ = std::fs::remove_file(self.dir.join(name));
        }
        Ok(())
    }

    /// Merges runs as long as there are too many of about the same size; says whether it did. Commits of other threads
    /// may pass meanwhile.
    pub fn merge_if_due(&self) -> Result<bool> {
        let _merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let mut has_merged = false;
        loop {
            let view = self.view();
            let sizes: Vec<u64> = view.manifest().runs.iter().map(|run| run.bytes).collect();
            let Some(runs) = merge::due(&sizes) else { return Ok(has_merged) };
            self.merge(&view, runs)?;
            has_merged = true;
        }
    }

    /// Merges all runs into one, which ends the resolving of moved locations.
    pub fn merge_all(&self) -> Result<()> {
        let _merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.view();
        let runs = 0..view.manifest().runs.len();
        if runs.len() > 1 || view.manifest().has_moves() && !runs.is_empty() { self.merge(&view, runs) } else { Ok(()) }
    }

    fn merge(&self, view: &View, runs: Range<usize>) -> Result<()> {
        let merged = &view.manifest().runs[runs.clone()];
        let keys_max = merged.iter().map(|run| run.keys).sum();
        let ids = merged.iter().map(|run| run.id).collect();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(run_name(id));
        let mut writer = RunWriter::create(&path, id, keys_max, &view.cache)?;
        merge::write(view, runs, &mut writer)?;
        let (entry, file) = writer.finish(|file| view.file_path(file).map(str::to_string))?;
        let mut merged = Staged::new(path, What::Merged(entry, ids)).sync(file);
        // Here, lest others wait for it.
        merged.wait()?;
        self.commit([merged], |_| Ok(()))
    }
}

fn replace_runs(manifest: &mut Manifest, entry: &RunEntry, merged: &[u64]) -> Result<()> {
    let start = manifest.runs.iter().position(|run| run.id == merged[0]);
    let start = start.filter(|start| {
        let there = manifest.runs[*start..].iter().map(|run| run.id);
        there.take(merged.len()).eq(merged.iter().copied())
    });
    let start = start.ok_or_else(|| Error::Internal("runs that were merged are no longer there".into()))?;
    let old = manifest.runs.splice(start..start + merged.len(), [entry.clone()]);
    manifest.retired.extend(old.map(|run| run.file_name()));
    Ok(())
}

/// Takes out the files of moves that no location needs any more.
fn retire_moves(view: &mut View) {
    let files: BTreeSet<u32> = view.runs.iter().flat_map(|run| run.meta.files.keys().copied()).collect();
    let needed = view.moves.needed(files);
    let Manifest { moves, retired, .. } = &mut view.manifest;
    retired.extend(moves.iter().filter(|entry| !needed.contains(&entry.id)).map(|entry| moves_name(entry.id)));
    moves.retain(|entry| needed.contains(&entry.id));
}

/// Deletes files that the manifest doesn't name: a process died before its commit, or after it and before deleting.
fn sweep(dir: &Path, manifest: &Manifest) -> Result<()> {
    let named: BTreeSet<String> = manifest.file_names().collect();
    let entries = std::fs::read_dir(dir).map_err(|error| Error::io("list", dir, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("list", dir, error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_ours =
            name == NEW_MANIFEST || name.ends_with(".side") && (name.starts_with("run-") || name.starts_with("moves-"));
        if is_ours && !named.contains(&name) {
            std::fs::remove_file(entry.path()).map_err(|error| Error::io("delete", entry.path(), error))?;
        }
    }
    Ok(())
}
