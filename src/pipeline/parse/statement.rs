//! `CREATE …` → definitions. The query inside goes to `query/`.
//!
//! ```text
//! CREATE [OR REFRESH] [PRIVATE] STREAMING TABLE [IF NOT EXISTS] name [columns] clause… [AS query | FLOW flow]
//! CREATE [OR REFRESH] [PRIVATE] MATERIALIZED VIEW [IF NOT EXISTS] name [columns] clause… AS query
//! CREATE [OR REFRESH] [TEMPORARY] VIEW [IF NOT EXISTS] name [columns] clause… AS query
//! flow   := INSERT [ONCE] BY NAME query | AUTO CDC …
//! ```
//! Not here: columns (`columns.rs`), clauses (`clauses.rs`), `CREATE FLOW` (`flow.rs`), AUTO CDC (`auto_cdc.rs`).

use std::sync::Arc;

use super::clauses::{parse_clauses, unexpected_clause};
use super::columns::parse_columns;
use super::cursor::{Cursor, Parse};
use super::flow::refuse_replace_flows;
use super::query::{query, strip_live};
use super::sql_file::unsupported;
use super::token::TokenKind;
use crate::definition::{DatasetDefinition, DatasetKind, Definition, FlowLimits, Scope};
use crate::diagnostic::Diagnostic;
use crate::name::Name;
use crate::query::{InputSource, Query};
use crate::text::{Span, Spanned};

/// What came of a statement.
pub(super) struct Statement {
    pub definitions: Vec<Definition>,
    pub diagnostics: Vec<Diagnostic>,
}

/// The error for what parses and isn't built.
pub(super) fn not_supported_yet(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("not-supported-yet", span, format!("{} is not supported yet", quote_clause(what)))
}

/// Keywords are quoted like names; a description is not.
fn quote_clause(what: &str) -> String {
    let is_description =
        what.split(' ').next().is_some_and(|word| word.len() > 1 && word.chars().all(char::is_lowercase));
    if is_description { what.to_string() } else { format!("`{what}`") }
}

/// Reads a `CREATE` statement into `statement`; an error ends it, what was read before stays.
pub(super) fn parse_create(
    mut cursor: Cursor<'_>,
    scope: &Scope,
    limits: &FlowLimits,
    statement: &mut Statement,
) -> Parse<()> {
    let words = HeadWords::read(&mut cursor)?;
    let kind = cursor.peek_str(0).to_ascii_uppercase();
    if cursor.kind(0) != Some(TokenKind::Word) {
        return Err(cursor.expected("`STREAMING TABLE`, `MATERIALIZED VIEW`, `VIEW` or `FLOW`"));
    }
    cursor.at += 1;
    let head = Head { words, span: cursor.span_since(0), scope, limits };
    match kind.as_str() {
        "FLOW" => head.flow(cursor, statement),
        "TABLE" | "VIEW" => match head.dataset_kind(&kind) {
            Some(kind) => head.dataset(kind, cursor, statement),
            None => Err(Box::new(head.plain_table(&cursor))),
        },
        "MATERIALIZED" | "STREAMING" => Err(cursor.expected("`TABLE` or `VIEW`")),
        "SINK" => Err(Box::new(
            not_supported_yet(head.span, "CREATE SINK").help("write to a table, which other engines can read"),
        )),
        _ => Err(Box::new(unsupported(
            head.span,
            &format!("CREATE {kind}"),
            "create a STREAMING TABLE, MATERIALIZED VIEW, VIEW, TEMPORARY VIEW or FLOW",
        ))),
    }
}

/// Reads `APPLY CHANGES INTO …` into `statement`.
pub(super) fn parse_apply_changes(
    cursor: Cursor<'_>,
    scope: &Scope,
    limits: &FlowLimits,
    statement: &mut Statement,
) -> Parse<()> {
    Head { words: HeadWords::default(), span: cursor.here(), scope, limits }.apply_changes(cursor, statement)
}

