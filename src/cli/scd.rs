//! The commands about tables of AUTO CDC: scd history, keys, diff, as-of, check; cutover check.

use engine::{AsOfOptions, DiffOptions};
use pipeline::scd::{CutoverRequest, KeyRequest};
use serde_json::json;

use super::args::{CutoverCommand, ScdCommand};
use super::exit::{Exit, Trouble};
use super::{Context, print, workspace};

/// Keys that are listed if nobody says how many.
const KEYS_LISTED: usize = 20;

/// What is asked about a table.
pub fn run(context: &Context, command: ScdCommand) -> Result<Exit, Trouble> {
    let engine = workspace::open(context)?;
    let runtime = workspace::runtime(&engine)?;
    let (style, width) = (context.terminal.out, context.terminal.out_width);
    match command {
        ScdCommand::History { table, key } => {
            let history = runtime.block_on(engine.scd_history(&table, &key))?;
            context.answer(Exit::Ok, &json!(history), || print::scd::history(&history, style, width))
        }
        ScdCommand::Keys { table, search, only, limit, after } => {
            let request = KeyRequest { search, only: only.map(|flag| flag.filter()), after, limit: all_if_zero(limit) };
            let page = runtime.block_on(engine.scd_keys(&table, &request))?;
            let exit = context.answer(Exit::Ok, &json!(page), || print::scd::keys(&page, style, width))?;
            note(context, &print::scd::key_count(&page));
            Ok(exit)
        }
        ScdCommand::Diff { table, from, to, key, limit } => {
            let diff = match key.is_empty() {
                true => {
                    let options = DiffOptions { limit: all_if_zero(limit) };
                    runtime.block_on(engine.scd_diff(&table, &from, &to, options))?
                }
                false => {
                    let number = |text: &str| {
                        let wrong = || Trouble::usage(format!("`{text}` is no number of a version"), VERSIONS);
                        text.trim_start_matches('v').parse::<usize>().map_err(|_| wrong())
                    };
                    runtime.block_on(engine.scd_diff_versions(&table, &key, number(&from)?, number(&to)?))?
                }
            };
            context.answer(Exit::Ok, &json!(diff), || print::scd::diff(&diff, style, width))
        }
        ScdCommand::AsOf { table, sequence, filter, limit } => {
            let options = AsOfOptions { filter, limit: (limit > 0).then_some(limit) };
            let as_of = runtime.block_on(engine.scd_as_of(&table, &sequence, &options))?;
            let value = json!({
                "table": as_of.table, "sequence": as_of.sequence, "row_count": as_of.row_count,
                "rows": print::rows::value(&as_of.rows),
            });
            let exit = context.answer(Exit::Ok, &value, || print::rows::rows(&as_of.rows, style, width))?;
            note(context, &print::scd::as_of(&as_of));
            Ok(exit)
        }
        ScdCommand::Check { table } => {
            let check = runtime.block_on(engine.scd_check(&table))?;
            context.answer(exit(check.holds()), &json!(check), || print::scd::check(&check, style))
        }
    }
}

const VERSIONS: &str = "with --key, FROM and TO are numbers of versions: flowbench scd history shows them";

/// Whether the live feed takes over where the seed ends.
pub fn cutover(context: &Context, command: CutoverCommand) -> Result<Exit, Trouble> {
    let CutoverCommand::Check { target, key, search, verdict, limit, after } = command;
    let asks_for_keys = !key.is_empty() || search.is_some() || verdict.is_some() || after.is_some();
    let limit = match limit {
        Some(limit) => all_if_zero(limit),
        None if asks_for_keys => KEYS_LISTED,
        None => 0,
    };
    let request = CutoverRequest { key, search, verdict: verdict.map(|verdict| verdict.verdict()), after, limit };
    let engine = workspace::open(context)?;
    let check = workspace::runtime(&engine)?
        .block_on(engine.cutover_check(&target, &request))
        .map_err(|error| Trouble::from_engine(error, &engine.workspace().files))?;
    let (style, width) = (context.terminal.out, context.terminal.out_width);
    context.answer(exit(check.holds()), &json!(check), || print::scd::cutover(&check, style, width))
}

fn all_if_zero(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

fn exit(holds: bool) -> Exit {
    if holds { Exit::Ok } else { Exit::Failed }
}

/// A line for people, beside the result.
fn note(context: &Context, text: &str) {
    if !context.global.json {
        print::say_line(format_args!("{}", context.terminal.err.dim(text)));
    }
}
