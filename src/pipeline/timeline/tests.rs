//! The fold, batch by batch over a model of the store, against an oracle that takes all events at once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Leaves of a row: null or a small number.
type Row = Vec<Option<u8>>;

fn bytes(row: &Row) -> Vec<u8> {
    row.iter().flat_map(|leaf| [u8::from(leaf.is_some()), leaf.unwrap_or(0)]).collect()
}

fn row(bytes: &[u8]) -> Row {
    bytes.chunks(2).map(|leaf| (leaf[0] == 1).then_some(leaf[1])).collect()
}

/// One byte a leaf; whether the history of a leaf is tracked.
struct TestRows {
    tracked: Vec<bool>,
}

impl RowBytes for TestRows {
    fn are_equal(&self, a: &[u8], b: &[u8]) -> bool {
        a == b
    }

    fn are_tracked_equal(&self, a: &[u8], b: &[u8]) -> bool {
        self.tracked.iter().enumerate().filter(|(_, tracked)| **tracked).all(|(leaf, _)| row(a)[leaf] == row(b)[leaf])
    }

    fn fill(&self, values: &[u8], authored: &[u8], before: Option<&[u8]>) -> Vec<u8> {
        let before = before.map(row);
        let leaf = |(leaf, value): (usize, Option<u8>)| match authored[leaf] {
            1 => value,
            _ => before.as_ref().and_then(|before| before[leaf]),
        };
        bytes(&row(values).into_iter().enumerate().map(leaf).collect())
    }

    fn union(&self, a: &[u8], b: &[u8]) -> Vec<u8> {
        a.iter().zip(b).map(|(a, b)| a | b).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    sequence: u8,
    kind: Kind,
    class: Class,
    /// None: a deletion, or a truncation if `truncates`.
    row: Row,
    position: u64,
    truncates: bool,
}

#[derive(Debug, Clone)]
struct Feed {
    shows: Shows,
    tracked: Vec<bool>,
    /// Of these classes NULLs are ignored.
    ignores_nulls: Vec<Class>,
    batches: Vec<Vec<Event>>,
}

impl Feed {
    fn authored(&self, event: &Event) -> Option<Vec<u8>> {
        (self.is_partial(event)).then(|| event.row.iter().map(|leaf| u8::from(leaf.is_some())).collect())
    }

    fn is_partial(&self, event: &Event) -> bool {
        self.ignores_nulls.contains(&event.class) && event.kind == Kind::Upsert
    }

    fn precedence(event: &Event) -> (bool, bool, Class, u64) {
        (!event.class.is_snapshot(), event.kind == Kind::Delete, event.class, event.position)
    }

    /// Sort, lay the events of a sequence over each other, fill, group, close: (row, start, end).
    fn oracle(&self) -> Vec<(Row, u8, Option<u8>)> {
        let events: Vec<&Event> = self.batches.iter().flatten().collect();
        let floor = events.iter().filter(|event| event.truncates).map(|event| event.sequence).max();
        let mut by_sequence: BTreeMap<u8, Vec<&Event>> = BTreeMap::new();
        for event in events.into_iter().filter(|event| !event.truncates) {
            by_sequence.entry(event.sequence).or_default().push(event);
        }
        let mut rows: Vec<(Row, u8, Option<u8>)> = Vec::new();
        let mut is_open = false;
        for (sequence, mut events) in by_sequence {
            events.sort_by_key(|event| Feed::precedence(event));
            let winner = events.last().expect("there is one");
            let is_dead = winner.kind == Kind::Delete || floor.is_some_and(|floor| sequence <= floor);
            let before = rows.last().filter(|_| is_open).map(|row| row.0.clone());
            let mut values = before.unwrap_or_else(|| vec![None; 3]);
            for event in &events {
                let over =
                    |(new, old): (&Option<u8>, &Option<u8>)| if self.is_partial(event) { new.or(*old) } else { *new };
                values = event.row.iter().zip(&values).map(over).collect();
            }
            let continues = is_open && !is_dead && {
                let before = &rows.last().expect("a row is open").0;
                (0..values.len()).all(|leaf| !self.tracked[leaf] || before[leaf] == values[leaf])
            };
            if continues {
                rows.last_mut().expect("a row is open").0 = values;
                continue;
            }
            if is_open {
                rows.last_mut().expect("a row is open").2 = Some(sequence);
            }
            if !is_dead {
                rows.push((values, sequence, None));
            }
            is_open = !is_dead;
        }
        if self.shows == Shows::Latest {
            return rows.into_iter().filter(|row| row.2.is_none()).map(|row| (row.0, 0, None)).collect();
        }
        rows
    }

