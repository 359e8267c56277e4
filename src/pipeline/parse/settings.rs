//! flowbench.toml → [`Settings`].
//!
//! Not here: finding the file (the engine's) and the definition files (`toml_file.rs`).

use std::collections::{BTreeMap, HashMap};

use crate::diagnostic::{Diagnostic, nearest};
use crate::name::{DatasetName, Name};
use crate::parse::parameters::substitute;
use crate::parse::toml_file::table_names;
use crate::parse::toml_reader::{Expand, TableReader, key_span};
use crate::parse::toml_tree::{Parsed, Table, Value, parse_toml};
use crate::path::check_local;
use crate::read_files::external_files;
use crate::settings::{Channel, ConfigurationValue, ExternalFormat, ExternalTable, Limits, Mode, Settings};
use crate::text::{FileId, MappedText, Span, Spanned};
use crate::timestamp::{time_zone_name, time_zone_names};
use crate::workspace::Workspace;

const MODES: [(&str, Mode); 2] = [("triggered", Mode::Triggered), ("continuous", Mode::Continuous)];
const CHANNELS: [(&str, Channel); 2] = [("preview", Channel::Preview), ("current", Channel::Current)];
const EXTERNAL_FORMATS: [(&str, ExternalFormat); 5] = [
    ("delta", ExternalFormat::Delta),
    ("parquet", ExternalFormat::Parquet),
    ("csv", ExternalFormat::Csv),
    ("json", ExternalFormat::Json),
    ("avro", ExternalFormat::Avro),
];

/// Reads flowbench.toml, the first file of the workspace, and lays `--set` over its `[configuration]`.
/// Whatever is wrong keeps its default, so that the rest of the workspace can still be judged.
pub fn settings(workspace: &Workspace) -> (Settings, Vec<Diagnostic>) {
    let mut settings = Settings::new(&workspace.folder_name);
    let Some(file) = workspace.files.first() else {
        let missing = Diagnostic::error("no-settings", None, "the workspace has no flowbench.toml")
            .help("create one, an empty file will do, or run `flowbench init`");
        return (settings, vec![missing]);
    };
    let Parsed { table, syntax_error } = parse_toml(FileId(0), &file.text);
    let mut diagnostics = Vec::new();
    let as_it_stands = |text: &MappedText| (text.clone(), Vec::new());
    let mut top = TableReader::new(&table, "", &as_it_stands, &mut diagnostics);
    let [pipeline, configuration_table, limits, paths] =
        ["pipeline", "configuration", "limits", "paths"].map(|key| top.table(key));
    let sources = top.tables("source");
    for key in table_names() {
        top.refuse(
            key,
            "misplaced-table",
            format!("`{key}` doesn't belong in flowbench.toml"),
            "move it to a .toml file in transformations/, or wherever `sources` of [pipeline] looks",
        );
    }
    top.finish();

    settings.configuration = configuration(configuration_table, &workspace.overrides, &mut diagnostics);
    let values = settings.configuration.clone();
    let expand = expand_with(&values);
    if let Some(table) = pipeline {
        read_pipeline(table, &mut settings, &expand, &mut diagnostics);
    }
    if let Some(table) = limits {
        read_limits(table, &mut settings.limits, &expand, &mut diagnostics);
    }
    if let Some(table) = paths {
        settings.paths = read_paths(table, &expand, &mut diagnostics);
    }
    for table in sources {
        let source = read_source(table, &expand, &mut diagnostics);
        settings.external.extend(source);
    }
    for source in &settings.external {
        diagnostics.extend(external_files(source, &settings).1);
    }
    check_unique_sources(&settings, &mut diagnostics);
    match syntax_error {
        // What a file lacks or says in the wrong place is no news while lines of it are missing.
        Some(error) => (settings, vec![error]),
        None => (settings, diagnostics),
    }
}

/// The replacing of `${name}` by the values of `[configuration]`.
pub fn expand_with(
    configuration: &BTreeMap<String, ConfigurationValue>,
) -> impl Fn(&MappedText) -> (MappedText, Vec<Diagnostic>) {
    move |text| {
        let known: Vec<&str> = configuration.keys().map(String::as_str).collect();
        substitute(text, &|name| configuration.get(name).map(ConfigurationValue::text), &known)
    }
}

