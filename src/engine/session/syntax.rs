//! Spark's spellings that DataFusion's planner doesn't take, rewritten in the parsed statement: casts with
//! Spark's meaning, `struct(a, b)`, `count_if`, `max_by`, `explode`, `LIKE ANY`, `RLIKE`, names of columns
//! without alias.
//!
//! Not here: operators (`operators`), upper and lower case (`spelling`), functions that are only functions.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, DataType, DuplicateTreatment, ExactNumberInfo, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, GroupByExpr,
    GroupByWithModifier, Ident, NullTreatment, ObjectName, ObjectNamePart, OrderByExpr, OrderByKind, OrderByOptions,
    Query, Select, SelectItem, SetExpr, SetQuantifier, Spanned, Statement, UnaryOperator, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Span, Token};

use pipeline::parse::SparkDialect;

use super::plan::Places;
use super::plan_error::{PlanError, PlanErrorKind};

/// Reads a type (`ARRAY<STRING>`) or the fields of a struct (`a INT, b STRING`) as Spark's DDL has them.
///
/// # Errors
/// Text that is neither.
pub(crate) fn parse_data_type(ddl: &str) -> datafusion::error::Result<datafusion::arrow::datatypes::DataType> {
    let parse = |text: &str| {
        let mut parser = Parser::new(&SparkDialect).try_with_sql(text).ok()?;
        let parsed = parser.parse_data_type().ok()?;
        (parser.peek_token_ref().token == Token::EOF).then_some(parsed)
    };
    // `a INT` parses as the unknown type `a` followed by something.
    match parse(ddl).or_else(|| parse(&format!("STRUCT<{ddl}>"))) {
        Some(parsed) => super::types::required(&parsed),
        None => datafusion::common::plan_err!("cannot read the schema `{ddl}` (PARSE_SYNTAX_ERROR)"),
    }
}

/// Rewrites `statement` in place and returns what can't be run at all.
pub(super) fn rewrite(statement: &mut Statement, relations: &[String], places: &Places) -> Vec<PlanError> {
    let mut rewriter = Rewriter { relations, places, errors: Vec::new() };
    let ControlFlow::Continue(()) = statement.visit(&mut rewriter);
    rewriter.errors
}

struct Rewriter<'a> {
    /// Names of relations in lower case: what stands before the first dot of a column's name.
    relations: &'a [String],
    places: &'a Places<'a>,
    errors: Vec<PlanError>,
}

impl VisitorMut for Rewriter<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        self.group_by(&mut select.group_by);
        let items = std::mem::take(&mut select.projection);
        select.projection = items.into_iter().flat_map(|item| self.select_item(item)).collect();
        ControlFlow::Continue(())
    }

    /// `ORDER BY ALL` orders by every column of the select list, computed ones too.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        name_later_branches(&mut query.body);
        if let Some(order) = &mut query.order_by
            && let OrderByKind::All(options) = &order.kind
            && let SetExpr::Select(select) = &*query.body
            && !select.projection.iter().any(is_wildcard)
        {
            let options = *options;
            let by = |position: usize| OrderByExpr { expr: number(position), options, with_fill: None };
            order.kind = OrderByKind::Expressions((1..=select.projection.len()).map(by).collect());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.expr(expr);
        ControlFlow::Continue(())
    }
}

