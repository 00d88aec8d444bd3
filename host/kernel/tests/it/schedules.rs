//! Schedules: each due time raises its event once, or it stands there why not; nothing that is past comes back unless
//! the schedule says so.

use crate::build::{Mc, doc, entity, event, machine, rest, step, to, wait};
use crate::world::{Rule, Table, World};
use interlock_kernel::command::{DeclareSchedule, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::limits::{FIRINGS_MAX, ON_TIME_MS};
use interlock_kernel::record::{AnswerKind, Fired, Firing, Key, Record, ScheduleRecord, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::schedule::{CatchUp, Creation, Overlap, Recurrence, Schedule};
use interlock_kernel::time::WallTime;
use interlock_kernel::view::{View, Wake};
use std::collections::BTreeSet;
use std::sync::Arc;

const MINUTE: u64 = 60_000;

/// Every schedule stands in the index under its next due time, and nothing else does.
pub(crate) fn check(world: &World, title: &str) {
    let (mut implied, mut found) = (BTreeSet::new(), BTreeSet::new());
    for (key, record) in world.records.iter() {
        match (key, record) {
            (Key::Schedule(name), Record::Schedule(record)) => {
                implied.extend(record.next.map(|due| Key::ScheduleDue(due, name.clone())));
                assert!(!record.paused || record.next.is_none(), "{title}: {name} is paused and due");
                assert!(record.firings.len() <= FIRINGS_MAX, "{title}: {name}");
            }
            (Key::ScheduleDue(..), _) => {
                found.insert(key.clone());
            }
            _ => {}
        }
    }
    assert_eq!(found, implied, "{title}: index and schedules");
}

fn drain() -> Mc {
    machine("queue", "idle")
        .event("drain")
        .event("more")
        .state("idle", rest().on("drain", to("draining")))
        .state("draining", step("drain").to(to("idle")).to(to("waiting")))
        .state("waiting", wait().on("more", to("draining")).on("drain", to("draining")).forever())
}

/// Every minute, at `queue/mail`.
fn minutely() -> Schedule {
    Schedule {
        name: "drain-mail".parse().unwrap(),
        owner: "mail team".to_owned(),
        rule: Recurrence { cron: "1".to_owned(), zone: "UTC".to_owned() },
        entity: entity("queue/mail"),
        create: None,
        event: "drain".parse().unwrap(),
        payload: None,
        due_field: None,
        overlap: Overlap::Skip,
        catch_up: CatchUp::Latest,
    }
}

fn declaration(schedule: &Schedule) -> Verb {
    let source = format!("{schedule:?}");
    let digest = Digest::of(&[source.as_bytes()]);
    Verb::Schedule(Box::new(DeclareSchedule { schedule: Arc::new(schedule.clone()), digest, source }))
}

/// A world with the queue and a schedule for it, at 16 min 40 s; the first due time is in 20 s.
fn world(schedule: &Schedule) -> World {
    let (mut world, _) = World::of(drain(), "queue/mail");
    assert_eq!(world.ok(declaration(schedule)), Outcome::Declared { revision: 1, new: true });
    world
}

fn record(world: &World) -> ScheduleRecord {
    let name = "drain-mail".parse().unwrap();
    match world.records.get(&Key::Schedule(name)).unwrap() {
        Some(Record::Schedule(record)) => *record,
        other => panic!("no schedule: {other:?}"),
    }
}

fn next(world: &World) -> i64 {
    record(world).next.unwrap().0
}

/// Whatever is due by now, in order; what became of each, and of what was missed before it.
fn fire(world: &mut World) -> Vec<(i64, Fired)> {
    let mut all = Vec::new();
    while let Some(due) = record(world).next.filter(|due| due.0 <= world.wall) {
        let known = record(world).firings;
        let outcome = world.ok(Verb::FireSchedule { schedule: "drain-mail".parse().unwrap(), due });
        let firings = record(world).firings;
        assert_eq!(outcome, Outcome::Fired(firings.last().cloned()));
        let new = firings.iter().filter(|firing| !known.contains(firing));
        all.extend(new.map(|firing| (firing.due.0, firing.fired.clone())));
        assert!(all.len() < 1_000, "it never ends");
    }
    all
}

fn raised(execution: u64) -> Fired {
    Fired::Raised(AnswerKind::Accepted, Some(execution))
}

#[test]
fn each_due_time_raises_its_event_once() {
    let mut world = world(&minutely());
    let mail = entity("queue/mail");
    assert_eq!(next(&world), 1_020_000);
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::Timer(WallTime(1_020_000)))));
    let first = Verb::FireSchedule { schedule: "drain-mail".parse().unwrap(), due: WallTime(1_020_000) };
    world.pass(19_999);
    assert_eq!(world.ok(first.clone()), Outcome::Nothing, "a ms early");
    assert!(world.wrote.is_empty());
    world.pass(1);
    assert_eq!(fire(&mut world), [(1_020_000, raised(1))]);
    assert_eq!((world.head(&mail).state.as_str(), next(&world)), ("draining", 1_080_000));
    let entry = world.last_entry(&mail);
    assert_eq!(entry.what, What::Event("drain".parse().unwrap()));
    assert_eq!(
        (entry.by.as_str(), entry.event.unwrap().as_str()),
        ("schedule/drain-mail", "schedule/drain-mail.1/1020000")
    );
    world.go(&mail, "idle");
    let version = world.head(&mail).version;
    assert_eq!(world.ok(first), Outcome::Nothing, "the same due time again");
    assert_eq!((world.head(&mail).version, record(&world).raised), (version, 1));
    world.pass(MINUTE);
    assert_eq!(fire(&mut world), [(1_080_000, raised(2))]);
    assert_eq!((record(&world).raised, record(&world).passed), (2, 0));
}

