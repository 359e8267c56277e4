//! What people ask about tables of AUTO CDC: the history of a key, lists of keys, the table at a time, differences, and
//! whether table and events agree.

use serde_json::{Value, json};

use super::changes::files;
use super::snapshot_backfill::put_state;
use super::snapshots::snapshot_files;
use crate::fixture::TestWorkspace;

const COLUMNS: &str = "id BIGINT, region STRING, seq BIGINT, op STRING, city STRING, seen BIGINT";

fn pipeline(keys: &str, clauses: &str) -> String {
    format!(
        "CREATE STREAMING TABLE t;\n\
         CREATE TEMPORARY VIEW events AS SELECT * FROM STREAM read_files('data', format => 'json', schema => '{COLUMNS}', \
         schemaEvolutionMode => 'none');\n\
         CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(events) KEYS ({keys}) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq \
         COLUMNS * EXCEPT (op, seq) {clauses};"
    )
}

/// A file of events, applied by an update of its own; `7 eu 10 U Natal 1`.
fn apply(workspace: &TestWorkspace, file: &str, events: &[&str]) {
    let line = |event: &&str| {
        let parts: Vec<&str> = event.split(' ').collect();
        let [id, region, seq, op, city, seen] = parts[..] else { panic!("{event}") };
        format!(
            "{{\"id\":{id},\"region\":\"{region}\",\"seq\":{seq},\"op\":\"{op}\",\"city\":\"{city}\",\"seen\":{seen}}}\n"
        )
    };
    let lines: String = events.iter().map(line).collect();
    workspace.write(&format!("data/{file}.json"), lines);
    workspace.run_ok(&[]);
}

/// Three updates; key 7 has a hidden event, a late one, a gap.
fn history() -> TestWorkspace {
    let workspace = TestWorkspace::new(&pipeline("id", "STORED AS SCD TYPE 2 TRACK HISTORY ON city"));
    apply(&workspace, "a", &["1 eu 1 U Rome 1", "7 eu 10 U Natal 1", "7 eu 12 U Natal 2"]);
    apply(&workspace, "b", &["7 eu 20 D - 0", "7 eu 30 U Recife 3", "2 eu 2 U Graz 1", "2 eu 3 D - 0"]);
    apply(&workspace, "c", &["3 eu 9 U Bonn 1", "7 eu 15 U Olinda 4"]);
    workspace
}

fn texts<'v>(list: &'v Value, field: &str) -> Vec<&'v str> {
    list.as_array().expect("a list").iter().map(|one| one[field].as_str().unwrap_or("null")).collect()
}

#[test]
fn the_history_of_a_key_tells_its_versions_and_where_each_event_came_from() {
    let workspace = history();
    let told = workspace.command(&["scd", "history", "t", "--key", "7"]);
    assert_eq!(told.code, Some(0), "{told}");
    let (versions, events) = (&told.result["versions"], &told.result["events"]);
    assert_eq!(texts(versions, "start"), ["10", "15", "30"]);
    assert_eq!(texts(versions, "end"), ["15", "20", "null"]);
    assert_eq!(versions[0]["values"], json!(["eu", "Natal", "2"]), "the last event of the run shows");
    assert_eq!(versions[2]["is_after_gap"], true);
    assert_eq!(texts(events, "effect"), ["opens", "repeats", "opens", "deletes", "opens"]);
    assert_eq!(texts(events, "flow"), ["f"; 5]);
    let late: Vec<bool> = events.as_array().expect("events").iter().map(|event| event["is_late"] == true).collect();
    assert_eq!(late, [false, false, true, false, false]);
    let origin = |at: usize| {
        let event = &events[at];
        let place = &event["place"];
        (event["batch"].as_u64(), event["update"].as_i64(), place["source"].as_str(), place["record"].as_u64())
    };
    assert_eq!(origin(1), (Some(0), Some(1), Some("data/a.json"), Some(3)));
    assert_eq!(origin(2), (Some(2), Some(3), Some("data/c.json"), Some(2)));
    assert_eq!(origin(3), (Some(1), Some(2), Some("data/b.json"), Some(1)));
    assert_eq!(told.result["tracked"], json!([1]));
    assert_eq!((&told.result["scd_type"], &told.result["sequence_type"]), (&json!(2), &json!("BIGINT")));
}

