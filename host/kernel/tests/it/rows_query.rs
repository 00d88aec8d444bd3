//! Queries: how much they answer, where they go on, and which index may serve them.

use crate::build::{comparison, doc, filter, name};
use crate::rows::{
    again, all, answers, check, claim, client, declared, four, index, key, many, one, op, put, queue, refused, status,
    taken, tended, update, worker, working_with,
};
use crate::rows_walk::{ask, keys, page, pages, take};
use crate::world::World;
use interlock_kernel::command::{Change, Verb};
use interlock_kernel::limits::{COMPARISONS_MAX, ROWS_BYTES_MAX, ROWS_MAX};
use interlock_kernel::record::{IndexStage, Key};
use interlock_kernel::rejection::Code;
use interlock_kernel::rows::{Order, OrderBy, QueryAsk, Reader, RowAsk};
use interlock_kernel::value::Filter;
use interlock_kernel::view::Claim;

fn by(index: &str) -> Order {
    Order { by: OrderBy::Index(name(index)), descending: false }
}

fn everything(limit: u32, after: Option<String>) -> interlock_kernel::rows::QueryAsk {
    ask(&Filter::default(), &Order::default(), limit, after)
}

/// So many comparisons, in two alternatives.
fn comparisons(count: usize) -> Filter {
    let some = |count| vec![comparison("row.n ge 0"); count];
    Filter { any: vec![some(count - count / 2), some(count / 2)] }
}

#[test]
fn a_page_has_as_many_rows_as_were_asked_for_and_says_whether_more_may_follow() {
    let world = four(&queue(&[]));
    let four = ["d", "a", "c", "b"];
    for (limit, expected, more) in [(1, &four[..1], true), (3, &four[..3], true), (4, &four[..], false)] {
        let page = page(&world, &everything(limit, None)).unwrap();
        assert_eq!((keys(&page), page.next.is_some()), (expected.iter().map(|&key| key.into()).collect(), more));
    }
    assert_eq!(keys(&page(&world, &everything(ROWS_MAX, None)).unwrap()), four);
}

#[test]
fn a_limit_out_of_bounds_is_told_before_too_many_comparisons() {
    let world = four(&queue(&[]));
    let told = |limit, comparisons_of| {
        let refused = page(&world, &ask(&comparisons(comparisons_of), &Order::default(), limit, None)).unwrap_err();
        assert_eq!((refused.code, refused.subject.as_str()), (Code::Limit, "table jobs"));
        (refused.expected, refused.got)
    };
    for limit in [0, ROWS_MAX + 1] {
        let expected = "a limit of 1 to 1000 rows (rows_max)".to_owned();
        assert_eq!(told(limit, COMPARISONS_MAX + 1), (expected, limit.to_string()));
    }
    let expected = "at most 256 comparisons in a filter (comparisons_max)".to_owned();
    assert_eq!(told(1, COMPARISONS_MAX + 1), (expected, "257".to_owned()));
    page(&world, &ask(&comparisons(COMPARISONS_MAX), &Order::default(), 1, None)).unwrap();
}

#[test]
fn a_filter_of_a_change_has_the_same_bound() {
    let mut world = four(&queue(&[]));
    let guarded = |count| update("a", comparisons(count), &["row.n += 1"]);
    one(&mut world, guarded(COMPARISONS_MAX));
    let refused = refused(&mut world, guarded(COMPARISONS_MAX + 1));
    assert_eq!((refused.code, refused.subject.as_str(), refused.got.as_str()), (Code::Limit, "table jobs", "257"));
}

