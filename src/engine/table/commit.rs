//! Putting data files into a table and taking files and rows out, as one log entry: appends, overwrites, deletes,
//! schema growth.
//!
//! Our own flows commit one after another (`queue.rs`), so that a conflict means another program. What it did
//! decides: an append goes on behind it; anything it could have invalidated is an error.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::action::{Action, Add, CommitInfo, Metadata, Protocol, Txn, print_actions};
use super::deletion_vector::DeletionVector;
use super::state::State;
use super::writer::now_ms;
use super::{AddedFile, DataFile, Format, PreparedCommit, RowDeletes, Table, log, schema, stats};
use crate::error::{Error, Result};

/// The code of the error that says: another program changed what this commit builds on; plan it again.
pub const CONFLICT: &str = "table-conflict";
/// The code of the error that says: this batch is in the table already.
pub const ALREADY_COMMITTED: &str = "batch-already-committed";
/// The property that says that rows may be deleted in place.
pub(super) const DELETION_VECTORS: &str = "delta.enableDeletionVectors";

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub enum RemoveSet {
    #[default]
    None,
    /// All that are there when the commit happens.
    All,
    /// These, by `AddedFile::path`.
    Given(Vec<String>),
    /// These as they were read: if rows of one were deleted since, that is a conflict.
    Read(Vec<AddedFile>),
}

impl RemoveSet {
    pub(super) fn is_none(&self) -> bool {
        matches!(self, RemoveSet::None)
    }
}

/// Changes of the metadata besides the schema; `None` leaves a thing as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MetadataChange {
    /// `Some(None)` takes the comment away.
    pub comment: Option<Option<String>>,
    /// All properties, replacing the present ones.
    pub properties: Option<BTreeMap<String, String>>,
    /// Only with `RemoveSet::All` or in a table without files: the folders of files that stay would be wrong.
    pub partition_by: Option<Vec<String>>,
}

/// How a prepared commit came into the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// As this version, by this call.
    Now(i64),
    /// It was there already, at this version at the latest; nothing was written.
    AlreadyThere(i64),
}

impl Committed {
    /// The version.
    pub fn version(self) -> i64 {
        match self {
            Committed::Now(version) | Committed::AlreadyThere(version) => version,
        }
    }
}

/// What is to be written for a prepared commit.
enum NextEntry {
    AlreadyThere { version: i64 },
    Write(Vec<Action>),
}

/// What one commit does.
#[derive(Debug, Default)]
pub struct Commit {
    pub adds: Vec<DataFile>,
    pub removes: RemoveSet,
    /// Rows to delete from files that stay, none of which is deleted yet. A file that loses its last row leaves.
    pub deletes: RowDeletes,
    /// The whole new schema. With files that stay, it may only grow; see `schema::check_growth`.
    pub new_schema: Option<SchemaRef>,
    pub metadata: MetadataChange,
    /// (application id, batch id): the batches that are in the table from this commit on.
    pub txns: Vec<(String, i64)>,
    /// As in the table's history: `STREAMING UPDATE`, `WRITE`, `MERGE`, …
    pub operation: String,
    pub parameters: BTreeMap<String, String>,
    /// The rows stay the same, only their files change: a compaction. Streams don't see it.
    pub rearranges: bool,
}

impl Table {
    /// Commits and returns the new version.
    ///
    /// # Errors
    /// * `batch-already-committed` – the table's `txn` is at this batch id or beyond it; nothing was written
    /// * `table-conflict` – another program took files or rows out that this commit takes out, or added files while
    ///   this one replaces given files
    /// * `table-changed` – another program changed schema, properties or protocol
    /// * `schema-change` – the new schema doesn't fit the files that stay
    /// * `Internal` – a row that is to be deleted is deleted already, or not in its file
    ///
    /// The files in `adds` are deleted if the commit fails before anything could have been written.
    pub async fn commit(&mut self, commit: Commit) -> Result<i64> {
        let prepared = self.prepare(commit)?;
        loop {
            match self.next_entry(&prepared) {
                Ok(NextEntry::Write(actions)) => {
                    if self.write_prepared(&prepared, actions)? {
                        self.checkpoint_if_due();
                        return Ok(self.state.version);
                    }
                }
                Ok(NextEntry::AlreadyThere { .. }) => {
                    let refused = self.check_txns(&prepared.txns);
                    prepared.discard(self)?;
                    return refused.map(|()| self.state.version);
                }
                Err(error) => {
                    // What was refused counts; files that can't be deleted are a vacuum's.
                    let _ = prepared.discard(self);
                    return Err(error);
                }
            }
        }
    }

