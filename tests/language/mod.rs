//! The language as it runs: scripts of files, updates and what the tables then hold.
//!
//! A script (`*.slt` beside this file) is a list of steps; each begins with `> ` and a word. What follows, up
//! to the next step, is a file's content or what the step is expected to say:
//!
//! ```text
//! > FILE path            the lines below become a file (`.gz` and `.zst` are packed); the first one makes
//!                        flowbench.toml unless the script has its own
//! > PARQUET path SELECT… the rows of a query as a Parquet file; AVRO the same
//! > REMOVE path          deletes a file
//! > WORKSPACE folder     goes on in a workspace below the script's folder
//! > VALIDATE             diagnostics: `path:line:column severity[code] message`, then reason and help
//! > RUN [ARGUMENT…]      an update: its state, flows with rows, what failed. `--refresh t`, `--full-refresh t`,
//!                        `--set key=value`
//! > SHOW table           columns with types, and rows, sorted
//! > DESCRIBE table       layout, comments, properties, flows
//! > SQL query            the rows of a query, in their order
//! ```
//!
//! `UPDATE=1 cargo test --test main language` writes the expected parts; read the diff. `SCRIPT=name` runs one.

mod script;
mod workbench;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scripts that run at the same time.
const WORKERS: usize = 3;

#[test]
fn scripts_give_what_they_say() {
    let scripts = scripts();
    assert!(!scripts.is_empty(), "no script is named `{}`", std::env::var("SCRIPT").unwrap_or_default());
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(path) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(difference) = check(path) {
                        wrong.lock().unwrap().push(difference);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} scripts differ:\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language");
    let wanted = std::env::var("SCRIPT").ok();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .filter(|path| wanted.as_ref().is_none_or(|name| path.file_stem().unwrap().to_str() == Some(name)))
        .collect();
    paths.sort();
    paths
}

/// Runs a script and compares it with what it says; with `UPDATE` it is written instead.
fn check(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let found = script::run(&text);
    if found == text {
        return None;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, found).unwrap();
        return None;
    }
    Some(format!("--- {}\n{}", path.display(), script::difference(&text, &found)))
}
