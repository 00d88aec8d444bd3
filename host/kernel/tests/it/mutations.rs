//! `set`: what each operation does to each value, exact to 64 bits, and what it refuses.

use crate::build::{doc, mutation};
use crate::semantics::working;
use interlock_kernel::command::Change;
use interlock_kernel::record::Part;
use interlock_kernel::time::WallTime;
use interlock_kernel::value::Roots;
use serde_json::{Value, json};

/// Data after a mutation, or why not. `desired` is 5, `event.list` an array.
fn check(data: Value, text: &str) -> Result<Value, String> {
    let (event, desired) = (json!({ "list": [1] }), json!(5));
    let was = data.clone();
    let roots = Roots {
        event: Some(&event),
        desired: Some(&desired),
        data: Some(&was),
        now: Some(WallTime(1_000)),
        ..Roots::default()
    };
    let mut data = data;
    mutation(text).apply(&mut data, &roots)?;
    Ok(data)
}

#[test]
fn what_each_operation_does() {
    let table = [
        (json!({}), "data.x = 1", json!({ "x": 1 })),
        (json!(null), "data.a.b.c = 1", json!({ "a": { "b": { "c": 1 } } })),
        (json!({ "a": null }), "data.a.b = 1", json!({ "a": { "b": 1 } })),
        (json!({ "a": [1, 2] }), "data.a[1] = 9", json!({ "a": [1, 9] })),
        (json!({ "x": 1 }), "data = event.list", json!([1])),
        (json!({ "x": 1 }), "data.x = null", json!({ "x": null })),
        (json!({}), "data.at = now+1s", json!({ "at": 2_000 })),
        (json!({}), "data.n += desired", json!({ "n": 5 })),
        (json!({ "n": 7 }), "data.n += -9", json!({ "n": -2 })),
        (json!({ "n": 1.5 }), "data.n += 1", json!({ "n": 2.5 })),
        (json!({ "n": 1 }), "data.n += 1.0", json!({ "n": 2.0 })),
        (json!({ "n": u64::MAX - 1 }), "data.n += 1", json!({ "n": u64::MAX })),
        (json!({ "n": u64::MAX }), "data.n += -1", json!({ "n": u64::MAX - 1 })),
        (json!({ "n": i64::MIN }), "data.n += 18446744073709551615", json!({ "n": i64::MAX })),
        (json!({ "n": 9_007_199_254_740_992_u64 }), "data.n += 1", json!({ "n": 9_007_199_254_740_993_u64 })),
        (json!({}), "data.log << 1", json!({ "log": [1] })),
        (json!({ "log": [1, 2, 3] }), "data.log << 4", json!({ "log": [2, 3, 4] })),
        (json!({ "log": [1, 2, 3, 4, 5] }), "data.log << 6", json!({ "log": [4, 5, 6] })),
        (json!({}), "data.m max 3", json!({ "m": 3 })),
        (json!({ "m": 2 }), "data.m max 3", json!({ "m": 3 })),
        (json!({ "m": 4 }), "data.m max 3", json!({ "m": 4 })),
        (json!({ "m": 3 }), "data.m max 3.0", json!({ "m": 3 })),
        (json!({ "m": "a" }), r#"data.m max "b""#, json!({ "m": "b" })),
        (json!({}), "data.m min 3", json!({ "m": 3 })),
        (json!({ "m": 4 }), "data.m min 3", json!({ "m": 3 })),
        (json!({ "x": 1, "y": 2 }), "data.x remove 0", json!({ "y": 2 })),
        (json!({ "x": [1, 2, 3] }), "data.x[1] remove 0", json!({ "x": [1, 3] })),
        (json!({}), "data.x.y.z remove 0", json!({})),
        (json!({ "x": 1 }), "data.x.y remove 0", json!({ "x": 1 })),
        (json!({ "x": [1] }), "data.x[7] remove 0", json!({ "x": [1] })),
        (json!({ "x": [1] }), "data.x[1] remove 0", json!({ "x": [1] })),
    ];
    for (data, text, expected) in table {
        assert_eq!(check(data.clone(), text), Ok(expected), "{text} on {data}");
    }
}

#[test]
fn what_is_refused_and_why() {
    let table = [
        (json!({}), "data.x = event.nothing", "data.x: expected a value, got nothing at event.nothing"),
        (json!({}), "data.x = execution", "data.x: expected a value, got nothing at execution"),
        (json!({ "x": 1 }), "data.x.y = 1", "data.x.y: expected an object on the way, got a number"),
        (json!({ "x": {} }), "data.x[0] = 1", "data.x[0]: expected an array on the way, got an object"),
        (json!({}), "data.x[0] = 1", "data.x[0]: expected an array on the way, got nothing at [0]"),
        (json!({ "x": [1] }), "data.x[1] = 1", "data.x[1]: expected an index below 1, got 1"),
        (json!({ "n": "1" }), "data.n += 1", "data.n: expected a number, got text"),
        (json!({ "n": null }), "data.n += 1", "data.n: expected a number, got null"),
        (json!({ "n": 1 }), "data.n += true", "data.n: expected a number, got a boolean"),
        (json!({ "n": u64::MAX }), "data.n += 1", "data.n: expected a 64-bit sum, got 18446744073709551615 + 1"),
        (json!({ "n": i64::MIN }), "data.n += -1", "data.n: expected a 64-bit sum, got -9223372036854775808 + -1"),
        (json!({ "n": 1e308 }), "data.n += 1e308", "data.n: expected a 64-bit sum, got 1e+308 + 1e+308"),
        (json!({ "log": 1 }), "data.log << 1", "data.log: expected an array, got a number"),
        (json!({ "m": "a" }), "data.m max 1", "data.m: expected two numbers or two texts, got text"),
        (json!({ "m": null }), "data.m min 1", "data.m: expected two numbers or two texts, got null"),
        (json!({}), "data remove 0", "data: expected a field, got the whole document"),
    ];
    for (data, text, expected) in table {
        assert_eq!(check(data.clone(), text), Err(expected.to_owned()), "{text} on {data}");
    }
}

#[test]
fn removing_from_nothing_makes_no_document() {
    let (mut world, id) = working();
    let remove = || Change { set: vec![mutation("outputs.x remove 0")], ..Change::default() };
    world.save(&id, remove()).unwrap();
    assert_eq!(world.part(&id, Part::Outputs), None);
    world.save(&id, Change { outputs: Some(doc(r#"{"x":1}"#)), ..Change::default() }).unwrap();
    world.save(&id, remove()).unwrap();
    assert_eq!(world.part(&id, Part::Outputs).unwrap().text(), "{}");
}

#[test]
fn each_mutation_sees_what_those_before_it_did() {
    let (mut world, id) = working();
    let set = vec![mutation("data.a = data.runs"), mutation("data.runs = 9"), mutation("data.b = data.runs")];
    world.save(&id, Change { set, ..Change::default() }).unwrap();
    assert_eq!(world.data(&id), r#"{"a":1,"b":9,"notes":0,"runs":9}"#);
}
