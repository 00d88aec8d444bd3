//! Rows: what is there before anything happens, what clients ask of them, what must stand in them.

use super::act::{answer, event_id};
use super::{NOTHING, Reader};
use crate::scenario::{Asking, Counted, Filled, Promise, Stands, Test, keys};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{RowKey, TableName};
use interlock_kernel::rows::{ClientRows, RowsAsk};
use interlock_kernel::value::Filter;
use interlock_manifest::Severity;
use interlock_manifest::reading::{Code, Kind, Log, Node, Span, Table, excerpt, list, suggest};
use interlock_manifest::rows::{self, Asks};

/// The client that nobody named.
const CLIENT: &str = "client";

/// Rows that a story counts: more than any has.
const COUNT_MAX: u64 = 100_000;

/// The longest name of a client.
const LABEL_BYTES_MAX: usize = 256;

const UNKNOWN_TABLE: Kind = Kind { code: "unknown-table", severity: Severity::Error };

/// Whether a given thing is rows.
pub(super) fn is_filled(item: &Node<'_>) -> bool {
    item.part("rows").is_some()
}

impl Reader<'_> {
    /// Rows that are there before anything happens.
    pub(super) fn filled(&self, table: &Table<'_>, log: &mut Log<'_>) -> Vec<Filled> {
        let items = table.get("given").map(|node| node.one_or_more()).unwrap_or_default();
        let mut found = Vec::new();
        for item in items.iter().filter(|item| is_filled(item)) {
            let Some(given) = item.table(&keys::FILLED, log).and_then(|table| table.get("rows")) else { continue };
            for (name, rows) in given.entries(log) {
                let table = self.table(name.value, &name.at, log);
                let line = log.line(name.at.start);
                let mut filled = Vec::new();
                for (key, value) in rows.entries(log) {
                    let key = row_key(key.value, &key.at, log);
                    filled.extend(key.zip(value.json(log).map(Doc::new)));
                }
                found.extend(table.map(|table| Filled { table, rows: filled, line }));
            }
        }
        found
    }

    /// What a client asks of rows: one operation, several, or several with conditions.
    pub(super) fn asking(&self, node: &Node<'_>, table: &Table<'_>, log: &mut Log<'_>) -> Option<Asking> {
        let ask = rows::in_toml(node, log, |json| {
            if json.get("ops").is_some() || json.get("require").is_some() {
                return rows::ask(json, Asks::Client);
            }
            match json {
                serde_json::Value::Array(_) => rows::ask(&serde_json::json!({ "ops": json }), Asks::Client),
                one => rows::op(one, Asks::Client).map(|op| RowsAsk { require: Vec::new(), ops: vec![op] }),
            }
        });
        let by = match table.get("by") {
            Some(node) => label(&node, log),
            None => Some(CLIENT.to_owned()),
        };
        let id = match table.get("id") {
            Some(node) => Some(event_id(&node, log)?),
            None => None,
        };
        let answer = match table.get("answer") {
            Some(node) => Some(answer(&node, log)?),
            None => None,
        };
        Some(Asking { ask: ClientRows { ask: ask?, label: by?, id }, answer })
    }

    /// Rows as they must be: some of the fields of each, or `false` for one that is not to be there.
    pub(super) fn stands(&self, table: &Table<'_>, log: &mut Log<'_>) -> Vec<Stands> {
        let Some(node) = table.get("rows") else { return Vec::new() };
        let mut found = Vec::new();
        for (name, rows) in node.entries(log) {
            let table = self.table(name.value, &name.at, log);
            for (key, node) in rows.entries(log) {
                let fields = stands(&node, log);
                let key = row_key(key.value, &key.at, log);
                let all = table.clone().zip(key).zip(fields);
                found.extend(all.map(|((table, key), fields)| Stands { table, key, fields }));
            }
        }
        found
    }

    /// How many rows there must be.
    pub(super) fn counts(&self, node: &Node<'_>, log: &mut Log<'_>) -> Vec<Counted> {
        node.one_or_more().iter().filter_map(|item| self.counted(item, log)).collect()
    }

    fn counted(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Counted> {
        let table = node.table(&keys::COUNTED, log)?;
        let known = self.machine.tables.iter().next().map_or("jobs", |name| name.as_str());
        let name = table.need("table", &format!("name it: table = \"{known}\""), log);
        let name = name.and_then(|node| node.text(log)).and_then(|text| self.table(text.value, &text.at, log));
        let filter = match table.get("where") {
            Some(node) => rows::in_toml(&node, log, |json| rows::filter(json, Asks::Client))?,
            None => Filter::default(),
        };
        let mut number = |key: &str| table.get(key).and_then(|node| node.integer(0..=COUNT_MAX, log));
        let [is, least, most] = ["is", "at_least", "at_most"].map(|key| number(key).map(|found| found.value));
        let rows = match (is, least, most) {
            (Some(is), None, None) => is..=is,
            (None, Some(least), Some(most)) if least > most => {
                let message = format!("`{}`: at least {least} and at most {most} is never so", table.path);
                log.add(Code::BadValue, &table.at, message, "write the smaller number into at_least");
                return None;
            }
            (None, Some(_), _) | (None, None, Some(_)) => least.unwrap_or(0)..=most.unwrap_or(u64::MAX),
            (Some(_), ..) => {
                let message = format!("`{}` says it twice", table.path);
                log.add(Code::BadValue, &table.at, message, "take `is` out, or the bounds");
                return None;
            }
            (None, None, None) => {
                let message = format!("`{}` says no number", table.path);
                log.add(NOTHING, &table.at, message, "say how many: is = 1, or at_most = 1")
                    .expected(list(&["is", "at_least", "at_most"]));
                return None;
            }
        };
        Some(Counted { table: name?, filter, rows })
    }

    /// A promise of rows, which says nothing of entities.
    pub(super) fn promise_of_rows(
        &self,
        name: String,
        line: usize,
        node: &Node<'_>,
        table: &Table<'_>,
        log: &mut Log<'_>,
    ) -> Option<Promise> {
        let counts = self.counts(node, log);
        if let Some(other) = table.written().into_iter().find(|key| !matches!(key.value, "name" | "counts")) {
            let message = format!("`{}` promises something of rows and of entities", table.path);
            log.add(Code::BadValue, &other.at, message, "write two promises");
            return None;
        }
        Some(Promise { name, line, entity: None, when: None, hold: Test::default(), made: None, counts })
    }

    /// A table that the machine names.
    fn table(&self, text: &str, at: &Span, log: &mut Log<'_>) -> Option<TableName> {
        let found = self.machine.tables.iter().find(|name| name.as_str() == text);
        if found.is_none() {
            let known = self.machine.tables.iter().map(|name| name.as_str());
            let message = format!("the machine uses no table `{}`", excerpt(text));
            log.add(UNKNOWN_TABLE, at, message, suggest(text, known, "name it in the manifest: tables = [\"jobs\"]"));
        }
        found.cloned()
    }
}

