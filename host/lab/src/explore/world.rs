//! One host in the middle of a search: what can happen to it, and where it stands.

use super::choice::Choice;
use super::recall::Recall;
use super::{Does, Plan};
use crate::TableRows;
use crate::hand::{Asked, Held, Seen, Told};
use crate::lab::{Fault, Lab, LabError};
use crate::receiver::{Pending, Reply};
use crate::scenario::{Ask, Clients, Request, Stage};
use crate::story::{Story, of_call, of_fault, of_seen};
use interlock_coordinator::{Awaited, Coming, EffectView, EntityView, LeaseView, SubmitError};
use interlock_kernel::command::{Change, LeaseAsk, Outcome};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{Principal, RowKey};
use interlock_kernel::record::{AnswerKind, Claimant, Owner, Stands, Terms};
use interlock_kernel::rows::{RowAnswer, RowShown};
use interlock_kernel::time::{Span, StoreTime};
use interlock_kernel::view::{LeaseClaim, Start};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A lab and what was done to it so far.
pub(super) struct World<'p> {
    plan: &'p Plan<'p>,
    pub(super) lab: Lab,
    /// Clients' acts that have arrived, and the last answer to each.
    pub(super) arrived: Vec<Option<Result<Outcome, SubmitError>>>,
    clients: Clients,
    /// What each attempt that is not over has seen so far, as one digest.
    locals: BTreeMap<usize, Digest>,
    /// What happened, if somebody wants to be told.
    pub(super) story: Option<Story>,
}

impl<'p> World<'p> {
    /// A new host, brought to where these choices lead; those that cannot be taken are left out.
    pub(super) fn reach(plan: &'p Plan<'p>, recall: &Recall, path: &[Choice]) -> Result<Self, LabError> {
        loop {
            let mut world = Self::new(plan, recall, None)?;
            for choice in path {
                world.take(*choice)?;
            }
            if !recall.missed() {
                return Ok(world);
            }
        }
    }

    /// A new host with everything given.
    pub(super) fn new(plan: &'p Plan<'p>, recall: &Recall, story: Option<Story>) -> Result<Self, LabError> {
        let stage = Stage { executor: Arc::new(recall.clone()), ..plan.stage.clone() };
        let arrived = vec![None; plan.acts.len()];
        let mut world = Self {
            plan,
            lab: stage.filled(&plan.scenario.filled)?,
            arrived,
            clients: Clients::default(),
            locals: BTreeMap::new(),
            story,
        };
        for given in &plan.scenario.given {
            let made = world.lab.submit(Principal::local(), given.verb());
            made.map_err(|why| LabError::Boot(format!("{} was not made: {why}", given.entity)))?;
        }
        for (_, deed) in &plan.scenario.held {
            let made = world.clients.act(&mut world.lab, deed);
            made.map_err(|why| LabError::Boot(format!("{} was not given: {why}", deed.lease)))?;
        }
        world.lab.hold_requests();
        for replies in &plan.scenario.replies {
            world.lab.reply(replies.target.as_str(), replies.reply.clone(), replies.times);
        }
        world.look()?;
        Ok(world)
    }

