//! What the clauses of an AUTO CDC flow say, in SQL or in TOML → a [`ChangeFlow`] and its query.
//!
//! A feed's query is made here: `SELECT *, (sequence) AS __flowbench_sequence, … FROM source`, of the user's own pieces,
//! so that what is wrong with an expression is said at its place.
//!
//! Not here: how the clauses are written (`auto_cdc.rs`, `toml_change.rs`).

use std::sync::Arc;

use super::query::{expression, query};
use crate::auto_cdc::{
    ChangeFeed, ChangeFlow, ChangeInput, ChangeOptions, ColumnSelection, DELETE_COLUMN, IgnoreNulls, SEQUENCE_COLUMN,
    ScdType, SnapshotFiles, SnapshotInput, SnapshotVersions, TRUNCATE_COLUMN,
};
use crate::diagnostic::Diagnostic;
use crate::query::Query;
use crate::text::{MappedText, Span, Spanned};

/// Words that follow an expression in SQL, for "did you mean".
const CLAUSE_WORDS: &[&str] = &[
    "FROM", "INTO", "KEYS", "IGNORE", "APPLY", "SEQUENCE", "COLUMNS", "STORED", "TRACK", "AND", "OR", "IS", "NOT",
    "IN", "LIKE", "BETWEEN",
];

/// Which of the two ways a flow is written, for the names of its clauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Sql,
    Toml,
}

/// What a flow of AUTO CDC says, as far as it was read.
pub(super) struct ChangeSpec {
    pub syntax: Syntax,
    /// How people know the flow.
    pub flow: String,
    /// Where it is said that something is missing.
    pub head: Span,
    /// From the first word to the last.
    pub span: Span,
    pub is_once: bool,
    pub source: Option<ChangeSource>,
    /// The query of `WITH VERSION (…)`.
    pub version: Option<MappedText>,
    /// None: there is no such clause.
    pub keys: Option<Spanned<Vec<Spanned<String>>>>,
    pub sequence: Option<MappedText>,
    pub delete: Option<MappedText>,
    pub truncate: Option<MappedText>,
    pub ignore_null_updates: Option<Spanned<IgnoreNulls>>,
    pub columns: Option<Spanned<ColumnSelection>>,
    pub columns_to_update: Option<Spanned<String>>,
    pub scd_type: Option<Spanned<ScdType>>,
    pub track_history: Option<Spanned<ColumnSelection>>,
    pub options: ChangeOptions,
    /// False: something was wrong and reported, so nothing is said to be missing and no flow comes of it.
    pub is_complete: bool,
}

/// What stands behind FROM.
pub(super) enum ChangeSource {
    /// A table, view or call, with STREAM if it is there.
    Feed(MappedText),
    /// The query of `FROM SNAPSHOT (…)`.
    Snapshot(MappedText),
    /// Files that each hold a snapshot: the query over them.
    Files { query: Box<Query>, files: SnapshotFiles },
}

impl ChangeSpec {
    /// A flow of which nothing is read yet.
    pub fn new(syntax: Syntax, flow: &str, head: Span) -> ChangeSpec {
        ChangeSpec {
            syntax,
            flow: flow.to_string(),
            head,
            span: head,
            is_once: false,
            source: None,
            version: None,
            keys: None,
            sequence: None,
            delete: None,
            truncate: None,
            ignore_null_updates: None,
            columns: None,
            columns_to_update: None,
            scd_type: None,
            track_history: None,
            options: ChangeOptions::default(),
            is_complete: true,
        }
    }

