//! One lease as one decision changes it. Whoever touches a lease finds it as store time has left it: a
//! grant past its time is over, and that is on record, before anything else is decided.

use super::super::corrupt;
use super::super::draft::Given;
use crate::command::{Command, Verb};
use crate::ids::{LeaseName, Principal};
use crate::limits::{BUSY_RETRY_MS, FACTS_MAX, LEASE_ENTRIES_MAX, LEASE_KEPT_MS, LEASE_LINE_MAX};
use crate::number::FencingToken;
use crate::record::{Delay, Holder, Key, Lease, LeaseEntry, LeaseWhat, Owner, Record, Terms, Waiter};
use crate::rejection::{Code, Rejection, cut};
use crate::theorems;
use crate::time::{Span, StoreTime};
use crate::view::{Decision, Stop, Wake};
use serde_json::json;

/// See the module.
pub(in crate::decide) struct LeaseDraft<'a> {
    pub(super) given: &'a Given<'a>,
    pub(super) name: LeaseName,
    pub(super) lease: Lease,
    pub(super) was: Option<Lease>,
    pub(super) writes: Vec<(Key, Option<Record>)>,
    wake: Vec<Wake>,
    pub(super) then: Vec<Command>,
}

impl<'a> LeaseDraft<'a> {
    /// A lease as it is now.
    pub(in crate::decide) fn of(given: &'a Given<'a>, name: &LeaseName) -> Result<Self, Stop> {
        let key = Key::Lease(name.clone());
        let was = match given.view.get(&key)? {
            None => None,
            Some(Record::Lease(lease)) => Some(*lease),
            Some(_) => return Err(corrupt(&key, "not a lease")),
        };
        let fresh = Lease { first: 1, ..Lease::default() };
        let mut draft = Self {
            given,
            name: name.clone(),
            lease: was.clone().unwrap_or(fresh),
            was,
            writes: Vec::new(),
            wake: Vec::new(),
            then: Vec::new(),
        };
        draft.settle_past();
        Ok(draft)
    }

    pub(in crate::decide) fn now(&self) -> StoreTime {
        self.given.now.store
    }

    /// What store time alone has done.
    fn settle_past(&mut self) {
        let now = self.now();
        if let Some(over) = self.lease.holder.take_if(|holder| holder.until <= now) {
            let late = now.since(over.until);
            self.record(LeaseWhat::Expired, &over.owner, &over.label, Some(over.token), format!("{} ago", Span(late)));
            self.lose(over);
        }
        self.lease.delay.take_if(|delay| delay.until <= now);
        let session = self.given.now.session.0;
        let before = self.lease.line.len();
        self.lease.line.retain(|waiter| {
            let here = matches!(waiter.owner, Owner::Execution(_)) || waiter.session == session;
            here && waiter.until.is_none_or(|until| until > now)
        });
        if self.lease.line.len() < before {
            self.wake.push(Wake::Granted(self.name.clone()));
        }
    }

    /// Whoever had it has lost it: an execution's attempt is ended for that, in the same transaction.
    fn lose(&mut self, over: Holder) {
        let until = self.now().plus(over.terms.delay_ms);
        self.lease.delay = Some(Delay { owner: over.owner.clone(), until }); // one of no length is over at once
        if let Owner::Execution(execution) = over.owner {
            let verb = Verb::Lose(execution, self.name.clone());
            self.then.push(Command { by: Principal::host(), verb });
        }
    }

    /// Whether this owner may have it now.
    pub(in crate::decide) fn is_open_to(&self, owner: &Owner) -> bool {
        let turn = self.lease.line.first().is_none_or(|first| first.owner == *owner);
        // Within a delay it is free only for whoever lost it, past whoever stands in line.
        self.is_free_for(owner) && (turn || self.lease.delay.is_some())
    }

    /// Whether nothing but a line keeps it from this owner.
    fn is_free_for(&self, owner: &Owner) -> bool {
        self.lease.holder.is_none() && self.lease.delay.as_ref().is_none_or(|delay| delay.owner == *owner)
    }

    /// Whether it has this owner's turn.
    pub(in crate::decide) fn is_turn_of(&self, owner: &Owner) -> bool {
        turn(&self.lease) == Some(owner)
    }

