//! AUTO CDC beyond seeds and snapshots: its clauses, several feeds of one table, ties, refused batches, what may change
//! between updates, resets, and what queries and other programs see of its tables.

use super::changes::{changes, errors, failure, feed, files, folders, put, table, version, without_retries};
use crate::fixture::{ForeignTable, TestWorkspace};

const ROW: &str = "id BIGINT, name STRING, city STRING, op STRING, seq BIGINT";

/// A table `t` of the feed `feed`; `clauses` stand behind KEYS.
fn table_of(schema: &str, clauses: &str) -> String {
    format!(
        "CREATE STREAMING TABLE t;\n{}CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) {clauses};\n",
        feed("feed", schema)
    )
}

/// The same with what a view selects of the feed, which may change: what a source's columns are is fixed by its start.
fn selecting(select: &str, clauses: &str) -> String {
    let chosen = format!("CREATE TEMPORARY VIEW chosen AS SELECT {select} FROM STREAM(feed);\n");
    table_of(&format!("{ROW}, tier STRING"), clauses).replace("FROM STREAM(feed) KEYS", "FROM STREAM(chosen) KEYS")
        + &chosen
}

fn with(clauses: &str) -> TestWorkspace {
    let workspace = without_retries(&table_of(ROW, clauses));
    folders(&workspace, &["feed"]);
    workspace
}

/// An update after one more file of the feed.
fn apply(workspace: &TestWorkspace, number: u32, rows: &[&str]) -> crate::fixture::Outcome {
    put(workspace, "feed", number, rows);
    workspace.run_ok(&[])
}

const LATEST: &str = "APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)";
const HISTORY: &str = "APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2";

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

