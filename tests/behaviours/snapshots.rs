//! AUTO CDC FROM SNAPSHOT alone: snapshots in files by version, one each update, and what guards them.

use super::changes::{changes, failure, feed, files, folders, put, table, version, without_retries};
use super::snapshot_backfill::{add_backfill, backfill, customers, event, live, put_state, with_events};
use crate::fixture::TestWorkspace;

/// A table from snapshots in `snap/`, the version a number in their names; `more` are further keys of the flow.
pub(super) fn snapshot_files(more: &str) -> TestWorkspace {
    let workspace = without_retries("CREATE STREAMING TABLE customers;");
    workspace.write(
        "transformations/snapshots.toml",
        format!(
            "[[auto_cdc_snapshot]]\ntarget = \"customers\"\nkeys = [\"id\"]\n{more}\
             snapshots = {{ path = \"snap/*.csv\", version_regex = \"snapshot_(\\\\d+)\", \
             options = {{ format = \"csv\", header = true, schema = \"id BIGINT, name STRING\" }} }}\n"
        ),
    );
    std::fs::create_dir_all(workspace.path("snap")).unwrap();
    workspace
}

/// The counterpart of the callback: called until nothing is left, in order of versions, older ones passed over.
#[test]
fn snapshots_in_files_are_applied_in_order_of_their_versions() {
    let workspace = snapshot_files("scd_type = 2\n");
    workspace.write("snap/snapshot_9.csv", "id,name\n1,a\n2,b\n");
    workspace.write("snap/snapshot_10.csv", "id,name\n1,A\n");
    workspace.write("snap/snapshot_11.csv", "id,name\n1,A\n2,again\n");
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batches("customers").len(), 3);
    let rows = ["1|A|10|null", "1|a|9|10", "2|again|11|null", "2|b|9|10"];
    assert_eq!(table(&workspace, "customers"), rows);
    // Older ones are too late, further files of the last one too, which is told once; the same ones are done.
    workspace.write("snap/snapshot_8.csv", "id,name\n1,older\n");
    workspace.write("snap/more_snapshot_11.csv", "id,name\n3,c\n");
    for told in [["`snap/snapshot_8.csv`", "`snap/more_snapshot_11.csv`"].as_slice(), &[]] {
        let outcome = workspace.run_ok(&[]);
        assert_eq!(outcome.batches("customers").len(), 0);
        let notices = outcome.notices("snapshot-passed-over");
        assert_eq!(notices.len(), told.len(), "{outcome}");
        assert!(notices.iter().zip(told).all(|(notice, file)| notice.contains(file)), "{notices:?}");
        assert_eq!(table(&workspace, "customers"), rows);
    }
    workspace.write("snap/snapshot_12.csv", "id,name\n3,c\n");
    workspace.run_ok(&[]);
    assert_eq!(table(&workspace, "customers"), ["1|A|10|12", "1|a|9|10", "2|again|11|12", "2|b|9|10", "3|c|12|null"]);
}

#[test]
fn a_snapshot_of_several_files_is_one_and_a_path_without_a_version_is_refused() {
    let workspace = snapshot_files("");
    workspace.write("snap/part1_snapshot_1.csv", "id,name\n1,a\n");
    workspace.write("snap/part2_snapshot_1.csv", "id,name\n2,b\n");
    assert_eq!(workspace.run_ok(&[]).batch_files("customers"), [2]);
    assert_eq!(customers(&workspace), ["1|a", "2|b"]);
    workspace.write("snap/other.csv", "id,name\n1,a\n");
    let said = failure(&workspace.run(&[]), "customers");
    assert!(said.contains("INVALID_SNAPSHOT_VERSION") && said.contains("other.csv"), "{said}");
    assert_eq!(customers(&workspace), ["1|a", "2|b"]);
}

/// A table from one snapshot an update, of the files of `data/state`.
fn periodic(clauses: &str, properties: &str) -> TestWorkspace {
    let workspace = without_retries(&format!(
        "CREATE STREAMING TABLE customers {properties};\n\
         CREATE FLOW snap AS AUTO CDC INTO customers FROM SNAPSHOT (SELECT * FROM {}) KEYS (id) {clauses};",
        files("state", "id BIGINT, name STRING")
    ));
    folders(&workspace, &["state"]);
    workspace
}

