//! Parts of dates and times, arithmetic with the calendar, truncation.
//!
//! Not here: text in patterns (`timestamps`), reading of arguments (`moments`).

use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Weekday};
use datafusion::arrow::array::{ArrayRef, Float64Array, Int32Array, StringArray};
use datafusion::common::{Result, exec_datafusion_err, exec_err};

use super::function::{Call, Definition, Param, Returns};
use super::moments::{self, dates, from_instant, instants, micros_of_day, month_end, to_days, to_instant};

const WHEN: &[Param] = &[Param::Moment];

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("year", WHEN, Returns::Int, |c| part(c, |w| w.year()), "year(date)", "The year"),
    Definition::new("quarter", WHEN, Returns::Int, |c| part(c, |w| w.quarter() as i32), "quarter(date)", "1 to 4"),
    Definition::new("month", WHEN, Returns::Int, |c| part(c, |w| w.month() as i32), "month(date)", "1 to 12"),
    Definition::new("day", WHEN, Returns::Int, |c| part(c, |w| w.day() as i32), "day(date)", "Day of the month")
        .aliases(&["dayofmonth"]),
    Definition::new(
        "dayofweek",
        WHEN,
        Returns::Int,
        |c| part(c, |w| w.weekday().num_days_from_sunday() as i32 + 1),
        "dayofweek(date)",
        "1 is Sunday, 7 Saturday",
    ),
    Definition::new(
        "weekday",
        WHEN,
        Returns::Int,
        |c| part(c, |w| w.weekday().num_days_from_monday() as i32),
        "weekday(date)",
        "0 is Monday, 6 Sunday",
    ),
    Definition::new(
        "dayofyear",
        WHEN,
        Returns::Int,
        |c| part(c, |w| w.ordinal() as i32),
        "dayofyear(date)",
        "1 to 366",
    ),
    Definition::new(
        "weekofyear",
        WHEN,
        Returns::Int,
        |c| part(c, |w| w.iso_week().week() as i32),
        "weekofyear(date)",
        "Week of the year (ISO 8601: week 1 has the first Thursday)",
    ),
    Definition::new("hour", WHEN, Returns::Int, |c| part(c, |w| w.hour() as i32), "hour(timestamp)", "0 to 23"),
    Definition::new("minute", WHEN, Returns::Int, |c| part(c, |w| w.minute() as i32), "minute(timestamp)", "0 to 59"),
    Definition::new("second", WHEN, Returns::Int, |c| part(c, |w| w.second() as i32), "second(timestamp)", "0 to 59"),
    Definition::new("dayname", WHEN, Returns::Text, |c| name(c, "%a"), "dayname(date)", "`Mon`, `Tue`, …"),
    Definition::new("monthname", WHEN, Returns::Text, |c| name(c, "%b"), "monthname(date)", "`Jan`, `Feb`, …"),
    Definition::new(
        "date_add",
        &[Param::Moment, Param::Long],
        Returns::Date,
        |c| shift_days(c, 1),
        "date_add(date, days)",
        "The date so many days later",
    )
    .aliases(&["dateadd"]),
    Definition::new(
        "date_sub",
        &[Param::Moment, Param::Long],
        Returns::Date,
        |c| shift_days(c, -1),
        "date_sub(date, days)",
        "The date so many days earlier",
    ),
    Definition::new(
        "datediff",
        &[Param::Moment, Param::Moment],
        Returns::Int,
        datediff,
        "datediff(end, start)",
        "Days from start to end",
    )
    .aliases(&["date_diff"]),
    Definition::new(
        "add_months",
        &[Param::Moment, Param::Long],
        Returns::Date,
        add_months,
        "add_months(date, months)",
        "The date so many months later; the day is cut to the month's last",
    ),
    Definition::new(
        "months_between",
        &[Param::Moment, Param::Moment, Param::Any],
        Returns::Double,
        months_between,
        "months_between(end, start [, roundOff])",
        "Months from start to end, with 31 days to a month, to 8 digits",
    )
    .optional(1),
    Definition::new("last_day", WHEN, Returns::Date, last_day, "last_day(date)", "The last day of the month"),
    Definition::new(
        "next_day",
        &[Param::Moment, Param::Text],
        Returns::Date,
        next_day,
        "next_day(date, dayOfWeek)",
        "The first such day of the week after the date",
    ),
    Definition::new(
        "trunc",
        &[Param::Moment, Param::Text],
        Returns::Date,
        trunc,
        "trunc(date, unit)",
        "The first day of the year, quarter, month or week",
    ),
    Definition::new(
        "date_trunc",
        &[Param::Text, Param::Moment],
        Returns::Timestamp,
        date_trunc,
        "date_trunc(unit, timestamp)",
        "The timestamp cut to a unit: year, quarter, month, week, day, hour, minute, second, …",
    ),
    Definition::new(
        "make_date",
        &[Param::Long, Param::Long, Param::Long],
        Returns::Date,
        make_date,
        "make_date(year, month, day)",
        "A date from its parts",
    ),
];

