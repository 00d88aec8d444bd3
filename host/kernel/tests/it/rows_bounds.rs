//! Bounds of requests on rows, each at its maximum and one beyond: writes, bytes, what is remembered and recorded.

use crate::rows::{
    again, all, asked, claim, client, declared, entries, four, key, many, one, op, put, queue, row_key, set, step_asks,
    step_asks_as, table_heads, table_name, taken, update, working,
};
use crate::world::World;
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::limits::{
    ANSWER_MS, MEMO_BYTES_MAX, ROW_ENTRIES_MAX, ROW_OPS_MAX, ROW_WRITES_MAX, ROWS_BYTES_MAX,
};
use interlock_kernel::record::Key;
use interlock_kernel::rejection::Code;
use interlock_kernel::rows::{MemoName, Order, RowAnswer, RowAsk, RowOp, RowsAsk};
use interlock_kernel::value::Filter;

fn take_all(delete: bool) -> RowOp {
    op(RowAsk::Claim { filter: None, set: None, order: Order::default(), limit: 1_000, delete })
}

/// A row of so many bytes.
fn of_bytes(bytes: usize) -> String {
    let frame = r#"{"status":"pending","text":""}"#.len();
    format!(r#"{{"status":"pending","text":"{}"}}"#, "x".repeat(bytes - frame))
}

/// A table with two declared indexes: ten writes for each row that changes.
fn empty() -> World {
    let mut world = World::bare();
    world.open();
    world.ok(declared(&queue(&[("one", &["n"]), ("two", &["n"])])));
    world
}

fn more(answer: &RowAnswer) -> bool {
    matches!(answer, RowAnswer::Claimed { more: true, .. })
}

#[test]
fn a_claim_ends_with_the_row_that_fills_its_writes() {
    let mut world = empty();
    many(&mut world, 800, r#"{"status":"pending"}"#);
    let answer = one(&mut world, take_all(false));
    assert_eq!((taken(&answer).len() * 10, more(&answer)), (ROW_WRITES_MAX + 10, true));
    let answer = one(&mut world, take_all(false));
    assert_eq!((taken(&answer).len(), more(&answer)), (99, false));
}

#[test]
fn a_request_writes_a_bounded_number_of_records() {
    let mut world = empty();
    many(&mut world, 800, r#"{"status":"pending"}"#);
    let puts = |count| (0..count).map(|nth| put(&format!("x{nth}"), "1"));
    let settle = update("j000", Filter::default(), &["row.status = \"done\""]);
    // 701 rows and the entry of their claim, five rows, and the entry of a settlement: 7,010 + 2 + 50 + 2.
    let ops = |puts_of| [take_all(false), settle.clone()].into_iter().chain(puts(puts_of)).collect::<Vec<_>>();
    let refused = world.refused(client(ops(6)));
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Limit, "rows"));
    assert_eq!(refused.expected, "at most 7064 writes of one request (row_writes_max)");
    assert_eq!(refused.got, "7074: ask for less at a time");
    world.ok(client(ops(5)));
}

#[test]
fn only_what_a_request_changes_counts_as_written() {
    let mut world = empty();
    let large = of_bytes(250_000);
    for nth in 0..26 {
        one(&mut world, put(&format!("l{nth}"), &large));
    }
    let mut ops: Vec<RowOp> = (0..26).map(|nth| op(RowAsk::Get { key: key(&format!("l{nth}")) })).collect();
    ops.push(put("x", "1"));
    world.ok(client(ops));
}

#[test]
fn a_claim_ends_with_the_row_that_fills_the_bytes_of_its_answer() {
    let mut world = empty();
    for nth in 0..9 {
        one(&mut world, put(&format!("l{nth}"), &of_bytes(ROWS_BYTES_MAX / 8)));
    }
    let answer = one(&mut world, take_all(false));
    assert_eq!((taken(&answer).len(), more(&answer)), (8, true));
}

#[test]
fn what_is_deleted_as_it_is_claimed_is_remembered_whole_and_ends_a_claim_earlier() {
    let mut world = empty();
    // What is remembered of a row: its value, its key of three letters, and 320 bytes of what else is shown.
    let value = of_bytes(MEMO_BYTES_MAX / 64 - 320 - 3);
    for nth in 0..66 {
        one(&mut world, put(&format!("l{nth:02}"), &value));
    }
    let answer = one(&mut world, take_all(true));
    assert_eq!((taken(&answer).len(), more(&answer)), (64, true));
    one(&mut world, put("big", &of_bytes(250_000)));
    assert_eq!(taken(&one(&mut world, take_all(true))), ["l64", "l65"]);
    let answer = one(&mut world, take_all(true));
    assert_eq!((taken(&answer), more(&answer)), (vec!["big".to_owned()], false), "one row is always taken");
}

#[test]
fn what_is_remembered_of_several_answers_stands_in_one_record() {
    let mut world = empty();
    let ask = |id: &str, text: usize| {
        let ops = vec![put("a", &of_bytes(100_000)), put("b", &of_bytes(text))];
        asked("client", Some(id), RowsAsk { require: Vec::new(), ops })
    };
    let over = world.refused(ask("one", 100_000));
    let bytes: usize = over.got.split(' ').next().unwrap().parse().unwrap();
    let most = 100_000 - (bytes - MEMO_BYTES_MAX);
    let refused = world.refused(ask("one", most + 1));
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Limit, "rows"));
    assert_eq!(refused.expected, "answers of at most 196608 bytes (memo_bytes_max)");
    assert_eq!(refused.got, "196609 bytes: ask for fewer fields");
    world.ok(ask("one", most));
}