fn read_pipeline(table: &Table, settings: &mut Settings, expand: Expand, diagnostics: &mut Vec<Diagnostic>) {
    let mut reader = TableReader::new(table, "[pipeline]", expand, diagnostics);
    if let Some(name) = reader.word("name") {
        settings.name = name.value;
    }
    if let Some(schema) = identifier(&mut reader, "schema") {
        settings.schema = schema;
    }
    settings.catalog = identifier(&mut reader, "catalog");
    if let Some(mode) = reader.choice("mode", &MODES) {
        settings.mode = mode;
    }
    if let Some(channel) = reader.choice("channel", &CHANNELS) {
        settings.channel = channel;
    }
    if let Some(storage) = local_path(&mut reader, "storage") {
        settings.storage = storage;
    }
    if let Some(globs) = reader.words("sources") {
        if globs.is_empty() {
            let span = key_span(table, "sources");
            reader.report(
                Diagnostic::error("empty-value", span, "`sources` of [pipeline] names no files")
                    .help("write sources = [\"transformations/**\"]"),
            );
        } else {
            settings.sources = globs.into_iter().map(|glob| glob.value).collect();
        }
    }
    if let Some(zone) = reader.word("time_zone") {
        match time_zone_name(&zone.value) {
            Some(name) => settings.time_zone = Spanned::new(name.to_string(), zone.span),
            None => {
                let unknown =
                    Diagnostic::error("unknown-time-zone", zone.span, format!("unknown time zone: `{}`", zone.value));
                reader.report(match nearest(&zone.value, time_zone_names()) {
                    Some(near) => {
                        unknown.help(format!("did you mean \"{near}\"?")).edit(zone.span, format!("\"{near}\""))
                    }
                    None => unknown.help("use a name such as \"Asia/Tokyo\" or \"UTC\""),
                });
            }
        }
    }
    reader.not_supported_yet("development", "remove it; updates always say what they do");
    reader.finish();
}

/// One part of a dataset's name.
fn identifier(reader: &mut TableReader, key: &'static str) -> Option<String> {
    let word = reader.word(key)?;
    let mut name = Name::split(&word.value);
    if name.parts.len() != 1 || name.parts[0].is_empty() {
        let message = format!("`{key}` must be one name, found `{}`", word.value);
        reader.report(
            Diagnostic::error("invalid-name", word.span, message)
                .help("leave out the dot, or put the name in backticks if the dot is part of it"),
        );
        return None;
    }
    name.parts.pop()
}

fn local_path(reader: &mut TableReader, key: &'static str) -> Option<String> {
    let path = reader.word(key)?;
    match check_local(&path.value, path.span) {
        Some(diagnostic) => {
            // `[paths]` doesn't lead here: a folder of this machine has to be named.
            reader.report(diagnostic.help("name a folder of this machine"));
            None
        }
        None => Some(path.value),
    }
}

fn read_limits(table: &Table, limits: &mut Limits, expand: Expand, diagnostics: &mut Vec<Diagnostic>) {
    let mut reader = TableReader::new(table, "[limits]", expand, diagnostics);
    if let Some(flows) = reader.count("concurrent_flows", 1..=1024) {
        limits.concurrent_flows = flows as usize;
    }
    limits.threads = reader.count("threads", 1..=1024).map(|threads| threads as usize);
    if let Some(bytes) = reader.bytes("memory") {
        limits.memory_bytes = bytes;
    }
    limits.spill = local_path(&mut reader, "spill");
    if let Some(retries) = reader.count("retries", 0..=100) {
        limits.retries = retries as u32;
    }
    reader.finish();
}

fn read_paths(table: &Table, expand: Expand, diagnostics: &mut Vec<Diagnostic>) -> Vec<(String, String)> {
    let mut paths: Vec<(String, String)> = Vec::new();
    for (prefix, value) in &table.entries {
        let Value::Text(folder) = &value.value else {
            let found = value.value.words();
            let message = format!("the folder of `{}` in [paths] must be a string, found {found}", prefix.value);
            let help = "write \"/prefix\" = \"folder\"; put a prefix with dots or slashes in quotes";
            diagnostics.push(Diagnostic::error("wrong-type", value.span, message).help(help));
            continue;
        };
        let (folder, mut problems) = expand(folder);
        let (prefix_text, prefix_problems) = expand(&key_text(prefix));
        problems.extend(prefix_problems);
        problems.extend(
            check_local(folder.as_str(), value.span).map(|problem| problem.help("name a folder of this machine")),
        );
        for (text, span) in [(prefix_text.as_str(), prefix.span), (folder.as_str(), value.span)] {
            if text.trim().is_empty() {
                problems.push(
                    Diagnostic::error("empty-value", span, "a prefix and its folder can't be empty in [paths]")
                        .help("the workspace folder is \".\""),
                );
            }
        }
        if problems.is_empty() {
            paths.push((prefix_text.as_str().to_string(), folder.as_str().to_string()));
        }
        diagnostics.extend(problems);
    }
    paths
}

