//! The command line: a front end without a screen.
//!
//! - `args.rs`: the grammar and its help; `exit.rs`: exit codes and what they stand for
//! - `workspace.rs`: which folder is meant; `terminal.rs`: colours, width, questions; `log.rs`: the log file
//! - `run.rs`, `validate.rs`, `state.rs` (reset, rename-flow, drop, doctor), `inspect.rs` (what only reads),
//!   `scd.rs` (tables of AUTO CDC), `init.rs`: the commands
//! - `print/`: answers as text and JSON
//!
//! Results go to stdout, progress and problems to stderr. With `--json` stdout holds JSON only.

mod args;
mod exit;
mod init;
mod inspect;
mod log;
mod print;
mod run;
mod scd;
mod state;
mod terminal;
mod validate;
mod workbench;
mod workspace;

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, Parser};
use pipeline::diagnostic::nearest;
use serde_json::Value;

use args::{Arguments, Command, Folder, Global};
use exit::{Exit, Trouble};
use terminal::Terminal;

/// What a command gets to work with.
#[derive(Debug)]
pub struct Context {
    pub terminal: Terminal,
    pub global: Global,
    /// The workspace as an argument of the command, if it has one.
    pub folder: Option<std::path::PathBuf>,
    pub command: &'static str,
}

impl Context {
    /// Prints a result: `text` on stdout, or the value with `--json`.
    fn answer(&self, exit: Exit, value: &Value, text: impl FnOnce() -> String) -> Result<Exit, Trouble> {
        match self.global.json {
            true => print::json::write_result(self.command, exit, value)?,
            false => write_out(&text())?,
        }
        Ok(exit)
    }
}

/// Parses the arguments and carries the command out. Usage errors and help are printed by clap.
pub fn main(arguments: impl Iterator<Item = OsString>) -> Exit {
    let words: Vec<OsString> = arguments.collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => {
            if error.use_stderr() && words.iter().any(|word| word == "--json") {
                let command = words.get(1).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
                let message = error.to_string().lines().next().unwrap_or_default().replace("error: ", "");
                let _ = print::json::write_trouble(&command, &Trouble::usage(message, "flowbench --help"));
            }
            // A closed pipe: nobody reads it.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Ok };
        }
    };
    let is_bare = arguments.command.is_none();
    let command = arguments.command.unwrap_or(Command::Status { folder: Folder::default() });
    let context = Context {
        terminal: Terminal::detect(),
        global: arguments.global,
        folder: match is_bare {
            true => arguments.folder.path.clone(),
            false => command.folder().cloned(),
        },
        command: command.word(),
    };
    let done = match arguments.folder.path {
        Some(path) if !is_bare || !path.exists() => Err(unknown_command(&path.to_string_lossy())),
        _ if is_bare && !context.global.json && context.terminal.can_show_screens() => workbench::run(&context),
        _ => carry_out(&context, command),
    };
    done.unwrap_or_else(|trouble| {
        let exit = trouble.exit();
        if exit == Exit::Ok {
            return exit;
        }
        if context.global.json && !matches!(trouble, Trouble::Io { .. }) {
            // A second failure to write has nowhere to go.
            let _ = print::json::write_trouble(context.command, &trouble);
        }
        let _ = std::io::stderr().write_all(print_trouble(&trouble, &context.terminal).as_bytes());
        exit
    })
}

/// The first word is neither a command nor a folder.
fn unknown_command(word: &str) -> Trouble {
    let grammar = Arguments::command();
    let known = grammar.get_subcommands().flat_map(|command| command.get_name_and_visible_aliases());
    let help = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "flowbench --help lists the commands".to_string(),
    };
    Trouble::usage(format!("`{word}` is neither a command nor a workspace folder"), help)
}

fn carry_out(context: &Context, command: Command) -> Result<Exit, Trouble> {
    match command {
        Command::Init { folder, sample } => init::run(context, &folder, sample.as_deref()),
        Command::Validate { watch, fix, diff, format, .. } => {
            let mending = match (fix, diff) {
                (true, _) => validate::Mending::Done,
                (false, true) => validate::Mending::Shown,
                (false, false) => validate::Mending::Nothing,
            };
            validate::run(context, watch, mending, format)
        }
        Command::Run { selection, dry_run, plan, yes, .. } => run::run(context, &selection, dry_run, plan, yes),
        Command::Reset { flows, plan, yes } => state::reset(context, &flows, plan, yes),
        Command::RenameFlow { old, new } => state::rename_flow(context, &old, &new),
        Command::Drop { dataset, yes } => state::drop_dataset(context, &dataset, yes),
        Command::Doctor { repair } => state::doctor(context, repair),
        Command::Status { .. } => inspect::status(context),
        Command::Updates { limit } => inspect::updates(context, limit),
        Command::Events { follow, limit, level } => inspect::events(context, follow, limit, level.level()),
        Command::Graph { format, .. } => inspect::graph(context, format),
        Command::Show { dataset, limit, filter, at_version, at_update, format } => {
            let at = match (at_version, at_update) {
                (Some(version), _) => inspect::At::Version(version),
                (None, Some(update)) => inspect::At::Update(update),
                (None, None) => inspect::At::Now,
            };
            inspect::show(context, &dataset, limit, filter, at, format)
        }
        Command::Sql { query, limit, format } => inspect::sql(context, &query, limit, format),
        Command::Describe { dataset } => inspect::describe(context, &dataset),
        Command::Scd(command) => scd::run(context, command),
        Command::Cutover(command) => scd::cutover(context, command),
        Command::Functions { pattern } => inspect::functions(context, pattern.as_deref()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "flowbench", &mut script);
            context.answer(Exit::Ok, &Value::Null, || String::from_utf8_lossy(&script).into_owned())
        }
    }
}

/// Writes a result to stdout.
pub fn write_out(text: &str) -> Result<(), Trouble> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// A trouble as people read it on stderr.
fn print_trouble(trouble: &Trouble, terminal: &Terminal) -> String {
    use print::event::{help_line, one_line};
    let style = terminal.err;
    let error = |code: &str, message: &str, help: Option<&str>| {
        let mut out = format!("{}: {}", style.error(format!("error[{code}]")), one_line(message));
        out.extend(help.filter(|help| !help.is_empty()).map(|help| help_line(help, style)));
        out.push('\n');
        out
    };
    match trouble {
        Trouble::Usage { message, help, .. } => error("usage", message, help.as_deref()),
        Trouble::Invalid { files, diagnostics } => {
            let mut out = print::diagnostics::render(files, diagnostics, style, terminal.err_width);
            out.extend(print::diagnostics::summary(diagnostics).map(|summary| format!("{summary}; nothing was run\n")));
            out
        }
        Trouble::InvalidQuery { files, diagnostics } => {
            print::diagnostics::render(files, diagnostics, style, terminal.err_width)
        }
        Trouble::Unconfirmed { notices } => {
            let mut out: String = notices.iter().map(|notice| print::summary::notice(notice, style)).collect();
            out.push_str(&error("unconfirmed", "refused without confirmation; nothing was changed", None));
            out
        }
        Trouble::Engine(trouble) => error(trouble.code(), &trouble.to_string(), trouble.help().as_deref()),
        Trouble::Io { action, source } => error("io", &format!("cannot {action}: {source}"), None),
    }
}
