//! What must hold of leases at every commit: one holder, tokens that only grow, nobody's time cut short, first come
//! first served, and heads and leases that say the same.

use crate::finding::{Finding, Held, ensure};
use crate::model::Model;
use interlock_kernel::ids::{EntityId, LeaseName};
use interlock_kernel::record::{Head, Holder, Key, Lease, LeaseEntry, LeaseWhat, Owner, Record, Waiter};
use interlock_kernel::theorems;
use interlock_kernel::time::StoreTime;
use interlock_store::Stamp;
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered of leases, beyond their records.
#[derive(Clone, Default)]
pub(crate) struct Grants {
    /// Every grant there ever was: whose token it is.
    owners: BTreeMap<(LeaseName, u64), Owner>,
    /// Tokens that were given back.
    returned: BTreeSet<(LeaseName, u64)>,
    /// The highest token, also of a lease that has no record any more.
    highest: BTreeMap<LeaseName, u64>,
    /// Who alone may take a lease again, and until when.
    kept: BTreeMap<LeaseName, (String, u64)>,
}

impl Grants {
    /// Whether this owner was granted a lease under this token.
    pub(crate) fn has(&self, lease: &LeaseName, token: u64, owner: &Owner) -> bool {
        self.owners.get(&(lease.clone(), token)) == Some(owner)
    }

    /// Whether a grant was given back.
    pub(crate) fn is_returned(&self, lease: &LeaseName, token: u64) -> bool {
        self.returned.contains(&(lease.clone(), token))
    }

    /// The highest token of a lease.
    pub(crate) fn highest(&self, lease: &LeaseName) -> u64 {
        self.highest.get(lease).copied().unwrap_or_default()
    }
}

/// One lease before and after a job, and what the job wrote about it.
pub(crate) struct Touched<'a> {
    pub(crate) name: &'a LeaseName,
    pub(crate) was: Option<&'a Lease>,
    pub(crate) entries: Vec<&'a LeaseEntry>,
}

impl Model {
    pub(crate) fn lease(&self, name: &LeaseName) -> Option<&Lease> {
        match self.records.get(&Key::Lease(name.clone())) {
            Some(Record::Lease(lease)) => Some(lease),
            _ => None,
        }
    }

    pub(crate) fn leases(&self) -> impl Iterator<Item = (&LeaseName, &Lease)> {
        self.records.iter().filter_map(|(key, record)| match (key, record) {
            (Key::Lease(name), Record::Lease(lease)) => Some((name, &**lease)),
            _ => None,
        })
    }

    /// A lease that a job has touched is as it may be after what it was. Returns a new holder.
    pub(crate) fn lease_holds(&mut self, touched: &Touched<'_>, stamp: Stamp) -> Result<Option<Holder>, Finding> {
        let Touched { name, was, entries } = touched;
        let none = Lease { first: 1, ..Lease::default() };
        let is = self.lease(name).cloned().unwrap_or_else(|| none.clone());
        let about = format!("lease {name}");
        if let Some(theorem) = theorems::lease(*was, &is).first() {
            return Err(Finding::new(theorem, about, format!("{was:?} became {is:?}")));
        }
        self.entries_follow(&about, was.unwrap_or(&none), &is, entries)?;
        self.lapse_agrees(name)?;
        let held = was.and_then(|was| was.holder.as_ref());
        if let Some(held) = held {
            self.ends_as_it_may(&about, held, &is, entries, stamp)?;
        }
        for entry in entries {
            self.is_on_record(name, entry, held, stamp)?;
        }
        let new = is.holder.filter(|holder| held.is_none_or(|held| held.token != holder.token));
        match &new {
            Some(new) => self.is_granted(name, *was, new, stamp)?,
            None => {
                let granted = is.granted.map_or(0, |token| token.get());
                let highest = self.grants.highest(name);
                ensure(granted == highest || granted == 0, "token_never_falls", about, || {
                    format!("expected {highest}, got {granted}")
                })?;
            }
        }
        Ok(new)
    }

