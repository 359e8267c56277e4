//! AUTO CDC FROM SNAPSHOT: one time into a table that a change feed writes too (behaviours C).

use super::changes::{changes, errors, failure, feed, files, folders, put, table, validate, version, without_retries};
use super::snapshots::snapshot_files;
use crate::fixture::TestWorkspace;

const CHANGE: &str = "id BIGINT, name STRING, operation STRING, change_timestamp TIMESTAMP";

/// The table with its feed, as the reference page has it before the backfill.
pub(super) fn live() -> String {
    format!(
        "CREATE STREAMING TABLE customers;\n{}\
         CREATE FLOW live AS AUTO CDC INTO customers FROM STREAM(changes) KEYS (id)\n\
         APPLY AS DELETE WHEN operation = 'DELETE' SEQUENCE BY change_timestamp\n\
         COLUMNS * EXCEPT (operation, change_timestamp) STORED AS SCD TYPE 1;\n",
        feed("changes", CHANGE)
    )
}

/// The backfill from the files of `data/state`, as of 2025.
pub(super) fn backfill() -> String {
    format!(
        "CREATE FLOW backfill AS AUTO CDC ONCE INTO customers FROM SNAPSHOT (SELECT * FROM {})\n\
         WITH VERSION (SELECT TIMESTAMP '2025-01-01T00:00:00Z') KEYS (id) STORED AS SCD TYPE 1;\n",
        files("state", "id BIGINT, name STRING")
    )
}

pub(super) fn event(id: u32, name: &str, time: &str) -> String {
    format!("{{\"id\":{id},\"name\":\"{name}\",\"operation\":\"UPDATE\",\"change_timestamp\":\"{time}T00:00:00Z\"}}")
}

fn delete(id: u32, time: &str) -> String {
    format!("{{\"id\":{id},\"operation\":\"DELETE\",\"change_timestamp\":\"{time}T00:00:00Z\"}}")
}

fn put_events(workspace: &TestWorkspace, number: u32, events: &[String]) {
    put(workspace, "changes", number, &events.iter().map(String::as_str).collect::<Vec<_>>());
}

