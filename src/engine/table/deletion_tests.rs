//! Tests of deleting rows in place: what is deleted is gone for us and for delta-rs, in every version, through
//! crashes, compactions and vacuums.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use tempfile::TempDir;

use super::tests::{add_rows, append, create, id_name, ids, pairs, query, rows, table_ids, write};
use super::*;

fn delete(path: &str, rows: impl IntoIterator<Item = u64>) -> Commit {
    let deletes = RowDeletes::from([(path.to_owned(), rows.into_iter().collect())]);
    Commit { deletes, operation: "MERGE".into(), ..Commit::default() }
}

/// Paths by the time they were added.
fn paths(table: &Table) -> Vec<String> {
    let mut files: Vec<_> = table.state.files.values().collect();
    files.sort_by_key(|add| (add.modification_time, add.path.clone()));
    files.into_iter().map(|add| add.path.clone()).collect()
}

async fn theirs(table: &Table) -> Vec<i64> {
    let mut theirs = table.delta_rs().expect("builds");
    theirs.load().await.expect("delta-rs loads it");
    ids(theirs.table_provider().await.expect("provider")).await
}

#[tokio::test]
async fn deleted_rows_are_gone_for_everyone() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..10).await;
    add_rows(&mut table, 10..13).await;
    let [first, second] = paths(&table).try_into().expect("two files");
    table.commit(delete(&first, [0, 3, 9])).await.expect("deleted");
    assert_eq!(table_ids(&table).await, [1, 2, 4, 5, 6, 7, 8, 10, 11, 12]);
    assert_eq!((table.row_count(), table.file_count()), (Some(10), 2));

    let adds = write(&table, &rows(20..22));
    let deletes = RowDeletes::from([(first.clone(), RowSet::from_iter([4])), (second.clone(), (0..3).collect())]);
    table.commit(Commit { deletes, ..append(adds, 2) }).await.expect("rows added and deleted");
    let expected = [1, 2, 5, 6, 7, 8, 20, 21];
    assert_eq!(table_ids(&table).await, expected);
    assert_eq!(theirs(&table).await, expected);
    assert!(!paths(&table).contains(&second), "a file without rows left the table");
    assert_eq!(ids(table.provider(Some(3)).await.expect("older")).await, [1, 2, 4, 5, 6, 7, 8, 10, 11, 12]);
    assert_eq!(ids(table.provider(Some(2)).await.expect("older")).await.len(), 13);

    let again = Table::open(dir.path()).expect("opens").expect("there");
    assert_eq!(table_ids(&again).await, expected);
    assert_eq!(again.properties().get("delta.enableDeletionVectors").map(String::as_str), Some("true"));
    let add = &again.state.files[&first];
    assert_eq!((add.rows(), add.live_rows()), (Some(10), Some(6)));
    assert!(add.stats.as_deref().expect("kept").ends_with(r#","tightBounds":false}"#));
    assert!(again.missing_files().is_empty());
    let count = query(again.provider(None).await.expect("provider"), "SELECT count(*) FROM t WHERE id < 7").await;
    assert_eq!(count[0].column(0).as_primitive::<Int64Type>().value(0), 4);
    let count = query(again.provider(None).await.expect("provider"), "SELECT count(*), count(name) FROM t").await;
    let count = |column: usize| count[0].column(column).as_primitive::<Int64Type>().value(0);
    assert_eq!((count(0), count(1)), (8, 8), "ids 3, 10 and 17 have no name");
}

#[tokio::test]
async fn what_cannot_be_deleted_is_refused_before_anything_is_written() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..10).await;
    let path = paths(&table).remove(0);
    table.commit(delete(&path, [3])).await.expect("deleted");
    let files = || std::fs::read_dir(dir.path()).expect("listed").count();
    let before = files();
    for (rows, told) in [(vec![2, 3], "row 3 of"), (vec![10], "row 10 of")] {
        let adds = write(&table, &super::tests::rows(50..51));
        let error = table.commit(Commit { adds, ..delete(&path, rows) }).await.expect_err("refused");
        assert!(error.code() == "internal" && error.to_string().contains(told), "{error}: {}", error.code());
    }
    assert_eq!(table.commit(delete("part-gone.parquet", [0])).await.expect_err("gone").code(), CONFLICT);
    assert_eq!((files(), table.version()), (before, 2));

    let mut other = Table::open(dir.path()).expect("opens").expect("there");
    other.commit(delete(&path, [5])).await.expect("deleted by another program");
    let before = files();
    assert_eq!(table.commit(delete(&path, [6])).await.expect_err("planned on an older vector").code(), CONFLICT);
    assert_eq!(files(), before);
    table.commit(delete(&path, [6])).await.expect("planned again");
    assert_eq!(table_ids(&table).await, [0, 1, 2, 4, 7, 8, 9]);
}

