//! The local record of a workspace, `<storage>/state.db`: flows and their checkpoints, planned and committed
//! micro-batches, the file ledger, datasets, updates, events. Every decision is one transaction.
//!
//! - `schema`: the tables, their versions and migrations; people read the file with `sqlite3`
//! - `dataset`: datasets, full refresh (shadow generations), fingerprints of materialized views
//! - `flow`: flows, their checkpoint generations, once flows that are done, rename, reset, import
//! - `source`: a checkpoint's sources (schema, offset) and the ledger of files
//! - `batch`: plan, mark committed, discard; what `pipeline::resume` needs to know
//! - `update`: updates and the state of each flow in them
//! - `event`: the event log
//!
//! Time and ids come in as arguments. Times are microseconds since 1970 UTC, in columns that end in `_us`;
//! the `readable_…` views show them as ISO text.
//!
//! Not here: the writer's lock (`lock`), what the Delta tables say, and what follows from comparing the two
//! (`pipeline::resume`).

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::error::{Error, Result};

mod schema;
mod dataset;
mod flow;
mod source;
mod batch;
mod update;
mod event;

pub use batch::{BatchState, Committed, MicroBatch, PlanBatch, PlannedInput};
pub use dataset::{Dataset, FullRefresh, FullRefreshPhase, NewDataset};
pub use event::{Event, EventFilter, EventLevel, NewEvent};
pub use flow::{Completion, Flow, FlowKind, ImportCheckpoint, NewFlow};
pub use source::{KnownBy, NewSource, Source, SourceFile};
pub use update::{FlowProgress, NewUpdate, RunState, Update, UpdateFlow};

/// The file's name in the storage folder.
pub const FILE_NAME: &str = "state.db";

/// What changes with every write to state.db, its write-ahead log included: times and sizes of the files.
pub type Stamp = [Option<(std::time::SystemTime, u64)>; 2];

/// The stamp of the state.db in `storage`; None before the first update. Costs two looks at file names.
pub fn state_stamp(storage: &Path) -> Option<Stamp> {
    let stamp = |name: &str| {
        let metadata = std::fs::metadata(storage.join(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    let stamp = [stamp(FILE_NAME), stamp(&format!("{FILE_NAME}-wal"))];
    stamp[0].is_some().then_some(stamp)
}

/// How long a connection waits for another one's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// What state.db is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Creates and migrates the file if needed; the caller holds the [`crate::lock::WriterLock`].
    /// Refused where tables exist without a record of them (architecture, "Lost state").
    ReadWrite,
    /// `flowbench doctor --repair`: as `ReadWrite`, and starts an empty record beside existing tables.
    Rebuild,
    /// Works while another process writes.
    ReadOnly,
}

/// The open state.db. Shared between the flows of an update: one transaction at a time.
#[derive(Debug)]
pub struct State {
    connection: Mutex<Connection>,
    path: PathBuf,
}

impl State {
    /// Opens `<storage>/state.db`.
    ///
    /// Errors: `no-state` (read-only, and there is no file yet), `state-lost` (tables without a record),
    /// `state-newer` and `state-older` (schema version), `state-damaged` (not a usable SQLite file).
    pub fn open(storage: &Path, access: Access) -> Result<State> {
        let path = storage.join(FILE_NAME);
        let connection = match access {
            Access::ReadOnly => open_for_reading(&path)?,
            Access::ReadWrite | Access::Rebuild => {
                if access == Access::ReadWrite && !path.exists() {
                    refuse_lost_state(storage)?;
                }
                std::fs::create_dir_all(storage).map_err(|e| Error::io("create folder", storage, e))?;
                Connection::open(&path).map_err(|e| explain(&path, "open", e))?
            }
        };
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|e| explain(&path, "open", e))?;
        // Each statement of this file is prepared once per connection.
        connection.set_prepared_statement_cache_capacity(128);

        let version = schema::version(&connection).map_err(|e| explain(&path, "open", e))?;
        if version > schema::NEWEST {
            return Err(Error::user(
                "state-newer",
                format!(
                    "`{}` was written by a newer flowbench: schema version {version}, this program knows {}",
                    path.display(),
                    schema::NEWEST
                ),
                "update flowbench",
            ));
        }
        if access == Access::ReadOnly {
            if version < schema::NEWEST {
                return Err(Error::user(
                    "state-older",
                    format!(
                        "`{}` was written by an older flowbench: schema version {version}, this program reads {}",
                        path.display(),
                        schema::NEWEST
                    ),
                    "the next `flowbench run` or `flowbench doctor --repair` brings it up to date",
                ));
            }
        } else {
            // A file that a crash left without tables is as good as none.
            if version == 0 && access == Access::ReadWrite {
                refuse_lost_state(storage)?;
            }
            prepare_for_writing(&connection).map_err(|e| explain(&path, "open", e))?;
            schema::migrate(&connection, version).map_err(|e| explain(&path, "migrate", e))?;
        }
        Ok(State { connection: Mutex::new(connection), path })
    }

    /// True if there is a file to open.
    pub fn exists(storage: &Path) -> bool {
        storage.join(FILE_NAME).exists()
    }

    /// Returns what SQLite's own check finds wrong with the file; empty if it is sound.
    pub fn check(&self) -> Result<Vec<String>> {
        self.read("check", |connection| {
            let mut statement = connection.prepare("PRAGMA integrity_check")?;
            let found = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
            Ok(found.into_iter().filter(|line| line != "ok").collect())
        })
    }

    /// Runs `body` in one transaction that is on disk when this returns; nothing of it stays after an error.
    fn write<T>(&self, action: &'static str, body: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut connection = self.connection();
        self.transact(&mut connection, action, body)
    }

    /// As [`State::write`], but a power loss (not a crash of the process) may undo it: for what can be
    /// told again or missed, such as events and progress, or found out, such as marks of batches.
    fn write_lazily<T>(&self, action: &'static str, body: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut connection = self.connection();
        let synchronous = |connection: &Connection, level: &str| {
            connection.pragma_update(None, "synchronous", level).map_err(|e| explain(&self.path, action, e))
        };
        synchronous(&connection, "NORMAL")?;
        let written = self.transact(&mut connection, action, body);
        synchronous(&connection, "FULL")?;
        written
    }

    fn transact<T>(
        &self,
        connection: &mut Connection,
        action: &'static str,
        body: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|e| explain(&self.path, action, e))?;
        let value = body(&transaction).map_err(|e| self.explain(action, e))?;
        transaction.commit().map_err(|e| explain(&self.path, action, e))?;
        Ok(value)
    }

    fn read<T>(&self, action: &'static str, body: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        body(&self.connection()).map_err(|e| self.explain(action, e))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic inside a transaction has rolled it back, so the connection is as good as before.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn explain(&self, action: &'static str, error: Error) -> Error {
        match error {
            Error::State { source, .. } => explain(&self.path, action, source),
            other => other,
        }
    }
}

