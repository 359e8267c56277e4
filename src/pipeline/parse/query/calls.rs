//! The arguments of `read_files(…)` and its like.
//!
//! ```text
//! argument := key "=>" value | path | format | map(key, value, …)
//! ```

use std::ops::Range;

use sqlparser::parser::Parser;

use super::super::cursor::{Cursor, Parse, quote};
use super::super::dialect::SparkDialect;
use super::super::token::{TokenKind, name_value, string_literal, string_value};
use super::inputs::{Taker, take_inputs};
use crate::diagnostic::Diagnostic;
use crate::name::Name;
use crate::query::{FilesCall, OptionValue, ReadOption};
use crate::text::{Span, Spanned};

/// An argument of a call: its name and the tokens of its value.
pub(super) struct Argument {
    name: Option<Spanned<String>>,
    tokens: Range<usize>,
}

impl Taker<'_> {
    /// The arguments between parentheses, each with its name if it has one.
    pub(super) fn arguments(&mut self) -> Parse<Vec<Argument>> {
        let open = self.cursor.here();
        self.cursor.expect_symbol("(")?;
        let mut arguments = Vec::new();
        if self.cursor.take_symbol(")") {
            return Ok(arguments);
        }
        loop {
            let start = self.cursor.at;
            let end = self.argument_end(start);
            if end >= self.cursor.tokens().len() {
                return Err(Box::new(
                    Diagnostic::error("syntax-error", open, "`(` is never closed").help("add the missing `)`"),
                ));
            }
            if start == end {
                return Err(self.cursor.expected("an argument"));
            }
            let name = self.argument_name();
            let value_start = self.cursor.at;
            if value_start == end {
                return Err(self.cursor.expected("a value"));
            }
            if name.is_none() && self.cursor.is_symbol(1, "=") {
                return Err(Box::new(
                    self.cursor
                        .expected("`option => value`")
                        .help("named arguments take `=>`")
                        .edit(self.cursor.span_of(self.cursor.tokens()[self.cursor.at + 1].range.clone()), "=>"),
                ));
            }
            arguments.push(Argument { name, tokens: value_start..end });
            self.cursor.at = end;
            if self.cursor.take_symbol(")") {
                return Ok(arguments);
            }
            self.cursor.expect_symbol(",")?;
        }
    }

    /// `name =>`, where the name may be bare, in backticks, or dotted.
    fn argument_name(&mut self) -> Option<Spanned<String>> {
        let mut ahead = 0;
        let mut name = String::new();
        loop {
            if !matches!(self.cursor.kind(ahead), Some(TokenKind::Word | TokenKind::QuotedName)) {
                return None;
            }
            name.push_str(&name_value(self.cursor.peek_str(ahead)));
            if !self.cursor.is_symbol(ahead + 1, ".") {
                break;
            }
            name.push('.');
            ahead += 2;
        }
        if !self.cursor.is_symbol(ahead + 1, "=>") {
            return None;
        }
        let first = self.cursor.at;
        self.cursor.at += ahead + 1;
        let span = self.cursor.span_since(first);
        self.cursor.at += 1;
        Some(without_prefix(Spanned::new(name, span)))
    }

    /// The index of the `,` or `)` that ends the argument at token `start`, or the number of tokens.
    pub(super) fn argument_end(&self, start: usize) -> usize {
        let mut depth = 0usize;
        let tokens = self.cursor.tokens();
        for (i, token) in tokens.iter().enumerate().skip(start) {
            if token.kind != TokenKind::Symbol {
                continue;
            }
            match self.cursor.str_of(token.range.clone()) {
                "(" | "[" => depth += 1,
                ")" | "]" if depth == 0 => return i,
                ")" | "]" => depth -= 1,
                "," if depth == 0 => return i,
                _ => {}
            }
        }
        tokens.len()
    }

    /// A constant, or an expression that the engine computes; leaves the cursor behind it.
    pub(super) fn value(&mut self, start: usize, end: usize) -> Parse<Spanned<OptionValue>> {
        if start >= end {
            self.cursor.at = start;
            return Err(self.cursor.expected("a value"));
        }
        self.cursor.at = end;
        let tokens = &self.cursor.tokens()[start..end];
        let range = tokens[0].range.start..tokens[tokens.len() - 1].range.end;
        let text = self.cursor.str_of(range.clone());
        let span = self.cursor.span_of(range.clone());
        let is_signed = text.starts_with(['-', '+']) && tokens.len() == 2;
        let value = match (tokens[0].kind, tokens.len()) {
            (TokenKind::Text, 1) => OptionValue::Text(string_value(text)),
            (TokenKind::Number, 1) => OptionValue::Number(text.to_string()),
            _ if is_signed && tokens[1].kind == TokenKind::Number => {
                OptionValue::Number(text.trim_start_matches('+').replace(' ', ""))
            }
            (TokenKind::Word, 1) if text.eq_ignore_ascii_case("true") => OptionValue::Bool(true),
            (TokenKind::Word, 1) if text.eq_ignore_ascii_case("false") => OptionValue::Bool(false),
            (TokenKind::Word, 1) if text.eq_ignore_ascii_case("null") => {
                return Err(Box::new(
                    Diagnostic::error("bad-option-value", span, "an option can't be NULL")
                        .help("leave the option out for its default"),
                ));
            }
            (TokenKind::Word | TokenKind::QuotedName, 1) => {
                return Err(Box::new(
                    Diagnostic::error("bad-option-value", span, format!("{} is no constant", quote(text)))
                        .reason("options are read before there are rows, so a column has no value here")
                        .help("strings go in quotes")
                        .edit(span, string_literal(&name_value(text))),
                ));
            }
            _ => OptionValue::Expression(self.expression(range)?),
        };
        Ok(Spanned::new(value, span))
    }

    /// Checks that sqlparser reads the expression, and writes it as DataFusion does.
    fn expression(&self, range: Range<usize>) -> Parse<String> {
        let part = self.cursor.text.part(range);
        let taken = take_inputs(Cursor::new(&part));
        let parsed = Parser::new(&SparkDialect).try_with_sql(taken.sql.as_str()).and_then(|mut parser| {
            parser.parse_expr()?;
            parser.expect_token(&sqlparser::tokenizer::Token::EOF)
        });
        match parsed {
            Ok(_) => Ok(taken.sql.as_str().to_string()),
            Err(error) => Err(super::syntax_error(&taken.sql, &error)),
        }
    }

    /// `read_stream("t", option => value)`.
    pub(super) fn table_arguments(&mut self, call: Span, arguments: Vec<Argument>) -> Parse<(Name, Vec<ReadOption>)> {
        let (mut name, mut options) = (None, Vec::new());
        for argument in arguments {
            let end = self.cursor.at;
            let value = self.value(argument.tokens.start, argument.tokens.end)?;
            self.cursor.at = end;
            match (argument.name, &value.value) {
                (Some(option), _) => options.push(ReadOption { name: option, value }),
                (None, OptionValue::Text(text)) if name.is_none() => name = Some(Name::split(text)),
                (None, _) => {
                    return Err(Box::new(unexpected_argument(value.span, "`read_stream(\"table\", option => value)`")));
                }
            }
        }
        let name = name.ok_or_else(|| {
            Box::new(
                Diagnostic::error("missing-argument", call, "`read_stream` needs the name of a table")
                    .help("write `read_stream(\"table\")`, or `STREAM table`"),
            )
        })?;
        Ok((name, options))
    }

    /// `read_files(path, option => value)`, and the old `(path, format, map(key, value, …))`.
    pub(super) fn files_arguments(&mut self, call: Span, reader: &str, arguments: Vec<Argument>) -> Parse<FilesCall> {
        let (mut path, mut options) = (None, Vec::new());
        let end = self.cursor.at;
        for (position, argument) in arguments.into_iter().enumerate() {
            let tokens = argument.tokens;
            self.cursor.at = tokens.start;
            let is_map = argument.name.is_none() && self.cursor.is_word(0, "map") && self.cursor.is_symbol(1, "(");
            if is_map && position > 0 {
                self.cursor.at += 1;
                options.extend(self.map_options()?);
                continue;
            }
            let is_path = argument.name.as_ref().map_or(position == 0, |name| name.value.eq_ignore_ascii_case("path"));
            if is_path {
                let range =
                    self.cursor.tokens()[tokens.start].range.start..self.cursor.tokens()[tokens.end - 1].range.end;
                let span = self.cursor.span_of(range);
                if path.is_some() {
                    return Err(Box::new(
                        Diagnostic::error("duplicate-option", span, format!("`{reader}` got two paths"))
                            .help("keep one"),
                    ));
                }
                match self.cursor.kind(0) {
                    Some(TokenKind::Text) if tokens.len() == 1 => path = Some(self.cursor.text("a path")?),
                    _ => {
                        return Err(Box::new(
                            Diagnostic::error(
                                "path-not-constant",
                                span,
                                format!("the path of `{reader}` must be a string"),
                            )
                            .reason("the files are looked for before there are rows")
                            .help("write the path in quotes; `${name}` takes a part of it from [configuration]"),
                        ));
                    }
                }
                continue;
            }
            let value = self.value(tokens.start, tokens.end)?;
            match (argument.name, &value.value) {
                (Some(name), _) => options.push(ReadOption { name, value }),
                (None, OptionValue::Text(_)) if position == 1 => {
                    options.push(ReadOption { name: Spanned::new("format".to_string(), value.span), value });
                }
                (None, _) => {
                    let wanted = format!("`{reader}(path, option => value, …)`");
                    return Err(Box::new(unexpected_argument(value.span, &wanted)));
                }
            }
        }
        self.cursor.at = end;
        let path = path.ok_or_else(|| {
            Box::new(
                Diagnostic::error("missing-argument", call, format!("`{reader}` needs a path"))
                    .help(format!("write `{reader}(\"folder/*.json\", format => \"json\")`")),
            )
        })?;
        Ok(FilesCall { path, options })
    }

    /// `("key", "value", …)` behind `map`.
    fn map_options(&mut self) -> Parse<Vec<ReadOption>> {
        let whole = self.cursor.here();
        let arguments = self.arguments()?;
        let end = self.cursor.at;
        let mut options = Vec::new();
        for pair in arguments.chunks(2) {
            let [key, value] = pair else {
                return Err(Box::new(
                    Diagnostic::error("syntax-error", whole, "a map has a value for each key")
                        .help("write `map(\"key\", \"value\")`"),
                ));
            };
            self.cursor.at = key.tokens.start;
            let name = without_prefix(self.cursor.text("the name of an option in quotes")?);
            let value = self.value(value.tokens.start, value.tokens.end)?;
            options.push(ReadOption { name, value });
        }
        self.cursor.at = end;
        Ok(options)
    }
}

fn unexpected_argument(span: Span, wanted: &str) -> Diagnostic {
    Diagnostic::error("unexpected-argument", span, "this argument has no name").help(format!("name it: {wanted}"))
}

/// Auto Loader's options carry a prefix that `read_files` doesn't need.
pub(super) fn without_prefix(name: Spanned<String>) -> Spanned<String> {
    const PREFIX: &str = "cloudFiles.";
    match name.value.get(..PREFIX.len()) {
        Some(prefix) if prefix.eq_ignore_ascii_case(PREFIX) => {
            Spanned::new(name.value[PREFIX.len()..].to_string(), name.span)
        }
        _ => name,
    }
}
