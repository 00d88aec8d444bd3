//! What clients and operators ask for next: drawn by a seed, with a look at the model so that much of it
//! makes sense and some of it does not.

use crate::ledger::{Ledger, Told};
use crate::machines::{Kind, desired, payload};
use crate::model::Model;
use crate::tenants;
use interlock_conformance::Random;
use interlock_kernel::command::{Command, Create, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, EventId, Name, Principal};
use interlock_kernel::machine::StateKind;
use interlock_kernel::record::{Answer, Expect, Head, Key, Record};
use interlock_kernel::view::Event;
use std::collections::BTreeMap;

/// A client stops sending an event again long before it is forgotten, and so do these: in ms.
const SENDS_AGAIN_MS: u64 = 20_000;
/// Events of one burst: more than an inbox holds.
const BURST: u64 = 36;

/// What a client does next.
pub(crate) enum Next {
    /// A new request, or several at once.
    Ask(Vec<Command>),
    /// A request again: one that was not answered, or one that was.
    Again(usize),
    /// Looks at an entity.
    Look(EntityId),
    /// Waits for what an answer speaks of.
    Wait(EntityId, Answer),
}

/// Clients with a memory of the ids they gave out.
#[derive(Default)]
pub(crate) struct Clients {
    given: u64,
}

impl Clients {
    /// What happens next, if anything makes sense; `leases` of a hundred requests are for a lease.
    pub(crate) fn next(
        &mut self,
        entities: &[EntityId],
        leases: u64,
        model: &Model,
        ledger: &Ledger,
        now_ms: u64,
        random: &mut Random,
    ) -> Option<Next> {
        if random.below(100) < leases {
            return Some(ask(tenants::next(ledger, random)));
        }
        let place = usize::try_from(random.below(entities.len() as u64)).unwrap_or(0);
        let id = entities.get(place)?;
        let kind = Kind::of(id.machine.as_str())?;
        let deployed = model.records.contains_key(&Key::Machine(id.machine.clone()));
        if !deployed && random.below(20) > 0 {
            return Some(ask(kind.deploy(0)));
        }
        let head = model.head(id);
        if head.is_none() && random.below(10) > 2 {
            return Some(ask(self.create(id, kind, None, random)));
        }
        // What is over is mostly begun anew: there is nothing more to be seen.
        let is_over = |head: &Head| model.kind(id, head).is_ok_and(StateKind::is_final);
        if head.is_some_and(is_over) && random.below(3) > 0 {
            return Some(ask(match random.below(5) {
                0 => Verb::Delete(id.clone()),
                1 | 2 if kind.takes_desired => apply(id, head, random),
                _ => self.create_as(id, kind, OnExisting::Recreate, random),
            }));
        }
        let parked = head.is_some_and(|head| head.park.is_some());
        if model.effects(id).any(|(_, effect)| effect.is_dead()) && random.below(2) == 0 {
            return of_effect(id, model, random).map(ask);
        }
        Some(match random.below(100) {
            0..50 => ask(self.send(id, kind, head, random)),
            50..58 => {
                let again = again(ledger, now_ms, random)?;
                Next::Again(again)
            }
            58..66 if kind.takes_desired => ask(apply(id, head, random)),
            66..72 => Next::Look(id.clone()),
            72..77 => wait(ledger, random)?,
            77..80 => ask(Verb::Delete(id.clone())),
            80..84 => ask(self.create(id, kind, head, random)),
            84..86 if random.below(2) == 0 => {
                ask(Verb::Kill { entity: id.clone(), reason: "the simulator says so".to_owned() })
            }
            84..94
                if random.below(3) == 0
                    && let Some(verb) = of_effect(id, model, random) =>
            {
                ask(verb)
            }
            86..93 if parked => ask(Verb::Unpark(id.clone())),
            86..87 => ask(Verb::Unpark(id.clone())),
            93 => ask(unlock(id, head, model, random)?),
            87..90 => ask(kind.deploy(random.below(kind.revisions()))),
            90..92 => rollback(id, model, random),
            92 => Next::Ask((0..BURST).map(|_| command(self.send_named(id, kind.events[0], random))).collect()),
            94..96 => self.reuse(ledger, random)?,
            _ => ask(self.send(id, kind, head, random)),
        })
    }

    fn id(&mut self) -> EventId {
        self.given += 1;
        let text = format!("e{}", self.given);
        text.parse().unwrap_or_else(|_| unreachable!("{text} is an event id"))
    }

    fn send(&mut self, id: &EntityId, kind: &Kind, head: Option<&Head>, random: &mut Random) -> Verb {
        let nth = usize::try_from(random.below(kind.events.len() as u64)).unwrap_or(0);
        let name = if random.below(40) == 0 { "unheard-of" } else { kind.events[nth] };
        let mut verb = self.send_named(id, name, random);
        if let (Verb::Deliver { event, .. }, Some(head)) = (&mut verb, head) {
            event.expect = expect(head, random);
        }
        verb
    }

    fn send_named(&mut self, id: &EntityId, name: &str, random: &mut Random) -> Verb {
        Verb::Deliver { entity: id.clone(), event: Box::new(self.event(name, random)) }
    }

    fn event(&mut self, name: &str, random: &mut Random) -> Event {
        Event {
            id: self.id(),
            name: name.parse::<Name>().unwrap_or_else(|_| unreachable!("{name} is a name")),
            payload: payload(name, random),
            expect: Expect::default(),
            checked: None,
        }
    }

