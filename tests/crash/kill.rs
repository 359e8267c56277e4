//! SIGKILL at each step. After the next run the tables are those of a run that nothing happened to.

use super::{Tables, Workspace, assert_same, for_each_case, for_each_seed, run_and_kill};

/// The steps of a micro-batch, in order.
const STEPS: [&str; 5] = ["plan", "planned", "written", "committed", "marked"];

/// The steps of a materialized view, which has no plan to write down.
const VIEW_STEPS: [&str; 4] = ["planned", "written", "committed", "marked"];

/// The tables after a first run that nothing happens to.
pub fn after_first_run() -> Tables {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    workspace.tables()
}

/// The tables after a second run, with more input, that nothing happens to.
pub fn after_second_run() -> Tables {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    workspace.feed_second();
    workspace.expect(0, &["run"]);
    workspace.tables()
}

/// Every step of the given batches of each flow.
pub fn points(batches: &[(&str, usize)]) -> Vec<String> {
    let mut points = Vec::new();
    for (flow, count) in batches {
        let steps: &[&str] = if *flow == "gold" { &VIEW_STEPS } else { &STEPS };
        for batch in 1..=*count {
            points.extend(steps.iter().map(|step| format!("{step}@{flow}:{batch}")));
        }
    }
    points
}

/// Kills a run at each of `points` in turn, a run each, then lets one through.
fn check_killed(workspace: &Workspace, points: &[String], expected: &Tables) {
    for point in points {
        workspace.expect_killed(&format!("{point}=kill"), &["run"]);
    }
    let said = workspace.expect(0, &["run"]);
    assert_same(&workspace.tables(), expected, &said);
    workspace.check_settled();
    let updates = workspace.updates();
    assert_eq!(updates[0].1, "COMPLETED");
    let killed = &updates[1..=points.len()];
    assert!(killed.iter().all(|(_, state)| state == "FAILED"), "{updates:?}");
    let done = "SELECT count(*) FROM flows JOIN checkpoints USING (flow_id, generation) WHERE done_us IS NOT NULL";
    assert_eq!(workspace.state(done), 1, "the once flow is done");
    // Nothing more happens by itself.
    workspace.expect(0, &["run"]);
    assert_same(&workspace.tables(), expected, "a run without new input");
}

#[test]
fn a_first_run_killed_at_any_step_is_made_good_by_the_next() {
    let expected = after_first_run();
    assert_eq!(expected["events"].len(), 15);
    let mut cases = points(&[("live", 3), ("backfill", 1), ("silver", 1), ("gold", 1), ("wide", 1)]);
    cases.extend(
        ["schema-stored@live", "schema-stored@backfill", "schema-stored@wide", "maintenance"].map(String::from),
    );
    for_each_case("killed in the first run", &cases, Clone::clone, |point| {
        check_killed(&Workspace::fed(), std::slice::from_ref(point), &expected);
    });
}

#[test]
fn a_later_run_killed_at_any_step_is_made_good_by_the_next() {
    let expected = after_second_run();
    assert_eq!(expected["events"].len(), 21);
    assert!(expected["wide"].iter().any(|row| row.contains("new")), "{expected:?}");
    let mut cases = points(&[("live", 2), ("silver", 1), ("gold", 1), ("wide", 1)]);
    cases.extend(["schema-stored@wide", "maintenance"].map(String::from));
    for_each_case("killed in a later run", &cases, Clone::clone, |point| {
        let workspace = Workspace::fed();
        workspace.expect(0, &["run"]);
        workspace.feed_second();
        check_killed(&workspace, std::slice::from_ref(point), &expected);
    });
}

#[test]
fn killed_again_and_again_is_made_good_too() {
    let expected = after_second_run();
    // A batch that is replayed passes `written`, `committed` and `marked`, not `plan` and `planned`.
    let mut cases: Vec<Vec<String>> = Vec::new();
    for flow in ["live", "backfill", "silver", "wide"] {
        for pair in [
            ["plan", "planned"],
            ["planned", "written"],
            ["planned", "committed"],
            ["written", "written"],
            ["written", "committed"],
            ["written", "marked"],
            ["committed", "marked"],
        ] {
            cases.push(pair.map(|step| format!("{step}@{flow}")).to_vec());
        }
    }
    for pair in
        [["planned", "written"], ["written", "committed"], ["committed", "committed"], ["marked", "maintenance"]]
    {
        cases.push(
            pair.map(|step| if step == "maintenance" { step.to_string() } else { format!("{step}@gold") }).to_vec(),
        );
    }
    for several in [
        ["planned@live:3", "committed@live", "written@silver", "committed@silver", "written@gold"],
        ["schema-stored@live", "planned@live", "written@live", "written@live", "committed@live"],
        ["schema-stored@backfill", "plan@backfill", "planned@backfill", "written@backfill", "committed@backfill"],
    ] {
        cases.push(several.map(String::from).to_vec());
    }
    for_each_case(
        "killed several times",
        &cases,
        |case| case.join(", "),
        |points| {
            let workspace = Workspace::fed();
            for point in points {
                workspace.expect_killed(&format!("{point}=kill"), &["run"]);
            }
            // New input arrives before anybody looks.
            workspace.feed_second();
            workspace.expect(0, &["run"]);
            assert_same(&workspace.tables(), &expected, "");
            workspace.check_settled();
        },
    );
}

