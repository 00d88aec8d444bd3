//! Why an entity or a lease stands where it stands: what it waits for, what comes next and when, what an
//! operator can do. From records alone; the words are for people, `because` is for programs.

use super::leases::waiting;
use super::{Clocks, Dispatched, failure, rfc3339};
use crate::api::{AwaitsView, Because, ClaimedRowView, LeaseUntilView, NextView, WaitingFor, WhyView};
use interlock_coordinator::{ClaimedRow, ClaimedRows, EffectView, LeaseView as Found};
use interlock_kernel::ids::{EntityId, Name};
use interlock_kernel::machine::{EFFECT_DONE, EFFECT_FAILED, FailurePath, Machine, State, StateKind};
use interlock_kernel::record::{Head, Lock, Outbox, Owner, Stands};
use interlock_kernel::time::WallTime;

/// An entity, and what a look at it found beside its head.
pub(crate) struct Looked<'a> {
    pub(crate) id: &'a EntityId,
    pub(crate) head: &'a Head,
    pub(crate) machine: &'a Machine,
    pub(crate) clocks: Clocks,
    pub(crate) dispatched: Dispatched,
    /// The lease that its step waits for.
    pub(crate) awaits: Option<&'a Found>,
    /// The leases that it has.
    pub(crate) leases: &'a [Found],
    /// Its effects that are not settled.
    pub(crate) effects: &'a [EffectView],
    /// The rows that it has claimed.
    pub(crate) rows: &'a ClaimedRows,
}

