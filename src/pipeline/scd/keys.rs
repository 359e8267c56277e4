//! The keys of a table, page by page.

use super::KeyPart;
use crate::auto_cdc::ScdType;

/// Which keys are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct KeyRequest {
    /// A part of the key's text (`id=7, region=eu`), in any case; None: all keys.
    pub search: Option<String>,
    pub only: Option<KeyFilter>,
    /// [`KeyPage::next`] of the page before; None: the first page.
    pub after: Option<String>,
    /// So many keys at most.
    pub limit: usize,
}

/// Keys with something to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyFilter {
    Gaps,
    Deleted,
    Late,
    Tie,
}

impl KeyFilter {
    /// All, in the order in which they are offered.
    pub const ALL: [KeyFilter; 4] = [KeyFilter::Gaps, KeyFilter::Deleted, KeyFilter::Late, KeyFilter::Tie];

    /// `gaps`.
    pub fn word(self) -> &'static str {
        match self {
            KeyFilter::Gaps => "gaps",
            KeyFilter::Deleted => "deleted",
            KeyFilter::Late => "late",
            KeyFilter::Tie => "tie",
        }
    }
}

/// Keys in the order of their values.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KeyPage {
    pub table: String,
    #[serde(serialize_with = "super::as_number")]
    pub scd_type: ScdType,
    pub key_columns: Vec<String>,
    pub keys: Vec<KeySummary>,
    /// Ask with it for what follows; None: there is no more.
    pub next: Option<String>,
}

/// One key of the list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KeySummary {
    pub key: Vec<KeyPart>,
    /// Rows of the key in the table.
    pub versions: usize,
    /// Events that are stored of it.
    pub events: usize,
    /// The newest event's sequence.
    pub newest: String,
    pub flags: KeyFlags,
}

/// What is special about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
pub struct KeyFlags {
    /// It isn't there now: its newest event is a delete, or was made void.
    pub is_deleted: bool,
    /// It was deleted and came again: its versions don't touch.
    pub has_gaps: bool,
    /// An event was applied after one of a later sequence.
    pub is_late: bool,
    /// The first live event has the sequence of the last seeded one.
    pub has_tie: bool,
}

impl KeyFlags {
    /// Whether a filter lets the key through.
    pub fn fit(self, filter: KeyFilter) -> bool {
        match filter {
            KeyFilter::Gaps => self.has_gaps,
            KeyFilter::Deleted => self.is_deleted,
            KeyFilter::Late => self.is_late,
            KeyFilter::Tie => self.has_tie,
        }
    }

    /// The flags as words: `deleted gaps`.
    pub fn words(self) -> Vec<&'static str> {
        [(self.is_deleted, "deleted"), (self.has_gaps, "gaps"), (self.is_late, "late"), (self.has_tie, "tie")]
            .into_iter()
            .filter_map(|(is_set, word)| is_set.then_some(word))
            .collect()
    }
}
