//! What an outbox holds back, keeps and lets go, rule by rule: tries, operators, late results, lanes, bounds.

use crate::build::{Mc, name, rest, stay, step, to, value, wait};
use crate::effects::{again, asked, carrying, effect, opening, said, settle, target, ticket, try_it, waiting, whats};
use crate::world::{World, permanent};
use interlock_kernel::command::{LeaseAsk, Outcome, StagedEffect, Tried, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{
    EFFECT_HEADERS_MAX, EFFECT_RETRY_AFTER_MS_MAX, EFFECTS_MAX, EFFECTS_STAGED_MAX, LANE_MAX,
};
use interlock_kernel::machine::{FailurePath, LeaseSpec, OnLate, Retry};
use interlock_kernel::record::{EffectWhat, FactKind, Key, Stands};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::StoreTime;
use interlock_kernel::timer::Due;
use interlock_kernel::view::Wake;

fn opened(machine: Mc) -> (World, EntityId) {
    let (mut world, id) = World::of(machine, "ticket/a");
    world.send(&id, "open", "o1");
    (world, id)
}

fn refused() -> Tried {
    Tried::Failed(said(404, "null"))
}

fn drop_it(id: &EntityId, number: u64) -> Verb {
    Verb::Drop { entity: id.clone(), number, reason: "by hand".to_owned() }
}

fn changed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Now { changed: true, .. })
}

/// The effect of an execution that went to rest, which another one has followed.
fn followed() -> (World, EntityId) {
    let (mut world, id) = opening();
    world.transition(&id, "idle", carrying(vec![asked("tickets")])).unwrap();
    world.send(&id, "open", "o2");
    (world, id)
}

#[test]
fn a_result_of_a_try_that_is_over_changes_nothing_while_the_next_is_waited_for() {
    let (mut world, id) = waiting();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, again("status 503"));
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, "1")));
    let head = world.head(&id);
    assert_eq!((head.state.as_str(), head.facts[&FactKind::LateEffect]), ("waiting", 1));
    assert!(effect(&world, &id, 1).is_some());
}

#[test]
fn an_effect_that_one_try_may_have_brought_to_its_target_may_have_come_there_for_good() {
    let (mut world, id) = waiting();
    let mut seen = Vec::new();
    for (nth, maybe_sent) in [(1, false), (2, true)] {
        try_it(&mut world, &id, 1).unwrap();
        let tried = Tried::Again { after_ms: None, reason: "reset".to_owned(), maybe_sent };
        settle(&mut world, &id, 1, nth, tried);
        seen.push(effect(&world, &id, 1).unwrap().maybe_sent);
        world.pass(60_000);
    }
    assert_eq!(seen, [false, true]);
    world.ok(Verb::Retry(id.clone(), 1));
    try_it(&mut world, &id, 1).unwrap();
    let tried = Tried::Again { after_ms: None, reason: "no route".to_owned(), maybe_sent: false };
    settle(&mut world, &id, 1, 1, tried);
    assert!(effect(&world, &id, 1).unwrap().maybe_sent, "as the second try was");
}

#[test]
fn only_what_an_ended_session_had_in_flight_is_sent_again() {
    let (mut world, id) = waiting();
    for begun in [false, true] {
        if begun {
            try_it(&mut world, &id, 1).unwrap();
        }
        let before = effect(&world, &id, 1);
        world.ok(Verb::Resend(id.clone(), 1));
        assert_eq!(effect(&world, &id, 1), before);
        assert!(world.wrote.is_empty());
    }
}

#[test]
fn an_operator_retries_what_is_due_or_given_up_and_leaves_the_rest_to_itself() {
    let (mut world, id) = opening();
    world.transition(&id, "waiting", carrying(vec![asked("tickets"), asked("tickets")])).unwrap();
    assert!(changed(&world.ok(Verb::Retry(id.clone(), 1))), "due");
    try_it(&mut world, &id, 1).unwrap();
    for number in [1, 2] {
        let before = effect(&world, &id, number);
        assert!(!changed(&world.ok(Verb::Retry(id.clone(), number))), "in flight, and behind it");
        assert_eq!(effect(&world, &id, number), before);
        assert!(world.wrote.is_empty());
    }
}

