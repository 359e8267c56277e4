//! The picture of the README: the Graph screen of `registration` after its first update, cell by cell as an SVG.
//!
//! `UPDATE=1` writes it. Times and durations, which differ from run to run, are replaced.

use std::fmt::Write;
use std::path::Path;

use super::{Example, open, wait_valid};

const SIZE: (u16, u16) = (120, 36);

/// The size of a cell in the picture, and of the letters in it.
const CELL: (usize, usize) = (9, 19);
const LETTER: usize = 15;
/// From the baseline of the letters up to the top of the cell.
const RISE: usize = 14;
const MARGIN: usize = 12;

const GROUND: &str = "#16181d";
const TEXT: &str = "#d8dbe2";
/// The sixteen colours of a terminal.
const COLOURS: [&str; 16] = [
    "#3b4048", "#f0716b", "#8fc76b", "#e0b252", "#6ea8fe", "#d08be0", "#5bc8d4", "#d8dbe2", "#6b7280", "#ff8f88",
    "#a8dd86", "#f2c868", "#8fbcff", "#e3a6f0", "#7ee0ea", "#ffffff",
];

#[test]
fn the_picture_of_the_readme_is_the_screen() {
    // The files of a table are read in the order of their random names, so one of four is the first; the picture
    // has the oldest rows.
    let drawn = (0..100).find_map(|_| drawn()).expect("a preview that begins with the rows of 2022");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/workbench.svg");
    if std::env::var("UPDATE").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = drawn.lines().zip(kept.lines().chain(std::iter::repeat(""))).find(|(drawn, kept)| drawn != kept);
    assert!(drawn == kept, "docs/workbench.svg is not what the screen looks like; UPDATE=1 draws it anew: {differs:?}");
}

/// Runs the update in a new copy and draws the screen, if its preview begins with the rows of 2022.
fn drawn() -> Option<String> {
    let example = Example::new("registration");
    let terminal = open(&example.root, SIZE);
    wait_valid(&terminal);
    terminal.keys("r r");
    terminal.wait_for("update 1 COMPLETED: 667 rows");
    terminal.keys(".");
    terminal.wait_for("row 1 of 667");
    if !terminal.text().contains("r20220104-001") {
        return None;
    }
    // The status with the rows of each flow comes last.
    terminal.wait("all flows", |text| text.contains("✔ +194") && text.matches('✔').count() >= 7);
    wait_valid(&terminal);
    Some(terminal.look(|screen| {
        let row = |row| (0..SIZE.0).filter_map(|column| cell(screen, row, column)).collect::<Row>();
        picture(&(0..SIZE.1).map(row).map(without_times).collect::<Vec<Row>>())
    }))
}

/// A character and how it looks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    text: String,
    columns: usize,
    look: Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    foreground: vt100::Color,
    background: vt100::Color,
    is_bold: bool,
    is_dim: bool,
    is_underlined: bool,
    is_reversed: bool,
}

type Row = Vec<Cell>;

/// The cell; None for the right half of a wide character.
fn cell(screen: &vt100::Screen, row: u16, column: u16) -> Option<Cell> {
    let cell = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation())?;
    Some(Cell {
        text: if cell.has_contents() { cell.contents().to_string() } else { " ".to_string() },
        columns: if cell.is_wide() { 2 } else { 1 },
        look: Look {
            foreground: cell.fgcolor(),
            background: cell.bgcolor(),
            is_bold: cell.bold(),
            is_dim: cell.dim(),
            is_underlined: cell.underline(),
            is_reversed: cell.inverse(),
        },
    })
}

/// The row with fixed times: `COMPLETED 00:00`, `667 rows in 713 ms`.
fn without_times(row: Row) -> Row {
    let row = replaced(row, "COMPLETED ", " ▏", "00:01");
    replaced(row, "667 rows in ", "  ", "0.7 s")
}

/// Replaces what stands between two texts; what follows moves along.
fn replaced(mut row: Row, before: &str, after: &str, new: &str) -> Row {
    let text: String = row.iter().map(|cell| cell.text.as_str()).collect();
    let Some((head, rest)) = text.split_once(before) else { return row };
    let Some((old, _)) = rest.split_once(after) else { return row };
    let start = head.chars().count() + before.chars().count();
    let (width, look) = (row.len(), row[start].look);
    let cells = new.chars().map(|c| Cell { text: c.to_string(), columns: 1, look });
    row.splice(start..start + old.chars().count(), cells);
    let blank = Cell { text: " ".to_string(), ..row[row.len() - 1].clone() };
    row.resize(width, blank);
    row
}

/// The rows as an SVG.
fn picture(rows: &[Row]) -> String {
    let width = usize::from(SIZE.0) * CELL.0 + 2 * MARGIN;
    let height = usize::from(SIZE.1) * CELL.1 + 2 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-size=\"{LETTER}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <title>flowbench: the Graph screen of workspaces/registration after its first update</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{GROUND}\"/>\n"
    );
    for (n, row) in rows.iter().enumerate() {
        let mut column = 0;
        for run in row.chunk_by(|one, next| one.look == next.look) {
            let columns: usize = run.iter().map(|cell| cell.columns).sum();
            draw_run(&mut out, run, (MARGIN + column * CELL.0, MARGIN + n * CELL.1), columns * CELL.0);
            column += columns;
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Draws cells that look the same, stretched to exactly their columns whatever the font.
fn draw_run(out: &mut String, run: &[Cell], (x, y): (usize, usize), width: usize) {
    let look = run[0].look;
    let (mut ink, mut ground) = (colour(look.foreground, TEXT), colour(look.background, GROUND));
    if look.is_reversed {
        std::mem::swap(&mut ink, &mut ground);
    }
    if ground != GROUND {
        writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" fill=\"{ground}\"/>", CELL.1).unwrap();
    }
    let text: String = run.iter().map(|cell| cell.text.as_str()).collect();
    if text.trim().is_empty() && !look.is_underlined {
        return;
    }
    let mut style = format!("fill=\"{ink}\"");
    for (is_so, attribute) in [
        (look.is_bold, " font-weight=\"bold\""),
        (look.is_dim, " fill-opacity=\"0.55\""),
        (look.is_underlined, " text-decoration=\"underline\""),
    ] {
        style.push_str(if is_so { attribute } else { "" });
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    writeln!(
        out,
        "<text x=\"{x}\" y=\"{}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" {style}>{text}</text>",
        y + RISE
    )
    .unwrap();
}

fn colour(colour: vt100::Color, default: &'static str) -> &'static str {
    match colour {
        vt100::Color::Idx(n) if n < 16 => COLOURS[usize::from(n)],
        _ => default,
    }
}
