//! Files as sources: which are read, each once, and what becomes of what can't be read.

use super::{one_table, registration};
use crate::fixture::{EVENTS, TestWorkspace};

#[test]
fn b_14_a_glob_of_three_segments_reads_day_folders_and_what_is_below_them() {
    let workspace = one_table("");
    for (id, path) in [
        (1, "year=2025/month=01/day=01/a.json"),
        (2, "year=2025/month=01/day=01/sub/b.json"),
        (3, "year=2025/month=01/c.json"),
        (4, "year=2025/d.json"),
        (5, "e.json"),
        (6, "year=2025/month=01/day=01/sub/deeper/f.json"),
        (7, "year=2025/month=01/day=01/_hidden.json"),
        (8, "year=2025/month=01/day=01/.hidden.json"),
    ] {
        workspace.write(&format!("{EVENTS}/{path}"), format!("{{\"id\":{id}}}\n"));
    }
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM raw ORDER BY id"), ["1", "2", "3", "6"]);
}

#[test]
fn b_15_a_line_is_a_row_and_another_format_in_the_folder_is_kept_as_corrupt() {
    let workspace = one_table("");
    workspace.write(&format!("{EVENTS}/a/b/c/three.json"), "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
    workspace.run_ok(&[]);
    assert_eq!(workspace.count("raw"), 3);

    workspace.write(&format!("{EVENTS}/a/b/c/table.csv"), "id,name\n4,\"x\"\n");
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.flow("raw")["metrics"]["corrupt_records"], 2);
    let rescued = workspace.rows("SELECT _rescued_data FROM raw WHERE id IS NULL ORDER BY ALL");
    assert_eq!(rescued.len(), 2, "{rescued:?}");
    assert!(rescued.iter().all(|text| text.contains("table.csv")), "{rescued:?}");
    assert!(rescued.iter().any(|text| text.contains("id,name")), "{rescued:?}");
    assert_eq!(workspace.count("raw"), 5);
}

#[test]
fn b_16_infer_column_types_decides_between_types_and_strings() {
    for (infer, id, ratio) in [("true", "id BIGINT", "ratio DOUBLE"), ("false", "id STRING", "ratio STRING")] {
        let workspace = one_table(&format!(", inferColumnTypes => {infer}"));
        workspace.write(&format!("{EVENTS}/a/b/c/1.json"), "{\"id\":12,\"ratio\":0.5}\n");
        workspace.run_ok(&[]);
        let columns = workspace.columns("raw");
        assert_eq!(columns[..2], [id, ratio], "{infer}");
        assert_eq!(workspace.rows("SELECT id, ratio FROM raw"), ["12|0.5"]);
    }
}

#[test]
fn b_33_partition_columns_come_out_the_same_from_both_paths() {
    let workspace = TestWorkspace::new(&registration(&[2024]));
    workspace.events(2025, 1);
    workspace.events(2024, 1);
    workspace.run_ok(&[]);
    assert_eq!(
        workspace.rows("SELECT id, year, month, day, _rescued_data FROM raw ORDER BY id"),
        ["202401|2024|1|1|null", "202501|2025|1|1|null"]
    );
    let types = |flow: &str| {
        let workspace = TestWorkspace::new(&format!("CREATE OR REFRESH STREAMING TABLE raw;\n{flow}"));
        workspace.events(2025, 1);
        workspace.events(2024, 1);
        workspace.run_ok(&[]);
        workspace.columns("raw")
    };
    assert_eq!(types(&super::live("")), types(&super::backfill(2024)));
}

#[test]
fn max_bytes_per_trigger_cuts_by_size_and_takes_one_file_at_least() {
    let workspace = one_table(", maxBytesPerTrigger => '100'");
    for file in 0..4 {
        workspace
            .write(&format!("{EVENTS}/a/b/c/{file}.json"), format!("{{\"id\":{file},\"x\":\"{}\"}}\n", "y".repeat(40)));
    }
    workspace.write(&format!("{EVENTS}/a/b/c/z.json"), format!("{{\"id\":9,\"x\":\"{}\"}}\n", "y".repeat(400)));
    let times = ["0.json", "1.json", "2.json", "3.json", "z.json"];
    for (second, file) in times.iter().enumerate() {
        workspace.set_time(&format!("{EVENTS}/a/b/c/{file}"), &format!("2025-01-01T00:00:0{second}Z"));
    }
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.batch_files("raw"), [2, 2, 1]);
    assert_eq!(workspace.count("raw"), 5);
}

