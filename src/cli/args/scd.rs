//! `flowbench scd` and `flowbench cutover`.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum ScdCommand {
    /// Prints the versions of a key, and the events that made them with flow, batch and record
    #[command(after_help = "\
Of SCD type 1 the newest event of a key is kept, so that is what there is to see.

Examples:
  flowbench scd history customers --key 7
  flowbench scd history orders --key id=7 --key region=eu --json")]
    History {
        /// Name of a table that flows of AUTO CDC write
        table: String,
        /// The key's value; of a key of several columns COLUMN=VALUE for each
        #[arg(long = "key", value_name = "KEY", required = true, allow_negative_numbers = true)]
        key: Vec<String>,
    },

    /// Lists the keys of a table
    #[command(after_help = "\
Flags:
  deleted  not there now
  gaps     deleted, and there again later
  late     an event was applied after one of a later sequence
  tie      the first live event has the sequence of the last seeded one

Example:
  flowbench scd keys customers --only late --limit 50")]
    Keys {
        /// Name of a table that flows of AUTO CDC write
        table: String,
        /// Only keys whose text holds this
        #[arg(long, value_name = "TEXT", allow_negative_numbers = true)]
        search: Option<String>,
        /// Only keys with this flag
        #[arg(long, value_enum)]
        only: Option<KeyFlag>,
        /// Number of keys; 0 for all
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Goes on behind a page: its `next`
        #[arg(long, value_name = "NEXT")]
        after: Option<String>,
    },

    /// Prints what is different between two times of a table, or between two versions of a key
    #[command(after_help = "\
Times are sequences, as SEQUENCE BY gives them; both need SCD type 2.

Examples:
  flowbench scd diff customers 2023-01-01 2024-01-01
  flowbench scd diff customers --key 7 2 3     its versions 2 and 3")]
    Diff {
        /// Name of a table that flows of AUTO CDC write
        table: String,
        /// The first sequence; with --key the number of a version
        #[arg(allow_negative_numbers = true)]
        from: String,
        /// The second one
        #[arg(allow_negative_numbers = true)]
        to: String,
        /// Compares versions of this key
        #[arg(long = "key", value_name = "KEY", allow_negative_numbers = true)]
        key: Vec<String>,
        /// Number of rows; 0 for all
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
    },

    /// Prints a table of SCD type 2 as it is at a sequence
    #[command(after_help = "\
What it was at an earlier run is something else: flowbench show TABLE --at-update N.

Example:
  flowbench scd as-of customers 2023-06-15 --where \"city = 'Olinda'\"")]
    AsOf {
        /// Name of a table that flows of AUTO CDC write
        table: String,
        /// A sequence, as SEQUENCE BY gives it
        #[arg(allow_negative_numbers = true)]
        sequence: String,
        /// A condition in SQL
        #[arg(long = "where", value_name = "CONDITION")]
        filter: Option<String>,
        /// Number of rows; 0 for all
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
    },

    /// Checks a table against its events: intervals, open rows, nothing missing or too much
    #[command(after_help = "Exit code 1 if something is wrong.\n\nExample:\n  flowbench scd check customers")]
    Check {
        /// Name of a table that flows of AUTO CDC write
        table: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum CutoverCommand {
    /// Compares the last seeded and the first live sequence of every key
    #[command(after_help = "\
The seed is what flows of AUTO CDC ONCE apply, FROM SNAPSHOT too: a snapshot seeds, at its version,
the keys that it has, and those with live events by then, which it deletes where it lacks them.
A flow that has not run is judged by all that its source has now, and nothing is written:
so the check works before the live flow is started, and after.

Verdicts:
  contiguous  the first live event comes after the last seeded one
  seed only   no live event yet
  live only   new since the cutover
  stale       the first live event comes before the last seeded one: SCD type 1 passes it over,
              SCD type 2 puts it into history; the current row stays the seed's
  tie         both have the same sequence: the live event wins, unless only the seeded one
              is a delete event (that a snapshot lacks the key is none)

Of SCD type 2, once both have run, the first live change of each seeded key is checked too:
exactly one new version that starts where the one before ends, or none if nothing tracked changed.
Exit code 1 if a key is stale or tied, or a first change went wrong.

Examples:
  flowbench cutover check customers
  flowbench cutover check customers --verdict stale --limit 0
  flowbench cutover check customers --key 7")]
    Check {
        /// Name of a table that flows of AUTO CDC write
        target: String,
        /// Lists this key: its value, or COLUMN=VALUE for each of its columns
        #[arg(long = "key", value_name = "KEY", allow_negative_numbers = true)]
        key: Vec<String>,
        /// Lists keys whose text holds this
        #[arg(long, value_name = "TEXT", allow_negative_numbers = true)]
        search: Option<String>,
        /// Lists keys of this verdict
        #[arg(long, value_enum)]
        verdict: Option<KeyVerdict>,
        /// Lists so many keys, 0 for all [default: 20 if keys are asked for]
        #[arg(long, short = 'n', value_name = "N")]
        limit: Option<usize>,
        /// Goes on behind a page: its `next`
        #[arg(long, value_name = "NEXT")]
        after: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyFlag {
    /// Deleted, and there again later
    Gaps,
    /// Not there now
    Deleted,
    /// An event was applied after one of a later sequence
    Late,
    /// The first live event has the sequence of the last seeded one
    #[value(alias = "ties")]
    Tie,
}

impl KeyFlag {
    /// The engine's word for it.
    pub fn filter(self) -> pipeline::scd::KeyFilter {
        use pipeline::scd::KeyFilter;
        match self {
            KeyFlag::Gaps => KeyFilter::Gaps,
            KeyFlag::Deleted => KeyFilter::Deleted,
            KeyFlag::Late => KeyFilter::Late,
            KeyFlag::Tie => KeyFilter::Tie,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyVerdict {
    Contiguous,
    SeedOnly,
    LiveOnly,
    Stale,
    Tie,
}

impl KeyVerdict {
    /// The engine's word for it.
    pub fn verdict(self) -> pipeline::scd::Verdict {
        use pipeline::scd::Verdict;
        match self {
            KeyVerdict::Contiguous => Verdict::Contiguous,
            KeyVerdict::SeedOnly => Verdict::SeedOnly,
            KeyVerdict::LiveOnly => Verdict::LiveOnly,
            KeyVerdict::Stale => Verdict::Stale,
            KeyVerdict::Tie => Verdict::Tie,
        }
    }
}
