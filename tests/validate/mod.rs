//! Validation: what is said of the files, how fast it follows them, and what it mends.
//!
//! - `cases.rs`: `*.case` beside this file: a workspace and what `flowbench` says of it, as people read it
//! - `codes.rs`: every code that the program can emit has a case
//! - `saves.rs`: any order of saves ends in what a clean run says
//! - `output.rs`: what is printed for machines, and while watching
//! - `mutations.rs`: a slip in a sound workspace is found where it was made, and the right name is suggested

mod cases;
mod codes;
mod mutations;
mod output;
mod saves;
