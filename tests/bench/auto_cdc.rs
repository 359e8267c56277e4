//! How fast AUTO CDC is, beside DuckDB from PyPI applying the same change feed in the same session.
//!
//! ```text
//! cargo bench --bench auto_cdc
//! cargo bench --bench auto_cdc -- --rows 20000 --keys 4000 --targets 20000 --runs 1
//! ```
//! | option | meaning |
//! |---|---|
//! | `--rows N` | events of the feed; default 1,000,000, and 1 % of them come twice |
//! | `--keys N` | its keys; default 200,000 |
//! | `--targets A,B` | rows of the targets of the small micro-batches; default 100000,1000000,10000000 |
//! | `--runs N` | how often each is run; medians are printed; default 3 |
//! | `--keep DIR` | folder of data, tables and DuckDB; default target/bench. Data that is there already is used |
//! | `--only A,B` | of `feed`, `batches`, `targets`; default all |
//!
//! - `feed`: the whole feed in 10 micro-batches, one update that begins with nothing.
//! - `batches`: the same in 100 micro-batches.
//! - `targets`: micro-batches of 1,000 events whose keys are spread over all of a target that has its rows already: 100
//!   in one update a run, one after the other into the same target, then single ones in processes of their own. Then
//!   the table is read through, beside one with the same rows that never changed.
//!
//! All with SCD type 1 and 2. For type 1 the feed meets two peers: MERGE into a table with a primary key, as one usually
//! writes it by hand, which the aim is about; and DELETE and INSERT without one, the fastest that we know, which is held
//! against the same aim.
//!
//! Every figure is of a whole process of the release build, from outside, and stands beside its aim; that of a
//! micro-batch in a running update is the time between two commits, or the update less one with nothing new, divided by
//! the micro-batches, in which maintenance is counted. The program fails if the two tables differ in a row, and shows
//! how; a missed aim is only printed. Without Python or the registry nothing is compared.
//!
//! Parts: `arguments`, `change_feed` (input), `customers` (both sides and the comparison), `duckdb_auto_cdc.py` (the
//! peers), `layout` (the files of a table), `process` (measuring). The largest target needs about 6 GB of disk for a
//! while; tables are removed when they are measured. Machines differ and are busy: compare within one run only.

mod arguments;
mod change_feed;
mod customers;
mod draw;
mod duckdb;
mod figures;
mod kept;
mod layout;
mod process;
mod workspace;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use arguments::Arguments;
use customers::{Applied, Ours, Scd, Theirs, Way};
use duckdb::DuckDb;
use figures::{figure, median, mib, milliseconds, thousands};
use layout::Layout;
use workspace::flowbench_version;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const GIB: u64 = 1 << 30;
const MICRO_BATCHES: usize = 100;
const MICRO_BATCH_ROWS: u64 = 1000;
/// Short processes are noisy and cheap, so they are run more often.
const SHORT_RUNS: usize = 11;

fn main() -> ExitCode {
    arguments::run("auto_cdc", || Options::read()?.run())
}

struct Options {
    common: Arguments,
    rows: u64,
    keys: u64,
    targets: Vec<u64>,
}