#[tokio::test]
async fn a_prepared_commit_is_made_once_whatever_happens() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..10).await;
    let path = paths(&table).remove(0);
    let prepare = |table: &Table, batch: i64| {
        let adds = write(table, &rows(20 + batch..21 + batch));
        let commit = Commit { txns: vec![("cdc".into(), batch)], adds, ..delete(&path, [batch as u64]) };
        table.prepare(commit).expect("prepared")
    };
    // The process dies before the commit, and after it.
    let stored = serde_json::to_string(&prepare(&table, 0)).expect("JSON");
    for (opens, expected) in
        [(true, Committed::Now(2)), (true, Committed::AlreadyThere(2)), (false, Committed::AlreadyThere(2))]
    {
        if opens {
            table = Table::open(dir.path()).expect("opens").expect("there");
        }
        let prepared: PreparedCommit = serde_json::from_str(&stored).expect("JSON");
        assert_eq!(prepared.txns(), [("cdc".to_owned(), 0)]);
        assert_eq!(table.commit_prepared(&prepared).await.expect("made or there"), expected);
        assert_eq!(table_ids(&table).await, [1, 2, 3, 4, 5, 6, 7, 8, 9, 20]);
    }
    assert_eq!(theirs(&table).await, [1, 2, 3, 4, 5, 6, 7, 8, 9, 20]);

    // One without a batch id is known by its files; an append of another program is no matter.
    let prepared = prepare(&table, 1);
    let prepared = PreparedCommit { txns: Vec::new(), ..prepared };
    let mut other = Table::open(dir.path()).expect("opens").expect("there");
    add_rows(&mut other, 40..41).await;
    assert_eq!(table.commit_prepared(&prepared).await.expect("made"), Committed::Now(4));
    add_rows(&mut table, 41..42).await;
    assert_eq!(table.commit_prepared(&prepared).await.expect("there"), Committed::AlreadyThere(4));
    prepared.discard(&table).expect("nothing to discard");
    assert_eq!(table_ids(&table).await, [2, 3, 4, 5, 6, 7, 8, 9, 20, 21, 40, 41]);
    assert!(table.missing_files().is_empty());

    // What is in the way is a conflict, and what is discarded leaves nothing.
    let prepared = prepare(&table, 5);
    other.commit(delete(&path, [7])).await.expect_err("behind");
    other.refresh().expect("refreshed");
    other.commit(delete(&path, [7])).await.expect("deleted");
    assert_eq!(table.commit_prepared(&prepared).await.expect_err("in the way").code(), CONFLICT);
    let files = || std::fs::read_dir(dir.path()).expect("listed").count();
    let before = files();
    prepared.discard(&table).expect("discarded");
    assert_eq!(files(), before - 2);

    let prepared = prepare(&table, 6);
    std::fs::remove_dir_all(dir.path()).expect("dropped");
    let mut anew = create(dir.path(), id_name(), &[]);
    assert_eq!(anew.commit_prepared(&prepared).await.expect_err("another table").code(), CONFLICT);
}