pub(super) fn put_state(workspace: &TestWorkspace, rows: &[(u32, &str)]) {
    let rows: Vec<String> = rows.iter().map(|(id, name)| format!("{{\"id\":{id},\"name\":\"{name}\"}}")).collect();
    put(workspace, "state", 0, &rows.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A table with events of its feed, before the backfill comes.
pub(super) fn with_events(events: &[String]) -> TestWorkspace {
    let workspace = without_retries(&live());
    folders(&workspace, &["changes", "state"]);
    put_events(&workspace, 0, events);
    workspace.run_ok(&[]);
    workspace
}

/// Adds the backfill to the definitions.
pub(super) fn add_backfill(workspace: &TestWorkspace) {
    workspace.define(&(live() + &backfill()));
}

pub(super) fn customers(workspace: &TestWorkspace) -> Vec<String> {
    table(workspace, "customers")
}

/// A workspace with these flows into `t`, over a feed with BIGINT, DATE and TIMESTAMP columns and the same as a table.
fn flows_into_t(sql: &str) -> TestWorkspace {
    let schema = "id BIGINT, region STRING, name STRING, op STRING, ts TIMESTAMP, day DATE, seq BIGINT, small INT";
    let workspace = TestWorkspace::new(&format!(
        "{}CREATE TEMPORARY VIEW state AS SELECT * FROM {};\nCREATE STREAMING TABLE t;\n{sql}",
        feed("feed", schema),
        files("feed", schema)
    ));
    put(&workspace, "feed", 0, &["{\"id\":1,\"ts\":\"2025-01-01T00:00:00Z\",\"seq\":1}"]);
    workspace
}

/// C-1: a snapshot adds what the feed has not brought, in one update.
#[test]
fn c_1_a_snapshot_once_adds_to_a_table_that_a_feed_writes() {
    let workspace = with_events(&[event(1, "a", "2025-02-01"), event(2, "b", "2025-02-01")]);
    add_backfill(&workspace);
    put_state(&workspace, &[(2, "old"), (3, "c"), (4, "d"), (5, "e")]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.flow_state("backfill"), "COMPLETED");
    assert_eq!(customers(&workspace), ["1|a", "2|b", "3|c", "4|d", "5|e"]);
}

/// C-2: version and sequence are one order; at the same place the change event wins, and that is counted.
#[test]
fn c_2_the_newer_of_snapshot_and_event_wins_and_the_event_when_they_are_equal() {
    let workspace = with_events(&[
        event(1, "new", "2025-02-01"),
        event(2, "old", "2024-12-01"),
        event(3, "same time", "2025-01-01"),
        delete(4, "2025-01-01"),
    ]);
    add_backfill(&workspace);
    put_state(&workspace, &[(1, "snapshot"), (2, "snapshot"), (3, "snapshot"), (4, "snapshot")]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|new", "2|snapshot", "3|same time"]);
    assert_eq!(changes(&outcome, "backfill", "ties"), 2, "reported");
    // The other way round: the events come after the snapshot.
    put_events(&workspace, 1, &[event(2, "event", "2025-01-01")]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|new", "2|event", "3|same time"]);
    assert_eq!(changes(&outcome, "live", "ties"), 1);
}

/// C-3, C-22: the latest rows only; no history, no two times.
#[test]
fn c_3_c_22_beside_a_feed_a_snapshot_makes_the_latest_rows_only() {
    let workspace = flows_into_t(
        "CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) SEQUENCE BY ts COLUMNS (id, name) STORED AS SCD TYPE 2;\n\
         CREATE FLOW snap AS AUTO CDC ONCE INTO t FROM SNAPSHOT (SELECT id, name FROM state)\n\
         WITH VERSION (SELECT TIMESTAMP '2025-01-01') KEYS (id) STORED AS SCD TYPE 2;",
    );
    let diagnostic = validate(&workspace, "snapshot-beside-feed");
    assert!(diagnostic["help"].as_str().unwrap().contains("SCD TYPE 1"), "{diagnostic}");
    workspace.define(
        &std::fs::read_to_string(workspace.path("transformations/pipeline.sql"))
            .unwrap()
            .replace("STORED AS SCD TYPE 2", "STORED AS BITEMPORAL"),
    );
    assert!(errors(&workspace).iter().any(|code| code == "not-supported-yet"), "{:?}", errors(&workspace));
}

/// C-4: one snapshot flow beside any number of feeds, all of different names.
#[test]
fn c_4_a_table_has_one_snapshot_flow_and_names_are_unique() {
    let live = "CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) SEQUENCE BY ts COLUMNS (id, name);\n";
    let snapshot = |name: &str| {
        format!(
            "CREATE FLOW {name} AS AUTO CDC ONCE INTO t FROM SNAPSHOT (SELECT id, name FROM state) \
             WITH VERSION (SELECT TIMESTAMP '2025-01-01') KEYS (id);\n"
        )
    };
    let workspace = flows_into_t(&(live.to_string() + &snapshot("one") + &snapshot("two")));
    assert_eq!(errors(&workspace), ["two-snapshot-flows"]);
    let workspace = flows_into_t(&(live.to_string() + &snapshot("live")));
    assert_eq!(errors(&workspace), ["duplicate-flow"]);
    // Two feeds and a snapshot are sound.
    let second = live.replace("FLOW live", "FLOW second");
    let workspace = flows_into_t(&(live.to_string() + &second + &snapshot("one")));
    assert_eq!(errors(&workspace), [""; 0]);
    workspace.run_ok(&[]);
    // Alone it is a plain snapshot, which needs no version.
    let workspace = flows_into_t(&snapshot("one").replace("WITH VERSION (SELECT TIMESTAMP '2025-01-01') ", ""));
    workspace.run_ok(&[]);
    assert_eq!(table(&workspace, "t"), ["1|null"]);
}

/// C-5: the same keys in the same order; case matters among feeds only.
#[test]
fn c_5_keys_agree_and_their_case_matters_among_feeds_only() {
    let flows = |live: &str, second: &str, snapshot: &str| {
        flows_into_t(&format!(
            "CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(feed) KEYS ({live}) SEQUENCE BY ts;\n\
             CREATE FLOW second AS AUTO CDC INTO t FROM STREAM(feed) KEYS ({second}) SEQUENCE BY ts;\n\
             CREATE FLOW snap AS AUTO CDC ONCE INTO t FROM SNAPSHOT (SELECT * FROM state) \
             WITH VERSION (SELECT TIMESTAMP '2025-01-01') KEYS ({snapshot});"
        ))
    };
    assert_eq!(errors(&flows("id, region", "id, region", "ID, Region")), [""; 0]);
    assert_eq!(errors(&flows("id, region", "ID, region", "id, region")), ["keys-differ"]);
    assert_eq!(errors(&flows("id, region", "id, region", "region, id")), ["keys-differ"]);
    assert_eq!(errors(&flows("id, region", "id, region", "id")), ["keys-differ"]);
}

/// C-6: the version has exactly the type of the sequence.
#[test]
fn c_6_version_and_sequence_are_of_exactly_one_type() {
    for (sequence, version, types) in [
        ("ts", "DATE '2025-01-01'", ["DATE", "TIMESTAMP"]),
        ("seq", "CAST(1 AS INT)", ["INT", "BIGINT"]),
        ("small", "CAST(1 AS BIGINT)", ["BIGINT", "INT"]),
    ] {
        let workspace = flows_into_t(&format!(
            "CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) SEQUENCE BY {sequence};\n\
             CREATE FLOW snap AS AUTO CDC ONCE INTO t FROM SNAPSHOT (SELECT * FROM state) \
             WITH VERSION (SELECT {version}) KEYS (id);"
        ));
        let diagnostic = validate(&workspace, "sequence-types-differ");
        let message = diagnostic["message"].as_str().unwrap();
        assert!(types.iter().all(|name| message.contains(name)), "{message}");
        assert_eq!(diagnostic["condition"], "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE");
        assert!(diagnostic["help"].as_str().unwrap().to_lowercase().contains("cast"), "{diagnostic}");
    }
}

/// C-7: no expectations on the target of a snapshot flow. None are built yet, so the constraint itself is refused.
#[test]
fn c_7_a_snapshot_flow_has_no_expectations() {
    let workspace = flows_into_t("");
    workspace.define(&std::fs::read_to_string(workspace.path("transformations/pipeline.sql")).unwrap().replace(
        "CREATE STREAMING TABLE t;",
        "CREATE STREAMING TABLE t (CONSTRAINT named EXPECT (name IS NOT NULL));\n\
             CREATE FLOW snap AS AUTO CDC INTO t FROM SNAPSHOT (SELECT id, name FROM state) KEYS (id);",
    ));
    assert_ne!(errors(&workspace), [""; 0]);
}

/// C-8: feeds beside a snapshot don't ignore NULLs, whichever way it is written.
#[test]
fn c_8_feeds_beside_a_snapshot_ignore_no_nulls() {
    for clause in ["IGNORE NULL UPDATES", "IGNORE NULL UPDATES ON (name)", "IGNORE NULL UPDATES ON * EXCEPT (name)"] {
        let workspace = flows_into_t(&format!(
            "CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) {clause} SEQUENCE BY ts;\n\
             CREATE FLOW snap AS AUTO CDC ONCE INTO t FROM SNAPSHOT (SELECT * FROM state) \
             WITH VERSION (SELECT TIMESTAMP '2025-01-01') KEYS (id);"
        ));
        let diagnostic = validate(&workspace, "snapshot-beside-feed");
        assert_eq!(diagnostic["condition"], "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_IGNORE_NULL_UNSUPPORTED");
    }
}

/// C-9: triggered updates only.
#[test]
fn c_9_a_snapshot_beside_a_feed_needs_triggered_mode() {
    let workspace = with_events(&[event(1, "a", "2025-02-01")]);
    add_backfill(&workspace);
    workspace.write("flowbench.toml", "[pipeline]\nmode = \"continuous\"\n");
    let diagnostic = validate(&workspace, "snapshot-beside-feed");
    assert_eq!(diagnostic["condition"], "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_CONTINUOUS_NOT_SUPPORTED");
}

/// C-10: one flow in SQL, the other in TOML, the version by the path of the snapshot's file.
#[test]
fn c_10_flows_in_sql_and_in_toml_share_a_table() {
    let workspace = with_events(&[event(1, "event", "2025-02-01"), event(2, "event", "2024-12-01")]);
    workspace.write(
        "transformations/backfill.toml",
        "[[auto_cdc_snapshot]]\nname = \"backfill\"\ntarget = \"customers\"\nkeys = [\"id\"]\nonce = true\n\
         snapshots = { path = \"snap/*.json\", version_regex = \"(\\\\d{4}-\\\\d\\\\d-\\\\d\\\\d)\", version_type = \"TIMESTAMP\", \
         options = { format = \"json\", schema = \"id BIGINT, name STRING\" } }\n",
    );
    workspace.write(
        "snap/state-2025-01-01.json",
        "{\"id\":1,\"name\":\"s\"}\n{\"id\":2,\"name\":\"s\"}\n{\"id\":3,\"name\":\"s\"}\n",
    );
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id, name FROM customers ORDER BY id"), ["1|event", "2|s", "3|s"]);
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill"), "IDLE");
    // And the other way round: the feed in TOML, the snapshot in SQL.
    let workspace =
        without_retries(&format!("CREATE STREAMING TABLE customers;\n{}{}", feed("changes", CHANGE), backfill()));
    workspace.write(
        "transformations/live.toml",
        "[[auto_cdc]]\nname = \"live\"\ntarget = \"customers\"\nsource = \"changes\"\nkeys = [\"id\"]\n\
         sequence_by = \"change_timestamp\"\napply_as_deletes = \"operation = 'DELETE'\"\n\
         except_columns = [\"operation\", \"change_timestamp\"]\n",
    );
    folders(&workspace, &["changes"]);
    put_events(&workspace, 0, &[event(1, "event", "2025-02-01"), delete(3, "2025-02-01")]);
    put_state(&workspace, &[(1, "s"), (2, "s"), (3, "s")]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|event", "2|s"]);
}

/// C-11: a snapshot is the whole state; who is absent is deleted at its version, seen before or not.
#[test]
fn c_11_who_is_absent_is_deleted_at_the_version() {
    let workspace = with_events(&[event(3, "before", "2024-06-01"), event(4, "after", "2025-02-01")]);
    add_backfill(&workspace);
    put_state(&workspace, &[(1, "a")]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|a", "4|after"]);
    // Late events, of keys that were there and of keys that nobody has seen.
    put_events(&workspace, 1, &[event(3, "late", "2024-08-01"), event(9, "late", "2024-08-01")]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|a", "4|after"]);
    put_events(&workspace, 2, &[event(3, "back", "2025-03-01"), event(9, "new", "2025-03-01")]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|a", "3|back", "4|after", "9|new"]);
}

/// C-12: the flow comes to an existing table and leaves the checkpoints of the feeds alone.
#[test]
fn c_12_adding_the_snapshot_resets_no_checkpoint() {
    let workspace = with_events(&[event(1, "a", "2025-02-01")]);
    let before = workspace.flow_status("live");
    add_backfill(&workspace);
    put_state(&workspace, &[(1, "s"), (2, "s")]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batches("live").len(), 0, "nothing is read again");
    assert_eq!(workspace.flow_status("live")["generation"], before["generation"]);
}

/// C-13: nothing at the first call is an error, nothing later means that there is no more.
#[test]
fn c_13_the_first_snapshot_must_be_there_and_later_ones_need_not() {
    let workspace = without_retries(&format!(
        "CREATE STREAMING TABLE customers;\n\
         CREATE FLOW snap AS AUTO CDC INTO customers FROM SNAPSHOT (SELECT * FROM {}) \
         WITH VERSION (SELECT version FROM {}) KEYS (id);",
        files("state", "id BIGINT, name STRING"),
        files("version", "version BIGINT")
    ));
    folders(&workspace, &["version"]);
    put_state(&workspace, &[(1, "a")]);
    let outcome = workspace.run(&[]);
    let said = failure(&outcome, "snap");
    assert!(said.contains("FIRST_SNAPSHOT_EMPTY") && said.contains("snap"), "{said}");
    put(&workspace, "version", 0, &["{\"version\":1}"]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|a"]);
    workspace.remove("data/version/000.json");
    put_state(&workspace, &[(2, "b")]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batches("snap").len(), 0);
    assert_eq!(customers(&workspace), ["1|a"], "there is no new version");

    // The same for versions in files.
    let workspace = snapshot_files("");
    folders(&workspace, &[]);
    let said = failure(&workspace.run(&[]), "customers");
    assert!(said.contains("FIRST_SNAPSHOT_EMPTY"), "{said}");
}

/// C-14: beside rows a snapshot needs a version, in an empty table it doesn't.
#[test]
fn c_14_a_snapshot_without_a_version_loads_an_empty_table_only() {
    let without_version = || live() + &backfill().replace("WITH VERSION (SELECT TIMESTAMP '2025-01-01T00:00:00Z')", "");
    let workspace = with_events(&[event(1, "a", "2025-02-01")]);
    workspace.define(&without_version());
    put_state(&workspace, &[(1, "s"), (2, "s")]);
    let said = failure(&workspace.run(&[]), "backfill");
    assert!(said.contains("snapshot-needs-version") && said.contains("WITH VERSION"), "{said}");
    assert_eq!(customers(&workspace), ["1|a"]);

    let workspace = without_retries(&without_version());
    folders(&workspace, &["changes"]);
    put_state(&workspace, &[(1, "s"), (2, "s")]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|s", "2|s"]);
    // Then the feed goes on; its events are newer than the load.
    put_events(&workspace, 0, &[event(1, "old", "2020-01-01"), event(2, "new", "2999-01-01")]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|s", "2|new"]);
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill"), "IDLE");
}

/// C-15: without ONCE the snapshot is compared at each new version, with ONCE it is skipped.
#[test]
fn c_15_without_once_each_new_version_is_compared() {
    let periodic = |version: &str| {
        live() + &backfill().replace("AUTO CDC ONCE INTO", "AUTO CDC INTO").replace("2025-01-01T00:00:00Z", version)
    };
    let workspace = with_events(&[event(1, "event", "2025-01-15")]);
    put_state(&workspace, &[(1, "s1"), (2, "s1")]);
    workspace.define(&periodic("2025-01-01T00:00:00Z"));
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|event", "2|s1"]);
    put_state(&workspace, &[(1, "s2"), (3, "s2")]);
    // The same version and an older one are passed over.
    for version in ["2025-01-01T00:00:00Z", "2024-01-01T00:00:00Z"] {
        workspace.define(&periodic(version));
        assert_eq!(workspace.run_ok(&[]).batches("backfill").len(), 0, "{version}");
        assert_eq!(customers(&workspace), ["1|event", "2|s1"]);
    }
    workspace.define(&periodic("2025-02-01T00:00:00Z"));
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|s2", "3|s2"]);
}

/// C-16: one triggered update does both, and the result is that of the union of events and snapshot.
#[test]
fn c_16_one_update_does_the_backfill_and_the_feed() {
    let workspace = without_retries(&(live() + &backfill()));
    folders(&workspace, &["changes"]);
    put_state(&workspace, &[(1, "s"), (2, "s"), (3, "s"), (5, "s")]);
    put_events(
        &workspace,
        0,
        &[event(1, "old", "2024-01-01"), event(2, "new", "2025-06-01"), event(4, "gone", "2024-05-01")],
    );
    put_events(
        &workspace,
        1,
        &[delete(3, "2025-07-01"), event(5, "same", "2025-01-01"), event(6, "late start", "2025-03-01")],
    );
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.flow_state("live"), outcome.flow_state("backfill")), ("COMPLETED".into(), "COMPLETED".into()));
    assert_eq!(customers(&workspace), ["1|s", "2|new", "5|same", "6|late start"]);
}

/// C-17: a sequence that is cast in a view, so that the types match.
#[test]
fn c_17_a_view_casts_the_sequence() {
    let define = |cast: &str| {
        format!(
            "CREATE STREAMING TABLE customers;\n{}\
             CREATE TEMPORARY VIEW typed AS SELECT id, name, {cast} AS change_timestamp FROM STREAM(changes);\n\
             CREATE FLOW live AS AUTO CDC INTO customers FROM STREAM(typed) KEYS (id) SEQUENCE BY change_timestamp \
             COLUMNS * EXCEPT (change_timestamp);\n{}",
            feed("changes", "id BIGINT, name STRING, change_timestamp STRING"),
            backfill()
        )
    };
    let workspace = without_retries(&define("change_timestamp"));
    put_events(&workspace, 0, &[event(1, "event", "2025-02-01"), event(2, "event", "2024-12-01")]);
    put_state(&workspace, &[(1, "s"), (2, "s")]);
    assert_eq!(errors(&workspace), ["sequence-types-differ"]);
    workspace.define(&define("CAST(change_timestamp AS TIMESTAMP)"));
    assert_eq!(errors(&workspace), [""; 0]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|event", "2|s"]);
}

/// C-18: columns that are left out are not in the table; a DELETE event removes its row.
#[test]
fn c_18_columns_left_out_are_not_there_and_deletes_remove() {
    let workspace = with_events(&[event(1, "a", "2025-02-01"), event(2, "b", "2025-02-01"), delete(1, "2025-02-02")]);
    assert_eq!(workspace.columns("customers"), ["id BIGINT", "name STRING"]);
    assert_eq!(customers(&workspace), ["2|b"]);
}

/// C-19: a version is a moment, wherever the machine stands.
#[test]
fn c_19_the_time_zone_of_the_machine_does_not_move_the_version() {
    for zone in ["UTC", "Asia/Tokyo", "America/Chicago"] {
        let workspace = without_retries(&(live() + &backfill()));
        folders(&workspace, &["changes"]);
        put_state(&workspace, &[(1, "s"), (2, "s"), (3, "s")]);
        let at = |id: u32, time: &str| {
            format!("{{\"id\":{id},\"name\":\"{time}\",\"operation\":\"UPDATE\",\"change_timestamp\":\"{time}\"}}")
        };
        put_events(
            &workspace,
            0,
            &[at(1, "2024-12-31T23:59:59Z"), at(2, "2025-01-01T00:00:00Z"), at(3, "2025-01-01T09:00:01+09:00")],
        );
        let outcome = workspace.command_with(&["run"], &[("TZ", zone)]);
        assert_eq!(outcome.state(), "COMPLETED", "{outcome}");
        assert_eq!(customers(&workspace), ["1|s", "2|2025-01-01T00:00:00Z", "3|2025-01-01T09:00:01+09:00"], "{zone}");
    }
}

/// C-20: done when it is committed, and skipped from then on, while the feed goes on.
#[test]
fn c_20_the_snapshot_is_skipped_once_it_is_committed() {
    let workspace = with_events(&[event(1, "a", "2025-02-01")]);
    add_backfill(&workspace);
    put_state(&workspace, &[(1, "s"), (2, "s")]);
    let killed = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", "planned@backfill=kill")]);
    assert_eq!(killed.code, None, "{killed}");
    assert_eq!(customers(&workspace), ["1|a"]);
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill"), "COMPLETED");
    assert_eq!(customers(&workspace), ["1|a", "2|s"]);
    put_state(&workspace, &[(7, "s")]);
    put_events(&workspace, 1, &[event(2, "b", "2025-03-01")]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.flow_state("backfill"), outcome.flow_state("live")), ("IDLE".into(), "COMPLETED".into()));
    assert_eq!(customers(&workspace), ["1|a", "2|b"]);
    assert_eq!(workspace.flow_status("backfill")["is_done"], true);
}

/// C-21: a full refresh runs the snapshot again, so it has to be there: else it fails before anything is dropped.
#[test]
fn c_21_a_full_refresh_without_the_snapshot_fails_before_the_table_is_touched() {
    let workspace = with_events(&[event(1, "a", "2025-02-01")]);
    add_backfill(&workspace);
    put_state(&workspace, &[(1, "s"), (2, "s")]);
    workspace.run_ok(&[]);
    let before = (customers(&workspace), version(&workspace, "customers"));
    std::fs::rename(workspace.path("data/state"), workspace.path("data/away")).unwrap();
    let outcome = workspace.run(&["--full-refresh", "customers"]);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let said = outcome.error.to_string() + &outcome.result.to_string();
    assert!(said.contains("data/state") && said.contains("nothing was dropped"), "{outcome}");
    assert_eq!((customers(&workspace), version(&workspace, "customers")), before);
    std::fs::rename(workspace.path("data/away"), workspace.path("data/state")).unwrap();
    put_state(&workspace, &[(1, "s"), (3, "s")]);
    workspace.run_ok(&["--full-refresh", "customers"]);
    assert_eq!(customers(&workspace), ["1|a", "3|s"]);
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill"), "IDLE");
}

/// C-21 with a snapshot that is a table: one of the pipeline's own, or another program's.
#[test]
fn c_21_the_same_where_the_snapshot_is_a_table() {
    let workspace = without_retries("");
    workspace.write(
        "flowbench.toml",
        "[limits]\nretries = 0\n[[source]]\nname = \"legacy.customers_snapshot\"\npath = \"legacy\"\nformat = \"delta\"\n",
    );
    let define = |id: &str| {
        format!(
            "CREATE STREAMING TABLE customers;\n{}\
             CREATE FLOW live AS AUTO CDC INTO customers FROM STREAM(changes) KEYS ({id}) SEQUENCE BY change_timestamp COLUMNS (id, name);\n\
             CREATE FLOW backfill AS AUTO CDC ONCE INTO customers FROM SNAPSHOT (SELECT id, concat('s', id) AS name FROM legacy.customers_snapshot)\n\
             WITH VERSION (SELECT TIMESTAMP '2025-01-01') KEYS (id);",
            feed("changes", CHANGE)
        )
    };
    workspace.define(&define("id"));
    crate::fixture::ForeignTable::at(&workspace.path("legacy")).append(1..=3);
    folders(&workspace, &["changes"]);
    put_events(&workspace, 0, &[event(1, "a", "2025-02-01")]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|a", "2|s2", "3|s3"]);
    let before = version(&workspace, "customers");
    std::fs::rename(workspace.path("legacy"), workspace.path("away")).unwrap();
    // Done: it needs its snapshot no more.
    put_events(&workspace, 1, &[event(2, "b", "2025-02-01")]);
    let outcome = workspace.run(&["--full-refresh", "customers"]);
    assert_ne!(outcome.code, Some(0), "{outcome}");
    assert_eq!(version(&workspace, "customers"), before);
    assert_eq!(customers(&workspace), ["1|a", "2|s2", "3|s3"]);
}
