//! One entity of the machine in `tally.toml`, asked by one client after another. Written from what the host promises,
//! not from how it keeps it.
//!
//! What the host does by itself, a step's transition and a timer, is [`Model::by_itself`]: it may happen between any
//! two requests.

use crate::history::{Answer, Ask, Event, Heard, View};
use std::collections::BTreeMap;

/// The machine, for the host.
pub const MACHINE: &str = include_str!("../tally.toml");
/// `add` is taken below this.
const N_MAX: i64 = 50;
/// Events that wait, at most.
const INBOX_MAX: usize = 32;

/// What there is under one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Model {
    entity: Option<Entity>,
    /// Answers to events by id; they outlive the entity.
    answers: BTreeMap<String, Remembered>,
    /// The host's number of each incarnation, as far as somebody has heard it.
    incarnations: Vec<Option<u64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entity {
    /// What it was created with.
    created: Option<i64>,
    state: State,
    version: u64,
    generation: u64,
    observed: u64,
    desired: Option<i64>,
    n: i64,
    done: i64,
    executions: u64,
    lock: Option<Lock>,
    inbox: Vec<(String, Event)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Lock {
    number: u64,
    generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Idle,
    Held,
    Napping,
    Working,
    Killed,
}

/// An answer, and what it answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remembered {
    event: Event,
    kind: &'static str,
    incarnation: usize,
    execution: Option<u64>,
    version: u64,
    state: State,
    code: Option<&'static str>,
}

/// What the model says to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// See [`Heard::Created`].
    Created(bool),
    /// See [`Heard::Answered`].
    Answered(Remembered, bool),
    /// See [`Heard::Applied`].
    Applied(u64),
    /// The entity as it is.
    Entity,
    /// See [`Heard::Now`].
    Now(&'static str, u64, bool),
    /// See [`Heard::Refused`].
    Refused(&'static str),
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Held => "held",
            Self::Napping => "napping",
            Self::Working => "s5",
            Self::Killed => "killed",
        }
    }

    const fn locked(self) -> bool {
        matches!(self, Self::Held | Self::Napping | Self::Working)
    }
}

impl Event {
    const fn queues(&self) -> bool {
        matches!(self, Self::Add(_) | Self::Later)
    }
}

impl Entity {
    fn enter(&mut self, state: State) {
        self.version += 1;
        self.state = state;
        if state.locked() && self.lock.is_none() {
            self.executions += 1;
            self.lock = Some(Lock { number: self.executions, generation: self.generation });
        }
        if !state.locked()
            && let Some(lock) = self.lock.take()
        {
            self.observed = lock.generation;
        }
    }

    /// Whether the state takes an event of this name.
    fn declares(&self, event: &Event) -> bool {
        match self.state {
            State::Idle => !matches!(event, Event::Free),
            State::Held => matches!(event, Event::Free | Event::Put { .. }),
            State::Napping => matches!(event, Event::Free),
            State::Working | State::Killed => false,
        }
    }

    fn take(&mut self, event: &Event) -> Result<(), &'static str> {
        if !self.declares(event) {
            return Err("not_allowed");
        }
        match event {
            Event::Add(by) if self.n < N_MAX => {
                self.n += by;
                self.enter(State::Idle);
            }
            Event::Put { was, to } if self.n == *was => {
                self.n = *to;
                self.version += 1;
            }
            Event::Add(_) | Event::Put { .. } => return Err("guard"),
            Event::Work | Event::Later => self.enter(State::Working),
            Event::Hold => self.enter(State::Held),
            Event::Nap => self.enter(State::Napping),
            Event::Free => self.enter(State::Idle),
        }
        Ok(())
    }
}

impl Model {
    /// What comes of a request, and what is said to it.
    #[must_use]
    pub fn ask(&self, ask: &Ask) -> (Self, Said) {
        let mut next = self.clone();
        let said = match ask {
            Ask::Create(desired) => next.create(*desired),
            Ask::Event { id, event } => next.event(id, event),
            Ask::Apply { over, desired } => next.apply(*over, *desired),
            Ask::Get => {
                if next.entity.is_some() {
                    Said::Entity
                } else {
                    Said::Refused("not_found")
                }
            }
            Ask::Delete => next.delete(),
            Ask::Kill => next.kill(),
        };
        (next, said)
    }

