//! Schema evolution: a batch's files have fields that the stored schema lacks, or, where the mode says so, values
//! too wide for its types. The source's schema grows, and with wider types the table's rows are rewritten.

use std::sync::Arc;

use pipeline::event::{Details, Level};
use pipeline::read_files::SchemaEvolutionMode;

use super::FlowRun;
use super::batch::{misfit, partitions, plan};
use super::inputs::{Content, OpenSource, batch_inputs};
use crate::columns::{Columns, by_name, grow, output_fields, widen};
use crate::data_type::from_arrow;
use crate::error::{Error, Result};
use crate::fail_point;
use crate::micro_batch::{self, Destination, query_error};
use crate::source::files::{self, SourceSchema};
use crate::state::PlannedInput;
use crate::table::{Commit, RemoveSet, Table, WriterOptions};

use SchemaEvolutionMode::{AddNewColumns, AddNewColumnsWithTypeWidening};

/// True if a stream of the flow asks for wider types.
pub(super) fn may_widen(sources: &[OpenSource]) -> bool {
    sources.iter().any(|source| {
        matches!(&source.content, Content::Files { spec, schema: Some(_), .. }
            if source.is_stream && spec.schema_evolution_mode == AddNewColumnsWithTypeWidening)
    })
}

/// Grows the stored schema of every file source by what the batch's files have. False if there is nothing new.
///
/// Types get wider only if the table can follow; where it can't, the values stay what they are now, rescued.
pub(super) async fn evolve(
    run: &FlowRun<'_>,
    sources: &mut [OpenSource],
    batch: i64,
    inputs: &[PlannedInput],
) -> Result<bool> {
    let before = schemas(sources);
    grow_sources(sources, inputs, false).await?;
    if may_widen(sources) && sources.iter().zip(&before).any(|(source, before)| schema(source) != before.as_ref()) {
        widen_table(run, sources, inputs, &before).await?;
    }
    let mut added = Vec::new();
    for (source, before) in sources.iter().zip(&before) {
        let (Some(before), Some(evolved)) = (before, schema(source)) else { continue };
        if evolved == before {
            continue;
        }
        for field in evolved.schema.fields() {
            if before.schema.field_with_name(field.name()).ok() != Some(field.as_ref()) {
                let data_type =
                    from_arrow(field.data_type()).map_or_else(|| field.data_type().to_string(), |t| t.to_string());
                added.push((field.name().clone(), data_type));
            }
        }
        if let Some(id) = source.source_id {
            run.update.state.set_source_schema(id, &evolved.to_json())?;
            fail_point::hit("schema-stored", Some(&run.flow.name))?;
        }
    }
    if added.is_empty() {
        return Ok(false);
    }
    let names: Vec<String> = added.iter().map(|(name, data_type)| format!("{name} {data_type}")).collect();
    run.update.recorder.report(
        Level::Info,
        run.about().batch(batch),
        format!("new fields in the source: +{}; the flow restarts with them", names.join(", +")),
        Details::SchemaEvolved { columns: added },
    );
    Ok(true)
}

/// The columns of each source as they are now; None: it is none of files, or its columns are unknown.
pub(super) fn schemas(sources: &[OpenSource]) -> Vec<Option<SourceSchema>> {
    sources.iter().map(|source| schema(source).cloned()).collect()
}

fn schema(source: &OpenSource) -> Option<&SourceSchema> {
    match &source.content {
        Content::Files { schema, .. } => schema.as_ref(),
        Content::Table { .. } | Content::Nothing => None,
    }
}

