//! The engine of one workspace: what every front end holds. Opening reads files and nothing else.
//!
//! The parts of its work are in their own files: `analysis` (what do the queries give), `update` (run),
//! `status`, `preview`, `reset`, `doctor`. Each adds its methods to [`Engine`].

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use datafusion::prelude::SessionContext;
use pipeline::definition::DatasetKind;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{Dataset, Graph};
use pipeline::load::{Pipeline, load};
use pipeline::name::DatasetName;
use pipeline::report::FunctionRow;
use pipeline::settings::Settings;
use pipeline::workspace::Workspace;

use crate::error::{Error, Result};
use crate::functions::{self, FunctionKind};
use crate::open::{absolute, open_workspace};
use crate::session::{SessionOptions, session};
use crate::state::{Access, State};
use crate::table::{SharedTable, Tables};

/// A workspace that can be analysed, run and looked at. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    root: PathBuf,
    storage: PathBuf,
    pipeline: Arc<Pipeline>,
    /// Made at first use: printing a status needs no query engine.
    session: OnceLock<SessionContext>,
    tables: Tables,
}

impl Engine {
    /// Reads the files of the workspace folder `root`; `overrides` are `--set key=value`.
    ///
    /// # Errors
    /// No flowbench.toml, a file that can't be read. What is wrong *in* the files is in [`Engine::diagnostics`].
    pub fn open(root: &Path, overrides: &[(String, String)]) -> Result<Engine> {
        let root = std::path::absolute(root).map_err(|e| Error::io("find", root, e))?;
        let workspace = open_workspace(&root, overrides)?;
        let pipeline = Arc::new(load(workspace));
        let storage = absolute(&root, &pipeline.settings.storage);
        let inner = Inner { root, storage, pipeline, session: OnceLock::new(), tables: Tables::default() };
        Ok(Engine { inner: Arc::new(inner) })
    }

    /// Reads the workspace's files again.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn reload(&self) -> Result<Engine> {
        Engine::open(self.root(), &self.workspace().overrides)
    }

    /// The workspace folder, absolute.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// The folder of tables and state, absolute.
    pub fn storage(&self) -> &Path {
        &self.inner.storage
    }

    /// The files as read.
    pub fn workspace(&self) -> &Workspace {
        &self.inner.pipeline.workspace
    }

    /// flowbench.toml.
    pub fn settings(&self) -> &Settings {
        &self.inner.pipeline.settings
    }

    /// Files, settings and graph as one value.
    pub fn pipeline(&self) -> Arc<Pipeline> {
        self.inner.pipeline.clone()
    }

    /// Datasets and flows.
    pub fn graph(&self) -> &Graph {
        &self.inner.pipeline.graph
    }

    /// What is wrong with the files, found without reading any data.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.inner.pipeline.diagnostics
    }

    /// The functions that SQL can call, those whose name holds `pattern` (case does not matter).
    pub fn functions(&self, pattern: Option<&str>) -> Vec<FunctionRow> {
        list_functions(pattern)
    }

    /// Err with all diagnostics if the files have errors.
    pub(crate) fn check_files(&self) -> Result<()> {
        match self.inner.pipeline.has_errors() {
            true => Err(Error::Invalid { diagnostics: self.diagnostics().to_vec() }),
            false => Ok(()),
        }
    }

    /// The query engine, with this workspace's limits.
    pub(crate) fn session(&self) -> Result<SessionContext> {
        if let Some(session) = self.inner.session.get() {
            return Ok(session.clone());
        }
        let limits = &self.settings().limits;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let made = |spill_dir: Option<&PathBuf>| {
            if let Some(folder) = spill_dir {
                std::fs::create_dir_all(folder).map_err(|e| Error::io("create folder", folder, e))?;
            }
            session(&SessionOptions {
                threads: limits.threads.unwrap_or(cores),
                memory_bytes: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
                spill_dir: spill_dir.cloned(),
                time_zone: self.settings().time_zone.value.clone(),
            })
        };
        let spill_dir = self.spill_folder();
        let is_final = spill_dir.is_some();
        let made = match made(spill_dir.as_ref()) {
            // Whoever only reads can do so on a disk that takes no file: it spills to the system's folder.
            Err(_) if limits.spill.is_none() => made(None)?,
            made => made?,
        };
        Ok(match is_final {
            true => self.inner.session.get_or_init(|| made).clone(),
            false => made,
        })
    }

    /// Where queries spill to; None: the storage folder doesn't exist and nothing may be written yet.
    pub(crate) fn spill_folder(&self) -> Option<PathBuf> {
        match &self.settings().limits.spill {
            Some(folder) => Some(absolute(self.root(), folder)),
            None => self.storage().exists().then(|| self.storage().join("spill")),
        }
    }

    /// The folder of a dataset's table.
    pub(crate) fn table_folder(&self, name: &DatasetName) -> PathBuf {
        self.storage().join(table_path(name))
    }

    /// The stored table of a dataset; None if there is none (yet).
    pub(crate) fn table(&self, dataset: &Dataset) -> Result<Option<SharedTable>> {
        match dataset.kind() {
            DatasetKind::StreamingTable | DatasetKind::MaterializedView => {
                self.tables().get(&self.table_folder(&dataset.name))
            }
            DatasetKind::View | DatasetKind::TemporaryView => Ok(None),
        }
    }

    /// All tables that this process has open.
    pub(crate) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    /// state.db for reading; None before the first update.
    pub(crate) fn state_for_reading(&self) -> Result<Option<State>> {
        match State::exists(self.storage()) {
            true => State::open(self.storage(), Access::ReadOnly).map(Some),
            false => Ok(None),
        }
    }
}

/// The folder of a table below the storage folder: `tables/<schema>/<table>`, in lower case, so that two
/// spellings of a name are one table on every file system.
pub(crate) fn table_path(name: &DatasetName) -> String {
    // Other characters are written as in URLs, so that two names are never one folder, and none leads out.
    let part = |text: &str| -> String {
        let mut part = String::new();
        for c in text.to_lowercase().chars() {
            match c.is_alphanumeric() || c == '_' || c == '-' {
                true => part.push(c),
                false => part.extend(c.to_string().bytes().map(|byte| format!("%{byte:02X}"))),
            }
        }
        part
    };
    match &name.catalog {
        Some(catalog) => format!("tables/{}/{}/{}", part(catalog), part(&name.schema), part(&name.table)),
        None => format!("tables/{}/{}", part(&name.schema), part(&name.table)),
    }
}

/// The functions that SQL can call, those whose name or alias holds `pattern`; no workspace is needed for it.
pub fn list_functions(pattern: Option<&str>) -> Vec<FunctionRow> {
    let pattern = pattern.unwrap_or_default().to_lowercase();
    functions::list()
        .into_iter()
        .filter(|info| std::iter::once(&info.name).chain(&info.aliases).any(|name| name.contains(&pattern)))
        .map(|info| FunctionRow {
            kind: match info.kind {
                FunctionKind::Scalar => "scalar",
                FunctionKind::Aggregate => "aggregate",
                FunctionKind::Window => "window",
                FunctionKind::Table => "table",
            }
            .to_string(),
            description: match info.signature.is_empty() {
                true => info.description,
                false => format!("{}  {}", info.signature, info.description),
            },
            name: info.name,
            aliases: info.aliases,
        })
        .collect()
}
