//! The `_delta_log` folder: which versions it holds, reading a commit or a checkpoint, and writing a commit
//! so that exactly one program gets each version.
//!
//! Not here: what the actions mean (`state.rs`), and writing checkpoints (`maintenance.rs`).

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::action::{Action, parse_actions};
use crate::error::{Error, Result};

/// How many files are made durable at the same time.
const SYNCED_AT_ONCE: usize = 8;

/// The folder inside a table's folder.
pub const LOG_FOLDER: &str = "_delta_log";

/// What a log folder holds, by version.
#[derive(Debug, Default)]
pub struct Listing {
    pub commits: BTreeMap<i64, PathBuf>,
    /// Complete checkpoints, each with its files.
    pub checkpoints: BTreeMap<i64, Vec<PathBuf>>,
}

impl Listing {
    /// The newest version there is.
    pub fn newest(&self) -> Option<i64> {
        let commit = self.commits.last_key_value().map(|(version, _)| *version);
        let checkpoint = self.checkpoints.last_key_value().map(|(version, _)| *version);
        commit.max(checkpoint)
    }
}

/// The path of a version's commit.
pub fn commit_path(table_dir: &Path, version: i64) -> PathBuf {
    table_dir.join(LOG_FOLDER).join(format!("{version:020}.json"))
}

/// Lists a table's log; `None` if there is no log folder or it is empty.
pub fn list(table_dir: &Path) -> Result<Option<Listing>> {
    let folder = table_dir.join(LOG_FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(Error::io("list", folder, error)),
    };
    let mut listing = Listing::default();
    let mut parts: BTreeMap<(i64, usize), Vec<PathBuf>> = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::io("list", &folder, error))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let words: Vec<&str> = name.split('.').collect();
        let Some(version) = words.first().filter(|word| word.len() == 20).and_then(|word| word.parse().ok()) else {
            continue;
        };
        match words[1..] {
            ["json"] => drop(listing.commits.insert(version, path)),
            // A classic checkpoint, or a V2 one under a name with a UUID, which leads to its sidecars.
            ["checkpoint", "parquet"] | ["checkpoint", _, "parquet" | "json"] => {
                listing.checkpoints.insert(version, vec![path]);
            }
            ["checkpoint", _, of, "parquet"] => {
                parts.entry((version, of.parse().unwrap_or(0))).or_default().push(path);
            }
            _ => {}
        }
    }
    for ((version, of), files) in parts {
        if files.len() == of {
            listing.checkpoints.entry(version).or_insert(files);
        }
    }
    Ok(listing.newest().is_some().then_some(listing))
}

