//! What a flow of AUTO CDC says beside its query: keys, SCD type, selections of columns, and where its changes come
//! from; and the pure decisions that follow from it.
//!
//! Not here: how it is written (`parse/`), the rules between the flows of one target (`validate/`), and how events are
//! applied (the engine).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::change_feed::{is_change_feed, is_change_feed_column};
use crate::data_type::DataType;
use crate::query::Query;
use crate::text::{FileId, Span, Spanned};

/// Columns that a feed's query gives beside those of its source. No source may have a column with this prefix.
pub const INTERNAL_PREFIX: &str = "__flowbench_";
/// The column of a feed's query with the value of `SEQUENCE BY`.
pub const SEQUENCE_COLUMN: &str = "__flowbench_sequence";
/// The column of a feed's query with the value of `APPLY AS DELETE WHEN`, if there is such a clause.
pub const DELETE_COLUMN: &str = "__flowbench_delete";
/// The column of a feed's query with the value of `APPLY AS TRUNCATE WHEN`, if there is such a clause.
pub const TRUNCATE_COLUMN: &str = "__flowbench_truncate";
/// Where a row of SCD type 2 starts to hold: a column of the target.
pub const START_AT: &str = "__START_AT";
/// Where a row of SCD type 2 ceases to hold, NULL for the row that still does: a column of the target.
pub const END_AT: &str = "__END_AT";

/// What the names of a source's columns may not begin with: ours, and Spark's for the same purpose.
pub const RESERVED_PREFIXES: [&str; 2] = [INTERNAL_PREFIX, "__spark_autocdc_"];

/// The reserved prefix that a name begins with, in any case.
pub fn reserved_prefix(column: &str) -> Option<&'static str> {
    let begins_with = |prefix: &&str| {
        let begin = column.as_bytes().get(..prefix.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    RESERVED_PREFIXES.into_iter().find(begins_with)
}

/// True for a column that a feed's query adds to its source's.
pub fn is_internal(column: &str) -> bool {
    reserved_prefix(column) == Some(INTERNAL_PREFIX)
}

/// What a flow applies by key, and how. Names of columns are spelled as written and compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeFlow {
    /// At least one, in the order they are written.
    pub keys: Vec<Spanned<String>>,
    /// Where it was written; None: the default, type 1.
    pub scd_type: Option<Spanned<ScdType>>,
    /// `TRACK HISTORY ON …`: the columns whose change starts a new row of SCD type 2.
    pub track_history: Option<Spanned<ColumnSelection>>,
    pub input: ChangeInput,
    pub options: ChangeOptions,
}

/// How much of a key's history the target keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ScdType {
    /// The latest row of each key.
    One,
    /// A row for each time in which the tracked columns didn't change, with `__START_AT` and `__END_AT`.
    Two,
}

impl ScdType {
    /// The words for people: `SCD type 1`.
    pub fn words(self) -> &'static str {
        match self {
            ScdType::One => "SCD type 1",
            ScdType::Two => "SCD type 2",
        }
    }
}

/// Some columns, named or all but those named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnSelection {
    On(Vec<Spanned<String>>),
    Except(Vec<Spanned<String>>),
}

impl ColumnSelection {
    /// The names of the list, whichever way it is meant.
    pub fn names(&self) -> &[Spanned<String>] {
        let (ColumnSelection::On(names) | ColumnSelection::Except(names)) = self;
        names
    }

    /// True if the selection holds the column.
    pub fn holds(&self, column: &str) -> bool {
        let is_named = self.names().iter().any(|name| name.value.eq_ignore_ascii_case(column));
        is_named == matches!(self, ColumnSelection::On(_))
    }
}

/// Where changes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeInput {
    /// A feed of change events: the flow's query gives the source's columns and the internal ones.
    Feed(ChangeFeed),
    /// Whole states of a source, compared with the target: the flow's query gives one.
    Snapshot(SnapshotInput),
}

