//! What else happens while a scenario is played: what a host promises to withstand, wherever it can happen.
//!
//! A scenario that holds in calm weather holds in all of them, and leaves its entities the same: the contract of
//! steps says that code runs at least once and a commit happens once.

use super::Player;
use crate::scenario::check::{self, Heard};
use crate::scenario::{Act, AnswerKind, Ask, Request, Then};
use crate::{Fault, Held, LabError};
use interlock_coordinator::{Awaited, EntityView};
use interlock_kernel::command::{OnExisting, Verb};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::machine::State;
use interlock_kernel::time::WallTime;
use std::collections::BTreeMap;
use std::fmt;

/// By how much everything that time brings is late, in ms: more than most back-offs, less than most waits.
const LATE_MS: u64 = 1_700;
/// Things that time brings before a struck attempt is followed by another: those of other entities come first.
const WAITS_MAX: u32 = 64;

/// What happens beside what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Nothing.
    Calm,
    /// Every lock is lost at once, in every visit: the host is killed just before the visit's first write, with all
    /// that runs on it.
    Lost,
    /// The host is killed right behind the first write of every visit, and nobody hears of it.
    Unheard,
    /// An attempt of every visit is fenced just before its first write, where its state grants another.
    Fenced,
    /// Everything that a client asks for arrives twice, and every event once more in the end.
    Doubled,
    /// Whatever time brings is late, and timers fire again after that.
    Late,
}

impl Weather {
    /// Every weather.
    pub const ALL: [Self; 6] = [Self::Calm, Self::Lost, Self::Unheard, Self::Fenced, Self::Doubled, Self::Late];

    /// What is expected in it: attempts that are lost have been begun all the same.
    pub(super) fn expected(self, then: &Then) -> Then {
        let mut then = then.clone();
        if matches!(self, Self::Lost | Self::Unheard) {
            then.attempts = None;
        }
        // What is under way when its host is killed is sent again.
        if self != Self::Calm {
            then.made.iter_mut().flatten().for_each(|made| made.tries = None);
        }
        then
    }
}

impl fmt::Display for Weather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calm => "calm",
            Self::Lost => "every lock lost",
            Self::Unheard => "every commit unheard",
            Self::Fenced => "every attempt fenced once",
            Self::Doubled => "every delivery doubled",
            Self::Late => "every timer late and twice",
        })
    }
}

/// What is left of an entity in the end: everything that clients and steps meet, without what hangs on how many
/// attempts it took (tokens, numbers of history entries).
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Its state.
    pub state: String,
    /// Accepted changes.
    pub version: u64,
    /// Changes of `desired`, and those that steps have seen.
    pub generations: (u64, u64),
    /// Executions begun.
    pub executions: u64,
    /// Why it is parked.
    pub parked: Option<String>,
    /// Whether its last execution succeeded.
    pub succeeded: Option<bool>,
    /// `desired`, `data` and `outputs`.
    pub documents: [Option<String>; 3],
    /// The status of its conditions, by type.
    pub conditions: BTreeMap<String, String>,
    /// What its events are answered, by id, as it is kept.
    pub answers: BTreeMap<String, String>,
}

impl End {
    fn of(view: &EntityView, answers: BTreeMap<String, String>) -> Self {
        let EntityView { head, documents, .. } = view;
        let text = |document: &Option<interlock_kernel::doc::Doc>| document.as_ref().map(ToString::to_string);
        Self {
            state: head.state.to_string(),
            version: head.version.get(),
            generations: (head.generation, head.observed),
            executions: head.executions,
            parked: head.park.as_ref().map(|park| park.code.clone()),
            succeeded: head.last.as_ref().map(|last| last.succeeded),
            documents: [text(&documents.desired), text(&documents.data), text(&documents.outputs)],
            conditions: view.conditions.iter().map(|one| (one.kind.clone(), one.status.clone())).collect(),
            answers,
        }
    }
}

