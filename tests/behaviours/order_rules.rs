//! What `depends_on` may say, what is said of mistakes, how the order is shown, and the patterns it is made for.

use std::path::Path;

use super::{backfill, live};
use crate::cli::{flowbench, stderr, stdout};
use crate::fixture::{EVENTS, Outcome, TestWorkspace};

/// `raw` with the backfill of 2024 and a live flow that depends on `name`.
fn live_after(name: &str) -> TestWorkspace {
    let live = live("").replacen(" AS INSERT", &format!(" DEPENDS ON ({name}) AS INSERT"), 1);
    let workspace =
        TestWorkspace::new(&format!("CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{live}\n", backfill(2024)));
    workspace.events(2024, 1);
    workspace.events(2025, 1);
    workspace
}

/// Adds statements to the workspace.
fn add(workspace: &TestWorkspace, sql: &str) {
    workspace.write("transformations/more.sql", sql);
}

/// A flow into a table of its own.
fn flow(name: &str, after: &str, source: &str) -> String {
    format!(
        "CREATE OR REFRESH STREAMING TABLE t_{name};\n\
         CREATE FLOW {name} {after} AS INSERT INTO t_{name} BY NAME SELECT * FROM STREAM {source};\n"
    )
}

fn files() -> String {
    format!("read_files('{EVENTS}/*/*/*', format => 'json')")
}

