//! The definition files of a workspace → definitions, remembered from one load to the next: a file whose text and
//! settings are what they were is not parsed again.
//!
//! Not here: flowbench.toml (`settings.rs`) and how a file is read (`sql_file.rs`, `toml_file.rs`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::toml_file::{find_file, query_paths};
use super::{sql_file, toml_file};
use crate::definition::Definition;
use crate::diagnostic::Diagnostic;
use crate::settings::{ConfigurationValue, Settings};
use crate::text::FileId;
use crate::workspace::Workspace;

/// What each file of a workspace gave, by path. A value: cheap to clone, handed from load to load.
#[derive(Debug, Clone, Default)]
pub struct ParsedFiles {
    surroundings: Surroundings,
    files: HashMap<String, Arc<ParsedFile>>,
}

/// What a file's definitions depend on besides its text.
#[derive(Debug, Clone, Default, PartialEq)]
struct Surroundings {
    catalog: Option<String>,
    schema: String,
    configuration: BTreeMap<String, ConfigurationValue>,
}

#[derive(Debug)]
struct ParsedFile {
    file: FileId,
    text: String,
    /// The `sql_file` paths of a TOML file.
    query_paths: Vec<String>,
    /// The queries that it took from other files, and the names of all files there were.
    queries: Vec<(FileId, String)>,
    paths: Option<Vec<String>>,
    definitions: Vec<Definition>,
    diagnostics: Vec<Diagnostic>,
}

/// Parses all files but flowbench.toml; what `before` knows of unchanged ones is taken over.
pub fn files(
    workspace: &Workspace,
    settings: &Settings,
    before: &ParsedFiles,
) -> (Vec<Definition>, Vec<Diagnostic>, ParsedFiles) {
    let surroundings = Surroundings {
        catalog: settings.catalog.clone(),
        schema: settings.schema.clone(),
        configuration: settings.configuration.clone(),
    };
    let is_same = before.surroundings == surroundings;
    let known = |file: FileId| {
        let source = &workspace.files[file.0];
        before.files.get(&source.path).filter(|known| is_same && known.text == source.text)
    };
    let ids = || (1..workspace.files.len()).map(FileId);
    // A file that some `sql_file` names holds one query, and is no file of statements.
    let mut paths: HashMap<FileId, Vec<String>> = HashMap::new();
    for file in ids().filter(|file| workspace.files[file.0].path.ends_with(".toml")) {
        let found = match known(file) {
            Some(known) => known.query_paths.clone(),
            None => query_paths(&workspace.files[file.0].text),
        };
        paths.insert(file, found);
    }
    let found = |file: FileId, path: &str| find_file(workspace, &workspace.files[file.0].path, path);
    let queries: BTreeSet<FileId> =
        paths.iter().flat_map(|(file, paths)| paths.iter().filter_map(|path| found(*file, path))).collect();

    let mut parsed = ParsedFiles { surroundings, files: HashMap::new() };
    let (mut definitions, mut diagnostics) = (Vec::new(), Vec::new());
    for file in ids().filter(|file| !queries.contains(file)) {
        let source = &workspace.files[file.0];
        let query_paths = paths.remove(&file).unwrap_or_default();
        let queries = query_paths.iter().filter_map(|path| found(file, path));
        let queries: Vec<_> = queries.map(|query| (query, workspace.files[query.0].text.clone())).collect();
        let all_paths = (!query_paths.is_empty())
            .then(|| workspace.files.iter().map(|source| source.path.clone()).collect::<Vec<_>>());
        let known = known(file).filter(|known| known.queries == queries && known.paths == all_paths);
        let one = match known {
            Some(known) if known.file == file => known.clone(),
            Some(known) => Arc::new(known.at(file)),
            None => {
                let (definitions, diagnostics) = match source.path.ends_with(".toml") {
                    true => toml_file(file, workspace, settings),
                    false => sql_file(file, source, settings),
                };
                let text = source.text.clone();
                Arc::new(ParsedFile { file, text, query_paths, queries, paths: all_paths, definitions, diagnostics })
            }
        };
        definitions.extend(one.definitions.iter().cloned());
        diagnostics.extend(one.diagnostics.iter().cloned());
        parsed.files.insert(source.path.clone(), one);
    }
    (definitions, diagnostics, parsed)
}

impl ParsedFile {
    /// The same, at another place in the list of files.
    fn at(&self, file: FileId) -> ParsedFile {
        let moved = |id: FileId| if id == self.file { file } else { id };
        let mut definitions = self.definitions.clone();
        definitions.iter_mut().for_each(|definition| definition.move_to(&moved));
        let mut diagnostics = self.diagnostics.clone();
        diagnostics.iter_mut().for_each(|diagnostic| diagnostic.move_to(&moved));
        ParsedFile {
            file,
            text: self.text.clone(),
            query_paths: self.query_paths.clone(),
            queries: self.queries.clone(),
            paths: self.paths.clone(),
            definitions,
            diagnostics,
        }
    }
}
