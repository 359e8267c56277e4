//! `STREAM table`: a Delta table read version by version, of this pipeline or of someone else.

use super::one_table;
use crate::fixture::{ForeignTable, TestWorkspace};

/// A workspace with an external Delta table `legacy.t` at `legacy/`, streamed into `copy`.
fn external(options: &str) -> (TestWorkspace, ForeignTable) {
    let workspace = TestWorkspace::new(&copy(options));
    workspace.write("flowbench.toml", "[[source]]\nname = \"legacy.t\"\nformat = \"delta\"\npath = \"legacy\"\n");
    let table = ForeignTable::at(&workspace.path("legacy"));
    (workspace, table)
}

fn copy(options: &str) -> String {
    let with = if options.is_empty() { String::new() } else { format!(" WITH ({options})") };
    format!("CREATE OR REFRESH STREAMING TABLE copy AS SELECT * FROM STREAM legacy.t{with};")
}

fn ids(workspace: &TestWorkspace) -> Vec<String> {
    workspace.rows("SELECT id FROM copy ORDER BY id")
}

#[test]
fn an_external_table_is_read_by_version_each_row_once() {
    let (workspace, table) = external("");
    table.append(1..=3);
    table.append(4..=5);
    assert_eq!(workspace.run_ok(&[]).rows_out("copy"), 5);
    assert_eq!(workspace.run_ok(&[]).batches("copy").len(), 0);
    table.append(6..=6);
    table.append(7..=8);
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.rows_out("copy"), outcome.flow("copy")["metrics"]["rows_in"].as_u64()), (3, Some(3)));
    assert_eq!(ids(&workspace), ["1", "2", "3", "4", "5", "6", "7", "8"]);
}

#[test]
fn stream_of_a_pipeline_table_is_incremental_in_all_three_spellings() {
    for read in ["STREAM raw", "STREAM(raw)", "stream(raw)"] {
        let workspace = one_table(", maxFilesPerTrigger => 1");
        workspace.write(
            "transformations/silver.sql",
            format!("CREATE OR REFRESH STREAMING TABLE silver AS SELECT id FROM {read};"),
        );
        workspace.events(2025, 3);
        assert_eq!(workspace.run_ok(&[]).rows_out("silver"), 3, "{read}");
        assert_eq!(workspace.run_ok(&[]).rows_out("silver"), 0, "{read}");
        workspace.event(2025, 9, 9, "");
        assert_eq!(workspace.run_ok(&[]).rows_out("silver"), 1, "{read}");
        assert_eq!(workspace.count("silver"), 4, "{read}");
    }
}

