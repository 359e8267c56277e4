//! The workbench's screens.

pub mod widget;
