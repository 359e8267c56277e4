//! AUTO CDC through the real program: random histories of keys, with late, repeated, deleted, tied, null and unchanged
//! events, in any order, any files, batches and updates, killed and failing in between, seeded first or last; against
//! an oracle that sorts all events of a key and walks over them once.
//!
//! A table has its own clauses and many keys, each with a history of its own, so that a run of few batches tries
//! hundreds of histories. `FLOWBENCH_SEED=n` runs one seed; seeds that failed are in `failing_feeds.txt` and run first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::random::Random;
use crate::fixture::TestWorkspace;

const TABLES: usize = 14;
const KEYS: u64 = 40;
const ROUNDS: usize = 4;
const SCHEMA: &str = "id BIGINT, region STRING, a BIGINT, b STRING, c BIGINT, op STRING, seq BIGINT";
/// The columns that are neither keys nor fixed by them.
const VALUES: [&str; 3] = ["a", "b", "c"];

/// Where an event comes from, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Snapshot,
    Seed,
    Live,
    /// Another live feed, whose name is behind the first one's.
    Second,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    key: u64,
    seq: u64,
    op: char,
    values: [Option<u64>; 3],
    source: Source,
    /// Place in its feed.
    position: usize,
}

/// Rows by key, and the version.
type Snapshot = (BTreeMap<u64, [Option<u64>; 3]>, u64);

/// A table with its clauses and all that is ever fed to it.
#[derive(Debug)]
struct Table {
    name: String,
    scd_type: u8,
    /// Indices into [`VALUES`].
    tracked: Option<Vec<usize>>,
    ignored: Vec<usize>,
    is_composite: bool,
    /// The second feed has no column `c`.
    is_narrow: bool,
    sequence: Sequence,
    sources: Vec<Source>,
    events: Vec<Event>,
    /// The keys of the snapshot, and its version.
    snapshot: Option<Snapshot>,
    files_per_batch: u64,
    /// The round in which the seed or the snapshot is added to the definitions.
    added: usize,
}

#[derive(Debug, Clone, Copy)]
enum Sequence {
    Number,
    Decimal,
    Text,
    Time,
}

impl Sequence {
    fn sql(self, number: &str) -> String {
        match self {
            Sequence::Number => format!("CAST({number} AS BIGINT)"),
            Sequence::Decimal => format!("CAST({number} AS DECIMAL(10,2))"),
            Sequence::Text => format!("CAST({number} AS STRING)"),
            Sequence::Time => format!("to_timestamp(concat('2025-01-01T00:00:', CAST({number} AS STRING)))"),
        }
    }

    fn text(self, number: u64) -> String {
        match self {
            Sequence::Number | Sequence::Text => number.to_string(),
            Sequence::Decimal => format!("{number}.00"),
            Sequence::Time => format!("2025-01-01 00:00:{number}"),
        }
    }
}

