//! Statistics of a data file: from a Parquet footer to the JSON of `add.stats` (Delta protocol: per-file
//! statistics), and from there to DataFusion's, which skip files.
//!
//! They cost nothing: the Parquet writer has them anyway. Left out are minima and maxima of floats (a NaN
//! would make them wrong), booleans, binaries and of anything inside lists and maps.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema, TimeUnit};
use chrono::{DateTime, NaiveDate};
use datafusion::common::ScalarValue;
use datafusion::common::stats::Precision;
use datafusion::physical_plan::{ColumnStatistics, Statistics};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use serde_json::{Map, Value};

use super::action::{Add, decode_path};
use crate::error::{Error, Result};

/// How many leaf columns get statistics; the rest would make the log heavy (Delta protocol's default).
const LEAF_COLUMNS: usize = 32;
/// Strings are cut after so many characters.
const STRING_CHARACTERS: usize = 32;

/// Rows in a data file, deleted ones counted: as its statistics say, or else its footer.
pub fn file_rows(table_dir: &Path, add: &Add) -> Result<u64> {
    if let Some(rows) = add.rows() {
        return Ok(rows);
    }
    let path = decode_path(table_dir, &add.path).ok_or_else(|| {
        Error::user(
            "table-feature-unsupported",
            format!("data file `{}` is not on this machine", add.path),
            "copy the table to this machine",
        )
    })?;
    let read = || -> parquet::errors::Result<u64> {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(&path)?)?;
        Ok(u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0))
    };
    read().map_err(|error| Error::data_file(path.to_str(), path.exists().then(|| error.to_string())))
}

/// The `add.stats` of a file whose columns are `fields`.
pub fn from_footer(fields: &[FieldRef], footer: &ParquetMetaData) -> String {
    let mut objects = Objects::default();
    let mut leaf = 0;
    objects.collect(fields, footer.row_groups(), &mut leaf);
    let rows = footer.file_metadata().num_rows();
    let Objects { min, max, nulls } = objects;
    format!(r#"{{"numRecords":{rows},"minValues":{{{min}}},"maxValues":{{{max}}},"nullCount":{{{nulls}}}}}"#)
}

/// Says in an `add.stats` that bounds and counts of NULLs are those of all rows of the file, though some are
/// deleted (Delta protocol: `tightBounds`). What isn't there becomes the number of rows.
pub fn loosen(stats: Option<&str>, rows: u64) -> String {
    const TIGHT: &str = "tightBounds";
    match stats.and_then(|stats| stats.trim_end().strip_suffix('}')) {
        // Nearly all statistics are ours, and parsing them would be what a commit mostly does.
        Some(inner) if !inner.contains(TIGHT) && inner.starts_with(r#"{"numRecords":"#) => {
            format!(r#"{inner},"{TIGHT}":false}}"#)
        }
        _ => {
            let mut json: Map<String, Value> =
                stats.and_then(|stats| serde_json::from_str(stats).ok()).unwrap_or_default();
            if json.get(TIGHT) == Some(&Value::Bool(false)) && json.contains_key("numRecords") {
                return stats.unwrap_or_default().to_owned();
            }
            json.insert("numRecords".into(), rows.into());
            json.insert(TIGHT.into(), false.into());
            Value::Object(json).to_string()
        }
    }
}

/// The inner text of the three JSON objects.
#[derive(Default)]
struct Objects {
    min: String,
    max: String,
    nulls: String,
}

impl Objects {
    /// Collects from the columns whose first Parquet leaf is `leaf`, and moves it past them.
    fn collect(&mut self, fields: &[FieldRef], groups: &[RowGroupMetaData], leaf: &mut usize) {
        for field in fields {
            match field.data_type() {
                DataType::Struct(nested) => {
                    let mut inner = Objects::default();
                    inner.collect(nested, groups, leaf);
                    for (object, inner) in
                        [(&mut self.min, inner.min), (&mut self.max, inner.max), (&mut self.nulls, inner.nulls)]
                    {
                        if !inner.is_empty() {
                            push(object, field.name(), &format!("{{{inner}}}"));
                        }
                    }
                }
                data_type if leaves(data_type) == 1 && !data_type.is_nested() => {
                    if *leaf < LEAF_COLUMNS {
                        self.collect_leaf(field, groups, *leaf);
                    }
                    *leaf += 1;
                }
                data_type => *leaf += leaves(data_type),
            }
        }
    }

    fn collect_leaf(&mut self, field: &FieldRef, groups: &[RowGroupMetaData], leaf: usize) {
        let statistics = || groups.iter().map(|group| group.column(leaf).statistics());
        let nulls = statistics().map(|statistics| statistics.and_then(|statistics| statistics.null_count_opt()));
        if let Some(nulls) = nulls.sum::<Option<u64>>() {
            push(&mut self.nulls, field.name(), &nulls.to_string());
        }
        let mut bounds: Option<(Bound, Bound)> = None;
        for (group, statistics) in groups.iter().zip(statistics()) {
            let Some(statistics) = statistics else { return };
            if statistics.null_count_opt() == Some(group.num_rows() as u64) {
                continue;
            }
            let bound = |bytes: Option<&[u8]>| Bound::read(field.data_type(), bytes?);
            let (Some(min), Some(max)) = (bound(statistics.min_bytes_opt()), bound(statistics.max_bytes_opt())) else {
                return;
            };
            bounds = Some(match bounds {
                None => (min, max),
                Some((lowest, highest)) => (lowest.min(min), highest.max(max)),
            });
        }
        let Some((min, max)) = bounds else { return };
        if let (Some(min), Some(max)) = (min.print(field.data_type(), cut_min), max.print(field.data_type(), cut_max)) {
            push(&mut self.min, field.name(), &min);
            push(&mut self.max, field.name(), &max);
        }
    }
}

fn push(object: &mut String, name: &str, value: &str) {
    if !object.is_empty() {
        object.push(',');
    }
    write!(object, "{}:{value}", Value::from(name)).expect("writing to a string");
}

/// How many Parquet columns a type takes.
fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| leaves(field.data_type())).sum(),
        DataType::List(item) | DataType::Map(item, _) => leaves(item.data_type()),
        _ => 1,
    }
}

