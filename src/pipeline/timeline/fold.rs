//! Stored members and new events of a key → the members to write and the rows to remove and add.

use std::borrow::Cow;
use std::ops::AddAssign;

use super::{Cutover, Floor, Kind, Location, Member, RowBytes, Shows};

/// What a batch changes; keys add to it one after another.
#[derive(Debug, Default)]
pub struct Folded<'a> {
    /// New and changed members with the index of their key, each key's in order of sequence. Those with a row in
    /// `added` get their location when that is written.
    pub members: Vec<(usize, Member<'a>)>,
    /// Rows that leave the target.
    pub removed: Vec<Location>,
    pub added: Vec<AddedRow<'a>>,
    pub counts: Counts,
}

impl<'a> Folded<'a> {
    /// Adds what the keys behind these come to.
    pub fn append(&mut self, other: Folded<'a>) {
        if self.members.is_empty() && self.removed.is_empty() && self.counts == Counts::default() {
            *self = other;
            return;
        }
        let before = self.members.len();
        self.members.extend(other.members);
        self.removed.extend(other.removed);
        self.added.extend(other.added.into_iter().map(|row| AddedRow { member: row.member + before, ..row }));
        self.counts += other.counts;
    }
}

/// A row that the target is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedRow<'a> {
    /// Index into [`Folded::members`]: its key and values.
    pub member: usize,
    /// `__START_AT` of SCD type 2.
    pub start: &'a [u8],
    /// `__END_AT` of SCD type 2; None: it is open.
    pub end: Option<&'a [u8]>,
}

/// What became of a batch's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Upserts and deletes that are part of their timeline now.
    pub upserts: u64,
    pub deletes: u64,
    /// Events that came after one of a later sequence was stored.
    pub late: u64,
    /// The same event again.
    pub duplicates: u64,
    /// Events of a key and sequence that another, different one has: one of them won, in what both are about.
    pub ties: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.upserts += other.upserts;
        self.deletes += other.deletes;
        self.late += other.late;
        self.duplicates += other.duplicates;
        self.ties += other.ties;
    }
}

/// Folds the events of a batch, key by key.
pub struct Folder<'r> {
    pub shows: Shows,
    /// Only a key's newest member is kept: enough for [`Shows::Latest`] where no nulls are ignored.
    pub keeps_newest_only: bool,
    pub rows: &'r dyn RowBytes,
    pub floor: Option<Floor<'r>>,
}

/// A member of the timeline at hand.
struct Entry<'a> {
    member: Member<'a>,
    /// It has to be written: new, or not as stored any more.
    is_changed: bool,
}

