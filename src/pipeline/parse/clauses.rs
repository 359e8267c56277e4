//! The clauses of a dataset between its column list and its query.
//!
//! ```text
//! clause := USING DELTA | PARTITIONED BY (name, …) | CLUSTER BY ((name, …) | AUTO | NONE) | COMMENT 's'
//!         | TBLPROPERTIES (key = value, …) | DEFAULT COLLATION UTF8_BINARY | REFRESH POLICY (AUTO | FULL)
//! ```
//! Those that flowbench doesn't have are read and refused by name; none is passed over.

use std::collections::BTreeMap;

use super::cursor::{Cursor, Parse, quote};
use super::statement::not_supported_yet;
use super::token::{TokenKind, name_value, string_value};
use crate::definition::DatasetKind;
use crate::diagnostic::{Diagnostic, nearest};
use crate::text::{Span, Spanned};

/// What the clauses of a dataset say.
#[derive(Default)]
pub(super) struct Clauses {
    pub comment: Option<String>,
    pub partition_by: Vec<Spanned<String>>,
    pub cluster_by: Vec<Spanned<String>>,
    pub properties: BTreeMap<String, String>,
    /// Name and place of each clause so far.
    seen: Vec<(&'static str, Span)>,
}

/// The clauses between the column list and the body, in any order, each once.
pub(super) fn parse_clauses(
    kind: DatasetKind,
    cursor: &mut Cursor<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Parse<Clauses> {
    let mut clauses = Clauses::default();
    while let Some(clause) = CLAUSES.into_iter().find(|clause| cursor.are_words(clause.words)) {
        let first = cursor.at;
        cursor.at += clause.words.len();
        let name = clause.name();
        if let Some((_, earlier)) = clauses.seen.iter().find(|(seen, _)| *seen == name) {
            diagnostics.push(
                Diagnostic::error("duplicate-clause", cursor.span_since(first), format!("`{name}` is written twice"))
                    .label(*earlier, "first written here")
                    .help("keep one"),
            );
        }
        clauses.seen.push((name, cursor.span_since(first)));
        if name == "DEPENDS ON" {
            skip_clause(cursor)?;
            let (reason, help) = no_order(kind);
            let message = format!("a {} has no {name} clause", kind.words());
            diagnostics.push(
                Diagnostic::error("unexpected-clause", cursor.span_since(first), message).reason(reason).help(help),
            );
            continue;
        }
        if !kind.is_stored() && !matches!(name, "COMMENT" | "TBLPROPERTIES") {
            diagnostics.push(
                Diagnostic::error(
                    "unexpected-clause",
                    cursor.span_since(first),
                    format!("a {} has no {name} clause", kind.words()),
                )
                .reason("a view stores nothing")
                .help("remove it, or make the dataset a MATERIALIZED VIEW"),
            );
            skip_clause(cursor)?;
            continue;
        }
        if let Some((reason, help)) = clause.refused {
            skip_clause(cursor)?;
            diagnostics.push(not_supported_yet(cursor.span_since(first), name).reason(reason).help(help));
            continue;
        }
        clause_body(name, cursor, &mut clauses, diagnostics)?;
    }
    let place = |name: &str| clauses.seen.iter().find(|(seen, _)| *seen == name).map(|(_, span)| *span);
    // Of named columns `validate` says it, for TOML too; AUTO leaves no other trace.
    if let (Some(partition), Some(cluster), true) =
        (place("PARTITIONED BY"), place("CLUSTER BY"), clauses.cluster_by.is_empty())
    {
        diagnostics.push(
            Diagnostic::error("partition-and-cluster", cluster, "PARTITIONED BY and CLUSTER BY exclude each other")
                .label(partition, "partitioned here")
                .reason("rows lie either in one folder a value, or sorted within files")
                .help("keep one; CLUSTER BY suits columns of many values"),
        );
    }
    Ok(clauses)
}

fn clause_body(
    name: &str,
    cursor: &mut Cursor<'_>,
    clauses: &mut Clauses,
    diagnostics: &mut Vec<Diagnostic>,
) -> Parse<()> {
    match name {
        "COMMENT" => clauses.comment = Some(cursor.text("the comment in quotes")?.value),
        "USING" => {
            let format = cursor.identifier("`DELTA`")?;
            if !format.value.eq_ignore_ascii_case("DELTA") {
                diagnostics.push(
                    not_supported_yet(format.span, &format!("USING {}", format.value.to_ascii_uppercase()))
                        .reason("flowbench stores tables as Delta")
                        .help("write USING DELTA, or leave the clause out"),
                );
            }
        }
        "PARTITIONED BY" => clauses.partition_by = column_names(cursor, "partition")?,
        "CLUSTER BY" => {
            if !cursor.take_word("AUTO") && !cursor.take_word("NONE") {
                clauses.cluster_by = column_names(cursor, "cluster")?;
            }
        }
        "TBLPROPERTIES" => clauses.properties = properties(cursor, diagnostics)?,
        "REFRESH POLICY" => {
            let policy = cursor.here();
            if !cursor.take_word("AUTO") && !cursor.take_word("FULL") {
                skip_clause(cursor)?;
                diagnostics.push(
                    not_supported_yet(policy, "REFRESH POLICY INCREMENTAL")
                        .reason("flowbench recomputes a materialized view from all of its input")
                        .help("write REFRESH POLICY AUTO or FULL, or leave the clause out"),
                );
            }
        }
        _ => {
            let collation = cursor.identifier("`UTF8_BINARY`")?;
            if !collation.value.eq_ignore_ascii_case("UTF8_BINARY") {
                diagnostics.push(
                    not_supported_yet(collation.span, "a collation other than UTF8_BINARY")
                        .help("leave the clause out"),
                );
            }
        }
    }
    Ok(())
}

/// A clause of a dataset; `refused` says why there is none and what to do instead.
struct Clause {
    words: &'static [&'static str],
    refused: Option<(&'static str, &'static str)>,
}

impl Clause {
    fn name(&self) -> &'static str {
        match self.words {
            ["PARTITIONED", _] => "PARTITIONED BY",
            ["CLUSTER", _] => "CLUSTER BY",
            ["DEFAULT", _] => "DEFAULT COLLATION",
            ["WITH", ..] => "WITH ROW FILTER",
            ["REFRESH", "POLICY"] => "REFRESH POLICY",
            ["TRIGGER", _] => "TRIGGER ON UPDATE",
            ["SCHEDULE"] | ["REFRESH", _] => "SCHEDULE",
            ["DEPENDS", _] => "DEPENDS ON",
            [only, ..] => only,
            [] => "",
        }
    }
}

