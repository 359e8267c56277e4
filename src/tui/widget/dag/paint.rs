//! The visible part of a layout as cells of a buffer.

use std::collections::BTreeSet;

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::glyphs::{DOWN, Glyphs, LEFT, RIGHT, UP};
use super::layout::{Layout, Route};
use super::model::{EdgeStyle, Graph};

/// The cell of the drawing that is shown in the upper left corner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Viewport {
    pub x: u32,
    pub y: u32,
}

/// What stands out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Highlight {
    pub selected: Option<usize>,
    pub nodes: BTreeSet<usize>,
    pub edges: BTreeSet<usize>,
    /// Draws all other nodes and edges in the style `dim`.
    pub dims_rest: bool,
}

impl Highlight {
    /// Highlights a node with its edges and the nodes at their other ends.
    pub fn around(graph: &Graph, node: usize) -> Highlight {
        let mut highlight = Highlight { selected: Some(node), ..Highlight::default() };
        highlight.nodes.insert(node);
        for (index, edge) in graph.edges.iter().enumerate().filter(|(_, edge)| edge.from == node || edge.to == node) {
            highlight.edges.insert(index);
            highlight.nodes.extend([edge.from, edge.to]);
        }
        highlight
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Styles {
    pub solid: Style,
    pub dashed: Style,
    pub dotted: Style,
    pub stub: Style,
    /// Put over highlighted edges.
    pub highlighted: Style,
    /// Put over the selected node.
    pub selected: Style,
    /// Put over what is neither selected nor highlighted, if the rest is to be dim.
    pub dim: Style,
}

impl Styles {
    fn of(&self, stroke: Stroke, dims_rest: bool) -> Style {
        let style = match stroke.style {
            EdgeStyle::Solid => self.solid,
            EdgeStyle::Dashed => self.dashed,
            EdgeStyle::Dotted => self.dotted,
        };
        match stroke.is_highlighted {
            true => style.patch(self.highlighted),
            false if dims_rest => style.patch(self.dim),
            false => style,
        }
    }
}

/// Draws the part of `layout` that `area` shows from `view` on. Nothing outside `area` is touched, and in it only
/// cells of lines and texts.
///
/// `text` gives a node's text for a number of cells; what is longer is cut.
#[expect(clippy::too_many_arguments, reason = "a drawing's input, its look and its place; each is used once")]
pub fn paint<'a>(
    layout: &Layout,
    graph: &Graph,
    view: Viewport,
    text: impl Fn(usize, u16) -> Line<'a>,
    highlight: &Highlight,
    glyphs: Glyphs,
    styles: &Styles,
    area: Rect,
    buffer: &mut Buffer,
) {
    let window = Window { view, area: area.intersection(buffer.area) };
    if window.area.is_empty() {
        return;
    }
    let mut sheet = Sheet::new(window);
    for route in layout.routes() {
        let stroke =
            Stroke { style: graph.edges[route.edge].style, is_highlighted: highlight.edges.contains(&route.edge) };
        sheet.draw(route, stroke);
    }
    for (index, ink) in sheet.cells.iter().enumerate() {
        let Some((symbol, stroke)) = ink.symbol(glyphs) else { continue };
        let (x, y) = window.cell(index);
        buffer[(x, y)].set_symbol(symbol).set_style(styles.of(stroke, highlight.dims_rest));
    }
    let rows = window.rows();
    for stub in layout.stubs().iter().filter(|stub| rows.contains(&stub.y)) {
        let is_highlighted = stub.edges.iter().any(|edge| highlight.edges.contains(edge));
        let style = match is_highlighted {
            true => styles.stub.patch(styles.highlighted),
            false if highlight.dims_rest => styles.stub.patch(styles.dim),
            false => styles.stub,
        };
        let text = Line::styled(glyphs.stub(stub.side, stub.kind, &stub.label), style);
        window.write(&text, stub.x, stub.y, stub.width, buffer);
    }
    for &node in rows.clone().flat_map(|y| layout.row(y)) {
        let place = layout.place(node);
        if place.x >= window.columns().end || place.x + u32::from(place.width) <= window.columns().start {
            continue;
        }
        let mut line = text(node, place.width);
        if highlight.selected == Some(node) {
            line = line.patch_style(styles.selected);
        } else if highlight.dims_rest && !highlight.nodes.contains(&node) {
            line = line.patch_style(styles.dim);
        }
        window.write(&line, place.x, place.y, place.width, buffer);
    }
}

/// The part of the drawing that is shown.
#[derive(Clone, Copy)]
struct Window {
    view: Viewport,
    area: Rect,
}

impl Window {
    fn columns(&self) -> std::ops::Range<u32> {
        self.view.x..self.view.x.saturating_add(u32::from(self.area.width))
    }

