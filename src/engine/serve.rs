//! Answers a front end that stays open: commands in, answers out, until the commands end.
//!
//! One loop holds what there is to know (which revision of the files, which update, how far the event log was
//! told) and starts everything that takes time as a task of its own, so that the next command never waits.
//! Opening reads files; only [`Command`]s that say so run flows or write.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pipeline::answer::{Answer, Problem, Stage, Verdict};
use pipeline::command::Command;
use pipeline::event::{Event, Level};
use pipeline::plan::{Refusal, UpdateRequest};
use pipeline::report::UpdateReport;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinHandle};

use crate::cursor::RowCursor;
use crate::engine::Engine;
use crate::error::Error;
use crate::fix::FixedFile;
use crate::lock::WriterLock;
use crate::open::definition_paths;
use crate::state::state_stamp;
use crate::stop::Stop;
use crate::watch::{Watcher, watch};

/// How often the event log is looked at for what other processes did.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// While an update runs, rows and bytes of the tables are told at most this often.
const STATUS_PAUSE: Duration = Duration::from_millis(500);

/// Events of earlier updates that a front end gets to begin with.
const EARLIER_EVENTS: usize = 500;

/// Events told at a time.
const EVENTS_AT_ONCE: usize = 1_000;

/// Where the answers go.
#[derive(Clone)]
struct Answers(UnboundedSender<Answer>);

impl Answers {
    /// Hands one answer over. A front end that went away needs none.
    fn tell(&self, answer: Answer) {
        let _ = self.0.send(answer);
    }
}

/// Stack of each worker thread; reserved, not taken. Plans of deeply nested queries and views are walked by
/// recursion.
pub const STACK_BYTES: usize = 32 << 20;

/// The threads that a workspace's limits allow; without a workspace, as many as there are cores.
///
/// # Errors
/// The system gives no threads.
pub fn runtime(engine: Option<&Engine>) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = engine.and_then(|engine| engine.settings().limits.threads) {
        builder.worker_threads(threads.max(1));
    }
    builder.thread_stack_size(STACK_BYTES).enable_all().build()
}

/// Serves the workspace folder `root` until `commands` ends, on the calling thread and threads of its own. An update
/// that runs then is stopped at its next batch boundary and waited for.
///
/// # Errors
/// The system gives no threads.
pub fn serve(
    root: PathBuf,
    overrides: Vec<(String, String)>,
    commands: UnboundedReceiver<Command>,
    answers: UnboundedSender<Answer>,
) -> std::io::Result<()> {
    let answers = Answers(answers);
    answers.tell(Answer::Files { paths: definition_paths(&root) });
    let engine = Engine::open(&root, &overrides);
    let runtime = runtime(engine.as_ref().ok())?;
    runtime.block_on(loop_until_end(root, overrides, engine, commands, answers));
    Ok(())
}

async fn loop_until_end(
    root: PathBuf,
    overrides: Vec<(String, String)>,
    engine: Result<Engine, Error>,
    mut commands: UnboundedReceiver<Command>,
    answers: Answers,
) {
    let started = Instant::now();
    let (done, mut finished) = unbounded_channel();
    let mut serving = Serving {
        root,
        overrides,
        answers,
        done,
        engine: None,
        unreadable: None,
        watched: None,
        revision: 0,
        analysis: None,
        running: None,
        told_event: None,
        stamp: None,
        status: StatusDue::default(),
        rows: Arc::default(),
    };
    serving.take(engine, started);
    let mut look = tokio::time::interval(LOOK_PAUSE);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let changed = async {
            match &mut serving.watched {
                Some((_, changed)) => changed.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(command) => serving.command(command),
                None => break,
            },
            Some(done) = finished.recv() => serving.done(done),
            Some(_) = changed => serving.read(Instant::now()),
            _ = look.tick() => serving.look(),
        }
    }
    if let Some(running) = serving.running.take() {
        running.stop.request();
        // Whatever it was, the log has it.
        let _ = running.task.await;
    }
}

struct Serving {
    root: PathBuf,
    overrides: Vec<(String, String)>,
    answers: Answers,
    done: UnboundedSender<Done>,
    /// None as long as the workspace can't be read.
    engine: Option<Engine>,
    /// Why the files can't be read now; what was read before is only shown.
    unreadable: Option<Problem>,
    watched: Option<(Watcher, Receiver<Vec<PathBuf>>)>,
    revision: u64,
    analysis: Option<AbortHandle>,
    running: Option<Running>,
    /// The event of the log that was told last.
    told_event: Option<i64>,
    /// What tells that state.db was written.
    stamp: Option<crate::state::Stamp>,
    status: StatusDue,
    /// The dataset looked at last; the next page goes on where the last one ended.
    rows: Arc<tokio::sync::Mutex<Option<(String, u64, RowCursor)>>>,
}

