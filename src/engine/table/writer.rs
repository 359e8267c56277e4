//! Writes data files: batches in, Parquet files with statistics out, in bounded memory. Nothing is part of
//! the table until `Table::commit` says so.
//!
//! Synchronous on purpose: a flow decodes, transforms and encodes in one thread, and as many threads as the
//! machine has work side by side, each with a writer of its own.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::row::OwnedRow;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::action::{Add, PartitionValues, encode_path};
use super::partition::{self, Splitter};
use super::{log, schema, stats};
use crate::error::{Error, Result};

/// Limits and choices of a writer.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// A file is closed when it has grown to this size.
    pub file_bytes: usize,
    /// A row group is closed at this encoded size, or at `row_group_rows`. Readers share a file by its row groups, so
    /// they should be far smaller than a file.
    pub row_group_bytes: usize,
    pub row_group_rows: usize,
    /// What all row groups in progress may hold together, over all partitions.
    pub memory_bytes: usize,
    /// How many partitions may have a file open; beyond that the fullest file is closed.
    pub open_files: usize,
    /// Snappy and zstd(1) take about the same time (0.39 s and 0.43 s for 490,000 JSON-like events on one core);
    /// zstd's files are 40 % smaller, and slower to read.
    pub compression: Compression,
    /// Whether columns are dictionary-encoded. It costs half as much time again and hardly makes files smaller,
    /// as events are mostly identifiers and times.
    pub dictionary: bool,
    /// Whether `finish_located` can say where each row is. Without partitions it always can.
    pub locate_rows: bool,
    /// Which one it is of the tasks that write the files of a commit, in the order of their rows: names of files tell.
    pub task: usize,
    /// When the files are made to survive a power failure. A killed process loses nothing either way.
    pub sync: SyncAt,
}

/// When data files are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncAt {
    /// Each when it is closed; `finish` waits for it.
    Finish,
    /// All together with the deletion vectors, in `Table::prepare`: the least waiting for a small batch.
    Prepare,
    Never,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions {
            file_bytes: 128 << 20,
            row_group_bytes: 8 << 20,
            row_group_rows: 1 << 20,
            memory_bytes: 64 << 20,
            open_files: 64,
            compression: Compression::SNAPPY,
            dictionary: false,
            locate_rows: false,
            task: 0,
            sync: SyncAt::Finish,
        }
    }
}

/// A finished data file that a commit can add. Dropped without having been committed, it is deleted.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// Relative to the table's folder, as on disk.
    pub path: String,
    pub partition_values: PartitionValues,
    pub size: u64,
    pub rows: u64,
    /// See `stats.rs`.
    pub stats: String,
    pub modified_ms: i64,
    /// Keeps a vacuum away until the file is committed or forgotten.
    in_progress: Arc<InProgress>,
    /// `Table::prepare` has to make it durable.
    pub(super) is_to_sync: bool,
}

impl DataFile {
    pub(super) fn in_progress(&self) -> Arc<InProgress> {
        Arc::clone(&self.in_progress)
    }

    /// The file as the table's log names it.
    pub fn log_path(&self) -> String {
        encode_path(&self.path)
    }

    /// The action that adds the file to its table.
    pub(super) fn to_add(&self, data_change: bool) -> Add {
        Add {
            path: encode_path(&self.path),
            partition_values: self.partition_values.clone(),
            size: self.size as i64,
            modification_time: self.modified_ms,
            data_change,
            stats: Some(self.stats.clone()),
            tags: None,
            deletion_vector: None,
        }
    }
}

static IN_PROGRESS: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// Whether a writer of this process made the file and nobody has decided yet what becomes of it.
pub(super) fn is_in_progress(path: &Path) -> bool {
    IN_PROGRESS.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
}

/// A file that is being written or waits for its commit. If it isn't kept, it is deleted when nobody holds it
/// any more, as far as possible; after a crash a vacuum finds it.
#[derive(Debug)]
pub(super) struct InProgress {
    path: PathBuf,
    keep: AtomicBool,
}

impl InProgress {
    pub(super) fn new(path: PathBuf) -> InProgress {
        IN_PROGRESS.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
        InProgress { path, keep: AtomicBool::new(false) }
    }

