//! The program dies, fails or is disturbed at every step, and the next run puts things right: tables equal
//! those of a run that nothing happened to.
//!
//! - `kill.rs`: SIGKILL at each step of each kind of flow, once and twice in a row, and at random moments
//! - `failure.rs`: the same steps fail with an error
//! - `full_refresh.rs`: a full refresh that is killed or fails
//! - `order.rs`: a chain of flows that is killed at each step goes on where it stood, and in order
//! - `signals.rs`: Ctrl-C and SIGTERM
//! - `changes.rs`: the same for the flows of AUTO CDC, which commit to two places
//! - `disk.rs`: writes that fail; tables and state.db changed, lost or put back behind the program's back
//! - `writers.rs`: two processes at once
//!
//! Here: the workspace they all run, and how its tables are read and compared.

mod changes;
mod disk;
mod failure;
mod full_refresh;
mod kill;
mod order;
mod signals;
pub mod writers;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use engine::Engine;
use tempfile::TempDir;

/// Every kind of flow: a live flow and a once flow into one table, a stream of that table, a view over that.
/// `wide` takes every column that its files have.
const PIPELINE: &str = "
CREATE OR REFRESH STREAMING TABLE events;
CREATE FLOW live AS INSERT INTO events BY NAME
SELECT id, kind, amount FROM STREAM read_files('data/live', format => 'json', maxFilesPerTrigger => 1);
CREATE FLOW backfill AS INSERT INTO ONCE events BY NAME
SELECT id, kind, amount FROM read_files('data/old', format => 'json');
CREATE OR REFRESH STREAMING TABLE silver
AS SELECT id, upper(kind) AS kind, amount FROM STREAM(events);
CREATE OR REFRESH MATERIALIZED VIEW gold
AS SELECT kind, count(*) AS n, sum(amount) AS total FROM silver GROUP BY kind;
CREATE OR REFRESH STREAMING TABLE wide
AS SELECT * FROM STREAM read_files('data/wide', format => 'json', maxFilesPerTrigger => 1);
";

/// The tables of [`PIPELINE`].
pub const TABLES: [&str; 4] = ["events", "silver", "gold", "wide"];

/// Rows of each table as text, sorted.
pub type Tables = BTreeMap<String, Vec<String>>;

/// A workspace in a folder of its own.
pub struct Workspace {
    folder: TempDir,
}

impl Workspace {
    /// [`PIPELINE`] without input.
    pub fn new() -> Workspace {
        Workspace::of("", PIPELINE)
    }

    /// With more settings behind the name and another pipeline.
    pub fn of(settings: &str, pipeline: &str) -> Workspace {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace { folder };
        workspace.write("flowbench.toml", &format!("[pipeline]\nname = \"crash\"\n{settings}"));
        workspace.write("transformations/pipeline.sql", pipeline);
        for source in ["live", "old", "wide"] {
            std::fs::create_dir_all(workspace.path().join("data").join(source)).unwrap();
        }
        workspace
    }

    /// [`Workspace::new`] with the input of a first run.
    pub fn fed() -> Workspace {
        let workspace = Workspace::new();
        workspace.feed_first();
        workspace
    }

    /// Three live files, two old ones, one wide one.
    pub fn feed_first(&self) {
        for file in ["live/a", "live/b", "live/c", "old/x", "old/y"] {
            self.feed(file);
        }
        self.write("data/wide/a.json", "{\"id\": 1, \"a\": 1}\n{\"id\": 2, \"a\": 2}\n");
    }

