//! Keeping a target fast: runs of its side table are merged beside the work, and its files are rewritten without the
//! side table being: it is told where the rows went.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::side::{FileMove, MovePiece, SideTable};
use super::target::ChangeTarget;
use crate::error::{Error, Result};
use crate::fail_point;
use crate::table::{self, Compacted, CompactionLimits, RowSet, plan_rewrites, prepare_compaction};

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

impl ChangeTarget {
    /// Rewrites files of the target that are worth it. The caller has the target to itself.
    pub async fn compact(&self, limits: &CompactionLimits) -> Result<Compacted> {
        let Ok(side) = self.side() else { return Ok(Compacted::default()) };
        let mut compacted = Compacted::default();
        loop {
            let rewrites = {
                let mut table = self.target.table.lock().await;
                table.refresh()?;
                plan_rewrites(table.files_at(table.version())?, limits)
            };
            let Some(prepared) = prepare_compaction(&self.target.table, rewrites, limits).await? else {
                return Ok(compacted);
            };
            let staged = side.stage_moves(&self.moves(side, &prepared.moves)?)?;
            let pending = serde_json::to_value(&prepared.commit)
                .map_err(|error| Error::Internal(format!("a commit that can't be kept: {error}")))?;
            side.commit(staged, |manifest| {
                manifest.pending = Some(pending);
                Ok(())
            })?;
            fail_point::hit("moves-committed", None)?;
            self.target.table.lock().await.commit_prepared(&prepared.commit).await?;
            // It has no batch that would tell later that it was made.
            side.commit([], |manifest| {
                manifest.pending = None;
                Ok(())
            })?;
            compacted.files_before += prepared.compacted.files_before;
            compacted.files_after += prepared.compacted.files_after;
        }
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
