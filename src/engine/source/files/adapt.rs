//! Batches of files that know their own types (Parquet, Avro), as the columns of the source's schema.
//!
//! Missing columns are NULL, types are cast where no value can change its meaning, values that don't fit are NULL
//! and rescued. Not here: reading the files.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StructArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, FieldRef, Fields};
use arrow::record_batch::RecordBatch;
use pipeline::data_type::DataType;

use super::rescue::{Rescue, json_value};
use crate::data_type::from_arrow;
use crate::error::{Error, Result};

/// How names of a file are compared with those of the schema.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    pub is_case_sensitive: bool,
}

impl Names {
    /// Returns the position of the file's field for a column, if it has one.
    pub fn find(self, fields: &[FieldRef], name: &str) -> Option<usize> {
        let exact = fields.iter().position(|field| field.name() == name);
        exact.or_else(|| {
            let same = |field: &FieldRef| field.name().eq_ignore_ascii_case(name);
            if self.is_case_sensitive { None } else { fields.iter().position(same) }
        })
    }

    /// Returns the dotted names of fields that the schema doesn't have, structs inside included. A name that differs
    /// only in case isn't new: no table could take it as a column of its own.
    pub fn unknown(self, file: &Fields, schema: &[FieldRef], prefix: &str, unknown: &mut Vec<String>) {
        for field in file {
            let known = schema.iter().find(|column| column.name().eq_ignore_ascii_case(field.name()));
            match (known.map(|column| column.data_type()), field.data_type()) {
                (None, _) => unknown.push(format!("{prefix}{}", field.name())),
                (Some(ArrowType::Struct(schema)), ArrowType::Struct(file)) => {
                    self.unknown(file, schema, &format!("{prefix}{}.", field.name()), unknown);
                }
                _ => {}
            }
        }
    }
}

/// Returns the batch's columns as `columns`, in their order; what doesn't fit goes to `rescue`, and so do columns
/// that aren't asked for by any of `columns`, except `ignored` ones.
pub fn adapt(
    batch: &RecordBatch,
    columns: &[FieldRef],
    names: Names,
    ignored: impl Fn(&str) -> bool,
    rescue: &mut Rescue,
) -> Result<Vec<ArrayRef>> {
    let schema = batch.schema();
    let mut is_used = vec![false; batch.num_columns()];
    let mut adapted = Vec::with_capacity(columns.len());
    for column in columns {
        adapted.push(match names.find(schema.fields(), column.name()) {
            Some(index) => {
                is_used[index] = true;
                let mut path = vec![column.name().as_str()];
                convert(batch.column(index), column.data_type(), names, &mut path, rescue)?
            }
            None => new_null_array(column.data_type(), batch.num_rows()),
        });
    }
    for (index, _) in is_used.iter().enumerate().filter(|(_, is_used)| !**is_used) {
        let name = schema.field(index).name();
        if !ignored(name) {
            rescue_all(batch.column(index), &[name], rescue);
        }
    }
    Ok(adapted)
}

fn rescue_all(array: &ArrayRef, path: &[&str], rescue: &mut Rescue) {
    for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
        rescue.add(row, path, json_value(array, row));
    }
}

fn convert<'a>(
    array: &ArrayRef,
    target: &'a ArrowType,
    names: Names,
    path: &mut Vec<&'a str>,
    rescue: &mut Rescue,
) -> Result<ArrayRef> {
    if array.data_type() == target {
        return Ok(array.clone());
    }
    if let (ArrowType::Struct(from), ArrowType::Struct(to)) = (array.data_type(), target) {
        return convert_struct(array.as_struct(), from, to, names, path, rescue);
    }
    let converted = match fit(array.data_type(), target) {
        Fit::Cast => {
            let safe = CastOptions { safe: true, ..CastOptions::default() };
            cast_with_options(array, target, &safe).map_err(cast_failed)?
        }
        Fit::Text => {
            let text = |row| array.is_valid(row).then(|| json_value(array, row).to_string());
            Arc::new((0..array.len()).map(text).collect::<StringArray>())
        }
        Fit::No => new_null_array(target, array.len()),
    };
    if converted.null_count() > array.null_count() {
        for row in (0..array.len()).filter(|row| array.is_valid(*row) && converted.is_null(*row)) {
            rescue.add(row, path, json_value(array, row));
        }
    }
    Ok(converted)
}

fn cast_failed(error: arrow::error::ArrowError) -> Error {
    Error::Internal(format!("cast between types that fit: {error}"))
}

fn convert_struct<'a>(
    array: &StructArray,
    from: &Fields,
    to: &'a Fields,
    names: Names,
    path: &mut Vec<&'a str>,
    rescue: &mut Rescue,
) -> Result<ArrayRef> {
    let mut is_used = vec![false; from.len()];
    let mut columns = Vec::with_capacity(to.len());
    for field in to {
        columns.push(match names.find(from, field.name()) {
            Some(index) => {
                is_used[index] = true;
                path.push(field.name());
                let column = convert(array.column(index), field.data_type(), names, path, rescue)?;
                path.pop();
                column
            }
            None => new_null_array(field.data_type(), array.len()),
        });
    }
    for (index, field) in from.iter().enumerate().filter(|(index, _)| !is_used[*index]) {
        let path: Vec<&str> = path.iter().copied().chain([field.name().as_str()]).collect();
        rescue_all(array.column(index), &path, rescue);
    }
    let adapted = StructArray::try_new_with_length(to.clone(), columns, array.nulls().cloned(), array.len());
    Ok(Arc::new(adapted.map_err(cast_failed)?))
}

/// Whether values of one type can be those of another.
enum Fit {
    /// All of them, or those that survive a cast.
    Cast,
    /// As JSON text.
    Text,
    No,
}

fn fit(from: &ArrowType, to: &ArrowType) -> Fit {
    use DataType::*;
    let Some(to) = from_arrow(to) else { return Fit::No };
    // What Spark has no type for (times, durations) was inferred as STRING.
    let Some(from) = from_arrow(from) else {
        return if to == String { Fit::Text } else { Fit::No };
    };
    match (&from, &to) {
        _ if from == to => Fit::Cast,
        (Struct(_) | Array(_) | Map(..), String) => Fit::Text,
        (Binary | Boolean | Date | Timestamp | TimestampNtz, String) => Fit::Cast,
        (Byte | Short | Integer | Long | Float | Double | Decimal { .. }, String) => Fit::Cast,
        // A number that is too big for its column doesn't survive, any other keeps its value.
        (Byte | Short | Integer | Long, Byte | Short | Integer | Long | Decimal { .. } | Double) => Fit::Cast,
        (Byte | Short, Float) | (Float | Decimal { .. }, Double) => Fit::Cast,
        (Decimal { scale: from, .. }, Decimal { scale: to, .. }) if from <= to => Fit::Cast,
        (Date, Timestamp | TimestampNtz) | (Timestamp, TimestampNtz) | (TimestampNtz, Timestamp) => Fit::Cast,
        (Array(from), Array(to)) if is_always_cast(from, to) => Fit::Cast,
        (Map(from_key, from), Map(to_key, to)) if is_always_cast(from_key, to_key) && is_always_cast(from, to) => {
            Fit::Cast
        }
        _ => Fit::No,
    }
}

/// Inside arrays and maps there is no place to rescue one value from, so only casts without loss are done there.
fn is_always_cast(from: &DataType, to: &DataType) -> bool {
    crate::data_type::merge_types(from, to).as_ref() == Some(to)
}
