//! Reading data files with DataFusion: a whole table at a version, or exactly the files that a stream's batch
//! is made of. Types come out as `schema::canonical` has them, never as views or dictionaries; columns and
//! nested fields that a file lacks are NULL.
//!
//! Files are skipped by partition values and statistics when the scan is planned, and again when it runs (for
//! filters that appear only then). Of a file with deleted rows the others are selected, which DataFusion's Parquet
//! reader does while it decodes; measured on one core, 12 columns, rows deleted at random: 1 % costs a sixth more than
//! reading all, 10 % a fifth. Tables with column mapping, which other programs wrote, are read by delta-rs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::pruning::PrunableStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, DataFusionError, ScalarValue, internal_datafusion_err};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ExecutionPlan, Statistics};
use deltalake_core::delta_datafusion::{DeltaScanConfig, DeltaScanNext, FileSelection};
use deltalake_core::kernel::Snapshot;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};

use super::action::{Add, decode_path};
use super::state::State;
use super::{AddedFile, FileRows, RowChanges, RowSet, Table, schema, state, stats};
use crate::error::{Error, Result};

impl Table {
    /// The table for a batch query, at this handle's version or at an older one. Later commits don't change
    /// what the provider reads; a vacuum with a sensible retention doesn't take its files.
    ///
    /// # Errors
    /// `table-version-missing` if the log no longer reaches back to `version`.
    pub async fn provider(&self, version: Option<i64>) -> Result<Arc<dyn TableProvider>> {
        let older = match version.filter(|version| *version != self.state.version) {
            None => None,
            Some(version) => Some(self.state_at(version)?),
        };
        let state = older.as_ref().unwrap_or(&self.state);
        if state.needs_delta_reader() {
            return self.delta_provider(state.version, None).await;
        }
        // Oldest first, so that the first rows of a table are the same as long as it only grows.
        let mut files: Vec<Arc<Add>> = state.files.values().cloned().collect();
        files.sort_by(|a, b| a.by_age(b));
        let files = files.into_iter().map(|add| self.without_deleted(add)).collect::<Result<_>>()?;
        Ok(Arc::new(DataFiles::new(&self.dir, &state.schema, &state.metadata.partition_columns, files)))
    }

    /// Reads exactly these files, with the table's schema of now and without the rows that were deleted by
    /// `AddedFile::version`. They may have left the table since, as long as no vacuum took them.
    ///
    /// # Errors
    /// `table-feature-unsupported` if the table has column mapping and the files belong to different versions.
    pub async fn files_provider(&self, files: Vec<AddedFile>) -> Result<Arc<dyn TableProvider>> {
        if self.state.needs_delta_reader() {
            let version = files.first().map_or(self.state.version, |file| file.version);
            if files.iter().any(|file| file.version != version) {
                return Err(self.column_mapping("a batch spans several of its versions"));
            }
            return self.delta_provider(version, Some(files.into_iter().map(|file| file.path).collect())).await;
        }
        let files = files.into_iter().map(|file| self.without_deleted(Arc::new(file.into_add())));
        let files = files.collect::<Result<_>>()?;
        Ok(Arc::new(DataFiles::new(&self.dir, &self.state.schema, self.partition_by(), files)))
    }

    /// Reads exactly these rows, deleted or not, in the order of the files and of their rows (if one partition reads
    /// them). The files may have left the table since, as long as no vacuum took them.
    ///
    /// # Errors
    /// `table-feature-unsupported` if the table has column mapping.
    pub fn rows_provider(&self, rows: Vec<FileRows>) -> Result<Arc<dyn TableProvider>> {
        if self.state.needs_delta_reader() {
            return Err(self.column_mapping("single rows of it are to be read"));
        }
        let only =
            |FileRows { file, rows }| ReadFile { add: Arc::new(file.into_add()), rows: ReadRows::Only(rows.into()) };
        let files = rows.into_iter().map(only).collect();
        Ok(Arc::new(DataFiles::new(&self.dir, &self.state.schema, self.partition_by(), files)))
    }

