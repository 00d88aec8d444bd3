//! Requests on rows as JSON: every form means what it says, every mistake is told with its place.

use expect_test::{expect, expect_file};
use interlock_kernel::doc::Doc;
use interlock_kernel::rows::{Found, Order, OrderBy, QueryAnswer, RowAnswer, RowAsk, RowShown, Unmatched};
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Comparison, Filter, Mutation};
use interlock_manifest::reading::{self, Keys};
use interlock_manifest::rows::{self, Asks};
use serde_json::{Value as Json, json};

fn read(text: &str) -> Json {
    rows::text(text).expect("JSON")
}

fn filter(json: &Json) -> String {
    let any = rows::filter(json, Asks::Step).expect("a filter").any;
    let all = |all: &Vec<Comparison>| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    if any.is_empty() { "anything".to_owned() } else { any.iter().map(all).collect::<Vec<_>>().join(" or ") }
}

#[test]
fn a_filter_has_a_short_and_a_long_form_and_nests() {
    let lines = [
        r#"[]"#,
        r#"{}"#,
        r#"{"status": "pending"}"#,
        r#"{"status": "pending", "row.size": 3, "a\\.b": null, "tags[0]": ["x"]}"#,
        r#"{"claimed_at": {"from": "now-5m"}, "box": {"value": {"from": "here"}}}"#,
        r#"{"field": "size", "operator": "ge", "value": 18446744073709551615}"#,
        r#"{"field": "box", "operator": "eq", "literal": {"from": "here"}}"#,
        r#"{"field": "box", "operator": "eq", "value": {"from": "here", "to": "there"}}"#,
        r#"{"field": "gone", "operator": "exists"}"#,
        r#"[{"field": "a", "operator": "eq", "value": 1}, {"b": 2}]"#,
        r#"{"any": [{"status": "pending"}, {"all": [{"status": "in_flight"}, {"field": "claimed_at", "operator": "lt", "value": {"from": "now-5m"}}]}]}"#,
        r#"{"all": [{"any": [{"a": 1}, {"b": 2}]}, {"any": [{"c": 3}, [{"d": 4}, {"e": 5}]]}]}"#,
    ]
    .map(|text| format!("{text}: {}", filter(&read(text))));
    expect![[r#"
        []: anything
        {}: anything
        {"status": "pending"}: row.status eq "pending"
        {"status": "pending", "row.size": 3, "a\\.b": null, "tags[0]": ["x"]}: row.a\.b eq null and row.size eq 3 and row.status eq "pending" and row.tags[0] eq ["x"]
        {"claimed_at": {"from": "now-5m"}, "box": {"value": {"from": "here"}}}: row.box eq {"from":"here"} and row.claimed_at eq now-300000ms
        {"field": "size", "operator": "ge", "value": 18446744073709551615}: row.size ge 18446744073709551615
        {"field": "box", "operator": "eq", "literal": {"from": "here"}}: row.box eq {"from":"here"}
        {"field": "box", "operator": "eq", "value": {"from": "here", "to": "there"}}: row.box eq {"from":"here","to":"there"}
        {"field": "gone", "operator": "exists"}: row.gone exists true
        [{"field": "a", "operator": "eq", "value": 1}, {"b": 2}]: row.a eq 1 and row.b eq 2
        {"any": [{"status": "pending"}, {"all": [{"status": "in_flight"}, {"field": "claimed_at", "operator": "lt", "value": {"from": "now-5m"}}]}]}: row.status eq "pending" or row.status eq "in_flight" and row.claimed_at lt now-300000ms
        {"all": [{"any": [{"a": 1}, {"b": 2}]}, {"any": [{"c": 3}, [{"d": 4}, {"e": 5}]]}]}: row.a eq 1 and row.c eq 3 or row.a eq 1 and row.d eq 4 and row.e eq 5 or row.b eq 2 and row.c eq 3 or row.b eq 2 and row.d eq 4 and row.e eq 5"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn changes_keep_the_order_of_a_list_and_are_sorted_in_an_object() {
    let lines = [
        r#"[{"field": "z", "operation": "set", "value": 1}, {"field": "a", "operation": "increment", "value": {"from": "row.z"}}]"#,
        r#"{"z": 1, "a": {"increment": -2}}"#,
        r#"{"z": {"from": "now+1h"}, "y": {"remove": true}, "x": {"append": {"from": "execution"}, "max": 3}}"#,
        r#"{"z": {"append": [1]}, "y": {"max": 1.5}, "x": {"min": "b"}, "w": {"value": {"a": 1}}, "v": null}"#,
        r#"[{"field": "z", "operation": "append", "value": 1, "max": 1000}, {"field": "z", "operation": "append", "value": 1}, {"field": "y", "operation": "remove"}]"#,
        r#"[{"field": "z", "operation": "set", "literal": {"from": "x"}}, {"field": "y", "operation": "set", "value": {"value": 1}}]"#,
        r#"[]"#,
    ]
    .map(|text| {
        let set = rows::set(&read(text), Asks::Client).expect("changes");
        let shown = |one: &Mutation| format!("{} {:?} {}", one.field, one.operation, one.value);
        format!("{text}: {}", set.iter().map(shown).collect::<Vec<_>>().join("; "))
    });
    expect![[r#"
        [{"field": "z", "operation": "set", "value": 1}, {"field": "a", "operation": "increment", "value": {"from": "row.z"}}]: row.z Set 1; row.a Increment row.z
        {"z": 1, "a": {"increment": -2}}: row.a Increment -2; row.z Set 1
        {"z": {"from": "now+1h"}, "y": {"remove": true}, "x": {"append": {"from": "execution"}, "max": 3}}: row.x Append { max: 3 } execution; row.y Remove null; row.z Set now+3600000ms
        {"z": {"append": [1]}, "y": {"max": 1.5}, "x": {"min": "b"}, "w": {"value": {"a": 1}}, "v": null}: row.v Set null; row.w Set {"a":1}; row.x Min "b"; row.y Max 1.5; row.z Append { max: 1000 } [1]
        [{"field": "z", "operation": "append", "value": 1, "max": 1000}, {"field": "z", "operation": "append", "value": 1}, {"field": "y", "operation": "remove"}]: row.z Append { max: 1000 } 1; row.z Append { max: 1000 } 1; row.y Remove null
        [{"field": "z", "operation": "set", "literal": {"from": "x"}}, {"field": "y", "operation": "set", "value": {"value": 1}}]: row.z Set {"from":"x"}; row.y Set {"value":1}
        []: "#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn what_an_operation_leaves_out_has_its_default() {
    let op = |text: &str| rows::op(&read(text), Asks::Client).expect("an operation");
    let claim = op(r#"{"claim": "jobs"}"#);
    let order = Order { by: OrderBy::Created, descending: false };
    let what = RowAsk::Claim { filter: None, set: None, order, limit: 10, delete: false };
    assert_eq!((claim.what, claim.fields, claim.must), (what, Vec::new(), false));
    let RowAsk::Claim { filter, set, order, limit, delete } =
        op(r#"{"claim": "jobs", "where": {}, "order": "-by-priority", "limit": 3, "delete": true}"#).what
    else {
        panic!("a claim")
    };
    assert_eq!((filter, set, limit, delete), (Some(Filter::default()), None, 3, true));
    assert_eq!(order, Order { by: OrderBy::Index("by-priority".parse().expect("a name")), descending: true });
    let RowAsk::Upsert { fill, set, .. } = op(r#"{"upsert": "jobs", "key": "a", "insert": {}}"#).what else {
        panic!("an upsert")
    };
    assert_eq!((fill, set), (Vec::new(), Vec::new()));
    let RowAsk::Put { expect, .. } = op(r#"{"put": "jobs", "key": 7, "value": 1, "expect": "absent"}"#).what else {
        panic!("a put")
    };
    assert_eq!(expect, Some(Found::Absent));
    let query = rows::query(&json!({"query": "jobs"}), Asks::Client).expect("a query");
    assert_eq!((query.limit, query.after, query.filter), (rows::QUERY_DEFAULT, None, Filter::default()));
}

#[test]
fn integers_of_64_bits_are_exact_wherever_they_stand() {
    for number in ["-9223372036854775808", "9007199254740993", "18446744073709551615"] {
        let text = format!(
            r#"{{"require": [{{"row": "t", "key": {number}, "where": {{"a": {number}}}}}], "ops": [
                {{"update": "t", "key": {number}, "where": {{"field": "a", "operator": "lt", "value": {number}}},
                  "set": {{"a": {number}, "b": {{"increment": {number}}}}}}},
                {{"put": "t", "key": "k", "value": {{"a": [{number}]}}}}]}}"#
        );
        let shown = format!("{:?}", rows::ask(&read(&text), Asks::Client).expect("a request"));
        assert_eq!(shown.matches(number).count(), 7, "{shown}");
    }
    let version =
        rows::op(&read(r#"{"put":"t","key":"k","value":1,"expect":{"version":18446744073709551615}}"#), Asks::Step);
    let RowAsk::Put { expect, .. } = version.expect("a put").what else { panic!("a put") };
    assert_eq!(expect, Some(Found::Version(u64::MAX)));
    let long = rows::text(r#"{"a": 18446744073709551616}"#).expect_err("too long");
    assert_eq!(long.to_string(), "the request: expected integers of at most 64 bits, got 18446744073709551616");
    assert!(rows::text("{").expect_err("no JSON").to_string().starts_with("the request: expected JSON, got "));
}

/// Requests that cannot be read.
const MISTAKES: &[&str] = &[
    r#"[]"#,
    r#"{}"#,
    r#"{"op": []}"#,
    r#"{"ops": {}}"#,
    r#"{"require": "x"}"#,
    r#"{"ops": [7]}"#,
    r#"{"ops": [{}]}"#,
    r#"{"ops": [{"updat": "t", "key": "k", "set": {"a": 1}}]}"#,
    r#"{"ops": [{"key": "k", "set": {"a": 1}}]}"#,
    r#"{"ops": [{"update": "t", "upsert": "t", "key": "k", "set": {"a": 1}}]}"#,
    r#"{"ops": [{"get": "Jobs", "key": "k"}]}"#,
    r#"{"ops": [{"get": 7, "key": "k"}]}"#,
    r#"{"ops": [{"get": "t"}]}"#,
    r#"{"ops": [{"get": "t", "kye": "k"}]}"#,
    r#"{"ops": [{"get": "t", "key": 1.5}]}"#,
    r#"{"ops": [{"get": "t", "key": null}]}"#,
    r#"{"ops": [{"get": "t", "key": {"from": "row.x"}}]}"#,
    r#"{"ops": [{"get": "t", "key": {"from": "event.x"}}]}"#,
    r#"{"ops": [{"get": "t", "key": {"from": "tomorrow"}}]}"#,
    r#"{"ops": [{"get": "t", "key": {"form": "now"}}]}"#,
    r#"{"ops": [{"get": "t", "key": "k", "must": true}]}"#,
    r#"{"ops": [{"get": "t", "key": "k", "return": []}]}"#,
    r#"{"ops": [{"get": "t", "key": "k", "return": "a"}]}"#,
    r#"{"ops": [{"get": "t", "key": "k", "return": [1]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k"}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": 7}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": {"incremnt": 1}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": {"b": 1}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": {}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": {"increment": "1"}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": {"increment": 1, "max": 3}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": {"append": 1, "max": 0}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": {"append": 1, "max": 1001}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": {"remove": false}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"row": {"remove": true}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a..b": 1}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a/b~": {"from": "data.x"}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": "a", "operation": "add", "value": 1}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": "a", "operation": "remov"}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": "a", "value": 1}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"operation": "set", "value": 1}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": "a", "operation": "set"}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": "a", "operation": "set", "value": 1, "max": 3}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": "a", "operation": "remove", "value": 1}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": "a", "operation": "set", "value": 1, "literal": 2}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": "a", "operation": "increment", "value": "1"}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [{"field": 1, "operation": "set", "value": 1}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": [7]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "must": "yes"}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": "x"}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"all": []}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"any": {"a": 1}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"any": [{}]}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"any": [{"a": 1}], "all": [{"b": 1}]}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"field": "a", "operator": "equals", "value": 1}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"field": "a", "operator": "eqq", "value": 1}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"field": "a", "op": "eq", "value": 1}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": [{"a": 1}, {"field": "a", "operator": "eq"}]}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"field": "a", "operator": "in", "value": 1}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"field": "a", "operator": "exists", "value": 1}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"field": "a", "operator": "lt", "value": [1]}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"field": "a", "operator": "starts-with", "literal": 1}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"a": {"eq": 1}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"a": {"from": "now-5 minutes"}}}]}"#,
    r#"{"ops": [{"update": "t", "key": "k", "set": {"a": 1}, "where": {"a[": 1}}]}"#,
    r#"{"ops": [{"claim": "t", "limit": "all"}]}"#,
    r#"{"ops": [{"claim": "t", "limit": -1}]}"#,
    r#"{"ops": [{"claim": "t", "limit": 4294967296}]}"#,
    r#"{"ops": [{"claim": "t", "order": "by_priority"}]}"#,
    r#"{"ops": [{"claim": "t", "order": 1}]}"#,
    r#"{"ops": [{"claim": "t", "key": "k"}]}"#,
    r#"{"ops": [{"claim": "t", "delete": true, "set": {"a": 1}}]}"#,
    r#"{"ops": [{"claim": "t", "delete": "u"}]}"#,
    r#"{"ops": [{"upsert": "t", "key": "k", "set": {"a": 1}}]}"#,
    r#"{"ops": [{"upsert": "t", "key": "k", "insert": {}, "where": {"a": 1}}]}"#,
    r#"{"ops": [{"put": "t", "key": "k"}]}"#,
    r#"{"ops": [{"put": "t", "key": "k", "value": 1, "expect": "present"}]}"#,
    r#"{"ops": [{"put": "t", "key": "k", "value": 1, "expect": {"version": "3"}}]}"#,
    r#"{"ops": [{"put": "t", "key": "k", "value": 1, "expect": {"versoin": 3}}]}"#,
    r#"{"ops": [{"delete": "t", "key": "k", "return": ["a"]}]}"#,
    r#"{"require": [7]}"#,
    r#"{"require": [{}]}"#,
    r#"{"require": [{"rwo": "t", "key": "k"}]}"#,
    r#"{"require": [{"row": "t"}]}"#,
    r#"{"require": [{"absent": "t", "key": "k", "where": {"a": 1}}]}"#,
    r#"{"require": [{"entity": "m"}]}"#,
    r#"{"require": [{"entity": "m/k", "states": "ready"}]}"#,
    r#"{"require": [{"entity": "m/k", "states": ["Ready"]}]}"#,
    r#"{"require": [{"entity": "m/k", "where": {"status": 1}}]}"#,
    r#"{"require": [{"entity": "m/k", "where": {"event.x": 1}}]}"#,
    r#"{"require": [{"entity": "m/k", "where": {"data.x": {"from": "row.x"}}}]}"#,
];

#[test]
fn every_mistake_is_told_with_its_place() {
    let mut golden = String::new();
    for text in MISTAKES {
        let why = rows::ask(&read(text), Asks::Client).expect_err(text);
        assert!(why.at.is_empty() || why.at.starts_with('/'), "{why:?}");
        golden.push_str(&format!("{text}\n  {why}\n"));
    }
    expect_file!["golden/rows.txt"].assert_eq(&golden);
}

#[test]
fn a_query_is_read_as_strictly() {
    let lines = [
        r#"{"where": {"a": 1}}"#,
        r#"{"query": "t", "wehre": {"a": 1}}"#,
        r#"{"query": "t", "after": 7}"#,
        r#"{"query": "t", "must": true}"#,
    ]
    .map(|text| rows::query(&read(text), Asks::Client).expect_err(text).to_string());
    expect![[r#"
        /query: expected a table's name, got nothing
        /wehre: expected one of query, where, order, limit, after, return (did you mean where?), got "wehre"
        /after: expected the `next` of an earlier answer, got 7
        /must: expected one of query, where, order, limit, after, return, got "must""#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_step_may_read_from_its_event_and_documents_and_a_client_may_not() {
    for root in ["event", "desired", "data", "outputs"] {
        let op =
            json!({"update": "t", "key": {"from": format!("{root}.id")}, "set": {"a": {"from": format!("{root}.x")}}});
        rows::op(&op, Asks::Step).expect(root);
        let why = rows::op(&op, Asks::Client).expect_err(root);
        assert_eq!((why.at.as_str(), why.expected.as_str()), ("/key/from", "now, now+5m, now-90s, execution"));
        // What is required of another entity is read from that entity, whoever asks.
        let ask = json!({"require": [{"entity": "m/k", "where": {"data.x": {"from": format!("{root}.y")}}}]});
        assert_eq!(rows::ask(&ask, Asks::Client).is_ok(), root != "event", "{root}");
    }
}

#[test]
fn a_filter_is_bounded_once_it_is_multiplied_out() {
    let any = |count: usize| json!({"any": (0..count).map(|n| json!({"a": n})).collect::<Vec<_>>()});
    let all = |sides: usize, each: usize| json!({"all": vec![any(each); sides]});
    let told =
        |json: &Json| rows::filter(json, Asks::Client).map(|filter| filter.any.iter().map(Vec::len).sum::<usize>());
    assert_eq!(told(&any(256)), Ok(256));
    assert_eq!(told(&all(2, 11)), Ok(242), "11 * 11 alternatives of two");
    assert_eq!(told(&all(5, 2)), Ok(160));
    for over in [any(257), all(2, 12), all(6, 3), all(60, 2)] {
        let why = told(&over).expect_err("too many");
        assert!(why.expected.contains("comparisons_max"), "{why}");
    }
    let fields = |count: usize| Json::Object((0..count).map(|n| (format!("f{n}"), json!(n))).collect());
    assert_eq!((told(&fields(256)), told(&fields(257)).is_err()), (Ok(256), true));
    let deep = |levels: usize| (0..levels).fold(json!({"a": 1}), |inner, _| json!([inner]));
    assert_eq!((told(&deep(127)), told(&deep(128)).is_err()), (Ok(1), true));
}

#[test]
fn answers_say_what_was_done() {
    let shown = RowShown {
        key: "a".parse().expect("a key"),
        value: Doc::new(json!({"n": u64::MAX})),
        version: 7,
        created: WallTime(1_767_225_600_000),
        updated: WallTime(1_767_225_600_001),
        claims: 2,
        claimed_by: Some("dispatcher".to_owned()),
    };
    let key = shown.key.clone();
    let free = RowShown { claimed_by: None, claims: 0, ..shown.clone() };
    let guard = Unmatched::Guard("row.n eq 1".to_owned());
    let answers = [
        RowAnswer::Got { key: key.clone(), row: Some(free.clone()) },
        RowAnswer::Got { key: key.clone(), row: None },
        RowAnswer::Put { inserted: true, row: free.clone() },
        RowAnswer::Updated { key: key.clone(), row: Some(free.clone()), unmatched: None },
        RowAnswer::Updated { key: key.clone(), row: None, unmatched: Some(Unmatched::Absent) },
        RowAnswer::Updated { key: key.clone(), row: None, unmatched: Some(guard.clone()) },
        RowAnswer::Upserted { inserted: false, row: free.clone() },
        RowAnswer::Claimed { rows: vec![shown.clone()], more: true, lost: vec![key.clone()] },
        RowAnswer::Claimed { rows: Vec::new(), more: false, lost: Vec::new() },
        RowAnswer::Deleted { key: key.clone(), deleted: true, unmatched: None },
        RowAnswer::Deleted { key: key.clone(), deleted: false, unmatched: Some(Unmatched::Absent) },
        RowAnswer::Deleted { key, deleted: false, unmatched: Some(guard) },
    ];
    // As a document, so that the order of the fields is one.
    let mut lines: Vec<String> = answers.iter().map(|answer| Doc::new(rows::answer(answer)).to_string()).collect();
    let query = QueryAnswer { rows: vec![shown], next: Some("x".to_owned()) };
    lines.extend([&query, &QueryAnswer::default()].map(|answer| Doc::new(rows::found(answer)).to_string()));
    expect![[r#"
        {"claimed_by":null,"claims":0,"created":"2026-01-01T00:00:00.000Z","found":true,"key":"a","updated":"2026-01-01T00:00:00.001Z","value":{"n":18446744073709551615},"version":7}
        {"found":false,"key":"a","value":null}
        {"inserted":true,"key":"a","value":{"n":18446744073709551615},"version":7}
        {"key":"a","unmatched":null,"updated":true,"value":{"n":18446744073709551615},"version":7}
        {"key":"a","unmatched":"absent","updated":false,"value":null,"version":null}
        {"guard":"row.n eq 1","key":"a","unmatched":"guard","updated":false,"value":null,"version":null}
        {"inserted":false,"key":"a","value":{"n":18446744073709551615},"version":7}
        {"claimed":[{"claimed_by":"dispatcher","claims":2,"created":"2026-01-01T00:00:00.000Z","key":"a","updated":"2026-01-01T00:00:00.001Z","value":{"n":18446744073709551615},"version":7}],"count":1,"lost":["a"],"more":true}
        {"claimed":[],"count":0,"lost":[],"more":false}
        {"deleted":true,"key":"a","unmatched":null}
        {"deleted":false,"key":"a","unmatched":"absent"}
        {"deleted":false,"guard":"row.n eq 1","key":"a","unmatched":"guard"}
        {"count":1,"next":"x","rows":[{"claimed_by":"dispatcher","claims":2,"created":"2026-01-01T00:00:00.000Z","key":"a","updated":"2026-01-01T00:00:00.001Z","value":{"n":18446744073709551615},"version":7}]}
        {"count":0,"next":null,"rows":[]}"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn a_request_in_toml_is_told_where_it_is_wrong() {
    const KEYS: Keys = Keys { what: "a text", names: &["rows"] };
    let told = |text: &str| {
        reading::read("scenario.toml", text, &KEYS, |root, log| {
            let node = root.need("rows", "write a request", log)?;
            rows::in_toml(&node, log, |json| rows::ask(json, Asks::Step))
        })
    };
    let good = "[[rows.ops]]\nupdate = \"jobs\"\nkey = \"a\"\nset = { tries = { increment = 1 } }\n";
    assert_eq!(told(good).expect("a request").ops.len(), 1);
    let report = told(&good.replace("increment = 1", "incremnt = 1")).expect_err("a slip of the pen");
    let [problem] = report.problems.as_slice() else { panic!("{report:?}") };
    expect![[r#"4:30 `rows` cannot be read at "/ops/0/set/tries/incremnt" | write one of append, from, increment, max, min, remove, value (did you mean increment?); a literal object is written {"value": {...}}"#]]
    .assert_eq(&format!("{}:{} {} | {}", problem.line, problem.column, problem.message, problem.remedy));
}
