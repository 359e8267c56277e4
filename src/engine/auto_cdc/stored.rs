//! Stored members of some keys, copied out of the side table into one allocation, so that they can be folded while new
//! runs are written; and how the timeline's words stand in the side table.

use std::borrow::Cow;
use std::ops::Range;

use pipeline::timeline::{Class, Cutover, Kind, Layer, Location, Member, Origin, Rank};

use super::encode::{Layout, Leaf};
use super::side::{self, MemberRef, View, Wanted};
use super::silence::{self, Later};
use crate::error::Result;

/// Members by key.
#[derive(Debug, Default)]
pub struct Stored {
    bytes: Vec<u8>,
    keys: Vec<Key>,
    members: Vec<Slot>,
}

#[derive(Debug)]
struct Key {
    key: Range<usize>,
    /// Index of its first member; they go on to the next key's.
    first: usize,
}

/// Where a member's parts lie in the bytes.
#[derive(Debug)]
struct Slot {
    sequence: Range<usize>,
    authored: Option<Range<usize>>,
    run_start: Option<Range<usize>>,
    last_seeded: Option<Range<usize>>,
    first_live: Option<Range<usize>>,
    values: Range<usize>,
    kind: side::Kind,
    rank: side::Rank,
    batch: u64,
    location: Option<side::Location>,
}

impl Stored {
    /// What the side table has of these keys, each down to its predecessor.
    pub fn look_up(view: &View, wanted: &[Wanted]) -> Result<Stored> {
        let mut stored = Stored::default();
        view.lookup(wanted, |key, members| {
            stored.push(wanted[key].key, members);
            Ok(())
        })?;
        Ok(stored)
    }

    /// Appends a key with its members, newest first.
    pub fn push(&mut self, key: &[u8], members: &[MemberRef]) {
        let key = self.copy(key);
        self.keys.push(Key { key, first: self.members.len() });
        for member in members {
            let slot = Slot {
                sequence: self.copy(member.sequence),
                authored: member.authored.map(|bytes| self.copy(bytes)),
                run_start: member.run_start.map(|bytes| self.copy(bytes)),
                last_seeded: member.last_seeded.map(|bytes| self.copy(bytes)),
                first_live: member.first_live.map(|bytes| self.copy(bytes)),
                values: self.copy(member.values),
                kind: member.kind,
                rank: member.rank,
                batch: member.batch_id,
                location: member.location,
            };
            self.members.push(slot);
        }
    }

    fn copy(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// How many bytes there are.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// True if no key has a member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The keys in order.
    pub fn keys(&self) -> Vec<&[u8]> {
        self.keys.iter().map(|key| &self.bytes[key.key.clone()]).collect()
    }

    /// The members of a key, oldest first.
    pub fn members(&self, key: usize, flows: &Flows) -> Vec<Member<'_>> {
        let end = self.keys.get(key + 1).map_or(self.members.len(), |next| next.first);
        self.members[self.keys[key].first..end].iter().rev().map(|slot| self.member(slot, flows)).collect()
    }

    fn member<'s>(&'s self, slot: &Slot, flows: &Flows) -> Member<'s> {
        let bytes = |range: &Range<usize>| &self.bytes[range.clone()];
        let flow = &flows.by_number[slot.rank.flow as usize];
        let (authored, below) = match &slot.authored {
            None => (None, Vec::new()),
            Some(range) => {
                let (said, below) = silence::layers(bytes(range));
                (Some(flows.grown(said, slot.rank.flow)), below.map(|layer| flows.layer(layer)).collect())
            }
        };
        let member = Member {
            sequence: bytes(&slot.sequence),
            kind: match slot.kind {
                side::Kind::Upsert => Kind::Upsert,
                side::Kind::Delete => Kind::Delete,
            },
            rank: Rank { class: flow.class, flow: flow.order, position: slot.rank.position },
            origin: Origin { flow: slot.rank.flow, batch: slot.batch },
            authored,
            below,
            values: Cow::Borrowed(bytes(&slot.values)),
            run_start: slot.run_start.as_ref().map(bytes),
            location: slot.location.map(|side::Location { file, row }| Location { file, row }),
            cutover: Cutover {
                last_seeded: slot.last_seeded.as_ref().map(bytes),
                first_live: slot.first_live.as_ref().map(bytes),
            },
        };
        member.in_order()
    }
}

