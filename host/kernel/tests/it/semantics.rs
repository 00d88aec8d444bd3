//! The settled questions that concern the kernel, one test each and named for it. Some are longer
//! stories elsewhere: S8 and S9 in `retries`, S13 in `deploy`, S16 in `desired`, S25 in `audit`.

use crate::build::{
    Mc, condition, create, doc, entity, event, failed, machine, mutation, name, rest, stay, step, succeeded, to, wait,
};
use crate::world::{World, permanent};
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::ids::{EntityId, ExecutionRef};
use interlock_kernel::record::{Answer, AnswerKind, Expect, FactKind, What};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::{Event, Wake};

/// A job with one step, a queue, and events that a running step does not mind.
pub(crate) fn job() -> Mc {
    machine("job", "idle")
        .event("run")
        .queued("later")
        .event("note")
        .event("stop")
        .event("end")
        .data(r#"{"runs":0,"notes":0}"#)
        .state(
            "idle",
            rest()
                .on("run", to("working").set("data.runs += 1"))
                .on("later", to("working").set("data.runs += 1"))
                .on("note", to("idle").set("data.notes += 1"))
                .on("end", to("over")),
        )
        .state(
            "working",
            step("work")
                .to(to("idle"))
                .to(to("working"))
                .to(to("waiting"))
                .to(to("over"))
                .to(to("broken"))
                .on("note", stay().set("data.notes += 1"))
                .on("stop", to("stopping"))
                .on_permanent(to("idle")),
        )
        .state("stopping", step("stop").to(to("idle")))
        .state("waiting", wait().forever().on("stop", to("stopping")))
        .state("over", succeeded())
        .state("broken", failed())
}

pub(crate) fn idle() -> (World, EntityId) {
    World::of(job(), "job/a")
}

pub(crate) fn working() -> (World, EntityId) {
    let (mut world, id) = idle();
    world.send(&id, "run", "r1");
    (world, id)
}

fn first(id: &str, event: Event) -> Create {
    Create { event: Some(event), ..create(id) }
}

#[test]
fn s1_an_entity_starts_at_rest_with_version_1_and_generation_0_or_1() {
    let (world, id) = idle();
    let head = world.head(&id);
    assert_eq!((head.version.get(), head.visit.get(), head.generation, head.state.as_str()), (1, 1, 0, "idle"));
    let mut world = World::with(job());
    world.create(Create { desired: Some(doc("{}")), ..create("job/b") }).unwrap();
    assert_eq!(world.head(&entity("job/b")).generation, 1);
}

#[test]
fn s1_a_first_event_is_decided_in_the_same_transaction() {
    let mut world = World::with(job());
    let made = world.create(first("job/a", event("run", "r1"))).unwrap();
    let Outcome::Created { version, answer: Some(answer), new: true, .. } = made else { panic!("{made:?}") };
    assert_eq!((version.get(), answer.execution, world.decisions), (2, Some(1), 1));
}

#[test]
fn s1_a_refused_first_event_refuses_the_create() {
    let mut world = World::with(job());
    assert_eq!(world.create(first("job/a", event("stop", "r1"))).unwrap_err().code, Code::NotAllowed);
    assert!(world.wrote.is_empty() && world.heads().is_empty());
}

#[test]
fn s2_rest_to_rest_event_takes_no_lock() {
    let (mut world, id) = idle();
    let answer = world.send(&id, "note", "n1");
    assert_eq!((answer.version.get(), answer.execution), (2, None));
    let head = world.head(&id);
    assert_eq!((head.lock, head.executions, head.visit.get()), (None, 0, 2));
    assert!(world.starts.is_empty());
}

#[test]
fn s3_an_execution_is_named_by_its_entity_and_parsed_from_the_last_at() {
    let (world, id) = working();
    let execution = world.head(&id).locked_by(&id).unwrap().to_string();
    assert_eq!(execution, "job/a@3.1");
    let parsed: ExecutionRef = execution.parse().unwrap();
    assert_eq!((parsed.entity, parsed.incarnation, parsed.ordinal), (id, 3, 1));
    for bad in ["job/a", "job/a@3", "job/a@x.1", "job/a@3.y", "job/a@b@3.1", "job@3.1", "@3.1"] {
        assert!(bad.parse::<ExecutionRef>().is_err(), "{bad}");
    }
    for bad in ["", "a@b", "tab\t", &"k".repeat(201)] {
        assert!(bad.parse::<interlock_kernel::ids::EntityKey>().is_err(), "{bad}");
    }
    for bad in ["", "Job", "1job", "jo b", "jöb", &"j".repeat(64)] {
        assert!(bad.parse::<interlock_kernel::ids::MachineName>().is_err(), "{bad}");
    }
}

#[test]
fn s4_attempts_count_from_1_in_each_visit() {
    let (mut world, id) = working();
    world.fail(&id, "slow");
    world.due(&id);
    assert_eq!(world.claim(&id).attempt, 2);
    world.reboot();
    assert_eq!(world.claim(&id).attempt, 3);
    let lock = world.head(&id).lock.unwrap();
    assert_eq!((lock.attempts, lock.failed, lock.lost), (3, 1, 1));
    world.go(&id, "working"); // the current state is a new visit
    assert_eq!(world.claim(&id).attempt, 1);
    let lock = world.head(&id).lock.unwrap();
    assert_eq!((lock.attempts, lock.failed, lock.lost), (1, 0, 0));
}

#[test]
fn s5_an_attempt_begins_with_its_visit_and_later_ones_move_no_version() {
    let (mut world, id) = working();
    let begun = world.head(&id).lock.unwrap().attempt.unwrap();
    assert_eq!(begun.token.get(), world.seq);
    let version = world.head(&id).version;
    world.fail(&id, "slow");
    world.due(&id);
    world.reboot();
    assert_eq!(world.head(&id).version, version);
}

#[test]
fn s6_an_event_with_a_target_fences_the_running_attempt() {
    let (mut world, id) = working();
    let zombie = world.claim(&id);
    world.send(&id, "stop", "s1");
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::Fence { token, .. } if *token == zombie.token)));
    assert_eq!(world.code(Verb::Transition(zombie, name("idle"), Box::default())), Code::Fenced);
    world.go(&id, "idle");
}