/// An event that gives columns to another of its sequence is told too: part of the row comes from its file.
#[test]
fn events_that_others_of_their_sequence_lie_upon_are_told() {
    for scd_type in [1, 2] {
        let workspace =
            TestWorkspace::new(&pipeline("id", &format!("IGNORE NULL UPDATES STORED AS SCD TYPE {scd_type}")));
        workspace.write("data/a.json", r#"{"id":7,"seq":1,"city":"Bonn","seen":1}"#);
        workspace.run_ok(&[]);
        workspace.write("data/b.json", r#"{"id":7,"seq":2,"city":"Graz"}"#);
        workspace.run_ok(&[]);
        workspace.write("data/c.json", "{\"id\":1,\"seq\":1}\n{\"id\":7,\"seq\":2,\"seen\":2}\n");
        workspace.run_ok(&[]);
        let told = workspace.command(&["scd", "history", "t", "--key", "7"]).result;
        let first = if scd_type == 1 { "superseded" } else { "opens" };
        assert_eq!(texts(&told["events"], "effect"), [first, "fills_in", "opens"], "{told}");
        let sources: Vec<&Value> = (0..3).map(|at| &told["events"][at]["place"]["source"]).collect();
        assert_eq!(sources, ["data/a.json", "data/b.json", "data/c.json"], "{told}");
        let versions = told["versions"].as_array().expect("versions");
        let version = versions.last().expect("an open one");
        assert_eq!(version["values"], json!([null, "Graz", "2"]), "{told}");
        assert_eq!((&version["first_event"], &version["last_event"]), (&json!(2), &json!(2)), "{told}");
        assert_eq!(told["events"][1]["version"], version["number"], "{told}");
        assert_eq!(workspace.command(&["scd", "check", "t"]).code, Some(0));
        let keys = workspace.command(&["scd", "keys", "t"]).result;
        assert_eq!(keys["keys"][1]["events"], 3, "{keys}");
    }
}

/// A flow that leaves columns as they are comes later: what came before it stays gone, and that is said.
#[test]
fn events_that_were_dropped_before_all_are_kept_are_not_claimed() {
    let more = "CREATE TEMPORARY VIEW more AS SELECT * FROM STREAM read_files('more', format => 'json', schema => 'id BIGINT, \
                city STRING, seq BIGINT', schemaEvolutionMode => 'none');\nCREATE FLOW g AS AUTO CDC INTO t FROM STREAM(more) \
                KEYS (id) IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS * EXCEPT (seq);";
    let workspace = TestWorkspace::new(&pipeline("id", ""));
    workspace.write("more/a.json", r#"{"id":7,"city":"Rome","seq":30}"#);
    apply(&workspace, "a", &["7 eu 10 U Natal 1", "7 eu 12 U Recife 2"]);
    workspace.define(&format!("{}\n{more}", pipeline("id", "")));
    workspace.run_ok(&[]);
    let told = workspace.command(&["scd", "history", "t", "--key", "7"]).result;
    assert_eq!(
        (&told["keeps_all_events"], told["events"].as_array().map(Vec::len)),
        (&json!(false), Some(2)),
        "{told}"
    );
    workspace.run_ok(&["--full-refresh", "t"]);
    let told = workspace.command(&["scd", "history", "t", "--key", "7"]).result;
    assert_eq!((&told["keeps_all_events"], told["events"].as_array().map(Vec::len)), (&json!(true), Some(3)), "{told}");
}

#[test]
fn of_type_1_the_newest_event_is_told_and_that_older_ones_are_not_kept() {
    let workspace = TestWorkspace::new(&pipeline("id, region", "STORED AS SCD TYPE 1"));
    apply(&workspace, "a", &["7 eu 10 U Natal 1", "7 us 10 U Boston 1", "7 eu 12 U Recife 2"]);
    let told = workspace.command(&["scd", "history", "t", "--key", "region=eu", "--key", "id=7"]);
    assert_eq!(told.result["keeps_all_events"], false, "{told}");
    assert_eq!(texts(&told.result["versions"], "start"), ["12"]);
    assert_eq!(told.result["versions"][0]["values"], json!(["Recife", "2"]));
    assert_eq!(told.result["events"].as_array().map(Vec::len), Some(1));
    let check = workspace.command(&["scd", "check", "t"]);
    assert_eq!((check.code, &check.result["counts"]["rows"]), (Some(0), &json!(2)), "{check}");
    let as_of = workspace.command(&["scd", "as-of", "t", "11"]);
    assert_eq!((as_of.code, as_of.error["code"].as_str()), (Some(2), Some("no-history")), "{as_of}");
}

/// What each event of a key says: kind, effect, sequence, flow, update, source.
fn told_events(workspace: &TestWorkspace, table: &str, key: &str) -> Vec<String> {
    let told = workspace.command(&["scd", "history", table, "--key", key]);
    assert_eq!(told.code, Some(0), "{told}");
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let event = |event: &Value| {
        let fields = ["kind", "effect", "sequence", "flow", "update"].map(|field| words(&event[field]));
        format!("{} {}", fields.join(" "), words(&event["place"]["source"]))
    };
    let versions = told.result["versions"].as_array().expect("versions");
    for version in versions {
        let first = &told.result["events"][version["first_event"].as_u64().expect("an index") as usize];
        assert_eq!((&first["effect"], &first["sequence"]), (&json!("opens"), &version["start"]), "{told}");
    }
    told.result["events"].as_array().expect("events").iter().map(event).collect()
}

/// Who is absent was deleted by the snapshot: the files that it was made of are named.
#[test]
fn the_absence_of_a_key_is_told_with_the_snapshot_that_lacks_it() {
    for scd_type in [1, 2] {
        let workspace = snapshot_files(&format!("scd_type = {scd_type}\n"));
        workspace.write("snap/snapshot_1.csv", "id,name\n1,a\n2,b\n");
        workspace.run_ok(&[]);
        workspace.write("snap/part1_snapshot_2.csv", "id,name\n2,B\n");
        workspace.write("snap/part2_snapshot_2.csv", "id,name\n3,c\n");
        workspace.run_ok(&[]);
        let effect = if scd_type == 1 { "voided" } else { "opens" };
        let absent = [
            format!("upsert {effect} 1 customers 1 snap/snapshot_1.csv"),
            "absence deletes 2 customers 2 snap/part1_snapshot_2.csv, snap/part2_snapshot_2.csv".to_string(),
        ];
        assert_eq!(told_events(&workspace, "customers", "1"), absent);
        // A further one without it deletes nothing.
        workspace.write("snap/snapshot_3.csv", "id,name\n2,C\n");
        workspace.run_ok(&[]);
        assert_eq!(told_events(&workspace, "customers", "1"), absent);
        // It comes back.
        workspace.write("snap/snapshot_4.csv", "id,name\n1,again\n2,B\n3,c\n");
        workspace.run_ok(&[]);
        let mut back = absent.to_vec();
        if scd_type == 1 {
            back.clear();
        }
        back.push("upsert opens 4 customers 4 snap/snapshot_4.csv".to_string());
        assert_eq!(told_events(&workspace, "customers", "1"), back);
    }
}

/// Of a table its version is told; where nobody knows, nothing is.
#[test]
fn the_absence_of_a_key_in_a_table_is_told_with_its_version() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE MATERIALIZED VIEW state AS SELECT * FROM {};\nCREATE STREAMING TABLE t;\n\
         CREATE FLOW snap AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM state) KEYS (id) STORED AS SCD TYPE 2;",
        files("state", "id BIGINT, name STRING")
    ));
    put_state(&workspace, &[(1, "a"), (2, "b")]);
    workspace.run_ok(&[]);
    put_state(&workspace, &[(2, "b")]);
    workspace.run_ok(&[]);
    let told = workspace.command(&["scd", "history", "t", "--key", "1"]);
    let place = |at: usize| told.result["events"][at]["place"].clone();
    let version = |at: usize| place(at)["version"].as_u64().expect("a version");
    assert_eq!((&place(0)["source"], &place(0)["record"]), (&json!("state"), &json!(1)), "{told}");
    assert_eq!((&place(1)["source"], &place(1)["record"]), (&json!("state"), &Value::Null), "{told}");
    assert!(version(0) < version(1), "{told}");
}

