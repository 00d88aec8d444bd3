//! Scenarios: what is there, what happens, what must then be so. One file, `NAME.scenario.toml`, tells one
//! story of one machine.
//!
//! `read.rs` makes a [`Scenario`] of text, every problem at once. [`play`] plays one on a host of its own; a
//! search begins from the same scenarios, makes commands of their [`Ask`]s and judges their [`Promise`]s.

mod check;
mod coverage;
mod idle;
mod judge;
mod keys;
mod lease;
mod play;
mod read;
mod rows;

pub use coverage::{By, Coverage, Point, Refused, Row, Way};
pub use judge::Broken;
pub(crate) use lease::Clients;
pub use lease::{Deed, Does, Holding, Whose};
pub use play::{Declared, End, Miss, Played, Stage, Weather, play, play_in};
pub use read::read;
pub use rows::{Asking, Counted, Filled, Stands};

use crate::{Asked, Fault, Reply};
use interlock_kernel::command::{Create, LeaseAsk, OnExisting, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, EventId, LeaseName, Name};
use interlock_kernel::record::Expect;
use interlock_kernel::rejection::Code;
use interlock_kernel::value::Filter;
use interlock_kernel::view::Event;
use std::collections::BTreeMap;
use std::fmt;

/// JSON Schema (Draft 2020-12) of a scenario, for editors: `#:schema scenario.schema.json`.
pub const SCENARIO_SCHEMA: &str = include_str!("../../scenario.schema.json");

/// One story.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub name: String,
    /// The file, as it was handed in.
    pub file: String,
    /// Entities that are there before anything happens, at rest.
    pub given: Vec<Given>,
    /// Rows that are there before anything happens.
    pub filled: Vec<Filled>,
    /// Leases that clients have before anything happens.
    pub held: Vec<(usize, Deed)>,
    /// How targets reply; one of which nothing is said answers 200.
    pub replies: Vec<Replies>,
    /// What happens, in order.
    pub when: Vec<When>,
    /// What must be so in the end.
    pub then: Vec<Then>,
    /// What must hold at every moment.
    pub always: Vec<Promise>,
    /// What must hold once everything has come to rest.
    pub eventually: Vec<Promise>,
    /// How far a search from this scenario goes.
    pub explore: Bounds,
}

/// An entity that is there before anything happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Which.
    pub entity: EntityId,
    /// What clients want.
    pub desired: Option<Doc>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Its line in the file.
    pub line: usize,
}

impl Given {
    /// The command that makes it.
    #[must_use]
    pub fn verb(&self) -> Verb {
        let request =
            Request::Create { desired: self.desired.clone(), labels: self.labels.clone(), existing: OnExisting::Fail };
        request.verb(&self.entity, 0)
    }
}

/// How a target replies.
#[derive(Clone, Debug, PartialEq)]
pub struct Replies {
    /// The target.
    pub target: Name,
    /// What it replies.
    pub reply: Reply,
    /// How many times; none is from then on.
    pub times: Option<u32>,
}

/// A request that must have arrived at its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The target.
    pub target: Name,
    /// Its URL.
    pub url: Option<String>,
    /// These fields of its body.
    pub body: Option<Doc>,
    /// Times that it was sent.
    pub tries: Option<u32>,
}

/// How many different requests may ever arrive at a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtMost {
    /// The target.
    pub target: Name,
    /// Of one entity.
    pub at_most: u32,
}

/// Something that happens, and where that is written.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    /// Its line in the file.
    pub line: usize,
    /// What happens.
    pub act: Act,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A client asks for something.
    Ask(Ask),
    /// A client does something with a lease.
    Lease(Deed),
    /// A client does something with rows.
    Rows(Box<Asking>),
    /// Time passes.
    Advance(Advance),
    /// The host is killed, and boots again at once.
    Crash,
    /// The host is killed, this many ms pass, and it boots again.
    Down(u64),
    /// The wall clock alone jumps by this many ms.
    Wall(i64),
    /// From now on something lies in wait for a step's call.
    Fault(Planted),
    /// Nothing happens; this must be so now.
    Expect(Box<Then>),
}

/// How much time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// This many ms.
    By(u64),
    /// Until time alone brings nothing more.
    UntilIdle,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Of which entity.
    pub entity: EntityId,
    /// For what.
    pub request: Request,
    /// The answer it must get; if none is named, any but a refusal.
    pub answer: Option<Answer>,
    /// What becomes of its commit: unavailable or unknown.
    pub fault: Option<Fault>,
}

/// A client's request.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// An event.
    Send {
        /// Its name.
        event: Name,
        /// Its payload.
        payload: Option<Doc>,
        /// Its id: named, or `e` and its number among the events of the file.
        id: EventId,
        /// What the sender believes.
        expect: Expect,
    },
    /// New `desired`.
    Apply {
        /// What clients want now.
        desired: Doc,
        /// The generation that it says to replace; none is the one that is there.
        generation: Option<u64>,
    },
    /// A new entity.
    Create {
        /// What clients want.
        desired: Option<Doc>,
        /// Free labels.
        labels: BTreeMap<String, String>,
        /// What if there is one.
        existing: OnExisting,
    },
    /// The end of whatever it does.
    Kill {
        /// For the record.
        reason: String,
    },
    /// Another try for a parked entity.
    Unpark,
    /// Away with it.
    Delete,
}

