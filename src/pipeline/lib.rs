//! What a pipeline should be. Pure: no I/O, no clock, no randomness.
//!
//! Text becomes definitions (`parse`), definitions become a graph (`graph`), the graph is checked
//! (`validate`) and an update of it is planned (`plan`). Each step takes values and returns values; what is
//! wrong with the user's files is collected as [`diagnostic::Diagnostic`]s, never thrown.

pub mod text;
pub mod diagnostic;
pub mod byte_size;
pub mod number;
pub mod path;
pub mod timestamp;
pub mod name;
pub mod data_type;
pub mod ddl;
pub mod settings;
pub mod query;
pub mod read_files;
pub mod change_feed;
pub mod auto_cdc;
pub mod definition;
pub mod workspace;
pub mod resume;
pub mod parse;
pub mod graph;
pub mod order;
pub mod validate;
pub mod load;
pub mod fix;
pub mod change;
pub mod command;
pub mod event;
pub mod plan;
pub mod schedule;
pub mod timeline;
pub mod report;
pub mod scd;
pub mod answer;
