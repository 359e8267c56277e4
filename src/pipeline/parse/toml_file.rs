//! A TOML file of definitions: `[[streaming_table]]`, `[[materialized_view]]`, `[[temporary_view]]`, `[[view]]`,
//! `[[flow]]`, `[[auto_cdc]]`, `[[auto_cdc_snapshot]]` → [`Definition`]s, the same that SQL gives.
//!
//! Not here: the keys of AUTO CDC (`toml_change.rs`), the repetition of a table by `for_each` (`for_each.rs`), the SQL inside (`query`), and whether names
//! and targets exist (the graph).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::definition::{
    ColumnDefinition, DatasetDefinition, DatasetKind, Definition, FlowDefinition, FlowLimits, FlowReference, Scope,
};
use crate::diagnostic::Diagnostic;
use crate::name::Name;
use crate::parse::clauses::no_order;
use crate::parse::columns::parse_columns;
use crate::parse::cursor::Cursor;
use crate::parse::for_each::bindings;
use crate::parse::query::{query, without_comments};
use crate::parse::settings::{dataset_name, expand_with};
use crate::parse::toml_change::ChangeTable;
use crate::parse::toml_reader::{Expand, TableReader, key_span};
use crate::parse::toml_tree::{Parsed, Table, Value, parse_toml};
use crate::query::Query;
use crate::settings::Settings;
use crate::text::{FileId, MappedText, Spanned};
use crate::workspace::Workspace;

/// What a table of the file defines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dataset(DatasetKind),
    Flow,
    Change(ChangeTable),
}

const TABLES: [(&str, &str, Kind); 7] = [
    ("streaming_table", "[[streaming_table]]", Kind::Dataset(DatasetKind::StreamingTable)),
    ("materialized_view", "[[materialized_view]]", Kind::Dataset(DatasetKind::MaterializedView)),
    ("temporary_view", "[[temporary_view]]", Kind::Dataset(DatasetKind::TemporaryView)),
    ("view", "[[view]]", Kind::Dataset(DatasetKind::View)),
    ("flow", "[[flow]]", Kind::Flow),
    ("auto_cdc", "[[auto_cdc]]", Kind::Change(ChangeTable::Feed)),
    ("auto_cdc_snapshot", "[[auto_cdc_snapshot]]", Kind::Change(ChangeTable::Snapshot)),
];

/// What those tables are called, for flowbench.toml, where they don't belong.
pub(super) fn table_names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, ..)| *name).chain(LATER_TABLES)
}

/// Tables that parse and aren't built yet.
const LATER_TABLES: [&str; 2] = ["sink", "hook"];

/// Reads the definitions of one TOML file of the workspace, in the order of the file. A table that is wrong gives
/// its diagnostics, and a dataset with a wrong query still its name, so that others may read it.
pub fn toml_file(file: FileId, workspace: &Workspace, settings: &Settings) -> (Vec<Definition>, Vec<Diagnostic>) {
    let source = &workspace.files[file.0];
    let Parsed { table, syntax_error } = parse_toml(file, &source.text);
    let mut diagnostics = Vec::new();
    let expand = expand_with(&settings.configuration);
    let mut top = TableReader::new(&table, "", &expand, &mut diagnostics);
    let mut tables: Vec<(&Table, &str, Kind)> = Vec::new();
    for (key, title, kind) in TABLES {
        tables.extend(top.tables(key).into_iter().map(|table| (table, title, kind)));
    }
    for key in LATER_TABLES {
        top.refuse(key, "not-supported-yet", format!("`[[{key}]]` is not supported yet"), "remove it");
    }
    for key in ["pipeline", "configuration", "limits", "paths", "source"] {
        top.refuse(key, "misplaced-table", format!("`{key}` belongs in flowbench.toml"), "move it there");
    }
    top.finish();

    tables.sort_by_key(|(table, ..)| table.header.start);
    let context = Context { path: &source.path, workspace, settings };
    let mut definitions = Vec::new();
    for (table, title, kind) in tables {
        for binding in bindings(table, title, &expand, &mut diagnostics) {
            let expand = |text: &MappedText| binding.expand(text, &expand);
            let definition = match kind {
                Kind::Dataset(kind) => context.dataset(kind, table, title, &expand, &mut diagnostics),
                Kind::Flow => context.flow(table, title, &expand, &mut diagnostics),
                Kind::Change(kind) => context.change_flow(kind, table, title, &expand, &mut diagnostics),
            };
            definitions.extend(definition);
        }
    }
    crate::diagnostic::sort(&mut diagnostics);
    match syntax_error {
        // What a file lacks or says in the wrong place is no news while lines of it are missing.
        Some(error) => (definitions, vec![error]),
        None => (definitions, diagnostics),
    }
}

