//! AUTO CDC killed, failed and disturbed at every step, between the side table's commit and the target's too: feeds of
//! SCD type 1 and 2, a seed, two feeds into one table, a snapshot once beside a feed, snapshots version by version.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::{Tables, Workspace, assert_same, for_each_case, for_each_seed, run_and_kill, said};

const COLUMNS: &str = "id BIGINT, name STRING, op STRING, seq BIGINT";

/// The steps of a micro-batch, in order.
const STEPS: [&str; 5] = ["plan", "planned", "side-committed", "committed", "marked"];

const NAMES: [&str; 3] = ["latest", "history", "states"];

fn pipeline() -> String {
    let files = |folder: &str| {
        format!(
            "read_files('data/{folder}', format => 'json', schema => '{COLUMNS}', schemaEvolutionMode => 'none', maxFilesPerTrigger => 1)"
        )
    };
    let feed = |flow: &str, table: &str, source: &str, scd_type: u8| {
        format!(
            "CREATE FLOW {flow} AS AUTO CDC {source} KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq \
             COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE {scd_type};\n"
        )
        .replace("AUTO CDC INTO", &format!("AUTO CDC INTO {table}"))
        .replace("AUTO CDC ONCE INTO", &format!("AUTO CDC ONCE INTO {table}"))
    };
    [
        format!("CREATE TEMPORARY VIEW live AS SELECT * FROM STREAM {};\n", files("live")),
        format!("CREATE TEMPORARY VIEW other AS SELECT * FROM STREAM {};\n", files("wide")),
        format!(
            "CREATE TEMPORARY VIEW old AS SELECT * FROM {};\n",
            files("old").replace(", maxFilesPerTrigger => 1", "")
        ),
        "CREATE STREAMING TABLE latest;\nCREATE STREAMING TABLE history;\nCREATE STREAMING TABLE states;\n".to_string(),
        feed("latest_live", "latest", "INTO FROM STREAM(live)", 1),
        "CREATE FLOW latest_snapshot AS AUTO CDC ONCE INTO latest FROM SNAPSHOT (SELECT id, name FROM old) \
         WITH VERSION (SELECT CAST(20 AS BIGINT)) KEYS (id);\n"
            .to_string(),
        feed("history_seed", "history", "ONCE INTO FROM old", 2),
        feed("history_live", "history", "INTO FROM STREAM(live)", 2),
        feed("history_other", "history", "INTO FROM STREAM(other)", 2),
    ]
    .concat()
}

/// The snapshots in files, version by version, as TOML has them.
const SNAPSHOTS: &str = "[[auto_cdc_snapshot]]\ntarget = \"states\"\nkeys = [\"id\"]\nscd_type = 2\n\
    snapshots = { path = \"data/snap/*.json\", version_regex = \"(\\\\d+)\\\\.json\", \
    options = { format = \"json\", schema = \"id BIGINT, name STRING\" } }\n";

fn workspace(settings: &str) -> Workspace {
    let workspace = Workspace::of(settings, &pipeline());
    workspace.write("transformations/snapshots.toml", SNAPSHOTS);
    workspace
}

fn put(workspace: &Workspace, path: &str, rows: &[&str]) {
    workspace.write(&format!("data/{path}.json"), &rows.iter().map(|row| format!("{row}\n")).collect::<String>());
}

