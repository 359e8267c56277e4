//! Whether the live feed of a table takes over, for every key, where its seed ends. What has run is known from the side
//! table, which keeps both ends with the newest member of each key; what hasn't, from the flow's source. Both are gone
//! through once, in order of keys.

use std::cmp::Ordering;

use arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use futures::StreamExt;
use pipeline::auto_cdc::ScdType;
use pipeline::data_type::DataType;
use pipeline::graph::{Dataset, Flow};
use pipeline::scd::compare::first_change;
use pipeline::scd::{
    CutoverCheck, CutoverFlow, CutoverRequest, Evidence, FirstChange, FirstChangeCounts, KeyCutover, Verdict,
    VerdictCount, key_words,
};
use pipeline::timeline::{Class, Cutover};

use super::as_of::failed;
use super::feed::{Codecs, Feed, ends};
use super::keys::{after, cursor};
use super::scd_table::ScdTable;
use super::target_rows::{TargetRow, TargetRows, Wanted};
use super::value;
use crate::auto_cdc::encode::KeyCodec;
use crate::auto_cdc::side::KeyRange;
use crate::auto_cdc::stored::class;
use crate::columns::Columns;
use crate::data_type::schema_from_arrow;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::state::State;

/// So many keys are shown of each verdict.
const EXAMPLES: usize = 3;

/// A target: what it is made of, and its side table if something was applied.
struct Target {
    label: String,
    scd_type: ScdType,
    key_names: Vec<String>,
    sequence: DataType,
    codecs: Codecs,
    stored: Option<(ScdTable, i64)>,
    /// The version of the newest snapshot that seeds it, or will.
    state: Option<Vec<u8>>,
}

/// A key at its cutover, as bytes.
#[derive(Clone)]
struct Entry {
    key: Vec<u8>,
    last_seeded: Option<Vec<u8>>,
    first_live: Option<Vec<u8>>,
    first_change: Option<FirstChange>,
}

impl Entry {
    fn verdict(&self) -> Option<Verdict> {
        Verdict::of(self.last_seeded.as_deref(), self.first_live.as_deref())
    }
}

impl Engine {
    /// Compares the last seeded and the first live sequence of every key of a target.
    ///
    /// # Errors
    /// `unknown-dataset`, `not-auto-cdc`; `bad-key`, `bad-value`, `unknown-key`; `no-feeds` if all its flows read snapshots
    /// again and again; `snapshot-version`; [`Error::Invalid`] if a flow that
    /// hasn't run has errors; `update-interrupted`, `table-busy`.
    pub async fn cutover_check(&self, target: &str, request: &CutoverRequest) -> Result<CutoverCheck> {
        let state = self.state_for_reading()?;
        let named = self.scd_named(target, state.as_ref())?;
        let stored = self.settled(&named).await?;
        let graph = self.graph();
        let dataset = graph.find_dataset(target).map(|id| graph.dataset(id));
        let flows: Vec<&Flow> = dataset
            .iter()
            .flat_map(|dataset| &dataset.flows)
            .map(|id| graph.flow(*id))
            // Snapshots that come again and again are neither seed nor feed.
            .filter(|flow| flow.kind.is_change() && (flow.kind.is_once() || !flow.kind.is_snapshot()))
            .collect();
        let mut known = applied(state.as_ref(), stored.as_ref().map(|(table, _)| table))?;
        let waiting: Vec<&Flow> = flows
            .iter()
            .copied()
            .filter(|flow| !known.iter().any(|(name, _)| name.eq_ignore_ascii_case(&flow.name)))
            .collect();
        if known.is_empty() && waiting.is_empty() {
            return Err(Error::user(
                "no-feeds",
                format!("`{}` has neither seed nor live feed: there is nothing to cut over", named.label),
                "snapshots that are loaded again and again are ordered by their versions; see flowbench scd check",
            ));
        }
        let (mut target, columns) = self.cutover_target(dataset, stored, &waiting).await?;
        let mut feeds = Vec::new();
        let mut evidence: Vec<(bool, CutoverFlow)> = Vec::new();
        for flow in waiting {
            let of_flow: Vec<Feed> = match &columns {
                Some(columns) if flow.kind.is_snapshot() => {
                    let last = target.stored.as_ref().and_then(|(table, _)| table.seeded_state());
                    self.waiting_snapshots(flow, columns, &target.sequence, last).await?
                }
                Some(columns) => self.feed(flow, columns, &target.sequence, None).await?.into_iter().collect(),
                None => Vec::new(),
            };
            let is_there = !of_flow.is_empty();
            let evidence_of = if is_there { Evidence::Source } else { Evidence::Nothing };
            evidence.push((flow.kind.is_once(), CutoverFlow { name: flow.name.clone(), evidence: evidence_of }));
            target.state = target.state.max(of_flow.iter().filter_map(|feed| feed.version()).max().map(<[u8]>::to_vec));
            feeds.extend(of_flow);
        }
        let are_all_applied = feeds.is_empty();
        known.sort();
        let known =
            known.into_iter().map(|(name, is_seed)| (is_seed, CutoverFlow { name, evidence: Evidence::Applied }));
        evidence.extend(known);
        let (seed_flows, live_flows): (Vec<_>, Vec<_>) = evidence.into_iter().partition(|(is_seed, _)| *is_seed);
        let plan = ends(feeds, &target.codecs)?;
        let mut check = CutoverCheck {
            target: target.label.clone(),
            scd_type: target.scd_type,
            sequence_type: target.sequence.to_string(),
            seed_flows: seed_flows.into_iter().map(|(_, flow)| flow).collect(),
            live_flows: live_flows.into_iter().map(|(_, flow)| flow).collect(),
            key_count: 0,
            verdicts: Vec::new(),
            first_changes: (target.scd_type == ScdType::Two && are_all_applied).then(FirstChangeCounts::default),
            keys: Vec::new(),
            next: None,
        };
        self.compare(&target, plan, request, &mut check).await?;
        Ok(check)
    }

