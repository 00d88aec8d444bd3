//! Leases in a story: what clients do with them, who must have them.

use super::Answer;
use super::judge::{Broken, broken};
use crate::Lab;
use interlock_coordinator::{LeaseView, SubmitError};
use interlock_kernel::command::{Acquire, Outcome, Verb};
use interlock_kernel::ids::{EntityId, GrantId, LeaseName, Principal};
use interlock_kernel::record::{Owner, Terms};
use interlock_kernel::time::Span;
use std::collections::BTreeMap;
use std::fmt;

/// What a client does with a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The lease.
    pub lease: LeaseName,
    /// What the client calls itself, and holds it under.
    pub by: GrantId,
    /// What it does.
    pub does: Does,
    /// The answer it must get; if none is named, any but a refusal.
    pub answer: Option<Answer>,
}

/// See [`Deed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Takes it, or renews it.
    Acquire {
        /// On what terms.
        terms: Terms,
        /// Stands in line for so many ms, if it has to.
        wait_ms: Option<u64>,
    },
    /// Renews it, for so many ms or as before.
    Extend(Option<u64>),
    /// Gives it back.
    Release,
}

impl fmt::Display for Deed {
    /// As people ask for it: `acquire disk for 30 s, as rival`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lease, by, does, .. } = self;
        match does {
            Does::Acquire { terms, wait_ms } => {
                write!(f, "acquire {lease} for {}", Span(terms.ttl_ms))?;
                if let Some(wait_ms) = wait_ms {
                    write!(f, ", in line for {}", Span(*wait_ms))?;
                }
            }
            Does::Extend(None) => write!(f, "extend {lease}")?,
            Does::Extend(Some(ttl_ms)) => write!(f, "extend {lease} for {}", Span(*ttl_ms))?,
            Does::Release => write!(f, "release {lease}")?,
        }
        write!(f, ", as {by}")
    }
}

/// What clients know of their leases: the token of each grant that they were told last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients(BTreeMap<(LeaseName, GrantId), u64>);

impl Clients {
    /// Does it, as a client that has heard of every grant of its own.
    pub(crate) fn act(&mut self, lab: &mut Lab, deed: &Deed) -> Result<Outcome, SubmitError> {
        let token = self.token(lab, deed)?;
        let (lease, grant) = (deed.lease.clone(), deed.by.clone());
        let verb = match deed.does {
            Does::Acquire { terms, wait_ms } => {
                Verb::Acquire(Box::new(Acquire { lease, label: grant.to_string(), grant, terms, wait_ms }))
            }
            Does::Extend(ttl_ms) => Verb::Extend { lease, grant, token, ttl_ms },
            Does::Release => Verb::Release { lease, grant, token },
        };
        let answer = lab.submit(Principal::local(), verb);
        if let Ok(Outcome::Leased { claim, .. }) = &answer {
            self.0.insert((deed.lease.clone(), deed.by.clone()), claim.token.get());
        }
        answer
    }

    /// One that stood in line may have been told since.
    fn token(&mut self, lab: &Lab, deed: &Deed) -> Result<u64, SubmitError> {
        let owner = Owner::Grant(deed.by.clone());
        let lease = lab.leases()?.into_iter().find(|view| view.name == deed.lease);
        let held = lease.and_then(|view| view.lease.holder.filter(|holder| holder.owner == owner));
        let known = self.0.entry((deed.lease.clone(), deed.by.clone())).or_default();
        if let Some(holder) = held {
            *known = holder.token.get();
        }
        Ok(*known)
    }
}

/// What a lease must be like; what is not named is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Who has it.
    pub holder: Option<Whose>,
    /// How many stand in line.
    pub in_line: Option<u64>,
    /// Parts of lines of what became of it, in this order, others between them: `acquired by rival`.
    pub history: Vec<String>,
}

/// Who has a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Nobody: the word is `nobody`.
    Nobody,
    /// A client.
    Client(GrantId),
    /// The execution of an entity.
    Entity(EntityId),
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("nobody"),
            Self::Client(by) => by.fmt(f),
            Self::Entity(entity) => entity.key.fmt(f),
        }
    }
}

/// Who has a lease now.
pub(crate) fn holder(lease: Option<&LeaseView>) -> Whose {
    match lease.and_then(|view| view.lease.held(view.at)).map(|holder| &holder.owner) {
        None => Whose::Nobody,
        Some(Owner::Grant(by)) => Whose::Client(by.clone()),
        Some(Owner::Execution(execution)) => Whose::Entity(execution.entity.clone()),
    }
}

/// What became of a lease, oldest first, as it is told: `acquired by it, token 7`.
pub(crate) fn lines(lease: &LeaseView) -> Vec<String> {
    let line = |entry: &interlock_kernel::record::LeaseEntry| {
        let token = entry.token.map(|token| format!(", token {token}")).unwrap_or_default();
        format!("{} by {}{token}", entry.what, entry.owner)
    };
    lease.entries.iter().rev().map(line).collect()
}

impl Holding {
    /// Everything that is not so.
    pub(super) fn judge(&self, lease: Option<&LeaseView>) -> Vec<(&'static str, Broken)> {
        let mut missed = Vec::new();
        let mut add = |what, found: Result<(), Broken>| missed.extend(found.err().map(|broken| (what, broken)));
        let has = holder(lease);
        if let Some(wanted) = self.holder.as_ref().filter(|wanted| **wanted != has) {
            add("holder", broken(wanted.to_string(), has.to_string()));
        }
        let in_line = lease.map_or(0, |view| view.lease.line.len() as u64);
        if let Some(wanted) = self.in_line.filter(|wanted| *wanted != in_line) {
            add("line", broken(wanted.to_string(), in_line.to_string()));
        }
        add("history", super::check::in_order(&self.history, &lease.map(lines).unwrap_or_default()));
        missed
    }
}

/// Whether the execution of an entity has a lease.
pub(super) fn holds(name: &LeaseName, entity: &EntityId, leases: &[LeaseView]) -> Result<(), Broken> {
    let has = holder(leases.iter().find(|view| view.name == *name));
    if has == Whose::Entity(entity.clone()) {
        return Ok(());
    }
    broken(format!("its execution to have the lease {name}"), format!("held by {has}"))
}
