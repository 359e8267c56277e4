//! Lines between two columns. A reader who follows the lines from a node comes to those it is linked to, and to
//! no other.
//!
//! Vertical lines lie on *lanes*. A vertical line is a [`Net`]: lines come in at some rows and go out at others, and
//! everything that comes in leads to everything that goes out. So lines share a net only if they come from one
//! vertex, go to one vertex, or if each of its sources is linked to each of its targets:
//!
//! ```text
//! from one     to one       all to all     not all: `b` doesn't lead to `x`
//! a ─┬─▸ x     a ─╮         a ─┬─┬─▸ x     a ───┬─▸ x
//!    ├─▸ y     b ─┤         b ─┤ ├─▸ y     b ─┬─╰─▸ y
//!    ╰─▸ z     c ─┴─▸ x     c ─╯ ╰─▸ z        ╰───▸ z
//! ```
//!
//! Where a horizontal line meets a vertical one of another net it passes under it: `─│─`, also `─├─▸` and `─╰─▸` on
//! the way to a common target, as in the last one. No cell has four arms; a net that would have one is two nets, side
//! by side.
//!
//! On one row a line from the left and another one to the right must not lie on each other: the net of the first is
//! left of the net of the second. Where such rules form a circle, a line takes a free row in between.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::lanes;

/// What a channel connects: rows of the vertices on its left and right, and links between them.
pub(super) struct Ends<'a> {
    pub left: &'a [usize],
    pub row: &'a [i32],
    pub links: &'a [Vec<usize>],
}

/// Links are sorted by target, so that those to one vertex are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Link {
    pub to: usize,
    pub from: usize,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Net {
    pub entries: BTreeSet<i32>,
    pub exits: BTreeSet<i32>,
    /// Whether all that comes in leads to one vertex and nowhere else, so that others may join on the way there.
    is_for_one: bool,
    /// The row at which a line from the left enters the net and goes on to the right: the net is all above or below.
    turn: Option<i32>,
}

impl Net {
    /// Returns the first and the last row.
    pub fn span(&self) -> (i32, i32) {
        let rows = || self.entries.iter().chain(&self.exits).copied();
        (rows().min().unwrap_or(0), rows().max().unwrap_or(0))
    }
}

/// A corner or branch: a lane and a row.
pub(super) type Joint = (usize, i32);

pub(super) struct Channel {
    pub lane_count: usize,
    /// For each link, where it touches lanes, from left to right.
    pub joints: HashMap<Link, Vec<Joint>>,
}

/// The nets of a link from left to right, and the rows between them: one fewer. None if it is straight.
#[derive(Debug, Default, Clone)]
struct Way {
    nets: Vec<usize>,
    rows: Vec<i32>,
}

/// A channel before its lanes are known.
#[derive(Default)]
pub(super) struct Routing {
    nets: Vec<Net>,
    ways: BTreeMap<Link, Way>,
    /// By row: nets that the line from the vertex on the left enters, and nets that lead to the vertex on the right.
    entered: BTreeMap<i32, Vec<usize>>,
    reached: BTreeMap<i32, Vec<usize>>,
    /// Pairs of nets, the first left of the second.
    rules: Vec<(usize, usize)>,
    /// Rows in use.
    used: BTreeSet<i32>,
    /// The vertex on the right of each row.
    target: HashMap<i32, usize>,
    /// Rows after which a free row would have made a way round short.
    pub wanted_rows: Vec<i32>,
}

/// Joins links to nets, and finds ways round where lines would lie on each other.
pub(super) fn route(ends: &Ends) -> Routing {
    let mut routing = Routing::default();
    routing.make_nets(ends);
    routing.detour();
    routing
}

/// On `row`, the first net takes in what comes from the left, and the second gives out what goes to the right.
struct RowRule {
    row: i32,
    nets: (usize, usize),
}

impl Routing {
    pub fn assign_lanes(&self, row: &[i32]) -> Channel {
        let row_rules = self.row_rules().map(|rule| rule.nets);
        let rules: Vec<(usize, usize)> = self.rules.iter().copied().chain(row_rules).collect();
        let lanes = lanes::assign(&self.nets, &rules);
        let joints = self.ways.keys().map(|link| (*link, self.joints(*link, row, &lanes))).collect();
        Channel { lane_count: lanes.iter().max().map_or(0, |last| last + 1), joints }
    }

    fn make_nets(&mut self, ends: &Ends) {
        let row = |vertex: usize| ends.row[vertex];
        let mut read: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut same_readers: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for &from in ends.left.iter().filter(|from| !ends.links[**from].is_empty()) {
            self.used.insert(row(from));
            let readers = &ends.links[from];
            same_readers.entry(readers.clone()).or_default().push(from);
            for to in readers {
                self.used.insert(row(*to));
                self.target.insert(row(*to), *to);
                read.entry(*to).or_default().push(from);
            }
        }
        for (readers, sources) in same_readers {
            if readers.len() == 1 || (sources.len() > 1 && self.connect_all(&sources, &readers, ends)) {
                continue;
            }
            for from in sources {
                let links: Vec<Link> = readers.iter().map(|&to| Link { to, from }).collect();
                self.connect(&links, row(from), |link| row(link.to), ends);
            }
        }
        for (to, sources) in read {
            let only = sources.iter().filter(|from| ends.links[**from].len() == 1);
            let links: Vec<Link> = only.map(|&from| Link { to, from }).collect();
            let first = self.nets.len();
            self.connect(&links, row(to), |link| row(link.from), ends);
            for net in &mut self.nets[first..] {
                (net.is_for_one, net.turn) = (true, None);
            }
        }
    }