impl Request {
    /// The command for an entity whose `desired` has this generation now.
    #[must_use]
    pub fn verb(&self, entity: &EntityId, generation: u64) -> Verb {
        let entity = entity.clone();
        match self.clone() {
            Self::Send { event: name, payload, id, expect } => {
                Verb::Deliver { entity, event: Box::new(Event { id, name, payload, expect, checked: None }) }
            }
            Self::Apply { desired, generation: replaced } => {
                Verb::Apply { entity, desired, expect: Some(replaced.unwrap_or(generation)), checked: None }
            }
            Self::Create { desired, labels, existing } => {
                Verb::Create(Box::new(Create { entity, desired, labels, on_existing: existing, event: None }))
            }
            Self::Kill { reason } => Verb::Kill { entity, reason },
            Self::Unpark => Verb::Unpark(entity),
            Self::Delete => Verb::Delete(entity),
        }
    }
}

impl fmt::Display for Request {
    /// As people ask for it: `resize {"size":4}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { event, payload: Some(payload), .. } => write!(f, "{event} {payload}"),
            Self::Send { event, payload: None, .. } => write!(f, "{event}"),
            Self::Apply { desired, generation: None } => write!(f, "apply {desired}"),
            Self::Apply { desired, generation: Some(replaced) } => {
                write!(f, "apply {desired} in place of generation {replaced}")
            }
            Self::Create { desired: Some(desired), .. } => write!(f, "create {desired}"),
            Self::Create { desired: None, .. } => f.write_str("create"),
            Self::Kill { reason } => write!(f, "kill: {reason}"),
            Self::Unpark => f.write_str("unpark"),
            Self::Delete => f.write_str("delete"),
        }
    }
}

/// What a client hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// In one word.
    pub kind: AnswerKind,
    /// It was so already: a remembered answer, or nothing was to be done.
    pub again: bool,
}

/// What a client hears, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// Done.
    Accepted,
    /// It waits.
    Queued,
    /// It came too late.
    Late,
    /// No; why, if that is said.
    Refused(Option<Code>),
    /// The store did not take it.
    Unavailable,
    /// Nobody knows whether the store took it.
    Unknown,
}

impl AnswerKind {
    /// Every word but for refusals, which have a code behind theirs.
    pub(crate) const WORDS: [(&'static str, Self); 6] = [
        ("accepted", Self::Accepted),
        ("queued", Self::Queued),
        ("late", Self::Late),
        ("refused", Self::Refused(None)),
        ("unavailable", Self::Unavailable),
        ("unknown", Self::Unknown),
    ];
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            AnswerKind::Refused(Some(code)) => write!(f, "refused {code}")?,
            kind => {
                let word = AnswerKind::WORDS.iter().find(|(_, known)| *known == kind);
                f.write_str(word.map_or("refused", |(word, _)| word))?;
            }
        }
        f.write_str(if self.again { " again" } else { "" })
    }
}

/// A fault that lies in wait for a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planted {
    /// Of this entity only.
    pub entity: Option<EntityId>,
    /// The step; none is any.
    pub step: Option<Name>,
    /// Its attempt of this number in the visit; none is the next that gets there.
    pub attempt: Option<u32>,
    /// Just before this call of it is answered.
    pub call: Call,
    /// What happens then.
    pub what: Fault,
    /// How many times.
    pub times: u32,
}

/// One of the calls of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The one of this number, from 1.
    Nth(u32),
    /// The one of this number among its calls of a kind.
    Of(CallKind, u32),
}

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// A checkpoint.
    Save,
    /// The next state.
    Transition,
    /// The entity, again; every accepted save is followed by one.
    Reload,
    /// Whether it is still the open one.
    StillHolds,
    /// A lease.
    Acquire,
    /// A lease, for longer.
    Extend,
    /// A lease, given back.
    Release,
    /// Whether a lease is still held.
    StillHoldsLease,
    /// Something of rows, at once.
    Rows,
    /// Rows by filter.
    Query,
}

