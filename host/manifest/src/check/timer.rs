//! Timers have a due time, whichever way their state is entered, and holidays that somebody keeps up to date.

use super::field::Seen;
use crate::calendar;
use crate::draft::{Draft, MoveDraft, StateDraft, TimerDraft};
use crate::log::{Log, Span};
use crate::problem::Code;
use crate::shape::Types;
use interlock_kernel::time::WallTime;
use interlock_kernel::timer::{CalendarRule, Due};
use interlock_kernel::value::{Path, Root};

/// A list of holidays is expected to reach this far, in ms: a year.
const AHEAD_MS: u64 = 366 * 86_400_000;

pub(super) fn check(draft: &Draft<'_>, today: Option<WallTime>, log: &mut Log<'_>) {
    for state in &draft.states {
        for timer in &state.after {
            match &timer.due {
                Due::After(_) => {}
                Due::At(path) => field(draft, state, timer, path, log),
                Due::Calendar(rule) => holidays(rule, &timer.due_at, today, log),
            }
        }
    }
}

/// The list does not end within a year. A rule that comes behind it would be refused.
fn holidays(rule: &CalendarRule, at: &Span, today: Option<WallTime>, log: &mut Log<'_>) {
    let (Some(last), Some(today)) = (rule.holidays.last(), today) else { return };
    if calendar::year(today.plus(AHEAD_MS)).is_none_or(|year| last.year >= year) {
        return;
    }
    let message = format!("the holidays of this timer end with {}: behind it, it is refused", last.year);
    let remedy = format!("add those of {}, and deploy again before that year begins", last.year.saturating_add(1));
    log.add(Code::HolidaysEnd, at, message, remedy).got(format!("a list that ends on {last}"));
}

/// The field of a timer's due time can hold one, whichever way its state is entered.
fn field(draft: &Draft<'_>, state: &StateDraft, timer: &TimerDraft, path: &Path, log: &mut Log<'_>) {
    let at = &timer.due_at;
    if path.root != Root::Event {
        let types = Seen { draft, event: None }.field(path, at, log);
        return holds_a_time(path, types.as_ref(), at, log);
    }
    let enters = |one: &MoveDraft| one.to.as_ref().is_some_and(|to| to.value == state.name.value);
    let without = |way: String, log: &mut Log<'_>| {
        let message = format!("`{}` is also entered by {way}, which has no `{path}`", state.name.value);
        log.add(Code::TimerField, at, message, "keep the instant in data, and name it there: at = \"data.until\"");
    };
    for from in &draft.states {
        for (event, moves) in &from.on {
            if moves.iter().any(enters) {
                let types = Seen { draft, event: Some(&event.value) }.field(path, at, log);
                holds_a_time(path, types.as_ref(), at, log);
            }
        }
        if from.to.iter().any(enters) {
            without(format!("the step of `{}`", from.name.value), log);
        }
        if from.after.iter().any(|timer| enters(&timer.then)) {
            without(format!("a timer of `{}`", from.name.value), log);
        }
        if from.failures().any(|(to, _)| to.is_some_and(|to| to.value == state.name.value)) {
            without(format!("a failure of `{}`", from.name.value), log);
        }
    }
    if draft.initial.as_ref().is_some_and(|initial| initial.value == state.name.value) {
        without("create".to_owned(), log);
    }
}

fn holds_a_time(path: &Path, types: Option<&Types>, at: &Span, log: &mut Log<'_>) {
    let Some(types) = types.filter(|types| !types.has("string") && !types.has("number")) else { return };
    let message = format!("`{path}` is never a time");
    let remedy = "name a field with text in RFC 3339, \"2026-12-24T09:00:00+01:00\", or whole ms since 1970";
    log.add(Code::TypeMismatch, at, message, remedy).expected("text or a number").got(types.words());
}
