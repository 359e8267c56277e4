//! `[[auto_cdc]]` and `[[auto_cdc_snapshot]]`: what Python's `create_auto_cdc_flow` and
//! `create_auto_cdc_from_snapshot_flow` take, and settings of ours.
//!
//! Not here: what the clauses make together (`change_spec.rs`).

use std::sync::Arc;

use regex::Regex;

use super::auto_cdc::feed_source;
use super::change_clause::bitemporal;
use super::change_spec::{ChangeSource, ChangeSpec, Syntax};
use super::column_list::{column_name, empty_ignore_list};
use super::cursor::Cursor;
use super::query::{files_query, without_comments};
use super::settings::dataset_name;
use super::toml_file::{Context, depends_on, flow_limits, flow_name};
use super::toml_reader::{Expand, TableReader, key_span};
use super::toml_tree::{Table, Value};
use crate::auto_cdc::{ColumnSelection, Fraction, IgnoreNulls, NullKeys, ScdType, SnapshotFiles};
use crate::data_type::DataType;
use crate::ddl::parse_type;
use crate::definition::{Definition, FlowDefinition};
use crate::diagnostic::Diagnostic;
use crate::query::{FilesCall, OptionValue, ReadOption};
use crate::text::{MappedText, Span, Spanned};

/// Where the changes of a table come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeTable {
    Feed,
    Snapshot,
}

impl Context<'_> {
    /// The flow of `[[auto_cdc]]` or `[[auto_cdc_snapshot]]`.
    pub(super) fn change_flow(
        &self,
        kind: ChangeTable,
        table: &Table,
        title: &str,
        expand: Expand,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Definition> {
        let mut reader = TableReader::new(table, title, expand, diagnostics);
        reader.value("for_each");
        let given_name = reader.value("name").is_some();
        let name = reader.word("name").and_then(|word| flow_name(&mut reader, word));
        let target = reader.required_word("target").and_then(|word| dataset_name(&mut reader, word));
        let comment = reader.text("comment").map(|comment| comment.value);
        let limits = flow_limits(&mut reader);
        let depends_on = depends_on(&mut reader);

        let head = table.header;
        let flow = name.as_ref().map(|name| name.value.clone());
        let flow = flow.or_else(|| target.as_ref().map(|target| target.value.to_string())).unwrap_or_default();
        let mut spec = ChangeSpec::new(Syntax::Toml, &flow, head);
        spec.span = table.span();
        spec.is_once = reader.boolean("once").unwrap_or(false);
        spec.keys = names(&mut reader, "keys", &mut spec.is_complete);
        scd_type(&mut reader, &mut spec);
        spec.track_history = selection(&mut reader, &TRACK_HISTORY, &mut spec.is_complete);
        match kind {
            ChangeTable::Feed => feed(&mut reader, &mut spec),
            ChangeTable::Snapshot => snapshot(&mut reader, table, &mut spec),
        }
        reader.not_supported_yet("spark_conf", "use `limits` for threads, memory and retries");
        for key in ["table_properties", "schema", "partition_by", "cluster_by"] {
            let message = format!("a flow has no `{key}`: it belongs to the target");
            reader.refuse(key, "misplaced-key", message, "move it to the [[streaming_table]]");
        }
        reader.finish();

        let is_once = spec.is_once;
        let made = spec.finish(diagnostics);
        let is_default = !given_name;
        let name = match (name, &target) {
            (Some(name), _) => name,
            (None, Some(target)) if is_default => Spanned::new(target.value.to_string(), target.span),
            _ => return None,
        };
        let (Some(target), Some((query, change))) = (target, made) else { return Some(Definition::BrokenFlow(name)) };
        Some(Definition::Flow(FlowDefinition {
            name,
            is_default,
            target,
            scope: self.scope(),
            is_once,
            depends_on,
            comment,
            query: Arc::new(query),
            change: Some(Arc::new(change)),
            limits,
            span: table.span(),
        }))
    }
}

