//! What holds for every drawing, over random graphs. The main one: a reader who follows the lines from a node, knowing
//! only the characters, comes to the nodes it has edges to, and to no other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::cases::{Case, picture};
use super::glyphs::{DOWN, LEFT, RIGHT, UP};
use super::*;

#[path = "../../../../tests/bench/medallion.rs"]
mod medallion;

use medallion::{Random, medallion};

/// Graphs with few nodes and any edges: forward ones mostly, some back, some to itself.
fn graphs() -> impl Strategy<Value = Graph> {
    let size = prop_oneof![4 => 0usize..16, 1 => 16usize..40];
    (size, any::<u64>(), 1usize..4, 0usize..20).prop_map(|(count, seed, density, backwards)| {
        let mut random = Random(seed | 1);
        let nodes = (0..count).map(|index| {
            let column_hint = (random.below(8) == 0).then(|| random.below(5) as u16);
            let name = format!("n{index}");
            Node { key: format!("key {:02}", (index * 7) % 41), name, width: 1 + random.below(12) as u16, column_hint }
        });
        let nodes: Vec<Node> = nodes.collect();
        let styles = [EdgeStyle::Solid, EdgeStyle::Dashed, EdgeStyle::Dotted];
        let edges = (0..count * density).map(|_| {
            let (a, b) = (random.below(count), random.below(count));
            let is_back = random.below(20) < backwards / 5;
            let (from, to) = if is_back { (a.max(b), a.min(b)) } else { (a.min(b), a.max(b)) };
            Edge { from, to, style: styles[random.below(3)] }
        });
        let edges = edges.filter(|edge| edge.from != edge.to || backwards > 10).collect();
        Graph { nodes, edges }
    })
}

fn as_case(graph: Graph, skips: Skips) -> Case {
    let texts = graph.nodes.iter().map(|node| "x".repeat(usize::from(node.width))).collect();
    Case { graph, texts, limits: Limits { node_width_max: 9, skips }, glyphs: Glyphs::Unicode }
}

fn whole(case: &Case, layout: &Layout) -> Buffer {
    let (width, height) = layout.size();
    let area = Rect::new(0, 0, width as u16, height as u16);
    let mut buffer = Buffer::empty(area);
    case.paint(layout, Viewport::default(), area, &mut buffer);
    buffer
}

type Cells = BTreeSet<(u32, u32)>;

/// What a reader sees in a cell.
#[derive(Debug, PartialEq)]
enum Seen {
    Arms(u8),
    Arrow,
    Other,
}

fn see(buffer: &Buffer, x: u32, y: u32) -> Seen {
    let Some(cell) = buffer.cell((x as u16, y as u16)) else { return Seen::Other };
    Seen::Arms(match cell.symbol() {
        "─" | "╌" | "┈" => LEFT | RIGHT,
        "│" | "┆" | "┊" => UP | DOWN,
        "╭" => RIGHT | DOWN,
        "╮" => LEFT | DOWN,
        "╰" => UP | RIGHT,
        "╯" => UP | LEFT,
        "├" => UP | RIGHT | DOWN,
        "┤" => UP | DOWN | LEFT,
        "┬" => LEFT | RIGHT | DOWN,
        "┴" => LEFT | RIGHT | UP,
        "▸" => return Seen::Arrow,
        _ => return Seen::Other,
    })
}

/// Follows lines from a cell to the right; returns the cells of arrows and of all that was passed.
///
/// Lines run to the right, up and down. One that meets a line without an arm for it passes under.
fn follow(buffer: &Buffer, start: (u32, u32)) -> (Cells, Cells) {
    let (mut arrows, mut passed) = (Cells::new(), Cells::new());
    let mut open = vec![(start.0, start.1, RIGHT)];
    let mut done = BTreeSet::new();
    while let Some((x, y, towards)) = open.pop() {
        if !done.insert((x, y, towards)) {
            continue;
        }
        match see(buffer, x, y) {
            Seen::Arrow => {
                assert_eq!(towards, RIGHT, "an arrow is reached from its left");
                arrows.insert((x, y));
                passed.insert((x, y));
            }
            Seen::Other => panic!("a line ends nowhere at {x}, {y} in\n{}", picture(buffer)),
            Seen::Arms(arms) if towards == RIGHT && arms & LEFT == 0 => open.push((x + 1, y, RIGHT)),
            Seen::Arms(arms) => {
                passed.insert((x, y));
                let back = match towards {
                    UP => DOWN,
                    DOWN => UP,
                    _ => LEFT,
                };
                assert!(arms & back != 0, "a line is broken at {x}, {y} in\n{}", picture(buffer));
                if arms & RIGHT != 0 {
                    open.push((x + 1, y, RIGHT));
                }
                if arms & UP != 0 && towards != DOWN {
                    open.push((x, y - 1, UP));
                }
                if arms & DOWN != 0 && towards != UP {
                    open.push((x, y + 1, DOWN));
                }
            }
        }
    }
    (arrows, passed)
}

