//! The graph cut into links from one column to the next.
//!
//! ```text
//! a ───── ∙ ─┬─▸ c          a → c and a → d skip a column: they pass it at one vertex, as both come from `a`
//!   ╰─▸ b    ╰─▸ d          a → b is a link already
//! ```

use super::rank::Pair;

/// A thing with a row in a column: a node, or the place where a long line passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vertex {
    /// The node, or the one that the passing line comes from.
    pub node: usize,
    pub column: usize,
    pub is_passing: bool,
}

/// Nodes are the first vertices, with the same index.
pub(super) struct Layers {
    pub vertices: Vec<Vertex>,
    /// For each vertex, those it is linked to in the column to the left, and in the one to the right.
    pub left: Vec<Vec<usize>>,
    pub right: Vec<Vec<usize>>,
    /// For each edge, the vertices it runs over; none if it is drawn as stubs.
    pub paths: Vec<Vec<usize>>,
    pub column_count: usize,
}

/// An edge over more columns than this is long.
const LONG_SPAN: usize = 2;

/// Cuts `edges` into links. Edges that go back get no path, nor do long ones unless `lines_may_be_long`, nor those
/// that would fill the drawing with passing lines.
pub(super) fn cut(column: &[usize], edges: &[Pair], is_back: &[bool], lines_may_be_long: bool) -> Layers {
    let span_max = if lines_may_be_long { affordable_span(column, edges, is_back) } else { LONG_SPAN };
    let mut layers = Layers {
        vertices: (0..column.len()).map(|node| Vertex { node, column: column[node], is_passing: false }).collect(),
        left: Vec::new(),
        right: Vec::new(),
        paths: vec![Vec::new(); edges.len()],
        column_count: column.iter().max().map_or(0, |last| last + 1),
    };
    // The vertices at which lines from a node pass, by distance.
    let mut passing: Vec<Vec<usize>> = vec![Vec::new(); column.len()];
    for (edge, &(from, to)) in edges.iter().enumerate() {
        if is_back[edge] || column[to] - column[from] > span_max {
            continue;
        }
        let between = column[to] - column[from] - 1;
        for distance in passing[from].len()..between {
            passing[from].push(layers.vertices.len());
            layers.vertices.push(Vertex { node: from, column: column[from] + 1 + distance, is_passing: true });
        }
        let path = &mut layers.paths[edge];
        path.push(from);
        path.extend(&passing[from][..between]);
        path.push(to);
    }
    let mut links: Vec<Pair> =
        layers.paths.iter().flat_map(|path| path.windows(2).map(|pair| (pair[0], pair[1]))).collect();
    links.sort_unstable();
    links.dedup();
    layers.left = vec![Vec::new(); layers.vertices.len()];
    layers.right = vec![Vec::new(); layers.vertices.len()];
    for (from, to) in links {
        layers.right[from].push(to);
        layers.left[to].push(from);
    }
    layers
}

/// Returns the longest span at which passing lines don't outnumber the nodes by far.
fn affordable_span(column: &[usize], edges: &[Pair], is_back: &[bool]) -> usize {
    let mut spans = vec![0; column.len()];
    for (&(from, to), _) in edges.iter().zip(is_back).filter(|(_, is_back)| !**is_back) {
        spans[from] = spans[from].max(column[to] - column[from]);
    }
    let budget = 8 * column.len() + 200;
    let mut span_max = spans.iter().copied().max().unwrap_or(0).max(LONG_SPAN);
    while span_max > LONG_SPAN && spans.iter().map(|span| span.min(&span_max).saturating_sub(1)).sum::<usize>() > budget
    {
        span_max = (span_max / 2).max(LONG_SPAN);
    }
    span_max
}

impl Layers {
    /// Returns the vertices of each part that no link connects with the others, the largest part first.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut is_seen = vec![false; self.vertices.len()];
        let mut components = Vec::new();
        for root in 0..self.vertices.len() {
            if std::mem::replace(&mut is_seen[root], true) {
                continue;
            }
            let (mut component, mut next) = (vec![root], 0);
            while next < component.len() {
                let vertex = component[next];
                next += 1;
                for &other in self.left[vertex].iter().chain(&self.right[vertex]) {
                    if !std::mem::replace(&mut is_seen[other], true) {
                        component.push(other);
                    }
                }
            }
            component.sort_unstable();
            components.push(component);
        }
        components.sort_by_key(|component| std::cmp::Reverse(component.len()));
        components
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_node_pass_a_column_together() {
        let layers = cut(&[0, 1, 2, 2], &[(0, 1), (0, 2), (0, 3)], &[false; 3], true);
        assert_eq!(layers.paths, [vec![0, 1], vec![0, 4, 2], vec![0, 4, 3]]);
        assert_eq!(layers.right[4], [2, 3]);
    }

    #[test]
    fn long_edges_have_no_path_where_stubs_are_wanted() {
        let layers = cut(&[0, 1, 2, 3], &[(0, 2), (0, 3)], &[false; 2], false);
        assert_eq!(layers.paths, [vec![0, 4, 2], vec![]]);
    }

    #[test]
    fn complete_graph_of_many_columns_stays_affordable() {
        let column: Vec<usize> = (0..300).collect();
        let edges: Vec<Pair> = (0..300).flat_map(|from| (from + 1..300).map(move |to| (from, to))).collect();
        let layers = cut(&column, &edges, &vec![false; edges.len()], true);
        assert!(layers.vertices.len() < 4000, "{}", layers.vertices.len());
    }
}
