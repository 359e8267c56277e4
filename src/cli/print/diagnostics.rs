//! Diagnostics as people read them: the code, the user's own lines with the place marked, why, how to fix.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Patch, Renderer, Snippet, normalize_untrusted_str};
use pipeline::diagnostic::{Diagnostic, Severity};
use pipeline::text::{SourceFile, Span};

use super::number::counted;
use super::style::Style;

/// Renders all, each followed by an empty line; no line is wider than `width` where the source allows it.
pub fn render(files: &[SourceFile], diagnostics: &[Diagnostic], style: Style, width: usize) -> String {
    let renderer = if style.is_coloured { Renderer::styled() } else { Renderer::plain() }.term_width(width);
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&report(files, diagnostic)));
        out.push_str("\n\n");
    }
    out
}

/// `2 errors, 1 warning`; None if there is nothing to count.
pub fn summary(diagnostics: &[Diagnostic]) -> Option<String> {
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count() as u64;
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let parts: Vec<String> = [(errors, "error", "errors"), (warnings, "warning", "warnings")]
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| counted(n, one, many))
        .collect();
    if parts.is_empty() { None } else { Some(parts.join(", ")) }
}

fn report<'a>(files: &'a [SourceFile], diagnostic: &'a Diagnostic) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()).id(diagnostic.code));
    let mut is_reason_shown = false;
    // The place itself first; then each other file that a label points into.
    let mut places: Vec<Span> = diagnostic.span.into_iter().collect();
    for label in &diagnostic.labels {
        if !places.iter().any(|span| span.file == label.span.file) {
            places.push(label.span);
        }
    }
    for place in places {
        let Some(file) = files.get(place.file.0) else { continue };
        let mut annotations: Vec<Annotation<'a>> = Vec::new();
        if let Some(span) = diagnostic.span.filter(|span| span.file == place.file) {
            let primary = AnnotationKind::Primary.span(range(file, span));
            annotations.push(match &diagnostic.reason {
                Some(reason) => primary.label(normalize_untrusted_str(reason)),
                None => primary,
            });
            is_reason_shown = true;
        }
        for label in diagnostic.labels.iter().filter(|label| label.span.file == place.file) {
            annotations.push(
                AnnotationKind::Context.span(range(file, label.span)).label(normalize_untrusted_str(&label.message)),
            );
        }
        let snippet = Snippet::source(file.text.as_str()).path(normalize_untrusted_str(&file.path));
        group = group.element(snippet.annotations(annotations));
    }
    if let Some(reason) = diagnostic.reason.as_ref().filter(|_| !is_reason_shown) {
        group = group.element(Level::NOTE.message(normalize_untrusted_str(reason)));
    }
    if let Some(blocks) = diagnostic.blocks_in_words() {
        group = group.element(Level::NOTE.message(normalize_untrusted_str(&blocks)));
    }
    if let Some(condition) = diagnostic.condition {
        group = group.element(Level::NOTE.message(format!("condition {condition}")));
    }
    let patched = diagnostic.edit.as_ref().and_then(|edit| Some((edit, files.get(edit.span.file.0)?)));
    match (patched, &diagnostic.help) {
        (Some((edit, file)), help) => {
            let title = help.as_deref().map_or("write it so".to_string(), normalize_untrusted_str);
            let patch = Patch::new(range(file, edit.span), edit.replacement.as_str());
            let snippet = Snippet::source(file.text.as_str()).path(normalize_untrusted_str(&file.path)).patch(patch);
            vec![group, Group::with_title(Level::HELP.secondary_title(title)).element(snippet)]
        }
        (None, Some(help)) => vec![group.element(Level::HELP.message(normalize_untrusted_str(help)))],
        (None, None) => vec![group],
    }
}

/// The bytes of a span, kept inside the text whatever the span says.
fn range(file: &SourceFile, span: Span) -> std::ops::Range<usize> {
    let boundary = |mut at: usize| {
        at = at.min(file.text.len());
        while !file.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(span.start);
    start..boundary(span.end).max(start)
}

#[cfg(test)]
mod tests {
    use pipeline::text::FileId;

    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_string(), text: text.to_string() }
    }

    fn span(files: &[SourceFile], file: usize, text: &str) -> Span {
        let start = files[file].text.find(text).unwrap();
        Span::new(FileId(file), start..start + text.len())
    }

    #[test]
    fn diagnostics_show_what_where_why_and_how_to_fix() {
        let files = [
            file("flowbench.toml", "[pipeline]\nnme = \"shop\"\n"),
            file(
                "transformations/backfill.sql",
                "CREATE FLOW backfill AS\nINSERT INTO ONCE orders BY NAME\nSELECT * FROM STREAM raw_orders;\n",
            ),
            file("transformations/orders.sql", "CREATE STREAMING TABLE orders;\n"),
        ];
        let diagnostics = [
            Diagnostic::error("empty-pipeline", None, "the workspace defines no dataset")
                .reason("no file matches `transformations/**`")
                .help("add a .sql or .toml file there"),
            Diagnostic::error("unknown-key", span(&files, 0, "nme"), "[pipeline] has no key `nme`")
                .help("did you mean `name`?")
                .edit(span(&files, 0, "nme"), "name"),
            Diagnostic::error(
                "once-reads-stream",
                span(&files, 1, "STREAM raw_orders"),
                "once flow `backfill` reads a stream",
            )
            .condition("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW")
            .reason("a once flow reads its input one time; a stream has no end")
            .label(span(&files, 2, "orders"), "it writes this table")
            .help("remove STREAM, or remove ONCE to keep the flow running"),
            Diagnostic::warning("legacy", span(&files, 2, "STREAMING"), "an old form"),
        ];
        insta::assert_snapshot!(render(&files, &diagnostics, Style::plain(), 100));
        assert_eq!(summary(&diagnostics).as_deref(), Some("3 errors, 1 warning"));
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn a_span_outside_the_text_is_drawn_at_its_end() {
        let files = [file("a.sql", "añ")];
        let diagnostics = [Diagnostic::error("x", Span::new(FileId(0), 2..99), "y")];
        assert!(render(&files, &diagnostics, Style::plain(), 80).contains("a.sql:1:2"));
        let nowhere = [Diagnostic::error("x", Span::new(FileId(7), 0..1), "y")];
        assert!(render(&files, &nowhere, Style::plain(), 80).starts_with("error[x]: y"));
    }

    #[test]
    fn colour_codes_of_the_users_text_never_reach_the_terminal() {
        let files = [file("a.sql", "SELECT \x1b[31m")];
        let diagnostic =
            Diagnostic::error("x", Span::new(FileId(0), 7..12), "m\x1b[1m").help("h\x1b[1m").reason("r\x1b[1m");
        assert!(!render(&files, &[diagnostic], Style::plain(), 80).contains('\x1b'));
    }
}
