//! Leases: who has them before anything happens, what clients do with them, who must have them.

use super::act::answer;
use super::{NOTHING, Reader, UNKNOWN_ENTITY};
use crate::scenario::{Deed, Does, Holding, Whose, keys};
use interlock_kernel::ids::{GrantId, LeaseName};
use interlock_kernel::limits::{
    LEASE_DELAY_MS_MAX, LEASE_HOLD_MS_DEFAULT, LEASE_HOLD_MS_MAX, LEASE_TTL_MS_DEFAULT, LEASE_TTL_MS_MAX,
    LEASE_TTL_MS_MIN, LEASE_WAIT_MS_MAX,
};
use interlock_kernel::record::Terms;
use interlock_manifest::Severity;
use interlock_manifest::reading::{Code, Kind, Log, Node, Table, excerpt, list, suggest};
use std::collections::BTreeMap;

/// The client that nobody named.
const CLIENT: &str = "client";
/// Stands for nobody where a holder is named.
const NOBODY: &str = "nobody";

const UNKNOWN_LEASE: Kind = Kind { code: "unknown-lease", severity: Severity::Error };

/// The client of a table that says or leaves out who it is.
pub(super) fn named(item: &Node<'_>) -> Option<GrantId> {
    item.part("by").and_then(|node| node.as_text()).unwrap_or(CLIENT).parse().ok()
}

impl Reader<'_> {
    /// A lease that a client has before anything happens.
    pub(super) fn held(&mut self, node: &Node<'_>, log: &mut Log<'_>) -> Option<(usize, Deed)> {
        let table = node.table(&keys::HELD, log)?;
        let lease = self.lease(&table.get("lease")?, log);
        let by = by(&table, log);
        self.clients.extend(by.clone());
        let does = Does::Acquire { terms: terms(&table, log), wait_ms: None };
        Some((log.line(node.key.start), Deed { lease: lease?, by: by?, does, answer: None }))
    }

    /// What a client does with a lease.
    pub(super) fn deed(&self, verb: &str, node: &Node<'_>, table: &Table<'_>, log: &mut Log<'_>) -> Option<Deed> {
        let (lease, by) = (self.lease(node, log), by(table, log));
        let does = match verb {
            "acquire" => {
                let wait = table.get("wait").and_then(|node| node.duration(1..=LEASE_WAIT_MS_MAX, log));
                Does::Acquire { terms: terms(table, log), wait_ms: wait.map(|wait| wait.value) }
            }
            "extend" => Does::Extend(ttl(table, log)),
            _ => Does::Release,
        };
        let answer = match table.get("answer") {
            Some(node) => Some(answer(&node, log)?),
            None => None,
        };
        Some(Deed { lease: lease?, by: by?, does, answer })
    }

    /// A lease that the machine can have.
    pub(super) fn lease(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<LeaseName> {
        let text = node.text(log)?;
        self.lease_named(text.value, &text.at, log)
    }

    fn lease_named(&self, text: &str, at: &interlock_manifest::reading::Span, log: &mut Log<'_>) -> Option<LeaseName> {
        let name: LeaseName = match text.parse() {
            Ok(name) => name,
            Err(why) => {
                let message = format!("{:?} is no name of a lease", excerpt(text));
                log.add(Code::BadName, at, message, "use printable text without `*`").expected(why.expected);
                return None;
            }
        };
        if self.machine.lease(&name).is_none() {
            let granted = self.machine.leases.granted.keys().map(String::as_str);
            let message = format!("the machine was not granted the lease `{name}`");
            log.add(UNKNOWN_LEASE, at, message, suggest(text, granted, "grant it in the manifest: [leases]"));
            return None;
        }
        Some(name)
    }

    /// Leases as they must be: who has each, or more of it.
    pub(super) fn leases(&self, table: &Table<'_>, log: &mut Log<'_>) -> BTreeMap<LeaseName, Holding> {
        let Some(node) = table.get("leases") else { return BTreeMap::new() };
        let mut found = BTreeMap::new();
        for (name, node) in node.entries(log) {
            let lease = self.lease_named(name.value, &name.at, log);
            let holding = match node.as_text() {
                Some(_) => Holding { holder: self.whose(&node, log), ..Holding::default() },
                None => {
                    let Some(table) = node.table(&keys::HOLDING, log) else { continue };
                    if table.written().is_empty() {
                        let message = format!("`{}` says nothing of the lease", table.path);
                        log.add(NOTHING, &table.at, message, "say who has it: { holder = \"nobody\" }")
                            .expected(list(keys::HOLDING.names));
                    }
                    let in_line = table.get("in_line").and_then(|node| node.integer(0..=u64::from(u32::MAX), log));
                    Holding {
                        holder: table.get("holder").and_then(|node| self.whose(&node, log)),
                        in_line: in_line.map(|number| number.value),
                        history: table.get("history").map(|node| super::then::lines(&node, log)).unwrap_or_default(),
                    }
                }
            };
            found.extend(lease.map(|lease| (lease, holding)));
        }
        found
    }

    /// `nobody`, a client of the scenario, or the key of an entity.
    fn whose(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Whose> {
        let text = node.text(log)?;
        if text.value == NOBODY {
            return Some(Whose::Nobody);
        }
        if let Some(client) = self.clients.iter().find(|client| client.as_str() == text.value) {
            return Some(Whose::Client(client.clone()));
        }
        if let Some(entity) = self.entities.iter().find(|entity| entity.key.as_str() == text.value) {
            return Some(Whose::Entity(entity.clone()));
        }
        let clients = self.clients.iter().map(GrantId::as_str);
        let known = clients.chain(self.entities.iter().map(|entity| entity.key.as_str())).chain([NOBODY]);
        let message = format!("the scenario has neither a client nor an entity `{}`", excerpt(text.value));
        log.add(UNKNOWN_ENTITY, &text.at, message, suggest(text.value, known, ""));
        None
    }
}

fn by(table: &Table<'_>, log: &mut Log<'_>) -> Option<GrantId> {
    let Some(node) = table.get("by") else { return CLIENT.parse().ok() };
    let text = node.text(log)?;
    let name = text.value.parse::<GrantId>();
    name.map_err(|why| {
        let message = format!("{:?} is no name of a client", excerpt(text.value));
        log.add(Code::BadName, &text.at, message, "use short printable text").expected(why.expected);
    })
    .ok()
}

fn ttl(table: &Table<'_>, log: &mut Log<'_>) -> Option<u64> {
    table.get("ttl").and_then(|node| node.duration(LEASE_TTL_MS_MIN..=LEASE_TTL_MS_MAX, log)).map(|ttl| ttl.value)
}

fn terms(table: &Table<'_>, log: &mut Log<'_>) -> Terms {
    let ttl_ms = ttl(table, log);
    let mut duration = |key: &str, range| table.get(key).and_then(|node| node.duration(range, log));
    let hold = duration("hold_max", LEASE_TTL_MS_MIN..=LEASE_HOLD_MS_MAX);
    let delay = duration("lock_delay", 0..=LEASE_DELAY_MS_MAX);
    Terms {
        ttl_ms: ttl_ms.unwrap_or(LEASE_TTL_MS_DEFAULT),
        hold_ms: hold.map_or(LEASE_HOLD_MS_DEFAULT, |hold| hold.value),
        delay_ms: delay.map_or(0, |delay| delay.value),
    }
}
