//! What file sources hold, listed and inferred once an update: every flow of an update sees external files as
//! they were when it started, and flows that read the same share the work.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pipeline::read_files::ReadFiles;
use pipeline::text::{FileId, Span};
use tokio::sync::OnceCell;

use crate::content_key::{ContentKey, content_key};
use crate::error::{Error, Result};
use crate::source::files::{self, FileEntry, SourceSchema};

/// Listings and inferred schemas, by what the source's options say.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    root: PathBuf,
    listed: Cells<Listed>,
    schemas: Cells<Option<SourceSchema>>,
}

type Cells<T> = Mutex<HashMap<ContentKey, Arc<OnceCell<T>>>>;

/// One source's files.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub files: Arc<[FileEntry]>,
    /// The folder before the first glob doesn't exist.
    pub is_missing: bool,
    /// Files that options of the source kept out.
    pub filtered: usize,
    pub duration_ms: u64,
}

impl Listings {
    /// Nothing is listed yet; relative paths start at `root`.
    pub fn new(root: PathBuf) -> Listings {
        Listings { root, ..Listings::default() }
    }

    /// The files of a source, listed at the first call.
    pub async fn list(&self, spec: &ReadFiles) -> Result<Listed> {
        let cell = cell(&self.listed, spec);
        let listed = cell
            .get_or_try_init(|| async {
                let (spec, root) = (spec.clone(), self.root.clone());
                let started = Instant::now();
                let listing = blocking(move || files::list(&spec, &root)).await?;
                let duration_ms = started.elapsed().as_millis() as u64;
                let (is_missing, filtered) = (listing.is_missing, listing.filtered);
                Ok::<_, Error>(Listed { files: listing.files.into(), is_missing, filtered, duration_ms })
            })
            .await?;
        Ok(listed.clone())
    }

    /// The files of a source, if it was listed.
    pub fn listed(&self, spec: &ReadFiles) -> Option<Listed> {
        cell(&self.listed, spec).get().cloned()
    }

    /// True if both list the same files of the sources that both have listed.
    pub fn is_same(&self, other: &Listings) -> bool {
        let mine = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = other.listed.lock().unwrap_or_else(PoisonError::into_inner);
        mine.iter().all(|(key, cell)| match (cell.get(), theirs.get(key).and_then(|cell| cell.get())) {
            (Some(mine), Some(theirs)) => mine.files == theirs.files && mine.is_missing == theirs.is_missing,
            _ => true,
        })
    }

    /// The columns of a source, inferred at the first call; None if there is no file to tell and no `schema`.
    pub async fn schema(&self, spec: &ReadFiles, listing: &Arc<[FileEntry]>) -> Result<Option<SourceSchema>> {
        let cell = cell(&self.schemas, spec);
        let schema = cell
            .get_or_try_init(|| async {
                if listing.is_empty() && spec.schema.is_none() {
                    return Ok(None);
                }
                let (spec, listing) = (spec.clone(), listing.clone());
                blocking(move || files::infer(&spec, &listing)).await.map(Some)
            })
            .await?;
        Ok(schema.clone())
    }
}

/// What makes two reads of files the same source.
pub(crate) fn source_key(spec: &ReadFiles) -> ContentKey {
    // Where the path was written doesn't matter for what it means.
    let nowhere = Span { file: FileId(0), start: 0, end: 0 };
    content_key(&ReadFiles { path_span: nowhere, ..spec.clone() })
}

fn cell<T>(cells: &Cells<T>, spec: &ReadFiles) -> Arc<OnceCell<T>> {
    let key = source_key(spec);
    cells.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone()
}

/// Runs what reads many files off the threads that answer.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Error::Internal(format!("a task failed: {e}")))?
}
