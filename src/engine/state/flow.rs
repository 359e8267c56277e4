//! Flows and the generations of their checkpoints.
//!
//! A flow has an id that stays when it is renamed, and a checkpoint in force, its generation. Reset and full
//! refresh make a new generation; its number is never given again, so that a `txn` in a table names one
//! checkpoint for ever.

use rusqlite::{Connection, Row, params};

use super::{State, execute, row, rows, stored_as_text};
use crate::error::{Error, Result};

/// How a flow writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowKind {
    /// New input is appended, for ever.
    Append,
    /// All input is appended one time.
    Once,
    /// The result replaces the table's content.
    Complete,
    /// New change events are applied by key, for ever.
    Cdc,
    /// All change events are applied by key, one time.
    CdcOnce,
    /// The table is brought to each snapshot.
    Snapshot,
    /// The table is brought to a snapshot, one time.
    SnapshotOnce,
}

stored_as_text!(FlowKind {
    Append = "append",
    Once = "once",
    Complete = "complete",
    Cdc = "cdc",
    CdcOnce = "cdc_once",
    Snapshot = "snapshot",
    SnapshotOnce = "snapshot_once",
});

impl FlowKind {
    /// True if it runs one time until a full refresh.
    pub fn is_once(self) -> bool {
        matches!(self, FlowKind::Once | FlowKind::CdcOnce | FlowKind::SnapshotOnce)
    }

    /// True if it is a flow of AUTO CDC.
    pub fn is_change(self) -> bool {
        matches!(self, FlowKind::Cdc | FlowKind::CdcOnce | FlowKind::Snapshot | FlowKind::SnapshotOnce)
    }
}

impl From<pipeline::graph::FlowKind> for FlowKind {
    fn from(kind: pipeline::graph::FlowKind) -> FlowKind {
        use pipeline::graph::FlowKind as Defined;
        match kind {
            Defined::Append => FlowKind::Append,
            Defined::Once => FlowKind::Once,
            Defined::Complete => FlowKind::Complete,
            Defined::Cdc => FlowKind::Cdc,
            Defined::CdcOnce => FlowKind::CdcOnce,
            Defined::Snapshot => FlowKind::Snapshot,
            Defined::SnapshotOnce => FlowKind::SnapshotOnce,
        }
    }
}

/// A flow as recorded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Flow {
    pub flow_id: String,
    pub name: String,
    /// The key of the dataset it writes.
    pub dataset: String,
    pub kind: FlowKind,
    /// The checkpoint in force.
    pub generation: i64,
    /// The checkpoint that a full refresh in progress builds.
    pub shadow_generation: Option<i64>,
    /// The query as last run, and its hash.
    pub definition: Option<String>,
    pub definition_hash: Option<String>,
    pub created_us: i64,
    pub last_run_us: Option<i64>,
    /// No longer in the files; the checkpoint is kept.
    pub is_retired: bool,
    /// Set if this is a once flow that is done (in the generation in force).
    pub completion: Option<Completion>,
}

/// When and as what a once flow was done.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Completion {
    pub done_us: i64,
    pub update_id: Option<i64>,
    pub rows: i64,
    /// Of the definition that ran; an edited one is warned about (behaviours B-43).
    pub definition_hash: String,
}

/// A flow found in the files.
#[derive(Debug, Clone)]
pub struct NewFlow<'a> {
    /// Taken if the flow isn't known yet.
    pub flow_id: &'a str,
    pub name: &'a str,
    pub dataset: &'a str,
    pub kind: FlowKind,
}

/// What `flowbench doctor` found in a table about a flow.
#[derive(Debug, Clone)]
pub struct ImportCheckpoint<'a> {
    pub flow_id: &'a str,
    pub generation: i64,
    /// The `txn` version in the table.
    pub batch_id: i64,
    pub completion: Option<Completion>,
}