impl Table {
    fn random(seed: u64, number: usize) -> Table {
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let random = &mut random;
        let scd_type = random.pick(&[1, 2, 2]);
        let tracked = (scd_type == 2 && random.chance(50)).then(|| random.pick(&[vec![0], vec![1, 2], vec![0, 1]]));
        let ignored = if random.chance(40) { random.pick(&[vec![0, 1, 2], vec![0], vec![1, 2]]) } else { Vec::new() };
        let has_snapshot = scd_type == 1 && ignored.is_empty() && random.chance(60);
        let mut sources = vec![Source::Live];
        if random.chance(50) {
            sources.push(Source::Second);
        }
        if !has_snapshot && random.chance(60) {
            sources.push(Source::Seed);
        }
        let truncates = scd_type == 1 && random.chance(40);
        let values = |random: &mut Random| [(); 3].map(|()| (!random.chance(30)).then(|| random.below(3)));
        let mut events = Vec::new();
        for key in 0..KEYS {
            let mut before: Option<Event> = None;
            for _ in 0..1 + random.below(7) {
                let mut event = Event {
                    key,
                    // Two digits, so that texts sort as numbers do.
                    seq: 10 + random.below(12),
                    op: if random.chance(25) { 'D' } else { 'U' },
                    values: values(random),
                    source: random.pick(&sources),
                    position: 0,
                };
                match &before {
                    // Unchanged, a tie, or the same event again.
                    Some(before) if random.chance(20) => event.values = before.values,
                    Some(before) if random.chance(15) => event.seq = before.seq,
                    Some(before) if random.chance(15) => event = before.clone(),
                    _ => {}
                }
                before = Some(event.clone());
                events.push(event);
            }
        }
        if truncates {
            for _ in 0..1 + random.below(2) {
                let source = random.pick(&sources);
                events.push(Event {
                    key: 0,
                    seq: 10 + random.below(6),
                    op: 'T',
                    values: [None; 3],
                    source,
                    position: 0,
                });
            }
        }
        random.shuffle(&mut events);
        events.iter_mut().enumerate().for_each(|(position, event)| event.position = position);
        let snapshot = has_snapshot.then(|| {
            let keys: BTreeSet<u64> = (0..KEYS / 2).map(|_| random.below(KEYS + 5)).collect();
            (keys.into_iter().map(|key| (key, values(random))).collect(), 12 + random.below(8))
        });
        // A flow can't track a column that it lacks.
        let tracks_c = tracked.as_ref().is_some_and(|tracked| tracked.contains(&2));
        let is_narrow = ignored.is_empty() && !tracks_c && random.chance(40);
        Table {
            name: format!("t{number}"),
            scd_type,
            tracked,
            is_narrow,
            ignored,
            is_composite: random.chance(40),
            sequence: random.pick(&[
                Sequence::Number,
                Sequence::Number,
                Sequence::Decimal,
                Sequence::Text,
                Sequence::Time,
            ]),
            sources,
            events,
            snapshot,
            files_per_batch: 1 + random.below(3),
            added: random.below(ROUNDS as u64) as usize,
        }
    }

    fn keys(&self) -> &str {
        if self.is_composite { "region, id" } else { "id" }
    }

    /// The definitions of the table in a round.
    fn sql(&self, round: usize) -> String {
        let name = &self.name;
        let names = |columns: &[usize]| columns.iter().map(|column| VALUES[*column]).collect::<Vec<_>>().join(", ");
        let mut sql = format!("CREATE STREAMING TABLE {name};\n");
        let tracked = self.tracked.as_ref().map(|tracked| format!(" TRACK HISTORY ON ({})", names(tracked)));
        for source in &self.sources {
            let (flow, once, narrow) = match source {
                Source::Snapshot => continue,
                Source::Seed if round < self.added => continue,
                Source::Seed => ("seed", " ONCE", ""),
                Source::Live => ("live", "", ""),
                Source::Second => ("second", "", if self.is_narrow { ", c" } else { "" }),
            };
            let ignored = match self.ignored.len() {
                0 => String::new(),
                3 => " IGNORE NULL UPDATES".to_string(),
                _ => format!(" IGNORE NULL UPDATES ON ({})", names(&self.ignored)),
            };
            let truncate = if self.scd_type == 1 { " APPLY AS TRUNCATE WHEN op = 'T'" } else { "" };
            write!(
                sql,
                "CREATE TEMPORARY VIEW {name}_{flow}_rows AS SELECT * FROM STREAM read_files('data/{name}/{flow}', format => 'json', \
                 schema => '{SCHEMA}', schemaEvolutionMode => 'none', maxFilesPerTrigger => {});\n\
                 CREATE FLOW {name}_{flow} AS AUTO CDC{once} INTO {name} FROM STREAM({name}_{flow}_rows) KEYS ({}){ignored} \
                 APPLY AS DELETE WHEN op = 'D'{truncate} SEQUENCE BY {} COLUMNS * EXCEPT (op, seq{narrow}) STORED AS SCD TYPE {}{};\n",
                self.files_per_batch,
                self.keys(),
                self.sequence.sql("seq"),
                self.scd_type,
                tracked.as_deref().unwrap_or_default()
            )
            .unwrap();
        }
        if let Some((_, version)) = self.snapshot.as_ref().filter(|_| round >= self.added) {
            writeln!(
                sql,
                "CREATE FLOW {name}_snapshot AS AUTO CDC ONCE INTO {name} FROM SNAPSHOT (SELECT * EXCEPT (op, seq) FROM \
                 read_files('data/{name}/snapshot', format => 'json', schema => '{SCHEMA}', schemaEvolutionMode => 'none')) \
                 WITH VERSION (SELECT {}) KEYS ({});",
                self.sequence.sql(&version.to_string()),
                self.keys()
            )
            .unwrap();
        }
        sql
    }

