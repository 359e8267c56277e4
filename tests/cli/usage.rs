//! Words, workspaces, exit codes.

use super::{expect, flowbench, stdout};

const COMMANDS: [&str; 16] = [
    "init",
    "validate",
    "run",
    "reset",
    "rename-flow",
    "status",
    "updates",
    "events",
    "graph",
    "show",
    "sql",
    "describe",
    "functions",
    "drop",
    "doctor",
    "completions",
];

#[test]
fn the_help_names_every_command_and_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (help, _) = expect(folder.path(), 0, &["--help"]);
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command}\n{help}");
        let (own, _) = expect(folder.path(), 0, &[command, "--help"]);
        assert!(own.contains("Usage:") && own.contains("--workspace"), "{command}\n{own}");
    }
    for code in 0..=5 {
        assert!(help.contains(&format!("  {code}  ")), "exit code {code}\n{help}");
    }
    assert!(help.contains("backfill"));
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [&[&str]; 6] = [
        &["run", "--unknown"],
        &["show"],
        &["run", "a", "-C", "b"],
        &["rum", "status"],
        &["init", "demo", "--sample", "no-such-example"],
        &["functions", "no_such_function_at_all"],
    ];
    for arguments in cases {
        let (out, err) = expect(folder.path(), 2, arguments);
        assert!(out.is_empty() && !err.is_empty(), "{arguments:?}\n{out}\n{err}");
    }
}

#[test]
fn a_folder_without_a_workspace_is_exit_code_3() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["run"] as &[&str], &["status"], &[], &["show", "t"], &["validate"], &["no_such_folder"]] {
        let (_, err) = expect(folder.path(), 3, arguments);
        assert!(err.contains("flowbench.toml") && err.contains("= help:"), "{arguments:?}\n{err}");
    }
}

#[test]
fn the_json_result_is_the_last_line_of_stdout_whatever_happens() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = expect(folder.path(), 3, &["run", "--json"]);
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "result");
    assert_eq!((&last["format"], &last["command"], &last["exit_code"]), (&1.into(), &"run".into(), &3.into()));
    assert_eq!(last["error"]["code"], "no-workspace");
}

#[test]
fn colours_are_forced_or_forbidden_by_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, value: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flowbench"));
        let output = command.arg("status").current_dir(folder.path()).env(name, value).output().unwrap();
        output.stderr.contains(&b'\x1b')
    };
    assert!(run("CLICOLOR_FORCE", "1"));
    assert!(!run("CLICOLOR_FORCE", "0"));
    assert!(!run("NO_COLOR", "1"));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_flowbench"))
        .arg("functions")
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn completions_come_for_every_shell() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(stdout(&flowbench(folder.path(), &["completions", shell])).contains("flowbench"), "{shell}");
    }
}