const FLOWS: &str = "
SELECT flow_id, name, dataset, kind, f.generation, shadow_generation, definition, definition_hash, f.created_us,
       last_run_us, is_retired, done_us, done_update_id, done_rows, done_definition_hash
FROM flows f JOIN checkpoints c USING (flow_id, generation)";

impl State {
    /// Returns the flow of this dataset and name, made with the given id if it isn't known.
    /// A retired flow is in force again, with its checkpoint.
    pub fn register_flow(&self, flow: &NewFlow<'_>, now_us: i64) -> Result<Flow> {
        self.write("register a flow", |tx| {
            match find_flow(tx, flow.dataset, flow.name)? {
                Some(known) => {
                    execute(
                        tx,
                        "UPDATE flows SET name = ?2, kind = ?3, is_retired = 0 WHERE flow_id = ?1",
                        params![known.flow_id, flow.name, flow.kind],
                    )?;
                }
                None => insert_flow(tx, flow, 1, "created", now_us)?,
            }
            find_flow(tx, flow.dataset, flow.name)?.ok_or_else(|| missing(flow.name))
        })
    }

    /// All flows ever seen, by dataset and name.
    pub fn flows(&self) -> Result<Vec<Flow>> {
        self.read("read flows", |c| rows(c, &format!("{FLOWS} ORDER BY dataset, name"), [], read_flow))
    }

    /// The flow `name` (in any case) of the dataset with this key.
    pub fn flow(&self, dataset: &str, name: &str) -> Result<Option<Flow>> {
        self.read("read a flow", |c| find_flow(c, dataset, name))
    }

    /// The flow with this id.
    pub fn flow_by_id(&self, flow_id: &str) -> Result<Option<Flow>> {
        self.read("read a flow", |c| row(c, &format!("{FLOWS} WHERE flow_id = ?"), [flow_id], read_flow))
    }

    /// Whether a once flow is done in this generation (which may be a shadow one).
    pub fn completion(&self, flow_id: &str, generation: i64) -> Result<Option<Completion>> {
        self.read("read a flow", |c| {
            let sql = "SELECT done_us, done_update_id, done_rows, done_definition_hash FROM checkpoints
                       WHERE flow_id = ? AND generation = ?";
            Ok(row(c, sql, params![flow_id, generation], |row| read_completion(row, 0))?.flatten())
        })
    }

    /// Records that an update is about to run the flow as it is defined now.
    pub fn record_run(&self, flow_id: &str, definition: &str, definition_hash: &str, now_us: i64) -> Result<()> {
        self.write("record a flow", |tx| {
            let sql = "UPDATE flows SET definition = ?2, definition_hash = ?3, last_run_us = ?4 WHERE flow_id = ?1";
            expect_one(execute(tx, sql, params![flow_id, definition, definition_hash, now_us])?, flow_id)
        })
    }

    /// Marks as retired every flow that isn't in `flow_ids`, those that the files define.
    pub fn retire_flows_except(&self, flow_ids: &[&str]) -> Result<()> {
        self.write("retire flows", |tx| {
            for flow in rows(tx, FLOWS, [], read_flow)? {
                if !flow.is_retired && !flow_ids.contains(&flow.flow_id.as_str()) {
                    execute(tx, "UPDATE flows SET is_retired = 1 WHERE flow_id = ?", [&flow.flow_id])?;
                }
            }
            Ok(())
        })
    }

