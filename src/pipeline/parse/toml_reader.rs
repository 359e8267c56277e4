//! Reading the keys of a TOML table: typed, each wrong value and each unknown key reported at its place.
//!
//! Not here: which keys there are (`settings.rs`, `toml_file.rs`).

use std::ops::RangeInclusive;

use crate::byte_size::parse_byte_size;
use crate::diagnostic::{Diagnostic, nearest};
use crate::parse::toml_tree::{Table, Value};
use crate::text::{MappedText, Span, Spanned};

/// Replaces `${name}` and the like in a text before it is used.
pub type Expand<'a> = &'a dyn Fn(&MappedText) -> (MappedText, Vec<Diagnostic>);

/// Takes the known keys out of a table; [`TableReader::finish`] reports the rest.
pub struct TableReader<'t, 'd> {
    table: &'t Table,
    /// How people know the table: `[limits]`.
    title: &'d str,
    known: Vec<&'static str>,
    /// Reported already, and never suggested.
    refused: Vec<&'static str>,
    expand: Expand<'d>,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl<'t, 'd> TableReader<'t, 'd> {
    /// A reader of `table`, whose texts go through `expand`.
    pub fn new(
        table: &'t Table,
        title: &'d str,
        expand: Expand<'d>,
        diagnostics: &'d mut Vec<Diagnostic>,
    ) -> TableReader<'t, 'd> {
        TableReader { table, title, known: Vec::new(), refused: Vec::new(), expand, diagnostics }
    }

    /// The value of `key` as it stands.
    pub fn value(&mut self, key: &'static str) -> Option<&'t Spanned<Value>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.entries.iter().find(|(name, _)| name.value == key).map(|(_, value)| value)
    }

    /// Reports something at a place of this table.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// A string as written, with the places of its bytes.
    pub fn raw_text(&mut self, key: &'static str) -> Option<Spanned<&'t MappedText>> {
        let value = self.value(key)?;
        let Value::Text(text) = &value.value else {
            self.wrong_type(key, value, "a string");
            return None;
        };
        Some(Spanned::new(text, value.span))
    }

    /// A string with the places of its bytes, expanded.
    pub fn mapped_text(&mut self, key: &'static str) -> Option<Spanned<MappedText>> {
        let text = self.raw_text(key)?;
        Some(Spanned::new(self.expanded(text.value), text.span))
    }

    /// A string, expanded.
    pub fn text(&mut self, key: &'static str) -> Option<Spanned<String>> {
        let text = self.mapped_text(key)?;
        Some(Spanned::new(text.value.as_str().to_string(), text.span))
    }

    /// A string that says something: not empty, no blanks around it.
    pub fn word(&mut self, key: &'static str) -> Option<Spanned<String>> {
        let text = self.text(key)?;
        if text.value.trim().is_empty() {
            let title = self.title;
            self.report(Diagnostic::error("empty-value", text.span, format!("`{key}` of {title} is empty")));
            return None;
        }
        Some(Spanned::new(text.value.trim().to_string(), text.span))
    }

    /// As [`TableReader::word`]; an error if the key is absent.
    pub fn required_word(&mut self, key: &'static str) -> Option<Spanned<String>> {
        if self.value(key).is_none() {
            let title = self.title;
            let diagnostic = Diagnostic::error("missing-key", self.table.header, format!("{title} has no `{key}`"))
                .help(format!("add `{key} = \"…\"`"));
            self.report(diagnostic);
            return None;
        }
        self.word(key)
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        match &value.value {
            Value::Boolean(boolean) => Some(*boolean),
            Value::Text(text) if matches!(text.as_str(), "true" | "false") => {
                let diagnostic = self
                    .type_error(key, value, "true or false")
                    .help("leave out the quotes")
                    .edit(value.span, text.as_str());
                self.report(diagnostic);
                None
            }
            _ => {
                self.wrong_type(key, value, "true or false");
                None
            }
        }
    }

    /// A whole number in `range`.
    pub fn count(&mut self, key: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let value = self.value(key)?;
        let Value::Integer(number) = &value.value else {
            self.wrong_type(key, value, "a whole number");
            return None;
        };
        if range.contains(number) {
            return Some(*number);
        }
        let (title, start, end) = (self.title, range.start(), range.end());
        self.report(
            Diagnostic::error("out-of-range", value.span, format!("`{key}` of {title} is out of range: {number}"))
                .help(format!("use {start} to {end}")),
        );
        None
    }

    /// A number of bytes: an integer, or a text as `512MB`.
    pub fn bytes(&mut self, key: &'static str) -> Option<u64> {
        let value = self.value(key)?;
        let bytes = match &value.value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::Text(text) => parse_byte_size(self.expanded(text).as_str()),
            _ => None,
        };
        if bytes.is_none_or(|bytes| bytes == 0) {
            let diagnostic = self
                .type_error(key, value, "a size above zero")
                .help("write a number of bytes, or a number with KB, MB, GB or TB: \"512MB\"");
            self.report(diagnostic);
            return None;
        }
        bytes
    }

