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

use crate::clock::now_us;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fail_point;
use crate::record::About;
use crate::state::State;
use crate::table::{Table, TableSpec};
use crate::update::{Target, Update};

/// Application id under which a promoting commit records the generation it put in force.
fn generation_app_id(dataset: &str) -> String {
    format!("flowbench:generation:{dataset}")
}

fn shadow_folder(folder: &Path, generation: i64) -> PathBuf {
    folder.join(format!("gen-{generation}"))
}

/// Begins the next generation of a dataset whose table is in `folder`, and returns its shadow to write to.
pub(crate) fn start(
    update: &Update,
    dataset: &Dataset,
    folder: &Path,
    spec: TableSpec,
    partition_by: Vec<String>,
) -> Result<Target> {
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
    let dataset = update.engine.graph().dataset(id);
    promote(update, dataset, target).await.inspect_err(|_| update.full_refreshes.reopen(id, ended))
}

/// Puts the new generation of tables that no flow writes in force: they are empty.
pub(crate) async fn promote_without_flows(update: &Update) -> Result<()> {
    for (id, target) in update.shadows() {
        let dataset = update.engine.graph().dataset(id);
        if dataset.flows.is_empty() {
            promote(update, dataset, target).await?;
        }
    }
    Ok(())
}

async fn promote(update: &Update, dataset: &Dataset, target: &Target) -> Result<()> {
    let key = dataset.name.key();
    let begun = update.state.begin_promotion(&key)?;
    fail_point::hit("promote", None)?;
    let folder = update.engine.table_folder(&dataset.name);
    let shadow = Table::open(&target.folder)?
        .ok_or_else(|| Error::Internal(format!("the shadow table of `{}` is gone", dataset.label)))?;
    let mut txns: Vec<(String, i64)> = shadow.all_txns().iter().map(|(app, batch)| (app.clone(), *batch)).collect();
    txns.push((generation_app_id(&key), begun.generation));
    let table = update
        .engine
        .tables()
        .get(&folder)?
        .ok_or_else(|| Error::Internal(format!("the table of `{}` is gone", dataset.label)))?;
    let version = table.lock().await.promote(shadow, txns, "FULL REFRESH").await?;
    fail_point::hit("promoted", None)?;
    update.state.promote(&key)?;
    update.engine.tables().forget(&target.folder);
    update.full_refreshes.promoted(update, dataset);
    update.recorder.report(
        Level::Info,
        About::dataset(&dataset.label),
        format!("full refresh of `{}`: generation {} is in force (version {version})", dataset.label, begun.generation),
        Details::PlanningInformation { technique: "FULL_REFRESH_PROMOTED".to_string() },
    );
    Ok(())
}

/// Gives up the generations whose flows did not all succeed; the old rows stay.
pub(crate) async fn abandon_unfinished(update: &Update) -> Result<()> {
    let graph = update.engine.graph();
    for (id, target) in update.shadows() {
        let dataset = graph.dataset(id);
        let Some(recorded) = update.state.dataset(&dataset.name.key())? else { continue };
        let Some(refresh) = recorded.full_refresh else { continue };
        finish(&update.engine, &update.state, &recorded.dataset, &target.folder, refresh.generation).await?;
        update.recorder.notice(
            About::dataset(&dataset.label),
            "full-refresh-abandoned",
            format!("full refresh of `{}` did not finish: the old rows stay in force", dataset.label),
            Some(format!("mend what failed, then: flowbench run --full-refresh {}", dataset.label)),
        );
    }
    Ok(())
}

/// Ends the full refreshes that a dead process left: finished if the promoting commit is in the table, else
/// given up.
pub(crate) async fn finish_interrupted(engine: &Engine, state: &Arc<State>) -> Result<()> {
    for dataset in state.datasets()? {
        let Some(refresh) = &dataset.full_refresh else { continue };
        let folder = engine.storage().join(&dataset.table_path);
        let shadow = shadow_folder(&folder, refresh.generation);
        finish(engine, state, &dataset.dataset, &shadow, refresh.generation).await?;
    }
    Ok(())
}

async fn finish(engine: &Engine, state: &State, dataset: &str, shadow: &Path, generation: i64) -> Result<()> {
    let recorded = state.dataset(dataset)?;
    let Some(refresh) = recorded.as_ref().and_then(|dataset| dataset.full_refresh.as_ref()) else { return Ok(()) };
    let folder = shadow.parent().expect("a shadow lies in its table's folder");
    let promoted = match engine.tables().get(folder)? {
        Some(table) => {
            let mut table = table.lock().await;
            table.refresh()?;
            table.txn(&generation_app_id(dataset))
        }
        None => None,
    };
    match resume_full_refresh(refresh.phase.into(), generation, promoted) {
        ResumeFullRefresh::FinishPromotion => {
            remove(&shadow.join("_delta_log"))?;
            state.promote(dataset)?;
        }
        ResumeFullRefresh::Abandon => {
            engine.tables().forget(shadow);
            // First the record, so that a crash in between leaves files and no promise.
            state.abandon_full_refresh(dataset)?;
            remove(shadow)?;
        }
    }
    Ok(())
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
    fn reopen(&self, _id: DatasetId, ended: FlowId) {
        self.ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&ended);
    }

    /// The dataset's new definition is what the table holds now.
    fn promoted(&self, update: &Update, dataset: &Dataset) {
        if let Err(error) = update.record_dataset(dataset) {
            update.recorder.notice(About::dataset(&dataset.label), "state", error.to_string(), error.help());
        }
    }
}
