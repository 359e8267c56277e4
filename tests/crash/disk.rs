//! The disk and what lies on it misbehave: no space, read-only, tables changed by another program, tables or
//! state.db lost or put back from an older copy. Each time: a clear end, nothing lost or doubled, a way on.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use deltalake_core::DeltaTable;

use super::kill::{after_first_run, after_second_run};
use super::{Tables, Workspace, assert_same, for_each_case, said};

/// A workspace after its first run, with the input of a second.
fn second_input() -> Workspace {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    workspace.feed_second();
    workspace
}

/// No file may grow beyond the limit, so that some write fails: of state.db, the log, or data.
#[test]
fn a_write_that_fails_ends_the_run_and_the_next_resumes() {
    let expected = after_first_run();
    let limits_kib = [0, 1, 2, 4, 16, 64, 128, 160, 192, 224, 256, 320, 400];
    for_each_case("file size limits", &limits_kib, ToString::to_string, |limit| {
        let workspace = Workspace::fed();
        // Ignored, the signal that comes with the failed write does not end the process.
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" run");
        let mut limited = Command::new("bash");
        limited.args(["-c", &script, env!("CARGO_BIN_EXE_flowbench")]).current_dir(workspace.path());
        let output = limited.output().unwrap();
        match output.status.code() {
            Some(0) => assert!(*limit >= 160, "{limit}"),
            Some(1) => assert!(said(&output).contains("error["), "{}", said(&output)),
            other => panic!("{other:?}: {}", said(&output)),
        }
        workspace.expect(0, &["run"]);
        assert_same(&workspace.tables(), &expected, &said(&output));
        workspace.check_settled();
    });
}

/// Runs `script` in a mount namespace of its own in which the workspace's storage is a small disk that holds
/// what it held before; what it holds in the end is brought back. None where namespaces are not allowed.
fn on_a_small_disk(workspace: &Workspace, script: &str) -> Option<String> {
    let setup = "set -e; cp -a .flowbench before; mount -t tmpfs -o size=3m tmpfs .flowbench; cp -a before/. .flowbench/; set +e";
    let end = "mount -o remount,rw .flowbench 2>/dev/null; cp -a .flowbench after";
    let mut child = Command::new("unshare");
    child.args(["-rm", "sh", "-c", &format!("{setup}\n{script}\n{end}"), env!("CARGO_BIN_EXE_flowbench")]);
    let output = child.current_dir(workspace.path()).output().ok()?;
    let said = said(&output);
    if !workspace.path().join("after").exists() {
        println!("skipped: no mount namespace here: {said}");
        return None;
    }
    std::fs::remove_dir_all(workspace.storage()).unwrap();
    std::fs::rename(workspace.path().join("after"), workspace.storage()).unwrap();
    Some(said)
}

#[test]
fn a_full_disk_fails_the_run_and_the_next_resumes_once_there_is_space() {
    let expected = after_second_run();
    let free_kib = [0, 4, 16, 48, 96, 160];
    for_each_case("full disk", &free_kib, ToString::to_string, |free| {
        let workspace = second_input();
        // Files of a size that the space left can't take.
        let fill = format!(
            "dd if=/dev/zero of=.flowbench/space bs=1k count={free} 2>/dev/null
             dd if=/dev/zero of=.flowbench/filler bs=1k 2>/dev/null
             rm .flowbench/space
             \"$0\" run; echo \"exit $?\"
             \"$0\" show gold --format csv > shown; echo \"show $?\"
             rm .flowbench/filler
             \"$0\" run; echo \"exit $?\""
        );
        let Some(said) = on_a_small_disk(&workspace, &fill) else { return };
        let exits: Vec<&str> = said.lines().filter(|line| line.starts_with("exit ")).collect();
        match *free {
            0..=16 => assert_eq!(exits, ["exit 1", "exit 0"], "{said}"),
            _ => assert_eq!(exits.last(), Some(&"exit 0"), "{said}"),
        }
        if exits[0] == "exit 1" {
            assert!(said.contains("error["), "{said}");
        }
        assert!(said.contains("show 0"), "a reader needs no space: {said}");
        assert_same(&workspace.tables(), &expected, &said);
        workspace.check_settled();
    });
}

#[test]
fn on_a_read_only_disk_a_run_says_so_and_readers_work() {
    let workspace = second_input();
    let script = "mount -o remount,ro .flowbench
        \"$0\" run; echo \"exit $?\"
        \"$0\" status >/dev/null; echo \"status $?\"
        \"$0\" show gold --format csv; echo \"show $?\"
        \"$0\" sql 'SELECT count(*) FROM events'; echo \"sql $?\"";
    let Some(said) = on_a_small_disk(&workspace, script) else { return };
    assert!(said.contains("exit 1") && said.contains("error[") && said.contains("writable"), "{said}");
    for reader in ["status 0", "show 0", "sql 0"] {
        assert!(said.contains(reader), "{said}");
    }
    workspace.expect(0, &["run"]);
    assert_same(&workspace.tables(), &after_second_run(), &said);
}

