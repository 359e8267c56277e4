//! The terminal: raw mode and its end whatever happens, the loop of inputs and drawings, the user's editor.
//!
//! The only part that touches the world. It waits for keys, answers and signals together, and draws when
//! something changed: at once after a key, unless it just did, at most every `FRAME` after answers, and never while
//! nothing happens.

use std::io::{self, Stdout, Write, stdout};
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::{Duration, Instant};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, EventStream, KeyCode,
    KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use futures::StreamExt;
use pipeline::answer::Answer;
use pipeline::command::Command;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm;
use ratatui::layout::Rect;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::app::{App, Effect, Input, Options};
use crate::key::{Code, Key, Mouse, MouseKind};
use crate::screen;

/// The pause between drawings that keys cause: keys that come faster, of a paste or a held key, share one.
const KEY_FRAME: Duration = Duration::from_millis(8);

/// The pause between drawings that answers cause.
const FRAME: Duration = Duration::from_millis(33);

/// How often times and rates are drawn again while an update runs.
const TICK: Duration = Duration::from_millis(250);

/// Answers taken in before the next drawing, so that keys never wait long.
const ANSWERS_AT_ONCE: usize = 512;

/// What the loop is connected to.
pub struct Wiring<Ask, Now> {
    /// Where the engine's answers come from.
    pub answers: UnboundedReceiver<Answer>,
    /// Hands a command to the engine; must not block.
    pub ask: Ask,
    /// Microseconds since 1970 UTC.
    pub now_us: Now,
    /// The workspace folder, for the editor.
    pub root: PathBuf,
    /// Whether the mouse is listened to.
    pub has_mouse: bool,
}

/// Runs the workbench until it is quit or the process is told to end.
///
/// # Errors
/// The terminal can't be written to or read from. It is restored in any case.
pub async fn run<Ask, Now>(options: Options, mut wiring: Wiring<Ask, Now>) -> io::Result<()>
where
    Ask: FnMut(Command),
    Now: Fn() -> i64,
{
    restore_before_panics();
    let mut screen = Screen::enter(wiring.has_mouse)?;
    let mut app = App::new(options);
    let size = screen.terminal.size()?;
    app.update((wiring.now_us)(), Input::Resize(size.width, size.height));
    let mut events = EventStream::new();
    let mut ends = Ends::new()?;
    let mut drawn = Instant::now();
    screen.draw(&mut app)?;
    // When the next drawing is due; None: nothing changed.
    let mut due: Option<Instant> = None;
    loop {
        let tick = app.is_moving().then(|| drawn + TICK);
        let wake = [due, tick].into_iter().flatten().min();
        let mut inputs: Vec<Input> = Vec::new();
        let mut is_key = false;
        tokio::select! {
            biased;
            () = ends.next() => return Ok(()),
            event = events.next() => match event {
                Some(event) => {
                    inputs.extend(input(event?));
                    // Everything that was typed meanwhile, so that a held key doesn't lag behind.
                    while let Poll::Ready(Some(event)) = futures::poll!(events.next()) {
                        inputs.extend(input(event?));
                    }
                    is_key = true;
                }
                None => return Ok(()),
            },
            answer = wiring.answers.recv() => match answer {
                Some(answer) => {
                    inputs.push(Input::Answer(Box::new(answer)));
                    while inputs.len() < ANSWERS_AT_ONCE && let Ok(answer) = wiring.answers.try_recv() {
                        inputs.push(Input::Answer(Box::new(answer)));
                    }
                }
                None => return Err(io::Error::other("the engine's thread ended")),
            },
            () = sleep_until(wake) => inputs.push(Input::Tick),
        }
        let is_tick = matches!(inputs[..], [Input::Tick]);
        // What was on its way when the size changed may have been drawn anywhere.
        if inputs.iter().any(|input| matches!(input, Input::Resize(..))) {
            screen.draw_all_again()?;
        }
        let mut effects = Vec::new();
        for input in inputs {
            panic_for_a_test(&input);
            effects.extend(app.update((wiring.now_us)(), input));
        }
        for effect in effects {
            match effect {
                Effect::Ask(command) => (wiring.ask)(command),
                Effect::Repaint => screen.draw_all_again()?,
                Effect::Quit => return Ok(()),
                Effect::Edit { path, line, column } => {
                    // The stream would take the editor's keys.
                    drop(events);
                    let outcome = screen.edit(&wiring.root.join(&path), line, column).await?;
                    ends.forget_interrupts().await;
                    events = EventStream::new();
                    let size = screen.terminal.size()?;
                    app.update((wiring.now_us)(), Input::Resize(size.width, size.height));
                    if let Err(why) = outcome {
                        app.say(crate::theme::Role::Error, why);
                    }
                }
            }
        }
        let now = Instant::now();
        let is_due = due.is_some_and(|due| due <= now);
        let frame = if is_key { KEY_FRAME } else { FRAME };
        if is_tick || is_due || now >= drawn + frame {
            screen.draw(&mut app)?;
            // What drawing found out (which rows are seen) may lead to a question.
            for effect in app.update((wiring.now_us)(), Input::Tick) {
                if let Effect::Ask(command) = effect {
                    (wiring.ask)(command);
                }
            }
            drawn = Instant::now();
            due = None;
        } else {
            due = Some(due.map_or(drawn + frame, |due| due.min(drawn + frame)));
        }
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake.into()).await,
        None => std::future::pending().await,
    }
}

