//! What a step may still ask for, and what it was told about that.
//!
//! A refusal is said once: whoever is told that it lost the entity, or that its handle is spent, and
//! asks again, is ended. No clock, no store, no WebAssembly: only the order of answers.

use super::stopped::Stopped;
use crate::gate::Closed;
use interlock_kernel::limits::REFUSALS_MAX;
use interlock_kernel::rejection::Code;

/// One attempt's rights.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    refusals: u32,
    /// The coordinator said so before the gate did.
    lost: bool,
    told_fenced: bool,
    told_spent: bool,
    spent: bool,
}

/// Why a request is not passed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum No {
    /// Tell the step: it lost the entity, for this reason.
    Fenced(Closed),
    /// Tell the step: its transition is accepted, there is no second.
    Spent,
    /// End the attempt.
    Stop(Stopped),
}

impl Rights {
    /// For what cannot answer a rejection: passes while the attempt may go on.
    pub(crate) fn pass(&self, gate: Result<(), Closed>) -> Result<(), Stopped> {
        if self.refusals >= REFUSALS_MAX {
            return Err(Stopped::Refusals);
        }
        self.open(gate).map_err(Stopped::Fenced)
    }

    /// For what can: passes while the attempt may go on and has not made its transition.
    pub(crate) fn may_ask(&self, gate: Result<(), Closed>) -> Result<(), No> {
        if self.refusals >= REFUSALS_MAX {
            return Err(No::Stop(Stopped::Refusals));
        }
        match self.open(gate) {
            Err(closed) if self.told_fenced => return Err(No::Stop(Stopped::Fenced(closed))),
            Err(closed) => return Err(No::Fenced(closed)),
            Ok(()) => {}
        }
        match (self.spent, self.told_spent) {
            (false, _) => Ok(()),
            (true, false) => Err(No::Spent),
            (true, true) => Err(No::Stop(Stopped::Spent)),
        }
    }

    /// For a question about the right itself: the first "no" is its answer.
    pub(crate) fn may_hold(&self, gate: Result<(), Closed>) -> Result<bool, Stopped> {
        if self.refusals >= REFUSALS_MAX {
            return Err(Stopped::Refusals);
        }
        match self.open(gate) {
            Err(closed) if self.told_fenced => Err(Stopped::Fenced(closed)),
            Err(_) => Ok(false),
            Ok(()) => Ok(true),
        }
    }

    /// The step is told this rejection.
    pub(crate) fn refused(&mut self, code: Code) {
        self.refusals = self.refusals.saturating_add(1);
        match code {
            Code::Fenced => self.told_lost(),
            Code::Spent => self.told_spent = true,
            _ => {}
        }
    }

    /// The step is told that it no longer holds a lease, and may go on with the entity.
    pub(crate) fn refused_grant(&mut self) {
        self.refusals = self.refusals.saturating_add(1);
    }

    /// The step is told that it no longer holds the entity.
    pub(crate) fn told_lost(&mut self) {
        self.lost = true;
        self.told_fenced = true;
    }

    /// The entity is lost, and the step does not know yet.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }

    /// Its transition is accepted.
    pub(crate) fn spend(&mut self) {
        self.spent = true;
    }

    /// Whether its transition is accepted.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Whether the step knows that it lost the entity.
    pub(crate) fn is_told_lost(&self) -> bool {
        self.told_fenced
    }

    fn open(&self, gate: Result<(), Closed>) -> Result<(), Closed> {
        gate?;
        if self.lost {
            return Err(Closed { why: Closed::FENCED, text: "somebody else may write now".into() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{No, Rights};
    use crate::contract::Stopped;
    use crate::gate::Closed;
    use interlock_kernel::limits::REFUSALS_MAX;
    use interlock_kernel::rejection::Code;

    fn closed() -> Closed {
        Closed { why: Closed::FENCED, text: "killed".into() }
    }

    #[test]
    fn a_fenced_step_is_told_once() {
        let mut rights = Rights::default();
        assert_eq!(rights.may_ask(Ok(())), Ok(()));
        assert_eq!(rights.may_ask(Err(closed())), Err(No::Fenced(closed())));
        rights.refused(Code::Fenced);
        assert_eq!(rights.may_ask(Err(closed())), Err(No::Stop(Stopped::Fenced(closed()))));
    }

    #[test]
    fn what_cannot_answer_a_rejection_ends_a_fenced_step_at_once() {
        let rights = Rights::default();
        assert_eq!(rights.pass(Err(closed())), Err(Stopped::Fenced(closed())));
    }

    #[test]
    fn still_holds_says_false_once() {
        let mut rights = Rights::default();
        assert_eq!(rights.may_hold(Err(closed())), Ok(false));
        rights.told_lost();
        assert_eq!(rights.may_hold(Err(closed())), Err(Stopped::Fenced(closed())));
    }

    #[test]
    fn a_fence_that_the_store_knows_first_holds_although_the_gate_is_open() {
        let mut rights = Rights::default();
        rights.lose();
        assert!(matches!(rights.may_ask(Ok(())), Err(No::Fenced(_))));
        rights.refused(Code::Fenced);
        assert!(matches!(rights.may_ask(Ok(())), Err(No::Stop(Stopped::Fenced(_)))));
        assert!(matches!(rights.pass(Ok(())), Err(Stopped::Fenced(_))));
    }

    #[test]
    fn a_spent_handle_says_so_once_and_reads_on() {
        let mut rights = Rights::default();
        rights.spend();
        assert_eq!(rights.may_ask(Ok(())), Err(No::Spent));
        rights.refused(Code::Spent);
        assert_eq!(rights.pass(Ok(())), Ok(()));
        assert_eq!(rights.may_ask(Ok(())), Err(No::Stop(Stopped::Spent)));
    }

    #[test]
    fn the_call_after_the_last_refusal_ends_the_attempt() {
        let mut rights = Rights::default();
        for _ in 0..REFUSALS_MAX {
            assert_eq!(rights.may_ask(Ok(())), Ok(()));
            rights.refused(Code::NotAllowed);
        }
        assert_eq!(rights.may_ask(Ok(())), Err(No::Stop(Stopped::Refusals)));
        assert_eq!(rights.pass(Ok(())), Err(Stopped::Refusals));
        assert_eq!(rights.may_hold(Ok(())), Err(Stopped::Refusals));
    }
}
