//! Flow order as it runs: a flow that depends on others starts when they have ended, and not otherwise.

use super::{backfill, live};
use crate::fixture::{EVENTS, Outcome, TestWorkspace, wait_until};

/// Fixture F into `raw`, in order: 2023, then 2024, then live.
const CHAIN: [&str; 3] = ["backfill_2023", "backfill_2024", "live"];

fn chain() -> TestWorkspace {
    let workspace = TestWorkspace::new(&chain_sql());
    workspace.events(2023, 4);
    workspace.events(2024, 3);
    workspace.events(2025, 2);
    workspace
}

/// The flows are written the other way round: the order of the files says nothing.
fn chain_sql() -> String {
    format!(
        "CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}\n{}",
        after(&live(""), "backfill_2024"),
        after(&backfill(2024), "backfill_2023"),
        backfill(2023)
    )
}

/// A flow's statement with `DEPENDS ON`.
fn after(flow: &str, flows: &str) -> String {
    flow.replacen(" AS INSERT", &format!(" DEPENDS ON ({flows}) AS INSERT"), 1)
}

/// Two tables that have nothing to do with each other, `a` and `b`, each with a live flow of its own name.
fn two_tables(order: &str) -> TestWorkspace {
    let table = |name: &str, order: &str| {
        format!(
            "CREATE OR REFRESH STREAMING TABLE {name}_rows;\nCREATE FLOW {name} {order} AS INSERT INTO {name}_rows BY \
             NAME SELECT id FROM STREAM read_files('data/{name}', format => 'json');\n"
        )
    };
    let workspace = TestWorkspace::new(&format!("{}{}", table("b", order), table("a", "")));
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    workspace.write("data/a/1.json", "{\"id\":1}\n");
    workspace.write("data/b/1.json", "{\"id\":1}\n{\"id\":2}\n");
    workspace
}

fn states(outcome: &Outcome, flows: &[&str]) -> Vec<String> {
    flows.iter().map(|flow| outcome.flow_state(flow)).collect()
}

/// Checks that each flow started when the one before it had ended, by the times of the events.
#[track_caller]
fn assert_ran_in_order(outcome: &Outcome, flows: &[&str]) {
    let ran: Vec<(i64, i64)> = flows.iter().map(|flow| outcome.ran(flow)).collect();
    for (pair, names) in ran.windows(2).zip(flows.windows(2)) {
        assert!(pair[0].1 <= pair[1].0, "{names:?}: {pair:?}\n{outcome}");
    }
}

#[test]
fn o_2_without_an_order_flows_without_common_data_run_together() {
    let workspace = two_tables("");
    let go = workspace.path("go");
    let rule = format!("planned@a=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("flow a", || reached.exists());
    // `a` is in the middle of its batch, and `b` does not care.
    wait_until("flow b", || workspace.flow_status("b")["state"] == "COMPLETED");
    std::fs::write(&go, "").unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.state(), "COMPLETED", "{outcome}");
    assert!(outcome.ran("b").1 < outcome.ran("a").1);
}

#[test]
fn o_2_by_default_a_reader_comes_after_the_writer() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE copy AS SELECT id FROM STREAM raw;\n\
         CREATE OR REFRESH STREAMING TABLE raw;\n{}",
        live("")
    ));
    workspace.events(2025, 2);
    assert_ran_in_order(&workspace.run_ok(&[]), &["live", "copy"]);
    assert_eq!(workspace.count("copy"), 2);
}

#[test]
fn o_3_a_dependent_waits_until_the_other_has_ended() {
    let workspace = two_tables("DEPENDS ON a");
    let go = workspace.path("go");
    // The rows of `a` are in the table, and still it has not ended.
    let rule = format!("committed@a=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("flow a", || reached.exists());
    assert_eq!(workspace.count("a_rows"), 1);
    assert_eq!(workspace.flow_status("b")["state"], "QUEUED");
    std::fs::write(&go, "").unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.state(), "COMPLETED", "{outcome}");
    assert_ran_in_order(&outcome, &["a", "b"]);
    assert_eq!(workspace.count("b_rows"), 2);
}