    /// What the target is made of; its columns if a flow that hasn't run is to be read.
    async fn cutover_target(
        &self,
        dataset: Option<&Dataset>,
        stored: Option<(ScdTable, i64)>,
        waiting: &[&Flow],
    ) -> Result<(Target, Option<Columns>)> {
        let is_waited_for = !waiting.is_empty();
        let found = match is_waited_for {
            true => Some(self.analyse().await?),
            false => None,
        };
        if let Some(found) = found.as_ref().filter(|found| found.has_errors()) {
            return Err(Error::Invalid { diagnostics: found.diagnostics.clone() });
        }
        if let Some((table, version)) = stored {
            let columns = match is_waited_for {
                true => Some(Columns::grown(schema_from_arrow(&table.schema).map_err(Error::Internal)?)),
                false => None,
            };
            let target = Target {
                label: table.label.clone(),
                scd_type: table.spec.scd_type,
                key_names: table.key_names.clone(),
                sequence: table.spec.sequence.clone(),
                codecs: Codecs { keys: table.key_codec.clone(), sequence: table.sequence_codec.clone() },
                state: table.seeded_state().map(<[u8]>::to_vec),
                stored: Some((table, version)),
            };
            return Ok((target, columns));
        }
        let graph = self.graph();
        let nothing = || {
            Error::user(
                "nothing-stored",
                "neither seed nor live feed has run, and what their sources have isn't known".to_string(),
                "bring the first files, or give `schema => \"…\"`; see flowbench validate",
            )
        };
        let (dataset, found) = dataset.zip(found).ok_or_else(nothing)?;
        let id = graph.find_dataset(&dataset.label).ok_or_else(nothing)?;
        let columns = found.columns[id.0].clone().ok_or_else(nothing)?;
        let sequence = dataset.flows.iter().find_map(|flow| found.sequences[flow.0].clone()).ok_or_else(nothing)?;
        let change = waiting.iter().find_map(|flow| flow.change.as_ref()).ok_or_else(nothing)?;
        let keys = change
            .keys
            .iter()
            .filter_map(|key| columns.fields.iter().find(|field| field.name.eq_ignore_ascii_case(&key.value)).cloned());
        let keys: Vec<_> = keys.collect();
        let target = Target {
            label: dataset.label.clone(),
            scd_type: change.scd_type(),
            key_names: keys.iter().map(|key| key.name.clone()).collect(),
            codecs: Codecs {
                keys: KeyCodec::new(keys.into_iter().map(|key| key.data_type).collect())?,
                sequence: KeyCodec::new(vec![sequence.clone()])?,
            },
            sequence,
            stored: None,
            state: None,
        };
        Ok((target, Some(columns)))
    }