/// The terminal while the workbench has it.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    has_mouse: bool,
}

impl Screen {
    fn enter(has_mouse: bool) -> io::Result<Screen> {
        take_over(has_mouse)?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()));
        let mut screen = Screen { terminal: terminal.inspect_err(|_| give_back())?, has_mouse };
        screen.draw_all_again()?;
        Ok(screen)
    }

    /// Empties the terminal; the next drawing writes every cell.
    fn draw_all_again(&mut self) -> io::Result<()> {
        // `Terminal::clear` would ask the terminal for its cursor: a round trip, and an error where nobody answers.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect { x: 0, y: 0, width: size.width, height: size.height })
    }

    fn draw(&mut self, app: &mut App) -> io::Result<()> {
        queue!(stdout(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            let area = frame.area();
            screen::draw(app, area, frame.buffer_mut());
        })?;
        execute!(stdout(), EndSynchronizedUpdate)
    }

    /// Gives the terminal to the user's editor, and takes it back. Err: why there was no editor.
    async fn edit(&mut self, path: &Path, line: usize, column: usize) -> io::Result<Result<(), String>> {
        give_back();
        let mut command = editor(path, line, column);
        let program = command.get_program().to_string_lossy().into_owned();
        // Signals are heard meanwhile, and answered when the editor has ended: until then the terminal is its own.
        let ended = tokio::task::spawn_blocking(move || command.status()).await.map_err(io::Error::other)?;
        let outcome = match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("the editor ended with {status}")),
            Err(error) => Err(format!("cannot start `{program}`: {error}; set VISUAL or EDITOR")),
        };
        take_over(self.has_mouse)?;
        self.draw_all_again()?;
        Ok(outcome)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take_over(has_mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    let mut out = stdout();
    let done = execute!(out, EnterAlternateScreen, EnableBracketedPaste, SetTitle("flowbench"));
    let done = done.and_then(|()| if has_mouse { execute!(out, EnableMouseCapture) } else { Ok(()) });
    if done.is_err() {
        give_back();
    }
    done
}

/// Leaves the terminal as it was found. Every step is tried: a terminal that is gone has nothing to restore.
fn give_back() {
    let mut out = stdout();
    let _ = execute!(out, EndSynchronizedUpdate, DisableMouseCapture, DisableBracketedPaste);
    let _ = execute!(out, LeaveAlternateScreen, crossterm::cursor::Show);
    let _ = disable_raw_mode();
    let _ = out.flush();
}

