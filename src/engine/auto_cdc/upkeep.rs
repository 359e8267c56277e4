//! Keeping a target fast: runs of its side table are merged, and its files are rewritten without the side table being:
//! it is told where the rows went.
//!
//! Both go on beside the batches. A merge puts its run in force by itself; rewritten files wait for the end of a batch,
//! since nobody may look locations up while rows move.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::side::{FileMove, MovePiece, SideTable};
use super::target::ChangeTarget;
use crate::error::{Error, Result};
use crate::fail_point;
use crate::table::{
    self, CONFLICT, Compacted, CompactionLimits, Rewrite, Rewritten, RowSet, SharedTable, plan_rewrites, rewrite_files,
};

/// A merge of runs that goes on while batches are applied.
#[derive(Default)]
pub(crate) struct Merging {
    task: Option<tokio::task::JoinHandle<Result<bool>>>,
}

impl Merging {
    /// Starts a merge if there are too many runs and none goes on; a failed one before is an error.
    pub async fn start(&mut self, side: &Arc<SideTable>) -> Result<()> {
        if self.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return Ok(());
        }
        self.finish().await?;
        let side = side.clone();
        self.task = Some(tokio::task::spawn_blocking(move || side.merge_if_due()));
        Ok(())
    }

    /// Waits for the one that goes on.
    pub async fn finish(&mut self) -> Result<()> {
        let Some(task) = self.task.take() else { return Ok(()) };
        let ended = task.await.map_err(|error| Error::Internal(format!("merging runs of a side table: {error}")))?;
        ended.map(drop)
    }
}

/// Files of the target that are rewritten while batches are applied.
#[derive(Default)]
pub(crate) struct Rewriting {
    task: Option<tokio::task::JoinHandle<Result<Option<Rewritten>>>>,
}

impl Rewriting {
    /// True while it goes on.
    pub fn is_busy(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }

    fn start(&mut self, table: SharedTable, rewrites: Vec<Rewrite>, limits: CompactionLimits) {
        self.task = Some(tokio::spawn(async move { rewrite_files(&table, rewrites, &limits).await }));
    }

    /// Waits for what goes on.
    async fn finish(&mut self) -> Result<Option<Rewritten>> {
        let Some(task) = self.task.take() else { return Ok(None) };
        task.await.map_err(|error| Error::Internal(format!("compacting files: {error}")))?
    }
}

impl Drop for Rewriting {
    fn drop(&mut self) {
        // Nobody would take its files; they are deleted with it.
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl ChangeTarget {
    /// Puts files in force that were rewritten by now, and starts to rewrite those that are worth it. The caller has
    /// the target to itself.
    pub async fn go_on_compacting(&mut self) -> Result<()> {
        if self.rewriting.is_busy() {
            return Ok(());
        }
        let limits = CompactionLimits::default();
        if let Some(rewritten) = self.rewriting.finish().await? {
            match self.exchange(rewritten).await {
                // A file has lost its last row. Lest that happens again and again, batches wait this time.
                Err(error) if error.code() == CONFLICT => return self.compact(&limits).await.map(drop),
                exchanged => exchanged?,
            };
        }
        let rewrites = self.rewrites(&limits).await?;
        if self.side().is_ok() && !rewrites.is_empty() {
            self.rewriting.start(self.target.table.clone(), rewrites, limits);
        }
        Ok(())
    }

    /// Rewrites files of the target that are worth it. The caller has the target to itself, and waits.
    pub async fn compact(&mut self, limits: &CompactionLimits) -> Result<Compacted> {
        let mut compacted = Compacted::default();
        if self.side().is_err() {
            return Ok(compacted);
        }
        let mut rewritten = self.rewriting.finish().await?;
        loop {
            match rewritten {
                None => {}
                Some(files) => match self.exchange(files).await {
                    Ok(Compacted { files_before, files_after }) => {
                        compacted.files_before += files_before;
                        compacted.files_after += files_after;
                    }
                    Err(error) if error.code() == CONFLICT => {}
                    Err(error) => return Err(error),
                },
            }
            rewritten = rewrite_files(&self.target.table, self.rewrites(limits).await?, limits).await?;
            if rewritten.is_none() {
                return Ok(compacted);
            }
        }
    }

    async fn rewrites(&self, limits: &CompactionLimits) -> Result<Vec<Rewrite>> {
        let mut table = self.target.table.lock().await;
        table.refresh()?;
        Ok(plan_rewrites(table.files_at(table.version())?, limits))
    }

    /// Puts rewritten files in the place of those that they were made of.
    async fn exchange(&self, rewritten: Rewritten) -> Result<Compacted> {
        let side = self.side()?;
        let (prepared, version) = {
            let mut table = self.target.table.lock().await;
            table.refresh()?;
            (rewritten.prepare(&table)?, table.version())
        };
        let staged = side.stage_moves(&self.moves(side, &prepared.moves)?)?;
        let pending = serde_json::to_value(&prepared.commit)
            .map_err(|error| Error::Internal(format!("a commit that can't be kept: {error}")))?;
        side.commit(staged, |manifest| {
            manifest.pending = Some(pending);
            manifest.made_over = self.numbered(version);
            Ok(())
        })?;
        fail_point::hit("moves-committed", None)?;
        let version = {
            let mut table = self.target.table.lock().await;
            table.commit_prepared(&prepared.commit).await?;
            table.version()
        };
        // It has no batch that would tell later that it was made.
        side.commit([], |manifest| {
            manifest.pending = None;
            manifest.made_over = self.numbered(version);
            Ok(())
        })?;
        Ok(prepared.compacted)
    }

    /// The moves in the side table's numbers.
    fn moves(&self, side: &SideTable, moves: &[table::FileMove]) -> Result<Vec<FileMove>> {
        let view = side.view();
        let mut new_files: BTreeMap<&str, u32> = BTreeMap::new();
        let mut moved = Vec::with_capacity(moves.len());
        for one in moves {
            let file = match new_files.get(one.new_path.as_str()) {
                Some(file) => *file,
                None => {
                    let file = side.allocate_files(1);
                    new_files.insert(&one.new_path, file);
                    file
                }
            };
            // A file that no member lies in any more needs no move.
            let Some(old) = view.file_number(&self.side_path(&one.old_path)) else { continue };
            let piece = MovePiece {
                first_row: 0,
                file,
                path: self.side_path(&one.new_path),
                base_row: u32::try_from(one.first_row).map_err(|_| too_long())?,
                deleted: bitmap(&one.deleted)?,
            };
            moved.push(FileMove { file: old, pieces: vec![piece] });
        }
        Ok(moved)
    }
}

fn too_long() -> Error {
    Error::Internal("a data file has too many rows".to_string())
}

fn bitmap(rows: &RowSet) -> Result<RoaringBitmap> {
    rows.iter().map(|row| u32::try_from(row).map_err(|_| too_long())).collect()
}
