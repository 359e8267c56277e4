//! The texts of a workspace → settings, graph, and everything structural that is wrong with them.

use crate::diagnostic::{self, Diagnostic};
use crate::graph::Graph;
use crate::parse;
use crate::settings::Settings;
use crate::text::FileId;
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
    let (settings, mut diagnostics) = parse::settings(&workspace);
    let mut definitions = Vec::new();
    let queries = parse::toml_file::query_files(&workspace);
    let files = (1..workspace.files.len()).map(FileId).filter(|file| !queries.contains(file));
    for file in files {
        let source = &workspace.files[file.0];
        let (found, problems) = match source.path.ends_with(".toml") {
            true => parse::toml_file(file, &workspace, &settings),
            false => parse::sql_file(file, source, &settings),
        };
        definitions.extend(found);
        diagnostics.extend(problems);
    }
    let (graph, problems) = Graph::build(definitions, &settings);
    diagnostics.extend(problems);
    // A file that can't be parsed may hold anything, so that nothing is defined is no news then.
    let is_broken = diagnostics.iter().any(Diagnostic::is_error);
    diagnostics.extend(validate(&graph, &settings).into_iter().filter(|d| !(is_broken && d.code == "empty-pipeline")));
    diagnostic::sort(&mut diagnostics);
    Pipeline { workspace, settings, graph, diagnostics }
}
