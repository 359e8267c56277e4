//! Flows may not wait for one another in a circle, be it by `depends_on` alone or together with what they read
//! (behaviours O-18). Each circle is printed whole, every edge with its place. Circles of data alone: `cycle.rs`.

use std::collections::{BTreeSet, VecDeque};

use crate::diagnostic::Diagnostic;
use crate::graph::{FlowId, Graph, Source};
use crate::settings::Settings;
use crate::text::Span;

/// `.0` must end before `.1` starts.
type Edge = (FlowId, FlowId);

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    if graph.flows.iter().all(|flow| flow.depends_on.is_empty()) {
        return;
    }
    let ordered: BTreeSet<FlowId> = graph.flows_in_order().into_iter().collect();
    if ordered.len() == graph.flows.len() {
        return;
    }
    let successors = graph.flow_successors();
    let mut cycles: Vec<Vec<FlowId>> = Vec::new();
    for flow in graph.flow_ids().filter(|flow| !ordered.contains(flow)) {
        for before in graph.order_predecessors(flow) {
            let way = shortest_way(&successors, flow, before);
            cycles.extend(way.map(|way| [before].into_iter().chain(way).collect::<Vec<_>>()));
        }
    }
    // The shortest are the clearest. Those that share an order edge with one that is told may be mended with it.
    cycles.sort_by_key(Vec::len);
    let mut told: BTreeSet<Edge> = BTreeSet::new();
    for cycle in cycles {
        let edges = cycle.windows(2).map(|pair| (pair[0], pair[1]));
        let order: Vec<Edge> =
            edges.filter(|(before, after)| graph.order_predecessors(*after).contains(before)).collect();
        if order.iter().all(|edge| !told.contains(edge)) {
            diagnostics.push(describe(graph, &cycle));
            told.extend(order);
        }
    }
}

/// The shortest way along the edges, both ends included; None if there is none.
fn shortest_way(successors: &[BTreeSet<FlowId>], from: FlowId, to: FlowId) -> Option<Vec<FlowId>> {
    let mut came_from: Vec<Option<FlowId>> = vec![None; successors.len()];
    let mut open = VecDeque::from([from]);
    while let Some(flow) = open.pop_front() {
        if flow == to {
            let mut way = vec![to];
            while let Some(before) = came_from[way[way.len() - 1].0] {
                way.push(before);
            }
            way.reverse();
            return Some(way);
        }
        for next in successors[flow.0].iter().copied().filter(|next| *next != from) {
            if came_from[next.0].is_none() {
                came_from[next.0] = Some(flow);
                open.push_back(next);
            }
        }
    }
    None
}

/// `cycle` begins and ends with the same flow; its first edge is one of order.
fn describe(graph: &Graph, cycle: &[FlowId]) -> Diagnostic {
    let names: Vec<&str> = cycle.iter().map(|id| graph.flow(*id).name.as_str()).collect();
    let edges: Vec<(Option<Span>, String)> = cycle.windows(2).map(|pair| edge(graph, (pair[0], pair[1]))).collect();
    let message = format!("flows wait for one another in a circle: {}", names.join(" → "));
    let mut diagnostic = Diagnostic::error("order-cycle", edges[0].0, message)
        .condition("CircularDependencyException")
        .reason(format!("{}; none of them could start first", edges[0].1))
        .help("take one of them out of `depends_on`");
    for (span, words) in &edges[1..] {
        if let Some(span) = span {
            diagnostic = diagnostic.label(*span, words.clone());
        }
    }
    diagnostic
}

