//! A full refresh that is killed or fails: the old rows or the new ones, each whole, and the same request again
//! gives the tables of a full refresh that nothing happened to.

use super::{Tables, Workspace, assert_same, for_each_case};

/// Every step of a full refresh of all tables, in about the order in which it takes them.
fn points() -> Vec<String> {
    let mut points = vec![];
    for n in 1..=3 {
        points.push(format!("full-refresh-started:{n}"));
        points.push(format!("promote:{n}"));
        points.push(format!("promoted:{n}"));
    }
    for flow in ["live", "backfill", "silver", "wide"] {
        points.push(format!("schema-stored@{flow}"));
        points.extend(["plan", "planned", "written", "committed", "marked"].map(|step| format!("{step}@{flow}")));
    }
    points.extend(["planned", "written", "committed", "marked"].map(|step| format!("{step}@gold")));
    // A stream of a table has no schema to store.
    points.retain(|point| point != "schema-stored@silver");
    points.push("maintenance".to_string());
    points
}

/// A workspace whose tables hold rows that the sources no longer have.
fn shrunk() -> Workspace {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    std::fs::remove_file(workspace.path().join("data/live/b.json")).unwrap();
    std::fs::remove_file(workspace.path().join("data/old/y.json")).unwrap();
    workspace.feed("live/n");
    workspace
}

fn refreshed() -> (Tables, Tables) {
    let workspace = shrunk();
    let before = workspace.tables();
    workspace.expect(0, &["run", "--full-refresh-all"]);
    workspace.check_settled();
    let after = workspace.tables();
    assert_eq!((before["events"].len(), after["events"].len()), (15, 12));
    assert!(after["events"].iter().all(|row| !row.contains("live/b") && !row.contains("old/y")));
    (before, after)
}

#[test]
fn a_full_refresh_killed_at_any_step_leaves_old_or_new_rows_and_can_be_repeated() {
    let (before, after) = refreshed();
    for_each_case("full refresh killed", &points(), Clone::clone, |point| {
        let workspace = shrunk();
        workspace.expect_killed(&format!("{point}=kill"), &["run", "--full-refresh-all"]);
        // Whoever reads now sees one generation or the other.
        for (table, rows) in workspace.tables() {
            assert!(rows == before[&table] || rows == after[&table], "{table}: {rows:?}");
        }
        workspace.expect(0, &["run", "--full-refresh-all"]);
        assert_same(&workspace.tables(), &after, "");
        workspace.check_settled();
        assert_eq!(workspace.updates()[1].1, "FAILED");
        workspace.expect(0, &["run"]);
        assert_same(&workspace.tables(), &after, "a run without new input");
    });
}

/// A plain run after the crash: `events` goes on in the generation in force; what streams from a table that was
/// rebuilt says that it has to be rebuilt too.
#[test]
fn after_a_killed_full_refresh_a_plain_run_goes_on_or_says_what_to_do() {
    let (before, after) = refreshed();
    let mut old_and_new = before["events"].clone();
    old_and_new.extend(after["events"].iter().filter(|row| row.contains("live/n")).cloned());
    old_and_new.sort();
    for_each_case("plain run after a killed full refresh", &points(), Clone::clone, |point| {
        let workspace = shrunk();
        workspace.expect_killed(&format!("{point}=kill"), &["run", "--full-refresh-all"]);
        let output = workspace.output("", &["run"]);
        let said = super::said(&output);
        let events = &workspace.tables()["events"];
        assert!(*events == old_and_new || *events == after["events"], "{events:?}\n{said}");
        match output.status.code() {
            Some(0) => assert_eq!(workspace.tables()["silver"].len(), events.len(), "{said}"),
            Some(1) => {
                assert!(said.contains("a stream only follows appends"), "{said}");
                assert!(said.contains("--full-refresh"), "{said}");
                workspace.expect(0, &["run", "--full-refresh", "silver"]);
                assert_eq!(workspace.tables()["silver"].len(), events.len());
            }
            other => panic!("{other:?}: {said}"),
        }
        workspace.check_settled();
    });
}

#[test]
fn a_full_refresh_that_fails_keeps_the_old_rows_or_ends_in_the_new_ones() {
    let (before, after) = refreshed();
    for_each_case("full refresh failed", &points(), Clone::clone, |point| {
        let workspace = shrunk();
        // With retries it gets through, but for the start, which no flow retries.
        let output = workspace.output(&format!("{point}=error"), &["run", "--full-refresh-all"]);
        let said = super::said(&output);
        match output.status.code() {
            Some(0) => assert_same(&workspace.tables(), &after, &said),
            Some(1) => {
                assert!(point.starts_with("full-refresh-started"), "{said}");
                assert_same(&workspace.tables(), &before, &said);
                workspace.expect(0, &["run", "--full-refresh-all"]);
                assert_same(&workspace.tables(), &after, "");
            }
            other => panic!("{other:?}: {said}"),
        }
        workspace.check_settled();
    });
}

#[test]
fn a_flow_that_fails_for_good_leaves_the_generation_in_force() {
    let workspace = Workspace::of("[limits]\nretries = 0\n", super::PIPELINE);
    workspace.feed_first();
    workspace.expect(0, &["run"]);
    let before = workspace.tables();
    for point in ["written@live", "committed@live:2", "committed@backfill", "promote"] {
        let said = workspace.expect_at(&format!("{point}=error"), 1, &["run", "--full-refresh", "events,silver"]);
        assert!(
            said.contains("full refresh of `events` did not finish: the old rows stay in force"),
            "{point}: {said}"
        );
        assert_eq!(workspace.tables()["events"], before["events"], "{point}");
        workspace.check_settled();
        assert_eq!(workspace.updates()[0].1, "FAILED");
    }
    // The commit was made: it is the new generation that is in force, whatever fails behind it.
    let said = workspace.expect_at("promoted=error", 1, &["run", "--full-refresh", "wide"]);
    assert!(!said.contains("old rows stay"), "{said}");
    workspace.expect(0, &["run"]);
    assert_eq!(workspace.tables()["wide"], before["wide"]);
    workspace.check_settled();
}

/// The definition that a generation was built with comes into force with it, whoever finishes the promotion.
#[test]
fn a_new_partitioning_is_applied_by_a_promotion_that_the_next_run_finishes() {
    let (table, partitioned) = (
        "CREATE OR REFRESH STREAMING TABLE silver\n",
        "CREATE OR REFRESH STREAMING TABLE silver PARTITIONED BY (kind)\n",
    );
    assert!(super::PIPELINE.contains(table));
    for point in ["promote", "promoted"] {
        let workspace = Workspace::fed();
        workspace.expect(0, &["run"]);
        let before = workspace.tables();
        workspace.write("transformations/pipeline.sql", &super::PIPELINE.replace(table, partitioned));
        let refusal = workspace.output("", &["run"]);
        assert_ne!(refusal.status.code(), Some(0), "the old table has no partitions: {}", super::said(&refusal));
        workspace.expect_killed(&format!("{point}=kill"), &["run", "--full-refresh", "silver"]);
        if point == "promote" {
            workspace.expect(0, &["run", "--full-refresh", "silver"]);
        }
        workspace.expect(0, &["run"]);
        assert!(workspace.table("silver").join("gen-2").is_dir() || workspace.table("silver").join("gen-3").is_dir());
        assert_same(&workspace.tables(), &before, point);
        workspace.check_settled();
    }
}
