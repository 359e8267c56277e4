//! The graph as text, Graphviz, Mermaid and JSON.

use std::collections::{BTreeMap, BTreeSet};

use pipeline::definition::DatasetKind;
use pipeline::graph::{Dataset, DatasetId, Flow, FlowId, FlowKind, Graph, Reading, ResolvedInput, Source};
use serde_json::{Value, json};

use super::event::one_line;
use super::style::Style;

/// One line a dataset, its flows below it; an empty line between layers, each layer reads those above it.
/// `←` is what a flow reads, `⇠ after` the flows it waits for.
pub fn text(graph: &Graph, style: Style) -> String {
    let layers = layers(graph);
    let name_width = graph
        .datasets
        .iter()
        .map(|dataset| dataset.label.chars().count())
        .chain(graph.flows.iter().filter(|flow| !flow.is_default).map(|flow| flow.name.chars().count() + 5))
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    let mut layer = 0;
    for (id, dataset_layer) in layers {
        let dataset = graph.dataset(id);
        if dataset_layer != layer {
            out.push('\n');
            layer = dataset_layer;
        }
        let own = own_reading(graph, dataset);
        let name = format!("{:<name_width$}", one_line(&dataset.label));
        line(
            &mut out,
            &style.bold(name),
            dataset.kind().words(),
            own.map(|reading| inputs_words(graph, reading)),
            "",
            style,
        );
        for id in named_flows(graph, dataset) {
            let flow = graph.flow(id);
            let mark = if flow.kind.is_once() { "1×" } else { "+ " };
            let name = format!("  {mark} {}", one_line(&flow.name));
            let kind = match flow.kind {
                FlowKind::Once => "backfill (append once)",
                FlowKind::CdcOnce => "seed (auto cdc once)",
                FlowKind::SnapshotOnce => "backfill (snapshot once)",
                kind => kind.words(),
            };
            let (name, inputs) = (format!("{name:<name_width$}"), inputs_words(graph, &flow.reading));
            line(&mut out, &name, kind, Some(inputs), &order_words(graph, id), style);
        }
    }
    out
}

fn line(out: &mut String, name: &str, kind: &str, inputs: Option<String>, after: &str, style: Style) {
    let inputs = inputs.filter(|inputs| !inputs.is_empty()).map(|inputs| style.dim(format!("  ← {inputs}")));
    let after = if after.is_empty() { String::new() } else { style.dim(format!("  ⇠ after {after}")) };
    let text = format!("{name}  {kind:<22}{}{after}", inputs.unwrap_or_default());
    out.push_str(text.trim_end());
    out.push('\n');
}

/// Flows that have a name of their own.
fn named_flows<'a>(graph: &'a Graph, dataset: &'a Dataset) -> impl Iterator<Item = FlowId> + use<'a> {
    dataset.flows.iter().copied().filter(|id| !graph.flow(*id).is_default)
}

/// The flows that a flow waits for by `depends_on`: `a, b`.
pub fn order_words(graph: &Graph, flow: FlowId) -> String {
    one_line(&graph.order_names(flow).join(", "))
}

/// The query written with the dataset itself: a view's, or the default flow's.
fn own_reading<'a>(graph: &'a Graph, dataset: &'a Dataset) -> Option<&'a Reading> {
    let default = dataset.flows.iter().map(|id| graph.flow(*id)).find(|flow| flow.is_default);
    default.map(|flow| &flow.reading).or(dataset.view.as_ref())
}

fn inputs_words(graph: &Graph, reading: &Reading) -> String {
    let words: Vec<String> = reading
        .inputs
        .iter()
        .filter_map(|input| {
            let name = one_line(&input_name(graph, input)?);
            Some(if input.is_stream { format!("STREAM {name}") } else { name })
        })
        .collect();
    words.join(", ")
}

/// What people call an input; None for what could not be resolved.
fn input_name(graph: &Graph, input: &ResolvedInput) -> Option<String> {
    match &input.source {
        Source::Dataset { id, .. } => Some(graph.dataset(*id).label.clone()),
        Source::External { id, .. } => Some(graph.externals[id.0].name.value.to_string()),
        Source::Files(files) => Some(files.path.clone()),
        Source::Unresolved => None,
    }
}

/// Datasets with their layer: 0 reads no other dataset, each other one more than the highest it reads.
/// Those on a cycle come last.
fn layers(graph: &Graph) -> Vec<(DatasetId, usize)> {
    let mut layer: BTreeMap<DatasetId, usize> = BTreeMap::new();
    for id in graph.topological_order() {
        let above = graph.upstream(id).iter().filter_map(|upstream| layer.get(upstream)).max();
        layer.insert(id, above.map_or(0, |above| above + 1));
    }
    let last = layer.values().max().map_or(0, |last| last + 1);
    let mut layers: Vec<(DatasetId, usize)> =
        graph.dataset_ids().map(|id| (id, layer.get(&id).copied().unwrap_or(last))).collect();
    layers.sort_by_key(|(id, layer)| (*layer, *id));
    layers
}