    /// Everything that can happen now, the most ordinary first; faults only if `faults` are left.
    pub(super) fn enabled(&self, leases: &[LeaseView], coming: &[Coming], faults: bool) -> Vec<Choice> {
        let held = self.held();
        let mut choices: Vec<_> = held.iter().map(|(entity, nth, _)| Choice::Go(*entity, *nth)).collect();
        // Three of a client's acts may overtake one another: as many as are under way at a time.
        let first = self.arrived.iter().position(Option::is_none).unwrap_or(self.arrived.len());
        let window = first..self.arrived.len().min(first.saturating_add(super::TOGETHER_MAX));
        choices.extend(window.filter(|act| self.arrived.get(*act).is_some_and(Option::is_none)).map(Choice::Act));
        let pending = self.pending();
        choices.extend(pending.iter().map(|(entity, nth, _)| Choice::Reply(*entity, *nth)));
        let slow = Self::is_fault(Choice::Tick, coming);
        // An answer comes within no time, or not at all.
        if !coming.is_empty() && !slow && pending.is_empty() {
            choices.push(Choice::Tick);
        }
        if !faults {
            return choices;
        }
        if !held.is_empty() || !coming.is_empty() || !pending.is_empty() {
            choices.push(Choice::Crash);
        }
        for (entity, nth, request) in &pending {
            if self.lab.next_reply(request.target.as_str()).is_an_answer() {
                choices.push(Choice::ReplyLost(*entity, *nth));
                choices.push(Choice::ReplyUnheard(*entity, *nth));
            }
            choices.push(Choice::Silence(*entity, *nth));
        }
        let acts = self.arrived.iter().zip(&self.plan.acts).enumerate();
        let again = acts.filter(|(_, (answer, act))| answer.is_some() && act.is_event());
        choices.extend(again.map(|(act, _)| Choice::Again(act)));
        for (entity, nth, held) in &held {
            if held.asked.is_write() {
                choices.push(Choice::CrashBehind(*entity, *nth));
                choices.push(Choice::Unavailable(*entity, *nth));
                choices.push(Choice::AnswerLost(*entity, *nth));
                choices.push(Choice::WriteLost(*entity, *nth));
            }
            if has_lease(held, leases) {
                choices.push(Choice::LeaseLost(*entity, *nth));
            }
        }
        if slow && pending.is_empty() {
            choices.push(Choice::Tick);
        }
        if coming.iter().any(|coming| matches!(coming.what, Awaited::Timer(_))) {
            choices.push(Choice::Down);
        }
        choices
    }

    /// Whether a choice is something that goes wrong.
    pub(super) fn is_fault(choice: Choice, coming: &[Coming]) -> bool {
        match choice {
            Choice::Go(..) | Choice::Reply(..) | Choice::Act(_) => false,
            // A step that is slower than its own deadline.
            Choice::Tick => coming
                .first()
                .is_some_and(|next| matches!(next.what, Awaited::AttemptDeadline(_) | Awaited::AttemptLapse(_))),
            _ => true,
        }
    }

    /// Held calls by entity and number.
    fn held(&self) -> Vec<(usize, usize, Held)> {
        let mut counts = BTreeMap::new();
        let mut held = Vec::new();
        for call in self.lab.held() {
            if let Some(entity) = self.plan.entities.iter().position(|entity| *entity == call.entity) {
                let nth = counts.entry(entity).or_insert(0_usize);
                held.push((entity, *nth, call));
                *nth = nth.saturating_add(1);
            }
        }
        held.sort_by_key(|(entity, nth, _)| (*entity, *nth));
        held
    }

    /// Requests that wait for a reply, by entity and number.
    fn pending(&self) -> Vec<(usize, usize, Pending)> {
        let mut found = Vec::new();
        for (entity, id) in self.plan.entities.iter().enumerate() {
            let of_one = self.lab.pending().into_iter().filter(|request| request.entity == *id);
            found.extend(of_one.enumerate().map(|(nth, request)| (entity, nth, request)));
        }
        found
    }

    /// Something becomes of a request.
    fn reply(&mut self, entity: usize, nth: usize, what: Choice) -> Result<bool, LabError> {
        let found = self.pending().into_iter().find(|one| (one.0, one.1) == (entity, nth));
        let Some((.., request)) = found else { return Ok(false) };
        match what {
            Choice::ReplyLost(..) => {
                let reply = self.lab.next_reply(request.target.as_str()).lost();
                self.lab.settle_request(&request.key, Some(reply))
            }
            Choice::ReplyUnheard(..) => {
                let words =
                    format!("killed before it hears of effect {} on {}; boots again", request.number, request.target);
                self.host(&words);
                self.lab.crash_behind_request(&request.key).map(|()| true)
            }
            Choice::Silence(..) => self.lab.settle_request(&request.key, Some(Reply::Hang)),
            _ => self.lab.settle_request(&request.key, None),
        }
    }

