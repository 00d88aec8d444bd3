//! From the TOML tree to a draft: every value is read where it stands.

use super::{AccessDraft, Changes, ClaimDraft, Draft, IndexDraft, ReaperDraft};
use crate::draft::{ComparisonDraft, GuardDraft, SetDraft};
use crate::keys;
use crate::log::{Log, Span, Spot, excerpt};
use crate::node::{Node, Table, name};
use crate::problem::{Code, Severity};
use crate::read::{Paths, choice, field, owner_text, schema};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{MachineName, Name};
use interlock_kernel::limits::{COMPARISONS_MAX, INDEX_FIELDS_MAX, INDEXES_MAX, ROW_MS_MAX, ROW_MS_MIN};
use interlock_kernel::table::{ClaimSpec, OnEnd, Right, Tie, Ttl};
use interlock_kernel::value::{Comparison, Mutation, Operator, Path};
use std::ops::RangeInclusive;

/// Claims of one row before it is given up: more is a loop nobody watches.
const ATTEMPTS_MAX: u64 = 1_000_000;
/// How long a row or a claim may last.
const ROW_MS: RangeInclusive<u64> = ROW_MS_MIN..=ROW_MS_MAX;
/// Orders that every table has.
const ORDERS: [&str; 2] = ["created", "updated"];

pub(super) fn table<'a>(root: &Table<'a>, log: &mut Log<'_>) -> Draft<'a> {
    let named = root.need("table", "name it: table = \"pending_ops\"", log).and_then(|node| node.name(log));
    let owner = root.need("owner", "say who answers for it: owner = \"team <mail@example.com>\"", log);
    Draft {
        name: named.map(|name| name.value),
        owner: owner.and_then(|node| owner_text(&node, "table", log)),
        schema: schema(root.get("schema"), log),
        indexes: root.get("indexes").map(|node| indexes(&node, log)).unwrap_or_default(),
        claim: claim(root, log),
        ttl: root.get("ttl").and_then(|node| ttl(&node, log)),
        access: root.get("access").map(|node| access(&node, log)).unwrap_or_default(),
    }
}

fn indexes(node: &Node<'_>, log: &mut Log<'_>) -> Vec<IndexDraft> {
    let entries = node.entries(log);
    if entries.len() > INDEXES_MAX {
        let message = format!("`{}` has {} entries", node.path, entries.len());
        log.add(Code::TooLarge, &node.key, message, format!("keep at most {INDEXES_MAX} (indexes_max)"));
    }
    let mut found = Vec::new();
    for (key, node) in entries {
        // Read without a good name too: its other mistakes are reported all the same.
        let index = index(&node, log);
        let Some(name) = name::<Name>(&key, log) else { continue };
        if ORDERS.contains(&name.value.as_str()) {
            let message = format!("every table has the order `{}` already", name.value);
            log.add(Code::ReservedName, &name.at, message, "choose another name");
            continue;
        }
        if let Some((fields, tie)) = index {
            found.push(IndexDraft { name, fields, tie });
        }
    }
    found
}

fn index(node: &Node<'_>, log: &mut Log<'_>) -> Option<(Vec<Spot<Path>>, Tie)> {
    if node.as_items().is_some() {
        return Some((fields(node, log)?, Tie::Created));
    }
    if !node.is_table() {
        node.wrong(
            "an array of fields",
            "write [\"status\", \"priority\"], or { fields = [...], tie = \"updated\" }",
            log,
        );
        return None;
    }
    let table = node.table(&keys::INDEX, log)?;
    let tie = match table.get("tie") {
        None => Some(Tie::Created),
        Some(node) => node.choice(&[("created", Tie::Created), ("updated", Tie::Updated)], log).map(|tie| tie.value),
    };
    let fields = table.need("fields", "name what it orders by: fields = [\"status\"]", log);
    Some((fields.and_then(|node| self::fields(&node, log))?, tie?))
}

fn fields(node: &Node<'_>, log: &mut Log<'_>) -> Option<Vec<Spot<Path>>> {
    let Some(items) = node.as_items() else {
        node.wrong("an array", "write [\"status\", \"priority\"]", log);
        return None;
    };
    if items.is_empty() || items.len() > INDEX_FIELDS_MAX {
        let code = if items.is_empty() { Code::BadValue } else { Code::TooLarge };
        let message = format!("`{}` has {} fields", node.path, items.len());
        log.add(code, &node.at(), message, format!("name 1 to {INDEX_FIELDS_MAX} (index_fields_max)"));
    }
    let mut found: Vec<Spot<Path>> = Vec::new();
    for item in &items {
        let Some(path) = item.text(log).and_then(|text| Paths::Row.field(&text, log)) else { continue };
        if path.value.segments.is_empty() {
            log.add(Code::BadPath, &path.at, "an index orders by fields, not by the whole row", "name a field of it");
        } else if found.iter().any(|other| other.value == path.value) {
            let message = format!("`{}` names `{}` twice", node.path, path.value);
            log.add(Code::BadValue, &path.at, message, "name it once");
        } else {
            found.push(path);
        }
    }
    Some(found)
}

