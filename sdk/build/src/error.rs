//! Why there is no component, each with what to do.

use crate::Language;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{env, fmt, io};

/// Something in an author's source that keeps it from being built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, below the step's folder unless it is absolute; none where it is about the whole.
    pub file: Option<PathBuf>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    /// What is wrong.
    pub text: String,
}

impl Problem {
    /// As a build script tells it.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            file: value["file"].as_str().map(PathBuf::from),
            line: value["line"].as_u64(),
            column: value["column"].as_u64(),
            text: value["text"].as_str()?.to_owned(),
        })
    }

    /// `src/steps.js:3:5: text`, with the path from where the reader stands.
    fn told(&self, folder: &Path) -> String {
        let Some(file) = &self.file else { return self.text.clone() };
        let mut place = shown(&folder.join(file));
        for number in [self.line, self.column].into_iter().map_while(|number| number) {
            place.push_str(&format!(":{number}"));
        }
        format!("{place}: {}", self.text)
    }
}

/// A path as somebody would type it here.
fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&here).or_else(|_| path.strip_prefix(".")).unwrap_or(path);
    path.display().to_string()
}

/// Why a build gave no component.
#[derive(Debug)]
pub enum BuildError {
    /// A program could not be started, or did not say what it was asked.
    Tool {
        /// What was run.
        command: String,
        /// What it said.
        problem: String,
    },
    /// The toolchain has no standard library for the target and no way to get one was left.
    NoTarget {
        /// The target.
        target: String,
        /// What was tried, and what came of it.
        tried: Vec<String>,
    },
    /// The compiler refused the source; it has said why on standard error.
    Compile {
        /// The folder that was built.
        folder: PathBuf,
    },
    /// Nothing in this folder becomes a component.
    NoComponent {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds more than one component where one was asked for.
    Several {
        /// The folder.
        folder: PathBuf,
        /// Their names.
        names: Vec<String>,
    },
    /// The module cannot be lifted.
    Lift {
        /// Why.
        problem: String,
    },
    /// Nothing in the folder says that it is a step.
    NoStep {
        /// The folder.
        folder: PathBuf,
        /// What comes nearest, and what it lacks.
        near: Option<String>,
    },
    /// The folder is a step in more than one language.
    SeveralSteps {
        /// The folder.
        folder: PathBuf,
        /// The languages.
        languages: Vec<Language>,
    },
    /// A package's manifest does not say what is needed.
    Manifest {
        /// Its file.
        path: PathBuf,
        /// What was expected, and what is there.
        problem: String,
    },
    /// A tool is not installed, or in a release that does not fit.
    Missing {
        /// The tool, and the release that is wanted.
        what: String,
        /// What is there instead.
        got: String,
        /// What it is for.
        purpose: String,
        /// Which language needs it.
        language: Language,
        /// What installs it.
        install: String,
    },
    /// The author's source is wrong.
    Problems {
        /// The folder.
        folder: PathBuf,
        /// Each with its place.
        problems: Vec<Problem>,
    },
    /// A file could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Tool { command, problem } => write!(f, "`{command}`: {problem}"),
            BuildError::NoTarget { target, tried } => {
                writeln!(f, "this Rust toolchain cannot build for {target}:")?;
                for attempt in tried {
                    writeln!(f, "  {attempt}")?;
                }
                write!(f, "This makes it possible: rustup target add {target}")?;
                if target.ends_with("-unknown-unknown") {
                    write!(f, "\nso does: rustup component add rust-src")?;
                    write!(f, "\nand on Debian: apt-get install rustc-web cargo-web rust-web-src lld-19")?;
                }
                Ok(())
            }
            BuildError::Compile { folder } => write!(f, "{} does not compile", folder.display()),
            BuildError::NoComponent { folder } => write!(
                f,
                "nothing in {} becomes a component: a step's Cargo.toml says [lib] crate-type = [\"cdylib\"]",
                folder.display()
            ),
            BuildError::Several { folder, names } => write!(
                f,
                "{} holds several components ({}): name the folder of one",
                folder.display(),
                names.join(", ")
            ),
            BuildError::Lift { problem } => write!(
                f,
                "not a step: {problem}; a step's module carries its component type, which interlock's SDK or \
                 wit-bindgen puts there"
            ),
            BuildError::NoStep { folder, near } => write!(
                f,
                "{}: expected the source of a step: a Cargo.toml, a package.json whose `main` ends in .js, .mjs or .ts, a \
                 pyproject.toml, or .c files there or in src/; {}",
                folder.display(),
                near.as_deref().unwrap_or("got none of them")
            ),
            BuildError::SeveralSteps { folder, languages } => {
                let languages: Vec<String> = languages.iter().map(ToString::to_string).collect();
                let folder = folder.display();
                write!(
                    f,
                    "{folder}: expected a step in one language, got {}: give each a folder",
                    languages.join(" and ")
                )
            }
            BuildError::Manifest { path, problem } => write!(f, "{}: {problem}", path.display()),
            BuildError::Missing { what, got, purpose, language, install } => {
                writeln!(f, "{language} steps need {what}, which {purpose}: got {got}")?;
                write!(f, "This installs what is needed: {install}")
            }
            BuildError::Problems { folder, problems } => {
                let told: Vec<String> = problems.iter().map(|problem| problem.told(folder)).collect();
                write!(f, "{} does not build:\n{}", folder.display(), told.join("\n"))
            }
            BuildError::File { path, .. } => write!(f, "cannot read or write {}", path.display()),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::File { source, .. } => Some(source),
            BuildError::Tool { .. }
            | BuildError::NoTarget { .. }
            | BuildError::Compile { .. }
            | BuildError::NoComponent { .. }
            | BuildError::Several { .. }
            | BuildError::Lift { .. }
            | BuildError::NoStep { .. }
            | BuildError::SeveralSteps { .. }
            | BuildError::Manifest { .. }
            | BuildError::Missing { .. }
            | BuildError::Problems { .. } => None,
        }
    }
}
