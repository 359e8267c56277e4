//! A workspace as values: the texts of its files. The engine reads them from disk (`engine/open.rs`).

use crate::text::SourceFile;

/// The files of a workspace; `files[0]` is flowbench.toml, the rest is sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Name of the workspace folder, the pipeline's name if flowbench.toml gives none.
    pub folder_name: String,
    pub files: Vec<SourceFile>,
    /// `--set key=value`, in the order given.
    pub overrides: Vec<(String, String)>,
}
