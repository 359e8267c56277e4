//! A script's text as steps, and back with what the steps said.

use super::workbench::Workbench;

/// Runs every step and returns the script as it should be.
pub fn run(text: &str) -> String {
    let mut found = String::new();
    let mut workbench = Workbench::new();
    let (head, steps) = steps(text);
    found.push_str(head);
    for (line, body) in steps {
        found.push_str(line);
        found.push('\n');
        let (word, rest) = line[2..].split_once(' ').unwrap_or((&line[2..], ""));
        match workbench.step(word, rest.trim(), body) {
            // A file's content is given, not expected.
            None => found.push_str(body),
            Some(said) => {
                found.push_str(said.trim_end());
                found.push_str("\n\n");
            }
        }
    }
    format!("{}\n", found.trim_end())
}

/// What stands before the first step, and the steps: their line and the text below it.
fn steps(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut starts: Vec<usize> = text.match_indices("\n> ").map(|(at, _)| at + 1).collect();
    if text.starts_with("> ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let steps = starts.iter().zip(ends).map(|(start, end)| {
        let step = &text[*start..end];
        step.split_once('\n').unwrap_or((step, ""))
    });
    (&text[..starts.first().copied().unwrap_or(text.len())], steps.collect())
}

/// The lines that differ, with the step they are in.
pub fn difference(expected: &str, found: &str) -> String {
    let mut out = String::new();
    let ((_, expected), (_, found)) = (steps(expected), steps(found));
    for ((line, expected), (_, found)) in expected.iter().zip(&found).filter(|(a, b)| a.1.trim() != b.1.trim()) {
        let (expected, found) = (expected.trim(), found.trim());
        out.push_str(&format!("{line}\n  expected\n{}\n  found\n{}\n", indented(expected), indented(found)));
    }
    if out.is_empty() { "only white space differs; UPDATE=1 mends it".to_string() } else { out }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
