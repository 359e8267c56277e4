//! The change feed of a Delta table: its rows as they came, went and changed, version by version. Read from ours with
//! `STREAM t WITH (READCHANGEFEED = TRUE)`; other programs write the same columns into files.

use crate::data_type::{DataType, Field};

/// What happened to the row: one of the words below.
pub const CHANGE_TYPE: &str = "_change_type";
/// The version of the table that changed it.
pub const COMMIT_VERSION: &str = "_commit_version";
/// When that was committed.
pub const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

/// The columns that a change feed has behind those of its table.
pub const CHANGE_FEED_COLUMNS: [&str; 3] = [CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP];

/// A row that came; so are all rows of the table that a stream finds at its first start.
pub const INSERT: &str = "insert";
/// A row as it was before a change.
pub const UPDATE_PREIMAGE: &str = "update_preimage";
/// A row as it is since a change.
pub const UPDATE_POSTIMAGE: &str = "update_postimage";
/// A row that went, as it was.
pub const DELETE: &str = "delete";

/// [`CHANGE_FEED_COLUMNS`] with their types.
pub fn change_feed_fields() -> [Field; 3] {
    let typed =
        [(CHANGE_TYPE, DataType::String), (COMMIT_VERSION, DataType::Long), (COMMIT_TIMESTAMP, DataType::Timestamp)];
    typed.map(|(name, data_type)| Field { name: name.to_string(), data_type, is_nullable: true, comment: None })
}

/// True for a column that tells of a change, in any case.
pub fn is_change_feed_column(name: &str) -> bool {
    CHANGE_FEED_COLUMNS.iter().any(|column| column.eq_ignore_ascii_case(name))
}

/// True if the columns are those of a change feed: all three are there.
pub fn is_change_feed(columns: &[impl AsRef<str>]) -> bool {
    let has = |wanted: &&str| columns.iter().any(|column| column.as_ref().eq_ignore_ascii_case(wanted));
    CHANGE_FEED_COLUMNS.iter().all(has)
}