#[test]
fn a_rewritten_source_is_an_error_with_version_operation_and_the_ways_out() {
    let (workspace, table) = external("");
    table.append(1..=3);
    workspace.run_ok(&[]);
    table.append(4..=4);
    table.delete("id = 2");
    table.append(5..=5);
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let error = outcome.flow("copy")["error"].clone();
    assert_eq!((&error["code"], &error["is_fatal"]), (&"source-rewritten".into(), &true.into()), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("version 2 of ") && message.contains("(DELETE)"), "{message}");
    let help = error["help"].as_str().unwrap();
    for part in ["--full-refresh", "SKIPCHANGECOMMITS = TRUE", "STARTINGVERSION = 3", "legacy.t"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    // What came before the rewrite is in.
    assert_eq!(ids(&workspace), ["1", "2", "3", "4"]);

    workspace.define(&copy("SKIPCHANGECOMMITS = TRUE"));
    workspace.run_ok(&[]);
    assert_eq!(ids(&workspace), ["1", "2", "3", "4", "5"]);
    table.overwrite(10..=11);
    table.append(12..=12);
    workspace.run_ok(&[]);
    assert_eq!(ids(&workspace), ["1", "12", "2", "3", "4", "5"].map(str::to_string).to_vec().sorted());

    // Read from the start, the table is copied as it is.
    workspace.run_ok(&["--full-refresh", "copy"]);
    assert_eq!(ids(&workspace), ["10", "11", "12"]);
}

trait Sorted {
    fn sorted(self) -> Self;
}

impl Sorted for Vec<String> {
    fn sorted(mut self) -> Self {
        self.sort_by_key(|id| id.parse::<i64>().unwrap());
        self
    }
}

#[test]
fn someone_else_rewriting_a_pipeline_table_is_told_to_its_stream() {
    let workspace = one_table("");
    workspace
        .write("transformations/silver.sql", "CREATE OR REFRESH STREAMING TABLE silver AS SELECT id FROM STREAM raw;");
    workspace.events(2025, 3);
    workspace.run_ok(&[]);
    ForeignTable::at(&workspace.path(".flowbench/tables/default/raw")).delete("id = 202502");
    workspace.event(2025, 9, 9, "");
    let outcome = workspace.run(&[]);
    assert_eq!((outcome.flow_state("raw"), outcome.flow_state("silver")), ("COMPLETED".into(), "FAILED".into()));
    assert_eq!(outcome.flow("silver")["error"]["code"], "source-rewritten");
    assert_eq!(workspace.rows("SELECT id FROM raw ORDER BY id"), ["9", "202501", "202503"]);
    assert_eq!(workspace.count("silver"), 3);
}

#[test]
fn b_22_starting_version_bounds_the_first_start_only() {
    let (workspace, table) = external("STARTINGVERSION = 1");
    table.append(1..=3);
    table.append(4..=5);
    table.append(6..=6);
    workspace.run_ok(&[]);
    assert_eq!(ids(&workspace), ["4", "5", "6"]);
    workspace.define(&copy("STARTINGVERSION = 0"));
    assert_eq!(workspace.run_ok(&[]).rows_out("copy"), 0, "ignored once the flow has started");
    table.append(7..=7);
    workspace.run_ok(&[]);
    assert_eq!(ids(&workspace), ["4", "5", "6", "7"]);
}

#[test]
fn b_22_starting_version_latest_reads_what_comes_after_the_first_start() {
    let (workspace, table) = external("STARTINGVERSION = 'latest'");
    table.append(1..=3);
    assert_eq!(workspace.run_ok(&[]).rows_out("copy"), 0);
    table.append(4..=5);
    workspace.run_ok(&[]);
    assert_eq!(ids(&workspace), ["4", "5"]);
}

#[test]
fn b_22_starting_timestamp_reads_versions_committed_since() {
    let (workspace, table) = external("STARTINGTIMESTAMP = '2100-01-01'");
    table.append(1..=3);
    assert_eq!(workspace.run_ok(&[]).rows_out("copy"), 0, "nothing was committed since then");

    let (workspace, table) = external("STARTINGTIMESTAMP = '2020-01-01'");
    table.append(1..=3);
    table.append(4..=4);
    workspace.run_ok(&[]);
    assert_eq!(ids(&workspace), ["1", "2", "3", "4"]);
}

#[test]
fn max_files_per_trigger_cuts_a_table_stream_too() {
    let (workspace, table) = external("MAXFILESPERTRIGGER = 2");
    for id in 1..=5 {
        table.append(id..=id);
    }
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batch_files("copy"), [2, 2, 1]);
    assert_eq!(ids(&workspace), ["1", "2", "3", "4", "5"]);
}

#[test]
fn a_source_that_was_dropped_and_made_anew_is_noticed() {
    let (workspace, table) = external("");
    table.append(1..=3);
    workspace.run_ok(&[]);
    workspace.remove("legacy");
    ForeignTable::at(&workspace.path("legacy")).append(1..=9);
    let outcome = workspace.run(&[]);
    let error = outcome.flow("copy")["error"].clone();
    assert_eq!((outcome.code, &error["code"]), (Some(1), &"source-recreated".into()), "{outcome}");
    assert!(error["help"].as_str().unwrap().contains("flowbench reset copy"), "{error}");
    assert_eq!(workspace.count("copy"), 3);
}

#[test]
fn external_sources_are_read_as_they_are_when_the_update_starts() {
    let (workspace, table) = external("");
    table.append(1..=3);
    let go = workspace.path("go");
    let rule = format!("plan@copy=pause({})", go.display());
    workspace.run_ok(&[]);
    table.append(4..=4);
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    crate::fixture::wait_until("the flow", || reached.exists());
    table.append(5..=5);
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.finish().rows_out("copy"), 1);
    assert_eq!(ids(&workspace), ["1", "2", "3", "4"]);
    workspace.run_ok(&[]);
    assert_eq!(ids(&workspace), ["1", "2", "3", "4", "5"]);
}
