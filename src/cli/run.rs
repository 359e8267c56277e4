//! `flowbench run`: an update, its progress, its end; or only its plan.

use engine::{Engine, Stop};
use pipeline::diagnostic::Diagnostic;
use pipeline::event::{Event, State};
use pipeline::plan::{Notice, UpdateRequest};
use pipeline::report::UpdateReport;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::args::Selection;
use super::exit::{Exit, Trouble};
use super::print::progress::Progress;
use super::{Context, log, print, validate, workspace};

/// A refusal that no yes can lift: the request itself has to say more.
const NEEDS_ANOTHER_REQUEST: &str = "streams-read-the-table";

/// Runs an update, or shows what it would do.
pub fn run(context: &Context, selection: &Selection, dry_run: bool, plan: bool, yes: bool) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let runtime = workspace::runtime(&engine)?;
    if dry_run || plan {
        return runtime.block_on(show_plan(context, &engine, selection, plan));
    }
    let _log = log::start(engine.storage());
    let stop = Stop::new();
    let (stopping, mut stopped) = unbounded_channel();
    runtime.spawn(stop_on_signals(stop.clone(), stopping));
    let mut done = runtime.block_on(update(context, &engine, selection.request(yes), &stop, &mut stopped));
    if let Err(Trouble::Unconfirmed { notices }) = &done
        && !yes
        && ask(context, notices) == Some(true)
    {
        done = runtime.block_on(update(context, &engine, selection.request(true), &stop, &mut stopped));
    }
    let report = done?;
    print::say(print::summary::update(&report, context.terminal.err, context.terminal.err_width));
    let exit = match report.state {
        State::Completed => Exit::Ok,
        State::Canceled => Exit::Canceled,
        State::Failed
        | State::Queued
        | State::Planning
        | State::Running
        | State::Skipped
        | State::Excluded
        | State::Idle => Exit::Failed,
    };
    context.answer(exit, &json!(report), String::new)
}

/// Asks whether to go on; None if that is no question or nobody is there to answer.
fn ask(context: &Context, notices: &[Notice]) -> Option<bool> {
    // Without a question the notices come with the refusal.
    if !context.terminal.can_ask || notices.iter().any(|notice| notice.code == NEEDS_ANOTHER_REQUEST) {
        return None;
    }
    for notice in notices {
        print::say(print::summary::notice(notice, context.terminal.err));
    }
    context.terminal.ask("Go ahead anyway?")
}

async fn show_plan(
    context: &Context,
    engine: &Engine,
    selection: &Selection,
    is_plan_wanted: bool,
) -> Result<Exit, Trouble> {
    let analysis = engine.analyse().await?;
    if analysis.diagnostics.iter().any(|diagnostic| diagnostic.is_error()) {
        let files = engine.workspace().files.clone();
        return Err(Trouble::Invalid { files, diagnostics: analysis.diagnostics });
    }
    // Nothing is written, so there is nothing to say yes to; what a run would ask stands among the notices.
    let plan = match engine.plan(&selection.request(true)).await {
        Ok(plan) => plan,
        Err(error) => return Err(Trouble::from_engine(error, &engine.workspace().files)),
    };
    if !is_plan_wanted {
        return validate::verdict(context, engine, &analysis.diagnostics, context.global.json);
    }
    let terminal = &context.terminal;
    // What the plan says too is said once.
    let is_notice = |found: &Diagnostic| plan.notices.iter().any(|notice| notice.code == found.code);
    let found: Vec<Diagnostic> = analysis.diagnostics.into_iter().filter(|found| !is_notice(found)).collect();
    print::say(print::diagnostics::render(&engine.workspace().files, &found, terminal.err, terminal.err_width));
    context.answer(Exit::Ok, &json!(plan), || print::plan::plan(&plan, terminal.out, terminal.out_width))
}

/// Runs one update and shows its events as they come.
async fn update(
    context: &Context,
    engine: &Engine,
    request: UpdateRequest,
    stop: &Stop,
    stopped: &mut UnboundedReceiver<()>,
) -> Result<UpdateReport, Trouble> {
    let (events, mut received) = unbounded_channel::<Event>();
    let mut progress = Progress::new(&context.terminal, engine.graph());
    let is_json = context.global.json;
    let show = |progress: &mut Progress, event: Event| {
        if is_json {
            // A reader that went away does not end the update.
            let _ = print::json::write_event(None, &event);
        }
        progress.event(&event);
    };
    let running = engine.run(request, events, stop.clone());
    tokio::pin!(running);
    let done = loop {
        tokio::select! {
            biased;
            Some(()) = stopped.recv() => progress.print("stopping at the batch boundary… press Ctrl-C again to abort"),
            Some(event) = received.recv() => show(&mut progress, event),
            done = &mut running => break done,
        }
    };
    while let Ok(event) = received.try_recv() {
        show(&mut progress, event);
    }
    progress.finish();
    done.map_err(|error| Trouble::from_engine(error, &engine.workspace().files))
}

/// Ctrl-C and SIGTERM ask for a stop, and say so; the second one ends the process, which is safe at any moment.
async fn stop_on_signals(stop: Stop, stopping: UnboundedSender<()>) {
    let Ok(mut signals) = Signals::new() else { return };
    loop {
        signals.next().await;
        if stop.is_requested() {
            abort();
        }
        stop.request();
        if stopping.send(()).is_err() {
            return;
        }
    }
}

/// Ends the process at once.
pub(super) fn abort() -> ! {
    print::say_line(format_args!("aborted; the next run goes on from the last batch that was committed"));
    std::process::exit(Exit::Canceled.code().into())
}

/// The signals that end a program, listened to from its creation on.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
pub(super) struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals(tokio::signal::windows::ctrl_c()?))
    }

    pub(super) async fn next(&mut self) {
        self.0.recv().await;
    }
}
