//! A SQL file → its statements → definitions. `SET` and `USE` act on the statements behind them, in their
//! own file only.
//!
//! Not here: what a statement says (`statement.rs`) and the queries in it (`query.rs`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::cursor::{Cursor, Parse, quote};
use super::parameters::substitute;
use super::statement::{Statement, parse_apply_changes, parse_create};
use super::token::{TokenKind, string_value, tokenize};
use crate::byte_size::parse_byte_size;
use crate::definition::{Definition, FlowLimits, Scope};
use crate::diagnostic::{Diagnostic, Edit, nearest};
use crate::settings::Settings;
use crate::text::{FileId, MappedText, SourceFile, Span};

/// Reads the definitions of a SQL file. What is wrong with one statement never hides another.
pub fn sql_file(file: FileId, source: &SourceFile, settings: &Settings) -> (Vec<Definition>, Vec<Diagnostic>) {
    let mut reader = FileReader {
        settings,
        set: BTreeMap::new(),
        scope: Scope { catalog: settings.catalog.clone(), schema: settings.schema.clone() },
        limits: FlowLimits::default(),
        definitions: Vec::new(),
        diagnostics: Vec::new(),
    };
    for range in split_statements(&source.text) {
        reader.statement(MappedText::from_file(file, &source.text, range));
    }
    (reader.definitions, reader.diagnostics)
}

/// Returns the ranges between the `;` of a file, blanks and comments at both ends left out.
fn split_statements(text: &str) -> Vec<Range<usize>> {
    let (mut statements, mut current, mut at) = (Vec::new(), None::<Range<usize>>, 0);
    while at < text.len() {
        let mut resume_at = text.len();
        for token in tokenize(&text[at..]) {
            let range = token.range.start + at..token.range.end + at;
            if !token.is_closed || swallows_statements(&text[range.clone()]) {
                // What is never closed swallows the rest of the file; read on behind the `;` that most
                // likely ends its statement: one at the end of a line.
                if let Some(i) = text[range.clone()].find(";\n") {
                    resume_at = range.start + i + 1;
                    statements.push(current.take().map_or(range.start, |c| c.start)..resume_at - 1);
                    break;
                }
            }
            match token.kind {
                TokenKind::Symbol if &text[range.clone()] == ";" => statements.extend(current.take()),
                TokenKind::Comment if token.is_closed => {}
                _ => current = Some(current.map_or(range.start, |c| c.start)..range.end),
            }
        }
        at = resume_at;
    }
    statements.extend(current);
    statements
}

/// True for a string that goes over the end of a statement into the next one: its own closing quote is missing, and
/// it ends at the opening quote of another.
fn swallows_statements(token: &str) -> bool {
    token.starts_with(['\'', '"', '`'])
        && token.split(";\n").skip(1).any(|rest| {
            let word = rest.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
            ["CREATE", "SET", "USE"].iter().any(|statement| word.eq_ignore_ascii_case(statement))
        })
}

struct FileReader<'a> {
    settings: &'a Settings,
    /// `SET key = value`, from here on.
    set: BTreeMap<String, String>,
    scope: Scope,
    limits: FlowLimits,
    definitions: Vec<Definition>,
    diagnostics: Vec<Diagnostic>,
}

