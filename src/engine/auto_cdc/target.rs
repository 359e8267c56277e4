//! A target and its side table, opened once an update and shared by the flows that write it: they take turns.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pipeline::graph::DatasetId;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::columns::FlowColumns;
use super::encode::Layout;
use super::side::{FOLDER, Manifest, NewSideTable, Retention, SideTable};
use super::spec::TargetSpec;
use super::upkeep::{Merging, Rewriting};
use crate::error::{Error, Result};
use crate::flow::FlowRun;
use crate::state::State;
use crate::table::{PreparedCommit, RowDeletes, RowSet, SharedTable};
use crate::update::Target;

/// A target that flows take turns to write.
pub(crate) type SharedTarget = Arc<Mutex<ChangeTarget>>;

/// The targets that an update has open.
#[derive(Default)]
pub(crate) struct ChangeTargets {
    open: Mutex<BTreeMap<DatasetId, SharedTarget>>,
}

/// A target with its side table.
pub(crate) struct ChangeTarget {
    /// What messages call it.
    pub label: String,
    pub target: Target,
    /// None: no batch was applied yet.
    side: Option<Arc<SideTable>>,
    merging: Merging,
    pub(super) rewriting: Rewriting,
    side_folder: PathBuf,
    /// The version of the side table whose pending commit is in the target's log; None: not known to be.
    finished: Option<u64>,
    /// Where the table's folder is, seen from the dataset's: empty, or `gen-2/` while a full refresh builds it.
    prefix: String,
}

/// The folder of the side table of a dataset's generation.
pub(crate) fn side_folder(table_folder: &Path, generation: i64) -> PathBuf {
    table_folder.join(FOLDER).join(format!("gen-{generation}"))
}

/// Makes the commit that a crash left pending in the side table of a dataset's generation, if there is one: before
/// anything else changes the table.
///
/// # Errors
/// `table-behind`; what reading and committing may say. A side table that is damaged is left to who opens it.
pub(crate) async fn finish_pending(
    table_folder: &Path,
    generation: i64,
    label: &str,
    table: &SharedTable,
) -> Result<()> {
    match Manifest::read(&side_folder(table_folder, generation)) {
        Ok(manifest) => {
            refuse_lost_commits(&manifest, label, table).await?;
            match &manifest.pending {
                Some(pending) => make(pending, label, table).await,
                None => Ok(()),
            }
        }
        Err(error) if error.code().starts_with("side-table") => Ok(()),
        Err(error) => Err(error),
    }
}

/// A table that was put back: its side table knows of rows that it doesn't have.
async fn refuse_lost_commits(manifest: &Manifest, label: &str, table: &SharedTable) -> Result<()> {
    let mut table = table.lock().await;
    table.refresh()?;
    match manifest.is_ahead_of(table.version()) {
        true => Err(commits_lost(label, table.version(), manifest)),
        false => Ok(()),
    }
}

/// The error of a target that has lost more commits than the one that its side table can make again.
pub(crate) fn commits_lost(label: &str, version: i64, manifest: &Manifest) -> Error {
    Error::user(
        "table-behind",
        format!(
            "table `{label}` is at version {version}, and its side table was made with version {} and later ones: the \
             table has lost commits, or was put back",
            manifest.made_over.unwrap_or(version)
        ),
        format!(
            "put back the side table of that version too, or build the table anew: flowbench run --full-refresh {label}"
        ),
    )
}

/// Gives flows the names that they have by now: ties are decided by them.
fn rename_flows(side: &SideTable, state: &State) -> Result<()> {
    let mut flows = side.view().manifest().flows.clone();
    for flow in &mut flows {
        if let Some(known) = state.flow_by_id(&flow.id)? {
            flow.name = known.name;
        }
    }
    if flows == side.view().manifest().flows {
        return Ok(());
    }
    side.commit([], |manifest| {
        manifest.flows = flows;
        Ok(())
    })
}