impl Options {
    fn read() -> Result<Options> {
        let (mut rows, mut keys, mut targets) = (1_000_000, 200_000, vec![100_000, 1_000_000, 10_000_000]);
        let common = Arguments::read(&PARTS.map(|(name, _)| name), |name, value| {
            match name {
                "--rows" => rows = value.parse()?,
                "--keys" => keys = value.parse::<u64>()?.max(1),
                "--targets" => targets = value.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Options { common, rows, keys, targets })
    }

    fn run(&self) -> Result<()> {
        fs::create_dir_all(self.common.folder.join("change_feeds"))?;
        let cores = std::thread::available_parallelism()?;
        println!("{}, {cores} cores, medians of {} runs", flowbench_version()?, self.common.runs);
        let duckdb = DuckDb::find(&self.common.folder);
        for (_, part) in PARTS.iter().filter(|(name, _)| self.common.has(name)) {
            part(self, duckdb.as_ref())?;
        }
        Ok(())
    }

    fn data(&self, name: &str) -> PathBuf {
        self.common.folder.join("change_feeds").join(name)
    }
}

/// Its name for `--only`, and what it does.
type Part = (&'static str, fn(&Options, Option<&DuckDb>) -> Result<()>);

/// What can be measured, in the order of running.
const PARTS: [Part; 3] = [
    ("feed", |options, duckdb| whole_feed(options, duckdb, 10)),
    ("batches", |options, duckdb| whole_feed(options, duckdb, 100)),
    ("targets", targets),
];

// The whole feed

/// All of the feed into a table that begins empty.
fn whole_feed(options: &Options, duckdb: Option<&DuckDb>, batches: u64) -> Result<()> {
    let name = format!("feed_{batches}");
    let feed = options.data(&name);
    let files = change_feed::feed(&feed, options.rows, options.keys, batches)?.len();
    let (rows, keys) = (thousands(options.rows), thousands(options.keys));
    println!("\n{name}: {rows} events of {keys} keys in {files} micro-batches");
    for scd in Scd::ALL {
        let ours = Ours::new(&options.common.folder, &name, scd, &feed)?;
        let peers = duckdb.into_iter().flat_map(|duckdb| Way::all(scd).iter().map(move |way| (duckdb, *way)));
        let peers = peers
            .map(|(duckdb, way)| Theirs::new(duckdb, &options.common.folder, &name, way, &feed))
            .collect::<Result<Vec<_>>>()?;
        let mut our_runs = Vec::new();
        let mut their_runs: Vec<Vec<Applied>> = peers.iter().map(|_| Vec::new()).collect();
        // Ours and theirs take turns, so that all meet the machine in the same mood.
        for _ in 0..options.common.runs {
            ours.forget()?;
            our_runs.push(ours.update(files)?);
            for (theirs, runs) in peers.iter().zip(&mut their_runs) {
                theirs.forget()?;
                runs.push(theirs.update(files)?);
            }
        }
        let of = scd.words();
        let (our_wall, our_peak) = (wall(&our_runs), peak(&our_runs));
        figure(&format!("{of}: flowbench"), &format!("{:.2} s, {}", our_wall.as_secs_f64(), mib(our_peak)), None);
        figure(&format!("{of}: flowbench, one micro-batch"), &mean_and_p95(&our_runs), None);
        for (theirs, runs) in peers.iter().zip(&their_runs) {
            let name = theirs.name();
            let rows = ours.compare(theirs)?;
            let (their_wall, their_peak) = (wall(runs), peak(runs));
            let value = format!("{:.2} s, {}", their_wall.as_secs_f64(), mib(their_peak));
            figure(&format!("{of}: {name}"), &value, None);
            figure(&format!("{of}: {name}, one micro-batch"), &mean_and_p95(runs), None);
            figure(&format!("{of}: {name}, the same rows"), &thousands(rows), None);
            let ratio = our_wall.as_secs_f64() / their_wall.as_secs_f64();
            let aim = if ratio <= 0.5 { (true, "≤ 0.50") } else { (ratio <= 1.0, "≤ 1.00") };
            figure(&format!("{of}: flowbench / {name}"), &format!("{ratio:.2}"), Some(aim));
        }
        figure(&format!("{of}: files of the table"), &Layout::read(&ours.table())?.to_string(), None);
        ours.remove()?;
        for theirs in peers {
            theirs.forget()?;
        }
    }
    Ok(())
}

// Small micro-batches into targets of all sizes

/// The same micro-batches into small and large targets: what does the size of the target cost?
fn targets(options: &Options, duckdb: Option<&DuckDb>) -> Result<()> {
    for scd in Scd::ALL {
        let mut of_a_million = None;
        for &rows in &options.targets {
            let time = Target { scd, rows }.measure(options, duckdb)?;
            match rows {
                1_000_000 => of_a_million = Some(time),
                10_000_000 => {
                    if let Some(small) = of_a_million {
                        let ratio = time.as_secs_f64() / small.as_secs_f64();
                        let aim = Some((ratio <= 1.5, "≤ 1.50"));
                        figure("a micro-batch at 10 M / at 1 M rows", &format!("{ratio:.2}"), aim);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Target {
    scd: Scd,
    rows: u64,
}

impl Target {
    /// What a micro-batch takes in a running update, all included.
    fn measure(self, options: &Options, duckdb: Option<&DuckDb>) -> Result<Duration> {
        let Target { scd, rows } = self;
        let seed = change_feed::seed(&options.data(&format!("seed_{rows}")), rows)?;
        let files = (MICRO_BATCHES * options.common.runs + SHORT_RUNS) as u64;
        let changes = options.data(&format!("changes_{rows}"));
        let changes = change_feed::changes_of_seeded(&changes, rows, files, MICRO_BATCH_ROWS)?;
        println!(
            "\n{}, target of {} rows: micro-batches of {} events",
            scd.words(),
            thousands(rows),
            thousands(MICRO_BATCH_ROWS)
        );

        let name = format!("target_{rows}");
        let inbox = options.common.folder.join(format!("{}_{name}_inbox", scd.word()));
        if inbox.exists() {
            fs::remove_dir_all(&inbox)?;
        }
        fs::create_dir_all(&inbox)?;
        let ours = Ours::new(&options.common.folder, &name, scd, &inbox)?;
        let theirs = duckdb
            .map(|duckdb| Theirs::new(duckdb, &options.common.folder, &name, Way::Fastest(scd), &inbox))
            .transpose()?;

        let mut sides = Sides { ours: &ours, theirs: theirs.as_ref(), inbox: &inbox, peak_bytes: 0 };
        let (our_seed, their_seed) = sides.deliver(&seed)?;
        figure("flowbench, the rows at first", &seconds_and_peak(&our_seed), None);
        if let (Some(duckdb), Some(their_seed)) = (duckdb, &their_seed) {
            figure(&format!("{}, the rows at first", duckdb.name), &seconds_and_peak(their_seed), None);
        }
        let at_first = Layout::read(&ours.table())?;
        let nothing_new = (0..SHORT_RUNS).map(|_| ours.update(0)).collect::<Result<Vec<_>>>()?;
        let nothing_new = wall(&nothing_new);

        let (mut our_runs, mut their_runs) = (Vec::new(), Vec::new());
        let (in_hundreds, alone) = changes.split_at(MICRO_BATCHES * options.common.runs);
        for hundred in in_hundreds.chunks(MICRO_BATCHES) {
            let (our_run, their_run) = sides.deliver(hundred)?;
            our_runs.push(our_run);
            their_runs.extend(their_run);
        }
        let each = wall(&our_runs).saturating_sub(nothing_new) / MICRO_BATCHES as u32;
        figure("flowbench, micro-batch, between commits", &mean_and_p95(&our_runs), None);
        match rows {
            1_000_000 => milliseconds("flowbench, micro-batch, all included", each, 50),
            _ => figure("flowbench, micro-batch, all included", &ms(each), None),
        }
        if let (Some(duckdb), false) = (duckdb, their_runs.is_empty()) {
            figure(&format!("{}, micro-batch, begin to commit", duckdb.name), &mean_and_p95(&their_runs), None);
            let ratio = each.as_secs_f64() / median(&their_runs, Applied::mean).as_secs_f64();
            figure(&format!("flowbench / {}, micro-batch", duckdb.name), &format!("{ratio:.2}"), None);
        }
        let after = Layout::read(&ours.table())?;

        let (table, fresh) = ours.scans(SHORT_RUNS)?;
        figure("scan of all columns", &ms(table), None);
        figure("scan of the same rows written afresh", &ms(fresh), None);
        let ratio = table.as_secs_f64() / fresh.as_secs_f64();
        figure("scan / scan of rows written afresh", &format!("{ratio:.2}"), Some((ratio <= 1.3, "≤ 1.30")));
        figure("files of the table before the changes", &at_first.to_string(), None);
        figure("files of the table after the changes", &after.to_string(), None);

        let alone = alone.iter().map(|file| sides.deliver(std::slice::from_ref(file))).collect::<Result<Vec<_>>>()?;
        let cold = median(&alone, |(ours, _)| ours.process.wall);
        figure("flowbench, one micro-batch, a process of its own", &ms(cold), None);
        figure("flowbench, update with nothing new", &ms(nothing_new), None);
        if let Some(theirs) = &theirs {
            let cold = median(&alone, |(_, theirs)| theirs.as_ref().map(|theirs| theirs.process.wall));
            let name = &theirs.duckdb.name;
            figure(&format!("{name}, one micro-batch, a process"), &ms(cold.unwrap_or_default()), None);
            let rows = ours.compare(theirs)?;
            figure("rows at the end, the same on both sides", &thousands(rows), None);
        }
        let peak_bytes = sides.peak_bytes;
        let aim = (rows == 10_000_000).then_some((peak_bytes <= 2 * GIB, "≤ 2048 MiB"));
        figure("flowbench, peak memory of all these updates", &mib(peak_bytes), aim);

        // The largest would fill the disk together.
        ours.remove()?;
        if let Some(theirs) = theirs {
            theirs.forget()?;
        }
        fs::remove_dir_all(inbox)?;
        Ok(each)
    }
}

/// Both sides, which look for input in one folder.
struct Sides<'a> {
    ours: &'a Ours,
    theirs: Option<&'a Theirs<'a>>,
    inbox: &'a Path,
    /// The most memory that one of our updates held.
    peak_bytes: u64,
}

impl Sides<'_> {
    /// Puts files into the inbox, and lets both sides apply them.
    fn deliver(&mut self, files: &[PathBuf]) -> Result<(Applied, Option<Applied>)> {
        change_feed::deliver(files, self.inbox)?;
        let ours = self.ours.update(files.len())?;
        self.peak_bytes = self.peak_bytes.max(ours.process.peak_bytes);
        let theirs = self.theirs.map(|theirs| theirs.update(files.len())).transpose()?;
        Ok((ours, theirs))
    }
}

// Figures

fn wall(runs: &[Applied]) -> Duration {
    median(runs, |run| run.process.wall)
}

fn peak(runs: &[Applied]) -> u64 {
    median(runs, |run| run.process.peak_bytes)
}

fn seconds_and_peak(run: &Applied) -> String {
    format!("{:.2} s, {}", run.process.wall.as_secs_f64(), mib(run.process.peak_bytes))
}

fn mean_and_p95(runs: &[Applied]) -> String {
    let (mean, p95) = (median(runs, Applied::mean), median(runs, Applied::p95));
    format!("{}, p95 {}", ms(mean), ms(p95))
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
