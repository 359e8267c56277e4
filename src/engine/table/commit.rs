//! Putting data files into a table and taking them out, as one log entry: appends, overwrites, schema growth,
//! and `promote`, which swaps in a whole new generation.
//!
//! Our own flows commit one after another (`queue.rs`), so that a conflict means another program. What it did
//! decides: an append goes on behind it; anything it could have invalidated is an error.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use serde_json::{Map, Value, json};

use super::action::{Action, Add, CommitInfo, Metadata, Protocol, Txn, encode_path, print_actions};
use super::state::State;
use super::writer::now_ms;
use super::{DataFile, Format, Table, log, schema};
use crate::error::{Error, Result};

/// The code of the error that says: another program changed what this commit builds on; plan it again.
pub const CONFLICT: &str = "table-conflict";
/// The code of the error that says: this batch is in the table already.
pub const ALREADY_COMMITTED: &str = "batch-already-committed";

/// Which files leave the table.
#[derive(Debug, Clone, Default)]
pub enum RemoveSet {
    #[default]
    None,
    /// All that are there when the commit happens.
    All,
    /// These, by `AddedFile::path`.
    Given(Vec<String>),
}

/// Changes of the metadata besides the schema; `None` leaves a thing as it is.
#[derive(Debug, Clone, Default)]
pub struct MetadataChange {
    /// `Some(None)` takes the comment away.
    pub comment: Option<Option<String>>,
    /// All properties, replacing the present ones.
    pub properties: Option<BTreeMap<String, String>>,
    /// Only with `RemoveSet::All` or in a table without files: the folders of files that stay would be wrong.
    pub partition_by: Option<Vec<String>>,
}

/// What one commit does.
#[derive(Debug, Default)]
pub struct Commit {
    pub adds: Vec<DataFile>,
    pub removes: RemoveSet,
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
    /// * `table-conflict` – another program took files out that this commit takes out, or added files while
    ///   this one replaces given files
    /// * `table-changed` – another program changed schema, properties or protocol
    /// * `schema-change` – the new schema doesn't fit the files that stay
    ///
    /// The files in `adds` are deleted if the commit fails before anything could have been written.
    pub async fn commit(&mut self, commit: Commit) -> Result<i64> {
        let mut read_version = self.state.version;
        loop {
            let foreign = self.read_new_commits()?;
            self.check_foreign(&commit, &foreign)?;
            self.check_txns(&commit.txns)?;
            let actions = self.actions_of(&commit, read_version)?;
            if self.write(actions, &commit.adds)? {
                break;
            }
            read_version = self.state.version;
        }
        self.checkpoint_if_due();
        Ok(self.state.version)
    }

    /// Swaps in a whole new generation, written as a table of its own in a folder below this one's: one commit
    /// removes all present files, adds the shadow's, and takes over its schema, partitioning, comment and
    /// properties. The shadow is no table of its own afterwards.
    ///
    /// # Errors
    /// As `commit`; `Internal` if the shadow isn't in a folder directly below this table's.
    pub async fn promote(&mut self, shadow: Table, txns: Vec<(String, i64)>, operation: &str) -> Result<i64> {
        let folder = shadow_folder(&self.dir, &shadow)?;
        let mut read_version = self.state.version;
        loop {
            let foreign = self.read_new_commits()?;
            self.check_foreign(&Commit { removes: RemoveSet::All, ..Commit::default() }, &foreign)?;
            self.check_txns(&txns)?;
            let now = now_ms();
            let metadata = Metadata {
                id: self.state.metadata.id.clone(),
                name: self.state.metadata.name.clone(),
                created_time: self.state.metadata.created_time,
                ..shadow.state.metadata.clone()
            };
            let protocol = merge_protocols(&self.state.protocol, &shadow.state.protocol);
            let removes = self.state.files.values().map(|file| file.to_remove(true, now));
            let mut actions = vec![info(operation, &BTreeMap::new(), Some(read_version), false, Map::new())];
            actions.extend(protocol.map(|protocol| Action { protocol: Some(protocol), ..Action::default() }));
            actions.push(Action { meta_data: Some(metadata), ..Action::default() });
            actions.extend(removes.map(|remove| Action { remove: Some(remove), ..Action::default() }));
            actions.extend(promoted_adds(&shadow, &folder, now));
            actions.extend(txn_actions(&txns, now));
            if self.write(actions, &[])? {
                break;
            }
            read_version = self.state.version;
        }
        remove_shadow_log(&shadow.dir)?;
        self.checkpoint_if_due();
        Ok(self.state.version)
    }

