//! What the terminal can do: colours, width, questions. Decided once, when the program starts.

use std::io::{BufRead, IsTerminal, Write};

use super::print::style::Style;

/// Width of lines where there is no terminal to ask.
const WIDTH_WITHOUT_TERMINAL: usize = 120;

/// Stdout and stderr as they are.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Styles for stdout and for stderr; plain where no colour is wanted.
    pub out: Style,
    pub err: Style,
    /// Columns of stdout; None if it is no terminal, so that nothing is cut in files and pipes.
    pub out_width: Option<usize>,
    pub err_width: usize,
    /// Stderr may be drawn over: progress bars.
    pub is_live: bool,
    /// A question can be asked.
    pub can_ask: bool,
}

impl Terminal {
    /// Looks at the standard streams and the environment.
    pub fn detect() -> Terminal {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
        let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let style = |is_terminal: bool| match () {
            () if is_set("NO_COLOR") => Style::plain(),
            () if is_forced || (is_terminal && !is_dumb) => Style::coloured(),
            () => Style::plain(),
        };
        let (out, err) = (std::io::stdout(), std::io::stderr());
        let width =
            |size: Option<(terminal_size::Width, terminal_size::Height)>| size.map(|(width, _)| width.0 as usize);
        let out_width = if out.is_terminal() { width(terminal_size::terminal_size_of(&out)) } else { None };
        let err_width = if err.is_terminal() { width(terminal_size::terminal_size_of(&err)) } else { None };
        Terminal {
            out: style(out.is_terminal()),
            err: style(err.is_terminal()),
            out_width,
            err_width: err_width.unwrap_or(WIDTH_WITHOUT_TERMINAL),
            is_live: err.is_terminal() && !is_dumb,
            can_ask: err.is_terminal() && std::io::stdin().is_terminal(),
        }
    }

    /// A screen can be drawn and keys be read: stdin and stdout are terminals that can move their cursor.
    pub fn can_show_screens(&self) -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb" || value.is_empty());
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !is_dumb
    }

    /// Colours are wanted on stdout.
    pub fn has_colours(&self) -> bool {
        self.out.is_coloured
    }

    /// Only ASCII shall be drawn: `FLOWBENCH_ASCII`, or a locale that is not UTF-8.
    pub fn is_ascii(&self) -> bool {
        let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(wanted) = value("FLOWBENCH_ASCII") {
            return wanted != "0";
        }
        // The first of these that is set decides, as in every program that asks the locale.
        let locale = value("LC_ALL").or_else(|| value("LC_CTYPE")).or_else(|| value("LANG"));
        let is_utf8 = |locale: String| {
            let locale = locale.to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        };
        // Without a locale nothing is known; terminals of today draw UTF-8.
        locale.is_some_and(|locale| !is_utf8(locale))
    }

    /// Asks on stderr; None if nobody is there to answer.
    pub fn ask(&self, question: &str) -> Option<bool> {
        if !self.can_ask {
            return None;
        }
        super::print::say(format_args!("{question} [y/N] "));
        std::io::stderr().flush().ok()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}
