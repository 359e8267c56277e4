//! The cases in `tests/read_files`: lines with a call, and indented under each what it comes to.
//! `UPDATE=1 cargo test -p flowbench-pipeline cases` writes the indented part; a person reads the diff.

use std::fmt::{Debug, Write as _};

use super::{ReadFiles, ReadMode, TableStream, read_files, table_stream};
use crate::diagnostic::Diagnostic;
use crate::name::Name;
use crate::query::{FilesCall, Input, InputSource, OptionValue, ReadOption};
use crate::settings::Settings;
use crate::text::{FileId, Span, Spanned};

#[test]
fn cases_of_read_files_give_their_options_and_diagnostics() {
    run("files.txt", |call| {
        let (path, mode) = match call.head.strip_prefix("STREAM ") {
            Some(path) => (path, ReadMode::Stream),
            None => (call.head, ReadMode::Batch),
        };
        let start = call.head.len() - path.len();
        let path = Spanned::new(path.to_string(), Span::new(FileId(0), start..call.head.len()));
        let (read, diagnostics) = read_files(&FilesCall { path, options: call.options }, mode, &settings());
        let plain =
            FilesCall { path: Spanned::new("x.json".to_string(), Span::new(FileId(0), 0..0)), options: Vec::new() };
        let plain: ReadFiles = read_files(&plain, ReadMode::Batch, &settings()).0.unwrap();
        (read.map(|read| difference(&plain, &read)), diagnostics)
    });
}

#[test]
fn cases_of_streams_of_tables_give_their_options_and_diagnostics() {
    run("tables.txt", |call| {
        let input = Input {
            name: "__input_0".to_string(),
            source: InputSource::Table(Name::bare("t")),
            stream: call.head.starts_with("STREAM "),
            options: call.options,
            span: Span::new(FileId(0), 0..call.head.len()),
            name_span: None,
            uses_metadata: false,
        };
        let (stream, diagnostics) = table_stream(&input, &settings());
        (stream.map(|stream| difference(&TableStream::default(), &stream)), diagnostics)
    });
}

struct Call<'a> {
    head: &'a str,
    options: Vec<ReadOption>,
}

fn settings() -> Settings {
    let mut settings = Settings::new("folder");
    settings.time_zone.value = "Asia/Tokyo".to_string();
    settings.paths = vec![("/Volumes/gc".to_string(), "../samples".to_string())];
    settings
}

fn run(file: &str, read: impl Fn(Call) -> (Option<String>, Vec<Diagnostic>)) {
    let path = format!("{}/../../tests/read_files/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.starts_with("    ")) {
        writeln!(out, "{line}").unwrap();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (value, diagnostics) = read(call(line));
        if let Some(difference) = value {
            out.push_str(&difference);
        }
        for found in diagnostics {
            let span = found.span.unwrap();
            let condition = found.condition.map(|condition| format!(" {condition}")).unwrap_or_default();
            let place = &line[span.start..span.end];
            writeln!(out, "    {}[{}{condition}] {place}: {}", found.severity.word(), found.code, found.message)
                .unwrap();
            for (word, text) in [("why", found.reason), ("help", found.help)] {
                if let Some(text) = text {
                    writeln!(out, "        {word}: {text}").unwrap();
                }
            }
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &out).unwrap();
        return;
    }
    assert_eq!(out, text, "{path} differs; UPDATE=1 writes it");
}

/// `head; name => value; …`
fn call(line: &str) -> Call<'_> {
    let mut parts = line.split("; ");
    let head = parts.next().unwrap();
    let mut at = head.len();
    let mut options = Vec::new();
    for part in parts {
        at += 2;
        let (name, value) = part.split_once(" => ").unwrap();
        let value_start = at + part.len() - value.len();
        let option_value = match value {
            "true" => OptionValue::Bool(true),
            "false" => OptionValue::Bool(false),
            _ if value.starts_with(['\'', '"']) => OptionValue::Text(value[1..value.len() - 1].to_string()),
            _ if value.parse::<f64>().is_ok() => OptionValue::Number(value.to_string()),
            _ => OptionValue::Expression(value.to_string()),
        };
        options.push(ReadOption {
            name: Spanned::new(name.to_string(), Span::new(FileId(0), at..at + name.len())),
            value: Spanned::new(option_value, Span::new(FileId(0), value_start..value_start + value.len())),
        });
        at += part.len();
    }
    Call { head, options }
}

