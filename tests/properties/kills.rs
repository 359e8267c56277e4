//! A process that dies or fails at a random step of a random batch, again and again: one table all the same.

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::{cases, input_files, oracle, tables, workspace};

/// A fail point that may or may not be passed, in the words of `engine::fail_point`.
fn fail_point() -> impl Strategy<Value = String> {
    const NAMES: &[&str] =
        &["plan", "planned", "written", "committed", "marked", "schema-stored", "maintenance", "promote", "promoted"];
    const FLOWS: &[&str] = &["", "@events", "@silver", "@gold"];
    const ACTIONS: &[&str] = &["kill", "kill", "kill", "error"];
    (proptest::sample::select(NAMES), proptest::sample::select(FLOWS), 1..6_u32, proptest::sample::select(ACTIONS))
        .prop_map(|(name, flow, hit, action)| match name {
            "maintenance" | "promote" | "promoted" => format!("{name}={action}"),
            _ => format!("{name}{flow}:{hit}={action}"),
        })
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn any_kills_between_give_the_same_tables(
        files in input_files(2..=10),
        rounds in proptest::collection::vec((0..4_usize, fail_point(), proptest::bool::weighted(0.2)), 1..5),
        files_per_batch in 1..4_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        workspace(folder.path(), &format!("maxFilesPerTrigger => {files_per_batch}"));
        let program = |arguments: &[&str], fail_point: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_flowbench"));
            command.args(arguments).current_dir(folder.path()).stdin(Stdio::null()).env("FLOWBENCH_FAIL_POINT", fail_point);
            command.output().unwrap()
        };
        let mut waiting = files.iter();
        for (count, fail_point, is_full_refresh) in &rounds {
            waiting.by_ref().take(*count).for_each(|file| file.write(&folder.path().join("data")));
            let arguments: &[&str] = if *is_full_refresh { &["run", "--full-refresh-all"] } else { &["run"] };
            program(arguments, fail_point);
        }
        waiting.for_each(|file| file.write(&folder.path().join("data")));
        // A full refresh that died half way leaves streams behind that have to be built anew too.
        let output = program(&["run"], "");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(1) && said.contains("source-rewritten") {
            let output = program(&["run", "--full-refresh-all"], "");
            prop_assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        } else {
            prop_assert_eq!(output.status.code(), Some(0), "{}", said);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        prop_assert_eq!(runtime.block_on(tables(folder.path())), oracle(&files), "{}", said);
    }
}