impl Looked<'_> {
    /// Why the entity stands where it stands.
    pub(crate) fn why(&self) -> WhyView {
        let blank = WhyView {
            subject: self.id.to_string(),
            because: Because::Free,
            sentence: String::new(),
            holder: None,
            since: None,
            progress: None,
            failure: None,
            awaits: None,
            leases: Vec::new(),
            rows: self.rows.rows.iter().map(claimed).collect(),
            rows_more: self.rows.more,
            next: self.timers().into_iter().chain(self.sent()).collect(),
            operator: Vec::new(),
            owner: Some(self.machine.owner.clone()),
        };
        match &self.head.lock {
            Some(lock) => self.locked(lock, blank),
            None => self.unlocked(blank),
        }
    }

    fn state(&self) -> Option<&State> {
        self.machine.state(&self.head.state)
    }

    fn unlocked(&self, blank: WhyView) -> WhyView {
        let (id, state) = (self.id, &self.head.state);
        if self.state().is_some_and(|state| state.kind.is_final()) {
            let sentence = format!("it is over: {state} is a final state");
            let operator = vec![format!("interlock entity delete {}", quoted(id))];
            return WhyView { because: Because::Over, sentence, operator, ..blank };
        }
        let sentence = match self.events() {
            events if events.is_empty() => format!("nothing holds it: it rests in {state}"),
            events => format!("nothing holds it: it rests in {state}, and takes {}", events.join(", ")),
        };
        WhyView { sentence, ..blank }
    }

    fn locked(&self, lock: &Lock, blank: WhyView) -> WhyView {
        let (id, head) = (self.id, self.head);
        let (because, sentence) = self.waits(lock);
        let mut next = self.pending(lock);
        next.extend(blank.next);
        next.sort_by(|one, other| one.at.is_none().cmp(&other.at.is_none()).then_with(|| one.at.cmp(&other.at)));
        WhyView {
            because,
            sentence,
            holder: Some(head.execution(id, lock.ordinal).to_string()),
            since: Some(rfc3339(lock.since)),
            progress: Some(rfc3339(lock.progress)),
            failure: lock.failure.as_ref().map(|failed| failure(failed, None)),
            awaits: self.awaited(),
            leases: head.leases.iter().map(|name| self.until(name.as_str())).collect(),
            next,
            operator: self.remedies(because),
            ..blank
        }
    }

    fn waits(&self, lock: &Lock) -> (Because, String) {
        let head = self.head;
        let state = &head.state;
        let step = self.state().and_then(|state| state.step.as_ref()).map(ToString::to_string).unwrap_or_default();
        let attempt = lock.attempt.map(|open| open.ordinal).unwrap_or_default();
        match super::waiting_for(head, lock, self.dispatched) {
            WaitingFor::Operator => {
                let park = head.park.as_ref();
                let why = park.map(|park| format!("{}: {}", park.code, park.reason)).unwrap_or_default();
                (Because::Operator, format!("it is parked in {state}, nothing is tried any more: {why}"))
            }
            WaitingFor::Slot => (Because::Slot, format!("attempt {attempt} of {step} waits for a free place to run")),
            WaitingFor::Memory => {
                let what = format!("attempt {attempt} of {step} waits for memory that other running steps hold");
                (Because::Memory, what)
            }
            WaitingFor::Step => (Because::Step, format!("attempt {attempt} of {step} runs in {state}")),
            WaitingFor::BackOff => {
                let failed = lock.failure.as_ref().map(|failed| format!(", which failed: {}", failed.short()));
                let (last, failed) = (lock.attempts, failed.unwrap_or_default());
                (Because::BackOff, format!("{step} is tried again after attempt {last}{failed}"))
            }
            WaitingFor::Lease => {
                let lease = head.awaits.as_ref().map(ToString::to_string).unwrap_or_default();
                (Because::Lease, format!("{step} does not begin before it has lease {lease}{}", self.place()))
            }
            WaitingFor::Effect => {
                let left = head.outbox.unsettled;
                let left = if left == 1 { "an effect".to_owned() } else { format!("{left} effects, in their order") };
                (Because::Effect, format!("it waits in {state} for what comes of {left}"))
            }
            WaitingFor::Timer => {
                let name = head.timers.iter().min_by_key(|timer| timer.due).map(|timer| timer.name.to_string());
                let also = match self.events() {
                    events if events.is_empty() => String::new(),
                    events => format!(", or an event: {}", events.join(", ")),
                };
                (Because::Timer, format!("it waits in {state} for timer {}{also}", name.unwrap_or_default()))
            }
            WaitingFor::Event => match self.events() {
                events if events.is_empty() && head.deadline.is_none() => {
                    (Because::Operator, format!("it is in {state}, and nothing that is pending could move it"))
                }
                events => (Because::Event, format!("it waits in {state} for an event: {}", events.join(", "))),
            },
        }
    }

    fn events(&self) -> Vec<&str> {
        // Results of effects are none that somebody sends.
        let sent = |name: &&Name| **name != *EFFECT_DONE && **name != *EFFECT_FAILED;
        let names = self.state().into_iter().flat_map(|state| state.on.keys());
        names.filter(sent).map(|name| name.as_str()).collect()
    }

    fn timers(&self) -> Vec<NextView> {
        let then = |name: &Name| {
            let spec = self.state()?.after.iter().find(|spec| spec.name == *name)?;
            Some(spec.then.to.as_ref().map_or(", stays".to_owned(), |to| format!(" -> {to}")))
        };
        let timers = self.head.timers.iter().map(|timer| {
            let rule = timer.rule.as_ref().map(|rule| format!(" ({rule})")).unwrap_or_default();
            let what = format!("timer {}{}{rule}", timer.name, then(&timer.name).unwrap_or_default());
            at(what, timer.due)
        });
        timers.collect()
    }

    /// What is on its way, or will be.
    fn sent(&self) -> impl Iterator<Item = NextView> {
        self.effects.iter().filter_map(|EffectView { number, effect, .. }| {
            let name = format!("effect {number} on {}", effect.target);
            let last = effect.last.as_ref().map(|last| format!(" (last: {last})")).unwrap_or_default();
            match effect.stands {
                Stands::Due(due) => {
                    let nth = effect.tries.saturating_add(1);
                    Some(at(format!("{name}, try {nth}{last}"), self.clocks.wall_of(due)))
                }
                Stands::InFlight(_) => {
                    Some(NextView { what: format!("{name} answers try {}{last}", effect.tries), at: None })
                }
                Stands::Waits | Stands::Dead { .. } => None,
            }
        })
    }

    /// What an operator can do about effects that are given up.
    fn given_up(&self) -> Vec<String> {
        let dead = self.effects.iter().filter(|found| found.effect.is_dead());
        dead.map(|found| format!("interlock effect retry {} {}", quoted(self.id), found.number)).collect()
    }

    /// What store time will do.
    fn pending(&self, lock: &Lock) -> Vec<NextView> {
        let (head, clocks) = (self.head, self.clocks);
        if head.park.is_some() {
            return Vec::new();
        }
        let path = match self.state().map(|state| &state.on_exhausted) {
            Some(FailurePath::To { to, .. }) => format!(" -> {to}"),
            Some(FailurePath::Park) | None => ", parked".to_owned(),
        };
        let attempt = lock.attempts.saturating_add(1);
        let retry = lock.retry.map(|due| at(format!("attempt {attempt} begins"), clocks.wall_of(due)));
        let deadline =
            head.deadline.map(|due| at(format!("the deadline of {}{path}", head.state), clocks.wall_of(due)));
        let limit = lock.limit.map(|due| at("the limit of the execution, parked".to_owned(), clocks.wall_of(due)));
        let freed = self.awaits.and_then(|lease| {
            let held = lease.lease.held(lease.at)?;
            Some(at(format!("lease {} is free, unless it is renewed", lease.name), clocks.wall_of(held.until)))
        });
        [retry, freed, deadline, limit].into_iter().flatten().collect()
    }

    fn mine(&self) -> Option<Owner> {
        self.head.locked_by(self.id).map(Owner::Execution)
    }

    fn awaited(&self) -> Option<AwaitsView> {
        let name = self.head.awaits.as_ref()?;
        let held = self.awaits.and_then(|lease| lease.lease.held(lease.at));
        let mine = self.mine();
        let place =
            self.awaits.and_then(|lease| waiting(lease).position(|waiter| Some(&waiter.owner) == mine.as_ref()));
        Some(AwaitsView {
            lease: name.to_string(),
            place: place.map(|place| place + 1),
            held_by: held.map(|holder| holder.owner.shown(&holder.label)),
            since: held.map(|holder| rfc3339(holder.since)),
            until: held.map(|holder| rfc3339(self.clocks.wall_of(holder.until))),
        })
    }

    fn place(&self) -> String {
        let Some(AwaitsView { place, held_by, .. }) = self.awaited() else { return String::new() };
        let held = held_by.map(|owner| format!(", held by {owner}")).unwrap_or_default();
        let place = place.map(|place| format!(", place {place} in line")).unwrap_or_default();
        format!("{held}{place}")
    }

    fn until(&self, name: &str) -> LeaseUntilView {
        let found = self.leases.iter().find(|lease| lease.name.as_str() == name);
        let mine = self.mine();
        let held = found.and_then(|lease| lease.lease.held(lease.at)).filter(|held| Some(&held.owner) == mine.as_ref());
        let until = held.map(|holder| rfc3339(self.clocks.wall_of(holder.until)));
        LeaseUntilView { lease: name.to_owned(), until }
    }

    /// The commands of an operator, the mildest first.
    fn remedies(&self, because: Because) -> Vec<String> {
        let id = quoted(self.id);
        let rest = |wanted: StateKind| {
            let of_kind = |state: &State| state.kind == wanted;
            let initial = self.machine.states.get(&self.machine.initial).filter(|state| of_kind(state));
            let found = self.machine.states.iter().find(|(_, state)| of_kind(state)).map(|(name, _)| name);
            initial.map(|_| &self.machine.initial).or(found)
        };
        let to = rest(StateKind::Rest).or_else(|| rest(StateKind::Failed));
        // Refused without force while something but an operator can still move it.
        let movable = !self.head.timers.is_empty() || self.head.deadline.is_some() || !self.events().is_empty();
        let force = movable || because != Because::Operator;
        let force = if force { " --force --reason WHY" } else { "" };
        let mut commands = Vec::new();
        commands.extend(self.given_up());
        if self.head.park.is_some() {
            commands.push(format!("interlock entity unpark {id}"));
        }
        let Outbox { unsettled, dead, .. } = self.head.outbox;
        if unsettled > 0 || dead > 0 {
            commands.push(format!("interlock effect list {id}"));
        }
        if because == Because::Lease {
            commands.extend(self.head.awaits.as_ref().map(|lease| format!("interlock why --lease {}", quoted(lease))));
        }
        if matches!(because, Because::Event | Because::Timer) {
            commands.extend(self.events().iter().map(|event| format!("interlock entity send {id} {event}")));
        }
        commands.extend(to.map(|to| format!("interlock entity unlock {id} --to {to}{force}")));
        commands.push(format!("interlock entity kill {id} --reason WHY"));
        commands
    }
}

