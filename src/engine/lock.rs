//! The writer's lock of a workspace: `<storage>/lock`. It is held by the operating system for the process and
//! dies with it, so a crash never leaves a workspace locked. Readers need none.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};

/// The file's name in the storage folder.
pub const FILE_NAME: &str = "lock";

/// [`WriterLock::is_held`] has the lock for a moment while it looks, which is no reason to refuse a writer.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Proof that this process is the only writer of the workspace; dropping it lets the next one in.
#[derive(Debug)]
pub struct WriterLock {
    /// Closing it frees the lock.
    _file: File,
}

impl WriterLock {
    /// Takes the lock, or says who has it (`workspace-locked`). `command` and `started` (ISO text) are what
    /// others are told about this process.
    pub fn acquire(storage: &Path, command: &str, started: &str) -> Result<WriterLock> {
        std::fs::create_dir_all(storage).map_err(|e| Error::io("create folder", storage, e))?;
        let path = storage.join(FILE_NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::io("open for writing", &path, e))?;
        let mut tries_left = TRIES;
        while let Err(error) = file.try_lock() {
            tries_left -= 1;
            match error {
                TryLockError::WouldBlock if tries_left > 0 => std::thread::sleep(PAUSE),
                TryLockError::WouldBlock => return Err(locked(&mut file)),
                TryLockError::Error(e) => return Err(Error::io("lock", &path, e)),
            }
        }
        let owner = format!("pid {}\nstarted {started}\ncommand {command}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(owner.as_bytes()));
        written.map_err(|e| Error::io("write", &path, e))?;
        Ok(WriterLock { _file: file })
    }

    /// The process that writes the workspace now.
    pub fn holder(storage: &Path) -> Option<u32> {
        if !WriterLock::is_held(storage) {
            return None;
        }
        let owner = std::fs::read_to_string(storage.join(FILE_NAME)).ok()?;
        owner.lines().find_map(|line| line.strip_prefix("pid ")).and_then(|pid| pid.trim().parse().ok())
    }

    /// True if some process, this one included, writes the workspace now.
    pub fn is_held(storage: &Path) -> bool {
        match File::open(storage.join(FILE_NAME)) {
            // A shared lock, so that two processes that look at the same time don't see one another.
            Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
            Err(_) => false,
        }
    }
}

fn locked(file: &mut File) -> Error {
    let mut owner = String::new();
    // What can't be read is left out of the message.
    let _ = file.read_to_string(&mut owner);
    let field = |name: &str| owner.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let who = match (field("pid "), field("started "), field("command ")) {
        (Some(pid), Some(started), Some(command)) => format!(" (pid {pid}, started {started}: `{command}`)"),
        _ => String::new(),
    };
    Error::External {
        code: "workspace-locked",
        what: format!("another flowbench{who} is running an update here"),
        help: "wait until it ends, or stop it; status, show and events work meanwhile".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Set for the child process that holds the lock.
    const HOLD: &str = "FLOWBENCH_TEST_HOLD_LOCK";

    #[test]
    fn second_writer_is_told_who_the_first_is() {
        let storage = tempfile::tempdir().unwrap();
        assert!(!WriterLock::is_held(storage.path()));
        let first = WriterLock::acquire(storage.path(), "flowbench run", "2025-01-02T03:04:05Z").unwrap();
        assert!(WriterLock::is_held(storage.path()));
        let error = WriterLock::acquire(storage.path(), "flowbench run", "later").unwrap_err();
        assert_eq!(error.code(), "workspace-locked");
        assert_eq!(
            error.to_string(),
            format!(
                "another flowbench (pid {}, started 2025-01-02T03:04:05Z: `flowbench run`) is running an update here",
                std::process::id()
            )
        );
        drop(first);
        assert!(!WriterLock::is_held(storage.path()));
        WriterLock::acquire(storage.path(), "flowbench run", "later").unwrap();
    }

    #[test]
    fn killed_holder_frees_the_lock() {
        if let Some(storage) = std::env::var_os(HOLD) {
            let _lock = WriterLock::acquire(Path::new(&storage), "child", "now").unwrap();
            std::fs::write(Path::new(&storage).join("held"), "").unwrap();
            // Until killed; the pipe of the parent ends the wait if the parent dies first.
            let _ = std::io::stdin().read(&mut [0]);
            return;
        }
        let storage = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lock::tests::killed_holder_frees_the_lock", "--nocapture"])
            .env(HOLD, storage.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !storage.path().join("held").exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child ended before it had the lock");
            std::thread::yield_now();
        }
        let error = WriterLock::acquire(storage.path(), "parent", "now").unwrap_err();
        assert!(error.to_string().contains(&format!("pid {}", child.id())), "{error}");
        child.kill().unwrap();
        child.wait().unwrap();
        WriterLock::acquire(storage.path(), "parent", "now").unwrap();
    }

    #[test]
    fn storage_that_cannot_be_a_folder_is_a_clear_error() {
        let folder = tempfile::tempdir().unwrap();
        let storage = folder.path().join("file");
        std::fs::write(&storage, "").unwrap();
        let error = WriterLock::acquire(&storage, "flowbench run", "now").unwrap_err();
        assert!(error.to_string().starts_with("cannot create folder `"), "{error}");
    }
}
