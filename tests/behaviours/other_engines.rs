//! The tables as others read them: delta-rs always, the `deltalake` Python package and DuckDB where they are;
//! and the same tables whatever the machine's time zone is.

use std::process::Command;

use super::registration;
use crate::fixture::{EVENTS, ForeignTable, TestWorkspace};

/// The registration pipeline with columns that depend on times.
fn timely() -> TestWorkspace {
    let workspace = TestWorkspace::new(&registration(&[2024, 2023]));
    workspace.write(
        "transformations/times.sql",
        "CREATE OR REFRESH STREAMING TABLE times PARTITIONED BY (day_of) AS SELECT id, to_timestamp(timestamp) AS at, \
         CAST(to_timestamp(timestamp) AS DATE) AS day_of, hour(to_timestamp(timestamp)) AS hour, \
         date_format(to_timestamp(timestamp), 'yyyy-MM-dd HH:mm') AS text, CAST(timestamp AS TIMESTAMP_NTZ) AS wall, \
         named_struct('a', id, 'b', array(year, month)) AS nested, CAST(id AS DECIMAL(12,2)) / 4 AS price \
         FROM STREAM raw;\n\
         CREATE OR REFRESH MATERIALIZED VIEW per_day AS SELECT day_of, count(*) AS n, max(at) AS last FROM times GROUP BY ALL;",
    );
    for (year, n) in [(2025, 3), (2024, 2), (2023, 2)] {
        workspace.events(year, n);
    }
    // At the edge of days, and of daylight saving in Chicago.
    let path = format!("{EVENTS}/year=2025/month=03/day=09/edge.json");
    workspace.write(
        &path,
        "{\"id\":1,\"timestamp\":\"2025-03-09T02:30:00\"}\n{\"id\":2,\"timestamp\":\"2025-03-09T23:59:59.999\"}\n\
         {\"id\":3,\"timestamp\":\"2025-03-09T00:00:00+09:00\"}\n",
    );
    workspace.set_time(&path, "2025-01-01T00:00:00.000Z");
    workspace
}

const TABLES: [&str; 3] = ["raw", "times", "per_day"];

#[test]
fn the_time_zone_of_the_machine_does_not_matter() {
    let tables = |zone: &str| -> Vec<Vec<String>> {
        let workspace = timely();
        let outcome = workspace.command_with(&["run"], &[("TZ", zone)]);
        assert_eq!(outcome.code, Some(0), "{zone}: {outcome}");
        let folder = |table: &str| workspace.path(&format!(".flowbench/tables/default/{table}"));
        TABLES.iter().map(|table| ForeignTable::at(&folder(table)).rows()).collect()
    };
    let utc = tables("UTC");
    assert_eq!(utc.iter().map(Vec::len).collect::<Vec<_>>(), [1 + 10, 1 + 10, 1 + 9]);
    assert!(
        utc[1].iter().any(|row| row.starts_with("|3|2025-03-08T15:00:00Z|2025-03-08|15|2025-03-0815:00|")),
        "{utc:?}"
    );
    assert_eq!(tables("Asia/Tokyo"), utc);
    assert_eq!(tables("America/Chicago"), utc);
}

#[test]
fn the_time_zone_of_the_pipeline_decides_instead() {
    let workspace = timely();
    workspace.write("flowbench.toml", "[pipeline]\ntime_zone = \"Asia/Tokyo\"\n");
    let outcome = workspace.command_with(&["run"], &[("TZ", "America/Chicago")]);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    // Midnight in Tokyo is on the 9th there; a text without offset is Tokyo's wall clock.
    assert_eq!(workspace.rows("SELECT day_of, hour, text FROM times WHERE id = 3"), ["2025-03-09|0|2025-03-09 00:00"]);
    let foreign = ForeignTable::at(&workspace.path(".flowbench/tables/default/times")).rows();
    assert!(foreign.iter().any(|row| row.starts_with("|1|2025-03-08T17:30:00Z|2025-03-09|2|")), "{foreign:?}");
}

