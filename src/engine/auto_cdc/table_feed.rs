//! The change feed of a table as the source of a flow: which of its rows are events, and which events are deletes.

use datafusion::common::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit};
use pipeline::auto_cdc::{ChangeFlow, DELETE_COLUMN};
use pipeline::change_feed::{CHANGE_TYPE, DELETE, UPDATE_PREIMAGE};

/// Completes a feed's query over the change feed of a table: rows as they were before a change are left out, and
/// `_change_type` tells the deletes unless the flow says itself what is one. Another source's query comes back as it was.
pub fn events(query: LogicalPlan, change: &ChangeFlow) -> Result<LogicalPlan, DataFusionError> {
    let columns = query.schema().columns();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let Some(feed) = change.feed().filter(|_| change.reads_table_feed(&names)) else { return Ok(query) };
    let Some(change_type) = columns.iter().find(|column| column.name.eq_ignore_ascii_case(CHANGE_TYPE)) else {
        return Ok(query);
    };
    let change_type = Expr::Column(change_type.clone());
    let is_event = binary_expr(change_type.clone(), Operator::IsDistinctFrom, lit(UPDATE_PREIMAGE));
    let events = LogicalPlanBuilder::from(query).filter(is_event)?;
    match feed.delete_span {
        Some(_) => events.build(),
        None => {
            let is_delete = change_type.eq(lit(DELETE)).alias(DELETE_COLUMN);
            events.project(columns.into_iter().map(Expr::Column).chain([is_delete]))?.build()
        }
    }
}
