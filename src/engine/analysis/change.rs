//! A flow of AUTO CDC over the columns of its source: what its clauses name is there, its sequence has an order, and
//! what its target gets.
//!
//! Not here: what the flows of one target agree on (`change_target.rs`), and rules that need no columns
//! (`pipeline::validate`).

use pipeline::auto_cdc::{
    ChangeFeed, ChangeFlow, ChangeInput, DELETE_COLUMN, END_AT, SEQUENCE_COLUMN, START_AT, ScdType, SnapshotVersions,
    TRUNCATE_COLUMN, reserved_prefix,
};
use pipeline::change_feed::COMMIT_VERSION;
use pipeline::data_type::{DataType, Field};
use pipeline::diagnostic::{Diagnostic, nearest};
use pipeline::graph::{Flow, FlowId, Source};
use pipeline::text::{Span, Spanned};
use pipeline::validate::{by_ingestion_time, is_ingestion_time};

use crate::columns::Misfit;
use crate::plans::{InputSchemas, Output, PlannedQuery};

use super::Work;
use super::origin::Origin;

impl Work<'_> {
    /// False if the source has a column with a name that is not its to give; then its query isn't planned, which would
    /// say it worse.
    pub(super) fn check_reserved_names(&mut self, id: FlowId, schemas: &InputSchemas) -> bool {
        let graph = self.engine.graph();
        let flow = graph.flow(id);
        let Some(change) = &flow.change else { return true };
        let mut is_sound = true;
        for input in &flow.reading.inputs {
            let names: Vec<String> = match (schemas.get(&input.id), &input.source) {
                (Some(schema), _) => schema.fields().iter().map(|field| field.name().clone()).collect(),
                (None, Source::Dataset { id, .. }) => match &self.analysis.columns[id.0] {
                    Some(columns) => columns.fields.iter().map(|field| field.name.clone()).collect(),
                    None => continue,
                },
                _ => continue,
            };
            for wrong in names.iter().filter_map(|name| reserved_name(flow, change, name, input.span)) {
                self.report(wrong);
                is_sound = false;
            }
        }
        is_sound
    }

    /// The columns that a flow gives its target; None if they can't be known. What is wrong is reported.
    pub(super) fn change_columns(&mut self, id: FlowId, query: &PlannedQuery) -> Option<Vec<Field>> {
        let PlannedQuery { output, plan, .. } = query;
        let flow = self.engine.graph().flow(id);
        let change = flow.change.as_deref().expect("asked of flows of AUTO CDC only");
        let fields = match output {
            Output::Fields(fields) => fields,
            Output::Names { .. } => return None,
            Output::Misfits(misfits) => {
                for misfit in misfits {
                    self.report(misfit_of_change(flow, change, misfit));
                }
                return None;
            }
        };
        let mut found = check(flow, change, fields);
        found.extend(self.sequence_of_table_feed(flow, change, fields));
        found.extend(change.feed().and_then(|feed| {
            let at = fields.iter().position(|field| field.name == SEQUENCE_COLUMN)?;
            sequence_orders_nothing(flow, feed, &Origin::of(plan, at))
        }));
        let is_sound = !found.iter().any(Diagnostic::is_error);
        found.into_iter().for_each(|wrong| self.report(wrong));
        let sequence = match &change.input {
            ChangeInput::Feed(_) => field_type(fields, SEQUENCE_COLUMN),
            ChangeInput::Snapshot(snapshot) => match &snapshot.versions {
                SnapshotVersions::UpdateTime => Some(DataType::Timestamp),
                SnapshotVersions::Files(files) => Some(files.version_type.clone()),
                SnapshotVersions::Query(_) => self.analysis.sequences[id.0].clone(),
            },
        };
        self.analysis.sequences[id.0].clone_from(&sequence);
        if !is_sound {
            return None;
        }
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let mut given: Vec<Field> = change.kept_columns(&names).into_iter().map(|at| fields[at].clone()).collect();
        if change.scd_type() == ScdType::Two {
            let bound = |name: &str, data_type: &DataType| Field {
                name: name.to_string(),
                data_type: data_type.clone(),
                is_nullable: true,
                comment: None,
            };
            let sequence = sequence?;
            given.extend([bound(START_AT, &sequence), bound(END_AT, &sequence)]);
        }
        Some(given)
    }

    /// The error for a flow over the change feed of a table that orders its events by something else than the table's
    /// versions.
    fn sequence_of_table_feed(&self, flow: &Flow, change: &ChangeFlow, fields: &[Field]) -> Option<Diagnostic> {
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let feed = change.feed().filter(|_| change.reads_table_feed(&names))?;
        if feed.sequence_words.iter().any(|word| word.eq_ignore_ascii_case(COMMIT_VERSION)) {
            return None;
        }
        let message =
            format!("flow `{}` reads the change feed of a table and is not ordered by its versions", flow.name);
        let diagnostic = Diagnostic::error("change-feed-sequence", feed.sequence_span, message)
            .condition("AUTOCDC_CHANGELOG_REQUIRES_COMMIT_VERSION_SEQUENCING")
            .reason("rows change in the order of the table's versions: a delete has the values that its row had before")
            .help(format!("write `SEQUENCE BY {COMMIT_VERSION}`, or a STRUCT that begins with it"));
        Some(match self.text_at(feed.sequence_span).starts_with('[') {
            // A list of TOML is no expression.
            true => diagnostic,
            false => diagnostic.edit(feed.sequence_span, COMMIT_VERSION),
        })
    }

    /// The type of the versions that `WITH VERSION` gives, kept for the flow's columns.
    pub(super) fn version(&mut self, id: FlowId, query: &PlannedQuery) {
        let PlannedQuery { output, plan, .. } = query;
        let flow = self.engine.graph().flow(id);
        let Some(version) = &flow.version else { return };
        let span = version.query.span;
        let error = |message: String| {
            Diagnostic::error("snapshot-version", span, message)
                .condition("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION")
                .reason("a snapshot has one version, by which it is ordered among snapshots and events")
                .help("write a query of one row and one column: `WITH VERSION (SELECT max(version) FROM …)`")
        };
        match output {
            Output::Fields(fields) | Output::Names { fields, .. } => match fields.as_slice() {
                [_] if Origin::of(plan, 0).is_null() => self.report(Diagnostic {
                    condition: Some("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.NULL_SNAPSHOT_VERSION"),
                    ..error(format!("the version of flow `{}` is NULL", flow.name))
                }),
                [field] if field.data_type.has_order() => {
                    self.analysis.sequences[id.0] = Some(field.data_type.clone());
                }
                [field] => {
                    let message =
                        format!("the version of flow `{}` has no order: it is {}", flow.name, field.data_type);
                    self.report(Diagnostic {
                        condition: Some("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.SNAPSHOT_VERSION_NOT_SORTABLE"),
                        ..error(message)
                    });
                }
                fields => {
                    self.report(error(format!("the version of flow `{}` has {} columns", flow.name, fields.len())));
                }
            },
            Output::Misfits(_) => self.report(error(format!("the version of flow `{}` has no type", flow.name))),
        }
    }
}

