//! Several runs as one: their members in order, and of those with the same key and sequence the newest run's.

use super::cursor::Cursor;
use super::member;
use crate::error::Result;

/// The members of several runs, one after the other.
pub(super) struct Merged<'r> {
    /// The newest run first.
    cursors: Vec<Cursor<'r>>,
    /// Cursors that are not at their end, the one whose turn it is first.
    order: Vec<usize>,
}

impl<'r> Merged<'r> {
    /// Cursors that stand at their first members, the newest run's first.
    pub fn new(cursors: Vec<Cursor<'r>>) -> Merged<'r> {
        let mut order: Vec<usize> = (0..cursors.len()).filter(|&i| cursors[i].key().is_some()).collect();
        order.sort_by(|&a, &b| {
            let (a_place, b_place) = (cursors[a].place(), cursors[b].place());
            a_place.zip(b_place).map_or(std::cmp::Ordering::Equal, |(a, b)| member::compare(a, b)).then(a.cmp(&b))
        });
        Merged { cursors, order }
    }

    /// The cursor at the member whose turn it is; None at the end.
    #[inline]
    pub fn current(&self) -> Option<&Cursor<'r>> {
        self.order.first().map(|&cursor| &self.cursors[cursor])
    }

    /// Goes to the next member.
    pub fn next(&mut self) -> Result<()> {
        // Older runs' members of the same key and sequence are passed over.
        while self.order.len() > 1 && self.is_same(self.order[0], self.order[1]) {
            self.move_on(1)?;
        }
        if self.order.is_empty() { Ok(()) } else { self.move_on(0) }
    }

    fn is_same(&self, a: usize, b: usize) -> bool {
        self.cursors[a].place() == self.cursors[b].place()
    }

    /// Moves the cursor at `position` of the order on, and to where it then belongs.
    fn move_on(&mut self, mut position: usize) -> Result<()> {
        let moved = self.order[position];
        self.cursors[moved].next()?;
        let Some(place) = self.cursors[moved].place() else {
            self.order.remove(position);
            return Ok(());
        };
        while let Some(&next) = self.order.get(position + 1) {
            let Some(next_place) = self.cursors[next].place() else { break };
            if member::compare(place, next_place).then(moved.cmp(&next)).is_lt() {
                break;
            }
            self.order[position] = next;
            position += 1;
        }
        self.order[position] = moved;
        Ok(())
    }
}
