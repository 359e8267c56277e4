//! A terminal for the program to run in: a pty whose output a terminal emulator takes in, whose keys a test types.
//!
//! Nothing here sleeps: a test waits until what it wants to see is on the screen, and fails with the screen after
//! [`PATIENCE`]. The screen is only looked at between two drawings, never in the middle of one.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use tui::key::{Code, Key};

/// How long a test waits for anything; the machine may be busy with other tests and builds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Notes the terminal's settings before and after the program, and its process id and exit code. The shell stays,
/// since a terminal whose session ended has its settings reset by the kernel.
const SHELL: &str = r#"
stty -g > "$NOTES/before"
sh -c 'echo $$ > "$NOTES/pid"; exec "$@"' sh "$@"
echo $? > "$NOTES/code"
stty -g > "$NOTES/after"
echo 'the shell is back'
read -r end
"#;

/// What to start.
pub struct Start<'a> {
    pub columns: u16,
    pub rows: u16,
    pub program: &'a Path,
    pub arguments: Vec<&'a str>,
    pub folder: &'a Path,
    /// Besides a plain environment; an empty value unsets.
    pub environment: Vec<(&'a str, &'a str)>,
}

/// A terminal in which a program runs.
pub struct Terminal {
    seen: Arc<Seen>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    master: Box<dyn MasterPty + Send>,
    /// Kept open, so that the end of the program isn't the end of the terminal.
    _slave: Box<dyn SlavePty + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Where the shell around the program writes; None: there is no shell.
    notes: Option<tempfile::TempDir>,
}

struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser<Queries>,
    /// Everything that was written to the terminal.
    bytes: Vec<u8>,
    /// When the newest bytes came.
    last: Instant,
}

/// What the program asks the terminal, and whether it is in the middle of a drawing.
#[derive(Default)]
struct Queries {
    replies: Vec<u8>,
    is_drawing: bool,
    /// Questions asked so far: each costs a round trip.
    count: usize,
}

impl vt100::Callbacks for Queries {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        c: char,
    ) {
        match (first, params, c) {
            (Some(b'?'), [[2026]], 'h' | 'l') => self.is_drawing = c == 'h',
            (None, [[6]], 'n') => {
                let (row, column) = screen.cursor_position();
                self.replies.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
                self.count += 1;
            }
            (None, _, 'c') => {
                self.replies.extend(b"\x1b[?62;22c");
                self.count += 1;
            }
            _ => {}
        }
    }
}

impl Terminal {
    /// Starts the program as a person does, from a shell.
    pub fn start(start: &Start) -> Terminal {
        let notes = tempfile::tempdir().expect("a temporary folder");
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-c", SHELL, "sh"]);
        command.arg(start.program);
        command.args(&start.arguments);
        Terminal::spawn(start, command, Some(notes))
    }

    /// Starts the program alone: nothing but it costs time, and its end is the terminal's.
    pub fn start_bare(start: &Start) -> Terminal {
        let mut command = CommandBuilder::new(start.program);
        command.args(&start.arguments);
        Terminal::spawn(start, command, None)
    }