fn feed(reader: &mut TableReader, spec: &mut ChangeSpec) {
    if let Some(text) = expression(reader, "source", &mut spec.is_complete) {
        match source(&text) {
            Ok(source) => spec.source = Some(ChangeSource::Feed(source)),
            Err(error) => {
                reader.report(*error);
                spec.is_complete = false;
            }
        }
    }
    spec.sequence = sequence(reader, &mut spec.is_complete);
    spec.delete = expression(reader, "apply_as_deletes", &mut spec.is_complete);
    spec.truncate = expression(reader, "apply_as_truncates", &mut spec.is_complete);
    spec.ignore_null_updates = ignore_null_updates(reader, &mut spec.is_complete);
    spec.columns = selection(reader, &COLUMNS, &mut spec.is_complete);
    if reader.value("columns_to_update").is_some() {
        let names = names(reader, "columns_to_update", &mut spec.is_complete).map(|names| names.value);
        match names.as_deref() {
            Some([one]) => spec.columns_to_update = Some(one.clone()),
            Some([_, second, ..]) => {
                reader.report(
                    Diagnostic::error("one-column", second.span, "`columns_to_update` takes one column")
                        .reason("it holds the names of the columns that an event writes, as ARRAY<STRING>")
                        .help("name the one column of the source; to write fewer columns always, use `columns`"),
                );
                spec.is_complete = false;
            }
            _ => {}
        }
    }
    let choices = [("error", NullKeys::Error), ("drop", NullKeys::Drop)];
    spec.options.null_keys = reader.choice("null_keys", &choices).map(|choice| choice.value);
    if let Some(value) = reader.value("system_sequence_by") {
        reader.report(bitemporal(value.span, "system_sequence_by"));
        spec.is_complete = false;
    }
    for key in ["sql", "sql_file"] {
        reader.refuse(
            key,
            "misplaced-key",
            format!("the source of AUTO CDC is no query: there is no `{key}`"),
            "put the query into a [[temporary_view]], and name that as `source`",
        );
    }
}

/// The name of a table or view, read as a stream.
fn source(text: &MappedText) -> Result<MappedText, Box<Diagnostic>> {
    let all = 0..text.as_str().len();
    let mut cursor = Cursor::new(text);
    let has_stream = cursor.is_word(0, "STREAM") && !cursor.is_symbol(1, ".") && cursor.peek(1).is_some();
    feed_source(&mut cursor)?;
    if !cursor.is_at_end() {
        return Err(Box::new(
            Diagnostic::error("source-not-a-table", text.origin(all), "the source of AUTO CDC is one table or view")
                .help("put a query into a [[temporary_view]], and name that as `source`"),
        ));
    }
    let mut source = MappedText::new();
    if !has_stream {
        source.push_replacement("STREAM ", text.origin(0..0));
    }
    source.push_part(text, all);
    Ok(source)
}

/// `sequence_by = "ts"`, or `["ts", "id"]` for a struct of them.
fn sequence(reader: &mut TableReader, is_complete: &mut bool) -> Option<MappedText> {
    let value = reader.value("sequence_by")?;
    if !matches!(value.value, Value::Array(_)) {
        return expression(reader, "sequence_by", is_complete);
    }
    let span = value.span;
    let parts = reader.mapped_words("sequence_by").unwrap_or_default();
    if parts.is_empty() {
        return None;
    }
    let mut text = MappedText::new();
    for (i, part) in parts.iter().enumerate() {
        text.push_replacement(if i == 0 { "STRUCT(" } else { ", " }, span);
        text.push_part(&part.value, 0..part.value.as_str().len());
    }
    text.push_replacement(")", span);
    Some(text)
}

