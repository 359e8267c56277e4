//! The whole timeline of a key at once, for whoever looks at it: all members → the rows that they make.

use super::{Cutover, Floor, Folded, Folder, Kind, Member, RowBytes, Shows};

/// A key's members and rows.
#[derive(Debug)]
pub struct Told<'a> {
    /// In order of sequence, their runs found anew from their values.
    pub members: Vec<Member<'a>>,
    /// In order of their starts.
    pub rows: Vec<ToldRow<'a>>,
    /// As the newest member has it.
    pub cutover: Cutover<'a>,
}

/// A row that members make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldRow<'a> {
    /// Indices into [`Told::members`]: the first of its run, and the one whose values it shows.
    pub first: usize,
    pub last: usize,
    pub start: &'a [u8],
    /// None: it is open.
    pub end: Option<&'a [u8]>,
}

impl<'a> Told<'a> {
    /// Tells a timeline of all its stored members, in order of sequence; what of an older event is not stored
    /// (SCD type 1) makes no row anyway.
    pub fn of(shows: Shows, rows: &dyn RowBytes, floor: Option<Floor<'_>>, members: Vec<Member<'a>>) -> Told<'a> {
        let cutover = members.last().map(|newest| newest.cutover).unwrap_or_default();
        // Their values are filled already.
        let events = members.into_iter().map(|member| Member {
            authored: None,
            run_start: None,
            location: None,
            cutover: Cutover::default(),
            ..member
        });
        let folder = Folder { shows, keeps_newest_only: false, rows, floor };
        let mut folded = Folded::default();
        folder.fold(0, Vec::new(), events.collect(), &mut folded, &mut |_, _| {});
        let members: Vec<Member<'a>> = folded.members.into_iter().map(|(_, member)| member).collect();
        let rows = folded.added.iter().map(|row| ToldRow {
            first: members.partition_point(|member| member.sequence < row.start),
            last: row.member,
            start: row.start,
            end: row.end,
        });
        Told { rows: rows.collect(), members, cutover }
    }

    /// The row that the member is part of.
    pub fn row_of(&self, member: usize) -> Option<usize> {
        self.rows.iter().position(|row| (row.first..=row.last).contains(&member))
    }

    /// True if a row starts later than the one before it ends.
    pub fn has_gaps(&self) -> bool {
        self.rows.windows(2).any(|pair| pair[0].end.is_some_and(|end| end < pair[1].start))
    }

    /// True if no row is open: its newest event is a delete, or was made void.
    pub fn is_deleted(&self) -> bool {
        self.rows.last().is_none_or(|row| row.end.is_some())
    }

    /// The first event of a live flow.
    pub fn first_live(&self) -> Option<&Member<'a>> {
        let sequence = self.cutover.first_live?;
        self.members.iter().find(|member| member.sequence == sequence)
    }

    /// The row that is in force right before a sequence.
    pub fn row_before(&self, sequence: &[u8]) -> Option<&ToldRow<'a>> {
        self.rows.iter().find(|row| row.start < sequence && row.end.is_none_or(|end| end >= sequence))
    }

    /// The values that SCD type 1 would show.
    pub fn latest(&self, floor: Option<Floor<'_>>) -> Option<&[u8]> {
        let newest = self.members.last()?;
        let is_void = floor.is_some_and(|floor| floor.covers(newest.sequence));
        (newest.kind == Kind::Upsert && !is_void).then_some(&newest.values[..])
    }
}
