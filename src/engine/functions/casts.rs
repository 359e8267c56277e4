//! What CAST to STRING, DATE and TIMESTAMP means in Spark, as functions (`session::syntax` rewrites the casts),
//! and the names of types.
//!
//! Not here: other casts; Arrow's are Spark's there.

use std::fmt::Write;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::Result;

use super::function::{Call, Definition, Param, Returns};
use super::moments::{dates, from_instant, instants};

const ANY: &[Param] = &[Param::Any];

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("string", ANY, Returns::Text, string, "string(x)", "CAST(x AS STRING)").aliases(&["try_string"]),
    Definition::new("date", ANY, Returns::Date, |c| date(c, false), "date(x)", "CAST(x AS DATE)"),
    Definition::new("try_date", ANY, Returns::Date, |c| date(c, true), "try_date(x)", "TRY_CAST(x AS DATE)"),
    Definition::new(
        "timestamp",
        ANY,
        Returns::Timestamp,
        |c| timestamp(c, false),
        "timestamp(x)",
        "CAST(x AS TIMESTAMP); numbers are seconds since 1970",
    ),
    Definition::new(
        "try_timestamp",
        ANY,
        Returns::Timestamp,
        |c| timestamp(c, true),
        "try_timestamp(x)",
        "TRY_CAST(x AS TIMESTAMP)",
    ),
    Definition::new(
        "typeof",
        ANY,
        Returns::Text,
        |c| {
            let name = type_name(c.args[0].data_type()).to_lowercase();
            c.rows::<StringArray, _>(|_| Ok(Some(name.clone())))
        },
        "typeof(x)",
        "The type of x: `int`, `array<string>`, …",
    ),
];

fn string(call: &Call) -> Result<ArrayRef> {
    let array = &call.args[0];
    if array.data_type() == &DataType::Utf8 {
        return Ok(array.clone());
    }
    call.rows::<StringArray, _>(|row| {
        if array.is_null(row) || array.data_type() == &DataType::Null {
            return Ok(None);
        }
        let mut out = String::new();
        write_value(array, row, call, &mut out)?;
        Ok(Some(out))
    })
}

/// Writes a value as Spark's CAST to STRING does.
fn write_value(array: &ArrayRef, row: usize, call: &Call, out: &mut String) -> Result<()> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::Binary => out.push_str(&String::from_utf8_lossy(array.as_binary::<i32>().value(row))),
        DataType::Float64 => out.push_str(&double_text(array.as_primitive::<Float64Type>().value(row))),
        DataType::Float32 => out.push_str(&float_text(array.as_primitive::<Float32Type>().value(row))),
        DataType::Timestamp(_, zone) => {
            let micros = datafusion::arrow::compute::cast(
                &array.slice(row, 1),
                &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            )?;
            let zone = if zone.is_some() { call.zone } else { chrono_tz::Tz::UTC };
            let wall = from_instant(micros.as_primitive::<TimestampMicrosecondType>().value(0), zone)?;
            out.push_str(&wall_text(wall));
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            out.push('[');
            for i in 0..items.len() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_value(&items, i, call, out)?;
            }
            out.push(']');
        }
        DataType::Struct(_) => {
            out.push('{');
            for (i, column) in array.as_struct().columns().iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_value(column, row, call, out)?;
            }
            out.push('}');
        }
        DataType::Map(..) => {
            let entries: ArrayRef = std::sync::Arc::new(array.as_map().value(row));
            let entries = entries.as_struct();
            out.push('{');
            for i in 0..entries.len() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_value(entries.column(0), i, call, out)?;
                out.push_str(" -> ");
                write_value(entries.column(1), i, call, out)?;
            }
            out.push('}');
        }
        _ => {
            let text = datafusion::arrow::util::display::array_value_to_string(array, row)?;
            let _ = out.write_str(&text);
        }
    }
    Ok(())
}

/// `2024-03-01 10:20:30.5`: no zeros at the end of the fraction.
pub(super) fn wall_text(wall: chrono::NaiveDateTime) -> String {
    let text = wall.format("%Y-%m-%d %H:%M:%S%.6f").to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Java's `Double.toString`: `1.0`, `1.0E10`, `1.0E-4`, `NaN`, `Infinity`.
pub(super) fn double_text(value: f64) -> String {
    java_text(value, value.abs(), format!("{value:?}"), format!("{value:e}"))
}

fn float_text(value: f32) -> String {
    java_text(f64::from(value), f64::from(value.abs()), format!("{value:?}"), format!("{value:e}"))
}

fn java_text(value: f64, magnitude: f64, plain: String, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".to_string() } else { "-Infinity".to_string() };
    }
    if value == 0.0 || (1e-3..1e7).contains(&magnitude) {
        return plain;
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{point}E{exponent}")
}

fn date(call: &Call, is_lenient: bool) -> Result<ArrayRef> {
    let call = &as_moment(call)?;
    dates((0..call.rows).map(|row| match call.date(0, row) {
        Err(_) if is_lenient => Ok(None),
        date => date,
    }))
}

fn timestamp(call: &Call, is_lenient: bool) -> Result<ArrayRef> {
    if call.args[0].data_type().is_numeric() {
        let seconds = datafusion::arrow::compute::cast(&call.args[0], &DataType::Float64)?;
        let seconds = seconds.as_primitive::<Float64Type>().clone();
        return instants(
            (0..call.rows).map(|row| Ok(seconds.is_valid(row).then(|| (seconds.value(row) * 1e6).floor() as i64))),
        );
    }
    let call = &as_moment(call)?;
    instants((0..call.rows).map(|row| match call.instant(0, row) {
        Err(_) if is_lenient => Ok(None),
        instant => instant,
    }))
}

/// The call with its argument in one of the types that `moments` reads.
fn as_moment<'a>(call: &'a Call) -> Result<Call<'a>> {
    let to = match call.args[0].data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) | DataType::Date32 | DataType::Utf8 => None,
        DataType::Timestamp(_, zone) => Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone())),
        DataType::Date64 => Some(DataType::Date32),
        DataType::Null => Some(DataType::Utf8),
        _ => None,
    };
    let array = match to {
        Some(to) => datafusion::arrow::compute::cast(&call.args[0], &to)?,
        None => call.args[0].clone(),
    };
    Ok(Call { args: vec![array], rows: call.rows, zone: call.zone, returns: call.returns })
}

/// Spark's name of a type: `BIGINT`, `ARRAY<STRING>`.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "VOID".into(),
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 => "TINYINT".into(),
        DataType::Int16 | DataType::UInt8 => "SMALLINT".into(),
        DataType::Int32 | DataType::UInt16 => "INT".into(),
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => "BIGINT".into(),
        DataType::Float16 | DataType::Float32 => "FLOAT".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "BINARY".into()
        }
        DataType::Date32 | DataType::Date64 => "DATE".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP".into(),
        DataType::Timestamp(_, None) => "TIMESTAMP_NTZ".into(),
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".into(),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => format!("ARRAY<{}>", type_name(field.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|field| format!("{}: {}", field.name(), type_name(field.data_type()))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                format!("MAP<{}, {}>", type_name(fields[0].data_type()), type_name(fields[1].data_type()))
            }
            _ => "MAP".into(),
        },
        DataType::Dictionary(_, value) => type_name(value),
        other => other.to_string(),
    }
}
