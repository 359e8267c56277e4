//! What a table is at one version: the sum of its log's actions, kept in memory and advanced commit by
//! commit, so that a commit costs what it changes and not what the table holds.
//!
//! Not here: reading and writing log entries (`log.rs`).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::action::{Action, Add, Metadata, Protocol};
use super::deletion_vector::DeletionVector;
use super::{log, schema};
use crate::error::{Error, Result};

/// A table at one version.
#[derive(Debug, Clone)]
pub struct State {
    pub version: i64,
    pub protocol: Protocol,
    pub metadata: Metadata,
    /// The schema of `metadata` as Arrow.
    pub schema: SchemaRef,
    /// The data files, by `add.path`, which is their identity; ordered, so that plans and tests are stable.
    pub files: BTreeMap<String, Arc<Add>>,
    /// Files that have left the table but may still be on disk → when they left, in ms.
    pub tombstones: HashMap<String, i64>,
    /// Files with deletion vectors that are no longer in force, by their name in the log.
    pub old_vectors: HashMap<String, OldVector>,
    /// Application id → its last batch id.
    pub txns: BTreeMap<String, i64>,
}

/// A file of deletion vectors of which some are no longer in force, but needed to read older versions.
#[derive(Debug, Clone, PartialEq)]
pub struct OldVector {
    /// One of them, and the data file that it was for.
    pub vector: DeletionVector,
    pub path: String,
    /// When the last of them was replaced.
    pub replaced_ms: i64,
}

impl State {
    /// Reads the newest state, or the one at `version`; `None` if there is no table.
    ///
    /// # Errors
    /// `table-version-missing` if the log no longer reaches back to `version`, or isn't there yet.
    pub fn read(table_dir: &Path, version: Option<i64>) -> Result<Option<State>> {
        let Some(listing) = log::list(table_dir)? else { return Ok(None) };
        let newest = listing.newest().expect("a listing has a version");
        let target = version.unwrap_or(newest);
        if target > newest || target < 0 {
            return Err(missing_version(table_dir, target));
        }
        let checkpoint = listing.checkpoints.range(..=target).next_back();
        let mut replay = Replay::default();
        let mut next = 0;
        if let Some((at, files)) = checkpoint {
            replay.apply(log::read_checkpoint(files)?);
            next = at + 1;
        }
        for version in next..=target {
            let actions = log::read_commit(table_dir, version)?.ok_or_else(|| missing_version(table_dir, version))?;
            replay.apply(actions);
        }
        replay.complete_partition_values();
        let (Some(protocol), Some(metadata)) = (replay.protocol, replay.metadata) else {
            return Err(log::corrupted(
                &log::commit_path(table_dir, target),
                "no protocol or metadata up to it".into(),
            ));
        };
        check_readable(table_dir, &protocol)?;
        Ok(Some(State {
            version: target,
            schema: schema::from_delta(&metadata.schema_string)
                .map_err(|why| log::corrupted(&log::commit_path(table_dir, target), why))?,
            protocol,
            metadata,
            files: replay.files,
            tombstones: replay.tombstones,
            old_vectors: replay.old_vectors,
            txns: replay.txns,
        }))
    }

    /// Goes on to the next version.
    pub fn advance(&mut self, table_dir: &Path, actions: Vec<Action>) -> Result<()> {
        let mut replay = Replay {
            files: std::mem::take(&mut self.files),
            tombstones: std::mem::take(&mut self.tombstones),
            old_vectors: std::mem::take(&mut self.old_vectors),
            txns: std::mem::take(&mut self.txns),
            ..Replay::default()
        };
        replay.apply(actions);
        self.version += 1;
        self.files = replay.files;
        self.tombstones = replay.tombstones;
        self.old_vectors = replay.old_vectors;
        self.txns = replay.txns;
        if let Some(protocol) = replay.protocol {
            check_readable(table_dir, &protocol)?;
            self.protocol = protocol;
        }
        if let Some(metadata) = replay.metadata {
            self.schema = schema::from_delta(&metadata.schema_string)
                .map_err(|why| log::corrupted(&log::commit_path(table_dir, self.version), why))?;
            self.metadata = metadata;
        }
        Ok(())
    }