/// All that is wrong with a flow over the columns of its query.
fn check(flow: &Flow, change: &ChangeFlow, fields: &[Field]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let span = source_span(change);
    let source: Vec<&Field> = fields.iter().filter(|field| !change.adds(&field.name)).collect();
    found.extend(source.iter().filter_map(|field| reserved_name(flow, change, &field.name, span)));
    let names: Vec<&str> = source.iter().map(|field| field.name.as_str()).collect();
    let kept: Vec<&str> = change.kept_columns(&names).into_iter().map(|at| names[at]).collect();
    let values: Vec<&str> = kept.iter().copied().filter(|name| !change.is_key(name)).collect();

    for key in &change.keys {
        let Some(field) = source.iter().find(|field| field.name.eq_ignore_ascii_case(&key.value)) else {
            found.push(not_found(flow, "KEYS", "changeDataFeed", key, &names));
            continue;
        };
        if !field.data_type.has_order() {
            let message = format!("key `{}` is {}, which has no order", key.value, field.data_type);
            found.push(Diagnostic::error("key-type", key.span, message).help("take columns of plain values as keys"));
        }
        if let Some(columns) = change.feed().and_then(|feed| feed.columns.as_ref())
            && !columns.value.holds(&key.value)
        {
            let message = format!("flow `{}` leaves out the key `{}`", flow.name, key.value);
            found.push(
                Diagnostic::error("key-left-out", columns.span, message)
                    .condition("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA")
                    .reason("the rows of the target are found by their key; names are compared without regard to case")
                    .label(key.span, "the key")
                    .help(format!("keep `{}` in the target", key.value)),
            );
        }
    }
    if let Some(tracked) = &change.track_history {
        let unknown = unknown(tracked.value.names(), &values);
        found.extend(unknown.map(|name| not_found(flow, "TRACK HISTORY ON", "trackHistorySelection", name, &values)));
    }
    if let Some(feed) = change.feed() {
        found.extend(check_feed(flow, feed, fields, &names, &values));
    }
    found
}