/// Makes a pending commit, if the table's log doesn't have it yet.
async fn make(pending: &serde_json::Value, label: &str, table: &SharedTable) -> Result<()> {
    let prepared: PreparedCommit = serde_json::from_value(pending.clone()).map_err(|error| {
        Error::user(
            "side-table-corrupted",
            format!("the pending commit of table `{label}` can't be read: {error}"),
            format!("build the table anew: flowbench run --full-refresh {label}"),
        )
    })?;
    let mut table = table.lock().await;
    table.refresh()?;
    table.commit_prepared(&prepared).await.map(drop)
}

impl ChangeTargets {
    /// The target of a flow, with the commit that a crash left pending made.
    ///
    /// # Errors
    /// `side-table-missing` if the table has rows and its side table is gone; what reading and committing may say.
    pub async fn of(&self, run: &FlowRun<'_>) -> Result<SharedTarget> {
        let target = {
            let mut open = self.open.lock().await;
            match open.get(&run.flow.target) {
                Some(target) => target.clone(),
                None => {
                    let target = Arc::new(Mutex::new(ChangeTarget::open(run).await?));
                    open.insert(run.flow.target, target.clone());
                    target
                }
            }
        };
        // A flow that failed behind the side table's commit leaves the target's to who comes next.
        ChangeTarget::lock(target.clone()).await?;
        Ok(target)
    }

    /// A target that a flow of this update has opened.
    pub async fn opened(&self, dataset: DatasetId) -> Option<SharedTarget> {
        self.open.lock().await.get(&dataset).cloned()
    }
}

impl ChangeTarget {
    async fn open(run: &FlowRun<'_>) -> Result<ChangeTarget> {
        let target = run.target()?.clone();
        let folder = run.update.engine.table_folder(&run.dataset.name);
        let generation = match target.shadow_generation {
            Some(generation) => generation,
            None => {
                let recorded = run.update.state.dataset(&run.dataset.name.key())?;
                recorded.map(|dataset| dataset.generation).ok_or_else(|| {
                    Error::Internal(format!("dataset `{}` is written before it is recorded", run.dataset.label))
                })?
            }
        };
        let side_folder = side_folder(&folder, generation);
        let side = match SideTable::open(&side_folder) {
            Ok(side) => Some(Arc::new(side)),
            Err(error) if error.code() == "side-table-missing" => None,
            Err(error) => return Err(error),
        };
        let prefix = target.shadow_generation.map(|generation| format!("gen-{generation}/")).unwrap_or_default();
        let mut opened = ChangeTarget {
            label: run.dataset.label.clone(),
            target,
            side,
            merging: Merging::default(),
            rewriting: Rewriting::default(),
            side_folder,
            finished: None,
            prefix,
        };
        match &opened.side {
            Some(side) => {
                refuse_lost_commits(side.view().manifest(), &opened.label, &opened.target.table).await?;
                rename_flows(side, &run.update.state)?;
                opened.finish_pending().await?;
            }
            None => opened.refuse_rows_without_side().await?,
        }
        Ok(opened)
    }

    /// A table with rows and no side table: what its rows stand for is unknown.
    async fn refuse_rows_without_side(&self) -> Result<()> {
        let mut table = self.target.table.lock().await;
        table.refresh()?;
        if table.file_count() == 0 {
            return Ok(());
        }
        Err(Error::user(
            "side-table-missing",
            format!(
                "table `{}` has rows, and no side table tells what they stand for: they were inserted before AUTO CDC \
                 wrote the table, or `{}` was lost",
                self.label,
                self.side_folder.display()
            ),
            format!("build the table anew: flowbench run --full-refresh {}", self.label),
        ))
    }

    /// Waits for the flow's turn to write. The target is as its side table says.
    pub async fn lock(shared: SharedTarget) -> Result<OwnedMutexGuard<ChangeTarget>> {
        let mut target = shared.lock_owned().await;
        target.finish_pending().await?;
        Ok(target)
    }

    /// Makes the commit that the side table was committed with, if the target's log doesn't have it yet.
    async fn finish_pending(&mut self) -> Result<()> {
        let Some(side) = &self.side else { return Ok(()) };
        let view = side.view();
        let version = view.manifest().version();
        if self.finished == Some(version) {
            return Ok(());
        }
        let Some(pending) = &view.manifest().pending else { return Ok(()) };
        make(pending, &self.label, &self.target.table).await?;
        self.finished = Some(version);
        Ok(())
    }