/// A panic's words must not be lost in the alternate screen.
fn restore_before_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // A panic of a flow's task fails that flow; the screen goes on.
        if std::thread::current().name() == Some("main") {
            give_back();
            before(panic);
        }
    }));
}

/// The signals that end the process.
#[cfg(unix)]
struct Ends {
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Ends {
    fn new() -> io::Result<Ends> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Ends {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// A Ctrl-C typed in the editor goes to every process of the terminal and was meant for the editor alone.
    async fn forget_interrupts(&mut self) {
        // Lets the runtime see what has arrived.
        tokio::task::yield_now().await;
        while futures::poll!(std::pin::pin!(self.interrupt.recv())).is_ready() {}
    }
}

#[cfg(not(unix))]
struct Ends;

#[cfg(not(unix))]
impl Ends {
    fn new() -> io::Result<Ends> {
        Ok(Ends)
    }

    async fn next(&mut self) {
        std::future::pending().await
    }

    async fn forget_interrupts(&mut self) {}
}

/// Debug builds: panics at the key that `FLOWBENCH_PANIC_AT_KEY` names, so that a test sees what a bug leaves behind.
fn panic_for_a_test(input: &Input) {
    if cfg!(debug_assertions)
        && let Input::Key(key) = input
        && std::env::var("FLOWBENCH_PANIC_AT_KEY").is_ok_and(|name| name == key.to_string())
    {
        panic!("FLOWBENCH_PANIC_AT_KEY is {key}");
    }
}

/// The user's editor at a place, in the words that it understands.
fn editor(path: &Path, line: usize, column: usize) -> std::process::Command {
    let wanted = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| std::env::var(name).ok());
    let wanted = wanted.map(|value| value.trim().to_string()).find(|value| !value.is_empty());
    let words: Vec<String> = wanted.as_deref().unwrap_or("vi").split_whitespace().map(str::to_string).collect();
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]);
    let program = Path::new(&words[0]).file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let shown = path.display();
    match program.as_str() {
        "vi" | "vim" | "nvim" | "view" => {
            command.arg(format!("+call cursor({line},{column})")).arg(path);
        }
        "nano" => {
            command.arg(format!("+{line},{column}")).arg(path);
        }
        "hx" | "helix" | "zed" | "subl" | "micro" => {
            command.arg(format!("{shown}:{line}:{column}"));
        }
        "code" | "codium" | "cursor" => {
            command.arg("--goto").arg(format!("{shown}:{line}:{column}"));
        }
        "emacs" | "emacsclient" | "kak" => {
            command.arg(format!("+{line}:{column}")).arg(path);
        }
        // What it does with a line's number is unknown; the path it takes for sure.
        _ => {
            command.arg(path);
        }
    }
    command
}

/// A terminal's event as an input; None if it means nothing here.
fn input(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key_of(key).map(Input::Key),
        Event::Mouse(mouse) => {
            let kind = match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => MouseKind::Click,
                MouseEventKind::ScrollUp => MouseKind::WheelUp,
                MouseEventKind::ScrollDown => MouseKind::WheelDown,
                _ => return None,
            };
            Some(Input::Mouse(Mouse { kind, column: mouse.column, row: mouse.row }))
        }
        Event::Paste(text) => Some(Input::Paste(text)),
        Event::Resize(width, height) => Some(Input::Resize(width, height)),
        Event::Key(_) | Event::FocusGained | Event::FocusLost => None,
    }
}

fn key_of(key: KeyEvent) -> Option<Key> {
    let code = match key.code {
        KeyCode::Char(c) => Code::Char(c),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => Code::BackTab,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::F(n) => Code::F(n),
        _ => return None,
    };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    // Some terminals send Ctrl and a letter as the capital.
    let code = match code {
        Code::Char(c) if ctrl => Code::Char(c.to_ascii_lowercase()),
        code => code,
    };
    Some(Key { code, ctrl, alt: key.modifiers.contains(KeyModifiers::ALT) })
}
