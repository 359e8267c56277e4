//! `CREATE …` → definitions. The query inside goes to `query/`.
//!
//! ```text
//! CREATE [OR REFRESH] [PRIVATE] STREAMING TABLE [IF NOT EXISTS] name [columns] clause… [AS query | FLOW flow]
//! CREATE [OR REFRESH] [PRIVATE] MATERIALIZED VIEW [IF NOT EXISTS] name [columns] clause… AS query
//! CREATE [OR REFRESH] [TEMPORARY] VIEW [IF NOT EXISTS] name [columns] clause… AS query
//! CREATE FLOW name [COMMENT 's'] AS INSERT [ONCE] INTO [ONCE] target [BY NAME] query
//! flow   := INSERT [ONCE] BY NAME query
//! clause := USING DELTA | PARTITIONED BY (…) | CLUSTER BY (…|AUTO|NONE) | COMMENT 's' | TBLPROPERTIES (k = v, …) | …
//! ```
//! Clauses of Databricks that flowbench doesn't have are read and refused by name; none is passed over.

use std::collections::BTreeMap;

use super::columns::parse_columns;
use super::cursor::{Cursor, Parse, quote};
use super::query::{query, strip_live};
use super::sql_file::unsupported;
use super::token::{TokenKind, name_value, string_value};
use crate::definition::{DatasetDefinition, DatasetKind, Definition, FlowDefinition, FlowLimits, Scope};
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

/// The words between `CREATE` and the kind, each with its place.
#[derive(Default)]
struct HeadWords {
    or_refresh: Option<Span>,
    or_replace: Option<Span>,
    private: Option<Span>,
    temporary: Option<Span>,
    streaming: Option<Span>,
    live: Option<Span>,
    materialized: Option<Span>,
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
struct Head<'a> {
    words: HeadWords,
    /// `CREATE` to the kind.
    span: Span,
    scope: &'a Scope,
    limits: &'a FlowLimits,
}