#[test]
fn o_3_the_dependent_of_a_failed_flow_is_skipped_and_says_why() {
    let workspace = two_tables("DEPENDS ON a");
    let outcome = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "written@a=error")]);
    assert_eq!((outcome.code, outcome.state()), (Some(1), "FAILED"), "{outcome}");
    assert_eq!(states(&outcome, &["a", "b"]), ["FAILED", "SKIPPED"]);
    let error = &outcome.flow("b")["error"];
    assert_eq!(error["code"], "predecessor-failed");
    assert_eq!(error["message"], "flow `a`, which it waits for (depends_on), is FAILED");
    assert!(outcome.batches("b").is_empty());
    assert!(outcome.stderr.contains("SKIPPED  flow `a`, which it waits for"), "{outcome}");

    // The next update does both.
    let outcome = workspace.run_ok(&[]);
    assert_ran_in_order(&outcome, &["a", "b"]);
    assert_eq!(workspace.count("b_rows"), 2);
}

#[test]
fn o_4_an_order_changes_when_a_flow_starts_and_nothing_else() {
    let workspace = chain();
    workspace.run_ok(&[]);
    let live = workspace.flow_status("live");
    assert_eq!((&live["kind"], &live["is_done"]), (&"append".into(), &false.into()));
    workspace.event(2025, 9, 202509, "");
    assert_eq!(workspace.run_ok(&[]).batch_files("live"), [1]);
    // To take the order out or to put it back is no change of the flow: its checkpoint stays, nothing is asked.
    workspace.define(&chain_sql().replace("DEPENDS ON (backfill_2024) ", ""));
    workspace.event(2025, 10, 202510, "");
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.batch_files("live"), outcome.notices("flow-edited").len()), (vec![1], 0));
    workspace.define(&chain_sql());
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.rows_out("live"), outcome.flow_state("backfill_2023")), (0, "IDLE".to_string()));
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "11|11");
}

#[test]
fn o_8_a_list_is_waited_for_as_a_whole_while_its_flows_run_together() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}\n{}",
        after(&live(""), "backfill_2023, backfill_2024"),
        backfill(2024),
        backfill(2023)
    ));
    workspace.events(2023, 4);
    workspace.events(2024, 3);
    workspace.events(2025, 2);
    let go = workspace.path("go");
    let rule = format!("planned@backfill_2023=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("flow backfill_2023", || reached.exists());
    // The other backfill does not wait for this one; that one of the two is done is not enough.
    wait_until("flow backfill_2024", || workspace.flow_status("backfill_2024")["is_done"] == true);
    assert_eq!(workspace.flow_status("live")["state"], "QUEUED");
    std::fs::write(&go, "").unwrap();
    let outcome = running.finish();
    assert_ran_in_order(&outcome, &["backfill_2023", "live"]);
    assert_ran_in_order(&outcome, &["backfill_2024", "live"]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "9|9");
}

#[test]
fn o_9_a_chain_runs_link_by_link() {
    let workspace = chain();
    let outcome = workspace.run_ok(&[]);
    assert_ran_in_order(&outcome, &CHAIN);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "9|9");
    // The versions of the table tell the same story.
    assert_eq!(workspace.rows("SELECT DISTINCT year FROM raw ORDER BY year"), ["2023", "2024", "2025"]);
    let versions: Vec<i64> = CHAIN
        .iter()
        .map(|flow| outcome.batches(flow).last().unwrap()["details"]["table_version"].as_i64().unwrap())
        .collect();
    assert!(versions.is_sorted(), "{versions:?}");
}

#[test]
fn o_17_flows_into_different_tables_are_ordered_though_they_share_no_data() {
    for order in ["DEPENDS ON a", "DEPENDS ON (a)", "COMMENT 'late' DEPENDS ON (`a`)", "depends on (A) comment 'x'"] {
        let outcome = two_tables(order).run_ok(&[]);
        assert_ran_in_order(&outcome, &["a", "b"]);
    }
}

