//! The engine of one workspace: what every front end holds. Opening reads files and nothing else.
//!
//! The parts of its work are in their own files: `analysis` (what do the queries give), `update` (run),
//! `status`, `preview`, `reset`, `doctor`. Each adds its methods to [`Engine`].

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::prelude::SessionContext;
use pipeline::definition::DatasetKind;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{Dataset, Graph};
use pipeline::load::{Pipeline, load_again};
use pipeline::name::DatasetName;
use pipeline::parse::ParsedFiles;
use pipeline::report::FunctionRow;
use pipeline::settings::Settings;
use pipeline::workspace::Workspace;

use crate::auto_cdc::known_specs::KnownSpecs;
use crate::error::{Error, Result};
use crate::functions::{self, FunctionKind};
use crate::open::{absolute, open_workspace};
use crate::plans::Plans;
use crate::recorded::{Facts, KnownFacts};
use crate::scd::KnownClosedKeys;
use crate::session::{SessionOptions, session};
use crate::source::remembered::Sources;
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
    overrides: Vec<(String, String)>,
    pipeline: Arc<Pipeline>,
    parsed: ParsedFiles,
    /// Made at first use: printing a status needs no query engine.
    session: OnceLock<(SessionOptions, SessionContext)>,
    tables: Tables,
    plans: Plans,
    facts: KnownFacts,
    specs: KnownSpecs,
    closed_keys: KnownClosedKeys,
    /// Replaced as a whole when sources are looked at again.
    sources: Arc<Mutex<Sources>>,
}

impl Engine {
    /// Reads the files of the workspace folder `root`; `overrides` are `--set key=value`.
    ///
    /// # Errors
    /// No flowbench.toml, a file that can't be read. What is wrong *in* the files is in [`Engine::diagnostics`].
    pub fn open(root: &Path, overrides: &[(String, String)]) -> Result<Engine> {
        let root = std::path::absolute(root).map_err(|e| Error::io("find", root, e))?;
        let workspace = open_workspace(&root, overrides)?;
        let (pipeline, parsed) = load_again(workspace, &ParsedFiles::default());
        let storage = absolute(&root, &pipeline.settings.storage);
        let sources = Arc::new(Mutex::new(Sources::new(&root)));
        let inner = Inner {
            root,
            storage,
            overrides: overrides.to_vec(),
            pipeline: Arc::new(pipeline),
            parsed,
            session: OnceLock::new(),
            tables: Tables::default(),
            plans: Plans::default(),
            facts: KnownFacts::default(),
            specs: KnownSpecs::default(),
            closed_keys: KnownClosedKeys::default(),
            sources,
        };
        Ok(Engine { inner: Arc::new(inner) })
    }

    /// Reads the files again. The engine returned shares with this one what doesn't change with them (open tables,
    /// known sources, the query engine) and parses and plans only what was edited; this one stays as it is.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn reload(&self) -> Result<Engine> {
        Ok(self.with_workspace(open_workspace(&self.inner.root, &self.inner.overrides)?))
    }

    /// As [`Engine::reload`] with these texts instead of those on disk.
    pub(crate) fn with_workspace(&self, workspace: Workspace) -> Engine {
        let before = &self.inner;
        let (pipeline, parsed) = load_again(workspace, &before.parsed);
        let inner = Inner {
            root: before.root.clone(),
            storage: absolute(&before.root, &pipeline.settings.storage),
            overrides: before.overrides.clone(),
            pipeline: Arc::new(pipeline),
            parsed,
            session: OnceLock::new(),
            tables: before.tables.clone(),
            plans: before.plans.clone(),
            facts: before.facts.clone(),
            specs: before.specs.clone(),
            closed_keys: before.closed_keys.clone(),
            sources: before.sources.clone(),
        };
        let engine = Engine { inner: Arc::new(inner) };
        if let Some((options, session)) = before.session.get()
            && *options == engine.session_options(engine.spill_folder())
        {
            // Nobody else has seen the new engine yet.
            let _ = engine.inner.session.set((options.clone(), session.clone()));
        }
        engine
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
        if let Some((_, session)) = self.inner.session.get() {
            return Ok(session.clone());
        }
        let made = |spill_dir: Option<PathBuf>| {
            if let Some(folder) = &spill_dir {
                std::fs::create_dir_all(folder).map_err(|e| Error::io("create folder", folder, e))?;
            }
            let options = self.session_options(spill_dir);
            session(&options).map(|session| (options, session))
        };
        let spill_dir = self.spill_folder();
        let is_final = spill_dir.is_some();
        let made = match made(spill_dir) {
            // Whoever only reads can do so on a disk that takes no file: it spills to the system's folder.
            Err(_) if self.settings().limits.spill.is_none() => made(None)?,
            made => made?,
        };
        Ok(match is_final {
            true => self.inner.session.get_or_init(|| made).1.clone(),
            false => made.1,
        })
    }

    /// What the query engine may use.
    pub(crate) fn session_options(&self, spill_dir: Option<PathBuf>) -> SessionOptions {
        let limits = &self.settings().limits;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        SessionOptions {
            threads: limits.threads.unwrap_or(cores),
            memory_bytes: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
            spill_dir,
            time_zone: self.settings().time_zone.value.clone(),
        }
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

    /// Queries planned for their columns.
    pub(crate) fn plans(&self) -> &Plans {
        &self.inner.plans
    }

    /// What state.db has on record.
    pub(crate) fn facts(&self) -> Result<Arc<Facts>> {
        self.inner.facts.get(self.storage(), self.state_for_reading()?.as_ref())
    }

    /// What targets of AUTO CDC were built with.
    pub(crate) fn specs(&self) -> &KnownSpecs {
        &self.inner.specs
    }

    /// What was found of seeds whose last rows are closed.
    pub(crate) fn closed_keys(&self) -> &KnownClosedKeys {
        &self.inner.closed_keys
    }

    /// What is known of the sources; a view of this moment, which later looks add to.
    pub(crate) fn sources(&self) -> Sources {
        self.inner.sources.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes `sources` for what is known from now on.
    pub(crate) fn remember_sources(&self, sources: Sources) {
        *self.inner.sources.lock().unwrap_or_else(PoisonError::into_inner) = sources;
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
