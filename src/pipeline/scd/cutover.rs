//! Whether the live feed of a table takes over, for every key, where its seed ends.

use std::cmp::Ordering;

use super::KeyPart;
use crate::auto_cdc::ScdType;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct CutoverRequest {
    /// Only this key: its value, or `column=value` of each of its columns. Empty: all keys.
    pub key: Vec<String>,
    /// Only keys of this text part (`id=7`), in any case; the counts are of all keys all the same.
    pub search: Option<String>,
    /// Only keys of this verdict.
    pub verdict: Option<Verdict>,
    /// [`CutoverCheck::next`] of the page before; None: the first page.
    pub after: Option<String>,
    /// So many keys at most; 0: counts and examples only.
    pub limit: usize,
}

/// The seed and the live feed of a target, compared key by key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CutoverCheck {
    pub target: String,
    #[serde(serialize_with = "super::as_number")]
    pub scd_type: ScdType,
    /// Spark's spelling of the sequence's type.
    pub sequence_type: String,
    pub seed_flows: Vec<CutoverFlow>,
    pub live_flows: Vec<CutoverFlow>,
    pub key_count: u64,
    /// One each, in the order of [`Verdict::ALL`].
    pub verdicts: Vec<VerdictCount>,
    /// What became of the first live change of seeded keys; None unless the target is of SCD type 2 and both sides
    /// were applied.
    pub first_changes: Option<FirstChangeCounts>,
    /// The page that was asked for, in order of keys.
    pub keys: Vec<KeyCutover>,
    pub next: Option<String>,
}

impl CutoverCheck {
    /// No key is stale, has a tie, or a first live change that went wrong.
    pub fn holds(&self) -> bool {
        let is_good = |count: &VerdictCount| !matches!(count.verdict, Verdict::Stale | Verdict::Tie) || count.keys == 0;
        self.verdicts.iter().all(is_good) && self.first_changes.as_ref().is_none_or(|changes| changes.wrong == 0)
    }

    /// Keys of a verdict.
    pub fn count(&self, verdict: Verdict) -> u64 {
        self.verdicts.iter().find(|count| count.verdict == verdict).map_or(0, |count| count.keys)
    }
}

/// A flow of the target, and how its sequences are known.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CutoverFlow {
    pub name: String,
    pub evidence: Evidence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// It has run: what it applied to the target.
    Applied,
    /// It has not run: its query over all that its source has now. Nothing was applied.
    Source,
    /// It has not run, and its source has nothing yet.
    Nothing,
}

/// How the sequences of a key's seed and of its live feed lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first live sequence is after the last seeded one.
    Contiguous,
    /// No live event yet.
    SeedOnly,
    /// Not seeded: new since the cutover.
    LiveOnly,
    /// The first live sequence is before the last seeded one: SCD type 1 passes such an event over, SCD type 2 puts it
    /// into history; the row that holds now stays the seed's.
    Stale,
    /// Both have the same sequence: the live event wins, unless only the seeded one is a delete.
    Tie,
}

impl Verdict {
    pub const ALL: [Verdict; 5] =
        [Verdict::Contiguous, Verdict::SeedOnly, Verdict::LiveOnly, Verdict::Stale, Verdict::Tie];

    /// By the last seeded and the first live sequence, as ordered bytes; None: the key has neither.
    pub fn of(last_seeded: Option<&[u8]>, first_live: Option<&[u8]>) -> Option<Verdict> {
        Some(match (last_seeded, first_live) {
            (None, None) => return None,
            (Some(_), None) => Verdict::SeedOnly,
            (None, Some(_)) => Verdict::LiveOnly,
            (Some(seeded), Some(live)) => match live.cmp(seeded) {
                Ordering::Greater => Verdict::Contiguous,
                Ordering::Equal => Verdict::Tie,
                Ordering::Less => Verdict::Stale,
            },
        })
    }

    /// `seed only`.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Contiguous => "contiguous",
            Verdict::SeedOnly => "seed only",
            Verdict::LiveOnly => "live only",
            Verdict::Stale => "stale",
            Verdict::Tie => "tie",
        }
    }

    /// What it means, in a few words.
    pub fn meaning(self) -> &'static str {
        match self {
            Verdict::Contiguous => "last seeded < first live",
            Verdict::SeedOnly => "no live event yet",
            Verdict::LiveOnly => "new since the cutover",
            Verdict::Stale => "earlier: passed over, or into history",
            Verdict::Tie => "equal: delete wins, else the live one",
        }
    }
}

/// Keys of one verdict.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct VerdictCount {
    pub verdict: Verdict,
    pub keys: u64,
    /// The first few.
    pub examples: Vec<KeyCutover>,
}

/// One key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KeyCutover {
    pub key: Vec<KeyPart>,
    pub verdict: Verdict,
    pub last_seeded: Option<String>,
    pub first_live: Option<String>,
    /// See [`CutoverCheck::first_changes`]; None: not a seeded key whose live feed began after the seed.
    pub first_change: Option<FirstChange>,
}

/// What the first live event of a seeded key made of it in a target of SCD type 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstChange {
    /// Exactly one new version, and the one before ends where it starts.
    OneVersion,
    /// Nothing tracked changed: the seeded version goes on.
    Repeats,
    /// A delete: the seeded version ends there.
    Deletes,
    /// None of these.
    Wrong,
}

impl FirstChange {
    /// `one version`.
    pub fn words(self) -> &'static str {
        match self {
            FirstChange::OneVersion => "one version",
            FirstChange::Repeats => "no change",
            FirstChange::Deletes => "deleted",
            FirstChange::Wrong => "wrong",
        }
    }
}

/// Keys by what their first live change made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct FirstChangeCounts {
    pub one_version: u64,
    pub repeats: u64,
    pub deletes: u64,
    pub wrong: u64,
}

impl FirstChangeCounts {
    /// Counts one more.
    pub fn add(&mut self, change: FirstChange) {
        *match change {
            FirstChange::OneVersion => &mut self.one_version,
            FirstChange::Repeats => &mut self.repeats,
            FirstChange::Deletes => &mut self.deletes,
            FirstChange::Wrong => &mut self.wrong,
        } += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_compare_the_first_live_with_the_last_seeded_sequence() {
        let cases = [
            (None, None, None),
            (Some(1), None, Some(Verdict::SeedOnly)),
            (None, Some(1), Some(Verdict::LiveOnly)),
            (Some(1), Some(2), Some(Verdict::Contiguous)),
            (Some(2), Some(2), Some(Verdict::Tie)),
            (Some(2), Some(1), Some(Verdict::Stale)),
        ];
        for (seeded, live, expected) in cases {
            let (of_seed, of_live): (Option<[u8; 1]>, Option<[u8; 1]>) = (seeded.map(|s| [s]), live.map(|l| [l]));
            let verdict = Verdict::of(of_seed.as_ref().map(|s| &s[..]), of_live.as_ref().map(|l| &l[..]));
            assert_eq!(verdict, expected, "{seeded:?} {live:?}");
        }
    }
}
