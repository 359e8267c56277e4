//! Temporary workspaces for tests of the whole program: files go in, the real program runs, rows come out.
//!
//! Fixture F of the behaviours: `data/event_registration/year=Y/month=MM/day=DD/*.json`, rows
//! `{"id":n,"timestamp":"Y-MM-DDThh:mm:ss"}`, file times set as if each file was written on its day.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltalake_core::protocol::SaveMode;
use deltalake_core::{DeltaTable, DeltaTableBuilder};
use engine::Engine;
use serde_json::Value;
use tempfile::TempDir;
use url::Url;

/// The root of fixture F below a workspace.
pub const EVENTS: &str = "data/event_registration";

/// Runs what the engine gives back as futures.
pub static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());

/// A copy of the examples and their data, as in a clone, without what runs left there.
pub fn clone_of_the_examples() -> TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    for part in ["workspaces", "samples"] {
        copy(&root.join(part), &folder.path().join(part));
    }
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder is made");
    for entry in std::fs::read_dir(from).expect("a folder is read") {
        let entry = entry.expect("an entry is read");
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().expect("an entry has a type").is_dir() {
            true if entry.file_name() == ".flowbench" => {}
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).expect("a file is copied")),
        }
    }
}

/// A workspace folder that goes away with the test.
pub struct TestWorkspace {
    folder: TempDir,
}

impl TestWorkspace {
    /// An empty folder.
    pub fn empty() -> TestWorkspace {
        TestWorkspace { folder: tempfile::tempdir().unwrap() }
    }

    /// An empty workspace whose only definition file holds `sql`.
    pub fn new(sql: &str) -> TestWorkspace {
        let workspace = TestWorkspace::empty();
        workspace.write("flowbench.toml", "");
        workspace.define(sql);
        workspace
    }

    /// Replaces the SQL definitions.
    pub fn define(&self, sql: &str) {
        self.write("transformations/pipeline.sql", sql);
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file below the workspace, with the folders it needs.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Removes a file or a folder.
    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        match path.is_dir() {
            true => std::fs::remove_dir_all(path).unwrap(),
            false => std::fs::remove_file(path).unwrap(),
        }
    }

    /// Sets a file's modification time, as `touch -d` does.
    pub fn set_time(&self, path: &str, time: &str) {
        let us = pipeline::timestamp::parse_timestamp_us(time, "UTC").unwrap();
        let file = std::fs::File::options().append(true).open(self.path(path)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_micros(us as u64)).unwrap();
    }

    /// Fixture F: `n` events of a year, one file each, on the first days of January; ids `year * 100 + 1 …`.
    pub fn events(&self, year: i32, n: i32) {
        for day in 1..=n {
            self.event(year, day, year * 100 + day, "");
        }
    }

    /// One event file of fixture F; `more` are further fields: `,"vip":true`.
    pub fn event(&self, year: i32, day: i32, id: i32, more: &str) {
        let path = format!("{EVENTS}/year={year}/month=01/day={day:02}/{id}.json");
        self.write(&path, format!("{{\"id\":{id},\"timestamp\":\"{year}-01-{day:02}T10:00:00\"{more}}}\n"));
        self.set_time(&path, &format!("{year}-01-{day:02}T12:00:00Z"));
    }

    /// Runs `flowbench run` with these arguments.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.command(&[&["run"], arguments].concat())
    }

    /// Runs an update that must succeed.
    pub fn run_ok(&self, arguments: &[&str]) -> Outcome {
        let outcome = self.run(arguments);
        assert_eq!((outcome.code, outcome.state()), (Some(0), "COMPLETED"), "{outcome}");
        outcome
    }

    /// Runs any command with `--json`.
    pub fn command(&self, arguments: &[&str]) -> Outcome {
        self.command_with(arguments, &[])
    }

    /// Runs any command with `--json` and more environment.
    pub fn command_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
        let output = self.program(arguments, environment).output().expect("the program starts");
        Outcome::of(output)
    }

    /// Starts an update and leaves it running.
    pub fn start(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let mut child = self.program(&[&["run"], arguments].concat(), environment).spawn().expect("the program starts");
        let stderr = Arc::new(Mutex::new(String::new()));
        let (pipe, text) = (child.stderr.take().unwrap(), stderr.clone());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                *text.lock().unwrap() += &(line + "\n");
            }
        });
        Running { child: Some(child), stderr, reader: Some(reader) }
    }

    fn program(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowbench"));
        command
            .args(arguments)
            .arg("--json")
            .current_dir(self.root())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The engine of this workspace, in this process.
    pub fn engine(&self) -> Engine {
        Engine::open(self.root(), &[]).unwrap()
    }

    /// The rows of a query over the workspace's datasets: values joined by `|`, NULL as `null`.
    pub fn rows(&self, query: &str) -> Vec<String> {
        let rows = RUNTIME.block_on(self.engine().sql(query, None)).unwrap_or_else(|e| panic!("{query}: {e:?}"));
        rows.rows
            .iter()
            .map(|row| row.iter().map(|value| value.as_deref().unwrap_or("null")).collect::<Vec<_>>().join("|"))
            .collect()
    }

    /// The single value of a query.
    pub fn value(&self, query: &str) -> String {
        let rows = self.rows(query);
        assert_eq!(rows.len(), 1, "{query}: {rows:?}");
        rows[0].clone()
    }

    pub fn count(&self, dataset: &str) -> u64 {
        self.value(&format!("SELECT count(*) FROM {dataset}")).parse().unwrap()
    }

    /// Names and types of a dataset's columns, as `name TYPE`.
    pub fn columns(&self, dataset: &str) -> Vec<String> {
        let rows = RUNTIME.block_on(self.engine().sql(&format!("SELECT * FROM {dataset}"), Some(0))).unwrap();
        rows.columns.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect()
    }

    /// A flow's entry of `flowbench status`.
    pub fn flow_status(&self, flow: &str) -> Value {
        let status = self.command(&["status"]);
        find(&status.result["flows"], "name", flow)
    }
}

