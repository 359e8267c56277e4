//! What events say nothing about, and so leave as it is: NULLs that are ignored, columns that are not in their list.
//!
//! A flow's rule stands in the manifest and what an event itself says stands with its member:
//!
//! ```text
//! flags: a bit for each leaf of the layout, the lowest first, and a one behind the last; so the last byte isn't 0
//! behind them, if a list names columns that the table doesn't have:
//!     the names in order, in lower case, each behind its length as a varint · their length · 1 · 0
//! behind that, if there are weaker events of the same sequence that say something about other leaves, the strongest
//! first:
//!     of each: varint length of the same · the same, empty for a whole row · 1 for a delete · class ·
//!     varint flow · varint batch · 3 varints position, as the member's own rank has them · their length · 2 · 0
//! lengths behind what they are of have 4 bytes, the lowest first
//! ```
//!
//! So a table is the same whichever of its columns were known when an event came: about leaves behind the flags the rule
//! of its flow decides, or the event's list.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pipeline::auto_cdc::{ChangeFlow, IgnoreNulls};
use pipeline::timeline::{Class, Kind, Layer, Origin};
use serde::{Deserialize, Serialize};

use super::encode::{Leaf, varint};
use super::stored::{class, class_number};

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

/// What tells whether an event says something about leaves that the table did not have when it came.
#[derive(Debug)]
pub enum Later {
    /// The rule of its flow, by leaf.
    Rule(Vec<bool>),
    /// The list of the event.
    List,
}