fn check_feed(flow: &Flow, feed: &ChangeFeed, fields: &[Field], names: &[&str], values: &[&str]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if let Some(columns) = &feed.columns {
        let unknown = unknown(columns.value.names(), names);
        found.extend(unknown.map(|name| not_found(flow, "COLUMNS", "changeDataFeed", name, names)));
    }
    if let Some(ignored) = &feed.ignore_null_updates {
        let unknown = unknown(ignored.value.names(), values);
        found
            .extend(unknown.map(|name| not_found(flow, "IGNORE NULL UPDATES ON", "ignoreNullSelection", name, values)));
    }
    if let Some(column) = &feed.columns_to_update {
        match field_type(fields, &column.value) {
            None => found.push(not_found(flow, "COLUMNS TO UPDATE", "changeDataFeed", column, names)),
            Some(DataType::Array(element)) if *element == DataType::String => {}
            Some(data_type) => found.push(
                Diagnostic::error(
                    "columns-to-update-type",
                    column.span,
                    format!("`COLUMNS TO UPDATE` needs ARRAY<STRING>, `{}` is {data_type}", column.value),
                )
                .reason("it holds the names of the columns that an event writes")
                .help("make it an array in a temporary view, such as `split(changed, ',') AS changed`"),
            ),
        }
    }
    if let Some(data_type) = field_type(fields, SEQUENCE_COLUMN).filter(|data_type| !data_type.has_order()) {
        let message = format!("`SEQUENCE BY` of flow `{}` has no order: it is {data_type}", flow.name);
        found.push(
            Diagnostic::error("sequence-not-orderable", feed.sequence_span, message)
                .condition("AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE")
                .reason("which event of a key is the latest would not be known")
                .help("take a number, text, date or timestamp, or a STRUCT of them"),
        );
    }
    let conditions = [
        ("APPLY AS DELETE WHEN", DELETE_COLUMN, feed.delete_span),
        ("APPLY AS TRUNCATE WHEN", TRUNCATE_COLUMN, feed.truncate_span),
    ];
    for (clause, column, span) in conditions {
        let (Some(span), Some(data_type)) = (span, field_type(fields, column)) else { continue };
        if data_type != DataType::Boolean {
            found.push(not_a_condition(clause, span, &data_type.to_string()));
        }
    }
    found
}

/// What is wrong with a sequence that is the same for all events, or tells when they came.
fn sequence_orders_nothing(flow: &Flow, feed: &ChangeFeed, origin: &Origin) -> Option<Diagnostic> {
    let span = feed.sequence_span;
    if origin.is_null() {
        return Some(
            Diagnostic::error("null-sequence", span, format!("`SEQUENCE BY` of flow `{}` is always NULL", flow.name))
                .condition("AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE")
                .reason("an event without a sequence has no place in its key's history")
                .help("order by a column that the source set when the row changed: its version, log position or time"),
        );
    }
    if let Some(time) = &origin.ingestion_time {
        // What the clause itself calls is told by `pipeline::validate`.
        let is_told = feed.sequence_words.iter().any(|word| is_ingestion_time(word));
        return (!is_told).then(|| by_ingestion_time(flow, feed, time));
    }
    origin.is_constant().then(|| {
        let message = format!("`SEQUENCE BY` of flow `{}` is the same for every event", flow.name);
        Diagnostic::warning("sequence-is-constant", span, message)
            .reason("the events of a key tie: the one that stands last in the source wins, late or not")
            .help("order by a column that the source set when the row changed: its version, log position or time")
    })
}

fn not_a_condition(clause: &str, span: Span, data_type: &str) -> Diagnostic {
    Diagnostic::error("condition-type", span, format!("`{clause}` needs a condition, this is {data_type}"))
        .condition("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN")
        .reason("an event is one if the condition is true; false and NULL are none")
        .help("compare it: `column = value`")
}

