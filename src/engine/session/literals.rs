//! Literals of numbers with Spark's types: `1` is INT, `5L` BIGINT, `2S` SMALLINT, `1.5BD` DECIMAL, `1e3` DOUBLE.
//!
//! DataFusion makes every whole number a BIGINT, and asks nobody. A literal is therefore written as an
//! operation, `'1' <number> 'int'`, which the planner gives to `operators`, which makes it a constant again.
//!
//! Not here: positions (`ORDER BY 1`), counts (`LIMIT 10`) and the like, which DataFusion reads as they are.

use std::ops::ControlFlow;

use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Fetch, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, JsonPathElem, LimitClause,
    OrderByExpr, OrderByKind, Query, Select, Statement, TableFactor, UnaryOperator, Value, VisitMut, VisitorMut,
    WindowFrameBound, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::Span;

/// The operator between a number's text and the name of its type.
pub(super) const NUMBER: &str = "number";

/// Gives the literals of `statement` their types.
pub(super) fn rewrite(statement: &mut Statement) {
    let ControlFlow::Continue(()) = statement.visit(&mut Literals);
    let ControlFlow::Continue(()) = statement.visit(&mut Unmark);
}

/// True for what [`rewrite`] makes of a number.
pub(super) fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::Custom(operator), .. } if operator == NUMBER)
}

/// The value of the literal `text` of a type that [`rewrite`] names.
pub(super) fn value(text: &str, data_type: &str) -> Result<ScalarValue> {
    let value = match data_type {
        "tinyint" => text.parse().ok().map(|number| ScalarValue::Int8(Some(number))),
        "smallint" => text.parse().ok().map(|number| ScalarValue::Int16(Some(number))),
        "int" => text.parse().ok().map(|number| ScalarValue::Int32(Some(number))),
        "bigint" => text.parse().ok().map(|number| ScalarValue::Int64(Some(number))),
        "float" => text.parse().ok().map(|number| ScalarValue::Float32(Some(number))),
        "decimal" => decimal(text),
        _ => text.parse().ok().map(|number| ScalarValue::Float64(Some(number))),
    };
    match value {
        Some(value) => Ok(value),
        None => plan_err!("`{text}` does not fit {} (INVALID_NUMERIC_LITERAL_RANGE)", data_type.to_uppercase()),
    }
}

/// As many digits as are written.
fn decimal(text: &str) -> Option<ScalarValue> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = i8::try_from(fraction.len()).ok()?;
    let digits = whole.trim_start_matches(['-', '0']).len().max(1) + fraction.len();
    let precision = u8::try_from(digits).ok().filter(|precision| *precision <= 38)?;
    let number = format!("{whole}{fraction}").parse::<i128>().ok()?;
    Some(ScalarValue::Decimal128(Some(number), precision, scale))
}

struct Literals;

impl VisitorMut for Literals {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(OrderByKind::Expressions(by)) = query.order_by.as_mut().map(|order| &mut order.kind) {
            by.iter_mut().for_each(keep_order);
        }
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)).for_each(keep);
                limit_by.iter_mut().for_each(keep);
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                keep(offset);
                keep(limit);
            }
            None => {}
        }
        if let Some(Fetch { quantity: Some(quantity), .. }) = &mut query.fetch {
            keep(quantity);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if let GroupByExpr::Expressions(by, _) = &mut select.group_by {
            by.iter_mut().for_each(keep);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        let args = match factor {
            TableFactor::Table { args: Some(args), .. } => &mut args.args,
            TableFactor::Function { args, .. } => args,
            _ => return ControlFlow::Continue(()),
        };
        for arg in args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                keep(expr);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Interval(interval) => keep(&mut interval.value),
            Expr::JsonAccess { path, .. } => {
                for element in &mut path.path {
                    if let JsonPathElem::Bracket { key } | JsonPathElem::ColonBracket { key } = element {
                        keep(key);
                    }
                }
            }
            Expr::Function(function) => {
                if let Some(WindowType::WindowSpec(window)) = &mut function.over
                    && let Some(frame) = &mut window.window_frame
                {
                    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
                        if let WindowFrameBound::Preceding(Some(count)) | WindowFrameBound::Following(Some(count)) =
                            bound
                        {
                            keep(count);
                        }
                    }
                }
            }
            // The number that is negated is one literal with its sign: -2147483648 is an INT.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: number } => {
                if let Some(number) = literal(number, "-") {
                    *expr = number;
                }
            }
            _ => {
                if let Some(number) = literal(expr, "") {
                    *expr = number;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn keep_order(by: &mut OrderByExpr) {
    keep(&mut by.expr);
}

/// Takes the marks of [`keep`] away: DataFusion would take `1` for a number written as `1L`.
struct Unmark;

impl VisitorMut for Unmark {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Value(value) = expr
            && let Value::Number(_, is_kept) = &mut value.value
        {
            *is_kept = false;
        }
        ControlFlow::Continue(())
    }
}

/// Marks a number as one that DataFusion reads as it is, for the length of this rewrite.
fn keep(expr: &mut Expr) {
    match expr {
        Expr::Value(value) => {
            if let Value::Number(_, is_kept) = &mut value.value {
                *is_kept = true;
            }
        }
        Expr::UnaryOp { expr, .. } => keep(expr),
        _ => {}
    }
}

/// The operation for a literal whose type DataFusion would not give as Spark does; `sign` stands before it.
fn literal(expr: &Expr, sign: &str) -> Option<Expr> {
    let (text, data_type, span) = read(expr, sign)?;
    let quoted = |text: &str| Value::SingleQuotedString(text.to_string());
    Some(Expr::BinaryOp {
        left: Box::new(Expr::Value(quoted(&text).with_span(span))),
        op: BinaryOperator::Custom(NUMBER.to_string()),
        right: Box::new(Expr::Value(quoted(data_type).with_empty_span())),
    })
}

/// The text and type of a number.
fn read(expr: &Expr, sign: &str) -> Option<(String, &'static str, Span)> {
    let signed = |text: &str| format!("{sign}{text}");
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, false) if text.contains(['e', 'E']) => Some((signed(text), "double", value.span)),
            Value::Number(text, false) if signed(text).parse::<i32>().is_ok() => {
                Some((signed(text), "int", value.span))
            }
            _ => None,
        },
        // sqlparser takes the letters behind the digits for a name.
        Expr::Identifier(Ident { value, quote_style: None, span }) => {
            let start = value.find(|c: char| c.is_ascii_alphabetic()).filter(|at| *at > 0)?;
            let (text, suffix) = value.split_at(start);
            if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                return None;
            }
            let data_type = match suffix.to_ascii_lowercase().as_str() {
                "y" => "tinyint",
                "s" => "smallint",
                "l" => "bigint",
                "f" => "float",
                "d" => "double",
                "bd" => "decimal",
                _ => return None,
            };
            let is_number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            is_number.then(|| (signed(text), data_type, *span))
        }
        _ => None,
    }
}