#[test]
fn a_page_ends_with_the_row_that_fills_its_bytes() {
    let mut world = four(&queue(&[]));
    for at in ["d", "a", "c", "b"] {
        one(&mut world, op(RowAsk::Delete { key: key(at), filter: Filter::default() }));
    }
    let eighth = ROWS_BYTES_MAX / 8;
    let value = format!(r#"{{"text":"{}"}}"#, "x".repeat(eighth - r#"{"text":""}"#.len()));
    for nth in 0..9 {
        one(&mut world, put(&format!("l{nth}"), &value));
    }
    let first = page(&world, &everything(100, None)).unwrap();
    assert_eq!(keys(&first).len(), 8, "exactly as many bytes as an answer has");
    let second = page(&world, &everything(100, first.next)).unwrap();
    assert_eq!((keys(&second), second.next), (vec!["l8".to_owned()], None));
}

#[test]
fn where_to_go_on_is_what_an_earlier_answer_said() {
    let world = four(&queue(&[]));
    let next = page(&world, &everything(1, None)).unwrap().next.unwrap();
    assert_eq!(keys(&page(&world, &everything(1, Some(next.clone()))).unwrap()), ["a"]);
    assert!(next.ends_with(".1.d") && next.starts_with("created.."), "{next}");
    for bad in ["", "d", "00.2.1", "0.2.1.d", "zz.2.1.d", "é0.2.1.d", "0é.2.1.d", "00.x.1.d", "00.2.x.d", "00.2.1."] {
        let bad = format!("created.{bad}");
        let refused = page(&world, &everything(1, Some(bad.clone()))).unwrap_err();
        assert_eq!((refused.code, refused.got), (Code::Invalid, format!("{bad:?}")));
        assert_eq!(refused.expected, "the `next` of an earlier answer to the same query");
    }
}

// --- which index

#[test]
fn an_index_that_does_not_have_every_row_serves_nothing() {
    let mut world = four(&queue(&[]));
    let pending = || ask(&status("pending"), &Order::default(), 10, None);
    world.ok(declared(&queue(&[("by-status", &["status"])])));
    assert_eq!(keys(&page(&world, &pending()).unwrap()).len(), 4, "it is being built");
    tended(&mut world);
    world.ok(declared(&queue(&[])));
    one(&mut world, put("e", r#"{"status":"pending"}"#));
    assert_eq!(keys(&page(&world, &pending()).unwrap()).len(), 5, "it is being removed");
    let of = |at: &str| {
        let entry = |key: &&Key| matches!(key, Key::RowIndex(_, 1, _, _, of) if of.as_str() == at);
        world.records.keys().filter(entry).count()
    };
    assert_eq!((of("a"), of("e")), (1, 0), "and gets no row any more");
}

#[test]
fn an_order_by_an_index_that_goes_away_is_unknown_and_by_its_successor_not_yet_available() {
    let mut world = four(&queue(&[("by-n", &["n"])]));
    let order = |world: &World| page(world, &ask(&Filter::default(), &by("by-n"), 10, None));
    assert_eq!(keys(&order(&world).unwrap()), ["a", "b", "c", "d"]);
    world.ok(declared(&queue(&[])));
    let unknown = order(&world).unwrap_err();
    assert_eq!((unknown.code, unknown.got.as_str()), (Code::Invalid, "index by-n"));
    world.ok(declared(&queue(&[("by-n", &["status", "n"])])));
    let building = order(&world).unwrap_err();
    assert_eq!((building.code, building.retryable), (Code::Unavailable, true));
    assert_eq!(building.got, "index by-n, which is still being built");
    tended(&mut world);
    one(&mut world, update("d", Filter::default(), &["row.status = \"a\""]));
    assert_eq!(keys(&order(&world).unwrap()), ["d", "a", "b", "c"], "by the fields that it has now");
}

#[test]
fn an_index_that_serves_the_filter_says_nothing_of_the_order_of_another() {
    let world = four(&queue(&[("by-n", &["n"]), ("by-status", &["status"])]));
    let ask = |limit, after| ask(&status("pending"), &by("by-n"), limit, after);
    assert_eq!(keys(&page(&world, &ask(10, None)).unwrap()), ["a", "b", "c", "d"]);
    let first = page(&world, &ask(2, None)).unwrap();
    assert_eq!(keys(&page(&world, &ask(2, first.next)).unwrap()), ["c", "d"]);
}

#[test]
fn an_order_is_the_same_whichever_indexes_serve_the_filter() {
    let either = filter(r#"row.status eq "x" and row.kind eq 1 or row.status eq "y" and row.kind eq 1"#);
    for indexes in [
        &[("by-status", &["status", "n"][..])][..],
        &[("by-status", &["status", "n"]), ("by-kind", &["kind", "status"])],
        &[("by-status", &["status", "n"]), ("by-kind", &["kind"])],
    ] {
        let mut world = World::bare();
        world.open();
        world.ok(declared(&queue(indexes)));
        for (at, n, status) in [("a", 4, "x"), ("b", 3, "y"), ("c", 2, "x"), ("d", 1, "y")] {
            one(&mut world, put(at, &format!(r#"{{"kind":1,"n":{n},"status":"{status}"}}"#)));
        }
        for limit in 1..=4 {
            assert_eq!(pages(&world, &either, &by("by-status"), limit), ["d", "c", "b", "a"], "{indexes:?}");
        }
    }
}

#[test]
fn a_page_of_one_order_is_no_place_in_another() {
    let mut world = four(&queue(&[("by-n", &["n"]), ("by-status", &["status", "n"])]));
    let updated = Order { by: OrderBy::Updated, descending: false };
    let any = Filter::default();
    let orders = [
        ask(&any, &Order::default(), 1, None),
        ask(&any, &updated, 1, None),
        ask(&any, &by("by-n"), 1, None),
        ask(&any, &by("by-status"), 1, None),
        ask(&status("pending"), &by("by-status"), 1, None),
    ];
    for (nth, first) in orders.iter().enumerate() {
        let after = page(&world, first).unwrap().next;
        for (mth, second) in orders.iter().enumerate() {
            let went_on = page(&world, &QueryAsk { after: after.clone(), ..second.clone() });
            if nth == mth {
                assert_eq!(went_on.unwrap().rows.len(), 1);
                continue;
            }
            let refused = went_on.unwrap_err();
            assert_eq!(refused.code, Code::Invalid, "{nth} {mth}");
            assert_eq!(refused.got, "one of another order, or of an index that was declared anew since");
        }
    }
    let after = page(&world, &orders[2]).unwrap().next;
    world.ok(declared(&queue(&[("by-n", &["n", "status"])])));
    tended(&mut world);
    let refused = page(&world, &QueryAsk { after, ..orders[2].clone() }).unwrap_err();
    assert!(refused.expected.ends_with("begin again, without `after`"), "{refused}");
}

#[test]
fn a_step_reads_by_its_documents_as_they_are_and_a_late_one_reads_nothing() {
    let with = worker().data(r#"{"n":3}"#);
    let (mut world, id) = working_with(&queue(&[]), with);
    let read = |world: &World, claim: &Claim, text: &str| {
        let ask = ask(&all(text), &Order::default(), 9, None);
        interlock_kernel::query(&world.records, &world.rules, world.now(), Reader::Step(claim), &ask).unwrap()
    };
    let claim = world.claim(&id);
    assert_eq!(keys(&read(&world, &claim, "row.n eq data.n").unwrap()), ["c"]);
    world.save(&id, Change { data: Some(doc(r#"{"n":4}"#)), ..Change::default() }).unwrap();
    assert_eq!(keys(&read(&world, &claim, "row.n eq data.n").unwrap()), ["d"], "as they are now");
    again(&mut world, &id);
    assert_eq!(read(&world, &claim, "row.n eq data.n").unwrap_err().code, Code::Fenced);
    world.ok(Verb::Kill { entity: id.clone(), reason: "test".to_owned() });
    world.ok(Verb::Delete(id));
    assert_eq!(read(&world, &claim, "row.n eq data.n").unwrap_err().code, Code::Fenced, "nor one that is gone");
}

#[test]
fn pages_go_on_in_an_alternative_that_fixes_more_than_the_order_leaves_out() {
    let mut world = four(&queue(&[("by-n", &["status", "n"])]));
    for at in ["x", "y", "z"] {
        one(&mut world, put(at, r#"{"n":1,"status":"pending"}"#));
    }
    let either = filter(r#"row.status eq "pending" and row.n eq 1 or row.status eq "done""#);
    assert_eq!(pages(&world, &either, &by("by-n"), 1), ["a", "x", "y", "z"]);
}

#[test]
fn a_text_that_begins_like_another_stands_behind_it_whatever_follows() {
    let mut world = four(&queue(&[("by-name", &["name", "n"])]));
    one(&mut world, put("short", r#"{"n":"z","name":"x"}"#));
    one(&mut world, put("long", r#"{"n":"a","name":"x\u0000\u0001"}"#));
    assert_eq!(
        keys(&page(&world, &ask(&all("row.name exists true"), &by("by-name"), 9, None)).unwrap()),
        ["short", "long"]
    );
}

#[test]
fn a_claim_looks_behind_any_number_of_rows_that_were_changed_before_it() {
    let mut world = four(&queue(&[]));
    many(&mut world, 150, r#"{"status":"pending"}"#);
    let (pending, order) = (status("pending"), Order::default());
    let done = answers(&mut world, client(vec![claim(140), take(&pending, &order, 3)]));
    assert_eq!(taken(&done[0]).len(), 140);
    assert_eq!(taken(&done[1]), ["j136", "j137", "j138"]);
}

#[test]
fn a_claim_sees_rows_as_the_request_has_left_them() {
    let mut world = four(&queue(&[("by-n", &["n"])]));
    let gone = op(RowAsk::Delete { key: key("d"), filter: Filter::default() });
    let last = update("a", Filter::default(), &["row.n = 9"]);
    let ordered = op(RowAsk::Claim { filter: None, set: None, order: by("by-n"), limit: 9, delete: false });
    let done = answers(&mut world, client(vec![gone, last, ordered]));
    assert_eq!(taken(&done[2]), ["b", "c", "a"]);
}

#[test]
fn a_row_past_its_time_is_in_no_answer_though_the_index_has_it() {
    let mut table = queue(&[("by-status", &["status"])]);
    table.ttl = Some(interlock_kernel::table::Ttl { ms: 10_000, from_change: false });
    let mut world = four(&table);
    world.pass(10_000);
    one(&mut world, put("e", r#"{"status":"pending"}"#));
    assert_eq!(keys(&page(&world, &ask(&status("pending"), &Order::default(), 9, None)).unwrap()), ["e"]);
}

#[test]
fn an_index_declared_with_other_fields_is_another_and_one_declared_alike_is_the_same() {
    let mut world = four(&queue(&[("by-n", &["n"]), ("by-status", &["status"])]));
    let indexes = |world: &World| -> Vec<(u32, String, &str)> {
        let heads = crate::rows::table_heads(world);
        let (_, head) = heads.first_key_value().unwrap();
        let stage = |stage: &IndexStage| match stage {
            IndexStage::Ready => "ready",
            IndexStage::Building { .. } => "building",
            IndexStage::Dropping => "dropping",
        };
        let name =
            |name: &Option<interlock_kernel::ids::Name>| name.as_ref().map_or("".into(), |name| name.to_string());
        head.indexes.iter().map(|one| (one.number, name(&one.name), stage(&one.stage))).collect()
    };
    let of = |all: &[(u32, &str, &'static str)]| -> Vec<(u32, String, &str)> {
        all.iter().map(|(number, name, stage)| (*number, (*name).to_owned(), *stage)).collect()
    };
    assert_eq!(indexes(&world), of(&[(0, "", "ready"), (1, "by-n", "ready"), (2, "by-status", "ready")]));
    let mut other = queue(&[("by-n", &["n"])]);
    other.indexes.insert(name("by-status"), index(&["status", "n"]));
    world.ok(declared(&other));
    let both = [(0, "", "ready"), (1, "by-n", "ready"), (2, "by-status", "dropping"), (3, "by-status", "building")];
    assert_eq!(indexes(&world), of(&both));
    tended(&mut world);
    assert_eq!(indexes(&world), of(&[(0, "", "ready"), (1, "by-n", "ready"), (3, "by-status", "ready")]));
    check(&world, "tended");
}
