//! The input of the benchmarks: JSON events by day, the same bytes for the same numbers on every machine.
//!
//! Days are written side by side.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

use chrono::{Datelike, Days, NaiveDate};
use serde::{Deserialize, Serialize};

use crate::draw::{CITIES, COUNTRIES, Draw, FIRST_NAMES, LAST_NAMES, PLANS};
use crate::kept::once;

const FIRST_YEAR: i32 = 2023;
/// The years of the events, a folder and a once flow for each.
pub const YEARS: [i32; 3] = [FIRST_YEAR, FIRST_YEAR + 1, FIRST_YEAR + 2];

const SYSTEMS: [&str; 5] = ["ios", "android", "windows", "macos", "linux"];
const SCREENS: [(u32, u32); 4] = [(720, 1280), (1080, 1920), (1440, 2560), (2560, 1440)];
const TAGS: [&str; 8] = ["newsletter", "beta", "referral", "student", "nonprofit", "partner", "trial", "vip"];

/// What was written, to compare tables with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
    pub amount_cents: u64,
    pub user_ids: u64,
    pub referrers: u64,
    pub tags: u64,
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.files += other.files;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.amount_cents += other.amount_cents;
        self.user_ids += other.user_ids;
        self.referrers += other.referrers;
        self.tags += other.tags;
    }
}

/// Writes `rows` events of three years, a file a day, to `folder/year=/month=/day=`.
pub fn by_day(folder: &Path, rows: u64) -> io::Result<Totals> {
    once(folder, &format!("{rows} events by day"), || {
        let year = |year: i32| -> io::Result<Totals> {
            let mut totals = Totals::default();
            for (day, events) in days(rows).filter(|(day, _)| day.year() == year) {
                let path = folder.join(format!("year={}/month={:02}/day={:02}", day.year(), day.month(), day.day()));
                fs::create_dir_all(&path)?;
                totals.add(write_file(&path.join("part-000.json"), day, events, rows)?);
            }
            Ok(totals)
        };
        thread::scope(|scope| {
            let writers = YEARS.map(|of| scope.spawn(move || year(of)));
            writers.into_iter().try_fold(Totals::default(), |mut totals, writer| {
                totals.add(writer.join().expect("the writer of a year doesn't panic")?);
                Ok(totals)
            })
        })
    })
}

/// Writes `files` files of `rows` events each.
pub fn small_files(folder: &Path, files: u64, rows: u64) -> io::Result<Totals> {
    once(folder, &format!("{files} files of {rows} events"), || {
        let day = first_day();
        let mut totals = Totals::default();
        for file in 0..files {
            let path = folder.join(format!("part-{file:05}.json"));
            totals.add(write_file(&path, day, file * rows..(file + 1) * rows, files * rows)?);
        }
        Ok(totals)
    })
}

/// Writes `files` files with one short record each, a thousand to a folder.
pub fn tiny_files(folder: &Path, files: u64) -> io::Result<Totals> {
    once(folder, &format!("{files} tiny files"), || {
        let mut totals = Totals { files, rows: files, ..Totals::default() };
        for file in 0..files {
            let parent = folder.join(format!("group={:04}", file / 1000));
            if file % 1000 == 0 {
                fs::create_dir_all(&parent)?;
            }
            let amount = Draw(file).below("amount", 500_000);
            let record = format!("{{\"id\":{file},\"amount_cents\":{amount}}}\n");
            fs::write(parent.join(format!("{file:06}.json")), &record)?;
            totals.bytes += record.len() as u64;
            totals.amount_cents += amount;
        }
        Ok(totals)
    })
}

fn first_day() -> NaiveDate {
    NaiveDate::from_ymd_opt(FIRST_YEAR, 1, 1).expect("each year has a first day")
}

