//! The change feed of tables with any history, replayed: after each version it has made the table.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::catalog::TableProvider;
use datafusion::prelude::{SessionConfig, SessionContext};
use pipeline::change_feed::{DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE};
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::sync::Mutex;

use super::*;
use crate::table::{Commit, CompactionLimits, RemoveSet, RowDeletes, RowSet, TableSpec, WriterOptions, compact};

/// The rows of the table: key and value.
type Model = BTreeMap<i64, Option<i64>>;

/// What happens to the table in one version.
#[derive(Debug, Clone)]
enum Step {
    /// Rows come by key, those of the same key leave; further keys leave.
    Merge { upserts: Vec<(i64, Option<i64>)>, deletes: Vec<i64> },
    /// The same, and every file is written anew, as programs without deletion vectors do.
    Rewrite { upserts: Vec<(i64, Option<i64>)>, deletes: Vec<i64> },
    /// Small files become large ones.
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    // Few keys and values, so that rows change often and come back as they were.
    let upserts = || prop::collection::vec((0..12_i64, prop::option::of(0..3_i64)), 0..6);
    let deletes = || prop::collection::vec(0..12_i64, 0..4);
    prop_oneof![
        4 => (upserts(), deletes()).prop_map(|(upserts, deletes)| Step::Merge { upserts, deletes }),
        1 => (upserts(), deletes()).prop_map(|(upserts, deletes)| Step::Rewrite { upserts, deletes }),
        1 => Just(Step::Compact),
    ]
}

fn batch(rows: &Model) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("x", DataType::Int64, true)]);
    let (ids, values): (Vec<i64>, Vec<Option<i64>>) = rows.iter().map(|(id, value)| (*id, *value)).unzip();
    let columns = vec![Arc::new(Int64Array::from(ids)) as _, Arc::new(Int64Array::from(values)) as _];
    RecordBatch::try_new(Arc::new(schema), columns).expect("a batch")
}

async fn query(provider: Arc<dyn TableProvider>, sql: &str) -> Vec<RecordBatch> {
    // Small batches: groups of a key go on from one to the next.
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1).with_batch_size(2));
    session.register_table("t", provider).expect("registered");
    session.sql(sql).await.expect("planned").collect().await.expect("ran")
}

fn numbers(batch: &RecordBatch, column: usize) -> Vec<Option<i64>> {
    batch.column(column).as_primitive::<Int64Type>().iter().collect()
}

async fn rows(provider: Arc<dyn TableProvider>) -> Vec<(i64, Option<i64>)> {
    let batches = query(provider, "SELECT id, x FROM t").await;
    let rows = batches.iter().flat_map(|batch| numbers(batch, 0).into_iter().zip(numbers(batch, 1)));
    rows.map(|(id, value)| (id.expect("a key"), value)).collect()
}

/// A table that lives through steps, and its rows at each version.
struct Lived {
    table: Mutex<Table>,
    /// Rows that were deleted in place, by file.
    deleted: BTreeMap<String, RowSet>,
    versions: Vec<Model>,
}

impl Lived {
    async fn through(dir: &std::path::Path, steps: &[Step]) -> Lived {
        let schema = Some(batch(&Model::new()).schema());
        let spec = TableSpec { name: "t".into(), schema, deletion_vectors: true, ..TableSpec::default() };
        let table = Mutex::new(Table::create(dir, spec).expect("created"));
        let mut lived = Lived { table, deleted: BTreeMap::new(), versions: vec![Model::new()] };
        for step in steps {
            lived.live(step).await;
        }
        lived
    }