    /// Says what is missing, and makes the flow and its query. None if it can't be; a diagnostic says why.
    pub fn finish(mut self, diagnostics: &mut Vec<Diagnostic>) -> Option<(Query, ChangeFlow)> {
        let is_feed = !matches!(self.source, Some(ChangeSource::Snapshot(_) | ChangeSource::Files { .. }));
        self.is_complete &= self.check_expressions(diagnostics);
        if self.is_complete {
            self.is_complete = self.say_what_is_missing(is_feed, diagnostics);
        }
        if !self.is_complete {
            return None;
        }
        let keys = self.keys.take().map(|keys| keys.value).unwrap_or_default();
        let clauses = self.clauses(&keys);
        let (mut query, input) = match self.source.take()? {
            ChangeSource::Feed(source) => self.feed(&source, diagnostics)?,
            ChangeSource::Snapshot(snapshot) => {
                let read = |text: &MappedText, diagnostics: &mut Vec<Diagnostic>| {
                    let (query, problems) = query(text);
                    diagnostics.extend(problems);
                    query
                };
                let (found, version) =
                    (read(&snapshot, diagnostics), self.version.take().map(|version| read(&version, diagnostics)));
                let versions = match version {
                    None => SnapshotVersions::UpdateTime,
                    Some(version) => SnapshotVersions::Query(Arc::new(version?)),
                };
                let found = found?;
                let source_span = found.span;
                (found, ChangeInput::Snapshot(SnapshotInput { versions, source_span }))
            }
            ChangeSource::Files { query, files } => {
                let source_span = query.span;
                (*query, ChangeInput::Snapshot(SnapshotInput { versions: SnapshotVersions::Files(files), source_span }))
            }
        };
        let version = match &input {
            ChangeInput::Snapshot(SnapshotInput { versions: SnapshotVersions::Query(version), .. }) => {
                format!(" WITH VERSION ({})", version.fingerprint_text)
            }
            ChangeInput::Snapshot(SnapshotInput { versions: SnapshotVersions::Files(files), .. }) => {
                format!(" VERSION {} AS {}", files.version_regex.value, files.version_type)
            }
            _ => String::new(),
        };
        query.fingerprint_text = format!("{clauses} FROM ({}){version}", query.fingerprint_text);
        let ChangeSpec { scd_type, track_history, options, .. } = self;
        Some((query, ChangeFlow { keys, scd_type, track_history, input, options }))
    }

    /// True if all can be read.
    fn check_expressions(&self, diagnostics: &mut Vec<Diagnostic>) -> bool {
        let before = diagnostics.len();
        let follows: &[&str] = if self.syntax == Syntax::Sql { CLAUSE_WORDS } else { &[] };
        for text in [&self.sequence, &self.delete, &self.truncate].into_iter().flatten() {
            diagnostics.extend(expression(text, follows).err().map(|error| *error));
        }
        diagnostics.len() == before
    }

    /// True if nothing is.
    fn say_what_is_missing(&self, is_feed: bool, diagnostics: &mut Vec<Diagnostic>) -> bool {
        let before = diagnostics.len();
        let name = |sql: &'static str, toml: &'static str| if self.syntax == Syntax::Sql { sql } else { toml };
        let code = name("missing-clause", "missing-key");
        let missing = |what: &str| Diagnostic::error(code, self.head, format!("flow `{}` has no `{what}`", self.flow));
        if self.source.is_none() {
            let help = name("write `FROM STREAM(table)` before KEYS", "add `source = \"table\"`");
            let source = missing(name("FROM", "source")).condition("AUTOCDC_MISSING_SOURCE");
            diagnostics.push(source.reason("it reads change events from a table or view").help(help));
        }
        match &self.keys {
            None => diagnostics.push(
                missing(name("KEYS", "keys"))
                    .condition("AUTOCDC_EMPTY_KEYS")
                    .reason("rows are found and replaced by their key: at least one column")
                    .help(name("write `KEYS (column)` behind the source", "add `keys = [\"column\"]`")),
            ),
            Some(keys) if keys.value.is_empty() => diagnostics.push(
                Diagnostic::error(code, keys.span, format!("flow `{}` has no key", self.flow))
                    .condition("AUTOCDC_EMPTY_KEYS")
                    .reason("rows are found and replaced by their key: at least one column")
                    .help("name the columns that tell one row from another"),
            ),
            Some(_) => {}
        }
        if is_feed && self.sequence.is_none() {
            diagnostics.push(
                missing(name("SEQUENCE BY", "sequence_by"))
                    .condition("AUTOCDC_MISSING_SEQUENCE_BY")
                    .reason("events arrive in any order; which one of a key is the latest must be said")
                    .help(name("write `SEQUENCE BY column`", "add `sequence_by = \"column\"`")),
            );
        }
        diagnostics.len() == before
    }

