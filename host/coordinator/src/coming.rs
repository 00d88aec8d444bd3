//! What will happen next by itself, read from the indexes that the scheduler reads: nobody has to guess
//! how long to wait, or whether waiting is of any use.

use crate::codec;
use crate::core::Core;
use crate::read::{head_in, look};
use crate::txn::TxnView;
use interlock_kernel::ids::{EntityId, LeaseName, Name, RowKey, ScheduleName, TableName};
use interlock_kernel::record::{Head, Key, Lease, Owner, Record};
use interlock_kernel::time::StoreTime;
use interlock_kernel::view::{Stop, View};
use interlock_store::StoreError;
use std::fmt;
use std::sync::Arc;

/// One thing that time alone will bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coming {
    /// In how many ms; 0 if it is due.
    pub in_ms: u64,
    /// To whom; nobody, if it is a row, or a lease that no execution has.
    pub entity: Option<EntityId>,
    /// What.
    pub what: Awaited,
}

/// What time brings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// A timer of the visit fires.
    Timer(Name),
    /// A schedule raises its event.
    Schedule(ScheduleName),
    /// The next attempt begins.
    Attempt,
    /// The visit, or the execution, has taken too long.
    Deadline,
    /// The running attempt has: `idle-deadline` or `total-deadline`.
    AttemptDeadline(&'static str),
    /// An effect on a target is tried, or tried again: its number.
    Effect(Name, u64),
    /// A try of one is given up that nobody answers. Whoever makes the requests knows when.
    Answer(Name, u64),
    /// A lease is over, or its next owner gives up waiting.
    Lapse(LeaseName),
    /// A lease is over, and with it the running attempt of the execution that has it.
    AttemptLapse(LeaseName),
    /// A row's time is over, or that of a claim on it.
    Row(TableName, RowKey),
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timer(name) => write!(f, "the timer {name}"),
            Self::Schedule(name) => write!(f, "the schedule {name}"),
            Self::Attempt => f.write_str("the next attempt"),
            Self::Deadline => f.write_str("the deadline of the visit or the execution"),
            Self::AttemptDeadline(why) => write!(f, "the {why} of the attempt"),
            Self::Effect(target, number) => write!(f, "the next try of effect {number} on {target}"),
            Self::Answer(target, number) => write!(f, "the timeout of effect {number} on {target}"),
            Self::Lapse(lease) => write!(f, "the end of the lease {lease}"),
            Self::AttemptLapse(lease) => write!(f, "the end of the lease {lease}, and of the attempt"),
            Self::Row(table, key) => write!(f, "what time does to the row {table}/{key}"),
        }
    }
}

/// The earliest of each kind, at most `limit` of each, in order of time.
pub(crate) async fn coming(core: &Arc<Core>, limit: usize) -> Result<Vec<Coming>, StoreError> {
    let mut coming = look(core, move |view, stamp| {
        let mut coming = Vec::new();
        let (from, to) = codec::due();
        for key in view.keys(&from, &to, limit)? {
            if let Key::Due(at, entity) = key {
                let what = head_in(view, &entity)?.map_or(Awaited::Deadline, |head| awaited(&head));
                coming.push(Coming { in_ms: at.0.saturating_sub(stamp.store_ms), entity: Some(entity), what });
            }
        }
        let (from, to) = codec::timers();
        for key in view.keys(&from, &to, limit)? {
            if let Key::Timer(at, entity, timer) = key {
                let in_ms = u64::try_from(at.0.saturating_sub(stamp.wall_ms)).unwrap_or(0);
                coming.push(Coming { in_ms, entity: Some(entity), what: Awaited::Timer(timer) });
            }
        }
        let (from, to) = codec::schedules_due();
        for key in view.keys(&from, &to, limit)? {
            if let Key::ScheduleDue(at, name) = key
                && let Some(Record::Schedule(record)) = view.get(&Key::Schedule(name.clone()))?
            {
                let in_ms = u64::try_from(at.0.saturating_sub(stamp.wall_ms)).unwrap_or(0);
                let entity = Some(record.schedule.entity);
                coming.push(Coming { in_ms, entity, what: Awaited::Schedule(name) });
            }
        }
        let (from, to) = codec::outbox();
        for key in view.keys(&from, &to, limit)? {
            if let Key::Outbox(_, target, at, entity, number) = key {
                let in_ms = at.0.saturating_sub(stamp.store_ms);
                coming.push(Coming { in_ms, entity: Some(entity), what: Awaited::Effect(target, number) });
            }
        }
        let (from, to) = codec::lapses();
        for key in view.keys(&from, &to, limit)? {
            if let Key::Lapse(_, name) = key
                && let Some(Record::Lease(lease)) = view.get(&Key::Lease(name.clone()))?
            {
                coming.extend(lapse(view, name, &lease, StoreTime(stamp.store_ms))?);
            }
        }
        let (from, to) = codec::rows_due();
        for key in view.keys(&from, &to, limit)? {
            if let Key::RowDue(at, table, key) = key {
                let in_ms = at.0.saturating_sub(stamp.store_ms);
                coming.push(Coming { in_ms, entity: None, what: Awaited::Row(table, key) });
            }
        }
        Ok(coming)
    })
    .await?;
    coming.extend(
        core.dispatch().running_until(core.store().now().store_ms).into_iter().map(|(entity, in_ms, why)| Coming {
            in_ms,
            entity: Some(entity),
            what: Awaited::AttemptDeadline(why),
        }),
    );
    coming.sort_by(|a, b| (a.in_ms, &a.entity, &a.what).cmp(&(b.in_ms, &b.entity, &b.what)));
    Ok(coming)
}

/// What time does to a lease. That one which nobody has or wants is forgotten some day is nothing to wait for.
fn lapse(view: &TxnView<'_>, name: LeaseName, lease: &Lease, now: StoreTime) -> Result<Option<Coming>, Stop> {
    let over = lease.holder.as_ref().map(|holder| holder.until);
    let over = over.or_else(|| lease.delay.as_ref().map(|delay| delay.until));
    let patience = lease.line.iter().filter_map(|waiter| waiter.until).min();
    let Some(at) = over.into_iter().chain(patience).min() else { return Ok(None) };
    let owner = lease.holder.as_ref().map(|holder| &holder.owner);
    let (entity, runs) = match owner {
        Some(Owner::Execution(execution)) => {
            let lock = head_in(view, &execution.entity)?.and_then(|head| head.lock);
            (Some(execution.entity.clone()), lock.is_some_and(|lock| lock.attempt.is_some()))
        }
        Some(Owner::Grant(_)) | None => (None, false),
    };
    let what = if runs && over == Some(at) { Awaited::AttemptLapse(name) } else { Awaited::Lapse(name) };
    Ok(Some(Coming { in_ms: at.since(now), entity, what }))
}

/// What the earliest entry of an entity in the index of due times is for.
fn awaited(head: &Head) -> Awaited {
    let retry = head.lock.as_ref().and_then(|lock| lock.retry);
    if retry.is_some() && retry == head.due { Awaited::Attempt } else { Awaited::Deadline }
}