    /// `promote` for a table that doesn't exist yet: creates it in `dir` with the shadow's files.
    pub fn create_from(
        dir: &Path,
        name: &str,
        shadow: Table,
        txns: &[(String, i64)],
        operation: &str,
    ) -> Result<Table> {
        let dir = std::path::absolute(dir).map_err(|error| Error::io("find", dir, error))?;
        let folder = shadow_folder(&dir, &shadow)?;
        let now = now_ms();
        let metadata = Metadata {
            id: uuid::Uuid::new_v4().to_string(),
            name: Some(name.to_owned()),
            ..shadow.state.metadata.clone()
        };
        let mut actions: Vec<Action> = promoted_adds(&shadow, &folder, now).collect();
        actions.extend(txn_actions(txns, now));
        let table = create(dir, metadata, &shadow.state.schema, actions, operation)?;
        remove_shadow_log(&shadow.dir)?;
        Ok(table)
    }

    /// Writes the actions as the next version and moves on to it; false if another program was faster.
    fn write(&mut self, actions: Vec<Action>, adds: &[DataFile]) -> Result<bool> {
        let text = print_actions(&actions).map_err(|error| Error::Internal(format!("commit as JSON: {error}")))?;
        // If writing fails, nobody knows whether the entry is there; files that it may name must stay.
        adds.iter().for_each(|file| file.set_keep(true));
        if !log::write_commit(&self.dir, self.state.version + 1, &text, self.sync)? {
            adds.iter().for_each(|file| file.set_keep(false));
            return Ok(false);
        }
        self.advance(actions)?;
        Ok(true)
    }

