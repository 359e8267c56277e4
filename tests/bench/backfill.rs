//! How fast flowbench is, beside DuckDB from PyPI doing the same load in the same session.
//!
//! ```text
//! cargo bench --bench backfill
//! cargo bench --bench backfill -- --rows 200000 --runs 1 --only load,start
//! ```
//! | option | meaning |
//! |---|---|
//! | `--rows N` | events of the load; default 2,000,000: 1,096 files, about 0.9 GB |
//! | `--runs N` | how often each is run; medians are printed; default 3 |
//! | `--files N` | files that are known in the ledger; default 200,000 |
//! | `--keep DIR` | folder of data, tables and DuckDB; default target/bench. Data that is there already is used |
//! | `--only A,B` | of `load`, `start`, `micro`, `ledger`; default all |
//!
//! Every figure is of a whole process of the release build, from outside, and stands beside its aim. The program
//! fails if a table has the wrong rows; a missed aim is only printed. Without Python or the registry the load runs
//! without its peer.
//!
//! Parts: `arguments`, `generate` (input), `process` (measuring), `workspace`, `duckdb` and `duckdb_backfill.py` (the
//! peer). Machines differ and are busy: compare within one run only.

mod arguments;
mod draw;
mod duckdb;
mod figures;
mod generate;
mod kept;
mod process;
mod workspace;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use arguments::Arguments;
use duckdb::DuckDb;
use figures::{figure, median, mib, milliseconds, thousands};
use generate::{Totals, YEARS};
use process::{Measured, measure};
use workspace::{Workspace, batch_times, flowbench, flowbench_version};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const GIB: u64 = 1 << 30;
const MICRO_BATCHES: u64 = 100;
const MICRO_BATCH_ROWS: u64 = 1000;
/// Short processes are noisy and cheap, so they are run more often.
const SHORT_RUNS: usize = 11;

fn main() -> ExitCode {
    arguments::run("backfill", || Options::read()?.run())
}

struct Options {
    common: Arguments,
    rows: u64,
    files: u64,
}

