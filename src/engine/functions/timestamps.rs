//! Reading and writing of dates and timestamps, in patterns and as seconds since 1970; time zones; `now()`.
//!
//! Not here: patterns themselves (`patterns`), parts of dates (`dates`).

use chrono::{NaiveDate, NaiveDateTime};
use chrono_tz::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::function::{Call, Definition, Param, Returns};
use super::moments::{self, Place, dates, from_instant, instants, invalid, to_instant, walls};
use super::patterns::Pattern;
use crate::session::timestamp;

const WHEN_AND_PATTERN: &[Param] = &[Param::Moment, Param::Text];
const ANY_AND_PATTERN: &[Param] = &[Param::Any, Param::Text];
const DEFAULT_PATTERN: &str = "yyyy-MM-dd HH:mm:ss";

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new(
        "date_format",
        WHEN_AND_PATTERN,
        Returns::Text,
        date_format,
        "date_format(timestamp, pattern)",
        "The timestamp as text in a pattern such as `yyyy-MM-dd`",
    ),
    Definition::new(
        "to_date",
        WHEN_AND_PATTERN,
        Returns::Date,
        |call| to_date(call, false),
        "to_date(text [, pattern])",
        "A date from text, an error if it is none",
    )
    .optional(1),
    Definition::new(
        "try_to_date",
        WHEN_AND_PATTERN,
        Returns::Date,
        |call| to_date(call, true),
        "try_to_date(text [, pattern])",
        "A date from text, NULL if it is none",
    )
    .optional(1),
    Definition::new(
        "to_timestamp",
        ANY_AND_PATTERN,
        Returns::Timestamp,
        |call| to_timestamp(call, false),
        "to_timestamp(text [, pattern])",
        "A timestamp from text (in a pattern), a date or seconds since 1970; an error if it is none",
    )
    .optional(1)
    .aliases(&["to_timestamp_ltz"]),
    Definition::new(
        "try_to_timestamp",
        ANY_AND_PATTERN,
        Returns::Timestamp,
        |call| to_timestamp(call, true),
        "try_to_timestamp(text [, pattern])",
        "A timestamp from text (in a pattern), NULL if it is none",
    )
    .optional(1),
    Definition::new(
        "to_timestamp_ntz",
        WHEN_AND_PATTERN,
        Returns::TimestampNtz,
        to_timestamp_ntz,
        "to_timestamp_ntz(text [, pattern])",
        "A timestamp without time zone from text",
    )
    .optional(1),
    Definition::new(
        "unix_timestamp",
        WHEN_AND_PATTERN,
        Returns::Long,
        unix_timestamp,
        "unix_timestamp([timestamp [, pattern]])",
        "Seconds since 1970-01-01 00:00:00 UTC, of now without argument; text is read in the pattern",
    )
    .optional(1)
    .aliases(&["to_unix_timestamp"]),
    Definition::new(
        "from_unixtime",
        &[Param::Long, Param::Text],
        Returns::Text,
        from_unixtime,
        "from_unixtime(seconds [, pattern])",
        "Seconds since 1970 as text",
    )
    .optional(1),
    Definition::new(
        "timestamp_seconds",
        &[Param::Any],
        Returns::Timestamp,
        |call| timestamp_of(call, 1_000_000),
        "timestamp_seconds(number)",
        "The timestamp so many seconds after 1970",
    ),
    Definition::new(
        "timestamp_millis",
        &[Param::Long],
        Returns::Timestamp,
        |call| timestamp_of(call, 1_000),
        "timestamp_millis(number)",
        "The timestamp so many milliseconds after 1970",
    ),
    Definition::new(
        "timestamp_micros",
        &[Param::Long],
        Returns::Timestamp,
        |call| timestamp_of(call, 1),
        "timestamp_micros(number)",
        "The timestamp so many microseconds after 1970",
    ),
    Definition::new(
        "unix_seconds",
        &[Param::Moment],
        Returns::Long,
        |call| unix_of(call, 1_000_000),
        "unix_seconds(timestamp)",
        "Seconds since 1970",
    ),
    Definition::new(
        "unix_millis",
        &[Param::Moment],
        Returns::Long,
        |call| unix_of(call, 1_000),
        "unix_millis(timestamp)",
        "Milliseconds since 1970",
    ),
    Definition::new(
        "unix_micros",
        &[Param::Moment],
        Returns::Long,
        |call| unix_of(call, 1),
        "unix_micros(timestamp)",
        "Microseconds since 1970",
    ),
    Definition::new(
        "unix_date",
        &[Param::Moment],
        Returns::Int,
        |call| call.rows::<Int32Array, _>(|row| Ok(call.date(0, row)?.map(moments::to_days))),
        "unix_date(date)",
        "Days since 1970-01-01",
    ),
    Definition::new(
        "date_from_unix_date",
        &[Param::Long],
        Returns::Date,
        |call| {
            dates((0..call.rows).map(|row| match call.long(0, row) {
                None => Ok(None),
                Some(days) => {
                    let days = i32::try_from(days).map_err(|_| exec_datafusion_err!("date out of range"))?;
                    moments::from_days(days).map(Some)
                }
            }))
        },
        "date_from_unix_date(days)",
        "The date so many days after 1970-01-01",
    ),
    Definition::new(
        "from_utc_timestamp",
        WHEN_AND_PATTERN,
        Returns::Timestamp,
        |call| shift(call, true),
        "from_utc_timestamp(timestamp, zone)",
        "The wall clock in the zone, of a timestamp taken as UTC",
    ),
    Definition::new(
        "to_utc_timestamp",
        WHEN_AND_PATTERN,
        Returns::Timestamp,
        |call| shift(call, false),
        "to_utc_timestamp(timestamp, zone)",
        "UTC, of a timestamp taken as wall clock in the zone",
    ),
    Definition::new(
        "make_timestamp",
        &[Param::Long, Param::Long, Param::Long, Param::Long, Param::Long, Param::Double, Param::Text],
        Returns::Timestamp,
        make_timestamp,
        "make_timestamp(year, month, day, hour, minute, second [, zone])",
        "A timestamp from its parts",
    )
    .optional(1),
    Definition::new(
        "current_timezone",
        &[],
        Returns::Text,
        |call| call.rows::<StringArray, _>(|_| Ok(Some(call.zone.name().to_string()))),
        "current_timezone()",
        "The time zone of the session",
    ),
];

