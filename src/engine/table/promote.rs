//! Swapping in a whole new generation of a table, which was written as a table of its own in a folder below.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Map;

use super::action::{Action, Add, Metadata, encode_path};
use super::commit::{create, info, merge_protocols, txn_actions};
use super::writer::now_ms;
use super::{Table, log};
use crate::error::{Error, Result};

/// The operation of a commit that swaps in a new generation.
pub const FULL_REFRESH: &str = "FULL REFRESH";

impl Table {
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
            self.check_same_table(&foreign)?;
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
            actions.extend(promoted_adds(&shadow, &folder));
            actions.extend(txn_actions(&txns, now));
            if self.write(actions)? {
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
        let mut actions: Vec<Action> = promoted_adds(&shadow, &folder).collect();
        actions.extend(txn_actions(txns, now));
        let table = create(dir, metadata, &shadow.state.schema, actions, operation)?;
        remove_shadow_log(&shadow.dir)?;
        Ok(table)
    }
}

/// The shadow's files as this table's, in the order in which they came, which their times go on telling.
fn promoted_adds<'a>(shadow: &'a Table, folder: &'a str) -> impl Iterator<Item = Action> + 'a {
    let mut files: Vec<_> = shadow.state.files.values().collect();
    files.sort_by(|a, b| a.by_age(b));
    files.into_iter().map(move |file| {
        let path = format!("{}/{}", encode_path(folder), file.path);
        let deletion_vector = file.deletion_vector.as_ref().map(|vector| vector.below(folder));
        let add = Add { path, data_change: true, deletion_vector, ..file.as_ref().clone() };
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
