//! A once flow: all of its batch query's rows, one time, in one commit. A backfill.

use super::FlowRun;
use super::batch::{bring_up, completion, plan_and_run};
use super::inputs::{self, Content};
use crate::error::Result;
use crate::state::PlannedInput;

/// Appends the rows and marks the flow as done, or finishes what a crash left.
pub(crate) async fn run(run: &FlowRun<'_>) -> Result<()> {
    let mut sources = inputs::open(run, true).await?;
    let is_empty =
        |source: &inputs::OpenSource| matches!(&source.content, Content::Files { listing, .. } if listing.is_empty());
    for source in sources.iter().filter(|source| is_empty(source)) {
        if let Content::Files { spec, .. } = &source.content {
            run.update.recorder.notice(
                run.about(),
                "empty-source",
                format!("once flow `{}` finds no file at `{}`", run.flow.name, spec.path),
                Some(format!(
                    "if that is a mistake, correct the path and run: flowbench run --rerun-once {}",
                    run.flow.name
                )),
            );
        }
    }
    if !inputs::are_known(&sources) {
        return run.update.state.mark_done(&run.record.flow_id, run.generation, &completion(run, 0));
    }
    let Some(batch) = bring_up(run, &mut sources).await? else { return Ok(()) };
    let planned: Vec<PlannedInput> = sources.iter().filter_map(|source| source.whole(source.source_id?)).collect();
    let files: Vec<_> = planned.iter().flat_map(|input| &input.files).collect();
    run.live.set_backlog(files.len() as u64, files.iter().map(|file| file.size_bytes as u64).sum());
    plan_and_run(run, &mut sources, batch, &planned, None).await?;
    run.live.set_backlog(0, 0);
    Ok(())
}
