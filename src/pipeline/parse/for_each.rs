//! `for_each = { year = "${backfill_years}" }`: one table of a TOML file that stands for several definitions.
//!
//! `{year}` in any of the table's texts is replaced by each value in turn; of several variables every combination
//! is taken, the last variable changing fastest. Braces around other words stay: they may be a glob's `{a,b}`.

use crate::diagnostic::{Diagnostic, Edit, nearest};
use crate::parse::toml_reader::{Expand, key_span};
use crate::parse::toml_tree::{Table, Value};
use crate::text::{MappedText, Span};

/// More definitions than this from one table are taken for a mistake.
const DEFINITIONS_MAX: usize = 1000;

/// The values of the variables for one definition; none for a table without `for_each`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bindings {
    values: Vec<(String, String)>,
}

impl Bindings {
    /// Replaces `${name}`, then `{variable}`.
    pub fn expand(&self, text: &MappedText, parameters: Expand) -> (MappedText, Vec<Diagnostic>) {
        let (text, mut diagnostics) = parameters(text);
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.code == "unknown-parameter") {
            if let Some((name, _)) =
                self.values.iter().find(|(name, _)| diagnostic.message.ends_with(&format!("`{name}`")))
            {
                diagnostic.help = Some(format!("a variable of `for_each` is written `{{{name}}}`"));
                diagnostic.edit = diagnostic.span.map(|span| Edit { span, replacement: format!("{{{name}}}") });
            }
        }
        let mut edits = Vec::new();
        for (range, name) in braced_words(text.as_str()) {
            if let Some((_, value)) = self.values.iter().find(|(variable, _)| variable == name) {
                edits.push((range, value.clone()));
            }
        }
        (text.replaced(&edits), diagnostics)
    }
}

/// The bindings of each definition that `table` stands for: one without variables where there is no `for_each`,
/// none where it is wrong.
pub fn bindings(table: &Table, title: &str, expand: Expand, diagnostics: &mut Vec<Diagnostic>) -> Vec<Bindings> {
    let Some((_, for_each)) = table.entries.iter().find(|(key, _)| key.value == "for_each") else {
        diagnostics.extend(check_name(table, &[]));
        return vec![Bindings::default()];
    };
    let wrong = |message: String| {
        Diagnostic::error("wrong-type", for_each.span, message)
            .help("write for_each = { year = \"${years}\" }, or for_each = { year = [\"2024\", \"2023\"] }")
    };
    let variables = match &for_each.value {
        Value::Table(variables) if !variables.entries.is_empty() => variables,
        Value::Table(_) => {
            diagnostics.push(wrong(format!("`for_each` of {title} names no variable")));
            return Vec::new();
        }
        other => {
            let found = other.words();
            diagnostics.push(wrong(format!("`for_each` of {title} must be a table of variables, found {found}")));
            return Vec::new();
        }
    };
    let mut rows = vec![Bindings::default()];
    // Each variable, and whether it has more than one value, so that the names must hold it.
    let mut names: Vec<(&str, bool)> = Vec::new();
    for (variable, value) in &variables.entries {
        if !is_word(&variable.value) {
            let message = format!("`{}` is no name of a variable", variable.value);
            let help = "use letters, digits and _";
            diagnostics.push(Diagnostic::error("invalid-name", variable.span, message).help(help));
            return Vec::new();
        }
        let Some(values) = values_of(&value.value, value.span, expand, diagnostics) else { return Vec::new() };
        if values.is_empty() {
            let span = key_span(variables, &variable.value);
            diagnostics.push(
                Diagnostic::warning("empty-for-each", span, format!("`{}` has no values", variable.value))
                    .reason(format!("this {title} defines nothing"))
                    .help("give it values, or remove the table"),
            );
            return Vec::new();
        }
        if let Some(twice) = values.iter().enumerate().find(|(i, value)| values[..*i].contains(value)) {
            let message = format!("`{}` has the value `{}` twice", variable.value, twice.1);
            diagnostics.push(Diagnostic::error("duplicate-value", value.span, message).help("remove one"));
            return Vec::new();
        }
        if rows.len() * values.len() > DEFINITIONS_MAX {
            let message = format!("`for_each` makes more than {DEFINITIONS_MAX} definitions");
            diagnostics.push(Diagnostic::error("too-many-definitions", for_each.span, message).help("split the table"));
            return Vec::new();
        }
        names.push((&variable.value, values.len() > 1));
        rows = rows
            .iter()
            .flat_map(|row| {
                values.iter().map(|value| {
                    let mut row = row.clone();
                    row.values.push((variable.value.clone(), value.clone()));
                    row
                })
            })
            .collect();
    }
    if let Some(diagnostic) = check_name(table, &names) {
        diagnostics.push(diagnostic);
        // One definition stays for others to refer to; more would only clash with it.
        rows.truncate(1);
    }
    rows
}

