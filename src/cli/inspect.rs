//! The commands that only read: status, updates, events, graph, show, sql, describe, functions.

use std::io::{BufWriter, Stdout, Write};
use std::time::Duration;

use engine::Engine;
use pipeline::event::{Event, Level};
use serde_json::json;

use super::args::{GraphFormat, RowFormat};
use super::exit::{Exit, Trouble};
use super::{Context, print, workspace};

/// Pause between two looks at the event log.
const FOLLOW_PAUSE: Duration = Duration::from_millis(200);

/// Events read at a time.
const EVENTS_PAGE: usize = 10_000;

/// How datasets and flows stand.
pub fn status(context: &Context) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let status = workspace::runtime(&engine)?.block_on(engine.status())?;
    let terminal = &context.terminal;
    context.answer(Exit::Ok, &json!(status), || {
        print::status::status(&status, engine.graph(), terminal.out, terminal.out_width)
    })
}

/// The newest updates.
pub fn updates(context: &Context, limit: usize) -> Result<Exit, Trouble> {
    let updates = workspace::open(context)?.updates(limit)?;
    let terminal = &context.terminal;
    context.answer(Exit::Ok, &json!(updates), || print::status::updates(&updates, terminal.out, terminal.out_width))
}

/// The newest events, and with `is_following` those to come.
pub fn events(context: &Context, is_following: bool, limit: usize, level: Level) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let write = |sequence: i64, event: &Event| match context.global.json {
        true => print::json::write_event(Some(sequence), event),
        false => super::write_out(&format!("{}\n", print::event::line(event, context.terminal.out))),
    };
    let newest = newest_events(&engine, limit, level)?;
    let mut after = engine.last_events(1)?.last().map_or(0, |(sequence, _)| *sequence);
    for (sequence, event) in &newest {
        after = after.max(*sequence);
        write(*sequence, event)?;
    }
    if !is_following {
        return match context.global.json {
            true => context.answer(Exit::Ok, &json!({ "events": newest.len(), "sequence": after }), String::new),
            false => Ok(Exit::Ok),
        };
    }
    // Ctrl-C ends the process: there is nothing to clean up.
    loop {
        std::thread::sleep(FOLLOW_PAUSE);
        for (sequence, event) in engine.events(after, EVENTS_PAGE)? {
            after = sequence;
            if event.level >= level {
                write(sequence, &event)?;
            }
        }
    }
}

/// The newest `limit` events that are loud enough, oldest first; looks further back until there are enough.
fn newest_events(engine: &Engine, limit: usize, level: Level) -> Result<Vec<(i64, Event)>, Trouble> {
    let mut window = limit;
    loop {
        let events = engine.last_events(window)?;
        let is_all = events.len() < window || window == 0;
        let mut loud: Vec<(i64, Event)> = events.into_iter().filter(|(_, event)| event.level >= level).collect();
        if is_all || loud.len() >= limit {
            return Ok(loud.split_off(loud.len().saturating_sub(limit)));
        }
        window = window.saturating_mul(8);
    }
}

/// Who reads what.
pub fn graph(context: &Context, format: GraphFormat) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let graph = engine.graph();
    let value = print::graph::value(graph);
    let errors = engine.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).count() as u64;
    if errors > 0 {
        let errors = print::number::counted(errors, "error", "errors");
        print::say_line(format_args!(
            "{}: {errors}; see: flowbench validate",
            context.terminal.err.warning("the graph may be incomplete")
        ));
    }
    context.answer(Exit::Ok, &value, || match format {
        GraphFormat::Text => print::graph::text(graph, context.terminal.out),
        GraphFormat::Dot => print::graph::dot(graph),
        GraphFormat::Mermaid => print::graph::mermaid(graph),
        GraphFormat::Json => format!("{value:#}\n"),
    })
}

/// When a dataset is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Now,
    Version(i64),
    /// As it stood after an update.
    Update(i64),
}