async fn delta_rs(folder: &Path) -> DeltaTable {
    deltalake_core::open_table(url::Url::from_directory_path(folder).unwrap()).await.unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Appends one row to `events` with delta-rs.
fn append(workspace: &Workspace) {
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(StringArray::from(vec!["theirs"]))),
        ("kind", Arc::new(StringArray::from(vec!["k1"]))),
        ("amount", Arc::new(Int64Array::from(vec![100]))),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    block_on(async { delta_rs(&workspace.table("events")).await.write([rows]).await.unwrap() });
}

fn delete(workspace: &Workspace, table: &str, condition: &str) {
    block_on(async { delta_rs(&workspace.table(table)).await.delete().with_predicate(condition).await.unwrap() });
}

/// With rows that match `gone` taken out of the tables `of`, and gold computed anew.
fn without(mut tables: Tables, of: &[&str], gone: &str) -> Tables {
    for table in of {
        tables.get_mut(*table).unwrap().retain(|row| !row.contains(gone));
    }
    tables
}

#[test]
fn rows_that_another_program_appends_stay_and_flow_on() {
    let workspace = second_input();
    append(&workspace);
    workspace.expect(0, &["run"]);
    let tables = workspace.tables();
    let mut expected = after_second_run();
    expected.get_mut("events").unwrap().push("amount=100 id=theirs kind=k1".to_string());
    expected.get_mut("silver").unwrap().push("amount=100 id=theirs kind=K1".to_string());
    expected.remove("gold");
    assert!(tables["gold"].contains(&"kind=K1 n=8 total=107".to_string()), "{:?}", tables["gold"]);
    assert_same(&without_gold(tables), &expected, "");
}

fn without_gold(mut tables: Tables) -> Tables {
    tables.remove("gold");
    tables
}

#[test]
fn rows_that_another_program_deletes_stay_deleted_and_a_stream_of_them_says_what_to_do() {
    let workspace = second_input();
    delete(&workspace, "events", "id = 'live/a-1'");
    let said = workspace.expect(1, &["run"]);
    assert!(said.contains("error[source-rewritten]") && said.contains("DELETE"), "{said}");
    assert!(said.contains("--full-refresh"), "{said}");
    let expected = without(after_second_run(), &["events"], "id=live/a-1 ");
    assert_eq!(workspace.tables()["events"], expected["events"], "the live flow went on");
    workspace.expect(0, &["run", "--full-refresh", "silver"]);
    workspace.expect(0, &["run"]);
    let expected = without(expected, &["silver"], "id=live/a-1 ");
    assert_same(&without_gold(workspace.tables()), &without_gold(expected), "");
    assert!(workspace.tables()["gold"].contains(&"kind=K1 n=6 total=6".to_string()));
}

#[test]
fn a_view_that_another_program_changed_is_computed_anew() {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    delete(&workspace, "gold", "kind = 'K1'");
    assert_eq!(workspace.tables()["gold"].len(), 2);
    workspace.expect(0, &["run"]);
    assert_same(&workspace.tables(), &after_first_run(), "");

    std::fs::remove_dir_all(workspace.table("gold")).unwrap();
    workspace.expect(0, &["run"]);
    assert_same(&workspace.tables(), &after_first_run(), "the view's folder was removed");
}

#[test]
fn a_table_that_is_gone_is_not_silently_begun_anew_and_a_full_refresh_brings_it_back() {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    std::fs::remove_dir_all(workspace.table("events")).unwrap();
    let said = workspace.expect(1, &["run"]);
    assert!(said.contains("error[table-gone]") && said.contains("`events`"), "{said}");
    assert!(said.contains("--full-refresh"), "{said}");
    assert!(!workspace.table("events").join("_delta_log").exists());
    for point in ["full-refresh-started", "written@backfill", "promote", "promoted:2"] {
        let output = workspace.output(&format!("{point}=kill"), &["run", "--full-refresh", "events,silver"]);
        assert_eq!(output.status.code(), None, "{point}: {}", super::said(&output));
    }
    workspace.expect(0, &["run", "--full-refresh", "events,silver"]);
    assert_same(&workspace.tables(), &after_first_run(), "");
    workspace.expect(0, &["run"]);
    assert_same(&workspace.tables(), &after_first_run(), "");
    workspace.check_settled();
}

