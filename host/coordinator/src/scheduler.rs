//! What store time and wall time cause: a task sleeps until the earliest index entry, reads only what is
//! due, a bounded page at a time, and has the kernel decide each. It never looks at all entities.

use crate::codec;
use crate::core::Core;
use crate::read::look;
use futures_util::StreamExt;
use interlock_kernel::command::{Command, Outcome, Verb};
use interlock_kernel::ids::Principal;
use interlock_kernel::record::Key;
use interlock_store::{Span, StoreError};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Index entries taken up at a time.
const PAGE: usize = 256;

/// Commands of one task that wait for the store at a time; enough to fill a group commit.
const CONCURRENCY: usize = 64;

/// The longest sleep between two looks at the wall clock while a timer is pending: a clock set forward
/// is noticed this late. No store access happens then.
const WALL_SLICE_MS: u64 = 1_000;

/// Wall and monotonic clock disagreeing by more than this is a jump, told once.
const JUMP_MS: i64 = 1_000;

/// An entry that is there again after its command may be a new one: within one millisecond a lease can be handed on
/// and come back.
const IN_A_ROW_MAX: u32 = 8;

/// An entry that its commands did not remove is left alone for this long.
const STUCK_MS: u64 = 60_000;

/// How often expired records are looked for.
const SWEEP_MS: u64 = 10_000;

/// After a failed read.
const RETRY_MS: u64 = 1_000;

/// Entries that are due, and when the next one is.
struct Agenda<T> {
    due: Vec<Key>,
    next: Option<T>,
}

impl<T: Ord> Agenda<T> {
    /// Both, and the earlier of what comes next.
    fn and(mut self, other: Self) -> Self {
        self.due.extend(other.due);
        self.next = [self.next, other.next].into_iter().flatten().min();
        self
    }
}

/// Entries that outlived their command: something for the reconciler, not for a busy loop.
#[derive(Default)]
pub(crate) struct Stuck {
    /// How often in a row each entry was taken up.
    last: HashMap<Key, u32>,
    left: HashSet<Key>,
    until: u64,
}

impl Stuck {
    /// Keeps what is worth a command.
    pub(crate) fn sift(&mut self, due: Vec<Key>, now_ms: u64) -> Vec<Key> {
        if now_ms >= self.until {
            self.left.clear();
        }
        let mut last = HashMap::new();
        let mut worth = Vec::new();
        for key in due {
            if self.left.contains(&key) {
                continue;
            }
            let times = self.last.get(&key).map_or(1, |times| times.saturating_add(1));
            if times > IN_A_ROW_MAX {
                tracing::error!(?key, "an index entry outlived its command; left alone for a minute");
                self.left.insert(key);
                self.until = now_ms.saturating_add(STUCK_MS);
                continue;
            }
            last.insert(key.clone(), times);
            worth.push(key);
        }
        self.last = last;
        worth
    }

    /// When what was left alone is looked at again.
    pub(crate) fn until(&self) -> u64 {
        if self.left.is_empty() { u64::MAX } else { self.until }
    }
}

/// Has everything decided that store time causes.
pub(crate) async fn due(core: Arc<Core>) {
    let mut stuck = Stuck::default();
    loop {
        core.alarms().arm_due();
        let now = core.store().now().store_ms;
        let judge = move |key: &Key| match key {
            Key::Due(due, _) | Key::Lapse(due, _) | Key::RowDue(due, ..) if due.0 <= now => Ok(()),
            Key::Due(due, _) | Key::Lapse(due, _) | Key::RowDue(due, ..) => Err(Some(due.0)),
            _ => Err(None),
        };
        let entities = agenda(&core, codec::due(), stuck.left.len(), judge).await;
        let leases = agenda(&core, codec::lapses(), stuck.left.len(), judge).await;
        let rows = agenda(&core, codec::rows_due(), stuck.left.len(), judge).await;
        let all = entities.and_then(|entities| Ok(entities.and(leases?).and(rows?)));
        let Some(agenda) = or_pause(&core, all).await else {
            continue;
        };
        let due = stuck.sift(agenda.due, now);
        if !due.is_empty() {
            core.counters().due.add(due.len() as u64);
            decide_all(&core, due).await;
            continue;
        }
        let next = agenda.next.unwrap_or(u64::MAX).min(stuck.until());
        core.alarms().set_due(next);
        tokio::select! {
            biased;
            () = core.alarms().due_changed.notified() => {}
            () = core.store().sleep_until_store(next) => {}
        }
    }
}

/// Fires every timer whose wall time has come, once, and every schedule.
pub(crate) async fn timers(core: Arc<Core>) {
    let mut stuck = Stuck::default();
    let mut clocks = Clocks::new(&core);
    loop {
        core.alarms().arm_timer();
        let stamp = core.store().now();
        let jumped = clocks.jumped(&core);
        let now = stamp.wall_ms;
        let judge = move |key: &Key| match key {
            Key::Timer(due, ..) | Key::ScheduleDue(due, _) if due.0 <= now => Ok(()),
            Key::Timer(due, ..) | Key::ScheduleDue(due, _) => Err(Some(due.0)),
            _ => Err(None),
        };
        let timers = agenda(&core, codec::timers(), stuck.left.len(), judge).await;
        let schedules = agenda(&core, codec::schedules_due(), stuck.left.len(), judge).await;
        let both = timers.and_then(|timers| Ok(timers.and(schedules?)));
        let Some(agenda) = or_pause(&core, both).await else { continue };
        let due = stuck.sift(agenda.due, stamp.store_ms);
        if !due.is_empty() {
            if let Some(by_ms) = jumped {
                tracing::warn!(by_ms, overdue = due.len(), "the wall clock jumped; each overdue timer fires once");
            }
            core.counters().timers.add(due.len() as u64);
            decide_all(&core, due).await;
            continue;
        }
        let next = agenda.next.unwrap_or(i64::MAX);
        core.alarms().set_timer(next);
        if sleep_until_wall(&core, next, &mut clocks).await {
            stuck.last.clear();
        }
    }
}

