//! A workspace folder → its files as text. Reading only: opening never writes and never runs anything.
//!
//! Not here: what the text means (`pipeline::load`).

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use pipeline::parse::settings;
use pipeline::text::{FileId, SourceFile};
use pipeline::workspace::{UnreadableFile, Workspace};

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
    let workspace = Workspace { files, overrides: overrides.to_vec(), ..Workspace::default() };
    let (settings, _) = settings(&workspace);
    absolute(root, &settings.storage)
}

/// Reads flowbench.toml and the definition files that its `sources` match.
///
/// # Errors
/// No flowbench.toml in `root`; a folder that can't be read. Files that can't are in [`Workspace::unreadable`].
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
    let mut workspace = Workspace { folder_name, overrides: overrides.to_vec(), ..Workspace::default() };
    add(&mut workspace, root, SETTINGS_FILE.to_string());
    // The globs stand in the file just read. What is wrong with it is reported when the whole is loaded.
    let (settings, _) = settings(&workspace);
    let mut paths = Vec::new();
    let storage = root.join(&settings.storage);
    collect(root, &storage, &mut Vec::new(), &mut paths)?;
    let globs = globs(&settings.sources)?;
    paths.retain(|path| globs.is_match(path));
    paths.sort();
    for path in paths {
        add(&mut workspace, root, path);
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

/// Adds a file. One that is there and can't be read is added without its text: it hides nothing of the others.
fn add(workspace: &mut Workspace, root: &Path, path: String) {
    let file = FileId(workspace.files.len());
    let mut unreadable = |code: &'static str, why: &str, help: &str| {
        let (message, help) = (format!("`{path}` {why}"), help.to_string());
        workspace.unreadable.push(UnreadableFile { file, code, message, help });
        String::new()
    };
    let text = match std::fs::read(root.join(&path)) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
                unreadable("not-utf-8", &format!("is not UTF-8 text: see line {line}"), "save it as UTF-8")
            }
        },
        Err(error) => unreadable(
            "unreadable-file",
            &format!("can't be read: {error}"),
            "make it readable, or take it out of `sources` in flowbench.toml",
        ),
    };
    // Some editors begin a file with a byte order mark, which means nothing in UTF-8.
    let text = text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_string);
    workspace.files.push(SourceFile { path, text });
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
