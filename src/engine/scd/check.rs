//! Whether a table says what its events say: all keys, rows and events, in one pass over both in order of keys.

use std::collections::BTreeMap;

use pipeline::auto_cdc::ScdType;
use pipeline::scd::compare::{StoredRow, Violation, violations};
use pipeline::scd::{CheckExample, Invariant, InvariantCount, KeyCounts, ScdCheck};

use super::history::{event_count, flags};
use super::origin::Origins;
use super::scd_table::ScdTable;
use super::target_rows::{TargetRow, TargetRows, Wanted};
use super::value;
use crate::auto_cdc::side::KeyRange;
use crate::engine::Engine;
use crate::error::Result;

/// So many keys are shown of those that violate an invariant.
const EXAMPLES: usize = 5;

/// What was found of an invariant.
#[derive(Default)]
struct Found {
    violations: u64,
    examples: Vec<(Vec<u8>, String)>,
}

impl Engine {
    /// Compares a table of AUTO CDC with its stored events.
    ///
    /// # Errors
    /// `unknown-dataset`, `not-auto-cdc`, `nothing-stored`; `update-interrupted`, `table-busy`; a damaged side table.
    pub async fn scd_check(&self, table: &str) -> Result<ScdCheck> {
        let (table, version) = self.settled_scd_table(table).await?;
        let origins = Origins::read(self.state_for_reading()?.as_ref(), &table.view.manifest().flows)?;
        let mut rows = TargetRows::open(self, &table, version, Wanted::Rows).await?;
        let mut counts = KeyCounts::default();
        let mut found: BTreeMap<Invariant, Found> = BTreeMap::new();
        let mut scan = table.view.scan(&KeyRange::all())?;
        while let Some(members) = scan.next()? {
            let key = members[0].key;
            unknown_keys(&table, &mut rows, Some(key), &mut counts, &mut found).await?;
            let of_key = rows.take(key).await?;
            let stored = ScdTable::stored(key, &members);
            let told = table.told(&stored);
            let flags = flags(&table, &told, &origins.late(&told.members));
            counts.keys += 1;
            counts.events += event_count(&table, &told) as u64;
            for (is_set, count) in [
                (flags.is_deleted, &mut counts.deleted),
                (flags.has_gaps, &mut counts.with_gaps),
                (flags.is_late, &mut counts.late),
                (flags.has_tie, &mut counts.ties),
            ] {
                *count += u64::from(is_set);
            }
            count_rows(&mut counts, &of_key);
            let latest = told.latest(table.floor());
            let of_key: Vec<StoredRow> = of_key.iter().map(stored_row).collect();
            for violation in violations(table.spec.scd_type, &told, latest, &of_key, &table.rows) {
                add(&table, key, &violation, &mut found)?;
            }
        }
        unknown_keys(&table, &mut rows, None, &mut counts, &mut found).await?;
        let invariants = Invariant::of(table.spec.scd_type).iter().map(|invariant| {
            let found = found.remove(invariant).unwrap_or_default();
            let keys = found.examples.iter().map(|(key, _)| key.as_slice());
            let keys = match found.examples.is_empty() {
                true => Vec::new(),
                false => value::key_parts(&table.key_codec, &table.key_names, keys)?,
            };
            let examples = keys.into_iter().zip(&found.examples);
            Ok(InvariantCount {
                invariant: *invariant,
                violations: found.violations,
                examples: examples.map(|(key, (_, what))| CheckExample { key, what: what.clone() }).collect(),
            })
        });
        Ok(ScdCheck {
            table: table.label.clone(),
            scd_type: table.spec.scd_type,
            counts,
            invariants: invariants.collect::<Result<_>>()?,
        })
    }
}

fn stored_row(row: &TargetRow) -> StoredRow<'_> {
    StoredRow { interval: row.interval(), values: &row.values }
}

fn count_rows(counts: &mut KeyCounts, rows: &[TargetRow]) {
    counts.rows += rows.len() as u64;
    counts.open_rows += rows.iter().filter(|row| row.end.is_none()).count() as u64;
}

/// Rows of keys that no event has, below `key`.
async fn unknown_keys(
    table: &ScdTable,
    rows: &mut TargetRows,
    key: Option<&[u8]>,
    counts: &mut KeyCounts,
    found: &mut BTreeMap<Invariant, Found>,
) -> Result<()> {
    while let Some(unknown) = rows.next_below(key).await? {
        let of_key = rows.take(&unknown).await?;
        count_rows(counts, &of_key);
        for row in &of_key {
            let spans = vec![row.interval()];
            add(table, &unknown, &Violation { invariant: Invariant::RowsComeFromEvents, rows: spans }, found)?;
        }
    }
    Ok(())
}

fn add(table: &ScdTable, key: &[u8], violation: &Violation<'_>, found: &mut BTreeMap<Invariant, Found>) -> Result<()> {
    let found = found.entry(violation.invariant).or_default();
    found.violations += 1;
    // A row without a key can't be told by it.
    if found.examples.len() < EXAMPLES && !key.is_empty() {
        found.examples.push((key.to_vec(), words(table, violation)?));
    }
    Ok(())
}

/// The rows of a violation in words: `[3, 7) and [5, open)`.
fn words(table: &ScdTable, violation: &Violation<'_>) -> Result<String> {
    let sequence = |bytes: Option<&[u8]>, absent: &str| match bytes {
        Some(bytes) => value::sequence(&table.sequence_codec, bytes),
        None => Ok(absent.to_string()),
    };
    let spans = violation.rows.iter().map(|row| match table.spec.scd_type {
        ScdType::One => Ok("a row".to_string()),
        ScdType::Two => Ok(format!("[{}, {})", sequence(row.start, "NULL")?, sequence(row.end, "open")?)),
    });
    let spans: Vec<String> = spans.collect::<Result<_>>()?;
    Ok(match (violation.invariant, spans.is_empty()) {
        (_, true) => "no row".to_string(),
        (Invariant::EventsShowAsRows, _) => format!("{} is missing", spans.join(" and ")),
        _ => spans.join(" and "),
    })
}
