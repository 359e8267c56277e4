//! One micro-batch's query → data files. Each partition of the plan decodes, transforms and encodes in one
//! task, so that as many cores work as the plan has partitions and no row is handed between threads.
//!
//! Nothing is part of the table before the caller commits the files; dropped, they are deleted.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{SendableRecordBatchStream, execute_stream_partitioned};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::stop::Stop;
use crate::table::{DataFile, DataWriter, WriterOptions};

/// Where the rows go.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The table's folder.
    pub folder: PathBuf,
    pub schema: SchemaRef,
    pub partition_by: Vec<String>,
    pub options: WriterOptions,
}

/// Runs `plan` and writes its rows. `rows` counts them as they are written; `during` begins the message of
/// a query's failure.
///
/// # Errors
/// Whatever the sources, the query or the disk fail with; [`Error::Canceled`] once `stop` is requested.
pub async fn write(
    session: &SessionContext,
    plan: &LogicalPlan,
    destination: &Destination,
    stop: &Stop,
    rows: &Arc<AtomicU64>,
    during: &str,
) -> Result<Vec<DataFile>> {
    let state = session.state();
    let physical = state.create_physical_plan(plan).await.map_err(|e| query_error(during, e))?;
    let streams = execute_stream_partitioned(physical, session.task_ctx()).map_err(|e| query_error(during, e))?;
    let mut tasks: JoinSet<Result<(usize, Vec<DataFile>)>> = JoinSet::new();
    for (task, stream) in streams.into_iter().enumerate() {
        let (mut destination, stop) = (destination.clone(), stop.clone());
        let (rows, during) = (rows.clone(), during.to_string());
        destination.options.task = task;
        tasks.spawn(async move { Ok((task, write_partition(stream, destination, stop, rows, &during).await?)) });
    }
    let mut written: Vec<(usize, Vec<DataFile>)> = Vec::new();
    // The first failure ends the others: dropping the set aborts them, and their files are deleted.
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(of_task) => written.push(of_task?),
            Err(error) if error.is_panic() => {
                return Err(Error::Internal(format!("{during}: a task panicked: {error}")));
            }
            Err(error) => return Err(Error::Internal(format!("{during}: {error}"))),
        }
    }
    // Whichever came to its end first: in the order of the source, which decides ties of those who read the table.
    written.sort_by_key(|(task, _)| *task);
    Ok(written.into_iter().flat_map(|(_, files)| files).collect())
}

async fn write_partition(
    mut stream: SendableRecordBatchStream,
    to: Destination,
    stop: Stop,
    rows: Arc<AtomicU64>,
    during: &str,
) -> Result<Vec<DataFile>> {
    let mut writer = DataWriter::new(&to.folder, None, to.schema, &to.partition_by, to.options)?;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.map_err(|e| query_error(during, e))?;
        writer.write(&batch)?;
        rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
    }
    writer.finish()
}

/// A failed query as our error: one of ours that passed through DataFusion comes out as it was.
pub fn query_error(during: &str, error: DataFusionError) -> Error {
    Error::query(during, error)
}
