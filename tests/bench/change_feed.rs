//! Changes of customers as Parquet files, for AUTO CDC: the same rows for the same numbers on every machine.
//!
//! 12 columns: `customer_id`, `op` (INSERT, UPDATE, DELETE), `seq` and nine attributes, which are NULL in a delete. In
//! the order of `seq`, which differs from event to event, a key is inserted, updated, deleted, inserted again; some
//! updates change nothing. In the order of arrival some events are late, and some come twice. A file is a micro-batch:
//! names and times of the files go up in the order of arrival.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::draw::{CITIES, COUNTRIES, Draw, FIRST_NAMES, LAST_NAMES, PLANS};
use crate::kept::once;

/// The columns with their types, as `read_files` takes them.
pub const SCHEMA: &str = "customer_id BIGINT, op STRING, seq TIMESTAMP, name STRING, email STRING, phone STRING, \
                          street STRING, city STRING, country STRING, segment STRING, credit_limit BIGINT, \
                          balance DOUBLE";

/// The rows of a seed that go into one file.
const SEED_FILE_ROWS: u64 = 1_000_000;
/// 2026-01-01 in microseconds: the first change.
const FIRST_CHANGE_US: i64 = 1_767_225_600_000_000;
/// 2023-11-14 in seconds: the time of the first file.
const FIRST_FILE_S: u64 = 1_700_000_000;

const LATE_PER_CENT: u64 = 5;
const TWICE_PER_CENT: u64 = 1;
const DELETES_PER_CENT: u64 = 6;
const CHANGING_NOTHING_PER_CENT: u64 = 3;
/// Of the events over seeded keys.
const NEW_KEYS_PER_CENT: u64 = 2;

/// A feed in which every key comes at least once, some much more often than others.
pub fn feed(folder: &Path, events: u64, keys: u64, files: u64) -> io::Result<Vec<PathBuf>> {
    let what = format!("{events} changes of {keys} keys in {files} files");
    files_once(folder, &what, || {
        let key_of = |index: u64| match index < keys {
            true => spread(index, keys),
            false => {
                let part = Draw(index).below("key", 1 << 20);
                // The square of a part: half of the events are on a quarter of the keys.
                (((part * part) >> 20) * keys) >> 20
            }
        };
        let arrived = arrival(&walk(events, key_of, |_| false), events * 15 / 100);
        let rows_a_file = arrived.len().div_ceil(files as usize);
        write_files(folder, 0, arrived.chunks(rows_a_file))
    })
}

/// A row of each key, in no order of keys: what is in a target before changes come.
pub fn seed(folder: &Path, keys: u64) -> io::Result<Vec<PathBuf>> {
    files_once(folder, &format!("a seed of {keys} keys"), || {
        let mut paths = Vec::new();
        for first in (0..keys).step_by(SEED_FILE_ROWS as usize) {
            let insert = |index: u64| Change {
                key: spread(index, keys),
                version: 0,
                op: Op::Insert,
                seq: FIRST_CHANGE_US - (keys - index) as i64,
            };
            let rows: Vec<Change> = (first..keys.min(first + SEED_FILE_ROWS)).map(insert).collect();
            paths.extend(write_files(folder, paths.len(), [rows.as_slice()])?);
        }
        Ok(paths)
    })
}

/// Files of `rows` changes each, whose keys are spread over all that `seed` inserted; they come after `seed`'s.
pub fn changes_of_seeded(folder: &Path, keys: u64, files: u64, rows: u64) -> io::Result<Vec<PathBuf>> {
    let what = format!("{files} files of {rows} changes of {keys} seeded keys");
    files_once(folder, &what, || {
        let key_of = |index: u64| match Draw(index).below("new key", 100) < NEW_KEYS_PER_CENT {
            true => keys + index,
            false => Draw(index).below("key", keys),
        };
        let arrived = arrival(&walk(files * rows, key_of, |key| key < keys), 15 * rows);
        // The last ones, as many as came twice, stay away.
        let arrived = &arrived[..(files * rows) as usize];
        write_files(folder, keys.div_ceil(SEED_FILE_ROWS) as usize, arrived.chunks(rows as usize))
    })
}

/// Files that are written once, wherever the folder has been moved to since.
fn files_once(folder: &Path, what: &str, write: impl FnOnce() -> io::Result<Vec<PathBuf>>) -> io::Result<Vec<PathBuf>> {
    let written = once(folder, what, write)?;
    Ok(written.iter().filter_map(|path| Some(folder.join(path.file_name()?))).collect())
}

#[derive(Debug, Clone, Copy)]
struct Change {
    key: u64,
    /// What the attributes are drawn from, together with the key.
    version: u32,
    op: Op,
    /// In microseconds since 1970.
    seq: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Insert,
    Update,
    Delete,
}

impl Op {
    fn word(self) -> &'static str {
        match self {
            Op::Insert => "INSERT",
            Op::Update => "UPDATE",
            Op::Delete => "DELETE",
        }
    }
}