    async fn live(&mut self, step: &Step) {
        let now = self.versions.last().expect("there is a version").clone();
        let next = |upserts: &[(i64, Option<i64>)], deletes: &[i64]| {
            let mut next = now.clone();
            next.retain(|id, _| !deletes.contains(id));
            next.extend(upserts.iter().copied());
            next
        };
        let (commit, next) = match step {
            Step::Compact => {
                let limits =
                    CompactionLimits { files_max: 2, deleted_fraction_max: 0.1, ..CompactionLimits::default() };
                compact(&self.table, &limits).await.expect("compacted");
                let version = self.table.lock().await.version();
                self.versions.resize(version as usize + 1, now);
                return;
            }
            Step::Merge { upserts, deletes } => {
                let next = next(upserts, deletes);
                let mut removed = RowDeletes::new();
                let mut gone: Vec<i64> = upserts.iter().map(|(id, _)| *id).chain(deletes.iter().copied()).collect();
                gone.sort_unstable();
                gone.dedup();
                for (path, row) in self.places(&gone).await {
                    removed.entry(path.clone()).or_default().insert(row);
                    self.deleted.entry(path).or_default().insert(row);
                }
                let new: Model = upserts.iter().copied().collect();
                (Commit { adds: self.write(&new).await, deletes: removed, ..Commit::default() }, next)
            }
            Step::Rewrite { upserts, deletes } => {
                let next = next(upserts, deletes);
                (Commit { adds: self.write(&next).await, removes: RemoveSet::All, ..Commit::default() }, next)
            }
        };
        let version = self.table.lock().await.commit(commit).await.expect("committed");
        self.versions.resize(version as usize + 1, next);
    }

    async fn write(&self, rows: &Model) -> Vec<crate::table::DataFile> {
        if rows.is_empty() {
            return Vec::new();
        }
        let mut writer = self.table.lock().await.writer(WriterOptions::default()).expect("a writer");
        writer.write(&batch(rows)).expect("written");
        writer.finish().expect("finished")
    }

    /// Where the rows of these keys lie.
    async fn places(&self, keys: &[i64]) -> Vec<(String, u64)> {
        let table = self.table.lock().await;
        let mut places = Vec::new();
        for file in table.files_at(table.version()).expect("files") {
            let path = file.path.clone();
            let all = (0..file.rows.expect("counted")).collect();
            let provider = table.rows_provider(vec![FileRows { file, rows: all }]).expect("rows");
            let deleted = self.deleted.get(&path).cloned().unwrap_or_default();
            let found = rows(provider).await.into_iter().zip(0..);
            let live = found.filter(|((id, _), row)| keys.contains(id) && !deleted.contains(*row));
            places.extend(live.map(|(_, row)| (path.clone(), row)));
        }
        places
    }

    /// The feed between two offsets, each row with its change and version, in order.
    async fn feed(&self, parts: Vec<FeedPart>, keys: &[String]) -> Vec<(String, i64, i64, Option<i64>)> {
        let table = self.table.lock().await;
        let provider = FeedRows::provider(&table, parts, keys).await.expect("a feed");
        let mut found = Vec::new();
        for batch in query(provider, "SELECT * FROM t").await {
            let types = batch.column(2).as_string::<i32>();
            assert_eq!(batch.column(4).null_count(), 0, "each version has its time");
            for (row, ((id, value), version)) in
                numbers(&batch, 0).into_iter().zip(numbers(&batch, 1)).zip(numbers(&batch, 3)).enumerate()
            {
                found.push((types.value(row).to_string(), version.expect("a version"), id.expect("a key"), value));
            }
        }
        found
    }
}

