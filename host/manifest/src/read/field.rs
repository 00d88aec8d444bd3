//! Guards, values and `set`.
//!
//! A value is a literal (text, number, boolean, array), `{ from = "event.size" }`, `{ value = ... }` for
//! a literal table, or `{ json = "..." }` for JSON text, which is how null is written. A bare table is
//! never a literal, so a misspelt key is a mistake and not a document.

use super::path::Paths;
use crate::draft::{ComparisonDraft, GuardDraft, SetDraft};
use crate::keys;
use crate::log::{Log, Spot, excerpt, list, suggest};
use crate::node::{Node, Table};
use crate::problem::Code;
use interlock_kernel::doc::Doc;
use interlock_kernel::limits::{APPEND_MAX, MUTATIONS_MAX};
use interlock_kernel::value::{Comparison, Mutation, Operation, Operator, Value};

/// A single comparison, `{ all = [...] }`, or `{ any = [...] }` of comparisons and `{ all = [...] }`.
pub(crate) fn guard(paths: Paths, node: &Node<'_>, log: &mut Log<'_>) -> GuardDraft {
    let Some(entries) = node.as_table() else {
        node.wrong("a guard", paths.guard_remedy(), log);
        return GuardDraft::Some(Vec::new());
    };
    GuardDraft::Some(match (entries.contains_key("any"), entries.contains_key("all")) {
        (true, _) => {
            let Some(any) = node.table(&keys::GUARD_ANY, log).and_then(|table| table.get("any")) else {
                return GuardDraft::Some(Vec::new());
            };
            some_items(&any, log).iter().map(|item| all_or_one(paths, item, log)).collect()
        }
        _ => vec![all_or_one(paths, node, log)],
    })
}

/// `any`, `all`, or one comparison written into the table itself; none if there is none of it.
pub(crate) fn any_of(paths: Paths, table: &Table<'_>, log: &mut Log<'_>) -> Option<Vec<Vec<ComparisonDraft>>> {
    let keys = ["any", "all", "field", "op", "value"];
    let mut there = keys.into_iter().filter_map(|key| Some((key, table.get(key)?)));
    let (first, node) = there.next()?;
    let alone = matches!(first, "field" | "op" | "value");
    if let Some((second, other)) = there.next().filter(|_| !alone) {
        let message = format!("`{first}` and `{second}` say what must hold twice");
        log.add(Code::BadValue, &other.key, message, "put everything into `all`, or alternatives into `any`");
        return None;
    }
    Some(match first {
        "any" => some_items(&node, log).iter().map(|item| all_or_one(paths, item, log)).collect(),
        "all" => vec![some_items(&node, log).iter().filter_map(|item| comparison(paths, item, log)).collect()],
        _ => vec![comparison_in(paths, table, log).into_iter().collect()],
    })
}

fn all_or_one(paths: Paths, node: &Node<'_>, log: &mut Log<'_>) -> Vec<ComparisonDraft> {
    let Some(entries) = node.as_table() else {
        node.wrong("a comparison", paths.guard_remedy(), log);
        return Vec::new();
    };
    if !entries.contains_key("all") {
        return comparison(paths, node, log).into_iter().collect();
    }
    let Some(all) = node.table(&keys::GUARD_ALL, log).and_then(|table| table.get("all")) else { return Vec::new() };
    some_items(&all, log).iter().filter_map(|item| comparison(paths, item, log)).collect()
}

fn some_items<'a>(node: &Node<'a>, log: &mut Log<'_>) -> Vec<Node<'a>> {
    let Some(items) = node.as_items() else {
        node.wrong("an array", "write the comparisons in square brackets", log);
        return Vec::new();
    };
    if items.is_empty() {
        let message = format!("`{}` is empty: it would always hold", node.path);
        log.add(Code::BadValue, &node.at(), message, "add a comparison, or leave the guard out");
    }
    items
}

pub(crate) fn comparison(paths: Paths, node: &Node<'_>, log: &mut Log<'_>) -> Option<ComparisonDraft> {
    comparison_in(paths, &node.table(&keys::COMPARISON, log)?, log)
}

fn comparison_in(paths: Paths, table: &Table<'_>, log: &mut Log<'_>) -> Option<ComparisonDraft> {
    let field = table.need("field", paths.field_remedy(), log);
    let operator = table.need("op", "say how it is compared: op = \"eq\"", log);
    let operators = Operator::ALL;
    let operator = operator.and_then(|node| node.choice(&operators, log));
    let exists = operator.as_ref().is_some_and(|operator| operator.value == Operator::Exists);
    let value = match table.get("value") {
        None if exists => Some(Spot { value: Value::Json(Doc::new(true.into())), at: table.at.clone() }),
        None => {
            table.need("value", paths.value_remedy(), log);
            None
        }
        Some(node) => value(paths, &node, log),
    };
    let field = field.and_then(|node| paths.field(&node.text(log)?, log));
    let (field, operator, value) = (field?, operator?, value?);
    Some(ComparisonDraft {
        comparison: Comparison { field: field.value, operator: operator.value, value: value.value },
        field_at: field.at,
        value_at: value.at,
    })
}

pub(crate) fn value(paths: Paths, node: &Node<'_>, log: &mut Log<'_>) -> Option<Spot<Value>> {
    if node.as_table().is_none() {
        return Some(node.spot(Value::Json(Doc::new(node.json(log)?))));
    }
    let known = known_alone(node, &keys::VALUE, "a value", log)?;
    let table = node.table(&keys::VALUE, log)?;
    let [one] = known.as_slice() else {
        not_one(node, "a value", &keys::VALUE, "a literal table is written { value = { ... } }", log);
        return None;
    };
    computed(paths, &table.get(one)?, log)
}

