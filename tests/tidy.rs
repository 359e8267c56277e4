//! House rules: who may use what, words that don't belong, files that nobody reads.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below `folder` with this extension, and their texts.
fn files(folder: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder is read") {
            let path = entry.expect("an entry is read").path();
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|e| e == extension) => {
                    let text = std::fs::read_to_string(&path).expect("a file is text");
                    found.push((path, text));
                }
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// The text before its tests.
fn code(text: &str) -> &str {
    ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\npub(crate) mod tests {"]
        .iter()
        .filter_map(|begin| text.find(begin))
        .min()
        .map_or(text, |at| &text[..at])
}

#[test]
fn imports_go_one_way() {
    let rules: [(&str, &[&str]); 4] = [
        ("src/pipeline", &["tokio::", "std::fs", "SystemTime", "Instant::now", "datafusion", "arrow::", "deltalake"]),
        ("src/engine", &["ratatui", "crossterm", "clap::", "println!", "eprintln!"]),
        ("src/tui", &["engine::", "arrow::", "datafusion", "rusqlite", "std::fs", "println!", "SystemTime"]),
        ("src/cli", &["datafusion", "arrow::", "deltalake", "rusqlite"]),
    ];
    for (folder, forbidden) in rules {
        let sources = files(folder, "rs");
        assert!(sources.len() > 5, "{folder} has moved");
        for (path, text) in sources {
            // Test modules may read data files and say why they skip.
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.contains("tests") || name.contains("cases") || path.components().any(|c| c.as_os_str() == "tests") {
                continue;
            }
            for (number, line) in code(&text).lines().enumerate() {
                let is_prose = line.trim_start().starts_with("//");
                let used = forbidden.iter().find(|word| !is_prose && line.contains(**word));
                assert!(used.is_none(), "{}:{}: `{}` does not belong here", path.display(), number + 1, used.unwrap());
            }
        }
    }
}

#[test]
fn the_workbench_changes_its_state_without_looking_at_the_world() {
    let world = ["std::io", "std::env", "std::process", "std::thread", "tokio::", "crossterm", "Instant", "rand::"];
    for (path, text) in files("src/tui", "rs") {
        // Tests may read their cases.
        if path.ends_with("terminal.rs") || path.ends_with("cases.rs") {
            continue;
        }
        for (number, line) in code(&text).lines().enumerate() {
            let used = world.iter().find(|word| !line.trim_start().starts_with("//") && line.contains(**word));
            assert!(used.is_none(), "{}:{}: `{}` belongs into terminal.rs", path.display(), number + 1, used.unwrap());
        }
    }
}

#[test]
fn every_source_file_says_what_it_is() {
    for folder in ["src", "tests"] {
        for (path, text) in files(folder, "rs") {
            assert!(text.starts_with("//!"), "{} doesn't begin with what lives in it", path.display());
        }
    }
}

#[test]
fn nothing_is_left_unfinished() {
    for (path, text) in files("src", "rs") {
        for word in ["todo!(", "unimplemented!(", "#[ignore", "dbg!("] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
    }
}

#[test]
fn clock_is_asked_in_one_place() {
    for (path, text) in files("src/engine", "rs") {
        let is_allowed = ["clock.rs", "writer.rs", "maintenance.rs", "fail_point.rs", "watch.rs"]
            .iter()
            .any(|name| path.file_name().is_some_and(|file| file == *name));
        assert!(is_allowed || !code(&text).contains("SystemTime::now"), "{}", path.display());
    }
}

#[test]
fn the_code_map_names_every_file_and_folder() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    let map = text.split("## Code map").nth(1).and_then(|rest| rest.split("## Invariants").next()).unwrap();
    for folder in ["src/pipeline", "src/engine", "src/tui"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            let is_told = ["lib.rs", "Cargo.toml", "tests"].contains(&name.as_str());
            // A module is named as `name.rs` or `name/`.
            let stem = name.trim_end_matches(".rs");
            let is_named = map.contains(&format!("{stem}.rs")) || map.contains(&format!("{stem}/"));
            assert!(is_told || is_named, "{folder}/{name} is not in the code map of docs/ARCHITECTURE.md");
        }
    }
}
