//! How fast validation is in a workspace of a thousand flows.
//!
//! ```text
//! cargo bench --bench validate
//! cargo bench --bench validate -- --files 20 --runs 5
//! ```
//! | option | meaning |
//! |---|---|
//! | `--files N` | files of ten flows each; default 100 |
//! | `--runs N` | how often each is measured; medians are printed; default 11 |
//!
//! `cold` is a whole process, from outside; `warm` is one engine that follows edits of one file, from reading the
//! files again to the last diagnostic. The program fails if an answer is wrong; a missed aim is only printed.

mod large_workspace;
mod process;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use engine::Engine;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const COLD_MAX: Duration = Duration::from_millis(300);
const WARM_MAX: Duration = Duration::from_millis(30);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("not measured: run by `cargo bench --bench validate`");
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
    let number = |name: &str, default: usize| -> Result<usize> {
        match arguments.iter().position(|argument| argument == name) {
            Some(at) => Ok(arguments.get(at + 1).ok_or_else(|| format!("`{name}` lacks its value"))?.parse()?),
            None => Ok(default),
        }
    };
    let (files, runs) = (number("--files", 100)?.max(1), number("--runs", 11)?.max(1));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench/large_workspace");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let lines = large_workspace::write(&root, files)?;
    println!("{files} files, {} flows, {lines} lines; medians of {runs}", files * large_workspace::FLOWS_A_FILE);
    cold(&root, runs)?;
    // Plans are walked by recursion; these are the threads that the program has.
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_stack_size(32 << 20).enable_all().build()?;
    runtime.block_on(warm(&root, runs))
}

/// `flowbench validate` as a process.
fn cold(root: &Path, runs: usize) -> Result<()> {
    let (mut times, mut peak_bytes) = (Vec::new(), 0);
    for _ in 0..runs {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowbench"));
        let measured = process::measure(command.arg("validate").current_dir(root))?;
        // What is said of the files is on stderr.
        expect(measured.stdout.len(), 0)?;
        peak_bytes = measured.peak_bytes.max(peak_bytes);
        times.push(measured.wall);
    }
    print("cold: `flowbench validate`", &mut times, Some(COLD_MAX));
    println!("{:<45} {:>8} MiB", "cold: memory at most", peak_bytes >> 20);
    Ok(())
}

/// One engine; each edit changes a query in the middle of the workspace.
async fn warm(root: &Path, runs: usize) -> Result<()> {
    let started = Instant::now();
    let mut engine = Engine::open(root, &[])?;
    let opened = started.elapsed();
    expect(engine.analyse().await?.diagnostics.len(), 0)?;
    print("first: files read and understood", &mut [opened], None);
    print("first: everything analysed", &mut [started.elapsed() - opened], None);

    let file = root.join("transformations/area_000.sql");
    let text = large_workspace::definitions(0);
    let (mut nothing, mut reloads, mut edits) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..runs {
        let started = Instant::now();
        engine = engine.reload()?;
        expect(engine.analyse().await?.diagnostics.len(), 0)?;
        nothing.push(started.elapsed());

        // Broken, then mended in another way each time, above everything else in the file.
        for (edited, errors) in [
            (text.replacen("o.customer_id", "o.customer_idd", 1), 1),
            (
                text.replacen("AS delivered", "", 1).replacen(
                    "trim(o.status)",
                    &format!("concat(o.status, '{run}')"),
                    1,
                ),
                0,
            ),
        ] {
            fs::write(&file, format!("-- edit {run}\n{edited}"))?;
            let started = Instant::now();
            engine = engine.reload()?;
            reloads.push(started.elapsed());
            let analysis = engine.analyse().await?;
            edits.push(started.elapsed());
            expect(analysis.diagnostics.len(), errors)?;
        }
    }
    print("warm: nothing changed", &mut nothing, None);
    print("warm: one file edited, files understood", &mut reloads, None);
    print("warm: one file edited, everything analysed", &mut edits, Some(WARM_MAX));
    Ok(())
}

fn expect(found: usize, wanted: usize) -> Result<()> {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{found} diagnostics where there should be {wanted}").into()),
    }
}

fn print(what: &str, times: &mut [Duration], aim: Option<Duration>) {
    times.sort();
    let median = times[times.len() / 2];
    let verdict = match aim {
        Some(aim) if median <= aim => format!("  aim {} ms: met", aim.as_millis()),
        Some(aim) => format!("  aim {} ms: MISSED", aim.as_millis()),
        None => String::new(),
    };
    println!("{what:<45} {:>8.1} ms{verdict}", median.as_secs_f64() * 1000.0);
}
