//! Edits and renames that would read rows again or lose them: said before anything happens.

use super::{backfill, live, registration};
use crate::fixture::{EVENTS, TestWorkspace};

/// The page's first pipeline has run over `files` files; then the second one is in its place.
fn switched(files: i32) -> TestWorkspace {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT * FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json', \
         modifiedAfter => '2024-12-31T23:59:59.999+00:00') WHERE year(timestamp) >= '2025';"
    ));
    for file in 1..=files {
        workspace.event(2025, 1 + file % 28, file, "");
    }
    workspace.run_ok(&[]);
    workspace.define(&registration(&[]));
    workspace
}

#[test]
fn b_21_a_named_flow_in_place_of_the_default_flow_is_refused_until_someone_decides() {
    let workspace = switched(120);
    let refused = workspace.run(&[]);
    assert_eq!(refused.code, Some(4), "{refused}");
    let notice = refused.notice("would-read-again");
    for part in [
        "flow `raw` removed; new flow `live` would read 120 already ingested files again",
        "flowbench rename-flow raw live",
        "flowbench run --full-refresh raw",
        "flowbench run --yes",
    ] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    let plan = workspace.run(&["--plan"]);
    assert_eq!((plan.code, plan.notice("would-read-again")), (Some(0), notice));
    assert_eq!(workspace.count("raw"), 120, "nothing ran");
}

#[test]
fn b_21_rename_flow_adopts_the_checkpoint() {
    let workspace = switched(5);
    assert_eq!(workspace.command(&["rename-flow", "raw", "live"]).code, Some(0));
    workspace.event(2025, 9, 900, "");
    assert_eq!(workspace.run_ok(&[]).rows_out("live"), 1);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "6|6");
}

#[test]
fn b_21_a_full_refresh_or_a_yes_are_the_other_ways_out() {
    let workspace = switched(5);
    workspace.run_ok(&["--full-refresh", "raw"]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "5|5");

    let workspace = switched(5);
    assert_eq!(workspace.run_ok(&["--yes"]).rows_out("live"), 5);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "10|5");
}

#[test]
fn b_43_an_edited_done_once_flow_is_not_run_again_until_asked_to() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2024, 3);
    workspace.run_ok(&[]);
    workspace
        .define(&registration(&[2024]).replace("SELECT * FROM read_files", "SELECT * EXCEPT (day) FROM read_files"));
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.flow_state("backfill_2024"), "IDLE");
    let notice = outcome.notice("once-flow-edited");
    assert!(notice.contains("changed since it ran") && notice.contains("--rerun-once backfill_2024"), "{notice}");
    assert_eq!(workspace.count("raw"), 3);
    // The warning stays until it is dealt with.
    assert_eq!(workspace.run_ok(&[]).notices("once-flow-edited").len(), 1);

    let outcome = workspace.run_ok(&["--rerun-once", "backfill_2024"]);
    assert_eq!(outcome.rows_out("backfill_2024"), 3);
    assert!(outcome.notice("once-flow-runs-again").contains("twice"));
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id), count(day) FROM raw"), "6|3|3");
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.flow_state("backfill_2024"), outcome.notices("once-flow-edited")), ("IDLE".into(), vec![]));
}

#[test]
fn b_43_spaces_and_comments_are_no_edit() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2024, 3);
    workspace.run_ok(&[]);
    workspace
        .define(&registration(&[2024]).replace("SELECT * FROM read_files", "SELECT  *  -- all\n  FROM   read_files"));
    assert_eq!(workspace.run_ok(&[]).notices("once-flow-edited"), [] as [&str; 0]);
}

