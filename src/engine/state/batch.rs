//! Micro-batches: planned with their exact input before they run, marked after the Delta commit.
//!
//! At most one batch of a checkpoint is planned and not marked. Ids are counted in the checkpoint and never
//! used twice, not even that of a discarded plan.

use pipeline::resume::KnownBatches;
use rusqlite::{Connection, Row, params};

use super::flow::{Completion, missing, set_completion};
use super::source::{Source, SourceFile, files_of_batch, insert_files};
use super::{State, execute, row, rows, stored_as_text};
use crate::error::{Error, Result};

/// How far a micro-batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    Planned,
    Committed,
}

stored_as_text!(BatchState { Planned = "planned", Committed = "committed" });

/// A micro-batch as recorded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MicroBatch {
    pub flow_id: String,
    pub generation: i64,
    pub batch_id: i64,
    pub state: BatchState,
    pub update_id: Option<i64>,
    /// Of the planned input.
    pub files: i64,
    pub bytes: i64,
    pub rows_read: Option<i64>,
    pub rows_written: Option<i64>,
    pub rows_rescued: Option<i64>,
    pub duration_ms: Option<i64>,
    /// The Delta version that its commit made.
    pub table_version: Option<i64>,
    pub planned_us: i64,
    pub committed_us: Option<i64>,
}

/// What a micro-batch is going to read.
#[derive(Debug, Clone)]
pub struct PlanBatch<'a> {
    pub flow_id: &'a str,
    pub generation: i64,
    /// The next of the checkpoint, as `pipeline::resume` gave it.
    pub batch_id: i64,
    pub update_id: Option<i64>,
    pub inputs: &'a [PlannedInput],
}

/// A batch's share of one source: a range of offsets, or files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedInput {
    pub source_id: i64,
    /// Exclusive; None: from the beginning.
    pub start_offset: Option<String>,
    /// Inclusive; becomes the source's offset when the batch is committed. None for files.
    pub end_offset: Option<String>,
    /// Read back sorted by path.
    pub files: Vec<SourceFile>,
}

/// What is known of a batch after its commit; after a crash that may be little.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    pub table_version: Option<i64>,
    pub rows_read: Option<i64>,
    pub rows_written: Option<i64>,
    pub rows_rescued: Option<i64>,
    pub duration_ms: Option<i64>,
    /// Set with the last batch of a once flow: it is done, in the same transaction.
    pub completion: Option<Completion>,
}

const BATCHES: &str = "
SELECT flow_id, generation, batch_id, state, update_id, files, bytes, rows_read, rows_written, rows_rescued,
       duration_ms, table_version, planned_us, committed_us
FROM micro_batches";

