//! Characters of lines.

use super::model::EdgeStyle;
use super::stub::{Side, StubKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    Unicode,
    Ascii,
}

/// Arms of a line's cell, as bits.
pub(super) const UP: u8 = 1;
pub(super) const RIGHT: u8 = 2;
pub(super) const DOWN: u8 = 4;
pub(super) const LEFT: u8 = 8;

impl Glyphs {
    /// Returns the character with these arms.
    pub(super) fn line(self, arms: u8, style: EdgeStyle) -> &'static str {
        const ACROSS: u8 = LEFT | RIGHT;
        const ALONG: u8 = UP | DOWN;
        if self == Glyphs::Ascii {
            return match arms {
                LEFT | RIGHT | ACROSS => match style {
                    EdgeStyle::Solid | EdgeStyle::Dashed => "-",
                    EdgeStyle::Dotted => ".",
                },
                UP | DOWN | ALONG => match style {
                    EdgeStyle::Solid => "|",
                    EdgeStyle::Dashed => "!",
                    EdgeStyle::Dotted => ":",
                },
                _ => "+",
            };
        }
        match (arms, style) {
            (LEFT | RIGHT | ACROSS, EdgeStyle::Solid) => "─",
            (LEFT | RIGHT | ACROSS, EdgeStyle::Dashed) => "╌",
            (LEFT | RIGHT | ACROSS, EdgeStyle::Dotted) => "┈",
            (UP | DOWN | ALONG, EdgeStyle::Solid) => "│",
            (UP | DOWN | ALONG, EdgeStyle::Dashed) => "┆",
            (UP | DOWN | ALONG, EdgeStyle::Dotted) => "┊",
            _ if arms == RIGHT | DOWN => "╭",
            _ if arms == LEFT | DOWN => "╮",
            _ if arms == UP | RIGHT => "╰",
            _ if arms == UP | LEFT => "╯",
            _ if arms == ALONG | RIGHT => "├",
            _ if arms == ALONG | LEFT => "┤",
            _ if arms == ACROSS | DOWN => "┬",
            _ if arms == ACROSS | UP => "┴",
            _ => "┼",
        }
    }

    pub(super) fn arrow(self) -> &'static str {
        match self {
            Glyphs::Unicode => "▸",
            Glyphs::Ascii => ">",
        }
    }

    /// Returns the text of a stub.
    pub(super) fn stub(self, side: Side, kind: StubKind, label: &str) -> String {
        let (arrow, open, close) = match (self, kind) {
            (Glyphs::Unicode, StubKind::Skip) => ("→", "⟨", "⟩"),
            (Glyphs::Unicode, _) => ("↺", "⟨", "⟩"),
            (Glyphs::Ascii, StubKind::Skip) => (">", "(", ")"),
            (Glyphs::Ascii, _) => ("@", "(", ")"),
        };
        let label = match self {
            Glyphs::Unicode => label.to_string(),
            Glyphs::Ascii => label.replace('…', "~"),
        };
        match (side, label.as_str()) {
            (_, "") => arrow.to_string(),
            (Side::Right, label) => format!("{arrow}{open}{label}{close}"),
            (Side::Left, label) => format!("{open}{label}{close}{arrow}"),
        }
    }
}