    fn create(&mut self, id: &EntityId, kind: &Kind, head: Option<&Head>, random: &mut Random) -> Verb {
        let on_existing = match random.below(4) {
            _ if head.is_none() => OnExisting::Same,
            0 => OnExisting::Fail,
            1 => OnExisting::Use,
            2 => OnExisting::Same,
            _ => OnExisting::Recreate,
        };
        self.create_as(id, kind, on_existing, random)
    }

    fn create_as(&mut self, id: &EntityId, kind: &Kind, on_existing: OnExisting, random: &mut Random) -> Verb {
        let with_event = random.below(4) == 0;
        Verb::Create(Box::new(Create {
            entity: id.clone(),
            desired: (kind.takes_desired && random.below(2) == 0).then(|| desired(id.machine.as_str(), random)),
            labels: BTreeMap::new(),
            on_existing,
            event: with_event.then(|| self.event(kind.events[0], random)),
        }))
    }

    /// An id that was used, for another event.
    fn reuse(&mut self, ledger: &Ledger, random: &mut Random) -> Option<Next> {
        let nth = usize::try_from(random.below(ledger.requests.len() as u64)).ok()?;
        let request = ledger.requests.get(nth)?;
        let Verb::Deliver { entity, event } = &request.command.verb else { return None };
        let mut event = event.clone();
        event.payload = Some(Doc::new(match event.name.as_str() {
            "go" | "later" => serde_json::json!({ "n": 1_000 }),
            "resize" | "grow" => serde_json::json!({ "size": 41 }),
            "walk" => serde_json::json!({ "parts": 6 }),
            _ => serde_json::json!({ "another": true }),
        }));
        Some(ask(Verb::Deliver { entity: entity.clone(), event }))
    }
}

/// An operator steps in about a request that is not settled.
fn of_effect(id: &EntityId, model: &Model, random: &mut Random) -> Option<Verb> {
    let effects: Vec<u64> = model.effects(id).map(|(number, _)| number).collect();
    let number = *effects.get(usize::try_from(random.below(effects.len() as u64)).unwrap_or(0))?;
    Some(match random.below(3) {
        0 => Verb::Drop { entity: id.clone(), number, reason: "the simulator says so".to_owned() },
        _ => Verb::Retry(id.clone(), number),
    })
}

fn unlock(id: &EntityId, head: Option<&Head>, model: &Model, random: &mut Random) -> Option<Verb> {
    let to = model.machine(id, head?).ok()?.initial.clone();
    let force = random.below(3) > 0;
    Some(Verb::Unlock { entity: id.clone(), to, force, reason: "the simulator says so".to_owned() })
}

fn command(verb: Verb) -> Command {
    Command { by: Principal::local(), verb }
}

fn ask(verb: Verb) -> Next {
    Next::Ask(vec![command(verb)])
}

/// A request that may be sent again: mostly one nobody answered.
fn again(ledger: &Ledger, now_ms: u64, random: &mut Random) -> Option<usize> {
    let fresh = |nth: &usize| {
        ledger.requests.get(*nth).is_some_and(|request| {
            !request.is_waiting()
                && request.event().is_some()
                && now_ms.saturating_sub(request.since_ms) < SENDS_AGAIN_MS
        })
    };
    let recent: Vec<usize> = (0..ledger.requests.len()).rev().take(60).filter(fresh).collect();
    let unknown = recent.iter().find(|nth| ledger.requests.get(**nth).is_some_and(|request| !request.is_known()));
    if let Some(unknown) = unknown.filter(|_| random.below(3) > 0) {
        return Some(*unknown);
    }
    let nth = usize::try_from(random.below(recent.len() as u64)).ok()?;
    recent.get(nth).copied()
}

fn apply(id: &EntityId, head: Option<&Head>, random: &mut Random) -> Verb {
    let generation = head.map_or(0, |head| head.generation);
    let expect = match random.below(6) {
        0 => None,
        1 => Some(generation.saturating_sub(1)),
        2 => Some(generation + 1),
        _ => Some(generation),
    };
    Verb::Apply { entity: id.clone(), desired: desired(id.machine.as_str(), random), expect, checked: None }
}

fn rollback(id: &EntityId, model: &Model, random: &mut Random) -> Next {
    let latest = match model.records.get(&Key::Machine(id.machine.clone())) {
        Some(Record::Machine(machine)) => machine.latest,
        _ => 1,
    };
    ask(Verb::Rollback { machine: id.machine.clone(), to: 1 + random.below(latest + 1) })
}

fn wait(ledger: &Ledger, random: &mut Random) -> Option<Next> {
    let nth = usize::try_from(random.below(ledger.requests.len() as u64)).ok()?;
    let request = ledger.requests.get(nth)?;
    let (entity, _) = request.event()?;
    request.tries.iter().find_map(|told| match told {
        Told::Done(outcome) => match &**outcome {
            Outcome::Answered { answer, .. } => Some(Next::Wait(entity.clone(), (**answer).clone())),
            _ => None,
        },
        _ => None,
    })
}

/// Mostly nothing; else something true, past or ahead.
fn expect(head: &Head, random: &mut Random) -> Expect {
    let mut expect = Expect::default();
    if random.below(8) > 0 {
        return expect;
    }
    let off = random.below(3);
    let near = |number: u64| Some((number + off).saturating_sub(1));
    match random.below(5) {
        0 => expect.incarnation = near(head.incarnation.get()),
        1 => expect.execution = near(head.executions),
        2 => expect.visit = near(head.visit.get()),
        3 => expect.generation = near(head.generation),
        _ => expect.version = near(head.version.get()),
    }
    expect
}
