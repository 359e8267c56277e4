//! A temporary folder of workspaces, and what a script does with them, in this process.

use std::io::Write;
use std::path::PathBuf;

use engine::error::Error;
use engine::{Engine, ShowOptions, Stop};
use pipeline::diagnostic::Diagnostic;
use pipeline::plan::UpdateRequest;
use pipeline::report::{Description, Rows, UpdateReport};
use pipeline::text::{SourceFile, line_column};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::unbounded_channel;

/// Failures that may pass are retried with pauses, which tests don't wait for.
const SETTINGS: &str = "[pipeline]\nname = \"script\"\n\n[limits]\nretries = 0\n";

pub struct Workbench {
    folder: tempfile::TempDir,
    root: PathBuf,
    runtime: Runtime,
}

impl Workbench {
    pub fn new() -> Workbench {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Workbench { folder, root, runtime }
    }

    /// Does a step and returns what it says; None if the text below it is input.
    pub fn step(&mut self, word: &str, rest: &str, body: &str) -> Option<String> {
        match word {
            "FILE" => self.write(rest, format!("{}\n", body.trim_end()).as_bytes()),
            "PARQUET" | "AVRO" => {
                let (path, query) = rest.split_once(' ').expect("a path and a query");
                let batches = self.runtime.block_on(rows_of(query));
                self.write(path, &if word == "AVRO" { avro(&batches) } else { parquet(&batches) });
            }
            "REMOVE" => std::fs::remove_file(self.root.join(rest)).unwrap(),
            "WORKSPACE" => self.root = self.folder.path().canonicalize().unwrap().join(rest),
            "VALIDATE" => return Some(self.validate()),
            "RUN" => return Some(self.run(rest)),
            "SHOW" => {
                let shown = self.runtime.block_on(async { self.engine(&[])?.show(rest, ShowOptions::default()).await });
                return Some(self.rows(shown, true));
            }
            "DESCRIBE" => {
                let described = self.runtime.block_on(async { self.engine(&[])?.describe(rest).await });
                return Some(described.map_or_else(|error| self.error(error, &[]), |found| description(&found)));
            }
            "SQL" => {
                let rows = self.runtime.block_on(async { self.engine(&[])?.sql(rest, None).await });
                return Some(self.rows(rows, false));
            }
            other => panic!("unknown step: {other}"),
        }
        None
    }

    fn engine(&self, overrides: &[(String, String)]) -> engine::error::Result<Engine> {
        if !self.root.join("flowbench.toml").exists() {
            self.write("flowbench.toml", SETTINGS.as_bytes());
        }
        Engine::open(&self.root, overrides)
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let packed = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => {
                let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                packer.write_all(content).unwrap();
                packer.finish().unwrap()
            }
            Some("zst") => zstd::encode_all(content, 1).unwrap(),
            _ => content.to_vec(),
        };
        std::fs::write(path, packed).unwrap();
    }

    fn validate(&self) -> String {
        let engine = match self.engine(&[]) {
            Ok(engine) => engine,
            Err(error) => return self.error(error, &[]),
        };
        let files = engine.workspace().files.clone();
        match self.runtime.block_on(engine.analyse()) {
            Ok(analysis) if analysis.diagnostics.is_empty() => "valid".to_string(),
            Ok(analysis) => self.diagnostics(&files, &analysis.diagnostics),
            Err(error) => self.error(error, &files),
        }
    }

    fn run(&self, arguments: &str) -> String {
        let (request, overrides) = request(arguments);
        let engine = match self.engine(&overrides) {
            Ok(engine) => engine,
            Err(error) => return self.error(error, &[]),
        };
        let (events, _kept) = unbounded_channel();
        match self.runtime.block_on(engine.run(request, events, Stop::new())) {
            Ok(report) => self.hide(&update(&report)),
            Err(error) => self.error(error, &engine.workspace().files),
        }
    }

    fn rows(&self, rows: engine::error::Result<Rows>, is_sorted: bool) -> String {
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return self.error(error, &[]),
        };
        let columns = rows.columns.iter().map(|column| format!("{} {}", column.name, column.data_type));
        let head = columns.collect::<Vec<_>>().join(" | ");
        let mut lines: Vec<String> = rows
            .rows
            .iter()
            .map(|row| {
                let values = row.iter().map(|value| match value.as_deref() {
                    None => "NULL".to_string(),
                    Some("") => "(empty)".to_string(),
                    Some(text) => text.replace('\n', "\\n"),
                });
                values.collect::<Vec<_>>().join(" | ")
            })
            .collect();
        if is_sorted {
            lines.sort();
        }
        self.hide(&[vec![head], lines].concat().join("\n"))
    }

    fn error(&self, error: Error, files: &[SourceFile]) -> String {
        match &error {
            Error::Invalid { diagnostics } => self.diagnostics(files, diagnostics),
            Error::InvalidSql { text, diagnostics } => self.diagnostics(&[Engine::sql_file(text)], diagnostics),
            error => {
                let help = error.help().map(|help| format!("\n  help: {help}")).unwrap_or_default();
                self.hide(&format!("error[{}] {error}{help}", error.code()))
            }
        }
    }

    fn diagnostics(&self, files: &[SourceFile], diagnostics: &[Diagnostic]) -> String {
        let lines = diagnostics.iter().map(|diagnostic| {
            let place = |span: pipeline::text::Span| {
                let Some(file) = files.get(span.file.0) else { return "?".to_string() };
                let at = line_column(&file.text, span.start);
                format!("{}:{}:{}", file.path, at.line, at.column)
            };
            let at = diagnostic.span.map_or_else(|| "workspace".to_string(), place);
            let mut line = format!("{at} {}[{}] {}", diagnostic.severity.word(), diagnostic.code, diagnostic.message);
            for label in &diagnostic.labels {
                line.push_str(&format!("\n  {}: {}", place(label.span), label.message));
            }
            for (word, text) in [("why", &diagnostic.reason), ("help", &diagnostic.help)] {
                if let Some(text) = text {
                    line.push_str(&format!("\n  {word}: {text}"));
                }
            }
            line
        });
        self.hide(&lines.collect::<Vec<_>>().join("\n"))
    }

    /// The text without the folder's name, which is another one each time.
    fn hide(&self, text: &str) -> String {
        let folder = self.folder.path().canonicalize().unwrap();
        text.replace(folder.to_str().unwrap(), "<folder>")
    }
}

