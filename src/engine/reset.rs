//! What a person does to checkpoints between updates: plan an update, reset a flow, rename it, drop a dataset.

use std::collections::BTreeSet;
use std::sync::Arc;

use pipeline::change::{AppliedDataset, classify};
use pipeline::graph::{FlowId, FlowKind, Graph, Source};
use pipeline::plan::explain::explain;
use pipeline::plan::{FlowAction, Notice, Refusal, UpdateRequest};
use pipeline::report::{DatasetChanges, FlowBacklog, FlowReset, PlanReport, ResetReport};

use crate::analysis::{Analysis, applied};
use crate::clock::{iso, now_us};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::full_refresh;
use crate::listings::Listings;
use crate::lock::WriterLock;
use crate::overlap::overlaps;
use crate::source::flow_sources::flow_sources;
use crate::source::ledger::LedgerPaths;
use crate::source::table_stream::TableOffset;
use crate::state::{Access, KnownBy, State};

impl Engine {
    /// What an update would do, without doing it: which flows run, what is new, what changed, what to know.
    pub async fn plan(&self, request: &UpdateRequest) -> Result<PlanReport> {
        self.check_files()?;
        let state = self.state_for_reading()?;
        let listings = Arc::new(Listings::new(self.root().to_path_buf()));
        let (plan, analysis) = self.prepare(state.as_ref(), request, &listings).await?;
        let changes = match &state {
            Some(state) => self.changes(state, &analysis)?,
            None => Vec::new(),
        };
        let mut notices = plan.notices.clone();
        notices.extend(overlaps(self.graph(), self.root(), &plan, state.as_ref(), &listings).await?);
        let mut backlog = Vec::new();
        for (id, action) in &plan.flows {
            let reads = matches!(action, FlowAction::Run | FlowAction::RunOnceAgain);
            // Of a table that a once flow reads as a whole nothing is new or old.
            let flow = self.graph().flow(*id);
            let inputs = self.graph().all_inputs(&flow.reading);
            let is_counted = match flow.kind {
                FlowKind::Append | FlowKind::Cdc => true,
                FlowKind::Once | FlowKind::CdcOnce | FlowKind::Snapshot | FlowKind::SnapshotOnce => {
                    inputs.iter().any(|input| matches!(input.source, Source::Files(_)))
                }
                FlowKind::Complete => false,
            };
            if reads && is_counted {
                let is_anew = plan.full_refresh.contains(&self.graph().flow(*id).target);
                backlog.push(self.backlog(state.as_ref().filter(|_| !is_anew), *id, &listings).await?);
            }
        }
        Ok(PlanReport { lines: explain(self.graph(), &plan), changes, backlog, notices })
    }

    /// What changed in the definitions of datasets since they were applied.
    pub(crate) fn changes(&self, state: &State, analysis: &Analysis) -> Result<Vec<DatasetChanges>> {
        let mut changes = Vec::new();
        for id in self.graph().dataset_ids() {
            let dataset = self.graph().dataset(id);
            let Some(columns) = &analysis.columns[id.0] else { continue };
            let Some(recorded) = state.dataset(&dataset.name.key())? else { continue };
            let before: AppliedDataset = serde_json::from_str(&recorded.definition)
                .map_err(|e| Error::Internal(format!("the recorded definition of `{}`: {e}", dataset.label)))?;
            let found = classify(&before, &applied(dataset, columns));
            if !found.is_empty() {
                changes.push(DatasetChanges { dataset: dataset.label.clone(), changes: found });
            }
        }
        Ok(changes)
    }

    /// What a flow would read: all of its sources without a checkpoint, else what is new.
    async fn backlog(&self, state: Option<&State>, id: FlowId, listings: &Listings) -> Result<FlowBacklog> {
        let graph = self.graph();
        let flow = graph.flow(id);
        let mut backlog = FlowBacklog { flow: flow.name.clone(), files: 0, bytes: 0, versions: 0 };
        let record = match state {
            Some(state) => state.flow(&graph.dataset(flow.target).name.key(), &flow.name)?,
            None => None,
        };
        for source in flow_sources(graph, &flow.reading) {
            let recorded = match (state, &record) {
                (Some(state), Some(record)) => {
                    let known = state.sources(&record.flow_id, record.generation)?;
                    known.into_iter().find(|known| known.source == source.key)
                }
                _ => None,
            };
            match &source.input.source {
                // A once flow reads its whole source, whatever a batch that didn't come to its end had planned.
                Source::Files(spec) if !flow.kind.is_incremental() => {
                    let files = &listings.list(spec).await?.files;
                    backlog.files += files.len() as u64;
                    backlog.bytes += files.iter().map(|file| file.size).sum::<u64>();
                }
                Source::Files(spec) => {
                    let files = LedgerPaths::new(spec, self.root()).write(&listings.list(spec).await?.files);
                    let known_by = if spec.allow_overwrites { KnownBy::PathTimeAndSize } else { KnownBy::Path };
                    let new = match (state, &recorded) {
                        (Some(state), Some(known)) => state.new_files(known.source_id, files, known_by)?,
                        _ => files,
                    };
                    backlog.files += new.len() as u64;
                    backlog.bytes += new.iter().map(|file| file.size_bytes as u64).sum::<u64>();
                }
                Source::Dataset { id, .. } if flow.reads_as_stream(source.input) => {
                    let Some(table) = self.table(graph.dataset(*id))? else { continue };
                    let version = table.lock().await.version();
                    let at = match recorded.and_then(|known| known.offset) {
                        Some(offset) => TableOffset::from_json(&offset)?.version,
                        None => 0,
                    };
                    backlog.versions += u64::try_from(version + 1 - at).unwrap_or(0);
                }
                _ => {}
            }
        }
        Ok(backlog)
    }

