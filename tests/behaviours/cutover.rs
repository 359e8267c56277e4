//! A seed and a live feed into one table: where the one ends and the other begins, key by key.

use serde_json::{Value, json};

use super::changes::{files, folders};
use super::snapshot_backfill::{backfill, event, live, put_state};
use super::snapshots::snapshot_files;
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

    let one = workspace.command(&["cutover", "check", "t", "--key", "1"]);
    assert_eq!(one.result["keys"].as_array().map(Vec::len), Some(1));
    let other = workspace.command(&["cutover", "check", "t", "--key", "1", "--verdict", "stale"]);
    assert_eq!((other.code, &other.result["keys"]), (Some(0), &json!([])), "{other}");
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

/// Each key of a table that a snapshot of 2025 seeds and a feed writes: verdict, last seeded, first live.
const SNAPSHOT_CUTOVER: [(&str, &str, &str, &str); 6] = [
    ("1", "contiguous", "2025-01-01 00:00:00", "2025-02-01 00:00:00"),
    ("2", "seed_only", "2025-01-01 00:00:00", "null"),
    ("3", "live_only", "null", "2025-02-01 00:00:00"),
    ("4", "stale", "2025-01-01 00:00:00", "2024-12-01 00:00:00"),
    // Not in the snapshot, which speaks for it all the same: it had an event by then.
    ("5", "stale", "2025-01-01 00:00:00", "2024-12-01 00:00:00"),
    ("6", "tie", "2025-01-01 00:00:00", "2025-01-01 00:00:00"),
];

/// The same keys, with a newer event of the one that is stale.
fn snapshot_and_feed() -> TestWorkspace {
    let workspace = TestWorkspace::new(&(live() + &backfill()));
    folders(&workspace, &["changes", "state"]);
    let events = [
        event(1, "new", "2025-02-01"),
        event(3, "new", "2025-02-01"),
        event(4, "old", "2024-12-01"),
        event(5, "old", "2024-12-01"),
        event(6, "same", "2025-01-01"),
    ];
    super::changes::put(&workspace, "changes", 0, &events.iter().map(String::as_str).collect::<Vec<_>>());
    super::changes::put(&workspace, "changes", 1, &[&event(4, "newer", "2025-03-01")]);
    put_state(&workspace, &[(1, "state"), (2, "state"), (4, "state"), (6, "state")]);
    workspace
}

/// What the check says is the same whatever has run, in whichever order.
#[test]
fn a_snapshot_that_is_loaded_once_seeds_the_keys_that_it_has_and_those_that_were_there_before() {
    for order in [["live", "backfill"], ["backfill", "live"]] {
        let workspace = snapshot_and_feed();
        for ran in 0..=2 {
            if ran > 0 {
                workspace.run_ok(&["--flow", order[ran - 1]]);
            }
            let check = workspace.command(&["cutover", "check", "customers", "--limit", "0"]);
            assert_eq!(check.code, Some(1), "{order:?} {ran}: {check}");
            let text = |value: &Value| value.as_str().unwrap_or("null").to_string();
            let keys = check.result["keys"].as_array().expect("keys").iter();
            let keys = keys.map(|key| {
                let sequences = (text(&key["last_seeded"]), text(&key["first_live"]));
                (text(&key["key"][0]["value"]), text(&key["verdict"]), sequences.0, sequences.1)
            });
            let expected = SNAPSHOT_CUTOVER.map(|(key, verdict, seeded, live)| {
                (key.to_string(), verdict.to_string(), seeded.to_string(), live.to_string())
            });
            assert_eq!(keys.collect::<Vec<_>>(), expected, "{order:?} {ran}");
            let evidence = |flow: &str| if order[..ran].contains(&flow) { "applied" } else { "source" };
            let flows = (&check.result["seed_flows"], &check.result["live_flows"]);
            assert_eq!(flows.0, &json!([{"name": "backfill", "evidence": evidence("backfill")}]), "{order:?} {ran}");
            assert_eq!(flows.1, &json!([{"name": "live", "evidence": evidence("live")}]), "{order:?} {ran}");
        }
        assert_eq!(
            workspace.rows("SELECT id, name FROM customers ORDER BY id"),
            ["1|new", "2|state", "3|new", "4|newer", "6|same"],
            "{order:?}"
        );
        // The history of a key and the list of keys say the same.
        let told = workspace.command(&["scd", "history", "customers", "--key", "5"]);
        assert_eq!(told.result["last_seeded"], "2025-01-01 00:00:00", "{told}");
        let ties = workspace.command(&["scd", "keys", "customers", "--only", "tie"]);
        assert_eq!(ties.result["keys"][0]["key"][0]["value"], "6", "{ties}");
        assert_eq!(ties.result["keys"].as_array().map(Vec::len), Some(1), "{ties}");
    }
}

