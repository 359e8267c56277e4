//! A list of keys, page by page: those of an AUTO CDC table, or those of a verdict of its cutover.

use pipeline::scd::KeyPart;

use super::list::{List, Move};

/// Keys asked for at a time.
pub const PAGE: usize = 200;

/// Keys kept; who looks for one more searches.
pub const KEYS_KEPT: usize = 20_000;

/// The keys that were fetched, of whichever kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Keys<K> {
    pub rows: Vec<K>,
    /// Asks for what follows; None: there is no more.
    next: Option<String>,
    pub list: List,
}

/// What has a key.
pub trait HasKey {
    /// The key.
    fn key(&self) -> &[KeyPart];
}

impl HasKey for pipeline::scd::KeySummary {
    fn key(&self) -> &[KeyPart] {
        &self.key
    }
}

impl HasKey for pipeline::scd::KeyCutover {
    fn key(&self) -> &[KeyPart] {
        &self.key
    }
}

impl<K> Default for Keys<K> {
    fn default() -> Keys<K> {
        Keys { rows: Vec::new(), next: None, list: List::default() }
    }
}

impl<K: HasKey + Clone> Keys<K> {
    /// What to ask for next: where the page begins, and how many keys. Keys that no longer hold are fetched again, as
    /// many as there are; else the page that a pane of `height` rows is about to need.
    pub fn want(&self, height: usize, holds: bool) -> Option<(Option<String>, usize)> {
        let ends_soon = self.list.offset + height + PAGE / 2 > self.rows.len();
        match &self.next {
            _ if !holds => Some((None, self.rows.len().max(PAGE))),
            Some(next) if ends_soon && self.rows.len() < KEYS_KEPT => Some((Some(next.clone()), PAGE)),
            _ => None,
        }
    }

    /// Takes a page in: of the first keys, or of those that follow on what is there.
    pub fn take(&mut self, after: Option<&str>, rows: &[K], next: Option<&String>) {
        if after.is_some() {
            if after == self.next.as_deref() {
                self.rows.extend(rows.iter().cloned());
                self.next = next.cloned();
            }
            return;
        }
        let key = self.rows.get(self.list.cursor).map(|row| row.key().to_vec());
        self.rows = rows.to_vec();
        self.next = next.cloned();
        // The cursor stays on its key.
        if let Some(at) = key.and_then(|key| self.position(&key)) {
            self.list.cursor = at;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Keys::default();
    }

    /// The key under the cursor.
    pub fn chosen(&self) -> Option<&K> {
        self.rows.get(self.list.cursor)
    }

    /// Where a key stands in the list.
    pub fn position(&self, key: &[KeyPart]) -> Option<usize> {
        self.rows.iter().position(|row| row.key() == key)
    }

    /// Moves the cursor.
    pub fn go(&mut self, way: Move, height: usize) {
        self.list.go(way, self.rows.len(), height);
    }

    /// True if there are more keys than these.
    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

#[cfg(test)]
mod tests {
    use pipeline::scd::{KeyFlags, KeySummary};

    use super::*;

    fn row(id: usize) -> KeySummary {
        let key = vec![KeyPart { column: "id".to_string(), value: id.to_string() }];
        KeySummary { key, versions: 1, events: 1, newest: "1".to_string(), flags: KeyFlags::default() }
    }

    #[test]
    fn pages_follow_one_another_and_the_cursor_stays_on_its_key() {
        let rows: Vec<KeySummary> = (0..600).map(row).collect();
        let mut keys = Keys::default();
        assert_eq!(keys.want(10, false), Some((None, PAGE)));
        keys.take(None, &rows[..200], Some(&"199".to_string()));
        assert_eq!(keys.want(10, true), None);
        keys.go(Move::Bottom, 10);
        keys.list.settle(keys.rows.len(), 10);
        assert_eq!(keys.want(10, true), Some((Some("199".to_string()), PAGE)));
        keys.take(Some("a page of another list"), &rows[300..], None);
        keys.take(Some("199"), &rows[200..400], None);
        assert_eq!((keys.rows.len(), keys.want(10, true)), (400, None));
        // The table has changed: all that is shown again, now with one key less before the cursor.
        assert_eq!(keys.want(10, false), Some((None, 400)));
        keys.take(None, &rows[1..401], None);
        assert_eq!(keys.list.cursor, 198);
        assert_eq!(keys.chosen(), Some(&rows[199]));
    }
}