impl Rewriter<'_> {
    fn refuse(&mut self, range: Option<Range<usize>>, message: &str, help: &str) {
        self.errors.push(PlanError {
            kind: PlanErrorKind::Unsupported,
            message: message.to_string(),
            range,
            help: Some(help.to_string()),
            edit: None,
        });
    }

    /// `GROUP BY a, b WITH ROLLUP` is `GROUP BY ROLLUP (a, b)`; DataFusion would leave the modifier out.
    fn group_by(&mut self, group_by: &mut GroupByExpr) {
        let GroupByExpr::Expressions(expressions, modifiers) = group_by else { return };
        for modifier in std::mem::take(modifiers) {
            let sets = std::mem::take(expressions).into_iter().map(|expression| vec![expression]).collect();
            *expressions = vec![match modifier {
                GroupByWithModifier::Rollup => Expr::Rollup(sets),
                GroupByWithModifier::Cube => Expr::Cube(sets),
                GroupByWithModifier::GroupingSets(sets) => sets,
                GroupByWithModifier::Totals => {
                    self.refuse(None, "WITH TOTALS is not supported", "write `GROUP BY ROLLUP (…)`");
                    return;
                }
            }];
        }
    }

    /// Gives columns the names that Spark gives them, and spreads generators.
    fn select_item(&mut self, item: SelectItem) -> Vec<SelectItem> {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                match generator(&expr) {
                    Some((name, argument)) => {
                        let aliases: &[&str] = if name.starts_with("pos") { &["pos", "col"] } else { &["col"] };
                        let aliases: Vec<_> = aliases.iter().map(|alias| Ident::new(*alias)).collect();
                        self.generate(&name, &argument, &aliases, expr.span())
                    }
                    None => vec![self.name_of(&expr).map_or(SelectItem::UnnamedExpr(expr.clone()), |alias| {
                        SelectItem::ExprWithAlias { expr, alias }
                    })],
                }
            }
            SelectItem::ExprWithAlias { expr, alias } => match generator(&expr) {
                Some((name, argument)) => self.generate(&name, &argument, &[alias], expr.span()),
                None => vec![SelectItem::ExprWithAlias { expr, alias }],
            },
            SelectItem::ExprWithAliases { expr, aliases } => match generator(&expr) {
                Some((name, argument)) => self.generate(&name, &argument, &aliases, expr.span()),
                None => {
                    let range = self.places.range(expr.span());
                    self.refuse(
                        range,
                        "several names for one column",
                        "only `explode` of a map and `posexplode` give more than one column",
                    );
                    vec![SelectItem::UnnamedExpr(expr)]
                }
            },
            other => vec![other],
        }
    }

    /// The name of a column without alias; None where DataFusion's is right.
    fn name_of(&self, expr: &Expr) -> Option<Ident> {
        Some(match expr {
            Expr::Identifier(_) => return None,
            Expr::CompoundIdentifier(parts) => {
                let is_qualified = parts.len() == 2 && self.relations.contains(&parts[0].value.to_lowercase());
                if is_qualified {
                    return None;
                }
                Ident::new(parts.last()?.value.clone())
            }
            // `raw:owner.name` is called `name`.
            Expr::JsonAccess { path, .. } => {
                let text = path.to_string();
                let last = text.rsplit(['.', ':']).next().unwrap_or_default();
                Ident::new(last.trim_matches(|c: char| "[]'\"`".contains(c)))
            }
            other => Ident::new(other.to_string()),
        })
    }

    /// Replaces `explode(x)` and its kin by `unnest`.
    fn generate(&mut self, name: &str, argument: &Expr, aliases: &[Ident], span: Span) -> Vec<SelectItem> {
        let is_outer = name.ends_with("_outer");
        let unnest = |function: Option<&str>, alias: &Ident| {
            let mut array = match function {
                Some(function) => call(function, vec![argument.clone()]),
                None => argument.clone(),
            };
            if is_outer {
                array = call("array_or_null", vec![array]);
            }
            SelectItem::ExprWithAlias { expr: call("unnest", vec![array]), alias: alias.clone() }
        };
        match (name.trim_end_matches("_outer"), aliases) {
            ("explode", [alias]) => vec![unnest(Some("array_to_explode"), alias)],
            ("explode", [key, value]) => vec![unnest(Some("map_keys"), key), unnest(Some("map_values"), value)],
            ("posexplode", [position, value]) => {
                vec![unnest(Some("array_positions_from_zero"), position), unnest(Some("array_to_explode"), value)]
            }
            ("posexplode", [position, key, value]) => {
                let keys = call("map_keys", vec![argument.clone()]);
                let mut positions = call("array_positions_from_zero", vec![keys]);
                if is_outer {
                    positions = call("array_or_null", vec![positions]);
                }
                vec![
                    SelectItem::ExprWithAlias { expr: call("unnest", vec![positions]), alias: position.clone() },
                    unnest(Some("map_keys"), key),
                    unnest(Some("map_values"), value),
                ]
            }
            ("inline", _) => {
                let range = self.places.range(span);
                self.refuse(range, "`inline` is not supported", "use `explode` and take the fields: `item.name`");
                vec![]
            }
            (name, aliases) => {
                let range = self.places.range(span);
                let message = format!("`{name}` does not give {} columns", aliases.len());
                self.refuse(range, &message, "write `explode(array) AS item`, `explode(map) AS (key, value)`, `posexplode(array) AS (pos, item)` or `posexplode(map) AS (pos, key, value)`");
                vec![]
            }
        }
    }

    fn expr(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Cast { kind, expr: inner, data_type, format: None, array: false } => {
                let function = match data_type {
                    DataType::String(_) | DataType::Text => "string",
                    DataType::Date => "date",
                    DataType::Timestamp(None, _) => "timestamp",
                    _ => return,
                };
                let name = if *kind == CastKind::TryCast { format!("try_{function}") } else { function.to_string() };
                *expr = call_at(&name, vec![(**inner).clone()], inner.span());
            }
            // `DATE '2024-01-01'`, `TIMESTAMP '…'`
            Expr::TypedString(typed) => {
                let function = match typed.data_type {
                    DataType::Date => "date",
                    DataType::Timestamp(None, _) => "timestamp",
                    _ => return,
                };
                *expr = call(function, vec![Expr::Value(typed.value.clone())]);
            }
            // `f(x).field`: the planner wants the field's name as text.
            Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    if let AccessExpr::Dot(field) = access
                        && let Expr::Identifier(name) = field
                    {
                        *field = text(&name.value);
                    }
                }
            }
            Expr::UnaryOp { op: op @ UnaryOperator::BangNot, .. } => *op = UnaryOperator::Not,
            Expr::RLike { negated, expr: value, pattern, .. } => {
                let matched = call("regexp_like", vec![(**value).clone(), (**pattern).clone()]);
                *expr = if *negated { not(matched) } else { matched };
            }
            Expr::Like { negated, any, expr: value, pattern, escape_char } => {
                let patterns = match &**pattern {
                    Expr::Tuple(patterns) if *any => patterns.clone(),
                    Expr::Nested(pattern) if *any => vec![(**pattern).clone()],
                    other if *any => vec![other.clone()],
                    // sqlparser takes `ALL (…)` for a call.
                    other => match called("all", other) {
                        Some(patterns) => patterns,
                        None => return,
                    },
                };
                let op = if *any { BinaryOperator::Or } else { BinaryOperator::And };
                let joined = patterns
                    .into_iter()
                    .map(|pattern| Expr::Like {
                        negated: *negated,
                        any: false,
                        expr: value.clone(),
                        pattern: Box::new(pattern),
                        escape_char: escape_char.clone(),
                    })
                    .reduce(|left, right| Expr::BinaryOp {
                        left: Box::new(left),
                        op: op.clone(),
                        right: Box::new(right),
                    });
                if let Some(joined) = joined {
                    *expr = Expr::Nested(Box::new(joined));
                }
            }
            Expr::Struct { values, fields } if fields.is_empty() => *expr = named_struct(values),
            Expr::Function(function) => {
                if let Some(rewritten) = self.function(function) {
                    *expr = rewritten;
                }
            }
            _ => {}
        }
    }

    /// A function that is another function, or an aggregate with clauses.
    fn function(&mut self, function: &mut Function) -> Option<Expr> {
        let [ObjectNamePart::Identifier(ident)] = function.name.0.as_mut_slice() else { return None };
        let name = ident.value.to_ascii_lowercase();
        let span = ident.span;
        // Higher-order functions under Spark's names.
        let renamed = match name.as_str() {
            "filter" => Some("array_filter"),
            "transform" => Some("array_transform"),
            "exists" => Some("array_any_match"),
            _ => None,
        };
        if let Some(renamed) = renamed {
            ident.value = renamed.to_string();
            return None;
        }
        let FunctionArguments::List(list) = &mut function.args else { return None };
        let args = positional(list);
        match (name.as_str(), args.as_slice()) {
            ("struct", values) => return Some(named_struct(values)),
            ("count_if", [condition]) => {
                let counted = Expr::Case {
                    case_token: AttachedToken::empty(),
                    end_token: AttachedToken::empty(),
                    operand: None,
                    conditions: vec![CaseWhen {
                        condition: condition.clone(),
                        result: Expr::Value(Value::Number("1".into(), false).with_empty_span()),
                    }],
                    else_result: None,
                };
                function.name = object_name("count", span);
                list.args = vec![argument(counted)];
            }
            ("max_by" | "min_by", [value, by]) => {
                let is_max = name == "max_by";
                function.name = object_name(if is_max { "last_value" } else { "first_value" }, span);
                let order = OrderByExpr {
                    expr: by.clone(),
                    options: OrderByOptions { asc: Some(true), nulls_first: Some(is_max) },
                    with_fill: None,
                };
                let is_known = Expr::IsNotNull(Box::new(by.clone()));
                list.args = vec![argument(value.clone())];
                list.clauses.push(FunctionArgumentClause::OrderBy(vec![order]));
                function.filter = Some(Box::new(match function.filter.take() {
                    Some(filter) => Expr::BinaryOp { left: filter, op: BinaryOperator::And, right: Box::new(is_known) },
                    None => is_known,
                }));
            }
            ("first" | "first_value" | "any_value" | "last" | "last_value", [value, rest @ ..]) => {
                function.name = object_name(if name.starts_with("last") { "last_value" } else { "first_value" }, span);
                if let [Expr::Value(ignore)] = rest {
                    if ignore.value == Value::Boolean(true) {
                        function.null_treatment = Some(NullTreatment::IgnoreNulls);
                    }
                    let value = value.clone();
                    list.args = vec![argument(value)];
                }
            }
            ("percentile" | "percentile_approx" | "approx_percentile" | "percentile_cont", [value, at, ..])
                if function.within_group.is_empty() =>
            {
                let exact = matches!(name.as_str(), "percentile" | "percentile_cont");
                function.name = object_name(if exact { "percentile_cont" } else { "approx_percentile_cont" }, span);
                function.within_group = vec![OrderByExpr {
                    expr: value.clone(),
                    options: OrderByOptions { asc: None, nulls_first: None },
                    with_fill: None,
                }];
                list.args = vec![argument(as_double(at))];
            }
            ("int" | "integer", [value]) => return Some(cast(value.clone(), DataType::Int(None))),
            ("bigint", [value]) => return Some(cast(value.clone(), DataType::BigInt(None))),
            ("smallint", [value]) => return Some(cast(value.clone(), DataType::SmallInt(None))),
            ("tinyint", [value]) => return Some(cast(value.clone(), DataType::TinyInt(None))),
            ("double", [value]) => {
                return Some(cast(value.clone(), DataType::Double(ExactNumberInfo::None)));
            }
            ("float", [value]) => return Some(cast(value.clone(), DataType::Float(ExactNumberInfo::None))),
            ("boolean", [value]) => return Some(cast(value.clone(), DataType::Boolean)),
            ("binary", [value]) => return Some(cast(value.clone(), DataType::Binary(None))),
            // DataFusion counts these in unsigned numbers.
            ("row_number" | "rank" | "dense_rank" | "ntile", _) => return Some(counted(function, DataType::Int(None))),
            ("approx_count_distinct" | "approx_distinct" | "array_position", _) => {
                return Some(counted(function, DataType::BigInt(None)));
            }
            ("listagg", [_] | [_, _]) => {
                function.name = object_name("string_agg", span);
                if args.len() == 1 {
                    list.args.push(argument(text("")));
                }
            }
            ("zeroifnull", [value]) => return Some(call("coalesce", vec![value.clone(), number(0)])),
            ("date_part" | "datepart", [Expr::Value(part), moment]) => {
                let part = part.value.clone().into_string()?;
                let known = super::operators::part_of_date(&part)?;
                return Some(call_at(known, vec![moment.clone()], span));
            }
            // Spark has the array first.
            ("array_prepend", [array, element]) => {
                list.args = vec![argument(element.clone()), argument(array.clone())];
            }
            // Theirs take INT only, and DataFusion's whole numbers are BIGINT.
            ("space" | "factorial", [number]) => {
                list.args = vec![argument(cast(number.clone(), DataType::Int(None)))];
            }
            ("unix_timestamp", []) => list.args = vec![argument(call("now", vec![]))],
            ("isnull", [value]) => return Some(Expr::IsNull(Box::new(value.clone()))),
            ("isnotnull", [value]) => return Some(Expr::IsNotNull(Box::new(value.clone()))),
            ("explode" | "explode_outer" | "posexplode" | "posexplode_outer", _) => {
                let range = self.places.range(span);
                let message = format!("`{name}` is only allowed as a column of the select list");
                self.refuse(range, &message, "select it under a name first, in a subquery or WITH");
            }
            ("monotonically_increasing_id" | "rand" | "randn" | "spark_partition_id", _) => {
                let range = self.places.range(span);
                let message = format!("`{name}` is not supported: a batch that is run again would get other values");
                self.refuse(range, &message, "derive the value from the row, for example with `xxhash64(…)`");
            }
            ("input_file_name", _) => {
                let range = self.places.range(span);
                self.refuse(range, "`input_file_name` is not supported", "use `_metadata.file_path`");
            }
            _ => {}
        }
        None
    }
}

