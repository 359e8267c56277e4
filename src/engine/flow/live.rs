//! Numbers of a running flow, counted by its tasks and read by the reports.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use pipeline::event::{ChangeMetrics, FlowMetrics};

use crate::source::files::ScanCounters;

/// Counts of one flow in one update; what failed batches counted is taken back.
#[derive(Debug)]
pub(crate) struct LiveMetrics {
    /// When the flow began to run.
    started: OnceLock<Instant>,
    pub batches: AtomicU64,
    pub rows_in: AtomicU64,
    pub rows_out: AtomicU64,
    pub files_in: AtomicU64,
    pub bytes_in: AtomicU64,
    pub rescued_values: AtomicU64,
    pub corrupt_records: AtomicU64,
    pub backlog: AtomicU64,
    pub backlog_bytes: AtomicU64,
    /// Rows of the batch in progress.
    pub batch_rows: Arc<AtomicU64>,
    changes: Mutex<ChangeMetrics>,
}

impl LiveMetrics {
    /// The clock runs from here.
    pub fn start(&self) {
        self.started.get_or_init(Instant::now);
    }

    /// All zero.
    pub fn new() -> LiveMetrics {
        LiveMetrics {
            started: OnceLock::new(),
            batches: AtomicU64::new(0),
            rows_in: AtomicU64::new(0),
            rows_out: AtomicU64::new(0),
            files_in: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            rescued_values: AtomicU64::new(0),
            corrupt_records: AtomicU64::new(0),
            backlog: AtomicU64::new(0),
            backlog_bytes: AtomicU64::new(0),
            batch_rows: Arc::default(),
            changes: Mutex::default(),
        }
    }

    /// The numbers as they are now, the batch in progress included.
    pub fn metrics(&self) -> FlowMetrics {
        FlowMetrics {
            batches: self.batches.load(Relaxed),
            rows_in: self.rows_in.load(Relaxed),
            rows_out: self.rows_out.load(Relaxed) + self.batch_rows.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            files_in: self.files_in.load(Relaxed),
            rescued_values: self.rescued_values.load(Relaxed),
            corrupt_records: self.corrupt_records.load(Relaxed),
            backlog: self.backlog.load(Relaxed),
            backlog_bytes: self.backlog_bytes.load(Relaxed),
            duration_ms: self.started.get().map_or(0, |started| started.elapsed().as_millis() as u64),
            changes: *self.changes.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Adds a committed batch.
    pub fn add(&self, batch: &FlowMetrics) {
        self.batch_rows.store(0, Relaxed);
        self.batches.fetch_add(1, Relaxed);
        self.rows_in.fetch_add(batch.rows_in, Relaxed);
        self.rows_out.fetch_add(batch.rows_out, Relaxed);
        self.files_in.fetch_add(batch.files_in, Relaxed);
        self.bytes_in.fetch_add(batch.bytes_in, Relaxed);
        self.rescued_values.fetch_add(batch.rescued_values, Relaxed);
        self.corrupt_records.fetch_add(batch.corrupt_records, Relaxed);
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        *changes = *changes + batch.changes;
    }

    /// What is still unread.
    pub fn set_backlog(&self, files: u64, bytes: u64) {
        self.backlog.store(files, Relaxed);
        self.backlog_bytes.store(bytes, Relaxed);
    }
}

/// Adds up what the scans of one batch saw.
pub(crate) fn scanned(counters: &[Arc<ScanCounters>]) -> FlowMetrics {
    let sum = |count: fn(&ScanCounters) -> u64| counters.iter().map(|counters| count(counters)).sum();
    FlowMetrics {
        rows_in: sum(|counters| counters.rows.load(Relaxed)),
        files_in: sum(|counters| counters.files.load(Relaxed)),
        bytes_in: sum(|counters| counters.bytes.load(Relaxed)),
        rescued_values: sum(|counters| counters.rescued_values.load(Relaxed)),
        corrupt_records: sum(|counters| counters.corrupt_kept.load(Relaxed) + counters.corrupt_dropped.load(Relaxed)),
        ..FlowMetrics::default()
    }
}
