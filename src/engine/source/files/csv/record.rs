//! Cutting CSV text into fields: separators, quotes, escapes, comments.
//!
//! Not here: what a field means.

use pipeline::read_files::{CsvOptions, ReadFiles};

/// How the text is written.
#[derive(Debug)]
pub struct Dialect {
    separator: Vec<u8>,
    quote: Option<Vec<u8>>,
    escape: Option<Vec<u8>>,
    comment: Option<Vec<u8>>,
    trims_start: bool,
    trims_end: bool,
    multi_line: bool,
}

/// The fields of one record.
#[derive(Debug, Default)]
pub struct Record {
    text: Vec<u8>,
    /// For each field, where it ends in `text`, and whether it was quoted.
    fields: Vec<(usize, bool)>,
}

impl Record {
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns a field's text without its quotes, and whether it had some.
    pub fn field(&self, index: usize) -> Option<(&[u8], bool)> {
        let (end, is_quoted) = *self.fields.get(index)?;
        let start = if index == 0 { 0 } else { self.fields[index - 1].0 };
        Some((&self.text[start..end], is_quoted))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        (0..self.len()).filter_map(|index| self.field(index))
    }
}

fn bytes(char: char) -> Vec<u8> {
    char.to_string().into_bytes()
}

impl Dialect {
    pub fn new(spec: &ReadFiles) -> Dialect {
        let CsvOptions { separator, quote, escape, comment, .. } = spec.csv;
        Dialect {
            separator: bytes(separator),
            quote: quote.map(bytes),
            escape: escape.map(bytes),
            comment: comment.map(bytes),
            trims_start: spec.csv.ignore_leading_white_space,
            trims_end: spec.csv.ignore_trailing_white_space,
            multi_line: spec.multi_line,
        }
    }

    /// Reads the record that `text` starts with and returns how many bytes it takes, its line end included.
    /// `None`: `text` ends within a quoted field, and there `is_end` doesn't say that nothing follows.
    /// Comments and blank lines are records without fields.
    ///
    /// A quoted field ends at the quote before a separator; a quote within is doubled or escaped. What follows the
    /// closing quote makes the whole field plain text, quotes and all, as Spark's parser does.
    pub fn read(&self, text: &[u8], is_end: bool, record: &mut Record) -> Option<usize> {
        record.text.clear();
        record.fields.clear();
        let line_end = memchr::memchr(b'\n', text).unwrap_or(text.len());
        let line = &text[..line_end];
        let is_comment = self.comment.as_ref().is_some_and(|comment| line.starts_with(comment));
        if is_comment || line.trim_ascii().is_empty() {
            return Some((line_end + 1).min(text.len()));
        }
        // Without multiLine a line is a record, whatever its quotes say.
        let scope = if self.multi_line { text } else { line };
        let mut at = 0;
        loop {
            at = self.read_field(scope, at, is_end || !self.multi_line, record)?;
            let rest = &scope[at..];
            if rest.starts_with(&self.separator) {
                at += self.separator.len();
            } else {
                at += rest.iter().take_while(|byte| **byte == b'\r').count();
                return Some((at + 1).min(text.len()));
            }
        }
    }

    /// Reads the field at `at` and returns where it ends: at a separator, a line end or the end.
    fn read_field(&self, text: &[u8], at: usize, is_end: bool, record: &mut Record) -> Option<usize> {
        let start = at + if self.trims_start { leading_spaces(&text[at..]) } else { 0 };
        if let Some(quote) = &self.quote
            && text[start..].starts_with(quote)
        {
            let field_start = record.text.len();
            if let Some(end) = self.read_quoted(text, start + quote.len(), quote, is_end, record)? {
                record.fields.push((record.text.len(), true));
                return Some(end);
            }
            record.text.truncate(field_start);
        }
        let end = start + self.plain_end(&text[start..]);
        let mut field = &text[start..end];
        if self.trims_end {
            field = field.trim_ascii_end();
        }
        record.text.extend_from_slice(field);
        record.fields.push((record.text.len(), false));
        Some(end)
    }

