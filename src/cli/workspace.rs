//! Which workspace is meant, opened.

use std::path::{Path, PathBuf};

use engine::Engine;

use super::Context;
use super::exit::Trouble;

/// Finds and opens the workspace; its files may have errors.
pub fn open(context: &Context) -> Result<Engine, Trouble> {
    let root = folder(context.folder.as_deref(), context.global.workspace.as_deref())?;
    Ok(Engine::open(&root, &context.global.overrides)?)
}

/// Starts the threads that the workspace's limits allow.
pub fn runtime(engine: &Engine) -> Result<tokio::runtime::Runtime, Trouble> {
    engine::serve::runtime(Some(engine)).map_err(|source| Trouble::Io { action: "start threads".to_string(), source })
}

/// The folder that the arguments name, else the nearest upwards that holds a flowbench.toml.
pub fn folder(positional: Option<&Path>, option: Option<&Path>) -> Result<PathBuf, Trouble> {
    let named = match (positional, option) {
        (Some(one), Some(other)) if !is_same(one, other) => {
            return Err(Trouble::usage(
                format!("two workspaces are named: `{}` and -C `{}`", one.display(), other.display()),
                "name one of them",
            ));
        }
        (Some(path), _) | (None, Some(path)) => path,
        (None, None) => {
            let here = Path::new(".");
            // Without one, opening says what is missing.
            return Ok(engine::open::find_workspace(here).unwrap_or_else(|| absolute(here)));
        }
    };
    // `-C my_pipeline/flowbench.toml` is understood too.
    match named.file_name().is_some_and(|name| name == "flowbench.toml") && named.is_file() {
        true => Ok(absolute(named.parent().unwrap_or(Path::new(".")))),
        false => Ok(absolute(named)),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => absolute(one) == absolute(other),
    }
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf())
}
