//! SQL text over named inputs → logical plan, or everything that is wrong with it, each with its place in the
//! text.
//!
//! DataFusion reports one unknown name at a time; it is then blanked out (NULL) and the statement planned
//! again, so that the user sees all of them. Errors of types carry no place; it is found by blanking
//! expressions until the error goes away, the smallest first.
//!
//! Not here: places in the user's files; the caller maps ranges of the text back (`pipeline::text::MappedText`).

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Span};
use pipeline::parse::SparkDialect;
use pipeline::text::offset_of;
use regex::Regex;

use super::plan_error::{PlanError, PlanErrorKind, name_differently, other, quoted, unknown_column, unknown_function};
use super::spelling::{self, Mend, Target};
use super::words::{self, lower_first, plain};
use super::{flow_state, literals, syntax};

/// How many unknown names are reported at once.
const UNKNOWN_NAMES_MAX: usize = 50;

/// How many names may be respelled in a query; only a bug would reach it.
const RESPELLINGS_MAX: usize = 2000;

/// How deep expressions and queries may nest.
const RECURSION_LIMIT: usize = 128;

/// Lines and columns of the SQL text as bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a>(pub &'a str);

impl Places<'_> {
    /// None for the span of a node that was not parsed from the text.
    pub(super) fn range(&self, span: Span) -> Option<Range<usize>> {
        if span.start.line == 0 {
            return None;
        }
        let at = |line, column| offset_of(self.0, line as usize, column as usize);
        let start = at(span.start.line, span.start.column);
        let end = at(span.end.line, span.end.column).max(start);
        Some(start..self.close(start, end))
    }

    /// sqlparser ends a call before its closing parenthesis; this is the end behind it.
    fn close(&self, start: usize, end: usize) -> usize {
        let open = |text: &str| text.matches('(').count() as isize - text.matches(')').count() as isize;
        let mut depth = self.0.get(start..end).map_or(0, open);
        let mut closed = end;
        for (i, c) in self.0.get(end..).unwrap_or_default().char_indices() {
            match c {
                _ if depth <= 0 => break,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            closed = end + i + c.len_utf8();
        }
        // Parentheses in strings may not balance.
        if depth <= 0 { closed } else { end }
    }

    /// The last part of the name at `range`, if it is `name`.
    fn last_name(&self, range: Option<Range<usize>>, name: &str) -> Option<Range<usize>> {
        let range = range?;
        let written = self.0.get(range.clone())?;
        let quoted = format!("`{name}`");
        let length = if written.ends_with(&quoted) { quoted.len() } else { name.len() };
        let start = range.end.checked_sub(length)?;
        let last = self.0.get(start..range.end)?;
        let before = self.0.get(range.start..start)?;
        let is_name = last == quoted || last.eq_ignore_ascii_case(name);
        (is_name && (before.is_empty() || before.ends_with('.'))).then_some(start..range.end)
    }

    /// The first word of the text that is `name`.
    fn find(&self, name: &str) -> Option<Range<usize>> {
        self.find_pattern(&format!(r"\b{}\b", regex::escape(name)))
    }

    fn find_pattern(&self, pattern: &str) -> Option<Range<usize>> {
        let pattern = Regex::new(&format!("(?i){pattern}")).ok()?;
        pattern.find(self.0).map(|found| found.range())
    }
}

/// Plans `sql` over `inputs` and checks its types. The plan may be run by any session of the engine.
///
/// # Errors
/// All that is wrong with the query, at least one.
pub async fn plan(
    engine: &SessionContext,
    sql: &str,
    inputs: Vec<(String, Arc<dyn TableProvider>)>,
) -> Result<LogicalPlan, Vec<PlanError>> {
    PlanningSession::new(engine).plan(sql, inputs).await
}

/// A session for planning one query after another.
pub struct PlanningSession {
    state: SessionState,
    tables: Arc<MemorySchemaProvider>,
}

impl PlanningSession {
    /// A session with the functions and options of `engine`, and no tables.
    pub fn new(engine: &SessionContext) -> PlanningSession {
        let (state, tables) = flow_state(engine);
        PlanningSession { state, tables }
    }