    /// Reads after an opening quote; the inner `None` says that the field isn't a quoted one after all.
    fn read_quoted(
        &self,
        text: &[u8],
        mut at: usize,
        quote: &[u8],
        is_end: bool,
        record: &mut Record,
    ) -> Option<Option<usize>> {
        loop {
            let rest = &text[at..];
            if rest.is_empty() {
                // The closing quote is missing: in the next lines, or nowhere.
                return if is_end { Some(Some(at)) } else { None };
            }
            if let Some(escape) = self.escape.as_ref().filter(|escape| *escape != quote && rest.starts_with(escape)) {
                let after = &rest[escape.len()..];
                let escaped = [quote, escape].into_iter().find(|escaped| after.starts_with(escaped));
                let kept = escaped.unwrap_or(escape);
                record.text.extend_from_slice(kept);
                at += escape.len() + escaped.map_or(0, <[u8]>::len);
                continue;
            }
            if rest.starts_with(quote) {
                at += quote.len();
                let rest = &text[at..];
                if rest.starts_with(quote) {
                    record.text.extend_from_slice(quote);
                    at += quote.len();
                    continue;
                }
                let spaces = leading_spaces(rest);
                let after = &rest[spaces..];
                let is_closed = after.is_empty()
                    || after.starts_with(&self.separator)
                    || after.starts_with(b"\n")
                    || after.starts_with(b"\r");
                return Some(is_closed.then_some(at + spaces));
            }
            let first = |bytes: &[u8]| bytes[0];
            let special = memchr::memchr2(first(quote), self.escape.as_deref().map_or(first(quote), first), &rest[1..]);
            let end = special.map_or(rest.len(), |index| index + 1);
            record.text.extend_from_slice(&rest[..end]);
            at += end;
        }
    }

    /// Returns how long a field without quotes is.
    fn plain_end(&self, text: &[u8]) -> usize {
        let mut from = 0;
        loop {
            match memchr::memchr2(self.separator[0], b'\n', &text[from..]) {
                None => return text.len() - usize::from(text.ends_with(b"\r")),
                Some(index) => {
                    let at = from + index;
                    if text[at..].starts_with(&self.separator) {
                        return at;
                    }
                    if text[at] == b'\n' {
                        return at - usize::from(text[from..at].ends_with(b"\r"));
                    }
                    from = at + 1;
                }
            }
        }
    }
}

/// Blanks, but no line ends; a tab may be the separator and is no blank then, since it is looked for first.
fn leading_spaces(text: &[u8]) -> usize {
    text.iter().take_while(|byte| **byte == b' ').count()
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::read_files;
    use super::*;

    fn records(spec: &ReadFiles, text: &str) -> Vec<Vec<String>> {
        let dialect = Dialect::new(spec);
        let mut record = Record::default();
        let mut rest = text.as_bytes();
        let mut all = Vec::new();
        while !rest.is_empty() {
            rest = &rest[dialect.read(rest, true, &mut record).unwrap()..];
            if record.len() > 0 {
                all.push(record.iter().map(|(field, _)| String::from_utf8_lossy(field).into_owned()).collect());
            }
        }
        all
    }

    #[test]
    fn fields_are_cut_as_sparks_parser_does() {
        let spec = read_files("/");
        let cases: [(&str, &[&[&str]]); 12] = [
            ("a,b\nc,d", &[&["a", "b"], &["c", "d"]]),
            ("a,b\r\nc,\r\n", &[&["a", "b"], &["c", ""]]),
            ("a,\"b,c\",d", &[&["a", "b,c", "d"]]),
            (r#""say \"hi\"",x"#, &[&["say \"hi\"", "x"]]),
            (r#""say ""hi""",x"#, &[&["say \"hi\"", "x"]]),
            (r#""a\\",x"#, &[&["a\\", "x"]]),
            (r#""a\n",x"#, &[&["a\\n", "x"]]),
            (r#""a" b,x"#, &[&["\"a\" b", "x"]]),
            (r#"a"b,x"#, &[&["a\"b", "x"]]),
            ("\n  \na\n", &[&["a"]]),
            ("\"a\nb,c", &[&["a"], &["b", "c"]]),
            ("\"\",", &[&["", ""]]),
        ];
        for (text, expected) in cases {
            assert_eq!(records(&spec, text), expected, "{text:?}");
        }
    }

    #[test]
    fn options_change_what_is_special() {
        let mut spec = read_files("/");
        spec.csv.separator = '→';
        spec.csv.quote = Some('\'');
        spec.csv.comment = Some('#');
        spec.csv.ignore_leading_white_space = true;
        spec.csv.ignore_trailing_white_space = true;
        spec.multi_line = true;
        let text = "#c→d\n a → 'b\nc' →\"d\"\nx→y";
        assert_eq!(records(&spec, text), [vec!["a", "b\nc", "\"d\""], vec!["x", "y"]]);
        let dialect = Dialect::new(&spec);
        assert_eq!(dialect.read("a→'b\n".as_bytes(), false, &mut Record::default()), None);
    }
}