/// The fields of `value` that differ from those of `plain`, one a line.
fn difference(plain: &impl Debug, value: &impl Debug) -> String {
    let plain = fields(format!("{plain:#?}"));
    let changed = fields(format!("{value:#?}")).into_iter().filter(|field| !plain.contains(field));
    changed.filter(|field| !field.starts_with("path_span")).map(|field| format!("    {field}\n")).collect()
}

/// Each field of a struct's debug text, what is inside folded, those of `json` and `csv` on their own.
fn fields(text: String) -> Vec<String> {
    let (mut fields, mut owner): (Vec<String>, &str) = (Vec::new(), "");
    for line in text.lines().filter(|line| line.starts_with(' ')) {
        let (indent, line) = (line.len() - line.trim_start().len(), line.trim());
        match line {
            "json: JsonOptions {" => owner = "json.",
            "csv: CsvOptions {" => owner = "csv.",
            _ if line.starts_with(['}', ')', ']']) && indent == 4 && !owner.is_empty() => owner = "",
            _ if !line.starts_with(['}', ')', ']']) && indent == if owner.is_empty() { 4 } else { 8 } => {
                fields.push(format!("{owner}{line}"));
            }
            _ => fields.last_mut().into_iter().for_each(|field| field.push_str(line)),
        }
    }
    fields.into_iter().map(|field| field.trim_end_matches(',').to_string()).collect()
}

mod fuzz {
    use super::*;
    use crate::ddl::{parse_fields, parse_hints, parse_type};
    use crate::read_files::options::{FILE_OPTIONS, TABLE_OPTIONS};
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = OptionValue> {
        prop_oneof![
            any::<bool>().prop_map(OptionValue::Bool),
            "-?[0-9]{1,25}(\\.[0-9])?".prop_map(OptionValue::Number),
            "[a-zA-Z0-9:+<>,{}\\[\\]\\\\\t é.()'` -]{0,20}".prop_map(OptionValue::Text),
            "(json|csv|text|avro|2025-01-01T00:00[+é:0-9]{0,6}|a INT[, b.<>()A-Z`']{0,10})".prop_map(OptionValue::Text),
            "[a-z(), 1]{1,9}".prop_map(OptionValue::Expression),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_options_give_a_value_or_an_error(
            path in "[a-z/*{}\\[\\]:.é\\\\]{0,20}",
            given in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 0..6),
        ) {
            let place = |value| Spanned::new(value, Span::new(FileId(0), 0..0));
            let options = |names: Vec<&str>| -> Vec<ReadOption> {
                let option = |(at, value): &(prop::sample::Index, OptionValue)| ReadOption {
                    name: Spanned::new(names[at.index(names.len())].to_string(), Span::new(FileId(0), 0..0)),
                    value: Spanned::new(value.clone(), Span::new(FileId(0), 0..0)),
                };
                given.iter().map(option).collect()
            };
            let files = options(FILE_OPTIONS.iter().map(|(name, _)| *name).collect());
            let call = FilesCall { path: place(path), options: files };
            for mode in [ReadMode::Batch, ReadMode::Stream] {
                let (read, diagnostics) = read_files(&call, mode, &settings());
                prop_assert_eq!(read.is_none(), diagnostics.iter().any(Diagnostic::is_error));
            }
            let input = Input {
                name: String::new(),
                source: InputSource::Table(Name::bare("t")),
                stream: true,
                options: options(TABLE_OPTIONS.iter().map(|(name, _)| *name).collect()),
                span: Span::new(FileId(0), 0..0),
                name_span: None,
                uses_metadata: false,
            };
            let (stream, diagnostics) = table_stream(&input, &settings());
            prop_assert_eq!(stream.is_none(), diagnostics.iter().any(Diagnostic::is_error));
        }

        #[test]
        fn types_that_parse_are_printed_so_that_they_parse_again(
            text in "(STRUCT<|ARRAY<|MAP<|>|,|:| |INT|STRING|a|`b c`|é|DECIMAL\\(|3\\)|NOT NULL|COMMENT 'x\\\\''|DEFAULT|'|\\.){0,14}",
        ) {
            for result in [parse_fields(&text).map(|_| ()), parse_hints(&text).map(|_| ()), parse_type(&text).map(|_| ())] {
                if let Err(error) = result {
                    prop_assert!(text.get(error.range.clone()).is_some(), "{:?}", error);
                }
            }
            if let Ok(data_type) = parse_type(&text) {
                prop_assert_eq!(parse_type(&data_type.to_string()), Ok(data_type));
            }
        }
    }
}