#[test]
fn a_full_refresh_from_nothing_keeps_the_rows() {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    std::fs::remove_file(workspace.path().join("data/wide/a.json")).unwrap();
    let said = workspace.expect(1, &["run", "--full-refresh", "wide"]);
    assert!(said.contains("error[source-empty]") && said.contains("nothing was dropped"), "{said}");
    assert_same(&workspace.tables(), &after_first_run(), "");
    workspace.expect(0, &["run"]);
    workspace.check_settled();
}

/// Copies state.db as it is now; [`put_back`] brings the copy into force.
fn copy_state(workspace: &Workspace, to: &str) {
    std::fs::copy(workspace.storage().join("state.db"), workspace.path().join(to)).unwrap();
}

fn put_back(workspace: &Workspace, copy: &str) {
    for file in ["state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(workspace.storage().join(file));
    }
    std::fs::copy(workspace.path().join(copy), workspace.storage().join("state.db")).unwrap();
}

/// What happens between the copy of state.db and its return.
type Between = fn(&Workspace);

#[test]
fn an_older_state_is_refused_and_a_full_refresh_is_the_way_out() {
    let cases: [(&str, Between); 5] = [
        ("batches", |_| {}),
        ("a full refresh", |workspace| {
            workspace.expect(0, &["run", "--full-refresh-all"]);
        }),
        ("two full refreshes", |workspace| {
            workspace.expect(0, &["run", "--full-refresh-all"]);
            workspace.expect(0, &["run", "--full-refresh-all"]);
        }),
        ("a reset", |workspace| {
            workspace.expect(0, &["reset", "live", "--yes"]);
        }),
        ("a rerun", |workspace| {
            workspace.expect(0, &["run", "--rerun-once", "backfill"]);
        }),
    ];
    for_each_case(
        "older state.db",
        &cases,
        |(name, _)| name.to_string(),
        |(_, between)| {
            let workspace = Workspace::fed();
            workspace.expect(0, &["run"]);
            copy_state(&workspace, "copy.db");
            between(&workspace);
            workspace.feed_second();
            workspace.expect(0, &["run"]);
            let before = workspace.tables();
            put_back(&workspace, "copy.db");
            let said = workspace.expect(1, &["run"]);
            assert!(
                said.contains("error[state-behind-table]") && said.contains("= help: put the newer state.db back"),
                "{said}"
            );
            assert_eq!(workspace.tables()["events"], before["events"], "{said}");
            workspace.expect(0, &["run", "--full-refresh-all"]);
            assert_same(&workspace.tables(), &after_second_run(), "");
            workspace.expect(0, &["run"]);
            assert_same(&workspace.tables(), &after_second_run(), "");
        },
    );
}

#[test]
fn a_state_from_before_the_tables_is_refused_too() {
    let workspace = Workspace::fed();
    // A state.db that knows neither datasets nor flows.
    workspace.write(
        "transformations/pipeline.sql",
        "CREATE OR REFRESH STREAMING TABLE other AS SELECT * FROM STREAM read_files('data/wide', format => 'json');",
    );
    workspace.expect(0, &["run"]);
    copy_state(&workspace, "copy.db");
    workspace.write("transformations/pipeline.sql", super::PIPELINE);
    workspace.expect(0, &["run"]);
    put_back(&workspace, "copy.db");
    let said = workspace.expect(1, &["run"]);
    assert!(said.contains("error[state-behind-table]"), "{said}");
    assert_same(&workspace.tables(), &after_first_run(), &said);
    workspace.expect(0, &["run", "--full-refresh-all"]);
    assert_same(&workspace.tables(), &after_first_run(), "");
}

#[test]
fn a_lost_state_is_refused_and_repaired_without_doubling_a_row() {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(workspace.storage().join(file));
    }
    let said = workspace.expect(1, &["run"]);
    assert!(said.contains("error[state-lost]") && said.contains("doctor --repair"), "{said}");
    let said = workspace.output("", &["doctor", "--repair"]);
    let said = super::said(&said);
    assert!(said.contains("once flow `backfill` is in table `events`: it is done"), "{said}");
    // The streams' places are lost: a run must not read everything again.
    workspace.feed_second();
    let said = workspace.expect(1, &["run"]);
    assert!(said.contains("error[checkpoint-lost]") && said.contains("--full-refresh"), "{said}");
    assert_eq!(workspace.tables()["events"], after_first_run()["events"], "{said}");
    workspace.expect(0, &["run", "--full-refresh-all"]);
    assert_same(&workspace.tables(), &after_second_run(), "");
}

