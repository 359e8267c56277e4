//! An argument that is a DATE, TIMESTAMP, TIMESTAMP_NTZ or text, as a wall clock or an instant in the session's
//! time zone. Text is read as Spark's CAST does: `2024-3-1`, `2024-03-01 10:20:30.5+02:00`, `2024`.
//!
//! Not here: text in a pattern of the user's (`patterns`).

use chrono::{
    DateTime, Datelike, Days, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc,
};
use chrono_tz::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Date32Array, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Date32Type, TimestampMicrosecondType};
use datafusion::common::{Result, exec_datafusion_err, exec_err};

use super::function::Call;

const MICROS_PER_DAY: i64 = 86_400_000_000;

impl Call<'_> {
    /// The wall clock in the session's zone; a date is its midnight. None for NULL.
    ///
    /// # Errors
    /// Text that is no date or timestamp (Spark: CAST_INVALID_INPUT).
    pub fn wall(&self, i: usize, row: usize) -> Result<Option<NaiveDateTime>> {
        wall(&self.args[i], row, self.zone)
    }

    /// The date in the session's zone; None for NULL.
    pub fn date(&self, i: usize, row: usize) -> Result<Option<NaiveDate>> {
        let array = &self.args[i];
        if array.is_valid(row)
            && let DataType::Utf8 = array.data_type()
        {
            let text = array.as_string::<i32>().value(row);
            return parse_date(text).map(Some).ok_or_else(|| invalid(text, "DATE"));
        }
        Ok(self.wall(i, row)?.map(|wall| wall.date()))
    }

    /// Microseconds since 1970 UTC; None for NULL.
    pub fn instant(&self, i: usize, row: usize) -> Result<Option<i64>> {
        let array = &self.args[i];
        if array.is_null(row) {
            return Ok(None);
        }
        match array.data_type() {
            DataType::Timestamp(_, Some(_)) => Ok(Some(array.as_primitive::<TimestampMicrosecondType>().value(row))),
            DataType::Utf8 => {
                let text = array.as_string::<i32>().value(row);
                parse_instant(text, self.zone).map(Some).ok_or_else(|| invalid(text, "TIMESTAMP"))
            }
            _ => Ok(self.wall(i, row)?.map(|wall| to_instant(wall, self.zone))),
        }
    }
}

fn wall(array: &ArrayRef, row: usize, zone: Tz) -> Result<Option<NaiveDateTime>> {
    if array.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match array.data_type() {
        DataType::Date32 => from_days(array.as_primitive::<Date32Type>().value(row))?.and_time(NaiveTime::MIN),
        DataType::Timestamp(_, Some(_)) => {
            from_instant(array.as_primitive::<TimestampMicrosecondType>().value(row), zone)?
        }
        DataType::Timestamp(_, None) => {
            from_instant(array.as_primitive::<TimestampMicrosecondType>().value(row), Tz::UTC)?
        }
        DataType::Utf8 => {
            let text = array.as_string::<i32>().value(row);
            match parse_instant(text, zone) {
                Some(instant) => from_instant(instant, zone)?,
                None => return Err(invalid(text, "TIMESTAMP")),
            }
        }
        other => return exec_err!("not a date or timestamp: {other}"),
    }))
}

/// Spark's error of a cast that fails.
pub(super) fn invalid(text: &str, data_type: &str) -> datafusion::error::DataFusionError {
    exec_datafusion_err!(
        "cannot read `{}` as {data_type} (CAST_INVALID_INPUT); `try_cast` gives NULL instead",
        text.chars().take(60).collect::<String>()
    )
}

/// The wall clock of an instant.
pub(super) fn from_instant(micros: i64, zone: Tz) -> Result<NaiveDateTime> {
    let utc = DateTime::<Utc>::from_timestamp_micros(micros)
        .ok_or_else(|| exec_datafusion_err!("timestamp out of range: {micros} microseconds"))?;
    Ok(if zone == Tz::UTC { utc.naive_utc() } else { utc.with_timezone(&zone).naive_local() })
}