impl<'s> Player<'s> {
    /// What is left of each entity that is there.
    pub(super) fn ends(&self) -> Result<BTreeMap<EntityId, End>, LabError> {
        let mut ends = BTreeMap::new();
        for entity in self.entities.iter().filter(|_| self.lab.is_up()) {
            let Some(view) = self.view(entity)? else { continue };
            let mut answers = BTreeMap::new();
            for id in self.sent().filter(|ask| ask.entity == *entity).filter_map(id_of) {
                let kept = self.lab.read(|host| async move { host.answer(entity, id).await })?;
                answers.extend(kept.map(|kept| (id.to_string(), Heard::kept(&kept.answer, false).to_string())));
            }
            ends.insert(entity.clone(), End::of(&view, answers));
        }
        Ok(ends)
    }

    /// Every event of the scenario.
    fn sent(&self) -> impl Iterator<Item = &'s Ask> + use<'s> {
        self.scenario.when.iter().filter_map(|when| match &when.act {
            Act::Ask(ask) if id_of(ask).is_some() => Some(ask),
            _ => None,
        })
    }

    /// What befalls a call before it goes on, once in each visit.
    pub(super) fn strike(&mut self, held: &Held) -> Result<Option<Fault>, LabError> {
        let fault = match self.weather {
            Weather::Lost => Fault::Crash,
            Weather::Unheard => Fault::CrashBehind,
            Weather::Fenced => Fault::Fenced,
            Weather::Calm | Weather::Doubled | Weather::Late => return Ok(None),
        };
        if !held.asked.is_write() {
            return Ok(None);
        }
        let Some(view) = self.view(&held.entity)? else { return Ok(None) };
        // A step for which the scenario has a fault of its own is lost by that one: its calls are counted there.
        let own =
            |trap: &super::Trap<'_>| trap.left > 0 && trap.planted.step.as_ref().is_none_or(|of| *of == held.step);
        let spared = self.planted.iter().any(own) || (fault == Fault::Fenced && !is_tried_again(&view));
        let first = !spared && self.struck.insert((held.entity.clone(), view.head.visit.get()));
        Ok(first.then_some(fault))
    }

    /// Lets time pass until the attempt that was struck is followed by another, if that takes time.
    pub(super) fn wait_for_another(&mut self, entity: &EntityId) -> Result<(), LabError> {
        for _ in 0..WAITS_MAX {
            let coming = self.lab.coming()?;
            if !coming.iter().any(|next| next.entity.as_ref() == Some(entity) && next.what == Awaited::Attempt) {
                return Ok(());
            }
            self.lab.tick()?;
        }
        Err(LabError::Restless(format!("{WAITS_MAX} things before the next attempt of {entity}")))
    }

    /// A client asks the same again.
    pub(super) fn ask_again(&mut self, line: usize, ask: &Ask, generation: u64, heard: &Heard) -> Result<(), LabError> {
        if self.weather != Weather::Doubled || ask.fault.is_some() || !is_made_once(&ask.request) {
            return Ok(());
        }
        let before = self.view(&ask.entity)?;
        let now = before.as_ref().map_or(0, |view| view.head.generation);
        // The same bytes: of the generation that the first one replaced.
        let answer = self.lab.submit(Principal::local(), ask.request.verb(&ask.entity, generation));
        self.story.asked(self.lab.passed_ms(), &ask.entity, &ask.request, &answer);
        let again = Heard::of(&answer, now);
        let what = format!("the answer to {}, asked twice", check::name(&ask.request));
        if again.answer.kind != heard.answer.kind || (is_yes(heard) && !again.answer.again) {
            self.miss(line, &what, format!("{} again", heard.answer), again.to_string());
        }
        let after = self.view(&ask.entity)?;
        let version = |view: &Option<EntityView>| view.as_ref().map(|view| view.head.version.get());
        if version(&before) != version(&after) {
            let of = |view| version(&view).map_or("none".to_owned(), |version| version.to_string());
            self.miss(line, &format!("the version behind {}", check::name(&ask.request)), of(before), of(after));
        }
        Ok(())
    }