    /// Two more live files, and a wide one with a new field.
    pub fn feed_second(&self) {
        self.feed("live/d");
        self.feed("live/e");
        self.write("data/wide/b.json", "{\"id\": 3, \"a\": 3, \"b\": \"new\"}\n");
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn storage(&self) -> PathBuf {
        self.path().join(".flowbench")
    }

    /// The folder of a table.
    pub fn table(&self, name: &str) -> PathBuf {
        self.storage().join("tables/default").join(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Makes the source file `data/<file>.json`: three rows that no other file has.
    pub fn feed(&self, file: &str) {
        let mut text = String::new();
        for i in 1..=3 {
            writeln!(text, "{{\"id\": \"{file}-{i}\", \"kind\": \"k{i}\", \"amount\": {i}}}").unwrap();
        }
        self.write(&format!("data/{file}.json"), &text);
    }

    /// The program in this workspace; `fail_points` as in `engine::fail_point`.
    pub fn command(&self, fail_points: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowbench"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null()).env_remove("FLOWBENCH_LOG");
        if !fail_points.is_empty() {
            command.env("FLOWBENCH_FAIL_POINT", fail_points);
        }
        command
    }

    pub fn output(&self, fail_points: &str, arguments: &[&str]) -> Output {
        self.command(fail_points, arguments).output().expect("the program starts")
    }

    /// Starts the program with its output thrown away.
    pub fn spawn(&self, fail_points: &str, arguments: &[&str]) -> Child {
        let mut command = self.command(fail_points, arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    }

    /// Runs the program, expects an exit code, and returns what it said.
    pub fn expect(&self, code: i32, arguments: &[&str]) -> String {
        self.expect_at("", code, arguments)
    }

    /// [`Workspace::expect`] with fail points.
    pub fn expect_at(&self, fail_points: &str, code: i32, arguments: &[&str]) -> String {
        let output = self.output(fail_points, arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{fail_points} flowbench {}\n{said}", arguments.join(" "));
        said
    }

    /// Runs the program and expects the fail points to kill it.
    pub fn expect_killed(&self, fail_points: &str, arguments: &[&str]) {
        use std::os::unix::process::ExitStatusExt;
        let output = self.output(fail_points, arguments);
        assert_eq!(output.status.signal(), Some(9), "{fail_points} did not kill it: {}", said(&output));
    }

    /// The rows of a query, each as `column=value` in the columns' alphabetical order, without NULLs: which
    /// column a table got first depends on which batch came first, and is no part of what its rows say.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let engine = Engine::open(self.path(), &[]).unwrap();
        let rows = runtime.block_on(engine.sql(sql, None)).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let text = |row: &Vec<Option<String>>| {
            let values =
                rows.columns.iter().zip(row).filter_map(|(column, value)| Some((&column.name, value.as_ref()?)));
            let mut values: Vec<String> = values.map(|(name, value)| format!("{name}={value}")).collect();
            values.sort();
            values.join(" ")
        };
        let mut rows: Vec<String> = rows.rows.iter().map(text).collect();
        rows.sort();
        rows
    }

    /// The rows of all tables.
    pub fn tables(&self) -> Tables {
        let stored = |table: &&str| self.table(table).join("_delta_log").is_dir();
        let rows = |table: &str| (table.to_string(), self.rows(&format!("SELECT * FROM {table}")));
        TABLES.into_iter().filter(stored).map(rows).collect()
    }

    /// Number and state of the updates, newest first.
    pub fn updates(&self) -> Vec<(i64, String)> {
        let engine = Engine::open(self.path(), &[]).unwrap();
        let updates = engine.updates(100).unwrap();
        updates.into_iter().map(|update| (update.number, update.state.to_string())).collect()
    }

    /// One value of state.db.
    pub fn state(&self, sql: &str) -> i64 {
        let state = rusqlite::Connection::open(self.storage().join("state.db")).unwrap();
        state.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Checks what must hold whenever an update has completed: no plan is open, no generation half built.
    pub fn check_settled(&self) {
        for (what, sql) in [
            ("planned batches", "SELECT count(*) FROM micro_batches WHERE state = 'planned'"),
            ("open full refreshes", "SELECT count(*) FROM datasets WHERE shadow_generation IS NOT NULL"),
            ("flows in a shadow", "SELECT count(*) FROM flows WHERE shadow_generation IS NOT NULL"),
            ("running updates", "SELECT count(*) FROM updates WHERE ended_us IS NULL"),
        ] {
            assert_eq!(self.state(sql), 0, "{what}");
        }
        for table in TABLES.iter().map(|table| self.table(table)).filter(|table| table.is_dir()) {
            let folders = std::fs::read_dir(&table).unwrap().map(|entry| entry.unwrap().path());
            let shadows: Vec<PathBuf> = folders.filter(|path| path.join("_delta_log").exists()).collect();
            assert!(shadows.is_empty(), "left behind: {shadows:?}");
        }
    }
}

/// Fails with the rows that are too many (`+`) and those that are missing (`-`).
#[track_caller]
pub fn assert_same(found: &Tables, expected: &Tables, context: &str) {
    let mut differences = String::new();
    for table in expected.keys().chain(found.keys().filter(|table| !expected.contains_key(*table))) {
        let mut missing = expected.get(table).cloned().unwrap_or_default();
        for row in found.get(table).into_iter().flatten() {
            match missing.iter().position(|other| other == row) {
                Some(at) => drop(missing.remove(at)),
                None => writeln!(differences, "{table} + {row}").unwrap(),
            }
        }
        missing.iter().for_each(|row| writeln!(differences, "{table} - {row}").unwrap());
    }
    assert!(differences.is_empty(), "the tables differ\n{differences}{context}");
}

/// Both outputs of a process.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs `check` for every case, as many at a time as there are cores, and says which cases failed and how.
pub fn for_each_case<T: Sync>(what: &str, cases: &[T], name: impl Fn(&T) -> String + Sync, check: impl Fn(&T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failures = std::sync::Mutex::new(Vec::new());
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(case)));
            if let Err(panic) = outcome {
                let why = panic.downcast_ref::<String>().cloned();
                let why = why.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                failures.lock().unwrap().push(format!("{}: {}", name(case), why.unwrap_or_default()));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(4) {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().unwrap();
    println!("{what}: {} cases, {} failed", cases.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs `check` `count` times with other random numbers: `next(below)` gives one. A failure names the seed, which
/// FLOWBENCH_SEED repeats.
pub fn for_each_seed(what: &str, count: u64, check: impl Fn(&mut dyn FnMut(u64) -> u64) + Sync) {
    let seeds: Vec<u64> = match std::env::var("FLOWBENCH_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            (0..count).map(|n| (now.as_nanos() as u64).wrapping_add(n * 7919)).collect()
        }
    };
    let name = |seed: &u64| format!("FLOWBENCH_SEED={seed}");
    for_each_case(what, &seeds, name, |seed| {
        let mut random = *seed | 1;
        check(&mut |below| {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        });
    });
}

/// Starts `flowbench run` and kills it before the time is over.
pub fn run_and_kill(workspace: &Workspace, after_ms: u64) {
    let mut child = workspace.spawn("", &["run"]);
    std::thread::sleep(std::time::Duration::from_millis(after_ms));
    child.kill().unwrap();
    child.wait().unwrap();
}
