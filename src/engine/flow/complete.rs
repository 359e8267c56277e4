//! A materialized view: the result of its query replaces the table's rows in one commit, so that readers see
//! the old rows or the new ones. Skipped if nothing it depends on changed.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use pipeline::event::{Details, FlowMetrics, Level};
use pipeline::number::counted;

use super::FlowRun;
use super::batch::{partitions, plan};
use super::inputs::{self, Content, OpenSource, batch_inputs};
use super::live::scanned;
use crate::clock::now_us;
use crate::columns::{by_name, output_fields};
use crate::error::{Error, Result};
use crate::fail_point;
use crate::micro_batch::{self, Destination, query_error};
use crate::table::{Commit, MetadataChange, RemoveSet, WriterOptions};
use crate::update::Target;

/// Recomputes the view if an input or its definition changed since it was computed last.
pub(crate) async fn run(run: &FlowRun<'_>) -> Result<()> {
    let started = Instant::now();
    let sources = inputs::open(run, false).await?;
    if !inputs::are_known(&sources) {
        run.update.recorder.notice(
            run.about(),
            "no-input-yet",
            format!("materialized view `{}` has nothing to read yet, so its columns are unknown", run.dataset.label),
            None,
        );
        return Ok(());
    }
    let target = run.target()?;
    let batch_inputs = batch_inputs(&sources, &[], None).await?;
    let plan = plan(run, &batch_inputs).await?;
    let fingerprint = fingerprint(run, &sources).await?;
    let dataset = run.update.state.dataset(&run.dataset.name.key())?;
    let is_forced = run.update.plan.full_refresh.contains(&run.flow.target);
    let computed = dataset.and_then(|dataset| dataset.inputs_fingerprint);
    let computed = computed.and_then(|text| serde_json::from_str::<Computed>(&text).ok());
    let is_same = match computed {
        Some(computed) => computed.from == fingerprint && computed.is_untouched(target).await?,
        None => false,
    };
    if is_same && !is_forced && is_deterministic(&plan) {
        technique(run, "NO_OP", "nothing it reads changed");
        return Ok(());
    }
    technique(run, "COMPLETE_RECOMPUTE", "recomputed from all of its input");

    fail_point::hit("planned", Some(&run.flow.name))?;
    let given = output_fields(plan.schema().as_arrow()).map_err(|misfits| {
        let what: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        Error::user("schema-mismatch", format!("`{}`: {}", run.dataset.label, what.join("; ")), "cast the column")
    })?;
    let columns = target.recomputed_columns(run, given)?;
    let plan = by_name(plan, &columns).map_err(|e| query_error(&run.during(), e))?;
    let destination = Destination {
        folder: target.folder.clone(),
        schema: columns.schema(),
        partition_by: target.partition_by.clone(),
        options: WriterOptions::default(),
    };
    let session = crate::session::with_partitions(&run.session, partitions(run, batch_inputs.work_bytes));
    let files =
        micro_batch::write(&session, &plan, &destination, &run.update.stop, &run.live.batch_rows, &run.during())
            .await?;
    run.live.batch_rows.store(0, Relaxed);
    let rows_out = files.iter().map(|file| file.rows).sum();
    fail_point::hit("written", Some(&run.flow.name))?;
    let mut table = target.table.lock().await;
    let version = table
        .commit(Commit {
            adds: files,
            removes: RemoveSet::All,
            new_schema: Some(columns.schema()),
            metadata: MetadataChange { partition_by: Some(target.partition_by.clone()), ..MetadataChange::default() },
            operation: "WRITE".to_string(),
            parameters: BTreeMap::from([
                ("mode".to_string(), "Overwrite".to_string()),
                ("flow".to_string(), run.flow.name.clone()),
            ]),
            ..Commit::default()
        })
        .await?;
    let computed = Computed { from: fingerprint, table: table.id().to_string(), version };
    drop(table);
    fail_point::hit("committed", Some(&run.flow.name))?;
    let computed = serde_json::to_string(&computed).expect("what was computed is plain data");
    run.update.state.record_refresh(&run.dataset.name.key(), &computed, now_us())?;
    fail_point::hit("marked", Some(&run.flow.name))?;
    let metrics = FlowMetrics {
        batches: 1,
        rows_out,
        files_in: batch_inputs.files,
        bytes_in: batch_inputs.bytes,
        duration_ms: started.elapsed().as_millis() as u64,
        ..scanned(&batch_inputs.counters)
    };
    run.live.add(&metrics);
    run.update.recorder.report(
        Level::Info,
        run.about(),
        format!("`{}` recomputed: {}", run.dataset.label, counted(rows_out, "row", "rows")),
        Details::BatchProgress { metrics, table_version: Some(version) },
    );
    run.update.recorder.check()
}

