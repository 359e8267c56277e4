//! What definitions may say: the reference page's forms in SQL and TOML, parameters, comments; the samples.

use super::registration;
use crate::fixture::{EVENTS, TestWorkspace, find};

/// The second pipeline of the reference page, in TOML.
const TOML: &str = r#"
[[streaming_table]]
name = "raw"
comment = "Raw registration events"

[[flow]]
name = "live"
target = "raw"
comment = "The live flow"
sql = """SELECT * FROM STREAM read_files('${root}/*/*/*', format => 'json',
  modifiedAfter => '2024-12-31T23:59:59.999+00:00') WHERE year(timestamp) >= '${begin_year}'"""

[[flow]]
name = "backfill_{year}"
target = "raw"
once = true
comment = "Backfill {year}"
for_each = { year = "${backfill_years}" }
sql = "SELECT * FROM read_files('${root}/year={year}/*/*', format => 'json')"
"#;

const SETTINGS: &str = "[configuration]\nroot = \"data/event_registration\"\nbegin_year = \"2025\"\nbackfill_years = \"2024, 2023,2022\"\n";

fn toml() -> TestWorkspace {
    let workspace = TestWorkspace::new("");
    workspace.write("flowbench.toml", SETTINGS);
    workspace.write("transformations/flows.toml", TOML);
    for (year, n) in [(2025, 1), (2024, 2), (2023, 3), (2022, 4)] {
        workspace.events(year, n);
    }
    workspace
}

#[test]
fn b_3_and_b_9_each_use_case_has_a_sample_that_runs() {
    // The sample, a query, its rows: as many as the lines of the files in samples/ say.
    let years = "SELECT year, count(*) FROM registration_events_raw GROUP BY ALL ORDER BY ALL";
    let all_years: &[&str] = &["2022|159", "2023|155", "2024|159", "2025|194"];
    let cases = [
        ("registration", years, all_years),
        ("registration_toml", years, all_years),
        ("registration_initial", years, &["2025|194"]),
        ("legacy_history", "SELECT shop, count(*) FROM orders GROUP BY ALL ORDER BY ALL", &["new|78", "old|40"]),
        ("reprocess_subset", "SELECT correction, count(*) FROM orders GROUP BY ALL ORDER BY ALL", &["0|65", "1|11"]),
        ("changed_logic", "SELECT count(*), count(tax_cents) FROM registrations", &["667|667"]),
    ];
    for (sample, query, expected) in cases {
        let workspace = TestWorkspace::empty();
        let made = workspace.command(&["init", ".", "--sample", sample]);
        assert_eq!(made.code, Some(0), "{sample}: {made}");
        workspace.run_ok(&[]);
        assert_eq!(workspace.rows(query), expected, "{sample}");
        let again = workspace.run_ok(&[]);
        let flows = again.result["flows"].as_array().unwrap();
        assert!(flows.iter().all(|flow| flow["metrics"]["rows_out"] == 0), "{sample}: {again}");
    }
}

#[test]
fn b_4_a_once_flow_goes_into_a_streaming_table_and_the_error_says_so() {
    for (target, code) in [
        ("MATERIALIZED VIEW history AS SELECT 1 AS id", "materialized-view-with-flows"),
        ("TEMPORARY VIEW history AS SELECT 1 AS id", "flow-into-view"),
    ] {
        let workspace = TestWorkspace::new(&format!(
            "CREATE {target};\nCREATE FLOW f AS INSERT INTO ONCE history BY NAME SELECT 2 AS id;"
        ));
        let outcome = workspace.run(&[]);
        assert_eq!(outcome.code, Some(3));
        let help = outcome.diagnostic(code)["help"].as_str().unwrap().to_string();
        assert!(help.contains("STREAMING TABLE"), "{target}: {help}");
    }
}