#[test]
fn a_flow_waits_for_a_tables_own_query_by_the_tables_name() {
    let workspace = TestWorkspace::new(
        "CREATE OR REFRESH STREAMING TABLE late;\n\
         CREATE FLOW tail DEPENDS ON (first, sums) AS INSERT INTO late BY NAME \
         SELECT id FROM STREAM read_files('data/a', format => 'json');\n\
         CREATE OR REFRESH STREAMING TABLE other.first AS SELECT id FROM STREAM read_files('data/a', format => 'json');\n\
         CREATE OR REFRESH MATERIALIZED VIEW sums AS SELECT count(*) AS n FROM other.first;",
    );
    workspace.write("data/a/1.json", "{\"id\":1}\n");
    // Its schema is part of the name.
    let diagnostic = workspace.command(&["validate"]).diagnostic("unknown-flow");
    assert!(diagnostic["message"].as_str().unwrap().contains("`first`"), "{diagnostic}");
    workspace.define(
        &std::fs::read_to_string(workspace.path("transformations/pipeline.sql"))
            .unwrap()
            .replace("(first, sums)", "(other.first, default.sums)"),
    );
    assert_ran_in_order(&workspace.run_ok(&[]), &["other.first", "sums", "tail"]);
}

#[test]
fn o_19_the_order_holds_within_every_update() {
    let workspace = two_tables("DEPENDS ON a");
    for n in 2..5 {
        for table in ["a", "b"] {
            workspace.write(&format!("data/{table}/{n}.json"), format!("{{\"id\":{n}}}\n"));
        }
        let outcome = workspace.run_ok(&[]);
        assert_ran_in_order(&outcome, &["a", "b"]);
    }
    assert_eq!((workspace.count("a_rows"), workspace.count("b_rows")), (4, 5));
}

#[test]
fn o_21_a_chain_that_broke_goes_on_with_its_first_flow_that_is_not_done() {
    let workspace = chain();
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    let outcome = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "written@backfill_2024=error")]);
    assert_eq!(states(&outcome, &CHAIN), ["COMPLETED", "FAILED", "SKIPPED"]);
    assert_eq!(workspace.rows("SELECT DISTINCT year FROM raw"), ["2023"]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(states(&outcome, &CHAIN), ["IDLE", "COMPLETED", "COMPLETED"]);
    assert_ran_in_order(&outcome, &["backfill_2024", "live"]);
    // From here on only the live flow runs.
    workspace.event(2025, 9, 202509, "");
    let outcome = workspace.run_ok(&[]);
    assert_eq!(states(&outcome, &CHAIN), ["IDLE", "IDLE", "COMPLETED"]);
    assert_eq!(outcome.rows_out("live"), 1);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "10|10");
}

#[test]
fn an_earlier_year_put_before_a_done_chain_runs_before_the_live_flow() {
    let workspace = chain();
    workspace.run_ok(&[]);
    // 2022 → 2023 (done) → 2024 (done) → live: the done ones hold nobody up, and the order goes on through them.
    workspace.events(2022, 2);
    workspace.define(&format!(
        "{}\n{}",
        chain_sql().replace(&backfill(2023), &after(&backfill(2023), "backfill_2022")),
        backfill(2022)
    ));
    let outcome = workspace.run_ok(&[]);
    assert_eq!(states(&outcome, &CHAIN), ["IDLE", "IDLE", "COMPLETED"]);
    assert_ran_in_order(&outcome, &["backfill_2022", "live"]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "11|11");
}

#[test]
fn o_22_a_full_refresh_runs_the_chain_again_in_order() {
    let workspace = chain();
    workspace.run_ok(&[]);
    let outcome = workspace.run_ok(&["--full-refresh", "raw"]);
    assert_eq!(states(&outcome, &CHAIN), ["COMPLETED"; 3]);
    assert_ran_in_order(&outcome, &CHAIN);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "9|9");
    assert_eq!(states(&workspace.run_ok(&[]), &CHAIN), ["IDLE", "IDLE", "COMPLETED"]);

    // If a link breaks, those behind it are skipped and the old rows stay.
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    let broken = [("FLOWBENCH_FAIL_POINT", "written@backfill_2024=error")];
    let outcome = workspace.command_with(&["run", "--full-refresh", "raw"], &broken);
    assert_eq!(states(&outcome, &CHAIN), ["COMPLETED", "FAILED", "SKIPPED"]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "9|9");
    assert_eq!(states(&workspace.run_ok(&[]), &CHAIN), ["IDLE", "IDLE", "COMPLETED"]);
}

