//! AUTO CDC: change events into a table that shows the latest row of each key, or its history.
//!
//! - `position.rs`: where each event stood in its source

pub(crate) mod position;
