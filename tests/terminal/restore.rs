//! However the workbench ends, the terminal is as it was: settings, screen, cursor, mouse, paste.

use std::os::unix::fs::PermissionsExt;

use super::{Example, MidUpdate, open, open_with, wait_until, wait_valid};
use crate::crash::for_each_case;

const SIZE: (u16, u16) = (80, 24);
const SIGNALS: [&str; 3] = ["TERM", "HUP", "INT"];

#[test]
fn signals_while_idle_or_a_popup_is_open_restore_the_terminal() {
    let mut cases = Vec::new();
    for signal in SIGNALS {
        for keys in ["", "r", "x", "?", ":", "/", "x F"] {
            cases.push((signal, keys));
        }
    }
    let example = Example::run("registration");
    for_each_case(
        "signals",
        &cases,
        |case| format!("{case:?}"),
        |(signal, keys)| {
            let terminal = open(&example.root, SIZE);
            wait_valid(&terminal);
            terminal.wait_for("COMPLETED");
            if !keys.is_empty() {
                let before = terminal.text();
                terminal.keys(keys);
                terminal.wait("the popup", |text| text != before);
            }
            terminal.signal(signal);
            assert_eq!(terminal.restored(), 0);
        },
    );
}

#[test]
fn an_update_that_runs_is_stopped_at_its_batch_boundary_before_the_end() {
    for_each_case(
        "ends",
        &["TERM", "HUP", "INT", "q"],
        |end| end.to_string(),
        |end| {
            let update = MidUpdate::start(SIZE, &[]);
            let terminal = &update.terminal;
            match *end {
                "q" => {
                    terminal.keys("q");
                    terminal.wait_for("An update runs");
                    terminal.keys("n");
                    terminal.wait_gone("An update runs");
                    terminal.keys("q");
                    terminal.wait_for("An update runs");
                    terminal.keys("s");
                }
                signal => terminal.signal(signal),
            }
            // The terminal is given back at once, while the batch goes on.
            terminal.wait_for("stopping the update at its batch boundary");
            terminal.look(|screen| assert!(!screen.alternate_screen() && !screen.hide_cursor()));
            update.go_on();
            assert_eq!(terminal.restored(), 0);
            assert_eq!(update.live_rows(), 6);
            assert_eq!(update.workspace.updates()[0].1, "CANCELED");
            update.workspace.expect(0, &["run"]);
            update.workspace.check_settled();
        },
    );
}

#[test]
fn a_ctrl_c_while_the_last_batch_is_waited_for_ends_at_once() {
    let update = MidUpdate::start(SIZE, &[]);
    update.terminal.signal("TERM");
    update.terminal.wait_for("press Ctrl-C to abort");
    // Raw mode is over: the kernel makes a signal of it, for the shell too, which a script's shell takes for its end.
    update.terminal.signal("INT");
    assert_eq!(update.terminal.restored(), 5);
    update.workspace.expect(0, &["run"]);
    assert_eq!(update.live_rows(), 9);
    update.workspace.check_settled();
}

/// Until it ends the terminal is the editor's; an interrupt is for the editor alone.
#[test]
fn signals_while_the_editor_runs_are_answered_after_it() {
    let example = Example::new("registration");
    let editor = example.root.join("editor");
    std::fs::write(&editor, "#!/bin/sh\ntrap '' INT\necho 'the editor is here'\nread -r line\n").unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    for_each_case(
        "signals",
        &SIGNALS,
        |signal| signal.to_string(),
        |signal| {
            let terminal = open_with(&example.root, SIZE, &[("VISUAL", editor.to_str().unwrap())]);
            wait_valid(&terminal);
            terminal.keys("e");
            terminal.wait_for("the editor is here");
            terminal.signal(signal);
            terminal.type_text("done\r");
            if *signal == "INT" {
                wait_valid(&terminal);
                terminal.keys("?");
                terminal.wait_for("Keys · Graph");
                terminal.keys("Ctrl-c");
                terminal.wait_gone("Keys · Graph");
                terminal.keys("q");
            }
            assert_eq!(terminal.restored(), 0);
        },
    );
}

#[test]
fn ctrl_c_twice_quits_when_nothing_runs() {
    let example = Example::new("registration");
    let terminal = open(&example.root, SIZE);
    wait_valid(&terminal);
    terminal.keys("Ctrl-c");
    terminal.wait_for("Ctrl-C again quits");
    terminal.keys("j Ctrl-c");
    terminal.wait_for("Ctrl-C again quits");
    terminal.keys("Ctrl-c");
    assert_eq!(terminal.restored(), 0);
}

#[test]
fn a_panic_restores_the_terminal_and_is_readable() {
    let panic = [("FLOWBENCH_PANIC_AT_KEY", "P")];
    let example = Example::new("registration");
    let terminal = open_with(&example.root, (120, 36), &panic);
    wait_valid(&terminal);
    terminal.keys("? P");
    assert_eq!(terminal.restored(), 101);
    let text = terminal.text();
    assert!(text.contains("FLOWBENCH_PANIC_AT_KEY is P") && text.contains("this is a bug in flowbench"), "{text}");

    let update = MidUpdate::start((120, 36), &panic);
    update.terminal.keys("P");
    assert_eq!(update.terminal.restored(), 101);
    update.workspace.expect(0, &["run"]);
    update.workspace.check_settled();
}

#[test]
fn a_window_that_is_closed_ends_the_program() {
    let example = Example::run("registration");
    let mut terminal = open(&example.root, SIZE);
    wait_valid(&terminal);
    let pid = terminal.pid();
    terminal.close();
    let process = std::path::PathBuf::from(format!("/proc/{pid}"));
    if std::path::Path::new("/proc/self").exists() {
        // A zombie has ended too: who waits for it is another's business.
        let has_ended =
            || std::fs::read_to_string(process.join("status")).map_or(true, |text| text.contains("State:\tZ"));
        wait_until("the end of the program", has_ended);
    }
    assert_eq!(example.rows(), "667");
}