#[test]
fn b_44_a_renamed_done_once_flow_is_refused_until_someone_decides() {
    let rename = |text: String| text.replace("backfill_2024", "history_2024");
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2024, 3);
    workspace.run_ok(&[]);
    workspace.define(&rename(registration(&[2024])));
    let refused = workspace.run(&[]);
    assert_eq!(refused.code, Some(4), "{refused}");
    let notice = refused.notice("would-read-again");
    assert!(
        notice.contains("`backfill_2024`") && notice.contains("`history_2024` would append the same rows again"),
        "{notice}"
    );
    assert_eq!(workspace.command(&["rename-flow", "backfill_2024", "history_2024"]).code, Some(0));
    assert_eq!(workspace.run_ok(&[]).flow_state("history_2024"), "IDLE");
    assert_eq!(workspace.count("raw"), 3);
}

#[test]
fn b_44_a_new_once_flow_with_another_query_just_runs() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2024, 3);
    workspace.events(2023, 2);
    workspace.run_ok(&[]);
    workspace.define(&registration(&[2023]));
    assert_eq!(workspace.run_ok(&[]).rows_out("backfill_2023"), 2);
    assert_eq!(workspace.count("raw"), 5);
}

#[test]
fn rename_flow_refuses_names_that_are_in_use_or_never_ran() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2025, 1);
    workspace.events(2024, 1);
    workspace.run_ok(&[]);
    let cases = [
        (["live", "backfill_2024"], 1, "flow-exists", "`live`"),
        (["nobody", "live"], 2, "unknown-flow", "`nobody`"),
        (["live", "lvie"], 2, "unknown-flow", "`lvie`"),
    ];
    for (names, exit, code, part) in cases {
        let outcome = workspace.command(&[&["rename-flow"], &names[..]].concat());
        assert_eq!((outcome.code, &outcome.error["code"]), (Some(exit), &code.into()), "{names:?}: {outcome}");
        assert!(outcome.error["message"].as_str().unwrap().contains(part), "{names:?}: {outcome}");
    }
}

#[test]
fn definition_changes_are_classified_and_shown_before_a_run() {
    let table = |columns: &str, clauses: &str| {
        format!(
            "CREATE OR REFRESH STREAMING TABLE raw ({columns}) {clauses} AS SELECT CAST(id AS {}) AS id, timestamp \
             FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');",
            columns.split([' ', ',']).nth(1).unwrap()
        )
    };
    let workspace = TestWorkspace::new(&table("id BIGINT, timestamp STRING", ""));
    workspace.events(2025, 2);
    workspace.run_ok(&[]);
    let changes = || -> Vec<String> {
        let plan = workspace.run(&["--plan"]);
        assert_eq!(plan.code, Some(0), "{plan}");
        let datasets = plan.result["changes"].as_array().unwrap().clone();
        datasets
            .iter()
            .flat_map(|dataset| dataset["changes"].as_array().unwrap().clone())
            .map(|change| change["change"].as_str().unwrap().to_string())
            .collect()
    };
    assert_eq!(changes(), [] as [&str; 0]);
    workspace.define(&table("id BIGINT, timestamp STRING", "COMMENT 'events' TBLPROPERTIES ('quality' = 'bronze')"));
    assert_eq!(changes(), ["metadata", "metadata"]);
    workspace.run_ok(&[]);
    assert_eq!(changes(), [] as [&str; 0]);
    workspace.define(&table("id BIGINT, timestamp STRING, vip BOOLEAN", ""));
    assert!(changes().contains(&"new_columns".to_string()), "{:?}", changes());
    workspace.run_ok(&[]);
    assert_eq!(workspace.columns("raw"), ["id BIGINT", "timestamp STRING", "vip BOOLEAN"]);

    // What rows on disk can't follow is an error with the way out; the full refresh then does it.
    for (definition, part) in [
        (table("id STRING, timestamp STRING, vip BOOLEAN", ""), "BIGINT on disk and STRING"),
        (
            table("id STRING, timestamp STRING, vip BOOLEAN", "PARTITIONED BY (id)"),
            "partitioned by nothing on disk and by id",
        ),
    ] {
        workspace.define(&definition);
        let outcome = workspace.run(&[]);
        assert_eq!(outcome.code, Some(3), "{outcome}");
        let diagnostic = outcome.diagnostic("needs-full-refresh");
        assert!(diagnostic["message"].as_str().unwrap().contains(part), "{diagnostic}");
        assert!(diagnostic["help"].as_str().unwrap().contains("--full-refresh raw"), "{diagnostic}");
        workspace.run_ok(&["--full-refresh", "raw"]);
        assert_eq!(workspace.count("raw"), 2);
        assert_eq!(changes(), [] as [&str; 0]);
    }
}

