//! The column list of `CREATE STREAMING TABLE`, `CREATE MATERIALIZED VIEW` and `CREATE VIEW`.
//!
//! ```text
//! list   := "(" item, … ")"
//! item   := column | CONSTRAINT name (EXPECT (…) [ON VIOLATION …] | PRIMARY KEY (…) | FOREIGN KEY (…) …)
//! column := name [type] [NOT NULL] [DEFAULT expr] [COMMENT 's'] [PRIMARY KEY] [REFERENCES …]
//!           [GENERATED …] [MASK …]
//! ```
//! A type is kept as written; `data_type.rs` reads it.

use sqlparser::parser::Parser;

use super::cursor::{Cursor, Parse, quote};
use super::dialect::SparkDialect;
use super::statement::not_supported_yet;
use super::token::TokenKind;
use crate::definition::{ColumnDefinition, DatasetKind};
use crate::diagnostic::Diagnostic;
use crate::text::Spanned;

/// Reads the list, if there is one.
pub(super) fn parse_columns(
    cursor: &mut Cursor<'_>,
    kind: DatasetKind,
    diagnostics: &mut Vec<Diagnostic>,
) -> Parse<Vec<ColumnDefinition>> {
    let mut columns: Vec<ColumnDefinition> = Vec::new();
    if !cursor.take_symbol("(") {
        return Ok(columns);
    }
    loop {
        if cursor.is_symbol(0, ")") {
            let error = cursor.expected("a column");
            return Err(Box::new(error.help(match columns.is_empty() {
                true => "remove the empty list: without one the columns come from the query",
                false => "remove the comma before `)`",
            })));
        }
        if is_table_constraint(cursor) {
            table_constraint(cursor, diagnostics)?;
        } else {
            let column = column(cursor, kind, diagnostics)?;
            if let Some(earlier) = columns.iter().find(|c| c.name.value.eq_ignore_ascii_case(&column.name.value)) {
                diagnostics.push(
                    Diagnostic::error(
                        "duplicate-column",
                        column.name.span,
                        format!("column `{}` is declared twice", column.name.value),
                    )
                    .reason("names are compared without regard to case")
                    .label(earlier.name.span, "first declared here"),
                );
            } else {
                columns.push(column);
            }
        }
        if cursor.take_symbol(")") {
            return Ok(columns);
        }
        if !cursor.take_symbol(",") {
            return Err(cursor.expected("`,` or `)` in the column list"));
        }
    }
}

fn column(cursor: &mut Cursor<'_>, kind: DatasetKind, diagnostics: &mut Vec<Diagnostic>) -> Parse<ColumnDefinition> {
    let name = cursor.identifier("the name of a column")?;
    let is_view = !kind.is_stored();
    let mut column = ColumnDefinition { name, data_type: None, is_nullable: true, default: None, comment: None };
    let type_first = cursor.at;
    skip_type(cursor)?;
    if cursor.at > type_first {
        let span = cursor.span_since(type_first);
        let start = cursor.tokens()[type_first].range.start;
        let written = cursor.str_of(start..cursor.offset_behind()).to_string();
        if is_view {
            diagnostics.push(
                Diagnostic::error("type-in-view", span, format!("column `{}` of a view has a type", column.name.value))
                    .reason("a view's columns have the types of its query")
                    .help("remove the type; to change it write a CAST in the query"),
            );
        } else {
            column.data_type = Some(Spanned::new(written, span));
        }
    } else if !is_view && !cursor.is_word(0, "GENERATED") {
        let found = cursor.expected(&format!("the type of column `{}`", column.name.value));
        return Err(Box::new(found.help("write a Spark type: BIGINT, STRING, TIMESTAMP, ARRAY<STRING>, …")));
    }
    while !cursor.is_at_end() && !cursor.is_symbol(0, ",") && !cursor.is_symbol(0, ")") {
        column_clause(cursor, &mut column, is_view, diagnostics)?;
    }
    Ok(column)
}

