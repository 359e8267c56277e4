//! Parquet: types from the footers, rows by row group.

use std::fs::File;

use arrow::datatypes::FieldRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type as PhysicalType;
use pipeline::data_type::{DataType, Field};

use super::adapt::adapt;
use super::list::FileEntry;
use super::read::{corrupt, open_raw};
use super::rescue::Rescue;
use super::scan::{Decoded, Output};
use super::split::Part;
use super::{BATCH_ROWS, ScanCounters};
use crate::data_type::from_arrow;
use crate::error::Result;

/// Returns the columns of one file, from its footer.
pub fn columns(file: &FileEntry) -> Result<Vec<Field>> {
    let builder = open(file)?;
    let mut columns: Vec<Field> = builder.schema().fields().iter().map(as_column).collect();
    // INT96 is how Hive, Impala and old Sparks write timestamps; they mean UTC.
    for leaf in builder.parquet_schema().columns() {
        if leaf.physical_type() == PhysicalType::INT96
            && let [name] = leaf.path().parts()
            && let Some(column) = columns.iter_mut().find(|column| column.name == *name)
        {
            column.data_type = DataType::Timestamp;
        }
    }
    Ok(columns)
}

/// Returns a file's field as a column; STRING for types that Spark doesn't have.
pub fn as_column(field: &FieldRef) -> Field {
    let data_type = from_arrow(field.data_type()).unwrap_or(DataType::String);
    Field { name: field.name().clone(), data_type, is_nullable: true, comment: None }
}

fn open(file: &FileEntry) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    // Parquet's own types are canonical; the Arrow schema that some writers embed is not.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(open_raw(file)?, options)
        .map_err(|error| corrupt(file, error))
}

/// Reads the row groups whose middle is in `part`.
pub fn read(file: &FileEntry, part: Part, output: &mut Output<'_>) -> Result<()> {
    let builder = open(file)?;
    let (scan, names) = (output.scan, output.scan.names());
    let schema = builder.schema().clone();
    if part.start == 0 {
        let mut unknown = Vec::new();
        names.unknown(schema.fields(), scan.schema.schema.fields(), "", &mut unknown);
        unknown.iter().for_each(|name| output.add_unknown(name, 1));
        output.check_unknown()?;
    }
    let is_unknown = |name: &str| scan.wants_rescued && !scan.is_known(name);
    let wanted = |field: &FieldRef| {
        let is_asked = |column: &FieldRef| names.find(std::slice::from_ref(field), column.name()).is_some();
        output.data().iter().any(is_asked) || is_unknown(field.name())
    };
    let roots = schema.fields().iter().enumerate().filter(|(_, field)| wanted(field)).map(|(index, _)| index);
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots.collect::<Vec<_>>());
    let groups = builder.metadata().row_groups().iter().enumerate().filter(|(_, group)| {
        let start = group.columns().iter().map(|column| column.byte_range().0).min().unwrap_or(0);
        let middle = start + u64::try_from(group.compressed_size()).unwrap_or(0) / 2;
        (part.start..part.end).contains(&middle)
    });
    let groups = groups.map(|(index, _)| index).collect::<Vec<_>>();
    let reader = builder.with_projection(mask).with_row_groups(groups).with_batch_size(BATCH_ROWS);
    for batch in reader.build().map_err(|error| corrupt(file, error))? {
        let batch = batch.map_err(|error| corrupt(file, error))?;
        push_adapted(&batch, file, output)?;
    }
    Ok(())
}

/// Gives a typed batch to the scan as the columns it wants.
pub fn push_adapted(batch: &arrow::record_batch::RecordBatch, file: &FileEntry, output: &mut Output<'_>) -> Result<()> {
    let scan = output.scan;
    let mut rescue = Rescue::default();
    let columns = adapt(batch, output.data(), scan.names(), |name| scan.is_known(name), &mut rescue)?;
    ScanCounters::add(&output.counters().rescued_values, rescue.values);
    let rows = batch.num_rows();
    output.push(Decoded { columns, rescued: rescue.finish(rows, &file.path), corrupt: None, rows })
}