/// A power failure may take the newest commits of a table: their batches run again from what is on record.
#[test]
fn commits_that_a_table_lost_are_made_again() {
    for lost in 1..=4 {
        let workspace = Workspace::of(
            "",
            "
CREATE OR REFRESH STREAMING TABLE events
AS SELECT id, kind, amount FROM STREAM read_files('data/live', format => 'json', maxFilesPerTrigger => 1);
",
        );
        for file in ["a", "b", "c", "d"] {
            workspace.feed(&format!("live/{file}"));
        }
        workspace.expect(0, &["run"]);
        let expected = workspace.tables();
        for version in (5 - lost)..=4 {
            let entry = workspace.table("events").join(format!("_delta_log/{version:020}.json"));
            std::fs::remove_file(entry).unwrap();
        }
        assert_eq!(workspace.tables()["events"].len(), 12 - 3 * lost);
        let said = workspace.expect(0, &["run"]);
        assert!(said.contains("lost"), "{said}");
        assert_same(&workspace.tables(), &expected, &said);
        workspace.check_settled();
    }
}

/// That a once flow is done doesn't keep its commit from being made again.
#[test]
fn the_lost_commit_of_a_done_once_flow_is_made_again() {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run", "--flow", "live"]);
    workspace.expect(0, &["run", "--flow", "backfill"]);
    let before = workspace.tables()["events"].clone();
    let log = workspace.table("events").join("_delta_log");
    let newest = (0..).map(|version| log.join(format!("{version:020}.json"))).take_while(|entry| entry.exists()).last();
    std::fs::remove_file(newest.unwrap()).unwrap();
    assert!(workspace.tables()["events"].len() < before.len());
    let said = workspace.expect(0, &["run"]);
    assert_eq!(workspace.tables()["events"], before, "{said}");
    workspace.check_settled();
}

#[test]
fn a_commit_of_another_program_in_the_middle_of_a_batch_is_kept() {
    let workspace = second_input();
    let paused = super::writers::Paused::at(&workspace, "written@live", &["run"]);
    append(&workspace);
    assert_eq!(paused.finish(), Some(0));
    let tables = workspace.tables();
    assert_eq!((tables["events"].len(), tables["silver"].len()), (22, 22));
    assert!(tables["gold"].contains(&"kind=K1 n=8 total=107".to_string()), "{:?}", tables["gold"]);
    workspace.check_settled();
}

/// A power failure may leave the newest log entry empty: it is damaged, not a commit without rows.
#[test]
fn an_empty_log_entry_is_damage_and_doctor_mends_the_newest() {
    let workspace = Workspace::fed();
    workspace.expect(0, &["run"]);
    let before = workspace.tables();
    let log = workspace.table("events").join("_delta_log");
    let entry = |version: i64| log.join(format!("{version:020}.json"));
    let newest = (0..).take_while(|version| entry(*version).exists()).last().unwrap();
    std::fs::write(entry(newest), "").unwrap();
    let said = workspace.expect(1, &["run"]);
    assert!(said.contains("error[table-log-corrupted]") && said.contains("doctor --repair"), "{said}");
    workspace.output("", &["doctor", "--repair"]);
    workspace.expect(0, &["run"]);
    assert_same(&workspace.tables(), &before, "after the newest entry was empty");

    // One in the middle can't be made again: its version is taken by what came after.
    std::fs::write(entry(1), "").unwrap();
    let said = workspace.expect(1, &["run"]);
    assert!(said.contains("error[table-log-corrupted]"), "{said}");
    let said = super::said(&workspace.output("", &["doctor", "--repair"]));
    assert!(said.contains("table-log-corrupted"), "{said}");
}

/// A database in which the definitions of tables are no SQL.
fn without_schema(mut database: Vec<u8>) -> Vec<u8> {
    let text = b"CREATE TABLE";
    let places = (0..database.len() - text.len()).filter(|at| database[*at..].starts_with(text)).collect::<Vec<_>>();
    assert!(!places.is_empty(), "state.db has tables");
    places.iter().for_each(|at| database[at + 7..at + text.len()].fill(0xff));
    database
}

/// A state.db that is no database, or one whose schema can't be read, is set aside, and what the tables tell is taken
/// over.
#[test]
fn a_damaged_state_is_set_aside_by_doctor() {
    for junk in [
        Some("junk, no database at all, longer than a header of SQLite would be ..............................."),
        Some(""),
        None,
    ] {
        let workspace = Workspace::fed();
        workspace.expect(0, &["run"]);
        for file in ["state.db-wal", "state.db-shm"] {
            let _ = std::fs::remove_file(workspace.storage().join(file));
        }
        let path = workspace.storage().join("state.db");
        let bytes = junk.map_or_else(|| without_schema(std::fs::read(&path).unwrap()), |junk| junk.as_bytes().to_vec());
        std::fs::write(&path, bytes).unwrap();
        let said = super::said(&workspace.output("", &["doctor", "--repair"]));
        assert!(said.contains("once flow `backfill` is in table `events`: it is done"), "{said}");
        workspace.expect(0, &["run", "--full-refresh-all"]);
        assert_same(&workspace.tables(), &after_first_run(), junk.unwrap_or("without its schema"));
    }
}
