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
use crate::content_key::{ContentKey, content_key};
use crate::error::{Error, Result};
use crate::listings::{Listed, Listings, source_key};
use crate::table::Table;

/// What is known of the sources of a workspace. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    listings: Arc<Listings>,
    files: Memo<Option<SourceSchema>>,
    tables: Memo<SchemaRef>,
    counts: Arc<Mutex<Counts>>,
}

/// What warnings count.
#[derive(Debug, Default)]
struct Counts {
    /// Files that two sources share.
    shared: HashMap<(ContentKey, ContentKey), usize>,
    /// Files that a flow's `modifiedAfter` skips since it was raised to this time.
    skipped: HashMap<(String, i64), usize>,
}

type Memo<T> = Arc<Mutex<HashMap<ContentKey, Arc<OnceCell<Found<T>>>>>>;

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
        Sources { listings, files: Memo::default(), tables: Memo::default(), counts: Arc::default() }
    }

    /// Nothing is known yet; relative paths start at `root`.
    pub fn new(root: &Path) -> Sources {
        Sources::over(Arc::new(Listings::new(root.to_path_buf())))
    }

    /// The files of sources, as they were listed.
    pub fn listings(&self) -> &Listings {
        &self.listings
    }

    /// The files of a source, if it was listed.
    pub fn listed(&self, spec: &ReadFiles) -> Option<Listed> {
        self.listings.listed(spec)
    }

    /// How many files both sources have, as they were listed.
    pub fn shared_files(&self, one: &ReadFiles, other: &ReadFiles) -> usize {
        let key = (source_key(one), source_key(other));
        if let Some(known) = self.counts().shared.get(&key) {
            return *known;
        }
        let (Some(one), Some(other)) = (self.listed(one), self.listed(other)) else { return 0 };
        // Both are sorted by path.
        let (mut shared, mut others) = (0, other.files.iter().peekable());
        for file in one.files.iter() {
            while others.next_if(|other| other.path < file.path).is_some() {}
            shared += usize::from(others.peek().is_some_and(|other| other.path == file.path));
        }
        self.counts().shared.insert(key, shared);
        shared
    }

    /// How many unread files a flow skips since its `modifiedAfter` was raised to `after_us`, if that was counted.
    pub fn skipped(&self, flow: &str, after_us: i64) -> Option<usize> {
        self.counts().skipped.get(&(flow.to_string(), after_us)).copied()
    }

    /// Remembers what [`Sources::skipped`] gives.
    pub fn set_skipped(&self, flow: &str, after_us: i64, count: usize) {
        self.counts().skipped.insert((flow.to_string(), after_us), count);
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
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
        let cell = cell(&self.tables, content_key(&folder));
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

fn cell<T>(memo: &Memo<T>, key: ContentKey) -> Arc<OnceCell<Found<T>>> {
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