/// Where an edge is written, and what it says.
fn edge(graph: &Graph, (before, after): Edge) -> (Option<Span>, String) {
    let (first, second) = (graph.flow(before), graph.flow(after));
    if let Some(named) = second.depends_on.iter().find(|predecessor| predecessor.flow == Some(before)) {
        return (Some(named.reference.span), format!("`{}` waits for `{}`", second.name, first.name));
    }
    let table = first.target;
    let label = &graph.dataset(table).label;
    let input = second.readings().flat_map(|reading| &reading.inputs).find_map(|input| match input.source {
        Source::Dataset { id, .. } if id == table => Some((input.span, String::new())),
        Source::Dataset { id, .. } => {
            let view = graph.dataset(id).view.as_ref()?;
            let through = format!(" through `{}`", graph.dataset(id).label);
            graph.stored_inputs(view).contains(&table).then_some((input.span, through))
        }
        _ => None,
    });
    let through = input.as_ref().map_or("", |(_, through)| through.as_str());
    let words = match first.is_default {
        true => format!("`{}` reads `{label}`{through}", second.name),
        false => format!("`{}` reads `{label}`{through}, which `{}` writes", second.name, first.name),
    };
    (input.map(|(span, _)| span), words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load::load;
    use crate::text::SourceFile;
    use crate::workspace::Workspace;

    /// Flow `f<i>` writes `t<i>`; an edge goes from any flow to any other.
    fn sql(flows: usize, reads: &BTreeSet<(usize, usize)>, waits: &BTreeSet<(usize, usize)>) -> String {
        let before = |edges: &BTreeSet<(usize, usize)>, of: usize, prefix: &str| -> Vec<String> {
            edges.iter().filter(|(_, after)| *after == of).map(|(before, _)| format!("{prefix}{before}")).collect()
        };
        let mut sql = String::new();
        for i in 0..flows {
            let joins: String = before(reads, i, "t").iter().map(|table| format!(" CROSS JOIN {table}")).collect();
            let waits = before(waits, i, "f").join(", ");
            let waits = if waits.is_empty() { waits } else { format!("DEPENDS ON ({waits}) ") };
            sql.push_str(&format!(
                "CREATE STREAMING TABLE t{i};\nCREATE FLOW f{i} {waits}AS INSERT INTO t{i} BY NAME SELECT 1 AS x FROM \
                 STREAM read_files('x', format => 'json') AS files{joins};\n"
            ));
        }
        sql
    }

    /// The oracle: who comes before whom over any number of edges.
    fn closure(flows: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<Vec<bool>> {
        let mut reach = vec![vec![false; flows]; flows];
        edges.iter().for_each(|(before, after)| reach[*before][*after] = true);
        for middle in 0..flows {
            for from in 0..flows {
                for to in 0..flows {
                    reach[from][to] |= reach[from][middle] && reach[middle][to];
                }
            }
        }
        reach
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_circle_with_an_order_edge_is_found_and_nothing_else(
            flows in 1usize..8,
            reads in prop::collection::btree_set((0usize..8, 0usize..8), 0..6),
            waits in prop::collection::btree_set((0usize..8, 0usize..8), 0..6),
        ) {
            let within = |edges: BTreeSet<(usize, usize)>| -> BTreeSet<(usize, usize)> {
                edges.into_iter().map(|(a, b)| (a % flows, b % flows)).filter(|(a, b)| a != b).collect()
            };
            let (reads, waits) = (within(reads), within(waits));
            let file = |path: &str, text: String| SourceFile { path: path.to_string(), text };
            let files = vec![file("flowbench.toml", String::new()), file("all.sql", sql(flows, &reads, &waits))];
            let pipeline = load(Workspace { folder_name: "case".to_string(), files, unreadable: Vec::new(), overrides: Vec::new() });
            let edges: BTreeSet<(usize, usize)> = reads.union(&waits).copied().collect();
            let reach = closure(flows, &edges);
            let on_a_circle = |(before, after): &(usize, usize)| reach[*after][*before];

            let circles: Vec<Vec<usize>> = pipeline
                .diagnostics
                .iter()
                .filter(|diagnostic| diagnostic.code == "order-cycle")
                .map(|diagnostic| {
                    let (_, names) = diagnostic.message.split_once(": ").unwrap();
                    names.split(" → ").map(|name| name[1..].parse().unwrap()).collect()
                })
                .collect();
            for circle in &circles {
                prop_assert_eq!(circle[0], circle[circle.len() - 1]);
                prop_assert!(circle.windows(2).all(|pair| edges.contains(&(pair[0], pair[1]))), "{:?}", circle);
                prop_assert!(circle.windows(2).any(|pair| waits.contains(&(pair[0], pair[1]))), "{:?}", circle);
            }
            prop_assert_eq!(circles.is_empty(), !waits.iter().any(on_a_circle));
            // Without circles there is an order, and it keeps to every edge.
            let order: Vec<usize> =
                pipeline.graph.flows_in_order().iter().map(|id| pipeline.graph.flow(*id).name[1..].parse().unwrap()).collect();
            prop_assert_eq!(order.len() == flows, !edges.iter().any(on_a_circle));
            for (at, flow) in order.iter().enumerate() {
                let before = edges.iter().filter(|(_, after)| after == flow).map(|(before, _)| before);
                prop_assert!(before.into_iter().all(|before| order[..at].contains(before)), "{:?}", order);
            }
        }
    }
}
