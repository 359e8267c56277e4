//! The cases of `auto_cdc.jsonl` through the real program and real Delta tables. A line is a case: events in
//! micro-batches or steps, and the rows that the target must have (any order).
//!
//! All cases of a kind share a workspace, one table each, so that a step of all of them is one update.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::fixture::{RUNTIME, TestWorkspace};

/// One line.
struct Case(Value);

fn cases(kind: &str) -> Vec<Case> {
    let lines = include_str!("auto_cdc.jsonl").lines().map(|line| Case(serde_json::from_str(line).expect(line)));
    let cases: Vec<Case> = lines.filter(|case| case.0["kind"] == kind).collect();
    assert!(!cases.is_empty(), "no case of kind {kind}");
    cases
}

/// A column's type as the events' values tell it.
fn type_of(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Number(number) if number.is_i64() => "BIGINT".to_string(),
        Value::Number(_) => "DOUBLE".to_string(),
        Value::Bool(_) => "BOOLEAN".to_string(),
        Value::String(_) => "STRING".to_string(),
        Value::Array(_) => "ARRAY<STRING>".to_string(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", type_of(value).unwrap_or_else(|| "STRING".to_string())));
            format!("STRUCT<{}>", fields.collect::<Vec<_>>().join(", "))
        }
    })
}

impl Case {
    fn id(&self) -> &str {
        self.0["id"].as_str().expect("an id")
    }

    fn table(&self) -> String {
        self.id().replace('-', "_")
    }

    fn list(&self, key: &str) -> Vec<String> {
        self.0[key].as_array().into_iter().flatten().map(|name| name.as_str().expect("a name").to_string()).collect()
    }

    /// Every event and snapshot row of the case.
    fn all_rows(&self) -> Vec<&Value> {
        let batches = self.0["batches"].as_array().into_iter().flatten();
        let steps = self.steps().into_iter().flat_map(|step| [&step["cdc"], &step["snapshot"]["rows"]]);
        let lists = batches.chain(steps).chain([&self.0["seed"], &self.0["live"]]);
        lists.filter_map(Value::as_array).flatten().collect()
    }

    fn steps(&self) -> Vec<&Value> {
        self.0["steps"].as_array().into_iter().flatten().collect()
    }

