//! Text → definitions.
//!
//! - `parameters.rs`: `${name}` replaced before anything else
//! - `sql_file.rs`: a SQL file → statements; `SET` and `USE`
//! - `statement.rs`: `CREATE …` up to the query; `columns.rs`, `clauses.rs`: its parts; `flow.rs`: `CREATE FLOW`
//! - `query/`: a query → text for DataFusion over named inputs
//! - `token.rs`, `cursor.rs`: SQL text → tokens, and the walk over them

pub mod parameters;
pub mod sql_file;
mod statement;
mod columns;
mod clauses;
mod flow;
pub mod query;
mod cursor;
mod token;
#[cfg(test)]
mod tests;

pub use query::query;
pub use sql_file::sql_file;
