//! Numbers, sizes and times for people.

use chrono::{DateTime, Local, Utc};

pub use pipeline::number::{bytes, count, counted, duration, rate};

/// Local date and time to the second.
pub fn date_time(us: i64) -> String {
    local(us).map_or_else(|| "?".to_string(), |time| time.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// Local time of day to the second.
pub fn time(us: i64) -> String {
    local(us).map_or_else(|| "?".to_string(), |time| time.format("%H:%M:%S").to_string())
}

fn local(us: i64) -> Option<DateTime<Local>> {
    DateTime::<Utc>::from_timestamp_micros(us).map(|time| time.with_timezone(&Local))
}
