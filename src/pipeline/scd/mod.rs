//! What people ask about AUTO CDC tables, as plain data: values as texts, as previews show them.
//!
//! - `history`: the versions of one key and the events that made them
//! - `keys`: the list of keys
//! - `diff`: the table at a sequence, and what is different between two
//! - `check`: does the table say what its events say
//! - `compare`: rows of a key against its events, pure
//! - `cutover`: for every key, did the live feed take over where the seed ended

pub mod check;
pub mod compare;
pub mod cutover;
pub mod diff;
pub mod history;
pub mod keys;

pub use check::{CheckExample, Invariant, InvariantCount, KeyCounts, ScdCheck};
pub use cutover::{
    CutoverCheck, CutoverFlow, CutoverRequest, Evidence, FirstChange, FirstChangeCounts, KeyCutover, Verdict,
    VerdictCount,
};
pub use diff::{AsOf, ColumnChanges, DiffRange, RowChange, RowDiff, ScdDiff};
pub use history::{Effect, EventKind, EventPlace, KeyEvent, KeyHistory, Version};
pub use keys::{KeyFilter, KeyFlags, KeyPage, KeyRequest, KeySummary};

/// A key column's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct KeyPart {
    pub column: String,
    pub value: String,
}

/// A key in words: `id=7, region=eu`.
pub fn key_words(key: &[KeyPart]) -> String {
    key.iter().map(|part| format!("{}={}", part.column, part.value)).collect::<Vec<_>>().join(", ")
}
