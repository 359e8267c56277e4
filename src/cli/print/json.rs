//! The machine-readable output, version 1: one JSON object a line.
//!
//! - `{"type":"event","format":1,…}`: the fields of [`pipeline::event::Event`], with `sequence` where the
//!   event comes from the log
//! - `{"type":"result","format":1,"command":"run","exit_code":0,"result":{…}}`: last, and always there once
//!   the arguments were understood. `result` is what the command answers, null if it answers nothing
//! - the same with `"error":{"code","condition","message","help","notices","diagnostics"}` instead of
//!   `result` if the command ended early
//!
//! A diagnostic is `{code, condition, severity, message, reason, help, file, line, column, end_line,
//! end_column, labels, edit, blocks}`; lines and columns count characters from 1, the end is exclusive; what does not
//! apply is null. `labels` are `{file, line, column, end_line, end_column, message}`, `edit` is the same with
//! `replacement`; `blocks` are the names of datasets that can't be checked because of it. Fields may be added within a version, never changed or taken away.

use std::io::Write;

use pipeline::diagnostic::{Diagnostic, Severity};
use pipeline::event::Event;
use pipeline::text::{SourceFile, Span, line_column};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::exit::{Exit, Trouble};

/// The version of the output.
pub const FORMAT: u32 = 1;

/// Writes one event to stdout.
pub fn write_event(sequence: Option<i64>, event: &Event) -> Result<(), Trouble> {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        format: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        sequence: Option<i64>,
        #[serde(flatten)]
        event: &'a Event,
    }
    write_line(&Line { r#type: "event", format: FORMAT, sequence, event })
}

/// Writes the last line of a command that came to its end.
pub fn write_result(command: &str, exit: Exit, result: &Value) -> Result<(), Trouble> {
    write_line(&json!({
        "type": "result", "format": FORMAT, "command": command, "exit_code": exit.code(), "result": result,
    }))
}

/// Writes the last line of a command that ended early.
pub fn write_trouble(command: &str, trouble: &Trouble) -> Result<(), Trouble> {
    write_line(&json!({
        "type": "result", "format": FORMAT, "command": command, "exit_code": trouble.exit().code(),
        "error": trouble_value(trouble),
    }))
}

fn write_line(value: &impl Serialize) -> Result<(), Trouble> {
    let mut line = serde_json::to_vec(value).map_err(std::io::Error::from)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)?;
    Ok(out.flush()?)
}

fn trouble_value(trouble: &Trouble) -> Value {
    match trouble {
        Trouble::Usage { condition, message, help } => {
            json!({ "code": "usage", "condition": condition, "message": message, "help": help })
        }
        Trouble::Invalid { files, diagnostics } => json!({
            "code": "invalid-workspace",
            "message": super::diagnostics::summary(diagnostics),
            "diagnostics": diagnostics_value(files, diagnostics),
        }),
        Trouble::InvalidQuery { files, diagnostics } => json!({
            "code": "invalid-query",
            "message": super::diagnostics::summary(diagnostics),
            "diagnostics": diagnostics_value(files, diagnostics),
        }),
        Trouble::Unconfirmed { notices } => json!({
            "code": "unconfirmed", "message": "refused without confirmation", "notices": notices,
        }),
        Trouble::Engine(error) => {
            json!({ "code": error.code(), "message": error.to_string(), "help": error.help() })
        }
        Trouble::Io { action, source } => json!({ "code": "io", "message": format!("cannot {action}: {source}") }),
    }
}

/// Diagnostics by the schema above.
pub fn diagnostics_value(files: &[SourceFile], diagnostics: &[Diagnostic]) -> Value {
    diagnostics.iter().map(|diagnostic| diagnostic_value(files, diagnostic)).collect()
}

/// A place; every field null for a problem without one.
#[derive(Serialize, Default)]
struct Place<'a> {
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
}

impl<'a> Place<'a> {
    fn of(files: &'a [SourceFile], span: Span) -> Place<'a> {
        let Some(file) = files.get(span.file.0) else { return Place::default() };
        let (start, end) = (line_column(&file.text, span.start), line_column(&file.text, span.end));
        Place {
            file: Some(&file.path),
            line: Some(start.line),
            column: Some(start.column),
            end_line: Some(end.line),
            end_column: Some(end.column),
        }
    }
}

fn diagnostic_value(files: &[SourceFile], diagnostic: &Diagnostic) -> Value {
    #[derive(Serialize)]
    struct Labelled<'a> {
        #[serde(flatten)]
        place: Place<'a>,
        message: &'a str,
    }
    #[derive(Serialize)]
    struct Replacement<'a> {
        #[serde(flatten)]
        place: Place<'a>,
        replacement: &'a str,
    }
    #[derive(Serialize)]
    struct Line<'a> {
        code: &'static str,
        condition: Option<&'static str>,
        severity: Severity,
        message: &'a str,
        reason: Option<&'a str>,
        help: Option<&'a str>,
        #[serde(flatten)]
        place: Place<'a>,
        labels: Vec<Labelled<'a>>,
        edit: Option<Replacement<'a>>,
        blocks: &'a [String],
    }
    let line = Line {
        code: diagnostic.code,
        condition: diagnostic.condition,
        severity: diagnostic.severity,
        message: &diagnostic.message,
        reason: diagnostic.reason.as_deref(),
        help: diagnostic.help.as_deref(),
        place: diagnostic.span.map(|span| Place::of(files, span)).unwrap_or_default(),
        labels: diagnostic
            .labels
            .iter()
            .map(|label| Labelled { place: Place::of(files, label.span), message: &label.message })
            .collect(),
        edit: diagnostic
            .edit
            .as_ref()
            .map(|edit| Replacement { place: Place::of(files, edit.span), replacement: &edit.replacement }),
        blocks: &diagnostic.blocks,
    };
    serde_json::to_value(line).expect("strings and numbers always serialize")
}

#[cfg(test)]
mod tests {
    use pipeline::text::FileId;

    use super::*;

    #[test]
    fn diagnostics_have_every_field_of_the_schema() {
        let files = [SourceFile { path: "a.sql".to_string(), text: "x\nFROM tt".to_string() }];
        let span = Span::new(FileId(0), 7..9);
        let diagnostics = [
            Diagnostic::error("unknown-dataset", span, "no").edit(span, "t").label(span, "here"),
            Diagnostic::warning("empty-pipeline", None, "nothing").help("add"),
        ];
        let expected = json!([
            {
                "code": "unknown-dataset", "condition": null, "severity": "error", "message": "no", "reason": null,
                "help": null, "file": "a.sql", "line": 2, "column": 6, "end_line": 2, "end_column": 8,
                "labels": [{ "file": "a.sql", "line": 2, "column": 6, "end_line": 2, "end_column": 8, "message": "here" }],
                "edit": { "file": "a.sql", "line": 2, "column": 6, "end_line": 2, "end_column": 8, "replacement": "t" },
                "blocks": [],
            },
            {
                "code": "empty-pipeline", "condition": null, "severity": "warning", "message": "nothing",
                "reason": null, "help": "add", "file": null, "line": null, "column": null, "end_line": null,
                "end_column": null, "labels": [], "edit": null, "blocks": [],
            },
        ]);
        assert_eq!(diagnostics_value(&files, &diagnostics), expected);
    }
}