    /// DDL of the rows that `wanted` picks, without the columns of `skip`.
    fn schema(&self, skip: &[&str]) -> String {
        let mut columns: Vec<(String, Option<String>)> = Vec::new();
        for row in self.all_rows() {
            for (name, value) in row.as_object().expect("a row") {
                let known = columns.iter().position(|(column, _)| column == name);
                let at = known.unwrap_or_else(|| {
                    columns.push((name.clone(), None));
                    columns.len() - 1
                });
                columns[at].1 = columns[at].1.take().or_else(|| type_of(value));
            }
        }
        let given = |name: &str| self.0["types"][name].as_str().map(str::to_uppercase);
        let columns =
            columns.into_iter().filter(|(name, _)| !skip.contains(&name.as_str())).map(|(name, data_type)| {
                let data_type = given(&name).or(data_type).unwrap_or_else(|| "STRING".to_string());
                format!("{name} {data_type}")
            });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The clauses behind KEYS of its change flows.
    fn clauses(&self) -> String {
        let mut clauses = String::new();
        let names = |value: &Value| {
            let names = value.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name"));
            names.collect::<Vec<_>>().join(", ")
        };
        match &self.0["ignore_null_updates"] {
            Value::Bool(true) => clauses.push_str(" IGNORE NULL UPDATES"),
            Value::Object(one) if one.contains_key("columns") => {
                write!(clauses, " IGNORE NULL UPDATES ON ({})", names(&one["columns"])).expect("text")
            }
            Value::Object(one) => {
                write!(clauses, " IGNORE NULL UPDATES ON * EXCEPT ({})", names(&one["except"])).expect("text")
            }
            _ => {}
        }
        if let Some(condition) = self.0["delete_when"].as_str() {
            write!(clauses, " APPLY AS DELETE WHEN {condition}").expect("text");
        }
        if let Some(condition) = self.0["truncate_when"].as_str() {
            write!(clauses, " APPLY AS TRUNCATE WHEN {condition}").expect("text");
        }
        write!(clauses, " SEQUENCE BY {}", self.0["sequence"].as_str().expect("a sequence")).expect("text");
        if self.0["except"].is_array() {
            write!(clauses, " COLUMNS * EXCEPT ({})", names(&self.0["except"])).expect("text");
        }
        write!(clauses, " STORED AS SCD TYPE {}", self.0["scd"]).expect("text");
        match &self.0["track_history"] {
            Value::Array(_) => write!(clauses, " TRACK HISTORY ON {}", names(&self.0["track_history"])).expect("text"),
            Value::Object(one) => {
                write!(clauses, " TRACK HISTORY ON * EXCEPT ({})", names(&one["except"])).expect("text")
            }
            _ => {}
        }
        clauses
    }

    fn keys(&self) -> String {
        self.list("keys").join(", ")
    }

    /// A change flow `<table>_<feed>` over the files of `data/<table>/<feed>`, one a micro-batch.
    fn change_flow(&self, feed: &str, once: &str) -> String {
        let (table, schema, keys) = (self.table(), self.schema(&[]), self.keys());
        format!(
            "CREATE TEMPORARY VIEW {table}_{feed}_rows AS SELECT * FROM STREAM read_files(\"data/{table}/{feed}\", \
             format => \"json\", schema => \"{schema}\", schemaEvolutionMode => \"none\", maxFilesPerTrigger => 1);\n\
             CREATE FLOW {table}_{feed} AS AUTO CDC{once} INTO {table} FROM STREAM({table}_{feed}_rows) KEYS ({keys}){};\n",
            self.clauses()
        )
    }

    /// The snapshot flow over what `put_snapshot` writes.
    fn snapshot_flow(&self, once: &str) -> String {
        let table = self.table();
        let schema = self.schema(&["seq", "op"]);
        format!(
            "CREATE FLOW {table}_snapshot AS AUTO CDC{once} INTO {table} FROM SNAPSHOT (SELECT * FROM \
             read_files(\"data/{table}/snapshot\", format => \"json\", schema => \"{schema}\", schemaEvolutionMode => \
             \"none\")) WITH VERSION (SELECT version FROM read_files(\"data/{table}/version\", format => \"json\", schema \
             => \"version BIGINT\")) KEYS ({}) STORED AS SCD TYPE {};\n",
            self.keys(),
            self.0["scd"]
        )
    }

    fn put(&self, workspace: &TestWorkspace, feed: &str, at: usize, events: &Value) {
        let events = events.as_array().expect("events");
        if events.is_empty() {
            return;
        }
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        let path = format!("data/{}/{feed}/{at:03}.json", self.table());
        workspace.write(&path, lines);
        workspace.set_time(&path, &format!("2025-01-01T00:00:{at:02}Z"));
    }

    fn put_snapshot(&self, workspace: &TestWorkspace, snapshot: &Value) {
        let rows = snapshot["rows"].as_array().expect("rows");
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let table = self.table();
        workspace.write(&format!("data/{table}/snapshot/rows.json"), lines);
        workspace.write(&format!("data/{table}/version/v.json"), format!("{{\"version\":{}}}\n", snapshot["version"]));
    }

    /// The folders of its feeds, so that they are there before the first file is.
    fn make_folders(&self, workspace: &TestWorkspace, feeds: &[&str]) {
        for feed in feeds {
            std::fs::create_dir_all(workspace.path(&format!("data/{}/{feed}", self.table()))).expect("a folder");
        }
    }

    fn expected(&self) -> Vec<&Map<String, Value>> {
        self.0["expect"].as_array().expect("rows").iter().map(|row| row.as_object().expect("a row")).collect()
    }

    /// Compares the table with what is expected, and names what is different.
    fn check(&self, workspace: &TestWorkspace, when: &str) -> Result<(), String> {
        let table = self.table();
        let expected = self.expected();
        let names: BTreeSet<&String> = expected.iter().flat_map(|row| row.keys()).collect();
        let shown: Vec<String> = workspace
            .columns(&table)
            .iter()
            .map(|column| column.split(' ').next().expect("a name").to_string())
            .collect();
        if !names.is_empty() && shown.iter().collect::<BTreeSet<_>>() != names {
            return Err(format!("{when}: {}: columns are {shown:?}, not {names:?}", self.id()));
        }
        let select = names.iter().map(|name| match expected.iter().any(|row| row[*name].is_object()) {
            true => format!("to_json({name})"),
            false => (*name).clone(),
        });
        let select = match names.is_empty() {
            true => "*".to_string(),
            false => select.collect::<Vec<_>>().join(", "),
        };
        let mut actual = workspace.rows(&format!("SELECT {select} FROM {table}"));
        let mut expected: Vec<String> = expected
            .iter()
            .map(|row| names.iter().map(|name| self.text(name, &row[*name])).collect::<Vec<_>>().join("|"))
            .collect();
        actual.sort();
        expected.sort();
        match actual == expected {
            true => Ok(()),
            false => Err(format!("{when}: {}: {names:?}\n  is       {actual:?}\n  expected {expected:?}", self.id())),
        }
    }

    /// Compares the stale and tied keys that the cutover check lists with those of the case.
    fn check_cutover(&self, workspace: &TestWorkspace, when: &str) -> Result<(), String> {
        let request = pipeline::scd::CutoverRequest { limit: usize::MAX, ..Default::default() };
        let check = RUNTIME.block_on(workspace.engine().cutover_check(&self.table(), &request));
        let check = check.map_err(|error| format!("{when}: {}: {error}", self.id()))?;
        let is_wrong = |verdict| matches!(verdict, pipeline::scd::Verdict::Stale | pipeline::scd::Verdict::Tie);
        let stale: Vec<&str> =
            check.keys.iter().filter(|key| is_wrong(key.verdict)).map(|key| key.key[0].value.as_str()).collect();
        let expected: Vec<String> =
            self.0["stale_keys"].as_array().expect("keys").iter().map(|key| key.to_string()).collect();
        match stale == expected && check.holds() == expected.is_empty() {
            true => Ok(()),
            false => Err(format!("{when}: {}: stale are {stale:?}, not {expected:?}", self.id())),
        }
    }

    /// A value as a query shows it.
    fn text(&self, name: &str, value: &Value) -> String {
        let sequence = if name.starts_with("__") { self.0["sequence"].as_str().unwrap_or_default() } else { name };
        match value {
            Value::String(text) if self.0["types"][sequence] == "timestamp" => text.replace('T', " ").replace('Z', ""),
            Value::String(text) => text.clone(),
            // `to_json` leaves nulls out.
            Value::Object(fields) => {
                let given = fields.iter().filter(|(_, value)| !value.is_null());
                Value::Object(given.map(|(name, value)| (name.clone(), value.clone())).collect()).to_string()
            }
            value => value.to_string(),
        }
    }
}

fn report(failures: Vec<String>, cases: usize) {
    assert!(failures.is_empty(), "{} of {cases} cases differ\n{}", failures.len(), failures.join("\n"));
}

fn pipeline(cases: &[Case], flows: impl Fn(&Case) -> String) -> String {
    cases.iter().map(|case| format!("CREATE STREAMING TABLE {};\n{}", case.table(), flows(case))).collect()
}

/// The batches of a feed, each an update or all in one update.
fn change_feeds(one_update: bool) {
    let cases: Vec<Case> = cases("cdc").into_iter().filter(|case| case.0["expect_error"].is_null()).collect();
    let workspace = TestWorkspace::new(&pipeline(&cases, |case| case.change_flow("feed", "")));
    cases.iter().for_each(|case| case.make_folders(&workspace, &["feed"]));
    let batches = |case: &Case| case.0["batches"].as_array().expect("batches").clone();
    let most = cases.iter().map(|case| batches(case).len()).max().unwrap_or(0);
    for at in 0..most {
        for case in &cases {
            if let Some(events) = batches(case).get(at) {
                case.put(&workspace, "feed", at, events);
            }
        }
        if !one_update {
            workspace.run_ok(&[]);
        }
    }
    if one_update {
        workspace.run_ok(&[]);
    }
    let when = if one_update { "in one update" } else { "an update each" };
    report(cases.iter().filter_map(|case| case.check(&workspace, when).err()).collect(), cases.len());
}

#[test]
fn change_feeds_batch_by_batch_in_one_update() {
    change_feeds(true);
}

#[test]
fn change_feeds_with_an_update_for_each_batch() {
    change_feeds(false);
}

#[test]
fn refused_batches_leave_the_table_as_it_was() {
    let cases: Vec<Case> = cases("cdc").into_iter().filter(|case| case.0["expect_error"].is_object()).collect();
    assert!(cases.len() >= 4);
    for case in cases {
        let workspace = TestWorkspace::new(&pipeline(std::slice::from_ref(&case), |case| case.change_flow("feed", "")));
        let error = &case.0["expect_error"];
        for (at, events) in case.0["batches"].as_array().expect("batches").iter().enumerate() {
            case.put(&workspace, "feed", at, events);
            let outcome = workspace.run(&[]);
            if error["batch"] != at {
                assert_eq!(outcome.state(), "COMPLETED", "{}: {outcome}", case.id());
                continue;
            }
            assert_eq!(outcome.state(), "FAILED", "{}: {outcome}", case.id());
            let said = outcome.flow(&format!("{}_feed", case.table())).to_string();
            let condition = error["condition"].as_str().expect("a condition");
            assert!(said.contains(condition), "{}: {condition} not in {said}", case.id());
            for value in error["params"].as_object().expect("parameters").values() {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
                assert!(said.contains(&value), "{}: {value} not in {said}", case.id());
            }
        }
        case.check(&workspace, "refused").unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

/// Seeds and live feeds: the seed first, the live feed first, both in one update, and after a full refresh.
#[test]
fn a_seed_and_a_live_feed_give_the_same_whichever_comes_first() {
    let cases = cases("cdc_once+cdc");
    let seed = |case: &Case| case.change_flow("seed", " ONCE");
    let live = |case: &Case| case.change_flow("live", "");
    let both = pipeline(&cases, |case| seed(case) + &live(case));
    type Flows<'a> = &'a dyn Fn(&Case) -> String;
    let orders: [(&str, Option<Flows<'_>>); 3] =
        [("seed first", Some(&seed)), ("live first", Some(&live)), ("in one update", None)];
    let mut failures = Vec::new();
    for (when, first) in orders {
        let workspace = TestWorkspace::new(&both);
        for case in &cases {
            case.put(&workspace, "seed", 0, &case.0["seed"]);
            case.put(&workspace, "live", 0, &case.0["live"]);
        }
        failures.extend(cases.iter().filter_map(|case| case.check_cutover(&workspace, "before").err()));
        if let Some(first) = first {
            workspace.define(&pipeline(&cases, first));
            workspace.run_ok(&[]);
            workspace.define(&both);
        }
        failures.extend(cases.iter().filter_map(|case| case.check_cutover(&workspace, when).err()));
        workspace.run_ok(&[]);
        failures.extend(cases.iter().filter_map(|case| case.check(&workspace, when).err()));
        failures.extend(cases.iter().filter_map(|case| case.check_cutover(&workspace, "after both").err()));
        workspace.run_ok(&["--full-refresh-all", "--yes"]);
        failures.extend(cases.iter().filter_map(|case| case.check(&workspace, "after a full refresh").err()));
    }
    report(failures, cases.len());
}

/// Steps of change events and one snapshot; the snapshot flow is added to the pipeline when its step comes.
#[test]
fn a_snapshot_once_beside_a_change_feed() {
    let cases = cases("snapshot_once+cdc");
    let workspace = TestWorkspace::new("");
    cases.iter().for_each(|case| case.make_folders(&workspace, &["feed"]));
    let most = cases.iter().map(|case| case.steps().len()).max().unwrap_or(0);
    let mut with_snapshot: BTreeMap<&str, bool> = BTreeMap::new();
    for at in 0..most {
        for case in &cases {
            match case.steps().get(at) {
                Some(step) if step["cdc"].is_array() => case.put(&workspace, "feed", at, &step["cdc"]),
                Some(step) => {
                    case.put_snapshot(&workspace, &step["snapshot"]);
                    with_snapshot.insert(case.id(), true);
                }
                None => {}
            }
        }
        workspace.define(&pipeline(&cases, |case| {
            let snapshot =
                if with_snapshot.contains_key(case.id()) { case.snapshot_flow(" ONCE") } else { String::new() };
            case.change_flow("feed", "") + &snapshot
        }));
        workspace.run_ok(&[]);
    }
    let failures = cases.iter().filter_map(|case| case.check(&workspace, "step by step").err()).collect();
    report(failures, cases.len());
}

#[test]
fn periodic_snapshots_with_an_update_each() {
    let cases = cases("snapshot_periodic");
    let workspace = TestWorkspace::new(&pipeline(&cases, |case| case.snapshot_flow("")));
    let most = cases.iter().map(|case| case.steps().len()).max().unwrap_or(0);
    for at in 0..most {
        for case in &cases {
            if let Some(step) = case.steps().get(at) {
                case.put_snapshot(&workspace, &step["snapshot"]);
            }
        }
        workspace.run_ok(&[]);
    }
    let failures = cases.iter().filter_map(|case| case.check(&workspace, "an update each").err()).collect();
    report(failures, cases.len());
}