/// The clauses of a flow that reads change events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeFeed {
    /// `IGNORE NULL UPDATES …`; None: NULL overwrites.
    pub ignore_null_updates: Option<Spanned<IgnoreNulls>>,
    /// `COLUMNS …`; None: every column of the source.
    pub columns: Option<Spanned<ColumnSelection>>,
    /// `COLUMNS TO UPDATE column`: an `ARRAY<STRING>` that names the columns which an event writes.
    pub columns_to_update: Option<Spanned<String>>,
    /// The expression of `SEQUENCE BY`.
    pub sequence_span: Span,
    /// The names in it, of columns, fields and functions, as written.
    pub sequence_words: Vec<String>,
    /// The condition of `APPLY AS DELETE WHEN`; [`DELETE_COLUMN`] is there if and only if this is.
    pub delete_span: Option<Span>,
    /// The condition of `APPLY AS TRUNCATE WHEN`; [`TRUNCATE_COLUMN`] is there if and only if this is.
    pub truncate_span: Option<Span>,
    pub source_span: Span,
}

/// The columns whose NULL keeps the value that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IgnoreNulls {
    All,
    On(Vec<Spanned<String>>),
    Except(Vec<Spanned<String>>),
}

impl IgnoreNulls {
    /// The names of the list; none of [`IgnoreNulls::All`].
    pub fn names(&self) -> &[Spanned<String>] {
        match self {
            IgnoreNulls::All => &[],
            IgnoreNulls::On(names) | IgnoreNulls::Except(names) => names,
        }
    }
}

/// The clauses of a flow that reads snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInput {
    pub versions: SnapshotVersions,
    /// The query in `FROM SNAPSHOT (…)`.
    pub source_span: Span,
}

/// What the version of a snapshot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotVersions {
    /// Each update reads one snapshot; its version is the update's time.
    UpdateTime,
    /// `WITH VERSION (query)`: one row of one column.
    Query(Arc<Query>),
    /// Each version lies in files of its own, which the flow's one input names.
    Files(SnapshotFiles),
}

/// `snapshots = { path, version_regex, version_type, order }`: the files of the flow's input, by the versions in their
/// paths, smallest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFiles {
    /// Finds the version in a path: its first group, or the whole match.
    pub version_regex: Spanned<String>,
    /// What the text it finds is cast to.
    pub version_type: DataType,
}

/// Settings of ours, from the flow's TOML table, else from the target's properties.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChangeOptions {
    /// `null_keys`, `flowbench.nullKeys`; None: [`NullKeys::Error`].
    pub null_keys: Option<NullKeys>,
    /// `allow_empty_snapshot`, `flowbench.allowEmptySnapshot`; None: false.
    pub allow_empty_snapshot: Option<bool>,
    /// `max_delete_fraction`, `flowbench.maxDeleteFraction`; None: any part of the target may go.
    pub max_delete_fraction: Option<Fraction>,
}

/// The properties of a target that say what its flows' options don't.
pub const CHANGE_PROPERTIES: [&str; 3] =
    ["flowbench.nullKeys", "flowbench.allowEmptySnapshot", "flowbench.maxDeleteFraction"];

impl ChangeOptions {
    /// What the properties of a target say; a value that is none is passed over (`validate` reports it).
    pub fn of_properties(properties: &BTreeMap<String, String>) -> ChangeOptions {
        let [null_keys, allow_empty_snapshot, max_delete_fraction] =
            CHANGE_PROPERTIES.map(|name| properties.get(name).map(|value| value.trim()));
        ChangeOptions {
            null_keys: null_keys.and_then(|value| match value.to_ascii_lowercase().as_str() {
                "error" => Some(NullKeys::Error),
                "drop" => Some(NullKeys::Drop),
                _ => None,
            }),
            allow_empty_snapshot: allow_empty_snapshot.and_then(|value| value.to_ascii_lowercase().parse().ok()),
            max_delete_fraction: max_delete_fraction.and_then(|value| Fraction::new(value.parse().ok()?)),
        }
    }