#[test]
fn periodic_snapshots_are_compared_update_by_update() {
    for clauses in ["STORED AS SCD TYPE 1", "STORED AS SCD TYPE 2"] {
        let workspace = periodic(clauses, "");
        let now = || match clauses.ends_with('1') {
            true => customers(&workspace),
            false => workspace.rows("SELECT id, name FROM customers WHERE __END_AT IS NULL ORDER BY id"),
        };
        put_state(&workspace, &[(1, "a"), (2, "b")]);
        workspace.run_ok(&[]);
        assert_eq!(now(), ["1|a", "2|b"], "{clauses}");
        put_state(&workspace, &[(1, "a"), (2, "B"), (3, "c")]);
        let outcome = workspace.run_ok(&[]);
        assert_eq!(now(), ["1|a", "2|B", "3|c"], "{clauses}");
        assert_eq!(changes(&outcome, "snap", "upserted"), if clauses.ends_with('1') { 2 } else { 3 }, "{outcome}");
        put_state(&workspace, &[(3, "c")]);
        let outcome = workspace.run_ok(&[]);
        assert_eq!(now(), ["3|c"], "{clauses}");
        assert_eq!(changes(&outcome, "snap", "deleted"), 2);
        put_state(&workspace, &[(1, "a"), (3, "c")]);
        workspace.run_ok(&[]);
        assert_eq!(now(), ["1|a", "3|c"], "{clauses}");
    }
}

#[test]
fn an_unchanged_snapshot_makes_no_new_version_of_the_table() {
    for clauses in ["STORED AS SCD TYPE 1", "STORED AS SCD TYPE 2", "STORED AS SCD TYPE 2 TRACK HISTORY ON (name)"] {
        let workspace = periodic(clauses, "");
        put_state(&workspace, &[(1, "a"), (2, "b")]);
        workspace.run_ok(&[]);
        let before = version(&workspace, "customers");
        for _ in 0..3 {
            let outcome = workspace.run_ok(&[]);
            assert_eq!((changes(&outcome, "snap", "upserted"), changes(&outcome, "snap", "deleted")), (0, 0));
        }
        assert_eq!(version(&workspace, "customers"), before, "{clauses}");
    }
}

#[test]
fn duplicate_keys_of_a_snapshot_are_refused_with_the_list() {
    for clauses in ["STORED AS SCD TYPE 1", "STORED AS SCD TYPE 2"] {
        let workspace = periodic(clauses, "");
        put_state(&workspace, &[(1, "a"), (7, "x")]);
        workspace.run_ok(&[]);
        put_state(&workspace, &[(1, "A"), (7, "x"), (7, "y"), (8, "x"), (8, "x"), (8, "y")]);
        let before = table(&workspace, "customers");
        let said = failure(&workspace.run(&[]), "snap");
        for part in ["DUPLICATE_KEY_VIOLATION", "3 rows", "id=7", "id=8", "snap"] {
            assert!(said.contains(part), "{clauses}: no {part} in {said}");
        }
        assert_eq!(table(&workspace, "customers"), before, "nothing was written");
        put_state(&workspace, &[(1, "A"), (7, "y")]);
        workspace.run_ok(&[]);
        assert_eq!(
            workspace.rows("SELECT DISTINCT id FROM customers WHERE name IN ('A', 'y') ORDER BY id"),
            ["1", "7"]
        );
    }
}