    /// Every event that is remembered arrives once more.
    pub(super) fn deliver_all_again(&mut self) -> Result<(), LabError> {
        if self.weather != Weather::Doubled || !self.lab.is_up() {
            return Ok(());
        }
        let before = self.ends()?;
        for ask in self.sent() {
            let (Some(id), Some(end)) = (id_of(ask), before.get(&ask.entity)) else { continue };
            let said = self.heard.get(id).filter(|heard| is_yes(heard)).is_some();
            if said && end.answers.contains_key(id.as_str()) {
                // Two events of one id: the first is the one that is remembered, and the second is refused again.
                let _ = self.lab.submit(Principal::local(), ask.request.verb(&ask.entity, 0));
                self.settle()?;
            }
        }
        for (entity, after) in self.ends()? {
            let end = before.get(&entity);
            if end != Some(&after) {
                let what = format!("{} behind every event once more", entity.key);
                self.miss(0, &what, format!("{end:?}"), format!("{after:?}"));
            }
        }
        Ok(())
    }

    /// Moves time past what comes in so many ms, then fires again what fired. Whether it did.
    pub(super) fn late(&mut self, in_ms: u64) -> Result<bool, LabError> {
        if self.weather != Weather::Late || !self.lab.is_up() {
            return Ok(false);
        }
        let late_ms = in_ms.saturating_add(LATE_MS);
        let mut fired = Vec::new();
        for next in self.lab.coming()?.into_iter().filter(|next| next.in_ms <= late_ms) {
            if let Awaited::Lapse(lease) | Awaited::AttemptLapse(lease) = &next.what {
                fired.push(Verb::Lapse(lease.clone()));
            }
            let Some(entity) = &next.entity else { continue };
            let Some(view) = self.view(entity)? else { continue };
            match &next.what {
                Awaited::Timer(name) => {
                    let due = view.head.timers.iter().find(|timer| timer.name == *name).map(|timer| timer.due);
                    fired.extend(due.map(|due| fire(entity, name, due)));
                }
                Awaited::Attempt | Awaited::Deadline => fired.push(Verb::Due(entity.clone())),
                Awaited::Schedule(_)
                | Awaited::AttemptDeadline(_)
                | Awaited::Effect(..)
                | Awaited::Answer(..)
                | Awaited::Lapse(_)
                | Awaited::AttemptLapse(_)
                | Awaited::Row(..) => {}
            }
        }
        self.lab.leap(late_ms)?;
        for verb in fired {
            // Whatever it says: nothing may come of it, and what is there in the end tells.
            let _ = self.lab.submit(Principal::host(), verb);
        }
        Ok(true)
    }
}

fn fire(entity: &EntityId, timer: &interlock_kernel::ids::Name, due: WallTime) -> Verb {
    Verb::Fire { entity: entity.clone(), timer: timer.clone(), due }
}

fn id_of(ask: &Ask) -> Option<&interlock_kernel::ids::EventId> {
    match &ask.request {
        Request::Send { id, .. } => Some(id),
        _ => None,
    }
}

fn is_yes(heard: &Heard) -> bool {
    matches!(heard.answer.kind, AnswerKind::Accepted | AnswerKind::Queued | AnswerKind::Late)
}

/// Whether the second of two says what the first left. To make something in place of what is there is twice the work.
fn is_made_once(request: &Request) -> bool {
    !matches!(request, Request::Create { existing: OnExisting::Recreate | OnExisting::Fail, .. })
}

/// Whether an attempt that fails now is followed by another.
fn is_tried_again(view: &EntityView) -> bool {
    let state: Option<&State> = view.revision.machine.state(&view.head.state);
    let failed = view.head.lock.as_ref().map_or(0, |lock| lock.failed);
    state.is_some_and(|state| failed + 1 < state.retry.attempts)
}