    /// What the host does by itself next, if anything: a step's transition, or a timer.
    #[must_use]
    pub fn by_itself(&self) -> Option<Self> {
        let mut next = self.clone();
        let entity = next.entity.as_mut()?;
        match entity.state {
            State::Working => entity.done += 1,
            State::Napping => {}
            State::Idle | State::Held | State::Killed => return None,
        }
        entity.enter(State::Idle);
        next.drain();
        Some(next)
    }

    fn create(&mut self, desired: Option<i64>) -> Said {
        match &self.entity {
            Some(entity) if entity.created == desired => Said::Created(false),
            Some(_) => Said::Refused("conflict"),
            None => {
                self.incarnations.push(None);
                self.entity = Some(Entity {
                    created: desired,
                    state: State::Idle,
                    version: 1,
                    generation: u64::from(desired.is_some()),
                    observed: 0,
                    desired,
                    n: 0,
                    done: 0,
                    executions: 0,
                    lock: None,
                    inbox: Vec::new(),
                });
                Said::Created(true)
            }
        }
    }

    fn event(&mut self, id: &str, event: &Event) -> Said {
        let Some(entity) = &mut self.entity else { return Said::Refused("not_found") };
        if let Some(known) = self.answers.get(id) {
            return if known.event == *event {
                Said::Answered(known.clone(), true)
            } else {
                Said::Refused("id_reused")
            };
        }
        let joined = entity.lock.map(|lock| lock.number);
        let (kind, code) = if entity.state == State::Killed {
            ("late", Some("late"))
        } else if entity.state.locked() && !entity.declares(event) {
            match entity.inbox.len() {
                _ if !event.queues() => return Said::Refused("busy"),
                INBOX_MAX.. => return Said::Refused("limit"),
                _ => entity.inbox.push((id.to_owned(), event.clone())),
            }
            ("queued", None)
        } else {
            if let Err(code) = entity.take(event) {
                return Said::Refused(code);
            }
            ("accepted", None)
        };
        let execution = if kind == "accepted" { joined.or(entity.lock.map(|lock| lock.number)) } else { None };
        let answer = Remembered {
            event: event.clone(),
            kind,
            incarnation: self.incarnations.len(),
            execution,
            version: entity.version,
            state: entity.state,
            code,
        };
        self.answers.insert(id.to_owned(), answer.clone());
        self.drain();
        Said::Answered(answer, false)
    }

    /// At rest, what waits is taken in its order.
    fn drain(&mut self) {
        let Some(entity) = &mut self.entity else { return };
        while entity.state == State::Idle && !entity.inbox.is_empty() {
            let (id, event) = entity.inbox.remove(0);
            let refused = entity.take(&event).err();
            let execution = entity.lock.map(|lock| lock.number);
            turn(&mut self.answers, &id, entity, refused, execution);
        }
    }

    fn apply(&mut self, over: u64, desired: i64) -> Said {
        let Some(entity) = &mut self.entity else { return Said::Refused("not_found") };
        if entity.state == State::Killed {
            return Said::Refused("final");
        }
        let generation = entity.generation;
        let repeated = over == generation || over + 1 == generation;
        if entity.desired == Some(desired) && repeated && generation > 0 {
            return Said::Applied(generation);
        }
        if over != generation {
            return Said::Refused("conflict");
        }
        entity.desired = Some(desired);
        entity.generation += 1;
        Said::Applied(entity.generation)
    }

    fn delete(&mut self) -> Said {
        let Some(entity) = &self.entity else { return Said::Refused("not_found") };
        if entity.state.locked() {
            return Said::Refused("busy");
        }
        let said = Said::Now(entity.state.name(), entity.version, true);
        self.entity = None;
        said
    }

    fn kill(&mut self) -> Said {
        let Some(entity) = &mut self.entity else { return Said::Refused("not_found") };
        let changed = entity.state != State::Killed;
        if changed {
            entity.enter(State::Killed);
            for (id, _) in std::mem::take(&mut entity.inbox) {
                turn(&mut self.answers, &id, entity, Some("final"), None);
            }
        }
        Said::Now(entity.state.name(), entity.version, changed)
    }