/// The update that this process runs.
struct Running {
    stop: Stop,
    task: JoinHandle<()>,
}

/// When to tell the status again: one at a time, and not for every batch.
#[derive(Default)]
struct StatusDue {
    is_being_made: bool,
    is_wanted: bool,
    made: Option<Instant>,
}

/// What a task reports to the loop.
enum Done {
    Status,
    /// The running update reported something.
    Event(Event),
    Update {
        request: UpdateRequest,
        outcome: Result<UpdateReport, Error>,
    },
    /// State or tables were changed by a command.
    Changed,
    /// The sources are not what the last verdict was made from.
    Sources,
}

impl Serving {
    /// Reads folder, files and sources as they are now.
    fn validate(&mut self) {
        self.answers.tell(Answer::Files { paths: definition_paths(&self.root) });
        self.read(Instant::now());
    }

    /// Reads the files again.
    fn read(&mut self, since: Instant) {
        if let Some(analysis) = self.analysis.take() {
            analysis.abort();
        }
        let read = match &self.engine {
            Some(engine) => engine.reload(),
            None => Engine::open(&self.root, &self.overrides),
        };
        self.take(read, since);
    }

    /// Tells what the files say, and begins to analyse them.
    fn take(&mut self, read: Result<Engine, Error>, since: Instant) {
        let engine = match read {
            Ok(engine) => engine,
            Err(error) => {
                let problem = problem(&error, self.engine.as_ref());
                self.unreadable = Some(problem.clone());
                self.answers.tell(Answer::Unreadable(problem));
                self.watch_folder(Path::new(".flowbench"));
                return;
            }
        };
        self.unreadable = None;
        self.watch_folder(engine.storage());
        let verdict = self.structure(&engine, since);
        self.answers.tell(Answer::Verdict(verdict.clone()));
        self.engine = Some(engine.clone());
        self.want_status();
        self.analyse(engine, verdict, since, true);
    }

    /// Analyses in the background; a newer revision ends it.
    fn analyse(&mut self, engine: Engine, verdict: Verdict, since: Instant, looks: bool) {
        let (answers, done) = (self.answers.clone(), self.done.clone());
        let is_first = verdict.revision == 1;
        let task = tokio::spawn(async move {
            match engine.analyse().await {
                Ok(analysis) => {
                    let columns = analysis.columns.iter().map(|known| Some(known.as_ref()?.fields.clone()));
                    answers.tell(Answer::Verdict(Verdict {
                        stage: Stage::Analysis,
                        columns: Arc::new(columns.collect()),
                        diagnostics: Arc::new(analysis.diagnostics),
                        took_ms: since.elapsed().as_millis() as u64,
                        ..verdict
                    }));
                }
                Err(error) => {
                    answers.tell(Answer::Unreadable(problem(&error, Some(&engine))));
                    return;
                }
            }
            if !looks {
                return;
            }
            // The verdict came from what was known of the sources. Now they are looked at again, and listed where a
            // warning needs it; the next verdict has that too.
            let is_other = match is_first {
                true => engine.list_sources().await,
                false => engine.recheck_sources().await,
            };
            // A source that can't be looked at is told of by the analysis.
            if is_other.unwrap_or(false) {
                // The loop may have ended.
                let _ = done.send(Done::Sources);
            }
        });
        self.analysis = Some(task.abort_handle());
    }

    fn watch_folder(&mut self, storage: &Path) {
        if self.watched.is_none() {
            // A folder that can't be watched is still read on `Validate`.
            self.watched = watch(&self.root, storage).ok();
        }
    }