impl FileReader<'_> {
    fn statement(&mut self, raw: MappedText) {
        if let Some(unclosed) = unclosed(&raw) {
            self.diagnostics.push(unclosed);
            return;
        }
        let raw = self.without_comments(&raw);
        let known: Vec<&str> =
            self.set.keys().map(String::as_str).chain(self.settings.configuration.keys().map(String::as_str)).collect();
        let lookup = |name: &str| {
            self.set.get(name).cloned().or_else(|| self.settings.configuration.get(name).map(|value| value.text()))
        };
        let (text, missing) = substitute(&raw, &lookup, &known);
        let mut statement = Statement { definitions: Vec::new(), diagnostics: Vec::new() };
        // A value may close a quote that the text opens, or open one.
        match unclosed(&text) {
            Some(unclosed) => statement.diagnostics.push(unclosed),
            None => {
                if let Err(error) = self.read(&text, &mut statement) {
                    statement.diagnostics.push(*error);
                }
            }
        }
        if !missing.is_empty() {
            // `${name}` still stands in the text; that it is no SQL has been said better already.
            statement.diagnostics.retain(|d| d.code != "syntax-error");
        }
        // An edit over a `${name}` would put its value into the file.
        let parameters = parameter_spans(&raw);
        for diagnostic in &mut statement.diagnostics {
            let is_over = |edit: &Edit| parameters.iter().any(|p| edit.span.start < p.end && p.start < edit.span.end);
            if diagnostic.edit.as_ref().is_some_and(is_over) {
                diagnostic.edit = None;
            }
        }
        self.diagnostics.extend(missing);
        self.diagnostics.append(&mut statement.diagnostics);
        self.definitions.append(&mut statement.definitions);
    }

    /// Comments become blanks before `${name}` is looked for, so that none is needed for a comment's sake.
    fn without_comments(&mut self, raw: &MappedText) -> MappedText {
        let sql = raw.as_str();
        let mut edits = Vec::new();
        for token in tokenize(sql).into_iter().filter(|token| token.kind == TokenKind::Comment) {
            if sql[token.range.clone()].starts_with("/*+") {
                self.diagnostics.push(
                    Diagnostic::warning("hint-ignored", raw.origin(token.range.clone()), "a hint has no effect here")
                        .reason("flowbench leaves the choice of joins to DataFusion")
                        .help("remove the hint"),
                );
            }
            edits.push((token.range, " ".to_string()));
        }
        raw.replaced(&edits)
    }

    fn read(&mut self, text: &MappedText, statement: &mut Statement) -> Parse<()> {
        let mut cursor = Cursor::new(text);
        if cursor.is_at_end() {
            return Ok(());
        }
        match cursor.peek_str(0).to_ascii_uppercase().as_str() {
            "SET" if !cursor.is_word(1, "VAR") && !cursor.is_word(1, "VARIABLE") => self.set(cursor),
            "USE" => self.use_names(cursor),
            "CREATE" => parse_create(cursor, &self.scope, &self.limits, statement),
            "APPLY" if cursor.is_word(1, "CHANGES") => {
                parse_apply_changes(cursor, &self.scope, &self.limits, statement)
            }
            _ => Err(Box::new(unsupported_statement(&mut cursor))),
        }
    }

    /// `SET key = value`: the value is the text behind `=`, quotes and all, as Spark takes it.
    fn set(&mut self, mut cursor: Cursor<'_>) -> Parse<()> {
        cursor.expect_words(&["SET"])?;
        let key = cursor.name_of_setting()?;
        if !cursor.take_symbol("=") {
            return Err(Box::new(
                cursor
                    .expected("`=`")
                    .help("write `SET key = value;`; it holds for the statements behind it in this file"),
            ));
        }
        let range = cursor.offset()..cursor.end().max(cursor.offset());
        let value = cursor.str_of(range.clone()).trim().to_string();
        let span = cursor.span_of(range);
        if value.is_empty() {
            return Err(cursor.expected("a value"));
        }
        self.apply_setting(&key.value, key.span, &value, span);
        self.set.insert(key.value, value);
        Ok(())
    }

    fn apply_setting(&mut self, key: &str, key_span: Span, value: &str, value_span: Span) {
        let lower = key.to_ascii_lowercase();
        let bare = if value.starts_with(['\'', '"']) { string_value(value) } else { value.to_string() };
        let problem = match lower.as_str() {
            "pipelines.flow.threads" => match bare.parse().ok().filter(|threads| *threads > 0) {
                Some(threads) => {
                    self.limits.threads = Some(threads);
                    None
                }
                None => Some("a whole number from 1 on"),
            },
            "pipelines.flow.retries" => match bare.parse() {
                Ok(retries) => {
                    self.limits.retries = Some(retries);
                    None
                }
                Err(_) => Some("a whole number from 0 on"),
            },
            "pipelines.flow.memory" => match parse_byte_size(&bare).filter(|bytes| *bytes > 0) {
                Some(bytes) => {
                    self.limits.memory_bytes = Some(bytes);
                    None
                }
                None => Some("a size such as `512MB` or `2GB`"),
            },
            _ => {
                if lower.starts_with("pipelines.") || lower.starts_with("spark.") {
                    let mut warning = Diagnostic::warning(
                        "setting-has-no-effect",
                        key_span,
                        format!("`{key}` has no effect in flowbench"),
                    )
                    .reason("it configures Spark, which doesn't run here; only `${…}` sees the value");
                    warning = match nearest(&lower, FLOW_SETTINGS) {
                        Some(near) => warning.help(format!("did you mean `{near}`?")).edit(key_span, near),
                        None => warning.help(format!(
                            "remove it; flows take {}",
                            FLOW_SETTINGS.map(|s| format!("`{s}`")).join(", ")
                        )),
                    };
                    self.diagnostics.push(warning);
                }
                None
            }
        };
        if let Some(wanted) = problem {
            self.diagnostics.push(
                Diagnostic::error("bad-setting", value_span, format!("{} is no value for `{lower}`", quote(value)))
                    .help(format!("write {wanted}")),
            );
        }
    }

    /// `USE CATALOG c`, `USE [SCHEMA | DATABASE] [c.]s`.
    fn use_names(&mut self, mut cursor: Cursor<'_>) -> Parse<()> {
        cursor.expect_words(&["USE"])?;
        if cursor.take_word("CATALOG") {
            self.scope.catalog = Some(cursor.identifier("the name of a catalog")?.value);
            // The schema belonged to the catalog before.
            self.scope.schema.clone_from(&self.settings.schema);
        } else {
            let _ = cursor.take_word("SCHEMA") || cursor.take_word("DATABASE");
            let name = cursor.name("the name of a schema")?;
            match name.value.parts.as_slice() {
                [schema] => self.scope.schema.clone_from(schema),
                [catalog, schema] => {
                    self.scope = Scope { catalog: Some(catalog.clone()), schema: schema.clone() };
                }
                _ => {
                    return Err(Box::new(
                        Diagnostic::error("too-many-name-parts", name.span, "a schema's name has at most two parts")
                            .help("write `USE SCHEMA schema` or `USE SCHEMA catalog.schema`"),
                    ));
                }
            }
        }
        if cursor.is_at_end() { Ok(()) } else { Err(cursor.expected("the end of the statement")) }
    }
}

