//! Which clauses AUTO CDC has, by the words that they start with, and which exclude one another.
//!
//! Not here: what stands in them (`auto_cdc.rs`).

use super::change_spec::ChangeSpec;
use super::cursor::Cursor;
use super::statement::not_supported_yet;
use super::token::TokenKind;
use crate::auto_cdc::ColumnSelection;
use crate::diagnostic::{Diagnostic, nearest};
use crate::text::{Span, Spanned};

/// A clause, by the words that it starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
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
pub(super) const CLAUSES: [(Clause, &[&str]); 14] = [
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
    pub(super) fn at(cursor: &Cursor<'_>) -> Option<(Clause, &'static [&'static str])> {
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

    pub(super) fn words(self) -> String {
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

/// What the kind of flow has no such clause, or nothing has.
pub(super) fn refuse(clause: Clause, is_snapshot: bool, head: Span) -> Option<Diagnostic> {
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
pub(super) fn twice(clause: Clause, written: &str, head: Span, earlier: Span, spec: &ChangeSpec) -> Diagnostic {
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

/// The error for what needs two axes of time.
pub(super) fn bitemporal(span: Span, what: &str) -> Diagnostic {
    not_supported_yet(span, what)
        .reason("a bitemporal table also keeps what was known when; flowbench has SCD types 1 and 2")
        .help("use SCD type 2, which keeps the history along the one sequence")
}

/// The error for a token that starts no clause.
pub(super) fn unexpected(cursor: &Cursor<'_>, start: usize, first: usize) -> Box<Diagnostic> {
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
