//! From a graph to cells: the steps in order, and questions to the result.

use std::collections::HashMap;

use super::channel::{self, Channel, Ends, Link, Routing};
use super::keep::{self, Known};
use super::layers::{self, Layers};
use super::model::{Graph, Limits, Skips};
use super::stub::{self, Side, Stub};
use super::{order, rank, rows};

/// Where everything is, in cells from the drawing's upper left corner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    width: u32,
    height: u32,
    places: Vec<Place>,
    columns: Vec<Column>,
    routes: Vec<Route>,
    stubs: Vec<Stub>,
    /// Of each row, the nodes from left to right.
    nodes_of_row: Vec<Vec<usize>>,
    sources: Vec<Vec<usize>>,
    targets: Vec<Vec<usize>>,
    known: HashMap<String, Known>,
}

/// Where a node's text is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    pub x: u32,
    pub y: u32,
    pub width: u16,
    pub column: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column {
    pub x: u32,
    pub width: u32,
    /// The nodes from top to bottom.
    pub nodes: Vec<usize>,
    /// The hint that all its nodes with a hint share.
    pub hint: Option<u16>,
}

/// The line of an edge: from its first cell over corners and branches to its arrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub edge: usize,
    pub points: Vec<(u32, u32)>,
}

/// Lays out `graph`. The same nodes and edges in any order give the same drawing.
///
/// With the `previous` layout, nodes stay in their rows; without it, or if few of them are left, all is laid out anew.
pub fn layout(graph: &Graph, previous: Option<&Layout>, limits: &Limits) -> Layout {
    let sorted = Sorted::of(graph);
    let ranks = rank::rank(&sorted.edges, &sorted.hints);
    let layers = layers::cut(&ranks.column, &sorted.edges, &ranks.is_back, limits.skips == Skips::Lines);
    let mut row = vec![0; layers.vertices.len()];
    let previous = previous.filter(|previous| is_like(&sorted.keys, &previous.known));
    let columns = match previous {
        Some(previous) => keep::keep_rows(&layers, &sorted.keys, &previous.known, &mut row),
        None => rows_anew(&layers, &mut row),
    };
    let mut routings = route_all(&layers, &columns, &row);
    for _ in 0..FREE_ROW_ROUNDS {
        if previous.is_some() || !insert_rows(&routings, &mut row) {
            break;
        }
        routings = route_all(&layers, &columns, &row);
    }
    let channels = routings.iter().map(|routing| routing.assign_lanes(&row)).collect();
    let stubs = stub::stubs(graph, &sorted, &ranks, &layers);
    Drawing { graph, sorted, layers, row, columns, channels, stubs, limits }.finish()
}

/// How often rows are inserted for lines that would take a long way round.
const FREE_ROW_ROUNDS: usize = 4;

/// The graph with nodes sorted by key and edges by nodes, so that the input's order is of no matter.
pub(super) struct Sorted<'a> {
    pub keys: Vec<&'a str>,
    pub hints: Vec<Option<u16>>,
    /// The graph's node of each sorted one.
    pub node: Vec<usize>,
    pub edges: Vec<rank::Pair>,
    /// The graph's edge of each sorted one.
    pub edge: Vec<usize>,
}