fn claimed(row: &ClaimedRow) -> ClaimedRowView {
    let ClaimedRow { by, table, key, since } = row;
    let (table, key) = (table.to_string(), key.to_string());
    ClaimedRowView { table, key, claimed_by: by.to_string(), since: rfc3339(*since) }
}

fn at(what: String, time: WallTime) -> NextView {
    NextView { what, at: Some(rfc3339(time)) }
}

/// As a shell takes it.
fn quoted(name: impl ToString) -> String {
    let name = name.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:@%+=,".contains(c);
    if name.chars().all(plain) { name } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// Why a lease stands where it stands.
pub(crate) fn lease(found: &Found, clocks: Clocks) -> WhyView {
    let name = &found.name;
    let held = found.lease.held(found.at);
    let delay = found.lease.delay.as_ref().filter(|delay| delay.until > found.at);
    let line: Vec<_> = waiting(found).collect();
    let (because, sentence) = match (held, delay) {
        (Some(holder), _) => {
            let owner = holder.owner.shown(&holder.label);
            (Because::Held, format!("it is held by {owner}, token {}", holder.token))
        }
        (None, Some(delay)) => {
            let owner = delay.owner.shown("");
            (Because::Delayed, format!("{owner} lost it, and nobody else gets it for a while"))
        }
        (None, None) => (Because::Free, "nobody has it".to_owned()),
    };
    let mut next = Vec::new();
    if let Some(holder) = held {
        next.push(at("it ends, unless it is renewed".to_owned(), clocks.wall_of(holder.until)));
        next.push(at("it ends, however often it is renewed".to_owned(), clocks.wall_of(holder.hold_until)));
    }
    next.extend(delay.map(|delay| at("anybody may take it".to_owned(), clocks.wall_of(delay.until))));
    next.extend(line.iter().enumerate().map(|(place, waiter)| {
        let what = format!("place {} in line: {}", place + 1, waiter.owner.shown(&waiter.label));
        NextView { what, at: None }
    }));
    let operator = match held.map(|holder| &holder.owner) {
        Some(Owner::Execution(id)) => vec![format!("interlock why {}", quoted(id))],
        Some(Owner::Grant(_)) | None => Vec::new(),
    };
    WhyView {
        subject: format!("lease {name}"),
        because,
        sentence,
        holder: held.map(|holder| holder.owner.shown(&holder.label)),
        since: held.map(|holder| rfc3339(holder.since)),
        progress: held.map(|holder| rfc3339(holder.renewed)),
        failure: None,
        awaits: None,
        leases: Vec::new(),
        rows: Vec::new(),
        rows_more: 0,
        next,
        operator,
        owner: None,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_quoted_as_a_shell_takes_them() {
        assert_eq!(quoted("pool/gpu-7@3.1"), "pool/gpu-7@3.1");
        assert_eq!(quoted("pool/it's $HOME"), r"'pool/it'\''s $HOME'");
    }
}
