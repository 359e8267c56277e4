//! A full refresh builds a dataset's next generation as a table of its own in a shadow folder, `gen-<n>`, and
//! promotes it by one commit when all its flows are done. Until then, and if one of them fails, the rows of the
//! generation in force stay.
//!
//! ```text
//! state.db: generation n+1 begins ─▶ flows write gen-<n+1>/ ─▶ state.db: promoting ─▶ one commit ─▶ state.db: n+1 in force
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pipeline::event::{Details, Level};
use pipeline::graph::{Dataset, DatasetId, FlowId};
use pipeline::resume::{ResumeFullRefresh, resume_full_refresh};

use crate::auto_cdc::side;
use crate::auto_cdc::target::{ChangeTarget, side_folder};
use crate::clock::now_us;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fail_point;
use crate::generation::{dataset_app_id, flows_in, promoted_in};
use crate::record::About;
use crate::state::{FullRefresh, State};
use crate::table::{CompactionLimits, FULL_REFRESH, Table, TableSpec};
use crate::update::{Target, Update};

fn shadow_folder(folder: &Path, generation: i64) -> PathBuf {
    folder.join(format!("gen-{generation}"))
}

/// Begins the next generation of a dataset whose table is in `folder`, and returns its shadow to write to.
pub(crate) async fn start(
    update: &Update,
    dataset: &Dataset,
    folder: &Path,
    spec: TableSpec,
    partition_by: Vec<String>,
) -> Result<Target> {
    // After an older state.db was put back, the table may hold numbers that would be given again.
    if let Some(table) = update.engine.tables().get(folder)? {
        let mut table = table.lock().await;
        table.refresh()?;
        let key = dataset.name.key();
        update.state.raise_generations(&key, promoted_in(&table, &key), &flows_in(&table))?;
    }
    let begun = update.state.start_full_refresh(&dataset.name.key(), update.number, now_us())?;
    fail_point::hit("full-refresh-started", None)?;
    let shadow = shadow_folder(folder, begun.generation);
    let table = update.engine.tables().get_or_create(&shadow, |folder| Table::create(folder, spec))?;
    update.recorder.report(
        Level::Info,
        About::dataset(&dataset.label),
        format!("full refresh of `{}`: generation {} is built beside the old rows", dataset.label, begun.generation),
        Details::PlanningInformation { technique: "FULL_REFRESH".to_string() },
    );
    Ok(Target { table, folder: shadow, partition_by, shadow_generation: Some(begun.generation) })
}

/// Puts the new generation in force if `ended` was the last of the dataset's flows to succeed.
pub(crate) async fn promote_if_complete(update: &Update, id: DatasetId, ended: FlowId) -> Result<()> {
    let Some(target) = update.target(id).filter(|target| target.shadow_generation.is_some()) else { return Ok(()) };
    if !update.full_refreshes.is_last(update, id, ended) {
        return Ok(());
    }
    promote(update, id, target).await.inspect_err(|_| update.full_refreshes.reopen(ended))
}

/// Puts the new generation of tables that no flow writes in force: they are empty.
pub(crate) async fn promote_without_flows(update: &Update) -> Result<()> {
    for id in update.shadows() {
        if let Some(target) = update.target(id).filter(|_| update.engine.graph().dataset(id).flows.is_empty()) {
            promote(update, id, target).await?;
        }
    }
    Ok(())
}

async fn promote(update: &Update, id: DatasetId, target: &Target) -> Result<()> {
    let dataset = update.engine.graph().dataset(id);
    let key = dataset.name.key();
    let begun = update.state.begin_promotion(&key, &update.definition(id)?)?;
    fail_point::hit("promote", None)?;
    let folder = update.engine.table_folder(&dataset.name);
    // An earlier try may have made the commit and failed behind it.
    if promoted(&update.engine, &key, &folder).await? != Some(begun.generation) {
        // What is being rewritten counts now or never: afterwards nobody commits to the shadow.
        if let Some(target) = update.change_targets.opened(id).await {
            ChangeTarget::lock(target).await?.compact(&CompactionLimits::default()).await?;
        }
        commit(update, dataset, target, &folder, begun.generation).await?;
    }
    fail_point::hit("promoted", None)?;
    in_force(&update.engine, &update.state, &key, &target.folder)?;
    update.recorder.report(
        Level::Info,
        About::dataset(&dataset.label),
        format!("full refresh of `{}`: generation {} is in force", dataset.label, begun.generation),
        Details::PlanningInformation { technique: "FULL_REFRESH_PROMOTED".to_string() },
    );
    Ok(())
}

