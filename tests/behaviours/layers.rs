//! Bronze, silver, gold: one update brings all layers to agree; materialized views.

use super::{backfill, live};
use crate::fixture::{EVENTS, ForeignTable, TestWorkspace, wait_until};

/// Bronze with a once flow for 2024, silver streaming from it, gold counting.
fn medallion() -> TestWorkspace {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH MATERIALIZED VIEW gold AS SELECT year, count(*) AS n FROM silver GROUP BY ALL;\n\
         CREATE OR REFRESH STREAMING TABLE silver AS SELECT id, year FROM STREAM(raw);\n\
         CREATE OR REFRESH STREAMING TABLE raw;\n{}",
        live("")
    ));
    workspace.events(2025, 2);
    workspace
}

fn gold(workspace: &TestWorkspace) -> Vec<String> {
    workspace.rows("SELECT year, n FROM gold ORDER BY year")
}

#[test]
fn b_5_history_appended_to_bronze_reaches_silver_and_gold_in_the_same_update() {
    let workspace = medallion();
    workspace.run_ok(&[]);
    assert_eq!(gold(&workspace), ["2025|2"]);
    workspace.write("transformations/history.sql", backfill(2024));
    workspace.events(2024, 3);
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.rows_out("backfill_2024"), outcome.rows_out("silver")), (3, 3));
    assert_eq!(gold(&workspace), ["2024|3", "2025|2"]);
    assert_eq!(workspace.count("silver"), 5);
}

#[test]
fn b_6_the_same_data_appended_twice_is_kept_warned_of_and_made_distinct_downstream() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}\n\
         CREATE OR REFRESH MATERIALIZED VIEW silver AS SELECT DISTINCT id, timestamp FROM raw;",
        backfill(2024),
        backfill(2024).replace("backfill_2024", "second")
    ));
    workspace.events(2024, 3);
    let outcome = workspace.run_ok(&[]);
    assert!(
        outcome
            .notice("source-overlap")
            .starts_with("source overlap: 3 files are read by flow `backfill_2024` and by flow `second`")
    );
    assert_eq!((workspace.count("raw"), workspace.count("silver")), (6, 3));
}

#[test]
fn order_of_statements_does_not_matter_and_a_layer_waits_for_the_one_above() {
    let workspace = medallion();
    let outcome = workspace.run_ok(&[]);
    let order: Vec<&str> = outcome
        .events_of("flow_progress")
        .into_iter()
        .filter(|event| ["RUNNING", "COMPLETED"].contains(&event["details"]["status"].as_str().unwrap()))
        .filter(|event| event["level"] != "METRICS")
        .map(|event| event["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        order,
        [
            "flow `live` is RUNNING",
            "flow `live` is COMPLETED",
            "flow `silver` is RUNNING",
            "flow `silver` is COMPLETED",
            "flow `gold` is RUNNING",
            "flow `gold` is COMPLETED"
        ]
    );
}

#[test]
fn a_materialized_view_is_left_alone_when_nothing_it_reads_changed() {
    let workspace = medallion();
    workspace.run_ok(&[]);
    let version = || workspace.command(&["describe", "gold"]).result["status"]["table"]["version"].as_i64().unwrap();
    let technique = |arguments: &[&str]| -> String {
        let outcome = workspace.run_ok(arguments);
        outcome.events_of("planning_information")[0]["details"]["technique"].as_str().unwrap().to_string()
    };
    let before = version();
    assert_eq!(technique(&[]), "NO_OP");
    assert_eq!(version(), before);
    workspace.event(2025, 9, 9, "");
    assert_eq!(technique(&[]), "COMPLETE_RECOMPUTE");
    assert_eq!((version(), gold(&workspace)), (before + 1, vec!["2025|3".to_string()]));
    assert_eq!(technique(&["--full-refresh", "gold"]), "COMPLETE_RECOMPUTE");
    assert_eq!(technique(&[]), "NO_OP");
    // A changed query and a changed file are changes too.
    let text = std::fs::read_to_string(workspace.path("transformations/pipeline.sql")).unwrap();
    workspace.define(&text.replace("count(*) AS n", "count(*) + 100 AS n"));
    assert_eq!(technique(&[]), "COMPLETE_RECOMPUTE");
    assert_eq!(gold(&workspace), ["2025|103"]);
}

#[test]
fn a_materialized_view_over_files_follows_their_changes() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT id FROM read_files('{EVENTS}/*/*/*', format => 'json');"
    ));
    let path = format!("{EVENTS}/a/b/c/1.json");
    workspace.write(&path, "{\"id\":1}\n");
    workspace.set_time(&path, "2025-01-01T00:00:00Z");
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM m"), ["1"]);
    workspace.write(&path, "{\"id\":2}\n");
    workspace.set_time(&path, "2025-01-01T00:00:01Z");
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM m"), ["2"]);
    workspace.remove(&path);
    workspace.write(&format!("{EVENTS}/a/b/c/2.json"), "{\"id\":3}\n");
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM m"), ["3"]);
}

