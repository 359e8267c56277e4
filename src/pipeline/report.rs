//! What the engine answers when a front end asks how things stand. Plain data, ready to print: no Arrow, no
//! DataFusion, values as text.

use crate::event::{FlowMetrics, State};
use crate::graph::FlowKind;
use crate::plan::Notice;

/// How a workspace stands.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Status {
    pub name: String,
    /// The workspace folder.
    pub folder: String,
    pub datasets: Vec<DatasetStatus>,
    pub flows: Vec<FlowStatus>,
    /// The newest update.
    pub update: Option<UpdateSummary>,
    /// Pid of the process that holds the writer's lock.
    pub running_pid: Option<u32>,
    pub errors: usize,
    pub warnings: usize,
}

/// How a dataset stands.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DatasetStatus {
    pub name: String,
    /// `streaming table`, …
    pub kind: String,
    pub comment: Option<String>,
    /// False: taken out of the files, still on disk.
    pub is_active: bool,
    /// None: nothing is stored (yet).
    pub table: Option<TableStatus>,
}

/// What is stored of a dataset.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TableStatus {
    pub folder: String,
    pub version: i64,
    /// None where a file's statistics don't say.
    pub rows: Option<u64>,
    pub bytes: u64,
    pub files: u64,
}

/// How a flow stands.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FlowStatus {
    pub name: String,
    pub dataset: String,
    pub kind: FlowKind,
    /// In its last update; IDLE if it never ran, or is a once flow that is done.
    pub state: State,
    /// A once flow that has appended its rows.
    pub is_done: bool,
    pub comment: Option<String>,
    /// The flows that it comes after by `depends_on`.
    pub depends_on: Vec<String>,
    pub last_run_us: Option<i64>,
    pub metrics: FlowMetrics,
    pub error: Option<String>,
}

/// One update of the list.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct UpdateSummary {
    pub number: i64,
    pub state: State,
    pub cause: String,
    /// What was asked for, in words: `refresh all`.
    pub request: String,
    pub started_us: i64,
    pub ended_us: Option<i64>,
    pub flows: Vec<FlowOutcome>,
    pub rows_out: u64,
    pub error: Option<String>,
}

/// What became of a flow in one update.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FlowOutcome {
    pub flow: String,
    pub dataset: String,
    pub state: State,
    pub metrics: FlowMetrics,
    pub error: Option<crate::event::Failure>,
}

/// What a finished update was.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct UpdateReport {
    pub number: i64,
    pub state: State,
    pub flows: Vec<FlowOutcome>,
    pub notices: Vec<Notice>,
    pub duration_ms: u64,
}

/// What an update would do.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PlanReport {
    /// One line a flow.
    pub lines: Vec<String>,
    pub changes: Vec<DatasetChanges>,
    /// What is new in the sources, per flow.
    pub backlog: Vec<FlowBacklog>,
    pub notices: Vec<Notice>,
}

/// The changes of one dataset's definition since it was applied.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DatasetChanges {
    pub dataset: String,
    pub changes: Vec<crate::change::Change>,
}

/// What a flow would read.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FlowBacklog {
    pub flow: String,
    pub files: u64,
    pub bytes: u64,
    /// Versions of tables that are read as streams.
    pub versions: u64,
}

/// What a checkpoint reset would do or has done, per flow.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ResetReport {
    pub flows: Vec<FlowReset>,
    /// False: only shown.
    pub is_done: bool,
}

/// The reset of one flow.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FlowReset {
    pub flow: String,
    pub dataset: String,
    pub rows_kept: Option<u64>,
    /// Files the flow would read again at the next update.
    pub files_again: u64,
    pub bytes_again: u64,
    /// Rows that would be appended a second time, as far as batches counted them.
    pub rows_again: u64,
    /// Events of AUTO CDC: applied again they change nothing.
    pub changes_nothing: bool,
    /// What bounds the start after the reset, in words: `modifiedAfter …`.
    pub start: Option<String>,
}

/// Rows of a dataset or of a query.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Rows {
    pub columns: Vec<Column>,
    /// None is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// True if there were more than asked for.
    pub is_truncated: bool,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Column {
    pub name: String,
    /// Spark's spelling: `BIGINT`, `STRUCT<a: INT>`.
    pub data_type: String,
    pub is_nullable: bool,
    pub is_numeric: bool,
    pub comment: Option<String>,
}

/// Everything about one dataset.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Description {
    pub status: DatasetStatus,
    pub columns: Vec<Column>,
    pub partition_by: Vec<String>,
    pub cluster_by: Vec<String>,
    pub properties: Vec<(String, String)>,
    pub flows: Vec<FlowStatus>,
    pub upstream: Vec<String>,
    pub downstream: Vec<String>,
    /// `path:line:column` of the definition; None for an inactive dataset.
    pub defined_at: Option<String>,
    /// The newest versions of the table, newest first.
    pub history: Vec<TableVersion>,
}

/// One version of a table.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TableVersion {
    pub version: i64,
    pub time_us: i64,
    pub operation: String,
}

/// A function of the SQL dialect.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FunctionRow {
    pub name: String,
    pub aliases: Vec<String>,
    /// `scalar`, `aggregate`, `window` or `table`.
    pub kind: String,
    pub description: String,
}

/// What `doctor` found, and mended if it was asked to.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DoctorReport {
    pub findings: Vec<Finding>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Finding {
    pub code: String,
    pub message: String,
    pub help: Option<String>,
    pub is_mended: bool,
}
