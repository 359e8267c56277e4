//! A workspace as values: the texts of its files. The engine reads them from disk (`engine/open.rs`).

use crate::text::{FileId, SourceFile};

/// The files of a workspace; `files[0]` is flowbench.toml, the rest is sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Name of the workspace folder, the pipeline's name if flowbench.toml gives none.
    pub folder_name: String,
    pub files: Vec<SourceFile>,
    /// Files that are there and can't be read; their texts are empty.
    pub unreadable: Vec<UnreadableFile>,
    /// `--set key=value`, in the order given.
    pub overrides: Vec<(String, String)>,
}

/// A file of the workspace that is there and can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableFile {
    pub file: FileId,
    /// Kebab-case word, as in diagnostics.
    pub code: &'static str,
    pub message: String,
    pub help: String,
}
