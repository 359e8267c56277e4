//! Tests of the storage layer as a whole: what is written is read back, by us, by delta-rs and by other engines.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, SchemaRef, TimeUnit};
use arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::TableProvider;
use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;

use super::*;

pub(super) fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect::<Vec<_>>()))
}

pub(super) fn id_name() -> SchemaRef {
    schema(&[("id", DataType::Int64), ("name", DataType::Utf8)])
}

pub(super) fn rows(ids: std::ops::Range<i64>) -> RecordBatch {
    let names: StringArray = ids.clone().map(|id| (id % 7 != 3).then(|| format!("name {id}"))).collect();
    let ids = Int64Array::from_iter_values(ids);
    RecordBatch::try_new(id_name(), vec![Arc::new(ids), Arc::new(names)]).expect("batch")
}

pub(super) fn create(dir: &Path, schema: SchemaRef, partition_by: &[&str]) -> Table {
    let spec = TableSpec {
        name: "t".into(),
        schema: Some(schema),
        partition_by: partition_by.iter().map(|name| (*name).to_owned()).collect(),
        ..TableSpec::default()
    };
    Table::create(dir, spec).expect("created")
}

pub(super) fn write(table: &Table, batch: &RecordBatch) -> Vec<DataFile> {
    let mut writer = table.writer(WriterOptions::default()).expect("writer");
    writer.write(batch).expect("written");
    writer.finish().expect("finished")
}

pub(super) fn append(adds: Vec<DataFile>, batch_id: i64) -> Commit {
    Commit { adds, txns: vec![("flow".into(), batch_id)], operation: "STREAMING UPDATE".into(), ..Commit::default() }
}

pub(super) fn pairs() -> CompactionLimits {
    CompactionLimits { file_bytes: 1 << 20, files_max: 2, ..CompactionLimits::default() }
}

pub(super) async fn add_rows(table: &mut Table, ids: std::ops::Range<i64>) -> i64 {
    let batch_id = table.txn("flow").map_or(0, |last| last + 1);
    let files = write(table, &rows(ids));
    table.commit(append(files, batch_id)).await.expect("committed")
}

pub(super) async fn query(provider: Arc<dyn TableProvider>, sql: &str) -> Vec<RecordBatch> {
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    session.register_table("t", provider).expect("registered");
    session.sql(sql).await.expect("planned").collect().await.expect("ran")
}

pub(super) async fn text(provider: Arc<dyn TableProvider>, sql: &str) -> String {
    pretty_format_batches(&query(provider, sql).await).expect("formats").to_string()
}

