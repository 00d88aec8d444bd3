//! What store time and declarations do to rows.

use crate::build::name;
use crate::rows::{
    all, claim, declared, entries, four, key, many, one, op, put, queue, reaped, refused, row, row_key, set,
    table_name, taken, tended, update, upsert, value,
};
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::record::{Key, RowWhat};
use interlock_kernel::rejection::Code;
use interlock_kernel::rows::{Order, OrderBy, RowAnswer, RowAsk};
use interlock_kernel::table::{Table, Ttl};
use interlock_kernel::value::Filter;
use interlock_kernel::view::Wake;

// --- store time

#[test]
fn a_row_is_there_for_its_time_and_not_after() {
    let table = Table { ttl: Some(Ttl { ms: 10_000, from_change: false }), ..queue(&[]) };
    let mut world = four(&table);
    world.pass(9_999);
    one(&mut world, update("a", Filter::default(), &["row.n += 1"]));
    assert!(matches!(one(&mut world, op(RowAsk::Get { key: key("a") })), RowAnswer::Got { row: Some(_), .. }));
    world.pass(1);
    assert!(matches!(one(&mut world, op(RowAsk::Get { key: key("a") })), RowAnswer::Got { row: None, .. }));
    assert_eq!(taken(&one(&mut world, claim(10))), Vec::<String>::new());
    let answer = one(&mut world, upsert("a", r#"{"n":9}"#, &["row.n += 1"]));
    assert!(matches!(&answer, RowAnswer::Upserted { inserted: true, row } if value(row) == r#"{"n":9}"#));
    world.ok(Verb::RowDue(table_name("jobs"), row_key("a")));
    assert!(row(&world, "a").is_some(), "the new one is not over");
    world.ok(Verb::RowDue(table_name("jobs"), row_key("b")));
    assert_eq!(row(&world, "b"), None);
    assert_eq!(entries(&world).last().map(|entry| entry.what), Some(RowWhat::Expired));
}

#[test]
fn a_time_to_live_may_count_from_the_last_change() {
    let table = Table { ttl: Some(Ttl { ms: 10_000, from_change: true }), ..queue(&[]) };
    let mut world = four(&table);
    world.pass(9_999);
    one(&mut world, update("a", Filter::default(), &["row.n += 1"]));
    world.pass(9_999);
    assert!(matches!(one(&mut world, op(RowAsk::Get { key: key("a") })), RowAnswer::Got { row: Some(_), .. }));
}

#[test]
fn a_stale_claim_is_taken_back_and_after_so_many_given_up() {
    let mut world = four(&reaped(Some(2)));
    for (nth, what) in [RowWhat::Reaped, RowWhat::Dead].into_iter().enumerate() {
        let took = taken(&one(&mut world, claim(1)));
        assert_eq!(took, ["d"], "try {nth}");
        world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
        assert!(row(&world, "d").unwrap().claim.is_some(), "not yet stale");
        world.pass(30_000);
        world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
        assert_eq!(entries(&world).last().map(|entry| entry.what), Some(what));
    }
    let dead = row(&world, "d").unwrap();
    assert!(dead.value.text().contains(r#""status":"dead""#) && dead.claim.is_none() && dead.due.is_none());
    assert_eq!(taken(&one(&mut world, claim(1))), ["a"]);
}

#[test]
fn a_heartbeat_that_claims_again_is_not_stale() {
    let mut world = four(&reaped(None));
    one(&mut world, claim(1));
    world.pass(29_000);
    let mine = Some(all("row.claimed_by eq execution"));
    let beat = RowAsk::Claim { filter: mine, set: None, order: Order::default(), limit: 10, delete: false };
    assert_eq!(taken(&one(&mut world, op(beat))), ["d"]);
    world.pass(29_000);
    world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
    assert!(row(&world, "d").unwrap().claim.is_some());
}

#[test]
fn a_reaper_that_is_declared_later_takes_back_what_was_claimed_before() {
    let mut world = four(&queue(&[]));
    one(&mut world, claim(1));
    world.pass(60_000);
    world.ok(declared(&reaped(None)));
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::Tend(_))));
    world.ok(Verb::Tend(table_name("jobs")));
    assert!(row(&world, "d").unwrap().due.is_some());
    world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
    assert!(row(&world, "d").unwrap().claim.is_none());
}

#[test]
fn what_cannot_be_taken_back_is_left_and_told() {
    let mut table = reaped(None);
    table.claim.release = set(&["row.n += \"text\""]);
    let mut world = four(&table);
    one(&mut world, claim(1));
    world.pass(30_000);
    world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
    let entry = entries(&world).pop().unwrap();
    assert!(entry.note.starts_with("left as it is: invalid: jobs/d: row.n"), "{}", entry.note);
    assert!(row(&world, "d").unwrap().claim.is_none());
}

// --- declarations

#[test]
fn the_same_declaration_twice_is_one() {
    let mut world = four(&queue(&[]));
    let declare = declared(&queue(&[]));
    assert_eq!(world.ok(declare), Outcome::Declared { revision: 1, new: false });
    let other = declared(&queue(&[("by-n", &["n"])]));
    assert_eq!(world.ok(other), Outcome::Declared { revision: 2, new: true });
}

#[test]
fn an_index_is_filled_while_the_table_is_used() {
    let mut world = four(&queue(&[]));
    many(&mut world, 600, r#"{"n":0,"status":"later"}"#);
    world.ok(declared(&queue(&[("by-n", &["n"])])));
    let by = || Order { by: OrderBy::Index(name("by-n")), descending: true };
    let ask = || op(RowAsk::Claim { filter: None, set: None, order: by(), limit: 2, delete: false });
    let refused = refused(&mut world, ask());
    assert_eq!((refused.code, refused.retryable), (Code::Unavailable, true));
    assert_eq!(world.ok(Verb::Tend(table_name("jobs"))), Outcome::Tended { done: 256, more: true });
    one(&mut world, update("a", Filter::default(), &["row.n = 9"]));
    one(&mut world, update("j599", Filter::default(), &["row.n = 8", "row.status = \"pending\""]));
    one(&mut world, op(RowAsk::Delete { key: key("j000"), filter: Filter::default() }));
    world.ok(Verb::Tend(table_name("jobs")));
    assert!(matches!(world.ok(Verb::Tend(table_name("jobs"))), Outcome::Tended { more: false, .. }));
    assert_eq!(taken(&one(&mut world, ask())), ["a", "j599"]);
    world.ok(declared(&queue(&[])));
    tended(&mut world);
    let left = world.records.keys().filter(|key| matches!(key, Key::RowIndex(_, 1, ..))).count();
    assert_eq!(left, 0, "its entries go with the index");
}

#[test]
fn a_dropped_table_goes_with_all_it_had() {
    let mut world = four(&reaped(None));
    one(&mut world, claim(2));
    world.ok(Verb::DropTable(table_name("jobs")));
    assert_eq!(refused(&mut world, put("x", "1")).got, "one that is being dropped");
    assert_eq!(world.refused(declared(&queue(&[]))).code, Code::Busy);
    tended(&mut world);
    let rest: Vec<&Key> = world.records.keys().filter(|key| !matches!(key, Key::Session(_) | Key::Secret)).collect();
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(world.refused(Verb::DropTable(table_name("jobs"))).code, Code::NotFound);
    world.ok(declared(&queue(&[])));
}

#[test]
fn a_value_keeps_to_the_schema() {
    let mut world = four(&queue(&[]));
    world.rules.0.push((1, "row.jobs", "a number n", |value| value["n"].is_number()));
    let refused = refused(&mut world, put("x", r#"{"n":"one"}"#));
    assert_eq!((refused.code, refused.expected.as_str()), (Code::Invalid, "a number n"));
    let away = update("a", Filter::default(), &["row.n = \"one\""]);
    assert_eq!(self::refused(&mut world, away).code, Code::Invalid);
}
