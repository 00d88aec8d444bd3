//! The leases of an execution: what a state needs before its step begins, what is renewed with progress, what
//! runs on while nothing does, and what ends with the execution.

use super::super::draft::{Draft, Tag};
use super::LeaseDraft;
use crate::doc::Doc;
use crate::ids::{ExecutionId, LeaseName};
use crate::limits::{BUSY_RETRY_MS, LEASE_MARGIN_MS, LEASES_MAX};
use crate::record::{BeginReason, Holder, Owner, Park, Terms, Waiter, What};
use crate::rejection::{Code, Rejection};
use crate::time::StoreTime;
use crate::value::Value;
use crate::view::{Claim, Stop};

/// Whether the step may begin.
enum Needs {
    /// It has all that its state needs.
    Met,
    /// Somebody else has this one.
    Wait(LeaseName),
    /// What the state names is no lease that the machine was granted.
    Broken(String),
}

impl<'a> Draft<'a> {
    /// A lease, as this decision changes it.
    pub(in crate::decide) fn lease(&mut self, name: &LeaseName) -> Result<&mut LeaseDraft<'a>, Stop> {
        let place = match self.touched.iter().position(|lease| lease.name == *name) {
            Some(place) => place,
            None => {
                self.touched.push(LeaseDraft::of(self.given, name)?);
                self.touched.len().saturating_sub(1)
            }
        };
        self.touched.get_mut(place).ok_or_else(|| Stop::Corrupt(format!("lease {name} was not kept")))
    }

    /// The leases that the execution has, by its head.
    pub(in crate::decide) fn leases(&self) -> Vec<LeaseName> {
        self.head.leases.clone()
    }

    fn owner(&self) -> Option<Owner> {
        self.head.locked_by(&self.id).map(Owner::Execution)
    }

    /// A step acts without a lease that its execution had: somebody else may have it by now.
    pub(in crate::decide) fn lost_lease(&mut self, claim: &Claim) -> Result<Option<Rejection>, Stop> {
        let owner = Owner::Execution(claim.execution.clone());
        for name in self.leases() {
            let lease = self.lease(&name)?;
            if !lease.is_held_by(&owner, None) {
                let got = match lease.holder() {
                    Some(holder) => format!("it is held by {}", holder.owner.shown(&holder.label)),
                    None => "it ran out".to_owned(),
                };
                return Ok(Some(Rejection::new(Code::Fenced, &claim.execution, format!("lease {name}, held"), got)));
            }
        }
        Ok(None)
    }

    /// Progress: what the execution has is its own for a whole time to live more. The caller has looked whether it
    /// has all that its head names.
    pub(in crate::decide) fn renew_leases(&mut self) -> Result<(), Stop> {
        for name in self.leases() {
            self.lease(&name)?.renew(None);
        }
        Ok(())
    }

    /// Out of the head with what ran out while nothing ran: what begins now does not begin under it.
    fn strike_out(&mut self) -> Result<Vec<LeaseName>, Stop> {
        let Some(owner) = self.owner() else { return Ok(Vec::new()) };
        let mut lost = Vec::new();
        for name in self.leases() {
            if !self.lease(&name)?.is_held_by(&owner, None) {
                lost.push(name);
            }
        }
        self.head.leases.retain(|name| !lost.contains(name));
        Ok(lost)
    }

    /// A request of the step was done, which is progress.
    pub(in crate::decide) fn progressed(&mut self) -> Result<(), Stop> {
        let wall = self.now().wall;
        if let Some(lock) = self.head.lock.as_mut() {
            lock.progress = wall;
        }
        self.renew_leases()
    }

    /// Gives back what has too little left to begin with, however often it is renewed: its bound in all is near.
    /// Whether there was any.
    pub(in crate::decide) fn give_up_worn_leases(&mut self, tag: Tag) -> Result<bool, Stop> {
        let now = self.now().store;
        let mut worn = Vec::new();
        for name in self.leases() {
            let lease = self.lease(&name)?;
            if lease.holder().is_some_and(|holder| renew_by(holder) <= now) {
                lease.release("too little was left of the longest it may be held");
                worn.push(name);
            }
        }
        self.head.leases.retain(|name| !worn.contains(name));
        let any = !worn.is_empty();
        for name in worn {
            self.record(What::LeaseLost(name), tag.clone());
        }
        Ok(any)
    }

    /// Nothing runs that could renew them: they run as long as the wait, at most to their own bound.
    pub(in crate::decide) fn stretch_leases(&mut self) -> Result<(), Stop> {
        let Some(lock) = &self.head.lock else { return Ok(()) };
        if lock.attempt.is_some() {
            return Ok(());
        }
        let until = if self.head.park.is_some() { None } else { lock.retry.or(self.head.deadline) };
        let owner = self.owner();
        for name in self.leases() {
            let lease = self.lease(&name)?;
            if owner.as_ref().is_some_and(|owner| lease.is_held_by(owner, None)) {
                lease.stretch(until);
            }
        }
        Ok(())
    }

    /// With the execution end the leases it has, and its place in line.
    pub(in crate::decide) fn end_leases(&mut self, execution: ExecutionId) -> Result<(), Stop> {
        let owner = Owner::Execution(execution);
        for name in std::mem::take(&mut self.head.leases) {
            let lease = self.lease(&name)?;
            if lease.is_held_by(&owner, None) {
                lease.release("its execution ended");
            }
        }
        Ok(())
    }

    /// Out of the line for what the step does not wait for any more, or its execution, which awaits nothing as it ends:
    /// like the index, lines follow from the head.
    pub(in crate::decide) fn leave_line(&mut self) -> Result<(), Stop> {
        let Some((execution, name)) = self.stood() else { return Ok(()) };
        if self.head.awaits.as_ref() == Some(&name) {
            return Ok(());
        }
        self.lease(&name)?.leave(&Owner::Execution(execution));
        Ok(())
    }

    /// What a move requires: leases that the execution has.
    pub(in crate::decide) fn missing(
        &mut self,
        requires: &[Value],
        event: Option<Doc>,
    ) -> Result<Option<Rejection>, Stop> {
        let owner = self.owner();
        let names = match self.names(requires, event)? {
            Ok(names) => names,
            Err(why) => return Ok(Some(Rejection::new(Code::Require, &self.id, "the name of a lease", why))),
        };
        for name in names {
            let lease = self.lease(&name)?;
            if !owner.as_ref().is_some_and(|owner| lease.is_held_by(owner, None)) {
                let got = match lease.holder() {
                    Some(holder) => format!("held by {}", holder.owner.shown(&holder.label)),
                    None => "held by nobody".to_owned(),
                };
                let expected = format!("lease {name}, held by the execution");
                return Ok(Some(Rejection::new(Code::Require, &self.id, expected, got)));
            }
        }
        Ok(None)
    }

    /// Opens the first attempt of a visit that is being entered.
    pub(in crate::decide) fn begin_first(&mut self) -> Result<(), Stop> {
        let lost = self.strike_out()?;
        self.afterwards.extend(lost.into_iter().map(What::LeaseLost));
        self.begin()
    }

    /// Opens the next attempt of the visit once its state's needs are met, and puts that on record.
    pub(in crate::decide) fn begin_as(&mut self, reason: BeginReason) -> Result<(), Stop> {
        for lost in self.strike_out()? {
            self.record(What::LeaseLost(lost), Tag::default());
        }
        self.begin()?;
        let open = self.head.lock.as_ref().and_then(|lock| lock.attempt);
        if let Some(open) = open {
            let tag = Tag { attempt: Some((open.ordinal, open.token)), ..Tag::default() };
            self.record(What::Begun(reason), tag);
        }
        Ok(())
    }

    /// Opens the next attempt of the visit, with every lease that its state needs; else it stands in line.
    fn begin(&mut self) -> Result<(), Stop> {
        let machine = self.machine();
        let needs = match machine.needs(&self.head.state) {
            [] => Needs::Met,
            needs => self.obtain(needs)?,
        };
        let now = self.now();
        match needs {
            Needs::Met => {
                self.head.awaits = None;
                self.renew_leases()?;
                self.open_attempt();
            }
            Needs::Wait(name) => self.wait_for(name)?,
            Needs::Broken(reason) => {
                self.head.awaits = None;
                let code = "needs".to_owned();
                self.head.park = Some(Park { code: code.clone(), reason: reason.clone(), since: now.wall });
                if let Some(lock) = self.head.lock.as_mut() {
                    lock.retry = None;
                }
                self.afterwards.push(What::Parked(code, reason));
                self.wake.push(crate::view::Wake::Settled(self.id.clone()));
            }
        }
        Ok(())
    }

    /// All or none, in order.
    fn obtain(&mut self, needs: &[Value]) -> Result<Needs, Stop> {
        let Some(owner) = self.owner() else { return Ok(Needs::Met) };
        let payload = self.payload()?;
        let names = match self.names(needs, payload)? {
            Ok(names) => names,
            Err(why) => return Ok(Needs::Broken(why)),
        };
        let overtakes = match self.head.awaits.clone() {
            Some(name) => self.lease(&name)?.is_turn_of(&owner),
            None => false,
        };
        let mut wanted: Vec<(LeaseName, Terms)> = Vec::new();
        for name in names {
            if wanted.iter().any(|(other, _)| *other == name) {
                continue; // two fields may name the same one
            }
            let spec = match self.machine().lease(&name) {
                Some(spec) => *spec,
                None => return Ok(Needs::Broken(format!("lease {name} is not granted to {}", self.id.machine))),
            };
            let lease = self.lease(&name)?;
            if lease.is_held_by(&owner, None) {
                continue;
            }
            let open = lease.is_open_to(&owner) || overtakes && lease.is_open_in_passing(&owner);
            if !open {
                return Ok(Needs::Wait(name));
            }
            wanted.push((name, Terms { ttl_ms: spec.ttl_ms, hold_ms: spec.hold_ms, delay_ms: spec.delay_ms }));
        }
        if self.head.leases.len().saturating_add(wanted.len()) > LEASES_MAX {
            return Ok(Needs::Broken(format!("more than {LEASES_MAX} leases of one execution (leases_max)")));
        }
        for (name, terms) in wanted {
            self.lease(&name)?.grant(owner.clone(), "", terms);
            self.head.leases.push(name);
        }
        Ok(Needs::Met)
    }

    fn wait_for(&mut self, name: LeaseName) -> Result<(), Stop> {
        let Some(owner) = self.owner() else { return Ok(()) };
        let awaited = self.head.awaits.take();
        let now = self.now();
        let spec = self.machine().lease(&name).copied().unwrap_or_default();
        let terms = Terms { ttl_ms: spec.ttl_ms, hold_ms: spec.hold_ms, delay_ms: spec.delay_ms };
        let waiter =
            Waiter { owner: owner.clone(), label: String::new(), terms, since: now.wall, until: None, session: None };
        let lease = self.lease(&name)?;
        lease.busy(&owner, "");
        let stands = lease.stand_in_line(waiter);
        self.head.awaits = stands.then(|| name.clone());
        let mut asked_again = false;
        if let Some(lock) = self.head.lock.as_mut() {
            // No room in line: it is asked again, as after a failure.
            asked_again = !stands && lock.retry.is_some();
            lock.retry = (!stands).then(|| now.store.plus(BUSY_RETRY_MS));
        }
        if awaited.as_ref() != Some(&name) && !asked_again {
            self.afterwards.push(What::Awaits(name));
        }
        Ok(())
    }

    /// The names of leases that values stand for.
    pub(in crate::decide) fn names(
        &mut self,
        values: &[Value],
        event: Option<Doc>,
    ) -> Result<Result<Vec<LeaseName>, String>, Stop> {
        let scope = self.scope(event)?;
        let roots = scope.roots(self.now());
        Ok(values
            .iter()
            .map(|value| match roots.value(value) {
                Some(serde_json::Value::String(text)) => text.parse().map_err(|why| format!("{why}")),
                Some(other) => Err(format!("expected the name of a lease at {value}, got {}", Doc::new(other))),
                None => Err(format!("expected the name of a lease at {value}, got nothing")),
            })
            .collect())
    }

    /// Until when the open attempt may be handed out as it is.
    pub(in crate::decide) fn renew_by(&mut self) -> Result<Option<StoreTime>, Stop> {
        let mut earliest: Option<StoreTime> = None;
        for name in self.leases() {
            let Some(holder) = self.lease(&name)?.holder() else { continue };
            let by = renew_by(holder);
            earliest = Some(earliest.map_or(by, |earliest| earliest.min(by)));
        }
        Ok(earliest)
    }
}

/// The last moment to begin with a lease as it is: a third of its time, and a margin, is left to renew it.
fn renew_by(holder: &Holder) -> StoreTime {
    let third = holder.terms.ttl_ms.min(holder.terms.hold_ms) / 3;
    StoreTime(holder.until.0.saturating_sub(third.saturating_add(LEASE_MARGIN_MS.min(third))))
}
