//! Reading ahead: while a batch of a change feed is applied, the query of the next one runs already. Nothing of it
//! counts before that batch is planned.

use pipeline::auto_cdc::ChangeFlow;

use super::FlowRun;
use super::evolve::schemas;
use super::inputs::{BatchInputs, OpenSource, batch_inputs};
use crate::auto_cdc::batch::Reading;
use crate::error::Result;
use crate::source::files::SourceSchema;
use crate::state::PlannedInput;

/// The batch that comes next, over the sources as they are now.
pub(super) struct Next<'r> {
    change: &'r ChangeFlow,
    schemas: Vec<Option<SourceSchema>>,
    inputs: Result<BatchInputs>,
}

/// A batch whose query was started before its turn.
pub(crate) struct Ahead {
    schemas: Vec<Option<SourceSchema>>,
    reading: Result<Reading>,
}

impl<'r> Next<'r> {
    /// None: there is nothing to read, or the flow's batches are not applied but written as they are read.
    pub async fn open(
        run: &'r FlowRun<'_>,
        sources: &[OpenSource],
        batch: i64,
        planned: &[PlannedInput],
    ) -> Option<Next<'r>> {
        let change = run.flow.change.as_ref().filter(|_| !planned.is_empty())?;
        Some(Next { change, schemas: schemas(sources), inputs: batch_inputs(sources, planned, Some(batch)).await })
    }

    /// Starts its query. What fails is told when it is its turn.
    pub async fn start(self, run: &FlowRun<'_>) -> Ahead {
        let Next { change, schemas, inputs } = self;
        let reading = match inputs {
            Ok(inputs) => Reading::start(run, change, inputs).await,
            Err(error) => Err(error),
        };
        Ahead { schemas, reading }
    }
}

impl Ahead {
    /// The query's rows, unless the sources have got other columns since.
    pub fn reading(self, sources: &[OpenSource]) -> Option<Result<Reading>> {
        (self.schemas == schemas(sources)).then_some(self.reading)
    }
}