/// What the clauses of a dataset say.
#[derive(Default)]
struct Clauses {
    comment: Option<String>,
    partition_by: Vec<Spanned<String>>,
    cluster_by: Vec<Spanned<String>>,
    properties: BTreeMap<String, String>,
    /// Name and place of each clause so far.
    seen: Vec<(&'static str, Span)>,
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
        if kind == DatasetKind::TemporaryView && name.value.parts.len() > 1 {
            statement.diagnostics.push(
                Diagnostic::error("qualified-temporary-view", name.span, "a temporary view has a name of one part")
                    .reason("it lives in the pipeline, not in a schema")
                    .help(format!("write `{}`", name.value.last()))
                    .edit(name.span, name.value.last()),
            );
        }
        let columns = parse_columns(&mut cursor, kind, &mut statement.diagnostics)?;
        let clauses = self.clauses(kind, &mut cursor, &mut statement.diagnostics)?;
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
            dataset.query = read_query(cursor, statement)?;
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
            refuse_change_flows(cursor, first)?;
            cursor.expect_words(&["INSERT"])?;
            dataset.is_once = cursor.take_word("ONCE");
            if cursor.is_word(0, "INTO") {
                return Err(Box::new(
                    cursor
                        .expected("`BY NAME`")
                        .help("behind FLOW the target is the table itself: `FLOW INSERT BY NAME query`"),
                ));
            }
            cursor.expect_words(&["BY", "NAME"])?;
            refuse_change_flows(cursor, first)?;
            dataset.query = read_query(cursor, statement)?;
        } else if cursor.is_at_end() {
            if !is_streaming_table {
                return Err(Box::new(
                    cursor.expected("`AS query`").help(format!("a {} is defined by its query", dataset.kind.words())),
                ));
            }
        } else {
            return Err(Box::new(unexpected_clause(cursor, dataset.kind)));
        }
        if is_streaming_table && dataset.is_legacy_live {
            if let Some(query) = &mut dataset.query {
                read_live_files_as_streams(query, &mut statement.diagnostics);
            }
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
    fn name(&self, cursor: &mut Cursor<'_>, what: &str, statement: &mut Statement) -> Parse<Spanned<Name>> {
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

    /// The clauses between the column list and the body, in any order, each once.
    fn clauses(&self, kind: DatasetKind, cursor: &mut Cursor<'_>, diagnostics: &mut Vec<Diagnostic>) -> Parse<Clauses> {
        let mut clauses = Clauses::default();
        while let Some(clause) = CLAUSES.into_iter().find(|clause| cursor.are_words(clause.words)) {
            let first = cursor.at;
            cursor.at += clause.words.len();
            let name = clause.name();
            if let Some((_, earlier)) = clauses.seen.iter().find(|(seen, _)| *seen == name) {
                diagnostics.push(
                    Diagnostic::error(
                        "duplicate-clause",
                        cursor.span_since(first),
                        format!("`{name}` is written twice"),
                    )
                    .label(*earlier, "first written here")
                    .help("keep one"),
                );
            }
            clauses.seen.push((name, cursor.span_since(first)));
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
            self.clause(name, cursor, &mut clauses, diagnostics)?;
        }
        let place = |name: &str| clauses.seen.iter().find(|(seen, _)| *seen == name).map(|(_, span)| *span);
        if let (Some(partition), Some(cluster)) = (place("PARTITIONED BY"), place("CLUSTER BY")) {
            diagnostics.push(
                Diagnostic::error("partition-and-cluster", cluster, "PARTITIONED BY and CLUSTER BY exclude each other")
                    .label(partition, "partitioned here")
                    .reason("rows lie either in one folder a value, or sorted within files")
                    .help("keep one; CLUSTER BY suits columns of many values"),
            );
        }
        Ok(clauses)
    }

    fn clause(
        &self,
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
                    let first = cursor.at;
                    clauses.cluster_by = column_names(cursor, "cluster")?;
                    if clauses.cluster_by.len() > 4 {
                        diagnostics.push(
                            Diagnostic::error(
                                "too-many-cluster-columns",
                                cursor.span_since(first),
                                "CLUSTER BY takes at most four columns",
                            )
                            .help("keep those that queries filter by most"),
                        );
                    }
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

    fn flow(&self, mut cursor: Cursor<'_>, statement: &mut Statement) -> Parse<()> {
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
        let comment = match cursor.take_word("COMMENT") {
            true => Some(cursor.text("the comment in quotes")?.value),
            false => None,
        };
        if cursor.take_words(&["DEPENDS", "ON"]) {
            let first = cursor.at - 2;
            cursor.skip_until(|c| c.is_word(0, "AS"))?;
            statement.diagnostics.push(
                not_supported_yet(cursor.span_since(first), "DEPENDS ON")
                    .reason("flows run in the order of their data so far")
                    .help("remove it, or read from the dataset that is to be ready first"),
            );
        }
        if !cursor.take_word("AS") {
            return Err(cursor.expected("`AS INSERT INTO table BY NAME query`"));
        }
        let first = cursor.at;
        refuse_change_flows(&mut cursor, first)?;
        if !cursor.take_word("INSERT") {
            let mut error = cursor.expected("`INSERT INTO table BY NAME query`");
            error.help = Some(match cursor.is_word(0, "SELECT") {
                true => "say which table the rows go to: `AS INSERT INTO table BY NAME SELECT …`".to_string(),
                false => "a flow inserts into a streaming table".to_string(),
            });
            return Err(error);
        }
        let (target, is_once) = self.insert_target(&mut cursor, statement)?;
        refuse_change_flows(&mut cursor, first)?;
        let Some(query) = read_query(&mut cursor, statement)? else { return Ok(()) };
        let span = cursor.span_of(cursor.tokens()[0].range.start..cursor.end());
        statement.definitions.push(Definition::Flow(FlowDefinition {
            name: flow_name,
            target,
            scope: self.scope.clone(),
            is_once,
            comment,
            query,
            limits: self.limits.clone(),
            span,
        }));
        Ok(())
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

/// AUTO CDC and REPLACE flows: known, not built. `first` is where the flow starts.
fn refuse_change_flows(cursor: &mut Cursor<'_>, first: usize) -> Parse<()> {
    let (words, reason, help): (&[&str], _, _) = if cursor.are_words(&["AUTO", "CDC"]) {
        let is_snapshot = cursor.tokens()[cursor.at..].windows(2).any(|pair| {
            let [from, snapshot] = pair else { return false };
            cursor.str_of(from.range.clone()).eq_ignore_ascii_case("FROM")
                && cursor.str_of(snapshot.range.clone()).eq_ignore_ascii_case("SNAPSHOT")
        });
        let what = if is_snapshot { "AUTO CDC FROM SNAPSHOT" } else { "AUTO CDC" };
        cursor.at += 2;
        return Err(Box::new(
            not_supported_yet(cursor.span_since(first), what)
                .reason("flowbench has append flows so far: it could not apply updates and deletes by key")
                .help("append the change events with `INSERT INTO table BY NAME`, and take the latest of each key in a materialized view"),
        ));
    } else if cursor.are_words(&["REPLACE", "WHERE"]) {
        (&["REPLACE", "WHERE"], "a flow appends rows so far", "recompute the table as a MATERIALIZED VIEW")
    } else if cursor.are_words(&["REPLACE", "USING"]) {
        (&["REPLACE", "USING"], "a flow appends rows so far", "take the latest row of each key in a MATERIALIZED VIEW")
    } else if cursor.are_words(&["APPLY", "CHANGES"]) {
        (
            &["APPLY", "CHANGES"],
            "it is the legacy form of AUTO CDC",
            "append the change events with `INSERT INTO table BY NAME`",
        )
    } else {
        return Ok(());
    };
    let start = cursor.at;
    cursor.at += words.len();
    Err(Box::new(not_supported_yet(cursor.span_since(start), &words.join(" ")).reason(reason).help(help)))
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
        refused: Some((
            "flows run in the order of their data so far",
            "remove it, or read from the dataset that is to be ready first",
        )),
    },
];

/// Passes over the rest of a clause.
fn skip_clause(cursor: &mut Cursor<'_>) -> Parse<()> {
    cursor.skip_until(|c| {
        c.is_word(0, "AS") || c.is_word(0, "FLOW") || CLAUSES.iter().any(|clause| c.are_words(clause.words))
    })
}

fn unexpected_clause(cursor: &Cursor<'_>, kind: DatasetKind) -> Diagnostic {
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
    match crate::diagnostic::nearest(&found, known) {
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

/// The rest of the statement as a query.
fn read_query(cursor: &mut Cursor<'_>, statement: &mut Statement) -> Parse<Option<Query>> {
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