pub(super) async fn ids(provider: Arc<dyn TableProvider>) -> Vec<i64> {
    let batches = query(provider, "SELECT id FROM t ORDER BY id").await;
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

pub(super) async fn table_ids(table: &Table) -> Vec<i64> {
    ids(table.provider(None).await.expect("provider")).await
}

#[tokio::test]
async fn what_is_written_is_read_back_with_plain_types() {
    let dir = TempDir::new().expect("folder");
    assert!(Table::open(dir.path().join("none")).expect("no error").is_none());
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let point: Fields = vec![Field::new("x", DataType::Int64, true), Field::new("s", DataType::Utf8, true)].into();
    let all = schema(&[
        ("id", DataType::Int64),
        ("at", utc.clone()),
        ("local", DataType::Timestamp(TimeUnit::Microsecond, None)),
        ("day", DataType::Date32),
        ("price", DataType::Decimal128(20, 2)),
        ("points", DataType::List(Arc::new(Field::new("item", DataType::Struct(point), true)))),
    ]);
    let mut table = create(dir.path(), all, &[]);
    let sql =
        "SELECT 1 AS id, arrow_cast('2024-02-03T04:05:06.123456Z', 'Timestamp(Microsecond, Some(\"UTC\"))') AS at,
               arrow_cast('2024-02-03T04:05:06', 'Timestamp(Microsecond, None)') AS local, DATE '2024-02-03' AS day,
               arrow_cast(-12.5, 'Decimal128(20, 2)') AS price, [named_struct('x', 1, 's', 'a'), NULL] AS points";
    let batches = SessionContext::new().sql(sql).await.expect("plan").collect().await.expect("rows");
    let files = write(&table, &batches[0]);
    assert_eq!(
        files[0].stats,
        r#"{"numRecords":1,"minValues":{"id":1,"at":"2024-02-03T04:05:06.123456Z","local":"2024-02-03T04:05:06.000000","day":"2024-02-03","price":-12.50},"maxValues":{"id":1,"at":"2024-02-03T04:05:06.123456Z","local":"2024-02-03T04:05:06.000000","day":"2024-02-03","price":-12.50},"nullCount":{"id":0,"at":0,"local":0,"day":0,"price":0}}"#
    );
    table.commit(append(files, 0)).await.expect("committed");

    let table = Table::open(dir.path()).expect("opens").expect("is there");
    assert_eq!((table.version(), table.row_count(), table.txn("flow"), table.name()), (1, Some(1), Some(0), "t"));
    let read = query(table.provider(None).await.expect("provider"), "SELECT * FROM t").await;
    assert_eq!(read[0].schema().fields(), table.schema().fields());
    let expected = ["2024-02-03T04:05:06.123456Z", "-12.50", "[{x: 1, s: a}, ]"];
    let shown = pretty_format_batches(&read).expect("formats").to_string();
    expected.iter().for_each(|part| assert!(shown.contains(part), "{shown}"));
}

#[tokio::test]
async fn a_batch_is_committed_once() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..10).await;
    let files = write(&table, &rows(0..10));
    let path = dir.path().join(&files[0].path);
    assert!(path.exists());
    let error = table.commit(append(files, 0)).await.expect_err("is in the table");
    assert_eq!(error.code(), ALREADY_COMMITTED);
    assert!(!path.exists(), "the file of the refused commit is deleted");
    assert_eq!(table_ids(&table).await, (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn two_handles_append_one_after_the_other_and_see_each_others_batches() {
    let dir = TempDir::new().expect("folder");
    let mut first = create(dir.path(), id_name(), &[]);
    let mut second = Table::open(dir.path()).expect("opens").expect("there");
    add_rows(&mut first, 0..5).await;
    let files = write(&second, &rows(5..9));
    let commit = Commit { txns: vec![("other".into(), 0)], ..append(files, 0) };
    assert_eq!(second.commit(commit).await.expect("behind the first"), 2);
    let files = write(&first, &rows(5..9));
    let again = Commit { txns: vec![("other".into(), 0)], ..append(files, 0) };
    assert_eq!(first.commit(again).await.expect_err("seen").code(), ALREADY_COMMITTED);
    assert_eq!(table_ids(&first).await, (0..9).collect::<Vec<_>>());
}

/// A column of structs and one of lists of structs, both with these fields, all values the row's number.
fn nested(fields: &[&str], rows: std::ops::Range<i64>) -> RecordBatch {
    let count = (rows.end - rows.start) as usize;
    let fields: Fields = fields.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
    let values = || Arc::new(Int64Array::from_iter_values(rows.clone())) as ArrayRef;
    let one = || StructArray::new(fields.clone(), fields.iter().map(|_| values()).collect(), None);
    let item = Arc::new(Field::new("element", DataType::Struct(fields.clone()), true));
    let offsets = arrow::buffer::OffsetBuffer::from_lengths(vec![1; count]);
    let many = ListArray::new(item, offsets, Arc::new(one()), None);
    RecordBatch::try_from_iter_with_nullable([
        ("id", values(), true),
        ("one", Arc::new(one()) as ArrayRef, true),
        ("many", Arc::new(many) as ArrayRef, true),
    ])
    .expect("batch")
}

#[tokio::test]
async fn a_schema_grows_and_older_rows_read_null() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), nested(&["a"], 0..1).schema(), &[]);
    let files = write(&table, &nested(&["a"], 0..2));
    table.commit(append(files, 0)).await.expect("committed");

    let mut grown = Schema::clone(&nested(&["a", "b"], 0..1).schema());
    grown = Schema::new([grown.fields().to_vec(), vec![Arc::new(Field::new("extra", DataType::Utf8, true))]].concat());
    let grown = canonical(&grown).expect("fits");
    let mut writer = DataWriter::new(dir.path(), None, grown.clone(), &[], WriterOptions::default()).expect("writer");
    writer.write(&nested(&["a", "b"], 2..3)).expect("a column may be missing");
    let commit = Commit { new_schema: Some(grown), ..append(writer.finish().expect("files"), 1) };
    table.commit(commit).await.expect("grows");

    let provider = table.provider(None).await.expect("provider");
    let shown = text(provider, "SELECT * FROM t ORDER BY id").await;
    for line in ["| 0  | {a: 0, b: } | [{a: 0, b: }]  |       |", "| 2  | {a: 2, b: 2} | [{a: 2, b: 2}] |       |"] {
        let squeezed = |text: &str| text.replace(' ', "");
        assert!(squeezed(&shown).contains(&squeezed(line)), "{shown}");
    }
    let old = table.provider(Some(1)).await.expect("version 1");
    assert_eq!(old.schema().fields().len(), 3);
    assert!(table.changes(1, 2).expect("changes")[0].schema_changed);
    assert!(!table.changes(0, 1).expect("changes")[0].schema_changed);

    let files = table.changes(0, 1).expect("changes").remove(0).adds;
    let read = query(table.files_provider(files).await.expect("provider"), "SELECT extra, one['b'] FROM t").await;
    assert_eq!((read[0].num_rows(), read[0].column(0).null_count(), read[0].column(1).null_count()), (2, 2, 2));

    let dropped = Commit { new_schema: Some(id_name()), ..append(Vec::new(), 2) };
    let error = table.commit(dropped).await.expect_err("a column would go");
    assert_eq!(error.code(), "schema-change");
    assert!(error.to_string().contains("`one` would be dropped"), "{error}");
}

