//! The rows behind each input of a flow: opened once a run, given to each batch as DataFusion tables.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use pipeline::graph::{InputId, Reading, ResolvedInput, Source};
use pipeline::read_files::{ReadFiles, TableStream};

use super::FlowRun;
use crate::auto_cdc::position::{FileRows, WithPositions, in_turn};
use crate::error::{Error, Result};
use crate::fail_point;
use crate::reading::StreamBatch;
use crate::source::change_feed::{FeedRows, FeedSize, feed_schema, planned_feed, whole_feed};
use crate::source::external;
use crate::source::files::{self, FileEntry, ScanCounters, SourceSchema, as_declared};
use crate::source::flow_sources::flow_sources;
use crate::source::ledger::LedgerPaths;
use crate::source::table_stream::{TableOffset, planned_slice};
use crate::state::{NewSource, PlannedInput, SourceFile};
use crate::table::{AddedFile, SharedTable, Table};

/// A source of the flow, ready to be read.
pub(crate) struct OpenSource {
    pub key: String,
    /// What people call it: a dataset's or table's name, a path.
    pub label: String,
    /// The input it stands behind.
    pub id: InputId,
    pub is_stream: bool,
    /// In state.db; None for what is read as a whole each time and needs no checkpoint.
    pub source_id: Option<i64>,
    /// The checkpoint knew it before this run.
    is_recorded: bool,
    pub content: Content,
}

impl OpenSource {
    /// All of it as it is now, as the input of a batch; `source_id` is its own. None: there is nothing to plan.
    pub fn whole(&self, source_id: i64) -> Option<PlannedInput> {
        match &self.content {
            Content::Files { listing, ledger, .. } => {
                Some(PlannedInput { source_id, start_offset: None, end_offset: None, files: ledger.write(listing) })
            }
            Content::Table { up_to, .. } => {
                let end = TableOffset { version: up_to + 1, files: 0, is_snapshot: false };
                Some(PlannedInput { source_id, start_offset: None, end_offset: Some(end.to_json()), files: Vec::new() })
            }
            Content::Nothing => None,
        }
    }

    /// True for a Delta table.
    pub fn is_table(&self) -> bool {
        matches!(self.content, Content::Table { .. })
    }
}

/// What kind of source it is.
pub(crate) enum Content {
    Files {
        spec: Arc<ReadFiles>,
        /// None: no file was ever seen, so the columns are unknown.
        schema: Option<SourceSchema>,
        /// All files that are there, as listed when the update started.
        listing: Arc<[FileEntry]>,
        uses_metadata: bool,
        ledger: LedgerPaths,
    },
    Table {
        table: SharedTable,
        options: TableStream,
        /// The columns by which two versions of a row are known to be one row; empty if there are none.
        keys: Vec<String>,
        /// Read up to this version.
        up_to: i64,
        /// Where a stream stands.
        offset: Option<TableOffset>,
    },
    /// A table that has no rows yet and no columns.
    Nothing,
}

/// The offset of a file source that has been started: its place is the file ledger.
const FILES_STARTED: &str = "started";

/// The rows of one batch.
pub(crate) struct BatchInputs {
    pub providers: HashMap<InputId, Arc<dyn TableProvider>>,
    pub counters: Vec<Arc<ScanCounters>>,
    pub files: u64,
    pub bytes: u64,
    /// Rows of table files, from their statistics: scans of tables count nothing themselves.
    pub table_rows: u64,
    /// Bytes that the query works through, tables read as a whole included: decides how many tasks pay.
    pub work_bytes: u64,
}

impl BatchInputs {
    /// The rows of this input.
    pub fn provide(&self, input: &ResolvedInput) -> Arc<dyn TableProvider> {
        self.providers.get(&input.id).cloned().expect("every input of the flow was opened")
    }
}

/// Opens the sources of a query of the flow that is none with a checkpoint: the version of its snapshots.
pub(crate) async fn open_reading(run: &FlowRun<'_>, reading: &Reading) -> Result<Vec<OpenSource>> {
    open_all(run, reading, false).await
}

/// Opens all sources of a flow. `records`: whether their checkpoints are kept in state.db.
pub(crate) async fn open(run: &FlowRun<'_>, records: bool) -> Result<Vec<OpenSource>> {
    open_all(run, &run.flow.reading, records).await
}

