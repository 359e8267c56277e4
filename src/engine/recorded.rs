//! What state.db has on record of datasets, flows and their sources, read at once: an analysis asks for all of it.
//!
//! Not here: what an update decides from (`history`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pipeline::definition::DatasetKind;
use pipeline::graph::{Dataset, Flow};
use pipeline::plan::History;

use crate::error::Result;
use crate::history::history;
use crate::source::files::SourceSchema;
use crate::state::{self, Stamp, State, state_stamp};

/// The records, by names in lower case.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    kinds: HashMap<String, DatasetKind>,
    generations: HashMap<String, i64>,
    flows: HashMap<(String, String), state::Flow>,
    /// The schemas (JSON) of the checkpoints in force, by flow id and the source's key.
    schemas: HashMap<(String, String), Option<String>>,
}

/// The records with the history of the flows.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub recorded: Recorded,
    pub history: History,
}

/// The facts as of the last change of state.db. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownFacts {
    known: Arc<Mutex<Option<StampedFacts>>>,
}

/// The storage folder, when it was read, and what was there.
type StampedFacts = (PathBuf, Option<Stamp>, Arc<Facts>);

impl KnownFacts {
    /// Reads the facts if state.db has changed since.
    pub fn get(&self, storage: &Path, state: Option<&State>) -> Result<Arc<Facts>> {
        let Some(state) = state else { return Ok(Arc::default()) };
        let stamp = state_stamp(storage);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((folder, before, facts)) if folder == storage && *before == stamp => Ok(facts.clone()),
            _ => {
                let facts = Arc::new(Facts { recorded: Recorded::read(Some(state))?, history: history(state)? });
                *known = Some((storage.to_path_buf(), stamp, facts.clone()));
                Ok(facts)
            }
        }
    }
}

/// The schema that a flow's checkpoint reads a source with.
pub(crate) enum StoredSchema {
    Schema(SourceSchema),
    /// The flow is done and had nothing to read; its source is not listed again.
    DoneWithout,
    Unknown,
}

impl Recorded {
    /// Reads the records; nothing before the first update.
    pub fn read(state: Option<&State>) -> Result<Recorded> {
        let Some(state) = state else { return Ok(Recorded::default()) };
        let datasets = state.datasets()?;
        Ok(Recorded {
            generations: datasets.iter().map(|dataset| (dataset.dataset.clone(), dataset.generation)).collect(),
            kinds: datasets.into_iter().map(|dataset| (dataset.dataset, dataset.kind)).collect(),
            flows: state
                .flows()?
                .into_iter()
                .map(|flow| ((flow.dataset.to_lowercase(), flow.name.to_lowercase()), flow))
                .collect(),
            schemas: state
                .all_sources()?
                .into_iter()
                .map(|source| ((source.flow_id, source.source), source.schema))
                .collect(),
        })
    }

    /// What the dataset was when it was applied last.
    pub fn kind(&self, dataset: &Dataset) -> Option<DatasetKind> {
        self.kinds.get(&dataset.name.key()).copied()
    }

    /// The generation of the dataset's table.
    pub fn generation(&self, dataset: &Dataset) -> Option<i64> {
        self.generations.get(&dataset.name.key()).copied()
    }

    /// The record of a flow.
    pub fn flow(&self, target: &Dataset, flow: &Flow) -> Option<&state::Flow> {
        self.flows.get(&(target.name.key(), flow.name.to_lowercase()))
    }

    /// The schema that a flow's checkpoint reads the source of this key with.
    pub fn schema(&self, target: &Dataset, flow: &Flow, key: &str) -> Result<StoredSchema> {
        let Some(record) = self.flow(target, flow) else { return Ok(StoredSchema::Unknown) };
        Ok(match self.schemas.get(&(record.flow_id.clone(), key.to_string())) {
            Some(Some(text)) => StoredSchema::Schema(SourceSchema::from_json(text)?),
            _ if record.completion.is_some() => StoredSchema::DoneWithout,
            _ => StoredSchema::Unknown,
        })
    }
}
