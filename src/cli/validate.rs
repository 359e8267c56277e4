//! `flowbench validate`: what is wrong with the files, once or at every save, and mended where a machine can.

use std::time::Instant;

use engine::{Engine, FixedFile};
use pipeline::diagnostic::{Diagnostic, Severity};
use pipeline::text::SourceFile;
use serde_json::{Value, json};

use super::args::ReportFormat;
use super::exit::{Exit, Trouble};
use super::print::number::{self, counted};
use super::{Context, print, workspace};

/// What the answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people, on stderr.
    Text,
    /// On stdout, by docs/validate-json.md.
    Json,
    /// Annotations of a GitHub workflow, on stdout.
    GitHub,
}

/// What is done besides looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mending {
    Nothing,
    /// The diff is shown.
    Shown,
    /// The diff is shown and the files are changed.
    Done,
}

/// One look at the files.
pub struct Verdict<'a> {
    pub engine: &'a Engine,
    pub found: &'a [Diagnostic],
    pub duration_ms: u64,
    /// What the verdict before didn't have, by position, and what only that one had.
    pub new: Vec<usize>,
    pub fixed: Vec<Known>,
    /// Files that were changed, or would be.
    pub fixes: &'a [FixedFile],
}

/// A diagnostic as it is recognized in the next verdict, wherever it has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    severity: Severity,
    code: &'static str,
    message: String,
    file: Option<String>,
}

/// Validates; when watching, again after each save, until Ctrl-C.
pub fn run(context: &Context, is_watching: bool, mending: Mending, format: ReportFormat) -> Result<Exit, Trouble> {
    let form = match format {
        ReportFormat::Text if context.global.json => Form::Json,
        ReportFormat::Text => Form::Text,
        ReportFormat::Json => Form::Json,
        ReportFormat::GitHub => Form::GitHub,
    };
    let started = Instant::now();
    let engine = workspace::open(context)?;
    let runtime = workspace::runtime(&engine)?;
    match (is_watching, mending) {
        (true, _) => runtime.block_on(watch(context, engine, form)),
        (false, Mending::Nothing) => {
            let analysis = runtime.block_on(analyse_in_full(&engine))?;
            let verdict = Verdict::first(&engine, &analysis.diagnostics, elapsed_ms(started));
            print_verdict(context, &verdict, form)
        }
        (false, mending) => runtime.block_on(mend(context, engine, mending, form)),
    }
}

/// An analysis with the warnings that ask for listings which no analysis needs.
async fn analyse_in_full(engine: &Engine) -> engine::error::Result<engine::Analysis> {
    let analysis = engine.analyse().await?;
    match engine.list_sources().await? {
        true => engine.analyse().await,
        false => Ok(analysis),
    }
}

/// Prints what was found once, for another command.
pub fn verdict(context: &Context, engine: &Engine, found: &[Diagnostic], is_json: bool) -> Result<Exit, Trouble> {
    let form = if is_json { Form::Json } else { Form::Text };
    print_verdict(context, &Verdict::first(engine, found, 0), form)
}

/// Shows what the edits of the diagnostics would change, changes it if wanted, and says what is left.
async fn mend(context: &Context, engine: Engine, mending: Mending, form: Form) -> Result<Exit, Trouble> {
    let started = Instant::now();
    let fixes = engine.fixes().await?;
    if form == Form::Text {
        super::write_out(&fixes.iter().map(diff).collect::<String>())?;
    }
    let engine = match mending {
        Mending::Done => {
            engine.save(&fixes)?;
            engine.reload()?
        }
        Mending::Nothing | Mending::Shown => engine,
    };
    let analysis = analyse_in_full(&engine).await?;
    let verdict = Verdict { fixes: &fixes, ..Verdict::first(&engine, &analysis.diagnostics, elapsed_ms(started)) };
    let exit = print_verdict(context, &verdict, form)?;
    if form == Form::Text && mending == Mending::Done && !fixes.is_empty() {
        let edits = fixes.iter().map(|file| file.edits as u64).sum();
        let files = counted(fixes.len() as u64, "file", "files");
        print::say_line(format_args!("applied {} in {files}", counted(edits, "edit", "edits")));
    }
    Ok(exit)
}

/// The change of a file as `diff -u` prints it.
fn diff(file: &FixedFile) -> String {
    let (before, after) = (format!("a/{}", file.path), format!("b/{}", file.path));
    let diff = similar::TextDiff::from_lines(&file.before, &file.after);
    diff.unified_diff().context_radius(2).header(&before, &after).to_string()
}

async fn watch(context: &Context, engine: Engine, form: Form) -> Result<Exit, Trouble> {
    let (root, storage) = (engine.root().to_path_buf(), engine.storage().to_path_buf());
    let (_watcher, mut changed) = engine::watch::watch(&root, &storage)?;
    let mut engine = engine;
    let mut before: Option<Vec<Known>> = None;
    let mut recheck: Option<tokio::task::JoinHandle<engine::error::Result<bool>>> = None;
    let (mut started, mut is_reload_wanted) = (Instant::now(), false);
    loop {
        let looked = async {
            if is_reload_wanted {
                engine = engine.reload()?;
            }
            let analysis = engine.analyse().await?;
            let files = &engine.workspace().files;
            let mut verdict = Verdict::first(&engine, &analysis.diagnostics, elapsed_ms(started));
            let now = known(files, &analysis.diagnostics);
            if let Some(before) = &before {
                verdict.compare(before, &now);
                announce(context, &verdict, form);
            }
            before = Some(now);
            print_verdict(context, &verdict, form)
        };
        let looked = tokio::select! {
            looked = looked => looked,
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Ok),
        };
        match looked {
            Err(trouble @ Trouble::Io { .. }) => return Err(trouble),
            // The settings can't be used, say; the next save may mend that.
            Err(trouble) => print::say(super::print_trouble(&trouble, &context.terminal)),
            Ok(_) if recheck.is_none() => {
                // Sources are looked at again behind the verdict, never before it.
                let engine = engine.clone();
                recheck = Some(tokio::spawn(async move { engine.recheck_sources().await }));
            }
            Ok(_) => {}
        }
        loop {
            let rechecked = async {
                match recheck.as_mut() {
                    Some(task) => task.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                files = changed.recv() => {
                    if files.is_none() {
                        return Ok(Exit::Ok);
                    }
                    (started, is_reload_wanted) = (Instant::now(), true);
                    break;
                }
                has_changed = rechecked => {
                    recheck = None;
                    // A look that failed changes nothing; the next one says why.
                    if let Ok(Ok(true)) = has_changed {
                        (started, is_reload_wanted) = (Instant::now(), false);
                        break;
                    }
                }
                _ = tokio::signal::ctrl_c() => return Ok(Exit::Ok),
            }
        }
    }
}