    /// As [`plan`]: the inputs are known to this query only.
    ///
    /// # Errors
    /// All that is wrong with the query, at least one.
    pub async fn plan(
        &self,
        sql: &str,
        inputs: Vec<(String, Arc<dyn TableProvider>)>,
    ) -> Result<LogicalPlan, Vec<PlanError>> {
        let mut columns = Vec::new();
        let mut names = Vec::new();
        for (name, provider) in inputs {
            let name = name.to_lowercase();
            for field in provider.schema().fields() {
                columns.push(Column::new(Some(name.clone()), field.name()));
            }
            self.tables.register_table(name.clone(), provider).map_err(|e| vec![other(e.to_string())])?;
            names.push(name);
        }
        let planned = plan_over(&self.state, sql, columns).await;
        for name in names {
            self.tables.deregister_table(&name).map_err(|e| vec![other(e.to_string())])?;
        }
        planned
    }
}

/// Plans over the tables of a session, which have these columns.
async fn plan_over(state: &SessionState, sql: &str, columns: Vec<Column>) -> Result<LogicalPlan, Vec<PlanError>> {
    let places = Places(sql);
    let mut statement = parse(sql).map_err(|error| vec![*error])?;
    let relations = spelling::fold_relations(&mut statement);
    let aliases = spelling::select_aliases(&mut statement);
    let refused = syntax::rewrite(&mut statement, &relations, &places);
    if !refused.is_empty() {
        return Err(refused);
    }
    literals::rewrite(&mut statement);
    let known: Vec<Column> = columns.iter().chain(&aliases).cloned().collect();
    spelling::respell_lists(&mut statement, &known);
    let planner = Planner { state, places, columns, aliases };
    planner.plan(statement).await
}

/// Reads one query.
fn parse(sql: &str) -> Result<Statement, Box<PlanError>> {
    let syntax_error = |message: String| {
        static PLACE: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?i) ?at line: (\d+), column: (\d+)").expect("the pattern is constant"));
        let number = |i| PLACE.captures(&message).and_then(|found| found.get(i)?.as_str().parse::<usize>().ok());
        let range = number(1).zip(number(2)).map(|(line, column)| {
            let start = offset_of(sql, line, column);
            let word = sql[start..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(sql.len() - start);
            start..start + word.max(usize::from(start < sql.len()))
        });
        let range = range.filter(|range| sql.is_char_boundary(range.end));
        let message = PLACE.replace(&message, "").trim_start_matches("sql parser error: ").to_string();
        Box::new(PlanError {
            kind: PlanErrorKind::Syntax,
            message: lower_first(&message),
            range,
            help: None,
            edit: None,
        })
    };
    let parsed = Parser::new(&SparkDialect)
        .with_recursion_limit(RECURSION_LIMIT)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements());
    let mut statements = parsed.map_err(|error| syntax_error(error.to_string()))?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement @ Statement::Query(_)), true) => Ok(statement),
        (None, _) => Err(syntax_error("expected a query, found nothing".into())),
        _ => Err(syntax_error("expected one query".into())),
    }
}

struct Planner<'a> {
    state: &'a SessionState,
    places: Places<'a>,
    /// Of all inputs.
    columns: Vec<Column>,
    /// Of all select lists.
    aliases: Vec<Column>,
}