/// The class of a flow's events, as ranks have it.
pub(crate) fn class_number(class: Class) -> u8 {
    match class {
        Class::Snapshot => 0,
        Class::Once => 1,
        Class::Live => 2,
        Class::OnceSnapshot => 3,
    }
}

/// The class of a number.
pub(crate) fn class(number: u8) -> Class {
    match number {
        0 => Class::Snapshot,
        1 => Class::Once,
        3 => Class::OnceSnapshot,
        _ => Class::Live,
    }
}

/// The flows of a target, by their numbers in its side table.
#[derive(Debug)]
pub(crate) struct Flows {
    by_number: Vec<KnownFlow>,
    /// Of the target's layout.
    leaves: Vec<Leaf>,
}

#[derive(Debug)]
struct KnownFlow {
    class: Class,
    /// Its place among the names of all flows of the target.
    order: u32,
    later: Later,
}

impl Flows {
    /// As a manifest has them.
    pub fn new(flows: &[side::Flow], layout: &Layout) -> Flows {
        let mut names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let known = flows.iter().map(|flow| KnownFlow {
            class: class(flow.class),
            order: names.partition_point(|known| *known < flow.name.as_str()) as u32,
            later: Later::of(&flow.silence, layout.leaves()),
        });
        Flows { by_number: known.collect(), leaves: layout.leaves().to_vec() }
    }

    /// What an event of a flow says something about, of all leaves that there are now.
    fn grown<'s>(&self, said: &'s [u8], flow: u32) -> Cow<'s, [u8]> {
        silence::grown(said, &self.by_number[flow as usize].later, &self.leaves)
    }

    fn layer<'s>(&self, layer: silence::StoredLayer<'s>) -> Layer<'s> {
        let silence::StoredLayer { said, kind, class, origin, position } = layer;
        Layer {
            kind,
            rank: Rank { class, flow: self.by_number[origin.flow as usize].order, position },
            origin,
            authored: (!said.is_empty()).then(|| self.grown(said, origin.flow)),
        }
    }

    /// A flow's class, and its place among the names.
    pub fn rank(&self, number: u32) -> (Class, u32) {
        let flow = &self.by_number[number as usize];
        (flow.class, flow.order)
    }

    /// The class of each.
    pub fn classes(&self) -> impl Iterator<Item = Class> {
        self.by_number.iter().map(|flow| flow.class)
    }
}

/// Puts the layers beneath an event where they are stored, behind what it says itself. Hardly any member has some.
pub(super) fn put_layers(member: &mut Member<'_>) {
    if let (Some(said), false) = (&member.authored, member.below.is_empty()) {
        member.authored = Some(Cow::Owned(silence::with_layers(said, &member.below)));
    }
}

/// The same the other way: a member as the side table takes it, after [`put_layers`].
pub(super) fn stored_form<'m>(key: &'m [u8], member: &'m Member<'m>) -> MemberRef<'m> {
    MemberRef {
        key,
        sequence: member.sequence,
        kind: match member.kind {
            Kind::Upsert => side::Kind::Upsert,
            Kind::Delete => side::Kind::Delete,
        },
        rank: side::Rank {
            class: class_number(member.rank.class),
            flow: member.origin.flow,
            position: member.rank.position,
        },
        batch_id: member.origin.batch,
        authored: member.authored.as_deref(),
        run_start: member.run_start,
        location: member.location.map(|location| side::Location { file: location.file, row: location.row }),
        last_seeded: member.cutover.last_seeded,
        first_live: member.cutover.first_live,
        values: &member.values,
    }
}
