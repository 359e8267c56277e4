//! Updates and how each flow fares in them; what `flowbench status` and `flowbench updates` show.

use rusqlite::{Connection, Row, params};

use super::{State, execute, row, rows, stored_as_text};
use crate::error::{Error, Result};

/// The states of updates and of flows in them (architecture, "States").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RunState {
    Queued,
    Planning,
    Running,
    Completed,
    Failed,
    Skipped,
    Canceled,
    Excluded,
    Idle,
}

stored_as_text!(RunState {
    Queued = "QUEUED",
    Planning = "PLANNING",
    Running = "RUNNING",
    Completed = "COMPLETED",
    Failed = "FAILED",
    Skipped = "SKIPPED",
    Canceled = "CANCELED",
    Excluded = "EXCLUDED",
    Idle = "IDLE",
});

impl From<pipeline::event::State> for RunState {
    fn from(state: pipeline::event::State) -> RunState {
        use pipeline::event::State;
        match state {
            State::Queued => RunState::Queued,
            State::Planning => RunState::Planning,
            State::Running => RunState::Running,
            State::Completed => RunState::Completed,
            State::Failed => RunState::Failed,
            State::Skipped => RunState::Skipped,
            State::Canceled => RunState::Canceled,
            State::Excluded => RunState::Excluded,
            State::Idle => RunState::Idle,
        }
    }
}

impl From<RunState> for pipeline::event::State {
    fn from(state: RunState) -> pipeline::event::State {
        use pipeline::event::State;
        match state {
            RunState::Queued => State::Queued,
            RunState::Planning => State::Planning,
            RunState::Running => State::Running,
            RunState::Completed => State::Completed,
            RunState::Failed => State::Failed,
            RunState::Skipped => State::Skipped,
            RunState::Canceled => State::Canceled,
            RunState::Excluded => State::Excluded,
            RunState::Idle => State::Idle,
        }
    }
}

impl RunState {
    /// True if nothing more will happen.
    pub fn is_final(self) -> bool {
        !matches!(self, RunState::Queued | RunState::Planning | RunState::Running)
    }
}

/// What the record says of an update whose process died.
const INTERRUPTED: &str = "interrupted: the process ended before the update did";

/// One update.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Update {
    /// Counts up; for people.
    pub update_id: i64,
    pub update_uuid: String,
    /// `USER_ACTION`, `SCHEDULE`, … (operations.md section 1).
    pub cause: String,
    /// JSON of what was asked for.
    pub request: String,
    pub state: RunState,
    /// Who runs or ran it.
    pub pid: i64,
    pub host: String,
    pub started_us: i64,
    pub ended_us: Option<i64>,
    /// A summary, if it failed.
    pub error: Option<String>,
}

impl Update {
    /// The update as it is to be shown while nobody holds the writer's lock: one that is still running in the
    /// record was left by a process that died.
    pub fn interrupted_if_unfinished(mut self) -> Update {
        if !self.state.is_final() {
            self.state = RunState::Failed;
            self.error = Some(INTERRUPTED.to_string());
        }
        self
    }
}

/// An update that is about to start.
#[derive(Debug, Clone)]
pub struct NewUpdate<'a> {
    pub update_uuid: &'a str,
    pub cause: &'a str,
    /// JSON.
    pub request: &'a str,
    pub pid: u32,
    pub host: &'a str,
}

/// A flow in an update.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UpdateFlow {
    pub update_id: i64,
    pub flow: String,
    pub dataset: String,
    pub state: RunState,
    #[serde(flatten)]
    pub progress: FlowProgress,
    pub started_us: Option<i64>,
    pub ended_us: Option<i64>,
    pub error_code: Option<String>,
    pub error: Option<String>,
}

/// What a flow has done in an update so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct FlowProgress {
    pub batches: i64,
    pub rows_read: i64,
    pub rows_written: i64,
    pub rows_rescued: i64,
    pub bytes_read: i64,
    /// Still unread; None if not known.
    pub backlog_files: Option<i64>,
    pub backlog_bytes: Option<i64>,
}

