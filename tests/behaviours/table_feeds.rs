//! The change feed of a table (`STREAM t WITH (READCHANGEFEED = TRUE)`): chains of AUTO CDC that carry changes and
//! deletes, through restarts, kills and compactions.

use crate::fixture::{ForeignTable, TestWorkspace};

const BRONZE: &str = "
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM read_files('feed/*.json', format => 'json',
  maxFilesPerTrigger => 1, schema => 'id BIGINT, name STRING, op STRING, seq BIGINT');
CREATE STREAMING TABLE customers;
CREATE FLOW customers_live AS AUTO CDC INTO customers FROM STREAM(bronze) WITH (MAXFILESPERTRIGGER = 1) KEYS (id)
  APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq);
";

const CHAIN: &str = "
CREATE STREAMING TABLE history;
CREATE FLOW history_live AS AUTO CDC INTO history FROM STREAM(customers) WITH (READCHANGEFEED = TRUE) KEYS (id)
  SEQUENCE BY _commit_version STORED AS SCD TYPE 2;
CREATE STREAMING TABLE changes AS SELECT * FROM STREAM customers WITH (READCHANGEFEED = TRUE);
";

/// A workspace with the chain and more.
fn chain(more: &str) -> TestWorkspace {
    TestWorkspace::new(&format!("{BRONZE}{CHAIN}{more}"))
}

/// One file of events `(id, name)` at sequence `seq`; without a name it is a delete.
fn events(workspace: &TestWorkspace, seq: u32, events: &[(u32, Option<&str>)]) {
    let lines = events.iter().map(|(id, name)| match name {
        Some(name) => format!("{{\"id\":{id},\"name\":\"{name}\",\"op\":\"U\",\"seq\":{seq}}}\n"),
        None => format!("{{\"id\":{id},\"op\":\"D\",\"seq\":{seq}}}\n"),
    });
    let path = format!("feed/{seq:04}.json");
    workspace.write(&path, lines.collect::<String>());
    workspace.set_time(&path, &format!("2025-01-01T{:02}:{:02}:00Z", seq / 60, seq % 60));
}

/// Key, name and whether it still holds, of all versions.
fn history(workspace: &TestWorkspace, table: &str) -> Vec<String> {
    let rows = format!("SELECT id, name, __END_AT IS NULL FROM {table} ORDER BY id, __START_AT");
    workspace.rows(&rows).iter().map(|row| row.replace("|true", "|now").replace("|false", "")).collect()
}

/// What happened to the rows of `customers`, in order, without a word for the version.
fn changes(workspace: &TestWorkspace) -> Vec<String> {
    workspace.rows("SELECT _change_type, id, name FROM changes ORDER BY _commit_version, id, _change_type DESC")
}

#[test]
fn a_chain_carries_updates_and_deletes() {
    let workspace = chain("");
    events(&workspace, 1, &[(1, Some("a")), (2, Some("b"))]);
    workspace.run_ok(&[]);
    assert_eq!(history(&workspace, "history"), ["1|a|now", "2|b|now"]);
    assert_eq!(workspace.columns("history"), ["id BIGINT", "name STRING", "__START_AT BIGINT", "__END_AT BIGINT"]);

    events(&workspace, 2, &[(1, Some("a2")), (2, None), (3, Some("c"))]);
    events(&workspace, 3, &[(3, Some("c")), (1, Some("a2"))]);
    let outcome = workspace.run_ok(&[]);
    assert_eq!(history(&workspace, "history"), ["1|a", "1|a2|now", "2|b", "3|c|now"]);
    let metrics = &outcome.flow("history_live")["metrics"]["changes"];
    assert_eq!((&metrics["upserted"], &metrics["deleted"], &metrics["ties"]), (&2.into(), &1.into(), &0.into()));
    // Events that changed nothing are nothing.
    assert_eq!(
        changes(&workspace),
        ["insert|1|a", "insert|2|b", "update_preimage|1|a", "update_postimage|1|a2", "delete|2|b", "insert|3|c"]
    );
    assert_eq!(workspace.run_ok(&[]).batches("history_live").len(), 0);

    events(&workspace, 4, &[(2, Some("b again"))]);
    workspace.run_ok(&[]);
    assert_eq!(history(&workspace, "history"), ["1|a", "1|a2|now", "2|b", "2|b again|now", "3|c|now"]);
    assert_eq!(
        workspace.rows("SELECT DISTINCT _commit_timestamp > TIMESTAMP '2020-01-01' FROM changes"),
        ["true"],
        "the time of the commit"
    );
    let versions = workspace.rows("SELECT DISTINCT _commit_version FROM changes ORDER BY 1");
    assert_eq!(versions.len(), 3, "{versions:?}");
    assert_eq!(workspace.rows("SELECT DISTINCT __START_AT FROM history ORDER BY 1"), versions);
}