/// A TRUNCATE stands behind what it made void, and before what came later.
#[test]
fn a_truncate_is_told_with_what_it_made_void() {
    for clauses in ["", "IGNORE NULL UPDATES"] {
        let workspace =
            TestWorkspace::new(&pipeline("id, region", &format!("{clauses} APPLY AS TRUNCATE WHEN op = 'T'")));
        apply(&workspace, "a", &["7 eu 10 U Natal 1", "8 eu 30 U Olinda 1"]);
        apply(&workspace, "b", &["0 eu 20 T x 0"]);
        let key = ["--key", "id=7", "--key", "region=eu"];
        let told = |key: &[&str]| workspace.command(&[&["scd", "history", "t"], key].concat());
        let events = told(&key).result["events"].clone();
        assert_eq!(texts(&events, "kind"), ["upsert", "truncate"], "{clauses}");
        assert_eq!(texts(&events, "effect"), ["voided", "deletes"], "{clauses}");
        assert_eq!(events[1]["place"]["source"], "data/b.json", "{events}");
        // A later TRUNCATE has found it gone.
        apply(&workspace, "d", &["0 eu 25 T x 0"]);
        assert_eq!(told(&key).result["events"], events, "{clauses}");
        // What is later knows nothing of it; a later event of the key comes behind it.
        assert_eq!(texts(&told(&["--key", "id=8", "--key", "region=eu"]).result["events"], "kind"), ["upsert"]);
        apply(&workspace, "c", &["7 eu 40 U Recife 2"]);
        let after = told(&key);
        let kinds: &[&str] = if clauses.is_empty() { &["upsert"] } else { &["upsert", "truncate", "upsert"] };
        assert_eq!(texts(&after.result["events"], "kind"), kinds, "{after}");
        let newest = kinds.len() as u64 - 1;
        let version = &after.result["versions"][0];
        assert_eq!((&version["first_event"], &version["last_event"]), (&json!(newest), &json!(newest)), "{after}");
    }
}