#[test]
fn what_is_in_flight_is_not_given_up_and_what_may_have_come_there_says_so() {
    let (mut world, id) = opening();
    world.transition(&id, "waiting", carrying(vec![asked("tickets"), asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    let busy = world.refused(drop_it(&id, 1));
    assert_eq!((busy.code, busy.retryable), (Code::Busy, true));
    settle(&mut world, &id, 1, 1, again("status 503"));
    world.ok(drop_it(&id, 1));
    world.ok(drop_it(&id, 2));
    let seen = "by hand (a try of it may have reached the target)";
    let told = [(EffectWhat::Dropped, 1, seen.to_owned()), (EffectWhat::Dropped, 2, "by hand".to_owned())];
    assert_eq!(whats(&world, &id), told);
}

#[test]
fn a_result_of_an_earlier_execution_moves_no_later_one() {
    let late = |tried: Tried| {
        let state = "waiting";
        let (mut world, id) = followed();
        world.go(&id, state);
        try_it(&mut world, &id, 1).unwrap();
        settle(&mut world, &id, 1, 1, tried);
        assert_eq!((world.head(&id).state.as_str(), world.data(&id).as_str()), (state, "{}"));
        assert_eq!(effect(&world, &id, 1), None, "settled, and not left given up");
        whats(&world, &id).pop().unwrap().2
    };
    assert_eq!(late(Tried::Done(said(201, "1"))), "status 201, after its execution");
    assert_eq!(late(refused()), "refused: status 404, after its execution");
    assert_eq!(late(Tried::Fenced(said(412, "null"))), "status 412");
}

#[test]
fn a_late_failure_is_settled_although_no_state_takes_it() {
    let (mut world, id) = opening();
    world.transition(&id, "idle", carrying(vec![asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, refused());
    assert_eq!((effect(&world, &id, 1), world.head(&id).outbox.dead), (None, 0));
}

#[test]
fn a_failure_of_an_entity_that_is_parked_already_leaves_the_reason_as_it_is() {
    let parking = ticket().with(|machine| {
        machine.states.get_mut(&name("opening")).unwrap().on_permanent = FailurePath::Park;
    });
    let (mut world, id) = opened(parking);
    world.save(&id, carrying(vec![asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    world.end(&id, permanent("no use")).unwrap();
    settle(&mut world, &id, 1, 1, refused());
    assert_eq!((world.head(&id).park.unwrap().code.as_str(), world.head(&id).outbox.dead), ("permanent", 1));
}

#[test]
fn an_event_without_moves_is_not_taken() {
    let deaf = ticket().with(|machine| {
        let on = &mut machine.states.get_mut(&name("blind")).unwrap().on;
        on.insert(name("effect-failed"), Vec::new());
    });
    let (mut world, id) = opened(deaf);
    world.transition(&id, "blind", carrying(vec![asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, refused());
    assert!(effect(&world, &id, 1).unwrap().is_dead());
}

#[test]
fn a_result_names_the_attempt_that_it_begins_and_no_other() {
    let running = ticket().state(
        "opening",
        step("open").to(to("waiting")).deadline(600_000).on("effect-done", stay().set("data.done = true")),
    );
    let running = running.state("waiting", wait().deadline(600_000).on("effect-done", to("opening")));
    let (mut world, id) = opened(running);
    world.save(&id, carrying(vec![asked("tickets"), asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Done(said(201, "1")));
    assert_eq!((world.data(&id).as_str(), world.last_entry(&id).attempt), (r#"{"done":true}"#, None));
    world.starts.get_mut(&id).unwrap().claim.read = world.head(&id).version;
    world.go(&id, "waiting");
    try_it(&mut world, &id, 2).unwrap();
    settle(&mut world, &id, 2, 1, Tried::Done(said(201, "1")));
    let (entry, claim) = (world.last_entry(&id), world.claim(&id));
    assert_eq!((entry.attempt, entry.token), (Some(claim.attempt), Some(claim.token)));
}

fn pause(world: &World, id: &EntityId) -> u64 {
    match effect(world, id, 1).unwrap().stands {
        Stands::Due(at) => at.0 - world.store,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_target_has_an_effect_wait_longer_than_an_hour() {
    let (mut world, id) = waiting();
    try_it(&mut world, &id, 1).unwrap();
    let after_ms = Some(EFFECT_RETRY_AFTER_MS_MAX + 1);
    settle(&mut world, &id, 1, 1, Tried::Again { after_ms, reason: "status 429".to_owned(), maybe_sent: false });
    assert_eq!(pause(&world, &id), EFFECT_RETRY_AFTER_MS_MAX);
}

#[test]
fn a_wait_is_spread_around_its_bound_and_never_beyond_it() {
    let spread = ticket().with(|machine| {
        let retry = Retry { attempts: 20, first_ms: 1_000, factor: 10.0, max_ms: 5_000, jitter: 0.5 };
        machine.targets.get_mut(&name("tickets")).unwrap().retry = retry;
    });
    let (mut world, id) = opened(spread);
    world.transition(&id, "waiting", carrying(vec![asked("tickets")])).unwrap();
    let mut waits = Vec::new();
    for nth in 1..=12 {
        try_it(&mut world, &id, 1).unwrap();
        settle(&mut world, &id, 1, nth, again("status 503"));
        waits.push(pause(&world, &id));
        world.pass(5_000);
    }
    assert!(waits.iter().all(|ms| *ms <= 5_000), "{waits:?}");
    assert!(waits[1..].contains(&5_000) && waits[1..].iter().any(|ms| *ms < 5_000), "{waits:?}");
}

#[test]
fn the_only_effect_is_found_when_it_is_given_up() {
    let given_up = || {
        let (mut world, id) = opening();
        world.transition(&id, "blind", carrying(vec![asked("tickets")])).unwrap();
        try_it(&mut world, &id, 1).unwrap();
        settle(&mut world, &id, 1, 1, refused());
        (world, id)
    };
    let (mut world, id) = given_up();
    world.ok(drop_it(&id, 1));
    let (mut world, id) = given_up();
    world.send(&id, "stop", "s1");
    assert_eq!(effect(&world, &id, 1), None);
    let dropped = (EffectWhat::Dropped, 1, "given up, and its visit was left".to_owned());
    assert_eq!(whats(&world, &id).pop(), Some(dropped));
}

#[test]
fn a_target_nobody_declares_is_refused_first_and_those_declared_are_named() {
    let (mut world, id) = opening();
    let headers = vec![(String::new(), String::new()); EFFECT_HEADERS_MAX + 1];
    let unknown = || StagedEffect { target: name("nobody"), headers: headers.clone(), ..asked("other") };
    let named = world.save(&id, carrying(vec![unknown()])).unwrap_err();
    assert_eq!((named.code, named.expected.as_str()), (Code::NotAllowed, "other or tickets"));
    let (mut world, id) = opened(ticket().with(|machine| machine.targets.clear()));
    let none = world.save(&id, carrying(vec![unknown()])).unwrap_err();
    assert_eq!(none.expected, "a machine with targets");
}

#[test]
fn an_effect_has_sixteen_headers() {
    let (mut world, id) = opening();
    let headers = vec![("x".to_owned(), "y".to_owned()); EFFECT_HEADERS_MAX];
    world.save(&id, carrying(vec![StagedEffect { headers, ..asked("other") }])).unwrap();
}

#[test]
fn an_entity_has_at_most_sixty_four_effects_over_all_lanes() {
    let third = ticket().with(|machine| {
        machine.leases.granted.insert("cluster/*".to_owned(), LeaseSpec::default());
        machine.targets.get_mut(&name("tickets")).unwrap().fence = Some(value("\"cluster/eu\""));
        machine.targets.get_mut(&name("other")).unwrap().fence = Some(value("\"cluster/us\""));
        machine.targets.insert(name("plain"), target("https://plain.example/"));
    });
    let (mut world, id) = opened(third);
    for cluster in ["cluster/eu", "cluster/us"] {
        let claim = world.claim(&id);
        world.ok(Verb::Lease(claim, LeaseAsk::Acquire(cluster.parse().unwrap(), None)));
        let of = if cluster == "cluster/eu" { "tickets" } else { "other" };
        for _ in 0..LANE_MAX / EFFECTS_STAGED_MAX {
            world.save(&id, carrying(vec![asked(of); EFFECTS_STAGED_MAX])).unwrap();
        }
    }
    assert_eq!(world.effects()[&id].len(), EFFECTS_MAX as usize, "all of them fit");
    let refused = world.save(&id, carrying(vec![asked("plain")])).unwrap_err();
    assert_eq!((refused.code, refused.subject.as_str(), refused.got.as_str()), (Code::OutboxFull, "ticket/a", "65"));
}

#[test]
fn a_failure_takes_back_only_what_its_own_execution_asked_for() {
    let (mut world, id) = followed();
    world.save(&id, carrying(vec![asked("other")])).unwrap();
    world.end(&id, permanent("no use")).unwrap();
    assert_eq!((effect(&world, &id, 1).is_some(), effect(&world, &id, 2)), (true, None));
}

#[test]
fn a_failure_does_not_take_back_what_a_try_may_have_brought_there() {
    let (mut world, id) = opening();
    world.save(&id, carrying(vec![asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, again("status 503"));
    world.end(&id, permanent("no use")).unwrap();
    assert!(effect(&world, &id, 1).is_some());
}

#[test]
fn one_that_is_tried_again_holds_up_those_that_went_past_it() {
    let skipping = ticket().with(|machine| machine.targets.get_mut(&name("tickets")).unwrap().skips_dead = true);
    let (mut world, id) = opened(skipping);
    world.transition(&id, "blind", carrying(vec![asked("tickets"), asked("other")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, refused());
    assert!(matches!(effect(&world, &id, 2).unwrap().stands, Stands::Due(_)));
    world.ok(Verb::Retry(id.clone(), 1));
    assert_eq!(effect(&world, &id, 2).unwrap().stands, Stands::Waits);
}

#[test]
fn only_what_has_changed_is_written_and_only_a_new_due_time_wakes() {
    let (mut world, id) = opening();
    world.save(&id, carrying(vec![asked("tickets")])).unwrap();
    let woken = |world: &World| {
        let sends = world.wakes.iter().filter_map(|wake| if let Wake::Send(at) = wake { Some(*at) } else { None });
        sends.collect::<Vec<StoreTime>>()
    };
    assert_eq!(woken(&world), [StoreTime(world.store)]);
    world.save(&id, carrying(vec![asked("other")])).unwrap();
    let written = |world: &World, number| world.wrote.contains_key(&Key::Effect(id.clone(), number));
    assert_eq!((written(&world, 1), written(&world, 2)), (false, true));
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, again("status 503"));
    world.pass(1_000);
    world.ok(Verb::Retry(id.clone(), 1)); // due at this moment as it was, with fresh tries
    assert!(written(&world, 1));
    assert!(!world.wrote.keys().any(|key| matches!(key, Key::Outbox(..))));
    assert_eq!(woken(&world), []);
}

/// A wait that a staged timer may end, after a step that fails into it.
fn failing(blind: crate::build::St) -> (World, EntityId) {
    let opening = step("open").to(to("blind")).deadline(600_000).on_permanent(to("blind")).on_exhausted(to("blind"));
    opened(ticket().state("opening", opening).state("blind", blind.timer("nag", Due::Step, to("idle"))))
}

#[test]
fn a_wait_may_leave_its_steps_timer_unset_if_anything_else_ends_it() {
    for blind in [wait().deadline(60_000), wait().forever(), step("more").to(to("idle"))] {
        let (mut world, id) = failing(blind);
        world.go(&id, "blind");
        assert_eq!(world.head(&id).timers, []);
    }
    let (mut world, id) = failing(wait());
    world.save(&id, carrying(vec![asked("tickets")])).unwrap();
    world.starts.get_mut(&id).unwrap().claim.read = world.head(&id).version;
    world.go(&id, "blind");
    assert_eq!(world.head(&id).state.as_str(), "blind", "its effect is on the way");
}

#[test]
fn a_failure_does_not_wait_for_effects_that_it_takes_back() {
    for by_deadline in [false, true] {
        let (mut world, id) = failing(wait());
        world.save(&id, carrying(vec![asked("tickets")])).unwrap();
        if by_deadline {
            world.due(&id);
        } else {
            world.end(&id, permanent("no use")).unwrap();
        }
        assert_eq!(world.head(&id).park.unwrap().code, "failure-path");
    }
}

#[test]
fn a_late_refusal_by_its_receiver_is_no_event_of_the_entity() {
    let late = ticket()
        .state("idle", rest().on("open", to("opening")).on("effect-failed", stay().set("data.late = true")))
        .with(|machine| machine.targets.get_mut(&name("tickets")).unwrap().on_late = OnLate::Event);
    let (mut world, id) = opened(late);
    world.transition(&id, "idle", carrying(vec![asked("tickets")])).unwrap();
    try_it(&mut world, &id, 1).unwrap();
    settle(&mut world, &id, 1, 1, Tried::Fenced(said(412, "null")));
    assert_eq!((world.data(&id).as_str(), effect(&world, &id, 1)), ("{}", None));
}
