//! The pipeline as a graph to draw: sources, named flows and datasets as nodes, what is read as edges; whole, or
//! what is near the chosen node; schemas folded or not. Built when the files or the view change, not per frame.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pipeline::definition::DatasetKind;
use pipeline::graph::{DatasetId, FlowId, Graph, Reading, Source};

use super::known::source_name;
use super::list::Move;
use super::rows::schema_of;
use super::{App, Node};
use crate::theme::Role;
use crate::widget::dag::{self, Edge, EdgeStyle, Layout, Limits, Skips};
use crate::widget::text::width;

/// Steps up and down that a focus begins with.
const FOCUS_STEPS: usize = 1;

/// Cells for a node's name, and beside it for its glyphs, state and numbers: the first with which the graph fits
/// the width of its pane, else the last. A graph that doesn't fit is scrolled, so its names stay readable.
const NODE_CELLS: [(u16, u16); 5] = [(28, 14), (22, 14), (22, 9), (16, 9), (20, 9)];

/// Graphs of more nodes than this are not laid out several times to find what fits.
const TRIED_MAX: usize = 150;

/// Cells of a node's mark and the blank behind it.
const MARK: u16 = 2;

/// What is near a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    pub node: Node,
    pub steps: usize,
    /// Nodes that are left out.
    pub hidden: usize,
}

/// The drawing and how it is looked at.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// As the person wants it; None: by the size of the terminal.
    pub is_list: Option<bool>,
    pub focus: Option<Focus>,
    pub graph: dag::Graph,
    /// By node of the graph.
    pub nodes: Vec<Node>,
    pub layout: Option<Arc<Layout>>,
    /// Cells that the layout was made for.
    pane: u32,
    /// The first cell that is seen.
    pub scroll: (u32, u32),
    /// Where one came from on the way to the chosen node.
    came_from: Option<usize>,
    /// The chosen node has to be brought into sight at the next drawing.
    pub must_show: bool,
}

impl Picture {
    /// The node's index, if it is drawn.
    pub fn index(&self, node: &Node) -> Option<usize> {
        self.nodes.iter().position(|known| known == node)
    }

    /// Brings a node into sight at the next drawing.
    pub fn show(&mut self, node: Option<&Node>) {
        self.must_show |= node.is_some_and(|node| self.nodes.contains(node));
    }

    /// The node above or below.
    pub fn step(&mut self, from: Option<&Node>, way: Move, height: usize) -> Option<Node> {
        let layout = self.layout.as_ref()?;
        if self.nodes.is_empty() {
            return None;
        }
        let Some(at) = from.and_then(|node| self.index(node)) else { return Some(self.nodes[0].clone()) };
        let steps = match way {
            Move::Up | Move::Down => 1,
            Move::PageUp | Move::PageDown => height.max(2) / 2,
            Move::Top | Move::Bottom => usize::MAX,
        };
        let is_up = matches!(way, Move::Up | Move::PageUp | Move::Top);
        let mut node = at;
        for _ in 0..steps {
            match if is_up { layout.up(node) } else { layout.down(node) } {
                Some(next) if next != node => node = next,
                _ => break,
            }
        }
        self.came_from = None;
        Some(self.nodes[node].clone())
    }

    /// The node along an edge: to the right what reads it, to the left what it reads.
    pub fn along(&mut self, from: Option<&Node>, is_right: bool) -> Option<Node> {
        let layout = self.layout.as_ref()?;
        let at = self.index(from?)?;
        let next = match is_right {
            true => layout.right(at, self.came_from),
            false => layout.left(at, self.came_from),
        }?;
        self.came_from = Some(at);
        Some(self.nodes[next].clone())
    }
}

impl App {
    /// True if the graph is drawn as a list: by wish, else in a small terminal.
    pub fn draws_list(&self) -> bool {
        self.picture.is_list.unwrap_or(self.size.0 < 110 || self.size.1 < 30)
    }

