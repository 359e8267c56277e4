//! `CREATE FLOW`, and the flows that are known and not built.
//!
//! ```text
//! CREATE FLOW name clause… AS (INSERT [ONCE] INTO [ONCE] target [BY NAME] query | AUTO CDC …)
//! clause := COMMENT 's' | DEPENDS ON (flow, …) | DEPENDS ON flow       in any order, each once
//! ```
//! `DEPENDS ON` is ours: the reference pages have `depends_on` in Python only. What stands behind AUTO CDC is in
//! `auto_cdc.rs`.

use std::sync::Arc;

use super::cursor::{Cursor, Parse};
use super::statement::{Head, Statement, not_supported_yet, read_query};
use crate::definition::{Definition, FlowDefinition, FlowReference};
use crate::diagnostic::Diagnostic;
use crate::name::Name;
use crate::text::{Span, Spanned};

impl Head<'_> {
    /// Reads what stands behind `CREATE FLOW`.
    pub(super) fn flow(&self, mut cursor: Cursor<'_>, statement: &mut Statement) -> Parse<()> {
        let words = &self.words;
        let misplaced = [
            words.or_refresh,
            words.or_replace,
            words.private,
            words.temporary,
            words.streaming,
            words.live,
            words.materialized,
        ];
        if let Some(span) = misplaced.into_iter().flatten().next() {
            statement.diagnostics.push(
                Diagnostic::error("unexpected-clause", span, "between CREATE and FLOW nothing may stand")
                    .help("write `CREATE FLOW name AS …`")
                    .edit(self.span, "CREATE FLOW"),
            );
        }
        let exists_first = cursor.at;
        if cursor.take_words(&["IF", "NOT", "EXISTS"]) {
            statement.diagnostics.push(not_in_a_flow(
                cursor.span_since(exists_first),
                "IF NOT EXISTS",
                "a flow is defined once; remove it",
            ));
        }
        let name = self.name(&mut cursor, "the name of the flow", statement)?;
        if name.value.parts.len() > 1 {
            statement.diagnostics.push(
                Diagnostic::error("multipart-flow-name", name.span, "a flow has a name of one part")
                    .condition("MULTIPART_FLOW_NAME_NOT_SUPPORTED")
                    .reason("it lives in the pipeline, not in a schema")
                    .help(format!("write `{}`", name.value.parts.join("_"))),
            );
        }
        let flow_name = Spanned::new(name.value.to_string(), name.span);
        let definitions = statement.definitions.len();
        let read = self.flow_body(&flow_name, &mut cursor, statement);
        if statement.definitions.len() == definitions {
            statement.definitions.push(Definition::BrokenFlow(flow_name));
        }
        read
    }

    /// What stands behind the name.
    fn flow_body(&self, flow_name: &Spanned<String>, cursor: &mut Cursor<'_>, statement: &mut Statement) -> Parse<()> {
        let (comment, depends_on) = self.flow_clauses(cursor, statement)?;
        if !cursor.take_word("AS") {
            return Err(cursor.expected("`AS INSERT INTO table BY NAME query`"));
        }
        refuse_replace_flows(cursor)?;
        if cursor.are_words(&["AUTO", "CDC"]) {
            let flow = self.change_flow(flow_name, cursor, statement)?;
            statement
                .definitions
                .extend(flow.map(|flow| Definition::Flow(FlowDefinition { depends_on, comment, ..flow })));
            return Ok(());
        }
        if !cursor.take_word("INSERT") {
            let mut error = cursor.expected("`INSERT INTO table BY NAME query`");
            error.help = Some(match cursor.is_word(0, "SELECT") {
                true => "say which table the rows go to: `AS INSERT INTO table BY NAME SELECT …`".to_string(),
                false => {
                    "a flow inserts into a streaming table, or applies changes to it: `AUTO CDC INTO table FROM …`"
                        .to_string()
                }
            });
            return Err(error);
        }
        let (target, is_once) = self.insert_target(cursor, statement)?;
        refuse_replace_flows(cursor)?;
        let Some(query) = read_query(cursor, statement)? else { return Ok(()) };
        let span = cursor.span_of(cursor.tokens()[0].range.start..cursor.end());
        statement.definitions.push(Definition::Flow(FlowDefinition {
            name: flow_name.clone(),
            is_default: false,
            target,
            scope: self.scope.clone(),
            is_once,
            depends_on,
            comment,
            query: Arc::new(query),
            change: None,
            limits: self.limits.clone(),
            span,
        }));
        Ok(())
    }

    /// `COMMENT 's'` and `DEPENDS ON (flow, …)`, in any order.
    fn flow_clauses(
        &self,
        cursor: &mut Cursor<'_>,
        statement: &mut Statement,
    ) -> Parse<(Option<String>, Vec<FlowReference>)> {
        let (mut comment, mut depends_on) = (None, Vec::new());
        let mut seen: Vec<(&str, Span)> = Vec::new();
        loop {
            let first = cursor.at;
            let clause = match () {
                () if cursor.take_word("COMMENT") => "COMMENT",
                () if cursor.take_words(&["DEPENDS", "ON"]) => "DEPENDS ON",
                () => return Ok((comment, depends_on)),
            };
            let span = cursor.span_since(first);
            if let Some((_, earlier)) = seen.iter().find(|(name, _)| *name == clause) {
                statement.diagnostics.push(
                    Diagnostic::error("duplicate-clause", span, format!("`{clause}` is written twice"))
                        .label(*earlier, "first written here")
                        .help("keep one"),
                );
            }
            seen.push((clause, span));
            match clause {
                "COMMENT" => comment = Some(cursor.text("the comment in quotes")?.value),
                _ => depends_on.append(&mut self.flow_references(cursor, statement)?),
            }
        }
    }

    /// `(flow, …)`, or one flow without parentheses.
    fn flow_references(&self, cursor: &mut Cursor<'_>, statement: &mut Statement) -> Parse<Vec<FlowReference>> {
        let list = cursor.at;
        let is_in_parentheses = cursor.take_symbol("(");
        let mut flows = Vec::new();
        loop {
            let first = cursor.offset();
            let name = self.name(cursor, "the name of a flow", statement)?;
            let is_literal = cursor.text.is_copied(first..cursor.offset_behind());
            flows.push(FlowReference { name: name.value, span: name.span, is_literal });
            if !cursor.take_symbol(",") {
                break;
            }
        }
        if is_in_parentheses {
            cursor.expect_symbol(")")?;
        } else if flows.len() > 1 {
            let span = cursor.span_since(list);
            let first = cursor.tokens()[list].range.start;
            let written = format!("({})", cursor.str_of(first..cursor.offset_behind()));
            statement.diagnostics.push(
                Diagnostic::error("syntax-error", span, "several flows stand in parentheses")
                    .help(format!("write `DEPENDS ON {written}`"))
                    .edit(span, written),
            );
        }
        Ok(flows)
    }

    /// `[ONCE] INTO [ONCE] target [BY NAME]`; what INSERT has elsewhere in SQL is refused by name.
    fn insert_target(&self, cursor: &mut Cursor<'_>, statement: &mut Statement) -> Parse<(Spanned<Name>, bool)> {
        let mut is_once = cursor.take_word("ONCE");
        let overwrite = cursor.at;
        if cursor.take_word("OVERWRITE") {
            statement.diagnostics.push(not_in_a_flow(
                cursor.span_since(overwrite),
                "OVERWRITE",
                "a flow appends; to recompute a table define it as a MATERIALIZED VIEW",
            ));
            let _ = cursor.take_word("INTO") || cursor.take_word("TABLE");
        } else if !cursor.take_word("INTO") {
            return Err(cursor.expected("`INTO table`"));
        }
        if cursor.is_word(0, "ONCE") && !cursor.is_symbol(1, ".") && !cursor.is_word(1, "BY") {
            if is_once {
                return Err(Box::new(
                    Diagnostic::error("syntax-error", cursor.here(), "`ONCE` is written twice")
                        .help("remove one")
                        .edit(cursor.here(), ""),
                ));
            }
            cursor.at += 1;
            is_once = true;
        }
        let target = self.name(cursor, "the table that the flow writes to", statement)?;
        loop {
            let first = cursor.at;
            if cursor.take_words(&["BY", "NAME"]) {
                continue;
            }
            if cursor.take_word("PARTITION") {
                cursor.parentheses()?;
                let help = "remove it; the partition comes from the values of the partition columns";
                statement.diagnostics.push(not_in_a_flow(cursor.span_since(first), "a PARTITION specification", help));
            } else if cursor.take_words(&["IF", "NOT", "EXISTS"]) {
                statement.diagnostics.push(not_in_a_flow(cursor.span_since(first), "IF NOT EXISTS", "remove it"));
            } else if is_column_list(cursor) {
                cursor.parentheses()?;
                let help = "name the columns in the query: `BY NAME SELECT x AS column, …`";
                statement.diagnostics.push(not_in_a_flow(cursor.span_since(first), "a column list", help));
            } else {
                return Ok((target, is_once));
            }
        }
    }
}