fn column_clause(
    cursor: &mut Cursor<'_>,
    column: &mut ColumnDefinition,
    is_view: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Parse<()> {
    let first = cursor.at;
    if cursor.take_word("COMMENT") {
        column.comment = Some(cursor.text("the comment in quotes")?.value);
        return Ok(());
    }
    if is_view {
        return Err(Box::new(
            cursor.expected("`COMMENT`, `,` or `)`").help("a column of a view has a name and a COMMENT, nothing else"),
        ));
    }
    if cursor.take_words(&["NOT", "NULL"]) {
        column.is_nullable = false;
    } else if cursor.take_word("NULL") {
        column.is_nullable = true;
    } else if cursor.take_word("DEFAULT") {
        column.default = Some(default_expression(cursor)?);
    } else if cursor.take_words(&["PRIMARY", "KEY"]) {
        let _ = skip_key_options(cursor);
        diagnostics.push(informational("PRIMARY KEY", cursor, first));
    } else if cursor.is_word(0, "REFERENCES") || cursor.are_words(&["FOREIGN", "KEY"]) {
        skip_clause(cursor)?;
        diagnostics.push(informational("REFERENCES", cursor, first));
    } else if cursor.is_word(0, "GENERATED") {
        skip_clause(cursor)?;
        let span = cursor.span_since(first);
        let is_identity = cursor.tokens()[first..cursor.at]
            .iter()
            .any(|token| cursor.str_of(token.range.clone()).eq_ignore_ascii_case("IDENTITY"));
        diagnostics.push(match is_identity {
            true => Diagnostic::error("identity-column", span, format!("column `{}` can't be an IDENTITY", column.name.value))
                .reason("several flows write one table, and a batch may be replayed after a crash: rows could not be numbered exactly once")
                .help("remove the clause; for a key that is the same after a replay use a hash such as `xxhash64(…)` of the row's own columns"),
            false => not_supported_yet(span, "GENERATED ALWAYS AS")
                .reason("flowbench would have to compute the column on every write")
                .help("compute the column in the query"),
        });
    } else if cursor.is_word(0, "MASK") {
        skip_clause(cursor)?;
        diagnostics.push(
            not_supported_yet(cursor.span_since(first), "MASK")
                .reason("flowbench has no users to hide values from")
                .help("leave the column out of a view made for others"),
        );
    } else if cursor.is_word(0, "CONSTRAINT") {
        table_constraint(cursor, diagnostics)?;
    } else if cursor.is_word(0, "COLLATE") {
        cursor.at += 1;
        let collation = cursor.identifier("the name of a collation")?;
        if !collation.value.eq_ignore_ascii_case("UTF8_BINARY") {
            diagnostics.push(not_supported_yet(collation.span, "a collation other than UTF8_BINARY"));
        }
    } else {
        let help = match cursor.is_word(0, "CHECK") {
            true => "a condition on rows is an expectation: `CONSTRAINT name EXPECT (condition)`",
            false => "behind the type stand NOT NULL, DEFAULT and COMMENT",
        };
        return Err(Box::new(cursor.expected("`,`, `)` or a clause of the column").help(help)));
    }
    Ok(())
}

const COLUMN_CLAUSES: [&str; 11] = [
    "NOT",
    "NULL",
    "DEFAULT",
    "COMMENT",
    "PRIMARY",
    "FOREIGN",
    "REFERENCES",
    "GENERATED",
    "MASK",
    "CONSTRAINT",
    "COLLATE",
];

fn starts_column_clause(cursor: &Cursor<'_>) -> bool {
    COLUMN_CLAUSES.iter().any(|word| cursor.is_word(0, word))
}

fn ends_column(cursor: &Cursor<'_>) -> bool {
    cursor.is_symbol(0, ",") || cursor.is_symbol(0, ")")
}

/// Passes over a type: a word, its `(precision, scale)`, its `<…>`.
fn skip_type(cursor: &mut Cursor<'_>) -> Parse<()> {
    if cursor.kind(0) != Some(TokenKind::Word) || starts_column_clause(cursor) {
        return Ok(());
    }
    cursor.at += 1;
    if cursor.is_symbol(0, "(") {
        cursor.parentheses()?;
    }
    if !cursor.is_symbol(0, "<") {
        return Ok(());
    }
    let open = cursor.here();
    let mut depth = 0usize;
    while !cursor.is_at_end() {
        match cursor.peek_str(0) {
            "<" => depth += 1,
            ">" => depth -= 1,
            "(" => {
                cursor.parentheses()?;
                continue;
            }
            ")" => break,
            _ => {}
        }
        cursor.at += 1;
        if depth == 0 {
            return Ok(());
        }
    }
    Err(Box::new(Diagnostic::error("syntax-error", open, "`<` is never closed").help("add the missing `>`")))
}

/// Passes over one clause, up to the next or the end of the column.
fn skip_clause(cursor: &mut Cursor<'_>) -> Parse<()> {
    cursor.at += 1;
    if cursor.is_word(0, "BY") && cursor.is_word(1, "DEFAULT") {
        cursor.at += 2;
    }
    cursor.skip_until(|c| ends_column(c) || starts_column_clause(c))
}

/// `NOT ENFORCED`, `RELY`, `DEFERRABLE`, … behind a key.
fn skip_key_options(cursor: &mut Cursor<'_>) -> Parse<()> {
    loop {
        if cursor.take_words(&["NOT", "ENFORCED"])
            || cursor.take_words(&["NOT", "DEFERRABLE"])
            || cursor.take_words(&["INITIALLY", "DEFERRED"])
            || cursor.take_word("RELY")
            || cursor.take_word("NORELY")
            || cursor.take_word("TIMESERIES")
        {
            continue;
        }
        return Ok(());
    }
}

fn default_expression(cursor: &mut Cursor<'_>) -> Parse<Spanned<String>> {
    let first = cursor.at;
    if cursor.is_word(0, "NOT") || cursor.is_word(0, "NULL") {
        cursor.at += 1;
    }
    loop {
        cursor.skip_until(|c| ends_column(c) || starts_column_clause(c))?;
        // `x IS NOT NULL` holds words that also start a clause.
        let follows_is = cursor.at > first && {
            let before = cursor.tokens()[cursor.at - 1].range.clone();
            ["IS", "NOT"].iter().any(|word| cursor.str_of(before.clone()).eq_ignore_ascii_case(word))
        };
        if follows_is && (cursor.is_word(0, "NOT") || cursor.is_word(0, "NULL")) {
            cursor.at += 1;
            continue;
        }
        break;
    }
    if cursor.at == first {
        return Err(cursor.expected("the DEFAULT value"));
    }
    let span = cursor.span_since(first);
    let sql = cursor.str_of(cursor.tokens()[first].range.start..cursor.offset_behind());
    let parsed = Parser::new(&SparkDialect).try_with_sql(sql).and_then(|mut parser| {
        parser.parse_expr()?;
        parser.expect_token(&sqlparser::tokenizer::Token::EOF)
    });
    match parsed {
        Ok(_) => Ok(Spanned::new(sql.to_string(), span)),
        Err(_) => Err(Box::new(
            Diagnostic::error("syntax-error", span, format!("{} is no expression", quote(sql)))
                .help("write a constant, or a function of constants: `DEFAULT 0`, `DEFAULT current_date()`"),
        )),
    }
}

fn is_table_constraint(cursor: &Cursor<'_>) -> bool {
    cursor.is_word(0, "CONSTRAINT")
        || (cursor.are_words(&["PRIMARY", "KEY"]) && cursor.is_symbol(2, "("))
        || (cursor.are_words(&["FOREIGN", "KEY"]) && cursor.is_symbol(2, "("))
}

fn table_constraint(cursor: &mut Cursor<'_>, diagnostics: &mut Vec<Diagnostic>) -> Parse<()> {
    let first = cursor.at;
    let name = match cursor.take_word("CONSTRAINT") {
        true => Some(cursor.identifier("the name of the constraint")?),
        false => None,
    };
    if cursor.is_word(0, "EXPECT") {
        cursor.at += 1;
        cursor.parentheses()?;
        if cursor.take_words(&["ON", "VIOLATION"])
            && !cursor.take_words(&["DROP", "ROW"])
            && !cursor.take_words(&["FAIL", "UPDATE"])
        {
            return Err(cursor.expected("`DROP ROW` or `FAIL UPDATE`"));
        }
        let name = name.map_or(String::new(), |name| format!(" `{}`", name.value));
        diagnostics.push(
            not_supported_yet(cursor.span_since(first), "CONSTRAINT … EXPECT")
                .reason(format!("nothing would check the expectation{name}"))
                .help("filter the rows in the query with WHERE, or remove the constraint"),
        );
        return Ok(());
    }
    if cursor.take_words(&["PRIMARY", "KEY"]) || cursor.take_words(&["FOREIGN", "KEY"]) {
        let start = cursor.at - 2;
        let what = cursor.str_of(cursor.tokens()[start].range.clone()).to_ascii_uppercase();
        if cursor.is_symbol(0, "(") {
            cursor.parentheses()?;
        }
        cursor.skip_until(|c| {
            ends_column(c) || starts_column_clause(c) && !c.is_word(0, "NOT") && !c.is_word(0, "REFERENCES")
        })?;
        diagnostics.push(informational(&format!("{what} KEY"), cursor, first));
        return Ok(());
    }
    let mut error = cursor.expected("`EXPECT`, `PRIMARY KEY` or `FOREIGN KEY`");
    if cursor.is_word(0, "CHECK") {
        error.help = Some("a condition on rows is an expectation: `CONSTRAINT name EXPECT (condition)`".to_string());
    }
    Err(error)
}

fn informational(what: &str, cursor: &Cursor<'_>, first: usize) -> Diagnostic {
    Diagnostic::note("informational-constraint", cursor.span_since(first), format!("{what} is not enforced"))
        .reason("as in Databricks it only tells readers what holds; rows that break it are written all the same")
}
