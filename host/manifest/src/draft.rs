//! A manifest as read: the kernel's values with their places in the text. `check` looks at it, and what
//! it lets through becomes the kernel's [`Machine`].

use crate::log::{Span, Spot};
use crate::node::Node;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{MachineName, Name, TableName};
use interlock_kernel::limits::{IDLE_MS_DEFAULT, TOTAL_MS_DEFAULT};
use interlock_kernel::machine::{
    ApplyPolicy, Contract, EventSpec, FailurePath, LeaseSpec, Leases, Machine, MachineLimits, Move, OnBusy, Retry,
    Revisions, State, StateKind, Target, TimerSpec,
};
use interlock_kernel::timer::Due;
use interlock_kernel::value::{Comparison, Filter, Mutation, Value};
use std::collections::BTreeMap;

/// A whole manifest.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) machine: Option<MachineName>,
    pub(crate) owner: Option<String>,
    pub(crate) component: Option<Spot<String>>,
    /// A component is written, readable or not.
    pub(crate) has_component: bool,
    pub(crate) initial: Option<Spot<Name>>,
    pub(crate) revisions: Revisions,
    pub(crate) apply: ApplyPolicy,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) desired: ContractDraft<'a>,
    pub(crate) data: ContractDraft<'a>,
    pub(crate) outputs: ContractDraft<'a>,
    pub(crate) events: Vec<EventDraft<'a>>,
    pub(crate) states: Vec<StateDraft>,
    pub(crate) targets: Vec<TargetDraft>,
    pub(crate) leases: Vec<LeaseDraft>,
    pub(crate) tables: Vec<Spot<TableName>>,
    pub(crate) peers: Vec<Spot<MachineName>>,
    pub(crate) limits: MachineLimits,
    /// Names of states, events and targets that stand in the manifest but could not be read: no use of them is
    /// reported a second time.
    pub(crate) unread: Vec<&'a str>,
}

/// A schema or default: the document, and where its parts stand.
#[derive(Debug)]
pub(crate) struct Written<'a> {
    pub(crate) doc: Doc,
    pub(crate) node: Node<'a>,
}

#[derive(Debug)]
pub(crate) struct ContractDraft<'a> {
    /// Its table, if there is one.
    pub(crate) at: Option<Span>,
    pub(crate) schema: Schema<'a>,
    pub(crate) default: Option<Written<'a>>,
}

/// What is known of a schema.
#[derive(Debug)]
pub(crate) enum Schema<'a> {
    None,
    /// It is there and was reported.
    Unread,
    Known(Written<'a>),
}

#[derive(Debug)]
pub(crate) struct TargetDraft {
    pub(crate) name: Spot<Name>,
    /// Where its fence stands.
    pub(crate) fence_at: Option<Span>,
    /// Where it stands what late results are used for, readable or not.
    pub(crate) late_at: Option<Span>,
    /// Where the name stands of the target that undoes it.
    pub(crate) compensates: Option<Span>,
    pub(crate) target: Target,
}

#[derive(Debug)]
pub(crate) struct EventDraft<'a> {
    pub(crate) name: Spot<Name>,
    pub(crate) on_busy: OnBusy,
    pub(crate) dedup_ms: u64,
    pub(crate) schema: Schema<'a>,
}

/// A lease that is granted: its name, or the beginning of many and a `*`.
#[derive(Debug)]
pub(crate) struct LeaseDraft {
    pub(crate) name: Spot<String>,
    pub(crate) spec: LeaseSpec,
}

#[derive(Debug)]
pub(crate) struct StateDraft {
    pub(crate) name: Spot<Name>,
    pub(crate) kind: StateKind,
    /// The keys that are written, with their places.
    pub(crate) written: Vec<Spot<String>>,
    pub(crate) step: Option<Spot<Name>>,
    /// The leases of every attempt.
    pub(crate) needs: Vec<Spot<Value>>,
    pub(crate) to: Vec<MoveDraft>,
    pub(crate) on: Vec<(Spot<Name>, Vec<MoveDraft>)>,
    pub(crate) after: Vec<TimerDraft>,
    pub(crate) deadline: Option<Spot<u64>>,
    pub(crate) waits_forever: bool,
    pub(crate) idle: Option<Spot<u64>>,
    pub(crate) total: Option<Spot<u64>>,
    pub(crate) retry: Retry,
    pub(crate) on_failure: Option<FailureDraft>,
    pub(crate) on_permanent: Option<FailureDraft>,
    pub(crate) on_exhausted: Option<FailureDraft>,
}

#[derive(Debug)]
pub(crate) struct MoveDraft {
    pub(crate) at: Span,
    pub(crate) to: Option<Spot<Name>>,
    /// A target is written, readable or not.
    pub(crate) has_to: bool,
    pub(crate) guard: GuardDraft,
    /// The leases that a step's transition takes.
    pub(crate) requires: Vec<Spot<Value>>,
    pub(crate) set: Vec<SetDraft>,
    /// Something is to be set, readable or not.
    pub(crate) has_set: bool,
}

/// What is known of a guard.
#[derive(Debug)]
pub(crate) enum GuardDraft {
    None,
    Some(Vec<Vec<ComparisonDraft>>),
}

#[derive(Debug)]
pub(crate) struct ComparisonDraft {
    pub(crate) comparison: Comparison,
    pub(crate) field_at: Span,
    pub(crate) value_at: Span,
}

#[derive(Debug)]
pub(crate) struct SetDraft {
    pub(crate) mutation: Mutation,
    pub(crate) field_at: Span,
    pub(crate) value_at: Span,
}

#[derive(Debug)]
pub(crate) struct TimerDraft {
    pub(crate) name: Spot<Name>,
    pub(crate) due: Due,
    pub(crate) due_at: Span,
    pub(crate) then: MoveDraft,
}

