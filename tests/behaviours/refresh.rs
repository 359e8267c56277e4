//! What an update runs and drops: selections, full refreshes, resets, failures, lost state, tables taken out.

use super::{backfill, live, one_table, registration};
use crate::fixture::{EVENTS, ForeignTable, Outcome, TestWorkspace, wait_until};

/// Two branches: `raw` → `silver` → `gold`, and `other` → `side`.
fn branches() -> TestWorkspace {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT id FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');\n\
         CREATE OR REFRESH STREAMING TABLE silver AS SELECT * FROM STREAM raw;\n\
         CREATE OR REFRESH MATERIALIZED VIEW gold AS SELECT count(*) AS n FROM silver;\n\
         CREATE OR REFRESH STREAMING TABLE other AS SELECT id FROM STREAM read_files('data/other', format => 'json');\n\
         CREATE OR REFRESH MATERIALIZED VIEW side AS SELECT count(*) AS n FROM other;"
    ));
    workspace.events(2025, 3);
    workspace.write("data/other/1.json", "{\"id\":1}\n");
    workspace
}

const FLOWS: [&str; 5] = ["raw", "silver", "gold", "other", "side"];

fn states(outcome: &Outcome) -> Vec<String> {
    FLOWS.iter().map(|flow| outcome.flow_state(flow)).collect()
}

#[test]
fn a_refresh_of_some_datasets_leaves_the_others_out() {
    let workspace = branches();
    let outcome = workspace.run_ok(&["--refresh", "other, side"]);
    assert_eq!(states(&outcome), ["EXCLUDED", "EXCLUDED", "EXCLUDED", "COMPLETED", "COMPLETED"]);
    assert_eq!(workspace.rows("SELECT n FROM side"), ["1"]);
    let unknown = workspace.run(&["--refresh", "slver"]);
    assert_eq!((unknown.code, &unknown.error["condition"]), (Some(2), &"INVALID_REFRESH_SELECTION".into()));
    assert_eq!(unknown.error["help"], "did you mean `silver`?");
    let both = workspace.run(&["--refresh", "other", "--full-refresh", "other"]);
    assert_eq!(both.code, Some(2), "{both}");
    let clash = workspace.run(&["--full-refresh-all", "--refresh", "other"]);
    assert_eq!((clash.code, &clash.error["condition"]), (Some(2), &"CONFLICTING_PIPELINE_REFRESH_OPTIONS".into()));
}

#[test]
fn a_full_refresh_under_streams_asks_for_them_too() {
    let workspace = branches();
    workspace.run_ok(&[]);
    let refused = workspace.run(&["--full-refresh", "raw"]);
    assert_eq!(refused.code, Some(4), "{refused}");
    let notice = refused.notice("streams-read-the-table");
    assert!(
        notice.contains("`raw`") && notice.contains("`silver`") && notice.contains("--with-downstream"),
        "{notice}"
    );
    // A yes doesn't lift it: the stream would fail.
    assert_eq!(workspace.run(&["--full-refresh", "raw", "--yes"]).code, Some(4));

    workspace.remove(&format!("{EVENTS}/year=2025/month=01/day=01"));
    let outcome = workspace.run_ok(&["--full-refresh", "raw", "--with-downstream"]);
    assert_eq!(states(&outcome), ["COMPLETED", "COMPLETED", "EXCLUDED", "EXCLUDED", "EXCLUDED"]);
    assert_eq!((workspace.count("raw"), workspace.count("silver")), (2, 2));
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT n FROM gold"), ["2"]);
    assert_eq!(workspace.run_ok(&["--full-refresh", "raw,silver"]).rows_out("silver"), 2);
}

#[test]
fn a_full_refresh_of_all_passes_over_protected_tables() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE kept TBLPROPERTIES ('pipelines.reset.allowed' = 'false') AS SELECT id \
         FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');\n\
         CREATE OR REFRESH STREAMING TABLE raw AS SELECT id FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');"
    ));
    workspace.events(2025, 3);
    workspace.run_ok(&[]);
    workspace.remove(&format!("{EVENTS}/year=2025/month=01/day=01"));
    workspace.event(2025, 9, 9, "");
    let outcome = workspace.run_ok(&["--full-refresh-all"]);
    assert!(outcome.notice("protected-table").contains("`kept`"));
    assert_eq!((outcome.rows_out("kept"), outcome.rows_out("raw")), (1, 3));
    assert_eq!((workspace.count("kept"), workspace.count("raw")), (4, 3));
    let named = workspace.run(&["--full-refresh", "kept"]);
    assert_eq!((named.code, &named.error["condition"]), (Some(2), &"TABLE_NOT_RESETTABLE".into()));
    assert!(named.error["help"].as_str().unwrap().contains("pipelines.reset.allowed"));
}

