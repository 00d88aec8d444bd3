//! The timers of a visit that is about to be entered: every due time is fixed before anything else changes, so
//! that a move whose timers cannot be set is refused like one whose documents break their schema.

use super::draft::Draft;
use super::enter::breach;
use crate::doc::Doc;
use crate::ids::Name;
use crate::limits::{RING_MS_MIN, RULE_BYTES_MAX};
use crate::machine::{Machine, TimerSpec};
use crate::record::{CauseKind, Timer};
use crate::rejection::{Code, Rejection, cut_to};
use crate::time::WallTime;
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
        Ok(self.check(entered.documents, checked)?.map_or(Ok(timers), Err))
    }

    /// The timers of a state, if it is entered now.
    ///
    /// # Errors
    /// The first that cannot be set: `invalid`, with the field or the rule.
    pub(super) fn arm(&self, machine: &Machine, state: &Name, entered: &Entered<'_>) -> Result<Vec<Timer>, Rejection> {
        let Some(declared) = machine.state(state) else { return Ok(Vec::new()) };
        let documents = entered.documents;
        let roots = Roots {
            event: entered.event.map(Doc::value),
            desired: documents.desired.as_ref().map(Doc::value),
            data: documents.data.as_ref().map(Doc::value),
            outputs: documents.outputs.as_ref().map(Doc::value),
            ..Roots::default()
        };
        declared.after.iter().map(|spec| self.due(spec, state, &roots, entered.by)).collect()
    }

    /// The same for the visit the entity is in, as it is now.
    pub(super) fn arm_again(&mut self) -> Result<Result<Vec<Timer>, Rejection>, Stop> {
        let documents = self.documents()?;
        let event = if self.head.cause.payload { self.doc(crate::record::Part::Cause)? } else { None };
        let entered = Entered { documents: &documents, event: event.as_ref(), by: self.head.cause.kind };
        Ok(self.arm(&self.machine(), &self.head.state, &entered))
    }

    fn due(&self, spec: &TimerSpec, state: &Name, roots: &Roots<'_>, by: CauseKind) -> Result<Timer, Rejection> {
        let (now, rules) = (self.now().wall, self.given.rules);
        let subject = || format!("timer {} of {state}", spec.name);
        let due = match &spec.due {
            Due::After(ms) => now.plus(*ms),
            Due::Calendar(rule) => rules.next(rule, now).map_err(|found| breach(Code::Invalid, &subject(), &found))?,
            Due::At(path) => {
                let found = roots.field(path);
                let instant = found.and_then(|found| instant(found, |text| rules.instant(text)));
                let instant = instant.ok_or_else(|| no_instant(path, found, &subject()))?;
                // A ring of visits, each entered by the timer of the one before, turns no faster than this.
                if by == CauseKind::Timer { instant.max(now.plus(RING_MS_MIN)) } else { instant }
            }
        };
        let plain = matches!(spec.due, Due::After(_));
        let rule = (!plain).then(|| cut_to(&spec.due.to_string(), RULE_BYTES_MAX).to_owned());
        Ok(Timer { name: spec.name.clone(), due, rule })
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
