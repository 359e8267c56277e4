//! The sequences that flows would apply which haven't run: their queries over all that their sources have now, or the
//! versions of their snapshots. No checkpoint is made and nothing written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType as ArrowType;
use datafusion::catalog::TableProvider;
use datafusion::datasource::ViewTable;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;
use pipeline::auto_cdc::{ChangeFlow, SEQUENCE_COLUMN, SnapshotFiles, SnapshotVersions, TRUNCATE_COLUMN};
use pipeline::data_type::DataType;
use pipeline::graph::{Flow, InputId, Reading, ResolvedInput, Source};
use pipeline::read_files::{ReadFiles, TableStream};

use super::as_of::{column, failed};
use super::ordered::key_bytes;
use crate::auto_cdc::columns::FlowColumns;
use crate::auto_cdc::encode::KeyCodec;
use crate::auto_cdc::{table_feed, version};
use crate::columns::Columns;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::listings::Listings;
use crate::reading::plan_reading;
use crate::source::change_feed::{FeedRows, next_feed_slice, whole_feed};
use crate::source::external;
use crate::source::files::{FileEntry, ScanCounters, table_provider};
use crate::source::flow_sources::flow_sources;
use crate::source::ledger::LedgerPaths;
use crate::source::table_stream::{SliceLimit, TableOffset, next_slice};
use crate::table::Table;

/// The columns of [`ends`]: a key's bytes, its last sequence of the seed and its first one of the live feed.
pub(super) const KEY: &str = "key";
const SEEDED: &str = "last_seeded";
const LIVE: &str = "first_live";

/// How keys and sequences of a target are written as bytes.
pub(super) struct Codecs {
    pub keys: KeyCodec,
    pub sequence: KeyCodec,
}

/// The events of a flow that hasn't run, all that its sources have now.
pub(super) struct Feed {
    rows: LogicalPlan,
    keys: Vec<String>,
    is_seed: bool,
    /// The rows are a snapshot's, and this is their sequence; None: each has its own.
    version: Option<Version>,
}

struct Version {
    value: ScalarValue,
    /// As sequences are encoded.
    bytes: Vec<u8>,
}

impl Feed {
    /// The type of a column.
    pub fn data_type(&self, name: &str) -> Result<ArrowType> {
        let schema = self.rows.schema().as_arrow();
        let field = schema.fields().iter().find(|field| field.name().eq_ignore_ascii_case(name));
        let field = field.ok_or_else(|| Error::Internal(format!("the query of a flow gives no column `{name}`")))?;
        Ok(field.data_type().clone())
    }

    /// The version of the snapshot that it is, as sequences are encoded.
    pub fn version(&self) -> Option<&[u8]> {
        self.version.as_ref().map(|version| version.bytes.as_slice())
    }

    fn sequence(&self) -> Result<(Expr, ArrowType)> {
        match &self.version {
            Some(version) => Ok((lit(version.value.clone()), version.value.data_type())),
            None => Ok((column(SEQUENCE_COLUMN), self.data_type(SEQUENCE_COLUMN)?)),
        }
    }
}

impl Engine {
    /// The events of a flow over all of its sources; None: they have nothing yet. `table`: what the target's columns are
    /// or will be. `more`: a column of the source to keep beside those of the target.
    pub(super) async fn feed(
        &self,
        flow: &Flow,
        table: &Columns,
        sequence: &DataType,
        more: Option<&str>,
    ) -> Result<Option<Feed>> {
        let Some((change, query)) = flow.change.as_ref().zip(self.whole_query(flow).await?) else { return Ok(None) };
        let query = table_feed::events(query, change).map_err(failed)?;
        feed_of(flow, change, query, sequence, table, more).map(Some)
    }

    /// The snapshots that a flow would load, in ascending order of their versions: those above `last`.
    ///
    /// # Errors
    /// `snapshot-version`, and those of [`Engine::feed`].
    pub(super) async fn waiting_snapshots(
        &self,
        flow: &Flow,
        table: &Columns,
        sequence: &DataType,
        last: Option<&[u8]>,
    ) -> Result<Vec<Feed>> {
        let Some((change, snapshot)) = flow.change.as_ref().and_then(|change| Some((change, change.snapshot()?)))
        else {
            return Ok(Vec::new());
        };
        let listings = Listings::new(self.root().to_path_buf());
        let versions: Vec<(ArrayRef, Option<Vec<FileEntry>>)> = match &snapshot.versions {
            SnapshotVersions::UpdateTime => vec![(version::of_now(), None)],
            SnapshotVersions::Query(_) => {
                self.queried_version(flow, &listings).await?.map(|of| (of, None)).into_iter().collect()
            }
            SnapshotVersions::Files(files) => self.versions_of_files(flow, files, &listings).await?,
        };
        let mut waiting: BTreeMap<Vec<u8>, (ArrayRef, Option<Vec<FileEntry>>)> = BTreeMap::new();
        for (of, files) in versions {
            let key = version::encoded(&of)?;
            if last.is_some_and(|last| key.as_slice() <= last) {
                continue;
            }
            let (_, known) = waiting.entry(key).or_insert_with(|| (of, files.is_some().then(Vec::new)));
            known.iter_mut().for_each(|known| known.extend(files.iter().flatten().cloned()));
        }
        let mut snapshots = Vec::with_capacity(waiting.len());
        for (bytes, (of, files)) in waiting {
            let query = self.whole(flow, &flow.reading, &listings, files.as_deref()).await?;
            let Some(query) = query else { continue };
            let version = Version { value: ScalarValue::try_from_array(&of, 0).map_err(failed)?, bytes };
            let feed = feed_of(flow, change, query, sequence, table, None)?;
            snapshots.push(Feed { version: Some(version), ..feed });
        }
        Ok(snapshots)
    }