fn part(call: &Call, part: fn(&NaiveDateTime) -> i32) -> Result<ArrayRef> {
    call.rows::<Int32Array, _>(|row| Ok(call.wall(0, row)?.map(|wall| part(&wall))))
}

fn name(call: &Call, format: &str) -> Result<ArrayRef> {
    call.rows::<StringArray, _>(|row| Ok(call.date(0, row)?.map(|date| date.format(format).to_string())))
}

fn out_of_range() -> datafusion::error::DataFusionError {
    exec_datafusion_err!("date out of range")
}

fn shift_days(call: &Call, sign: i64) -> Result<ArrayRef> {
    dates((0..call.rows).map(|row| {
        let (Some(date), Some(days)) = (call.date(0, row)?, call.long(1, row)) else { return Ok(None) };
        let days = i64::from(to_days(date)).checked_add(sign * days).and_then(|days| i32::try_from(days).ok());
        moments::from_days(days.ok_or_else(out_of_range)?).map(Some)
    }))
}

fn datediff(call: &Call) -> Result<ArrayRef> {
    call.rows::<Int32Array, _>(|row| {
        let (Some(end), Some(start)) = (call.date(0, row)?, call.date(1, row)?) else { return Ok(None) };
        Ok(Some(to_days(end) - to_days(start)))
    })
}

fn add_months(call: &Call) -> Result<ArrayRef> {
    dates((0..call.rows).map(|row| {
        let (Some(date), Some(months)) = (call.date(0, row)?, call.long(1, row)) else { return Ok(None) };
        let count = Months::new(u32::try_from(months.unsigned_abs()).map_err(|_| out_of_range())?);
        let moved = if months < 0 { date.checked_sub_months(count) } else { date.checked_add_months(count) };
        Ok(Some(moved.ok_or_else(out_of_range)?))
    }))
}

/// Whole months if both are the same day of the month, or both the last; else days count as 1/31.
fn months_between(call: &Call) -> Result<ArrayRef> {
    use datafusion::arrow::array::AsArray;
    call.rows::<Float64Array, _>(|row| {
        let (Some(end), Some(start)) = (call.wall(0, row)?, call.wall(1, row)?) else { return Ok(None) };
        let months = f64::from((end.year() - start.year()) * 12 + end.month() as i32 - start.month() as i32);
        let is_month_end = |wall: NaiveDateTime| wall.date() == month_end(wall.date());
        if end.day() == start.day() || (is_month_end(end) && is_month_end(start)) {
            return Ok(Some(months));
        }
        let seconds = |wall: NaiveDateTime| micros_of_day(wall) as f64 / 1e6;
        let days = f64::from(end.day() as i32 - start.day() as i32);
        let exact = months + (days * 86_400.0 + seconds(end) - seconds(start)) / (31.0 * 86_400.0);
        let is_rounded = !call.has(2) || call.args[2].as_boolean_opt().is_none_or(|round| round.value(row));
        Ok(Some(if is_rounded { (exact * 1e8).round() / 1e8 } else { exact }))
    })
}

fn last_day(call: &Call) -> Result<ArrayRef> {
    dates((0..call.rows).map(|row| Ok(call.date(0, row)?.map(month_end))))
}