/// The settings of `SET` that flows take.
const FLOW_SETTINGS: [&str; 3] = ["pipelines.flow.threads", "pipelines.flow.memory", "pipelines.flow.retries"];

impl Cursor<'_> {
    /// `a.b.c` or the same in backticks; words may hold `-`.
    fn name_of_setting(&mut self) -> Parse<crate::text::Spanned<String>> {
        let first = self.at;
        let mut name = self.identifier("the name of a setting")?.value;
        while self.is_symbol(0, ".") || self.is_symbol(0, "-") {
            name.push_str(self.peek_str(0));
            self.at += 1;
            name.push_str(&self.identifier("the next part of the setting's name")?.value);
        }
        Ok(crate::text::Spanned::new(name, self.span_since(first)))
    }
}

fn parameter_spans(text: &MappedText) -> Vec<Span> {
    let sql = text.as_str();
    let ends = sql.match_indices("${").filter_map(|(start, _)| Some((start, start + sql[start..].find('}')? + 1)));
    ends.map(|(start, end)| text.origin(start..end)).collect()
}

/// The error for a quote or comment that the statement ends in.
fn unclosed(text: &MappedText) -> Option<Diagnostic> {
    let token = tokenize(text.as_str()).into_iter().find(|token| !token.is_closed)?;
    let opening = text.as_str()[token.range.clone()].chars().next().map_or(1, char::len_utf8);
    let length = if token.kind == TokenKind::Comment { 2 } else { opening };
    let span = text.origin(token.range.start..token.range.start + length);
    Some(match token.kind {
        TokenKind::Comment => Diagnostic::error("unclosed-comment", span, "this comment is never closed")
            .reason("`/* */` comments nest: each `/*` needs its own `*/`")
            .help("add the missing `*/`"),
        TokenKind::QuotedName => Diagnostic::error("unclosed-quote", span, "this quoted name is never closed")
            .help("add the missing backtick"),
        _ => Diagnostic::error("unclosed-quote", span, "this string is never closed")
            .reason("a quote opened here has no partner up to the end of the statement")
            .help("add the missing quote; inside a string write it twice, or with a backslash"),
    })
}