    async fn queried_version(&self, flow: &Flow, listings: &Listings) -> Result<Option<ArrayRef>> {
        let Some(reading) = &flow.version else { return Ok(None) };
        let Some(query) = self.whole(flow, reading, listings, None).await? else { return Ok(None) };
        let rows = self.session()?.execute_logical_plan(query).await.map_err(failed)?.collect().await;
        version::of_rows(&flow.name, &rows.map_err(failed)?)
    }

    /// The versions that the paths of a flow's files tell, with the file.
    async fn versions_of_files(
        &self,
        flow: &Flow,
        files: &SnapshotFiles,
        listings: &Listings,
    ) -> Result<Vec<(ArrayRef, Option<Vec<FileEntry>>)>> {
        let mut versions = Vec::new();
        for source in flow_sources(self.graph(), &flow.reading) {
            let Source::Files(spec) = &source.input.source else { continue };
            let listed = listings.list(spec).await?.files;
            for (file, known) in listed.iter().zip(LedgerPaths::new(spec, self.root()).write(&listed)) {
                versions.push((version::of_path(&flow.name, files, &known.path)?, Some(vec![file.clone()])));
            }
        }
        Ok(versions)
    }

    /// Plans the query of a flow over all of its sources; None: they have nothing yet.
    pub(super) async fn whole_query(&self, flow: &Flow) -> Result<Option<LogicalPlan>> {
        self.whole(flow, &flow.reading, &Listings::new(self.root().to_path_buf()), None).await
    }

    /// Plans a query of a flow; `only` these of its `read_files`.
    async fn whole(
        &self,
        flow: &Flow,
        reading: &Reading,
        listings: &Listings,
        only: Option<&[FileEntry]>,
    ) -> Result<Option<LogicalPlan>> {
        let graph = self.graph();
        let mut providers: HashMap<InputId, Arc<dyn TableProvider>> = HashMap::new();
        for source in flow_sources(graph, reading) {
            let input: &ResolvedInput = source.input;
            let is_stream = flow.reads_as_stream(input);
            let provider = match &input.source {
                Source::Files(spec) => files(listings, spec, input, is_stream, only).await?,
                Source::Dataset { id, stream } => match self.table(graph.dataset(*id))? {
                    Some(table) => {
                        let mut table = table.lock().await;
                        table.refresh()?;
                        rows(&table, &graph.dataset(*id).label, stream, &graph.row_keys(*id), is_stream).await?
                    }
                    None => None,
                },
                Source::External { id, stream } => {
                    let external = &graph.externals[id.0];
                    match external::files(external, self.settings()) {
                        Some(spec) => files(listings, &spec, input, is_stream, None).await?,
                        None => {
                            let table = external::open_delta(external, self.settings(), self.root())?;
                            rows(&table, &external.name.value.to_string(), stream, &[], is_stream).await?
                        }
                    }
                }
                Source::Unresolved => None,
            };
            let Some(provider) = provider else { return Ok(None) };
            providers.insert(input.id, provider);
        }
        let session = self.session()?;
        let provide = |input: &ResolvedInput| providers[&input.id].clone();
        let query = plan_reading(&session, graph, reading, &provide).await;
        query.map(Some).map_err(|diagnostics| Error::Invalid { diagnostics })
    }
}

/// The events in a query of a flow.
fn feed_of(
    flow: &Flow,
    change: &ChangeFlow,
    query: LogicalPlan,
    sequence: &DataType,
    table: &Columns,
    more: Option<&str>,
) -> Result<Feed> {
    let columns = FlowColumns::of(change, query.schema().as_arrow(), sequence.clone(), table);
    let columns = columns.map_err(|misfits| {
        let what: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        Error::user(
            "schema-mismatch",
            format!("flow `{}` doesn't fit its table: {}", flow.name, what.join("; ")),
            "cast the column in the flow's query",
        )
    })?;
    let rows = columns.project(query, more.as_slice()).map_err(failed)?;
    let keys = columns.keys.iter().map(|key| key.name.clone()).collect();
    Ok(Feed { rows, keys, is_seed: flow.kind.is_once(), version: None })
}

