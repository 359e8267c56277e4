//! Warnings that need what is on record and which files there are: rows that would come twice, or never. Files are
//! taken as they were listed last, so that a save waits for no disk.
//!
//! - `source-overlap`: two flows append the same files to one table (behaviours B-6)
//! - `would-read-again`: a new name for a flow that has read (B-21, B-44)
//! - `once-flow-edited`: a done once flow whose query changed (B-43)
//! - `empty-source`: a path without files (B-45)
//! - `legacy-rows-stay-open`: keys that the last row of a seed closes and its target shows (D-6)
//! - `unread-files-skipped`: `modifiedAfter` was raised or added over files that were not read yet
//!
//! Not here: the same facts of an update that starts (`pipeline::plan`, `overlap`).

use std::collections::{BTreeMap, HashMap, HashSet};

use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{Flow, FlowKind, Source};
use pipeline::parse;
use pipeline::plan::again::{edited_since_done, would_read_again};
use pipeline::plan::{FlowHistory, History};
use pipeline::query::InputSource;
use pipeline::read_files::{ReadFiles, ReadMode, read_files};
use pipeline::text::{FileId, MappedText, Span};

use crate::engine::Engine;
use crate::error::Result;
use crate::listings::Listed;
use crate::overlap::{filter, read_by};
use crate::scd::ClosedKeys;
use crate::source::remembered::Sources;
use crate::state::State;

/// Pairs of flows that are named; more would say nothing new.
const OVERLAPS_MAX: usize = 10;

/// Finds what the records and the known listings say against running the files as they are.
pub(crate) fn lints(engine: &Engine, history: &History, sources: &Sources) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let by_name = by_name(history);
    for flow in &engine.graph().flows {
        let known = by_name.get(&flow.name.to_lowercase()).copied();
        let is_done = flow.kind.is_once() && known.is_some_and(|known| known.is_done);
        let has_started = known.is_some_and(|known| known.is_done || known.has_checkpoint);
        let notice = match (is_done, has_started || by_name.is_empty()) {
            (true, _) => known.and_then(|known| edited_since_done(flow, known)),
            (false, true) => None,
            (false, false) => would_read_again(engine.graph(), flow, history),
        };
        found.extend(
            notice.map(|notice| Diagnostic::warning(notice.code, flow.name_span, notice.message).help(notice.help)),
        );
        if !is_done {
            let has_read = known.is_some_and(|known| known.known_files > 0);
            found.extend(file_inputs(engine, flow).filter_map(|(spec, span)| {
                let listed = sources.listed(spec)?;
                empty_source(flow, spec, span, &listed, has_read)
            }));
        }
        found.extend(file_inputs(engine, flow).filter_map(|(spec, span)| {
            let count = sources.skipped(&flow.name, spec.modified_after_us?).filter(|count| *count > 0)?;
            Some(unread_files_skipped(flow, count, span))
        }));
    }
    found.extend(engine.graph().flows.iter().filter_map(|flow| legacy_rows_stay_open(engine, flow)));
    found.extend(overlaps(engine, history, sources));
    found
}

/// Lists what the warnings ask for and counts what they count; true if anything was not known.
pub(crate) async fn look(engine: &Engine, state: Option<&State>, history: &History, sources: &Sources) -> Result<bool> {
    let mut is_new = match state {
        // What can't be read is said by whoever reads it.
        Some(state) => engine.look_for_closed_keys(state).await.unwrap_or(false),
        None => false,
    };
    let by_name = by_name(history);
    for flow in &engine.graph().flows {
        let known = by_name.get(&flow.name.to_lowercase()).copied();
        if flow.kind.is_once() && known.is_some_and(|known| known.is_done) {
            continue;
        }
        for (spec, _) in file_inputs(engine, flow).collect::<Vec<_>>() {
            if sources.listed(spec).is_none() {
                // What can't be listed is said by whoever reads it.
                is_new |= sources.listings().list(spec).await.is_ok();
            }
        }
        if let (Some(state), Some(known)) = (state, known)
            && known.has_checkpoint
            && let Some((spec, before_us, after_us)) = raised(engine, flow, &known.definition)
            && sources.skipped(&flow.name, after_us).is_none()
        {
            let everything = ReadFiles { modified_after_us: Some(before_us), ..spec.clone() };
            let Ok(listed) = sources.listings().list(&everything).await else { continue };
            let read: HashSet<String> = read_by(engine.graph(), engine.root(), flow, state)?;
            let skipped = listed.files.iter().filter(|file| file.modified_us <= after_us && !read.contains(&file.path));
            let count = skipped.count();
            is_new |= count > 0;
            sources.set_skipped(&flow.name, after_us, count);
        }
    }
    Ok(is_new)
}