fn not_in_a_flow(span: Span, what: &str, help: &str) -> Diagnostic {
    Diagnostic::error(
        "insert-not-by-name",
        span,
        format!("the INSERT of a flow takes no {}", what.trim_start_matches("a ")),
    )
    .condition("PIPELINE_SQL_GRAPH_ELEMENT_REGISTRATION_ERROR")
    .reason("a flow appends rows, and columns are matched by name")
    .help(help)
}

/// `(a, b)` and no subquery.
fn is_column_list(cursor: &Cursor<'_>) -> bool {
    let mut ahead = 0;
    while cursor.is_symbol(ahead, "(") {
        ahead += 1;
    }
    ahead > 0 && !["SELECT", "WITH", "VALUES", "FROM", "TABLE"].iter().any(|word| cursor.is_word(ahead, word))
}

/// REPLACE flows: known, not built.
pub(super) fn refuse_replace_flows(cursor: &mut Cursor<'_>) -> Parse<()> {
    let (words, help) = if cursor.are_words(&["REPLACE", "WHERE"]) {
        ("REPLACE WHERE", "recompute the table as a MATERIALIZED VIEW")
    } else if cursor.are_words(&["REPLACE", "USING"]) {
        ("REPLACE USING", "keep the latest row of each key with `AUTO CDC INTO table FROM … KEYS (…) SEQUENCE BY …`")
    } else {
        return Ok(());
    };
    let start = cursor.at;
    cursor.at += 2;
    let refused = not_supported_yet(cursor.span_since(start), words);
    Err(Box::new(refused.reason("an inserting flow appends rows, it replaces none").help(help)))
}
