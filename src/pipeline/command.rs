//! What a front end may ask of the engine. Plain data; so are the answers ([`crate::answer`]).

use crate::plan::UpdateRequest;
use crate::scd::ScdQuestion;

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
