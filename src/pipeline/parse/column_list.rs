//! Lists of columns in the clauses of AUTO CDC: plain names, or all but some.
//!
//! What is no plain name is reported, and the rest of the list is read on.

use super::change_clause::Clause;
use super::cursor::{Cursor, Parse, quote};
use super::token::TokenKind;
use crate::auto_cdc::ColumnSelection;
use crate::diagnostic::Diagnostic;
use crate::text::{Span, Spanned};

pub(super) fn selection(
    cursor: &mut Cursor<'_>,
    clause: &str,
    found: &mut Vec<Diagnostic>,
    is_complete: &mut bool,
) -> Parse<ColumnSelection> {
    if !cursor.take_symbol("*") {
        return Ok(ColumnSelection::On(names(cursor, "a column", clause, found, is_complete)?));
    }
    if !cursor.take_word("EXCEPT") {
        return Err(Box::new(
            cursor
                .expected("`EXCEPT`")
                .help(format!("write `{clause} * EXCEPT (column, …)`, or leave the clause out for all")),
        ));
    }
    Ok(ColumnSelection::Except(names(cursor, "a column", clause, found, is_complete)?))
}

/// `(a, b)` or `a, b`: plain names. What is none is reported, and the rest is read on.
pub(super) fn names(
    cursor: &mut Cursor<'_>,
    what: &str,
    clause: &str,
    found: &mut Vec<Diagnostic>,
    is_complete: &mut bool,
) -> Parse<Vec<Spanned<String>>> {
    let is_in_parentheses = cursor.take_symbol("(");
    let mut names: Vec<Spanned<String>> = Vec::new();
    if is_in_parentheses && cursor.take_symbol(")") {
        return Ok(names);
    }
    loop {
        match column_name(cursor, what, clause) {
            Ok(name) => match names.iter().find(|earlier| earlier.value.eq_ignore_ascii_case(&name.value)) {
                Some(earlier) => {
                    found.push(
                        Diagnostic::error(
                            "duplicate-column",
                            name.span,
                            format!("`{clause}` names `{}` twice", name.value),
                        )
                        .reason("column names are compared without regard to case")
                        .label(earlier.span, "first named here")
                        .help("remove one"),
                    );
                    *is_complete = false;
                }
                None => names.push(name),
            },
            Err(error) => {
                found.push(*error);
                *is_complete = false;
            }
        }
        if !cursor.take_symbol(",") {
            break;
        }
    }
    if is_in_parentheses {
        cursor.expect_symbol(")")?;
    }
    Ok(names)
}

/// One plain name; passes over what else stands there.
pub(super) fn column_name(cursor: &mut Cursor<'_>, what: &str, clause: &str) -> Parse<Spanned<String>> {
    let (first, start) = (cursor.at, cursor.offset());
    let name = cursor.identifier(&format!("the name of {what}"));
    let is_end =
        |c: &Cursor<'_>| c.is_symbol(0, ",") || c.is_symbol(0, ")") || c.is_at_end() || Clause::at(c).is_some();
    if is_end(cursor) && cursor.at > first {
        return name;
    }
    let mut parts: Vec<String> = name.as_ref().map(|name| vec![name.value.clone()]).unwrap_or_default();
    while name.is_ok()
        && cursor.is_symbol(0, ".")
        && matches!(cursor.kind(1), Some(TokenKind::Word | TokenKind::QuotedName))
    {
        cursor.at += 1;
        parts.push(cursor.identifier("the next part of the name")?.value);
    }
    let is_path = parts.len() > 1 && is_end(cursor);
    cursor.skip_until(|c| is_end(c))?;
    if cursor.at == first {
        return name;
    }
    let span = cursor.span_since(first);
    let written = cursor.str_of(start..cursor.offset_behind());
    let last = parts.last().cloned().unwrap_or_default();
    Err(Box::new(match is_path {
        true => Diagnostic::error(
            "multipart-column",
            span,
            format!("`{clause}` takes plain names, `{written}` has {} parts", parts.len()),
        )
        .condition("AUTOCDC_MULTIPART_COLUMN_IDENTIFIER")
        .reason("only whole columns of the source can stand here, without the name of a table or a field")
        .help(format!("write `{last}`; a name that holds a dot goes in backticks, as a whole")),
        false => match name {
            Err(error) if cursor.tokens()[first].kind == TokenKind::Text && cursor.at == first + 1 => *error,
            _ => Diagnostic::error("expression-as-column", span, format!("{} is no name of a column", quote(written)))
                .condition("AUTOCDC_NON_COLUMN_IDENTIFIER")
                .reason(format!("`{clause}` takes plain names of columns of the source, no expressions"))
                .help("compute it as a column in a temporary view, and read that"),
        },
    }))
}

/// The error for an empty list of `IGNORE NULL UPDATES ON`.
pub(super) fn empty_ignore_list(span: Span) -> Diagnostic {
    Diagnostic::error("empty-list", span, "the list of columns whose NULL is ignored is empty")
        .condition("AUTOCDC_IGNORE_NULL_EMPTY_COLUMN_LIST")
        .reason("an empty list would ignore no NULL at all")
        .help("leave the option out to turn it off, or name columns")
}

pub(super) fn not_empty(
    value: ColumnSelection,
    clause: &str,
    span: Span,
    found: &mut Vec<Diagnostic>,
    is_complete: &mut bool,
) -> Option<Spanned<ColumnSelection>> {
    if value.names().is_empty() {
        if *is_complete {
            found.push(
                Diagnostic::error("empty-list", span, format!("the list of `{clause}` is empty"))
                    .help("name columns, or leave the clause out"),
            );
        }
        *is_complete = false;
        return None;
    }
    Some(Spanned::new(value, span))
}
