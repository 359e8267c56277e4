//! What a hostile place does to the program: streams that nobody reads, files from other editors, folders that
//! move, queries that nest too deep, one broken source among others.

use std::process::{Command, Stdio};

use super::{expect, flowbench, stderr};
use crate::fixture::TestWorkspace;

const READ: &str =
    "CREATE OR REFRESH STREAMING TABLE raw AS SELECT * FROM STREAM read_files('data', format => 'json');";

#[test]
fn a_moved_workspace_reads_nothing_twice() {
    let place = tempfile::tempdir().unwrap();
    let (old, new) = (place.path().join("old"), place.path().join("new"));
    std::fs::create_dir_all(old.join("transformations")).unwrap();
    std::fs::create_dir_all(old.join("data")).unwrap();
    std::fs::write(old.join("flowbench.toml"), "").unwrap();
    std::fs::write(old.join("transformations/raw.sql"), READ).unwrap();
    std::fs::write(old.join("data/a.json"), "{\"id\":1}\n").unwrap();
    expect(&old, 0, &["run"]);
    std::fs::rename(&old, &new).unwrap();
    std::fs::write(new.join("data/b.json"), "{\"id\":2}\n").unwrap();
    expect(&new, 0, &["run"]);
    let (out, _) = expect(&new, 0, &["show", "raw", "--format", "csv"]);
    let mut rows: Vec<&str> = out.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    rows.sort_unstable();
    assert_eq!(rows, ["1", "2"], "{out}");
}

#[test]
fn a_closed_or_full_stderr_doesnt_end_an_update() {
    for target in ["/dev/full", "closed pipe"] {
        let workspace = TestWorkspace::new(READ);
        workspace.write("data/a.json", "{\"id\":1}\n");
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowbench"));
        command.arg("run").current_dir(workspace.root()).stdin(Stdio::null()).stdout(Stdio::null());
        match target {
            "closed pipe" => drop(command.stderr(Stdio::piped())),
            path => match std::fs::OpenOptions::new().write(true).open(path) {
                Ok(file) => drop(command.stderr(file)),
                Err(error) => {
                    println!("skipped: {path}: {error}");
                    continue;
                }
            },
        }
        let mut child = command.spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{target}");
        assert_eq!(workspace.count("raw"), 1, "{target}");
    }
}

#[test]
fn a_byte_order_mark_is_no_statement() {
    let workspace = TestWorkspace::new(&format!("\u{feff}{READ}"));
    workspace.write("flowbench.toml", "\u{feff}[pipeline]\nname = \"marked\"\n");
    workspace.write("data/a.json", "{\"id\":1}\n");
    workspace.run_ok(&[]);
    assert_eq!(workspace.count("raw"), 1);
}

#[test]
fn views_on_views_have_an_end_and_run_up_to_it() {
    let chain = |views: usize| {
        let mut sql = "CREATE TEMPORARY VIEW v0 AS SELECT 1 AS a;\n".to_string();
        for view in 1..views {
            sql.push_str(&format!("CREATE TEMPORARY VIEW v{view} AS SELECT a + 1 AS a FROM v{};\n", view - 1));
        }
        sql.push_str(&format!("CREATE MATERIALIZED VIEW last AS SELECT * FROM v{};", views - 1));
        sql
    };
    let workspace = TestWorkspace::new(&chain(32));
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT a FROM last"), ["32"]);
    let workspace = TestWorkspace::new(&chain(300));
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    assert!(outcome.diagnostic("too-complex")["message"].as_str().unwrap().contains("`v32`"), "{outcome}");
}

#[test]
fn a_source_that_cant_be_read_fails_the_flows_that_read_it_only() {
    let workspace = TestWorkspace::new(&format!(
        "{READ}\nCREATE OR REFRESH STREAMING TABLE broken AS SELECT * FROM STREAM read_files('bad', format => 'parquet');"
    ));
    workspace.write("data/a.json", "{\"id\":1}\n");
    workspace.write("bad/a.parquet", "no parquet");
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert_eq!(outcome.flow_state("raw"), "COMPLETED", "{outcome}");
    assert_eq!(outcome.flow_state("broken"), "FAILED", "{outcome}");
    assert_eq!(workspace.count("raw"), 1);
    // The files are at fault, and validation says where.
    let output = flowbench(workspace.root(), &["validate"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("error[source-unreadable]"), "{}", stderr(&output));
}

#[test]
fn files_that_are_no_text_make_an_invalid_workspace() {
    let workspace = TestWorkspace::new(READ);
    workspace.write("transformations/junk.sql", b"SELECT \xff\xfe");
    let output = flowbench(workspace.root(), &["validate"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("error[not-utf-8]"), "{}", stderr(&output));
}

#[test]
fn odd_names_are_folders_of_their_own_inside_the_storage() {
    let names = ["a b", "a_b", "a.b", "a/b", "..", "../../out", "ä b"];
    let sql: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(n, name)| format!("CREATE MATERIALIZED VIEW `{name}` AS SELECT {n} AS n;"))
        .collect();
    let workspace = TestWorkspace::new(&sql.join("\n"));
    workspace.run_ok(&[]);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(workspace.rows(&format!("SELECT n FROM `{name}`")), [n.to_string()], "{name}");
    }
    let folders = std::fs::read_dir(workspace.path(".flowbench/tables/default")).unwrap().count();
    assert_eq!(folders, names.len());
    let mut beside: Vec<String> = std::fs::read_dir(workspace.path(".flowbench/tables"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    beside.sort();
    assert_eq!(beside, ["default"]);
}

#[test]
fn csv_of_another_encoding_is_rescued_and_counted() {
    let workspace = TestWorkspace::new(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT * FROM STREAM read_files('data', format => 'csv', header => true);",
    );
    workspace.write("data/a.csv", b"id,name\n1,J\xfcrgen\n2,Ann\n");
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.flow("raw")["metrics"]["rescued_values"], 1, "{outcome}");
    assert_eq!(workspace.rows("SELECT id, name FROM raw WHERE name IS NULL"), ["1|null"]);
}
