//! Rows for people: the first rows of a dataset, a read-only query over all of them, an export as CSV or JSON
//! lines. Reads stored tables; views are computed. Never runs a flow.

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use futures::StreamExt;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{Dataset, Graph, Reading, ResolvedInput, Source};
use pipeline::parse;
use pipeline::report::{Column, Rows};
use pipeline::text::{FileId, MappedText, SourceFile};
use tokio::sync::OwnedMutexGuard;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::listings::Listings;
use crate::micro_batch::query_error;
use crate::reading::{empty, plan_reading, plan_view};
use crate::source::change_feed::{FeedRows, whole_feed};
use crate::source::external;
use crate::source::files::{ScanCounters, table_provider};
use crate::source::flow_sources::flow_sources;
use crate::status::column;
use crate::table::Table;

/// What of a dataset is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShowOptions {
    /// None: all rows.
    pub limit: Option<usize>,
    /// A SQL condition.
    pub filter: Option<String>,
    /// The table as it was in this version.
    pub at_version: Option<i64>,
}

/// Formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// With a header line.
    Csv,
    /// One object a line.
    JsonLines,
}

impl Engine {
    /// The first rows of a dataset.
    ///
    /// # Errors
    /// `unknown-dataset`; `nothing-stored` before the first update; a filter that doesn't plan.
    pub async fn show(&self, dataset: &str, options: ShowOptions) -> Result<Rows> {
        let plan = self.show_plan(dataset, &options).await?;
        self.rows(plan, options.limit).await
    }