#[test]
fn delta_rs_reads_what_we_read() {
    let workspace = timely();
    workspace.run_ok(&[]);
    workspace.event(2025, 9, 900, ",\"vip\":true");
    workspace.run_ok(&[]);
    let folder = workspace.path(".flowbench/tables/default/raw");
    let theirs = ForeignTable::at(&folder).rows();
    let mut ours: Vec<String> = workspace
        .rows("SELECT id, timestamp, year, month, day, coalesce(_rescued_data, ''), coalesce(CAST(vip AS STRING), '') FROM raw")
        .into_iter()
        .map(|row| format!("|{row}|"))
        .collect();
    ours.sort();
    assert_eq!(theirs[0], "|id|timestamp|year|month|day|_rescued_data|vip|");
    assert_eq!(theirs[1..], ours);
}

#[test]
fn other_programs_read_our_tables_where_they_are_installed() {
    let workspace = timely();
    workspace.run_ok(&[]);
    workspace.run_ok(&["--full-refresh", "raw", "--with-downstream"]);
    let folder = |table: &str| workspace.path(&format!(".flowbench/tables/default/{table}"));
    let expected = workspace.value("SELECT count(*), sum(id), count(DISTINCT day_of) FROM times");
    let python = std::env::var("FLOWBENCH_TEST_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let programs = [
        (
            "deltalake",
            "import sys\nfrom deltalake import DeltaTable\nt = DeltaTable(sys.argv[1]).to_pyarrow_table()\n\
             import pyarrow.compute as c\n\
             print(t.num_rows, c.sum(t['id']), len(set(t['day_of'].to_pylist())), sep='|')",
        ),
        (
            "duckdb",
            "import sys, duckdb\nduckdb.sql(\"INSTALL delta\"); duckdb.sql(\"LOAD delta\")\n\
             print(*duckdb.sql(f\"SELECT count(*), sum(id), count(DISTINCT day_of) FROM delta_scan('{sys.argv[1]}')\").fetchone(), sep='|')",
        ),
    ];
    for (package, script) in programs {
        let has = |package: &str| {
            let import = Command::new(&python).args(["-c", &format!("import {package}")]).output();
            import.is_ok_and(|output| output.status.success())
        };
        if !has(package) || package == "deltalake" && !has("pyarrow") {
            println!("skipped: Python package {package} is not installed");
            continue;
        }
        let output = Command::new(&python).arg("-c").arg(script).arg(folder("times")).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        if package == "duckdb" && !output.status.success() && error.contains("extension") {
            println!("skipped: DuckDB's delta extension can't be installed here");
            continue;
        }
        assert!(output.status.success(), "{package}: {error}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{package}");
    }
}

#[test]
fn rows_that_others_append_are_kept_and_read_on() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT id FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');\n\
         CREATE OR REFRESH STREAMING TABLE silver AS SELECT id FROM STREAM raw;\n\
         CREATE OR REFRESH MATERIALIZED VIEW gold AS SELECT count(*) AS n FROM raw;"
    ));
    workspace.events(2025, 2);
    workspace.run_ok(&[]);
    ForeignTable::at(&workspace.path(".flowbench/tables/default/raw")).append(1..=3);
    workspace.event(2025, 9, 9, "");
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.rows_out("raw"), outcome.rows_out("silver")), (1, 4));
    assert_eq!(workspace.rows("SELECT id FROM silver ORDER BY id"), ["1", "2", "3", "9", "202501", "202502"]);
    assert_eq!(workspace.rows("SELECT n FROM gold"), ["6"]);
}