#[test]
fn what_is_under_way_is_left_alone_joined_or_waited_for() {
    for (overlap, fired, waiting, state) in [
        (Overlap::Skip, Fired::Skipped("execution 1 of queue/mail was under way".to_owned()), 0, "waiting"),
        (Overlap::Queue, Fired::Raised(AnswerKind::Queued, None), 1, "waiting"),
        (Overlap::Deliver, raised(1), 0, "draining"),
    ] {
        let mut world = world(&Schedule { overlap, ..minutely() });
        let mail = entity("queue/mail");
        world.pass(20_000);
        fire(&mut world);
        world.go(&mail, "waiting");
        world.pass(MINUTE);
        assert_eq!(fire(&mut world), [(1_080_000, fired)], "{overlap}");
        assert_eq!((world.head(&mail).inbox.length, world.head(&mail).state.as_str()), (waiting, state), "{overlap}");
    }
}

#[test]
fn one_event_of_a_schedule_waits_and_is_taken_once_its_turn_comes() {
    let mut world = world(&Schedule { overlap: Overlap::Queue, ..minutely() });
    let mail = entity("queue/mail");
    world.pass(20_000);
    fire(&mut world);
    world.pass(MINUTE);
    assert_eq!(fire(&mut world), [(1_080_000, Fired::Raised(AnswerKind::Queued, None))]);
    world.pass(MINUTE);
    let skipped = Fired::Skipped("the event of an earlier due time was still waiting".to_owned());
    assert_eq!(fire(&mut world), [(1_140_000, skipped)]);
    world.go(&mail, "idle");
    let head = world.head(&mail);
    assert_eq!((head.state.as_str(), head.executions, head.inbox.length), ("draining", 2, 0));
    world.pass(MINUTE);
    assert_eq!(fire(&mut world), [(1_200_000, Fired::Raised(AnswerKind::Queued, None))]);
}

#[test]
fn another_event_in_the_inbox_keeps_no_due_time_waiting() {
    let queue = drain().queued("more").state("draining", step("drain").to(to("idle")));
    let (mut world, mail) = World::of(queue, "queue/mail");
    world.ok(declaration(&Schedule { overlap: Overlap::Queue, ..minutely() }));
    world.pass(20_000);
    fire(&mut world);
    world.send(&mail, "more", "schedule/drain-mail-2.1/0"); // another schedule's, by its id
    world.pass(MINUTE);
    assert_eq!(fire(&mut world), [(1_080_000, Fired::Raised(AnswerKind::Queued, None))]);
}