/// A large snapshot is applied in portions, and a key's rows may lie in two of them. The side table needn't have the
/// first one then: of type 1 if a newer event was there before, of type 2 if it changes nothing.
#[test]
fn duplicate_keys_in_two_portions_of_a_snapshot_are_found() {
    // Two parts, each as large as a portion.
    let part = |name: &str| {
        format!(
            "SELECT id, repeat(name, 2000000) AS name, at FROM {}",
            files(name, "id BIGINT, name STRING, at BIGINT")
        )
    };
    let snapshot = format!("SELECT id, name FROM ({} UNION ALL {})", part("one"), part("two"));
    let fill = |workspace: &TestWorkspace, folder: &str, ids: std::ops::Range<u32>| {
        let rows: Vec<String> = ids.map(|id| format!(r#"{{"id":{id},"name":"x"}}"#)).collect();
        put(workspace, folder, 1, &rows.iter().map(String::as_str).collect::<Vec<_>>());
    };
    let check = |workspace: &TestWorkspace| {
        fill(workspace, "one", 0..70);
        fill(workspace, "two", 69..140);
        let said = failure(&workspace.run(&[]), "snap");
        assert!(said.contains("DUPLICATE_KEY_VIOLATION") && said.contains("id=69"), "{said}");
    };

    let workspace = without_retries(&format!(
        "{feed}CREATE STREAMING TABLE customers;\n\
         CREATE FLOW live AS AUTO CDC INTO customers FROM STREAM(changes) KEYS (id) SEQUENCE BY at\n\
         COLUMNS * EXCEPT (at) STORED AS SCD TYPE 1;\n\
         CREATE FLOW snap AS AUTO CDC ONCE INTO customers FROM SNAPSHOT ({snapshot})\n\
         WITH VERSION (SELECT max(at) FROM {versions}) KEYS (id) STORED AS SCD TYPE 1;",
        feed = feed("changes", "id BIGINT, name STRING, at BIGINT"),
        versions = files("versions", "at BIGINT"),
    ));
    folders(&workspace, &["one", "two", "versions"]);
    put(&workspace, "changes", 0, &[r#"{"id":69,"name":"newer","at":9}"#]);
    workspace.run(&["--flow", "live"]);
    assert_eq!(customers(&workspace), ["69|newer"]);
    put(&workspace, "versions", 0, &[r#"{"at":5}"#]);
    check(&workspace);
    assert_eq!(customers(&workspace), ["69|newer"]);

    let workspace = without_retries(&format!(
        "CREATE STREAMING TABLE customers;\n\
         CREATE FLOW snap AS AUTO CDC INTO customers FROM SNAPSHOT ({snapshot})\n\
         WITH VERSION (SELECT max(at) FROM {versions}) KEYS (id) STORED AS SCD TYPE 2;",
        versions = files("versions", "at BIGINT"),
    ));
    folders(&workspace, &["one", "two", "versions"]);
    fill(&workspace, "one", 0..70);
    fill(&workspace, "two", 70..140);
    put(&workspace, "versions", 0, &[r#"{"at":5}"#]);
    workspace.run_ok(&[]);
    put(&workspace, "versions", 1, &[r#"{"at":6}"#]);
    check(&workspace);
}

#[test]
fn rows_of_a_snapshot_without_a_key_are_refused_or_dropped() {
    let rows = ["{\"id\":1,\"name\":\"A\"}", "{\"name\":\"nobody\"}", "{\"name\":\"nothing\"}"];
    let workspace = periodic("", "");
    put_state(&workspace, &[(1, "a")]);
    workspace.run_ok(&[]);
    put(&workspace, "state", 0, &rows);
    let said = failure(&workspace.run(&[]), "snap");
    assert!(said.contains("NULL_KEY") && said.contains("`id`=2"), "{said}");
    assert_eq!(customers(&workspace), ["1|a"]);

    let workspace = periodic("", "TBLPROPERTIES ('flowbench.nullKeys' = 'drop')");
    put(&workspace, "state", 0, &rows);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|A"]);
    assert_eq!(changes(&outcome, "snap", "dropped"), 2);
    assert!(outcome.notice("keyless-events").contains('2'), "{outcome}");
}

#[test]
fn an_empty_snapshot_is_refused_unless_it_is_allowed() {
    let workspace = periodic("", "");
    put_state(&workspace, &[(1, "a"), (2, "b")]);
    workspace.run_ok(&[]);
    put_state(&workspace, &[]);
    let said = failure(&workspace.run(&[]), "snap");
    assert!(
        said.contains("snapshot-empty") && said.contains("2 rows") && said.contains("allow_empty_snapshot"),
        "{said}"
    );
    assert_eq!(customers(&workspace), ["1|a", "2|b"]);
    for scd_type in [1, 2] {
        let clauses = format!("STORED AS SCD TYPE {scd_type}");
        let workspace = periodic(&clauses, "TBLPROPERTIES ('flowbench.allowEmptySnapshot' = 'true')");
        put_state(&workspace, &[(1, "a"), (2, "b")]);
        workspace.run_ok(&[]);
        put_state(&workspace, &[]);
        let outcome = workspace.run_ok(&[]);
        assert_eq!(changes(&outcome, "snap", "deleted"), 2);
        let open = if scd_type == 1 { "customers" } else { "customers WHERE __END_AT IS NULL" };
        assert_eq!(workspace.count(open), 0);
    }
}

/// What may be deleted is counted in keys that are there, however long their history is.
#[test]
fn a_snapshot_that_lacks_too_much_is_refused() {
    for scd_type in [1, 2] {
        let clauses = format!("STORED AS SCD TYPE {scd_type}");
        let workspace = periodic(&clauses, "TBLPROPERTIES ('flowbench.maxDeleteFraction' = '0.5')");
        for name in ["a", "b", "c", "d"] {
            put_state(&workspace, &[(1, name), (2, name), (3, name), (4, name)]);
            workspace.run_ok(&[]);
        }
        put_state(&workspace, &[(1, "e")]);
        let before = table(&workspace, "customers");
        let said = failure(&workspace.run(&[]), "snap");
        assert!(
            said.contains("snapshot-deletes-too-much") && said.contains("lacks 3 of the 4 keys"),
            "{scd_type}: {said}"
        );
        assert_eq!(table(&workspace, "customers"), before);
        put_state(&workspace, &[(1, "e"), (2, "e")]);
        assert_eq!(changes(&workspace.run_ok(&[]), "snap", "deleted"), 2, "half of them may go");
    }
}

#[test]
fn a_version_that_goes_back_is_passed_over_and_told() {
    let sql = |version: i64| {
        format!(
            "CREATE STREAMING TABLE customers;\n\
             CREATE FLOW snap AS AUTO CDC INTO customers FROM SNAPSHOT (SELECT {version} AS id, 'x' AS name)\n\
             WITH VERSION (SELECT {version}) KEYS (id);"
        )
    };
    let workspace = without_retries(&sql(5));
    workspace.run_ok(&[]);
    for (version, told) in [(5, 0), (4, 1)] {
        workspace.define(&sql(version));
        let outcome = workspace.run_ok(&[]);
        assert_eq!(outcome.notices("snapshot-passed-over").len(), told, "{outcome}");
        assert_eq!(customers(&workspace), ["5|x"]);
    }
}

/// Of tables, and of no source at all.
#[test]
fn snapshots_of_what_is_no_file_are_compared_too() {
    for (snapshot, scd_type) in
        [("SELECT 1 AS id, 'a' AS name", 1), ("SELECT * FROM state", 1), ("SELECT * FROM state", 2)]
    {
        let workspace = without_retries(&format!(
            "CREATE MATERIALIZED VIEW state AS SELECT * FROM {};\nCREATE STREAMING TABLE customers;\n\
             CREATE FLOW snap AS AUTO CDC INTO customers FROM SNAPSHOT ({snapshot}) KEYS (id) STORED AS SCD TYPE {scd_type};",
            files("state", "id BIGINT, name STRING")
        ));
        put_state(&workspace, &[(1, "a")]);
        for _ in 0..3 {
            workspace.run_ok(&[]);
        }
        assert_eq!(workspace.rows("SELECT id, name FROM customers"), ["1|a"], "{snapshot}");
        put_state(&workspace, &[(1, "a"), (2, "b")]);
        workspace.run_ok(&[]);
        let both: &[&str] = if snapshot.contains("state") { &["1|a", "2|b"] } else { &["1|a"] };
        assert_eq!(workspace.rows("SELECT id, name FROM customers ORDER BY id"), both, "{snapshot}");
    }
}

/// A snapshot that was refused is looked at anew by the next update, and none at all is no error then.
#[test]
fn a_refused_snapshot_is_applied_once_it_is_mended() {
    for once in ["", "ONCE"] {
        let sql = |version: i64| {
            format!(
                "CREATE STREAMING TABLE customers;\n\
                 CREATE FLOW snap AS AUTO CDC {once} INTO customers FROM SNAPSHOT (SELECT * FROM {})\n\
                 WITH VERSION (SELECT CAST({version} AS BIGINT) WHERE {version} > 0) KEYS (id);",
                files("state", "id BIGINT, name STRING")
            )
        };
        let workspace = without_retries(&sql(2));
        if once.is_empty() {
            workspace.define(&sql(1));
            put_state(&workspace, &[(1, "a")]);
            workspace.run_ok(&[]);
            workspace.define(&sql(2));
        }
        for wrong in [&[(1, "b"), (1, "c")][..], &[]] {
            put_state(&workspace, wrong);
            failure(&workspace.run(&[]), "snap");
        }
        if once.is_empty() {
            workspace.define(&sql(0));
            workspace.run_ok(&[]);
            assert_eq!(customers(&workspace), ["1|a"]);
            workspace.define(&sql(2));
        }
        put_state(&workspace, &[(1, "b"), (2, "c")]);
        workspace.run_ok(&[]);
        assert_eq!(customers(&workspace), ["1|b", "2|c"], "{once}");
        workspace.run_ok(&[]);
    }
}

/// A once snapshot is run again by name; an update applies it if its version is newer.
#[test]
fn a_once_snapshot_is_run_again_on_request() {
    let workspace = with_events(&[event(1, "event", "2025-02-01"), event(2, "event", "2024-12-01")]);
    add_backfill(&workspace);
    put_state(&workspace, &[(2, "s"), (3, "s")]);
    workspace.run_ok(&[]);
    assert_eq!(customers(&workspace), ["1|event", "2|s", "3|s"]);
    put_state(&workspace, &[(2, "t"), (4, "t")]);
    // Its version has been: there is nothing to do, and that is said.
    let outcome = workspace.run_ok(&["--rerun-once", "backfill", "--yes"]);
    assert_eq!(outcome.flow_state("backfill"), "COMPLETED");
    assert!(outcome.notice("snapshot-passed-over").contains("`customers`"), "{outcome}");
    assert_eq!(customers(&workspace), ["1|event", "2|s", "3|s"]);
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill"), "IDLE");
    workspace.define(&(live() + &backfill().replace("2025-01-01", "2025-01-02")));
    workspace.run_ok(&["--rerun-once", "backfill", "--yes"]);
    assert_eq!(customers(&workspace), ["1|event", "2|t", "4|t"]);
    assert_eq!(workspace.run_ok(&[]).flow_state("backfill"), "IDLE");
}

/// The table's history of SCD type 2 shows the versions of its snapshots as times.
#[test]
fn versions_of_any_type_bound_the_intervals() {
    for (version_type, versions, shown) in [
        ("DATE", ["2025-01-01", "2025-01-02"], ["2025-01-01", "2025-01-02"]),
        ("STRING", ["b", "c"], ["b", "c"]),
        ("DECIMAL(6,2)", ["2.5", "10.25"], ["2.50", "10.25"]),
        ("TIMESTAMP", ["2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z"], ["2025-01-01 00:00:00", "2025-01-02 00:00:00"]),
    ] {
        let define = |version: &str| {
            format!(
                "CREATE STREAMING TABLE customers;\n\
                 CREATE FLOW snap AS AUTO CDC INTO customers FROM SNAPSHOT (SELECT * FROM {}) \
                 WITH VERSION (SELECT CAST('{version}' AS {version_type})) KEYS (id) STORED AS SCD TYPE 2;",
                files("state", "id BIGINT, name STRING")
            )
        };
        let workspace = without_retries(&define(versions[0]));
        put_state(&workspace, &[(1, "a")]);
        workspace.run_ok(&[]);
        workspace.define(&define(versions[1]));
        put_state(&workspace, &[(1, "b")]);
        workspace.run_ok(&[]);
        assert_eq!(
            workspace.rows("SELECT * FROM customers ORDER BY __START_AT"),
            [format!("1|a|{}|{}", shown[0], shown[1]), format!("1|b|{}|null", shown[1])],
            "{version_type}"
        );
    }
}
