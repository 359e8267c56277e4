//! Text → definitions.
//!
//! - `parameters.rs`: `${name}` replaced before anything else
//! - `settings.rs`: flowbench.toml; `files.rs`: all other files, each parsed once for each text
//! - `sql_file.rs`: a SQL file → statements; `SET` and `USE`
//! - `statement.rs`: `CREATE …` up to the query; `columns.rs`, `clauses.rs`: its parts; `flow.rs`: `CREATE FLOW`
//! - `auto_cdc.rs`: AUTO CDC in SQL; `change_clause.rs`: its clauses, `column_list.rs`: the lists in them;
//!   `change_spec.rs`: what they say, in SQL or TOML, made a flow and its query
//! - `query/`: a query → text for DataFusion over named inputs
//! - `dialect.rs`: what sqlparser reads of it
//! - `token.rs`, `cursor.rs`: SQL text → tokens, and the walk over them
//! - `toml_file.rs`: definitions in TOML; `toml_change.rs`: AUTO CDC in TOML; `for_each.rs`: one table for several definitions
//! - `toml_tree.rs`, `toml_reader.rs`: TOML with places; its keys read with their types

pub mod parameters;
pub mod toml_tree;
pub mod toml_reader;
pub mod settings;
pub mod files;
pub mod sql_file;
mod statement;
mod columns;
mod clauses;
mod flow;
mod auto_cdc;
mod change_clause;
mod change_spec;
mod column_list;
pub mod query;
mod dialect;
mod cursor;
mod token;
pub mod for_each;
pub mod toml_file;
mod toml_change;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod toml_cases;

pub use dialect::SparkDialect;
pub use files::{ParsedFiles, files};
pub use query::query;
pub use settings::settings;
pub use sql_file::sql_file;
pub use toml_file::toml_file;
