//! Runs the files of `tests/parse/*.sql`: each has its definitions and diagnostics beside it as `.txt`.
//! `UPDATE=1 cargo test -p flowbench-pipeline` writes them; a person reads the diff.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;

use super::sql_file;
use crate::auto_cdc::{ChangeFlow, ChangeInput, ChangeOptions, ColumnSelection, IgnoreNulls, SnapshotVersions};
use crate::definition::{ColumnDefinition, Definition, FlowLimits};
use crate::diagnostic::{self, Diagnostic};
use crate::query::{InputSource, Query, ReadOption};
use crate::settings::{Channel, ConfigurationValue, Limits, Mode, Settings};
use crate::text::{FileId, MappedText, SourceFile, Span, Spanned, line_column};

fn settings() -> Settings {
    let span = Span::new(FileId(0), 0..0);
    Settings {
        name: "test".to_string(),
        schema: "default".to_string(),
        catalog: None,
        mode: Spanned::new(Mode::Triggered, span),
        channel: Spanned::new(Channel::Preview, span),
        storage: ".flowbench".to_string(),
        sources: Vec::new(),
        time_zone: Spanned::new("UTC".to_string(), span),
        limits: Limits { concurrent_flows: 4, threads: None, memory_bytes: 1 << 30, spill: None, retries: 2 },
        configuration: BTreeMap::from([
            ("root".to_string(), ConfigurationValue::Text("/Volumes/gc".to_string())),
            ("begin_year".to_string(), ConfigurationValue::Text("2025".to_string())),
            ("source".to_string(), ConfigurationValue::Text("raw_events".to_string())),
            ("odd".to_string(), ConfigurationValue::Text("événements bruts".to_string())),
            ("years".to_string(), ConfigurationValue::List(vec!["2024".to_string(), "2023".to_string()])),
        ]),
        paths: Vec::new(),
        external: Vec::new(),
    }
}

fn read(text: &str) -> (Vec<Definition>, Vec<Diagnostic>) {
    let source = SourceFile { path: "test.sql".to_string(), text: text.to_string() };
    let (definitions, mut diagnostics) = sql_file(FileId(0), &source, &settings());
    diagnostic::sort(&mut diagnostics);
    (definitions, diagnostics)
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/parse")
}

fn cases() -> Vec<(String, String)> {
    let mut cases: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    cases.sort();
    cases
}

