//! Values of keys and sequences as texts, and texts as values. Times without a zone are UTC, as they are shown, whatever
//! the session's zone is: what was read can be typed.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, Schema};
use pipeline::data_type::DataType;
use pipeline::scd::KeyPart;
use pipeline::timestamp::parse_timestamp_us;

use crate::auto_cdc::encode::KeyCodec;
use crate::data_type::{UTC, to_arrow};
use crate::error::{Error, Result};

/// Columns as texts, row by row; None is NULL.
pub(super) fn texts(columns: &[ArrayRef]) -> Result<Vec<Vec<Option<String>>>> {
    let rows = columns.first().map_or(0, |column| column.len());
    let fields = columns
        .iter()
        .enumerate()
        .map(|(at, column)| arrow::datatypes::Field::new(at.to_string(), column.data_type().clone(), true));
    let batch = RecordBatch::try_new_with_options(
        Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        columns.to_vec(),
        &RecordBatchOptions::new().with_row_count(Some(rows)),
    );
    crate::preview::text_rows(&batch.map_err(|error| Error::Internal(error.to_string()))?)
}

/// Encoded rows as texts.
pub(super) fn decoded<'b>(
    codec: &KeyCodec,
    rows: impl IntoIterator<Item = &'b [u8]>,
) -> Result<Vec<Vec<Option<String>>>> {
    texts(&codec.decode(rows)?)
}

/// Encoded keys with the names of their columns.
pub(super) fn key_parts<'b>(
    codec: &KeyCodec,
    names: &[String],
    keys: impl IntoIterator<Item = &'b [u8]>,
) -> Result<Vec<Vec<KeyPart>>> {
    let keys = decoded(codec, keys)?.into_iter().map(|values| {
        let parts = names.iter().zip(values);
        parts
            .map(|(column, value)| KeyPart {
                column: column.clone(),
                value: value.unwrap_or_else(|| "NULL".to_string()),
            })
            .collect()
    });
    Ok(keys.collect())
}

/// Encoded sequences as texts.
pub(super) fn sequences<'b>(codec: &KeyCodec, rows: impl IntoIterator<Item = &'b [u8]>) -> Result<Vec<String>> {
    let first = |values: Vec<Option<String>>| values.into_iter().next().flatten().unwrap_or_else(|| "NULL".to_string());
    Ok(decoded(codec, rows)?.into_iter().map(first).collect())
}

/// One encoded sequence as text.
pub(super) fn sequence(codec: &KeyCodec, bytes: &[u8]) -> Result<String> {
    Ok(sequences(codec, [bytes])?.remove(0))
}

/// The text of a sequence as bytes.
///
/// # Errors
/// `bad-value`.
pub(super) fn parse_sequence(codec: &KeyCodec, text: &str) -> Result<Vec<u8>> {
    let value = parse(text, &codec.types()[0], "the sequence")?;
    Ok(codec.encode(&[value])?.get(0).to_vec())
}

/// The bytes of the key that `texts` name: `7`, or `id=7`, `region=eu` in any order.
///
/// # Errors
/// `bad-key`: a column is missing, or is none of the key; `bad-value`.
pub(super) fn parse_key(codec: &KeyCodec, names: &[String], texts: &[String]) -> Result<Vec<u8>> {
    let named = |text: &str| -> Option<(usize, String)> {
        let (column, value) = text.split_once('=')?;
        let at = names.iter().position(|name| name.eq_ignore_ascii_case(column.trim()))?;
        Some((at, value.to_string()))
    };
    let mut values: Vec<Option<String>> = vec![None; names.len()];
    for text in texts {
        match (named(text), names) {
            (Some((at, value)), _) if values[at].is_none() => values[at] = Some(value),
            (None, [_]) if values[0].is_none() => values[0] = Some(text.clone()),
            _ => return Err(bad_key(names, format!("`{text}` names no column of the key that isn't named yet"))),
        }
    }
    if let Some(missing) = values.iter().position(Option::is_none) {
        return Err(bad_key(names, format!("the key's column `{}` is not given", names[missing])));
    }
    let columns = values.iter().flatten().zip(codec.types()).zip(names);
    let columns = columns.map(|((text, data_type), name)| parse(text, data_type, &format!("key `{name}`")));
    Ok(codec.encode(&columns.collect::<Result<Vec<_>>>()?)?.get(0).to_vec())
}

fn bad_key(names: &[String], what: String) -> Error {
    let example: Vec<String> = names.iter().map(|name| format!("--key {name}=…")).collect();
    Error::user("bad-key", what, format!("name the whole key: {}", example.join(" ")))
}

