//! A member, an event as the side table keeps it, and its bytes in a run:
//!
//! ```text
//! varint length of the rest · varint length of the key · varint length of the sequence · key · sequence
//! flags: 1 delete, 2 location, 4 authored, 8 run start, 16 and 32 the class of the rank, 64 last seeded, 128 first live
//! [varint file · varint row] · varint flow · 3 varints position · varint batch id
//! [varint length · authored] · [… run start] · [… last seeded] · [… first live] · values to the end
//! ```
//!
//! Members are sorted by key, and within a key the newest (highest sequence) comes first.

use std::cmp::Ordering;

use crate::auto_cdc::encode::varint;

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Upsert,
    Delete,
}

/// Who wins among events of the same key and sequence. Not ordered by itself: flows compare by name, which the
/// manifest's table of flows has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rank {
    /// Snapshot 0, once 1, live 2, once snapshot 3.
    pub class: u8,
    /// The flow's number in the manifest.
    pub flow: u32,
    /// Place in the source: Delta version, file, row; or batch, file within the batch, line.
    pub position: [u64; 3],
}

/// A row of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The file's number, as [`super::SideTable::allocate_files`] gave it.
    pub file: u32,
    pub row: u32,
}

/// A member with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    pub key: Vec<u8>,
    pub sequence: Vec<u8>,
    pub kind: Kind,
    pub rank: Rank,
    pub batch_id: u64,
    /// What the event itself says something about, as flags of [`crate::auto_cdc::silence`]; None: everything.
    pub authored: Option<Vec<u8>>,
    /// Where its run of equal members starts; None: with itself.
    pub run_start: Option<Vec<u8>>,
    /// The target's row that shows it.
    pub location: Option<Location>,
    /// Of a key's newest member: the last sequence that a once flow gave the key, and the first one of a live flow.
    pub last_seeded: Option<Vec<u8>>,
    pub first_live: Option<Vec<u8>>,
    /// The row of its leaves; empty for deletes.
    pub values: Vec<u8>,
}

/// A member whose bytes lie elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemberRef<'a> {
    pub key: &'a [u8],
    pub sequence: &'a [u8],
    pub kind: Kind,
    pub rank: Rank,
    pub batch_id: u64,
    /// See [`Member::authored`].
    pub authored: Option<&'a [u8]>,
    /// See [`Member::run_start`].
    pub run_start: Option<&'a [u8]>,
    pub location: Option<Location>,
    /// See [`Member::last_seeded`].
    pub last_seeded: Option<&'a [u8]>,
    pub first_live: Option<&'a [u8]>,
    pub values: &'a [u8],
}

impl Member {
    /// The same without its own bytes.
    pub fn borrow(&self) -> MemberRef<'_> {
        MemberRef {
            key: &self.key,
            sequence: &self.sequence,
            kind: self.kind,
            rank: self.rank,
            batch_id: self.batch_id,
            authored: self.authored.as_deref(),
            run_start: self.run_start.as_deref(),
            location: self.location,
            last_seeded: self.last_seeded.as_deref(),
            first_live: self.first_live.as_deref(),
            values: &self.values,
        }
    }
}

impl<'a> MemberRef<'a> {
    /// A copy with its own bytes.
    pub fn to_member(&self) -> Member {
        Member {
            key: self.key.to_vec(),
            sequence: self.sequence.to_vec(),
            kind: self.kind,
            rank: self.rank,
            batch_id: self.batch_id,
            authored: self.authored.map(<[u8]>::to_vec),
            run_start: self.run_start.map(<[u8]>::to_vec),
            location: self.location,
            last_seeded: self.last_seeded.map(<[u8]>::to_vec),
            first_live: self.first_live.map(<[u8]>::to_vec),
            values: self.values.to_vec(),
        }
    }

