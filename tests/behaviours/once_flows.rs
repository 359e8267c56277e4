//! Once flows: a backfill runs one time, is remembered, and leaves the live flow alone.

use super::{backfill, registration};
use crate::fixture::{EVENTS, Outcome, TestWorkspace, find};

fn years() -> TestWorkspace {
    let workspace = TestWorkspace::new(&registration(&[2024, 2023]));
    workspace.events(2025, 2);
    workspace.events(2024, 3);
    workspace.events(2023, 4);
    workspace
}

#[test]
fn b_1_once_flows_are_called_backfills_where_people_look() {
    let workspace = years();
    let graph = |format: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_flowbench"))
            .args(["graph", "--format", format])
            .current_dir(workspace.root())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for format in ["text", "dot", "mermaid"] {
        let lines: Vec<String> = graph(format).lines().map(str::to_string).collect();
        let line = |name: &str| lines.iter().find(|line| line.contains(name)).unwrap().clone();
        assert!(
            line("backfill_2024").contains("backfill (append once)") || line("backfill_2024").contains("(backfill)")
        );
        assert!(!line("live").contains("backfill"), "{format}: {lines:?}");
    }
}

#[test]
fn b_2_a_backfill_is_a_flow_of_its_own_into_the_table_of_the_live_flow() {
    let workspace = years();
    let graph = workspace.command(&["graph"]).result;
    let into_raw: Vec<(&str, bool)> = graph["edges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|edge| edge["to"] == "raw")
        .map(|edge| (edge["flow"].as_str().unwrap(), edge["is_once"].as_bool().unwrap()))
        .collect();
    assert_eq!(into_raw, [("live", false), ("backfill_2024", true), ("backfill_2023", true)]);
    assert_eq!(graph["datasets"].as_array().unwrap().len(), 1);

    let outcome = workspace.run_ok(&[]);
    let written: Vec<u64> =
        ["live", "backfill_2024", "backfill_2023"].iter().map(|flow| outcome.rows_out(flow)).collect();
    assert_eq!(written, [2, 3, 4]);
    assert_eq!(
        workspace.rows("SELECT id FROM raw ORDER BY id"),
        ["202301", "202302", "202303", "202304", "202401", "202402", "202403", "202501", "202502"]
    );
}

#[test]
fn b_23_a_once_flow_runs_one_time_and_its_source_is_not_listed_again() {
    let workspace = years();
    workspace.run_ok(&[]);
    workspace.event(2024, 9, 1, "");
    workspace.remove(&format!("{EVENTS}/year=2023"));
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.flow_state("backfill_2024"), "IDLE");
    assert_eq!((outcome.flow_state("backfill_2023"), outcome.rows_out("backfill_2023")), ("IDLE".to_string(), 0));
    let listed: Vec<&str> =
        outcome.events_of("operation_progress").iter().map(|event| event["flow"].as_str().unwrap()).collect();
    assert_eq!(listed, ["live"]);
    assert_eq!(workspace.count("raw"), 9);
}

#[test]
fn b_24_a_full_refresh_runs_once_flows_again() {
    let workspace = years();
    workspace.run_ok(&[]);
    workspace.event(2025, 9, 202509, "");
    let outcome = workspace.run_ok(&["--full-refresh", "raw"]);
    let written: Vec<u64> =
        ["live", "backfill_2024", "backfill_2023"].iter().map(|flow| outcome.rows_out(flow)).collect();
    assert_eq!(written, [3, 3, 4]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "10|10");
    // And they are done again.
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill_2024"), "IDLE");
    assert_eq!(workspace.count("raw"), 10);
}