/// `true`, `{ on = […] }` or `{ except = […] }`.
fn ignore_null_updates(reader: &mut TableReader, is_complete: &mut bool) -> Option<Spanned<IgnoreNulls>> {
    let value = reader.value("ignore_null_updates")?;
    let span = value.span;
    let Value::Table(table) = &value.value else {
        return match reader.boolean("ignore_null_updates") {
            Some(true) => Some(Spanned::new(IgnoreNulls::All, span)),
            Some(false) => None,
            None => {
                *is_complete = false;
                None
            }
        };
    };
    let both = key_span(table, "on").zip(key_span(table, "except"));
    let (on, except) = reader.nested(table, "`ignore_null_updates`", |reader| {
        (names(reader, "on", is_complete), names(reader, "except", is_complete))
    });
    let found = match (on, except) {
        (Some(on), None) if on.value.is_empty() => Err(empty_ignore_list(on.span)),
        (Some(on), None) => Ok(IgnoreNulls::On(on.value)),
        (None, Some(except)) if except.value.is_empty() => Ok(IgnoreNulls::All),
        (None, Some(except)) => Ok(IgnoreNulls::Except(except.value)),
        (None, None) => Ok(IgnoreNulls::All),
        (Some(_), Some(_)) => {
            let (first, second) = both.unwrap_or((span, span));
            Err(Diagnostic::error("conflicting-keys", second, "`on` and `except` exclude each other")
                .condition("AUTOCDC_CONFLICTING_IGNORE_NULL_UPDATES_OPTIONS")
                .label(first, "the columns are listed here")
                .help("keep one"))
        }
    };
    match found {
        Ok(ignored) => Some(Spanned::new(ignored, span)),
        Err(error) => {
            reader.report(error);
            *is_complete = false;
            None
        }
    }
}

/// Two keys that name columns, or except them, and exclude each other.
struct SelectionKeys {
    on: &'static str,
    except: &'static str,
    condition: &'static str,
}

const COLUMNS: SelectionKeys = SelectionKeys {
    on: "columns",
    except: "except_columns",
    condition: "AUTOCDC_BOTH_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST",
};

const TRACK_HISTORY: SelectionKeys = SelectionKeys {
    on: "track_history",
    except: "track_history_except",
    condition: "AUTOCDC_BOTH_TRACK_HISTORY_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST",
};

/// An empty list counts as none, as in Python.
fn selection(
    reader: &mut TableReader,
    keys: &SelectionKeys,
    is_complete: &mut bool,
) -> Option<Spanned<ColumnSelection>> {
    let is_given = |names: &Spanned<Vec<Spanned<String>>>| !names.value.is_empty();
    let on = names(reader, keys.on, is_complete).filter(is_given);
    let except = names(reader, keys.except, is_complete).filter(is_given);
    match (on, except) {
        (Some(on), Some(except)) => {
            let message = format!("`{}` and `{}` exclude each other", keys.on, keys.except);
            reader.report(
                Diagnostic::error("conflicting-keys", except.span, message)
                    .condition(keys.condition)
                    .label(on.span, "the columns are listed here")
                    .help("choose one"),
            );
            *is_complete = false;
            None
        }
        (Some(on), None) => Some(Spanned::new(ColumnSelection::On(on.value), on.span)),
        (None, Some(except)) => Some(Spanned::new(ColumnSelection::Except(except.value), except.span)),
        (None, None) => None,
    }
}

/// Plain names of columns.
fn names(reader: &mut TableReader, key: &'static str, is_complete: &mut bool) -> Option<Spanned<Vec<Spanned<String>>>> {
    let span = reader.value(key)?.span;
    let Some(words) = reader.mapped_words(key) else {
        *is_complete = false;
        return None;
    };
    let mut names: Vec<Spanned<String>> = Vec::new();
    for word in words {
        let mut cursor = Cursor::new(&word.value);
        let found = column_name(&mut cursor, "a column", key).and_then(|name| match cursor.is_at_end() {
            true => Ok(name),
            false => Err(cursor.expected("one name")),
        });
        let name =
            found.and_then(|name| match names.iter().find(|first| first.value.eq_ignore_ascii_case(&name.value)) {
                None => Ok(name),
                Some(first) => Err(Box::new(
                    Diagnostic::error("duplicate-column", name.span, format!("`{key}` names `{}` twice", name.value))
                        .reason("column names are compared without regard to case")
                        .label(first.span, "first named here")
                        .help("remove one"),
                )),
            });
        match name {
            Ok(name) => names.push(name),
            Err(error) => {
                reader.report(*error);
                *is_complete = false;
            }
        }
    }
    Some(Spanned::new(names, span))
}