/// The `sql_file` paths of a TOML file, as written: each is a file of one query.
pub fn query_paths(text: &str) -> Vec<String> {
    if !text.contains("sql_file") {
        return Vec::new();
    }
    let table = parse_toml(FileId(0), text).table;
    let tables = table.entries.iter().filter_map(|(_, value)| match &value.value {
        Value::Array(elements) => Some(elements),
        _ => None,
    });
    let path_of = |element: &Spanned<Value>| match &element.value {
        Value::Table(table) => match &table.entries.iter().find(|(key, _)| key.value == "sql_file")?.1.value {
            Value::Text(path) => Some(path.as_str().to_string()),
            _ => None,
        },
        _ => None,
    };
    tables.flatten().filter_map(path_of).collect()
}

/// What the reading of every table needs.
pub(super) struct Context<'a> {
    /// Of the TOML file, where a `sql_file` starts from.
    path: &'a str,
    workspace: &'a Workspace,
    settings: &'a Settings,
}

impl Context<'_> {
    fn dataset(
        &self,
        kind: DatasetKind,
        table: &Table,
        title: &str,
        expand: Expand,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Definition> {
        let mut reader = TableReader::new(table, title, expand, diagnostics);
        reader.value("for_each");
        let name = reader.required_word("name").and_then(|word| dataset_name(&mut reader, word));
        let comment = reader.text("comment").map(|comment| comment.value);
        let properties: BTreeMap<String, String> =
            reader.properties("table_properties").into_iter().map(|(key, value)| (key.value, value.value)).collect();
        let columns = columns(&mut reader, kind);
        let (mut partition_by, mut cluster_by, mut is_private, mut limits) = Default::default();
        if kind.is_stored() {
            partition_by = reader.words("partition_by").unwrap_or_default();
            cluster_by = cluster_columns(&mut reader);
            is_private = reader.boolean("private").unwrap_or(false);
            limits = flow_limits(&mut reader);
        } else {
            for key in ["partition_by", "cluster_by", "private", "limits"] {
                let message = format!("a {} has no `{key}`: it is never stored", kind.words());
                reader.refuse(key, "misplaced-key", message, "remove it");
            }
        }
        refuse_later_keys(&mut reader, kind);
        let query = match kind {
            DatasetKind::StreamingTable => self.optional_query(&mut reader, table),
            _ => self.required_query(&mut reader, table),
        };
        reader.finish();
        Some(Definition::Dataset(DatasetDefinition {
            kind,
            name: name?,
            scope: self.scope(),
            columns,
            comment,
            partition_by,
            cluster_by,
            properties,
            is_private,
            query: query.map(Arc::new),
            change: None,
            is_once: false,
            is_legacy_live: false,
            limits,
            span: table.span(),
        }))
    }

    fn flow(
        &self,
        table: &Table,
        title: &str,
        expand: Expand,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Definition> {
        let mut reader = TableReader::new(table, title, expand, diagnostics);
        reader.value("for_each");
        let name = reader.required_word("name").and_then(|word| flow_name(&mut reader, word));
        let target = reader.required_word("target").and_then(|word| dataset_name(&mut reader, word));
        let is_once = reader.boolean("once").unwrap_or(false);
        let comment = reader.text("comment").map(|comment| comment.value);
        let limits = flow_limits(&mut reader);
        let depends_on = depends_on(&mut reader);
        reader.not_supported_yet("output_mode", "remove it; flows append");
        reader.not_supported_yet("spark_conf", "use `limits` for threads, memory and retries");
        for key in ["table_properties", "schema", "partition_by", "cluster_by"] {
            let message = format!("a flow has no `{key}`: it belongs to the target");
            reader.refuse(key, "misplaced-key", message, "move it to the [[streaming_table]]");
        }
        let query = self.required_query(&mut reader, table);
        reader.finish();
        let name = name?;
        let (Some(target), Some(query)) = (target, query) else { return Some(Definition::BrokenFlow(name)) };
        Some(Definition::Flow(FlowDefinition {
            name,
            is_default: false,
            target,
            scope: self.scope(),
            is_once,
            depends_on,
            comment,
            query: Arc::new(query),
            change: None,
            limits,
            span: table.span(),
        }))
    }

    pub(super) fn scope(&self) -> Scope {
        Scope { catalog: self.settings.catalog.clone(), schema: self.settings.schema.clone() }
    }

    fn required_query(&self, reader: &mut TableReader, table: &Table) -> Option<Query> {
        if reader.value("sql").is_none() && reader.value("sql_file").is_none() {
            reader.report(
                Diagnostic::error("missing-key", table.header, "there is no query: neither `sql` nor `sql_file`")
                    .help("add `sql = \"\"\"SELECT …\"\"\"`"),
            );
            return None;
        }
        self.optional_query(reader, table)
    }

    /// The query of `sql` or `sql_file`, if there is one.
    fn optional_query(&self, reader: &mut TableReader, table: &Table) -> Option<Query> {
        let inline = reader.raw_text("sql");
        let path = reader.word("sql_file");
        if let (Some(first), Some(second)) = (key_span(table, "sql"), key_span(table, "sql_file")) {
            reader.report(
                Diagnostic::error("conflicting-keys", second, "`sql` and `sql_file` exclude each other")
                    .label(first, "the query is here already")
                    .help("remove one"),
            );
            return None;
        }
        let text = match (inline, path) {
            (Some(text), _) => text.value.clone(),
            (None, Some(path)) => self.query_file(reader, &path)?,
            (None, None) => return None,
        };
        // Comments go first, so that no `${name}` is needed for a comment's sake.
        let text = reader.expanded(&without_comments(&text));
        let (query, mut diagnostics) = query(&text);
        if text.as_str().contains("${") {
            // That this is no SQL has been said better already.
            diagnostics.retain(|diagnostic| diagnostic.code != "syntax-error");
        }
        diagnostics.into_iter().for_each(|diagnostic| reader.report(diagnostic));
        query
    }

    fn query_file(&self, reader: &mut TableReader, path: &Spanned<String>) -> Option<MappedText> {
        let Some(file) = find_file(self.workspace, self.path, &path.value) else {
            reader.report(
                Diagnostic::error("unknown-file", path.span, format!("no file `{}` in the workspace", path.value))
                    .reason(format!("`sql_file` is relative to {}", self.path))
                    .help("correct the path; the file must be among `sources` of flowbench.toml"),
            );
            return None;
        };
        let text = &self.workspace.files[file.0].text;
        Some(MappedText::from_file(file, text, 0..text.len()))
    }
}

/// The file that `path` means in a file at `from`.
pub fn find_file(workspace: &Workspace, from: &str, path: &str) -> Option<FileId> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    workspace.files.iter().position(|file| file.path == path).map(FileId)
}