    /// Connects links that have the vertex on `row` in common, by one net or by one to either side.
    fn connect(&mut self, links: &[Link], row: i32, other: impl Fn(&Link) -> i32, ends: &Ends) {
        let (mut above, mut below, mut straight) = (Vec::new(), Vec::new(), Vec::new());
        for link in links {
            match other(link).cmp(&row) {
                std::cmp::Ordering::Less => above.push(*link),
                std::cmp::Ordering::Equal => straight.push(*link),
                std::cmp::Ordering::Greater => below.push(*link),
            }
        }
        let turn = (!straight.is_empty()).then_some(row);
        if turn.is_none() {
            above.append(&mut below);
        }
        for link in straight {
            self.ways.insert(link, Way::default());
        }
        for side in [above, below] {
            if side.is_empty() {
                continue;
            }
            let net = self.add_net();
            self.nets[net].turn = turn;
            for link in side {
                self.enter(net, ends.row[link.from]);
                self.reach(net, ends.row[link.to]);
                self.ways.insert(link, Way { nets: vec![net], rows: Vec::new() });
            }
        }
    }

    /// Connects each source with each target by two nets: one gathers, one spreads, and both begin at one row.
    ///
    /// Returns whether this is possible: the row must be an end of both.
    fn connect_all(&mut self, sources: &[usize], targets: &[usize], ends: &Ends) -> bool {
        let rows = |vertices: &[usize]| vertices.iter().map(|vertex| ends.row[*vertex]).collect::<BTreeSet<i32>>();
        let (entries, exits) = (rows(sources), rows(targets));
        let (first, last) = (entries.first().copied().unwrap_or(0), entries.last().copied().unwrap_or(0));
        let is_end = |row: i32| !exits.contains(&row) || exits.first() == Some(&row) || exits.last() == Some(&row);
        let Some(row) = [first, last].into_iter().find(|row| is_end(*row)) else {
            return false;
        };
        let (gather, spread) = (self.add_net(), self.add_net());
        for entry in entries {
            self.enter(gather, entry);
        }
        for exit in exits {
            self.reach(spread, exit);
        }
        self.nets[gather].exits.insert(row);
        self.nets[spread].turn = Some(row);
        self.enter(spread, row);
        self.rules.push((gather, spread));
        for &from in sources {
            for &to in targets {
                self.ways.insert(Link { to, from }, Way { nets: vec![gather, spread], rows: vec![row] });
            }
        }
        true
    }

    fn add_net(&mut self) -> usize {
        self.nets.push(Net::default());
        self.nets.len() - 1
    }

    fn enter(&mut self, net: usize, row: i32) {
        if self.nets[net].entries.insert(row) {
            self.entered.entry(row).or_default().push(net);
        }
    }

    fn reach(&mut self, net: usize, row: i32) {
        if self.nets[net].exits.insert(row) {
            self.reached.entry(row).or_default().push(net);
        }
    }

    /// The rules that keep lines apart on rows where one comes in and another goes out.
    fn row_rules(&self) -> impl Iterator<Item = RowRule> {
        self.entered.iter().flat_map(|(row, entered)| {
            let reached = self.reached.get(row).into_iter().flatten();
            reached.flat_map(move |right| {
                let others = entered.iter().filter(move |left| *left != right);
                others.map(move |left| RowRule { row: *row, nets: (*left, *right) })
            })
        })
    }

    /// Breaks circles of rules: the line that goes out at such a row leaves its net on a free row instead, for a net
    /// of its own that nothing needs to be right of.
    fn detour(&mut self) {
        // Of two nets that connect all with all, the first is right of none: these rules are in no circle.
        let mut after: Vec<Vec<RowRule>> = self.nets.iter().map(|_| Vec::new()).collect();
        for rule in self.row_rules() {
            after[rule.nets.0].push(rule);
        }
        for &(left, right) in &self.rules {
            after[left].push(RowRule { row: 0, nets: (left, right) });
        }
        let moved: BTreeSet<(usize, i32)> = circles(&after).iter().map(|rule| (rule.nets.1, rule.row)).collect();
        // By row, and by the side that lines come from: nets that lead there from free rows.
        let mut last_nets: BTreeMap<(i32, bool), usize> = BTreeMap::new();
        for (net, row) in moved {
            let free = self.free_row(net, row);
            let last = *last_nets.entry((row, free < row)).or_insert_with(|| self.add_net());
            self.leave_at(net, row, free, last);
        }
    }

