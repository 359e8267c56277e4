//! Random batches, merges, moves and restarts against a sorted map.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;
use roaring::RoaringBitmap;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// Members: key, sequence, length of the values, a delete, in a new file.
    Batch(Vec<(u32, u16, usize, bool, bool)>),
    MergeIfDue,
    MergeAll,
    Reopen,
    /// A run that is never committed, and a table that is opened after that.
    Die(u32),
    /// Moves rows of a file, in pieces, without some of them.
    Compact {
        file: Index,
        piece: u32,
        delete_every: u32,
    },
    Lookup(Vec<(u32, u16)>),
    Scan(u32, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![4 => 0..60usize, 1 => 1_000..9_000usize];
    let members = (0..60u32, 0..12u16, length, any::<bool>(), any::<bool>());
    let step = prop_oneof![
        6 => prop::collection::vec(members, 1..60).prop_map(Step::Batch),
        2 => Just(Step::MergeIfDue),
        1 => Just(Step::MergeAll),
        1 => Just(Step::Reopen),
        1 => (0..60u32).prop_map(Step::Die),
        2 => (any::<Index>(), 1..9u32, 2..7u32)
            .prop_map(|(file, piece, delete_every)| Step::Compact { file, piece, delete_every }),
        3 => prop::collection::vec((0..70u32, 0..13u16), 0..70).prop_map(Step::Lookup),
        1 => (0..70u32, 0..70u32).prop_map(|(from, to)| Step::Scan(from, to)),
    ];
    prop::collection::vec(step, 1..30)
}

/// What the table should have.
struct Model {
    retention: Retention,
    members: BTreeMap<(Vec<u8>, Reverse<Vec<u8>>), Member>,
    /// Files of the target with their numbers of rows; files that were compacted away are gone.
    files: BTreeMap<u32, u32>,
    batch_id: u64,
}

impl Model {
    fn of_key(&self, key: &[u8], first_sequence: &[u8]) -> Vec<Member> {
        let all = self.members.range((key.to_vec(), Reverse(vec![u8::MAX; 3]))..);
        let mut found = Vec::new();
        for ((_, Reverse(sequence)), member) in all.take_while(|((other, _), _)| other == key) {
            found.push(member.clone());
            if self.retention == Retention::Newest || sequence.as_slice() < first_sequence {
                break;
            }
        }
        found
    }

    fn scan(&self, range: &KeyRange) -> Vec<Member> {
        let is_within = |key: &[u8]| {
            range.from.as_deref().is_none_or(|from| key >= from) && range.to.as_deref().is_none_or(|to| key < to)
        };
        let keys: BTreeSet<&Vec<u8>> = self.members.keys().map(|(key, _)| key).filter(|key| is_within(key)).collect();
        keys.into_iter().flat_map(|key| self.of_key(key, &[])).collect()
    }
}

fn run(retention: Retention, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let mut table = create(dir.path(), retention);
    let mut model = Model { retention, members: BTreeMap::new(), files: BTreeMap::new(), batch_id: 0 };
    for step in steps {
        take(step, dir.path(), &mut table, &mut model)?;
        prop_assert_eq!(scan_all(&table.view()).unwrap(), model.scan(&KeyRange::all()));
        prop_assert!(table.view().manifest().runs().len() <= 24);
    }
    // A reader sees the same, and everything has a path.
    let view = View::open(dir.path()).unwrap();
    let all = scan_all(&view).unwrap();
    for location in all.iter().filter_map(|member| member.location) {
        let path = format!("part-{}", location.file);
        prop_assert_eq!(view.file_path(location.file), Some(path.as_str()));
    }
    prop_assert_eq!(view.manifest().counters.get("batches").copied().unwrap_or(0), model.batch_id);
    Ok(())
}

/// Bytes that don't compress, so that runs have different sizes and merges take some of them.
fn noise(seed: u32, length: usize) -> Vec<u8> {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(seed), next).map(|state| (state >> 24) as u8).take(length).collect()
}

