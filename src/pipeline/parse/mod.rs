//! Text → definitions.
//!
//! - `parameters.rs`: `${name}` replaced before anything else

pub mod parameters;
pub mod toml_tree;
pub mod toml_reader;
pub mod settings;
pub mod for_each;
pub mod toml_file;

#[cfg(test)]
mod toml_cases;
