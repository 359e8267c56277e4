//! The live flow: what it reads in which batches, where it starts, and that several flows run side by side.

use super::{backfill, live, one_table, registration};
use crate::fixture::{EVENTS, Outcome, TestWorkspace, wait_until};

#[test]
fn b_12_a_legacy_streaming_live_table_without_stream_is_incremental() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING LIVE TABLE raw AS SELECT * FROM read_files('{EVENTS}/*/*/*', format => 'json');"
    ));
    workspace.events(2025, 3);
    assert_eq!(workspace.run_ok(&[]).rows_out("raw"), 3);
    let again = workspace.run_ok(&[]);
    assert_eq!((again.rows_out("raw"), again.batches("raw").len()), (0, 0));
    workspace.event(2025, 9, 202509, "");
    assert_eq!(workspace.run_ok(&[]).rows_out("raw"), 1);

    let validation = workspace.command(&["validate"]);
    assert_eq!(validation.code, Some(0));
    let lints = validation.diagnostics("legacy-live");
    assert!(lints.iter().all(|lint| lint["severity"] == "warning"));
    let text = lints.iter().map(|lint| lint["help"].as_str().unwrap()).collect::<Vec<_>>().join("; ");
    assert!(text.contains("STREAMING TABLE") && text.contains("STREAM"), "{text}");
}

#[test]
fn b_17_max_files_per_trigger_cuts_the_backlog_into_batches_of_one_update() {
    let workspace = one_table(", maxFilesPerTrigger => 100");
    for file in 0..250 {
        workspace.write(&format!("{EVENTS}/a/b/c/{file}.json"), format!("{{\"id\":{file}}}\n"));
    }
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batch_files("raw"), [100, 100, 50]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "250|250");
}

#[test]
fn b_19_modified_after_is_strictly_later_than_its_moment() {
    // Of files at the first moment of 2025, a millisecond before, and later.
    let read = |modified_after: &str| {
        let workspace = one_table(&format!(", modifiedAfter => '{modified_after}'"));
        for (id, time) in [
            (1, "2024-12-31T23:59:59.999Z"),
            (2, "2025-01-01T00:00:00.000Z"),
            (3, "2025-01-01T00:00:00.001Z"),
            (4, "2025-01-01T09:00:00.001Z"),
        ] {
            let path = format!("{EVENTS}/a/b/c/{id}.json");
            workspace.write(&path, format!("{{\"id\":{id}}}\n"));
            workspace.set_time(&path, time);
        }
        workspace.run_ok(&[]);
        workspace.rows("SELECT id FROM raw ORDER BY id")
    };
    assert_eq!(read("2024-12-31T23:59:59.999+00:00"), ["2", "3", "4"], "the SQL of the page");
    assert_eq!(read("2025-01-01T00:00:00.000+00:00"), ["3", "4"], "the Python of the page");
    assert_eq!(read("2025-01-01T09:00:00.000+09:00"), ["3", "4"], "the same moment in Tokyo");
    assert_eq!(read("2025-01-01T00:00:00.000-09:00"), ["4"], "nine hours later");
}

#[test]
fn b_19_the_same_without_a_file_left_makes_no_table() {
    let workspace = one_table(", modifiedAfter => '2026-01-01T00:00:00.000+00:00'");
    workspace.events(2025, 2);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.rows_out("raw"), 0);
    assert_eq!(outcome.notices("no-input-yet").len(), 1);
    assert!(!workspace.path(".flowbench/tables/default/raw").exists());
}

#[test]
fn b_20_the_safeguard_filters_old_events_in_files_written_late() {
    let workspace = TestWorkspace::new(&registration(&[]));
    workspace.events(2025, 2);
    let late = format!("{EVENTS}/year=2025/month=01/day=05/late.json");
    workspace.write(
        &late,
        "{\"id\":7,\"timestamp\":\"2023-06-01T00:00:00\"}\n{\"id\":8,\"timestamp\":\"2025-01-05T00:00:00\"}\n",
    );
    workspace.set_time(&late, "2025-01-05T12:00:00Z");
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM raw ORDER BY id"), ["8", "202501", "202502"]);
}