impl State {
    /// Writes down which input the batch will read; its files are known to the ledger from now on.
    pub fn plan_batch(&self, plan: &PlanBatch<'_>, now_us: i64) -> Result<()> {
        self.write("plan a micro-batch", |tx| {
            let known = known_batches(tx, plan.flow_id, plan.generation)?;
            if known.planned.is_some() || known.next_batch != plan.batch_id {
                return Err(Error::Internal(format!(
                    "flow `{}` generation {}: batch {} cannot be planned after {known:?}",
                    plan.flow_id, plan.generation, plan.batch_id
                )));
            }
            execute(
                tx,
                "UPDATE checkpoints SET next_batch_id = ?3 WHERE flow_id = ?1 AND generation = ?2",
                params![plan.flow_id, plan.generation, plan.batch_id + 1],
            )?;
            let files = plan.inputs.iter().map(|input| input.files.len()).sum::<usize>() as i64;
            let bytes: i64 = plan.inputs.iter().flat_map(|input| &input.files).map(|file| file.size_bytes).sum();
            execute(
                tx,
                "INSERT INTO micro_batches (flow_id, generation, batch_id, state, update_id, files, bytes, planned_us)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    plan.flow_id,
                    plan.generation,
                    plan.batch_id,
                    BatchState::Planned,
                    plan.update_id,
                    files,
                    bytes,
                    now_us
                ],
            )?;
            for input in plan.inputs {
                execute(
                    tx,
                    "INSERT INTO batch_inputs (flow_id, generation, batch_id, source_id, start_offset, end_offset)
                     VALUES (?, ?, ?, ?, ?, ?)",
                    params![
                        plan.flow_id,
                        plan.generation,
                        plan.batch_id,
                        input.source_id,
                        input.start_offset,
                        input.end_offset
                    ],
                )?;
                insert_files(tx, input.source_id, &input.files, plan.batch_id)?;
            }
            Ok(())
        })
    }

    /// The input of a recorded batch, to run it again.
    pub fn batch_inputs(&self, flow_id: &str, generation: i64, batch_id: i64) -> Result<Vec<PlannedInput>> {
        self.read("read a micro-batch", |c| {
            let sql = "SELECT source_id, start_offset, end_offset FROM batch_inputs
                       WHERE flow_id = ? AND generation = ? AND batch_id = ? ORDER BY source_id";
            let mut inputs = rows(c, sql, params![flow_id, generation, batch_id], |row| {
                Ok(PlannedInput {
                    source_id: row.get(0)?,
                    start_offset: row.get(1)?,
                    end_offset: row.get(2)?,
                    files: vec![],
                })
            })?;
            for input in &mut inputs {
                input.files = files_of_batch(c, input.source_id, batch_id)?;
            }
            Ok(inputs)
        })
    }

    /// What a batch read of each source of its checkpoint, files by path; for batches whose input is forgotten too.
    pub fn batch_sources(
        &self,
        flow_id: &str,
        generation: i64,
        batch_id: i64,
    ) -> Result<Vec<(Source, Vec<SourceFile>)>> {
        let sources = self.sources(flow_id, generation)?;
        self.read("read a micro-batch", |c| {
            let files = |source: &Source| files_of_batch(c, source.source_id, batch_id);
            sources.into_iter().map(|source| files(&source).map(|files| (source, files))).collect()
        })
    }

    /// Marks a batch whose commit is in the table; its end offsets become those of the sources, and a once
    /// flow is done if `committed` says so. A batch that was replayed may be marked again.
    pub fn mark_committed(
        &self,
        flow_id: &str,
        generation: i64,
        batch_id: i64,
        committed: &Committed,
        now_us: i64,
    ) -> Result<()> {
        // Lost in a power failure, it is found in the table's log and marked again (`pipeline::resume`); the next plan
        // has it on disk with itself.
        self.write_lazily("mark a micro-batch", |tx| {
            let key = params![flow_id, generation, batch_id];
            let sql = "SELECT state FROM micro_batches WHERE flow_id = ? AND generation = ? AND batch_id = ?";
            let state: BatchState =
                row(tx, sql, key, |row| row.get(0))?.ok_or_else(|| no_batch(flow_id, generation, batch_id))?;
            if state == BatchState::Planned {
                execute(
                    tx,
                    "UPDATE sources SET offset = i.end_offset FROM batch_inputs i
                     WHERE i.flow_id = ? AND i.generation = ? AND i.batch_id = ?
                       AND sources.source_id = i.source_id AND i.end_offset IS NOT NULL",
                    key,
                )?;
            }
            execute(
                tx,
                "UPDATE micro_batches SET state = ?4, table_version = ?5, rows_read = ?6, rows_written = ?7,
                        rows_rescued = ?8, duration_ms = ?9, committed_us = ?10
                 WHERE flow_id = ?1 AND generation = ?2 AND batch_id = ?3",
                params![
                    flow_id,
                    generation,
                    batch_id,
                    BatchState::Committed,
                    committed.table_version,
                    committed.rows_read,
                    committed.rows_written,
                    committed.rows_rescued,
                    committed.duration_ms,
                    now_us
                ],
            )?;
            match &committed.completion {
                Some(completion) => set_completion(tx, flow_id, generation, completion),
                None => Ok(()),
            }
        })
    }

    /// Takes a plan back that will never be committed: its files are new again, its id stays used.
    pub fn discard_planned(&self, flow_id: &str, generation: i64, batch_id: i64) -> Result<()> {
        self.write("discard a micro-batch", |tx| {
            let key = params![flow_id, generation, batch_id];
            let removed = execute(
                tx,
                "DELETE FROM micro_batches
                 WHERE flow_id = ? AND generation = ? AND batch_id = ? AND state = 'planned'",
                key,
            )?;
            if removed != 1 {
                return Err(no_batch(flow_id, generation, batch_id));
            }
            execute(
                tx,
                "DELETE FROM files WHERE batch_id = ?3 AND source_id IN
                    (SELECT source_id FROM sources WHERE flow_id = ?1 AND generation = ?2)",
                key,
            )?;
            execute(tx, "DELETE FROM batch_inputs WHERE flow_id = ? AND generation = ? AND batch_id = ?", key)?;
            Ok(())
        })
    }

    /// The newest batches of a checkpoint, newest first.
    pub fn last_batches(&self, flow_id: &str, generation: i64, limit: i64) -> Result<Vec<MicroBatch>> {
        let sql = format!("{BATCHES} WHERE flow_id = ? AND generation = ? ORDER BY batch_id DESC LIMIT ?");
        self.read("read micro-batches", |c| rows(c, &sql, params![flow_id, generation, limit], read_batch))
    }

    /// The batches of a checkpoint after `batch_id` (all: -1), oldest first: what a replay goes through.
    pub fn batches_after(&self, flow_id: &str, generation: i64, batch_id: i64) -> Result<Vec<MicroBatch>> {
        let sql = format!("{BATCHES} WHERE flow_id = ? AND generation = ? AND batch_id > ? ORDER BY batch_id");
        self.read("read micro-batches", |c| rows(c, &sql, params![flow_id, generation, batch_id], read_batch))
    }

    /// What state.db knows of a checkpoint: one half of the facts that `pipeline::resume` decides on.
    pub fn known_batches(&self, flow_id: &str, generation: i64) -> Result<KnownBatches> {
        self.read("read micro-batches", |c| known_batches(c, flow_id, generation))
    }

    /// Forgets the input of all but the newest `keep` committed batches of every checkpoint. The ledger stays.
    pub fn forget_old_batches(&self, keep: i64) -> Result<()> {
        self.write("forget micro-batches", |tx| {
            let sql = "SELECT flow_id, generation, max(batch_id) FROM micro_batches
                       WHERE state = 'committed' GROUP BY flow_id, generation";
            let newest: Vec<(String, i64, i64)> = rows(tx, sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            for (flow_id, generation, newest) in newest {
                let key = params![flow_id, generation, newest - keep.max(1)];
                for sql in [
                    "UPDATE checkpoints SET forgotten_batch_id = max(coalesce(forgotten_batch_id, -1), ?3)
                     WHERE flow_id = ?1 AND generation = ?2 AND ?3 >= 0",
                    "DELETE FROM batch_inputs WHERE flow_id = ?1 AND generation = ?2 AND batch_id <= ?3",
                    "DELETE FROM micro_batches WHERE flow_id = ?1 AND generation = ?2 AND batch_id <= ?3",
                ] {
                    execute(tx, sql, key)?;
                }
            }
            Ok(())
        })
    }
}