    /// Whether an execution that has its turn elsewhere may have it: it passes executions that wait for their
    /// own turn. If each let the other pass, none of them would ever begin.
    pub(in crate::decide) fn is_open_in_passing(&self, owner: &Owner) -> bool {
        let first = self.lease.line.first();
        self.is_free_for(owner) && first.is_none_or(|first| matches!(first.owner, Owner::Execution(_)))
    }

    /// Whether this owner has it, under this grant if one is named.
    pub(in crate::decide) fn is_held_by(&self, owner: &Owner, token: Option<u64>) -> bool {
        let held = self.lease.holder.as_ref().filter(|holder| holder.owner == *owner);
        held.is_some_and(|holder| token.is_none_or(|token| token == holder.token.get()))
    }

    /// The grant there is.
    pub(in crate::decide) fn holder(&self) -> Option<&Holder> {
        self.lease.holder.as_ref()
    }

    /// A new grant, with a token above every earlier one.
    pub(in crate::decide) fn grant(&mut self, owner: Owner, label: &str, terms: Terms) -> FencingToken {
        // Nothing refuses below this line: the caller has asked `is_open_to`.
        let now = self.given.now;
        let token = FencingToken::mint(now.seq);
        let last = self.was.as_ref().and_then(|was| was.holder.as_ref()).map(|holder| holder.token);
        debug_assert!(theorems::token_never_falls(last, token));
        debug_assert!(self.lease.holder.is_none());
        let hold_until = now.store.plus(terms.hold_ms);
        self.lease.line.retain(|waiter| waiter.owner != owner);
        self.lease.delay = None;
        self.lease.contended = 0;
        self.lease.granted = Some(token);
        self.record(LeaseWhat::Acquired, &owner, label, Some(token), format!("for {}", Span(terms.ttl_ms)));
        self.lease.holder = Some(Holder {
            owner,
            label: label.to_owned(),
            token,
            since: now.wall,
            renewed: now.wall,
            until: now.store,
            hold_until,
            terms,
        });
        self.renew(None);
        self.wake.push(Wake::Granted(self.name.clone()));
        token
    }

    /// Renews what is held: at least its time to live from now on, at most its bound in all.
    pub(in crate::decide) fn renew(&mut self, ttl_ms: Option<u64>) {
        let now = self.given.now;
        if let Some(holder) = self.lease.holder.as_mut() {
            holder.terms.ttl_ms = ttl_ms.unwrap_or(holder.terms.ttl_ms);
            holder.until = now.store.plus(holder.terms.ttl_ms).min(holder.hold_until);
            holder.renewed = now.wall;
        }
    }

    /// The same on request, which is on record.
    pub(in crate::decide) fn extend(&mut self, ttl_ms: Option<u64>) {
        self.renew(ttl_ms);
        if let Some(holder) = self.lease.holder.clone() {
            let note = format!("for {}", Span(holder.until.since(self.now())));
            self.record(LeaseWhat::Extended, &holder.owner, &holder.label, Some(holder.token), note);
        }
    }

    /// Holds it without renewals until then, at most up to its bound: while nothing runs that could renew it.
    pub(in crate::decide) fn stretch(&mut self, until: Option<StoreTime>) {
        if let Some(holder) = self.lease.holder.as_mut() {
            let until = until.map_or(holder.hold_until, |until| until.plus(holder.terms.ttl_ms));
            holder.until = holder.until.max(until.min(holder.hold_until));
        }
    }

    /// Free at once.
    pub(in crate::decide) fn release(&mut self, note: &str) {
        if let Some(holder) = self.lease.holder.take() {
            self.record(LeaseWhat::Released, &holder.owner, &holder.label, Some(holder.token), note.to_owned());
        }
    }

    /// Puts an owner at the end of the line, or leaves it where it stands. False if there is no room.
    pub(in crate::decide) fn stand_in_line(&mut self, waiter: Waiter) -> bool {
        let stands = self.before(&waiter.owner).is_some();
        let room = self.lease.line.len() < LEASE_LINE_MAX;
        if room && !stands {
            self.lease.line.push(waiter);
        }
        room || stands
    }