/// The arguments of a call of `name`.
fn called(name: &str, expr: &Expr) -> Option<Vec<Expr>> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    function.name.to_string().eq_ignore_ascii_case(name).then(|| positional(list))
}

/// The function's result in another type.
fn counted(function: &Function, data_type: DataType) -> Expr {
    cast(Expr::Function(function.clone()), data_type)
}

/// True if a set operation pairs columns by their names.
fn is_by_name(quantifier: SetQuantifier) -> bool {
    matches!(quantifier, SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName)
}

/// Gives a column whose name an earlier one has the name `name#position`, which no query can mean.
fn name_apart(items: &mut [SelectItem]) {
    let mut names: HashSet<String> = HashSet::new();
    for (at, item) in items.iter_mut().enumerate() {
        let (name, expr) = match item {
            SelectItem::UnnamedExpr(expr) => match &*expr {
                Expr::Identifier(name) => (name.value.clone(), expr.clone()),
                Expr::CompoundIdentifier(parts) => match parts.last() {
                    Some(name) => (name.value.clone(), expr.clone()),
                    None => continue,
                },
                other => (other.to_string(), expr.clone()),
            },
            SelectItem::ExprWithAlias { expr, alias } => (alias.value.clone(), expr.clone()),
            _ => continue,
        };
        if !names.insert(name.to_lowercase()) {
            *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('`', format!("{name}#{}", at + 1)) };
        }
    }
}

