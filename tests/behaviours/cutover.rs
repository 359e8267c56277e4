//! A seed and a live feed into one table: where the one ends and the other begins, key by key.

use serde_json::{Value, json};

use super::changes::folders;
use super::snapshot_backfill::{backfill, event, live, put_state};
use crate::fixture::{RUNTIME, TestWorkspace, find};

/// A table over `data/seed` (once) and `data/live`; events `{"id", "seq", "op", "v"}`.
fn pipeline(scd_type: u8) -> String {
    let flow = |feed: &str, once: &str| {
        format!(
            "CREATE TEMPORARY VIEW {feed}_events AS SELECT * FROM STREAM read_files('data/{feed}', format => 'json', schema \
             => 'id BIGINT, seq BIGINT, op STRING, v STRING', schemaEvolutionMode => 'none');\n\
             CREATE FLOW {feed} AS AUTO CDC{once} INTO t FROM STREAM({feed}_events) KEYS (id) APPLY AS DELETE WHEN op = \
             'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE {scd_type};\n"
        )
    };
    format!("CREATE STREAMING TABLE t;\n{}{}", flow("seed", " ONCE"), flow("live", ""))
}

/// `1 10 U a`: id, sequence, operation, value.
fn put(workspace: &TestWorkspace, feed: &str, events: &[&str]) {
    let line = |event: &&str| {
        let parts: Vec<&str> = event.split(' ').collect();
        let [id, seq, op, v] = parts[..] else { panic!("{event}") };
        format!("{{\"id\":{id},\"seq\":{seq},\"op\":\"{op}\",\"v\":\"{v}\"}}\n")
    };
    let lines: String = events.iter().map(line).collect();
    workspace.write(&format!("data/{feed}/events.json"), lines);
}

fn workspace(scd_type: u8, seed: &[&str], live: &[&str]) -> TestWorkspace {
    let workspace = TestWorkspace::new(&pipeline(scd_type));
    put(&workspace, "seed", seed);
    put(&workspace, "live", live);
    workspace
}

/// Verdicts with their counts, those without keys left out.
fn verdicts(check: &Value) -> Vec<(String, u64)> {
    let counts = check["verdicts"].as_array().expect("verdicts").iter();
    let counts = counts.map(|count| (count["verdict"].as_str().expect("a word").to_string(), count["keys"].as_u64()));
    counts.filter_map(|(verdict, keys)| Some((verdict, keys.filter(|keys| *keys > 0)?))).collect()
}

fn counted(verdicts: &[(&str, u64)]) -> Vec<(String, u64)> {
    verdicts.iter().map(|(verdict, keys)| (verdict.to_string(), *keys)).collect()
}

/// A legacy table with validity columns as the seed, and no clause that deletes.
fn legacy(recipe: &str) -> String {
    format!(
        "CREATE TEMPORARY VIEW legacy AS SELECT * FROM read_files('data/legacy', format => 'json', schema => 'id BIGINT, \
         name STRING, valid_from TIMESTAMP, valid_to TIMESTAMP, is_current BOOLEAN', schemaEvolutionMode => 'none');\n\
         CREATE STREAMING TABLE history;\n{recipe}"
    )
}

const LEGACY_SEED: &str = "CREATE FLOW seed AS AUTO CDC ONCE INTO history FROM legacy KEYS (id) SEQUENCE BY valid_from \
                           COLUMNS * EXCEPT (valid_from, valid_to, is_current) STORED AS SCD TYPE 2;";

fn put_legacy(workspace: &TestWorkspace) {
    // 1: deleted in 2024; 2: open; 3: closed with a date that stands for none.
    let rows = [
        json!({"id": 1, "name": "Ann", "valid_from": "2020-01-01", "valid_to": "2022-01-01", "is_current": false}),
        json!({"id": 1, "name": "Anna", "valid_from": "2022-01-01", "valid_to": "2024-01-01", "is_current": false}),
        json!({"id": 2, "name": "Bo", "valid_from": "2021-01-01", "valid_to": "2023-01-01", "is_current": false}),
        json!({"id": 2, "name": "Bob", "valid_from": "2023-01-01", "valid_to": null, "is_current": true}),
        json!({"id": 3, "name": "Cy", "valid_from": "2021-06-01", "valid_to": "9999-12-31", "is_current": true}),
    ];
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    workspace.write("data/legacy/rows.json", lines);
}

