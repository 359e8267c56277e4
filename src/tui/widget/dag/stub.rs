//! Names beside a node in place of a line: for edges that go back, self edges, and long ones.

use super::layers::Layers;
use super::layout::{Place, Sorted};
use super::model::Graph;
use super::rank::Ranks;
use crate::widget::text;

/// `→⟨name⟩` behind a node or `⟨name⟩→` before it; `↺` in place of the arrow if the edge closes a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    pub node: usize,
    pub side: Side,
    pub kind: StubKind,
    /// The edges that it stands for.
    pub edges: Vec<usize>,
    /// The name of the other end, of several with their number. Empty for a self edge.
    pub label: String,
    pub x: u32,
    pub y: u32,
    pub width: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Left,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StubKind {
    SelfEdge,
    Back,
    Skip,
}

/// Cells of a name in a stub at most.
const NAME_WIDTH_MAX: usize = 12;

/// Returns the stubs of edges that have no path, for each node and side in the order they are drawn from the node on.
pub(super) fn stubs(graph: &Graph, sorted: &Sorted, ranks: &Ranks, layers: &Layers) -> Vec<Stub> {
    let mut ends: Vec<(usize, Side, StubKind, usize)> = Vec::new();
    for (index, &edge) in sorted.edge.iter().enumerate().filter(|(index, _)| layers.paths[*index].is_empty()) {
        let (from, to) = (graph.edges[edge].from, graph.edges[edge].to);
        if from == to {
            ends.push((from, Side::Right, StubKind::SelfEdge, edge));
            continue;
        }
        let kind = if ranks.is_back[index] { StubKind::Back } else { StubKind::Skip };
        ends.push((from, Side::Right, kind, edge));
        ends.push((to, Side::Left, kind, edge));
    }
    // Stable, so that the edges of one stub stay in the order of their names.
    ends.sort_by_key(|(node, side, kind, _)| (*node, *side, *kind));
    ends.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2)).map(|same| stub(graph, same)).collect()
}

fn stub(graph: &Graph, same: &[(usize, Side, StubKind, usize)]) -> Stub {
    let (node, side, kind, first) = same[0];
    let other = match side {
        Side::Left => graph.edges[first].from,
        Side::Right => graph.edges[first].to,
    };
    let mut label = match kind {
        StubKind::SelfEdge => String::new(),
        _ => text::fit_middle(&graph.nodes[other].name, NAME_WIDTH_MAX).into_owned(),
    };
    if kind != StubKind::SelfEdge && same.len() > 1 {
        label += &format!(" +{}", same.len() - 1);
    }
    // The arrow, and two brackets about a name.
    let width = 1 + if label.is_empty() { 0 } else { text::width(&label) as u16 + 2 };
    Stub { node, side, kind, edges: same.iter().map(|end| end.3).collect(), label, x: 0, y: 0, width }
}

/// Puts stubs beside their nodes, a blank between each.
pub(super) fn place(stubs: &mut [Stub], places: &[Place]) {
    let is_same = |a: &Stub, b: &Stub| (a.node, a.side) == (b.node, b.side);
    for same in stubs.chunk_by_mut(is_same) {
        let place = places[same[0].node];
        let (mut left, mut right) = (place.x, place.x + u32::from(place.width));
        for stub in same {
            let width = u32::from(stub.width);
            stub.y = place.y;
            stub.x = match stub.side {
                Side::Left => left - width - 1,
                Side::Right => right + 1,
            };
            left = stub.x;
            right = stub.x + width;
        }
    }
}