    /// Forgets what left the table before a time.
    pub fn forget_removed(&mut self, before_ms: i64) {
        self.tombstones.retain(|_, removed_ms| *removed_ms >= before_ms);
        self.old_vectors.retain(|_, old| old.replaced_ms >= before_ms);
    }

    /// Whether reading the data needs more than we know of: column mapping.
    pub fn needs_delta_reader(&self) -> bool {
        let mapped = self.metadata.configuration.get("delta.columnMapping.mode");
        mapped.is_some_and(|mode| mode.as_deref().is_some_and(|mode| mode != "none"))
    }
}

/// The log doesn't hold a version that is needed.
pub fn missing_version(table_dir: &Path, version: i64) -> Error {
    let newest = log::list(table_dir).ok().flatten().and_then(|listing| listing.newest());
    Error::User {
        code: "table-version-missing",
        what: format!("version {version} is not in the log of the table at `{}`", table_dir.display()),
        help: match newest.filter(|newest| version < 0 || version > *newest) {
            Some(newest) => format!("the newest version is {newest}; `flowbench describe` lists the versions"),
            None => "the log was cleaned up before it; read from a newer version, or reset the checkpoint of the flow \
                     that reads it"
                .into(),
        },
    }
}

/// Refuses tables that would be read wrongly.
fn check_readable(table_dir: &Path, protocol: &Protocol) -> Result<()> {
    const KNOWN: [&str; 5] =
        ["timestampNtz", "columnMapping", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"];
    let unknown = match (protocol.min_reader_version, &protocol.reader_features) {
        (1 | 2, _) => return Ok(()),
        (3, Some(features)) => features.iter().find(|feature| !KNOWN.contains(&feature.as_str())).cloned(),
        (version, _) => Some(format!("reader version {version}")),
    };
    match unknown {
        None => Ok(()),
        Some(feature) => Err(Error::user(
            "table-feature-unsupported",
            format!("the table at `{}` needs the Delta feature `{feature}`, which we can't read", table_dir.display()),
            "drop the feature with the program that wrote the table (ALTER TABLE … DROP FEATURE), or copy the table",
        )),
    }
}

#[derive(Default)]
struct Replay {
    protocol: Option<Protocol>,
    metadata: Option<Metadata>,
    files: BTreeMap<String, Arc<Add>>,
    tombstones: HashMap<String, i64>,
    old_vectors: HashMap<String, OldVector>,
    txns: BTreeMap<String, i64>,
}

impl Replay {
    /// A checkpoint's maps come without their NULLs.
    fn complete_partition_values(&mut self) {
        let columns = self.metadata.iter().flat_map(|metadata| &metadata.partition_columns);
        for column in columns {
            for add in self.files.values_mut().filter(|add| !add.partition_values.contains_key(column)) {
                Arc::make_mut(add).partition_values.insert(column.clone(), None);
            }
        }
    }

    /// Applies the actions of one version. Removes go first: a file whose deletion vector changed is removed
    /// and added under the same path in one commit, in any order.
    fn apply(&mut self, actions: Vec<Action>) {
        for remove in actions.iter().filter_map(|action| action.remove.as_ref()) {
            self.files.remove(&remove.path);
            let removed_ms = remove.deletion_timestamp.unwrap_or(0);
            let gone_ms = self.tombstones.entry(remove.path.clone()).or_insert(removed_ms);
            *gone_ms = removed_ms.max(*gone_ms);
            if let Some(vector) = remove.deletion_vector.as_ref().filter(|vector| vector.storage_type != "i") {
                let old = self.old_vectors.entry(vector.path_or_inline_dv.clone()).or_insert_with(|| OldVector {
                    vector: vector.clone(),
                    path: remove.path.clone(),
                    replaced_ms: removed_ms,
                });
                old.replaced_ms = removed_ms.max(old.replaced_ms);
            }
        }
        for action in actions {
            if let Some(add) = action.add {
                self.tombstones.remove(&add.path);
                self.files.insert(add.path.clone(), Arc::new(add));
            }
            if let Some(txn) = action.txn {
                self.txns.insert(txn.app_id, txn.version);
            }
            self.protocol = action.protocol.or(self.protocol.take());
            self.metadata = action.meta_data.or(self.metadata.take());
        }
    }
}
