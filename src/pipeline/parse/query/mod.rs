//! The text of a query → what DataFusion can plan, over named inputs.
//!
//! - `inputs.rs`: `STREAM …` and `read_files(…)`, which sqlparser doesn't know, are taken out of the tokens;
//!   `calls.rs`: their arguments; strings and intervals (`intervals.rs`) become what DataFusion reads
//! - `relations.rs`: what is left parses; every relation that is no CTE becomes an input too;
//!   `checks.rs`: what can't stand in a query
//! - `places.rs`: sqlparser's lines and columns → bytes
//!
//! Every step rewrites a [`MappedText`], so errors point at the user's own text whatever was replaced.
//! Not here: whether tables and columns exist (the graph and DataFusion know).

use std::ops::ControlFlow;

use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};

use super::cursor::{Cursor, quote};
use super::dialect::SparkDialect;
use super::token::{TokenKind, tokenize};
use crate::diagnostic::{Diagnostic, nearest};
use crate::query::{FilesCall, Input, InputSource, Query};
use crate::text::{MappedText, Span};

mod inputs;
mod calls;
mod intervals;
mod relations;
mod checks;
mod places;

use inputs::Taken;
pub(super) use inputs::strip_live;
use places::Places;

/// Operators in one expression, and parentheses in each other, that a query may have: its syntax tree is
/// walked by recursion, here and in DataFusion.
const OPERATORS_MAX: usize = 2_000;
const DEPTH_MAX: usize = 100;

/// Reads a query. `None` if it can't be planned at all; then there is an error among the diagnostics.
pub fn query(text: &MappedText) -> (Option<Query>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let text = &without_comments(text);
    let cursor = Cursor::new(text);
    if let Err(error) = check_start(&cursor).and_then(|()| check_size(&cursor)) {
        diagnostics.push(*error);
        return (None, diagnostics);
    }
    let statement_end = cursor.tokens().iter().position(|t| &text.as_str()[t.range.clone()] == ";");
    let text = match statement_end {
        Some(i) if i + 1 < cursor.tokens().len() => {
            let range = cursor.tokens()[i + 1].range.start..cursor.end();
            diagnostics.push(
                Diagnostic::error("several-statements", text.origin(range), "a second statement follows the query")
                    .help("keep one query"),
            );
            return (None, diagnostics);
        }
        Some(i) => &text.part(0..cursor.tokens()[i].range.start),
        None => text,
    };
    let cursor = Cursor::new(text);
    let span = text.origin(cursor.tokens().first().map_or(0, |t| t.range.start)..cursor.end());
    let fingerprint_text = fingerprint_text(text);
    let taken = inputs::take_inputs(cursor);
    diagnostics.extend(taken.diagnostics);
    if !taken.is_complete {
        return (None, diagnostics);
    }
    let parsed = match parse(&taken.sql) {
        Ok(parsed) => parsed,
        Err(error) => {
            // What was refused by name before may be what sqlparser stumbles over.
            if !diagnostics.iter().any(|d| d.code == "not-supported-yet" && d.is_error()) {
                diagnostics.push(*error);
            }
            return (None, diagnostics);
        }
    };
    let (sql, inputs) = relations::take_relations(&parsed, &taken.sql, taken.inputs, &mut diagnostics);
    (Some(Query { sql, inputs, span, fingerprint_text }), diagnostics)
}

