//! The flows of AUTO CDC into one table, once their columns are known: sequences of one type, one tracked set; and
//! warnings of columns that make a history of what is none (behaviours D-7, D-10, C-6).

use std::collections::BTreeSet;

use pipeline::auto_cdc::{ChangeFlow, ChangeInput, ColumnSelection, END_AT, START_AT, ScdType, SnapshotVersions};
use pipeline::data_type::{DataType, Field};
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{Dataset, Flow, FlowId};
use pipeline::text::Span;
use pipeline::validate::tracked_words;

use super::Work;

/// Names that a warning lists; more would say nothing new.
const NAMES_MAX: usize = 8;

/// A flow of AUTO CDC and the columns that it gives.
struct Given<'a> {
    id: FlowId,
    flow: &'a Flow,
    change: &'a ChangeFlow,
    /// Without `__START_AT` and `__END_AT`; None: not known.
    names: Option<Vec<&'a str>>,
}

impl Work<'_> {
    /// Checks the flows of AUTO CDC into `dataset` against one another; `given`: the columns of each flow.
    pub(super) fn check_change_target(&mut self, dataset: &Dataset, given: &[(FlowId, Option<Vec<Field>>)]) {
        let graph = self.engine.graph();
        let flows: Vec<Given> = given
            .iter()
            .filter_map(|(id, fields)| {
                let flow = graph.flow(*id);
                let names = fields.as_ref().map(|fields| {
                    let names = fields.iter().map(|field| field.name.as_str());
                    names.filter(|name| ![START_AT, END_AT].contains(name)).collect()
                });
                Some(Given { id: *id, flow, change: flow.change.as_deref()?, names })
            })
            .collect();
        if flows.is_empty() {
            return;
        }
        let mut found = self.sequences_differ(&flows);
        found.extend(tracked_differ(dataset, &flows));
        found.extend(own_columns(dataset, &flows, &|span| self.text_at(span)));
        found.extend(flows.iter().filter_map(sequence_is_tracked));
        found.into_iter().for_each(|wrong| self.report(wrong));
    }

    /// Sequences and versions are one order, so they have one type.
    fn sequences_differ(&self, flows: &[Given]) -> Vec<Diagnostic> {
        let sequence = |given: &Given| self.analysis.sequences[given.id.0].clone();
        let first = flows.iter().find(|given| !given.flow.kind.is_snapshot() && sequence(given).is_some());
        let Some((first, wanted)) = first.and_then(|first| Some((first, sequence(first)?))) else { return Vec::new() };
        let differing = flows.iter().filter_map(|given| {
            let data_type = sequence(given).filter(|data_type| !is_same_order(data_type, &wanted))?;
            Some((given, data_type))
        });
        differing
            .map(|(given, data_type)| {
                let what = |given: &Given| match given.flow.kind.is_snapshot() {
                    true => format!("the version of `{}`", given.flow.name),
                    false => format!("the sequence of `{}`", given.flow.name),
                };
                let message =
                    format!("{} is {data_type}, {} is {wanted}", what(given), what(first));
                let span = sequence_span(given);
                let diagnostic = Diagnostic::error("sequence-types-differ", span, message)
                    .reason("all flows of a table order its rows by one sequence: the types are exactly the same")
                    .label(sequence_span(first), format!("{wanted} here"));
                let diagnostic = match given.flow.kind.is_snapshot() {
                    true => diagnostic.condition("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE"),
                    false => diagnostic,
                };
                match &given.change.input {
                    ChangeInput::Feed(_) => {
                        let written = self.text_at(span);
                        let cast = format!("CAST({written} AS {wanted})");
                        let diagnostic = diagnostic.help(format!("cast one of them: SEQUENCE BY {cast}"));
                        // A list of TOML is no expression.
                        match written.starts_with('[') || matches!(wanted, DataType::Struct(_)) {
                            true => diagnostic,
                            false => diagnostic.edit(span, cast),
                        }
                    }
                    ChangeInput::Snapshot(snapshot) => diagnostic.help(match &snapshot.versions {
                        SnapshotVersions::Query(_) => {
                            format!("cast the version: WITH VERSION (SELECT CAST(… AS {wanted}) …)")
                        }
                        SnapshotVersions::Files(_) => format!("write version_type = \"{wanted}\""),
                        SnapshotVersions::UpdateTime => format!(
                            "without WITH VERSION a snapshot has the update's time, a TIMESTAMP: give it a version, WITH \
                             VERSION (SELECT CAST(… AS {wanted}) …), or cast the sequences to TIMESTAMP"
                        ),
                    }),
                }
            })
            .collect()
    }

    /// What stands in the user's file.
    pub(super) fn text_at(&self, span: Span) -> &str {
        self.engine.workspace().files[span.file.0].text.get(span.start..span.end).unwrap_or_default()
    }
}

