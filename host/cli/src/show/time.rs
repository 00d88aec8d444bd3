//! Times as people read them: local, as short as they can be.

use interlock_kernel::time::Span;
use interlock_store::{Clock, SystemClock};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// An RFC 3339 time as local time: the date only if it is another day.
pub(crate) fn clock(rfc3339: &str) -> String {
    local(rfc3339, &TimeZone::system(), now())
}

fn now() -> Timestamp {
    Timestamp::from_millisecond(SystemClock::new().wall_ms()).unwrap_or_default()
}

fn local(rfc3339: &str, zone: &TimeZone, now: Timestamp) -> String {
    let Ok(time) = rfc3339.parse::<Timestamp>() else { return rfc3339.to_owned() };
    let (time, now) = (time.to_zoned_datetime(zone.clone()), now.to_zoned_datetime(zone.clone()));
    let form = if time.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    time.strftime(form).to_string()
}

/// How long ago an RFC 3339 time was, or will be.
pub(crate) fn ago(rfc3339: &str) -> String {
    let Ok(time) = rfc3339.parse::<Timestamp>() else { return rfc3339.to_owned() };
    let ms = now().as_millisecond() - time.as_millisecond();
    span(ms.unsigned_abs())
}

/// A length of time: `200 ms`, `2.9 s`, `15 min`.
pub(crate) fn span(ms: u64) -> String {
    Span(ms).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_shown_only_if_it_is_another_day() {
        let at = |now: &str| {
            let now = now.parse().unwrap_or_default();
            local("2026-03-01T10:15:03.250Z", &TimeZone::UTC, now)
        };
        assert_eq!(at("2026-03-01T23:00:00Z"), "10:15:03");
        assert_eq!(at("2026-03-02T00:00:00Z"), "2026-03-01 10:15:03");
        assert_eq!(local("soon", &TimeZone::UTC, Timestamp::UNIX_EPOCH), "soon");
    }
}
