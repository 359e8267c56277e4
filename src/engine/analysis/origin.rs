//! What the values of a query's column are made of, through projections, subqueries and views, down to the tables.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use pipeline::validate::is_ingestion_time;

/// What a column is made of.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// The function or field of `_metadata` that tells when a row came, if one has a part in it.
    pub ingestion_time: Option<String>,
    /// Something differs from row to row, or may.
    varies: bool,
    has_null: bool,
    has_value: bool,
}

impl Origin {
    /// Of the column `at` of a plan that is not optimised.
    pub fn of(plan: &LogicalPlan, at: usize) -> Origin {
        let mut origin = Origin::default();
        origin.column(plan, at);
        origin
    }

    /// The same value in every row.
    pub fn is_constant(&self) -> bool {
        !self.varies
    }

    /// Made of nothing but NULL.
    pub fn is_null(&self) -> bool {
        self.is_constant() && self.ingestion_time.is_none() && self.has_null && !self.has_value
    }

    fn column(&mut self, plan: &LogicalPlan, at: usize) {
        match plan {
            LogicalPlan::Projection(projection) => match projection.expr.get(at) {
                Some(expr) => self.expression(expr, &projection.input),
                None => self.varies = true,
            },
            LogicalPlan::SubqueryAlias(alias) => self.column(&alias.input, at),
            LogicalPlan::Filter(filter) => self.column(&filter.input, at),
            LogicalPlan::Sort(sort) => self.column(&sort.input, at),
            LogicalPlan::Limit(limit) => self.column(&limit.input, at),
            LogicalPlan::Distinct(Distinct::All(input)) => self.column(input, at),
            LogicalPlan::Window(window) => match at < window.input.schema().fields().len() {
                true => self.column(&window.input, at),
                false => self.varies = true,
            },
            LogicalPlan::Union(union) => {
                self.varies = true;
                union.inputs.iter().for_each(|input| self.column(input, at));
            }
            LogicalPlan::TableScan(scan) => match scan.source.get_logical_plan() {
                Some(view) => {
                    let at = scan.projection.as_ref().map_or(Some(at), |columns| columns.get(at).copied());
                    match at {
                        Some(at) => self.column(&view, at),
                        None => self.varies = true,
                    }
                }
                None => self.varies = true,
            },
            _ => self.varies = true,
        }
    }

    fn expression(&mut self, expr: &Expr, input: &LogicalPlan) {
        let visited = expr.apply(|expr| {
            match expr {
                Expr::Column(column) => match input.schema().maybe_index_of_column(column) {
                    Some(at) => self.column(input, at),
                    None => self.varies = true,
                },
                Expr::Literal(value, _) => match value.is_null() {
                    true => self.has_null = true,
                    false => self.has_value = true,
                },
                Expr::ScalarFunction(call) => {
                    let field = call.args.iter().skip(1).find_map(|argument| match argument {
                        Expr::Literal(value, _) if call.name() == "get_field" => value.try_as_str().flatten(),
                        _ => None,
                    });
                    if let Some(time) =
                        [Some(call.name()), field].into_iter().flatten().find(|name| is_ingestion_time(name))
                    {
                        self.ingestion_time = Some(time.to_string());
                    }
                }
                Expr::Alias(_)
                | Expr::Cast(_)
                | Expr::TryCast(_)
                | Expr::BinaryExpr(_)
                | Expr::Case(_)
                | Expr::Negative(_) => {}
                _ => self.varies = true,
            }
            Ok(TreeNodeRecursion::Continue)
        });
        self.varies |= visited.is_err();
    }
}
