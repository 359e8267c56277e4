//! The cases in `tests/settings` and `tests/definitions`: a TOML file, and beside it what is read from it.
//! `UPDATE=1 cargo test -p flowbench-pipeline cases` writes the expected part; a person reads the diff.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::definition::Definition;
use crate::diagnostic::{self, Diagnostic};
use crate::parse::settings::settings;
use crate::parse::tests::dump_change;
use crate::parse::toml_file::toml_file;
use crate::query::Query;
use crate::settings::Settings;
use crate::text::{FileId, SourceFile, Span, line_column};
use crate::workspace::Workspace;

#[test]
fn cases_of_flowbench_toml_give_their_settings_and_diagnostics() {
    for (path, text) in cases("settings") {
        let workspace = workspace(text);
        let (settings, diagnostics) = settings(&workspace);
        let mut out = String::new();
        print_settings(&mut out, &settings);
        print_diagnostics(&mut out, &workspace, diagnostics);
        compare(&path, &out);
    }
}

#[test]
fn cases_of_definition_files_give_their_definitions_and_diagnostics() {
    for (path, text) in cases("definitions") {
        let mut workspace = workspace(
            "[configuration]\nroot = '/data/events'\nbackfill_years = '2024, 2023,2022'\nregions = ['eu', 'us']"
                .to_string(),
        );
        let file = |path: &str, text: &str| SourceFile { path: path.to_string(), text: text.to_string() };
        workspace.files.push(file("transformations/case.toml", &text));
        workspace.files.push(file("transformations/queries/orders.sql", "SELECT * FROM STREAM orders_${nobody}"));
        let (settings, _) = settings(&workspace);
        let (definitions, diagnostics) = toml_file(FileId(1), &workspace, &settings);
        let mut out = String::new();
        for definition in &definitions {
            print_definition(&mut out, &workspace, definition);
        }
        print_diagnostics(&mut out, &workspace, diagnostics);
        compare(&path, &out);
    }
}

#[test]
fn three_years_in_five_lines_make_three_once_flows_beside_the_live_one() {
    let settings = "[configuration]\nroot = '/data'\nbackfill_years = '2024,2023,2022'".to_string();
    let definitions = r#"
[[streaming_table]]
name = "registration_events_raw"

[[flow]]
name = "live"
target = "registration_events_raw"
sql = "SELECT * FROM STREAM read_files('${root}/*/*/*', format => 'json', maxFilesPerTrigger => 100)"

[[flow]]
name = "backfill_{year}"
target = "registration_events_raw"
once = true
for_each.year = "${backfill_years}"
sql = "SELECT * FROM read_files('${root}/year={year}/*/*', format => 'json')"
"#;
    let mut workspace = workspace(settings);
    workspace.files.push(SourceFile { path: "transformations/all.toml".to_string(), text: definitions.to_string() });
    let pipeline = crate::load::load(workspace);
    assert_eq!(pipeline.diagnostics, []);
    let flows: Vec<_> = pipeline.graph.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(flows, ["live", "backfill_2024", "backfill_2023", "backfill_2022"]);
}

fn workspace(settings: String) -> Workspace {
    let file = SourceFile { path: "flowbench.toml".to_string(), text: settings };
    Workspace { folder_name: "folder".to_string(), files: vec![file], unreadable: Vec::new(), overrides: Vec::new() }
}

fn cases(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect()
}

