//! Queries planned for what they give, not to be run: over tables without rows, and remembered by what they were
//! planned from. An edit costs the queries that it touches.
//!
//! ```text
//! key = the query's SQL + the columns of what it reads + time zone        views: their key instead of columns
//! ```
//!
//! Errors are kept with their places in the query's own text, so that an edit above a query moves them along.
//! Not here: which columns a source has (`source::remembered`) and what follows from the result (`analysis`).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use futures::future::BoxFuture;
use pipeline::data_type::Field;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{Dataset, DatasetId, FlowId, Graph, InputId, Reading, Source};

use crate::columns::{Columns, Misfit, output_fields};
use crate::content_key::{ContentHasher, ContentKey};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::micro_batch::query_error;
use crate::reading::{StreamBatch, diagnostic, empty, name_columns};
use crate::session::{self, PlanError, PlanningSession};
use crate::stream_rules;

/// Analyses for which a plan that nobody asks for is kept: going back and forth in an editor costs nothing.
const ROUNDS_KEPT: u64 = 16;

/// The columns behind each input of a query, and of the views it reads, that is not a view itself.
pub(crate) type InputSchemas = HashMap<InputId, SchemaRef>;

/// A query to plan, by whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingId {
    Flow(FlowId),
    /// The `WITH VERSION (…)` of a flow.
    Version(FlowId),
    View(DatasetId),
}

impl ReadingId {
    /// The query.
    pub fn reading(self, graph: &Graph) -> &Reading {
        match self {
            ReadingId::Flow(id) => &graph.flow(id).reading,
            ReadingId::Version(id) => graph.flow(id).version.as_ref().expect("the id is that of a flow with versions"),
            ReadingId::View(id) => graph.dataset(id).view.as_ref().expect("the id is a view's"),
        }
    }

    /// The dataset that it makes.
    pub fn dataset(self, graph: &Graph) -> DatasetId {
        match self {
            ReadingId::Flow(id) | ReadingId::Version(id) => graph.flow(id).target,
            ReadingId::View(id) => id,
        }
    }
}

/// What a query gives, or what is wrong with it.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Err without errors: a view below is wrong.
    pub query: Result<PlannedQuery, Vec<PlanError>>,
    /// Of the views it reads, by the position of the input.
    views: Vec<(usize, Arc<Planned>)>,
}

/// A sound query.
#[derive(Debug)]
pub(crate) struct PlannedQuery {
    /// Its columns, in types that a table can hold.
    pub output: Output,
    /// What it does with a stream that needs the whole of it.
    pub stateful: Option<&'static str>,
    pub plan: LogicalPlan,
}

/// The columns that a query gives, or why no table can hold them.
#[derive(Debug)]
pub(crate) enum Output {
    Fields(Vec<Field>),
    /// What a Delta table says against their names, which don't matter to a version.
    Names {
        fields: Vec<Field>,
        why: String,
    },
    Misfits(Vec<Misfit>),
}

impl Output {
    fn of(plan: &LogicalPlan) -> Output {
        match output_fields(plan.schema().as_arrow()) {
            Ok(fields) => match crate::table::canonical(&Columns::grown(fields.clone()).schema()) {
                Ok(_) => Output::Fields(fields),
                Err(why) => Output::Names { fields, why },
            },
            Err(misfits) => Output::Misfits(misfits),
        }
    }
}

impl Planned {
    /// Err if the list of a view doesn't fit its query.
    pub fn named(&self, dataset: &Dataset, view: &Reading) -> Result<(), Box<Diagnostic>> {
        match &self.query {
            Ok(query) => name_columns(dataset, view, query.plan.clone()).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// What is wrong, at the places that `reading` and its views have now.
    pub fn diagnostics(&self, graph: &Graph, reading: &Reading) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> =
            self.query.as_ref().err().into_iter().flatten().map(|error| diagnostic(reading, error)).collect();
        for (input, planned) in &self.views {
            let Some((dataset, view)) = view_behind(graph, reading, *input) else { continue };
            found.extend(planned.diagnostics(graph, view));
            found.extend(planned.named(dataset, view).err().map(|wrong| *wrong));
        }
        found
    }
}

/// All that is remembered. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Plans {
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    round: u64,
    /// With the round in which it was asked for last.
    plans: HashMap<ContentKey, (Arc<Planned>, u64)>,
    /// The query engine that plans, and its time zone.
    session: Option<(String, SessionContext)>,
    /// By time zone and SQL.
    defaults: HashMap<(String, String), std::result::Result<ScalarValue, String>>,
}

