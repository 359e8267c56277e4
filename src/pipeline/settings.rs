//! flowbench.toml as values. `parse/settings.rs` reads it; nothing here touches a file.

use std::collections::BTreeMap;

use crate::name::Name;
use crate::text::{FileId, Span, Spanned};

/// `[pipeline] mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Triggered,
    Continuous,
}

/// `[pipeline] channel`: `preview` allows what is not settled in the language yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    Preview,
    Current,
}

/// The whole of flowbench.toml.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub name: String,
    /// Completes names without a schema.
    pub schema: String,
    pub catalog: Option<String>,
    pub mode: Spanned<Mode>,
    pub channel: Spanned<Channel>,
    /// Folder of tables and state, relative to the workspace folder unless absolute.
    pub storage: String,
    /// Globs of the definition files, relative to the workspace folder.
    pub sources: Vec<String>,
    /// IANA name; session time zone of casts and of timestamps without offset.
    pub time_zone: Spanned<String>,
    pub limits: Limits,
    /// `[configuration]`, for `${name}`; `--set` overrides are already in.
    pub configuration: BTreeMap<String, ConfigurationValue>,
    /// `[paths]`: prefix of a path in a definition → folder, relative to the workspace folder.
    pub paths: Vec<(String, String)>,
    pub external: Vec<ExternalTable>,
}

impl Settings {
    /// What an empty flowbench.toml says: the pipeline is named like its folder, everything else has its default.
    pub fn new(folder_name: &str) -> Settings {
        let start = Span::new(FileId(0), 0..0);
        Settings {
            name: folder_name.to_string(),
            schema: "default".to_string(),
            catalog: None,
            mode: Spanned::new(Mode::Triggered, start),
            channel: Spanned::new(Channel::Preview, start),
            storage: ".flowbench".to_string(),
            sources: vec!["transformations/**".to_string()],
            time_zone: Spanned::new("UTC".to_string(), start),
            limits: Limits::default(),
            configuration: BTreeMap::new(),
            paths: Vec::new(),
            external: Vec::new(),
        }
    }
}

/// `[limits]` of flowbench.toml. The default lets a live flow commit while three backfills run, and stays in the
/// memory of a small machine; a flow's own `limits` narrow it further.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Flows that run at the same time; default 4.
    pub concurrent_flows: usize,
    /// Worker threads; default the number of cores.
    pub threads: Option<usize>,
    /// Bytes for all operators together, spilled past that; default 1 GiB.
    pub memory_bytes: u64,
    /// Where operators spill; default a folder in `storage`.
    pub spill: Option<String>,
    /// Retries of a flow whose failure may pass; default 2, so three tries.
    pub retries: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { concurrent_flows: 4, threads: None, memory_bytes: 1 << 30, spill: None, retries: 2 }
    }
}

/// A value of `[configuration]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationValue {
    Text(String),
    List(Vec<String>),
}

impl ConfigurationValue {
    /// The text that replaces `${name}`: a list is joined by commas.
    pub fn text(&self) -> String {
        match self {
            ConfigurationValue::Text(text) => text.clone(),
            ConfigurationValue::List(list) => list.join(","),
        }
    }

    /// The values that `for_each` runs over: a text is split at commas, blanks trimmed.
    pub fn list(&self) -> Vec<String> {
        match self {
            ConfigurationValue::Text(text) => {
                text.split(',').map(|part| part.trim().to_string()).filter(|part| !part.is_empty()).collect()
            }
            ConfigurationValue::List(list) => list.clone(),
        }
    }
}

/// How the rows of an external table are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExternalFormat {
    Delta,
    Parquet,
    Csv,
    Json,
    Avro,
}

/// `[[source]]`: a table that the pipeline reads and does not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalTable {
    pub name: Spanned<Name>,
    pub format: ExternalFormat,
    /// Relative to the workspace folder unless absolute; `[paths]` applies.
    pub path: Spanned<String>,
    /// Reader options of `read_files` (`header = true`, …), as text.
    pub options: Vec<(Spanned<String>, String)>,
    pub span: Span,
}
