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

use super::change_clause::{Clause, bitemporal, refuse, twice, unexpected};
use super::change_spec::{ChangeSource, ChangeSpec, Syntax};
use super::column_list::{empty_ignore_list, names, not_empty, selection};
use super::cursor::{Cursor, Parse, quote};
use super::statement::{Head, Statement};
use crate::auto_cdc::{ColumnSelection, IgnoreNulls, ScdType};
use crate::definition::{DatasetDefinition, Definition, FlowDefinition};
use crate::diagnostic::Diagnostic;
use crate::name::Name;
use crate::text::{MappedText, Span, Spanned};

/// A flow's clauses and the target that they name.
pub(super) struct ChangeClauses {
    pub spec: ChangeSpec,
    pub target: Option<Spanned<Name>>,
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
                let query = query_in_parentheses(cursor, "FROM SNAPSHOT (SELECT * FROM …)")?;
                spec.source = Some(ChangeSource::Snapshot(query));
            }
            Clause::WithVersion => {
                spec.version = Some(query_in_parentheses(cursor, "WITH VERSION (SELECT max(version) FROM …)")?);
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
fn query_in_parentheses(cursor: &mut Cursor<'_>, example: &str) -> Parse<MappedText> {
    if !cursor.is_symbol(0, "(") {
        let expected = cursor.expected("`(query)`");
        let name = cursor.at..{
            let mut behind = cursor.clone();
            if behind.name("").is_ok() { behind.at } else { cursor.at }
        };
        if name.is_empty() {
            return Err(Box::new(expected.help(format!("write `{example}`"))));
        }
        let range = cursor.offset()..cursor.tokens()[name.end - 1].range.end;
        let query = format!("(SELECT * FROM {})", cursor.str_of(range.clone()));
        return Err(Box::new(expected.help(format!("write `{query}`")).edit(cursor.span_of(range), query)));
    }
    let range = cursor.parentheses()?;
    Ok(cursor.text.part(range))
}

/// What stands behind FROM: one table, view or call, with STREAM if it is there.
pub(super) fn feed_source(cursor: &mut Cursor<'_>) -> Parse<MappedText> {
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
    if !cursor.is_symbol(0, "(") {
        cursor.name("the name of a table or view")?;
    }
    // `(name)`, or the arguments of a call.
    if cursor.is_symbol(0, "(") {
        cursor.parentheses()?;
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