#[test]
fn a_delivered_due_time_that_the_machine_does_not_take_is_refused_and_the_next_one_comes() {
    let mut world = world(&Schedule { overlap: Overlap::Deliver, ..minutely() });
    let mail = entity("queue/mail");
    world.pass(20_000);
    fire(&mut world);
    world.pass(MINUTE);
    let fired = fire(&mut world);
    let [(1_080_000, Fired::Refused(why))] = fired.as_slice() else { panic!("{fired:?}") };
    assert!(why.contains("busy") && why.contains("queue/mail"), "{why}");
    assert_eq!((record(&world).raised, record(&world).passed, next(&world)), (1, 1, 1_140_000));
    world.go(&mail, "idle");
    world.pass(MINUTE);
    assert_eq!(fire(&mut world), [(1_140_000, raised(2))]);
}

#[test]
fn an_entity_that_is_not_there_is_made_if_the_schedule_says_how() {
    let mut world = World::with(drain());
    let made = Creation { desired: Some(doc(r#"{"size":1}"#)), ..Creation::default() };
    world.ok(declaration(&Schedule { create: Some(made), ..minutely() }));
    world.pass(20_000);
    assert_eq!(fire(&mut world), [(1_020_000, raised(1))]);
    let mail = entity("queue/mail");
    assert_eq!((world.head(&mail).state.as_str(), world.head(&mail).generation), ("draining", 1));
    world.go(&mail, "idle");
    world.pass(MINUTE);
    assert_eq!(fire(&mut world), [(1_080_000, raised(2))]);
    world.go(&mail, "idle");

    world.ok(Verb::Delete(mail.clone()));
    world.ok(declaration(&minutely()));
    world.pass(MINUTE);
    let fired = fire(&mut world);
    let [(1_140_000, Fired::Refused(why))] = fired.as_slice() else { panic!("{fired:?}") };
    assert!(why.contains("not_found") && why.contains("queue/mail"), "{why}");
    assert!(world.find_head(&mail).is_none());
}

#[test]
fn what_passed_while_nobody_looked_is_past_made_up_for_once_or_in_order() {
    // Ten due times, from 1 020 000 to 1 560 000, and half a minute.
    let late = 20_000 + 9 * MINUTE + 30_000;
    let missed = |until| Fired::Missed(WallTime(until));
    for (catch_up, wanted, passed) in [
        (CatchUp::None, vec![(1_020_000, missed(1_500_000)), (1_560_000, raised(1))], 1),
        (CatchUp::Latest, vec![(1_020_000, missed(1_500_000)), (1_560_000, raised(1))], 1),
        (
            CatchUp::All(3 * MINUTE),
            vec![
                (1_020_000, missed(1_380_000)),
                (1_440_000, raised(1)),
                (1_500_000, raised(2)),
                (1_560_000, raised(3)),
            ],
            1,
        ),
    ] {
        let mut world = world(&minutely());
        world.ok(declaration(&Schedule { catch_up, ..minutely() }));
        world.pass(late);
        let mut all = Vec::new();
        while next(&world) <= world.wall {
            let due = record(&world).next.unwrap();
            let known = record(&world).firings;
            world.ok(Verb::FireSchedule { schedule: "drain-mail".parse().unwrap(), due });
            let new = record(&world).firings.into_iter().filter(|firing| !known.contains(firing));
            all.extend(new.map(|Firing { due, fired, .. }| (due.0, fired)));
            world.go(&entity("queue/mail"), "idle");
        }
        assert_eq!((all, record(&world).passed), (wanted, passed), "{catch_up}");
        assert_eq!(next(&world), 1_620_000, "{catch_up}");
    }
}

#[test]
fn a_rule_that_is_slower_than_the_bound_on_being_late_is_missed_or_made_up_for() {
    let hourly = Schedule { rule: Recurrence { cron: "60".to_owned(), zone: "UTC".to_owned() }, ..minutely() };
    let due = 3_600_000;
    for (catch_up, late, wanted) in [
        (CatchUp::None, ON_TIME_MS, vec![(due, raised(1))]),
        (CatchUp::None, ON_TIME_MS + 1, vec![(due, Fired::Missed(WallTime(due)))]),
        (CatchUp::Latest, ON_TIME_MS + 1, vec![(due, raised(1))]),
        (CatchUp::Latest, 3_600_000, vec![(due, Fired::Missed(WallTime(due))), (2 * due, raised(1))]),
        (CatchUp::All(10 * MINUTE), 10 * MINUTE, vec![(due, raised(1))]),
        (CatchUp::All(10 * MINUTE), 10 * MINUTE + 1, vec![(due, Fired::Missed(WallTime(due)))]),
    ] {
        let mut world = world(&Schedule { catch_up, ..hourly.clone() });
        world.pass(u64::try_from(due).unwrap() - 1_000_000 + late);
        assert_eq!(fire(&mut world), wanted, "{catch_up}, {late} ms late");
        let comes = if late < 3_600_000 { 2 * due } else { 3 * due };
        assert_eq!(next(&world), comes, "{catch_up}, {late} ms late");
    }
}

#[test]
fn one_command_tells_of_what_was_missed_and_raises_what_is_due_at_this_moment() {
    let mut world = world(&minutely());
    world.pass(20_000 + 2 * MINUTE);
    let due = record(&world).next.unwrap();
    world.ok(Verb::FireSchedule { schedule: "drain-mail".parse().unwrap(), due });
    let told: Vec<_> = record(&world).firings.into_iter().map(|firing| (firing.due.0, firing.fired)).collect();
    assert_eq!(told, [(1_020_000, Fired::Missed(WallTime(1_080_000))), (1_140_000, raised(1))]);
}

#[test]
fn the_due_time_stands_in_the_payload_where_the_schedule_wants_it() {
    for (payload, wanted) in
        [(None, r#"{"due":1020000}"#), (Some(r#"{"due":1,"kind":"all"}"#), r#"{"due":1020000,"kind":"all"}"#)]
    {
        let mut world = world(&Schedule { payload: payload.map(doc), due_field: Some("due".to_owned()), ..minutely() });
        world.pass(20_000);
        fire(&mut world);
        let start = &world.starts[&entity("queue/mail")];
        assert_eq!(start.payload.as_ref().unwrap().to_string(), wanted);
    }
}

#[test]
fn a_declaration_is_checked_against_its_machine_and_its_rule() {
    let mut world = World::with(drain());
    let code = |world: &mut World, schedule: Schedule| world.refused(declaration(&schedule));
    let refused = code(&mut world, Schedule { entity: entity("quue/mail"), ..minutely() });
    assert_eq!((refused.code, refused.subject.as_str()), (Code::NotFound, "quue"));
    let refused = code(&mut world, Schedule { event: "drian".parse().unwrap(), ..minutely() });
    assert_eq!((refused.code, refused.got.as_str()), (Code::Invalid, "drian (did you mean drain?)"));
    let never = Recurrence { cron: "never".to_owned(), zone: "UTC".to_owned() };
    let refused = code(&mut world, Schedule { rule: never, ..minutely() });
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Invalid, "schedule drain-mail"));
    let odd: Rule = (1, "event.drain", "an object with a kind", |payload| payload.get("kind").is_some());
    world.rules = Table(vec![odd]);
    let refused = code(&mut world, minutely());
    assert_eq!((refused.code, refused.expected.as_str()), (Code::Invalid, "an object with a kind"));
    assert!(world.records.keys().all(|key| !matches!(key, Key::Schedule(_) | Key::ScheduleDue(..))));
    world.ok(declaration(&Schedule { payload: Some(doc(r#"{"kind":1}"#)), ..minutely() }));
}

#[test]
fn the_same_declaration_changes_nothing_and_another_begins_from_now() {
    let mut world = world(&minutely());
    let before = record(&world);
    world.pass(10_000);
    assert_eq!(world.ok(declaration(&minutely())), Outcome::Declared { revision: 1, new: false });
    assert_eq!(record(&world), before);
    let slower = Recurrence { cron: "5".to_owned(), zone: "UTC".to_owned() };
    let same_time = Schedule { overlap: Overlap::Queue, ..minutely() };
    world.ok(declaration(&same_time));
    assert_eq!((next(&world), world.wakes.len()), (1_020_000, 0), "it comes when it came");
    world.ok(declaration(&Schedule { rule: slower, ..minutely() }));
    assert_eq!((next(&world), world.wakes.len()), (1_200_000, 1));
    world.ok(declaration(&minutely()));
    world.pass(5 * MINUTE);
    let other = Schedule { payload: Some(doc("{}")), ..minutely() };
    assert_eq!(world.ok(declaration(&other)), Outcome::Declared { revision: 5, new: true });
    assert_eq!(fire(&mut world), [], "what was due under the old one is past");
    assert_eq!(next(&world), 1_320_000);
}

#[test]
fn the_same_declaration_is_in_force_also_if_the_machine_would_not_take_it_any_more() {
    let mut world = world(&minutely());
    let other = machine("queue", "idle").event("more").state("idle", rest().on("more", to("idle")));
    world.deploy(other);
    assert_eq!(world.ok(declaration(&minutely())), Outcome::Declared { revision: 1, new: false });
    assert_eq!(world.code(declaration(&Schedule { overlap: Overlap::Queue, ..minutely() })), Code::Invalid);
}

#[test]
fn a_paused_schedule_stands_still_and_goes_on_from_now() {
    let mut world = world(&minutely());
    let pause = |paused| Verb::PauseSchedule { schedule: "drain-mail".parse().unwrap(), paused };
    world.ok(pause(true));
    assert_eq!((record(&world).next, record(&world).paused), (None, true));
    world.pass(10 * MINUTE);
    let old = Verb::FireSchedule { schedule: "drain-mail".parse().unwrap(), due: WallTime(1_020_000) };
    assert_eq!(world.ok(old), Outcome::Nothing);
    world.ok(declaration(&Schedule { payload: Some(doc("{}")), ..minutely() }));
    assert!(record(&world).paused, "another declaration does not wake it");
    world.ok(pause(true));
    assert!(world.wrote.is_empty(), "it is paused already");
    world.ok(pause(false));
    assert_eq!(fire(&mut world), []);
    assert_eq!(next(&world), 1_620_000);
}

#[test]
fn a_dropped_schedule_is_gone_and_what_it_raised_stays() {
    let mut world = world(&minutely());
    world.pass(20_000);
    fire(&mut world);
    let (drop, due) = (Verb::DropSchedule("drain-mail".parse().unwrap()), record(&world).next.unwrap());
    world.ok(drop.clone());
    assert!(world.records.keys().all(|key| !matches!(key, Key::Schedule(_) | Key::ScheduleDue(..))));
    world.pass(MINUTE);
    assert_eq!(world.ok(Verb::FireSchedule { schedule: "drain-mail".parse().unwrap(), due }), Outcome::Nothing);
    assert_eq!(world.head(&entity("queue/mail")).state.as_str(), "draining");
    assert_eq!(world.code(drop), Code::NotFound);
    let pause = Verb::PauseSchedule { schedule: "drain-mail".parse().unwrap(), paused: true };
    assert_eq!(world.code(pause), Code::NotFound);
}

#[test]
fn the_last_due_times_are_kept_and_no_more() {
    let mut world = world(&minutely());
    world.send(&entity("queue/mail"), "drain", "mine");
    world.pass(20_000);
    for _ in 0..FIRINGS_MAX + 3 {
        fire(&mut world);
        world.pass(MINUTE);
    }
    let record = record(&world);
    assert_eq!((record.firings.len(), record.passed), (FIRINGS_MAX, FIRINGS_MAX as u64 + 3));
    assert_eq!(record.firings[0].due, WallTime(1_020_000 + 3 * 60_000));
    assert_eq!(record.firings[0].at, record.firings[0].due);
}

#[test]
fn an_event_that_a_client_sent_before_stays_the_clients() {
    let mut world = world(&minutely());
    let mail = entity("queue/mail");
    world.deliver(&mail, event("drain", "schedule/drain-mail.1/1020000")).unwrap();
    world.go(&mail, "idle");
    world.pass(20_000);
    assert_eq!(fire(&mut world), [(1_020_000, raised(1))], "the answer that is remembered under this id");
    assert_eq!(world.head(&mail).executions, 1);
}