    /// Makes a prepared commit, of this process or of one that died. It may be called again whatever became of the
    /// call before: the commit is made once.
    ///
    /// # Errors
    /// As `commit`, but a batch that is in the table already is none. `table-conflict` also if the table was dropped and
    /// created anew. The commit's files stay, whatever happens.
    pub async fn commit_prepared(&mut self, prepared: &PreparedCommit) -> Result<Committed> {
        loop {
            match self.next_entry(prepared)? {
                NextEntry::AlreadyThere { version } => return Ok(Committed::AlreadyThere(version)),
                NextEntry::Write(actions) => {
                    if self.write_prepared(prepared, actions)? {
                        self.checkpoint_if_due();
                        return Ok(Committed::Now(self.state.version));
                    }
                }
            }
        }
    }

    /// Moves on to the newest version and says what the next one has to be.
    fn next_entry(&mut self, prepared: &PreparedCommit) -> Result<NextEntry> {
        self.read_new_commits()?;
        if self.id() != prepared.table_id {
            // The table of a promoted generation has that's batches, by another id.
            if !prepared.txns.is_empty() && self.check_txns(&prepared.txns).is_err() {
                return Ok(NextEntry::AlreadyThere { version: self.state.version });
            }
            return Err(self.conflict(format!("table `{}` was dropped and created anew", self.name)));
        }
        let mut since = Vec::new();
        for version in prepared.read_version + 1..=self.state.version {
            // One that is cleaned up is old, and what it did to our files is seen in the table's state.
            since.extend(log::read_commit(&self.dir, version)?.map(|actions| (version, actions)));
        }
        let is_ours = |(_, actions): &&(i64, Vec<Action>)| {
            let txns = actions.iter().filter_map(|action| action.txn.as_ref());
            let mut adds = actions.iter().filter_map(|action| action.add.as_ref());
            txns.into_iter()
                .any(|txn| prepared.txns.iter().any(|(app, batch)| *app == txn.app_id && *batch == txn.version))
                || adds.any(|add| {
                    let is_new_file = prepared.adds.iter().any(|ours| ours.path == add.path);
                    is_new_file
                        || prepared.changes.iter().any(|ours| ours.new.is_some() && ours.new == add.deletion_vector)
                })
        };
        if let Some((version, _)) = since.iter().find(is_ours) {
            return Ok(NextEntry::AlreadyThere { version: *version });
        }
        if self.check_txns(&prepared.txns).is_err() {
            return Ok(NextEntry::AlreadyThere { version: self.state.version });
        }
        self.check_foreign(prepared, &since)?;
        self.actions_of(prepared).map(NextEntry::Write)
    }

    fn write_prepared(&mut self, prepared: &PreparedCommit, actions: Vec<Action>) -> Result<bool> {
        if !self.write(actions)? {
            return Ok(false);
        }
        for (change, rows) in &prepared.vectors {
            let change = &prepared.changes[*change];
            if let Some(vector) = &change.new {
                self.vectors.insert(&change.path, vector, rows);
            }
        }
        Ok(true)
    }

    /// Writes the actions as the next version and moves on to it; false if another program was faster.
    pub(super) fn write(&mut self, actions: Vec<Action>) -> Result<bool> {
        let text = print_actions(&actions).map_err(|error| Error::Internal(format!("commit as JSON: {error}")))?;
        if !log::write_commit(&self.dir, self.state.version + 1, &text)? {
            return Ok(false);
        }
        self.advance(actions)?;
        Ok(true)
    }

