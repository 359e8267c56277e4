//! The command line's grammar: every command and option, with its help.
//!
//! - `scd`: the commands that look into tables of AUTO CDC; `values`: what options take
//!
//! Not here: what the commands do.

mod scd;
mod values;

use std::path::PathBuf;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};
use clap::{Args, Parser, Subcommand};
use pipeline::plan::{Cause, UpdateRequest};

pub use scd::{CutoverCommand, ScdCommand};
use values::key_value;
pub use values::{EventLevel, GraphFormat, Names, ReportFormat, RowFormat};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

const AFTER_HELP: &str = "\
Terms:
  flow        a query that writes into one dataset; its checkpoint remembers what it has read
  once flow   a flow that appends the whole of its query one time (INSERT INTO ONCE)
  backfill    bringing history through a pipeline that was made for current data: a once flow
              reads the past, the live flow goes on from now; both append to the same table
  update      one run of the pipeline

Results go to stdout, progress and problems to stderr. With --json, stdout holds one JSON object
a line: events {\"type\":\"event\",\"format\":1,…}, then {\"type\":\"result\",\"format\":1,\"exit_code\":…,…}.

Exit codes:
  0  all is well                       3  the workspace's files have errors
  1  the update or the command failed  4  refused: would drop or repeat rows, needs --yes
  2  wrong usage                       5  canceled

Environment:
  NO_COLOR, CLICOLOR_FORCE   colours: never, always
  FLOWBENCH_LOG              what goes to the log file: error, warn, info (default), debug, trace
  FLOWBENCH_ASCII=1          draws the workbench in ASCII only
  FLOWBENCH_NO_MOUSE=1       leaves the mouse to the terminal
  VISUAL, EDITOR             what `e` in the workbench opens

Examples:
  flowbench init demo --sample registration && cd demo
  flowbench                       the workbench: r runs, ? lists the keys, q quits
  flowbench run
  flowbench show registration_events_raw --limit 5";

/// A terminal workbench for declarative data pipelines: SQL and TOML files in, Delta tables out
///
/// Without a command, opens the workbench: a screen that shows graph, runs, rows and problems and follows the files
/// as they are saved. Where there is no terminal, prints how the workspace stands.
#[derive(Debug, Parser)]
#[command(name = "flowbench", version, styles = STYLES, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,

    #[command(flatten)]
    pub folder: Folder,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Workspace folder [default: the nearest folder, from here upwards, with a flowbench.toml]
    #[arg(short = 'C', long, value_name = "PATH", global = true)]
    pub workspace: Option<PathBuf>,

    /// Sets a value of `[configuration]` for this call; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", global = true, value_parser = key_value)]
    pub overrides: Vec<(String, String)>,

    /// Prints one JSON object a line on stdout: events, then the result
    #[arg(long, global = true)]
    pub json: bool,
}

/// The workspace as an argument of its own.
#[derive(Debug, Clone, Default, Args)]
pub struct Folder {
    /// Workspace folder, the same as -C
    #[arg(value_name = "WORKSPACE")]
    pub path: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Makes a workspace
    #[command(after_help = "\
Examples:
  flowbench init my_pipeline                 a small commented pipeline with its data
  flowbench init demo --sample registration  three years of backfill and a live year")]
    Init {
        /// Folder to make or fill
        #[arg(value_name = "DIR", default_value = ".")]
        folder: PathBuf,
        /// Copies an example workspace with its sample data; an unknown name lists what there is
        #[arg(long, value_name = "NAME")]
        sample: Option<String>,
    },

    /// Checks all files; reads the schemas of sources, writes nothing
    #[command(
        visible_alias = "dry-run",
        after_help = "\
Prints every problem of every file with its place, why it is one and how to mend it. Exit code 3 if
there is an error. What follows from an error is no error of its own: the cause says what it blocks.

Examples:
  flowbench validate --watch         checks again at every save, until Ctrl-C
  flowbench validate --diff          shows the edits that would mend what a machine can mend
  flowbench validate --fix           applies them, and says what is left
  flowbench validate --format json   for editors: docs/validate-json.md
  flowbench validate --format github annotations of a GitHub workflow"
    )]
    Validate {
        #[command(flatten)]
        folder: Folder,
        /// Checks again at every save, and says what is new, what is fixed and how long it took
        #[arg(long)]
        watch: bool,
        /// Applies the edits that the problems offer (names, STREAM, modern forms) and shows the diff
        #[arg(long, conflicts_with_all = ["watch", "diff"])]
        fix: bool,
        /// Shows the diff that --fix would apply; changes nothing
        #[arg(long, conflicts_with = "watch")]
        diff: bool,
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },

    /// Runs an update: brings all or the selected datasets up to date
    #[command(after_help = "\