impl Folder<'_> {
    /// Applies a key's new events to what is stored of it.
    ///
    /// `stored` ascends and is complete from the newest member before the first of `events` on, or has the newest
    /// member only, if only that is kept. `events` are sorted by [`Member::compare`]. `on_tie` is told the loser and the
    /// winner of each tie.
    pub fn fold<'a>(
        &self,
        key: usize,
        stored: Vec<Member<'a>>,
        events: Vec<Member<'a>>,
        into: &mut Folded<'a>,
        on_tie: &mut dyn FnMut(&Member<'a>, &Member<'a>),
    ) {
        let shown = self.shown(&stored);
        let known = stored.last().map(|newest| newest.cutover).unwrap_or_default();
        let cutover = events.iter().fold(known, Cutover::with);
        let mut timeline = self.merge(stored, events, &mut into.counts, on_tie);
        if self.keeps_newest_only {
            timeline.drain(..timeline.len().saturating_sub(1));
        }
        if let Some(newest) = timeline.last_mut().filter(|newest| newest.member.cutover != cutover) {
            newest.member.cutover = cutover;
            newest.is_changed = true;
        }
        self.write(key, shown, self.derive(timeline), into);
    }

    /// The timeline is as it was, the floor is not: takes away what it covers now.
    pub fn refold<'a>(&self, key: usize, stored: Vec<Member<'a>>, into: &mut Folded<'a>) {
        let shown = self.shown(&stored);
        let timeline = stored.into_iter().map(|member| Entry { member, is_changed: false }).collect();
        self.write(key, shown, self.derive(timeline), into);
    }

    /// Both lists as one, the events of each sequence as one member.
    fn merge<'a>(
        &self,
        stored: Vec<Member<'a>>,
        events: Vec<Member<'a>>,
        counts: &mut Counts,
        on_tie: &mut dyn FnMut(&Member<'a>, &Member<'a>),
    ) -> Vec<Entry<'a>> {
        let newest = stored.last().map(|member| member.sequence);
        let mut timeline: Vec<Entry<'a>> = Vec::with_capacity(stored.len() + events.len());
        let mut stored = stored.into_iter().peekable();
        for event in events {
            let is_late = newest.is_some_and(|newest| event.sequence < newest);
            if is_late {
                counts.late += 1;
                if self.keeps_newest_only {
                    continue;
                }
            }
            while let Some(member) = stored.next_if(|member| member.sequence <= event.sequence) {
                timeline.push(Entry { member, is_changed: false });
            }
            match timeline.last_mut().filter(|last| last.member.sequence == event.sequence) {
                None => {
                    count(counts, event.kind);
                    timeline.push(Entry { member: event, is_changed: true });
                }
                Some(last) => {
                    let is_same = last.member.is_same_event(&event, self.rows);
                    if is_same {
                        counts.duplicates += 1;
                    } else {
                        counts.ties += 1;
                        let wins = last.member.compare_top(&event, self.rows).is_lt();
                        let (loser, winner) = if wins { (&last.member, &event) } else { (&event, &last.member) };
                        on_tie(loser, winner);
                    }
                    if let Some(member) = last.member.with(&event, self.rows) {
                        if !is_same {
                            count(counts, event.kind);
                        }
                        // The row of the member it replaces goes on record as shown before; see `shown`.
                        *last = Entry { member, is_changed: true };
                    }
                }
            }
        }
        timeline.extend(stored.map(|member| Entry { member, is_changed: false }));
        timeline
    }

    /// Fills what events are silent about and finds the runs, from left to right.
    fn derive<'a>(&self, mut timeline: Vec<Entry<'a>>) -> Vec<Entry<'a>> {
        for at in 0..timeline.len() {
            let (before, rest) = timeline.split_at_mut(at);
            let entry = &mut rest[0];
            // The predecessor is as stored: what lies before it isn't here, and didn't change.
            if at == 0 && !entry.is_changed {
                continue;
            }
            let before = before.last().map(|entry| &entry.member).filter(|member| self.is_alive(member));
            let member = &mut entry.member;
            if member.kind == Kind::Delete {
                continue;
            }
            if let Some(said) = member.said(self.rows) {
                let filled = self.rows.fill(&member.values, &said, before.map(|before| &before.values[..]));
                if filled != *member.values {
                    member.values = Cow::Owned(filled);
                    entry.is_changed = true;
                }
            }
            let run_start = match self.shows {
                Shows::Latest => None,
                Shows::History => before
                    .filter(|before| self.rows.are_tracked_equal(&before.values, &member.values))
                    .map(|before| before.start()),
            };
            if run_start != member.run_start {
                member.run_start = run_start;
                entry.is_changed = true;
            }
        }
        timeline
    }

    fn is_alive(&self, member: &Member<'_>) -> bool {
        member.kind == Kind::Upsert && !self.floor.is_some_and(|floor| floor.covers(member.sequence))
    }

    /// The rows that the target shows of stored members: exactly those with a location.
    fn shown<'a>(&self, stored: &[Member<'a>]) -> Vec<ShownRow<'a>> {
        let shown = stored.iter().enumerate().filter_map(|(at, member)| {
            let next = stored.get(at + 1).map(|next| next.sequence);
            Some(ShownRow {
                start: member.start(),
                end: next.filter(|_| self.shows == Shows::History),
                values: member.values.clone(),
                location: member.location?,
            })
        });
        shown.collect()
    }

    /// Compares the rows to show with those shown, and takes down what is different.
    fn write<'a>(&self, key: usize, shown: Vec<ShownRow<'a>>, timeline: Vec<Entry<'a>>, into: &mut Folded<'a>) {
        let mut shown = shown.into_iter().peekable();
        let ends: Vec<Option<Option<&'a [u8]>>> = (0..timeline.len()).map(|at| self.row_end(&timeline, at)).collect();
        for (Entry { mut member, mut is_changed }, end) in timeline.into_iter().zip(ends) {
            let mut location = None;
            if let Some(end) = end {
                while let Some(gone) = shown.next_if(|row| self.shows == Shows::History && row.start < member.start()) {
                    into.removed.push(gone.location);
                }
                let is_kept = |row: &ShownRow<'_>| {
                    // Byte by byte: rows that count as equal may look different (0.0 and -0.0).
                    (self.shows == Shows::Latest || row.start == member.start() && row.end == end)
                        && row.values == member.values
                };
                location = shown.next_if(is_kept).map(|row| row.location);
                if location.is_none() {
                    let (member, start) = (into.members.len(), member.start());
                    into.added.push(AddedRow { member, start, end });
                    is_changed = true;
                }
            }
            if member.location != location {
                member.location = location;
                is_changed = true;
            }
            if is_changed {
                into.members.push((key, member));
            }
        }
        into.removed.extend(shown.map(|row| row.location));
    }

    /// If the member shows as a row: where that ends.
    fn row_end<'a>(&self, timeline: &[Entry<'a>], at: usize) -> Option<Option<&'a [u8]>> {
        let member = &timeline[at].member;
        let next = timeline.get(at + 1).map(|entry| &entry.member);
        if !self.is_alive(member) {
            return None;
        }
        match (self.shows, next) {
            (_, None) => Some(None),
            (Shows::Latest, Some(_)) => None,
            // The next one continues the run, and shows it.
            (Shows::History, Some(next)) if next.kind == Kind::Upsert && next.run_start == Some(member.start()) => None,
            (Shows::History, Some(next)) => Some(Some(next.sequence)),
        }
    }
}

/// A row that the target shows before the batch.
struct ShownRow<'a> {
    start: &'a [u8],
    end: Option<&'a [u8]>,
    values: Cow<'a, [u8]>,
    location: Location,
}

fn count(counts: &mut Counts, kind: Kind) {
    match kind {
        Kind::Upsert => counts.upserts += 1,
        Kind::Delete => counts.deletes += 1,
    }
}