fn validate(workspace: &TestWorkspace) -> Outcome {
    let outcome = workspace.command(&["validate"]);
    assert!(!workspace.path(".flowbench").exists(), "validation writes nothing");
    outcome
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn o_1_the_current_channel_has_no_order_and_the_setting_is_named() {
    let workspace = live_after("backfill_2024");
    workspace.write("flowbench.toml", "[pipeline]\nchannel = \"current\"\n");
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    let diagnostic = outcome.diagnostic("needs-preview-channel");
    assert!(text(&diagnostic["message"]).contains("channel = \"preview\""), "{diagnostic}");
    assert_eq!((&diagnostic["file"], &diagnostic["line"]), (&"flowbench.toml".into(), &2.into()));
    assert!(text(&diagnostic["labels"][0]["message"]).contains("`live` waits for `backfill_2024`"), "{diagnostic}");
    assert!(!workspace.path(".flowbench").exists());

    workspace.write("flowbench.toml", "[pipeline]\nchannel = \"preview\"\n");
    workspace.run_ok(&[]);
    // Without an order the current channel will do.
    let workspace = TestWorkspace::new(&format!("CREATE OR REFRESH STREAMING TABLE raw;\n{}", live("")));
    workspace.events(2025, 1);
    workspace.write("flowbench.toml", "[pipeline]\nchannel = \"current\"\n");
    workspace.run_ok(&[]);
}

#[test]
fn o_15_flows_of_another_pipeline_are_unknown() {
    let workspace = live_after("nightly_load");
    // A neighbour has it.
    let neighbour = TestWorkspace::new(&flow("nightly_load", "", &files()));
    assert_eq!(validate(&neighbour).code, Some(0));
    let outcome = validate(&workspace);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    let diagnostic = outcome.diagnostic("unknown-flow");
    assert!(text(&diagnostic["message"]).contains("`nightly_load`"), "{diagnostic}");
    assert!(text(&diagnostic["reason"]).contains("one pipeline"), "{diagnostic}");
    assert!(text(&diagnostic["help"]).contains("backfill_2024"), "{diagnostic}");
}

#[test]
fn o_16_nobody_waits_for_a_view() {
    let workspace = live_after("recent");
    add(&workspace, "CREATE TEMPORARY VIEW recent AS SELECT * FROM raw;");
    let diagnostic = validate(&workspace).diagnostic("depends-on-view");
    assert!(text(&diagnostic["message"]).contains("`recent`, a temporary view"), "{diagnostic}");
    assert_eq!((&diagnostic["line"], &diagnostic["column"]), (&3.into(), &30.into()), "{diagnostic}");

    // The name of a flow that would write one is no way around.
    let workspace = live_after("into_view");
    add(
        &workspace,
        "CREATE VIEW v AS SELECT 1 AS x;\nCREATE FLOW into_view AS INSERT INTO ONCE v BY NAME SELECT 1 AS x;",
    );
    let diagnostic = validate(&workspace).diagnostic("depends-on-view");
    assert!(text(&diagnostic["message"]).contains("`into_view`, which writes to the view `v`"), "{diagnostic}");
}

#[test]
fn o_18_an_unknown_flow_is_found_before_anything_runs_and_the_right_name_offered() {
    let workspace = live_after("backfil_2024");
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    let diagnostic = outcome.diagnostic("unknown-flow");
    assert_eq!((&diagnostic["line"], &diagnostic["column"]), (&3.into(), &30.into()), "{diagnostic}");
    assert_eq!(diagnostic["help"], "did you mean `backfill_2024`?");
    assert_eq!(diagnostic["edit"]["replacement"], "backfill_2024", "{diagnostic}");
    assert!(!workspace.path(".flowbench").exists());
}

#[test]
fn o_18_circles_are_printed_whole_with_the_place_of_every_edge() {
    let workspace = TestWorkspace::new(
        &[
            flow("a", "DEPENDS ON c", &files()),
            flow("b", "DEPENDS ON a", &files()),
            flow("c", "DEPENDS ON (b, d)", &files()),
            flow("d", "", &files()),
        ]
        .concat(),
    );
    workspace.events(2025, 1);
    let diagnostic = validate(&workspace).diagnostic("order-cycle");
    assert_eq!(diagnostic["condition"], "CircularDependencyException");
    assert_eq!(diagnostic["message"], "flows wait for one another in a circle: c → a → b → c");
    assert_eq!(diagnostic["line"], 2);
    let labels: Vec<(i64, &str)> = diagnostic["labels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|label| (label["line"].as_i64().unwrap(), text(&label["message"])))
        .collect();
    assert_eq!(labels, [(4, "`b` waits for `a`"), (6, "`c` waits for `b`")]);
}

#[test]
fn o_18_a_circle_of_data_and_order_is_one_too() {
    let workspace = TestWorkspace::new(&[flow("a", "DEPENDS ON b", &files()), flow("b", "", "t_a")].concat());
    workspace.events(2025, 1);
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    let diagnostic = outcome.diagnostic("order-cycle");
    assert_eq!(diagnostic["message"], "flows wait for one another in a circle: b → a → b");
    assert_eq!(diagnostic["labels"][0]["message"], "`b` reads `t_a`, which `a` writes", "{diagnostic}");

    // Through a view, and with two circles at once.
    let view = "CREATE TEMPORARY VIEW seen AS SELECT * FROM STREAM t_a;\n";
    workspace.define(
        &[
            flow("a", "DEPENDS ON b", &files()),
            view.to_string(),
            flow("b", "", "seen"),
            flow("x", "DEPENDS ON y", &files()),
            flow("y", "DEPENDS ON x", &files()),
        ]
        .concat(),
    );
    let found = validate(&workspace).diagnostics("order-cycle");
    let messages: Vec<&str> = found.iter().map(|diagnostic| text(&diagnostic["message"])).collect();
    assert_eq!(
        messages,
        ["flows wait for one another in a circle: b → a → b", "flows wait for one another in a circle: y → x → y"]
    );
    assert_eq!(found[0]["labels"][0]["message"], "`b` reads `t_a` through `seen`, which `a` writes");
}

#[test]
fn o_18_a_flow_cannot_wait_for_itself() {
    let workspace = live_after("live, backfill_2024");
    let diagnostic = validate(&workspace).diagnostic("order-cycle");
    assert_eq!(diagnostic["message"], "flow `live` waits for itself");
    assert_eq!((&diagnostic["line"], &diagnostic["column"]), (&3.into(), &30.into()), "{diagnostic}");
}

#[test]
fn o_26_a_table_is_no_flow_and_its_flow_is_offered() {
    let workspace = live_after("raw");
    let diagnostic = validate(&workspace).diagnostic("depends-on-table");
    assert_eq!(diagnostic["message"], "flow `live` waits for `raw`, a streaming table");
    assert_eq!(diagnostic["help"], "did you mean flow `backfill_2024`?");
    assert_eq!(diagnostic["edit"]["replacement"], "backfill_2024", "{diagnostic}");

    add(&workspace, &backfill(2023));
    let diagnostic = validate(&workspace).diagnostic("depends-on-table");
    assert_eq!(diagnostic["help"], "did you mean flow `backfill_2023` or `backfill_2024`?");
    assert!(diagnostic["edit"].is_null(), "{diagnostic}");
}

#[test]
fn offered_names_fit_where_they_are_put_and_mend_the_file() {
    let flow = |name: &str, more: &str, stream: &str| {
        format!("[[flow]]\nname = \"{name}\"\ntarget = \"raw\"\n{more}\nsql = \"SELECT * FROM {stream}{}\"\n", files())
    };
    let toml = |depends_on: &str| {
        let (history, live) = (flow("backfill_2024", "once = true", ""), flow("live", depends_on, "STREAM "));
        format!("[[streaming_table]]\nname = \"raw\"\n\n{history}\n{live}")
    };
    for depends_on in [
        "depends_on = \"backfil_2024\"",
        "depends_on = ['  backfil_2024 ']",
        "depends_on = [\"backfill_2024\", '''raw''']",
    ] {
        let workspace = TestWorkspace::empty();
        workspace.write("flowbench.toml", "");
        workspace.events(2024, 1);
        workspace.write("transformations/flows.toml", toml(depends_on));
        let outcome = validate(&workspace);
        assert_eq!(outcome.code, Some(3), "{outcome}");
        let found = outcome.result["diagnostics"].as_array().unwrap();
        let edit = found.iter().map(|found| &found["edit"]).find(|edit| !edit.is_null()).expect("an edit").clone();
        let number = |key: &str| edit[key].as_u64().unwrap() as usize;
        let mut lines: Vec<String> = toml(depends_on).lines().map(str::to_string).collect();
        let line = &mut lines[number("line") - 1];
        line.replace_range(number("column") - 1..number("end_column") - 1, text(&edit["replacement"]));
        workspace.write("transformations/flows.toml", lines.join("\n"));
        assert_eq!(validate(&workspace).code, Some(0), "{depends_on}: {edit}");
    }
    // Where a parameter made the name, an edit would put another one in its place for good: none is offered.
    let workspace = TestWorkspace::empty();
    workspace.write("flowbench.toml", "[configuration]\nyear = \"2042\"\n");
    workspace.events(2024, 1);
    workspace.write("transformations/flows.toml", toml("depends_on = \"backfill_${year}\""));
    let diagnostic = validate(&workspace).diagnostic("unknown-flow");
    assert_eq!((&diagnostic["help"], &diagnostic["edit"]), (&"did you mean `backfill_2024`?".into(), &().into()));
}

#[test]
fn continuous_mode_with_an_order_is_refused() {
    let workspace = live_after("backfill_2024");
    workspace.write("flowbench.toml", "[pipeline]\nmode = \"continuous\"\n");
    let outcome = workspace.run(&[]);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    assert!(text(&outcome.diagnostic("not-supported-yet")["message"]).contains("continuous"), "{outcome}");
}

#[test]
fn a_flow_that_cannot_be_read_is_no_unknown_flow() {
    let workspace = live_after("broken");
    add(&workspace, "CREATE FLOW broken AS INSERT INTO ONCE raw BY NAME SELECT FROM WHERE;");
    let outcome = validate(&workspace);
    assert_eq!(outcome.code, Some(3), "{outcome}");
    assert!(outcome.diagnostics("unknown-flow").is_empty(), "{outcome}");
    // Nor is one whose table is unknown.
    add(&workspace, "CREATE FLOW broken AS INSERT INTO ONCE rw BY NAME SELECT 1 AS id;");
    let outcome = validate(&workspace);
    assert!(outcome.diagnostics("unknown-flow").is_empty(), "{outcome}");
    assert_eq!(outcome.diagnostics("unknown-target").len(), 1, "{outcome}");
}

#[test]
fn o_13_order_edges_are_drawn_apart_from_data_edges() {
    let workspace = live_after("backfill_2024");
    add(&workspace, "CREATE OR REFRESH MATERIALIZED VIEW n AS SELECT count(*) AS n FROM raw;");
    let drawn = |format: &str| stdout(&flowbench(workspace.root(), &["graph", "--format", format]));
    let line = |drawing: &str, words: &[&str]| {
        let found = drawing.lines().find(|line| words.iter().all(|word| line.contains(word)));
        found.unwrap_or_else(|| panic!("no {words:?} in\n{drawing}")).to_string()
    };
    assert!(line(&drawn("text"), &["live", "append"]).contains("⇠ after backfill_2024"));
    assert!(!line(&drawn("text"), &["1× backfill_2024"]).contains("⇠"));

    let dot = drawn("dot");
    let order = line(&dot, &["flow backfill_2024", "->", "flow live"]);
    assert!(order.contains("style=dashed"), "{dot}");
    let dashed = dot.lines().filter(|line| line.contains("->") && line.contains("dashed")).count();
    assert_eq!(dashed, 1, "data edges are solid\n{dot}");
    line(&dot, &["flow live", "-> \"raw\"", "style=solid"]);

    let mermaid = drawn("mermaid");
    let dotted: Vec<&str> = mermaid.lines().filter(|line| line.contains("-.->")).collect();
    assert_eq!(dotted.len(), 1, "{mermaid}");

    let graph = workspace.command(&["graph"]).result;
    assert_eq!(graph["order_edges"], serde_json::json!([{ "from": "backfill_2024", "to": "live" }]));
    let data = graph["edges"].as_array().unwrap();
    assert_eq!(data.iter().filter(|edge| edge["to"] == "raw").count(), 2, "{graph}");
    let live = crate::fixture::find(&graph["flows"], "name", "live");
    assert_eq!(live["depends_on"], serde_json::json!(["backfill_2024"]));
}

#[test]
fn status_describe_and_plan_show_what_a_flow_waits_for() {
    let workspace = live_after("backfill_2024");
    let said = |arguments: &[&str]| {
        let output = flowbench(workspace.root(), arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let live = |text: &str| text.lines().find(|line| line.trim_start().starts_with("live")).unwrap().to_string();
    assert!(said(&["run", "--plan"]).contains("live: appends to raw what is new, after backfill_2024"));
    workspace.run_ok(&[]);
    for arguments in [&["status"][..], &["describe", "raw"]] {
        let text = said(arguments);
        assert!(text.contains("after"), "{text}");
        assert!(live(&text).trim_end().ends_with("backfill_2024"), "{text}");
    }
}

/// O-6: the patterns that order is made for, as the examples have them.
mod patterns {
    use super::*;

    fn run(example: &str) -> (tempfile::TempDir, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let made = flowbench(folder.path(), &["init", "copy", "--sample", example]);
        assert!(made.status.success(), "{}", stderr(&made));
        let ran = flowbench(&copy, &["run", "--json"]);
        assert!(ran.status.success(), "{}{}", stdout(&ran), stderr(&ran));
        let changes = stdout(&ran)
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|event| event["event_type"] == "flow_progress")
            .filter(|event| matches!(text(&event["details"]["status"]), "RUNNING" | "COMPLETED"))
            .filter(|event| event["level"] != "METRICS")
            .map(|event| format!("{} {}", text(&event["flow"]), text(&event["details"]["status"])))
            .collect();
        (folder, changes)
    }

    /// What stands in the list is there, in this order.
    #[track_caller]
    fn assert_in_order(changes: &[String], flows: &[&str]) {
        let at =
            |what: String| changes.iter().position(|change| *change == what).unwrap_or_else(|| panic!("{changes:?}"));
        for pair in flows.windows(2) {
            let (ended, started) = (at(format!("{} COMPLETED", pair[0])), at(format!("{} RUNNING", pair[1])));
            assert!(ended < started, "{pair:?}: {changes:?}");
        }
    }

    fn query(folder: &Path, sql: &str) -> String {
        stdout(&flowbench(&folder.join("copy"), &["sql", sql, "--format", "csv"])).replace("\r\n", "\n")
    }

    #[test]
    fn o_6_several_backfills_in_strict_order_and_then_live() {
        let (folder, changes) = run("events_cutover");
        assert_in_order(
            &changes,
            &[
                "events_backfill_2023",
                "events_backfill_2024",
                "events_live",
                "registrations",
                "registrations_per_month",
            ],
        );
        let years = "SELECT substr(month, 1, 4) AS year, sum(registrations) AS n FROM registrations_per_month GROUP BY 1 \
                     ORDER BY 1";
        let found = query(folder.path(), years);
        assert_eq!(found.lines().count(), 4, "{found}");
        let all = query(folder.path(), "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM registrations");
        let numbers: Vec<&str> = all.lines().nth(1).unwrap().split(',').collect();
        assert_eq!(numbers[0], numbers[1], "{all}");
    }

    #[test]
    fn o_6_a_load_in_phases() {
        let (folder, changes) = run("phased_load");
        assert_in_order(&changes, &["orders_initial", "orders_catch_up", "orders_live"]);
        let phases = "SELECT phase, count(*) AS n FROM orders GROUP BY phase ORDER BY phase";
        assert_eq!(query(folder.path(), phases), "phase,n\ncatch up,42\ninitial,40\nlive,36\n");
    }

    #[test]
    fn o_6_flows_into_different_tables_in_a_fixed_order() {
        let (folder, changes) = run("phased_load");
        assert_in_order(&changes, &["orders_live", "corrections_load", "orders_per_phase"]);
        let corrected = query(folder.path(), "SELECT sum(corrected) AS n FROM orders_per_phase");
        assert_eq!(corrected, "n\n11\n");
    }
}