/// `[claim]`, and the standard for what it leaves out, with its own field and value.
fn claim(root: &Table<'_>, log: &mut Log<'_>) -> ClaimDraft {
    let errors = |log: &Log<'_>| log.problems().iter().filter(|one| one.severity == Severity::Error).count();
    let before = errors(log);
    let node = root.get("claim");
    let table = node.as_ref().and_then(|node| node.table(&keys::CLAIM, log));
    let get = |key: &str| table.as_ref().and_then(|table| table.get(key));
    let at = node.as_ref().or(root.get("access").as_ref()).map_or(0..0, |node| node.key.clone());
    let standard = ClaimSpec::standard();
    let status = get("status").and_then(|node| status(&node, log));
    let held = get("held").and_then(|node| held(&node, log));
    let (status, held) = (
        status.unwrap_or_else(|| Spot { value: standard.status.clone(), at: at.clone() }),
        held.unwrap_or_else(|| Spot { value: standard.held.clone(), at: at.clone() }),
    );
    let usual = Usual { status: &status.value, held: &held.value, at: &at };
    let filter = get("where").map(|node| Spot { at: node.key.clone(), value: filter(&node, log) });
    let filter = filter.unwrap_or_else(|| Spot { at: at.clone(), value: usual.filter(standard.filter.any) });
    let set = changes(get("set"), &at, usual.set(standard.set), log);
    let release = changes(get("release"), &at, usual.set(standard.release), log);
    let on_end = get("on_end").and_then(|node| node.choice(&[("keep", OnEnd::Keep), ("release", OnEnd::Release)], log));
    let reaper = get("reaper").and_then(|node| reaper(&node, log));
    let half_read = errors(log) > before;
    ClaimDraft { written: node.is_some(), half_read, filter, set, release, on_end, reaper, status, held }
}

/// The standard of claims, in a table with a field and a value of its own.
struct Usual<'c> {
    status: &'c Path,
    held: &'c Doc,
    at: &'c Span,
}

impl Usual<'_> {
    fn is_status(&self, field: &Path) -> bool {
        *field == ClaimSpec::standard().status
    }

    fn filter(&self, any: Vec<Vec<Comparison>>) -> Vec<Vec<ComparisonDraft>> {
        let own = |one: Comparison| {
            let field = if self.is_status(&one.field) { self.status.clone() } else { one.field };
            let comparison = Comparison { field, ..one };
            ComparisonDraft { comparison, field_at: self.at.clone(), value_at: self.at.clone() }
        };
        any.into_iter().map(|all| all.into_iter().map(own).collect()).collect()
    }

    fn set(&self, set: Vec<Mutation>) -> Vec<SetDraft> {
        use interlock_kernel::value::Value;
        let standard = Value::Json(ClaimSpec::standard().held);
        let own = |one: Mutation| {
            let field = if self.is_status(&one.field) { self.status.clone() } else { one.field };
            let value = if one.value == standard { Value::Json(self.held.clone()) } else { one.value };
            let mutation = Mutation { field, value, ..one };
            SetDraft { mutation, field_at: self.at.clone(), value_at: self.at.clone() }
        };
        set.into_iter().map(own).collect()
    }
}

fn status(node: &Node<'_>, log: &mut Log<'_>) -> Option<Spot<Path>> {
    let path = Paths::Row.field(&node.text(log)?, log)?;
    if path.value.segments.is_empty() {
        log.add(
            Code::BadPath,
            &path.at,
            "the whole row does not say how it stands",
            "name a field: status = \"status\"",
        );
        return None;
    }
    Some(path)
}

fn held(node: &Node<'_>, log: &mut Log<'_>) -> Option<Spot<Doc>> {
    if node.is_table() || node.as_items().is_some() {
        node.wrong("text, a number or a boolean", "write what stands there: held = \"in_flight\"", log);
        return None;
    }
    Some(node.spot(Doc::new(node.json(log)?)))
}