    fn rows(&self) -> std::ops::Range<u32> {
        self.view.y..self.view.y.saturating_add(u32::from(self.area.height))
    }

    /// Returns the buffer's cell of a sheet's cell.
    fn cell(&self, index: usize) -> (u16, u16) {
        let width = usize::from(self.area.width);
        (self.area.x + (index % width) as u16, self.area.y + (index / width) as u16)
    }

    /// Writes a line of the drawing's row `y` at `x` in at most `width` cells. Of a wide character at the edge of the
    /// window blanks are drawn.
    fn write(&self, line: &Line, x: u32, y: u32, width: u16, buffer: &mut Buffer) {
        let (columns, end) = (self.columns(), x + u32::from(width));
        let row = self.area.y + (y - self.view.y) as u16;
        let mut at = x;
        for grapheme in line.styled_graphemes(Style::default()) {
            let next = at + u32::from(grapheme.symbol.cell_width());
            if next > end || at >= columns.end {
                break;
            }
            let is_whole = at >= columns.start && next <= columns.end;
            for cell in at.max(columns.start)..next.min(columns.end) {
                let symbol = if is_whole && cell == at { grapheme.symbol } else { " " };
                let column = self.area.x + (cell - columns.start) as u16;
                buffer[(column, row)].set_symbol(symbol).set_style(grapheme.style);
            }
            at = next;
        }
    }
}

/// How a line looks. Where several share a cell, the strongest style is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stroke {
    style: EdgeStyle,
    is_highlighted: bool,
}

impl Stroke {
    fn onto(self, other: Option<Stroke>) -> Option<Stroke> {
        Some(other.map_or(self, |other| Stroke {
            style: self.style.max(other.style),
            is_highlighted: self.is_highlighted || other.is_highlighted,
        }))
    }
}

/// A cell's lines: vertical ones, corners and branches lie over horizontal ones.
#[derive(Debug, Clone, Copy, Default)]
struct Ink {
    over: Option<Stroke>,
    arms: u8,
    under: Option<Stroke>,
    is_arrow: bool,
}

impl Ink {
    fn symbol(&self, glyphs: Glyphs) -> Option<(&'static str, Stroke)> {
        if let Some(stroke) = self.over {
            return Some((glyphs.line(self.arms, stroke.style), stroke));
        }
        let stroke = self.under?;
        let symbol = if self.is_arrow { glyphs.arrow() } else { glyphs.line(LEFT | RIGHT, stroke.style) };
        Some((symbol, stroke))
    }
}

/// The lines of the window.
struct Sheet {
    window: Window,
    cells: Vec<Ink>,
}

impl Sheet {
    fn new(window: Window) -> Sheet {
        Sheet { window, cells: vec![Ink::default(); usize::from(window.area.width) * usize::from(window.area.height)] }
    }

    fn at(&mut self, x: u32, y: u32) -> Option<&mut Ink> {
        let (columns, rows) = (self.window.columns(), self.window.rows());
        if !columns.contains(&x) || !rows.contains(&y) {
            return None;
        }
        let index = (y - rows.start) as usize * usize::from(self.window.area.width) + (x - columns.start) as usize;
        self.cells.get_mut(index)
    }

    fn draw(&mut self, route: &Route, stroke: Stroke) {
        let points = &route.points;
        for pair in points.windows(2) {
            self.segment(pair[0], pair[1], stroke);
        }
        for three in points.windows(3) {
            let (x, y) = three[1];
            let arms = arm(three[1], three[0]) | arm(three[1], three[2]);
            if let Some(ink) = self.at(x, y) {
                ink.over = stroke.onto(ink.over);
                ink.arms |= arms;
            }
        }
        for end in points.first().into_iter().chain(points.last()) {
            if let Some(ink) = self.at(end.0, end.1) {
                ink.under = stroke.onto(ink.under);
            }
        }
        if let Some(ink) = points.last().and_then(|end| self.at(end.0, end.1)) {
            ink.is_arrow = true;
        }
    }

