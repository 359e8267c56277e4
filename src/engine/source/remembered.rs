//! The columns of sources, remembered from save to save: a source is listed and inferred when it is met first, and
//! again when somebody asks for it, never because a query was edited.
//!
//! Not here: updates, which read sources as they are when they start (`crate::listings`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use pipeline::read_files::ReadFiles;
use tokio::sync::OnceCell;

use super::external;
use super::files::SourceSchema;
use crate::error::{Error, Result};
use crate::listings::{Listings, source_key};
use crate::table::Table;

/// What is known of the sources of a workspace. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    listings: Arc<Listings>,
    files: Memo<Option<SourceSchema>>,
    tables: Memo<SchemaRef>,
}

type Memo<T> = Arc<Mutex<HashMap<String, Arc<OnceCell<Found<T>>>>>>;

/// What a look at a source gave; a failure is remembered too.
type Found<T> = std::result::Result<T, Failure>;

/// Why a source can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub message: String,
    pub help: Option<String>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { message: error.to_string(), help: error.help() }
    }
}

impl Sources {
    /// Nothing is known yet but what `listings` has.
    pub fn over(listings: Arc<Listings>) -> Sources {
        Sources { listings, files: Memo::default(), tables: Memo::default() }
    }

    /// Nothing is known yet; relative paths start at `root`.
    pub fn new(root: &Path) -> Sources {
        Sources::over(Arc::new(Listings::new(root.to_path_buf())))
    }

    /// The columns of files; None if there is no file to tell and no `schema`.
    pub async fn files(&self, spec: &ReadFiles) -> Found<Option<SourceSchema>> {
        let cell = cell(&self.files, source_key(spec));
        let found = cell.get_or_init(|| async {
            let listed = self.listings.list(spec).await?;
            Ok(self.listings.schema(spec, &listed.files).await?)
        });
        found.await.clone()
    }

    /// The columns of the Delta table in a folder.
    pub async fn table(&self, folder: PathBuf, open: impl FnOnce() -> Result<Table> + Send) -> Found<SchemaRef> {
        let cell = cell(&self.tables, folder.to_string_lossy().into_owned());
        cell.get_or_init(|| async { Ok(open()?.schema()) }).await.clone()
    }

    /// True if `now` has found nothing but what was known: the same columns, the same files.
    pub fn is_same(&self, now: &Sources) -> bool {
        fn is_known<T: PartialEq>(before: &Memo<T>, now: &Memo<T>) -> bool {
            let before = before.lock().unwrap_or_else(PoisonError::into_inner);
            let now = now.lock().unwrap_or_else(PoisonError::into_inner);
            now.iter().all(|(key, cell)| before.get(key).is_some_and(|known| known.get() == cell.get()))
        }
        is_known(&self.files, &now.files) && is_known(&self.tables, &now.tables) && self.listings.is_same(&now.listings)
    }
}

fn cell<T>(memo: &Memo<T>, key: String) -> Arc<OnceCell<Found<T>>> {
    memo.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone()
}

/// Reads an external table's columns; None if it has no file to tell.
pub(crate) async fn external_schema(
    sources: &Sources,
    table: &pipeline::settings::ExternalTable,
    settings: &pipeline::settings::Settings,
    root: &Path,
) -> Found<Option<SchemaRef>> {
    match external::files(table, settings) {
        Some(spec) => Ok(sources.files(&spec).await?.map(|schema| super::files::table_schema(&schema, false))),
        None => {
            let open = || external::open_delta(table, settings, root);
            sources.table(external::path(table, settings, root), open).await.map(Some)
        }
    }
}