#[test]
fn a_batch_replayed_with_new_fields_keeps_its_input() {
    let expected = after_second_run();
    let cases = [
        ["schema-stored@wide", "written@wide"],
        ["schema-stored@wide", "committed@wide"],
        ["written@wide", "committed@wide"],
        ["planned@wide", "schema-stored@wide"],
        ["planned@wide", "committed@wide"],
    ];
    for_each_case(
        "killed while the schema evolves",
        &cases,
        |case| case.join(", "),
        |points| {
            let workspace = Workspace::fed();
            workspace.expect(0, &["run"]);
            workspace.feed_second();
            check_killed(&workspace, &points.map(String::from), &expected);
        },
    );
}

/// kill -9 at a moment nobody chose, over and over, while input goes on arriving.
#[test]
fn killed_at_random_moments_nothing_is_lost_or_doubled() {
    for_each_seed("killed at random moments", 6, |next| {
        let workspace = Workspace::fed();
        let oracle = Workspace::fed();
        for round in 0..10 {
            run_and_kill(&workspace, next(300));
            for workspace in [&workspace, &oracle] {
                workspace.feed(&format!("live/r{round}"));
            }
        }
        workspace.feed_second();
        oracle.feed_second();
        workspace.expect(0, &["run"]);
        oracle.expect(0, &["run"]);
        assert_same(&workspace.tables(), &oracle.tables(), "");
        workspace.check_settled();
    });
}

/// A once flow that is to run again appends its rows one more time, not two, whichever run carries it out.
#[test]
fn a_rerun_that_is_killed_appends_once_more_and_no_more() {
    let mut cases: Vec<(String, &[&str])> = Vec::new();
    for step in STEPS {
        cases.push((format!("{step}@backfill"), &["run"]));
        // Once it is marked the rerun is done, and asking again means another one.
        if step != "marked" {
            cases.push((format!("{step}@backfill"), &["run", "--rerun-once", "backfill"]));
        }
    }
    for_each_case(
        "reruns killed",
        &cases,
        |case| format!("{case:?}"),
        |(point, next)| {
            let workspace = Workspace::fed();
            workspace.expect(0, &["run"]);
            workspace.expect_killed(&format!("{point}=kill"), &["run", "--rerun-once", "backfill"]);
            workspace.expect(0, next);
            workspace.expect(0, &["run"]);
            assert_eq!(workspace.rows("SELECT id FROM events WHERE id LIKE 'old/%'").len(), 12);
            assert_eq!(workspace.rows("SELECT id FROM silver").len(), 21);
            workspace.check_settled();
        },
    );
}

/// A plan that can't be carried out any more is made anew: what is still there is read once.
#[test]
fn a_planned_file_that_is_gone_or_changed_is_planned_anew() {
    for_each_case("planned input that changed", &points(&[("live", 2), ("backfill", 1)]), Clone::clone, |point| {
        // From here on the rows are in the table.
        let is_committed = point.starts_with("committed") || point.starts_with("marked");
        let workspace = Workspace::fed();
        workspace.expect_killed(&format!("{point}=kill"), &["run"]);
        let (file, folder) = match point.contains("live") {
            true if point.ends_with('1') => ("live/a", "live"),
            true => ("live/b", "live"),
            false => ("old/x", "old"),
        };
        std::fs::remove_file(workspace.path().join(format!("data/{file}.json"))).unwrap();
        workspace.feed(&format!("{folder}/new"));
        workspace.expect(0, &["run"]);
        let rows = workspace.rows(&format!("SELECT id FROM events WHERE id LIKE '{file}-%'")).len();
        assert_eq!(rows, if is_committed { 3 } else { 0 });
        let new = workspace.rows(&format!("SELECT id FROM events WHERE id LIKE '{folder}/new-%'")).len();
        // A once flow whose rows are in the table is done, and reads no file that comes later.
        assert_eq!(new, if is_committed && folder == "old" { 0 } else { 3 });
        let all = workspace.rows("SELECT id FROM events");
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        workspace.check_settled();
    });
}
