//! The texts of a workspace → settings, graph, and everything structural that is wrong with them.

use crate::diagnostic::{self, Diagnostic};
use crate::graph::Graph;
use crate::parse::{self, ParsedFiles};
use crate::settings::Settings;
use crate::text::Span;
use crate::validate::validate;
use crate::workspace::Workspace;

/// A workspace, understood.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub workspace: Workspace,
    pub settings: Settings,
    pub graph: Graph,
    /// Sorted by place. One broken file never hides what the others say.
    pub diagnostics: Vec<Diagnostic>,
}

impl Pipeline {
    /// True if nothing may run.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Parses and checks the files of a workspace: the structural stage of validation.
pub fn load(workspace: Workspace) -> Pipeline {
    load_again(workspace, &ParsedFiles::default()).0
}

/// As [`load`]; files that are as an earlier load found them are not parsed again. The second value is for the next
/// load.
pub fn load_again(workspace: Workspace, before: &ParsedFiles) -> (Pipeline, ParsedFiles) {
    let (settings, mut diagnostics) = parse::settings(&workspace);
    let (definitions, problems, parsed) = parse::files(&workspace, &settings, before);
    diagnostics.extend(problems);
    for unreadable in &workspace.unreadable {
        let start = Span { file: unreadable.file, start: 0, end: 0 };
        diagnostics.push(Diagnostic::error(unreadable.code, start, &unreadable.message).help(&unreadable.help));
    }
    let (graph, problems) = Graph::build(definitions, &settings);
    diagnostics.extend(problems);
    let found = validate(&graph, &settings).into_iter().filter(|found| !is_consequence(found, &graph, &diagnostics));
    let found: Vec<Diagnostic> = found.collect();
    diagnostics.extend(found);
    diagnostic::sort(&mut diagnostics);
    diagnostic::keep_quotes(&workspace.files, &mut diagnostics);
    (Pipeline { workspace, settings, graph, diagnostics }, parsed)
}

/// What only follows from text that can't be read: it may hold a dataset, or a flow.
fn is_consequence(found: &Diagnostic, graph: &Graph, errors: &[Diagnostic]) -> bool {
    match found.code {
        "empty-pipeline" => errors.iter().any(Diagnostic::is_error),
        "table-without-flow" => {
            let table = graph.datasets.iter().find(|dataset| Some(dataset.definition.name.span) == found.span);
            table.is_some_and(|table| {
                let whole = table.definition.span;
                let is_within =
                    |place: Span| place.file == whole.file && whole.start <= place.start && place.start <= whole.end;
                let mut places = errors.iter().filter(|error| error.is_error()).filter_map(|error| error.span);
                places.any(|place| is_within(place) || is_lost(place, graph))
            })
        }
        _ => false,
    }
}

/// True for a place in a file of definitions that is within none of those: a statement without effect.
fn is_lost(place: Span, graph: &Graph) -> bool {
    let is_around = |whole: Span| place.file == whole.file && whole.start <= place.start && place.start <= whole.end;
    // The first file has the settings.
    place.file.0 > 0
        && !graph.datasets.iter().any(|dataset| is_around(dataset.definition.span))
        && !graph.flows.iter().any(|flow| is_around(flow.span))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::*;
    use crate::text::SourceFile;

    /// The example workspaces, as the engine would read them.
    fn examples() -> Vec<Workspace> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../workspaces");
        let mut workspaces = Vec::new();
        for folder in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
            let file = |path: PathBuf| SourceFile {
                path: path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned(),
                text: std::fs::read_to_string(&path).unwrap(),
            };
            let Ok(entries) = std::fs::read_dir(folder.join("transformations")) else { continue };
            let is_definition = |path: &PathBuf| path.extension().is_some_and(|e| e == "sql" || e == "toml");
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(is_definition).collect();
            paths.sort();
            let paths = std::iter::once(folder.join("flowbench.toml")).chain(paths);
            let files = paths.filter(|path| Path::new(path).is_file()).map(file).collect();
            workspaces.push(Workspace {
                folder_name: "w".to_string(),
                files,
                unreadable: Vec::new(),
                overrides: Vec::new(),
            });
        }
        workspaces.sort_by_key(|workspace| workspace.files.len());
        assert!(workspaces.len() > 3, "the examples have moved");
        workspaces
    }

    const PIECES: [&str; 28] = [
        "",
        " ",
        ";",
        "'",
        "\"",
        "`",
        "é",
        "(",
        ")",
        ",",
        "[[flow]]",
        "[",
        "]",
        "=",
        "\n",
        "\"\"\"",
        "${",
        "}",
        "--",
        "/*",
        "STREAM ",
        "SELECT ",
        "FROM ",
        "CREATE ",
        "AS ",
        "sql_file = \"x\"",
        "2024",
        "name",
    ];

    fn edited(workspace: &Workspace, edits: &[(usize, usize, usize, usize)]) -> Workspace {
        let mut workspace = workspace.clone();
        for (file, at, cut, piece) in edits {
            let count = workspace.files.len();
            let text = &mut workspace.files[file % count].text;
            let boundary = |mut at: usize, text: &str| {
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                at
            };
            let start = boundary(at % (text.len() + 1), text);
            let end = boundary((start + cut).min(text.len()), text);
            text.replace_range(start..end, PIECES[*piece]);
        }
        workspace
    }

    fn check_spans(pipeline: &Pipeline) {
        let check = |span: Span, what: &dyn std::fmt::Debug| {
            let file = &pipeline.workspace.files[span.file.0];
            assert!(file.text.get(span.start..span.end).is_some(), "{span:?} in {}: {what:?}", file.path);
        };
        for diagnostic in &pipeline.diagnostics {
            let labels = diagnostic.labels.iter().map(|label| label.span);
            let edit = diagnostic.edit.iter().map(|edit| edit.span);
            diagnostic.span.into_iter().chain(labels).chain(edit).for_each(|span| check(span, diagnostic));
        }
        for id in pipeline.graph.dataset_ids() {
            let dataset = pipeline.graph.dataset(id);
            check(dataset.definition.name.span, &dataset.label);
            check(dataset.definition.span, &dataset.label);
            for reading in pipeline.graph.readings(id) {
                check(reading.query.span, &dataset.label);
                for input in &reading.query.inputs {
                    input.name_span.into_iter().chain([input.span]).for_each(|span| check(span, input));
                }
                let length = reading.query.sql.as_str().len();
                check(reading.query.sql.origin(0..length), &dataset.label);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn any_edit_of_real_files_is_reported_in_its_place_and_loads_again_as_if_for_the_first_time(
            example in 0usize..100,
            before in proptest::collection::vec((0usize..9, 0usize..4000, 0usize..12, 0usize..PIECES.len()), 0..3),
            edits in proptest::collection::vec((0usize..9, 0usize..4000, 0usize..12, 0usize..PIECES.len()), 1..5),
            new_file in proptest::option::of(0usize..9),
        ) {
            let examples = examples();
            let first = edited(&examples[example % examples.len()], &before);
            let mut second = edited(&first, &edits);
            if let Some(at) = new_file {
                // All files behind it move on by one.
                let at = 1 + at % second.files.len();
                let text = "CREATE MATERIALIZED VIEW in_a_new_file AS SELECT 1 AS x;".to_string();
                second.files.insert(at, SourceFile { path: "transformations/new.sql".to_string(), text });
            }
            let (first, parsed) = load_again(first, &ParsedFiles::default());
            check_spans(&first);
            let (again, _) = load_again(second.clone(), &parsed);
            check_spans(&again);
            let anew = load(second);
            prop_assert_eq!(&again.diagnostics, &anew.diagnostics);
            prop_assert_eq!(format!("{:?}", again.graph), format!("{:?}", anew.graph));
        }
    }
}
