//! The log file of commands that write: `<storage>/logs/flowbench.log.<day>`. Never the terminal.

use std::io::Write;
use std::path::{Path, PathBuf};

use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;

/// Files kept, one a day.
const FILES_MAX: usize = 14;

/// Our own targets; what the libraries say is for debugging only, and may hold rows.
const FILTER: &str = "warn,flowbench={level},engine={level},pipeline={level}";

/// Starts to log until the returned guard is dropped. A log that can't be written is none: whatever the
/// command wants to write will say so better.
pub fn start(storage: &Path) -> Option<WorkerGuard> {
    let log = LogFile { storage: storage.to_path_buf(), appender: None };
    let (writer, guard) = tracing_appender::non_blocking(log);
    let wanted = std::env::var("FLOWBENCH_LOG").ok().filter(|wanted| !wanted.trim().is_empty());
    let filter = match wanted.as_deref().map(str::trim) {
        // A bare level is for us, anything more is a filter of its own.
        Some(wanted) if wanted.contains(['=', ',']) => EnvFilter::try_new(wanted),
        Some(level) => EnvFilter::try_new(FILTER.replace("{level}", level)),
        None => EnvFilter::try_new(FILTER.replace("{level}", "info")),
    };
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(FILTER.replace("{level}", "info")));
    tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(writer).with_ansi(false).try_init().ok()?;
    Some(guard)
}

/// Makes its file at the first line. Before the storage folder is there lines are dropped: a run that is
/// refused must not leave one behind.
struct LogFile {
    storage: PathBuf,
    appender: Option<RollingFileAppender>,
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        if self.appender.is_none() && self.storage.exists() {
            let folder = self.storage.join("logs");
            std::fs::create_dir_all(&folder)?;
            let builder = RollingFileAppender::builder().rotation(Rotation::DAILY).filename_prefix("flowbench.log");
            self.appender = builder.max_log_files(FILES_MAX).build(&folder).ok();
        }
        self.appender.as_mut().map_or(Ok(line.len()), |appender| appender.write(line))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.appender.as_mut().map_or(Ok(()), Write::flush)
    }
}