/// The pattern of each row; a constant one is taken apart once.
struct Patterns<'a> {
    column: Option<&'a StringArray>,
    last: Option<(String, Pattern)>,
}

impl<'a> Patterns<'a> {
    fn of(call: &'a Call, i: usize) -> Patterns<'a> {
        Patterns { column: call.has(i).then(|| call.text(i)), last: None }
    }

    /// None for NULL; the default if no pattern was given.
    fn get(&mut self, row: usize, default: &str) -> Result<Option<&Pattern>> {
        let text = match self.column {
            Some(column) if column.is_null(row) => return Ok(None),
            Some(column) => column.value(row),
            None => default,
        };
        if self.last.as_ref().is_none_or(|(known, _)| known != text) {
            let pattern = Pattern::parse(text).map_err(|reason| {
                exec_datafusion_err!("not a date pattern: `{text}`: {reason} (INVALID_DATETIME_PATTERN)")
            })?;
            self.last = Some((text.to_string(), pattern));
        }
        Ok(self.last.as_ref().map(|(_, pattern)| pattern))
    }
}

fn date_format(call: &Call) -> Result<ArrayRef> {
    let mut patterns = Patterns::of(call, 1);
    call.rows::<StringArray, _>(|row| {
        let Some(wall) = call.wall(0, row)? else { return Ok(None) };
        Ok(patterns.get(row, DEFAULT_PATTERN)?.map(|pattern| pattern.write(wall, call.zone)))
    })
}

/// Spark's error of text that doesn't fit a pattern.
fn misfit(text: &str) -> datafusion::error::DataFusionError {
    exec_datafusion_err!(
        "cannot read `{}` in this pattern (CANNOT_PARSE_TIMESTAMP); `try_to_timestamp` gives NULL instead",
        text.chars().take(60).collect::<String>()
    )
}

fn to_date(call: &Call, is_lenient: bool) -> Result<ArrayRef> {
    let mut patterns = Patterns::of(call, 1);
    let has_pattern = call.has(1) && call.args[0].data_type() == &DataType::Utf8;
    dates((0..call.rows).map(|row| {
        let date = if has_pattern {
            read(call, &mut patterns, row).map(|read| read.map(|(wall, _)| wall.date()))
        } else {
            call.date(0, row)
        };
        if is_lenient { Ok(date.unwrap_or(None)) } else { date }
    }))
}

/// Reads the text of a row in its pattern.
fn read(call: &Call, patterns: &mut Patterns, row: usize) -> Result<Option<(NaiveDateTime, Option<Place>)>> {
    let (Some(text), Some(pattern)) = (call.str(0, row), patterns.get(row, DEFAULT_PATTERN)?) else {
        return Ok(None);
    };
    pattern.read(text).map(Some).ok_or_else(|| misfit(text))
}

fn in_place(wall: NaiveDateTime, place: Option<Place>, zone: Tz) -> i64 {
    match place {
        None => to_instant(wall, zone),
        Some(Place::Zone(zone)) => to_instant(wall, zone),
        Some(Place::Offset(offset)) => {
            wall.and_utc().timestamp_micros() - i64::from(offset.local_minus_utc()) * 1_000_000
        }
    }
}

fn to_timestamp(call: &Call, is_lenient: bool) -> Result<ArrayRef> {
    let mut patterns = Patterns::of(call, 1);
    let data_type = call.args[0].data_type();
    if data_type.is_numeric() {
        return timestamp_of(call, 1_000_000);
    }
    let has_pattern = call.has(1) && data_type == &DataType::Utf8;
    instants((0..call.rows).map(|row| {
        let instant = if has_pattern {
            read(call, &mut patterns, row).map(|read| read.map(|(wall, place)| in_place(wall, place, call.zone)))
        } else {
            call.instant(0, row)
        };
        if is_lenient { Ok(instant.unwrap_or(None)) } else { instant }
    }))
}

fn to_timestamp_ntz(call: &Call) -> Result<ArrayRef> {
    let mut patterns = Patterns::of(call, 1);
    let is_text = call.args[0].data_type() == &DataType::Utf8;
    walls((0..call.rows).map(|row| {
        if !is_text {
            return call.wall(0, row);
        }
        if call.has(1) {
            return Ok(read(call, &mut patterns, row)?.map(|(wall, _)| wall));
        }
        let Some(text) = call.str(0, row) else { return Ok(None) };
        // A zone behind the wall clock is dropped, as Spark does.
        moments::parse_wall(text).map(|(wall, _)| Some(wall)).ok_or_else(|| invalid(text, "TIMESTAMP_NTZ"))
    }))
}

fn unix_timestamp(call: &Call) -> Result<ArrayRef> {
    let mut patterns = Patterns::of(call, 1);
    let is_text = call.args[0].data_type() == &DataType::Utf8;
    call.rows::<Int64Array, _>(|row| {
        let instant = if is_text {
            read(call, &mut patterns, row)?.map(|(wall, place)| in_place(wall, place, call.zone))
        } else {
            call.instant(0, row)?
        };
        Ok(instant.map(|instant| instant.div_euclid(1_000_000)))
    })
}

fn from_unixtime(call: &Call) -> Result<ArrayRef> {
    let mut patterns = Patterns::of(call, 1);
    call.rows::<StringArray, _>(|row| {
        let Some(seconds) = call.long(0, row) else { return Ok(None) };
        let wall = from_instant(seconds.saturating_mul(1_000_000), call.zone)?;
        Ok(patterns.get(row, DEFAULT_PATTERN)?.map(|pattern| pattern.write(wall, call.zone)))
    })
}

/// A number of units as an instant; fractions count.
fn timestamp_of(call: &Call, micros_per_unit: i64) -> Result<ArrayRef> {
    let overflow = || exec_datafusion_err!("timestamp out of range");
    if call.args[0].data_type().is_integer() {
        let whole = datafusion::arrow::compute::cast(&call.args[0], &DataType::Int64)?;
        let whole = whole.as_primitive::<Int64Type>().clone();
        return instants((0..call.rows).map(|row| {
            let value = whole.is_valid(row).then(|| whole.value(row));
            value.map(|value| value.checked_mul(micros_per_unit).ok_or_else(overflow)).transpose()
        }));
    }
    let numbers = datafusion::arrow::compute::cast(&call.args[0], &DataType::Float64)?;
    let numbers = numbers.as_primitive::<Float64Type>().clone();
    instants(
        (0..call.rows)
            .map(|row| Ok(numbers.is_valid(row).then(|| (numbers.value(row) * micros_per_unit as f64).round() as i64))),
    )
}

fn unix_of(call: &Call, micros_per_unit: i64) -> Result<ArrayRef> {
    call.rows::<Int64Array, _>(|row| Ok(call.instant(0, row)?.map(|instant| instant.div_euclid(micros_per_unit))))
}

fn shift(call: &Call, from_utc: bool) -> Result<ArrayRef> {
    instants((0..call.rows).map(|row| {
        let (Some(instant), Some(name)) = (call.instant(0, row)?, call.str(1, row)) else { return Ok(None) };
        let Some(place) = moments::parse_place(name) else {
            return exec_err!("unknown time zone: `{name}` (INVALID_TIMEZONE)");
        };
        // Both read the timestamp's UTC clock as if it were a wall clock.
        Ok(Some(if from_utc {
            match place {
                Place::Zone(zone) => from_instant(instant, zone)?.and_utc().timestamp_micros(),
                Place::Offset(offset) => instant + i64::from(offset.local_minus_utc()) * 1_000_000,
            }
        } else {
            in_place(from_instant(instant, Tz::UTC)?, Some(place), Tz::UTC)
        }))
    }))
}

fn make_timestamp(call: &Call) -> Result<ArrayRef> {
    let seconds = call.args[5].as_primitive::<Float64Type>();
    instants((0..call.rows).map(|row| {
        let parts: Option<Vec<i64>> = (0..5).map(|i| call.long(i, row)).collect();
        let Some(parts) = parts.filter(|_| seconds.is_valid(row)) else { return Ok(None) };
        let zone = match call.has(6) {
            true => match call.str(6, row) {
                None => return Ok(None),
                Some(name) => match moments::parse_place(name) {
                    Some(place) => Some(place),
                    None => return exec_err!("unknown time zone: `{name}` (INVALID_TIMEZONE)"),
                },
            },
            false => None,
        };
        let micros = (seconds.value(row) * 1e6).round() as i64;
        let wall = i32::try_from(parts[0]).ok().and_then(|year| {
            let [month, day, hour, minute] =
                [parts[1], parts[2], parts[3], parts[4]].map(|part| u32::try_from(part).ok());
            // 60 seconds are the next minute.
            (0..=60_000_000).contains(&micros).then_some(())?;
            let start = NaiveDate::from_ymd_opt(year, month?, day?)?.and_hms_opt(hour?, minute?, 0)?;
            Some(start + chrono::TimeDelta::microseconds(micros))
        });
        match wall {
            Some(wall) => Ok(Some(in_place(wall, zone, call.zone))),
            None => exec_err!("no such timestamp (DATETIME_FIELD_OUT_OF_BOUNDS)"),
        }
    }))
}

/// `now()`: the start of the statement, in microseconds.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Now {
    signature: Signature,
    aliases: Vec<String>,
}

impl Default for Now {
    fn default() -> Now {
        Now { signature: Signature::nullary(Volatility::Stable), aliases: vec!["current_timestamp".to_string()] }
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        "now"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(timestamp())
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("`now` is replaced by a constant when the query is planned")
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(start) = info.query_execution_start_time() else { return Ok(ExprSimplifyResult::Original(args)) };
        let start = ScalarValue::TimestampMicrosecond(Some(start.timestamp_micros()), Some("UTC".into()));
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(start, None)))
    }
}