#[tokio::test]
async fn a_vacuum_leaves_the_vectors_that_are_needed() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..10).await;
    let path = paths(&table).remove(0);
    let vectors = || {
        let names = std::fs::read_dir(dir.path()).expect("listed").map(|entry| entry.expect("entry").file_name());
        names.filter(|name| deletion_vector::is_vector_file(&name.to_string_lossy())).count()
    };
    for row in 0..3 {
        table.commit(delete(&path, [row])).await.expect("deleted");
    }
    let prepared = table.prepare(delete(&path, [3])).expect("prepared");
    table.checkpoint_log().await.expect("checkpoint");
    assert_eq!(vectors(), 4);
    std::thread::sleep(Duration::from_millis(5));
    maintenance::clean_log(dir.path(), Duration::ZERO).expect("cleaned");
    let mut table = Table::open(dir.path()).expect("opens from the checkpoint").expect("there");
    assert_eq!(table_ids(&table).await.len(), 7);
    assert_eq!(theirs(&table).await.len(), 7);
    assert_eq!(table.vacuum(Duration::from_secs(3600)).expect("vacuum").files, 0);
    assert_eq!(table.vacuum(Duration::ZERO).expect("vacuum").files, 2, "not the one in force, nor the prepared one");
    assert_eq!(vectors(), 2);
    table.commit_prepared(&prepared).await.expect("made");
    assert_eq!(table_ids(&table).await.len(), 6);

    let vector = table.state.files[&path].deletion_vector.clone().expect("a vector");
    std::fs::remove_file(vector.file(dir.path()).expect("a file")).expect("removed");
    assert_eq!(table.missing_files().len(), 1);
    let table = Table::open(dir.path()).expect("opens").expect("there");
    assert_eq!(table.provider(None).await.expect_err("unreadable").code(), "deletion-vector-unreadable");
}

#[tokio::test]
async fn a_promoted_generation_keeps_its_vectors() {
    let dir = TempDir::new().expect("folder");
    let target = dir.path().join("target");
    let shadow = |name: &str| {
        let folder = target.join(name);
        async move {
            let spec = TableSpec { schema: Some(id_name()), deletion_vectors: true, ..TableSpec::default() };
            let mut shadow = Table::create(folder, spec).expect("created");
            add_rows(&mut shadow, 0..5).await;
            let path = paths(&shadow).remove(0);
            shadow.commit(delete(&path, [1])).await.expect("deleted");
            shadow
        }
    };
    let mut table = Table::create_from(&target, "t", shadow("gen-1").await, &[], "FULL REFRESH").expect("created");
    assert_eq!(table_ids(&table).await, [0, 2, 3, 4]);
    table.promote(shadow("gen-2").await, Vec::new(), "FULL REFRESH").await.expect("promoted");
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(table.vacuum(Duration::ZERO).expect("vacuum").files, 2);
    let mut table = Table::open(&target).expect("opens").expect("there");
    assert_eq!(theirs(&table).await, [0, 2, 3, 4]);
    let path = paths(&table).remove(0);
    table.commit(delete(&path, [4])).await.expect("deleted");
    assert_eq!(table_ids(&table).await, [0, 2, 3]);
    assert_eq!(theirs(&table).await, [0, 2, 3]);
}

#[tokio::test]
async fn changes_are_told_row_by_row() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..5).await;
    let path = paths(&table).remove(0);
    table.commit(delete(&path, [1])).await.expect("deleted");
    let adds = write(&table, &rows(10..12));
    table.commit(Commit { adds, ..delete(&path, [0, 4]) }).await.expect("changed");
    let shared = tokio::sync::Mutex::new(table);
    compact(&shared, &pairs()).await.expect("compacted");
    let mut table = shared.into_inner();
    table
        .commit(Commit { removes: RemoveSet::All, operation: "WRITE".into(), ..Commit::default() })
        .await
        .expect("emptied");
    let mut told = Vec::new();
    for version in 1..=table.version() {
        let changes = table.row_changes(version).expect("changes");
        let (added, removed) = (changes.added, changes.removed);
        let added = ids(table.rows_provider(added).expect("provider")).await;
        let removed = ids(table.rows_provider(removed).expect("provider")).await;
        told.push((changes.operation, added, removed));
    }
    let expected: [(&str, &[i64], &[i64]); 5] = [
        ("STREAMING UPDATE", &[0, 1, 2, 3, 4], &[]),
        ("MERGE", &[], &[1]),
        ("MERGE", &[10, 11], &[0, 4]),
        ("OPTIMIZE", &[], &[]),
        ("WRITE", &[], &[2, 3, 10, 11]),
    ];
    assert_eq!(told, expected.map(|(operation, added, removed)| (operation.into(), added.to_vec(), removed.to_vec())));
}

