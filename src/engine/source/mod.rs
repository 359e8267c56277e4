//! Where rows come from.

pub mod files;
