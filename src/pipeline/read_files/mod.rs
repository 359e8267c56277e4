//! The options of reading files and tables with their types, defaults and rules (Databricks' `read_files` page,
//! Delta's streaming options).
//!
//! - `mod.rs`: the checked values
//! - `options.rs`: the names of all options and what we do with each; reading a value with its type
//! - `check.rs`: `read_files(…)` and `[[source]]` → [`ReadFiles`]
//! - `table_stream.rs`: `STREAM t WITH (…)` → [`TableStream`]
//!
//! Not here: globbing, listing and decoding, which the engine does.

mod options;
mod check;
mod table_stream;

#[cfg(test)]
mod cases;

pub use check::{external_files, read_files};
pub use table_stream::table_stream;

use crate::data_type::Field;
use crate::text::Span;

/// How an input is read: some options have a meaning for one of them only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// The whole of it, each time.
    Batch,
    /// What is new, in micro-batches.
    Stream,
}

/// The format of a file source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    Json,
    Csv,
    Parquet,
    Avro,
    Text,
}

/// What happens to fields that the stored schema doesn't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum SchemaEvolutionMode {
    AddNewColumns,
    AddNewColumnsWithTypeWidening,
    Rescue,
    FailOnNewColumns,
    None,
}

/// What happens to records that can't be read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ParseMode {
    /// Kept as a row of NULLs, with the text in the corrupt-record column or `_rescued_data`.
    Permissive,
    DropMalformed,
    FailFast,
}

/// `read_files(path, option => value …)`, checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadFiles {
    /// After `[paths]`: absolute, or relative to the workspace folder; may hold globs.
    pub path: String,
    pub path_span: Span,
    pub format: FileFormat,
    /// `schema => "a INT, …"`: no inference.
    pub schema: Option<Vec<Field>>,
    /// `schemaHints => "a INT, b.c STRING"`: types that win over the inferred ones; a name may be a dotted path.
    pub schema_hints: Vec<Field>,
    pub infer_column_types: bool,
    /// None: every `key=value` segment of the path. Empty: none.
    pub partition_columns: Option<Vec<String>>,
    pub schema_evolution_mode: SchemaEvolutionMode,
    /// None: rescue is off.
    pub rescued_data_column: Option<String>,
    pub reader_case_sensitive: bool,
    pub max_files_per_trigger: usize,
    pub max_bytes_per_trigger: Option<u64>,
    pub include_existing_files: bool,
    pub allow_overwrites: bool,
    /// Microseconds since 1970 UTC; a file is read if its time is strictly later.
    pub modified_after_us: Option<i64>,
    /// Strictly earlier.
    pub modified_before_us: Option<i64>,
    /// `pathGlobFilter` or `fileNamePattern`: a glob on the file's name.
    pub file_name_glob: Option<String>,
    pub recursive_file_lookup: bool,
    pub ignore_corrupt_files: bool,
    pub ignore_missing_files: bool,
    pub use_strict_globber: bool,
    pub parse_mode: ParseMode,
    pub corrupt_record_column: Option<String>,
    /// Text with one record over many lines: one JSON document a file, quoted line ends in CSV.
    pub multi_line: bool,
    /// Spark pattern (`yyyy-MM-dd`).
    pub date_format: Option<String>,
    pub timestamp_format: Option<String>,
    /// IANA name, for timestamps without offset.
    pub time_zone: String,
    pub json: JsonOptions,
    pub csv: CsvOptions,
    /// `wholeText`: one row a file.
    pub whole_text: bool,
}

/// Options of JSON only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct JsonOptions {
    pub primitives_as_string: bool,
    pub prefers_decimal: bool,
    /// Strings that look like timestamps are inferred as TIMESTAMP.
    pub infer_timestamp: bool,
    pub drop_field_if_all_null: bool,
    pub allow_comments: bool,
    pub allow_single_quotes: bool,
    pub allow_unquoted_field_names: bool,
    pub allow_non_numeric_numbers: bool,
    pub allow_numeric_leading_zeros: bool,
    pub allow_backslash_escaping_any_character: bool,
    pub allow_unquoted_control_chars: bool,
}

/// Options of CSV only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CsvOptions {
    pub header: bool,
    pub separator: char,
    pub quote: Option<char>,
    pub escape: Option<char>,
    pub comment: Option<char>,
    pub null_value: String,
    pub empty_value: String,
    pub nan_value: String,
    pub positive_infinity: String,
    pub negative_infinity: String,
    pub skip_rows: usize,
    pub enforce_schema: bool,
    pub ignore_leading_white_space: bool,
    pub ignore_trailing_white_space: bool,
    pub max_columns: usize,
    pub prefer_date: bool,
}

/// Options of reading a Delta table as a stream (`STREAM t WITH (…)`).
#[derive(Debug, Clone, PartialEq)]
pub struct TableStream {
    /// Read from this version's changes on; only on the flow's first start.
    pub starting_version: Option<i64>,
    /// `latest`: only what comes after the first start.
    pub starts_at_latest: bool,
    /// Microseconds since 1970 UTC; only on the flow's first start.
    pub starting_timestamp_us: Option<i64>,
    /// Commits that rewrite or delete rows are passed over instead of refused.
    pub skip_change_commits: bool,
    /// Read are the changes of rows, with the columns of [`crate::change_feed`], not the rows that came.
    pub reads_change_feed: bool,
    pub max_files_per_trigger: usize,
    pub max_bytes_per_trigger: Option<u64>,
}

impl Default for TableStream {
    fn default() -> TableStream {
        TableStream {
            starting_version: None,
            starts_at_latest: false,
            starting_timestamp_us: None,
            skip_change_commits: false,
            reads_change_feed: false,
            max_files_per_trigger: 1000,
            max_bytes_per_trigger: None,
        }
    }
}
