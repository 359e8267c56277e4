//! The edits that the analysis offers, applied round after round until nothing more can be mended, and saved.
//!
//! Nothing is written before the last round, and then all or nothing as far as a file system allows: a file that
//! somebody edited meanwhile keeps every file as it is; each file is replaced in one step.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use pipeline::fix::apply_edits;

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Rounds at most: an edit may uncover what another one mends, but not for ever.
const ROUNDS_MAX: usize = 10;

/// A file as it is and as it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedFile {
    /// Relative to the workspace folder.
    pub path: String,
    pub before: String,
    pub after: String,
    /// How many edits lie between.
    pub edits: usize,
}

impl Engine {
    /// Finds what the edits of all diagnostics make of the files; writes nothing.
    ///
    /// # Errors
    /// As [`Engine::analyse`].
    pub async fn fixes(&self) -> Result<Vec<FixedFile>> {
        let mut engine = self.clone();
        let mut edits = vec![0; self.workspace().files.len()];
        for _ in 0..ROUNDS_MAX {
            let analysis = engine.analyse().await?;
            let edited = apply_edits(&engine.workspace().files, &analysis.diagnostics);
            if edited.is_empty() {
                break;
            }
            let mut workspace = engine.workspace().clone();
            for file in edited {
                edits[file.file.0] += file.edits;
                workspace.files[file.file.0].text = file.text;
            }
            engine = engine.with_workspace(workspace);
        }
        let before = self.workspace().files.iter();
        let fixed = before.zip(&engine.workspace().files).zip(edits).filter(|((before, after), _)| before != after);
        let fixed = fixed.map(|((before, after), edits)| FixedFile {
            path: before.path.clone(),
            before: before.text.clone(),
            after: after.text.clone(),
            edits,
        });
        Ok(fixed.collect())
    }

    /// Writes what [`Engine::fixes`] found.
    ///
    /// # Errors
    /// `edited-meanwhile` if a file is not what it was, and then nothing is written; disk.
    pub fn save(&self, fixed: &[FixedFile]) -> Result<()> {
        let mut writes = Vec::new();
        for file in fixed {
            // A link stays a link.
            let path = self.root().join(&file.path);
            let path = path.canonicalize().map_err(|e| Error::io("find", &path, e))?;
            let bytes = fs::read(&path).map_err(|e| Error::io("read", &path, e))?;
            let (mark, text) = match bytes.strip_prefix(BYTE_ORDER_MARK) {
                Some(text) => (BYTE_ORDER_MARK, text),
                None => (&[][..], bytes.as_slice()),
            };
            if text != file.before.as_bytes() {
                return Err(Error::External {
                    code: "edited-meanwhile",
                    what: format!("`{}` was edited meanwhile; no file was changed", file.path),
                    help: "try again".to_string(),
                });
            }
            writes.push((path, [mark, file.after.as_bytes()].concat()));
        }
        writes.iter().try_for_each(|(path, bytes)| replace(path, bytes))
    }
}

/// What some editors begin UTF-8 files with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Puts new content into the place of a file in one step; its permissions stay.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let permissions = fs::metadata(path).map_err(|e| Error::io("look at", path, e))?.permissions();
    let written = beside(path);
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&written)?;
        file.write_all(bytes)?;
        file.set_permissions(permissions)?;
        file.sync_all()?;
        fs::rename(&written, path)
    };
    write().map_err(|e| {
        // What could not be written is of no use; that it can't be removed either changes nothing.
        let _ = fs::remove_file(&written);
        Error::io("write", path, e)
    })
}

/// A hidden name in the same folder, which nobody takes for a definition file.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRONG: &str = "CREATE STREAMING TABLE raw AS SELECT * FROM read_files('data', format => 'json', schema => 'id \
                         BIGINT');\nCREATE MATERIALIZED VIEW counts AS SELECT coun(idd) AS n FROM rw;\n";

    fn workspace() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("transformations")).unwrap();
        fs::write(folder.path().join("flowbench.toml"), "[pipeline]\nname = \"w\"\n").unwrap();
        let path = folder.path().join("transformations/a.sql");
        fs::write(&path, format!("\u{feff}{WRONG}")).unwrap();
        (folder, path)
    }

    #[tokio::test]
    async fn edits_are_applied_in_rounds_and_saved_with_mode_and_mark() {
        let (folder, path) = workspace();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        }
        let engine = Engine::open(folder.path(), &[]).unwrap();
        let fixed = engine.fixes().await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("\u{feff}{WRONG}"), "nothing is written yet");
        engine.save(&fixed).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("\u{feff}CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files("), "{text}");
        assert!(text.ends_with("SELECT count(id) AS n FROM raw;\n"), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        }
        assert!(!engine.reload().unwrap().analyse().await.unwrap().has_errors());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[tokio::test]
    async fn a_file_that_was_edited_meanwhile_keeps_every_file_as_it_is() {
        let (folder, path) = workspace();
        let other = folder.path().join("transformations/b.sql");
        fs::write(&other, "CREATE MATERIALIZED VIEW v AS SELECT 1 AS x FROM coutns;\n").unwrap();
        let engine = Engine::open(folder.path(), &[]).unwrap();
        let fixed = engine.fixes().await.unwrap();
        assert_eq!(fixed.len(), 2);
        fs::write(&other, "-- mine\n").unwrap();
        assert_eq!(engine.save(&fixed).map_err(|error| error.code()), Err("edited-meanwhile"));
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("\u{feff}{WRONG}"));
        assert_eq!(fs::read_to_string(&other).unwrap(), "-- mine\n");
    }
}
