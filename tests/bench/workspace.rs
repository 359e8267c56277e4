//! A workspace of flowbench whose program is run as a whole process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::process::{Measured, measure};

pub fn flowbench() -> Command {
    Command::new(env!("CARGO_BIN_EXE_flowbench"))
}

pub fn flowbench_version() -> Result<String> {
    Ok(measure(flowbench().arg("--version"))?.stdout.trim().to_string())
}

pub struct Workspace {
    pub folder: PathBuf,
}

impl Workspace {
    /// The workspace `name` in `parent`, with these definitions; one that is there keeps its tables.
    pub fn new(parent: &Path, name: &str, definitions: &str) -> Result<Workspace> {
        let folder = parent.join("workspaces").join(name);
        let transformations = folder.join("transformations");
        if transformations.exists() {
            fs::remove_dir_all(&transformations)?;
        }
        fs::create_dir_all(&transformations)?;
        fs::write(folder.join("flowbench.toml"), format!("[pipeline]\nname = \"{name}\"\n"))?;
        fs::write(transformations.join("definitions.sql"), definitions)?;
        Ok(Workspace { folder })
    }

    /// Removes tables and checkpoints, so that the next update begins from nothing.
    pub fn forget(&self) -> Result<()> {
        let storage = self.folder.join(".flowbench");
        if storage.exists() {
            fs::remove_dir_all(storage)?;
        }
        Ok(())
    }

    pub fn update(&self) -> Result<Measured> {
        measure(flowbench().arg("run").arg(&self.folder).arg("--json"))
    }

    /// Runs a query; all its rows are on stdout, as CSV.
    pub fn query(&self, query: &str) -> Result<Measured> {
        let arguments = ["sql", query, "--limit", "0", "--format", "csv"];
        measure(flowbench().arg("-C").arg(&self.folder).args(arguments))
    }
}

/// When each micro-batch of an update was committed, in microseconds, from the events that it printed.
pub fn batch_times(ndjson: &str) -> Result<Vec<u64>> {
    let mut times = Vec::new();
    for line in ndjson.lines() {
        let event: serde_json::Value = serde_json::from_str(line)?;
        if event["event_type"] == "batch_progress" {
            times.push(event["time_us"].as_u64().ok_or("an event without its time")?);
        }
    }
    Ok(times)
}
