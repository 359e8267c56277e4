//! A dataset's rows page by page: an open query that is pulled only as far as somebody looks.
//!
//! The rows are those of one version of the table, so that pages fit together while an update commits.

use arrow::array::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use pipeline::report::{Column, Rows};

use crate::engine::Engine;
use crate::error::Result;
use crate::micro_batch::query_error;
use crate::preview::{ShowOptions, result_columns, text_rows};

/// An open look at a dataset.
pub struct RowCursor {
    columns: Vec<Column>,
    stream: SendableRecordBatchStream,
    /// Rows read from the stream and not given yet, the next first.
    ahead: Option<RecordBatch>,
    /// How many rows were given.
    position: usize,
}

impl Engine {
    /// Opens a look at a dataset, from its first row.
    ///
    /// # Errors
    /// As [`Engine::show`].
    pub async fn open_rows(&self, dataset: &str) -> Result<RowCursor> {
        let plan = self.show_plan(dataset, &ShowOptions::default()).await?;
        let columns = result_columns(plan.schema().as_arrow());
        Ok(RowCursor { columns, stream: self.stream(plan, None).await?, ahead: None, position: 0 })
    }
}

impl RowCursor {
    /// How many rows have been given or skipped.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next rows, `count` at most; `is_truncated` tells whether there are more.
    ///
    /// # Errors
    /// The query fails.
    pub async fn next(&mut self, count: usize) -> Result<Rows> {
        let mut rows = Vec::new();
        while rows.len() < count {
            let Some(batch) = self.batch().await? else { break };
            let taken = batch.num_rows().min(count - rows.len());
            rows.extend(text_rows(&batch.slice(0, taken))?);
            self.keep(&batch, taken);
        }
        self.position += rows.len();
        let is_truncated = match self.batch().await? {
            Some(batch) => {
                self.keep(&batch, 0);
                true
            }
            None => false,
        };
        Ok(Rows { columns: self.columns.clone(), rows, is_truncated })
    }

    /// Passes rows over.
    ///
    /// # Errors
    /// The query fails.
    pub async fn skip(&mut self, count: usize) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let Some(batch) = self.batch().await? else { break };
            let taken = batch.num_rows().min(left);
            left -= taken;
            self.position += taken;
            self.keep(&batch, taken);
        }
        Ok(())
    }

    /// The next rows that are at hand; None at the end.
    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.ahead.take() {
            return Ok(Some(batch));
        }
        while let Some(batch) = self.stream.next().await {
            let batch = batch.map_err(|e| query_error("query", e))?;
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn keep(&mut self, batch: &RecordBatch, taken: usize) {
        self.ahead = (taken < batch.num_rows()).then(|| batch.slice(taken, batch.num_rows() - taken));
    }
}