#[tokio::test]
async fn an_overwrite_is_whole_for_every_reader() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..5).await;
    let before = table.provider(None).await.expect("provider");
    let adds = write(&table, &rows(7..9));
    let overwrite = || Commit { removes: RemoveSet::All, operation: "WRITE".into(), ..Commit::default() };
    table.commit(Commit { adds, ..overwrite() }).await.expect("overwritten");
    assert_eq!(table_ids(&table).await, [7, 8]);
    assert_eq!(ids(before).await, [0, 1, 2, 3, 4], "a reader that started before");
    assert_eq!(ids(table.provider(Some(1)).await.expect("old")).await.len(), 5);

    let other = schema(&[("id", DataType::Int64), ("part", DataType::Utf8)]);
    let partitioning = MetadataChange { partition_by: Some(vec!["part".into()]), ..MetadataChange::default() };
    let reshape = Commit { new_schema: Some(other), metadata: partitioning, ..overwrite() };
    table.commit(reshape).await.expect("schema and partitioning may change with all files");
    assert_eq!((table.partition_by(), table.file_count()), (&["part".to_owned()][..], 0));
}

#[tokio::test]
async fn partitions_have_folders_and_are_skipped() {
    let dir = TempDir::new().expect("folder");
    let shape = schema(&[("part", DataType::Utf8), ("id", DataType::Int64), ("day", DataType::Date32)]);
    let mut table = create(dir.path(), shape, &["day", "part"]);
    let sql = "SELECT * FROM (VALUES ('a/b c', 1, DATE '2024-01-01'), (NULL, 2, DATE '2024-01-01'),
               ('a/b c', 3, DATE '2024-01-02'), ('a/b c', 4, DATE '2024-01-01'), ('', 5, NULL)) AS v(part, id, day)";
    let batches = SessionContext::new().sql(sql).await.expect("plan").collect().await.expect("rows");
    let files = write(&table, &batches[0]);
    assert_eq!(files.len(), 4);
    assert!(files.iter().any(|file| file.path.starts_with("day=2024-01-01/part=a%2Fb%20c/part-")));
    table.commit(append(files, 0)).await.expect("committed");
    let table = Table::open(dir.path()).expect("opens").expect("there");
    for (filter, expected) in [
        ("part = 'a/b c'", vec![1, 3, 4]),
        ("part IS NULL", vec![2, 5]),
        ("part IS NOT NULL AND day = DATE '2024-01-02'", vec![3]),
        ("day IS NULL", vec![5]),
        ("id >= 4", vec![4, 5]),
        ("true", vec![1, 2, 3, 4, 5]),
    ] {
        let provider = table.provider(None).await.expect("provider");
        let read = query(provider, &format!("SELECT id FROM t WHERE {filter} ORDER BY id")).await;
        let read: Vec<i64> =
            read.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        assert_eq!(read, expected, "{filter}");
    }
    for (filter, files) in [("day = DATE '2024-01-02'", 1), ("id > 100", 0), ("id = 2", 2), ("part IS NULL", 2)] {
        let provider = table.provider(None).await.expect("provider");
        let shown = text(provider, &format!("EXPLAIN SELECT id FROM t WHERE {filter}")).await;
        assert_eq!(shown.matches(".parquet").count(), files, "{filter}: {shown}");
    }
}

