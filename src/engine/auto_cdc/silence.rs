//! What events say nothing about, and so leave as it is: NULLs that are ignored, columns that are not in their list.
//!
//! A flow's rule stands in the manifest and what an event itself says stands with its member, as flags: a bit for each
//! leaf of the layout, the lowest first, and a one behind the last. So a table is the same whichever of its columns
//! were known when an event came: about leaves behind its flags the rule of its flow decides.

use std::borrow::Cow;

use pipeline::auto_cdc::{ChangeFlow, IgnoreNulls};
use serde::{Deserialize, Serialize};

/// What the events of a flow say nothing about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    /// Nothing: an event is the whole row, NULL where it has no column.
    #[default]
    None,
    /// Columns of these with NULL, leaf by leaf.
    NullsOf(Vec<String>),
    /// The same of all others.
    NullsExcept(Vec<String>),
    /// Columns that are not in the list that this column holds. No list: the event is the whole row.
    Unlisted(String),
}

impl Silence {
    /// As the flow's clauses say.
    pub fn of(change: &ChangeFlow) -> Silence {
        let Some(feed) = change.feed() else { return Silence::None };
        if let Some(column) = &feed.columns_to_update {
            return Silence::Unlisted(column.value.clone());
        }
        let Some(ignored) = &feed.ignore_null_updates else { return Silence::None };
        let names = ignored.value.names().iter().map(|name| name.value.clone()).collect();
        match &ignored.value {
            IgnoreNulls::On(_) => Silence::NullsOf(names),
            IgnoreNulls::All | IgnoreNulls::Except(_) => Silence::NullsExcept(names),
        }
    }

    /// Whether every event is a whole row.
    pub fn is_none(&self) -> bool {
        *self == Silence::None
    }

    /// Whether an event that doesn't have the column says nothing about it.
    pub fn covers(&self, column: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case(column));
        match self {
            Silence::None => false,
            Silence::NullsOf(names) => is_in(names),
            Silence::NullsExcept(names) => !is_in(names),
            Silence::Unlisted(_) => true,
        }
    }
}

/// The flags of so many leaves.
pub fn flags(leaves: usize, mut says: impl FnMut(usize) -> bool) -> Vec<u8> {
    let mut flags = vec![0_u8; leaves / 8 + 1];
    for leaf in (0..leaves).filter(|leaf| says(*leaf)) {
        flags[leaf / 8] |= 1 << (leaf % 8);
    }
    flags[leaves / 8] |= 1 << (leaves % 8);
    flags
}

/// Whether the event says something about a leaf.
pub fn is_set(flags: &[u8], leaf: usize) -> bool {
    flags.get(leaf / 8).is_some_and(|byte| byte >> (leaf % 8) & 1 == 1)
}

/// Of how many leaves they are.
fn count(flags: &[u8]) -> usize {
    let last = flags.last().copied().unwrap_or_default();
    (flags.len() * 8).saturating_sub(last.leading_zeros() as usize + 1)
}

/// The flags of all leaves there are now; `says` tells of those that came later.
pub fn grown<'f>(flags_before: &'f [u8], says: &[bool]) -> Cow<'f, [u8]> {
    let known = count(flags_before);
    match known < says.len() {
        false => Cow::Borrowed(flags_before),
        true => Cow::Owned(flags(says.len(), |leaf| match leaf < known {
            true => is_set(flags_before, leaf),
            false => says[leaf],
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_tell_how_many_they_are_and_grow_as_the_rule_says() {
        for leaves in 0..20 {
            let before = flags(leaves, |leaf| leaf % 3 == 0);
            assert_eq!(count(&before), leaves);
            assert_eq!(grown(&before, &vec![true; leaves]), before);
            let says: Vec<bool> = (0..leaves + 9).map(|leaf| leaf % 2 == 0).collect();
            let after = grown(&before, &says);
            let expected = |leaf: usize| if leaf < leaves { leaf.is_multiple_of(3) } else { leaf.is_multiple_of(2) };
            assert_eq!(count(&after), leaves + 9);
            assert!((0..leaves + 9).all(|leaf| is_set(&after, leaf) == expected(leaf)), "{leaves}");
        }
    }

    #[test]
    fn a_rule_covers_columns_that_the_flow_does_not_have() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let cases = [
            (Silence::None, false, false),
            (Silence::NullsOf(names(&["A"])), true, false),
            (Silence::NullsExcept(names(&["A"])), false, true),
            (Silence::NullsExcept(Vec::new()), true, true),
            (Silence::Unlisted("list".to_string()), true, true),
        ];
        for (silence, a, b) in cases {
            assert_eq!((silence.covers("a"), silence.covers("b")), (a, b), "{silence:?}");
        }
    }
}