#[test]
fn b_31_once_takes_a_batch_query_and_other_flows_a_stream() {
    let files = format!("read_files('{EVENTS}/*/*/*', format => 'json')");
    let define = |flow: &str| {
        let workspace = TestWorkspace::new(&format!("CREATE OR REFRESH STREAMING TABLE raw;\n{flow}"));
        workspace.events(2025, 2);
        workspace
    };
    let workspace = define(&format!("CREATE FLOW f AS INSERT INTO ONCE raw BY NAME SELECT * FROM STREAM {files};"));
    let outcome = workspace.run(&[]);
    let diagnostic = outcome.diagnostic("once-reads-stream");
    assert_eq!(outcome.code, Some(3));
    assert_eq!(diagnostic["condition"], "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW");
    assert_eq!((&diagnostic["file"], &diagnostic["line"]), (&"transformations/pipeline.sql".into(), &2.into()));

    let workspace = define(&format!("CREATE FLOW f AS INSERT INTO raw BY NAME SELECT * FROM {files};"));
    let outcome = workspace.run(&[]);
    let diagnostic = outcome.diagnostic("streaming-table-without-stream");
    assert_eq!(outcome.code, Some(3));
    assert_eq!(diagnostic["condition"], "INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE");
    assert!(!workspace.path(".flowbench").exists());

    for order in ["INSERT INTO ONCE", "INSERT ONCE INTO"] {
        let workspace = define(&format!("CREATE FLOW f AS {order} raw BY NAME SELECT * FROM {files};"));
        assert_eq!(workspace.run_ok(&[]).rows_out("f"), 2, "{order}");
        assert_eq!(workspace.run_ok(&[]).flow_state("f"), "IDLE", "{order}");
    }
}

#[test]
fn b_34_a_failing_backfill_leaves_the_live_flow_alone() {
    let workspace = years();
    let outcome = run_failing(&workspace);
    assert_eq!((outcome.code, outcome.state()), (Some(1), "FAILED"), "{outcome}");
    assert_eq!(outcome.flow_state("backfill_2024"), "FAILED");
    assert_eq!(outcome.flow_state("live"), "COMPLETED");
    assert_eq!(outcome.flow_state("backfill_2023"), "COMPLETED");
    assert_eq!(workspace.rows("SELECT DISTINCT year FROM raw ORDER BY ALL"), ["2023", "2025"]);

    // The next update does what is missing, and nothing twice.
    let outcome = workspace.run_ok(&[]);
    let states: Vec<String> =
        ["live", "backfill_2024", "backfill_2023"].iter().map(|flow| outcome.flow_state(flow)).collect();
    assert_eq!(states, ["COMPLETED", "COMPLETED", "IDLE"]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "9|9");
}

/// Runs an update whose flow `backfill_2024` fails.
fn run_failing(workspace: &TestWorkspace) -> Outcome {
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "written@backfill_2024=error")])
}

#[test]
fn b_36_once_flows_are_told_apart_from_live_ones() {
    let workspace = years();
    let kind = |flow: &str| workspace.flow_status(flow)["kind"].as_str().unwrap().to_string();
    assert_ne!(kind("live"), kind("backfill_2024"));
    let never = workspace.flow_status("backfill_2024");
    assert_eq!((&never["state"], &never["is_done"]), (&"IDLE".into(), &false.into()));
    workspace.run_ok(&[]);
    let done = workspace.flow_status("backfill_2024");
    assert_eq!((&done["state"], &done["is_done"]), (&"IDLE".into(), &true.into()));
    let live = workspace.flow_status("live");
    assert_eq!((&live["state"], &live["is_done"]), (&"COMPLETED".into(), &false.into()));
}

#[cfg(unix)]
#[test]
fn b_37_a_backfill_appends_its_rows_exactly_once_whenever_it_is_killed() {
    for point in ["plan", "planned", "written", "committed"] {
        let workspace = years();
        let rule = format!("{point}@backfill_2024=kill");
        let killed = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", &rule)]);
        assert_eq!(killed.code, None, "{point}: {killed}");
        workspace.run_ok(&[]);
        assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "9|9", "{point}");
        assert_eq!(workspace.run_ok(&[]).flow_state("backfill_2024"), "IDLE", "{point}");
        assert_eq!(workspace.count("raw"), 9, "{point}");
    }
}

