//! What the change events of one key add up to: the exact meaning of AUTO CDC, as a pure function.
//!
//! ```text
//! stored members ┐
//!                ├─▶ one timeline, sorted by sequence, one member a sequence ─▶ rows that the target shows
//! new events     ┘                                    └─▶ members to write, rows to remove, rows to add
//! ```
//! The meaning is canonical: it depends on the events, not on the order or the batches in which they came. So a
//! batch may be applied to what is stored from the *predecessor* on, the newest member before the first new event:
//! whatever lies before it stays as it is.
//!
//! - `mod.rs`: members, their order, and what shows
//! - `layers.rs`: events of one sequence → one member
//! - `fold.rs`: stored members and new events → changes
//! - `tell.rs`: all members of a key → its rows, for whoever looks at them
//! - `tests.rs`: the fold against an oracle that sorts all events and walks over them
//!
//! Not here: how members and rows are stored (the engine's side table), what a row's bytes mean (its codec).
//! The rules are from Spark's AUTO CDC (run detection, half-open intervals, filling of nulls); ties are ours.

mod fold;
mod layers;
mod tell;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;

pub use fold::{AddedRow, Counts, Folded, Folder};
pub use layers::Layer;
pub use tell::{Told, ToldRow};

/// What an event does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Upsert,
    Delete,
}

/// What kind of flow an event came from, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// AUTO CDC FROM SNAPSHOT: its rows and absences give way to any change event of the same sequence.
    Snapshot,
    /// AUTO CDC ONCE FROM SNAPSHOT: the same, as a seed.
    OnceSnapshot,
    /// AUTO CDC ONCE: the seed.
    Once,
    /// AUTO CDC: the live feed.
    Live,
}

impl Class {
    /// Part of what a table is seeded with, before or beside its live feed.
    pub fn is_seed(self) -> bool {
        matches!(self, Class::OnceSnapshot | Class::Once)
    }

    /// From whole states, not from change events.
    pub fn is_snapshot(self) -> bool {
        matches!(self, Class::Snapshot | Class::OnceSnapshot)
    }
}

/// Decides between events of one key and sequence: the higher one wins. It is stored with the member, so that the
/// result does not depend on which flow or batch came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    pub class: Class,
    /// The flow's place among the names of the target's flows.
    pub flow: u32,
    /// Where the event stood in its source: Delta version, file, row; or micro-batch, file in it, line.
    pub position: [u64; 3],
}

/// Where a row of the target lies: file and row within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    pub file: u32,
    pub row: u32,
}

/// An event as it is kept. A new event is a member without run and location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'a> {
    /// Order-preserving bytes: sequences compare as their bytes do.
    pub sequence: &'a [u8],
    pub kind: Kind,
    pub rank: Rank,
    /// Carried along for whoever stores members: which micro-batch of which flow brought it.
    pub origin: Origin,
    /// Which leaves the event itself says something about, where nulls are ignored; None: all of them.
    pub authored: Option<Cow<'a, [u8]>>,
    /// Weaker events of the sequence that say something about others, the strongest first.
    pub below: Vec<Layer<'a>>,
    /// The row after the events, leaves that they are silent about filled from the member before. Empty for a delete.
    pub values: Cow<'a, [u8]>,
    /// The first sequence of the run of equal members that this one continues; None: it begins one.
    pub run_start: Option<&'a [u8]>,
    /// Where the row lies that shows it, if one does.
    pub location: Option<Location>,
    /// Where the key went from the seed to the live feed; kept with a key's newest member.
    pub cutover: Cutover<'a>,
}

/// Between which sequences a key went from its seed (AUTO CDC ONCE, FROM SNAPSHOT too) to its live feed, every event
/// counted, those that lost or changed nothing too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cutover<'a> {
    pub last_seeded: Option<&'a [u8]>,
    pub first_live: Option<&'a [u8]>,
}

impl<'a> Cutover<'a> {
    /// With one more event.
    fn with(self, event: &Member<'a>) -> Cutover<'a> {
        match event.rank.class {
            Class::Snapshot => self,
            // That a snapshot lacks a key is an event only if it was there; see `with_state`.
            Class::OnceSnapshot if event.kind == Kind::Delete => self,
            Class::OnceSnapshot | Class::Once => {
                Cutover { last_seeded: self.last_seeded.max(Some(event.sequence)), ..self }
            }
            Class::Live => {
                let first = self.first_live.map_or(event.sequence, |first| first.min(event.sequence));
                Cutover { first_live: Some(first), ..self }
            }
        }
    }

    /// Given the version of the newest snapshot that seeds the table: it speaks for every key that had a live event by
    /// then, for those that it lacks too, which it deletes. A key that came later is not its.
    pub fn with_state(self, version: Option<&'a [u8]>) -> Cutover<'a> {
        let covers = |version: &&[u8]| self.first_live.is_some_and(|first| first <= *version);
        Cutover { last_seeded: self.last_seeded.max(version.filter(covers)), ..self }
    }
}

/// Which flow (as numbered by the side table) and micro-batch an event came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin {
    pub flow: u32,
    pub batch: u64,
}

/// See [`precedence`].
type Precedence = (bool, bool, Rank);

/// Among events of one sequence the greatest wins: a change event beats a snapshot, a delete an upsert, then the rank
/// decides.
fn precedence(kind: Kind, rank: Rank) -> Precedence {
    (!rank.class.is_snapshot(), kind == Kind::Delete, rank)
}

impl<'a> Member<'a> {
    /// In the order of the timeline, the winner of a sequence last.
    pub fn compare(&self, other: &Member<'_>) -> Ordering {
        let by_precedence = || precedence(self.kind, self.rank).cmp(&precedence(other.kind, other.rank));
        self.sequence.cmp(other.sequence).then_with(by_precedence).then_with(|| self.values.cmp(&other.values))
    }

    /// Where its run begins.
    pub fn start(&self) -> &'a [u8] {
        self.run_start.unwrap_or(self.sequence)
    }
}

/// Everything at or before a sequence is deleted, whatever its key, seen or not: a TRUNCATE, or a snapshot, which
/// deletes what it doesn't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor<'a> {
    pub sequence: &'a [u8],
    /// A TRUNCATE deletes events of its own sequence too; a snapshot doesn't: they are its rows, or change events,
    /// which beat it.
    pub is_inclusive: bool,
}

impl Floor<'_> {
    /// Whether an event of this sequence is deleted.
    pub fn covers(&self, sequence: &[u8]) -> bool {
        match sequence.cmp(self.sequence) {
            Ordering::Less => true,
            Ordering::Equal => self.is_inclusive,
            Ordering::Greater => false,
        }
    }
}

/// What a key's timeline becomes in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Shows {
    /// SCD type 1: the row after the last event, if that is no delete.
    Latest,
    /// SCD type 2: one row a run of equal neighbours, from its first sequence to the next event behind it.
    History,
}

/// What the bytes of rows mean, as far as the timeline has to know. Leaves are columns, or the fields of struct
/// columns.
pub trait RowBytes: Sync {
    /// All leaves are the same; null equals null.
    fn are_equal(&self, a: &[u8], b: &[u8]) -> bool;
    /// The columns whose history is tracked are the same.
    fn are_tracked_equal(&self, a: &[u8], b: &[u8]) -> bool;
    /// The row with the leaves that are not `authored` taken from `before`, or null without one.
    fn fill(&self, values: &[u8], authored: &[u8], before: Option<&[u8]>) -> Vec<u8>;
    /// The leaves that either is about, as `authored` has them.
    fn union(&self, a: &[u8], b: &[u8]) -> Vec<u8>;
}