async fn open_all(run: &FlowRun<'_>, reading: &Reading, records: bool) -> Result<Vec<OpenSource>> {
    let engine = &run.update.engine;
    let mut sources = Vec::new();
    let mut known = match records {
        true => run.update.state.sources(&run.record.flow_id, run.generation)?,
        false => Vec::new(),
    };
    for source in flow_sources(engine.graph(), reading) {
        let input = source.input;
        let recorded = known.iter().position(|known| known.source == source.key).map(|at| known.swap_remove(at));
        let label = match &input.source {
            Source::Files(spec) => spec.path.clone(),
            Source::External { id, .. } => engine.graph().externals[id.0].name.value.to_string(),
            Source::Dataset { id, .. } => engine.graph().dataset(*id).label.clone(),
            Source::Unresolved => String::new(),
        };
        let content = match &input.source {
            Source::Files(spec) => {
                let stored = recorded.as_ref().and_then(|known| known.schema.as_deref());
                open_files(run, spec, input, stored).await?
            }
            Source::External { id, stream } => {
                let table = &engine.graph().externals[id.0];
                match external::files(table, engine.settings()) {
                    Some(spec) => open_files(run, &spec, input, None).await?,
                    None => {
                        let (table, version) = run.update.external(*id)?;
                        open_table(table, stream, Vec::new(), Some(version)).await?
                    }
                }
            }
            Source::Dataset { id, stream } => {
                let dataset = engine.graph().dataset(*id);
                match engine.table(dataset)? {
                    Some(table) => open_table(table, stream, engine.graph().row_keys(*id), None).await?,
                    None => Content::Nothing,
                }
            }
            Source::Unresolved => return Err(Error::Internal("an unresolved input was run".to_string())),
        };
        sources.push(OpenSource {
            key: source.key,
            label,
            id: input.id,
            is_stream: run.flow.reads_as_stream(input),
            source_id: None,
            is_recorded: recorded.is_some(),
            content,
        });
    }
    if records {
        refuse_changed_sources(run, &sources, &known)?;
        for source in &mut sources {
            record(run, source).await?;
        }
    }
    Ok(sources)
}

/// A checkpoint covers the sources it was made with; `gone` are those that the query no longer reads. A snapshot is read
/// as a whole each time, whatever it was read from before.
fn refuse_changed_sources(run: &FlowRun<'_>, sources: &[OpenSource], gone: &[crate::state::Source]) -> Result<()> {
    if run.flow.kind.is_snapshot() {
        return Ok(());
    }
    let Some(batch) = run.update.state.known_batches(&run.record.flow_id, run.generation)?.committed else {
        return Ok(());
    };
    if gone.is_empty() && sources.iter().all(|source| !source.is_recorded) {
        // A repair has taken it over from the table, which has the rows and not where they came from.
        let dataset = &run.dataset.label;
        return Err(Error::user(
            "checkpoint-lost",
            format!(
                "flow `{}`: `{dataset}` holds its batches up to {batch}; what they read was lost with state.db",
                run.flow.name
            ),
            format!(
                "build the table anew: flowbench run --full-refresh {dataset}; or bound the flow's start to what is new \
                 (modifiedAfter, STARTINGVERSION) and start a new checkpoint: flowbench reset {}",
                run.flow.name
            ),
        ));
    }
    let gone: Vec<&str> = gone.iter().map(|source| source.source.as_str()).collect();
    let new: Vec<&str> = sources
        .iter()
        .filter(|source| source.is_stream && !source.is_recorded)
        .map(|source| source.key.as_str())
        .collect();
    let change = match (gone.as_slice(), new.as_slice()) {
        ([], []) => return Ok(()),
        (gone, []) => format!("no longer reads {}", gone.join(", ")),
        ([], new) => format!("now reads {} too", new.join(", ")),
        (gone, new) => format!("reads {} instead of {}", new.join(", "), gone.join(", ")),
    };
    Err(Error::user(
        "source-set-changed",
        format!("flow `{}` {change}: its checkpoint doesn't fit", run.flow.name),
        format!(
            "build the table anew: flowbench run --full-refresh {}; or keep its rows and start the flow from the start of \
             its sources: flowbench reset {}; or give the new query a flow of its own",
            run.dataset.label, run.flow.name
        ),
    ))
}

async fn open_files(
    run: &FlowRun<'_>,
    spec: &ReadFiles,
    input: &ResolvedInput,
    stored: Option<&str>,
) -> Result<Content> {
    let listing = run.update.listings.list(spec).await?.files;
    let schema = match stored {
        Some(stored) => Some(as_declared(spec, SourceSchema::from_json(stored)?)?),
        None => run.update.listings.schema(spec, &listing).await?,
    };
    let ledger = LedgerPaths::new(spec, run.update.engine.root());
    Ok(Content::Files { spec: Arc::new(spec.clone()), schema, listing, uses_metadata: input.uses_metadata, ledger })
}

