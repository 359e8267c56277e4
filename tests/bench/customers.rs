//! The table of customers that flowbench and DuckDB keep from the same change feed, and its comparison row by row.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;

use crate::Result;
use crate::change_feed::SCHEMA;
use crate::duckdb::DuckDb;
use crate::figures::median;
use crate::process::{Measured, measure};
use crate::workspace::{Workspace, batch_times, flowbench};

/// How the changes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scd {
    Type1,
    Type2,
}

impl Scd {
    pub const ALL: [Scd; 2] = [Scd::Type1, Scd::Type2];

    pub fn word(self) -> &'static str {
        match self {
            Scd::Type1 => "scd1",
            Scd::Type2 => "scd2",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Scd::Type1 => "SCD 1",
            Scd::Type2 => "SCD 2",
        }
    }

    fn number(self) -> u8 {
        match self {
            Scd::Type1 => 1,
            Scd::Type2 => 2,
        }
    }

    /// The table's columns, as both sides name them.
    fn columns(self) -> &'static str {
        match self {
            Scd::Type1 => "customer_id, name, email, phone, street, city, country, segment, credit_limit, balance",
            Scd::Type2 => {
                "customer_id, name, email, phone, street, city, country, segment, credit_limit, balance, __START_AT, \
                 __END_AT"
            }
        }
    }
}

/// One update of a side.
pub struct Applied {
    pub process: Measured,
    /// How long each micro-batch took, as far as the side tells: flowbench's first one has no commit before it.
    pub batches: Vec<Duration>,
}

impl Applied {
    /// Of the micro-batches; none where there were none.
    pub fn mean(&self) -> Duration {
        self.batches.iter().sum::<Duration>() / self.batches.len().max(1) as u32
    }

    /// 95 of 100 micro-batches took no longer.
    pub fn p95(&self) -> Duration {
        let mut sorted = self.batches.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() * 95 / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// flowbench: one AUTO CDC flow, a file a micro-batch.
pub struct Ours {
    scd: Scd,
    workspace: Workspace,
}

impl Ours {
    pub fn new(parent: &Path, name: &str, scd: Scd, feed: &Path) -> Result<Ours> {
        let definitions = format!(
            "CREATE TEMPORARY VIEW customer_changes AS\nSELECT * FROM STREAM read_files('{}', format => 'parquet',\n  \
             schema => '{SCHEMA}', maxFilesPerTrigger => 1);\n\n\
             CREATE OR REFRESH STREAMING TABLE customers;\n\n\
             CREATE FLOW customers_apply AS AUTO CDC INTO customers\nFROM STREAM(customer_changes)\n\
             KEYS (customer_id)\nAPPLY AS DELETE WHEN op = 'DELETE'\nSEQUENCE BY seq\n\
             COLUMNS * EXCEPT (op, seq)\nSTORED AS SCD TYPE {};\n",
            feed.display(),
            scd.number(),
        );
        let ours = Ours { scd, workspace: Workspace::new(parent, &format!("{}_{name}", scd.word()), &definitions)? };
        ours.workspace.forget()?;
        Ok(ours)
    }

    pub fn forget(&self) -> Result<()> {
        self.workspace.forget()
    }

    /// An update, which applies the files that are new, `batches` of them.
    pub fn update(&self, batches: usize) -> Result<Applied> {
        let process = self.workspace.update()?;
        let times = batch_times(&process.stdout)?;
        if times.len() != batches {
            return Err(format!("flowbench made {} micro-batches of {batches} files", times.len()).into());
        }
        let batches = times.windows(2).map(|pair| Duration::from_micros(pair[1] - pair[0])).collect();
        Ok(Applied { process, batches })
    }

    /// How long it takes to read every value of the table, and of one with the same rows that never saw a change; the
    /// process around the query not counted. Medians of `runs`.
    pub fn scans(&self, runs: usize) -> Result<(Duration, Duration)> {
        let afresh = "customers_afresh";
        let definition = self.workspace.folder.join("transformations").join(format!("{afresh}.sql"));
        fs::write(&definition, format!("CREATE MATERIALIZED VIEW {afresh} AS SELECT * FROM customers;\n"))?;
        measure(flowbench().arg("run").arg(&self.workspace.folder).args(["--refresh", afresh]))?;
        let lengths = ["name", "email", "phone", "street", "city", "country", "segment"]
            .map(|column| format!("sum(length({column}))"))
            .join(", ");
        let scan = |table: &str| -> Result<Duration> {
            let numbers = "count(*), sum(customer_id), sum(credit_limit), sum(balance)";
            Ok(self.workspace.query(&format!("SELECT {numbers}, {lengths} FROM {table}"))?.wall)
        };
        let (mut ours, mut fresh, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..runs {
            nothing.push(self.workspace.query("SELECT 1")?.wall);
            ours.push(scan("customers")?);
            fresh.push(scan(afresh)?);
        }
        fs::remove_file(definition)?;
        let around = median(&nothing, |time| *time);
        let without = |scans: &[Duration]| median(scans, |time| *time).saturating_sub(around);
        Ok((without(&ours), without(&fresh)))
    }

    /// The folder of the Delta table.
    pub fn table(&self) -> PathBuf {
        self.workspace.folder.join(".flowbench/tables/default/customers")
    }

    /// Fails with examples unless the rows are those of DuckDB's table; how many there are.
    pub fn compare(&self, theirs: &Theirs) -> Result<u64> {
        let csv = self.workspace.folder.join("customers.csv");
        let query = format!("SELECT {} FROM customers", self.scd.columns());
        let arguments = ["sql", &query, "--limit", "0", "--format", "csv"];
        let mut command = flowbench();
        command.arg("-C").arg(&self.workspace.folder).args(arguments).stdin(Stdio::null()).stdout(File::create(&csv)?);
        if !command.status()?.success() {
            return Err("the rows of `customers` can't be read".into());
        }
        let found = theirs.compare(&csv)?;
        fs::remove_file(csv)?;
        match found.keys == 0 && found.ours == found.theirs {
            true => Ok(found.ours),
            false => Err(format!(
                "{}: {} rows of flowbench, {} of {}; {} keys differ:\n{}",
                self.scd.words(),
                found.ours,
                found.theirs,
                theirs.name(),
                found.keys,
                found.examples.join("\n"),
            )
            .into()),
        }
    }

    /// Removes the workspace with all its tables.
    pub fn remove(self) -> Result<()> {
        Ok(fs::remove_dir_all(self.workspace.folder)?)
    }
}

/// What DuckDB is told to do.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// SCD type 1 as it is usually written by hand: MERGE INTO a table with a primary key.
    Merge,
    /// The fastest that we know.
    Fastest(Scd),
}

impl Way {
    pub fn all(scd: Scd) -> &'static [Way] {
        match scd {
            Scd::Type1 => &[Way::Merge, Way::Fastest(Scd::Type1)],
            Scd::Type2 => &[Way::Fastest(Scd::Type2)],
        }
    }

    /// As the script calls it.
    fn word(self) -> &'static str {
        match self {
            Way::Merge => "scd1-merge",
            Way::Fastest(scd) => scd.word(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Way::Merge => "MERGE",
            Way::Fastest(Scd::Type1) => "DELETE + INSERT",
            Way::Fastest(Scd::Type2) => "keys anew",
        }
    }
}

/// DuckDB, a file a transaction.
pub struct Theirs<'a> {
    pub duckdb: &'a DuckDb,
    way: Way,
    feed: PathBuf,
    database: PathBuf,
}