/// Fails unless lines and stubs of the drawing say exactly what the graph says.
fn assert_says_the_graph(case: &Case, layout: &Layout) {
    let buffer = whole(case, layout);
    let graph = &case.graph;
    let as_stub: BTreeSet<usize> = layout.stubs().iter().flat_map(|stub| &stub.edges).copied().collect();
    for edge in &as_stub {
        let Edge { from, to, .. } = graph.edges[*edge];
        let has = |node: usize, side: Side| {
            layout.stubs().iter().any(|stub| stub.node == node && stub.side == side && stub.edges.contains(edge))
        };
        assert!(has(from, Side::Right) && (from == to || has(to, Side::Left)), "a stub lacks its other half");
    }
    let mut passed = BTreeSet::new();
    for node in 0..graph.nodes.len() {
        let expected: BTreeSet<usize> = (0..graph.edges.len())
            .filter(|edge| graph.edges[*edge].from == node && !as_stub.contains(edge))
            .map(|edge| graph.edges[edge].to)
            .collect();
        let place = layout.place(node);
        let stubs = layout.stubs().iter().filter(|stub| stub.node == node && stub.side == Side::Right);
        let behind = stubs.map(|stub| stub.x + u32::from(stub.width)).max().unwrap_or(place.x + u32::from(place.width));
        if expected.is_empty() {
            assert_eq!(see(&buffer, behind + 1, place.y), Seen::Other, "a line without an edge");
            continue;
        }
        let (arrows, cells) = follow(&buffer, (behind + 1, place.y));
        let is_right = |other: &usize, x: u32| layout.place(*other).x > x;
        let found: BTreeSet<usize> = arrows
            .iter()
            .map(|(x, y)| *layout.row(*y).iter().find(|other| is_right(other, *x)).expect("an arrow has a node"))
            .collect();
        assert_eq!(found, expected, "from {node} in\n{}", picture(&buffer));
        passed.extend(cells);
    }
    for (index, cell) in buffer.content.iter().enumerate() {
        let (x, y) = buffer.pos_of(index);
        let at = (u32::from(x), u32::from(y));
        let is_line = matches!(see(&buffer, at.0, at.1), Seen::Arms(_) | Seen::Arrow);
        assert!(!is_line || passed.contains(&at), "nobody's line {} at {at:?} in\n{}", cell.symbol(), picture(&buffer));
        assert!(cell.symbol() != "┼", "a cell with four arms in\n{}", picture(&buffer));
    }
}

/// Fails if texts of nodes and stubs lie on each other, or outside the drawing.
fn assert_nothing_overlaps(layout: &Layout, count: usize) {
    let mut taken: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for place in (0..count).map(|node| layout.place(node)) {
        taken.entry(place.y).or_default().push((place.x, place.x + u32::from(place.width)));
    }
    for stub in layout.stubs() {
        taken.entry(stub.y).or_default().push((stub.x, stub.x + u32::from(stub.width)));
    }
    for (y, mut texts) in taken {
        texts.sort_unstable();
        assert!(texts.windows(2).all(|pair| pair[0].1 < pair[1].0), "row {y}: {texts:?}");
        assert!(texts.iter().all(|text| text.1 <= layout.size().0) && y < layout.size().1);
    }
}

/// Puts nodes and edges into another order.
fn shuffled(graph: &Graph, random: &mut Random) -> (Graph, Vec<usize>) {
    let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    let mut index = vec![0; order.len()];
    for (new, old) in order.iter().enumerate() {
        index[*old] = new;
    }
    let nodes = order.iter().map(|old| graph.nodes[*old].clone()).collect();
    let mut edges: Vec<Edge> =
        graph.edges.iter().map(|edge| Edge { from: index[edge.from], to: index[edge.to], ..*edge }).collect();
    for at in (1..edges.len()).rev() {
        edges.swap(at, random.below(at + 1));
    }
    (Graph { nodes, edges }, index)
}

