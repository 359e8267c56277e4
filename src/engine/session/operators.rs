//! What Spark's operators mean where DataFusion's planner asks: `+`, `/`, `DIV`, literals of numbers, `a:b.c`, `s.field`, `a[0]`, `m['k']`.
//!
//! Not here: syntax that DataFusion can't take in at all; `syntax` rewrites that before planning.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, TableReference, plan_err};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, lit};

use super::literals;
use crate::functions;

#[derive(Debug)]
pub(super) struct SparkOperators;

impl ExprPlanner for SparkOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        match &op {
            // Spark divides whole numbers as doubles: 3 / 2 = 1.5. Decimals stay decimals.
            BinaryOperator::Divide if is_divided_as_double(&left, &right, schema)? => {
                Ok(PlannerResult::Planned(functions::call("divide", vec![left, right])))
            }
            BinaryOperator::MyIntegerDivide => Ok(PlannerResult::Planned(functions::call("div", vec![left, right]))),
            BinaryOperator::Custom(number) if number == literals::NUMBER => {
                let text = |expr: &Expr| match expr {
                    Expr::Literal(text, _) => text.try_as_str().flatten().unwrap_or_default().to_string(),
                    _ => String::new(),
                };
                Ok(PlannerResult::Planned(lit(literals::value(&text(&left), &text(&right))?)))
            }
            BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply => {
                let (left_type, right_type) = (left.get_type(schema)?, right.get_type(schema)?);
                // Whole numbers that overflow are an error, not another number.
                if left_type.is_integer() && right_type.is_integer() {
                    let name = match op {
                        BinaryOperator::Plus => "__add",
                        BinaryOperator::Minus => "__subtract",
                        _ => "__multiply",
                    };
                    return Ok(PlannerResult::Planned(functions::call(name, vec![left, right])));
                }
                // A date and hours give a timestamp; DataFusion would drop the hours.
                let at_midnight = |expr: Expr| functions::call("timestamp", vec![expr]);
                let (left, right) = match (&left_type, &right_type) {
                    (DataType::Date32, DataType::Interval(_)) if has_time(&right) => (at_midnight(left), right),
                    (DataType::Interval(_), DataType::Date32) if has_time(&left) => (left, at_midnight(right)),
                    _ => (left, right),
                };
                Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
            }
            // `col:path`
            BinaryOperator::Custom(colon) if colon == ":" => {
                let path = match &right {
                    Expr::Literal(path, _) => path.try_as_str().flatten().unwrap_or_default().to_string(),
                    _ => return plan_err!("the path after `:` must be constant"),
                };
                let path = if path.starts_with('[') { format!("${path}") } else { format!("$.{path}") };
                Ok(PlannerResult::Planned(functions::call("get_json_object", vec![left, lit(path)])))
            }
            _ => Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        }
    }

    fn plan_field_access(
        &self,
        expr: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let data_type = expr.expr.get_type(schema)?;
        Ok(match (expr.field_access, data_type) {
            (GetFieldAccess::NamedStructField { name }, data_type) => {
                let name = name.try_as_str().flatten().unwrap_or_default().to_string();
                PlannerResult::Planned(access(expr.expr, &data_type, &name)?.0)
            }
            // Arrays count from 0 in Spark.
            (GetFieldAccess::ListIndex { key }, DataType::List(_) | DataType::LargeList(_)) => {
                PlannerResult::Planned(functions::call("array_item", vec![expr.expr, *key]))
            }
            (field_access, _) => PlannerResult::Original(RawFieldAccessExpr { field_access, expr: expr.expr }),
        })
    }

    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let part = match args.first() {
            Some(Expr::Literal(part, _)) => part.try_as_str().flatten().and_then(part_of_date),
            _ => None,
        };
        match (part, args.get(1)) {
            (Some(name), Some(moment)) => Ok(PlannerResult::Planned(functions::call(name, vec![moment.clone()]))),
            _ => Ok(PlannerResult::Planned(functions::call("date_part", args))),
        }
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(functions::call("substring", args)))
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut expr = Expr::Column(Column::from((qualifier, field)));
        let mut data_type = field.data_type().clone();
        for name in nested_names {
            (expr, data_type) = access(expr, &data_type, name)?;
        }
        Ok(PlannerResult::Planned(expr))
    }
}

/// The function that takes this part of a date or time in the session's zone; DataFusion's `date_part` takes it
/// in UTC.
pub(super) fn part_of_date(part: &str) -> Option<&'static str> {
    Some(match part.to_ascii_lowercase().as_str() {
        "year" | "years" | "y" | "yr" | "yrs" => "year",
        "quarter" | "quarters" | "qtr" => "quarter",
        "month" | "months" | "mon" | "mons" => "month",
        "week" | "weeks" | "w" => "weekofyear",
        "day" | "days" | "d" => "day",
        "dayofweek" | "dow" => "dayofweek",
        "doy" => "dayofyear",
        "hour" | "hours" | "h" | "hr" | "hrs" => "hour",
        "minute" | "minutes" | "m" | "min" | "mins" => "minute",
        "second" | "seconds" | "s" | "sec" | "secs" => "second",
        _ => return None,
    })
}

/// True for an interval with hours or less, or one that is not constant.
fn has_time(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval.nanoseconds != 0,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(interval)), _) => interval.milliseconds != 0,
        Expr::Literal(ScalarValue::IntervalYearMonth(_), _) => false,
        Expr::Negative(interval) => has_time(interval),
        _ => true,
    }
}

/// Returns `parent.name` and its type; fields of structs are found without regard to case.
fn access(parent: Expr, data_type: &DataType, name: &str) -> Result<(Expr, DataType)> {
    match data_type {
        DataType::Struct(fields) => {
            let exact = fields.iter().find(|field| field.name() == name);
            let Some(field) = exact.or_else(|| fields.iter().find(|field| field.name().eq_ignore_ascii_case(name)))
            else {
                let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name())).collect();
                return plan_err!("struct has no field `{name}`; it has {}", names.join(", "));
            };
            Ok((get_field(parent, field.name().as_str()), field.data_type().clone()))
        }
        DataType::Map(entries, _) => {
            let value = match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => fields[1].data_type().clone(),
                _ => return plan_err!("a map without key and value"),
            };
            Ok((get_field(parent, name), value))
        }
        other => plan_err!("cannot take field `{name}` of {}", functions::type_name(other)),
    }
}

fn is_divided_as_double(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<bool> {
    let (left, right) = (left.get_type(schema)?, right.get_type(schema)?);
    let is_number = |t: &DataType| t.is_integer() || t.is_floating() || t.is_string() || t.is_null();
    Ok((is_number(&left) || left.is_decimal())
        && (is_number(&right) || right.is_decimal())
        && !(left.is_decimal() && (right.is_decimal() || right.is_integer()))
        && !(right.is_decimal() && left.is_integer()))
}