    /// Returns the free row that makes the shortest way out of `net` to `row`.
    fn free_row(&mut self, net: usize, row: i32) -> i32 {
        let (first, last) = self.nets[net].span();
        let is_free = |at: &i32| *at >= 0 && !self.used.contains(at);
        let beside = (1..=(row - first).max(last - row))
            .flat_map(|distance| [row - distance, row + distance])
            .find(|at| (first..=last).contains(at) && is_free(at));
        let length = |at: i32| (at - row).abs() + 2 * (first - at).max(at - last).max(0);
        let free = beside
            .into_iter()
            .chain([first - 1, last + 1].into_iter().filter(is_free))
            .min_by_key(|at| length(*at))
            .unwrap_or_else(|| self.used.last().map_or(0, |bottom| bottom + 1));
        if (free - row).abs() > 1 {
            self.wanted_rows.push(if first < row { row - 1 } else { row });
        }
        self.used.insert(free);
        free
    }

    /// Moves the exit of `net` at `row` to the row `free`, where the net `last` takes it on to `row`.
    fn leave_at(&mut self, net: usize, row: i32, free: i32, last: usize) {
        self.nets[net].exits.remove(&row);
        self.reached.entry(row).or_default().retain(|other| *other != net);
        let leaving = self.on_the_side_of(net, free);
        self.nets[leaving].exits.insert(free);
        self.nets[last].entries.insert(free);
        self.nets[last].is_for_one = true;
        self.reach(last, row);
        self.rules.push((leaving, last));
        let to = self.target[&row];
        let links = Link { to, from: 0 }..=Link { to, from: usize::MAX };
        for (_, way) in self.ways.range_mut(links).filter(|(_, way)| way.nets.last() == Some(&net)) {
            way.nets.pop();
            way.nets.extend([leaving, last]);
            way.rows.push(free);
        }
    }

    /// Returns `net` if it may go to `row`, else a new one that begins where it turns.
    fn on_the_side_of(&mut self, net: usize, row: i32) -> usize {
        let (first, last) = self.nets[net].span();
        match self.nets[net].turn {
            Some(turn)
                if (turn == first && row < turn && last > turn) || (turn == last && row > turn && first < turn) =>
            {
                let other = self.add_net();
                self.nets[other].turn = Some(turn);
                self.enter(other, turn);
                let before = self.rules.iter().filter(|(_, right)| *right == net);
                let before: Vec<(usize, usize)> = before.map(|(left, _)| (*left, other)).collect();
                self.rules.extend(before);
                other
            }
            _ => net,
        }
    }

    /// Returns where a link touches lanes: those of its own nets, and of others that it passes as a branch.
    fn joints(&self, link: Link, row: &[i32], lanes: &[usize]) -> Vec<Joint> {
        let Way { nets, rows } = &self.ways[&link];
        let (start, end) = (row[link.from], row[link.to]);
        let mut joints: Vec<Joint> = Vec::new();
        let entered = |row: i32| self.entered.get(&row).into_iter().flatten().map(|net| lanes[*net]);
        let pass = |row: i32, on_the_way: &mut dyn Iterator<Item = usize>| {
            let mut joints: Vec<Joint> = on_the_way.map(|lane| (lane, row)).collect();
            joints.sort_unstable();
            joints
        };
        let first = nets.first().map_or(usize::MAX, |net| lanes[*net]);
        joints.extend(pass(start, &mut entered(start).filter(|lane| *lane < first)));
        for (index, net) in nets.iter().enumerate() {
            let (lane, to) = (lanes[*net], rows.get(index).copied().unwrap_or(end));
            joints.push((lane, if index == 0 { start } else { rows[index - 1] }));
            joints.push((lane, to));
            if let Some(next) = nets.get(index + 1) {
                joints.extend(pass(to, &mut entered(to).filter(|other| (lane + 1..lanes[*next]).contains(other))));
            }
        }
        // Lines that lead to the same vertex, and only to it, may be joined.
        let last = nets.last().map(|net| lanes[*net]);
        let joined = |net: &&usize| {
            let (top, bottom) = self.nets[**net].span();
            let has_room = top == end || bottom == end;
            last.is_none_or(|last| last < lanes[**net]) && self.nets[**net].is_for_one && has_room
        };
        let reached = self.reached.get(&end).into_iter().flatten();
        joints.extend(pass(end, &mut reached.filter(joined).map(|net| lanes[*net])));
        joints
    }
}

/// Finds rules that, taken away, leave no circle.
fn circles(after: &[Vec<RowRule>]) -> Vec<&RowRule> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnTheWay,
        Done,
    }
    let mut seen = vec![Seen::No; after.len()];
    let mut found = Vec::new();
    for root in 0..after.len() {
        if seen[root] != Seen::No {
            continue;
        }
        seen[root] = Seen::OnTheWay;
        let mut way = vec![(root, after[root].iter())];
        while let Some((net, rules)) = way.last_mut() {
            let Some(rule) = rules.next() else {
                seen[*net] = Seen::Done;
                way.pop();
                continue;
            };
            let next = rule.nets.1;
            match seen[next] {
                Seen::OnTheWay => found.push(rule),
                Seen::Done => {}
                Seen::No => {
                    seen[next] = Seen::OnTheWay;
                    way.push((next, after[next].iter()));
                }
            }
        }
    }
    found
}
