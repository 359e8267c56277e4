//! Exactly these files as a table of DataFusion: projected columns only, as many partitions as there are threads,
//! each with its share of the bytes, decoded on a thread of its own a few batches ahead of the reader.
//!
//! A scan that meets what the flow has to know first (a new field, a file that changed) ends with an error, and so
//! before anything is committed. Not here: the formats; deciding which files.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow::array::{ArrayRef, new_null_array};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use pipeline::data_type::DataType;
use pipeline::read_files::{FileFormat, ReadFiles, SchemaEvolutionMode};
use serde_json::{Map, Value};
use tokio::sync::mpsc::Sender;

use super::adapt::Names;
use super::json::nullable;
use super::list::FileEntry;
use super::schema::{Role, SourceSchema};
use super::split::{Part, split};
use super::{BATCH_ROWS, ScanCounters, avro, csv, parquet, partition, read, read_json, rescue, text};
use crate::data_type::{schema_from_arrow, to_arrow};
use crate::error::{Error, Result};

/// The hidden column with the file of each row.
pub const METADATA: &str = "_metadata";

/// Returns the files as a table. With `with_metadata` it has one more column, the struct `_metadata`.
///
/// Read `counters` when the stream of the query has ended. New fields end the query with [`Error::UnknownFields`]
/// where the schema may evolve ([`super::evolve`] widens it, then run again), else as `schemaEvolutionMode` says.
pub fn table_provider(
    spec: Arc<ReadFiles>,
    schema: &SourceSchema,
    files: Arc<[FileEntry]>,
    with_metadata: bool,
    counters: Arc<ScanCounters>,
) -> Arc<dyn TableProvider> {
    let table_schema = table_schema(schema, with_metadata);
    Arc::new(FilesTable { spec, schema: schema.clone(), table_schema, files, counters })
}

/// The columns of [`table_provider`].
pub fn table_schema(schema: &SourceSchema, with_metadata: bool) -> SchemaRef {
    let mut fields: Vec<FieldRef> = schema.schema.fields().iter().map(nullable).collect();
    if with_metadata {
        fields.push(Arc::new(Field::new(METADATA, ArrowType::Struct(metadata_fields()), false)));
    }
    Arc::new(Schema::new(fields))
}

fn metadata_fields() -> Fields {
    let field = |name: &str, data_type: DataType| Field::new(name, to_arrow(&data_type), false);
    Fields::from(vec![
        field("file_path", DataType::String),
        field("file_name", DataType::String),
        field("file_size", DataType::Long),
        field("file_modification_time", DataType::Timestamp),
        field("file_block_start", DataType::Long),
        field("file_block_length", DataType::Long),
    ])
}

struct FilesTable {
    spec: Arc<ReadFiles>,
    schema: SourceSchema,
    table_schema: SchemaRef,
    files: Arc<[FileEntry]>,
    counters: Arc<ScanCounters>,
}

impl fmt::Debug for FilesTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "read_files({}): {} files", self.spec.path, self.files.len())
    }
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        self.table_schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let scan = Arc::new(Scan::new(self, projection)?);
        let shares = split(&self.files, state.config().target_partitions(), |file| can_cut(&self.spec, file));
        let share = |parts| Arc::new(Share { scan: scan.clone(), parts }) as Arc<dyn PartitionStream>;
        let shares = shares.into_iter().map(share).collect();
        Ok(Arc::new(StreamingTableExec::try_new(scan.output.clone(), shares, None, [], false, None)?))
    }
}

/// Tells whether two threads may read different parts of the file.
pub(super) fn can_cut(spec: &ReadFiles, file: &FileEntry) -> bool {
    match spec.format {
        FileFormat::Json => !spec.multi_line && read::is_plain(file),
        FileFormat::Csv => csv::can_cut(spec) && read::is_plain(file),
        FileFormat::Text => !spec.whole_text && read::is_plain(file),
        FileFormat::Parquet => true,
        FileFormat::Avro => false,
    }
}

/// Where the values of an output column come from.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// Index into [`Scan::data`].
    Data(usize),
    Partition,
    Rescued,
    Corrupt,
    Metadata,
}