    /// Writes a dataset's rows to `out`, batch by batch.
    pub async fn export_dataset(
        &self,
        dataset: &str,
        options: ShowOptions,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> Result<u64> {
        let plan = self.show_plan(dataset, &options).await?;
        self.write_rows(plan, options.limit, format, out).await
    }

    /// The rows of a query over all datasets and sources.
    ///
    /// # Errors
    /// [`Error::Invalid`] with places in the query's text, which is the file `SQL_FILE`.
    pub async fn sql(&self, text: &str, limit: Option<usize>) -> Result<Rows> {
        let plan = self.sql_plan(text).await?;
        self.rows(plan, limit).await
    }

    /// Writes the rows of a query to `out`.
    pub async fn export_sql(
        &self,
        text: &str,
        limit: Option<usize>,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> Result<u64> {
        let plan = self.sql_plan(text).await?;
        self.write_rows(plan, limit, format, out).await
    }

    /// A query's text as a file, to show where its errors are.
    pub fn sql_file(text: &str) -> SourceFile {
        SourceFile { path: "<sql>".to_string(), text: text.to_string() }
    }

    pub(crate) async fn show_plan(&self, name: &str, options: &ShowOptions) -> Result<LogicalPlan> {
        let provider = match self.graph().find_dataset(name) {
            Some(id) => {
                let dataset = self.graph().dataset(id);
                match &dataset.view {
                    Some(_) if options.at_version.is_some() => {
                        return Err(Error::user(
                            "no-versions",
                            format!("`{}` is a {}; it has no versions", dataset.label, dataset.kind().words()),
                            "leave --at-version out",
                        ));
                    }
                    Some(view) => {
                        let plan = self.plan_stored(view, Some(dataset)).await?;
                        Arc::new(datafusion::datasource::ViewTable::new(plan, None)) as Arc<dyn TableProvider>
                    }
                    None => self.stored(&dataset.label, &self.table_folder(&dataset.name), options.at_version).await?,
                }
            }
            None => self.inactive_or_external(name, options.at_version).await?,
        };
        self.filtered(provider, options.filter.as_deref()).await
    }

    /// The rows of a table that fulfil a SQL condition.
    ///
    /// # Errors
    /// `filter`.
    pub(crate) async fn filtered(&self, provider: Arc<dyn TableProvider>, filter: Option<&str>) -> Result<LogicalPlan> {
        let sql = match filter {
            Some(filter) => format!("SELECT * FROM shown WHERE {filter}"),
            None => "SELECT * FROM shown".to_string(),
        };
        let planned = crate::session::plan(&self.session()?, &sql, vec![("shown".to_string(), provider)]).await;
        planned.map_err(|errors| {
            let what: Vec<String> = errors.iter().map(|error| error.message.replace("shown.", "")).collect();
            let help = errors.iter().find_map(|error| error.help.clone());
            Error::user(
                "filter",
                format!("--where: {}", what.join("; ")),
                help.unwrap_or_else(|| {
                    "give a SQL condition over the dataset's columns, such as \"year = 2024\"".to_string()
                }),
            )
        })
    }

    async fn stored(
        &self,
        label: &str,
        folder: &std::path::Path,
        version: Option<i64>,
    ) -> Result<Arc<dyn TableProvider>> {
        self.stored_table(label, folder).await?.provider(version).await
    }

    /// The table in `folder` as it is now.
    async fn stored_table(&self, label: &str, folder: &std::path::Path) -> Result<OwnedMutexGuard<Table>> {
        let Some(table) = self.tables().get(folder)? else {
            return Err(Error::user(
                "nothing-stored",
                format!("nothing is stored of `{label}` yet"),
                "start an update: flowbench run",
            ));
        };
        let mut table = table.lock_owned().await;
        table.refresh()?;
        Ok(table)
    }

    /// A dataset that is no longer in the files, or a `[[source]]`.
    async fn inactive_or_external(&self, name: &str, version: Option<i64>) -> Result<Arc<dyn TableProvider>> {
        if let Some(state) = self.state_for_reading()? {
            let known = state.datasets()?;
            if let Some(known) = known.iter().find(|k| k.name.eq_ignore_ascii_case(name) || k.dataset == name) {
                return self.stored(&known.name, &self.storage().join(&known.table_path), version).await;
            }
        }
        let external = self.graph().externals.iter().position(|t| t.name.value.to_string().eq_ignore_ascii_case(name));
        match external {
            Some(index) => self.external(index, version, &Listings::new(self.root().to_path_buf())).await,
            None => Err(self.unknown_dataset(name)),
        }
    }

    async fn external(
        &self,
        index: usize,
        version: Option<i64>,
        listings: &Listings,
    ) -> Result<Arc<dyn TableProvider>> {
        let table = &self.graph().externals[index];
        match external::files(table, self.settings()) {
            Some(spec) => {
                let listed = listings.list(&spec).await?;
                match listings.schema(&spec, &listed.files).await? {
                    Some(schema) => Ok(table_provider(Arc::new(spec), &schema, listed.files, false, Arc::default())),
                    None => Err(Error::user(
                        "source-missing",
                        format!("source `{}` has no files", table.name.value),
                        "correct its path in flowbench.toml",
                    )),
                }
            }
            None => external::open_delta(table, self.settings(), self.root())?.provider(version).await,
        }
    }

    async fn sql_plan(&self, text: &str) -> Result<LogicalPlan> {
        let mapped = MappedText::from_file(FileId(0), text, 0..text.len());
        let invalid = |diagnostics: Vec<Diagnostic>| Error::InvalidSql { text: text.to_string(), diagnostics };
        let (query, diagnostics) = parse::query(&mapped);
        let Some(query) = query.filter(|_| !diagnostics.iter().any(Diagnostic::is_error)) else {
            return Err(invalid(diagnostics));
        };
        let (reading, diagnostics) = self.graph().resolve_query(query, self.settings());
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(invalid(diagnostics));
        }
        if let Some(stream) = reading.inputs.iter().find(|input| input.is_stream) {
            return Err(invalid(vec![
                Diagnostic::error("stream-in-query", stream.span, "a query reads tables as they are, not as streams")
                    .help("remove STREAM"),
            ]));
        }
        self.plan_stored(&reading, None).await.map_err(|error| match error {
            Error::Invalid { diagnostics } => invalid(diagnostics),
            error => error,
        })
    }

    /// Plans a query over what is stored now. Streams of a view are read as a whole.
    /// `view`: the view whose query it is.
    async fn plan_stored(&self, reading: &Reading, view: Option<&Dataset>) -> Result<LogicalPlan> {
        let listings = Listings::new(self.root().to_path_buf());
        let graph: &Graph = self.graph();
        let mut providers = std::collections::HashMap::new();
        for source in flow_sources(graph, reading) {
            let input: &ResolvedInput = source.input;
            let provider: Arc<dyn TableProvider> = match &input.source {
                Source::Dataset { id, stream } => {
                    let dataset = graph.dataset(*id);
                    let table = self.stored_table(&dataset.label, &self.table_folder(&dataset.name)).await?;
                    match stream.reads_change_feed {
                        true => FeedRows::provider(&table, whole_feed(&table, table.version())?, &[]).await?,
                        false => table.provider(None).await?,
                    }
                }
                Source::External { id, stream } if stream.reads_change_feed => {
                    let table = external::open_delta(&graph.externals[id.0], self.settings(), self.root())?;
                    FeedRows::provider(&table, whole_feed(&table, table.version())?, &[]).await?
                }
                Source::External { id, .. } => self.external(id.0, None, &listings).await?,
                Source::Files(spec) => {
                    let listed = listings.list(spec).await?;
                    match listings.schema(spec, &listed.files).await? {
                        Some(schema) => {
                            let counters = Arc::new(ScanCounters::default());
                            table_provider(
                                Arc::new(*spec.clone()),
                                &schema,
                                listed.files,
                                input.uses_metadata,
                                counters,
                            )
                        }
                        None => empty(Arc::new(arrow::datatypes::Schema::empty())),
                    }
                }
                Source::Unresolved => continue,
            };
            providers.insert(input.id, provider);
        }
        let session = self.session()?;
        let provide = |input: &ResolvedInput| {
            providers.get(&input.id).cloned().unwrap_or_else(|| empty(Arc::new(arrow::datatypes::Schema::empty())))
        };
        let plan = match view {
            Some(dataset) => plan_view(&session, graph, dataset, reading, &provide).await,
            None => plan_reading(&session, graph, reading, &provide).await,
        };
        plan.map_err(|diagnostics| Error::Invalid { diagnostics })
    }

    pub(crate) async fn rows(&self, plan: LogicalPlan, limit: Option<usize>) -> Result<Rows> {
        let schema = plan.schema().as_arrow().clone();
        let columns = result_columns(&schema);
        // One more than asked for tells whether there is more.
        let fetch = limit.map(|limit| limit.saturating_add(1));
        let mut stream = self.stream(plan, fetch).await?;
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|e| query_error("query", e))?;
            rows.extend(text_rows(&batch)?);
        }
        let is_truncated = limit.is_some_and(|limit| rows.len() > limit);
        if let Some(limit) = limit {
            rows.truncate(limit);
        }
        Ok(Rows { columns, rows, is_truncated })
    }

    async fn write_rows(
        &self,
        plan: LogicalPlan,
        limit: Option<usize>,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> Result<u64> {
        let schema = Arc::new(plan.schema().as_arrow().clone());
        let mut stream = self.stream(plan, limit).await?;
        let failed = |e: arrow::error::ArrowError| match e {
            arrow::error::ArrowError::IoError(_, source) => Error::io("write to", "standard output", source),
            e => Error::Internal(format!("export: {e}")),
        };
        let mut rows = 0;
        match format {
            Format::Csv => {
                let mut writer = arrow::csv::WriterBuilder::new().with_header(true).build(&mut *out);
                let mut is_empty = true;
                while let Some(batch) = stream.next().await {
                    let batch = flat(&batch.map_err(|e| query_error("query", e))?)?;
                    rows += batch.num_rows() as u64;
                    is_empty = false;
                    writer.write(&batch).map_err(failed)?;
                }
                if is_empty {
                    writer.write(&flat(&RecordBatch::new_empty(schema))?).map_err(failed)?;
                }
            }
            Format::JsonLines => {
                let mut writer = arrow::json::WriterBuilder::new()
                    .with_explicit_nulls(true)
                    .build::<_, arrow::json::writer::LineDelimited>(&mut *out);
                while let Some(batch) = stream.next().await {
                    let batch = batch.map_err(|e| query_error("query", e))?;
                    rows += batch.num_rows() as u64;
                    writer.write(&batch).map_err(failed)?;
                }
                writer.finish().map_err(failed)?;
            }
        }
        Ok(rows)
    }

    pub(crate) async fn stream(
        &self,
        plan: LogicalPlan,
        fetch: Option<usize>,
    ) -> Result<datafusion::execution::SendableRecordBatchStream> {
        let session = self.session()?;
        let limited = match fetch {
            Some(_) => LogicalPlanBuilder::from(plan).limit(0, fetch).and_then(LogicalPlanBuilder::build),
            None => Ok(plan),
        };
        let limited = limited.map_err(|e| query_error("query", e))?;
        let frame = session.execute_logical_plan(limited).await.map_err(|e| query_error("query", e))?;
        frame.execute_stream().await.map_err(|e| query_error("query", e))
    }
}