    /// Batch by batch, with only what a store would hand out.
    fn folded(&self) -> Vec<(Row, u8, Option<u8>)> {
        let mut keeps_all = self.shows == Shows::History;
        let mut store: BTreeMap<u8, Member<'static>> = BTreeMap::new();
        let mut target: BTreeMap<Location, (Row, u8, Option<u8>)> = BTreeMap::new();
        let mut floor: Option<u8> = None;
        let rows = TestRows { tracked: self.tracked.clone() };
        for (batch, events) in self.batches.iter().enumerate() {
            // From the first batch of a flow that needs it on; what was dropped before doesn't matter.
            keeps_all |= events.iter().any(|event| self.ignores_nulls.contains(&event.class));
            let truncation = events.iter().filter(|event| event.truncates).map(|event| event.sequence).max();
            let rises = truncation > floor;
            floor = floor.max(truncation);
            let mut new: Vec<Member<'static>> =
                events.iter().filter(|event| !event.truncates).map(|event| self.member(event, batch)).collect();
            new.sort_by(Member::compare);
            let first = new.first().map(|event| event.sequence[0]);
            let from = match first {
                Some(first) if !rises => store.range(..first).next_back().map_or(0, |(sequence, _)| *sequence),
                _ => 0,
            };
            let mut stored: Vec<Member<'static>> = store.range(from..).map(|(_, member)| member.clone()).collect();
            if !keeps_all {
                stored.drain(..stored.len().saturating_sub(1));
            }
            let floor_sequence = floor.map(|floor| [floor]);
            let folder = Folder {
                shows: self.shows,
                keeps_newest_only: !keeps_all,
                rows: &rows,
                floor: floor_sequence.as_ref().map(|sequence| Floor { sequence, is_inclusive: true }),
            };
            let mut folded = Folded::default();
            match new.is_empty() {
                true => folder.refold(7, stored, &mut folded),
                false => folder.fold(7, stored, new, &mut folded, &mut |_, _| {}),
            }
            for gone in &folded.removed {
                assert!(target.remove(gone).is_some(), "a removed row was there");
            }
            for (at, added) in folded.added.iter().enumerate() {
                let location = Location { file: batch as u32, row: at as u32 };
                let (key, member) = &mut folded.members[added.member];
                assert_eq!(*key, 7);
                member.location = Some(location);
                let (start, end) = match self.shows {
                    Shows::Latest => (0, None),
                    Shows::History => (added.start[0], added.end.map(|end| end[0])),
                };
                target.insert(location, (row(&member.values), start, end));
            }
            for (_, member) in folded.members {
                store.insert(member.sequence[0], member);
            }
            if !keeps_all {
                while store.len() > 1 {
                    store.pop_first();
                }
            }
            let seen: Vec<&Event> = self.batches[..=batch].iter().flatten().filter(|event| !event.truncates).collect();
            let sequences =
                |wanted: fn(&Event) -> bool| seen.iter().filter(move |event| wanted(event)).map(|event| event.sequence);
            let is_seed = |event: &Event| match event.class {
                Class::Once => true,
                Class::OnceSnapshot => event.kind == Kind::Upsert,
                Class::Snapshot | Class::Live => false,
            };
            if let Some(newest) = store.values().next_back() {
                assert_eq!(newest.cutover.last_seeded.map(|last| last[0]), sequences(is_seed).max());
                assert_eq!(
                    newest.cutover.first_live.map(|first| first[0]),
                    sequences(|event| event.class == Class::Live).min()
                );
            }
            let located = store.values().filter_map(|member| member.location).count();
            assert_eq!(located, target.len(), "every row has its member");
        }
        let mut rows: Vec<_> = target.into_values().collect();
        rows.sort_by_key(|row| row.1);
        rows
    }

