//! The rules of a pipeline's graph, one a file. Structural: they need no schema and no I/O.
//!
//! - `cycle.rs`: datasets that feed themselves
//! - `stream_or_batch.rs`: which reads may be streams, by the kind of flow and of what is read
//! - `change_feed.rs`: of what a change feed can be read
//! - `flow_target.rs`: what a flow may write to
//! - `view_depth.rs`: how many views may stand on one another
//! - `view.rs`: names and readers of temporary views
//! - `table_clauses.rs`: PARTITIONED BY, CLUSTER BY, columns and properties that exclude each other
//! - `column_type.rs`: types of columns that don't exist
//! - `protected_table.rs`: `pipelines.reset.allowed = false` below a table that may be reset
//! - `empty_pipeline.rs`: nothing to run
//! - `mode.rs`: what the pipeline's mode allows
//! - `channel.rs`: what needs the preview channel
//! - `unknown_predecessor.rs`, `predecessor_view.rs`, `repeated_predecessor.rs`: whom `depends_on` may name
//! - `self_dependency.rs`, `order_cycle.rs`: flows that would wait for themselves
//! - `auto_cdc/`: what flows of AUTO CDC say, each and among themselves
//!
//! `blocks.rs` is no rule: it folds what follows from an error under the error.

mod auto_cdc;
mod blocks;
mod change_feed;
mod channel;
mod column_type;
mod cycle;
mod empty_pipeline;
mod flow_target;
mod mode;
mod order_cycle;
mod predecessor_view;
mod protected_table;
mod repeated_predecessor;
mod self_dependency;
mod stream_or_batch;
mod table_clauses;
mod unknown_predecessor;
mod view;
mod view_depth;

pub use auto_cdc::ingestion_time::{by_ingestion_time, is_ingestion_time};
pub use auto_cdc::tracked::words as tracked_words;
pub use blocks::fold as fold_consequences;

use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;

/// A rule looks at the whole graph and pushes what it finds.
type Rule = fn(&Graph, &Settings, &mut Vec<Diagnostic>);

/// All rules, in the order of their messages for the same place.
const RULES: &[Rule] = &[
    mode::check,
    channel::check,
    empty_pipeline::check,
    cycle::check,
    flow_target::check,
    stream_or_batch::check,
    change_feed::check,
    view::check,
    view_depth::check,
    table_clauses::check,
    column_type::check,
    protected_table::check,
    unknown_predecessor::check,
    predecessor_view::check,
    repeated_predecessor::check,
    self_dependency::check,
    order_cycle::check,
    auto_cdc::insert_beside::check,
    auto_cdc::keys::check,
    auto_cdc::scd_type::check,
    auto_cdc::tracked::check,
    auto_cdc::two_snapshots::check,
    auto_cdc::snapshot_scd_type::check,
    auto_cdc::snapshot_ignore_null::check,
    auto_cdc::snapshot_mode::check,
    auto_cdc::truncate_history::check,
    auto_cdc::track_without_history::check,
    auto_cdc::partial_updates::check,
    auto_cdc::ingestion_time::check,
    auto_cdc::plain_stream::check,
    auto_cdc::reserved_name::check,
    auto_cdc::end_at::check,
    auto_cdc::properties::check,
];

/// Checks a graph against every rule.
pub fn validate(graph: &Graph, settings: &Settings) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for rule in RULES {
        rule(graph, settings, &mut diagnostics);
    }
    diagnostics
}