#[test]
fn a_compaction_between_two_reads_changes_nothing() {
    let workspace = chain("");
    events(&workspace, 1, &[(1, Some("v1")), (2, Some("w1"))]);
    workspace.run_ok(&[]);
    let files = || workspace.rows("SELECT count(*) FROM customers");
    // So many small files and deleted rows that they are joined, and again.
    for round in 0..2 {
        for seq in 2 + round * 20..22 + round * 20 {
            events(&workspace, seq, &[(1, Some(&format!("v{seq}"))), (100 + seq, Some("new"))]);
        }
        workspace.run_ok(&["--refresh", "customers", "--refresh", "bronze"]);
        assert_eq!(files(), [format!("{}", 2 + 20 * (round + 1))]);
    }
    let version = workspace.command(&["describe", "customers"]).result["status"]["table"]["version"].as_u64();
    assert!(version > Some(41), "compactions are versions beside those of 41 batches: {version:?}");
    events(&workspace, 50, &[(2, None)]);
    workspace.run_ok(&[]);
    let mut expected: Vec<String> = (1..42).map(|seq| format!("1|v{seq}")).collect();
    expected[40].push_str("|now");
    expected.push("2|w1".to_string());
    assert_eq!(history(&workspace, "history")[..42], expected);
    let counts = workspace.rows("SELECT _change_type, count(*) FROM changes GROUP BY _change_type ORDER BY 1");
    assert_eq!(counts, ["delete|1", "insert|42", "update_postimage|40", "update_preimage|40"]);
}

#[test]
fn killed_anywhere_a_chain_goes_on_with_the_very_same_changes() {
    let workspace = chain("");
    events(&workspace, 1, &[(1, Some("a")), (2, Some("b"))]);
    workspace.run_ok(&[]);
    let mut expected = vec!["1|a".to_string()];
    for (seq, (point, flow)) in (2..).zip([
        ("planned", "history_live"),
        ("side-committed", "history_live"),
        ("committed", "history_live"),
        ("written", "changes"),
        ("committed", "changes"),
        ("side-committed", "customers_live"),
    ]) {
        let name = format!("a{seq}");
        events(&workspace, seq, &[(1, Some(&name))]);
        let rule = format!("{point}@{flow}=kill");
        assert_eq!(workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]).finish().code, None, "{rule}");
        workspace.run_ok(&[]);
        expected.push(format!("1|{name}"));
        let mut now = expected.clone();
        now.last_mut().unwrap().push_str("|now");
        now.push("2|b|now".to_string());
        assert_eq!(history(&workspace, "history"), now, "{rule}");
        assert_eq!(workspace.count("changes"), 2 + 2 * u64::from(seq - 1), "{rule}");
    }
}

#[test]
fn max_files_per_trigger_cuts_a_feed_between_versions() {
    let workspace = chain(
        "CREATE STREAMING TABLE slow AS SELECT _change_type, id FROM STREAM customers \
         WITH (READCHANGEFEED = TRUE, STARTINGVERSION = 0, MAXFILESPERTRIGGER = 1);",
    );
    for seq in 1..=4 {
        events(&workspace, seq, &[(1, Some(&format!("a{seq}")))]);
        workspace.run_ok(&["--refresh", "bronze", "--refresh", "customers"]);
    }
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batch_files("slow"), [1, 2, 2, 2], "one that came, then one that left and one that came");
    assert_eq!(outcome.batches("history_live").len(), 1, "the first start takes the table as it is");
    assert_eq!(workspace.count("slow"), 7);
}