    fn spawn(start: &Start, mut command: CommandBuilder, notes: Option<tempfile::TempDir>) -> Terminal {
        let pty = native_pty_system().openpty(size(start.columns, start.rows)).expect("a pty opens");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env_clear();
        for (name, value) in [("PATH", path.as_str()), ("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("TZ", "UTC")] {
            command.env(name, value);
        }
        if let Some(notes) = &notes {
            command.env("NOTES", notes.path());
        }
        for (name, value) in &start.environment {
            match value.is_empty() {
                true => command.env_remove(name),
                false => command.env(name, value),
            }
        }
        command.cwd(start.folder);
        let [rows, columns] = [start.rows, start.columns].map(|n| NonZeroU16::new(n).expect("a size"));
        let state = State {
            parser: vt100::Parser::new_with_callbacks(rows, columns, 0, Queries::default()),
            bytes: Vec::new(),
            last: Instant::now(),
        };
        let seen = Arc::new(Seen { state: Mutex::new(state), changed: Condvar::new() });
        let writer = Arc::new(Mutex::new(pty.master.take_writer().expect("the pty is written to")));
        let reader = pty.master.try_clone_reader().expect("the pty is read");
        let (watched, answering) = (seen.clone(), writer.clone());
        std::thread::spawn(move || watched.read(reader, &answering));
        let child = pty.slave.spawn_command(command).expect("the program starts");
        Terminal { seen, writer, master: pty.master, _slave: pty.slave, child, notes }
    }

    /// Waits until the text on the screen is so; returns when the last bytes that it needed came.
    #[track_caller]
    pub fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> Instant {
        self.wait_screen(what, |screen| is_so(&text(screen)))
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub fn wait_for(&self, wanted: &str) -> Instant {
        self.wait(&format!("`{wanted}`"), |text| text.contains(wanted))
    }

    /// Waits until a text is no longer on the screen.
    #[track_caller]
    pub fn wait_gone(&self, unwanted: &str) -> Instant {
        self.wait(&format!("`{unwanted}` to go"), |text| !text.contains(unwanted))
    }

    /// Waits until the cells of the screen are so.
    #[track_caller]
    pub fn wait_screen(&self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) -> Instant {
        let started = Instant::now();
        let mut state = self.seen.lock();
        loop {
            if !state.parser.callbacks().is_drawing && is_so(state.parser.screen()) {
                return state.last;
            }
            let left = PATIENCE.saturating_sub(started.elapsed());
            if left.is_zero() {
                let shown = text(state.parser.screen());
                drop(state);
                panic!("waited in vain for {what}; the screen:\n{shown}\n");
            }
            state = self.seen.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The text on the screen, a line a row.
    pub fn text(&self) -> String {
        text(self.seen.lock().parser.screen())
    }

    /// Looks at the screen.
    pub fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.seen.lock().parser.screen())
    }

    /// Everything that was written to the terminal so far.
    pub fn output(&self) -> Vec<u8> {
        self.seen.lock().bytes.clone()
    }

    /// Bytes written so far, and when the newest came.
    pub fn written(&self) -> (usize, Instant) {
        let state = self.seen.lock();
        (state.bytes.len(), state.last)
    }

    /// Questions that the program asked the terminal.
    pub fn questions(&self) -> usize {
        self.seen.lock().parser.callbacks().count
    }

    /// Where a text stands: column and row from 0.
    #[track_caller]
    pub fn place(&self, wanted: &str) -> (u16, u16) {
        let shown = self.text();
        for (row, line) in shown.lines().enumerate() {
            if let Some(at) = line.find(wanted) {
                return (line[..at].chars().count() as u16, row as u16);
            }
        }
        panic!("no `{wanted}` on the screen:\n{shown}\n");
    }

    /// Types keys by their names, parted by blanks: `r r`, `Ctrl-c`, `Space`.
    #[track_caller]
    pub fn keys(&self, names: &str) {
        let names: Vec<&str> = names.split(' ').collect();
        // A terminal sends Esc and a key as it sends Alt and the key; a person is slower.
        let ends = names.iter().position(|name| *name == "Esc").is_none_or(|at| at + 1 == names.len());
        assert!(ends, "wait for what Esc does before the next key");
        for name in names {
            self.send(bytes_of(Key::parse(name).unwrap_or_else(|| panic!("`{name}` is no key"))));
        }
    }

    /// Types a text.
    pub fn type_text(&self, text: &str) {
        self.send(text);
    }

    /// Pastes a text, as a terminal with bracketed paste does.
    pub fn paste(&self, text: &str) {
        self.send(format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Clicks a cell.
    pub fn click(&self, (column, row): (u16, u16)) {
        let (column, row) = (column + 1, row + 1);
        self.send(format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m"));
    }

    /// Turns the wheel by one notch over a cell.
    pub fn wheel(&self, is_down: bool, (column, row): (u16, u16)) {
        self.send(format!("\x1b[<{};{};{}M", if is_down { 65 } else { 64 }, column + 1, row + 1));
    }

    /// Sends bytes as they are.
    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A program that has ended takes nothing; what it left on the screen tells.
        let _ = writer.write_all(bytes.as_ref()).and_then(|()| writer.flush());
    }

    /// Changes the terminal's size.
    pub fn resize(&self, columns: u16, rows: u16) {
        let mut state = self.seen.lock();
        let [of_rows, of_columns] = [rows, columns].map(|n| NonZeroU16::new(n).expect("a size"));
        state.parser.set_size(of_rows, of_columns);
        drop(state);
        self.master.resize(size(columns, rows)).expect("the pty is resized");
    }

    /// The program's process id.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        match &self.notes {
            Some(_) => self.note("pid").parse().expect("a process id"),
            None => self.child.process_id().expect("the program runs"),
        }
    }

    /// Sends a signal to the program: `TERM`, `KILL`.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(sent.expect("kill starts").success(), "SIG{name} was not sent");
    }

    /// Waits for the program's end; returns its exit code, 128 and more for a signal.
    #[track_caller]
    pub fn ended(&self) -> i32 {
        self.note("code").parse().expect("an exit code")
    }

    /// Waits for the program's end and checks that the terminal is as it was. Returns the exit code.
    #[track_caller]
    pub fn restored(&self) -> i32 {
        let code = self.ended();
        self.wait_for("the shell is back");
        assert_eq!(self.note("after"), self.note("before"), "the terminal's settings");
        self.look(|screen| {
            assert!(!screen.alternate_screen(), "the alternate screen is left");
            assert!(!screen.hide_cursor(), "the cursor is shown");
            assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "the mouse is given back");
            assert!(!screen.bracketed_paste(), "paste is as it was");
        });
        code
    }

