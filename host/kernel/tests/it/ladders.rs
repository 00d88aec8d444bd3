//! The rungs of the ladders one by one: what a step, an event and an apply are refused for, which of two
//! refusals wins, what is not asked again, and what a refusal leaves behind.

use crate::build::{
    condition, create, doc, entity, event, event_of, machine, mutation, name, rest, stay, step, succeeded, to,
};
use crate::semantics::{idle, job, working};
use crate::world::{Answered, World};
use interlock_kernel::command::{Change, Outcome, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{CONDITIONS_MAX, DOCUMENT_BYTES_MAX, INBOX_MAX};
use interlock_kernel::machine::{ApplyPolicy, Machine};
use interlock_kernel::record::{Condition, Expect, FactKind};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::Event;

fn refusal(answered: Answered) -> String {
    answered.expect_err("refused").to_string()
}

/// A step asks the same in a save and in a transition.
type Ask = fn(&mut World, &EntityId, Change) -> Answered;

const ASKS: [(&str, Ask); 2] = [
    ("save", |world, id, change| world.save(id, change)),
    ("transition", |world, id, change| world.transition(id, "idle", change)),
];

fn conditions(conditions: Vec<Condition>) -> Change {
    Change { conditions, ..Change::default() }
}

fn too_many() -> Vec<Condition> {
    (0..=CONDITIONS_MAX).map(|number| condition(&format!("c{number}"), "true")).collect()
}

#[test]
fn a_condition_of_the_hosts_own_or_of_no_type_is_denied() {
    for (verb, ask) in ASKS {
        for kind in ["interlock/execution", "interlock/", ""] {
            let (mut world, id) = working();
            let refused =
                refusal(ask(&mut world, &id, conditions(vec![condition("c", "true"), condition(kind, "true")])));
            assert_eq!(
                refused,
                format!("denied: conditions: expected a type of the author's own, got {kind:?}"),
                "{verb}"
            );
            assert!(world.wrote.is_empty());
        }
        let (mut world, id) = working();
        ask(&mut world, &id, conditions(vec![condition("interlock", "true")])).unwrap();
    }
}

#[test]
fn a_step_hears_of_the_conflict_before_what_it_asks_for() {
    for (verb, ask) in ASKS {
        let (mut world, id) = working();
        world.send(&id, "note", "n1"); // the version moves on
        let refused = ask(&mut world, &id, conditions(vec![condition("", "true")])).unwrap_err();
        assert_eq!(refused.code, Code::Conflict, "{verb}");
        world.starts.get_mut(&id).unwrap().claim.read = world.head(&id).version;
        world.rules.0.push((1, "data", "never", |_| false));
        let both = Change { data: Some(doc("7")), conditions: too_many(), ..Change::default() };
        assert_eq!(ask(&mut world, &id, both).unwrap_err().code, Code::Invalid, "{verb}: before the limit");
        assert_eq!(ask(&mut world, &id, conditions(too_many())).unwrap_err().code, Code::Limit, "{verb}");
    }
}

#[test]
fn what_a_step_proposes_keeps_to_its_schemas() {
    for (verb, ask) in ASKS {
        for of in ["data", "outputs"] {
            let (mut world, id) = working();
            world.rules.0.push((1, of, "never", |_| false));
            let set = vec![mutation(&format!("{of}.x = 1"))];
            assert_eq!(
                ask(&mut world, &id, Change { set, ..Change::default() }).unwrap_err().code,
                Code::Invalid,
                "{verb}"
            );
            assert!(world.wrote.is_empty());
            ask(&mut world, &id, Change::default()).unwrap(); // what it leaves as it is, is not judged again
        }
    }
}

#[test]
fn a_moves_own_set_is_judged_although_the_step_was_checked() {
    let checked = |set: &[&str], own: &[&str]| {
        let (set, own): (Vec<_>, Vec<_>) =
            (set.iter().map(|m| mutation(m)).collect(), own.iter().map(|m| mutation(m)).collect());
        let job = job().with(|machine| machine.states.get_mut(&name("working")).unwrap().to[0].set = own);
        let (mut world, id) = World::of(job, "job/a");
        world.send(&id, "run", "r1");
        world.rules.0.push((1, "data", "never", |_| false));
        let change = Change { data: Some(doc("{}")), set, checked: Some(1), ..Change::default() };
        world.transition(&id, "idle", change).map_err(|refused| refused.code)
    };
    assert!(checked(&[], &[]).is_ok(), "checked outside, and what was checked is what is stored");
    assert_eq!(checked(&["data.x = 1"], &[]), Err(Code::Invalid));
    assert_eq!(checked(&[], &["data.x = 1"]), Err(Code::Invalid));
    let (mut world, id) = working();
    world.rules.0.push((1, "data", "never", |_| false));
    for checked in [None, Some(2)] {
        let change = Change { data: Some(doc("{}")), checked, ..Change::default() };
        assert_eq!(world.transition(&id, "idle", change).unwrap_err().code, Code::Invalid);
    }
}

#[test]
fn a_guard_and_a_set_of_a_step_see_what_caused_the_visit() {
    let job = machine("job", "idle")
        .event("run")
        .state("idle", rest().on("run", to("working")))
        .state("working", step("work").to(to("idle").when("event.size gt 3").set("data.moved = event.size")));
    for size in [3, 4] {
        let (mut world, id) = World::of(crate::build::Mc(job.0.clone()), "job/a");
        world.send_of(&id, "run", "r1", &format!(r#"{{"size":{size}}}"#));
        let moved = world.transition(
            &id,
            "idle",
            Change { set: vec![mutation("data.saved = event.size")], ..Change::default() },
        );
        if size == 3 {
            assert_eq!(refusal(moved), "guard: job/a: expected event.size gt 3, got 3");
        } else {
            moved.unwrap();
            assert_eq!(world.data(&id), r#"{"moved":4,"saved":4}"#);
        }
    }
}

#[test]
fn an_event_whose_set_breaks_a_schema_or_a_right_is_refused_whole() {
    let job = || {
        machine("job", "idle").event("foreign").event("invalid").data(r#"{"n":1}"#).state(
            "idle",
            rest().on("foreign", to("idle").set("desired.n = 1")).on("invalid", to("idle").set("data.n = 9")),
        )
    };
    let (mut world, id) = World::of(job(), "job/a");
    world.rules.0.push((1, "data", "n below 9", |data| data["n"].as_u64() < Some(9)));
    assert_eq!(world.deliver(&id, event("foreign", "e1")).unwrap_err().code, Code::Denied);
    assert_eq!(world.deliver(&id, event("invalid", "e1")).unwrap_err().code, Code::Invalid);
    assert!(world.wrote.is_empty());
    assert_eq!(world.data(&id), r#"{"n":1}"#);
}

#[test]
fn an_event_refused_by_its_guard_leaves_nothing_behind() {
    let job = machine("job", "idle").event("run").state("idle", rest().on("run", to("idle").when("data.open eq true")));
    let (mut world, id) = World::of(job, "job/a");
    assert_eq!(world.deliver(&id, event("run", "r1")).unwrap_err().code, Code::Guard);
    assert!(world.wrote.is_empty());
}

#[test]
fn a_refused_command_does_not_even_adopt_a_revision() {
    let (mut world, id) = idle();
    world.deploy(job().with(|machine| machine.owner = "another team".to_owned()));
    world.rules.0.push((2, "desired", "never", |_| false));
    let apply = Verb::Apply { entity: id.clone(), desired: doc("{}"), expect: None, checked: None };
    assert_eq!(world.code(apply), Code::Invalid);
    assert!(world.wrote.is_empty());
    assert_eq!(world.head(&id).revision, 1);
}

#[test]
fn a_payload_checked_against_the_revision_that_judges_is_not_checked_again() {
    let (mut world, id) = idle();
    world.rules.0.push((1, "event.note", "never", |_| false));
    let sent = |checked| Event { checked, ..event_of("note", "n1", "7") };
    for checked in [None, Some(2)] {
        assert_eq!(world.deliver(&id, sent(checked)).unwrap_err().code, Code::Invalid);
    }
    world.deliver(&id, sent(Some(1))).unwrap();
    let unknown = Event { checked: Some(1), ..event("nothing", "n2") };
    assert_eq!(world.deliver(&id, unknown).unwrap_err().code, Code::Invalid, "checked or not, it is not declared");
    world.rules.0.push((1, "desired", "never", |_| false));
    let apply = |checked| Verb::Apply { entity: id.clone(), desired: doc("7"), expect: None, checked };
    for checked in [None, Some(2)] {
        assert_eq!(world.code(apply(checked)), Code::Invalid);
    }
    world.ok(apply(Some(1)));
}

fn with_events(change: impl FnOnce(&mut Machine)) -> (World, EntityId) {
    World::of(job().with(change), "job/a")
}

#[test]
fn what_a_state_takes_is_said_in_words() {
    let none = machine("job", "idle").state("idle", rest());
    let (mut world, id) = World::of(none, "job/a");
    let refused = refusal(world.deliver(&id, event("run", "r1")));
    assert_eq!(refused, "invalid: job event: expected no event: this machine takes none, got run");
    let (mut world, id) = idle();
    let refused = refusal(world.deliver(&id, event("stop", "s1")));
    assert_eq!(refused, "not_allowed: job/a: expected one of end, later, note, run, got stop in idle");
    // What only the host raises is nobody's to send; an event without moves is not taken.
    let only = |event_name: &str, keep: bool| {
        let (mut world, id) = with_events(|machine| {
            let on = &mut machine.states.get_mut(&name("idle")).unwrap().on;
            let moves = on.remove(&name("note")).unwrap();
            on.clear();
            on.insert(name(event_name), if keep { moves } else { Vec::new() });
        });
        world.deliver(&id, event("stop", "s1")).unwrap_err()
    };
    let refused = only("desired-changed", true).to_string();
    assert_eq!(refused, "not_allowed: job/a: expected no event in this state, got stop in idle");
    assert_eq!(only("stop", false).code, Code::NotAllowed);
}

#[test]
fn late_comes_before_an_inconsistent_entity_and_names_what_is_past() {
    let (mut world, id) = idle();
    world.send(&id, "end", "e1");
    let past = Event { expect: Expect { visit: Some(1), ..Expect::default() }, ..event("note", "n1") };
    let late = |answered: Answered| match answered {
        Ok(Outcome::Answered { answer, .. }) => answer.rejection.unwrap().to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        late(world.deliver(&id, past.clone())),
        "late: job/a: expected visit 1, got visit 2",
        "before: it is final"
    );
    let (mut world, id) = working();
    let mut head = world.head(&id);
    head.executions = 9;
    let head = interlock_kernel::record::Record::Head(Box::new(head));
    world.records.put(&interlock_kernel::record::Key::Head(id.clone()), &head);
    world.unchecked = true;
    world.ok(Verb::Audit { entity: id.clone(), found: Vec::new(), abandoned: None });
    assert!(world.head(&id).is_inconsistent());
    assert_eq!(late(world.deliver(&id, past)), "late: job/a: expected visit 1, got visit 2");
    assert_eq!(world.deliver(&id, event("note", "n2")).unwrap_err().code, Code::Busy);
}

#[test]
fn the_right_incarnation_says_nothing_about_the_rest() {
    let (mut world, id) = working();
    let head = world.head(&id);
    let sent = |visit, id: &str| {
        let expect = Expect { incarnation: Some(head.incarnation.get()), visit: Some(visit), ..Expect::default() };
        Event { expect, ..event("note", id) }
    };
    let Ok(Outcome::Answered { answer, .. }) = world.deliver(&id, sent(1, "n1")) else { panic!() };
    assert_eq!(answer.rejection.unwrap().code, Code::Late);
    assert_eq!(world.deliver(&id, sent(9, "n2")).unwrap_err().code, Code::Conflict);
    world.deliver(&id, sent(2, "n3")).unwrap();
}

fn huge() -> Doc {
    Doc::new("x".repeat(DOCUMENT_BYTES_MAX).into())
}

#[test]
fn a_full_inbox_is_told_only_to_what_would_wait_in_it_and_before_its_size() {
    let (mut world, id) = working();
    world.unchecked = true;
    for number in 0..INBOX_MAX {
        world.send(&id, "later", &format!("l{number}"));
    }
    assert_eq!(world.deliver(&id, event("run", "r2")).unwrap_err().code, Code::Busy);
    let refused = world.deliver(&id, Event { payload: Some(huge()), ..event("later", "l99") }).unwrap_err();
    assert!(refused.expected.contains("inbox_max"), "{refused}");
}

fn apply(id: &EntityId, desired: Doc, expect: Option<u64>) -> Verb {
    Verb::Apply { entity: id.clone(), desired, expect, checked: None }
}

#[test]
fn apply_is_refused_in_its_order() {
    let matched = || job().with(|machine| machine.apply = ApplyPolicy::IfMatch);
    let (mut world, id) = World::of(matched(), "job/a");
    assert_eq!(world.code(apply(&id, huge(), Some(7))), Code::Conflict, "before its size");
    assert_eq!(world.code(apply(&id, huge(), Some(0))), Code::Limit);
    world.send(&id, "end", "e1");
    assert_eq!(world.code(apply(&id, doc("1"), None)), Code::Invalid, "before final");
    assert_eq!(world.code(apply(&id, huge(), Some(7))), Code::Final, "before conflict");
}

#[test]
fn apply_told_again_is_the_same_document_over_the_same_generation() {
    let (mut world, id) = idle();
    for (text, expect) in [("1", 0), ("2", 1), ("1", 2)] {
        world.ok(apply(&id, doc(text), Some(expect)));
    }
    for (expect, said) in [(Some(3), true), (Some(2), true), (None, true), (Some(1), false), (Some(0), false)] {
        let answered = world.run(apply(&id, doc("1"), expect));
        let expected = if said { Ok(Outcome::Applied { generation: 3 }) } else { Err(Code::Conflict) };
        assert_eq!(answered.map_err(|refused| refused.code), expected, "{expect:?}");
        assert!(world.wrote.is_empty());
    }
}

#[test]
fn apply_of_the_default_document_is_the_first_generation() {
    let (mut world, id) = with_events(|machine| machine.desired.default = Some(doc("1")));
    assert_eq!(world.ok(apply(&id, doc("1"), None)), Outcome::Applied { generation: 1 });
    assert_eq!(world.ok(apply(&id, doc("1"), None)), Outcome::Applied { generation: 1 });
    assert!(world.wrote.is_empty());
}

#[test]
fn a_zombie_of_an_earlier_incarnation_is_recorded_without_an_execution_of_this_one() {
    let (mut world, id) = working();
    let old = world.claim(&id);
    world.code(Verb::Transition(old.clone(), name("nowhere"), Box::default()));
    world.go(&id, "idle");
    assert_eq!(world.code(Verb::Transition(old.clone(), name("idle"), Box::default())), Code::Fenced);
    let fact = world.last_entry(&id);
    assert_eq!((fact.execution, fact.attempt, fact.token), (Some(1), Some(1), Some(old.token)));
    world.ok(Verb::Delete(id.clone()));
    world.create(create("job/a")).unwrap();
    assert_eq!(world.code(Verb::Transition(old, name("idle"), Box::default())), Code::Fenced);
    let fact = world.last_entry(&id);
    assert!(matches!(fact.what, interlock_kernel::record::What::Fact(FactKind::Fenced, _)));
    assert_eq!((fact.execution, fact.attempt, fact.token), (None, None, None));
}

#[test]
fn an_event_in_place_begins_no_attempt_and_says_so() {
    let (mut world, id) = working();
    world.send(&id, "note", "n1");
    let entry = world.last_entry(&id);
    assert_eq!((entry.execution, entry.attempt, entry.token), (Some(1), None, None));
    world.send(&id, "stop", "s1");
    let entry = world.last_entry(&id);
    assert_eq!((entry.attempt, entry.token.map(|token| token.get())), (Some(1), Some(world.seq)));
}

#[test]
fn busy_says_the_longest_it_can_take_and_a_running_step_waits_for_no_timer() {
    let job = || {
        machine("job", "idle")
            .event("run")
            .state("idle", rest().on("run", to("working")))
            .state("working", step("work").to(to("idle")).after("bell", 1_000, stay()).deadline(60_000))
    };
    let until = |world: &mut World, id: &EntityId| {
        world.deliver(id, event("run", "r2")).unwrap_err().detail.unwrap().value()["until_ms"].as_i64().unwrap()
            - world.wall
    };
    let (mut world, id) = World::of(job(), "job/a");
    world.send(&id, "run", "r1");
    assert_eq!(until(&mut world, &id), 60_000);
    world.fail(&id, "slow");
    assert_eq!(until(&mut world, &id), 1_000);
}

#[test]
fn busy_says_when_to_come_back_and_never_at_once() {
    let job = machine("job", "idle")
        .event("run")
        .event("wait")
        .state("idle", rest().on("run", to("ringing")).on("wait", to("asking")))
        .state("ringing", crate::build::wait().after("bell", 5_000, to("idle")))
        .state("asking", crate::build::wait().deadline(5_000));
    let (mut world, id) = World::of(job, "job/a");
    let mut after = |first: &str| {
        world.send(&id, first, first);
        let mut said = Vec::new();
        for pass in [0, 1_000, 3_500, 9_000] {
            world.pass(pass);
            said.push(world.deliver(&id, event("run", "r2")).unwrap_err().retry_after_ms.unwrap());
        }
        if first == "run" {
            world.fire(&id, "bell");
        }
        said
    };
    assert_eq!((after("run"), after("wait")), (vec![5_000, 4_000, 1_000, 1_000], vec![5_000, 4_000, 1_000, 1_000]));
}

#[test]
fn an_execution_that_ends_well_is_remembered_as_such() {
    let last = |state: &str| {
        let (mut world, id) = working();
        world.go(&id, state);
        (world.head(&id).last.unwrap().succeeded, world.conditions(&id).len())
    };
    assert_eq!((last("over"), last("idle"), last("broken")), ((true, 0), (true, 0), (false, 1)));
    let (mut world, id) = working();
    world.end(&id, crate::world::permanent("burnt")).unwrap();
    assert_eq!((world.head(&id).last.unwrap().succeeded, world.conditions(&id).len()), (false, 1));
    world.send(&id, "run", "r2");
    world.go(&id, "idle");
    assert_eq!((world.head(&id).last.unwrap().succeeded, world.conditions(&id).len()), (true, 0));
}

#[test]
fn a_condition_keeps_the_time_of_its_own_status() {
    let (mut world, id) = working();
    let publish = |world: &mut World, kinds: [&str; 2]| {
        world.pass(1_000);
        world.save(&id, conditions(kinds.iter().map(|kind| condition(kind, "true")).collect())).unwrap();
        world.conditions(&id).iter().map(|one| (one.kind.clone(), one.since.0 - 1_000_000)).collect::<Vec<_>>()
    };
    let at = |kind: &str, since| (kind.to_owned(), since);
    assert_eq!(publish(&mut world, ["a", "b"]), [at("a", 1_000), at("b", 1_000)]);
    assert_eq!(publish(&mut world, ["c", "b"]), [at("a", 1_000), at("c", 2_000), at("b", 1_000)]);
    assert_eq!(publish(&mut world, ["c", "a"]), [at("b", 1_000), at("c", 2_000), at("a", 1_000)]);
}

#[test]
fn an_entity_that_is_not_there_is_not_found() {
    let (mut world, _) = World::of(
        machine("job", "idle").event("run").state("idle", rest().on("run", to("over"))).state("over", succeeded()),
        "job/a",
    );
    let nobody = entity("job/nobody");
    for verb in [apply(&nobody, doc("1"), None), Verb::Unpark(nobody.clone()), Verb::Delete(nobody)] {
        assert_eq!(world.code(verb), Code::NotFound);
    }
}
