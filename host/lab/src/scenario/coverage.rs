//! What of a machine scenarios reach: states, moves, guards both ways, refusals, events. Seen in the history
//! of their entities and in the answers to their clients; nothing is counted that did not happen.

use super::{Act, Ask, Request, Scenario};
use crate::hand::{Asked, Seen, Told};
use crate::story::{News, Recorded};
use interlock_coordinator::{EntityView, SubmitError};
use interlock_kernel::command::Outcome;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, EventId, Name};
use interlock_kernel::machine::{
    DESIRED_CHANGED, EFFECT_DONE, EFFECT_FAILED, FailurePath, Machine, Move, OnBusy, State, StateKind,
};
use interlock_kernel::record::{AnswerKind, EffectWhat, Entry, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Filter, Roots, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Something of a machine that a scenario can reach.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// An entity was in this state.
    State(Name),
    /// This way was taken.
    Move(Way),
    /// The guard of this way held, or did not.
    Guard(Way, bool),
    /// An event was refused, or queued, like this.
    Refusal(Name, Refused),
    /// An event was taken.
    Event(Name),
}

/// A way out of a state, or round in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// The state.
    pub from: Name,
    /// What makes it be taken.
    pub by: By,
    /// Its place among those that the same thing may take.
    pub nth: usize,
}

/// What makes a way be taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The state's step asks for it.
    Step,
    /// An event.
    Event(Name),
    /// A timer.
    Timer(Name),
    /// A failure that no retry mends.
    Permanent,
    /// The last failed attempt, or the visit's deadline.
    Exhausted,
}

/// How an event is not taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// An execution holds the lock.
    Busy,
    /// It waits for its turn.
    Queued,
    /// The state does not take it.
    NotAllowed,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "refused busy",
            Self::Queued => "queued",
            Self::NotAllowed => "refused not_allowed",
        })
    }
}

/// What all scenarios of a machine reached together.
#[derive(Clone, Debug)]
pub struct Coverage {
    machine: Machine,
    reached: BTreeSet<Point>,
}

/// One kind of thing: how many there are, how many were reached, which were not.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Row {
    /// `states`, `moves`, `guards`, `refusals`, `events`.
    pub what: &'static str,
    /// Reached.
    pub covered: usize,
    /// In all.
    pub of: usize,
    /// The others, in words.
    pub missing: Vec<String>,
}

impl Coverage {
    /// Of a machine of which nothing was reached yet.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        Self { machine: machine.clone(), reached: BTreeSet::new() }
    }

    /// Adds what a scenario reached.
    pub fn add(&mut self, reached: &BTreeSet<Point>) {
        self.reached.extend(reached.iter().cloned());
    }

    /// What was reached and what was not, by kind; kinds that the machine has nothing of are left out.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let kinds = ["states", "moves", "guards", "refusals", "events"];
        let all = points(&self.machine);
        let row = |what: &'static str| {
            let mine = || all.iter().filter(|point| kind(point) == what);
            let missing: Vec<String> =
                mine().filter(|point| !self.reached.contains(point)).map(|point| words(&self.machine, point)).collect();
            let of = mine().count();
            Row { what, covered: of - missing.len(), of, missing }
        };
        kinds.into_iter().map(row).filter(|row| row.of > 0).collect()
    }
}

fn kind(point: &Point) -> &'static str {
    match point {
        Point::State(_) => "states",
        Point::Move(_) => "moves",
        Point::Guard(..) => "guards",
        Point::Refusal(..) => "refusals",
        Point::Event(_) => "events",
    }
}

/// Everything that scenarios of a machine can reach, in the order of its states.
fn points(machine: &Machine) -> Vec<Point> {
    let mut all: Vec<Point> = machine.states.keys().cloned().map(Point::State).collect();
    for (from, state) in &machine.states {
        for (way, one) in ways(from, state) {
            all.push(Point::Move(way.clone()));
            if one.is_some_and(|one| !one.guard.any.is_empty()) {
                all.push(Point::Guard(way.clone(), true));
                all.push(Point::Guard(way, false));
            }
        }
    }
    for (event, spec) in &machine.events {
        all.push(Point::Event(event.clone()));
        let untaken =
            |kind: StateKind| machine.states.values().any(|state| state.kind == kind && !state.on.contains_key(event));
        if untaken(StateKind::Working) {
            let refused = if spec.on_busy == OnBusy::Queue { Refused::Queued } else { Refused::Busy };
            all.push(Point::Refusal(event.clone(), refused));
        }
        if untaken(StateKind::Rest) {
            all.push(Point::Refusal(event.clone(), Refused::NotAllowed));
        }
    }
    all
}

