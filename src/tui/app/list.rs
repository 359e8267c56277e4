//! Cursor and scroll of a list whose rows are drawn one a line.

/// Which row is chosen and which is drawn first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct List {
    pub cursor: usize,
    pub offset: usize,
}

/// A way to move in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
}

impl List {
    /// Moves the cursor in a list of `len` rows of which `height` are seen.
    pub fn go(&mut self, way: Move, len: usize, height: usize) {
        let last = len.saturating_sub(1);
        let page = height.saturating_sub(1).max(1);
        self.cursor = match way {
            Move::Up => self.cursor.saturating_sub(1),
            Move::Down => self.cursor + 1,
            Move::PageUp => self.cursor.saturating_sub(page),
            Move::PageDown => self.cursor + page,
            Move::Top => 0,
            Move::Bottom => last,
        }
        .min(last);
    }

    /// Keeps the cursor inside the list and inside what is seen.
    pub fn settle(&mut self, len: usize, height: usize) {
        self.cursor = self.cursor.min(len.saturating_sub(1));
        if self.cursor < self.offset {
            self.offset = self.cursor;
        }
        if height > 0 && self.cursor >= self.offset + height {
            self.offset = self.cursor + 1 - height;
        }
        self.offset = self.offset.min(len.saturating_sub(height.min(len)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stays_in_the_list_and_in_sight() {
        let mut list = List::default();
        for (way, cursor, offset) in [
            (Move::Up, 0, 0),
            (Move::PageDown, 3, 0),
            (Move::Down, 4, 1),
            (Move::Bottom, 9, 6),
            (Move::Down, 9, 6),
            (Move::PageUp, 6, 6),
            (Move::Top, 0, 0),
        ] {
            list.go(way, 10, 4);
            list.settle(10, 4);
            assert_eq!((list.cursor, list.offset), (cursor, offset), "{way:?}");
        }
        list.go(Move::Bottom, 10, 4);
        list.settle(2, 4);
        assert_eq!(list, List { cursor: 1, offset: 0 });
        list.settle(0, 0);
        assert_eq!(list.cursor, 0);
    }
}
