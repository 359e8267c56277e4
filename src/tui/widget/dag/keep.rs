//! Rows after an edit: what is known stays where it was, what is new finds a place near its neighbours.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::layers::Layers;

/// Where a node and the lines from it were drawn, for the next layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub column: usize,
    pub row: i32,
    /// The rows at which lines from it pass the next columns.
    pub passing: Vec<i32>,
}

/// A free row this near is taken before others are moved for one.
const NEAR: i32 = 3;

/// Gives each vertex a row; returns the columns, top to bottom.
pub(super) fn keep_rows(
    layers: &Layers,
    keys: &[&str],
    known: &HashMap<String, Known>,
    row: &mut [i32],
) -> Vec<Vec<usize>> {
    let mut taken = vec![Slots::default(); layers.column_count];
    let mut is_placed = vec![false; layers.vertices.len()];

    let old = |vertex: usize| {
        let of = &layers.vertices[vertex];
        let known = known.get(keys[of.node])?;
        match of.is_passing {
            true => known.passing.get(of.column - layers.vertices[of.node].column - 1).copied(),
            false => Some(known.row),
        }
    };
    let mut keeps: Vec<(usize, i32, usize)> = Vec::new();
    for vertex in 0..layers.vertices.len() {
        let of = &layers.vertices[vertex];
        if let Some(row) = old(vertex) {
            let is_moved = known[keys[of.node]].column != of.column;
            keeps.push((if of.is_passing { 2 } else { usize::from(is_moved) }, row, vertex));
        }
    }
    keeps.sort_unstable();
    for (_, wish, vertex) in keeps {
        taken[layers.vertices[vertex].column].place(vertex, wish, row);
        is_placed[vertex] = true;
    }

    let mut added: Vec<usize> = (0..layers.vertices.len()).filter(|vertex| !is_placed[*vertex]).collect();
    added.sort_by_key(|vertex| (layers.vertices[*vertex].column, *vertex));
    for vertex in added {
        let neighbours = layers.left[vertex].iter().chain(&layers.right[vertex]);
        let mut rows: Vec<i32> = neighbours.filter(|other| is_placed[**other]).map(|other| row[*other]).collect();
        rows.sort_unstable();
        let wish = match rows.len() {
            0 => taken.iter().map(Slots::end).max().unwrap_or(0),
            count => rows[(count - 1) / 2],
        };
        taken[layers.vertices[vertex].column].place(vertex, wish, row);
        is_placed[vertex] = true;
    }
    taken.into_iter().map(|slots| slots.0.into_iter().flatten().collect()).collect()
}

/// The rows of one column, and who is there.
#[derive(Default, Clone)]
struct Slots(Vec<Option<usize>>);

impl Slots {
    fn end(&self) -> i32 {
        self.0.len() as i32
    }

    fn is_free(&self, row: i32) -> bool {
        row >= 0 && self.0.get(row as usize).is_none_or(Option::is_none)
    }

    /// Puts `vertex` into the row it wishes, or one near it, or moves others on by one row.
    fn place(&mut self, vertex: usize, wish: i32, row: &mut [i32]) {
        let found = (0..=wish.max(self.end())).try_for_each(|distance| {
            for at in [wish + distance, wish - distance] {
                if self.is_free(at) {
                    return ControlFlow::Break(at);
                }
            }
            ControlFlow::Continue(())
        });
        let free = found.break_value().unwrap_or_else(|| self.end());
        let near = free.clamp(wish - NEAR, wish + NEAR);
        self.0.resize(self.0.len().max(free as usize + 1), None);
        // Between the row it gets and the free one, each moves by one towards the free one.
        let (near, free) = (near as usize, free as usize);
        if near <= free {
            self.0[near..=free].rotate_right(1);
        } else {
            self.0[free..=near].rotate_left(1);
        }
        self.0[near] = Some(vertex);
        for at in near.min(free)..=near.max(free) {
            if let Some(vertex) = self.0[at] {
                row[vertex] = at as i32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_finds_no_free_row_near_moves_others_by_one() {
        let mut slots = Slots::default();
        let mut row = vec![0; 12];
        for vertex in 0..10 {
            slots.place(vertex, vertex as i32, &mut row);
        }
        assert_eq!(row[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        slots.place(10, 9, &mut row);
        assert_eq!(row[10], 10, "the end is near");
        slots.place(11, 3, &mut row);
        assert_eq!(row, [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 6]);
    }
}
