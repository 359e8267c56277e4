//! The texts of a workspace → settings, graph, and everything structural that is wrong with them.

use crate::diagnostic::{self, Diagnostic};
use crate::graph::Graph;
use crate::parse::{self, ParsedFiles};
use crate::settings::Settings;
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
    let (graph, problems) = Graph::build(definitions, &settings);
    diagnostics.extend(problems);
    // A file that can't be parsed may hold anything, so that nothing is defined is no news then.
    let is_broken = diagnostics.iter().any(Diagnostic::is_error);
    diagnostics.extend(validate(&graph, &settings).into_iter().filter(|d| !(is_broken && d.code == "empty-pipeline")));
    diagnostic::sort(&mut diagnostics);
    (Pipeline { workspace, settings, graph, diagnostics }, parsed)
}
