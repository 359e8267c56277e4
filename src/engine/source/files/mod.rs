//! Files as a source.

pub mod json;
