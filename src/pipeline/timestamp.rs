//! Points in time as the user writes them, and time zones.
//!
//! Not here: the clock, and timestamps in the data (the engine's).

use chrono::{DateTime, FixedOffset, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

/// Reads `2025-01-01`, `2025-01-01T00:00`, `2025-01-01 00:00:00.123456+09:00`, … as microseconds since 1970 UTC.
/// Without offset the time is the wall clock's of `time_zone` (an IANA name): a time that daylight saving skips
/// counts as the one as far after the change, a time that happens twice as the first, as in Spark.
pub fn parse_timestamp_us(text: &str, time_zone: &str) -> Option<i64> {
    let text = text.trim();
    let (date, time) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim_start()),
        None => (text, "00:00"),
    };
    let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    let at = time.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.')).unwrap_or(time.len());
    let (time, zone) = (&time[..at], time[at..].trim_start());
    let time = ["%H:%M:%S%.f", "%H:%M"].iter().find_map(|format| NaiveTime::parse_from_str(time, format).ok())?;
    let local = date.and_time(time);
    match zone {
        "" => local_us(local, time_zone.parse().ok()?),
        "Z" | "z" | "UTC" => Some(local.and_utc().timestamp_micros()),
        offset => Some(local.and_local_timezone(parse_offset(offset)?).single()?.timestamp_micros()),
    }
}

/// Returns the IANA name of a time zone, if there is one of that name, and as IANA spells it.
pub fn time_zone_name(text: &str) -> Option<&'static str> {
    TZ_VARIANTS.iter().map(|zone| zone.name()).find(|name| name.eq_ignore_ascii_case(text))
}

/// All time zones, to suggest from.
pub fn time_zone_names() -> impl Iterator<Item = &'static str> {
    TZ_VARIANTS.iter().map(|zone| zone.name())
}

/// `+09:00`, `-0330`, `+9`.
fn parse_offset(text: &str) -> Option<FixedOffset> {
    let (sign, digits) = match text.strip_prefix('+') {
        Some(digits) => (1, digits),
        None => (-1, text.strip_prefix('-')?),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i32>().ok()).flatten();
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 18 && minutes < 60).then(|| FixedOffset::east_opt(sign * (hours * 3600 + minutes * 60))).flatten()
}

fn local_us(local: NaiveDateTime, zone: Tz) -> Option<i64> {
    let micros = |time: DateTime<Tz>| time.timestamp_micros();
    match zone.from_local_datetime(&local) {
        LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => Some(micros(time)),
        // In a gap the offset from before the change counts; no two changes are within a day.
        LocalResult::None => {
            let day = TimeDelta::days(1);
            let before = zone.from_local_datetime(&local.checked_sub_signed(day)?).earliest()?;
            before.checked_add_signed(day).map(micros)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_zones_shift_properly() {
        let utc = |text: &str| parse_timestamp_us(text, "UTC");
        let expected = utc("2025-01-01T00:00:00.000+00:00");
        assert_eq!(expected, Some(1_735_689_600_000_000));
        for text in [
            "2025-01-01",
            "2025-01-01 00:00",
            "2025-01-01T09:00:00+09:00",
            "2024-12-31T20:30-0330",
            "2025-01-01T00:00:00Z",
        ] {
            assert_eq!(utc(text), expected, "{text}");
        }
        assert_eq!(utc("2024-12-31T23:59:59.999+00:00"), expected.map(|us| us - 1000));
        assert_eq!(parse_timestamp_us("2025-01-01T09:00:00", "Asia/Tokyo"), expected);
        for text in [
            "",
            "yesterday",
            "2025-13-01",
            "2025-01-01T25:00",
            "2025-01-01T00:00:00+19:00",
            "2025-01-01T00:00é",
            "2025-01-01T00:00+é:0",
        ] {
            assert_eq!(utc(text), None, "{text}");
        }
    }

    #[test]
    fn times_that_daylight_saving_skips_or_repeats_are_as_in_spark() {
        let chicago = |text: &str| parse_timestamp_us(text, "America/Chicago");
        assert_eq!(chicago("2025-03-09T02:30:00"), parse_timestamp_us("2025-03-09T03:30:00-05:00", "UTC"));
        assert_eq!(chicago("2025-11-02T01:30:00"), parse_timestamp_us("2025-11-02T01:30:00-05:00", "UTC"));
    }

    #[test]
    fn zones_are_found_without_regard_to_case() {
        assert_eq!(time_zone_name("asia/tokyo"), Some("Asia/Tokyo"));
        assert_eq!(time_zone_name("Asia/Toky"), None);
    }
}