async fn open_table(
    table: SharedTable,
    options: &TableStream,
    keys: Vec<String>,
    up_to: Option<i64>,
) -> Result<Content> {
    let up_to = match up_to {
        Some(version) => version,
        None => {
            let mut open = table.lock().await;
            open.refresh()?;
            open.version()
        }
    };
    Ok(Content::Table { table, options: options.clone(), keys, up_to, offset: None })
}

/// Finds or makes a source's record; the options of the first start apply when it is made.
async fn record(run: &FlowRun<'_>, source: &mut OpenSource) -> Result<()> {
    let state = &run.update.state;
    // What snapshots are read from is noted only to tell where a row came from.
    let is_noted = run.flow.kind.is_snapshot() && !run.flow.kind.is_once();
    if !source.is_stream && !run.flow.kind.is_once() && !is_noted {
        return Ok(());
    }
    let table_id = match &source.content {
        Content::Table { table, .. } => Some(table.lock().await.id().to_string()),
        _ => None,
    };
    let key = source.key.clone();
    let known = state.register_source(
        &NewSource {
            flow_id: &run.record.flow_id,
            generation: run.generation,
            source: &key,
            table_id: table_id.as_deref(),
            start_options: None,
        },
        crate::clock::now_us(),
    )?;
    source.source_id = Some(known.source_id);
    match &mut source.content {
        Content::Files { schema, spec, listing, ledger, .. } => {
            // The first start decides once whether the files that are there count as read.
            if source.is_stream && known.offset.is_none() {
                if !spec.include_existing_files {
                    state.add_known_files(known.source_id, &ledger.write(listing))?;
                }
                state.set_source_offset(known.source_id, FILES_STARTED)?;
            }
            if let Some(schema) = schema.as_ref().filter(|_| known.schema.is_none()) {
                state.set_source_schema(known.source_id, &schema.to_json())?;
                fail_point::hit("schema-stored", Some(&run.flow.name))?;
            }
        }
        Content::Table { table, options, offset, .. } => {
            let label = &source.label;
            if known.table_id != table_id && !is_noted {
                return Err(Error::user(
                    "source-recreated",
                    format!("flow `{}`: table `{label}` was dropped and made anew since it was read", run.flow.name),
                    format!("read the new table from its start: flowbench reset {}", run.flow.name),
                ));
            }
            if source.is_stream {
                *offset = Some(match &known.offset {
                    Some(text) => TableOffset::from_json(text)?,
                    None => {
                        let start = TableOffset::start(&*table.lock().await, options)?;
                        state.set_source_offset(known.source_id, &start.to_json())?;
                        start
                    }
                });
            }
        }
        Content::Nothing => {}
    }
    Ok(())
}

/// True if the columns of every source are known: without that nothing can be planned.
pub(crate) fn are_known(sources: &[OpenSource]) -> bool {
    sources.iter().all(|source| match &source.content {
        Content::Files { schema, .. } => schema.is_some(),
        Content::Table { .. } => true,
        Content::Nothing => false,
    })
}

