//! The DataFusion session of an engine: Spark's dialect and functions, one pool of memory, one spill folder.
//!
//! - `mod.rs`: options, the engine's session and the cheap sessions of its flows;
//! - [`mod@plan`]: SQL text over named inputs → logical plan, or all that is wrong with it, with places;
//! - `plan_error`: what can be wrong, with what may have been meant;
//! - `syntax`: Spark's spellings rewritten in the parsed statement, before DataFusion sees it;
//! - `spelling`: names of columns and relations without regard to case;
//! - `literals`: numbers with Spark's types;
//! - `implicit_casts`: values that become text unasked;
//! - `words`: DataFusion's errors in the user's words;
//! - `operators`, `types`: what DataFusion's planner asks us: `/`, `a.b`, `a[0]`, `TIMESTAMP`, ….
//!
//! Not here: functions (`crate::functions`), sources and tables.

mod implicit_casts;
mod literals;
mod operators;
pub mod plan;
mod plan_error;
mod spelling;
mod syntax;
mod types;
mod words;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::catalog::CatalogProviderList;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemoryCatalogProviderList, MemorySchemaProvider};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::{Error, Result};
use crate::functions;

pub use plan::{PlanningSession, plan};
pub(crate) use plan_error::name_differently;
pub use plan_error::{PlanError, PlanErrorKind};
pub(crate) use syntax::parse_data_type;
pub(crate) use types::{timestamp, timestamp_ntz};
pub(crate) use words::in_words;

/// Rows of a record batch between operators.
const BATCH_ROWS: usize = 8192;

/// How many of the largest consumers an "out of memory" error names.
const CONSUMERS_NAMED: NonZeroUsize = NonZeroUsize::new(5).expect("five is not zero");

/// What an engine may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// Partitions that a query is run in, at least 1.
    pub threads: usize,
    /// What all queries of the engine together may hold in memory; beyond it sorts, joins and aggregates spill.
    pub memory_bytes: usize,
    /// Where they spill to; None: the system's folder for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// IANA name of the zone in which timestamps become dates, hours or text, and text without offset timestamps.
    pub time_zone: String,
}

/// Returns the session of an engine. Make the sessions of its flows with [`flow_session`]: they share its
/// memory and spill folder.
///
/// # Errors
/// An unknown time zone, a spill folder that can't be made.
pub fn session(options: &SessionOptions) -> Result<SessionContext> {
    if options.time_zone.parse::<chrono_tz::Tz>().is_err() {
        return Err(Error::user(
            "unknown-time-zone",
            format!("unknown time zone: `{}`", options.time_zone),
            "use a name of the IANA data base, such as `UTC` or `Europe/Berlin`",
        ));
    }
    let query_error = |source| Error::Query { during: "start the query engine".into(), source: Box::new(source) };
    let runtime = runtime(options).map_err(query_error)?;
    let mut builder = SessionStateBuilder::new()
        .with_config(config(options))
        .with_runtime_env(runtime)
        .with_default_features()
        .with_type_planner(Arc::new(types::SparkTypes))
        .with_analyzer_rule(Arc::new(implicit_casts::SparkText));
    // The first planner that answers wins.
    builder.expr_planners().get_or_insert_default().insert(0, Arc::new(operators::SparkOperators));
    let mut state = builder.build();
    functions::register(&mut state).map_err(query_error)?;
    Ok(SessionContext::new_with_state(state))
}

/// Returns a session with the functions, options, memory and spill folder of `engine`, and no tables. Cheap
/// enough (about 0.1 ms) to be made for each query.
pub fn flow_session(engine: &SessionContext) -> SessionContext {
    SessionContext::new_with_state(flow_state(engine).0)
}

/// A session like `flow` whose plans have at most this many partitions. Where a query only looks at row after row, one
/// partition's rows come before the next one's in their source: that decides ties of those who read what it writes.
pub fn with_partitions(flow: &SessionContext, partitions: usize) -> SessionContext {
    let mut state = flow.state();
    let settings = state.config_mut().options_mut();
    settings.execution.target_partitions = partitions.max(1);
    // No partition takes files of another one, and rows aren't dealt out; a file is cut instead.
    settings.execution.enable_file_stream_work_stealing = false;
    settings.optimizer.enable_round_robin_repartition = false;
    settings.optimizer.repartition_file_min_size = 1 << 20;
    SessionContext::new_with_state(state)
}

/// How many partitions a session's plans have at most.
pub fn partitions(session: &SessionContext) -> usize {
    session.state().config().target_partitions()
}

