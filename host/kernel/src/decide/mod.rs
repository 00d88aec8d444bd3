//! One command in, one decision out. Synchronous and total: no clock, no randomness, no I/O.
//!
//! Every function here is a ladder: refusals first, one line each, in the order of precedence; one
//! comment below which nothing refuses; then the writes; then assertions.

mod arm;
mod attempt;
mod audit;
mod create;
mod deploy;
mod draft;
mod due;
mod effect;
mod enter;
mod event;
mod lease;
mod operate;
mod rows;
mod schedule;
mod session;

use crate::command::{Command, Outcome, Verb};
use crate::ids::EntityId;
use crate::record::Key;
use crate::rejection::{Code, Rejection};
use crate::rows::{QueryAnswer, QueryAsk, Reader};
use crate::time::Now;
use crate::view::{Decision, Rules, Start, Stop, View};
use draft::{Draft, Given};

/// Decides a command inside a transaction.
///
/// # Errors
/// [`Stop`] only if the store cannot answer or contradicts itself. A refusal is an outcome.
pub fn decide(view: &dyn View, rules: &dyn Rules, now: Now, command: &Command) -> Result<Decision, Stop> {
    let given = Given { view, rules, now, by: &command.by };
    match &command.verb {
        Verb::OpenSession { nonce, secret } => session::open(&given, nonce, secret),
        Verb::CloseSession => session::close(&given),
        Verb::Deploy(deploy) => deploy::deploy(&given, deploy),
        Verb::Rollback { machine, to } => deploy::rollback(&given, machine, *to),
        Verb::Create(create) => create::create(&given, create),
        Verb::Apply { entity, desired, expect, checked } => operate::apply(&given, entity, desired, *expect, *checked),
        Verb::Delete(entity) => operate::delete(&given, entity),
        Verb::Kill { entity, reason } => operate::kill(&given, entity, reason),
        Verb::Unpark(entity) => operate::unpark(&given, entity),
        Verb::Deliver { entity, event } => event::deliver(&given, entity, event),
        Verb::Save(claim, change) => attempt::save(&given, claim, change),
        Verb::Transition(claim, to, change) => attempt::transition(&given, claim, to, change),
        Verb::End(claim, failure) => attempt::end(&given, claim, failure),
        Verb::Due(entity) => due::due(&given, entity),
        Verb::Fire { entity, timer, due } => due::fire(&given, entity, timer, *due),
        Verb::Recover(entity) => session::recover(&given, entity),
        Verb::Continue(entity) => event::next(&given, entity),
        Verb::Sweep => session::sweep(&given),
        Verb::Acquire(ask) => lease::acquire(&given, ask),
        Verb::Extend { lease, grant, token, ttl_ms } => lease::extend(&given, lease, grant, *token, *ttl_ms),
        Verb::Release { lease, grant, token } => lease::release(&given, lease, grant, *token),
        Verb::Withdraw { lease, grant } => lease::withdraw(&given, lease, grant),
        Verb::Lease(claim, ask) => lease::ask(&given, claim, ask),
        Verb::Send(entity, number) => effect::send(&given, entity, *number),
        Verb::Settle { entity, number, nth, tried } => effect::settle(&given, entity, *number, *nth, tried),
        Verb::Resend(entity, number) => effect::resend(&given, entity, *number),
        Verb::Retry(entity, number) => effect::retry(&given, entity, *number),
        Verb::Drop { entity, number, reason } => effect::abandon(&given, entity, *number, reason),
        Verb::Renew(claim) => lease::renew(&given, claim),
        Verb::Lapse(lease) => lease::lapse(&given, lease),
        Verb::Lose(execution, lease) => lease::lose(&given, execution, lease),
        Verb::Turn(execution, lease) => lease::turn(&given, execution, lease),
        Verb::Unlock { entity, to, force, reason } => operate::unlock(&given, entity, to, *force, reason),
        Verb::Declare(ask) => rows::declare(&given, ask),
        Verb::DropTable(table) => rows::drop_table(&given, table),
        Verb::Rows(ask) => rows::client(&given, ask),
        Verb::StepRows(claim, ask) => rows::step(&given, claim, ask),
        Verb::RowDue(table, row) => rows::due(&given, table, row),
        Verb::TakeBack(execution) => rows::take_back(&given, execution),
        Verb::Tend(table) => rows::tend(&given, table),
        Verb::Schedule(ask) => schedule::declare(&given, ask),
        Verb::DropSchedule(name) => schedule::remove(&given, name),
        Verb::PauseSchedule { schedule, paused } => schedule::pause(&given, schedule, *paused),
        Verb::FireSchedule { schedule, due } => schedule::fire(&given, schedule, *due),
        Verb::AuditLease { lease, found, named_by } => lease::audit(&given, lease, found, named_by.as_ref()),
        Verb::Audit { entity, found, abandoned } => audit::audit(&given, entity, found, *abandoned),
    }
}

/// What a host needs to run an entity's open attempt, read again from its records; none if no attempt
/// is open.
///
/// # Errors
/// [`Stop`] if the store cannot answer.
pub fn start(view: &dyn View, rules: &dyn Rules, now: Now, entity: &EntityId) -> Result<Option<Start>, Stop> {
    let by = crate::ids::Principal::host();
    let given = Given { view, rules, now, by: &by };
    match Draft::of(&given, entity)? {
        Some(mut draft) => draft.start(),
        None => Ok(None),
    }
}

/// Why an entity does not follow its machine's active revision; none if it does, or will between
/// attempts. The same rule by which [`decide`] has entities adopt revisions.
///
/// # Errors
/// [`Stop`] if the store cannot answer.
pub fn cannot_move(view: &dyn View, rules: &dyn Rules, now: Now, entity: &EntityId) -> Result<Option<String>, Stop> {
    let by = crate::ids::Principal::host();
    let given = Given { view, rules, now, by: &by };
    match Draft::of(&given, entity)? {
        Some(mut draft) => draft.cannot_move(),
        None => Ok(None),
    }
}

/// Rows by filter, in order, read at one moment; changes nothing.
///
/// # Errors
/// [`Stop`] if the store cannot answer. A refusal is an answer.
pub fn query(
    view: &dyn View,
    rules: &dyn Rules,
    now: Now,
    by: Reader<'_>,
    ask: &QueryAsk,
) -> Result<Result<QueryAnswer, Rejection>, Stop> {
    let principal = crate::ids::Principal::host();
    rows::query(&Given { view, rules, now, by: &principal }, by, ask)
}

impl Decision {
    fn refused(rejection: Rejection) -> Self {
        Self { writes: Vec::new(), outcome: Err(rejection), wake: Vec::new(), then: Vec::new(), mismatches: 0 }
    }

    fn plain(outcome: Outcome) -> Self {
        Self { writes: Vec::new(), outcome: Ok(outcome), wake: Vec::new(), then: Vec::new(), mismatches: 0 }
    }
}

fn no_entity(entity: &EntityId) -> Rejection {
    Rejection::new(Code::NotFound, entity, "an entity", "none with this key")
}

/// A machine that is not there, with the nearest hint a kernel without a list of machines can give.
fn no_machine(name: &crate::ids::MachineName) -> Rejection {
    Rejection::new(Code::NotFound, name, "a deployed machine", "none with this name")
}

fn corrupt(key: &Key, why: &str) -> Stop {
    Stop::Corrupt(format!("{key:?}: {why}"))
}