    /// These, completed by `others`.
    pub fn or(self, others: ChangeOptions) -> ChangeOptions {
        ChangeOptions {
            null_keys: self.null_keys.or(others.null_keys),
            allow_empty_snapshot: self.allow_empty_snapshot.or(others.allow_empty_snapshot),
            max_delete_fraction: self.max_delete_fraction.or(others.max_delete_fraction),
        }
    }
}

/// What becomes of an event without a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NullKeys {
    /// The whole micro-batch is refused.
    #[default]
    Error,
    /// The event is left out and counted.
    Drop,
}

/// A part of a whole, from 0 to 1, kept in millionths so that it compares exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fraction {
    pub millionths: u32,
}

impl Fraction {
    /// None if `value` is not from 0 to 1.
    pub fn new(value: f64) -> Option<Fraction> {
        (0.0..=1.0).contains(&value).then(|| Fraction { millionths: (value * 1e6).round() as u32 })
    }

    /// True if `part` is more of `whole` than this.
    pub fn is_exceeded_by(self, part: u64, whole: u64) -> bool {
        u128::from(part) * 1_000_000 > u128::from(whole) * u128::from(self.millionths)
    }
}

impl ChangeFlow {
    /// The SCD type, written or not.
    pub fn scd_type(&self) -> ScdType {
        self.scd_type.as_ref().map_or(ScdType::One, |scd_type| scd_type.value)
    }

    /// The clauses of a feed; None for snapshots.
    pub fn feed(&self) -> Option<&ChangeFeed> {
        match &self.input {
            ChangeInput::Feed(feed) => Some(feed),
            ChangeInput::Snapshot(_) => None,
        }
    }

    /// The clauses of snapshots; None for a feed.
    pub fn snapshot(&self) -> Option<&SnapshotInput> {
        match &self.input {
            ChangeInput::Feed(_) => None,
            ChangeInput::Snapshot(snapshot) => Some(snapshot),
        }
    }

    /// The query of `WITH VERSION`.
    pub fn version_query(&self) -> Option<&Arc<Query>> {
        match &self.snapshot()?.versions {
            SnapshotVersions::Query(query) => Some(query),
            SnapshotVersions::UpdateTime | SnapshotVersions::Files(_) => None,
        }
    }

    /// True if the column is one of the keys.
    pub fn is_key(&self, column: &str) -> bool {
        self.keys.iter().any(|key| key.value.eq_ignore_ascii_case(column))
    }

    /// True for a column that the flow's query adds to its source's.
    pub fn adds(&self, column: &str) -> bool {
        self.feed().is_some_and(|feed| match column {
            SEQUENCE_COLUMN => true,
            DELETE_COLUMN => feed.delete_span.is_some(),
            TRUNCATE_COLUMN => feed.truncate_span.is_some(),
            _ => false,
        })
    }

    /// True if no column of the source may have this name: it would be taken for one that AUTO CDC adds.
    pub fn reserves(&self, column: &str) -> bool {
        let is_bound = || [START_AT, END_AT].iter().any(|bound| bound.eq_ignore_ascii_case(column));
        reserved_prefix(column).is_some() || self.scd_type() == ScdType::Two && is_bound()
    }

    /// The columns of the source that the target gets, as indices into `source`, in its order. Internal columns of a
    /// feed's query are never among them; those that tell of the change in a table's change feed only if `COLUMNS` or
    /// `KEYS` names them.
    pub fn kept_columns(&self, source: &[impl AsRef<str>]) -> Vec<usize> {
        let selection = self.feed().and_then(|feed| feed.columns.as_ref()).map(|columns| &columns.value);
        let is_table_feed = self.reads_table_feed(source);
        let is_named = |column: &str| matches!(selection, Some(ColumnSelection::On(_))) || self.is_key(column);
        let is_kept = |column: &str| {
            !is_internal(column)
                && selection.is_none_or(|selection| selection.holds(column))
                && (!is_table_feed || !is_change_feed_column(column) || is_named(column))
        };
        (0..source.len()).filter(|at| is_kept(source[*at].as_ref())).collect()
    }

