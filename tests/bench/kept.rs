//! Input that is generated once and kept for later runs.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a folder, unless it holds the same already; what `write` says of it lies beside it and is written last.
pub fn once<T: Serialize + DeserializeOwned>(
    folder: &Path,
    what: &str,
    write: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let note = folder.with_extension("totals.json");
    let known = fs::read(&note).ok().and_then(|text| serde_json::from_slice::<(String, T)>(&text).ok());
    if let Some((_, totals)) = known.filter(|(known, _)| known == what) {
        return Ok(totals);
    }
    println!("writing {what} to {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let totals = write()?;
    fs::write(note, serde_json::to_vec(&(what, &totals))?)?;
    Ok(totals)
}
