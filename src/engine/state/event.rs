//! The event log: the record that every front end reads (operations.md section 7).

use rusqlite::{Row, params};

use super::{State, execute, rows, stored_as_text};
use crate::error::Result;

/// How loud an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventLevel {
    Info,
    Warn,
    Error,
    Metrics,
}

stored_as_text!(EventLevel { Info = "INFO", Warn = "WARN", Error = "ERROR", Metrics = "METRICS" });

/// An event to be appended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NewEvent {
    pub time_us: i64,
    pub level: EventLevel,
    /// `flow_progress`, `update_progress`, …
    pub event_type: String,
    pub update_id: Option<i64>,
    /// The key of the dataset.
    pub dataset: Option<String>,
    pub flow: Option<String>,
    pub batch_id: Option<i64>,
    pub message: String,
    /// The useful text of a failure.
    pub error: Option<String>,
    /// JSON, keyed by `event_type`; `{}` if there is nothing to say.
    pub details: String,
}

/// An event of the log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Event {
    /// Orders the log; counts up, also past events that were forgotten.
    pub sequence: i64,
    #[serde(flatten)]
    pub event: NewEvent,
}

/// Which events are wanted; None is no condition.
#[derive(Debug, Clone, Default)]
pub struct EventFilter<'a> {
    pub update_id: Option<i64>,
    pub level: Option<EventLevel>,
    pub event_type: Option<&'a str>,
    pub dataset: Option<&'a str>,
    pub flow: Option<&'a str>,
}

const EVENTS: &str = "
SELECT sequence, time_us, level, event_type, update_id, dataset, flow, batch_id, message, error, details
FROM events
WHERE (?1 IS NULL OR update_id = ?1) AND (?2 IS NULL OR level = ?2) AND (?3 IS NULL OR event_type = ?3)
  AND (?4 IS NULL OR dataset = ?4) AND (?5 IS NULL OR flow = ?5 COLLATE NOCASE)";

impl State {
    /// Appends events in one transaction; returns the sequence of the last one.
    pub fn append_events(&self, events: &[NewEvent]) -> Result<i64> {
        self.write_lazily("append events", |tx| {
            for event in events {
                execute(
                    tx,
                    "INSERT INTO events (time_us, level, event_type, update_id, dataset, flow, batch_id, message,
                                         error, details)
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    params![
                        event.time_us,
                        event.level,
                        event.event_type,
                        event.update_id,
                        event.dataset,
                        event.flow,
                        event.batch_id,
                        event.message,
                        event.error,
                        event.details
                    ],
                )?;
            }
            Ok(tx.last_insert_rowid())
        })
    }

    /// The first `limit` events after `sequence` (0: from the beginning), oldest first: for following.
    pub fn events_after(&self, sequence: i64, limit: i64, filter: &EventFilter<'_>) -> Result<Vec<Event>> {
        let sql = format!("{EVENTS} AND sequence > ?6 ORDER BY sequence LIMIT ?7");
        self.select_events(&sql, sequence, limit, filter)
    }

    /// The last `limit` events before `sequence` (`i64::MAX`: up to the end), oldest first: for scrolling back.
    pub fn events_before(&self, sequence: i64, limit: i64, filter: &EventFilter<'_>) -> Result<Vec<Event>> {
        let sql = format!("{EVENTS} AND sequence < ?6 ORDER BY sequence DESC LIMIT ?7");
        let mut events = self.select_events(&sql, sequence, limit, filter)?;
        events.reverse();
        Ok(events)
    }

    fn select_events(&self, sql: &str, sequence: i64, limit: i64, filter: &EventFilter<'_>) -> Result<Vec<Event>> {
        self.read("read events", |c| {
            let params = params![
                filter.update_id,
                filter.level,
                filter.event_type,
                filter.dataset,
                filter.flow,
                sequence,
                limit
            ];
            rows(c, sql, params, read_event)
        })
    }
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        sequence: row.get(0)?,
        event: NewEvent {
            time_us: row.get(1)?,
            level: row.get(2)?,
            event_type: row.get(3)?,
            update_id: row.get(4)?,
            dataset: row.get(5)?,
            flow: row.get(6)?,
            batch_id: row.get(7)?,
            message: row.get(8)?,
            error: row.get(9)?,
            details: row.get(10)?,
        },
    })
}
