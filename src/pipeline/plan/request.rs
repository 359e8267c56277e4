//! What an update is asked to run.

/// What to run in an update. Names are as people type them; [`super::plan_update`] resolves them.
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
