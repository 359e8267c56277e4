//! What a person does first: look, break and mend a file, run, see rows, open the editor, use the mouse.

use super::{Example, SIZES, open, open_with, wait_until, wait_valid};

const SQL: &str = "transformations/registration.sql";

#[test]
fn a_file_is_broken_and_mended_and_its_rows_are_seen() {
    for size in SIZES {
        let example = Example::new("registration");
        let terminal = open(&example.root, size);
        wait_valid(&terminal);
        terminal.wait_for("never run");

        // No key is pressed until the verdict is back and forth again.
        let good = example.read(SQL);
        let broken = good.replace("year(timestamp)", "year(timestampp)");
        let line = 1 + broken.lines().position(|line| line.contains("timestampp")).unwrap();
        example.save(SQL, &broken);
        terminal.wait_for(&format!("{SQL}:{line}:12"));
        let shown = terminal.wait_for("did you mean `timestamp`?");
        assert!(shown.elapsed().as_secs() < 60);
        // The graph of before stays, and says so.
        terminal.wait_for("rev 1 (last good)");
        terminal.wait_for("✖ invalid");
        let text = terminal.text();
        assert!(text.contains("◇") || text.contains("← 1×"), "{text}");
        example.save(SQL, &good);
        wait_valid(&terminal);
        terminal.wait_gone("last good");

        terminal.keys("r");
        terminal.wait_for("= flowbench run");
        terminal.keys("r");
        terminal.wait_for("COMPLETED");
        terminal.wait_for("667 rows");
        terminal.keys(".");
        terminal.wait_for("row 1 of 667");
        terminal.wait_for("enterprise");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
        assert_eq!(example.rows(), "667");
    }
}

#[test]
fn a_new_file_shows_as_a_new_dataset_without_a_key() {
    let example = Example::new("registration");
    let terminal = open(&example.root, (120, 36));
    wait_valid(&terminal);
    example.save(
        "transformations/by_year.sql",
        "CREATE OR REFRESH MATERIALIZED VIEW by_year\nAS SELECT count(*) AS n FROM registration_events_raw;\n",
    );
    terminal.wait_for("▤ by_year");
    terminal.wait_for("by_year.sql");
    std::fs::remove_file(example.root.join("transformations/by_year.sql")).unwrap();
    terminal.wait_gone("by_year");
}

#[test]
fn the_editor_opens_at_the_place_and_gives_the_terminal_back() {
    let example = Example::new("registration");
    // Named like an editor whose arguments are known.
    let editor = example.root.join("nano");
    let script = r#"#!/bin/sh
stty -g > "$0.settings"
echo "$@" > "$0.arguments"
echo 'the editor is here'
read -r line
echo "$line" > "$0.line"
sed -i s/timestampp/timestamp/ "$2"
"#;
    std::fs::write(&editor, script).unwrap();
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let note = |name: &str| std::fs::read_to_string(editor.with_extension(name)).unwrap();
    let good = example.read(SQL);
    example.save(SQL, &good.replace("year(timestamp)", "year(timestampp)"));
    for size in SIZES {
        example.save(SQL, &good.replace("year(timestamp)", "year(timestampp)"));
        let terminal = open_with(&example.root, size, &[("EDITOR", editor.to_str().unwrap())]);
        terminal.wait_for("unknown column");
        terminal.keys("] d e");
        terminal.wait_for("the editor is here");
        terminal.look(|screen| {
            assert!(!screen.alternate_screen() && !screen.hide_cursor());
            assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        });
        // Every key is the editor's.
        terminal.type_text("all of these are for the editor q q q\r");
        wait_valid(&terminal);
        terminal.wait_for("1 Graph 2 Runs 3 Data 5 Log");
        assert_eq!(note("line").trim(), "all of these are for the editor q q q");
        let path = example.root.join(SQL).canonicalize().unwrap();
        let line = 1 + good.lines().position(|line| line.contains("year(timestamp)")).unwrap();
        assert_eq!(note("arguments").trim(), format!("+{line},12 {}", path.display()));
        terminal.look(|screen| assert!(screen.alternate_screen()));
        terminal.keys("?");
        terminal.wait_for("Keys · Graph");
        terminal.keys("Esc");
        terminal.wait_gone("Keys · Graph");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
        // What the editor found was the terminal of the shell.
        assert_eq!(note("settings").trim(), terminal.settings_before());
    }
}

