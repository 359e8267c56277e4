//! Colours and glyphs by their role. Meaning never rests on colour alone: every state has a glyph and a word,
//! and everything reads the same without colours (`NO_COLOR`) and in ASCII.

use pipeline::auto_cdc::ScdType;
use pipeline::definition::DatasetKind;
use pipeline::diagnostic::Severity;
use pipeline::event::State;
use ratatui::style::{Color, Modifier, Style};

/// How the screen may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// False: `NO_COLOR`, or a terminal without colours. Bold, dim and reverse stay.
    pub has_colours: bool,
    /// Only ASCII characters.
    pub is_ascii: bool,
}

/// What a styled piece of the screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Text,
    Muted,
    Title,
    /// The border and title of the pane that has the keys.
    Focus,
    Border,
    /// The row under the cursor.
    Cursor,
    /// The row under the cursor of a pane that doesn't have the keys.
    DimCursor,
    Key,
    Error,
    Warning,
    Good,
    Running,
    Found,
}

impl Theme {
    /// The style of a role; the palette of Okabe and Ito, which people with any colour vision tell apart.
    pub fn style(self, role: Role) -> Style {
        let colour = |style: Style, colour: Color| if self.has_colours { style.fg(colour) } else { style };
        let plain = Style::new();
        match role {
            Role::Text => plain,
            Role::Muted => plain.add_modifier(Modifier::DIM),
            Role::Title => plain.add_modifier(Modifier::BOLD),
            Role::Focus => colour(plain.add_modifier(Modifier::BOLD), Color::Cyan),
            Role::Border => plain.add_modifier(Modifier::DIM),
            Role::Cursor => plain.add_modifier(Modifier::REVERSED),
            Role::DimCursor => plain.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Role::Key => colour(plain.add_modifier(Modifier::BOLD), Color::Cyan),
            Role::Error => colour(plain.add_modifier(Modifier::BOLD), Color::Red),
            Role::Warning => colour(plain, Color::Yellow),
            Role::Good => colour(plain, Color::Green),
            Role::Running => colour(plain.add_modifier(Modifier::BOLD), Color::Blue),
            Role::Found => colour(plain.add_modifier(Modifier::UNDERLINED), Color::Magenta),
        }
    }

    /// The glyph of a flow's or dataset's state.
    pub fn state_glyph(self, state: State) -> &'static str {
        let (unicode, ascii) = match state {
            State::Idle => ("·", "."),
            State::Queued => ("◔", "q"),
            State::Planning => ("◑", "p"),
            State::Running => ("▶", ">"),
            State::Completed => ("✔", "+"),
            State::Failed => ("✖", "X"),
            State::Skipped => ("⊘", "-"),
            State::Canceled => ("■", "#"),
            State::Excluded => ("○", "o"),
        };
        self.pick(unicode, ascii)
    }

    /// The role of a state.
    pub fn state_role(state: State) -> Role {
        match state {
            State::Running | State::Planning => Role::Running,
            State::Completed => Role::Good,
            State::Failed => Role::Error,
            State::Skipped | State::Canceled => Role::Warning,
            State::Idle | State::Queued | State::Excluded => Role::Muted,
        }
    }

    /// The glyph of a dataset's kind.
    pub fn kind_glyph(self, kind: DatasetKind) -> &'static str {
        match kind {
            DatasetKind::StreamingTable => self.pick("≋", "S"),
            DatasetKind::MaterializedView => self.pick("▤", "M"),
            DatasetKind::View | DatasetKind::TemporaryView => self.pick("◌", "v"),
        }
    }

    /// The badge of a dataset or flow of AUTO CDC.
    pub fn scd_badge(self, scd_type: ScdType) -> &'static str {
        match scd_type {
            ScdType::One => self.pick("Δ", "D"),
            ScdType::Two => self.pick("Δ²", "D2"),
        }
    }

    /// The glyph of a diagnostic.
    pub fn severity_glyph(self, severity: Severity) -> &'static str {
        match severity {
            Severity::Error => self.pick("✖", "X"),
            Severity::Warning => self.pick("⚠", "!"),
            Severity::Note => self.pick("·", "."),
        }
    }

    /// The role of a diagnostic.
    pub fn severity_role(severity: Severity) -> Role {
        match severity {
            Severity::Error => Role::Error,
            Severity::Warning => Role::Warning,
            Severity::Note => Role::Muted,
        }
    }

    /// `unicode`, or `ascii` where only that is allowed.
    pub fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.is_ascii { ascii } else { unicode }
    }
}
