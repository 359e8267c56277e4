//! Texts of dates and timestamps: ISO forms, and the patterns of `timestampFormat` and `dateFormat`.
//!
//! Not here: the patterns themselves (`pattern.rs`); numbers as timestamps (`value.rs`).

use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use super::pattern::Pattern;
use crate::error::{Error, Result};

const US_PER_SECOND: i64 = 1_000_000;
const US_PER_DAY: i64 = 86_400 * US_PER_SECOND;

/// How texts become times.
#[derive(Debug, Clone)]
pub struct TimeFormat {
    /// For timestamps without offset. None: UTC.
    zone: Option<Tz>,
    timestamp: Option<Pattern>,
    date: Option<Pattern>,
}

/// What a text says about a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Microseconds since 1970 of the date and time as written.
    pub local_us: i64,
    pub zone: Option<Zone>,
}

/// The zone that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// Seconds east of UTC.
    Fixed(i32),
    Named(Tz),
}

impl TimeFormat {
    /// `time_zone` is an IANA name; the patterns are Spark's.
    ///
    /// # Errors
    /// A zone that isn't known, a pattern letter that can't be read.
    pub fn new(time_zone: &str, timestamp: Option<&str>, date: Option<&str>) -> Result<TimeFormat> {
        let zone: Tz = time_zone.parse().map_err(|_| {
            Error::user(
                "unknown-time-zone",
                format!("unknown time zone `{time_zone}`"),
                "use an IANA name such as `Europe/Berlin`",
            )
        })?;
        Ok(TimeFormat {
            zone: (zone != Tz::UTC).then_some(zone),
            timestamp: timestamp.map(Pattern::parse).transpose()?,
            date: date.map(Pattern::parse).transpose()?,
        })
    }

    /// Microseconds since 1970 UTC. Digits past the microsecond are cut off.
    #[inline]
    pub fn timestamp(&self, text: &[u8]) -> Option<i64> {
        if self.timestamp.is_none()
            && let Some(us) = utc_milliseconds(text)
        {
            return Some(us);
        }
        let moment = self.moment(text)?;
        match moment.zone {
            Some(Zone::Fixed(seconds)) => moment.local_us.checked_sub(seconds as i64 * US_PER_SECOND),
            Some(Zone::Named(zone)) => to_utc(moment.local_us, zone),
            None => match self.zone {
                None => Some(moment.local_us),
                Some(zone) => to_utc(moment.local_us, zone),
            },
        }
    }

    /// Microseconds since 1970 without zone; a text with a zone is none.
    pub fn timestamp_ntz(&self, text: &[u8]) -> Option<i64> {
        let moment = self.moment(text)?;
        moment.zone.is_none().then_some(moment.local_us)
    }

    /// Days since 1970. A text with a time of day is no date: the time would be lost.
    pub fn date(&self, text: &[u8]) -> Option<i32> {
        let us = match &self.date {
            Some(pattern) => pattern.read(std::str::from_utf8(text).ok()?)?.local_us,
            None => {
                let (days, rest) = iso_date(text)?;
                if !rest.is_empty() {
                    return None;
                }
                return i32::try_from(days).ok();
            }
        };
        i32::try_from(us.div_euclid(US_PER_DAY)).ok()
    }

    /// Whether inference takes the text for a timestamp: a date *and* a time of day, or a match of the pattern.
    pub fn looks_like_timestamp(&self, text: &[u8]) -> bool {
        match &self.timestamp {
            Some(_) => self.moment(text).is_some(),
            None => text.len() > 10 && self.timestamp(text).is_some(),
        }
    }

    fn moment(&self, text: &[u8]) -> Option<Moment> {
        match &self.timestamp {
            Some(pattern) => pattern.read(std::str::from_utf8(text).ok()?),
            None => iso_moment(text),
        }
    }
}

