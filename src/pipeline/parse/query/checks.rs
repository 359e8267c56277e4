//! What sqlparser reads and a pipeline's query can't have, refused by name.

use std::ops::Range;

use sqlparser::ast::{self, ObjectName, SetExpr};

use super::super::statement::not_supported_yet;
use super::relations::Walk;
use crate::diagnostic::{Diagnostic, nearest};
use crate::name::Name;
use crate::text::Span;

impl Walk<'_, '_> {
    pub(super) fn check_query(&mut self, query: &ast::Query) {
        self.check_body(&query.body);
        if !query.pipe_operators.is_empty() {
            let span = self.span_of_word("|", 0);
            self.diagnostics.push(not_supported_yet(span, "|>").help("write the query with SELECT"));
        }
    }

    /// Bodies of set operations are nested as deep as there are operations, which `check_size` bounds.
    fn check_body(&mut self, body: &SetExpr) {
        let (word, help) = match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.check_body(left);
                self.check_body(right);
                return;
            }
            SetExpr::Insert(_) => ("INSERT", "write what the dataset holds as a SELECT"),
            SetExpr::Update(_) => ("UPDATE", "write what the dataset holds as a SELECT"),
            SetExpr::Delete(_) => ("DELETE", "write what the dataset holds as a SELECT"),
            SetExpr::Merge(_) => ("MERGE", "write what the dataset holds as a SELECT"),
            SetExpr::Table(_) => ("TABLE", "write `SELECT * FROM name`"),
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => return,
        };
        let span = self.span_of_word(word, 0);
        self.diagnostics
            .push(Diagnostic::error("not-a-query", span, format!("`{word}` is not supported as a query")).help(help));
    }

    pub(super) fn check_select(&mut self, select: &ast::Select) {
        let start = self.places.range(select.select_token.0.span).start;
        let clauses = [
            (
                !select.lateral_views.is_empty(),
                "LATERAL",
                "LATERAL VIEW",
                "write the generator in the SELECT list of a subquery: `SELECT explode(items) AS item FROM …`",
            ),
            (!select.cluster_by.is_empty(), "CLUSTER", "CLUSTER BY", "remove it; the rows of a query have no place"),
            (
                !select.distribute_by.is_empty(),
                "DISTRIBUTE",
                "DISTRIBUTE BY",
                "remove it; the rows of a query have no place",
            ),
            (!select.sort_by.is_empty(), "SORT", "SORT BY", "remove it, or write ORDER BY"),
            (select.into.is_some(), "INTO", "SELECT INTO", "write `CREATE MATERIALIZED VIEW name AS SELECT …`"),
        ];
        for (_, word, clause, help) in clauses.into_iter().filter(|(is_there, ..)| *is_there) {
            let span = self.span_of_word(word, start);
            self.diagnostics.push(not_supported_yet(span, clause).help(help));
        }
    }

    pub(super) fn unsupported_relation(&mut self, keyword: &str, help: &str) {
        let span = self.span_of_word(keyword, 0);
        self.diagnostics.push(
            Diagnostic::error("unsupported-relation", span, format!("`{keyword}` is not allowed in a pipeline"))
                .help(help),
        );
    }

    pub(super) fn unknown_table_function(&mut self, name: &ObjectName, range: Range<usize>) {
        let (span, written) = (self.sql.origin(range), name.to_string());
        let lower = written.to_lowercase();
        let error =
            Diagnostic::error("unknown-table-function", span, format!("there is no table function `{written}`"));
        let known = ["read_files", "read_stream", "range", "generate_series"];
        self.diagnostics.push(match nearest(&lower, known) {
            Some(near) => error.help(format!("did you mean `{near}`?")).edit(span, near),
            None if lower.contains("explode") => {
                error.help(format!("write it in the SELECT list: `SELECT {lower}(…) AS item`"))
            }
            None => error.help("behind FROM stand tables, subqueries, `read_files(…)` and `range(…)`"),
        });
    }
}

/// The error for `STREAM x` where `x` is a CTE.
pub(super) fn stream_of_cte(name: &Name, span: Span) -> Diagnostic {
    Diagnostic::error("stream-of-query", span, format!("`{name}` is a CTE of this query and can't be read as a stream"))
        .reason("STREAM reads the changes of a table; a CTE has none of its own")
        .help("write STREAM before the tables that the CTE reads, and the CTE's bare name here")
}
