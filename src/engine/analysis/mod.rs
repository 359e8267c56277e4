//! The analysis stage of validation: what columns each source, flow and dataset has, and what is wrong with
//! the queries over them. Reads schemas, listings and samples; writes nothing.
//!
//! - `mod.rs`: the analysis from wave to wave of the graph
//! - `inputs.rs`: the columns of what a query reads; `table.rs`: those of a dataset's table
//! - `change.rs`: a flow of AUTO CDC over the columns of its source; `change_target.rs`: those of one table together; `drift.rs`:
//!   against what its target was built with; `origin.rs`: what its sequence is made of

mod change;
mod change_target;
mod drift;
mod inputs;
mod origin;
mod table;

use std::collections::{BTreeSet, HashMap};

use arrow::datatypes::SchemaRef;
use pipeline::data_type::{DataType, Field};
use pipeline::diagnostic::{self, Diagnostic};
use pipeline::graph::{DatasetId, FlowId};
use pipeline::validate::fold_consequences;

use crate::columns::{Columns, Misfit};
use crate::content_key::ContentKey;
use crate::engine::Engine;
use crate::error::Result;
use crate::lint;
use crate::plans::{InputSchemas, Output, Planned, PlannedQuery, ReadingId};
use crate::recorded::Recorded;
use crate::session::name_differently;
use crate::source::remembered::Sources;
use crate::stream_rules;

pub(crate) use table::applied;

/// The code of a source whose files can't be read.
pub(crate) const SOURCE_UNREADABLE: &str = "source-unreadable";

/// What the parser says of a query that the planner would stumble over too.
const REFUSED: [&str; 3] = ["not-supported-yet", "relation-as-value", "unknown-table-function"];

/// What the analysis found.
#[derive(Debug, Default)]
pub struct Analysis {
    /// Of both stages, sorted.
    pub diagnostics: Vec<Diagnostic>,
    /// By [`DatasetId`]: what its table holds or will hold; None where that is not known yet.
    pub columns: Vec<Option<Columns>>,
    /// By [`FlowId`]: the columns it gives its dataset.
    pub flows: Vec<Option<Vec<Field>>>,
    /// By [`FlowId`]: the type of the sequence of a flow of AUTO CDC, or of its snapshots' versions.
    pub sequences: Vec<Option<DataType>>,
}

impl Analysis {
    /// True if nothing may run.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

impl Engine {
    /// Analyses the whole workspace against what is stored and what its sources hold. Sources are remembered from
    /// one call to the next, over [`Engine::reload`]; [`Engine::recheck_sources`] looks again.
    ///
    /// # Errors
    /// Disk and state; what is wrong with the files is in [`Analysis::diagnostics`].
    pub async fn analyse(&self) -> Result<Analysis> {
        let facts = self.facts()?;
        let sources = self.sources();
        self.plans().next_round();
        let mut analysis = self.analyse_with(&facts.recorded, &sources, &BTreeSet::new(), true).await?;
        analysis.diagnostics.extend(lint::lints(self, &facts.history, &sources));
        diagnostic::sort(&mut analysis.diagnostics);
        Ok(analysis)
    }

    /// Lists and infers the sources of the workspace anew. True if anything changed, so that another
    /// [`Engine::analyse`] may say something else. For the background: it takes as long as the sources' disks take.
    ///
    /// # Errors
    /// state.db can't be read. What is wrong with a source is said by the analysis.
    pub async fn recheck_sources(&self) -> Result<bool> {
        let facts = self.facts()?;
        let (before, now) = (self.sources(), Sources::new(self.root()));
        self.analyse_with(&facts.recorded, &now, &BTreeSet::new(), true).await?;
        let state = self.state_for_reading()?;
        // To `now` every listing is new; what tables tell is new once. What can't be read is said by whoever reads it.
        let has_news = match &state {
            Some(state) => self.look_for_closed_keys(state).await.unwrap_or(false),
            None => false,
        };
        lint::look(self, state.as_ref(), &facts.history, &now).await?;
        let is_same = before.is_same(&now);
        self.remember_sources(now);
        Ok(has_news || !is_same)
    }

