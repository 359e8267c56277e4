//! How a command ends: its exit code, and why it didn't do what it was asked to.

use pipeline::diagnostic::Diagnostic;
use pipeline::plan::{Notice, Refusal};
use pipeline::text::SourceFile;

/// The exit codes, as `flowbench --help` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    InvalidWorkspace = 3,
    Unconfirmed = 4,
    Canceled = 5,
}

impl Exit {
    /// The number the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// Why a command ended early.
#[derive(Debug)]
pub enum Trouble {
    /// The words of the command line contradict each other, or a name is unknown.
    Usage {
        condition: Option<&'static str>,
        message: String,
        help: Option<String>,
    },
    /// The files have errors.
    Invalid {
        files: Vec<SourceFile>,
        diagnostics: Vec<Diagnostic>,
    },
    /// A query of the command line has errors.
    InvalidQuery {
        files: Vec<SourceFile>,
        diagnostics: Vec<Diagnostic>,
    },
    /// Somebody has to say yes first.
    Unconfirmed {
        notices: Vec<Notice>,
    },
    Engine(engine::error::Error),
    /// Reading or writing outside the engine: stdout, a new workspace's files.
    Io {
        action: String,
        source: std::io::Error,
    },
}

impl Trouble {
    /// A usage error.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Trouble {
        Trouble::Usage { condition: None, message: message.into(), help: Some(help.into()) }
    }

    /// The exit code that stands for it.
    pub fn exit(&self) -> Exit {
        use engine::error::Error;
        match self {
            // `flowbench show t | head` is a fine thing to do.
            Trouble::Io { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe => Exit::Ok,
            Trouble::Usage { .. } | Trouble::InvalidQuery { .. } => Exit::Usage,
            Trouble::Invalid { .. } => Exit::InvalidWorkspace,
            Trouble::Unconfirmed { .. } => Exit::Unconfirmed,
            Trouble::Engine(Error::Canceled) => Exit::Canceled,
            Trouble::Engine(error) => match error.code() {
                "no-workspace" | "bad-glob" => Exit::InvalidWorkspace,
                "unknown-dataset" | "unknown-flow" | "filter" | "not-auto-cdc" | "no-feeds" | "no-history"
                | "bad-key" | "bad-value" | "bad-cursor" | "unknown-key" | "unknown-version" | "unknown-update" => {
                    Exit::Usage
                }
                _ => Exit::Failed,
            },
            Trouble::Io { .. } => Exit::Failed,
        }
    }

    /// Turns an engine's error into what it means here; `files` are those that the diagnostics point into.
    pub fn from_engine(error: engine::error::Error, files: &[SourceFile]) -> Trouble {
        use engine::error::Error;
        match error {
            Error::Invalid { diagnostics } => Trouble::Invalid { files: files.to_vec(), diagnostics },
            Error::InvalidSql { text, diagnostics } => {
                Trouble::InvalidQuery { files: vec![engine::Engine::sql_file(&text)], diagnostics }
            }
            Error::Refused { refusal: Refusal::Usage { condition, message, help } } => {
                Trouble::Usage { condition, message, help: Some(help) }
            }
            Error::Refused { refusal: Refusal::Unconfirmed { notices } } => Trouble::Unconfirmed { notices },
            error => Trouble::Engine(error),
        }
    }
}

impl From<engine::error::Error> for Trouble {
    fn from(error: engine::error::Error) -> Trouble {
        Trouble::from_engine(error, &[])
    }
}

impl From<std::io::Error> for Trouble {
    fn from(source: std::io::Error) -> Trouble {
        Trouble::Io { action: "write to stdout".to_string(), source }
    }
}