fn medallion_graph(count: usize, seed: u64) -> Graph {
    let made = medallion(count, seed);
    let node = |(key, _): &(String, usize)| Node {
        key: key.clone(),
        name: key.clone(),
        width: key.len() as u16,
        column_hint: None,
    };
    let edges = made.edges.iter().map(|&(from, to)| Edge { from, to, style: EdgeStyle::Solid });
    Graph { nodes: made.nodes.iter().map(node).collect(), edges: edges.collect() }
}

fn without(graph: &Graph, node: usize) -> Graph {
    let index = |other: usize| other - usize::from(other > node);
    let edges = graph.edges.iter().filter(|edge| edge.from != node && edge.to != node);
    Graph {
        nodes: graph
            .nodes
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != node)
            .map(|(_, node)| node.clone())
            .collect(),
        edges: edges.map(|edge| Edge { from: index(edge.from), to: index(edge.to), ..*edge }).collect(),
    }
}

/// Returns by how many rows each node that is in both moved, sorted.
fn moves(before: (&Graph, &Layout), after: (&Graph, &Layout)) -> Vec<u32> {
    let rows = |(graph, layout): (&Graph, &Layout)| -> BTreeMap<String, u32> {
        graph.nodes.iter().enumerate().map(|(node, of)| (of.key.clone(), layout.place(node).y)).collect()
    };
    let after = rows(after);
    let before = rows(before);
    let mut moves: Vec<u32> =
        before.iter().filter_map(|(key, row)| after.get(key).map(|now| now.abs_diff(*row))).collect();
    moves.sort_unstable();
    moves
}

fn assert_hardly_moved(moves: &[u32]) {
    let (median, most) = (moves[moves.len() / 2], moves[(moves.len() * 95 / 100).min(moves.len() - 1)]);
    assert!(median == 0 && most <= 2, "median {median}, 95 of 100 at most {most}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reader_who_follows_the_lines_finds_the_edges(graph in graphs(), skips_are_lines: bool) {
        let case = as_case(graph, if skips_are_lines { Skips::Lines } else { Skips::Stubs });
        let layout = case.layout();
        assert_nothing_overlaps(&layout, case.graph.nodes.len());
        assert_says_the_graph(&case, &layout);
    }

    #[test]
    fn shuffled_input_gives_the_same_drawing(graph in graphs(), seed: u64) {
        let (other, index) = shuffled(&graph, &mut Random(seed | 1));
        let case = as_case(graph, Skips::Lines);
        let shuffled = as_case(other, Skips::Lines);
        let (layout, other) = (case.layout(), shuffled.layout());
        prop_assert_eq!(picture(&whole(&case, &layout)), picture(&whole(&shuffled, &other)));
        for (node, new) in index.iter().enumerate() {
            prop_assert_eq!(layout.place(node), other.place(*new));
        }
    }

    #[test]
    fn edited_graph_is_drawn_right_over_many_edits(graph in graphs(), seed: u64) {
        let mut random = Random(seed | 1);
        let mut case = as_case(graph, Skips::Lines);
        let mut layout = case.layout();
        for step in 0..6 {
            let count = case.graph.nodes.len();
            if count > 0 && random.below(2) == 0 {
                case = as_case(without(&case.graph, random.below(count)), Skips::Lines);
            } else {
                let key = format!("added {step}");
                case.graph.nodes.push(Node { name: key.clone(), key, width: 5, column_hint: None });
                for _ in 0..random.below(4) {
                    let (from, to) = (random.below(count + 1), random.below(count + 1));
                    case.graph.edges.push(Edge { from: from.min(to), to: from.max(to), style: EdgeStyle::Solid });
                }
                case = as_case(case.graph, Skips::Lines);
            }
            layout = super::layout(&case.graph, Some(&layout), &case.limits);
            assert_nothing_overlaps(&layout, case.graph.nodes.len());
            assert_says_the_graph(&case, &layout);
        }
    }

    #[test]
    fn window_shows_its_part_of_the_drawing_and_touches_nothing_else(
        graph in graphs(), area in (0u16..9, 0u16..9, 0u16..60, 0u16..20), view in (0u32..70, 0u32..30),
    ) {
        let mut case = as_case(graph, Skips::Lines);
        for text in case.texts.iter_mut().step_by(2) {
            *text = "顧客".to_string();
        }
        let layout = case.layout();
        let all = whole(&case, &layout);
        let mut buffer = Buffer::filled(Rect::new(2, 1, 40, 12), ratatui::buffer::Cell::new("#"));
        let area = Rect::new(area.0, area.1, area.2, area.3);
        case.paint(&layout, Viewport { x: view.0, y: view.1 }, area, &mut buffer);
        for y in 1..13 {
            for x in 2..42 {
                let seen = buffer[(x, y)].symbol();
                if !area.contains((x, y).into()) {
                    prop_assert_eq!(seen, "#");
                    continue;
                }
                // The window begins where area and buffer both do.
                let (left, top) = (area.x.max(2), area.y.max(1));
                let whole = all.cell(((view.0 as u16) + x - left, (view.1 as u16) + y - top));
                let expected = whole.map_or(" ", |cell| cell.symbol());
                let is_same = seen == expected || (expected == " " && seen == "#");
                // Of a wide character at the window's edge there is a blank.
                prop_assert!(is_same || seen == " ", "{} for {} at {}, {}", seen, expected, x, y);
            }
        }
    }

    #[test]
    fn walk_by_keys_stays_in_the_graph(graph in graphs(), steps in proptest::collection::vec(0usize..4, 1..40)) {
        prop_assume!(!graph.nodes.is_empty());
        let layout = layout(&graph, None, &Limits::default());
        let mut node = 0;
        let mut came_from = None;
        for step in steps {
            let next = match step {
                0 => layout.left(node, came_from),
                1 => layout.right(node, came_from),
                2 => layout.up(node),
                _ => layout.down(node),
            };
            let Some(next) = next else { continue };
            let (here, there) = (layout.place(node), layout.place(next));
            match step {
                0 => prop_assert!(graph.edges.iter().any(|edge| (edge.from, edge.to) == (next, node))),
                1 => prop_assert!(graph.edges.iter().any(|edge| (edge.from, edge.to) == (node, next))),
                2 => prop_assert!(there.y < here.y),
                _ => prop_assert!(there.y > here.y),
            }
            prop_assert_eq!(layout.node_at(there.x, there.y), Some(next));
            came_from = Some(node);
            node = next;
        }
    }
}

