//! Takes out of a query's tokens what sqlparser doesn't read: `STREAM …`, `read_files(…)` and their like.
//!
//! ```text
//! stream  := STREAM (source | "(" source ")") [WITH "(" key "=" value, … ")"]
//! source  := name | call
//! call    := (read_files | cloud_files | read_stream | read_kafka | …) "(" argument, … ")"
//! argument := key "=>" value | path | format | map(key, value, …)
//! ```
//! Each becomes `__input_N`. Where a relation may stand is known from the keywords before it: a column may be
//! called `stream`.

use std::ops::Range;

use sqlparser::dialect::DatabricksDialect;
use sqlparser::parser::Parser;

use super::super::cursor::{Cursor, Parse, needs_backticks, quote};
use super::super::statement::not_supported_yet;
use super::super::token::{TokenKind, name_value, string_literal, string_value};
use crate::diagnostic::{Diagnostic, nearest};
use crate::name::Name;
use crate::query::{FilesCall, Input, InputSource, OptionValue, ReadOption};
use crate::text::{MappedText, Span, Spanned};

/// A query's text with `__input_N` where its streams and files were.
pub(super) struct Taken {
    pub sql: MappedText,
    pub inputs: Vec<TakenInput>,
    pub diagnostics: Vec<Diagnostic>,
    /// False if a call couldn't be read: the text behind it is as it was.
    pub is_complete: bool,
}

pub(super) struct TakenInput {
    pub input: Input,
    /// The name that columns are qualified with when the query gives no alias: `t` of `STREAM s.t`.
    pub alias: Option<String>,
}

/// Sources that Spark has and flowbench doesn't yet.
const UNBUILT_READERS: [&str; 5] = ["read_kafka", "read_kinesis", "read_pubsub", "read_pulsar", "read_state_store"];

/// Takes out streams and reader calls, and writes strings and intervals as DataFusion reads them.
pub(super) fn take_inputs(cursor: Cursor<'_>) -> Taken {
    let mut taker = Taker { cursor, edits: Vec::new(), inputs: Vec::new(), diagnostics: Vec::new() };
    let walked = taker.walk();
    let is_complete = walked.is_ok();
    taker.diagnostics.extend(walked.err().map(|error| *error));
    let sql = taker.cursor.text.replaced(&taker.edits);
    Taken { sql, inputs: taker.inputs, diagnostics: taker.diagnostics, is_complete }
}

/// What the keywords before a place say about it, one a level of parentheses.
#[derive(Clone, Copy, Default)]
struct Clause {
    /// Behind FROM or JOIN: a comma is followed by a relation.
    is_from: bool,
    /// The next token starts a relation.
    wants_relation: bool,
}