impl CallKind {
    pub(crate) const WORDS: [(&'static str, Self); 10] = [
        ("save", Self::Save),
        ("transition", Self::Transition),
        ("reload", Self::Reload),
        ("still-holds", Self::StillHolds),
        ("acquire", Self::Acquire),
        ("extend", Self::Extend),
        ("release", Self::Release),
        ("still-holds-lease", Self::StillHoldsLease),
        ("rows", Self::Rows),
        ("query", Self::Query),
    ];

    /// Of what an attempt asks.
    #[must_use]
    pub fn of(asked: &Asked) -> Self {
        match asked {
            Asked::Save(_) => Self::Save,
            Asked::Transition(..) => Self::Transition,
            Asked::Reload | Asked::LookAgain => Self::Reload,
            Asked::StillHolds => Self::StillHolds,
            Asked::Lease(LeaseAsk::Acquire(..)) => Self::Acquire,
            Asked::Lease(LeaseAsk::Extend(..)) => Self::Extend,
            Asked::Lease(LeaseAsk::Release(_)) => Self::Release,
            Asked::StillHoldsLease(_) => Self::StillHoldsLease,
            Asked::Rows(_) => Self::Rows,
            Asked::Query(_) => Self::Query,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nth(nth) => write!(f, "call {nth}"),
            Self::Of(kind, nth) => {
                let word = CallKind::WORDS.iter().find(|(_, known)| known == kind).map_or("", |(word, _)| word);
                if *nth == 1 { f.write_str(word) } else { write!(f, "{word} {nth}") }
            }
        }
    }
}

/// What an entity must be like; what is not named is not looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Then {
    /// Which.
    pub entity: EntityId,
    /// Its line in the file.
    pub line: usize,
    /// Whether it is there at all; implied by everything else.
    pub exists: Option<bool>,
    /// One of these states.
    pub state: Vec<Name>,
    /// Its version.
    pub version: Option<u64>,
    /// The generation of `desired`.
    pub generation: Option<u64>,
    /// The generation that the steps have seen.
    pub observed: Option<u64>,
    /// These fields of `desired`, at any depth.
    pub desired: Option<Doc>,
    /// These fields of `data`.
    pub data: Option<Doc>,
    /// These fields of `outputs`.
    pub outputs: Option<Doc>,
    /// Whether it is parked, or why.
    pub parked: Option<Parked>,
    /// Whether an execution holds the lock.
    pub locked: Option<bool>,
    /// Attempts begun in this visit.
    pub attempts: Option<u32>,
    /// Events in its inbox.
    pub inbox: Option<u32>,
    /// How the last execution ended.
    pub outcome: Option<Ending>,
    /// The status of conditions, by type.
    pub conditions: BTreeMap<String, String>,
    /// What was last answered to events, by id.
    pub answers: BTreeMap<EventId, Answer>,
    /// Parts of lines of its history, in this order, others between them.
    pub history: Vec<String>,
    /// Leases, by name.
    pub leases: BTreeMap<LeaseName, Holding>,
    /// Rows.
    pub rows: Vec<Stands>,
    /// How many rows there are.
    pub counts: Vec<Counted>,
    /// The requests of it that arrived somewhere, in the order in which they first did; these and no other.
    pub made: Option<Vec<Made>>,
}

impl Then {
    /// Whether it says something of rows alone.
    fn is_aside(&self) -> bool {
        let Self { entity, line, rows, counts, .. } = self;
        let (rows, counts) = (rows.clone(), counts.clone());
        let aside = Self { rows, counts, ..Self::of(entity.clone(), *line) };
        *self == aside
    }

    /// Nothing of an entity.
    fn of(entity: EntityId, line: usize) -> Self {
        Self {
            entity,
            line,
            exists: None,
            state: Vec::new(),
            version: None,
            generation: None,
            observed: None,
            desired: None,
            data: None,
            outputs: None,
            parked: None,
            locked: None,
            attempts: None,
            inbox: None,
            outcome: None,
            conditions: BTreeMap::new(),
            answers: BTreeMap::new(),
            history: Vec::new(),
            leases: BTreeMap::new(),
            rows: Vec::new(),
            counts: Vec::new(),
            made: None,
        }
    }
}

/// Whether, or why, an entity is parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parked {
    /// Not.
    No,
    /// For whatever reason.
    Yes,
    /// With this code.
    Because(String),
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Not by a failure path, kill or a failed final state.
    Succeeded,
    /// By one of them.
    Failed,
}

/// Something an author promises of every entity of a story, of one, or of the rows of tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// In a sentence.
    pub name: String,
    /// Its line in the file.
    pub line: usize,
    /// Of this entity only.
    pub entity: Option<EntityId>,
    /// It says nothing of an entity that is not like this.
    pub when: Option<Test>,
    /// What must hold.
    pub hold: Test,
    /// How many of its requests may have arrived.
    pub made: Option<AtMost>,
    /// How many rows there may be: such a promise is about nothing else.
    pub counts: Vec<Counted>,
}

/// What an entity is like; all that is named must be so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    /// One of these states; none is any.
    pub states: Vec<Name>,
    /// Whether it is parked, or why.
    pub parked: Option<Parked>,
    /// Whether an execution holds the lock.
    pub locked: Option<bool>,
    /// How the last execution ended.
    pub outcome: Option<Ending>,
    /// A lease that its execution has.
    pub holds: Option<LeaseName>,
    /// What its documents say; an empty one is always so.
    pub filter: Filter,
}

/// How far a search goes; what is not named is the search's to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Things that happen one after another.
    pub depth: Option<u32>,
    /// Faults on one way.
    pub faults: Option<u32>,
    /// Different states that are looked at.
    pub states: Option<u64>,
}
