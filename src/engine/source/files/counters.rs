//! What a scan saw, for events, expectations of volume, and schema evolution.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of one scan, filled while it runs; read them when its stream has ended.
#[derive(Debug, Default)]
pub struct ScanCounters {
    pub files: AtomicU64,
    /// As on disk.
    pub bytes: AtomicU64,
    pub rows: AtomicU64,
    /// Values that didn't fit their column.
    pub rescued_values: AtomicU64,
    /// Records that couldn't be read and are rows of NULLs now.
    pub corrupt_kept: AtomicU64,
    pub corrupt_dropped: AtomicU64,
    /// Files that `ignoreMissingFiles` or `ignoreCorruptFiles` passed over.
    pub files_skipped: AtomicU64,
    unknown_fields: Mutex<BTreeMap<String, u64>>,
}

impl ScanCounters {
    /// Fields that the schema doesn't have, by dotted name, with the number of values or, for formats with a
    /// schema of their own, files.
    pub fn unknown_fields(&self) -> BTreeMap<String, u64> {
        self.lock().clone()
    }

    pub(super) fn add_unknown(&self, name: &str, count: u64) {
        let mut fields = self.lock();
        match fields.get_mut(name) {
            Some(known) => *known += count,
            None => {
                fields.insert(name.to_string(), count);
            }
        }
    }

    pub(super) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        // A map of counts is whole whatever its last holder did.
        self.unknown_fields.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