/// Rows of a dataset.
pub fn show(
    context: &Context,
    dataset: &str,
    limit: usize,
    filter: Option<String>,
    at: At,
    format: RowFormat,
) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let runtime = workspace::runtime(&engine)?;
    let at_version = match at {
        At::Now => None,
        At::Version(version) => Some(version),
        At::Update(update) => Some(runtime.block_on(engine.version_after_update(dataset, update))?),
    };
    let options = engine::ShowOptions { limit: (limit > 0).then_some(limit), filter, at_version };
    let Some(export) = export_format(context, format) else {
        let rows = runtime.block_on(engine.show(dataset, options))?;
        return print_rows(context, &rows);
    };
    let mut out = Pipe::default();
    let done = runtime.block_on(engine.export_dataset(dataset, options, export, &mut out));
    out.end(done.map_err(Trouble::from))
}

/// Rows of a query.
pub fn sql(context: &Context, query: &str, limit: usize, format: RowFormat) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let runtime = workspace::runtime(&engine)?;
    let limit = (limit > 0).then_some(limit);
    let Some(export) = export_format(context, format) else {
        let rows = runtime.block_on(engine.sql(query, limit))?;
        return print_rows(context, &rows);
    };
    let mut out = Pipe::default();
    let done = runtime.block_on(engine.export_sql(query, limit, export, &mut out));
    out.end(done.map_err(Trouble::from))
}

/// Stdout that remembers whether its reader went away, which the writers of formats do not.
struct Pipe {
    out: BufWriter<Stdout>,
    is_closed: bool,
}

impl Default for Pipe {
    fn default() -> Pipe {
        Pipe { out: BufWriter::new(std::io::stdout()), is_closed: false }
    }
}

impl Pipe {
    /// What the export came to: a reader that has enough is no failure.
    fn end<T>(mut self, done: Result<T, Trouble>) -> Result<Exit, Trouble> {
        let flushed = self.flush();
        match self.is_closed {
            true => Ok(Exit::Ok),
            false => done.and(flushed.map_err(Trouble::from)).map(|()| Exit::Ok),
        }
    }

    fn note<T>(&mut self, result: std::io::Result<T>) -> std::io::Result<T> {
        self.is_closed |= result.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe);
        result
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let result = self.out.write(bytes);
        self.note(result)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let result = self.out.flush();
        self.note(result)
    }
}

/// The engine's format; None where rows are drawn here.
fn export_format(context: &Context, format: RowFormat) -> Option<engine::Format> {
    match format {
        _ if context.global.json => None,
        RowFormat::Table => None,
        RowFormat::Csv => Some(engine::Format::Csv),
        RowFormat::Jsonl => Some(engine::Format::JsonLines),
    }
}

pub fn print_rows(context: &Context, rows: &pipeline::report::Rows) -> Result<Exit, Trouble> {
    let terminal = &context.terminal;
    let exit = context
        .answer(Exit::Ok, &print::rows::value(rows), || print::rows::rows(rows, terminal.out, terminal.out_width))?;
    if !context.global.json {
        print::say_line(format_args!("{}", terminal.err.dim(print::rows::count(rows))));
    }
    Ok(exit)
}

/// Everything about a dataset.
pub fn describe(context: &Context, dataset: &str) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let description = workspace::runtime(&engine)?.block_on(engine.describe(dataset))?;
    let terminal = &context.terminal;
    context.answer(Exit::Ok, &json!(description), || {
        print::describe::description(&description, engine.graph(), terminal.out, terminal.out_width)
    })
}

/// The functions of the SQL dialect.
pub fn functions(context: &Context, pattern: Option<&str>) -> Result<Exit, Trouble> {
    let functions = engine::list_functions(pattern);
    if functions.is_empty() {
        let pattern = pattern.unwrap_or_default();
        return Err(Trouble::usage(format!("no function matches `{pattern}`"), "flowbench functions lists all"));
    }
    let terminal = &context.terminal;
    context.answer(Exit::Ok, &json!(functions), || {
        print::describe::functions(&functions, terminal.out, terminal.out_width)
    })
}
