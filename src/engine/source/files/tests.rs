//! File sources from end to end: files on disk in, rows of a query out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};
use pipeline::data_type::{DataType, Field};
use pipeline::read_files::*;
use pipeline::text::{FileId, Span};

use super::*;
use crate::error::{Error, Result};

/// The options of `read_files(path)` with their defaults.
pub fn read_files(path: &str) -> ReadFiles {
    ReadFiles {
        path: path.into(),
        path_span: Span::new(FileId(0), 0..0),
        format: FileFormat::Json,
        schema: None,
        schema_hints: vec![],
        infer_column_types: true,
        partition_columns: None,
        schema_evolution_mode: SchemaEvolutionMode::AddNewColumns,
        rescued_data_column: Some("_rescued_data".into()),
        reader_case_sensitive: true,
        max_files_per_trigger: 1000,
        max_bytes_per_trigger: None,
        include_existing_files: true,
        allow_overwrites: false,
        modified_after_us: None,
        modified_before_us: None,
        file_name_glob: None,
        recursive_file_lookup: false,
        ignore_corrupt_files: false,
        ignore_missing_files: false,
        use_strict_globber: true,
        parse_mode: ParseMode::Permissive,
        corrupt_record_column: None,
        multi_line: false,
        date_format: None,
        timestamp_format: None,
        time_zone: "UTC".into(),
        json: JsonOptions::default(),
        csv: CsvOptions {
            header: false,
            separator: ',',
            quote: Some('"'),
            escape: Some('\\'),
            comment: None,
            null_value: String::new(),
            empty_value: String::new(),
            nan_value: "NaN".into(),
            positive_infinity: "Inf".into(),
            negative_infinity: "-Inf".into(),
            skip_rows: 0,
            enforce_schema: true,
            ignore_leading_white_space: false,
            ignore_trailing_white_space: false,
            max_columns: 20480,
            prefer_date: true,
        },
        whole_text: false,
    }
}

/// Writes a file below `root` and returns its path.
pub fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

/// A file that is only a path.
pub fn entry(path: &str) -> FileEntry {
    FileEntry { path: path.into(), size: 0, modified_us: 0 }
}

/// Every file below `root`, as listed.
pub fn listed(root: &Path) -> Vec<FileEntry> {
    list(&read_files("."), root).unwrap().files
}

/// A source at work: its options, its folder, its schema as a flow would remember it.
struct Source {
    spec: ReadFiles,
    folder: tempfile::TempDir,
    schema: Option<SourceSchema>,
}

impl Source {
    fn new(format: FileFormat) -> Source {
        let spec = ReadFiles { format, ..read_files(".") };
        Source { spec, folder: tempfile::tempdir().unwrap(), schema: None }
    }

    fn with(mut self, change: impl FnOnce(&mut ReadFiles)) -> Source {
        change(&mut self.spec);
        self
    }

    fn file(self, path: &str, content: impl AsRef<[u8]>) -> Source {
        write(self.folder.path(), path, content);
        self
    }

    fn files(&self) -> Vec<FileEntry> {
        list(&self.spec, self.folder.path()).unwrap().files
    }

    fn schema(&mut self) -> SourceSchema {
        let files = self.files();
        self.schema.get_or_insert_with(|| infer(&self.spec, &files).unwrap()).clone()
    }

    fn evolve(&mut self) {
        let schema = self.schema();
        self.schema = Some(evolve(&self.spec, &schema, &self.files()).unwrap());
    }

    /// `name TYPE` of each column.
    fn columns(&mut self) -> Vec<String> {
        let show = |field: &arrow::datatypes::FieldRef| {
            let data_type = crate::data_type::from_arrow(field.data_type()).unwrap();
            format!("{} {data_type:?}", field.name())
        };
        self.schema().schema.fields().iter().map(show).collect()
    }

    fn run(&mut self, sql: &str) -> Result<Vec<String>> {
        self.run_on(sql, 2).map(|(rows, _)| rows)
    }

    fn rows(&mut self, sql: &str) -> Vec<String> {
        self.run(sql).unwrap()
    }

