//! TOML as a tree of values that know where they were written, down to each byte of a string.
//!
//! Not here: what the keys mean (`settings.rs`, `toml_file.rs`) and how they are read (`toml_reader.rs`).

use std::ops::Range;

use toml_edit::{Document, Item, TableLike, TomlError};

use crate::diagnostic::Diagnostic;
use crate::text::{FileId, MappedText, Span, Spanned};

/// A value of a TOML file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Escapes resolved; each byte still knows its place in the file.
    Text(MappedText),
    Integer(i64),
    Boolean(bool),
    /// As written.
    Float(String),
    /// As written.
    Datetime(String),
    Array(Vec<Spanned<Value>>),
    /// `[table]`, `{ … }`, or the implied table of a dotted key.
    Table(Table),
}

impl Value {
    /// The words for people: `a string`.
    pub fn words(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Boolean(_) => "a boolean",
            Value::Float(_) => "a float",
            Value::Datetime(_) => "a date or time",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

/// A table with its keys in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub entries: Vec<(Spanned<String>, Spanned<Value>)>,
    /// The header `[[flow]]`, or the braces and what is between; the key where there is neither.
    pub header: Span,
}

impl Table {
    /// From the header to the last value.
    pub fn span(&self) -> Span {
        self.entries.iter().fold(self.header, |span, (key, value)| {
            let inner = match &value.value {
                Value::Table(table) => table.span(),
                _ => value.span,
            };
            span.to(key.span).to(inner)
        })
    }
}

/// What a TOML file says, and its first syntax error.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub table: Table,
    /// With it, `table` is what is left without the broken lines: enough to know names by, not to judge.
    pub syntax_error: Option<Diagnostic>,
}

/// Lines that are left out before the rest of a broken file is given up.
const BROKEN_LINES_MAX: usize = 32;

/// Parses a TOML file. While it is broken, as it often is under the hands of its author, the lines that don't
/// parse are passed over, so that other files still find what the rest of it defines.
pub fn parse_toml(file: FileId, text: &str) -> Parsed {
    let mut readable = text.to_string();
    let mut errors: Vec<Diagnostic> = Vec::new();
    let mut table = Table { entries: Vec::new(), header: Span::new(file, 0..0) };
    while errors.len() < BROKEN_LINES_MAX {
        let error = match Document::parse(readable.as_str()) {
            Ok(document) => {
                table = Reader { file, text: &readable }.table(document.as_table(), table.header);
                break;
            }
            Err(error) => error,
        };
        let span = within(text, error.span().unwrap_or(0..0));
        errors.push(describe(file, &error, span.clone()));
        let start = readable[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let end = readable[start..].find('\n').map_or(readable.len(), |at| start + at);
        if readable[start..end].trim().is_empty() {
            break;
        }
        // Blanks of the same length, so that every other place stays.
        readable.replace_range(start..end, &" ".repeat(end - start));
    }
    // The parser may name a later error before the first.
    Parsed { table, syntax_error: errors.into_iter().min_by_key(|error| error.span.map(|span| span.start)) }
}

fn describe(file: FileId, error: &TomlError, range: Range<usize>) -> Diagnostic {
    // The span says where; the parser's words may run over lines.
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    Diagnostic::error("toml-syntax", Span::new(file, range), message)
        .help("the rest of this file is checked once it parses")
}

struct Reader<'a> {
    file: FileId,
    text: &'a str,
}

impl Reader<'_> {
    fn table(&self, table: &dyn TableLike, header: Span) -> Table {
        let mut entries: Vec<(Spanned<String>, Spanned<Value>)> = table
            .iter()
            .filter_map(|(name, item)| {
                let key_span = self.span(table.key(name).and_then(|key| key.span()), header);
                Some((Spanned::new(name.to_string(), key_span), self.item(item, key_span)?))
            })
            .collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        Table { entries, header }
    }

    fn item(&self, item: &Item, key: Span) -> Option<Spanned<Value>> {
        match item {
            Item::None => None,
            Item::Value(value) => Some(self.value(value, key)),
            Item::Table(table) => {
                let span = self.span(table.span(), key);
                Some(Spanned::new(Value::Table(self.table(table, span)), span))
            }
            Item::ArrayOfTables(tables) => {
                let elements = tables.iter().map(|table| {
                    let span = self.span(table.span(), key);
                    Spanned::new(Value::Table(self.table(table, span)), span)
                });
                Some(Spanned::new(Value::Array(elements.collect()), key))
            }
        }
    }

    fn value(&self, value: &toml_edit::Value, key: Span) -> Spanned<Value> {
        let span = self.span(value.span(), key);
        let raw = || self.text[span.start..span.end].to_string();
        let value = match value {
            toml_edit::Value::String(text) => Value::Text(self.string(text.value(), span)),
            toml_edit::Value::Integer(number) => Value::Integer(*number.value()),
            toml_edit::Value::Boolean(boolean) => Value::Boolean(*boolean.value()),
            toml_edit::Value::Float(_) => Value::Float(raw()),
            toml_edit::Value::Datetime(_) => Value::Datetime(raw()),
            toml_edit::Value::Array(array) => {
                Value::Array(array.iter().map(|element| self.value(element, span)).collect())
            }
            toml_edit::Value::InlineTable(table) => Value::Table(self.table(table, span)),
        };
        Spanned::new(value, span)
    }

    fn span(&self, range: Option<Range<usize>>, otherwise: Span) -> Span {
        match range {
            Some(range) => Span::new(self.file, within(self.text, range)),
            None => otherwise,
        }
    }

    /// The value of a string with the place of each byte. Should our reading of the quotes ever differ from the
    /// parser's, the string as a whole is its place.
    fn string(&self, value: &str, span: Span) -> MappedText {
        match self.unquoted(span) {
            Some(mapped) if mapped.as_str() == value => mapped,
            _ => {
                let mut whole = MappedText::new();
                whole.push_replacement(value, span);
                whole
            }
        }
    }

    fn unquoted(&self, span: Span) -> Option<MappedText> {
        let raw = &self.text[span.start..span.end];
        let delimiter = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|quotes| raw.len() >= 2 * quotes.len() && raw.starts_with(quotes) && raw.ends_with(quotes))?;
        let mut start = delimiter.len();
        let end = raw.len() - delimiter.len();
        if delimiter.len() == 3 {
            // A line end right after the opening quotes is not part of the string.
            start += if raw[start..].starts_with("\r\n") { 2 } else { usize::from(raw[start..].starts_with('\n')) };
        }
        let place = |range: Range<usize>| span.start + range.start..span.start + range.end;
        let file_part = |range| MappedText::from_file(self.file, self.text, place(range));
        if delimiter.starts_with('\'') {
            return Some(file_part(start..end));
        }
        let mut out = MappedText::new();
        let mut at = start;
        while let Some(found) = raw[at..end].find('\\') {
            let escape = at + found;
            push_all(&mut out, &file_part(at..escape));
            let (length, replacement) = unescaped(&raw[escape..end])?;
            at = escape + length;
            if !replacement.is_empty() {
                out.push_replacement(&replacement, Span::new(self.file, place(escape..at)));
            }
        }
        push_all(&mut out, &file_part(at..end));
        if out.as_str().is_empty() {
            out.push_replacement("", span);
        }
        Some(out)
    }
}