/// Reads the actions of one version; `None` if it doesn't exist (yet, or any more).
pub fn read_commit(table_dir: &Path, version: i64) -> Result<Option<Vec<Action>>> {
    let path = commit_path(table_dir, version);
    match fs::read(&path) {
        // Every commit says something; an entry without a word is what a power failure leaves of one.
        Ok(text) => match parse_actions(&text).map_err(|why| corrupted(&path, why))? {
            actions if actions.is_empty() => Err(corrupted(&path, "it is empty".to_string())),
            actions => Ok(Some(actions)),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

/// Reads the actions that a checkpoint holds, its sidecars included.
pub fn read_checkpoint(files: &[PathBuf]) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    for file in files {
        actions.extend(read_checkpoint_file(file)?);
    }
    let mut sidecars = Vec::new();
    for file in files {
        let named = actions.iter().filter_map(|action| action.sidecar.as_ref());
        sidecars.extend(named.map(|sidecar| file.with_file_name("_sidecars").join(&sidecar.path)));
    }
    for sidecar in sidecars {
        actions.extend(read_checkpoint_file(&sidecar)?);
    }
    Ok(actions)
}

fn read_checkpoint_file(path: &Path) -> Result<Vec<Action>> {
    if path.extension().is_some_and(|extension| extension == "json") {
        let text = fs::read(path).map_err(|error| Error::io("read", path, error))?;
        return parse_actions(&text).map_err(|why| corrupted(path, why));
    }
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    // The columns of a checkpoint are named like the keys of a commit, so that its rows written as JSON lines
    // are a commit's lines. The parsed copies of statistics are left out: they hold nothing new.
    let lines = || -> std::result::Result<Vec<u8>, arrow::error::ArrowError> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let schema = builder.parquet_schema();
        let wanted = (0..schema.num_columns()).filter(|leaf| {
            let path = schema.column(*leaf).path().string();
            !path.contains("_parsed.")
                && ["add.", "remove.", "txn.", "metaData.", "protocol.", "sidecar."]
                    .iter()
                    .any(|prefix| path.starts_with(prefix))
        });
        let mask = ProjectionMask::leaves(schema, wanted);
        let mut writer = arrow::json::LineDelimitedWriter::new(Vec::new());
        for batch in builder.with_projection(mask).build()? {
            writer.write(&batch?)?;
        }
        writer.finish()?;
        Ok(writer.into_inner())
    };
    let lines = lines().map_err(|error| corrupted(path, error.to_string()))?;
    parse_actions(&lines).map_err(|why| corrupted(path, why))
}

/// Writes a commit if nobody has written that version yet, and returns whether it did.
///
/// The commit appears whole or not at all: it is written beside the log's entries and then linked to its
/// name, which fails if the name is taken. When it returns, a power failure doesn't undo it.
pub fn write_commit(table_dir: &Path, version: i64, text: &[u8]) -> Result<bool> {
    let path = commit_path(table_dir, version);
    let draft = path.with_file_name(format!("_commit_{}.json.tmp", uuid::Uuid::new_v4()));
    let result = (|| {
        let mut file = File::create_new(&draft)?;
        file.write_all(text)?;
        file.sync_all()?;
        match fs::hard_link(&draft, &path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    })();
    // The draft has served; if it can't be removed, a vacuum's sweep of the log will.
    let _ = fs::remove_file(&draft);
    let written = result.map_err(|error| Error::io("write", &path, error))?;
    if written {
        sync_folder(&table_dir.join(LOG_FOLDER))?;
    }
    Ok(written)
}

/// Makes files of a table and their names durable. The files at the same time, which a disk takes for about one.
pub fn sync_files(table_dir: &Path, files: &[PathBuf]) -> Result<()> {
    let sync = |path: &PathBuf| {
        File::open(path).and_then(|file| file.sync_all()).map_err(|error| Error::io("sync", path, error))
    };
    for some in files.chunks(SYNCED_AT_ONCE) {
        std::thread::scope(|scope| {
            let (first, others) = some.split_first().expect("a chunk has a file");
            let others: Vec<_> = others.iter().map(|path| scope.spawn(move || sync(path))).collect();
            let synced = sync(first);
            let failed = |_| Err(Error::Internal("a thread that syncs a file panicked".into()));
            others.into_iter().map(|other| other.join().unwrap_or_else(failed)).fold(synced, Result::and)
        })?;
    }
    sync_folders(table_dir, files.iter().map(PathBuf::as_path))
}

/// Makes the names of files durable, in all folders up to the table's.
pub fn sync_folders<'a>(table_dir: &Path, files: impl Iterator<Item = &'a Path>) -> Result<()> {
    let above = |file: &'a Path| file.ancestors().skip(1).take_while(|folder| folder.starts_with(table_dir));
    files.flat_map(above).collect::<HashSet<_>>().into_iter().try_for_each(sync_folder)
}

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| Error::io("sync", folder, error))
}

/// The log can't be understood.
pub fn corrupted(path: &Path, why: String) -> Error {
    Error::External {
        code: "table-log-corrupted",
        what: format!("the table's log entry `{}` cannot be read: {why}", path.display()),
        help: "restore the file from a copy, or see what `flowbench doctor --repair` can do; a table that can be \
               rebuilt from its sources is built anew after its folder was removed: flowbench run --full-refresh"
            .into(),
    }
}

/// Removes the newest entry if it is empty: its commit never became readable, and is made again by whoever
/// planned it. Returns the version; None if the newest entry is not empty.
pub fn remove_empty_tail(table_dir: &Path) -> Result<Option<i64>> {
    let Some(newest) = list(table_dir)?.and_then(|listing| listing.newest()) else { return Ok(None) };
    let path = commit_path(table_dir, newest);
    let text = fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
    if newest == 0 || !text.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
    Ok(Some(newest))
}

/// Tells one file from another of the same name: inode and time of change, or time and size without inodes.
pub type FileIdentity = (u64, Option<std::time::SystemTime>, u64);

/// The identity of a version's commit, `None` if there is no such file.
pub fn identity(table_dir: &Path, version: i64) -> Option<FileIdentity> {
    let found = fs::metadata(commit_path(table_dir, version)).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let inode = 0;
    Some((inode, found.modified().ok(), found.len()))
}
