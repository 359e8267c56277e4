//! The bytes of keys, sequences and rows, as they are sorted, compared and kept in the side table. The formats are our
//! own and lie on disk: golden tests hold them still.
//!
//! - `key`: keys and sequences, order-preserving: comparing bytes compares values
//! - `layout`: which leaves a row has; only ever grows
//! - `row`: rows from Arrow columns and back, split into leaves without knowing their types
//! - `leaf_reader`, `leaf_builder`: one leaf of a batch as bytes, and bytes as an Arrow array
//! - `byte_rows`: byte strings of a whole batch in one allocation
//! - `varint`: integers that are short when small

mod byte_rows;
mod key;
mod layout;
mod leaf_builder;
mod leaf_reader;
mod row;
pub(crate) mod varint;

#[cfg(test)]
mod tests;

pub use byte_rows::ByteRows;
pub use key::{KeyCodec, NullCount, count_nulls};
pub use layout::{Layout, Leaf, LeafKind};
pub use row::{Leaves, RowCodec, join};

use crate::error::Error;

/// Bytes that are not what this module writes.
pub(crate) fn malformed(what: &str) -> Error {
    Error::user(
        "side-table-corrupted",
        format!("malformed bytes in the side table: {what}"),
        "run a full refresh of the table, which builds its side table anew",
    )
}
