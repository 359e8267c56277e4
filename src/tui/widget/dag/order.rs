//! The order of each column from top to bottom, with few crossings.
//!
//! Sugiyama's method: sweeps to and fro that put each vertex at the middle of its neighbours, and swaps of
//! neighbours in a column. The number of rounds is fixed and there is no clock, so the same graph gives the same order.

use super::layers::Layers;

const SWEEPS: usize = 10;
/// Sweeps without a better order, after which there is no hope.
const SWEEPS_IN_VAIN: usize = 4;
/// Passes of swaps after a sweep.
const SWAPS: usize = 8;

/// Orders the vertices of one component; returns its columns, from the drawing's first, top to bottom.
///
/// `position` has an element for each vertex of the drawing and is written for these.
pub(super) fn order(layers: &Layers, component: &[usize], position: &mut [usize]) -> Vec<Vec<usize>> {
    let mut columns = first_order(layers, component);
    number(&columns, position);
    if component.len() <= 2 {
        return columns;
    }
    let mut best = (crossings(layers, &columns, position), columns.clone());
    let mut in_vain = 0;
    for round in 0..SWEEPS {
        if best.0 == 0 || in_vain == SWEEPS_IN_VAIN {
            break;
        }
        sweep(layers, &mut columns, position, Sweep::of(round));
        for _ in 0..SWAPS {
            if !swap_neighbours(layers, &mut columns, position) {
                break;
            }
        }
        let crossings = crossings(layers, &columns, position);
        in_vain += 1;
        if crossings < best.0 {
            best = (crossings, columns.clone());
            in_vain = 0;
        }
    }
    number(&best.1, position);
    best.1
}

/// Depth first from the left, so that what belongs together begins together.
fn first_order(layers: &Layers, component: &[usize]) -> Vec<Vec<usize>> {
    let mut columns = vec![Vec::new(); layers.column_count];
    let mut is_placed: Vec<bool> = vec![false; component.len()];
    let index = |vertex: &usize| component.binary_search(vertex).expect("links stay in their component");
    let mut roots: Vec<usize> = component.to_vec();
    roots.sort_by_key(|vertex| (!layers.left[*vertex].is_empty(), *vertex));
    for root in roots {
        let mut open = vec![root];
        while let Some(vertex) = open.pop() {
            if !std::mem::replace(&mut is_placed[index(&vertex)], true) {
                columns[layers.vertices[vertex].column].push(vertex);
                open.extend(layers.right[vertex].iter().rev());
            }
        }
    }
    columns
}

fn number(columns: &[Vec<usize>], position: &mut [usize]) {
    for column in columns {
        for (index, vertex) in column.iter().enumerate() {
            position[*vertex] = index;
        }
    }
}

#[derive(Clone, Copy)]
struct Sweep {
    goes_right: bool,
    takes_median: bool,
}

impl Sweep {
    fn of(round: usize) -> Sweep {
        Sweep { goes_right: round.is_multiple_of(2), takes_median: !(round / 2).is_multiple_of(2) }
    }
}

/// Sorts each column by the middle of the neighbours in the column before it. Who has no neighbour there stays.
fn sweep(layers: &Layers, columns: &mut [Vec<usize>], position: &mut [usize], sweep: Sweep) {
    for step in 1..columns.len() {
        let (at, neighbours) = match sweep.goes_right {
            true => (step, &layers.left),
            false => (columns.len() - 1 - step, &layers.right),
        };
        let column = &mut columns[at];
        let mut moving: Vec<(f64, usize)> = Vec::with_capacity(column.len());
        for &vertex in column.iter().filter(|vertex| !neighbours[**vertex].is_empty()) {
            let mut places: Vec<usize> = neighbours[vertex].iter().map(|other| position[*other]).collect();
            moving.push((middle(&mut places, sweep.takes_median), vertex));
        }
        moving.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut moved = moving.into_iter().map(|(_, vertex)| vertex);
        for slot in column.iter_mut().filter(|vertex| !neighbours[**vertex].is_empty()) {
            *slot = moved.next().expect("as many as were taken out");
        }
        for (index, vertex) in column.iter().enumerate() {
            position[*vertex] = index;
        }
    }
}

fn middle(places: &mut [usize], takes_median: bool) -> f64 {
    if !takes_median {
        return places.iter().sum::<usize>() as f64 / places.len() as f64;
    }
    places.sort_unstable();
    let half = places.len() / 2;
    match places.len() % 2 {
        1 => places[half] as f64,
        _ => (places[half - 1] + places[half]) as f64 / 2.0,
    }
}