    /// Strings: an array, or one alone. Each not empty, blanks around it cut off.
    pub fn words(&mut self, key: &'static str) -> Option<Vec<Spanned<String>>> {
        let texts = self.mapped_words(key)?;
        Some(texts.into_iter().map(|text| Spanned::new(text.value.as_str().to_string(), text.span)).collect())
    }

    /// [`TableReader::words`] that know where their bytes come from.
    pub fn mapped_words(&mut self, key: &'static str) -> Option<Vec<Spanned<MappedText>>> {
        let value = self.value(key)?;
        let elements = match &value.value {
            Value::Array(elements) => elements.as_slice(),
            Value::Text(_) => std::slice::from_ref(value),
            _ => {
                self.wrong_type(key, value, "an array of strings");
                return None;
            }
        };
        let mut words = Vec::new();
        for element in elements {
            match &element.value {
                Value::Text(text) => {
                    let text = self.expanded(text);
                    let word = text.as_str().trim();
                    let start = text.as_str().len() - text.as_str().trim_start().len();
                    match word.is_empty() {
                        true => self.report(Diagnostic::error("empty-value", element.span, "the string is empty")),
                        false => words.push(Spanned::new(text.part(start..start + word.len()), element.span)),
                    }
                }
                _ => self.wrong_type(key, element, "an array of strings"),
            }
        }
        Some(words)
    }

