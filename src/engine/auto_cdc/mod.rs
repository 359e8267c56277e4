//! AUTO CDC: change events into a table that shows the latest row of each key, or its history.
//!
//! ```text
//! rows of a query ─▶ events (bytes) ─▶ timeline::fold with the stored members ─▶ rows to remove, rows to add, members
//!                                                                                  └─▶ target        side table ◀─┘
//! ```
//! The side table is committed first, together with the target's commit as it is to be; a crash in between is mended by
//! making exactly that commit. So what a batch changes becomes visible at once, once, or not at all.
//!
//! - `position`: where each event stood in its source
//! - `table_feed`: the change feed of a table as a source
//! - `columns`, `spec`: keys and values of a flow; what may not change; `known_specs`: as side tables have it
//! - `encode`, `rows`, `events`, `refused`: rows as bytes; which of them are no events
//! - `silence`: what events leave as it is
//! - `side`: the side table
//! - `target`: a target and its side table, opened for an update
//! - `portion`, `stored`, `apply`: events into both
//! - `batch`: a micro-batch of a feed; `snapshot`, `version`: whole states of a source
//! - `upkeep`: runs merged, the target's files rewritten
//!
//! What events mean is `pipeline::timeline`.

pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod columns;
pub mod encode;
mod events;
pub(crate) mod known_specs;
mod portion;
pub(crate) mod position;
mod refused;
pub(crate) mod rows;
pub mod side;
pub mod silence;
pub(crate) mod snapshot;
pub(crate) mod spec;
pub(crate) mod stored;
pub(crate) mod table_feed;
pub(crate) mod target;
mod upkeep;
pub(crate) mod version;