/// One pass that swaps neighbours in a column where that takes crossings away; returns whether any did.
fn swap_neighbours(layers: &Layers, columns: &mut [Vec<usize>], position: &mut [usize]) -> bool {
    let mut any = false;
    let sorted = |neighbours: &[usize], position: &[usize]| {
        let mut places: Vec<usize> = neighbours.iter().map(|other| position[*other]).collect();
        places.sort_unstable();
        places
    };
    for column in columns.iter_mut().filter(|column| column.len() > 1) {
        // Neighbours stand in other columns, so their places hold while this column is swapped.
        let mut sides: Vec<[Vec<usize>; 2]> = column
            .iter()
            .map(|vertex| [sorted(&layers.left[*vertex], position), sorted(&layers.right[*vertex], position)])
            .collect();
        for upper in 0..column.len() - 1 {
            let (a, b) = (&sides[upper], &sides[upper + 1]);
            let now: usize = (0..2).map(|side| pair_crossings(&a[side], &b[side])).sum();
            let then: usize = (0..2).map(|side| pair_crossings(&b[side], &a[side])).sum();
            if then < now {
                column.swap(upper, upper + 1);
                sides.swap(upper, upper + 1);
                position.swap(column[upper], column[upper + 1]);
                any = true;
            }
        }
    }
    any
}

/// Returns the crossings of links from an upper vertex to `upper` with those from a lower one to `lower`, sorted.
fn pair_crossings(upper: &[usize], lower: &[usize]) -> usize {
    let (mut crossings, mut passed) = (0, 0);
    for place in upper {
        while lower.get(passed).is_some_and(|other| other < place) {
            passed += 1;
        }
        crossings += passed;
    }
    crossings
}

/// Counts all crossings: inversions of the links' right ends, by an accumulator tree (Barth, Jünger, Mutzel).
pub(super) fn crossings(layers: &Layers, columns: &[Vec<usize>], position: &[usize]) -> usize {
    let mut crossings = 0;
    for pair in columns.windows(2) {
        let mut tree = vec![0usize; pair[1].len() + 1];
        let mut seen = 0;
        for left in &pair[0] {
            let mut ends: Vec<usize> = layers.right[*left].iter().map(|right| position[*right]).collect();
            ends.sort_unstable();
            for end in &ends {
                let (mut node, mut above_or_at) = (end + 1, 0);
                while node > 0 {
                    above_or_at += tree[node];
                    node &= node - 1;
                }
                crossings += seen - above_or_at;
            }
            for end in &ends {
                let mut node = end + 1;
                while node < tree.len() {
                    tree[node] += 1;
                    node += node & node.wrapping_neg();
                }
            }
            seen += ends.len();
        }
    }
    crossings
}

#[cfg(test)]
mod tests {
    use super::super::layers::cut;
    use super::*;

    fn ordered(column: &[usize], edges: &[(usize, usize)]) -> (Vec<Vec<usize>>, usize) {
        let layers = cut(column, edges, &vec![false; edges.len()], true);
        let mut position = vec![0; layers.vertices.len()];
        let component = &layers.components()[0];
        let columns = order(&layers, component, &mut position);
        let crossings = crossings(&layers, &columns, &position);
        (columns, crossings)
    }

    #[test]
    fn crossed_pairs_are_uncrossed() {
        let (columns, crossings) = ordered(&[0, 0, 1, 1, 2], &[(0, 3), (1, 2), (2, 4), (3, 4)]);
        assert_eq!((columns[1].len(), crossings), (2, 0));
    }

    #[test]
    fn crossings_of_complete_columns_are_counted() {
        let edges: Vec<(usize, usize)> = (0..4).flat_map(|from| (4..8).map(move |to| (from, to))).collect();
        let (_, crossings) = ordered(&[0, 0, 0, 0, 1, 1, 1, 1], &edges);
        assert_eq!(crossings, 36, "each pair of lefts crosses at each pair of rights: 6 · 6");
    }

    #[test]
    fn tree_is_drawn_without_crossings() {
        let mut column = vec![0];
        let mut edges = Vec::new();
        for node in 1..40 {
            column.push(column[(node - 1) / 3] + 1);
            edges.push(((node - 1) / 3, node));
        }
        assert_eq!(ordered(&column, &edges).1, 0);
    }
}