#[tokio::test]
async fn rows_are_located_where_they_are_written() {
    for partition_by in [&[][..], &["name"]] {
        let dir = TempDir::new().expect("folder");
        let mut table = create(dir.path(), id_name(), partition_by);
        let options = WriterOptions {
            file_bytes: 1500,
            row_group_rows: 100,
            open_files: 5,
            locate_rows: true,
            ..WriterOptions::default()
        };
        let mut writer = table.writer(options).expect("writer");
        let mut all = Vec::new();
        for at in [0..150, 150..151, 151..700] {
            // Names repeat, so that a partition has several rows.
            let batch = rows(at);
            let names = batch.column(0).as_primitive::<Int64Type>().values().iter();
            let names: arrow::array::StringArray = names.map(|id| Some(format!("name {}", id % 9))).collect();
            let batch = RecordBatch::try_new(id_name(), vec![batch.column(0).clone(), Arc::new(names)]).expect("batch");
            all.extend(batch.column(0).as_primitive::<Int64Type>().values().to_vec());
            writer.write(&batch).expect("written");
        }
        let located = writer.finish_located().expect("finished");
        assert!(located.files.len() > 1, "{}", located.files.len());
        let locations: Vec<(String, u64)> =
            located.locations().map(|(file, row)| (action::encode_path(&located.files[file].path), row)).collect();
        table.commit(append(located.files, 0)).await.expect("committed");
        assert_eq!(locations.len(), all.len());
        let files: BTreeMap<String, AddedFile> =
            table.files_at(1).expect("files").into_iter().map(|file| (file.path.clone(), file)).collect();
        for (id, (path, row)) in all.into_iter().zip(locations).step_by(7) {
            let rows = FileRows { file: files[&path].clone(), rows: RowSet::from_iter([row]) };
            let provider = table.rows_provider(vec![rows]).expect("provider");
            assert_eq!(query(provider, "SELECT id FROM t").await[0].column(0).as_primitive::<Int64Type>().value(0), id);
        }
    }
}