const UPDATES: &str = "
SELECT update_id, update_uuid, cause, request, state, pid, host, started_us, ended_us, error FROM updates";

const UPDATE_FLOWS: &str = "
SELECT update_id, flow, dataset, state, batches, rows_read, rows_written, rows_rescued, bytes_read, backlog_files,
       backlog_bytes, started_us, ended_us, error_code, error
FROM update_flows";

impl State {
    /// Records a new update, QUEUED; returns its number.
    pub fn create_update(&self, update: &NewUpdate<'_>, now_us: i64) -> Result<i64> {
        self.write("record an update", |tx| {
            execute(
                tx,
                "INSERT INTO updates (update_uuid, cause, request, state, pid, host, started_us)
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![
                    update.update_uuid,
                    update.cause,
                    update.request,
                    RunState::Queued,
                    update.pid,
                    update.host,
                    now_us
                ],
            )?;
            Ok(tx.last_insert_rowid())
        })
    }

    /// Moves an update on; a final state ends it.
    pub fn set_update_state(&self, update_id: i64, state: RunState, error: Option<&str>, now_us: i64) -> Result<()> {
        self.write("record an update", |tx| {
            let ended_us = state.is_final().then_some(now_us);
            let sql = "UPDATE updates SET state = ?2, error = ?3, ended_us = ?4 WHERE update_id = ?1";
            match execute(tx, sql, params![update_id, state, error, ended_us])? {
                1 => Ok(()),
                _ => Err(Error::Internal(format!("no update {update_id} is recorded"))),
            }
        })
    }

    /// Writes how flows fare, all in one transaction; each replaces what was written of that flow before.
    pub fn put_update_flows(&self, flows: &[UpdateFlow]) -> Result<()> {
        self.write_lazily("record an update", |tx| {
            for flow in flows {
                execute(
                    tx,
                    "INSERT OR REPLACE INTO update_flows
                        (update_id, flow, dataset, state, batches, rows_read, rows_written, rows_rescued,
                         bytes_read, backlog_files, backlog_bytes, started_us, ended_us, error_code, error)
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    params![
                        flow.update_id,
                        flow.flow,
                        flow.dataset,
                        flow.state,
                        flow.progress.batches,
                        flow.progress.rows_read,
                        flow.progress.rows_written,
                        flow.progress.rows_rescued,
                        flow.progress.bytes_read,
                        flow.progress.backlog_files,
                        flow.progress.backlog_bytes,
                        flow.started_us,
                        flow.ended_us,
                        flow.error_code,
                        flow.error
                    ],
                )?;
            }
            Ok(())
        })
    }

    /// Marks updates that a dead process left unfinished as FAILED. To be called by who has just taken the
    /// writer's lock, before it starts an update of its own. Returns their numbers.
    pub fn fail_interrupted_updates(&self, now_us: i64) -> Result<Vec<i64>> {
        self.write("record interrupted updates", |tx| {
            let sql = "SELECT update_id FROM updates WHERE ended_us IS NULL ORDER BY update_id";
            let interrupted: Vec<i64> = rows(tx, sql, [], |row| row.get(0))?;
            for update_id in &interrupted {
                execute(
                    tx,
                    "UPDATE updates SET state = 'FAILED', error = ?2, ended_us = ?3 WHERE update_id = ?1",
                    params![update_id, INTERRUPTED, now_us],
                )?;
                execute(
                    tx,
                    "UPDATE update_flows SET ended_us = ?2,
                            error_code = iif(state = 'QUEUED', NULL, 'interrupted'),
                            error = iif(state = 'QUEUED', NULL, ?3),
                            state = iif(state = 'QUEUED', 'SKIPPED', 'FAILED')
                     WHERE update_id = ?1 AND state IN ('QUEUED', 'PLANNING', 'RUNNING')",
                    params![update_id, now_us, INTERRUPTED],
                )?;
            }
            Ok(interrupted)
        })
    }