/// The instant of a wall clock. In an hour that occurs twice the first is meant; one that is skipped moves
/// forward by the gap, as in Java.
pub(super) fn to_instant(wall: NaiveDateTime, zone: Tz) -> i64 {
    if zone == Tz::UTC {
        return wall.and_utc().timestamp_micros();
    }
    let offset = match zone.offset_from_local_datetime(&wall) {
        chrono::LocalResult::Single(offset) => offset.fix(),
        chrono::LocalResult::Ambiguous(first, _) => first.fix(),
        chrono::LocalResult::None => {
            // Three hours are more than any gap, and less than what lies between two.
            let before = zone.offset_from_local_datetime(&(wall - TimeDelta::hours(3))).earliest();
            before.map_or_else(|| zone.offset_from_utc_datetime(&wall).fix(), |offset| offset.fix())
        }
    };
    (wall - TimeDelta::seconds(i64::from(offset.local_minus_utc()))).and_utc().timestamp_micros()
}

/// The date that is so many days after 1970-01-01.
pub(super) fn from_days(days: i32) -> Result<NaiveDate> {
    NaiveDate::from_epoch_days(days).ok_or_else(|| exec_datafusion_err!("date out of range: {days} days"))
}

/// Days since 1970-01-01.
pub(super) fn to_days(date: NaiveDate) -> i32 {
    date.to_epoch_days()
}

/// Dates as an array.
pub(super) fn dates(days: impl Iterator<Item = Result<Option<NaiveDate>>>) -> Result<ArrayRef> {
    let days = days.map(|date| date.map(|date| date.map(to_days))).collect::<Result<Date32Array>>()?;
    Ok(std::sync::Arc::new(days))
}

/// Instants as an array.
pub(super) fn instants(micros: impl Iterator<Item = Result<Option<i64>>>) -> Result<ArrayRef> {
    let micros = micros.collect::<Result<TimestampMicrosecondArray>>()?;
    Ok(std::sync::Arc::new(micros.with_timezone("UTC")))
}

/// Wall clocks (TIMESTAMP_NTZ) as an array.
pub(super) fn walls(walls: impl Iterator<Item = Result<Option<NaiveDateTime>>>) -> Result<ArrayRef> {
    let micros = walls
        .map(|wall| wall.map(|wall| wall.map(|wall| wall.and_utc().timestamp_micros())))
        .collect::<Result<TimestampMicrosecondArray>>()?;
    Ok(std::sync::Arc::new(micros))
}

/// Reads a date as CAST does: `2024-03-01`, `2024-3-1`, `2024-03`, `2024`, and anything after a blank or `T`.
pub(super) fn parse_date(text: &str) -> Option<NaiveDate> {
    let text = text.trim();
    let (date, rest) = parse_date_part(text)?;
    (rest.is_empty() || rest.starts_with([' ', 'T'])).then_some(date)
}

/// Reads an instant as CAST does; text without offset is in `zone`.
pub(super) fn parse_instant(text: &str, zone: Tz) -> Option<i64> {
    let (wall, place) = parse_wall(text)?;
    Some(match place {
        Some(Place::Offset(offset)) => {
            (wall - TimeDelta::seconds(i64::from(offset.local_minus_utc()))).and_utc().timestamp_micros()
        }
        Some(Place::Zone(zone)) => to_instant(wall, zone),
        None => to_instant(wall, zone),
    })
}

/// Where a text says its wall clock is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    Offset(FixedOffset),
    Zone(Tz),
}

/// Reads a wall clock, and the zone behind it.
pub(super) fn parse_wall(text: &str) -> Option<(NaiveDateTime, Option<Place>)> {
    let text = text.trim();
    let (date, rest) = parse_date_part(text)?;
    let Some(rest) = rest.strip_prefix(['T', ' ']) else {
        return rest.is_empty().then_some((date.and_time(NaiveTime::MIN), None));
    };
    let (hour, rest) = digits(rest, 1, 2)?;
    let (minute, rest) = match rest.strip_prefix(':') {
        Some(rest) => digits(rest, 1, 2)?,
        None => (0, rest),
    };
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => digits(rest, 1, 2)?,
        None => (0, rest),
    };
    let (micros, rest) = match rest.strip_prefix('.') {
        Some(rest) => {
            let count = rest.bytes().take_while(u8::is_ascii_digit).count();
            // Microseconds; what is finer is cut off.
            let micros = format!("{:0<6}", &rest[..count.min(6)]).parse().ok()?;
            (micros, &rest[count..])
        }
        None => (0, rest),
    };
    let time = NaiveTime::from_hms_micro_opt(hour, minute, second, micros)?;
    let rest = rest.trim();
    let place = if rest.is_empty() { None } else { Some(parse_place(rest)?) };
    Some((date.and_time(time), place))
}

