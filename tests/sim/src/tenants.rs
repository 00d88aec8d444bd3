//! Clients that take leases: by a seed, under grants of their own, with what they were told of them; and what they
//! believe.
//!
//! A client believes that it has a lease from an answer on, for as long as the answer says, counted from when it
//! asked, on its own clock. It stops believing when it asks for anything else of it. While one believes nobody else
//! may be granted it, whatever became of the host and of its time meanwhile.

use crate::finding::{Held, ensure};
use crate::ledger::{Ledger, Told};
use interlock_conformance::Random;
use interlock_kernel::command::{Acquire, Outcome, Verb};
use interlock_kernel::ids::{GrantId, LeaseName};
use interlock_kernel::record::{Holder, Owner, Terms};
use std::collections::BTreeMap;

/// Leases that machines need, too; and one that only clients take.
const LEASES: [&str; 6] = ["dock", "ship/a", "ship/b", "spare", "dock", "gate"];
/// Clients.
const CLIENTS: u64 = 4;

fn parse<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().unwrap_or_else(|error| unreachable!("{text}: {error:?}"))
}

/// What some client asks of a lease next.
pub(crate) fn next(ledger: &Ledger, random: &mut Random) -> Verb {
    let lease: LeaseName = parse(LEASES[usize::try_from(random.below(6)).unwrap_or(0)]);
    let client = random.below(CLIENTS);
    let grant: GrantId = parse(&format!("grant-{client}"));
    let token = match last_told(ledger, &lease, &grant) {
        Some(token) => token + u64::from(random.below(12) == 0),
        None if random.below(6) > 0 => return acquire(lease, grant, client, random),
        None => random.below(500),
    };
    match random.below(10) {
        0..4 => {
            let ttl_ms = [None, None, Some(1_000), Some(7_000), Some(999)];
            let ttl_ms = ttl_ms[usize::try_from(random.below(5)).unwrap_or(0)];
            Verb::Extend { lease, grant, token, ttl_ms }
        }
        4..7 => Verb::Release { lease, grant, token },
        _ => acquire(lease, grant, client, random),
    }
}

fn acquire(lease: LeaseName, grant: GrantId, client: u64, random: &mut Random) -> Verb {
    let ttl_ms = 1_000 + random.below(7_000);
    let hold_ms = if random.below(2) == 0 { ttl_ms + random.below(20_000) } else { 86_400_000 };
    let delay_ms = if random.below(2) == 0 { 0 } else { random.below(4_000) };
    let wait_ms = (random.below(2) == 0).then(|| random.below(25_000));
    let terms = Terms { ttl_ms, hold_ms, delay_ms };
    Verb::Acquire(Box::new(Acquire { lease, grant, label: format!("client {client}"), terms, wait_ms }))
}

/// The token that a client was told last of a lease.
pub(crate) fn last_told(ledger: &Ledger, lease: &LeaseName, grant: &GrantId) -> Option<u64> {
    ledger.requests.iter().rev().filter(|request| asker(&request.command.verb) == Some((lease, grant))).find_map(
        |request| {
            request.tries.iter().rev().find_map(|told| match told {
                Told::Done(outcome) => match &**outcome {
                    Outcome::Leased { claim, .. } => Some(claim.token.get()),
                    _ => None,
                },
                _ => None,
            })
        },
    )
}

/// Which client a request is of, and which lease it is about.
fn asker(verb: &Verb) -> Option<(&LeaseName, &GrantId)> {
    match verb {
        Verb::Acquire(ask) => Some((&ask.lease, &ask.grant)),
        Verb::Extend { lease, grant, .. } | Verb::Release { lease, grant, .. } => Some((lease, grant)),
        _ => None,
    }
}

/// What each client believes of each lease.
#[derive(Clone, Default)]
pub(crate) struct Beliefs(BTreeMap<(LeaseName, GrantId), Belief>);

#[derive(Clone, Debug)]
struct Belief {
    /// The request it goes by, and its how-manieth try.
    by: (usize, usize),
    /// When that was sent, by the client's own clock.
    sent_ms: u64,
    /// It has the lease until then; none before it was told so.
    until_ms: Option<u64>,
}

impl Beliefs {
    /// A client asks for something else: what it was told before it does not go by any more.
    pub(crate) fn asks(&mut self, verb: &Verb, by: (usize, usize), sent_ms: u64) {
        if let Some((lease, grant)) = asker(verb) {
            self.0.insert((lease.clone(), grant.clone()), Belief { by, sent_ms, until_ms: None });
        }
    }

    /// A client hears an answer; it goes by it if it has asked for nothing else since.
    pub(crate) fn hears(&mut self, verb: &Verb, by: (usize, usize), told: &Told) {
        let Some((lease, grant)) = asker(verb) else { return };
        let Some(belief) = self.0.get_mut(&(lease.clone(), grant.clone())) else { return };
        if let (true, Told::Done(outcome)) = (belief.by == by, told)
            && let Outcome::Leased { ttl_ms, .. } = &**outcome
        {
            belief.until_ms = Some(belief.sent_ms + ttl_ms);
        }
    }

    /// Nobody else believes that it has what is granted now.
    pub(crate) fn hold(&self, lease: &LeaseName, new: &Holder, now_ms: u64) -> Held {
        let other = self.0.iter().find(|((of, grant), belief)| {
            of == lease
                && new.owner != Owner::Grant(grant.clone())
                && belief.until_ms.is_some_and(|until| until > now_ms)
        });
        ensure(other.is_none(), "two_never_believe_that_they_have_it", format!("lease {lease}"), || {
            format!("{new:?} was granted at {now_ms}, and {other:?}")
        })
    }
}
