//! What keys change, beside what is in force: rows of the target and a run of the side table.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{Schema, SchemaRef};
use pipeline::auto_cdc::{END_AT, START_AT};
use pipeline::timeline::{AddedRow, Counts, Folded, Location, Member, Shows};

use super::{Application, internal};
use crate::auto_cdc::side::Staged;
use crate::auto_cdc::stored::{put_layers, stored_form};
use crate::error::{Error, Result};
use crate::table::{DataFile, DataWriter, Located, SyncAt, WriterOptions};

/// Rows that are decoded at once.
const ROWS_AT_ONCE: usize = 16 * 1024;

/// What some keys of a portion came to, written beside what is in force.
pub(super) struct Written {
    pub counts: Counts,
    pub rows_added: u64,
    pub removed: Vec<Location>,
    pub files: Vec<(u32, DataFile)>,
    pub run: Option<Staged>,
}

impl Application<'_> {
    /// Writes what some keys change, beside what is in force: rows of the target, and a run.
    pub(super) fn write(&self, keys: &[&[u8]], mut folded: Folded<'_>) -> Result<Written> {
        folded.members.iter_mut().for_each(|(_, member)| put_layers(member));
        let is_one_file =
            self.target.target.partition_by.is_empty() && (1..=ROWS_AT_ONCE).contains(&folded.added.len());
        let (run, files) = if is_one_file {
            // Where its rows will be is known before it is written, so the run needn't wait for it.
            let file = self.side.allocate_files(1);
            locate(&mut folded, (0..).map(|row| (file, row)))?;
            std::thread::scope(|scope| {
                let rows = scope.spawn(|| self.write_rows(keys, &folded));
                let mut files = Vec::new();
                let run = self.write_run(keys, &folded, || {
                    let panicked = |_| Err(Error::Internal("a thread that writes rows panicked".to_string()));
                    let located = rows.join().unwrap_or_else(panicked)?;
                    if !located.locations().eq((0..folded.added.len() as u64).map(|row| (0, row))) {
                        return Err(Error::Internal("rows are not where they were to be".to_string()));
                    }
                    files = (file..).zip(located.files).collect();
                    Ok(self.side_paths(&files))
                })?;
                Ok::<_, Error>((run, files))
            })?
        } else {
            let located = self.write_rows(keys, &folded)?;
            let first = self.side.allocate_files(located.files.len() as u32);
            locate(&mut folded, located.locations().map(|(file, row)| (first + file as u32, row)))?;
            let files: Vec<_> = (first..).zip(located.files).collect();
            (self.write_run(keys, &folded, || Ok(self.side_paths(&files)))?, files)
        };
        Ok(Written {
            run,
            files,
            rows_added: folded.added.len() as u64,
            removed: folded.removed,
            counts: folded.counts,
        })
    }

    fn write_run(
        &self,
        keys: &[&[u8]],
        folded: &Folded<'_>,
        new_files: impl FnOnce() -> Result<Vec<(u32, String)>>,
    ) -> Result<Option<Staged>> {
        let newest_first = folded.members.chunk_by(|a, b| a.0 == b.0).flat_map(|of_key| of_key.iter().rev());
        let members = newest_first.map(|(key, member)| stored_form(keys[*key], member));
        self.side.write_run(members, folded.members.len(), new_files)
    }

    /// The batch's files and these, as the side table has them.
    fn side_paths(&self, files: &[(u32, DataFile)]) -> Vec<(u32, String)> {
        let all = self.files.iter().chain(files);
        all.map(|(number, file)| (*number, self.target.side_path(&file.log_path()))).collect()
    }

    /// Writes the added rows.
    fn write_rows(&self, keys: &[&[u8]], folded: &Folded<'_>) -> Result<Located> {
        let options = WriterOptions { locate_rows: true, sync: SyncAt::Prepare, ..WriterOptions::default() };
        let target = &self.target.target;
        let mut writer = DataWriter::new(&target.folder, None, self.schema.clone(), &target.partition_by, options)?;
        for rows in folded.added.chunks(ROWS_AT_ONCE) {
            writer.write(&self.rows_of(keys, folded, rows)?)?;
        }
        writer.finish_located()
    }

    /// Rows of the target as columns.
    fn rows_of(&self, keys: &[&[u8]], folded: &Folded<'_>, rows: &[AddedRow<'_>]) -> Result<RecordBatch> {
        let members: Vec<&(usize, Member<'_>)> = rows.iter().map(|row| &folded.members[row.member]).collect();
        let key_columns = self.key_codec.decode(members.iter().map(|(key, _)| keys[*key]))?;
        let values: Vec<&[u8]> = members.iter().map(|(_, member)| &member.values[..]).collect();
        let values = self.rows.codec.decode(&values, &self.value_fields)?;
        let interval = match self.shows {
            Shows::Latest => None,
            Shows::History => {
                let starts = self.sequence_codec.decode(rows.iter().map(|row| row.start))?.remove(0);
                Some((starts, self.ends(rows)?))
            }
        };
        let column = |name: &str| {
            let key = self.key_names.iter().position(|key| key == name).map(|at| key_columns[at].clone());
            let value = || Some(values[self.value_fields.iter().position(|field| field.name() == name)?].clone());
            let interval = interval.as_ref().and_then(|(starts, ends)| match name {
                START_AT => Some(starts.clone()),
                END_AT => Some(ends.clone()),
                _ => None,
            });
            key.or(interval).or_else(value)
        };
        let columns = self.schema.fields().iter().map(|field| {
            column(field.name()).ok_or_else(|| Error::Internal(format!("nothing gives column `{}`", field.name())))
        });
        // The writer says which column has a NULL and may not.
        RecordBatch::try_new(nullable(&self.schema), columns.collect::<Result<_>>()?).map_err(internal)
    }

    /// `__END_AT`: NULL where the row is open.
    fn ends(&self, rows: &[AddedRow<'_>]) -> Result<ArrayRef> {
        let ends = self.sequence_codec.decode(rows.iter().filter_map(|row| row.end))?.remove(0);
        let mut next = 0..ends.len() as u32;
        let places: UInt32Array = rows.iter().map(|row| row.end.and_then(|_| next.next())).collect();
        take(&ends, &places, None).map_err(internal)
    }
}

/// Gives the members that have a row to add its location: file number and row of each, in order.
fn locate(folded: &mut Folded<'_>, locations: impl Iterator<Item = (u32, u64)>) -> Result<()> {
    for (row, (file, at)) in folded.added.iter().zip(locations) {
        let at = u32::try_from(at).map_err(|_| Error::Internal("a data file has too many rows".to_string()))?;
        folded.members[row.member].1.location = Some(Location { file, row: at });
    }
    Ok(())
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    if schema.fields().iter().all(|field| field.is_nullable()) {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}