/// Reads `Z`, `+2`, `+02:00`, `+0200`, `UTC+2`, `Europe/Berlin`.
pub(super) fn parse_place(text: &str) -> Option<Place> {
    if text == "Z" {
        return Some(Place::Offset(Utc.fix()));
    }
    let signed = ["UTC", "GMT", "UT"].iter().find_map(|name| text.strip_prefix(name)).unwrap_or(text);
    if signed.is_empty() {
        return Some(Place::Offset(Utc.fix()));
    }
    let sign = match signed.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return text.parse().ok().map(Place::Zone),
    };
    let (hour, rest) = digits(&signed[1..], 1, 2)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (minute, rest) = if rest.is_empty() { (0, rest) } else { digits(rest, 1, 2)? };
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (second, rest) = if rest.is_empty() { (0, rest) } else { digits(rest, 1, 2)? };
    if !rest.is_empty() || hour > 18 || minute > 59 || second > 59 {
        return None;
    }
    FixedOffset::east_opt(sign * (hour * 3600 + minute * 60 + second) as i32).map(Place::Offset)
}

fn parse_date_part(text: &str) -> Option<(NaiveDate, &str)> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (year, rest) = digits(text, 4, 6)?;
    let year = if is_negative { -(year as i32) } else { year as i32 };
    let (month, rest) = match rest.strip_prefix('-') {
        Some(rest) => digits(rest, 1, 2)?,
        None => (1, rest),
    };
    let (day, rest) = match rest.strip_prefix('-') {
        Some(rest) => digits(rest, 1, 2)?,
        None => (1, rest),
    };
    Some((NaiveDate::from_ymd_opt(year, month, day)?, rest))
}

/// Reads a number of `least` to `most` digits.
fn digits(text: &str, least: usize, most: usize) -> Option<(u32, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    if count < least || count > most {
        return None;
    }
    Some((text[..count].parse().ok()?, &text[count..]))
}

/// The last day of the month.
pub(super) fn month_end(date: NaiveDate) -> NaiveDate {
    let first = date.with_day(1).unwrap_or(date);
    first
        .checked_add_months(chrono::Months::new(1))
        .and_then(|next| next.checked_sub_days(Days::new(1)))
        .unwrap_or(date)
}

/// Microseconds of a day as wall clock, for arithmetic.
pub(super) fn micros_of_day(wall: NaiveDateTime) -> i64 {
    wall.and_utc().timestamp_micros().rem_euclid(MICROS_PER_DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_and_doubled_hours_are_read_as_java_does() {
        let berlin: Tz = "Europe/Berlin".parse().unwrap();
        // 02:30 does not exist on 2024-03-31: it is 03:30 summer time.
        assert_eq!(parse_instant("2024-03-31 02:30:00", berlin), parse_instant("2024-03-31 01:30:00Z", berlin));
        // 02:30 occurs twice on 2024-10-27: the first is meant.
        assert_eq!(parse_instant("2024-10-27 02:30:00", berlin), parse_instant("2024-10-27 00:30:00Z", berlin));
    }

    #[test]
    fn timestamps_are_read_as_cast_does() {
        let cases = [
            ("2024", Some("2024-01-01T00:00:00Z")),
            ("2024-3", Some("2024-03-01T00:00:00Z")),
            (" 2024-03-01 ", Some("2024-03-01T00:00:00Z")),
            ("2024-03-01T1:2:3", Some("2024-03-01T01:02:03Z")),
            ("2024-03-01 10:20:30.123456789+02:00", Some("2024-03-01T08:20:30.123456Z")),
            ("2024-03-01 10:20 Asia/Tokyo", Some("2024-03-01T01:20:00Z")),
            ("2024-03-01 10", Some("2024-03-01T10:00:00Z")),
            ("2024-02-30", None),
            ("24-02-03", None),
            ("2024-03-01x", None),
            ("2024-03-01 25:00:00", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|expected| DateTime::parse_from_rfc3339(expected).unwrap().timestamp_micros());
            assert_eq!(parse_instant(text, Tz::UTC), expected, "{text}");
        }
    }
}
