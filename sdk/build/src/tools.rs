//! Finding the programs that builds run. What is not there is an error with the line that installs it; nothing is
//! installed here.

use crate::place::at;
use crate::{BuildError, Language};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A program or package that a build needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    /// What it is called.
    pub(crate) name: &'static str,
    /// The release it is tested with; empty if any will do.
    pub(crate) version: &'static str,
    /// What it is for.
    pub(crate) purpose: &'static str,
}

impl Needed {
    /// The error that it is not there.
    pub(crate) fn missing(self, language: Language, got: &str, install: String) -> BuildError {
        let version = if self.version.is_empty() { String::new() } else { format!(" {}", self.version) };
        BuildError::Missing {
            what: format!("{}{version}", self.name),
            got: got.to_owned(),
            purpose: self.purpose.to_owned(),
            language,
            install,
        }
    }

    /// Whether a release may stand in for the one it is tested with: a later one that promises to be compatible.
    pub(crate) fn fits(self, got: &str) -> bool {
        let numbers = |text: &str| -> Vec<u64> { text.split('.').map_while(|part| part.parse().ok()).collect() };
        let (wanted, got) = (numbers(self.version), numbers(got));
        // In 0.x releases the second number is the one that promises.
        let promised = if wanted.first() == Some(&0) { 2 } else { 1 };
        wanted.get(..promised) == got.get(..promised) && got >= wanted
    }
}

/// The first file of that name on `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The first folder upwards from here, this one included, that has such a file or folder in it.
pub(crate) fn upwards(folder: &Path, below: &str) -> Result<Option<PathBuf>, BuildError> {
    let folder = fs::canonicalize(folder).map_err(at(folder))?;
    Ok(folder.ancestors().map(|folder| folder.join(below)).find(|path| path.exists()))
}

/// The last word that a program says of its version on its first line.
pub(crate) fn version(program: &Path) -> Result<String, BuildError> {
    let text = run(Command::new(program).arg("--version"))?;
    let line = text.lines().next().unwrap_or_default();
    let number = |word: &&str| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    Ok(line.split_whitespace().find(number).unwrap_or(line).trim_start_matches('v').to_owned())
}

/// Runs a command and gives what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String, BuildError> {
    let line = line(command);
    let failed = |problem: String| BuildError::Tool { command: line.clone(), problem };
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(said.lines().last().unwrap_or("failed without a word").to_owned()));
    }
    String::from_utf8(output.stdout).map_err(|e| failed(e.to_string()))
}

/// A command as it would be typed.
pub(crate) fn line(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    words.join(" ".as_ref()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::Needed;

    #[test]
    fn a_release_fits_if_it_promises_to_be_compatible() {
        let fits = |version, got| Needed { name: "tool", version, purpose: "" }.fits(got);
        assert!(fits("0.23.0", "0.23.0") && fits("0.23.0", "0.23.4") && fits("7.0.2", "7.1.0"));
        assert!(!fits("0.23.0", "0.24.0") && !fits("0.23.1", "0.23.0") && !fits("7.0.2", "8.0.0"));
        assert!(!fits("0.23.0", "unknown"));
    }
}
