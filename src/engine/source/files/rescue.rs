//! What doesn't fit the schema, kept as JSON text beside the row: `{"amount":"x1","_file_path":"/data/a.csv"}`.
//!
//! Not here: deciding what fits (each format's own file), rescue while decoding JSON (`json`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::*;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::{Map, Value};

/// The key under which the file's path stands.
pub const FILE_PATH: &str = "_file_path";

/// The key of a whole record that couldn't be read.
pub const CORRUPT_RECORD: &str = "_corrupt_record";

/// The rescued values of one batch.
#[derive(Debug, Default)]
pub struct Rescue {
    /// As many as rows, or none yet.
    rows: Vec<Option<Map<String, Value>>>,
    /// How many values there are.
    pub values: usize,
}

impl Rescue {
    /// Keeps a value; `path` leads to it through structs.
    pub fn add(&mut self, row: usize, path: &[&str], value: Value) {
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, || None);
        }
        self.values += 1;
        let mut map = self.rows[row].get_or_insert_default();
        let (last, structs) = path.split_last().expect("a value has a name");
        for name in structs {
            let inner = map.entry(*name).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            map = inner.as_object_mut().expect("made so");
        }
        map.insert((*last).to_string(), value);
    }

    /// Returns the column, if there is anything in it, and starts anew.
    pub fn finish(&mut self, rows: usize, file_path: &str) -> Option<ArrayRef> {
        if self.rows.is_empty() {
            return None;
        }
        let mut kept = std::mem::take(&mut self.rows);
        kept.resize_with(rows, || None);
        let text = |map: Option<Map<String, Value>>| {
            map.map(|mut map| {
                map.insert(FILE_PATH.into(), file_path.into());
                Value::Object(map).to_string()
            })
        };
        Some(Arc::new(kept.into_iter().map(text).collect::<StringArray>()))
    }
}

/// Adds one value to every row of a rescued column.
pub fn add_to_all(column: Option<ArrayRef>, rows: usize, file_path: &str, more: &Map<String, Value>) -> ArrayRef {
    let text = |row: usize| {
        let kept =
            column.as_ref().filter(|column| column.is_valid(row)).map(|column| column.as_string::<i32>().value(row));
        let mut map: Map<String, Value> = kept.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        map.extend(more.clone());
        map.insert(FILE_PATH.into(), file_path.into());
        Value::Object(map).to_string()
    };
    Arc::new(StringArray::from_iter_values((0..rows).map(text)))
}

/// Returns an Arrow value as JSON; what JSON has no word for becomes text.
pub fn json_value(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! number {
        ($type:ty) => {
            Value::from(array.as_primitive::<$type>().value(row))
        };
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        // Not a number and the infinities become null this way, hence text.
        DataType::Float32 if array.as_primitive::<Float32Type>().value(row).is_finite() => number!(Float32Type),
        DataType::Float64 if array.as_primitive::<Float64Type>().value(row).is_finite() => number!(Float64Type),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let pairs = fields.iter().zip(columns);
            Value::Object(pairs.map(|(field, column)| (field.name().clone(), json_value(column, row))).collect())
        }
        DataType::List(_) => {
            let elements = array.as_list::<i32>().value(row);
            Value::Array((0..elements.len()).map(|index| json_value(&elements, index)).collect())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let pair = |index| match json_value(keys, index) {
                Value::String(key) => (key, json_value(values, index)),
                key => (key.to_string(), json_value(values, index)),
            };
            Value::Object((0..entries.len()).map(pair).collect())
        }
        _ => match ArrayFormatter::try_new(array, &FormatOptions::default()) {
            Ok(formatter) => formatter.value(row).to_string().into(),
            Err(_) => Value::Null,
        },
    }
}