#[test]
fn keys_are_listed_page_by_page_found_by_text_and_by_flag() {
    let workspace = history();
    let keys = |arguments: &[&str]| {
        let page = workspace.command(&[&["scd", "keys", "t"], arguments].concat());
        assert_eq!(page.code, Some(0), "{page}");
        let keys = page.result["keys"].as_array().expect("keys").iter();
        let keys: Vec<String> = keys.map(|key| key["key"][0]["value"].as_str().expect("a value").to_string()).collect();
        (keys, page.result["next"].as_str().map(str::to_string))
    };
    assert_eq!(keys(&[]), (["1", "2", "3", "7"].map(str::to_string).to_vec(), None));
    let (first, next) = keys(&["--limit", "3"]);
    assert_eq!(first, ["1", "2", "3"]);
    assert_eq!(keys(&["--limit", "3", "--after", &next.expect("there is more")]), (vec!["7".to_string()], None));
    assert_eq!(keys(&["--only", "gaps"]).0, ["7"]);
    assert_eq!(keys(&["--only", "late"]).0, ["7"]);
    assert_eq!(keys(&["--only", "deleted"]).0, ["2"]);
    assert_eq!(keys(&["--only", "ties"]).0, Vec::<String>::new());
    assert_eq!(keys(&["--search", "ID=3"]).0, ["3"]);
    assert_eq!(keys(&["--search", "id=", "--limit", "4"]).1, None);
}

