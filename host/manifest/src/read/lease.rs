//! Leases: which ones executions may have, on what terms, and how states and transitions name them.

use super::path::Paths;
use crate::draft::LeaseDraft;
use crate::keys;
use crate::log::{Log, Spot, excerpt};
use crate::node::Node;
use crate::problem::Code;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::LeaseName;
use interlock_kernel::limits::{LEASE_DELAY_MS_MAX, LEASE_HOLD_MS_MAX, LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN, LEASES_MAX};
use interlock_kernel::machine::LeaseSpec;
use interlock_kernel::time::Span;
use interlock_kernel::value::{Source, Value};

/// `[leases]`: each name, or the beginning of many and a `*`, with its terms.
pub(super) fn granted(node: &Node<'_>, log: &mut Log<'_>) -> Vec<LeaseDraft> {
    let mut found = Vec::new();
    for (key, node) in node.entries(log) {
        // Read without a good name too: its other mistakes are reported all the same.
        let spec = spec(&node, log);
        let beginning = key.value.strip_suffix('*').unwrap_or(key.value);
        if beginning.is_empty() && key.value == "*" || readable(&Spot { value: beginning, at: key.at.clone() }, log) {
            found.push(LeaseDraft { name: Spot { value: key.value.to_owned(), at: key.at }, spec });
        }
    }
    found
}

fn readable(name: &Spot<&str>, log: &mut Log<'_>) -> bool {
    let Err(bad) = name.value.parse::<LeaseName>() else { return true };
    let remedy = "use printable text; a `*` may only end a name in [leases], where it stands for any rest";
    let message = format!("{:?} is not a lease name", excerpt(name.value));
    log.add(Code::BadName, &name.at, message, remedy).expected(bad.expected).got(bad.got);
    false
}

fn spec(node: &Node<'_>, log: &mut Log<'_>) -> LeaseSpec {
    let default = LeaseSpec::default();
    let Some(table) = node.table(&keys::LEASE, log) else { return default };
    let mut duration = |key: &str, range| table.get(key).and_then(|node| node.duration(range, log));
    let ttl = duration("ttl", LEASE_TTL_MS_MIN..=LEASE_TTL_MS_MAX);
    let max = duration("max", LEASE_TTL_MS_MIN..=LEASE_TTL_MS_MAX);
    let hold = duration("hold_max", LEASE_TTL_MS_MIN..=LEASE_HOLD_MS_MAX);
    let delay = duration("lock_delay", 0..=LEASE_DELAY_MS_MAX);
    let ttl_ms_max = max.map_or(default.ttl_ms_max, |max| max.value);
    let hold_ms = hold.map_or(default.hold_ms, |hold| hold.value);
    if let Some(ttl) = &ttl {
        for (key, most) in [("max", ttl_ms_max), ("hold_max", hold_ms)] {
            if ttl.value > most {
                let message = format!("`{}.ttl` is longer than `{key}`", table.path);
                log.add(Code::OutOfRange, &ttl.at, message, format!("make `ttl` shorter or `{key}` longer"))
                    .expected(format!("at most {}", Span(most)))
                    .got(Span(ttl.value).to_string());
            }
        }
    }
    LeaseSpec {
        // A short bound without `ttl` shortens the default too.
        ttl_ms: ttl.map_or(default.ttl_ms.min(ttl_ms_max).min(hold_ms), |ttl| ttl.value),
        ttl_ms_max,
        hold_ms,
        delay_ms: delay.map_or(default.delay_ms, |delay| delay.value),
    }
}

/// `needs` or `requires`: names, and `{ from = "data.cluster" }` for a name that stands in a field.
pub(super) fn names(node: &Node<'_>, log: &mut Log<'_>) -> Vec<Spot<Value>> {
    let Some(items) = node.as_items() else {
        node.wrong("an array", "write [\"gpu-quota\"], or [{ from = \"data.cluster\" }]", log);
        return Vec::new();
    };
    if items.is_empty() {
        let message = format!("`{}` is empty", node.path);
        log.add(Code::BadValue, &node.at(), message, "name a lease, or leave it out");
    }
    if items.len() > LEASES_MAX {
        let message = format!("`{}` names {} leases", node.path, items.len());
        log.add(Code::TooLarge, &node.key, message, format!("keep at most {LEASES_MAX}"));
    }
    let mut found: Vec<Spot<Value>> = Vec::new();
    for item in &items {
        let Some(one) = name(item, log) else { continue };
        if found.iter().any(|other| other.value == one.value) {
            let message = format!("`{}` names the lease {} twice", node.path, one.value);
            log.add(Code::BadValue, &one.at, message, "name it once");
            continue;
        }
        found.push(one);
    }
    found
}

fn name(item: &Node<'_>, log: &mut Log<'_>) -> Option<Spot<Value>> {
    if let Some(text) = item.as_text() {
        let good = readable(&item.spot(text), log);
        return good.then(|| item.spot(Value::Json(Doc::new(text.into()))));
    }
    if !item.is_table() {
        item.wrong("a name or a table", "write \"gpu-quota\", or { from = \"data.cluster\" }", log);
        return None;
    }
    let table = item.table(&keys::LEASE_FROM, log)?;
    let from = table.need("from", "say which field holds the name: { from = \"data.cluster\" }", log)?;
    match Paths::Documents.source(&from, log)? {
        Source::Now(_) => {
            let message = format!("`{}` is a time, which is no lease\'s name", from.path);
            log.add(Code::BadPath, &from.at(), message, "name a field with text: { from = \"data.cluster\" }");
            None
        }
        source => Some(from.spot(Value::From(source))),
    }
}
