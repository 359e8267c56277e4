//! Drawings as data: each file of `cases/` is a graph and, below the line, how it is drawn.
//!
//! ```text
//! # a comment
//! stubs                        long edges as stubs; also `ascii`, `width 12`
//! node a ◇ orders              key and text; a node without this line has its key as text
//! column gold 3                the leftmost column of a node
//! a b -> c                     edges from a and from b to c; `~>` recomputed, `..>` order only
//! + c -> d                     added after the first layout: what was there should stay in its rows
//! ----
//! ```
//! `UPDATE=1` rewrites the drawings.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::*;
use crate::widget::text;

/// A graph with the texts of its nodes.
#[derive(Clone)]
pub(super) struct Case {
    pub graph: Graph,
    pub texts: Vec<String>,
    pub limits: Limits,
    pub glyphs: Glyphs,
}

impl Case {
    pub fn parse(input: &str) -> Case {
        let mut case = Case {
            graph: Graph::default(),
            texts: Vec::new(),
            limits: Limits { node_width_max: 28, skips: Skips::Lines },
            glyphs: Glyphs::Unicode,
        };
        let mut index: HashMap<String, usize> = HashMap::new();
        for line in input.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["stubs"] => case.limits.skips = Skips::Stubs,
                ["ascii"] => case.glyphs = Glyphs::Ascii,
                ["width", cells] => case.limits.node_width_max = cells.parse().expect("a number"),
                ["node", key, ..] => {
                    let label = line.splitn(3, ' ').nth(2).unwrap_or(key);
                    let node = case.node(key, &mut index);
                    case.texts[node] = label.to_string();
                    case.graph.nodes[node].width = text::width(label) as u16;
                }
                ["column", key, column] => {
                    let node = case.node(key, &mut index);
                    case.graph.nodes[node].column_hint = Some(column.parse().expect("a number"));
                }
                _ => {
                    let (at, style) = words
                        .iter()
                        .enumerate()
                        .find_map(|(at, word)| {
                            let style = match *word {
                                "->" => EdgeStyle::Solid,
                                "~>" => EdgeStyle::Dashed,
                                "..>" => EdgeStyle::Dotted,
                                _ => return None,
                            };
                            Some((at, style))
                        })
                        .unwrap_or_else(|| panic!("not a line of a graph: {line}"));
                    let mut nodes =
                        |words: &[&str]| -> Vec<usize> { words.iter().map(|key| case.node(key, &mut index)).collect() };
                    let (sources, targets) = (nodes(&words[..at]), nodes(&words[at + 1..]));
                    for from in sources {
                        case.graph.edges.extend(targets.iter().map(|&to| Edge { from, to, style }));
                    }
                }
            }
        }
        case
    }

    fn node(&mut self, key: &str, index: &mut HashMap<String, usize>) -> usize {
        *index.entry(key.to_string()).or_insert_with(|| {
            let (key, name) = (key.to_string(), key.to_string());
            self.texts.push(name.clone());
            self.graph.nodes.push(Node { key, width: text::width(&name) as u16, name, column_hint: None });
            self.graph.nodes.len() - 1
        })
    }

    pub fn layout(&self) -> Layout {
        layout(&self.graph, None, &self.limits)
    }

    /// Draws all of a layout; rows without blanks at their ends.
    pub fn draw(&self, layout: &Layout) -> String {
        let (width, height) = layout.size();
        let area = Rect::new(0, 0, width as u16, height as u16);
        let mut buffer = Buffer::empty(area);
        self.paint(layout, Viewport::default(), area, &mut buffer);
        picture(&buffer)
    }

    pub fn paint(&self, layout: &Layout, view: Viewport, area: Rect, buffer: &mut Buffer) {
        let cells = |node: usize, width: u16| Line::raw(text::fit_middle(&self.texts[node], usize::from(width)));
        let highlight = Highlight::default();
        paint(layout, &self.graph, view, cells, &highlight, self.glyphs, &Styles::default(), area, buffer);
    }
}

/// Returns a buffer's text, without blanks at the ends of rows.
pub(super) fn picture(buffer: &Buffer) -> String {
    let mut picture = String::new();
    for y in buffer.area.rows() {
        let mut row = String::new();
        let mut skip = 0;
        for x in y.left()..y.right() {
            let symbol = buffer[(x, y.y)].symbol();
            if skip == 0 {
                row.push_str(symbol);
                skip = text::width(symbol).max(1);
            }
            skip -= 1;
        }
        picture.push_str(row.trim_end());
        picture.push('\n');
    }
    picture
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("widget/dag/cases")
}

/// Draws a case; what is added is laid out on from the rest.
fn draw_in_steps(input: &str) -> String {
    let first: Vec<&str> = input.lines().filter(|line| !line.starts_with("+ ")).collect();
    let all: Vec<&str> = input.lines().map(|line| line.strip_prefix("+ ").unwrap_or(line)).collect();
    let first_layout = Case::parse(&first.join("\n")).layout();
    let case = Case::parse(&all.join("\n"));
    let previous = (first.len() < all.len()).then_some(&first_layout);
    case.draw(&layout(&case.graph, previous, &case.limits))
}

#[test]
fn graphs_are_drawn_as_their_files_say() {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder()).expect("the folder is read").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() > 20, "cases have moved");
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a case is text");
        let (input, expected) = text.split_once("----\n").unwrap_or((&text, ""));
        let drawn = draw_in_steps(input);
        if drawn != expected {
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&path, format!("{input}----\n{drawn}")).expect("a case is written");
            } else {
                wrong.push(format!("{}:\n{drawn}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "UPDATE=1 rewrites these:\n{}", wrong.join("\n"));
}