    /// Makes the drawing from the graph as it is now; nodes stay where they were.
    pub(super) fn redraw_picture(&mut self) {
        let Some(graph) = self.known.graph() else { return };
        let empty = BTreeSet::new();
        // What is near is few enough to be seen whole.
        let folded = self.folded.as_ref().filter(|_| self.picture.focus.is_none()).unwrap_or(&empty);
        let (mut nodes, mut edges) = whole(graph, folded);
        if let Some(focus) = &mut self.picture.focus {
            (nodes, edges, focus.hidden) = near(nodes, edges, &focus.node, focus.steps);
        }
        let pane = u32::from(self.size.0.saturating_sub(if self.size.0 >= 100 { 32 } else { 2 }));
        if self.picture.layout.is_some()
            && self.picture.nodes == nodes
            && self.picture.graph.edges == edges
            && self.picture.pane == pane
        {
            return;
        }
        let mut drawn = dag::Graph { nodes: Vec::new(), edges };
        let mut laid = None;
        // A large graph is scrolled anyway, and laid out once.
        let tries = if nodes.len() > TRIED_MAX { &NODE_CELLS[NODE_CELLS.len() - 1..] } else { &NODE_CELLS[..] };
        for (name_cells, beside) in tries.iter().copied() {
            drawn.nodes = nodes
                .iter()
                .map(|node| {
                    let (name, beside) = match node {
                        Node::Source(path) => (tail(path), MARK),
                        node => (name_of(node), beside),
                    };
                    let cells = (width(name) as u16).min(name_cells) + beside;
                    dag::Node { key: key_of(node), width: cells, name: name.to_string(), column_hint: None }
                })
                .collect();
            let limits = Limits { node_width_max: name_cells + beside, skips: Skips::Lines };
            let layout = dag::layout(&drawn, self.picture.layout.as_deref(), &limits);
            let fits = layout.size().0 <= pane;
            laid = Some(Arc::new(layout));
            if fits {
                break;
            }
        }
        self.picture.layout = laid;
        self.picture.pane = pane;
        self.picture.graph = drawn;
        self.picture.nodes = nodes;
        self.picture.came_from = None;
        self.picture.must_show = true;
    }

    /// Lays the graph out as if it had never been seen.
    pub(super) fn relayout(&mut self) {
        self.picture.layout = None;
        self.picture.scroll = (0, 0);
        self.redraw_picture();
        self.say(Role::Muted, "laid out anew");
    }

    /// Draws what is near the chosen node, or all.
    pub(super) fn toggle_focus(&mut self) {
        self.picture.focus = match (&self.picture.focus, &self.chosen) {
            (Some(_), _) => None,
            (None, Some(node)) => Some(Focus { node: node.clone(), steps: FOCUS_STEPS, hidden: 0 }),
            (None, None) => None,
        };
        self.picture.layout = None;
        self.picture.scroll = (0, 0);
        self.redraw_picture();
    }

    /// Draws more or less of what is near.
    pub(super) fn change_focus(&mut self, by: isize) {
        match &mut self.picture.focus {
            Some(focus) => focus.steps = focus.steps.saturating_add_signed(by).clamp(1, 9),
            None => return self.toggle_focus(),
        }
        self.redraw_picture();
    }
}

/// A node's name as it is drawn.
pub fn name_of(node: &Node) -> &str {
    match node {
        Node::Source(name) | Node::Flow(name) | Node::Dataset(name) | Node::Schema(name) | Node::File(name) => name,
    }
}

/// The end of a path, which tells the sources of a pipeline apart: its last three parts.
pub fn tail(path: &str) -> &str {
    match path.trim_end_matches('/').rmatch_indices('/').nth(2) {
        Some((at, _)) => &path[at + 1..],
        None => path,
    }
}

fn key_of(node: &Node) -> String {
    let kind = match node {
        Node::Source(_) => 's',
        Node::Flow(_) => 'f',
        Node::Dataset(_) => 'd',
        Node::Schema(_) => 'g',
        Node::File(_) => 'p',
    };
    format!("{kind} {}", name_of(node))
}

/// All nodes and edges of a pipeline, the datasets of folded schemas as one node.
fn whole(graph: &Graph, folded: &BTreeSet<String>) -> (Vec<Node>, Vec<Edge>) {
    let mut drawing = Drawing::default();
    let dataset_node = |id: DatasetId| {
        let schema = schema_of(graph, id);
        match folded.contains(&schema) {
            true => Node::Schema(schema),
            false => Node::Dataset(graph.dataset(id).label.clone()),
        }
    };
    for id in graph.dataset_ids() {
        drawing.node(dataset_node(id));
    }
    for id in graph.dataset_ids() {
        let dataset = graph.dataset(id);
        let target = dataset_node(id);
        let is_folded = matches!(target, Node::Schema(_));
        if let Some(view) = &dataset.view {
            drawing.reads(graph, view, &target, is_folded, &dataset_node, EdgeStyle::Dashed);
        }
        for flow in dataset.flows.iter().map(|id| graph.flow(*id)) {
            let style = if flow.kind.is_incremental() { EdgeStyle::Solid } else { EdgeStyle::Dashed };
            if flow.is_default || is_folded {
                for reading in flow.readings() {
                    drawing.reads(graph, reading, &target, is_folded, &dataset_node, style);
                }
            } else {
                let node = Node::Flow(flow.name.clone());
                drawing.node(node.clone());
                for reading in flow.readings() {
                    drawing.reads(graph, reading, &node, false, &dataset_node, style);
                }
                drawing.edge(&node, &target, style);
            }
        }
    }
    // Order edges last: a flow that is also read from keeps its data edge.
    let flow_node = |id: FlowId| {
        let flow = graph.flow(id);
        match dataset_node(flow.target) {
            Node::Dataset(_) if !flow.is_default => Node::Flow(flow.name.clone()),
            target => target,
        }
    };
    for id in graph.flow_ids() {
        for before in graph.order_predecessors(id) {
            drawing.edge(&flow_node(before), &flow_node(id), EdgeStyle::Dotted);
        }
    }
    (drawing.nodes, drawing.edges)
}