    /// Refuses to go on behind changes of schema, properties or protocol.
    pub(super) fn check_same_table(&self, foreign: &[(i64, Vec<Action>)]) -> Result<()> {
        let changes = |action: &Action| action.meta_data.is_some() || action.protocol.is_some();
        let Some((version, actions)) = foreign.iter().find(|(_, actions)| actions.iter().any(changes)) else {
            return Ok(());
        };
        let (name, operation) = (&self.name, operation(actions));
        Err(Error::External {
            code: "table-changed",
            what: format!("table `{name}` was changed by someone else: version {version}, {operation}"),
            help: "run again to go on with the changed table; keep other programs from writing this table".into(),
        })
    }

    /// Whether `commit` still means what it was planned to mean behind the commits of another program.
    fn check_foreign(&self, commit: &PreparedCommit, foreign: &[(i64, Vec<Action>)]) -> Result<()> {
        self.check_same_table(foreign)?;
        for (version, actions) in foreign {
            let adds = || actions.iter().filter_map(|action| action.add.as_ref());
            let removes = || actions.iter().filter_map(|action| action.remove.as_ref());
            let is_in_the_way = match &commit.removes {
                // Files that lose rows are compared with the table's state.
                RemoveSet::None | RemoveSet::All | RemoveSet::Read(_) => false,
                RemoveSet::Given(paths) => {
                    let paths: HashSet<&str> = paths.iter().map(String::as_str).collect();
                    let changes_data = adds().any(|add| add.data_change) || removes().any(|remove| remove.data_change);
                    removes().any(|remove| paths.contains(remove.path.as_str())) || (changes_data && !commit.rearranges)
                }
            };
            if is_in_the_way {
                return Err(Error::External {
                    code: CONFLICT,
                    what: format!(
                        "table `{}` was changed by someone else while a batch rewrote it: version {version}, {}",
                        self.name,
                        operation(actions)
                    ),
                    help: "the batch is planned again; keep other programs from writing this table".into(),
                });
            }
        }
        Ok(())
    }

    pub(super) fn check_txns(&self, txns: &[(String, i64)]) -> Result<()> {
        match txns.iter().find(|(app_id, batch)| self.txn(app_id).is_some_and(|last| last >= *batch)) {
            None => Ok(()),
            Some((app_id, batch)) => Err(Error::External {
                code: ALREADY_COMMITTED,
                what: format!(
                    "batch {batch} of `{app_id}` is in table `{}` already, which is at batch {}",
                    self.name,
                    self.txn(app_id).unwrap_or_default()
                ),
                help: "nothing was written; run again, the update resumes after that batch".into(),
            }),
        }
    }

