//! Failures of the world: disk, tables, state, data that doesn't fit. One enum; each variant knows whose
//! failure it is and whether trying again may help.
//!
//! Not here: what is wrong with the user's files, which is a `pipeline::diagnostic::Diagnostic`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use deltalake_core::DeltaTableError;
use pipeline::diagnostic::Diagnostic;
use pipeline::plan::Refusal;

/// The result of anything in this crate that may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who has to do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The pipeline or its data.
    User,
    /// Disk, permissions, another program.
    External,
    /// Ours: a bug.
    Internal,
}

/// Whether trying the same again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// After a pause.
    Backoff,
}

/// What failed, with what the failing code knew: path, table, flow.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} `{path}`: {source}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },

    #[error("cannot {action} table `{table}`: {source}")]
    Table { action: &'static str, table: String, source: Box<DeltaTableError> },

    #[error("state.db: cannot {action}: {source}")]
    State { action: &'static str, source: rusqlite::Error },

    /// A query failed while it ran.
    #[error("{during}: {words}", words = crate::session::in_words(source))]
    Query { during: String, source: Box<DataFusionError> },

    /// The input or the request can't be served as it is: `what`, and `help` says what to do.
    #[error("{what}")]
    User { code: &'static str, what: String, help: String },

    /// Another program is in the way, or something outside changed; may pass.
    #[error("{what}")]
    External { code: &'static str, what: String, help: String },

    /// The update was asked to stop.
    #[error("canceled")]
    Canceled,

    /// A file of a source has fields that the stored schema lacks; the flow widens its schema and starts anew.
    #[error("new fields in the source: {}", fields.join(", "))]
    UnknownFields { fields: Vec<String> },

    /// The files of the workspace have errors; nothing ran.
    #[error("the workspace has {} error(s)", diagnostics.iter().filter(|d| d.is_error()).count())]
    Invalid { diagnostics: Vec<Diagnostic> },

    /// A query that was given on its own has errors; their places are in `text`.
    #[error("the query has {} error(s)", diagnostics.iter().filter(|d| d.is_error()).count())]
    InvalidSql { text: String, diagnostics: Vec<Diagnostic> },

    /// The request can't be carried out as it is, or needs a yes.
    #[error("{}", refusal_text(refusal))]
    Refused { refusal: Refusal },

    #[error("internal error: {0}")]
    Internal(String),
}

fn refusal_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Usage { message, .. } => message.clone(),
        Refusal::Unconfirmed { notices } => {
            notices.iter().map(|notice| notice.message.as_str()).collect::<Vec<_>>().join("; ")
        }
    }
}

/// Sources have readers of their own, so a Parquet file that DataFusion can't read is one of a table's.
fn unreadable_file(error: DataFusionError) -> std::result::Result<Error, DataFusionError> {
    let is_of_file = match &error {
        DataFusionError::ParquetError(_) | DataFusionError::ObjectStore(_) => true,
        DataFusionError::ArrowError(inner, _) => matches!(**inner, ArrowError::ParquetError(_)),
        _ => false,
    };
    if !is_of_file {
        return Err(error);
    }
    let text = error.to_string();
    let path = text.split_whitespace().find_map(|word| Some(&word[..word.find(".parquet")? + ".parquet".len()]));
    let path = path.map(|path| format!("/{}", path.trim_start_matches('/')));
    Ok(Error::data_file(path.as_deref(), (!text.contains("not found")).then(|| root_cause(&error))))
}

/// What an error that wraps others begins with.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let root = std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error);
    let text = root.to_string();
    // Layers put their names before it.
    let is_layer = |part: &str| part.ends_with(" error") || part == "External";
    text.split(": ").skip_while(|part| is_layer(part)).collect::<Vec<_>>().join(": ")
}