    /// Forgets the checkpoints of flows; their tables keep their rows. Not confirmed, it only says what would
    /// be read twice.
    ///
    /// # Errors
    /// `unknown-flow`; a refusal for flows that are no streams; `workspace-locked`.
    pub async fn reset(&self, flows: &[String], is_confirmed: bool) -> Result<ResetReport> {
        let graph = self.graph();
        let mut ids = BTreeSet::new();
        for name in flows {
            let id = graph.find_flow(name).ok_or_else(|| self.unknown_flow(name))?;
            check_resettable(graph, id)?;
            ids.insert(id);
        }
        let mut report = ResetReport { flows: Vec::new(), is_done: false };
        let Some(state) = self.state_for_reading()? else {
            return Err(Error::user(
                "no-state",
                "no update has run here, so there are no checkpoints",
                "start one: flowbench run",
            ));
        };
        for id in &ids {
            report.flows.push(self.flow_reset(&state, *id).await?);
        }
        drop(state);
        if !is_confirmed {
            return Ok(report);
        }
        let (_lock, state) = self.open_for_writing("reset").await?;
        for id in &ids {
            let flow = graph.flow(*id);
            let Some(record) = state.flow(&graph.dataset(flow.target).name.key(), &flow.name)? else { continue };
            state.reset_flow(&record.flow_id, "reset", flow.kind.is_change(), now_us())?;
        }
        report.is_done = true;
        Ok(report)
    }

    async fn flow_reset(&self, state: &State, id: FlowId) -> Result<FlowReset> {
        let graph = self.graph();
        let flow = graph.flow(id);
        let dataset = graph.dataset(flow.target);
        let rows_kept = match self.table(dataset)? {
            Some(table) => table.lock().await.row_count(),
            None => None,
        };
        let mut reset = FlowReset {
            flow: flow.name.clone(),
            dataset: dataset.label.clone(),
            rows_kept,
            files_again: 0,
            bytes_again: 0,
            rows_again: 0,
            changes_nothing: flow.kind.is_change(),
            start: None,
        };
        for source in flow_sources(graph, &flow.reading) {
            if let Source::Files(spec) = &source.input.source
                && let Some(after_us) = spec.modified_after_us
            {
                reset.start = Some(format!("files modified after {} (modifiedAfter)", iso(after_us)));
            }
        }
        let Some(record) = state.flow(&dataset.name.key(), &flow.name)? else { return Ok(reset) };
        for source in state.sources(&record.flow_id, record.generation)? {
            reset.files_again += state.known_file_count(source.source_id)? as u64;
        }
        for batch in state.batches_after(&record.flow_id, record.generation, -1)? {
            reset.bytes_again += batch.bytes as u64;
            if !reset.changes_nothing {
                reset.rows_again += batch.rows_written.unwrap_or_default() as u64;
            }
        }
        Ok(reset)
    }