    fn actions_of(&self, commit: &PreparedCommit) -> Result<Vec<Action>> {
        let now = now_ms();
        let state = &self.state;
        check_writable(&self.name, &state.protocol, &state.metadata)?;
        let mut removed: Vec<&Arc<Add>> = match &commit.removes {
            RemoveSet::None | RemoveSet::Read(_) => Vec::new(),
            RemoveSet::All => state.files.values().collect(),
            RemoveSet::Given(paths) => paths.iter().map(|path| self.current_file(path)).collect::<Result<_>>()?,
        };
        let mut changed = Vec::new();
        for change in &commit.changes {
            let file = self.current_file(&change.path)?;
            if file.deletion_vector != change.old {
                let path = &change.path;
                return Err(self.conflict(format!("rows of file `{path}` of table `{}` were deleted since", self.name)));
            }
            match &change.new {
                None => removed.push(file),
                Some(vector) => changed.push((file, change, vector)),
            }
        }
        let is_append_only =
            state.metadata.configuration.get("delta.appendOnly").is_some_and(|value| value.as_deref() == Some("true"));
        let takes_out = !removed.is_empty() || !changed.is_empty();
        if is_append_only && takes_out && !commit.rearranges {
            return Err(Error::user(
                "table-append-only",
                format!("table `{}` has the property `delta.appendOnly`, but rows would be removed", self.name),
                "remove the property, or let only append flows write the table",
            ));
        }
        let stays = removed.len() < state.files.len();
        let (metadata, protocol) = self.new_metadata(commit, stays)?;
        let is_blind = !takes_out && !commit.rearranges;
        let metrics = metrics(commit, removed.len());
        let mut actions =
            vec![info(&commit.operation, &commit.parameters, Some(commit.read_version), is_blind, metrics)];
        actions.extend(protocol.map(|protocol| Action { protocol: Some(protocol), ..Action::default() }));
        actions.extend(metadata.map(|metadata| Action { meta_data: Some(metadata), ..Action::default() }));
        let data_change = !commit.rearranges;
        let left = removed.into_iter().chain(changed.iter().map(|(file, ..)| *file));
        actions.extend(left.map(|file| Action { remove: Some(file.to_remove(data_change, now)), ..Action::default() }));
        actions.extend(changed.into_iter().map(|(file, change, vector)| {
            let add = Add {
                deletion_vector: Some(vector.clone()),
                stats: Some(stats::loosen(file.stats.as_deref(), change.rows)),
                data_change,
                ..file.as_ref().clone()
            };
            Action { add: Some(add), ..Action::default() }
        }));
        actions.extend(commit.adds.iter().map(|add| Action { add: Some(add.clone()), ..Action::default() }));
        actions.extend(txn_actions(&commit.txns, now));
        Ok(actions)
    }

    /// The metadata and protocol that the commit changes, if it does.
    fn new_metadata(&self, commit: &PreparedCommit, stays: bool) -> Result<(Option<Metadata>, Option<Protocol>)> {
        let mut metadata = self.state.metadata.clone();
        let mut schema = self.schema();
        if let Some(wanted_string) = &commit.schema_string {
            let wanted = schema::from_delta(wanted_string).map_err(|why| schema_error(&self.name, why))?;
            if stays {
                schema::check_growth(&schema, &wanted).map_err(|why| schema_error(&self.name, why))?;
            }
            if wanted != schema {
                metadata.schema_string.clone_from(wanted_string);
                schema = wanted;
            }
        }
        if let Some(partition_by) = &commit.metadata.partition_by
            && *partition_by != metadata.partition_columns
        {
            if stays {
                let why = "its partitioning can't change while it has files".to_owned();
                return Err(schema_error(&self.name, why));
            }
            metadata.partition_columns.clone_from(partition_by);
        }
        check_partitioning(&schema, &metadata.partition_columns).map_err(|why| schema_error(&self.name, why))?;
        if let Some(comment) = &commit.metadata.comment {
            metadata.description.clone_from(comment);
        }
        if let Some(properties) = &commit.metadata.properties {
            metadata.configuration = properties.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
        }
        let mut needed = schema::protocol_for(&schema);
        if commit.changes.iter().any(|change| change.new.is_some()) {
            metadata.configuration.insert(DELETION_VECTORS.into(), Some("true".into()));
            needed = merge_protocols(&needed, &deletion_vector_protocol()).unwrap_or(needed);
        }
        let protocol = merge_protocols(&self.state.protocol, &needed);
        Ok(((metadata != self.state.metadata).then_some(metadata), protocol))
    }
}

