//! Where each row of a flow's query stood in its source: a hidden column that scans add and that is carried through
//! the user's query and views, so that ties are decided the same way whatever the batches, and every version of a
//! row can say where it came from.
//!
//! ```text
//! file 0 ─┐ rows counted                 the user's query, planned              + the column in each step
//! file 1 ─┴──────────────▶ WithPositions ─────────────────────────▶ carry ─────────────────────────────▶ plan
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, FixedSizeBinaryBuilder, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatchOptions;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DataFusionError, ScalarValue};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, TableType, Union, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use crate::reading::StreamBatch;

/// The hidden column: three big-endian numbers, so that positions compare as their bytes do.
pub const POSITION: &str = "__flowbench_position";

const WIDTH: i32 = 24;

/// Reads what the hidden column holds of a row; None where the query has lost it.
pub fn position_at(positions: Option<&FixedSizeBinaryArray>, row: usize) -> Option<[u64; 3]> {
    let positions = positions.filter(|positions| arrow::array::Array::is_valid(*positions, row))?;
    let mut parts = [0; 3];
    for (part, bytes) in parts.iter_mut().zip(positions.value(row).chunks_exact(8)) {
        *part = u64::from_be_bytes(bytes.try_into().expect("chunks of eight"));
    }
    Some(parts)
}

fn position_field() -> Field {
    Field::new(POSITION, ArrowType::FixedSizeBinary(WIDTH), true)
}

/// The rows of one file, and its part of their positions.
#[derive(Debug, Clone)]
pub struct FileRows {
    /// Delta version, or micro-batch.
    pub major: u64,
    /// The file's place in it.
    pub minor: u64,
    pub rows: Arc<dyn TableProvider>,
}

/// A source as the query sees it, and file by file with the positions of its rows.
#[derive(Debug)]
pub struct WithPositions {
    pub plain: Arc<dyn TableProvider>,
    pub files: Vec<FileRows>,
}

#[async_trait]
impl TableProvider for WithPositions {
    fn schema(&self) -> SchemaRef {
        self.plain.schema()
    }

    fn table_type(&self) -> TableType {
        self.plain.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        self.plain.scan(state, projection, filters, limit).await
    }
}

/// The rows of many files with columns `schema`, each partition's files read one after another.
pub fn in_turn(schema: SchemaRef, files: Vec<FileRows>) -> Arc<dyn TableProvider> {
    Arc::new(Positioned { schema, hidden: None, files })
}

/// The files one after another, with the hidden column as its last if there is one. It takes no filters: rows are
/// counted before they are dropped.
#[derive(Debug)]
struct Positioned {
    schema: SchemaRef,
    /// The index of the hidden column.
    hidden: Option<usize>,
    files: Vec<FileRows>,
}

#[async_trait]
impl TableProvider for Positioned {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let wanted: Vec<usize> = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let data: Vec<usize> = wanted.iter().copied().filter(|column| Some(*column) != self.hidden).collect();
        let mut files = Vec::with_capacity(self.files.len());
        for file in &self.files {
            let plan = file.rows.scan(state, Some(&data), &[], None).await?;
            files.push(FilePlan { major: file.major, minor: file.minor, plan });
        }
        let schema = Arc::new(self.schema.project(&wanted)?);
        let place = wanted.iter().position(|column| Some(*column) == self.hidden);
        let partitions = state.config().target_partitions().min(files.len()).max(1);
        let shares = (0..partitions).map(|partition| {
            let share = files.len() * partition / partitions..files.len() * (partition + 1) / partitions;
            let share = Share { schema: schema.clone(), place, files: files[share].to_vec() };
            Arc::new(share) as Arc<dyn PartitionStream>
        });
        Ok(Arc::new(StreamingTableExec::try_new(schema.clone(), shares.collect(), None, [], false, None)?))
    }
}

