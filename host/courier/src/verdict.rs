//! What an answer, or its absence, means for the outbox.

use crate::outbound::{Answer, Refusal, SendError};
use std::time::{Duration, UNIX_EPOCH};

/// The longest that a target's `Retry-After` is followed: somebody who writes a year means "do not know".
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);

/// What to do with the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done: a status from 200 to 299.
    Delivered,
    /// Worth another try.
    Retry {
        /// Not before, if the target said so; at most [`RETRY_AFTER_MAX`].
        after: Option<Duration>,
    },
    /// The target has seen a higher fencing token: 412.
    Fenced,
    /// The target does not want it, and repeating changes nothing.
    Failed,
    /// It may not be sent.
    Refused(Refusal),
}

/// Judges one try. `wall_ms` is the wall clock in ms since the Unix epoch: `Retry-After` may be a date.
///
/// | | |
/// |---|---|
/// | 2xx | delivered |
/// | 412 | fenced |
/// | 408, 425, 429, 5xx | retry, by `Retry-After` |
/// | every other status, a redirect that is not followed | failed |
/// | no answer: a timeout, an end, one that is no HTTP or whose head is too large, every failure on the way | retry |
/// | denied by configuration | refused |
#[must_use]
pub fn classify(tried: &Result<Answer, SendError>, wall_ms: i64) -> Verdict {
    match tried {
        Ok(answer) => match answer.status {
            200..=299 => Verdict::Delivered,
            412 => Verdict::Fenced,
            408 | 425 | 429 | 500..=599 => {
                Verdict::Retry { after: answer.header("retry-after").and_then(|value| retry_after(value, wall_ms)) }
            }
            _ => Verdict::Failed,
        },
        Err(SendError::Refused(refusal)) => Verdict::Refused(refusal.clone()),
        Err(SendError::Redirected { .. }) => Verdict::Failed,
        // Also what is no HTTP: it has no status to fail with, and who answers so may be half up.
        Err(SendError::Broken { .. }) => Verdict::Retry { after: None },
    }
}

/// RFC 9110, 10.2.3: seconds, or a date. What cannot be read is as if it were not there.
fn retry_after(value: &str, wall_ms: i64) -> Option<Duration> {
    let value = value.trim();
    let wait = if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() {
        // More digits than a number holds are still a number of seconds.
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        let date = httpdate::parse_http_date(value).ok()?;
        let now = UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(wall_ms).unwrap_or(0)))?;
        // A date that has passed: at once.
        date.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(RETRY_AFTER_MAX))
}
