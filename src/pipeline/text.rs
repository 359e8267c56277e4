//! Places in the user's files, and text that was rewritten but still knows where it came from.
//!
//! Not here: files on disk (the engine reads them) and the drawing of a place (the front ends do).

use std::fmt;
use std::ops::Range;

/// One of the user's files: its path relative to the workspace folder, with `/`, and its whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    pub path: String,
    pub text: String,
}

/// Index of a [`SourceFile`] in [`crate::workspace::Workspace::files`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileId(pub usize);

/// A range of bytes in one of the user's files. `end` is exclusive; both lie on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Span {
    pub file: FileId,
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The span of `range` in `file`.
    pub fn new(file: FileId, range: Range<usize>) -> Span {
        Span { file, start: range.start, end: range.end }
    }

    /// Follows its file to another place in the list of files.
    pub fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        self.file = moved(self.file);
    }

    /// The smallest span that holds both; `other` must lie in the same file.
    pub fn to(self, other: Span) -> Span {
        debug_assert_eq!(self.file, other.file);
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A value with the place where the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Pairs a value with its place.
    pub fn new(value: T, span: Span) -> Spanned<T> {
        Spanned { value, span }
    }
}

/// Line and column, both from 1; the column counts characters, as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct LineColumn {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Returns the line and column of the byte `offset` of `text`; an offset past the end is its end.
pub fn line_column(text: &str, offset: usize) -> LineColumn {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    LineColumn { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
}

/// Returns the byte offset of a line and column (both from 1, columns in characters) of `text`;
/// a place past the end of a line is the line's end.
pub fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let mut start = 0;
    for _ in 1..line {
        match text[start..].find('\n') {
            Some(i) => start += i + 1,
            None => return text.len(),
        }
    }
    let rest = &text[start..];
    let end = rest.find('\n').unwrap_or(rest.len());
    start + rest[..end].char_indices().nth(column.saturating_sub(1)).map_or(end, |(i, _)| i)
}

/// Text made from a piece of a file by cutting and replacing (`${name}`, `STREAM t`, …), which still
/// knows for every byte where it came from, so that an error in the rewritten text is reported in the
/// user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedText {
    text: String,
    /// In the order of the text, without gaps.
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// Where the piece starts in the rewritten text.
    at: usize,
    origin: Span,
    /// Copied byte for byte (offsets inside map one to one), or replaced as a whole.
    copied: bool,
}

impl MappedText {
    /// Empty text, to be pushed to.
    pub fn new() -> MappedText {
        MappedText { text: String::new(), pieces: Vec::new() }
    }

    /// The text of `range` of a file, unchanged.
    pub fn from_file(file: FileId, file_text: &str, range: Range<usize>) -> MappedText {
        let mut mapped = MappedText::new();
        mapped.push_piece(&file_text[range.clone()], Span::new(file, range), true);
        mapped
    }

    /// The rewritten text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Adds text that stands for `origin` as a whole.
    pub fn push_replacement(&mut self, text: &str, origin: Span) {
        self.push_piece(text, origin, false);
    }

    /// Adds the part `range` of `other`, with its origins.
    pub fn push_part(&mut self, other: &MappedText, range: Range<usize>) {
        for (i, piece) in other.pieces.iter().enumerate() {
            let piece_end = other.pieces.get(i + 1).map_or(other.text.len(), |next| next.at);
            let (start, end) = (range.start.max(piece.at), range.end.min(piece_end));
            if start >= end {
                continue;
            }
            let origin = if piece.copied {
                let from = piece.origin.start + (start - piece.at);
                Span { file: piece.origin.file, start: from, end: from + (end - start) }
            } else {
                piece.origin
            };
            self.push_piece(&other.text[start..end], origin, piece.copied);
        }
        // Nothing still stands somewhere.
        if self.pieces.is_empty() && !other.pieces.is_empty() {
            self.push_piece("", other.origin(range), false);
        }
    }

    /// Returns the place in the user's file that holds `range` letter for letter; None if any of it was written by
    /// us, so that an edit there would not be what the user sees.
    pub fn copied(&self, range: Range<usize>) -> Option<Span> {
        let origin = self.origin(range.clone());
        let is_copied = |at: usize| self.piece_at(at).1;
        let is_whole = origin.end - origin.start == range.len();
        (is_whole && range.clone().all(is_copied)).then_some(origin)
    }

