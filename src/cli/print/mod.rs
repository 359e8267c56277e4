//! Answers as text. Functions here take plain data and return strings; only `say`, `json.rs` and `progress.rs` write
//! by themselves.
//!
//! - `diagnostics.rs`: what is wrong with the files; `github.rs`: the same as annotations of a workflow
//! - `json.rs`: the machine-readable output
//! - `progress.rs`: a running update, `event.rs`: events as lines, `summary.rs`: how the update ended
//! - `status.rs`, `plan.rs`, `graph.rs`, `describe.rs`, `rows.rs`, `scd.rs`: one answer each
//! - `grid.rs`, `number.rs`, `style.rs`: aligned columns, numbers, colours

use std::io::Write;

pub mod style;
pub mod number;
pub mod grid;
pub mod diagnostics;
pub mod github;
pub mod json;
pub mod event;
pub mod progress;
pub mod summary;
pub mod status;
pub mod plan;
pub mod graph;
pub mod describe;
pub mod rows;
pub mod scd;

/// Writes to stderr. If nobody reads it any more, nobody has to be told: what runs goes on.
pub fn say(text: impl std::fmt::Display) {
    let _ = write!(std::io::stderr(), "{text}");
}

/// Writes a line to stderr, as [`say`] does.
pub fn say_line(text: impl std::fmt::Display) {
    say(format_args!("{text}\n"));
}