#[test]
fn one_answer_is_remembered_whatever_its_size() {
    let (mut world, id) = working(&queue(&[]));
    let large = || vec![put("x", &of_bytes(250_000))];
    let first = step_asks(&mut world, &id, large()).unwrap();
    again(&mut world, &id);
    assert_eq!(step_asks(&mut world, &id, large()).unwrap(), (first.0, true));
}

#[test]
fn an_answer_is_remembered_for_a_day() {
    let mut world = four(&queue(&[]));
    let ask = || {
        let ops = vec![update("a", Filter::default(), &["row.n += 1"])];
        asked("client", Some("id-1"), RowsAsk { require: Vec::new(), ops })
    };
    for (ms, again) in [(0, false), (ANSWER_MS - 1, true), (1, false)] {
        world.pass(ms);
        assert!(matches!(world.ok(ask()), Outcome::Rows { replayed, .. } if replayed == again), "{ms}");
    }
    world.pass(ANSWER_MS);
    world.ok(Verb::Sweep);
    assert!(world.records.keys().all(|key| !matches!(key, Key::Answered(_))), "and no longer");
}

#[test]
fn of_what_became_of_rows_the_newest_is_kept() {
    let mut world = four(&queue(&[]));
    world.unchecked = true;
    let mine = all("row.claimed_by eq execution");
    let beat = RowAsk::Claim { filter: Some(mine), set: None, order: Order::default(), limit: 1, delete: false };
    one(&mut world, claim(1));
    let head = |world: &World| table_heads(world).remove(&table_name("jobs")).unwrap();
    let most = usize::try_from(ROW_ENTRIES_MAX).unwrap();
    for _ in 0..15 {
        world.ok(client(vec![op(beat.clone()); ROW_OPS_MAX]));
    }
    world.ok(client(vec![op(beat.clone()); most - 15 * ROW_OPS_MAX - 1]));
    assert_eq!((entries(&world).len(), head(&world).first, head(&world).last), (most, 1, 1_024));
    world.ok(client(vec![op(beat.clone()); 3]));
    let numbers: Vec<u64> = entries(&world).iter().map(|entry| entry.number).collect();
    assert_eq!((numbers.len(), numbers[0], numbers[most - 1]), (most, 4, 1_027));
    assert_eq!((head(&world).first, head(&world).last), (4, 1_027));
}

// --- what is remembered of claims

#[test]
fn a_remembered_claim_names_what_somebody_else_claimed_since() {
    let (mut world, id) = working(&queue(&[]));
    step_asks(&mut world, &id, vec![claim(2)]).unwrap();
    let over = RowAsk::Claim {
        filter: Some(all("row.status eq \"in_flight\"")),
        set: None,
        order: Order::default(),
        limit: 1,
        delete: false,
    };
    assert_eq!(taken(&one(&mut world, op(over))), ["d"]);
    again(&mut world, &id);
    let (answers, _) = step_asks(&mut world, &id, vec![claim(2)]).unwrap();
    assert!(matches!(&answers[0], RowAnswer::Claimed { lost, .. } if *lost == [row_key("d")]), "{answers:?}");
    assert_eq!(taken(&answers[0]), ["a"]);
}

#[test]
fn what_a_claim_did_not_hold_is_its_own_until_it_is_changed() {
    let (mut world, id) = working(&queue(&[]));
    let seen = || {
        let mark = Some(set(&["row.seen = true"]));
        vec![op(RowAsk::Claim { filter: None, set: mark, order: Order::default(), limit: 2, delete: false })]
    };
    step_asks(&mut world, &id, seen()).unwrap();
    one(&mut world, update("a", Filter::default(), &["row.n = 10"]));
    again(&mut world, &id);
    let (answers, _) = step_asks(&mut world, &id, seen()).unwrap();
    assert_eq!(taken(&answers[0]), ["d"]);
    assert!(matches!(&answers[0], RowAnswer::Claimed { lost, .. } if *lost == [row_key("a")]), "{answers:?}");
}

#[test]
fn a_remembered_claim_of_a_table_that_goes_has_lost_its_rows() {
    let (mut world, id) = working(&queue(&[]));
    step_asks(&mut world, &id, vec![claim(2)]).unwrap();
    world.ok(Verb::DropTable(table_name("jobs")));
    again(&mut world, &id);
    let (answers, replayed) = step_asks(&mut world, &id, vec![claim(2)]).unwrap();
    assert!(replayed && taken(&answers[0]).is_empty());
    assert!(matches!(&answers[0], RowAnswer::Claimed { lost, .. } if *lost == [row_key("d"), row_key("a")]));
    let another = step_asks_as(&mut world, &id, MemoName::Asked(1), vec![claim(2)]).unwrap_err();
    assert_eq!(another.code, Code::NotFound);
}
