//! The table that flows write: the dataset's own, or the shadow of its next generation.

use std::path::PathBuf;

use pipeline::data_type::Field;

use crate::columns::{Columns, Misfit, grow};
use crate::data_type::schema_from_arrow;
use crate::error::{Error, Result};
use crate::flow::FlowRun;
use crate::table::{SharedTable, Table};

/// The table that flows write: a dataset's own, or the shadow of its next generation.
#[derive(Clone)]
pub(crate) struct Target {
    pub table: SharedTable,
    pub folder: PathBuf,
    pub partition_by: Vec<String>,
    /// None: the dataset's own table.
    pub shadow_generation: Option<i64>,
}

impl Target {
    /// The table's columns as they are now.
    pub async fn columns(&self, run: &FlowRun<'_>) -> Result<Columns> {
        let mut table = self.table.lock().await;
        table.refresh()?;
        self.columns_of(run, &table)
    }

    /// The columns of the locked table, with what the definition says of them.
    pub fn columns_of(&self, run: &FlowRun<'_>, table: &Table) -> Result<Columns> {
        let fields = schema_from_arrow(&table.schema()).map_err(Error::Internal)?;
        let Some(known) = &run.update.columns[run.flow.target.0] else { return Ok(Columns::grown(fields)) };
        let default = |field: &Field| {
            let at = crate::data_type::position(&known.fields, &field.name)?;
            known.defaults[at].clone()
        };
        let defaults = fields.iter().map(default).collect();
        Ok(Columns { fields, is_declared: known.is_declared, defaults })
    }

    /// The columns of a materialized view whose query gives `given`.
    pub fn recomputed_columns(&self, run: &FlowRun<'_>, given: Vec<Field>) -> Result<Columns> {
        let Some(declared) = run.update.columns[run.flow.target.0].as_ref().filter(|columns| columns.is_declared)
        else {
            return Ok(Columns::grown(given));
        };
        grow(declared, &given).map_err(|misfits| {
            let what: Vec<String> = misfits.iter().map(Misfit::to_string).collect();
            Error::user(
                "schema-mismatch",
                format!("materialized view `{}`: {}", run.dataset.label, what.join("; ")),
                "cast the column in the query, or change its declaration",
            )
        })
    }
}