    /// One of a few words, compared without regard to case.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&'static str, T)]) -> Option<Spanned<T>> {
        let text = self.text(key)?;
        if let Some((_, choice)) = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.value.trim())) {
            return Some(Spanned::new(*choice, text.span));
        }
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        let title = self.title;
        let mut diagnostic = Diagnostic::error(
            "unknown-value",
            text.span,
            format!("`{key}` of {title} has an unknown value: `{}`", text.value),
        );
        diagnostic = match nearest(&text.value, words.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean \"{near}\"?")).edit(text.span, format!("\"{near}\"")),
            None => diagnostic.help(format!("use one of: {}", words.join(", "))),
        };
        self.report(diagnostic);
        None
    }

    /// A table whose values are strings, booleans or integers, all taken as text: properties and options.
    pub fn properties(&mut self, key: &'static str) -> Vec<(Spanned<String>, Spanned<String>)> {
        let Some(table) = self.table(key) else { return Vec::new() };
        let mut properties = Vec::new();
        self.collect_properties(key, "", table, &mut properties);
        properties
    }

    /// Dotted keys are nested tables to TOML, and one name to us.
    fn collect_properties(
        &mut self,
        key: &'static str,
        prefix: &str,
        table: &'t Table,
        out: &mut Vec<(Spanned<String>, Spanned<String>)>,
    ) {
        for (name, value) in &table.entries {
            let full_name = format!("{prefix}{}", name.value);
            let text = match &value.value {
                Value::Text(text) => self.expanded(text).as_str().to_string(),
                Value::Integer(number) => number.to_string(),
                Value::Boolean(boolean) => boolean.to_string(),
                Value::Float(text) => text.clone(),
                Value::Table(inner) => {
                    self.collect_properties(key, &format!("{full_name}."), inner, out);
                    continue;
                }
                Value::Array(_) | Value::Datetime(_) => {
                    self.wrong_type(key, value, "strings, numbers and booleans only");
                    continue;
                }
            };
            out.push((Spanned::new(full_name, name.span), Spanned::new(text, value.span)));
        }
    }

    /// A table.
    pub fn table(&mut self, key: &'static str) -> Option<&'t Table> {
        let value = self.value(key)?;
        match &value.value {
            Value::Table(table) => Some(table),
            _ => {
                self.wrong_type(key, value, "a table");
                None
            }
        }
    }

    /// The tables of `[[key]]`.
    pub fn tables(&mut self, key: &'static str) -> Vec<&'t Table> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let elements = match &value.value {
            Value::Array(elements) => elements,
            Value::Table(table) => {
                let diagnostic =
                    Diagnostic::error("wrong-type", table.header, format!("`{key}` must be a list of tables"))
                        .help(format!("write `[[{key}]]`"));
                let header = format!("[{key}]");
                let is_header = table.header.end - table.header.start == header.len();
                self.report(if is_header { diagnostic.edit(table.header, format!("[[{key}]]")) } else { diagnostic });
                return Vec::new();
            }
            _ => {
                self.wrong_type(key, value, "a list of tables");
                return Vec::new();
            }
        };
        let mut tables = Vec::new();
        for element in elements {
            match &element.value {
                Value::Table(table) => tables.push(table),
                _ => self.wrong_type(key, element, "a list of tables"),
            }
        }
        tables
    }

    /// A key that exists elsewhere and not here, or not yet: an error with the way out.
    pub fn refuse(
        &mut self,
        key: &'static str,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.refused.push(key);
        if let Some((name, _)) = self.table.entries.iter().find(|(name, _)| name.value == key) {
            self.report(Diagnostic::error(code, name.span, message).help(help));
        }
    }

    /// [`TableReader::refuse`] with the reason.
    pub fn refuse_because(
        &mut self,
        key: &'static str,
        message: impl Into<String>,
        reason: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.refused.push(key);
        if let Some(span) = key_span(self.table, key) {
            self.report(Diagnostic::error("misplaced-key", span, message).reason(reason).help(help));
        }
    }

    /// A key of later work.
    pub fn not_supported_yet(&mut self, key: &'static str, help: &str) {
        let message = format!("`{key}` of {} is not supported yet", self.title);
        self.refuse(key, "not-supported-yet", message, help);
    }

    /// Reports the keys that nobody asked for.
    pub fn finish(self) {
        for (key, _) in &self.table.entries {
            let name = key.value.as_str();
            if self.known.contains(&name) || self.refused.contains(&name) {
                continue;
            }
            let message = match self.title.is_empty() {
                true => format!("unknown key `{}`", key.value),
                false => format!("unknown key `{}` in {}", key.value, self.title),
            };
            let diagnostic = Diagnostic::error("unknown-key", key.span, message);
            self.diagnostics.push(match nearest(&key.value, self.known.iter().copied()) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")).edit(key.span, near),
                None => diagnostic.help(format!("the keys are: {}", self.known.join(", "))),
            });
        }
    }

    /// The text after `${name}` and the like were replaced.
    pub fn expanded(&mut self, text: &MappedText) -> MappedText {
        let (text, diagnostics) = (self.expand)(text);
        self.diagnostics.extend(diagnostics);
        text
    }

    /// Reads a table inside this one, to its end.
    pub fn nested<T>(&mut self, table: &Table, title: &str, read: impl FnOnce(&mut TableReader) -> T) -> T {
        let mut reader = TableReader::new(table, title, self.expand, self.diagnostics);
        let value = read(&mut reader);
        reader.finish();
        value
    }

    fn type_error(&self, key: &str, value: &Spanned<Value>, expected: &str) -> Diagnostic {
        let found = match &value.value {
            Value::Text(text) if text.as_str().chars().count() <= 40 => format!("the string \"{}\"", text.as_str()),
            Value::Integer(number) => format!("the integer {number}"),
            Value::Boolean(boolean) => format!("the boolean {boolean}"),
            other => other.words().to_string(),
        };
        let owner = if self.title.is_empty() { String::new() } else { format!(" of {}", self.title) };
        let message = format!("`{key}`{owner} must be {expected}, found {found}");
        Diagnostic::error("wrong-type", value.span, message)
    }

    /// Reports a value of another type than the key takes.
    pub fn wrong_type(&mut self, key: &str, value: &Spanned<Value>, expected: &str) {
        let mut diagnostic = self.type_error(key, value, expected);
        if expected == "a string" && !matches!(value.value, Value::Array(_) | Value::Table(_)) {
            diagnostic = diagnostic.help("write it in quotes");
        }
        self.report(diagnostic);
    }
}

/// The span of a value's key in `table`, for remarks about the pair.
pub fn key_span(table: &Table, key: &str) -> Option<Span> {
    table.entries.iter().find(|(name, _)| name.value == key).map(|(name, _)| name.span)
}
