//! Jobs as people read them: what was asked, what was answered, where it stands, what was written.

use crate::world::{Answered, World};
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::record::{Answer, Entry, Head, Key};
use interlock_kernel::view::{Event, Wake};
use std::fmt::Write;

pub(crate) fn verb(verb: &Verb) -> String {
    match verb {
        Verb::OpenSession { nonce, .. } => format!("open session {nonce}"),
        Verb::CloseSession => "close session".to_owned(),
        Verb::Deploy(deploy) => format!("deploy {}", deploy.machine.name),
        Verb::Rollback { machine, to } => format!("rollback {machine} to {to}"),
        Verb::Create(create) => {
            let desired = create.desired.as_ref().map_or(String::new(), |desired| format!(" desired {desired}"));
            let first = create.event.as_ref().map_or(String::new(), |first| format!(", {}", event(first)));
            format!("create {}{desired} ({:?}){first}", create.entity, create.on_existing)
        }
        Verb::Apply { entity, desired, expect, .. } => match expect {
            None => format!("apply {desired} to {entity}"),
            Some(expect) => format!("apply {desired} to {entity} at generation {expect}"),
        },
        Verb::Delete(entity) => format!("delete {entity}"),
        Verb::Kill { entity, reason } => format!("kill {entity}: {reason}"),
        Verb::Unpark(entity) => format!("unpark {entity}"),
        Verb::Deliver { entity, event: sent } => format!("{} to {entity}", event(sent)),
        Verb::Save(claim, _) => format!("save by attempt {} token {}", claim.attempt, claim.token),
        Verb::Transition(claim, to, _) => {
            format!("transition to {to} by attempt {} token {}", claim.attempt, claim.token)
        }
        Verb::End(claim, failure) => {
            format!("end of attempt {} token {}: {}", claim.attempt, claim.token, failure.code)
        }
        Verb::Due(entity) => format!("due {entity}"),
        Verb::Fire { entity, timer, due } => format!("fire {timer} of {entity} due {}", due.0),
        Verb::Recover(entity) => format!("recover {entity}"),
        Verb::Continue(entity) => format!("continue {entity}"),
        Verb::Sweep => "sweep".to_owned(),
        Verb::Acquire(ask) => format!("{} acquires {} for {} ms", ask.label, ask.lease, ask.terms.ttl_ms),
        Verb::Extend { lease, token, .. } => format!("extend {lease} under token {token}"),
        Verb::Release { lease, token, .. } => format!("release {lease} under token {token}"),
        Verb::Withdraw { lease, .. } => format!("withdraw from {lease}"),
        Verb::Lease(claim, ask) => format!("{ask:?} by attempt {} token {}", claim.attempt, claim.token),
        Verb::Renew(claim) => format!("renew for attempt {} token {}", claim.attempt, claim.token),
        Verb::Lapse(lease) => format!("lapse {lease}"),
        Verb::Lose(execution, lease) => format!("{execution} loses {lease}"),
        Verb::Turn(execution, lease) => format!("turn of {execution} for {lease}"),
        Verb::Send(entity, number) => format!("send effect {number} of {entity}"),
        Verb::Settle { entity, number, nth, tried } => format!("try {nth} of effect {number} of {entity}: {tried:?}"),
        Verb::Resend(entity, number) => format!("resend effect {number} of {entity}"),
        Verb::Retry(entity, number) => format!("retry effect {number} of {entity}"),
        Verb::Drop { entity, number, reason } => format!("drop effect {number} of {entity}: {reason}"),
        Verb::Unlock { entity, to, force, reason } => format!("unlock {entity} to {to}, force {force}: {reason}"),
        Verb::Declare(ask) => format!("declare {}", ask.table.name),
        Verb::DropTable(table) => format!("drop table {table}"),
        Verb::Rows(ask) => format!("{} asks {} of rows", ask.label, ask.ask.ops.len()),
        Verb::StepRows(claim, ask) => {
            format!("attempt {} token {} asks {} of rows", claim.attempt, claim.token, ask.ask.ops.len())
        }
        Verb::RowDue(table, row) => format!("due {table}/{row}"),
        Verb::TakeBack(execution) => format!("take back from {execution}"),
        Verb::Tend(table) => format!("tend {table}"),
        Verb::Schedule(ask) => format!("declare schedule {}", ask.schedule.name),
        Verb::DropSchedule(schedule) => format!("drop schedule {schedule}"),
        Verb::PauseSchedule { schedule, paused } => format!("pause schedule {schedule}: {paused}"),
        Verb::FireSchedule { schedule, due } => format!("fire schedule {schedule} due {}", due.0),
        Verb::AuditLease { lease, found, named_by } => {
            format!("audit lease {lease}, {} found, named by {named_by:?}", found.len())
        }
        Verb::Audit { entity, found, abandoned } => {
            format!("audit {entity}, {} found, abandoned {abandoned:?}", found.len())
        }
    }
}

