//! Tests of the storage layer as a whole: what is written is read back, by us, by delta-rs and by other engines.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, SchemaRef, TimeUnit};
use arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::TableProvider;
use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;

use super::*;

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect::<Vec<_>>()))
}

fn id_name() -> SchemaRef {
    schema(&[("id", DataType::Int64), ("name", DataType::Utf8)])
}

fn rows(ids: std::ops::Range<i64>) -> RecordBatch {
    let names: StringArray = ids.clone().map(|id| (id % 7 != 3).then(|| format!("name {id}"))).collect();
    let ids = Int64Array::from_iter_values(ids);
    RecordBatch::try_new(id_name(), vec![Arc::new(ids), Arc::new(names)]).expect("batch")
}

fn create(dir: &Path, schema: SchemaRef, partition_by: &[&str]) -> Table {
    let spec = TableSpec {
        name: "t".into(),
        schema: Some(schema),
        partition_by: partition_by.iter().map(|name| (*name).to_owned()).collect(),
        ..TableSpec::default()
    };
    Table::create(dir, spec).expect("created")
}

fn write(table: &Table, batch: &RecordBatch) -> Vec<DataFile> {
    let mut writer = table.writer(WriterOptions::default()).expect("writer");
    writer.write(batch).expect("written");
    writer.finish().expect("finished")
}

fn append(adds: Vec<DataFile>, batch_id: i64) -> Commit {
    Commit { adds, txns: vec![("flow".into(), batch_id)], operation: "STREAMING UPDATE".into(), ..Commit::default() }
}

async fn add_rows(table: &mut Table, ids: std::ops::Range<i64>) -> i64 {
    let batch_id = table.txn("flow").map_or(0, |last| last + 1);
    let files = write(table, &rows(ids));
    table.commit(append(files, batch_id)).await.expect("committed")
}

async fn query(provider: Arc<dyn TableProvider>, sql: &str) -> Vec<RecordBatch> {
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    session.register_table("t", provider).expect("registered");
    session.sql(sql).await.expect("planned").collect().await.expect("ran")
}

async fn text(provider: Arc<dyn TableProvider>, sql: &str) -> String {
    pretty_format_batches(&query(provider, sql).await).expect("formats").to_string()
}

async fn ids(provider: Arc<dyn TableProvider>) -> Vec<i64> {
    let batches = query(provider, "SELECT id FROM t ORDER BY id").await;
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

async fn table_ids(table: &Table) -> Vec<i64> {
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