/// What every thread of a scan needs to know.
pub(super) struct Scan {
    pub spec: Arc<ReadFiles>,
    pub schema: SourceSchema,
    /// The columns to decode from the files' contents: those asked for, or all if what doesn't fit is asked for.
    pub data: Vec<FieldRef>,
    pub wants_rescued: bool,
    files: Arc<[FileEntry]>,
    counters: Arc<ScanCounters>,
    output: SchemaRef,
    origins: Vec<Origin>,
}

impl Scan {
    fn new(table: &FilesTable, projection: Option<&Vec<usize>>) -> Result<Scan> {
        let output = match projection {
            Some(columns) => {
                Arc::new(table.table_schema.project(columns).map_err(|error| Error::Internal(error.to_string()))?)
            }
            None => table.table_schema.clone(),
        };
        let role = |field: &FieldRef| match &field.name()[..] {
            METADATA if matches!(field.data_type(), ArrowType::Struct(fields) if *fields == metadata_fields()) => None,
            name => Some(table.schema.role(name)),
        };
        let wants_rescued = output.fields().iter().any(|field| role(field) == Some(Role::Rescued));
        let data: Vec<FieldRef> = (if wants_rescued { &table.table_schema } else { &output })
            .fields()
            .iter()
            .filter(|field| role(field) == Some(Role::Data))
            .cloned()
            .collect();
        let origin = |field: &FieldRef| match role(field) {
            None => Origin::Metadata,
            Some(Role::Partition) => Origin::Partition,
            Some(Role::Rescued) => Origin::Rescued,
            Some(Role::Corrupt) => Origin::Corrupt,
            Some(Role::Data) => Origin::Data(
                data.iter().position(|column| column.name() == field.name()).expect("`data` has what is asked for"),
            ),
        };
        Ok(Scan {
            spec: table.spec.clone(),
            schema: table.schema.clone(),
            wants_rescued,
            files: table.files.clone(),
            counters: table.counters.clone(),
            origins: output.fields().iter().map(origin).collect(),
            output,
            data,
        })
    }

    pub fn names(&self) -> Names {
        Names { is_case_sensitive: self.spec.reader_case_sensitive }
    }

    /// Tells whether a field of a file has its place in the schema, asked for or not.
    pub fn is_known(&self, name: &str) -> bool {
        let has = |field: &FieldRef| match self.schema.role(field.name()) {
            Role::Data if self.spec.reader_case_sensitive => field.name() == name,
            _ => field.name().eq_ignore_ascii_case(name),
        };
        self.schema.schema.fields().iter().any(has)
    }

    /// As [`Scan::is_known`], whatever the case: such a name can't become a column of its own.
    pub fn is_known_in_any_case(&self, name: &str) -> bool {
        self.schema.schema.fields().iter().any(|field| field.name().eq_ignore_ascii_case(name))
    }

    fn run(&self, parts: &[Part], sender: Sender<Result<RecordBatch, DataFusionError>>) -> Result<()> {
        let mut sink = Sink { coalescer: BatchCoalescer::new(self.output.clone(), BATCH_ROWS), sender };
        for part in parts {
            let file = &self.files[part.file];
            match self.read(file, *part, &mut sink) {
                Err(error) if may_skip(&self.spec, &error) => {
                    tracing::warn!(file = file.path, %error, "file skipped");
                    ScanCounters::add(&self.counters.files_skipped, 1);
                }
                result => result?,
            }
        }
        sink.finish()
    }

    fn read(&self, file: &FileEntry, part: Part, sink: &mut Sink) -> Result<()> {
        if part.start == 0 {
            ScanCounters::add(&self.counters.files, 1);
        }
        self.counters.bytes.fetch_add(part.end - part.start, Relaxed);
        let mut output = Output::new(self, file, part, sink)?;
        match self.spec.format {
            FileFormat::Json => read_json::read(file, part, &mut output),
            FileFormat::Csv => csv::read(file, part, &mut output),
            FileFormat::Parquet => parquet::read(file, part, &mut output),
            FileFormat::Avro => avro::read(file, &mut output),
            FileFormat::Text => text::read(file, part, self.spec.whole_text, &mut output),
        }
    }
}

/// Tells whether the options let a scan go on without the file that failed.
pub(super) fn may_skip(spec: &ReadFiles, error: &Error) -> bool {
    match error.code() {
        "file-missing" => spec.ignore_missing_files,
        "corrupt-file" => spec.ignore_corrupt_files,
        _ => false,
    }
}