#[test]
fn a_history_has_a_feed_too_and_its_rows_are_known_by_key_and_start() {
    let workspace = TestWorkspace::new(&format!(
        "{BRONZE}
        CREATE STREAMING TABLE history;
        CREATE FLOW history_live AS AUTO CDC INTO history FROM STREAM(bronze) KEYS (id)
          APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;
        CREATE STREAMING TABLE changes AS SELECT * FROM STREAM history WITH (READCHANGEFEED = TRUE);
        CREATE STREAMING TABLE copy;
        CREATE FLOW copy_live AS AUTO CDC INTO copy FROM STREAM(history) WITH (READCHANGEFEED = TRUE)
          KEYS (id, __START_AT) SEQUENCE BY _commit_version;"
    ));
    let rows = |table: &str| workspace.rows(&format!("SELECT * FROM {table} ORDER BY id, __START_AT"));
    for (seq, batch) in [
        (10, vec![(1, Some("a")), (2, Some("b"))]),
        (20, vec![(1, Some("a2")), (2, None)]),
        // Late: between the two.
        (15, vec![(1, Some("a1"))]),
        (30, vec![(1, Some("a2")), (2, Some("b"))]),
    ] {
        events(&workspace, seq, &batch);
        workspace.run_ok(&[]);
        assert_eq!(rows("copy"), rows("history"), "behind {seq}");
    }
    assert_eq!(rows("copy"), ["1|a|10|15", "1|a1|15|20", "1|a2|20|null", "2|b|10|20", "2|b|30|null"]);
    let late = "SELECT _change_type, name, __START_AT, __END_AT FROM changes WHERE _commit_version = \
                (SELECT min(_commit_version) FROM changes WHERE name = 'a1') ORDER BY __START_AT, _change_type DESC";
    assert_eq!(
        workspace.rows(late),
        ["update_preimage|a|10|20", "update_postimage|a|10|15", "insert|a1|15|20"],
        "an update of the row that was cut short, and a new one"
    );
}

#[test]
fn the_feed_of_another_programs_table_has_deletes_and_inserts() {
    let workspace = TestWorkspace::new(
        "CREATE STREAMING TABLE changes AS SELECT * FROM STREAM legacy.t WITH (READCHANGEFEED = TRUE);",
    );
    workspace.write("flowbench.toml", "[[source]]\nname = \"legacy.t\"\nformat = \"delta\"\npath = \"legacy\"\n");
    let table = ForeignTable::at(&workspace.path("legacy"));
    table.append(1..=3);
    workspace.run_ok(&[]);
    table.append(4..=4);
    // Every file with such a row is written anew; the other rows of it did nothing.
    table.delete("id = 2");
    table.overwrite(3..=5);
    workspace.run_ok(&[]);
    let rows = workspace.rows("SELECT _commit_version, _change_type, id FROM changes ORDER BY 1, 3");
    let expected = ["0|insert|1", "0|insert|2", "0|insert|3", "1|insert|4", "2|delete|2", "3|delete|1", "3|insert|5"];
    assert_eq!(rows, expected);
}

#[test]
fn a_full_refresh_is_no_change_and_ends_the_feed() {
    let workspace = chain("");
    events(&workspace, 1, &[(1, Some("a"))]);
    workspace.run_ok(&[]);
    let refused = workspace.run(&["--full-refresh", "customers"]);
    assert_eq!(refused.code, Some(4), "{refused}");
    events(&workspace, 2, &[(1, None), (2, Some("b"))]);
    workspace.run_ok(&["--full-refresh", "customers", "--with-downstream", "--refresh", "bronze"]);
    assert_eq!(history(&workspace, "history"), ["2|b|now"], "it began with the table as it is now");
    events(&workspace, 3, &[(2, None)]);
    workspace.run_ok(&[]);
    assert_eq!(history(&workspace, "history"), ["2|b"]);
}