fn file(path: &str, size: u64, deleted_percent: i64) -> AddedFile {
    let vector = DeletionVector {
        storage_type: "u".into(),
        path_or_inline_dv: path.into(),
        offset: Some(1),
        size_in_bytes: 1,
        cardinality: deleted_percent,
    };
    let vector = (deleted_percent > 0).then_some(vector);
    let add = Add {
        path: path.into(),
        size: size as i64,
        stats: Some(r#"{"numRecords":100}"#.into()),
        deletion_vector: vector,
        ..Add::default()
    };
    AddedFile::new(1, &add)
}

#[test]
fn a_stream_of_small_batches_rewrites_each_row_three_times() {
    let limits = CompactionLimits::default();
    let mut files: Vec<AddedFile> = (0..20).map(|at| file(&format!("old {at}"), 120 << 20, 0)).collect();
    let (mut rewritten, mut files_most) = (0, 0);
    for batch in 0..10_000 {
        files.push(file(&format!("batch {batch}"), 60_000, 0));
        for rewrite in plan_rewrites(files.clone(), &limits) {
            let bytes: u64 = rewrite.files.iter().map(|file| file.size).sum();
            rewritten += bytes;
            files.retain(|file| !rewrite.files.contains(file));
            let count = bytes.div_ceil(limits.file_bytes);
            files.extend((0..count).map(|at| file(&format!("joined {batch} {at}"), bytes / count, 0)));
        }
        files_most = files_most.max(files.len());
    }
    assert!(rewritten <= 3 * 10_000 * 60_000, "{rewritten}");
    assert!(files_most <= 20 + 45 + 5, "{files_most}");
}

fn aged(mut file: AddedFile, modified_ms: i64) -> AddedFile {
    file.modified_ms = modified_ms;
    file
}

/// Batches of any size: what is joined lies side by side, so the rows stay in the order in which they came.
#[test]
fn neighbours_are_joined_in_the_order_of_their_rows() {
    let limits = CompactionLimits { keeps_order: true, ..CompactionLimits::default() };
    for sizes in [&[60_000_u64][..], &[60_000, 5_000_000, 90_000_000, 1000], &[60_000, 60_000, 3_000_000]] {
        // A file's name and the batches that it holds.
        let mut held: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut files: Vec<AddedFile> = Vec::new();
        let (mut written, mut rewritten) = (0, 0);
        for batch in 0..2_000 {
            let size = sizes[batch as usize * 7 % sizes.len()];
            written += size;
            let path = format!("part-{batch}");
            files.push(aged(file(&path, size, 0), batch));
            held.insert(path, vec![batch]);
            for (at, rewrite) in plan_rewrites(files.clone(), &limits).into_iter().enumerate() {
                let path = format!("part-joined-{batch}-{at}");
                let joined = rewrite.files.iter().flat_map(|file| held.remove(&file.path).expect("it is there"));
                let joined: Vec<i64> = joined.collect();
                let bytes: u64 = rewrite.files.iter().map(|file| file.size).sum();
                let modified_ms = rewrite.files.iter().map(|file| file.modified_ms).max().expect("some");
                rewritten += bytes;
                files.retain(|file| !rewrite.files.contains(file));
                files.push(aged(file(&path, bytes, 0), modified_ms));
                held.insert(path, joined);
            }
            let mut by_age: Vec<&AddedFile> = files.iter().collect();
            by_age.sort_by(|a, b| a.by_age(b));
            let batches: Vec<i64> = by_age.iter().flat_map(|file| held[&file.path].clone()).collect();
            assert!(batches.is_sorted(), "{sizes:?} at {batch}");
        }
        let large = files.iter().filter(|file| file.size >= limits.file_bytes / 2).count();
        // Small ones between two large ones are fewer than would be joined.
        assert!(files.len() <= 4 * large + 60, "{sizes:?}: {} files, {large} large", files.len());
        assert!(rewritten <= 4 * written, "{sizes:?}: {rewritten} of {written}");
    }
}

#[test]
fn worn_files_are_rewritten_the_worst_first_and_not_all_at_once() {
    let limits = CompactionLimits { rewrite_bytes_max: 200 << 20, ..CompactionLimits::default() };
    let files = vec![
        file("a", 120 << 20, 16),
        file("b", 120 << 20, 40),
        file("c", 120 << 20, 14),
        file("d", 120 << 20, 20),
        file("small", 1 << 20, 90),
    ];
    let planned = plan_rewrites(files, &limits);
    let paths: Vec<&str> = planned.iter().map(|rewrite| rewrite.files[0].path.as_str()).collect();
    assert_eq!(paths, ["b", "d"]);
}

/// One step of a table's life, on rows picked at random.
#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    Delete(Vec<u16>),
    Both(u8, Vec<u16>),
    /// Rows are deleted while files are rewritten.
    Compact(u8, Vec<u16>),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let picks = || prop::collection::vec(any::<u16>(), 1..30);
    prop_oneof![
        (1..60_u8).prop_map(Step::Add),
        picks().prop_map(Step::Delete),
        (1..60_u8, picks()).prop_map(|(rows, picks)| Step::Both(rows, picks)),
        (2..6_u8, prop::collection::vec(any::<u16>(), 0..30)).prop_map(|(files, picks)| Step::Compact(files, picks)),
        Just(Step::Reopen),
    ]
}

/// A row's value, and where it is.
type Row = (i64, String, u64);

/// Takes picked rows out of the model: what a commit has to delete.
fn take_rows(model: &mut Vec<Row>, picks: &[u16]) -> RowDeletes {
    let mut deletes = RowDeletes::new();
    for pick in picks {
        if !model.is_empty() {
            let (_, path, row) = model.swap_remove(usize::from(*pick) % model.len());
            deletes.entry(path).or_default().insert(row);
        }
    }
    deletes
}

fn sorted_ids(model: &[Row]) -> Vec<i64> {
    let mut ids: Vec<i64> = model.iter().map(|(id, ..)| *id).collect();
    ids.sort_unstable();
    ids
}

