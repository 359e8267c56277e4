//! Two processes at once: one writes, any number read.

use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use super::kill::after_second_run;
use super::{Workspace, assert_same};

/// A run that waits at a fail point until it is let go; killed if the test ends before.
pub struct Paused {
    pub child: Child,
    go: PathBuf,
}

impl Paused {
    pub fn at(workspace: &Workspace, point: &str, arguments: &[&str]) -> Paused {
        let go = workspace.path().join("go");
        let child = workspace.spawn(&format!("{point}=pause({})", go.display()), arguments);
        let mut paused = Paused { child, go };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !paused.go.with_extension("reached").exists() {
            assert!(Instant::now() < deadline, "{point} was not reached");
            assert!(paused.child.try_wait().unwrap().is_none(), "the run ended before {point}");
            std::thread::sleep(Duration::from_millis(2));
        }
        paused
    }

    /// Lets it go on to its end, and returns its exit code.
    pub fn finish(mut self) -> Option<i32> {
        std::fs::write(&self.go, "").unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_second_writer_is_refused_and_readers_work_while_one_writes() {
    for point in
        ["planned@live", "written@live:2", "committed@live:2", "marked@silver", "committed@gold", "maintenance"]
    {
        let workspace = Workspace::fed();
        workspace.expect(0, &["run"]);
        workspace.feed_second();
        let paused = Paused::at(&workspace, point, &["run"]);
        let pid = paused.child.id().to_string();
        for second in
            [&["run"] as &[&str], &["run", "--full-refresh-all"], &["reset", "live", "--yes"], &["doctor", "--repair"]]
        {
            let said = workspace.expect(1, second);
            assert!(said.contains("error[workspace-locked]") && said.contains(&pid), "{point} {second:?}: {said}");
        }
        for reader in [
            &["status"] as &[&str],
            &["show", "gold"],
            &["sql", "SELECT count(*) FROM events"],
            &["updates"],
            &["events"],
            &["describe", "silver"],
            &["validate"],
            &["run", "--plan"],
        ] {
            workspace.expect(0, reader);
        }
        // A materialized view is never seen empty, a batch never in part.
        let events = workspace.rows("SELECT id FROM events").len();
        assert!(events >= 15 && events.is_multiple_of(3), "{point}: {events}");
        assert_eq!(workspace.rows("SELECT kind FROM gold").len(), 3, "{point}");
        assert_eq!(workspace.updates()[0].1, "RUNNING", "{point}");
        assert_eq!(paused.finish(), Some(0), "{point}");
        assert_same(&workspace.tables(), &after_second_run(), point);
        workspace.check_settled();
    }
}

#[test]
fn the_lock_dies_with_its_process() {
    let workspace = Workspace::fed();
    let mut paused = Paused::at(&workspace, "written@live", &["run"]);
    paused.child.kill().unwrap();
    paused.child.wait().unwrap();
    workspace.expect(0, &["run"]);
}
