//! Which lane each vertical line of a channel lies on.
//!
//! Lines get an order from left to right that keeps the rules and has few crossings; then each takes the first lane
//! that is right of those before it which it would touch.

use std::collections::BTreeSet;

use super::channel::Net;

const ROUNDS: usize = 3;

/// Returns the lane of each net. Of each rule's two nets, the first lies left of the second; rules form no circle.
pub(super) fn assign(nets: &[Net], rules: &[(usize, usize)]) -> Vec<usize> {
    let lines: Vec<Line> = nets.iter().map(Line::of).collect();
    let touching = touching(&lines);
    let mut order = Order::by_rules(&lines, rules);
    for _ in 0..ROUNDS {
        let mut any = false;
        for (net, touching) in touching.iter().enumerate() {
            any |= order.improve(net, touching);
        }
        if !any {
            break;
        }
    }
    let mut lanes = vec![0; nets.len()];
    for (at, &net) in order.nets.iter().enumerate() {
        let before = touching[net].iter().filter(|other| order.position[other.net] < at);
        lanes[net] = before.map(|other| lanes[other.net] + 1).max().unwrap_or(0);
    }
    lanes
}

struct Line {
    first: i32,
    last: i32,
    entries: Vec<i32>,
    exits: Vec<i32>,
}

impl Line {
    fn of(net: &Net) -> Line {
        let (first, last) = net.span();
        Line { first, last, entries: net.entries.iter().copied().collect(), exits: net.exits.iter().copied().collect() }
    }

    /// Returns twice the number of crossings if this line lies left of `other`; a meeting with its end is half a one.
    fn crossings_left_of(&self, other: &Line) -> i64 {
        let across = |rows: &[i32], line: &Line| {
            let upto = |row: i32| rows.partition_point(|at| *at < row);
            let (inside, all) =
                (upto(line.last) - upto(line.first + 1).min(upto(line.last)), upto(line.last + 1) - upto(line.first));
            (inside + all) as i64
        };
        across(&self.exits, other) + across(&other.entries, self)
    }
}

/// A line that shares rows with another one.
struct Touching {
    net: usize,
    /// What it costs that the other lies left of the line rather than right of it.
    cost_left: i64,
}

fn touching(lines: &[Line]) -> Vec<Vec<Touching>> {
    let mut touching: Vec<Vec<Touching>> = lines.iter().map(|_| Vec::new()).collect();
    let mut by_first: Vec<usize> = (0..lines.len()).collect();
    by_first.sort_by_key(|net| lines[*net].first);
    let mut open: Vec<usize> = Vec::new();
    for net in by_first {
        open.retain(|other| lines[*other].last >= lines[net].first);
        for &other in &open {
            let cost = lines[other].crossings_left_of(&lines[net]) - lines[net].crossings_left_of(&lines[other]);
            touching[net].push(Touching { net: other, cost_left: cost });
            touching[other].push(Touching { net, cost_left: -cost });
        }
        open.push(net);
    }
    touching
}

struct Order {
    nets: Vec<usize>,
    position: Vec<usize>,
    left_of: Vec<Vec<usize>>,
    right_of: Vec<Vec<usize>>,
}

impl Order {
    fn by_rules(lines: &[Line], rules: &[(usize, usize)]) -> Order {
        let mut left_of = vec![Vec::new(); lines.len()];
        let mut right_of = vec![Vec::new(); lines.len()];
        for &(left, right) in rules {
            left_of[right].push(left);
            right_of[left].push(right);
        }
        let mut waits: Vec<usize> = left_of.iter().map(Vec::len).collect();
        // Lines that go down lie best with the lowest first, as the lines from above then pass it by.
        let priority = |net: usize| (-lines[net].last, net);
        let mut ready: BTreeSet<(i32, usize)> = (0..lines.len()).filter(|net| waits[*net] == 0).map(priority).collect();
        let mut order = Order { nets: Vec::new(), position: vec![0; lines.len()], left_of, right_of };
        while let Some((_, net)) = ready.pop_first() {
            order.position[net] = order.nets.len();
            order.nets.push(net);
            for &right in &order.right_of[net] {
                waits[right] -= 1;
                if waits[right] == 0 {
                    ready.insert(priority(right));
                }
            }
        }
        debug_assert_eq!(order.nets.len(), lines.len(), "rules form no circle");
        order
    }

    /// Moves `net` to where it has the fewest crossings; returns whether that is elsewhere.
    fn improve(&mut self, net: usize, touching: &[Touching]) -> bool {
        let at = self.position[net];
        let first = self.left_of[net].iter().map(|left| self.position[*left] + 1).max().unwrap_or(0);
        let end = self.right_of[net].iter().map(|right| self.position[*right]).min().unwrap_or(self.nets.len());
        let mut passed: Vec<(usize, i64)> = touching
            .iter()
            .map(|other| (self.position[other.net], other.cost_left))
            .filter(|(position, _)| (first..end).contains(position))
            .collect();
        passed.sort_unstable();
        // Costs beside those of the present place: to the left, lines get to lie right of it, and so on.
        let (mut best, mut target) = (0, at);
        let mut cost = 0;
        for &(position, cost_left) in passed.iter().rev().filter(|(position, _)| *position < at) {
            cost -= cost_left;
            if cost < best {
                (best, target) = (cost, position);
            }
        }
        cost = 0;
        for &(position, cost_left) in passed.iter().filter(|(position, _)| *position > at) {
            cost += cost_left;
            if cost < best {
                (best, target) = (cost, position);
            }
        }
        if target < at {
            self.nets[target..=at].rotate_right(1);
        } else {
            self.nets[at..=target].rotate_left(1);
        }
        for position in at.min(target)..=at.max(target) {
            self.position[self.nets[position]] = position;
        }
        target != at
    }
}
