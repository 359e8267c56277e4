//! The side table of an AUTO CDC target: the members of every key, hidden ones and tombstones included, in
//! `<table root>/_flowbench_side/gen-<n>/`. One writer, any number of readers in any process, no locks for readers.
//!
//! ```text
//! lookup, scan ◀── View: one manifest, its runs open ◀── manifest.json   names everything that counts
//!      ▲                                                 run-<n>.side    sorted members, immutable
//!      │ merged, newest run wins                         moves-<n>.side  where compaction put rows
//! SideTable: write_run, stage_moves ──▶ commit ──▶ the next manifest, at once and durable
//!            merge_if_due: few runs stay few
//! ```
//!
//! A crash leaves the old manifest or the new one; files that neither names are swept when the table is opened.
//!
//! - `member`: a member and its bytes
//! - `run`, `run_writer`, `block`, `bloom`: a sorted run as a file; `cursor`: a way through it; `cache`: blocks in memory
//! - `merged`: several runs as one
//! - `moves`: rows that compaction of the target moved
//! - `manifest`: what belongs to the table; `view`: reading it as of one manifest
//! - `store`: the writer; `merge`: which runs become one
//!
//! Not here: what members mean (`pipeline::timeline`) and the target's own files (`table`).

mod block;
mod bloom;
mod cache;
mod cursor;
mod manifest;
mod member;
mod merge;
mod merged;
mod moves;
mod run;
mod run_writer;
mod store;
mod view;

#[cfg(test)]
mod tests;

pub use manifest::{Floor, FloorBatch, Flow, MANIFEST, Manifest, Retention, RunEntry, Snapshot};
pub use member::{Kind, Location, Member, MemberRef, Rank};
pub use moves::{FileMove, MovePiece};
pub use store::{NewSideTable, SideTable, Staged};
pub use view::{KeyRange, Scan, View, Wanted};

use std::path::Path;

use crate::error::Error;

/// The folder within a table's folder; Delta readers pass over names that begin with `_`.
pub const FOLDER: &str = "_flowbench_side";

fn corrupted(path: &Path, what: &str) -> Error {
    Error::user(
        "side-table-corrupted",
        format!("the side table is damaged: `{}`: {what}", path.display()),
        "run a full refresh of the table, which builds its side table anew",
    )
}
