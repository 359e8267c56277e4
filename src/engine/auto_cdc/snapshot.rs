//! AUTO CDC FROM SNAPSHOT: the target is brought to whole states of a source, in ascending order of their versions.
//!
//! ```text
//! version: the update's time | WITH VERSION (query) | the paths of files ─▶ above the last one? ─▶ one micro-batch:
//!          rows are upserts at the version, keys that it doesn't have are deleted at it
//! ```
//! Not here: what a version does to a key's timeline (`pipeline::timeline`, [`Application`]).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch};
use pipeline::auto_cdc::{ChangeFlow, ChangeOptions, NullKeys, SnapshotFiles, SnapshotInput, SnapshotVersions};
use pipeline::event::{ChangeMetrics, FlowMetrics};
use pipeline::number::counted;
use pipeline::timeline::Class;
use tokio::sync::mpsc;

use super::apply::{Application, Applied, Batch, SnapshotKeys};
use super::batch::{check_drift, columns, places, read, retention, side_flow, tell_dropped};
use super::columns::FlowColumns;
use super::events::{Events, Refused};
use super::position::carry;
use super::silence::Silence;
use super::target::ChangeTarget;
use super::version;
use crate::error::{Error, Result};
use crate::fail_point;
use crate::flow::FlowRun;
use crate::flow::batch::{bring_up, completion, mark, partitions, plan, plan_and_run, plan_of, tell_added};
use crate::flow::inputs::{self, Content, OpenSource, batch_inputs};
use crate::flow::live::scanned;
use crate::micro_batch::query_error;
use crate::state::{KnownBy, PlannedInput};
use crate::stop::Stop;
use crate::table::PreparedCommit;

/// Rows of about so many bytes are applied at once.
const PORTION_BYTES: usize = 128 << 20;

/// So many late files are named.
const FILES_NAMED: usize = 3;

/// Applies the snapshots that are there and newer than the last one.
pub(crate) async fn run(run: &FlowRun<'_>, change: &ChangeFlow) -> Result<()> {
    let snapshot = snapshot_of(change)?;
    let mut sources = inputs::open(run, true).await?;
    if !inputs::are_known(&sources) {
        return Err(first_is_missing(run, "there is nothing to read, so its columns are unknown"));
    }
    let Some(mut batch) = bring_up(run, &mut sources).await? else { return Ok(()) };
    let next = next_inputs(run, snapshot, &sources).await?;
    let is_once = run.flow.kind.is_once();
    // A version in files is a batch, so no batch says that it is the last.
    let is_marked = next.len() == 1 && !matches!(snapshot.versions, SnapshotVersions::Files(_));
    for inputs in next {
        run.update.stop.check()?;
        plan_and_run(run, &mut sources, batch, &inputs, None).await?;
        batch += 1;
    }
    if is_once && !is_marked {
        let completion = completion(run, run.live.metrics().rows_out);
        run.update.state.mark_done(&run.record.flow_id, run.generation, &completion)?;
    }
    Ok(())
}

fn snapshot_of(change: &ChangeFlow) -> Result<&SnapshotInput> {
    change.snapshot().ok_or_else(|| Error::Internal("a feed was run as a snapshot".to_string()))
}

/// What each of the snapshots to apply reads; empty if the last one is the newest.
async fn next_inputs(
    run: &FlowRun<'_>,
    snapshot: &SnapshotInput,
    sources: &[OpenSource],
) -> Result<Vec<Vec<PlannedInput>>> {
    let last = last_version(run).await?;
    let whole = || {
        let inputs = sources.iter().filter_map(|source| source.whole(source.source_id?));
        vec![inputs.collect::<Vec<_>>()]
    };
    match &snapshot.versions {
        SnapshotVersions::UpdateTime => {
            refuse_beside_rows(run, last.is_some()).await?;
            Ok(whole())
        }
        SnapshotVersions::Query(_) => match queried_version(run).await? {
            None if last.is_none() => Err(first_is_missing(run, "the version query gives no row")),
            None => Ok(Vec::new()),
            Some(version) => {
                let version = version::encoded(&version)?;
                let order = last.map_or(Ordering::Greater, |last| version.cmp(&last));
                // That a snapshot is as it was is no news, unless it was asked for.
                if order.is_lt() || order.is_eq() && run.flow.kind.is_once() {
                    tell_passed_over(run, "its snapshot");
                }
                Ok(if order.is_gt() { whole() } else { Vec::new() })
            }
        },
        SnapshotVersions::Files(files) => {
            let by_version = files_by_version(run, files, sources)?;
            if by_version.is_empty() && last.is_none() {
                return Err(first_is_missing(run, "no file matches the path"));
            }
            let is_new = |version: &Vec<u8>| last.as_ref().is_none_or(|last| version > last);
            let (new, old): (Vec<_>, Vec<_>) = by_version.into_iter().partition(|(version, _)| is_new(version));
            old.into_iter().try_for_each(|(_, input)| tell_late_files(run, input))?;
            Ok(new.into_iter().map(|(_, input)| vec![input]).collect())
        }
    }
}

