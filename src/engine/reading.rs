//! A flow's or view's query with real sources behind its inputs → a logical plan.
//!
//! Views are planned on their own and inlined, so that a query sees the same rows whether it reads a view or
//! repeats its text. Not here: which files or versions an input stands for; the caller provides them.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::{ViewTable, source_as_provider};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use futures::future::BoxFuture;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{Dataset, Graph, Reading, ResolvedInput, Source};

use crate::session::{self, PlanError};

/// Gives the rows behind an input that is not a view.
pub type Provide<'a> = dyn Fn(&ResolvedInput) -> Arc<dyn TableProvider> + Send + Sync + 'a;

/// Plans `reading` over what `provide` gives for its inputs, views inlined.
///
/// # Errors
/// All that is wrong with the query, at the places of the user's files.
pub fn plan_reading<'a>(
    session: &'a SessionContext,
    graph: &'a Graph,
    reading: &'a Reading,
    provide: &'a Provide<'a>,
) -> BoxFuture<'a, Result<LogicalPlan, Vec<Diagnostic>>> {
    Box::pin(async move {
        let mut inputs: Vec<(String, Arc<dyn TableProvider>)> = Vec::new();
        for input in &reading.inputs {
            let view = match input.source {
                Source::Dataset { id, .. } => Some(graph.dataset(id)).zip(graph.dataset(id).view.as_ref()),
                _ => None,
            };
            let provider = match view {
                Some((dataset, view)) => {
                    let plan = plan_view(session, graph, dataset, view, provide).await?;
                    Arc::new(ViewTable::new(plan, None)) as Arc<dyn TableProvider>
                }
                None => provide(input),
            };
            inputs.push((input.name.clone(), provider));
        }
        session::plan(session, reading.query.sql.as_str(), inputs)
            .await
            .map_err(|errors| errors.iter().map(|error| diagnostic(reading, error)).collect())
    })
}

/// Plans a view: its query, under the names of its column list.
///
/// # Errors
/// All that is wrong with the query, or a list that doesn't fit it.
pub async fn plan_view<'a>(
    session: &'a SessionContext,
    graph: &'a Graph,
    dataset: &'a Dataset,
    view: &'a Reading,
    provide: &'a Provide<'a>,
) -> Result<LogicalPlan, Vec<Diagnostic>> {
    let plan = plan_reading(session, graph, view, provide).await?;
    name_columns(dataset, view, plan).map_err(|wrong| vec![*wrong])
}

/// Gives the columns of a view's query the names of the view's list, if it has one.
///
/// # Errors
/// The list doesn't fit the query.
pub fn name_columns(dataset: &Dataset, view: &Reading, plan: LogicalPlan) -> Result<LogicalPlan, Box<Diagnostic>> {
    let names = &dataset.definition.columns;
    let Some(first) = names.first() else { return Ok(plan) };
    let given = plan.schema().columns();
    if given.len() != names.len() {
        let message = format!(
            "the list of `{}` names {}, its query gives {}",
            dataset.label,
            columns_in_words(names.len()),
            columns_in_words(given.len())
        );
        return Err(Box::new(
            Diagnostic::error("view-columns", first.name.span, message)
                .condition("CREATE_VIEW_COLUMN_ARITY_MISMATCH")
                .label(view.query.span, "the query")
                .help("name every column of the query, or leave the list out"),
        ));
    }
    let named = given.into_iter().zip(names).map(|(column, name)| Expr::Column(column).alias(&name.name.value));
    let named = LogicalPlanBuilder::from(plan).project(named).and_then(LogicalPlanBuilder::build);
    named.map_err(|error| Box::new(Diagnostic::error("view-columns", first.name.span, error.strip_backtrace())))
}

fn columns_in_words(count: usize) -> String {
    if count == 1 { "1 column".to_string() } else { format!("{count} columns") }
}

/// A planning error at its place in the user's file.
pub fn diagnostic(reading: &Reading, error: &PlanError) -> Diagnostic {
    let (code, condition) = error.kind.code();
    let span = match &error.range {
        Some(range) => reading.query.sql.origin(range.clone()),
        None => reading.query.span,
    };
    let mut diagnostic = Diagnostic::error(code, span, user_names(reading, &error.message));
    diagnostic.condition = condition;
    if let Some(help) = &error.help {
        diagnostic = diagnostic.help(user_names(reading, help));
    }
    // Only what the user wrote letter for letter can be replaced.
    let place = error.edit.as_ref().and_then(|(range, _)| reading.query.sql.copied(range.clone()));
    if let (Some(span), Some((_, replacement))) = (place, &error.edit) {
        diagnostic = diagnostic.edit(span, replacement);
    }
    diagnostic
}

/// The names of inputs are ours; messages show what the user wrote instead.
fn user_names(reading: &Reading, message: &str) -> String {
    let mut message = message.to_string();
    for (written, input) in reading.query.inputs.iter().zip(&reading.inputs).rev() {
        let shown = match &written.source {
            pipeline::query::InputSource::Table(name) => name.last().to_string(),
            pipeline::query::InputSource::Files(_) => "read_files".to_string(),
            pipeline::query::InputSource::Unsupported(call) => call.clone(),
        };
        message = message.replace(&input.name, &shown);
    }
    message
}

/// Marks a provider as one micro-batch of a stream, so that a plan can be checked for what only works on
/// a whole.
#[derive(Debug)]
pub struct StreamBatch(pub Arc<dyn TableProvider>);

#[async_trait::async_trait]
impl TableProvider for StreamBatch {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
        self.0.scan(state, projection, filters, limit).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> datafusion::error::Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        self.0.supports_filters_pushdown(filters)
    }
}

/// True if a scan in the plan reads a [`StreamBatch`], subqueries included.
pub fn reads_stream(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
            && provider.is::<StreamBatch>()
        {
            found = true;
            return Ok(datafusion::common::tree_node::TreeNodeRecursion::Stop);
        }
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    });
    debug_assert!(visited.is_ok(), "the visitor never fails");
    found
}

/// A provider without rows, for planning before anything is read.
pub fn empty(schema: SchemaRef) -> Arc<dyn TableProvider> {
    Arc::new(datafusion::datasource::empty::EmptyTable::new(schema))
}