#[test]
fn an_editor_that_cannot_be_started_is_said() {
    let example = Example::new("registration");
    let terminal = open_with(&example.root, (120, 36), &[("EDITOR", "no-such-editor --wait")]);
    wait_valid(&terminal);
    terminal.keys("e");
    terminal.wait_for("cannot start `no-such-editor`");
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
}

#[test]
fn every_screen_and_popup_opens_by_its_key() {
    let example = Example::run("registration");
    for size in SIZES {
        let terminal = open_with(&example.root, size, &[("EDITOR", "no-such-editor")]);
        wait_valid(&terminal);
        terminal.wait_for("update #1 COMPLETED");
        for (key, shown) in
            [("2", "Flows · update 1"), ("3", "row 1 of 667"), ("5", "Event log · follows"), ("1", "Graph · ")]
        {
            terminal.keys(key);
            terminal.wait_for(shown);
        }

        terminal.keys("?");
        terminal.wait_for("Keys · Graph");
        terminal.type_text("full refreshes");
        terminal.wait("one key", |text| text.contains("Resets checkpoints") && !text.contains("Starts an update"));
        terminal.keys("Enter");
        terminal.wait_for("full refresh of everything");
        terminal.keys("Esc");
        terminal.wait_gone("full refresh of everything");

        terminal.keys(":");
        terminal.wait_for("Palette");
        terminal.type_text("event log");
        terminal.wait_for("Shows the event log");
        terminal.keys("Enter");
        terminal.wait_for("Event log · follows");
        terminal.keys("f");
        terminal.wait_gone("INFO");
        terminal.keys("Esc");
        terminal.wait_for("Graph · ");

        terminal.keys("/");
        terminal.type_text("backfill_2023");
        terminal.wait_for("1 match");
        terminal.keys("Enter e");
        // The flow that was found is what the editor would open.
        terminal.wait_for("cannot start `no-such-editor`");

        terminal.keys("]");
        terminal.wait_for("d next issue");
        terminal.keys("d");
        terminal.wait_gone("d next issue e");
        terminal.keys("z");
        terminal.wait("one pane", |text| text.matches('╭').count() == 1);
        terminal.keys("z");
        terminal.wait("all panes", |text| text.matches('╭').count() > 1);
        let before = terminal.text();
        let written = terminal.written().0;
        terminal.keys("Ctrl-l");
        // Every cell is written anew, and is what it was.
        let cells = usize::from(size.0) * usize::from(size.1) / 2;
        wait_until("a whole screen", || terminal.written().0 > written + cells);
        terminal.wait("the same screen", |text| text == before);
        assert_eq!(terminal.questions(), 0, "no round trip to the terminal");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
    }
}

/// Clicks and the wheel, at where the texts stand.
#[test]
fn the_mouse_chooses_opens_and_scrolls() {
    let example = Example::run("registration");
    for size in SIZES {
        let terminal = open(&example.root, size);
        wait_valid(&terminal);
        terminal.wait_for("update #1 COMPLETED");
        terminal.click(terminal.place("2 Runs"));
        terminal.wait_for("Flows · update 1");
        terminal.click(terminal.place("1 Graph"));
        terminal.wait_for("Preview registration");
        terminal.click(terminal.place("Preview registration"));
        terminal.wait_for("row 1 of 667");
        terminal.wheel(true, terminal.place("enterprise"));
        terminal.wait_for("row 4 of 667");
        terminal.wheel(false, terminal.place("enterprise"));
        terminal.wait_for("row 1 of 667");
        terminal.click(terminal.place("Schema"));
        terminal.wait_for("BIGINT");
        terminal.click(terminal.place("x reset"));
        terminal.wait_for("full refresh of everything");
        // Beside the popup: it closes.
        terminal.click((0, 0));
        terminal.wait_gone("full refresh of everything");
        terminal.click(terminal.place("q quit"));
        assert_eq!(terminal.restored(), 0);
    }
}