    /// Whether a client may have heard this; what it tells of an incarnation's number is kept.
    #[must_use]
    pub fn hears(mut self, said: &Said, heard: &Heard) -> Option<Self> {
        let agrees = match (said, heard) {
            (Said::Created(said), Heard::Created { new }) => said == new,
            (Said::Answered(said, told), Heard::Answered { answer, replayed }) => {
                told == replayed && self.answers_as(said, answer)
            }
            (Said::Applied(said), Heard::Applied(generation)) => said == generation,
            (Said::Entity, Heard::Entity(view)) => self.looks_like(view),
            (Said::Now(name, at, moved), Heard::Now { state, version, changed }) => {
                name == state && at == version && moved == changed
            }
            (Said::Refused(said), Heard::Refused(code)) => said == code,
            _ => false,
        };
        agrees.then_some(self)
    }

    fn answers_as(&mut self, said: &Remembered, answer: &Answer) -> bool {
        let Answer { kind, execution, version, state, code } = answer;
        let same = said.kind == kind
            && said.version == *version
            && said.state.name() == state
            && said.code == code.as_deref()
            && said.execution == execution.map(|(_, number)| number);
        same && execution.is_none_or(|(incarnation, _)| self.is_called(said.incarnation, incarnation))
    }

    fn looks_like(&mut self, view: &View) -> bool {
        let Some(entity) = &self.entity else { return false };
        let number = entity.lock.map(|lock| lock.number);
        let same = view.state == entity.state.name()
            && view.version == entity.version
            && view.generation == entity.generation
            && view.observed == entity.observed
            && view.desired == entity.desired
            && (view.n, view.done) == (entity.n, entity.done)
            && view.inbox == entity.inbox.len() as u64
            && view.locked_by.map(|(_, number)| number) == number
            && view.locked_by.is_none_or(|(incarnation, _)| incarnation == view.incarnation);
        same && self.is_called(self.incarnations.len(), view.incarnation)
    }

    /// Whether the incarnation, counted from 1, may have this number: the one heard before, above all earlier ones.
    fn is_called(&mut self, incarnation: usize, number: u64) -> bool {
        let Some(at) = incarnation.checked_sub(1) else { return false };
        let below = self.incarnations.iter().take(at).flatten().all(|earlier| *earlier < number);
        let above = self.incarnations.iter().skip(at + 1).flatten().all(|later| *later > number);
        let Some(known) = self.incarnations.get_mut(at) else { return false };
        let same = known.is_none_or(|known| known == number);
        *known = Some(number);
        below && above && same
    }

    /// The entity as a client would read it; incarnations are numbered as they were made.
    #[must_use]
    pub fn view(&self) -> Option<View> {
        let entity = self.entity.as_ref()?;
        let incarnation = self.incarnations.len() as u64;
        Some(View {
            incarnation,
            state: entity.state.name().to_owned(),
            version: entity.version,
            generation: entity.generation,
            observed: entity.observed,
            desired: entity.desired,
            n: entity.n,
            done: entity.done,
            inbox: entity.inbox.len() as u64,
            locked_by: entity.lock.map(|lock| (incarnation, lock.number)),
        })
    }

    /// What a client hears when the model says this.
    #[must_use]
    pub fn heard(&self, said: &Said) -> Heard {
        match said {
            Said::Created(new) => Heard::Created { new: *new },
            Said::Answered(said, replayed) => Heard::Answered {
                answer: Answer {
                    kind: said.kind.to_owned(),
                    execution: said.execution.map(|number| (said.incarnation as u64, number)),
                    version: said.version,
                    state: said.state.name().to_owned(),
                    code: said.code.map(str::to_owned),
                },
                replayed: *replayed,
            },
            Said::Applied(generation) => Heard::Applied(*generation),
            Said::Entity => {
                self.view().map_or(Heard::Refused("not_found".to_owned()), |view| Heard::Entity(Box::new(view)))
            }
            Said::Now(state, version, changed) => {
                Heard::Now { state: (*state).to_owned(), version: *version, changed: *changed }
            }
            Said::Refused(code) => Heard::Refused((*code).to_owned()),
        }
    }
}

/// The answer to an event that waited.
fn turn(
    answers: &mut BTreeMap<String, Remembered>,
    id: &str,
    entity: &Entity,
    refused: Option<&'static str>,
    execution: Option<u64>,
) {
    let Some(answer) = answers.get_mut(id) else { return };
    answer.kind = if refused.is_some() { "refused" } else { "accepted" };
    answer.execution = execution.filter(|_| refused.is_none());
    (answer.version, answer.state, answer.code) = (entity.version, entity.state, refused);
}
