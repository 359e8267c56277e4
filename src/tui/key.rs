//! Keys as plain values with names, so that tables, tests and documents speak of the same thing.

use std::fmt;

/// One key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
}

/// Which key; a letter with Shift is its capital.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    Char(char),
    Enter,
    Esc,
    Tab,
    /// Shift and Tab.
    BackTab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
}

/// The names of the keys that are no characters.
const NAMES: [(&str, Code); 16] = [
    ("Enter", Code::Enter),
    ("Esc", Code::Esc),
    ("Tab", Code::Tab),
    ("Shift-Tab", Code::BackTab),
    ("Backspace", Code::Backspace),
    ("Delete", Code::Delete),
    ("Up", Code::Up),
    ("Down", Code::Down),
    ("Left", Code::Left),
    ("Right", Code::Right),
    ("Home", Code::Home),
    ("End", Code::End),
    ("PageUp", Code::PageUp),
    ("PageDown", Code::PageDown),
    ("Space", Code::Char(' ')),
    ("F1", Code::F(1)),
];

impl Key {
    /// A key without Ctrl and Alt.
    pub const fn plain(code: Code) -> Key {
        Key { code, ctrl: false, alt: false }
    }

    /// The key of a name: `r`, `R`, `Ctrl-c`, `Shift-Tab`, `PageDown`.
    pub fn parse(name: &str) -> Option<Key> {
        if let Some((_, code)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Some(Key::plain(*code));
        }
        if let Some(rest) = name.strip_prefix("Ctrl-") {
            return Key::parse(rest).map(|key| Key { ctrl: true, ..key });
        }
        if let Some(rest) = name.strip_prefix("Alt-") {
            return Key::parse(rest).map(|key| Key { alt: true, ..key });
        }
        let mut characters = name.chars();
        let only = characters.next()?;
        characters.next().is_none().then_some(Key::plain(Code::Char(only)))
    }

    /// The character it writes into a text field.
    pub fn text(self) -> Option<char> {
        match self {
            Key { code: Code::Char(c), ctrl: false, alt: false } => Some(c),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        if self.alt {
            f.write_str("Alt-")?;
        }
        match NAMES.iter().find(|(_, code)| *code == self.code) {
            Some((name, _)) => f.write_str(name),
            None => match self.code {
                Code::Char(c) => write!(f, "{c}"),
                Code::F(n) => write!(f, "F{n}"),
                // Every other key has a name.
                _ => Ok(()),
            },
        }
    }
}

/// What the mouse did, at a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mouse {
    pub kind: MouseKind,
    pub column: u16,
    pub row: u16,
}

/// Kinds of mouse events that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseKind {
    Click,
    WheelUp,
    WheelDown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys_lead_to_keys_and_back() {
        for name in ["r", "R", "?", "Ctrl-c", "Alt-x", "Shift-Tab", "PageDown", "Space", "F1", "Enter", "]", "é"] {
            assert_eq!(Key::parse(name).map(|key| key.to_string()), Some(name.to_string()));
        }
        assert_eq!(Key::parse("Nonsense"), None);
        assert_eq!(Key::parse(""), None);
    }
}
