//! The version of a snapshot, a sequence of its target: the time of the update, what a query gives, or what the path of
//! a file tells.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use pipeline::auto_cdc::SnapshotFiles;
use pipeline::data_type::DataType;
use pipeline::number::counted;

use super::encode::KeyCodec;
use crate::clock::now_us;
use crate::data_type::{UTC, from_arrow, to_arrow};
use crate::error::{Error, Result};

/// The version of a snapshot that has none of its own.
pub(crate) fn of_now() -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(vec![now_us()]).with_timezone(UTC))
}

/// The version in what `WITH VERSION (query)` of a flow gives; None: no row.
///
/// # Errors
/// `snapshot-version`.
pub(crate) fn of_rows(flow: &str, rows: &[RecordBatch]) -> Result<Option<ArrayRef>> {
    let rows: Vec<ArrayRef> =
        rows.iter().filter(|rows| rows.num_rows() > 0).map(|rows| rows.column(0).clone()).collect();
    let invalid = |what: &str, condition: &str| {
        Err(Error::user(
            "snapshot-version",
            format!("flow `{flow}`: {what} [APPLY_CHANGES_FROM_SNAPSHOT_ERROR.{condition}]"),
            "the query in WITH VERSION gives one row with the snapshot's version, or none when there is no new one",
        ))
    };
    match rows.as_slice() {
        [] => Ok(None),
        [version] if version.len() == 1 && version.logical_null_count() > 0 => {
            invalid("the version of its snapshot is NULL", "NULL_SNAPSHOT_VERSION")
        }
        [version] if version.len() == 1 => {
            let data_type = from_arrow(version.data_type()).map(|data_type| to_arrow(&data_type));
            let data_type = data_type.unwrap_or_else(|| version.data_type().clone());
            Ok(Some(cast(version, &data_type).map_err(|error| Error::Internal(error.to_string()))?))
        }
        rows => {
            let count: usize = rows.iter().map(|rows| rows.len()).sum();
            invalid(
                &format!("its version query gives {}", counted(count as u64, "row", "rows")),
                "INVALID_SNAPSHOT_VERSION",
            )
        }
    }
}

/// The version that the path of a flow's file tells.
///
/// # Errors
/// `snapshot-version`.
pub(crate) fn of_path(flow: &str, files: &SnapshotFiles, path: &str) -> Result<ArrayRef> {
    let invalid = |why: String| {
        Error::user(
            "snapshot-version",
            format!("flow `{flow}`: `{path}` {why} [APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION]"),
            "let `path` match snapshots only, and `version_regex` find the version of each in its first group",
        )
    };
    let regex = regex::Regex::new(&files.version_regex.value).map_err(|error| invalid(error.to_string()))?;
    let found = regex.captures(path).ok_or_else(|| invalid(format!("has nothing that `{regex}` finds")))?;
    let text = found.get(1).or_else(|| found.get(0)).map(|found| found.as_str()).unwrap_or_default();
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let version = cast(&text, &to_arrow(&files.version_type)).map_err(|error| invalid(error.to_string()))?;
    match version.is_null(0) {
        true => Err(invalid(format!("has a version that is no {}", files.version_type))),
        false => Ok(version),
    }
}

/// A version's type.
pub(crate) fn data_type(version: &ArrayRef) -> Result<DataType> {
    from_arrow(version.data_type())
        .ok_or_else(|| Error::Internal(format!("a version can't be {}", version.data_type())))
}

/// A version's bytes, as sequences are encoded.
pub(crate) fn encoded(version: &ArrayRef) -> Result<Vec<u8>> {
    let codec = KeyCodec::new(vec![data_type(version)?])?;
    Ok(codec.encode(std::slice::from_ref(version))?.get(0).to_vec())
}
