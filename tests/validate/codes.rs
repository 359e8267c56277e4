//! Every code that the program can give a diagnostic has a case that shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Codes without a case, each with the reason.
const WITHOUT_CASE: [(&str, &str); 1] =
    [("no-settings", "a folder without flowbench.toml is no workspace: the engine refuses it before anything is read")];

/// Calls whose first argument is a code.
const CALLS: [&str; 3] = ["Diagnostic::error(", "Diagnostic::warning(", "Diagnostic::note("];

#[test]
fn every_code_has_a_case() {
    let mut emitted: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, text) in files("src", &["rs"]) {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for call in CALLS {
            for (at, _) in code.match_indices(call) {
                let rest = code[at + call.len()..].trim_start().trim_start_matches('"');
                let word: String =
                    rest.chars().take_while(|c| c.is_ascii_lowercase() || matches!(c, '-' | '0'..='9')).collect();
                if rest[word.len()..].starts_with('"') && !word.is_empty() {
                    emitted.entry(word).or_insert(path.clone());
                }
            }
        }
    }
    assert!(emitted.len() > 60, "the sources are found: {}", emitted.len());
    let mut shown: BTreeSet<String> = BTreeSet::new();
    for (_, text) in files("tests", &["case", "slt", "txt"]) {
        for part in text.split('[').skip(1) {
            shown.extend(part.split_once(']').map(|(code, _)| code.to_string()));
        }
    }
    let reasons: BTreeMap<&str, &str> = WITHOUT_CASE.into_iter().collect();
    let missing: Vec<String> = emitted
        .iter()
        .filter(|(code, _)| !shown.contains(*code) && !reasons.contains_key(code.as_str()))
        .map(|(code, path)| format!("{code} ({})", path.display()))
        .collect();
    assert!(missing.is_empty(), "{} of {} codes have no case:\n{}", missing.len(), emitted.len(), missing.join("\n"));
    let stale: Vec<_> = reasons.keys().filter(|code| shown.contains(**code) || !emitted.contains_key(**code)).collect();
    assert!(stale.is_empty(), "these need no exception: {stale:?}");
}

fn files(folder: &str, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut open, mut found) = (vec![root.join(folder)], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
                found.push((path.strip_prefix(root).unwrap().to_path_buf(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}