/// The arguments of `flowbench run` that scripts use.
fn request(arguments: &str) -> (UpdateRequest, Vec<(String, String)>) {
    let mut request = UpdateRequest { is_confirmed: true, ..UpdateRequest::default() };
    let mut overrides = Vec::new();
    let mut words = arguments.split_whitespace();
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the argument").to_string();
        match word {
            "--refresh" => request.refresh.push(value()),
            "--full-refresh" => request.full_refresh.push(value()),
            "--with-downstream" => request.with_downstream = true,
            "--set" => {
                let value = value();
                let (key, value) = value.split_once('=').expect("key=value");
                overrides.push((key.to_string(), value.to_string()));
            }
            other => panic!("unknown argument: {other}"),
        }
    }
    (request, overrides)
}

/// An update's end: state, flows with rows, failures, notices.
fn update(report: &UpdateReport) -> String {
    let mut flows: Vec<String> = report
        .flows
        .iter()
        .map(|flow| {
            let metrics = &flow.metrics;
            let mut line = format!("{} {} {} rows", flow.flow, flow.state.word(), metrics.rows_out);
            for (count, what) in [(metrics.rescued_values, "rescued"), (metrics.corrupt_records, "corrupt")] {
                if count > 0 {
                    line.push_str(&format!(", {count} {what}"));
                }
            }
            if let Some(error) = &flow.error {
                line.push_str(&format!("\n  error[{}] {}", error.code, error.message));
                if let Some(help) = &error.help {
                    line.push_str(&format!("\n  help: {help}"));
                }
            }
            line
        })
        .collect();
    flows.sort();
    let notices = report.notices.iter().map(|notice| format!("notice[{}] {}", notice.code, notice.message));
    let mut lines = vec![report.state.word().to_string()];
    lines.extend(flows);
    lines.extend(notices);
    lines.join("\n")
}

/// What a definition says besides its query.
fn description(found: &Description) -> String {
    let mut lines = vec![format!("{} {}", found.status.kind, found.status.name)];
    lines.extend(found.status.comment.iter().map(|comment| format!("comment: {comment}")));
    for column in &found.columns {
        let null = if column.is_nullable { "" } else { " NOT NULL" };
        let comment = column.comment.as_ref().map(|comment| format!(" -- {comment}")).unwrap_or_default();
        lines.push(format!("  {} {}{null}{comment}", column.name, column.data_type));
    }
    for (word, names) in [
        ("partitioned by", &found.partition_by),
        ("clustered by", &found.cluster_by),
        ("reads", &found.upstream),
        ("read by", &found.downstream),
    ] {
        if !names.is_empty() {
            lines.push(format!("{word}: {}", names.join(", ")));
        }
    }
    lines.extend(found.properties.iter().map(|(key, value)| format!("property: {key} = {value}")));
    lines.extend(found.flows.iter().map(|flow| format!("flow: {} {}", flow.name, flow.state.word())));
    lines.extend(found.defined_at.iter().map(|place| format!("defined at {place}")));
    lines.join("\n")
}

/// The rows of a query that reads nothing, in plain DataFusion.
async fn rows_of(query: &str) -> Vec<arrow::array::RecordBatch> {
    let frame = datafusion::prelude::SessionContext::new().sql(query).await.expect("the query plans");
    frame.collect().await.expect("the query runs")
}

fn parquet(batches: &[arrow::array::RecordBatch]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut out, batches[0].schema(), None).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
    out
}

fn avro(batches: &[arrow::array::RecordBatch]) -> Vec<u8> {
    let schema = batches[0].schema().as_ref().clone();
    let mut writer = arrow_avro::writer::AvroWriter::new(Vec::new(), schema).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    writer.into_inner()
}