impl Planner<'_> {
    async fn plan(&self, mut statement: Statement) -> Result<LogicalPlan, Vec<PlanError>> {
        let mut errors: Vec<PlanError> = Vec::new();
        for _ in 0..RESPELLINGS_MAX {
            let failure = match self.attempt(&statement).await {
                Ok(plan) if errors.is_empty() => return Ok(plan),
                Ok(_) => return Err(errors),
                Err(failure) => failure,
            };
            let mut has_changed = false;
            for leaf in leaves(&failure) {
                match self.mend(&mut statement, &leaf) {
                    Mended::Respelled => has_changed = true,
                    Mended::Blanked(error) => {
                        has_changed = true;
                        if !errors.contains(&error) {
                            errors.push(error);
                        }
                    }
                    // What blanked names cause is not the user's error.
                    Mended::No(_) if !errors.is_empty() => {}
                    Mended::No(mut error) => {
                        if error.range.is_none() {
                            error.range = self.locate(&statement, &failure).await;
                        }
                        return Err(vec![error]);
                    }
                }
            }
            if !has_changed || errors.len() >= UNKNOWN_NAMES_MAX {
                break;
            }
        }
        if errors.is_empty() {
            errors.push(other("the names of this query can't be resolved".into()));
        }
        Err(errors)
    }

    /// Plans and checks types; nothing is optimised.
    async fn attempt(&self, statement: &Statement) -> Result<LogicalPlan, DataFusionError> {
        let statement = DFStatement::Statement(Box::new(statement.clone()));
        let plan = self.state.statement_to_plan(statement).await?;
        self.state.analyzer().execute_and_check(plan.clone(), &self.state.config_options().clone(), |_, _| {})?;
        Ok(plan)
    }

    fn mend(&self, statement: &mut Statement, leaf: &Leaf) -> Mended {
        if let DataFusionError::SchemaError(error, _) = leaf.error
            && let SchemaError::FieldNotFound { field, valid_fields } = &**error
        {
            let target = match leaf.span {
                Some(span) => Target::At(span.start.line, span.start.column),
                None => Target::Named(&field.name),
            };
            let known: Vec<Column> = match valid_fields.as_slice() {
                [] => self.columns.iter().chain(&self.aliases).cloned().collect(),
                valid => valid.iter().chain(&self.aliases).cloned().collect(),
            };
            if spelling::mend(statement, target, Mend::Respell(&known)) > 0 {
                return Mended::Respelled;
            }
            let range = leaf.span.and_then(|span| self.places.range(span)).or_else(|| self.places.find(&field.name));
            let mut error = unknown_column(field, &known, range);
            if let (Some((range, _)), Some(relation)) = (&error.edit, &field.relation)
                && self.places.0.get(range.clone()).is_none_or(|at| !at.eq_ignore_ascii_case(relation.table()))
            {
                error.edit = None;
            }
            if let PlanErrorKind::UnknownColumn { candidates, .. } = &error.kind
                && error.edit.is_none()
                && error.help.as_ref().is_some_and(|help| help.starts_with("did you mean"))
                && let Some(near) = candidates.first()
            {
                error.edit = self.places.last_name(error.range.clone(), &field.name).map(|at| (at, quoted(near)));
            }
            return match spelling::mend(statement, target, Mend::Blank) {
                0 => Mended::No(error),
                _ => Mended::Blanked(error),
            };
        }
        let error = self.describe(leaf);
        if matches!(error.kind, PlanErrorKind::UnknownFunction { .. })
            && let Some(span) = leaf.span
        {
            let whole = spelling::compound_expressions(statement)
                .into_iter()
                .map(|expression| expression.span)
                .find(|expression| expression.start == span.start);
            if let Some(whole) = whole {
                spelling::blank_expression(statement, whole);
                return Mended::Blanked(error);
            }
        }
        Mended::No(error)
    }

    /// An error without remedy, in words for the user.
    fn describe(&self, leaf: &Leaf) -> PlanError {
        static FUNCTION: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"Invalid function '([^']*)'").expect("the pattern is constant"));
        static TABLE: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?i)table '([^']*)' not found").expect("the pattern is constant"));
        let range = leaf.span.and_then(|span| self.places.range(span));
        let text = plain(leaf.error);
        if let Some(found) = FUNCTION.captures(&text) {
            let mut error = unknown_function(&found[1], range.or_else(|| self.places.find(&found[1])));
            if let (Some(range), PlanErrorKind::UnknownFunction { candidates, .. }) = (&error.range, &error.kind)
                && let Some(near) = candidates.first()
            {
                let end = range.start + found[1].len();
                let written = self.places.0.get(range.start..end);
                error.edit = written
                    .is_some_and(|written| written.eq_ignore_ascii_case(&found[1]))
                    .then(|| (range.start..end, near.clone()));
            }
            return error;
        }
        if let Some(found) = TABLE.captures(&text) {
            let name = found[1].rsplit('.').next().unwrap_or_default().to_string();
            let range = range.or_else(|| self.places.find(&name));
            let message = format!("unknown table: `{name}`");
            return PlanError { kind: PlanErrorKind::UnknownTable { name }, message, range, help: None, edit: None };
        }
        if let DataFusionError::SchemaError(error, _) = leaf.error
            && let SchemaError::AmbiguousReference { field } = &**error
        {
            let name = field.name.clone();
            let is_named = |column: &&Column| column.name.eq_ignore_ascii_case(&name);
            if self.columns.iter().filter(is_named).count() < 2 && self.aliases.iter().any(|alias| is_named(&alias)) {
                return PlanError {
                    message: format!("the query gives two columns named `{name}`"),
                    range: range.or_else(|| self.places.find(&name)),
                    help: Some(name_differently(&name)),
                    edit: None,
                    kind: PlanErrorKind::DuplicateColumn { name },
                };
            }
            return PlanError {
                message: format!("column `{name}` is in more than one relation"),
                range: range.or_else(|| self.places.find(&name)),
                help: Some(format!("write `relation.{name}`")),
                edit: None,
                kind: PlanErrorKind::AmbiguousColumn { name },
            };
        }
        let is_about_types = ["coerce", "signature", "type", "cast"].iter().any(|word| text.contains(word));
        let kind = match leaf.error {
            DataFusionError::NotImplemented(_) => PlanErrorKind::Unsupported,
            DataFusionError::Plan(_) | DataFusionError::ArrowError(..) if is_about_types => PlanErrorKind::TypeMismatch,
            _ => PlanErrorKind::Other,
        };
        let said = words::say(&text);
        let place = said.place.as_deref().and_then(|pattern| self.places.find_pattern(pattern));
        PlanError { kind, message: said.message, range: range.or(place), help: said.help, edit: None }
    }

    /// Finds the smallest expression without which the query doesn't fail in this way.
    async fn locate(&self, statement: &Statement, failure: &DataFusionError) -> Option<Range<usize>> {
        let failed_with = failure.to_string();
        let is_of_operation = failed_with.contains("arithmetic expression") || failed_with.contains("comparison");
        for expression in spelling::compound_expressions(&mut statement.clone()) {
            if is_of_operation && !expression.is_operation {
                continue;
            }
            let span = expression.span;
            let mut without = statement.clone();
            spelling::blank_expression(&mut without, span);
            let is_culprit = match self.attempt(&without).await {
                Ok(_) => true,
                Err(error) => error.to_string() != failed_with,
            };
            if is_culprit {
                return self.places.range(span);
            }
        }
        None
    }
}