pub(crate) fn result_columns(schema: &arrow::datatypes::Schema) -> Vec<Column> {
    // A column without a name is called by its text, and the names of inputs in it are ours.
    let ours = regex::Regex::new(r"__input_\d+ AS ").expect("a valid expression");
    schema
        .fields()
        .iter()
        .map(|field| Arc::new(field.as_ref().clone().with_name(ours.replace_all(field.name(), ""))))
        .map(|field| match crate::data_type::field_from_arrow(&field) {
            Some(known) => column(&known),
            None => Column {
                name: field.name().clone(),
                data_type: field.data_type().to_string(),
                is_nullable: field.is_nullable(),
                is_numeric: field.data_type().is_numeric(),
                comment: None,
            },
        })
        .collect()
}

pub(crate) fn text_rows(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>> {
    let options = FormatOptions::new()
        .with_null("null")
        .with_timestamp_tz_format(Some(TIMESTAMP))
        .with_timestamp_format(Some(TIMESTAMP));
    let failed = |e: arrow::error::ArrowError| Error::Internal(format!("rows as text: {e}"));
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>().map_err(failed)?;
    let mut rows = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let mut cells = Vec::with_capacity(columns.len());
        for (column, array) in columns.iter().zip(batch.columns()) {
            let is_null = array.is_null(row) || array.data_type().is_null();
            cells.push(match is_null {
                true => None,
                false => Some(column.value(row).try_to_string().map_err(failed)?),
            });
        }
        rows.push(cells);
    }
    Ok(rows)
}

/// Times as people read them; fractions only where there are any.
const TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S%.f";

/// CSV has no nested values: they are written as text.
fn flat(batch: &RecordBatch) -> Result<RecordBatch> {
    let failed = |e: arrow::error::ArrowError| Error::Internal(format!("nested columns as text: {e}"));
    let options = FormatOptions::new().with_null("null");
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if !field.data_type().is_nested() {
            fields.push(field.as_ref().clone());
            columns.push(column.clone());
            continue;
        }
        let formatter = ArrayFormatter::try_new(column, &options).map_err(failed)?;
        let texts = (0..column.len()).map(|row| match column.is_null(row) {
            true => Ok(None),
            false => formatter.value(row).try_to_string().map(Some),
        });
        let texts: arrow::array::StringArray = texts.collect::<std::result::Result<_, _>>().map_err(failed)?;
        fields.push(arrow::datatypes::Field::new(field.name(), arrow::datatypes::DataType::Utf8, true));
        columns.push(Arc::new(texts));
    }
    RecordBatch::try_new(Arc::new(arrow::datatypes::Schema::new(fields)), columns).map_err(failed)
}