#[test]
fn d_6_keys_whose_last_legacy_row_is_closed_stay_open_and_the_recipe_ends_them() {
    let workspace = TestWorkspace::new(&legacy(LEGACY_SEED));
    put_legacy(&workspace);
    assert_eq!(workspace.command(&["validate"]).diagnostics("legacy-rows-stay-open").len(), 0, "it has not run yet");
    // A workbench that is open meanwhile is told to look again, once.
    let workbench = workspace.engine();
    let recheck = || RUNTIME.block_on(workbench.recheck_sources()).expect("a state that can be read");
    recheck();
    assert!(!recheck(), "nothing is new");
    workspace.run_ok(&[]);
    assert_eq!((recheck(), recheck()), (true, false));
    let open = "SELECT id, name FROM history WHERE __END_AT IS NULL ORDER BY id";
    assert_eq!(workspace.rows(open), ["1|Anna", "2|Bob", "3|Cy"]);

    let warning = workspace.command(&["validate"]).diagnostic("legacy-rows-stay-open");
    let message = warning["message"].as_str().expect("a message");
    assert_eq!(message, "1 key whose last row in the seed is closed is open in `history`: id=1");
    assert!(warning["reason"].as_str().expect("a reason").contains("`valid_to`"));
    let help = warning["help"].as_str().expect("a recipe");
    let (from, to) = (help.find("CREATE TEMPORARY VIEW").expect("a view"), help.find(';').expect("its end"));
    let recipe = &help[from..=to];

    // The recipe as it stands, and the flow as it says.
    workspace.define(&legacy(&format!(
        "{recipe}\nCREATE FLOW seed AS AUTO CDC ONCE INTO history FROM seed_events KEYS (id) APPLY AS DELETE WHEN is_deleted \
         SEQUENCE BY event_at COLUMNS * EXCEPT (valid_from, valid_to, is_current, event_at, is_deleted) STORED AS SCD TYPE 2;"
    )));
    workspace.run_ok(&["--rerun-once", "seed", "--yes"]);
    assert_eq!(workspace.rows(open), ["2|Bob", "3|Cy"]);
    assert_eq!(
        workspace.rows("SELECT name, __END_AT FROM history WHERE id = 1 ORDER BY __START_AT"),
        ["Ann|2022-01-01 00:00:00", "Anna|2024-01-01 00:00:00"]
    );
    assert_eq!(workspace.command(&["validate"]).diagnostics("legacy-rows-stay-open").len(), 0);
    assert_eq!(workspace.command(&["scd", "check", "history"]).code, Some(0));
}

#[test]
fn d_8_a_live_event_before_the_last_seeded_one_is_stale_and_leaves_the_current_row() {
    for scd_type in [1, 2] {
        // 1 is earlier than its own seed, though later than that of 2; 3 has the same sequence.
        let workspace =
            workspace(scd_type, &["1 100 U seed", "2 3 U x", "3 7 U old"], &["1 50 U late", "2 8 U y", "3 7 U new"]);
        workspace.run_ok(&[]);
        let check = workspace.command(&["cutover", "check", "t", "--limit", "0"]);
        assert_eq!(check.code, Some(1), "{check}");
        assert_eq!(verdicts(&check.result), counted(&[("contiguous", 1), ("stale", 1), ("tie", 1)]));
        let stale = find(&check.result["keys"], "verdict", "stale");
        assert_eq!(stale["key"], json!([{"column": "id", "value": "1"}]));
        assert_eq!((&stale["last_seeded"], &stale["first_live"]), (&json!("100"), &json!("50")));
        assert_eq!(find(&check.result["keys"], "verdict", "tie")["key"][0]["value"], "3");
        match scd_type {
            1 => assert_eq!(workspace.rows("SELECT id, v FROM t ORDER BY id"), ["1|seed", "2|y", "3|new"]),
            _ => assert_eq!(
                workspace.rows("SELECT v, __START_AT, __END_AT FROM t WHERE id = 1 ORDER BY __START_AT"),
                ["late|50|100", "seed|100|null"],
                "in its place in the history"
            ),
        }
    }
}

#[test]
fn d_11_the_check_compares_every_key_before_the_live_flow_runs_and_writes_nothing() {
    let seed = ["1 1 U a", "1 5 U b", "2 3 U c", "3 9 U d", "4 4 U e"];
    let live = ["1 10 U b2", "2 11 U c2", "3 8 U d2", "4 4 U e2", "5 1 U f"];
    let expected = counted(&[("contiguous", 2), ("live_only", 1), ("stale", 1), ("tie", 1)]);
    let workspace = workspace(2, &seed, &live);
    let evidence =
        |check: &Value| (check["seed_flows"][0]["evidence"].clone(), check["live_flows"][0]["evidence"].clone());

    // Neither has run.
    let before = workspace.command(&["cutover", "check", "t"]);
    assert_eq!((before.code, verdicts(&before.result)), (Some(1), expected.clone()), "{before}");
    assert_eq!(evidence(&before.result), (json!("source"), json!("source")));
    assert!(!workspace.path(".flowbench/state.db").exists(), "nothing was written");

    // The seed alone.
    workspace.run_ok(&["--flow", "seed"]);
    let between = workspace.command(&["cutover", "check", "t", "--verdict", "stale"]);
    assert_eq!((between.code, verdicts(&between.result)), (Some(1), expected.clone()), "{between}");
    assert_eq!(evidence(&between.result), (json!("applied"), json!("source")));
    assert_eq!(between.result["keys"].as_array().map(Vec::len), Some(1));
    assert_eq!(workspace.value("SELECT count(*) FROM t"), "5", "the live feed was not applied");

    // Both.
    workspace.run_ok(&[]);
    let after = workspace.command(&["cutover", "check", "t"]);
    assert_eq!((after.code, verdicts(&after.result)), (Some(1), expected), "{after}");
    assert_eq!(evidence(&after.result), (json!("applied"), json!("applied")));
}

