//! Parts of screens that know nothing of pipelines.
//!
//! - `text`: text in cells, and how it is cut to fit.

pub mod text;
