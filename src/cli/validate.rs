//! `flowbench validate`: what is wrong with the files, once or at every save.

use engine::Engine;
use pipeline::diagnostic::Diagnostic;
use serde_json::{Value, json};

use super::args::ReportFormat;
use super::exit::{Exit, Trouble};
use super::print::number::counted;
use super::{Context, print, workspace};

/// Validates; with `is_watching` again after each save, until Ctrl-C.
pub fn run(context: &Context, is_watching: bool, format: ReportFormat) -> Result<Exit, Trouble> {
    let is_json = context.global.json || format == ReportFormat::Json;
    let engine = workspace::open(context)?;
    let runtime = workspace::runtime(&engine)?;
    if !is_watching {
        let analysis = runtime.block_on(engine.analyse())?;
        return verdict(context, &engine, &analysis.diagnostics, is_json);
    }
    let (root, storage) = (engine.root().to_path_buf(), engine.storage().to_path_buf());
    drop(engine);
    let (_watcher, mut changed) = engine::watch::watch(&root, &storage)?;
    runtime.block_on(async {
        loop {
            // Opened anew each time: a save may have broken flowbench.toml itself.
            let done = async {
                let engine = Engine::open(&root, &context.global.overrides)?;
                let analysis = engine.analyse().await?;
                verdict(context, &engine, &analysis.diagnostics, is_json)
            };
            let done = tokio::select! {
                done = done => done,
                _ = tokio::signal::ctrl_c() => return Ok(Exit::Ok),
            };
            if let Err(trouble) = done {
                if matches!(trouble, Trouble::Io { .. }) {
                    return Err(trouble);
                }
                print::say(super::print_trouble(&trouble, &context.terminal));
            }
            tokio::select! {
                files = changed.recv() => if files.is_none() { return Ok(Exit::Ok) },
                _ = tokio::signal::ctrl_c() => return Ok(Exit::Ok),
            }
            if !is_json {
                let now = chrono::Utc::now().timestamp_micros();
                print::say_line(format_args!(
                    "{}",
                    context.terminal.err.dim(format!("── {} ──", print::number::time(now)))
                ));
            }
        }
    })
}

/// Prints what was found: for people on stderr, as JSON on stdout.
pub fn verdict(context: &Context, engine: &Engine, found: &[Diagnostic], is_json: bool) -> Result<Exit, Trouble> {
    let files = &engine.workspace().files;
    let exit = if found.iter().any(Diagnostic::is_error) { Exit::InvalidWorkspace } else { Exit::Ok };
    if is_json {
        print::json::write_result(context.command, exit, &value(engine, found))?;
        return Ok(exit);
    }
    let terminal = &context.terminal;
    print::say(print::diagnostics::render(files, found, terminal.err, terminal.err_width));
    let graph = engine.graph();
    let size = format!(
        "{}: {}, {}",
        engine.settings().name,
        counted(graph.datasets.len() as u64, "dataset", "datasets"),
        counted(graph.flows.len() as u64, "flow", "flows")
    );
    match (print::diagnostics::summary(found), exit) {
        (None, _) => print::say_line(format_args!("{} {size}", terminal.err.good("valid"))),
        (Some(summary), Exit::Ok) => print::say_line(format_args!("{} {size}; {summary}", terminal.err.good("valid"))),
        (Some(summary), _) => print::say_line(format_args!("{} {size}; {summary}", terminal.err.error("invalid"))),
    }
    Ok(exit)
}

fn value(engine: &Engine, found: &[Diagnostic]) -> Value {
    let count = |severity| found.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    json!({
        "errors": count(pipeline::diagnostic::Severity::Error),
        "warnings": count(pipeline::diagnostic::Severity::Warning),
        "datasets": engine.graph().datasets.len(),
        "flows": engine.graph().flows.len(),
        "diagnostics": print::json::diagnostics_value(&engine.workspace().files, found),
    })
}