    /// True if the source, whose columns these are, is the change feed of a table: its `_change_type` says which events
    /// are deletes, unless the flow does, and that rows as they were before a change are no events.
    pub fn reads_table_feed(&self, source: &[impl AsRef<str>]) -> bool {
        self.feed().is_some() && is_change_feed(source)
    }

    /// True if a change of the column starts a new row of SCD type 2.
    pub fn tracks(&self, column: &str) -> bool {
        !self.is_key(column) && self.track_history.as_ref().is_none_or(|selection| selection.value.holds(column))
    }

    /// Of the kept columns those whose change starts a new row of SCD type 2, as indices into `source`: all but the
    /// keys unless `TRACK HISTORY` says otherwise.
    pub fn tracked_columns(&self, source: &[impl AsRef<str>]) -> Vec<usize> {
        let selection = self.track_history.as_ref();
        self.kept_values(source, |column| selection.is_none_or(|selection| selection.value.holds(column)))
    }

    /// The kept columns that are no keys and fulfil `holds`.
    fn kept_values(&self, source: &[impl AsRef<str>], holds: impl Fn(&str) -> bool) -> Vec<usize> {
        let mut kept = self.kept_columns(source);
        kept.retain(|at| !self.is_key(source[*at].as_ref()) && holds(source[*at].as_ref()));
        kept
    }

