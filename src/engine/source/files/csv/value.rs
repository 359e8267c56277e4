//! The text of a CSV field as a value of its column, and as evidence for the column's type.

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, TimeUnit};
use pipeline::data_type::DataType;
use pipeline::read_files::{CsvOptions, ReadFiles};

use super::super::json::time::TimeFormat;
use crate::data_type::{UTC, widest_type};
use crate::error::{Error, Result};

/// How fields are read.
#[derive(Debug)]
pub struct Values {
    csv: CsvOptions,
    times: TimeFormat,
    infers_types: bool,
}

impl Values {
    pub fn new(spec: &ReadFiles) -> Result<Values> {
        let times = TimeFormat::new(&spec.time_zone, spec.timestamp_format.as_deref(), spec.date_format.as_deref())?;
        Ok(Values { csv: spec.csv.clone(), times, infers_types: spec.infer_column_types })
    }

    /// Returns the text of a field, or `None` if it stands for NULL: nothing at all, or `nullValue`.
    pub fn text<'a>(&'a self, (field, is_quoted): (&'a [u8], bool)) -> Option<&'a [u8]> {
        let field = match (field.is_empty(), is_quoted) {
            (true, false) => return None,
            (true, true) => self.csv.empty_value.as_bytes(),
            _ => field,
        };
        (field != self.csv.null_value.as_bytes()).then_some(field)
    }

    /// Returns the smallest type that holds what `known` holds and this text too.
    pub fn widen(&self, known: Option<DataType>, text: &[u8]) -> DataType {
        match known {
            Some(DataType::String) => DataType::String,
            Some(known) => widest_type(&known, &self.type_of(text)),
            None => self.type_of(text),
        }
    }

    /// As Spark infers: INT, BIGINT, a DECIMAL for longer integers, DOUBLE, DATE, TIMESTAMP, BOOLEAN, STRING.
    fn type_of(&self, text: &[u8]) -> DataType {
        let Ok(plain) = std::str::from_utf8(text) else { return DataType::String };
        let digits = plain.trim_start_matches(['+', '-']);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match () {
            () if !self.infers_types => DataType::String,
            () if is_integer && plain.parse::<i32>().is_ok() => DataType::Integer,
            () if is_integer && plain.parse::<i64>().is_ok() => DataType::Long,
            () if is_integer && digits.len() <= 38 => DataType::Decimal { precision: digits.len() as u8, scale: 0 },
            () if self.double(plain).is_some() => DataType::Double,
            () if self.csv.prefer_date && self.times.date(text).is_some() => DataType::Date,
            () if self.times.looks_like_timestamp(text) => DataType::Timestamp,
            () if boolean(plain).is_some() => DataType::Boolean,
            () => DataType::String,
        }
    }

    fn double(&self, text: &str) -> Option<f64> {
        match text {
            _ if text == self.csv.nan_value => Some(f64::NAN),
            _ if text == self.csv.positive_infinity => Some(f64::INFINITY),
            _ if text == self.csv.negative_infinity => Some(f64::NEG_INFINITY),
            // Rust also takes `nan`, `inf` and `infinity`, which are words here.
            _ if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) => {
                text.parse().ok()
            }
            _ => None,
        }
    }
}

fn boolean(text: &str) -> Option<bool> {
    match () {
        () if text.eq_ignore_ascii_case("true") => Some(true),
        () if text.eq_ignore_ascii_case("false") => Some(false),
        () => None,
    }
}

