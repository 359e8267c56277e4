//! The program as a whole, as people and scripts use it.

mod behaviours;
mod cli;
#[cfg(unix)]
mod crash;
mod docs;
mod fixture;
mod language;
#[cfg(unix)]
mod properties;
#[cfg(unix)]
mod terminal;
mod tidy;
#[cfg(unix)]
mod validate;
mod vectors;
