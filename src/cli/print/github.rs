//! Diagnostics as annotations of a GitHub workflow: `::error file=…,line=…,col=…,endColumn=…,title=…::message`, a
//! line each, so that a pull request shows them beside the code.

use std::fmt::Write as _;
use std::path::Path;

use pipeline::diagnostic::{Diagnostic, Severity};
use pipeline::text::{SourceFile, line_column};

/// All diagnostics of a workspace in the folder `root`, a line each.
pub fn annotations(root: &Path, files: &[SourceFile], found: &[Diagnostic]) -> String {
    let base = std::env::var_os("GITHUB_WORKSPACE").map(Into::into).or_else(|| std::env::current_dir().ok());
    // Places are relative to the repository; a workspace outside of it keeps its whole path.
    let folder = base.as_deref().and_then(|base: &Path| root.strip_prefix(base).ok()).unwrap_or(root);
    found.iter().map(|diagnostic| annotation(folder, files, diagnostic)).collect()
}

fn annotation(folder: &Path, files: &[SourceFile], diagnostic: &Diagnostic) -> String {
    let command = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut line = format!("::{command} ");
    if let Some((span, file)) = diagnostic.span.and_then(|span| Some((span, files.get(span.file.0)?))) {
        let (start, end) = (line_column(&file.text, span.start), line_column(&file.text, span.end));
        let path = folder.join(&file.path);
        let _ = write!(
            line,
            "file={},line={},endLine={},col={}",
            property(&path.to_string_lossy()),
            start.line,
            end.line,
            start.column
        );
        // GitHub takes columns for places of one line only.
        if start.line == end.line && end.column > start.column {
            let _ = write!(line, ",endColumn={}", end.column);
        }
        line.push(',');
    }
    let mut message = diagnostic.message.clone();
    let blocks = diagnostic.blocks_in_words();
    for more in [&diagnostic.reason, &blocks, &diagnostic.help].into_iter().flatten() {
        message.push('\n');
        message.push_str(more);
    }
    let _ = writeln!(line, "title={}::{}", property(diagnostic.code), data(&message));
    line
}

/// A message as a workflow command takes it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property's value, in which more characters mean something.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use pipeline::text::{FileId, Span};

    use super::*;

    #[test]
    fn annotations_are_one_line_each_whatever_the_text_holds() {
        let files = [SourceFile { path: "a,b:c%.sql".to_string(), text: "x\nFROM ñt\n;".to_string() }];
        let found = [
            Diagnostic::error("unknown-dataset", Span::new(FileId(0), 7..10), "no `ñt`: 100 %\nat all").help("write t"),
            Diagnostic::warning("w", Span::new(FileId(0), 2..11), "over two lines"),
            Diagnostic::note("n", None, "nowhere"),
        ];
        let text: String = found.iter().map(|found| annotation(Path::new("pipelines/shop"), &files, found)).collect();
        assert_eq!(
            text,
            "::error file=pipelines/shop/a%2Cb%3Ac%25.sql,line=2,endLine=2,col=6,endColumn=8,title=unknown-dataset\
             ::no `ñt`: 100 %25%0Aat all%0Awrite t\n\
             ::warning file=pipelines/shop/a%2Cb%3Ac%25.sql,line=2,endLine=3,col=1,title=w::over two lines\n\
             ::notice title=n::nowhere\n"
        );
    }
}