#[test]
fn one_node_more_or_less_hardly_moves_the_others() {
    let limits = Limits::default();
    for seed in 0..150 {
        let mut random = Random(seed | 1);
        let count = 20 + random.below(140);
        let graph = medallion_graph(count, seed);
        let before = layout(&graph, None, &limits);

        let fewer = without(&graph, random.below(count));
        let after = layout(&fewer, Some(&before), &limits);
        assert_hardly_moved(&moves((&graph, &before), (&fewer, &after)));

        let mut more = graph.clone();
        more.nodes.push(Node { key: "added".to_string(), name: String::new(), width: 9, column_hint: None });
        for _ in 0..=random.below(3) {
            let other = random.below(count);
            let is_source = random.below(3) > 0;
            let (from, to) = if is_source { (other, count) } else { (count, other) };
            more.edges.push(Edge { from, to, style: EdgeStyle::Solid });
        }
        let after = layout(&more, Some(&before), &limits);
        assert_hardly_moved(&moves((&graph, &before), (&more, &after)));
    }
}

#[test]
fn layout_on_top_of_itself_changes_nothing() {
    let limits = Limits::default();
    let graph = medallion_graph(100, 5);
    let before = layout(&graph, None, &limits);
    let after = layout(&graph, Some(&before), &limits);
    assert_eq!(moves((&graph, &before), (&graph, &after)).last(), Some(&0));
    assert_eq!(before.routes(), after.routes());
}

#[test]
fn empty_and_tiny_graphs_survive_tiny_windows() {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 1, 1));
    for input in ["", "node a a", "a -> a", "a -> b\nb -> a"] {
        let case = Case::parse(input);
        let layout = case.layout();
        for area in [Rect::ZERO, Rect::new(0, 0, 1, 1), Rect::new(7, 7, 3, 3), Rect::new(0, 0, 300, 100)] {
            let view = Viewport { x: u32::MAX, y: u32::MAX };
            case.paint(&layout, view, area, &mut buffer);
            case.paint(&layout, Viewport::default(), area, &mut buffer);
        }
    }
}

#[test]
fn text_longer_than_its_place_is_cut() {
    let case = Case::parse("width 3\nnode a abcdef");
    let layout = case.layout();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
    let (highlight, styles) = (Highlight::default(), Styles::default());
    let area = buffer.area;
    let text = |_, _| Line::raw("abcdef");
    paint(&layout, &case.graph, Viewport::default(), text, &highlight, Glyphs::Unicode, &styles, area, &mut buffer);
    assert_eq!(picture(&buffer), "abc\n");
}
