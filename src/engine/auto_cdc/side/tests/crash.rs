//! Processes that die, and readers in other processes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

fn restore(files: &BTreeMap<String, Vec<u8>>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

fn batch(table: &SideTable, batch_id: u64) {
    let members = sorted((0..40).map(|number| member(number, batch_id as u16, batch_id, &[1; 50])).collect());
    let set = |manifest: &mut Manifest| {
        manifest.txns.insert("flow:1".into(), batch_id);
        Ok(())
    };
    table.commit(stage(table, &members, &[]), set).unwrap();
}

#[test]
fn a_death_at_any_step_leaves_the_old_table_or_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let table = create(dir.path(), Retention::All);
    for batch_id in 1..=3 {
        batch(&table, batch_id);
    }
    let before = files(dir.path());
    batch(&table, 4);
    let committed = files(dir.path());
    assert!(table.merge_if_due().unwrap());
    let merged = files(dir.path());
    batch(&table, 5);
    let next = files(dir.path());

    for (old, new) in [(&before, &committed), (&committed, &merged), (&merged, &next)] {
        let manifest = &new[MANIFEST];
        let created: Vec<_> = new.iter().filter(|(name, _)| !old.contains_key(*name)).collect();
        assert_eq!(created.len(), 1);
        let (run, run_bytes) = created[0];
        // A part of the run; all of it; a part of the manifest; all of it, not in force; in force, old runs still there.
        let mut states = vec![(false, old.clone()); 5];
        states[0].1.insert(run.clone(), run_bytes[..run_bytes.len() / 2].to_vec());
        states[1].1.insert(run.clone(), run_bytes.clone());
        states[2] = states[1].clone();
        states[2].1.insert(manifest::NEW_MANIFEST.into(), manifest[..manifest.len() / 2].to_vec());
        states[3] = states[1].clone();
        states[3].1.insert(manifest::NEW_MANIFEST.into(), manifest.clone());
        states[4] = (true, states[1].1.clone());
        states[4].1.insert(MANIFEST.into(), manifest.clone());
        for (number, (is_new, state)) in states.into_iter().enumerate() {
            let dir = restore(&state);
            let expected = restore(if is_new { new } else { old });
            let expected = View::open(expected.path()).unwrap();
            let table = SideTable::open(dir.path()).unwrap();
            assert_eq!(table.view().manifest(), expected.manifest(), "state {number}");
            let members = scan_all(&expected).unwrap();
            assert_eq!(scan_all(&table.view()).unwrap(), members);
            // Swept: only what the manifest names is there.
            let names: Vec<String> = files(dir.path()).into_keys().collect();
            let mut named: Vec<String> = expected.manifest().file_names().chain([MANIFEST.to_string()]).collect();
            named.sort();
            assert_eq!(names, named, "state {number}");
            // And work goes on.
            batch(&table, 9);
            assert_eq!(scan_all(&table.view()).unwrap().len(), members.len() + 40);
        }
    }
}

#[test]
fn a_commit_that_is_refused_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let table = create(dir.path(), Retention::All);
    batch(&table, 1);
    let before = files(dir.path());
    let staged = stage(&table, &[member(1, 9, 9, b"")], &[]);
    let refuse = |manifest: &mut Manifest| {
        manifest.txns.clear();
        Err(crate::error::Error::Internal("refused".into()))
    };
    assert!(table.commit(staged, refuse).is_err());
    assert_eq!(files(dir.path()), before);
    assert_eq!(table.view().manifest().txns["flow:1"], 1);
    batch(&table, 2);
}

#[test]
fn readers_see_whole_commits_while_a_writer_merges_and_deletes() {
    let dir = tempfile::tempdir().unwrap();
    let table = create(dir.path(), Retention::Newest);
    batch(&table, 1);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !is_done.load(Ordering::Relaxed) {
                let view = View::open(dir.path()).unwrap();
                let members = scan_all(&view).unwrap();
                let batch_id = view.manifest().txns["flow:1"];
                assert_eq!(members.len(), 40);
                assert!(members.iter().all(|member| member.batch_id == batch_id), "{batch_id}");
                assert!(batch_id >= seen);
                seen = batch_id;
            }
            seen
        });
        for batch_id in 2..=60 {
            batch(&table, batch_id);
            table.merge_if_due().unwrap();
        }
        // A view that was taken before stays as it is.
        let old = table.view();
        batch(&table, 61);
        table.merge_all().unwrap();
        batch(&table, 62);
        batch(&table, 63);
        assert!(scan_all(&old).unwrap().iter().all(|member| member.batch_id == 60));
        is_done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 1);
    });
}

#[test]
fn a_merge_and_commits_of_another_thread_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let table = create(dir.path(), Retention::All);
    std::thread::scope(|scope| {
        let merger = scope.spawn(|| {
            while table.view().manifest().txns.get("flow:1") != Some(&100) {
                table.merge_if_due().unwrap();
            }
        });
        for batch_id in 1..=100 {
            batch(&table, batch_id);
        }
        merger.join().unwrap();
    });
    let members = scan_all(&View::open(dir.path()).unwrap()).unwrap();
    assert_eq!(members.len(), 4_000);
    assert!(members.is_sorted_by(|a, b| member::compare((&a.key, &a.sequence), (&b.key, &b.sequence)).is_lt()));
}