#[test]
fn a_protected_table_must_not_stream_from_one_that_may_be_reset() {
    let workspace = branches();
    let text = std::fs::read_to_string(workspace.path("transformations/pipeline.sql")).unwrap();
    workspace.define(&text.replace("TABLE silver", "TABLE silver TBLPROPERTIES ('pipelines.reset.allowed' = 'false')"));
    let outcome = workspace.run(&[]);
    let diagnostic = outcome.diagnostic("protected-table-reads-resettable");
    assert_eq!((outcome.code, &diagnostic["condition"]), (Some(3), &"INVALID_RESETTABLE_DEPENDENCY".into()));
}

#[test]
fn a_failed_full_refresh_keeps_the_old_rows_and_checkpoints() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    workspace.events(2025, 2);
    workspace.events(2024, 3);
    workspace.run_ok(&[]);
    workspace.event(2025, 9, 9, "");
    let rule = [("FLOWBENCH_FAIL_POINT", "written@backfill_2024=error")];
    let failed = workspace.command_with(&["run", "--full-refresh", "raw"], &rule);
    assert_eq!((failed.code, failed.flow_state("live")), (Some(1), "COMPLETED".to_string()), "{failed}");
    assert_eq!(failed.notices("full-refresh-abandoned").len(), 1);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "5|5");
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.flow_state("backfill_2024"), outcome.rows_out("live")), ("IDLE".to_string(), 1));
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "6|6");
}

#[test]
fn a_full_refresh_checks_that_its_sources_exist_before_it_drops_anything() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2025, 2);
    workspace.events(2024, 3);
    workspace.run_ok(&[]);
    workspace.remove(&format!("{EVENTS}/year=2024"));
    let outcome = workspace.run(&["--full-refresh", "raw"]);
    assert_ne!(outcome.code, Some(0), "{outcome}");
    assert_eq!(outcome.error["code"], "source-missing", "{outcome}");
    let message = outcome.error["message"].as_str().unwrap();
    assert!(message.contains("`backfill_2024`") && message.contains("year=2024"), "{message}");
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "5|5");
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill_2024"), "IDLE");
}

#[test]
fn readers_see_the_old_rows_until_a_full_refresh_is_complete() {
    let workspace = one_table("");
    workspace.events(2025, 3);
    workspace.run_ok(&[]);
    workspace.remove(&format!("{EVENTS}/year=2025/month=01/day=01"));
    let go = workspace.path("go");
    let rule = format!("promote=pause({})", go.display());
    let running = workspace.start(&["--full-refresh", "raw"], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("the new generation", || reached.exists());
    assert_eq!(workspace.count("raw"), 3);
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.finish().code, Some(0));
    assert_eq!(workspace.count("raw"), 2);
    assert_eq!(ForeignTable::at(&workspace.path(".flowbench/tables/default/raw")).rows().len(), 1 + 2);
}

#[test]
fn a_declared_table_without_flows_is_emptied_by_a_full_refresh() {
    let define = |flow: &str| format!("CREATE OR REFRESH STREAMING TABLE raw (id BIGINT);\n{flow}");
    let workspace = TestWorkspace::new(&define(&backfill(2024).replace("SELECT *", "SELECT id")));
    workspace.events(2024, 3);
    workspace.run_ok(&[]);
    workspace.define(&define(""));
    workspace.run_ok(&[]);
    assert_eq!(workspace.count("raw"), 3);
    workspace.run_ok(&["--full-refresh", "raw"]);
    assert_eq!(workspace.count("raw"), 0);
}

