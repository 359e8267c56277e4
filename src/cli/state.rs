//! The commands that change checkpoints and tables without an update: reset, rename-flow, drop, doctor.

use engine::Engine;
use pipeline::plan::Notice;
use serde_json::{Value, json};

use super::exit::{Exit, Trouble};
use super::{Context, log, print, workspace};

/// Forgets what flows have read; says first what they would read again.
pub fn reset(context: &Context, flows: &[String], is_plan: bool, is_confirmed: bool) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let runtime = workspace::runtime(&engine)?;
    let trouble = |error| Trouble::from_engine(error, &engine.workspace().files);
    let style = context.terminal.out;
    if !is_confirmed {
        let plan = runtime.block_on(engine.reset(flows, false)).map_err(trouble)?;
        if is_plan {
            return context.answer(Exit::Ok, &json!(plan), || print::plan::reset(&plan, style));
        }
        print::say(print::plan::reset(&plan, context.terminal.err));
        let is_harmless = plan.flows.iter().all(|flow| flow.changes_nothing);
        if !is_harmless && context.terminal.ask("Reset?") != Some(true) {
            return Err(Trouble::Unconfirmed {
                notices: vec![Notice {
                    code: "would-read-again",
                    message: format!("{} would read again what is in the table already", flows.join(", ")),
                    help: format!("flowbench reset {} --yes", flows.join(" ")),
                }],
            });
        }
    }
    let _log = log::start(engine.storage());
    let report = runtime.block_on(engine.reset(flows, true)).map_err(trouble)?;
    context.answer(Exit::Ok, &json!(report), || {
        report.flows.iter().map(|flow| format!("checkpoint of {} reset\n", flow.flow)).collect()
    })
}

/// Gives the checkpoint of `old` to `new`.
pub fn rename_flow(context: &Context, old: &str, new: &str) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let _log = log::start(engine.storage());
    workspace::runtime(&engine)?
        .block_on(engine.rename_flow(old, new))
        .map_err(|error| Trouble::from_engine(error, &engine.workspace().files))?;
    context.answer(Exit::Ok, &json!({ "old": old, "new": new }), || format!("{new} goes on where {old} stopped\n"))
}

/// Removes an inactive dataset from disk, once somebody has said yes.
pub fn drop_dataset(context: &Context, dataset: &str, is_confirmed: bool) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let runtime = workspace::runtime(&engine)?;
    let _log = log::start(engine.storage());
    let mut done = drop_once(&runtime, &engine, dataset, is_confirmed);
    if let Err(Trouble::Unconfirmed { notices }) = &done
        && context.terminal.can_ask
    {
        for notice in notices {
            print::say(print::summary::notice(notice, context.terminal.err));
        }
        if context.terminal.ask(&format!("Drop {dataset} and its rows?")) == Some(true) {
            done = drop_once(&runtime, &engine, dataset, true);
        }
    }
    done?;
    context.answer(Exit::Ok, &json!({ "dataset": dataset }), || format!("{dataset} dropped\n"))
}

fn drop_once(
    runtime: &tokio::runtime::Runtime,
    engine: &Engine,
    dataset: &str,
    is_confirmed: bool,
) -> Result<(), Trouble> {
    let done = runtime.block_on(engine.drop_dataset(dataset, is_confirmed));
    done.map(|_| ()).map_err(|error| Trouble::from_engine(error, &engine.workspace().files))
}

/// Compares state and tables; exit code 1 while something is left that does not fit.
pub fn doctor(context: &Context, repair: bool) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let _log = if repair { log::start(engine.storage()) } else { None };
    let report = workspace::runtime(&engine)?
        .block_on(engine.doctor(repair))
        .map_err(|error| Trouble::from_engine(error, &engine.workspace().files))?;
    let exit = if report.findings.iter().all(|finding| finding.is_mended) { Exit::Ok } else { Exit::Failed };
    let value: Value = json!(report);
    context.answer(exit, &value, || print::describe::doctor(&report, context.terminal.out))
}