    /// What became of it is remembered; after a loss only who lost it may take it, for as long as it said.
    fn is_on_record(&mut self, name: &LeaseName, entry: &LeaseEntry, held: Option<&Holder>, stamp: Stamp) -> Held {
        let Some(token) = entry.token else { return Ok(()) };
        match entry.what {
            LeaseWhat::Released => {
                self.grants.returned.insert((name.clone(), token.get()));
            }
            LeaseWhat::Expired => {
                let delay_ms = held.filter(|held| held.token == token).map_or(0, |held| held.terms.delay_ms);
                self.grants.kept.insert(name.clone(), (entry.owner.clone(), stamp.store_ms + delay_ms));
            }
            LeaseWhat::Acquired => {
                let kept = self.grants.kept.remove(name);
                let may = kept.as_ref().is_none_or(|(owner, until)| *owner == entry.owner || stamp.store_ms >= *until);
                let theorem = "after_a_loss_only_who_lost_it_may_take_it";
                return ensure(may, theorem, name, || format!("{entry:?}, kept for {kept:?}"));
            }
            LeaseWhat::Contended | LeaseWhat::Extended | LeaseWhat::Fenced | LeaseWhat::Reconciled => {}
        }
        Ok(())
    }

    /// What became of it is numbered without gaps, and all that the record says is kept is there.
    fn entries_follow(&self, about: &str, was: &Lease, is: &Lease, entries: &[&LeaseEntry]) -> Held {
        let theorem = "what_became_of_a_lease_is_on_record";
        let numbers: Vec<u64> = entries.iter().map(|entry| entry.number).collect();
        let forgotten = is.last == 0;
        let expected: Vec<u64> = (was.last + 1..=is.last).collect();
        ensure(forgotten || numbers == expected, theorem, about, || format!("expected {expected:?}, got {numbers:?}"))
    }

    fn lapse_agrees(&self, name: &LeaseName) -> Held {
        let implied: BTreeSet<StoreTime> = self.lease(name).and_then(|lease| lease.due).into_iter().collect();
        let found = self.lapses.get(name).cloned().unwrap_or_default();
        ensure(implied == found, "a_lease_implies_its_index", format!("lease {name}"), || {
            format!("expected {implied:?}, got {found:?}")
        })
    }

    /// Who had it has it still, on the same bound, or it was given back, or its time is over.
    fn ends_as_it_may(
        &mut self,
        about: &str,
        held: &Holder,
        is: &Lease,
        entries: &[&LeaseEntry],
        stamp: Stamp,
    ) -> Held {
        if let Some(still) = is.holder.as_ref().filter(|holder| holder.token == held.token) {
            let same = still.owner == held.owner && still.hold_until == held.hold_until;
            return ensure(same, "a_grant_stays_what_it_is", about, || format!("{held:?} became {still:?}"));
        }
        let ended = |what| entries.iter().any(|entry| entry.what == what && entry.token == Some(held.token));
        let (over, now) = (held.until.0, stamp.store_ms);
        if ended(LeaseWhat::Expired) {
            return ensure(over <= now, "a_lease_ends_late_never_early", about, || format!("{held:?} at {now}"));
        }
        ensure(ended(LeaseWhat::Released), "a_grant_ends_on_record", about, || format!("{held:?}, {entries:?}"))
    }

    /// A new grant: a token above every other, to whoever may have it.
    fn is_granted(&mut self, name: &LeaseName, was: Option<&Lease>, new: &Holder, stamp: Stamp) -> Held {
        let about = format!("lease {name}");
        let (token, highest) = (new.token.get(), self.grants.highest(name));
        ensure(token == stamp.seq && token > highest, "token_never_falls", &about, || {
            format!("expected {} and above {highest}, got {token}", stamp.seq)
        })?;
        self.grants.highest.insert(name.clone(), token);
        self.grants.owners.insert((name.clone(), token), new.owner.clone());
        let line = self.lease(name).map(|lease| lease.line.clone()).unwrap_or_default();
        first_come(&about, was, &line, new, self.session, stamp)
    }