/// Each file is a snapshot of its own version; the newest that has a key seeds it last.
#[test]
fn snapshots_in_files_that_are_loaded_once_seed_by_their_versions() {
    for scd_type in [1, 2] {
        let workspace = snapshot_files(&format!("once = true\nscd_type = {scd_type}\n"));
        workspace.write("snap/snapshot_9.csv", "id,name\n1,a\n2,b\n");
        workspace.write("snap/part1_snapshot_10.csv", "id,name\n1,A\n");
        workspace.write("snap/part2_snapshot_10.csv", "id,name\n3,C\n");
        for evidence in ["source", "applied"] {
            let check = workspace.command(&["cutover", "check", "customers", "--limit", "0"]);
            assert_eq!((check.code, verdicts(&check.result)), (Some(0), counted(&[("seed_only", 3)])), "{check}");
            assert_eq!(check.result["seed_flows"][0]["evidence"], evidence);
            let seeded = ["10", "9", "10"].map(|version| json!(version));
            let found = check.result["keys"].as_array().expect("keys").iter().map(|key| key["last_seeded"].clone());
            assert_eq!(found.collect::<Vec<_>>(), seeded, "type {scd_type}, {evidence}");
            workspace.run_ok(&[]);
        }
    }
}

#[test]
fn a_snapshot_that_is_loaded_again_and_again_is_no_seed() {
    let workspace = TestWorkspace::new(&(live() + &backfill().replace(" ONCE", "")));
    folders(&workspace, &["changes", "state"]);
    super::changes::put(&workspace, "changes", 0, &[&event(1, "new", "2025-02-01")]);
    put_state(&workspace, &[(1, "old"), (2, "other")]);
    for _ in ["before they run", "after"] {
        let check = workspace.command(&["cutover", "check", "customers"]);
        assert_eq!((check.code, verdicts(&check.result)), (Some(0), counted(&[("live_only", 1)])), "{check}");
        assert_eq!(check.result["seed_flows"], json!([]));
        workspace.run_ok(&[]);
    }
    let workspace = snapshot_files("");
    workspace.write("snap/snapshot_1.csv", "id,name\n1,a\n");
    for _ in ["before it runs", "after"] {
        let check = workspace.command(&["cutover", "check", "customers"]);
        assert_eq!((check.code, check.error["code"].as_str()), (Some(2), Some("no-feeds")), "{check}");
        workspace.run_ok(&[]);
    }
}

/// The version of a snapshot that hasn't run is asked for by the check too.
#[test]
fn a_version_query_that_cannot_tell_is_refused_by_the_check() {
    let query = format!("SELECT CAST(version AS TIMESTAMP) FROM {}", files("version", "version STRING"));
    let workspace =
        TestWorkspace::new(&(live() + &backfill().replace("SELECT TIMESTAMP '2025-01-01T00:00:00Z'", &query)));
    folders(&workspace, &["changes", "state", "version"]);
    super::changes::put(&workspace, "changes", 0, &[&event(1, "new", "2025-02-01")]);
    put_state(&workspace, &[(1, "old")]);
    let check = || workspace.command(&["cutover", "check", "customers"]);
    assert_eq!(check().result["seed_flows"][0]["evidence"], "nothing", "{}", check());
    super::changes::put(&workspace, "version", 0, &[r#"{"version":null}"#]);
    assert_eq!((check().code, check().error["code"].as_str()), (Some(1), Some("snapshot-version")), "{}", check());
    super::changes::put(&workspace, "version", 0, &[r#"{"version":"2025-01-01"}"#]);
    assert_eq!(verdicts(&check().result), counted(&[("contiguous", 1)]), "{}", check());
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
