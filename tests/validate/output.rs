//! What `flowbench validate` prints for machines is what docs/validate-json.md says; `--watch` says what a save
//! changed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::cli::{flowbench, stdout};

/// The keys of the n-th table of the page: what stands in backticks at the beginning of its rows.
fn documented(table: usize) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/validate-json.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut tables = text.split("\n\n").filter(|block| block.starts_with("| key"));
    let rows = tables.nth(table).expect("the page has the table").lines().skip(2);
    rows.map(|row| row.split('`').nth(1).expect("a key").to_string()).collect()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

fn workspace(sql: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("transformations")).unwrap();
    std::fs::write(folder.path().join("flowbench.toml"), "[pipeline]\nname = \"w\"\n").unwrap();
    std::fs::write(folder.path().join("transformations/a.sql"), sql).unwrap();
    folder
}

const SLIP: &str =
    "CREATE MATERIALIZED VIEW one AS SELECT 1 AS x;\nCREATE MATERIALIZED VIEW two AS SELECT x FROM oen;\n";

#[test]
fn json_has_exactly_the_documented_keys() {
    let folder = workspace(SLIP);
    for arguments in [vec!["validate", "--format", "json"], vec!["validate", "--json", "--diff"]] {
        let output = flowbench(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(3));
        let line: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
        let result = &line["result"];
        assert_eq!(result["version"], 1);
        assert_eq!(keys(result), documented(0));
        let diagnostic = &result["diagnostics"][0];
        assert_eq!(keys(diagnostic), documented(1));
        assert_eq!(diagnostic["edit"]["replacement"], "one");
        assert_eq!(result["fixes"].as_array().unwrap().len(), usize::from(arguments.contains(&"--diff")));
    }
    let output = flowbench(folder.path(), &["validate", "--json", "--fix"]);
    let line: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
    assert_eq!((output.status.code(), &line["result"]["fixes"][0]["edits"]), (Some(0), &Value::from(1)));
}

/// A watching process, killed in the end.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(folder: &Path) -> Watching {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flowbench"))
            .args(["validate", "--watch", "--json"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Watching { child, lines }
    }

    /// The next verdict, within far more time than a busy machine needs.
    fn verdict(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(30)).expect("a verdict comes");
        serde_json::from_str::<Value>(&line).unwrap()["result"].take()
    }

    /// The next verdict that has this many errors; a save may be seen half done.
    fn verdict_with(&self, errors: u64) -> Value {
        loop {
            let verdict = self.verdict();
            if verdict["errors"] == errors {
                return verdict;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watching_says_what_each_save_broke_and_mended() {
    let folder = workspace(SLIP);
    let watching = Watching::start(folder.path());
    let first = watching.verdict();
    assert_eq!((&first["errors"], &first["new"]), (&Value::from(1), &Value::Array(Vec::new())));

    let save = |text: &str| {
        let path = folder.path().join("transformations");
        std::fs::write(path.join(".a.sql.new"), text).unwrap();
        std::fs::rename(path.join(".a.sql.new"), path.join("a.sql")).unwrap();
    };
    save(&SLIP.replace("oen", "one"));
    let mended = watching.verdict_with(0);
    assert_eq!(mended["fixed"][0]["code"], "unknown-dataset");

    // The same slip further down is a new one; another one beside it stays.
    save(&format!("-- moved\n{}", SLIP.replace("SELECT x", "SELECT y").replace("oen", "one")));
    let broken = watching.verdict_with(1);
    assert_eq!((&broken["new"], &broken["fixed"]), (&serde_json::json!([0]), &Value::Array(Vec::new())));
    save(&format!("-- moved\n-- again\n{}", SLIP.replace("SELECT x", "SELECT y, z").replace("oen", "one")));
    let broken = watching.verdict_with(2);
    assert_eq!(broken["new"].as_array().unwrap().len(), 1);

    // A settings file that can't be used is told and forgiven.
    std::fs::write(folder.path().join("flowbench.toml"), "[pipeline\n").unwrap();
    assert!(watching.verdict()["errors"].as_u64() > Some(0));
    std::fs::write(folder.path().join("flowbench.toml"), "[pipeline]\nname = \"w\"\n").unwrap();
    save(&SLIP.replace("oen", "one"));
    watching.verdict_with(0);
}