    /// The terminal's settings before the program, as `stty -g` prints them.
    #[track_caller]
    pub fn settings_before(&self) -> String {
        self.note("before")
    }

    /// Ends the session as a closed window does: the terminal hangs up.
    pub fn close(&mut self) {
        self.child.kill().expect("the shell is killed");
        self.child.wait().expect("the shell ends");
    }

    /// What the shell wrote down, once it is there.
    #[track_caller]
    fn note(&self, name: &str) -> String {
        let path: PathBuf = self.notes.as_ref().expect("the program was started from a shell").path().join(name);
        let started = Instant::now();
        loop {
            match std::fs::read_to_string(&path) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_string(),
                _ if started.elapsed() > PATIENCE => {
                    panic!("no `{name}` after the program; the screen:\n{}\n", self.text())
                }
                // A file has nobody who tells of it.
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let pid = match &self.notes {
            Some(notes) => {
                std::fs::read_to_string(notes.path().join("pid")).ok().and_then(|pid| pid.trim().parse().ok())
            }
            None => self.child.process_id(),
        };
        let has_ended = self.notes.as_ref().is_some_and(|notes| notes.path().join("code").exists());
        if let Some(pid) = pid.filter(|_| !has_ended) {
            let pid: u32 = pid;
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(std::process::Stdio::null()).status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the program writes until the terminal is gone.
    fn read(&self, mut reader: Box<dyn Read + Send>, writer: &Mutex<Box<dyn Write + Send>>) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            let mut state = self.lock();
            state.last = Instant::now();
            state.bytes.extend(&buffer[..n]);
            state.parser.process(&buffer[..n]);
            let replies = std::mem::take(&mut state.parser.callbacks_mut().replies);
            drop(state);
            if !replies.is_empty() {
                let _ = writer.lock().unwrap_or_else(PoisonError::into_inner).write_all(&replies);
            }
            self.changed.notify_all();
        }
    }
}

/// The text of a screen, a line a row, blanks at the ends cut.
pub fn text(screen: &vt100::Screen) -> String {
    let rows: Vec<String> = screen.rows(0, u16::MAX).map(|row| row.trim_end().to_string()).collect();
    rows.join("\n")
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

/// What a terminal sends for a key.
fn bytes_of(key: Key) -> Vec<u8> {
    let mut bytes = Vec::new();
    if key.alt {
        bytes.push(0x1b);
    }
    match key.code {
        Code::Char(c) if key.ctrl => bytes.push(c.to_ascii_lowercase() as u8 & 0x1f),
        Code::Char(c) => bytes.extend(c.to_string().bytes()),
        Code::Enter => bytes.push(b'\r'),
        Code::Esc => bytes.push(0x1b),
        Code::Tab => bytes.push(b'\t'),
        Code::BackTab => bytes.extend(b"\x1b[Z"),
        Code::Backspace => bytes.push(0x7f),
        Code::Delete => bytes.extend(b"\x1b[3~"),
        Code::Up => bytes.extend(b"\x1b[A"),
        Code::Down => bytes.extend(b"\x1b[B"),
        Code::Right => bytes.extend(b"\x1b[C"),
        Code::Left => bytes.extend(b"\x1b[D"),
        Code::Home => bytes.extend(b"\x1b[H"),
        Code::End => bytes.extend(b"\x1b[F"),
        Code::PageUp => bytes.extend(b"\x1b[5~"),
        Code::PageDown => bytes.extend(b"\x1b[6~"),
        Code::F(n) => bytes.extend([0x1b, b'O', b'O' + n]),
    }
    bytes
}
