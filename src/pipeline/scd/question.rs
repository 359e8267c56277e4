//! What a front end that stays open asks about an AUTO CDC table, and what it gets.

use super::{
    AsOf, CutoverCheck, CutoverRequest, DiffRange, KeyHistory, KeyPage, KeyPart, KeyRequest, ScdCheck, ScdDiff,
};

/// One question about a table, by its label.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "question", rename_all = "snake_case")]
pub enum ScdQuestion {
    /// A page of its keys.
    Keys { table: String, request: KeyRequest },
    /// The history of one key.
    History { table: String, key: Vec<KeyPart> },
    /// The table at a sequence, `limit` rows of it.
    AsOf { table: String, sequence: String, limit: usize },
    /// What is different between two sequences, or two versions of a key; `limit` rows of it.
    Diff { table: String, range: DiffRange, limit: usize },
    /// Whether it says what its events say.
    Check { table: String },
    /// Whether the live feed takes over where the seed ends, and a page of the keys.
    Cutover { table: String, request: CutoverRequest },
}

impl ScdQuestion {
    /// Label of the table that is asked about.
    pub fn table(&self) -> &str {
        let (ScdQuestion::Keys { table, .. }
        | ScdQuestion::History { table, .. }
        | ScdQuestion::AsOf { table, .. }
        | ScdQuestion::Diff { table, .. }
        | ScdQuestion::Check { table }
        | ScdQuestion::Cutover { table, .. }) = self;
        table
    }
}

/// The report that a question of the same name gets.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum ScdReport {
    Keys(KeyPage),
    History(KeyHistory),
    AsOf(AsOf),
    Diff(ScdDiff),
    Check(ScdCheck),
    Cutover(CutoverCheck),
}
