//! What is wrong with the user's files: collected as data, never thrown.
//!
//! Not here: failures of the world (the engine's `Error`) and the drawing (the front ends).

use crate::text::{FileId, SourceFile, Span, line_column};

/// How many of the blocked datasets are named to people.
const BLOCKS_NAMED: usize = 8;

/// How much a diagnostic matters. An error keeps the pipeline from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
    /// A hint; never counted as a problem.
    Note,
}

impl Severity {
    /// The word used in every rendering.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A second place that explains the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub message: String,
}

/// A change of the user's text that would mend the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub replacement: String,
}

/// One finding: *what* (`message`), *where* (`span`, `labels`), *why* (`reason`), *how to fix* (`help`, `edit`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Kebab-case word, stable and searchable: `unknown-dataset`.
    pub code: &'static str,
    /// The name that Spark or Databricks uses for the situation, where there is one.
    pub condition: Option<&'static str>,
    pub severity: Severity,
    /// Lower case, no final period, names in backticks.
    pub message: String,
    /// None for problems of the workspace as a whole.
    pub span: Option<Span>,
    /// Why it is a problem; drawn under the span.
    pub reason: Option<String>,
    pub labels: Vec<Label>,
    /// How to fix it.
    pub help: Option<String>,
    pub edit: Option<Edit>,
    /// Names of the datasets that can't be checked because of it.
    pub blocks: Vec<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, span.into(), message.into())
    }

    /// A warning at `span`.
    pub fn warning(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, span.into(), message.into())
    }

    /// A hint at `span`.
    pub fn note(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Note, code, span.into(), message.into())
    }

    fn new(severity: Severity, code: &'static str, span: Option<Span>, message: String) -> Diagnostic {
        Diagnostic {
            code,
            condition: None,
            severity,
            message,
            span,
            reason: None,
            labels: Vec::new(),
            help: None,
            edit: None,
            blocks: Vec::new(),
        }
    }

    /// Names the situation as Spark or Databricks does.
    pub fn condition(mut self, condition: &'static str) -> Diagnostic {
        self.condition = Some(condition);
        self
    }

    /// Says why it is a problem.
    pub fn reason(mut self, reason: impl Into<String>) -> Diagnostic {
        self.reason = Some(reason.into());
        self
    }

    /// Says how to fix it.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Points at a second place.
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into() });
        self
    }

    /// Offers a change of the text.
    pub fn edit(mut self, span: Span, replacement: impl Into<String>) -> Diagnostic {
        self.edit = Some(Edit { span, replacement: replacement.into() });
        self
    }

    /// Follows its files to other places in the list of files.
    pub fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        let labels = self.labels.iter_mut().map(|label| &mut label.span);
        let edit = self.edit.iter_mut().map(|edit| &mut edit.span);
        self.span.iter_mut().chain(labels).chain(edit).for_each(|span| span.move_to(moved));
    }

    /// ``blocks `a`, `b` and 3 more``; None if it blocks nothing.
    pub fn blocks_in_words(&self) -> Option<String> {
        let names: Vec<String> = self.blocks.iter().take(BLOCKS_NAMED).map(|name| format!("`{name}`")).collect();
        let more = match self.blocks.len().saturating_sub(BLOCKS_NAMED) {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        (!names.is_empty()).then(|| format!("blocks {}{more}", names.join(", ")))
    }

    /// True for errors, which keep the pipeline from running.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Sorts by file and place (those without a place first), errors before warnings at the same place, and
/// drops repetitions, so that the same files always give the same list.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| {
        let key = |d: &Diagnostic| (d.span.map(|s| (s.file, s.start)), d.severity);
        key(a).cmp(&key(b)).then_with(|| a.code.cmp(b.code)).then_with(|| a.message.cmp(&b.message))
    });
    diagnostics.dedup();
}

/// Keeps the quotes of strings in TOML files that an edit would replace by a bare name.
pub fn keep_quotes(files: &[SourceFile], diagnostics: &mut [Diagnostic]) {
    for edit in diagnostics.iter_mut().filter_map(|diagnostic| diagnostic.edit.as_mut()) {
        let Some(file) = files.get(edit.span.file.0).filter(|file| file.path.ends_with(".toml")) else { continue };
        let written = file.text.get(edit.span.start..edit.span.end).unwrap_or_default();
        let quote = written.chars().next().filter(|quote| matches!(quote, '"' | '\''));
        if let Some(quote) = quote.filter(|quote| written.ends_with(*quote) && !edit.replacement.starts_with(*quote)) {
            edit.replacement = format!("{quote}{}{quote}", edit.replacement);
        }
    }
}

/// Returns `path:line:column` of a span, as editors and terminals understand it.
pub fn place(files: &[SourceFile], span: Span) -> String {
    match files.get(span.file.0) {
        Some(file) => format!("{}:{}", file.path, line_column(&file.text, span.start)),
        None => "?".to_string(),
    }
}

/// Returns the name nearest to `wanted`, if one is near enough to be meant: "did you mean".
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    // Of names equally near the one that begins alike is meant: the first letter is rarely the wrong one.
    let by_distance = |name: &'a str| {
        let lower = name.to_lowercase();
        let begins_otherwise = lower.chars().next() != wanted.chars().next();
        (strsim::damerau_levenshtein(&wanted, &lower), begins_otherwise, name)
    };
    let mut near: Vec<_> = names
        .into_iter()
        .map(by_distance)
        .filter(|(distance, _, name)| *distance <= (name.chars().count().max(wanted.chars().count()) / 3).max(1))
        .collect();
    near.sort();
    near.dedup_by(|a, b| a.2.eq_ignore_ascii_case(b.2));
    match near[..] {
        // Of two that are equally near neither is meant for sure, and a guess may be applied.
        [first, second, ..] if (first.0, first.1) == (second.0, second.1) && first.0 > 0 => None,
        [first, ..] => Some(first.2),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_offers_only_what_may_be_meant() {
        assert_eq!(nearest("colour", ["color", "size"]), Some("color"));
        assert_eq!(nearest("Pipelin", ["pipeline"]), Some("pipeline"));
        assert_eq!(nearest("yar", ["var", "year"]), Some("year"));
        assert_eq!(nearest("zzz", ["color", "size"]), None);
        assert_eq!(nearest("f9", ["f1", "f3"]), None);
        assert_eq!(nearest("Size", ["sizes", "size", "SIZE"]), Some("SIZE"));
    }
}