#[test]
fn a_failed_flow_skips_those_that_read_it_and_the_rest_goes_on() {
    let workspace = branches();
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    let failed = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "written@silver=error")]);
    assert_eq!((failed.code, failed.state()), (Some(1), "FAILED"));
    assert_eq!(states(&failed), ["COMPLETED", "FAILED", "SKIPPED", "COMPLETED", "COMPLETED"]);
    let error = failed.flow("gold")["error"].clone();
    assert_eq!(error["code"], "upstream-failed");
    assert!(error["message"].as_str().unwrap().contains("`silver`"), "{error}");

    let outcome = workspace.run_ok(&["--refresh-failed"]);
    assert_eq!(states(&outcome), ["EXCLUDED", "COMPLETED", "COMPLETED", "EXCLUDED", "EXCLUDED"]);
    assert_eq!(workspace.rows("SELECT n FROM gold"), ["3"]);
    // Nothing has failed any more, so nothing runs.
    let outcome = workspace.run_ok(&["--refresh-failed"]);
    assert!(states(&outcome).iter().all(|state| state == "EXCLUDED"), "{outcome}");
}

#[test]
fn a_failure_that_may_pass_is_retried_and_one_that_may_not_is_not() {
    let workspace = one_table("");
    workspace.write("flowbench.toml", "[limits]\nretries = 2\n");
    workspace.events(2025, 3);
    let outcome = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "written@raw=error")]);
    assert_eq!((outcome.code, outcome.rows_out("raw")), (Some(0), 3), "{outcome}");
    assert!(outcome.notice("flow-retried").contains("(1 of 2)"));
    assert_eq!(workspace.count("raw"), 3);

    // A value that no cast can take fails at once.
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT CAST(timestamp AS BIGINT) AS n \
         FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');"
    ));
    workspace.events(2025, 1);
    let outcome = workspace.run(&[]);
    assert_eq!((outcome.code, outcome.notices("flow-retried").len()), (Some(1), 0), "{outcome}");
    let error = outcome.flow("raw")["error"].clone();
    assert_eq!(error["is_fatal"], true);
    assert!(error["message"].as_str().unwrap().contains("2025-01-01T10:00:00"), "{error}");
}

#[test]
fn retries_end_after_the_last_one() {
    let workspace = one_table("");
    workspace.write("flowbench.toml", "[limits]\nretries = 1\n");
    workspace.events(2025, 1);
    let rule = "written@raw:1=error;written@raw:2=error";
    let outcome = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", rule)]);
    assert_eq!((outcome.code, outcome.notices("flow-retried").len()), (Some(1), 1), "{outcome}");
    assert_eq!(outcome.flow("raw")["error"]["is_fatal"], false);
    assert_eq!(workspace.run_ok(&[]).rows_out("raw"), 1);
}

#[test]
fn a_reset_keeps_the_rows_and_says_what_would_be_read_twice() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2025, 3);
    workspace.events(2024, 2);
    workspace.run_ok(&[]);
    let plan = workspace.command(&["reset", "live", "--plan"]);
    let reset = &plan.result["flows"][0];
    assert_eq!((plan.code, &plan.result["is_done"]), (Some(0), &false.into()), "{plan}");
    assert_eq!((&reset["files_again"], &reset["rows_again"], &reset["rows_kept"]), (&3.into(), &3.into(), &5.into()));
    assert!(reset["start"].as_str().unwrap().contains("modifiedAfter"), "{reset}");
    assert_eq!(workspace.command(&["reset", "live"]).code, Some(4));
    assert_eq!(workspace.run_ok(&[]).rows_out("live"), 0, "nothing was reset yet");

    assert_eq!(workspace.command(&["reset", "live", "--yes"]).code, Some(0));
    assert_eq!(workspace.count("raw"), 5);
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.rows_out("live"), outcome.flow_state("backfill_2024")), (3, "IDLE".to_string()));
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "8|5");
    assert_eq!(workspace.run_ok(&[]).rows_out("live"), 0);
}

#[test]
fn a_reset_does_not_touch_once_flows() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2024, 2);
    workspace.run_ok(&[]);
    let outcome = workspace.command(&["reset", "backfill_2024", "--yes"]);
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(outcome.error["help"].as_str().unwrap().contains("--rerun-once backfill_2024"), "{outcome}");
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill_2024"), "IDLE");
    assert_eq!(workspace.count("raw"), 2);
}

