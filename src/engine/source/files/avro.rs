//! Avro object container files: types by the schema in their head.

use std::io::BufReader;

use arrow_avro::reader::{Reader, ReaderBuilder};
use pipeline::data_type::Field;

use super::BATCH_ROWS;
use super::list::FileEntry;
use super::parquet::{as_column, push_adapted};
use super::read::{corrupt, open_raw};
use super::scan::Output;
use crate::error::Result;

/// Returns the columns of one file.
pub fn columns(file: &FileEntry) -> Result<Vec<Field>> {
    Ok(open(file, None)?.schema().fields().iter().map(as_column).collect())
}

fn open(file: &FileEntry, projection: Option<Vec<usize>>) -> Result<Reader<BufReader<std::fs::File>>> {
    let mut builder = ReaderBuilder::new().with_batch_size(BATCH_ROWS);
    if let Some(projection) = projection {
        builder = builder.with_projection(projection);
    }
    builder.build(BufReader::with_capacity(1 << 20, open_raw(file)?)).map_err(|error| corrupt(file, error))
}

/// Reads one file.
pub fn read(file: &FileEntry, output: &mut Output<'_>) -> Result<()> {
    let reader = open(file, None)?;
    let (scan, names) = (output.scan, output.scan.names());
    let schema = reader.schema();
    let mut unknown = Vec::new();
    names.unknown(schema.fields(), scan.schema.schema.fields(), "", &mut unknown);
    unknown.iter().for_each(|name| output.add_unknown(name, 1));
    output.check_unknown()?;
    let is_wanted = |name: &str| {
        let is_asked = output.data().iter().any(|column| match names.is_case_sensitive {
            true => column.name() == name,
            false => column.name().eq_ignore_ascii_case(name),
        });
        is_asked || (scan.wants_rescued && !scan.is_known(name))
    };
    let fields = schema.fields().iter().enumerate();
    let wanted: Vec<usize> = fields.filter(|(_, field)| is_wanted(field.name())).map(|(index, _)| index).collect();
    // Without any column its reader would not say how many rows there are.
    let reader =
        if wanted.is_empty() || wanted.len() == schema.fields().len() { reader } else { open(file, Some(wanted))? };
    for batch in reader {
        push_adapted(&batch.map_err(|error| corrupt(file, error))?, file, output)?;
    }
    Ok(())
}
