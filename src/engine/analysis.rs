//! The analysis stage of validation: what columns each source, flow and dataset has, and what is wrong with
//! the queries over them. Reads schemas, listings and samples; writes nothing.

use std::collections::{BTreeSet, HashMap};

use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use pipeline::change::AppliedDataset;
use pipeline::data_type::{DataType, Field};
use pipeline::ddl::parse_type;
use pipeline::definition::{ColumnDefinition, DatasetKind};
use pipeline::diagnostic::{self, Diagnostic, nearest};
use pipeline::graph::{Dataset, DatasetId, Flow, FlowId, FlowKind, ResolvedInput, Source};
use pipeline::text::Span;
use pipeline::validate::fold_consequences;

use crate::columns::{Columns, Misfit, grow};
use crate::content_key::ContentKey;
use crate::data_type::{position, schema_from_arrow};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lint;
use crate::listings::source_key;
use crate::plans::{InputSchemas, Output, Planned, ReadingId};
use crate::recorded::{Recorded, StoredSchema};
use crate::source::files::table_schema;
use crate::source::flow_sources::flow_sources;
use crate::source::remembered::{Sources, external_schema};
use crate::stream_rules;

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
    /// By [`FlowId`]: the columns its query gives.
    pub flows: Vec<Option<Vec<Field>>>,
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
        lint::look(self, self.state_for_reading()?.as_ref(), &facts.history, &now).await?;
        let is_same = before.is_same(&now);
        self.remember_sources(now);
        Ok(!is_same)
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
            let flows = dataset.flows.iter().map(|flow| ReadingId::Flow(*flow));
            let view = dataset.view.as_ref().filter(|_| views).map(|_| ReadingId::View(*id));
            for reading in flows.chain(view).collect::<Vec<_>>() {
                if let Some(schemas) = self.schemas(*id, reading).await? {
                    wanted.push((reading, schemas));
                }
            }
        }
        let ids: Vec<ReadingId> = wanted.iter().map(|(id, _)| *id).collect();
        let planned = self.engine.plans().plan(self.engine, wanted).await?;
        let mut given: HashMap<FlowId, Option<Vec<Field>>> = HashMap::new();
        for (id, planned) in ids.into_iter().zip(planned) {
            let output = self.planned(id, &planned);
            match id {
                ReadingId::View(id) => self.view(id, output),
                ReadingId::Flow(id) => drop(given.insert(id, output.and_then(|output| self.flow(id, output)))),
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
            let columns = self.columns(*id, dataset, &given).await?;
            if let Some(columns) = &columns {
                self.check_layout(dataset, columns);
            }
            self.analysis.columns[id.0] = columns;
        }
        Ok(())
    }

    /// The columns that a query gives; what is wrong with it is reported.
    fn planned<'p>(&mut self, id: ReadingId, planned: &'p Planned) -> Option<&'p Output> {
        let graph = self.engine.graph();
        let reading = id.reading(graph);
        match &planned.query {
            Ok(query) => {
                if let (ReadingId::Flow(id), Some(what)) = (id, query.stateful)
                    && graph.flow(id).kind == FlowKind::Append
                {
                    self.analysis.diagnostics.push(stream_rules::refused(graph.flow(id), what));
                }
                if let ReadingId::View(id) = id
                    && let Err(wrong) = planned.named(graph.dataset(id), reading)
                {
                    self.report(*wrong);
                    return None;
                }
                Some(&query.output)
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
    fn flow(&mut self, id: FlowId, output: &Output) -> Option<Vec<Field>> {
        let flow = self.engine.graph().flow(id);
        let span = flow.reading.query.span;
        match output {
            Output::Fields(fields) => Some(fields.clone()),
            Output::Names(why) => {
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
                        Misfit::Duplicate { column } => {
                            ("duplicate-column", format!("name one of them differently: … AS {column}_2"))
                        }
                        _ => ("column-type", "cast it to a type that tables hold, such as STRING".to_string()),
                    };
                    self.analysis.diagnostics.push(Diagnostic::error(code, span, misfit.to_string()).help(help));
                }
                None
            }
        }
    }

    /// The columns behind the inputs of a query and of the views it reads; None if some are unknown.
    async fn schemas(&mut self, target: DatasetId, id: ReadingId) -> Result<Option<InputSchemas>> {
        let graph = self.engine.graph();
        let reading = id.reading(graph);
        // What was refused by name would only be refused again, in the planner's words.
        let span = reading.query.span;
        let is_within = |place: Span| place.file == span.file && (span.start..span.end).contains(&place.start);
        let mut refused = self.engine.diagnostics().iter().filter(|found| REFUSED.contains(&found.code));
        if refused.any(|found| found.is_error() && found.span.is_some_and(is_within)) {
            return Ok(None);
        }
        let flow = match id {
            ReadingId::Flow(id) => Some(graph.flow(id)),
            ReadingId::View(_) => None,
        };
        let mut schemas = InputSchemas::new();
        let mut is_known = true;
        for source in flow_sources(graph, reading) {
            match self.schema(source.input, &source.key, flow).await? {
                Some(schema) => drop(schemas.insert(source.input.id, schema)),
                None => {
                    is_known = false;
                    if !matches!(source.input.source, Source::Files(_)) {
                        self.unresolved.insert(target);
                    }
                }
            }
        }
        for input in graph.all_inputs(reading) {
            match input.source {
                Source::Dataset { id, .. } if graph.dataset(id).view.is_some() => {}
                Source::Unresolved => {
                    is_known = false;
                    // Of a view that it reads; its own is an error of its own.
                    if !reading.inputs.iter().any(|own| std::ptr::eq(own, input)) {
                        self.unresolved.insert(target);
                    }
                }
                _ => is_known &= schemas.contains_key(&input.id),
            }
        }
        Ok(is_known.then_some(schemas))
    }

    /// The columns of a source; None if those are unknown.
    async fn schema(&mut self, input: &ResolvedInput, key: &str, flow: Option<&Flow>) -> Result<Option<SchemaRef>> {
        Ok(match &input.source {
            Source::Dataset { id, .. } => self.dataset_schema(*id),
            Source::External { id, .. } => self.external(id.0).await,
            Source::Files(spec) => match self.stored_schema(flow, key)? {
                StoredSchema::Schema(schema) => Some(table_schema(&schema, input.uses_metadata)),
                StoredSchema::DoneWithout => None,
                StoredSchema::Unknown => match self.sources.files(spec).await {
                    Ok(schema) => schema.map(|schema| {
                        let key = (source_key(spec), input.uses_metadata);
                        let made = || table_schema(&schema, input.uses_metadata);
                        self.file_schemas.entry(key).or_insert_with(made).clone()
                    }),
                    Err(failure) => {
                        self.report(Diagnostic {
                            help: failure.help,
                            ..Diagnostic::error(SOURCE_UNREADABLE, input.span, failure.message)
                        });
                        None
                    }
                },
            },
            Source::Unresolved => None,
        })
    }

    /// The columns of a dataset that was analysed; made once, however many read it.
    fn dataset_schema(&mut self, id: DatasetId) -> Option<SchemaRef> {
        let columns = self.analysis.columns[id.0].as_ref()?;
        Some(self.dataset_schemas.entry(id).or_insert_with(|| columns.schema()).clone())
    }

    fn stored_schema(&self, flow: Option<&Flow>, key: &str) -> Result<StoredSchema> {
        let Some(flow) = flow.filter(|flow| !self.anew.contains(&flow.target)) else {
            return Ok(StoredSchema::Unknown);
        };
        self.recorded.schema(self.engine.graph().dataset(flow.target), flow, key)
    }

    async fn external(&mut self, index: usize) -> Option<SchemaRef> {
        if let Some(known) = self.externals.get(&index) {
            return known.clone();
        }
        let table = &self.engine.graph().externals[index];
        let found = external_schema(self.sources, table, self.engine.settings(), self.engine.root()).await;
        let missing = |message: String| Diagnostic::error("source-missing", table.path.span, message);
        let found = match found {
            Ok(Some(found)) => Some(found),
            Ok(None) => {
                let message = format!("source `{}` has no files", table.name.value);
                self.report(missing(message).help("correct its path in flowbench.toml"));
                None
            }
            Err(failure) => {
                self.report(Diagnostic { help: failure.help, ..missing(failure.message) });
                None
            }
        };
        self.externals.insert(index, found.clone());
        found
    }

    /// Joins what is declared, what is stored and what the flows give.
    async fn columns(
        &mut self,
        id: DatasetId,
        dataset: &'a Dataset,
        given: &[(FlowId, Option<Vec<Field>>)],
    ) -> Result<Option<Columns>> {
        let is_anew = self.anew.contains(&id);
        self.check_kind(dataset);
        let declared = self.declared(dataset).await?;
        let stored = match dataset.kind() == DatasetKind::StreamingTable && !is_anew {
            true => self.stored(dataset, declared.as_ref()).await?,
            false => None,
        };
        let mut columns = match (&declared, &stored) {
            (Some(declared), _) => Some(declared.clone()),
            (None, Some(stored)) => Some(stored.clone()),
            (None, None) => None,
        };
        // Who gave a column first, to name both flows of a conflict.
        let mut first: HashMap<String, FlowId> = HashMap::new();
        let mut told: BTreeSet<(Span, String)> = BTreeSet::new();
        for (flow, fields) in given {
            let Some(fields) = fields else { continue };
            let target = columns.clone().unwrap_or_else(|| Columns::grown(Vec::new()));
            let outcome = match stored.is_some() || declared.is_some() {
                true => grow(&target, fields),
                false => merge(&target, fields),
            };
            if let Some(declared) = &declared {
                self.check_not_null(dataset, *flow, declared, fields);
            }
            match outcome {
                Ok(grown) => columns = Some(grown),
                Err(misfits) => {
                    for misfit in misfits {
                        let is_fixed = stored.is_some();
                        // Flows of one `for_each` stand in one place, and are wrong in one place.
                        let span = self.engine.graph().flow(*flow).reading.query.span;
                        if told.insert((span, misfit.to_string())) {
                            let diagnostic = self.misfit(dataset, *flow, &misfit, &first, declared.is_some(), is_fixed);
                            self.analysis.diagnostics.push(diagnostic);
                        }
                    }
                }
            }
            for field in fields {
                first.entry(field.name.to_lowercase()).or_insert(*flow);
            }
        }
        Ok(columns)
    }

    /// What is NOT NULL and has no default must come from every flow.
    fn check_not_null(&mut self, dataset: &Dataset, flow: FlowId, declared: &Columns, given: &[Field]) {
        let flow = self.engine.graph().flow(flow);
        for (field, default) in declared.fields.iter().zip(&declared.defaults) {
            if field.is_nullable || default.is_some() || position(given, &field.name).is_some() {
                continue;
            }
            let message = format!("flow `{}` lacks column `{}`, which is NOT NULL", flow.name, field.name);
            let mut diagnostic = Diagnostic::error("not-null-column-missing", flow.reading.query.span, message)
                .condition("NOT_NULL_CONSTRAINT_VIOLATION")
                .reason("a column that a flow lacks is NULL")
                .help("add the column to the query, or give it a DEFAULT");
            let mut declarations = dataset.definition.columns.iter();
            if let Some(column) = declarations.find(|column| column.name.value.eq_ignore_ascii_case(&field.name)) {
                diagnostic = diagnostic.label(column.name.span, "declared here");
            }
            self.analysis.diagnostics.push(diagnostic);
        }
    }

    /// A streaming table can't become a materialized view in place, nor the other way round.
    fn check_kind(&mut self, dataset: &Dataset) {
        let recorded = self.recorded.kind(dataset);
        if let Some(was) = recorded.filter(|was| *was != dataset.kind()) {
            self.analysis.diagnostics.push(
                Diagnostic::error(
                    "dataset-kind-changed",
                    dataset.definition.name.span,
                    format!("`{}` was a {} and is now a {}", dataset.label, was.words(), dataset.kind().words()),
                )
                .condition("CANNOT_CHANGE_DATASET_TYPE")
                .reason("its table and checkpoints don't fit the new kind, and a full refresh doesn't change that")
                .help(format!(
                    "give the new one another name; or take it out of the files, run `flowbench drop {} --yes`, and put it back",
                    dataset.label
                )),
            );
        }
    }

    fn misfit(
        &self,
        dataset: &Dataset,
        flow: FlowId,
        misfit: &Misfit,
        first: &HashMap<String, FlowId>,
        is_declared: bool,
        is_stored: bool,
    ) -> Diagnostic {
        let graph = self.engine.graph();
        let flow = graph.flow(flow);
        let span = flow.reading.query.span;
        let label = &dataset.label;
        match misfit {
            Misfit::Type { column, from, to } => {
                let other = first.get(&column.to_lowercase()).map(|id| graph.flow(*id));
                let declared = dataset.definition.columns.iter().find(|c| c.name.value.eq_ignore_ascii_case(column));
                let diagnostic = match (declared, other) {
                    (Some(declared), _) => Diagnostic::error(
                        "schema-mismatch",
                        span,
                        format!("column `{column}` of `{label}` is declared {to}; flow `{}` gives {from}", flow.name),
                    )
                    .label(declared.name.span, "declared here"),
                    (None, Some(other)) => Diagnostic::error(
                        "flow-types-differ",
                        span,
                        format!(
                            "column `{column}` of `{label}` is {from} from flow `{}` and {to} from flow `{}`",
                            flow.name, other.name
                        ),
                    )
                    .label(other.name_span, "the other flow"),
                    (None, None) => Diagnostic::error(
                        "schema-mismatch",
                        span,
                        format!("column `{column}` of `{label}` is {to}; flow `{}` gives {from}", flow.name),
                    ),
                };
                let diagnostic = match is_declared {
                    true => diagnostic.condition("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE"),
                    false => diagnostic.condition("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE"),
                };
                let reads_files = graph.all_inputs(&flow.reading).iter().any(|i| matches!(i.source, Source::Files(_)));
                let mut cast = format!("make it {to} in the query: CAST(… AS {to}) AS {column}");
                if reads_files {
                    cast.push_str(&format!(", or give read_files schemaHints => \"{column} {to}\""));
                }
                diagnostic.reason(format!("{from} can't be widened to {to}")).help(match is_stored {
                    true => format!("{cast}; or build the table anew: flowbench run --full-refresh {label}"),
                    false => cast,
                })
            }
            misfit => Diagnostic::error("undeclared-column", span, format!("flow `{}`: {misfit}", flow.name))
                .condition("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE")
                .label(dataset.definition.name.span, "its columns are declared here")
                .help("declare the column, or leave it out of the query"),
        }
    }

    /// The columns of the definition, with their types and defaults.
    async fn declared(&mut self, dataset: &'a Dataset) -> Result<Option<Columns>> {
        let definition = &dataset.definition;
        if definition.columns.is_empty() {
            return Ok(None);
        }
        let mut columns = Columns { fields: Vec::new(), is_declared: true, defaults: Vec::new() };
        for column in &definition.columns {
            let Some(data_type) = &column.data_type else { continue };
            // A type that can't be read is reported by `pipeline::validate`.
            let Ok(data_type) = parse_type(&data_type.value) else { continue };
            columns.fields.push(Field {
                name: column.name.value.clone(),
                data_type,
                is_nullable: column.is_nullable,
                comment: column.comment.clone(),
            });
            columns.defaults.push(self.default(column).await?);
        }
        Ok((!columns.fields.is_empty()).then_some(columns))
    }

    /// The value of `DEFAULT expr`, which must be a constant.
    async fn default(&mut self, column: &ColumnDefinition) -> Result<Option<ScalarValue>> {
        let Some(default) = &column.default else { return Ok(None) };
        match self.engine.plans().default_value(self.engine, &default.value).await? {
            Ok(value) => Ok(Some(value)),
            Err(message) => {
                self.analysis.diagnostics.push(
                    Diagnostic::error(
                        "column-default",
                        default.span,
                        format!("DEFAULT of `{}`: {message}", column.name.value),
                    )
                    .help("a default is a constant, such as 0 or 'unknown'"),
                );
                Ok(None)
            }
        }
    }

    /// The columns of the table on disk; what can't be changed in place is reported.
    async fn stored(&mut self, dataset: &'a Dataset, declared: Option<&Columns>) -> Result<Option<Columns>> {
        if !self.has_storage {
            return Ok(None);
        }
        let Some(table) = self.engine.table(dataset)? else { return Ok(None) };
        let table = table.lock().await;
        let fields = schema_from_arrow(&table.schema()).map_err(Error::Internal)?;
        let label = &dataset.label;
        let refresh = format!("build it anew: flowbench run --full-refresh {label}");
        let wanted: Vec<&str> = dataset.definition.partition_by.iter().map(|column| column.value.as_str()).collect();
        let is_same = wanted.len() == table.partition_by().len()
            && wanted.iter().zip(table.partition_by()).all(|(a, b)| a.eq_ignore_ascii_case(b));
        if !is_same {
            let was =
                if table.partition_by().is_empty() { "nothing".to_string() } else { table.partition_by().join(", ") };
            let now = if wanted.is_empty() { "nothing".to_string() } else { wanted.join(", ") };
            self.analysis.diagnostics.push(
                Diagnostic::error(
                    "needs-full-refresh",
                    dataset.definition.name.span,
                    format!("`{label}` is partitioned by {was} on disk and by {now} in its definition"),
                )
                .reason("rows that are stored can't be laid out anew in place")
                .help(&refresh),
            );
        }
        for column in declared.iter().flat_map(|declared| &declared.fields) {
            let Some(stored) = position(&fields, &column.name).map(|at| &fields[at]) else { continue };
            if stored.data_type != column.data_type {
                self.analysis.diagnostics.push(
                    Diagnostic::error(
                        "needs-full-refresh",
                        dataset.definition.name.span,
                        format!(
                            "column `{}` of `{label}` is {} on disk and {} in its definition",
                            column.name, stored.data_type, column.data_type
                        ),
                    )
                    .condition("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE")
                    .help(&refresh),
                );
            }
        }
        Ok(Some(Columns::grown(fields)))
    }

    /// PARTITIONED BY and CLUSTER BY name columns that there are.
    fn check_layout(&mut self, dataset: &Dataset, columns: &Columns) {
        let definition = &dataset.definition;
        let clauses = [
            (&definition.partition_by, "partition-type", "PARTITIONED BY", "a folder's name can't hold such a value"),
            (&definition.cluster_by, "cluster-type", "CLUSTER BY", "files keep no least and greatest value of it"),
        ];
        for (used, code, clause, reason) in clauses {
            for used in used {
                let Some(at) = position(&columns.fields, &used.value) else { continue };
                let data_type = &columns.fields[at].data_type;
                let is_plain = !matches!(
                    data_type,
                    DataType::Array(_) | DataType::Map(..) | DataType::Struct(_) | DataType::Binary
                );
                if is_plain && (code == "partition-type" || *data_type != DataType::Boolean) {
                    continue;
                }
                self.analysis.diagnostics.push(
                    Diagnostic::error(
                        code,
                        used.span,
                        format!("{clause} can't take `{}`, which is {data_type}", used.value),
                    )
                    .reason(reason)
                    .help("take a column of numbers, dates, timestamps or text"),
                );
            }
        }
        for used in definition.partition_by.iter().chain(&definition.cluster_by) {
            if position(&columns.fields, &used.value).is_some() || !definition.columns.is_empty() {
                continue;
            }
            let names = columns.fields.iter().map(|field| field.name.as_str());
            let mut problem = Diagnostic::error(
                "unknown-column",
                used.span,
                format!("`{}` has no column `{}`", dataset.label, used.value),
            );
            problem = match nearest(&used.value, names.clone()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")).edit(used.span, near.to_string()),
                None => problem.help(format!("its columns are: {}", names.collect::<Vec<_>>().join(", "))),
            };
            self.analysis.diagnostics.push(problem);
        }
    }
}

