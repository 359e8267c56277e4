//! What of a table is not on disk as its log has it.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{Table, action};

impl Table {
    /// Files of the current version that are not on disk as the log has them: data files that are gone or of
    /// another size, and deletion vectors that are gone.
    pub fn missing_files(&self) -> Vec<String> {
        let is_missing = |(path, add): &(&String, &Arc<action::Add>)| {
            let size = u64::try_from(add.size).unwrap_or(0);
            action::decode_path(&self.dir, path)
                .is_some_and(|file| std::fs::metadata(file).map_or(true, |found| found.len() != size))
        };
        let mut missing: Vec<String> =
            self.state.files.iter().filter(is_missing).map(|(path, _)| path.clone()).collect();
        let vectors = self.state.files.values().filter_map(|add| add.deletion_vector.as_ref()?.file(&self.dir));
        let vectors = vectors.collect::<BTreeSet<_>>().into_iter().filter(|file| !file.exists());
        missing.extend(vectors.map(|file| file.strip_prefix(&self.dir).unwrap_or(&file).display().to_string()));
        missing
    }

    /// Data files of the current version that are there and can't be read to their end, they or which of their rows are
    /// deleted, and why. Reads them all.
    pub fn unreadable_files(&self) -> Vec<(String, String)> {
        let unreadable = self.state.files.iter().filter_map(|(path, add)| {
            let file = action::decode_path(&self.dir, path).filter(|file| file.exists())?;
            let deleted = || match &add.deletion_vector {
                Some(vector) => vector.read(&self.dir).map(drop).map_err(|error| error.to_string()),
                None => Ok(()),
            };
            Some((path.clone(), read_through(&file).and_then(|()| deleted()).err()?))
        });
        unreadable.collect()
    }
}

fn read_through(file: &Path) -> Result<(), String> {
    let file = File::open(file).map_err(|error| error.to_string())?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(ParquetRecordBatchReaderBuilder::build);
    let reader = reader.map_err(|error| error.to_string())?;
    reader.into_iter().try_for_each(|rows| rows.map(drop)).map_err(|error| error.to_string())
}