#[test]
fn a_dataset_taken_out_of_the_files_stays_until_it_is_dropped() {
    let workspace = branches();
    workspace.run_ok(&[]);
    let text = std::fs::read_to_string(workspace.path("transformations/pipeline.sql")).unwrap();
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("side")).collect();
    let refused = workspace.command(&["drop", "side", "--yes"]);
    assert_eq!((refused.code, &refused.error["code"]), (Some(1), &"dataset-active".into()), "{refused}");
    workspace.define(&without.join("\n"));
    let outcome = workspace.run_ok(&[]);
    assert!(outcome.notice("dataset-inactive").contains("flowbench drop side --yes"));
    assert_eq!(workspace.run_ok(&[]).notices("dataset-inactive"), [] as [&str; 0], "said once");
    let status = workspace.command(&["status"]).result;
    let side = crate::fixture::find(&status["datasets"], "name", "side");
    assert_eq!(side["is_active"], false);
    assert_eq!(workspace.command(&["show", "side"]).result["rows"][0]["n"], "1");

    assert_eq!(workspace.command(&["drop", "side"]).code, Some(4));
    assert_eq!(workspace.command(&["drop", "side", "--yes"]).code, Some(0));
    assert!(!workspace.path(".flowbench/tables/default/side").exists());
    assert_ne!(workspace.command(&["show", "side"]).code, Some(0));
    // Put back, it is made anew.
    workspace.define(&text);
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT n FROM side"), ["1"]);
}

#[test]
fn a_stream_dropped_and_put_back_starts_from_the_start() {
    let workspace = branches();
    workspace.run_ok(&[]);
    let text = std::fs::read_to_string(workspace.path("transformations/pipeline.sql")).unwrap();
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("side") && !line.contains("other")).collect();
    workspace.define(&without.join("\n"));
    workspace.run_ok(&[]);
    // Inactive and back: it goes on where it was.
    workspace.define(&text);
    assert_eq!(workspace.run_ok(&[]).rows_out("other"), 0);
    assert_eq!(workspace.count("other"), 1);
    workspace.define(&without.join("\n"));
    workspace.run_ok(&[]);
    assert_eq!(workspace.command(&["drop", "other", "--yes"]).code, Some(0));
    workspace.define(&text);
    assert_eq!(workspace.run_ok(&[]).rows_out("other"), 1);
    assert_eq!(workspace.count("other"), 1);
}

#[test]
fn lost_state_is_refused_and_repaired_as_far_as_the_tables_prove_it() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2024, 3);
    workspace.events(2025, 2);
    workspace.run_ok(&[]);
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(workspace.path(".flowbench").join(file));
    }
    let refused = workspace.run(&[]);
    assert_eq!((refused.code, &refused.error["code"]), (Some(1), &"state-lost".into()), "{refused}");
    assert!(refused.error["help"].as_str().unwrap().contains("doctor --repair"), "{refused}");
    let found = workspace.command(&["doctor"]);
    crate::fixture::find(&found.result["findings"], "code", "state-lost");

    let repaired = workspace.command(&["doctor", "--repair"]);
    let taken = crate::fixture::find(&repaired.result["findings"], "code", "checkpoint-taken-over");
    assert!(taken["message"].as_str().unwrap().contains("`backfill_2024`"), "{repaired}");
    let lost = crate::fixture::find(&repaired.result["findings"], "code", "checkpoint-lost");
    assert!(lost["message"].as_str().unwrap().contains("`live`"), "{repaired}");
    assert!(lost["help"].as_str().unwrap().contains("--full-refresh raw"), "{repaired}");
    assert_eq!(workspace.count("raw"), 5);
    // It stays so, and is said again, until someone has decided.
    let again = workspace.command(&["doctor"]);
    assert_eq!(again.result["findings"].as_array().unwrap(), &[lost], "{again}");
    // What the repair proposes.
    workspace.run_ok(&["--full-refresh", "raw"]);
    assert_eq!(workspace.command(&["doctor"]).result["findings"], serde_json::json!([]));
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "5|5");
}

