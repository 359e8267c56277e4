//! A graph made from another one, with the way back to it.

use super::model::Graph;

/// A smaller graph, and what its parts stand for in the one it was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    pub graph: Graph,
    /// For each node, the original nodes; several for a folded group.
    pub members: Vec<Vec<usize>>,
    /// For each edge, the original edges; several for a bundle.
    pub bundles: Vec<Vec<usize>>,
}

impl View {
    /// Returns the whole graph.
    pub fn whole(graph: &Graph) -> View {
        View {
            graph: graph.clone(),
            members: (0..graph.nodes.len()).map(|node| vec![node]).collect(),
            bundles: (0..graph.edges.len()).map(|edge| vec![edge]).collect(),
        }
    }

    /// Returns the part of the graph with these nodes, and the edges between them.
    pub fn part(graph: &Graph, nodes: impl IntoIterator<Item = usize>) -> View {
        let mut view = View::default();
        let mut index = vec![None; graph.nodes.len()];
        for node in nodes {
            index[node] = Some(view.graph.nodes.len());
            view.graph.nodes.push(graph.nodes[node].clone());
            view.members.push(vec![node]);
        }
        for (number, edge) in graph.edges.iter().enumerate() {
            if let (Some(from), Some(to)) = (index[edge.from], index[edge.to]) {
                view.graph.edges.push(super::Edge { from, to, ..*edge });
                view.bundles.push(vec![number]);
            }
        }
        view
    }

    /// Returns the node that stands for an original one.
    pub fn shows(&self, original: usize) -> Option<usize> {
        self.members.iter().position(|members| members.contains(&original))
    }

    /// Puts a view of this view's graph in terms of the original.
    pub fn then(&self, next: View) -> View {
        let flat = |all: Vec<Vec<usize>>, of: &[Vec<usize>]| {
            all.into_iter()
                .map(|inner| inner.into_iter().flat_map(|index| of[index].iter().copied()).collect())
                .collect()
        };
        View {
            members: flat(next.members, &self.members),
            bundles: flat(next.bundles, &self.bundles),
            graph: next.graph,
        }
    }
}