/// A flow's session, with a pool of memory of its own if the flow has a limit.
pub fn limited(engine: &SessionContext, memory_bytes: Option<u64>) -> Result<SessionContext> {
    let Some(bytes) = memory_bytes else { return Ok(flow_session(engine)) };
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let pool = TrackConsumersPool::new(FairSpillPool::new(bytes), CONSUMERS_NAMED);
    let shared = engine.runtime_env();
    let runtime = RuntimeEnv { memory_pool: Arc::new(pool), ..shared.as_ref().clone() };
    let mut state =
        SessionStateBuilder::new_from_existing(flow_state(engine).0).with_runtime_env(Arc::new(runtime)).build();
    state.config_mut().options_mut().execution.sort_spill_reservation_bytes = sort_reservation(bytes);
    // The builder registers functions in random order; the last registration decides (see `flow_state`).
    functions::register(&mut state)
        .map_err(|source| Error::Query { during: "start the query engine".into(), source: Box::new(source) })?;
    Ok(SessionContext::new_with_state(state))
}

/// What a sort keeps back to be able to merge what it spilled: DataFusion's 10 MiB, less in a small pool, where
/// that alone would be too much.
fn sort_reservation(memory_bytes: usize) -> usize {
    (memory_bytes / 8).min(10 << 20)
}

/// The state of a flow's session, and where its tables are kept.
fn flow_state(engine: &SessionContext) -> (SessionState, Arc<MemorySchemaProvider>) {
    // Cloned, not built anew from the old one: `SessionStateBuilder::new_from_existing` registers functions in
    // the random order of a hash map, so that an alias of a replaced function could bring it back.
    let mut state = engine.state();
    let options = &state.config().options().catalog;
    let catalog = MemoryCatalogProvider::new();
    let tables = Arc::new(MemorySchemaProvider::new());
    catalog.register_schema(&options.default_schema, tables.clone()).expect("a catalog in memory takes any schema");
    let catalogs = MemoryCatalogProviderList::new();
    catalogs.register_catalog(options.default_catalog.clone(), Arc::new(catalog));
    state.register_catalog_list(Arc::new(catalogs));
    (state, tables)
}

fn runtime(options: &SessionOptions) -> datafusion::error::Result<Arc<RuntimeEnv>> {
    let pool = TrackConsumersPool::new(FairSpillPool::new(options.memory_bytes), CONSUMERS_NAMED);
    let mode = match &options.spill_dir {
        Some(folder) => DiskManagerMode::Directories(vec![folder.clone()]),
        None => DiskManagerMode::OsTmpDirectory,
    };
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
        .build_arc()
}

fn config(options: &SessionOptions) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(options.threads.max(1))
        .with_batch_size(BATCH_ROWS)
        .with_information_schema(false);
    let settings = config.options_mut();
    settings.execution.time_zone = Some(options.time_zone.clone());
    settings.execution.sort_spill_reservation_bytes = sort_reservation(options.memory_bytes);
    let parser = &mut settings.sql_parser;
    parser.dialect = datafusion::common::config::Dialect::Databricks;
    parser.collect_spans = true;
    // Names keep their spelling; `spelling` finds them without regard to case.
    parser.enable_ident_normalization = false;
    // Delta tables hold plain strings; one string type keeps casts out of the plans.
    parser.map_string_types_to_utf8view = false;
    // Spark: `1.5` is a DECIMAL(2,1).
    parser.parse_float_as_decimal = true;
    // Spark: NULL is less than any value.
    parser.default_null_ordering = "nulls_min".to_string();
    config
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A session for tests.
    pub(crate) fn session_in(time_zone: &str) -> SessionContext {
        session(&SessionOptions {
            threads: 2,
            memory_bytes: 256 << 20,
            spill_dir: None,
            time_zone: time_zone.to_string(),
        })
        .unwrap()
    }

    #[test]
    fn flow_session_shares_the_memory_and_no_tables() {
        let engine = session_in("UTC");
        let flow = flow_session(&engine);
        assert!(Arc::ptr_eq(&flow.runtime_env(), &engine.runtime_env()));
        assert!(!Arc::ptr_eq(&flow.catalog("datafusion").unwrap(), &engine.catalog("datafusion").unwrap()));
    }

    #[test]
    fn unknown_time_zone_is_refused() {
        let options =
            SessionOptions { threads: 1, memory_bytes: 1 << 20, spill_dir: None, time_zone: "Mars/Base".into() };
        assert_eq!(session(&options).err().map(|error| error.code()), Some("unknown-time-zone"));
    }
}
