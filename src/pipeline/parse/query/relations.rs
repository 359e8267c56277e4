//! Walks the syntax tree of a query: every relation that is no CTE becomes an input, and what DataFusion
//! would name or resolve otherwise than Spark is written so that it doesn't.
//!
//! - a table gets its own name as alias, so that `orders.id` still means its column; `sales.orders.id`, which
//!   an alias can't stand for, becomes `orders.id`
//! - `*` over files leaves out `_metadata`, which Spark hides until it is named
//! - `_metadata.file_name` in a SELECT list is called `file_name`, as any field of a struct
//!
//! Scopes: a CTE is seen by the CTEs behind it and by the query's body, not by its own definition (unless
//! RECURSIVE) and not by the CTEs before it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

use sqlparser::ast::{
    self, Expr, Ident, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableFactor, Visit,
    Visitor, WildcardAdditionalOptions,
};

use super::super::cursor::too_many_parts;
use super::super::statement::not_supported_yet;
use super::checks::stream_of_cte;
use super::inputs::{TakenInput, strip_live};
use super::places::Places;
use crate::diagnostic::Diagnostic;
use crate::name::Name;
use crate::query::{Input, InputSource};
use crate::text::{MappedText, Span};

/// Replaces the relations of `query`, the syntax tree of `sql`.
pub(super) fn take_relations(
    query: &ast::Query,
    sql: &MappedText,
    taken: Vec<TakenInput>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (MappedText, Vec<Input>) {
    let mut walk = Walk {
        sql,
        places: Places::new(sql.as_str()),
        inputs: taken,
        scopes: Vec::new(),
        selects: Vec::new(),
        open_selects: Vec::new(),
        relations: BTreeMap::new(),
        qualified: Vec::new(),
        column_paths: Vec::new(),
        metadata: Vec::new(),
        edits: Vec::new(),
        diagnostics,
    };
    let _ = query.visit(&mut walk);
    walk.shorten_column_paths();
    walk.hide_metadata();
    walk.name_fields();
    let mut edits = walk.edits;
    // Sorted, and without what was found twice.
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut end = 0;
    edits.retain(|(range, _)| {
        let is_free = range.start >= end;
        end = if is_free { range.end } else { end };
        is_free
    });
    (sql.replaced(&edits), walk.inputs.into_iter().map(|taken| taken.input).collect())
}

/// The CTEs of a query, by name; those up to `visible` can be read where the walk is.
struct Scope {
    names: Vec<String>,
    queries: Vec<*const ast::Query>,
    is_recursive: bool,
    visible: usize,
}

/// A SELECT: what it reads from and which of its items may need a name or lose a column.
struct Select {
    /// Starts of the names of its relations in the text.
    relations: Vec<usize>,
    /// Names that columns can be qualified with, lower case.
    qualifiers: BTreeSet<String>,
    wildcards: Vec<Wildcard>,
    /// Items without alias that are paths: `a.b`.
    paths: Vec<(Vec<Ident>, usize)>,
}

struct Wildcard {
    qualifier: Option<String>,
    /// Where `EXCEPT` would go, or where its list ends.
    at: usize,
    has_list: bool,
    lists_metadata: bool,
}

pub(super) struct Walk<'a, 'd> {
    pub sql: &'a MappedText,
    pub places: Places<'a>,
    inputs: Vec<TakenInput>,
    scopes: Vec<Scope>,
    selects: Vec<Select>,
    open_selects: Vec<usize>,
    /// Start of a relation's name → its input and the name its columns are qualified with, lower case.
    relations: BTreeMap<usize, (usize, Option<String>)>,
    /// Relations of several parts without alias: parts in lower case, and the last as written.
    qualified: Vec<(Vec<String>, String)>,
    /// Column paths of three parts or more, and where each part starts and ends.
    column_paths: Vec<(Vec<String>, Vec<Range<usize>>)>,
    /// Uses of `_metadata`, with the qualifier if there is one.
    metadata: Vec<Option<String>>,
    edits: Vec<(Range<usize>, String)>,
    pub diagnostics: &'d mut Vec<Diagnostic>,
}

const METADATA: &str = "_metadata";

/// Table functions that DataFusion has under Spark's name.
const TABLE_FUNCTIONS: [&str; 2] = ["range", "generate_series"];

const OTHER_RELATIONS: &str = "behind FROM stand tables, subqueries and calls of `read_files`";

impl Visitor for Walk<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        if let Some((scope, i)) = self.definition_of(query) {
            scope.visible = i + usize::from(scope.is_recursive);
        }
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        self.scopes.push(Scope {
            names: ctes.clone().map(|cte| cte.alias.name.value.to_lowercase()).collect(),
            queries: ctes.map(|cte| std::ptr::from_ref(cte.query.as_ref())).collect(),
            is_recursive: query.with.as_ref().is_some_and(|with| with.recursive),
            visible: 0,
        });
        self.check_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        self.scopes.pop();
        if let Some((scope, i)) = self.definition_of(query) {
            scope.visible = i + 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        self.check_select(select);
        let mut found =
            Select { relations: Vec::new(), qualifiers: BTreeSet::new(), wildcards: Vec::new(), paths: Vec::new() };
        for table in &select.from {
            for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
                self.add_relation(factor, &mut found);
            }
        }
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(options) => found.wildcards.extend(self.wildcard(None, options)),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let idents: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
                    if let Some(last) = idents.last() {
                        found.wildcards.extend(self.wildcard(Some(last.value.to_lowercase()), options));
                    }
                    if idents.len() >= 2 {
                        self.add_column_path(&idents);
                    }
                }
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(idents)) => {
                    if let Some(last) = idents.last() {
                        found.paths.push((idents.clone(), self.places.range(last.span).end));
                    }
                }
                _ => {}
            }
        }
        self.open_selects.push(self.selects.len());
        self.selects.push(found);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _select: &ast::Select) -> ControlFlow<()> {
        self.open_selects.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.table_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) if ident.value.eq_ignore_ascii_case(METADATA) => self.metadata.push(None),
            Expr::CompoundIdentifier(idents) => {
                if let Some(i) = idents.iter().position(|ident| ident.value.eq_ignore_ascii_case(METADATA)) {
                    self.metadata.push(i.checked_sub(1).map(|before| idents[before].value.to_lowercase()));
                }
                self.add_column_path(&idents.iter().collect::<Vec<_>>());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Walk<'_, '_> {
    /// If `query` defines a CTE of the innermost scope: that scope and the CTE's index.
    fn definition_of(&mut self, query: &ast::Query) -> Option<(&mut Scope, usize)> {
        let scope = self.scopes.last_mut()?;
        let i = scope.queries.iter().position(|cte| std::ptr::eq(*cte, query))?;
        Some((scope, i))
    }

    fn is_cte(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.scopes.iter().any(|scope| scope.names[..scope.visible.min(scope.names.len())].contains(&name))
    }

    fn table_factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, alias, args, version, sample, with_hints, json_path, .. } => {
                let Some(range) = self.name_range(name) else { return };
                if let Some(version) = version {
                    let word = if version.to_string().to_ascii_uppercase().contains("VERSION") {
                        "VERSION"
                    } else {
                        "TIMESTAMP"
                    };
                    let span = self.span_of_word(word, range.end);
                    self.diagnostics.push(
                        not_supported_yet(span, &format!("{word} AS OF"))
                            .reason("a query reads a table as it is when its flow starts")
                            .help("remove it; `flowbench show NAME --at-version N` shows an older version"),
                    );
                }
                if sample.is_some() || !with_hints.is_empty() || json_path.is_some() {
                    let span = self.span_of_word("TABLESAMPLE", range.end);
                    self.diagnostics.push(
                        not_supported_yet(span, "TABLESAMPLE")
                            .help("remove it, or filter by a hash: `WHERE pmod(xxhash64(id), 10) = 0`"),
                    );
                }
                match args {
                    Some(_) => self.table_function(name, range, alias.as_ref()),
                    None => self.table(name, range, alias.as_ref()),
                }
            }
            TableFactor::Derived { .. } | TableFactor::NestedJoin { .. } | TableFactor::UNNEST { .. } => {}
            TableFactor::Pivot { .. } => {
                self.unsupported_relation("PIVOT", "write one aggregate a column: `sum(x) FILTER (WHERE k = 'a') AS a`")
            }
            TableFactor::Unpivot { .. } => {
                self.unsupported_relation("UNPIVOT", "write one SELECT a column with UNION ALL")
            }
            TableFactor::Function { name, .. } => {
                let Some(range) = self.name_range(name) else { return };
                self.unknown_table_function(name, range);
            }
            TableFactor::TableFunction { .. } => self.unsupported_relation("TABLE", OTHER_RELATIONS),
            TableFactor::JsonTable { .. } => self.unsupported_relation("JSON_TABLE", OTHER_RELATIONS),
            TableFactor::OpenJsonTable { .. } => self.unsupported_relation("OPENJSON", OTHER_RELATIONS),
            TableFactor::MatchRecognize { .. } => self.unsupported_relation("MATCH_RECOGNIZE", OTHER_RELATIONS),
            TableFactor::XmlTable { .. } => self.unsupported_relation("XMLTABLE", OTHER_RELATIONS),
            TableFactor::SemanticView { .. } => self.unsupported_relation("SEMANTIC_VIEW", OTHER_RELATIONS),
        }
    }

    /// The first `word` at or behind `from`; the whole query if there is none.
    pub(super) fn span_of_word(&self, word: &str, from: usize) -> Span {
        let text = self.sql.as_str();
        let found = super::tokenize(text)
            .into_iter()
            .find(|token| token.range.start >= from && text[token.range.clone()].eq_ignore_ascii_case(word));
        self.sql.origin(found.map_or(0..text.trim_end().len(), |token| token.range))
    }

    /// A table by its name: a CTE, a placeholder for what was taken out before, or a dataset.
    fn table(&mut self, name: &ObjectName, range: Range<usize>, alias: Option<&TableAlias>) {
        let idents: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let Some(last) = idents.last() else { return };
        let qualifier = alias.map(|alias| alias.name.value.to_lowercase());
        if let [only] = idents.as_slice() {
            if let Some(i) = self.inputs.iter().position(|taken| taken.input.name == only.value) {
                let own = self.inputs[i].alias.clone();
                if let InputSource::Table(name) = &self.inputs[i].input.source {
                    let (name, span) = (name.clone(), self.inputs[i].input.span);
                    if name.parts.len() == 1 && self.is_cte(name.last()) {
                        self.diagnostics.push(stream_of_cte(&name, span));
                    }
                    if let (None, Some(own)) = (&qualifier, &own) {
                        self.edits.push((range.end..range.end, format!(" AS {own}")));
                        let parts = lower_parts(&name.parts);
                        self.qualified
                            .push((std::iter::once("live".to_string()).chain(parts.clone()).collect(), own.clone()));
                        self.qualified.push((parts, own.clone()));
                    }
                }
                let own_bare = own.map(|own| own.trim_matches('`').to_lowercase());
                self.relations.insert(range.start, (i, qualifier.or(own_bare)));
                return;
            }
            if self.is_cte(&only.value) {
                return;
            }
        }
        let written = Name { parts: idents.iter().map(|ident| ident.value.clone()).collect() };
        let span = self.sql.origin(range.clone());
        let mut resolved = written.clone();
        if let [first, second, ..] = idents.as_slice() {
            let prefix = self.sql.origin(self.places.range(first.span).start..self.places.range(second.span).start);
            if let Some((bare, lint)) = strip_live(&written, span, prefix) {
                self.diagnostics.push(lint);
                resolved = bare;
            }
        }
        if resolved.parts.len() > 3 {
            self.diagnostics.push(too_many_parts(span, resolved.parts.len()));
        }
        let source = InputSource::Table(resolved.clone());
        let key = lower_parts(&resolved.parts);
        let same = self.inputs.iter().position(|taken| {
            let input = &taken.input;
            !input.stream && matches!(&input.source, InputSource::Table(name) if lower_parts(&name.parts) == key)
        });
        let i = same.unwrap_or_else(|| {
            let name = format!("__input_{}", self.inputs.len());
            let name_span = self.sql.copied(range.clone());
            let input =
                Input { name, source, stream: false, options: Vec::new(), span, name_span, uses_metadata: false };
            self.inputs.push(TakenInput { input, alias: None });
            self.inputs.len() - 1
        });
        let last_written = self.sql.as_str()[self.places.range(last.span)].to_string();
        let placeholder = self.inputs[i].input.name.clone();
        let text = match qualifier {
            Some(_) => placeholder,
            None => {
                self.qualified.push((lower_parts(&written.parts), last_written.clone()));
                format!("{placeholder} AS {last_written}")
            }
        };
        self.relations.insert(range.start, (i, Some(qualifier.unwrap_or_else(|| last.value.to_lowercase()))));
        self.edits.push((range, text));
    }

    fn table_function(&mut self, name: &ObjectName, range: Range<usize>, alias: Option<&TableAlias>) {
        let written = name.to_string();
        if !TABLE_FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(&written)) {
            self.unknown_table_function(name, range);
            return;
        }
        // Spark calls the column of `range` `id`, DataFusion `value`.
        if written.eq_ignore_ascii_case("range") {
            match alias {
                Some(alias) if alias.columns.is_empty() => {
                    let end = self.places.range(alias.name.span).end;
                    self.edits.push((end..end, " (id)".to_string()));
                }
                Some(_) => {}
                None => {
                    let text = self.sql.as_str();
                    if let Some(end) = end_of_parentheses(text, range.end) {
                        self.edits.push((end..end, " AS `range` (id)".to_string()));
                    }
                }
            }
        }
    }

    /// The names a SELECT's relations give their columns, and which of its relations are inputs.
    fn add_relation(&self, factor: &TableFactor, select: &mut Select) {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let own = name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.to_lowercase());
                select.qualifiers.extend(alias.as_ref().map(|alias| alias.name.value.to_lowercase()).or(own));
                select.relations.extend(self.name_range(name).map(|range| range.start));
            }
            TableFactor::Derived { alias: Some(alias), .. } | TableFactor::UNNEST { alias: Some(alias), .. } => {
                select.qualifiers.insert(alias.name.value.to_lowercase());
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                let joined = table_with_joins.joins.iter().map(|join| &join.relation);
                for factor in std::iter::once(&table_with_joins.relation).chain(joined) {
                    self.add_relation(factor, select);
                }
            }
            _ => {}
        }
    }

    fn wildcard(&self, qualifier: Option<String>, options: &WildcardAdditionalOptions) -> Option<Wildcard> {
        if options.opt_exclude.is_some() {
            return None;
        }
        let star = self.places.range(options.wildcard_token.0.span);
        let is_metadata = |ident: &Ident| ident.value.eq_ignore_ascii_case(METADATA);
        Some(match &options.opt_except {
            Some(except) => {
                let last = except.additional_elements.last().unwrap_or(&except.first_element);
                let lists_metadata =
                    is_metadata(&except.first_element) || except.additional_elements.iter().any(is_metadata);
                Wildcard { qualifier, at: self.places.range(last.span).end, has_list: true, lists_metadata }
            }
            None => Wildcard { qualifier, at: star.end, has_list: false, lists_metadata: false },
        })
    }

    fn add_column_path(&mut self, idents: &[&Ident]) {
        if idents.len() >= 2 {
            self.column_paths.push((
                idents.iter().map(|ident| ident.value.to_lowercase()).collect(),
                idents.iter().map(|ident| self.places.range(ident.span)).collect(),
            ));
        }
    }

    /// `sales.orders.id` → `orders.id`, where `sales.orders` is read without alias.
    fn shorten_column_paths(&mut self) {
        for (path, ranges) in &self.column_paths {
            let longest = self
                .qualified
                .iter()
                .flat_map(|(parts, last)| (0..parts.len()).map(move |skip| (&parts[skip..], last)))
                .filter(|(parts, _)| parts.len() >= 2 && path.starts_with(parts))
                .max_by_key(|(parts, _)| parts.len());
            if let Some((parts, last)) = longest {
                let range = ranges[0].start..ranges[parts.len() - 1].end;
                self.edits.push((range, last.clone()));
            }
        }
    }

    fn hide_metadata(&mut self) {
        for used in &self.metadata {
            let owners: BTreeSet<usize> = self
                .relations
                .values()
                .filter(|(_, qualifier)| used.is_some() && qualifier == used)
                .map(|(input, _)| *input)
                .collect();
            for (i, taken) in self.inputs.iter_mut().enumerate() {
                let is_meant = owners.is_empty() || owners.contains(&i);
                if is_meant && matches!(taken.input.source, InputSource::Files(_)) {
                    taken.input.uses_metadata = true;
                }
            }
        }
        for select in &self.selects {
            let hidden = |wildcard: &Wildcard| {
                select.relations.iter().filter_map(|start| self.relations.get(start)).any(|(input, qualifier)| {
                    self.inputs[*input].input.uses_metadata
                        && (wildcard.qualifier.is_none() || wildcard.qualifier == *qualifier)
                })
            };
            for wildcard in select.wildcards.iter().filter(|wildcard| !wildcard.lists_metadata && hidden(wildcard)) {
                let text = if wildcard.has_list { ", _metadata" } else { " EXCEPT (_metadata)" };
                self.edits.push((wildcard.at..wildcard.at, text.to_string()));
            }
        }
    }

    /// Spark calls `a.b` in a SELECT list `b`, DataFusion names the field of a struct `a[b]`.
    fn name_fields(&mut self) {
        for select in &self.selects {
            for (idents, end) in &select.paths {
                let [first, .., last] = idents.as_slice() else { continue };
                let qualifier = first.value.to_lowercase();
                let is_qualifier = select.qualifiers.contains(&qualifier)
                    || select
                        .relations
                        .iter()
                        .filter_map(|start| self.relations.get(start))
                        .any(|(_, own)| own.as_ref() == Some(&qualifier));
                let is_column = idents.len() == 2 && is_qualifier;
                let is_shortened = self.column_paths.iter().any(|(path, ranges)| {
                    ranges[0] == self.places.range(first.span)
                        && self
                            .qualified
                            .iter()
                            .any(|(parts, _)| parts.len() + 1 == path.len() && path.starts_with(parts))
                });
                if !is_column && !is_shortened {
                    let written = &self.sql.as_str()[self.places.range(last.span)];
                    self.edits.push((*end..*end, format!(" AS {written}")));
                }
            }
        }
    }

    fn name_range(&self, name: &ObjectName) -> Option<Range<usize>> {
        let first = name.0.first()?.as_ident()?;
        let last = name.0.last()?.as_ident()?;
        Some(self.places.range(first.span).start..self.places.range(last.span).end)
    }
}

fn lower_parts(parts: &[String]) -> Vec<String> {
    parts.iter().map(|part| part.to_lowercase()).collect()
}

/// The end of the parentheses that open at or behind `from`.
fn end_of_parentheses(text: &str, from: usize) -> Option<usize> {
    let mut depth = 0;
    for token in super::tokenize(&text[from..]) {
        match &text[from..][token.range.clone()] {
            "(" => depth += 1,
            ")" if depth == 1 => return Some(from + token.range.end),
            ")" => depth -= 1,
            _ => {}
        }
    }
    None
}