/// A column under construction.
pub enum Column {
    Boolean(BooleanBuilder),
    Byte(Int8Builder),
    Short(Int16Builder),
    Integer(Int32Builder),
    Long(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    String(StringBuilder),
    Binary(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    TimestampNtz(TimestampMicrosecondBuilder),
}

/// The same call on every kind of column.
macro_rules! each {
    ($column:expr, $builder:ident => $call:expr) => {
        match $column {
            Column::Boolean($builder) => $call,
            Column::Byte($builder) => $call,
            Column::Short($builder) => $call,
            Column::Integer($builder) => $call,
            Column::Long($builder) => $call,
            Column::Float($builder) => $call,
            Column::Double($builder) => $call,
            Column::Decimal($builder, ..) => $call,
            Column::String($builder) => $call,
            Column::Binary($builder) => $call,
            Column::Date($builder) => $call,
            Column::Timestamp($builder) => $call,
            Column::TimestampNtz($builder) => $call,
        }
    };
}

impl Column {
    /// Returns an empty column; an error for arrays, maps and structs, which CSV can't spell.
    pub fn new(name: &str, data_type: &ArrowType) -> Result<Column> {
        Ok(match data_type {
            ArrowType::Boolean => Column::Boolean(BooleanBuilder::new()),
            ArrowType::Int8 => Column::Byte(Int8Builder::new()),
            ArrowType::Int16 => Column::Short(Int16Builder::new()),
            ArrowType::Int32 => Column::Integer(Int32Builder::new()),
            ArrowType::Int64 => Column::Long(Int64Builder::new()),
            ArrowType::Float32 => Column::Float(Float32Builder::new()),
            ArrowType::Float64 => Column::Double(Float64Builder::new()),
            ArrowType::Decimal128(precision, scale) => {
                Column::Decimal(Decimal128Builder::new().with_data_type(data_type.clone()), *precision, *scale)
            }
            ArrowType::Utf8 => Column::String(StringBuilder::new()),
            ArrowType::Binary => Column::Binary(BinaryBuilder::new()),
            ArrowType::Date32 => Column::Date(Date32Builder::new()),
            ArrowType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
                Column::Timestamp(TimestampMicrosecondBuilder::new().with_timezone(UTC))
            }
            ArrowType::Timestamp(TimeUnit::Microsecond, None) => {
                Column::TimestampNtz(TimestampMicrosecondBuilder::new())
            }
            other => {
                return Err(Error::user(
                    "unsupported-csv-type",
                    format!("column `{name}` is {other}, which CSV can't hold"),
                    "read it as STRING and take it apart in the query, for example with `from_json`",
                ));
            }
        })
    }

    pub fn append_null(&mut self) {
        each!(self, builder => builder.append_null());
    }

    /// Appends the text as a value; if it isn't one, NULL, and returns false.
    pub fn append(&mut self, text: &[u8], values: &Values) -> bool {
        match self {
            Column::String(builder) => {
                // Bytes of another encoding are no text; replaced by U+FFFD they would be lost without a word.
                return append(std::str::from_utf8(text).ok(), |value| builder.append_option(value));
            }
            Column::Binary(builder) => {
                builder.append_value(text);
                return true;
            }
            Column::Date(builder) => return append(values.times.date(text), |value| builder.append_option(value)),
            Column::Timestamp(builder) => {
                return append(values.times.timestamp(text), |value| builder.append_option(value));
            }
            Column::TimestampNtz(builder) => {
                return append(values.times.timestamp_ntz(text), |value| builder.append_option(value));
            }
            _ => {}
        }
        let Ok(text) = std::str::from_utf8(text) else {
            self.append_null();
            return false;
        };
        match self {
            Column::Boolean(builder) => append(boolean(text), |value| builder.append_option(value)),
            Column::Byte(builder) => append(text.parse().ok(), |value| builder.append_option(value)),
            Column::Short(builder) => append(text.parse().ok(), |value| builder.append_option(value)),
            Column::Integer(builder) => append(text.parse().ok(), |value| builder.append_option(value)),
            Column::Long(builder) => append(text.parse().ok(), |value| builder.append_option(value)),
            Column::Float(builder) => {
                append(values.double(text).map(|value| value as f32), |value| builder.append_option(value))
            }
            Column::Double(builder) => append(values.double(text), |value| builder.append_option(value)),
            Column::Decimal(builder, precision, scale) => {
                append(decimal(text, *precision, *scale), |value| builder.append_option(value))
            }
            Column::String(_)
            | Column::Binary(_)
            | Column::Date(_)
            | Column::Timestamp(_)
            | Column::TimestampNtz(_) => {
                unreachable!("done above")
            }
        }
    }

    pub fn finish(&mut self) -> ArrayRef {
        each!(self, builder => Arc::new(builder.finish()))
    }
}

fn append<T: Copy>(value: Option<T>, add: impl FnOnce(Option<T>)) -> bool {
    add(value);
    value.is_some()
}

/// A decimal that would have to be rounded doesn't fit.
fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction).trim_end_matches('0');
    let fits = fraction.bytes().all(|byte| byte.is_ascii_digit()) && fraction.len() <= usize::from(scale.max(0) as u8);
    if !fits {
        return None;
    }
    parse_decimal::<Decimal128Type>(text, precision, scale).ok()
}