const SCHEDULES: Option<(&str, &str)> = Some((
    "flowbench runs an update when it is asked to",
    "remove it and call `flowbench run` from cron or another scheduler",
));

const CLAUSES: [Clause; 13] = [
    Clause { words: &["USING"], refused: None },
    Clause { words: &["PARTITIONED", "BY"], refused: None },
    Clause { words: &["CLUSTER", "BY"], refused: None },
    Clause { words: &["COMMENT"], refused: None },
    Clause { words: &["TBLPROPERTIES"], refused: None },
    Clause { words: &["DEFAULT", "COLLATION"], refused: None },
    Clause { words: &["REFRESH", "POLICY"], refused: None },
    Clause {
        words: &["LOCATION"],
        refused: Some((
            "tables lie in the storage folder of the workspace",
            "remove it; `storage` in flowbench.toml moves all tables",
        )),
    },
    Clause {
        words: &["WITH", "ROW", "FILTER"],
        refused: Some(("flowbench has no users to hide rows from", "filter the rows in the query with WHERE")),
    },
    Clause { words: &["SCHEDULE"], refused: SCHEDULES },
    Clause { words: &["REFRESH", "EVERY"], refused: SCHEDULES },
    Clause { words: &["TRIGGER", "ON"], refused: SCHEDULES },
    Clause {
        words: &["DEPENDS", "ON"],
        // Refused for each kind of dataset in its own words: `no_order`.
        refused: None,
    },
];

/// Why a dataset waits for no flow by name, and what to do instead (behaviours O-7).
pub(super) fn no_order(kind: DatasetKind) -> (&'static str, &'static str) {
    match kind {
        DatasetKind::StreamingTable => (
            "the order is one between named flows; a table's own query runs when what it reads is ready",
            "make the query a flow of its own and let that depend on others",
        ),
        DatasetKind::MaterializedView => (
            "it is recomputed when what it reads is ready, and has no named flow",
            "remove it, or read from the table that is to be ready first",
        ),
        DatasetKind::View | DatasetKind::TemporaryView => (
            "a view is never run: it is part of the queries that read it",
            "remove it, or let the flows that read the view depend on others",
        ),
    }
}

