//! Schedules as clients read them.

use super::rfc3339;
use crate::api::{Document, FiringKind, FiringView, ScheduleSummary, ScheduleView};
use interlock_kernel::record::{AnswerKind, Fired, Firing, ScheduleRecord};

/// One schedule in a list.
pub(crate) fn schedule_summary(found: &ScheduleRecord) -> ScheduleSummary {
    let schedule = &found.schedule;
    ScheduleSummary {
        schedule: schedule.name.to_string(),
        owner: schedule.owner.clone(),
        cron: schedule.rule.cron.clone(),
        zone: schedule.rule.zone.clone(),
        entity: schedule.entity.to_string(),
        event: schedule.event.to_string(),
        due: found.next.map(rfc3339),
        paused: found.paused,
        last: found.firings.last().map(firing),
    }
}

/// One schedule, with what became of its last due times.
pub(crate) fn schedule(found: &ScheduleRecord) -> ScheduleView {
    let schedule = &found.schedule;
    ScheduleView {
        summary: schedule_summary(found),
        revision: found.revision,
        declared: rfc3339(found.declared),
        digest: found.digest.to_string(),
        payload: schedule.payload.clone().map(Document),
        creates: schedule.create.is_some(),
        overlap: schedule.overlap.to_string(),
        catch_up: schedule.catch_up.to_string(),
        raised: found.raised,
        passed: found.passed,
        firings: found.firings.iter().rev().map(firing).collect(),
        manifest: found.source.clone(),
    }
}

fn firing(firing: &Firing) -> FiringView {
    let (what, execution, until) = match &firing.fired {
        Fired::Raised(AnswerKind::Accepted, execution) => (FiringKind::Accepted, *execution, None),
        Fired::Raised(AnswerKind::Queued, execution) => (FiringKind::Queued, *execution, None),
        Fired::Raised(AnswerKind::Late, execution) => (FiringKind::Late, *execution, None),
        Fired::Raised(AnswerKind::Refused, execution) => (FiringKind::Refused, *execution, None),
        Fired::Refused(_) => (FiringKind::Refused, None, None),
        Fired::Skipped(_) => (FiringKind::Skipped, None, None),
        Fired::Missed(until) => (FiringKind::Missed, None, Some(rfc3339(*until))),
    };
    FiringView {
        due: rfc3339(firing.due),
        at: rfc3339(firing.at),
        what,
        execution,
        until,
        note: firing.fired.to_string(),
    }
}
