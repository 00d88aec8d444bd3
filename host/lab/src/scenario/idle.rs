//! What an entity waits for, from what is on record: why nothing moves, or what will move it.

use interlock_coordinator::{Awaited, Coming, EntityView};
use interlock_kernel::machine::{DESIRED_CHANGED, State};
use interlock_kernel::time::Span;

/// Where an entity stands, and what it waits for: `provisioning, waits for the timer after in 90 s`.
pub(super) fn stands(view: &EntityView, coming: &[Coming], hung: &[String]) -> String {
    let head = &view.head;
    let machine = &view.revision.machine;
    let Some(state) = machine.state(&head.state) else {
        return format!("{}, which its machine does not have", head.state);
    };
    if state.kind.is_final() {
        return format!("{}, for good", head.state);
    }
    if let Some(park) = &head.park {
        let reason = park.reason.lines().next().unwrap_or_default();
        return format!("{}, parked: {} ({reason}); unpark it or kill it", head.state, park.code);
    }
    let mut waits: Vec<String> = coming
        .iter()
        .filter(|one| one.entity.as_ref() == Some(&view.id))
        .map(|one| of_coming_to(one, view, state))
        .collect();
    if let Some(lease) = &head.awaits {
        waits.push(format!("the lease {lease}"));
    }
    let events: Vec<&str> =
        state.on.keys().filter(|name| **name != *DESIRED_CHANGED).map(interlock_kernel::ids::Name::as_str).collect();
    if !events.is_empty() {
        let word = if events.len() == 1 { "the event" } else { "one of the events" };
        waits.push(format!("{word} {}", events.join(", ")));
    }
    let busy = match (&head.lock, &state.step) {
        (None, _) => ", at rest".to_owned(),
        (Some(_), Some(step)) if hung.contains(&view.id.to_string()) => {
            format!(", its step {step} computes without end")
        }
        (Some(lock), Some(step)) => match lock.attempt {
            Some(open) => format!(", attempt {} of {step} runs", open.ordinal),
            None => String::new(),
        },
        (Some(_), None) => String::new(),
    };
    let waits = match waits.as_slice() {
        [] => "nothing will move it by itself".to_owned(),
        waits => format!("waits for {}", waits.join(", or ")),
    };
    format!("{}{busy}, {waits}", head.state)
}

fn of_coming_to(coming: &Coming, view: &EntityView, state: &State) -> String {
    let attempts = view.head.lock.as_ref().map_or(0, |lock| lock.attempts);
    match (&coming.what, &state.step) {
        (Awaited::Attempt, Some(step)) => {
            format!("attempt {} of {step} in {}", attempts.saturating_add(1), Span(coming.in_ms))
        }
        _ => of_coming(coming),
    }
}

/// What time brings, and when.
pub(super) fn of_coming(coming: &Coming) -> String {
    let within = Span(coming.in_ms);
    match &coming.what {
        Awaited::Timer(name) => format!("the timer {name} in {within}"),
        Awaited::Schedule(name) => format!("the schedule {name} in {within}"),
        Awaited::Attempt => format!("the next attempt in {within}"),
        Awaited::Deadline => format!("its deadline in {within}"),
        Awaited::AttemptDeadline(why) => format!("the {why} of its attempt in {within}"),
        Awaited::Effect(target, number) => format!("the next try of effect {number} on {target} in {within}"),
        Awaited::Answer(target, number) => format!("the timeout of effect {number} on {target} in {within}"),
        Awaited::Lapse(lease) | Awaited::AttemptLapse(lease) => format!("the end of the lease {lease} in {within}"),
        Awaited::Row(table, key) => format!("what time does to the row {table}/{key} in {within}"),
    }
}
