//! Requests on rows that nobody wrote by hand: they mean what they say, and what is wrong with them has a place.

use interlock_kernel::doc::Doc;
use interlock_kernel::rows::{Found, Order, OrderBy, Require, RowAsk, RowOp, RowsAsk};
use interlock_kernel::value::{
    Comparison, Filter, Mutation, Operation, Operator, Path, Root, Roots, Segment, Source, Value, Verdict,
};
use interlock_manifest::rows::{self, Asks};
use serde_json::{Value as Json, json};

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).expect("small")].clone()
    }

    fn some<T>(&mut self, least: u64, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..least + self.below(most - least + 1)).map(|_| make(self)).collect()
    }

    fn scalar(&mut self) -> Json {
        self.one(&[
            json!(0),
            json!(1),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1.5),
            json!("a"),
            json!("b"),
            json!(null),
            json!(true),
        ])
    }
}

/// Whether a row is meant.
type Test = Box<dyn Fn(&Json) -> bool>;

/// A condition as it is written, and as people think of it.
fn condition(dice: &mut Dice, depth: u64) -> (Json, Test) {
    let kind = if depth == 0 { dice.below(2) } else { dice.below(5) };
    if kind > 1 {
        let (texts, tests): (Vec<Json>, Vec<_>) =
            dice.some(1, 3, |dice| condition(dice, depth - 1)).into_iter().unzip();
        return match kind {
            2 => (json!({"any": texts}), Box::new(move |row| tests.iter().any(|test| test(row)))),
            3 => (json!({"all": texts}), Box::new(move |row| tests.iter().all(|test| test(row)))),
            _ => (json!(texts), Box::new(move |row| tests.iter().all(|test| test(row)))),
        };
    }
    let (field, value) = (dice.one(&["a", "b", "c"]), dice.scalar());
    if kind == 0 {
        return (json!({field: value}), Box::new(move |row| row.get(field) == Some(&value)));
    }
    if dice.below(3) == 0 {
        let wanted = dice.below(2) == 0;
        let text = json!({"field": format!("row.{field}"), "operator": "exists", "value": wanted});
        return (text, Box::new(move |row| row.get(field).is_some() == wanted));
    }
    let list = [value, dice.scalar()];
    let text = json!({"field": field, "operator": "in", "literal": list});
    (text, Box::new(move |row| row.get(field).is_some_and(|found| list.contains(found))))
}

#[test]
fn a_filter_means_what_it_says_however_it_is_nested() {
    let (mut held, mut failed) = (0, 0);
    for seed in 0..400 {
        let dice = &mut Dice(seed);
        let (text, test) = condition(dice, 3);
        let filter = match rows::filter(&text, Asks::Client) {
            Ok(filter) => filter,
            Err(why) => {
                assert!(why.expected.contains("comparisons_max"), "seed {seed}: {why}");
                continue;
            }
        };
        for _ in 0..20 {
            let fields = dice.some(0, 3, |dice| (dice.one(&["a", "b", "c"]).to_owned(), dice.scalar()));
            let row = Json::Object(fields.into_iter().collect());
            let holds = filter.judge(&Roots { row: Some(&row), ..Roots::default() }, &mut 0) == Verdict::Holds;
            assert_eq!(holds, test(&row), "seed {seed}: {text} of {row}");
            *if holds { &mut held } else { &mut failed } += 1;
        }
    }
    assert!(held > 500 && failed > 500, "{held} held, {failed} failed");
}

/// The kernel's requests, and one of the ways in which each may be written.
struct Written<'d>(&'d mut Dice);