fn push_all(out: &mut MappedText, part: &MappedText) {
    out.push_part(part, 0..part.as_str().len());
}

/// The length of the escape that `raw` starts with, and what it stands for.
fn unescaped(raw: &str) -> Option<(usize, String)> {
    let kind = raw.chars().nth(1)?;
    let simple = |text: &str| Some((2, text.to_string()));
    let code = |digits: usize| {
        let code = u32::from_str_radix(raw.get(2..2 + digits)?, 16).ok()?;
        Some((2 + digits, char::from_u32(code)?.to_string()))
    };
    match kind {
        'b' => simple("\u{8}"),
        't' => simple("\t"),
        'n' => simple("\n"),
        'f' => simple("\u{c}"),
        'r' => simple("\r"),
        'e' => simple("\u{1b}"),
        '"' => simple("\""),
        '\\' => simple("\\"),
        'x' => code(2),
        'u' => code(4),
        'U' => code(8),
        // A backslash at the end of a line takes the line end and all blanks after it away.
        c if c.is_ascii_whitespace() => {
            let rest = raw[1..].trim_start_matches([' ', '\t', '\r', '\n']);
            Some((raw.len() - rest.len(), String::new()))
        }
        _ => None,
    }
}

/// `range` moved onto character boundaries inside `text`.
fn within(text: &str, range: Range<usize>) -> Range<usize> {
    let boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(range.start);
    start..boundary(range.end).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_string_knows_its_place() {
        let text =
            "a = '''\nSELECT é'''\nb = \"x\\ty\\u00e9z\"\nc = \"\"\"\n  one \\\n    two\"\"\"\nd = ''\ne.f = 'q'";
        let table = parse_toml(FileId(0), text).table;
        let places = |key: &str, needle: &str| {
            let (_, value) = table.entries.iter().find(|(k, _)| k.value == key).unwrap();
            let Value::Text(mapped) = &value.value else { panic!("{value:?}") };
            let at = mapped.as_str().find(needle).unwrap();
            let origin = mapped.origin(at..at + needle.len());
            &text[origin.start..origin.end]
        };
        assert_eq!(places("a", "SELECT"), "SELECT");
        assert_eq!(places("a", "é"), "é");
        assert_eq!(places("b", "y"), "y");
        assert_eq!(places("b", "é"), "\\u00e9");
        assert_eq!(places("b", "xéz".split('é').next_back().unwrap()), "z");
        assert_eq!(places("c", "two"), "two");
        assert_eq!(places("c", "one two"), "one \\\n    two");
        assert_eq!(places("d", ""), "");
    }

    #[test]
    fn a_syntax_error_is_one_error_at_its_place_and_spares_the_other_lines() {
        let parsed = parse_toml(FileId(0), "[pipeline]\nname = \nschema = 'é'\n[[flow\nx = 1\n");
        let error = parsed.syntax_error.unwrap();
        assert_eq!(error.code, "toml-syntax");
        assert!((17..=19).contains(&error.span.unwrap().start), "{error:?}");
        let Value::Table(pipeline) = &parsed.table.entries[0].1.value else { panic!() };
        let keys: Vec<_> = pipeline.entries.iter().map(|(key, _)| key.value.as_str()).collect();
        assert_eq!(keys, ["schema", "x"]);
        assert!(parse_toml(FileId(0), "a = \"\"\"\nb").syntax_error.is_some());
    }

    #[test]
    fn the_span_of_a_table_runs_from_its_header_to_its_last_value() {
        let text = "[[flow]]\nname = 'a'\nlimits = { threads = 1 }\n# end\n[[flow]]\n";
        let table = parse_toml(FileId(0), text).table;
        let Value::Array(flows) = &table.entries[0].1.value else { panic!() };
        let Value::Table(flow) = &flows[0].value else { panic!() };
        assert_eq!(&text[flow.header.start..flow.header.end], "[[flow]]");
        assert_eq!(&text[flow.span().start..flow.span().end], "[[flow]]\nname = 'a'\nlimits = { threads = 1 }");
    }
}