fn event(event: &Event) -> String {
    let payload = event.payload.as_ref().map_or(String::new(), ToString::to_string);
    format!("{}{payload} as {}", event.name, event.id)
}

pub(crate) fn outcome(outcome: &Answered) -> String {
    match outcome {
        Err(refused) if refused.retryable => format!("{refused} (retry in {} ms)", refused.retry_after_ms.unwrap_or(0)),
        Err(refused) => refused.to_string(),
        Ok(Outcome::Nothing) => "nothing".to_owned(),
        Ok(Outcome::Session(id, closed)) => format!("session {id}, closed {closed}"),
        Ok(Outcome::Deployed { revision, new }) => format!("revision {revision}{}", if *new { "" } else { " already" }),
        Ok(Outcome::Created { incarnation, version, new, answer: first }) => {
            let first = first.as_ref().map_or(String::new(), |first| format!(", {}", answer(first)));
            format!("{} @{incarnation} v{version}{first}", if *new { "created" } else { "exists" })
        }
        Ok(Outcome::Applied { generation }) => format!("generation {generation}"),
        Ok(Outcome::Answered { answer: given, replayed }) => {
            format!("{}{}", answer(given), if *replayed { ", replayed" } else { "" })
        }
        Ok(Outcome::Written { version, .. }) => format!("written v{version}"),
        Ok(Outcome::Now { version, state, changed }) => {
            format!("v{version} {state}{}", if *changed { "" } else { ", unchanged" })
        }
        Ok(Outcome::Swept { removed, more }) => format!("swept {removed}{}", if *more { ", more" } else { "" }),
        Ok(Outcome::Repaired(what)) => format!("repaired {what:?}"),
        Ok(Outcome::Leased { claim, new, ttl_ms, .. }) => {
            let how = if *new { "granted" } else { "renewed" };
            format!("{how} {} token {} for {ttl_ms} ms", claim.lease, claim.token)
        }
        Ok(Outcome::InLine { before }) => format!("in line behind {before}"),
        Ok(Outcome::Sending(sending)) => format!("try {} of {}", sending.effect.tries, sending.effect.key),
        Ok(Outcome::Released) => "released".to_owned(),
        Ok(Outcome::Declared { revision, new }) => {
            format!("declaration {revision}{}", if *new { "" } else { " already" })
        }
        Ok(Outcome::Rows { answers, replayed }) => {
            format!("{} answers{}", answers.len(), if *replayed { ", replayed" } else { "" })
        }
        Ok(Outcome::Fired(None)) => "not due".to_owned(),
        Ok(Outcome::Fired(Some(firing))) => format!("due {}: {}", firing.due.0, firing.fired),
        Ok(Outcome::Tended { done, more }) => format!("tended {done}{}", if *more { ", more" } else { "" }),
    }
}

pub(crate) fn answer(answer: &Answer) -> String {
    let mut text = format!("{:?} v{} {}", answer.kind, answer.version, answer.state);
    if let Some(execution) = answer.execution {
        let _ = write!(text, " @{}.{execution}", answer.incarnation);
    }
    if let Some(refused) = &answer.rejection {
        let _ = write!(text, " ({refused})");
    }
    text
}

pub(crate) fn head(head: &Head) -> String {
    let mut text = format!("v{} visit {} {}", head.version, head.visit, head.state);
    if let Some(lock) = &head.lock {
        let _ = write!(text, ", lock @{}.{}", head.incarnation, lock.ordinal);
        if let Some(open) = lock.attempt {
            let _ = write!(text, " attempt {} token {} session {}", open.ordinal, open.token, open.session);
        }
        let counts = [("failed", lock.failed), ("lost", lock.lost), ("saves", lock.saves), ("chain", lock.chain)];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            let _ = write!(text, ", {name} {count}");
        }
        if let Some(retry) = lock.retry {
            let _ = write!(text, ", next at {}", retry.0);
        }
    }
    for timer in &head.timers {
        let _ = write!(text, ", timer {} at {}", timer.name, timer.due.0);
    }
    if let Some(deadline) = head.deadline {
        let _ = write!(text, ", deadline {}", deadline.0);
    }
    if let Some(park) = &head.park {
        let _ = write!(text, ", parked {} ({})", park.code, park.reason);
    }
    if !head.leases.is_empty() {
        let names: Vec<&str> = head.leases.iter().map(interlock_kernel::ids::LeaseName::as_str).collect();
        let _ = write!(text, ", leases {}", names.join(" "));
    }
    if let Some(lease) = &head.awaits {
        let _ = write!(text, ", awaits {lease}");
    }
    if head.inbox.length > 0 {
        let _ = write!(text, ", inbox {}", head.inbox.length);
    }
    if head.generation > 0 {
        let _ = write!(text, ", generation {} observed {}", head.generation, head.observed);
    }
    text
}