    /// Goes through all keys.
    async fn compare(
        &self,
        target: &Target,
        plan: Option<LogicalPlan>,
        request: &CutoverRequest,
        check: &mut CutoverCheck,
    ) -> Result<()> {
        let mut sources = match plan {
            Some(plan) => Some(Ends { batches: self.stream(plan, None).await?, batch: None, row: 0 }),
            None => None,
        };
        let mut intervals = match (&target.stored, check.first_changes) {
            (Some((table, version)), Some(_)) => {
                Some(TargetRows::open(self, table, *version, Wanted::Intervals).await?)
            }
            _ => None,
        };
        let mut tally = Tally::new(target, request)?;
        let mut scan = match &target.stored {
            Some((table, _)) => Some((table, table.view.scan(&KeyRange::all())?)),
            None => None,
        };
        while let Some((table, scan)) = &mut scan
            && let Some(members) = scan.next()?
        {
            let key = members[0].key;
            while let Some(entry) = next_below(&mut sources, Some(key)).await? {
                tally.add(entry, check)?;
            }
            let newest = &members[0];
            let stored = Cutover { last_seeded: newest.last_seeded, first_live: newest.first_live };
            let mut entry = Entry {
                key: key.to_vec(),
                last_seeded: stored.last_seeded.map(<[u8]>::to_vec),
                first_live: stored.first_live.map(<[u8]>::to_vec),
                first_change: None,
            };
            if let Some(sources) = &mut sources
                && let Some(source) = sources.take(key).await?
            {
                entry.last_seeded = entry.last_seeded.max(source.last_seeded);
                entry.first_live = match (entry.first_live, source.first_live) {
                    (Some(stored), Some(source)) => Some(stored.min(source)),
                    (stored, source) => stored.or(source),
                };
            }
            if let Some(intervals) = &mut intervals {
                while let Some(unknown) = intervals.next_below(Some(key)).await? {
                    intervals.take(&unknown).await?;
                }
                let rows = intervals.take(key).await?;
                let rows: Vec<_> = rows.iter().map(TargetRow::interval).collect();
                let stored = ScdTable::stored(key, &members);
                entry.first_change = first_change(&table.told(&stored), &rows);
            }
            tally.add(entry, check)?;
        }
        while let Some(entry) = next_below(&mut sources, None).await? {
            tally.add(entry, check)?;
        }
        tally.finish(check)
    }
}

/// The feeds that have applied events: name, and whether it is a seed.
fn applied(state: Option<&State>, stored: Option<&ScdTable>) -> Result<Vec<(String, bool)>> {
    let Some(table) = stored else { return Ok(Vec::new()) };
    let mut known: Vec<(String, bool)> = Vec::new();
    let manifest = table.view.manifest();
    for flow in manifest.flows.iter().filter(|flow| class(flow.class) != Class::Snapshot) {
        let renamed = state.map(|state| state.flow_by_id(&flow.id)).transpose()?.flatten();
        let name = renamed.map_or_else(|| flow.name.clone(), |flow| flow.name);
        let is_seed = class(flow.class).is_seed();
        if !known.iter().any(|(known, _)| *known == name) {
            known.push((name, is_seed));
        }
    }
    Ok(known)
}

/// The next key of the sources, as long as it is below `key`.
async fn next_below(sources: &mut Option<Ends>, key: Option<&[u8]>) -> Result<Option<Entry>> {
    match sources {
        Some(sources) => sources.take_if(|found| key.is_none_or(|key| found < key)).await,
        None => Ok(None),
    }
}

/// What the sources of flows that haven't run say, in order of keys.
struct Ends {
    batches: SendableRecordBatchStream,
    batch: Option<RecordBatch>,
    row: usize,
}

impl Ends {
    async fn take(&mut self, key: &[u8]) -> Result<Option<Entry>> {
        self.take_if(|found| found.cmp(key) == Ordering::Equal).await
    }

    async fn take_if(&mut self, wanted: impl Fn(&[u8]) -> bool) -> Result<Option<Entry>> {
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.num_rows()) {
            self.batch = self.batches.next().await.transpose().map_err(failed)?;
            self.row = 0;
            if self.batch.is_none() {
                return Ok(None);
            }
        }
        let Some(batch) = &self.batch else { return Ok(None) };
        let cell = |column: usize| {
            let array: &BinaryArray = batch.column(column).as_binary();
            array.is_valid(self.row).then(|| array.value(self.row).to_vec())
        };
        let key = cell(0).unwrap_or_default();
        if !wanted(&key) {
            return Ok(None);
        }
        let entry = Entry { key, last_seeded: cell(1), first_live: cell(2), first_change: None };
        self.row += 1;
        Ok(Some(entry))
    }
}

/// Counts, examples and the page that was asked for.
struct Tally<'t> {
    target: &'t Target,
    request: &'t CutoverRequest,
    key: Option<Vec<u8>>,
    /// The key that was asked for has an event.
    has_key: bool,
    search: Option<String>,
    after: Option<Vec<u8>>,
    counts: [(u64, Vec<Entry>); Verdict::ALL.len()],
    /// Keys that may be on the page; their texts decide.
    candidates: Vec<Entry>,
    /// The last key of the page.
    last: Vec<u8>,
}