    /// Says whether the file is to stay when nobody holds this value any more.
    pub(super) fn set_keep(&self, keep: bool) {
        self.keep.store(keep, Ordering::SeqCst);
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        if !*self.keep.get_mut() {
            let _ = fs::remove_file(&self.path);
        }
        IN_PROGRESS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

/// Where a run of written rows is: they lie in `file` (of `Located::files`) from `first_row` on, in the order in which
/// they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRun {
    pub file: usize,
    pub first_row: u64,
    pub rows: u64,
}

/// What a writer has written, and where each row of it is.
#[derive(Debug)]
pub struct Located {
    pub files: Vec<DataFile>,
    /// All rows in the order in which they were given to the writer. Without partitions a file is one run.
    pub runs: Vec<RowRun>,
}

impl Located {
    /// (index in `files`, row in that file) of each row, in the order in which they were given to the writer.
    pub fn locations(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.runs.iter().flat_map(|run| (run.first_row..run.first_row + run.rows).map(|row| (run.file, row)))
    }
}

/// Writes the batches of one thread. Dropped without `finish`, it leaves nothing behind.
pub struct DataWriter {
    table_dir: PathBuf,
    /// Put before the path of each file: empty, or `gen-2/`.
    prefix: String,
    /// Part of the names of its files.
    id: uuid::Uuid,
    schema: SchemaRef,
    file_fields: Vec<FieldRef>,
    file_columns: Vec<usize>,
    partition_by: Vec<String>,
    splitter: Option<Splitter>,
    options: WriterOptions,
    properties: WriterProperties,
    open: HashMap<Option<OwnedRow>, OpenFile>,
    /// Each with its number.
    done: Vec<(usize, DataFile)>,
    /// Files are numbered as they are created.
    created: usize,
    rows: u64,
    /// `RowRun::file` is the file's number.
    runs: Vec<RowRun>,
}

struct OpenFile {
    number: usize,
    rows: u64,
    writer: ArrowWriter<File>,
    path: String,
    partition_values: PartitionValues,
    in_progress: Arc<InProgress>,
}

impl DataWriter {
    /// Starts a writer for a table with this schema and partitioning; files go below `sub_folder` of its folder.
    /// Nothing is created before the first row.
    pub fn new(
        table_dir: &Path,
        sub_folder: Option<&str>,
        schema: SchemaRef,
        partition_by: &[String],
        options: WriterOptions,
    ) -> Result<DataWriter> {
        let partitions =
            partition_by.iter().map(|name| schema.index_of(name)).collect::<std::result::Result<Vec<_>, _>>();
        let partitions = partitions.map_err(|error| Error::Internal(format!("partition column: {error}")))?;
        let file_columns = (0..schema.fields().len()).filter(|index| !partitions.contains(index)).collect();
        let splitter = (!partitions.is_empty()).then(|| Splitter::new(&schema, partitions)).transpose();
        let properties = WriterProperties::builder()
            .set_compression(options.compression)
            .set_dictionary_enabled(options.dictionary)
            .set_max_row_group_row_count(Some(options.row_group_rows))
            .set_max_row_group_bytes(Some(options.row_group_bytes))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(concat!("flowbench ", env!("CARGO_PKG_VERSION")).to_owned());
        Ok(DataWriter {
            table_dir: table_dir.to_path_buf(),
            prefix: sub_folder.map(|folder| format!("{}/", folder.trim_end_matches('/'))).unwrap_or_default(),
            id: uuid::Uuid::new_v4(),
            file_fields: schema::file_fields(&schema, partition_by),
            file_columns,
            partition_by: partition_by.to_vec(),
            splitter: splitter.map_err(|error| Error::Internal(format!("partition column: {error}")))?,
            schema,
            options,
            properties: properties.build(),
            open: HashMap::new(),
            done: Vec::new(),
            created: 0,
            rows: 0,
            runs: Vec::new(),
        })
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes a batch; columns are taken by name, those that it lacks are NULL.
    ///
    /// # Errors
    /// `rows-do-not-fit` if the batch has other columns or types than the table, or NULL where it may not be.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let batch = schema::conform(batch, &self.schema).map_err(|why| {
            Error::user(
                "rows-do-not-fit",
                format!("the rows don't fit the table at `{}`: {why}", self.table_dir.display()),
                "change the query, or refresh the table in full with the new schema",
            )
        })?;
        self.rows += batch.num_rows() as u64;
        match &self.splitter {
            None => {
                let run = self.write_part(None, PartitionValues::new(), &batch)?;
                self.push_run(run);
            }
            Some(splitter) => {
                let parts = splitter.split(&batch).map_err(|error| self.failed(error.into()))?;
                let mut places = vec![(0, 0); if self.options.locate_rows { batch.num_rows() } else { 0 }];
                for part in parts {
                    let columns = self.splitter.as_ref().expect("it just split").columns(&part.rows);
                    let values = partition::values_at(&self.partition_by, &columns, 0);
                    let values = values.map_err(|error| self.failed(error.into()))?;
                    let run = self.write_part(Some(part.key), values, &part.rows)?;
                    if self.options.locate_rows {
                        for (row, index) in (run.first_row..).zip(&part.indices) {
                            places[*index as usize] = (run.file, row);
                        }
                    }
                }
                places.into_iter().for_each(|(file, first_row)| self.push_run(RowRun { file, first_row, rows: 1 }));
            }
        }
        Ok(())
    }

    fn push_run(&mut self, run: RowRun) {
        match self.runs.last_mut() {
            Some(last) if last.file == run.file && last.first_row + last.rows == run.first_row => last.rows += run.rows,
            _ => self.runs.push(run),
        }
    }

    /// Writes rows of one partition, all into one file.
    fn write_part(&mut self, key: Option<OwnedRow>, values: PartitionValues, rows: &RecordBatch) -> Result<RowRun> {
        let rows = rows.project(&self.file_columns).map_err(|error| self.failed(error.into()))?;
        let mut file = match self.open.remove(&key) {
            Some(file) => file,
            None => {
                if self.open.len() >= self.options.open_files {
                    self.close_fullest()?;
                }
                self.create(values)?
            }
        };
        file.writer.write(&rows).map_err(|error| self.failed(error))?;
        let run = RowRun { file: file.number, first_row: file.rows, rows: rows.num_rows() as u64 };
        file.rows += run.rows;
        if file.writer.bytes_written() + file.writer.in_progress_size() >= self.options.file_bytes {
            self.close(file)?;
            return Ok(run);
        }
        self.open.insert(key, file);
        while self.open.values().map(|file| file.writer.memory_size()).sum::<usize>() > self.options.memory_bytes {
            let fullest = self.open.values_mut().max_by_key(|file| file.writer.memory_size());
            match fullest.expect("something takes the memory").writer.flush() {
                Ok(()) if self.open.values().all(|file| file.writer.in_progress_rows() == 0) => break,
                Ok(()) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(run)
    }

    fn create(&mut self, partition_values: PartitionValues) -> Result<OpenFile> {
        let mut path = self.prefix.clone();
        if !self.partition_by.is_empty() {
            path.push_str(&partition::folder(&self.partition_by, &partition_values));
            path.push('/');
        }
        // As Spark names them, so that names sort as the files were begun.
        path.push_str(&format!("part-{:05}-{}-c{:05}.parquet", self.options.task, self.id, self.created));
        let file_path = self.table_dir.join(&path);
        let folder = file_path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
        let in_progress = Arc::new(InProgress::new(file_path.clone()));
        let file = File::create_new(&file_path).map_err(|error| Error::io("create", &file_path, error))?;
        let schema = Arc::new(Schema::new(self.file_fields.clone()));
        // Arrow's own schema in the footer would only tell other readers about our in-memory types.
        let options = ArrowWriterOptions::new().with_properties(self.properties.clone()).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, schema, options).map_err(|error| self.failed(error))?;
        self.created += 1;
        Ok(OpenFile { number: self.created - 1, rows: 0, writer, path, partition_values, in_progress })
    }

    fn close_fullest(&mut self) -> Result<()> {
        let size = |file: &OpenFile| file.writer.bytes_written() + file.writer.in_progress_size();
        let fullest = self.open.iter().max_by_key(|(_, file)| size(file)).map(|(key, _)| key.clone());
        match fullest.and_then(|key| self.open.remove(&key)) {
            Some(file) => self.close(file),
            None => Ok(()),
        }
    }

    fn close(&mut self, mut file: OpenFile) -> Result<()> {
        let footer = file.writer.finish().map_err(|error| self.failed(error))?;
        if self.options.sync == SyncAt::Finish {
            let path = self.table_dir.join(&file.path);
            file.writer.inner().sync_all().map_err(|error| Error::io("sync", path, error))?;
        }
        let number = file.number;
        let file = DataFile {
            size: file.writer.bytes_written() as u64,
            rows: footer.file_metadata().num_rows() as u64,
            stats: stats::from_footer(&self.file_fields, &footer),
            modified_ms: now_ms(),
            path: file.path,
            partition_values: file.partition_values,
            in_progress: file.in_progress,
            is_to_sync: self.options.sync == SyncAt::Prepare,
        };
        self.done.push((number, file));
        Ok(())
    }

    /// Closes the files that are open; rows that come go into new ones.
    pub fn close_files(&mut self) -> Result<()> {
        let mut open: Vec<OpenFile> = self.open.drain().map(|(_, file)| file).collect();
        open.sort_by(|a, b| a.partition_values.cmp(&b.partition_values));
        open.into_iter().try_for_each(|file| self.close(file))
    }

    /// Closes all files and hands them over.
    pub fn finish(self) -> Result<Vec<DataFile>> {
        Ok(self.finish_located()?.files)
    }

    /// Closes all files and hands them over, and says where each row is; see `WriterOptions::locate_rows`.
    pub fn finish_located(mut self) -> Result<Located> {
        self.close_files()?;
        if self.options.sync == SyncAt::Finish {
            log::sync_folders(&self.table_dir, self.done.iter().map(|(_, file)| file.in_progress.path.as_path()))?;
        }
        self.done.sort_by_key(|(number, _)| *number);
        let mut index_of = vec![0; self.created];
        self.done.iter().enumerate().for_each(|(index, (number, _))| index_of[*number] = index);
        self.runs.iter_mut().for_each(|run| run.file = index_of[run.file]);
        Ok(Located { files: self.done.into_iter().map(|(_, file)| file).collect(), runs: self.runs })
    }

    fn failed(&self, error: ParquetError) -> Error {
        let source = match error {
            ParquetError::External(source) => match source.downcast::<std::io::Error>() {
                Ok(io) => *io,
                Err(other) => std::io::Error::other(other),
            },
            error => std::io::Error::other(error),
        };
        Error::io("write a data file below", &self.table_dir, source)
    }
}

/// Now, as Delta writes times.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
