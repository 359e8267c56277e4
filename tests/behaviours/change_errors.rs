//! Every situation of AUTO CDC and of snapshots that Spark or Databricks has a name for, and where it is tested.
//!
//! | situation | condition | tested in |
//! |---|---|---|
//! | no keys; name of several parts; expression; empty name | `AUTOCDC_EMPTY_KEYS`, `…_MULTIPART_COLUMN_IDENTIFIER`, `…_NON_COLUMN_IDENTIFIER`, `PARSE_EMPTY_STATEMENT` | `parse/auto_cdc_mistakes.txt` |
//! | no source; no sequence; two lists of one kind; two or empty lists of ignored NULLs | `AUTOCDC_MISSING_SOURCE`, `…_MISSING_SEQUENCE_BY`, `…_BOTH_…`, `…_CONFLICTING_…`, `…_IGNORE_NULL_EMPTY_COLUMN_LIST` | `parse/auto_cdc_mistakes.txt` |
//! | history tracked with SCD type 1; TRUNCATE with type 2 | – | `validate/auto_cdc_clauses.case` |
//! | columns that are not there, in each list; key not kept; reserved names; sequence without an order | `AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA`, `…_KEY_NOT_IN_SELECTED_SCHEMA`, `…_RESERVED_…`, `…NON_ORDERABLE_SEQUENCE` | `validate/auto_cdc_columns.case` |
//! | INSERT beside AUTO CDC; into a view; source that is no stream | `AUTOCDC_MULTIPLE_FLOWS_TO_TARGET`, `INVALID_FLOW_QUERY_TYPE.…` | `validate/auto_cdc_flows.case`, `…_clauses.case` |
//! | NULL sequence; NULL key | `AUTOCDC_MICROBATCH_VALIDATION.…` | `change_feeds.rs` |
//! | keys, SCD type, type of the sequence, tracked columns changed | `AUTOCDC_INVALID_STATE.…_DRIFT` | `change_feeds.rs`, `validate/auto_cdc_drift.case` |
//! | side table gone or damaged (`AUXILIARY_TABLE_…`); NULL in a column that is NOT NULL; a type that changed | – | here, `change_feeds.rs` |
//! | duplicate keys; no first snapshot; version NULL, of several rows or columns, of another type, without an order | `APPLY_CHANGES_FROM_SNAPSHOT_ERROR.…` | `snapshot_backfill.rs`, `validate/auto_cdc_snapshots.case`, here |
//! | two snapshot flows; keys, ignored NULLs, continuous mode beside a feed | `….MULTIPLE_QUERIES_FOR_TABLE`, `….INTEROP_…` | `validate/auto_cdc_snapshots.case`, here |
//!
//! What can't happen here: a target that can't merge (`AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE`: all are Delta), type 2
//! not supported, expectations beside a snapshot (none are built: the constraint is refused), a version that changes
//! while it is read (`DYNAMIC_SNAPSHOT_VERSION`: it is asked once a batch). Older versions are passed over, which is no error
//! (`OUT_OF_ORDER_SNAPSHOT_VERSION`). Native change feeds as a source (`AUTOCDC_CHANGELOG_…`) are not built.

use super::changes::{failure, feed, files, put, table, validate, version, without_retries};

const CASES: &str = concat!(
    include_str!("../parse/auto_cdc_mistakes.txt"),
    include_str!("../validate/auto_cdc_clauses.case"),
    include_str!("../validate/auto_cdc_columns.case"),
    include_str!("../validate/auto_cdc_flows.case"),
    include_str!("../validate/auto_cdc_snapshots.case"),
    include_str!("../validate/auto_cdc_drift.case"),
    include_str!("change_feeds.rs"),
    include_str!("snapshot_backfill.rs"),
    include_str!("snapshots.rs"),
);

#[test]
fn every_condition_has_a_case() {
    for condition in [
        "AUTOCDC_EMPTY_KEYS",
        "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER",
        "AUTOCDC_NON_COLUMN_IDENTIFIER",
        "PARSE_EMPTY_STATEMENT",
        "AUTOCDC_MISSING_SOURCE",
        "AUTOCDC_MISSING_SEQUENCE_BY",
        "AUTOCDC_BOTH_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST",
        "AUTOCDC_BOTH_TRACK_HISTORY_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST",
        "AUTOCDC_CONFLICTING_IGNORE_NULL_UPDATES_OPTIONS",
        "AUTOCDC_IGNORE_NULL_EMPTY_COLUMN_LIST",
        "AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA",
        "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA",
        "AUTOCDC_RESERVED_COLUMN_NAME_PREFIX_CONFLICT",
        "AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT",
        "AUTOCDC_MULTIPLE_FLOWS_TO_TARGET",
        "INVALID_FLOW_QUERY_TYPE.AUTOCDC_RELATION_FOR_TEMPORARY_VIEW",
        "INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE",
        "AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE",
        "NULL_SEQUENCE",
        "NULL_KEY",
        "KEY_SCHEMA_DRIFT",
        "SCD_TYPE_DRIFT",
        "SEQUENCING_TYPE_DRIFT",
        "TRACK_HISTORY_DRIFT",
        "DUPLICATE_KEY_VIOLATION",
        "FIRST_SNAPSHOT_EMPTY",
        "INVALID_SNAPSHOT_VERSION",
        "INVALID_SNAPSHOT_VERSION_TYPE",
        "SNAPSHOT_VERSION_NOT_SORTABLE",
        "MULTIPLE_QUERIES_FOR_TABLE",
        "INTEROP_IGNORE_NULL_UNSUPPORTED",
        "INTEROP_CONTINUOUS_NOT_SUPPORTED",
    ] {
        assert!(CASES.contains(condition), "{condition} has no case");
    }
}

