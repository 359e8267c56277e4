//! What a front end may ask of the engine. Plain data; the answers are [`crate::event::Event`]s.

use std::collections::BTreeSet;

/// What to run in an update. Names are as people type them; `plan::plan_update` resolves them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UpdateRequest {
    /// Datasets to bring up to date; empty with the other lists empty: all.
    pub refresh: Vec<String>,
    /// Datasets whose rows and checkpoints are dropped and read from the start.
    pub full_refresh: Vec<String>,
    /// Everything that is not protected.
    pub full_refresh_all: bool,
    /// What failed in the last update, and what reads it.
    pub refresh_failed: bool,
    /// Only these flows.
    pub flows: Vec<String>,
    /// Once flows that are done and shall append their rows again.
    pub rerun_once: Vec<String>,
    /// A full refresh also drops the streams that read the table.
    pub with_downstream: bool,
    /// The person has seen what would be read twice or dropped.
    pub is_confirmed: bool,
    pub cause: Cause,
}

/// Why an update runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Cause {
    #[default]
    UserAction,
    RetryOnFailure,
    SchemaChange,
}

/// Everything a front end may ask.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
pub enum Command {
    /// Reads the files again and analyses them.
    Validate,
    StartUpdate {
        request: UpdateRequest,
    },
    /// Stops the running update at the next batch boundary.
    CancelUpdate,
    /// Forgets the checkpoints of flows; their tables keep their rows.
    ResetFlows {
        flows: BTreeSet<String>,
    },
    /// A flow got another name and keeps its checkpoint.
    RenameFlow {
        old: String,
        new: String,
    },
    /// The first rows of a dataset.
    Preview {
        dataset: String,
        limit: usize,
    },
    /// Removes an inactive dataset from disk.
    Drop {
        dataset: String,
    },
}