/// A key as text that can be expanded; its place is the key as a whole.
fn key_text(key: &Spanned<String>) -> MappedText {
    let mut text = MappedText::new();
    text.push_replacement(&key.value, key.span);
    text
}

fn read_source(table: &Table, expand: Expand, diagnostics: &mut Vec<Diagnostic>) -> Option<ExternalTable> {
    let mut reader = TableReader::new(table, "[[source]]", expand, diagnostics);
    let name = reader.required_word("name").and_then(|word| dataset_name(&mut reader, word));
    let path = reader.required_word("path");
    if reader.value("format").is_none() {
        let words: Vec<_> = EXTERNAL_FORMATS.iter().map(|(word, _)| *word).collect();
        reader.report(
            Diagnostic::error("missing-key", table.header, "[[source]] has no `format`")
                .help(format!("add `format = \"…\"` with one of: {}", words.join(", "))),
        );
    }
    let format = reader.choice("format", &EXTERNAL_FORMATS);
    let options = reader.properties("options").into_iter().map(|(name, value)| (name, value.value)).collect();
    reader.finish();
    Some(ExternalTable { name: name?, format: format?.value, path: path?, options, span: table.span() })
}

/// A name of one to three parts, none empty.
pub fn dataset_name(reader: &mut TableReader, word: Spanned<String>) -> Option<Spanned<Name>> {
    let name = Name::split(&word.value);
    let is_valid = name.parts.len() <= 3 && name.parts.iter().all(|part| !part.trim().is_empty());
    if !is_valid {
        reader.report(
            Diagnostic::error("invalid-name", word.span, format!("`{}` is no name of a dataset", word.value))
                .help("write table, schema.table or catalog.schema.table; backticks quote a part with a dot"),
        );
    }
    is_valid.then(|| Spanned::new(name, word.span))
}

fn check_unique_sources(settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    let mut first: HashMap<String, Span> = HashMap::new();
    for source in &settings.external {
        let name = DatasetName::resolve(&source.name.value, settings.catalog.as_deref(), &settings.schema);
        match first.get(&name.key()) {
            Some(span) => diagnostics.push(
                Diagnostic::error(
                    "duplicate-source",
                    source.name.span,
                    format!("two [[source]] tables are named `{}`", source.name.value),
                )
                .label(*span, "the first")
                .help("rename or remove one; names are compared without regard to case"),
            ),
            None => drop(first.insert(name.key(), source.name.span)),
        }
    }
}