/// Columns of flows among themselves, before anything is stored: the wider type wins, whichever comes first.
fn merge(target: &Columns, given: &[Field]) -> Result<Columns, Vec<Misfit>> {
    let mut merged = target.clone();
    let mut misfits = Vec::new();
    for field in given {
        match position(&merged.fields, &field.name) {
            Some(at) => match crate::data_type::merge_types(&merged.fields[at].data_type, &field.data_type) {
                Some(wider) => merged.fields[at].data_type = wider,
                None => misfits.push(Misfit::Type {
                    column: merged.fields[at].name.clone(),
                    from: field.data_type.to_string(),
                    to: merged.fields[at].data_type.to_string(),
                }),
            },
            None => {
                merged.fields.push(field.clone());
                merged.defaults.push(None);
            }
        }
    }
    match misfits.is_empty() {
        true => Ok(merged),
        false => Err(misfits),
    }
}

/// A dataset's definition with these columns, as state.db remembers what was applied.
pub(crate) fn applied(dataset: &Dataset, columns: &Columns) -> AppliedDataset {
    let names =
        |columns: &[pipeline::text::Spanned<String>]| columns.iter().map(|column| column.value.clone()).collect();
    AppliedDataset {
        kind: dataset.kind(),
        columns: columns.fields.iter().map(|field| (field.name.clone(), field.data_type.to_string())).collect(),
        partition_by: names(&dataset.definition.partition_by),
        cluster_by: names(&dataset.definition.cluster_by),
        comment: dataset.definition.comment.clone(),
        properties: dataset.definition.properties.clone(),
    }
}