Without a selection every flow runs: streaming tables append what is new in their sources,
materialized views are recomputed if an input changed, once flows (backfills) run one time and are
then done. A flow starts when those that write what it reads, and those that it depends on
(DEPENDS ON, depends_on), have ended. Ctrl-C stops at the next batch boundary; the next run goes on
from there. Lists are comma separated and repeatable.

Examples:
  flowbench run                              everything
  flowbench run --refresh silver.orders,gold.revenue
  flowbench run --full-refresh bronze.events --with-downstream
  flowbench run --plan                       what would happen; nothing is written")]
    Run {
        #[command(flatten)]
        folder: Folder,
        #[command(flatten)]
        selection: Selection,
        /// Only checks: files, sources and the selection; nothing is read in full, nothing written
        #[arg(long)]
        dry_run: bool,
        /// Prints what would run, what changed and what is new in the sources; nothing is written
        #[arg(long)]
        plan: bool,
        /// Goes ahead where rows would be dropped or read a second time
        #[arg(long, short = 'y')]
        yes: bool,
    },

    /// Forgets what flows have read; their tables keep their rows
    #[command(after_help = "\
The next update reads the flows' sources from their start again, so rows are appended a second time
unless the source's start is bounded (modifiedAfter, startingVersion). Says first what would be read
twice. A flow of AUTO CDC can be reset at any time: events that are applied again change nothing.
Once flows are run again by `flowbench run --rerun-once FLOW` instead.

Example:
  flowbench reset registration_events_raw_incremental --plan")]
    Reset {
        /// Names of flows; a default flow has its table's name
        #[arg(required = true, value_name = "FLOW")]
        flows: Vec<String>,
        /// Only says what would be read again
        #[arg(long)]
        plan: bool,
        /// Does it without asking
        #[arg(long, short = 'y', conflicts_with = "plan")]
        yes: bool,
    },

    /// Gives a flow's checkpoint to the flow of another name, after a rename in the files
    #[command(after_help = "\
A checkpoint belongs to a flow's name: under a new name a flow would read its source from the start.

Example:
  flowbench rename-flow registration_events_raw registration_events_raw_incremental")]
    RenameFlow {
        /// The name that ran until now, gone from the files
        old: String,
        /// The name in the files
        new: String,
    },

    /// Prints how datasets and flows stand
    Status {
        #[command(flatten)]
        folder: Folder,
    },

    /// Lists the updates, newest first
    Updates {
        /// Number of updates
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
    },

    /// Prints the event log, oldest first
    #[command(after_help = "Example:\n  flowbench events --follow --level warn")]
    Events {
        /// Goes on with new events until Ctrl-C
        #[arg(long, short = 'f')]
        follow: bool,
        /// Number of events to begin with, the newest
        #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
        limit: usize,
        /// Only events at least this loud
        #[arg(long, value_enum, ignore_case = true, default_value_t = EventLevel::Info)]
        level: EventLevel,
    },

    /// Draws datasets and flows: who reads what
    #[command(after_help = "Example:\n  flowbench graph --format dot | dot -Tsvg > graph.svg")]
    Graph {
        #[command(flatten)]
        folder: Folder,
        #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
        format: GraphFormat,
    },

    /// Prints the first rows of a dataset
    #[command(after_help = "\
