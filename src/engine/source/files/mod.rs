//! `read_files`: which files there are, what columns they have, and their rows as a DataFusion table.
//!
//! ```text
//! list ─▶ [FileEntry] ─▶ infer ─▶ SourceSchema ─▶ table_provider ─▶ batches + ScanCounters
//!  │ glob                  │ partition, csv, json, …  │ split, read, csv, json, parquet, avro, text, adapt
//! ```
//!
//! - `glob`, [`list`](list()): paths with globs become files with sizes and times;
//! - `partition`: `key=value` folders become columns;
//! - `schema`, [`infer`](infer()), [`evolve`]: the columns of a source, remembered as JSON in state.db, widened
//!   when files bring new ones;
//! - `scan`: exactly these files as a table, decoded on as many threads as there are partitions;
//! - `split`: equal shares of bytes; `read`: opening, decompressing, cutting at line ends;
//! - `json` decodes records, `read_json` feeds it with files; `csv`, `parquet`, `avro`, `text`: one
//!   format each;
//! - `adapt`, `rescue`: a typed file's columns as the schema's, and what doesn't fit as JSON text;
//! - `counters`: what a scan saw.
//!
//! Not here: which files were read before (the ledger in state.db).

mod glob;
mod list;
mod partition;
mod schema;
mod split;
mod read;
mod rescue;
mod adapt;
pub mod json;
mod read_json;
mod csv;
mod parquet;
mod avro;
mod text;
mod infer;
mod counters;
mod scan;

pub use counters::ScanCounters;
pub use infer::{as_declared, evolve, infer};
pub use list::{FileEntry, Listing, list, list_new};
pub use scan::{table_provider, table_schema};
pub use schema::{Role, SourceSchema};

/// Rows of a batch, DataFusion's own measure.
const BATCH_ROWS: usize = 8192;

#[cfg(test)]
mod tests;