/// A minimum or a maximum.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    Number(i128),
    Text(String),
}

impl Bound {
    /// Reads Parquet's plain encoding: integers little-endian, decimals in byte arrays big-endian.
    fn read(data_type: &DataType, bytes: &[u8]) -> Option<Bound> {
        let little = || match bytes.len() {
            4 => Some(i128::from(i32::from_le_bytes(bytes.try_into().ok()?))),
            8 => Some(i128::from(i64::from_le_bytes(bytes.try_into().ok()?))),
            _ => None,
        };
        match data_type {
            DataType::Utf8 => std::str::from_utf8(bytes).ok().map(|text| Bound::Text(text.to_owned())),
            DataType::Decimal128(precision, _) if *precision > 18 => {
                let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
                Some(Bound::Number(bytes.iter().fold(sign, |number, byte| (number << 8) | i128::from(*byte))))
            }
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => {
                little().map(Bound::Number)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) | DataType::Decimal128(..) => little().map(Bound::Number),
            _ => None,
        }
    }

    fn print(&self, data_type: &DataType, cut: fn(&str) -> Option<String>) -> Option<String> {
        let number = match self {
            Bound::Text(text) => return Some(Value::from(cut(text)?).to_string()),
            Bound::Number(number) => *number,
        };
        match data_type {
            DataType::Date32 => {
                let days = i32::try_from(number).ok()?;
                let date = NaiveDate::from_epoch_days(days).filter(|date| is_common_year(date.format("%Y")))?;
                Some(format!("\"{date}\""))
            }
            DataType::Timestamp(_, zone) => {
                let time = DateTime::from_timestamp_micros(i64::try_from(number).ok()?)?;
                let zone = if zone.is_some() { "Z" } else { "" };
                is_common_year(time.format("%Y")).then(|| format!("\"{}{zone}\"", time.format("%Y-%m-%dT%H:%M:%S%.6f")))
            }
            DataType::Decimal128(_, scale) => Some(print_decimal(number, usize::try_from(*scale).ok()?)),
            _ => Some(number.to_string()),
        }
    }
}

/// Years of four digits; other programs read no others.
fn is_common_year(year: impl std::fmt::Display) -> bool {
    year.to_string().len() == 4
}

fn print_decimal(number: i128, scale: usize) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn cut_min(text: &str) -> Option<String> {
    Some(text.chars().take(STRING_CHARACTERS).collect())
}

/// A cut maximum gets the greatest character, so that it still is above what was cut; `None` if that isn't so.
fn cut_max(text: &str) -> Option<String> {
    match text.chars().nth(STRING_CHARACTERS) {
        None => Some(text.to_owned()),
        Some(char::MAX) => None,
        Some(_) => Some(text.chars().take(STRING_CHARACTERS).chain([char::MAX]).collect()),
    }
}