/// A data edge of the graph.
struct Edge {
    /// Label of a dataset, name of an external table, path of files.
    from: String,
    from_kind: &'static str,
    to: String,
    /// None for the query of a view.
    flow: Option<String>,
    is_once: bool,
    is_stream: bool,
}

fn edges(graph: &Graph) -> Vec<Edge> {
    let mut edges = Vec::new();
    for dataset in &graph.datasets {
        let flows = dataset.flows.iter().map(|id| graph.flow(*id));
        let flows = flows.flat_map(|flow| flow.readings().map(move |reading| (Some(flow), reading)));
        for (flow, reading) in flows.chain(dataset.view.iter().map(|view| (None, view))) {
            for input in &reading.inputs {
                let Some(from) = input_name(graph, input) else { continue };
                edges.push(Edge {
                    from,
                    from_kind: match input.source {
                        Source::Files(_) => "files",
                        Source::External { .. } => "external",
                        Source::Dataset { .. } | Source::Unresolved => "dataset",
                    },
                    to: dataset.label.clone(),
                    flow: flow.map(|flow| flow.name.clone()),
                    is_once: flow.is_some_and(|flow| flow.kind.is_once()),
                    is_stream: input.is_stream,
                });
            }
        }
    }
    edges
}

/// The words on an edge: the flow's name where it isn't its table's, and whether it is a backfill.
fn edge_label(edge: &Edge) -> String {
    match &edge.flow {
        Some(flow) if edge.is_once || *flow != edge.to => flow_label(flow, edge.is_once),
        _ => String::new(),
    }
}

fn flow_label(name: &str, is_once: bool) -> String {
    if is_once { format!("1× {name} (backfill)") } else { name.to_string() }
}

/// The order edges: the flow that comes first, the flow that waits for it.
fn order_edges(graph: &Graph) -> Vec<(&Flow, &Flow)> {
    let edges = |id: FlowId| graph.order_predecessors(id).into_iter().map(move |before| (before, id));
    graph.flow_ids().flat_map(edges).map(|(before, id)| (graph.flow(before), graph.flow(id))).collect()
}

/// The flows that are drawn as nodes of their own, because an order edge begins or ends there. A default flow is
/// drawn as its table.
fn flow_nodes(graph: &Graph) -> Vec<&Flow> {
    let mut nodes: Vec<&Flow> = Vec::new();
    for (before, after) in order_edges(graph) {
        for flow in [before, after] {
            if !flow.is_default && nodes.iter().all(|node| node.name != flow.name) {
                nodes.push(flow);
            }
        }
    }
    nodes
}