fn take(step: Step, dir: &Path, table: &mut SideTable, model: &mut Model) -> Result<(), TestCaseError> {
    match step {
        Step::Batch(events) => {
            model.batch_id += 1;
            let file = table.allocate_files(1);
            let mut rows = 0;
            let mut members = BTreeMap::new();
            for (number, mut sequence, length, is_delete, in_new_file) in events {
                if let (Retention::Newest, Some(newest)) = (model.retention, model.of_key(&key(number), &[]).first()) {
                    sequence = sequence.max(u16::from_be_bytes([newest.sequence[0], newest.sequence[1]]));
                }
                let mut member = member(number, sequence, model.batch_id, &noise(number, length));
                member.kind = if is_delete { Kind::Delete } else { Kind::Upsert };
                member.authored = is_delete.then(|| vec![5, 1]);
                let place = (member.key.clone(), Reverse(member.sequence.clone()));
                if in_new_file {
                    member.location = Some(Location { file, row: rows });
                    rows += 1;
                } else if let Some(old) = model.of_key(&place.0, &[]).iter().find(|old| old.sequence == place.1.0) {
                    // Written anew where it shows already.
                    member.location = old.location;
                    member.run_start = Some(vec![0; 2]);
                }
                members.insert(place, member);
            }
            model.files.insert(file, rows);
            let staged =
                stage(table, &members.values().cloned().collect::<Vec<_>>(), &[(file, format!("part-{file}"))]);
            let count = |manifest: &mut Manifest| {
                *manifest.counters.entry("batches".into()).or_default() += 1;
                Ok(())
            };
            table.commit(staged, count).unwrap();
            model.members.extend(members);
        }
        Step::MergeIfDue => {
            table.merge_if_due().unwrap();
        }
        Step::MergeAll => {
            table.merge_all().unwrap();
            prop_assert!(table.view().manifest().runs().len() <= 1);
            prop_assert!(!table.view().manifest().has_moves());
        }
        Step::Reopen => *table = SideTable::open(dir).unwrap(),
        Step::Die(number) => {
            std::mem::forget(stage(table, &[member(number, 5, 999, b"never")], &[]));
            *table = SideTable::open(dir).unwrap();
        }
        Step::Compact { file, piece, delete_every } => {
            let files: Vec<(u32, u32)> = model.files.iter().map(|(file, rows)| (*file, *rows)).collect();
            if files.is_empty() {
                return Ok(());
            }
            let (old, rows) = files[file.index(files.len())];
            let deleted = |row: u32| row % delete_every == 1;
            let pieces = (0..rows.max(1)).step_by(piece as usize).map(|first_row| {
                let file = table.allocate_files(1);
                let rows = first_row..(first_row + piece).min(rows);
                MovePiece {
                    first_row,
                    file,
                    path: format!("part-{file}"),
                    base_row: file % 3,
                    deleted: rows.filter(|row| deleted(*row)).collect::<RoaringBitmap>(),
                }
            });
            let pieces: Vec<MovePiece> = pieces.collect();
            // The slow way: where each row is now.
            let mut places = BTreeMap::new();
            let mut next_rows: BTreeMap<u32, u32> = pieces.iter().map(|piece| (piece.file, piece.base_row)).collect();
            for row in 0..rows {
                let of_row = pieces.iter().rfind(|piece| piece.first_row <= row).unwrap();
                if !deleted(row) {
                    let next = next_rows.get_mut(&of_row.file).unwrap();
                    places.insert(row, Location { file: of_row.file, row: *next });
                    *next += 1;
                }
            }
            for member in model.members.values_mut() {
                if let Some(location) = member.location.filter(|location| location.file == old) {
                    member.location = places.get(&location.row).copied();
                }
            }
            model.files.remove(&old);
            model.files.extend(next_rows);
            let staged = table.stage_moves(&[FileMove { file: old, pieces }]).unwrap();
            table.commit(staged, |_| Ok(())).unwrap();
        }
        Step::Lookup(wanted) => {
            let wanted: BTreeMap<u32, u16> = wanted.into_iter().collect();
            let wanted: BTreeMap<Vec<u8>, Vec<u8>> =
                wanted.into_iter().map(|(number, sequence)| (key(number), sequence.to_be_bytes().to_vec())).collect();
            let wanted: Vec<_> = wanted.into_iter().collect();
            let found = lookup(&table.view(), &wanted).unwrap();
            for ((key, first_sequence), found) in wanted.iter().zip(found) {
                prop_assert_eq!(found, model.of_key(key, first_sequence));
            }
        }
        Step::Scan(from, to) => {
            for range in [
                KeyRange { from: Some(key(from)), to: Some(key(to)) },
                KeyRange { from: None, to: Some(key(to)) },
                KeyRange::with_prefix(format!("key {from}").as_bytes()),
            ] {
                prop_assert_eq!(scan(&table.view(), &range).unwrap(), model.scan(&range), "{:?}", range);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_of_all_members_is_a_sorted_map(steps in steps()) {
        run(Retention::All, steps)?;
    }

    #[test]
    fn a_table_of_newest_members_is_a_map(steps in steps()) {
        run(Retention::Newest, steps)?;
    }
}

#[test]
fn a_key_with_members_in_many_blocks_is_read_down_to_the_predecessor() {
    let dir = tempfile::tempdir().unwrap();
    let table = create(dir.path(), Retention::All);
    // Even sequences in an older run, odd ones in a newer one, about 30 blocks each; neighbours before and behind.
    for (batch_id, odd) in [(1, 0), (2, 1)] {
        let of_key = (0..500).map(|i| member(5, i * 2 + odd, batch_id, &[i as u8; 480]));
        let members = sorted(of_key.chain([member(4, 1, batch_id, b""), member(50, 1, batch_id, b"")]).collect());
        table.commit(stage(&table, &members, &[]), |_| Ok(())).unwrap();
    }
    let sequences = |first: u16| {
        let found = lookup(&table.view(), &[(key(5), first.to_be_bytes().to_vec())]).unwrap().remove(0);
        found.iter().map(|member| u16::from_be_bytes([member.sequence[0], member.sequence[1]])).collect::<Vec<_>>()
    };
    assert_eq!(sequences(1_000), [999]);
    assert_eq!(sequences(999), [999, 998]);
    assert_eq!(sequences(501), (500..1_000).rev().collect::<Vec<_>>());
    assert_eq!(sequences(0), (0..1_000).rev().collect::<Vec<_>>());
    let all: Vec<(Vec<u8>, Vec<u8>)> = [4, 5, 50, 51].map(|number| (key(number), vec![0, 1])).to_vec();
    let found = lookup(&table.view(), &all).unwrap();
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1_000, 1, 0]);
}

#[test]
fn the_end_of_a_large_run_is_compressed_and_all_of_it_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let table = create(dir.path(), Retention::Newest);
    let members = sorted((0..6_000).map(|i| member(i, 1, 1, &[i as u8; 4_000])).collect());
    table.commit(stage(&table, &members, &[]), |_| Ok(())).unwrap();
    let bytes = table.view().manifest().runs()[0].bytes;
    assert!((16 << 20..17 << 20).contains(&bytes), "24 MB took {bytes}");
    // As it is in the file, not as the writer left it in the cache.
    let view = View::open(dir.path()).unwrap();
    assert_eq!(scan_all(&view).unwrap(), members);
    let all: Vec<_> = members.iter().map(|member| (member.key.clone(), Vec::new())).collect();
    assert_eq!(lookup(&view, &all).unwrap().concat(), members);
}

#[test]
fn what_is_asked_and_written_has_to_be_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let table = create(dir.path(), Retention::All);
    let (newer, older) = (member(1, 2, 1, b""), member(1, 1, 1, b""));
    for members in [[&older, &newer], [&newer, &newer]] {
        let error = table.write_run(members.map(Member::borrow), 2, || Ok(Vec::new())).unwrap_err();
        assert_eq!(error.code(), "internal");
    }
    let mut in_unknown_file = newer.clone();
    in_unknown_file.location = Some(Location { file: 7, row: 0 });
    assert_eq!(table.write_run([in_unknown_file.borrow()], 1, || Ok(Vec::new())).unwrap_err().code(), "internal");
    assert!(table.write_run([], 0, || Ok(Vec::new())).unwrap().is_none());
    // Nothing is left of what failed.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let twice = [(key(1), vec![]), (key(1), vec![])];
    assert_eq!(lookup(&table.view(), &twice).unwrap_err().code(), "internal");
}