/// The error for a name in a list that is none of `columns`; `list` is Spark's word for the list.
fn not_found(flow: &Flow, clause: &str, list: &str, name: &Spanned<String>, columns: &[&str]) -> Diagnostic {
    let what = match list {
        "trackHistorySelection" => "no column whose history can be tracked",
        "ignoreNullSelection" => "no column whose NULL can be ignored",
        _ => "no column of the source",
    };
    let message = format!("`{clause}` of flow `{}` names `{}`, {what}", flow.name, name.value);
    let available = columns.join(", ");
    let diagnostic = Diagnostic::error("column-not-found", name.span, message)
        .condition("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA")
        .reason(match list {
            "changeDataFeed" => format!("its columns, compared without regard to case: {available}"),
            _ => {
                format!("those are the target's columns without the keys, compared without regard to case: {available}")
            }
        });
    // A key is named once.
    let is_taken = |column: &str| clause == "KEYS" && flow.change.as_ref().is_some_and(|change| change.is_key(column));
    match nearest(&name.value, columns.iter().copied().filter(|column| !is_taken(column))) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")).edit(name.span, backticked(near)),
        None => diagnostic.help("correct the name, or take it out of the list"),
    }
}

/// A name as it is written in a list.
fn backticked(name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    if is_plain { name.to_string() } else { format!("`{}`", name.replace('`', "``")) }
}

/// The error for a column of the source whose name is not the source's to give.
fn reserved_name(flow: &Flow, change: &ChangeFlow, name: &str, span: Span) -> Option<Diagnostic> {
    let prefix = reserved_prefix(name);
    let is_bound =
        change.scd_type() == ScdType::Two && [START_AT, END_AT].iter().any(|own| own.eq_ignore_ascii_case(name));
    if prefix.is_none() && !is_bound {
        return None;
    }
    let message = format!("the source of flow `{}` has a column `{name}`", flow.name);
    let diagnostic = Diagnostic::error("reserved-name", span, message);
    Some(match prefix {
        Some(prefix) => diagnostic
            .condition("AUTOCDC_RESERVED_COLUMN_NAME_PREFIX_CONFLICT")
            .reason(format!("names that begin with `{prefix}`, in any case, are kept for AUTO CDC itself"))
            .help("rename the column in the source, or in a temporary view over it"),
        None => diagnostic
            .condition("AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT")
            .reason("SCD type 2 makes `__START_AT` and `__END_AT` itself, of the sequence; names are compared without regard to case")
            .help("don't shape the history yourself: leave the columns out in a temporary view, and name that as the source"),
    })
}

/// What is wrong with the type of a column, in the words of the clause that makes it.
fn misfit_of_change(flow: &Flow, change: &ChangeFlow, misfit: &Misfit) -> Diagnostic {
    if let (Misfit::Unstorable { column, data_type }, Some(feed)) = (misfit, change.feed()) {
        let clauses = [
            ("APPLY AS DELETE WHEN", DELETE_COLUMN, feed.delete_span),
            ("APPLY AS TRUNCATE WHEN", TRUNCATE_COLUMN, feed.truncate_span),
        ];
        if column == SEQUENCE_COLUMN {
            let message = format!("`SEQUENCE BY` of flow `{}` has no order: it is {data_type}", flow.name);
            return Diagnostic::error("sequence-not-orderable", feed.sequence_span, message)
                .condition("AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE")
                .help("take a number, text, date or timestamp, or a STRUCT of them");
        }
        for (clause, internal, span) in clauses {
            if let Some(span) = span.filter(|_| column == internal) {
                return not_a_condition(clause, span, data_type);
            }
        }
    }
    if let Misfit::Duplicate { column } | Misfit::Reserved { column } = misfit
        && let Some(wrong) = reserved_name(flow, change, column, source_span(change))
    {
        return wrong;
    }
    let (code, help) = match misfit {
        Misfit::Duplicate { .. } => ("duplicate-column", "name one of them differently in a temporary view"),
        _ => ("column-type", "cast it in a temporary view to a type that tables hold, such as STRING"),
    };
    Diagnostic::error(code, source_span(change), misfit.to_string()).help(help)
}

/// Where a flow says what it reads.
pub(super) fn source_span(change: &ChangeFlow) -> Span {
    match &change.input {
        ChangeInput::Feed(feed) => feed.source_span,
        ChangeInput::Snapshot(snapshot) => snapshot.source_span,
    }
}

/// The names of a list that none of `columns` has; reserved ones are refused by `pipeline::validate`.
fn unknown<'a>(list: &'a [Spanned<String>], columns: &[&str]) -> impl Iterator<Item = &'a Spanned<String>> {
    let is_known = |name: &Spanned<String>| {
        let is_bound = [START_AT, END_AT].iter().any(|own| own.eq_ignore_ascii_case(&name.value));
        is_bound || columns.iter().any(|column| column.eq_ignore_ascii_case(&name.value))
    };
    list.iter().filter(move |name| !is_known(name) && reserved_prefix(&name.value).is_none())
}

fn field_type(fields: &[Field], name: &str) -> Option<DataType> {
    fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.data_type.clone())
}
