//! AUTO CDC beyond seeds and snapshots: its clauses, several feeds of one table, ties, refused batches.

use super::changes::{changes, errors, failure, feed, folders, put, table, without_retries};
use crate::fixture::TestWorkspace;

pub(super) const ROW: &str = "id BIGINT, name STRING, city STRING, op STRING, seq BIGINT";

/// A table `t` of the feed `feed`; `clauses` stand behind KEYS.
pub(super) fn table_of(schema: &str, clauses: &str) -> String {
    format!(
        "CREATE STREAMING TABLE t;\n{}CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) {clauses};\n",
        feed("feed", schema)
    )
}

/// The same with what a view selects of the feed, which may change: what a source's columns are is fixed by its start.
pub(super) fn selecting(select: &str, clauses: &str) -> String {
    let chosen = format!("CREATE TEMPORARY VIEW chosen AS SELECT {select} FROM STREAM(feed);\n");
    table_of(&format!("{ROW}, tier STRING"), clauses).replace("FROM STREAM(feed) KEYS", "FROM STREAM(chosen) KEYS")
        + &chosen
}

pub(super) fn with(clauses: &str) -> TestWorkspace {
    let workspace = without_retries(&table_of(ROW, clauses));
    folders(&workspace, &["feed"]);
    workspace
}

/// An update after one more file of the feed.
pub(super) fn apply(workspace: &TestWorkspace, number: u32, rows: &[&str]) -> crate::fixture::Outcome {
    put(workspace, "feed", number, rows);
    workspace.run_ok(&[])
}

pub(super) const LATEST: &str = "APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)";
pub(super) const HISTORY: &str =
    "APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2";