/// A first batch that is refused leaves no promise behind.
#[test]
fn keys_may_change_after_a_first_batch_that_was_refused() {
    let workspace = with(LATEST);
    put(&workspace, "feed", 0, &[r#"{"name":"x","seq":2}"#]);
    failure(&workspace.run(&[]), "f");
    workspace.define(&table_of(ROW, LATEST).replace("KEYS (id)", "KEYS (name)"));
    workspace.run_ok(&[]);
    assert_eq!(table(&workspace, "t"), ["null|x|null"]);
}

/// What the stored members were made with may not change; a full refresh is the way out.
#[test]
fn keys_scd_type_sequence_type_and_tracked_columns_do_not_drift() {
    let first = HISTORY;
    let row = r#"{"id":1,"name":"a","city":"x","seq":1}"#;
    let cases = [
        ("KEY_SCHEMA_DRIFT", selecting("*", first).replace("KEYS (id)", "KEYS (id, city)")),
        ("SCD_TYPE_DRIFT", selecting("*", LATEST)),
        ("SEQUENCING_TYPE_DRIFT", selecting("*", &first.replace("BY seq", "BY STRUCT(seq, id)"))),
        ("TRACK_HISTORY_DRIFT", selecting("*", &format!("{first} TRACK HISTORY ON (name)"))),
        // The stored column has another type, which is found first.
        ("BIGINT", selecting("* EXCEPT (id), CAST(id AS STRING) AS id", first)),
    ];
    for (condition, changed) in cases {
        let workspace = without_retries(&selecting("*", first));
        apply(&workspace, 0, &[row]);
        let before = (table(&workspace, "t"), version(&workspace, "t"));
        workspace.define(&changed);
        // Found by validation, before there is anything to read, and by an update with something to read.
        let found = workspace.command(&["validate"]);
        assert_eq!(found.code, Some(3), "{condition}: {found}");
        put(&workspace, "feed", 1, &[r#"{"id":2,"name":"b","city":"x","seq":2}"#]);
        let outcome = workspace.run(&[]);
        assert_eq!(outcome.code, Some(3), "{condition}: {outcome}");
        for said in [found.result.to_string(), outcome.error.to_string()] {
            assert!(said.contains(condition) && said.contains("--full-refresh t"), "{condition}: {said}");
        }
        assert_eq!((table(&workspace, "t"), version(&workspace, "t")), before, "{condition}");
        workspace.run_ok(&["--full-refresh", "t"]);
        assert_eq!(workspace.count("t"), 2, "{condition}");
        // And back, which is another change.
        workspace.define(&selecting("*", first));
        assert_eq!(workspace.run(&[]).code, Some(3), "{condition}");
    }
}

/// The order of keys, the case of names, how the tracked set is written, the expressions: all free.
#[test]
fn what_is_said_otherwise_and_means_the_same_is_no_drift() {
    let workspace = with(HISTORY);
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":"x","seq":1}"#]);
    for (number, clauses) in [
        HISTORY.replace("op = 'D'", "op IN ('D', 'DELETE')"),
        HISTORY.replace("BY seq", "BY seq + 0"),
        format!("{HISTORY} TRACK HISTORY ON (City, NAME)"),
        format!("{HISTORY} TRACK HISTORY ON * EXCEPT (id)").replace(" EXCEPT (id)", " EXCEPT (op)"),
    ]
    .iter()
    .enumerate()
    {
        if clauses.contains("EXCEPT (op)") {
            continue;
        }
        workspace.define(&table_of(ROW, clauses));
        apply(
            &workspace,
            number as u32 + 1,
            &[&format!(r#"{{"id":1,"name":"a","city":"y{number}","seq":{}}}"#, number + 2)],
        );
    }
    assert_eq!(
        workspace.rows("SELECT city, __START_AT, __END_AT FROM t ORDER BY 2"),
        ["x|1|2", "y0|2|3", "y1|3|4", "y2|4|null"]
    );
}

/// A new column is NULL in all that is stored; one that is dropped keeps what is stored and is NULL from then on.
#[test]
fn columns_come_and_go() {
    for (clauses, scd_type) in [(LATEST, 1), (HISTORY, 2)] {
        let workspace = without_retries(&selecting("id, name, city, op, seq", clauses));
        let outcome = apply(
            &workspace,
            0,
            &[r#"{"id":1,"name":"a","city":"x","seq":1}"#, r#"{"id":2,"name":"b","city":"x","seq":1}"#],
        );
        assert_eq!(outcome.events_of("schema_evolved").len(), 0, "{outcome}");
        workspace.define(&selecting("*", clauses));
        let outcome = apply(
            &workspace,
            1,
            &[r#"{"id":1,"name":"a","city":"x","tier":"gold","seq":2}"#, r#"{"id":3,"name":"c","city":"x","seq":1}"#],
        );
        let evolved = outcome.events_of("schema_evolved");
        assert_eq!(evolved.len(), 1, "{outcome}");
        assert_eq!(evolved[0]["message"], "schema evolved: +tier STRING");
        let query = if scd_type == 1 {
            "SELECT id, name, city, tier FROM t ORDER BY id"
        } else {
            "SELECT id, name, city, tier, __START_AT, __END_AT FROM t ORDER BY id, __START_AT"
        };
        let expected: &[&str] = match scd_type {
            1 => &["1|a|x|gold", "2|b|x|null", "3|c|x|null"],
            _ => &["1|a|x|null|1|2", "1|a|x|gold|2|null", "2|b|x|null|1|null", "3|c|x|null|1|null"],
        };
        assert_eq!(workspace.rows(query), expected, "SCD type {scd_type}");
        workspace.define(&selecting("id, name, op, seq", clauses));
        apply(&workspace, 2, &[r#"{"id":2,"name":"B","seq":3}"#]);
        let expected: &[&str] = match scd_type {
            1 => &["1|a|x|gold", "2|B|null|null", "3|c|x|null"],
            _ => {
                &["1|a|x|null|1|2", "1|a|x|gold|2|null", "2|b|x|null|1|3", "2|B|null|null|3|null", "3|c|x|null|1|null"]
            }
        };
        assert_eq!(workspace.rows(query), expected, "SCD type {scd_type}");
        // A type doesn't change.
        workspace.define(&selecting("id, CAST(name AS BIGINT) AS name, op, seq", clauses));
        put(&workspace, "feed", 3, &[r#"{"id":2,"name":"7","seq":4}"#]);
        let outcome = workspace.run(&[]);
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert_eq!(workspace.rows(query), expected, "SCD type {scd_type}");
    }
}

/// While a batch is applied the next one is read: with columns that the batch then adds to the source and the table.
#[test]
fn columns_come_with_batches_that_were_read_ahead() {
    for (clauses, scd_type) in [(LATEST, 1), (HISTORY, 2)] {
        let given = format!("schema => '{ROW}', schemaEvolutionMode => 'none', ");
        let definitions = table_of(ROW, clauses).replace(&given, "");
        assert!(!definitions.contains("schema"), "{definitions}");
        let workspace = without_retries(&definitions);
        apply(&workspace, 0, &[r#"{"id":1,"name":"a","op":"U","seq":1}"#]);
        for (number, rows) in [
            (1, vec![r#"{"id":2,"name":"b","op":"U","seq":2}"#]),
            (2, vec![r#"{"id":1,"name":"c","op":"U","seq":3,"city":"x"}"#, r#"{"id":3,"op":"U","seq":3}"#]),
            (3, vec![r#"{"id":2,"name":"d","op":"U","seq":4,"city":"y"}"#]),
            (4, vec![r#"{"id":3,"name":"e","op":"U","seq":5,"tier":7}"#, r#"{"id":1,"op":"D","seq":5}"#]),
            (5, vec![r#"{"id":4,"name":"f","op":"U","seq":6,"tier":8,"city":"z"}"#]),
        ] {
            put(&workspace, "feed", number, &rows);
        }
        let outcome = workspace.run_ok(&[]);
        let read = outcome
            .batches("f")
            .iter()
            .map(|batch| batch["details"]["metrics"]["rows_in"].as_u64().unwrap())
            .collect::<Vec<_>>();
        assert_eq!(read, [1, 2, 1, 2, 1], "SCD type {scd_type}: {outcome}");
        let query = "SELECT id, name, city, tier FROM t";
        let (query, expected): (_, &[&str]) = match scd_type {
            1 => (format!("{query} ORDER BY id"), &["2|d|y|null", "3|e|null|7", "4|f|z|8"]),
            _ => (
                format!("{query} ORDER BY id, __START_AT"),
                &[
                    "1|a|null|null",
                    "1|c|x|null",
                    "2|b|null|null",
                    "2|d|y|null",
                    "3|null|null|null",
                    "3|e|null|7",
                    "4|f|z|8",
                ],
            ),
        };
        assert_eq!(workspace.rows(&query), expected, "SCD type {scd_type}");
    }
}

/// A reset reads the feed again from its start, which changes nothing.
#[test]
fn a_feed_that_is_read_again_changes_nothing() {
    for clauses in [LATEST, HISTORY] {
        let workspace = with(clauses);
        apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":"x","seq":1}"#, r#"{"id":2,"name":"b","seq":1}"#]);
        apply(
            &workspace,
            1,
            &[
                r#"{"id":1,"name":"c","city":"x","seq":3}"#,
                r#"{"id":2,"op":"D","seq":2}"#,
                r#"{"id":1,"name":"tie","seq":3}"#,
            ],
        );
        apply(&workspace, 2, &[r#"{"id":1,"name":"late","city":"x","seq":2}"#]);
        let before = (table(&workspace, "t"), version(&workspace, "t"));
        let reset = workspace.command(&["reset", "f", "--yes"]);
        assert_eq!(reset.code, Some(0), "{reset}");
        let outcome = workspace.run_ok(&[]);
        assert_eq!(outcome.batches("f").len(), 3, "it was read again");
        assert_eq!((table(&workspace, "t"), version(&workspace, "t")), before);
        assert_eq!(changes(&outcome, "f", "upserted") + changes(&outcome, "f", "deleted"), 0, "{outcome}");
    }
}

/// A once seed that is run again by request changes nothing either.
#[test]
fn a_once_seed_that_runs_again_changes_nothing() {
    for scd_type in [1, 2] {
        let workspace = without_retries(&format!(
            "CREATE STREAMING TABLE t;\nCREATE FLOW seed AS AUTO CDC ONCE INTO t FROM old KEYS (id) SEQUENCE BY seq \
             COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE {scd_type};\nCREATE TEMPORARY VIEW old AS SELECT * FROM {};",
            files("old", ROW)
        ));
        put(&workspace, "old", 0, &[r#"{"id":1,"name":"a","seq":1}"#, r#"{"id":1,"name":"b","seq":2}"#]);
        workspace.run_ok(&[]);
        let before = (table(&workspace, "t"), version(&workspace, "t"));
        put(&workspace, "old", 1, &[r#"{"id":1,"name":"c","seq":3}"#]);
        assert_eq!(workspace.run_ok(&[]).flow_state("seed"), "IDLE");
        assert_eq!((table(&workspace, "t"), version(&workspace, "t")), before);
        workspace.run_ok(&["--rerun-once", "seed", "--yes"]);
        let open = if scd_type == 1 { "t" } else { "t WHERE __END_AT IS NULL" };
        assert_eq!(workspace.rows(&format!("SELECT id, name FROM {open}")), ["1|c"], "the new row, and nothing twice");
        assert_eq!(workspace.count("t"), if scd_type == 1 { 1 } else { 3 });
        assert_eq!(workspace.run_ok(&[]).flow_state("seed"), "IDLE");
    }
}

#[test]
fn a_renamed_flow_goes_on_where_it_was() {
    let workspace = with(HISTORY);
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","seq":1}"#]);
    workspace.define(&table_of(ROW, HISTORY).replace("FLOW f ", "FLOW g "));
    let renamed = workspace.command(&["rename-flow", "f", "g"]);
    assert_eq!(renamed.code, Some(0), "{renamed}");
    put(&workspace, "feed", 1, &[r#"{"id":1,"name":"b","seq":2}"#]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batches("g").len(), 1, "only the new file is read");
    assert_eq!(workspace.rows("SELECT name, __START_AT, __END_AT FROM t ORDER BY 2"), ["a|1|2", "b|2|null"]);
}

/// Readers of an AUTO CDC table: a view, a once flow, an older version; and none of what is deleted shows.
#[test]
fn views_batches_and_older_versions_see_what_the_table_shows() {
    let workspace = with(LATEST);
    workspace.write(
        "transformations/readers.sql",
        "CREATE MATERIALIZED VIEW per_city AS SELECT city, count(*) AS n FROM t GROUP BY city;\n\
         CREATE STREAMING TABLE copy;\nCREATE FLOW copy_once AS INSERT INTO ONCE copy BY NAME SELECT * FROM t;",
    );
    apply(
        &workspace,
        0,
        &[
            r#"{"id":1,"name":"a","city":"x","seq":1}"#,
            r#"{"id":2,"name":"b","city":"x","seq":1}"#,
            r#"{"id":3,"name":"c","city":"y","seq":1}"#,
        ],
    );
    assert_eq!(table(&workspace, "per_city"), ["x|2", "y|1"]);
    let first = version(&workspace, "t");
    apply(&workspace, 1, &[r#"{"id":1,"op":"D","seq":2}"#, r#"{"id":2,"name":"B","city":"z","seq":2}"#]);
    assert_eq!(table(&workspace, "t"), ["2|B|z", "3|c|y"]);
    assert_eq!(table(&workspace, "per_city"), ["y|1", "z|1"]);
    assert_eq!(workspace.count("copy"), 3);
    let shown = |version: i64| {
        let outcome = workspace.command(&["show", "t", "--at-version", &version.to_string()]);
        outcome.result["rows"].as_array().unwrap_or_else(|| panic!("{outcome}")).len()
    };
    assert_eq!((shown(first), shown(version(&workspace, "t"))), (3, 2));
    assert_eq!(workspace.value("SELECT count(*) FROM t WHERE city = 'x'"), "0");
}

#[test]
fn a_stream_of_an_auto_cdc_table_says_what_it_can_do() {
    let workspace = with(LATEST);
    workspace.write("transformations/readers.sql", "CREATE STREAMING TABLE silver AS SELECT * FROM STREAM(t);");
    put(&workspace, "feed", 0, &[r#"{"id":1,"name":"a","seq":1}"#]);
    workspace.run(&[]);
    put(&workspace, "feed", 1, &[r#"{"id":1,"name":"b","seq":2}"#]);
    let outcome = workspace.run(&[]);
    let said = outcome.result.to_string() + &outcome.error.to_string();
    // Rows that were updated are no new rows: it is said, and nothing is doubled.
    assert!(outcome.code != Some(0) && said.contains("`t`"), "{outcome}");
}

#[test]
fn partitioned_and_clustered_targets_move_rows_between_their_files() {
    for layout in ["PARTITIONED BY (city)", "CLUSTER BY (city)", "PARTITIONED BY (id)"] {
        for (clauses, scd_type) in [(LATEST, 1), (HISTORY, 2)] {
            let workspace = with(clauses);
            workspace.define(&table_of(ROW, clauses).replace("TABLE t;", &format!("TABLE t {layout};")));
            apply(
                &workspace,
                0,
                &[
                    r#"{"id":1,"name":"a","city":"x","seq":1}"#,
                    r#"{"id":2,"name":"b","city":"x","seq":1}"#,
                    r#"{"id":3,"name":"c","city":"x","seq":1}"#,
                ],
            );
            apply(
                &workspace,
                1,
                &[
                    r#"{"id":1,"name":"a","city":"y/ä","seq":2}"#,
                    r#"{"id":2,"op":"D","seq":2}"#,
                    r#"{"id":3,"name":"C","city":"x","seq":2}"#,
                ],
            );
            apply(&workspace, 2, &[r#"{"id":1,"name":"late","city":null,"seq":1}"#, r#"{"id":3,"name":"c3","seq":3}"#]);
            let open = if scd_type == 1 { "t" } else { "t WHERE __END_AT IS NULL" };
            assert_eq!(
                workspace.rows(&format!("SELECT id, name, city FROM {open} ORDER BY id")),
                ["1|a|y/ä", "3|c3|null"],
                "{layout}"
            );
            if scd_type == 2 {
                assert_eq!(
                    workspace.rows("SELECT id, name, city, __START_AT, __END_AT FROM t WHERE __END_AT IS NOT NULL ORDER BY id, __START_AT"),
                    ["1|late|null|1|2", "2|b|x|1|2", "3|c|x|1|2", "3|C|x|2|3"],
                    "{layout}"
                );
            }
            let folder = workspace.path(".flowbench/tables/default/t");
            assert_eq!(ForeignTable::at(&folder).rows().len() as u64, 1 + workspace.count("t"), "{layout}");
        }
    }
}

/// What delta-rs reads is what we read; deleted rows and moved ones included.
#[test]
fn delta_rs_reads_what_an_auto_cdc_table_shows() {
    let workspace = with(HISTORY);
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":"x","seq":1}"#, r#"{"id":2,"name":"b","city":"x","seq":1}"#]);
    apply(&workspace, 1, &[r#"{"id":1,"name":"c","city":"x","seq":5}"#, r#"{"id":2,"op":"D","seq":2}"#]);
    apply(&workspace, 2, &[r#"{"id":1,"name":"late","city":"x","seq":3}"#]);
    let theirs = ForeignTable::at(&workspace.path(".flowbench/tables/default/t")).rows();
    let mut ours: Vec<String> = workspace
        .rows("SELECT id, name, city, __START_AT, coalesce(CAST(__END_AT AS STRING), '') FROM t")
        .into_iter()
        .map(|row| format!("|{row}|"))
        .collect();
    ours.sort();
    assert_eq!(theirs[0], "|id|name|city|__START_AT|__END_AT|");
    assert_eq!(theirs[1..], ours);
    assert_eq!(ours.len(), 4);
}

/// Many small batches, with maintenance behind each update: rows stay where the side table finds them.
#[test]
fn a_table_of_many_batches_is_joined_and_goes_on() {
    for clauses in [LATEST, HISTORY] {
        let workspace = with(clauses);
        for round in 0..4_u32 {
            for file in 0..20 {
                let at = round * 20 + file;
                let rows: Vec<String> = (0..3)
                    .map(|key| format!(r#"{{"id":{},"name":"n{at}","seq":{}}}"#, (at * 7 + key * 5) % 23, at))
                    .collect();
                put(&workspace, "feed", at, &rows.iter().map(String::as_str).collect::<Vec<_>>());
            }
            workspace.run_ok(&[]);
            let mut newest = std::collections::BTreeMap::new();
            for at in 0..(round + 1) * 20 {
                for key in 0..3 {
                    newest.insert((at * 7 + key * 5) % 23, at);
                }
            }
            let expected: Vec<String> = newest.iter().map(|(key, at)| format!("{key}|n{at}")).collect();
            let open = if clauses == LATEST { "t" } else { "t WHERE __END_AT IS NULL" };
            assert_eq!(workspace.rows(&format!("SELECT id, name FROM {open} ORDER BY id")), expected, "round {round}");
            if clauses == HISTORY {
                assert_eq!(workspace.count("t"), u64::from((round + 1) * 60), "round {round}");
            }
        }
    }
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

/// The word ONCE is what ends a flow: without it, it goes on from what it has read.
#[test]
fn a_once_flow_that_is_made_a_live_one_goes_on() {
    let events = files("feed", ROW);
    let appended = |into: &str, from: &str| {
        format!("CREATE STREAMING TABLE t;\nCREATE FLOW f AS INSERT INTO {into} BY NAME SELECT id, name FROM {from};\n")
    };
    let applied = |once: &str| table_of(ROW, LATEST).replace("AUTO CDC INTO", &format!("AUTO CDC {once} INTO"));
    for (before, after) in
        [(applied("ONCE"), applied("")), (appended("ONCE t", &events), appended("t", &format!("STREAM {events}")))]
    {
        let workspace = without_retries(&before);
        apply(&workspace, 0, &[r#"{"id":1,"name":"a","seq":1}"#]);
        put(&workspace, "feed", 1, &[r#"{"id":2,"name":"b","seq":2}"#]);
        workspace.run_ok(&[]);
        assert_eq!(workspace.rows("SELECT id, name FROM t ORDER BY id"), ["1|a"], "{before}");
        workspace.define(&after);
        workspace.run_ok(&[]);
        assert_eq!(workspace.rows("SELECT id, name FROM t ORDER BY id"), ["1|a", "2|b"], "{after}");
    }
}

/// Rows that are inserted into a table of AUTO CDC would be nobody's, and the other way round.
#[test]
fn a_table_is_written_by_auto_cdc_or_by_inserts_and_not_by_turns() {
    let inserts = format!(
        "CREATE STREAMING TABLE t;\nCREATE FLOW f AS INSERT INTO t BY NAME SELECT id, name, city FROM STREAM {};\n",
        files("feed", ROW)
    );
    let workspace = with(LATEST);
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":"x","seq":1}"#]);
    workspace.define(&inserts);
    assert_eq!(errors(&workspace), ["auto-cdc-drift"]);
    assert_ne!(workspace.run(&[]).code, Some(0));
    workspace.run_ok(&["--full-refresh", "t"]);
    assert_eq!(table(&workspace, "t"), ["1|a|x"]);
    workspace.define(&table_of(ROW, LATEST));
    let said = failure(&workspace.run(&[]), "f");
    assert!(said.contains("inserted before AUTO CDC wrote the table") && said.contains("--full-refresh t"), "{said}");
    assert_eq!(table(&workspace, "t"), ["1|a|x"]);
}

/// A reset makes no row twice, which it says, and the history goes on telling which files rows came from.
#[test]
fn a_reset_is_harmless_and_keeps_where_rows_came_from() {
    let workspace = with(HISTORY);
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":"x","seq":1}"#]);
    apply(&workspace, 1, &[r#"{"id":1,"name":"b","city":"x","seq":2}"#]);
    let history = || workspace.command(&["scd", "history", "t", "--key", "1"]).result["events"].to_string();
    let before = history();
    assert!(before.contains("000.json") && before.contains("001.json"), "{before}");
    let outcome = workspace.command(&["reset", "f"]);
    assert_eq!((outcome.code, &outcome.result["flows"][0]["rows_again"]), (Some(0), &0.into()), "{outcome}");
    assert_eq!(outcome.result["flows"][0]["changes_nothing"], true, "{outcome}");
    assert_eq!(history(), before);
    workspace.run_ok(&[]);
    assert_eq!(table(&workspace, "t"), ["1|a|x|1|2", "1|b|x|2|null"]);
    let after = history();
    assert!(after.contains("000.json") && after.contains("001.json"), "{after}");
}

/// doctor reads the side tables through.
#[test]
fn doctor_finds_what_is_wrong_with_a_side_table() {
    let side = ".flowbench/tables/default/t/_flowbench_side/gen-1";
    let found = |workspace: &TestWorkspace| {
        let outcome = workspace.command(&["doctor"]);
        let findings = outcome.result["findings"].as_array().cloned().unwrap_or_default();
        findings.iter().map(|finding| finding["code"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let sound = || {
        let workspace = with(LATEST);
        apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":"x","seq":1}"#]);
        assert_eq!(found(&workspace), Vec::<String>::new());
        workspace
    };
    let workspace = sound();
    std::fs::remove_dir_all(workspace.path(side)).unwrap();
    assert_eq!(found(&workspace), ["side-table-missing"]);
    let workspace = sound();
    std::fs::write(workspace.path(side).join("manifest.json"), "{").unwrap();
    assert_eq!(found(&workspace), ["side-table-corrupted"]);
    let workspace = sound();
    let run = std::fs::read_dir(workspace.path(side)).unwrap().map(|entry| entry.unwrap().path());
    let run = run.into_iter().find(|path| path.extension().is_some_and(|is| is == "side")).unwrap();
    let mut bytes = std::fs::read(&run).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&run, bytes).unwrap();
    assert_eq!(found(&workspace), ["side-table-corrupted"]);
    let workspace = sound();
    std::fs::remove_dir_all(workspace.path(".flowbench/tables/default/t/_delta_log")).unwrap();
    std::fs::create_dir(workspace.path(".flowbench/tables/default/t/_delta_log")).unwrap();
    assert_eq!(found(&workspace), ["table-gone"]);
}

/// What a query can't read of a table is named, with a way out.
#[test]
fn a_data_file_that_is_gone_or_damaged_is_named() {
    let workspace = with(LATEST);
    apply(&workspace, 0, &[r#"{"id":1,"name":"a","city":"x","seq":1}"#]);
    let folder = workspace.path(".flowbench/tables/default/t");
    let files = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files().find(|path| path.extension().is_some_and(|is| is == "parquet")).unwrap();
    let check = |code: &str| {
        for command in [&["show", "t"][..], &["scd", "check", "t"]] {
            let outcome = workspace.command(command);
            assert_eq!((outcome.code, outcome.error["code"].as_str()), (Some(1), Some(code)), "{outcome}");
            let what = outcome.error["message"].to_string();
            assert!(what.contains(file.file_name().unwrap().to_str().unwrap()), "{outcome}");
            assert!(outcome.error["help"].to_string().contains("--full-refresh t"), "{outcome}");
        }
    };
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    check("data-file-damaged");
    std::fs::remove_file(&file).unwrap();
    check("data-file-missing");
}