#[test]
fn b_10_parameters_work_in_strings_paths_and_toml_and_a_missing_one_is_named() {
    let workspace = toml();
    workspace.define(
        "CREATE OR REFRESH MATERIALIZED VIEW params AS SELECT '${begin_year}' AS text, ${begin_year} + 1 AS next, \
         \"${backfill_years}\" AS years;",
    );
    workspace.run_ok(&[]);
    assert_eq!(workspace.rows("SELECT * FROM params"), ["2025|2026|2024, 2023,2022"]);
    assert_eq!(
        workspace.rows("SELECT year, count(*) FROM raw GROUP BY ALL ORDER BY ALL"),
        ["2022|4", "2023|3", "2024|2", "2025|1"]
    );
    workspace.run_ok(&["--set", "begin_year=2030", "--refresh", "params"]);
    assert_eq!(workspace.rows("SELECT text FROM params"), ["2030"]);

    workspace.define("CREATE OR REFRESH MATERIALIZED VIEW params AS\nSELECT '${begin_yaer}' AS text;");
    let outcome = workspace.run(&[]);
    let diagnostic = outcome.diagnostic("unknown-parameter");
    assert_eq!(outcome.code, Some(3));
    assert!(diagnostic["message"].as_str().unwrap().contains("begin_yaer"), "{diagnostic}");
    assert!(diagnostic["help"].as_str().unwrap().contains("begin_year"), "{diagnostic}");
    assert_eq!((&diagnostic["line"], &diagnostic["column"]), (&2.into(), &9.into()));
}

#[test]
fn b_11_the_comment_of_a_table_is_shown_and_kept_in_it() {
    let workspace = toml();
    assert_eq!(workspace.command(&["describe", "raw"]).result["status"]["comment"], "Raw registration events");
    workspace.run_ok(&[]);
    let comment = || {
        let log = workspace.path(".flowbench/tables/default/raw/_delta_log");
        let mut versions: Vec<_> = std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path()).collect();
        versions.sort();
        let actions = versions
            .iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .flat_map(|path| std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect::<Vec<_>>())
            .map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
        actions.filter_map(|action| action.get("metaData").map(|m| m["description"].clone())).next_back().unwrap()
    };
    assert_eq!(comment(), "Raw registration events");
    // Fully declarative: another comment replaces it, none removes it.
    workspace.write("transformations/flows.toml", TOML.replace("Raw registration events", "All of them"));
    workspace.run_ok(&[]);
    assert_eq!(comment(), "All of them");
    workspace.write("transformations/flows.toml", TOML.replace("comment = \"Raw registration events\"\n", ""));
    workspace.run_ok(&[]);
    assert_eq!(comment(), serde_json::Value::Null);
}

#[test]
fn b_13_the_sql_of_the_page_runs_verbatim_with_double_quoted_strings() {
    for sql in
        [include_str!("../parse/reference_backfill_initial.sql"), include_str!("../parse/reference_backfill_flows.sql")]
    {
        assert!(sql.contains("format => \"json\""));
        let workspace = TestWorkspace::new(sql);
        workspace.write("flowbench.toml", "[paths]\n\"/Volumes/gc/demo/apps_raw\" = \"data\"\n");
        for year in [2022, 2023, 2024, 2025] {
            workspace.events(year, 2);
        }
        workspace.run_ok(&[]);
        let years: &[&str] = match sql.contains("ONCE") {
            true => &["2022|2", "2023|2", "2024|2", "2025|2"],
            false => &["2025|2"],
        };
        let rows = workspace.rows("SELECT year, count(*) FROM registration_events_raw GROUP BY ALL ORDER BY ALL");
        assert_eq!(rows, years);
    }
}

#[test]
fn b_25_for_each_makes_a_flow_of_each_year() {
    let workspace = toml();
    let graph = workspace.command(&["graph"]).result;
    let flows: Vec<&str> =
        graph["flows"].as_array().unwrap().iter().map(|flow| flow["name"].as_str().unwrap()).collect();
    assert_eq!(flows, ["live", "backfill_2024", "backfill_2023", "backfill_2022"]);
    workspace.run_ok(&[]);
    // One more year is one more flow; the others are done.
    workspace.events(2021, 5);
    let outcome = workspace.run_ok(&["--set", "backfill_years=2024,2023,2022,2021"]);
    assert_eq!((outcome.flow_state("backfill_2022"), outcome.rows_out("backfill_2021")), ("IDLE".to_string(), 5));
    assert_eq!(workspace.count("raw"), 15);
}