#[test]
fn o_23_a_reset_of_the_live_flow_replays_the_live_flow_only() {
    let workspace = chain();
    workspace.run_ok(&[]);
    let history = workspace.rows("SELECT id FROM raw WHERE year < 2025 ORDER BY id");
    assert_eq!(workspace.command(&["reset", "live", "--yes"]).code, Some(0));
    let outcome = workspace.run_ok(&[]);
    assert_eq!(states(&outcome, &CHAIN), ["IDLE", "IDLE", "COMPLETED"]);
    assert_eq!(outcome.rows_out("live"), 2);
    assert_eq!(workspace.rows("SELECT id FROM raw WHERE year < 2025 ORDER BY id"), history);
    assert_eq!(workspace.value("SELECT count(*) FROM raw WHERE year = 2025"), "4");
}

#[test]
fn o_24_who_is_not_selected_is_not_waited_for_and_that_is_said() {
    let workspace = chain();
    let outcome = workspace.run_ok(&["--flow", "live"]);
    assert_eq!(states(&outcome, &CHAIN), ["EXCLUDED", "EXCLUDED", "COMPLETED"]);
    let notice = outcome.notice("predecessor-not-selected");
    assert!(notice.contains("`live` runs without waiting for `backfill_2024`"), "{notice}");
    assert!(notice.contains("flowbench run --flow backfill_2024,live"), "{notice}");
    let plan = workspace.run(&["--flow", "live", "--plan"]);
    let lines = plan.result["lines"].to_string();
    assert!(lines.contains("after backfill_2024 (not selected)"), "{lines}");

    // Selected together they keep their order, also through a flow that is left out.
    let outcome = workspace.run_ok(&["--flow", "live,backfill_2023"]);
    assert_ran_in_order(&outcome, &["backfill_2023", "live"]);

    // A once flow that is done is what is waited for, selected or not: there is nothing to say.
    workspace.run_ok(&[]);
    let outcome = workspace.run_ok(&["--flow", "live"]);
    assert_eq!(states(&outcome, &CHAIN), ["EXCLUDED", "EXCLUDED", "COMPLETED"]);
    assert!(outcome.notices("predecessor-not-selected").is_empty(), "{outcome}");
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "9|9");
}

#[test]
fn o_24_a_refresh_of_one_table_does_not_wait_for_flows_of_another() {
    let workspace = two_tables("DEPENDS ON a");
    let outcome = workspace.run_ok(&["--refresh", "b_rows"]);
    assert_eq!(states(&outcome, &["a", "b"]), ["EXCLUDED", "COMPLETED"]);
    assert!(outcome.notice("predecessor-not-selected").contains("`a`"));
    let outcome = workspace.run_ok(&["--refresh", "b_rows,a_rows"]);
    assert_ran_in_order(&outcome, &["a", "b"]);
    assert!(outcome.notices("predecessor-not-selected").is_empty());
    // And with a full refresh of the dependent alone.
    let outcome = workspace.run_ok(&["--full-refresh", "b_rows"]);
    assert_eq!(states(&outcome, &["a", "b"]), ["EXCLUDED", "COMPLETED"]);
    assert_eq!(workspace.count("b_rows"), 2);
}

#[test]
fn o_25_a_failure_skips_the_whole_chain_behind_it_and_a_done_flow_skips_nobody() {
    let workspace = chain();
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    let outcome = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "written@backfill_2023=error")]);
    assert_eq!(states(&outcome, &CHAIN), ["FAILED", "SKIPPED", "SKIPPED"]);
    let message = |flow: &str| outcome.flow(flow)["error"]["message"].as_str().unwrap().to_string();
    assert_eq!(message("backfill_2024"), "flow `backfill_2023`, which it waits for (depends_on), is FAILED");
    assert_eq!(message("live"), "flow `backfill_2024`, which it waits for (depends_on), is SKIPPED");
    assert!(!workspace.path(".flowbench/tables/default/raw/year=2025").exists());

    workspace.run_ok(&[]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(states(&outcome, &CHAIN), ["IDLE", "IDLE", "COMPLETED"]);
    assert!(workspace.run(&["--plan"]).result["lines"].to_string().contains("after backfill_2024 (done)"));
}

