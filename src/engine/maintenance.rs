//! Upkeep after an update: small files are joined, files that nobody needs any more are removed, state.db
//! forgets what is too old to matter. Past thresholds only, and never what a running reader or an undo needs.

use std::path::Path;
use std::time::Duration;

use pipeline::event::{Details, Level};

use crate::auto_cdc::target::ChangeTarget;
use crate::error::Result;
use crate::fail_point;
use crate::record::About;
use crate::table::{Compacted, CompactionLimits, SharedTable, compact};
use crate::update::Update;

/// Unreferenced files stay this long: readers of an older version and `show --at-version` need them.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Tables are looked through for such files this often at most.
const VACUUM_EVERY: Duration = Duration::from_secs(24 * 3600);

/// Committed micro-batches whose input stays on record, for replays after lost commits.
const BATCHES_KEPT: i64 = 1000;

/// Updates that the log keeps.
const UPDATES_KEPT: i64 = 500;

/// Does what is due. A failure is reported and spoils nothing: the update is done.
pub(crate) async fn after_update(update: &Update) {
    if let Err(error) = run(update).await {
        update.recorder.notice(About::update(), "maintenance-failed", error.to_string(), error.help());
    }
}

async fn run(update: &Update) -> Result<()> {
    fail_point::hit("maintenance", None)?;
    let graph = update.engine.graph();
    for id in graph.dataset_ids() {
        if update.stop.is_requested() {
            return Ok(());
        }
        let dataset = graph.dataset(id);
        let Some(target) = update.target(id) else { continue };
        if target.shadow_generation.is_some() {
            continue;
        }
        let is_change = dataset.flows.iter().any(|flow| graph.flow(*flow).kind.is_change());
        let compacted = match (is_change, update.change_targets.opened(id).await) {
            (false, _) => {
                let limits = CompactionLimits { keeps_order: true, ..CompactionLimits::default() };
                compact(&target.table, &limits).await?
            }
            (true, Some(target)) => {
                let mut target = ChangeTarget::lock(target).await?;
                // A merge that goes on may go on beside it.
                let limits = CompactionLimits { rewrites_small: true, ..CompactionLimits::default() };
                let compacted = target.compact(&limits).await?;
                target.finish_merging().await?;
                compacted
            }
            // Nothing was written.
            (true, None) => Compacted::default(),
        };
        tell(update, &dataset.label, compacted);
    }
    if is_vacuum_due(update.engine.storage()) {
        for id in graph.dataset_ids().filter(|id| update.target(*id).is_some()) {
            // Not the target: that of a full refresh was a shadow, which is no table any more.
            let Some(table) = update.engine.table(graph.dataset(id))? else { continue };
            let removed = vacuum(&table).await?;
            if removed > 0 {
                let details =
                    Details::Maintenance { operation: "VACUUM".to_string(), files_added: 0, files_removed: removed };
                update.recorder.report(Level::Info, About::update(), format!("{removed} old files removed"), details);
            }
        }
    }
    if let Some(folder) = update.engine.spill_folder() {
        sweep_spill(&folder);
    }
    update.state.forget_old_batches(BATCHES_KEPT)?;
    update.state.forget_old_updates(UPDATES_KEPT)?;
    Ok(())
}

fn tell(update: &Update, label: &str, Compacted { files_before, files_after }: Compacted) {
    if files_before == 0 {
        return;
    }
    update.recorder.report(
        Level::Info,
        About::dataset(label),
        format!(
            "`{label}`: {} joined to {files_after}",
            pipeline::number::counted(files_before as u64, "file", "files")
        ),
        Details::Maintenance {
            operation: "COMPACT".to_string(),
            files_added: files_after as u64,
            files_removed: files_before as u64,
        },
    );
}

/// Removes what killed processes have spilled; a query that runs for a day is taken for one.
fn sweep_spill(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
        let is_ours = entry.file_name().to_string_lossy().starts_with("datafusion-");
        if is_ours && age.is_some_and(|age| age > VACUUM_EVERY) {
            // It costs space and nothing else; the next update tries again.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// True once in [`VACUUM_EVERY`]; the time of the last is that of a file in the storage folder.
fn is_vacuum_due(storage: &Path) -> bool {
    let marker = storage.join("vacuumed");
    let age = std::fs::metadata(&marker).and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
    let is_due = age.is_none_or(|age| age > VACUUM_EVERY);
    // If the marker can't be written, the next update looks again, which costs time and harms nothing.
    is_due && std::fs::write(&marker, "").is_ok()
}

/// Removes what no version within the retention needs.
pub(crate) async fn vacuum(table: &SharedTable) -> Result<u64> {
    let vacuumed = table.lock().await.vacuum(RETENTION)?;
    Ok(vacuumed.files as u64)
}
