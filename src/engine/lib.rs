//! Does what a pipeline says: reads sources in micro-batches, transforms them with DataFusion, commits them
//! to Delta tables exactly once, and reports what happened as `pipeline::event` values.
//!
//! The only user of DataFusion, Delta, SQLite and the file system.
//!
//! In reading order: a workspace is opened ([`open`]) and held by an [`Engine`]; its queries are planned over
//! their sources (`reading`, [`source`], [`session`], [`functions`]) and checked (`analysis`); an update
//! ([`update`]) runs the flows (`flow`), each in micro-batches (`micro_batch`) into a [`table`], with every
//! step written down in [`state`] and reported (`record`).

pub mod clock;
pub mod error;
pub mod stop;
pub mod fail_point;
pub mod lock;
pub mod data_type;
pub mod auto_cdc;
pub mod functions;
pub mod session;
pub mod table;
pub mod state;
pub mod source;
pub mod open;
pub mod watch;
mod reading;
mod stream_rules;
mod columns;
mod engine;
mod content_key;
mod listings;
mod plans;
mod analysis;
mod record;
mod recorded;
mod generation;
mod micro_batch;
mod flow;
mod full_refresh;
mod history;
mod maintenance;
mod overlap;
mod lint;
mod fix;
pub mod update;
mod status;
pub mod preview;
mod scd;
mod cursor;
mod reset;
mod doctor;
pub mod serve;

pub use analysis::Analysis;
pub use engine::{Engine, list_functions};
pub use fix::FixedFile;
pub use preview::{Format, ShowOptions};
pub use record::EventSink;
pub use scd::{AsOfOptions, DiffOptions};
pub use stop::Stop;