fn fed_with(settings: &str) -> Workspace {
    let workspace = workspace(settings);
    put(
        &workspace,
        "old/x",
        &[
            r#"{"id":1,"name":"seed","seq":5}"#,
            r#"{"id":2,"name":"seed","seq":6}"#,
            r#"{"id":9,"name":"seed only","seq":7}"#,
        ],
    );
    put(
        &workspace,
        "live/a",
        &[r#"{"id":1,"name":"a","seq":10}"#, r#"{"id":2,"name":"b","seq":10}"#, r#"{"id":3,"name":"c","seq":25}"#],
    );
    put(
        &workspace,
        "live/b",
        &[r#"{"id":1,"name":"a2","seq":30}"#, r#"{"id":2,"op":"D","seq":31}"#, r#"{"id":4,"name":"d","seq":12}"#],
    );
    put(
        &workspace,
        "live/c",
        &[r#"{"id":1,"name":"late","seq":15}"#, r#"{"id":3,"name":"c","seq":26}"#, r#"{"id":3,"name":"tie","seq":25}"#],
    );
    put(&workspace, "wide/a", &[r#"{"id":1,"name":"other","seq":10}"#, r#"{"id":7,"name":"other","seq":1}"#]);
    put(&workspace, "snap/1", &[r#"{"id":1,"name":"one"}"#, r#"{"id":2,"name":"two"}"#]);
    put(&workspace, "snap/2", &[r#"{"id":1,"name":"ONE"}"#]);
    workspace
}

fn fed() -> Workspace {
    fed_with("")
}

fn feed_second(workspace: &Workspace) {
    put(
        workspace,
        "live/d",
        &[r#"{"id":2,"name":"back","seq":40}"#, r#"{"id":1,"name":"later","seq":16}"#, r#"{"id":9,"op":"D","seq":8}"#],
    );
    put(workspace, "live/e", &[r#"{"id":5,"name":"e","seq":41}"#, r#"{"id":3,"op":"D","seq":27}"#]);
    put(workspace, "wide/b", &[r#"{"id":7,"name":"other2","seq":2}"#]);
    put(workspace, "snap/3", &[r#"{"id":2,"name":"again"}"#]);
}

fn tables(workspace: &Workspace) -> Tables {
    let rows = |table: &str| (table.to_string(), workspace.rows(&format!("SELECT * FROM {table}")));
    NAMES.into_iter().filter(|table| workspace.table(table).join("_delta_log").is_dir()).map(rows).collect()
}

fn after_first_run() -> Tables {
    let workspace = fed();
    workspace.expect(0, &["run"]);
    let found = tables(&workspace);
    assert_eq!(found["latest"], ["id=1 name=a2", "id=3 name=c", "id=9 name=seed only"], "{found:?}");
    assert_eq!(found["history"].len(), 11, "{found:?}");
    assert_eq!(found["states"].len(), 3, "{found:?}");
    found
}

fn after_second_run() -> Tables {
    let workspace = fed();
    workspace.expect(0, &["run"]);
    feed_second(&workspace);
    workspace.expect(0, &["run"]);
    let found = tables(&workspace);
    assert_eq!(found["states"].len(), 4, "{found:?}");
    found
}

/// Every step of the given batches of each flow.
fn points(batches: &[(&str, usize)]) -> Vec<String> {
    let of = |(flow, count): &(&str, usize)| {
        let flow = flow.to_string();
        (1..=*count).flat_map(move |batch| {
            let flow = flow.clone();
            STEPS.iter().map(move |step| format!("{step}@{flow}:{batch}"))
        })
    };
    batches.iter().flat_map(of).collect()
}

/// A side table has one generation, and of that the files that its manifest names.
fn check_side_tables(workspace: &Workspace) {
    for table in NAMES {
        let folder = workspace.table(table).join("_flowbench_side");
        let generations: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(generations.len(), 1, "{generations:?}");
        assert_eq!(unnamed(&generations[0]), BTreeSet::new(), "{table}: files that no manifest names");
    }
}

fn unnamed(side: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(side.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::Deserializer::from_str(&text).into_iter().next().unwrap().unwrap();
    let ids = |list: &str, name: &str| -> Vec<String> {
        let entries = manifest[list].as_array().unwrap().iter();
        entries.map(|entry| format!("{name}-{:08}.side", entry["id"].as_u64().unwrap())).collect()
    };
    let retired = manifest["retired"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string());
    let named: BTreeSet<String> = ids("runs", "run").into_iter().chain(ids("moves", "moves")).chain(retired).collect();
    let there = std::fs::read_dir(side).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    there.filter(|name| name != "manifest.json" && !named.contains(name)).collect()
}

fn done_flows(workspace: &Workspace) -> i64 {
    workspace.state("SELECT count(*) FROM flows JOIN checkpoints USING (flow_id, generation) WHERE done_us IS NOT NULL")
}

/// Kills a run at each of `points` in turn, a run each, then lets one through.
fn check_killed(workspace: &Workspace, points: &[String], expected: &Tables) {
    for point in points {
        workspace.expect_killed(&format!("{point}=kill"), &["run"]);
    }
    let said = workspace.expect(0, &["run"]);
    assert_same(&tables(workspace), expected, &said);
    workspace.check_settled();
    assert_eq!(done_flows(workspace), 2, "the seed and the snapshot are done");
    // Nothing more happens by itself.
    workspace.expect(0, &["run"]);
    assert_same(&tables(workspace), expected, "a run without new input");
    check_side_tables(workspace);
}

const FIRST: [(&str, usize); 6] = [
    ("latest_live", 3),
    ("latest_snapshot", 1),
    ("history_seed", 1),
    ("history_live", 3),
    ("history_other", 1),
    ("states", 2),
];

const LATER: [(&str, usize); 4] = [("latest_live", 2), ("history_live", 2), ("history_other", 1), ("states", 1)];

#[test]
fn changes_killed_at_any_step_of_a_first_run_are_applied_by_the_next() {
    let expected = after_first_run();
    for_each_case("changes killed in the first run", &points(&FIRST), Clone::clone, |point| {
        check_killed(&fed(), std::slice::from_ref(point), &expected);
    });
}

#[test]
fn changes_killed_at_any_step_of_a_later_run_are_applied_by_the_next() {
    let expected = after_second_run();
    let mut cases: Vec<Vec<String>> = points(&LATER).into_iter().map(|point| vec![point]).collect();
    for flow in ["latest_live", "history_live", "states"] {
        for pair in [["planned", "side-committed"], ["side-committed", "side-committed"], ["side-committed", "marked"]]
        {
            // A batch that the side table has is marked without passing its commit again.
            let pair = if pair[1] == "side-committed" && pair[0] == "side-committed" {
                ["side-committed", "plan"]
            } else {
                pair
            };
            let skips = flow == "states" && pair[1] == "plan";
            if !skips {
                cases.push(pair.map(|step| format!("{step}@{flow}")).to_vec());
            }
        }
    }
    for_each_case(
        "changes killed in a later run",
        &cases,
        |case| case.join(", "),
        |points| {
            let workspace = fed();
            workspace.expect(0, &["run"]);
            feed_second(&workspace);
            check_killed(&workspace, points, &expected);
        },
    );
}

#[test]
fn a_step_of_changes_that_fails_once_is_retried_in_the_same_update() {
    let expected = after_second_run();
    for_each_case("changes failed once and retried", &points(&LATER), Clone::clone, |point| {
        let workspace = fed();
        workspace.expect(0, &["run"]);
        feed_second(&workspace);
        let said = workspace.expect_at(&format!("{point}=error"), 0, &["run"]);
        assert!(said.contains("is tried again"), "{said}");
        assert_same(&tables(&workspace), &expected, &said);
        workspace.check_settled();
        check_side_tables(&workspace);
    });
}

/// A flow fails for good behind the side table's commit; the other flow of the table goes on in the same update.
#[test]
fn a_commit_that_one_flow_leaves_pending_is_made_by_the_next_flow_of_the_table() {
    let expected = after_second_run();
    for_each_case("changes failed for good", &points(&LATER), Clone::clone, |point| {
        let workspace = fed_with("[limits]\nretries = 0\n");
        workspace.expect(0, &["run"]);
        feed_second(&workspace);
        workspace.expect_at(&format!("{point}=error"), 1, &["run"]);
        let said = workspace.expect(0, &["run"]);
        assert_same(&tables(&workspace), &expected, &said);
        workspace.check_settled();
        check_side_tables(&workspace);
    });
}

#[test]
fn a_full_refresh_of_changes_killed_at_any_step_leaves_the_old_rows_or_the_new() {
    let shrunk = || {
        let workspace = fed();
        workspace.expect(0, &["run"]);
        std::fs::remove_file(workspace.path().join("data/live/b.json")).unwrap();
        std::fs::remove_file(workspace.path().join("data/snap/1.json")).unwrap();
        put(&workspace, "old/x", &[r#"{"id":1,"name":"new seed","seq":5}"#, r#"{"id":8,"name":"seed","seq":6}"#]);
        workspace
    };
    let workspace = shrunk();
    let before = tables(&workspace);
    workspace.expect(0, &["run", "--full-refresh-all"]);
    let after = tables(&workspace);
    assert!(NAMES.iter().all(|name| before[*name] != after[*name]), "{before:?} {after:?}");
    check_side_tables(&workspace);

    let mut cases: Vec<String> = Vec::new();
    for n in 1..=3 {
        cases.extend(["full-refresh-started", "promote", "promoted"].map(|point| format!("{point}:{n}")));
    }
    cases.extend(points(&[
        ("latest_live", 2),
        ("latest_snapshot", 1),
        ("history_seed", 1),
        ("history_other", 1),
        ("states", 1),
    ]));
    for_each_case("full refresh of changes killed", &cases, Clone::clone, |point| {
        let workspace = shrunk();
        workspace.expect_killed(&format!("{point}=kill"), &["run", "--full-refresh-all"]);
        for (table, rows) in tables(&workspace) {
            assert!(rows == before[&table] || rows == after[&table], "{table}: {rows:?}");
        }
        workspace.expect(0, &["run", "--full-refresh-all"]);
        assert_same(&tables(&workspace), &after, "");
        workspace.check_settled();
        // It goes on with what comes.
        put(&workspace, "live/z", &[r#"{"id":1,"name":"z","seq":99}"#]);
        workspace.expect(0, &["run"]);
        assert!(tables(&workspace)["latest"].contains(&"id=1 name=z".to_string()));
        assert_eq!(done_flows(&workspace), 2);
        check_side_tables(&workspace);
    });
}

/// Files of the target are rewritten between two commits; the rows stay where the side table finds them.
#[test]
fn a_rewrite_of_files_that_dies_or_fails_is_finished_by_the_next_run() {
    let feed = |workspace: &Workspace, from: u32, to: u32| {
        for n in from..to {
            let rows = [n % 7, n % 5 + 10].map(|id| format!(r#"{{"id":{id},"name":"n{n}","seq":{n}}}"#));
            put(workspace, &format!("live/r{n:03}"), &rows.iter().map(String::as_str).collect::<Vec<_>>());
        }
    };
    let fed = |n: u32| {
        let workspace = fed();
        feed(&workspace, 100, 100 + n);
        workspace
    };
    let oracle = fed(60);
    oracle.expect(0, &["run"]);
    let expected = tables(&oracle);
    let cases: Vec<(usize, &str)> = (1..=2).flat_map(|hit| [(hit, "kill"), (hit, "error")]).collect();
    for_each_case(
        "rewrites interrupted",
        &cases,
        |case| format!("{case:?}"),
        |(hit, action)| {
            let workspace = fed(40);
            let point = format!("moves-committed:{hit}={action}");
            match *action {
                "kill" => workspace.expect_killed(&point, &["run"]),
                _ => drop(workspace.expect_at(&point, 0, &["run"])),
            }
            feed(&workspace, 140, 160);
            workspace.expect(0, &["run"]);
            assert_same(&tables(&workspace), &expected, "");
            workspace.check_settled();
            workspace.expect(0, &["run"]);
            check_side_tables(&workspace);
        },
    );
}

/// A flow fails for good behind the side table's commit, and files of its table are worth joining when the update ends:
/// the commit that is pending is made first.
#[test]
fn a_commit_that_a_flow_leaves_pending_is_made_before_files_are_joined() {
    const FILES: usize = 24;
    let fed = |settings: &str| {
        let workspace = Workspace::of(
            settings,
            &format!(
                "CREATE STREAMING TABLE t;\nCREATE FLOW t AS AUTO CDC INTO t FROM STREAM(feed) KEYS (id) SEQUENCE BY seq \
                 COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;\nCREATE TEMPORARY VIEW feed AS SELECT * FROM STREAM \
                 read_files('data/feed', format => 'json', schema => '{COLUMNS}', schemaEvolutionMode => 'none', \
                 maxFilesPerTrigger => 1);\n"
            ),
        );
        for n in 0..FILES {
            let rows = [n % 7, n % 5 + 10].map(|id| format!(r#"{{"id":{id},"name":"n{n}","seq":{n}}}"#));
            put(&workspace, &format!("feed/{n:03}"), &rows.iter().map(String::as_str).collect::<Vec<_>>());
        }
        workspace
    };
    let rows = |workspace: &Workspace| workspace.rows("SELECT * FROM t ORDER BY ALL");
    let oracle = fed("");
    oracle.expect(0, &["run"]);
    let expected = rows(&oracle);
    let mut joined = 0;
    for batch in [FILES - 6, FILES - 1, FILES] {
        let workspace = fed("[limits]\nretries = 0\n");
        let said = workspace.expect_at(&format!("side-committed:{batch}=error"), 1, &["run"]);
        joined += usize::from(workspace.expect(0, &["events"]).contains("files joined to"));
        workspace.expect(0, &["run"]);
        assert_eq!(rows(&workspace), expected, "batch {batch}: {said}");
        workspace.check_settled();
    }
    assert!(joined > 0, "no case joined files behind a failure");
}

/// kill -9 at a moment nobody chose, over and over, while input goes on arriving.
#[test]
fn changes_killed_at_random_moments_are_applied_once() {
    for_each_seed("changes killed at random moments", 4, |next| {
        let (workspace, oracle) = (fed(), fed());
        for round in 0..10 {
            run_and_kill(&workspace, next(400));
            let (id, seq) = (next(5), next(60));
            let row = format!(r#"{{"id":{id},"name":"r{round}","seq":{seq}}}"#);
            for workspace in [&workspace, &oracle] {
                put(workspace, &format!("live/r{round}"), &[&row]);
            }
        }
        for workspace in [&workspace, &oracle] {
            feed_second(workspace);
            workspace.expect(0, &["run"]);
        }
        assert_same(&tables(&workspace), &tables(&oracle), "");
        workspace.check_settled();
        workspace.expect(0, &["run"]);
        check_side_tables(&workspace);
    });
}

/// No file may grow beyond the limit, so that some write fails: of state.db, the side table, the log, or data.
#[test]
fn a_write_of_changes_that_fails_ends_the_run_and_the_next_resumes() {
    let expected = after_first_run();
    let limits_kib = [0, 1, 2, 3, 4, 6, 8, 16, 64, 128, 160, 192, 224, 256, 320, 400];
    for_each_case("file size limits for changes", &limits_kib, ToString::to_string, |limit| {
        let workspace = fed();
        // Ignored, the signal that comes with the failed write does not end the process.
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" run");
        let mut limited = Command::new("bash");
        limited.args(["-c", &script, env!("CARGO_BIN_EXE_flowbench")]).current_dir(workspace.path());
        let output = limited.output().unwrap();
        match output.status.code() {
            Some(0) => assert!(*limit >= 128, "{limit}"),
            Some(1) => assert!(said(&output).contains("error["), "{}", said(&output)),
            other => panic!("{other:?}: {}", said(&output)),
        }
        workspace.expect(0, &["run"]);
        assert_same(&tables(&workspace), &expected, &said(&output));
        workspace.check_settled();
        workspace.expect(0, &["run"]);
        check_side_tables(&workspace);
    });
}
