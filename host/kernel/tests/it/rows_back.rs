//! What is taken back without anybody asking: from executions that ended, from claims that are stale.

use crate::rows::{
    all, claim, four, many, one, op, put, queue, reaped, row, row_key, set, step_asks, table_name, update, working,
};
use crate::world::World;
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::limits::{ROW_WRITTEN_BYTES_MAX, TEND_MAX};
use interlock_kernel::record::{Key, Record, RowWhat};
use interlock_kernel::rows::{Order, RowAsk};
use interlock_kernel::table::{OnEnd, Table, Ttl};
use interlock_kernel::value::Filter;
use interlock_kernel::view::Wake;

fn releasing() -> Table {
    let mut table = queue(&[]);
    table.claim.on_end = OnEnd::Release;
    table
}

fn held(world: &World) -> usize {
    world.records.keys().filter(|key| matches!(key, Key::RowHeld(..))).count()
}

/// The execution that has claimed so many rows ends; how many it still has, and whether that is gone on with.
fn ends(world: &mut World, id: &EntityId, claims: u32) -> (usize, bool) {
    step_asks(world, id, vec![claim(claims)]).unwrap();
    world.go(id, "idle");
    (held(world), world.wakes.iter().any(|wake| matches!(wake, Wake::TakeBack(_))))
}

#[test]
fn nothing_is_taken_back_from_an_execution_that_goes_on() {
    let (mut world, id) = working(&releasing());
    step_asks(&mut world, &id, vec![claim(2)]).unwrap();
    let execution = world.claim(&id).execution;
    assert_eq!(world.ok(Verb::TakeBack(execution)), Outcome::Nothing);
    assert_eq!(held(&world), 2);
}

#[test]
fn what_one_command_takes_back_is_bounded_by_its_rows() {
    for (claims, left, goes_on) in [(255, 0, false), (256, 0, true), (257, 1, true)] {
        let (mut world, id) = working(&releasing());
        many(&mut world, 260, r#"{"status":"pending"}"#);
        let execution = world.claim(&id).execution;
        assert_eq!(ends(&mut world, &id, claims), (left, goes_on), "{claims}");
        let rest = world.ok(Verb::TakeBack(execution));
        assert_eq!(rest, Outcome::Tended { done: left, more: false });
        assert_eq!(row(&world, "d").unwrap().claim, None);
    }
    assert_eq!(TEND_MAX, 256);
}

#[test]
fn what_one_command_takes_back_is_bounded_by_their_bytes() {
    let (mut world, id) = working(&releasing());
    for at in ["d", "a", "c", "b"] {
        one(&mut world, op(RowAsk::Delete { key: crate::rows::key(at), filter: Filter::default() }));
    }
    let each = ROW_WRITTEN_BYTES_MAX / 2 / 24;
    let frame = r#"{"status":"pending","text":""}"#.len();
    let value = format!(r#"{{"status":"pending","text":"{}"}}"#, "x".repeat(each - frame));
    for nth in 0..27 {
        one(&mut world, put(&format!("l{nth:02}"), &value));
    }
    for nth in 0..5 {
        let memo = interlock_kernel::rows::MemoName::Asked(nth);
        crate::rows::step_asks_as(&mut world, &id, memo, vec![claim(6)]).unwrap();
    }
    assert_eq!(held(&world), 27);
    world.go(&id, "idle");
    assert_eq!(held(&world), 2, "one more than the half of what one request may write");
    assert!(world.wakes.iter().any(|wake| matches!(wake, Wake::TakeBack(_))));
    assert_eq!(row(&world, "l00").unwrap().value.text(), value);
}

#[test]
fn a_claimed_row_past_its_time_is_taken_back_until_it_goes() {
    let table = Table { ttl: Some(Ttl { ms: 10_000, from_change: false }), ..releasing() };
    let (mut world, id) = working(&table);
    step_asks(&mut world, &id, vec![claim(1)]).unwrap();
    world.pass(10_000);
    world.go(&id, "idle");
    assert_eq!((held(&world), row(&world, "d").unwrap().claim), (0, None));
    world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
    assert_eq!(row(&world, "d"), None);
}

#[test]
fn only_the_execution_that_has_a_row_gives_it_back() {
    let (mut world, id) = working(&releasing());
    step_asks(&mut world, &id, vec![claim(2)]).unwrap();
    let again = RowAsk::Claim {
        filter: Some(all("row.status eq \"in_flight\"")),
        set: None,
        order: Order::default(),
        limit: 1,
        delete: false,
    };
    one(&mut world, op(again));
    world.go(&id, "idle");
    let holder = |at| row(&world, at).unwrap().claim.map(|claim| claim.by.to_string());
    assert_eq!((holder("d").as_deref(), holder("a")), (Some("client"), None));
}

#[test]
fn an_index_entry_that_is_wrong_goes_and_takes_nobodys_row_with_it() {
    let (mut world, id) = working(&releasing());
    let id = world.claim(&id).execution;
    one(&mut world, claim(1));
    world.go(&id.entity, "idle");
    let entry = |at: &str| Key::RowHeld(id.entity.clone(), id.incarnation, id.ordinal, table_name("jobs"), row_key(at));
    for at in ["a", "d", "none"] {
        world.records.put(&entry(at), &Record::Mark); // not claimed, somebody else's, not there
    }
    assert_eq!(world.ok(Verb::TakeBack(id.clone())), Outcome::Tended { done: 3, more: false });
    assert_eq!(
        (held(&world), row(&world, "d").unwrap().claim.map(|claim| claim.by.to_string())),
        (0, Some("client".into()))
    );
}

#[test]
fn a_row_that_is_given_back_as_it_was_keeps_its_version() {
    for (release, kept) in [(&["row.n += \"text\""][..], true), (&[], true), (&["row.n += 1"], false)] {
        let mut table = reaped(None);
        table.claim.release = set(release);
        let mut world = four(&table);
        one(&mut world, claim(1));
        let version = row(&world, "d").unwrap().version;
        world.pass(30_000);
        world.ok(Verb::RowDue(table_name("jobs"), row_key("d")));
        let now = row(&world, "d").unwrap();
        assert_eq!((now.version == version, now.claim), (kept, None), "{release:?}");
    }
}

#[test]
fn when_a_row_comes_due_is_told_to_whoever_waits() {
    let mut world = four(&reaped(None));
    let due =
        |world: &World| world.wakes.iter().find_map(|wake| if let Wake::Row(due) = wake { Some(due.0) } else { None });
    one(&mut world, update("d", Filter::default(), &["row.n += 1"]));
    assert_eq!(due(&world), None);
    one(&mut world, claim(1));
    assert_eq!(due(&world), Some(30_000));
    one(&mut world, update("d", Filter::default(), &["row.n += 1"]));
    assert_eq!(due(&world), None, "it was told");
    let last = crate::rows::entries(&world).pop().unwrap();
    assert_eq!(last.what, RowWhat::Claimed);
}
