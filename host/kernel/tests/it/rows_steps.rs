//! What steps ask of rows, at once or with their commit, and what becomes of it at the end of their execution.

use crate::build::{create, doc, entity, machine, name, rest};
use crate::rows::{
    again, claim, key, many, one, op, put, queue, row, row_key, set, staging, step_asks, step_asks_as, step_verb,
    table_heads, table_name, taken, update, upsert, value, worker, working, working_with,
};
use interlock_kernel::command::{Change, Outcome, Verb};
use interlock_kernel::limits::MEMOS_MAX;
use interlock_kernel::rejection::Code;
use interlock_kernel::rows::{MemoName, Order, Require, RowAnswer, RowAsk};
use interlock_kernel::table::OnEnd;
use interlock_kernel::value::Filter;
use interlock_kernel::view::Wake;
use std::collections::BTreeSet;

// --- steps

#[test]
fn a_retried_attempt_gets_the_same_answer_and_changes_nothing_again() {
    let (mut world, id) = working(&queue(&[]));
    let count = || vec![upsert("n", "1", &["row += 1"])];
    let first = step_asks(&mut world, &id, count()).unwrap();
    assert!(!first.1);
    again(&mut world, &id);
    assert_eq!(step_asks(&mut world, &id, count()).unwrap(), (first.0, true));
    assert_eq!(row(&world, "n").unwrap().value.text(), "1");
    let (answers, replayed) = step_asks_as(&mut world, &id, MemoName::Asked(1), count()).unwrap();
    assert!(!replayed && matches!(&answers[0], RowAnswer::Upserted { inserted: false, .. }));
    world.save(&id, Change::default()).unwrap();
    assert!(!step_asks(&mut world, &id, count()).unwrap().1, "a save is where the next attempt begins");
    assert_eq!(row(&world, "n").unwrap().value.text(), "3");
}

#[test]
fn a_step_may_name_what_is_remembered() {
    let (mut world, id) = working(&queue(&[]));
    let named = || MemoName::Named("count".to_owned());
    step_asks_as(&mut world, &id, named(), vec![upsert("n", "1", &["row += 1"])]).unwrap();
    again(&mut world, &id);
    assert!(step_asks_as(&mut world, &id, named(), vec![upsert("n", "1", &["row += 1"])]).unwrap().1);
    let other = step_asks_as(&mut world, &id, named(), vec![upsert("n", "1", &["row += 2"])]).unwrap_err();
    assert_eq!((other.code, other.subject.as_str()), (Code::IdReused, "op"));
}

#[test]
fn a_remembered_claim_shows_what_is_still_held_and_names_what_is_lost() {
    let (mut world, id) = working(&queue(&[]));
    let (first, _) = step_asks(&mut world, &id, vec![claim(3)]).unwrap();
    assert_eq!(taken(&first[0]), ["d", "a", "c"]);
    one(&mut world, update("a", Filter::default(), &["row.n = 10"]));
    one(&mut world, update("c", Filter::default(), &["row.status = \"done\""]));
    again(&mut world, &id);
    let (second, replayed) = step_asks(&mut world, &id, vec![claim(3)]).unwrap();
    let RowAnswer::Claimed { rows, lost, .. } = &second[0] else { panic!() };
    assert!(replayed);
    assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["d", "a"]);
    assert!(value(&rows[1]).contains("\"n\":10"), "as it is now");
    assert_eq!(lost, &[row_key("c")]);
    assert_eq!(row(&world, "b").unwrap().claims, 0, "nothing else was taken");
}

#[test]
fn what_a_claim_deleted_is_remembered_as_it_was() {
    let (mut world, id) = working(&queue(&[]));
    let take = || vec![op(RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 2, delete: true })];
    let (first, _) = step_asks(&mut world, &id, take()).unwrap();
    again(&mut world, &id);
    assert_eq!(step_asks(&mut world, &id, take()).unwrap(), (first, true));
}

#[test]
fn a_visit_remembers_a_bounded_number_of_requests() {
    let (mut world, id) = working(&queue(&[]));
    for nth in 0..MEMOS_MAX {
        step_asks_as(&mut world, &id, MemoName::Asked(nth), vec![upsert("n", "1", &["row += 1"])]).unwrap();
    }
    let one_more = MemoName::Asked(MEMOS_MAX);
    let refused = step_asks_as(&mut world, &id, one_more, vec![upsert("n", "1", &["row += 1"])]).unwrap_err();
    assert_eq!(refused.code, Code::Limit);
    let only_read = vec![op(RowAsk::Get { key: key("n") })];
    step_asks_as(&mut world, &id, MemoName::Asked(99), only_read).unwrap();
    world.go(&id, "working");
    assert_eq!(world.head(&id).memos, 0);
}