/// Every day of the years with the indexes of its events: the same number each, the rest on the first days.
fn days(rows: u64) -> impl Iterator<Item = (NaiveDate, std::ops::Range<u64>)> {
    let days: u64 = YEARS.iter().map(|&year| if is_leap(year) { 366 } else { 365 }).sum();
    let (each, rest) = (rows / days, rows % days);
    (0..days).map(move |n| {
        let start = n * each + n.min(rest);
        (first_day() + Days::new(n), start..start + each + u64::from(n < rest))
    })
}

fn is_leap(year: i32) -> bool {
    NaiveDate::from_ymd_opt(year, 2, 29).is_some()
}

fn write_file(path: &Path, day: NaiveDate, events: std::ops::Range<u64>, all: u64) -> io::Result<Totals> {
    let mut times: Vec<u64> = events.clone().map(|index| Draw(index).below("time", 86_400_000)).collect();
    times.sort_unstable();
    let mut totals = Totals { files: 1, rows: times.len() as u64, ..Totals::default() };
    let mut text = Vec::with_capacity(times.len() * 480);
    for (index, time) in events.zip(times) {
        write_event(Draw(index), &mut text, day, time, all, &mut totals)?;
    }
    totals.bytes = text.len() as u64;
    fs::write(path, text)?;
    Ok(totals)
}

/// One registration, drawn from its index.
fn write_event(
    event: Draw,
    out: &mut Vec<u8>,
    day: NaiveDate,
    time_ms: u64,
    all: u64,
    totals: &mut Totals,
) -> io::Result<()> {
    let (first, last) = (event.one_of("first", &FIRST_NAMES), event.one_of("last", &LAST_NAMES));
    let (user, amount) = (event.below("user", (all / 4).max(1)), event.below("amount", 500_000));
    let (seconds, ms) = (time_ms / 1000, time_ms % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    // Hundred-thousandths of a degree, so that no float is ever rounded.
    let (lat, lon) = (3_500_000 + event.below("lat", 3_000_000), event.below("lon", 3_000_000));
    let (width, height) = event.one_of("screen", &SCREENS);
    totals.amount_cents += amount;
    totals.user_ids += user;
    write!(
        out,
        "{{\"event_id\":\"{:016x}\",\"event_time\":\"{day}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z\",\
         \"event_type\":\"registration\",\"user_id\":{user},\"user\":{{\"name\":\"{first} {last}\",\
         \"email\":\"{}.{}{user}@example.test\",\"address\":{{\"city\":\"{}\",\"country\":\"{}\",\
         \"lat\":{}.{:05},\"lon\":{}.{:05}}}}},",
        event.bits("id"),
        first.to_lowercase(),
        last.to_lowercase(),
        event.one_of("city", &CITIES),
        event.one_of("country", &COUNTRIES),
        lat / 100_000,
        lat % 100_000,
        lon / 100_000,
        lon % 100_000,
    )?;
    write!(
        out,
        "\"device\":{{\"os\":\"{}\",\"app_version\":\"{}.{}.0\",\"screen\":{{\"w\":{width},\"h\":{height}}}}},\
         \"plan\":\"{}\",\"amount_cents\":{amount},\"tags\":[",
        event.one_of("os", &SYSTEMS),
        event.below("major", 12),
        event.below("minor", 40),
        event.one_of("plan", &PLANS),
    )?;
    let tags = event.below("tags", 4);
    for n in 0..tags {
        let comma = if n == 0 { "" } else { "," };
        write!(out, "{comma}\"{}\"", TAGS[(event.bits("tag") >> (3 * n) & 7) as usize])?;
    }
    totals.tags += tags;
    write!(out, "],\"marketing_opt_in\":{},\"referrer\":", event.below("opt_in", 2) == 1)?;
    match event.below("referrer", 5) {
        0 => out.extend_from_slice(b"null}\n"),
        site => {
            totals.referrers += 1;
            writeln!(out, "\"https://r{site}.example.test/c/{}\"}}", event.below("campaign", 65_536))?;
        }
    }
    Ok(())
}
