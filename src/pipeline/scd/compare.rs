//! The rows that a table has of a key against those that the key's events make.

use super::{FirstChange, Invariant};
use crate::auto_cdc::ScdType;
use crate::timeline::{Kind, RowBytes, Told};

/// From when to when a row holds, as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval<'a> {
    /// `__START_AT`; None: NULL, or SCD type 1.
    pub start: Option<&'a [u8]>,
    /// `__END_AT`; None: open.
    pub end: Option<&'a [u8]>,
}

/// A row of a key as the table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRow<'a> {
    pub interval: Interval<'a>,
    /// As bytes.
    pub values: &'a [u8],
}

/// An invariant that a key violates, and the rows that do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<'a> {
    pub invariant: Invariant,
    pub rows: Vec<Interval<'a>>,
}

/// Everything that is wrong with a key: `stored` are its rows in the table, in any order, `told` what its events make.
pub fn violations<'a>(
    scd_type: ScdType,
    told: &Told<'a>,
    latest: Option<&[u8]>,
    stored: &[StoredRow<'a>],
    rows: &dyn RowBytes,
) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    let mut report = |invariant, rows: Vec<Interval<'a>>| found.push(Violation { invariant, rows });
    let mut sorted: Vec<&StoredRow<'a>> = stored.iter().collect();
    sorted.sort_by_key(|row| (row.interval.start, row.interval.end.is_none(), row.interval.end));
    let open: Vec<&StoredRow<'a>> = sorted.iter().copied().filter(|row| row.interval.end.is_none()).collect();
    let all_open = || open.iter().map(|row| row.interval).collect();
    if scd_type == ScdType::Two {
        let mut before: Option<Interval<'a>> = None;
        for row in sorted.iter().map(|row| row.interval) {
            let starts_too_late = row.end.is_some_and(|end| row.start.is_some_and(|start| start >= end));
            if row.start.is_none() || starts_too_late {
                report(Invariant::StartBeforeEnd, vec![row]);
            }
            if let Some(before) = before.filter(|before| before.end.is_none_or(|end| row.start < Some(end))) {
                report(Invariant::NoOverlap, vec![before, row]);
            }
            let reaches_further =
                before.is_none_or(|before| before.end.is_some_and(|end| row.end.is_none_or(|of_row| of_row > end)));
            if reaches_further {
                before = Some(row);
            }
        }
    }
    if open.len() > 1 {
        report(Invariant::OneOpenRow, all_open());
    }

    let mut is_found = vec![false; told.rows.len()];
    for row in &sorted {
        let made = told.rows.iter().enumerate().position(|(at, made)| {
            let is_there =
                scd_type == ScdType::One || Interval { start: Some(made.start), end: made.end } == row.interval;
            !is_found[at] && is_there && rows.are_equal(&told.members[made.last].values, row.values)
        });
        match made {
            Some(at) => is_found[at] = true,
            None => report(Invariant::RowsComeFromEvents, vec![row.interval]),
        }
    }
    for (made, _) in told.rows.iter().zip(is_found).filter(|(_, is_found)| !is_found) {
        report(Invariant::EventsShowAsRows, vec![Interval { start: Some(made.start), end: made.end }]);
    }
    if scd_type == ScdType::Two {
        let is_latest = match (latest, open.as_slice()) {
            (None, []) => true,
            (Some(latest), [row]) => rows.are_equal(latest, row.values),
            _ => false,
        };
        if !is_latest {
            report(Invariant::OpenRowsAreLatest, all_open());
        }
    }
    found
}