/// Of files that are not read because of their version, those that came after it was the last one; each is told once.
fn tell_late_files(run: &FlowRun<'_>, input: PlannedInput) -> Result<()> {
    let state = &run.update.state;
    let late = state.new_files(input.source_id, input.files, KnownBy::Path)?;
    if !late.is_empty() {
        state.add_known_files(input.source_id, &late)?;
        let names: Vec<String> = late.iter().take(FILES_NAMED).map(|file| format!("`{}`", file.path)).collect();
        let more = late.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        tell_passed_over(run, &format!("{}{more}", names.join(", ")));
    }
    Ok(())
}

/// A version that is not above the last one is passed over.
fn tell_passed_over(run: &FlowRun<'_>, what: &str) {
    run.update.recorder.notice(
        run.about(),
        "snapshot-passed-over",
        format!(
            "flow `{}` passes {what} over: `{}` has had a snapshot of that version, or of a later one",
            run.flow.name, run.dataset.label
        ),
        Some(format!(
            "versions have to grow: give it a later one, or build the table anew: flowbench run --full-refresh {}",
            run.dataset.label
        )),
    );
}

fn first_is_missing(run: &FlowRun<'_>, why: &str) -> Error {
    Error::user(
        "first-snapshot-missing",
        format!(
            "flow `{}` has no first snapshot: {why} [APPLY_CHANGES_FROM_SNAPSHOT_ERROR.FIRST_SNAPSHOT_EMPTY]",
            run.flow.name
        ),
        "nothing was written; make the snapshot and its version available, then run again",
    )
}

/// Without a version of its own a snapshot can't be ordered among events that are there.
async fn refuse_beside_rows(run: &FlowRun<'_>, has_snapshot: bool) -> Result<()> {
    if !run.flow.kind.is_once() || has_snapshot {
        return Ok(());
    }
    let target = run.update.change_targets.of(run).await?;
    if target.lock().await.is_empty() {
        return Ok(());
    }
    Err(Error::user(
        "snapshot-needs-version",
        format!(
            "flow `{}` loads a snapshot without a version into `{}`, which has rows: nothing tells which are newer",
            run.flow.name, run.dataset.label
        ),
        "say which state it is: FROM SNAPSHOT (…) WITH VERSION (SELECT …)",
    ))
}

/// The version of the last snapshot that was applied.
async fn last_version(run: &FlowRun<'_>) -> Result<Option<Vec<u8>>> {
    let target = run.update.change_targets.of(run).await?;
    let target = target.lock().await;
    Ok(target.snapshot_version())
}

/// What `WITH VERSION` gives; None: no row.
async fn queried_version(run: &FlowRun<'_>) -> Result<Option<ArrayRef>> {
    let reading = run.flow.version.as_ref().ok_or_else(|| Error::Internal("a snapshot has no version query".into()))?;
    let sources = inputs::open_reading(run, reading).await?;
    if !inputs::are_known(&sources) {
        return Ok(None);
    }
    let batch = batch_inputs(&sources, &[], None).await?;
    let query = plan_of(run, reading, &batch).await?;
    let failed = |error| query_error(&format!("{}: its version", run.during()), error);
    let frame = run.session.execute_logical_plan(query).await.map_err(failed)?;
    let rows = frame.collect().await.map_err(failed)?;
    version::of_rows(&run.flow.name, &rows)
}

/// The files of each version, the smallest version first; by its bytes.
fn files_by_version(
    run: &FlowRun<'_>,
    files: &SnapshotFiles,
    sources: &[OpenSource],
) -> Result<BTreeMap<Vec<u8>, PlannedInput>> {
    let mut by_version: BTreeMap<Vec<u8>, PlannedInput> = BTreeMap::new();
    for source in sources {
        let (Some(source_id), Content::Files { listing, ledger, .. }) = (source.source_id, &source.content) else {
            continue;
        };
        for file in ledger.write(listing) {
            let version = version::encoded(&version::of_path(&run.flow.name, files, &file.path)?)?;
            let input = by_version.entry(version).or_insert_with(|| PlannedInput {
                source_id,
                start_offset: None,
                end_offset: None,
                files: Vec::new(),
            });
            input.files.push(file);
        }
    }
    Ok(by_version)
}

