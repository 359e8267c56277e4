//! The program as a whole, as people and scripts use it.

mod behaviours;
mod cli;
mod docs;
mod fixture;
mod language;
mod tidy;
