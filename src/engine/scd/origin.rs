//! Where events came from: flow, micro-batch, update, source file and record. Side tables keep numbers; the names are
//! state.db's, as far as it reaches back.

use std::collections::HashMap;

use pipeline::scd::EventPlace;
use pipeline::timeline::{Class, Member, Origin};

use crate::auto_cdc::side;
use crate::auto_cdc::stored::class;
use crate::engine::Engine;
use crate::error::Result;
use crate::flow::inputs::in_order;
use crate::source::table_stream::TableOffset;
use crate::state::{PlannedInput, Source, SourceFile, State};

/// When a batch was committed, and by which update.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    committed_us: Option<i64>,
    update: Option<i64>,
}

/// What is known of the batches of a target's flows.
pub(super) struct Origins {
    /// By number of the flow in the side table.
    flows: Vec<side::Flow>,
    arrivals: HashMap<Origin, Arrival>,
}

/// What a batch read of one source.
struct BatchSource {
    name: String,
    is_table: bool,
    /// Up to which version a table was read, if that is on record.
    version: Option<u64>,
    files: Vec<String>,
}

/// So many sources are named of a snapshot.
const SOURCES_NAMED: usize = 3;

/// Places of events, their batches looked up once each.
pub(super) struct Places<'o> {
    origins: &'o Origins,
    engine: &'o Engine,
    state: Option<State>,
    sources: HashMap<Origin, Vec<BatchSource>>,
}

impl Origins {
    /// Reads what state.db has on record of the flows in `flows`.
    pub fn read(state: Option<&State>, flows: &[side::Flow]) -> Result<Origins> {
        let mut origins = Origins { flows: flows.to_vec(), arrivals: HashMap::new() };
        let Some(state) = state else { return Ok(origins) };
        for (number, flow) in origins.flows.iter_mut().enumerate() {
            // A flow may have another name by now.
            if let Some(known) = state.flow_by_id(&flow.id)? {
                flow.name = known.name;
            }
            for batch in state.batches_after(&flow.id, flow.generation, -1)? {
                let origin = Origin { flow: number as u32, batch: batch.batch_id as u64 };
                let arrival = Arrival { committed_us: batch.committed_us, update: batch.update_id };
                origins.arrivals.insert(origin, arrival);
            }
        }
        Ok(origins)
    }

    /// A flow's name.
    pub fn flow(&self, number: u32) -> &str {
        self.flows.get(number as usize).map_or("?", |flow| &flow.name)
    }

    /// Of what kind a flow was when it wrote.
    pub fn class(&self, number: u32) -> Class {
        self.flows.get(number as usize).map_or(Class::Live, |flow| class(flow.class))
    }

    /// The update that ran the batch, if that is on record.
    pub fn update(&self, origin: Origin) -> Option<i64> {
        self.arrivals.get(&origin)?.update
    }

    /// For each member, oldest first, whether it was applied after one of a later sequence.
    pub fn late(&self, members: &[Member<'_>]) -> Vec<bool> {
        let mut is_late = vec![false; members.len()];
        let mut earliest: Option<i64> = None;
        let mut first_batches: HashMap<u32, u64> = HashMap::new();
        for (member, is_late) in members.iter().zip(&mut is_late).rev() {
            let Origin { flow, batch } = member.origin;
            let arrived = self.arrivals.get(&member.origin).and_then(|arrival| arrival.committed_us);
            let first_batch = first_batches.entry(flow).or_insert(batch);
            // Batches of one flow are in order even if nothing else of them is known.
            *is_late = *first_batch < batch || earliest.is_some_and(|earliest| arrived.is_some_and(|at| earliest < at));
            *first_batch = batch.min(*first_batch);
            earliest = match (earliest, arrived) {
                (Some(earliest), Some(arrived)) => Some(earliest.min(arrived)),
                (earliest, arrived) => earliest.or(arrived),
            };
        }
        is_late
    }

    /// Looks up places.
    pub fn places<'o>(&'o self, engine: &'o Engine) -> Result<Places<'o>> {
        Ok(Places { origins: self, engine, state: engine.state_for_reading()?, sources: HashMap::new() })
    }
}

impl Places<'_> {
    /// Where an event stood.
    pub fn of(&mut self, origin: Origin, position: [u64; 3]) -> Result<EventPlace> {
        let [major, minor, row] = position;
        // All zeros in a later batch: the query has lost the position.
        let is_known = position != [0; 3] || origin.batch == 0;
        let sources = self.sources(origin)?;
        let record = is_known.then_some(row + 1);
        let mut files = sources
            .iter()
            .filter(|source| !source.is_table && !source.files.is_empty())
            .map(|source| source.files.get(usize::try_from(minor).unwrap_or(usize::MAX)));
        let mut tables = sources.iter().filter(|source| source.is_table);
        Ok(match (files.next(), files.next(), tables.next(), tables.next()) {
            (Some(file), None, None, _) if is_known => {
                EventPlace { source: file.cloned(), version: None, file: minor + 1, record }
            }
            (None, _, Some(table), None) => {
                let version = is_known.then_some(major);
                EventPlace { source: Some(table.name.clone()), version, file: minor + 1, record }
            }
            // Of several sources nobody knows which one it was.
            _ => EventPlace { source: None, version: None, file: minor + 1, record },
        })
    }

