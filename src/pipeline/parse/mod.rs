//! Text → definitions.
//!
//! - `parameters.rs`: `${name}` replaced before anything else
//! - `settings.rs`: flowbench.toml
//! - `toml_file.rs`: definitions in TOML; `for_each.rs`: one table for several definitions
//! - `toml_tree.rs`, `toml_reader.rs`: TOML with places; its keys read with their types

pub mod parameters;
pub mod toml_tree;
pub mod toml_reader;
pub mod settings;
pub mod for_each;
pub mod toml_file;

#[cfg(test)]
mod toml_cases;