/// So many keys are made texts at once.
const KEYS_AT_ONCE: usize = 1024;

impl<'t> Tally<'t> {
    fn new(target: &'t Target, request: &'t CutoverRequest) -> Result<Tally<'t>> {
        let key = match request.key.is_empty() {
            true => None,
            false => Some(value::parse_key(&target.codecs.keys, &target.key_names, &request.key)?),
        };
        Ok(Tally {
            target,
            request,
            key,
            has_key: false,
            search: request.search.as_deref().map(str::to_lowercase),
            after: request.after.as_deref().map(after).transpose()?,
            counts: Default::default(),
            candidates: Vec::new(),
            last: Vec::new(),
        })
    }

    fn add(&mut self, mut entry: Entry, check: &mut CutoverCheck) -> Result<()> {
        let (last_seeded, first_live) = (entry.last_seeded.as_deref(), entry.first_live.as_deref());
        let cutover = Cutover { last_seeded, first_live }.with_state(self.target.state.as_deref());
        entry.last_seeded = cutover.last_seeded.map(<[u8]>::to_vec);
        // Without a verdict it is a periodic snapshot's alone.
        let Some(verdict) = entry.verdict() else { return Ok(()) };
        check.key_count += 1;
        self.has_key |= self.key.as_ref().is_some_and(|key| *key == entry.key);
        if let (Some(counts), Some(change)) = (&mut check.first_changes, entry.first_change) {
            counts.add(change);
        }
        let is_wanted = self.request.verdict.is_none_or(|wanted| wanted == verdict)
            && self.key.as_ref().is_none_or(|key| *key == entry.key)
            && self.after.as_ref().is_none_or(|after| entry.key >= *after);
        let is_full = self.request.limit == 0 || check.next.is_some();
        if is_wanted && !is_full {
            self.candidates.push(entry.clone());
            if self.candidates.len() == KEYS_AT_ONCE {
                self.page(check)?;
            }
        }
        let (count, examples) = &mut self.counts[verdict as usize];
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(entry);
        }
        Ok(())
    }

    /// Puts candidates on the page, as long as there is room.
    fn page(&mut self, check: &mut CutoverCheck) -> Result<()> {
        let candidates = std::mem::take(&mut self.candidates);
        let keys = self.told(&candidates)?;
        for (entry, told) in candidates.into_iter().zip(keys) {
            let is_wanted =
                self.search.as_deref().is_none_or(|search| key_words(&told.key).to_lowercase().contains(search));
            if !is_wanted {
                continue;
            }
            if check.keys.len() == self.request.limit {
                check.next = Some(cursor(&self.last));
                return Ok(());
            }
            check.keys.push(told);
            self.last = entry.key;
        }
        Ok(())
    }

    fn told(&self, entries: &[Entry]) -> Result<Vec<KeyCutover>> {
        let codecs = &self.target.codecs;
        let keys = entries.iter().map(|entry| entry.key.as_slice());
        let keys = match entries.is_empty() {
            true => Vec::new(),
            false => value::key_parts(&codecs.keys, &self.target.key_names, keys)?,
        };
        let sequence = |bytes: &Option<Vec<u8>>| {
            bytes.as_deref().map(|bytes| value::sequence(&codecs.sequence, bytes)).transpose()
        };
        let told = entries.iter().zip(keys).filter_map(|(entry, key)| Some((entry, key, entry.verdict()?)));
        told.map(|(entry, key, verdict)| {
            Ok(KeyCutover {
                key,
                verdict,
                last_seeded: sequence(&entry.last_seeded)?,
                first_live: sequence(&entry.first_live)?,
                first_change: entry.first_change,
            })
        })
        .collect()
    }

    fn finish(mut self, check: &mut CutoverCheck) -> Result<()> {
        self.page(check)?;
        if let Some(key) = self.key.as_deref().filter(|_| !self.has_key) {
            let names = &self.target.key_names;
            let key = value::key_parts(&self.target.codecs.keys, names, [key])?.remove(0);
            let label = &self.target.label;
            return Err(Error::user(
                "unknown-key",
                format!("neither seed nor live feed of `{label}` has an event of key {}", key_words(&key)),
                "leave --key out to see all keys".to_string(),
            ));
        }
        let of_verdict = |(verdict, (keys, examples)): (Verdict, &(u64, Vec<Entry>))| {
            Ok(VerdictCount { verdict, keys: *keys, examples: self.told(examples)? })
        };
        check.verdicts = Verdict::ALL.into_iter().zip(&self.counts).map(of_verdict).collect::<Result<_>>()?;
        Ok(())
    }
}