/// Writes version 0 of a table, with `actions` after its protocol and metadata.
pub(super) fn create(
    dir: PathBuf,
    metadata: Metadata,
    schema: &Schema,
    actions: Vec<Action>,
    operation: &str,
) -> Result<Table> {
    let log_folder = dir.join(log::LOG_FOLDER);
    fs::create_dir_all(&log_folder).map_err(|error| Error::io("create", &log_folder, error))?;
    let mut protocol = schema::protocol_for(schema);
    if metadata.configuration.get(DELETION_VECTORS).is_some_and(|value| value.as_deref() == Some("true")) {
        protocol = merge_protocols(&protocol, &deletion_vector_protocol()).unwrap_or(protocol);
    }
    let mut all = vec![
        info(operation, &BTreeMap::new(), None, true, Map::new()),
        Action { protocol: Some(protocol), ..Action::default() },
        Action { meta_data: Some(metadata), ..Action::default() },
    ];
    all.extend(actions);
    let text = print_actions(&all).map_err(|error| Error::Internal(format!("commit as JSON: {error}")))?;
    if !log::write_commit(&dir, 0, &text)? {
        return Err(Error::External {
            code: "table-exists",
            what: format!("there is a table at `{}` already", dir.display()),
            help: "run again to go on with that table".into(),
        });
    }
    let state = State::read(&dir, None)?.ok_or_else(|| Error::Internal("a table just created is gone".into()))?;
    Ok(Table::at(dir, state))
}

/// The metadata of a new table, and its schema as it will show it.
pub(super) fn new_metadata(
    name: &str,
    schema: &Schema,
    partition_by: Vec<String>,
    dir: &Path,
) -> Result<(Metadata, SchemaRef)> {
    let fit = || {
        let schema = schema::canonical(schema)?;
        if schema.fields().is_empty() {
            return Err(format!("a table at `{}` needs at least one column", dir.display()));
        }
        check_partitioning(&schema, &partition_by)?;
        Ok((schema::to_delta(&schema)?, schema))
    };
    let (schema_string, schema) = fit().map_err(|why| schema_error(name, why))?;
    let metadata = Metadata {
        id: uuid::Uuid::new_v4().to_string(),
        name: (!name.is_empty()).then(|| name.to_owned()),
        format: Format::default(),
        schema_string,
        partition_columns: partition_by,
        created_time: Some(now_ms()),
        ..Metadata::default()
    };
    Ok((metadata, schema))
}

fn check_partitioning(schema: &Schema, partition_by: &[String]) -> std::result::Result<(), String> {
    for name in partition_by {
        let field = schema.field_with_name(name).map_err(|_| format!("partition column `{name}` is not a column"))?;
        if field.data_type().is_nested() || field.data_type().is_binary() {
            return Err(format!("column `{name}` is {}, by which a table can't be partitioned", field.data_type()));
        }
    }
    if !schema.fields().is_empty() && partition_by.len() == schema.fields().len() {
        return Err("every column is a partition column; at least one must be in the files".into());
    }
    Ok(())
}

pub(super) fn schema_error(name: &str, why: String) -> Error {
    Error::user(
        "schema-change",
        format!("the schema doesn't fit table `{name}`: {why}"),
        "change the query, or refresh the table in full",
    )
}

/// Refuses to write tables that demand more of a writer than we do.
fn check_writable(name: &str, protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    // A feature may be listed without being used; those that need care when used are looked at below.
    const KNOWN: [&str; 8] = [
        "appendOnly",
        "invariants",
        "timestampNtz",
        "deletionVectors",
        "vacuumProtocolCheck",
        "v2Checkpoint",
        "changeDataFeed",
        "checkConstraints",
    ];
    let unknown = match (protocol.min_writer_version, &protocol.writer_features) {
        (0..=2, _) => None,
        (7, Some(features)) => features.iter().find(|feature| !KNOWN.contains(&feature.as_str())).cloned(),
        (version, _) => Some(format!("writer version {version}")),
    };
    let constraint = metadata.configuration.keys().find(|key| key.starts_with("delta.constraints."));
    let invariant = metadata.schema_string.contains("delta.invariants").then(|| "delta.invariants".to_owned());
    match unknown.or_else(|| constraint.cloned()).or(invariant) {
        None => Ok(()),
        Some(feature) => Err(Error::user(
            "table-feature-unsupported",
            format!("table `{name}` has the Delta feature `{feature}`, with which we can't write"),
            "drop the feature with the program that added it, or refresh the table in full",
        )),
    }
}

/// What programs must understand that read and write a table with rows deleted in place.
fn deletion_vector_protocol() -> Protocol {
    let feature = || Some(vec!["deletionVectors".to_owned()]);
    Protocol { min_reader_version: 3, min_writer_version: 7, reader_features: feature(), writer_features: feature() }
}

