//! Colour, only on a terminal and never where NO_COLOR says no (no-color.org).

use std::io::IsTerminal;

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// For people at a terminal.
    On,
    /// For files, pipes and tests.
    Off,
}

impl Paint {
    /// For this stream.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if stream.is_terminal() && !unwanted && !dumb { Self::On } else { Self::Off }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Refusals and errors.
    pub(crate) fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// What went well.
    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Warnings.
    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        match self {
            Self::On if !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::On | Self::Off => text.to_owned(),
        }
    }
}