#[test]
fn s6_an_event_without_a_target_is_the_one_conflict_a_holder_meets() {
    let (mut world, id) = working();
    let before = world.head(&id);
    world.send(&id, "note", "n1");
    let head = world.head(&id);
    assert_eq!((head.version.get(), head.visit), (before.version.get() + 1, before.visit));
    let refused = world.transition(&id, "idle", Change::default()).unwrap_err();
    assert_eq!((refused.code, refused.retryable), (Code::Conflict, true));
    world.starts.get_mut(&id).unwrap().claim.read = head.version; // it reloads
    world.go(&id, "idle");
    assert_eq!(world.data(&id), r#"{"notes":1,"runs":1}"#);
}

#[test]
fn s7_a_refused_transition_leaves_the_attempt_open() {
    let (mut world, id) = working();
    for _ in 0..20 {
        assert_eq!(world.transition(&id, "nowhere", Change::default()).unwrap_err().code, Code::NotAllowed);
        assert!(world.wrote.is_empty());
    }
    world.go(&id, "idle");
}

#[test]
fn s11_a_parked_execution_keeps_its_lock_and_still_takes_its_own_events() {
    let (mut world, id) =
        World::of(job().with(|machine| machine.states.get_mut(&name("working")).unwrap().retry.attempts = 1), "job/a");
    world.send(&id, "run", "r1");
    world.fail(&id, "broken");
    let head = world.head(&id);
    assert_eq!(head.park.as_ref().unwrap().code, "exhausted");
    assert!(head.lock.is_some());
    world.send(&id, "note", "n1");
    assert!(world.head(&id).park.is_some());
    world.send(&id, "stop", "s1");
    assert!(world.head(&id).park.is_none());
    world.go(&id, "idle");
}

#[test]
fn s12_recovery_is_one_command_for_each_orphan_and_leaves_waiters_alone() {
    let (mut world, _) = working();
    for key in ["job/b", "job/c"] {
        world.create(create(key)).unwrap();
        world.send(&entity(key), "run", "r1");
    }
    world.go(&entity("job/c"), "waiting");
    world.open();
    assert_eq!(world.wakes.len(), 0, "nothing runs because a session opened");
    let before = world.head(&entity("job/c"));
    world.recover();
    assert_eq!(world.head(&entity("job/c")), before);
    for key in ["job/a", "job/b"] {
        let lock = world.head(&entity(key)).lock.unwrap();
        assert_eq!((lock.lost, lock.attempt.unwrap().ordinal), (1, 2));
    }
}

#[test]
fn s14_deleting_twice_is_not_found_and_only_history_and_dedup_stay() {
    let (mut world, id) = idle();
    world.send(&id, "note", "n1");
    world.ok(Verb::Delete(id.clone()));
    assert_eq!(world.code(Verb::Delete(id.clone())), Code::NotFound);
    use interlock_kernel::record::Key;
    let of = world
        .records
        .keys()
        .filter(|key| !matches!(key, Key::Machine(_) | Key::Revision(..) | Key::Session(_) | Key::Secret));
    assert!(of.clone().all(|key| matches!(key, Key::History(..) | Key::Dedup(..) | Key::Expiry(..))));
    assert_eq!(of.filter(|key| matches!(key, Key::History(..))).count(), 3);
}

#[test]
fn s15_create_again_compares_the_request_not_todays_state() {
    let (mut world, id) = idle();
    world.send(&id, "note", "n1");
    let again = |on_existing| Create { on_existing, ..create("job/a") };
    let other = |on_existing| Create { on_existing, desired: Some(doc("{}")), ..create("job/a") };
    let exists = |made| matches!(made, Ok(Outcome::Created { new: false, .. }));
    assert!(exists(world.create(again(OnExisting::Same))));
    assert_eq!(world.create(other(OnExisting::Same)).unwrap_err().code, Code::Conflict);
    assert_eq!(world.create(again(OnExisting::Fail)).unwrap_err().code, Code::Conflict);
    assert!(exists(world.create(other(OnExisting::Use))));
    let used = world.create(Create { event: Some(event("note", "n2")), ..other(OnExisting::Use) }).unwrap();
    let Outcome::Created { answer: Some(answer), new: false, version, .. } = used else { panic!("{used:?}") };
    assert_eq!((answer.version.get(), version.get()), (3, 3));
    let remade = world.create(Create { event: Some(event("note", "n3")), ..other(OnExisting::Recreate) }).unwrap();
    let Outcome::Created { incarnation, version, new: true, .. } = remade else { panic!("{remade:?}") };
    assert_eq!((incarnation.get(), version.get()), (world.seq, 2));
    assert_eq!(world.head(&id).generation, 1);
}

#[test]
fn s15_recreate_keeps_deletes_rule() {
    let (mut world, id) = working();
    let recreate = || Create { on_existing: OnExisting::Recreate, ..create("job/a") };
    assert_eq!(world.create(recreate()).unwrap_err().code, Code::Busy);
    world.go(&id, "over");
    world.create(recreate()).unwrap();
    assert_eq!(world.head(&id).state, name("idle"));
}

#[test]
fn s17_the_inbox_is_drained_in_the_transaction_that_comes_to_rest() {
    let (mut world, id) = working();
    for number in 1..=3 {
        assert_eq!(world.send(&id, "later", &format!("l{number}")).kind, AnswerKind::Queued);
    }
    world.go(&id, "idle");
    assert_eq!(world.decisions, 2, "one queued event began the next execution");
    let head = world.head(&id);
    assert_eq!((head.executions, head.inbox.length, head.state.as_str()), (2, 2, "working"));
    let answer = world.dedup(&id, "l1").unwrap().answer;
    assert_eq!((answer.kind, answer.execution, answer.version), (AnswerKind::Accepted, Some(2), head.version));
}

#[test]
fn s17_entering_a_final_state_refuses_the_rest_of_the_inbox() {
    let (mut world, id) = working();
    world.send(&id, "later", "l1");
    world.send(&id, "later", "l2");
    world.go(&id, "over");
    for queued in ["l1", "l2"] {
        let Answer { kind, rejection, .. } = world.dedup(&id, queued).unwrap().answer;
        assert_eq!((kind, rejection.unwrap().code), (AnswerKind::Refused, Code::Final));
    }
}

#[test]
fn s17_a_queued_event_that_ends_the_entity_refuses_only_those_behind_it() {
    let in_working = |machine: &mut interlock_kernel::machine::Machine| {
        machine.states.get_mut(&name("working")).unwrap().on.remove(&name("note"));
    };
    let (mut world, id) = World::of(job().queued("end").queued("note").with(in_working), "job/a");
    world.send(&id, "run", "r1");
    for (text, id_) in [("note", "n1"), ("end", "e1"), ("later", "l1"), ("later", "l2")] {
        assert_eq!(world.send(&id, text, id_).kind, AnswerKind::Queued);
    }
    world.go(&id, "idle");
    assert_eq!(world.head(&id).state, name("over"));
    let kinds = ["n1", "e1", "l1", "l2"].map(|id_| world.dedup(&id, id_).unwrap().answer.kind);
    assert_eq!(kinds, [AnswerKind::Accepted, AnswerKind::Accepted, AnswerKind::Refused, AnswerKind::Refused]);
}

#[test]
fn s19_only_the_past_is_late() {
    let past = |change: fn(&mut Expect)| {
        let mut expect = Expect::default();
        change(&mut expect);
        expect
    };
    // At version 4, visit 4, execution 1 over, generation 1, incarnation 3.
    let table: [(&str, Expect, &str); 12] = [
        ("nothing", past(|_| ()), "Accepted"),
        (
            "past incarnation",
            past(|e| e.incarnation = Some(2)),
            "late: job/a: expected incarnation 2, got incarnation 3",
        ),
        ("this incarnation", past(|e| e.incarnation = Some(3)), "Accepted"),
        (
            "next incarnation",
            past(|e| e.incarnation = Some(9)),
            "conflict: job/a: expected incarnation 9, got incarnation 3",
        ),
        ("past execution", past(|e| e.execution = Some(1)), "late: job/a: expected execution 1, got none running"),
        ("next execution", past(|e| e.execution = Some(2)), "conflict: job/a: expected execution 2, got none running"),
        ("past visit", past(|e| e.visit = Some(1)), "late: job/a: expected visit 1, got visit 3"),
        ("next visit", past(|e| e.visit = Some(9)), "conflict: job/a: expected visit 9, got visit 3"),
        ("past generation", past(|e| e.generation = Some(0)), "late: job/a: expected generation 0, got generation 1"),
        (
            "next generation",
            past(|e| e.generation = Some(2)),
            "conflict: job/a: expected generation 2, got generation 1",
        ),
        ("past version", past(|e| e.version = Some(1)), "conflict: job/a: expected version 1, got version 3"),
        (
            "all as it is",
            Expect { incarnation: Some(3), execution: None, visit: Some(3), generation: Some(1), version: Some(3) },
            "Accepted",
        ),
    ];
    for (what, expect, expected) in table {
        let (mut world, id) = working();
        world.go(&id, "idle");
        world.ok(Verb::Apply { entity: id.clone(), desired: doc("{}"), expect: None, checked: None });
        let sent = world.deliver(&id, Event { expect, ..event("note", "n1") });
        let got = match sent {
            Ok(Outcome::Answered { answer, .. }) => {
                answer.rejection.map_or(format!("{:?}", answer.kind), |refused| refused.to_string())
            }
            Ok(other) => panic!("{other:?}"),
            Err(refused) => refused.to_string(),
        };
        assert_eq!(got, expected, "{what}");
        // Late is a fact and remembered; a conflict is neither.
        assert_eq!(world.dedup(&id, "n1").is_some(), !expected.starts_with("conflict"), "{what}");
        assert_eq!(world.head(&id).facts.contains_key(&FactKind::Late), expected.starts_with("late"), "{what}");
    }
}

#[test]
fn s19_what_the_state_does_not_take_is_a_fact_and_not_remembered() {
    let (mut world, id) = idle();
    assert_eq!(world.deliver(&id, event("stop", "s1")).unwrap_err().code, Code::NotAllowed);
    assert!(world.dedup(&id, "s1").is_none());
    assert!(matches!(world.last_entry(&id).what, What::Fact(FactKind::NotAllowed, _)));
    world.send(&id, "run", "r1");
    world.send(&id, "stop", "s1"); // it came true
}

#[test]
fn s20_an_answer_says_what_became_of_the_event_and_where_the_entity_stands() {
    let (mut world, id) = idle();
    let lines = [
        crate::show::answer(&world.send(&id, "note", "n1")),
        crate::show::answer(&world.send(&id, "run", "r1")),
        crate::show::answer(&world.send(&id, "note", "n2")),
        crate::show::answer(&world.send(&id, "later", "l1")),
    ];
    assert_eq!(
        lines,
        ["Accepted v2 idle", "Accepted v3 working @3.1", "Accepted v4 working @3.1", "Queued v4 working"]
    );
}

#[test]
fn s22_versions_move_on_create_event_timer_save_and_transition_only() {
    let (mut world, id) = World::of(job().state("waiting", wait().after("bell", 1_000, to("working"))), "job/a");
    let mut versions = vec![("create", world.head(&id).version.get())];
    let mut note = |world: &World, what| versions.push((what, world.head(&id).version.get()));
    world.ok(Verb::Apply { entity: id.clone(), desired: doc("{}"), expect: None, checked: None });
    note(&world, "apply");
    world.deliver(&id, event("stop", "s1")).unwrap_err();
    note(&world, "fact");
    world.send(&id, "run", "r1");
    note(&world, "event");
    world.save(&id, Change::default()).unwrap();
    note(&world, "save");
    world.fail(&id, "slow");
    note(&world, "end");
    world.due(&id);
    note(&world, "begin");
    world.send(&id, "later", "l1");
    note(&world, "enqueue");
    world.go(&id, "waiting");
    note(&world, "transition");
    world.fire(&id, "bell");
    note(&world, "timer");
    for attempt in 1..=5 {
        world.fail(&id, "slow");
        if attempt < 5 {
            world.due(&id);
        }
    }
    note(&world, "park");
    world.ok(Verb::Unpark(id.clone()));
    note(&world, "unpark");
    let expected = [1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 5, 5];
    assert_eq!(versions.iter().map(|(_, version)| *version).collect::<Vec<_>>(), expected, "{versions:?}");
}

#[test]
fn s23_history_names_who_asked_and_a_queued_event_its_sender() {
    let (mut world, id) = working();
    world.by = "alice".into_principal();
    world.send(&id, "later", "l1");
    world.by = interlock_kernel::ids::Principal::local();
    world.pass(5_000);
    world.go(&id, "idle");
    let by: Vec<String> =
        world.history(&id, &world.head(&id)).iter().map(|entry| format!("{} {:?}", entry.by, entry.what)).collect();
    assert_eq!(
        by,
        [
            "local Created",
            r#"local Event(Name("run"))"#,
            r#"alice Queued(Name("later"))"#,
            r#"job/a@3.1 Transition(Name("work"))"#,
            r#"alice Event(Name("later"))"#,
        ]
    );
    assert_eq!(world.head(&id).cause.at.0, world.wall - 5_000, "it happened when it arrived");
}

trait IntoPrincipal {
    fn into_principal(self) -> interlock_kernel::ids::Principal;
}

impl IntoPrincipal for &str {
    fn into_principal(self) -> interlock_kernel::ids::Principal {
        serde_json::from_value(serde_json::Value::String(self.to_owned())).unwrap()
    }
}

#[test]
fn s24_an_execution_that_failed_back_to_rest_is_seen_until_the_next_success() {
    let (mut world, id) = working();
    world.end(&id, permanent("burnt")).unwrap();
    let head = world.head(&id);
    assert_eq!((head.state.as_str(), head.last.unwrap().succeeded), ("idle", false));
    let seen = world.conditions(&id);
    assert_eq!((seen.len(), seen[0].kind.as_str(), seen[0].reason.as_str()), (1, "interlock/execution", "burnt"));
    assert_eq!(seen[0].message, "job/a@3.1: because of burnt");
    world.send(&id, "note", "n1"); // no execution: it says nothing about the last one
    assert_eq!(world.conditions(&id).len(), 1);
    world.send(&id, "run", "r2");
    world.transition(&id, "idle", Change { conditions: vec![condition("warm", "true")], ..Change::default() }).unwrap();
    assert_eq!(world.conditions(&id).iter().map(|one| one.kind.as_str()).collect::<Vec<_>>(), ["warm"]);
    assert!(world.head(&id).last.unwrap().succeeded);
}

#[test]
fn s24_a_failed_final_state_and_a_kill_are_failures_too() {
    let (mut world, id) = working();
    world.go(&id, "broken");
    assert_eq!(world.conditions(&id)[0].reason, "failed-state");
    let (mut world, id) = working();
    world.ok(Verb::Kill { entity: id.clone(), reason: "enough".to_owned() });
    assert_eq!((world.conditions(&id)[0].reason.as_str(), world.head(&id).last.unwrap().succeeded), ("killed", false));
}

#[test]
fn s26_create_told_again_answers_what_its_first_event_was_answered() {
    let mut world = World::with(job());
    let made = world.create(first("job/a", event("run", "r1"))).unwrap();
    world.go(&entity("job/a"), "idle");
    let again = world.create(first("job/a", event("run", "r1"))).unwrap();
    let (Outcome::Created { answer: one, .. }, Outcome::Created { answer: two, new: false, .. }) = (made, again) else {
        panic!()
    };
    assert_eq!(one, two);
}

#[test]
fn set_of_a_step_and_of_its_move_are_applied_in_order() {
    let moved = job().with(|machine| {
        let state = machine.states.get_mut(&name("working")).unwrap();
        state.to[0].set = vec![mutation("data.total = data.part")];
    });
    let (mut world, id) = World::of(moved, "job/a");
    world.send(&id, "run", "r1");
    let set = vec![mutation("data.part = 4"), mutation("data.part += 1")];
    world.transition(&id, "idle", Change { set, ..Change::default() }).unwrap();
    assert_eq!(world.data(&id), r#"{"notes":0,"part":5,"runs":1,"total":5}"#);
}

#[test]
fn the_first_move_in_file_order_whose_guard_holds_is_taken() {
    let sorter = || {
        machine("sorter", "idle")
            .event("sort")
            .state(
                "idle",
                rest()
                    .on("sort", to("small").when("event.n lt 10"))
                    .on("sort", to("even").when("event.n lt 100"))
                    .on("sort", to("large")),
            )
            .state("small", succeeded())
            .state("even", succeeded())
            .state("large", succeeded())
    };
    for (n, state) in [(5, "small"), (50, "even"), (500, "large")] {
        let (mut world, id) = World::of(sorter(), "sorter/a");
        world.deliver(&id, Event { payload: Some(doc(&format!(r#"{{"n":{n}}}"#))), ..event("sort", "s1") }).unwrap();
        assert_eq!(world.head(&id).state, name(state));
    }
}

#[test]
fn an_event_without_payload_is_what_a_schema_of_false_wants() {
    use interlock_kernel::machine::{EventSpec, OnBusy};
    let spec = |schema: &str| EventSpec { on_busy: OnBusy::Reject, dedup_ms: 60_000, schema: Some(doc(schema)) };
    let (some, null) = (doc("1"), doc("null"));
    assert_eq!(spec("false").judged(None), None, "never a payload, and none came");
    assert_eq!(spec("false").judged(Some(&some)), Some(some.clone()), "judged, and so refused");
    assert_eq!(spec(r#"{"type":"object"}"#).judged(None), Some(null), "a missing payload is null");
    assert_eq!(EventSpec { schema: None, ..spec("false") }.judged(Some(&some)), None);
}

#[test]
fn no_text_becomes_a_record_with_a_number_of_its_own() {
    use interlock_kernel::record::{OpenAttempt, SessionRecord};
    let forged = serde_json::from_str::<OpenAttempt>(r#"{"ordinal":1,"token":9007199254740991,"session":1}"#);
    assert!(forged.is_err_and(|why| why.to_string().contains("expected a stored record, got text")));
    let harmless = r#"{"nonce":"n","opened":1,"closed":null}"#;
    assert!(serde_json::from_str::<SessionRecord>(harmless).is_ok(), "it names no number that is a right");
}