    fn command(&mut self, command: Command) {
        let engine = match self.engine.clone() {
            Some(engine) => engine,
            // To read again is what may help.
            None if command == Command::Validate => return self.validate(),
            None => {
                return self.answers.tell(Answer::Unreadable(Problem {
                    code: "no-workspace".to_string(),
                    message: "the workspace can't be read, so nothing can be done in it".to_string(),
                    help: Some("mend its flowbench.toml; it is read again as soon as it is saved".to_string()),
                    unconfirmed: Vec::new(),
                }));
            }
        };
        match command {
            Command::Validate => self.validate(),
            Command::PlanUpdate { request } => self.task(async move |answers, _| {
                let plan = engine.plan(&request).await.map_err(|error| problem(&error, Some(&engine)));
                answers.tell(Answer::UpdatePlan { request, plan });
            }),
            Command::StartUpdate { request } => self.start(engine, request),
            Command::CancelUpdate => {
                if let Some(running) = &self.running {
                    running.stop.request();
                }
            }
            Command::PlanReset { flows } => self.task(async move |answers, _| {
                let report = engine.reset(&flows, false).await.map_err(|error| problem(&error, Some(&engine)));
                answers.tell(Answer::Reset { flows, report });
            }),
            Command::ResetFlows { flows } => self.task(async move |answers, done| {
                let report = engine.reset(&flows, true).await.map_err(|error| problem(&error, Some(&engine)));
                answers.tell(Answer::Reset { flows, report });
                let _ = done.send(Done::Changed);
            }),
            Command::Drop { dataset } => self.task(async move |answers, done| {
                let outcome = engine.drop_dataset(&dataset, true).await.map_err(|error| problem(&error, Some(&engine)));
                answers.tell(Answer::Done { command: format!("drop {dataset} --yes"), outcome });
                let _ = done.send(Done::Changed);
            }),
            Command::Fix { path, before, after } => self.task(async move |answers, _| {
                let fixed = FixedFile { path: path.clone(), before, after, edits: 1 };
                let outcome = engine.save(&[fixed]).map_err(|error| problem(&error, Some(&engine)));
                answers.tell(Answer::Done { command: format!("fix of {path}"), outcome });
            }),
            Command::Inspect { question } => self.task(async move |answers, _| {
                let report = engine.inspect(&question).await.map(Box::new);
                let report = report.map_err(|error| problem(&error, Some(&engine)));
                answers.tell(Answer::Inspected { question, report });
            }),
            Command::Rows { dataset, from, count } => {
                let (open, revision) = (self.rows.clone(), self.revision);
                self.task(async move |answers, _| {
                    let rows = page(&engine, &open, revision, &dataset, from, count).await;
                    let rows = rows.map_err(|error| problem(&error, Some(&engine)));
                    answers.tell(Answer::Rows { dataset, from, rows });
                });
            }
        }
    }

