//! Bytes on disk that must not change, and properties of all types against a model of values.

mod key;
mod row;
mod value;
