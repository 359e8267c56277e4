//! What is drawn: nodes and edges as plain values. What they stand for is the caller's matter.

/// A drawing's input. Edges name nodes by their index; a graph with cycles and self edges is fine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Who this node is over edits. Nodes are laid out by their keys, never by their index, so keys differ.
    pub key: String,
    /// What a stub calls this node, where a line to it would be too long.
    pub name: String,
    /// Cells that the node's text wants.
    pub width: u16,
    /// The leftmost column that this node may stand in, so that layers of a workspace line up.
    pub column_hint: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub style: EdgeStyle,
}

/// How an edge is drawn. Where edges share a line, the last of these that is among them is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeStyle {
    /// Order only.
    Dotted,
    /// Recomputed.
    Dashed,
    /// A stream.
    Solid,
}

/// What a layout may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Cells that a node gets at most.
    pub node_width_max: u16,
    pub skips: Skips,
}

/// How an edge over more than two columns is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skips {
    Lines,
    /// `→⟨name⟩` behind its source and `⟨name⟩→` before its target.
    Stubs,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { node_width_max: 28, skips: Skips::Lines }
    }
}
