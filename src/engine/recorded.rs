//! What state.db has on record of datasets, flows and their sources, read at once: an analysis asks for all of it.
//!
//! Not here: what an update decides from (`history`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pipeline::definition::DatasetKind;
use pipeline::graph::{Dataset, Flow};
use pipeline::plan::History;

use crate::auto_cdc::spec::TargetSpec;
use crate::auto_cdc::target::side_folder;
use crate::error::Result;
use crate::history::history;
use crate::source::files::SourceSchema;
use crate::state::{self, Stamp, State, state_stamp};

/// The records, by names in lower case.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    kinds: HashMap<String, DatasetKind>,
    flows: HashMap<(String, String), state::Flow>,
    /// The schemas (JSON) of the checkpoints in force, by flow id and the source's key.
    schemas: HashMap<(String, String), Option<String>>,
    /// What the targets of AUTO CDC were built with.
    targets: HashMap<String, TargetSpec>,
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
                let facts =
                    Arc::new(Facts { recorded: Recorded::read(Some(state), storage)?, history: history(state)? });
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
    pub fn read(state: Option<&State>, storage: &Path) -> Result<Recorded> {
        let Some(state) = state else { return Ok(Recorded::default()) };
        let datasets = state.datasets()?;
        let mut targets = HashMap::new();
        for dataset in &datasets {
            let side_folder = side_folder(&storage.join(&dataset.table_path), dataset.generation);
            // One that is damaged is reported by the flows that write the table; a full refresh builds it anew.
            let recorded = TargetSpec::recorded(&side_folder).ok().flatten();
            targets.extend(recorded.map(|spec| (dataset.dataset.clone(), spec)));
        }
        Ok(Recorded {
            targets,
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

    /// What the table of a dataset was built with, if that is a target of AUTO CDC.
    pub fn target(&self, dataset: &Dataset) -> Option<&TargetSpec> {
        self.targets.get(&dataset.name.key())
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