#[test]
fn a_refresh_of_what_failed_takes_the_skipped_ones_along_in_order() {
    let workspace = two_tables("DEPENDS ON a");
    workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "written@a=error")]);
    let outcome = workspace.run_ok(&["--refresh-failed"]);
    assert_eq!(states(&outcome, &["a", "b"]), ["COMPLETED", "COMPLETED"]);
    assert_ran_in_order(&outcome, &["a", "b"]);
}

#[test]
fn a_backfill_that_runs_again_is_waited_for_again() {
    let workspace = chain();
    workspace.run_ok(&[]);
    let outcome = workspace.run_ok(&["--rerun-once", "backfill_2023"]);
    assert_eq!(states(&outcome, &CHAIN), ["COMPLETED", "IDLE", "COMPLETED"]);
    assert_ran_in_order(&outcome, &["backfill_2023", "live"]);
}

#[test]
fn one_flow_at_a_time_is_room_enough_for_an_order() {
    let workspace = chain();
    workspace.write("flowbench.toml", "[limits]\nconcurrent_flows = 1\n");
    assert_ran_in_order(&workspace.run_ok(&[]), &CHAIN);
}

#[test]
fn a_dependent_reads_files_as_they_were_when_the_update_started() {
    let workspace = two_tables("DEPENDS ON a");
    let go = workspace.path("go");
    let rule = format!("planned@a=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("flow a", || reached.exists());
    // A file that comes while `b` waits is for the next update.
    workspace.write("data/b/2.json", "{\"id\":9}\n");
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.finish().rows_out("b"), 2);
    assert_eq!(workspace.run_ok(&[]).rows_out("b"), 1);
}

#[test]
fn the_event_log_says_whom_a_flow_waited_for() {
    let workspace = chain();
    let outcome = workspace.run_ok(&[]);
    let definition = |flow: &str| {
        let events = outcome.events_of("flow_definition");
        events.into_iter().find(|event| event["flow"] == flow).unwrap().clone()
    };
    assert_eq!(definition("live")["details"]["depends_on"], serde_json::json!(["backfill_2024"]));
    assert_eq!(definition("backfill_2023")["details"]["depends_on"], serde_json::json!([]));
    assert_eq!(definition("live")["message"], "flow `live` into `raw`: append, after `backfill_2024`");
    let queued = outcome.events_of("flow_progress").into_iter().find(|event| event["flow"] == "live").unwrap();
    assert_eq!(queued["message"], "flow `live` is QUEUED, after `backfill_2024`");
    // And later, from the log.
    let log = workspace.command(&["events"]);
    let logged = log.events_of("flow_definition").into_iter().find(|event| event["flow"] == "live").unwrap().clone();
    assert_eq!(logged["details"]["depends_on"], serde_json::json!(["backfill_2024"]));
}

#[test]
fn o_22_a_full_refresh_of_everything_keeps_the_order_across_tables() {
    let workspace = TestWorkspace::new(&format!(
        "{}\nCREATE OR REFRESH STREAMING TABLE audit;\n\
         CREATE FLOW audit_rows DEPENDS ON live AS INSERT INTO audit BY NAME \
         SELECT id FROM STREAM read_files('{EVENTS}/year=2025/*/*', format => 'json');",
        chain_sql()
    ));
    workspace.events(2023, 1);
    workspace.events(2024, 1);
    workspace.events(2025, 2);
    let flows = ["backfill_2023", "backfill_2024", "live", "audit_rows"];
    assert_ran_in_order(&workspace.run_ok(&[]), &flows);
    let outcome = workspace.run_ok(&["--full-refresh-all"]);
    assert_ran_in_order(&outcome, &flows);
    assert_eq!((workspace.count("raw"), workspace.count("audit")), (4, 2));
}