    /// Its files: the feed's folder, and the events in it.
    fn files(&self, random: &mut Random) -> Vec<(&'static str, Vec<Event>)> {
        let mut files = Vec::new();
        for (source, folder) in [(Source::Seed, "seed"), (Source::Live, "live"), (Source::Second, "second")] {
            let mut rest: Vec<Event> = self.events.iter().filter(|event| event.source == source).cloned().collect();
            while !rest.is_empty() {
                let some = (1 + random.below(40)).min(rest.len() as u64) as usize;
                let behind = rest.split_off(some);
                files.push((folder, std::mem::replace(&mut rest, behind)));
            }
        }
        files
    }

    fn line(&self, key: u64, seq: u64, op: char, values: [Option<u64>; 3]) -> String {
        let mut row = serde_json::json!({ "op": op.to_string(), "seq": seq });
        if op != 'T' {
            row["id"] = key.into();
            row["region"] = region(key).into();
        }
        for (name, value) in VALUES.iter().zip(values) {
            row[*name] = match value {
                None => serde_json::Value::Null,
                Some(value) if *name == "b" => format!("x{value}").into(),
                Some(value) => value.into(),
            };
        }
        format!("{row}\n")
    }

    /// What the table must show: everything at once, sorted, one walk.
    fn oracle(&self) -> Vec<String> {
        let floor = self.events.iter().filter(|event| event.op == 'T').map(|event| event.seq).max();
        let mut rows = Vec::new();
        for key in 0..KEYS + 5 {
            let mut events: Vec<Event> =
                self.events.iter().filter(|event| event.key == key && event.op != 'T').cloned().collect();
            if let Some((snapshot, version)) = &self.snapshot {
                let (op, values) = snapshot.get(&key).map_or(('D', [None; 3]), |values| ('U', *values));
                events.push(Event { key, seq: *version, op, values, source: Source::Snapshot, position: 0 });
            }
            events.retain(|event| floor.is_none_or(|floor| event.seq > floor));
            let precedence = |event: &Event| {
                (event.seq, event.source != Source::Snapshot, event.op == 'D', event.source, event.position)
            };
            events.sort_by_key(precedence);
            // The last of each sequence wins; where it ignores its NULLs, those beneath it show.
            let mut timeline: Vec<Event> = Vec::new();
            for mut event in events {
                if let Some(last) = timeline.pop_if(|last| last.seq == event.seq) {
                    for column in self.ignored.iter().filter(|_| event.op != 'D') {
                        event.values[*column] = event.values[*column].or(last.values[*column]);
                    }
                }
                timeline.push(event);
            }
            self.walk(key, timeline, &mut rows);
        }
        rows.sort();
        rows
    }