/// The name of a flow has one part.
pub(super) fn flow_name(reader: &mut TableReader, word: Spanned<String>) -> Option<Spanned<String>> {
    let mut name = Name::split(&word.value);
    if name.parts.len() > 1 {
        reader.report(
            Diagnostic::error(
                "multipart-flow-name",
                word.span,
                format!("the name of a flow has one part: `{}`", word.value),
            )
            .condition("MULTIPART_FLOW_NAME_NOT_SUPPORTED")
            .help("leave out what is before the dot"),
        );
        return None;
    }
    Some(Spanned::new(name.parts.pop()?, word.span))
}

/// `depends_on = "f"` or `["f", "g"]`: the flows to wait for.
pub(super) fn depends_on(reader: &mut TableReader) -> Vec<FlowReference> {
    let mut flows = Vec::new();
    for word in reader.mapped_words("depends_on").unwrap_or_default() {
        let text = &word.value;
        let name = Name::split(text.as_str());
        if name.parts.iter().any(|part| part.trim().is_empty()) {
            reader.report(
                Diagnostic::error("invalid-name", word.span, format!("`{}` is no name of a flow", text.as_str()))
                    .help("write the name of a [[flow]]; backticks quote a part with a dot"),
            );
            continue;
        }
        let all = 0..text.as_str().len();
        flows.push(FlowReference { name, span: text.origin(all.clone()), is_literal: text.is_copied(all) });
    }
    flows
}