/// Every way out of a state; failure paths have no move of their own.
fn ways<'m>(from: &Name, state: &'m State) -> Vec<(Way, Option<&'m Move>)> {
    let way = |by: By, nth: usize| Way { from: from.clone(), by, nth };
    let mut all: Vec<(Way, Option<&Move>)> =
        state.to.iter().enumerate().map(|(nth, one)| (way(By::Step, nth), Some(one))).collect();
    for (event, moves) in &state.on {
        all.extend(moves.iter().enumerate().map(|(nth, one)| (way(By::Event(event.clone()), nth), Some(one))));
    }
    all.extend(state.after.iter().map(|timer| (way(By::Timer(timer.name.clone()), 0), Some(&timer.then))));
    if state.step.is_some() {
        all.push((way(By::Permanent, 0), None));
    }
    if state.step.is_some() || state.deadline_ms.is_some() {
        all.push((way(By::Exhausted, 0), None));
    }
    all
}

fn words(machine: &Machine, point: &Point) -> String {
    match point {
        Point::State(name) | Point::Event(name) => name.to_string(),
        Point::Move(way) => way_words(machine, way),
        Point::Guard(way, held) => {
            let guard = machine.states.get(&way.from).and_then(|state| guard_of(state, way)).map(guard_words);
            let never = if *held { "never held" } else { "always held" };
            format!("{}: {} {never}", way_words(machine, way), guard.unwrap_or_default())
        }
        Point::Refusal(event, refused) => format!("{event} {refused}"),
    }
}

fn way_words(machine: &Machine, way: &Way) -> String {
    let Way { from, by, nth } = way;
    let Some(state) = machine.states.get(from) else { return from.to_string() };
    let to = |one: Option<&Move>| match one.map(|one| &one.to) {
        Some(Some(to)) => format!("-> {to}"),
        _ => format!("stays {from}"),
    };
    let path = |path: &FailurePath| match path {
        FailurePath::Park => "-> parked".to_owned(),
        FailurePath::To { to, .. } => format!("-> {to}"),
    };
    match by {
        By::Step => {
            let step = state.step.as_ref().map(Name::as_str).unwrap_or_default();
            format!("{from}: {step} {}", to(state.to.get(*nth)))
        }
        By::Event(event) => format!("{from}: {event} {}", to(state.on.get(event).and_then(|moves| moves.get(*nth)))),
        By::Timer(name) => {
            let timer = state.after.iter().find(|timer| timer.name == *name);
            format!("{from}: {name} {}", to(timer.map(|timer| &timer.then)))
        }
        By::Permanent => format!("{from}: a permanent failure {}", path(&state.on_permanent)),
        By::Exhausted => {
            let what = if state.step.is_some() { "the last attempt fails, or the deadline" } else { "the deadline" };
            format!("{from}: {what} {}", path(&state.on_exhausted))
        }
    }
}

fn guard_of<'m>(state: &'m State, way: &Way) -> Option<&'m Filter> {
    let one = match &way.by {
        By::Step => state.to.get(way.nth),
        By::Event(event) => state.on.get(event)?.get(way.nth),
        By::Timer(_) | By::Permanent | By::Exhausted => None,
    };
    one.map(|one| &one.guard)
}

fn guard_words(filter: &Filter) -> String {
    let all = |all: &Vec<_>| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    filter.any.iter().map(all).collect::<Vec<_>>().join(", or ")
}

/// Takes down what one scenario reaches.
pub(super) struct Cover<'m> {
    machine: &'m Machine,
    pub(super) reached: BTreeSet<Point>,
    payloads: BTreeMap<EventId, Option<Doc>>,
    sentences: BTreeMap<EntityId, Vec<String>>,
}