/// What is known of the flows, by name in lower case.
fn by_name(history: &History) -> HashMap<String, &FlowHistory> {
    history.flows.iter().map(|flow| (flow.name.to_lowercase(), flow)).collect()
}

/// The files that a flow reads, through views too, and where it says so.
fn file_inputs<'a>(engine: &'a Engine, flow: &'a Flow) -> impl Iterator<Item = (&'a ReadFiles, Span)> {
    engine.graph().all_inputs(&flow.reading).into_iter().filter_map(|input| match &input.source {
        Source::Files(spec) => Some((spec.as_ref(), input.span)),
        _ => None,
    })
}

fn empty_source(flow: &Flow, spec: &ReadFiles, span: Span, listed: &Listed, has_read: bool) -> Option<Diagnostic> {
    if !listed.files.is_empty() || (has_read && !listed.is_missing) {
        return None;
    }
    let message = match listed.is_missing {
        true => format!("flow `{}` reads `{}`, which does not exist", flow.name, spec.path),
        false => format!("flow `{}` reads `{}`, where no file is", flow.name, spec.path),
    };
    let kept_out = match listed.filtered {
        0 => String::new(),
        1 => "; 1 file there is kept out by modifiedAfter, modifiedBefore or pathGlobFilter".to_string(),
        n => format!("; {n} files there are kept out by modifiedAfter, modifiedBefore or pathGlobFilter"),
    };
    let (reason, help) = match flow.kind {
        FlowKind::Once | FlowKind::CdcOnce => {
            ("it would be done with 0 rows", "correct the path, or bring the files before the next update")
        }
        _ => {
            ("it gives no rows, and without `schema` no columns to check", "correct the path if files should be there")
        }
    };
    Some(Diagnostic::warning("empty-source", span, message).reason(format!("{reason}{kept_out}")).help(help))
}

fn legacy_rows_stay_open(engine: &Engine, flow: &Flow) -> Option<Diagnostic> {
    let feed = flow.change.as_ref()?.feed().filter(|feed| feed.delete_span.is_none())?;
    let found = engine.closed_keys().get(&flow.name)?;
    let table = &engine.graph().dataset(flow.target).label;
    let keys = match found.keys {
        1 => "1 key whose last row in the seed is closed is".to_string(),
        n => format!("{n} keys whose last row in the seed is closed are"),
    };
    let more = if found.keys > found.examples.len() as u64 { ", …" } else { "" };
    let message = format!("{keys} open in `{table}`: {}{more}", found.examples.join("; "));
    let reason = format!(
        "`{}` says that their rows have ended, but a row of the seed is an event that begins one; none of `{}` ends the last",
        found.column, flow.name
    );
    let written = |span: Span| {
        let text = engine.workspace().files[span.file.0].text.get(span.start..span.end).unwrap_or_default();
        // A list of TOML is no expression.
        if text.starts_with('[') || text.is_empty() { "…".to_string() } else { text.to_string() }
    };
    let recipe = recipe(engine, flow, &found, &written(feed.sequence_span))?;
    Some(Diagnostic::warning("legacy-rows-stay-open", flow.name_span, message).reason(reason).help(recipe))
}