    /// Hands a lease that is free to whoever is first in line: a client has it at once, an execution has its turn.
    pub(super) fn hand_on(&mut self) {
        let Some(first) = turn(&self.lease).and_then(|_| self.lease.line.first()).cloned() else { return };
        match first.owner {
            Owner::Grant(_) => drop(self.grant(first.owner, &first.label, first.terms)),
            Owner::Execution(execution) => {
                let verb = Verb::Turn(execution, self.name.clone());
                self.then.push(Command { by: Principal::host(), verb });
            }
        }
    }

    /// How many are before an owner in line.
    pub(in crate::decide) fn before(&self, owner: &Owner) -> Option<usize> {
        self.lease.line.iter().position(|waiter| waiter.owner == *owner)
    }

    /// Out of the line.
    pub(in crate::decide) fn leave(&mut self, owner: &Owner) {
        if self.before(owner).is_some() {
            self.lease.line.retain(|waiter| waiter.owner != *owner);
            self.wake.push(Wake::Granted(self.name.clone()));
        }
    }

    /// Somebody else has it, or is next: who, since when, until when, and when to ask again.
    pub(in crate::decide) fn busy(&mut self, asker: &Owner, label: &str) -> Rejection {
        let (got, until, detail) = match (&self.lease.holder, &self.lease.delay) {
            (Some(holder), _) => {
                let owner = holder.owner.shown(&holder.label);
                let left = holder.until.since(self.now());
                let held = self.given.now.wall.since(holder.since);
                let got =
                    format!("held by {owner} for {}, at least {} more unless it is given back", Span(held), Span(left));
                let detail = json!({
                    "owner": owner,
                    "token": holder.token.get(),
                    "since_ms": holder.since.0,
                    "renewed_ms": holder.renewed.0,
                    "left_ms": left,
                    "in_line": self.lease.line.len(),
                });
                (got, left, detail)
            }
            (None, Some(delay)) => {
                let left = delay.until.since(self.now());
                let got = format!("lost by its owner, who alone may take it again for {}", Span(left));
                (got, left, json!({ "delay_ms": left, "in_line": self.lease.line.len() }))
            }
            (None, None) => {
                let got = format!("{} in line for it", self.lease.line.len());
                (got, BUSY_RETRY_MS, json!({ "in_line": self.lease.line.len() }))
            }
        };
        self.lease.contended = self.lease.contended.saturating_add(1);
        if self.lease.contended <= FACTS_MAX {
            self.record(LeaseWhat::Contended, asker, label, None, got.clone());
        }
        let refused = Rejection::new(Code::Busy, format!("lease {}", self.name), "a free lease", got);
        refused.retry_after(until.clamp(BUSY_RETRY_MS, 60_000)).with_detail(detail)
    }

    /// Somebody acts on it who does not have it, or not any more. That is on record.
    pub(in crate::decide) fn fenced(&mut self, owner: &Owner, label: &str, token: u64) -> Rejection {
        let expected = match &self.lease.holder {
            Some(holder) => format!("token {} of {}", holder.token, holder.owner.shown(&holder.label)),
            None => "no grant: the lease is free".to_owned(),
        };
        let got = format!("token {token} of {}", owner.shown(label));
        let refused = Rejection::new(Code::Fenced, format!("lease {}", self.name), expected, got);
        self.lease.contended = self.lease.contended.saturating_add(1);
        if self.lease.contended <= FACTS_MAX {
            let text = format!("expected {}, got {}", refused.expected, refused.got);
            self.record(LeaseWhat::Fenced, owner, label, None, text);
        }
        refused
    }

    fn record(
        &mut self,
        what: LeaseWhat,
        owner: &Owner,
        label: &str,
        token: Option<FencingToken>,
        note: impl Into<String>,
    ) {
        self.enter(what, owner.shown(label), token, note.into());
    }