/// Where the batches of a partition go, small ones put together.
struct Sink {
    coalescer: BatchCoalescer,
    sender: Sender<Result<RecordBatch, DataFusionError>>,
}

impl Sink {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_columns() == 0 || batch.num_rows() >= BATCH_ROWS / 2 {
            self.flush()?;
            return self.send(batch);
        }
        self.coalescer.push_batch(batch).map_err(|error| Error::Internal(error.to_string()))?;
        while let Some(batch) = self.coalescer.next_completed_batch() {
            self.send(batch)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.coalescer.finish_buffered_batch().map_err(|error| Error::Internal(error.to_string()))?;
        while let Some(batch) = self.coalescer.next_completed_batch() {
            self.send(batch)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.flush()
    }

    /// Fails when nobody reads any more, which ends the thread.
    fn send(&self, batch: RecordBatch) -> Result<()> {
        self.sender.blocking_send(Ok(batch)).map_err(|_| Error::Canceled)
    }
}

/// Rows of one file as a format decodes them.
pub(super) struct Decoded {
    /// One for each of [`Output::data`].
    pub columns: Vec<ArrayRef>,
    /// What doesn't fit, if there is any.
    pub rescued: Option<ArrayRef>,
    /// Records that can't be read, if there are any.
    pub corrupt: Option<ArrayRef>,
    pub rows: usize,
}

/// Takes the rows of one part of a file and what there is to say about them.
pub(super) struct Output<'a> {
    pub scan: &'a Scan,
    file: &'a FileEntry,
    sink: &'a mut Sink,
    /// For each output column, the value that the path or the file's own facts give it.
    constants: Vec<Option<ScalarValue>>,
    /// Values of the path that don't fit their columns.
    unfit: Map<String, Value>,
}

impl<'a> Output<'a> {
    fn new(scan: &'a Scan, file: &'a FileEntry, part: Part, sink: &'a mut Sink) -> Result<Output<'a>> {
        let values: Vec<_> = partition::values(&file.path)
            .into_iter()
            .filter(|(name, _)| partition::is_wanted(&scan.spec, name))
            .collect();
        let mut output = Output { scan, file, sink, constants: Vec::new(), unfit: Map::new() };
        for (field, origin) in scan.output.fields().iter().zip(&scan.origins) {
            let null = || ScalarValue::try_from(field.data_type()).map_err(|error| Error::Internal(error.to_string()));
            let constant = match (origin, partition::value_of(&values, field.name())) {
                (Origin::Metadata, _) => Some(metadata(file, part)?),
                (Origin::Partition, None) => Some(null()?),
                // The path's value wins over a column of the file.
                (Origin::Partition | Origin::Data(_), Some(value)) => {
                    Some(match partition::constant(value, field.data_type()) {
                        Some(constant) => constant,
                        None => {
                            output.rescue_path_value(field, value.unwrap_or_default())?;
                            null()?
                        }
                    })
                }
                _ => None,
            };
            output.constants.push(constant);
        }
        if part.start == 0 && scan.schema_may_grow() {
            let columns = schema_from_arrow(&scan.schema.schema).map_err(Error::Internal)?;
            for name in partition::unknown(&scan.spec, &values, &columns) {
                output.add_unknown(name, 1);
            }
            output.check_unknown()?;
        }
        Ok(output)
    }

    fn rescue_path_value(&mut self, field: &Field, value: &str) -> Result<()> {
        if self.scan.schema.rescued.is_none() {
            return Err(Error::user(
                "partition-value-misfit",
                format!(
                    "`{value}` in the path `{}` doesn't fit column `{}`, which is {}",
                    self.file.path,
                    field.name(),
                    field.data_type()
                ),
                format!("declare the column's type: `schemaHints => \"{} STRING\"`", field.name()),
            ));
        }
        self.unfit.insert(field.name().clone(), value.into());
        Ok(())
    }

    /// The columns to decode.
    pub fn data(&self) -> &'a [FieldRef] {
        &self.scan.data
    }