/// The line above a verdict after a save, and what the save mended.
fn announce(context: &Context, verdict: &Verdict<'_>, form: Form) {
    if form != Form::Text {
        return;
    }
    let style = context.terminal.err;
    let mut line = format!("── {}, checked in {}", number::time(now_us()), number::duration(verdict.duration_ms));
    for (count, word) in [(verdict.new.len(), "new"), (verdict.fixed.len(), "fixed")] {
        if count > 0 {
            line.push_str(&format!(", {count} {word}"));
        }
    }
    print::say_line(format_args!("{}", style.dim(format!("{line} ──"))));
    for fixed in &verdict.fixed {
        let file = fixed.file.as_ref().map(|file| format!(" ({file})")).unwrap_or_default();
        let what = format!("{}[{}]: {}{file}", fixed.severity.word(), fixed.code, fixed.message);
        print::say_line(format_args!("{} {}", style.good("fixed"), print::event::one_line(&what)));
    }
}

fn now_us() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

fn elapsed_ms(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl<'a> Verdict<'a> {
    fn first(engine: &'a Engine, found: &'a [Diagnostic], duration_ms: u64) -> Verdict<'a> {
        Verdict { engine, found, duration_ms, new: Vec::new(), fixed: Vec::new(), fixes: &[] }
    }

    /// Finds what is new and what is gone; of several that read alike each counts.
    fn compare(&mut self, before: &[Known], now: &[Known]) {
        let mut gone = before.to_vec();
        for (i, found) in now.iter().enumerate() {
            match gone.iter().position(|known| known == found) {
                Some(at) => drop(gone.swap_remove(at)),
                None => self.new.push(i),
            }
        }
        self.fixed = before.iter().filter(|known| gone.contains(known)).cloned().collect();
    }

    fn exit(&self) -> Exit {
        if self.found.iter().any(Diagnostic::is_error) { Exit::InvalidWorkspace } else { Exit::Ok }
    }
}

fn known(files: &[SourceFile], found: &[Diagnostic]) -> Vec<Known> {
    let known = |diagnostic: &Diagnostic| Known {
        severity: diagnostic.severity,
        code: diagnostic.code,
        message: diagnostic.message.clone(),
        file: diagnostic.span.and_then(|span| files.get(span.file.0)).map(|file| file.path.clone()),
    };
    found.iter().map(known).collect()
}

/// Prints a verdict: for people on stderr, for machines on stdout.
fn print_verdict(context: &Context, verdict: &Verdict<'_>, form: Form) -> Result<Exit, Trouble> {
    let (exit, found) = (verdict.exit(), verdict.found);
    let files = &verdict.engine.workspace().files;
    match form {
        Form::Json => {
            print::json::write_result(context.command, exit, &value(verdict))?;
            return Ok(exit);
        }
        Form::GitHub => super::write_out(&print::github::annotations(verdict.engine.root(), files, found))?,
        Form::Text => {
            print::say(print::diagnostics::render(files, found, context.terminal.err, context.terminal.err_width));
        }
    }
    let style = context.terminal.err;
    let graph = verdict.engine.graph();
    let size = format!(
        "{}: {}, {}",
        verdict.engine.settings().name,
        counted(graph.datasets.len() as u64, "dataset", "datasets"),
        counted(graph.flows.len() as u64, "flow", "flows")
    );
    let word = if exit == Exit::Ok { style.good("valid") } else { style.error("invalid") };
    match print::diagnostics::summary(found) {
        None => print::say_line(format_args!("{word} {size}")),
        Some(summary) => print::say_line(format_args!("{word} {size}; {summary}")),
    }
    Ok(exit)
}

/// The version of [`value`]: keys are added within a version, never changed or taken away.
const VERSION: u32 = 1;

/// A verdict as docs/validate-json.md describes it.
fn value(verdict: &Verdict<'_>) -> Value {
    let count = |severity| verdict.found.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let fixed = verdict.fixed.iter().map(
        |known| json!({ "severity": known.severity, "code": known.code, "message": known.message, "file": known.file }),
    );
    let fixes = verdict.fixes.iter().map(|file| json!({ "file": file.path, "edits": file.edits, "diff": diff(file) }));
    json!({
        "version": VERSION,
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "datasets": verdict.engine.graph().datasets.len(),
        "flows": verdict.engine.graph().flows.len(),
        "duration_ms": verdict.duration_ms,
        "diagnostics": print::json::diagnostics_value(&verdict.engine.workspace().files, verdict.found),
        "new": verdict.new,
        "fixed": fixed.collect::<Vec<_>>(),
        "fixes": fixes.collect::<Vec<_>>(),
    })
}
