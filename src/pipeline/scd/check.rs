//! Whether a table says what its events say.

use super::KeyPart;
use crate::auto_cdc::ScdType;

/// Everything that was compared, over all keys.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ScdCheck {
    pub table: String,
    #[serde(serialize_with = "super::as_number")]
    pub scd_type: ScdType,
    pub counts: KeyCounts,
    /// One each of [`Invariant::of`], those that hold too.
    pub invariants: Vec<InvariantCount>,
}

impl ScdCheck {
    /// Nothing is wrong.
    pub fn holds(&self) -> bool {
        self.invariants.iter().all(|invariant| invariant.violations == 0)
    }
}

/// How many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct KeyCounts {
    pub keys: u64,
    /// Rows of the table.
    pub rows: u64,
    pub open_rows: u64,
    /// Events that are stored.
    pub events: u64,
    /// Keys that aren't there now.
    pub deleted: u64,
    /// Keys whose versions don't touch: they were deleted and came again.
    pub with_gaps: u64,
    pub late: u64,
    pub ties: u64,
}

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Invariant {
    /// Every version starts before it ends.
    StartBeforeEnd,
    /// No two versions of a key hold at the same sequence.
    NoOverlap,
    /// A key has at most one open version; of SCD type 1 one row.
    OneOpenRow,
    /// Every row is one that the stored events make.
    RowsComeFromEvents,
    /// Every row that the stored events make is in the table.
    EventsShowAsRows,
    /// The open rows are what SCD type 1 would show of the same events.
    OpenRowsAreLatest,
}

impl Invariant {
    /// Those of an SCD type, in the order they are shown.
    pub fn of(scd_type: ScdType) -> &'static [Invariant] {
        use Invariant::*;
        match scd_type {
            ScdType::One => &[OneOpenRow, RowsComeFromEvents, EventsShowAsRows],
            ScdType::Two => {
                &[StartBeforeEnd, NoOverlap, OneOpenRow, RowsComeFromEvents, EventsShowAsRows, OpenRowsAreLatest]
            }
        }
    }

    /// In words, as a statement that holds or doesn't.
    pub fn words(self, scd_type: ScdType) -> &'static str {
        match (self, scd_type) {
            (Invariant::StartBeforeEnd, _) => "every version starts before it ends",
            (Invariant::NoOverlap, _) => "versions of a key don't overlap",
            (Invariant::OneOpenRow, ScdType::One) => "one row a key at most",
            (Invariant::OneOpenRow, ScdType::Two) => "one open version a key at most",
            (Invariant::RowsComeFromEvents, _) => "every row is made by stored events",
            (Invariant::EventsShowAsRows, _) => "every row that events make is there",
            (Invariant::OpenRowsAreLatest, _) => "open rows are what SCD type 1 would show",
        }
    }
}

/// How often it is violated.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct InvariantCount {
    pub invariant: Invariant,
    /// 0: it holds. Rows, or pairs of rows, or keys: whatever it is about.
    pub violations: u64,
    /// The first few.
    pub examples: Vec<CheckExample>,
}

/// A key that violates an invariant.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CheckExample {
    pub key: Vec<KeyPart>,
    /// What is there: `2 open rows: from 3, from 7`.
    pub what: String,
}
