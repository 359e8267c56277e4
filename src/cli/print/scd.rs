//! What is told of tables of AUTO CDC.

use pipeline::auto_cdc::ScdType;
use pipeline::scd::{
    AsOf, CutoverCheck, CutoverFlow, DiffRange, Effect, EventKind, Evidence, Invariant, KeyCutover, KeyEvent,
    KeyHistory, KeyPage, RowChange, RowDiff, ScdCheck, ScdDiff, Verdict, key_words,
};

use super::event::one_line;
use super::grid::{Align, Cell, Grid, Look};
use super::number;
use super::style::Style;

/// The versions of a key, and the events that made them.
pub fn history(history: &KeyHistory, style: Style, width: Option<usize>) -> String {
    let mut out = format!(
        "{}  {}  {}\n",
        style.bold(one_line(&history.table)),
        one_line(&key_words(&history.key)),
        style.dim(format!(
            "{}, {}, {}",
            history.scd_type.words(),
            number::counted(history.versions.len() as u64, "version", "versions"),
            number::counted(history.events.len() as u64, "event", "events"),
        ))
    );
    let cutover = [("last seeded", &history.last_seeded), ("first live", &history.first_live)];
    let cutover: Vec<String> = cutover
        .iter()
        .filter_map(|(what, sequence)| Some(format!("{what} {}", one_line(sequence.as_ref()?))))
        .collect();
    // Without a seed there is no cutover to tell of.
    if history.last_seeded.is_some() {
        out.push_str(&style.dim(cutover.join(", ")));
        out.push('\n');
    }
    if !history.versions.is_empty() {
        let headings: &[(&str, Align)] = match history.scd_type {
            // The row is what its newest event made of it; such a table knows no end.
            ScdType::One => &[("v", Align::Right), ("sequence", Align::Left)],
            ScdType::Two => &[("v", Align::Right), ("from", Align::Left), ("to", Align::Left)],
        };
        let headings = headings.iter().map(|(name, align)| (name.to_string(), *align));
        let columns = history
            .columns
            .iter()
            .map(|column| (column.name.clone(), if column.is_numeric { Align::Right } else { Align::Left }));
        let mut grid = Grid::with_columns(headings.chain(columns));
        for version in &history.versions {
            let end = match &version.end {
                Some(end) => end.as_str().into(),
                None => Cell::new("open", Look::Good),
            };
            let end = (history.scd_type == ScdType::Two).then_some(end);
            let interval = [version.number.to_string().into(), version.start.as_str().into()];
            grid.row(interval.into_iter().chain(end).chain(version.values.iter().map(value)));
        }
        out.push('\n');
        out.push_str(&grid.render(style, width));
    }
    let mut grid = Grid::new(&["sequence", "event", "effect", "flow", ">batch", ">update", "source", "notes"]);
    for event in &history.events {
        grid.row([
            event.sequence.as_str().into(),
            match event.kind {
                EventKind::Upsert => event.kind.words().into(),
                EventKind::Delete | EventKind::Absence | EventKind::Truncate => {
                    Cell::new(event.kind.words(), Look::Warning)
                }
            },
            effect(event).into(),
            event.flow.as_str().into(),
            event.batch.to_string().into(),
            event.update.map_or_else(String::new, |update| update.to_string()).into(),
            event.place.words().into(),
            notes(event).into(),
        ]);
    }
    out.push('\n');
    out.push_str(&grid.render(style, width));
    if !history.keeps_all_events {
        out.push_str(&style.dim("of SCD type 1 the events before a whole row of the key may be gone"));
        out.push('\n');
    }
    out
}

fn value(value: &Option<String>) -> Cell {
    value.as_deref().map_or_else(Cell::null, Cell::from)
}

fn effect(event: &KeyEvent) -> String {
    let version = event.version.map(|version| format!(" v{version}")).unwrap_or_default();
    match event.effect {
        Effect::Opens => format!("opens{version}"),
        Effect::Repeats => format!("repeats{version}"),
        Effect::FillsIn => format!("fills in{version}"),
        // Of SCD type 1 the row that it deleted is not kept.
        Effect::Deletes if event.version.is_none() => "deletes the row".to_string(),
        Effect::Deletes => format!("ends{version}"),
        Effect::DeletesNothing => "nothing was there".to_string(),
        Effect::Superseded => "superseded".to_string(),
        Effect::Voided => "made void".to_string(),
    }
}

fn notes(event: &KeyEvent) -> String {
    let notes = [(event.is_seed, "seed"), (event.is_late, "late")];
    notes.into_iter().filter_map(|(is_so, note)| is_so.then_some(note)).collect::<Vec<_>>().join(", ")
}