/// Applies one snapshot, as a planned batch.
pub(crate) async fn apply(
    run: &FlowRun<'_>,
    change: &ChangeFlow,
    sources: &[OpenSource],
    batch: i64,
    inputs: &[PlannedInput],
) -> Result<()> {
    let started = Instant::now();
    run.live.batch_rows.store(0, Relaxed);
    let snapshot = snapshot_of(change)?;
    let version: Option<ArrayRef> = match &snapshot.versions {
        SnapshotVersions::UpdateTime => Some(version::of_now()),
        SnapshotVersions::Query(_) => queried_version(run).await?,
        SnapshotVersions::Files(files) => {
            let paths = inputs.iter().flat_map(|input| &input.files).map(|file| file.path.as_str());
            paths.take(1).map(|path| version::of_path(&run.flow.name, files, path)).next().transpose()?
        }
    };
    let Some(version) = version else { return pass_over(run, batch).await };
    let batch_inputs = batch_inputs(sources, inputs, Some(batch)).await?;
    let query = carry(plan(run, &batch_inputs).await?).map_err(|error| query_error(&run.during(), error))?;
    let sequence = version::data_type(&version)?;
    let own = columns(run, change, &query, sequence.clone()).await?;
    let project =
        |columns: &FlowColumns| columns.project(query.clone(), &[]).map_err(|error| query_error(&run.during(), error));
    let mut rows = read(run, &project(&own)?, batch_inputs.work_bytes).await?;
    let class = if run.flow.kind.is_once() { Class::OnceSnapshot } else { Class::Snapshot };
    let mut what = Batch {
        columns: own,
        flow: side_flow(run, class, Silence::None),
        app_id: run.app_id(),
        batch,
        retention: retention(run),
        threads: partitions(run, u64::MAX),
    };
    let target = run.update.change_targets.of(run).await?;
    let (applied, absent, dropped, added) = {
        let mut target = ChangeTarget::lock(target).await?;
        let now = columns(run, change, &query, sequence).await?;
        if now.table.fields != what.columns.table.fields {
            rows = read(run, &project(&now)?, batch_inputs.work_bytes).await?;
            what.columns = now;
        }
        let rows_before = target.row_count().await;
        let during = Guard {
            flow: run.during(),
            label: run.dataset.label.clone(),
            options: change.options,
            rows_before,
            stop: run.update.stop.clone(),
        };
        let place = places(sources, inputs);
        let added = what.columns.added.clone();
        let task = tokio::task::spawn_blocking(move || {
            let outcome = apply_rows(&mut target, &what, &version, &mut rows, &during, &place);
            (outcome, target)
        });
        let (outcome, mut target) =
            task.await.map_err(|error| Error::Internal(format!("{}: {error}", run.during())))?;
        let Outcome { applied, absent, refused, prepared } = outcome?;
        fail_point::hit("side-committed", Some(&run.flow.name))?;
        target.commit(prepared).await?;
        (applied, absent, refused.keyless(), added)
    };
    tell_dropped(run, batch, dropped);
    tell_added(run, batch, added);
    fail_point::hit("committed", Some(&run.flow.name))?;
    let version = run.target()?.table.lock().await.version();
    let metrics = FlowMetrics {
        batches: 1,
        rows_in: scanned(&batch_inputs.counters).rows_in + batch_inputs.table_rows,
        rows_out: applied.rows_added + absent,
        files_in: batch_inputs.files,
        bytes_in: batch_inputs.bytes,
        duration_ms: started.elapsed().as_millis() as u64,
        changes: ChangeMetrics {
            upserted: applied.rows_added,
            deleted: absent,
            ties: applied.counts.ties,
            dropped,
            ..ChangeMetrics::default()
        },
        ..scanned(&batch_inputs.counters)
    };
    mark(run, batch, &metrics, Some(version))
}

