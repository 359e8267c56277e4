//! JSON in text: paths (`get_json_object`, `col:path`), `from_json`, `to_json`.
//!
//! Not here: JSON files (the sources).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray,
    TimestampMicrosecondArray, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use serde_json::{Map, Value};

use super::function::{Call, Definition, Param, Returns, zone};
use super::moments::{from_instant, parse_date, parse_instant, to_days};
use crate::session::parse_data_type;

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new(
        "get_json_object",
        &[Param::Text, Param::Text],
        Returns::Text,
        get_json_object,
        "get_json_object(json, path)",
        "The value at a path such as `$.a.b[0]` as text; NULL if there is none",
    ),
    Definition::new(
        "to_json",
        &[Param::Any],
        Returns::Text,
        to_json,
        "to_json(struct | map | array)",
        "The value as JSON; fields that are NULL are left out",
    ),
    Definition::new(
        "json_array_length",
        &[Param::Text],
        Returns::Int,
        |call| {
            call.rows::<Int32Array, _>(|row| {
                let value = call.str(0, row).and_then(|text| serde_json::from_str::<Value>(text).ok());
                Ok(value.and_then(|value| value.as_array().map(|items| items.len() as i32)))
            })
        },
        "json_array_length(json)",
        "The number of elements of a JSON array; NULL if it is none",
    ),
];

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
    /// `[*]`
    Every,
}

/// Reads `$.a['b'][0][*]`; None if it is no path.
fn parse_path(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.trim().strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let quote = after.chars().next().filter(|c| "`\"".contains(*c));
            if let Some(quote) = quote {
                let quoted = &after[1..];
                let end = quoted.find(quote)?;
                steps.push(Step::Key(quoted[..end].to_string()));
                rest = &quoted[end + 1..];
                continue;
            }
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let key = after[..end].trim();
            steps.push(match key {
                "" => return None,
                "*" => Step::Every,
                key => Step::Key(key.to_string()),
            });
            rest = &after[end..];
        } else {
            let inside = rest.strip_prefix('[')?;
            let quote = inside.chars().next().filter(|c| "'\"".contains(*c));
            if let Some(quote) = quote {
                let end = inside[1..].find(quote)? + 1;
                steps.push(Step::Key(inside[1..end].to_string()));
                rest = inside[end + 1..].strip_prefix(']')?;
            } else {
                let end = inside.find(']')?;
                steps.push(match inside[..end].trim() {
                    "*" => Step::Every,
                    index => Step::Index(index.parse().ok()?),
                });
                rest = &inside[end + 1..];
            }
        }
    }
    Some(steps)
}

fn walk<'a>(value: &'a Value, steps: &[Step], found: &mut Vec<&'a Value>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(value);
        return;
    };
    match (step, value) {
        (Step::Key(key), Value::Object(fields)) => {
            if let Some(value) = fields.get(key) {
                walk(value, rest, found);
            }
        }
        // A key of an array is that of its elements.
        (Step::Key(_), Value::Array(items)) => items.iter().for_each(|item| walk(item, steps, found)),
        (Step::Index(i), Value::Array(items)) => {
            if let Some(value) = items.get(*i) {
                walk(value, rest, found);
            }
        }
        (Step::Every, Value::Array(items)) => items.iter().for_each(|item| walk(item, rest, found)),
        (Step::Every, Value::Object(fields)) => fields.values().for_each(|item| walk(item, rest, found)),
        _ => {}
    }
}

fn get_json_object(call: &Call) -> Result<ArrayRef> {
    let mut last: Option<(String, Option<Vec<Step>>)> = None;
    call.rows::<StringArray, _>(|row| {
        let (Some(json), Some(path)) = (call.str(0, row), call.str(1, row)) else { return Ok(None) };
        if last.as_ref().is_none_or(|(known, _)| known != path) {
            last = Some((path.to_string(), parse_path(path)));
        }
        let Some(steps) = last.as_ref().and_then(|(_, steps)| steps.as_ref()) else { return Ok(None) };
        let Ok(value) = serde_json::from_str::<Value>(json) else { return Ok(None) };
        let mut found = Vec::new();
        walk(&value, steps, &mut found);
        let is_many = steps.contains(&Step::Every);
        Ok(match found.as_slice() {
            [] | [Value::Null] => None,
            [Value::String(text)] if !is_many => Some(text.clone()),
            [value] if !is_many => Some(value.to_string()),
            values => Some(serde_json::to_string(values).map_err(|error| exec_datafusion_err!("{error}"))?),
        })
    })
}

