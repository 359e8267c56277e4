//! SIGKILL in a chain of flows (`DEPENDS ON`): what is done stays done, the first flow that is not done goes on,
//! and the rows of one flow never come before those of a flow it waits for (behaviours O-21).

use super::{Tables, Workspace, assert_same, for_each_case};

const CHAIN: [&str; 3] = ["first", "second", "live"];

/// Written the other way round, so that only `DEPENDS ON` gives the order; `silver` comes after all by its data.
const PIPELINE: &str = "
CREATE OR REFRESH STREAMING TABLE silver AS SELECT id FROM STREAM(events);
CREATE OR REFRESH STREAMING TABLE events;
CREATE FLOW live DEPENDS ON (second) AS INSERT INTO events BY NAME
SELECT id, kind, amount FROM STREAM read_files('data/live', format => 'json', maxFilesPerTrigger => 1);
CREATE FLOW second DEPENDS ON (first) AS INSERT INTO ONCE events BY NAME
SELECT id, kind, amount FROM read_files('data/second', format => 'json');
CREATE FLOW first AS INSERT INTO ONCE events BY NAME
SELECT id, kind, amount FROM read_files('data/first', format => 'json');
";

fn fed() -> Workspace {
    let workspace = Workspace::of("", PIPELINE);
    for file in ["first/a", "first/b", "second/a", "live/a", "live/b"] {
        workspace.feed(file);
    }
    workspace
}

/// The tables of a run that nothing happens to.
fn undisturbed() -> Tables {
    let workspace = fed();
    workspace.expect(0, &["run"]);
    let tables = workspace.tables();
    assert_eq!((tables["events"].len(), tables["silver"].len()), (15, 15));
    tables
}

/// The flows that made the commits of `events`, in the order of its versions.
fn commits(workspace: &Workspace) -> Vec<String> {
    let log = workspace.table("events").join("_delta_log");
    let Ok(entries) = std::fs::read_dir(log) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let flow = |line: &str| {
        let action: serde_json::Value = serde_json::from_str(line).unwrap();
        action["commitInfo"]["operationParameters"]["flow"].as_str().map(|flow| flow.trim_matches('"').to_string())
    };
    paths
        .iter()
        .flat_map(|path| std::fs::read_to_string(path).unwrap().lines().filter_map(flow).collect::<Vec<_>>())
        .collect()
}

/// Every commit comes after those of the flows before its own.
#[track_caller]
fn check_order(workspace: &Workspace) {
    let commits = commits(workspace);
    let places: Vec<usize> =
        commits.iter().map(|flow| CHAIN.iter().position(|link| link == flow).expect("a flow of the chain")).collect();
    assert!(places.is_sorted(), "{commits:?}");
}

/// Checks that the chain has come to its end, with each once flow's rows there one time.
#[track_caller]
fn check_done(workspace: &Workspace, expected: &Tables, context: &str) {
    assert_same(&workspace.tables(), expected, context);
    workspace.check_settled();
    check_order(workspace);
    assert_eq!(commits(workspace), ["first", "second", "live", "live"], "{context}");
    // From here on the live flow alone goes on.
    workspace.feed("live/c");
    let said = workspace.expect(0, &["run"]);
    for (flow, state) in [("first", "IDLE"), ("second", "IDLE"), ("live", "COMPLETED")] {
        assert!(said.lines().any(|line| line.contains(flow) && line.contains(state)), "{flow} {state}\n{said}");
    }
    assert_eq!(commits(workspace), ["first", "second", "live", "live", "live"]);
}

#[test]
fn a_chain_killed_at_any_step_goes_on_with_its_first_flow_that_is_not_done() {
    let expected = undisturbed();
    let cases = super::kill::points(&[("first", 1), ("second", 1), ("live", 2)]);
    for_each_case("chains killed", &cases, Clone::clone, |point| {
        let workspace = fed();
        workspace.expect_killed(&format!("{point}=kill"), &["run"]);
        check_order(&workspace);
        // Nobody started before the one it waits for was done.
        let rows = |like: &str| match workspace.table("events").join("_delta_log").is_dir() {
            true => workspace.rows(&format!("SELECT id FROM events WHERE id LIKE '{like}%'")).len(),
            false => 0,
        };
        if point.contains("@first") {
            assert_eq!(rows("second") + rows("live"), 0);
        } else if point.contains("@second") {
            assert_eq!((rows("first"), rows("live")), (6, 0));
        }
        let said = workspace.expect(0, &["run"]);
        let is_idle = |flow: &str| said.lines().any(|line| line.contains(flow) && line.contains("IDLE"));
        let is_done = |flow: &str| match point.contains(&format!("@{flow}")) {
            true => point.starts_with("marked"),
            false => CHAIN.iter().position(|link| *link == flow) < CHAIN.iter().position(|link| point.contains(link)),
        };
        for flow in ["first", "second"] {
            assert_eq!(is_idle(flow), is_done(flow), "{flow}\n{said}");
        }
        check_done(&workspace, &expected, &said);
    });
}

#[test]
fn a_chain_killed_again_and_again_comes_to_its_end_in_order() {
    let expected = undisturbed();
    let cases: [&[&str]; 4] = [
        &["plan@first", "committed@first", "planned@second", "written@second", "marked@second", "planned@live:2"],
        &["written@first", "written@first", "committed@first", "committed@second", "committed@live"],
        &["marked@first", "marked@second", "marked@live", "committed@live"],
        &["schema-stored@first", "schema-stored@second", "schema-stored@live", "planned@silver"],
    ];
    let name = |case: &&[&str]| case.join(", ");
    for_each_case("chains killed several times", &cases, name, |points| {
        let workspace = fed();
        for point in points.iter() {
            workspace.expect_killed(&format!("{point}=kill"), &["run"]);
            check_order(&workspace);
        }
        let said = workspace.expect(0, &["run"]);
        check_done(&workspace, &expected, &said);
    });
}

#[test]
fn a_full_refresh_of_a_chain_killed_at_any_step_leaves_the_old_rows_and_is_made_good() {
    let expected = undisturbed();
    let refresh = ["run", "--full-refresh", "events", "--with-downstream"];
    let cases = ["written@first", "marked@first", "planned@second", "committed@second", "planned@live", "promote"];
    for_each_case("full refreshes of chains killed", &cases, ToString::to_string, |point| {
        let workspace = fed();
        workspace.expect(0, &["run"]);
        workspace.expect_killed(&format!("{point}=kill"), &refresh);
        let said = workspace.expect(0, &["run"]);
        assert_same(&workspace.tables(), &expected, &said);
        let said = workspace.expect(0, &refresh);
        assert_same(&workspace.tables(), &expected, &said);
        workspace.check_settled();
    });
}

/// kill -9 at moments nobody chose: the order holds at each of them.
#[test]
fn a_chain_killed_at_random_moments_keeps_its_order() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seeds: Vec<u64> = match std::env::var("FLOWBENCH_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..4).map(|n| now.wrapping_add(n * 7919)).collect(),
    };
    let expected = undisturbed();
    let name = |seed: &u64| format!("FLOWBENCH_SEED={seed}");
    for_each_case("chains killed at random moments", &seeds, name, |seed| {
        let workspace = fed();
        for round in 0..6u64 {
            let mut child = workspace.spawn("", &["run"]);
            std::thread::sleep(std::time::Duration::from_millis((seed >> (round * 5)) % 160));
            child.kill().unwrap();
            child.wait().unwrap();
            check_order(&workspace);
        }
        let said = workspace.expect(0, &["run"]);
        check_done(&workspace, &expected, &said);
    });
}
