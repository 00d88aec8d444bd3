//! Timers have a due time, whichever way their state is entered, and holidays that somebody keeps up to date.

use super::field::Seen;
use crate::calendar;
use crate::draft::{Draft, MoveDraft, StateDraft, TimerDraft};
use crate::log::{Log, Span};
use crate::problem::Code;
use crate::shape::Types;
use interlock_kernel::ids::Name;
use interlock_kernel::machine::StateKind;
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
                Due::Step => step(draft, state, timer, log),
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

/// A wait that only a step's timer ends is entered by steps alone; and somebody can set the timer at all.
fn step(draft: &Draft<'_>, state: &StateDraft, timer: &TimerDraft, log: &mut Log<'_>) {
    let name = &state.name.value;
    let by_step = state.step.is_some() || draft.states.iter().any(|from| from.to.iter().any(|one| enters(one, state)));
    if !by_step {
        let message =
            format!("no step sets the timer `{}`: none runs in `{name}`, and none enters it", timer.name.value);
        let remedy = "say when it is due here, or let a step enter the state";
        log.add(Code::TimerField, &timer.due_at, message, remedy);
        return;
    }
    let others = state.after.iter().any(|other| other.due != Due::Step);
    let ends = state.step.is_some() || state.deadline.is_some() || state.waits_forever || others;
    if state.kind == StateKind::Working && !ends {
        for way in ways(draft, state).into_iter().filter(|way| !way.by_step) {
            let message = format!("`{name}` is also entered by {}, which sets no timer: refused", way.words);
            let remedy = "give the state a deadline, another timer or wait = \"forever\"";
            log.add(Code::TimerField, &timer.due_at, message, remedy);
        }
    }
}

/// A way into a state.
struct Way<'d> {
    words: String,
    by_step: bool,
    event: Option<&'d Name>,
}

fn enters(one: &MoveDraft, state: &StateDraft) -> bool {
    one.to.as_ref().is_some_and(|to| to.value == state.name.value)
}

fn ways<'d>(draft: &'d Draft<'_>, state: &StateDraft) -> Vec<Way<'d>> {
    let mut found = Vec::new();
    let mut way = |words: String, by_step, event| found.push(Way { words, by_step, event });
    for from in &draft.states {
        let of = &from.name.value;
        for (event, moves) in &from.on {
            if moves.iter().any(|one| enters(one, state)) {
                way(format!("the event `{}`", event.value), false, Some(&event.value));
            }
        }
        if from.to.iter().any(|one| enters(one, state)) {
            way(format!("the step of `{of}`"), true, None);
        }
        if from.after.iter().any(|timer| enters(&timer.then, state)) {
            way(format!("a timer of `{of}`"), false, None);
        }
        if from.failures().any(|(to, _)| to.is_some_and(|to| to.value == state.name.value)) {
            way(format!("a failure of `{of}`"), false, None);
        }
    }
    if draft.initial.as_ref().is_some_and(|initial| initial.value == state.name.value) {
        way("create".to_owned(), false, None);
    }
    found
}

/// The field of a timer's due time can hold one, whichever way its state is entered.
fn field(draft: &Draft<'_>, state: &StateDraft, timer: &TimerDraft, path: &Path, log: &mut Log<'_>) {
    let at = &timer.due_at;
    if path.root != Root::Event {
        let types = Seen { draft, event: None }.field(path, at, log);
        return holds_a_time(path, types.as_ref(), at, log);
    }
    for way in ways(draft, state) {
        let Some(event) = way.event else {
            let message = format!("`{}` is also entered by {}, which has no `{path}`", state.name.value, way.words);
            let remedy = "keep the instant in data, and name it there: at = \"data.until\"";
            log.add(Code::TimerField, at, message, remedy);
            continue;
        };
        let types = Seen { draft, event: Some(event) }.field(path, at, log);
        holds_a_time(path, types.as_ref(), at, log);
    }
}

fn holds_a_time(path: &Path, types: Option<&Types>, at: &Span, log: &mut Log<'_>) {
    let Some(types) = types.filter(|types| !types.has("string") && !types.has("number")) else { return };
    let message = format!("`{path}` is never a time");
    let remedy = "name a field with text in RFC 3339, \"2026-12-24T09:00:00+01:00\", or whole ms since 1970";
    log.add(Code::TypeMismatch, at, message, remedy).expected("text or a number").got(types.words());
}