#[tokio::test]
async fn a_writer_rolls_its_files_and_leaves_nothing_behind_when_dropped() {
    let dir = TempDir::new().expect("folder");
    let table = create(dir.path(), id_name(), &[]);
    let parquet = || data_files(dir.path()).len();
    let options = WriterOptions { file_bytes: 20_000, row_group_rows: 1000, ..WriterOptions::default() };
    let mut writer = table.writer(options.clone()).expect("writer");
    for at in 0..20 {
        writer.write(&rows(at * 1000..(at + 1) * 1000)).expect("written");
    }
    assert_eq!(writer.rows(), 20_000);
    let files = writer.finish().expect("finished");
    assert!(files.len() > 3 && files.iter().all(|file| file.size < 40_000), "{files:?}");
    assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 20_000);
    assert_eq!(parquet(), files.len());
    drop(files);
    assert_eq!(parquet(), 0, "never committed");

    let mut writer = table.writer(options).expect("writer");
    writer.write(&rows(0..5000)).expect("written");
    assert!(parquet() > 0);
    drop(writer);
    assert_eq!(parquet(), 0, "never finished");
}

pub(super) fn data_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("listed") {
            let path = entry.expect("entry").path();
            if path.is_dir() && !path.ends_with("_delta_log") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                found.push(path);
            }
        }
    }
    found
}

#[tokio::test]
async fn rows_that_do_not_fit_are_refused() {
    let dir = TempDir::new().expect("folder");
    let required =
        Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("name", DataType::Utf8, true)]));
    let table = create(dir.path(), required, &[]);
    let mut writer = table.writer(WriterOptions::default()).expect("writer");
    let null = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![None])) as ArrayRef)]).expect("batch");
    assert!(writer.write(&null).expect_err("NOT NULL").to_string().contains("`id` is NOT NULL"));
    let extra =
        RecordBatch::try_from_iter([("other", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).expect("batch");
    assert!(writer.write(&extra).expect_err("unknown").to_string().contains("`other` is not in the table"));
    let error = Table::create(dir.path(), TableSpec { schema: Some(id_name()), ..TableSpec::default() });
    assert_eq!(error.expect_err("there is one").code(), "table-exists");
}

#[tokio::test]
async fn changes_tell_appends_from_overwrites_deletes_and_compactions() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..5).await;
    add_rows(&mut table, 5..9).await;
    let table = tokio::sync::Mutex::new(table);
    let compacted = compact(&table, &pairs()).await.expect("compacted");
    assert_eq!((compacted.files_before, compacted.files_after), (2, 1));
    assert_eq!(compact(&table, &pairs()).await.expect("nothing to do"), Compacted::default());
    let mut table = table.into_inner();

    let theirs = table.delta_rs().expect("builds");
    let theirs = {
        let mut theirs = theirs;
        theirs.load().await.expect("loads");
        theirs
    };
    theirs.delete().with_predicate("id = 3").await.expect("deleted by delta-rs");
    let adds = write(&table, &rows(20..21));
    let overwrite = Commit { adds, removes: RemoveSet::All, operation: "WRITE".into(), ..Commit::default() };
    table.commit(overwrite).await.expect("overwritten");

    let changes = table.changes(0, table.version()).expect("changes");
    let told: Vec<_> = changes
        .iter()
        .map(|change| {
            (change.version, change.operation.as_str(), change.is_append_only, change.adds.len(), change.removes.len())
        })
        .collect();
    assert_eq!(
        told,
        [
            (1, "STREAMING UPDATE", true, 1, 0),
            (2, "STREAMING UPDATE", true, 1, 0),
            (3, "OPTIMIZE", true, 0, 0),
            (4, "DELETE", false, 1, 1),
            (5, "WRITE", false, 1, 1),
        ]
    );
    assert_eq!(changes[1].adds[0].rows, Some(4));
    let read = table.files_provider(changes[1].adds.clone()).await.expect("files that have left the table");
    assert_eq!(ids(read).await, [5, 6, 7, 8]);
    let stored = serde_json::to_string(&changes[0].adds).expect("JSON");
    let read: Vec<AddedFile> = serde_json::from_str(&stored).expect("JSON");
    assert_eq!(ids(table.files_provider(read).await.expect("provider")).await, [0, 1, 2, 3, 4]);
    let at_three = table.files_at(3).expect("files");
    assert_eq!(ids(table.files_provider(at_three).await.expect("provider")).await, (0..9).collect::<Vec<_>>());

    let history = table.history(2).expect("history");
    assert_eq!((history.len(), history[0].version, history[0].operation.as_str()), (2, 5, "WRITE"));
    let since = |version: usize| table.version_since(changes[version - 1].timestamp_us).expect("reads");
    assert!(since(3) <= Some(3) && since(3) >= Some(1), "{:?}", since(3));
    assert_eq!(table.version_since(i64::MAX).expect("reads"), None);
    let error = table.changes(5, 6).expect_err("not there yet");
    assert!(error.code() == "table-version-missing" && error.to_string().starts_with("version 6 "), "{error}");
}

