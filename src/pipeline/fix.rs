//! The edits that diagnostics offer, applied to texts.
//!
//! Not here: writing files (the engine does) and what is left afterwards (another analysis says).

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Edit};
use crate::text::{FileId, SourceFile};

/// A file with edits applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedFile {
    pub file: FileId,
    pub text: String,
    /// How many edits were applied.
    pub edits: usize,
}

/// Applies the edits of `diagnostics`. Of edits that overlap the first stays; the others wait for another round,
/// if they are then still wanted.
pub fn apply_edits(files: &[SourceFile], diagnostics: &[Diagnostic]) -> Vec<EditedFile> {
    let mut by_file: BTreeMap<FileId, Vec<&Edit>> = BTreeMap::new();
    for edit in diagnostics.iter().filter_map(|diagnostic| diagnostic.edit.as_ref()) {
        by_file.entry(edit.span.file).or_default().push(edit);
    }
    let mut edited = Vec::new();
    for (file, mut edits) in by_file {
        let Some(source) = files.get(file.0) else { continue };
        edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let (mut text, mut at, mut count) = (String::new(), 0, 0);
        let mut last: Option<&Edit> = None;
        for edit in edits {
            let (start, end) = (edit.span.start, edit.span.end);
            // An edit that was applied, an overlap, a second insertion at one place, a place that isn't there.
            let is_taken = start < at || last.is_some_and(|last| last.span.start == start);
            let Some(before) = source.text.get(at..start).filter(|_| !is_taken) else { continue };
            if source.text.get(start..end).is_none_or(|written| written == edit.replacement) {
                continue;
            }
            text.push_str(before);
            text.push_str(&edit.replacement);
            (at, count, last) = (end, count + 1, Some(edit));
        }
        if count > 0 {
            text.push_str(&source.text[at..]);
            edited.push(EditedFile { file, text, edits: count });
        }
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Span;

    fn edited(text: &str, edits: &[(std::ops::Range<usize>, &str)]) -> Option<(String, usize)> {
        let files = [SourceFile { path: "a.sql".to_string(), text: text.to_string() }];
        let diagnostics: Vec<Diagnostic> = edits
            .iter()
            .map(|(range, to)| Diagnostic::error("x", None, "y").edit(Span::new(FileId(0), range.clone()), *to))
            .collect();
        apply_edits(&files, &diagnostics).pop().map(|edited| (edited.text, edited.edits))
    }

    #[test]
    fn edits_are_applied_from_front_to_back_and_overlaps_wait() {
        let text = |text: &str, count| Some((text.to_string(), count));
        assert_eq!(edited("FROM ordrs, itms", &[(12..16, "items"), (5..10, "orders")]), text("FROM orders, items", 2));
        assert_eq!(edited("FROM ordrs", &[(5..10, "orders"), (5..10, "orders")]), text("FROM orders", 1));
        assert_eq!(edited("FROM ordrs", &[(5..5, "STREAM "), (5..10, "orders")]), text("FROM STREAM ordrs", 1));
        assert_eq!(edited("abc", &[(0..2, "x"), (1..3, "y")]), text("xc", 1));
        assert_eq!(edited("añ", &[(2..3, "x"), (9..12, "y")]), None);
        assert_eq!(edited("abc", &[(0..1, "a")]), None);
    }
}