#[test]
fn as_of_shows_the_table_at_a_sequence_and_diff_what_changed_between_two() {
    let workspace = history();
    let as_of = |sequence: &str| {
        let told = workspace.command(&["scd", "as-of", "t", sequence]);
        let rows = told.result["rows"]["rows"].as_array().expect("rows").iter();
        let mut rows: Vec<String> = rows.map(|row| format!("{} {}", row["id"], row["city"]).replace('"', "")).collect();
        rows.sort();
        rows
    };
    assert_eq!(as_of("12"), ["1 Rome", "3 Bonn", "7 Natal"]);
    assert_eq!(as_of("20"), ["1 Rome", "3 Bonn"], "a row ends before its end");
    assert_eq!(as_of("30"), ["1 Rome", "3 Bonn", "7 Recife"]);
    let found = workspace.command(&["scd", "as-of", "t", "30", "--where", "city = 'Rome'"]);
    assert_eq!(
        (&found.result["row_count"], found.result["rows"]["rows"].as_array().map(Vec::len)),
        (&json!(3), Some(1))
    );

    let diff = workspace.command(&["scd", "diff", "t", "2", "17"]);
    assert_eq!((&diff.result["added"], &diff.result["removed"]), (&json!(2), &json!(1)), "{diff}");
    let diff = workspace.command(&["scd", "diff", "t", "12", "30"]);
    assert_eq!(diff.result["changed"], 1, "{diff}");
    assert_eq!(diff.result["by_column"], json!([{"column": "city", "rows": 1}, {"column": "seen", "rows": 1}]));
    assert_eq!(diff.result["rows"][0]["before"], json!(["eu", "Natal", "2"]));
    assert_eq!(diff.result["rows"][0]["after"], json!(["eu", "Recife", "3"]));
    // The other way round the sides change places.
    let back = workspace.command(&["scd", "diff", "t", "17", "2"]);
    assert_eq!((&back.result["added"], &back.result["removed"]), (&json!(1), &json!(2)), "{back}");

    let versions = workspace.command(&["scd", "diff", "t", "--key", "7", "1", "2"]);
    assert_eq!(
        texts(&versions.result["by_column"], "column"),
        ["city", "seen", "__START_AT", "__END_AT"],
        "{versions}"
    );
    let none = workspace.command(&["scd", "diff", "t", "--key", "7", "1", "4"]);
    assert_eq!((none.code, none.error["code"].as_str()), (Some(2), Some("unknown-version")));
}

#[test]
fn sequences_of_structs_and_times_are_typed_as_they_are_shown() {
    let workspace = TestWorkspace::new(
        &pipeline("id", "STORED AS SCD TYPE 2")
            .replace("SEQUENCE BY seq", "SEQUENCE BY STRUCT(CAST(seen AS TIMESTAMP), seq)"),
    );
    apply(&workspace, "a", &["1 eu 1 U Rome 0", "1 eu 2 U Graz 0", "2 eu 1 U Bonn 3600"]);
    let told = workspace.command(&["scd", "history", "t", "--key", "1"]);
    let start = told.result["versions"][1]["start"].as_str().expect("a start").to_string();
    let as_of = workspace.command(&["scd", "as-of", "t", &start]);
    assert_eq!(as_of.result["rows"]["rows"][0]["city"], "Graz", "{as_of}");
    assert_eq!(as_of.result["row_count"], 1);
    let plain = workspace.command(&["scd", "as-of", "t", "1970-01-01 01:00:00, 1"]);
    assert_eq!(plain.result["row_count"], 2, "{plain}");
    assert_eq!(workspace.command(&["scd", "check", "t"]).code, Some(0));
    let wrong = workspace.command(&["scd", "as-of", "t", "soon"]);
    assert_eq!((wrong.code, wrong.error["code"].as_str()), (Some(2), Some("bad-value")));
}

#[test]
fn a_check_finds_rows_without_events_and_events_without_rows() {
    let workspace = history();
    let sound = workspace.command(&["scd", "check", "t"]);
    assert_eq!(sound.code, Some(0), "{sound}");
    let counts = &sound.result["counts"];
    assert_eq!(
        (&counts["keys"], &counts["rows"], &counts["open_rows"], &counts["deleted"], &counts["with_gaps"]),
        (&json!(4), &json!(6), &json!(3), &json!(1), &json!(1))
    );

    // A side table that is older than its target.
    let side = workspace.path(".flowbench/tables/default/t/_flowbench_side/gen-1");
    let kept = workspace.path("kept");
    copy(&side, &kept);
    apply(&workspace, "d", &["1 eu 5 U Pisa 2", "9 eu 5 U Metz 2"]);
    std::fs::remove_dir_all(&side).expect("a folder");
    copy(&kept, &side);
    let wrong = workspace.command(&["scd", "check", "t"]);
    assert_eq!(wrong.code, Some(1), "{wrong}");
    let violations: Vec<(&str, u64)> = wrong.result["invariants"]
        .as_array()
        .expect("invariants")
        .iter()
        .map(|one| (one["invariant"].as_str().expect("a word"), one["violations"].as_u64().expect("a count")))
        .filter(|(_, violations)| *violations > 0)
        .collect();
    assert_eq!(violations, [("rows_come_from_events", 3), ("events_show_as_rows", 1), ("open_rows_are_latest", 1)]);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("a file");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

#[test]
fn a_table_is_shown_as_it_stood_after_an_update() {
    let workspace = history();
    let rows = |update: &str| {
        let shown = workspace.command(&["show", "t", "--at-update", update]);
        shown.result["rows"].as_array().map(Vec::len)
    };
    assert_eq!((rows("1"), rows("2"), rows("3")), (Some(2), Some(4), Some(6)));
    workspace.run_ok(&[]);
    assert_eq!(rows("4"), Some(6), "an update that changed nothing leaves what there was");
    workspace.run_ok(&["--full-refresh-all", "--yes"]);
    assert_eq!((rows("1"), rows("5")), (Some(2), Some(6)), "of before the full refresh too");
    let unknown = workspace.command(&["show", "t", "--at-update", "99"]);
    assert_eq!((unknown.code, unknown.error["code"].as_str()), (Some(2), Some("unknown-update")), "{unknown}");

    let folder = workspace.path(".flowbench/tables/default/t");
    for entry in std::fs::read_dir(&folder).expect("the table") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|ending| ending == "parquet") {
            std::fs::remove_file(path).expect("as a vacuum does");
        }
    }
    let gone = workspace.command(&["show", "t", "--at-update", "1"]);
    assert_eq!(gone.error["code"], "table-version-missing", "{gone}");
    assert!(gone.error["message"].as_str().expect("a message").contains("can no longer be read"), "{gone}");
}

