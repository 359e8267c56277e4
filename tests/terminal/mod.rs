//! The workbench in a real terminal: the built program in a pty, keys typed, the screen read.
//!
//! - `pty.rs`: the terminal
//! - `tour.rs`: what a person does first: look, break and mend a file, run, see rows, open the editor, use the mouse
//! - `updates.rs`: updates of other processes, cancel, reset, full refresh, SIGKILL
//! - `scd.rs`: keys, versions and the cutover of AUTO CDC tables
//! - `restore.rs`: however it ends, the terminal is as it was
//! - `surroundings.rs`: sizes, pastes, no colours, ASCII, no terminal, broken and missing workspaces
//! - `picture.rs`: the picture of the README
//!
//! Here: the workspaces that are opened.

mod picture;
#[expect(dead_code, reason = "the latency benchmark uses the rest")]
mod pty;
mod restore;
mod scd;
mod surroundings;
mod tour;
mod updates;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::crash::Workspace;
use crate::fixture::{clone_of_the_examples, wait_until};
use pty::{Start, Terminal};

/// The sizes that everything must work at.
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 36)];

/// A copy of an example and its data that goes away with the test.
struct Example {
    _clone: TempDir,
    root: PathBuf,
}

impl Example {
    fn new(name: &str) -> Example {
        let clone = clone_of_the_examples();
        Example { root: clone.path().join("workspaces").join(name), _clone: clone }
    }

    /// The example after its first update.
    fn run(name: &str) -> Example {
        let example = Example::new(name);
        flowbench(&example.root, &["run"]);
        example
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Saves a file as editors do: a new file takes the old one's name.
    fn save(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        let new = path.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// The rows of the table of `registration`.
    fn rows(&self) -> String {
        flowbench(&self.root, &["sql", "SELECT count(*) AS n FROM registration_events_raw", "--format", "csv"])
            .lines()
            .nth(1)
            .unwrap_or_default()
            .to_string()
    }
}

/// Runs a command that must succeed; returns its stdout.
#[track_caller]
fn flowbench(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_flowbench")).args(arguments).current_dir(root).output().unwrap();
    let (said, cried) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "flowbench {arguments:?}\n{said}{cried}");
    said.into_owned()
}

/// Opens the workbench in a folder.
fn open(root: &Path, size: (u16, u16)) -> Terminal {
    open_with(root, size, &[])
}

/// Opens the workbench with more environment.
fn open_with(root: &Path, (columns, rows): (u16, u16), environment: &[(&str, &str)]) -> Terminal {
    Terminal::start(&Start {
        columns,
        rows,
        program: Path::new(env!("CARGO_BIN_EXE_flowbench")),
        arguments: Vec::new(),
        folder: root,
        environment: environment.to_vec(),
    })
}

/// Waits until the files are checked and nothing is wrong with them.
#[track_caller]
fn wait_valid(terminal: &Terminal) {
    terminal.wait("a valid workspace", |text| {
        let head = text.lines().next().unwrap_or_default();
        head.contains(" valid ") && !head.contains("checking")
    });
}

/// The workspace of the crash tests with its first input, opened with an update that waits inside a micro-batch.
struct MidUpdate {
    workspace: Workspace,
    terminal: Terminal,
}

impl MidUpdate {
    /// Starts the update and returns once flow `live` is in its second batch, written and not committed.
    #[track_caller]
    fn start(size: (u16, u16), environment: &[(&str, &str)]) -> MidUpdate {
        let workspace = Workspace::fed();
        let pause = format!("written@live:2=pause({})", workspace.path().join("go").display());
        let environment = [&[("FLOWBENCH_FAIL_POINT", pause.as_str())], environment].concat();
        let terminal = open_with(workspace.path(), size, &environment);
        wait_valid(&terminal);
        terminal.keys("r r");
        let reached = workspace.path().join("go.reached");
        wait_until("the batch", || reached.exists());
        terminal.wait_for("RUNNING");
        MidUpdate { workspace, terminal }
    }

    /// Lets the update go on.
    fn go_on(&self) {
        self.workspace.write("go", "");
    }

    /// Rows that flow `live` has committed.
    fn live_rows(&self) -> usize {
        self.workspace.rows("SELECT id FROM events WHERE id LIKE 'live/%'").len()
    }
}

/// Every file below a folder with its content.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let content = std::fs::read(&path).unwrap_or_default();
                    found.insert(path.strip_prefix(root).unwrap().to_path_buf(), content);
                }
            }
        }
    }
    found
}

/// What one folder has and another hasn't, or has otherwise; the log and caches in the storage folder don't count.
fn differences(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let paths: std::collections::BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let is_of_no_account = |path: &Path| {
        path.starts_with(".flowbench/logs") || path.starts_with(".flowbench/cache")
        // SQLite's index of the write-ahead log, which readers make too.
        || path.ends_with("state.db-shm") || path.ends_with("state.db-wal")
    };
    let differs = |path: &&PathBuf| before.get(*path) != after.get(*path) && !is_of_no_account(path);
    paths.into_iter().filter(differs).cloned().collect()
}