#[test]
fn a_table_does_not_become_a_materialized_view_in_place() {
    let workspace = TestWorkspace::new(&registration(&[]));
    workspace.events(2025, 2);
    workspace.run_ok(&[]);
    workspace.define("CREATE OR REFRESH MATERIALIZED VIEW raw AS SELECT 1 AS id;");
    for arguments in [&[] as &[&str], &["--full-refresh", "raw"]] {
        let outcome = workspace.run(arguments);
        assert_eq!(outcome.code, Some(3), "{outcome}");
        assert_eq!(outcome.diagnostic("dataset-kind-changed")["condition"], "CANNOT_CHANGE_DATASET_TYPE");
    }
    workspace.define("CREATE OR REFRESH MATERIALIZED VIEW other AS SELECT 1 AS id;");
    workspace.run_ok(&[]);
    let rows = workspace.command(&["show", "raw"]);
    assert_eq!(rows.result["rows"].as_array().unwrap().len(), 2, "nothing was lost: {rows}");
}

#[test]
fn a_flow_that_reads_other_sources_than_its_checkpoint_says_so() {
    let workspace = TestWorkspace::new(&registration(&[]));
    workspace.events(2025, 2);
    workspace.run_ok(&[]);
    let files = super::live("");
    let files = &files[files.find("read_files").unwrap()..files.find(" WHERE").unwrap()];
    workspace.define(&format!(
        "{}\nCREATE OR REFRESH STREAMING TABLE other AS SELECT * FROM STREAM {files};",
        registration(&[]).replace(&format!("STREAM {files}"), "STREAM other")
    ));
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let error = outcome.flow("live")["error"].clone();
    assert_eq!((&error["code"], &error["is_fatal"]), (&"source-set-changed".into(), &true.into()), "{error}");
    let help = error["help"].as_str().unwrap();
    assert!(help.contains("--full-refresh raw") && help.contains("flowbench reset live"), "{help}");
    assert_eq!(workspace.count("raw"), 2);
}

#[test]
fn overlapping_sources_are_warned_of_and_kept() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}",
        backfill(2024),
        backfill(2024).replace("backfill_2024", "again_2024")
    ));
    workspace.events(2024, 3);
    let outcome = workspace.run_ok(&[]);
    let notice = outcome.notice("source-overlap");
    assert!(
        notice.contains("3 files") && notice.contains("`backfill_2024`") && notice.contains("`again_2024`"),
        "{notice}"
    );
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "6|3");

    // Flows of different years share nothing.
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}\n{}",
        live(""),
        backfill(2024),
        backfill(2023)
    ));
    workspace.events(2025, 1);
    workspace.events(2024, 1);
    workspace.events(2023, 1);
    assert_eq!(workspace.run_ok(&[]).notices("source-overlap"), [] as [&str; 0]);
}

#[test]
fn a_once_flow_over_files_that_a_done_one_has_read_is_warned_of() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2024, 3);
    workspace.run_ok(&[]);
    let all = backfill(2024).replace("backfill_2024", "all_years").replace("year=2024/*/*", "*/*/*");
    workspace.define(&format!("{}\n{all}", registration(&[2024])));
    let outcome = workspace.run_ok(&[]);
    let notice = outcome.notice("source-overlap");
    assert!(
        notice.contains("3 files") && notice.contains("`backfill_2024`") && notice.contains("`all_years`"),
        "{notice}"
    );
    // Both are done now: nothing is about to be repeated.
    assert_eq!(workspace.run_ok(&[]).notices("source-overlap"), [] as [&str; 0]);
}
