//! Why a mutant may survive. The list is checked in and must be true: a survivor without a reason is an
//! error, and so is a reason without a survivor. What has neither a test nor a reason yet is owed: it stands in a
//! list of its own, which is counted apart, and from which a line goes as soon as a test notices it.

use crate::find::Mutant;
use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::path::Path;

/// One reason, for one or more changes of one check.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The source file, from the crate's `src`.
    pub file: String,
    /// The function.
    pub function: String,
    /// The check's text, as the list shows it.
    pub check: String,
    /// The changes, as the list shows them.
    pub changes: Vec<String>,
    /// Why nothing can notice, or why nothing has to.
    pub why: String,
    /// No reason: a test is owed.
    #[serde(skip)]
    pub owed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    survivor: Vec<Reason>,
}

impl Reason {
    /// Whether this is the reason for a mutant.
    #[must_use]
    pub fn is_for(&self, mutant: &Mutant) -> bool {
        self.file == mutant.file
            && self.function == mutant.function
            && self.check == mutant.check
            && self.changes.contains(&mutant.change.to_string())
    }
}

/// Reads the list of what is owed.
///
/// # Errors
/// When it cannot be read; what is wrong with it.
pub fn owed(path: &Path) -> Result<Vec<Reason>> {
    Ok(read(path)?.into_iter().map(|one| Reason { owed: true, ..one }).collect())
}

/// Reads the list.
///
/// # Errors
/// When it cannot be read; what is wrong with it.
pub fn read(path: &Path) -> Result<Vec<Reason>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file: File = toml::from_str(&text).with_context(|| format!("{} is not a list of reasons", path.display()))?;
    Ok(file.survivor)
}
