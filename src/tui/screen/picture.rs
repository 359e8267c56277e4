//! The pipeline as a graph: a node a row, sources at the left, what is read last at the right.

use pipeline::graph::Graph;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::explorer::{badge as scd_badge, group_states, short_state};
use super::pane_frame;
use super::words::{per_second, short};
use crate::app::picture::{name_of, tail};
use crate::app::rows::schema_of;
use crate::app::{App, Node, Pane, Target};
use crate::theme::{Role, Theme};
use crate::widget::dag::{Glyphs, Highlight, Styles, Viewport, paint};
use crate::widget::text::{fit, fit_middle, width};

/// The title of the graph's pane: how it is drawn, and of which files.
pub fn title(app: &App, way: &str) -> String {
    let mut title = format!("Graph · {way}");
    if let Some(focus) = &app.picture.focus {
        title.push_str(&format!(" · near {} (±{}, {} hidden)", name_of(&focus.node), focus.steps, focus.hidden));
    }
    match app.known.shown() {
        Some((_, Some(revision))) => title.push_str(&format!(" · rev {revision} (last good)")),
        Some((_, None)) if app.known.counts().0 > 0 => title.push_str(" · as far as the files can be read"),
        _ => {}
    }
    title
}

/// Says why there is no graph.
pub fn draw_nothing(app: &App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let lines: Vec<(Role, String)> = match (&app.known.unreadable, &app.known.verdict) {
        (Some(problem), _) => {
            let mut lines = vec![(Role::Error, problem.message.clone())];
            lines.extend(problem.help.iter().map(|help| (Role::Text, help.clone())));
            lines
        }
        (None, None) => {
            let files = pipeline::number::counted(app.known.files.len() as u64, "file", "files");
            vec![(Role::Muted, format!("reading {files}…"))]
        }
        (None, Some(_)) => vec![(Role::Muted, "no dataset is defined yet".to_string())],
    };
    for (n, (role, text)) in lines.iter().enumerate().take(usize::from(area.height)) {
        let text = fit(text, usize::from(area.width).saturating_sub(2)).into_owned();
        buffer.set_string(area.x + 1, area.y + n as u16, text, theme.style(*role));
    }
}

/// A name isn't cut shorter than this for the sake of a number.
const NAME_MIN: usize = 12;

/// Draws the graph.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let title = title(app, "boxes");
    let foot = app.chosen.as_ref().map(|node| foot(app, node)).unwrap_or_default();
    let inner = pane_frame(app, Pane::Graph, area, &title, &foot, buffer);
    let Some(layout) = app.picture.layout.clone().filter(|_| !app.picture.nodes.is_empty()) else {
        draw_nothing(app, inner, buffer);
        return;
    };
    let chosen = app.chosen.as_ref().and_then(|node| app.picture.index(node));
    scroll(app, &layout, chosen, inner);
    let theme = app.options.theme;
    let (x, y) = app.picture.scroll;
    let highlight = match chosen {
        Some(node) => Highlight::around(&app.picture.graph, node),
        None => Highlight::default(),
    };
    let line = theme.style(Role::Muted);
    let styles = Styles {
        solid: line,
        dashed: line,
        dotted: line,
        stub: line,
        highlighted: Style::new().remove_modifier(Modifier::DIM).patch(theme.style(Role::Focus)),
        selected: theme.style(if app.pane == Pane::Graph { Role::Cursor } else { Role::DimCursor }),
        dim: Style::new(),
    };
    let glyphs = if theme.is_ascii { Glyphs::Ascii } else { Glyphs::Unicode };
    let text = |node: usize, cells: u16| node_line(app, &app.picture.nodes[node], usize::from(cells));
    paint(&layout, &app.picture.graph, Viewport { x, y }, text, &highlight, glyphs, &styles, inner, buffer);
    // Where the visible nodes are, for the mouse.
    let mut targets = Vec::new();
    for row in y..y + u32::from(inner.height) {
        for node in layout.row(row) {
            let place = layout.place(*node);
            let left = place.x.max(x);
            let right = (place.x + u32::from(place.width)).min(x + u32::from(inner.width));
            if left < right {
                let rect = Rect {
                    x: inner.x + (left - x) as u16,
                    y: inner.y + (row - y) as u16,
                    width: (right - left) as u16,
                    height: 1,
                };
                targets.push((rect, Target::Node(app.picture.nodes[*node].clone())));
            }
        }
    }
    app.targets.extend(targets);
    overview(app, &layout, inner, buffer);
}

