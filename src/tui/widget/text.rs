//! Text in terminal cells: how wide it is, and how it is cut to fit.
//!
//! A reader's character (a grapheme) is never split: an accent stays with its letter, an emoji with its joiners.
//! Widths are ratatui's, so that text ends where the screen says; it doesn't draw control characters.

use std::borrow::Cow;

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// Stands for what was cut; one cell.
const ELLIPSIS: &str = "…";

/// Returns the cells that `text` takes on one line.
pub fn width(text: &str) -> usize {
    match text.is_ascii() {
        true => text.bytes().filter(|byte| !byte.is_ascii_control()).count(),
        false => text.graphemes(true).map(grapheme_width).sum(),
    }
}

/// Returns `text` in at most `cells` cells; if it is longer, its end becomes `…`.
///
/// A cut text may be one cell short of `cells`, where a wide character didn't fit.
pub fn fit(text: &str, cells: usize) -> Cow<'_, str> {
    cut(text, cells, |room| room)
}

/// Returns `text` in at most `cells` cells; if it is longer, its middle becomes `…`.
///
/// Names differ at their ends (`orders_2024_raw`, `orders_2025_raw`), so both ends stay.
pub fn fit_middle(text: &str, cells: usize) -> Cow<'_, str> {
    cut(text, cells, |room| room.div_ceil(2))
}

/// Cuts `text`; of the `room` beside the ellipsis, `head` says how many cells are of the text's beginning.
fn cut(text: &str, cells: usize, head: impl Fn(usize) -> usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    let room = cells - 1;
    let begin = prefix(text.graphemes(true), head(room));
    let end = prefix(text.graphemes(true).rev(), room - head(room));
    Cow::Owned(format!("{}{ELLIPSIS}{}", &text[..begin], &text[text.len() - end..]))
}

/// Returns how many bytes of these characters fit into `cells`.
fn prefix<'a>(graphemes: impl Iterator<Item = &'a str>, cells: usize) -> usize {
    let (mut bytes, mut used) = (0, 0);
    for grapheme in graphemes {
        used += grapheme_width(grapheme);
        if used > cells {
            break;
        }
        bytes += grapheme.len();
    }
    bytes
}

fn grapheme_width(grapheme: &str) -> usize {
    match grapheme.contains(char::is_control) {
        true => 0,
        false => usize::from(grapheme.cell_width()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_that_fits_is_left_alone() {
        assert!(matches!(fit("orders", 6), Cow::Borrowed("orders")));
        assert!(matches!(fit_middle("", 0), Cow::Borrowed("")));
    }

    #[test]
    fn text_is_cut_by_cells_and_not_by_bytes() {
        for (text, cells, end, middle) in [
            ("customers_raw", 8, "custome…", "cust…raw"),
            ("customers_raw", 7, "custom…", "cus…raw"),
            ("customers_raw", 2, "c…", "c…"),
            ("customers_raw", 1, "…", "…"),
            ("customers_raw", 0, "", ""),
            ("顧客マスタ", 7, "顧客マ…", "顧…タ"),
            ("顧客マスタ", 6, "顧客…", "顧…タ"),
            ("e\u{301}te\u{301}s", 3, "e\u{301}t…", "e\u{301}…s"),
            ("ﾊﾞｯﾁ処理", 6, "ﾊﾞｯﾁ…", "ﾊﾞ…理"),
            ("👩‍👩‍👧 family", 6, "👩‍👩‍👧 fa…", "👩‍👩‍👧 …ly"),
        ] {
            assert_eq!(
                (fit(text, cells).as_ref(), fit_middle(text, cells).as_ref()),
                (end, middle),
                "{text} in {cells}"
            );
        }
    }

    #[test]
    fn control_characters_take_no_cells() {
        assert_eq!(width("a\tb\u{1b}"), 2);
        assert_eq!(width("é\n"), 1);
    }

    proptest! {
        #[test]
        fn cut_text_never_takes_more_cells_than_it_was_given(text in "\\PC{0,12}", cells in 0usize..16) {
            for cut in [fit(&text, cells), fit_middle(&text, cells)] {
                prop_assert!(width(&cut) <= cells);
                prop_assert!(cut == text || cells == 0 || cut.contains(ELLIPSIS));
            }
        }
    }
}