    /// Says, before they are read, why the rows of a version can't be.
    ///
    /// # Errors
    /// `change-data-missing` if a vacuum took a file; `table-feature-unsupported` if the table has column mapping.
    pub fn check_readable(&self, changes: &RowChanges) -> Result<()> {
        let mut files = changes.removed.iter().chain(&changes.added).map(|rows| &rows.file).peekable();
        if self.state.needs_delta_reader() && files.peek().is_some() {
            return Err(self.column_mapping("single rows of it are to be read"));
        }
        let is_gone = |file: &&AddedFile| decode_path(&self.dir, &file.path).is_none_or(|path| !path.exists());
        match files.find(is_gone) {
            None => Ok(()),
            Some(file) => Err(Error::user(
                "change-data-missing",
                format!(
                    "version {} of `{}` changed rows of `{}`, which is gone",
                    changes.version, self.name, file.path
                ),
                "files that left the table are kept as long as its property delta.deletedFileRetentionDuration says; \
                 read the table from its start again: `flowbench run --full-refresh` of the table that reads its changes",
            )),
        }
    }

    fn without_deleted(&self, add: Arc<Add>) -> Result<ReadFile> {
        let rows = self.deleted_rows(&add)?.map_or(ReadRows::All, ReadRows::Except);
        Ok(ReadFile { add, rows })
    }

    fn column_mapping(&self, why: &str) -> Error {
        Error::user(
            "table-feature-unsupported",
            format!("table `{}` has column mapping, and {why}", self.name),
            "rewrite the table without it, or read one version a batch",
        )
    }

    /// The state at an older version.
    pub(super) fn state_at(&self, version: i64) -> Result<State> {
        State::read(&self.dir, Some(version))?.ok_or_else(|| state::missing_version(&self.dir, version))
    }

    async fn delta_provider(&self, version: i64, paths: Option<Vec<String>>) -> Result<Arc<dyn TableProvider>> {
        let failed = |source| Error::Table { action: "read", table: self.name.clone(), source: Box::new(source) };
        let log_store = self.delta_rs().map_err(failed)?.log_store();
        let snapshot = Snapshot::try_new(log_store.as_ref(), Some(version as u64)).await.map_err(failed)?;
        let config = DeltaScanConfig {
            schema_force_view_types: false,
            ..DeltaScanConfig::new().with_wrap_partition_values(false)
        };
        let scan = DeltaScanNext::new(Arc::new(snapshot), config).map_err(|error| failed(error.into()))?;
        Ok(match paths {
            None => Arc::new(scan),
            Some(paths) => Arc::new(scan.with_file_selection(FileSelection::from_file_paths(paths))),
        })
    }

    /// The table as delta-rs sees it, not loaded yet.
    pub(super) fn delta_rs(&self) -> std::result::Result<deltalake_core::DeltaTable, deltalake_core::DeltaTableError> {
        let url = url::Url::from_directory_path(&self.dir)
            .map_err(|()| deltalake_core::DeltaTableError::generic("the folder's path is not absolute"))?;
        deltalake_core::DeltaTableBuilder::from_url(url)?.build()
    }
}

/// A data file and which of its rows are read.
#[derive(Debug)]
struct ReadFile {
    add: Arc<Add>,
    rows: ReadRows,
}

#[derive(Debug)]
enum ReadRows {
    All,
    Except(Arc<RowSet>),
    Only(Arc<RowSet>),
}

impl ReadFile {
    /// How many rows are read, if that is known.
    fn count(&self) -> Option<u64> {
        match &self.rows {
            ReadRows::All | ReadRows::Except(_) => self.add.live_rows(),
            ReadRows::Only(rows) => Some(rows.len()),
        }
    }

    /// Which of the file's rows are read; `None` for all.
    fn selection(&self, table_dir: &Path) -> Result<Option<RowSelection>> {
        let (set, is_read) = match &self.rows {
            ReadRows::All => return Ok(None),
            ReadRows::Except(rows) => (rows, false),
            ReadRows::Only(rows) => (rows, true),
        };
        let total = stats::file_rows(table_dir, &self.add)?;
        if is_read && set.len() == total {
            return Ok(None);
        }
        let mut selectors = Vec::new();
        let mut push = |rows: u64, is_read: bool| match is_read {
            true => selectors.push(RowSelector::select(rows as usize)),
            false => selectors.push(RowSelector::skip(rows as usize)),
        };
        let mut done = 0;
        for row in set.iter() {
            push(row - done, !is_read);
            push(1, is_read);
            done = row + 1;
        }
        push(total.saturating_sub(done), !is_read);
        Ok(Some(selectors.into()))
    }
}