enum Mended {
    Respelled,
    Blanked(PlanError),
    No(PlanError),
}

/// One error of a collection, and the place that DataFusion gave it.
struct Leaf<'a> {
    error: &'a DataFusionError,
    span: Option<Span>,
}

fn leaves(error: &DataFusionError) -> Vec<Leaf<'_>> {
    fn visit<'a>(error: &'a DataFusionError, span: Option<Span>, out: &mut Vec<Leaf<'a>>) {
        match error {
            DataFusionError::Collection(errors) => errors.iter().for_each(|error| visit(error, span, out)),
            DataFusionError::Context(_, inner) => visit(inner, span, out),
            DataFusionError::Shared(inner) => visit(inner, span, out),
            DataFusionError::Diagnostic(diagnostic, inner) => {
                let place = diagnostic.span.map(sql_span);
                visit(inner, place.or(span), out);
            }
            DataFusionError::SchemaError(schema_error, _) => {
                let place = match &**schema_error {
                    SchemaError::FieldNotFound { field, .. } | SchemaError::AmbiguousReference { field } => {
                        field.spans().first().map(sql_span)
                    }
                    _ => None,
                };
                out.push(Leaf { error, span: span.or(place) });
            }
            _ => out.push(Leaf { error, span }),
        }
    }
    let mut out = Vec::new();
    visit(error, None, &mut out);
    out
}