/// An error if a variable is misspelled in the name, or the name is the same for every value of one.
fn check_name(table: &Table, variables: &[(&str, bool)]) -> Option<Diagnostic> {
    let (_, name) = table.entries.iter().find(|(key, _)| key.value == "name")?;
    let Value::Text(text) = &name.value else { return None };
    let words: Vec<&str> = braced_words(text.as_str()).map(|(_, word)| word).collect();
    if let Some(word) = words.iter().find(|word| variables.iter().all(|(variable, _)| variable != *word)) {
        let unknown = Diagnostic::error("unknown-variable", name.span, format!("no variable `{word}` in `for_each`"));
        return Some(match nearest(word, variables.iter().map(|(variable, _)| *variable)) {
            Some(near) => unknown.help(format!("did you mean `{{{near}}}`?")),
            None => unknown.help(format!("add for_each = {{ {word} = [\"…\"] }}, or remove the braces")),
        });
    }
    let (variable, _) = variables.iter().find(|(variable, has_many)| *has_many && !words.contains(variable))?;
    Some(
        Diagnostic::error("name-not-unique", name.span, format!("the name doesn't hold `{{{variable}}}`"))
            .reason("every value of `for_each` makes a definition, and each needs its own name")
            .help(format!("add `{{{variable}}}` to the name")),
    )
}

/// A text is split at commas, blanks trimmed; the elements of an array are taken as they are.
fn values_of(value: &Value, span: Span, expand: Expand, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<String>> {
    let mut wrong = |found: &str, span| {
        let message = format!("a variable's values must be an array or a comma list, found {found}");
        diagnostics
            .push(Diagnostic::error("wrong-type", span, message).help("write [\"2024\", \"2023\"] or \"2024,2023\""));
    };
    let elements = match value {
        Value::Text(text) => {
            let (text, problems) = expand(text);
            let is_wrong = !problems.is_empty();
            diagnostics.extend(problems);
            let parts = text.as_str().split(',').map(|part| part.trim().to_string());
            return (!is_wrong).then(|| parts.filter(|part| !part.is_empty()).collect());
        }
        Value::Array(elements) => elements,
        other => {
            wrong(other.words(), span);
            return None;
        }
    };
    let mut values = Vec::new();
    for element in elements {
        match &element.value {
            Value::Text(text) => {
                let (text, problems) = expand(text);
                diagnostics.extend(problems);
                values.push(text.as_str().to_string());
            }
            Value::Integer(number) => values.push(number.to_string()),
            other => {
                let message = format!("a value of a variable must be a string or an integer, found {}", other.words());
                diagnostics.push(Diagnostic::error("wrong-type", element.span, message).help("write it in quotes"));
                return None;
            }
        }
    }
    Some(values)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '_' || c.is_alphanumeric())
}

/// The words in braces, `{year}`, with the places of the braces. `${year}` is none.
fn braced_words(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, &str)> {
    text.match_indices('{').filter_map(|(start, _)| {
        let end = start + text[start..].find('}')?;
        let word = &text[start + 1..end];
        (is_word(word) && !text[..start].ends_with('$')).then_some((start..end + 1, word))
    })
}
