//! The command line from outside: exit codes, which stream says what, help.
//!
//! - `hostile.rs`: closed streams, moved folders, broken sources
//! - `usage.rs`: words, workspaces, exit codes
//! - `starter.rs`: the workspace that `init` makes, from validation to its rows

mod hostile;
mod starter;
mod usage;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the program in `folder`, with nothing of this environment that changes its output.
pub fn flowbench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flowbench"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("CLICOLOR_FORCE")
        .env_remove("NO_COLOR")
        .env_remove("FLOWBENCH_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is UTF-8")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is UTF-8")
}

/// Runs the program, expects an exit code, and returns stdout and stderr; neither may hold colour codes.
pub fn expect(folder: &Path, code: i32, arguments: &[&str]) -> (String, String) {
    let output = flowbench(folder, arguments);
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "flowbench {}\n{out}\n{err}", arguments.join(" "));
    assert!(!out.contains('\x1b') && !err.contains('\x1b'), "colour codes in a pipe: {arguments:?}");
    (out, err)
}