#[test]
fn columns_to_update_keeps_what_an_event_does_not_name() {
    let schema = "id BIGINT, name STRING, city STRING, changed ARRAY<STRING>, seq BIGINT";
    let clauses = "SEQUENCE BY seq COLUMNS * EXCEPT (changed, seq) COLUMNS TO UPDATE changed";
    for scd_type in [1, 2] {
        let workspace = without_retries(&table_of(schema, &format!("{clauses} STORED AS SCD TYPE {scd_type}")));
        put(
            &workspace,
            "feed",
            0,
            &[
                r#"{"id":1,"name":"a","city":"x","changed":["name","city"],"seq":1}"#,
                r#"{"id":1,"name":"ignored","city":null,"changed":["CITY"],"seq":3}"#,
                r#"{"id":2,"name":"whole","city":"row","seq":1}"#,
            ],
        );
        workspace.run_ok(&[]);
        // Late, between the two: its name holds in the later row too.
        apply(&workspace, 1, &[r#"{"id":1,"name":"b","city":"ignored","changed":["name"],"seq":2}"#]);
        let expected: &[&str] = match scd_type {
            1 => &["1|b|null", "2|whole|row"],
            _ => &["1|a|x|1|2", "1|b|x|2|3", "1|b|null|3|null", "2|whole|row|1|null"],
        };
        let order = if scd_type == 1 { "ALL" } else { "id, __START_AT" };
        assert_eq!(workspace.rows(&format!("SELECT * FROM t ORDER BY {order}")), expected);
    }
}

/// `seq` is the source's, only left out of the target: naming it is no mistake.
#[test]
fn columns_to_update_that_the_flow_does_not_have_are_told_once_a_batch() {
    let schema = "id BIGINT, name STRING, city STRING, changed ARRAY<STRING>, seq BIGINT";
    let clauses = "SEQUENCE BY seq COLUMNS * EXCEPT (changed, seq) COLUMNS TO UPDATE changed";
    let workspace = without_retries(&table_of(schema, clauses));
    let outcome = apply(
        &workspace,
        0,
        &[
            r#"{"id":1,"name":"a","city":"x","changed":["Name","ID","seq"],"seq":1}"#,
            r#"{"id":1,"name":"b","city":"y","changed":["nope","city"],"seq":2}"#,
            r#"{"id":2,"name":"b","city":"y","changed":["nope","Nop",null],"seq":2}"#,
        ],
    );
    let notice = outcome.notice("unknown-columns");
    assert!(notice.starts_with("events name columns that the flow doesn't have: `Nop` (1), `nope` (2) ="), "{notice}");
    assert_eq!(workspace.rows("SELECT * FROM t ORDER BY id"), ["1|a|y", "2|null|null"]);
    let outcome = apply(&workspace, 1, &[r#"{"id":1,"name":"c","changed":["name"],"seq":3}"#]);
    assert!(outcome.notices("unknown-columns").is_empty(), "{outcome}");
}

/// TRUNCATE is a floor: everything at or before it is gone, late events and keys never seen included.
#[test]
fn a_truncate_event_deletes_what_is_at_or_before_it() {
    for ignoring in ["", "IGNORE NULL UPDATES"] {
        let workspace = with(&format!("{ignoring} APPLY AS TRUNCATE WHEN op = 'T' {LATEST}"));
        apply(
            &workspace,
            0,
            &[
                r#"{"id":1,"name":"a","city":"x","seq":1}"#,
                r#"{"id":2,"name":"b","city":"x","seq":5}"#,
                r#"{"id":3,"name":"c","city":"x","seq":6}"#,
            ],
        );
        let outcome = apply(&workspace, 1, &[r#"{"op":"T","seq":5}"#]);
        assert_eq!(table(&workspace, "t"), ["3|c|x"], "{ignoring}");
        assert!(outcome.notices("truncated")[0].contains("2 rows left"), "{outcome}");
        apply(
            &workspace,
            2,
            &[
                r#"{"id":1,"name":"late","city":"x","seq":4}"#,
                r#"{"id":2,"name":"tie","city":"x","seq":5}"#,
                r#"{"id":9,"name":"unseen","city":"x","seq":2}"#,
                r#"{"id":4,"name":"new","city":"y","seq":7}"#,
                // A later event of a key that was cut off: it keeps nothing of before.
                r#"{"id":1,"name":null,"city":"z","seq":8}"#,
            ],
        );
        assert_eq!(table(&workspace, "t"), ["1|null|z", "3|c|x", "4|new|y"], "{ignoring}");
        // An older TRUNCATE than the last one changes nothing; an event behind it with its batch counts.
        apply(&workspace, 3, &[r#"{"op":"T","seq":3}"#, r#"{"id":5,"name":"e","city":"x","seq":9}"#]);
        assert_eq!(table(&workspace, "t"), ["1|null|z", "3|c|x", "4|new|y", "5|e|x"], "{ignoring}");
        apply(&workspace, 4, &[r#"{"id":6,"name":"f","city":"x","seq":11}"#, r#"{"op":"T","seq":10}"#]);
        assert_eq!(table(&workspace, "t"), ["6|f|x"], "{ignoring}");
    }
}

/// What a TRUNCATE cut off fills no NULL, in whichever batches the events come, those of the first batch too.
#[test]
fn what_a_truncate_event_cut_off_fills_nothing() {
    let clauses = [
        (ROW, "IGNORE NULL UPDATES APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)"),
        (
            "id BIGINT, name STRING, city STRING, op STRING, changed ARRAY<STRING>, seq BIGINT",
            "APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq COLUMNS * EXCEPT (op, changed, seq) COLUMNS TO UPDATE changed",
        ),
    ];
    let events = [
        r#"{"id":1,"name":"a","city":"x","changed":["name","city"],"seq":1}"#,
        r#"{"op":"T","seq":5}"#,
        r#"{"id":1,"name":"b","changed":["name"],"seq":6}"#,
    ];
    for (schema, clauses) in clauses {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]] {
            for cut in [0, 1, 2] {
                let workspace = without_retries(&table_of(schema, clauses));
                let rows = order.map(|at| events[at]);
                for (number, part) in [&rows[..cut], &rows[cut..]].into_iter().enumerate() {
                    apply(&workspace, number as u32, part);
                }
                assert_eq!(table(&workspace, "t"), ["1|b|null"], "{clauses}: {order:?} cut at {cut}");
            }
        }
    }
}

/// Until then only the newest event of a key was kept: what came before stays forgotten, its rows too.
#[test]
fn nulls_may_be_ignored_from_some_update_on() {
    let workspace = with(LATEST);
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":"x","seq":1}"#]);
    apply(&workspace, 1, &[r#"{"id":1,"name":"b","city":"y","seq":2}"#]);
    workspace.define(&table_of(ROW, &format!("IGNORE NULL UPDATES {LATEST}")));
    apply(&workspace, 2, &[r#"{"id":1,"name":"a","city":"x","seq":3}"#]);
    assert_eq!(table(&workspace, "t"), ["1|a|x"]);
    apply(&workspace, 3, &[r#"{"id":1,"name":null,"city":"z","seq":4}"#]);
    assert_eq!(table(&workspace, "t"), ["1|a|z"]);
    workspace.command(&["scd", "check", "t"]);
}

/// A column that only another flow has is one that the event is silent about, or says NULL of, as the clause of its flow
/// says: whether it was there when the event came or not.
#[test]
fn events_that_leave_columns_as_they_are_do_so_with_columns_of_other_flows() {
    // Of the older event of `b`, y stays where `a` is silent about columns that it doesn't have. A list names `y` or not.
    let cases = [
        ("", "", "1|1|null"),
        ("IGNORE NULL UPDATES", "IGNORE NULL UPDATES", "1|1|7"),
        ("IGNORE NULL UPDATES ON * EXCEPT (x)", "", "1|1|7"),
        ("IGNORE NULL UPDATES ON x", "IGNORE NULL UPDATES ON y", "1|1|null"),
        ("COLUMNS TO UPDATE c", "COLUMNS TO UPDATE c", "1|1|7"),
        ("COLUMNS TO UPDATE more", "COLUMNS TO UPDATE c", "1|1|null"),
    ];
    for scd_type in [1, 2] {
        for (of_a, of_b, expected) in cases {
            let flow = |name: &str, column: &str, clause: &str| {
                format!(
                    "{}CREATE FLOW {name} AS AUTO CDC INTO t FROM STREAM({name}_rows) KEYS (id) {clause} SEQUENCE BY seq \
                     COLUMNS * EXCEPT (seq, c, more) STORED AS SCD TYPE {scd_type};\n",
                    feed(
                        &format!("{name}_rows"),
                        &format!("id BIGINT, {column} BIGINT, c ARRAY<STRING>, more ARRAY<STRING>, seq BIGINT")
                    )
                )
            };
            let sql = format!("CREATE STREAMING TABLE t;\n{}{}", flow("a", "x", of_a), flow("b", "y", of_b));
            let is_open = if scd_type == 1 { "" } else { "WHERE __END_AT IS NULL" };
            // One after the other, and both at once.
            for flows in ["a b", "b a", ""] {
                let workspace = without_retries(&sql);
                put(&workspace, "a_rows", 0, &[r#"{"id":1,"x":1,"c":["x"],"more":["x","y"],"seq":5}"#]);
                put(&workspace, "b_rows", 0, &[r#"{"id":1,"y":7,"c":["y"],"seq":3}"#]);
                flows.split_whitespace().for_each(|flow| drop(workspace.run_ok(&["--flow", flow])));
                workspace.run_ok(&[]);
                let rows = workspace.rows(&format!("SELECT id, x, y FROM t {is_open}"));
                assert_eq!(rows, [expected], "`{of_a}`, `{of_b}`, SCD type {scd_type}, flows {flows}");
            }
        }
    }
}

/// Events of one key and sequence lie over each other: what the strongest leaves as it is comes from those beneath it,
/// whichever came first, and whether or not a flow that leaves columns as they are was there from the start.
#[test]
fn of_events_of_one_sequence_the_strongest_leaves_the_others_their_columns() {
    let flow = |name: &str, clause: &str| {
        format!(
            "{}CREATE FLOW {name} AS AUTO CDC INTO t FROM STREAM({name}_rows) KEYS (id) {clause} SEQUENCE BY seq COLUMNS * \
             EXCEPT (seq, c);\n",
            feed(&format!("{name}_rows"), "id BIGINT, x BIGINT, y BIGINT, z BIGINT, c ARRAY<STRING>, seq BIGINT")
        )
    };
    for clause in ["IGNORE NULL UPDATES", "COLUMNS TO UPDATE c"] {
        let only_a = format!("CREATE STREAMING TABLE t;\n{}", flow("a", ""));
        let all = format!("{only_a}{}{}", flow("b", clause), flow("c", clause));
        for flows in ["a b c", "c b a", "b a c", "c a b", "", "a, b c"] {
            let workspace = without_retries(&all);
            let of_a = [
                r#"{"id":1,"x":3,"y":3,"z":3,"seq":3}"#,
                r#"{"id":1,"x":5,"y":5,"seq":5}"#,
                r#"{"id":2,"x":3,"y":3,"z":3,"seq":3}"#,
            ];
            put(&workspace, "a_rows", 0, &of_a);
            let of_b = [r#"{"id":1,"x":6,"y":6,"c":["x","y"],"seq":5}"#, r#"{"id":2,"x":7,"c":["x"],"seq":4}"#];
            put(&workspace, "b_rows", 0, &of_b);
            put(
                &workspace,
                "c_rows",
                0,
                &[r#"{"id":1,"x":7,"c":["x"],"seq":5}"#, r#"{"id":2,"y":7,"c":["y"],"seq":4}"#],
            );
            for flow in flows.split_whitespace() {
                let is_alone = flow.ends_with(',');
                workspace.define(if is_alone { &only_a } else { &all });
                workspace.run_ok(&["--flow", flow.trim_end_matches(',')]);
            }
            workspace.run_ok(&[]);
            let rows = workspace.rows("SELECT * FROM t ORDER BY id");
            assert_eq!(rows, ["1|7|6|null", "2|7|7|3"], "{clause}, `{flows}`");
        }
    }
}

/// Ranks that change under stored events: a flow that was a once flow, one that has another name, one whose checkpoint was
/// reset.
#[test]
fn ties_go_by_what_their_flows_are_now() {
    let flow = |name: &str, source: &str, once: &str, clause: &str| {
        format!(
            "{}CREATE FLOW {name} AS AUTO CDC{once} INTO t FROM STREAM({source}) KEYS (id) {clause} SEQUENCE BY seq COLUMNS * \
             EXCEPT (seq, c);\n",
            feed(source, "id BIGINT, x BIGINT, y BIGINT, c ARRAY<STRING>, seq BIGINT")
        )
    };
    let sql = |flows: &[String]| format!("CREATE STREAMING TABLE t;\n{}", flows.concat());
    let rows = |workspace: &TestWorkspace| workspace.rows("SELECT id, x, y FROM t ORDER BY id");

    // A seed that goes on as a live flow.
    for clause in ["", "IGNORE NULL UPDATES"] {
        let flows = |once: &str| sql(&[flow("a", "a_rows", "", clause), flow("b", "b_rows", once, clause)]);
        let workspace = without_retries(&flows(" ONCE"));
        put(&workspace, "a_rows", 0, &[r#"{"id":1,"x":1,"y":1,"seq":5}"#]);
        put(&workspace, "b_rows", 0, &[r#"{"id":2,"x":2,"y":2,"seq":5}"#]);
        workspace.run_ok(&[]);
        workspace.define(&flows(""));
        put(&workspace, "b_rows", 1, &[r#"{"id":1,"x":9,"y":9,"seq":5}"#]);
        workspace.run_ok(&[]);
        assert_eq!(rows(&workspace), ["1|9|9", "2|2|2"], "{clause}");
    }

    // A renamed flow: it is the stronger one from then on.
    let list = "COLUMNS TO UPDATE c";
    let flows = |a: &str| sql(&[flow(a, "a_rows", "", list), flow("m", "m_rows", "", list)]);
    let workspace = without_retries(&flows("a"));
    put(&workspace, "a_rows", 0, &[r#"{"id":1,"x":1,"c":["x"],"seq":5}"#]);
    put(&workspace, "m_rows", 0, &[r#"{"id":1,"y":2,"c":["y"],"seq":5}"#]);
    workspace.run_ok(&[]);
    workspace.define(&flows("zz"));
    assert_eq!(workspace.command(&["rename-flow", "a", "zz"]).code, Some(0));
    put(&workspace, "m_rows", 1, &[r#"{"id":1,"x":3,"c":["x"],"seq":5}"#]);
    workspace.run_ok(&[]);
    assert_eq!(rows(&workspace), ["1|1|2"]);

    // Read again, an event says what it said before: it isn't kept twice. (The other two are of `m`.)
    workspace.command(&["reset", "zz", "--yes"]);
    workspace.run_ok(&[]);
    assert_eq!(rows(&workspace), ["1|1|2"]);
    let history = workspace.command(&["scd", "history", "t", "--key", "1"]).result;
    assert_eq!(history["events"].as_array().map(Vec::len), Some(3), "{history}");
}

/// Ties of a feed that is a table go by the place in it, and that by the source's: in whichever order the tasks end that
/// write a batch, and however the table was built or its files were joined since.
#[test]
fn ties_over_a_table_are_those_over_its_source() {
    let pipeline = |files: &str| {
        format!(
            "CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM read_files('data/feed', format => 'json', schema => 'id \
             BIGINT, x BIGINT, seq BIGINT, pad STRING', schemaEvolutionMode => 'none', maxFilesPerTrigger => {files});\n\
             CREATE STREAMING TABLE silver AS SELECT id, x + 0 AS x, seq, pad FROM STREAM(bronze) WHERE id >= 0;\n\
             CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(bronze) KEYS (id) SEQUENCE BY seq \
             COLUMNS * EXCEPT (seq, pad);\n\
             CREATE STREAMING TABLE u;\nCREATE FLOW g AS AUTO CDC INTO u FROM STREAM(silver) KEYS (id) SEQUENCE BY seq \
             COLUMNS * EXCEPT (seq, pad);\n"
        )
    };
    let put = |workspace: &TestWorkspace, file: u32, keys: u32, words: u64| {
        // Texts that hardly compress.
        let word = |id: u32, at: u64| (u64::from(id) * 977 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ at << 40);
        let pad = |id: u32| (0..words).map(|at| format!("{:016x}", word(id + file * 7919, at))).collect::<String>();
        let row = |id: u32| format!(r#"{{"id":{id},"x":{file},"seq":5,"pad":"{}"}}"#, pad(id));
        let rows: Vec<String> = (0..keys).map(row).collect();
        put(workspace, "feed", file, &rows.iter().map(String::as_str).collect::<Vec<_>>());
    };
    let winners = |workspace: &TestWorkspace| {
        let [of_t, of_u] =
            ["t", "u"].map(|table| workspace.rows(&format!("SELECT x, count(*) FROM {table} GROUP BY x ORDER BY x")));
        assert_eq!(of_t, of_u);
        of_t
    };
    // As much as two tasks are worth, in one batch.
    for _ in 0..3 {
        let workspace = without_retries(&pipeline("1000"));
        (0..6).for_each(|file| put(&workspace, file, 4000, 26));
        workspace.run_ok(&[]);
        assert_eq!(winners(&workspace), ["5|4000"]);
    }
    // Many batches, whose files are joined; then both tables anew, and one of them.
    let workspace = without_retries(&pipeline("1"));
    for round in 1..=3 {
        (round * 20 - 20..round * 20).for_each(|file| put(&workspace, file, 2, 0));
        workspace.run_ok(&[]);
        assert_eq!(winners(&workspace), [format!("{}|2", round * 20 - 1)]);
        workspace.run_ok(&["--full-refresh", "t", "--full-refresh", "u"]);
        assert_eq!(winners(&workspace), [format!("{}|2", round * 20 - 1)]);
    }
    workspace.run_ok(&["--full-refresh-all"]);
    assert_eq!(winners(&workspace), ["59|2"]);
    workspace.run_ok(&["--full-refresh", "t", "--full-refresh", "u"]);
    assert_eq!(winners(&workspace), ["59|2"]);
}

/// An event of a feed that has the version of a snapshot goes over the snapshot's row.
#[test]
fn an_event_of_a_snapshots_version_leaves_its_columns() {
    let sql = format!(
        "CREATE STREAMING TABLE t;\n{}CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) SEQUENCE BY seq COLUMNS \
         * EXCEPT (seq, c) COLUMNS TO UPDATE c;\nCREATE FLOW full AS AUTO CDC ONCE INTO t FROM SNAPSHOT (SELECT * FROM \
         read_files('data/full', format => 'json', schema => 'id BIGINT, x BIGINT, y BIGINT')) WITH VERSION (SELECT 5L) \
         KEYS (id);\n",
        feed("feed", "id BIGINT, x BIGINT, y BIGINT, c ARRAY<STRING>, seq BIGINT")
    );
    for flows in ["live full", "full live", ""] {
        let workspace = without_retries(&sql);
        put(&workspace, "full", 0, &[r#"{"id":1,"x":1,"y":1}"#, r#"{"id":2,"x":1,"y":1}"#]);
        let events = [
            r#"{"id":1,"x":7,"c":["x"],"seq":5}"#,
            r#"{"id":2,"x":7,"c":["x"],"seq":4}"#,
            r#"{"id":3,"x":6,"y":6,"seq":4}"#,
            r#"{"id":3,"x":7,"c":["x"],"seq":5}"#,
        ];
        put(&workspace, "feed", 0, &events);
        flows.split_whitespace().for_each(|flow| drop(workspace.run_ok(&["--flow", flow])));
        workspace.run_ok(&[]);
        let rows = workspace.rows("SELECT * FROM t ORDER BY id");
        assert_eq!(rows, ["1|7|1", "2|1|1", "3|7|null"], "`{flows}`");
    }
}

/// The same where the columns of one flow grow with its files, and where one is taken out.
#[test]
fn events_that_leave_columns_as_they_are_do_so_with_columns_that_come_and_go() {
    let inferred = |clause: &str| {
        format!(
            "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(v) KEYS (id) {clause} SEQUENCE BY seq \
             COLUMNS * EXCEPT (seq, c, more, _rescued_data);\nCREATE TEMPORARY VIEW v AS SELECT * FROM STREAM \
             read_files('data/v', format => 'json');"
        )
    };
    let events = [
        r#"{"id":1,"seq":5,"x":1,"c":["x"],"more":["x","y"]}"#,
        r#"{"id":1,"seq":3,"x":0,"y":7,"c":["y"],"more":["x","y"]}"#,
    ];
    let cases = [
        ("", "null"),
        ("IGNORE NULL UPDATES", "7"),
        ("IGNORE NULL UPDATES ON x", "null"),
        ("IGNORE NULL UPDATES ON * EXCEPT (x)", "7"),
        ("COLUMNS TO UPDATE c", "7"),
        ("COLUMNS TO UPDATE more", "null"),
    ];
    for (clause, y) in cases {
        // In one update, in two, and in two the other way round.
        for updates in ["01", "0 1", "1 0"] {
            let workspace = without_retries(&inferred(clause));
            for files in updates.split(' ') {
                let files = files.chars().filter_map(|file| file.to_digit(10));
                files.for_each(|file| put(&workspace, "v", file, &[events[file as usize]]));
                workspace.run_ok(&[]);
            }
            assert_eq!(workspace.rows("SELECT id, x, y FROM t"), [format!("1|1|{y}")], "{clause}: {updates}");
        }
    }

    let typed = |schema: &str| format!("IGNORE NULL UPDATES {LATEST}; -- {schema}");
    let whole = "id BIGINT, name STRING, city STRUCT<a: STRING, b: STRING>, op STRING, seq BIGINT";
    let less = "id BIGINT, city STRUCT<b: STRING>, op STRING, seq BIGINT";
    let workspace = without_retries(&table_of(whole, &typed("all")));
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":{"a":"p","b":"q"},"seq":1}"#]);
    workspace.define(&table_of(less, &typed("fewer")));
    apply(&workspace, 1, &[r#"{"id":1,"city":{"b":"r"},"seq":2}"#]);
    assert_eq!(workspace.rows("SELECT id, name, city.a, city.b FROM t"), ["1|a|p|r"]);
}

/// Rows that count as equal may look different: the newest event's is shown.
#[test]
fn of_equal_rows_the_newest_is_shown() {
    let mut shown = Vec::new();
    let events = [r#"{"id":1,"v":0.0,"seq":3}"#, r#"{"id":1,"v":-0.0,"seq":5}"#];
    for scd_type in [1, 2] {
        for order in [[0, 1], [1, 0]] {
            let clauses = format!("SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE {scd_type}");
            let workspace = without_retries(&table_of("id BIGINT, v DOUBLE, seq BIGINT", &clauses));
            (0..2).for_each(|number| drop(apply(&workspace, number, &[events[order[number as usize]]])));
            shown.push(workspace.rows("SELECT CAST(v AS STRING) FROM t"));
        }
    }
    assert!(shown.iter().all(|rows| *rows == ["-0.0"]), "{shown:?}");
}

/// The regions of one table: feeds of their own, with columns of their own, in whichever order they come.
#[test]
fn feeds_of_several_regions_share_a_table() {
    let regions = |scd_type: u8| {
        let mut sql = "CREATE STREAMING TABLE t;\n".to_string();
        for (region, more) in [("eu", "vat STRING"), ("us", "state STRING"), ("jp", "ward STRING")] {
            sql += &feed(region, &format!("id BIGINT, region STRING, name STRING, {more}, seq BIGINT"));
            sql += &format!(
                "CREATE FLOW f_{region} AS AUTO CDC INTO t FROM STREAM({region}) KEYS (id, region) SEQUENCE BY seq \
                 COLUMNS * EXCEPT (seq) STORED AS SCD TYPE {scd_type};\n"
            );
        }
        sql
    };
    for scd_type in [1, 2] {
        let mut tables = Vec::new();
        for order in [["f_eu", "f_us", "f_jp"], ["f_jp", "f_us", "f_eu"]] {
            let workspace = without_retries(&regions(scd_type));
            for (region, more) in [("eu", "vat"), ("us", "state"), ("jp", "ward")] {
                // A key that only the region has, and one that all of them write.
                put(
                    &workspace,
                    region,
                    0,
                    &[
                        &format!(r#"{{"id":1,"region":"{region}","name":"{region}1","{more}":"m","seq":1}}"#),
                        &format!(
                            r#"{{"id":7,"region":"all","name":"{region}","{more}":"m","seq":{}}}"#,
                            region.len() + region.as_bytes()[0] as usize
                        ),
                    ],
                );
                put(&workspace, region, 1, &[&format!(r#"{{"id":1,"region":"{region}","name":"{region}2","seq":2}}"#)]);
            }
            for flow in order {
                workspace.run_ok(&["--flow", flow]);
            }
            tables.push(workspace.rows("SELECT id, region, name, vat, state, ward FROM t ORDER BY ALL"));
        }
        let workspace = without_retries(&regions(scd_type));
        assert_eq!(tables[0], tables[1], "SCD type {scd_type}");
        assert!(tables[0].contains(&"7|all|us|null|m|null".to_string()), "{tables:?}");
        drop(workspace);
    }
}

/// New fields of two feeds in one update: neither loses the other's column.
#[test]
fn feeds_that_grow_at_the_same_time_keep_each_others_columns() {
    let mut sql = "CREATE STREAMING TABLE t;\n".to_string();
    for name in ["a", "b"] {
        sql += &format!(
            "CREATE FLOW {name} AS AUTO CDC INTO t FROM STREAM({name}_rows) KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq, _rescued_data);\n\
             CREATE TEMPORARY VIEW {name}_rows AS SELECT * FROM STREAM read_files('data/{name}', format => 'json', maxFilesPerTrigger => 1);\n"
        );
    }
    let workspace = without_retries(&sql);
    put(&workspace, "a", 0, &[r#"{"id":1,"seq":1}"#]);
    put(&workspace, "b", 0, &[r#"{"id":2,"seq":1}"#]);
    workspace.run_ok(&[]);
    for round in 1..5 {
        for (name, id) in [("a", 1), ("b", 2)] {
            put(
                &workspace,
                name,
                round,
                &[&format!(r#"{{"id":{id},"seq":{},"{name}{round}":"v{round}"}}"#, round + 1)],
            );
        }
        workspace.run_ok(&[]);
        let columns: Vec<String> = (1..=round).flat_map(|n| [format!("a{n}"), format!("b{n}")]).collect();
        let shown = workspace.columns("t");
        for column in &columns {
            assert!(shown.contains(&format!("{column} STRING")), "{column} is not in {shown:?}");
        }
        assert_eq!(
            workspace.rows(&format!("SELECT id, a{round}, b{round} FROM t ORDER BY id")),
            [format!("1|v{round}|null"), format!("2|null|v{round}")]
        );
    }
}

/// Of one key and sequence: a delete, then the live feed, then the later one in the source; whatever the batches.
#[test]
fn ties_are_decided_alike_in_batches_and_over_them_and_told_with_examples() {
    for clauses in [LATEST, HISTORY] {
        let mut tables = Vec::new();
        let rows = [
            r#"{"id":1,"name":"first","seq":5}"#,
            r#"{"id":1,"name":"second","seq":5}"#,
            r#"{"id":2,"op":"D","seq":5}"#,
            r#"{"id":2,"name":"beaten","seq":5}"#,
            r#"{"id":3,"name":"same","seq":5}"#,
            r#"{"id":3,"name":"same","seq":5}"#,
        ];
        for files in [1, 2, 3, 6] {
            let workspace = with(clauses);
            let mut ties = 0;
            let mut notices = Vec::new();
            for (number, rows) in rows.chunks(rows.len() / files).enumerate() {
                let outcome = apply(&workspace, number as u32, rows);
                ties += changes(&outcome, "f", "ties");
                notices.extend(outcome.notices("sequence-ties"));
            }
            assert_eq!(ties, 2, "{files} files");
            let said = notices.join("\n");
            for part in ["id=1 at 5", "id=2 at 5", "the delete"] {
                assert!(said.contains(part), "{files} files: no {part} in {said}");
            }
            tables.push(workspace.rows("SELECT id, name FROM t ORDER BY ALL"));
        }
        assert!(tables.iter().all(|table| *table == ["1|second", "3|same"]), "{tables:?}");
    }
}

#[test]
fn events_without_a_key_or_a_sequence_refuse_their_batch_or_are_dropped() {
    let workspace = with(LATEST);
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","seq":1}"#]);
    put(&workspace, "feed", 1, &[r#"{"id":1,"name":"b","seq":2}"#, r#"{"name":"x","seq":2}"#, r#"{"op":"D","seq":3}"#]);
    let said = failure(&workspace.run(&[]), "f");
    for part in ["NULL_KEY", "`id`=2", "batch 1", "record 2 of", "001.json"] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    assert_eq!(table(&workspace, "t"), ["1|a|null"], "the whole batch is refused");
    // The sequence is looked at first.
    put(&workspace, "feed", 1, &[r#"{"id":1,"name":"b"}"#, r#"{"name":"x","seq":2}"#]);
    let said = failure(&workspace.run(&[]), "f");
    assert!(said.contains("NULL_SEQUENCE") && said.contains("1 event whose") && !said.contains("NULL_KEY"), "{said}");
    assert_eq!(table(&workspace, "t"), ["1|a|null"]);
    // Mended, the file is read.
    put(&workspace, "feed", 1, &[r#"{"id":1,"name":"b","seq":2}"#]);
    workspace.run_ok(&[]);
    assert_eq!(table(&workspace, "t"), ["1|b|null"]);

    let workspace = with(LATEST);
    workspace
        .define(&table_of(ROW, LATEST).replace("TABLE t;", "TABLE t TBLPROPERTIES ('flowbench.nullKeys' = 'drop');"));
    let outcome = apply(&workspace, 0, &[r#"{"id":1,"name":"a","seq":1}"#, r#"{"name":"x","seq":2}"#]);
    assert_eq!(table(&workspace, "t"), ["1|a|null"]);
    assert_eq!(changes(&outcome, "f", "dropped"), 1);
    assert!(outcome.notice("keyless-events").contains("1 event without a key was dropped"), "{outcome}");
}

/// The TOML form of every clause does what the SQL form does.
#[test]
fn the_toml_form_applies_the_same() {
    let workspace = without_retries(&format!("CREATE STREAMING TABLE t;\n{}", feed("feed", ROW)));
    workspace.write(
        "transformations/flow.toml",
        "[[auto_cdc]]\nname = \"f\"\ntarget = \"t\"\nsource = \"feed\"\nkeys = [\"id\"]\nsequence_by = [\"seq\", \"name\"]\n\
         apply_as_deletes = \"op = 'D'\"\nexcept_columns = [\"op\", \"seq\"]\nscd_type = 2\ntrack_history_except = [\"city\"]\nnull_keys = \"drop\"\n",
    );
    folders(&workspace, &["feed"]);
    assert_eq!(errors(&workspace), [""; 0]);
    apply(
        &workspace,
        0,
        &[
            r#"{"id":1,"name":"a","city":"x","seq":1}"#,
            r#"{"id":1,"name":"a","city":"y","seq":2}"#,
            r#"{"name":"nobody","seq":3}"#,
        ],
    );
    apply(&workspace, 1, &[r#"{"id":1,"name":"b","city":"y","seq":2}"#, r#"{"id":1,"op":"D","name":"","seq":4}"#]);
    assert_eq!(
        workspace.rows("SELECT id, name, city, to_json(__START_AT), to_json(__END_AT) FROM t ORDER BY name"),
        [r#"1|a|y|{"seq":1,"name":"a"}|{"seq":2,"name":"b"}"#, r#"1|b|y|{"seq":2,"name":"b"}|{"seq":4,"name":""}"#]
    );
}