#[test]
fn a_materialized_view_that_is_not_deterministic_is_always_recomputed() {
    let workspace = medallion();
    workspace.write(
        "transformations/r.sql",
        "CREATE OR REFRESH MATERIALIZED VIEW r AS SELECT id, current_timestamp() AS r FROM silver;",
    );
    workspace.run_ok(&[]);
    let before = workspace.rows("SELECT r FROM r ORDER BY r");
    workspace.run_ok(&[]);
    assert_ne!(workspace.rows("SELECT r FROM r ORDER BY r"), before);
}

#[test]
fn a_materialized_view_is_swapped_at_once_and_an_open_reader_keeps_its_version() {
    let workspace = medallion();
    workspace.run_ok(&[]);
    let folder = workspace.path(".flowbench/tables/default/gold");
    let before = ForeignTable::at(&folder).rows();
    let open = ForeignTable::at(&folder).reader();
    workspace.event(2025, 9, 9, "");
    let go = workspace.path("go");
    let rule = format!("written@gold=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("the new rows", || reached.exists());
    // The new rows are on disk; readers see the old ones until the commit.
    assert_eq!(gold(&workspace), ["2025|2"]);
    assert_eq!(ForeignTable::at(&folder).rows(), before);
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.finish().code, Some(0));
    assert_eq!(gold(&workspace), ["2025|3"]);
    assert_eq!(open.rows(), before, "a reader that was open keeps its version");
    let old = workspace.command(&["show", "gold", "--at-version", "1"]);
    assert_eq!(old.code, Some(0), "{old}");
}

#[test]
fn a_failed_materialized_view_keeps_its_rows() {
    let workspace = medallion();
    workspace.run_ok(&[]);
    workspace.event(2025, 9, 9, "");
    let text = std::fs::read_to_string(workspace.path("transformations/pipeline.sql")).unwrap();
    workspace.define(&text.replace("count(*) AS n", "sum(CAST(CAST(id AS STRING) || 'x' AS BIGINT)) AS n"));
    let outcome = workspace.run(&[]);
    assert_eq!((outcome.code, outcome.flow_state("gold")), (Some(1), "FAILED".to_string()), "{outcome}");
    assert_eq!(outcome.flow_state("silver"), "COMPLETED");
    assert_eq!(gold(&workspace), ["2025|2"]);
}

#[test]
fn views_are_computed_and_never_stored() {
    let workspace = medallion();
    workspace.write(
        "transformations/views.sql",
        "CREATE TEMPORARY VIEW late AS SELECT id FROM silver WHERE id > 202501;\n\
         CREATE VIEW early AS SELECT id FROM silver WHERE id = 202501;\n\
         CREATE OR REFRESH MATERIALIZED VIEW both AS SELECT * FROM late UNION ALL SELECT * FROM early;",
    );
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM both ORDER BY id"), ["202501", "202502"]);
    assert_eq!(workspace.rows("SELECT id FROM early"), ["202501"]);
    assert!(!workspace.path(".flowbench/tables/default/early").exists());
    workspace.event(2025, 9, 202509, "");
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM both ORDER BY id"), ["202501", "202502", "202509"]);
}