/// `{ status = "pending" }`, a list of comparisons that must all hold, or a guard as in a machine's manifest.
fn filter(node: &Node<'_>, log: &mut Log<'_>) -> Vec<Vec<ComparisonDraft>> {
    if node.as_items().is_none() && !node.is_table() {
        node.wrong("a table or an array", Paths::Row.guard_remedy(), log);
        return Vec::new();
    }
    let any = if let Some(items) = node.as_items() {
        vec![items.iter().filter_map(|item| field::comparison(Paths::Row, item, log)).collect()]
    } else if ["any", "all", "field", "op"].iter().any(|key| node.part(key).is_some()) {
        match field::guard(Paths::Row, node, log) {
            GuardDraft::None => Vec::new(),
            GuardDraft::Some(any) => any,
        }
    } else {
        vec![node.entries(log).iter().filter_map(|(key, node)| equals(key, node, log)).collect()]
    };
    let count = any.iter().map(Vec::len).sum::<usize>();
    if count > COMPARISONS_MAX {
        let message = format!("`{}` has {count} comparisons", node.path);
        log.add(Code::TooLarge, &node.key, message, format!("keep at most {COMPARISONS_MAX} (comparisons_max)"));
    }
    if node.keys().is_empty() && node.as_items().is_none_or(|items| items.is_empty()) {
        let message = format!("`{}` is empty: a claim would take every row, those that are taken too", node.path);
        log.add(Code::BadValue, &node.at(), message, "say which rows: where = { status = \"pending\" }");
    }
    any
}

fn equals(key: &Spot<&str>, node: &Node<'_>, log: &mut Log<'_>) -> Option<ComparisonDraft> {
    if Paths::Row.unquoted(key, node, log) {
        return None;
    }
    if node.as_items().is_some_and(|items| items.iter().any(Node::is_table)) {
        let remedy = "write { all = [...] } or { any = [...] }, or a literal as { value = [...] }";
        let message = format!("`{}` is a list of tables, which no field is compared with so", node.path);
        log.add(Code::BadValue, &node.at(), message, remedy).got(excerpt(key.value));
        return None;
    }
    let (field, value) = (Paths::Row.field(key, log), field::value(Paths::Row, node, log));
    let (field, value) = (field?, value?);
    Some(ComparisonDraft {
        comparison: Comparison { field: field.value, operator: Operator::Eq, value: value.value },
        field_at: field.at,
        value_at: value.at,
    })
}

fn changes(node: Option<Node<'_>>, at: &Span, otherwise: Vec<SetDraft>, log: &mut Log<'_>) -> Changes {
    let Some(node) = node else { return Changes { at: at.clone(), written: false, set: otherwise } };
    let set = field::set(Paths::Row, &node, log);
    if node.is_table() && node.keys().is_empty() {
        let message = format!("`{}` is empty", node.path);
        log.add(Code::BadValue, &node.at(), message, "say what changes: { status = \"pending\" }, or leave it out");
    }
    Changes { at: node.key, written: true, set }
}

fn reaper(node: &Node<'_>, log: &mut Log<'_>) -> Option<ReaperDraft> {
    let table = node.table(&keys::REAPER, log)?;
    let after = table.need("after", "say how old a claim may get: after = \"5m\"", log);
    let after = after.and_then(|node| node.duration(ROW_MS, log));
    let attempts = table.get("attempts").and_then(|node| node.integer(1..=ATTEMPTS_MAX, log));
    let dead = changes(table.get("dead"), &node.key, Vec::new(), log);
    Some(ReaperDraft {
        at: node.key.clone(),
        after_ms: after?.value,
        attempts: attempts.and_then(|count| u32::try_from(count.value).ok()),
        dead,
    })
}

fn ttl(node: &Node<'_>, log: &mut Log<'_>) -> Option<Ttl> {
    let table = node.table(&keys::TTL, log)?;
    let after = table.need("after", "say how long a row lives: after = \"1d\"", log);
    let from = choice(&table, "from", &[("insert", false), ("change", true)], log);
    Some(Ttl { ms: after?.duration(ROW_MS, log)?.value, from_change: from.unwrap_or(false) })
}

fn access(node: &Node<'_>, log: &mut Log<'_>) -> AccessDraft {
    let before = log.problems().len();
    let mut found = AccessDraft { at: node.key.clone(), ..AccessDraft::default() };
    if let Some(table) = node.table(&keys::ACCESS, log) {
        found.clients = table.get("clients").map(|node| rights(&node, log)).unwrap_or_default();
        for (key, node) in table.get("machines").map(|node| node.entries(log)).into_iter().flatten() {
            let rights = rights(&node, log);
            if let Some(machine) = name::<MachineName>(&key, log) {
                found.machines.push((machine.value, rights));
            }
        }
    }
    found.half_read = log.problems().len() > before;
    found
}

fn rights(node: &Node<'_>, log: &mut Log<'_>) -> Vec<Spot<Right>> {
    let Some(items) = node.as_items() else {
        node.wrong("an array", "write what they may do: [\"get\", \"claim\"]", log);
        return Vec::new();
    };
    let mut found: Vec<Spot<Right>> = Vec::new();
    for item in &items {
        let Some(right) = item.choice(&Right::ALL, log) else { continue };
        if found.iter().any(|other| other.value == right.value) {
            let message = format!("`{}` names `{}` twice", node.path, right.value);
            log.add(Code::BadValue, &right.at, message, "name it once");
            continue;
        }
        found.push(right);
    }
    found
}