/// The words between `CREATE` and the kind, each with its place.
#[derive(Default)]
pub(super) struct HeadWords {
    pub or_refresh: Option<Span>,
    pub or_replace: Option<Span>,
    pub private: Option<Span>,
    pub temporary: Option<Span>,
    pub streaming: Option<Span>,
    pub live: Option<Span>,
    pub materialized: Option<Span>,
}

impl HeadWords {
    fn read(cursor: &mut Cursor<'_>) -> Parse<HeadWords> {
        cursor.expect_words(&["CREATE"])?;
        let mut words = HeadWords::default();
        loop {
            let first = cursor.at;
            let is_or = cursor.take_word("OR");
            let word = cursor.peek_str(0).to_ascii_uppercase();
            let place = match (is_or, word.as_str()) {
                (true, "REFRESH") => &mut words.or_refresh,
                (true, "REPLACE") => &mut words.or_replace,
                (true, _) => return Err(cursor.expected("`REFRESH`")),
                (false, "PRIVATE") => &mut words.private,
                (false, "TEMPORARY" | "TEMP") => &mut words.temporary,
                (false, "STREAMING" | "INCREMENTAL") => &mut words.streaming,
                (false, "LIVE") => &mut words.live,
                (false, "MATERIALIZED") => &mut words.materialized,
                _ => return Ok(words),
            };
            if place.is_some() {
                return Err(Box::new(
                    Diagnostic::error("syntax-error", cursor.here(), format!("`{word}` is written twice"))
                        .help("remove one"),
                ));
            }
            cursor.at += 1;
            *place = Some(cursor.span_since(first));
        }
    }
}

/// A statement's head and what is in force where it stands.
pub(super) struct Head<'a> {
    pub words: HeadWords,
    /// `CREATE` to the kind.
    pub span: Span,
    pub scope: &'a Scope,
    pub limits: &'a FlowLimits,
}

