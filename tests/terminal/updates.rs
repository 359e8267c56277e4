//! Updates of other processes, cancel, reset, full refresh, SIGKILL.

use super::{Example, MidUpdate, SIZES, differences, files, open, wait_valid};
use crate::crash::Workspace;
use crate::crash::writers::Paused;

#[test]
fn an_update_of_another_process_shows_live_without_a_key() {
    for size in SIZES {
        let workspace = Workspace::fed();
        let terminal = open(workspace.path(), size);
        wait_valid(&terminal);
        terminal.keys("2");
        terminal.wait_for("Flows · never run");

        let paused = Paused::at(&workspace, "written@live:2", &["run"]);
        terminal.wait_for("update #1 RUNNING");
        terminal.wait_for("elsewhere");
        // The first batch of `live` is committed, and seen.
        terminal.wait("the batch of the flow", |text| {
            text.lines().any(|line| line.contains("live ") && line.contains("RUNNING") && line.contains(" 3 "))
        });
        // It can't be stopped from here, and that is said.
        terminal.keys("Ctrl-c");
        terminal.wait_for("stop it there with Ctrl-C");
        assert_eq!(paused.finish(), Some(0));
        terminal.wait_for("update #1 COMPLETED");
        terminal.wait("all states", |text| text.matches("✔ COMPLETED").count() >= 5);

        // Its rows are there to be seen.
        terminal.keys("1 / e v e n t s Enter 3");
        terminal.wait_for("of 15");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
    }
}

#[test]
fn a_cancel_is_acknowledged_at_once_and_ends_at_a_batch_boundary() {
    for size in SIZES {
        let update = MidUpdate::start(size, &[]);
        let terminal = &update.terminal;
        // The engine hangs in a batch; the screen answers nevertheless.
        terminal.keys("Ctrl-c");
        terminal.wait_for("stopping…");
        terminal.keys("2");
        terminal.wait_for("Flows · update 1");
        terminal.keys("Ctrl-c");
        terminal.wait_for("still stopping");
        update.go_on();
        terminal.wait_for("update #1 CANCELED");
        // The second batch was on its way and is whole; the third never began.
        assert_eq!(update.live_rows(), 6);
        assert_eq!(update.workspace.updates()[0].1, "CANCELED");

        terminal.keys("r r");
        terminal.wait_for("update #2 COMPLETED");
        assert_eq!(update.live_rows(), 9);
        update.workspace.check_settled();
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
    }
}

#[test]
fn a_reset_shows_what_it_does_and_writes_nothing_until_it_is_confirmed() {
    const FLOW: &str = "registration_events_raw_incremental";
    let example = Example::run("registration");
    for size in SIZES {
        let terminal = open(&example.root, size);
        wait_valid(&terminal);
        terminal.wait_for("COMPLETED");
        let before = files(&example.root);
        terminal.keys("x");
        terminal.wait_for(&format!("= flowbench reset {FLOW} --yes"));
        terminal.wait_for("194 rows would be in");
        terminal.keys("c");
        terminal.wait_for("Confirm: reset checkpoint");
        terminal.wait_for("194 rows would be in");
        // The wrong word is no yes.
        terminal.keys("y Enter");
        terminal.wait_for("Confirm: reset checkpoint");
        terminal.keys("Esc");
        terminal.wait_gone("Confirm");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
        assert_eq!(differences(&before, &files(&example.root)), Vec::<std::path::PathBuf>::new());
    }

    // Wide enough for the sentence and the command line behind it.
    let terminal = open(&example.root, (160, 45));
    wait_valid(&terminal);
    terminal.wait_for("COMPLETED");
    terminal.keys("x c");
    terminal.wait_for("194 rows would be in");
    terminal.type_text(FLOW);
    terminal.keys("Enter");
    terminal.wait_for("reset; the rows stay");
    terminal.wait_for(&format!("= flowbench reset {FLOW} --yes"));
    terminal.keys("r r");
    terminal.wait_for("update #2 COMPLETED");
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
    // What was said would happen did.
    assert_eq!(example.rows(), (667 + 194).to_string());
}

#[test]
fn a_full_refresh_shows_what_it_does_and_writes_nothing_until_it_is_confirmed() {
    let example = Example::run("registration");
    for size in SIZES {
        let terminal = open(&example.root, size);
        wait_valid(&terminal);
        terminal.wait_for("COMPLETED");
        let before = files(&example.root);
        terminal.keys("x F");
        terminal.wait_for("Confirm: full refresh");
        for fact in ["builds", "drops", "667 rows", "keeps", "backfills run again", "flowbench run --full-refresh"] {
            terminal.wait_for(fact);
        }
        terminal.keys("Esc");
        terminal.wait_gone("Confirm");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
        assert_eq!(differences(&before, &files(&example.root)), Vec::<std::path::PathBuf>::new());
    }

    let terminal = open(&example.root, (120, 36));
    wait_valid(&terminal);
    terminal.wait_for("COMPLETED");
    terminal.keys("x F");
    terminal.wait("the plan", |text| text.contains("Confirm: full refresh") && !text.contains("looking at files"));
    terminal.keys("y");
    terminal.wait_for("update #2 COMPLETED");
    terminal.wait_for("= flowbench run --full-refresh registration_events_raw --yes");
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
    assert_eq!(example.rows(), "667");
}

#[test]
fn a_menu_that_is_open_hears_that_the_files_were_mended() {
    const SQL: &str = "transformations/registration.sql";
    let example = Example::new("registration");
    let good = example.read(SQL);
    example.save(SQL, &good.replace("year(timestamp)", "year(timestampp)"));
    let terminal = open(&example.root, (80, 24));
    terminal.wait_for("unknown column");
    terminal.keys("r");
    terminal.wait_for("1 error to mend first");
    example.save(SQL, &good);
    terminal.wait_gone("1 error to mend first");
    terminal.keys("r");
    terminal.wait_for("update #1 COMPLETED");
}

#[test]
fn after_sigkill_the_workspace_opens_and_runs() {
    for point in ["planned@live:2", "written@live:2", "committed@live:2"] {
        let workspace = Workspace::fed();
        let kill = format!("{point}=kill");
        let terminal = super::open_with(workspace.path(), (120, 36), &[("FLOWBENCH_FAIL_POINT", &kill)]);
        wait_valid(&terminal);
        terminal.keys("r r");
        assert_eq!(terminal.ended(), 128 + 9, "{point}");

        let terminal = open(workspace.path(), (120, 36));
        wait_valid(&terminal);
        // The update that died is known, and is not taken for one that runs.
        terminal.wait("the dead update", |text| text.contains("update #1") && !text.contains("RUNNING"));
        terminal.keys("r r");
        terminal.wait_for("update #2 COMPLETED");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
        workspace.check_settled();
        let rows = workspace.rows("SELECT id FROM events");
        assert_eq!(rows.len(), 15, "{point}");
    }
}
