//! Groups of nodes drawn as one node, and their edges as bundles.

use std::collections::{BTreeSet, HashMap};

use super::model::{Edge, Graph, Node};
use super::view::View;

/// Returns `graph` with each folded group that has members as one node.
///
/// `groups` are the nodes that stand for groups, `group_of` says which group each node is in. Edges inside a folded
/// group vanish; those between the same two ends, of which one is folded, are one edge of the strongest style.
/// A group stands where the first of its nodes stood.
pub fn fold(graph: &Graph, groups: &[Node], group_of: &[Option<usize>], folded: &BTreeSet<usize>) -> View {
    let mut view = View::default();
    let mut node_of_group: HashMap<usize, usize> = HashMap::new();
    let mut shown_as = Vec::with_capacity(graph.nodes.len());
    for (node, group) in graph.nodes.iter().zip(group_of) {
        let group = group.filter(|group| folded.contains(group));
        let known = group.and_then(|group| node_of_group.get(&group).copied());
        let shown = known.unwrap_or_else(|| {
            view.graph.nodes.push(group.map_or(node, |group| &groups[group]).clone());
            view.members.push(Vec::new());
            view.members.len() - 1
        });
        if let Some(group) = group {
            node_of_group.insert(group, shown);
        }
        view.members[shown].push(shown_as.len());
        shown_as.push(shown);
    }
    let is_folded: Vec<bool> = {
        let mut is_folded = vec![false; view.members.len()];
        node_of_group.values().for_each(|node| is_folded[*node] = true);
        is_folded
    };
    let mut bundle_of: HashMap<(usize, usize), usize> = HashMap::new();
    for (number, edge) in graph.edges.iter().enumerate() {
        let (from, to) = (shown_as[edge.from], shown_as[edge.to]);
        let is_bundled = is_folded[from] || is_folded[to];
        if is_bundled && from == to {
            continue;
        }
        match bundle_of.get(&(from, to)).filter(|_| is_bundled) {
            Some(&bundle) => {
                let style = &mut view.graph.edges[bundle].style;
                *style = edge.style.max(*style);
                view.bundles[bundle].push(number);
            }
            None => {
                bundle_of.insert((from, to), view.bundles.len());
                view.graph.edges.push(Edge { from, to, style: edge.style });
                view.bundles.push(vec![number]);
            }
        }
    }
    view
}

#[cfg(test)]
mod tests {
    use super::super::cases::Case;
    use super::super::focus::focus;
    use super::super::model::EdgeStyle;
    use super::*;

    /// Groups by the letter that a node's key begins with.
    fn by_letter(graph: &Graph, letters: &str) -> (Vec<Node>, Vec<Option<usize>>) {
        let node = |letter: char| Node {
            key: format!("group {letter}"),
            name: letter.to_string(),
            width: 1,
            column_hint: None,
        };
        let group_of = graph.nodes.iter().map(|node| letters.chars().position(|letter| node.key.starts_with(letter)));
        (letters.chars().map(node).collect(), group_of.collect())
    }

    fn edges(view: &View) -> Vec<(usize, usize, usize)> {
        let edges = view.graph.edges.iter().zip(&view.bundles);
        edges.map(|(edge, bundle)| (edge.from, edge.to, bundle.len())).collect()
    }

    #[test]
    fn folded_group_is_one_node_with_bundles() {
        let graph = Case::parse("s1 s2 ..> b1\ns1 -> b1 b2\nb1 -> b2\nb1 b2 ~> g").graph;
        let (groups, group_of) = by_letter(&graph, "sb");
        let view = fold(&graph, &groups, &group_of, &BTreeSet::from([0, 1]));
        let keys: Vec<&str> = view.graph.nodes.iter().map(|node| node.key.as_str()).collect();
        assert_eq!(keys, ["group s", "group b", "g"]);
        assert_eq!(view.members, [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(edges(&view), [(0, 1, 4), (1, 2, 2)]);
        assert_eq!(view.graph.edges[0].style, EdgeStyle::Solid, "the strongest of a bundle");
        assert_eq!(view.shows(3), Some(1));
    }

    #[test]
    fn open_groups_and_parallel_edges_stay_as_they_are() {
        let graph = Case::parse("s1 -> b1\ns1 ..> b1\ns2 -> b1\nb1 -> b1").graph;
        let (groups, group_of) = by_letter(&graph, "sb");
        assert_eq!(fold(&graph, &groups, &group_of, &BTreeSet::new()), View::whole(&graph));
        let view = fold(&graph, &groups, &group_of, &BTreeSet::from([0]));
        assert_eq!(edges(&view), [(0, 1, 3), (1, 1, 1)]);
    }

    #[test]
    fn groups_that_read_each_other_are_drawn() {
        let graph = Case::parse("a1 -> b1\nb1 -> a2").graph;
        let (groups, group_of) = by_letter(&graph, "ab");
        let view = fold(&graph, &groups, &group_of, &BTreeSet::from([0, 1]));
        let layout = super::super::layout(&view.graph, None, &Default::default());
        assert_eq!((edges(&view).len(), layout.stubs().len()), (2, 2), "one edge goes back");
    }

    #[test]
    fn view_of_a_view_leads_back_to_the_original() {
        let graph = Case::parse("s1 s2 -> b\nb -> c\nc -> d").graph;
        let (groups, group_of) = by_letter(&graph, "s");
        let folded = fold(&graph, &groups, &group_of, &BTreeSet::from([0]));
        let node = folded.shows(2).expect("b is shown");
        let view = folded.then(focus(&folded.graph, node, 1, 0).view);
        assert_eq!(view.members, [vec![0, 1], vec![2]]);
        assert_eq!(view.bundles, [[0, 1]]);
    }
}
