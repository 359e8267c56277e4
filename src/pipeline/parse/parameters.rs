//! `${name}` in SQL and TOML text, replaced from `[configuration]` before parsing.

use crate::diagnostic::{Diagnostic, nearest};
use crate::text::MappedText;

/// Replaces each `${name}` by what `lookup` gives for it. An unknown name is an error that names it and
/// stays in the text; `known` are the names to suggest.
pub fn substitute(
    text: &MappedText,
    lookup: &dyn Fn(&str) -> Option<String>,
    known: &[&str],
) -> (MappedText, Vec<Diagnostic>) {
    let (mut edits, mut diagnostics) = (Vec::new(), Vec::new());
    let sql = text.as_str();
    let mut at = 0;
    while let Some(found) = sql[at..].find("${") {
        let start = at + found;
        let Some(length) = sql[start..].find('}') else {
            let span = text.origin(start..sql.len());
            diagnostics.push(
                Diagnostic::error("unclosed-parameter", span, "`${` without `}`").help("write `${name}`, or remove it"),
            );
            break;
        };
        let end = start + length + 1;
        let name = sql[start + 2..end - 1].trim();
        match lookup(name) {
            Some(value) => edits.push((start..end, value)),
            None => {
                let mut diagnostic = Diagnostic::error(
                    "unknown-parameter",
                    text.origin(start..end),
                    format!("no configuration value `{name}`"),
                )
                .reason("the text before parsing needs its value");
                diagnostic = match nearest(name, known.iter().copied()) {
                    Some(near) => diagnostic
                        .help(format!("did you mean `${{{near}}}`?"))
                        .edit(text.origin(start..end), format!("${{{near}}}")),
                    None => diagnostic.help(format!(
                        "add `{name} = \"…\"` under [configuration] in flowbench.toml, or pass --set {name}=…"
                    )),
                };
                diagnostics.push(diagnostic);
            }
        }
        at = end;
    }
    (text.replaced(&edits), diagnostics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::FileId;

    #[test]
    fn unknown_parameter_is_named_and_the_rest_replaced() {
        let text = "SELECT '${root}/x', ${yeer}";
        let mapped = MappedText::from_file(FileId(0), text, 0..text.len());
        let lookup = |name: &str| (name == "root").then(|| "/data".to_string());
        let (out, diagnostics) = substitute(&mapped, &lookup, &["root", "year"]);
        assert_eq!(out.as_str(), "SELECT '/data/x', ${yeer}");
        assert_eq!(diagnostics.len(), 1);
        assert_eq!(diagnostics[0].help.as_deref(), Some("did you mean `${year}`?"));
    }
}