    /// Lists what the warnings of an analysis ask for and no analysis has needed: sources whose columns are on record.
    /// True if there was any, so that another [`Engine::analyse`] may say more.
    ///
    /// # Errors
    /// state.db can't be read.
    pub async fn list_sources(&self) -> Result<bool> {
        let (state, facts) = (self.state_for_reading()?, self.facts()?);
        lint::look(self, state.as_ref(), &facts.history, &self.sources()).await
    }

    /// Analyses with `sources` as they are known. What is in `anew` is checked as if nothing of it were stored.
    /// `views`: views are planned on their own too.
    pub(crate) async fn analyse_with(
        &self,
        recorded: &Recorded,
        sources: &Sources,
        anew: &BTreeSet<DatasetId>,
        views: bool,
    ) -> Result<Analysis> {
        let graph = self.graph();
        let mut work = Work {
            engine: self,
            recorded,
            sources,
            anew,
            externals: HashMap::new(),
            dataset_schemas: HashMap::new(),
            file_schemas: HashMap::new(),
            has_storage: self.storage().exists(),
            unresolved: BTreeSet::new(),
            analysis: Analysis {
                diagnostics: self.diagnostics().to_vec(),
                columns: vec![None; graph.datasets.len()],
                flows: vec![None; graph.flows.len()],
                sequences: vec![None; graph.flows.len()],
            },
        };
        // A graph with errors is analysed as far as it goes: broken inputs are unresolved, not guessed.
        let waves = graph.waves();
        let mut is_reached = vec![false; graph.datasets.len()];
        for wave in &waves {
            work.wave(wave, views).await?;
            wave.iter().for_each(|id| is_reached[id.0] = true);
        }
        // What lies behind a cycle has no place in the order.
        work.unresolved.extend(graph.dataset_ids().filter(|id| !is_reached[id.0]));
        let Work { mut analysis, unresolved, .. } = work;
        diagnostic::sort(&mut analysis.diagnostics);
        fold_consequences(graph, &unresolved, &mut analysis.diagnostics);
        diagnostic::keep_quotes(&self.workspace().files, &mut analysis.diagnostics);
        Ok(analysis)
    }
}

struct Work<'a> {
    engine: &'a Engine,
    recorded: &'a Recorded,
    sources: &'a Sources,
    anew: &'a BTreeSet<DatasetId>,
    externals: HashMap<usize, Option<SchemaRef>>,
    dataset_schemas: HashMap<DatasetId, SchemaRef>,
    /// By the source's schema and whether its `_metadata` is read.
    file_schemas: HashMap<(ContentKey, bool), SchemaRef>,
    /// False: no table can be there.
    has_storage: bool,
    /// Datasets that something they read keeps from being checked.
    unresolved: BTreeSet<DatasetId>,
    analysis: Analysis,
}

impl<'a> Work<'a> {
    /// Analyses datasets that don't read one another, after all that they read.
    async fn wave(&mut self, wave: &[DatasetId], views: bool) -> Result<()> {
        let graph = self.engine.graph();
        let mut wanted: Vec<(ReadingId, InputSchemas)> = Vec::new();
        for id in wave {
            let dataset = graph.dataset(*id);
            // The version before the flow whose bounds it types.
            let flows = dataset.flows.iter().flat_map(|flow| {
                let version = graph.flow(*flow).version.as_ref().map(|_| ReadingId::Version(*flow));
                version.into_iter().chain([ReadingId::Flow(*flow)])
            });
            let view = dataset.view.as_ref().filter(|_| views).map(|_| ReadingId::View(*id));
            for reading in flows.chain(view).collect::<Vec<_>>() {
                if let Some(schemas) = self.schemas(*id, reading).await? {
                    if let ReadingId::Flow(flow) = reading
                        && !self.check_reserved_names(flow, &schemas)
                    {
                        continue;
                    }
                    wanted.push((reading, schemas));
                }
            }
        }
        let ids: Vec<ReadingId> = wanted.iter().map(|(id, _)| *id).collect();
        let planned = self.engine.plans().plan(self.engine, wanted).await?;
        let mut given: HashMap<FlowId, Option<Vec<Field>>> = HashMap::new();
        for (id, planned) in ids.into_iter().zip(planned) {
            let query = self.planned(id, &planned);
            match id {
                ReadingId::View(id) => self.view(id, query.map(|query| &query.output)),
                ReadingId::Version(id) => query.into_iter().for_each(|query| self.version(id, query)),
                ReadingId::Flow(id) => drop(given.insert(id, query.and_then(|query| self.flow(id, query)))),
            }
        }
        for id in wave {
            let dataset = graph.dataset(*id);
            if dataset.view.is_some() {
                continue;
            }
            let given: Vec<_> = dataset.flows.iter().map(|flow| (*flow, given.remove(flow).flatten())).collect();
            for (flow, fields) in &given {
                self.analysis.flows[flow.0].clone_from(fields);
            }
            self.check_change_target(dataset, &given);
            let columns = self.columns(*id, dataset, &given).await?;
            if let Some(columns) = &columns {
                self.check_layout(dataset, columns);
                self.check_drift(*id, columns).await?;
            }
            self.analysis.columns[id.0] = columns;
        }
        Ok(())
    }

