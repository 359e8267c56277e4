//! Generations as a table's `txn` actions tell them: of the flows that wrote it, and of its promotions. They
//! show when state.db is an older copy than the table (architecture, "Lost state").
//!
//! Not here: the batches within a generation, which `pipeline::resume` decides on.

use std::collections::BTreeMap;

use pipeline::graph::{Dataset, Graph};
use pipeline::resume::{Refusal, newer_generation};

use crate::error::{Error, Result};
use crate::state::State;
use crate::table::Table;
use crate::update::FLOW_PROPERTY;

/// The application id of a flow's `txn` in its table: its own id, kept when it is renamed, and the generation,
/// whose batch ids start anew.
pub(crate) fn flow_app_id(flow_id: &str, generation: i64) -> String {
    format!("{flow_id}:{generation}")
}

/// The application id under which a promoting commit records the generation it put in force.
pub(crate) fn dataset_app_id(dataset: &str) -> String {
    format!("{PROMOTION}{dataset}")
}

const PROMOTION: &str = "flowbench:generation:";

/// The newest generation that a promoting commit has put into the table.
pub(crate) fn promoted_in(table: &Table, dataset: &str) -> Option<i64> {
    table.txn(&dataset_app_id(dataset))
}

/// The newest generation in which each flow has written the table, by flow id.
pub(crate) fn flows_in(table: &Table) -> BTreeMap<&str, i64> {
    let mut flows: BTreeMap<&str, i64> = BTreeMap::new();
    for app_id in table.all_txns().keys().filter(|app_id| !app_id.starts_with(PROMOTION)) {
        let Some((flow_id, generation)) = app_id.rsplit_once(':') else { continue };
        let Ok(generation) = generation.parse() else { continue };
        let newest = flows.entry(flow_id).or_insert(generation);
        *newest = generation.max(*newest);
    }
    flows
}

/// Refuses to go on with a table that was written after this state.db was.
///
/// # Errors
/// `state-behind-table`.
pub(crate) fn refuse_older_state(state: &State, graph: &Graph, dataset: &Dataset, table: &Table) -> Result<()> {
    let refuse = |of: String, refusal: Refusal| {
        Err(Error::user(refusal.code(), format!("{of}: {}", refusal.reason()), refusal.help()))
    };
    let key = dataset.name.key();
    let recorded = state.dataset(&key)?.map(|recorded| recorded.generation);
    if let Some(refusal) = newer_generation(promoted_in(table, &key), recorded) {
        return refuse(format!("table `{}`", dataset.label), refusal);
    }
    let in_table = flows_in(table);
    let properties = table.properties();
    for flow in dataset.flows.iter().map(|id| graph.flow(*id)) {
        let Some(record) = state.flow(&key, &flow.name)? else { continue };
        let of = format!("flow `{}` into `{}`", flow.name, dataset.label);
        if let Some(refusal) = newer_generation(in_table.get(record.flow_id.as_str()).copied(), Some(record.generation))
        {
            return refuse(of, refusal);
        }
        // A flow of this name has written the table under an id that this state.db never gave.
        let ids = properties.iter().filter(|(_, name)| name.eq_ignore_ascii_case(&flow.name));
        for flow_id in ids.filter_map(|(key, _)| key.strip_prefix(FLOW_PROPERTY)) {
            let known = state.flow_by_id(flow_id)?.map(|flow| flow.generation);
            if let Some(refusal) = newer_generation(in_table.get(flow_id).copied(), known) {
                return refuse(of, refusal);
            }
        }
    }
    Ok(())
}
