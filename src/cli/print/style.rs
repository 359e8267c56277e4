//! Colours by what they mean. Never the only sign of anything: every state also is a word.

use pipeline::event::{Level, State};

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub is_coloured: bool,
}

impl Style {
    /// No codes at all.
    pub fn plain() -> Style {
        Style { is_coloured: false }
    }

    /// ANSI codes, the terminal's own sixteen colours.
    pub fn coloured() -> Style {
        Style { is_coloured: true }
    }

    fn paint(self, code: &str, text: impl std::fmt::Display) -> String {
        match self.is_coloured {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }

    pub fn bold(self, text: impl std::fmt::Display) -> String {
        self.paint("1", text)
    }

    pub fn dim(self, text: impl std::fmt::Display) -> String {
        self.paint("2", text)
    }

    pub fn error(self, text: impl std::fmt::Display) -> String {
        self.paint("1;31", text)
    }

    pub fn warning(self, text: impl std::fmt::Display) -> String {
        self.paint("33", text)
    }

    pub fn help(self, text: impl std::fmt::Display) -> String {
        self.paint("36", text)
    }

    pub fn good(self, text: impl std::fmt::Display) -> String {
        self.paint("32", text)
    }

    /// A state's word, padded to `width`.
    pub fn state(self, state: State, width: usize) -> String {
        let word = format!("{:<width$}", state.word());
        match state {
            State::Completed => self.good(word),
            State::Failed => self.error(word),
            State::Canceled | State::Skipped => self.warning(word),
            State::Running | State::Planning => self.bold(word),
            State::Queued | State::Excluded | State::Idle => self.dim(word),
        }
    }

    /// A text in the colour of a level.
    pub fn level(self, level: Level, text: impl std::fmt::Display) -> String {
        match level {
            Level::Error => self.error(text),
            Level::Warn => self.warning(text),
            Level::Metrics => self.dim(text),
            Level::Info => text.to_string(),
        }
    }
}