/// Evolves the schemas in memory. `keeps_types`: only by new fields, whatever the mode.
async fn grow_sources(sources: &mut [OpenSource], inputs: &[PlannedInput], keeps_types: bool) -> Result<()> {
    for source in sources.iter_mut() {
        let Content::Files { spec, schema: Some(schema), listing, ledger, .. } = &mut source.content else { continue };
        let planned = source.source_id.and_then(|id| inputs.iter().find(|input| input.source_id == id));
        let files: Vec<_> = match planned {
            Some(planned) => planned.files.iter().map(|file| ledger.read(file)).collect(),
            None => listing.to_vec(),
        };
        let (mut spec, before) = (spec.as_ref().clone(), schema.clone());
        if keeps_types && spec.schema_evolution_mode == AddNewColumnsWithTypeWidening {
            spec.schema_evolution_mode = AddNewColumns;
        }
        *schema = tokio::task::spawn_blocking(move || files::evolve(&spec, &before, &files))
            .await
            .map_err(|e| Error::Internal(format!("schema evolution: {e}")))??;
    }
    Ok(())
}

/// Widens the table's columns to what the flow's query gives with the evolved schemas. If they don't fit even
/// then, the schemas go back to `before` and grow by new fields only.
async fn widen_table(
    run: &FlowRun<'_>,
    sources: &mut [OpenSource],
    inputs: &[PlannedInput],
    before: &[Option<SourceSchema>],
) -> Result<()> {
    let query = plan(run, &batch_inputs(sources, inputs, None).await?).await?;
    let given = output_fields(query.schema().as_arrow()).map_err(|misfits| misfit(run, &misfits))?;
    let target = run.target()?;
    // Held until the rewrite is in: flows of the same table wait.
    let mut table = target.table.lock().await;
    table.refresh()?;
    let current = target.columns_of(run, &table)?;
    if grow(&current, &given).is_ok() {
        return Ok(());
    }
    match widen(&current, &given).filter(|wider| grow(wider, &given).is_ok()) {
        Some(wider) => rewrite(run, &mut table, &current, &wider).await,
        None => {
            drop(table);
            for (source, before) in sources.iter_mut().zip(before) {
                if let (Content::Files { schema, .. }, Some(before)) = (&mut source.content, before) {
                    *schema = Some(before.clone());
                }
            }
            grow_sources(sources, inputs, true).await
        }
    }
}

/// Writes all rows of the table anew in wider types, as one commit that streams of it don't see. Delta's own type
/// widening would need no rewrite, but few engines read it.
async fn rewrite(run: &FlowRun<'_>, table: &mut Table, current: &Columns, wider: &Columns) -> Result<()> {
    let target = run.target()?;
    let failed = |e| query_error(&run.during(), e);
    let rows = run.session.read_table(table.provider(None).await?).map_err(failed)?.into_unoptimized_plan();
    let rows = by_name(rows, wider).map_err(failed)?;
    let destination = Destination {
        folder: target.folder.clone(),
        schema: wider.schema(),
        partition_by: target.partition_by.clone(),
        options: WriterOptions::default(),
    };
    let session = crate::session::with_partitions(&run.session, partitions(run, table.size_bytes()));
    let uncounted = Arc::default();
    let adds = micro_batch::write(&session, &rows, &destination, &run.update.stop, &uncounted, &run.during()).await?;
    let commit = Commit {
        adds,
        removes: RemoveSet::All,
        new_schema: Some(wider.schema()),
        operation: "OPTIMIZE".to_string(),
        rearranges: true,
        ..Commit::default()
    };
    table.commit(commit).await?;
    let widened: Vec<(String, String)> = current
        .fields
        .iter()
        .zip(&wider.fields)
        .filter(|(before, after)| before.data_type != after.data_type)
        .map(|(_, after)| (after.name.clone(), after.data_type.to_string()))
        .collect();
    let names: Vec<String> = widened.iter().map(|(name, data_type)| format!("{name} {data_type}")).collect();
    run.update.recorder.report(
        Level::Info,
        run.about(),
        format!("`{}` was rewritten with wider types: {}", run.dataset.label, names.join(", ")),
        Details::SchemaEvolved { columns: widened },
    );
    Ok(())
}
