//! `[[source]]` tables of flowbench.toml: a Delta table, or files read as `read_files` would.

use std::path::{Path, PathBuf};

use pipeline::query::{FilesCall, OptionValue, ReadOption};
use pipeline::read_files::{ReadFiles, ReadMode, read_files};
use pipeline::settings::{ExternalFormat, ExternalTable, Settings};
use pipeline::text::Spanned;

use crate::error::{Error, Result};
use crate::open::absolute;
use crate::table::Table;

/// The folder or file of an external table.
pub fn path(table: &ExternalTable, settings: &Settings, root: &Path) -> PathBuf {
    absolute(root, &pipeline::path::map_path(&table.path.value, &settings.paths))
}

/// The table's `read_files` options; None for Delta. What is wrong with them was reported when
/// flowbench.toml was read.
pub fn files(table: &ExternalTable, settings: &Settings) -> Option<ReadFiles> {
    let format = match table.format {
        ExternalFormat::Delta => return None,
        ExternalFormat::Parquet => "parquet",
        ExternalFormat::Csv => "csv",
        ExternalFormat::Json => "json",
        ExternalFormat::Avro => "avro",
    };
    let option = |name: &str, value: &str, span| ReadOption {
        name: Spanned::new(name.to_string(), span),
        value: Spanned::new(OptionValue::Text(value.to_string()), span),
    };
    let mut options = vec![option("format", format, table.span)];
    options.extend(table.options.iter().map(|(name, value)| option(&name.value, value, name.span)));
    read_files(&FilesCall { path: table.path.clone(), options }, ReadMode::Batch, settings).0
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
