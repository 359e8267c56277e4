//! What the engine reports. Plain data: the event log in state.db holds it, and every front end reads it.
//!
//! The names of fields and event types follow the event log of Lakeflow pipelines, so that queries people
//! already have keep working.

use crate::plan::UpdateRequest;

/// States of updates and flows; the same words everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Waits for its turn.
    Queued,
    /// Finds out what to read.
    Planning,
    Running,
    Completed,
    Failed,
    /// Not run, because something before it failed or was canceled.
    Skipped,
    /// Stopped by request.
    Canceled,
    /// Not selected.
    Excluded,
    /// A once flow that is done; a flow that never ran.
    Idle,
}

impl State {
    /// The word: `RUNNING`.
    pub fn word(self) -> &'static str {
        match self {
            State::Queued => "QUEUED",
            State::Planning => "PLANNING",
            State::Running => "RUNNING",
            State::Completed => "COMPLETED",
            State::Failed => "FAILED",
            State::Skipped => "SKIPPED",
            State::Canceled => "CANCELED",
            State::Excluded => "EXCLUDED",
            State::Idle => "IDLE",
        }
    }

    /// The state of this word.
    pub fn from_word(word: &str) -> Option<State> {
        const ALL: [State; 9] = [
            State::Queued,
            State::Planning,
            State::Running,
            State::Completed,
            State::Failed,
            State::Skipped,
            State::Canceled,
            State::Excluded,
            State::Idle,
        ];
        ALL.into_iter().find(|state| state.word() == word)
    }

    /// True if nothing more will happen to it in this update.
    pub fn is_final(self) -> bool {
        !matches!(self, State::Queued | State::Planning | State::Running)
    }

    /// True if a flow that comes after it may start.
    pub fn lets_readers_start(self) -> bool {
        matches!(self, State::Completed | State::Idle | State::Excluded)
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// How loud an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Numbers of a running flow; the newest is enough.
    Metrics,
    Info,
    Warn,
    Error,
}

impl Level {
    /// The word: `WARN`.
    pub fn word(self) -> &'static str {
        match self {
            Level::Metrics => "METRICS",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Event {
    /// Microseconds since 1970 UTC.
    pub time_us: i64,
    pub level: Level,
    /// The update's number, counted from 1 in a workspace.
    pub update: Option<i64>,
    /// Labels, as people see them.
    pub dataset: Option<String>,
    pub flow: Option<String>,
    pub batch: Option<i64>,
    /// One sentence.
    pub message: String,
    pub error: Option<Failure>,
    #[serde(flatten)]
    pub details: Details,
}

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Failure {
    /// A stable word, as in diagnostics.
    pub code: String,
    pub message: String,
    pub help: Option<String>,
    /// False if trying again may help.
    pub is_fatal: bool,
}

/// What an event is about, by its type.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "event_type", content = "details")]
pub enum Details {
    CreateUpdate {
        request: UpdateRequest,
    },
    UpdateProgress {
        state: State,
    },
    FlowDefinition {
        input_datasets: Vec<String>,
        /// The flows that it waited for beside those that write its inputs.
        #[serde(default)]
        depends_on: Vec<String>,
        output_dataset: String,
        /// APPEND, COMPLETE.
        flow_type: String,
        /// Column names and types.
        schema: Vec<(String, String)>,
        comment: Option<String>,
        once: bool,
    },
    DatasetDefinition {
        dataset_type: String,
        num_flows: usize,
    },
    FlowProgress {
        status: State,
        metrics: FlowMetrics,
    },
    /// One micro-batch is in the table.
    BatchProgress {
        metrics: FlowMetrics,
        table_version: Option<i64>,
    },
    /// A flow's or table's schema grew: names and types of the new columns.
    SchemaEvolved {
        columns: Vec<(String, String)>,
    },
    /// How a materialized view was brought up to date: COMPLETE_RECOMPUTE or NO_OP.
    PlanningInformation {
        technique: String,
    },
    /// Listing of a file source.
    OperationProgress {
        operation: String,
        source: String,
        files: u64,
        duration_ms: u64,
    },
    /// Something worth knowing that doesn't keep anything from running.
    Notice {
        code: String,
        help: Option<String>,
    },
    Maintenance {
        operation: String,
        files_added: u64,
        files_removed: u64,
    },
    UserAction {
        action: String,
    },
}

/// Numbers of a flow in an update, or of one micro-batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FlowMetrics {
    pub batches: u64,
    pub rows_in: u64,
    /// `num_output_rows`.
    pub rows_out: u64,
    pub bytes_in: u64,
    pub files_in: u64,
    /// Values that did not fit their column and went to the rescued data column.
    pub rescued_values: u64,
    /// Records that could not be read.
    pub corrupt_records: u64,
    /// Files or versions that are still unread.
    pub backlog: u64,
    pub backlog_bytes: u64,
    pub duration_ms: u64,
    /// What became of change events; all zero for flows that append.
    #[serde(default, skip_serializing_if = "ChangeMetrics::is_zero")]
    pub changes: ChangeMetrics,
}

/// Numbers of the change events that an AUTO CDC flow applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChangeMetrics {
    /// `num_upserted_rows`: upserts that are part of their key's history now.
    pub upserted: u64,
    /// `num_deleted_rows`: deletes likewise.
    pub deleted: u64,
    /// Events that came after one of a later sequence had been applied to their key.
    pub late: u64,
    /// Events that had been applied before.
    pub duplicates: u64,
    /// Different events of one key and sequence: one of each two lost.
    pub ties: u64,
    /// Events without a key that `null_keys = "drop"` left out.
    pub dropped: u64,
}

impl ChangeMetrics {
    /// True if nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == ChangeMetrics::default()
    }
}

impl std::ops::Add for ChangeMetrics {
    type Output = ChangeMetrics;

    fn add(self, other: ChangeMetrics) -> ChangeMetrics {
        ChangeMetrics {
            upserted: self.upserted + other.upserted,
            deleted: self.deleted + other.deleted,
            late: self.late + other.late,
            duplicates: self.duplicates + other.duplicates,
            ties: self.ties + other.ties,
            dropped: self.dropped + other.dropped,
        }
    }
}

impl FlowMetrics {
    /// Counts a committed micro-batch in; the backlog is what the batch left.
    pub fn add_batch(&mut self, batch: &FlowMetrics) {
        *self = FlowMetrics {
            batches: self.batches + batch.batches.max(1),
            rows_in: self.rows_in + batch.rows_in,
            rows_out: self.rows_out + batch.rows_out,
            bytes_in: self.bytes_in + batch.bytes_in,
            files_in: self.files_in + batch.files_in,
            rescued_values: self.rescued_values + batch.rescued_values,
            corrupt_records: self.corrupt_records + batch.corrupt_records,
            backlog: batch.backlog,
            backlog_bytes: batch.backlog_bytes,
            duration_ms: self.duration_ms + batch.duration_ms,
            changes: self.changes + batch.changes,
        };
    }
}
