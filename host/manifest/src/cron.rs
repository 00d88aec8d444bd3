//! Rules that come again and again, in the words of cron, by a zone's clocks. croner searches; the zones are the
//! calendar's.
//!
//! **Gap.** Where the clocks jump over a time of day that the rule names, it comes at the first instant after the jump;
//! a rule of every hour or every so many minutes has nothing there.
//! **Overlap.** Where they show a time of day twice, a rule that names it comes the first time; one of every hour or
//! every so many minutes comes both times.

use crate::calendar::{says_nothing, time_zones, zone};
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDate, CivilDateTime, CivilTime, Cron, CronDateTime, Resolution, Weekday};
use interlock_kernel::schedule::Recurrence;
use interlock_kernel::time::WallTime;
use interlock_kernel::view::Breach;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, civil};
use std::cmp::Ordering;

/// What is expected of a text.
pub(crate) const FIELDS: &str = "minute, hour, day of the month, month and day of the week, as in \"30 9 * * MON-FRI\"";

/// The rule of a text of five fields, or of a word such as `@daily`.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn parse(text: &str) -> Result<Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(text).map_err(|error| match error {
        CronError::EmptyPattern => "an empty text".to_owned(),
        CronError::InvalidPattern(why) | CronError::IllegalCharacters(why) | CronError::ComponentError(why) => why,
        CronError::InvalidDate | CronError::InvalidTime | CronError::TimeSearchLimitExceeded => error.to_string(),
    })
}

/// When the rule first comes after an instant.
pub(crate) fn following(rule: &Recurrence, after: WallTime) -> Result<WallTime, Breach> {
    let (cron, start) = ready(rule, after)?;
    let found = cron.find_next_occurrence(&start, false);
    found.map_err(|_| never(rule)).map(|found| WallTime(found.at.as_millisecond()))
}

/// When the rule came last, up to an instant.
pub(crate) fn latest(rule: &Recurrence, up_to: WallTime) -> Result<WallTime, Breach> {
    let (cron, start) = ready(rule, up_to)?;
    let found = cron.find_previous_occurrence(&start, true);
    found.map_err(|_| never(rule)).map(|found| WallTime(found.at.as_millisecond()))
}

fn ready(rule: &Recurrence, from: WallTime) -> Result<(Cron, Local), Breach> {
    let zone = zone(&rule.zone)
        .ok_or_else(|| says_nothing(format!("a zone of the time zone database {}", time_zones()), &rule.zone))?;
    let cron = parse(&rule.cron).map_err(|why| says_nothing(FIELDS, format!("{:?}: {why}", rule.cron)))?;
    let at = Timestamp::from_second(from.0.div_euclid(1_000))
        .map_err(|_| says_nothing("a time between the years -9999 and 9999", format!("{} ms", from.0)))?;
    Ok((cron, Local { at, zone }))
}

fn never(rule: &Recurrence) -> Breach {
    says_nothing("a rule that comes again", rule)
}

/// An instant as a zone's clocks show it.
#[derive(Clone)]
struct Local {
    at: Timestamp,
    zone: TimeZone,
}

impl Local {
    fn datetime(&self) -> civil::DateTime {
        self.zone.to_datetime(self.at)
    }
}

impl CronDateTime for Local {
    fn to_civil(&self) -> CivilDateTime {
        let shown = self.datetime();
        let part = |part: i8| u32::from(part.unsigned_abs());
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(i32::from(shown.year()), part(shown.month()), part(shown.day())),
            CivilTime::from_parts_unchecked(part(shown.hour()), part(shown.minute()), part(shown.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(u32::from(self.datetime().weekday().to_sunday_zero_offset().unsigned_abs()))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let part = |part: u32| i8::try_from(part).map_err(|_| CronError::InvalidDate);
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let (month, day) = (part(civil.month())?, part(civil.day())?);
        let (hour, minute, second) = (part(civil.hour())?, part(civil.minute())?, part(civil.second())?);
        let shown = civil::DateTime::new(year, month, day, hour, minute, second, 0);
        let shown = shown.map_err(|_| CronError::InvalidDate)?;
        let at = |offset: jiff::tz::Offset| {
            let at = offset.to_timestamp(shown).map_err(|_| CronError::InvalidTime)?;
            Ok::<_, CronError>(Self { at, zone: self.zone.clone() })
        };
        Ok(match self.zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => Resolution::Single(at(offset)?),
            AmbiguousOffset::Fold { before, after } => Resolution::Ambiguous(at(before)?, at(after)?),
            AmbiguousOffset::Gap { .. } => Resolution::Gap,
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        let at = self.at.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Some(Self { at, zone: self.zone.clone() })
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}