    /// Follows its files to other places in the list of files.
    pub fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        self.pieces.iter_mut().for_each(|piece| piece.origin.move_to(moved));
    }

    /// Returns the part `range` as text of its own.
    pub fn part(&self, range: Range<usize>) -> MappedText {
        let mut part = MappedText::new();
        part.push_part(self, range);
        part
    }

    /// Returns the text with each `(range, replacement)` replaced; the ranges are sorted and do not overlap.
    pub fn replaced(&self, edits: &[(Range<usize>, String)]) -> MappedText {
        let mut out = MappedText::new();
        let mut at = 0;
        for (range, replacement) in edits {
            out.push_part(self, at..range.start);
            let origin = self.origin(range.clone());
            out.push_replacement(replacement, origin);
            at = range.end;
        }
        out.push_part(self, at..self.text.len());
        out
    }

    /// Returns the place in the user's file that `range` of the rewritten text came from. An empty range
    /// is the point where it stands; a range past the end is the end.
    ///
    /// # Panics
    /// If the text was never given a piece: there is then no file to point at.
    pub fn origin(&self, range: Range<usize>) -> Span {
        let first = self.piece_at(range.start);
        let start = first.0;
        if range.end <= range.start {
            return Span { file: start.file, start: start.start, end: if first.1 { start.start } else { start.end } };
        }
        let last = self.piece_at(range.end - 1).0;
        Span { file: start.file, start: start.start.min(last.start), end: start.end.max(last.end) }
    }

    /// True if `range` stands in the user's file as it stands here, so that an edit may replace it.
    pub fn is_copied(&self, range: Range<usize>) -> bool {
        let ends = self.pieces.iter().skip(1).map(|piece| piece.at).chain([self.text.len()]);
        let mut touched =
            self.pieces.iter().zip(ends).filter(|(piece, end)| piece.at < range.end && range.start < *end);
        touched.all(|(piece, _)| piece.copied)
    }

    /// The origin of one byte, and whether it was copied.
    fn piece_at(&self, offset: usize) -> (Span, bool) {
        let offset = offset.min(self.text.len());
        let i = self.pieces.partition_point(|piece| piece.at <= offset).saturating_sub(1);
        let piece = self.pieces.get(i).expect("a mapped text has a piece before it is asked for a place");
        if !piece.copied {
            return (piece.origin, false);
        }
        let start = (piece.origin.start + (offset - piece.at)).min(piece.origin.end);
        (Span { file: piece.origin.file, start, end: (start + 1).min(piece.origin.end) }, true)
    }

    fn push_piece(&mut self, text: &str, origin: Span, copied: bool) {
        if text.is_empty() && !self.pieces.is_empty() {
            return;
        }
        self.pieces.push(Piece { at: self.text.len(), origin, copied });
        self.text.push_str(text);
    }
}

impl Default for MappedText {
    fn default() -> MappedText {
        MappedText::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let text = "añb\nc";
        assert_eq!(line_column(text, 0).to_string(), "1:1");
        assert_eq!(line_column(text, 3).to_string(), "1:3");
        assert_eq!(line_column(text, 5).to_string(), "2:1");
        assert_eq!(offset_of(text, 1, 3), 3);
        assert_eq!(offset_of(text, 2, 9), 6);
        assert_eq!(offset_of(text, 9, 1), 6);
    }

    #[test]
    fn replaced_text_points_back_at_the_users_text() {
        let file = FileId(0);
        let text = "SELECT * FROM STREAM t WHERE x";
        let mapped = MappedText::from_file(file, text, 0..text.len()).replaced(&[(14..22, "input_0".to_string())]);
        assert_eq!(mapped.as_str(), "SELECT * FROM input_0 WHERE x");
        assert_eq!(mapped.origin(14..21), Span::new(file, 14..22));
        let x = mapped.as_str().find('x').unwrap();
        assert_eq!(mapped.origin(x..x + 1), Span::new(file, 29..30));
        assert_eq!(mapped.part(6..6).origin(0..0), Span::new(file, 6..6));
        assert!(mapped.is_copied(0..14) && mapped.is_copied(21..29) && !mapped.is_copied(13..15));
        let again = mapped.replaced(&[(0..6, "select".to_string())]);
        assert_eq!(again.origin(16..18), Span::new(file, 14..22));
    }
}