#[derive(Debug)]
pub(crate) enum FailureDraft {
    Park,
    To { to: Option<Spot<Name>>, set: Vec<SetDraft> },
}

impl Draft<'_> {
    /// The kernel's machine. Only a draft without errors has all of it.
    pub(crate) fn machine(&self) -> Option<Machine> {
        Some(Machine {
            name: self.machine.clone()?,
            owner: self.owner.clone()?,
            initial: self.initial.as_ref()?.value.clone(),
            revisions: self.revisions,
            labels: self.labels.clone(),
            desired: self.desired.contract(),
            apply: self.apply,
            data: self.data.contract(),
            outputs: self.outputs.contract(),
            events: self.events.iter().map(|event| (event.name.value.clone(), event.spec())).collect(),
            states: self
                .states
                .iter()
                .map(|state| Some((state.name.value.clone(), state.state()?)))
                .collect::<Option<_>>()?,
            limits: self.limits.clone(),
            leases: self.leases(),
            targets: self.targets.iter().map(|one| (one.name.value.clone(), one.target.clone())).collect(),
            tables: self.tables.iter().map(|table| table.value.clone()).collect(),
            peers: self.peers.iter().map(|peer| peer.value.clone()).collect(),
        })
    }

    /// What it has to do with leases.
    pub(crate) fn leases(&self) -> Leases {
        let values = |written: &[Spot<Value>]| -> Vec<Value> { written.iter().map(|one| one.value.clone()).collect() };
        let requires = |state: &StateDraft| {
            let moves = state.to.iter().filter(|one| !one.requires.is_empty());
            moves.filter_map(|one| Some((one.to.as_ref()?.value.clone(), values(&one.requires)))).collect()
        };
        let states = || self.states.iter().map(|state| (state.name.value.clone(), state));
        Leases {
            granted: self.leases.iter().map(|lease| (lease.name.value.clone(), lease.spec)).collect(),
            needs: states()
                .map(|(name, state)| (name, values(&state.needs)))
                .filter(|(_, needs)| !needs.is_empty())
                .collect(),
            requires: states()
                .map(|(name, state)| (name, requires(state)))
                .filter(|(_, moves): &(_, BTreeMap<_, _>)| !moves.is_empty())
                .collect(),
        }
    }
}

impl ContractDraft<'_> {
    fn contract(&self) -> Contract {
        Contract { schema: self.schema.doc(), default: self.default.as_ref().map(|default| default.doc.clone()) }
    }
}

impl Schema<'_> {
    fn doc(&self) -> Option<Doc> {
        match self {
            Self::None | Self::Unread => None,
            Self::Known(written) => Some(written.doc.clone()),
        }
    }
}

impl EventDraft<'_> {
    fn spec(&self) -> EventSpec {
        EventSpec { on_busy: self.on_busy, dedup_ms: self.dedup_ms, schema: self.schema.doc() }
    }
}

impl StateDraft {
    /// How long an attempt may take in all, in ms.
    pub(crate) fn total_ms(&self) -> u64 {
        self.total.as_ref().map_or(TOTAL_MS_DEFAULT, |total| total.value)
    }

    /// How long an attempt may be without progress, in ms. A short `total` without `idle` shortens the default too.
    pub(crate) fn idle_ms(&self) -> u64 {
        self.idle.as_ref().map_or(IDLE_MS_DEFAULT.min(self.total_ms()), |idle| idle.value)
    }

    /// The path after the last retry, which a visit's deadline also takes; none is park.
    pub(crate) fn exhausted(&self) -> Option<&FailureDraft> {
        self.on_exhausted.as_ref().or(self.on_failure.as_ref())
    }

    /// The path after a permanent failure; none is park.
    pub(crate) fn permanent(&self) -> Option<&FailureDraft> {
        self.on_permanent.as_ref().or(self.on_failure.as_ref())
    }

    fn state(&self) -> Option<State> {
        Some(State {
            kind: self.kind,
            step: self.step.as_ref().map(|step| step.value.clone()),
            to: self.to.iter().map(MoveDraft::allowed).collect(),
            on: self
                .on
                .iter()
                .map(|(event, moves)| (event.value.clone(), moves.iter().map(MoveDraft::allowed).collect()))
                .collect(),
            after: self
                .after
                .iter()
                .map(|timer| TimerSpec {
                    name: timer.name.value.clone(),
                    due: timer.due.clone(),
                    then: timer.then.allowed(),
                })
                .collect(),
            deadline_ms: self.deadline.as_ref().map(|deadline| deadline.value),
            waits_forever: self.waits_forever,
            idle_ms: self.idle_ms(),
            total_ms: self.total_ms(),
            retry: self.retry.clone(),
            on_permanent: path(self.permanent())?,
            on_exhausted: path(self.exhausted())?,
        })
    }
}

fn path(failure: Option<&FailureDraft>) -> Option<FailurePath> {
    Some(match failure {
        None | Some(FailureDraft::Park) => FailurePath::Park,
        Some(FailureDraft::To { to, set }) => FailurePath::To { to: to.as_ref()?.value.clone(), set: mutations(set) },
    })
}

fn mutations(set: &[SetDraft]) -> Vec<Mutation> {
    set.iter().map(|set| set.mutation.clone()).collect()
}

impl MoveDraft {
    fn allowed(&self) -> Move {
        let any = match &self.guard {
            GuardDraft::None => Vec::new(),
            GuardDraft::Some(any) => {
                any.iter().map(|all| all.iter().map(|one| one.comparison.clone()).collect()).collect()
            }
        };
        Move { to: self.to.as_ref().map(|to| to.value.clone()), guard: Filter { any }, set: mutations(&self.set) }
    }
}