/// Sleeps until a wall time, or until an earlier timer is set; true if the clock jumped meanwhile. The
/// wall clock may be set at any moment, so it is looked at again and again.
async fn sleep_until_wall(core: &Arc<Core>, wall_ms: i64, clocks: &mut Clocks) -> bool {
    loop {
        let stamp = core.store().now();
        if stamp.wall_ms >= wall_ms {
            return false;
        }
        let left = u64::try_from(wall_ms.saturating_sub(stamp.wall_ms)).unwrap_or(u64::MAX);
        let until = if wall_ms == i64::MAX { u64::MAX } else { stamp.store_ms.saturating_add(left.min(WALL_SLICE_MS)) };
        tokio::select! {
            biased;
            () = core.alarms().timer_changed.notified() => return false,
            () = core.store().sleep_until_store(until) => {}
        }
        if let Some(by_ms) = clocks.jumped(core) {
            tracing::warn!(by_ms, "the wall clock jumped");
            return true;
        }
    }
}

/// Compares the wall clock with the one that cannot be set.
struct Clocks {
    wall_ms: i64,
    store_ms: u64,
}

impl Clocks {
    fn new(core: &Core) -> Self {
        let now = core.store().now();
        Self { wall_ms: now.wall_ms, store_ms: now.store_ms }
    }

    /// By how much the wall clock was set since the last look, if it was.
    fn jumped(&mut self, core: &Core) -> Option<i64> {
        let now = Self::new(core);
        let passed = i64::try_from(now.store_ms.saturating_sub(self.store_ms)).unwrap_or(i64::MAX);
        let by_ms = now.wall_ms.saturating_sub(self.wall_ms).saturating_sub(passed);
        *self = now;
        if by_ms.saturating_abs() <= JUMP_MS {
            return None;
        }
        core.counters().clock_jumps.add(1);
        Some(by_ms)
    }
}

/// Reads the front of an index: `judge` says due, or the time of the first that is not.
async fn agenda<T: Send + Copy + 'static>(
    core: &Arc<Core>,
    (from, to): (Vec<u8>, Vec<u8>),
    left_alone: usize,
    judge: impl Fn(&Key) -> Result<(), Option<T>> + Send + 'static,
) -> Result<Agenda<T>, StoreError> {
    let shared = core.clone();
    look(core, move |view, _| {
        let mut agenda = Agenda { due: Vec::new(), next: None };
        view.walk(Span::between(&from, &to), PAGE.saturating_add(left_alone), &mut |key, _| {
            shared.counters().scanned.add(1);
            Ok(match judge(&key) {
                Ok(()) => {
                    agenda.due.push(key);
                    ControlFlow::Continue(())
                }
                Err(next) => {
                    agenda.next = next;
                    ControlFlow::Break(())
                }
            })
        })?;
        Ok(agenda)
    })
    .await
}

async fn decide_all(core: &Arc<Core>, due: Vec<Key>) {
    let commands = due.into_iter().filter_map(|key| match key {
        Key::Due(_, entity) => Some(Verb::Due(entity)),
        Key::Lapse(_, lease) => Some(Verb::Lapse(lease)),
        Key::RowDue(_, table, row) => Some(Verb::RowDue(table, row)),
        Key::Timer(due, entity, timer) => Some(Verb::Fire { entity, timer, due }),
        Key::ScheduleDue(due, schedule) => Some(Verb::FireSchedule { schedule, due }),
        _ => None,
    });
    futures_util::stream::iter(commands)
        .for_each_concurrent(CONCURRENCY, |verb| async {
            let command = Command { by: Principal::host(), verb };
            if let Some(Err(error)) = core.insist(command.clone()).await {
                tracing::warn!(verb = ?command.verb, %error, "what was due was not done");
            }
        })
        .await;
}

async fn or_pause<T>(core: &Arc<Core>, read: Result<T, StoreError>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(%error, "an index could not be read");
            core.pause(RETRY_MS).await;
            None
        }
    }
}

/// Removes what has expired: a bounded number with each command, at once again while there is more.
pub(crate) async fn sweep(core: Arc<Core>) {
    loop {
        let command = Command { by: Principal::host(), verb: Verb::Sweep };
        let swept = core.insist(command).await;
        match swept {
            Some(Ok(Outcome::Swept { removed, more })) => {
                core.counters().swept.add(removed as u64);
                if more {
                    continue;
                }
            }
            Some(Err(error)) => tracing::warn!(%error, "expired records were not removed"),
            Some(Ok(_)) | None => {}
        }
        core.idle(SWEEP_MS).await;
    }
}