#[test]
fn files_give_the_definitions_and_diagnostics_beside_them() {
    let mut wrong = Vec::new();
    for (name, text) in cases() {
        let (definitions, diagnostics) = read(&text);
        check_spans(&text, &diagnostics);
        let found = dump(&text, &definitions, &diagnostics);
        let path = folder().join(format!("{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &found).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != found {
            wrong.push(format!("tests/parse/{name}.txt should be\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reference_pages_sql_has_no_errors() {
    for (name, text) in cases().iter().filter(|(name, _)| name.starts_with("reference_")) {
        let errors: Vec<_> = read(text).1.into_iter().filter(Diagnostic::is_error).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

fn dump(text: &str, definitions: &[Definition], diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for definition in definitions {
        match definition {
            Definition::Dataset(dataset) => {
                let private = if dataset.is_private { "private " } else { "" };
                let live = if dataset.is_legacy_live { " (legacy live)" } else { "" };
                let place = line_column(text, dataset.name.span.start);
                let scope = dataset.scope.catalog.clone().map_or(String::new(), |catalog| format!("{catalog}."));
                let scope = format!("{scope}{}", dataset.scope.schema);
                writeln!(out, "{place} {private}{} {} in {scope}{live}", dataset.kind.words(), dataset.name.value)
                    .unwrap();
                dataset.columns.iter().for_each(|column| dump_column(&mut out, column));
                if let Some(comment) = &dataset.comment {
                    writeln!(out, "  comment {comment:?}").unwrap();
                }
                for (what, names) in [("partition by", &dataset.partition_by), ("cluster by", &dataset.cluster_by)] {
                    if !names.is_empty() {
                        let names: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
                        writeln!(out, "  {what} {}", names.join(", ")).unwrap();
                    }
                }
                for (key, value) in &dataset.properties {
                    writeln!(out, "  property {key} = {value:?}").unwrap();
                }
                dump_limits(&mut out, &dataset.limits);
                if dataset.is_once {
                    writeln!(out, "  once").unwrap();
                }
                dataset.query.iter().for_each(|query| dump_query(&mut out, text, query));
                dataset.change.iter().for_each(|change| dump_change(&mut out, &|span| snippet(text, span), change));
            }
            Definition::BrokenFlow(name) => {
                writeln!(out, "{} broken flow {}", line_column(text, name.span.start), name.value).unwrap();
            }
            Definition::Flow(flow) => {
                let once = if flow.is_once { "once " } else { "" };
                let place = line_column(text, flow.name.span.start);
                let default = if flow.is_default { "default " } else { "" };
                writeln!(out, "{place} {once}{default}flow {} into {}", flow.name.value, flow.target.value).unwrap();
                if let Some(comment) = &flow.comment {
                    writeln!(out, "  comment {comment:?}").unwrap();
                }
                for flow in &flow.depends_on {
                    let literal = if flow.is_literal { "" } else { " (by parameter)" };
                    writeln!(out, "  depends on {} at {}{literal}", flow.name, snippet(text, flow.span)).unwrap();
                }
                dump_limits(&mut out, &flow.limits);
                dump_query(&mut out, text, &flow.query);
                flow.change.iter().for_each(|change| dump_change(&mut out, &|span| snippet(text, span), change));
            }
        }
    }
    for diagnostic in diagnostics {
        dump_diagnostic(&mut out, text, diagnostic);
    }
    out
}

fn dump_column(out: &mut String, column: &ColumnDefinition) {
    write!(out, "  column {}", column.name.value).unwrap();
    column.data_type.iter().for_each(|data_type| write!(out, " {}", data_type.value).unwrap());
    if !column.is_nullable {
        out.push_str(" not null");
    }
    column.default.iter().for_each(|default| write!(out, " default {}", default.value).unwrap());
    column.comment.iter().for_each(|comment| write!(out, " {comment:?}").unwrap());
    out.push('\n');
}

fn dump_limits(out: &mut String, limits: &FlowLimits) {
    if *limits != FlowLimits::default() {
        writeln!(out, "  limits {limits:?}").unwrap();
    }
}

fn dump_query(out: &mut String, text: &str, query: &Query) {
    writeln!(out, "  query {}", query.sql.as_str().split_whitespace().collect::<Vec<_>>().join(" ")).unwrap();
    for input in &query.inputs {
        let stream = if input.stream { "stream of " } else { "" };
        let metadata = if input.uses_metadata { ", with _metadata" } else { "" };
        let source = match &input.source {
            InputSource::Table(name) => format!("table {name}"),
            InputSource::Files(call) => format!("files {:?}", call.path.value),
            InputSource::Unsupported(name) => format!("unsupported {name}"),
        };
        writeln!(out, "    {} = {stream}{source}{metadata} at {}", input.name, snippet(text, input.span)).unwrap();
        let files: &[ReadOption] = if let InputSource::Files(call) = &input.source { &call.options } else { &[] };
        for option in files.iter().chain(&input.options) {
            writeln!(out, "      {} => {:?}", option.name.value, option.value.value).unwrap();
        }
    }
}

/// What a flow of AUTO CDC says beside its query.
pub(super) fn dump_change(out: &mut String, place: &dyn Fn(Span) -> String, change: &ChangeFlow) {
    let names = |names: &[Spanned<String>]| names.iter().map(|name| name.value.as_str()).collect::<Vec<_>>().join(", ");
    writeln!(out, "  keys {} stored as {:?}", names(&change.keys), change.scd_type()).unwrap();
    if change.options != ChangeOptions::default() {
        writeln!(out, "  {:?}", change.options).unwrap();
    }
    let selection = |out: &mut String, what: &str, selection: &Option<Spanned<ColumnSelection>>| {
        let Some(selection) = selection else { return };
        let except = if matches!(selection.value, ColumnSelection::Except(_)) { "* except " } else { "" };
        let (named, at) = (names(selection.value.names()), place(selection.span));
        writeln!(out, "  {what} {except}{named} at {at}").unwrap();
    };
    selection(out, "track", &change.track_history);
    match &change.input {
        ChangeInput::Feed(feed) => {
            writeln!(out, "  sequence at {}", place(feed.sequence_span)).unwrap();
            for (what, span) in [("delete", feed.delete_span), ("truncate", feed.truncate_span)] {
                span.iter().for_each(|span| writeln!(out, "  {what} at {}", place(*span)).unwrap());
            }
            selection(out, "columns", &feed.columns);
            if let Some(ignored) = &feed.ignore_null_updates {
                writeln!(out, "  ignore null of {} at {}", ignored_words(&ignored.value), place(ignored.span)).unwrap();
            }
            if let Some(column) = &feed.columns_to_update {
                writeln!(out, "  columns to update {}", column.value).unwrap();
            }
        }
        ChangeInput::Snapshot(snapshot) => match &snapshot.versions {
            SnapshotVersions::UpdateTime => writeln!(out, "  snapshot, version by update").unwrap(),
            SnapshotVersions::Query(query) => {
                writeln!(out, "  snapshot, version by").unwrap();
                writeln!(out, "    {} at {}", query.fingerprint_text, place(query.span)).unwrap();
            }
            SnapshotVersions::Files(files) => {
                writeln!(out, "  snapshot, version by {} as {}", files.version_regex.value, files.version_type)
                    .unwrap();
            }
        },
    }
}

fn ignored_words(ignored: &IgnoreNulls) -> String {
    let names = ignored.names().iter().map(|name| name.value.as_str()).collect::<Vec<_>>().join(", ");
    match ignored {
        IgnoreNulls::All => "all".to_string(),
        IgnoreNulls::On(_) => names,
        IgnoreNulls::Except(_) => format!("all except {names}"),
    }
}

fn dump_diagnostic(out: &mut String, text: &str, diagnostic: &Diagnostic) {
    let place = diagnostic.span.map_or("?".to_string(), |span| snippet(text, span));
    let condition = diagnostic.condition.map_or(String::new(), |condition| format!(" ({condition})"));
    writeln!(out, "{}[{}]{condition}: {}", diagnostic.severity.word(), diagnostic.code, diagnostic.message).unwrap();
    writeln!(out, "  at {place}").unwrap();
    for label in &diagnostic.labels {
        writeln!(out, "  and {}: {}", snippet(text, label.span), label.message).unwrap();
    }
    diagnostic.reason.iter().for_each(|reason| writeln!(out, "  why: {reason}").unwrap());
    diagnostic.help.iter().for_each(|help| writeln!(out, "  help: {help}").unwrap());
    if let Some(edit) = &diagnostic.edit {
        writeln!(out, "  edit: {} → {:?}", snippet(text, edit.span), edit.replacement).unwrap();
    }
}

/// `line:col` and the text there on one line, cut in the middle.
fn snippet(text: &str, span: Span) -> String {
    let written = text[span.start..span.end].split_whitespace().collect::<Vec<_>>().join(" ");
    let count = written.chars().count();
    let short: String = match count > 60 {
        true => written.chars().take(40).chain(" … ".chars()).chain(written.chars().skip(count - 15)).collect(),
        false => written,
    };
    format!("{} `{short}`", line_column(text, span.start))
}

fn check_spans(text: &str, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        let edit = diagnostic.edit.iter().map(|edit| edit.span);
        let labels = diagnostic.labels.iter().map(|label| label.span);
        for span in diagnostic.span.into_iter().chain(edit).chain(labels) {
            assert!(
                span.start <= span.end && text.is_char_boundary(span.start) && text.is_char_boundary(span.end),
                "{diagnostic:?}"
            );
        }
    }
}

fn check_definitions(text: &str, definitions: &[Definition]) {
    for definition in definitions {
        let query = match definition {
            Definition::Dataset(dataset) => dataset.query.as_ref(),
            Definition::Flow(flow) => Some(&flow.query),
            Definition::BrokenFlow(_) => None,
        };
        for span in query.into_iter().flat_map(|q| q.inputs.iter().map(|i| i.span).chain([q.span])) {
            assert!(text.get(span.start..span.end).is_some(), "{definition:?}");
        }
    }
    // Takes the text at every other place.
    dump(text, definitions, &[]);
}

#[test]
fn deep_nesting_is_refused_without_overflowing_the_stack() {
    let deep =
        |open: &str, middle: &str, close: &str| format!("{}{middle}{}", open.repeat(20_000), close.repeat(20_000));
    for expression in [
        deep("(", "1", ")"),
        deep("abs(", "1", ")"),
        deep("NOT ", "true", ""),
        deep("- ", "1", ""),
        deep("CASE WHEN true THEN ", "1", " END"),
        deep("(SELECT ", "1", ")"),
        format!("CAST(x AS {})", deep("ARRAY<", "INT", ">")),
        format!("1{}", " + 1".repeat(50_000)),
        format!("x{}", " OR x = 1".repeat(50_000)),
        format!("1{}", " UNION ALL SELECT 1".repeat(50_000)),
        format!("x{}", "[1]".repeat(50_000)),
        format!("x{}", "::int".repeat(50_000)),
        format!("x{}", ".a".repeat(50_000)),
        format!("x IN {}", deep("(", "1", ")")),
        format!("* FROM {}", deep("(", "t", ")")),
        format!("* FROM t{}", " JOIN t ON true".repeat(5_000)),
        format!("* FROM {}", deep("STREAM(", "t", ")")),
        format!("* FROM read_files('x', a => {})", deep("read_files('x', b => ", "1", ")")),
    ] {
        let text = format!("CREATE MATERIALIZED VIEW v AS SELECT {expression};\nCREATE VIEW w AS SELECT 1 AS x;");
        let (definitions, diagnostics) = read(&text);
        check_spans(&text, &diagnostics);
        assert!(definitions.iter().any(|d| matches!(d, Definition::Dataset(w) if w.name.value.last() == "w")));
    }
}

#[test]
fn as_many_operators_as_allowed_are_read() {
    let text = format!("CREATE VIEW w AS SELECT 1 AS x FROM t WHERE x = 0{};", " OR x = 1".repeat(990));
    assert_eq!(read(&text).1, []);
}

/// Pieces that meet in broken files.
const PIECES: [&str; 55] = [
    "CREATE",
    "OR REFRESH",
    "STREAMING TABLE",
    "MATERIALIZED VIEW",
    "FLOW",
    "DEPENDS ON",
    "AS",
    "SELECT",
    "*",
    "FROM",
    "STREAM",
    "(",
    ")",
    ",",
    ";",
    "read_files",
    "'a",
    "'",
    "\"b\"",
    "`",
    "é",
    "=>",
    "${root}",
    "${",
    "}",
    "--",
    "\n",
    "/*",
    "*/",
    "WITH",
    "_metadata",
    ".",
    "INTERVAL",
    "'1 hour'",
    "INSERT INTO",
    "BY NAME",
    "LIVE.t",
    "EXCEPT",
    "\\",
    "1.5",
    "EXPECT",
    "AUTO CDC",
    "ONCE",
    "INTO",
    "KEYS (",
    "SEQUENCE BY",
    "APPLY AS DELETE WHEN",
    "IGNORE NULL UPDATES",
    "COLUMNS",
    "* EXCEPT (",
    "STORED AS SCD TYPE",
    "TRACK HISTORY ON",
    "SNAPSHOT (",
    "WITH VERSION (",
    "APPLY CHANGES INTO",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn broken_files_are_reported_within_their_text(
        case in 0usize..1000,
        edits in proptest::collection::vec((0usize..4000, 0usize..12, 0usize..PIECES.len()), 1..6),
    ) {
        let cases = cases();
        let mut text = cases[case % cases.len()].1.clone();
        for (at, cut, piece) in edits {
            let mut start = at % (text.len() + 1);
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let mut end = (start + cut).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(start..end, PIECES[piece]);
        }
        let (definitions, diagnostics) = read(&text);
        check_spans(&text, &diagnostics);
        check_definitions(&text, &definitions);
    }

    #[test]
    fn any_sequence_of_words_is_read_without_panic(words in proptest::collection::vec(0usize..PIECES.len(), 0..40)) {
        let text = words.into_iter().map(|i| PIECES[i]).collect::<Vec<_>>().join(" ");
        let (definitions, diagnostics) = read(&text);
        check_spans(&text, &diagnostics);
        check_definitions(&text, &definitions);
        let (query, diagnostics) = super::query(&MappedText::from_file(FileId(0), &text, 0..text.len()));
        check_spans(&text, &diagnostics);
        prop_assert!(query.is_some() || diagnostics.iter().any(Diagnostic::is_error));
    }
}
