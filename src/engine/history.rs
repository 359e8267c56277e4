//! What state.db knows of the flows, as the facts that planning takes.

use pipeline::graph::{Flow, Graph};
use pipeline::plan::history::source_names;
use pipeline::plan::{FlowHistory, History};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::state::{self, RunState, State};

/// A flow's definition as it is recorded when it runs, to be compared with later ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedDefinition {
    pub query: String,
    pub sources: Vec<String>,
}

impl RecordedDefinition {
    /// The definition of a flow as the files have it now.
    pub fn of(graph: &Graph, flow: &Flow) -> RecordedDefinition {
        RecordedDefinition {
            query: flow.reading.query.fingerprint_text.clone(),
            sources: source_names(graph, &flow.reading),
        }
    }

    /// The text for state.db.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a definition is plain data")
    }
}

/// A short name for a query's text: equal texts, equal hashes.
pub(crate) fn definition_hash(query: &str) -> String {
    Sha256::digest(query.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The history of every flow that ever ran here.
pub(crate) fn history(state: &State) -> Result<History> {
    let last = state.last_update_flows()?;
    let flows = state.flows()?.into_iter().map(|flow| flow_history(state, flow, &last)).collect::<Result<_>>()?;
    Ok(History { flows })
}

fn flow_history(state: &State, flow: state::Flow, last: &[state::UpdateFlow]) -> Result<FlowHistory> {
    let recorded: Option<RecordedDefinition> = match &flow.definition {
        Some(text) => Some(
            serde_json::from_str(text)
                .map_err(|e| Error::Internal(format!("the recorded definition of flow `{}`: {e}", flow.name)))?,
        ),
        None => None,
    };
    let mut known_files = 0;
    for source in state.sources(&flow.flow_id, flow.generation)? {
        known_files += state.known_file_count(source.source_id)? as u64;
    }
    let known = state.known_batches(&flow.flow_id, flow.generation)?;
    let has_failed = last.iter().any(|ran| {
        ran.flow.eq_ignore_ascii_case(&flow.name)
            && matches!(ran.state, RunState::Failed | RunState::Skipped | RunState::Canceled)
    });
    Ok(FlowHistory {
        is_once: flow.kind.is_once(),
        is_done: flow.completion.is_some(),
        has_failed,
        // Only a run records a definition, so for a done once flow this is the one that made its rows.
        definition: recorded.as_ref().map(|recorded| recorded.query.clone()).unwrap_or_default(),
        sources: recorded.map(|recorded| recorded.sources).unwrap_or_default(),
        known_files,
        has_checkpoint: known.committed.is_some(),
        is_retired: flow.is_retired,
        name: flow.name,
        dataset: flow.dataset,
    })
}
