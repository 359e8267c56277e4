//! JSON files through the record decoder: chunks of lines, or whole documents with `multiLine`.
//!
//! Not here: the records themselves (`json`).

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema};

use super::json::{DecodeStats, Decoder, DecoderConfig};
use super::list::FileEntry;
use super::read::{Lines, read_whole};
use super::scan::{Decoded, Output};
use super::split::Part;
use super::{BATCH_ROWS, ScanCounters};
use crate::error::Result;

/// Reads one part.
pub fn read(file: &FileEntry, part: Part, output: &mut Output<'_>) -> Result<()> {
    let mut rows = Rows { decoder: decoder(output)?, reported: DecodeStats::default(), corrupt_column: None };
    rows.corrupt_column = corrupt_column(output);
    rows.decoder.begin_file(&file.path, 1);
    if output.scan.spec.multi_line {
        let document = read_whole(file)?;
        rows.decode(&document, output)?;
    } else {
        let mut lines = Lines::open(file, part)?;
        while let Some(chunk) = lines.next_chunk()? {
            rows.decode(chunk, output)?;
        }
    }
    rows.push(output)
}

/// The decoder's columns: those to read, then the one for corrupt records, then those of the path, which a record
/// may have too: they are no unknown fields, and their values are thrown away.
fn decoder(output: &Output<'_>) -> Result<Decoder> {
    let (scan, spec) = (output.scan, &output.scan.spec);
    let mut columns: Vec<FieldRef> = output.data().to_vec();
    let string = |name: &String| Arc::new(Field::new(name, ArrowType::Utf8, true));
    columns.extend(scan.schema.corrupt.iter().map(string));
    if scan.wants_rescued {
        columns.extend(scan.schema.partition.iter().map(string));
    }
    Decoder::new(DecoderConfig {
        schema: Arc::new(Schema::new(columns)),
        rescue: scan.wants_rescued,
        corrupt_column: corrupt_column(output),
        parse_mode: spec.parse_mode,
        reader_case_sensitive: spec.reader_case_sensitive,
        multi_line: spec.multi_line,
        time_zone: spec.time_zone.clone(),
        timestamp_format: spec.timestamp_format.clone(),
        date_format: spec.date_format.clone(),
        options: spec.json.clone(),
        batch_rows_max: BATCH_ROWS,
    })
}

fn corrupt_column(output: &Output<'_>) -> Option<usize> {
    output.scan.schema.corrupt.as_ref().map(|_| output.data().len())
}

struct Rows {
    decoder: Decoder,
    /// What the counters have been told already.
    reported: DecodeStats,
    corrupt_column: Option<usize>,
}

impl Rows {
    fn decode(&mut self, mut bytes: &[u8], output: &mut Output<'_>) -> Result<()> {
        while !bytes.is_empty() {
            let used = self.decoder.decode(bytes)?;
            bytes = &bytes[used..];
            if self.decoder.is_full() {
                self.push(output)?;
            }
        }
        Ok(())
    }

    /// Hands the rows on, unless they have fields that the schema must learn first.
    fn push(&mut self, output: &mut Output<'_>) -> Result<()> {
        self.report(output)?;
        let batch = self.decoder.take()?;
        let mut columns = batch.columns;
        let corrupt = self.corrupt_column.map(|index| columns[index].clone());
        columns.truncate(output.data().len());
        output.push(Decoded { columns, rescued: batch.rescued, corrupt, rows: batch.row_count })
    }

    fn report(&mut self, output: &Output<'_>) -> Result<()> {
        let stats = self.decoder.stats();
        let since = |now: u64, before: u64| (now - before) as usize;
        let (counters, before, scan) = (output.counters(), &self.reported, output.scan);
        let corrupt = since(stats.corrupt, before.corrupt);
        let dropped = since(stats.dropped, before.dropped);
        ScanCounters::add(&counters.corrupt_dropped, dropped);
        ScanCounters::add(&counters.corrupt_kept, corrupt - dropped);
        let mut rescued = since(stats.misfits, before.misfits) + since(stats.other_case, before.other_case);
        for (name, count) in &stats.unknown {
            let count = count - before.unknown.get(name).copied().unwrap_or(0);
            let column = name.split('.').next().unwrap_or(name);
            // A column that wasn't asked for is unknown to the decoder only.
            let is_known = scan.is_known_in_any_case(name)
                || scan.is_known_in_any_case(column) && !output.data().iter().any(|field| field.name() == column);
            if count > 0 && !is_known {
                rescued += count as usize;
                output.add_unknown(name, count);
            }
        }
        if scan.schema.rescued.is_some() {
            ScanCounters::add(&counters.rescued_values, rescued);
        }
        self.reported = stats;
        output.check_unknown()
    }
}
