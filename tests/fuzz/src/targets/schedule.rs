//! Schedules: every problem has a place, and what is accepted comes again.

use super::holds;
use super::manifest::{place, shown};
use crate::target::{Broken, Seen, Target};
use interlock_kernel::time::WallTime;
use interlock_kernel::view::Rules;
use interlock_manifest::{RuleBook, Severity, parse_schedule, times};

/// See the module.
pub(crate) struct Schedules;

const WORDS: &str = "\
    schedule¦owner¦cron¦zone¦entity¦event¦payload¦due_field¦create¦overlap¦catch_up¦all¦desired¦labels¦skip¦queue¦\
    deliver¦none¦latest¦*¦*/5¦0 9 * * MON-FRI¦@daily¦@yearly¦L¦1#2¦5L¦15W¦JAN-DEC¦29 2¦30 2¦1-5/2¦0,30¦59¦60¦99999¦UTC¦\
    Europe/Berlin¦Pacific/Apia¦m/k¦m¦/¦1d¦1s¦366d¦{}¦[]¦{ ¦ }¦\"\"¦true¦5¦= ¦.¦\n¦, ¦\u{0}¦é¦# ";

/// A Monday in the summer of 2026.
const NOW: WallTime = WallTime(1_782_720_000_000);

impl Target for Schedules {
    fn name(&self) -> &'static str {
        "schedule"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let text = String::from_utf8_lossy(input);
        let (schedule, report) = match parse_schedule("s.schedule.toml", &text) {
            Ok((schedule, report)) => (Some(schedule), report),
            Err(report) => (None, *report),
        };
        let mut seen = Seen::default();
        for problem in &report.problems {
            place(problem, &text)?;
            seen.note(&problem.code);
            problem.message.split(": ").for_each(|part| seen.say(part));
            seen.say(&problem.remedy);
        }
        shown(&report)?;
        let errors = report.count(Severity::Error);
        let whole = errors == 0 && !report.incomplete;
        holds!(schedule.is_some() == whole, "{errors} errors, and a schedule: {}", schedule.is_some());
        let Some(schedule) = schedule else { return Ok(seen) };
        seen.note(&"accepted");
        let comes = times(&schedule.rule, NOW, 3);
        holds!(!comes.is_empty(), "{} was accepted and does not come", schedule.rule);
        holds!(comes.is_sorted_by(|a, b| a < b) && comes.iter().all(|at| *at > NOW), "{}: {comes:?}", schedule.rule);
        for at in comes {
            let back = RuleBook::new().latest(&schedule.rule, at);
            holds!(back == Ok(at), "{}: at {at:?} it came last at {back:?}", schedule.rule);
        }
        Ok(seen)
    }
}