    /// Heads and leases agree on who has what, and who stands in line.
    pub(crate) fn leases_and_heads_agree(&self, of: &BTreeSet<EntityId>) -> Held {
        let gone = Lease::default();
        for (name, lease) in self.leases() {
            let theirs = |owner: &Owner| match owner {
                Owner::Execution(execution) => Some(execution.entity.clone()),
                Owner::Grant(_) => None,
            };
            let owners = lease.holder.iter().map(|holder| &holder.owner);
            let named = owners.chain(lease.line.iter().map(|waiter| &waiter.owner)).filter_map(theirs);
            let entities: BTreeSet<EntityId> = named.chain(of.iter().cloned()).collect();
            for id in &entities {
                agree(name, lease, id, self.head(id))?;
            }
        }
        for id in of {
            let Some(head) = self.head(id) else { continue };
            let missing = head.leases.iter().chain(&head.awaits).find(|name| self.lease(name).is_none());
            missing.map_or(Ok(()), |name| agree(name, &gone, id, Some(head)))?;
        }
        Ok(())
    }

    /// Whoever writes as a step has every lease that its head names, at this time.
    pub(crate) fn holds_its_leases(&self, id: &EntityId, before: Option<&Head>, was: &Before<'_>, now: u64) -> Held {
        let Some(head) = before else { return Ok(()) };
        let owner = head.locked_by(id).map(Owner::Execution);
        for name in &head.leases {
            let lease = was.get(name).copied().flatten().or_else(|| self.lease(name));
            let held = lease.and_then(|lease| lease.held(StoreTime(now)));
            let holds = held.is_some_and(|held| Some(&held.owner) == owner.as_ref());
            ensure(holds, "nobody_writes_without_its_leases", id, || format!("{name} at {now}: {lease:?}"))?;
        }
        Ok(())
    }
}

/// Leases as they were before a job, those that it touched.
pub(crate) type Before<'a> = BTreeMap<LeaseName, Option<&'a Lease>>;

fn agree(name: &LeaseName, lease: &Lease, id: &EntityId, head: Option<&Head>) -> Held {
    ensure(theorems::lease_and_execution_agree(name, lease, id, head), "lease_and_execution_agree", id, || {
        let named = head.map(|head| (&head.leases, &head.awaits, &head.lock));
        format!("{name}: {lease:?} and {named:?}")
    })
}

/// A client gets a lease before nobody who stands in line before it; but who lost it may take it again.
fn first_come(
    about: &str,
    was: Option<&Lease>,
    line: &[Waiter],
    new: &Holder,
    session: Option<u64>,
    stamp: Stamp,
) -> Held {
    let Some(was) = was else { return Ok(()) };
    let reclaims = was.delay.as_ref().is_some_and(|delay| delay.owner == new.owner)
        || was.holder.as_ref().is_some_and(|held| held.owner == new.owner && held.terms.delay_ms > 0);
    let here = |waiter: &&Waiter| {
        // Whose turn it was, and who went to stand in line for another one that it lacks.
        let stays = waiter.owner == new.owner || line.iter().any(|other| other.owner == waiter.owner);
        let patient = waiter.until.is_none_or(|until| until.0 > stamp.store_ms);
        let lives = match waiter.owner {
            Owner::Execution(_) => true,
            Owner::Grant(_) => waiter.session.map(|session| session.get()) == session,
        };
        stays && patient && lives
    };
    let first = was.line.iter().find(here);
    // Executions that have their turn elsewhere may pass executions.
    let passes = matches!(new.owner, Owner::Execution(_));
    let served = first.is_none_or(|first| {
        first.owner == new.owner || reclaims || passes && matches!(first.owner, Owner::Execution(_))
    });
    ensure(served, "first_come_first_served", about, || format!("{new:?} passed {first:?}"))
}
