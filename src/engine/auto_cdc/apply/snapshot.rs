//! The rows of a snapshot into a target, and who it lacks.

use std::borrow::Cow;

use pipeline::timeline::{Cutover, Folded, Kind, Member, Rank, Shows};

use super::{Application, SCAN_BYTES, TIES_SHOWN};
use crate::auto_cdc::events::Events;
use crate::auto_cdc::portion::on_threads;
use crate::auto_cdc::side::{self, KeyRange, MemberRef};
use crate::auto_cdc::stored::Stored;
use crate::error::Result;

/// The rows of a snapshot that have been applied, by their keys.
#[derive(Debug, Default)]
pub(crate) struct SnapshotKeys {
    pub rows: u64,
    /// Rows whose key another row has.
    pub duplicates: u64,
    /// A few of their keys, for people.
    pub duplicate_keys: Vec<String>,
    /// Keys of each portion, in order, that the side table can't tell the snapshot has: of a history all, else those
    /// that have a newer event.
    portions: Vec<Vec<Box<[u8]>>>,
}

impl SnapshotKeys {
    /// Whether an earlier portion had the key, as far as `portions` tell.
    fn has(&self, key: &[u8]) -> bool {
        self.portions.iter().any(|portion| portion.binary_search_by(|known| (**known).cmp(key)).is_ok())
    }

    /// Asks for keys in ascending order.
    fn cursor(&self) -> impl FnMut(&[u8]) -> bool {
        let mut rest: Vec<&[Box<[u8]>]> = self.portions.iter().map(Vec::as_slice).collect();
        move |key: &[u8]| {
            rest.iter_mut().any(|portion| {
                let passed = portion.partition_point(|known| **known < *key);
                *portion = &portion[passed..];
                portion.first().is_some_and(|known| **known == *key)
            })
        }
    }
}

/// What there is to say of some keys of a snapshot, by their numbers.
#[derive(Default)]
struct SnapshotNotes {
    /// With how many rows too many.
    duplicates: Vec<(usize, usize)>,
    /// See [`SnapshotKeys::portions`].
    untold: Vec<usize>,
}

impl Application<'_> {
    /// Applies a portion of a snapshot's rows. Of a history only what changed is an event. `seen` notes its keys.
    pub fn apply_snapshot(&mut self, events: &Events, seen: &mut SnapshotKeys) -> Result<()> {
        let (class, order) = self.flows.rank(self.flow);
        let origin = self.origin();
        let portion = self.portion(events)?;
        let folder = self.folder();
        let keys = portion.keys();
        let before = &*seen;
        let (folded, notes) = portion.fold(&self.flows, |key, group, stored, folded, notes: &mut SnapshotNotes| {
            let event = events.member(group[0], class, order, origin);
            let newest = stored.last();
            if self.shows == Shows::History || newest.is_some_and(|newest| newest.sequence >= event.sequence) {
                notes.untold.push(key);
            }
            let is_again = newest.is_some_and(|newest| newest.origin == origin) || before.has(keys[key]);
            if is_again || group.len() > 1 {
                notes.duplicates.push((key, group.len() + usize::from(is_again) - 1));
                return;
            }
            let is_unchanged = |newest: &Member<'_>| {
                newest.kind == Kind::Upsert && self.rows.codec.equal(&newest.values, &event.values)
            };
            if self.shows == Shows::History && newest.is_some_and(is_unchanged) {
                return;
            }
            folder.fold(key, stored, vec![event], folded, &mut |_, _| {});
        })?;
        for (key, count) in notes.iter().flat_map(|notes| &notes.duplicates) {
            seen.duplicates += *count as u64;
            if seen.duplicate_keys.len() < TIES_SHOWN {
                seen.duplicate_keys.push(self.key_words(keys[*key])?);
            }
        }
        let untold = notes.iter().flat_map(|notes| &notes.untold);
        seen.portions.push(untold.map(|key| keys[*key].to_vec().into_boxed_slice()).collect());
        seen.rows += events.len() as u64;
        let written = on_threads(folded, |part| self.write(&keys, part))?;
        self.take(written)
    }

    /// Deletes, at the snapshot's version, every key that shows and that the snapshot doesn't have. Returns how many,
    /// and of how many; `rows`: those of the target before the snapshot.
    pub fn delete_absent(&mut self, version: &[u8], seen: &SnapshotKeys, rows: u64) -> Result<(u64, u64)> {
        let before = self.applied.rows_removed;
        if self.shows == Shows::Latest {
            self.raise_floor(version.to_vec(), false)?;
            return Ok((self.applied.rows_removed - before, rows));
        }
        let (mut absent, mut keys) = (0, 0);
        let view = self.view.clone();
        let mut scan = view.scan(&KeyRange::all())?;
        let mut has = seen.cursor();
        let mut stored = Stored::default();
        while let Some(members) = scan.next()? {
            let is_own =
                |member: &&MemberRef<'_>| member.rank.flow == self.flow && member.batch_id == self.batch.batch as u64;
            let newest_before = members.iter().find(|member| !is_own(member));
            keys += u64::from(newest_before.is_some_and(|member| member.kind == side::Kind::Upsert));
            let newest = &members[..1];
            if newest[0].kind == side::Kind::Upsert && !has(newest[0].key) {
                stored.push(newest[0].key, newest);
                absent += 1;
            }
            if stored.byte_len() >= SCAN_BYTES {
                self.delete(&stored, version)?;
                stored = Stored::default();
            }
        }
        self.delete(&stored, version)?;
        Ok((absent, keys))
    }

    fn delete(&mut self, stored: &Stored, version: &[u8]) -> Result<()> {
        let (class, order) = self.flows.rank(self.flow);
        let delete = Member {
            sequence: version,
            kind: Kind::Delete,
            rank: Rank { class, flow: order, position: [0; 3] },
            origin: self.origin(),
            authored: None,
            below: Vec::new(),
            values: Cow::Borrowed(&[]),
            run_start: None,
            location: None,
            cutover: Cutover::default(),
        };
        let keys = stored.keys();
        let mut folded = Folded::default();
        let folder = self.folder();
        for key in 0..keys.len() {
            folder.fold(key, stored.members(key, &self.flows), vec![delete.clone()], &mut folded, &mut |_, _| {});
        }
        let written = self.write(&keys, folded)?;
        self.take(vec![written])
    }
}