    /// Takes a choice; false, and nothing happened, if it cannot be taken now.
    pub(super) fn take(&mut self, choice: Choice) -> Result<bool, LabError> {
        let taken = match choice {
            Choice::Go(entity, nth) => match self.call(entity, nth) {
                Some(held) => self.lab.let_go(held.place).map(|()| true),
                None => Ok(false),
            },
            Choice::Unavailable(entity, nth) => self.fault(entity, nth, Fault::Unavailable),
            Choice::AnswerLost(entity, nth) => self.fault(entity, nth, Fault::Unknown { kept: true }),
            Choice::WriteLost(entity, nth) => self.fault(entity, nth, Fault::Unknown { kept: false }),
            Choice::LeaseLost(entity, nth) => self.fault(entity, nth, Fault::LeaseLost),
            Choice::CrashBehind(entity, nth) => self.fault(entity, nth, Fault::CrashBehind),
            Choice::Reply(entity, nth)
            | Choice::ReplyLost(entity, nth)
            | Choice::ReplyUnheard(entity, nth)
            | Choice::Silence(entity, nth) => self.reply(entity, nth, choice),
            Choice::Act(act) if self.arrived.get(act).is_some_and(Option::is_none) => self.arrive(act),
            Choice::Again(act) if self.arrived.get(act).is_some_and(Option::is_some) => {
                let what =
                    if self.plan.acts.get(act).is_some_and(|act| act.ask().is_some()) { "event" } else { "request" };
                self.host(&format!("the same {what} is delivered once more"));
                self.arrive(act)
            }
            Choice::Act(_) | Choice::Again(_) => Ok(false),
            Choice::Tick => self.lab.tick().map(|next| next.is_some()),
            Choice::Crash => {
                self.host(&format!("killed{}; boots again", self.before()));
                self.lab.kill();
                self.lab.boot().map(|()| true)
            }
            Choice::Down => self.down(),
        }?;
        self.look()?;
        Ok(taken)
    }

    fn call(&self, entity: usize, nth: usize) -> Option<Held> {
        self.held().into_iter().find(|held| (held.0, held.1) == (entity, nth)).map(|held| held.2)
    }

    /// Which calls it is before, in words.
    fn before(&self) -> String {
        let calls: Vec<_> = self.lab.held().iter().map(of_call).collect();
        if calls.is_empty() { String::new() } else { format!(" before {}", calls.join(" and ")) }
    }

    fn host(&mut self, what: &str) {
        let at_ms = self.lab.passed_ms();
        if let Some(story) = &mut self.story {
            story.host(at_ms, what);
        }
    }

    fn fault(&mut self, entity: usize, nth: usize, fault: Fault) -> Result<bool, LabError> {
        let Some(held) = self.call(entity, nth) else { return Ok(false) };
        self.host(&of_fault(fault, &held));
        self.lab.fault(held.place, fault).map(|()| true)
    }

    fn arrive(&mut self, act: usize) -> Result<bool, LabError> {
        match self.plan.acts.get(act) {
            None => return Ok(false),
            Some(Does::Ask(ask)) => self.ask(act, ask)?,
            Some(Does::Lease(deed)) => {
                let at_ms = self.lab.passed_ms();
                let answer = self.clients.act(&mut self.lab, deed);
                if let Some(story) = &mut self.story {
                    story.leased(at_ms, deed, &answer);
                }
                self.heard(act, answer);
            }
            Some(Does::Rows(asking)) => {
                let at_ms = self.lab.passed_ms();
                let answer = self.lab.rows(asking.ask.clone());
                if let Some(story) = &mut self.story {
                    story.rowed(at_ms, asking, &answer);
                }
                self.heard(act, answer);
            }
        }
        Ok(true)
    }

    fn heard(&mut self, act: usize, answer: Result<Outcome, SubmitError>) {
        if let Some(slot) = self.arrived.get_mut(act) {
            *slot = Some(answer);
        }
    }

