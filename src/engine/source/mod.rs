//! Where rows come from.
//!
//! - [`files`]: `read_files`: which files there are, what columns they have, and their rows.

pub mod files;
