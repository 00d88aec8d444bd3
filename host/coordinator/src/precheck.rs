//! Documents are checked against their schemas before they queue for the store, where checking them
//! would hold up everybody.
//!
//! What is sound is marked with the revision it was checked against; the kernel checks again only if
//! it judges by another. What is not sound is left for the kernel to refuse, in its order of
//! precedence and its words.

use crate::core::Core;
use crate::dispatch::Running;
use crate::txn::Known;
use interlock_kernel::command::{Change, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::MachineName;
use interlock_kernel::view::{Event, Schema};

impl Core {
    /// Marks every document of a command that is sound.
    pub(crate) fn precheck(&self, verb: &mut Verb, run: Option<&Running>) {
        match verb {
            Verb::Deliver { entity, event } => {
                let known = self.guess(&entity.machine);
                mark_event(event, known.as_ref());
            }
            Verb::Create(create) => {
                let known = self.guess(&create.entity.machine);
                if let Some(event) = &mut create.event {
                    mark_event(event, known.as_ref());
                }
            }
            Verb::Apply { entity, desired, checked, .. } => {
                let known = self.guess(&entity.machine);
                *checked = known.and_then(|known| sound(&known, Schema::Desired, Some(desired)));
            }
            Verb::Save(claim, change) | Verb::Transition(claim, _, change) => {
                let judge =
                    run.and_then(|run| self.revisions().get(&claim.execution.entity.machine, run.start().revision));
                mark_change(change, judge.as_ref());
            }
            Verb::OpenSession { .. }
            | Verb::CloseSession
            | Verb::Deploy(_)
            | Verb::Rollback { .. }
            | Verb::Delete(_)
            | Verb::Kill { .. }
            | Verb::Unpark(_)
            | Verb::End(..)
            | Verb::Due(_)
            | Verb::Fire { .. }
            | Verb::Recover(_)
            | Verb::Continue(_)
            | Verb::Sweep
            | Verb::Acquire(_)
            | Verb::Extend { .. }
            | Verb::Release { .. }
            | Verb::Withdraw { .. }
            | Verb::Lease(..)
            | Verb::Renew(_)
            | Verb::Lapse(_)
            | Verb::Lose(..)
            | Verb::Turn(..)
            | Verb::Send(..)
            | Verb::Settle { .. }
            | Verb::Resend(..)
            | Verb::Retry(..)
            | Verb::Drop { .. }
            | Verb::Unlock { .. }
            | Verb::Declare(_)
            | Verb::DropTable(_)
            | Verb::Rows(_)
            | Verb::StepRows(..)
            | Verb::RowDue(..)
            | Verb::TakeBack(_)
            | Verb::Tend(_)
            | Verb::AuditLease { .. }
            | Verb::Schedule(_)
            | Verb::DropSchedule(_)
            | Verb::PauseSchedule { .. }
            | Verb::FireSchedule { .. }
            | Verb::Audit { .. } => {}
        }
    }

    /// The revision that the entity most likely follows.
    fn guess(&self, machine: &MachineName) -> Option<Known> {
        self.revisions().newest(machine)
    }
}

fn mark_event(event: &mut Event, known: Option<&Known>) {
    event.checked = known.and_then(|known| {
        let spec = known.revision.machine.events.get(&event.name)?;
        sound(known, Schema::Event(&event.name), spec.judged(event.payload.as_ref()).as_ref())
    });
}

/// Both documents stand for themselves only if nothing is applied to them afterwards.
fn mark_change(change: &mut Change, known: Option<&Known>) {
    change.checked = known.filter(|_| change.set.is_empty()).and_then(|known| {
        sound(known, Schema::Data, change.data.as_ref())?;
        sound(known, Schema::Outputs, change.outputs.as_ref())
    });
}

/// The revision, if the document keeps to its schema there.
fn sound(known: &Known, schema: Schema<'_>, doc: Option<&Doc>) -> Option<u64> {
    let good = doc.is_none_or(|doc| known.compiled.check(schema, doc).is_ok());
    good.then_some(known.revision.number)
}