/// A page of keys.
pub fn keys(page: &KeyPage, style: Style, width: Option<usize>) -> String {
    let names = page.key_columns.iter().map(|name| (name.clone(), Align::Left));
    let more = [(">", "versions"), (">", "events"), ("", "newest"), ("", "flags")];
    let more = more.map(|(align, name)| (name.to_string(), if align == ">" { Align::Right } else { Align::Left }));
    let mut grid = Grid::with_columns(names.chain(more));
    for key in &page.keys {
        let parts = key.key.iter().map(|part| Cell::from(part.value.as_str()));
        grid.row(parts.chain([
            key.versions.to_string().into(),
            key.events.to_string().into(),
            key.newest.as_str().into(),
            Cell::new(key.flags.words().join(" "), Look::Warning),
        ]));
    }
    grid.render(style, width)
}

/// `20 keys; there are more` – for stderr.
pub fn key_count(page: &KeyPage) -> String {
    let count = number::counted(page.keys.len() as u64, "key", "keys");
    match page.next {
        Some(_) => format!("{count}; there are more (--limit 0 for all)"),
        None => count,
    }
}

/// How many rows there are at a sequence – for stderr.
pub fn as_of(as_of: &AsOf) -> String {
    let all = number::counted(as_of.row_count, "row", "rows");
    let shown = as_of.rows.rows.len() as u64;
    match shown == as_of.row_count {
        true => format!("{all} at {}", one_line(&as_of.sequence)),
        false => format!("{all} at {}, {shown} of them shown (--limit 0 for all)", one_line(&as_of.sequence)),
    }
}

/// What is different.
pub fn diff(diff: &ScdDiff, style: Style, width: Option<usize>) -> String {
    let (from, to) = match &diff.range {
        DiffRange::Times { from, to } => (from.clone(), to.clone()),
        DiffRange::Versions { from, to, .. } => (format!("v{from}"), format!("v{to}")),
    };
    let mut out = format!("{}  {} → {}\n", style.bold(one_line(&diff.table)), one_line(&from), one_line(&to));
    if let DiffRange::Times { .. } = diff.range {
        out.push_str(&format!("{} added, {} removed, {} changed", diff.added, diff.removed, diff.changed));
        let by_column: Vec<String> =
            diff.by_column.iter().map(|changes| format!("{} {}", one_line(&changes.column), changes.rows)).collect();
        if !by_column.is_empty() {
            out.push_str(&style.dim(format!("  ({})", by_column.join(", "))));
        }
        out.push('\n');
    }
    if diff.rows.is_empty() {
        out.push_str(&style.dim("nothing is different"));
        out.push('\n');
        return out;
    }
    let headings = ["key", "change", "column", from.as_str(), to.as_str()];
    let mut grid = Grid::with_columns(headings.map(|heading| (heading.to_string(), Align::Left)));
    for row in &diff.rows {
        differences(diff, row, &mut grid);
    }
    out.push_str(&grid.render(style, width));
    if diff.is_truncated {
        out.push_str(&style.dim("there are more (--limit 0 for all)"));
        out.push('\n');
    }
    out
}

/// A line for each column that differs; one for a row that is there on one side only.
fn differences(diff: &ScdDiff, row: &RowDiff, grid: &mut Grid) {
    let all = |values: &Option<Vec<Option<String>>>| {
        let texts = values.iter().flatten().map(|value| value.clone().unwrap_or_else(|| "NULL".to_string()));
        Cell::from(texts.collect::<Vec<_>>().join(", "))
    };
    let key = || Cell::from(key_words(&row.key));
    match row.change {
        RowChange::Added => grid.row([key(), Cell::new("added", Look::Good), "".into(), "".into(), all(&row.after)]),
        RowChange::Removed => {
            grid.row([key(), Cell::new("removed", Look::Warning), "".into(), all(&row.before), "".into()]);
        }
        RowChange::Changed => {
            let cell = |values: &Option<Vec<Option<String>>>, at: usize| {
                values.as_ref().and_then(|values| values.get(at)).map_or_else(Cell::null, value)
            };
            for at in &row.changed {
                let column = diff.columns.get(*at).map_or("", |column| column.name.as_str());
                let (before, after) = (cell(&row.before, *at), cell(&row.after, *at));
                grid.row([key(), Cell::new("changed", Look::Bold), column.into(), before, after]);
            }
        }
    }
}

