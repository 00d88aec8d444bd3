//! Claims: what they take, in which order, how they mark it, and when they end.

use crate::build::{comparison, name};
use crate::rows::{all, claim, entries, four, key, one, op, queue, refused, row, status, taken, update, value};
use interlock_kernel::limits::ROWS_MAX;
use interlock_kernel::record::RowWhat;
use interlock_kernel::rejection::Code;
use interlock_kernel::rows::{Order, OrderBy, RowAnswer, RowAsk, RowOp};
use interlock_kernel::value::Filter;

#[test]
fn a_claim_takes_pending_rows_in_the_order_of_their_insertion_and_marks_them() {
    let mut world = four(&queue(&[("by-status", &["status"])]));
    let answer = one(&mut world, claim(3));
    assert_eq!(taken(&answer), ["d", "a", "c"]);
    let RowAnswer::Claimed { rows, more: false, lost } = answer else { panic!() };
    assert_eq!(lost, []);
    let expected = format!(r#"{{"claimed_at":{},"claimed_by":"client","n":4,"status":"in_flight"}}"#, world.wall);
    assert_eq!((value(&rows[0]), rows[0].claimed_by.as_deref(), rows[0].claims), (&*expected, Some("client"), 1));
    assert_eq!(taken(&one(&mut world, claim(3))), ["b"]);
    assert_eq!(taken(&one(&mut world, claim(3))), Vec::<String>::new(), "nothing is no error");
    let told: Vec<_> = entries(&world).iter().map(|entry| (entry.what, entry.count)).collect();
    assert_eq!(told, [(RowWhat::Claimed, 3), (RowWhat::Claimed, 1)]);
}

#[test]
fn pending_or_stale_is_one_claim() {
    let mut world = four(&queue(&[("by-status", &["status"])]));
    one(&mut world, claim(2));
    world.pass(60_000);
    one(&mut world, claim(1));
    let stale = vec![comparison("row.status eq \"in_flight\""), comparison("row.claimed_at lt now-30s")];
    let filter = Some(Filter { any: vec![vec![comparison("row.status eq \"pending\"")], stale] });
    let ask = RowAsk::Claim { filter, set: None, order: Order::default(), limit: 10, delete: false };
    assert_eq!(taken(&one(&mut world, op(ask))), ["d", "a", "b"], "by insertion, whatever they are");
    assert_eq!(row(&world, "d").unwrap().claims, 2);
}

#[test]
fn a_claim_goes_by_a_stored_priority() {
    let mut world = four(&queue(&[("by-priority", &["status", "n"])]));
    let by = |descending| Order { by: OrderBy::Index(name("by-priority")), descending };
    let ask = |order| op(RowAsk::Claim { filter: None, set: None, order, limit: 2, delete: false });
    assert_eq!(taken(&one(&mut world, ask(by(true)))), ["d", "c"]);
    assert_eq!(taken(&one(&mut world, ask(by(false)))), ["a", "b"]);
    let unknown = Order { by: OrderBy::Index(name("none")), descending: false };
    let refused = refused(&mut world, ask(unknown));
    assert_eq!(refused.expected, "an order by created, updated, index by-priority");
}

#[test]
fn a_claim_may_delete_what_it_takes() {
    let mut world = four(&queue(&[]));
    let ask = RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 2, delete: true };
    let answer = one(&mut world, op(ask));
    assert_eq!(taken(&answer), ["d", "a"]);
    assert_eq!((row(&world, "d"), row(&world, "a")), (None, None));
}

#[test]
fn a_limit_over_the_maximum_is_refused_and_not_clamped() {
    let mut world = four(&queue(&[]));
    for limit in [0, ROWS_MAX + 1] {
        let refused = refused(&mut world, claim(limit));
        assert_eq!((refused.code, refused.got), (Code::Limit, limit.to_string()));
    }
    assert_eq!(taken(&one(&mut world, claim(ROWS_MAX))).len(), 4);
}

#[test]
fn a_claim_that_would_change_nothing_is_refused() {
    let mut world = four(&queue(&[]));
    let ask = RowAsk::Claim { filter: None, set: Some(vec![]), order: Order::default(), limit: 2, delete: false };
    assert_eq!(refused(&mut world, op(ask)).code, Code::Invalid);
    let nothing =
        RowAsk::Claim { filter: Some(status("none")), set: None, order: Order::default(), limit: 1, delete: false };
    let must = RowOp { must: true, ..op(nothing) };
    assert_eq!(refused(&mut world, must).code, Code::Require);
}

#[test]
fn what_is_claimed_is_settled_by_a_change_of_its_status() {
    let mut world = four(&queue(&[]));
    one(&mut world, claim(2));
    let held = all("row.claimed_by eq execution");
    one(&mut world, update("d", held.clone(), &["row.claimed_at = now"]));
    assert!(row(&world, "d").unwrap().claim.is_some(), "a heartbeat settles nothing");
    one(&mut world, update("d", held, &["row.status = \"done\""]));
    assert_eq!(row(&world, "d").unwrap().claim, None);
    one(&mut world, op(RowAsk::Delete { key: key("a"), filter: Filter::default() }));
    let told: Vec<_> = entries(&world).iter().map(|entry| (entry.what, entry.keys[0].to_string())).collect();
    let expected = [(RowWhat::Claimed, "d"), (RowWhat::Settled, "d"), (RowWhat::Settled, "a")];
    assert_eq!(told, expected.map(|(what, key)| (what, key.to_owned())));
    let client = Some("client".to_owned());
    assert!(entries(&world).iter().all(|entry| entry.claimant == client));
}