/// Moves the view so that the chosen node is in it, if it has just been chosen.
fn scroll(app: &mut App, layout: &crate::widget::dag::Layout, chosen: Option<usize>, inner: Rect) {
    let (width, height) = layout.size();
    let (seen_x, seen_y) = (u32::from(inner.width), u32::from(inner.height));
    let (mut x, mut y) = app.picture.scroll;
    if let Some(node) = chosen.filter(|_| std::mem::take(&mut app.picture.must_show)) {
        let place = layout.place(node);
        if place.y < y || place.y >= y + seen_y {
            y = place.y.saturating_sub(seen_y / 2);
        }
        if place.x < x || place.x + u32::from(place.width) > x + seen_x {
            // Only as far as needed: what feeds it stands at its left.
            x = match place.x < x {
                true => place.x,
                false => (place.x + u32::from(place.width)).saturating_sub(seen_x).min(place.x),
            };
        }
    }
    app.picture.scroll = (x.min(width.saturating_sub(seen_x)), y.min(height.saturating_sub(seen_y)));
}

/// Arrows where the graph goes on outside the view.
fn overview(app: &App, layout: &crate::widget::dag::Layout, inner: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let (width, height) = layout.size();
    let (x, y) = app.picture.scroll;
    if inner.width < 2 || inner.height < 2 {
        return;
    }
    let style = theme.style(Role::Key);
    let mut put = |is_there: bool, x: u16, y: u16, glyph: &str| {
        if is_there {
            buffer.set_string(x, y, glyph, style);
        }
    };
    put(y > 0, inner.right() - 1, inner.y, theme.pick("↑", "^"));
    put(height > y + u32::from(inner.height), inner.right() - 1, inner.bottom() - 1, theme.pick("↓", "v"));
    put(x > 0, inner.x, inner.bottom() - 1, theme.pick("←", "<"));
    put(width > x + u32::from(inner.width), inner.right() - 2, inner.bottom() - 1, theme.pick("→", ">"));
}

/// What is known of the chosen node in one line.
fn foot(app: &App, node: &Node) -> String {
    let Some(graph) = app.known.graph() else { return String::new() };
    let nodes = app.picture.nodes.len();
    let name = fit_middle(name_of(node), 40).into_owned();
    let more = match node {
        Node::Dataset(label) => match app.known.find_dataset(label) {
            Some(id) => format!(
                " · {} upstream · {} downstream · {} into it",
                graph.upstream(id).len(),
                graph.readers(id).len(),
                pipeline::number::counted(graph.dataset(id).flows.len() as u64, "flow", "flows")
            ),
            None => String::new(),
        },
        Node::Flow(name) => match app.known.find_flow(name) {
            Some(id) => {
                format!(" · {} into {}", graph.flow(id).kind.words(), graph.dataset(graph.flow(id).target).label)
            }
            None => String::new(),
        },
        Node::Source(_) | Node::Schema(_) | Node::File(_) => String::new(),
    };
    format!("{nodes} nodes · {name}{more}")
}