    /// The query of a feed and its clauses.
    fn feed(&self, source: &MappedText, diagnostics: &mut Vec<Diagnostic>) -> Option<(Query, ChangeInput)> {
        let sequence = self.sequence.as_ref()?;
        let whole = |text: &MappedText| text.origin(0..text.as_str().len());
        let expressions = [
            (Some(sequence), SEQUENCE_COLUMN),
            (self.delete.as_ref(), DELETE_COLUMN),
            (self.truncate.as_ref(), TRUNCATE_COLUMN),
        ];
        let mut text = MappedText::new();
        text.push_replacement("SELECT *", whole(sequence));
        for (expression, column) in expressions {
            let Some(expression) = expression else { continue };
            let span = whole(expression);
            text.push_replacement(", (", span);
            text.push_part(expression, 0..expression.as_str().len());
            text.push_replacement(&format!(") AS {column}"), span);
        }
        text.push_replacement(" FROM ", whole(source));
        text.push_part(source, 0..source.as_str().len());
        let (found, problems) = query(&text);
        diagnostics.extend(problems);
        let mut found = found?;
        found.span = self.span;
        if self.is_once {
            // It reads the whole, one time, with STREAM and without.
            for input in &mut found.inputs {
                input.stream = false;
                if let Some(option) = input.options.drain(..).next() {
                    diagnostics.push(
                        Diagnostic::error(
                            "unsupported-option",
                            option.name.span,
                            "a once flow takes no options of a stream",
                        )
                        .reason("it reads the whole of its source, one time")
                        .help("remove them"),
                    );
                }
            }
        }
        let feed = ChangeFeed {
            ignore_null_updates: self.ignore_null_updates.clone(),
            columns: self.columns.clone(),
            columns_to_update: self.columns_to_update.clone(),
            sequence_span: whole(sequence),
            sequence_words: expression(sequence, &[]).unwrap_or_default(),
            delete_span: self.delete.as_ref().map(whole),
            truncate_span: self.truncate.as_ref().map(whole),
            source_span: whole(source),
        };
        Some((found, ChangeInput::Feed(feed)))
    }

    /// All that isn't in the query, in one order, to be hashed with it.
    fn clauses(&self, keys: &[Spanned<String>]) -> String {
        let list = |names: &[Spanned<String>]| {
            names.iter().map(|name| format!("`{}`", name.value)).collect::<Vec<_>>().join(", ")
        };
        let selection = |selection: &ColumnSelection| match selection {
            ColumnSelection::On(names) => format!("({})", list(names)),
            ColumnSelection::Except(names) => format!("* EXCEPT ({})", list(names)),
        };
        let mut text = format!("AUTO CDC KEYS ({})", list(keys));
        match self.ignore_null_updates.as_ref().map(|ignored| &ignored.value) {
            None => {}
            Some(IgnoreNulls::All) => text.push_str(" IGNORE NULL UPDATES"),
            Some(IgnoreNulls::On(names)) => text.push_str(&format!(" IGNORE NULL UPDATES ON ({})", list(names))),
            Some(IgnoreNulls::Except(names)) => {
                text.push_str(&format!(" IGNORE NULL UPDATES ON * EXCEPT ({})", list(names)));
            }
        }
        if let Some(columns) = &self.columns {
            text.push_str(&format!(" COLUMNS {}", selection(&columns.value)));
        }
        if let Some(column) = &self.columns_to_update {
            text.push_str(&format!(" COLUMNS TO UPDATE `{}`", column.value));
        }
        let scd_type = self.scd_type.as_ref().map_or(ScdType::One, |scd_type| scd_type.value);
        text.push_str(&format!(" STORED AS {}", scd_type.words()));
        if let Some(tracked) = &self.track_history {
            text.push_str(&format!(" TRACK HISTORY ON {}", selection(&tracked.value)));
        }
        text
    }
}
