//! Parts of screens that know nothing of pipelines.
//!
//! - `dag`: a graph in cells.
//! - `text`: text in cells, and how it is cut to fit.
//! - `timeline`: intervals on an axis of numbers, times or ranks.

pub mod dag;
pub mod text;
pub mod timeline;