/// The tables for one batch: of the streams what `planned` says, of the rest all there is. With `positions_of` a
/// batch, rows can be asked for their positions (`auto_cdc::position`).
pub(crate) async fn batch_inputs(
    sources: &[OpenSource],
    planned: &[PlannedInput],
    positions_of: Option<i64>,
) -> Result<BatchInputs> {
    let mut batch = BatchInputs {
        providers: HashMap::new(),
        counters: Vec::new(),
        files: 0,
        bytes: 0,
        table_rows: 0,
        work_bytes: 0,
    };
    for source in sources {
        let plan = source.source_id.and_then(|id| planned.iter().find(|input| input.source_id == id));
        let provider = match &source.content {
            Content::Files { spec, schema, listing, uses_metadata, ledger } => {
                let schema = schema.as_ref().expect("only flows whose sources are known run batches");
                let files: Arc<[FileEntry]> = match plan {
                    Some(plan) => in_order(&plan.files).into_iter().map(|file| ledger.read(file)).collect(),
                    // A stream that has nothing new in this batch.
                    None if source.is_stream => Arc::new([]),
                    None => listing.clone(),
                };
                batch.files += files.len() as u64;
                batch.bytes += files.iter().map(|file| file.size).sum::<u64>();
                let counters = Arc::new(ScanCounters::default());
                batch.counters.push(counters.clone());
                let rows = |files| files::table_provider(spec.clone(), schema, files, *uses_metadata, counters.clone());
                let by_file = positions_of.map(|batch| {
                    let file = |(at, file): (usize, &FileEntry)| FileRows {
                        major: batch as u64,
                        minor: at as u64,
                        rows: rows(Arc::new([file.clone()])),
                    };
                    files.iter().enumerate().map(file).collect()
                });
                with_positions(rows(files), by_file)
            }
            Content::Table { table, options, keys, up_to, .. } if options.reads_change_feed => {
                let table = table.lock().await;
                let parts = match (source.is_stream, plan) {
                    (true, Some(PlannedInput { start_offset: Some(start), end_offset: Some(end), .. })) => {
                        planned_feed(&table, TableOffset::from_json(start)?, TableOffset::from_json(end)?)?
                    }
                    (true, _) => Vec::new(),
                    (false, plan) => whole_feed(&table, version_of(plan, *up_to)?)?,
                };
                let size = FeedSize::of(&parts);
                match source.is_stream {
                    true => {
                        batch.files += size.files as u64;
                        batch.bytes += size.bytes;
                        batch.table_rows += size.rows;
                    }
                    false => batch.work_bytes += size.bytes,
                }
                let rows = FeedRows::of(&table, parts, keys).await?;
                let plain = in_turn(feed_schema(&table.schema()), rows.clone());
                with_positions(plain, positions_of.map(|_| rows))
            }
            Content::Table { table, up_to, .. } => {
                let table = table.lock().await;
                match (source.is_stream, plan) {
                    (true, Some(PlannedInput { start_offset: Some(start), end_offset: Some(end), .. })) => {
                        let start = TableOffset::from_json(start)?;
                        let files = planned_slice(&table, start, TableOffset::from_json(end)?)?;
                        batch.files += files.len() as u64;
                        batch.bytes += files.iter().map(|file| file.size).sum::<u64>();
                        batch.table_rows += files.iter().filter_map(|file| file.rows).sum::<u64>();
                        let by_file = match positions_of {
                            Some(_) => Some(file_rows(&table, &files, start).await?),
                            None => None,
                        };
                        with_positions(table.files_provider(files).await?, by_file)
                    }
                    (true, _) => table.files_provider(Vec::new()).await?,
                    (false, plan) => {
                        let version = version_of(plan, *up_to)?;
                        batch.work_bytes += table.size_bytes();
                        let by_file = match positions_of {
                            Some(_) => {
                                let start = TableOffset { version, files: 0, is_snapshot: true };
                                Some(file_rows(&table, &table.files_at(version)?, start).await?)
                            }
                            None => None,
                        };
                        with_positions(table.provider(Some(version)).await?, by_file)
                    }
                }
            }
            Content::Nothing => return Err(Error::Internal("a batch was run over an unknown source".to_string())),
        };
        let provider = match source.is_stream {
            true => Arc::new(StreamBatch(provider)) as Arc<dyn TableProvider>,
            false => provider,
        };
        batch.providers.insert(source.id, provider);
    }
    batch.work_bytes += batch.bytes;
    Ok(batch)
}

/// The version that a table is read at as a whole.
fn version_of(plan: Option<&PlannedInput>, up_to: i64) -> Result<i64> {
    match plan.and_then(|plan| plan.end_offset.as_deref()) {
        Some(text) => Ok(TableOffset::from_json(text)?.version - 1),
        None => Ok(up_to),
    }
}

/// A batch's files as they arrived; the ledger hands them out by path.
pub(crate) fn in_order(files: &[SourceFile]) -> Vec<&SourceFile> {
    let mut files: Vec<&SourceFile> = files.iter().collect();
    files.sort_by(|a, b| (a.modified_us, &a.path).cmp(&(b.modified_us, &b.path)));
    files
}

/// The files of a batch, in the order that positions count them.
pub(crate) fn files_in_order(sources: &[OpenSource], planned: &[PlannedInput]) -> Vec<String> {
    let plans =
        sources.iter().filter_map(|source| planned.iter().find(|input| Some(input.source_id) == source.source_id));
    plans.flat_map(|plan| in_order(&plan.files)).map(|file| file.path.clone()).collect()
}

/// The rows of a table's files, each file with its place in its version; `start` is where the first of them is.
async fn file_rows(table: &Table, files: &[AddedFile], start: TableOffset) -> Result<Vec<FileRows>> {
    let mut rows = Vec::with_capacity(files.len());
    let mut place = (start.version, start.files as u64);
    for file in files {
        if file.version != place.0 {
            place = (file.version, 0);
        }
        let provider = table.files_provider(vec![file.clone()]).await?;
        rows.push(FileRows { major: file.version as u64, minor: place.1, rows: provider });
        place.1 += 1;
    }
    Ok(rows)
}

fn with_positions(plain: Arc<dyn TableProvider>, by_file: Option<Vec<FileRows>>) -> Arc<dyn TableProvider> {
    match by_file {
        Some(files) => Arc::new(WithPositions { plain, files }),
        None => plain,
    }
}