impl Error {
    /// Tells what was being done to which path.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Error {
        Error::Io { action, path: path.as_ref().to_path_buf(), source }
    }

    /// An error that the user can mend.
    pub fn user(code: &'static str, what: impl Into<String>, help: impl Into<String>) -> Error {
        Error::User { code, what: what.into(), help: help.into() }
    }

    /// A data file of a table that can't be read; None: which one isn't known. `why`: None: it is gone.
    pub fn data_file(path: Option<&str>, why: Option<String>) -> Error {
        let file = path.map_or_else(|| "of a table".to_string(), |path| format!("`{path}`"));
        // tables/<schema>/<name>/part-….parquet
        let table = path.and_then(|path| path.split("/tables/").nth(1)).and_then(|path| path.split('/').nth(1));
        let rebuild = table.map_or_else(String::new, |table| {
            format!("; or build the table anew: flowbench run --full-refresh {table}")
        });
        Error::user(
            if why.is_some() { "data-file-damaged" } else { "data-file-missing" },
            format!("data file {file} can't be read: {}", why.as_deref().unwrap_or("it is gone")),
            format!("`flowbench doctor` finds all that are missing or damaged; restore them from a copy{rebuild}"),
        )
    }

    /// A failed query. If the failure is one of ours that came through DataFusion (a source's, say), it is that one.
    pub fn query(during: impl Into<String>, error: DataFusionError) -> Error {
        match error {
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(inner) => Error::Query { during: during.into(), source: DataFusionError::External(inner).into() },
            },
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => Error::query(during, *inner),
            DataFusionError::ArrowError(inner, trace) => match *inner {
                ArrowError::ExternalError(inner) => Error::query(during, DataFusionError::External(inner)),
                inner => unreadable_file(DataFusionError::ArrowError(inner.into(), trace))
                    .unwrap_or_else(|other| Error::Query { during: during.into(), source: other.into() }),
            },
            DataFusionError::Shared(inner) => match Arc::try_unwrap(inner) {
                Ok(inner) => Error::query(during, inner),
                Err(inner) => match inner.find_root() {
                    DataFusionError::External(ours) if ours.is::<Error>() => {
                        let ours = ours.downcast_ref::<Error>().expect("just asked");
                        ours.copy()
                    }
                    _ => Error::Query { during: during.into(), source: DataFusionError::Shared(inner).into() },
                },
            },
            other => unreadable_file(other)
                .unwrap_or_else(|other| Error::Query { during: during.into(), source: other.into() }),
        }
    }

    /// As much of an error as can be copied; enough to act on.
    fn copy(&self) -> Error {
        match self {
            Error::User { code, what, help } => Error::User { code, what: what.clone(), help: help.clone() },
            Error::External { code, what, help } => Error::External { code, what: what.clone(), help: help.clone() },
            Error::UnknownFields { fields } => Error::UnknownFields { fields: fields.clone() },
            Error::Canceled => Error::Canceled,
            Error::Io { action, path, source } => {
                Error::Io { action, path: path.clone(), source: std::io::Error::new(source.kind(), source.to_string()) }
            }
            other => Error::Internal(other.to_string()),
        }
    }

    /// The stable word of the error, as in diagnostics.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Io { .. } => "io",
            Error::Table { .. } => "table",
            Error::State { .. } => "state",
            Error::Query { .. } => "query-failed",
            Error::User { code, .. } | Error::External { code, .. } => code,
            Error::Canceled => "canceled",
            Error::UnknownFields { .. } => "unknown-fields",
            Error::Invalid { .. } => "invalid-workspace",
            Error::InvalidSql { .. } => "invalid-query",
            Error::Refused { .. } => "refused",
            Error::Internal(_) => "internal",
        }
    }

    /// Who has to act.
    pub fn whose(&self) -> Whose {
        match self {
            Error::Query { .. }
            | Error::User { .. }
            | Error::Canceled
            | Error::UnknownFields { .. }
            | Error::Invalid { .. }
            | Error::InvalidSql { .. }
            | Error::Refused { .. } => Whose::User,
            Error::Io { .. } | Error::Table { .. } | Error::State { .. } | Error::External { .. } => Whose::External,
            Error::Internal(_) => Whose::Internal,
        }
    }

    /// Whether the flow should be tried again.
    pub fn retry(&self) -> Retry {
        match self {
            Error::Io { source, .. } => match source.kind() {
                // These do not mend themselves while an update runs.
                std::io::ErrorKind::StorageFull
                | std::io::ErrorKind::ReadOnlyFilesystem
                | std::io::ErrorKind::PermissionDenied => Retry::Never,
                _ => Retry::Backoff,
            },
            Error::Table { .. } | Error::State { .. } | Error::External { .. } => Retry::Backoff,
            _ => Retry::Never,
        }
    }

    /// What to do about it, where we know.
    pub fn help(&self) -> Option<String> {
        match self {
            Error::User { help, .. } | Error::External { help, .. } => Some(help.clone()),
            Error::Refused { refusal: Refusal::Usage { help, .. } } => Some(help.clone()),
            Error::Refused { refusal: Refusal::Unconfirmed { notices } } => {
                Some(notices.iter().map(|notice| notice.help.as_str()).collect::<Vec<_>>().join("; "))
            }
            Error::Query { source, .. } => match source.find_root() {
                DataFusionError::ResourcesExhausted(_) => Some(
                    "give it more memory (`limits` of the flow, or [limits] in flowbench.toml); fewer threads need less"
                        .into(),
                ),
                _ => None,
            },
            Error::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::StorageFull => Some("free some space and run again; the update resumes".into()),
                std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                    Some("make the folder writable and run again; the update resumes".into())
                }
                _ => None,
            },
            Error::State { source, .. } => match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DiskFull) => Some("free some space and run again; the update resumes".into()),
                Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::CannotOpen) => {
                    Some("make the storage folder writable and run again; the update resumes".into())
                }
                Some(rusqlite::ErrorCode::SystemIoFailure) => {
                    Some("look at the disk that holds the storage folder; the next run resumes".into())
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Error {
        Error::State { action: "use", source }
    }
}

/// The way through DataFusion; [`Error::query`] is the way back.
impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}
