//! Which flow comes before which: data edges (who writes what a flow reads) and order edges (`depends_on`).
//!
//! Order is about when a flow starts and nothing else: not its trigger, its mode, or whether it is a once flow.
//! Not here: what the names in `depends_on` may be (`validate`), and when a flow of an update starts (`schedule`).

use std::collections::BTreeSet;

use crate::graph::{FlowId, Graph};

impl Graph {
    /// The flows that write what `flow` reads, through views too, without itself.
    pub fn data_predecessors(&self, flow: FlowId) -> BTreeSet<FlowId> {
        self.flow(flow)
            .readings()
            .flat_map(|reading| self.stored_inputs(reading))
            .flat_map(|id| self.dataset(id).flows.iter().copied())
            .filter(|other| *other != flow)
            .collect()
    }

    /// The flows that `flow` names in `depends_on`, without itself.
    pub fn order_predecessors(&self, flow: FlowId) -> BTreeSet<FlowId> {
        let named = self.flow(flow).depends_on.iter().filter_map(|predecessor| predecessor.flow);
        named.filter(|other| *other != flow).collect()
    }

    /// The flows that must have ended before `flow` may start, by data or by order.
    pub fn predecessors(&self, flow: FlowId) -> BTreeSet<FlowId> {
        let mut flows = self.data_predecessors(flow);
        flows.extend(self.order_predecessors(flow));
        flows
    }

    /// Names of the flows that `flow` waits for by `depends_on`, in the order they are written.
    pub fn order_names(&self, flow: FlowId) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for id in self.flow(flow).depends_on.iter().filter_map(|predecessor| predecessor.flow) {
            let name = self.flow(id).name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The flows that follow each flow directly; by [`FlowId`].
    pub fn flow_successors(&self) -> Vec<BTreeSet<FlowId>> {
        let mut successors = vec![BTreeSet::new(); self.flows.len()];
        for flow in self.flow_ids() {
            for before in self.predecessors(flow) {
                successors[before.0].insert(flow);
            }
        }
        successors
    }

    /// Flows such that each comes after its predecessors; beyond that as their datasets come, then as the files
    /// have them. Those on a cycle, and behind one, are left out.
    pub fn flows_in_order(&self) -> Vec<FlowId> {
        let by_dataset: Vec<FlowId> =
            self.topological_order().into_iter().flat_map(|id| self.dataset(id).flows.iter().copied()).collect();
        if self.flows.iter().all(|flow| flow.depends_on.is_empty()) {
            return by_dataset;
        }
        let mut rank = vec![usize::MAX; self.flows.len()];
        for (position, flow) in by_dataset.iter().enumerate() {
            rank[flow.0] = position;
        }
        let successors = self.flow_successors();
        let mut missing: Vec<usize> = self.flow_ids().map(|flow| self.predecessors(flow).len()).collect();
        let mut ready: BTreeSet<(usize, FlowId)> = self
            .flow_ids()
            .filter(|flow| missing[flow.0] == 0 && rank[flow.0] != usize::MAX)
            .map(|flow| (rank[flow.0], flow))
            .collect();
        let mut order = Vec::new();
        while let Some((_, flow)) = ready.pop_first() {
            order.push(flow);
            for next in successors[flow.0].iter().copied() {
                missing[next.0] -= 1;
                if missing[next.0] == 0 && rank[next.0] != usize::MAX {
                    ready.insert((rank[next.0], next));
                }
            }
        }
        order
    }
}