/// DataFusion's span as sqlparser's.
fn sql_span(span: datafusion::common::Span) -> Span {
    let location = |at: datafusion::common::Location| Location { line: at.line, column: at.column };
    Span { start: location(span.start), end: location(span.end) }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::datasource::MemTable;

    use super::*;
    use crate::session::tests::session_in;

    /// `t(id INT, eventTime STRING, tags ARRAY<STRING>, pos STRUCT<lat: INT>)`, `u(id INT, name STRING)`.
    fn inputs() -> Vec<(String, Arc<dyn TableProvider>)> {
        let t = Schema::new(vec![
            Field::new("id", DataType::Int32, true),
            Field::new("eventTime", DataType::Utf8, true),
            Field::new("raw", DataType::Utf8, true),
        ]);
        let t_rows = RecordBatch::try_new(
            Arc::new(t.clone()),
            vec![
                Arc::new(Int32Array::from(vec![1, 2, 2])),
                Arc::new(StringArray::from(vec!["2024-05-01 10:00:00", "2025-05-01 10:00:00", "2025-06-01 10:00:00"])),
                Arc::new(StringArray::from(vec![r#"{"a":{"b":1}}"#, r#"{"a":{"b":2}}"#, r#"{"a":{}}"#])),
            ],
        );
        let u = Schema::new(vec![Field::new("ID", DataType::Int32, true), Field::new("name", DataType::Utf8, true)]);
        let u_rows = RecordBatch::try_new(
            Arc::new(u.clone()),
            vec![Arc::new(Int32Array::from(vec![1, 2])), Arc::new(StringArray::from(vec!["one", "two"]))],
        );
        let table = |schema, rows| MemTable::try_new(Arc::new(schema), vec![vec![rows]]).unwrap();
        vec![
            ("t".into(), Arc::new(table(t, t_rows.unwrap())) as Arc<dyn TableProvider>),
            ("__input_0".into(), Arc::new(table(u, u_rows.unwrap()))),
        ]
    }

    async fn run(sql: &str) -> String {
        let session = session_in("UTC");
        let plan = match plan(&session, sql, inputs()).await {
            Ok(plan) => plan,
            Err(errors) => return format!("{errors:?}"),
        };
        let frame = session.execute_logical_plan(plan).await.unwrap();
        match frame.collect().await {
            Ok(batches) => {
                let table = pretty_format_batches(&batches).unwrap().to_string();
                let rows = table.lines().filter(|line| !line.starts_with('+'));
                let cells =
                    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(","));
                cells.collect::<Vec<_>>().join("\n")
            }
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn statements_mean_what_spark_means() {
        let cases = [
            // Names without regard to case; the output is spelled as the query spells it.
            ("SELECT ID FROM T WHERE EVENTTIME LIKE '2024%'", "ID\n1"),
            ("SELECT * EXCEPT (RAW) FROM t WHERE id = 1", "id,eventTime\n1,2024-05-01 10:00:00"),
            ("SELECT x.Id FROM t AS X WHERE X.ID = 1", "Id\n1"),
            ("SELECT `EventTime` FROM t WHERE id = 1", "EventTime\n2024-05-01 10:00:00"),
            ("WITH Cte AS (SELECT id AS Total FROM t) SELECT max(TOTAL) AS m FROM CTE", "m\n2"),
            ("SELECT id AS Key, count(*) AS n FROM t GROUP BY KEY ORDER BY key", "Key,n\n1,1\n2,2"),
            ("SELECT t.id, Name FROM t JOIN __input_0 u ON T.id = U.id WHERE u.NAME = 'one'", "id,Name\n1,one"),
            ("SELECT t.ID, u.name FROM t, __input_0 AS u WHERE t.id = u.id AND u.id = 1", "ID,name\n1,one"),
            // Statement features.
            ("SELECT id, count(*) AS n FROM t GROUP BY ALL ORDER BY id", "id,n\n1,1\n2,2"),
            (
                "SELECT id, eventTime FROM t QUALIFY row_number() OVER (PARTITION BY id ORDER BY eventTime DESC) = 1 ORDER BY id",
                "id,eventTime\n1,2024-05-01 10:00:00\n2,2025-06-01 10:00:00",
            ),
            ("SELECT count(*) AS n FROM t WHERE year(eventTime) >= '2025'", "n\n2"),
            (
                "SELECT count(*) AS n FROM t WHERE eventTime::timestamp + INTERVAL 1 HOUR > \"2025-05-01 10:30:00\"",
                "n\n2",
            ),
            ("SELECT id <=> NULL AS same FROM t LIMIT 1", "same\nfalse"),
            ("SELECT raw:a.b FROM t WHERE id = 1", "b\n1"),
            ("SELECT raw:a.b::int + 1 AS x FROM t WHERE id = 1", "x\n2"),
            ("SELECT s.Lat FROM (SELECT named_struct('lat', 5) AS s FROM t LIMIT 1)", "Lat\n5"),
            ("SELECT m.k AS v FROM (SELECT map('k', 7) AS m FROM t LIMIT 1)", "v\n7"),
            ("SELECT year(eventTime) FROM t WHERE id = 1", "year(eventTime)\n2024"),
            ("SELECT id + 1 FROM t WHERE id = 1", "id + 1\n2"),
            // Generators.
            ("SELECT id, explode(array(10, 20)) AS x FROM t WHERE id = 1", "id,x\n1,10\n1,20"),
            ("SELECT explode(array(1, 2)) FROM t WHERE id = 1", "col\n1\n2"),
            ("SELECT explode(map('a', 1, 'b', 2)) AS (k, v) FROM t WHERE id = 1", "k,v\na,1\nb,2"),
            ("SELECT posexplode(array('x', 'y')) FROM t WHERE id = 1", "pos,col\n0,x\n1,y"),
            ("SELECT id, explode(split('', 'x')) AS x FROM t WHERE id = 9", ""),
            ("SELECT id, explode_outer(filter(array(1), x -> x > 5)) AS x FROM t WHERE id = 1", "id,x\n1,"),
            ("SELECT count(*) AS n FROM (SELECT explode(filter(array(1), x -> x > 5)) AS x FROM t)", "n\n0"),
            // Aggregates.
            ("SELECT count_if(id = 2) AS n FROM t", "n\n2"),
            ("SELECT max_by(eventTime, id) = min_by(eventTime, id) AS same FROM t WHERE id = 1", "same\ntrue"),
            ("SELECT min_by(id, eventTime) AS x FROM t", "x\n1"),
            ("SELECT first(id) AS f, any_value(id, true) AS a FROM t WHERE id = 1", "f,a\n1,1"),
            ("SELECT percentile(id, 0.5) AS p, median(id) AS m FROM t", "p,m\n2.0,2.0"),
            ("SELECT approx_count_distinct(id) AS n FROM t", "n\n2"),
            ("SELECT every(id > 0) AS e, some(id > 1) AS s, bool_and(id > 1) AS b FROM t", "e,s,b\ntrue,true,false"),
            ("SELECT sort_array(collect_set(id)) AS s, size(collect_list(id)) AS n FROM t", "s,n\n[1, 2],3"),
            (
                "SELECT sum(id) AS s, avg(id) AS a, min(id) AS i, max(id) AS x FROM t",
                "s,a,i,x\n5,1.6666666666666667,1,2",
            ),
            ("SELECT sum(id) FILTER (WHERE id > 1) AS s FROM t", "s\n4"),
            ("SELECT col1 FROM VALUES (1), (2) AS v(col1) ORDER BY col1 DESC", "col1\n2\n1"),
            ("SELECT x FROM (SELECT CAST(NULL AS INT) AS x UNION ALL SELECT 1) ORDER BY x", "x\n\n1"),
        ];
        let mut wrong = Vec::new();
        for (sql, expected) in cases {
            let found = run(sql).await;
            if found != expected {
                wrong.push(format!("{sql}\n  expected {expected:?}\n  found    {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[tokio::test]
    async fn errors_point_at_the_text() {
        let session = session_in("UTC");
        // The query, and for each error its code, the text pointed at, and a word of its message or help.
        /// Text where the error is, code, message.
        type Found = (&'static str, &'static str, &'static str);
        let cases: &[(&str, &[Found])] = &[
            ("SELECT evntTime, id FROM t", &[("unknown-column", "evntTime", "eventTime")]),
            (
                "SELECT nope, id,\n  t.zilch FROM t WHERE missing > 1",
                &[
                    ("unknown-column", "nope", "id"),
                    ("unknown-column", "missing", ""),
                    ("unknown-column", "t.zilch", ""),
                ],
            ),
            ("SELECT yeer(eventTime) FROM t", &[("unknown-function", "yeer", "year")]),
            ("SELECT id FROM elsewhere", &[("unknown-table", "elsewhere", "elsewhere")]),
            ("SELECT id FROM t WHERE", &[("sql-syntax", "", "")]),
            ("SELECT id FROM t, __input_0 u WHERE name = 'x' AND ID = 1", &[]),
            ("SELECT id, make_date(id, 1) AS d FROM t", &[("type-mismatch", "make_date", "arguments")]),
            ("SELECT id FROM t WHERE array(1) + 1 > 2", &[("type-mismatch", "array(1) + 1", "")]),
            ("SELECT rand() FROM t", &[("unsupported-sql", "rand", "")]),
        ];
        let mut wrong = Vec::new();
        for (sql, expected) in cases {
            let errors = plan(&session, sql, inputs()).await.err().unwrap_or_default();
            let found: Vec<_> = errors
                .iter()
                .map(|error| {
                    let place = error.range.clone().and_then(|range| sql.get(range)).unwrap_or("");
                    (error.kind.code().0, place, format!("{} / {}", error.message, error.help.as_deref().unwrap_or("")))
                })
                .collect();
            let is_right = expected.is_empty()
                || (found.len() == expected.len()
                    && expected.iter().all(|(code, place, word)| {
                        found.iter().any(|(c, p, text)| c == code && p.starts_with(place) && text.contains(word))
                    }));
            if !is_right {
                wrong.push(format!("{sql}\n  expected {expected:?}\n  found    {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