impl Plans {
    /// Plans queries, those that aren't known on all cores; in the order of `wanted`.
    pub async fn plan(&self, engine: &Engine, wanted: Vec<(ReadingId, InputSchemas)>) -> Result<Vec<Arc<Planned>>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let time_zone = engine.settings().time_zone.value.clone();
        let session = self.session(engine)?;
        let planner = Planner { engine: engine.clone(), session, plans: self.clone(), time_zone };
        let keys = wanted.iter().map(|(id, schemas)| planner.key(id.reading(engine.graph()), schemas));
        let mut planned: Vec<Option<Arc<Planned>>> = keys.map(|key| self.get(key)).collect();
        let missing: Vec<(usize, ReadingId, InputSchemas)> = wanted
            .into_iter()
            .enumerate()
            .filter(|(i, _)| planned[*i].is_none())
            .map(|(i, (id, schemas))| (i, id, schemas))
            .collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let missing = Arc::new(missing);
        let tasks: Vec<_> = (0..cores.min(missing.len()))
            .map(|core| {
                let (planner, missing) = (planner.clone(), missing.clone());
                tokio::spawn(async move {
                    let session = PlanningSession::new(&planner.session);
                    let mut found = Vec::new();
                    for (i, id, schemas) in missing.iter().skip(core).step_by(cores) {
                        found.push((*i, planner.plan(&session, id.reading(planner.engine.graph()), schemas).await));
                    }
                    found
                })
            })
            .collect();
        for task in tasks {
            for (i, one) in task.await.map_err(|e| Error::Internal(format!("planning failed: {e}")))? {
                planned[i] = Some(one);
            }
        }
        Ok(planned.into_iter().map(|one| one.expect("what was not known was planned")).collect())
    }

    /// The value of `DEFAULT sql`, a constant; Err says what is wrong with it.
    pub async fn default_value(&self, engine: &Engine, sql: &str) -> Result<std::result::Result<ScalarValue, String>> {
        let key = (engine.settings().time_zone.value.clone(), sql.to_string());
        if let Some(known) = self.lock().defaults.get(&key) {
            return Ok(known.clone());
        }
        let session = self.session(engine)?;
        let during = "compute a DEFAULT";
        let found = match session::plan(&session, &format!("SELECT {sql} AS value"), Vec::new()).await {
            Ok(plan) => {
                let frame = session.execute_logical_plan(plan).await.map_err(|e| query_error(during, e))?;
                let batches = frame.collect().await.map_err(|e| query_error(during, e))?;
                let batch = batches.first().filter(|batch| batch.num_rows() == 1);
                let batch = batch.ok_or_else(|| Error::Internal("a DEFAULT without a value".to_string()))?;
                Ok(ScalarValue::try_from_array(batch.column(0), 0).map_err(|e| query_error(during, e))?)
            }
            Err(errors) => Err(errors.first().map(ToString::to_string).unwrap_or_default()),
        };
        self.lock().defaults.insert(key, found.clone());
        Ok(found)
    }

    /// Begins an analysis; what nobody has asked for in a while is forgotten.
    pub fn next_round(&self) {
        let mut known = self.lock();
        known.round += 1;
        let oldest = known.round.saturating_sub(ROUNDS_KEPT);
        known.plans.retain(|_, (_, asked)| *asked >= oldest);
    }

    /// The query engine for planning: it runs nothing that spills, so the storage folder need not be there.
    fn session(&self, engine: &Engine) -> Result<SessionContext> {
        let options = engine.session_options(None);
        let mut known = self.lock();
        if let Some((time_zone, session)) = &known.session
            && *time_zone == options.time_zone
        {
            return Ok(session.clone());
        }
        let session = session::session(&options)?;
        known.session = Some((options.time_zone, session.clone()));
        Ok(session)
    }

    fn get(&self, key: ContentKey) -> Option<Arc<Planned>> {
        let mut known = self.lock();
        let round = known.round;
        let (planned, asked) = known.plans.get_mut(&key)?;
        *asked = round;
        Some(planned.clone())
    }

    fn insert(&self, key: ContentKey, planned: Arc<Planned>) -> Arc<Planned> {
        let mut known = self.lock();
        let round = known.round;
        known.plans.insert(key, (planned.clone(), round));
        planned
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
struct Planner {
    engine: Engine,
    session: SessionContext,
    plans: Plans,
    time_zone: String,
}

impl Planner {
    fn key(&self, reading: &Reading, schemas: &InputSchemas) -> ContentKey {
        let mut hasher = ContentHasher::new();
        self.time_zone.hash(&mut hasher);
        reading.query.sql.as_str().hash(&mut hasher);
        for (i, input) in reading.inputs.iter().enumerate() {
            (&input.name, input.is_stream).hash(&mut hasher);
            match view_behind(self.engine.graph(), reading, i) {
                Some((dataset, view)) => {
                    self.key(view, schemas).hash(&mut hasher);
                    dataset.definition.columns.iter().for_each(|column| column.name.value.hash(&mut hasher));
                }
                None => schemas.get(&input.id).hash(&mut hasher),
            }
        }
        hasher.key()
    }

    /// Plans a query and the views it reads.
    fn plan<'a>(
        &'a self,
        session: &'a PlanningSession,
        reading: &'a Reading,
        schemas: &'a InputSchemas,
    ) -> BoxFuture<'a, Arc<Planned>> {
        Box::pin(async move {
            let key = self.key(reading, schemas);
            if let Some(known) = self.plans.get(key) {
                return known;
            }
            let (mut views, mut inputs, mut is_sound) = (Vec::new(), Vec::new(), true);
            for (i, input) in reading.inputs.iter().enumerate() {
                let provider = match view_behind(self.engine.graph(), reading, i) {
                    Some((dataset, view)) => {
                        let planned = self.plan(session, view, schemas).await;
                        let named = planned.query.as_ref().ok().map(|query| query.plan.clone());
                        let named = named.and_then(|plan| name_columns(dataset, view, plan).ok());
                        views.push((i, planned));
                        named.map(|plan| Arc::new(ViewTable::new(plan, None)) as Arc<dyn TableProvider>)
                    }
                    None => schemas.get(&input.id).map(|schema| match input.is_stream {
                        true => Arc::new(StreamBatch(empty(schema.clone()))) as Arc<dyn TableProvider>,
                        false => empty(schema.clone()),
                    }),
                };
                match provider {
                    Some(provider) => inputs.push((input.name.clone(), provider)),
                    None => is_sound = false,
                }
            }
            let query = match is_sound {
                true => session.plan(reading.query.sql.as_str(), inputs).await.map(|plan| PlannedQuery {
                    output: Output::of(&plan),
                    stateful: stream_rules::find(&plan),
                    plan,
                }),
                false => Err(Vec::new()),
            };
            self.plans.insert(key, Arc::new(Planned { query, views }))
        })
    }
}

/// The view that stands behind an input, if it is one.
fn view_behind<'a>(graph: &'a Graph, reading: &Reading, input: usize) -> Option<(&'a Dataset, &'a Reading)> {
    match reading.inputs.get(input)?.source {
        Source::Dataset { id, .. } => {
            Some(graph.dataset(id)).and_then(|dataset| Some((dataset, dataset.view.as_ref()?)))
        }
        _ => None,
    }
}
