//! Aligned columns: headings, a rule, one line a row. Cells never break a line; where the terminal is too
//! narrow the widest columns are cut, and columns that can't be shown at all are counted.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::style::Style;

/// Between two columns.
pub const GAP: usize = 2;

/// Names are cut in the middle where at least this is left of them.
const NAME_WIDTH_MIN: usize = 10;

/// A column is never cut below this.
const WIDTH_MIN: usize = 6;

/// How a cell is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Plain,
    Dim,
    Bold,
    Good,
    Warning,
    Error,
}

/// One cell: text on one line.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    look: Look,
}

impl Cell {
    /// A cell that looks so. Line breaks and other control characters are escaped.
    pub fn new(text: impl Into<String>, look: Look) -> Cell {
        let text = text.into();
        let text = match text.chars().any(char::is_control) {
            true => text.chars().flat_map(escaped).collect(),
            false => text,
        };
        Cell { text, look }
    }

    /// The cell alone, cut to `width`.
    pub fn render(&self, style: Style, width: usize) -> String {
        paint(style, self.look, &cut(&self.text, width))
    }

    /// A missing value: NULL, dim.
    pub fn null() -> Cell {
        Cell::new("NULL", Look::Dim)
    }

    /// A state's word.
    pub fn state(state: pipeline::event::State) -> Cell {
        use pipeline::event::State;
        let look = match state {
            State::Completed => Look::Good,
            State::Failed => Look::Error,
            State::Canceled | State::Skipped => Look::Warning,
            State::Running | State::Planning => Look::Bold,
            State::Queued | State::Excluded | State::Idle => Look::Dim,
        };
        Cell::new(state.word(), look)
    }
}

fn escaped(character: char) -> Vec<char> {
    match character.is_control() {
        true => character.escape_default().collect(),
        false => vec![character],
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::new(text, Look::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::new(text, Look::Plain)
    }
}

/// The side that the cells of a column keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table in the making.
#[derive(Debug)]
pub struct Grid {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
}

impl Grid {
    /// Columns by heading; a heading that begins with `>` is right aligned.
    pub fn new(headings: &[&str]) -> Grid {
        Grid::with_columns(headings.iter().map(|heading| match heading.strip_prefix('>') {
            Some(heading) => (heading.to_string(), Align::Right),
            None => (heading.to_string(), Align::Left),
        }))
    }

    /// Columns with their alignment.
    pub fn with_columns(columns: impl IntoIterator<Item = (String, Align)>) -> Grid {
        let escape = |heading: String| heading.chars().flat_map(escaped).collect();
        Grid {
            columns: columns.into_iter().map(|(heading, align)| (escape(heading), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, as many cells as there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Draws it, each line ended; `width` is the most columns of a line, None for as many as it takes.
    pub fn render(&self, style: Style, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let mut out = String::new();
        let headings = self.columns.iter().map(|(heading, _)| Cell { text: heading.clone(), look: Look::Bold });
        self.line(&mut out, &headings.collect::<Vec<_>>(), &widths, style);
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        out.push_str(&style.dim(rule.join(&" ".repeat(GAP))));
        out.push('\n');
        for row in &self.rows {
            self.line(&mut out, row, &widths, style);
        }
        let hidden = self.columns.len() - widths.len();
        if hidden > 0 {
            let note = format!(
                "… {} not shown: the terminal is too narrow",
                super::number::counted(hidden as u64, "column", "columns")
            );
            out.push_str(&style.dim(note));
            out.push('\n');
        }
        out
    }

    fn line(&self, out: &mut String, cells: &[Cell], widths: &[usize], style: Style) {
        let mut line = String::new();
        let mut pending = 0;
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            let text = cut(&cell.text, *width);
            let space = width - text.width();
            if *align == Align::Right {
                pending += space;
            }
            // Blanks are written only before a text, so that no line ends in them.
            if !text.is_empty() {
                line.extend(std::iter::repeat_n(' ', pending));
                pending = 0;
                line.push_str(&paint(style, cell.look, &text));
            }
            pending += GAP + if *align == Align::Left { space } else { 0 };
        }
        out.push_str(&line);
        out.push('\n');
    }

    /// Widths of the columns that are shown.
    fn widths(&self, width: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(heading, _)| heading.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        let Some(line) = width else { return widths };
        // As many columns as fit when each is cut as far as it may be.
        let mut least = 0;
        let fitting = widths
            .iter()
            .enumerate()
            .take_while(|(i, width)| {
                least += (**width).min(WIDTH_MIN) + if *i > 0 { GAP } else { 0 };
                least <= line || *i == 0
            })
            .count();
        widths.truncate(fitting);
        let room = line.saturating_sub(GAP * widths.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter().copied().max().unwrap_or(0);
            if widest <= WIDTH_MIN {
                break;
            }
            let next = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0).max(WIDTH_MIN);
            let count = widths.iter().filter(|width| **width == widest).count();
            let excess = widths.iter().sum::<usize>() - room;
            // All the widest shrink together, to the next widest at most.
            let by = excess.div_ceil(count).min(widest - next).max(1);
            widths.iter_mut().filter(|width| **width == widest).for_each(|width| *width -= by);
        }
        widths
    }
}

fn paint(style: Style, look: Look, text: &str) -> String {
    match look {
        Look::Plain => text.to_string(),
        Look::Dim => style.dim(text),
        Look::Bold => style.bold(text),
        Look::Good => style.good(text),
        Look::Warning => style.warning(text),
        Look::Error => style.error(text),
    }
}

/// Cuts to `width` columns, with `…` where something was cut: at the end of a text, in the middle of a name,
/// whose end often tells it from its neighbours.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if is_name && width >= NAME_WIDTH_MIN {
        let tail = width / 2;
        return format!("{}…{}", &text[..width - 1 - tail], &text[text.len() - tail..]);
    }
    let mut out = String::new();
    let mut used = 0;
    for character in text.chars() {
        let next = character.width().unwrap_or(0);
        if used + next + 1 > width {
            break;
        }
        used += next;
        out.push(character);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(width: Option<usize>) -> String {
        let mut grid = Grid::new(&["id", ">amount", "text"]);
        grid.row(["1".into(), "20.50".into(), "two\nlines".into()]);
        grid.row(["二".into(), Cell::null(), "a long text that may be cut".into()]);
        grid.render(Style::plain(), width)
    }

    #[test]
    fn columns_are_aligned_and_line_breaks_escaped() {
        let expected = "\
id  amount  text
──  ──────  ───────────────────────────
1    20.50  two\\nlines
二    NULL  a long text that may be cut
";
        assert_eq!(grid(None), expected);
    }

    #[test]
    fn the_widest_column_is_cut_to_the_terminal() {
        assert!(grid(Some(24)).lines().all(|line| line.width() <= 24), "{}", grid(Some(24)));
        assert!(grid(Some(24)).contains("a long text…"), "{}", grid(Some(24)));
        assert!(grid(Some(9)).contains("2 columns not shown") || grid(Some(9)).contains("1 column not shown"));
    }

    #[test]
    fn a_cut_text_never_passes_its_width() {
        for width in 0..8 {
            assert!(cut("二二二二", width).width() <= width, "{width}");
        }
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("events_backfill_2024", 12), "event…l_2024");
    }
}