/// The events that a seed lacks, as SQL: a delete for each last row that is closed.
fn recipe(engine: &Engine, flow: &Flow, found: &ClosedKeys, sequence: &str) -> Option<String> {
    let change = flow.change.as_ref()?;
    let source = match flow.reading.inputs.as_slice() {
        [input] => match &input.source {
            Source::Dataset { id, .. } => engine.graph().dataset(*id).label.clone(),
            Source::External { id, .. } => engine.graph().externals[id.0].name.value.to_string(),
            Source::Files(_) | Source::Unresolved => "…".to_string(),
        },
        _ => "…".to_string(),
    };
    let keys: Vec<&str> = change.keys.iter().map(|key| key.value.as_str()).collect();
    let keys = keys.join(", ");
    let (ended_at, is_closed) = (if found.is_end { found.column.as_str() } else { "…" }, &found.condition);
    Some(format!(
        "give an event for each end, in a view that the flow reads:\n\
         CREATE TEMPORARY VIEW {flow}_events AS\n\
         SELECT *, {sequence} AS event_at, false AS is_deleted FROM {source}\n\
         UNION ALL\n\
         SELECT *, {ended_at} AS event_at, true AS is_deleted FROM {source}\n\
         QUALIFY {is_closed} AND row_number() OVER (PARTITION BY {keys} ORDER BY {sequence} DESC) = 1;\n\
         and in the flow: FROM {flow}_events … APPLY AS DELETE WHEN is_deleted SEQUENCE BY event_at COLUMNS * EXCEPT (…, \
         event_at, is_deleted); then run it again: flowbench run --rerun-once {flow}",
        flow = flow.name
    ))
}

fn unread_files_skipped(flow: &Flow, count: usize, span: Span) -> Diagnostic {
    let files = match count {
        1 => "1 file that it has not read".to_string(),
        n => format!("{n} files that it has not read"),
    };
    Diagnostic::warning(
        "unread-files-skipped",
        span,
        format!("the later `modifiedAfter` of flow `{}` skips {files}", flow.name),
    )
    .reason("the bound that the flow last ran with, if any, let them in")
    .help("run the flow as it was first, or read them in a once flow")
}

/// The one source of a flow whose `modifiedAfter` is later than when it ran last: its options now, the earlier bound
/// and the later.
fn raised<'a>(engine: &'a Engine, flow: &'a Flow, definition: &str) -> Option<(&'a ReadFiles, i64, i64)> {
    let mut now = file_inputs(engine, flow);
    let (spec, _) = now.next()?;
    if now.next().is_some() {
        return None;
    }
    let after_us = spec.modified_after_us?;
    let (query, _) = parse::query(&MappedText::from_file(FileId(0), definition, 0..definition.len()));
    let query = query?;
    let mut calls = query.inputs.iter().filter_map(|input| match &input.source {
        InputSource::Files(call) => Some(call),
        _ => None,
    });
    let before = read_files(calls.next()?, ReadMode::Stream, engine.settings()).0?;
    // Without a bound every file was to be read.
    let before = before.modified_after_us.unwrap_or(i64::MIN);
    (before < after_us).then_some((spec, before, after_us))
}

/// A warning for each flow whose file sources share files with another flow into its table. A filter is taken to keep out what
/// the other one reads, unless both have the same.
fn overlaps(engine: &Engine, history: &History, sources: &Sources) -> Vec<Diagnostic> {
    let graph = engine.graph();
    let mut by_target: BTreeMap<_, Vec<&Flow>> = BTreeMap::new();
    for flow in &graph.flows {
        let is_done = flow.kind.is_once() && history.flow(&flow.name).is_some_and(|known| known.is_done);
        // Events that are applied twice change nothing.
        if flow.kind != FlowKind::Complete && !flow.kind.is_change() && !is_done {
            by_target.entry(flow.target).or_default().push(flow);
        }
    }
    let mut found = Vec::new();
    for (target, flows) in by_target.into_iter().filter(|(_, flows)| flows.len() > 1) {
        for (at, b) in flows.iter().enumerate() {
            // The first one is enough: of many flows over one folder every pair would say the same.
            for a in &flows[..at] {
                if found.len() >= OVERLAPS_MAX || filter(a) != filter(b) {
                    continue;
                }
                let shared: usize = file_inputs(engine, a)
                    .flat_map(|(one, _)| file_inputs(engine, b).map(move |(other, _)| (one, other)))
                    .map(|(one, other)| sources.shared_files(one, other))
                    .sum();
                if shared == 0 {
                    continue;
                }
                let label = &graph.dataset(target).label;
                let files = if shared == 1 { "1 file is".to_string() } else { format!("{shared} files are") };
                found.push(
                    Diagnostic::warning(
                        "source-overlap",
                        b.name_span,
                        format!("source overlap: {files} read by flow `{}` and by flow `{}`", a.name, b.name),
                    )
                    .reason(format!("`{label}` will hold their rows twice"))
                    .label(a.name_span, "the other flow")
                    .help("bound one of them (its path, modifiedAfter, a WHERE), or make rows distinct downstream"),
                );
                break;
            }
        }
    }
    found
}