/// The value of a text as a column of one row.
fn parse(text: &str, data_type: &DataType, of: &str) -> Result<ArrayRef> {
    value(text, data_type).ok_or_else(|| {
        let help = match data_type {
            DataType::Timestamp | DataType::TimestampNtz => "write 2025-01-31, or 2025-01-31 10:00:00".to_string(),
            DataType::Struct(fields) => {
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                format!("write the values of its fields, {}, with commas between", names.join(", "))
            }
            data_type => format!("write a value of type {data_type}"),
        };
        Error::user("bad-value", format!("`{text}` is no {data_type}, the type of {of}"), help)
    })
}

fn value(text: &str, data_type: &DataType) -> Option<ArrayRef> {
    Some(match data_type {
        DataType::String => Arc::new(StringArray::from(vec![text])),
        DataType::Binary => Arc::new(BinaryArray::from(vec![hexadecimal(text.trim())?.as_slice()])),
        DataType::Timestamp | DataType::TimestampNtz => {
            let times = TimestampMicrosecondArray::from(vec![parse_timestamp_us(text, "UTC")?]);
            Arc::new(times.with_timezone_opt((*data_type == DataType::Timestamp).then_some(UTC)))
        }
        DataType::Struct(fields) => {
            // As it is shown, `{a: 1, b: 2}`, or the values alone.
            let inner = text.trim();
            let inner = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(inner);
            let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
            if parts.len() != fields.len() {
                return None;
            }
            let columns = fields.iter().zip(parts).map(|(field, part)| {
                let named = part.split_once(':').filter(|(name, _)| name.trim().eq_ignore_ascii_case(&field.name));
                let part = named.map_or(part, |(_, part)| part.trim());
                match part.eq_ignore_ascii_case("null") {
                    true => Some(arrow::array::new_null_array(&to_arrow(&field.data_type), 1)),
                    false => value(part, &field.data_type),
                }
            });
            let ArrowType::Struct(fields) = to_arrow(data_type) else { return None };
            Arc::new(StructArray::try_new(fields, columns.collect::<Option<Vec<_>>>()?, None).ok()?)
        }
        data_type => {
            let text: ArrayRef = Arc::new(StringArray::from(vec![text.trim()]));
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(&text, &to_arrow(data_type), &strict).ok().filter(|value| value.is_valid(0))?
        }
    })
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_typed() {
        let cases = [
            ("BIGINT", "7", "7"),
            ("INT", " -3 ", "-3"),
            ("STRING", "a=b", "a=b"),
            ("DATE", "2025-01-31", "2025-01-31"),
            ("TIMESTAMP", "2025-01-31", "2025-01-31 00:00:00"),
            ("TIMESTAMP", "2025-01-31 10:00:00.5", "2025-01-31 10:00:00.500"),
            ("TIMESTAMP_NTZ", "2025-01-31T10:00", "2025-01-31 10:00:00"),
            ("DECIMAL(10,2)", "1.5", "1.50"),
            ("BOOLEAN", "true", "true"),
            ("BINARY", "00ff", "00ff"),
            ("STRUCT<a: TIMESTAMP, b: BIGINT>", "2025-01-31 10:00:00, 2", "{a: 2025-01-31 10:00:00, b: 2}"),
            (
                "STRUCT<a: TIMESTAMP, b: BIGINT>",
                "{a: 2025-01-31 10:00:00, b: null}",
                "{a: 2025-01-31 10:00:00, b: null}",
            ),
        ];
        for (data_type, text, shown) in cases {
            let fields = pipeline::ddl::parse_fields(&format!("s {data_type}")).expect("a field");
            let codec = KeyCodec::new(vec![fields[0].data_type.clone()]).expect("an order");
            let bytes = parse_sequence(&codec, text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(sequence(&codec, &bytes).expect("its text"), shown, "{data_type} {text}");
            assert_eq!(parse_sequence(&codec, shown).expect("the same"), bytes, "{data_type} {shown}");
        }
    }

    #[test]
    fn keys_are_named_whole_and_in_any_order() {
        let fields = pipeline::ddl::parse_fields("id BIGINT, region STRING").expect("fields");
        let codec = KeyCodec::new(fields.iter().map(|field| field.data_type.clone()).collect()).expect("an order");
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        let parse = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
            parse_key(&codec, &names, &texts).map_err(|error| error.code())
        };
        assert_eq!(parse(&["id=7", "region=eu"]), parse(&["REGION=eu", "id=7"]));
        assert_eq!(parse(&["id=7"]), Err("bad-key"));
        assert_eq!(parse(&["7", "eu"]), Err("bad-key"));
        assert_eq!(parse(&["id=7", "id=8", "region=eu"]), Err("bad-key"));
        assert_eq!(parse(&["id=seven", "region=eu"]), Err("bad-value"));
    }
}
