//! Columns: history and live data that must fit together, and fields that come later.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use datafusion::parquet::arrow::ArrowWriter;

use super::{backfill, live, one_table, registration};
use crate::fixture::{EVENTS, ForeignTable, TestWorkspace};

#[test]
fn b_7_a_history_of_another_type_is_refused_before_anything_is_written() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.event(2025, 1, 1, ",\"amount\":5");
    workspace.event(2024, 1, 2, ",\"amount\":\"five\"");
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    let diagnostic = outcome.diagnostic("flow-types-differ");
    let message = diagnostic["message"].as_str().unwrap();
    for part in ["`amount`", "STRING", "BIGINT", "`live`", "`backfill_2024`"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(diagnostic["help"].as_str().unwrap().contains("CAST(… AS BIGINT) AS amount"), "{diagnostic}");
    assert!(!workspace.path(".flowbench").exists(), "nothing was written");
    assert_eq!(workspace.command(&["validate"]).code, Some(3));

    // With the cast that it asks for, it runs.
    let cast = backfill(2024).replace("SELECT *", "SELECT * EXCEPT (amount), TRY_CAST(amount AS BIGINT) AS amount");
    workspace.define(&format!("CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{cast}", live("")));
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id, amount FROM raw ORDER BY id"), ["1|5", "2|null"]);
}

#[test]
fn b_7_the_same_for_a_backfill_that_is_added_later() {
    let workspace = TestWorkspace::new(&registration(&[]));
    workspace.event(2025, 1, 1, ",\"amount\":5");
    workspace.run_ok(&[]);
    workspace.event(2024, 1, 2, ",\"amount\":\"five\"");
    workspace.define(&registration(&[2024]));
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    let message = outcome.diagnostic("flow-types-differ")["message"].as_str().unwrap().to_string();
    for part in ["`amount`", "STRING", "BIGINT", "`live`", "`backfill_2024`"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(workspace.count("raw"), 1);
}

#[test]
fn b_18_a_new_field_restarts_the_flow_and_becomes_a_column() {
    let workspace = one_table("");
    workspace.event(2025, 1, 1, "");
    workspace.run_ok(&[]);
    workspace.event(2025, 2, 2, ",\"vip\":true");
    let outcome = workspace.run_ok(&[]);
    let evolved: Vec<&str> =
        outcome.events_of("schema_evolved").iter().map(|event| event["message"].as_str().unwrap()).collect();
    assert_eq!(evolved.len(), 2, "{evolved:?}");
    assert!(evolved[0].contains("the flow restarts") && evolved[0].contains("+vip BOOLEAN"), "{evolved:?}");
    assert_eq!(evolved[1], "schema evolved: +vip BOOLEAN");
    assert_eq!(workspace.rows("SELECT id, vip FROM raw ORDER BY id"), ["1|null", "2|true"]);
    // The new column is at the end, and old types stay.
    assert_eq!(workspace.columns("raw").last().unwrap(), "vip BOOLEAN");
    assert_eq!(workspace.run_ok(&[]).events_of("schema_evolved").len(), 0);
}

/// A declared schema is part of the definition: edited, it holds for the files to come.
#[test]
fn a_declared_schema_that_is_edited_holds_for_new_files() {
    let sql = |schema: &str| {
        format!(
            "CREATE STREAMING TABLE t AS SELECT * FROM \
             STREAM read_files('data/f', format => 'json', schema => '{schema}', schemaEvolutionMode => 'none');"
        )
    };
    let workspace = TestWorkspace::new(&sql("id BIGINT"));
    workspace.write("data/f/1.json", r#"{"id":1,"name":"a","n":1}"#);
    workspace.run_ok(&[]);
    workspace.define(&sql("id BIGINT, name STRING"));
    workspace.write("data/f/2.json", r#"{"id":2,"name":"b","n":2}"#);
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id, name FROM t ORDER BY id"), ["1|null", "2|b"]);
    workspace.define(&sql("id BIGINT, n INT"));
    workspace.write("data/f/3.json", r#"{"id":3,"name":"c","n":3}"#);
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id, name, n FROM t ORDER BY id"), ["1|null|null", "2|b|null", "3|null|3"]);
}

#[test]
fn b_32_columns_are_matched_by_name() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.event(2025, 1, 1, ",\"vip\":true,\"name\":\"new\"");
    let path = format!("{EVENTS}/year=2024/month=01/day=01/2.json");
    workspace.write(&path, "{\"name\":\"old\",\"timestamp\":\"2024-01-01T00:00:00\",\"id\":2}\n");
    workspace.run_ok(&[]);
    assert_eq!(
        workspace.rows("SELECT id, name, vip, year FROM raw ORDER BY id"),
        ["1|new|true|2025", "2|old|null|2024"]
    );
}

#[test]
fn b_32_names_are_matched_without_regard_to_case() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}",
        live(""),
        backfill(2024).replace("SELECT *", "SELECT id AS ID, upper(timestamp) AS `Timestamp`")
    ));
    workspace.events(2025, 1);
    workspace.events(2024, 1);
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id, timestamp IS NULL FROM raw ORDER BY id"), ["202401|false", "202501|false"]);
}