    /// The last batch of a flow that is in the target for good.
    pub fn txn(&self, app_id: &str) -> Option<i64> {
        let view = self.side.as_ref()?.view();
        view.manifest().txns.get(app_id).and_then(|batch| i64::try_from(*batch).ok())
    }

    /// Makes the target's commit that the side table has pending, and goes on with the upkeep that batches make due.
    pub async fn commit(&mut self, prepared: Option<PreparedCommit>) -> Result<()> {
        if let Some(prepared) = prepared {
            self.target.table.lock().await.commit_prepared(&prepared).await?;
        }
        if let Some(side) = &self.side {
            self.finished = Some(side.view().manifest().version());
            self.merging.start(side).await?;
        }
        self.go_on_compacting().await
    }

    /// Ends what goes on beside the batches.
    pub async fn finish_merging(&mut self) -> Result<()> {
        self.merging.finish().await
    }

    /// Makes the side table, if there is none, for what the first flow says of the target, and has it keep what the flow
    /// needs.
    pub fn make_side(&mut self, columns: &FlowColumns, retention: Retention) -> Result<()> {
        match &self.side {
            Some(side) if retention == Retention::All && side.view().manifest().retention() == Retention::Newest => {
                // What was to be dropped would come back, with rows that are gone.
                side.merge_all()?;
                side.commit([], |manifest| {
                    manifest.keep_all();
                    Ok(())
                })
            }
            Some(_) => Ok(()),
            None => {
                let new = NewSideTable {
                    retention,
                    spec: serde_json::to_value(&columns.spec).expect("a spec is plain data"),
                    layout: Layout::default(),
                };
                self.side = Some(Arc::new(SideTable::create(&self.side_folder, new)?));
                Ok(())
            }
        }
    }

    /// The side table. Error: no batch has made one.
    pub fn side(&self) -> Result<&SideTable> {
        self.side.as_deref().ok_or_else(|| Error::Internal(format!("table `{}` has no side table yet", self.label)))
    }

    /// True if no batch was applied yet, or none that left anything.
    pub fn is_empty(&self) -> bool {
        self.side.as_ref().is_none_or(|side| side.view().manifest().runs().is_empty())
    }

    /// The version of the last snapshot, as sequences are encoded.
    pub fn snapshot_version(&self) -> Option<Vec<u8>> {
        self.side.as_ref()?.view().manifest().snapshot.as_ref().map(|snapshot| snapshot.version.clone())
    }

    /// The rows that the target shows.
    pub async fn row_count(&self) -> u64 {
        self.target.table.lock().await.row_count().unwrap_or(0)
    }

    /// What the target was built with; None: no batch was applied yet. Error: `side-table-corrupted`.
    pub fn recorded(&self) -> Result<Option<TargetSpec>> {
        match &self.side {
            Some(side) => TargetSpec::in_manifest(side.view().manifest(), &self.side_folder),
            None => Ok(None),
        }
    }

    /// A version of the table's log; None if it is not the one that the dataset's table goes on with.
    pub fn numbered(&self, version: i64) -> Option<i64> {
        self.target.shadow_generation.is_none().then_some(version)
    }

    /// A file's path in the side table: seen from the dataset's folder, whatever generation it was written in.
    pub fn side_path(&self, path_in_log: &str) -> String {
        format!("{}{path_in_log}", self.prefix)
    }

    /// The same file as the table's log has it.
    pub fn log_path<'p>(&self, side_path: &'p str) -> &'p str {
        side_path.strip_prefix(&self.prefix).unwrap_or(side_path)
    }

    /// Rows by file number as the table's commits take them.
    pub fn row_deletes(&self, rows: BTreeMap<u32, RowSet>, path: impl Fn(u32) -> Option<String>) -> Result<RowDeletes> {
        let named = rows.into_iter().map(|(file, rows)| {
            let path = path(file).ok_or_else(|| {
                Error::Internal(format!("file {file} of table `{}` is not known to its side table", self.label))
            })?;
            Ok((self.log_path(&path).to_string(), rows))
        });
        named.collect()
    }
}
