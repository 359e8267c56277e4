//! The one place that asks for the time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970 UTC.
pub fn now_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_micros() as i64,
        // A clock set before 1970 is wrong anyway; times in the log are then all the same.
        Err(_) => 0,
    }
}

/// ISO text in UTC with milliseconds, for people: `2025-01-01T00:00:00.000Z`.
pub fn iso(time_us: i64) -> String {
    match chrono::DateTime::from_timestamp_micros(time_us) {
        Some(time) => time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        None => format!("{time_us} µs"),
    }
}