Examples:
  flowbench show registration_events_raw --where \"year = 2024\" --limit 5
  flowbench show orders --at-version 3 --format csv > orders.csv
  flowbench show orders --at-update 12       what update 12 left")]
    Show {
        /// Name of a dataset or of a source
        dataset: String,
        /// Number of rows; 0 for all
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
        /// A condition in SQL
        #[arg(long = "where", value_name = "CONDITION")]
        filter: Option<String>,
        /// The table as it was at a version (`flowbench describe` lists them)
        #[arg(long, value_name = "VERSION")]
        at_version: Option<i64>,
        /// The table as it stood after an update (`flowbench updates` lists them)
        #[arg(long, value_name = "N", conflicts_with = "at_version")]
        at_update: Option<i64>,
        #[arg(long, value_enum, default_value_t = RowFormat::Table)]
        format: RowFormat,
    },

    /// Runs a read-only query over all datasets
    #[command(
        after_help = "Example:\n  flowbench sql \"SELECT year, count(*) FROM registration_events_raw GROUP BY ALL\""
    )]
    Sql {
        /// A SELECT over datasets and sources
        query: String,
        /// Number of rows; 0 for all
        #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
        limit: usize,
        #[arg(long, value_enum, default_value_t = RowFormat::Table)]
        format: RowFormat,
    },

    /// Prints a dataset's columns, flows, neighbours and versions
    Describe {
        /// Name of a dataset
        dataset: String,
    },

    /// Looks into tables of AUTO CDC: the history of a key, the table at a time, what is wrong
    #[command(subcommand)]
    Scd(ScdCommand),

    /// Checks for every key of a table whether the live feed takes over where the seed ends
    #[command(subcommand)]
    Cutover(CutoverCommand),

    /// Lists the SQL functions
    Functions {
        /// Part of a name; case does not matter
        pattern: Option<String>,
    },

    /// Removes a dataset that is out of the files from disk
    Drop {
        /// Name of a dataset that `flowbench status` calls inactive
        dataset: String,
        /// Does it without asking
        #[arg(long, short = 'y')]
        yes: bool,
    },

    /// Compares state and tables, and says what does not fit
    Doctor {
        /// Mends what can be mended without losing or doubling rows
        #[arg(long)]
        repair: bool,
    },

    /// Prints the completion script of a shell
    #[command(
        after_help = "Example:\n  flowbench completions bash > ~/.local/share/bash-completion/completions/flowbench"
    )]
    Completions { shell: clap_complete::Shell },
}

/// What an update runs.
#[derive(Debug, Clone, Default, Args)]
pub struct Selection {
    /// Brings only these datasets up to date
    #[arg(long, value_name = "DATASETS")]
    pub refresh: Vec<Names>,
    /// Drops these datasets' rows and checkpoints and reads everything from the start; the old rows stay until that succeeds
    #[arg(long, value_name = "DATASETS")]
    pub full_refresh: Vec<Names>,
    /// A full refresh of everything that is not protected (pipelines.reset.allowed = false)
    #[arg(long)]
    pub full_refresh_all: bool,
    /// What failed in the last update, and what reads it
    #[arg(long)]
    pub refresh_failed: bool,
    /// Runs only these flows
    #[arg(long = "flow", value_name = "FLOWS")]
    pub flows: Vec<Names>,
    /// Runs done once flows (backfills) again: their rows are appended a second time (those of AUTO CDC
    /// applied again, which changes only what their source has changed)
    #[arg(long, value_name = "FLOWS")]
    pub rerun_once: Vec<Names>,
    /// A full refresh also builds the streaming tables anew that read the named ones
    #[arg(long)]
    pub with_downstream: bool,
}

impl Selection {
    /// The request to the engine.
    pub fn request(&self, is_confirmed: bool) -> UpdateRequest {
        let flat = |lists: &[Names]| lists.iter().flat_map(|names| names.0.iter().cloned()).collect();
        UpdateRequest {
            refresh: flat(&self.refresh),
            full_refresh: flat(&self.full_refresh),
            full_refresh_all: self.full_refresh_all,
            refresh_failed: self.refresh_failed,
            flows: flat(&self.flows),
            rerun_once: flat(&self.rerun_once),
            with_downstream: self.with_downstream,
            is_confirmed,
            cause: Cause::UserAction,
        }
    }
}