impl Later {
    /// For the events of a flow, in a table with these leaves.
    pub fn of(silence: &Silence, leaves: &[Leaf]) -> Later {
        match silence {
            Silence::Unlisted(_) => Later::List,
            _ => Later::Rule(leaves.iter().map(|leaf| !silence.covers(&leaf.path[0])).collect()),
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

/// What an event with a list of columns says something about.
pub fn listed(leaves: &[Leaf], names: &[&str]) -> Vec<u8> {
    let is_listed = |leaf: &Leaf| names.iter().any(|name| name.eq_ignore_ascii_case(&leaf.path[0]));
    let mut said = flags(leaves.len(), |leaf| is_listed(&leaves[leaf]));
    let others = names.iter().filter(|name| !is_column(leaves, name));
    // However they are spelled and in which order: two events that say the same are the same.
    let others: BTreeSet<String> = others.map(|name| name.to_ascii_lowercase()).collect();
    put_names(&mut said, others.iter().map(String::as_str));
    said
}

fn is_column(leaves: &[Leaf], name: &str) -> bool {
    leaves.iter().any(|leaf| leaf.path[0].eq_ignore_ascii_case(name))
}

/// Whether the event says something about a leaf, of those there were when it came.
pub fn is_set(said: &[u8], leaf: usize) -> bool {
    said.get(leaf / 8).is_some_and(|byte| byte >> (leaf % 8) & 1 == 1)
}

/// What either of two says something about, of the same leaves.
pub fn union(a: &[u8], b: &[u8]) -> Vec<u8> {
    let ((flags_a, names_a), (flags_b, names_b)) = (split(a), split(b));
    let mut union: Vec<u8> = flags_a.iter().zip(flags_b).map(|(a, b)| a | b).collect();
    let names: BTreeSet<&str> = names_of(names_a).chain(names_of(names_b)).collect();
    put_names(&mut union, names.into_iter());
    union
}

/// What an event says something about, of all leaves that there are now.
pub fn grown<'s>(said: &'s [u8], later: &Later, leaves: &[Leaf]) -> Cow<'s, [u8]> {
    let (flags_before, names) = split(said);
    let known = count(flags_before);
    if known >= leaves.len() {
        return Cow::Borrowed(said);
    }
    let column = |leaf: usize| &leaves[leaf].path[0];
    let says = |leaf: usize| match later {
        _ if leaf < known => is_set(flags_before, leaf),
        Later::Rule(says) => says[leaf],
        // A list names whole columns: a new field of a struct belongs to it like those there were.
        Later::List => {
            names_of(names).any(|name| name.eq_ignore_ascii_case(column(leaf)))
                || (0..known).any(|other| is_set(flags_before, other) && column(other) == column(leaf))
        }
    };
    let mut grown = flags(leaves.len(), says);
    put_names(&mut grown, names_of(names).filter(|name| !is_column(leaves, name)));
    Cow::Owned(grown)
}

/// Of how many leaves flags are.
fn count(flags: &[u8]) -> usize {
    let last = flags.last().copied().unwrap_or_default();
    (flags.len() * 8).saturating_sub(last.leading_zeros() as usize + 1)
}

/// Puts the layers beneath an event behind what it says itself.
pub fn with_layers(said: &[u8], below: &[Layer<'_>]) -> Vec<u8> {
    let mut bytes = said.to_vec();
    let start = bytes.len();
    for layer in below {
        let said = layer.authored.as_deref().unwrap_or_default();
        varint::put(&mut bytes, said.len() as u64);
        bytes.extend_from_slice(said);
        bytes.push(u8::from(layer.kind == Kind::Delete));
        bytes.push(class_number(layer.rank.class));
        let [a, b, c] = layer.rank.position;
        let numbers = [u64::from(layer.origin.flow), layer.origin.batch, a, b, c];
        numbers.iter().for_each(|number| varint::put(&mut bytes, *number));
    }
    put_trailer(&mut bytes, start, LAYERS);
    bytes
}

/// A layer as it is stored: what it says, empty for a whole row, and who said it.
pub struct StoredLayer<'s> {
    pub said: &'s [u8],
    pub kind: Kind,
    pub class: Class,
    pub origin: Origin,
    pub position: [u64; 3],
}

/// What an event says itself, and the layers beneath it.
pub fn layers(bytes: &[u8]) -> (&[u8], impl Iterator<Item = StoredLayer<'_>>) {
    let (said, mut layers) = take_trailer(bytes, LAYERS);
    let next = move || {
        let said = varint::take_bytes(&mut layers)?;
        let [kind, class] = varint::take_exactly(&mut layers, 2)? else { return None };
        let mut number = || varint::take(&mut layers);
        let origin = Origin { flow: u32::try_from(number()?).ok()?, batch: number()? };
        Some(StoredLayer {
            said,
            kind: if *kind == 1 { Kind::Delete } else { Kind::Upsert },
            class: self::class(*class),
            origin,
            position: [number()?, number()?, number()?],
        })
    };
    (said, std::iter::from_fn(next))
}

/// What lies before a trailer.
const NAMES: u8 = 1;
const LAYERS: u8 = 2;

/// Ends what was put from `start` on, if there is something.
fn put_trailer(bytes: &mut Vec<u8>, start: usize, of: u8) {
    let len = bytes.len() - start;
    if len > 0 {
        // Arrow's strings end at 2 GiB, and so does a list of them.
        bytes.extend_from_slice(&(len as u32).to_le_bytes());
        bytes.extend_from_slice(&[of, 0]);
    }
}

/// The bytes before what ends with such a trailer, and that.
fn take_trailer(bytes: &[u8], of: u8) -> (&[u8], &[u8]) {
    let Some((before, [len @ .., kind, 0])) = bytes.split_last_chunk::<6>() else { return (bytes, &[]) };
    match *kind == of {
        true => before.split_at(before.len().saturating_sub(u32::from_le_bytes(*len) as usize)),
        false => (bytes, &[]),
    }
}

/// Appends names to flags.
fn put_names<'n>(flags: &mut Vec<u8>, names: impl Iterator<Item = &'n str>) {
    let start = flags.len();
    for name in names {
        varint::put(flags, name.len() as u64);
        flags.extend_from_slice(name.as_bytes());
    }
    put_trailer(flags, start, NAMES);
}

/// The flags and the names.
fn split(said: &[u8]) -> (&[u8], &[u8]) {
    take_trailer(said, NAMES)
}

fn names_of(mut names: &[u8]) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || std::str::from_utf8(varint::take_bytes(&mut names)?).ok())
}

#[cfg(test)]
mod tests {
    use pipeline::data_type::DataType;
    use pipeline::timeline::Rank;

    use super::super::encode::LeafKind;
    use super::*;

    fn leaves(paths: &[&str]) -> Vec<Leaf> {
        let leaf = |path: &&str| Leaf {
            path: path.split('.').map(str::to_string).collect(),
            kind: LeafKind::Value(DataType::Long),
        };
        paths.iter().map(leaf).collect()
    }

