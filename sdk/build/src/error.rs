//! Why there is no component, each with what to do.

use std::path::PathBuf;
use std::{fmt, io};

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
            | BuildError::Lift { .. } => None,
        }
    }
}
