//! A workspace folder → its files as text. Reading only: opening never writes and never runs anything.
//!
//! Not here: what the text means (`pipeline::load`).

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use pipeline::parse::settings;
use pipeline::text::SourceFile;
use pipeline::workspace::Workspace;

use crate::error::{Error, Result};

/// The file that makes a folder a workspace.
pub const SETTINGS_FILE: &str = "flowbench.toml";

/// Returns the nearest folder, from `start` upwards, that holds a flowbench.toml.
pub fn find_workspace(start: &Path) -> Option<PathBuf> {
    let start = std::path::absolute(start).ok()?;
    start.ancestors().find(|folder| folder.join(SETTINGS_FILE).is_file()).map(Path::to_path_buf)
}

/// Names the files that look like definitions, from the folder alone and whatever flowbench.toml says: relative
/// to `root`, sorted. What can't be listed is left out.
pub fn definition_paths(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    // Opening tells what is wrong with the folder.
    let _ = collect(root, &root.join(".flowbench"), &mut Vec::new(), &mut paths);
    if root.join(SETTINGS_FILE).is_file() {
        paths.push(SETTINGS_FILE.to_string());
    }
    paths.sort();
    paths
}

/// The storage folder of a workspace, from its flowbench.toml alone.
pub fn storage_folder(root: &Path, overrides: &[(String, String)]) -> PathBuf {
    let text = std::fs::read_to_string(root.join(SETTINGS_FILE)).unwrap_or_default();
    let files = vec![SourceFile { path: SETTINGS_FILE.to_string(), text }];
    let (settings, _) = settings(&Workspace { folder_name: String::new(), files, overrides: overrides.to_vec() });
    absolute(root, &settings.storage)
}

/// Reads flowbench.toml and the definition files that its `sources` match.
///
/// # Errors
/// No flowbench.toml in `root`; a file that can't be read or isn't UTF-8.
pub fn open_workspace(root: &Path, overrides: &[(String, String)]) -> Result<Workspace> {
    let settings_path = root.join(SETTINGS_FILE);
    if !settings_path.is_file() {
        return Err(Error::user(
            "no-workspace",
            format!("`{}` is no workspace: it has no {SETTINGS_FILE}", root.display()),
            "go to a workspace folder, pass its path, or make one with `flowbench init`",
        ));
    }
    let folder_name =
        root.file_name().map_or_else(|| "pipeline".to_string(), |name| name.to_string_lossy().into_owned());
    let mut workspace = Workspace {
        folder_name,
        files: vec![SourceFile { path: SETTINGS_FILE.to_string(), text: read(&settings_path)? }],
        overrides: overrides.to_vec(),
    };
    // The globs stand in the file just read. What is wrong with it is reported when the whole is loaded.
    let (settings, _) = settings(&workspace);
    let mut paths = Vec::new();
    let storage = root.join(&settings.storage);
    collect(root, &storage, &mut Vec::new(), &mut paths)?;
    let globs = globs(&settings.sources)?;
    paths.retain(|path| globs.is_match(path));
    paths.sort();
    for path in paths {
        let text = read(&root.join(&path))?;
        workspace.files.push(SourceFile { path, text });
    }
    Ok(workspace)
}

/// `.sql` and `.toml` files below `folder` as paths relative to the workspace, with `/`.
fn collect(folder: &Path, storage: &Path, parts: &mut Vec<String>, found: &mut Vec<String>) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io("read folder", folder, e))?;
    for entry in entries {
        let entry = entry.map_err(|e| Error::io("read folder", folder, e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if name.starts_with('.') || path == storage {
            continue;
        }
        parts.push(name);
        // A link to a folder is not followed: it may lead back up.
        match entry.file_type().map_err(|e| Error::io("read", &path, e))? {
            kind if kind.is_dir() => collect(&path, storage, parts, found)?,
            _ if is_definition(&path) && path.is_file() => found.push(parts.join("/")),
            _ => {}
        }
        parts.pop();
    }
    Ok(())
}

fn is_definition(path: &Path) -> bool {
    let is_settings = path.file_name().is_some_and(|name| name == SETTINGS_FILE);
    !is_settings && path.extension().is_some_and(|extension| extension == "sql" || extension == "toml")
}

fn globs(sources: &[String]) -> Result<GlobSet> {
    let mut globs = GlobSetBuilder::new();
    for source in sources {
        let glob = GlobBuilder::new(source.trim_start_matches("./")).literal_separator(true).build();
        globs.add(glob.map_err(|e| {
            Error::user("bad-glob", format!("`sources` in flowbench.toml: {e}"), "globs look like `transformations/**`")
        })?);
    }
    globs.build().map_err(|e| Error::user("bad-glob", e.to_string(), "use fewer globs in `sources`"))
}

fn read(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidData => {
            Error::user("not-utf-8", format!("`{}` is not UTF-8 text", path.display()), "save it as UTF-8")
        }
        _ => Error::io("read", path, e),
    })?;
    // Some editors begin a file with a byte order mark, which means nothing in UTF-8.
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_string))
}

/// Takes `.` and `..` out of a path without looking at the disk; a relative path starts at `root`.
pub fn absolute(root: &Path, path: &str) -> PathBuf {
    let mut out = PathBuf::new();
    for part in root.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
