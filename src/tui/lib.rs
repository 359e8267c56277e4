//! The workbench's screens.
