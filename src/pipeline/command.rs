//! What a front end may ask of the engine. Plain data; so are the answers ([`crate::answer`]).

use crate::scd::ScdQuestion;

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

impl UpdateRequest {
    /// The request in words: `refresh all`.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        let mut list = |what: &str, names: &[String]| {
            if !names.is_empty() {
                words.push(format!("{what} {}", names.join(", ")));
            }
        };
        list("refresh", &self.refresh);
        list("full refresh", &self.full_refresh);
        list("flow", &self.flows);
        list("rerun", &self.rerun_once);
        if self.full_refresh_all {
            words.push("full refresh of all".to_string());
        }
        if self.refresh_failed {
            words.push("refresh failed".to_string());
        }
        match words.is_empty() {
            true => "refresh all".to_string(),
            false => words.join("; "),
        }
    }
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

/// What a front end that stays open may ask; each is answered by an [`crate::answer::Answer`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
pub enum Command {
    /// Reads the files again and analyses them, sources included.
    Validate,
    /// What an update would do.
    PlanUpdate {
        request: UpdateRequest,
    },
    StartUpdate {
        request: UpdateRequest,
    },
    /// Stops the running update at the next batch boundary.
    CancelUpdate,
    /// What forgetting the checkpoints of these flows would do.
    PlanReset {
        flows: Vec<String>,
    },
    /// Forgets the checkpoints of flows; their tables keep their rows.
    ResetFlows {
        flows: Vec<String>,
    },
    /// Writes an edit that a diagnostic offers, unless the file is no longer what it was.
    Fix {
        /// Relative to the workspace folder.
        path: String,
        /// The whole text.
        before: String,
        after: String,
    },
    /// A page of a dataset's rows.
    Rows {
        dataset: String,
        /// Rows to leave out first.
        from: usize,
        count: usize,
    },
    /// Removes an inactive dataset from disk.
    Drop {
        dataset: String,
    },
    /// Keys, history, checks of an AUTO CDC table.
    Inspect {
        question: ScdQuestion,
    },
}