impl<'a> Sorted<'a> {
    fn of(graph: &'a Graph) -> Sorted<'a> {
        let mut node: Vec<usize> = (0..graph.nodes.len()).collect();
        node.sort_by_key(|node| &graph.nodes[*node].key);
        let mut index = vec![0; node.len()];
        for (sorted, node) in node.iter().enumerate() {
            index[*node] = sorted;
        }
        let ends = |edge: usize| (index[graph.edges[edge].from], index[graph.edges[edge].to]);
        let mut edge: Vec<usize> = (0..graph.edges.len()).collect();
        edge.sort_by_key(|edge| (ends(*edge), graph.edges[*edge].style));
        Sorted {
            keys: node.iter().map(|node| graph.nodes[*node].key.as_str()).collect(),
            hints: node.iter().map(|node| graph.nodes[*node].column_hint).collect(),
            edges: edge.iter().map(|edge| ends(*edge)).collect(),
            node,
            edge,
        }
    }
}

/// Whether at least half of the nodes were drawn before.
fn is_like(keys: &[&str], known: &HashMap<String, Known>) -> bool {
    let kept = keys.iter().filter(|key| known.contains_key(**key)).count();
    kept > 0 && 2 * kept >= keys.len()
}

/// Components one below the other; a free row keeps those of several rows apart from the others.
fn rows_anew(layers: &Layers, row: &mut [i32]) -> Vec<Vec<usize>> {
    let mut columns = vec![Vec::new(); layers.column_count];
    let mut position = vec![0; layers.vertices.len()];
    let (mut top, mut height_above) = (0, 0);
    for component in layers.components() {
        let ordered = order::order(layers, &component, &mut position);
        let height = rows::rows(layers, &ordered, &position, row);
        if height_above > 1 || (height_above == 1 && height > 1) {
            top += 1;
        }
        for vertex in component {
            row[vertex] += top;
        }
        for (column, ordered) in columns.iter_mut().zip(ordered) {
            column.extend(ordered);
        }
        (top, height_above) = (top + height, height);
    }
    columns
}

fn route_all(layers: &Layers, columns: &[Vec<usize>], row: &[i32]) -> Vec<Routing> {
    let all_but_last = columns.iter().take(columns.len().saturating_sub(1));
    all_but_last.map(|left| channel::route(&Ends { left, row, links: &layers.right })).collect()
}

/// Inserts the rows that channels want; returns whether there were any.
fn insert_rows(routings: &[Routing], row: &mut [i32]) -> bool {
    let mut after: Vec<i32> = routings.iter().flat_map(|routing| &routing.wanted_rows).copied().collect();
    after.sort_unstable();
    after.dedup();
    for row in row.iter_mut() {
        *row += after.partition_point(|after| after < row) as i32;
    }
    !after.is_empty()
}

/// All that is known before cells are counted.
struct Drawing<'a> {
    graph: &'a Graph,
    sorted: Sorted<'a>,
    layers: Layers,
    row: Vec<i32>,
    columns: Vec<Vec<usize>>,
    channels: Vec<Channel>,
    stubs: Vec<Stub>,
    limits: &'a Limits,
}

/// Cells of a channel beside its lanes: a blank and a line before them, a line, the arrow and a blank after them.
const BEFORE_LANES: u32 = 2;
const AFTER_LANES: u32 = 3;
/// Up to this many lanes have a blank between them.
const WIDE_LANES: usize = 10;