/// What holds and what doesn't.
pub fn check(check: &ScdCheck, style: Style) -> String {
    let counts = &check.counts;
    let mut out = format!(
        "{}  {}: {}, {}, {}\n",
        style.bold(one_line(&check.table)),
        check.scd_type.words(),
        number::counted(counts.keys, "key", "keys"),
        number::counted(counts.rows, "row", "rows"),
        number::counted(counts.events, "event", "events"),
    );
    let keys = |count| number::counted(count, "key", "keys");
    let mut facts = vec![
        format!("{} deleted", keys(counts.deleted)),
        format!("{} with late events", keys(counts.late)),
        format!("{} with a tie at the cutover", keys(counts.ties)),
    ];
    if check.scd_type == ScdType::Two {
        facts.insert(0, number::counted(counts.open_rows, "open version", "open versions"));
        facts.insert(2, format!("{} with gaps", keys(counts.with_gaps)));
    }
    out.push_str(&style.dim(facts.join(", ")));
    out.push('\n');
    for found in &check.invariants {
        let words = found.invariant.words(check.scd_type);
        if found.violations == 0 {
            out.push_str(&format!("{} {words}\n", style.good("holds")));
            continue;
        }
        let of = match found.invariant {
            Invariant::OneOpenRow | Invariant::OpenRowsAreLatest => ("key", "keys"),
            _ => ("time", "times"),
        };
        out.push_str(&format!("{} {words}: {}\n", style.error("wrong"), number::counted(found.violations, of.0, of.1)));
        for example in &found.examples {
            out.push_str(&format!("      {}: {}\n", one_line(&key_words(&example.key)), one_line(&example.what)));
        }
    }
    out
}

/// A cutover, key by key as far as keys were asked for.
pub fn cutover(check: &CutoverCheck, style: Style, width: Option<usize>) -> String {
    let mut out = format!(
        "{}  {}: {}\n",
        style.bold(one_line(&check.target)),
        check.scd_type.words(),
        number::counted(check.key_count, "key", "keys")
    );
    for (side, flows) in [("seed", &check.seed_flows), ("live", &check.live_flows)] {
        let flows: Vec<String> = flows.iter().map(flow).collect();
        let flows = if flows.is_empty() { "no flow".to_string() } else { flows.join(", ") };
        out.push_str(&format!("{} {flows}\n", style.dim(side)));
    }
    let mut grid = Grid::new(&["verdict", ">keys", ">share", "example", "meaning"]);
    for count in &check.verdicts {
        let share = match check.key_count {
            0 => String::new(),
            all => format!("{:.1} %", count.keys as f64 * 100.0 / all as f64),
        };
        let example = count.examples.first().map(|example| key_words(&example.key)).unwrap_or_default();
        grid.row([
            Cell::new(count.verdict.words(), look(count.verdict, count.keys)),
            count.keys.to_string().into(),
            share.into(),
            example.into(),
            Cell::new(count.verdict.meaning(), Look::Dim),
        ]);
    }
    out.push('\n');
    out.push_str(&grid.render(style, width));
    if let Some(changes) = &check.first_changes {
        out.push_str(&format!(
            "\nfirst live change of seeded keys: {} made exactly one version and closed the one before, {} changed \
             nothing, {} deleted, {}\n",
            changes.one_version,
            changes.repeats,
            changes.deletes,
            match changes.wrong {
                0 => style.good("0 wrong"),
                wrong => style.error(format!("{wrong} wrong")),
            }
        ));
    }
    if !check.keys.is_empty() {
        out.push('\n');
        out.push_str(&cutover_keys(&check.keys).render(style, width));
        if check.next.is_some() {
            out.push_str(&style.dim("there are more (--limit 0 for all)"));
            out.push('\n');
        }
    }
    out
}

fn cutover_keys(keys: &[KeyCutover]) -> Grid {
    let mut grid = Grid::new(&["key", "verdict", "last seeded", "first live", "first change"]);
    for key in keys {
        let sequence = |sequence: &Option<String>| sequence.as_deref().map_or_else(|| "".into(), Cell::from);
        grid.row([
            key_words(&key.key).into(),
            Cell::new(key.verdict.words(), look(key.verdict, 1)),
            sequence(&key.last_seeded),
            sequence(&key.first_live),
            key.first_change.map_or("", |change| change.words()).into(),
        ]);
    }
    grid
}

fn flow(flow: &CutoverFlow) -> String {
    let evidence = match flow.evidence {
        Evidence::Applied => "applied",
        Evidence::Source => "not run yet: by its source",
        Evidence::Nothing => "not run yet: its source has nothing",
    };
    format!("{} ({evidence})", one_line(&flow.name))
}

fn look(verdict: Verdict, keys: u64) -> Look {
    match verdict {
        _ if keys == 0 => Look::Dim,
        Verdict::Contiguous => Look::Good,
        Verdict::SeedOnly | Verdict::LiveOnly => Look::Plain,
        Verdict::Stale | Verdict::Tie => Look::Error,
    }
}