/// Makes the promoting commit; a table that is gone is made anew.
async fn commit(update: &Update, dataset: &Dataset, target: &Target, folder: &Path, generation: i64) -> Result<()> {
    let shadow = Table::open(&target.folder)?
        .ok_or_else(|| Error::Internal(format!("the shadow table of `{}` is gone", dataset.label)))?;
    let mut txns: Vec<(String, i64)> = shadow.all_txns().iter().map(|(app, batch)| (app.clone(), *batch)).collect();
    txns.push((dataset_app_id(&dataset.name.key()), generation));
    match update.engine.tables().get(folder)? {
        Some(table) => drop(table.lock().await.promote(shadow, txns, FULL_REFRESH).await?),
        None => drop(Table::create_from(folder, &dataset.label, shadow, &txns, FULL_REFRESH)?),
    }
    Ok(())
}

/// The newest generation that a promoting commit has put into the table.
async fn promoted(engine: &Engine, dataset: &str, folder: &Path) -> Result<Option<i64>> {
    let Some(table) = engine.tables().get(folder)? else { return Ok(None) };
    let mut table = table.lock().await;
    table.refresh()?;
    Ok(promoted_in(&table, dataset))
}

/// What is left to do when the promoting commit is in the table; may be done twice.
fn in_force(engine: &Engine, state: &State, dataset: &str, shadow: &Path) -> Result<()> {
    engine.tables().forget(shadow);
    remove(&shadow.join("_delta_log"))?;
    state.promote(dataset)?;
    remove_other_side_tables(shadow)
}

/// Removes the side tables of the generations that are no longer in force.
fn remove_other_side_tables(shadow: &Path) -> Result<()> {
    let (Some(folder), Some(kept)) = (shadow.parent(), shadow.file_name()) else { return Ok(()) };
    let Ok(entries) = std::fs::read_dir(folder.join(side::FOLDER)) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.file_name() != kept) {
        remove(&entry.path())?;
    }
    Ok(())
}

/// Gives up the generations whose flows did not all succeed; the old rows stay.
pub(crate) async fn abandon_unfinished(update: &Update) -> Result<()> {
    let graph = update.engine.graph();
    for id in update.shadows() {
        let dataset = graph.dataset(id);
        let Some(recorded) = update.state.dataset(&dataset.name.key())? else { continue };
        let Some(refresh) = &recorded.full_refresh else { continue };
        let (code, what, help) = match finish(&update.engine, &update.state, &recorded, refresh).await? {
            ResumeFullRefresh::FinishPromotion => {
                ("full-refresh-promoted", "failed behind its last commit: the new rows are in force", None)
            }
            ResumeFullRefresh::Abandon if update.stop.is_requested() => (
                "full-refresh-abandoned",
                "was canceled: the old rows stay in force",
                Some(format!("to begin it again: flowbench run --full-refresh {}", dataset.label)),
            ),
            ResumeFullRefresh::Abandon => (
                "full-refresh-abandoned",
                "did not finish: the old rows stay in force",
                Some(format!("mend what failed, then: flowbench run --full-refresh {}", dataset.label)),
            ),
        };
        let message = format!("full refresh of `{}` {what}", dataset.label);
        update.recorder.notice(About::dataset(&dataset.label), code, message, help);
    }
    Ok(())
}

/// Ends the full refreshes that a dead process left: finished if the promoting commit is in the table, else
/// given up.
pub(crate) async fn finish_interrupted(engine: &Engine, state: &Arc<State>) -> Result<()> {
    for dataset in state.datasets()? {
        if let Some(refresh) = &dataset.full_refresh {
            finish(engine, state, &dataset, refresh).await?;
        }
    }
    Ok(())
}

async fn finish(
    engine: &Engine,
    state: &State,
    dataset: &crate::state::Dataset,
    refresh: &FullRefresh,
) -> Result<ResumeFullRefresh> {
    let folder = engine.storage().join(&dataset.table_path);
    let shadow = shadow_folder(&folder, refresh.generation);
    let promoted = promoted(engine, &dataset.dataset, &folder).await?;
    let decision = resume_full_refresh(refresh.phase.into(), refresh.generation, promoted);
    match decision {
        ResumeFullRefresh::FinishPromotion => in_force(engine, state, &dataset.dataset, &shadow)?,
        ResumeFullRefresh::Abandon => {
            engine.tables().forget(&shadow);
            // First the folder: while the record is there, a crash in between leaves the rest to the next run.
            remove(&shadow)?;
            remove(&side_folder(&folder, refresh.generation))?;
            state.abandon_full_refresh(&dataset.dataset)?;
        }
    }
    Ok(decision)
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", folder, error)),
        _ => Ok(()),
    }
}

/// Which flows of which full refresh have succeeded in this update.
#[derive(Debug, Default)]
pub(crate) struct FullRefreshes {
    ended: std::sync::Mutex<std::collections::HashSet<FlowId>>,
}

impl FullRefreshes {
    /// Notes that `ended` succeeded; true if all flows of the dataset have now.
    fn is_last(&self, update: &Update, id: DatasetId, ended: FlowId) -> bool {
        let mut done = self.ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.insert(ended);
        update.engine.graph().dataset(id).flows.iter().all(|flow| done.contains(flow))
    }

    /// The promotion failed: the flow may be retried and promote then.
    fn reopen(&self, ended: FlowId) {
        self.ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&ended);
    }
}