    /// Follows its files to other places in the list of files. Every field is named, so that the compiler asks where
    /// the places of a new one go.
    pub fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        fn move_names(names: &mut [Spanned<String>], moved: &dyn Fn(FileId) -> FileId) {
            names.iter_mut().for_each(|name| name.span.move_to(moved));
        }
        fn move_selection(selection: &mut Option<Spanned<ColumnSelection>>, moved: &dyn Fn(FileId) -> FileId) {
            let Some(Spanned { value, span }) = selection else { return };
            span.move_to(moved);
            let (ColumnSelection::On(names) | ColumnSelection::Except(names)) = value;
            move_names(names, moved);
        }
        let ChangeFlow { keys, scd_type, track_history, input, options: _ } = self;
        move_names(keys, moved);
        scd_type.iter_mut().for_each(|scd_type| scd_type.span.move_to(moved));
        move_selection(track_history, moved);
        match input {
            ChangeInput::Feed(ChangeFeed {
                ignore_null_updates,
                columns,
                columns_to_update,
                sequence_span,
                sequence_words: _,
                delete_span,
                truncate_span,
                source_span,
            }) => {
                if let Some(Spanned { value, span }) = ignore_null_updates {
                    span.move_to(moved);
                    match value {
                        IgnoreNulls::All => {}
                        IgnoreNulls::On(names) | IgnoreNulls::Except(names) => move_names(names, moved),
                    }
                }
                move_selection(columns, moved);
                columns_to_update.iter_mut().for_each(|column| column.span.move_to(moved));
                let conditions = delete_span.iter_mut().chain(truncate_span);
                [sequence_span, source_span].into_iter().chain(conditions).for_each(|span| span.move_to(moved));
            }
            ChangeInput::Snapshot(SnapshotInput { versions, source_span }) => {
                source_span.move_to(moved);
                match versions {
                    SnapshotVersions::UpdateTime => {}
                    SnapshotVersions::Query(query) => Arc::make_mut(query).move_to(moved),
                    SnapshotVersions::Files(files) => files.version_regex.span.move_to(moved),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spanned<T>(value: T) -> Spanned<T> {
        Spanned::new(value, Span::new(FileId(0), 0..0))
    }

    fn names(names: &[&str]) -> Vec<Spanned<String>> {
        names.iter().map(|name| spanned(name.to_string())).collect()
    }

    fn feed(columns: Option<ColumnSelection>, tracked: Option<ColumnSelection>) -> ChangeFlow {
        let span = Span::new(FileId(0), 0..0);
        ChangeFlow {
            keys: names(&["ID"]),
            scd_type: Some(spanned(ScdType::Two)),
            track_history: tracked.map(spanned),
            input: ChangeInput::Feed(ChangeFeed {
                ignore_null_updates: None,
                columns: columns.map(spanned),
                columns_to_update: None,
                sequence_span: span,
                sequence_words: Vec::new(),
                delete_span: None,
                truncate_span: None,
                source_span: span,
            }),
            options: ChangeOptions::default(),
        }
    }

    #[test]
    fn selections_choose_columns_in_the_order_of_the_source_and_in_any_case() {
        use ColumnSelection::{Except, On};
        const SOURCE: [&str; 6] = ["op", "id", "Name", "seen", "__flowbench_sequence", "__FLOWBENCH_delete"];
        let cases = [
            // columns, TRACK HISTORY → kept, tracked
            (None, None, "op id Name seen", "op Name seen"),
            (Some(On(names(&["name", "id"]))), None, "id Name", "Name"),
            (Some(Except(names(&["OP"]))), Some(Except(names(&["SEEN"]))), "id Name seen", "Name"),
            (None, Some(On(names(&["seen", "id"]))), "op id Name seen", "seen"),
            (Some(Except(names(&["op"]))), None, "id Name seen", "Name seen"),
        ];
        for (columns, tracked, kept, of_history) in cases {
            let flow = feed(columns, tracked);
            let words = |found: Vec<usize>| found.into_iter().map(|at| SOURCE[at]).collect::<Vec<_>>().join(" ");
            assert_eq!(words(flow.kept_columns(&SOURCE)), kept, "{flow:?}");
            assert_eq!(words(flow.tracked_columns(&SOURCE)), of_history, "{flow:?}");
        }
    }

    #[test]
    fn what_tells_of_a_change_in_a_change_feed_is_kept_if_it_is_named() {
        use ColumnSelection::{Except, On};
        const SOURCE: [&str; 5] = ["id", "name", "_Change_Type", "_commit_version", "_commit_timestamp"];
        let kept = |flow: &ChangeFlow, source: &[&str]| {
            flow.kept_columns(source).into_iter().map(|at| source[at]).collect::<Vec<_>>().join(" ")
        };
        let mut flow = feed(None, None);
        assert_eq!(kept(&flow, &SOURCE), "id name");
        assert_eq!(kept(&flow, &SOURCE[..4]), "id name _Change_Type _commit_version", "no feed without the time");
        flow.keys.extend(names(&["_COMMIT_VERSION"]));
        assert_eq!(kept(&flow, &SOURCE), "id name _commit_version");
        let selections = [(On(names(&["id", "_change_type"])), "id _Change_Type"), (Except(names(&["name"])), "id")];
        for (selection, expected) in selections {
            assert_eq!(kept(&feed(Some(selection), None), &SOURCE), expected);
        }
    }

    #[test]
    fn a_fraction_is_exceeded_by_more_of_the_whole_only() {
        let tenth = Fraction::new(0.1).unwrap();
        assert!(!tenth.is_exceeded_by(10, 100) && tenth.is_exceeded_by(11, 100));
        assert!(!tenth.is_exceeded_by(0, 0) && !Fraction::new(1.0).unwrap().is_exceeded_by(u64::MAX, u64::MAX));
        assert!(Fraction::new(0.0).unwrap().is_exceeded_by(1, u64::MAX));
        assert!([-0.1, 1.1, f64::NAN].into_iter().all(|value| Fraction::new(value).is_none()));
    }

    #[test]
    fn names_of_ours_and_of_sparks_are_reserved_in_any_case() {
        assert_eq!(reserved_prefix("__FlowBench_x"), Some("__flowbench_"));
        assert_eq!(reserved_prefix("__spark_autocdc_metadata"), Some("__spark_autocdc_"));
        assert!(
            ["__START_AT", "_flowbench_", "__flowbench", "ß__flowbench_"]
                .map(reserved_prefix)
                .iter()
                .all(Option::is_none)
        );
    }
}