#[test]
fn b_30_the_live_flow_reads_only_what_is_new() {
    let workspace = TestWorkspace::new(&registration(&[]));
    workspace.events(2025, 3);
    assert_eq!(workspace.run_ok(&[]).batch_files("live"), [3]);
    workspace.event(2025, 9, 202509, "");
    let second = workspace.run_ok(&[]);
    assert_eq!((second.batch_files("live"), second.rows_out("live")), (vec![1], 1));
    assert_eq!(workspace.count("raw"), 4);
}

#[test]
fn b_35_each_flow_has_settings_of_its_own() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}",
        live(", maxFilesPerTrigger => 2"),
        backfill(2024)
    ));
    workspace.events(2025, 5);
    workspace.events(2024, 5);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batch_files("live"), [2, 2, 1]);
    assert_eq!(outcome.batch_files("backfill_2024"), [5]);

    // Spark's per-flow settings have counterparts; they are never passed over in silence.
    workspace.write(
        "transformations/conf.toml",
        "[[flow]]\nname = \"f\"\ntarget = \"raw\"\nonce = true\nspark_conf = { a = \"1\" }\nsql = \"SELECT 1 AS id\"\n",
    );
    let diagnostic = workspace.run(&[]).diagnostic("not-supported-yet");
    assert!(diagnostic["message"].as_str().unwrap().contains("spark_conf"), "{diagnostic}");
    assert!(diagnostic["help"].as_str().unwrap().contains("limits"), "{diagnostic}");
}

#[test]
fn b_8_limits_of_a_flow_hold_for_that_flow() {
    // The narrow flows' memory is less than what they hold at a time: a sort spills, one array can't.
    let sort = "SELECT id, sha2(id, 512) AS a FROM read_files('data/*.json', format => 'json') ORDER BY sha2(id, 256)";
    let gather = "SELECT array_join(collect_list(id), ',') AS id FROM read_files('data/*.json', format => 'json')";
    let flow = |name: &str, limits: &str, sql: &str| {
        format!("[[flow]]\nname = \"{name}\"\ntarget = \"t\"\nonce = true\n{limits}sql = \"{sql}\"\n")
    };
    let narrow = |memory: &str| format!("limits = {{ memory = \"{memory}\", threads = 1 }}\n");
    let workspace = TestWorkspace::new("");
    workspace.write(
        "transformations/flows.toml",
        [
            "[[streaming_table]]\nname = \"t\"\n",
            &flow("narrow_sort", &narrow("8MB"), sort),
            &flow("narrow_gather", &narrow("400KB"), gather),
            &flow("wide_gather", "", gather),
        ]
        .concat(),
    );
    let lines: String = (0..60_000).map(|id| format!("{{\"id\":\"{id:060}\"}}\n")).collect();
    workspace.write("data/a.json", lines);
    let outcome = workspace.run(&[]);
    assert_eq!(
        (outcome.flow_state("narrow_sort"), outcome.rows_out("narrow_sort")),
        ("COMPLETED".into(), 60_000),
        "{outcome}"
    );
    assert_eq!(
        (outcome.flow_state("wide_gather"), outcome.rows_out("wide_gather")),
        ("COMPLETED".into(), 1),
        "{outcome}"
    );
    assert_eq!(outcome.flow_state("narrow_gather"), "FAILED", "{outcome}");
    let error = outcome.flow("narrow_gather")["error"].clone();
    assert_eq!((&error["code"], &error["is_fatal"]), (&"query-failed".into(), &true.into()));
    assert!(error["help"].as_str().unwrap().contains("more memory"), "{error}");
}

