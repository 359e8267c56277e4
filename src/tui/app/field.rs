//! A line of text that is being typed: filter, search, palette, a name to confirm.

use crate::key::{Code, Key};

/// The text and where the next character goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    text: String,
    /// Byte offset, on a character boundary.
    cursor: usize,
    /// The whole text is selected: what is typed next replaces it.
    is_selected: bool,
}

impl Field {
    /// A field that offers a text: it stays if a key moves in it, and goes if one types.
    pub fn offering(text: &str) -> Field {
        let mut field = Field::default();
        field.insert(text);
        field.is_selected = !text.is_empty();
        field
    }

    /// True as long as what is typed replaces the text.
    pub fn is_selected(&self) -> bool {
        self.is_selected
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before and after the cursor.
    pub fn around_cursor(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Takes a key; false if it means nothing to a text.
    pub fn key(&mut self, key: Key) -> bool {
        match key {
            Key { code: Code::Backspace | Code::Delete, .. } if self.is_selected => self.insert(""),
            Key { code: Code::Char('u'), ctrl: true, .. } => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            Key { code: Code::Char('w'), ctrl: true, .. } => {
                let before = self.text[..self.cursor].trim_end();
                let start = before.rfind(char::is_whitespace).map_or(0, |i| i + 1);
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            Key { code: Code::Char('a'), ctrl: true, .. } | Key { code: Code::Home, .. } => self.cursor = 0,
            Key { code: Code::Char('e'), ctrl: true, .. } | Key { code: Code::End, .. } => {
                self.cursor = self.text.len();
            }
            Key { code: Code::Backspace, .. } => {
                if let Some(before) = self.before() {
                    self.text.drain(before..self.cursor);
                    self.cursor = before;
                }
            }
            Key { code: Code::Delete, .. } => {
                if let Some(after) = self.after() {
                    self.text.drain(self.cursor..after);
                }
            }
            Key { code: Code::Left, .. } => self.cursor = self.before().unwrap_or(0),
            Key { code: Code::Right, .. } => self.cursor = self.after().unwrap_or(self.text.len()),
            key => match key.text() {
                Some(c) => self.insert(&c.to_string()),
                None => return false,
            },
        }
        self.is_selected = false;
        true
    }

    /// Inserts pasted text, in the place of a selected one; line ends become blanks.
    pub fn insert(&mut self, text: &str) {
        if std::mem::take(&mut self.is_selected) {
            self.text.clear();
            self.cursor = 0;
        }
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    fn before(&self) -> Option<usize> {
        self.text[..self.cursor].char_indices().next_back().map(|(i, _)| i)
    }

    fn after(&self) -> Option<usize> {
        self.text[self.cursor..].chars().next().map(|c| self.cursor + c.len_utf8())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_edited_as_in_a_shell() {
        let mut field = Field::default();
        field.insert("größe der\nTabelle");
        for name in ["Ctrl-w", "Backspace", "Home", "Right", "Right", "Delete", "x", "End", "!"] {
            assert!(field.key(Key::parse(name).unwrap()), "{name}");
        }
        assert_eq!(field.text(), "grxße der!");
        assert_eq!(field.around_cursor(), ("grxße der!", ""));
        assert!(!field.key(Key::parse("PageUp").unwrap()));
        field.key(Key::parse("Ctrl-u").unwrap());
        assert_eq!(field.text(), "");
    }

    #[test]
    fn an_offered_text_goes_when_one_types_and_stays_when_one_moves_in_it() {
        for (keys, text) in [
            (&["5"] as &[_], "5"),
            (&["5", "6"], "56"),
            (&["Backspace"], ""),
            (&["Delete", "5"], "5"),
            (&["End", "5"], "20245"),
            (&["Left", "Backspace"], "204"),
            (&["PageUp", "5"], "5"),
        ] {
            let mut field = Field::offering("2024");
            for name in keys {
                field.key(Key::parse(name).unwrap());
            }
            assert_eq!(field.text(), text, "{keys:?}");
            assert!(!field.is_selected());
        }
        let mut field = Field::offering("2024");
        field.insert("2025-01");
        assert_eq!(field.text(), "2025-01");
    }
}
