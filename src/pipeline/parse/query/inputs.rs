//! Takes out of a query's tokens what sqlparser doesn't read: `STREAM …`, `read_files(…)` and their like.
//!
//! ```text
//! stream  := STREAM (source | "(" source ")") [WITH "(" key "=" value, … ")"]
//! source  := name | call
//! call    := (read_files | cloud_files | read_stream | read_kafka | …) "(" argument, … ")"
//! ```
//! Each becomes `__input_N`. Where a relation may stand is known from the keywords before it: a column may be
//! called `stream`. Not here: what stands in the parentheses (`calls.rs`).

use std::ops::Range;

use super::super::cursor::{Cursor, Parse, needs_backticks, quote};
use super::super::statement::not_supported_yet;
use super::super::token::{TokenKind, string_literal, string_value};
use super::calls::without_prefix;
use crate::diagnostic::{Diagnostic, nearest};
use crate::name::Name;
use crate::query::{Input, InputSource, ReadOption};
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

pub(super) struct Taker<'a> {
    pub cursor: Cursor<'a>,
    pub edits: Vec<(Range<usize>, String)>,
    inputs: Vec<TakenInput>,
    diagnostics: Vec<Diagnostic>,
}

impl Taker<'_> {
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
                    // sqlparser knows neither raw strings nor all of Spark's escapes.
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
                    "SEMI" | "ANTI" if self.cursor.is_word(1, "JOIN") && !self.follows(&["LEFT", "RIGHT"]) => {
                        self.edits.push((range.start..range.start, "LEFT ".to_string()));
                    }
                    // `a IS DISTINCT FROM b` compares.
                    "FROM" if !self.follows(&["DISTINCT"]) => {
                        *clause = Clause { is_from: true, wants_relation: true };
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

    /// True if the token before the next is one of these.
    fn follows(&self, words: &[&str]) -> bool {
        let before = self.cursor.at.checked_sub(1).map(|i| self.cursor.tokens()[i].range.clone());
        before
            .is_some_and(|range| words.iter().any(|word| self.cursor.str_of(range.clone()).eq_ignore_ascii_case(word)))
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
        let tokens = self.cursor.tokens();
        let written = tokens[name_first].range.start..tokens[self.cursor.at - 1].range.end;
        if in_parentheses {
            self.cursor.expect_symbol(")")?;
        }
        self.push(first, InputSource::Table(name), true, Vec::new(), Some(alias));
        let name_span = self.cursor.text.copied(written);
        self.inputs.last_mut().expect("the stream was just pushed").input.name_span = name_span;
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
        Ok(())
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
        let input = Input { name, source, stream, options, span, name_span: None, uses_metadata: false };
        self.inputs.push(TakenInput { input, alias });
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
}

fn is_reader(word: &str) -> bool {
    ["read_files", "cloud_files", "read_stream"].iter().chain(&UNBUILT_READERS).any(|r| r.eq_ignore_ascii_case(word))
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
