//! Ctrl-C and SIGTERM: the run stops at a batch boundary, exit 5, and the next one completes.

use std::process::Command;

use super::kill::after_first_run;
use super::writers::Paused;
use super::{Workspace, assert_same, for_each_case};

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_signal_stops_at_a_batch_boundary_and_the_next_run_completes() {
    let expected = after_first_run();
    let mut cases = Vec::new();
    for name in ["INT", "TERM"] {
        for point in [
            "plan@live",
            "planned@live:2",
            "written@live:2",
            "committed@live",
            "marked@live:2",
            "written@backfill",
            "written@silver",
            "written@gold",
            "maintenance",
        ] {
            cases.push((name, point));
        }
    }
    for_each_case(
        "signals",
        &cases,
        |case| format!("{case:?}"),
        |(name, point)| {
            let workspace = Workspace::fed();
            let paused = Paused::at(&workspace, point, &["run"]);
            signal(name, paused.child.id());
            // The signal is handled by another thread; the pause goes on meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert_eq!(paused.finish(), Some(5));
            assert_eq!(workspace.updates()[0].1, "CANCELED");
            let stored = workspace.rows("SELECT count(*) AS n FROM events");
            workspace.expect(0, &["run"]);
            assert_same(&workspace.tables(), &expected, &stored[0]);
            workspace.check_settled();
        },
    );
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let workspace = Workspace::fed();
    let mut paused = Paused::at(&workspace, "written@live:2", &["run"]);
    signal("INT", paused.child.id());
    std::thread::sleep(std::time::Duration::from_millis(100));
    signal("INT", paused.child.id());
    assert_eq!(paused.child.wait().unwrap().code(), Some(5));
    drop(paused);
    workspace.expect(0, &["run"]);
    assert_same(&workspace.tables(), &after_first_run(), "");
    assert_eq!(workspace.updates()[1].1, "FAILED");
}
