//! Timers whose due time the step decides.

use crate::{Entity, Rejection};
use std::time::Duration;

/// Part of a millisecond counts as a whole one: nothing is due too early.
pub(crate) fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A timer that a state declares with `due = "step"`: of the visit that the next transition enters, or, for a
/// save, of the one the entity is in. See [`Entity::timer`].
#[derive(Debug)]
#[must_use = "a timer is staged by saying when it is due"]
pub struct Timer<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) name: &'a str,
}

impl Timer<'_> {
    /// Due so long after the commit, by wall time; part of a millisecond counts as a whole one.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid, limit.
    pub fn after(self, wait: Duration) -> Result<(), Rejection> {
        self.entity.timer_after(self.name, whole_ms(wait))
    }

    /// Due at this instant, in milliseconds since 1970; at once if it is past.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid, limit.
    pub fn at_ms(self, unix_ms: i64) -> Result<(), Rejection> {
        self.entity.timer_at(self.name, unix_ms)
    }

    /// Not due at all.
    ///
    /// # Errors
    /// Rejections: fenced, spent, invalid, limit.
    pub fn cancel(self) -> Result<(), Rejection> {
        self.entity.timer_cancel(self.name)
    }
}