    fn ask(&mut self, act: usize, ask: &Ask) -> Result<(), LabError> {
        let (request, entity) = (&ask.request, &ask.entity);
        let generation = match request {
            Request::Apply { .. } => {
                let view = self.lab.read(|host| async move { host.entity(entity).await })?;
                view.map_or(0, |view| view.head.generation)
            }
            _ => 0,
        };
        let at_ms = self.lab.passed_ms();
        let answer = self.lab.submit(Principal::local(), request.verb(entity, generation));
        if let Some(story) = &mut self.story {
            story.asked(at_ms, entity, request, &answer);
        }
        self.heard(act, answer);
        Ok(())
    }

    fn down(&mut self) -> Result<bool, LabError> {
        let timers = self.lab.coming()?;
        let Some(timer) = timers.into_iter().find(|next| matches!(next.what, Awaited::Timer(_))) else {
            return Ok(false);
        };
        let in_ms = timer.in_ms.max(1);
        self.host(&format!("killed{}; boots again after {}", self.before(), Span(in_ms)));
        self.lab.kill();
        self.lab.advance(in_ms, &mut |_| crate::lab::Turn::Wait)?;
        self.lab.boot().map(|()| true)
    }

    /// Takes in what attempts did, and tells it.
    fn look(&mut self) -> Result<(), LabError> {
        let at_ms = self.lab.passed_ms();
        for seen in self.lab.take_seen() {
            match &seen {
                Seen::Began { place, start } => {
                    self.locals.insert(*place, Digest::of(&[began(start).as_bytes()]));
                }
                Seen::Told { held, told } => {
                    let before = self.locals.get(&held.place).map_or([0; 32], |digest| digest.0);
                    self.locals.insert(held.place, Digest::of(&[&before, self::told(told).as_bytes()]));
                }
                Seen::Over { place, .. } => {
                    self.locals.remove(place);
                }
            }
            if let Some(story) = &mut self.story
                && let Some((who, what, more)) = of_seen(&seen)
            {
                story.line(at_ms, &who, &what, more);
            }
        }
        if self.lab.held().is_empty() {
            // Also those of a host that was killed: places begin anew with each.
            self.locals.clear();
        }
        if let Some(story) = &mut self.story {
            story.follow(&mut self.lab, &self.plan.entities)?;
        }
        Ok(())
    }

    /// The entities as they stand.
    pub(super) fn views(&self) -> Result<Vec<Option<EntityView>>, LabError> {
        let ids = self.plan.entities.clone();
        let views = self.lab.read(|host| async move {
            let mut views = Vec::new();
            for id in &ids {
                views.push(host.entity(id).await?);
            }
            Ok(views)
        });
        Ok(views?)
    }

    /// The leases as they stand; none are read where there can be none.
    pub(super) fn leases(&self) -> Result<Vec<LeaseView>, LabError> {
        if self.plan.leased { Ok(self.lab.leases()?) } else { Ok(Vec::new()) }
    }

    /// The tables with their rows; none are read where there are none.
    pub(super) fn tables(&self) -> Result<Vec<TableRows>, LabError> {
        if self.plan.tabled { self.lab.tables() } else { Ok(Vec::new()) }
    }