/// Checks that `text` is one expression over the columns of a row, without a query in it, and returns the names in it:
/// of columns, fields and functions. `follows`: words that may stand behind it, to suggest one for what does.
///
/// # Errors
/// What it is not, at its place.
pub(super) fn expression(text: &MappedText, follows: &[&str]) -> Result<Vec<String>, Box<Diagnostic>> {
    let cursor = Cursor::new(text);
    check_size(&cursor)?;
    let Taken { sql, inputs, diagnostics, .. } = inputs::take_inputs(cursor);
    if let Some(wrong) = diagnostics.into_iter().find(Diagnostic::is_error) {
        return Err(Box::new(wrong));
    }
    let parsed = Parser::new(&SparkDialect).try_with_sql(sql.as_str()).and_then(|mut parser| {
        let parsed = parser.parse_expr()?;
        let next = parser.peek_token();
        Ok((parsed, (next.token != sqlparser::tokenizer::Token::EOF).then_some(next.span)))
    });
    let (parsed, rest) = parsed.map_err(|error| {
        let mut error = syntax_error(&sql, &error);
        error.message = error.message.replace("the query ends here", "the expression ends here");
        error
    })?;
    if let Some(rest) = rest {
        let range = Places::new(sql.as_str()).range(rest);
        let found = &sql.as_str()[range.clone()];
        let span = sql.origin(range);
        let error =
            Diagnostic::error("syntax-error", span, format!("{} doesn't continue the expression", quote(found)));
        return Err(Box::new(match nearest(found, follows.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")).edit(span, near),
            None => error.help("a keyword or operator is missing before it, or it is one word too many"),
        }));
    }
    let mut names = Vec::new();
    let has_query = ast::visit_expressions(&parsed, |part| {
        match part {
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => {
                return ControlFlow::Break(());
            }
            ast::Expr::Identifier(name) => names.push(name.value.clone()),
            ast::Expr::CompoundIdentifier(parts) => names.extend(parts.iter().map(|part| part.value.clone())),
            ast::Expr::Function(function) => names.push(function.name.to_string()),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    if has_query.is_break() || !inputs.is_empty() {
        let span = sql.origin(0..sql.as_str().trim_end().len());
        return Err(Box::new(
            Diagnostic::error("query-in-expression", span, "an expression of AUTO CDC holds no query")
                .reason("it is computed for each event from the columns of the source")
                .help("join in a temporary view, and name that as the source"),
        ));
    }
    Ok(names)
}

/// The query that gives all of the files of `call`, which stands at `span`.
pub(super) fn files_query(call: FilesCall, span: Span) -> Query {
    let name = "__input_0".to_string();
    let mut sql = MappedText::new();
    sql.push_replacement(&format!("SELECT * FROM {name}"), span);
    let options: Vec<String> = call
        .options
        .iter()
        .map(|option| format!(", {} => '{}'", option.name.value, option.value.value.text()))
        .collect();
    let fingerprint_text = format!("SELECT * FROM read_files ('{}'{})", call.path.value, options.concat());
    let source = InputSource::Files(call);
    let input = Input { name, source, stream: false, options: Vec::new(), span, name_span: None, uses_metadata: false };
    Query { sql, inputs: vec![input], span, fingerprint_text }
}

/// Comments become blanks.
pub(super) fn without_comments(text: &MappedText) -> MappedText {
    let comments = tokenize(text.as_str()).into_iter().filter(|token| token.kind == TokenKind::Comment);
    let edits: Vec<_> = comments.map(|token| (token.range, " ".to_string())).collect();
    if edits.is_empty() { text.clone() } else { text.replaced(&edits) }
}

/// A query starts with SELECT, WITH, VALUES or a parenthesis; anything else gets a better answer than
/// "expected SELECT".
fn check_start(cursor: &Cursor<'_>) -> Result<(), Box<Diagnostic>> {
    let mut ahead = 0;
    while cursor.is_symbol(ahead, "(") {
        ahead += 1;
    }
    if ["SELECT", "WITH", "VALUES"].iter().any(|word| cursor.is_word(ahead, word)) {
        return Ok(());
    }
    let Some(token) = cursor.peek(ahead) else {
        return Err(Box::new(cursor.expected("a query").help("write `SELECT …`")));
    };
    let (span, found) = (cursor.span_of(token.range.clone()), cursor.peek_str(ahead));
    let error = |message: String| Diagnostic::error("not-a-query", span, message);
    let words = [
        "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "COPY", "SET", "SHOW", "DESCRIBE", "EXPLAIN",
    ];
    let error = match found.to_ascii_uppercase().as_str() {
        "FROM" => error("a query starts with SELECT".to_string()).help("write `SELECT … FROM …`"),
        "TABLE" => error("`TABLE name` is not supported as a query".to_string()).help("write `SELECT * FROM name`"),
        word if words.contains(&word) => error(format!("`{word}` is not a query"))
            .reason("a dataset or flow is defined by what a query returns")
            .help("write SELECT, WITH or VALUES"),
        _ => {
            let error = error(format!("expected a query, found {}", quote(found)));
            match nearest(found, ["SELECT", "WITH", "VALUES"]) {
                Some(near) => error.help(format!("did you mean `{near}`?")).edit(span, near),
                None => error.help("write SELECT, WITH or VALUES"),
            }
        }
    };
    Err(Box::new(error))
}

/// Keeps the recursion over the syntax tree bounded.
fn check_size(cursor: &Cursor<'_>) -> Result<(), Box<Diagnostic>> {
    let text = cursor.text.as_str();
    let (mut depth, mut type_depth, mut operators, mut set_operations) = (0usize, 0usize, vec![0usize], 0usize);
    let too_complex = |token: &super::token::Token, what: String| {
        Box::new(
            Diagnostic::error("too-complex", cursor.span_of(token.range.clone()), what)
                .reason("reading it would need more stack than is safe")
                .help("split the query with CTEs or views; a long OR of equalities is shorter as `IN (…)`"),
        )
    };
    for (i, token) in cursor.tokens().iter().enumerate() {
        let word = &text[token.range.clone()];
        let count = operators.last_mut().expect("one is left when the last parenthesis is closed");
        match token.kind {
            TokenKind::Symbol => match word {
                "(" | "[" => {
                    depth += 1;
                    operators.push(0);
                }
                ")" | "]" => {
                    depth = depth.saturating_sub(1);
                    if operators.len() > 1 {
                        operators.pop();
                    }
                }
                "," => *count = 0,
                "<" => {
                    let opens_type = i.checked_sub(1).is_some_and(|before| {
                        let before = &text[cursor.tokens()[before].range.clone()];
                        ["ARRAY", "MAP", "STRUCT"].iter().any(|word| before.eq_ignore_ascii_case(word))
                    });
                    type_depth += usize::from(opens_type);
                    *count += 1;
                }
                ">" => {
                    type_depth = type_depth.saturating_sub(1);
                    *count += 1;
                }
                _ => *count += 1,
            },
            TokenKind::Word if ["SELECT", "FROM", "WHERE"].iter().any(|w| word.eq_ignore_ascii_case(w)) => *count = 0,
            TokenKind::Word
                if ["UNION", "EXCEPT", "INTERSECT", "MINUS"].iter().any(|w| word.eq_ignore_ascii_case(w)) =>
            {
                set_operations += 1;
            }
            TokenKind::Word
                if ["AND", "OR", "NOT", "IS", "LIKE", "BETWEEN", "IN", "CASE", "DIV"]
                    .iter()
                    .any(|w| word.eq_ignore_ascii_case(w)) =>
            {
                *count += 1;
            }
            _ => {}
        }
        if depth > DEPTH_MAX || type_depth > DEPTH_MAX {
            return Err(too_complex(token, format!("more than {DEPTH_MAX} levels of nesting")));
        }
        if *operators.last().expect("never empty") > OPERATORS_MAX || set_operations > OPERATORS_MAX {
            return Err(too_complex(token, format!("more than {OPERATORS_MAX} operators in one expression")));
        }
    }
    Ok(())
}

/// The tokens with one blank between them, so that neither layout nor comments count as a change.
fn fingerprint_text(text: &MappedText) -> String {
    let sql = text.as_str();
    let mut folded = String::with_capacity(sql.len());
    for token in tokenize(sql).into_iter().filter(|token| token.kind != TokenKind::Comment) {
        let word = &sql[token.range];
        let is_tight = folded.ends_with(['(', '.']) || matches!(word, "," | "." | ")");
        if !folded.is_empty() && !is_tight {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

fn parse(sql: &MappedText) -> Result<Box<ast::Query>, Box<Diagnostic>> {
    let text = sql.as_str();
    let mut parser = Parser::new(&SparkDialect).try_with_sql(text).map_err(|error| syntax_error(sql, &error))?;
    let query = parser.parse_query().map_err(|error| syntax_error(sql, &error))?;
    let next = parser.peek_token();
    if next.token == sqlparser::tokenizer::Token::EOF {
        return Ok(query);
    }
    let range = Places::new(text).range(next.span);
    let found = &text[range.clone()];
    let mut error = Diagnostic::error(
        "syntax-error",
        sql.origin(range.clone()),
        format!("{} doesn't continue the query", quote(found)),
    );
    let before = text[..range.start].trim_end();
    error = match found.to_ascii_uppercase().as_str() {
        ")" => error.help("remove it, or add the `(` it closes"),
        "WHERE" | "GROUP" | "HAVING" | "ORDER" | "LIMIT" | "QUALIFY" => error
            .reason("the clauses of a SELECT have one order")
            .help("write them as FROM, WHERE, GROUP BY, HAVING, QUALIFY, ORDER BY, LIMIT, each once"),
        _ if before.ends_with(',') => error.help("remove the comma before it"),
        word => match nearest(word, CLAUSES) {
            Some(near) if near != word => error.help(format!("did you mean `{near}`?")),
            _ => error.help("a comma, an operator or a keyword is missing before it, or it is one word too many"),
        },
    };
    Err(Box::new(error))
}

const CLAUSES: [&str; 14] = [
    "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "QUALIFY", "UNION", "JOIN", "LEFT", "RIGHT", "INNER",
    "GROUP", "ORDER",
];

/// sqlparser puts the place into the message's text: `…, found: x at Line: 1, Column: 8`.
fn syntax_error(sql: &MappedText, error: &ParserError) -> Box<Diagnostic> {
    let text = sql.as_str();
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message.as_str(),
        ParserError::RecursionLimitExceeded => {
            let end = text.trim_end().len();
            return Box::new(
                Diagnostic::error("too-complex", sql.origin(0..end), "the query nests too deeply to be read")
                    .help("split it with CTEs or views"),
            );
        }
    };
    let (message, place) = match message.rsplit_once(" at Line: ") {
        Some((message, place)) => (message, place.split_once(", Column: ")),
        None => (message, None),
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let offset = place
        .and_then(|(line, column)| Some(Places::new(text).offset(number(line)?, number(column)?)))
        .unwrap_or_else(|| text.trim_end().len());
    let token = tokenize(text).into_iter().find(|token| token.range.contains(&offset)).map(|token| token.range);
    let is_end = token.is_none();
    let end = text.trim_end().len();
    let range = token.unwrap_or(end..end);
    // This one message points at the token behind the one it means.
    let (range, is_end) = match message.strip_prefix("Expected an expression, found: ") {
        Some(word) => match text[..range.start].rfind(word) {
            Some(start) => (start..start + word.len(), false),
            None => (range, is_end),
        },
        None => (range, is_end),
    };
    let message = message.replace("Expected an expression, found", "Expected: an expression, found");
    let wanted = message.strip_prefix("Expected: ").and_then(|rest| rest.rsplit_once(", found: ")).map(|(w, _)| w);
    let found =
        if is_end { "the query ends here".to_string() } else { format!("found {}", quote(&text[range.clone()])) };
    let what = match wanted {
        Some(wanted) if !wanted.contains(char::is_lowercase) => format!("expected `{wanted}`, {found}"),
        Some(wanted) => format!("expected {}, {found}", wanted.trim_end_matches('.')),
        None => lower_first(message.trim_start_matches("sql parser error: ")),
    };
    let mut diagnostic = Diagnostic::error("syntax-error", sql.origin(range.clone()), what);
    let before = text[..range.start].trim_end();
    let word_before =
        before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_ascii_uppercase();
    let help = if before.ends_with(',') {
        Some("remove the comma before it".to_string())
    } else if wanted == Some(")") && !is_end {
        Some("a `(` before it is not closed".to_string())
    } else if is_end && message.contains("found: EOF") && before.matches('(').count() > before.matches(')').count() {
        Some("a `(` is not closed".to_string())
    } else if word_before == "SELECT" {
        Some("name the columns, or write `*`".to_string())
    } else if ["WHERE", "AND", "OR", "ON", "BY", "HAVING"].contains(&word_before.as_str()) {
        Some(format!("write what {word_before} needs, or remove it"))
    } else if !is_end && is_reserved(&text[range]) {
        Some("a column or table with the name of a keyword goes in backticks".to_string())
    } else {
        None
    };
    diagnostic.help = help;
    Box::new(diagnostic)
}

fn is_reserved(word: &str) -> bool {
    ["SELECT", "FROM", "WHERE", "GROUP", "ORDER", "BY", "JOIN", "ON", "AS", "UNION", "CASE", "WHEN", "THEN", "END"]
        .iter()
        .any(|keyword| keyword.eq_ignore_ascii_case(word))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::FileId;

    fn read(sql: &str) -> (Option<Query>, Vec<Diagnostic>) {
        query(&MappedText::from_file(FileId(0), sql, 0..sql.len()))
    }

    #[test]
    fn layout_and_comments_are_no_change_of_the_definition() {
        let folded = |sql: &str| read(sql).0.unwrap().fingerprint_text;
        let text = folded("SELECT a.b, f( x ) FROM STREAM t WHERE c = 'A  b'");
        assert_eq!(text, "SELECT a.b, f (x) FROM STREAM t WHERE c = 'A  b'");
        assert_eq!(folded("SELECT a.b,f(x)\n  FROM STREAM t -- note\n WHERE c='A  b';"), text);
        assert_ne!(folded("SELECT a.b, f(x) FROM STREAM t WHERE c = 'A b'"), text);
        assert_ne!(folded("SELECT a.b, f(x) FROM t WHERE c = 'A  b'"), text);
    }

    #[test]
    fn places_in_the_rewritten_text_lead_back_to_the_users() {
        let sql =
            "SELECT o.nam, 'é' FROM STREAM(LIVE.orders) AS o, read_files('x') f, sales.items WHERE items.colum > 1";
        let query = read(sql).0.unwrap();
        let text = query.sql.as_str();
        for (rewritten, written) in [
            ("o.nam", "o.nam"),
            ("__input_0", "STREAM(LIVE.orders)"),
            ("__input_1", "read_files('x')"),
            ("__input_2 AS items", "sales.items"),
            ("items.colum", "items.colum"),
        ] {
            let (at, start) = (text.find(rewritten).unwrap(), sql.find(written).unwrap());
            let span = Span::new(FileId(0), start..start + written.len());
            assert_eq!(query.sql.origin(at..at + rewritten.len()), span, "{rewritten} in {text}");
        }
    }

    #[test]
    fn one_query_is_wanted() {
        let code = |sql: &str| read(sql).1[0].code;
        assert_eq!(code("SELECT 1; SELECT 2"), "several-statements");
        assert_eq!(code("DROP TABLE t"), "not-a-query");
        assert_eq!(code(""), "syntax-error");
        assert_eq!(code("SELECT 1 FROM t SELECT 2"), "syntax-error");
        assert_eq!(read("SELECT 1 AS x;").1, []);
    }
}