#[test]
fn b_42_a_value_that_does_not_fit_its_column_is_rescued_with_its_file() {
    let workspace = TestWorkspace::new(&registration(&[2022]));
    workspace.event(2022, 1, 1, ",\"n\":5");
    workspace.event(2025, 1, 2, ",\"n\":6");
    workspace.run_ok(&[]);
    workspace.event(2025, 2, 3, ",\"n\":\"x1\"");
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.flow("live")["metrics"]["rescued_values"], 1);
    assert!(workspace.columns("raw").contains(&"n BIGINT".to_string()));
    assert_eq!(workspace.rows("SELECT id, n FROM raw ORDER BY id"), ["1|5", "2|6", "3|null"]);
    let rescued: serde_json::Value =
        serde_json::from_str(&workspace.value("SELECT _rescued_data FROM raw WHERE id = 3")).unwrap();
    assert_eq!(rescued["n"], "x1");
    assert!(rescued["_file_path"].as_str().unwrap().ends_with("day=02/3.json"), "{rescued}");
}

#[test]
fn each_schema_evolution_mode_does_what_it_says() {
    // A first file with `id`; then one with a new field and a wider number.
    let run = |mode: &str| {
        let workspace = one_table(&format!(", schemaEvolutionMode => '{mode}', partitionColumns => ''"));
        workspace.event(2025, 1, 1, "");
        workspace.run_ok(&[]);
        workspace.write(&format!("{EVENTS}/a/b/c/2.json"), "{\"id\":2.5,\"timestamp\":\"t\",\"vip\":true}\n");
        (workspace.run(&[]), workspace)
    };
    let (outcome, workspace) = run("addNewColumns");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(
        workspace.rows("SELECT id, vip, _rescued_data:id AS rescued FROM raw ORDER BY vip"),
        ["1|null|null", "null|true|2.5"]
    );
    assert_eq!(workspace.columns("raw")[0], "id BIGINT");

    let (outcome, workspace) = run("rescue");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(workspace.columns("raw"), ["id BIGINT", "timestamp STRING", "_rescued_data STRING"]);
    assert_eq!(
        workspace.rows("SELECT id, _rescued_data:id AS a, _rescued_data:vip AS b FROM raw ORDER BY id"),
        ["null|2.5|true", "1|null|null"]
    );

    let (outcome, workspace) = run("failOnNewColumns");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let error = outcome.flow("raw")["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("vip"), "{error}");
    assert_eq!(workspace.count("raw"), 1);

    let (outcome, workspace) = run("none");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(workspace.columns("raw"), ["id BIGINT", "timestamp STRING"]);
    assert_eq!(workspace.rows("SELECT id, timestamp = 't' FROM raw ORDER BY id"), ["null|true", "1|false"]);
}

/// A Parquet file with the columns `id` and `n`.
fn parquet(n: ArrayRef) -> Vec<u8> {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![2_i64]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("n", n)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn type_widening_rewrites_the_table_and_its_streams_go_on() {
    let workspace = TestWorkspace::new(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT * FROM STREAM read_files('data/n', format => 'parquet', \
         schemaEvolutionMode => 'addNewColumnsWithTypeWidening');\n\
         CREATE OR REFRESH STREAMING TABLE silver AS SELECT CAST(n AS BIGINT) AS n FROM STREAM raw;",
    );
    workspace.write("data/n/a.parquet", parquet(Arc::new(Int32Array::from(vec![7]))));
    workspace.run_ok(&[]);
    assert_eq!(workspace.columns("raw")[..2], ["id BIGINT", "n INT"]);
    workspace.write("data/n/b.parquet", parquet(Arc::new(Int64Array::from(vec![1_i64 << 40]))));
    let outcome = workspace.run_ok(&[]);
    let evolved: Vec<&str> =
        outcome.events_of("schema_evolved").iter().map(|event| event["message"].as_str().unwrap()).collect();
    assert_eq!(evolved[0], "`raw` was rewritten with wider types: n BIGINT");
    assert_eq!((outcome.rows_out("raw"), outcome.rows_out("silver")), (1, 1));
    assert_eq!(workspace.columns("raw")[..2], ["id BIGINT", "n BIGINT"]);
    let expected = ["7", "1099511627776"];
    assert_eq!(workspace.rows("SELECT n FROM raw ORDER BY n"), expected);
    assert_eq!(workspace.rows("SELECT n FROM silver ORDER BY n"), expected);
    let foreign = ForeignTable::at(&workspace.path(".flowbench/tables/default/raw")).rows();
    assert_eq!(foreign, ["|id|n|_rescued_data|", "|2|1099511627776||", "|2|7||"]);
    // Narrower files fit from now on, and nothing is rewritten again.
    workspace.write("data/n/c.parquet", parquet(Arc::new(Int32Array::from(vec![9]))));
    assert_eq!(workspace.run_ok(&[]).events_of("schema_evolved").len(), 0);
    assert_eq!(workspace.count("raw"), 3);
}

#[test]
fn type_widening_that_the_table_cannot_follow_rescues_the_value() {
    let workspace = one_table(", schemaEvolutionMode => 'addNewColumnsWithTypeWidening', partitionColumns => ''");
    let define = |query: &str| {
        workspace.define(&format!(
            "CREATE OR REFRESH STREAMING TABLE raw (id BIGINT, _rescued_data STRING{query}) AS SELECT * EXCEPT (timestamp) \
             FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json', partitionColumns => '', \
             schemaEvolutionMode => 'addNewColumnsWithTypeWidening');"
        ));
    };
    define("");
    workspace.event(2025, 1, 1, "");
    workspace.run_ok(&[]);
    // BIGINT can't become DOUBLE without losing digits.
    workspace.write(&format!("{EVENTS}/a/b/c/2.json"), "{\"id\":2.5,\"timestamp\":\"t\"}\n");
    // And a declared column stays as it is declared.
    workspace.write(&format!("{EVENTS}/a/b/c/3.json"), "{\"id\":30000000000000000000,\"timestamp\":\"t\"}\n");
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.flow("raw")["metrics"]["rescued_values"], 2, "{outcome}");
    assert_eq!(
        workspace.rows("SELECT id, substring(_rescued_data, 1, 26) AS rescued FROM raw ORDER BY rescued"),
        ["1|null", "null|{\"id\":2.5,\"_file_path\":\"/t", "null|{\"id\":30000000000000000000"]
    );
}

#[test]
fn the_widest_type_of_the_first_files_wins_whatever_their_order() {
    for names in [["a", "b"], ["b", "a"]] {
        let workspace = one_table(", partitionColumns => ''");
        for (name, n) in names.iter().zip(["1", "2.5"]) {
            workspace.write(&format!("{EVENTS}/a/b/c/{name}.json"), format!("{{\"n\":{n}}}\n"));
        }
        workspace.run_ok(&[]);
        assert_eq!(workspace.columns("raw")[0], "n DOUBLE", "{names:?}");
        assert_eq!(workspace.rows("SELECT n FROM raw ORDER BY n"), ["1.0", "2.5"], "{names:?}");
    }
}

#[test]
fn two_flows_that_bring_new_columns_at_the_same_time_both_do() {
    let workspace = TestWorkspace::new(&registration(&[2024, 2023]));
    workspace.events(2025, 1);
    workspace.run_ok(&["--flow", "live"]);
    workspace.event(2024, 1, 2, ",\"a\":1");
    workspace.event(2023, 1, 3, ",\"b\":2");
    workspace.event(2025, 2, 4, ",\"c\":3");
    workspace.run_ok(&[]);
    assert_eq!(
        workspace.rows("SELECT id, a, b, c FROM raw ORDER BY id"),
        ["2|1|null|null", "3|null|2|null", "4|null|null|3", "202501|null|null|null"]
    );
}
