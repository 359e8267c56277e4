//! Does what a pipeline says: reads sources in micro-batches, transforms them with DataFusion, commits them
//! to Delta tables exactly once, and reports what happened as `pipeline::event` values.
//!
//! The only user of DataFusion, Delta, SQLite and the file system.

pub mod error;
pub mod data_type;
pub mod source;
