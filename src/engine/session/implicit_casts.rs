//! Casts to text that DataFusion's type coercion puts in: they too write timestamps and doubles as Spark does
//! (`2025-01-01 10:30:00` in the session's zone, `1.0E10`).
//!
//! Not here: casts that a query writes; `syntax` makes them calls of `string` before planning.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::functions;

/// Runs behind type coercion.
#[derive(Debug)]
pub(super) struct SparkText;

impl AnalyzerRule for SparkText {
    fn name(&self) -> &str {
        "spark_text"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(in_node)?.data)
    }
}

fn in_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = datafusion::logical_expr::utils::merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = &node {
        schema.merge(&scan.projected_schema);
    }
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| {
            Ok(match expr {
                Expr::Cast(Cast { expr: inner, field }) if is_text(field.data_type()) => {
                    match inner.get_type(&schema) {
                        Ok(DataType::Timestamp(..) | DataType::Float32 | DataType::Float64) => {
                            Transformed::yes(functions::call("string", vec![*inner]))
                        }
                        _ => Transformed::no(Expr::Cast(Cast { expr: inner, field })),
                    }
                }
                expr => Transformed::no(expr),
            })
        })?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