impl Written<'_> {
    fn path(&mut self) -> (Path, String) {
        let name = self.0.one(&["status", "a.b", "row", "x[", "data"]);
        let mut segments = vec![Segment::Field(name.to_owned())];
        if self.0.below(3) == 0 {
            segments.push(Segment::Index(usize::try_from(self.0.below(3)).expect("small")));
        }
        let path = Path::new(Root::Row, segments);
        let text = path.to_string();
        // A field called `row` is only told from the row itself by the whole path.
        let short = text.strip_prefix("row.").filter(|short| !short.starts_with("row") && self.0.below(2) == 0);
        let text = short.map_or(text.clone(), str::to_owned);
        (path, text)
    }

    fn value(&mut self) -> (Value, Json) {
        let sources = [("now", Source::Now(0)), ("now-90s", Source::Now(-90_000)), ("execution", Source::Execution)];
        match self.0.below(4) {
            0 => {
                let (text, source) = self.0.one(&sources);
                (Value::From(source), json!({"from": text}))
            }
            1 => {
                let (path, _) = self.path();
                (Value::From(Source::Field(path.clone())), json!({"from": path.to_string()}))
            }
            _ => {
                let literal = self.0.scalar();
                (Value::Json(Doc::new(literal.clone())), literal)
            }
        }
    }

    fn filter(&mut self) -> (Filter, Json) {
        let mut any = Vec::new();
        let mut alternatives = Vec::new();
        for _ in 0..self.0.below(3) {
            let mut all = Vec::new();
            let mut comparisons = Vec::new();
            for _ in 0..=self.0.below(2) {
                let ((field, path), (value, written)) = (self.path(), self.value());
                let operator = self.0.one(&[Operator::Eq, Operator::Ne, Operator::Contains]);
                comparisons.push(json!({"field": path, "operator": operator.name(), "value": written}));
                all.push(Comparison { field, operator, value });
            }
            any.push(all);
            alternatives.push(if self.0.below(2) == 0 { json!(comparisons) } else { json!({"all": comparisons}) });
        }
        match (alternatives.pop(), alternatives.is_empty()) {
            (None, _) => (Filter { any }, json!([])),
            (Some(only), true) => (Filter { any }, only),
            (Some(last), false) => {
                alternatives.push(last);
                (Filter { any }, json!({"any": alternatives}))
            }
        }
    }

    fn set(&mut self) -> (Vec<Mutation>, Json) {
        let mut set = Vec::new();
        let mut texts = Vec::new();
        for _ in 0..self.0.below(4) {
            let ((field, path), (value, written)) = (self.path(), self.value());
            let (operation, name) = self.0.one(&[
                (Operation::Set, "set"),
                (Operation::Max, "max"),
                (Operation::Min, "min"),
                (Operation::Append { max: 3 }, "append"),
                (Operation::Remove, "remove"),
            ]);
            let mut text = json!({"field": path, "operation": name});
            let value = if operation == Operation::Remove { Value::Json(Doc::new(Json::Null)) } else { value };
            if operation != Operation::Remove {
                text["value"] = written;
            }
            if name == "append" {
                text["max"] = json!(3);
            }
            texts.push(text);
            set.push(Mutation { field, operation, value });
        }
        (set, json!(texts))
    }

    fn key(&mut self) -> (Value, Json) {
        let key = self.0.one(&[json!("k"), json!(7), json!({"from": "execution"})]);
        let value = if key.is_object() { Value::From(Source::Execution) } else { Value::Json(Doc::new(key.clone())) };
        (value, key)
    }

    fn op(&mut self) -> (RowOp, Json) {
        let ((key, key_text), (filter, where_text)) = (self.key(), self.filter());
        let ((set, set_text), (fill, fill_text)) = (self.set(), self.set());
        let doc = self.0.scalar();
        let value = Doc::new(doc.clone());
        let (what, mut text) = match self.0.below(6) {
            0 => (RowAsk::Get { key }, json!({"get": "t", "key": key_text})),
            1 => (
                RowAsk::Put { key, value, fill, expect: Some(Found::Version(u64::MAX)) },
                json!({"put": "t", "key": key_text, "value": doc, "fill": fill_text, "expect": {"version": u64::MAX}}),
            ),
            2 => (
                RowAsk::Update { key, filter, set },
                json!({"update": "t", "key": key_text, "where": where_text, "set": set_text, "must": true}),
            ),
            3 => (
                RowAsk::Upsert { key, insert: value, fill, set },
                json!({"upsert": "t", "key": key_text, "insert": doc, "fill": fill_text, "set": set_text}),
            ),
            4 => {
                let order = Order { by: OrderBy::Updated, descending: true };
                let what = RowAsk::Claim { filter: Some(filter), set: Some(set), order, limit: 3, delete: false };
                let text = json!({"claim": "t", "where": where_text, "set": set_text, "order": "-updated", "limit": 3, "must": true});
                (what, text)
            }
            _ => (
                RowAsk::Delete { key, filter },
                json!({"delete": "t", "key": key_text, "where": where_text, "must": true}),
            ),
        };
        let fields = match what {
            RowAsk::Delete { .. } => Vec::new(),
            _ => self.0.some(0, 2, |dice| dice.one(&["a", "b"]).to_owned()),
        };
        if !fields.is_empty() {
            text["return"] = json!(fields);
        }
        let must = text.get("must").is_some();
        (RowOp { table: "t".parse().expect("a name"), what, fields, must }, text)
    }

    fn require(&mut self) -> (Require, Json) {
        let ((key, key_text), (filter, where_text)) = (self.key(), self.filter());
        let table = "t".parse().expect("a name");
        match self.0.below(3) {
            0 => {
                let entity = "m/k".parse().expect("an entity");
                let states = vec!["ready".parse().expect("a name")];
                let field = "data.size".parse().expect("a path");
                let one = Comparison { field, operator: Operator::Eq, value: Value::Json(Doc::new(json!(3))) };
                let text = json!({"entity": "m/k", "states": ["ready"], "where": {"data.size": 3}});
                (Require::Entity { entity, states, filter: Filter { any: vec![vec![one]] } }, text)
            }
            1 => (
                Require::Row { table, key, present: false, filter: Filter::default() },
                json!({"absent": "t", "key": key_text}),
            ),
            _ => (
                Require::Row { table, key, present: true, filter },
                json!({"row": "t", "key": key_text, "where": where_text}),
            ),
        }
    }
}

