//! The clauses of AUTO CDC in SQL.
//!
//! ```text
//! AUTO CDC [ONCE] clause…
//! clause    := INTO [ONCE] target                                   not behind CREATE STREAMING TABLE … FLOW
//!            | FROM source | FROM SNAPSHOT (query) | WITH VERSION (query) | KEYS names
//!            | IGNORE NULL UPDATES [ON selection] | APPLY AS DELETE WHEN expr | APPLY AS TRUNCATE WHEN expr
//!            | SEQUENCE BY expr | COLUMNS selection | COLUMNS TO UPDATE name | STORED AS SCD TYPE (1 | 2)
//!            | TRACK HISTORY ON selection                           in any order, each once
//! source    := [STREAM] name | STREAM (name) | STREAM call, each with [WITH (option, …)]
//! names     := name, … | (name, …)
//! selection := names | * EXCEPT names
//! ```
//! `APPLY CHANGES INTO target clause…` is the legacy form.

use std::sync::Arc;

use super::change_spec::{ChangeSource, ChangeSpec, Syntax};
use super::cursor::{Cursor, Parse, quote};
use super::statement::{Head, Statement, not_supported_yet};
use super::token::TokenKind;
use crate::auto_cdc::{ColumnSelection, IgnoreNulls, ScdType};
use crate::definition::{DatasetDefinition, Definition, FlowDefinition};
use crate::diagnostic::{Diagnostic, nearest};
use crate::name::Name;
use crate::text::{MappedText, Span, Spanned};

/// A flow's clauses and the target that they name.
pub(super) struct ChangeClauses {
    pub spec: ChangeSpec,
    pub target: Option<Spanned<Name>>,
}

/// A clause, by the words that it starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    Into,
    Snapshot,
    From,
    WithVersion,
    Keys,
    IgnoreNullUpdates,
    ApplyAsDelete,
    ApplyAsTruncate,
    SequenceBy,
    SystemSequenceBy,
    ColumnsToUpdate,
    Columns,
    StoredAs,
    TrackHistory,
}

/// Longer ones before those they begin with.
const CLAUSES: [(Clause, &[&str]); 14] = [
    (Clause::Into, &["INTO"]),
    (Clause::Snapshot, &["FROM", "SNAPSHOT"]),
    (Clause::From, &["FROM"]),
    (Clause::WithVersion, &["WITH", "VERSION"]),
    (Clause::Keys, &["KEYS"]),
    (Clause::IgnoreNullUpdates, &["IGNORE", "NULL", "UPDATES"]),
    (Clause::ApplyAsDelete, &["APPLY", "AS", "DELETE", "WHEN"]),
    (Clause::ApplyAsTruncate, &["APPLY", "AS", "TRUNCATE", "WHEN"]),
    (Clause::SequenceBy, &["SEQUENCE", "BY"]),
    (Clause::SystemSequenceBy, &["SYSTEM", "SEQUENCE", "BY"]),
    (Clause::ColumnsToUpdate, &["COLUMNS", "TO", "UPDATE"]),
    (Clause::Columns, &["COLUMNS"]),
    (Clause::StoredAs, &["STORED", "AS"]),
    (Clause::TrackHistory, &["TRACK", "HISTORY", "ON"]),
];

