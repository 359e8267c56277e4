//! The SQL that sqlparser reads: Databricks' dialect, completed.
//!
//! Not here: what no dialect of sqlparser can say (`STREAM`, `read_files(…)`), which `query/inputs.rs` takes out.

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::dialect::{DatabricksDialect, Dialect, SparkSqlDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// Databricks' dialect with what its SQL reference says and sqlparser's lacks: `INTERVAL '1 hour'`, `DIV`,
/// backslashes in strings, `ORDER BY ALL`.
///
/// One for the whole program, so that the engine's planner reads what the front end read. That takes the
/// sqlparser which DataFusion re-exports; should the two versions part, the engine needs a copy.
#[derive(Debug)]
pub struct SparkDialect;

impl Dialect for SparkDialect {
    // The parser asks `dialect_of!(self is DatabricksDialect)` here and there.
    fn dialect(&self) -> std::any::TypeId {
        std::any::TypeId::of::<DatabricksDialect>()
    }
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        DatabricksDialect.is_delimited_identifier_start(ch)
    }
    fn is_identifier_start(&self, ch: char) -> bool {
        DatabricksDialect.is_identifier_start(ch)
    }
    fn is_identifier_part(&self, ch: char) -> bool {
        DatabricksDialect.is_identifier_part(ch)
    }
    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }
    fn ignores_wildcard_escapes(&self) -> bool {
        // `\%` and `\_` keep their backslash, as LIKE needs them.
        true
    }
    fn supports_numeric_prefix(&self) -> bool {
        true
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_group_by_expr(&self) -> bool {
        true
    }
    fn supports_lambda_functions(&self) -> bool {
        true
    }
    fn supports_select_wildcard_except(&self) -> bool {
        true
    }
    fn supports_struct_literal(&self) -> bool {
        true
    }
    fn supports_nested_comments(&self) -> bool {
        true
    }
    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }
    fn supports_values_as_table_factor(&self) -> bool {
        true
    }
    fn supports_bang_not_operator(&self) -> bool {
        true
    }
    fn supports_cte_without_as(&self) -> bool {
        true
    }
    fn supports_select_item_multi_column_alias(&self) -> bool {
        true
    }
    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        SparkSqlDialect.supports_map_literal_with_angle_brackets()
    }
    // These two are read to be refused by name.
    fn supports_table_versioning(&self) -> bool {
        true
    }
    fn supports_pipe_operator(&self) -> bool {
        true
    }
    fn supports_order_by_all(&self) -> bool {
        true
    }
    fn supports_string_literal_concatenation(&self) -> bool {
        true
    }
    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if !parser.parse_keyword(Keyword::DIV) {
            return None;
        }
        Some(parser.parse_subexpr(precedence).map(|right| Expr::BinaryOp {
            left: Box::new(expr.clone()),
            op: BinaryOperator::MyIntegerDivide,
            right: Box::new(right),
        }))
    }
}