impl Drawing<'_> {
    fn finish(mut self) -> Layout {
        let count = self.graph.nodes.len();
        let mut room = vec![[0u32; 2]; count];
        for stub in &self.stubs {
            room[stub.node][stub.side as usize] += u32::from(stub.width) + 1;
        }
        let mut places = vec![Place::default(); count];
        let mut columns = Vec::new();
        let mut lanes: Vec<(u32, u32)> = Vec::new();
        let mut x = 0;
        for (at, vertices) in self.columns.iter().enumerate() {
            let mut nodes: Vec<(i32, usize)> = vertices
                .iter()
                .filter(|vertex| !self.layers.vertices[**vertex].is_passing)
                .map(|vertex| (self.row[*vertex], self.sorted.node[*vertex]))
                .collect();
            nodes.sort_unstable();
            let margin = nodes.iter().map(|(_, node)| room[*node][Side::Left as usize]).max().unwrap_or(0);
            let mut width = 0;
            for &(y, node) in &nodes {
                let node_width = self.graph.nodes[node].width.min(self.limits.node_width_max);
                places[node] = Place { x: x + margin, y: y as u32, width: node_width, column: at };
                width = width.max(margin + u32::from(node_width) + room[node][Side::Right as usize]);
            }
            let mut hints = nodes.iter().filter_map(|(_, node)| self.graph.nodes[*node].column_hint);
            let hint = hints.next().filter(|first| hints.all(|hint| hint == *first));
            columns.push(Column { x, width, hint, nodes: nodes.into_iter().map(|(_, node)| node).collect() });
            x += width;
            if let Some(channel) = self.channels.get(at) {
                let pitch = if channel.lane_count <= WIDE_LANES { 2 } else { 1 };
                lanes.push((x + BEFORE_LANES, pitch));
                x += BEFORE_LANES + AFTER_LANES + (channel.lane_count as u32 * pitch + 1).saturating_sub(pitch);
            }
        }
        stub::place(&mut self.stubs, &places);
        let routes = self.routes(&places, &room, &lanes);
        let rows = routes.iter().flat_map(|route| &route.points).map(|point| point.1 + 1);
        let height = rows.chain(places.iter().map(|place| place.y + 1)).max().unwrap_or(0);
        let mut nodes_of_row = vec![Vec::new(); height as usize];
        for node in columns.iter().flat_map(|column| &column.nodes) {
            nodes_of_row[places[*node].y as usize].push(*node);
        }
        let (mut sources, mut targets) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for edge in self.graph.edges.iter().filter(|edge| edge.from != edge.to) {
            sources[edge.to].push(edge.from);
            targets[edge.from].push(edge.to);
        }
        for nodes in sources.iter_mut().chain(&mut targets) {
            nodes.sort_unstable_by_key(|node| (places[*node].y, places[*node].x));
            nodes.dedup();
        }
        let known = self.known();
        Layout { width: x, height, places, columns, routes, stubs: self.stubs, nodes_of_row, sources, targets, known }
    }

    fn routes(&self, places: &[Place], room: &[[u32; 2]], lanes: &[(u32, u32)]) -> Vec<Route> {
        let mut routes = Vec::new();
        for (index, path) in self.layers.paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            let edge = self.sorted.edge[index];
            let (from, to) = (self.graph.edges[edge].from, self.graph.edges[edge].to);
            let (start, end) = (places[from], places[to]);
            let behind = start.x + u32::from(start.width) + room[from][Side::Right as usize];
            let mut points = vec![(behind + 1, start.y)];
            for link in path.windows(2) {
                let at = self.layers.vertices[link[0]].column;
                let (x, pitch) = lanes[at];
                let joints = &self.channels[at].joints[&Link { from: link[0], to: link[1] }];
                points.extend(joints.iter().map(|(lane, row)| (x + *lane as u32 * pitch, *row as u32)));
            }
            points.push((end.x - room[to][Side::Left as usize] - 2, end.y));
            points.dedup();
            routes.push(Route { edge, points });
        }
        routes
    }

    fn known(&self) -> HashMap<String, Known> {
        let mut known: Vec<Known> = (0..self.graph.nodes.len())
            .map(|node| Known { column: self.layers.vertices[node].column, row: self.row[node], passing: Vec::new() })
            .collect();
        // Passing vertices of a node come in the order of their columns.
        for (vertex, of) in self.layers.vertices.iter().enumerate().filter(|(_, of)| of.is_passing) {
            known[of.node].passing.push(self.row[vertex]);
        }
        self.sorted.keys.iter().map(|key| key.to_string()).zip(known).collect()
    }
}

impl Layout {
    /// Returns the drawing's width and height.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    pub fn place(&self, node: usize) -> Place {
        self.places[node]
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub fn stubs(&self) -> &[Stub] {
        &self.stubs
    }