/// Graphviz: data edges are solid (backfills bold, batch reads with a hollow head), order edges dashed.
pub fn dot(graph: &Graph) -> String {
    let quote = |text: &str| format!("\"{}\"", one_line(text).replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = "digraph pipeline {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n".to_string();
    for dataset in &graph.datasets {
        let shape = match dataset.kind() {
            DatasetKind::StreamingTable => "shape=box",
            DatasetKind::MaterializedView => "shape=box, style=rounded",
            DatasetKind::View | DatasetKind::TemporaryView => "shape=box, style=dashed",
        };
        // The line break is dot's own escape, added after quoting.
        let label = quote(&dataset.label);
        let label = format!("{}\\n{}\"", &label[..label.len() - 1], dataset.kind().words());
        out.push_str(&format!("  {} [label={label}, {shape}];\n", quote(&dataset.label)));
    }
    let (edges, nodes) = (edges(graph), flow_nodes(graph));
    for source in sources(&edges) {
        out.push_str(&format!("  {} [shape=folder];\n", quote(source)));
    }
    let is_node = |name: &str| nodes.iter().any(|flow| flow.name == name);
    // No dataset has a name with a blank before it.
    let flow_id = |name: &str| quote(&format!(" flow {name}"));
    for flow in &nodes {
        let (style, target) = (if flow.kind.is_once() { "bold" } else { "solid" }, graph.dataset(flow.target));
        let (id, label) = (flow_id(&flow.name), quote(&flow_label(&flow.name, flow.kind.is_once())));
        out.push_str(&format!("  {id} [label={label}, shape=ellipse];\n"));
        out.push_str(&format!("  {id} -> {} [style={style}];\n", quote(&target.label)));
    }
    for edge in &edges {
        let style = match (edge.is_once, edge.is_stream) {
            (true, _) => "style=bold",
            (false, true) => "style=solid",
            (false, false) => "style=solid, arrowhead=empty",
        };
        let from = quote(&edge.from);
        out.push_str(&match edge.flow.as_deref().filter(|flow| is_node(flow)) {
            Some(flow) => format!("  {from} -> {} [{style}];\n", flow_id(flow)),
            None => format!("  {from} -> {} [label={}, {style}];\n", quote(&edge.to), quote(&edge_label(edge))),
        });
    }
    let end = |flow: &Flow| match flow.is_default {
        true => quote(&graph.dataset(flow.target).label),
        false => flow_id(&flow.name),
    };
    for (before, after) in order_edges(graph) {
        out.push_str(&format!("  {} -> {} [label=\"then\", style=dashed];\n", end(before), end(after)));
    }
    out.push_str("}\n");
    out
}

/// Mermaid, as GitHub draws it: data edges are solid (backfills thick, batch reads end in a circle), order edges
/// dotted.
pub fn mermaid(graph: &Graph) -> String {
    let edges = edges(graph);
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    let mut out = "flowchart LR\n".to_string();
    let quote = |text: &str| format!("\"{}\"", one_line(text).replace('"', "#quot;"));
    for (i, dataset) in graph.datasets.iter().enumerate() {
        let (open, close) = match dataset.kind() {
            DatasetKind::StreamingTable => ("[", "]"),
            DatasetKind::MaterializedView => ("(", ")"),
            DatasetKind::View | DatasetKind::TemporaryView => ("([", "])"),
        };
        out.push_str(&format!("  d{i}{open}{}{close}\n", quote(&dataset.label)));
        ids.insert(dataset.label.clone(), format!("d{i}"));
    }
    for (i, source) in sources(&edges).into_iter().enumerate() {
        out.push_str(&format!("  s{i}[/{}/]\n", quote(source)));
        ids.insert(format!("\0{source}"), format!("s{i}"));
    }
    let mut flow_ids: BTreeMap<&str, String> = BTreeMap::new();
    for (i, flow) in flow_nodes(graph).into_iter().enumerate() {
        let is_once = flow.kind.is_once();
        out.push_str(&format!("  f{i}{{{{{}}}}}\n", quote(&flow_label(&flow.name, is_once))));
        if let Some(target) = ids.get(&graph.dataset(flow.target).label) {
            out.push_str(&format!("  f{i} {} {target}\n", if is_once { "==>" } else { "-->" }));
        }
        flow_ids.insert(&flow.name, format!("f{i}"));
    }
    for edge in &edges {
        let from = match edge.from_kind {
            "dataset" => ids.get(&edge.from),
            _ => ids.get(&format!("\0{}", edge.from)),
        };
        let flow = edge.flow.as_deref().and_then(|flow| flow_ids.get(flow));
        let (Some(from), Some(to)) = (from, flow.or_else(|| ids.get(&edge.to))) else { continue };
        let arrow = match (edge.is_once, edge.is_stream) {
            (true, _) => "==>",
            (false, true) => "-->",
            (false, false) => "--o",
        };
        let label = if flow.is_some() { String::new() } else { edge_label(edge) };
        let label = if label.is_empty() { String::new() } else { format!("|{}|", quote(&label)) };
        out.push_str(&format!("  {from} {arrow}{label} {to}\n"));
    }
    let end = |flow: &Flow| match flow.is_default {
        true => ids.get(&graph.dataset(flow.target).label),
        false => flow_ids.get(flow.name.as_str()),
    };
    for (before, after) in order_edges(graph) {
        if let (Some(before), Some(after)) = (end(before), end(after)) {
            out.push_str(&format!("  {before} -.->|then| {after}\n"));
        }
    }
    out
}

fn sources(edges: &[Edge]) -> BTreeSet<&str> {
    edges.iter().filter(|edge| edge.from_kind != "dataset").map(|edge| edge.from.as_str()).collect()
}

/// `{datasets, flows, edges, order_edges}`: `edges` are data, `order_edges` lead from flow to flow.
pub fn value(graph: &Graph) -> Value {
    let layers: BTreeMap<DatasetId, usize> = layers(graph).into_iter().collect();
    let datasets: Vec<Value> = graph
        .dataset_ids()
        .map(|id| {
            let dataset = graph.dataset(id);
            json!({
                "name": dataset.label,
                "kind": dataset.kind(),
                "comment": dataset.definition.comment,
                "layer": layers[&id],
                "flows": dataset.flows.iter().map(|flow| graph.flow(*flow).name.as_str()).collect::<Vec<_>>(),
            })
        })
        .collect();
    let flows: Vec<Value> = graph
        .flow_ids()
        .map(|id| {
            let flow = graph.flow(id);
            json!({
                "name": flow.name,
                "dataset": graph.dataset(flow.target).label,
                "kind": flow.kind,
                "is_default": flow.is_default,
                "depends_on": graph.order_names(id),
                "comment": flow.comment,
            })
        })
        .collect();
    let edges: Vec<Value> = edges(graph)
        .into_iter()
        .map(|edge| {
            json!({
                "from": edge.from, "from_kind": edge.from_kind, "to": edge.to, "flow": edge.flow,
                "is_once": edge.is_once, "is_stream": edge.is_stream,
            })
        })
        .collect();
    let order_edges: Vec<Value> = order_edges(graph)
        .into_iter()
        .map(|(before, after)| json!({ "from": before.name, "to": after.name }))
        .collect();
    json!({ "datasets": datasets, "flows": flows, "edges": edges, "order_edges": order_edges })
}
