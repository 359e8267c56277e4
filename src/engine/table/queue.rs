//! One writer a table: everything in this process that commits to a table takes its turn here, because two
//! flows that add a column would otherwise conflict.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Table;
use crate::error::{Error, Result};

/// A table that several flows commit to, one after another.
pub type SharedTable = Arc<tokio::sync::Mutex<Table>>;

/// The open tables of the process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    open: Arc<Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<Table>>>>>,
}

impl Tables {
    /// The table in a folder, opened the first time it is asked for; `None` if there is none.
    pub fn get(&self, dir: &Path) -> Result<Option<SharedTable>> {
        let dir = std::path::absolute(dir).map_err(|error| Error::io("find", dir, error))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = open.get(&dir) {
            return Ok(Some(Arc::clone(table)));
        }
        let Some(table) = Table::open(&dir)? else { return Ok(None) };
        let table = Arc::new(tokio::sync::Mutex::new(table));
        open.insert(dir, Arc::clone(&table));
        Ok(Some(table))
    }

    /// The table in a folder, made by `create` if there is none.
    pub fn get_or_create(&self, dir: &Path, create: impl FnOnce(&Path) -> Result<Table>) -> Result<SharedTable> {
        if let Some(table) = self.get(dir)? {
            return Ok(table);
        }
        match create(dir) {
            Ok(_) => {}
            // Another flow of ours created it between the two looks.
            Err(error) if error.code() == "table-exists" => {}
            Err(error) => return Err(error),
        }
        self.get(dir)?.ok_or_else(|| Error::Internal(format!("table at `{}` is gone", dir.display())))
    }

    /// Forgets a table whose folder is about to be deleted.
    pub fn forget(&self, dir: &Path) {
        if let Ok(dir) = std::path::absolute(dir) {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&dir);
        }
    }
}