    fn walk(&self, key: u64, timeline: Vec<Event>, rows: &mut Vec<String>) {
        /// An open run: its start and its latest values.
        struct Run {
            start: u64,
            values: [Option<u64>; 3],
        }
        let mut run: Option<Run> = None;
        let mut close = |run: Run, end: Option<u64>| {
            if self.scd_type == 1 && end.is_some() {
                return;
            }
            let mut row = self.row(key, run.values);
            if self.scd_type == 2 {
                let end = end.map_or("null".to_string(), |end| self.sequence.text(end));
                write!(row, "|{}|{end}", self.sequence.text(run.start)).unwrap();
            }
            rows.push(row);
        };
        for event in timeline {
            if event.op == 'D' {
                run.take().into_iter().for_each(|run| close(run, Some(event.seq)));
                continue;
            }
            let mut values = event.values;
            if event.source == Source::Second && self.is_narrow {
                values[2] = None;
            }
            for column in &self.ignored {
                values[*column] = values[*column].or(run.as_ref().and_then(|run| run.values[*column]));
            }
            let all = vec![0, 1, 2];
            let tracked = self.tracked.as_ref().unwrap_or(&all);
            match run.as_mut().filter(|run| tracked.iter().all(|column| run.values[*column] == values[*column])) {
                Some(run) => run.values = values,
                None => {
                    run.take().into_iter().for_each(|run| close(run, Some(event.seq)));
                    run = Some(Run { start: event.seq, values });
                }
            }
        }
        run.into_iter().for_each(|run| close(run, None));
    }

    fn row(&self, key: u64, values: [Option<u64>; 3]) -> String {
        let text =
            |value: Option<u64>, prefix: &str| value.map_or("null".to_string(), |value| format!("{prefix}{value}"));
        let [a, b, c] = values;
        format!("{key}|{}|{}|{}|{}", region(key), text(a, ""), text(b, "x"), text(c, ""))
    }

    fn shown(&self, workspace: &TestWorkspace) -> Vec<String> {
        let interval = if self.scd_type == 2 { ", __START_AT, __END_AT" } else { "" };
        let mut rows = workspace.rows(&format!("SELECT id, region, a, b, c{interval} FROM {}", self.name));
        rows.sort();
        rows
    }
}

fn region(key: u64) -> String {
    format!("r{}", key % 3)
}

/// A fail point that may or may not be passed.
fn fail_point(random: &mut Random) -> String {
    let point =
        random.pick(&["plan", "planned", "side-committed", "side-committed", "committed", "marked", "moves-committed"]);
    let action = random.pick(&["kill", "kill", "error"]);
    match point {
        "moves-committed" => format!("{point}={action}"),
        _ => {
            let flow = random.pick(&["live", "second", "seed", "snapshot"]);
            format!(
                "{point}@t{}_{flow}={action};{point}:{}={action}",
                random.below(TABLES as u64),
                1 + random.below(40)
            )
        }
    }
}

/// Runs all tables of a seed; what is wrong, table by table.
fn run(seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let tables: Vec<Table> = (0..TABLES).map(|number| Table::random(seed, number)).collect();
    let workspace = TestWorkspace::new("");
    // A file arrives in a round; the seed's and the snapshot's are there from the start.
    let mut arrivals: Vec<Vec<(String, String)>> = vec![Vec::new(); ROUNDS];
    for table in &tables {
        for folder in ["live", "second", "seed"] {
            std::fs::create_dir_all(workspace.path(&format!("data/{}/{folder}", table.name))).unwrap();
        }
        let mut rounds: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, (folder, events)) in table.files(&mut random).into_iter().enumerate() {
            let round = rounds.entry(folder).or_default();
            *round = (*round + usize::from(random.chance(35))).min(ROUNDS - 1);
            let lines = events.iter().map(|event| table.line(event.key, event.seq, event.op, event.values)).collect();
            let round = if folder == "seed" { 0 } else { *round };
            arrivals[round].push((format!("data/{}/{folder}/{number:03}.json", table.name), lines));
        }
        if let Some((rows, _)) = &table.snapshot {
            let lines = rows.iter().map(|(key, values)| table.line(*key, 0, 'U', *values)).collect();
            arrivals[0].push((format!("data/{}/snapshot/0.json", table.name), lines));
        }
    }
    for (round, files) in arrivals.iter().enumerate() {
        for (path, lines) in files {
            workspace.write(path, lines);
            let number: u32 = path.rsplit(['/', '.']).nth(1).unwrap().parse().unwrap();
            workspace.set_time(path, &format!("2025-01-01T00:{:02}:{:02}Z", number / 60, number % 60));
        }
        workspace.define(&tables.iter().map(|table| table.sql(round)).collect::<String>());
        if round + 1 < ROUNDS {
            let outcome = workspace.command_with(&["run"], &[("FLOWBENCH_FAIL_POINT", &fail_point(&mut random))]);
            assert!(matches!(outcome.code, None | Some(0)), "seed {seed}: {outcome}");
        }
    }
    workspace.run_ok(&[]);
    let mut wrong = Vec::new();
    for table in &tables {
        let (shown, expected) = (table.shown(&workspace), table.oracle());
        if shown != expected {
            let extra: Vec<&String> = shown.iter().filter(|row| !expected.contains(row)).collect();
            let missing: Vec<&String> = expected.iter().filter(|row| !shown.contains(row)).collect();
            let key = extra.iter().chain(&missing).next().map(|row| row.split('|').next().unwrap().to_string());
            let key: Option<u64> = key.map(|key| key.parse().unwrap());
            let events: Vec<&Event> =
                table.events.iter().filter(|event| Some(event.key) == key || event.op == 'T').collect();
            wrong.push(format!(
                "FLOWBENCH_SEED={seed}: {}\n{}  too many {extra:?}\n  missing {missing:?}\n  events {events:#?}\n  snapshot {:?}",
                table.name,
                table.sql(ROUNDS),
                table.snapshot.as_ref().map(|(rows, version)| (rows.get(&key.unwrap_or_default()), version))
            ));
        }
    }
    wrong
}