    /// Lets the flow `new` go on from the checkpoint of `old` (behaviours B-21): `old` takes the new name.
    /// A flow `new` that hasn't planned a batch yet gives way; one that has is an error.
    pub fn rename_flow(&self, dataset: &str, old: &str, new: &str) -> Result<Flow> {
        self.write("rename a flow", |tx| {
            let flow = find_flow(tx, dataset, old)?.ok_or_else(|| missing(old))?;
            if let Some(other) = find_flow(tx, dataset, new)?.filter(|other| other.flow_id != flow.flow_id) {
                let used = "SELECT next_batch_id > 0 OR done_us IS NOT NULL FROM checkpoints
                            WHERE flow_id = ? AND generation = ?";
                if row(tx, used, params![other.flow_id, other.generation], |row| row.get(0))?.unwrap_or(false) {
                    return Err(Error::user(
                        "flow-exists",
                        format!("cannot rename flow `{old}` to `{new}`: `{new}` has a checkpoint of its own"),
                        format!("choose another name, or drop its checkpoint with `flowbench reset {new}` first"),
                    ));
                }
                delete_flow(tx, &other.flow_id)?;
            }
            execute(tx, "UPDATE flows SET name = ?2, is_retired = 0 WHERE flow_id = ?1", [&flow.flow_id, new])?;
            find_flow(tx, dataset, new)?.ok_or_else(|| missing(new))
        })
    }

    /// Starts a new checkpoint: the flow reads its sources from their start again, a once flow is not done
    /// any more; the table keeps its rows. Returns the new generation. `reason` is for people.
    /// `keeps_inputs`: what the old one read stays on record, since rows tell by it where they came from (AUTO CDC).
    pub fn reset_flow(&self, flow_id: &str, reason: &str, keeps_inputs: bool, now_us: i64) -> Result<i64> {
        self.write("reset a flow", |tx| {
            let generation = next_generation(tx, flow_id)?;
            insert_checkpoint(tx, flow_id, generation, reason, now_us)?;
            execute(tx, "UPDATE flows SET generation = ?2 WHERE flow_id = ?1", params![flow_id, generation])?;
            if !keeps_inputs {
                forget_inputs(tx, flow_id, generation)?;
            }
            Ok(generation)
        })
    }

    /// Marks a once flow as done that had nothing to read (behaviours B-45); one that had is marked by
    /// [`State::mark_committed`].
    pub fn mark_done(&self, flow_id: &str, generation: i64, completion: &Completion) -> Result<()> {
        self.write("mark a flow as done", |tx| set_completion(tx, flow_id, generation, completion))
    }

    /// Takes a checkpoint over from a table's `txn`, where the record of it is lost. What the batches up to
    /// `batch_id` read stays unknown: the caller restores the offsets and known files that it can find.
    pub fn import_checkpoint(&self, import: &ImportCheckpoint<'_>, flow: &NewFlow<'_>, now_us: i64) -> Result<()> {
        self.write("import a checkpoint", |tx| {
            delete_flow(tx, import.flow_id)?;
            if let Some(other) = find_flow(tx, flow.dataset, flow.name)? {
                delete_flow(tx, &other.flow_id)?;
            }
            let flow = NewFlow { flow_id: import.flow_id, ..flow.clone() };
            insert_flow(tx, &flow, import.generation, "imported", now_us)?;
            execute(
                tx,
                "UPDATE checkpoints SET next_batch_id = ?3 + 1, forgotten_batch_id = ?3
                 WHERE flow_id = ?1 AND generation = ?2",
                params![import.flow_id, import.generation, import.batch_id],
            )?;
            match &import.completion {
                Some(completion) => set_completion(tx, import.flow_id, import.generation, completion),
                None => Ok(()),
            }
        })
    }
}

/// Gives the flow a generation number that it never had.
pub(super) fn next_generation(tx: &Connection, flow_id: &str) -> Result<i64> {
    let sql = "UPDATE flows SET last_generation = last_generation + 1 WHERE flow_id = ? RETURNING last_generation";
    row(tx, sql, [flow_id], |row| row.get(0))?.ok_or_else(|| missing(flow_id))
}

pub(super) fn insert_checkpoint(
    tx: &Connection,
    flow_id: &str,
    generation: i64,
    reason: &str,
    now_us: i64,
) -> Result<()> {
    let sql = "INSERT INTO checkpoints (flow_id, generation, reason, created_us) VALUES (?, ?, ?, ?)";
    execute(tx, sql, params![flow_id, generation, reason, now_us])?;
    Ok(())
}

