//! What the tests of AUTO CDC share: feeds and snapshots as JSON files, one file a micro-batch.

use serde_json::Value;

use crate::fixture::{Outcome, TestWorkspace};

/// A temporary view `<name>` that streams the files of `data/<name>`, each a micro-batch.
pub fn feed(name: &str, schema: &str) -> String {
    format!(
        "CREATE TEMPORARY VIEW {name} AS SELECT * FROM STREAM read_files('data/{name}', format => 'json', \
         schema => '{schema}', schemaEvolutionMode => 'none', maxFilesPerTrigger => 1);\n"
    )
}

/// The rows of the files of `data/<name>`, as a batch.
pub fn files(name: &str, schema: &str) -> String {
    format!("read_files('data/{name}', format => 'json', schema => '{schema}', schemaEvolutionMode => 'none')")
}

/// Makes the folders that feeds and snapshots lie in.
pub fn folders(workspace: &TestWorkspace, names: &[&str]) {
    for name in names {
        std::fs::create_dir_all(workspace.path(&format!("data/{name}"))).unwrap();
    }
}

/// Writes the file `data/<name>/<number>.json`; files are read in the order of their numbers.
pub fn put(workspace: &TestWorkspace, name: &str, number: u32, rows: &[&str]) {
    let path = format!("data/{name}/{number:03}.json");
    workspace.write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>());
    workspace.set_time(&path, &format!("2025-01-01T00:{:02}:{:02}Z", number / 60, number % 60));
}

/// Rows of a table, in order of all columns.
pub fn table(workspace: &TestWorkspace, name: &str) -> Vec<String> {
    workspace.rows(&format!("SELECT * FROM {name} ORDER BY ALL"))
}

/// The version of a table's log.
pub fn version(workspace: &TestWorkspace, name: &str) -> i64 {
    let described = workspace.command(&["describe", name]);
    described.result["status"]["table"]["version"].as_i64().unwrap_or_else(|| panic!("{described}"))
}

/// A count of a flow's metrics for changes: upserted, deleted, late, duplicates, ties, dropped.
pub fn changes(outcome: &Outcome, flow: &str, count: &str) -> u64 {
    // Left out where all are zero.
    outcome.flow(flow)["metrics"]["changes"][count].as_u64().unwrap_or_default()
}

/// What a flow failed with.
pub fn failure(outcome: &Outcome, flow: &str) -> String {
    let flow = outcome.flow(flow);
    assert_eq!(flow["state"], "FAILED", "{outcome}");
    flow["error"].to_string()
}

/// Validates; the diagnostics that are errors, by their codes.
pub fn errors(workspace: &TestWorkspace) -> Vec<String> {
    let outcome = workspace.command(&["validate"]);
    let diagnostics = outcome.result["diagnostics"].as_array().unwrap_or_else(|| panic!("{outcome}"));
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic["severity"] == "error");
    errors.map(|diagnostic| diagnostic["code"].as_str().unwrap().to_string()).collect()
}

/// The one diagnostic of a validation with this code.
pub fn validate(workspace: &TestWorkspace, code: &str) -> Value {
    workspace.command(&["validate"]).diagnostic(code)
}

/// A workspace whose flows are not tried again when they fail.
pub fn without_retries(sql: &str) -> TestWorkspace {
    let workspace = TestWorkspace::new(sql);
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    workspace
}
