//! The operator's configuration file.

use anyhow::Context;
use interlock_courier::{Allowed, Courier};
use std::fmt;
use std::path::Path;

/// What the operator allows effects to do. Its default allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration(pub(super) Allowed);

impl Configuration {
    /// Reads a file: TOML, with what `interlock_courier::Allowed` describes. Blocks on the file system.
    ///
    /// # Errors
    /// A file that cannot be read, and everything that is wrong with what it says.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Self(Allowed::parse(file, &text, &[])?))
    }

    /// The same with what it names besides: certificates that cannot be used are found before anything is sent.
    ///
    /// # Errors
    /// As [`Configuration::read`], and certificates that cannot be used.
    pub fn read_whole(file: &Path) -> anyhow::Result<Self> {
        let read = Self::read(file)?;
        Courier::new(read.0.clone())?;
        Ok(read)
    }
}

/// How much is allowed, in a few words for a log.
impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Allowed { rules, networks, secrets, roots, public_roots: _ } = &self.0;
        if rules.is_empty() {
            return f.write_str("no request is allowed");
        }
        let roots = if roots.is_some() { ", certificates of its own" } else { "" };
        let [rules, secrets, networks] =
            [(rules.len(), "rule"), (secrets.len(), "secret"), (networks.count(), "network")].map(counted);
        write!(f, "{rules}, {secrets}, {networks}{roots}")
    }
}

fn counted((number, noun): (usize, &str)) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
