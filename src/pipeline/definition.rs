//! What the files say, one value a statement, before names are joined (`graph.rs` does that).
//!
//! SQL and TOML give the same definitions; nothing after parsing knows which it was.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::auto_cdc::ChangeFlow;
use crate::name::Name;
use crate::query::Query;
use crate::text::{FileId, Span, Spanned};

/// One statement of a file, or one table of a TOML file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    Dataset(DatasetDefinition),
    Flow(FlowDefinition),
    /// A flow that could not be read; a diagnostic says why. Its name is known, so that others may wait for it.
    BrokenFlow(Spanned<String>),
}

impl Definition {
    /// Follows its files to other places in the list of files.
    pub fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        match self {
            Definition::Dataset(dataset) => dataset.move_to(moved),
            Definition::Flow(flow) => flow.move_to(moved),
            Definition::BrokenFlow(name) => name.span.move_to(moved),
        }
    }
}

/// Where names are completed: the catalog and schema in force (`USE`, else flowbench.toml's).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub catalog: Option<String>,
    pub schema: String,
}

/// What kind of dataset a definition makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatasetKind {
    /// Appended to incrementally by its flows.
    StreamingTable,
    /// Recomputed by its one query.
    MaterializedView,
    /// `CREATE VIEW`: published by name, batch only, never stored.
    View,
    /// `CREATE TEMPORARY VIEW`: known in the pipeline only.
    TemporaryView,
}

impl DatasetKind {
    /// The words for people: `streaming table`.
    pub fn words(self) -> &'static str {
        match self {
            DatasetKind::StreamingTable => "streaming table",
            DatasetKind::MaterializedView => "materialized view",
            DatasetKind::View => "view",
            DatasetKind::TemporaryView => "temporary view",
        }
    }

    /// True if it has a Delta table.
    pub fn is_stored(self) -> bool {
        matches!(self, DatasetKind::StreamingTable | DatasetKind::MaterializedView)
    }
}

/// `CREATE STREAMING TABLE …`, `CREATE MATERIALIZED VIEW …`, `CREATE [TEMPORARY] VIEW …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetDefinition {
    pub kind: DatasetKind,
    pub name: Spanned<Name>,
    pub scope: Scope,
    /// Empty: taken from the flows.
    pub columns: Vec<ColumnDefinition>,
    pub comment: Option<String>,
    pub partition_by: Vec<Spanned<String>>,
    /// `CLUSTER BY (…)`; `AUTO` and `NONE` are an empty list.
    pub cluster_by: Vec<Spanned<String>>,
    pub properties: BTreeMap<String, String>,
    /// Not published; visible in the pipeline only.
    pub is_private: bool,
    /// `AS query`: for a streaming table the default flow, named like the table.
    pub query: Option<Arc<Query>>,
    /// `FLOW AUTO CDC …`: what the default flow says beside its query.
    pub change: Option<Arc<ChangeFlow>>,
    /// `FLOW INSERT ONCE BY NAME query`, `FLOW AUTO CDC ONCE …`: the default flow runs once, until a full refresh.
    pub is_once: bool,
    /// Written in a legacy LIVE form, where a batch `read_files` is an incremental read.
    pub is_legacy_live: bool,
    pub limits: FlowLimits,
    /// The whole statement.
    pub span: Span,
}

impl DatasetDefinition {
    /// Every field is named, so that the compiler asks where the places of a new one go.
    fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        let DatasetDefinition {
            name,
            columns,
            partition_by,
            cluster_by,
            query,
            change,
            span,
            kind: _,
            scope: _,
            comment: _,
            properties: _,
            is_private: _,
            is_once: _,
            is_legacy_live: _,
            limits: _,
        } = self;
        for ColumnDefinition { name, data_type, default, is_nullable: _, comment: _ } in columns {
            let parts = data_type.iter_mut().chain(default).map(|part| &mut part.span);
            parts.chain([&mut name.span]).for_each(|span| span.move_to(moved));
        }
        partition_by.iter_mut().chain(cluster_by).for_each(|column| column.span.move_to(moved));
        query.iter_mut().for_each(|query| Arc::make_mut(query).move_to(moved));
        change.iter_mut().for_each(|change| Arc::make_mut(change).move_to(moved));
        name.span.move_to(moved);
        span.move_to(moved);
    }
}

/// A column as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    pub name: Spanned<String>,
    /// The Spark type as written (`BIGINT`, `STRUCT<a: INT>`); None in a view's column list.
    pub data_type: Option<Spanned<String>>,
    pub is_nullable: bool,
    /// The SQL of `DEFAULT expr`.
    pub default: Option<Spanned<String>>,
    pub comment: Option<String>,
}

/// `CREATE FLOW name [DEPENDS ON (flow, …)] AS INSERT INTO [ONCE] target [BY NAME] query`, `… AS AUTO CDC …`,
/// `APPLY CHANGES INTO target …`, `[[flow]]`, `[[auto_cdc]]` or `[[auto_cdc_snapshot]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowDefinition {
    pub name: Spanned<String>,
    /// The file gives it no name: it is its target's default flow, and `name` is the target's as written.
    pub is_default: bool,
    pub target: Spanned<Name>,
    pub scope: Scope,
    pub is_once: bool,
    /// The flows that must have ended before this one starts.
    pub depends_on: Vec<FlowReference>,
    pub comment: Option<String>,
    /// Shared with the graph: an edit of another file copies no query.
    pub query: Arc<Query>,
    /// What a flow of AUTO CDC says beside its query; None: it inserts.
    pub change: Option<Arc<ChangeFlow>>,
    pub limits: FlowLimits,
    /// The whole statement.
    pub span: Span,
}

/// A flow that another one waits for, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowReference {
    /// More than one part where it is the default flow of a table in another schema.
    pub name: Name,
    /// The name, without the quotes of TOML.
    pub span: Span,
    /// False where `${…}` or `for_each` made the name: no edit may put another one there.
    pub is_literal: bool,
}

impl FlowDefinition {
    fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        let FlowDefinition {
            name,
            target,
            depends_on,
            query,
            change,
            span,
            is_default: _,
            scope: _,
            is_once: _,
            comment: _,
            limits: _,
        } = self;
        Arc::make_mut(query).move_to(moved);
        change.iter_mut().for_each(|change| Arc::make_mut(change).move_to(moved));
        let waits = depends_on.iter_mut().map(|flow| &mut flow.span);
        [&mut name.span, &mut target.span, span].into_iter().chain(waits).for_each(|span| span.move_to(moved));
    }
}

/// A flow's own settings (behaviours B-8, B-35): TOML `limits`, or `SET pipelines.flow.… = …` before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FlowLimits {
    /// Partitions that read and write at the same time.
    pub threads: Option<usize>,
    /// Bytes of memory that the flow's operators may take before they spill.
    pub memory_bytes: Option<u64>,
    /// Retries after a failure that may pass.
    pub retries: Option<u32>,
}
