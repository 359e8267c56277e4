//! The program as a whole, as people and scripts use it.

mod cli;
#[cfg(unix)]
mod crash;
mod docs;
#[cfg(unix)]
mod properties;
mod tidy;
