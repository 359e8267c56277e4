//! What people ask about AUTO CDC tables, as plain data: values as texts, as previews show them.
//!
//! - `history`: the versions of one key and the events that made them
//! - `keys`: the list of keys
//! - `diff`: the table at a sequence, and what is different between two
//! - `check`: does the table say what its events say
//! - `compare`: rows of a key against its events, pure
//! - `cutover`: for every key, did the live feed take over where the seed ended
//! - `question`: each of them as a front end that stays open asks it, and what it gets

pub mod check;
pub mod compare;
pub mod cutover;
pub mod diff;
pub mod history;
pub mod keys;
pub mod question;

use crate::auto_cdc::ScdType;

pub use check::{CheckExample, Invariant, InvariantCount, KeyCounts, ScdCheck};
pub use cutover::{
    CutoverCheck, CutoverFlow, CutoverRequest, Evidence, FirstChange, FirstChangeCounts, KeyCutover, Verdict,
    VerdictCount,
};
pub use diff::{AsOf, ColumnChanges, DiffRange, RowChange, RowDiff, ScdDiff};
pub use history::{Effect, EventKind, EventPlace, KeyEvent, KeyHistory, Version};
pub use keys::{KeyFilter, KeyFlags, KeyPage, KeyRequest, KeySummary};
pub use question::{ScdQuestion, ScdReport};

/// Writes the SCD type as its number.
fn as_number<S: serde::Serializer>(scd_type: &ScdType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(match scd_type {
        ScdType::One => 1,
        ScdType::Two => 2,
    })
}

/// A key column's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct KeyPart {
    pub column: String,
    pub value: String,
}

/// A key in words: `id=7, region=eu`.
pub fn key_words(key: &[KeyPart]) -> String {
    key.iter().map(|part| format!("{}={}", part.column, part.value)).collect::<Vec<_>>().join(", ")
}
