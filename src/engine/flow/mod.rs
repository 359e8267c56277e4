//! One flow in one update, from its checkpoint to its last batch.
//!
//! - `append.rs`: what is new in its streams, micro-batch by micro-batch
//! - `once.rs`: its whole batch query, one time, as one micro-batch
//! - `complete.rs`: a materialized view, replaced by the result of its query
//! - `inputs.rs`: the rows behind each input
//! - `batch.rs`: plan → write → commit → mark of one micro-batch, and the way back in after a crash
//! - `ahead.rs`: the next batch's rows, read while one is applied
//! - `evolve.rs`: new fields and wider types in the middle of a stream
//! - `live.rs`: numbers of a running flow

pub(crate) mod ahead;
pub(crate) mod append;
pub(crate) mod batch;
pub(crate) mod complete;
pub(crate) mod evolve;
pub(crate) mod inputs;
pub(crate) mod live;
pub(crate) mod once;

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use pipeline::event::FlowMetrics;
use pipeline::graph::{Dataset, Flow, FlowKind};

use crate::auto_cdc;
use crate::error::{Error, Result};
use crate::generation::flow_app_id;
use crate::record::About;
use crate::state;
use crate::update::{Target, Update};
use live::LiveMetrics;

/// A flow that is being run.
pub(crate) struct FlowRun<'a> {
    pub update: &'a Update,
    pub flow: &'a Flow,
    pub dataset: &'a Dataset,
    /// As state.db knows it.
    pub record: state::Flow,
    /// The checkpoint's generation that this run writes: the current one, or a full refresh's next.
    pub generation: i64,
    pub target: Option<Target>,
    pub session: SessionContext,
    pub live: Arc<LiveMetrics>,
}

impl FlowRun<'_> {
    /// Who its events are about.
    pub fn about(&self) -> About {
        About::flow(&self.flow.name, &self.dataset.label)
    }

    /// The application id of its `txn` in the table.
    pub fn app_id(&self) -> String {
        flow_app_id(&self.record.flow_id, self.generation)
    }

    /// Begins messages of what fails in it.
    pub fn during(&self) -> String {
        format!("flow `{}`", self.flow.name)
    }

    /// The target, for flows that have rows to write.
    pub fn target(&self) -> Result<&Target> {
        self.target.as_ref().ok_or_else(|| {
            Error::Internal(format!("flow `{}` has rows for a table whose columns are unknown", self.flow.name))
        })
    }
}

/// Runs a flow to the end of what there is to read, and returns its numbers.
pub(crate) async fn run(run: &FlowRun<'_>) -> Result<FlowMetrics> {
    match run.flow.kind {
        FlowKind::Append | FlowKind::Cdc => append::run(run).await?,
        FlowKind::Once | FlowKind::CdcOnce => once::run(run).await?,
        FlowKind::Complete => complete::run(run).await?,
        FlowKind::Snapshot | FlowKind::SnapshotOnce => {
            let change =
                run.flow.change.as_ref().ok_or_else(|| Error::Internal("a snapshot without clauses".into()))?;
            auto_cdc::snapshot::run(run, change).await?;
        }
    }
    Ok(run.live.metrics())
}