fn next_day(call: &Call) -> Result<ArrayRef> {
    dates((0..call.rows).map(|row| {
        let (Some(date), Some(name)) = (call.date(0, row)?, call.str(1, row)) else { return Ok(None) };
        let Some(wanted) = weekday(name) else {
            return exec_err!("not a day of the week: `{name}` (ILLEGAL_DAY_OF_WEEK)");
        };
        let ahead = (wanted.num_days_from_monday() + 7 - date.weekday().num_days_from_monday() - 1) % 7 + 1;
        Ok(Some(date.checked_add_days(Days::new(u64::from(ahead))).ok_or_else(out_of_range)?))
    }))
}

fn weekday(name: &str) -> Option<Weekday> {
    Some(match name.trim().to_ascii_uppercase().as_str() {
        "MO" | "MON" | "MONDAY" => Weekday::Mon,
        "TU" | "TUE" | "TUESDAY" => Weekday::Tue,
        "WE" | "WED" | "WEDNESDAY" => Weekday::Wed,
        "TH" | "THU" | "THURSDAY" => Weekday::Thu,
        "FR" | "FRI" | "FRIDAY" => Weekday::Fri,
        "SA" | "SAT" | "SATURDAY" => Weekday::Sat,
        "SU" | "SUN" | "SUNDAY" => Weekday::Sun,
        _ => return None,
    })
}

/// The first day of the unit; None for a unit that is shorter than a day.
fn first_day(date: NaiveDate, unit: &str) -> Option<NaiveDate> {
    match unit {
        "YEAR" | "YYYY" | "YY" => NaiveDate::from_ymd_opt(date.year(), 1, 1),
        "QUARTER" => NaiveDate::from_ymd_opt(date.year(), (date.quarter() - 1) * 3 + 1, 1),
        "MONTH" | "MON" | "MM" => date.with_day(1),
        "WEEK" => date.checked_sub_days(Days::new(u64::from(date.weekday().num_days_from_monday()))),
        _ => None,
    }
}

/// NULL for a unit that is no unit of dates.
fn trunc(call: &Call) -> Result<ArrayRef> {
    dates((0..call.rows).map(|row| {
        let (Some(date), Some(unit)) = (call.date(0, row)?, call.str(1, row)) else { return Ok(None) };
        Ok(first_day(date, &unit.to_ascii_uppercase()))
    }))
}

/// NULL for an unknown unit.
fn date_trunc(call: &Call) -> Result<ArrayRef> {
    instants((0..call.rows).map(|row| {
        let (Some(unit), Some(instant)) = (call.str(0, row), call.instant(1, row)?) else { return Ok(None) };
        let unit = unit.to_ascii_uppercase();
        let step = match unit.as_str() {
            "MICROSECOND" => return Ok(Some(instant)),
            "MILLISECOND" => 1_000,
            "SECOND" => 1_000_000,
            _ => 0,
        };
        if step > 0 {
            return Ok(Some(instant - instant.rem_euclid(step)));
        }
        let wall = from_instant(instant, call.zone)?;
        let minute = wall.minute();
        let cut = match unit.as_str() {
            "MINUTE" => wall.date().and_hms_opt(wall.hour(), minute, 0),
            "HOUR" => wall.date().and_hms_opt(wall.hour(), 0, 0),
            "DAY" | "DD" => Some(wall.date().and_time(NaiveTime::MIN)),
            unit => first_day(wall.date(), unit).map(|date| date.and_time(NaiveTime::MIN)),
        };
        Ok(cut.map(|cut| to_instant(cut, call.zone)))
    }))
}

fn make_date(call: &Call) -> Result<ArrayRef> {
    dates((0..call.rows).map(|row| {
        let (Some(year), Some(month), Some(day)) = (call.long(0, row), call.long(1, row), call.long(2, row)) else {
            return Ok(None);
        };
        let date = i32::try_from(year)
            .ok()
            .zip(u32::try_from(month).ok().zip(u32::try_from(day).ok()))
            .and_then(|(year, (month, day))| NaiveDate::from_ymd_opt(year, month, day));
        match date {
            Some(date) => Ok(Some(date)),
            None => exec_err!("no such date: {year}-{month}-{day} (DATETIME_FIELD_OUT_OF_BOUNDS)"),
        }
    }))
}