    /// Draws the cells between two points.
    fn segment(&mut self, from: (u32, u32), to: (u32, u32), stroke: Stroke) {
        let (columns, rows) = (self.window.columns(), self.window.rows());
        if from.1 == to.1 {
            if rows.contains(&from.1) {
                for x in (from.0 + 1).max(columns.start)..to.0.min(columns.end) {
                    if let Some(ink) = self.at(x, from.1) {
                        ink.under = stroke.onto(ink.under);
                    }
                }
            }
        } else if columns.contains(&from.0) {
            let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
            for y in (top + 1).max(rows.start)..bottom.min(rows.end) {
                if let Some(ink) = self.at(from.0, y) {
                    ink.over = stroke.onto(ink.over);
                    ink.arms |= UP | DOWN;
                }
            }
        }
    }
}

/// Returns the arm of a cell that points to another one.
fn arm(from: (u32, u32), to: (u32, u32)) -> u8 {
    match (to.0.cmp(&from.0), to.1.cmp(&from.1)) {
        (std::cmp::Ordering::Greater, _) => RIGHT,
        (std::cmp::Ordering::Less, _) => LEFT,
        (_, std::cmp::Ordering::Greater) => DOWN,
        _ => UP,
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::super::cases::Case;
    use super::*;

    /// Draws a graph; returns a letter for each cell: `h` highlighted, `s` selected, `d` dim, `.` none of these.
    fn styles(input: &str, highlight: impl Fn(&Graph) -> Highlight) -> String {
        let case = Case::parse(input);
        let layout = case.layout();
        let (width, height) = layout.size();
        let area = Rect::new(0, 0, width as u16, height as u16);
        let mut buffer = Buffer::empty(area);
        let colour = |colour| Style::new().fg(colour);
        let looks = Styles {
            highlighted: colour(Color::Blue),
            selected: colour(Color::Red),
            dim: colour(Color::Gray),
            ..Styles::default()
        };
        let text = |node: usize, _| Line::raw(case.texts[node].as_str());
        let highlight = highlight(&case.graph);
        paint(&layout, &case.graph, Viewport::default(), text, &highlight, Glyphs::Unicode, &looks, area, &mut buffer);
        let letter = |x, y| match (buffer[(x, y)].fg, buffer[(x, y)].symbol()) {
            (_, " ") => ' ',
            (Color::Blue, _) => 'h',
            (Color::Red, _) => 's',
            (Color::Gray, _) => 'd',
            _ => '.',
        };
        let row = |y| (0..area.width).map(|x| letter(x, y)).collect::<String>().trim_end().to_string() + "\n";
        (0..area.height).map(row).collect()
    }

    #[test]
    fn edges_of_the_selected_node_stand_out_over_their_whole_length() {
        // a ─┬─▸ b ─┬─▸ d
        //    ╰─▸ c ─╯
        let around = |graph: &Graph| Highlight { dims_rest: true, ..Highlight::around(graph, 2) };
        assert_eq!(styles("a -> b c\nb c -> d", around), ". hhdd d dhhh .\n   hhh s hh\n");
    }

    #[test]
    fn line_that_passes_under_another_does_not_colour_it() {
        // a ───┬─╭─▸ y
        // b ───│─┤
        // c ─┬─╰─│─▸ x
        //    ╰───╰─▸ z
        let edge = |graph: &Graph| {
            let key = |node: usize| graph.nodes[node].key.as_str();
            let found = graph.edges.iter().position(|edge| (key(edge.from), key(edge.to)) == ("b", "y"));
            Highlight { edges: found.into_iter().collect(), ..Highlight::default() }
        };
        let drawn = styles("a -> x y\nb -> y z\nc -> x z", edge);
        assert_eq!(drawn, ". .....hhh .\n. hhh.hh\n. ........ .\n   ....... .\n");
    }

    #[test]
    fn stub_stands_out_with_its_edge() {
        let back = |_: &Graph| Highlight { edges: BTreeSet::from([1]), dims_rest: true, ..Highlight::default() };
        assert_eq!(styles("a -> b\nb -> a", back), "hhhh d ddd d hhhh\n");
    }
}