#[test]
fn include_existing_files_false_reads_what_comes_after_the_first_start() {
    let workspace = one_table(", includeExistingFiles => false");
    workspace.events(2025, 3);
    assert_eq!(workspace.run_ok(&[]).rows_out("raw"), 0);
    workspace.event(2025, 9, 202509, "");
    assert_eq!(workspace.run_ok(&[]).rows_out("raw"), 1);
    assert_eq!(workspace.rows("SELECT id FROM raw"), ["202509"]);
    // Of the first start only: a later change of the option does not bring the old files back.
    workspace.define(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT * FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');"
    ));
    assert_eq!(workspace.run_ok(&[]).rows_out("raw"), 0);
}

#[test]
fn allow_overwrites_reads_a_changed_file_again_and_without_it_never() {
    for (option, rows) in [("", vec!["1"]), (", allowOverwrites => true", vec!["1", "2", "3"])] {
        let workspace = one_table(option);
        let path = format!("{EVENTS}/a/b/c/1.json");
        workspace.write(&path, "{\"id\":1}\n");
        workspace.set_time(&path, "2025-01-01T00:00:00Z");
        workspace.run_ok(&[]);
        workspace.write(&path, "{\"id\":2}\n{\"id\":3}\n");
        workspace.set_time(&path, "2025-01-02T00:00:00Z");
        workspace.run_ok(&[]);
        assert_eq!(workspace.run_ok(&[]).rows_out("raw"), 0, "{option}");
        assert_eq!(workspace.rows("SELECT id FROM raw ORDER BY id"), rows, "{option}");
    }
}

#[test]
fn path_glob_filter_chooses_by_the_name_of_the_file() {
    let workspace = one_table(", pathGlobFilter => 'a*.json'");
    for (id, name) in [(1, "a1.json"), (2, "b.json"), (3, "a2.json"), (4, "a.csv")] {
        workspace.write(&format!("{EVENTS}/a/b/c/{name}"), format!("{{\"id\":{id}}}\n"));
    }
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM raw ORDER BY id"), ["1", "3"]);
}

#[test]
fn metadata_of_the_file_can_be_selected() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT id, _metadata.file_name AS name, _metadata.file_size AS size, \
         _metadata.file_modification_time AS modified FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');"
    ));
    workspace.event(2025, 1, 5, "");
    workspace.run_ok(&[]);
    let size = std::fs::metadata(workspace.path(&format!("{EVENTS}/year=2025/month=01/day=01/5.json"))).unwrap().len();
    assert_eq!(
        workspace.rows("SELECT id, name, size, modified = timestamp '2025-01-01T12:00:00Z' FROM raw"),
        [format!("5|5.json|{size}|true")]
    );
}

#[test]
fn a_file_that_is_gone_between_listing_and_reading_is_named() {
    let workspace = one_table("");
    workspace.events(2025, 2);
    let go = workspace.path("go");
    let rule = format!("planned@raw=pause({})", go.display());
    let running = workspace.start(&[], &[("FLOWBENCH_FAIL_POINT", &rule)]);
    let reached = workspace.path("go.reached");
    crate::fixture::wait_until("the plan", || reached.exists());
    workspace.remove(&format!("{EVENTS}/year=2025/month=01/day=01/202501.json"));
    std::fs::write(&go, "").unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let error = outcome.flow("raw")["error"].clone();
    assert_eq!(error["code"], "file-missing", "{error}");
    assert!(error["message"].as_str().unwrap().contains("202501.json"), "{error}");
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT id FROM raw"), ["202502"]);
}
