//! The table at a sequence: of SCD type 2 the rows whose interval holds it.

use std::sync::Arc;

use datafusion::common::{Column, ScalarValue};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use futures::StreamExt;
use pipeline::auto_cdc::{END_AT, START_AT, ScdType};
use pipeline::scd::AsOf;

use super::scd_table::ScdTable;
use super::value;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::micro_batch::query_error;

/// Which rows are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsOfOptions {
    /// A SQL condition.
    pub filter: Option<String>,
    /// None: all rows.
    pub limit: Option<usize>,
}

impl Engine {
    /// A table of SCD type 2 as it is at a sequence, by all that is known now.
    ///
    /// # Errors
    /// `unknown-dataset`, `not-auto-cdc`, `nothing-stored`; `no-history` for SCD type 1; `bad-value`; `filter`.
    pub async fn scd_as_of(&self, table: &str, sequence: &str, options: &AsOfOptions) -> Result<AsOf> {
        let table = self.scd_table(table).await?;
        let bytes = value::parse_sequence(&table.sequence_codec, sequence)?;
        let at = holds_at(&table, &bytes)?;
        let rows = rows_of(&table, at).await?;
        let columns = rows.schema().columns();
        let columns = columns.into_iter().filter(|column| ![START_AT, END_AT].contains(&column.name.as_str()));
        let plan =
            LogicalPlanBuilder::from(rows).project(columns.map(Expr::Column)).and_then(LogicalPlanBuilder::build);
        let plan = plan.map_err(failed)?;
        let shown = self.filtered(Arc::new(ViewTable::new(plan.clone(), None)), options.filter.as_deref()).await?;
        Ok(AsOf {
            table: table.label.clone(),
            sequence: value::sequence(&table.sequence_codec, &bytes)?,
            row_count: self.count(plan).await?,
            rows: self.rows(shown, options.limit).await?,
        })
    }

    async fn count(&self, plan: LogicalPlan) -> Result<u64> {
        let counted = LogicalPlanBuilder::from(plan)
            .aggregate(Vec::<Expr>::new(), [count(lit(1)).alias("rows")])
            .and_then(LogicalPlanBuilder::build)
            .map_err(failed)?;
        let mut batches = self.stream(counted, None).await?;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(failed)?;
            for row in 0..batch.num_rows() {
                let value = ScalarValue::try_from_array(batch.column(0), row).map_err(failed)?;
                if let ScalarValue::Int64(Some(value)) = value {
                    rows += value as u64;
                }
            }
        }
        Ok(rows)
    }
}

pub(super) fn failed(error: datafusion::error::DataFusionError) -> Error {
    query_error("query", error)
}

/// The condition of rows that hold at a sequence.
///
/// # Errors
/// `no-history` for SCD type 1.
pub(super) fn holds_at(table: &ScdTable, sequence: &[u8]) -> Result<Expr> {
    if table.spec.scd_type == ScdType::One {
        return Err(Error::user(
            "no-history",
            format!("`{}` is of SCD type 1: it has the newest row of each key and none of before", table.label),
            format!(
                "see what it was after an update: flowbench show {} --at-update N; or keep the history: STORED AS SCD \
                 TYPE 2",
                table.label
            ),
        ));
    }
    let value = literal(table, sequence)?;
    let is_open = column(END_AT).is_null().or(column(END_AT).gt(value.clone()));
    Ok(column(START_AT).lt_eq(value).and(is_open))
}

/// The condition of rows that start or end behind `from` and not behind `to`: all that hold at one of them only do.
pub(super) fn begins_or_ends_between(table: &ScdTable, from: &[u8], to: &[u8]) -> Result<Expr> {
    let (from, to) = (literal(table, from)?, literal(table, to)?);
    let is_between = |name| column(name).gt(from.clone()).and(column(name).lt_eq(to.clone()));
    Ok(is_between(START_AT).or(is_between(END_AT)))
}

fn literal(table: &ScdTable, sequence: &[u8]) -> Result<Expr> {
    let value = table.sequence_codec.decode([sequence])?.remove(0);
    ScalarValue::try_from_array(&value, 0).map(lit).map_err(failed)
}

pub(super) fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The target's rows of a condition.
pub(super) async fn rows_of(table: &ScdTable, condition: Expr) -> Result<LogicalPlan> {
    let provider = {
        let mut target = table.table.lock().await;
        target.refresh()?;
        target.provider(None).await?
    };
    LogicalPlanBuilder::scan("target", provider_as_source(provider), None)
        .and_then(|scan| scan.filter(condition))
        .and_then(LogicalPlanBuilder::build)
        .map_err(failed)
}
