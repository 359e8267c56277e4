//! Values of options.

use clap::ValueEnum;

/// A comma separated list of names, blanks trimmed; a comma in backticks belongs to the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(pub(super) Vec<String>);

impl std::str::FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Names, String> {
        let mut names = vec![String::new()];
        let mut is_quoted = false;
        for character in text.chars() {
            match character {
                ',' if !is_quoted => names.push(String::new()),
                _ => {
                    is_quoted ^= character == '`';
                    names.last_mut().expect("there is always a last name").push(character);
                }
            }
        }
        let names: Vec<String> =
            names.iter().map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect();
        match names.is_empty() {
            true => Err("a name is missing".to_string()),
            false => Ok(Names(names)),
        }
    }
}

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_string(), value.to_string())),
        _ => Err("write key=value".to_string()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people, on stderr
    Text,
    /// One JSON object on stdout, the same as --json
    Json,
    /// Annotations of a GitHub workflow, on stdout
    #[value(name = "github")]
    GitHub,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// One line a dataset, each below what it reads
    Text,
    /// Graphviz
    Dot,
    /// For Markdown
    Mermaid,
    /// Datasets, flows and edges
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowFormat {
    /// Aligned to the terminal's width
    Table,
    Csv,
    /// One JSON object a line
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventLevel {
    Metrics,
    Info,
    Warn,
    Error,
}

impl EventLevel {
    /// The engine's word for it.
    pub fn level(self) -> pipeline::event::Level {
        use pipeline::event::Level;
        match self {
            EventLevel::Metrics => Level::Metrics,
            EventLevel::Info => Level::Info,
            EventLevel::Warn => Level::Warn,
            EventLevel::Error => Level::Error,
        }
    }
}