/// Names of a struct's fields don't matter for the order.
fn is_same_order(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_order(&a.data_type, &b.data_type))
        }
        (a, b) => a == b,
    }
}

/// Where a flow says what orders its changes.
fn sequence_span(given: &Given) -> Span {
    match &given.change.input {
        ChangeInput::Feed(feed) => feed.sequence_span,
        ChangeInput::Snapshot(snapshot) => match &snapshot.versions {
            SnapshotVersions::Query(query) => query.span,
            SnapshotVersions::Files(files) => files.version_regex.span,
            SnapshotVersions::UpdateTime => snapshot.source_span,
        },
    }
}

/// A list of columns and an exception, compared over all columns of the table.
fn tracked_differ(dataset: &Dataset, flows: &[Given]) -> Vec<Diagnostic> {
    let mut flows = flows.iter().filter(|given| given.change.scd_type() == ScdType::Two);
    let Some(first) = flows.next() else { return Vec::new() };
    let rest: Vec<&Given> = flows.collect();
    let known = std::iter::once(first).chain(rest.iter().copied()).map(|given| given.names.as_ref());
    let Some(names) = known.collect::<Option<Vec<_>>>() else { return Vec::new() };
    let columns: BTreeSet<String> = names.into_iter().flatten().map(|name| name.to_lowercase()).collect();
    let is_list = |given: &Given| {
        given.change.track_history.as_ref().is_some_and(|tracked| matches!(tracked.value, ColumnSelection::On(_)))
    };
    let tracked = |given: &Given| -> BTreeSet<&String> {
        let holds =
            |column: &String| given.change.track_history.as_ref().is_none_or(|tracked| tracked.value.holds(column));
        columns.iter().filter(|column| !given.change.is_key(column) && holds(column)).collect()
    };
    rest.into_iter()
        // `validate` compares those of one form.
        .filter(|given| is_list(given) != is_list(first) && tracked(given) != tracked(first))
        .map(|given| {
            let message = format!(
                "flows into `{}` track different columns: `{}` tracks {}, `{}` tracks {}",
                dataset.label,
                given.flow.name,
                tracked_words(given.change),
                first.flow.name,
                tracked_words(first.change)
            );
            let span = |given: &Given| {
                given.change.track_history.as_ref().map_or(given.flow.name_span, |tracked| tracked.span)
            };
            Diagnostic::error("tracked-columns-differ", span(given), message)
                .reason("which change starts a new row would depend on the flow that brings it")
                .label(span(first), format!("`{}`", first.flow.name))
                .help("write the same TRACK HISTORY ON in all flows of the table")
        })
        .collect()
}

