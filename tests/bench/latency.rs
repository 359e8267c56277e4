//! How long a person at the workbench waits: from a key to its cell, from a save to its diagnostic, from the start to
//! the first frame and to the graph; and what it costs while nothing happens.
//!
//! ```text
//! cargo bench --bench latency
//! cargo bench --bench latency -- --keys 500 --others 50
//! ```
//! | option | meaning |
//! |---|---|
//! | `--keys N` | key presses of each kind; default 200 |
//! | `--others N` | saves and starts; default 20 |
//! | `--rows N` | events of the update that keeps all cores busy; default 300,000 |
//!
//! The program runs in a pty; a time ends when the bytes that complete the expected screen have been read, so it
//! has the pty and the emulator in it. A missed aim is only printed: machines differ and are busy, which is why the
//! load is printed too.

mod draw;
#[expect(dead_code, reason = "the backfill benchmark uses the rest")]
mod generate;
mod kept;
mod large_workspace;
#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../terminal/pty.rs"]
mod pty;

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pty::{Start, Terminal};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SIZE: (u16, u16) = (120, 36);
const FILES_OF_LARGE: usize = 100;
/// Tables that the busy update fills, each from all events.
const BUSY_TABLES: usize = 60;
const IDLE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("not measured: run by `cargo bench --bench latency`");
        return ExitCode::SUCCESS;
    }
    match measure(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &[String]) -> Result<()> {
    let number = |name: &str, default: u64| -> Result<u64> {
        match arguments.iter().position(|argument| argument == name) {
            Some(at) => Ok(arguments.get(at + 1).ok_or_else(|| format!("`{name}` lacks its value"))?.parse()?),
            None => Ok(default),
        }
    };
    let (keys, others) = (number("--keys", 200)? as usize, number("--others", 20)? as usize);
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&bench)?;
    let registration = registration(&bench)?;
    let large = fresh(&bench, "latency_large")?;
    large_workspace::write(&large, FILES_OF_LARGE)?;
    let flows = FILES_OF_LARGE * large_workspace::FLOWS_A_FILE;
    println!("load {}; {keys} keys, {others} saves and starts; milliseconds", load());
    println!("{:<52} {:>7} {:>7} {:>7}", "", "p50", "p95", "most");

    let large_name = format!("{flows} flows");
    for (name, root, file) in [
        ("registration", &registration, "transformations/registration.sql"),
        (&large_name, &large, "transformations/area_050.sql"),
    ] {
        starts(name, root, others);
        let terminal = open(root);
        wait_checked(&terminal);
        idle_keys(name, &terminal, keys);
        saves(name, root, file, &terminal, others)?;
        idle(name, &terminal);
    }
    busy_keys(&busy(&bench, number("--rows", 300_000)?)?, keys);
    println!("load {}", load());
    Ok(())
}