/// The commonest form, read without any search: `2024-01-31T12:34:56.789Z`.
#[inline(always)]
fn utc_milliseconds(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let mut bad = (text[4] ^ b'-') | (text[7] ^ b'-') | (text[10] ^ b'T') | (text[13] ^ b':') | (text[16] ^ b':');
    bad |= (text[19] ^ b'.') | (text[23] ^ b'Z');
    let mut digits_bad = false;
    let mut digit = |at: usize| {
        let digit = text[at].wrapping_sub(b'0');
        digits_bad |= digit > 9;
        digit as i64
    };
    let mut two = |at: usize| digit(at) * 10 + digit(at + 1);
    let year = two(0) * 100 + two(2);
    let (month, day, hour, minute, second) = (two(5), two(8), two(11), two(14), two(17));
    let ms = two(20) * 10 + digit(22);
    if bad != 0 || digits_bad {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    (hour < 24 && minute < 60 && second < 60)
        .then(|| (((days * 24 + hour) * 60 + minute) * 60 + second) * US_PER_SECOND + ms * 1000)
}

/// `yyyy-MM-dd`, alone or with ` ` or `T` and `HH:mm[:ss[.fraction]]` and an optional zone.
fn iso_moment(text: &[u8]) -> Option<Moment> {
    let (days, rest) = iso_date(text.trim_ascii())?;
    let midnight_us = days * US_PER_DAY;
    let Some((separator, rest)) = rest.split_first() else {
        return Some(Moment { local_us: midnight_us, zone: None });
    };
    if !matches!(separator, b'T' | b't' | b' ') {
        return None;
    }
    let (hour, rest) = digits(rest, 1, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(b":")?, 1, 2)?;
    let (second, rest) = match rest.strip_prefix(b":") {
        Some(rest) => digits(rest, 1, 2)?,
        None => (0, rest),
    };
    let (us, rest) = match rest.strip_prefix(b".") {
        Some(rest) => fraction_us(rest)?,
        None => (0, rest),
    };
    let zone = if rest.is_empty() { None } else { Some(zone(rest)?) };
    Some(Moment { local_us: midnight_us + time_of_day_us(hour, minute, second, us)?, zone })
}

fn iso_date(text: &[u8]) -> Option<(i64, &[u8])> {
    let (year, rest) = digits(text, 4, 4)?;
    let (month, rest) = digits(rest.strip_prefix(b"-")?, 1, 2)?;
    let (day, rest) = digits(rest.strip_prefix(b"-")?, 1, 2)?;
    Some((days_since_1970(year, month, day)?, rest))
}

/// Microseconds since midnight, if there is such a time of day.
pub fn time_of_day_us(hour: i64, minute: i64, second: i64, us: i64) -> Option<i64> {
    (hour < 24 && minute < 60 && second < 60).then(|| ((hour * 60 + minute) * 60 + second) * US_PER_SECOND + us)
}

/// Reads one to nine digits after a decimal point as microseconds.
pub fn fraction_us(text: &[u8]) -> Option<(i64, &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&count) {
        return None;
    }
    let us = (0..6).fold(0, |us, at| us * 10 + if at < count { (text[at] - b'0') as i64 } else { 0 });
    Some((us, &text[count..]))
}

/// Reads `min..=max` digits.
pub fn digits(text: &[u8], min: usize, max: usize) -> Option<(i64, &[u8])> {
    let count = text.iter().take(max).take_while(|byte| byte.is_ascii_digit()).count();
    if count < min {
        return None;
    }
    Some((text[..count].iter().fold(0, |value, digit| value * 10 + (digit - b'0') as i64), &text[count..]))
}

/// Reads a whole text as a zone: `Z`, `+2`, `+02`, `+0200`, `+02:00`, `+02:00:00`, `UTC`, `Europe/Berlin`.
pub fn zone(text: &[u8]) -> Option<Zone> {
    let text = text.trim_ascii_start();
    match text {
        b"Z" | b"z" => return Some(Zone::Fixed(0)),
        [b'+' | b'-', ..] => {
            let (seconds, rest) = offset(text)?;
            return rest.is_empty().then_some(Zone::Fixed(seconds));
        }
        _ => {}
    }
    std::str::from_utf8(text).ok()?.parse().ok().map(Zone::Named)
}

/// Reads `±h`, `±hh`, `±hhmm`, `±hh:mm`, each with optional seconds, as seconds east of UTC.
pub fn offset(text: &[u8]) -> Option<(i32, &[u8])> {
    let (sign, rest) = text.split_first()?;
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, mut rest) = digits(rest, 1, 2)?;
    let mut parts = [0, 0];
    for part in &mut parts {
        let after_colon = rest.strip_prefix(b":").unwrap_or(rest);
        match digits(after_colon, 2, 2) {
            Some((value, after)) => (*part, rest) = (value, after),
            None => break,
        }
    }
    let [minutes, seconds] = parts;
    let is_offset = hours <= 18 && minutes < 60 && seconds < 60;
    is_offset.then_some((sign * (hours * 3600 + minutes * 60 + seconds) as i32, rest))
}

