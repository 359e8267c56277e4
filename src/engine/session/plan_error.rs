//! What can be wrong with a query, in the user's words and with what may have been meant.

use std::fmt;
use std::ops::Range;

use datafusion::common::Column;
use pipeline::auto_cdc::is_internal;
use pipeline::diagnostic::nearest;

use crate::functions;

/// Something wrong with a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    pub kind: PlanErrorKind,
    /// Lower case, no final period.
    pub message: String,
    /// Bytes of the SQL text; None: the query as a whole.
    pub range: Option<Range<usize>>,
    /// How to fix it, where we know.
    pub help: Option<String>,
    /// A part of the text and what to write there instead.
    pub edit: Option<(Range<usize>, String)>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanErrorKind {
    Syntax,
    /// `candidates`: what there is instead, the nearest first.
    UnknownColumn {
        name: String,
        candidates: Vec<String>,
    },
    UnknownFunction {
        name: String,
        candidates: Vec<String>,
    },
    UnknownTable {
        name: String,
    },
    /// The column is in more than one relation.
    AmbiguousColumn {
        name: String,
    },
    /// Two columns of the result have this name.
    DuplicateColumn {
        name: String,
    },
    TypeMismatch,
    /// Fine in Spark, not built here.
    Unsupported,
    Other,
}

impl PlanErrorKind {
    /// The word of the diagnostic, and the name that Spark gives the situation.
    pub fn code(&self) -> (&'static str, Option<&'static str>) {
        match self {
            PlanErrorKind::Syntax => ("sql-syntax", Some("PARSE_SYNTAX_ERROR")),
            PlanErrorKind::UnknownColumn { .. } => ("unknown-column", Some("UNRESOLVED_COLUMN.WITH_SUGGESTION")),
            PlanErrorKind::UnknownFunction { .. } => ("unknown-function", Some("UNRESOLVED_ROUTINE")),
            PlanErrorKind::UnknownTable { .. } => ("unknown-table", Some("TABLE_OR_VIEW_NOT_FOUND")),
            PlanErrorKind::AmbiguousColumn { .. } => ("ambiguous-column", Some("AMBIGUOUS_REFERENCE")),
            PlanErrorKind::DuplicateColumn { .. } => ("duplicate-column", Some("COLUMN_ALREADY_EXISTS")),
            PlanErrorKind::TypeMismatch => ("type-mismatch", Some("DATATYPE_MISMATCH")),
            PlanErrorKind::Unsupported => ("unsupported-sql", None),
            PlanErrorKind::Other => ("query-error", None),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A name as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    if is_plain { name.to_string() } else { format!("`{}`", name.replace('`', "``")) }
}

/// How to tell two columns of this name apart; an expression without alias is its own name.
pub(crate) fn name_differently(name: &str) -> String {
    let is_word = quoted(name) == name && !["null", "true", "false"].contains(&name.to_lowercase().as_str());
    match is_word {
        true => format!("name one of them differently: … AS {name}_2"),
        false => "give each of them a name: … AS a, … AS b".to_string(),
    }
}

pub(super) fn unknown_column(field: &Column, known: &[Column], range: Option<Range<usize>>) -> PlanError {
    let name = field.name.clone();
    let of =
        |relation: &str| known.iter().any(|column| column.relation.as_ref().is_some_and(|r| r.table() == relation));
    match field.relation.as_ref().map(|relation| relation.table()) {
        Some("_metadata") => {
            return PlanError {
                message: format!("unknown column: `_metadata.{name}`"),
                kind: PlanErrorKind::UnknownColumn { name, candidates: Vec::new() },
                range,
                help: Some(
                    "only `read_files` has `_metadata`; keep what you need of it as a column of the table".into(),
                ),
                edit: None,
            };
        }
        Some(relation) if !of(relation) => {
            let relations = known.iter().filter_map(|column| Some(column.relation.as_ref()?.table()));
            let near = nearest(relation, relations.filter(|relation| !relation.starts_with("__input_")));
            let qualifier = range.as_ref().map(|range| range.start..range.start + relation.len());
            return PlanError {
                message: format!("unknown relation or struct: `{relation}`, in `{relation}.{name}`"),
                kind: PlanErrorKind::UnknownColumn { name, candidates: Vec::new() },
                help: Some(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "write the name or alias of a relation behind FROM before the dot".to_string(),
                }),
                edit: qualifier.zip(near.map(quoted)),
                range,
            };
        }
        _ => {}
    }
    // What the query of a flow of AUTO CDC adds is none of the user's.
    let mut candidates: Vec<String> =
        known.iter().map(|column| column.name.clone()).filter(|name| !is_internal(name)).collect();
    candidates.sort();
    candidates.dedup();
    let near = nearest(&field.name, candidates.iter().map(String::as_str)).map(str::to_string);
    if let Some(near) = &near {
        candidates.retain(|candidate| candidate != near);
        candidates.insert(0, near.clone());
    }
    let shown: Vec<_> = candidates.iter().take(8).map(|name| format!("`{name}`")).collect();
    let more = if candidates.len() > shown.len() { ", …" } else { "" };
    let help = match near {
        Some(near) => Some(format!("did you mean `{near}`? columns are {}{more}", shown.join(", "))),
        None if shown.is_empty() => None,
        None => Some(format!("columns are {}{more}", shown.join(", "))),
    };
    PlanError {
        message: format!("unknown column: `{name}`"),
        kind: PlanErrorKind::UnknownColumn { name, candidates },
        range,
        help,
        edit: None,
    }
}

pub(super) fn unknown_function(name: &str, range: Option<Range<usize>>) -> PlanError {
    let names = functions::names();
    let near = nearest(name, names.iter().map(String::as_str)).map(str::to_string);
    PlanError {
        message: format!("unknown function: `{name}`"),
        range,
        help: Some(match &near {
            Some(near) => format!("did you mean `{near}`? `flowbench functions` lists what there is"),
            None => "`flowbench functions` lists what there is".to_string(),
        }),
        kind: PlanErrorKind::UnknownFunction { name: name.to_string(), candidates: near.into_iter().collect() },
        edit: None,
    }
}

pub(super) fn other(message: String) -> PlanError {
    PlanError { kind: PlanErrorKind::Other, message, range: None, help: None, edit: None }
}