#[test]
fn b_26_a_toml_flow_has_target_once_name_and_comment() {
    let workspace = toml();
    workspace.run_ok(&["--flow", "backfill_2024"]);
    assert_eq!(workspace.rows("SELECT DISTINCT year FROM raw"), ["2024"]);
    let status = workspace.flow_status("backfill_2024");
    assert_eq!((&status["comment"], &status["dataset"]), (&"Backfill 2024".into(), &"raw".into()));
}

#[test]
fn b_27_a_declared_table_without_flows_exists_and_is_empty() {
    let workspace = TestWorkspace::new("CREATE OR REFRESH MATERIALIZED VIEW other AS SELECT 1 AS id;");
    workspace.write(
        "transformations/t.toml",
        "[[streaming_table]]\nname = \"t\"\ncomment = \"empty\"\nschema = \"id BIGINT, name STRING\"\n\
         [[streaming_table]]\nname = \"u\"\n",
    );
    let warnings = workspace.command(&["validate"]).diagnostics("table-without-flow");
    assert_eq!(warnings.len(), 2);
    assert!(warnings.iter().all(|warning| warning["severity"] == "warning"));
    workspace.run_ok(&[]);
    assert_eq!(workspace.count("t"), 0);
    assert_eq!(workspace.columns("t"), ["id BIGINT", "name STRING"]);
    assert_eq!(workspace.command(&["describe", "t"]).result["status"]["comment"], "empty");
    // Without columns there is nothing to store (architecture, "Decided where the pages are silent").
    assert!(!workspace.path(".flowbench/tables/default/u").exists());
}

#[test]
fn b_28_the_live_flow_has_a_name_and_a_comment_of_its_own() {
    let workspace = toml();
    let status = workspace.command(&["status"]).result;
    let of = |flow: &str| {
        let flow = find(&status["flows"], "name", flow);
        (flow["kind"].as_str().unwrap().to_string(), flow["comment"].as_str().unwrap().to_string())
    };
    assert_eq!(of("live"), ("append".to_string(), "The live flow".to_string()));
    assert_eq!(of("backfill_2023"), ("once".to_string(), "Backfill 2023".to_string()));
    let text = std::process::Command::new(env!("CARGO_BIN_EXE_flowbench"))
        .arg("status")
        .current_dir(workspace.root())
        .output()
        .unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().to_string();
    assert!(line("backfill_2023").contains("1× backfill") && line("live").contains(" append "), "{text}");
}

#[test]
fn b_29_a_table_without_a_query_takes_its_columns_from_its_flows() {
    let workspace = TestWorkspace::new(
        "CREATE OR REFRESH STREAMING TABLE raw;\nCREATE OR REFRESH MATERIALIZED VIEW m AS SELECT 1 AS id;",
    );
    let outcome = workspace.run_ok(&[]);
    assert_eq!(outcome.result["flows"].as_array().unwrap().len(), 1);
    assert_eq!(
        workspace.command(&["validate"]).diagnostic("table-without-flow")["condition"],
        "PIPELINE_DATASET_WITHOUT_FLOW"
    );

    workspace.define(&registration(&[2024]));
    workspace.events(2025, 1);
    workspace.events(2024, 1);
    workspace.run_ok(&[]);
    assert_eq!(
        workspace.columns("raw"),
        ["id BIGINT", "timestamp STRING", "year INT", "month INT", "day INT", "_rescued_data STRING"]
    );
}

#[test]
fn two_tables_of_one_name_are_an_error_before_anything_is_written() {
    let workspace = TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT * FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json');\n\
         CREATE OR REFRESH STREAMING TABLE RAW;\nCREATE OR REFRESH MATERIALIZED VIEW m AS SELECT nme FROM raw;"
    ));
    workspace.events(2025, 1);
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(3));
    let codes: Vec<&str> = outcome.error["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|diagnostic| diagnostic["severity"] == "error")
        .map(|diagnostic| diagnostic["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"duplicate-dataset"), "{codes:?}");
    assert!(!workspace.path(".flowbench").exists());
}
