//! Effects: committed with a transition, tried in the order of their lane, settled once.

use crate::build::{Mc, doc, event, machine, name, rest, stay, step, to, wait};
use crate::world::{Answered, World, permanent};
use interlock_kernel::command::{Change, Outcome, Said, Stage, StagedEffect, Tried, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{EFFECTS_STAGED_MAX, LANE_MAX};
use interlock_kernel::machine::{OnLate, Retry, Target};
use interlock_kernel::record::{CauseKind, Effect, EffectWhat, Stands, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::timer::Due;
use std::collections::BTreeMap;

pub(crate) fn target(url: &str) -> Target {
    Target {
        method: "POST".to_owned(),
        url: url.to_owned(),
        timeout_ms: 10_000,
        retry: Retry { attempts: 3, first_ms: 1_000, factor: 2.0, max_ms: 60_000, jitter: 0.0 },
        secret: None,
        fence: None,
        on_late: OnLate::Record,
        skips_dead: false,
        answer_bytes_max: 65_536,
    }
}

/// Opens a ticket, waits for its number; a second step may close it.
pub(crate) fn ticket() -> Mc {
    machine("ticket", "idle")
        .data("{}")
        .event("open")
        .event("stop")
        .state("idle", rest().on("open", to("opening")))
        .state(
            "opening",
            step("open").to(to("waiting")).to(to("idle")).to(to("blind")).deadline(600_000).on_permanent(to("idle")),
        )
        .state(
            "waiting",
            wait()
                .deadline(600_000)
                .on("effect-done", to("idle").when("event.status eq 201").set("data.id = event.body"))
                .on("effect-failed", to("idle").set("data.failed = event.code"))
                .on("stop", to("idle")),
        )
        .state("blind", wait().on("stop", to("idle")))
        .with(|machine| {
            machine.targets.insert(name("tickets"), target("https://tickets.example/{project}"));
            machine.targets.insert(name("other"), target("https://other.example/"));
        })
}

pub(crate) fn asked(target: &str) -> StagedEffect {
    let fill = if target == "tickets" { vec![("project".to_owned(), "atlas".to_owned())] } else { Vec::new() };
    StagedEffect {
        target: name(target),
        fill: fill.into_iter().collect(),
        headers: Vec::new(),
        body: Some(doc(r#"{"title":"x"}"#)),
    }
}

pub(crate) fn carrying(effects: Vec<StagedEffect>) -> Change {
    Change { stage: Stage { effects, ..Stage::default() }, ..Change::default() }
}

pub(crate) fn opening() -> (World, EntityId) {
    let (mut world, id) = World::of(ticket(), "ticket/a");
    world.send(&id, "open", "o1");
    (world, id)
}

pub(crate) fn waiting() -> (World, EntityId) {
    let (mut world, id) = opening();
    world.transition(&id, "waiting", carrying(vec![asked("tickets")])).unwrap();
    (world, id)
}

pub(crate) fn said(status: u16, body: &str) -> Said {
    Said { status, body: Some(doc(body)), truncated: false }
}

pub(crate) fn try_it(world: &mut World, id: &EntityId, number: u64) -> Option<Effect> {
    match world.ok(Verb::Send(id.clone(), number)) {
        Outcome::Sending(sending) => Some(sending.effect),
        Outcome::Nothing => None,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn settle(world: &mut World, id: &EntityId, number: u64, nth: u32, tried: Tried) {
    world.ok(Verb::Settle { entity: id.clone(), number, nth, tried });
}

pub(crate) fn effect(world: &World, id: &EntityId, number: u64) -> Option<Effect> {
    world.effects().get(id)?.get(&number).cloned()
}

pub(crate) fn again(reason: &str) -> Tried {
    Tried::Again { after_ms: None, reason: reason.to_owned(), maybe_sent: true }
}

pub(crate) fn whats(world: &World, id: &EntityId) -> Vec<(EffectWhat, u64, String)> {
    let head = world.head(id);
    let entries = world.history(id, &head).into_iter();
    entries
        .filter_map(|entry| match entry.what {
            What::Effect(what, _, number, note) => Some((what, number, note)),
            _ => None,
        })
        .collect()
}

fn filled() -> (World, EntityId) {
    let (mut world, id) = opening();
    for _ in 0..LANE_MAX / EFFECTS_STAGED_MAX {
        world.save(&id, carrying(vec![asked("other"); EFFECTS_STAGED_MAX])).unwrap();
    }
    (world, id)
}

/// A lane that takes no more.
pub(crate) fn full() -> Answered {
    let (mut world, id) = filled();
    world.transition(&id, "waiting", carrying(vec![asked("tickets")]))
}

/// The same, with more than one commit carries.
pub(crate) fn full_and_too_many() -> Answered {
    let (mut world, id) = filled();
    world.transition(&id, "waiting", carrying(vec![asked("tickets"); EFFECTS_STAGED_MAX + 1]))
}

#[test]
fn an_effect_exists_exactly_if_its_transition_is_committed() {
    let (mut world, id) = opening();
    let claim = world.claim(&id);
    let refused = world.transition(&id, "nowhere", carrying(vec![asked("tickets")])).unwrap_err();
    assert_eq!((refused.code, effect(&world, &id, 1)), (Code::NotAllowed, None));
    world.transition(&id, "waiting", carrying(vec![asked("tickets")])).unwrap();
    let made = effect(&world, &id, 1).unwrap();
    assert_eq!(made.url, "https://tickets.example/atlas");
    assert_eq!((made.resource.as_str(), made.token, made.attempt), ("ticket/a", claim.token, Some(1)));
    assert_eq!((made.version, made.execution), (world.head(&id).version, 1));
    assert_eq!(made.stands, Stands::Due(interlock_kernel::time::StoreTime(world.store)));
}

#[test]
fn a_result_is_an_event_of_the_state_that_waits_for_it() {
    let (mut world, id) = waiting();
    let sent = try_it(&mut world, &id, 1).unwrap();
    assert_eq!(sent.tries, 1);
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, r#"{"id":7}"#)));
    let head = world.head(&id);
    assert_eq!((head.state.as_str(), head.lock.is_none()), ("idle", true));
    assert_eq!(world.data(&id), r#"{"id":{"id":7}}"#);
    assert_eq!(head.cause.kind, CauseKind::Effect);
    assert_eq!(head.cause.id.unwrap().as_str(), sent.key);
    assert_eq!(whats(&world, &id), [(EffectWhat::Done, 1, "status 201".to_owned())]);
    assert_eq!(effect(&world, &id, 1), None);
}

#[test]
fn a_result_that_the_state_does_not_take_is_on_record_and_strands_nobody_silently() {
    let (mut world, id) = opening();
    world.transition(&id, "blind", carrying(vec![asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, "1")));
    let head = world.head(&id);
    assert_eq!(whats(&world, &id), [(EffectWhat::Done, 1, "status 201; not waited for".to_owned())]);
    assert_eq!(head.park.unwrap().code, "stranded");
}

#[test]
fn a_wait_for_an_effect_may_leave_its_steps_timer_unset() {
    let blind = wait().timer("nag", Due::Step, to("idle")).on("stop", to("idle"));
    let (mut world, id) = World::of(ticket().state("blind", blind), "ticket/a");
    world.send(&id, "open", "o1");
    let refused = world.transition(&id, "blind", carrying(Vec::new())).unwrap_err();
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Invalid, "timer nag of blind"));
    world.transition(&id, "blind", carrying(vec![asked("tickets")])).unwrap();
    assert_eq!(world.head(&id).timers, []);
}

#[test]
fn a_try_that_may_work_later_is_repeated_under_the_same_key_after_its_wait() {
    let (mut world, id) = waiting();
    let first = try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, again("status 503"));
    assert_eq!(try_it(&mut world, &id, 1), None, "before its time");
    world.pass(999);
    assert_eq!(try_it(&mut world, &id, 1), None, "before its time");
    world.pass(1);
    let second = try_it(&mut world, &id, 1).unwrap();
    assert_eq!((second.key, second.url, second.tries), (first.key, first.url, 2));
}

#[test]
fn the_pause_a_target_asks_for_is_a_lower_bound() {
    let (mut world, id) = waiting();
    try_it(&mut world, &id, 1).unwrap();
    let tried = Tried::Again { after_ms: Some(30_000), reason: "status 429".to_owned(), maybe_sent: false };
    settle(&mut world, &id, 1, 1, tried);
    world.pass(29_999);
    assert_eq!(try_it(&mut world, &id, 1), None);
    world.pass(1);
    assert!(try_it(&mut world, &id, 1).is_some());
}

#[test]
fn used_up_it_is_the_event_effect_failed() {
    let (mut world, id) = waiting();
    for nth in 1..=3 {
        world.pass(60_000);
        try_it(&mut world, &id, 1).unwrap();
        settle(&mut world, &id, 1, nth, again("status 500"));
    }
    assert_eq!(world.data(&id), r#"{"failed":"exhausted"}"#);
    assert_eq!(world.head(&id).state.as_str(), "idle");
    assert_eq!(effect(&world, &id, 1), None);
}

#[test]
fn used_up_where_nobody_takes_it_parks_and_holds_its_lane_until_an_operator_acts() {
    let (mut world, id) = opening();
    world.transition(&id, "blind", carrying(vec![asked("tickets"), asked("other")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Failed(said(404, "null")));
    let head = world.head(&id);
    assert_eq!(head.park.unwrap().code, "effect-failed");
    assert_eq!((head.outbox.unsettled, head.outbox.dead), (1, 1));
    assert_eq!(effect(&world, &id, 2).unwrap().stands, Stands::Waits, "behind it");
    world.ok(Verb::Retry(id.clone(), 1));
    world.ok(Verb::Retry(id.clone(), 1));
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Failed(said(404, "null")));
    world.ok(Verb::Drop { entity: id.clone(), number: 1, reason: "by hand".to_owned() });
    assert!(try_it(&mut world, &id, 2).is_some(), "the lane goes on");
    let refused = world.refused(Verb::Drop { entity: id.clone(), number: 1, reason: String::new() });
    assert_eq!(refused.code, Code::NotFound);
}

#[test]
fn a_lane_that_skips_what_is_given_up_goes_on() {
    let skipping = ticket().with(|machine| {
        machine.targets.get_mut(&name("tickets")).unwrap().skips_dead = true;
    });
    let (mut world, id) = World::of(skipping, "ticket/a");
    world.send(&id, "open", "o1");
    world.transition(&id, "blind", carrying(vec![asked("tickets"), asked("other")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Failed(said(404, "null")));
    assert!(world.head(&id).park.is_none());
    assert!(try_it(&mut world, &id, 2).is_some());
    world.ok(Verb::Retry(id.clone(), 1));
    assert_eq!(try_it(&mut world, &id, 1), None, "one in flight");
    settle(&mut world, &id, 2, 1, Tried::Failed(said(404, "null")));
    assert!(try_it(&mut world, &id, 1).is_some(), "its turn, and the other is passed over");
    world.ok(Verb::Retry(id.clone(), 2));
    assert_eq!(try_it(&mut world, &id, 2), None, "one in flight");
}

#[test]
fn what_was_given_up_goes_with_the_visit_that_is_left() {
    let (mut world, id) = opening();
    world.transition(&id, "blind", carrying(vec![asked("tickets"), asked("other")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Failed(said(404, "null")));
    world.send(&id, "stop", "s1");
    assert_eq!(effect(&world, &id, 1), None);
    assert!(try_it(&mut world, &id, 2).is_some(), "what was not tried yet is still asked for");
}

#[test]
fn a_lane_is_in_order_with_one_in_flight() {
    let (mut world, id) = opening();
    world.transition(&id, "waiting", carrying(vec![asked("tickets"), asked("tickets")])).unwrap();
    assert_eq!(try_it(&mut world, &id, 2), None);
    try_it(&mut world, &id, 1).unwrap();
    assert_eq!(try_it(&mut world, &id, 2), None);
    settle(&mut world, &id, 1, 1, Tried::Done(said(200, "1")));
    assert_eq!(try_it(&mut world, &id, 2).unwrap().tries, 1);
}

#[test]
fn asked_again_after_a_lost_answer_it_is_the_same_try() {
    let (mut world, id) = waiting();
    let first = try_it(&mut world, &id, 1).unwrap();
    assert_eq!(try_it(&mut world, &id, 1), Some(first));
}

#[test]
fn a_result_told_twice_or_of_another_try_is_a_fact() {
    let (mut world, id) = waiting();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, again("status 503"));
    world.pass(60_000);
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, "1")));
    assert_eq!(world.head(&id).state.as_str(), "waiting", "of the first try, which is over");
    settle(&mut world, &id, 1, 2, Tried::Done(said(201, "1")));
    let version = world.head(&id).version;
    settle(&mut world, &id, 1, 2, Tried::Done(said(201, "1")));
    assert_eq!((world.head(&id).version, world.head(&id).state.as_str()), (version, "idle"));
}

#[test]
fn in_flight_when_its_host_died_it_is_tried_again_and_counts_as_perhaps_done() {
    let (mut world, id) = waiting();
    let first = try_it(&mut world, &id, 1).unwrap();
    world.reboot();
    assert_eq!(try_it(&mut world, &id, 1), None, "the session that sent it is over");
    world.ok(Verb::Resend(id.clone(), 1));
    world.ok(Verb::Resend(id.clone(), 1));
    let second = try_it(&mut world, &id, 1).unwrap();
    assert_eq!((second.key, second.tries, second.maybe_sent), (first.key, 1, true));
}

#[test]
fn a_failure_drops_what_was_not_sent_and_settles_what_may_have_been() {
    let (mut world, id) = opening();
    world.save(&id, carrying(vec![asked("tickets"), asked("other")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    world.end(&id, permanent("no use")).unwrap();
    assert_eq!(world.head(&id).state.as_str(), "idle");
    assert_eq!(effect(&world, &id, 2), None, "unsent");
    let dropped = (EffectWhat::Dropped, 2, "unsent, its execution failed".to_owned());
    assert_eq!(whats(&world, &id), [dropped]);
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, "1")));
    let done = (EffectWhat::Done, 1, "status 201, after its execution".to_owned());
    assert_eq!(whats(&world, &id).pop(), Some(done));
}

#[test]
fn kill_and_unlock_drop_what_was_not_sent() {
    for end in [
        |id: EntityId| Verb::Kill { entity: id, reason: "enough".to_owned() },
        |id: EntityId| Verb::Unlock { entity: id, to: name("idle"), force: true, reason: "enough".to_owned() },
    ] {
        let (mut world, id) = opening();
        world.save(&id, carrying(vec![asked("tickets"), asked("other")])).unwrap();
        try_it(&mut world, &id, 1).unwrap();
        world.ok(end(id.clone()));
        assert_eq!((effect(&world, &id, 1).is_some(), effect(&world, &id, 2)), (true, None));
        assert_eq!(world.refused(Verb::Delete(id.clone())).code, Code::Busy, "outstanding");
        settle(&mut world, &id, 1, 1, again("connection reset"));
        world.pass(60_000);
        try_it(&mut world, &id, 1).unwrap();
        settle(&mut world, &id, 1, 2, Tried::Done(said(200, "1")));
        world.ok(Verb::Delete(id.clone()));
    }
}

#[test]
fn a_late_success_is_undone_where_its_target_says_so() {
    let undoing = ticket().with(|machine| {
        machine.targets.insert(name("undo"), target("https://tickets.example/{project}/undo"));
        machine.targets.get_mut(&name("tickets")).unwrap().on_late = OnLate::Compensate(name("undo"));
    });
    let (mut world, id) = World::of(undoing, "ticket/a");
    world.send(&id, "open", "o1");
    world.save(&id, carrying(vec![asked("tickets")])).unwrap();
    let sent = try_it(&mut world, &id, 1).unwrap();
    world.end(&id, permanent("no use")).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, r#"{"id":7}"#)));
    let undo = try_it(&mut world, &id, 2).unwrap();
    assert_eq!(undo.url, "https://tickets.example/atlas/undo");
    assert!(undo.token > sent.token);
    let body = undo.body.unwrap();
    assert_eq!(body.value()["undoes"], sent.key.as_str());
    assert_eq!(body.value()["result"]["body"]["id"], 7);
}

/// Found by the simulator: the next execution was at work, with an older token than what undid the first one's request,
/// and its own request would have been refused behind it.
#[test]
fn what_undoes_a_late_success_does_not_outrank_the_attempt_that_is_at_work() {
    let undone = ticket().with(|machine| {
        machine.targets.insert(name("undo"), target("https://tickets.example/{project}"));
        machine.targets.get_mut(&name("tickets")).unwrap().on_late = OnLate::Compensate(name("undo"));
    });
    let (mut world, id) = World::of(undone, "ticket/a");
    world.send(&id, "open", "o1");
    world.transition(&id, "waiting", carrying(vec![asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    world.send(&id, "stop", "s1");
    world.send(&id, "open", "o2");
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, "7")));
    let open = world.head(&id).lock.and_then(|lock| lock.attempt).unwrap();
    assert_eq!(effect(&world, &id, 2).unwrap().token, open.token, "at work: as one of its own");
    world.transition(&id, "waiting", carrying(vec![asked("tickets")])).unwrap();
    assert_eq!(effect(&world, &id, 3).unwrap().token, open.token, "behind it in the lane, and no lower");
}

#[test]
fn a_late_success_is_an_event_where_its_target_says_so() {
    let late = ticket()
        .state("idle", rest().on("open", to("opening")).on("effect-done", stay().set("data.late = true")))
        .with(|machine| machine.targets.get_mut(&name("tickets")).unwrap().on_late = OnLate::Event);
    let (mut world, id) = World::of(late, "ticket/a");
    world.send(&id, "open", "o1");
    world.transition(&id, "idle", carrying(vec![asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, "1")));
    assert_eq!(world.data(&id), r#"{"late":true}"#);
}

#[test]
fn a_receiver_that_has_seen_a_higher_token_settles_it_as_fenced() {
    let (mut world, id) = waiting();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Fenced(said(412, "null")));
    assert_eq!(world.data(&id), r#"{"failed":"fenced"}"#);
    assert_eq!(whats(&world, &id)[0].0, EffectWhat::Fenced);
}

#[test]
fn a_target_that_the_machine_no_longer_declares_is_given_up_by_name() {
    let (mut world, id) = waiting();
    world.deploy(ticket().with(|machine| {
        machine.targets.remove(&name("tickets"));
    }));
    world.send(&id, "stop", "s1");
    world.send(&id, "open", "o2"); // follows the new revision
    assert_eq!(try_it(&mut world, &id, 1), None);
    let (what, number, note) = whats(&world, &id).pop().unwrap();
    assert_eq!((what, number), (EffectWhat::Failed, 1));
    assert!(note.starts_with("withdrawn: target tickets is no longer declared"), "{note}");
}

#[test]
fn a_full_lane_refuses_the_transition_and_nothing_of_it_is_there() {
    let refused = full().unwrap_err();
    assert_eq!(refused.code, Code::OutboxFull);
    assert!(refused.retryable && refused.retry_after_ms.is_some());
    let (mut world, id) = opening();
    world.save(&id, carrying(vec![asked("other"); EFFECTS_STAGED_MAX])).unwrap();
    world.transition(&id, "waiting", carrying(vec![asked("other"); LANE_MAX - EFFECTS_STAGED_MAX])).unwrap();
    assert_eq!(world.effects()[&id].len(), LANE_MAX);
}

#[test]
fn what_cannot_be_asked_for_is_refused_by_name() {
    let (mut world, id) = opening();
    let too_many = world.save(&id, carrying(vec![asked("other"); EFFECTS_STAGED_MAX + 1])).unwrap_err();
    assert_eq!((too_many.code, too_many.got.as_str()), (Code::Limit, "17"));
    let unknown = StagedEffect { target: name("ticket"), ..asked("tickets") };
    let unknown = world.save(&id, carrying(vec![unknown])).unwrap_err();
    assert_eq!((unknown.code, unknown.got.as_str()), (Code::NotAllowed, "ticket (did you mean tickets?)"));
    let unfilled = StagedEffect { fill: BTreeMap::new(), ..asked("tickets") };
    assert_eq!(world.save(&id, carrying(vec![unfilled])).unwrap_err().code, Code::Invalid);
    let header = |bytes: usize| vec![("x".to_owned(), "y".repeat(bytes))];
    let long = StagedEffect { headers: header(16 * 1024), ..asked("other") };
    assert_eq!(world.save(&id, carrying(vec![long])).unwrap_err().code, Code::Limit);
    let fits = StagedEffect { headers: header(16 * 1024 - 1), ..asked("other") };
    world.save(&id, carrying(vec![fits])).unwrap();
    let many = StagedEffect { headers: vec![(String::new(), String::new()); 17], ..asked("other") };
    assert_eq!(world.save(&id, carrying(vec![many])).unwrap_err().code, Code::Limit);
    let huge = StagedEffect { body: Some(Doc::new("x".repeat(300_000).into())), ..asked("other") };
    assert_eq!(world.save(&id, carrying(vec![huge])).unwrap_err().code, Code::Limit);
    assert_eq!(world.effects()[&id].len(), 1);
}

#[test]
fn nobody_sends_what_only_the_host_raises() {
    let (mut world, id) = waiting();
    for own in ["effect-done", "effect-failed", "desired-changed"] {
        assert_eq!(world.deliver(&id, event(own, "x")).unwrap_err().code, Code::Invalid);
    }
}