#[test]
fn d_11_a_sound_cutover_ends_with_exit_code_0_and_the_live_feed_may_come_first() {
    let workspace = workspace(2, &["1 1 U a", "2 2 U b"], &["1 5 U c", "3 1 U d"]);
    workspace.run_ok(&["--flow", "live"]);
    let expected = counted(&[("contiguous", 1), ("seed_only", 1), ("live_only", 1)]);
    let before = workspace.command(&["cutover", "check", "t"]);
    assert_eq!((before.code, verdicts(&before.result)), (Some(0), expected.clone()), "{before}");
    assert_eq!(before.result["seed_flows"][0]["evidence"], "source");
    workspace.run_ok(&[]);
    let after = workspace.command(&["cutover", "check", "t"]);
    assert_eq!((after.code, verdicts(&after.result)), (Some(0), expected), "{after}");
}

#[test]
fn d_13_the_first_live_change_of_a_seeded_key_makes_exactly_one_version_and_closes_the_one_before() {
    let seed = ["1 1 U a", "2 1 U b", "3 1 U c", "4 1 U d", "4 2 D x", "5 1 U e"];
    let live = ["1 5 U a2", "2 5 U b", "3 5 D x", "4 5 U d2"];
    let workspace = workspace(2, &seed, &live);
    workspace.run_ok(&[]);
    let check = workspace.command(&["cutover", "check", "t", "--limit", "20"]);
    assert_eq!(check.code, Some(0), "{check}");
    assert_eq!(check.result["first_changes"], json!({"one_version": 2, "repeats": 1, "deletes": 1, "wrong": 0}));
    let changes: Vec<&Value> =
        check.result["keys"].as_array().expect("keys").iter().map(|key| &key["first_change"]).collect();
    assert_eq!(
        changes,
        [&json!("one_version"), &json!("repeats"), &json!("deletes"), &json!("one_version"), &Value::Null]
    );

    // A table that doesn't show the change: the one of before, under the side table of now.
    let one = workspace.command(&["cutover", "check", "t", "--key", "1"]);
    assert_eq!(one.result["keys"].as_array().map(Vec::len), Some(1));
    let unknown = workspace.command(&["cutover", "check", "t", "--key", "77"]);
    assert_eq!((unknown.code, unknown.error["code"].as_str()), (Some(2), Some("unknown-key")), "{unknown}");
}

#[test]
fn sources_without_a_file_are_said_to_have_nothing() {
    let workspace = TestWorkspace::new(&pipeline(1));
    put(&workspace, "seed", &["1 1 U a"]);
    std::fs::create_dir_all(workspace.path("data/live")).expect("a folder");
    let check = workspace.command(&["cutover", "check", "t"]);
    assert_eq!((check.code, verdicts(&check.result)), (Some(0), counted(&[("seed_only", 1)])), "{check}");
    assert_eq!(check.result["live_flows"][0]["evidence"], "nothing");
}

#[test]
fn a_snapshot_is_no_seed_of_the_cutover_and_the_check_says_so() {
    let workspace = TestWorkspace::new(&(live() + &backfill()));
    folders(&workspace, &["changes", "state"]);
    super::changes::put(&workspace, "changes", 0, &[&event(1, "new", "2025-02-01")]);
    put_state(&workspace, &[(1, "old"), (2, "other")]);
    for _ in ["before they run", "after"] {
        let check = workspace.command(&["cutover", "check", "customers"]);
        assert_eq!((check.code, verdicts(&check.result)), (Some(0), counted(&[("live_only", 1)])), "{check}");
        assert_eq!((&check.result["seed_flows"], &check.result["snapshot_flows"]), (&json!([]), &json!(["backfill"])));
        workspace.run_ok(&[]);
    }
}

#[test]
fn keys_with_a_tie_are_asked_for_by_the_word_of_their_flag() {
    let workspace = workspace(2, &["1 1 U a", "2 2 U b"], &["1 1 U c", "2 3 U d"]);
    workspace.run_ok(&[]);
    // `ties` was its word before.
    for word in ["tie", "ties"] {
        let page = workspace.command(&["scd", "keys", "t", "--only", word]);
        let keys: Vec<&Value> = page.result["keys"].as_array().expect("keys").iter().map(|key| &key["key"]).collect();
        assert_eq!(keys, [&json!([{ "column": "id", "value": "1" }])], "{word}: {page}");
    }
}