fn known_batches(c: &Connection, flow_id: &str, generation: i64) -> Result<KnownBatches> {
    let sql = "SELECT next_batch_id, forgotten_batch_id, done_us IS NOT NULL FROM checkpoints
               WHERE flow_id = ? AND generation = ?";
    let (next_batch, forgotten, is_done): (i64, Option<i64>, bool) =
        row(c, sql, params![flow_id, generation], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .ok_or_else(|| missing(flow_id))?;
    let newest = |state: BatchState| {
        let sql = "SELECT batch_id, table_version FROM micro_batches
                   WHERE flow_id = ? AND generation = ? AND state = ? ORDER BY batch_id DESC LIMIT 1";
        row(c, sql, params![flow_id, generation, state], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))
    };
    let committed = newest(BatchState::Committed)?;
    Ok(KnownBatches {
        next_batch,
        planned: newest(BatchState::Planned)?.map(|(batch, _)| batch),
        // An imported checkpoint has no batches recorded, but the last one is known to be in the table.
        committed: committed.map(|(batch, _)| batch).or(forgotten),
        committed_version: committed.and_then(|(_, version)| version),
        forgotten,
        is_done,
    })
}

fn no_batch(flow_id: &str, generation: i64, batch_id: i64) -> Error {
    Error::Internal(format!("flow `{flow_id}` generation {generation} has no such batch: {batch_id}"))
}

fn read_batch(row: &Row<'_>) -> rusqlite::Result<MicroBatch> {
    Ok(MicroBatch {
        flow_id: row.get(0)?,
        generation: row.get(1)?,
        batch_id: row.get(2)?,
        state: row.get(3)?,
        update_id: row.get(4)?,
        files: row.get(5)?,
        bytes: row.get(6)?,
        rows_read: row.get(7)?,
        rows_written: row.get(8)?,
        rows_rescued: row.get(9)?,
        duration_ms: row.get(10)?,
        table_version: row.get(11)?,
        planned_us: row.get(12)?,
        committed_us: row.get(13)?,
    })
}