async fn live_through(steps: Vec<Step>, partition_by: &[&str], dir: &Path) {
    let mut table = create(dir, id_name(), partition_by);
    let mut model: Vec<Row> = Vec::new();
    let mut versions: Vec<(i64, Vec<i64>)> = Vec::new();
    let mut next_id = 0;
    for step in steps {
        let (count, picks) = match &step {
            Step::Add(rows) => (*rows, Vec::new()),
            Step::Delete(picks) => (0, picks.clone()),
            Step::Both(rows, picks) => (*rows, picks.clone()),
            Step::Compact(files_max, picks) => {
                let limits = CompactionLimits {
                    file_bytes: 4 << 10,
                    files_max: usize::from(*files_max),
                    deleted_fraction_max: 0.2,
                    ..CompactionLimits::default()
                };
                let rewrites = plan_rewrites(table.files_at(table.version()).expect("files"), &limits);
                let shared = tokio::sync::Mutex::new(table);
                let rewritten = rewrite_files(&shared, rewrites.clone(), &limits).await.expect("rewritten");
                table = shared.into_inner();
                let deletes = take_rows(&mut model, picks);
                if !deletes.is_empty() {
                    let commit = Commit { deletes, operation: "MERGE".into(), ..Commit::default() };
                    let version = table.commit(commit).await.expect("committed");
                    versions.push((version, sorted_ids(&model)));
                }
                let there = paths(&table);
                let mut read = rewrites.iter().flat_map(|rewrite| &rewrite.files);
                let are_there = read.all(|file| there.contains(&file.path));
                let prepared = rewritten.map(|rewritten| rewritten.prepare(&table));
                if let Some(Err(error)) = &prepared {
                    assert!(error.code() == CONFLICT && !are_there, "{error}");
                }
                if let Some(Ok(prepared)) = prepared {
                    assert!(are_there);
                    let stored = serde_json::to_string(&prepared).expect("JSON");
                    let prepared: PreparedCompaction = serde_json::from_str(&stored).expect("JSON");
                    table.commit_prepared(&prepared.commit).await.expect("made");
                    let moves: BTreeMap<_, _> =
                        prepared.moves.iter().map(|place| (place.old_path.as_str(), place)).collect();
                    for (_, path, row) in &mut model {
                        if let Some(place) = moves.get(path.as_str()) {
                            *row = place.new_row(*row).expect("the row lives");
                            *path = place.new_path.clone();
                        }
                    }
                }
                (0, Vec::new())
            }
            Step::Reopen => {
                table = Table::open(dir).expect("opens").expect("there");
                (0, Vec::new())
            }
        };
        let deletes = take_rows(&mut model, &picks);
        let mut writer = table
            .writer(WriterOptions { locate_rows: true, sync: SyncAt::Never, ..WriterOptions::default() })
            .expect("writer");
        let names: arrow::array::StringArray =
            (next_id..next_id + i64::from(count)).map(|id| Some(format!("{}", id % 3))).collect();
        let new = rows(next_id..next_id + i64::from(count));
        let new = RecordBatch::try_new(id_name(), vec![new.column(0).clone(), Arc::new(names)]).expect("batch");
        writer.write(&new).expect("written");
        let located = writer.finish_located().expect("finished");
        for (id, (file, row)) in (next_id..).zip(located.locations()) {
            model.push((id, action::encode_path(&located.files[file].path), row));
        }
        next_id += i64::from(count);
        if !deletes.is_empty() || !located.files.is_empty() {
            let commit = Commit { adds: located.files, deletes, operation: "MERGE".into(), ..Commit::default() };
            table.commit(commit).await.expect("committed");
        }
        let expected = sorted_ids(&model);
        assert_eq!(table_ids(&table).await, expected, "after {step:?}");
        assert_eq!(table.row_count(), Some(expected.len() as u64));
        versions.push((table.version(), expected));
    }
    for (id, path, row) in model.iter().step_by(5) {
        let file = table.files_at(table.version()).expect("files").into_iter().find(|file| file.path == *path);
        let rows = FileRows { file: file.expect("in the table"), rows: RowSet::from_iter([*row]) };
        assert_eq!(ids(table.rows_provider(vec![rows]).expect("provider")).await, [*id]);
    }
    let known: std::collections::BTreeSet<i64> =
        versions.last().map(|(_, ids)| ids.iter().copied()).into_iter().flatten().collect();
    assert_eq!(theirs(&table).await, known.into_iter().collect::<Vec<_>>());
    // The changes of all versions add up to the table.
    let mut sum = std::collections::BTreeSet::new();
    for version in 0..=table.version() {
        let changes = table.row_changes(version).expect("changes");
        for id in ids(table.rows_provider(changes.removed).expect("provider")).await {
            assert!(sum.remove(&id), "{id} left twice");
        }
        for id in ids(table.rows_provider(changes.added).expect("provider")).await {
            assert!(sum.insert(id), "{id} came twice");
        }
        if let Some((_, expected)) = versions.iter().find(|(known, _)| *known == version) {
            assert_eq!(sum.iter().copied().collect::<Vec<_>>(), *expected, "version {version}");
            assert_eq!(ids(table.provider(Some(version)).await.expect("older")).await, *expected, "version {version}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_the_rows_that_were_added_and_not_deleted(
        steps in prop::collection::vec(step(), 1..14),
        is_partitioned in any::<bool>(),
    ) {
        let dir = TempDir::new().expect("folder");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
        let partition_by: &[&str] = if is_partitioned { &["name"] } else { &[] };
        runtime.block_on(live_through(steps, partition_by, dir.path()));
    }
}

async fn scan(table: &Table, version: Option<i64>) -> Duration {
    let started = std::time::Instant::now();
    let provider = table.provider(version).await.expect("provider");
    query(provider, "SELECT sum(id), max(name), sum(length(name)) FROM t").await;
    started.elapsed()
}

/// Not a test of what is right but of what it costs; the figures are printed. `FLOWBENCH_TEST_ROWS` makes the table
/// larger: with the release profile, 10 million rows.
#[tokio::test]
async fn deleting_rows_costs_what_is_deleted() {
    let total: u64 = std::env::var("FLOWBENCH_TEST_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(40_000);
    let (files, batches) = (40, 30);
    let per_batch = (total / 1000).min(1000);
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    for at in 0..files {
        let per_file = (total / files) as i64;
        add_rows(&mut table, at as i64 * per_file..(at as i64 + 1) * per_file).await;
    }
    let paths = paths(&table);
    // Rows are taken in a scattered order, each once.
    let mut picks = (0..total).map(|pick| pick.wrapping_mul(7_368_787) % total);
    let mut took: [Vec<Duration>; 3] = Default::default();
    for batch in 0..batches {
        let mut deletes = RowDeletes::new();
        for pick in picks.by_ref().take(per_batch as usize) {
            deletes.entry(paths[(pick % files) as usize].clone()).or_default().insert(pick / files);
        }
        let started = std::time::Instant::now();
        let options = WriterOptions { sync: SyncAt::Prepare, ..WriterOptions::default() };
        let mut writer = table.writer(options).expect("writer");
        writer.write(&rows(0..per_batch as i64)).expect("written");
        let adds = writer.finish().expect("finished");
        took[0].push(started.elapsed());
        let txns = vec![("cdc".to_owned(), batch)];
        let started = std::time::Instant::now();
        let prepared = table.prepare(Commit { adds, deletes, txns, ..Commit::default() }).expect("prepared");
        took[1].push(started.elapsed());
        let started = std::time::Instant::now();
        table.commit_prepared(&prepared).await.expect("committed");
        took[2].push(started.elapsed());
    }
    for (what, took) in ["write", "prepare", "commit"].iter().zip(&mut took) {
        took.sort();
        println!("{what}: p50 {:?}, max {:?}", took[took.len() / 2], took[took.len() - 1]);
    }
    assert_eq!(table.row_count(), Some(total));
    let started = std::time::Instant::now();
    let state = checkpoint::write(dir.path(), &table.state);
    println!("checkpoint: {:?}", started.elapsed());
    state.expect("written");
    let started = std::time::Instant::now();
    let again = Table::open(dir.path()).expect("opens").expect("there");
    println!("open: {:?}", started.elapsed());

    // One row in ten is deleted now.
    let mut deletes = RowDeletes::new();
    for pick in picks.take((total / 10 - batches as u64 * per_batch) as usize) {
        deletes.entry(paths[(pick % files) as usize].clone()).or_default().insert(pick / files);
    }
    table.commit(Commit { deletes, ..Commit::default() }).await.expect("committed");
    for round in 0..3 {
        let (few, many) = (scan(&again, None).await, scan(&table, None).await);
        println!(
            "scan {round}: no row {:?}, few rows {few:?}, one in ten deleted {many:?}",
            scan(&table, Some(files as i64)).await
        );
    }
    let files =
        table.files_at(table.version()).expect("files").into_iter().filter(|file| file.deletion_vector.is_some());
    let some =
        files.map(|file| FileRows { rows: (0..25).map(|row| row * 997 % file.rows.expect("known")).collect(), file });
    let some: Vec<FileRows> = some.collect();
    let started = std::time::Instant::now();
    query(table.rows_provider(some).expect("provider"), "SELECT * FROM t").await;
    println!("25 rows of each of 40 files: {:?}", started.elapsed());
}