/// The protocol that satisfies both, or `None` if the present one does.
pub(super) fn merge_protocols(present: &Protocol, needed: &Protocol) -> Option<Protocol> {
    let features = |of: &Protocol, which: fn(&Protocol) -> &Option<Vec<String>>, implied: &[&str]| -> Vec<String> {
        which(of).clone().unwrap_or_else(|| implied.iter().map(|name| (*name).to_owned()).collect())
    };
    let is_covered = |which: fn(&Protocol) -> &Option<Vec<String>>| match which(needed) {
        None => true,
        Some(needed) => needed.iter().all(|feature| which(present).iter().flatten().any(|has| has == feature)),
    };
    if is_covered(|protocol| &protocol.reader_features) && is_covered(|protocol| &protocol.writer_features) {
        return None;
    }
    let union = |which: fn(&Protocol) -> &Option<Vec<String>>, implied: &[&str]| {
        let mut all = features(present, which, implied);
        all.extend(features(needed, which, &[]));
        all.sort();
        all.dedup();
        Some(all)
    };
    Some(Protocol {
        min_reader_version: 3,
        min_writer_version: 7,
        reader_features: union(|protocol| &protocol.reader_features, &[]),
        writer_features: union(|protocol| &protocol.writer_features, &["appendOnly", "invariants"]),
    })
}

pub(super) fn info(
    operation: &str,
    parameters: &BTreeMap<String, String>,
    read_version: Option<i64>,
    is_blind: bool,
    metrics: Map<String, Value>,
) -> Action {
    let mut parameters: Map<String, Value> =
        parameters.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
    if let Some(version) = read_version {
        parameters.insert("readVersion".into(), Value::from(version.to_string()));
    }
    Action {
        commit_info: Some(CommitInfo {
            timestamp: Some(now_ms()),
            operation: Some(operation.to_owned()),
            operation_parameters: parameters,
            operation_metrics: (!metrics.is_empty()).then_some(metrics),
            is_blind_append: Some(is_blind),
            engine_info: Some(concat!("flowbench/", env!("CARGO_PKG_VERSION")).to_owned()),
            ..CommitInfo::default()
        }),
        ..Action::default()
    }
}

/// Spark's names, as text like there.
fn metrics(commit: &PreparedCommit, removed: usize) -> Map<String, Value> {
    let sum = |of: fn(&Add) -> u64| commit.adds.iter().map(of).sum::<u64>().to_string();
    let vectors = commit.changes.iter().filter(|change| change.new.is_some()).count();
    let deleted = commit.changes.iter().map(|change| {
        let rows = |vector: &DeletionVector| vector.rows();
        change.new.as_ref().map_or(change.rows, rows).saturating_sub(change.old.as_ref().map_or(0, rows))
    });
    let mut metrics = json!({
        "numFiles": commit.adds.len().to_string(),
        "numRemovedFiles": removed.to_string(),
        "numOutputRows": sum(|add| add.rows().unwrap_or(0)),
        "numOutputBytes": sum(|add| u64::try_from(add.size).unwrap_or(0)),
    });
    if vectors > 0 {
        metrics["numDeletionVectorsUpdated"] = vectors.to_string().into();
        metrics["numDeletedRows"] = deleted.sum::<u64>().to_string().into();
    }
    match metrics {
        Value::Object(metrics) => metrics,
        _ => Map::new(),
    }
}

fn operation(actions: &[Action]) -> String {
    let operation = actions.iter().find_map(|action| action.commit_info.as_ref()?.operation.clone());
    operation.unwrap_or_else(|| "unknown operation".into())
}

pub(super) fn txn_actions(txns: &[(String, i64)], now: i64) -> impl Iterator<Item = Action> {
    txns.iter().map(move |(app_id, version)| Action {
        txn: Some(Txn { app_id: app_id.clone(), version: *version, last_updated: Some(now) }),
        ..Action::default()
    })
}
