//! The analysis stage of validation: what columns each source, flow and dataset has, and what is wrong with
//! the queries over them. Reads schemas, listings and samples; writes nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use pipeline::change::AppliedDataset;
use pipeline::data_type::{DataType, Field};
use pipeline::ddl::parse_type;
use pipeline::definition::{ColumnDefinition, DatasetKind};
use pipeline::diagnostic::{self, Diagnostic, nearest};
use pipeline::graph::{Dataset, DatasetId, Flow, FlowId, FlowKind, Reading, ResolvedInput, Source};
use pipeline::text::Span;

use crate::columns::{Columns, Misfit, grow, output_fields};
use crate::data_type::{position, schema_from_arrow};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::listings::Listings;
use crate::micro_batch::query_error;
use crate::reading::{StreamBatch, empty, plan_reading, plan_view};
use crate::source::external;
use crate::source::files::{ScanCounters, SourceSchema, table_provider};
use crate::source::flow_sources::flow_sources;
use crate::state::State;
use crate::stream_rules;

/// The code of a source whose files can't be read.
pub(crate) const SOURCE_UNREADABLE: &str = "source-unreadable";

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
    /// Analyses the whole workspace against what is stored and what its sources hold now.
    ///
    /// # Errors
    /// Disk and state; what is wrong with the files is in [`Analysis::diagnostics`].
    pub async fn analyse(&self) -> Result<Analysis> {
        let state = self.state_for_reading()?;
        let listings = Listings::new(self.root().to_path_buf());
        self.analyse_with(state.as_ref(), &listings, &BTreeSet::new(), true).await
    }

    /// Analyses with sources as `listings` has them. What is in `anew` is checked as if nothing of it were
    /// stored. `views`: views are planned on their own too.
    pub(crate) async fn analyse_with(
        &self,
        state: Option<&State>,
        listings: &Listings,
        anew: &BTreeSet<DatasetId>,
        views: bool,
    ) -> Result<Analysis> {
        let graph = self.graph();
        let mut work = Work {
            engine: self,
            state,
            listings,
            anew,
            externals: HashMap::new(),
            analysis: Analysis {
                diagnostics: self.diagnostics().to_vec(),
                columns: vec![None; graph.datasets.len()],
                flows: vec![None; graph.flows.len()],
            },
        };
        // A graph with errors is analysed as far as it goes: broken inputs are unresolved, not guessed.
        for id in graph.topological_order() {
            work.dataset(id, views).await?;
        }
        let mut analysis = work.analysis;
        diagnostic::sort(&mut analysis.diagnostics);
        Ok(analysis)
    }
}

struct Work<'a> {
    engine: &'a Engine,
    state: Option<&'a State>,
    listings: &'a Listings,
    anew: &'a BTreeSet<DatasetId>,
    externals: HashMap<usize, Option<Arc<dyn TableProvider>>>,
    analysis: Analysis,
}