fn to_json(call: &Call) -> Result<ArrayRef> {
    let array = &call.args[0];
    match array.data_type() {
        DataType::Struct(_) | DataType::List(_) | DataType::Map(..) => {}
        other => return exec_err!("`to_json` takes a struct, a map or an array, not {}", super::type_name(other)),
    }
    call.rows::<StringArray, _>(|row| {
        if array.is_null(row) {
            return Ok(None);
        }
        Ok(Some(json_value(array, row, call)?.to_string()))
    })
}

fn json_value(array: &ArrayRef, row: usize, call: &Call) -> Result<Value> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut object = Map::new();
            for (field, column) in fields.iter().zip(columns) {
                if column.is_valid(row) && column.data_type() != &DataType::Null {
                    object.insert(field.name().clone(), json_value(column, row, call)?);
                }
            }
            Value::Object(object)
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Value::Array((0..items.len()).map(|i| json_value(&items, i, call)).collect::<Result<_>>()?)
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let mut object = Map::new();
            for i in 0..entries.len() {
                let key = match json_value(entries.column(0), i, call)? {
                    Value::String(key) => key,
                    other => other.to_string(),
                };
                object.insert(key, json_value(entries.column(1), i, call)?);
            }
            Value::Object(object)
        }
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, place) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            let wall = from_instant(micros, if place.is_some() { call.zone } else { chrono_tz::Tz::UTC })?;
            let text = wall.format("%Y-%m-%dT%H:%M:%S%.3f").to_string();
            match place {
                None => Value::String(text),
                Some(_) => {
                    let offset = (wall.and_utc().timestamp_micros() - micros) / 60_000_000;
                    let sign = if offset < 0 { '-' } else { '+' };
                    let offset = match offset {
                        0 => "Z".to_string(),
                        offset => format!("{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60),
                    };
                    Value::String(format!("{text}{offset}"))
                }
            }
        }
        data_type if data_type.is_numeric() => {
            let text = match ScalarValue::try_from_array(array, row)? {
                ScalarValue::Float64(Some(value)) if value.is_finite() => super::casts::double_text(value),
                other => other.to_string(),
            };
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        _ => Value::String(datafusion::arrow::util::display::array_value_to_string(array, row)?),
    })
}

/// `from_json(json, schema)`: the type of the result is the value of the second argument.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct FromJson {
    signature: Signature,
}