#[tokio::test]
async fn a_generation_is_promoted_by_one_commit() {
    let dir = TempDir::new().expect("folder");
    let target = dir.path().join("target");
    let shadow = |name: &str, ids: std::ops::Range<i64>| {
        let folder = target.join(name);
        async move {
            let wide = schema(&[("id", DataType::Int64), ("name", DataType::Utf8), ("new", DataType::Int64)]);
            let mut shadow = create(&folder, wide, &["name"]);
            add_rows(&mut shadow, ids).await;
            shadow
        }
    };
    let first = shadow("gen-1", 0..3).await;
    let mut table = Table::create_from(&target, "t", first, &[("flow/1".into(), 4)], "FULL REFRESH").expect("created");
    assert_eq!((table_ids(&table).await.len(), table.version(), table.txn("flow/1")), (3, 0, Some(4)));
    add_rows(&mut table, 3..4).await;

    let second = shadow("gen-2", 0..10).await;
    assert_eq!(table.vacuum(Duration::ZERO).expect("vacuum").files, 0, "a table being built isn't touched");
    let version = table.promote(second, vec![("flow/2".into(), 0)], "FULL REFRESH").await.expect("promoted");
    assert_eq!((version, table.txn("flow/2"), table.txn("flow/1")), (2, Some(0), Some(4)));
    assert!(!table.changes(1, 2).expect("changes")[0].is_append_only);
    assert!(!target.join("gen-2/_delta_log").exists());

    std::thread::sleep(Duration::from_millis(5));
    let vacuumed = table.vacuum(Duration::ZERO).expect("vacuum");
    assert!(vacuumed.files > 0, "the old generation");
    assert!(data_files(&target).iter().all(|path| path.starts_with(target.join("gen-2"))));
    let table = tokio::sync::Mutex::new(table);
    compact(&table, &pairs()).await.expect("compacted");
    let table = Table::open(&target).expect("opens").expect("there");
    assert_eq!(table_ids(&table).await, (0..10).collect::<Vec<_>>());

    let mut theirs = table.delta_rs().expect("builds");
    theirs.load().await.expect("delta-rs reads it");
    let provider = theirs.table_provider().await.expect("provider");
    assert_eq!(ids(provider).await, (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn files_of_a_crash_are_not_in_the_table_and_a_vacuum_takes_them() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..3).await;
    let orphan = dir.path().join("part-orphan.parquet");
    std::fs::copy(&data_files(dir.path())[0], &orphan).expect("copied");
    std::fs::write(dir.path().join("_delta_log/_commit_x.json.tmp"), "{").expect("written");
    let mut table = Table::open(dir.path()).expect("opens").expect("there");
    assert_eq!(table_ids(&table).await, [0, 1, 2]);
    assert_eq!(table.vacuum(Duration::from_secs(3600)).expect("vacuum").files, 0, "too young");
    let waiting = write(&table, &rows(3..4));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(table.vacuum(Duration::ZERO).expect("vacuum").files, 1, "not the one that waits for its commit");
    assert!(!orphan.exists());
    table.commit(append(waiting, 1)).await.expect("committed");
    assert_eq!(table_ids(&table).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn the_log_is_checkpointed_and_cleaned_and_opens_from_there() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), schema(&[("id", DataType::Int64), ("name", DataType::Utf8)]), &["name"]);
    let properties =
        [("delta.checkpointInterval".to_owned(), "4".to_owned()), ("flowbench.clusterBy".into(), "id".into())];
    let metadata = MetadataChange {
        properties: Some(properties.into()),
        comment: Some(Some("c".into())),
        ..MetadataChange::default()
    };
    table.commit(Commit { metadata, operation: "SET TBLPROPERTIES".into(), ..Commit::default() }).await.expect("set");
    for at in 0..5 {
        add_rows(&mut table, at * 2..at * 2 + 2).await;
    }
    let overwrite = Commit {
        removes: RemoveSet::Given(vec![table.files_at(table.version()).expect("files")[0].path.clone()]),
        operation: "WRITE".into(),
        ..Commit::default()
    };
    table.commit(overwrite).await.expect("removed one");
    let is_checkpointed = || log::list(dir.path()).expect("lists").expect("log").checkpoints.contains_key(&4);
    let wait = async {
        while !is_checkpointed() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("checkpointed when it was time");
    table.checkpoint_log().await.expect("checkpoint");
    let again = Table::open(dir.path()).expect("opens").expect("there");
    let facts = |table: &Table| {
        (
            table.version(),
            table.file_count(),
            table.row_count(),
            table.all_txns().clone(),
            table.properties(),
            table.comment().map(str::to_owned),
        )
    };
    assert_eq!(facts(&again), facts(&table));
    assert_eq!(again.state.files, table.state.files);
    assert_eq!(again.state.tombstones, table.state.tombstones);

    std::thread::sleep(Duration::from_millis(5));
    maintenance::clean_log(dir.path(), Duration::ZERO).expect("cleaned");
    let cleaned = Table::open(dir.path()).expect("opens").expect("there");
    assert_eq!(facts(&cleaned), facts(&table));
    let error = cleaned.changes(2, 7).expect_err("cleaned up");
    assert!(error.code() == "table-version-missing" && error.to_string().starts_with("version 3 "), "{error}");
    assert_eq!(table.state_at(2).expect_err("cleaned up").code(), "table-version-missing");
    let mut theirs = cleaned.delta_rs().expect("builds");
    theirs.load().await.expect("delta-rs starts at the checkpoint");
    let provider = theirs.table_provider().await.expect("provider");
    assert_eq!(ids(provider).await, table_ids(&table).await);
    let mut behind = again;
    behind.refresh().expect("still there");
    add_rows(&mut behind, 50..51).await;
}

#[tokio::test]
async fn what_another_program_changes_is_noticed() {
    let dir = TempDir::new().expect("folder");
    let mut ours = create(dir.path(), id_name(), &[]);
    add_rows(&mut ours, 0..3).await;
    let mut theirs = Table::open(dir.path()).expect("opens").expect("there");
    let comment = MetadataChange { comment: Some(Some("theirs".into())), ..MetadataChange::default() };
    theirs
        .commit(Commit { metadata: comment, operation: "COMMENT".into(), ..Commit::default() })
        .await
        .expect("changed");
    let files = write(&ours, &rows(3..4));
    let error = ours.commit(append(files, 1)).await.expect_err("noticed");
    assert_eq!(error.to_string(), "table `t` was changed by someone else: version 2, COMMENT");
    add_rows(&mut ours, 3..4).await;

    theirs.refresh().expect("refreshed");
    let path = theirs.files_at(theirs.version()).expect("files")[0].path.clone();
    let rewrite =
        || Commit { removes: RemoveSet::Given(vec![path.clone()]), operation: "MERGE".into(), ..Commit::default() };
    add_rows(&mut ours, 4..5).await;
    assert_eq!(theirs.commit(rewrite()).await.expect_err("rows were added meanwhile").code(), CONFLICT);
    theirs.commit(rewrite()).await.expect("planned again");
    ours.refresh().expect("refreshed");
    assert_eq!(ours.commit(rewrite()).await.expect_err("gone").code(), CONFLICT);

    std::fs::remove_dir_all(dir.path()).expect("dropped");
    assert_eq!(ours.refresh().expect_err("gone").code(), "table-gone");
    let id = ours.id().to_owned();
    let mut anew = create(dir.path(), id_name(), &[]);
    for at in 0..9 {
        add_rows(&mut anew, at..at + 1).await;
    }
    ours.refresh().expect("another table");
    assert_ne!(ours.id(), id);
    assert_eq!(ours.version(), anew.version());
}

#[tokio::test]
async fn broken_logs_are_named() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..3).await;
    std::fs::write(log::commit_path(dir.path(), 2), "{\"add\":{").expect("written");
    let error = Table::open(dir.path()).expect_err("broken");
    assert!(error.code() == "table-log-corrupted" && error.to_string().contains("00002.json"), "{error}");
    std::fs::remove_file(log::commit_path(dir.path(), 0)).expect("removed");
    std::fs::remove_file(log::commit_path(dir.path(), 2)).expect("removed");
    assert_eq!(Table::open(dir.path()).expect_err("a gap").code(), "table-version-missing");
    std::fs::write(dir.path().join("file"), "x").expect("written");
    assert_eq!(Table::open(dir.path().join("file")).expect_err("a file").code(), "not-a-table");
}

