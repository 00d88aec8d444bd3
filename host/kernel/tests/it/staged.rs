//! Timers that steps set: staged before the commit that carries them, declared by the state they belong to.

use crate::build::{Mc, condition, filter, machine, mutation, name, rest, stay, step, to, wait};
use crate::world::{World, permanent};
use interlock_kernel::command::{Change, Stage, StagedDue, StagedTimer, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{CONDITIONS_MAX, STAGED_TIMERS_MAX, TIMER_MS_MAX};
use interlock_kernel::record::FactKind;
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::time::WallTime;
use interlock_kernel::timer::Due;

/// A step that may be reminded, and a wait that it ends by a timer or an event.
fn reminding() -> Mc {
    machine("job", "idle")
        .event("run")
        .event("skip")
        .data(r#"{"reminded":0}"#)
        .state("idle", rest().on("run", to("working")).timer("nap", Due::Step, stay().set("data.naps += 1")))
        .state(
            "working",
            step("work")
                .to(to("held"))
                .to(to("idle"))
                .to(to("working"))
                .deadline(600_000)
                .after("late", 90_000, stay().set("data.late = true"))
                .timer("remind", Due::Step, stay().set("data.reminded += 1"))
                .timer("again", Due::Step, to("working"))
                .on_permanent(to("held")),
        )
        .state(
            "held",
            wait()
                .timer("wake", Due::Step, to("idle").set("data.woken = true"))
                .timer("nudge", Due::Step, stay().set("data.nudged = true"))
                .on("skip", to("idle")),
        )
}

fn working() -> (World, EntityId) {
    let (mut world, id) = World::of(reminding(), "job/a");
    world.send(&id, "run", "r1");
    (world, id)
}

fn staged(timers: &[(&str, StagedDue)]) -> Change {
    let timers = timers.iter().map(|(timer, due)| StagedTimer { name: name(timer), due: *due }).collect();
    Change { stage: Stage { timers, ..Stage::default() }, ..Change::default() }
}

fn pending(world: &World, id: &EntityId) -> Vec<(String, i64)> {
    world.head(id).timers.iter().map(|set| (set.name.to_string(), set.due.0 - world.wall)).collect()
}

fn owned(timers: &[(&str, i64)]) -> Vec<(String, i64)> {
    timers.iter().map(|(name, due)| ((*name).to_owned(), *due)).collect()
}

#[test]
fn a_transition_carries_the_timers_of_the_visit_it_enters() {
    let (mut world, id) = working();
    let at = WallTime(world.wall + 70_000);
    world.transition(&id, "held", staged(&[("wake", StagedDue::After(5_000)), ("nudge", StagedDue::At(at))])).unwrap();
    assert_eq!(pending(&world, &id), owned(&[("wake", 5_000), ("nudge", 70_000)]));
    assert_eq!(world.head(&id).timers[0].rule.as_deref(), Some("set by a step"));
    world.reboot();
    world.fire(&id, "wake");
    assert_eq!(world.data(&id), r#"{"reminded":0,"woken":true}"#);
    assert_eq!(pending(&world, &id), [], "they leave with the visit");
}

#[test]
fn the_last_word_on_a_name_counts_and_a_cancel_is_one() {
    let (mut world, id) = working();
    let words = [
        ("wake", StagedDue::After(5_000)),
        ("nudge", StagedDue::After(6_000)),
        ("wake", StagedDue::After(7_000)),
        ("nudge", StagedDue::Cancelled),
    ];
    world.transition(&id, "held", staged(&words)).unwrap();
    assert_eq!(pending(&world, &id), owned(&[("wake", 7_000)]));
}

#[test]
fn a_save_sets_moves_and_cancels_timers_of_its_own_visit() {
    let (mut world, id) = working();
    world.save(&id, staged(&[("remind", StagedDue::After(5_000)), ("again", StagedDue::After(9_000))])).unwrap();
    assert_eq!(pending(&world, &id), owned(&[("late", 90_000), ("remind", 5_000), ("again", 9_000)]));
    world.pass(1_000);
    world.save(&id, staged(&[("remind", StagedDue::After(5_000)), ("again", StagedDue::Cancelled)])).unwrap();
    assert_eq!(pending(&world, &id), owned(&[("late", 89_000), ("remind", 5_000)]));
    // One that is gone may be cancelled: it may have fired a moment ago.
    world.save(&id, staged(&[("again", StagedDue::Cancelled)])).unwrap();
    world.fire(&id, "remind");
    assert_eq!(world.data(&id), r#"{"reminded":1}"#);
    assert_eq!(pending(&world, &id).len(), 1);
}

#[test]
fn what_a_save_put_on_record_outlives_the_attempt() {
    let (mut world, id) = working();
    world.save(&id, staged(&[("again", StagedDue::After(5_000))])).unwrap();
    world.fail(&id, "slow");
    assert_eq!(pending(&world, &id), owned(&[("late", 90_000), ("again", 5_000)]));
    world.fire(&id, "again");
    assert_eq!((world.head(&id).state.as_str(), world.head(&id).lock.unwrap().attempts), ("working", 1), "a new visit");
}

#[test]
fn a_stale_firing_of_a_timer_that_was_moved_is_a_recorded_no_op() {
    let (mut world, id) = working();
    world.save(&id, staged(&[("again", StagedDue::After(5_000))])).unwrap();
    let old = world.head(&id).timers[1].clone();
    world.save(&id, staged(&[("again", StagedDue::After(8_000))])).unwrap();
    world.pass(5_000);
    world.ok(Verb::Fire { entity: id.clone(), timer: old.name, due: old.due });
    assert_eq!(world.head(&id).facts[&FactKind::StaleTimer], 1);
    assert_eq!(pending(&world, &id)[1], ("again".to_owned(), 3_000));
}

#[track_caller]
fn refuses(change: &Change, to: Option<&str>) -> Rejection {
    let (mut world, id) = working();
    let before = world.head(&id);
    let answer = match to {
        Some(to) => world.transition(&id, to, change.clone()),
        None => world.save(&id, change.clone()),
    };
    assert_eq!(world.head(&id), before, "refused, and yet changed");
    answer.unwrap_err()
}

#[test]
fn a_timer_that_the_state_does_not_leave_to_steps_is_not_allowed_and_the_declared_ones_are_named() {
    let after = StagedDue::After(1_000);
    // Another state's, one the manifest sets itself, and one that nobody knows: also to take them back.
    for (timer, due) in [("wake", after), ("late", after), ("late", StagedDue::Cancelled), ("nobody", after)] {
        let refused = refuses(&staged(&[("remind", after), (timer, due)]), None);
        assert_eq!((refused.code, refused.subject.as_str()), (Code::NotAllowed, "job/a"));
        assert_eq!(refused.expected, r#"a timer of working with due = "step": remind or again"#);
        assert_eq!(refused.got, format!("the timer {timer}"));
    }
    let refused = refuses(&staged(&[("remind", after)]), Some("held"));
    assert_eq!(refused.expected, r#"a timer of held with due = "step": wake or nudge"#);
    assert_eq!(refuses(&staged(&[("wake", after)]), Some("nowhere")).got, "nowhere", "the target comes first");
    let none = machine("job", "idle")
        .event("run")
        .state("idle", rest().on("run", to("working")))
        .state("working", step("work").to(to("idle")).deadline(60_000));
    let (mut world, id) = World::of(none, "job/a");
    world.send(&id, "run", "r1");
    let refused = world.transition(&id, "idle", staged(&[("wake", after)])).unwrap_err();
    assert_eq!(refused.expected, r#"no timer: idle has none with due = "step""#);
}

#[test]
fn a_commit_carries_sixteen_timers_and_none_beyond_ten_years() {
    let many = |count: usize| staged(&vec![("remind", StagedDue::After(1)); count]);
    let refused = refuses(&many(STAGED_TIMERS_MAX + 1), None);
    assert_eq!((refused.code, refused.got.as_str()), (Code::Limit, "17"));
    let far = WallTime(1_000_000 + i64::try_from(TIMER_MS_MAX).unwrap() + 1);
    for due in [
        StagedDue::After(TIMER_MS_MAX + 1),
        StagedDue::After(u64::MAX),
        StagedDue::At(far),
        StagedDue::At(WallTime(i64::MAX)),
    ] {
        for to in [None, Some("working")] {
            let refused = refuses(&staged(&[("remind", due)]), to);
            assert_eq!((refused.code, refused.subject.as_str()), (Code::Limit, "timer remind"), "{due:?}");
            assert_eq!(refused.expected, "at most 3660 d from now (timer_ms_max)");
        }
    }
    let (mut world, id) = working();
    world.save(&id, many(STAGED_TIMERS_MAX)).unwrap();
    world.save(&id, staged(&[("remind", StagedDue::After(TIMER_MS_MAX))])).unwrap();
    world.save(&id, staged(&[("remind", StagedDue::At(WallTime(i64::MIN)))])).unwrap();
    world.fire(&id, "remind");
}

#[test]
fn a_wait_that_only_a_staged_timer_could_end_is_not_entered_without_one() {
    let only = machine("job", "idle")
        .event("run")
        .state("idle", rest().on("run", to("working")))
        .state("working", step("work").to(to("held")).deadline(600_000).on_permanent(to("held")))
        .state("held", wait().timer("wake", Due::Step, to("idle")));
    let (mut world, id) = World::of(only, "job/a");
    world.send(&id, "run", "r1");
    for change in [Change::default(), staged(&[("wake", StagedDue::Cancelled)])] {
        let refused = world.transition(&id, "held", change).unwrap_err();
        assert_eq!((refused.code, refused.subject.as_str()), (Code::Invalid, "timer wake of held"));
        assert_eq!(refused.expected, "a due time staged by the step that enters held");
    }
    // A failure cannot be refused: it parks, and says why.
    world.end(&id, permanent("broken")).unwrap();
    let park = world.head(&id).park.unwrap();
    assert_eq!(park.code, "failure-path");
    assert!(park.reason.contains("a due time staged by the step that enters held"), "{}", park.reason);
}

#[test]
fn a_rest_state_may_be_entered_with_a_staged_timer_or_without() {
    let (mut world, id) = working();
    world.transition(&id, "idle", staged(&[("nap", StagedDue::After(60_000))])).unwrap();
    assert_eq!(pending(&world, &id), owned(&[("nap", 60_000)]));
    world.fire(&id, "nap");
    assert_eq!(world.data(&id), r#"{"naps":1,"reminded":0}"#);
}

#[test]
fn a_newer_revision_that_does_not_leave_the_timer_to_steps_is_not_followed_at_entry() {
    let (mut world, id) = working();
    let renamed = reminding().with(|machine| {
        let held = machine.states.get_mut(&name("held")).unwrap();
        held.after[0].name = name("alarm");
    });
    world.deploy(renamed);
    world.transition(&id, "held", staged(&[("wake", StagedDue::After(5_000))])).unwrap();
    assert_eq!((world.head(&id).revision, pending(&world, &id)), (1, owned(&[("wake", 5_000)])));
}

#[test]
fn nor_one_that_would_let_it_wait_without_the_timer() {
    let (mut world, id) = working();
    world.deploy(reminding().with(|machine| {
        let held = machine.states.get_mut(&name("held")).unwrap();
        held.after.clear();
        held.waits_forever = true;
    }));
    world.transition(&id, "held", staged(&[("wake", StagedDue::After(5_000))])).unwrap();
    assert_eq!((world.head(&id).revision, pending(&world, &id)), (1, owned(&[("wake", 5_000)])));
}

#[test]
fn a_timer_of_another_state_is_refused_before_a_guard_and_a_denial_and_after_a_conflict() {
    let after = StagedDue::After(1_000);
    let guarded = reminding().with(|machine| {
        machine.states.get_mut(&name("working")).unwrap().to[0].guard = filter("data.open eq true");
    });
    let (mut world, id) = World::of(guarded, "job/a");
    world.send(&id, "run", "r1");
    assert_eq!(world.transition(&id, "held", staged(&[("late", after)])).unwrap_err().code, Code::NotAllowed);
    let denied = Change { set: vec![mutation("desired.x = 1")], ..staged(&[("late", after)]) };
    assert_eq!(world.save(&id, denied).unwrap_err().code, Code::NotAllowed);
    let conditions = (0..=CONDITIONS_MAX).map(|number| condition(&format!("c{number}"), "true")).collect();
    let many = Change { conditions, ..staged(&vec![("remind", after); STAGED_TIMERS_MAX + 1]) };
    assert_eq!(world.save(&id, many).unwrap_err().subject, "conditions");
    world.save(&id, staged(&[("remind", after)])).unwrap();
    world.fire(&id, "remind"); // the version moves on
    assert_eq!(world.save(&id, staged(&[("late", after)])).unwrap_err().code, Code::Conflict);
}

#[test]
fn a_state_that_the_step_may_not_enter_is_told_before_a_timer_that_it_does_not_have() {
    let (mut world, id) = World::of(reminding().state("aside", rest()), "job/a");
    world.send(&id, "run", "r1");
    let refused = world.transition(&id, "aside", staged(&[("wake", StagedDue::After(1_000))])).unwrap_err();
    assert_eq!((refused.code, refused.got.as_str()), (Code::NotAllowed, "aside"));
}