    /// The newest updates, newest first.
    pub fn updates(&self, limit: i64) -> Result<Vec<Update>> {
        let sql = format!("{UPDATES} ORDER BY update_id DESC LIMIT ?");
        self.read("read updates", |c| rows(c, &sql, [limit], read_update))
    }

    /// The update with this number.
    pub fn update(&self, update_id: i64) -> Result<Option<Update>> {
        self.read("read an update", |c| row(c, &format!("{UPDATES} WHERE update_id = ?"), [update_id], read_update))
    }

    /// The flows of an update, by dataset and name.
    pub fn update_flows(&self, update_id: i64) -> Result<Vec<UpdateFlow>> {
        let sql = format!("{UPDATE_FLOWS} WHERE update_id = ? ORDER BY dataset, flow");
        self.read("read an update", |c| rows(c, &sql, [update_id], read_update_flow))
    }

    /// For each flow the newest update in which it ran or was to run (EXCLUDED and IDLE don't count): where
    /// `--refresh-failed` and the status look.
    pub fn last_update_flows(&self) -> Result<Vec<UpdateFlow>> {
        let sql = format!(
            "{UPDATE_FLOWS} AS f WHERE state NOT IN ('EXCLUDED', 'IDLE') AND update_id =
                (SELECT max(update_id) FROM update_flows g
                 WHERE g.dataset = f.dataset AND g.flow = f.flow AND g.state NOT IN ('EXCLUDED', 'IDLE'))
             ORDER BY dataset, flow"
        );
        self.read("read updates", |c| rows(c, &sql, [], read_update_flow))
    }

    /// Removes all but the newest `keep` updates, with their events. Returns how many were removed.
    pub fn forget_old_updates(&self, keep: i64) -> Result<usize> {
        self.write("forget updates", |tx| {
            let last: Option<i64> = newest_forgotten(tx, keep)?;
            let Some(last) = last else { return Ok(0) };
            execute(tx, "DELETE FROM events WHERE update_id <= ?", [last])?;
            execute(tx, "DELETE FROM update_flows WHERE update_id <= ?", [last])?;
            execute(tx, "DELETE FROM updates WHERE update_id <= ?", [last])
        })
    }
}

/// The newest update that doesn't belong to the newest `keep`.
fn newest_forgotten(c: &Connection, keep: i64) -> Result<Option<i64>> {
    row(c, "SELECT update_id FROM updates ORDER BY update_id DESC LIMIT 1 OFFSET ?", [keep.max(1)], |row| row.get(0))
}

fn read_update(row: &Row<'_>) -> rusqlite::Result<Update> {
    Ok(Update {
        update_id: row.get(0)?,
        update_uuid: row.get(1)?,
        cause: row.get(2)?,
        request: row.get(3)?,
        state: row.get(4)?,
        pid: row.get(5)?,
        host: row.get(6)?,
        started_us: row.get(7)?,
        ended_us: row.get(8)?,
        error: row.get(9)?,
    })
}

fn read_update_flow(row: &Row<'_>) -> rusqlite::Result<UpdateFlow> {
    Ok(UpdateFlow {
        update_id: row.get(0)?,
        flow: row.get(1)?,
        dataset: row.get(2)?,
        state: row.get(3)?,
        progress: FlowProgress {
            batches: row.get(4)?,
            rows_read: row.get(5)?,
            rows_written: row.get(6)?,
            rows_rescued: row.get(7)?,
            bytes_read: row.get(8)?,
            backlog_files: row.get(9)?,
            backlog_bytes: row.get(10)?,
        },
        started_us: row.get(11)?,
        ended_us: row.get(12)?,
        error_code: row.get(13)?,
        error: row.get(14)?,
    })
}
