//! What the README and the examples' READMEs say is so: their commands run, their options exist.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::{flowbench, stderr, stdout};
use crate::fixture::clone_of_the_examples;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The lines of the ```sh blocks and of the indented blocks of a Markdown text, comments cut, with the exit code that a
/// comment tells (`# exit code 1: why`).
fn shell_lines(text: &str) -> Vec<(String, i32)> {
    let mut lines = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        let is_indented = ["    cd ", "    flowbench"].iter().any(|begin| line.starts_with(begin));
        match line.trim() {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            line if is_inside || is_indented => {
                let (line, comment) = line.split_once(" #").unwrap_or((line, ""));
                let code = comment.trim().strip_prefix("exit code ").and_then(|code| code.split(':').next());
                let code = code.map_or(0, |code| code.parse().expect("a number"));
                if !line.trim().is_empty() {
                    lines.push((line.trim().to_string(), code));
                }
            }
            _ => {}
        }
    }
    lines
}

/// Splits a command at blanks; double quotes hold words together.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[test]
fn the_readmes_tour_runs() {
    let clone = clone_of_the_examples();
    let mut here = clone.path().to_path_buf();
    let mut ran = 0;
    for (line, code) in shell_lines(&read("README.md")) {
        let words = words(&line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["alias", ..] | ["cargo", "test"] => {}
            ["cd", folder] => here = here.join(folder),
            ["cargo", "run", "--release", "--", arguments @ ..] | ["flowbench", arguments @ ..] => {
                let output = flowbench(&here, arguments);
                assert_eq!(output.status.code(), Some(code), "{line}\n{}{}", stdout(&output), stderr(&output));
                ran += 1;
            }
            other => panic!("the README has a command that this test doesn't know: {other:?}"),
        }
    }
    assert!(ran >= 8, "the tour has become short: {ran} commands");
}

#[test]
fn every_command_and_option_of_the_readme_exists() {
    let readme = read("README.md");
    let help = stdout(&flowbench(root(), &["--help"]));
    let table = readme.split("## Commands").nth(1).expect("the README has a table of commands");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() >= 12, "the table has {} rows", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').splitn(2, " | ").collect();
        let commands: Vec<&str> = cells[0].split('`').skip(1).step_by(2).collect();
        let mut known = String::new();
        for command in commands {
            let is_name = |word: &&str| word.chars().all(|c| c == '-' || c.is_ascii_lowercase());
            let mut words: Vec<&str> =
                command.split_whitespace().filter(|word| *word != "flowbench").take_while(is_name).collect();
            if words.is_empty() {
                continue;
            }
            words.push("--help");
            let output = flowbench(root(), &words);
            assert!(output.status.success(), "`{command}` is no command: {}", stderr(&output));
            known.push_str(&stdout(&output));
        }
        let options = row.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|word| word.starts_with("--"));
        for option in options.filter(|option| option.len() > 2) {
            assert!(known.contains(option) || help.contains(option), "{option} of {} does not exist", cells[0]);
        }
    }
}

/// What stands between two marks of a text, each time.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    text.split(begin).skip(1).filter_map(|rest| Some(rest.split_once(end)?.0)).collect()
}

#[test]
fn every_key_of_the_readme_does_something() {
    let readme = read("README.md");
    let keys = between(&readme, "<kbd>", "</kbd>");
    assert!(keys.len() > 20, "the tour has become short: {keys:?}");
    // As the help shows them: the keys of a sequence without the blank.
    let known: Vec<String> =
        tui::action::ACTIONS.iter().flat_map(|row| row.keys).map(|keys| keys.replace(' ', "")).collect();
    for key in keys {
        assert!(known.iter().any(|known| known == key), "<kbd>{key}</kbd> is no key of the workbench");
    }
}