/// The first branch of a set operation names its columns, but DataFusion wants the names of every branch to differ:
/// `UNION ALL SELECT 7, 7`. Those that come again in a later branch are named by their position.
fn name_later_branches(body: &mut SetExpr) {
    fn name_all(branch: &mut SetExpr) {
        match branch {
            SetExpr::Select(select) => name_apart(&mut select.projection),
            SetExpr::Query(query) => name_all(&mut query.body),
            SetExpr::SetOperation { left, right, set_quantifier, .. } if !is_by_name(*set_quantifier) => {
                name_all(left);
                name_all(right);
            }
            _ => {}
        }
    }
    match body {
        SetExpr::SetOperation { left, right, set_quantifier, .. } if !is_by_name(*set_quantifier) => {
            name_later_branches(left);
            name_all(right);
        }
        _ => {}
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

fn number(value: usize) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).with_empty_span())
}

/// The name and argument of `explode(x)` and its kin.
fn generator(expr: &Expr) -> Option<(String, Expr)> {
    let Expr::Function(function) = expr else { return None };
    let name = function.name.to_string().to_ascii_lowercase();
    if !matches!(name.as_str(), "explode" | "explode_outer" | "posexplode" | "posexplode_outer" | "inline") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    match positional(list).as_slice() {
        [argument] => Some((name, argument.clone())),
        _ => None,
    }
}