    /// Names what can follow from here: two worlds with the same key have the same futures. Numbers that
    /// only grow (versions, tokens, executions) and moments are left out; what is left of each wait is in.
    pub(super) fn key(
        &self,
        views: &[Option<EntityView>],
        leases: &[LeaseView],
        tables: &[TableRows],
        coming: &[Coming],
    ) -> Result<Digest, LabError> {
        let mut text = String::new();
        let now = self.lab.wall_ms();
        if self.plan.dated {
            let _ = write!(text, "{now};");
        }
        for view in views {
            match view {
                Some(view) => stands(&mut text, view, now),
                None => text.push_str("none;"),
            }
        }
        if !self.plan.stage.manifest.machine.targets.is_empty() {
            self.outboxes(&mut text)?;
        }
        for lease in leases {
            held(&mut text, lease, views);
        }
        let store_ms = self.lab.read(|host| async move { Ok(host.now().store_ms) })?;
        for table in tables {
            stock(&mut text, table, views, store_ms);
        }
        if self.plan.tabled {
            self.remembered(&mut text)?;
        }
        for (act, answer) in self.plan.acts.iter().zip(&self.arrived) {
            let _ = write!(text, "|{}", answer.is_some());
            // What a client would be answered again.
            if let (Does::Rows(_), Some(Ok(Outcome::Rows { answers, .. }))) = (act, answer) {
                let _ = write!(text, " {}", rows(answers));
            }
            let Some(ask) = act.ask() else { continue };
            if let Request::Send { id, .. } = &ask.request {
                let entity = &ask.entity;
                let known = self.lab.read(|host| async move { host.answer(entity, id).await })?;
                let _ = write!(text, "{:?}", known.map(|known| known.answer.kind));
            }
        }
        for next in coming {
            let _ = write!(text, "|{} {:?} {:?}", next.in_ms, next.entity, next.what);
        }
        for (entity, nth, held) in self.held() {
            let local = self.locals.get(&held.place).map(|digest| digest.0);
            let _ = write!(text, "|{entity} {nth} {} {} {local:?}", held.nth, asked(&held.asked, leases));
        }
        Ok(Digest::of(&[text.as_bytes()]))
    }

    /// What is to be requested yet, and what receivers know.
    fn outboxes(&self, text: &mut String) -> Result<(), LabError> {
        for entity in &self.plan.entities {
            let effects = self.lab.read(|host| async move { host.effects_of(entity).await })?;
            let now =
                self.lab.read(|host| async move { Ok(host.entity(entity).await?.map_or(0, |view| view.store_ms)) })?;
            for EffectView { number, effect, outstanding, .. } in effects {
                let stands = match &effect.stands {
                    Stands::Due(at) => format!("due {}", at.0.saturating_sub(now)),
                    Stands::InFlight(_) => "in flight".to_owned(),
                    other => format!("{other:?}"),
                };
                let body = effect.body.as_ref().map(|body| body.text());
                let _ = write!(
                    text,
                    "|effect {number} {} {} {body:?} {stands} {} {} {outstanding}",
                    effect.target, effect.url, effect.tries, effect.maybe_sent
                );
            }
        }
        let _ = write!(text, "|{}", self.lab.receivers_know());
        Ok(())
    }

    /// What steps that ask again are answered.
    fn remembered(&self, text: &mut String) -> Result<(), LabError> {
        for entity in &self.plan.entities {
            for (name, memo) in self.lab.read(|host| async move { host.memos_of(entity).await })? {
                let claims: Vec<Vec<&RowKey>> =
                    memo.claims.iter().map(|claim| claim.rows.iter().map(|(key, _)| key).collect()).collect();
                let _ = write!(text, "|memo {:?} {} {claims:?}", name.0, rows(&memo.answers));
            }
        }
        Ok(())
    }

    /// Whether an answer says that an event was taken or is to be.
    pub(super) fn was_taken(answer: &Result<Outcome, SubmitError>) -> bool {
        let takes = |kind| matches!(kind, AnswerKind::Accepted | AnswerKind::Queued);
        matches!(answer, Ok(Outcome::Answered { answer, .. }) if takes(answer.kind))
    }
}