impl Head<'_> {
    /// None for a plain `CREATE TABLE`.
    fn dataset_kind(&self, kind: &str) -> Option<DatasetKind> {
        let words = &self.words;
        match kind {
            "TABLE" if words.streaming.is_some() => Some(DatasetKind::StreamingTable),
            "TABLE" if words.live.is_some() => Some(DatasetKind::MaterializedView),
            "TABLE" => None,
            _ if words.materialized.is_some() => Some(DatasetKind::MaterializedView),
            _ if words.temporary.is_some() || words.live.is_some() => Some(DatasetKind::TemporaryView),
            _ => Some(DatasetKind::View),
        }
    }

    fn plain_table(&self, cursor: &Cursor<'_>) -> Diagnostic {
        let words: Vec<&str> = cursor.tokens().iter().map(|token| cursor.str_of(token.range.clone())).collect();
        let has_flow = words.windows(2).any(|pair| {
            pair[0].eq_ignore_ascii_case("FLOW")
                && ["INSERT", "AUTO", "REPLACE"].iter().any(|w| pair[1].eq_ignore_ascii_case(w))
        });
        if has_flow {
            return not_supported_yet(self.span, "CREATE TABLE … FLOW")
                .reason("managed tables with flows are a beta of Databricks")
                .help("write `CREATE STREAMING TABLE`");
        }
        let kind = if self.words.materialized.is_some() { "CREATE MATERIALIZED TABLE" } else { "CREATE TABLE" };
        unsupported(
            self.span,
            kind,
            "write `CREATE STREAMING TABLE` to append new rows, or `CREATE MATERIALIZED VIEW` to recompute all",
        )
    }

    fn dataset(&self, kind: DatasetKind, mut cursor: Cursor<'_>, statement: &mut Statement) -> Parse<()> {
        self.check_words(kind, &mut statement.diagnostics);
        let exists_first = cursor.at;
        if cursor.take_words(&["IF", "NOT", "EXISTS"]) && self.words.or_refresh.is_some() {
            statement.diagnostics.push(
                Diagnostic::error(
                    "refresh-and-if-not-exists",
                    cursor.span_since(exists_first),
                    "OR REFRESH and IF NOT EXISTS exclude each other",
                )
                .help("remove IF NOT EXISTS: a definition always means \"make sure it is there\"")
                .edit(cursor.span_since(exists_first), ""),
            );
        }
        let name = self.name(&mut cursor, &format!("the name of the {}", kind.words()), statement)?;
        let columns = parse_columns(&mut cursor, kind, &mut statement.diagnostics)?;
        let clauses = parse_clauses(kind, &mut cursor, &mut statement.diagnostics)?;
        let mut dataset = DatasetDefinition {
            kind,
            name,
            scope: self.scope.clone(),
            columns,
            comment: clauses.comment,
            partition_by: clauses.partition_by,
            cluster_by: clauses.cluster_by,
            properties: clauses.properties,
            is_private: self.words.private.is_some()
                || (kind != DatasetKind::TemporaryView && self.words.temporary.is_some()),
            query: None,
            change: None,
            is_once: false,
            is_legacy_live: self.words.live.is_some(),
            limits: self.limits.clone(),
            span: cursor.span_of(cursor.tokens()[0].range.start..cursor.end()),
        };
        let body = self.body(&mut dataset, &mut cursor, statement);
        statement.definitions.push(Definition::Dataset(dataset));
        body
    }

    /// `AS query`, `FLOW …` or nothing.
    fn body(&self, dataset: &mut DatasetDefinition, cursor: &mut Cursor<'_>, statement: &mut Statement) -> Parse<()> {
        let is_streaming_table = dataset.kind == DatasetKind::StreamingTable;
        if cursor.take_word("AS") {
            dataset.query = read_query(cursor, statement)?.map(Arc::new);
        } else if cursor.is_word(0, "FLOW") {
            let first = cursor.at;
            cursor.at += 1;
            if !is_streaming_table {
                return Err(Box::new(
                    Diagnostic::error(
                        "unexpected-clause",
                        cursor.span_since(first),
                        format!("a {} has no FLOW clause", dataset.kind.words()),
                    )
                    .help("write `AS query`"),
                ));
            }
            refuse_replace_flows(cursor)?;
            if cursor.are_words(&["AUTO", "CDC"]) {
                return self.default_change_flow(dataset, cursor, statement);
            }
            if cursor.are_words(&["APPLY", "CHANGES"]) {
                let legacy = cursor.span_of(cursor.offset()..cursor.tokens()[cursor.at + 1].range.end);
                return Err(Box::new(
                    cursor.expected("`AUTO CDC`").help("it is the form of today").edit(legacy, "AUTO CDC"),
                ));
            }
            if !cursor.take_word("INSERT") {
                return Err(cursor.expected("`INSERT BY NAME query` or `AUTO CDC FROM …`"));
            }
            dataset.is_once = cursor.take_word("ONCE");
            if cursor.is_word(0, "INTO") {
                return Err(Box::new(
                    cursor
                        .expected("`BY NAME`")
                        .help("behind FLOW the target is the table itself: `FLOW INSERT BY NAME query`"),
                ));
            }
            cursor.expect_words(&["BY", "NAME"])?;
            refuse_replace_flows(cursor)?;
            dataset.query = read_query(cursor, statement)?.map(Arc::new);
        } else if cursor.is_at_end() {
            if !is_streaming_table {
                return Err(Box::new(
                    cursor.expected("`AS query`").help(format!("a {} is defined by its query", dataset.kind.words())),
                ));
            }
        } else {
            return Err(Box::new(unexpected_clause(cursor, dataset.kind)));
        }
        if is_streaming_table
            && dataset.is_legacy_live
            && let Some(query) = &mut dataset.query
        {
            read_live_files_as_streams(Arc::make_mut(query), &mut statement.diagnostics);
        }
        Ok(())
    }

    /// Words of the head that don't fit, and the legacy ones with their modern form.
    fn check_words(&self, kind: DatasetKind, diagnostics: &mut Vec<Diagnostic>) {
        let words = &self.words;
        let kind_sql = match kind {
            DatasetKind::StreamingTable => "STREAMING TABLE",
            DatasetKind::MaterializedView => "MATERIALIZED VIEW",
            DatasetKind::View => "VIEW",
            DatasetKind::TemporaryView => "TEMPORARY VIEW",
        };
        if let Some(span) = words.or_replace {
            let error = Diagnostic::error("or-replace", span, format!("`CREATE OR REPLACE {kind_sql}` does not exist"))
                .condition("PIPELINE_SQL_GRAPH_ELEMENT_REGISTRATION_ERROR")
                .reason("a definition is not run once; each update brings the dataset to what it says");
            diagnostics.push(match kind.is_stored() {
                true => error.help("write OR REFRESH").edit(span, "OR REFRESH"),
                false => error.help("remove OR REPLACE").edit(span, ""),
            });
        }
        if let Some(span) = words.private.filter(|_| !kind.is_stored()) {
            diagnostics.push(
                Diagnostic::error("unexpected-clause", span, format!("a {} can't be PRIVATE", kind.words()))
                    .help("write TEMPORARY VIEW for a view that only the pipeline sees"),
            );
        }
        if let Some(span) = words.streaming.filter(|_| words.live.is_none() && kind != DatasetKind::StreamingTable) {
            diagnostics.push(
                Diagnostic::error("unexpected-clause", span, format!("a {} can't be STREAMING", kind.words())).help(
                    "a temporary view streams if its query reads `STREAM …`; for stored rows write STREAMING TABLE",
                ),
            );
        }
        let is_legacy_temporary = words.temporary.is_some() && kind != DatasetKind::TemporaryView;
        if words.live.is_some() || is_legacy_temporary {
            let is_private = words.private.is_some() || is_legacy_temporary;
            let refresh = if words.or_refresh.is_some() { "OR REFRESH " } else { "" };
            let private = if is_private { "PRIVATE " } else { "" };
            let modern = format!("CREATE {refresh}{private}{kind_sql}");
            diagnostics.push(
                Diagnostic::warning("legacy-live", self.span, format!("this is the legacy form of `{modern}`"))
                    .reason("LIVE and TEMPORARY tables are the spelling of Delta Live Tables")
                    .help(format!("write `{modern}`"))
                    .edit(self.span, modern),
            );
        }
    }

    /// The name of a dataset, without `LIVE.`.
    pub(super) fn name(&self, cursor: &mut Cursor<'_>, what: &str, statement: &mut Statement) -> Parse<Spanned<Name>> {
        for word in ["AS", "SELECT", "USING", "COMMENT"] {
            let is_name = cursor.is_symbol(1, ".") || cursor.is_word(1, "AS");
            if cursor.is_word(0, word) && !is_name {
                return Err(cursor.expected(what));
            }
        }
        let first = cursor.at;
        let name = cursor.name(what)?;
        if let (Some(next), true) = (cursor.tokens().get(first + 2), name.value.parts.len() > 1) {
            let prefix = cursor.span_of(cursor.tokens()[first].range.start..next.range.start);
            if let Some((bare, lint)) = strip_live(&name.value, name.span, prefix) {
                statement.diagnostics.push(lint);
                return Ok(Spanned::new(bare, name.span));
            }
        }
        Ok(name)
    }
}

/// The rest of the statement as a query.
pub(super) fn read_query(cursor: &mut Cursor<'_>, statement: &mut Statement) -> Parse<Option<Query>> {
    if cursor.is_at_end() {
        return Err(Box::new(cursor.expected("a query").help("write `SELECT …`")));
    }
    let text = cursor.text.part(cursor.offset()..cursor.end());
    let (query, diagnostics) = query(&text);
    statement.diagnostics.extend(diagnostics);
    Ok(query)
}

/// A LIVE streaming table reads files incrementally even without STREAM (behaviours B-12).
fn read_live_files_as_streams(query: &mut Query, diagnostics: &mut Vec<Diagnostic>) {
    if query.is_streaming() {
        return;
    }
    for input in query.inputs.iter_mut().filter(|input| matches!(input.source, InputSource::Files(_))) {
        input.stream = true;
        let start = Span { end: input.span.start, ..input.span };
        diagnostics.push(
            Diagnostic::warning("legacy-live", input.span, "`read_files` is read as a stream here without saying so")
                .reason("a STREAMING LIVE TABLE reads new files only; the modern form writes STREAM")
                .help("write `STREAM read_files(…)`")
                .edit(start, "STREAM "),
        );
    }
}