    #[test]
    fn flags_tell_how_many_they_are_and_grow_as_the_rule_says() {
        for known in 0..20 {
            let before = flags(known, |leaf| leaf % 3 == 0);
            assert_eq!(count(&before), known);
            let all = leaves(&vec!["x"; known + 9]);
            assert_eq!(grown(&before, &Later::Rule(vec![true; known]), &all[..known]), before);
            let says = Later::Rule((0..known + 9).map(|leaf| leaf % 2 == 0).collect());
            let after = grown(&before, &says, &all);
            let expected = |leaf: usize| if leaf < known { leaf.is_multiple_of(3) } else { leaf.is_multiple_of(2) };
            assert_eq!(count(&after), known + 9);
            assert!((0..known + 9).all(|leaf| is_set(&after, leaf) == expected(leaf)), "{known}");
        }
    }

    /// However the columns come, a list says in the end what it would have said had they all been there.
    #[test]
    fn a_list_says_the_same_whenever_its_columns_come() {
        let all = ["a", "s", "s.x", "B", "c", "s.y", "d", "e", "f", "g"];
        let lists: [&[&str]; 6] = [&[], &["a", "A"], &["S"], &["b", "c", "g"], &["nope", "é", "g", ""], &all];
        for list in lists {
            let expected = listed(&leaves(&all), list);
            for first in 0..=all.len() {
                for second in first..=all.len() {
                    let said = listed(&leaves(&all[..first]), list);
                    let said = grown(&said, &Later::List, &leaves(&all[..second])).into_owned();
                    assert_eq!(said, listed(&leaves(&all[..second]), list), "{list:?} {first} {second}");
                    assert_eq!(grown(&said, &Later::List, &leaves(&all)), expected, "{list:?} {first} {second}");
                }
            }
        }
        let said = listed(&leaves(&all), &["nope", "é", "g", ""]);
        let (flags, names) = split(&said);
        assert_eq!((count(flags), names_of(names).collect::<Vec<_>>()), (all.len(), vec!["", "nope", "é"]));
        assert!((0..all.len()).all(|leaf| is_set(&said, leaf) == (all[leaf] == "g")));
    }

    #[test]
    fn a_union_says_what_either_says() {
        let all = leaves(&["a", "s", "s.x", "b"]);
        let union_of = |a: &[&str], b: &[&str]| union(&listed(&all, a), &listed(&all, b));
        assert_eq!(union_of(&["a", "z"], &["S", "y", "z"]), listed(&all, &["a", "s", "y", "z"]));
        assert_eq!(union_of(&[], &[]), listed(&all, &[]));
    }

    #[test]
    fn layers_come_back() {
        let all = leaves(&["a", "s", "s.x", "b"]);
        let layer = |kind, class, said: Option<&[&str]>| Layer {
            kind,
            rank: Rank { class, flow: 7, position: [1, 300, 5] },
            origin: Origin { flow: 3, batch: 1000 },
            authored: said.map(|names| Cow::Owned(listed(&all, names))),
        };
        let below = [
            layer(Kind::Upsert, Class::Live, Some(&["b", "nope"])),
            layer(Kind::Upsert, Class::Once, Some(&[])),
            layer(Kind::Upsert, Class::OnceSnapshot, None),
            layer(Kind::Delete, Class::Snapshot, None),
        ];
        for count in 0..=below.len() {
            for names in [&["a"][..], &["a", "more"]] {
                let top = listed(&all, names);
                let bytes = with_layers(&top, &below[..count]);
                let (said, found) = layers(&bytes);
                assert_eq!(said, top);
                let found = found.map(|layer| {
                    let authored = Some(Cow::Borrowed(layer.said)).filter(|said| !said.is_empty());
                    let rank = Rank { class: layer.class, flow: 7, position: layer.position };
                    Layer { kind: layer.kind, rank, origin: layer.origin, authored }
                });
                assert_eq!(found.collect::<Vec<_>>(), below[..count]);
            }
        }
        let bytes = with_layers(&flags(3, |leaf| leaf == 1), &below[2..]);
        assert_eq!(
            bytes,
            [0b1010, 0, 0, 3, 3, 232, 7, 1, 172, 2, 5, 0, 1, 0, 3, 232, 7, 1, 172, 2, 5, 20, 0, 0, 0, 2, 0]
        );
    }

    /// They lie in side tables.
    #[test]
    fn the_bytes_of_a_list_do_not_change() {
        let said = listed(&leaves(&["a", "b", "c"]), &["B", "Zz", "y", "y"]);
        assert_eq!(said, [0b1010, 1, b'y', 2, b'z', b'z', 5, 0, 0, 0, 1, 0]);
        assert_eq!(listed(&leaves(&["a", "b", "c"]), &["B"]), [0b1010]);
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