#[test]
fn a_zombie_changes_no_row() {
    let (mut world, id) = working(&queue(&[]));
    let stale = world.claim(&id);
    again(&mut world, &id);
    let refused = world.refused(step_verb(stale, MemoName::Asked(0), vec![put("x", "1")]));
    assert_eq!(refused.code, Code::Fenced);
    assert_eq!(row(&world, "x"), None);
}

#[test]
fn what_a_transition_carries_is_committed_with_it_or_not_at_all() {
    let (mut world, id) = working(&queue(&[]));
    let none = Require::Row { table: table_name("jobs"), key: key("z"), present: true, filter: Filter::default() };
    let refused = world.transition(&id, "idle", staging(vec![none], vec![put("x", "1")])).unwrap_err();
    assert_eq!((refused.code, row(&world, "x")), (Code::Require, None));
    let ops = vec![put("x", "1"), update("z", Filter::default(), &["row = 1"]), claim(1)];
    let Outcome::Written { rows, .. } = world.transition(&id, "idle", staging(vec![], ops)).unwrap() else { panic!() };
    assert!(matches!(&rows[1], RowAnswer::Updated { row: None, .. }), "what matches nothing does not refuse it");
    assert_eq!(taken(&rows[2]), ["d"]);
    assert_eq!(row(&world, "x").unwrap().value.text(), "1");
}

#[test]
fn a_step_puts_conditions_on_entities_of_its_peers_only() {
    let (mut world, id) = working(&queue(&[]));
    world.deploy(machine("gate", "shut").state("shut", rest()));
    world.create(create("gate/g")).unwrap();
    let shut = || Require::Entity { entity: entity("gate/g"), states: vec![name("shut")], filter: Filter::default() };
    let refused = world.transition(&id, "idle", staging(vec![shut()], vec![])).unwrap_err();
    assert_eq!((refused.code, refused.got.as_str()), (Code::Denied, "gate"));
    let peer = worker().with(|machine| machine.peers = BTreeSet::from(["gate".parse().unwrap()]));
    let (mut world, id) = working_with(&queue(&[]), peer);
    world.deploy(machine("gate", "shut").state("shut", rest()));
    world.create(create("gate/g")).unwrap();
    world.transition(&id, "idle", staging(vec![shut()], vec![])).unwrap();
}

#[test]
fn values_of_a_step_come_from_its_event_and_documents() {
    let with = worker().data(r#"{"key":"x1","by":7}"#);
    let (mut world, id) = working_with(&queue(&[]), with);
    let ask = RowAsk::Upsert {
        key: crate::build::value("data.key"),
        insert: doc("{}"),
        fill: set(&["row.by = execution", "row.n = data.by"]),
        set: Vec::new(),
    };
    step_asks(&mut world, &id, vec![op(ask)]).unwrap();
    let execution = world.claim(&id).execution;
    assert_eq!(row(&world, "x1").unwrap().value.text(), format!(r#"{{"by":"{execution}","n":7}}"#));
}

// --- the end of an execution

#[test]
fn what_an_execution_claimed_stays_or_is_taken_back_as_the_table_says() {
    for (on_end, status) in [(OnEnd::Keep, "in_flight"), (OnEnd::Release, "pending")] {
        let mut table = queue(&[]);
        table.claim.on_end = on_end;
        let (mut world, id) = working(&table);
        step_asks(&mut world, &id, vec![claim(2)]).unwrap();
        one(&mut world, update("a", Filter::default(), &["row.status = \"done\""]));
        world.go(&id, "idle");
        let now = row(&world, "d").unwrap();
        assert!(now.value.text().contains(&format!(r#""status":"{status}""#)), "{}", now.value);
        assert_eq!(now.claim.is_some(), on_end == OnEnd::Keep);
        assert!(row(&world, "a").unwrap().value.text().contains("done"));
    }
}

#[test]
fn many_claims_are_taken_back_a_few_at_a_time() {
    let mut table = queue(&[]);
    table.claim.on_end = OnEnd::Release;
    let (mut world, id) = working(&table);
    many(&mut world, 300, r#"{"status":"pending"}"#);
    step_asks(&mut world, &id, vec![claim(300)]).unwrap();
    let execution = world.claim(&id).execution;
    world.go(&id, "idle");
    let woken = |wake: &Wake| matches!(wake, Wake::TakeBack(of) if *of == execution);
    assert!(world.wakes.iter().any(woken));
    assert_eq!(table_heads(&world)[&table_name("jobs")].held, 300 - 256);
    world.ok(Verb::TakeBack(execution));
    assert_eq!(table_heads(&world)[&table_name("jobs")].held, 0);
}