#[test]
fn a_request_is_read_as_it_was_meant() {
    for seed in 0..500 {
        let written = &mut Written(&mut Dice(seed));
        let (ops, op_texts): (Vec<_>, Vec<_>) = (0..3).map(|_| written.op()).unzip();
        let (require, require_texts): (Vec<_>, Vec<_>) = (0..2).map(|_| written.require()).unzip();
        // Through text, as it comes from outside.
        let text = json!({"require": require_texts, "ops": op_texts}).to_string();
        let read = rows::text(&text).and_then(|json| rows::ask(&json, Asks::Step));
        let read = read.unwrap_or_else(|why| panic!("seed {seed}: {why}\n{text}"));
        assert_eq!(read, RowsAsk { require, ops }, "seed {seed}: {text}");
    }
}

/// Puts something else into one place of a request.
fn spoil(json: &mut Json, dice: &mut Dice) {
    if dice.below(4) > 0 {
        let count = json.as_object().map_or(json.as_array().map_or(0, Vec::len), serde_json::Map::len);
        let place = usize::try_from(dice.below(count.max(1) as u64)).expect("small");
        let inner = match json {
            Json::Object(fields) => fields.values_mut().nth(place),
            Json::Array(items) => items.get_mut(place),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
        };
        if let Some(inner) = inner {
            return spoil(inner, dice);
        }
    }
    match (json, dice.below(3)) {
        (Json::Object(fields), 0) => drop(fields.insert("/~".to_owned(), json!({}))),
        (Json::Object(fields), 1) => fields.clear(),
        (Json::Array(items), 0) => items.push(json!([])),
        (other, _) => *other = dice.scalar(),
    }
}

#[test]
fn whatever_is_wrong_with_a_request_has_a_place_in_it() {
    let mut misread = 0;
    for seed in 0..2_000 {
        let dice = &mut Dice(seed);
        let written = &mut Written(dice);
        let mut request = json!({"require": [written.require().1], "ops": [written.op().1, written.op().1]});
        spoil(&mut request, dice);
        let Err(why) = rows::ask(&request, Asks::Client) else { continue };
        misread += 1;
        // What is missing has no place of its own, but what it is missing from has.
        let around = why.at.rsplit_once('/').map_or("", |(around, _)| around);
        assert!(request.pointer(around).is_some(), "seed {seed}: {why}\n{request}");
        assert!(!why.expected.is_empty() && !why.got.is_empty(), "{why:?}");
    }
    assert!(misread > 500, "{misread}");
}