#[test]
fn what_is_no_table_of_auto_cdc_is_refused_with_those_that_are() {
    let workspace = TestWorkspace::new(&format!(
        "{}\nCREATE MATERIALIZED VIEW m AS SELECT * FROM t;",
        pipeline("id", "STORED AS SCD TYPE 1")
    ));
    let asked = |arguments: &[&str]| {
        let outcome = workspace.command(arguments);
        (outcome.code, outcome.error["code"].as_str().unwrap_or_default().to_string(), outcome.error["help"].clone())
    };
    let (code, error, help) = asked(&["scd", "keys", "m"]);
    assert_eq!((code, error.as_str()), (Some(2), "not-auto-cdc"));
    assert!(help.as_str().expect("a help").contains("`t`"), "{help}");
    assert_eq!(asked(&["cutover", "check", "m"]).1, "not-auto-cdc");
    assert_eq!(asked(&["scd", "check", "x"]).1, "unknown-dataset");
    assert_eq!(asked(&["scd", "check", "t"]).1, "nothing-stored");
    apply(&workspace, "a", &["1 eu 1 U Rome 1"]);
    assert_eq!(asked(&["scd", "history", "t", "--key", "8"]).1, "unknown-key");
    assert_eq!(asked(&["scd", "history", "t", "--key", "x"]).1, "bad-value");
    assert_eq!(asked(&["scd", "history", "t", "--key", "id=1", "--key", "id=2"]).1, "bad-key");
}

#[test]
fn a_definition_that_drifts_from_its_table_is_found_by_validate() {
    let cases = [
        ("id", "STORED AS SCD TYPE 1", "SCD_TYPE_DRIFT"),
        ("id, region", "STORED AS SCD TYPE 2 TRACK HISTORY ON city", "KEY_SCHEMA_DRIFT"),
        ("id", "STORED AS SCD TYPE 2", "TRACK_HISTORY_DRIFT"),
    ];
    let workspace = history();
    assert_eq!(workspace.command(&["validate"]).diagnostics("auto-cdc-drift").len(), 0);
    for (keys, clauses, condition) in cases {
        workspace.define(&pipeline(keys, clauses));
        let found = workspace.command(&["validate"]).diagnostic("auto-cdc-drift");
        assert_eq!(found["condition"], format!("AUTOCDC_INVALID_STATE.{condition}"), "{found}");
        assert_eq!(found["severity"], "error");
        assert!(found["help"].as_str().expect("a help").contains("--full-refresh t"), "{found}");
        let refused = workspace.run(&[]);
        assert_eq!(refused.code, Some(3), "before anything runs: {refused}");
    }
    // The way out.
    workspace.run_ok(&["--full-refresh", "t"]);
    assert_eq!(workspace.command(&["validate"]).diagnostics("auto-cdc-drift").len(), 0);
    assert_eq!(workspace.command(&["scd", "check", "t"]).code, Some(0));
}