/// The plain arguments of a call; empty if one of them is something else.
fn positional(list: &FunctionArgumentList) -> Vec<Expr> {
    let args: Option<Vec<Expr>> = list
        .args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        })
        .collect();
    args.unwrap_or_default()
}

/// `struct(a, b + 1 AS c)` → `named_struct('a', a, 'c', b + 1)`.
fn named_struct(values: &[Expr]) -> Expr {
    let mut args = Vec::with_capacity(values.len() * 2);
    for (i, value) in values.iter().enumerate() {
        let (name, value) = match value {
            Expr::Named { expr, name } => (name.value.clone(), (**expr).clone()),
            Expr::Identifier(ident) => (ident.value.clone(), value.clone()),
            Expr::CompoundIdentifier(parts) => {
                (parts.last().map(|part| part.value.clone()).unwrap_or_default(), value.clone())
            }
            other => (format!("col{}", i + 1), other.clone()),
        };
        args.push(text(&name));
        args.push(value);
    }
    call("named_struct", args)
}

fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_string()).with_empty_span())
}

fn as_double(expr: &Expr) -> Expr {
    cast(expr.clone(), DataType::Double(ExactNumberInfo::None))
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }
}

fn argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

fn object_name(name: &str, span: Span) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(Ident::with_span(span, name))])
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    call_at(name, args, Span::empty())
}

fn call_at(name: &str, args: Vec<Expr>, span: Span) -> Expr {
    Expr::Function(Function {
        name: object_name(name, span),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None::<DuplicateTreatment>,
            args: args.into_iter().map(argument).collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}