/// What the first live event of a seeded key made of its rows in a table of SCD type 2; None unless it came after the
/// seed.
pub fn first_change(told: &Told<'_>, stored: &[Interval<'_>]) -> Option<FirstChange> {
    let (seeded, live) = (told.cutover.last_seeded?, told.cutover.first_live?);
    if live <= seeded {
        return None;
    }
    let count = |is: &dyn Fn(&Interval<'_>) -> bool| stored.iter().filter(|row| is(row)).count();
    let starting = count(&|row| row.start == Some(live));
    let ending = count(&|row| row.end == Some(live) && row.start < Some(live));
    let around = count(&|row| row.start < Some(live) && row.end.is_none_or(|end| end > live));
    let was_there = usize::from(told.row_before(live).is_some());
    let Some(event) = told.first_live() else { return Some(FirstChange::Wrong) };
    let (expected, change) = match event.kind {
        Kind::Delete => ((0, was_there, 0), FirstChange::Deletes),
        Kind::Upsert if event.run_start.is_some() => ((0, 0, 1), FirstChange::Repeats),
        Kind::Upsert => ((1, was_there, 0), FirstChange::OneVersion),
    };
    Some(if (starting, ending, around) == expected { change } else { FirstChange::Wrong })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::timeline::{Class, Cutover, Member, Origin, Rank, Shows};

    struct Plain;

    impl RowBytes for Plain {
        fn are_equal(&self, a: &[u8], b: &[u8]) -> bool {
            a == b
        }

        fn are_tracked_equal(&self, a: &[u8], b: &[u8]) -> bool {
            a == b
        }

        fn fill(&self, values: &[u8], _: &[u8], _: Option<&[u8]>) -> Vec<u8> {
            values.to_vec()
        }

        fn union(&self, _: &[u8], _: &[u8]) -> Vec<u8> {
            unreachable!("every event is the whole row")
        }
    }

    /// `3a`: an upsert of `a` at 3; `3-`: a delete. Capital: of the live flow.
    fn told(events: &'static [&'static str]) -> Told<'static> {
        let mut cutover = Cutover::default();
        for event in events {
            let (sequence, value) = event.as_bytes().split_at(1);
            match value[0].is_ascii_uppercase() {
                true => cutover.first_live = cutover.first_live.or(Some(sequence)),
                false => cutover.last_seeded = Some(sequence),
            }
        }
        let members = events.iter().map(|event| {
            let (sequence, value) = event.as_bytes().split_at(1);
            let kind = if matches!(value, b"-" | b"_") { Kind::Delete } else { Kind::Upsert };
            let class = if value[0].is_ascii_uppercase() { Class::Live } else { Class::Once };
            Member {
                sequence,
                kind,
                rank: Rank { class, flow: 0, position: [0; 3] },
                origin: Origin::default(),
                authored: None,
                below: Vec::new(),
                values: Cow::Owned(if kind == Kind::Delete { Vec::new() } else { value.to_ascii_lowercase() }),
                run_start: None,
                location: None,
                cutover,
            }
        });
        Told::of(Shows::History, &Plain, None, members.collect())
    }

    /// `2-5a`: `a` from 2 to 5; `5-a`: open.
    fn row(text: &'static str) -> StoredRow<'static> {
        let (span, values) = text.split_at(text.len() - 1);
        let (start, end) = span.split_once('-').expect("a span");
        let end = Some(end.as_bytes()).filter(|end| !end.is_empty());
        StoredRow { interval: Interval { start: Some(start.as_bytes()), end }, values: values.as_bytes() }
    }

    #[test]
    fn rows_that_events_make_violate_nothing_and_others_do() {
        use Invariant::*;
        const EVENTS: &[&str] = &["2a", "4a", "5b", "7-", "9c"];
        let cases: [(&str, &[&str], &[Invariant]); 8] = [
            ("as they are", &["2-5a", "5-7b", "9-c"], &[]),
            ("one is missing", &["2-5a", "9-c"], &[EventsShowAsRows]),
            ("other values", &["2-5x", "5-7b", "9-c"], &[RowsComeFromEvents, EventsShowAsRows]),
            ("one twice", &["2-5a", "2-5a", "5-7b", "9-c"], &[NoOverlap, RowsComeFromEvents]),
            (
                "two are open",
                &["2-5a", "5-b", "9-c"],
                &[NoOverlap, OneOpenRow, RowsComeFromEvents, EventsShowAsRows, OpenRowsAreLatest],
            ),
            (
                "ends before it starts",
                &["5-2a", "5-7b", "9-c"],
                &[StartBeforeEnd, RowsComeFromEvents, EventsShowAsRows],
            ),
            ("none is open", &["2-5a", "5-7b"], &[EventsShowAsRows, OpenRowsAreLatest]),
            (
                "the open one is another",
                &["2-5a", "5-7b", "9-a"],
                &[RowsComeFromEvents, EventsShowAsRows, OpenRowsAreLatest],
            ),
        ];
        let told = told(EVENTS);
        for (name, rows, expected) in cases {
            let stored: Vec<StoredRow> = rows.iter().map(|text| row(text)).collect();
            let found = violations(ScdType::Two, &told, told.latest(None), &stored, &Plain);
            let found: Vec<Invariant> = found.into_iter().map(|violation| violation.invariant).collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_long_row_overlaps_all_rows_within_it() {
        let told = told(&["1a"]);
        let stored = ["1-9a", "2-3a", "4-5a"].map(row);
        let found = violations(ScdType::Two, &told, None, &stored, &Plain);
        assert_eq!(found.iter().filter(|violation| violation.invariant == Invariant::NoOverlap).count(), 2);
    }

    #[test]
    fn the_first_live_change_makes_one_version_repeats_or_deletes() {
        let cases: [(&[&str], &[&str], Option<FirstChange>); 8] = [
            (&["2a", "5B"], &["2-5a", "5-b"], Some(FirstChange::OneVersion)),
            (&["2a", "5B", "7A"], &["2-5a", "5-7b", "7-a"], Some(FirstChange::OneVersion)),
            (&["2a", "5A"], &["2-a"], Some(FirstChange::Repeats)),
            (&["2a", "3-", "5A"], &["2-3a", "5-a"], Some(FirstChange::OneVersion)),
            (&["2a", "5B"], &["2-a", "5-b"], Some(FirstChange::Wrong)),
            (&["2a", "5B"], &["2-a"], Some(FirstChange::Wrong)),
            (&["2a"], &["2-a"], None),
            (&["5a", "2B"], &["5-a"], None),
        ];
        for (events, rows, expected) in cases {
            let mut events: Vec<&str> = events.to_vec();
            events.sort_unstable();
            let told = told(Vec::leak(events));
            let spans: Vec<_> = rows.iter().map(|text| row(text).interval).collect();
            assert_eq!(first_change(&told, &spans), expected, "{told:?}");
        }
    }
}