impl<'m> Cover<'m> {
    pub(super) fn new(machine: &'m Machine, scenario: &Scenario) -> Self {
        let sent = scenario.when.iter().filter_map(|when| match &when.act {
            Act::Ask(Ask { request: Request::Send { id, payload, .. }, .. }) => Some((id.clone(), payload.clone())),
            _ => None,
        });
        Self { machine, reached: BTreeSet::new(), payloads: sent.collect(), sentences: BTreeMap::new() }
    }

    /// The lines of an entity's history, the newest incarnation's.
    pub(super) fn sentences(&self, entity: &EntityId) -> &[String] {
        self.sentences.get(entity).map_or(&[], Vec::as_slice)
    }

    /// An answer to a client.
    pub(super) fn asked(&mut self, ask: &Ask, before: Option<&EntityView>, answer: &Result<Outcome, SubmitError>) {
        let Request::Send { event, payload, .. } = &ask.request else { return };
        let refused = match answer {
            Ok(Outcome::Answered { answer, .. }) if answer.kind == AnswerKind::Queued => Some(Refused::Queued),
            Err(SubmitError::Rejected(no)) if no.code == Code::Busy => Some(Refused::Busy),
            Err(SubmitError::Rejected(no)) if no.code == Code::NotAllowed => Some(Refused::NotAllowed),
            _ => None,
        };
        self.reached.extend(refused.map(|refused| Point::Refusal(event.clone(), refused)));
        let guarded = matches!(answer, Err(SubmitError::Rejected(no)) if no.code == Code::Guard);
        if let Some(view) = before.filter(|_| guarded) {
            let documents = &view.documents;
            let roots = Roots {
                event: payload.as_ref().map(Doc::value),
                desired: documents.desired.as_ref().map(Doc::value),
                data: documents.data.as_ref().map(Doc::value),
                outputs: documents.outputs.as_ref().map(Doc::value),
                ..Roots::default()
            };
            self.choose(&view.head.state, event, &roots);
        }
    }

    /// What attempts were told: a transition that a guard refused.
    fn told(&mut self, seen: &[Seen]) {
        for seen in seen {
            let Seen::Told { held, told: Told::Refused(SubmitError::Rejected(no)) } = seen else { continue };
            let Asked::Transition(to, _) = &held.asked else { continue };
            if no.code == Code::Guard {
                let mut from = self.machine.states.iter().filter(|(_, state)| state.step.as_ref() == Some(&held.step));
                let way = from.find_map(|(from, state)| {
                    let nth = state.to.iter().position(|one| one.to.as_ref() == Some(to))?;
                    Some(Way { from: from.clone(), by: By::Step, nth })
                });
                self.reached.extend(way.map(|way| Point::Guard(way, false)));
            }
        }
    }

    /// What happened.
    pub(super) fn seen(&mut self, news: &News) {
        self.told(&news.seen);
        for one in &news.recorded {
            let lines = self.sentences.entry(one.entity.clone()).or_default();
            if one.entry.number == 1 {
                lines.clear();
            }
            lines.push(one.entry.sentence());
            self.entry(one);
        }
    }

