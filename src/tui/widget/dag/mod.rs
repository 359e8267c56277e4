//! A graph drawn in cells, left to right: columns of nodes, one row a node, lines that can be followed.
//!
//! ```text
//!                                             ╭─▸ ▤ by_day
//! ◇ events ──▸ ≋ events_raw ──▸ ≋ clean ────┬─┴─▸ ▤ by_city
//!                               ◇ orders ─┬─╰───▸ ▤ revenue
//!                               ◇ users ──╯
//! ```
//!
//! The steps are files, in this order; each is deterministic and knows no clock:
//!
//! - `model`: nodes, edges, limits: the input.
//! - `rank`: columns, and edges that go back.
//! - `layers`: long edges cut into links from column to column.
//! - `order`: each column from top to bottom, few crossings.
//! - `rows` gives rows from nothing, `keep` after an edit, so that nodes stay where they were.
//! - `channel`, `lanes`: the lines between two columns.
//! - `stub`: names where a line would be too long or go back.
//! - `layout`: all of that in order; where everything is; who is left, right, above and below of whom.
//! - `paint`, `glyphs`: the visible part, in characters and styles.

mod channel;
mod glyphs;
mod keep;
mod lanes;
mod layers;
mod layout;
mod model;
mod order;
mod paint;
mod rank;
mod rows;
mod stub;

pub use glyphs::Glyphs;
pub use layout::{Column, Layout, Place, layout};
pub use model::{Edge, EdgeStyle, Graph, Limits, Node, Skips};
pub use paint::{Highlight, Styles, Viewport, paint};
pub use stub::{Side, Stub, StubKind};

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;