impl Command {
    /// The word on the command line, as in the JSON result.
    pub fn word(&self) -> &'static str {
        match self {
            Command::Init { .. } => "init",
            Command::Validate { .. } => "validate",
            Command::Run { .. } => "run",
            Command::Reset { .. } => "reset",
            Command::RenameFlow { .. } => "rename-flow",
            Command::Status { .. } => "status",
            Command::Updates { .. } => "updates",
            Command::Events { .. } => "events",
            Command::Graph { .. } => "graph",
            Command::Show { .. } => "show",
            Command::Sql { .. } => "sql",
            Command::Describe { .. } => "describe",
            Command::Scd(ScdCommand::History { .. }) => "scd history",
            Command::Scd(ScdCommand::Keys { .. }) => "scd keys",
            Command::Scd(ScdCommand::Diff { .. }) => "scd diff",
            Command::Scd(ScdCommand::AsOf { .. }) => "scd as-of",
            Command::Scd(ScdCommand::Check { .. }) => "scd check",
            Command::Cutover(CutoverCommand::Check { .. }) => "cutover check",
            Command::Functions { .. } => "functions",
            Command::Drop { .. } => "drop",
            Command::Doctor { .. } => "doctor",
            Command::Completions { .. } => "completions",
        }
    }

    /// The command's own workspace argument.
    pub fn folder(&self) -> Option<&PathBuf> {
        match self {
            Command::Validate { folder, .. }
            | Command::Run { folder, .. }
            | Command::Status { folder }
            | Command::Graph { folder, .. } => folder.path.as_ref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("flowbench").chain(line.split(' ').filter(|word| !word.is_empty())))
    }

    #[test]
    fn the_grammar_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn lines_parse_or_are_refused() {
        let cases = [
            ("", true),
            ("some/folder", true),
            ("-C x status", true),
            ("status x", true),
            ("status x -C x", true),
            ("dry-run --watch", true),
            ("validate --fix --format github", true),
            ("validate --fix --watch", false),
            ("validate --fix --diff", false),
            ("validate --format json --set year=2024 --set a=b=c", true),
            ("run --set year", false),
            ("run --full-refresh-all --yes --json", true),
            ("run --unknown", false),
            ("run --refresh ,", false),
            ("reset", false),
            ("reset a b --plan", true),
            ("reset a --plan --yes", false),
            ("rename-flow a", false),
            ("rename-flow a b", true),
            ("events --level WARN -f -n 3", true),
            ("graph --format svg", false),
            ("show t --format parquet", false),
            ("show t --where x>1 --at-version 3 --limit 0", true),
            ("show t --at-update 3", true),
            ("show t --at-update 3 --at-version 3", false),
            ("scd", false),
            ("scd history t", false),
            ("scd history t --key id=1 --key region=eu --json", true),
            ("scd keys t --only late -n 0", true),
            ("scd diff t 1", false),
            ("scd diff t --key 7 1 2", true),
            ("scd as-of t 2024-01-01 --where x>1", true),
            ("scd as-of t -5", true),
            ("scd diff t -10.5 -3 --key -7", true),
            ("scd history t --key -5", true),
            ("scd history t --keys -5", false),
            ("scd keys t --search -5", true),
            ("cutover check t --key -5 --search -7", true),
            ("cutover check t --verdict seed-only --json", true),
            ("cutover check t --verdict fine", false),
            ("sql", false),
            ("completions zsh", true),
            ("init demo --sample registration", true),
        ];
        for (line, is_right) in cases {
            assert_eq!(parse(line).is_ok(), is_right, "flowbench {line}");
        }
    }

    #[test]
    fn lists_are_comma_separated_repeatable_and_trimmed() {
        let line = ["flowbench", "run", "--refresh", " a , b ", "--refresh", "c,`d,e`", "--flow", "f"];
        let Some(Command::Run { selection, .. }) = Arguments::try_parse_from(line).unwrap().command else { panic!() };
        let request = selection.request(true);
        assert_eq!(request.refresh, ["a", "b", "c", "`d,e`"]);
        assert_eq!(request.flows, ["f"]);
        assert!(request.is_confirmed && request.full_refresh.is_empty());
    }

    #[test]
    fn overrides_keep_what_follows_the_first_equals_sign() {
        let arguments = parse("run --set a=b=c").unwrap();
        assert_eq!(arguments.global.overrides, [("a".to_string(), "b=c".to_string())]);
    }

    #[test]
    fn the_help_explains_backfill_and_names_every_command() {
        let help = Arguments::command().render_long_help().to_string();
        for command in Arguments::command().get_subcommands() {
            assert!(help.contains(&format!("  {}", command.get_name())), "{}", command.get_name());
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
        assert!(help.contains("backfill") && help.contains("Exit codes"));
    }
}