#[tokio::test]
async fn a_table_is_held_once_in_a_process() {
    let dir = TempDir::new().expect("folder");
    let tables = Tables::default();
    assert!(tables.get(dir.path()).expect("looks").is_none());
    let make = |dir: &Path| Table::create(dir, TableSpec { schema: Some(id_name()), ..TableSpec::default() });
    let one = tables.get_or_create(dir.path(), make).expect("created");
    let two = tables.clone().get(dir.path()).expect("looks").expect("there");
    assert!(Arc::ptr_eq(&one, &two));
    let flows = (0..4).map(|flow| {
        let table = Arc::clone(&one);
        tokio::spawn(async move {
            for batch in 0..5 {
                let files = write(&*table.lock().await, &rows(0..2));
                let commit = Commit { txns: vec![(format!("flow {flow}"), batch)], ..append(files, batch) };
                let commit =
                    Commit { txns: commit.txns.into_iter().filter(|(app, _)| app != "flow").collect(), ..commit };
                table.lock().await.commit(commit).await.expect("committed");
            }
        })
    });
    for flow in flows.collect::<Vec<_>>() {
        flow.await.expect("ran");
    }
    let table = one.lock().await;
    assert_eq!((table.version(), table.row_count()), (20, Some(40)));
}

#[tokio::test]
async fn tables_with_column_mapping_are_read_by_delta_rs_and_not_written() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    add_rows(&mut table, 0..3).await;
    let mut metadata = table.state.metadata.clone();
    metadata.schema_string = serde_json::json!({"type": "struct", "fields": [
        {"name": "the id", "type": "long", "nullable": true,
         "metadata": {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}},
        {"name": "name", "type": "string", "nullable": true,
         "metadata": {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "name"}}]})
    .to_string();
    let mapping = [("delta.columnMapping.mode", "name"), ("delta.columnMapping.maxColumnId", "2")];
    metadata.configuration = mapping.map(|(key, value)| (key.to_owned(), Some(value.to_owned()))).into();
    let protocol = action::Protocol { min_reader_version: 2, min_writer_version: 5, ..Default::default() };
    let actions = [
        Action { protocol: Some(protocol), ..Action::default() },
        Action { meta_data: Some(metadata), ..Action::default() },
    ];
    let lines = action::print_actions(&actions).expect("JSON");
    assert!(log::write_commit(dir.path(), 2, &lines).expect("written"));
    table.refresh().expect("refreshed");
    let read = query(table.provider(None).await.expect("provider"), "SELECT \"the id\", name FROM t").await;
    assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    assert_eq!(read[0].schema().field(1).data_type(), &DataType::Utf8, "not a view");
    let read = table.files_provider(table.files_at(2).expect("files")).await.expect("provider");
    assert_eq!(query(read, "SELECT \"the id\" FROM t").await.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    let error = table.commit(append(Vec::new(), 9)).await.expect_err("refused");
    assert_eq!(error.code(), "table-feature-unsupported");
}