impl Clause {
    fn at(cursor: &Cursor<'_>) -> Option<(Clause, &'static [&'static str])> {
        let (clause, words) = CLAUSES.into_iter().find(|(_, words)| cursor.are_words(words))?;
        let is_clause = match clause {
            // `a IS DISTINCT FROM b` compares.
            Clause::From => !cursor.at.checked_sub(1).is_some_and(|before| {
                cursor.str_of(cursor.tokens()[before].range.clone()).eq_ignore_ascii_case("DISTINCT")
            }),
            // Both may be the names of columns.
            Clause::Keys | Clause::Columns => {
                let is_name = matches!(cursor.kind(1), Some(TokenKind::Word | TokenKind::QuotedName));
                is_name && !is_operator(cursor.peek_str(1)) || cursor.is_symbol(1, "(") || cursor.is_symbol(1, "*")
            }
            _ => true,
        };
        is_clause.then_some((clause, words))
    }

    fn words(self) -> String {
        let (_, words) = CLAUSES.into_iter().find(|(clause, _)| *clause == self).expect("every clause is listed");
        words.join(" ")
    }

    /// True for the clauses that say what to do with an event: a snapshot has none.
    fn is_feed_only(self) -> bool {
        matches!(
            self,
            Clause::IgnoreNullUpdates
                | Clause::ApplyAsDelete
                | Clause::ApplyAsTruncate
                | Clause::SequenceBy
                | Clause::ColumnsToUpdate
                | Clause::Columns
        )
    }
}

fn is_operator(word: &str) -> bool {
    ["AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "THEN", "ELSE", "WHEN", "END", "DIV"]
        .iter()
        .any(|operator| operator.eq_ignore_ascii_case(word))
}

impl Head<'_> {
    /// `AUTO CDC …` of a CREATE FLOW; stands at AUTO.
    pub(super) fn change_flow(
        &self,
        name: &Spanned<String>,
        cursor: &mut Cursor<'_>,
        statement: &mut Statement,
    ) -> Parse<Option<FlowDefinition>> {
        let first = cursor.at;
        cursor.at += 2;
        let is_once = cursor.take_word("ONCE");
        let head = cursor.span_since(first);
        let spec = ChangeSpec::new(Syntax::Sql, &name.value, head);
        let mut clauses = ChangeClauses { spec, target: None };
        clauses.spec.is_once = is_once;
        self.change_clauses(&mut clauses, first, cursor, statement)?;
        let ChangeClauses { spec, target } = clauses;
        if target.is_none() && spec.is_complete {
            statement.diagnostics.push(
                Diagnostic::error("missing-clause", head, format!("flow `{}` has no `INTO`", name.value))
                    .reason("a flow says which table it applies the changes to")
                    .help("write `AUTO CDC INTO table FROM …`"),
            );
        }
        let is_once = spec.is_once;
        let Some(((query, change), target)) = spec.finish(&mut statement.diagnostics).zip(target) else {
            return Ok(None);
        };
        Ok(Some(FlowDefinition {
            name: name.clone(),
            is_default: false,
            target,
            scope: self.scope.clone(),
            is_once,
            depends_on: Vec::new(),
            comment: None,
            query: Arc::new(query),
            change: Some(Arc::new(change)),
            limits: self.limits.clone(),
            span: cursor.span_of(cursor.tokens()[0].range.start..cursor.end()),
        }))
    }

    /// `AUTO CDC …` behind `CREATE STREAMING TABLE … FLOW`; stands at AUTO.
    pub(super) fn default_change_flow(
        &self,
        dataset: &mut DatasetDefinition,
        cursor: &mut Cursor<'_>,
        statement: &mut Statement,
    ) -> Parse<()> {
        let first = cursor.at;
        cursor.at += 2;
        let is_once = cursor.take_word("ONCE");
        let spec = ChangeSpec::new(Syntax::Sql, &dataset.name.value.to_string(), cursor.span_since(first));
        let mut clauses = ChangeClauses { spec, target: Some(dataset.name.clone()) };
        clauses.spec.is_once = is_once;
        self.change_clauses(&mut clauses, first, cursor, statement)?;
        if let Some((query, change)) = clauses.spec.finish(&mut statement.diagnostics) {
            dataset.query = Some(Arc::new(query));
            dataset.change = Some(Arc::new(change));
            dataset.is_once = is_once;
        }
        Ok(())
    }

    /// `APPLY CHANGES INTO target …`: the whole statement.
    pub(super) fn apply_changes(&self, mut cursor: Cursor<'_>, statement: &mut Statement) -> Parse<()> {
        cursor.expect_words(&["APPLY", "CHANGES"])?;
        let head = cursor.span_since(0);
        statement.diagnostics.push(
            Diagnostic::warning(
                "legacy-apply-changes",
                head,
                "`APPLY CHANGES INTO` is the legacy form of `AUTO CDC INTO`",
            )
            .reason("it names no flow, so the flow gets the name of its table")
            .help("write `CREATE FLOW name AS AUTO CDC INTO …`; with another name than the table's it starts anew"),
        );
        let mut clauses = ChangeClauses { spec: ChangeSpec::new(Syntax::Sql, "", head), target: None };
        if !cursor.is_word(0, "INTO") {
            return Err(cursor.expected("`INTO table`"));
        }
        cursor.at += 1;
        let target = self.name(&mut cursor, "the table that the flow writes to", statement)?;
        clauses.spec.flow = target.value.to_string();
        clauses.target = Some(target.clone());
        let name = Spanned::new(target.value.to_string(), target.span);
        let read = self.change_clauses(&mut clauses, 0, &mut cursor, statement);
        let found = match read {
            Ok(()) => clauses.spec.finish(&mut statement.diagnostics),
            Err(error) => {
                statement.diagnostics.push(*error);
                None
            }
        };
        statement.definitions.push(match found {
            None => Definition::BrokenFlow(name),
            Some((query, change)) => Definition::Flow(FlowDefinition {
                name,
                is_default: true,
                target,
                scope: self.scope.clone(),
                is_once: false,
                depends_on: Vec::new(),
                comment: None,
                query: Arc::new(query),
                change: Some(Arc::new(change)),
                limits: self.limits.clone(),
                span: cursor.span_of(cursor.tokens()[0].range.start..cursor.end()),
            }),
        });
        Ok(())
    }

    /// The clauses up to the end of the statement; `first` is the token that they belong to.
    pub(super) fn change_clauses(
        &self,
        clauses: &mut ChangeClauses,
        first: usize,
        cursor: &mut Cursor<'_>,
        statement: &mut Statement,
    ) -> Parse<()> {
        let is_snapshot = is_snapshot(cursor);
        let mut seen: Vec<(Clause, Span)> = Vec::new();
        while !cursor.is_at_end() {
            let start = cursor.at;
            let Some((clause, words)) = Clause::at(cursor) else { return Err(unexpected(cursor, start, first)) };
            cursor.at += words.len();
            let head = cursor.span_since(start);
            let earlier = seen.iter().find(|(seen, _)| *seen == clause).map(|(_, span)| *span);
            if let Some(refused) = refuse(clause, is_snapshot, head) {
                cursor.skip_until(|c| Clause::at(c).is_some())?;
                statement.diagnostics.push(refused);
                clauses.spec.is_complete = false;
            } else if let Some(earlier) = earlier {
                cursor.skip_until(|c| Clause::at(c).is_some())?;
                let written = cursor.str_of(cursor.tokens()[start].range.start..cursor.offset_behind());
                statement.diagnostics.push(twice(clause, written, head, earlier, &clauses.spec));
                clauses.spec.is_complete = false;
            } else {
                self.change_clause(clause, start, clauses, cursor, statement)?;
            }
            seen.push((clause, head));
        }
        clauses.spec.span = cursor.span_since(first);
        Ok(())
    }

    fn change_clause(
        &self,
        clause: Clause,
        start: usize,
        clauses: &mut ChangeClauses,
        cursor: &mut Cursor<'_>,
        statement: &mut Statement,
    ) -> Parse<()> {
        let spec = &mut clauses.spec;
        let found = &mut statement.diagnostics;
        match clause {
            Clause::Into => {
                if clauses.target.is_some() {
                    return Err(Box::new(
                        Diagnostic::error("unexpected-clause", cursor.span_since(start), "the target is named already")
                            .help("remove INTO: the flow writes to the table that it is part of"),
                    ));
                }
                // As in `INSERT INTO ONCE t`, unless the table is called so.
                if cursor.is_word(0, "ONCE") {
                    cursor.at += 1;
                    let is_name = cursor.is_at_end() || cursor.is_symbol(0, ".") || Clause::at(cursor).is_some();
                    cursor.at -= usize::from(is_name);
                    spec.is_once |= !is_name;
                }
                clauses.target = Some(self.name(cursor, "the table that the flow writes to", statement)?);
            }
            Clause::Snapshot => {
                let query = query_in_parentheses(cursor, "`(query)`", "FROM SNAPSHOT (SELECT * FROM …)")?;
                let version = match spec.source.take() {
                    Some(ChangeSource::Snapshot { version, .. }) => version,
                    _ => None,
                };
                spec.source = Some(ChangeSource::Snapshot { query, version });
            }
            Clause::WithVersion => {
                let text = query_in_parentheses(cursor, "`(query)`", "WITH VERSION (SELECT max(version) FROM …)")?;
                match &mut spec.source {
                    Some(ChangeSource::Snapshot { version, .. }) => *version = Some(text),
                    _ => {
                        return Err(Box::new(
                            Diagnostic::error(
                                "unexpected-clause",
                                cursor.span_since(start),
                                "`WITH VERSION` stands before what it is the version of",
                            )
                            .help("write `FROM SNAPSHOT (query) WITH VERSION (query)`"),
                        ));
                    }
                }
            }
            Clause::From => spec.source = Some(ChangeSource::Feed(feed_source(cursor)?)),
            Clause::Keys => {
                let keys = names(cursor, "a key", "KEYS", found, &mut spec.is_complete)?;
                spec.keys = Some(Spanned::new(keys, cursor.span_since(start)));
            }
            Clause::IgnoreNullUpdates => {
                let value = match cursor.take_word("ON") {
                    false => IgnoreNulls::All,
                    true => match selection(cursor, "IGNORE NULL UPDATES ON", found, &mut spec.is_complete)? {
                        ColumnSelection::On(names) => IgnoreNulls::On(names),
                        ColumnSelection::Except(names) if names.is_empty() => IgnoreNulls::All,
                        ColumnSelection::Except(names) => IgnoreNulls::Except(names),
                    },
                };
                let span = cursor.span_since(start);
                if matches!(&value, IgnoreNulls::On(names) if names.is_empty()) && spec.is_complete {
                    found.push(empty_ignore_list(span));
                    spec.is_complete = false;
                }
                spec.ignore_null_updates = Some(Spanned::new(value, span));
            }
            Clause::SequenceBy => spec.sequence = Some(expression_text(cursor, "the expression to order events by")?),
            Clause::ApplyAsDelete => spec.delete = Some(expression_text(cursor, "a condition")?),
            Clause::ApplyAsTruncate => spec.truncate = Some(expression_text(cursor, "a condition")?),
            Clause::ColumnsToUpdate => {
                let column = names(cursor, "a column", "COLUMNS TO UPDATE", found, &mut spec.is_complete)?;
                if column.len() > 1 {
                    found.push(
                        Diagnostic::error("one-column", column[1].span, "`COLUMNS TO UPDATE` takes one column")
                            .reason("it holds the names of the columns that an event writes, as ARRAY<STRING>")
                            .help("name the one column of the source; to write fewer columns always, use COLUMNS"),
                    );
                    spec.is_complete = false;
                }
                spec.columns_to_update = column.into_iter().next();
            }
            Clause::Columns => {
                let value = selection(cursor, "COLUMNS", found, &mut spec.is_complete)?;
                spec.columns = not_empty(value, "COLUMNS", cursor.span_since(start), found, &mut spec.is_complete);
            }
            Clause::TrackHistory => {
                let value = selection(cursor, "TRACK HISTORY ON", found, &mut spec.is_complete)?;
                let span = cursor.span_since(start);
                spec.track_history = not_empty(value, "TRACK HISTORY ON", span, found, &mut spec.is_complete);
            }
            Clause::StoredAs => match scd_type(cursor, start)? {
                Ok(scd_type) => spec.scd_type = Some(scd_type),
                Err(refused) => {
                    found.push(*refused);
                    spec.is_complete = false;
                }
            },
            Clause::SystemSequenceBy => {}
        }
        Ok(())
    }
}

/// True if the rest of the statement holds `FROM SNAPSHOT` outside of parentheses.
fn is_snapshot(cursor: &Cursor<'_>) -> bool {
    let mut ahead = cursor.clone();
    let _ = ahead.skip_until(|c| c.are_words(&["FROM", "SNAPSHOT"]));
    !ahead.is_at_end()
}

/// What the kind of flow has no such clause, or nothing has.
fn refuse(clause: Clause, is_snapshot: bool, head: Span) -> Option<Diagnostic> {
    let words = clause.words();
    if clause == Clause::SystemSequenceBy {
        return Some(bitemporal(head, "SYSTEM SEQUENCE BY"));
    }
    if clause.is_feed_only() && is_snapshot {
        let error = Diagnostic::error("unexpected-clause", head, format!("a flow from snapshots has no `{words}`"));
        let (reason, help) = match clause {
            Clause::SequenceBy => {
                ("the snapshots have versions", "remove it; `WITH VERSION (query)` gives a snapshot its version")
            }
            Clause::ApplyAsDelete | Clause::ApplyAsTruncate => {
                ("a key that is missing in a snapshot is deleted", "leave such rows out of the snapshot's query")
            }
            Clause::IgnoreNullUpdates | Clause::ColumnsToUpdate => {
                ("a snapshot says all of a row, NULL included", "remove it")
            }
            _ => ("its query says which columns there are", "name the columns in the query of the snapshot"),
        };
        return Some(error.reason(reason).help(help));
    }
    if clause == Clause::WithVersion && !is_snapshot {
        return Some(
            Diagnostic::error("unexpected-clause", head, "a flow from a change feed has no `WITH VERSION`")
                .reason("its events are ordered by `SEQUENCE BY`")
                .help("remove it, or write `FROM SNAPSHOT (query) WITH VERSION (query)`"),
        );
    }
    None
}

/// The error for a clause that is written twice: for a list and its complement with its own condition.
fn twice(clause: Clause, written: &str, head: Span, earlier: Span, spec: &ChangeSpec) -> Diagnostic {
    let is_except = |written: &str| written.contains('*');
    let was_except = |selection: &Option<Spanned<ColumnSelection>>| {
        matches!(selection, Some(Spanned { value: ColumnSelection::Except(_), .. }))
    };
    let words = clause.words();
    let both = |condition| {
        Diagnostic::error("conflicting-clauses", head, format!("`{words}` names columns and excepts columns"))
            .condition(condition)
            .label(earlier, "first written here")
            .help("choose one: a list of columns, or `* EXCEPT (…)`")
    };
    match clause {
        Clause::Columns if is_except(written) != was_except(&spec.columns) => {
            both("AUTOCDC_BOTH_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST")
        }
        Clause::TrackHistory if is_except(written) != was_except(&spec.track_history) => {
            both("AUTOCDC_BOTH_TRACK_HISTORY_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST")
        }
        Clause::IgnoreNullUpdates => {
            Diagnostic::error("conflicting-clauses", head, format!("`{words}` is written twice"))
                .condition("AUTOCDC_CONFLICTING_IGNORE_NULL_UPDATES_OPTIONS")
                .reason("all columns, a list and an exception exclude each other")
                .label(earlier, "first written here")
                .help("keep one")
        }
        _ => Diagnostic::error("duplicate-clause", head, format!("`{words}` is written twice"))
            .label(earlier, "first written here")
            .help("keep one"),
    }
}

/// The error for an empty list of `IGNORE NULL UPDATES ON`.
pub(super) fn empty_ignore_list(span: Span) -> Diagnostic {
    Diagnostic::error("empty-list", span, "the list of columns whose NULL is ignored is empty")
        .condition("AUTOCDC_IGNORE_NULL_EMPTY_COLUMN_LIST")
        .reason("an empty list would ignore no NULL at all")
        .help("leave the option out to turn it off, or name columns")
}

/// The error for what needs two axes of time.
pub(super) fn bitemporal(span: Span, what: &str) -> Diagnostic {
    not_supported_yet(span, what)
        .reason("a bitemporal table also keeps what was known when; flowbench has SCD types 1 and 2")
        .help("write STORED AS SCD TYPE 2, which keeps the history along `SEQUENCE BY`")
}

fn not_empty(
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

/// `SCD TYPE n`; the inner error is for what is known and not built.
fn scd_type(cursor: &mut Cursor<'_>, start: usize) -> Parse<Result<Spanned<ScdType>, Box<Diagnostic>>> {
    if cursor.take_word("BITEMPORAL") {
        return Ok(Err(Box::new(bitemporal(cursor.span_since(start), "STORED AS BITEMPORAL"))));
    }
    if !cursor.take_words(&["SCD", "TYPE"]) && !cursor.take_words(&["SCD"]) {
        return Err(Box::new(cursor.expected("`SCD TYPE 1` or `SCD TYPE 2`").help("write `STORED AS SCD TYPE 2`")));
    }
    let number = cursor.here();
    let scd_type = match cursor.peek_str(0).trim_matches(['\'', '"']) {
        "1" => ScdType::One,
        "2" => ScdType::Two,
        found => {
            let error = match cursor.is_at_end() {
                true => *cursor.expected("`1` or `2`"),
                false => Diagnostic::error("unknown-value", number, format!("there is no SCD type {}", quote(found))),
            };
            return Err(Box::new(
                error
                    .reason("type 1 keeps the latest row of each key, type 2 their history")
                    .help("write `STORED AS SCD TYPE 1` or `STORED AS SCD TYPE 2`"),
            ));
        }
    };
    cursor.at += 1;
    Ok(Ok(Spanned::new(scd_type, cursor.span_since(start))))
}

/// `( query )`: what lies between the parentheses.
fn query_in_parentheses(cursor: &mut Cursor<'_>, what: &str, example: &str) -> Parse<MappedText> {
    if !cursor.is_symbol(0, "(") {
        return Err(Box::new(cursor.expected(what).help(format!("write `{example}`"))));
    }
    let range = cursor.parentheses()?;
    Ok(cursor.text.part(range))
}

/// What stands behind FROM: one table, view or call, with STREAM if it is there.
fn feed_source(cursor: &mut Cursor<'_>) -> Parse<MappedText> {
    let first = cursor.at;
    let start = cursor.offset();
    if cursor.is_word(0, "STREAM") && !cursor.is_symbol(1, ".") && cursor.peek(1).is_some() {
        cursor.at += 1;
    }
    let is_query = cursor.is_symbol(0, "(")
        && ["SELECT", "WITH", "VALUES", "("].iter().any(|word| cursor.peek_str(1).eq_ignore_ascii_case(word));
    if is_query {
        cursor.parentheses()?;
        return Err(Box::new(
            Diagnostic::error("source-not-a-table", cursor.span_since(first), "the source of AUTO CDC is no query")
                .reason("it is the name of a table or view, so that every event has a place in it")
                .help("put the query into a temporary view: CREATE TEMPORARY VIEW events AS SELECT …, then FROM STREAM(events)"),
        ));
    }
    match cursor.is_symbol(0, "(") {
        true => drop(cursor.parentheses()?),
        false => {
            cursor.name("the name of a table or view")?;
            if cursor.is_symbol(0, "(") {
                cursor.parentheses()?;
            }
        }
    }
    if cursor.is_word(0, "WITH") && cursor.is_symbol(1, "(") {
        cursor.at += 1;
        cursor.parentheses()?;
    }
    Ok(cursor.text.part(start..cursor.offset_behind()))
}

/// The tokens up to the next clause.
fn expression_text(cursor: &mut Cursor<'_>, what: &str) -> Parse<MappedText> {
    let (first, start) = (cursor.at, cursor.offset());
    cursor.skip_until(|c| Clause::at(c).is_some())?;
    if cursor.at == first {
        return Err(cursor.expected(what));
    }
    Ok(cursor.text.part(start..cursor.offset_behind()))
}

fn selection(
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
fn names(
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
        .help(format!("write `{last}`; a name that holds a dot goes in backticks: `{}`", parts.join(".")))
        .edit(span, last),
        false => match name {
            Err(error) if cursor.tokens()[first].kind == TokenKind::Text && cursor.at == first + 1 => *error,
            _ => Diagnostic::error("expression-as-column", span, format!("{} is no name of a column", quote(written)))
                .condition("AUTOCDC_NON_COLUMN_IDENTIFIER")
                .reason(format!("`{clause}` takes plain names of columns of the source, no expressions"))
                .help("compute it as a column in a temporary view, and read that"),
        },
    }))
}

/// The error for a token that starts no clause.
fn unexpected(cursor: &Cursor<'_>, start: usize, first: usize) -> Box<Diagnostic> {
    let error = cursor.expected("a clause of AUTO CDC");
    let found = cursor.peek_str(0).to_ascii_uppercase();
    if start == first + 1 || ["JOIN", "LEFT", "INNER", "CROSS", "WHERE"].contains(&found.as_str()) {
        return Box::new(
            error.help("the source is one table or view: join and filter in a temporary view, and read that"),
        );
    }
    let words = CLAUSES.iter().map(|(_, words)| words[0]).chain(["KEYS"]);
    Box::new(match nearest(&found, words) {
        Some(near) if near != found => error.help(format!("did you mean `{near}`?")).edit(cursor.here(), near),
        _ => error.help("write FROM and KEYS, then the other clauses in any order, each once"),
    })
}