/// What the view's rows were last computed from, and the table's version that holds them, as state.db keeps it.
#[derive(serde::Serialize, serde::Deserialize)]
struct Computed {
    from: serde_json::Value,
    /// The table's id.
    table: String,
    version: i64,
}

impl Computed {
    /// True if the rows are still there: nobody has made the table anew, taken commits from it or added any that
    /// change rows. Compactions don't.
    async fn is_untouched(&self, target: &Target) -> Result<bool> {
        let mut table = target.table.lock().await;
        table.refresh()?;
        if table.id() != self.table || table.version() < self.version {
            return Ok(false);
        }
        // Without the log entries nobody knows.
        let Ok(changes) = table.changes(self.version, table.version()) else { return Ok(false) };
        Ok(changes.iter().all(|change| change.adds.is_empty() && change.removes.is_empty()))
    }
}

fn technique(run: &FlowRun<'_>, technique: &str, why: &str) {
    run.update.recorder.report(
        Level::Info,
        run.about(),
        format!("`{}`: {why}", run.dataset.label),
        Details::PlanningInformation { technique: technique.to_string() },
    );
}

/// What the view's rows depend on: its definition, and which version of what it reads.
async fn fingerprint(run: &FlowRun<'_>, sources: &[OpenSource]) -> Result<serde_json::Value> {
    let graph = run.update.engine.graph();
    let mut inputs = serde_json::Map::new();
    for source in sources {
        let state = match &source.content {
            Content::Table { table, up_to, .. } => {
                let id = table.lock().await.id().to_string();
                serde_json::json!({ "table": id, "version": up_to })
            }
            Content::Files { spec, listing, .. } => {
                // Names, sizes and times stand for the contents, as they do for every tool that watches files.
                let mut hash = std::hash::DefaultHasher::new();
                std::hash::Hash::hash(listing.as_ref(), &mut hash);
                serde_json::json!({
                    "path": spec.path,
                    "files": listing.len(),
                    "hash": format!("{:016x}", std::hash::Hasher::finish(&hash)),
                })
            }
            Content::Nothing => serde_json::Value::Null,
        };
        inputs.insert(source.key.clone(), state);
    }
    let views: Vec<String> = graph
        .all_inputs(&run.flow.reading)
        .into_iter()
        .filter_map(|input| match input.source {
            pipeline::graph::Source::Dataset { id, .. } => Some(graph.dataset(id)).zip(graph.dataset(id).view.as_ref()),
            _ => None,
        })
        .map(|(dataset, view)| {
            let names = dataset.definition.columns.iter().map(|column| format!("{}, ", column.name.value));
            names.chain([view.query.fingerprint_text.clone()]).collect()
        })
        .collect();
    let definition = &run.dataset.definition;
    let columns: Vec<String> = definition
        .columns
        .iter()
        .map(|column| format!("{} {}", column.name.value, column.data_type.as_ref().map_or("", |t| &t.value)))
        .collect();
    let partition_by: Vec<&str> = definition.partition_by.iter().map(|column| column.value.as_str()).collect();
    Ok(serde_json::json!({
        "query": run.flow.reading.query.fingerprint_text,
        "views": views,
        "columns": columns,
        "partition_by": partition_by,
        "time_zone": run.update.engine.settings().time_zone.value,
        "inputs": inputs,
    }))
}

/// True if the same input gives the same rows: no `rand()`, no `current_date()`.
fn is_deterministic(plan: &LogicalPlan) -> bool {
    let mut is_deterministic = true;
    let visited = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                let volatility = match part {
                    Expr::ScalarFunction(call) => call.func.signature().volatility,
                    Expr::AggregateFunction(call) => call.func.signature().volatility,
                    _ => Volatility::Immutable,
                };
                is_deterministic &= volatility == Volatility::Immutable;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    is_deterministic && visited.is_ok()
}