    pub(super) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Returns the nodes of a row from left to right.
    pub fn row(&self, y: u32) -> &[usize] {
        self.nodes_of_row.get(y as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the node whose text covers this cell.
    pub fn node_at(&self, x: u32, y: u32) -> Option<usize> {
        let is_here = |place: Place| (place.x..place.x + u32::from(place.width)).contains(&x);
        self.row(y).iter().copied().find(|node| is_here(self.places[*node]))
    }

    /// Returns the stub that covers this cell.
    pub fn stub_at(&self, x: u32, y: u32) -> Option<&Stub> {
        self.stubs.iter().find(|stub| stub.y == y && (stub.x..stub.x + u32::from(stub.width)).contains(&x))
    }

    /// Returns the nodes that have an edge to `node`, top to bottom.
    pub fn sources(&self, node: usize) -> &[usize] {
        &self.sources[node]
    }

    /// Returns the nodes that have an edge from `node`, top to bottom.
    pub fn targets(&self, node: usize) -> &[usize] {
        &self.targets[node]
    }

    /// Returns the source that one came from on the way to `node`, else the one in the nearest row.
    pub fn left(&self, node: usize, came_from: Option<usize>) -> Option<usize> {
        self.follow(node, &self.sources[node], came_from)
    }

    /// Returns the target that one came from on the way to `node`, else the one in the nearest row.
    pub fn right(&self, node: usize, came_from: Option<usize>) -> Option<usize> {
        self.follow(node, &self.targets[node], came_from)
    }

    fn follow(&self, node: usize, ends: &[usize], came_from: Option<usize>) -> Option<usize> {
        let nearest = || ends.iter().copied().min_by_key(|end| self.places[*end].y.abs_diff(self.places[node].y));
        came_from.filter(|other| ends.contains(other)).or_else(nearest)
    }

    /// Returns the node above in the same column; at its top, the nearest one of a row above.
    pub fn up(&self, node: usize) -> Option<usize> {
        let place = self.places[node];
        let column = &self.columns[place.column].nodes;
        let above = column.partition_point(|other| self.places[*other].y < place.y);
        above
            .checked_sub(1)
            .map(|index| column[index])
            .or_else(|| (0..place.y).rev().find_map(|y| self.nearest_of_row(y, place.column)))
    }

    /// Returns the node below in the same column; at its end, the nearest one of a row below.
    pub fn down(&self, node: usize) -> Option<usize> {
        let place = self.places[node];
        let column = &self.columns[place.column].nodes;
        let below = column.partition_point(|other| self.places[*other].y <= place.y);
        column
            .get(below)
            .copied()
            .or_else(|| (place.y + 1..self.height).find_map(|y| self.nearest_of_row(y, place.column)))
    }

    fn nearest_of_row(&self, y: u32, column: usize) -> Option<usize> {
        self.row(y).iter().copied().min_by_key(|node| self.places[*node].column.abs_diff(column))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::Case;
    use super::*;

    /// A layout, and its nodes by key.
    fn laid_out(input: &str) -> (Layout, impl Fn(&str) -> usize) {
        let case = Case::parse(input);
        let layout = case.layout();
        let node = move |key: &str| case.graph.nodes.iter().position(|node| node.key == key).expect("a node");
        (layout, node)
    }

    #[test]
    fn keys_follow_edges_and_remember_where_they_came_from() {
        //      ╭─▸ b ────╮
        // a ─┬─┴─▸ c ──┬─┴─▸ e
        //    ╰───▸ d ──╯
        let (layout, node) = laid_out("a -> b c d\nb c d -> e");
        let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(&node);
        assert_eq!(layout.right(a, None), Some(c), "the nearest row");
        assert_eq!(layout.right(a, Some(b)), Some(b), "the one we came from");
        assert_eq!(layout.right(a, Some(e)), Some(c), "which is no target");
        assert_eq!(layout.left(e, Some(d)), Some(d));
        assert_eq!((layout.left(a, None), layout.right(e, None)), (None, None));
        assert_eq!((layout.down(b), layout.down(c), layout.up(d)), (Some(c), Some(d), Some(c)));
        assert_eq!((layout.up(b), layout.down(d)), (None, None));
        assert_eq!((layout.down(a), layout.up(e)), (Some(d), Some(b)), "a column's end leads to the next row");
        assert_eq!((layout.sources(e), layout.targets(a)), (&[b, c, d][..], &[b, c, d][..]));
    }

    #[test]
    fn cells_are_asked_who_is_there() {
        let (layout, node) = laid_out("node a alpha\na -> a\na -> b");
        let (a, b) = (node("a"), node("b"));
        assert_eq!(layout.size(), (13, 1), "alpha ↺ ──▸ b");
        assert_eq!((layout.node_at(0, 0), layout.node_at(4, 0), layout.node_at(5, 0)), (Some(a), Some(a), None));
        assert_eq!(layout.stub_at(6, 0).map(|stub| (stub.node, stub.kind)), Some((a, stub::StubKind::SelfEdge)));
        assert_eq!(layout.node_at(layout.place(b).x, 0), Some(b));
        assert_eq!((layout.node_at(0, 1), layout.row(1)), (None, &[][..]));
    }

    #[test]
    fn column_has_the_hint_that_its_nodes_share() {
        let (layout, _) = laid_out("column a 1\ncolumn b 1\ncolumn c 4\ncolumn d 5\na b -> c\na -> d\nx -> a");
        let hints: Vec<Option<u16>> = layout.columns().iter().map(|column| column.hint).collect();
        assert_eq!(hints, [None, Some(1), Some(4), Some(5)]);
    }
}
