//! A slip in the name of a column, dataset or function of a sound workspace is found where it was made, and the
//! right name is suggested as an edit. The aim: 90 of 100 places, 80 of 100 names.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use engine::Engine;
use pipeline::diagnostic::Diagnostic;
use pipeline::text::{FileId, Span};

#[test]
fn slips_in_names_are_found_where_they_were_made_and_the_right_name_is_suggested() {
    let folder = examples();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut slips, mut found, mut suggested, mut missed) = (0, 0, 0, Vec::new());
    for workspace in ["medallion", "registration", "registration_toml", "changed_logic", "reprocess_subset"] {
        let root = folder.path().join("workspaces").join(workspace);
        let mut engine = Engine::open(&root, &[]).unwrap();
        let analysis = runtime.block_on(engine.analyse()).unwrap();
        assert!(!analysis.has_errors(), "{workspace}: {:?}", analysis.diagnostics);
        let names = names(&engine, &analysis);
        for (n, name) in names.iter().chain(&names).enumerate() {
            let file = &engine.workspace().files[name.file].clone();
            let right = &file.text[name.range.clone()];
            let Some(wrong) = slip(right, n) else { continue };
            let mut text = file.text.clone();
            text.replace_range(name.range.clone(), &wrong);
            std::fs::write(root.join(&file.path), &text).unwrap();
            let edited = engine.reload().unwrap();
            let errors = runtime.block_on(edited.analyse()).unwrap().diagnostics;
            std::fs::write(root.join(&file.path), &file.text).unwrap();

            slips += 1;
            let token = name.range.start..name.range.start + wrong.len();
            let is_there = |span: &Span| span.file == FileId(name.file) && is_at(&text, span, &token);
            let at_place = errors.iter().find(|error| error.is_error() && error.span.as_ref().is_some_and(is_there));
            let is_right = at_place.is_some_and(|error| mends(error, &text, &file.text));
            found += usize::from(at_place.is_some());
            suggested += usize::from(is_right);
            if at_place.is_none() || !is_right {
                let said: Vec<_> = errors.iter().map(|e| format!("{}: {} {:?}", e.code, e.message, e.help)).collect();
                missed.push(format!("{workspace}/{}: `{right}` → `{wrong}`: {said:?}", file.path));
            }
            engine = edited;
            engine = engine.reload().unwrap();
        }
    }
    let share = |count: usize| 100.0 * count as f64 / slips as f64;
    let figure = format!(
        "{slips} slips: {:.1} % found at their place, {:.1} % with the right suggestion",
        share(found),
        share(suggested)
    );
    println!("{figure}\n{}", missed.join("\n"));
    assert!(slips >= 100, "{figure}");
    assert!(share(found) >= 90.0 && share(suggested) >= 80.0, "{figure}\n{}", missed.join("\n"));
}

/// A name in a query: the file's index, and where.
struct Name {
    file: usize,
    range: Range<usize>,
}

/// The examples, with their samples beside them.
fn examples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::os::unix::fs::symlink(repository.join("samples"), folder.path().join("samples")).unwrap();
    copy(&repository.join("workspaces"), &folder.path().join("workspaces"));
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true if entry.file_name() == ".flowbench" => {}
            true => copy(&path, &target),
            false => drop(std::fs::copy(path, target).unwrap()),
        }
    }
}

/// The columns, datasets and functions that queries name, each place once.
fn names(engine: &Engine, analysis: &engine::Analysis) -> Vec<Name> {
    let graph = engine.graph();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for columns in analysis.columns.iter().flatten() {
        known.extend(columns.fields.iter().map(|field| field.name.to_lowercase()));
    }
    known.extend(graph.datasets.iter().map(|dataset| dataset.name.table.to_lowercase()));
    let functions: BTreeSet<String> = engine::list_functions(None).into_iter().map(|row| row.name).collect();
    let mut places: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
    for id in graph.dataset_ids() {
        for reading in graph.readings(id) {
            let span = reading.query.span;
            let text = &engine.workspace().files[span.file.0].text;
            for range in words(text, span.start..span.end) {
                let word = text[range.clone()].to_lowercase();
                let before = text[..range.start].trim_end().to_lowercase();
                let is_call = text[range.end..].starts_with('(');
                let is_name = match is_call {
                    true => functions.contains(&word),
                    false => known.contains(&word) && !before.ends_with(" as"),
                };
                if is_name {
                    places.insert((span.file.0, range.start, range.end));
                }
            }
        }
    }
    places.into_iter().map(|(file, start, end)| Name { file, range: start..end }).collect()
}

/// Words outside of strings and comments.
fn words(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut words, mut at) = (Vec::new(), within.start);
    while at < within.end {
        let byte = bytes[at];
        if byte == b'\'' || byte == b'"' {
            at = text[at + 1..].find(byte as char).map_or(within.end, |end| at + end + 2);
        } else if text[at..].starts_with("--") {
            at = text[at..].find('\n').map_or(within.end, |end| at + end);
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let length = bytes[at..within.end].iter().take_while(|byte| is_part(byte)).count();
            words.push(at..at + length);
            at += length;
        } else {
            at += 1;
        }
    }
    words
}

/// One slip of the fingers: a letter left out, doubled, swapped with the next, or hit beside.
fn slip(name: &str, n: usize) -> Option<String> {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() < 4 {
        return None;
    }
    let at = 1 + (n * 7) % (letters.len() - 2);
    let mut wrong = letters.clone();
    match n % 4 {
        0 => drop(wrong.remove(at)),
        1 => wrong.insert(at, letters[at]),
        2 if letters[at] != letters[at + 1] => wrong.swap(at, at + 1),
        _ => wrong[at] = if letters[at] == 'q' { 'x' } else { 'q' },
    }
    Some(wrong.into_iter().collect())
}

/// True if the span is the token, or the dotted name or call that the token is in.
fn is_at(text: &str, span: &Span, token: &Range<usize>) -> bool {
    let Some(marked) = text.get(span.start..span.end) else { return false };
    let is_name = marked.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '`'));
    let is_call = span.start == token.start && marked.starts_with(&format!("{}(", &text[token.clone()]));
    span.start <= token.start && token.end <= span.end && (is_name || is_call)
}

/// True if the suggested edit gives back what was there.
fn mends(error: &Diagnostic, wrong: &str, right: &str) -> bool {
    let Some(edit) = &error.edit else { return false };
    let mut mended = wrong.to_string();
    mended.replace_range(edit.span.start..edit.span.end, &edit.replacement);
    mended.eq_ignore_ascii_case(right)
}
