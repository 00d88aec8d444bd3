//! What must be so.

use super::act::{answer, literal};
use super::{NOTHING, Reader, texts, unknown_id};
use crate::scenario::keys;
use crate::scenario::{Answer, Ending, Parked, Then};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, EventId};
use interlock_kernel::value::Root;
use interlock_manifest::reading::{Code, Log, Node, Table, excerpt, fields, list, suggest};
use std::collections::BTreeMap;

/// Why an entity may be parked.
const PARKED: [&str; 10] = [
    "exhausted",
    "permanent",
    "deadline",
    "crash-loop",
    "runaway",
    "execution-limit",
    "failure-path",
    "stranded",
    "needs",
    "inconsistent",
];

impl Reader<'_> {
    pub(super) fn then(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Then> {
        let table = node.table(&keys::THEN, log)?;
        if table.written().iter().all(|key| key.value == "entity") {
            let message = format!("`{}` says nothing of the entity", table.path);
            log.add(NOTHING, &table.at, message, "say what must be so: state = \"ready\"")
                .expected(list(&keys::THEN.names[1..]));
            return None;
        }
        let mut number = |key: &str| table.get(key).and_then(|node| node.integer(0..=u64::from(u32::MAX), log));
        let small = |found: Option<u64>| found.and_then(|number| u32::try_from(number).ok());
        let [version, generation, observed, attempts, inbox] =
            ["version", "generation", "observed", "attempts", "inbox"].map(|key| number(key).map(|found| found.value));
        let then = Then {
            line: log.line(node.key.start),
            exists: table.get("exists").and_then(|node| node.boolean(log)).map(|truth| truth.value),
            state: table.get("state").map(|node| self.states(&node, log)).unwrap_or_default(),
            version,
            generation,
            observed,
            desired: self.some_of(&table, "desired", Root::Desired, log),
            data: self.some_of(&table, "data", Root::Data, log),
            outputs: self.some_of(&table, "outputs", Root::Outputs, log),
            parked: table.get("parked").and_then(|node| parked(&node, log)),
            locked: table.get("locked").and_then(|node| node.boolean(log)).map(|truth| truth.value),
            attempts: small(attempts),
            inbox: small(inbox),
            outcome: table.get("outcome").and_then(|node| outcome(&node, log)),
            conditions: table.get("conditions").map(|node| texts(&node, log)).unwrap_or_default(),
            answers: self.answers(&table, log),
            leases: self.leases(&table, log),
            rows: self.stands(&table, log),
            counts: table.get("counts").map(|node| self.counts(&node, log)).unwrap_or_default(),
            history: table.get("history").map(|node| lines(&node, log)).unwrap_or_default(),
            made: table.get("made").map(|node| self.made(&node, log)),
            // Last, so that nothing else goes unread without it.
            entity: self.about(&table, log)?,
        };
        if then.exists == Some(false)
            && let Some(other) = table
                .written()
                .into_iter()
                .find(|key| !matches!(key.value, "entity" | "exists" | "answers" | "leases" | "rows" | "counts"))
        {
            let message = format!("an entity that is not there has no `{}`", other.value);
            log.add(Code::BadValue, &other.at, message, "take one of the two out");
        }
        Some(then)
    }

    /// The entity that it speaks of; whichever, if it speaks of rows alone.
    fn about(&self, table: &Table<'_>, log: &mut Log<'_>) -> Option<EntityId> {
        let aside = table.written().iter().all(|key| matches!(key.value, "rows" | "counts"));
        match self.entities.first().filter(|_| aside) {
            Some(first) => Some(first.clone()),
            None => self.entity(table, log),
        }
    }

    /// Fields of a document, which its schema must know.
    fn some_of(&self, table: &Table<'_>, key: &str, root: Root, log: &mut Log<'_>) -> Option<Doc> {
        let node = table.get(key)?;
        let doc = literal(&node, log);
        fields(&node, root, &self.schemas, log);
        doc
    }

    fn answers(&self, table: &Table<'_>, log: &mut Log<'_>) -> BTreeMap<EventId, Answer> {
        let Some(node) = table.get("answers") else { return BTreeMap::new() };
        let mut found = BTreeMap::new();
        for (name, node) in node.entries(log) {
            let answer = answer(&node, log);
            if !self.ids.contains(name.value) {
                unknown_id(&self.ids, name.value, &name.at, log);
                continue;
            }
            if let (Ok(id), Some(answer)) = (name.value.parse(), answer) {
                found.insert(id, answer);
            }
        }
        found
    }
}

/// `true`, `false`, or why.
pub(super) fn parked(node: &Node<'_>, log: &mut Log<'_>) -> Option<Parked> {
    let Some(code) = node.as_text() else {
        let truth = node.boolean(log)?;
        return Some(if truth.value { Parked::Yes } else { Parked::No });
    };
    if !PARKED.contains(&code) {
        let message = format!("nothing is ever parked as {:?}", excerpt(code));
        log.add(Code::BadChoice, &node.at(), message, suggest(code, PARKED, "")).expected(list(&PARKED));
        return None;
    }
    Some(Parked::Because(code.to_owned()))
}

pub(super) fn outcome(node: &Node<'_>, log: &mut Log<'_>) -> Option<Ending> {
    let choices = [("succeeded", Ending::Succeeded), ("failed", Ending::Failed)];
    node.choice(&choices, log).map(|ending| ending.value)
}

pub(super) fn lines(node: &Node<'_>, log: &mut Log<'_>) -> Vec<String> {
    node.one_or_more().iter().filter_map(|item| Some(item.text(log)?.value.to_owned())).collect()
}