/// Days since 1970 of a day of the Gregorian calendar; None if there is no such day.
///
/// Howard Hinnant's `days_from_civil`: years start in March, so that the leap day comes last.
#[inline(always)]
pub fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if day > DAYS[month as usize - 1] + (is_leap && month == 2) as i64 {
        return None;
    }
    let year = year - (month <= 2) as i64;
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Local time to UTC as Java does: of two possible times the earlier, and a time in a gap moves on by the gap.
fn to_utc(local_us: i64, zone: Tz) -> Option<i64> {
    let local = DateTime::from_timestamp_micros(local_us)?.naive_utc();
    let utc_us =
        |local: NaiveDateTime, seconds: i32| local.and_utc().timestamp_micros() - seconds as i64 * US_PER_SECOND;
    let seconds = match zone.offset_from_local_datetime(&local) {
        LocalResult::Single(offset) => offset.fix().local_minus_utc(),
        LocalResult::Ambiguous(earlier, _) => earlier.fix().local_minus_utc(),
        // The offset before the gap keeps the time's distance from the gap's start.
        LocalResult::None => {
            let before = local.checked_sub_signed(Duration::days(1))?;
            zone.offset_from_local_datetime(&before).earliest()?.fix().local_minus_utc()
        }
    };
    Some(utc_us(local, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros()
    }

    #[test]
    fn iso_timestamps_are_read_in_their_zone() {
        let cases = [
            ("2024-01-31T12:34:56.789Z", Some("2024-01-31T12:34:56.789Z")),
            ("2024-01-31 12:34:56", Some("2024-01-31T12:34:56Z")),
            ("2024-01-31T12:34:56.123456789Z", Some("2024-01-31T12:34:56.123456Z")),
            ("2024-01-31T12:34:56+02:00", Some("2024-01-31T10:34:56Z")),
            ("2024-01-31T12:34:56-0530", Some("2024-01-31T18:04:56Z")),
            ("2024-01-31 12:34:56 America/Chicago", Some("2024-01-31T18:34:56Z")),
            ("2024-01-31", Some("2024-01-31T00:00:00Z")),
            ("2024-02-29T00:00Z", Some("2024-02-29T00:00:00Z")),
            ("1969-12-31T23:59:59.999Z", Some("1969-12-31T23:59:59.999Z")),
            ("0001-01-01T00:00:00.000Z", Some("0001-01-01T00:00:00Z")),
            ("2023-02-29T00:00:00.000Z", None),
            ("2024-13-01T00:00:00.000Z", None),
            ("2024-01-31T24:00:00.000Z", None),
            ("2024-01-31T12:34:56.789X", None),
            ("2024-01-31T12:3a:56.789Z", None),
            ("20240131", None),
            ("", None),
        ];
        let format = TimeFormat::new("UTC", None, None).unwrap();
        for (text, expected) in cases {
            assert_eq!(format.timestamp(text.as_bytes()), expected.map(us), "{text}");
        }
    }

    #[test]
    fn local_times_are_resolved_as_java_does() {
        let format = TimeFormat::new("America/Chicago", None, None).unwrap();
        let cases = [
            ("2024-07-01 12:00:00", "2024-07-01T17:00:00Z"),
            // The gap of 2024-03-10: 02:30 becomes 03:30 CDT.
            ("2024-03-10 02:30:00", "2024-03-10T08:30:00Z"),
            // The overlap of 2024-11-03: 01:30 is taken as CDT.
            ("2024-11-03 01:30:00", "2024-11-03T06:30:00Z"),
            ("2024-07-01T12:00:00Z", "2024-07-01T12:00:00Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(format.timestamp(text.as_bytes()), Some(us(expected)), "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_is_counted() {
        let mut days = days_since_1970(1800, 1, 1).unwrap();
        let mut date = chrono::NaiveDate::from_ymd_opt(1800, 1, 1).unwrap();
        while date.format("%Y").to_string() != "2200" {
            use chrono::Datelike;
            let counted = days_since_1970(date.year() as i64, date.month() as i64, date.day() as i64);
            assert_eq!(counted, Some(days), "{date}");
            (days, date) = (days + 1, date.succ_opt().unwrap());
        }
    }

    #[test]
    fn dates_and_times_without_zone_take_nothing_else() {
        let format = TimeFormat::new("UTC", None, None).unwrap();
        assert_eq!(format.date(b"1970-01-02"), Some(1));
        assert_eq!(format.date(b"1970-1-2"), Some(1));
        assert_eq!(format.date(b"1970-01-02T00:00:01"), None);
        assert_eq!(format.timestamp_ntz(b"1970-01-01T00:00:01"), Some(1_000_000));
        assert_eq!(format.timestamp_ntz(b"1970-01-01T00:00:01Z"), None);
    }
}