/// The keys of a table that says how to come to a value, if it has no others. A table of none of them
/// is a literal somebody did not mark as one; another key beside them is a slip of the pen.
fn known_alone<'a>(node: &Node<'a>, keys: &keys::Keys, what: &str, log: &mut Log<'_>) -> Option<Vec<&'a str>> {
    let names = || node.as_table().into_iter().flat_map(|entries| entries.keys()).map(|key| key.get_ref().as_ref());
    let mut known: Vec<&str> = names().filter(|name| keys.names.contains(name)).collect();
    known.sort_unstable();
    if names().count() == known.len() {
        return Some(known);
    }
    let slip = |name: &str| suggest(name, keys.names.iter().copied(), "").starts_with("did you mean");
    if known.is_empty() && !names().any(slip) {
        let message = format!("`{}` is a bare table, not {what}", node.path);
        log.add(Code::BadValue, &node.at(), message, "write a literal table as { value = { ... } }")
            .expected(format!("a literal, or one of {}", list(keys.names)));
    } else {
        node.table(keys, log); // reports the others
    }
    None
}

/// What `from`, `value` or `json` says.
fn computed(paths: Paths, node: &Node<'_>, log: &mut Log<'_>) -> Option<Spot<Value>> {
    let value = match last(&node.path) {
        "from" => Value::From(paths.source(node, log)?),
        "json" => Value::Json(json_text(node, log)?),
        _ => Value::Json(Doc::new(node.json(log)?)),
    };
    Some(node.spot(value))
}

fn json_text(node: &Node<'_>, log: &mut Log<'_>) -> Option<Doc> {
    let text = node.text(log)?;
    Doc::parse(text.value)
        .map_err(|why| {
            let message = format!("`{}` is not JSON: {}", node.path, excerpt(&why.to_string()));
            log.add(Code::BadValue, &text.at, message, "write JSON in single quotes: { json = 'null' }")
                .got(excerpt(text.value));
        })
        .ok()
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn not_one(node: &Node<'_>, what: &str, keys: &keys::Keys, hint: &str, log: &mut Log<'_>) {
    let message = format!("`{}` is not {what}", node.path);
    log.add(Code::BadValue, &node.at(), message, format!("use one of {}; {hint}", list(keys.names)))
        .expected(format!("exactly one of {}", list(keys.names)));
}

/// `{ "data.size" = { from = "event.size" }, "data.tries" = { increment = 1 } }`, in file order.
pub(crate) fn set(paths: Paths, node: &Node<'_>, log: &mut Log<'_>) -> Vec<SetDraft> {
    let entries = node.entries(log);
    if entries.len() > MUTATIONS_MAX {
        let message = format!("`{}` has {} entries", node.path, entries.len());
        log.add(Code::TooLarge, &node.key, message, format!("keep at most {MUTATIONS_MAX}"));
    }
    entries.into_iter().filter_map(|(key, node)| mutation(paths, &key, &node, log)).collect()
}

fn mutation(paths: Paths, key: &Spot<&str>, node: &Node<'_>, log: &mut Log<'_>) -> Option<SetDraft> {
    if paths.unquoted(key, node, log) {
        return None;
    }
    let field = paths.settable(key, log);
    let change = change(paths, node, log);
    let (field, (operation, value)) = (field?, change?);
    if operation == Operation::Remove && field.value.segments.is_empty() {
        let message = format!("`{}` cannot be removed whole", field.value);
        let remedy = format!("name a field: \"{}.x\" = {{ remove = true }}", field.value);
        log.add(Code::BadPath, &field.at, message, remedy);
        return None;
    }
    Some(SetDraft {
        mutation: Mutation { field: field.value, operation, value: value.value },
        field_at: field.at,
        value_at: value.at,
    })
}

fn change(paths: Paths, node: &Node<'_>, log: &mut Log<'_>) -> Option<(Operation, Spot<Value>)> {
    if node.as_table().is_none() {
        return Some((Operation::Set, value(paths, node, log)?));
    }
    let known = known_alone(node, &keys::CHANGE, "a change", log)?;
    let table = node.table(&keys::CHANGE, log)?;
    match known.as_slice() {
        ["append", "max"] => {
            let max = table.get("max").and_then(|node| node.integer(1..=APPEND_MAX as u64, log));
            let value = value(paths, &table.get("append")?, log);
            Some((Operation::Append { max: usize::try_from(max?.value).ok()? }, value?))
        }
        ["append"] => Some((Operation::Append { max: APPEND_MAX }, value(paths, &table.get("append")?, log)?)),
        ["increment"] => Some((Operation::Increment, value(paths, &table.get("increment")?, log)?)),
        ["max"] => Some((Operation::Max, value(paths, &table.get("max")?, log)?)),
        ["min"] => Some((Operation::Min, value(paths, &table.get("min")?, log)?)),
        ["remove"] => remove(&table.get("remove")?, log),
        [one @ ("from" | "value" | "json")] => Some((Operation::Set, computed(paths, &table.get(one)?, log)?)),
        _ => {
            not_one(node, "a change", &keys::CHANGE, "`append` may have `max` beside it", log);
            None
        }
    }
}

fn remove(node: &Node<'_>, log: &mut Log<'_>) -> Option<(Operation, Spot<Value>)> {
    match node.value.get_ref() {
        toml::de::DeValue::Boolean(true) => {
            Some((Operation::Remove, node.spot(Value::Json(Doc::new(serde_json::Value::Null)))))
        }
        _ => {
            node.wrong("`true`", "write { remove = true }, or leave the entry out", log);
            None
        }
    }
}