/// Parquet files of a Delta table as one table.
#[derive(Debug)]
struct DataFiles {
    table_dir: PathBuf,
    /// As the table has it.
    schema: SchemaRef,
    /// As DataFusion wants it: the files' columns, then the partition columns.
    scan_schema: TableSchema,
    files: Vec<ReadFile>,
}

impl DataFiles {
    fn new(table_dir: &Path, schema: &SchemaRef, partition_by: &[String], mut files: Vec<ReadFile>) -> DataFiles {
        files.retain(|file| file.count() != Some(0));
        let file_schema = Schema::new(schema::file_fields(schema, partition_by));
        let partition_fields =
            partition_by.iter().filter_map(|name| Some(Arc::clone(schema.fields().find(name)?.1))).collect::<Vec<_>>();
        DataFiles {
            table_dir: table_dir.to_path_buf(),
            schema: Arc::clone(schema),
            scan_schema: TableSchema::builder(Arc::new(file_schema))
                .with_table_partition_cols(partition_fields)
                .build(),
            files,
        }
    }

    /// The values of the partition columns, in their types.
    fn partition_values(&self, add: &Add) -> datafusion::common::Result<Vec<ScalarValue>> {
        let value = |field: &Arc<arrow::datatypes::Field>| match add.partition_values.get(field.name()) {
            Some(Some(text)) if !text.is_empty() => ScalarValue::try_from_string(text.clone(), field.data_type()),
            _ => ScalarValue::try_from(field.data_type()),
        };
        self.scan_schema.table_partition_cols().iter().map(value).collect()
    }

    /// The file with what is known of the columns at `columns` of the scan's schema.
    fn file(&self, read: &ReadFile, columns: &[usize]) -> datafusion::common::Result<PartitionedFile> {
        let add = &read.add;
        let path = decode_path(&self.table_dir, &add.path)
            .ok_or_else(|| DataFusionError::Plan(format!("data file `{}` is not on this machine", add.path)))?;
        let location = object_store::path::Path::from_absolute_path(&path)
            .map_err(|error| internal_datafusion_err!("path of data file `{}`: {error}", path.display()))?;
        let mut file = PartitionedFile::new("", u64::try_from(add.size).unwrap_or(0));
        file.object_meta.location = location;
        file.partition_values = self.partition_values(add)?;
        let file_columns = self.scan_schema.file_schema().fields().len();
        let stored: Vec<usize> = columns.iter().copied().filter(|column| *column < file_columns).collect();
        let statistics = stats::to_datafusion(add, read.count(), self.scan_schema.table_schema(), &stored);
        file.statistics = statistics.map(|mut statistics| {
            // Set here and not by DataFusion, which takes it that partition values are never NULL.
            for (value, column) in file.partition_values.iter().zip(&mut statistics.column_statistics[file_columns..]) {
                if value.is_null() {
                    column.null_count = statistics.num_rows;
                } else {
                    column.min_value = Precision::Exact(value.clone());
                    column.max_value = Precision::Exact(value.clone());
                    column.null_count = Precision::Exact(0);
                }
            }
            Arc::new(statistics)
        });
        Ok(file)
    }

    /// The files that can hold a row that passes the filters, each with the rows to read of it.
    fn files_for(&self, session: &dyn Session, filters: &[Expr]) -> datafusion::common::Result<Vec<PartitionedFile>> {
        let table_schema = self.scan_schema.table_schema();
        let mut columns: Vec<usize> = filters
            .iter()
            .flat_map(|filter| filter.column_refs().into_iter().cloned().collect::<Vec<_>>())
            .filter_map(|column| table_schema.index_of(&column.name).ok())
            .collect();
        columns.sort_unstable();
        columns.dedup();
        let files = self.files.iter().map(|file| self.file(file, &columns));
        let files = files.collect::<datafusion::common::Result<Vec<_>>>()?;
        let keep = self.keep(session, filters, &files, &columns)?;
        let kept = files.into_iter().zip(&self.files).zip(keep).filter(|(_, keep)| *keep);
        let select = |(file, read): (PartitionedFile, &ReadFile)| {
            let rows = read.selection(&self.table_dir).map_err(|error| DataFusionError::External(Box::new(error)))?;
            Ok(match rows {
                None => file,
                Some(rows) => file.with_extension(ParquetRowSelection::new(rows)),
            })
        };
        kept.map(|(file, _)| select(file)).collect()
    }