    pub fn counters(&self) -> &'a ScanCounters {
        &self.scan.counters
    }

    /// Takes decoded rows.
    pub fn push(&mut self, decoded: Decoded) -> Result<()> {
        let Decoded { columns, rescued, corrupt, rows } = decoded;
        if rows == 0 {
            return Ok(());
        }
        let rescued = if self.unfit.is_empty() {
            rescued
        } else {
            ScanCounters::add(&self.counters().rescued_values, rows * self.unfit.len());
            Some(rescue::add_to_all(rescued, rows, &self.file.path, &self.unfit))
        };
        let mut output = Vec::with_capacity(self.constants.len());
        for ((field, origin), constant) in self.scan.output.fields().iter().zip(&self.scan.origins).zip(&self.constants)
        {
            output.push(match (constant, origin) {
                (Some(constant), _) => {
                    constant.to_array_of_size(rows).map_err(|error| Error::Internal(error.to_string()))?
                }
                (None, Origin::Data(index)) => columns[*index].clone(),
                (None, Origin::Rescued) => rescued.clone().unwrap_or_else(|| new_null_array(field.data_type(), rows)),
                (None, Origin::Corrupt) => corrupt.clone().unwrap_or_else(|| new_null_array(field.data_type(), rows)),
                (None, Origin::Partition | Origin::Metadata) => unreachable!("these are constants"),
            });
        }
        ScanCounters::add(&self.counters().rows, rows);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.scan.output.clone(), output, &options);
        self.sink.push(batch.map_err(|error| Error::Internal(format!("batch of `{}`: {error}", self.file.path)))?)
    }

    /// Counts values of a field that the schema doesn't have.
    pub fn add_unknown(&self, name: &str, count: u64) {
        self.counters().add_unknown(name, count);
    }

    /// Ends the scan if fields were unknown and the schema may or must not go without them. Call it after each chunk,
    /// so that little is decoded in vain.
    pub fn check_unknown(&self) -> Result<()> {
        if !self.scan.schema_may_grow() {
            return Ok(());
        }
        let fields: Vec<String> = self.counters().unknown_fields().into_keys().collect();
        if fields.is_empty() {
            return Ok(());
        }
        match self.scan.spec.schema_evolution_mode {
            SchemaEvolutionMode::FailOnNewColumns => Err(Error::user(
                "new-columns",
                format!("`{}` has columns that the schema doesn't: {}", self.file.path, fields.join(", ")),
                "add them to `schema` or `schemaHints`, or set `schemaEvolutionMode => \"addNewColumns\"`",
            )),
            _ => Err(Error::UnknownFields { fields }),
        }
    }
}

impl Scan {
    fn schema_may_grow(&self) -> bool {
        matches!(
            self.spec.schema_evolution_mode,
            SchemaEvolutionMode::AddNewColumns
                | SchemaEvolutionMode::AddNewColumnsWithTypeWidening
                | SchemaEvolutionMode::FailOnNewColumns
        )
    }
}

fn metadata(file: &FileEntry, part: Part) -> Result<ScalarValue> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let long = |value: u64| ScalarValue::Int64(i64::try_from(value).ok());
    let values = [
        ScalarValue::Utf8(Some(file.path.clone())),
        ScalarValue::Utf8(Some(name.to_string())),
        long(file.size),
        ScalarValue::TimestampMicrosecond(Some(file.modified_us), Some(crate::data_type::UTC.into())),
        long(part.start),
        long(part.end - part.start),
    ];
    let arrays: Result<Vec<ArrayRef>, _> = values.iter().map(|value| value.to_array()).collect();
    let arrays = arrays.map_err(|error| Error::Internal(error.to_string()))?;
    let fields = metadata_fields();
    Ok(ScalarValue::Struct(Arc::new(arrow::array::StructArray::new(fields, arrays, None))))
}

/// A partition of a scan.
struct Share {
    scan: Arc<Scan>,
    /// What it reads, in order.
    parts: Vec<Part>,
}

impl fmt::Debug for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} parts of {} files", self.parts.len(), self.scan.files.len())
    }
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.scan.output
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.scan.output.clone(), 2);
        let sender = builder.tx();
        let (scan, parts) = (self.scan.clone(), self.parts.clone());
        builder.spawn_blocking(move || match scan.run(&parts, sender) {
            Err(Error::Canceled) => Ok(()),
            result => Ok(result?),
        });
        builder.build()
    }
}
