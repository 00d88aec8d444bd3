//! Sessions told again, closed and lost; what is taken up after a stop; sweeps to the last record; first
//! events of a create; revisions that nearly fit.

use crate::build::{create, doc, entity, event, event_of, machine, name, rest, step, to, wait};
use crate::semantics::{idle, job, working};
use crate::world::{Answered, World};
use interlock_kernel::command::{Create, Deploy, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::limits::{DEDUP_MS_DEFAULT, DOCUMENT_BYTES_MAX, SWEEP_MAX};
use interlock_kernel::machine::{Machine, OnBusy, Revision, Revisions, StateKind};
use interlock_kernel::record::{Closed, Key, Record};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::{Session, WallTime};
use std::sync::Arc;

fn boot(nonce: &str) -> Verb {
    Verb::OpenSession { nonce: nonce.to_owned(), secret: [7; 32] }
}

fn session(outcome: Outcome) -> (u64, usize) {
    match outcome {
        Outcome::Session(id, closed) => (id.get(), closed),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_nonce_is_the_same_session_only_while_it_is_open() {
    let mut world = World::bare();
    let (first, _) = session(world.ok(boot("once")));
    assert_eq!(session(world.ok(boot("once"))), (first, 0));
    world.session = Session::of(interlock_kernel::SessionId::stored(first));
    world.ok(Verb::CloseSession);
    let (second, closed) = session(world.ok(boot("once")));
    assert!(second > first && closed == 0, "it was closed already, in good order");
    assert_eq!(session(world.ok(boot("twice"))).1, 1);
}

#[test]
fn a_session_that_was_lost_is_not_closed_in_good_order_afterwards() {
    let (mut world, id) = working();
    let old = world.session;
    world.open();
    let new = world.session;
    world.session = old;
    world.ok(Verb::CloseSession); // the host that was thought dead stops
    assert!(world.wrote.is_empty());
    world.session = new;
    let Some(Record::Session(lost)) =
        world.records.iter().find_map(|(key, record)| matches!(key, Key::Session(_)).then(|| record.clone()))
    else {
        panic!()
    };
    assert_eq!(lost.closed, Some(Closed::Lost));
    world.recover();
    assert_eq!(world.head(&id).lock.unwrap().lost, 1);
}

#[test]
fn what_is_taken_up_after_a_stop_runs_the_newest_revision() {
    let (mut world, id) = working();
    world.deploy(job().with(|machine| machine.states.get_mut(&name("working")).unwrap().idle_ms = 77));
    world.ok(Verb::CloseSession);
    world.reboot();
    assert_eq!((world.starts[&id].revision, world.starts[&id].idle_ms), (2, 77));
    assert_eq!(world.head(&id).lock.unwrap().lost, 0);
}

/// An entity with so many entries of history, deleted, and its retention over.
fn deleted(world: &mut World, key: &str, entries: usize) {
    let id = entity(key);
    world.create(create(key)).unwrap();
    for number in 2..entries {
        world.send(&id, "go", &format!("{}-{number}", id.key));
    }
    world.ok(Verb::Delete(id));
}

fn histories() -> World {
    let machine = machine("m", "a")
        .event_with("go", OnBusy::Reject, 60_000)
        .state("a", rest().on("go", to("a")))
        .with(|machine| machine.limits.history_ms = DEDUP_MS_DEFAULT);
    let mut world = World::with(machine);
    world.unchecked = true;
    world
}

fn sweeps(world: &mut World) -> Vec<(usize, bool)> {
    let mut all = Vec::new();
    loop {
        let Outcome::Swept { removed, more } = world.ok(Verb::Sweep) else { panic!() };
        all.push((removed, more));
        if !more {
            return all;
        }
    }
}

#[test]
fn a_history_is_swept_in_pieces_and_each_says_whether_there_is_more() {
    for (entries, expected) in [
        (SWEEP_MAX, vec![(SWEEP_MAX, true), (0, false)]),
        (SWEEP_MAX + 1, vec![(SWEEP_MAX, true), (1, false)]),
        (SWEEP_MAX - 1, vec![(SWEEP_MAX - 1, false)]),
        (2 * SWEEP_MAX + 1, vec![(SWEEP_MAX, true), (SWEEP_MAX, true), (1, false)]),
    ] {
        let mut world = histories();
        deleted(&mut world, "m/k", entries);
        world.pass(60_000);
        sweeps(&mut world); // the remembered events
        world.pass(DEDUP_MS_DEFAULT);
        assert_eq!(sweeps(&mut world), expected, "{entries} entries");
        assert!(!world.records.keys().any(|key| matches!(key, Key::History(..) | Key::Expiry(..))));
    }
}

#[test]
fn a_sweep_stops_at_its_bound_and_goes_on_below_it() {
    for (first, expected) in [(SWEEP_MAX, vec![(SWEEP_MAX, true), (2, false)]), (3, vec![(5, false)])] {
        let mut world = histories();
        deleted(&mut world, "m/a", first);
        deleted(&mut world, "m/b", 2);
        world.pass(60_000);
        sweeps(&mut world);
        world.pass(DEDUP_MS_DEFAULT);
        assert_eq!(sweeps(&mut world), expected);
    }
}

/// A store whose index of what expires holds marks.
struct Marks;

impl interlock_kernel::view::View for Marks {
    fn get(&self, _: &Key) -> Result<Option<Record>, interlock_kernel::view::Stop> {
        Ok(None)
    }

    fn scan(
        &self,
        _: &interlock_kernel::view::Span,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>, interlock_kernel::view::Stop> {
        let key = |number| Key::Expiry(interlock_kernel::time::StoreTime(0), number, 0);
        Ok((1..=limit as u64).map(|number| (key(number), Record::Mark)).collect())
    }
}

#[test]
fn a_sweep_that_can_remove_nothing_does_not_come_back_at_once() {
    let world = World::bare();
    let sweep = interlock_kernel::command::Command { by: Principal::host(), verb: Verb::Sweep };
    let decision = interlock_kernel::decide(&Marks, &world.rules, world.now(), &sweep).unwrap();
    assert_eq!(decision.outcome, Ok(Outcome::Swept { removed: 0, more: false }));
}

fn with_first(event: interlock_kernel::view::Event) -> Create {
    Create { event: Some(event), ..create("job/a") }
}

fn answered(made: Answered) -> Option<String> {
    match made {
        Ok(Outcome::Created { answer, .. }) => answer.map(|answer| answer.event.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_create_told_again_repeats_the_answer_to_its_own_event_while_it_is_remembered() {
    let mut world = World::with(job());
    let first = || with_first(event("note", "n1"));
    assert_eq!(answered(world.create(first())).as_deref(), Some("n1"));
    assert_eq!(answered(world.create(first())).as_deref(), Some("n1"));
    world.send(&entity("job/a"), "run", "r1");
    let other_id = with_first(event("note", "r1")); // the same request, under the id of another event
    assert_eq!(answered(world.create(other_id)), None);
    world.pass(DEDUP_MS_DEFAULT);
    assert_eq!(answered(world.create(first())), None, "forgotten, though not swept yet");
}

#[test]
fn an_existing_entity_is_said_to_be_of_another_request_or_just_there() {
    let (mut world, _) = idle();
    let refused = |world: &mut World, on_existing, desired: Option<&str>| {
        world.create(Create { on_existing, desired: desired.map(doc), ..create("job/a") }).unwrap_err().to_string()
    };
    let other = refused(&mut world, OnExisting::Same, Some("{}"));
    assert_eq!(
        other,
        "conflict: job/a: expected no entity with this key, got one that was created with another request"
    );
    let there = refused(&mut world, OnExisting::Fail, None);
    assert_eq!(there, "conflict: job/a: expected no entity with this key, got one that was created already");
}

#[test]
fn a_recreate_by_another_request_under_a_used_id_is_refused() {
    let (mut world, _) = idle();
    let recreate = |desired: Option<&str>| Create {
        on_existing: OnExisting::Recreate,
        desired: desired.map(doc),
        ..with_first(event("note", "n1"))
    };
    world.create(recreate(None)).unwrap();
    assert_eq!(world.create(recreate(Some("{}"))).unwrap_err().code, Code::IdReused);
    assert!(world.wrote.is_empty());
    world.pass(DEDUP_MS_DEFAULT);
    world.create(recreate(Some("{}"))).unwrap(); // forgotten: free again
}

#[test]
fn a_first_event_keeps_its_declaration_and_its_schema() {
    let mut world = World::with(job());
    world.rules.0.push((1, "event.note", "a number", |payload| payload.is_number()));
    for wrong in [event("nothing", "n1"), event_of("note", "n1", "true")] {
        assert_eq!(world.create(with_first(wrong)).unwrap_err().code, Code::Invalid);
        assert!(world.wrote.is_empty());
    }
    world.create(with_first(event_of("note", "n1", "7"))).unwrap();
}

fn changed(change: impl FnOnce(&mut Machine)) -> crate::build::Mc {
    job().with(|machine| machine.owner = "another team".to_owned()).with(change)
}

#[test]
fn a_definition_may_be_as_large_as_its_bound_and_no_larger() {
    let mut world = World::bare();
    world.open();
    let machine = Arc::new(job().0);
    let deploy = |source: String| {
        Verb::Deploy(Box::new(Deploy { machine: machine.clone(), digest: Digest([1; 32]), component: None, source }))
    };
    let size = |source: String| {
        let (deployed, by) = (WallTime(world.wall), Principal::local());
        let (number, digest, component, rollback_of) = (1, Digest([1; 32]), None, None);
        let revision =
            Revision { number, digest, component, source, rollback_of, deployed, by, machine: machine.clone() };
        Record::Revision(Arc::new(revision)).encode(&Key::Revision("job".parse().unwrap(), 1)).len()
    };
    let room = DOCUMENT_BYTES_MAX - size("s".repeat(200_000)) + 200_000;
    assert_eq!(size("s".repeat(room)), DOCUMENT_BYTES_MAX);
    let refused = world.refused(deploy("s".repeat(room + 1)));
    assert_eq!((refused.code, refused.got), (Code::Limit, format!("{} bytes", DOCUMENT_BYTES_MAX + 1)));
    world.ok(deploy("s".repeat(room)));
}

fn cannot_move(world: &World, id: &EntityId) -> Option<String> {
    interlock_kernel::cannot_move(&world.records, &world.rules, world.now(), id).unwrap()
}

#[test]
fn an_entity_of_the_active_revision_is_held_back_by_nothing() {
    let (mut world, id) = World::of(job().with(|machine| machine.revisions = Revisions::Pinned), "job/a");
    assert_eq!(cannot_move(&world, &id), None);
    world.deploy(changed(|machine| machine.revisions = Revisions::Pinned));
    assert_eq!(cannot_move(&world, &id).as_deref(), Some("pinned to the revision it began with"));
    assert_eq!(cannot_move(&world, &entity("job/nobody")), None);
}

#[test]
fn what_holds_an_entity_back_is_said_in_order() {
    let waiting = |revisions| {
        let (mut world, id) = World::of(job().with(|machine| machine.revisions = revisions), "job/a");
        world.send(&id, "run", "r1");
        world.send(&id, "later", "l1");
        world.go(&id, "waiting");
        (world, id)
    };
    let edits: [fn(&mut Machine); 3] = [
        |machine| drop(machine.states.remove(&name("waiting"))),
        |machine| machine.states.get_mut(&name("waiting")).unwrap().kind = StateKind::Rest,
        |machine| machine.states.get_mut(&name("waiting")).unwrap().step = Some(name("x")),
    ];
    let reasons =
        ["not in revision 2", "is Rest there, not Working", "has a step in one revision and waits in the other"];
    for (edit, reason) in edits.into_iter().zip(reasons) {
        for (revisions, data, expected) in [
            (Revisions::Pinned, true, "pinned to the revision"),
            (Revisions::Newest, true, reason),
            (Revisions::Newest, false, reason),
        ] {
            let (mut world, id) = waiting(revisions);
            if data {
                world.rules.0.push((2, "data", "never", |_| false));
            }
            world.deploy(changed(|machine| {
                drop(machine.events.remove(&name("later")));
                edit(machine);
            }));
            let held = cannot_move(&world, &id).unwrap();
            assert!(held.contains(expected), "{held}");
        }
    }
    let (mut world, id) = waiting(Revisions::Newest);
    world.rules.0.push((2, "data", "never", |_| false));
    world.deploy(changed(|machine| drop(machine.events.remove(&name("later")))));
    assert!(cannot_move(&world, &id).unwrap().starts_with("data: expected never"));
    world.rules.0.clear();
    assert!(cannot_move(&world, &id).unwrap().starts_with("its waiting event later (l1)"));
}

#[test]
fn a_visit_that_goes_on_keeps_its_timers_and_something_that_wakes_it() {
    let bells = |timers: &[&str], forever: bool| {
        let mut waiting = if forever { wait().forever() } else { wait() };
        for timer in timers {
            waiting = waiting.after(timer, 1_000, to("idle"));
        }
        let owner = format!("{timers:?}");
        let job = machine("job", "idle").event("run").event("note");
        job.state("idle", rest().on("run", to("waiting")))
            .state("waiting", waiting)
            .with(|machine| machine.owner = owner)
    };
    let moved = |old: (&[&str], bool), new: (&[&str], bool)| {
        let (mut world, id) = World::of(bells(old.0, old.1), "job/a");
        world.send(&id, "run", "r1");
        world.deploy(bells(new.0, new.1));
        cannot_move(&world, &id)
    };
    assert_eq!(moved((&["one"], false), (&["two", "one"], false)), None, "known there");
    assert_eq!(moved((&["one", "two"], false), (&["one"], false)).as_deref(), Some("its timer two is not there"));
    assert_eq!(moved((&[], true), (&["one"], false)).as_deref(), Some("nothing would wake it in waiting there"));
    assert_eq!(moved((&["one"], false), (&["one", "two"], true)), None);
}

#[test]
fn a_visit_is_entered_by_the_newest_revision_if_its_state_is_of_the_same_kind() {
    let entered = |change: fn(&mut Machine)| {
        let (mut world, id) = working();
        world.deploy(changed(change));
        world.go(&id, "waiting");
        let head = world.head(&id);
        (head.revision, head.lock.is_some_and(|lock| lock.attempt.is_some()))
    };
    assert_eq!(entered(|_| ()), (2, false));
    let becomes_a_step = |machine: &mut Machine| {
        let state = machine.states.get_mut(&name("waiting")).unwrap();
        (state.step, state.waits_forever) = (Some(name("x")), false);
    };
    assert_eq!(entered(becomes_a_step), (2, true), "nothing of the visit exists yet: its step runs at once");
    assert_eq!(entered(|machine| machine.states.get_mut(&name("waiting")).unwrap().kind = StateKind::Rest), (1, false));
}

#[test]
fn a_kind_that_changed_is_told_before_a_step_that_went() {
    let (mut world, id) = working();
    world.fail(&id, "slow");
    world.deploy(changed(|machine| {
        let state = machine.states.get_mut(&name("working")).unwrap();
        (state.kind, state.step) = (StateKind::Rest, None);
        state.to.clear();
    }));
    assert!(cannot_move(&world, &id).unwrap().contains("is Rest there"));
    let job = machine("job", "idle").event("run").state("idle", rest().on("run", to("working")));
    let (world, id) = World::of(job.state("working", step("work").to(to("idle"))), "job/a");
    assert_eq!(cannot_move(&world, &id), None);
}
