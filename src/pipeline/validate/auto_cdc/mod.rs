//! The rules of AUTO CDC that need no schema. The flows of one target must mean the same rows by the same key, or the
//! table would depend on who came first.
//!
//! - `insert_beside.rs`: a plain INSERT into a table that AUTO CDC keeps
//! - `keys.rs`, `scd_type.rs`, `tracked.rs`: what the flows of one target agree on
//! - `two_snapshots.rs`, `snapshot_scd_type.rs`, `snapshot_ignore_null.rs`, `snapshot_mode.rs`: a flow from snapshots
//!   beside flows from feeds
//! - `truncate_history.rs`, `track_without_history.rs`, `partial_updates.rs`: clauses that exclude one another
//! - `ingestion_time.rs`: a sequence that says when an event came, not when it was
//! - `plain_stream.rs`: a table that AUTO CDC keeps, read as if it only grew
//! - `reserved_name.rs`: names that are ours
//! - `end_at.rs`: a declared `__END_AT` that may not be NULL
//! - `properties.rs`: `flowbench.…` properties of a target

pub(super) mod end_at;
pub(super) mod ingestion_time;
pub(super) mod insert_beside;
pub(super) mod keys;
pub(super) mod partial_updates;
pub(super) mod plain_stream;
pub(super) mod properties;
pub(super) mod reserved_name;
pub(super) mod scd_type;
pub(super) mod snapshot_ignore_null;
pub(super) mod snapshot_mode;
pub(super) mod snapshot_scd_type;
pub(super) mod track_without_history;
pub(super) mod tracked;
pub(super) mod truncate_history;
pub(super) mod two_snapshots;

use crate::auto_cdc::ChangeFlow;
use crate::graph::{Dataset, Flow, Graph};

/// The flows of AUTO CDC.
fn change_flows(graph: &Graph) -> impl Iterator<Item = (&Flow, &ChangeFlow)> {
    graph.flows.iter().filter_map(|flow| Some((flow, flow.change.as_deref()?)))
}

/// The flows of AUTO CDC into one dataset, in the order of the files.
fn flows_into<'a>(graph: &'a Graph, dataset: &'a Dataset) -> Vec<(&'a Flow, &'a ChangeFlow)> {
    let flows = dataset.flows.iter().map(|id| graph.flow(*id));
    flows.filter_map(|flow| Some((flow, flow.change.as_deref()?))).collect()
}

/// The flow from snapshots into a dataset that flows from feeds write too, and these.
type SnapshotAmongFeeds<'a> = ((&'a Flow, &'a ChangeFlow), Vec<(&'a Flow, &'a ChangeFlow)>);

/// Every dataset that both kinds of flows write.
fn snapshots_among_feeds<'a>(graph: &'a Graph) -> impl Iterator<Item = (&'a Dataset, SnapshotAmongFeeds<'a>)> {
    graph.datasets.iter().filter_map(|dataset| {
        let (snapshots, feeds): (Vec<_>, Vec<_>) =
            flows_into(graph, dataset).into_iter().partition(|(flow, _)| flow.kind.is_snapshot());
        let snapshot = snapshots.into_iter().next()?;
        (!feeds.is_empty()).then_some((dataset, (snapshot, feeds)))
    })
}