    /// Which files can hold a row that passes the filters.
    fn keep(
        &self,
        session: &dyn Session,
        filters: &[Expr],
        files: &[PartitionedFile],
        columns: &[usize],
    ) -> datafusion::common::Result<Vec<bool>> {
        let all = vec![true; files.len()];
        let table_schema = self.scan_schema.table_schema();
        let Some(filter) = conjunction(filters.to_vec()) else { return Ok(all) };
        let schema = DFSchema::try_from(Arc::clone(table_schema))?;
        let predicate = PruningPredicateBuilder::new()
            .with_file_schema(Arc::clone(table_schema))
            .try_build(session.create_physical_expr(filter, &schema)?);
        // A filter that says nothing about minima and maxima just doesn't skip files.
        let Ok(predicate) = predicate else { return Ok(all) };
        let known = files.iter().map(|file| bounds_for_pruning(file, table_schema, columns));
        let known = known.collect::<datafusion::common::Result<Vec<_>>>()?;
        predicate.prune(&PrunableStatistics::new(known, Arc::clone(table_schema)))
    }
}

/// The statistics of a file as DataFusion's pruning wants them: it takes only bounds marked exact, though any
/// that enclose the values will do, and NULLs of the column's type where nothing is known.
fn bounds_for_pruning(
    file: &PartitionedFile,
    schema: &SchemaRef,
    columns: &[usize],
) -> datafusion::common::Result<Arc<Statistics>> {
    let mut statistics = file.statistics.as_deref().cloned().unwrap_or_else(|| Statistics::new_unknown(schema));
    for column in columns {
        let unknown = ScalarValue::try_from(schema.field(*column).data_type())?;
        let bounds = &mut statistics.column_statistics[*column];
        for bound in [&mut bounds.min_value, &mut bounds.max_value] {
            *bound = Precision::Exact(bound.get_value().unwrap_or(&unknown).clone());
        }
    }
    Ok(Arc::new(statistics))
}

#[async_trait]
impl TableProvider for DataFiles {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> datafusion::common::Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let scan_schema = self.scan_schema.table_schema();
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all).iter();
        let projection = projection.map(|index| scan_schema.index_of(self.schema.field(*index).name()));
        let projection = projection.collect::<std::result::Result<Vec<_>, _>>()?;

        let files = self.files_for(session, filters)?;
        if files.is_empty() {
            // A scan without files has no partition, and aggregates want one to say that there is nothing.
            return Ok(Arc::new(EmptyExec::new(Arc::new(scan_schema.project(&projection)?))));
        }
        let total = stats::total(
            scan_schema,
            files.iter().map(|file| {
                let rows = file.statistics.as_ref().and_then(|statistics| statistics.num_rows.get_value().copied());
                (rows.map(|rows| rows as u64), file.object_meta.size as i64)
            }),
        );
        let mut options =
            TableParquetOptions { global: session.config_options().execution.parquet.clone(), ..Default::default() };
        // Timestamps of old Spark versions are nanoseconds, which ends in 2262; microseconds hold them all.
        options.global.coerce_int96 = Some("us".into());
        let source = ParquetSource::new(self.scan_schema.clone()).with_table_parquet_options(options);
        // Side by side, oldest first; `FileGroup::split_files` would sort them by path.
        let group_files = files.len().div_ceil(session.config().target_partitions().max(1));
        let groups = files.chunks(group_files).map(|files| FileGroup::new(files.to_vec())).collect();
        let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(total)
            .with_projection_indices(Some(projection))?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(scan))
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(stats::total(&self.schema, self.files.iter().map(|file| (file.count(), file.add.size))))
    }
}
