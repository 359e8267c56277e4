//! What a target of AUTO CDC holds to: what it was built with, its columns, its files and side table; and who reads it.

use super::change_feeds::{HISTORY, LATEST, ROW, apply, selecting, table_of, with};
use super::changes::{changes, errors, failure, feed, files, put, table, version, without_retries};
use crate::fixture::{ForeignTable, TestWorkspace, find};

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

/// Of two flows the one with the later name wins a tie, and that is the name it has now.
#[test]
fn ties_are_decided_by_the_names_that_flows_have_now() {
    let flow = |name: &str, feed: &str| {
        format!(
            "CREATE FLOW {name} AS AUTO CDC INTO t FROM STREAM({feed}) KEYS (id) SEQUENCE BY seq COLUMNS (id, name);\n"
        )
    };
    let feeds = format!("CREATE STREAMING TABLE t;\n{}{}", feed("one", ROW), feed("two", ROW));
    let workspace = without_retries(&(feeds.clone() + &flow("b", "one") + &flow("c", "two")));
    put(&workspace, "one", 0, &[r#"{"id":1,"name":"of b, now d","seq":1}"#]);
    put(&workspace, "two", 0, &[r#"{"id":2,"name":"of c","seq":1}"#]);
    workspace.run_ok(&[]);
    workspace.define(&(feeds + &flow("d", "one") + &flow("c", "two")));
    assert_eq!(workspace.command(&["rename-flow", "b", "d"]).code, Some(0));
    put(&workspace, "two", 1, &[r#"{"id":1,"name":"of c","seq":1}"#]);
    workspace.run_ok(&[]);
    let rows = ["1|of b, now d", "2|of c"];
    assert_eq!(table(&workspace, "t"), rows);
    workspace.run_ok(&["--full-refresh", "t"]);
    assert_eq!(table(&workspace, "t"), rows);
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
    assert_eq!(errors(&workspace), ["auto-cdc-drift"]);
    assert_ne!(workspace.run(&[]).code, Some(0));
    assert_eq!(table(&workspace, "t"), ["1|a|x"]);
    workspace.run_ok(&["--full-refresh", "t"]);
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

/// The last commit that a table loses is made again; of those before it the side table has no copy.
#[test]
fn a_table_that_has_lost_commits_says_so_and_is_built_anew() {
    for (clauses, lost) in [(LATEST, 1), (HISTORY, 1), (LATEST, 2), (HISTORY, 3)] {
        let workspace = with(clauses);
        for number in 0..4 {
            let changed = format!(r#"{{"id":1,"name":"a{number}","seq":{number}}}"#);
            apply(&workspace, number, &[&changed, &format!(r#"{{"id":{},"seq":1}}"#, number + 2)]);
        }
        let rows = table(&workspace, "t");
        let log = workspace.path(".flowbench/tables/default/t/_delta_log");
        let mut entries: Vec<_> = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.retain(|entry| entry.extension().is_some_and(|extension| extension == "json"));
        entries.sort();
        entries[entries.len() - lost..].iter().for_each(|entry| std::fs::remove_file(entry).unwrap());
        put(&workspace, "feed", 4, &[r#"{"id":1,"name":"a3","seq":3}"#]);
        if lost == 1 {
            workspace.run_ok(&[]);
            assert_eq!(table(&workspace, "t"), rows, "{clauses}");
            continue;
        }
        for _ in 0..2 {
            let run = workspace.run(&[]);
            assert_eq!(run.code, Some(1), "{run}");
            assert!(
                run.to_string().contains("has lost commits") && run.to_string().contains("--full-refresh t"),
                "{run}"
            );
        }
        for command in [&["scd", "check", "t"][..], &["cutover", "check", "t"]] {
            let outcome = workspace.command(command);
            assert_eq!((outcome.code, outcome.error["code"].as_str()), (Some(1), Some("table-behind")), "{outcome}");
        }
        let doctor = workspace.command(&["doctor", "--repair"]);
        find(&doctor.result["findings"], "code", "table-behind");
        workspace.run_ok(&["--full-refresh", "t"]);
        assert_eq!(table(&workspace, "t"), rows, "{clauses}");
        assert_eq!(workspace.command(&["doctor"]).code, Some(0));
    }
}

/// The commit that exchanges rewritten files is no batch's, and can't be made again.
#[test]
fn a_table_that_has_lost_the_exchange_of_its_files_says_so() {
    let workspace = with(LATEST);
    (0..17).for_each(|number| put(&workspace, "feed", number, &[&format!(r#"{{"id":{number},"seq":1}}"#)]));
    workspace.run_ok(&[]);
    let log = workspace.path(".flowbench/tables/default/t/_delta_log");
    let entries = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path());
    let last = entries.filter(|entry| entry.extension().is_some_and(|extension| extension == "json")).max().unwrap();
    assert!(std::fs::read_to_string(&last).unwrap().contains("OPTIMIZE"), "{last:?}");
    std::fs::remove_file(&last).unwrap();
    let check = workspace.command(&["scd", "check", "t"]);
    assert_eq!((check.code, check.error["code"].as_str()), (Some(1), Some("table-behind")), "{check}");
    put(&workspace, "feed", 17, &[r#"{"id":1,"name":"new","seq":2}"#]);
    let run = workspace.run(&[]);
    assert!(run.code == Some(1) && run.to_string().contains("has lost commits"), "{run}");
    workspace.run_ok(&["--full-refresh", "t"]);
    assert_eq!(workspace.rows("SELECT name FROM t WHERE id = 1"), ["new"]);
}

#[test]
fn deleted_rows_that_cannot_be_told_are_a_finding() {
    let workspace = with(LATEST);
    apply(&workspace, 0, &[r#"{"id":1,"seq":1}"#, r#"{"id":2,"seq":1}"#, r#"{"id":3,"seq":1}"#]);
    apply(&workspace, 1, &[r#"{"id":1,"name":"b","seq":2}"#]);
    let folder = std::fs::read_dir(workspace.path(".flowbench/tables/default/t")).unwrap();
    let vectors =
        folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|is| is == "bin"));
    let count = vectors.map(|vector| std::fs::write(vector, "").unwrap()).count();
    assert!(count > 0, "an update deletes a row");
    find(&workspace.command(&["doctor"]).result["findings"], "code", "data-file-damaged");
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
    let doctor = |code: &str| {
        let findings = workspace.command(&["doctor"]).result["findings"].clone();
        let found = find(&findings, "code", code);
        assert!(found["message"].to_string().contains(file.file_name().unwrap().to_str().unwrap()), "{findings}");
    };
    // Bytes of a page, of which the reader doesn't tell whose they are.
    let mut flipped = whole.clone();
    flipped[4..24].iter_mut().for_each(|byte| *byte ^= 0xff);
    std::fs::write(&file, flipped).unwrap();
    let show = workspace.command(&["show", "t"]);
    assert_eq!(show.error["code"], "data-file-damaged", "{show}");
    doctor("data-file-damaged");
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    check("data-file-damaged");
    std::fs::remove_file(&file).unwrap();
    check("data-file-missing");
}