/// `schema = "id BIGINT NOT NULL, …"`: what SQL writes in parentheses.
fn columns(reader: &mut TableReader, kind: DatasetKind) -> Vec<ColumnDefinition> {
    let Some(text) = reader.mapped_text("schema") else { return Vec::new() };
    let mut list = MappedText::new();
    list.push_replacement("(", text.span);
    list.push_part(&text.value, 0..text.value.as_str().len());
    // On a line of its own: the text may end in a comment.
    list.push_replacement("\n)", text.span);
    let mut cursor = Cursor::new(&list);
    let mut diagnostics = Vec::new();
    let columns = parse_columns(&mut cursor, kind, &mut diagnostics).and_then(|columns| match cursor.is_at_end() {
        true => Ok(columns),
        false => Err(cursor.expected("the end of `schema`")),
    });
    diagnostics.into_iter().for_each(|diagnostic| reader.report(diagnostic));
    columns.unwrap_or_else(|diagnostic| {
        reader.report(*diagnostic);
        Vec::new()
    })
}

/// `cluster_by = ["a", "b"]`; "auto" and "none" leave the layout to us.
fn cluster_columns(reader: &mut TableReader) -> Vec<Spanned<String>> {
    let columns = reader.words("cluster_by").unwrap_or_default();
    match columns.as_slice() {
        [one] if matches!(one.value.to_ascii_lowercase().as_str(), "auto" | "none") => Vec::new(),
        _ => columns,
    }
}

fn refuse_later_keys(reader: &mut TableReader, kind: DatasetKind) {
    for key in ["expect", "expect_or_drop", "expect_or_fail"] {
        reader.not_supported_yet(key, "remove it, or filter the rows in the query");
    }
    reader.not_supported_yet("spark_conf", "use `limits` for threads, memory and retries");
    reader.not_supported_yet("row_filter", "remove it, or filter the rows in a view");
    reader.not_supported_yet("location", "remove it; tables are stored in the workspace's `storage`");
    if kind == DatasetKind::MaterializedView {
        reader.not_supported_yet("refresh_policy", "remove it; the view is recomputed at each update");
    }
    if let Some(format) = reader.word("format")
        && !format.value.eq_ignore_ascii_case("delta")
    {
        let message = format!("tables are stored as Delta only, found `{}`", format.value);
        reader.report(Diagnostic::error("unsupported-format", format.span, message).help("remove `format`"));
    }
    for key in ["target", "once"] {
        let message = format!("`{key}` belongs to a [[flow]]");
        reader.refuse(key, "misplaced-key", message, "remove it, or define a [[flow]] of its own");
    }
    let message = format!("a {} has no `depends_on`", kind.words());
    let (reason, help) = no_order(kind);
    reader.refuse_because("depends_on", message, reason, help);
}

/// `limits = { threads = 2, memory = "512MB", retries = 0 }`.
pub(super) fn flow_limits(reader: &mut TableReader) -> FlowLimits {
    let Some(table) = reader.table("limits") else { return FlowLimits::default() };
    reader.nested(table, "`limits`", |reader| {
        let limits = FlowLimits {
            threads: reader.count("threads", 1..=1024).map(|threads| threads as usize),
            memory_bytes: reader.bytes("memory"),
            retries: reader.count("retries", 0..=100).map(|retries| retries as u32),
        };
        reader.refuse(
            "max_files_per_trigger",
            "misplaced-key",
            "the files of a micro-batch are an option of the source",
            "write maxFilesPerTrigger => … in read_files",
        );
        limits
    })
}