    /// Runs a query over `t`; the rows as text, sorted, cells separated by `|`, the folder's path as `$`.
    fn run_on(&mut self, sql: &str, threads: usize) -> Result<(Vec<String>, Arc<ScanCounters>)> {
        let counters = Arc::new(ScanCounters::default());
        let (schema, files) = (self.schema(), self.files());
        let spec = Arc::new(self.spec.clone());
        let table = table_provider(spec, &schema, files.into(), true, counters.clone());
        let config = SessionConfig::new().with_target_partitions(threads);
        let context = SessionContext::new_with_config(config);
        context.register_table("t", table).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let batches = runtime
            .block_on(async { context.sql(sql).await?.collect().await })
            .map_err(|error| Error::query("query", error))?;
        let folder = self.folder.path().display().to_string();
        let mut rows = Vec::new();
        for batch in &batches {
            let options = FormatOptions::default().with_null("NULL");
            let cells: Vec<_> =
                batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
            for row in 0..batch.num_rows() {
                let cells: Vec<String> = cells.iter().map(|cell| cell.value(row).to_string()).collect();
                rows.push(cells.join("|").replace(&folder, "$"));
            }
        }
        rows.sort();
        Ok((rows, counters))
    }
}

#[test]
fn json_lines_become_rows_and_misfits_are_rescued() {
    let mut source = Source::new(FileFormat::Json)
        .file("year=2024/a.json", "{\"id\":1,\"n\":5}\n{\"id\":2}\n")
        .file("year=2025/b.json", "{\"id\":3,\"n\":6}");
    assert_eq!(source.columns(), ["id Long", "n Long", "year Integer", "_rescued_data String"]);
    assert_eq!(source.rows("select id, n, year from t"), ["1|5|2024", "2|NULL|2024", "3|6|2025"]);
    // Behaviours B-42.
    source = source.file("year=2026/c.json", "{\"id\":4,\"n\":\"x1\"}\nno json\n");
    let rows = source.rows("select id, n, _rescued_data from t where year = 2026");
    let corrupt = r#"NULL|NULL|{"_corrupt_record":"no json","_file_path":"$/year=2026/c.json"}"#;
    assert_eq!(rows, [r#"4|NULL|{"n":"x1","_file_path":"$/year=2026/c.json"}"#, corrupt]);
}

#[test]
fn counting_needs_no_column() {
    let mut source = Source::new(FileFormat::Json).file("a.json", "{\"id\":1}\n{\"id\":2}\nno json\n");
    let (rows, counters) = source.run_on("select count(*) from t", 2).unwrap();
    assert_eq!(rows, ["3"]);
    assert_eq!(counters.rows.load(Relaxed), 3);
    assert_eq!(counters.corrupt_kept.load(Relaxed), 1);
    assert_eq!(counters.files.load(Relaxed), 1);
    assert_eq!(counters.bytes.load(Relaxed), 26);
}

#[test]
fn new_fields_end_the_scan_and_evolution_appends_them() {
    // Behaviours B-18.
    let mut source = Source::new(FileFormat::Json).file("a.json", r#"{"id":1,"s":{"x":1}}"#);
    source.schema();
    source = source.file("b.json", r#"{"id":2,"s":{"x":2,"y":"new"},"vip":true}"#);
    let error = source.run("select id from t").unwrap_err();
    assert!(matches!(&error, Error::UnknownFields { fields } if fields.contains(&"vip".to_string())), "{error}");
    source.evolve();
    let names: Vec<String> = source.schema().schema.fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["id", "s", "_rescued_data", "vip"]);
    let rows = source.rows("select id, s['x'], s['y'], vip, _rescued_data from t");
    assert_eq!(rows, ["1|1|NULL|NULL|NULL", "2|2|new|true|NULL"]);
}

#[test]
fn the_mode_decides_about_new_fields() {
    use SchemaEvolutionMode::*;
    for (mode, rescued, expected) in [
        (Rescue, Some("_rescued_data".to_string()), Ok(r#"{"vip":true,"_file_path":"$/b.json"}"#)),
        (None, Some("_rescued_data".to_string()), Ok(r#"{"vip":true,"_file_path":"$/b.json"}"#)),
        (FailOnNewColumns, Some("_rescued_data".to_string()), Err("new-columns")),
        (AddNewColumns, Some("_rescued_data".to_string()), Err("unknown-fields")),
        (None, Option::None, Ok("2")),
    ] {
        let mut source = Source::new(FileFormat::Json).file("a.json", r#"{"id":1}"#).with(|spec| {
            spec.schema_evolution_mode = mode;
            spec.rescued_data_column = rescued.clone();
        });
        source.schema();
        source = source.file("b.json", r#"{"id":2,"vip":true}"#);
        let column = if rescued.is_some() { "_rescued_data" } else { "id" };
        let result = source.run(&format!("select {column} from t where id = 2"));
        assert_eq!(result.map_err(|error| error.code()), expected.map(|row| vec![row.to_string()]), "{mode:?}");
    }
}

#[test]
fn columns_are_found_whatever_the_order_of_files_and_values() {
    let texts = [r#"{"n":1,"s":{"a":1}}"#, r#"{"n":2.5,"s":{"b":"x"}}"#, r#"{"n":"x","m":null}"#];
    let mut seen = Vec::new();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut source = Source::new(FileFormat::Json);
        for (name, text) in ["a", "b", "c"].iter().zip(order) {
            source = source.file(&format!("{name}.json"), texts[text]);
        }
        seen.push(source.columns());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    assert!(seen[0].contains(&"n String".to_string()), "{:?}", seen[0]);
}

#[test]
fn hints_and_options_win_over_what_was_found() {
    let hint = |name: &str, data_type| Field { name: name.into(), data_type, is_nullable: true, comment: None };
    let mut source = Source::new(FileFormat::Json).file("y=1/a.json", r#"{"n":1,"s":{"x":1},"l":[1]}"#).with(|spec| {
        spec.schema_hints = vec![
            hint("n", DataType::String),
            hint("s.x", DataType::Double),
            hint("l.element", DataType::Integer),
            hint("y", DataType::String),
            hint("new", DataType::Date),
        ];
    });
    let columns = source.columns();
    assert_eq!(columns[0], "l Array(Integer)");
    assert_eq!(columns[1], "n String");
    assert!(columns[2].contains("Double"), "{}", columns[2]);
    assert_eq!(columns[3..], ["y String", "new Date", "_rescued_data String"]);
    // Behaviours B-16.
    let mut source =
        Source::new(FileFormat::Json).file("a.json", r#"{"n":1}"#).with(|spec| spec.infer_column_types = false);
    assert_eq!(source.columns(), ["n String", "_rescued_data String"]);
}

#[test]
fn a_remembered_schema_is_the_same() {
    let mut source = Source::new(FileFormat::Json).file("y=1/a.json", r#"{"n":1,"s":{"x":[1.5]},"t":"2024-01-01"}"#);
    let schema = source.schema();
    assert_eq!(SourceSchema::from_json(&schema.to_json()).unwrap(), schema);
}

#[test]
fn the_paths_value_wins_over_the_files() {
    let mut source = Source::new(FileFormat::Json)
        .file("year=2024/a.json", r#"{"id":1,"year":1999}"#)
        .file("b.json", r#"{"id":2,"year":1999}"#);
    assert_eq!(source.rows("select id, year, _rescued_data from t"), ["1|2024|NULL", "2|NULL|NULL"]);
    // A value of a path that doesn't fit any more is rescued like one of a file.
    source = source.file("year=x/c.json", r#"{"id":3}"#);
    assert_eq!(
        source.rows("select id, year, _rescued_data from t where id = 3"),
        [r#"3|NULL|{"year":"x","_file_path":"$/year=x/c.json"}"#]
    );
}

#[test]
fn each_row_knows_its_file() {
    let mut source = Source::new(FileFormat::Json).file("y=1/a.json", "{\"id\":1}\n");
    let sql = "select _metadata['file_path'], _metadata['file_name'], _metadata['file_size'], \
               _metadata['file_block_start'], _metadata['file_block_length'] from t";
    assert_eq!(source.rows(sql), ["$/y=1/a.json|a.json|9|0|9"]);
}

#[test]
fn big_files_are_shared_between_threads_and_lose_nothing() {
    let mut text = String::new();
    for id in 0..100_000 {
        text += &format!("{{\"id\":{id},\"pad\":\"{}\"}}\n", "x".repeat(id % 40));
    }
    let mut source = Source::new(FileFormat::Json).file("big.json", &text).file("small.json", "{\"id\":-1}");
    for threads in [1, 2, 5] {
        let sql = "select count(*), count(distinct id), sum(id), sum(length(pad)) from t";
        let (rows, counters) = source.run_on(sql, threads).unwrap();
        assert_eq!(rows, ["100001|100001|4999949999|1950000"], "{threads}");
        assert_eq!(counters.files.load(Relaxed), 2);
        assert_eq!(counters.bytes.load(Relaxed), text.len() as u64 + 9);
    }
}

#[test]
fn csv_types_and_headers_are_found() {
    let mut source = Source::new(FileFormat::Csv).with(|spec| spec.csv.header = true).file(
        "a.csv",
        "id,big,x,day,at,ok,name\n1,3000000000,1.5,2024-02-29,2024-02-29T01:02:03Z,true,\"a,b\"\n2,,,,,,\n",
    );
    assert_eq!(
        source.columns(),
        [
            "id Integer",
            "big Long",
            "x Double",
            "day Date",
            "at Timestamp",
            "ok Boolean",
            "name String",
            "_rescued_data String"
        ]
    );
    assert_eq!(
        source
            .rows("select * from (select * from t)")
            .iter()
            .map(|row| row.split('|').take(8).collect::<Vec<_>>().join("|"))
            .collect::<Vec<_>>(),
        ["1|3000000000|1.5|2024-02-29|2024-02-29T01:02:03Z|true|a,b|NULL", "2|NULL|NULL|NULL|NULL|NULL|NULL|NULL"]
    );
}

#[test]
fn csv_columns_go_by_name_and_misfits_are_rescued() {
    let mut source = Source::new(FileFormat::Csv).with(|spec| spec.csv.header = true).file("a.csv", "id,n\n1,5\n");
    source.schema();
    source = source.with(|spec| spec.schema_evolution_mode = SchemaEvolutionMode::Rescue);
    source = source.file("b.csv", "n,id,vip\nx,2,yes\n7,3\n");
    let rescued = r#"2|NULL|{"n":"x","vip":"yes","_file_path":"$/b.csv"}"#;
    let corrupt = r#"3|7|{"_corrupt_record":"7,3","_file_path":"$/b.csv"}"#;
    let (rows, counters) = source.run_on("select id, n, _rescued_data from t", 2).unwrap();
    assert_eq!(rows, ["1|5|NULL", rescued, corrupt]);
    assert_eq!(counters.rescued_values.load(Relaxed), 2);
    assert_eq!(counters.corrupt_kept.load(Relaxed), 1);
    assert_eq!(counters.unknown_fields().into_keys().collect::<Vec<_>>(), ["vip"]);
    source = source.with(|spec| spec.parse_mode = ParseMode::DropMalformed);
    assert_eq!(source.rows("select id, n from t"), ["1|5", "2|NULL"]);
    source = source.with(|spec| spec.parse_mode = ParseMode::FailFast);
    assert_eq!(source.run("select id, n from t").unwrap_err().code(), "malformed-record");
}

#[test]
fn csv_without_header_has_numbered_columns() {
    let mut source = Source::new(FileFormat::Csv).file("a.csv", "1,x\n2,y\n");
    assert_eq!(source.columns(), ["_c0 Integer", "_c1 String", "_rescued_data String"]);
    assert_eq!(source.rows("select _c1, _c0 from t"), ["x|1", "y|2"]);
}

#[test]
fn csv_over_many_lines_and_in_parts_is_read_whole() {
    let mut text = String::from("id,text\n");
    for id in 0..60_000 {
        text += &format!("{id},\"line {id}\"\n");
    }
    let mut source = Source::new(FileFormat::Csv).with(|spec| spec.csv.header = true).file("a.csv", &text);
    for (threads, multi_line) in [(1, false), (3, false), (3, true)] {
        source.spec.multi_line = multi_line;
        let (rows, _) = source.run_on("select count(*), sum(id), count(distinct text) from t", threads).unwrap();
        assert_eq!(rows, ["60000|1799970000|60000"]);
    }
    let mut source = Source::new(FileFormat::Csv).file("a.csv", "1,\"a\nb\"\n").with(|spec| spec.multi_line = true);
    assert_eq!(source.rows("select _c0, replace(_c1, chr(10), '/') from t"), ["1|a/b"]);
}

#[test]
fn packed_files_are_unpacked() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"id\":1}\n").unwrap();
    let mut source = Source::new(FileFormat::Json)
        .file("a.json.gz", gzip.finish().unwrap())
        .file("b.json.zst", zstd::encode_all(&b"{\"id\":2}"[..], 1).unwrap());
    assert_eq!(source.rows("select id from t"), ["1", "2"]);
    source = source.file("c.json.bz2", "BZh9");
    assert_eq!(source.run("select id from t").unwrap_err().code(), "unsupported-compression");
}

#[test]
fn files_that_cannot_be_read_fail_or_are_counted() {
    let mut source = Source::new(FileFormat::Json).file("a.json", r#"{"id":1}"#);
    source.schema();
    source = source.file("b.json.gz", "this is no gzip");
    let error = source.run("select id from t").unwrap_err();
    assert_eq!(error.code(), "corrupt-file");
    assert!(error.to_string().contains("b.json.gz"), "{error}");
    source.spec.ignore_corrupt_files = true;
    let (rows, counters) = source.run_on("select id from t", 2).unwrap();
    assert_eq!((rows, counters.files_skipped.load(Relaxed)), (vec!["1".to_string()], 1));
}

#[test]
fn text_is_lines_or_a_whole_file() {
    let mut source = Source::new(FileFormat::Text).file("k=1/a.txt", "one\r\ntwo\n\nfour");
    assert_eq!(source.columns(), ["value String", "k Integer"]);
    assert_eq!(source.rows("select value, k from t"), ["four|1", "one|1", "two|1", "|1"]);
    source.spec.whole_text = true;
    assert_eq!(source.rows("select length(value) from t"), ["14"]);
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet_bytes(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn avro_bytes(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow_avro::writer::AvroWriter::new(Vec::new(), batch.schema().as_ref().clone()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner()
}

#[test]
fn typed_files_merge_their_types_and_rescue_what_does_not_fit() {
    let old = batch(vec![
        ("id", Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        ("name", Arc::new(StringArray::from(vec!["a"]))),
    ]);
    let new = batch(vec![("id", Arc::new(Int64Array::from(vec![1 << 40])) as ArrayRef)]);
    let odd = batch(vec![
        ("name", Arc::new(Int32Array::from(vec![7])) as ArrayRef),
        ("id", Arc::new(StringArray::from(vec!["x"]))),
        ("extra", Arc::new(Int32Array::from(vec![9]))),
    ]);
    type Write = fn(&RecordBatch) -> Vec<u8>;
    for (format, bytes) in [(FileFormat::Parquet, parquet_bytes as Write), (FileFormat::Avro, avro_bytes as Write)] {
        let mut source = Source::new(format).file("y=1/a", bytes(&old)).file("y=2/b", bytes(&new));
        assert_eq!(source.columns(), ["id Long", "name String", "y Integer", "_rescued_data String"], "{format:?}");
        assert_eq!(source.rows("select y, id, name from t"), ["1|1|a", "2|1099511627776|NULL"]);
        assert_eq!(source.rows("select count(*) from t"), ["2"]);
        assert_eq!(source.rows("select name from t"), ["NULL", "a"]);
        source = source.file("y=3/c", bytes(&odd));
        assert_eq!(source.run("select id from t").unwrap_err().code(), "unknown-fields");
        source.spec.schema_evolution_mode = SchemaEvolutionMode::Rescue;
        assert_eq!(
            source.rows("select id, name, _rescued_data from t where y = 3"),
            [r#"NULL|7|{"id":"x","extra":9,"_file_path":"$/y=3/c"}"#]
        );
        source = source.file("y=4/d", "no such format");
        assert_eq!(source.run("select id from t").unwrap_err().code(), "corrupt-file");
    }
}

#[test]
fn widening_changes_types_only_in_its_mode() {
    let narrow = batch(vec![("n", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]);
    let wide = batch(vec![("n", Arc::new(Int64Array::from(vec![1 << 40])) as ArrayRef)]);
    for (mode, columns) in [
        (SchemaEvolutionMode::AddNewColumns, "n Integer"),
        (SchemaEvolutionMode::AddNewColumnsWithTypeWidening, "n Long"),
    ] {
        let mut source = Source::new(FileFormat::Parquet)
            .file("a.parquet", parquet_bytes(&narrow))
            .with(|spec| spec.schema_evolution_mode = mode);
        source.schema();
        source = source.file("b.parquet", parquet_bytes(&wide));
        source.evolve();
        assert_eq!(source.columns()[0], columns);
        let kept = if columns == "n Long" { "1099511627776" } else { "NULL" };
        assert_eq!(source.rows("select n from t"), ["1", kept]);
    }
}

#[test]
fn an_empty_source_has_the_columns_that_are_known_without_files() {
    let mut source = Source::new(FileFormat::Json);
    assert_eq!(source.columns(), ["_rescued_data String"]);
    assert_eq!(source.rows("select count(*) from t"), ["0"]);
}

#[test]
fn a_declared_schema_reads_csv_by_position_and_knows_its_partitions() {
    let column = |name: &str, data_type| Field { name: name.into(), data_type, is_nullable: false, comment: None };
    let mut source = Source::new(FileFormat::Csv).file("y=1/a.csv", "x,1\ny,z\n").with(|spec| {
        spec.schema =
            Some(vec![column("name", DataType::String), column("n", DataType::Short), column("y", DataType::Long)]);
        spec.schema_evolution_mode = SchemaEvolutionMode::None;
        spec.rescued_data_column = None;
    });
    assert_eq!(source.columns(), ["name String", "n Short", "y Long"]);
    assert_eq!(source.schema().partition, ["y"]);
    assert_eq!(source.rows("select * exclude (_metadata) from t"), ["x|1|1", "y|NULL|1"]);
    // Without rescue a value that doesn't fit makes its record malformed.
    source.spec.parse_mode = ParseMode::DropMalformed;
    assert_eq!(source.rows("select name from t"), ["x", "y"]);
    assert_eq!(source.rows("select name, n from t"), ["x|1"]);
    source.spec.csv.header = true;
    source.spec.csv.enforce_schema = false;
    assert_eq!(source.run("select name from t").unwrap_err().code(), "csv-header-differs");
}

#[test]
fn a_new_folder_level_is_a_new_column() {
    let mut source = Source::new(FileFormat::Json).file("y=1/a.json", r#"{"id":1}"#);
    source.schema();
    source = source.file("y=2/m=3/b.json", r#"{"id":2}"#);
    assert_eq!(source.run("select id from t").unwrap_err().code(), "unknown-fields");
    source.evolve();
    assert_eq!(source.rows("select id, y, m from t"), ["1|1|NULL", "2|2|3"]);
}

#[test]
fn a_file_that_vanished_fails_or_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.json", r#"{"id":1}"#), ("b.json", r#"{"id":2}"#)] {
        write(folder.path(), name, text);
    }
    let files = listed(folder.path());
    std::fs::remove_file(folder.path().join("b.json")).unwrap();
    assert_eq!(infer(&read_files("."), &files).unwrap_err().code(), "file-missing");
    let spec = ReadFiles { ignore_missing_files: true, ..read_files(".") };
    assert_eq!(infer(&spec, &files).unwrap().schema.fields().len(), 2);
}

#[test]
fn dates_without_zone_are_read_in_the_sources_zone() {
    for (time_zone, expected) in [("UTC", "2024-07-01T12:00:00Z"), ("America/Chicago", "2024-07-01T17:00:00Z")] {
        let mut source = Source::new(FileFormat::Csv).file("a.csv", "2024-07-01 12:00:00\n");
        source.spec.time_zone = time_zone.into();
        assert_eq!(source.rows("select _c0 from t"), [expected]);
    }
}

#[test]
fn a_reader_that_stops_early_ends_the_scan() {
    let mut source = Source::new(FileFormat::Text).file("a.txt", "line\n".repeat(4_000_000));
    let (rows, counters) = source.run_on("select value from t limit 3", 2).unwrap();
    assert_eq!(rows, ["line", "line", "line"]);
    assert!(counters.rows.load(Relaxed) < 2_000_000);
}