#[derive(Default)]
struct Drawing {
    nodes: Vec<Node>,
    index: BTreeMap<Node, usize>,
    edges: Vec<Edge>,
    seen: BTreeMap<(usize, usize), usize>,
}

impl Drawing {
    fn node(&mut self, node: Node) -> usize {
        let next = self.nodes.len();
        let at = *self.index.entry(node.clone()).or_insert(next);
        if at == next {
            self.nodes.push(node);
        }
        at
    }

    /// Draws each edge once, in the strongest of its styles.
    fn edge(&mut self, from: &Node, to: &Node, style: EdgeStyle) {
        let (from, to) = (self.node(from.clone()), self.node(to.clone()));
        if from == to && matches!(self.nodes[from], Node::Schema(_)) {
            return;
        }
        match self.seen.get(&(from, to)) {
            Some(at) => self.edges[*at].style = self.edges[*at].style.max(style),
            None => {
                self.seen.insert((from, to), self.edges.len());
                self.edges.push(Edge { from, to, style });
            }
        }
    }

    fn reads(
        &mut self,
        graph: &Graph,
        reading: &Reading,
        target: &Node,
        is_folded: bool,
        dataset_node: &impl Fn(DatasetId) -> Node,
        style: EdgeStyle,
    ) {
        for input in &reading.inputs {
            let style = if input.is_stream { EdgeStyle::Solid } else { style.min(EdgeStyle::Dashed) };
            match &input.source {
                Source::Dataset { id, .. } => self.edge(&dataset_node(*id), target, style),
                // A folded schema stands for its sources too.
                source if !is_folded => {
                    if let Some(name) = source_name(graph, source) {
                        let is_incremental = matches!(source, Source::Files(_)) && input.is_stream;
                        let style = if is_incremental { EdgeStyle::Solid } else { style };
                        self.edge(&Node::Source(name), target, style);
                    }
                }
                _ => {}
            }
        }
    }
}

/// What lies within some steps of a node, against and along the edges; and how many nodes that leaves out.
fn near(nodes: Vec<Node>, edges: Vec<Edge>, centre: &Node, steps: usize) -> (Vec<Node>, Vec<Edge>, usize) {
    let Some(centre) = nodes.iter().position(|node| node == centre) else { return (nodes, edges, 0) };
    let mut kept: BTreeSet<usize> = BTreeSet::from([centre]);
    for is_forward in [true, false] {
        let mut front = BTreeSet::from([centre]);
        for _ in 0..steps {
            let reached = edges.iter().filter_map(|edge| match is_forward {
                true => front.contains(&edge.from).then_some(edge.to),
                false => front.contains(&edge.to).then_some(edge.from),
            });
            front = reached.collect();
            // A named flow is part of its edge, not a step of its own.
            let flows: Vec<usize> = front.iter().copied().filter(|at| matches!(nodes[*at], Node::Flow(_))).collect();
            for flow in flows {
                kept.insert(flow);
                front.extend(edges.iter().filter_map(|edge| match is_forward {
                    true => (edge.from == flow).then_some(edge.to),
                    false => (edge.to == flow).then_some(edge.from),
                }));
            }
            kept.extend(&front);
        }
    }
    let hidden = nodes.len() - kept.len();
    let place: BTreeMap<usize, usize> = kept.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let edges = edges
        .into_iter()
        .filter_map(|edge| Some(Edge { from: *place.get(&edge.from)?, to: *place.get(&edge.to)?, ..edge }))
        .collect();
    let nodes = nodes.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, node)| node).collect();
    (nodes, edges, hidden)
}

/// The badge of how a dataset is fed: two flows and more are counted.
pub fn badge(graph: &Graph, id: DatasetId) -> Option<String> {
    let dataset = graph.dataset(id);
    (dataset.kind() == DatasetKind::StreamingTable && dataset.flows.len() > 1).then(|| dataset.flows.len().to_string())
}