#[test]
fn every_command_in_the_readmes_text_exists() {
    let readme = read("README.md");
    let commands = between(&readme, "`flowbench ", "`");
    assert!(commands.len() > 8, "{commands:?}");
    for command in commands {
        let words = words(command);
        match words[0].as_str() {
            word if word.starts_with(['[', '-']) => {}
            folder if folder.contains('/') => assert!(root().join(folder).is_dir(), "{folder} is no folder"),
            word => {
                let output = flowbench(root(), &[word, "--help"]);
                assert!(output.status.success(), "`flowbench {command}`: {}", stderr(&output));
                let help = stdout(&output);
                for option in words.iter().filter(|word| word.starts_with("--")) {
                    let option = option.split('=').next().unwrap_or_default();
                    assert!(help.contains(option), "`flowbench {command}` has no {option}");
                }
            }
        }
    }
}

#[test]
fn the_pictures_of_the_readme_are_there() {
    let readme = read("README.md");
    let pictures = between(&readme, "![", ")");
    assert!(!pictures.is_empty());
    for picture in pictures {
        let (words, path) = picture.split_once("](").expect("a picture has a path");
        assert!(words.len() > 20 && root().join(path).is_file(), "{picture}");
    }
}

#[test]
fn every_example_validates_and_runs() {
    let clone = clone_of_the_examples();
    let mut examples: Vec<PathBuf> =
        std::fs::read_dir(clone.path().join("workspaces")).unwrap().map(|entry| entry.unwrap().path()).collect();
    examples.retain(|path| path.is_dir());
    examples.sort();
    assert!(examples.len() >= 4, "{examples:?}");
    for example in examples {
        for arguments in [&["validate"][..], &["run"], &["run"], &["status"]] {
            let output = flowbench(&example, arguments);
            assert!(output.status.success(), "{example:?} {arguments:?}\n{}{}", stdout(&output), stderr(&output));
        }
    }
}

#[test]
fn the_commands_of_the_examples_readmes_run() {
    let mut ran = 0;
    for entry in std::fs::read_dir(root().join("workspaces")).unwrap() {
        let example = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(example.join("README.md")) else { continue };
        let clone = clone_of_the_examples();
        let mut here = clone.path().to_path_buf();
        for (line, code) in shell_lines(&text) {
            let words = words(&line);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["cd", folder] => here = here.join(folder),
                ["flowbench", arguments @ ..] => {
                    let output = flowbench(&here, arguments);
                    let said = stdout(&output) + &stderr(&output);
                    assert_eq!(output.status.code(), Some(code), "{example:?}: {line}\n{said}");
                    ran += 1;
                }
                other => panic!("{example:?} has a command that this test doesn't know: {other:?}"),
            }
        }
    }
    assert!(ran > 10, "the examples' READMEs have few commands: {ran}");
}

#[test]
fn the_recipe_for_closed_rows_of_a_legacy_history_ends_them() {
    let clone = clone_of_the_examples();
    let example = clone.path().join("workspaces/customers_scd2_migration");
    let readme = read("workspaces/customers_scd2_migration/README.md");
    let [recipe] = between(&readme, "```sql\n", "```")[..] else { panic!("the README has one recipe") };
    let path = example.join("transformations/customers_history.sql");
    let definitions = std::fs::read_to_string(&path).unwrap();
    let [seed] = between(&definitions, "CREATE FLOW customers_history_seed", ";")[..] else {
        panic!("there is one seed")
    };
    let seed = format!("CREATE FLOW customers_history_seed{seed};");
    std::fs::write(&path, definitions.replace(&seed, recipe)).unwrap();
    let output = flowbench(&example, &["run"]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let query = "SELECT count(*) AS n FROM customers_history WHERE customer_id = 'c14' AND __END_AT IS NULL";
    let output = flowbench(&example, &["sql", query]);
    assert!(stdout(&output).contains('0') && !stdout(&output).contains('1'), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn the_sample_data_is_what_its_generator_makes() {
    let checked = Command::new("python3").arg(root().join("samples/generate.py")).arg("--check").output();
    match checked {
        Ok(output) => assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => println!("skipped: python3 can't be started: {error}"),
    }
}