/// What a query belongs to.
#[derive(Clone, Copy)]
enum Planned<'a> {
    Flow(&'a Flow),
    View(&'a Dataset),
}

impl<'a> Work<'a> {
    async fn dataset(&mut self, id: DatasetId, views: bool) -> Result<()> {
        let graph = self.engine.graph();
        let dataset = graph.dataset(id);
        if let Some(view) = &dataset.view {
            if views {
                self.view(id, dataset, view).await?;
            }
            return Ok(());
        }
        let mut given = Vec::new();
        for flow in &dataset.flows {
            let fields = self.flow(*flow).await?;
            self.analysis.flows[flow.0].clone_from(&fields);
            given.push((*flow, fields));
        }
        let columns = self.columns(id, dataset, &given).await?;
        if let Some(columns) = &columns {
            self.check_layout(dataset, columns);
        }
        self.analysis.columns[id.0] = columns;
        Ok(())
    }

    /// The columns of a view, with the comments of its list.
    async fn view(&mut self, id: DatasetId, dataset: &'a Dataset, view: &'a Reading) -> Result<()> {
        let Some(schema) = self.plan(view, Planned::View(dataset)).await? else { return Ok(()) };
        if let Ok(mut fields) = output_fields(&schema) {
            for (field, column) in fields.iter_mut().zip(&dataset.definition.columns) {
                field.comment.clone_from(&column.comment);
            }
            self.analysis.columns[id.0] = Some(Columns::grown(fields));
        }
        Ok(())
    }

    /// The columns that a flow's query gives; None if they can't be known yet, or a diagnostic says why not.
    async fn flow(&mut self, id: FlowId) -> Result<Option<Vec<Field>>> {
        let flow = self.engine.graph().flow(id);
        let Some(schema) = self.plan(&flow.reading, Planned::Flow(flow)).await? else { return Ok(None) };
        Ok(match output_fields(&schema) {
            Ok(fields) => match crate::table::canonical(&Columns::grown(fields.clone()).schema()) {
                Ok(_) => Some(fields),
                Err(why) => {
                    self.analysis.diagnostics.push(
                        Diagnostic::error("column-name", flow.reading.query.span, why)
                            .condition("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES")
                            .reason(format!(
                                "`{}` is stored as a Delta table",
                                self.engine.graph().dataset(flow.target).label
                            )),
                    );
                    None
                }
            },
            Err(misfits) => {
                for misfit in misfits {
                    let help = match &misfit {
                        Misfit::Duplicate { column } => format!("name one of them differently: … AS {column}_2"),
                        _ => "cast it to a type that tables hold, such as STRING".to_string(),
                    };
                    let code = match &misfit {
                        Misfit::Duplicate { .. } => "duplicate-column",
                        _ => "column-type",
                    };
                    let span = flow.reading.query.span;
                    self.analysis.diagnostics.push(Diagnostic::error(code, span, misfit.to_string()).help(help));
                }
                None
            }
        })
    }

    /// Plans a query over tables without rows.
    async fn plan(&mut self, reading: &'a Reading, planned: Planned<'a>) -> Result<Option<SchemaRef>> {
        let graph = self.engine.graph();
        let flow = match planned {
            Planned::Flow(flow) => Some(flow),
            Planned::View(_) => None,
        };
        // What was refused by name would only be refused again, in the planner's words.
        let span = reading.query.span;
        let is_within = |place: Span| place.file == span.file && (span.start..span.end).contains(&place.start);
        let mut refused = self.engine.diagnostics().iter().filter(|found| found.code == "not-supported-yet");
        if refused.any(|found| found.is_error() && found.span.is_some_and(is_within)) {
            return Ok(None);
        }
        let mut providers: HashMap<Span, Arc<dyn TableProvider>> = HashMap::new();
        for source in flow_sources(graph, reading) {
            let Some(provider) = self.provider(source.input, &source.key, flow).await? else { return Ok(None) };
            let provider = match source.input.is_stream {
                true => Arc::new(StreamBatch(provider)) as Arc<dyn TableProvider>,
                false => provider,
            };
            providers.insert(source.input.span, provider);
        }
        let is_resolved = |input: &&ResolvedInput| match input.source {
            Source::Dataset { id, .. } => graph.dataset(id).view.is_some() || providers.contains_key(&input.span),
            Source::Unresolved => false,
            _ => providers.contains_key(&input.span),
        };
        if !graph.all_inputs(reading).iter().all(is_resolved) {
            return Ok(None);
        }
        let provide = |input: &ResolvedInput| providers[&input.span].clone();
        let session = self.engine.session()?;
        let plan = match planned {
            Planned::Flow(_) => plan_reading(&session, graph, reading, &provide).await,
            Planned::View(dataset) => plan_view(&session, graph, dataset, reading, &provide).await,
        };
        match plan {
            Ok(plan) => {
                if let Some(flow) = flow.filter(|flow| flow.kind == FlowKind::Append) {
                    self.analysis.diagnostics.extend(stream_rules::check(flow, &plan));
                }
                Ok(Some(Arc::new(plan.schema().as_arrow().clone())))
            }
            Err(diagnostics) => {
                // What is wrong with a view is said once, not by everyone who reads it too.
                for diagnostic in diagnostics {
                    if !self.analysis.diagnostics.contains(&diagnostic) {
                        self.analysis.diagnostics.push(diagnostic);
                    }
                }
                Ok(None)
            }
        }
    }

    /// A table without rows that has a source's columns; None if those are unknown.
    async fn provider(
        &mut self,
        input: &ResolvedInput,
        key: &str,
        flow: Option<&Flow>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(match &input.source {
            Source::Dataset { id, .. } => self.analysis.columns[id.0].as_ref().map(|columns| empty(columns.schema())),
            Source::External { id, .. } => self.external(id.0).await?,
            Source::Files(spec) => {
                let schema = match self.stored_schema(flow, key)? {
                    Stored::Schema(schema) => Some(schema),
                    // It has run, with nothing to read; its source is not listed again.
                    Stored::DoneWithout => None,
                    Stored::Unknown => {
                        let listed = self.listings.list(spec).await?;
                        match self.listings.schema(spec, &listed.files).await {
                            Ok(schema) => schema,
                            Err(error) => {
                                self.analysis.diagnostics.push(source_error(input, &error));
                                None
                            }
                        }
                    }
                };
                schema.map(|schema| {
                    let counters = Arc::new(ScanCounters::default());
                    table_provider(Arc::new(*spec.clone()), &schema, Arc::new([]), input.uses_metadata, counters)
                })
            }
            Source::Unresolved => None,
        })
    }

    /// The schema that a flow's checkpoint reads this source with.
    fn stored_schema(&self, flow: Option<&Flow>, key: &str) -> Result<Stored> {
        let (Some(state), Some(flow)) = (self.state, flow) else { return Ok(Stored::Unknown) };
        if self.anew.contains(&flow.target) {
            return Ok(Stored::Unknown);
        }
        let dataset = self.engine.graph().dataset(flow.target);
        let Some(record) = state.flow(&dataset.name.key(), &flow.name)? else { return Ok(Stored::Unknown) };
        let sources = state.sources(&record.flow_id, record.generation)?;
        let schema = sources.into_iter().find(|source| source.source == key).and_then(|source| source.schema);
        Ok(match schema {
            Some(text) => Stored::Schema(SourceSchema::from_json(&text)?),
            None if record.completion.is_some() => Stored::DoneWithout,
            None => Stored::Unknown,
        })
    }

    async fn external(&mut self, index: usize) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(known) = self.externals.get(&index) {
            return Ok(known.clone());
        }
        let table = &self.engine.graph().externals[index];
        let settings = self.engine.settings();
        let found: Result<Option<Arc<dyn TableProvider>>> = match external::files(table, settings) {
            Some(spec) => {
                async {
                    let listed = self.listings.list(&spec).await?;
                    let schema = self.listings.schema(&spec, &listed.files).await?;
                    Ok(schema.map(|schema| {
                        table_provider(Arc::new(spec), &schema, Arc::new([]), false, Arc::new(ScanCounters::default()))
                    }))
                }
                .await
            }
            None => external::open_delta(table, settings, self.engine.root()).map(|open| Some(empty(open.schema()))),
        };
        let found = match found {
            Ok(Some(found)) => Some(found),
            Ok(None) => {
                self.analysis.diagnostics.push(
                    Diagnostic::error(
                        "source-missing",
                        table.path.span,
                        format!("source `{}` has no files", table.name.value),
                    )
                    .help("correct its path in flowbench.toml"),
                );
                None
            }
            Err(error) => {
                let mut diagnostic = Diagnostic::error("source-missing", table.path.span, error.to_string());
                diagnostic.help = error.help();
                self.analysis.diagnostics.push(diagnostic);
                None
            }
        };
        self.externals.insert(index, found.clone());
        Ok(found)
    }

    /// Joins what is declared, what is stored and what the flows give.
    async fn columns(
        &mut self,
        id: DatasetId,
        dataset: &'a Dataset,
        given: &[(FlowId, Option<Vec<Field>>)],
    ) -> Result<Option<Columns>> {
        let is_anew = self.anew.contains(&id);
        self.check_kind(dataset)?;
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
    fn check_kind(&mut self, dataset: &Dataset) -> Result<()> {
        let Some(state) = self.state else { return Ok(()) };
        let Some(recorded) = state.dataset(&dataset.name.key())? else { return Ok(()) };
        if recorded.kind != dataset.kind() {
            self.analysis.diagnostics.push(
                Diagnostic::error(
                    "dataset-kind-changed",
                    dataset.definition.name.span,
                    format!("`{}` was a {} and is now a {}", dataset.label, recorded.kind.words(), dataset.kind().words()),
                )
                .condition("CANNOT_CHANGE_DATASET_TYPE")
                .reason("its table and checkpoints don't fit the new kind, and a full refresh doesn't change that")
                .help(format!(
                    "give the new one another name; or take it out of the files, run `flowbench drop {} --yes`, and put it back",
                    dataset.label
                )),
            );
        }
        Ok(())
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
        let session = self.engine.session()?;
        let sql = format!("SELECT {} AS value", default.value);
        let value = match crate::session::plan(&session, &sql, Vec::new()).await {
            Ok(plan) => {
                let during = "compute a DEFAULT";
                let frame = session.execute_logical_plan(plan).await.map_err(|e| query_error(during, e))?;
                let batches = frame.collect().await.map_err(|e| query_error(during, e))?;
                match batches.first().filter(|batch| batch.num_rows() == 1) {
                    Some(batch) => {
                        ScalarValue::try_from_array(batch.column(0), 0).map_err(|e| query_error(during, e))?
                    }
                    None => return Err(Error::Internal("a DEFAULT without a value".to_string())),
                }
            }
            Err(errors) => {
                let message = errors.first().map(ToString::to_string).unwrap_or_default();
                self.analysis.diagnostics.push(
                    Diagnostic::error(
                        "column-default",
                        default.span,
                        format!("DEFAULT of `{}`: {message}", column.name.value),
                    )
                    .help("a default is a constant, such as 0 or 'unknown'"),
                );
                return Ok(None);
            }
        };
        Ok(Some(value))
    }

    /// The columns of the table on disk; what can't be changed in place is reported.
    async fn stored(&mut self, dataset: &'a Dataset, declared: Option<&Columns>) -> Result<Option<Columns>> {
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

enum Stored {
    Schema(SourceSchema),
    DoneWithout,
    Unknown,
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

fn source_error(input: &ResolvedInput, error: &Error) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(SOURCE_UNREADABLE, input.span, error.to_string());
    diagnostic.help = error.help();
    diagnostic
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
