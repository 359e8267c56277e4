//! Files as the ledger in state.db names them: a source whose path is relative to the workspace is known by
//! relative paths, so that a workspace that is moved or copied with its data goes on where it stopped.

use std::path::Path;

use pipeline::read_files::ReadFiles;

use super::files::FileEntry;
use crate::open::absolute;
use crate::state::SourceFile;

/// How the paths of one source stand in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LedgerPaths {
    root: std::path::PathBuf,
    /// Folder with a slash at its end → what stands for it: the workspace's own, then those above it. Empty if
    /// the source's path is absolute.
    prefixes: Vec<(String, String)>,
}

impl LedgerPaths {
    /// The paths of a source of the workspace in `root`, an absolute folder.
    pub fn new(spec: &ReadFiles, root: &Path) -> LedgerPaths {
        LedgerPaths::of_path(&spec.path, root)
    }

    fn of_path(path: &str, root: &Path) -> LedgerPaths {
        let is_absolute = Path::new(path).is_absolute() || path.starts_with("file:");
        let mut prefixes = Vec::new();
        for (ups, folder) in root.ancestors().enumerate().filter(|_| !is_absolute) {
            let folder = folder.to_string_lossy();
            prefixes.push((format!("{}/", folder.trim_end_matches('/')), "../".repeat(ups)));
        }
        LedgerPaths { root: root.to_path_buf(), prefixes }
    }

    /// Listed files as the ledger keeps them.
    pub fn write(&self, files: &[FileEntry]) -> Vec<SourceFile> {
        let path = |path: &str| {
            let relative =
                self.prefixes.iter().find_map(|(folder, up)| Some(format!("{up}{}", path.strip_prefix(folder)?)));
            relative.unwrap_or_else(|| path.to_string())
        };
        let entry = |file: &FileEntry| SourceFile {
            path: path(&file.path),
            size_bytes: file.size as i64,
            modified_us: file.modified_us,
        };
        files.iter().map(entry).collect()
    }

    /// A file of the ledger as sources take it.
    pub fn read(&self, file: &SourceFile) -> FileEntry {
        FileEntry { path: place(&self.root, &file.path), size: file.size_bytes as u64, modified_us: file.modified_us }
    }
}

/// Where a path of the ledger lies.
pub(crate) fn place(root: &Path, path: &str) -> String {
    match Path::new(path).is_absolute() {
        true => path.to_string(),
        false => absolute(root, path).to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_sources_are_known_by_relative_paths() {
        let root = Path::new("/home/ann/shop");
        let cases = [
            ("data/*", "/home/ann/shop/data/a.json", "data/a.json"),
            ("../samples", "/home/ann/samples/b.json", "../samples/b.json"),
            ("../../../srv", "/srv/c.json", "../../../srv/c.json"),
            ("/home/ann/shop/data", "/home/ann/shop/data/a.json", "/home/ann/shop/data/a.json"),
        ];
        for (path, file, expected) in cases {
            let paths = LedgerPaths::of_path(path, root);
            let entry = FileEntry { path: file.to_string(), size: 1, modified_us: 2 };
            let written = paths.write(std::slice::from_ref(&entry));
            assert_eq!(written[0].path, expected);
            assert_eq!(paths.read(&written[0]), entry);
        }
    }
}
