//! The history of one key.

use super::{KeyFlags, KeyPart};
use crate::auto_cdc::ScdType;
use crate::report::Column;

/// The versions of a key, and the events that made them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct KeyHistory {
    pub table: String,
    #[serde(serialize_with = "super::as_number")]
    pub scd_type: ScdType,
    pub key: Vec<KeyPart>,
    /// The table's columns without keys, `__START_AT` and `__END_AT`.
    pub columns: Vec<Column>,
    /// Of `columns`, by index, those whose change starts a new version; all of them for SCD type 1.
    pub tracked: Vec<usize>,
    /// Spark's spelling of the sequence's type.
    pub sequence_type: String,
    /// The rows of the key, oldest first; at most one for SCD type 1.
    pub versions: Vec<Version>,
    /// What is stored of the key, oldest first: events that show, repeat, fill in, delete; and the TRUNCATE, or the snapshot
    /// without the key, that made the ones before it void.
    pub events: Vec<KeyEvent>,
    /// False: events before a whole row may be gone (SCD type 1; without IGNORE NULL UPDATES only the newest is kept).
    pub keeps_all_events: bool,
    pub flags: KeyFlags,
    /// Sequence of the last event of a once flow, or version of the last once snapshot that speaks for the key.
    pub last_seeded: Option<String>,
    /// Sequence of the first event of a live flow.
    pub first_live: Option<String>,
}

/// A row of the table: how the key was from one sequence to another.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Version {
    /// From 1, oldest first.
    pub number: usize,
    /// `__START_AT`; of SCD type 1 the sequence of the newest event.
    pub start: String,
    /// `__END_AT`; None: it still holds.
    pub end: Option<String>,
    pub is_open: bool,
    /// One a column of [`KeyHistory::columns`]; None is NULL.
    pub values: Vec<Option<String>>,
    /// Indices into [`KeyHistory::events`]: the event that began it, and the last one that it shows.
    pub first_event: usize,
    pub last_event: usize,
    /// True: the key was not there between the version before and this one.
    pub is_after_gap: bool,
}

/// An event as the side table keeps it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct KeyEvent {
    pub sequence: String,
    pub kind: EventKind,
    pub effect: Effect,
    /// Number of the version that it is part of, or that it ended by deleting.
    pub version: Option<usize>,
    /// Name of the flow.
    pub flow: String,
    /// Of a once flow, of a snapshot too: part of the seed.
    pub is_seed: bool,
    /// Micro-batch of the flow.
    pub batch: u64,
    /// Number of the update that ran the batch; None: no longer on record.
    pub update: Option<i64>,
    pub place: EventPlace,
    /// It was applied after an event of a later sequence.
    pub is_late: bool,
    /// The row after the event, one a column of [`KeyHistory::columns`]; empty for deletes, and for events that others
    /// of their sequence lie upon.
    pub values: Vec<Option<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Upsert,
    Delete,
    /// A snapshot that doesn't have the key: a delete at its version.
    Absence,
    /// A TRUNCATE: a delete of every key.
    Truncate,
}

impl EventKind {
    /// `upsert`.
    pub fn words(self) -> &'static str {
        match self {
            EventKind::Upsert => "upsert",
            EventKind::Delete => "delete",
            EventKind::Absence => "absent",
            EventKind::Truncate => "truncate",
        }
    }
}

/// What an event did to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It began a version.
    Opens,
    /// It went on with the version that was there: nothing tracked changed.
    Repeats,
    /// It gives columns that the next event, of the same sequence, leaves as they are.
    FillsIn,
    /// It ended a version.
    Deletes,
    /// A delete where there was nothing.
    DeletesNothing,
    /// A later event took its place (SCD type 1).
    Superseded,
    /// A TRUNCATE, or a snapshot without the key, of a later sequence made it void.
    Voided,
}

/// Where an event stood in its source; what all of a batch says (an absence) has no record.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct EventPlace {
    /// Path of the file, or name of the table; of an absence all that the snapshot was made of. None: no longer on
    /// record.
    pub source: Option<String>,
    /// Version of a table: where a stream of it brought the row, or that the snapshot was.
    pub version: Option<u64>,
    /// Number of the file in its batch or version, from 1.
    pub file: u64,
    /// Number of the record in the file, from 1; None: the flow's query leaves no position (an aggregate), or there is
    /// no record (an absence).
    pub record: Option<u64>,
}

impl EventPlace {
    /// In words: `cust_2022.json:811`, `table bronze.customers, version 3, file 1, row 811`.
    pub fn words(&self) -> String {
        match (self.record, &self.source, self.version) {
            (None, Some(source), None) => source.clone(),
            (None, Some(source), Some(version)) => format!("table {source}, version {version}"),
            (None, None, _) => "unknown".to_string(),
            (Some(record), Some(source), None) => format!("{source}:{record}"),
            (Some(record), Some(source), Some(version)) => {
                format!("table {source}, version {version}, file {}, row {record}", self.file)
            }
            (Some(record), None, None) => format!("file {} of the batch, record {record}", self.file),
            (Some(record), None, Some(version)) => format!("version {version}, file {}, row {record}", self.file),
        }
    }
}