    /// Starts what a command asks for beside the loop.
    fn task<T: Future<Output = ()> + Send + 'static>(&self, task: impl FnOnce(Answers, UnboundedSender<Done>) -> T) {
        tokio::spawn(task(self.answers.clone(), self.done.clone()));
    }

    fn start(&mut self, engine: Engine, request: UpdateRequest) {
        if let Some(problem) = self.unreadable.clone() {
            self.answers.tell(Answer::Ended { request, outcome: Err(problem) });
            return;
        }
        if self.running.is_some() {
            let problem = Problem {
                code: "update-running".to_string(),
                message: "an update is running already".to_string(),
                help: Some("wait for its end, or stop it".to_string()),
                unconfirmed: Vec::new(),
            };
            self.answers.tell(Answer::Ended { request, outcome: Err(problem) });
            return;
        }
        self.answers.tell(Answer::Started { request: request.clone() });
        let stop = Stop::new();
        let (sink, mut events) = unbounded_channel();
        let (done, stopping) = (self.done.clone(), stop.clone());
        let task = tokio::spawn(async move {
            let forward = {
                let done = done.clone();
                async move {
                    while let Some(event) = events.recv().await {
                        let _ = done.send(Done::Event(event));
                    }
                }
            };
            // On its own task, so that a panic of ours fails this update, not the program.
            let asked = request.clone();
            let run = tokio::spawn(async move { engine.run(asked, sink, stopping).await });
            let (outcome, ()) = tokio::join!(run, forward);
            let outcome = outcome.unwrap_or_else(|e| Err(Error::Internal(format!("the update ended early: {e}"))));
            let _ = done.send(Done::Update { request, outcome });
        });
        self.running = Some(Running { stop, task });
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Status => {
                self.status.is_being_made = false;
                self.status.made = Some(Instant::now());
            }
            Done::Event(event) if event.level == Level::Metrics => {
                self.answers.tell(Answer::Happened { sequence: None, event });
            }
            // The record is the log: events are told from there, each once.
            Done::Event(_) => {
                self.tell_events();
                self.want_status();
            }
            Done::Update { request, outcome } => {
                self.running = None;
                self.tell_events();
                let outcome = outcome.map_err(|error| problem(&error, self.engine.as_ref()));
                self.answers.tell(Answer::Ended { request, outcome });
                self.changed();
            }
            Done::Changed => self.changed(),
            Done::Sources => self.analyse_again(false),
        }
    }

    /// State or tables are not what they were: what was told of them is told again.
    fn changed(&mut self) {
        self.status.made = None;
        self.want_status();
        self.analyse_again(true);
    }

    /// Analyses the files as they were read last.
    fn analyse_again(&mut self, looks: bool) {
        if self.unreadable.is_some() {
            return;
        }
        let Some(engine) = self.engine.clone() else { return };
        if let Some(analysis) = self.analysis.take() {
            analysis.abort();
        }
        let since = Instant::now();
        let verdict = self.structure(&engine, since);
        self.analyse(engine, verdict, since, looks);
    }

    /// A new verdict, of what the texts alone say.
    fn structure(&mut self, engine: &Engine, since: Instant) -> Verdict {
        self.revision += 1;
        Verdict {
            revision: self.revision,
            stage: Stage::Structure,
            pipeline: engine.pipeline(),
            diagnostics: Arc::new(engine.diagnostics().to_vec()),
            columns: Arc::new(vec![None; engine.graph().datasets.len()]),
            took_ms: since.elapsed().as_millis() as u64,
        }
    }

    /// Looks whether another process wrote state.db, or a status is due.
    fn look(&mut self) {
        let Some(engine) = &self.engine else {
            // Without a watcher there is nothing else that tells when the workspace appears.
            if self.watched.is_none() {
                self.read(Instant::now());
            }
            return;
        };
        let stamp = state_stamp(engine.storage());
        if stamp != self.stamp {
            let is_gone = stamp.is_none() && self.running.is_none();
            self.stamp = stamp;
            if is_gone {
                // The storage folder was removed: open tables and what is remembered of them went with it.
                self.engine = None;
                self.told_event = None;
                self.read(Instant::now());
                return;
            }
            self.tell_events();
            self.want_status();
        } else if self.running.is_none() && WriterLock::is_held(engine.storage()) {
            self.want_status();
        }
        if self.status.is_wanted {
            self.want_status();
        }
    }

    fn tell_events(&mut self) {
        let Some(engine) = &self.engine else { return };
        let events = match self.told_event {
            Some(told) => engine.events(told, EVENTS_AT_ONCE),
            None => engine.last_events(EARLIER_EVENTS),
        };
        // A log that can't be read now is read at the next look.
        let Ok(events) = events else { return };
        for (sequence, event) in events {
            self.told_event = Some(sequence);
            self.answers.tell(Answer::Happened { sequence: Some(sequence), event });
        }
    }

    fn want_status(&mut self) {
        let is_early = self.status.made.is_some_and(|made| made.elapsed() < STATUS_PAUSE);
        if self.status.is_being_made || is_early {
            self.status.is_wanted = true;
            return;
        }
        let Some(engine) = self.engine.clone() else { return };
        self.status.is_wanted = false;
        self.status.is_being_made = true;
        self.task(async move |answers, done| {
            match engine.status().await {
                Ok(status) => answers.tell(Answer::Status(Box::new(status))),
                Err(error) => answers.tell(Answer::Unreadable(problem(&error, Some(&engine)))),
            };
            let _ = done.send(Done::Status);
        });
    }
}

/// A page of rows; goes on in the open query if that stands at `from`.
async fn page(
    engine: &Engine,
    open: &tokio::sync::Mutex<Option<(String, u64, RowCursor)>>,
    revision: u64,
    dataset: &str,
    from: usize,
    count: usize,
) -> Result<pipeline::report::Rows, Error> {
    let mut open = open.lock().await;
    let fits = |(name, of, cursor): &(String, u64, RowCursor)| {
        name == dataset && *of == revision && cursor.position() == from && from > 0
    };
    let (name, of, mut cursor) = match open.take().filter(fits) {
        Some(cursor) => cursor,
        None => {
            let mut cursor = engine.open_rows(dataset).await?;
            cursor.skip(from).await?;
            (dataset.to_string(), revision, cursor)
        }
    };
    let rows = cursor.next(count).await?;
    *open = Some((name, of, cursor));
    Ok(rows)
}

/// An error as front ends show it.
fn problem(error: &Error, engine: Option<&Engine>) -> Problem {
    let unconfirmed = match error {
        Error::Refused { refusal: Refusal::Unconfirmed { notices } } => notices.clone(),
        _ => Vec::new(),
    };
    let message = match (error, engine) {
        // The diagnostics themselves are in the verdict.
        (Error::Invalid { diagnostics }, Some(engine)) => {
            let errors: Vec<_> = diagnostics.iter().filter(|found| found.is_error()).collect();
            match errors.first() {
                Some(first) => {
                    let place = first.span.map(|span| pipeline::diagnostic::place(&engine.workspace().files, span));
                    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
                    format!("{error}; {place}{}", first.message)
                }
                None => error.to_string(),
            }
        }
        _ => error.to_string(),
    };
    Problem { code: error.code().to_string(), message, help: error.help(), unconfirmed }
}
