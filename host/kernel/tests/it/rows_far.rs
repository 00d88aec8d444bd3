//! How far a claim or query looks: one row more than it may, and what keeps it from looking at the others.

use crate::build::{filter, name};
use crate::rows::{all, answers, asked, client, declared, put, queue, taken, update};
use crate::rows_walk::{ask, keys, page, pages, take};
use crate::world::World;
use interlock_kernel::command::Command;
use interlock_kernel::decide;
use interlock_kernel::limits::{ROW_OPS_MAX, ROWS_MAX, ROWS_SCANNED_MAX};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::rows::{Order, OrderBy, RowAnswer, RowOp, RowsAsk};
use interlock_kernel::value::Filter;
use std::sync::LazyLock;

/// One row more than are looked at. `n` counts them, `part` is `a`, `b` from the 6,000th on, and `c` for the last;
/// three and the last have `m`.
static LARGE: LazyLock<World> = LazyLock::new(|| {
    let mut world = World::bare();
    world.open();
    world.ok(declared(&queue(&[("by-n", &["n"]), ("by-part", &["part"])])));
    let row = |nth: usize| {
        let part = if nth == ROWS_SCANNED_MAX {
            "c"
        } else if nth < 6_000 {
            "a"
        } else {
            "b"
        };
        let m = if [5, 7, 6_000, ROWS_SCANNED_MAX].contains(&nth) { r#""m":1,"# } else { "" };
        put(&format!("k{nth:05}"), &format!(r#"{{{m}"n":{nth},"part":"{part}"}}"#))
    };
    let ops: Vec<RowOp> = (0..=ROWS_SCANNED_MAX).map(row).collect();
    for ops in ops.chunks(ROW_OPS_MAX) {
        // Without what a world checks after each job.
        world.seq += 1;
        let command = Command { by: world.by.clone(), verb: client(ops.to_vec()) };
        let decision = decide(&world.records, &world.rules, world.now(), &command).unwrap();
        for (key, record) in &decision.writes {
            world.records.put(key, record.as_ref().unwrap());
        }
    }
    world.unchecked = true;
    world.silent = true;
    world
});

fn look(filter: &Filter, limit: u32) -> Result<Vec<String>, Rejection> {
    page(&LARGE, &ask(filter, &Order::default(), limit, None)).map(|page| keys(&page))
}

#[test]
fn as_many_rows_as_may_be_are_looked_at_and_not_one_more() {
    let all_but_one = filter(r#"row.part eq "a" and row.m eq 9 or row.part eq "b" and row.m eq 9"#);
    assert_eq!(look(&all_but_one, 1).unwrap(), Vec::<String>::new());
    let refused = look(&all("row.m eq 9"), 1).unwrap_err();
    assert_eq!((refused.code, refused.subject.as_str()), (Code::Limit, "table jobs"));
    assert_eq!(refused.got, "more, and not enough of them match");
    let sorted = ask(&Filter::default(), &Order { by: OrderBy::Updated, descending: false }, 1, None);
    let refused = page(&LARGE, &sorted).unwrap_err();
    assert_eq!(refused.code, Code::Limit, "nor to find an order that no index has");
    let help = "a filter that compares a field with a value, and an index on that field would help";
    assert!(refused.expected.ends_with(help), "{}", refused.expected);
}

#[test]
fn what_was_found_before_the_bound_is_answered_and_the_next_goes_on_behind_it() {
    let first = page(&LARGE, &ask(&all("row.m eq 1"), &Order::default(), 10, None)).unwrap();
    assert_eq!(keys(&first), ["k00005", "k00007", "k06000"]);
    let second = page(&LARGE, &ask(&all("row.m eq 1"), &Order::default(), 10, first.next)).unwrap();
    assert_eq!((keys(&second), second.next), (vec!["k10000".to_owned()], None));
    let mut world = LARGE.clone();
    let one = |world: &mut World, op| answers(world, client(vec![op])).remove(0);
    let mark = update("k00005", Filter::default(), &["row.m = 2"]);
    one(&mut world, mark);
    let answer = one(&mut world, take(&all("row.m eq 1"), &Order::default(), 10));
    assert!(matches!(answer, RowAnswer::Claimed { more: true, .. }));
    assert_eq!(taken(&answer), ["k00007", "k06000"]);
    let must = RowOp { must: true, ..take(&all("row.m eq 9"), &Order::default(), 10) };
    assert_eq!(world.refused(client(vec![must])).code, Code::Limit);
}

#[test]
fn an_index_is_walked_from_where_the_filter_begins_to_where_it_ends() {
    let by_n = |descending| Order { by: OrderBy::Index(name("by-n")), descending };
    let whole = page(&LARGE, &ask(&Filter::default(), &by_n(false), 2, None)).unwrap();
    assert_eq!(keys(&whole), ["k00000", "k00001"], "in its own order no row is looked at that is not answered");
    for (text, expected) in [
        ("row.n gt 9998", "k09999 k10000"),
        ("row.n ge 10000", "k10000"),
        ("row.n lt 2", "k00000 k00001"),
        ("row.n le 0", "k00000"),
        ("row.n gt 7 and row.n lt 10", "k00008 k00009"),
        ("row.n eq 77", "k00077"),
        (r#"row.part eq "c""#, "k10000"),
        ("row.n gt 5 and row.n lt 5", ""),
    ] {
        for descending in [false, true] {
            let page = page(&LARGE, &ask(&all(text), &by_n(descending), 10, None)).unwrap();
            let mut found = keys(&page);
            if descending {
                found.reverse();
            }
            assert_eq!((found.join(" ").as_str(), page.next), (expected, None), "{text}");
        }
    }
    assert_eq!(look(&Filter::default(), 2).unwrap(), ["k00000", "k00001"], "in its order, and no further");
    assert_eq!(look(&all(r#"row.part eq "b""#), 1).unwrap(), ["k06000"]);
}

#[test]
fn pages_begin_where_the_last_one_ended() {
    assert_eq!(pages(&LARGE, &Filter::default(), &Order::default(), ROWS_MAX).len(), ROWS_SCANNED_MAX + 1);
}

#[test]
fn what_two_alternatives_or_two_claims_walk_through_is_counted_once_for_each_claim() {
    let (eight, nine) = (r#"row.part eq "a" and row.m eq 8"#, r#"row.part eq "a" and row.m eq 9"#);
    assert_eq!(look(&filter(&format!("{eight} or {nine}")), 1).unwrap(), Vec::<String>::new());
    let claim = || take(&all(nine), &Order::default(), 1);
    let ask = asked("client", None, RowsAsk { require: vec![], ops: vec![claim(), claim()] });
    assert_eq!(answers(&mut LARGE.clone(), ask).iter().map(taken).collect::<Vec<_>>(), [[""; 0]; 2]);
}

#[test]
fn a_refusal_says_which_index_would_help() {
    let field = "a filter that compares a field with a value, and an index on that field";
    for (text, help) in [
        (r#"row.status eq "pending" and row.x gt 3"#, "an index on [status]"),
        ("row.x eq 1 and row.y eq 1 or row.x eq 2 and row.y eq 2", "an index on [x, y]"),
        ("row.x lt 3 and row.y gt 1", "an index on [x]"),
        ("row.x exists true and row.y le 3", "an index on [y]"),
        ("row.x gt 3", "an index on [x]"),
        ("row.x ge 3", "an index on [x]"),
        ("row.x exists true", field),
        // Each alternative is served by an index of its own.
        ("row.x eq 1 or row.y gt 1", "an index on [x] and an index on [y]"),
        ("row.x eq 1 or row.x eq 2", "an index on [x]"),
        ("row.x eq 1 or row.y exists true", field),
        // As a declaration writes them, and no more than it may have.
        (r#"row.x\.y.z[0] eq 1 and row.row eq 1"#, r"an index on [x\.y.z[0], row.row]"),
        ("row.rows eq 1 and row.row.x eq 1 and row.row[0] eq 1", "an index on [rows, row.row.x, row.row[0]]"),
        (
            "row.a eq 1 and row.b eq 1 and row.a eq 1 and row.c eq 1 and row.d eq 1 and row.e eq 1",
            "an index on [a, b, c, d]",
        ),
        // What is not a field of the row is in no index.
        ("row eq 1", field),
        ("row eq 1 and row.x eq 1", "an index on [x]"),
        ("row gt 1 and row.x gt 1", "an index on [x]"),
        ("event.created eq 1 and row.x lt 1", "an index on [x]"),
        ("data.created lt 1", field),
    ] {
        let refused = look(&filter(text), 1).unwrap_err();
        let expected = format!("at most 10000 rows to look at (rows_scanned_max): {help} would help");
        assert_eq!(refused.expected, expected, "{text}");
    }
}