/// Reads the feed from `start` in slices of at most `files` files, plans each again, and applies it.
async fn replay(lived: &Lived, start: TableOffset, files: usize, keys: &[String]) {
    let up_to = lived.table.lock().await.version();
    let mut model: Model = match start.is_snapshot || start.version == 0 {
        true => Model::new(),
        false => lived.versions[start.version as usize - 1].clone(),
    };
    let (mut at, limit) = (start, SliceLimit { files, bytes: None });
    loop {
        let next = {
            let table = lived.table.lock().await;
            let next = next_feed_slice(&table, "t", at, up_to, limit).expect("a slice");
            if let Some(slice) = &next {
                assert_eq!(planned_feed(&table, at, slice.end).expect("planned"), slice.parts);
            }
            next
        };
        let Some(slice) = next else { break };
        let feed = lived.feed(slice.parts.clone(), keys).await;
        assert_eq!(lived.feed(slice.parts, keys).await, feed, "the same rows in the same order");
        let mut before = None;
        for (change, version, id, value) in feed {
            match (change.as_str(), before.take()) {
                // Without keys a row that changes leaves and comes, in the order of its bytes.
                (INSERT | DELETE, None) if keys.is_empty() => {}
                (INSERT, None) => assert_eq!(model.insert(id, value), None, "{id} is there in {version}"),
                (DELETE, None) => assert_eq!(model.remove(&id), Some(value), "{id} is gone in {version}"),
                (UPDATE_PREIMAGE, None) => {
                    assert_eq!(model.get(&id), Some(&value), "{id} was another in {version}");
                    before = Some((id, value));
                }
                (UPDATE_POSTIMAGE, Some((same, old))) => {
                    assert!(same == id && old != value, "{id} did change in {version}");
                    model.insert(id, value);
                }
                (change, before) => panic!("{change} behind {before:?}"),
            }
        }
        assert_eq!(before, None);
        at = slice.end;
        if !at.is_snapshot && !keys.is_empty() {
            assert_eq!(model, lived.versions[at.version as usize - 1], "behind version {}", at.version - 1);
        }
    }
    assert_eq!(at, TableOffset::after(up_to));
}

/// Without keys: what the feed of each version adds up to is the difference of its tables, and nothing comes twice.
async fn adds_up(lived: &Lived) {
    for version in 1..lived.versions.len() {
        let parts = {
            let table = lived.table.lock().await;
            planned_feed(&table, TableOffset::after(version as i64 - 1), TableOffset::after(version as i64))
        };
        let mut found: Vec<_> = lived.feed(parts.expect("planned"), &[]).await;
        found.sort();
        let (before, after) = (&lived.versions[version - 1], &lived.versions[version]);
        let differing = |these: &Model, those: &Model, change: &str| -> Vec<_> {
            let only = these.iter().filter(|(id, value)| those.get(id) != Some(value));
            only.map(|(id, value)| (change.to_string(), version as i64, *id, *value)).collect()
        };
        let mut expected = differing(before, after, DELETE);
        expected.extend(differing(after, before, INSERT));
        expected.sort();
        assert_eq!(found, expected, "version {version}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_replayed_feed_makes_the_table_of_each_version(
        steps in prop::collection::vec(step(), 1..12),
        files in 1..5_usize,
        start in 0..12_usize,
    ) {
        let dir = TempDir::new().expect("a folder");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let lived = Lived::through(dir.path(), &steps).await;
            let version = start.min(lived.versions.len() - 1) as i64;
            let keys = ["ID".to_string()];
            replay(&lived, TableOffset { version: 0, files: 0, is_snapshot: false }, files, &keys).await;
            replay(&lived, TableOffset { version, files: 0, is_snapshot: true }, files, &keys).await;
            replay(&lived, TableOffset { version, files: 0, is_snapshot: false }, files, &[]).await;
            adds_up(&lived).await;
        });
    }
}

#[tokio::test]
async fn what_a_vacuum_took_is_said() {
    let dir = TempDir::new().expect("a folder");
    let upserts = vec![(1, Some(1)), (2, None)];
    let steps = [
        Step::Merge { upserts, deletes: vec![] },
        Step::Rewrite { upserts: vec![(1, Some(2))], deletes: vec![] },
        Step::Merge { upserts: vec![(3, None)], deletes: vec![] },
    ];
    let lived = Lived::through(dir.path(), &steps).await;
    let table = lived.table.lock().await;
    let gone = table.row_changes(2).expect("changes").removed.remove(0).file.path;
    std::fs::remove_file(dir.path().join(&gone)).expect("removed");
    let limit = SliceLimit { files: 9, bytes: None };
    let error = next_feed_slice(&table, "t", TableOffset::after(0), 3, limit).expect_err("a file is gone");
    assert_eq!(error.code(), "change-data-missing");
    assert!(error.to_string().contains("version 1 of `t`") && error.to_string().contains(&gone), "{error}");
    let rest = next_feed_slice(&table, "t", TableOffset::after(2), 3, limit).expect("later versions are there");
    assert_eq!(rest.expect("one").parts.len(), 1);
}