/// A copy of the example in a folder of its own, after its first update.
fn registration(bench: &Path) -> Result<PathBuf> {
    let root = fresh(bench, "latency_registration")?;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = repository.join("workspaces/registration");
    fs::create_dir_all(root.join("transformations"))?;
    fs::copy(example.join("transformations/registration.sql"), root.join("transformations/registration.sql"))?;
    let settings = fs::read_to_string(example.join("flowbench.toml"))?;
    let samples = repository.join("samples").display().to_string();
    fs::write(root.join("flowbench.toml"), settings.replace("../../samples", &samples))?;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flowbench"));
    let output = command.arg("run").current_dir(&root).output()?;
    match output.status.success() {
        true => Ok(root),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// A workspace whose update keeps all cores busy for a while.
fn busy(bench: &Path, rows: u64) -> Result<PathBuf> {
    let events = bench.join("latency_events");
    generate::by_day(&events, rows)?;
    let root = fresh(bench, "latency_busy")?;
    fs::create_dir_all(root.join("transformations"))?;
    fs::write(root.join("flowbench.toml"), format!("[paths]\n\"/events\" = \"{}\"\n", events.display()))?;
    let mut sql = String::new();
    for table in 0..BUSY_TABLES {
        writeln!(
            sql,
            "CREATE OR REFRESH STREAMING TABLE t{table:02} AS SELECT * FROM STREAM read_files('/events/*/*/*', format => 'json', maxFilesPerTrigger => 100);"
        )?;
    }
    fs::write(root.join("transformations/tables.sql"), sql)?;
    Ok(root)
}

fn fresh(bench: &Path, name: &str) -> Result<PathBuf> {
    let root = bench.join(name);
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    fs::create_dir_all(&root)?;
    Ok(root)
}

fn open(root: &Path) -> Terminal {
    Terminal::start_bare(&Start {
        columns: SIZE.0,
        rows: SIZE.1,
        program: Path::new(env!("CARGO_BIN_EXE_flowbench")),
        arguments: Vec::new(),
        folder: root,
        environment: Vec::new(),
    })
}

fn head(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn wait_checked(terminal: &Terminal) -> Instant {
    terminal.wait("a checked workspace", |text| head(text).contains(" valid ") && !head(text).contains("checking"))
}

/// From the start of the process to the frame, to the graph, and to the verdict.
fn starts(name: &str, root: &Path, count: usize) {
    let (mut frames, mut graphs, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let started = Instant::now();
        let terminal = open(root);
        frames.push(terminal.wait_for("1 Graph 2 Runs") - started);
        let graph = terminal.wait("the graph", |text| !text.contains("reading"));
        graphs.push(graph - started);
        verdicts.push(wait_checked(&terminal) - started);
    }
    print(&format!("start to first frame, {name}"), frames, Some(100));
    print(&format!("start to graph, {name}"), graphs, Some(300));
    print(&format!("start to verdict, {name}"), verdicts, None);
}

/// Presses `j` and `k` in turn on two screens; the cursor's row is what must change.
fn idle_keys(name: &str, terminal: &Terminal, count: usize) {
    terminal.keys("2");
    terminal.wait_for("Flows · ");
    print(&format!("key to cell, idle, Runs, {name}"), key_times(terminal, count, || true), Some(16));
    terminal.keys("1");
    terminal.wait_for("Graph · ");
    terminal.keys("Shift-Tab");
    pause(100);
    print(&format!("key to cell, idle, explorer, {name}"), key_times(terminal, count, || true), Some(16));
    terminal.keys("Tab");
    pause(100);
}

fn key_times(terminal: &Terminal, count: usize, goes_on: impl Fn() -> bool) -> Vec<Duration> {
    let mut times = Vec::new();
    for n in 0..count {
        if !goes_on() {
            break;
        }
        let before = terminal.look(marked);
        let pressed = Instant::now();
        terminal.keys(if n % 2 == 0 { "j" } else { "k" });
        let shown = terminal.wait_screen("the cursor to move", |screen| marked(screen) != before);
        times.push(shown.saturating_duration_since(pressed));
        // At no fixed beat, so that no timer of the program is met at the same moment again and again.
        pause(5 + (n as u64 * 7) % 31);
    }
    times
}

/// The cells under the cursor.
fn marked(screen: &vt100::Screen) -> Vec<(u16, u16)> {
    let (rows, columns) = screen.size();
    let cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
    cells.filter(|(row, column)| screen.cell(*row, *column).is_some_and(vt100::Cell::inverse)).collect()
}

/// Breaks and mends a file by turns, as an editor saves: a new file takes the old one's name.
fn saves(name: &str, root: &Path, file: &str, terminal: &Terminal, count: usize) -> Result<()> {
    let path = root.join(file);
    let good = fs::read_to_string(&path)?;
    let column = if good.contains("year(timestamp)") { "year(timestamp)" } else { "o.created_at)" };
    let save = |text: &str| -> Result<Instant> {
        let new = path.with_extension("new");
        fs::write(&new, text)?;
        let saved = Instant::now();
        fs::rename(&new, &path)?;
        Ok(saved)
    };
    let (mut broken, mut mended) = (Vec::new(), Vec::new());
    for n in 0..count {
        let wrong = format!("nothing_{n}");
        let saved =
            save(&good.replacen(column, &column.replace("timestamp", &wrong).replace("created_at", &wrong), 1))?;
        broken.push(terminal.wait_for(&format!("unknown column: `{wrong}")) - saved);
        let saved = save(&good)?;
        mended.push(wait_checked(terminal) - saved);
        pause(50 + (n as u64 * 13) % 60);
    }
    print(&format!("save to diagnostic, {name}"), broken, Some(250));
    print(&format!("mending save to verdict, {name}"), mended, Some(250));
    Ok(())
}

/// Bytes written and processor time taken while nothing happens.
fn idle(name: &str, terminal: &Terminal) {
    pause(2_000);
    let pid = terminal.pid();
    let (bytes, ticks) = (terminal.written().0, ticks(pid));
    pause(IDLE.as_millis() as u64);
    let (bytes, ticks) = (terminal.written().0 - bytes, ticks_since(pid, ticks));
    let verdict = if bytes == 0 { "aim 0 bytes: met" } else { "aim 0 bytes: MISSED" };
    println!("{:<52} {bytes} bytes, {ticks} in {} s; {verdict}", format!("idle, {name}"), IDLE.as_secs());
}

/// Clock ticks of 10 ms that the process has taken; None where there is no /proc.
fn ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold blanks; user and system time are the 12th and 13th after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

fn ticks_since(pid: u32, before: Option<u64>) -> String {
    match before.zip(ticks(pid)) {
        Some((before, now)) => format!("{} ticks of 10 ms", now - before),
        None => "no /proc".to_string(),
    }
}

/// Keys while an update keeps all cores busy.
fn busy_keys(root: &Path, count: usize) {
    let terminal = open(root);
    wait_checked(&terminal);
    terminal.keys("2 r r");
    terminal.wait("the update", |text| head(text).contains("RUNNING"));
    // Until the first rows are written, nothing is busy.
    terminal.wait("rows", |text| text.lines().skip(2).any(|line| line.contains("RUNNING") && line.contains("/s")));
    let is_running = || head(&terminal.text()).contains("RUNNING");
    let runs = key_times(&terminal, count, is_running);
    let taken = runs.len();
    print(&format!("key to cell, saturated, Runs, {taken} keys"), runs, Some(33));
    terminal.keys("1");
    terminal.wait_for("Graph · ");
    terminal.keys("Shift-Tab");
    pause(200);
    let graph = key_times(&terminal, count, is_running);
    let taken = graph.len();
    print(&format!("key to cell, saturated, explorer, {taken} keys"), graph, Some(33));
    let asked = Instant::now();
    terminal.keys("Ctrl-c");
    let told = terminal.wait_for("stopping");
    print("Ctrl-C to its acknowledgement, saturated", vec![told - asked], Some(50));
}

fn print(what: &str, mut times: Vec<Duration>, aim_ms: Option<u64>) {
    times.sort();
    if times.is_empty() {
        println!("{what:<52} nothing was measured");
        return;
    }
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let at = |share: usize| ms(times[(times.len() * share / 100).min(times.len() - 1)]);
    let verdict = match aim_ms {
        Some(aim) if at(95) <= aim as f64 => format!("  aim p95 {aim}: met"),
        Some(aim) => format!("  aim p95 {aim}: MISSED"),
        None => String::new(),
    };
    println!("{what:<52} {:>7.1} {:>7.1} {:>7.1}{verdict}", at(50), at(95), at(100));
}

/// The load of the machine over the last minute.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_string()
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}