    fn member(&self, event: &Event, batch: usize) -> Member<'static> {
        Member {
            sequence: Box::leak(Box::new([event.sequence])),
            kind: event.kind,
            rank: Rank { class: event.class, flow: 0, position: [0, 0, event.position] },
            origin: Origin { flow: event.class as u32, batch: batch as u64 },
            authored: self.authored(event).map(Cow::Owned),
            below: Vec::new(),
            values: match event.kind {
                Kind::Upsert => Cow::Owned(bytes(&event.row)),
                Kind::Delete => Cow::Borrowed(&[]),
            },
            run_start: None,
            location: None,
            cutover: Cutover::default(),
        }
    }

    fn shuffled(&self, order: &[usize], cuts: &[usize]) -> Feed {
        let events: Vec<Event> = self.batches.iter().flatten().cloned().collect();
        let mut batches = vec![Vec::new()];
        for (at, from) in order.iter().enumerate() {
            if cuts.contains(&at) {
                batches.push(Vec::new());
            }
            batches.last_mut().expect("there is one").push(events[*from].clone());
        }
        Feed { batches, ..self.clone() }
    }
}

const CLASSES: [Class; 4] = [Class::Snapshot, Class::OnceSnapshot, Class::Once, Class::Live];

fn event(position: u64, sequences: u8, truncates: bool) -> impl Strategy<Value = Event> {
    let kind = prop_oneof![4 => Just(Kind::Upsert), 1 => Just(Kind::Delete)];
    let class = prop::sample::select(&CLASSES[..]);
    let row = prop::collection::vec(prop::option::weighted(0.7, 0..2_u8), 3);
    (1..sequences, kind, class, row, prop::bool::weighted(if truncates { 0.1 } else { 0.0 })).prop_map(
        move |(sequence, kind, class, row, truncates)| {
            let row = if kind == Kind::Delete || truncates { vec![None; 3] } else { row };
            Event { sequence, kind, class, row, position, truncates }
        },
    )
}