/// An update that runs in its own process; killed if the test ends before it does.
pub struct Running {
    child: Option<Child>,
    /// What it has said so far.
    stderr: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// Sends SIGTERM.
    #[cfg(unix)]
    pub fn terminate(&self) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
    }

    /// True if it has said this on stderr.
    pub fn has_said(&self, text: &str) -> bool {
        self.stderr.lock().unwrap().contains(text)
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Outcome {
        let mut output = self.child.take().unwrap().wait_with_output().unwrap();
        self.reader.take().unwrap().join().unwrap();
        output.stderr = self.stderr.lock().unwrap().clone().into_bytes();
        Outcome::of(output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until `condition` holds; a minute is a failure.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited a minute for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a run of the program came to.
pub struct Outcome {
    /// None: killed by a signal.
    pub code: Option<i32>,
    pub events: Vec<Value>,
    /// `result` of the last line; null if there is none.
    pub result: Value,
    /// `error` of the last line; null if there is none.
    pub error: Value,
    pub stderr: String,
}

impl Outcome {
    fn of(output: std::process::Output) -> Outcome {
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let (ends, events): (Vec<Value>, Vec<Value>) = lines.into_iter().partition(|line| line["type"] == "result");
        let end = ends.into_iter().next_back().unwrap_or_default();
        Outcome {
            code: output.status.code(),
            events,
            result: end["result"].clone(),
            error: end["error"].clone(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The update's state.
    pub fn state(&self) -> &str {
        self.result["state"].as_str().unwrap_or_default()
    }

    /// A flow's outcome.
    pub fn flow(&self, flow: &str) -> Value {
        find(&self.result["flows"], "flow", flow)
    }

    pub fn flow_state(&self, flow: &str) -> String {
        self.flow(flow)["state"].as_str().unwrap().to_string()
    }

    /// Rows that a flow appended.
    pub fn rows_out(&self, flow: &str) -> u64 {
        self.flow(flow)["metrics"]["rows_out"].as_u64().unwrap()
    }

    /// When a flow started to run and when it ended, in microseconds, by its events.
    pub fn ran(&self, flow: &str) -> (i64, i64) {
        let time = |is_wanted: &dyn Fn(&str) -> bool| {
            let of_flow = |event: &&Value| event["flow"] == flow && event["details"]["status"].is_string();
            let mut events = self.events_of("flow_progress").into_iter().filter(of_flow);
            let found = events.find(|event| is_wanted(event["details"]["status"].as_str().unwrap()));
            found.unwrap_or_else(|| panic!("flow `{flow}` did not run\n{self}"))["time_us"].as_i64().unwrap()
        };
        (time(&|state| state == "RUNNING"), time(&|state| ["COMPLETED", "FAILED", "CANCELED"].contains(&state)))
    }

    /// The files that each of a flow's batches read.
    pub fn batch_files(&self, flow: &str) -> Vec<u64> {
        self.batches(flow).iter().map(|batch| batch["details"]["metrics"]["files_in"].as_u64().unwrap()).collect()
    }

    /// The events of a flow's committed batches.
    pub fn batches(&self, flow: &str) -> Vec<&Value> {
        self.events_of("batch_progress").into_iter().filter(|event| event["flow"] == flow).collect()
    }

    /// The events of one type.
    pub fn events_of(&self, event_type: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["event_type"] == event_type).collect()
    }

    /// The message and help of every notice with this code, from the event log, the result or the refusal.
    pub fn notices(&self, code: &str) -> Vec<String> {
        let text = |message: &Value, help: &Value| {
            format!("{} = help: {}", message.as_str().unwrap(), help.as_str().unwrap_or_default())
        };
        let mut notices: Vec<String> = self
            .events_of("notice")
            .into_iter()
            .filter(|event| event["details"]["code"] == code)
            .map(|event| text(&event["message"], &event["details"]["help"]))
            .collect();
        for list in [&self.result["notices"], &self.error["notices"]] {
            for notice in list.as_array().into_iter().flatten().filter(|notice| notice["code"] == code) {
                let notice = text(&notice["message"], &notice["help"]);
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
        notices
    }

    /// The one notice with this code.
    pub fn notice(&self, code: &str) -> String {
        let mut notices = self.notices(code);
        assert_eq!(notices.len(), 1, "notices `{code}`: {notices:?}\n{self}");
        notices.remove(0)
    }

    /// The diagnostics with this code, of a validation or of a refused run.
    pub fn diagnostics(&self, code: &str) -> Vec<Value> {
        [&self.result["diagnostics"], &self.error["diagnostics"]]
            .into_iter()
            .flat_map(|list| list.as_array().into_iter().flatten())
            .filter(|diagnostic| diagnostic["code"] == code)
            .cloned()
            .collect()
    }

    /// The one diagnostic with this code.
    pub fn diagnostic(&self, code: &str) -> Value {
        let mut found = self.diagnostics(code);
        assert_eq!(found.len(), 1, "diagnostics `{code}`\n{self}");
        found.remove(0)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "exit code {:?}\nresult {:#}\nerror {:#}\n{}", self.code, self.result, self.error, self.stderr)
    }
}

/// The object of a list whose `key` is `value`.
pub fn find(list: &Value, key: &str, value: &str) -> Value {
    let found = list.as_array().into_iter().flatten().find(|object| object[key] == value);
    found.unwrap_or_else(|| panic!("no {key} = {value} in {list:#}")).clone()
}

/// A Delta table that another program, delta-rs, writes.
pub struct ForeignTable(Url);

impl ForeignTable {
    /// The table in this folder, which need not exist yet.
    pub fn at(folder: &Path) -> ForeignTable {
        std::fs::create_dir_all(folder).unwrap();
        ForeignTable(Url::from_directory_path(folder).unwrap())
    }

    /// Appends rows with one column `id`, as one version.
    pub fn append(&self, ids: std::ops::RangeInclusive<i64>) {
        self.write(ids, SaveMode::Append);
    }

    /// Replaces all rows, as one version.
    pub fn overwrite(&self, ids: std::ops::RangeInclusive<i64>) {
        self.write(ids, SaveMode::Overwrite);
    }

    fn write(&self, ids: std::ops::RangeInclusive<i64>, mode: SaveMode) {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
        let batch = RecordBatch::try_from_iter([("id", column)]).unwrap();
        RUNTIME.block_on(async {
            let mut table = DeltaTableBuilder::from_url(self.0.clone()).unwrap().build().unwrap();
            // Err: there is no table yet, the write makes one.
            let _ = table.load().await;
            table.write([batch]).with_save_mode(mode).await.unwrap();
        });
    }

    /// Deletes rows, as one version.
    pub fn delete(&self, condition: &str) {
        RUNTIME.block_on(async {
            let table = deltalake_core::open_table(self.0.clone()).await.unwrap();
            table.delete().with_predicate(condition).await.unwrap();
        });
    }

    /// All rows as they are now.
    pub fn rows(&self) -> Vec<String> {
        self.reader().rows()
    }

    /// The table as it is now, for later.
    pub fn reader(&self) -> ForeignReader {
        ForeignReader(RUNTIME.block_on(deltalake_core::open_table(self.0.clone())).unwrap())
    }
}

/// A version of a table that delta-rs has open.
pub struct ForeignReader(DeltaTable);

impl ForeignReader {
    /// All rows, the names of the columns first, blanks taken out: `|id|name|`.
    pub fn rows(&self) -> Vec<String> {
        let batches = RUNTIME.block_on(async {
            let (_, stream) = self.0.scan_table().await.unwrap();
            deltalake_core::operations::collect_sendable_stream(stream).await.unwrap()
        });
        let text = arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
        let mut lines: Vec<String> =
            text.lines().filter(|line| line.starts_with('|')).map(|line| line.split_whitespace().collect()).collect();
        lines[1..].sort();
        lines
    }
}
