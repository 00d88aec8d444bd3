//! What the scheduler sleeps for, and how a commit tells it that something is due sooner.
//!
//! A commit that adds a later wake-up costs one atomic operation: the scheduler is told only when it
//! would otherwise sleep too long.

use interlock_kernel::time::{StoreTime, WallTime};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use tokio::sync::Notify;

/// The scheduler's alarm clocks.
pub(crate) struct Alarms {
    due: AtomicU64,
    timer: AtomicI64,
    send: AtomicU64,
    pub(crate) due_changed: Notify,
    pub(crate) timer_changed: Notify,
    pub(crate) send_changed: Notify,
    pub(crate) tables_changed: Notify,
}

impl Default for Alarms {
    fn default() -> Self {
        Self {
            due: AtomicU64::new(u64::MAX),
            timer: AtomicI64::new(i64::MAX),
            due_changed: Notify::new(),
            timer_changed: Notify::new(),
            send: AtomicU64::new(u64::MAX),
            send_changed: Notify::new(),
            tables_changed: Notify::new(),
        }
    }
}

impl Alarms {
    /// Something is due at this store time.
    pub(crate) fn due(&self, at: StoreTime) {
        if self.due.fetch_min(at.0, Ordering::AcqRel) > at.0 {
            self.due_changed.notify_one();
        }
    }

    /// A timer fires at this wall time.
    pub(crate) fn timer(&self, at: WallTime) {
        if self.timer.fetch_min(at.0, Ordering::AcqRel) > at.0 {
            self.timer_changed.notify_one();
        }
    }

    /// An effect is to be tried at this store time.
    pub(crate) fn send(&self, at: StoreTime) {
        if self.send.fetch_min(at.0, Ordering::AcqRel) > at.0 {
            self.send_changed.notify_one();
        }
    }

    /// See [`Self::arm_due`].
    pub(crate) fn arm_send(&self) {
        self.send.store(u64::MAX, Ordering::Release);
    }

    /// See [`Self::set_due`].
    pub(crate) fn set_send(&self, at: u64) {
        self.send.fetch_min(at, Ordering::AcqRel);
    }

    /// Called before the index is read: what is committed from now on rings.
    pub(crate) fn arm_due(&self) {
        self.due.store(u64::MAX, Ordering::Release);
    }

    /// See [`Self::arm_due`].
    pub(crate) fn arm_timer(&self) {
        self.timer.store(i64::MAX, Ordering::Release);
    }

    /// The index says this is the earliest: what is not earlier does not ring. What rang meanwhile
    /// stays.
    pub(crate) fn set_due(&self, at: u64) {
        self.due.fetch_min(at, Ordering::AcqRel);
    }

    /// See [`Self::set_due`].
    pub(crate) fn set_timer(&self, at: i64) {
        self.timer.fetch_min(at, Ordering::AcqRel);
    }

    /// Both indexes are read again.
    pub(crate) fn look_again(&self) {
        self.due_changed.notify_one();
        self.timer_changed.notify_one();
        self.send_changed.notify_one();
        self.tables_changed.notify_one();
    }
}
