//! The workbench's screens: state, keys and drawing. Knows the pipeline's plain data, and neither the engine nor
//! files.
//!
//! Inputs (keys, the mouse, answers of the engine) go into [`app::App::update`], which is pure and returns what
//! shall be done; [`screen::draw`] makes cells of the state. [`terminal`] is the only part that talks to a terminal:
//! it owns raw mode, the loop and the user's editor.
//!
//! In reading order: [`key`]s and [`action`]s, the [`app`], its [`popup`]s, the [`screen`]s, the [`widget`]s, the
//! [`theme`], the [`terminal`].

pub mod key;
pub mod theme;
pub mod action;
pub mod app;
pub mod popup;
pub mod screen;
pub mod widget;
pub mod terminal;

#[cfg(test)]
mod tests;