/// An expression, condition or name as SQL text, without its comments.
fn expression(reader: &mut TableReader, key: &'static str, is_complete: &mut bool) -> Option<MappedText> {
    reader.value(key)?;
    let Some(text) = reader.mapped_text(key) else {
        *is_complete = false;
        return None;
    };
    let sql = without_comments(&text.value);
    let written = sql.as_str().trim();
    if written.is_empty() || written.contains("${") {
        if written.is_empty() {
            reader.report(Diagnostic::error("empty-value", text.span, format!("`{key}` is empty")));
        }
        *is_complete = false;
        return None;
    }
    let start = sql.as_str().len() - sql.as_str().trim_start().len();
    Some(sql.part(start..start + written.len()))
}

/// `1`, `2` or `"bitemporal"`.
fn scd_type(reader: &mut TableReader, spec: &mut ChangeSpec) {
    let Some(value) = reader.value("scd_type") else { return };
    let found = match &value.value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => reader.expanded(text).as_str().trim().to_ascii_lowercase(),
        _ => {
            spec.is_complete = false;
            reader.wrong_type("scd_type", value, "1 or 2");
            return;
        }
    };
    spec.scd_type = match found.as_str() {
        "1" => Some(Spanned::new(ScdType::One, value.span)),
        "2" => Some(Spanned::new(ScdType::Two, value.span)),
        found => {
            spec.is_complete = false;
            reader.report(match found {
                "bitemporal" => bitemporal(value.span, "scd_type = \"bitemporal\""),
                _ => Diagnostic::error("unknown-value", value.span, format!("there is no SCD type `{found}`"))
                    .reason("type 1 keeps the latest row of each key, type 2 their history")
                    .help("write scd_type = 1 or scd_type = 2"),
            });
            None
        }
    };
}

fn snapshot(reader: &mut TableReader, table: &Table, spec: &mut ChangeSpec) {
    let sources: Vec<(&str, Span)> = ["source", "snapshot_sql", "snapshots"]
        .into_iter()
        .filter_map(|key| Some((key, key_span(table, key)?)))
        .collect();
    let source = expression(reader, "source", &mut spec.is_complete);
    let snapshot = expression(reader, "snapshot_sql", &mut spec.is_complete);
    let files = snapshot_files(reader, &mut spec.is_complete);
    spec.version = expression(reader, "version_sql", &mut spec.is_complete);
    if let [(first, first_span), (second, second_span), ..] = sources.as_slice() {
        reader.report(
            Diagnostic::error("conflicting-keys", *second_span, format!("`{first}` and `{second}` exclude each other"))
                .label(*first_span, "the snapshot comes from here already")
                .help("keep one"),
        );
        spec.is_complete = false;
    }
    if let (Some((_, files)), Some(version)) =
        (sources.iter().find(|(key, _)| *key == "snapshots"), key_span(table, "version_sql"))
    {
        reader.report(
            Diagnostic::error("conflicting-keys", version, "`version_sql` and `snapshots` exclude each other")
                .label(*files, "the versions come from the names of the files")
                .help("remove `version_sql`"),
        );
        spec.is_complete = false;
    }
    spec.source = match (source, snapshot, files) {
        (Some(source), ..) => {
            let mut query = MappedText::new();
            query.push_replacement("SELECT * FROM ", source.origin(0..0));
            query.push_part(&source, 0..source.as_str().len());
            Some(ChangeSource::Snapshot(query))
        }
        (None, Some(query), _) => Some(ChangeSource::Snapshot(query)),
        (None, None, files) => files,
    };
    if sources.is_empty() && spec.is_complete {
        reader.report(
            Diagnostic::error("missing-key", table.header, "there is no snapshot: no `snapshot_sql`, `source` or `snapshots`")
                .condition("AUTOCDC_MISSING_SOURCE")
                .help("add `snapshot_sql = \"\"\"SELECT …\"\"\"`, or `snapshots = { path = \"snap/*.csv\", version_regex = \"…\" }`"),
        );
        spec.is_complete = false;
    }
    spec.options.allow_empty_snapshot = reader.boolean("allow_empty_snapshot");
    if let Some(value) = reader.value("max_delete_fraction") {
        let number = match &value.value {
            Value::Float(text) => text.parse().ok(),
            Value::Integer(number) => Some(*number as f64),
            _ => None,
        };
        spec.options.max_delete_fraction = number.and_then(Fraction::new);
        if spec.options.max_delete_fraction.is_none() {
            reader.report(
                Diagnostic::error("out-of-range", value.span, "`max_delete_fraction` is no part of a whole")
                    .help("write a number from 0 to 1: 0.1 lets a snapshot delete up to a tenth of the rows"),
            );
        }
    }
    for key in
        ["sequence_by", "apply_as_deletes", "apply_as_truncates", "columns", "except_columns", "ignore_null_updates"]
    {
        let message = format!("a flow from snapshots has no `{key}`");
        reader.refuse_because(
            key,
            message,
            "a snapshot says the whole of its source: all of each row, and which keys are gone",
            "remove it; `version_sql` gives a snapshot its version, `snapshot_sql` chooses its columns and rows",
        );
    }
}