    /// Whether `commit` still means what it was planned to mean behind the commits of another program.
    fn check_foreign(&self, commit: &Commit, foreign: &[(i64, Vec<Action>)]) -> Result<()> {
        for (version, actions) in foreign {
            let operation = actions.iter().find_map(|action| action.commit_info.as_ref()?.operation.clone());
            let operation = operation.unwrap_or_else(|| "unknown operation".into());
            if actions.iter().any(|action| action.meta_data.is_some() || action.protocol.is_some()) {
                return Err(Error::External {
                    code: "table-changed",
                    what: format!("table `{}` was changed by someone else: version {version}, {operation}", self.name),
                    help: "run again to go on with the changed table; keep other programs from writing this table"
                        .into(),
                });
            }
            let adds = || actions.iter().filter_map(|action| action.add.as_ref());
            let removes = || actions.iter().filter_map(|action| action.remove.as_ref());
            let is_in_the_way = match &commit.removes {
                RemoveSet::None | RemoveSet::All => false,
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
                        "table `{}` was changed by someone else while a batch rewrote it: version {version}, {operation}",
                        self.name
                    ),
                    help: "the batch is planned again; keep other programs from writing this table".into(),
                });
            }
        }
        Ok(())
    }

    fn check_txns(&self, txns: &[(String, i64)]) -> Result<()> {
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

    fn actions_of(&self, commit: &Commit, read_version: i64) -> Result<Vec<Action>> {
        let now = now_ms();
        let state = &self.state;
        check_writable(&self.name, &state.protocol, &state.metadata)?;
        let removed: Vec<&Arc<Add>> = match &commit.removes {
            RemoveSet::None => Vec::new(),
            RemoveSet::All => state.files.values().collect(),
            RemoveSet::Given(paths) => {
                let file = |path: &String| {
                    state.files.get(path).ok_or_else(|| Error::External {
                        code: CONFLICT,
                        what: format!("file `{path}` is no longer in table `{}`", self.name),
                        help: "the batch is planned again".into(),
                    })
                };
                paths.iter().map(file).collect::<Result<_>>()?
            }
        };
        let is_append_only =
            state.metadata.configuration.get("delta.appendOnly").is_some_and(|value| value.as_deref() == Some("true"));
        if is_append_only && !removed.is_empty() && !commit.rearranges {
            return Err(Error::user(
                "table-append-only",
                format!("table `{}` has the property `delta.appendOnly`, but rows would be removed", self.name),
                "remove the property, or let only append flows write the table",
            ));
        }
        let stays = removed.len() < state.files.len();
        let (metadata, protocol) = self.new_metadata(commit, stays)?;
        let metrics = metrics(&commit.adds, removed.len());
        let is_blind = removed.is_empty() && !commit.rearranges;
        let mut actions = vec![info(&commit.operation, &commit.parameters, Some(read_version), is_blind, metrics)];
        actions.extend(protocol.map(|protocol| Action { protocol: Some(protocol), ..Action::default() }));
        actions.extend(metadata.map(|metadata| Action { meta_data: Some(metadata), ..Action::default() }));
        let data_change = !commit.rearranges;
        actions.extend(
            removed
                .into_iter()
                .map(|file| Action { remove: Some(file.to_remove(data_change, now)), ..Action::default() }),
        );
        actions
            .extend(commit.adds.iter().map(|file| Action { add: Some(file.to_add(data_change)), ..Action::default() }));
        actions.extend(txn_actions(&commit.txns, now));
        Ok(actions)
    }

    /// The metadata and protocol that the commit changes, if it does.
    fn new_metadata(&self, commit: &Commit, stays: bool) -> Result<(Option<Metadata>, Option<Protocol>)> {
        let mut metadata = self.state.metadata.clone();
        let mut schema = self.schema();
        if let Some(wanted) = &commit.new_schema {
            let wanted = schema::canonical(wanted).map_err(|why| schema_error(&self.name, why))?;
            if stays {
                schema::check_growth(&schema, &wanted).map_err(|why| schema_error(&self.name, why))?;
            }
            if wanted != schema {
                metadata.schema_string = schema::to_delta(&wanted).map_err(|why| schema_error(&self.name, why))?;
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
        let protocol = merge_protocols(&self.state.protocol, &schema::protocol_for(&schema));
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
    let mut all = vec![
        info(operation, &BTreeMap::new(), None, true, Map::new()),
        Action { protocol: Some(schema::protocol_for(schema)), ..Action::default() },
        Action { meta_data: Some(metadata), ..Action::default() },
    ];
    all.extend(actions);
    let text = print_actions(&all).map_err(|error| Error::Internal(format!("commit as JSON: {error}")))?;
    if !log::write_commit(&dir, 0, &text, true)? {
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

fn schema_error(name: &str, why: String) -> Error {
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

/// The protocol that satisfies both, or `None` if the present one does.
fn merge_protocols(present: &Protocol, needed: &Protocol) -> Option<Protocol> {
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

fn info(
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
fn metrics(adds: &[DataFile], removed: usize) -> Map<String, Value> {
    let sum = |of: fn(&DataFile) -> u64| adds.iter().map(of).sum::<u64>().to_string();
    let metrics = json!({
        "numFiles": adds.len().to_string(),
        "numRemovedFiles": removed.to_string(),
        "numOutputRows": sum(|file| file.rows),
        "numOutputBytes": sum(|file| file.size),
    });
    match metrics {
        Value::Object(metrics) => metrics,
        _ => Map::new(),
    }
}

fn txn_actions(txns: &[(String, i64)], now: i64) -> impl Iterator<Item = Action> {
    txns.iter().map(move |(app_id, version)| Action {
        txn: Some(Txn { app_id: app_id.clone(), version: *version, last_updated: Some(now) }),
        ..Action::default()
    })
}

fn promoted_adds<'a>(shadow: &'a Table, folder: &'a str, now: i64) -> impl Iterator<Item = Action> + 'a {
    shadow.state.files.values().map(move |file| {
        let path = format!("{}/{}", encode_path(folder), file.path);
        let add = Add { path, data_change: true, modification_time: now, ..file.as_ref().clone() };
        Action { add: Some(add), ..Action::default() }
    })
}

/// The name of the shadow's folder inside the table's.
fn shadow_folder(table_dir: &Path, shadow: &Table) -> Result<String> {
    let below = shadow.dir.strip_prefix(table_dir).ok().and_then(Path::to_str);
    match below {
        Some(folder) if !folder.is_empty() && !folder.contains('/') => Ok(folder.to_owned()),
        _ => Err(Error::Internal(format!("`{}` is not a generation of this table", shadow.dir.display()))),
    }
}

/// From here on the files are the table's; a vacuum would take a folder with a log for another table.
fn remove_shadow_log(shadow_dir: &Path) -> Result<()> {
    let folder = shadow_dir.join(log::LOG_FOLDER);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", folder, error)),
        _ => Ok(()),
    }
}