#[test]
fn keys_of_a_snapshot_that_differ_from_those_of_the_feed_have_a_condition_of_their_own() {
    let schema = "id BIGINT, region STRING, seq BIGINT";
    let workspace = without_retries(&format!(
        "CREATE STREAMING TABLE t;\n{}\
         CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id, region) SEQUENCE BY seq;\n\
         CREATE FLOW snap AS AUTO CDC ONCE INTO t FROM SNAPSHOT (SELECT * FROM {}) WITH VERSION (SELECT CAST(1 AS BIGINT)) KEYS (id);",
        feed("feed", schema),
        files("feed", schema)
    ));
    put(&workspace, "feed", 0, &[r#"{"id":1,"seq":1}"#]);
    assert_eq!(
        validate(&workspace, "keys-differ")["condition"],
        "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_KEYS_MISMATCH"
    );
}

/// A version is one row, and not NULL.
#[test]
fn a_version_that_is_null_or_many_refuses_the_snapshot() {
    let workspace = without_retries(&format!(
        "CREATE STREAMING TABLE t;\nCREATE FLOW snap AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM {}) \
         WITH VERSION (SELECT version FROM {}) KEYS (id);",
        files("state", "id BIGINT, name STRING"),
        files("version", "version BIGINT")
    ));
    put(&workspace, "state", 0, &[r#"{"id":1,"name":"a"}"#]);
    for (rows, condition) in [
        (&["{\"version\":null}"] as &[&str], "NULL_SNAPSHOT_VERSION"),
        (&["{\"version\":1}", "{\"version\":2}"], "INVALID_SNAPSHOT_VERSION"),
    ] {
        put(&workspace, "version", 0, rows);
        let said = failure(&workspace.run(&[]), "snap");
        assert!(said.contains(condition) && said.contains("`snap`"), "{said}");
    }
    put(&workspace, "version", 0, &["{\"version\":1}"]);
    workspace.run_ok(&[]);
    assert_eq!(table(&workspace, "t"), ["1|a"]);
}

/// A row that the query itself makes stands in no file.
#[test]
fn a_key_that_is_null_is_told_with_its_place_or_that_it_has_none() {
    let workspace = without_retries(&format!(
        "CREATE STREAMING TABLE t;\nCREATE FLOW snap AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM {} UNION ALL \
         SELECT CAST(NULL AS BIGINT), 'made') KEYS (id);",
        files("state", "id BIGINT, name STRING")
    ));
    put(&workspace, "state", 0, &[r#"{"id":1,"name":"a"}"#, r#"{"name":"b"}"#]);
    let said = failure(&workspace.run(&[]), "snap");
    assert!(said.contains("`id`=2") && said.contains("record 2 of data/state/000.json"), "{said}");
    assert!(said.contains("a row that stands in no source (`id` is NULL)") && !said.contains("record 1"), "{said}");
}

/// A column of the source with a name of ours is no condition: not even if it comes later, where no validation sees it.
#[test]
fn a_column_of_the_source_with_a_reserved_name_refuses_the_batch() {
    for column in ["__flowbench_delete", "__Flowbench_x", "__spark_autocdc_x"] {
        let workspace = without_retries(
            "CREATE STREAMING TABLE t;\n\
             CREATE FLOW f AS AUTO CDC INTO t FROM STREAM read_files('data/feed', format => 'json', rescuedDataColumn => '') \
             KEYS (id) SEQUENCE BY seq;",
        );
        put(&workspace, "feed", 0, &[r#"{"id":1,"seq":1}"#]);
        workspace.run_ok(&[]);
        put(&workspace, "feed", 1, &[&format!(r#"{{"id":1,"seq":2,"{column}":true}}"#)]);
        let said = failure(&workspace.run(&[]), "f");
        assert!(said.contains("reserved-name") && said.contains(column), "{said}");
        assert_eq!(table(&workspace, "t"), ["1|1"], "{column}");
    }
}

/// A side table that is gone or damaged is said, with the way out; the rows stay as they are.
#[test]
fn a_side_table_that_is_gone_or_damaged_is_built_anew_by_a_full_refresh() {
    for damage in ["gone", "manifest", "run"] {
        let workspace = without_retries(&format!(
            "CREATE STREAMING TABLE t;\n{}CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2;",
            feed("feed", "id BIGINT, seq BIGINT")
        ));
        put(&workspace, "feed", 0, &[r#"{"id":1,"seq":1}"#, r#"{"id":2,"seq":1}"#]);
        workspace.run_ok(&[]);
        let before = (table(&workspace, "t"), version(&workspace, "t"));
        let side = workspace.path(".flowbench/tables/default/t/_flowbench_side/gen-1");
        let code = match damage {
            "gone" => {
                std::fs::remove_dir_all(&side).unwrap();
                "side-table-missing"
            }
            _ => {
                let of = |path: &std::path::Path| {
                    let name = path.file_name().unwrap().to_str().unwrap().to_string();
                    name.starts_with(damage)
                };
                let files = std::fs::read_dir(&side).unwrap().map(|entry| entry.unwrap().path());
                let file = files.into_iter().find(|path| of(path)).unwrap();
                let mut bytes = std::fs::read(&file).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x20;
                std::fs::write(&file, bytes).unwrap();
                "side-table-corrupted"
            }
        };
        put(&workspace, "feed", 1, &[r#"{"id":1,"seq":2}"#]);
        let said = failure(&workspace.run(&[]), "f");
        assert!(said.contains(code) && said.contains("full"), "{damage}: {said}");
        assert_eq!((table(&workspace, "t"), version(&workspace, "t")), before, "{damage}");
        workspace.run_ok(&["--full-refresh", "t"]);
        assert_eq!(table(&workspace, "t"), ["1|1|1|2", "1|2|2|null", "2|1|1|null"], "{damage}");
    }
}

/// A column that is declared NOT NULL takes no NULL from an event, by whatever way it comes.
#[test]
fn null_for_a_column_that_is_not_null_refuses_the_batch() {
    for scd_type in [1, 2] {
        let more = if scd_type == 1 { "" } else { ", __START_AT BIGINT, __END_AT BIGINT" };
        let workspace = without_retries(&format!(
            "CREATE STREAMING TABLE t (id BIGINT, name STRING NOT NULL{more});\n{}\
             CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq \
             COLUMNS (id, name) STORED AS SCD TYPE {scd_type};",
            feed("feed", "id BIGINT, name STRING, op STRING, seq BIGINT")
        ));
        put(&workspace, "feed", 0, &[r#"{"id":1,"name":"a","seq":1}"#, r#"{"id":2,"op":"D","seq":1}"#]);
        workspace.run_ok(&[]);
        let before = (table(&workspace, "t"), version(&workspace, "t"));
        put(&workspace, "feed", 1, &[r#"{"id":1,"name":null,"seq":2}"#]);
        let said = failure(&workspace.run(&[]), "f");
        assert!(said.contains("`name`") && said.contains("NOT NULL") && !said.contains("internal"), "{said}");
        assert_eq!((table(&workspace, "t"), version(&workspace, "t")), before);
    }
}

/// A field that a struct no longer has is NULL from then on, as a column that is dropped is.
#[test]
fn fields_of_structs_come_and_go() {
    for scd_type in [1, 2] {
        let define = |place: &str| {
            format!(
                "CREATE STREAMING TABLE t;\n{}CREATE TEMPORARY VIEW chosen AS SELECT id, {place} AS place, seq FROM STREAM(feed);\n\
                 CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(chosen) KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE {scd_type};",
                feed("feed", "id BIGINT, city STRING, zip STRING, seq BIGINT")
            )
        };
        let workspace = without_retries(&define("named_struct('city', city)"));
        put(&workspace, "feed", 0, &[r#"{"id":1,"city":"x","zip":"1","seq":1}"#]);
        workspace.run_ok(&[]);
        workspace.define(&define("named_struct('city', city, 'zip', zip)"));
        put(&workspace, "feed", 1, &[r#"{"id":2,"city":"y","zip":"2","seq":1}"#]);
        workspace.run_ok(&[]);
        workspace.define(&define("named_struct('city', city)"));
        put(&workspace, "feed", 2, &[r#"{"id":3,"city":"z","zip":"3","seq":1}"#]);
        workspace.run_ok(&[]);
        assert_eq!(
            workspace.rows("SELECT id, place.city, place.zip FROM t ORDER BY id"),
            ["1|x|null", "2|y|2", "3|z|null"],
            "SCD type {scd_type}"
        );
    }
}