#[tokio::test]
async fn other_engines_read_the_table() {
    let chosen = std::env::var_os("FLOWBENCH_TEST_PYTHON").map(PathBuf::from);
    let python: Vec<PathBuf> = chosen.into_iter().chain([PathBuf::from("python3")]).collect();
    let modules = |python: &PathBuf| {
        ["duckdb", "deltalake"]
            .into_iter()
            .filter(|module| {
                let import = Command::new(python).args(["-c", &format!("import {module}")]).output();
                import.is_ok_and(|output| output.status.success())
            })
            .collect::<Vec<_>>()
    };
    let found = python.iter().map(|python| (python, modules(python))).find(|(_, modules)| !modules.is_empty());
    let Some((python, modules)) = found else {
        println!("skipped: neither `duckdb` nor `deltalake` is installed for Python");
        return;
    };
    let dir = TempDir::new().expect("folder");
    let shape = schema(&[("id", DataType::Int64), ("name", DataType::Utf8)]);
    let mut shadow = create(&dir.path().join("gen-1"), shape, &["name"]);
    add_rows(&mut shadow, 0..60).await;
    let mut table = Table::create_from(dir.path(), "t", shadow, &[], "FULL REFRESH").expect("created");
    add_rows(&mut table, 60..70).await;
    for module in modules {
        let read = match module {
            "duckdb" => {
                "import duckdb; c = duckdb.connect(); c.execute('INSTALL delta; LOAD delta')\n\
                 print(c.execute(\"SELECT count(*), sum(id), count(name) FROM delta_scan('DIR')\").fetchone())"
            }
            _ => {
                "from deltalake import DeltaTable; t = DeltaTable('DIR').to_pyarrow_table()\n\
                 print((t.num_rows, sum(t['id'].to_pylist()), t.num_rows - t['name'].null_count))"
            }
        };
        let read = read.replace("DIR", &dir.path().display().to_string());
        let output = Command::new(python).args(["-c", &read]).output().expect("runs");
        let (shown, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if errors.contains("Failed to download extension") || errors.contains("No module named 'pyarrow'") {
            println!("skipped {module}: {}", errors.lines().last().unwrap_or_default());
            continue;
        }
        assert_eq!(shown.trim(), "(70, 2415, 60)", "{module}: {errors}");
    }
}

/// Not a test of what is right but of what it costs; the figures are printed.
#[tokio::test]
async fn a_small_batch_is_committed_quickly() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    let batch = rows(0..1000);
    let mut took = Vec::new();
    for at in 0..60 {
        let started = std::time::Instant::now();
        let files = write(&table, &batch);
        table.commit(append(files, at)).await.expect("committed");
        took.push(started.elapsed());
    }
    took.sort();
    let started = std::time::Instant::now();
    Table::open(dir.path()).expect("opens").expect("there");
    println!(
        "1,000 rows: p50 {:?}, max {:?}; open {:?}",
        took[took.len() / 2],
        took[took.len() - 1],
        started.elapsed()
    );
    assert!(took[0] < Duration::from_secs(1));
}

#[tokio::test]
async fn aggregates_of_nothing_have_a_row() {
    let dir = TempDir::new().expect("folder");
    let mut table = create(dir.path(), id_name(), &[]);
    for (files, filter) in [(0, "true"), (1, "id = 99")] {
        if files > 0 {
            add_rows(&mut table, 0..5).await;
        }
        let session = datafusion::prelude::SessionContext::new();
        session.register_table("t", table.provider(None).await.expect("provider")).expect("registered");
        let query = session.sql(&format!("SELECT count(*), sum(id) FROM t WHERE {filter}")).await.expect("planned");
        let rows = query.collect().await.expect("a scan without files runs");
        assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1, "{filter}");
    }
}