    /// The columns that a query gives; what is wrong with it is reported.
    fn planned<'p>(&mut self, id: ReadingId, planned: &'p Planned) -> Option<&'p PlannedQuery> {
        let graph = self.engine.graph();
        let reading = id.reading(graph);
        match &planned.query {
            Ok(query) => {
                if let (ReadingId::Flow(id), Some(what)) = (id, query.stateful)
                    && graph.flow(id).kind.is_incremental()
                {
                    self.analysis.diagnostics.push(stream_rules::refused(graph.flow(id), what));
                }
                if let ReadingId::View(id) = id
                    && let Err(wrong) = planned.named(graph.dataset(id), reading)
                {
                    self.report(*wrong);
                    return None;
                }
                Some(query)
            }
            Err(errors) => {
                if errors.is_empty() {
                    self.unresolved.insert(id.dataset(graph));
                }
                planned.diagnostics(graph, reading).into_iter().for_each(|wrong| self.report(wrong));
                None
            }
        }
    }

    /// What is wrong with a view is said once, not by everyone who reads it too.
    fn report(&mut self, wrong: Diagnostic) {
        if !self.analysis.diagnostics.contains(&wrong) {
            self.analysis.diagnostics.push(wrong);
        }
    }

    /// The columns of a view, with the names and comments of its list.
    fn view(&mut self, id: DatasetId, output: Option<&Output>) {
        let Some(Output::Fields(fields)) = output else { return };
        let mut fields = fields.clone();
        for (field, column) in fields.iter_mut().zip(&self.engine.graph().dataset(id).definition.columns) {
            field.name.clone_from(&column.name.value);
            field.comment.clone_from(&column.comment);
        }
        self.analysis.columns[id.0] = Some(Columns::grown(fields));
    }

    /// The columns that a flow's query gives; None if they fit no table.
    fn flow(&mut self, id: FlowId, query: &PlannedQuery) -> Option<Vec<Field>> {
        let flow = self.engine.graph().flow(id);
        let output = &query.output;
        if flow.change.is_some() && !matches!(output, Output::Names { .. }) {
            return self.change_columns(id, query);
        }
        let span = flow.reading.query.span;
        match output {
            Output::Fields(fields) => Some(fields.clone()),
            Output::Names { why, .. } => {
                self.analysis.diagnostics.push(
                    Diagnostic::error("column-name", span, why.as_str())
                        .condition("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES")
                        .reason(format!(
                            "`{}` is stored as a Delta table",
                            self.engine.graph().dataset(flow.target).label
                        )),
                );
                None
            }
            Output::Misfits(misfits) => {
                for misfit in misfits {
                    let (code, help) = match &misfit {
                        Misfit::Duplicate { column } => ("duplicate-column", name_differently(column)),
                        _ => ("column-type", "cast it to a type that tables hold, such as STRING".to_string()),
                    };
                    self.analysis.diagnostics.push(Diagnostic::error(code, span, misfit.to_string()).help(help));
                }
                None
            }
        }
    }
}