struct Taker<'a> {
    cursor: Cursor<'a>,
    edits: Vec<(Range<usize>, String)>,
    inputs: Vec<TakenInput>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Taker<'a> {
    fn walk(&mut self) -> Parse<()> {
        let mut clauses = vec![Clause::default()];
        while let Some(token) = self.cursor.peek(0) {
            let (kind, range) = (token.kind, token.range.clone());
            let word = self.cursor.str_of(range.clone());
            let depth = clauses.len();
            let clause = clauses.last_mut().expect("the last level is never left");
            let wants_relation = std::mem::take(&mut clause.wants_relation);
            match kind {
                TokenKind::Symbol => match word {
                    "(" => clauses.push(Clause { is_from: wants_relation, wants_relation }),
                    ")" if depth > 1 => {
                        clauses.pop();
                    }
                    "," => clause.wants_relation = clause.is_from,
                    _ => {}
                },
                TokenKind::Text => {
                    let value = string_value(word);
                    // DataFusion's Databricks dialect knows neither escapes nor raw strings.
                    if word.contains('\\') || word.starts_with(['r', 'R']) {
                        self.edits.push((range, string_literal(&value)));
                    }
                }
                TokenKind::Word if !word.is_ascii() => {
                    self.diagnostics.push(needs_backticks(self.cursor.span_of(range.clone()), word));
                    self.edits.push((range, format!("`{word}`")));
                }
                TokenKind::Word => match word.to_ascii_uppercase().as_str() {
                    "STREAM" if wants_relation && self.is_stream() => {
                        self.stream()?;
                        continue;
                    }
                    "WATERMARK" if clause.is_from && self.is_watermark() => {
                        self.watermark()?;
                        continue;
                    }
                    "INTERVAL" if self.interval() => continue,
                    // DataFusion knows the standard's words for these.
                    "MINUS" if ["SELECT", "ALL", "DISTINCT"].iter().any(|w| self.cursor.is_word(1, w)) => {
                        self.edits.push((range, "EXCEPT".to_string()));
                        *clause = Clause::default();
                    }
                    "SEMI" | "ANTI" if self.cursor.is_word(1, "JOIN") && !self.follows_side() => {
                        self.edits.push((range.start..range.start, "LEFT ".to_string()));
                    }
                    "FROM" => {
                        let is_comparison = self.cursor.at > 0 && {
                            let before = self.cursor.tokens()[self.cursor.at - 1].range.clone();
                            self.cursor.str_of(before).eq_ignore_ascii_case("DISTINCT")
                        };
                        if !is_comparison {
                            *clause = Clause { is_from: true, wants_relation: true };
                        }
                    }
                    "JOIN" => *clause = Clause { is_from: true, wants_relation: true },
                    "LATERAL" => clause.wants_relation = wants_relation,
                    "SELECT" | "WHERE" | "GROUP" | "HAVING" | "ORDER" | "LIMIT" | "QUALIFY" | "WINDOW" | "UNION"
                    | "INTERSECT" | "SORT" | "DISTRIBUTE" | "VALUES" => *clause = Clause::default(),
                    // `* EXCEPT (…)` stands behind SELECT, where this changes nothing.
                    "EXCEPT" => *clause = Clause::default(),
                    _ if is_reader(word) && self.cursor.is_symbol(1, "(") => {
                        if wants_relation {
                            self.reader(self.cursor.at, false)?;
                            continue;
                        }
                        if !word.eq_ignore_ascii_case("read_stream") {
                            self.diagnostics.push(
                                Diagnostic::error(
                                    "relation-as-value",
                                    self.cursor.span_of(range),
                                    format!("`{word}` gives a table, not a value"),
                                )
                                .help(format!("write it behind FROM: `SELECT … FROM {word}(…)`")),
                            );
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
            self.cursor.at += 1;
        }
        Ok(())
    }

    /// True behind LEFT or RIGHT.
    fn follows_side(&self) -> bool {
        let before = self.cursor.at.checked_sub(1).map(|i| self.cursor.tokens()[i].range.clone());
        before.is_some_and(|range| {
            ["LEFT", "RIGHT"].iter().any(|side| self.cursor.str_of(range.clone()).eq_ignore_ascii_case(side))
        })
    }

    /// Tells `STREAM t` and `STREAM(…)` from a table called `stream`.
    fn is_stream(&self) -> bool {
        match self.cursor.kind(1) {
            Some(TokenKind::QuotedName | TokenKind::Text) => true,
            Some(TokenKind::Symbol) => self.cursor.is_symbol(1, "("),
            Some(TokenKind::Word) => !FOLLOWS_A_TABLE.iter().any(|word| self.cursor.is_word(1, word)),
            _ => false,
        }
    }

    fn stream(&mut self) -> Parse<()> {
        let first = self.cursor.at;
        self.cursor.at += 1;
        let in_parentheses = self.cursor.take_symbol("(");
        if in_parentheses
            && (self.cursor.is_symbol(0, "(") || self.cursor.is_word(0, "SELECT") || self.cursor.is_word(0, "WITH"))
        {
            self.cursor.at -= 1;
            self.cursor.parentheses()?;
            return Err(Box::new(
                Diagnostic::error(
                    "stream-of-query",
                    self.cursor.span_since(first),
                    "STREAM takes a table or a call, not a query",
                )
                .help(
                    "put the query into a temporary view and write `STREAM view`, or move STREAM to the tables inside",
                ),
            ));
        }
        let word = self.cursor.peek_str(0);
        if self.cursor.kind(0) == Some(TokenKind::Word) && is_reader(word) && self.cursor.is_symbol(1, "(") {
            self.reader(first, true)?;
            if in_parentheses {
                self.cursor.expect_symbol(")")?;
                self.extend_last(first);
            }
            return self.stream_options(first);
        }
        if self.cursor.kind(0) == Some(TokenKind::Word)
            && self.cursor.is_symbol(1, "(")
            && !self.cursor.are_words(&["TABLE"])
        {
            let span = self.cursor.here();
            let mut error = Diagnostic::error(
                "unknown-table-function",
                span,
                format!("no table function {} can be read as a stream", quote(word)),
            );
            error = match nearest(word, ["read_files", "read_stream"]) {
                Some(near) => error.help(format!("did you mean `{near}`?")).edit(span, near),
                None => error.help("streams are read from tables and `read_files`"),
            };
            return Err(Box::new(error));
        }
        let name_first = self.cursor.at;
        let name = self.cursor.name("the name of a table or `read_files(…)`")?;
        let alias = self.cursor.str_of(self.cursor.tokens()[self.cursor.at - 1].range.clone()).to_string();
        let name = self.without_live(name, name_first);
        if in_parentheses {
            self.cursor.expect_symbol(")")?;
        }
        self.push(first, InputSource::Table(name), true, Vec::new(), Some(alias));
        self.stream_options(first)
    }

    /// `WITH (SKIPCHANGECOMMITS = TRUE, …)` behind a stream.
    fn stream_options(&mut self, first: usize) -> Parse<()> {
        if !(self.cursor.is_word(0, "WITH") && self.cursor.is_symbol(1, "(")) {
            return Ok(());
        }
        self.cursor.at += 2;
        let mut options = Vec::new();
        loop {
            let name = self.cursor.identifier("the name of an option")?;
            if !self.cursor.take_symbol("=") {
                self.cursor.take_symbol("=>");
            }
            let start = self.cursor.at;
            let value = self.value(start, self.argument_end(start))?;
            options.push(ReadOption { name: without_prefix(name), value });
            if !self.cursor.take_symbol(",") {
                break;
            }
        }
        self.cursor.expect_symbol(")")?;
        self.extend_last(first);
        let input = &mut self.inputs.last_mut().expect("the stream was just pushed").input;
        if let InputSource::Files(_) = input.source {
            return Err(Box::new(
                Diagnostic::error(
                    "options-twice",
                    self.cursor.span_since(first),
                    "`read_files` takes its options in its parentheses",
                )
                .help("write `STREAM read_files(path, option => value)`"),
            ));
        }
        input.options.extend(options);
        self.check_repetitions(self.inputs.len() - 1);
        Ok(())
    }

    /// Stands at the reader's name; `first` is the token that the input starts with.
    fn reader(&mut self, first: usize, stream: bool) -> Parse<()> {
        let reader = self.cursor.peek_str(0).to_ascii_lowercase();
        let name_span = self.cursor.here();
        self.cursor.at += 1;
        let arguments = self.arguments()?;
        if let Some(unbuilt) = UNBUILT_READERS.iter().find(|name| **name == reader) {
            self.diagnostics.push(
                not_supported_yet(name_span, unbuilt)
                    .reason("flowbench reads files and tables so far")
                    .help("land the messages as files and read them with `STREAM read_files(…)`"),
            );
            self.push(first, InputSource::Unsupported(reader), stream, Vec::new(), None);
            return Ok(());
        }
        let (source, options) = if reader == "read_stream" {
            let (name, options) = self.table_arguments(name_span, arguments)?;
            (InputSource::Table(name), options)
        } else {
            (InputSource::Files(self.files_arguments(name_span, &reader, arguments)?), Vec::new())
        };
        // `cloud_files` is Auto Loader, which knows no batch.
        let is_stream = stream || reader != "read_files";
        let alias = match &source {
            InputSource::Table(name) => Some(format!("`{}`", name.last().replace('`', "``"))),
            _ => None,
        };
        self.push(first, source, is_stream, options, alias);
        self.check_repetitions(self.inputs.len() - 1);
        Ok(())
    }

    /// The arguments between parentheses, each with its name if it has one.
    fn arguments(&mut self) -> Parse<Vec<Argument>> {
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
    fn argument_end(&self, start: usize) -> usize {
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
    fn value(&mut self, start: usize, end: usize) -> Parse<Spanned<OptionValue>> {
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
        let dialect = DatabricksDialect {};
        let parsed = Parser::new(&dialect).try_with_sql(taken.sql.as_str()).and_then(|mut parser| {
            parser.parse_expr()?;
            parser.expect_token(&sqlparser::tokenizer::Token::EOF)
        });
        match parsed {
            Ok(_) => Ok(taken.sql.as_str().to_string()),
            Err(error) => Err(super::syntax_error(&taken.sql, &error)),
        }
    }

    /// `read_stream("t", option => value)`.
    fn table_arguments(&mut self, call: Span, arguments: Vec<Argument>) -> Parse<(Name, Vec<ReadOption>)> {
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
    fn files_arguments(&mut self, call: Span, reader: &str, arguments: Vec<Argument>) -> Parse<FilesCall> {
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

    fn check_repetitions(&mut self, input: usize) {
        let options = match &self.inputs[input].input {
            Input { source: InputSource::Files(call), .. } => &call.options,
            input => &input.options,
        };
        for (i, option) in options.iter().enumerate() {
            if let Some(earlier) = options[..i].iter().find(|o| o.name.value.eq_ignore_ascii_case(&option.name.value)) {
                self.diagnostics.push(
                    Diagnostic::error(
                        "duplicate-option",
                        option.name.span,
                        format!("option `{}` is given twice", option.name.value),
                    )
                    .label(earlier.name.span, "first given here")
                    .help("keep one"),
                );
            }
        }
    }

    fn push(
        &mut self,
        first: usize,
        source: InputSource,
        stream: bool,
        options: Vec<ReadOption>,
        alias: Option<String>,
    ) {
        let name = format!("__input_{}", self.inputs.len());
        let range = self.cursor.tokens()[first].range.start..self.cursor.offset_behind();
        let span = self.cursor.span_of(range.clone());
        self.edits.push((range, name.clone()));
        self.inputs
            .push(TakenInput { input: Input { name, source, stream, options, span, uses_metadata: false }, alias });
    }

    /// The last input reaches up to here.
    fn extend_last(&mut self, first: usize) {
        let end = self.cursor.offset_behind();
        let span = self.cursor.span_since(first);
        if let (Some((range, _)), Some(taken)) = (self.edits.last_mut(), self.inputs.last_mut()) {
            range.end = end;
            taken.input.span = span;
        }
    }

    /// `LIVE.t` is `t`.
    fn without_live(&mut self, name: Spanned<Name>, first: usize) -> Name {
        let tokens = self.cursor.tokens();
        if let Some(next) = tokens.get(first + 2).filter(|_| name.value.parts.len() > 1) {
            let span = self.cursor.span_of(tokens[first].range.start..next.range.start);
            if let Some((bare, lint)) = strip_live(&name.value, name.span, span) {
                self.diagnostics.push(lint);
                return bare;
            }
        }
        name.value
    }

    fn is_watermark(&self) -> bool {
        (1..6).any(|ahead| self.cursor.is_word(ahead, "DELAY") && self.cursor.is_word(ahead + 1, "OF"))
    }

    /// `WATERMARK ts DELAY OF INTERVAL 10 MINUTES`: taken out, so that the rest is still checked.
    fn watermark(&mut self) -> Parse<()> {
        let first = self.cursor.at;
        self.cursor.skip_until(|c| c.is_word(0, "OF"))?;
        self.cursor.at += 1;
        self.cursor.take_word("INTERVAL");
        while self.interval_part(0).is_some() {
            self.cursor.at += 2;
        }
        if self.cursor.kind(0) == Some(TokenKind::Text) {
            self.cursor.at += 1;
        }
        let span = self.cursor.span_since(first);
        self.diagnostics.push(
            not_supported_yet(span, "WATERMARK")
                .reason("flowbench keeps no state between micro-batches yet, so a late row could not be told from a timely one")
                .help("remove it; aggregate in a materialized view, which sees all rows"),
        );
        let range = self.cursor.tokens()[first].range.start..self.cursor.offset_behind();
        self.edits.push((range, " ".to_string()));
        Ok(())
    }

    /// `INTERVAL '1 hour 30 minutes'`, `INTERVAL 1 HOUR 30 MINUTES`: DataFusion wants `INTERVAL '1' HOUR`.
    fn interval(&mut self) -> bool {
        let mut parts = Vec::new();
        let mut length = 1;
        if self.cursor.kind(1) == Some(TokenKind::Text) && unit(self.cursor.peek_str(2)).is_none() {
            let value = string_value(self.cursor.peek_str(1));
            let words: Vec<&str> = value.split_whitespace().collect();
            for pair in words.chunks(2) {
                let [number, name] = pair else { return false };
                let (Ok(_), Some(unit)) = (number.parse::<f64>(), unit(name)) else { return false };
                parts.push((number.to_string(), unit));
            }
            length = 2;
        } else {
            while let Some((number, unit, taken)) = self.interval_part(length) {
                parts.push((number, unit));
                length += taken;
            }
        }
        if parts.is_empty() {
            return false;
        }
        let sum: Vec<String> = parts.iter().map(|(number, unit)| interval_literal(number, unit)).collect();
        let range = self.cursor.offset()..self.cursor.tokens()[self.cursor.at + length - 1].range.end;
        let text = if sum.len() == 1 { sum.concat() } else { format!("({})", sum.join(" + ")) };
        self.edits.push((range, text));
        self.cursor.at += length;
        true
    }

    /// A number and its unit at the token `ahead`: their text and how many tokens they take.
    fn interval_part(&self, ahead: usize) -> Option<(String, &'static str, usize)> {
        let sign = usize::from(self.cursor.is_symbol(ahead, "-"));
        let number = match self.cursor.kind(ahead + sign)? {
            TokenKind::Number => self.cursor.peek_str(ahead + sign).to_string(),
            TokenKind::Text => string_value(self.cursor.peek_str(ahead + sign)),
            _ => return None,
        };
        number.trim().parse::<f64>().ok()?;
        let unit = unit(self.cursor.peek_str(ahead + sign + 1))?;
        let sign_text = if sign == 1 { "-" } else { "" };
        Some((format!("{sign_text}{}", number.trim()), unit, 2 + sign))
    }
}

/// An argument of a call: its name and the tokens of its value.
struct Argument {
    name: Option<Spanned<String>>,
    tokens: Range<usize>,
}

fn is_reader(word: &str) -> bool {
    ["read_files", "cloud_files", "read_stream"].iter().chain(&UNBUILT_READERS).any(|r| r.eq_ignore_ascii_case(word))
}

fn unexpected_argument(span: Span, wanted: &str) -> Diagnostic {
    Diagnostic::error("unexpected-argument", span, "this argument has no name").help(format!("name it: {wanted}"))
}

/// Auto Loader's options carry a prefix that `read_files` doesn't need.
fn without_prefix(name: Spanned<String>) -> Spanned<String> {
    const PREFIX: &str = "cloudFiles.";
    match name.value.get(..PREFIX.len()) {
        Some(prefix) if prefix.eq_ignore_ascii_case(PREFIX) => {
            Spanned::new(name.value[PREFIX.len()..].to_string(), name.span)
        }
        _ => name,
    }
}

/// Returns the name without `LIVE.` and the lint that offers to remove it; `prefix` is the place of `LIVE.`.
pub(in super::super) fn strip_live(name: &Name, span: Span, prefix: Span) -> Option<(Name, Diagnostic)> {
    let (first, rest) = name.parts.split_first()?;
    if !first.eq_ignore_ascii_case("LIVE") || rest.is_empty() {
        return None;
    }
    let bare = Name { parts: rest.to_vec() };
    let lint = Diagnostic::warning("legacy-live", span, format!("`LIVE.{bare}` is the legacy form of `{bare}`"))
        .reason("names of the pipeline need no prefix any more")
        .help(format!("write `{bare}`"))
        .edit(prefix, "");
    Some((bare, lint))
}

/// Arrow's intervals know no quarters.
fn interval_literal(number: &str, unit: &str) -> String {
    match number.parse::<i32>() {
        Ok(quarters) if unit == "QUARTER" => format!("INTERVAL '{}' MONTH", i64::from(quarters) * 3),
        _ => format!("INTERVAL '{number}' {unit}"),
    }
}

fn unit(word: &str) -> Option<&'static str> {
    const UNITS: [&str; 10] =
        ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"];
    let word = word.to_ascii_uppercase();
    let singular = word.strip_suffix('S').unwrap_or(&word);
    UNITS.into_iter().find(|unit| *unit == singular)
}

/// Words that may follow a table's name, so that a `stream` before them is one.
const FOLLOWS_A_TABLE: [&str; 33] = [
    "AS",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "QUALIFY",
    "WINDOW",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "MINUS",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "NATURAL",
    "SEMI",
    "ANTI",
    "ON",
    "USING",
    "LATERAL",
    "SORT",
    "CLUSTER",
    "DISTRIBUTE",
    "TABLESAMPLE",
    "PIVOT",
    "UNPIVOT",
    "VERSION",
    "TIMESTAMP",
    "WITH",
];