#[test]
fn maintenance_joins_small_files_and_streams_do_not_see_it() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT id FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json', \
         maxFilesPerTrigger => 1);\nCREATE OR REFRESH STREAMING TABLE silver AS SELECT id FROM STREAM raw;"
    ));
    for file in 0..70 {
        workspace.write(&format!("{EVENTS}/a/b/c/{file}.json"), format!("{{\"id\":{file}}}\n"));
    }
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.batches("raw").len(), outcome.rows_out("silver")), (70, 70));
    let joined = outcome.events_of("maintenance");
    assert_eq!(joined.len(), 1, "{joined:?}");
    assert_eq!((&joined[0]["dataset"], &joined[0]["details"]["files_removed"]), (&"raw".into(), &70.into()));
    assert_eq!(workspace.command(&["describe", "raw"]).result["status"]["table"]["files"], 1);
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM raw"), "70|70");
    assert_eq!(ForeignTable::at(&workspace.path(".flowbench/tables/default/raw")).rows().len(), 1 + 70);
    workspace.write(&format!("{EVENTS}/a/b/c/new.json"), "{\"id\":100}\n");
    let outcome = workspace.run_ok(&[]);
    assert_eq!((outcome.rows_out("raw"), outcome.rows_out("silver")), (1, 1));
    assert_eq!(workspace.value("SELECT count(*), count(DISTINCT id) FROM silver"), "71|71");
}

/// Deleted rows, moved ones and those of SCD type 2, as other programs see them.
#[test]
fn other_programs_read_an_auto_cdc_table_where_they_are_installed() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE STREAMING TABLE t;\n{}CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) \
         APPLY AS DELETE WHEN name = 'gone' SEQUENCE BY seq COLUMNS (id, name) STORED AS SCD TYPE 2;",
        super::changes::feed("feed", "id BIGINT, name STRING, seq BIGINT")
    ));
    for file in 0..20 {
        let rows: Vec<String> = (0..20)
            .map(|key| {
                let name = if (key + file) % 7 == 0 { "gone".to_string() } else { format!("n{}", (key * file) % 3) };
                format!(r#"{{"id":{key},"name":"{name}","seq":{}}}"#, (file * 7) % 20)
            })
            .collect();
        super::changes::put(&workspace, "feed", file, &rows.iter().map(String::as_str).collect::<Vec<_>>());
    }
    workspace.run_ok(&[]);
    let folder = workspace.path(".flowbench/tables/default/t");
    let expected = workspace.value("SELECT count(*), sum(id), sum(__START_AT), sum(__END_AT) FROM t");
    assert_eq!(ForeignTable::at(&folder).rows().len() as u64, 1 + workspace.count("t"));
    let python = std::env::var("FLOWBENCH_TEST_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let query = "SELECT count(*), sum(id), sum(__START_AT), sum(__END_AT) FROM";
    let programs = [
        (
            "deltalake",
            format!(
                "import sys\nfrom deltalake import DeltaTable, QueryBuilder\n\
                 q = QueryBuilder().register('t', DeltaTable(sys.argv[1])).execute('{query} t').read_all()\n\
                 print(*[q.column(i)[0].as_py() for i in range(4)], sep='|')"
            ),
        ),
        (
            "duckdb",
            format!(
                "import sys, duckdb\nduckdb.sql(\"INSTALL delta\"); duckdb.sql(\"LOAD delta\")\n\
                 print(*duckdb.sql(f\"{query} delta_scan('{{sys.argv[1]}}')\").fetchone(), sep='|')"
            ),
        ),
    ];
    for (package, script) in programs {
        let import = Command::new(&python).args(["-c", &format!("import {package}")]).output();
        if !import.is_ok_and(|output| output.status.success()) {
            println!("skipped: Python package {package} is not installed");
            continue;
        }
        let output = Command::new(&python).arg("-c").arg(script).arg(&folder).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        if package == "duckdb" && !output.status.success() && error.contains("extension") {
            println!("skipped: DuckDB's delta extension can't be installed here");
            continue;
        }
        assert!(output.status.success(), "{package}: {error}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{package}");
    }
}