fn stands(text: &mut String, view: &EntityView, wall_ms: i64) {
    let head = &view.head;
    let behind = head.generation.saturating_sub(head.observed);
    let _ = write!(text, "{} r{} behind {behind} {:?}", head.state, head.revision, head.cause.kind);
    let _ = write!(text, " {} {:?}", head.cause.name, head.cause.id);
    if let Some(lock) = &head.lock {
        let _ = write!(
            text,
            " lock {} {} {} {} {} {} {:?}",
            lock.started_by,
            lock.chain,
            lock.saves,
            lock.attempts,
            lock.failed,
            lock.lost,
            lock.attempt.map(|open| open.ordinal)
        );
        for until in [lock.retry, lock.limit].into_iter().flatten() {
            let _ = write!(text, " until {}", until.0.saturating_sub(view.store_ms));
        }
    }
    for timer in &head.timers {
        let _ = write!(text, " timer {} {}", timer.name, timer.due.0.saturating_sub(wall_ms));
    }
    if let Some(deadline) = head.deadline {
        let _ = write!(text, " deadline {}", deadline.0.saturating_sub(view.store_ms));
    }
    let _ = write!(text, " leases {:?} {:?}", head.leases, head.awaits);
    let _ = write!(text, " park {:?}", head.park.as_ref().map(|park| &park.code));
    let _ = write!(text, " last {:?}", head.last.as_ref().map(|last| (last.succeeded, last.state.as_str())));
    for queued in &view.inbox {
        let _ = write!(text, " inbox {} {:?}", queued.name, queued.payload.as_ref().map(|doc| doc.text()));
    }
    let documents = [&view.documents.desired, &view.documents.data, &view.documents.outputs];
    for document in documents {
        let _ = write!(text, " {:?}", document.as_ref().map(|doc| doc.text()));
    }
    for condition in &view.conditions {
        let _ = write!(text, " {} {} {}", condition.kind, condition.status, condition.reason);
    }
    text.push(';');
}

/// A lease, without its token: that one is never the same, and what hangs on it is whether it is the last one.
fn held(text: &mut String, view: &LeaseView, views: &[Option<EntityView>]) {
    let left = |until: StoreTime| until.since(view.at);
    let _ = write!(text, "|lease {}", view.name);
    if let Some(holder) = view.lease.held(view.at) {
        let _ = write!(text, " held {} {}", owner(&holder.owner, views), terms(holder.terms));
        let _ = write!(text, " {} {}", left(holder.until), left(holder.hold_until));
    }
    if let Some(delay) = view.lease.delay.as_ref().filter(|delay| delay.until > view.at) {
        let _ = write!(text, " delay {} {}", owner(&delay.owner, views), left(delay.until));
    }
    for waiter in &view.lease.line {
        let patience = waiter.until.map(left);
        let _ = write!(text, " waits {} {} {patience:?}", owner(&waiter.owner, views), terms(waiter.terms));
    }
}

/// A table: its rows in the order of their insertion, without the numbers and moments that differ between equal
/// worlds. Which was changed before which is in it, and what time has yet to do.
fn stock(text: &mut String, table: &TableRows, views: &[Option<EntityView>], store_ms: u64) {
    let mut rows: Vec<_> = table.rows.iter().collect();
    let mut changed: Vec<_> = rows.iter().map(|(_, row)| row.updated).collect();
    changed.sort();
    rows.sort_by_key(|(_, row)| row.created);
    let _ = write!(text, "|table {}", table.name);
    for (key, row) in rows {
        let turn = changed.iter().position(|place| *place == row.updated);
        let left = |at: Option<StoreTime>| at.map(|at| at.0.saturating_sub(store_ms));
        let _ = write!(text, " {key} {} {turn:?} {} {:?} {:?}", row.value, row.claims, left(row.until), left(row.due));
        if let Some(claim) = &row.claim {
            let _ = write!(text, " {} {}", claimant(&claim.by, views), claim.back);
        }
    }
}

/// Who has claimed a row: an execution by its entity, and whether it is the one that has it now.
fn claimant(by: &Claimant, views: &[Option<EntityView>]) -> String {
    match by {
        Claimant::Client(label) => format!("client {label}"),
        Claimant::Execution(execution) => owner(&Owner::Execution(execution.clone()), views),
    }
}

fn terms(Terms { ttl_ms, hold_ms, delay_ms }: Terms) -> String {
    format!("{ttl_ms} {hold_ms} {delay_ms}")
}

/// An execution by its entity, and whether it is the one that has it now.
fn owner(owner: &Owner, views: &[Option<EntityView>]) -> String {
    match owner {
        Owner::Grant(by) => format!("client {by}"),
        Owner::Execution(execution) => {
            let current = views.iter().flatten().any(|view| view.head.locked_by(&view.id).as_ref() == Some(execution));
            format!("{} {current}", execution.entity)
        }
    }
}