    /// What a whole batch read: where it is told that a key is absent.
    pub fn of_batch(&mut self, origin: Origin) -> Result<EventPlace> {
        let sources = self.sources(origin)?;
        let files = || sources.iter().flat_map(|source| &source.files);
        let mut tables = sources.iter().filter(|source| source.is_table);
        if let (None, Some(table), None) = (files().next(), tables.next(), tables.next()) {
            return Ok(EventPlace { source: Some(table.name.clone()), version: table.version, file: 1, record: None });
        }
        let tables = sources.iter().filter(|source| source.is_table).map(|source| &source.name);
        let names: Vec<&str> = files().chain(tables).map(String::as_str).collect();
        let more = names.len().saturating_sub(SOURCES_NAMED);
        let named = names[..names.len() - more].join(", ");
        let source = match (names.len(), more) {
            (0, _) => None,
            (_, 0) => Some(named),
            (_, more) => Some(format!("{named} and {more} more")),
        };
        Ok(EventPlace { source, version: None, file: 1, record: None })
    }

    fn sources(&mut self, origin: Origin) -> Result<&[BatchSource]> {
        if !self.sources.contains_key(&origin) {
            let sources = self.sources_of(origin)?;
            self.sources.insert(origin, sources);
        }
        Ok(&self.sources[&origin])
    }

    fn sources_of(&self, origin: Origin) -> Result<Vec<BatchSource>> {
        let flow = self.origins.flows.get(origin.flow as usize);
        let (Some(state), Some(flow)) = (&self.state, flow) else { return Ok(Vec::new()) };
        let (flow_id, generation, batch) = (&flow.id, flow.generation, origin.batch as i64);
        let planned = state.batch_inputs(flow_id, generation, batch)?;
        let read = state.batch_sources(flow_id, generation, batch)?.into_iter().map(|(source, files)| {
            let planned = planned.iter().find(|planned| planned.source_id == source.source_id);
            self.batch_source(&source, planned, &files)
        });
        read.collect()
    }

    fn batch_source(
        &self,
        source: &Source,
        planned: Option<&PlannedInput>,
        files: &[SourceFile],
    ) -> Result<BatchSource> {
        let key = source.source.split(" #").next().unwrap_or_default();
        let table = key.strip_prefix("table ").filter(|_| files.is_empty());
        let graph = self.engine.graph();
        let label = table.map(|key| {
            let dataset = graph.datasets.iter().find(|dataset| dataset.name.key() == key);
            dataset.map_or(key, |dataset| &dataset.label).to_string()
        });
        let end = planned.and_then(|planned| planned.end_offset.as_deref()).filter(|_| table.is_some());
        // It ends before a version.
        let end = end.map(TableOffset::from_json).transpose()?.and_then(|end| end.version.checked_sub(1));
        Ok(BatchSource {
            is_table: table.is_some(),
            name: label.unwrap_or_default(),
            version: end.and_then(|version| u64::try_from(version).ok()),
            files: in_order(files).into_iter().map(|file| file.path.clone()).collect(),
        })
    }
}