/// A node's text in exactly the cells that it has: kind, name, state, number.
fn node_line(app: &App, node: &Node, cells: usize) -> Line<'static> {
    let theme = app.options.theme;
    let Some(graph) = app.known.graph() else { return Line::default() };
    let (mark, right) = match node {
        Node::Source(_) => (theme.pick("◇", "<").to_string(), Vec::new()),
        Node::File(_) => (String::new(), Vec::new()),
        Node::Schema(name) => {
            let datasets: Vec<_> = graph.dataset_ids().filter(|id| schema_of(graph, *id) == *name).collect();
            (theme.pick("▸", "+").to_string(), group_states(app, graph, &datasets))
        }
        Node::Dataset(label) => match app.known.find_dataset(label) {
            Some(id) => {
                let kind = theme.kind_glyph(graph.dataset(id).kind());
                let mut right = short_state(app, graph, id);
                right.splice(0..0, scd_badge(app, graph, id));
                if let Some(n) = crate::app::picture::badge(graph, id) {
                    right.insert(0, Span::styled(format!("{n}{} ", theme.pick("⇉", "=")), theme.style(Role::Muted)));
                }
                (kind.to_string(), right)
            }
            None => (" ".to_string(), Vec::new()),
        },
        Node::Flow(name) => (flow_mark(app, graph, name), flow_numbers(app, name)),
    };
    // Where there is no room for all, a badge goes first, then a number; the state stays.
    let name_cells = cells.saturating_sub(width(&mark) + 1);
    let wanted = match node {
        Node::Source(path) => width(tail(path)),
        node => width(name_of(node)),
    };
    let cells_of = |spans: &[Span]| spans.iter().map(|span| width(&span.content)).sum::<usize>();
    let mut kept = right;
    while !kept.is_empty() {
        let room = name_cells.saturating_sub(cells_of(&kept) + 1);
        let is_enough = room >= wanted || (kept.len() <= 2 && room >= NAME_MIN);
        if is_enough || (kept.len() == 1 && room > 0) {
            break;
        }
        match kept.len() {
            4.. => drop(kept.remove(0)),
            3 if kept[0].content.is_empty() => drop(kept.remove(0)),
            _ => drop(kept.pop()),
        }
    }
    let kept_width = cells_of(&kept);
    let name = match node {
        Node::Source(path) => fit_middle(tail(path), name_cells).into_owned(),
        node => {
            fit_middle(name_of(node), name_cells.saturating_sub(kept_width + usize::from(kept_width > 0))).into_owned()
        }
    };
    let style = match node {
        Node::Source(_) => theme.style(Role::Muted),
        Node::Dataset(_) | Node::Schema(_) => theme.style(Role::Title),
        Node::Flow(_) | Node::File(_) => Style::new(),
    };
    let mut spans = vec![Span::raw(format!("{mark} ")), Span::styled(name, style)];
    if kept_width > 0 {
        spans.push(Span::raw(" "));
        spans.extend(kept);
    }
    Line::from(spans)
}

/// The mark of a flow: `1×`, the badge of AUTO CDC, or `+`.
pub fn flow_mark(app: &App, graph: &Graph, name: &str) -> String {
    let theme = app.options.theme;
    let flow = app.known.find_flow(name).map(|id| graph.flow(id));
    match flow.map(|flow| (flow.kind, flow.change.as_ref())) {
        Some((kind, _)) if kind.is_once() => theme.pick("1×", "1x").to_string(),
        Some((_, Some(change))) => theme.scd_badge(change.scd_type()).to_string(),
        _ => "+".to_string(),
    }
}

fn flow_numbers(app: &App, name: &str) -> Vec<Span<'static>> {
    let theme = app.options.theme;
    let state = app.known.flow_state(name);
    let run = app.known.update.as_ref().and_then(|update| update.flows.get(name));
    let is_done = app.known.flow_status(name).is_some_and(|flow| flow.is_done);
    let rate = run.filter(|run| run.ended_us.is_none()).and_then(|run| run.rows_per_second(app.now_us));
    let number = match (rate, run) {
        (Some(rate), _) => per_second(rate),
        (None, Some(run)) if run.metrics.rows_out > 0 => format!("+{}", short(run.metrics.rows_out)),
        _ if is_done => "done".to_string(),
        _ => String::new(),
    };
    vec![
        Span::styled(theme.state_glyph(state).to_string(), theme.style(Theme::state_role(state))),
        Span::raw(format!(" {number}")),
    ]
}
