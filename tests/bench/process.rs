//! Runs a process and measures it from outside: wall time, peak memory.

use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// How often the peak is looked at. The kernel keeps the peak, so only what grows after the last look is missed.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One run of a process that succeeded.
pub struct Measured {
    pub wall: Duration,
    /// Zero where there is no /proc.
    pub peak_bytes: u64,
    pub stdout: String,
}

/// Runs a command to its end; one that fails is an error with the end of what it said.
pub fn measure(command: &mut Command) -> Result<Measured, Box<dyn Error>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Instant::now();
    let child = command.spawn()?;
    let pid = child.id();
    let has_ended = AtomicBool::new(false);
    let (output, wall, peak_bytes) = thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut peak = 0;
            while !has_ended.load(Relaxed) {
                peak = peak_bytes_of(pid).unwrap_or(0).max(peak);
                thread::sleep(LOOK_EVERY);
            }
            peak
        });
        let output = child.wait_with_output();
        let wall = started.elapsed();
        has_ended.store(true, Relaxed);
        (output, wall, looker.join().expect("looking at a file doesn't panic"))
    });
    let output = output?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = said.lines().collect();
        let end = lines[lines.len().saturating_sub(20)..].join("\n");
        return Err(format!("{command:?} ended with {}:\n{end}", output.status).into());
    }
    Ok(Measured { wall, peak_bytes, stdout })
}

/// `VmHWM`, the most memory that the process ever held.
fn peak_bytes_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