pub(super) fn set_completion(tx: &Connection, flow_id: &str, generation: i64, completion: &Completion) -> Result<()> {
    let changed = execute(
        tx,
        "UPDATE checkpoints SET done_us = ?3, done_update_id = ?4, done_rows = ?5, done_definition_hash = ?6
         WHERE flow_id = ?1 AND generation = ?2",
        params![
            flow_id,
            generation,
            completion.done_us,
            completion.update_id,
            completion.rows,
            completion.definition_hash
        ],
    )?;
    expect_one(changed, flow_id)
}

/// Drops what the flow's checkpoints other than `kept` know of sources and batches. Their numbers stay.
pub(super) fn forget_inputs(tx: &Connection, flow_id: &str, kept: i64) -> Result<()> {
    for sql in [
        "DELETE FROM files WHERE source_id IN
            (SELECT source_id FROM sources WHERE flow_id = ?1 AND generation <> ?2)",
        "DELETE FROM sources WHERE flow_id = ?1 AND generation <> ?2",
        "DELETE FROM batch_inputs WHERE flow_id = ?1 AND generation <> ?2",
        "DELETE FROM micro_batches WHERE flow_id = ?1 AND generation <> ?2",
    ] {
        execute(tx, sql, params![flow_id, kept])?;
    }
    Ok(())
}

/// Removes every trace of a flow.
pub(super) fn delete_flow(tx: &Connection, flow_id: &str) -> Result<()> {
    // No generation has this number.
    forget_inputs(tx, flow_id, -1)?;
    execute(tx, "DELETE FROM checkpoints WHERE flow_id = ?", [flow_id])?;
    execute(tx, "DELETE FROM flows WHERE flow_id = ?", [flow_id])?;
    Ok(())
}

pub(super) fn flows_of(tx: &Connection, dataset: &str) -> Result<Vec<Flow>> {
    rows(tx, &format!("{FLOWS} WHERE dataset = ? ORDER BY name"), [dataset], read_flow)
}

fn insert_flow(tx: &Connection, flow: &NewFlow<'_>, generation: i64, reason: &str, now_us: i64) -> Result<()> {
    execute(
        tx,
        "INSERT INTO flows (flow_id, name, dataset, kind, generation, last_generation, created_us)
         VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
        params![flow.flow_id, flow.name, flow.dataset, flow.kind, generation, now_us],
    )?;
    insert_checkpoint(tx, flow.flow_id, generation, reason, now_us)
}

fn find_flow(connection: &Connection, dataset: &str, name: &str) -> Result<Option<Flow>> {
    row(connection, &format!("{FLOWS} WHERE dataset = ? AND name = ?"), [dataset, name], read_flow)
}

fn read_flow(row: &Row<'_>) -> rusqlite::Result<Flow> {
    Ok(Flow {
        flow_id: row.get(0)?,
        name: row.get(1)?,
        dataset: row.get(2)?,
        kind: row.get(3)?,
        generation: row.get(4)?,
        shadow_generation: row.get(5)?,
        definition: row.get(6)?,
        definition_hash: row.get(7)?,
        created_us: row.get(8)?,
        last_run_us: row.get(9)?,
        is_retired: row.get(10)?,
        completion: read_completion(row, 11)?,
    })
}

fn read_completion(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Completion>> {
    let Some(done_us) = row.get(first)? else { return Ok(None) };
    Ok(Some(Completion {
        done_us,
        update_id: row.get(first + 1)?,
        rows: row.get(first + 2)?,
        definition_hash: row.get(first + 3)?,
    }))
}

fn expect_one(changed: usize, flow: &str) -> Result<()> {
    match changed {
        1 => Ok(()),
        _ => Err(missing(flow)),
    }
}

pub(super) fn missing(flow: &str) -> Error {
    Error::user(
        "unknown-flow",
        format!("no flow `{flow}` is recorded in state.db"),
        "`flowbench status` lists the flows; a flow is recorded when it first runs",
    )
}