    /// One more entry of what became of it.
    pub(super) fn enter(&mut self, what: LeaseWhat, owner: String, token: Option<FencingToken>, note: String) {
        let number = self.lease.last.saturating_add(1);
        self.lease.last = number;
        let entry = LeaseEntry {
            number,
            what,
            owner,
            token,
            note: cut(&note),
            by: self.given.by.clone(),
            wall: self.given.now.wall,
            store: self.now(),
        };
        self.writes.push((Key::LeaseEntry(self.name.clone(), number), Some(Record::LeaseEntry(Box::new(entry)))));
        while number.saturating_sub(self.lease.first) >= LEASE_ENTRIES_MAX {
            self.writes.push((Key::LeaseEntry(self.name.clone(), self.lease.first), None));
            self.lease.first = self.lease.first.saturating_add(1);
        }
    }

    /// When store time alone will do something to it.
    fn needed(&self) -> StoreTime {
        let now = self.now();
        let patience = self.lease.line.iter().filter_map(|waiter| waiter.until).min();
        let next = match (&self.lease.holder, &self.lease.delay) {
            (Some(holder), _) => holder.until,
            (None, Some(delay)) => delay.until,
            (None, None) if self.lease.line.is_empty() => now.plus(LEASE_KEPT_MS),
            (None, None) => now.plus(BUSY_RETRY_MS), // whoever is first has been told; told again if that is lost
        };
        patience.map_or(next, |patience| patience.min(next))
    }

    /// Whether its time as one that nobody has or wants is over.
    pub(in crate::decide) fn is_forgotten(&self) -> bool {
        // It was so already, as it still is then: who stood in line until now is yet to be told, and it is kept from now on.
        self.was.as_ref().is_some_and(|was| is_idle(was) && was.due.is_some_and(|due| due <= self.now()))
    }

    /// Away with its record and what became of it.
    pub(in crate::decide) fn forget(mut self, decision: &mut Decision) {
        for number in self.lease.first..=self.lease.last {
            self.writes.push((Key::LeaseEntry(self.name.clone(), number), None));
        }
        if let Some(due) = self.was.as_ref().and_then(|was| was.due) {
            self.writes.push((Key::Lapse(due, self.name.clone()), None));
        }
        self.writes.push((Key::Lease(self.name.clone()), None));
        decision.writes.append(&mut self.writes);
    }

    /// The writes: entries, record, index.
    pub(in crate::decide) fn finish(mut self, decision: &mut Decision) {
        // Told once: whose turn it was before has been told.
        if turn(&self.lease) != self.was.as_ref().and_then(turn) {
            self.hand_on();
        }
        let old = self.was.as_ref().and_then(|was| was.due);
        let same = self.was.as_ref() == Some(&self.lease) && old.is_some_and(|due| due > self.now());
        let unknown = self.lease.last == 0;
        if same || unknown {
            return; // only looked at
        }
        debug_assert_eq!(theorems::lease(self.was.as_ref(), &self.lease), Vec::<&str>::new(), "{}", self.name);
        let needed = self.needed();
        // The entry is used up when it comes up, and rewritten before that only when it gets earlier, or when the
        // lease comes to be idle: from then on it is kept for its whole time.
        let rests = is_idle(&self.lease) && !self.was.as_ref().is_some_and(is_idle);
        let due = match old {
            Some(old) if old > self.now() && old <= needed && !rests => old,
            _ => needed,
        };
        self.lease.due = Some(due);
        if old != Some(due) {
            self.writes.extend(old.map(|old| (Key::Lapse(old, self.name.clone()), None)));
            self.writes.push((Key::Lapse(due, self.name.clone()), Some(Record::Mark)));
            self.wake.push(Wake::Lapse(due));
        }
        self.writes.push((Key::Lease(self.name.clone()), Some(Record::Lease(Box::new(self.lease)))));
        decision.writes.append(&mut self.writes);
        decision.wake.append(&mut self.wake);
        decision.then.append(&mut self.then);
    }
}

/// Whose turn it is: first in line for what nobody has and nobody alone may take again. Whoever may does not stand in
/// line for it.
fn turn(lease: &Lease) -> Option<&Owner> {
    let first = lease.line.first().map(|waiter| &waiter.owner)?;
    (lease.holder.is_none() && lease.delay.is_none()).then_some(first)
}

/// Nobody has it or wants it.
fn is_idle(lease: &Lease) -> bool {
    lease.holder.is_none() && lease.delay.is_none() && lease.line.is_empty()
}
