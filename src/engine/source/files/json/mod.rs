//! JSON records to Arrow columns, in one pass over the bytes.
//!
//! | file | what |
//! |---|---|
//! | `records` | cuts bytes into lines, and large files into parts |
//! | `cursor`, `number` | the tokens of strict JSON |
//! | `lenient` | rewrites lenient JSON as strict JSON |
//! | `keys` | finds the column of a key, counts unknown keys |
//! | `column` | buffers of a column under construction |
//! | `time`, `pattern` | texts of dates and timestamps |
//! | `value` | one value into its column: the conversion rules |
//! | `rescue` | the rescued data of a row |
//! | `decode` | records into batches; corrupt records |
//! | `infer` | the schema of records |
//!
//! STRING columns are Arrow's `Utf8`: the bytes are copied once into one buffer, which the Parquet writer reads as
//! fast as views, and no row is larger than it has to be.

mod column;
mod cursor;
mod decode;
mod infer;
mod keys;
mod lenient;
mod number;
mod pattern;
mod records;
mod rescue;
pub(super) mod time;
mod value;

#[cfg(test)]
mod tests;

pub use column::nullable;
pub use decode::{DecodeStats, DecodedBatch, Decoder, DecoderConfig};
pub use infer::{Inference, InferenceConfig};
pub use records::{split_records, whole_records};
