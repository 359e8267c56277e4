//! The program as a whole, as people and scripts use it.

mod cli;
#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod properties;