    fn entry(&mut self, one: &Recorded) {
        let (entry, machine) = (&one.entry, self.machine);
        for state in [&entry.from, &entry.to] {
            if machine.states.contains_key(state) {
                self.reached.insert(Point::State(state.clone()));
            }
        }
        let Some(state) = machine.states.get(&entry.from) else { return };
        let way = |by: By, nth: usize| Way { from: entry.from.clone(), by, nth };
        let taken = match &entry.what {
            What::Event(name) => {
                self.reached.insert(Point::Event(name.clone()));
                let payload = entry.event.as_ref().and_then(|id| self.payloads.get(id)).cloned().flatten();
                self.by_event(one, name, payload.as_ref())
            }
            What::DesiredChanged => self.by_event(one, &DESIRED_CHANGED, None),
            What::Effect(EffectWhat::Done, ..) => self.by_effect(entry, &EFFECT_DONE),
            What::Effect(EffectWhat::Failed | EffectWhat::Fenced, ..) => self.by_effect(entry, &EFFECT_FAILED),
            What::Transition(_) => {
                let nth = state.to.iter().position(|one| one.to.as_ref() == Some(&entry.to));
                let guarded = nth.and_then(|nth| state.to.get(nth)).is_some_and(|one| !one.guard.any.is_empty());
                if let Some(nth) = nth.filter(|_| guarded) {
                    self.reached.insert(Point::Guard(way(By::Step, nth), true));
                }
                nth.map(|nth| way(By::Step, nth))
            }
            What::Timer(name) => Some(way(By::Timer(name.clone()), 0)),
            What::FailurePath(failure) if failure.permanent => Some(way(By::Permanent, 0)),
            What::FailurePath(_) => Some(way(By::Exhausted, 0)),
            What::Parked(code, _) if code == "permanent" => Some(way(By::Permanent, 0)),
            What::Parked(code, _) if code == "exhausted" || code == "deadline" => Some(way(By::Exhausted, 0)),
            _ => None,
        };
        self.reached.extend(taken.map(Point::Move));
    }

    /// The way an event took: the first whose guard held, as far as the documents are on record, else the one
    /// that leads where it went.
    fn by_event(&mut self, one: &Recorded, event: &Name, payload: Option<&Doc>) -> Option<Way> {
        let entry = &one.entry;
        let moves = self.machine.states.get(&entry.from)?.on.get(event)?;
        let leads = |nth: usize| {
            moves.get(nth).is_some_and(|one| one.to.as_ref().map_or(entry.from == entry.to, |to| *to == entry.to))
        };
        let roots = Roots {
            event: payload.map(Doc::value),
            desired: one.desired.as_ref().map(Doc::value),
            data: one.data.as_ref().map(Doc::value),
            outputs: one.outputs.as_ref().map(Doc::value),
            now: Some(WallTime(entry.wall.0)),
            ..Roots::default()
        };
        let nth = match first(moves, &roots).filter(|nth| leads(*nth)) {
            Some(nth) => {
                self.choose(&entry.from, event, &roots);
                nth
            }
            None => (0..moves.len()).find(|nth| leads(*nth))?,
        };
        Some(Way { from: entry.from.clone(), by: By::Event(event.clone()), nth })
    }

    /// The way that the result of an effect took, if any state waited for it: the first that leads where it went. What
    /// the target said is not on record.
    fn by_effect(&mut self, entry: &Entry, event: &Name) -> Option<Way> {
        let changed = entry.from != entry.to || entry.data.is_some() || entry.outputs.is_some();
        let moves = self.machine.states.get(&entry.from)?.on.get(event).filter(|_| changed)?;
        let leads = |one: &Move| one.to.as_ref().map_or(entry.from == entry.to, |to| *to == entry.to);
        let nth = moves.iter().position(leads)?;
        let way = |nth: usize| Way { from: entry.from.clone(), by: By::Event(event.clone()), nth };
        let tried = moves.iter().enumerate().take(nth.saturating_add(1));
        let guards = tried.filter(|(_, one)| !one.guard.any.is_empty());
        self.reached.extend(guards.map(|(at, _)| Point::Guard(way(at), at == nth)));
        Some(way(nth))
    }

    /// Takes down what each guard said until one held.
    fn choose(&mut self, from: &Name, event: &Name, roots: &Roots<'_>) {
        let Some(moves) = self.machine.states.get(from).and_then(|state| state.on.get(event)) else { return };
        let last = first(moves, roots).unwrap_or(moves.len());
        for (nth, one) in moves.iter().enumerate().take(last.saturating_add(1)) {
            if !one.guard.any.is_empty() {
                let way = Way { from: from.clone(), by: By::Event(event.clone()), nth };
                self.reached.insert(Point::Guard(way, nth == last));
            }
        }
    }
}

/// The first move whose guard holds.
fn first(moves: &[Move], roots: &Roots<'_>) -> Option<usize> {
    moves.iter().position(|one| one.guard.any.is_empty() || one.guard.judge(roots, &mut 0) == Verdict::Holds)
}