/// `{ path = "snap/*.csv", version_regex = "snapshot_(\\d+)", version_type = "BIGINT", order = "asc", options = {} }`.
fn snapshot_files(reader: &mut TableReader, is_complete: &mut bool) -> Option<ChangeSource> {
    let span = reader.value("snapshots")?.span;
    let Some(table) = reader.table("snapshots") else {
        *is_complete = false;
        return None;
    };
    let found = reader.nested(table, "`snapshots`", |reader| {
        let path = reader.required_word("path");
        let pattern = reader.required_word("version_regex").filter(|pattern| match Regex::new(&pattern.value) {
            Ok(_) => true,
            Err(error) => {
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                reader.report(
                    Diagnostic::error("invalid-regex", pattern.span, format!("`version_regex` can't be read: {why}"))
                        .help("its first group finds the version in a path: \"snapshot_(\\\\d+)\""),
                );
                false
            }
        });
        let version_type = match reader.word("version_type") {
            None => Some(DataType::Long),
            Some(text) => match parse_type(&text.value) {
                Ok(DataType::Array(_) | DataType::Map(..) | DataType::Struct(_)) => {
                    reader.report(
                        Diagnostic::error("invalid-type", text.span, "`version_type`: a version is one value")
                            .reason("it is made of the text that `version_regex` finds in a path")
                            .help("write the type that orders your versions: BIGINT, STRING, DATE, TIMESTAMP"),
                    );
                    None
                }
                Ok(data_type) => Some(data_type),
                Err(error) => {
                    let mut wrong =
                        Diagnostic::error("invalid-type", text.span, format!("`version_type`: {}", error.message));
                    wrong.help = error.help;
                    reader.report(wrong);
                    None
                }
            },
        };
        reader.choice("order", &[("asc", ())]);
        let mut options: Vec<ReadOption> = reader
            .properties("options")
            .into_iter()
            .map(|(name, value)| ReadOption { name, value: Spanned::new(OptionValue::Text(value.value), value.span) })
            .collect();
        // What didn't fit a file's columns is no fact about a row, and would be tracked as one.
        let says_of_rescue = |option: &ReadOption| {
            ["rescuedDataColumn", "schemaEvolutionMode"]
                .iter()
                .any(|name| name.eq_ignore_ascii_case(&option.name.value))
        };
        if !options.iter().any(says_of_rescue) {
            let name = Spanned::new("rescuedDataColumn".to_string(), span);
            options.push(ReadOption { name, value: Spanned::new(OptionValue::Text(String::new()), span) });
        }
        Some((
            FilesCall { path: path?, options },
            SnapshotFiles { version_regex: pattern?, version_type: version_type? },
        ))
    });
    match found {
        Some((call, files)) => Some(ChangeSource::Files { query: Box::new(files_query(call, span)), files }),
        None => {
            *is_complete = false;
            None
        }
    }
}