/// WAL lets readers work while a writer writes. FULL, because a plan has to be on disk before the Delta
/// commit that follows it. Foreign keys are off: rows are removed by the functions that know why.
fn prepare_for_writing(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "cache_size", -16_000)
}

fn open_for_reading(path: &Path) -> Result<Connection> {
    if !path.exists() {
        return Err(Error::user(
            "no-state",
            format!("no update has run here yet: `{}` does not exist", path.display()),
            "start one with `flowbench run`",
        ));
    }
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|e| explain(path, "open", e))?;
    // A WAL file's readers keep an index beside it (`state.db-shm`). In a folder that can't be written there
    // is no writer either, so the file may be read as one that nobody changes.
    match schema::version(&connection) {
        Err(e) if matches!(e.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) => {
            Connection::open_with_flags(
                immutable_uri(path),
                OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
            )
            .map_err(|e| explain(path, "open", e))
        }
        _ => Ok(connection),
    }
}

/// <https://www.sqlite.org/uri.html>: `%`, `?` and `#` are the bytes that a path must not hold as they are.
fn immutable_uri(path: &Path) -> String {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

fn refuse_lost_state(storage: &Path) -> Result<()> {
    match find_table(&storage.join("tables"), 4) {
        None => Ok(()),
        Some(table) => Err(Error::user(
            "state-lost",
            format!("`{}` is missing, but tables exist: `{}`", storage.join(FILE_NAME).display(), table.display()),
            "put state.db back, or rebuild what can be rebuilt with `flowbench doctor --repair`; \
             deleting the whole storage folder starts from nothing",
        )),
    }
}

/// The first folder at most `depth` levels below `folder` that holds a Delta log.
fn find_table(folder: &Path, depth: usize) -> Option<PathBuf> {
    if folder.join("_delta_log").is_dir() {
        return Some(folder.to_path_buf());
    }
    if depth == 0 {
        return None;
    }
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders.iter().filter(|path| path.is_dir()).find_map(|path| find_table(path, depth - 1))
}

/// Says what SQLite's error means for the user.
fn explain(path: &Path, action: &'static str, source: rusqlite::Error) -> Error {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Error::user(
            "state-damaged",
            format!("cannot {action} `{}`: the file is damaged: {source}", path.display()),
            "put a copy back, or run `flowbench doctor --repair`, which rebuilds what the tables tell; the tables are not affected",
        ),
        Some(ErrorCode::DiskFull) => Error::io(action, path, std::io::ErrorKind::StorageFull.into()),
        Some(ErrorCode::ReadOnly) => Error::io(action, path, std::io::ErrorKind::ReadOnlyFilesystem.into()),
        Some(ErrorCode::PermissionDenied) => Error::io(action, path, std::io::ErrorKind::PermissionDenied.into()),
        _ => Error::State { action, source },
    }
}

/// Reads all rows of a query.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_map(params, row)?.collect::<Result<_, _>>()?)
}

/// Reads the row of a query that gives at most one.
fn row<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    row: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>> {
    use rusqlite::OptionalExtension;
    Ok(connection.prepare_cached(sql)?.query_row(params, row).optional()?)
}

/// Runs a statement; returns how many rows it changed.
fn execute(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<usize> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

/// Gives an enum without fields its words in the file: `as_str`, `FromStr`, and SQLite's conversions.
macro_rules! stored_as_text {
    ($name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $name {
            /// The word in state.db, in events and on screens.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text),+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> std::result::Result<$name, String> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err(format!("unknown {}: `{text}`", stringify!($name))),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl rusqlite::ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }

        impl rusqlite::types::FromSql for $name {
            fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<$name> {
                value.as_str()?.parse().map_err(|e: String| rusqlite::types::FromSqlError::Other(e.into()))
            }
        }
    };
}
use stored_as_text;

#[cfg(test)]
mod tests;