/// DataFusion's statistics of a file over the columns of `schema`, `None` if the file has none.
///
/// Only those of `columns` are read: parsing all costs more than it saves. Bounds are marked inexact, as
/// strings may be cut, other programs round, and rows with the extremes may be deleted. `read_rows`: how many rows
/// are read of the file, if it is not all that are in the table.
pub fn to_datafusion(add: &Add, read_rows: Option<u64>, schema: &Schema, columns: &[usize]) -> Option<Statistics> {
    let mut statistics = Statistics::new_unknown(schema);
    statistics.total_byte_size = Precision::Absent;
    if columns.is_empty() {
        statistics.num_rows = Precision::Exact(usize::try_from(read_rows.or_else(|| add.live_rows())?).ok()?);
        return Some(statistics);
    }
    let json: Map<String, Value> = serde_json::from_str(add.stats.as_deref()?).ok()?;
    let all = json.get("numRecords").and_then(Value::as_u64);
    let is_tight = json.get("tightBounds") != Some(&Value::Bool(false));
    let rows = read_rows.or_else(|| Some(all?.saturating_sub(add.deleted_rows())));
    statistics.num_rows = rows.map_or(Precision::Absent, |rows| Precision::Exact(rows as usize));
    // NULLs are counted over all rows of the file: of some of them, only "none" and "all" are still known.
    let nulls_of_rows = |nulls: u64| match rows {
        Some(rows) if rows == all.unwrap_or(rows) && is_tight => Precision::Exact(nulls as usize),
        Some(rows) if Some(nulls) == all => Precision::Exact(rows as usize),
        _ if nulls == 0 => Precision::Exact(0),
        _ => Precision::Absent,
    };
    for column in columns {
        let field = schema.field(*column);
        let value = |object: &str| json.get(object).and_then(|object| object.get(field.name()));
        let bound = |object: &str| {
            let text = match value(object)? {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            is_bounded(field.data_type())
                .then(|| ScalarValue::try_from_string(text, field.data_type()).ok())
                .flatten()
                .map(|value| if object == "maxValues" { round_up(value) } else { value })
        };
        let nulls = value("nullCount").and_then(Value::as_u64);
        statistics.column_statistics[*column] = ColumnStatistics {
            null_count: nulls.map_or(Precision::Absent, nulls_of_rows),
            min_value: bound("minValues").map_or(Precision::Absent, Precision::Inexact),
            max_value: bound("maxValues").map_or(Precision::Absent, Precision::Inexact),
            ..ColumnStatistics::new_unknown()
        };
    }
    Some(statistics)
}

/// The types whose bounds we trust whoever wrote them. Not decimals: JSON numbers of other programs may be rounded.
fn is_bounded(data_type: &DataType) -> bool {
    data_type.is_signed_integer() || matches!(data_type, DataType::Utf8 | DataType::Date32 | DataType::Timestamp(..))
}

/// Spark cuts timestamps to milliseconds, so the maximum may be a millisecond less one microsecond too low.
fn round_up(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::TimestampMicrosecond(Some(micros), zone) if micros % 1000 == 0 => {
            ScalarValue::TimestampMicrosecond(Some(micros.saturating_add(999)), zone)
        }
        value => value,
    }
}

/// The sum over files, for planning: exact rows if every file tells them.
pub fn total(schema: &Arc<Schema>, files: impl Iterator<Item = (Option<u64>, i64)>) -> Statistics {
    let mut statistics = Statistics::new_unknown(schema);
    let (mut rows, mut bytes) = (Some(0), 0);
    for (file_rows, file_bytes) in files {
        rows = rows.zip(file_rows).map(|(rows, file)| rows + file);
        bytes += usize::try_from(file_bytes).unwrap_or(0);
    }
    statistics.num_rows = rows.map_or(Precision::Absent, |rows| Precision::Exact(rows as usize));
    statistics.total_byte_size = Precision::Inexact(bytes);
    statistics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_every_digit() {
        for (number, scale, text) in [
            (12345, 2, "123.45"),
            (-5, 3, "-0.005"),
            (7, 0, "7"),
            (i128::MIN, 1, "-17014118346046923173168730371588410572.8"),
        ] {
            assert_eq!(print_decimal(number, scale), text);
        }
        let bytes = (-12_345_678_901_234_567_890_i128).to_be_bytes();
        assert!(
            Bound::read(&DataType::Decimal128(38, 0), &bytes[4..]) == Some(Bound::Number(-12_345_678_901_234_567_890))
        );
    }

    #[test]
    fn loosened_statistics_keep_what_they_say() {
        let loose = loosen(Some(r#"{"numRecords":3,"minValues":{"id":1}}"#), 3);
        assert_eq!(loose, r#"{"numRecords":3,"minValues":{"id":1},"tightBounds":false}"#);
        assert_eq!(loosen(Some(&loose), 3), loose);
        assert_eq!(
            loosen(Some(r#"{"numRecords":3,"tightBounds":true,"nullCount":{}}"#), 3),
            r#"{"numRecords":3,"tightBounds":false,"nullCount":{}}"#
        );
        for nothing in [None, Some("{}"), Some("?")] {
            assert_eq!(loosen(nothing, 7), r#"{"numRecords":7,"tightBounds":false}"#);
        }
    }

    #[test]
    fn cut_strings_still_enclose() {
        let long = "ü".repeat(40);
        assert_eq!(cut_min(&long).map(|text| text.chars().count()), Some(32));
        assert!(cut_max(&long).expect("cut") > long);
        assert_eq!(cut_max("short").as_deref(), Some("short"));
        assert_eq!(cut_max(&"\u{10FFFF}".repeat(33)), None);
    }
}