#[test]
fn b_8_the_live_flow_commits_while_a_backfill_runs() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2025, 2);
    workspace.events(2024, 2);
    let go = workspace.path("go");
    let rule = format!("written@backfill_2024=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("the backfill", || reached.exists());
    wait_until("the live flow's commit", || {
        workspace.path(".flowbench/tables/default/raw").exists() && workspace.count("raw") == 2
    });
    std::fs::write(&go, "").unwrap();
    let outcome = running.finish();
    assert_eq!((outcome.code, outcome.rows_out("backfill_2024")), (Some(0), 2));
    assert_eq!(workspace.count("raw"), 4);
}

#[test]
fn b_41_the_concurrency_setting_says_how_many_flows_run_at_a_time() {
    let most_at_a_time = |limit: usize| {
        let workspace = TestWorkspace::new(&registration(&[2024, 2023, 2022]));
        workspace.write("flowbench.toml", format!("[limits]\nconcurrent_flows = {limit}\n"));
        for year in [2022, 2023, 2024] {
            workspace.events(year, 2);
        }
        let outcome = workspace.run_ok(&["--flow", "backfill_2024,backfill_2023,backfill_2022"]);
        assert_eq!(workspace.rows("SELECT id FROM raw ORDER BY id").len(), 6);
        let (mut running, mut most) = (0, 0);
        for event in outcome.events_of("flow_progress").iter().filter(|event| event["level"] != "METRICS") {
            match event["details"]["status"].as_str().unwrap() {
                "RUNNING" => running += 1,
                "COMPLETED" => running -= 1,
                _ => {}
            }
            most = most.max(running);
        }
        most
    };
    assert_eq!(most_at_a_time(1), 1);
    assert_eq!(most_at_a_time(3), 3);
}

#[test]
fn a_live_flow_that_failed_replays_its_batch_with_the_same_id() {
    let workspace = one_table(", maxFilesPerTrigger => 1");
    workspace.events(2025, 3);
    workspace.write("flowbench.toml", "[limits]\nretries = 0\n");
    let ids = |outcome: &Outcome| -> Vec<i64> {
        outcome.batches("raw").iter().map(|event| event["batch"].as_i64().unwrap()).collect()
    };
    let failed = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "written@raw:2=error")]);
    assert_eq!((failed.code, ids(&failed)), (Some(1), vec![0]), "{failed}");
    assert_eq!(ids(&workspace.run_ok(&[])), [1, 2]);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "3|3");
}

#[test]
fn a_source_folder_that_is_gone_is_warned_of_and_the_flow_goes_on_when_it_is_back() {
    let workspace = one_table("");
    workspace.events(2025, 2);
    workspace.run_ok(&[]);
    let (here, away) = (workspace.path("data"), workspace.path("away"));
    std::fs::rename(&here, &away).unwrap();
    let outcome = workspace.run_ok(&[]);
    let notice = outcome.notice("source-missing");
    assert!(notice.contains("`raw`") && notice.contains(EVENTS), "{notice}");
    std::fs::rename(&away, &here).unwrap();
    workspace.event(2025, 9, 9, "");
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.rows_out("raw"), outcome.notices("source-missing").len()), (1, 0));
}

#[cfg(unix)]
#[test]
fn a_signal_stops_at_a_batch_boundary_and_the_next_run_goes_on() {
    let workspace = one_table(", maxFilesPerTrigger => 1");
    workspace.events(2025, 3);
    let go = workspace.path("go");
    let rule = format!("committed@raw=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    wait_until("the first commit", || reached.exists());
    running.terminate();
    wait_until("the signal to be taken", || running.has_said("stopping at the batch boundary"));
    std::fs::write(&go, "").unwrap();
    let outcome = running.finish();
    assert_eq!((outcome.code, outcome.state(), outcome.rows_out("raw")), (Some(5), "CANCELED", 1), "{outcome}");
    assert_eq!(workspace.count("raw"), 1);
    assert_eq!(workspace.run_ok(&[]).rows_out("raw"), 2);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "3|3");
}
