//! Text → definitions.
//!
//! - `parameters.rs`: `${name}` replaced before anything else

pub mod parameters;
