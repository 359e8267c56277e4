//! AUTO CDC: changes applied to a target by key, in order of sequence.
//!
//! - [`encode`]: the bytes of keys, sequences and rows
//! - [`side`]: the side table, where the members of every key are kept

pub mod encode;
pub mod side;
