//! Runs `tests/validate/*.case`. A case is a list of steps; each begins with `> ` and a word. What follows, up to
//! the next step, is a file's content or what the step is expected to say:
//!
//! ```text
//! > FILE path              the lines below become a file; the first one makes flowbench.toml unless the case has
//!                          its own
//! > REMOVE path            deletes a file
//! > SHOW path              the file's content
//! > TOUCH path time        sets when the file was written last
//! > flowbench ARGUMENT…    what the program prints, stdout after stderr, and its exit code if that is not 0;
//!                          double quotes hold an argument together
//! > QUIETLY ARGUMENT…      the same, but only an exit code that is not 0 is shown
//! ```
//!
//! `UPDATE=1 cargo test --test main validate` writes the expected parts; read the diff. `CASE=name` runs one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const SETTINGS: &str = "[pipeline]\nname = \"case\"\n";

/// Cases that run at the same time.
const WORKERS: usize = 3;

#[test]
fn cases_say_what_they_say() {
    let cases = cases();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(path) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(check(path));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} cases differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The files of cases; `CASE` names one.
pub fn cases() -> Vec<PathBuf> {
    let wanted = std::env::var("CASE").ok();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/validate"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "case"))
        .filter(|path| wanted.as_ref().is_none_or(|name| path.file_stem().unwrap().to_str() == Some(name)))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are cases");
    paths
}

fn check(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let found = run(&text);
    if found == text {
        return None;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, found).unwrap();
        return None;
    }
    let difference = text.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    Some(format!("--- {}: the first difference: {difference:#?}\nfound:\n{found}", path.display()))
}

fn run(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut starts: Vec<usize> = text.match_indices("\n> ").map(|(at, _)| at + 1).collect();
    if text.starts_with("> ") {
        starts.insert(0, 0);
    }
    let mut found = text[..starts.first().copied().unwrap_or(text.len())].to_string();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    for step in starts.iter().zip(ends).map(|(start, end)| &text[*start..end]) {
        let (line, body) = step.split_once('\n').unwrap_or((step, ""));
        found.push_str(line);
        found.push('\n');
        let (word, rest) = line[2..].split_once(' ').unwrap_or((&line[2..], ""));
        let path = root.join(rest);
        let said = match word {
            "FILE" => {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, format!("{}\n", body.trim_end())).unwrap();
                found.push_str(body);
                continue;
            }
            "REMOVE" => {
                std::fs::remove_file(path).unwrap();
                String::new()
            }
            "TOUCH" => {
                let (path, time) = rest.split_once(' ').expect("a path and a time");
                let time: chrono::DateTime<chrono::Utc> = time.parse().expect("a time");
                std::fs::File::options().write(true).open(root.join(path)).unwrap().set_modified(time.into()).unwrap();
                String::new()
            }
            "QUIETLY" => flowbench(&root, rest).lines().filter(|line| line.starts_with("exit ")).collect(),
            "SHOW" => std::fs::read_to_string(path).unwrap(),
            "flowbench" => flowbench(&root, rest),
            other => panic!("unknown step: {other}"),
        };
        let said = said.replace(root.to_str().unwrap(), "<workspace>");
        let said: Vec<&str> = said.lines().map(str::trim_end).collect();
        found.push_str(said.join("\n").trim_end());
        found.push_str("\n\n");
    }
    format!("{}\n", found.trim_end())
}

fn flowbench(root: &Path, arguments: &str) -> String {
    let settings = root.join("flowbench.toml");
    if !settings.exists() {
        std::fs::write(settings, SETTINGS).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_flowbench"))
        .args(crate::docs::words(arguments))
        .current_dir(root)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts");
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stdout));
    match output.status.code() {
        Some(0) => said,
        code => {
            format!("{}\nexit {}", said.trim_end(), code.map_or("by a signal".to_string(), |code| code.to_string()))
        }
    }
}