/// Warns of columns that one flow alone gives: validity columns of a legacy table, the operation of a feed.
fn own_columns<'a>(dataset: &Dataset, flows: &[Given], text_at: &dyn Fn(Span) -> &'a str) -> Vec<Diagnostic> {
    if flows.len() < 2 || flows.iter().any(|given| given.names.is_none()) {
        return Vec::new();
    }
    let names =
        |given: &Given| -> BTreeSet<String> { given.names.iter().flatten().map(|name| name.to_lowercase()).collect() };
    let mut found = Vec::new();
    for (at, given) in flows.iter().enumerate() {
        let others = flows.iter().enumerate().filter(|(other, _)| *other != at);
        let elsewhere: BTreeSet<String> = others.flat_map(|(_, other)| names(other)).collect();
        let own = given.names.iter().flatten().filter(|name| !elsewhere.contains(&name.to_lowercase()));
        let own: Vec<&str> = own.copied().collect();
        if own.is_empty() {
            continue;
        }
        let quoted: Vec<String> = own.iter().take(NAMES_MAX).map(|name| format!("`{name}`")).collect();
        let more = match own.len().saturating_sub(NAMES_MAX) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let message =
            format!("only flow `{}` gives {}{more} to `{}`", given.flow.name, quoted.join(", "), dataset.label);
        let tracks_one = given.change.scd_type() == ScdType::Two
            && own
                .iter()
                .any(|name| given.change.track_history.as_ref().is_none_or(|tracked| tracked.value.holds(name)));
        let reason = match tracks_one {
            true => {
                "the other flows' rows have NULL there, and the columns are tracked: each such difference is a change that starts a new row"
            }
            false => "the other flows' rows have NULL there",
        };
        let warning = Diagnostic::warning("columns-of-one-flow", given.flow.name_span, message).reason(reason);
        let Some(feed) = given.change.feed() else {
            found.push(warning.help("if the table needs none of them, leave them out of the snapshot's query"));
            continue;
        };
        if text_at(given.flow.span).starts_with("[[") {
            let (key, names) = except_list(feed.columns.as_ref().map(|columns| &columns.value), &own);
            let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            let key = if key == "COLUMNS" { "columns" } else { "except_columns" };
            found.push(warning.help(format!("if the table needs none of them, write {key} = [{}]", names.join(", "))));
            continue;
        }
        let (words, names) = except_list(feed.columns.as_ref().map(|columns| &columns.value), &own);
        let clause = format!("{words} ({})", names.join(", "));
        let warning = warning.help(format!("if the table needs none of them, write `{clause}`"));
        found.push(match &feed.columns {
            Some(columns) => warning.edit(columns.span, clause),
            None => {
                let behind = Span { start: feed.sequence_span.end, ..feed.sequence_span };
                warning.edit(behind, format!("\n{clause}"))
            }
        });
    }
    found
}

/// The clause that leaves the columns `own` out of a selection too, and its names.
fn except_list<'a>(selection: Option<&'a ColumnSelection>, own: &[&'a str]) -> (&'static str, Vec<&'a str>) {
    let names = selection.map(ColumnSelection::names).unwrap_or_default().iter().map(|name| name.value.as_str());
    match selection {
        Some(ColumnSelection::On(_)) => {
            ("COLUMNS", names.filter(|name| !own.iter().any(|own| own.eq_ignore_ascii_case(name))).collect())
        }
        _ => ("COLUMNS * EXCEPT", names.chain(own.iter().copied()).collect()),
    }
}

/// Warns of a sequence column that is tracked: it differs in every event, so no two of them are one row.
fn sequence_is_tracked(given: &Given) -> Option<Diagnostic> {
    let feed = given.change.feed().filter(|_| given.change.scd_type() == ScdType::Two)?;
    let names = given.names.as_ref()?;
    let tracked = given.change.tracked_columns(names);
    let column = tracked
        .into_iter()
        .map(|at| names[at])
        .find(|column| feed.sequence_words.iter().any(|word| word.eq_ignore_ascii_case(column)))?;
    let message = format!("flow `{}` tracks `{column}`, by which its events are ordered", given.flow.name);
    Some(
        Diagnostic::warning("sequence-is-tracked", feed.sequence_span, message)
            .reason("it differs in every event, so every event makes a new row, changed or not")
            .help(format!(
                "leave it out of the target, COLUMNS * EXCEPT ({column}), or of the history, TRACK HISTORY ON * EXCEPT \
                 ({column})"
            )),
    )
}