    /// Lets flow `new` of the files go on from the checkpoint that `old` left (behaviours B-21).
    ///
    /// # Errors
    /// `unknown-flow` if `new` is not in the files or `old` never ran; `flow-exists` if either is in use.
    pub async fn rename_flow(&self, old: &str, new: &str) -> Result<()> {
        let graph = self.graph();
        let id = graph.find_flow(new).ok_or_else(|| self.unknown_flow(new))?;
        let flow = graph.flow(id);
        if let Some(used) = graph.find_flow(old).filter(|used| *used != id) {
            return Err(Error::user(
                "flow-exists",
                format!("flow `{}` is still in the files; its checkpoint is its own", graph.flow(used).name),
                "rename it in the files first, then here",
            ));
        }
        let (_lock, state) = self.open_for_writing("rename-flow").await?;
        let dataset = graph.dataset(flow.target).name.key();
        if state.flow(&dataset, old)?.is_none() {
            let known: Vec<String> =
                state.flows()?.into_iter().filter(|f| f.dataset == dataset).map(|f| f.name).collect();
            return Err(Error::user(
                "unknown-flow",
                format!("no flow named `{old}` ever wrote to `{}`", graph.dataset(flow.target).label),
                match known.is_empty() {
                    true => "no flow ran into that table yet".to_string(),
                    false => format!("flows that did: {}", known.join(", ")),
                },
            ));
        }
        state.rename_flow(&dataset, old, &flow.name)?;
        Ok(())
    }

    /// Removes a dataset that is no longer in the files: its table and its checkpoints.
    ///
    /// # Errors
    /// `dataset-active` if the files still define it; [`Refusal::Unconfirmed`] without a yes.
    pub async fn drop_dataset(&self, name: &str, is_confirmed: bool) -> Result<()> {
        if let Some(id) = self.graph().find_dataset(name) {
            let dataset = self.graph().dataset(id);
            return Err(Error::user(
                "dataset-active",
                format!("`{}` is defined in the files; the next update would make it again", dataset.label),
                "take it out of the files first",
            ));
        }
        let known = match self.state_for_reading()? {
            Some(state) => state.datasets()?,
            None => Vec::new(),
        };
        let found =
            known.into_iter().find(|k| k.name.eq_ignore_ascii_case(name) || k.dataset.eq_ignore_ascii_case(name));
        let found = found.ok_or_else(|| self.unknown_dataset(name))?;
        let folder = self.storage().join(&found.table_path);
        if !is_confirmed {
            let rows = crate::table::Table::open(&folder)?.and_then(|table| table.row_count());
            let rows =
                rows.map_or_else(|| "its rows".to_string(), |rows| pipeline::number::counted(rows, "row", "rows"));
            return Err(Error::Refused {
                refusal: Refusal::Unconfirmed {
                    notices: vec![Notice {
                        code: "drop",
                        message: format!("dropping `{}` deletes {rows} and its checkpoints for good", found.name),
                        help: format!("flowbench drop {} --yes", found.name),
                    }],
                },
            });
        }
        let (_lock, state) = self.open_for_writing("drop").await?;
        self.tables().forget(&folder);
        // The table first: a record without a table is mended by another drop, a table without a record is not.
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &folder, error));
            }
            _ => {}
        }
        state.forget_dataset(&found.dataset)
    }

    /// Takes the lock and opens state.db, with what a dead process left brought to an end.
    async fn open_for_writing(&self, command: &str) -> Result<(WriterLock, std::sync::Arc<State>)> {
        let lock = WriterLock::acquire(self.storage(), command, &iso(now_us()))?;
        let state = std::sync::Arc::new(State::open(self.storage(), Access::ReadWrite)?);
        state.fail_interrupted_updates(now_us())?;
        full_refresh::finish_interrupted(self, &state).await?;
        Ok((lock, state))
    }

    fn unknown_flow(&self, name: &str) -> Error {
        let names = self.graph().flows.iter().map(|flow| flow.name.as_str());
        let help = match pipeline::diagnostic::nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`flowbench graph` lists the flows".to_string(),
        };
        Error::user("unknown-flow", format!("no flow is named `{name}`"), help)
    }
}

/// Only streams have a place in their source that can be forgotten (operations, "What gets refreshed").
fn check_resettable(graph: &Graph, id: FlowId) -> Result<()> {
    let flow = graph.flow(id);
    let dataset = &graph.dataset(flow.target).label;
    let (what, help) = match flow.kind {
        FlowKind::Append | FlowKind::Cdc => return Ok(()),
        FlowKind::CdcOnce | FlowKind::SnapshotOnce => {
            ("a once flow", format!("apply its source again: flowbench run --rerun-once {}", flow.name))
        }
        FlowKind::Snapshot => (
            "a flow from snapshots",
            format!("it reads whole states; build the table anew: flowbench run --full-refresh {dataset}"),
        ),
        FlowKind::Once => (
            "a once flow",
            format!(
                "append its rows again: flowbench run --rerun-once {}; or build the table anew: flowbench run \
                 --full-refresh {dataset}",
                flow.name
            ),
        ),
        FlowKind::Complete => {
            ("a materialized view", format!("compute it anew: flowbench run --full-refresh {dataset}"))
        }
    };
    let message = format!("`{}` is {what}; there is no checkpoint to reset", flow.name);
    Err(Error::Refused { refusal: Refusal::Usage { condition: None, message, help } })
}