impl Default for FromJson {
    fn default() -> FromJson {
        FromJson { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for FromJson {
    fn name(&self) -> &str {
        "from_json"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn documentation(&self) -> Option<&Documentation> {
        static DOCUMENTATION: std::sync::LazyLock<Documentation> = std::sync::LazyLock::new(|| {
            let section = DocSection { include: true, label: "Spark", description: None };
            let text = "The JSON as a value of the type, `a INT, b ARRAY<STRING>`; what doesn't fit is NULL";
            Documentation::builder(section, text, "from_json(json, schema)").build()
        });
        Some(&DOCUMENTATION)
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        match args {
            [json, schema] if (json.is_string() || json.is_null()) && schema.is_string() => {
                Ok(vec![DataType::Utf8, DataType::Utf8])
            }
            [_, _, _] => plan_err!("function 'from_json' takes no options here: `from_json(json, schema)`"),
            _ => plan_err!("function 'from_json' takes other arguments: `from_json(json, 'a INT, b STRING')`"),
        }
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        plan_err!("the schema of 'from_json' must be constant text")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let schema = args.scalar_arguments.get(1).copied().flatten().and_then(|schema| schema.try_as_str().flatten());
        let Some(schema) = schema else { return plan_err!("the schema of 'from_json' must be constant text") };
        Ok(Arc::new(Field::new("from_json", parse_data_type(schema)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let texts = args.args[0].to_array(args.number_rows)?;
        let texts = texts.as_string::<i32>();
        let zone = zone(args.config_options.execution.time_zone.as_deref())?;
        let data_type = args.return_field.data_type();
        let is_struct = matches!(data_type, DataType::Struct(_));
        let empty = Value::Object(Map::new());
        let values: Vec<Option<Value>> = (0..texts.len())
            .map(|row| {
                let text = texts.is_valid(row).then(|| texts.value(row))?;
                if text.trim().is_empty() {
                    return None;
                }
                // PERMISSIVE: a struct of NULLs stands for what can't be read.
                let value = serde_json::from_str(text).ok().or_else(|| is_struct.then(|| empty.clone()));
                value.filter(|value| !value.is_null())
            })
            .collect();
        let values: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
        Ok(ColumnarValue::Array(build(&values, data_type, zone)?))
    }
}

/// JSON values as a column; what doesn't fit the type is NULL.
fn build(values: &[Option<&Value>], data_type: &DataType, zone: chrono_tz::Tz) -> Result<ArrayRef> {
    macro_rules! whole {
        ($array:ty, $number:ty) => {
            Arc::new(values.iter().map(|v| <$number>::try_from((*v)?.as_i64()?).ok()).collect::<$array>())
        };
    }
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Ok(match data_type {
        DataType::Utf8 => Arc::new(values.iter().map(|v| text((*v)?)).collect::<StringArray>()),
        DataType::Boolean => Arc::new(values.iter().map(|v| (*v)?.as_bool()).collect::<BooleanArray>()),
        DataType::Int8 => whole!(Int8Array, i8),
        DataType::Int16 => whole!(Int16Array, i16),
        DataType::Int32 => whole!(Int32Array, i32),
        DataType::Int64 => Arc::new(values.iter().map(|v| (*v)?.as_i64()).collect::<Int64Array>()),
        DataType::Float64 => Arc::new(values.iter().map(|v| (*v)?.as_f64()).collect::<Float64Array>()),
        DataType::Float32 => Arc::new(values.iter().map(|v| Some((*v)?.as_f64()? as f32)).collect::<Float32Array>()),
        DataType::Binary => {
            let bytes: Vec<Option<Vec<u8>>> = values.iter().map(|v| Some(text((*v)?)?.into_bytes())).collect();
            Arc::new(bytes.iter().map(|b| b.as_deref()).collect::<BinaryArray>())
        }
        DataType::Date32 => {
            Arc::new(values.iter().map(|v| parse_date((*v)?.as_str()?).map(to_days)).collect::<Date32Array>())
        }
        DataType::Timestamp(_, place) => {
            let zone = if place.is_some() { zone } else { chrono_tz::Tz::UTC };
            let micros = values.iter().map(|v| parse_instant((*v)?.as_str()?, zone));
            let array: TimestampMicrosecondArray = micros.collect();
            Arc::new(array.with_timezone_opt(place.clone()))
        }
        DataType::Decimal128(precision, scale) => {
            let numbers = values.iter().map(|v| {
                let text = text((*v)?)?;
                let number = datafusion::arrow::compute::kernels::cast_utils::parse_decimal::<
                    datafusion::arrow::datatypes::Decimal128Type,
                >(&text, *precision, *scale);
                number.ok()
            });
            Arc::new(numbers.collect::<Decimal128Array>().with_precision_and_scale(*precision, *scale)?)
        }
        DataType::List(field) => {
            let mut items = Vec::new();
            let (mut lengths, mut valid) = (Vec::new(), Vec::new());
            for value in values {
                let found = value.and_then(|value| value.as_array());
                items.extend(found.into_iter().flatten().map(Some));
                lengths.push(found.map_or(0, Vec::len));
                valid.push(found.is_some());
            }
            let items = build(&items, field.data_type(), zone)?;
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::try_new(field.clone(), offsets, items, Some(NullBuffer::from(valid)))?)
        }
        DataType::Struct(fields) => {
            // Spark finds fields without regard to case only if told so; JSON keys are exact.
            let columns = fields
                .iter()
                .map(|field| {
                    let column: Vec<_> = values.iter().map(|v| (*v)?.as_object()?.get(field.name())).collect();
                    build(&column, field.data_type(), zone)
                })
                .collect::<Result<Vec<_>>>()?;
            let valid: Vec<bool> = values.iter().map(|v| v.is_some_and(Value::is_object)).collect();
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                Some(NullBuffer::from(valid)),
                values.len(),
            )?)
        }
        DataType::Map(entries, ordered) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return exec_err!("a map without key and value");
            };
            let (mut keys, mut items) = (Vec::new(), Vec::new());
            let (mut lengths, mut valid) = (Vec::new(), Vec::new());
            for value in values {
                let found = value.and_then(|value| value.as_object());
                for (key, value) in found.into_iter().flatten() {
                    keys.push(Value::String(key.clone()));
                    items.push(Some(value));
                }
                lengths.push(found.map_or(0, Map::len));
                valid.push(found.is_some());
            }
            let keys: Vec<_> = keys.iter().map(Some).collect();
            let columns = vec![build(&keys, fields[0].data_type(), zone)?, build(&items, fields[1].data_type(), zone)?];
            let rows = StructArray::try_new(fields.clone(), columns, None)?;
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(MapArray::try_new(entries.clone(), offsets, rows, Some(NullBuffer::from(valid)), *ordered)?)
        }
        DataType::Null => new_null_array(&DataType::Null, values.len()),
        other => return exec_err!("`from_json` cannot make {}", super::type_name(other)),
    })
}
