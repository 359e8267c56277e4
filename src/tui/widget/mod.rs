//! Parts of screens that know nothing of pipelines.
//!
//! - `dag`: a graph in cells.
//! - `text`: text in cells, and how it is cut to fit.

pub mod dag;
pub mod text;
