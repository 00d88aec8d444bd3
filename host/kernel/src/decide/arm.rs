//! The timers of a visit that is about to be entered: every due time is fixed before anything else changes, so
//! that a move whose timers cannot be set is refused like one whose documents break their schema.

use super::draft::Draft;
use super::enter::breach;
use crate::command::{Stage, StagedDue, StagedTimer};
use crate::doc::Doc;
use crate::ids::Name;
use crate::limits::{RING_MS_MIN, RULE_BYTES_MAX, STAGED_TIMERS_MAX, TIMER_MS_MAX};
use crate::machine::{Machine, State, StateKind, TimerSpec};
use crate::record::{CauseKind, Timer};
use crate::rejection::{Code, Rejection, cut_to};
use crate::time::{Span, WallTime};
use crate::timer::Due;
use crate::value::{Path, Roots};
use crate::view::{Documents, Stop};
use serde_json::Value as Json;

/// What the visit finds as it is entered.
pub(super) struct Entered<'a> {
    pub(super) documents: &'a Documents,
    /// The payload of what enters it.
    pub(super) event: Option<&'a Doc>,
    pub(super) by: CauseKind,
    /// What the step staged whose transition it is.
    pub(super) stage: &'a Stage,
}

impl Draft<'_> {
    /// The timers of the visit that a move enters, if it enters one and its documents keep to their schemas.
    pub(super) fn ready(
        &mut self,
        to: Option<&Name>,
        entered: &Entered<'_>,
        checked: Option<u64>,
    ) -> Result<Result<Vec<Timer>, Rejection>, Stop> {
        let timers = match to.map(|to| self.arm(&self.machine(), to, entered)).transpose() {
            Ok(timers) => timers.unwrap_or_default(),
            Err(refused) => return Ok(Err(refused)),
        };
        let refused = self.check(entered.documents, checked)?.or_else(|| self.overstaged(entered.stage));
        Ok(refused.map_or(Ok(timers), Err))
    }

    /// The timers of a state, if it is entered now.
    ///
    /// # Errors
    /// The first that cannot be set: `invalid`, with the field or the rule.
    pub(super) fn arm(&self, machine: &Machine, state: &Name, entered: &Entered<'_>) -> Result<Vec<Timer>, Rejection> {
        let Some(declared) = machine.state(state) else { return Ok(Vec::new()) };
        if let Some(refused) = self.undeclared(state, declared, entered.stage) {
            return Err(refused);
        }
        let documents = entered.documents;
        let roots = Roots {
            event: entered.event.map(Doc::value),
            desired: documents.desired.as_ref().map(Doc::value),
            data: documents.data.as_ref().map(Doc::value),
            outputs: documents.outputs.as_ref().map(Doc::value),
            ..Roots::default()
        };
        let due = |spec| self.due(spec, state, &roots, entered).transpose();
        let timers: Vec<Timer> = declared.after.iter().filter_map(due).collect::<Result<_, _>>()?;
        let waits = declared.kind == StateKind::Working && declared.step.is_none();
        // A failure may take back what is on its way.
        let failed = matches!(entered.by, CauseKind::Failure | CauseKind::Deadline);
        let owed = !failed && (self.head.outbox.unsettled > 0 || !entered.stage.effects.is_empty());
        let ends = declared.deadline_ms.is_some() || declared.waits_forever || owed || !timers.is_empty();
        match declared.after.first() {
            // Nothing would ever move it: without a timer set, all that are declared are left to steps.
            Some(spec) if waits && !ends => {
                let expected = format!("a due time staged by the step that enters {state}");
                Err(Rejection::new(Code::Invalid, format!("timer {} of {state}", spec.name), expected, "none"))
            }
            _ => Ok(timers),
        }
    }

    /// A staged timer that a state does not leave to steps.
    pub(super) fn undeclared(&self, name: &Name, state: &State, stage: &Stage) -> Option<Rejection> {
        let of_steps = || state.after.iter().filter(|spec| spec.due == Due::Step).map(|spec| spec.name.as_str());
        let foreign = stage.timers.iter().find(|staged| of_steps().all(|name| name != staged.name.as_str()))?;
        let names: Vec<&str> = of_steps().collect();
        let expected = match names.as_slice() {
            [] => format!("no timer: {name} has none with due = \"step\""),
            names => format!("a timer of {name} with due = \"step\": {}", names.join(" or ")),
        };
        Some(Rejection::new(Code::NotAllowed, &self.id, expected, format!("the timer {}", foreign.name)))
    }

    /// More staged timers than one commit carries, or one further away than a timer may be.
    pub(super) fn overstaged(&self, stage: &Stage) -> Option<Rejection> {
        let count = stage.timers.len();
        if count > STAGED_TIMERS_MAX {
            let expected = format!("at most {STAGED_TIMERS_MAX} staged timers (staged_timers_max)");
            return Some(Rejection::new(Code::Limit, "timers", expected, count));
        }
        let now = self.now().wall;
        stage.timers.iter().find_map(|staged| {
            let ms = match staged.due {
                StagedDue::After(ms) => ms,
                StagedDue::At(at) => at.since(now),
                StagedDue::Cancelled => 0,
            };
            (ms > TIMER_MS_MAX).then(|| {
                let expected = format!("at most {} from now (timer_ms_max)", Span(TIMER_MS_MAX));
                Rejection::new(Code::Limit, format!("timer {}", staged.name), expected, Span(ms))
            })
        })
    }

    /// Sets and takes back timers of the visit that goes on.
    pub(super) fn restage(&mut self, stage: &Stage) {
        for staged in &stage.timers {
            self.head.timers.retain(|set| set.name != staged.name);
            let timer = self.staged(staged);
            self.head.timers.extend(timer);
        }
    }

    fn staged(&self, staged: &StagedTimer) -> Option<Timer> {
        let due = match staged.due {
            StagedDue::After(ms) => self.now().wall.plus(ms),
            StagedDue::At(at) => at,
            StagedDue::Cancelled => return None,
        };
        Some(Timer { name: staged.name.clone(), due, rule: Some(Due::Step.to_string()) })
    }

    /// The same for the visit the entity is in, as it is now.
    pub(super) fn arm_again(&mut self) -> Result<Result<Vec<Timer>, Rejection>, Stop> {
        let documents = self.documents()?;
        let event = self.payload()?;
        let (by, stage) = (self.head.cause.kind, &Stage::default());
        let entered = Entered { documents: &documents, event: event.as_ref(), by, stage };
        Ok(self.arm(&self.machine(), &self.head.state, &entered))
    }

    /// One timer of a state; none if it is a step's to set, and none has.
    fn due(
        &self,
        spec: &TimerSpec,
        state: &Name,
        roots: &Roots<'_>,
        entered: &Entered<'_>,
    ) -> Result<Option<Timer>, Rejection> {
        let (now, rules) = (self.now().wall, self.given.rules);
        let subject = || format!("timer {} of {state}", spec.name);
        let due = match &spec.due {
            Due::Step => {
                let last = entered.stage.timers.iter().rfind(|staged| staged.name == spec.name);
                return Ok(last.and_then(|staged| self.staged(staged)));
            }
            Due::After(ms) => now.plus(*ms),
            Due::Calendar(rule) => rules.next(rule, now).map_err(|found| breach(Code::Invalid, &subject(), &found))?,
            Due::At(path) => {
                let found = roots.field(path);
                let instant = found.and_then(|found| instant(found, |text| rules.instant(text)));
                let instant = instant.ok_or_else(|| no_instant(path, found, &subject()))?;
                // A ring of visits, each entered by the timer of the one before, turns no faster than this.
                if entered.by == CauseKind::Timer { instant.max(now.plus(RING_MS_MIN)) } else { instant }
            }
        };
        let plain = matches!(spec.due, Due::After(_));
        let rule = (!plain).then(|| cut_to(&spec.due.to_string(), RULE_BYTES_MAX).to_owned());
        Ok(Some(Timer { name: spec.name.clone(), due, rule }))
    }
}

fn instant(found: &Json, read: impl Fn(&str) -> Option<WallTime>) -> Option<WallTime> {
    found.as_i64().map(WallTime).or_else(|| read(found.as_str()?))
}

fn no_instant(path: &Path, found: Option<&Json>, timer: &str) -> Rejection {
    let expected = format!("when {timer} is due: RFC 3339 with an offset, or ms since 1970");
    let got = found.map_or_else(|| "nothing".to_owned(), |found| Doc::new(found.clone()).to_string());
    Rejection::new(Code::Invalid, path, expected, got)
}