fn row_key(text: &str, at: &Span, log: &mut Log<'_>) -> Option<RowKey> {
    let key = text.parse::<RowKey>();
    key.map_err(|why| {
        let message = format!("{:?} is no key of a row", excerpt(text));
        log.add(Code::BadName, at, message, "use short printable text").expected(why.expected);
    })
    .ok()
}

/// Some of the fields of a row; none, if it is not to be there. The outer is nothing that can be read.
#[allow(clippy::option_option, reason = "the outer says whether it was read, as everywhere in this folder")]
fn stands(node: &Node<'_>, log: &mut Log<'_>) -> Option<Option<Doc>> {
    match node.json(log)? {
        serde_json::Value::Bool(false) => Some(None),
        fields @ serde_json::Value::Object(_) => Some(Some(Doc::new(fields))),
        _ => {
            node.wrong("a table, or false", "write the fields that are looked at: { status = \"done\" }", log);
            None
        }
    }
}

fn label(node: &Node<'_>, log: &mut Log<'_>) -> Option<String> {
    let text = node.text(log)?;
    if text.value.is_empty() || text.value.len() > LABEL_BYTES_MAX {
        let message = format!("{:?} is no name of a client", excerpt(text.value));
        log.add(Code::BadName, &text.at, message, "use short printable text");
        return None;
    }
    Some(text.value.to_owned())
}
