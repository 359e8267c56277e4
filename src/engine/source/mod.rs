//! Where rows come from.
//!
//! - [`files`]: `read_files`: which files there are, what columns they have, and their rows
//! - [`table_stream`]: a Delta table read as a stream: what comes after an offset
//! - [`change_feed`]: what the versions of a Delta table did to its rows
//! - [`external`]: `[[source]]` tables of flowbench.toml
//! - `ledger`: files as state.db names them
//! - [`flow_sources`]: what a flow reads, under keys that last
//! - `remembered`: the columns of sources, kept from save to save

pub mod change_feed;
pub mod external;
pub mod files;
pub mod flow_sources;
pub(crate) mod ledger;
pub(crate) mod remembered;
pub mod table_stream;
