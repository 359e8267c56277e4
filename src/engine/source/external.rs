//! `[[source]]` tables of flowbench.toml: a Delta table, or files read as `read_files` would.

use std::path::{Path, PathBuf};

use pipeline::read_files::{ReadFiles, external_files};
use pipeline::settings::{ExternalTable, Settings};

use crate::error::{Error, Result};
use crate::open::absolute;
use crate::table::Table;

/// The folder or file of an external table.
pub fn path(table: &ExternalTable, settings: &Settings, root: &Path) -> PathBuf {
    absolute(root, &pipeline::path::map_path(&table.path.value, &settings.paths))
}

/// The table's `read_files` options; None for Delta. What is wrong with them is reported with flowbench.toml.
pub fn files(table: &ExternalTable, settings: &Settings) -> Option<ReadFiles> {
    external_files(table, settings).0
}

/// Opens an external Delta table.
pub fn open_delta(table: &ExternalTable, settings: &Settings, root: &Path) -> Result<Table> {
    let folder = path(table, settings, root);
    Table::open(&folder)?.ok_or_else(|| {
        Error::user(
            "source-missing",
            format!("source `{}`: there is no Delta table at `{}`", table.name.value, folder.display()),
            "correct its path in flowbench.toml, or bring the table back",
        )
    })
}