#[derive(Deserialize)]
struct Batches {
    batch_s: Vec<f64>,
}

/// What the comparison of the two tables found.
#[derive(Deserialize)]
struct Comparison {
    ours: u64,
    theirs: u64,
    keys: u64,
    examples: Vec<String>,
}

impl<'a> Theirs<'a> {
    pub fn new(duckdb: &'a DuckDb, parent: &Path, name: &str, way: Way, feed: &Path) -> Result<Theirs<'a>> {
        let database = parent.join(format!("{}_{name}.duckdb", way.word()));
        let theirs = Theirs { duckdb, way, feed: feed.to_path_buf(), database };
        theirs.forget()?;
        Ok(theirs)
    }

    /// DuckDB with its version, and what it does.
    pub fn name(&self) -> String {
        format!("{}, {}", self.duckdb.name, self.way.words())
    }

    pub fn forget(&self) -> Result<()> {
        for file in [&self.database, &self.database.with_extension("duckdb.wal")] {
            if file.exists() {
                fs::remove_file(file)?;
            }
        }
        Ok(())
    }

    /// Applies the files that are new, `batches` of them.
    pub fn update(&self, batches: usize) -> Result<Applied> {
        let process = self.run("apply", &self.feed)?;
        let Batches { batch_s } = serde_json::from_str(&process.stdout)?;
        if batch_s.len() != batches {
            return Err(format!("{} made {} transactions of {batches} files", self.duckdb.name, batch_s.len()).into());
        }
        Ok(Applied { process, batches: batch_s.into_iter().map(Duration::from_secs_f64).collect() })
    }

    fn compare(&self, csv: &Path) -> Result<Comparison> {
        Ok(serde_json::from_str(&self.run("compare", csv)?.stdout)?)
    }

    fn run(&self, command: &str, path: &Path) -> Result<Measured> {
        let mut script = self.duckdb.script("duckdb_auto_cdc.py");
        measure(script.args([command, self.way.word()]).arg(&self.database).arg(path))
    }
}
