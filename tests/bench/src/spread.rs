//! Many measured times, as the few numbers that are shown of them.

use std::time::Duration;

/// Times of one kind, in the order they were measured.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<u32>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        // 32 bits of tenths of a microsecond are seven minutes; nothing here takes that long.
        let tenths = time.as_nanos() / 100;
        self.0.push(u32::try_from(tenths).unwrap_or(u32::MAX));
    }

    pub(crate) fn append(&mut self, other: &mut Times) {
        self.0.append(&mut other.0);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn spread(mut self) -> Spread {
        self.0.sort_unstable();
        let at = |percent: usize| {
            let index = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
            self.0.get(index).map_or(0.0, |tenths| f64::from(*tenths) / 10.0)
        };
        Spread { p50_us: at(50), p99_us: at(99), max_us: at(100) }
    }
}

/// Percentiles in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
}

/// How many a second.
pub(crate) fn rate(count: usize, within: Duration) -> f64 {
    number(count) / within.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// What one of `count` took, in microseconds.
pub(crate) fn share_us(took: Duration, count: usize) -> f64 {
    took.as_secs_f64() * 1e6 / number(count.max(1))
}

/// A count as a figure.
pub(crate) fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

/// Bytes as a figure; exact up to 2^53.
#[allow(clippy::cast_precision_loss, reason = "sizes measured here are far below 2^53")]
pub(crate) fn bytes(count: u64) -> f64 {
    count as f64
}
