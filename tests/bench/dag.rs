//! How fast a pipeline's graph is laid out and painted.
//!
//! ```text
//! cargo bench -p flowbench-tui --bench dag
//! ```
//! Medians of made-up graphs of 29 to 2,000 nodes, beside their aims: laid out anew, laid out after an edit, painted
//! into 120×36 cells.

mod medallion;

use std::time::{Duration, Instant};

use medallion::medallion;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use tui::widget::dag::{Edge, EdgeStyle, Glyphs, Graph, Highlight, Limits, Node, Styles, Viewport, layout, paint};

const RUNS: usize = 15;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("not measured: run by `cargo bench -p flowbench-tui --bench dag`");
        return;
    }
    println!("{:>6} {:>10} {:>14} {:>14} {:>14} {:>8}", "nodes", "cells", "anew", "after an edit", "paint", "aim");
    for (count, aim_ms) in [(29, 5), (100, 10), (500, 30), (2000, 150)] {
        let graph = graph(count);
        let mut edited = graph.clone();
        edited.nodes.push(node("gold.added"));
        edited.edges.push(Edge { from: count / 2, to: count, style: EdgeStyle::Dashed });

        let limits = Limits::default();
        let first = layout(&graph, None, &limits);
        let anew = median(|| drop(layout(&graph, None, &limits)));
        let kept = median(|| drop(layout(&edited, Some(&first), &limits)));
        let area = Rect::new(0, 0, 120, 36);
        let mut buffer = Buffer::empty(area);
        let (width, height) = first.size();
        let view = Viewport { x: width.saturating_sub(120) / 2, y: height.saturating_sub(36) / 2 };
        let highlight = Highlight { dims_rest: true, ..Highlight::around(&graph, count / 2) };
        let painted = median(|| {
            let text = |node: usize, _| Line::raw(graph.nodes[node].name.as_str());
            paint(&first, &graph, view, text, &highlight, Glyphs::Unicode, &Styles::default(), area, &mut buffer);
        });
        let cells = format!("{width}×{height}");
        println!("{count:>6} {cells:>10} {anew:>14.1?} {kept:>14.1?} {painted:>14.1?} {aim_ms:>5} ms");
    }
    println!("painting has an aim of 4 ms");
}

fn graph(count: usize) -> Graph {
    let made = medallion(count, 1);
    let nodes = made.nodes.iter().map(|(key, _)| node(key)).collect();
    let edges = made.edges.iter().map(|&(from, to)| Edge { from, to, style: EdgeStyle::Solid }).collect();
    Graph { nodes, edges }
}

fn node(key: &str) -> Node {
    Node { key: key.to_string(), name: key.to_string(), width: key.len() as u16, column_hint: None }
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}
