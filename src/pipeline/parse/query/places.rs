//! sqlparser counts lines and characters; everything else here counts bytes.

use std::ops::Range;

/// The lines of a text.
pub(super) struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    is_ascii: bool,
}

impl<'a> Places<'a> {
    pub fn new(text: &'a str) -> Places<'a> {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Places { text, line_starts, is_ascii: text.is_ascii() }
    }

    /// The byte at a line and column from 1; `0:0` is sqlparser's "at the end".
    pub fn offset(&self, line: u64, column: u64) -> usize {
        let (Some(line), Some(column)) = (to_index(line), to_index(column)) else { return self.text.len() };
        let Some(&start) = self.line_starts.get(line) else { return self.text.len() };
        let rest = &self.text[start..];
        if self.is_ascii {
            return start + column.min(rest.len());
        }
        start + rest.char_indices().nth(column).map_or(rest.len(), |(i, _)| i)
    }

    /// The bytes of a span of sqlparser's.
    pub fn range(&self, span: sqlparser::tokenizer::Span) -> Range<usize> {
        let start = self.offset(span.start.line, span.start.column);
        start..self.offset(span.end.line, span.end.column).max(start)
    }
}

fn to_index(from_one: u64) -> Option<usize> {
    usize::try_from(from_one).ok()?.checked_sub(1)
}