/// Adds the column to the plan of a user's query, as far up as rows keep their identity: through projections, filters,
/// joins, windows and unions, not through aggregates. A plan without positions comes back as it was.
pub fn carry(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let inputs = plan.inputs().into_iter().cloned().map(carry).collect::<Result<Vec<_>, _>>()?;
    let any = inputs.iter().any(|input| column(input).is_some());
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let inner = provider.downcast_ref::<StreamBatch>().map_or(&provider, |stream| &stream.0);
            let Some(source) = inner.downcast_ref::<WithPositions>() else { return Ok(LogicalPlan::TableScan(scan)) };
            let schema = source.schema();
            let hidden = schema.fields().len();
            let fields = schema.fields().iter().map(|field| field.as_ref().clone()).chain([position_field()]);
            let positioned = Positioned {
                schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
                hidden: Some(hidden),
                files: source.files.clone(),
            };
            let projection = scan.projection.map(|columns| columns.into_iter().chain([hidden]).collect());
            LogicalPlanBuilder::scan(scan.table_name, provider_as_source(Arc::new(positioned)), projection)?.build()
        }
        plan if !any => Ok(plan),
        LogicalPlan::Projection(projection) => {
            let [input] = inputs.try_into().expect("a projection has one input");
            let mut expressions = projection.expr;
            expressions.extend(column(&input).map(Expr::Column));
            LogicalPlanBuilder::from(input).project(expressions)?.build()
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let [input] = inputs.try_into().expect("an alias has one input");
            SubqueryAlias::try_new(Arc::new(input), alias.alias).map(LogicalPlan::SubqueryAlias)
        }
        LogicalPlan::Union(_) => {
            let last = inputs.into_iter().map(position_last).collect::<Result<Vec<_>, _>>()?;
            Union::try_new_with_loose_types(last.into_iter().map(Arc::new).collect()).map(LogicalPlan::Union)
        }
        LogicalPlan::Aggregate(_) => Ok(plan),
        plan => {
            // Of two sides with positions the first one's are kept.
            let mut is_first = true;
            let mut sides = Vec::with_capacity(inputs.len());
            for input in inputs {
                let has = column(&input).is_some();
                sides.push(if has && !is_first { without_position(input)? } else { input });
                is_first &= !has;
            }
            plan.with_new_exprs(plan.expressions(), sides)
        }
    }
}

fn column(plan: &LogicalPlan) -> Option<Column> {
    let mut found = plan.schema().iter().filter(|(_, field)| field.name() == POSITION);
    found.next().map(|(qualifier, field)| Column::new(qualifier.cloned(), field.name()))
}

fn others(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().filter(|column| column.name != POSITION).map(Expr::Column).collect()
}

fn without_position(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let kept = others(&plan);
    LogicalPlanBuilder::from(plan).project(kept)?.build()
}

/// A branch of a union, with the column at its end; null if it has none.
fn position_last(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let mut expressions = others(&plan);
    expressions.push(match column(&plan) {
        Some(column) => Expr::Column(column),
        None => lit(ScalarValue::FixedSizeBinary(WIDTH, None)).alias(POSITION),
    });
    LogicalPlanBuilder::from(plan).project(expressions)?.build()
}

#[derive(Debug, Clone)]
struct FilePlan {
    major: u64,
    minor: u64,
    plan: Arc<dyn ExecutionPlan>,
}

/// A partition: files one after another, their rows counted.
#[derive(Debug)]
struct Share {
    schema: SchemaRef,
    /// Where the hidden column goes; None: there is none, or it was optimized away.
    place: Option<usize>,
    files: Vec<FilePlan>,
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, place) = (self.schema.clone(), self.place);
        let rows = stream::iter(self.files.clone()).flat_map(move |file| {
            let (schema, mut row) = (schema.clone(), 0);
            in_sequence(&file.plan, &context).map(move |batch| {
                let batch = batch?;
                let first = row;
                row += batch.num_rows() as u64;
                with_positions(&batch, place, &schema, [file.major, file.minor], first)
            })
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))
    }
}

/// The rows of a plan, one partition after another.
pub fn in_sequence(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> impl Stream<Item = Result<RecordBatch, DataFusionError>> + Send + use<> {
    let partitions = 0..plan.properties().output_partitioning().partition_count();
    let (plan, context) = (plan.clone(), context.clone());
    stream::iter(partitions).map(move |partition| plan.execute(partition, context.clone())).try_flatten()
}

fn with_positions(
    batch: &RecordBatch,
    place: Option<usize>,
    schema: &SchemaRef,
    file: [u64; 2],
    first: u64,
) -> Result<RecordBatch, DataFusionError> {
    let mut columns = batch.columns().to_vec();
    if let Some(place) = place {
        let mut positions = FixedSizeBinaryBuilder::with_capacity(batch.num_rows(), WIDTH);
        let mut position = [0; WIDTH as usize];
        position[..8].copy_from_slice(&file[0].to_be_bytes());
        position[8..16].copy_from_slice(&file[1].to_be_bytes());
        for row in first..first + batch.num_rows() as u64 {
            position[16..].copy_from_slice(&row.to_be_bytes());
            positions.append_value(position)?;
        }
        columns.insert(place, Arc::new(positions.finish()) as ArrayRef);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
