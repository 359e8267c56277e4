//! Tests of the whole crate: answers in, keys pressed, screens seen. No terminal, no clock, no engine.
//!
//! - `scene.rs`: a small pipeline and what an engine would tell of it
//! - `screens.rs`: each state of the screen as text, at two sizes; the expectations are in tests/screens
//! - `updates.rs`: updates that end otherwise than their events tell
//! - `scd.rs`: AUTO CDC tables, and the views of them
//! - `keys.rs`: any keys, any size: no panic, every popup can be left, nothing written without a yes

mod keys;
mod scd;
mod scene;
mod screens;
mod updates;