impl Options {
    fn read() -> Result<Options> {
        let (mut rows, mut files) = (2_000_000, 200_000);
        let common = Arguments::read(&PARTS.map(|(name, _)| name), |name, value| {
            match name {
                "--rows" => rows = value.parse()?,
                "--files" => files = value.parse()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Options { common, rows, files })
    }

    fn run(&self) -> Result<()> {
        fs::create_dir_all(&self.common.folder)?;
        let cores = std::thread::available_parallelism()?;
        println!("{}, {cores} cores, medians of {} runs", flowbench_version()?, self.common.runs);
        for (_, part) in PARTS.iter().filter(|(name, _)| self.common.has(name)) {
            part(self)?;
        }
        Ok(())
    }
}

/// Its name for `--only`, and what it does.
type Part = (&'static str, fn(&Options) -> Result<()>);

/// What can be measured, in the order of running.
const PARTS: [Part; 4] = [("load", load), ("start", start), ("micro", micro), ("ledger", ledger)];

// The load

/// Two million events into one table by a once flow a year, with the columns given and with the columns found.
fn load(options: &Options) -> Result<()> {
    let events = options.common.folder.join("events");
    let totals = generate::by_day(&events, options.rows)?;
    let duckdb = DuckDb::find(&options.common.folder);
    let mut loads = Vec::new();
    for mode in [Mode::Schema, Mode::Inference] {
        let workspace = Workspace::new(&options.common.folder, mode.word(), &mode.definitions(&events))?;
        loads.push(Load { mode, workspace, ours: Vec::new(), theirs: Vec::new() });
    }
    // Ours and theirs take turns, so that both meet the machine in the same mood.
    for _ in 0..options.common.runs {
        for load in &mut loads {
            load.workspace.forget()?;
            load.ours.push(load.workspace.update()?);
            if let Some(duckdb) = &duckdb {
                load.theirs.push(load_into_duckdb(duckdb, &options.common.folder, load.mode, &events, totals.rows)?);
            }
        }
    }
    let (rows, files, gb) = (thousands(totals.rows), thousands(totals.files), totals.bytes as f64 / 1e9);
    println!("\nload: {rows} events in {files} files, {gb:.2} GB of JSON");
    for load in &loads {
        check(&load.workspace, &totals)?;
        load.print(duckdb.as_ref().map(|duckdb| duckdb.name.as_str()), totals.bytes);
    }
    Ok(())
}

/// The runs of one way to load.
struct Load {
    mode: Mode,
    workspace: Workspace,
    ours: Vec<Measured>,
    theirs: Vec<Measured>,
}

impl Load {
    /// Prints the medians. The aims are for given columns, where both sides do the same work.
    fn print(&self, peer: Option<&str>, bytes: u64) {
        let of = self.mode.words();
        let aim = |is_reached: bool, aim: &'static str| (self.mode == Mode::Schema).then_some((is_reached, aim));
        let wall = |runs: &[Measured]| median(runs, |run| run.wall).as_secs_f64();
        let peak = |runs: &[Measured]| median(runs, |run| run.peak_bytes);
        let (our_wall, our_peak) = (wall(&self.ours), peak(&self.ours));
        let mb_s = bytes as f64 / 1e6 / our_wall;
        figure(&format!("flowbench, {of}"), &format!("{our_wall:.2} s, {mb_s:.0} MB/s"), None);
        figure(&format!("flowbench, {of}: peak memory"), &mib(our_peak), aim(our_peak <= GIB, "≤ 1024 MiB"));
        if let Some(peer) = peer {
            let their_wall = wall(&self.theirs);
            figure(&format!("{peer}, {of}"), &format!("{their_wall:.2} s"), None);
            figure(&format!("{peer}, {of}: peak memory"), &mib(peak(&self.theirs)), None);
            let ratio = our_wall / their_wall;
            figure(&format!("flowbench / {peer}, {of}"), &format!("{ratio:.2}"), aim(ratio <= 1.0, "≤ 1.00"));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Schema,
    Inference,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Mode::Schema => "schema",
            Mode::Inference => "inference",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Mode::Schema => "columns given",
            Mode::Inference => "columns found",
        }
    }

    fn definitions(self, events: &Path) -> String {
        let columns = match self {
            Mode::Schema => {
                ",\n  schema => 'event_id STRING, event_time TIMESTAMP, event_type STRING, user_id BIGINT, \
                 user STRUCT<name: STRING, email: STRING, address: STRUCT<city: STRING, country: STRING, lat: DOUBLE, \
                 lon: DOUBLE>>, device STRUCT<os: STRING, app_version: STRING, screen: STRUCT<w: BIGINT, h: BIGINT>>, \
                 plan STRING, amount_cents BIGINT, tags ARRAY<STRING>, marketing_opt_in BOOLEAN, referrer STRING'"
            }
            Mode::Inference => "",
        };
        let mut sql = "CREATE OR REFRESH STREAMING TABLE events;\n".to_string();
        for year in YEARS {
            sql += &format!(
                "\nCREATE FLOW events_{year} AS INSERT INTO ONCE events BY NAME\nSELECT * FROM read_files('{}/year={year}', \
                 format => 'json'{columns});\n",
                events.display()
            );
        }
        sql
    }
}

// Small things, which are done often

/// A process that has nothing to do: that only says its version, and an update that finds nothing new.
fn start(options: &Options) -> Result<()> {
    println!("\nstart");
    let runs = (0..SHORT_RUNS).map(|_| measure(flowbench().arg("--version"))).collect::<Result<Vec<_>>>()?;
    milliseconds("process that does nothing", median(&runs, |run| run.wall), 60);

    let events = options.common.folder.join("start_events");
    let totals = generate::small_files(&events, 100, 100)?;
    let flow = format!("SELECT * FROM STREAM read_files('{}', format => 'json')", events.display());
    let workspace = Workspace::new(
        &options.common.folder,
        "start",
        &format!("CREATE OR REFRESH STREAMING TABLE events AS {flow};\n"),
    )?;
    workspace.forget()?;
    workspace.update()?;
    let runs = (0..SHORT_RUNS).map(|_| workspace.update()).collect::<Result<Vec<_>>>()?;
    check(&workspace, &totals)?;
    milliseconds("update with nothing new", median(&runs, |run| run.wall), 150);
    Ok(())
}

/// A hundred micro-batches of a thousand rows in a running update.
fn micro(options: &Options) -> Result<()> {
    println!("\nmicro-batches: {MICRO_BATCHES} of {} rows", thousands(MICRO_BATCH_ROWS));
    let events = options.common.folder.join("micro_events");
    let totals = generate::small_files(&events, MICRO_BATCHES, MICRO_BATCH_ROWS)?;
    let definitions = format!(
        "CREATE OR REFRESH STREAMING TABLE events AS SELECT * FROM STREAM read_files('{}', format => 'json', \
         maxFilesPerTrigger => 1);\n",
        events.display()
    );
    let workspace = Workspace::new(&options.common.folder, "micro", &definitions)?;
    let mut per_batch = Vec::new();
    for _ in 0..options.common.runs {
        workspace.forget()?;
        let times = batch_times(&workspace.update()?.stdout)?;
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            return Err("the update reports no batches".into());
        };
        if times.len() as u64 != MICRO_BATCHES {
            return Err(format!("{} micro-batches, not {MICRO_BATCHES}", times.len()).into());
        }
        per_batch.push(Duration::from_micros((last - first) / (MICRO_BATCHES - 1)));
    }
    check(&workspace, &totals)?;
    milliseconds("micro-batch", median(&per_batch, |time| *time), 25);
    Ok(())
}

/// An update that finds nothing new among very many files that it knows.
fn ledger(options: &Options) -> Result<()> {
    println!("\nledger: {} files", thousands(options.files));
    let tiny = options.common.folder.join("tiny");
    let totals = generate::tiny_files(&tiny, options.files)?;
    let definitions = format!(
        "CREATE OR REFRESH STREAMING TABLE events AS SELECT * FROM STREAM read_files('{}/*', format => 'json', \
         schema => 'id BIGINT, amount_cents BIGINT', maxFilesPerTrigger => 20000);\n",
        tiny.display()
    );
    let workspace = Workspace::new(&options.common.folder, "ledger", &definitions)?;
    workspace.forget()?;
    let first = workspace.update()?;
    figure("first update, all files new", &format!("{:.2} s", first.wall.as_secs_f64()), None);
    let runs = (0..options.common.runs).map(|_| workspace.update()).collect::<Result<Vec<_>>>()?;
    let row = row(&workspace, "SELECT count(*), sum(amount_cents) FROM events")?;
    expect_row(&row, &[totals.rows, totals.amount_cents])?;
    milliseconds("update with nothing new, files listed and checked", median(&runs, |run| run.wall), 1000);
    Ok(())
}

// What came of it

/// Fails unless the table holds the events that were generated, each once.
fn check(workspace: &Workspace, totals: &Totals) -> Result<()> {
    let row = row(
        workspace,
        "SELECT count(*), count(DISTINCT event_id), sum(amount_cents), sum(user_id), count(referrer), \
         sum(size(tags)) FROM events",
    )?;
    let Totals { rows, amount_cents, user_ids, referrers, tags, .. } = *totals;
    expect_row(&row, &[rows, rows, amount_cents, user_ids, referrers, tags])
}

/// The only row of a query, all numbers.
fn row(workspace: &Workspace, query: &str) -> Result<Vec<u64>> {
    let out = workspace.query(query)?.stdout;
    let row = out.lines().nth(1).ok_or_else(|| format!("no row from `{query}`: {out}"))?;
    Ok(row.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?)
}

fn expect_row(found: &[u64], expected: &[u64]) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("the table is wrong: {found:?}, generated were {expected:?}").into()),
    }
}

fn load_into_duckdb(duckdb: &DuckDb, folder: &Path, mode: Mode, events: &Path, rows: u64) -> Result<Measured> {
    let out = folder.join("duckdb.parquet");
    let run = measure(duckdb.script("duckdb_backfill.py").arg(mode.word()).arg(events).arg(out))?;
    expect_row(&[run.stdout.trim().parse()?], &[rows])?;
    Ok(run)
}