#[test]
fn b_38_a_done_once_flow_stays_in_the_graph_with_its_last_run() {
    let workspace = years();
    workspace.run_ok(&[]);
    let last_run = workspace.flow_status("backfill_2024")["last_run_us"].as_i64().unwrap();
    workspace.run_ok(&[]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.flow_state("backfill_2024"), "IDLE");
    let status = workspace.flow_status("backfill_2024");
    assert_eq!((&status["state"], &status["is_done"]), (&"IDLE".into(), &true.into()));
    assert_eq!(status["last_run_us"].as_i64().unwrap(), last_run, "the run that appended its rows");
    let graph = workspace.command(&["graph"]).result;
    let flow = find(&graph["flows"], "name", "backfill_2024");
    assert_eq!(flow["dataset"], "raw", "{graph}");
}

#[test]
fn b_39_the_event_log_says_that_a_flow_is_once_and_when_it_was_done() {
    let workspace = years();
    workspace.run_ok(&[]);
    let log = workspace.command(&["events"]);
    let of = |event_type: &str, flow: &str| -> Vec<serde_json::Value> {
        log.events_of(event_type).into_iter().filter(|event| event["flow"] == flow).cloned().collect()
    };
    assert_eq!(of("flow_definition", "backfill_2024")[0]["details"]["once"], true);
    assert_eq!(of("flow_definition", "live")[0]["details"]["once"], false);
    let progress = of("flow_progress", "backfill_2024");
    let end = progress.last().unwrap();
    assert_eq!(end["details"]["status"], "COMPLETED");
    assert_eq!(end["details"]["metrics"]["rows_out"], 3);
    assert!(end["time_us"].as_i64().unwrap() > progress[0]["time_us"].as_i64().unwrap());
}

#[test]
fn b_40_a_large_backfill_is_split_and_run_flow_by_flow() {
    let workspace = years();
    let outcome = workspace.run_ok(&["--flow", "backfill_2023"]);
    assert_eq!(outcome.flow_state("backfill_2023"), "COMPLETED");
    assert_eq!(
        (outcome.flow_state("live"), outcome.flow_state("backfill_2024")),
        ("EXCLUDED".into(), "EXCLUDED".into())
    );
    assert_eq!(workspace.rows("SELECT DISTINCT year FROM raw"), ["2023"]);
    workspace.run_ok(&["--flow", "backfill_2024"]);
    workspace.run_ok(&[]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "9|9");
}

#[test]
fn b_45_a_once_flow_over_an_empty_path_is_done_with_a_warning() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2025, 2);
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.flow_state("backfill_2024"), outcome.rows_out("backfill_2024")), ("COMPLETED".into(), 0));
    let notice = outcome.notice("empty-source");
    assert!(notice.contains("year=2024/*/*") && notice.contains("--rerun-once backfill_2024"), "{notice}");
    // Files that come later are not read by themselves, only on request.
    workspace.events(2024, 3);
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill_2024"), "IDLE");
    assert_eq!(workspace.run_ok(&["--rerun-once", "backfill_2024"]).rows_out("backfill_2024"), 3);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "5|5");
}

#[test]
fn a_once_flow_of_a_table_reads_it_as_it_is_when_the_flow_starts() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw;\n{}\nCREATE OR REFRESH STREAMING TABLE copy;\n\
         CREATE FLOW seed AS INSERT INTO ONCE copy BY NAME SELECT id FROM raw;",
        backfill(2024)
    ));
    workspace.events(2024, 3);
    assert_eq!(workspace.run_ok(&[]).rows_out("seed"), 3);
    assert_eq!(workspace.run_ok(&[]).flow_state("seed"), "IDLE");
    assert_eq!(workspace.count("copy"), 3);
}

#[test]
fn a_once_flow_that_failed_is_tried_again_by_the_next_update() {
    let workspace = TestWorkspace::new(&format!("CREATE OR REFRESH STREAMING TABLE raw;\n{}", backfill(2024)));
    workspace.events(2024, 3);
    let failed = run_failing(&workspace);
    assert_eq!(failed.code, Some(1));
    assert_eq!(workspace.flow_status("backfill_2024")["is_done"], false);
    assert_eq!(workspace.run_ok(&[]).rows_out("backfill_2024"), 3);
    assert_eq!(workspace.count("raw"), 3);
}