#[test]
fn after_a_repair_a_done_backfill_is_idle_and_a_live_flow_does_not_double_by_itself() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2024, 3);
    workspace.events(2025, 2);
    workspace.run_ok(&[]);
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(workspace.path(".flowbench").join(file));
    }
    workspace.command(&["doctor", "--repair"]);
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.flow_state("backfill_2024"), "IDLE", "{outcome}");
    assert_eq!(outcome.flow_state("live"), "FAILED", "{outcome}");
    assert_eq!(outcome.flow("live")["error"]["code"], "checkpoint-lost", "{outcome}");
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "5|5");
}

#[test]
fn a_second_run_is_refused_while_one_is_running_and_readers_work() {
    let workspace = one_table("");
    workspace.events(2025, 2);
    workspace.run_ok(&[]);
    workspace.event(2025, 9, 9, "");
    let go = workspace.path("go");
    let rule = format!("written@raw=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("the flow", || reached.exists());
    let second = workspace.run(&[]);
    assert_eq!((second.code, &second.error["code"]), (Some(1), &"workspace-locked".into()), "{second}");
    let status = workspace.command(&["status"]);
    assert!(status.result["running_pid"].is_number(), "{status}");
    assert_eq!(workspace.count("raw"), 2);
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.finish().code, Some(0));
    assert_eq!(workspace.count("raw"), 3);
}

#[test]
fn a_plan_and_a_dry_run_write_nothing() {
    let workspace =
        TestWorkspace::new(&format!("CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}", live(""), backfill(2024)));
    workspace.events(2025, 2);
    workspace.events(2024, 3);
    for arguments in [&["--plan"], &["--dry-run"]] {
        assert_eq!(workspace.run(arguments).code, Some(0));
        assert!(!workspace.path(".flowbench").exists(), "{arguments:?}");
    }
    let plan = workspace.run(&["--plan"]).result;
    let backlog = |flow: &str| crate::fixture::find(&plan["backlog"], "flow", flow)["files"].clone();
    assert_eq!((backlog("live"), backlog("backfill_2024")), (2.into(), 3.into()));
}

#[test]
fn an_older_copy_of_state_db_is_noticed_and_repaired_as_far_as_possible() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2025, 2);
    workspace.run_ok(&["--flow", "live"]);
    let files = ["state.db", "state.db-wal", "state.db-shm"];
    let copies: Vec<Option<Vec<u8>>> =
        files.iter().map(|file| std::fs::read(workspace.path(".flowbench").join(file)).ok()).collect();
    workspace.events(2024, 3);
    workspace.event(2025, 9, 9, "");
    workspace.run_ok(&[]);
    for (file, copy) in files.iter().zip(copies) {
        let path = workspace.path(".flowbench").join(file);
        match copy {
            Some(bytes) => std::fs::write(path, bytes).unwrap(),
            None => drop(std::fs::remove_file(path)),
        }
    }
    let refused = workspace.run(&[]);
    let codes = |outcome: &Outcome| -> Vec<String> {
        ["live", "backfill_2024"].iter().map(|flow| outcome.flow(flow)["error"]["code"].to_string()).collect()
    };
    assert_eq!((refused.code, codes(&refused)), (Some(1), vec!["\"state-behind-table\"".to_string(); 2]), "{refused}");
    let found = workspace.command(&["doctor"]).result["findings"].as_array().unwrap().clone();
    assert_eq!(found.iter().filter(|finding| finding["code"] == "state-behind-table").count(), 2, "{found:?}");

    workspace.command(&["doctor", "--repair"]);
    let outcome = workspace.run(&[]);
    assert_eq!(
        (outcome.flow_state("backfill_2024"), outcome.flow_state("live")),
        ("IDLE".into(), "FAILED".into()),
        "{outcome}"
    );
    assert_eq!(outcome.flow("live")["error"]["code"], "checkpoint-lost", "{outcome}");
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "6|6");
    // The other way out than a full refresh: bound the start to what is new, and start again.
    workspace.event(2025, 10, 10, "");
    workspace.define(&registration(&[2024]).replace("2024-12-31T23:59:59.999", "2025-01-09T23:59:59.999"));
    assert_eq!(workspace.command(&["reset", "live", "--yes"]).code, Some(0));
    assert_eq!(workspace.run_ok(&[]).rows_out("live"), 1);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "7|7");
}
