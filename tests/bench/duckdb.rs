//! DuckDB from PyPI in a virtual environment of its own, driven by the scripts beside this file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::process::measure;

pub struct DuckDb {
    /// With its version.
    pub name: String,
    python: PathBuf,
}

impl DuckDb {
    /// Takes the environment in `folder`, or makes it; none, with a word why, where that can't be done.
    pub fn find(folder: &Path) -> Option<DuckDb> {
        match DuckDb::find_or_install(folder) {
            Ok(duckdb) => Some(duckdb),
            Err(error) => {
                println!("without DuckDB: {error}");
                None
            }
        }
    }

    fn find_or_install(folder: &Path) -> Result<DuckDb> {
        let venv = folder.join("venv");
        let python = venv.join("bin/python");
        let version = || measure(Command::new(&python).args(["-c", "import duckdb; print(duckdb.__version__)"]));
        let found = match version() {
            Ok(found) => found,
            Err(_) => {
                println!("installing DuckDB in {}", venv.display());
                measure(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
                measure(Command::new(&python).args(["-m", "pip", "install", "--quiet", "duckdb"]))?;
                version()?
            }
        };
        Ok(DuckDb { name: format!("DuckDB {}", found.stdout.trim()), python })
    }

    /// A script of this folder, to be given its arguments.
    pub fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench").join(name));
        command
    }
}