    /// The first sequence of its run of equal members: the row's `__START_AT`.
    pub fn start(&self) -> &'a [u8] {
        self.run_start.unwrap_or(self.sequence)
    }

    /// Appends its bytes.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let flags = match self.kind {
            Kind::Upsert => 0,
            Kind::Delete => DELETE,
        } | if self.location.is_some() { LOCATION } else { 0 }
            | if self.authored.is_some() { AUTHORED } else { 0 }
            | if self.run_start.is_some() { RUN_START } else { 0 }
            | if self.last_seeded.is_some() { LAST_SEEDED } else { 0 }
            | if self.first_live.is_some() { FIRST_LIVE } else { 0 }
            | (self.rank.class & CLASS_MAX) << CLASS_SHIFT;
        let optional = [self.authored, self.run_start, self.last_seeded, self.first_live];
        let mut rest = varint::len(self.key.len() as u64)
            + varint::len(self.sequence.len() as u64)
            + self.key.len()
            + self.sequence.len()
            + 1
            + varint::len(u64::from(self.rank.flow))
            + self.rank.position.iter().map(|part| varint::len(*part)).sum::<usize>()
            + varint::len(self.batch_id)
            + self.values.len();
        if let Some(Location { file, row }) = self.location {
            rest += varint::len(u64::from(file)) + varint::len(u64::from(row));
        }
        for bytes in optional.into_iter().flatten() {
            rest += varint::len(bytes.len() as u64) + bytes.len();
        }

        varint::put(out, rest as u64);
        let start = out.len();
        varint::put(out, self.key.len() as u64);
        varint::put(out, self.sequence.len() as u64);
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.sequence);
        out.push(flags);
        if let Some(Location { file, row }) = self.location {
            varint::put(out, u64::from(file));
            varint::put(out, u64::from(row));
        }
        varint::put(out, u64::from(self.rank.flow));
        self.rank.position.iter().for_each(|part| varint::put(out, *part));
        varint::put(out, self.batch_id);
        for bytes in optional.into_iter().flatten() {
            varint::put(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        out.extend_from_slice(self.values);
        debug_assert_eq!(out.len() - start, rest);
    }

    /// The member that `head` found in `block`; None: malformed.
    pub(super) fn parse(block: &'a [u8], head: &Head) -> Option<MemberRef<'a>> {
        let mut body = block.get(head.body as usize..head.end as usize)?;
        let [flags] = *varint::take_exactly(&mut body, 1)? else { return None };
        let location = take_location(flags, &mut body)?;
        let flow = u32::try_from(varint::take(&mut body)?).ok()?;
        let position = [varint::take(&mut body)?, varint::take(&mut body)?, varint::take(&mut body)?];
        let batch_id = varint::take(&mut body)?;
        let authored = if flags & AUTHORED != 0 { Some(varint::take_bytes(&mut body)?) } else { None };
        let run_start = if flags & RUN_START != 0 { Some(varint::take_bytes(&mut body)?) } else { None };
        let last_seeded = if flags & LAST_SEEDED != 0 { Some(varint::take_bytes(&mut body)?) } else { None };
        let first_live = if flags & FIRST_LIVE != 0 { Some(varint::take_bytes(&mut body)?) } else { None };
        Some(MemberRef {
            key: head.key(block),
            sequence: head.sequence(block),
            kind: if flags & DELETE != 0 { Kind::Delete } else { Kind::Upsert },
            rank: Rank { class: flags >> CLASS_SHIFT & CLASS_MAX, flow, position },
            batch_id,
            authored,
            run_start,
            location,
            last_seeded,
            first_live,
            values: body,
        })
    }
}

const DELETE: u8 = 1;
const LOCATION: u8 = 2;
const AUTHORED: u8 = 4;
const RUN_START: u8 = 8;
const LAST_SEEDED: u8 = 64;
const FIRST_LIVE: u8 = 128;
const CLASS_SHIFT: u8 = 4;
/// The highest class that there is room for.
pub(super) const CLASS_MAX: u8 = 3;

fn take_location(flags: u8, body: &mut &[u8]) -> Option<Option<Location>> {
    if flags & LOCATION == 0 {
        return Some(None);
    }
    let file = u32::try_from(varint::take(body)?).ok()?;
    let row = u32::try_from(varint::take(body)?).ok()?;
    Some(Some(Location { file, row }))
}

/// Where the parts of a member are in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Where the member begins.
    pub start: u32,
    pub key: u32,
    pub sequence: u32,
    pub body: u32,
    /// Where the next one begins.
    pub end: u32,
}

impl Head {
    /// Finds the member that begins at `start`; None: malformed.
    #[inline]
    pub fn parse(block: &[u8], start: usize) -> Option<Head> {
        let mut bytes = block.get(start..)?;
        let length = usize::try_from(varint::take(&mut bytes)?).ok()?;
        let end = (block.len() - bytes.len()).checked_add(length)?;
        let key_len = usize::try_from(varint::take(&mut bytes)?).ok()?;
        let sequence_len = usize::try_from(varint::take(&mut bytes)?).ok()?;
        let key = block.len() - bytes.len();
        let sequence = key.checked_add(key_len)?;
        let body = sequence.checked_add(sequence_len)?;
        if body >= end || end > block.len() || u32::try_from(end).is_err() {
            return None;
        }
        Some(Head {
            start: start as u32,
            key: key as u32,
            sequence: sequence as u32,
            body: body as u32,
            end: end as u32,
        })
    }

    #[inline]
    pub fn key<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        &block[self.key as usize..self.sequence as usize]
    }

    #[inline]
    pub fn sequence<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        &block[self.sequence as usize..self.body as usize]
    }

    /// All of the member.
    #[inline]
    pub fn member<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        &block[self.start as usize..self.end as usize]
    }

    /// Its location alone; None: malformed.
    #[inline]
    pub fn location(&self, block: &[u8]) -> Option<Option<Location>> {
        let mut body = block.get(self.body as usize..self.end as usize)?;
        let [flags] = *varint::take_exactly(&mut body, 1)? else { return None };
        take_location(flags, &mut body)
    }
}

/// The order of members: by key, newest first.
#[inline]
pub(super) fn compare(a: (&[u8], &[u8]), b: (&[u8], &[u8])) -> Ordering {
    a.0.cmp(b.0).then_with(|| b.1.cmp(a.1))
}