/// The version query gave a version when the batch was planned, or was applied before the table lost it, and gives none
/// now: there is nothing to apply, and the side table notes that the batch is done.
async fn pass_over(run: &FlowRun<'_>, batch: i64) -> Result<()> {
    let target = ChangeTarget::lock(run.update.change_targets.of(run).await?).await?;
    let Ok(side) = target.side() else { return Err(first_is_missing(run, "the version query gives no row")) };
    side.commit([], |manifest| {
        manifest.txns.insert(run.app_id(), batch as u64);
        Ok(())
    })?;
    drop(target);
    mark(run, batch, &FlowMetrics::default(), None)
}

/// What a snapshot did, with the target's commit still to be made.
struct Outcome {
    applied: Applied,
    /// Keys that it doesn't have, and that were deleted.
    absent: u64,
    refused: Refused,
    prepared: Option<PreparedCommit>,
}

/// What a snapshot may not do, and the words for it.
struct Guard {
    flow: String,
    label: String,
    options: ChangeOptions,
    rows_before: u64,
    stop: Stop,
}

fn apply_rows(
    target: &mut ChangeTarget,
    batch: &Batch,
    version: &ArrayRef,
    rows: &mut mpsc::Receiver<Result<RecordBatch>>,
    guard: &Guard,
    place: &dyn Fn([u64; 3]) -> String,
) -> Result<Outcome> {
    let spec = target.recorded()?;
    check_drift(target, spec.as_ref(), &batch.columns.spec)?;
    target.make_side(&batch.columns, batch.retention)?;
    let mut application = Application::begin(target, spec, batch)?;
    let version_bytes = application.version_bytes(version)?;
    let (mut events, mut refused, mut seen) = (Events::default(), Refused::default(), SnapshotKeys::default());
    while let Some(rows) = rows.blocking_recv() {
        guard.stop.check()?;
        application.reader(Some(version)).read(&rows?, &mut events, &mut refused)?;
        if events.bytes() >= PORTION_BYTES {
            application.apply_snapshot(&std::mem::take(&mut events), &mut seen)?;
        }
    }
    application.apply_snapshot(&events, &mut seen)?;
    let keys: Vec<String> = batch.columns.keys.iter().map(|key| key.name.clone()).collect();
    let drops = guard.options.null_keys == Some(NullKeys::Drop);
    let error = if drops { None } else { refused.error(&guard.flow, batch.batch, &keys, place) };
    if let Some(error) = error {
        return Err(error);
    }
    guard.check_rows(&seen)?;
    let (absent, before) = application.delete_absent(&version_bytes, &seen, guard.rows_before)?;
    guard.check_deletes(absent, before)?;
    guard.stop.check()?;
    let (applied, prepared) = application.commit(Some(&version_bytes))?;
    Ok(Outcome { applied, absent, refused, prepared })
}

impl Guard {
    fn check_rows(&self, seen: &SnapshotKeys) -> Result<()> {
        if seen.duplicates > 0 {
            return Err(Error::user(
                "snapshot-duplicate-keys",
                format!(
                    "{}: {} the key of another row \
                     [APPLY_CHANGES_FROM_SNAPSHOT_ERROR.DUPLICATE_KEY_VIOLATION]: {}",
                    self.flow,
                    counted(seen.duplicates, "row of the snapshot has", "rows of the snapshot have"),
                    seen.duplicate_keys.join("; ")
                ),
                "nothing was written; a snapshot has one row a key: choose one in the snapshot's query, \
                 QUALIFY row_number() OVER (PARTITION BY key ORDER BY …) = 1",
            ));
        }
        if seen.rows == 0 && self.options.allow_empty_snapshot != Some(true) {
            return Err(Error::user(
                "snapshot-empty",
                format!(
                    "{}: the snapshot is empty, which would delete all of `{}`, {}",
                    self.flow,
                    self.label,
                    counted(self.rows_before, "row", "rows")
                ),
                "nothing was written; if it is right, allow it: allow_empty_snapshot = true, or \
                 TBLPROPERTIES ('flowbench.allowEmptySnapshot' = 'true')",
            ));
        }
        Ok(())
    }

    fn check_deletes(&self, absent: u64, before: u64) -> Result<()> {
        let Some(most) = self.options.max_delete_fraction else { return Ok(()) };
        if !most.is_exceeded_by(absent, before) {
            return Ok(());
        }
        Err(Error::user(
            "snapshot-deletes-too-much",
            format!(
                "{}: the snapshot lacks {absent} of the {} of `{}`, more than max_delete_fraction = {} allows",
                self.flow,
                counted(before, "key", "keys"),
                self.label,
                f64::from(most.millionths) / 1e6
            ),
            "nothing was written; if the snapshot is whole, raise max_delete_fraction for this update",
        ))
    }
}