fn compare(path: &Path, found: &str) {
    let expected_path = path.with_extension("txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&expected_path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
    assert_eq!(found, expected, "{} differs; UPDATE=1 writes it", expected_path.display());
}

fn print_settings(out: &mut String, settings: &Settings) {
    let Settings { name, schema, catalog, mode, channel, storage, sources, time_zone, limits, .. } = settings;
    writeln!(out, "{name}: schema {schema}, catalog {catalog:?}, {:?}, {:?}", mode.value, channel.value).unwrap();
    writeln!(out, "storage {storage}, sources {sources:?}, time zone {}", time_zone.value).unwrap();
    writeln!(out, "{limits:?}").unwrap();
    for (name, value) in &settings.configuration {
        writeln!(out, "configuration {name} = {value:?}").unwrap();
    }
    for (prefix, folder) in &settings.paths {
        writeln!(out, "path {prefix} -> {folder}").unwrap();
    }
    for source in &settings.external {
        let options: Vec<_> = source.options.iter().map(|(name, value)| format!("{}={value}", name.value)).collect();
        writeln!(out, "source {} {:?} {} {options:?}", source.name.value, source.format, source.path.value).unwrap();
    }
}

fn print_definition(out: &mut String, workspace: &Workspace, definition: &Definition) {
    let mut print_query = |query: &Query| {
        writeln!(out, "  query at {}: {}", place(workspace, query.span), query.fingerprint_text).unwrap();
    };
    match definition {
        Definition::Dataset(dataset) => {
            let mut text = format!("{} {}", dataset.kind.words(), dataset.name.value);
            for (name, is_set) in [("private", dataset.is_private), ("declared only", dataset.query.is_none())] {
                text.push_str(if is_set { ", " } else { "" });
                text.push_str(if is_set { name } else { "" });
            }
            if let Some(query) = &dataset.query {
                print_query(query);
            }
            for column in &dataset.columns {
                let data_type = column.data_type.as_ref().map(|data_type| data_type.value.as_str());
                let default = column.default.as_ref().map(|default| default.value.as_str());
                let place = place(workspace, column.name.span);
                write!(text, "\n  {} {data_type:?} at {place}", column.name.value).unwrap();
                write!(text, ", nullable {}, default {default:?}, {:?}", column.is_nullable, column.comment).unwrap();
            }
            let names = |columns: &[crate::text::Spanned<String>]| {
                columns.iter().map(|column| column.value.clone()).collect::<Vec<_>>()
            };
            writeln!(out, "{text}\n  comment {:?}, properties {:?}", dataset.comment, dataset.properties).unwrap();
            let (partition, cluster) = (names(&dataset.partition_by), names(&dataset.cluster_by));
            writeln!(out, "  partition {partition:?}, cluster {cluster:?}, {:?}", dataset.limits).unwrap();
        }
        Definition::BrokenFlow(name) => writeln!(out, "broken flow {}", name.value).unwrap(),
        Definition::Flow(flow) => {
            print_query(&flow.query);
            let once = if flow.is_once { "once " } else { "" };
            let default = if flow.is_default { "default " } else { "" };
            let place = place(workspace, flow.span);
            writeln!(out, "{once}{default}flow {} -> {} at {place}", flow.name.value, flow.target.value).unwrap();
            writeln!(out, "  comment {:?}, {:?}", flow.comment, flow.limits).unwrap();
            for flow in &flow.depends_on {
                let literal = if flow.is_literal { "" } else { ", not literal" };
                writeln!(out, "  depends on {} at {}{literal}", flow.name, self::place(workspace, flow.span)).unwrap();
            }
            if let Some(change) = &flow.change {
                writeln!(out, "  {}", flow.query.sql.as_str()).unwrap();
                dump_change(out, &|span| self::place(workspace, span), change);
            }
        }
    }
}

fn print_diagnostics(out: &mut String, workspace: &Workspace, mut diagnostics: Vec<Diagnostic>) {
    diagnostic::sort(&mut diagnostics);
    for found in diagnostics {
        let place = found.span.map(|span| place(workspace, span)).unwrap_or_default();
        writeln!(out, "\n{}[{}] {place}: {}", found.severity.word(), found.code, found.message).unwrap();
        if let Some(reason) = found.reason {
            writeln!(out, "  why: {reason}").unwrap();
        }
        for label in found.labels {
            writeln!(out, "  see {}: {}", self::place(workspace, label.span), label.message).unwrap();
        }
        if let Some(help) = found.help {
            writeln!(out, "  help: {help}").unwrap();
        }
        if let Some(edit) = found.edit {
            writeln!(out, "  edit {}: {}", self::place(workspace, edit.span), edit.replacement).unwrap();
        }
    }
}

/// The place and the text there, shortened.
fn place(workspace: &Workspace, span: Span) -> String {
    let file = &workspace.files[span.file.0];
    let text: String = file.text[span.start..span.end].chars().take(30).collect();
    format!("{}:{} {text:?}", file.path, line_column(&file.text, span.start))
}

mod fuzz {
    use super::*;
    use proptest::prelude::*;

    const PIECES: [&str; 24] = [
        "[", "]", "[[flow]]", "{", "}", "\"", "'''", "\"\"\"", "\\", "=", ".", ",", "\n", "é", "${", "{year}",
        "${root}", "name", "1", "true", "for_each", "sql", "\\u00e9", "`",
    ];

    fn texts() -> &'static [String] {
        static TEXTS: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
        TEXTS.get_or_init(|| ["settings", "definitions"].into_iter().flat_map(cases).map(|(_, text)| text).collect())
    }

    fn check_spans(workspace: &Workspace, diagnostics: &[Diagnostic]) {
        for found in diagnostics {
            let spans = found.span.into_iter().chain(found.labels.iter().map(|label| label.span));
            for span in spans.chain(found.edit.iter().map(|edit| edit.span)) {
                let text = &workspace.files[span.file.0].text;
                assert!(text.get(span.start..span.end).is_some(), "{found:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn mutated_files_never_panic_and_their_places_stay_inside(
            which in any::<prop::sample::Index>(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, prop::sample::select(&PIECES[..])), 0..6),
        ) {
            let texts = texts();
            let mut text = texts[which.index(texts.len())].clone();
            for (at, length, piece) in edits {
                let boundaries: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
                let start = at.index(boundaries.len());
                let range = boundaries[start]..boundaries[(start + length).min(boundaries.len() - 1)];
                text.replace_range(range, piece);
            }
            let mut workspace = workspace(text.clone());
            workspace.files.push(SourceFile { path: "transformations/case.toml".to_string(), text });
            let (settings, diagnostics) = settings(&workspace);
            check_spans(&workspace, &diagnostics);
            let (definitions, diagnostics) = toml_file(FileId(1), &workspace, &settings);
            check_spans(&workspace, &diagnostics);
            for definition in &definitions {
                print_definition(&mut String::new(), &workspace, definition);
            }
        }
    }
}