/// Changes in the order of their sequence: what happens to a key depends on whether it is there.
fn walk(events: u64, key_of: impl Fn(u64) -> u64, is_seeded: impl Fn(u64) -> bool) -> Vec<Change> {
    let mut keys: HashMap<u64, (bool, u32)> = HashMap::new();
    let change = |index: u64| {
        let (draw, key) = (Draw(index), key_of(index));
        let (is_there, version) = keys.entry(key).or_insert_with(|| (is_seeded(key), 0));
        let op = match *is_there {
            false => Op::Insert,
            true if draw.below("delete", 100) < DELETES_PER_CENT => Op::Delete,
            true => Op::Update,
        };
        *is_there = op != Op::Delete;
        let is_changing = op == Op::Insert || draw.below("same", 100) >= CHANGING_NOTHING_PER_CENT;
        *version += u32::from(op != Op::Delete && is_changing);
        let seq = FIRST_CHANGE_US + (index * 1_000_000 + draw.below("microsecond", 900_000)) as i64;
        Change { key, version: *version, op, seq }
    };
    (0..events).map(change).collect()
}

/// The changes in the order in which they come: some late by up to `late_max` changes, some of them twice.
fn arrival(changes: &[Change], late_max: u64) -> Vec<Change> {
    let mut places: Vec<(u64, u64)> = Vec::with_capacity(changes.len() + changes.len() / 50);
    for index in 0..changes.len() as u64 {
        let draw = Draw(index);
        let is_late = draw.below("late", 100) < LATE_PER_CENT;
        let place = index + if is_late { draw.below("late by", late_max + 1) } else { 0 };
        places.push((place, index));
        if draw.below("twice", 100) < TWICE_PER_CENT {
            places.push((place + draw.below("twice by", late_max + 1), index));
        }
    }
    places.sort_unstable();
    places.into_iter().map(|(_, index)| changes[index as usize]).collect()
}

/// The key at this place of an order in which neighbours are far apart; each key has one place.
fn spread(index: u64, keys: u64) -> u64 {
    // A prime above every number of keys, so that it has no factor in common with it.
    const PRIME: u64 = 2_654_435_761;
    index * PRIME % keys
}

/// Writes each slice as a file; the first one is number `first`.
fn write_files<'a>(
    folder: &Path,
    first: usize,
    files: impl IntoIterator<Item = &'a [Change]>,
) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for (number, changes) in (first..).zip(files) {
        let path = folder.join(format!("{number:06}.parquet"));
        let file = File::create(&path)?;
        let rows = rows(changes).map_err(io::Error::other)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = ArrowWriter::try_new(&file, rows.schema(), Some(properties)).map_err(io::Error::other)?;
        writer.write(&rows).map_err(io::Error::other)?;
        writer.close().map_err(io::Error::other)?;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(FIRST_FILE_S + number as u64))?;
        paths.push(path);
    }
    Ok(paths)
}

/// Links files into a folder where both sides look for input.
pub fn deliver(files: &[PathBuf], folder: &Path) -> io::Result<()> {
    for file in files {
        fs::hard_link(file, folder.join(file.file_name().expect("a written file has a name")))?;
    }
    Ok(())
}

fn rows(changes: &[Change]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let attributes: Vec<Option<Attributes>> =
        changes.iter().map(|change| (change.op != Op::Delete).then(|| Attributes::of(change))).collect();
    let texts = |text: fn(&Attributes) -> &str| -> ArrayRef {
        Arc::new(attributes.iter().map(|row| row.as_ref().map(text)).collect::<StringArray>())
    };
    let keys: Int64Array = changes.iter().map(|change| Some(change.key as i64)).collect();
    let ops: StringArray = changes.iter().map(|change| Some(change.op.word())).collect();
    let seqs: TimestampMicrosecondArray = changes.iter().map(|change| Some(change.seq)).collect();
    let credit_limits: Int64Array = attributes.iter().map(|row| row.as_ref().map(|row| row.credit_limit)).collect();
    let balances: Float64Array = attributes.iter().map(|row| row.as_ref().map(|row| row.balance)).collect();
    RecordBatch::try_from_iter([
        ("customer_id", Arc::new(keys) as ArrayRef),
        ("op", Arc::new(ops)),
        ("seq", Arc::new(seqs.with_timezone("UTC"))),
        ("name", texts(|row| &row.name)),
        ("email", texts(|row| &row.email)),
        ("phone", texts(|row| &row.phone)),
        ("street", texts(|row| &row.street)),
        ("city", texts(|row| row.city)),
        ("country", texts(|row| row.country)),
        ("segment", texts(|row| row.segment)),
        ("credit_limit", Arc::new(credit_limits)),
        ("balance", Arc::new(balances)),
    ])
}

struct Attributes {
    name: String,
    email: String,
    phone: String,
    street: String,
    city: &'static str,
    country: &'static str,
    segment: &'static str,
    credit_limit: i64,
    balance: f64,
}

impl Attributes {
    /// Who a customer is stays; the rest may change with the version.
    fn of(change: &Change) -> Attributes {
        let Change { key, version, .. } = *change;
        let who = Draw(key);
        let at = |version: u32| Draw(key * 1_000_003 + u64::from(version));
        let now = at(version);
        let first = who.one_of("first", &FIRST_NAMES);
        let city = now.one_of("city", &CITIES);
        Attributes {
            name: format!("{first} {}", who.one_of("last", &LAST_NAMES)),
            email: format!("{}.{key}@example.test", first.to_lowercase()),
            phone: format!("+{:010}", at(version / 3).below("phone", 1_000_000_000)),
            street: format!("{city} street {}", now.below("street", 300)),
            city,
            country: who.one_of("country", &COUNTRIES),
            segment: now.one_of("segment", &PLANS),
            credit_limit: 100 * now.below("credit", 50) as i64,
            balance: now.below("balance", 10_000_000) as f64 / 100.0,
        }
    }
}
