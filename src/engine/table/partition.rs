//! Partition values: their text in the log (Delta protocol: partition value serialization), their folder
//! names as Hive writes them, and splitting a batch by them.

use std::collections::HashMap;
use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::take_record_batch;
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::action::PartitionValues;

/// The folder of rows whose partition value is NULL.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// The partition values of a row. The empty string is NULL, as the protocol has no other way to write it.
pub fn values_at(names: &[String], columns: &[ArrayRef], row: usize) -> Result<PartitionValues, ArrowError> {
    // Timestamps: with a zone as ISO 8601 in UTC, without as the protocol's plain form.
    let format = FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.6f"))
        .with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));
    let value = |column: &ArrayRef| -> Result<Option<String>, ArrowError> {
        if column.is_null(row) {
            return Ok(None);
        }
        let text = ArrayFormatter::try_new(column.as_ref(), &format)?.value(row).try_to_string()?;
        Ok((!text.is_empty()).then_some(text))
    };
    names.iter().zip(columns).map(|(name, column)| Ok((name.clone(), value(column)?))).collect()
}

/// The folder of the values, in the order of the partition columns: `a=1/b=x%2Fy`.
pub fn folder(names: &[String], values: &PartitionValues) -> String {
    let part = |name: &String| {
        let value = values.get(name).and_then(Option::as_deref);
        format!("{}={}", escape(name), value.map_or_else(|| NULL_FOLDER.to_owned(), escape))
    };
    names.iter().map(part).collect::<Vec<_>>().join("/")
}

/// Escapes what may not be in a folder name. More than Hive does, so that a name is plain ASCII everywhere.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => escaped.push(byte as char),
            _ => write!(escaped, "%{byte:02X}").expect("writing to a string"),
        }
    }
    // `.` and `..` would lead to other folders.
    if escaped.chars().all(|character| character == '.') { escaped.replace('.', "%2E") } else { escaped }
}

/// The rows of a batch that go into one partition.
pub struct Part {
    /// Of the values, for looking up.
    pub key: OwnedRow,
    pub rows: RecordBatch,
    /// Which rows of the batch they are.
    pub indices: ScalarBuffer<u32>,
}

/// Splits batches by the values of their partition columns.
pub struct Splitter {
    columns: Vec<usize>,
    converter: RowConverter,
}

impl Splitter {
    /// Splits batches of this schema by the columns at these positions.
    pub fn new(schema: &arrow::datatypes::Schema, columns: Vec<usize>) -> Result<Splitter, ArrowError> {
        let fields = columns.iter().map(|index| SortField::new(schema.field(*index).data_type().clone())).collect();
        Ok(Splitter { converter: RowConverter::new(fields)?, columns })
    }

    /// The partition columns of a batch.
    pub fn columns(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        self.columns.iter().map(|index| batch.column(*index).clone()).collect()
    }

    /// The parts of a batch, each with the key of its values.
    pub fn split(&self, batch: &RecordBatch) -> Result<Vec<Part>, ArrowError> {
        let rows = self.converter.convert_columns(&self.columns(batch))?;
        let mut parts: HashMap<_, Vec<u32>> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            parts.entry(row).or_default().push(index as u32);
        }
        if parts.len() == 1 {
            let indices = (0..batch.num_rows() as u32).collect();
            return Ok(vec![Part { key: rows.row(0).owned(), rows: batch.clone(), indices }]);
        }
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_unstable_by_key(|(_, indices)| indices[0]);
        parts
            .into_iter()
            .map(|(row, indices)| {
                let indices = UInt32Array::from(indices);
                Ok(Part {
                    key: row.owned(),
                    rows: take_record_batch(batch, &indices)?,
                    indices: indices.values().clone(),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{Date32Array, StringArray, TimestampMicrosecondArray};

    #[test]
    fn values_are_written_as_the_protocol_says() {
        let utc = TimestampMicrosecondArray::from(vec![1_700_000_000_123_456]).with_timezone("UTC");
        let columns: Vec<(&str, ArrayRef, Option<&str>)> = vec![
            ("day", Arc::new(Date32Array::from(vec![19_723])), Some("2024-01-01")),
            ("at", Arc::new(utc), Some("2023-11-14T22:13:20.123456Z")),
            ("plain", Arc::new(TimestampMicrosecondArray::from(vec![0])), Some("1970-01-01 00:00:00.000000")),
            ("null", Arc::new(StringArray::from(vec![None::<&str>])), None),
            ("empty", Arc::new(StringArray::from(vec![""])), None),
        ];
        for (name, column, expected) in columns {
            let values = values_at(&[name.to_owned()], &[column], 0).expect("formats");
            assert_eq!(values[name].as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn folders_are_escaped() {
        let names = ["b".to_owned(), "a".to_owned(), "n".to_owned()];
        let values = [("a", Some("x/y é=1")), ("b", Some("..")), ("n", None)];
        let values = values.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).into();
        assert_eq!(folder(&names, &values), "b=%2E%2E/a=x%2Fy%20%C3%A9%3D1/n=__HIVE_DEFAULT_PARTITION__");
    }
}
