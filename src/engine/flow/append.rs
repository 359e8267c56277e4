//! A streaming flow: micro-batches over what is new in its streams, as it was when the update started.

use std::collections::VecDeque;
use std::sync::Arc;

use pipeline::read_files::ReadFiles;

use super::FlowRun;
use super::ahead::Next;
use super::batch::{bring_up, plan_and_run};
use super::inputs::{self, Content, OpenSource};
use crate::error::Result;
use crate::source::change_feed::next_feed_slice;
use crate::source::table_stream::{SliceLimit, TableOffset, next_slice};
use crate::state::{KnownBy, PlannedInput, SourceFile};

/// Runs batches until the backlog is empty.
pub(crate) async fn run(run: &FlowRun<'_>) -> Result<()> {
    let mut sources = inputs::open(run, true).await?;
    if !inputs::are_known(&sources) {
        run.update.recorder.notice(
            run.about(),
            "no-input-yet",
            format!("flow `{}` has nothing to read yet, so its columns are unknown", run.flow.name),
            Some("it starts with the first file, or give `schema => \"…\"`".to_string()),
        );
        return Ok(());
    }
    let Some(mut batch) = bring_up(run, &mut sources).await? else { return Ok(()) };
    // Replayed batches have moved the offsets on.
    let mut sources = inputs::open(run, true).await?;
    let mut backlogs = Vec::new();
    for index in 0..sources.len() {
        backlogs.extend(Backlog::find(run, &sources, index)?);
    }
    let mut next = next_inputs(&sources, &mut backlogs).await;
    let mut ahead = None;
    loop {
        run.update.stop.check()?;
        let planned = next?;
        let files = || planned.iter().flat_map(|input| &input.files);
        let in_batch = (files().count() as u64, files().map(|file| file.size_bytes as u64).sum());
        let (files, bytes) =
            backlogs.iter().map(Backlog::size).fold(in_batch, |sum, size| (sum.0 + size.0, sum.1 + size.1));
        run.live.set_backlog(files, bytes);
        if planned.is_empty() {
            return Ok(());
        }
        next = next_inputs(&sources, &mut backlogs).await;
        let after = match &next {
            Ok(inputs) => Next::open(run, &sources, batch + 1, inputs).await,
            Err(_) => None,
        };
        let read_ahead = async {
            match after {
                Some(after) => Some(after.start(run).await),
                None => None,
            }
        };
        let (outcome, started) =
            tokio::join!(plan_and_run(run, &mut sources, batch, &planned, ahead.take()), read_ahead);
        outcome?;
        ahead = started;
        batch += 1;
    }
}

/// What the next batch reads; nothing: the backlog is empty.
async fn next_inputs(sources: &[OpenSource], backlogs: &mut [Backlog]) -> Result<Vec<PlannedInput>> {
    let mut planned = Vec::new();
    for backlog in backlogs {
        planned.extend(backlog.next(sources).await?);
    }
    Ok(planned)
}

/// What a stream has still to read.
enum Backlog {
    Files {
        source_id: i64,
        spec: Arc<ReadFiles>,
        files: VecDeque<SourceFile>,
    },
    /// `source` is its index among the flow's sources.
    Table {
        source_id: i64,
        source: usize,
        at: TableOffset,
    },
}

impl Backlog {
    /// None for what is not a stream.
    fn find(run: &FlowRun<'_>, sources: &[OpenSource], index: usize) -> Result<Option<Backlog>> {
        let source = &sources[index];
        let Some(source_id) = source.source_id.filter(|_| source.is_stream) else { return Ok(None) };
        Ok(match &source.content {
            Content::Files { spec, listing, ledger, .. } => {
                let known_by = if spec.allow_overwrites { KnownBy::PathTimeAndSize } else { KnownBy::Path };
                let mut new = run.update.state.new_files(source_id, ledger.write(listing), known_by)?;
                // Oldest first, as they arrived; the path decides among files of one moment.
                new.sort_by(|a, b| (a.modified_us, &a.path).cmp(&(b.modified_us, &b.path)));
                Some(Backlog::Files { source_id, spec: spec.clone(), files: new.into() })
            }
            Content::Table { offset: Some(at), .. } => Some(Backlog::Table { source_id, source: index, at: *at }),
            Content::Table { offset: None, .. } | Content::Nothing => None,
        })
    }

    /// Files and bytes.
    fn size(&self) -> (u64, u64) {
        match self {
            Backlog::Files { files, .. } => (files.len() as u64, files.iter().map(|file| file.size_bytes as u64).sum()),
            Backlog::Table { .. } => (0, 0),
        }
    }

    /// The next batch's part of this stream; None if there is nothing more.
    async fn next(&mut self, sources: &[OpenSource]) -> Result<Option<PlannedInput>> {
        match self {
            Backlog::Files { source_id, spec, files } => {
                let mut taken: Vec<SourceFile> = Vec::new();
                let mut bytes = 0;
                while taken.len() < spec.max_files_per_trigger
                    && (taken.is_empty() || spec.max_bytes_per_trigger.is_none_or(|max| bytes < max))
                    && let Some(file) = files.pop_front()
                {
                    bytes += file.size_bytes as u64;
                    taken.push(file);
                }
                Ok((!taken.is_empty()).then_some(PlannedInput {
                    source_id: *source_id,
                    start_offset: None,
                    end_offset: None,
                    files: taken,
                }))
            }
            Backlog::Table { source_id, source, at } => {
                let OpenSource { label, content: Content::Table { table, options, up_to, .. }, .. } = &sources[*source]
                else {
                    return Ok(None);
                };
                let limit = SliceLimit { files: options.max_files_per_trigger, bytes: options.max_bytes_per_trigger };
                let table = table.lock().await;
                let mut start = *at;
                // Versions without rows (compactions, properties) move the offset without a batch of their own.
                loop {
                    let next = match options.reads_change_feed {
                        true => next_feed_slice(&table, label, start, *up_to, limit)?
                            .map(|slice| (slice.end, slice.parts.is_empty())),
                        false => next_slice(&table, label, start, *up_to, options, Some(limit))?
                            .map(|slice| (slice.end, slice.files.is_empty())),
                    };
                    let Some((end, is_empty)) = next else { return Ok(None) };
                    if is_empty {
                        start = end;
                        continue;
                    }
                    let planned = PlannedInput {
                        source_id: *source_id,
                        start_offset: Some(at.to_json()),
                        end_offset: Some(end.to_json()),
                        files: Vec::new(),
                    };
                    *at = end;
                    return Ok(Some(planned));
                }
            }
        }
    }
}