/// A source of files, `only` these of them; None: nothing to read.
async fn files(
    listings: &Listings,
    spec: &ReadFiles,
    input: &ResolvedInput,
    is_stream: bool,
    only: Option<&[FileEntry]>,
) -> Result<Option<Arc<dyn TableProvider>>> {
    if is_stream && !spec.include_existing_files {
        return Ok(None);
    }
    let listed = listings.list(spec).await?.files;
    let schema = match listed.is_empty() {
        true => None,
        false => listings.schema(spec, &listed).await?,
    };
    let counters = Arc::new(ScanCounters::default());
    let files = only.map_or(listed, Arc::from);
    let provider = |schema| table_provider(Arc::new(spec.clone()), &schema, files, input.uses_metadata, counters);
    Ok(schema.map(provider))
}

/// A table: as a stream from where it would start.
async fn rows(
    table: &Table,
    label: &str,
    stream: &TableStream,
    keys: &[String],
    is_stream: bool,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let start = TableOffset::start(table, stream)?;
    match (is_stream, stream.reads_change_feed) {
        (false, false) => table.provider(None).await.map(Some),
        (false, true) => FeedRows::provider(table, whole_feed(table, table.version())?, keys).await.map(Some),
        (true, false) => match next_slice(table, label, start, table.version(), stream, None)? {
            Some(slice) => table.files_provider(slice.files).await.map(Some),
            None => Ok(None),
        },
        (true, true) => {
            let all = SliceLimit { files: usize::MAX, bytes: None };
            match next_feed_slice(table, label, start, table.version(), all)? {
                Some(slice) => FeedRows::provider(table, slice.parts, keys).await.map(Some),
                None => Ok(None),
            }
        }
    }
}

/// Of all the feeds together, sorted by the bytes of the key: each key with the last sequence of seeds and the first
/// one of live feeds, as bytes.
pub(super) fn ends(feeds: Vec<Feed>, codecs: &Codecs) -> Result<Option<LogicalPlan>> {
    let sides = feeds.into_iter().map(|feed| side(feed, codecs)).collect::<Result<Vec<_>>>()?;
    let Some(all) = sides.into_iter().map(Ok).reduce(|all, side| union(all?, side?)).transpose()? else {
        return Ok(None);
    };
    LogicalPlanBuilder::from(all)
        .aggregate([column(KEY)], [max(column(SEEDED)).alias(SEEDED), min(column(LIVE)).alias(LIVE)])
        .and_then(|ends| ends.sort([column(KEY).sort(true, true)]))
        .and_then(LogicalPlanBuilder::build)
        .map(Some)
        .map_err(failed)
}

fn union(a: LogicalPlan, b: LogicalPlan) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(a).union(b).and_then(LogicalPlanBuilder::build).map_err(failed)
}

/// The events of one feed: key, and the sequence in the column of its side.
fn side(feed: Feed, codecs: &Codecs) -> Result<LogicalPlan> {
    let is_seed = feed.is_seed;
    let version = feed.version().map(<[u8]>::to_vec);
    events(feed, codecs, |key, sequence| {
        let none = lit(ScalarValue::Binary(None));
        let sequence = match version {
            Some(version) => lit(ScalarValue::Binary(Some(version))),
            None => key_bytes(&codecs.sequence, vec![sequence]),
        };
        let (seeded, live) = if is_seed { (sequence, none) } else { (none, sequence) };
        vec![key.alias(KEY), seeded.alias(SEEDED), live.alias(LIVE)]
    })
}

/// What `columns` makes of a feed's events: of the bytes of the key, and of the sequence with its type.
pub(super) fn events(
    feed: Feed,
    codecs: &Codecs,
    columns: impl FnOnce(Expr, (Expr, ArrowType)) -> Vec<Expr>,
) -> Result<LogicalPlan> {
    let typed = |name: &str| Ok::<_, Error>((column(name), feed.data_type(name)?));
    let keys = feed.keys.iter().map(|key| typed(key)).collect::<Result<Vec<_>>>()?;
    let sequence = feed.sequence()?;
    // Events without key or sequence are refused or dropped, and TRUNCATE has no key.
    let mut condition =
        keys.iter().fold(sequence.0.clone().is_not_null(), |all, (key, _)| all.and(key.clone().is_not_null()));
    if let Ok((truncates, _)) = typed(TRUNCATE_COLUMN) {
        condition = condition.and(truncates.is_not_true());
    }
    let key = key_bytes(&codecs.keys, keys);
    // A view: the names of a query's inputs are no longer seen.
    let rows = Arc::new(ViewTable::new(feed.rows, None));
    let rows = LogicalPlanBuilder::scan("feed", datafusion::datasource::provider_as_source(rows), None);
    rows.and_then(|rows| rows.filter(condition))
        .and_then(|rows| rows.project(columns(key, sequence)))
        .and_then(LogicalPlanBuilder::build)
        .map_err(failed)
}
