//! The lines of a Delta log: the actions of a commit as the protocol spells them, and how they are read and
//! written.
//!
//! Not here: where the lines are stored (`log.rs`) and what they add up to (`state.rs`). Actions of features
//! that we don't use are skipped when read; `state.rs` refuses tables for which that would be wrong.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::deletion_vector::DeletionVector;

/// Partition column → value as the protocol writes it; `None` is NULL.
pub type PartitionValues = BTreeMap<String, Option<String>>;

/// One line of a commit: exactly one of the fields is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Action {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_info: Option<CommitInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txn: Option<Txn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove: Option<Remove>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<Add>,
    #[serde(skip_serializing)]
    pub sidecar: Option<Sidecar>,
}

/// A data file enters the table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Add {
    /// Relative to the table's folder and percent-encoded; see `decode_path`.
    pub path: String,
    #[serde(default)]
    pub partition_values: PartitionValues,
    pub size: i64,
    pub modification_time: i64,
    pub data_change: bool,
    /// The file's statistics as JSON text; see `stats.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, Option<String>>>,
    /// Rows that are deleted though the file holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
}

/// See [`Add::by_age`]; time and path of each.
pub(super) fn by_age(a: (i64, &str), b: (i64, &str)) -> Ordering {
    let (name_a, name_b) = (a.1.rsplit('/').next(), b.1.rsplit('/').next());
    a.0.cmp(&b.0).then_with(|| name_a.cmp(&name_b)).then_with(|| a.1.cmp(b.1))
}

impl Add {
    /// The order in which files came into their table, and its rows with them: commits by their time, the files of one
    /// commit by their names.
    pub fn by_age(&self, other: &Add) -> Ordering {
        by_age((self.modification_time, &self.path), (other.modification_time, &other.path))
    }

    /// Rows that are in the table.
    pub fn live_rows(&self) -> Option<u64> {
        Some(self.rows()?.saturating_sub(self.deleted_rows()))
    }

    /// Rows that the deletion vector takes away.
    pub fn deleted_rows(&self) -> u64 {
        self.deletion_vector.as_ref().map_or(0, DeletionVector::rows)
    }

    /// Rows in the file according to its statistics, deletion vector not considered.
    pub fn rows(&self) -> Option<u64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Rows {
            num_records: Option<u64>,
        }
        serde_json::from_str::<Rows>(self.stats.as_deref()?).ok()?.num_records
    }

    /// The action that takes this file out of the table.
    pub fn to_remove(&self, data_change: bool, now_ms: i64) -> Remove {
        Remove {
            path: self.path.clone(),
            deletion_timestamp: Some(now_ms),
            data_change,
            extended_file_metadata: Some(true),
            partition_values: Some(self.partition_values.clone()),
            size: Some(self.size),
            deletion_vector: self.deletion_vector.clone(),
        }
    }
}

/// A data file leaves the table; it stays on disk until a vacuum.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove {
    pub path: String,
    #[serde(default)]
    pub deletion_timestamp: Option<i64>,
    #[serde(default = "yes")]
    pub data_change: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<PartitionValues>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
}

fn yes() -> bool {
    true
}

impl Remove {
    /// The file as it was in the table, without statistics; `None` if the action doesn't tell enough.
    pub fn to_add(&self) -> Option<Add> {
        Some(Add {
            path: self.path.clone(),
            partition_values: self.partition_values.clone()?,
            size: self.size?,
            data_change: self.data_change,
            deletion_vector: self.deletion_vector.clone(),
            ..Add::default()
        })
    }
}

/// The last batch of an application that is in the table (Delta protocol: transaction identifiers).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Txn {
    pub app_id: String,
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}

/// What the table is: schema, partitioning, properties.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub format: Format,
    /// The schema as the protocol's JSON; see `schema.rs`.
    pub schema_string: String,
    #[serde(default)]
    pub partition_columns: Vec<String>,
    #[serde(default)]
    pub configuration: BTreeMap<String, Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
}

/// The format of the data files: always Parquet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Format {
    pub provider: String,
    #[serde(default)]
    pub options: BTreeMap<String, Option<String>>,
}

impl Default for Format {
    fn default() -> Format {
        Format { provider: "parquet".into(), options: BTreeMap::new() }
    }
}

/// What a program must understand to read and to write the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    pub min_reader_version: i32,
    pub min_writer_version: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}

/// A checkpoint's reference to a Parquet file with more actions (Delta protocol: V2 checkpoints).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sidecar {
    pub path: String,
}

/// Who made the commit and why. Programs write what they like here, so everything is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CommitInfo {
    pub timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_commit_timestamp: Option<i64>,
    pub operation: Option<String>,
    pub operation_parameters: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_metrics: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_blind_append: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_info: Option<String>,
}

/// Reads the lines of a commit or of a checkpoint turned into lines.
///
/// # Errors
/// The number of the line that isn't JSON or lacks a required field, and why.
pub fn parse_actions(text: &[u8]) -> Result<Vec<Action>, String> {
    text.split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace))
        .map(|(number, line)| serde_json::from_slice(line).map_err(|error| format!("line {}: {error}", number + 1)))
        .collect()
}

/// Writes actions as the lines of a commit.
pub fn print_actions(actions: &[Action]) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(actions.len() * 256);
    for action in actions {
        serde_json::to_writer(&mut text, action)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// The file that an `add.path` or `remove.path` means; absolute ones are `file:` addresses (shallow clones).
/// `None` for files that are not on this machine.
pub fn decode_path(table_dir: &Path, path: &str) -> Option<PathBuf> {
    match url::Url::parse(path) {
        Ok(url) => url.to_file_path().ok(),
        Err(_) => Some(table_dir.join(percent_decode(path))),
    }
}

/// Turns a relative path with `/` between its parts into the form that the log holds.
pub fn encode_path(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'=' => {
                encoded.push(byte as char);
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                decoded.push(byte);
                at += 3;
            }
            _ => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_the_log() {
        for path in ["part-1.parquet", "city=New%20York/x y+ü%.parquet", "a=__HIVE_DEFAULT_PARTITION__/1:2.parquet"] {
            let file = decode_path(Path::new("/t"), &encode_path(path)).expect("a local file");
            assert_eq!(file, Path::new("/t").join(path));
        }
        assert_eq!(decode_path(Path::new("/t"), "file:///x/a%20b.parquet"), Some(PathBuf::from("/x/a b.parquet")));
        assert_eq!(decode_path(Path::new("/t"), "s3://bucket/a.parquet"), None);
    }

    #[test]
    fn lines_of_unknown_actions_are_skipped_and_broken_ones_are_named() {
        let read =
            parse_actions(b"{\"domainMetadata\":{\"domain\":\"x\"}}\n\n{\"txn\":{\"appId\":\"a\",\"version\":7}}\n");
        let read = read.expect("readable");
        assert_eq!(read[1].txn.as_ref().map(|txn| txn.version), Some(7));
        assert!(parse_actions(b"{}\n{\"add\":").expect_err("broken").starts_with("line 2: "));
    }
}
