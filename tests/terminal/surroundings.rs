//! Sizes, pastes, no colours, ASCII, no terminal; broken, empty and missing workspaces.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Example, MidUpdate, SIZES, differences, files, open, open_with, wait_valid};
use crate::fixture::TestWorkspace;

#[test]
fn opening_runs_no_flow_and_writes_nothing() {
    for example in [Example::new("registration"), Example::run("medallion")] {
        let before = files(&example.root);
        let terminal = open(&example.root, (120, 36));
        wait_valid(&terminal);
        for (key, shown) in [("2", "Flows · "), ("3", "Preview"), ("5", "Event log"), ("1", "Graph · ")] {
            terminal.keys(key);
            terminal.wait_for(shown);
        }
        terminal.keys("r");
        terminal.wait("a plan", |text| text.contains("= flowbench run") && !text.contains("looking at files"));
        terminal.keys("Esc");
        terminal.wait_gone("= flowbench run ");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
        assert_eq!(differences(&before, &files(&example.root)), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn every_size_draws_and_keeps_the_keys() {
    let example = Example::run("registration");
    let terminal = open(&example.root, (80, 24));
    wait_valid(&terminal);
    terminal.wait_for("COMPLETED");
    // As fast as a window is dragged, with keys in between.
    let sizes = [(1, 1), (2, 50), (300, 1), (39, 11), (40, 12), (300, 100), (79, 23), (80, 24), (7, 3), (160, 45)];
    for round in 0..5 {
        for (n, (columns, rows)) in sizes.into_iter().enumerate() {
            terminal.resize(columns, rows);
            if (n + round) % 3 == 0 {
                terminal.keys(["j", "Tab", ".", "2", "1"][round]);
            }
        }
    }
    terminal.resize(30, 5);
    terminal.wait_for("too small");
    terminal.resize(40, 12);
    terminal.wait("the smallest screen", |text| text.contains("q quit") && text.lines().count() == 12);
    for (columns, rows) in [(300, 100), (120, 36), (80, 24)] {
        terminal.resize(columns, rows);
        terminal.wait_for("1 Graph 2 Runs 3 Data 5 Log");
        for key in ["5", "1"] {
            terminal.keys(key);
            terminal.wait_for(if key == "5" { "Event log" } else { "Graph · " });
        }
        // The hints and the message are the last two lines, whatever was there before.
        terminal.wait("the hints", |text| {
            text.lines().nth(usize::from(rows) - 2).is_some_and(|line| line.contains("q quit"))
        });
    }
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
}

#[test]
fn a_resize_while_an_update_runs_and_a_popup_is_open() {
    let update = MidUpdate::start((80, 24), &[]);
    let terminal = &update.terminal;
    for keys in ["?", "x"] {
        terminal.keys(keys);
        for (columns, rows) in [(40, 12), (1, 1), (300, 100), (60, 15)] {
            terminal.resize(columns, rows);
        }
        terminal.resize(80, 24);
        terminal.wait_for("Esc closes");
        terminal.keys("Esc");
        terminal.wait_gone("Esc closes");
    }
    update.go_on();
    terminal.wait_for("COMPLETED");
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
}

#[test]
fn a_paste_of_a_megabyte_leaves_the_keys_alive() {
    let example = Example::new("registration");
    let terminal = open(&example.root, (80, 24));
    wait_valid(&terminal);
    // Every letter of it is a key, quit and reset among them; pasted they mean nothing.
    let text = "qxFyrrq\n\u{1b}[Aé".repeat((1 << 20) / 15);
    terminal.paste(&text);
    terminal.keys("2");
    terminal.wait_for("Flows · never run");
    terminal.keys("1");
    terminal.wait_for("Graph · ");
    for key in ["/", "?", ":"] {
        terminal.keys(key);
        terminal.wait("where one types", |text| {
            text.contains(&format!("{} ▏", if key == "?" { "/" } else { key })) || text.contains("/▏")
        });
        terminal.paste(&"pasted ".repeat(150_000));
        terminal.wait_for("pasted");
        terminal.keys("Esc");
        terminal.wait_gone("pasted");
    }
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
}

/// The parameters of every SGR sequence.
fn colours(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let mut found = Vec::new();
    for piece in text.split("\x1b[").skip(1) {
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':');
        let Some(end) = end.filter(|end| piece[*end..].starts_with('m')) else { continue };
        let is_colour = |code: &str| matches!(code.parse(), Ok(30..=38 | 40..=48 | 90..=107));
        if piece[..end].split([';', ':']).any(is_colour) {
            found.push(piece[..end].to_string());
        }
    }
    found
}

#[test]
fn no_color_is_heeded_and_the_screen_reads_the_same() {
    let example = Example::run("registration");
    let mut texts = Vec::new();
    for environment in [&[("NO_COLOR", "1")][..], &[]] {
        let terminal = open_with(&example.root, (120, 36), environment);
        wait_valid(&terminal);
        for (key, shown) in [("2", "✔ COMPLETED"), ("5", "INFO"), ("?", "Keys · Log")] {
            terminal.keys(key);
            terminal.wait_for(shown);
        }
        terminal.keys("Esc");
        terminal.wait_gone("Keys · Log");
        texts.push(terminal.text());
        let found = colours(&terminal.output());
        assert_eq!(found.is_empty(), !environment.is_empty(), "{found:?}");
        // The cursor is seen without colours.
        terminal.look(|screen| {
            let (rows, columns) = screen.size();
            let mut cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
            assert!(cells.any(|(row, column)| screen.cell(row, column).is_some_and(vt100::Cell::inverse)));
        });
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
    }
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn ascii_is_heeded_on_every_screen() {
    let example = Example::run("medallion");
    for environment in [[("FLOWBENCH_ASCII", "1"), ("LANG", "C.UTF-8")], [("FLOWBENCH_ASCII", ""), ("LANG", "C")]] {
        for size in SIZES {
            let terminal = open_with(&example.root, size, &environment);
            wait_valid(&terminal);
            terminal.wait_for("COMPLETED");
            for (keys, shown) in [
                (".", "row 1 of"),
                (".", "STRING"),
                ("L", "Graph"),
                ("L", "Graph"),
                ("2", "Flows"),
                ("3", "Preview"),
                ("5", "Event log"),
                ("Enter", "Esc closes"),
                ("Esc", "Event log"),
                ("?", "Keys"),
                ("Esc", "Event log"),
                (":", "Palette"),
                ("Esc", "Event log"),
                ("1", "Graph"),
                ("x", "full refresh of everything"),
                ("Esc", "Graph"),
                ("r", "everything that has new input"),
            ] {
                terminal.keys(keys);
                terminal.wait(&format!("`{shown}` after {keys}"), |text| {
                    text.contains(shown) && (keys != "Esc" || !text.contains("Esc closes"))
                });
                let text = terminal.text();
                assert!(text.is_ascii(), "{size:?} {keys}\n{text}");
            }
        }
    }
}

#[test]
fn without_a_terminal_the_status_is_printed() {
    let example = Example::run("registration");
    let terminal = open_with(&example.root, (120, 36), &[("TERM", "dumb")]);
    assert_eq!(terminal.restored(), 0);
    let text = terminal.text();
    assert!(text.contains("registration_events_raw") && text.contains("COMPLETED"), "{text}");
    let output = terminal.output();
    assert!(!output.contains(&0x1b), "{:?}", String::from_utf8_lossy(&output));

    let mut command = Command::new(env!("CARGO_BIN_EXE_flowbench"));
    let output = command.current_dir(&example.root).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("registration_events_raw") && !text.contains('\x1b'), "{text}");
}

#[test]
fn a_broken_workspace_file_is_told_and_mended_live() {
    for size in SIZES {
        let example = Example::new("registration");
        let good = example.read("flowbench.toml");
        example.save("flowbench.toml", "[pipeline\nname = ");
        let terminal = open(&example.root, size);
        terminal.wait_for("flowbench.toml");
        terminal.wait("that it can't be read", |text| !text.contains(" valid ") && !text.contains("reading…"));
        // The keys are alive, and say why they can't.
        terminal.keys("2");
        terminal.wait_for("Flows · never run");
        terminal.keys("1 ?");
        terminal.wait_for("Keys · Graph");
        terminal.keys("Esc");
        terminal.wait_gone("Keys · Graph");
        example.save("flowbench.toml", &good);
        wait_valid(&terminal);
        // Broken again, what was known stays.
        example.save("flowbench.toml", "[[source]]\nname = 3\n");
        terminal.wait_gone(" valid ");
        terminal.wait("the graph", |text| text.contains("registration_events_raw"));
        example.save("flowbench.toml", &good);
        wait_valid(&terminal);
        terminal.keys("r r");
        terminal.wait_for("COMPLETED");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
    }
}

#[test]
fn a_workspace_without_datasets_says_so_and_takes_its_first_file() {
    let workspace = TestWorkspace::empty();
    workspace.write("flowbench.toml", "");
    let terminal = open(workspace.root(), (80, 24));
    terminal.wait_for("no dataset is defined yet");
    terminal.keys("r r");
    terminal.keys("Esc");
    terminal.wait_for("no dataset is defined yet");
    workspace.write("transformations/a.sql", "CREATE OR REFRESH MATERIALIZED VIEW numbers AS SELECT 1 AS one;\n");
    terminal.wait_for("numbers");
    wait_valid(&terminal);
    terminal.keys("r r");
    terminal.wait_for("COMPLETED");
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
}

#[test]
fn a_folder_that_is_gone_is_told_and_the_keys_stay_alive() {
    let example = Example::new("registration");
    let terminal = open(&example.root, (80, 24));
    wait_valid(&terminal);
    let moved = example.root.with_extension("moved");
    std::fs::rename(&example.root, &moved).unwrap();
    terminal.wait_gone(" valid ");
    terminal.keys("5");
    terminal.wait_for("Event log");
    std::fs::rename(&moved, &example.root).unwrap();
    wait_valid(&terminal);
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
}

#[test]
fn a_folder_without_a_workspace_says_how_to_make_one() {
    let folder = TestWorkspace::empty();
    let terminal = open(folder.root(), (120, 36));
    assert_ne!(terminal.restored(), 0);
    let text = terminal.text();
    assert!(text.contains("flowbench.toml") && text.contains("flowbench init"), "{text}");
    assert!(files(folder.root()).is_empty());

    let terminal = super::Terminal::start(&super::Start {
        columns: 80,
        rows: 24,
        program: Path::new(env!("CARGO_BIN_EXE_flowbench")),
        arguments: vec!["no/such/folder"],
        folder: folder.root(),
        environment: Vec::new(),
    });
    assert_eq!(terminal.restored(), 2);
    assert!(terminal.text().contains("neither a command nor a workspace folder"), "{}", terminal.text());
}

/// Two thousand keys of every kind, typed faster than they are drawn.
#[test]
fn a_storm_of_keys_leaves_the_program_alive() {
    let example = Example::run("registration");
    let before = example.rows();
    let terminal = open(&example.root, (80, 24));
    wait_valid(&terminal);
    // No key that starts, confirms or edits.
    let keys = [
        "j", "k", "h", "l", "Tab", ".", ",", "z", "2", "1", "3", "5", "PageDown", "PageUp", "F", "+", "L", "Space",
        "]", "d", "n",
    ];
    for n in 0..2_000_usize {
        terminal.keys(keys[(n * 7919 + n / 21) % keys.len()]);
    }
    // The first key may end a sequence that is begun.
    terminal.keys("j 5");
    terminal.wait_for("Event log");
    terminal.keys("?");
    terminal.wait_for("Keys · Log");
    terminal.keys("Esc");
    terminal.wait_gone("Keys · Log");
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
    assert_eq!(example.rows(), before);
}