/// Whether the execution that makes a call has a lease.
fn has_lease(held: &Held, leases: &[LeaseView]) -> bool {
    leases.iter().any(|view| {
        let owner = view.lease.held(view.at).map(|holder| &holder.owner);
        matches!(owner, Some(Owner::Execution(execution)) if execution.entity == held.entity)
    })
}

fn began(start: &Start) -> String {
    let documents = [&start.documents.desired, &start.documents.data, &start.documents.outputs, &start.payload];
    let documents = documents.map(|document| document.as_ref().map(|doc| doc.text().to_owned()));
    format!(
        "{} {} {} {:?} {} {:?} {documents:?}",
        start.claim.execution.entity,
        start.step,
        start.claim.attempt,
        start.cause.kind,
        start.cause.name,
        start.cause.id
    )
}

fn asked(asked: &Asked, leases: &[LeaseView]) -> String {
    let current = |claim: &LeaseClaim| {
        let lease = leases.iter().find(|view| view.name == claim.lease);
        lease.and_then(|view| view.lease.held(view.at)).is_some_and(|holder| holder.token == claim.token)
    };
    match asked {
        Asked::Save(change) => format!("save {}", content(change)),
        Asked::Transition(to, change) => format!("to {to} {}", content(change)),
        Asked::Reload | Asked::LookAgain => "reload".to_owned(),
        Asked::StillHolds => "still-holds".to_owned(),
        Asked::Lease(LeaseAsk::Acquire(lease, ttl_ms)) => format!("acquire {lease} {ttl_ms:?}"),
        Asked::Lease(LeaseAsk::Extend(held, ttl_ms)) => format!("extend {} {ttl_ms:?} {}", held.lease, current(held)),
        Asked::Lease(LeaseAsk::Release(held)) => format!("release {} {}", held.lease, current(held)),
        Asked::StillHoldsLease(held) => format!("still-holds {} {}", held.lease, current(held)),
        Asked::Rows(ask) => format!("rows {ask:?}"),
        Asked::Query(ask) => format!("query {ask:?}"),
    }
}

fn content(change: &Change) -> String {
    format!("{:?} {:?} {:?} {:?}", change.data, change.outputs, change.set, change.stage)
}

/// Answers without the numbers and times that differ between equal worlds.
fn rows(answers: &[RowAnswer]) -> String {
    let one = |answer: &RowAnswer| match answer {
        RowAnswer::Got { key, row: found } => format!("got {key} {:?}", found.as_ref().map(row)),
        RowAnswer::Put { inserted, row: done } => format!("put {inserted} {}", row(done)),
        RowAnswer::Updated { key, row: done, unmatched } => {
            format!("updated {key} {:?} {unmatched:?}", done.as_ref().map(row))
        }
        RowAnswer::Upserted { inserted, row: done } => format!("upserted {inserted} {}", row(done)),
        RowAnswer::Claimed { rows, more, lost } => {
            format!("claimed {:?} {more} {lost:?}", rows.iter().map(row).collect::<Vec<_>>())
        }
        RowAnswer::Deleted { key, deleted, unmatched } => format!("deleted {key} {deleted} {unmatched:?}"),
    };
    answers.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn row(row: &RowShown) -> String {
    format!("{} {} {} {:?}", row.key, row.value, row.claims, row.claimed_by)
}

fn told(told: &Told) -> String {
    match told {
        Told::Written(done) => format!("written {}", rows(&done.rows)),
        Told::Rows(answers, replayed) => format!("rows {} {replayed}", rows(answers)),
        Told::Found(found) => format!("found {:?}", found.rows.iter().map(row).collect::<Vec<_>>()),
        Told::Read(snapshot) => format!("read {} {:?}", snapshot.state, snapshot.documents),
        Told::Holds(holds) => format!("holds {holds}"),
        Told::Leased(held, ttl_ms) => format!("leased {} {ttl_ms}", held.lease),
        Told::Released => "released".to_owned(),
        Told::Refused(error) => match error.rejection() {
            Some(no) => format!("refused {} {}", no.code, no.subject),
            None => "no answer".to_owned(),
        },
    }
}