/// `[configuration]` with `--set` laid over it. Values may use one another by `${name}`; what `--set` gives is
/// taken as it is.
fn configuration(
    table: Option<&Table>,
    overrides: &[(String, String)],
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<String, ConfigurationValue> {
    let mut written = BTreeMap::new();
    if let Some(table) = table {
        collect_configuration("", table, &mut written, diagnostics);
    }
    let mut resolver = Resolver { written, resolved: BTreeMap::new(), diagnostics };
    for (key, value) in overrides {
        resolver.resolved.insert(key.clone(), ConfigurationValue::Text(value.clone()));
    }
    let keys: Vec<String> = resolver.written.keys().cloned().collect();
    for key in keys {
        resolver.resolve(&key, &mut Vec::new());
    }
    resolver.resolved
}

/// A value as written: texts to be expanded, and whether they make a list.
struct Written {
    texts: Vec<MappedText>,
    is_list: bool,
}

/// Dotted keys are nested tables to TOML, and one name to us (`pipelines.trigger.interval`).
fn collect_configuration(
    prefix: &str,
    table: &Table,
    written: &mut BTreeMap<String, Written>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for (key, value) in &table.entries {
        let name = format!("{prefix}{}", key.value);
        match &value.value {
            Value::Text(text) => {
                written.insert(name, Written { texts: vec![text.clone()], is_list: false });
            }
            Value::Table(inner) => collect_configuration(&format!("{name}."), inner, written, diagnostics),
            Value::Array(elements) => {
                let mut texts = Vec::new();
                for element in elements {
                    match &element.value {
                        Value::Text(text) => texts.push(text.clone()),
                        _ => diagnostics.push(not_a_text(&name, element)),
                    }
                }
                written.insert(name, Written { texts, is_list: true });
            }
            _ => {
                diagnostics.push(not_a_text(&name, value));
                // The name is known all the same: its uses are not errors of their own.
                let mut nothing = MappedText::new();
                nothing.push_replacement("", value.span);
                written.insert(name, Written { texts: vec![nothing], is_list: false });
            }
        }
    }
}

fn not_a_text(name: &str, value: &Spanned<Value>) -> Diagnostic {
    let found = value.value.words();
    let message = format!("`{name}` of [configuration] must be a string or an array of strings, found {found}");
    let diagnostic =
        Diagnostic::error("wrong-type", value.span, message).reason("the values replace `${name}` as text");
    let as_written = match &value.value {
        Value::Integer(number) => number.to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Float(text) | Value::Datetime(text) => text.clone(),
        Value::Text(_) | Value::Array(_) | Value::Table(_) => return diagnostic.help("write strings"),
    };
    let quoted = format!("\"{as_written}\"");
    diagnostic.help(format!("write it in quotes: {quoted}")).edit(value.span, quoted)
}

struct Resolver<'a> {
    written: BTreeMap<String, Written>,
    resolved: BTreeMap<String, ConfigurationValue>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Resolver<'_> {
    /// Expands the value of `key`, those it uses first; `using` are the keys on the way here.
    fn resolve(&mut self, key: &str, using: &mut Vec<String>) {
        if self.resolved.contains_key(key) {
            return;
        }
        let Some(value) = self.written.get(key) else { return };
        let (texts, is_list) = (value.texts.clone(), value.is_list);
        using.push(key.to_string());
        for text in &texts {
            for (name, span) in parameters_of(text) {
                match using.contains(&name) {
                    true => self.diagnostics.push(
                        Diagnostic::error("cyclic-parameter", span, format!("`{name}` of [configuration] uses itself"))
                            .reason(format!("{} → {name}", using.join(" → ")))
                            .help("write its value"),
                    ),
                    false => self.resolve(&name, using),
                }
            }
        }
        using.pop();
        let known: Vec<&str> = self.written.keys().chain(self.resolved.keys()).map(String::as_str).collect();
        // What is in a circle was reported; it stays as written.
        let lookup = |name: &str| match self.resolved.get(name) {
            Some(value) => Some(value.text()),
            None => self.written.contains_key(name).then(|| format!("${{{name}}}")),
        };
        let mut values = Vec::new();
        let mut problems = Vec::new();
        for text in &texts {
            let (text, found) = substitute(text, &lookup, &known);
            values.push(text.as_str().to_string());
            problems.extend(found);
        }
        self.diagnostics.extend(problems);
        let value = match is_list {
            true => ConfigurationValue::List(values),
            false => ConfigurationValue::Text(values.concat()),
        };
        self.resolved.insert(key.to_string(), value);
    }
}

/// The names in `${…}` of a text, with their places.
fn parameters_of(text: &MappedText) -> Vec<(String, Span)> {
    let whole = text.as_str();
    whole
        .match_indices("${")
        .filter_map(|(start, _)| {
            let length = whole[start..].find('}')?;
            Some((whole[start + 2..start + length].trim().to_string(), text.origin(start..start + length + 1)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::SourceFile;

    #[test]
    fn set_overrides_configuration_and_values_use_one_another() {
        let text = "[configuration]\nroot = \"/data\"\nevents = \"${root}/events\"\nyears = [\"2024\", \"2023\"]\na.b = \"x\"\n\
                    one = \"${two}\"\ntwo = \"${one}\"\n";
        let file = SourceFile { path: "flowbench.toml".to_string(), text: text.to_string() };
        let overrides = vec![("root".to_string(), "/other ${x}".to_string()), ("new".to_string(), "1,2".to_string())];
        let workspace =
            Workspace { folder_name: "orders".to_string(), files: vec![file], unreadable: Vec::new(), overrides };
        let (settings, diagnostics) = settings(&workspace);
        let text = |name: &str| settings.configuration[name].text();
        assert_eq!(text("events"), "/other ${x}/events");
        assert_eq!(text("years"), "2024,2023");
        assert_eq!(text("a.b"), "x");
        assert_eq!(settings.configuration["new"].list(), ["1", "2"]);
        assert_eq!(settings.name, "orders");
        assert_eq!(diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), ["cyclic-parameter"]);
    }
}
