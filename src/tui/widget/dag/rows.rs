//! The row of each vertex: chains run straight, the rest stands near its neighbours, nothing overlaps.
//!
//! 1. In each channel, the heaviest set of links that can all be straight at once: they may not cross, and each
//!    vertex has one straight link to either side. (A heaviest increasing subsequence.)
//! 2. Vertices joined by straight links are a block: one row. Blocks go as far up as those above them allow.
//! 3. Blocks with room move to the middle of what they are linked to.

use super::layers::Layers;

/// Rounds of step 3.
const ROUNDS: usize = 8;

/// Gives the vertices of one component rows from 0; returns how many rows there are.
pub(super) fn rows(layers: &Layers, columns: &[Vec<usize>], position: &[usize], row: &mut [i32]) -> i32 {
    let blocks = Blocks::of(layers, columns, position);
    let order = blocks.top_down();
    let mut at = vec![0; blocks.members.len()];
    for &block in &order {
        at[block] = blocks.above[block].iter().map(|above| at[*above] + 1).max().unwrap_or(0);
    }
    for round in 0..ROUNDS {
        let mut any = false;
        for step in 0..order.len() {
            let block = order[if round % 2 == 0 { order.len() - 1 - step } else { step }];
            let highest = blocks.above[block].iter().map(|above| at[*above] + 1).max().unwrap_or(i32::MIN);
            let lowest = blocks.below[block].iter().map(|below| at[*below] - 1).min().unwrap_or(i32::MAX);
            let wish = blocks.middle_of_neighbours(layers, block, &at).clamp(highest, lowest);
            any |= std::mem::replace(&mut at[block], wish) != wish;
        }
        if !any {
            break;
        }
    }
    let top = at.iter().copied().min().unwrap_or(0);
    for (block, members) in blocks.members.iter().enumerate() {
        for vertex in members {
            row[*vertex] = at[block] - top;
        }
    }
    at.iter().map(|row| row - top + 1).max().unwrap_or(0)
}

struct Blocks {
    members: Vec<Vec<usize>>,
    /// For each block, those with a vertex just above or below one of its own.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// The block of each vertex, by column and position.
    of: Vec<Vec<usize>>,
    position: Vec<usize>,
}

impl Blocks {
    fn of(layers: &Layers, columns: &[Vec<usize>], position: &[usize]) -> Blocks {
        let mut members: Vec<Vec<usize>> = Vec::new();
        let mut of: Vec<Vec<usize>> = columns.iter().map(|column| vec![usize::MAX; column.len()]).collect();
        for at in 0..columns.len() {
            if at > 0 {
                for (left, right) in straight_links(layers, &columns[at - 1], columns[at].len(), position) {
                    of[at][position[right]] = of[at - 1][position[left]];
                }
            }
            for (place, vertex) in columns[at].iter().enumerate() {
                if of[at][place] == usize::MAX {
                    of[at][place] = members.len();
                    members.push(Vec::new());
                }
                members[of[at][place]].push(*vertex);
            }
        }
        let mut above = vec![Vec::new(); members.len()];
        let mut below = vec![Vec::new(); members.len()];
        for pair in of.iter().flat_map(|column| column.windows(2)) {
            above[pair[1]].push(pair[0]);
            below[pair[0]].push(pair[1]);
        }
        Blocks { members, above, below, of, position: position.to_vec() }
    }

    /// Each block after those above it. There is such an order: straight links don't cross.
    fn top_down(&self) -> Vec<usize> {
        let mut waits: Vec<usize> = self.above.iter().map(Vec::len).collect();
        let mut order: Vec<usize> = (0..waits.len()).filter(|block| waits[*block] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for &below in &self.below[order[next]] {
                waits[below] -= 1;
                if waits[below] == 0 {
                    order.push(below);
                }
            }
            next += 1;
        }
        debug_assert_eq!(order.len(), waits.len(), "blocks form no circle");
        order
    }

    /// Returns the row where links to other blocks are shortest; of several, the nearest.
    fn middle_of_neighbours(&self, layers: &Layers, block: usize, at: &[i32]) -> i32 {
        let mut rows: Vec<i32> = Vec::new();
        for &vertex in &self.members[block] {
            for &other in layers.left[vertex].iter().chain(&layers.right[vertex]) {
                let of = self.of[layers.vertices[other].column][self.position[other]];
                if of != block {
                    rows.push(at[of]);
                }
            }
        }
        rows.sort_unstable();
        match rows.len() {
            0 => at[block],
            count => at[block].clamp(rows[(count - 1) / 2], rows[count / 2]),
        }
    }
}

/// Chooses the links of one channel that become straight; together they weigh most.
fn straight_links(layers: &Layers, left: &[usize], right_count: usize, position: &[usize]) -> Vec<(usize, usize)> {
    struct Chosen {
        link: (usize, usize),
        before: Option<usize>,
    }
    let mut chosen: Vec<Chosen> = Vec::new();
    // Fenwick tree of prefix maxima over right ends: the heaviest choice that ends above, and its last link.
    let mut tree: Vec<(u64, Option<usize>)> = vec![(0, None); right_count + 1];
    for &from in left {
        let ends = &layers.right[from];
        let mut found = Vec::with_capacity(ends.len());
        for &to in ends {
            let (mut node, mut best) = (position[to], (0, None));
            while node > 0 {
                best = heavier(best, tree[node]);
                node &= node - 1;
            }
            found.push((position[to], best.0 + weight(layers, from, to, position), chosen.len()));
            chosen.push(Chosen { link: (from, to), before: best.1 });
        }
        for (end, weight, link) in found {
            let mut node = end + 1;
            while node < tree.len() {
                tree[node] = heavier(tree[node], (weight, Some(link)));
                node += node & node.wrapping_neg();
            }
        }
    }
    let mut links = Vec::new();
    let mut last = tree.iter().fold((0, None), |best, choice| heavier(best, *choice)).1;
    while let Some(index) = last {
        links.push(chosen[index].link);
        last = chosen[index].before;
    }
    links
}

fn heavier(a: (u64, Option<usize>), b: (u64, Option<usize>)) -> (u64, Option<usize>) {
    if b.0 > a.0 { b } else { a }
}

/// Long lines run straight between their ends, which may bend; chains before other links, and of several the middle one.
fn weight(layers: &Layers, from: usize, to: usize, position: &[usize]) -> u64 {
    let is_passing = |vertex: usize| layers.vertices[vertex].is_passing;
    let is_middle = |ends: &[usize], end: usize| {
        let above = ends.iter().filter(|other| position[**other] < position[end]).count();
        above == (ends.len() - 1) / 2
    };
    let (readers, read) = (&layers.right[from], &layers.left[to]);
    let base = match (is_passing(from), is_passing(to)) {
        (true, true) => 64,
        (true, false) | (false, true) => 8,
        (false, false) => 12,
    };
    let chain = if readers.len() == 1 && read.len() == 1 { 16 } else { 0 };
    base + chain + 3 * u64::from(is_middle(readers, to)) + 3 * u64::from(is_middle(read, from))
}