/// One history entry.
pub(crate) fn entry(entry: &Entry) -> String {
    let mut text = format!("h{} v{} {:?} {} -> {}", entry.number, entry.version, entry.what, entry.from, entry.to);
    if let Some(execution) = entry.execution {
        let _ = write!(text, " .{execution}");
    }
    if let (Some(attempt), Some(token)) = (entry.attempt, entry.token) {
        let _ = write!(text, " attempt {attempt} token {token}");
    }
    for (name, changed) in [("desired", &entry.desired), ("data", &entry.data), ("outputs", &entry.outputs)] {
        if let Some(changed) = changed {
            let _ = write!(text, " {name} {}", changed.inline.as_deref().unwrap_or("..."));
        }
    }
    format!("{text} by {} r{}", entry.by, entry.revision)
}

fn key(key: &Key) -> String {
    match key {
        Key::Machine(name) => format!("machine {name}"),
        Key::Revision(_, number) => format!("revision {number}"),
        Key::Head(_) => "head".to_owned(),
        Key::Part(_, part) => format!("{part:?}").to_lowercase(),
        Key::Inbox(_, place) => format!("inbox {place}"),
        Key::History(_, _, number) => format!("h{number}"),
        Key::Dedup(_, id) => format!("dedup {id}"),
        Key::Due(due, _) => format!("due {}", due.0),
        Key::Timer(due, _, name) => format!("timer {name} {}", due.0),
        Key::Open(session, _) => format!("S({session})"),
        Key::Session(id) => format!("session {id}"),
        Key::Expiry(due, ..) => format!("X {}", due.0),
        Key::Secret => "secret".to_owned(),
        Key::Lease(lease) => format!("lease {lease}"),
        Key::LeaseEntry(lease, number) => format!("{lease} l{number}"),
        Key::Effect(_, number) => format!("effect {number}"),
        Key::Outbox(_, target, due, _, number) => format!("O {target} {} {number}", due.0),
        Key::Flight(session, _, number) => format!("F({session}) {number}"),
        Key::Lapse(due, lease) => format!("Y {} {lease}", due.0),
        Key::Table(table) => format!("table {table}"),
        Key::TableSpec(table, number) => format!("table {table} r{number}"),
        Key::Row(table, row) => format!("{table}/{row}"),
        Key::RowIndex(_, index, _, _, row) => format!("I{index} {row}"),
        Key::RowDue(due, _, row) => format!("due {} {row}", due.0),
        Key::RowHeld(.., row) => format!("held {row}"),
        Key::RowKept(.., row) => format!("kept {row}"),
        Key::RowEntry(_, number) => format!("t{number}"),
        Key::Memo(..) => "memo".to_owned(),
        Key::Answered(id) => format!("answered {id}"),
        Key::Schedule(schedule) => format!("schedule {schedule}"),
        Key::ScheduleDue(due, schedule) => format!("index schedule {schedule} due {}", due.0),
    }
}

fn wake(wake: &Wake) -> String {
    match wake {
        Wake::Run(start) => format!("run {} attempt {} token {}", start.step, start.claim.attempt, start.claim.token),
        Wake::Due(due) => format!("due {}", due.0),
        Wake::Timer(due) => format!("timer {}", due.0),
        Wake::Fence { token, why, .. } => format!("fence {token} ({why})"),
        Wake::Settled(entity) => format!("settled {}", entity.key),
        Wake::Send(due) => format!("send {}", due.0),
        Wake::Lapse(due) => format!("lapse {}", due.0),
        Wake::Granted(lease) => format!("granted {lease}"),
        Wake::Row(due) => format!("row {}", due.0),
        Wake::Tend(table) => format!("tend {table}"),
        Wake::TakeBack(execution) => format!("take back {execution}"),
    }
}

/// What one job did.
pub(crate) fn job(world: &World, title: &str, answered: &Answered) -> String {
    let mut text = format!("#{} {title}\n  -> {}\n", world.seq, outcome(answered));
    let touched = world.heads().into_iter().filter(|(entity, _)| world.wrote.contains_key(&Key::Head(entity.clone())));
    for (entity, at) in touched {
        let _ = writeln!(text, "  {}: {}", entity.key, head(&at));
    }
    if !world.wrote.is_empty() {
        let sign = |stays: &bool| if *stays { "+" } else { "-" };
        let wrote: Vec<String> = world.wrote.iter().map(|(at, stays)| format!("{}{}", sign(stays), key(at))).collect();
        let _ = writeln!(text, "  writes {}", wrote.join(", "));
    }
    if !world.wakes.is_empty() {
        let _ = writeln!(text, "  wakes {}", world.wakes.iter().map(wake).collect::<Vec<_>>().join(", "));
    }
    text
}
