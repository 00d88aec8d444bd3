//! Schedules.

use super::time::clock;
use super::{Paint, fields, table};
use interlock_daemon::api::{FiringKind, FiringView, SchedulePage, ScheduleSummary, ScheduleView, Scheduled};

/// A declaration's answer, with when it comes.
pub(crate) fn scheduled(scheduled: &Scheduled, paint: Paint) -> String {
    let name = paint.bold(&scheduled.schedule);
    let times = match scheduled.times.is_empty() {
        true => "never again".to_owned(),
        false => scheduled.times.iter().map(|time| clock(time)).collect::<Vec<_>>().join(", "),
    };
    match (scheduled.revision, scheduled.new) {
        (Some(revision), true) => {
            format!("{name}   declaration {revision} {}   comes {times}\n", paint.green("in force"))
        }
        (Some(revision), false) => format!("{name}   declaration {revision} is in force   comes {times}\n"),
        (None, _) => format!("{name}   is sound   would come {times}\n"),
    }
}

/// A page of schedules.
pub(crate) fn schedules(page: &SchedulePage) -> String {
    let rows = page.schedules.iter().map(|one| {
        vec![
            one.schedule.clone(),
            rule(one),
            one.entity.clone(),
            one.event.clone(),
            next(one),
            one.last.as_ref().map(|last| format!("{} {}", clock(&last.due), said(last))).unwrap_or_default(),
        ]
    });
    table(&["schedule", "rule", "entity", "event", "next", "last"], &rows.collect::<Vec<_>>())
}

/// One schedule.
pub(crate) fn schedule(view: &ScheduleView, paint: Paint) -> String {
    let one = &view.summary;
    let paused = if one.paused { format!("   {}", paint.yellow("paused")) } else { String::new() };
    let mut text = format!("{}   {} to {}{paused}\n", paint.bold(&one.schedule), one.event, one.entity);
    let creates = if view.creates { ", made if it is not there" } else { "" };
    text.push_str(&fields(
        "",
        &[
            ("rule", rule(one)),
            ("next", next(one)),
            ("entity", format!("{}{creates}", one.entity)),
            ("payload", view.payload.as_ref().map(|payload| payload.0.to_string()).unwrap_or_default()),
            ("overlap", view.overlap.clone()),
            ("catch up", view.catch_up.clone()),
            ("so far", format!("{} raised, {} passed", view.raised, view.passed)),
            ("owner", one.owner.clone()),
            ("declared", format!("{}, declaration {}", clock(&view.declared), view.revision)),
        ],
    ));
    if !view.firings.is_empty() {
        let rows: Vec<_> = view.firings.iter().rev().map(firing).collect();
        text.push('\n');
        text.push_str(&table(&["due", "looked at", "what became of it"], &rows));
    }
    text
}

fn rule(one: &ScheduleSummary) -> String {
    format!("{} {}", one.cron, one.zone)
}

fn next(one: &ScheduleSummary) -> String {
    match (&one.due, one.paused) {
        (Some(due), _) => clock(due),
        (None, true) => "paused".to_owned(),
        (None, false) => "never again".to_owned(),
    }
}

fn firing(one: &FiringView) -> Vec<String> {
    vec![clock(&one.due), clock(&one.at), said(one)]
}

fn said(one: &FiringView) -> String {
    match (one.what, &one.until) {
        (FiringKind::Missed, Some(until)) if *until != one.due => format!("missed, and all up to {}", clock(until)),
        (FiringKind::Missed, _) => "missed".to_owned(),
        _ => one.note.clone(),
    }
}