fn unsupported_statement(cursor: &mut Cursor<'_>) -> Diagnostic {
    let first = cursor.peek_str(0).to_ascii_uppercase();
    let kind = match first.as_str() {
        "INSERT" | "DROP" | "ALTER" | "REFRESH" | "SET" | "TRUNCATE" if cursor.kind(1) == Some(TokenKind::Word) => {
            cursor.at += 2;
            format!("{first} {}", cursor.str_of(cursor.tokens()[1].range.clone()).to_ascii_uppercase())
        }
        _ => {
            cursor.at += 1;
            first.clone()
        }
    };
    let span = cursor.span_since(0);
    let help = match first.as_str() {
        "SELECT" | "WITH" | "VALUES" => {
            "a file defines datasets: write `CREATE MATERIALIZED VIEW name AS …`; for a look at data use `flowbench sql \"…\"`"
        }
        "INSERT" => "rows come from flows: write `CREATE FLOW name AS INSERT INTO table BY NAME …`",
        "DROP" => "take the dataset's statement out of the files, then `flowbench drop NAME --yes` removes its table",
        "REFRESH" => "use `flowbench run --refresh NAME` or `--full-refresh NAME`",
        "ALTER" => "change the dataset's CREATE statement; the next update applies it",
        "DELETE" | "UPDATE" | "MERGE" | "TRUNCATE" => "say by a query what a table holds; files define, they don't act",
        _ => {
            "a file holds SET, USE, CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW, CREATE [TEMPORARY] VIEW and CREATE FLOW"
        }
    };
    unsupported(span, &kind, help)
}

/// The error for a statement that has no place in a pipeline.
pub(super) fn unsupported(span: Span, kind: &str, help: &str) -> Diagnostic {
    let kind = quote(kind);
    Diagnostic::error("unsupported-statement", span, format!("{kind} is no statement of a pipeline"))
        .condition("PIPELINE_SQL_GRAPH_ELEMENT_REGISTRATION_ERROR")
        .reason("the files say what should be there; the pipeline makes it so")
        .help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        let pieces = |text: &str| split_statements(text).into_iter().map(|r| text[r].to_string()).collect::<Vec<_>>();
        assert_eq!(pieces("a ; b;\n -- c;\n /* ; /* ; */ */ d ;;"), ["a", "b", "d"]);
        assert_eq!(pieces("SELECT ';' \";\" `;`; x"), ["SELECT ';' \";\" `;`", "x"]);
        assert_eq!(pieces("a 'open;\nb;\nc"), ["a 'open", "b", "c"]);
        assert_eq!(pieces("a 'open;\nCREATE b 'c' d;\ne"), ["a 'open", "CREATE b 'c' d", "e"]);
        assert_eq!(pieces("a 'one;\ntwo' b;\nc"), ["a 'one;\ntwo' b", "c"]);
        assert_eq!(pieces("/* open ; b"), ["/* open ; b"]);
    }
}
