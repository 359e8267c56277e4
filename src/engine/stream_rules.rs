//! What a query may do with a stream: only what gives the same rows whether its input comes at once or in
//! micro-batches. Everything that would need state over batches is refused until it is built.

use datafusion::common::JoinType;
use datafusion::logical_expr::LogicalPlan;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::Flow;

use crate::reading::reads_stream;

/// The error for a flow whose query does `what` with a stream.
pub fn refused(flow: &Flow, what: &str) -> Diagnostic {
    let help = match what {
        "a join of two streams" => "read one of the sides without STREAM, or join in a materialized view",
        _ => "move it into a MATERIALIZED VIEW over the streaming table",
    };
    Diagnostic::error("stateful-stream-query", flow.reading.query.span, format!("{what} is not supported yet"))
        .condition("UNSUPPORTED_STREAMING_OPERATION")
        .reason(format!(
            "flow `{}` sees its stream one micro-batch at a time, so the result would depend on how it was cut",
            flow.name
        ))
        .help(help)
}

/// Finds an operator over a stream that would see one micro-batch instead of the whole.
pub fn find(plan: &LogicalPlan) -> Option<&'static str> {
    let over_stream = |plan: &LogicalPlan| plan.inputs().into_iter().any(reads_stream);
    let found = match plan {
        LogicalPlan::Aggregate(_) if over_stream(plan) => Some("an aggregate over a stream"),
        LogicalPlan::Distinct(_) if over_stream(plan) => Some("DISTINCT over a stream"),
        LogicalPlan::Window(_) if over_stream(plan) => Some("a window function over a stream"),
        LogicalPlan::Limit(_) if over_stream(plan) => Some("LIMIT over a stream"),
        LogicalPlan::Sort(_) if over_stream(plan) => Some("ORDER BY over a stream"),
        LogicalPlan::RecursiveQuery(_) if over_stream(plan) => Some("a recursive query over a stream"),
        LogicalPlan::Join(join) => {
            let (left, right) = (reads_stream(&join.left), reads_stream(&join.right));
            match join.join_type {
                _ if left && right => Some("a join of two streams"),
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark | JoinType::Full
                    if left =>
                {
                    Some("an outer join that keeps rows of the other side of a stream")
                }
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark | JoinType::Full
                    if right =>
                {
                    Some("an outer join that keeps rows of the other side of a stream")
                }
                _ => None,
            }
        }
        LogicalPlan::Subquery(_) if over_stream(plan) => Some("a subquery over a stream"),
        _ => None,
    };
    found
        .or_else(|| {
            let mut in_subqueries = None;
            let visited = plan.apply_subqueries(|subquery| {
                if reads_stream(subquery) {
                    in_subqueries = Some("a subquery over a stream");
                }
                Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
            });
            debug_assert!(visited.is_ok(), "the visitor never fails");
            in_subqueries
        })
        .or_else(|| plan.inputs().into_iter().find_map(find))
}
