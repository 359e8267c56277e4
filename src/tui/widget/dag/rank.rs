//! Which column each node stands in, and which edges go back.
//!
//! A node stands right of all it reads (longest path). A node that reads nothing stands just left of its first
//! reader, so that its line is short, unless it has a hint: that is its layer. Edges that close a cycle are left out
//! here; the drawing marks them.

/// An edge as (from, to).
pub(super) type Pair = (usize, usize);

pub(super) struct Ranks {
    /// The column of each node; every column up to the last has a node.
    pub column: Vec<usize>,
    /// For each edge, whether it closes a cycle. Self edges do.
    pub is_back: Vec<bool>,
}

/// Returns the columns of `hints.len()` nodes; a hint is the leftmost column of its node.
pub(super) fn rank(edges: &[Pair], hints: &[Option<u16>]) -> Ranks {
    let count = hints.len();
    let is_back = back_edges(count, edges);
    let mut readers = vec![Vec::new(); count];
    let mut unread = vec![0; count];
    for (&(from, to), _) in edges.iter().zip(&is_back).filter(|(_, is_back)| !**is_back) {
        readers[from].push(to);
        unread[to] += 1;
    }
    let is_source: Vec<bool> = unread.iter().map(|reads| *reads == 0).collect();

    let mut column: Vec<usize> = hints.iter().map(|hint| usize::from(hint.unwrap_or(0))).collect();
    let mut ready: Vec<usize> = (0..count).filter(|node| is_source[*node]).collect();
    while let Some(node) = ready.pop() {
        for &reader in &readers[node] {
            column[reader] = column[reader].max(column[node] + 1);
            unread[reader] -= 1;
            if unread[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    for node in (0..count).filter(|node| is_source[*node] && hints[*node].is_none()) {
        if let Some(first) = readers[node].iter().map(|reader| column[*reader]).min() {
            column[node] = first - 1;
        }
    }
    close_gaps(&mut column);
    Ranks { column, is_back }
}

/// Finds the edges that lead back to a node on the way to them, depth first. Nodes that nothing leads to come first,
/// so that a cycle is cut where it is entered.
fn back_edges(count: usize, edges: &[Pair]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnTheWay,
        Done,
    }
    let mut outgoing = vec![Vec::new(); count];
    let mut is_entered = vec![false; count];
    for (edge, &(from, to)) in edges.iter().enumerate() {
        outgoing[from].push(edge);
        is_entered[to] |= from != to;
    }
    let mut is_back = vec![false; edges.len()];
    let mut seen = vec![Seen::No; count];
    let (later, first): (Vec<usize>, Vec<usize>) = (0..count).partition(|node| is_entered[*node]);
    for root in first.into_iter().chain(later) {
        if seen[root] != Seen::No {
            continue;
        }
        // Nodes on the way, each with the number of its edges that were followed.
        let mut way = vec![(root, 0)];
        seen[root] = Seen::OnTheWay;
        while let Some((node, followed)) = way.last_mut() {
            let Some(&edge) = outgoing[*node].get(*followed) else {
                seen[*node] = Seen::Done;
                way.pop();
                continue;
            };
            *followed += 1;
            let to = edges[edge].1;
            match seen[to] {
                Seen::OnTheWay => is_back[edge] = true,
                Seen::Done => {}
                Seen::No => {
                    seen[to] = Seen::OnTheWay;
                    way.push((to, 0));
                }
            }
        }
    }
    is_back
}

/// Renumbers columns so that none is empty; a hint may have left some out.
fn close_gaps(column: &mut [usize]) {
    let mut used = column.to_vec();
    used.sort_unstable();
    used.dedup();
    for column in column {
        *column = used.partition_point(|other| other < column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(count: usize, edges: &[Pair]) -> Vec<usize> {
        rank(edges, &vec![None; count]).column
    }

    #[test]
    fn node_stands_right_of_all_it_reads() {
        assert_eq!(columns(4, &[(0, 1), (1, 2), (0, 2), (2, 3)]), [0, 1, 2, 3]);
    }

    #[test]
    fn source_stands_beside_its_first_reader() {
        assert_eq!(columns(5, &[(0, 1), (1, 2), (2, 3), (4, 3)]), [0, 1, 2, 3, 2]);
    }

    #[test]
    fn hint_moves_a_node_and_its_readers_right() {
        let ranks = rank(&[(0, 1), (1, 2), (3, 2)], &[None, Some(4), None, Some(7)]);
        assert_eq!(ranks.column, [0, 1, 3, 2], "columns that nobody stands in are closed");
    }

    #[test]
    fn cycle_is_cut_where_it_closes() {
        let ranks = rank(&[(0, 1), (1, 2), (2, 1), (2, 2), (2, 3)], &[None; 4]);
        assert_eq!(ranks.is_back, [false, false, true, true, false]);
        assert_eq!(ranks.column, [0, 1, 2, 3]);
    }
}
