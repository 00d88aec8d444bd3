//! Leases as clients hold them, and as they stand.

use crate::answer::Answer;
use crate::command::parsed;
use crate::host::{MockHost, went};
use interlock_kernel::command::{Acquire, Outcome, Verb};
use interlock_kernel::ids::{GrantId, LeaseName};
use interlock_kernel::limits::LEASE_HOLD_MS_MAX;
use interlock_kernel::record::{Holder, Terms};
use std::fmt;
use std::time::Duration;

/// A lease as it stood when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    name: String,
    holder: Option<(String, u64, Duration)>,
    in_line: usize,
    entries: Vec<String>,
}

impl LeaseView {
    /// Who has it: an execution's id, or a client's name.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_ref().map(|(owner, ..)| owner.as_str())
    }

    /// The token of this grant.
    #[must_use]
    pub fn token(&self) -> Option<u64> {
        self.holder.as_ref().map(|(_, token, _)| *token)
    }

    /// How long it is held, if it is not renewed.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.holder.as_ref().map(|(.., left)| *left)
    }

    /// How many stand in line for it.
    #[must_use]
    pub fn in_line(&self) -> usize {
        self.in_line
    }

    /// What became of it, oldest first: `acquired`, `contended`, `extended`, `released`, `expired`, `fenced`.
    #[must_use]
    pub fn entries(&self) -> &[String] {
        &self.entries
    }
}

impl fmt::Display for LeaseView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Some((owner, token, left)) => {
                write!(f, "{}: {owner}, token {token}, {} ms left", self.name, left.as_millis())
            }
            None => write!(f, "{}: free", self.name),
        }
    }
}

/// Clients that hold leases, each known by a name of its own.
impl MockHost {
    /// A client tries to take a lease for so long. One that it has is renewed.
    #[track_caller]
    pub fn acquire(&mut self, lease: &str, by: &str, ttl: Duration) -> Answer {
        let name: LeaseName = parsed("a lease", lease);
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let terms = Terms { ttl_ms, hold_ms: LEASE_HOLD_MS_MAX, delay_ms: 0 };
        let (grant, label) = (grant(by), by.to_owned());
        let acquire = Acquire { lease: name.clone(), grant, label, terms, wait_ms: None };
        let answer = self.submit(format!("{by} acquires {lease}"), Verb::Acquire(Box::new(acquire)));
        if let Some(Outcome::Leased { claim, .. }) = answer.outcome() {
            self.tokens.insert((name, by.to_owned()), claim.token.get());
        }
        answer
    }

    /// A client renews a lease, under the token that it was told last.
    #[track_caller]
    pub fn extend(&mut self, lease: &str, by: &str, ttl: Duration) -> Answer {
        let (name, token) = self.told(lease, by);
        let ttl_ms = Some(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self.submit(format!("{by} extends {lease}"), Verb::Extend { lease: name, grant: grant(by), token, ttl_ms })
    }

    /// A client gives a lease back, under the token that it was told last.
    #[track_caller]
    pub fn release(&mut self, lease: &str, by: &str) -> Answer {
        let (name, token) = self.told(lease, by);
        self.submit(format!("{by} releases {lease}"), Verb::Release { lease: name, grant: grant(by), token })
    }

    /// A lease as it stands; free and without entries if nobody ever had it.
    #[track_caller]
    #[must_use]
    pub fn lease(&self, lease: &str) -> LeaseView {
        let name: LeaseName = parsed("a lease", lease);
        let view = went(self.lab.read(|host| async move { host.lease(&name).await }).map_err(Into::into));
        let (mut entries, mut holder, mut in_line) = (Vec::new(), None, 0);
        if let Some(view) = view {
            let shown = |held: &Holder| {
                let left = Duration::from_millis(held.until.since(view.at));
                (held.owner.shown(&held.label), held.token.get(), left)
            };
            holder = view.lease.held(view.at).map(shown);
            in_line = view.lease.line.len();
            entries = view.entries.iter().rev().map(|entry| entry.what.to_string()).collect();
        }
        LeaseView { name: lease.to_owned(), holder, in_line, entries }
    }

    fn told(&self, lease: &str, by: &str) -> (LeaseName, u64) {
        let name: LeaseName = parsed("a lease", lease);
        let token = self.tokens.get(&(name.clone(), by.to_owned())).copied().unwrap_or(0);
        (name, token)
    }
}

fn grant(by: &str) -> GrantId {
    parsed("a client", by)
}
