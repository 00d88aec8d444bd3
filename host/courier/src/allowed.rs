//! What the operator allows, whatever manifests declare.
//!
//! ```toml
//! [effects]
//! networks = ["10.20.0.0/16"]          # addresses that are not public and may be asked all the same
//!
//! [[effects.allow]]
//! url     = "https://tickets.example.com/*"
//! methods = ["POST"]
//! secrets = ["tickets"]                # which may be sent there
//!
//! [effects.secrets.tickets]
//! file = "secrets/tickets"             # or env = "TICKETS_TOKEN"
//!
//! [effects.tls]
//! roots  = "our-authority.pem"         # trusted besides the public authorities
//! public = true                        # false: instead of them
//! ```
//!
//! Nothing is allowed that is not written here. Paths are relative to the file's folder.

mod read;

use crate::method::Method;
use crate::networks::Networks;
use crate::outbound::{Refusal, Rule};
use crate::pattern::Pattern;
use crate::secret::{self, MissingSecret, Source};
use crate::url::Destination;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The operator's configuration of effects. Its default allows nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Where requests may go.
    pub rules: Vec<Allow>,
    /// Addresses that may be connected to besides the public ones.
    pub networks: Networks,
    /// Where each secret is kept.
    pub secrets: BTreeMap<String, Source>,
    /// Certificates trusted besides, or instead of, the public authorities'.
    pub roots: Option<PathBuf>,
    /// Whether the public authorities are trusted.
    pub public_roots: bool,
}

impl Default for Allowed {
    fn default() -> Self {
        let (rules, secrets) = (Vec::new(), BTreeMap::new());
        Self { rules, networks: Networks::default(), secrets, roots: None, public_roots: true }
    }
}

/// One `[[effects.allow]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    /// Where to.
    pub url: Pattern,
    /// How.
    pub methods: Vec<Method>,
    /// Which secrets may go along.
    pub secrets: Vec<String>,
}

/// Something to change in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its line, from 1.
    pub line: usize,
    /// Where in its line, in characters, from 1.
    pub column: usize,
    /// What is wrong: what was expected, and what was got.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// A configuration that cannot be used: everything that is wrong with it, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadConfiguration {
    /// The file.
    pub file: PathBuf,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for BadConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, problem) in self.problems.iter().enumerate() {
            let Problem { line, column, message, remedy } = problem;
            let gap = if nth == 0 { "" } else { "\n" };
            write!(f, "{gap}{}:{line}:{column}: {message}; {remedy}", self.file.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for BadConfiguration {}

impl Allowed {
    /// Reads the `effects` of a configuration. `besides` are the other keys its text may have: they are
    /// read elsewhere. `file` is shown in problems, and its folder is where relative paths begin.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(file: &Path, text: &str, besides: &[&str]) -> Result<Self, BadConfiguration> {
        read::allowed(file, text, besides)
    }

    /// The rule that allows a request.
    ///
    /// # Errors
    /// [`Refusal`]: which rule is missing, and what the nearest ones say.
    pub fn admit(&self, method: Method, url: &Destination, secret: Option<&str>) -> Result<(), Refusal> {
        let there: Vec<&Allow> = self.rules.iter().filter(|allow| allow.url.matches(url)).collect();
        if there.is_empty() {
            let got = "none: neither a manifest nor a redirect can widen it";
            return Err(Refusal::new(Rule::Allow, format!("an `effects.allow` for {}", url.origin()), got));
        }
        let by_method: Vec<&Allow> = there.iter().copied().filter(|allow| allow.methods.contains(&method)).collect();
        if by_method.is_empty() {
            let methods: Vec<&str> = there.iter().flat_map(|allow| &allow.methods).map(|m| m.as_str()).collect();
            return Err(Refusal::new(Rule::Method, format!("{method} in `effects.allow`"), methods.join(", ")));
        }
        match secret {
            Some(name) if !by_method.iter().any(|allow| allow.secrets.iter().any(|secret| secret == name)) => {
                let expected = format!("an `effects.allow` that lets the secret `{name}` go to {}", url.origin());
                Err(Refusal::new(Rule::Secret, expected, "none with it among its `secrets`"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a declared target could ever be allowed: for a warning when it is deployed. A `false` is sure.
    #[must_use]
    pub fn could_admit(&self, method: Method, pattern: &Pattern, secret: Option<&str>) -> bool {
        self.rules.iter().any(|allow| {
            let secret = secret.is_none_or(|name| allow.secrets.iter().any(|secret| secret == name));
            secret && allow.methods.contains(&method) && allow.url.overlaps(pattern)
        })
    }

    /// Those of the secrets that could not be sent now, each with its reason. Reads files.
    #[must_use]
    pub fn missing<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<MissingSecret> {
        names.into_iter().filter_map(|name| secret::read(name, self.secrets.get(name)).err()).collect()
    }
}
