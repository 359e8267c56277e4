//! File sources from end to end: files on disk in, rows of a query out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};
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
