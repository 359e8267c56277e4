//! Checkpoints of the log: all that a table is at a version in one Parquet file, so that readers start there.
//!
//! Written from what the table's handle knows anyway. delta-rs' writer replays the log instead, and keeps the removal
//! of each vector that was ever replaced: where every batch deletes rows from every file, that is soon a thousand times
//! what the table is. We keep one a file of vectors, as much as a vacuum needs to know.
//!
//! Not here: reading (`log.rs`), and when one is written (`maintenance.rs`).

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::json;

use super::action::{Action, Remove, Txn};
use super::log;
use super::state::State;
use crate::error::{Error, Result};

/// The features of tables whose every action we keep. Of others delta-rs has to write the checkpoint.
const KNOWN: [&str; 8] = [
    "appendOnly",
    "invariants",
    "timestampNtz",
    "deletionVectors",
    "changeDataFeed",
    "checkConstraints",
    "columnMapping",
    "vacuumProtocolCheck",
];

/// Whether a checkpoint of ours would hold all that the table is.
pub fn is_complete(state: &State) -> bool {
    let protocol = &state.protocol;
    let features = protocol.writer_features.iter().chain(&protocol.reader_features).flatten();
    protocol.min_writer_version <= 7 && features.into_iter().all(|feature| KNOWN.contains(&feature.as_str()))
}

/// Writes a checkpoint of the state and points readers to it.
pub fn write(table_dir: &Path, state: &State) -> Result<()> {
    let folder = table_dir.join(log::LOG_FOLDER);
    let actions = actions(state);
    let name = format!("{:020}.checkpoint.parquet", state.version);
    let failed = |error| Error::io("write", folder.join(&name), std::io::Error::other(error));
    let batch = to_batch(&actions).map_err(failed)?;
    replace(&folder, &name, |file| {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = ArrowWriter::try_new(file.try_clone()?, batch.schema(), Some(properties))?;
        writer.write(&batch)?;
        writer.close().map(drop).map_err(std::io::Error::other)
    })?;
    let hint = json!({"version": state.version, "size": actions.len()}).to_string();
    replace(&folder, "_last_checkpoint", |mut file| std::io::Write::write_all(&mut file, hint.as_bytes()))
}

/// Puts a file in place whole, and durably.
fn replace(folder: &Path, name: &str, write: impl FnOnce(&File) -> std::io::Result<()>) -> Result<()> {
    let draft = folder.join(format!("_draft_{}.tmp", uuid::Uuid::new_v4()));
    let put = || {
        let file = File::create_new(&draft)?;
        write(&file)?;
        file.sync_all()?;
        fs::rename(&draft, folder.join(name))
    };
    put().map_err(|error| Error::io("write", folder.join(name), error))?;
    log::sync_folder(folder)
}

fn actions(state: &State) -> Vec<Action> {
    let mut actions = vec![
        Action { protocol: Some(state.protocol.clone()), ..Action::default() },
        Action { meta_data: Some(state.metadata.clone()), ..Action::default() },
    ];
    actions.extend(state.txns.iter().map(|(app_id, version)| Action {
        txn: Some(Txn { app_id: app_id.clone(), version: *version, last_updated: None }),
        ..Action::default()
    }));
    let gone = |(path, removed_ms): (&String, &i64)| Remove {
        path: path.clone(),
        deletion_timestamp: Some(*removed_ms),
        ..Remove::default()
    };
    let removes = state.tombstones.iter().map(gone).chain(state.old_vectors.values().filter_map(|old| {
        let is_back = state.files.get(&old.path).is_some_and(|add| add.deletion_vector.as_ref() == Some(&old.vector));
        (!is_back).then(|| Remove { deletion_vector: Some(old.vector.clone()), ..gone((&old.path, &old.replaced_ms)) })
    }));
    actions.extend(removes.map(|remove| Action { remove: Some(remove), ..Action::default() }));
    actions.extend(state.files.values().map(|add| Action { add: Some(super::Add::clone(add)), ..Action::default() }));
    actions
}

/// The columns of a checkpoint are named like the keys of a commit.
fn to_batch(actions: &[Action]) -> std::result::Result<RecordBatch, ArrowError> {
    let mut decoder =
        arrow::json::ReaderBuilder::new(Arc::new(schema())).with_batch_size(actions.len()).build_decoder()?;
    decoder.serialize(actions)?;
    decoder.flush()?.ok_or_else(|| ArrowError::InvalidArgumentError("a table without metadata".into()))
}

fn schema() -> Schema {
    let text = || DataType::Utf8;
    let texts = || DataType::List(Arc::new(Field::new("element", DataType::Utf8, true)));
    let map = || {
        let entry = vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)];
        DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entry.into()), false)), false)
    };
    let record = |fields: Vec<(&str, DataType)>| {
        DataType::Struct(fields.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect::<Fields>())
    };
    let vector = || {
        record(vec![
            ("storageType", text()),
            ("pathOrInlineDv", text()),
            ("offset", DataType::Int32),
            ("sizeInBytes", DataType::Int32),
            ("cardinality", DataType::Int64),
        ])
    };
    let columns = [
        ("txn", record(vec![("appId", text()), ("version", DataType::Int64), ("lastUpdated", DataType::Int64)])),
        (
            "add",
            record(vec![
                ("path", text()),
                ("partitionValues", map()),
                ("size", DataType::Int64),
                ("modificationTime", DataType::Int64),
                ("dataChange", DataType::Boolean),
                ("stats", text()),
                ("tags", map()),
                ("deletionVector", vector()),
            ]),
        ),
        (
            "remove",
            record(vec![
                ("path", text()),
                ("deletionTimestamp", DataType::Int64),
                ("dataChange", DataType::Boolean),
                ("extendedFileMetadata", DataType::Boolean),
                ("partitionValues", map()),
                ("size", DataType::Int64),
                ("deletionVector", vector()),
            ]),
        ),
        (
            "metaData",
            record(vec![
                ("id", text()),
                ("name", text()),
                ("description", text()),
                ("format", record(vec![("provider", text()), ("options", map())])),
                ("schemaString", text()),
                ("partitionColumns", texts()),
                ("configuration", map()),
                ("createdTime", DataType::Int64),
            ]),
        ),
        (
            "protocol",
            record(vec![
                ("minReaderVersion", DataType::Int32),
                ("minWriterVersion", DataType::Int32),
                ("readerFeatures", texts()),
                ("writerFeatures", texts()),
            ]),
        ),
    ];
    Schema::new(columns.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect::<Vec<_>>())
}