/// Passes over the rest of a clause.
fn skip_clause(cursor: &mut Cursor<'_>) -> Parse<()> {
    cursor.skip_until(|c| {
        c.is_word(0, "AS") || c.is_word(0, "FLOW") || CLAUSES.iter().any(|clause| c.are_words(clause.words))
    })
}

pub(super) fn unexpected_clause(cursor: &Cursor<'_>, kind: DatasetKind) -> Diagnostic {
    let found = cursor.peek_str(0).to_ascii_uppercase();
    let known = CLAUSES.iter().map(|clause| clause.words[0]).chain(["AS", "FLOW"]);
    let error = match kind {
        DatasetKind::StreamingTable => cursor.expected("a clause, `AS query`, `FLOW …` or `;`"),
        _ => cursor.expected("a clause or `AS query`"),
    };
    if ["SELECT", "WITH"].contains(&found.as_str()) {
        return error.help("write `AS` before the query").edit(cursor.span_of(cursor.offset()..cursor.offset()), "AS ");
    }
    if found == "CREATE" {
        return error.help("the statement before it lacks its `;`");
    }
    match nearest(&found, known) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => *error,
    }
}

/// `(a, b)`: plain names only.
fn column_names(cursor: &mut Cursor<'_>, what: &str) -> Parse<Vec<Spanned<String>>> {
    cursor.expect_symbol("(")?;
    let mut names = Vec::new();
    loop {
        let first = cursor.at;
        let name = cursor.identifier("the name of a column")?;
        if !cursor.is_symbol(0, ",") && !cursor.is_symbol(0, ")") {
            cursor.skip_until(|c| c.is_symbol(0, ",") || c.is_symbol(0, ")"))?;
            let span = cursor.span_since(first);
            let written = cursor.str_of(cursor.tokens()[first].range.start..cursor.offset_behind());
            return Err(Box::new(
                Diagnostic::error("expression-as-column", span, format!("{} is no {what} column", quote(written)))
                    .condition("PIPELINE_SQL_GRAPH_ELEMENT_REGISTRATION_ERROR")
                    .reason("only names of columns of the table can stand here, no expressions or fields")
                    .help("compute it as a column in the query and name that"),
            ));
        }
        names.push(name);
        if cursor.take_symbol(")") {
            return Ok(names);
        }
        cursor.expect_symbol(",")?;
    }
}

/// `(key = value, …)`; keys bare or quoted, values constants.
fn properties(cursor: &mut Cursor<'_>, diagnostics: &mut Vec<Diagnostic>) -> Parse<BTreeMap<String, String>> {
    cursor.expect_symbol("(")?;
    let mut properties = BTreeMap::new();
    loop {
        let first = cursor.at;
        let mut key = match cursor.kind(0) {
            Some(TokenKind::Text) => cursor.text("the name of a property")?.value,
            _ => cursor.identifier("the name of a property")?.value,
        };
        while cursor.take_symbol(".") {
            key.push('.');
            key.push_str(&cursor.identifier("the next part of the property's name")?.value);
        }
        let key_span = cursor.span_since(first);
        cursor.take_symbol("=");
        let sign = if cursor.take_symbol("-") { "-" } else { "" };
        let written = cursor.peek_str(0);
        let value = match cursor.kind(0) {
            Some(TokenKind::Text) => string_value(written),
            Some(TokenKind::Number) => format!("{sign}{written}"),
            Some(TokenKind::Word) if ["true", "false"].iter().any(|w| written.eq_ignore_ascii_case(w)) => {
                written.to_ascii_lowercase()
            }
            Some(TokenKind::Word | TokenKind::QuotedName) => {
                return Err(Box::new(
                    cursor
                        .expected(&format!("the value of `{key}`"))
                        .help("put it in quotes")
                        .edit(cursor.here(), format!("'{}'", name_value(written).replace('\'', "\\'"))),
                ));
            }
            _ => return Err(cursor.expected(&format!("the value of `{key}`"))),
        };
        cursor.at += 1;
        if properties.insert(key.clone(), value).is_some() {
            diagnostics.push(
                Diagnostic::error("duplicate-property", key_span, format!("property `{key}` is given twice"))
                    .help("keep one"),
            );
        }
        if cursor.take_symbol(")") {
            return Ok(properties);
        }
        cursor.expect_symbol(",")?;
    }
}
