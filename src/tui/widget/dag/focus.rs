//! What is around a node, and on the way from one to another.

use std::collections::BTreeSet;

use super::model::Graph;
use super::view::View;

/// A node's surroundings and how much of what leads to it, or comes from it, is out of sight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    pub view: View,
    pub upstream_hidden: usize,
    pub downstream_hidden: usize,
}

/// Returns `node` with what is at most `up` edges before and `down` edges behind it.
pub fn focus(graph: &Graph, node: usize, up: usize, down: usize) -> Focus {
    let readers = Neighbours::of(graph, Direction::Downstream);
    let sources = Neighbours::of(graph, Direction::Upstream);
    let (before, behind) = (sources.within(node, up), readers.within(node, down));
    let all_before = sources.within(node, usize::MAX).len();
    let all_behind = readers.within(node, usize::MAX).len();
    let (upstream_hidden, downstream_hidden) = (all_before - before.len(), all_behind - behind.len());
    let mut nodes = before;
    nodes.extend(behind);
    nodes.insert(node);
    Focus { view: View::part(graph, nodes), upstream_hidden, downstream_hidden }
}

/// Returns everything that leads to `node`, without it, unless a cycle leads back.
pub fn upstream(graph: &Graph, node: usize) -> BTreeSet<usize> {
    Neighbours::of(graph, Direction::Upstream).within(node, usize::MAX)
}

/// Returns everything that `node` leads to, without it, unless a cycle leads back.
pub fn downstream(graph: &Graph, node: usize) -> BTreeSet<usize> {
    Neighbours::of(graph, Direction::Downstream).within(node, usize::MAX)
}

/// Returns the nodes on all ways from one node to another, with both; none if there is no way.
pub fn between(graph: &Graph, from: usize, to: usize) -> BTreeSet<usize> {
    let (mut after, mut before) = (downstream(graph, from), upstream(graph, to));
    after.insert(from);
    before.insert(to);
    if !after.contains(&to) {
        return BTreeSet::new();
    }
    after.intersection(&before).copied().collect()
}

#[derive(Clone, Copy)]
enum Direction {
    Upstream,
    Downstream,
}

/// For each node, those one edge away in one direction.
struct Neighbours(Vec<Vec<usize>>);

impl Neighbours {
    fn of(graph: &Graph, direction: Direction) -> Neighbours {
        let mut next = vec![Vec::new(); graph.nodes.len()];
        for edge in &graph.edges {
            match direction {
                Direction::Upstream => next[edge.to].push(edge.from),
                Direction::Downstream => next[edge.from].push(edge.to),
            }
        }
        Neighbours(next)
    }

    /// Returns what is at most `hops` edges from `node`.
    fn within(&self, node: usize, hops: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut ring = vec![node];
        for _ in 0..hops {
            ring = ring.iter().flat_map(|node| &self.0[*node]).copied().filter(|node| found.insert(*node)).collect();
            if ring.is_empty() {
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::Case;
    use super::*;

    fn names(graph: &Graph, nodes: impl IntoIterator<Item = usize>) -> Vec<&str> {
        nodes.into_iter().map(|node| graph.nodes[node].key.as_str()).collect()
    }

    #[test]
    fn focus_shows_some_hops_and_counts_the_rest() {
        let graph = Case::parse("a -> b\nb -> c\nc -> d e\nd -> f\nx -> c\nx -> y").graph;
        let focus = focus(&graph, 2, 1, 1);
        assert_eq!(names(&focus.view.graph, 0..5), ["b", "c", "d", "e", "x"]);
        assert_eq!((focus.upstream_hidden, focus.downstream_hidden), (1, 1), "a; f");
        let edges: Vec<(usize, usize)> = focus.view.graph.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        assert_eq!(edges, [(0, 1), (1, 2), (1, 3), (4, 1)]);
        assert_eq!(focus.view.bundles, [[1], [2], [3], [5]]);
        assert_eq!((focus.view.shows(2), focus.view.shows(0)), (Some(1), None));
    }

    #[test]
    fn focus_without_hops_is_the_node_alone() {
        let graph = Case::parse("a -> b\nb -> c").graph;
        let focus = focus(&graph, 1, 0, 0);
        assert_eq!(focus.view.members, [[1]]);
        assert_eq!((focus.upstream_hidden, focus.downstream_hidden), (1, 1));
    }

    #[test]
    fn cycle_ends_where_it_began() {
        let graph = Case::parse("a -> b\nb -> c\nc -> a\nc -> c").graph;
        assert_eq!(downstream(&graph, 0).len(), 3);
        assert_eq!(focus(&graph, 0, 1, 1).view.members.len(), 3);
    }

    #[test]
    fn ways_between_two_nodes_leave_dead_ends_out() {
        let graph = Case::parse("a -> b c\nb c -> d\nc -> e\nz -> b\nd -> f").graph;
        assert_eq!(names(&graph, between(&graph, 0, 3)), ["a", "b", "c", "d"]);
        assert!(between(&graph, 3, 0).is_empty());
        assert_eq!(names(&graph, upstream(&graph, 3)), ["a", "b", "c", "z"]);
    }
}
