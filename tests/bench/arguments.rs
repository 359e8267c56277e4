//! What a bench with parts is told: options that all of them know, and those of its own.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::Result;

/// `--runs`, `--keep` and `--only`.
pub struct Arguments {
    /// How often each is run.
    pub runs: usize,
    /// Folder of data, tables and DuckDB.
    pub folder: PathBuf,
    only: Vec<String>,
}

impl Arguments {
    /// Reads the program's arguments; `own` takes the name and value of an option that only this bench knows, and says
    /// if it does.
    pub fn read(parts: &[&str], mut own: impl FnMut(&str, &str) -> Result<bool>) -> Result<Arguments> {
        let mut arguments = Arguments {
            runs: 3,
            folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench"),
            only: parts.iter().map(|part| part.to_string()).collect(),
        };
        let mut rest = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| format!("`{name}` is unknown, or lacks its value"))?;
            match name.as_str() {
                "--runs" => arguments.runs = value.parse::<usize>()?.max(1),
                "--keep" => arguments.folder = std::path::absolute(value)?,
                "--only" => arguments.only = value.split(',').map(str::to_string).collect(),
                _ if own(&name, &value)? => {}
                _ => return Err(format!("unknown option `{name}`").into()),
            }
        }
        match arguments.only.iter().find(|name| !parts.contains(&name.as_str())) {
            Some(name) => Err(format!("`--only` does not know `{name}`").into()),
            None => Ok(arguments),
        }
    }

    /// Whether a part is to be run.
    pub fn has(&self, part: &str) -> bool {
        self.only.iter().any(|only| only == part)
    }
}

/// Runs the bench if this is `cargo bench`; `cargo test` starts it too.
pub fn run(name: &str, bench: impl FnOnce() -> Result<()>) -> ExitCode {
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("not measured: run by `cargo bench --bench {name}`");
        return ExitCode::SUCCESS;
    }
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
