//! What people ask about AUTO CDC tables: the history of a key, the table at a sequence, what is different, whether
//! table and events agree, and whether the live feed took over where the seed ended. Reads side tables and targets
//! without locks, while another process updates them; writes nothing.
//!
//! ```text
//! side table ─▶ members of a key ─▶ timeline::Told ─▶ history · keys ─────────────┐
//! target ─────▶ rows in order of keys ───────────────────▶ check · cutover        ├─▶ pipeline::scd: plain data
//!        └────▶ rows at a sequence ──────────────────────▶ as_of · diff           │
//! sources of flows that haven't run ─▶ first and last sequence a key ─▶ cutover ──┘
//! ```
//!
//! - `scd_table`: a target and its side table, opened for reading
//! - `value`: keys and sequences as people write and read them
//! - `origin`: which flow, batch, update and source record an event came from
//! - `history`, `keys`: members; `as_of`, `diff`: rows; `check`, `cutover`: both
//! - `target_rows`: the target's rows in order of their keys
//! - `feed`: sequences by key of flows that haven't run
//! - `closed`: keys that the seed's last row closes and the target shows (behaviours D-6)
//! - `ordered`: our bytes within queries
//! - `question`: all of them as a front end that stays open asks them
//! - `at_update`: the version of a table that an update left

mod as_of;
mod at_update;
mod check;
mod closed;
mod cutover;
mod diff;
mod feed;
mod history;
mod keys;
mod ordered;
mod origin;
mod question;
mod scd_table;
mod target_rows;
mod value;

pub use as_of::AsOfOptions;
pub(crate) use closed::{ClosedKeys, KnownClosedKeys};
pub use diff::DiffOptions;

#[cfg(test)]
mod tests {
    use pipeline::scd::{CutoverRequest, KeyRequest};

    use super::{AsOfOptions, DiffOptions};
    use crate::engine::Engine;

    /// A screen asks from tasks of its own: this compiles only if all questions can go to another thread.
    #[expect(dead_code, reason = "the compiler is the test")]
    fn questions_can_be_asked_from_tasks(engine: &Engine, keys: &KeyRequest, cutover: &CutoverRequest) {
        fn is_send<T: Send>(_: T) {}
        is_send(engine.scd_history("t", &[]));
        is_send(engine.scd_keys("t", keys));
        is_send(engine.scd_as_of("t", "1", &AsOfOptions::default()));
        is_send(engine.scd_diff("t", "1", "2", DiffOptions { limit: 1 }));
        is_send(engine.scd_diff_versions("t", &[], 1, 2));
        is_send(engine.scd_check("t"));
        is_send(engine.cutover_check("t", cutover));
        is_send(engine.version_after_update("t", 1));
    }
}