fn feed() -> impl Strategy<Value = Feed> {
    let shows = prop_oneof![Just(Shows::Latest), Just(Shows::History)];
    let classes = prop::sample::subsequence(CLASSES.to_vec(), 0..=4);
    let ignores_nulls = prop_oneof![Just(Vec::new()), Just(CLASSES.to_vec()), classes];
    // Few sequences for many ties, or many for few.
    (shows, prop::collection::vec(any::<bool>(), 3), (ignores_nulls, prop_oneof![Just(3_u8), Just(12)]), 1..14_usize)
        .prop_flat_map(|(shows, tracked, (ignores_nulls, sequences), count)| {
            let events: Vec<_> = (0..count).map(|at| event(at as u64, sequences, shows == Shows::Latest)).collect();
            let cuts = prop::collection::vec(0..count, 0..4);
            (events, cuts).prop_map(move |(events, cuts)| {
                let order: Vec<usize> = (0..events.len()).collect();
                let (tracked, ignores_nulls) = (tracked.clone(), ignores_nulls.clone());
                let feed = Feed { shows, tracked, ignores_nulls, batches: vec![events] };
                feed.shuffled(&order, &cuts)
            })
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn any_batching_gives_what_all_events_at_once_give(feed in feed()) {
        prop_assert_eq!(feed.folded(), feed.oracle());
    }

    #[test]
    fn the_order_of_arrival_does_not_matter(feed in feed(), seed in any::<u64>(), cut in 0..14_usize) {
        let mut order: Vec<usize> = (0..feed.batches.iter().flatten().count()).collect();
        order.sort_by_key(|at| (*at as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
        let shuffled = feed.shuffled(&order, &[cut, cut / 2]);
        prop_assert_eq!(shuffled.folded(), feed.oracle());
    }

    #[test]
    fn events_that_come_again_change_nothing(feed in feed()) {
        let mut again = feed.clone();
        again.batches.extend(feed.batches.iter().rev().cloned());
        prop_assert_eq!(again.folded(), feed.oracle());
    }

    #[test]
    fn open_rows_of_type_2_are_the_rows_of_type_1(feed in feed()) {
        let history = Feed { shows: Shows::History, ..without_truncations(&feed) };
        let latest = Feed { shows: Shows::Latest, ..without_truncations(&feed) };
        let open: Vec<Row> = history.folded().into_iter().filter(|row| row.2.is_none()).map(|row| row.0).collect();
        let rows: Vec<Row> = latest.folded().into_iter().map(|row| row.0).collect();
        prop_assert_eq!(open, rows);
    }

    #[test]
    fn rows_of_one_key_never_overlap_and_are_never_empty(feed in feed()) {
        let history = Feed { shows: Shows::History, ..without_truncations(&feed) };
        let rows = history.folded();
        for pair in rows.windows(2) {
            prop_assert!(pair[0].2.is_some_and(|end| end <= pair[1].1));
        }
        for (_, start, end) in rows {
            prop_assert!(end.is_none_or(|end| start < end));
        }
    }
}

fn without_truncations(feed: &Feed) -> Feed {
    let keep = |batch: &Vec<Event>| batch.iter().filter(|event| !event.truncates).cloned().collect();
    Feed { batches: feed.batches.iter().map(keep).collect(), ..feed.clone() }
}

/// A snapshot's rows and absences give way to change events of the same sequence.
#[test]
fn a_change_event_beats_a_snapshot_of_its_sequence() {
    let rows = TestRows { tracked: vec![true] };
    let member = |class, kind, value: u8| Member {
        sequence: &[5],
        kind,
        rank: Rank { class, flow: 9, position: [0, 0, 0] },
        origin: Origin::default(),
        authored: None,
        below: Vec::new(),
        values: if kind == Kind::Upsert { Cow::Owned(bytes(&vec![Some(value)])) } else { Cow::Borrowed(&[][..]) },
        run_start: None,
        location: None,
        cutover: Cutover::default(),
    };
    let beside = |snapshot| [member(Class::Live, Kind::Upsert, 1), member(snapshot, Kind::Upsert, 2)];
    let mut pair = beside(Class::OnceSnapshot);
    for snapshot in [Class::Snapshot, Class::OnceSnapshot] {
        pair = beside(snapshot);
        pair.sort_by(Member::compare);
        assert_eq!(row(&pair[1].values), vec![Some(1)]);
    }

    let folder = Folder {
        shows: Shows::Latest,
        keeps_newest_only: true,
        rows: &rows,
        floor: Some(Floor { sequence: &[5], is_inclusive: false }),
    };
    let mut folded = Folded::default();
    folder.fold(0, Vec::new(), pair.to_vec(), &mut folded, &mut |_, _| {});
    assert_eq!(folded.added.len(), 1);
    assert_eq!(folded.counts.ties, 1);
}

#[test]
fn a_snapshot_seeds_the_keys_that_it_has_and_those_with_live_events_by_its_version() {
    // Of a key: the newest version that had it, its first live event, the newest version of all; the last seeded.
    let cases = [
        (None, None, Some(5), None),
        (Some(5), None, Some(5), Some(5)),
        (Some(3), None, Some(5), Some(3)),
        (None, Some(4), Some(5), Some(5)),
        (None, Some(5), Some(5), Some(5)),
        (None, Some(6), Some(5), None),
        (Some(3), Some(4), Some(5), Some(5)),
        (Some(3), Some(6), Some(5), Some(3)),
        (Some(3), Some(2), None, Some(3)),
    ];
    for (last_seeded, first_live, version, expected) in cases {
        let sequence = |of: Option<u8>| of.map(|of| [of]);
        let (seeded, live, state) = (sequence(last_seeded), sequence(first_live), sequence(version));
        let cutover =
            Cutover { last_seeded: seeded.as_ref().map(|of| &of[..]), first_live: live.as_ref().map(|of| &of[..]) };
        let found = cutover.with_state(state.as_ref().map(|of| &of[..])).last_seeded;
        assert_eq!(found.map(|of| of[0]), expected, "{last_seeded:?} {first_live:?} {version:?}");
    }
}