/// The seeds to run: one by name, or those that failed before and some more.
fn seeds(more: u64) -> Vec<u64> {
    if let Ok(seed) = std::env::var("FLOWBENCH_SEED") {
        return vec![seed.parse().unwrap()];
    }
    let known = include_str!("failing_feeds.txt").lines().filter(|line| !line.starts_with('#'));
    known.map(|line| line.parse().unwrap()).chain(1..=more).collect()
}

#[test]
fn any_order_and_batching_of_changes_gives_the_table_of_all_events_at_once() {
    let wrong: Vec<String> = seeds(3).into_iter().flat_map(run).collect();
    assert!(
        wrong.is_empty(),
        "{} tables differ; add their seeds to failing_feeds.txt\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The open rows of a history are the rows of SCD type 1 over the same feed.
#[test]
fn open_rows_of_a_history_are_the_latest_rows_of_the_same_feed() {
    let seed = seeds(1)[0];
    let mut random = Random(seed);
    let pairs: Vec<[Table; 2]> = (0..6)
        .map(|number| {
            let table = |scd_type: u8| {
                let mut table = Table::random(seed ^ 0x5eed, number);
                table.name = format!("t{number}_{scd_type}");
                table.scd_type = scd_type;
                table.tracked = table.tracked.filter(|_| scd_type == 2);
                table.snapshot = None;
                table.events.retain(|event| event.op != 'T');
                table.added = 0;
                table
            };
            [table(1), table(2)]
        })
        .collect();
    let workspace = TestWorkspace::new(&pairs.iter().flatten().map(|table| table.sql(0)).collect::<String>());
    for pair in &pairs {
        for (number, (folder, events)) in pair[0].files(&mut random).into_iter().enumerate() {
            let lines: String =
                events.iter().map(|event| pair[0].line(event.key, event.seq, event.op, event.values)).collect();
            for table in pair {
                let path = format!("data/{}/{folder}/{number:03}.json", table.name);
                workspace.write(&path, &lines);
                workspace.set_time(&path, &format!("2025-01-01T00:{:02}:{:02}Z", number / 60, number % 60));
            }
        }
    }
    workspace.run_ok(&[]);
    for [latest, history] in &pairs {
        let open = format!("SELECT id, region, a, b, c FROM {} WHERE __END_AT IS NULL ORDER BY ALL", history.name);
        let rows = format!("SELECT id, region, a, b, c FROM {} ORDER BY ALL", latest.name);
        let open = workspace.rows(&open);
        assert!(!open.is_empty());
        assert_eq!(open, workspace.rows(&rows), "seed {seed}: {}", history.sql(0));
    }
}
